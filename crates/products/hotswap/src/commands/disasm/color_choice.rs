//! When the assembly text has colours.

use clap::ValueEnum;
use std::env;
use std::io::{IsTerminal, stdout};

/// When to use colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl ColorChoice {
    pub(crate) fn is_on(self) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => stdout().is_terminal() && allowed(&env::var("NO_COLOR"), &env::var("TERM")),
        }
    }
}

/// <https://no-color.org>: set and not empty means no colours.
fn allowed(no_color: &Result<String, env::VarError>, term: &Result<String, env::VarError>) -> bool {
    no_color.as_ref().map_or(true, String::is_empty) && term.as_ref().is_ok_and(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_and_dumb_terminals_are_respected() {
        let set = |text: &str| Ok(text.to_owned());
        let unset = || Err(env::VarError::NotPresent);
        assert!(allowed(&unset(), &set("xterm")) && allowed(&set(""), &set("xterm")));
        assert!(!allowed(&set("1"), &set("xterm")) && !allowed(&unset(), &set("dumb")) && !allowed(&unset(), &unset()));
    }
}
