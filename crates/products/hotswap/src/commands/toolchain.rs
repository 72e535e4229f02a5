//! `hotswap toolchain --files`: the files that a compile through HotSwap reads besides its sources, for build systems that
//! want them declared ([`hotswap_toolchain::file_closure`]).

use crate::args::{OutputFormat, OutputOptions};
use crate::outcome::CommandOutcome;
use clap::Args;
use hotswap_report::{Diagnostic, text};
use hotswap_toolchain::file_closure::find_compiler_files;
use serde_json::json;

#[derive(Debug, Args)]
pub(crate) struct ToolchainArguments {
    /// Print the files that this program needs: clang, clang++, or the path of a clang
    #[arg(long, value_name = "PROGRAM", required = true)]
    files: String,
    #[command(flatten)]
    output: OutputOptions,
}

pub(crate) fn run(arguments: &ToolchainArguments) -> Result<CommandOutcome, Diagnostic> {
    let found = find_compiler_files(&arguments.files)?;
    let files: Vec<String> = found.files.iter().map(|path| path.display().to_string()).collect();
    Ok(match arguments.output.format {
        OutputFormat::Json => {
            text::json(&json!({ "schema": 1, "clang": found.clang.display().to_string(), "files": files }))
        }
        OutputFormat::Text => files.iter().map(|file| text::plain(file) + "\n").collect(),
    }
    .into())
}
