//! Commands as expressions of `duct`, which reads and writes their pipes.

use duct::Expression;
use std::process::Command;

/// Which variables a command gets besides its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inherit {
    /// Those of this process.
    All,
    /// None, as [`Userland::command`](crate::Userland::command) makes it.
    Nothing,
}

/// The program, arguments, directory and variables of a command. Every exit code is a result: the caller judges it.
pub fn expression(command: &Command, inherit: Inherit) -> Expression {
    let mut expression = duct::cmd(command.get_program(), command.get_args()).unchecked();
    let own = || command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    match inherit {
        Inherit::Nothing => expression = expression.full_env(own()),
        Inherit::All => {
            for (name, value) in own() {
                expression = expression.env(name, value);
            }
        }
    }
    if let Some(directory) = command.get_current_dir() {
        expression = expression.dir(directory);
    }
    expression
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_kept_as_it_is() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo \"$A-$B $PWD $(cat)\"; exit 3"]).env("A", "1").current_dir("/usr");
        let run = |inherit| expression(&command, inherit).stdin_bytes("in").stdout_capture().run().unwrap();
        let output = run(Inherit::Nothing);
        assert_eq!((output.status.code(), &*output.stdout), (Some(3), &b"1- /usr in\n"[..]));
        assert_eq!(run(Inherit::All).status.code(), Some(3));
    }
}
