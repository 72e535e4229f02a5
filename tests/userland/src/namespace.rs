//! A private mount namespace: mounts that only one command and its children see.
//!
//! A process with CAP_SYS_ADMIN makes it directly. Any other uses a user namespace of its own, where it is root and
//! owns the files of its user; other users do not exist there.

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
    /// The directory alone, without write permission. In a user namespace, which may not uncover what a mount hides, the mounts
    /// below it are also visible, and writable.
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

/// The name of the script, by which the command in it is found.
const NAME: &str = "hotswap-namespace";
/// How a command of the userland begins.
pub(crate) const CHROOT: &str = "/usr/sbin/chroot";

/// Triples of kind, source and target up to `--`, then the command, which replaces the shell.
const SCRIPT: &str = r#"set -eu
while [ "$1" != -- ]; do
    case $1 in
        bind) mkdir -p "$3"; mount --rbind -- "$2" "$3" ;;
        read-only) mkdir -p "$3"; mount --bind -- "$2" "$3" 2>/dev/null || mount --rbind -- "$2" "$3"; mount -o remount,bind,ro -- "$3" ;;
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
        if !has_mount_right() {
            command.args(["--user", "--map-root-user"]);
        }
        command.args(["--mount", "--propagation", "private", "--", "/bin/sh", "-c", SCRIPT, NAME]);
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

/// Whether this process may make mounts in its user namespace: it has CAP_SYS_ADMIN.
pub fn has_mount_right() -> bool {
    const CAP_SYS_ADMIN: u32 = 21;
    // Without /proc, namespaces cannot be made either.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    bits.is_some_and(|bits| bits >> CAP_SYS_ADMIN & 1 == 1)
}

/// The program and the arguments of a command without the mounts and the change of the root directory around it: what a
/// person would type inside the userland.
pub fn inner_words(command: &Command) -> Vec<OsString> {
    let words: Vec<OsString> =
        std::iter::once(command.get_program()).chain(command.get_args()).map(OsString::from).collect();
    let words = match words.iter().position(|word| word == NAME) {
        Some(at) if words[0] == "unshare" => {
            let end = words[at..].iter().position(|word| word == "--").map_or(words.len(), |end| at + end + 1);
            words[end..].to_vec()
        }
        _ => words,
    };
    // `chroot ROOT env -C DIRECTORY PROGRAM…`, as `Userland::command` makes it.
    let is_inside = words.first().is_some_and(|word| word == CHROOT) && words.len() > 5;
    if is_inside { words[5..].to_vec() } else { words }
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
    fn what_is_shown_of_a_command_is_the_command() {
        let shown = |command: &Command| inner_words(command).join(" ".as_ref()).into_string().unwrap();
        let namespace = Namespace::default().with(Mount::Memory { target: "/mnt".into() });
        let mut inner = crate::Userland::new("/nowhere").command("/tmp", "clang++");
        inner.args(["-c", "a.hip"]);
        assert_eq!(shown(&namespace.wrap(&inner)), "clang++ -c a.hip");
        assert_eq!(shown(&inner), "clang++ -c a.hip");
        let mut beside = namespace.command("cargo");
        beside.args(["run", "--", "x"]);
        assert_eq!(shown(&beside), "cargo run -- x");
        assert_eq!(shown(Command::new("true").arg("--")), "true --");
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
