//! The C compiler that links the libraries of an installation.
//!
//! Invariant: `CC` is a program with arguments, as cargo's build scripts read it (`ccache gcc`, `gcc -m64`).

use crate::outcome::{Outcome, fail};
use std::env;
use std::process::Command;

/// A compiler with the arguments that it is always given.
#[derive(Debug)]
pub(crate) struct CCompiler {
    words: Vec<String>,
    /// Whether its programs are for another machine.
    is_cross: bool,
}

impl CCompiler {
    /// That of `CC`, or `cc`.
    pub(crate) fn from_env() -> Outcome<Self> {
        Self::parse(&env::var("CC").unwrap_or_else(|_| "cc".to_owned()))
    }

    pub(crate) fn parse(text: &str) -> Outcome<Self> {
        let words = shell_words::split(text)?;
        if words.is_empty() {
            fail("CC is empty: unset it, or name a C compiler")
        } else {
            Ok(Self { words, is_cross: false })
        }
    }

    /// The compiler for another machine, by the beginning of the names of its tools.
    pub(crate) fn cross(tools: &str) -> Self {
        Self { words: vec![format!("{tools}gcc")], is_cross: true }
    }

    /// The same with further arguments.
    pub(crate) fn with_arguments(mut self, arguments: impl IntoIterator<Item = String>) -> Self {
        self.words.extend(arguments);
        self
    }

    pub(crate) fn is_cross(&self) -> bool {
        self.is_cross
    }

    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    /// A call of a tool of its binutils, which has the prefix of a compiler for another machine.
    pub(crate) fn tool(&self, name: &str) -> Command {
        let prefix = self.words[0].strip_suffix("gcc").unwrap_or_default();
        Command::new(format!("{prefix}{name}"))
    }

    /// A call of it.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        command
    }
}
