//! `hotswap bundle`: a fat binary of code objects in files of their own.
//!
//! Invariants: the layout is that of `clang-offload-bundler -bundle-align=4096`, the host's empty entry first; the
//! records of the code objects are kept; the bundle is read again before it is written.

use crate::outcome::CommandOutcome;
use crate::standard_output::output_file;
use crate::work::text;
use clap::Args;
use hotswap_bundle::Compression;
use hotswap_file_edit::new_file;
use hotswap_files::InputFile;
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct BundleArguments {
    /// Output file; `-` is standard output
    #[arg(value_parser = output_file())]
    output: PathBuf,
    /// Target ID, and the file with the code object for it; in the order of the entries
    #[arg(long, required = true, value_name = "TARGET=FILE", num_args = 1..)]
    entry: Vec<String>,
    /// Compress the fat binary, as `clang-offload-bundler -compress` does
    #[arg(long)]
    compress: bool,
}

pub(crate) fn run(arguments: &BundleArguments) -> Result<CommandOutcome, Diagnostic> {
    let files: Vec<(TargetId, PathBuf, InputFile)> =
        arguments.entry.iter().map(|entry| open(entry)).collect::<Result<_, _>>()?;
    let mut objects: Vec<(TargetId, &[u8])> = Vec::new();
    for (target, path, input) in &files {
        let one = [(*target, &**input)];
        // Read alone first, so that an error names the file.
        hotswap_pipeline::bundle_of(&one).map_err(|error| error.in_file(path))?;
        if objects.iter().any(|(other, _)| other == target) {
            return Err(Diagnostic::error(codes::USAGE, format!("two entries are for {target}")));
        }
        objects.extend(one);
    }
    let mut bundle = hotswap_pipeline::bundle_of(&objects)?;
    bundle.set_compression(arguments.compress.then(Compression::default));
    let bytes = bundle.to_bytes()?;
    let (again, size) = hotswap_bundle::parse(&bytes)?;
    if size != bytes.len() || again.entries() != bundle.entries() {
        return Err(Diagnostic::error(codes::VERIFY_FAILED, "the bundle differs").in_file(&arguments.output));
    }
    new_file::check_new_bytes(&[], &bytes).map_err(|error| error.in_file(&arguments.output))?;
    hotswap_files::replace_file(&arguments.output, &bytes)?;
    let file = text::plain(&arguments.output.display().to_string());
    Ok(format!("{file}: {} entries, {} bytes\n", objects.len(), bytes.len()).into())
}

/// Target and file of one entry.
fn open(entry: &str) -> Result<(TargetId, PathBuf, InputFile), Diagnostic> {
    let (target, file) = entry
        .split_once('=')
        .filter(|(_, file)| !file.is_empty())
        .ok_or_else(|| Diagnostic::error(codes::USAGE, format!("`{entry}` is not of the form TARGET=FILE")))?;
    let target = target.parse()?;
    Ok((target, PathBuf::from(file), hotswap_files::open_input(file.as_ref())?))
}
