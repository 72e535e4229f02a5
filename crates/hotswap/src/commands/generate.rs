//! `hotswap generate`: man pages and shell completions, made from the definition of the command line.
//!
//! Absent on purpose: the page of `hotswap-clang`, which that program prints itself (`--hotswap-help=man`).

use crate::cli::Cli;
use crate::outcome::Outcome;
use clap::{Args, CommandFactory, ValueEnum};
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

pub(crate) fn run(arguments: &GenerateArguments) -> Result<Outcome, Diagnostic> {
    let bytes = match arguments.kind {
        GeneratedText::Man => page(arguments.command.as_deref())?,
        GeneratedText::Pages => names().join("\n").into_bytes(),
        GeneratedText::Bash => completions(Shell::Bash),
        GeneratedText::Zsh => completions(Shell::Zsh),
        GeneratedText::Fish => completions(Shell::Fish),
    };
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text.into())
}

/// `hotswap`, and the commands that are in its help.
fn names() -> Vec<String> {
    let command = Cli::command();
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    std::iter::once("hotswap".to_owned())
        .chain(shown.map(|command| format!("hotswap-{}", command.get_name())))
        .collect()
}

fn page(name: Option<&str>) -> Result<Vec<u8>, Diagnostic> {
    let mut command = Cli::command();
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

fn completions(shell: Shell) -> Vec<u8> {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "hotswap", &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_options() {
        let names = names();
        assert!(names.contains(&"hotswap-retarget".to_owned()) && names.len() > 25);
        for name in &names[1..] {
            let page = String::from_utf8(page(name.strip_prefix("hotswap-")).unwrap()).unwrap();
            assert!(page.contains(".SH NAME\n") && page.contains(&name.replace('-', "\\-")), "{name}: {page}");
        }
        assert_eq!(page(Some("absent")).unwrap_err().code, codes::USAGE);
        let retarget = String::from_utf8(page(Some("retarget")).unwrap()).unwrap();
        assert!(retarget.contains("keep\\-source"), "{retarget}");
    }

    #[test]
    fn completions_know_the_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let text = String::from_utf8(completions(shell)).unwrap();
            assert!(text.contains("retarget") && text.contains("doctor"), "{shell}");
        }
    }
}
