//! `hotswap generate`: man pages and shell completions, made from the definition of the command line.
//!
//! Absent on purpose: the page of `hotswap-clang`, which that program prints itself (`--hotswap-help=man`).

use crate::outcome::CommandOutcome;
use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;
use hotswap_report::{Diagnostic, codes};
use std::io;

#[derive(Debug, Args)]
pub(crate) struct GenerateArguments {
    /// The text to print
    #[arg(value_enum)]
    kind: GeneratedText,
    /// With `man`: the command whose page is printed, for example retarget [default: hotswap itself]
    command: Option<String>,
}

/// The texts that can be generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GeneratedText {
    /// A man page
    Man,
    /// The names of all man pages, without their section
    Pages,
    /// Completions for bash
    Bash,
    /// Completions for zsh
    Zsh,
    /// Completions for fish
    Fish,
}

/// Prints a text about `program`, the definition of the whole command line.
pub(crate) fn run(arguments: &GenerateArguments, mut program: Command) -> Result<CommandOutcome, Diagnostic> {
    let bytes = match arguments.kind {
        GeneratedText::Man => page(program, arguments.command.as_deref())?,
        GeneratedText::Pages => names(&program).join("\n").into_bytes(),
        GeneratedText::Bash => completions(&mut program, Shell::Bash),
        GeneratedText::Zsh => completions(&mut program, Shell::Zsh),
        GeneratedText::Fish => completions(&mut program, Shell::Fish),
    };
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text.into())
}

/// `hotswap`, and the commands that are in its help.
pub(crate) fn names(program: &Command) -> Vec<String> {
    let shown = program.get_subcommands().filter(|command| !command.is_hide_set());
    std::iter::once("hotswap".to_owned())
        .chain(shown.map(|command| format!("hotswap-{}", command.get_name())))
        .collect()
}

pub(crate) fn page(mut command: Command, name: Option<&str>) -> Result<Vec<u8>, Diagnostic> {
    command.build();
    let command = match name {
        None => command,
        Some(name) => {
            let found = command.find_subcommand(name).cloned();
            found.ok_or_else(|| Diagnostic::error(codes::USAGE, format!("there is no command `{name}`")))?
        }
    };
    let mut bytes = Vec::new();
    clap_mangen::Man::new(command).render(&mut bytes).map_err(printing)?;
    Ok(bytes)
}

fn printing(error: io::Error) -> Diagnostic {
    Diagnostic::error(codes::CANNOT_PRINT, error.to_string())
}

pub(crate) fn completions(program: &mut Command, shell: Shell) -> Vec<u8> {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, program, "hotswap", &mut bytes);
    bytes
}
