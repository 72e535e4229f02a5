//! A private mount namespace: mounts that only one command and its children see.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// One mount of a namespace. A missing target of a bind mount is created: put it on a [`Mount::Memory`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mount {
    /// The directory `source`, with the mounts below it, is also visible at `target`.
    Bind {
        /// Directory of the machine.
        source: PathBuf,
        /// The path at which it is visible.
        target: PathBuf,
    },
    /// The same, without write permission.
    ReadOnly {
        /// Directory of the machine.
        source: PathBuf,
        /// The path at which it is visible.
        target: PathBuf,
    },
    /// An empty directory in memory, removed with the namespace.
    Memory {
        /// The path at which it is visible.
        target: PathBuf,
    },
}

/// The mounts of a command. Without any, the command runs in the caller's own namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Namespace {
    mounts: Vec<Mount>,
}

/// Triples of kind, source and target up to `--`, then the command, which replaces the shell.
const SCRIPT: &str = r#"set -eu
while [ "$1" != -- ]; do
    case $1 in
        bind) mkdir -p "$3"; mount --rbind -- "$2" "$3" ;;
        read-only) mkdir -p "$3"; mount --bind -- "$2" "$3"; mount -o remount,bind,ro -- "$3" ;;
        memory) mount -t tmpfs -o mode=1777 "$2" "$3" ;;
    esac
    shift 3
done
shift
exec "$@""#;

impl Namespace {
    /// Adds a mount; they are made in this order.
    pub fn with(mut self, mount: Mount) -> Self {
        self.mounts.push(mount);
        self
    }

    /// A command of the machine that runs with these mounts.
    pub fn command(&self, program: impl Into<OsString>) -> Command {
        if self.mounts.is_empty() {
            return Command::new(program.into());
        }
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "--", "/bin/sh", "-c", SCRIPT, "hotswap-namespace"]);
        for mount in &self.mounts {
            let (kind, source, target) = match mount {
                Mount::Bind { source, target } => ("bind", source.clone(), target),
                Mount::ReadOnly { source, target } => ("read-only", source.clone(), target),
                Mount::Memory { target } => ("memory", PathBuf::from("hotswap"), target),
            };
            command.arg(kind).arg(source).arg(target);
        }
        command.arg("--").arg(program.into());
        command
    }

    /// The same mounts for a command made by [`Userland::command`](crate::Userland::command): its arguments, directory and
    /// variables are kept, and nothing else is inherited.
    pub fn wrap(&self, inner: &Command) -> Command {
        let mut command = self.command(inner.get_program());
        command.args(inner.get_args()).env_clear();
        if let Some(directory) = inner.get_current_dir() {
            command.current_dir(directory);
        }
        for (name, value) in inner.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_mounts_a_command_is_itself() {
        let command = Namespace::default().command("true");
        assert_eq!((command.get_program().to_str(), command.get_args().len()), (Some("true"), 0));
    }

    #[test]
    fn mounts_come_before_the_command_and_its_words_after() {
        let namespace = Namespace::default().with(Mount::Memory { target: "/mnt".into() });
        let mut inner = Command::new("echo");
        inner.arg("a b").env("KEY", "value");
        let command = namespace.wrap(&inner);
        let words: Vec<_> = command.get_args().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(words[words.len() - 6..], ["memory", "hotswap", "/mnt", "--", "echo", "a b"]);
        assert_eq!(command.get_envs().count(), 1);
    }
}
