//! The machines on which the README's commands are tried: one row each. Data only.

/// Who runs the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum User {
    Root,
    Ordinary,
    /// Root without CAP_SYS_ADMIN.
    RootWithoutMounts,
}

/// How the command must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    Works,
    /// A failure whose output has this, before anything but the task itself is built.
    Refuses(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Machine {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) user: User,
    /// The directory of the sources, in the user's home.
    pub(super) directory: &'static str,
    /// Without `.git`, as a tarball has the sources.
    pub(super) is_tarball: bool,
    /// A shell script that changes the machine, run as root in its root directory.
    pub(super) change: &'static str,
    pub(super) variables: &'static [(&'static str, &'static str)],
    /// The user's home has this many megabytes.
    pub(super) home_megabytes: Option<u32>,
    /// Whether the kernel gives user namespaces.
    pub(super) has_user_namespaces: bool,
    pub(super) expected: Expected,
}

/// Debian's suite of all machines.
pub(super) const SUITE: &str = "bookworm";
/// Packages of all machines, beside Debian's smallest system with apt.
pub(super) const PACKAGES: &[&str] =
    &["ca-certificates", "passwd", "mount", "gcc", "libc6-dev", "git", "python3-minimal"];

const ROOT: Machine = Machine {
    name: "root",
    help: "root, from a clone",
    user: User::Root,
    directory: "hotswap",
    is_tarball: false,
    change: "",
    variables: &[],
    home_megabytes: None,
    has_user_namespaces: true,
    expected: Expected::Works,
};

const USER: Machine = Machine { name: "user", help: "an ordinary user", user: User::Ordinary, ..ROOT };

#[rustfmt::skip]
pub(super) const MACHINES: &[Machine] = &[
    ROOT,
    USER,
    Machine { name: "root-without-mounts", help: "root without CAP_SYS_ADMIN", user: User::RootWithoutMounts, ..ROOT },
    Machine { name: "container", help: "root without CAP_SYS_ADMIN and user namespaces, as `docker run` gives it",
              user: User::RootWithoutMounts, has_user_namespaces: false,
              expected: Expected::Refuses("user namespaces are forbidden"), ..ROOT },
    Machine { name: "user-without-namespaces", help: "an ordinary user where user namespaces are switched off", has_user_namespaces: false,
              expected: Expected::Refuses("user namespaces are forbidden"), ..USER },
    Machine { name: "tarball", help: "sources without `.git`", is_tarball: true, ..USER },
    Machine { name: "blanks", help: "a directory with blanks and umlauts", directory: "mein großes Verzeichnis", ..USER },
    Machine { name: "no-git", help: "git is not installed", change: "rm -f /usr/bin/git", ..USER },
    Machine { name: "no-compiler", help: "a C compiler is not installed", change: "rm -f /usr/bin/cc /usr/bin/gcc* /usr/bin/*-gcc*",
              expected: Expected::Refuses("linker `cc` not found"), ..USER },
    Machine { name: "no-python", help: "Python is not installed", change: "rm -f /usr/bin/python3*", ..USER },
    Machine { name: "little-disk", help: "900 MB free", home_megabytes: Some(900),
              expected: Expected::Refuses("free some"), ..USER },
    Machine { name: "no-network", help: "the mirror cannot be reached", change: "sed -i 's,http[^ ]*,http://127.0.0.1:9/debian,' /etc/apt/sources.list",
              expected: Expected::Refuses("mirror"), ..USER },
    Machine { name: "debian-12-packages", help: "clang 14, lld, CMake and Ninja of Debian 12",
              change: "apt-get update -q >/dev/null && apt-get install -q -y --no-install-recommends clang lld cmake ninja-build >/dev/null",
              ..USER },
    Machine { name: "old-clang", help: "the same, and user namespaces are switched off",
              change: "apt-get update -q >/dev/null && apt-get install -q -y --no-install-recommends clang lld cmake ninja-build >/dev/null",
              has_user_namespaces: false, expected: Expected::Refuses("clang 14 is older than 22"), ..USER },
    Machine { name: "ccache", help: "`CC=\"ccache gcc\"`", variables: &[("CC", "ccache gcc")],
              change: "apt-get update -q >/dev/null && apt-get install -q -y --no-install-recommends ccache >/dev/null", ..USER },
];
