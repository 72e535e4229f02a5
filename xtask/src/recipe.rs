//! The contents of the userland: a table of Debian packages and of CMake versions, in two parts. Data only.
//!
//! Suites: `sid` everywhere; a row may name a package of `experimental`, which has HIP 7.2 and snapshots of the next
//! LLVM. Mirrors are never named here: they come from the machine's apt.

/// Number in the directory's name. Raise it when an older checkout must keep its own userland.
pub(crate) const VERSION: u32 = 3;

/// A part of the userland. The second one is added to the directory of the first when a task needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// A compiler, HIP, CMake: for `demo`, `shell` and programs that are built and run.
    Base,
    /// Everything else, for `test` and the long tasks.
    Tests,
}

impl Part {
    /// The name in stamps.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Tests => "tests",
        }
    }

    /// This part and those that it needs, in the order in which they are built.
    pub(crate) fn with_needed(self) -> &'static [Self] {
        match self {
            Self::Base => &[Self::Base],
            Self::Tests => &[Self::Base, Self::Tests],
        }
    }

    pub(crate) fn packages(self) -> &'static [Package] {
        match self {
            Self::Base => BASE,
            Self::Tests => TESTS,
        }
    }

    /// Megabytes that the part takes while it is built: packages and their files. Measured, and rounded up.
    pub(crate) fn megabytes(self) -> u64 {
        match self {
            Self::Base => 1200,
            Self::Tests => 1800,
        }
    }
}

/// A package of the userland.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    pub(crate) experimental: bool,
    /// Without an optional package the userland is built nevertheless, with a note.
    pub(crate) optional: bool,
}

const fn sid(name: &'static str) -> Package {
    Package { name, experimental: false, optional: false }
}

const fn extra(name: &'static str) -> Package {
    Package { name, experimental: false, optional: true }
}

const fn hip(name: &'static str) -> Package {
    Package { name, experimental: true, optional: false }
}

/// A snapshot of the next LLVM: it moves, and may be absent for a while.
const fn snapshot(name: &'static str) -> Package {
    Package { name, experimental: true, optional: true }
}

/// Unpacked before all others: it has the links from `/lib` and `/bin` into `/usr`.
pub(crate) const FIRST: &str = "base-files";

#[rustfmt::skip]
const BASE: &[Package] = &[
    // Scripts and build systems expect these of every system.
    sid(FIRST), sid("base-passwd"), sid("bash"), sid("coreutils"), sid("dash"), sid("debianutils"), sid("diffutils"),
    sid("findutils"), sid("grep"), sid("gzip"), sid("hostname"), sid("libc-bin"), sid("mawk"), sid("sed"), sid("tar"),
    sid("util-linux"),
    // HIP 7.2: runtime, comgr, HSA, hipcc; the device libraries are those of LLVM 22.
    hip("hipcc"), hip("libamdhip64-dev"), hip("libamd-comgr-dev"), hip("libhsa-runtime-dev"), hip("rocm-device-libs-22"),
    // LLVM 22: old offload driver by default, the one that HIP 7.2 is built with.
    sid("clang-22"), sid("clang-tools-22"), sid("lld-22"), sid("llvm-22"), sid("libclang-rt-22-dev"),
    sid("cmake"), sid("ninja-build"), sid("g++"), sid("binutils"),
];

#[rustfmt::skip]
const TESTS: &[Package] = &[
    // The rest of Debian's base system: packages are installed on top of it by dpkg and apt.
    sid("ca-certificates"), sid("apt"), sid("debian-archive-keyring"), sid("dpkg"), sid("init-system-helpers"),
    sid("ncurses-base"), sid("ncurses-bin"), sid("netbase"), sid("perl-base"), sid("sysvinit-utils"),
    extra("clangd-22"), extra("clang-tidy-22"),
    // LLVM 23: new offload driver by default.
    sid("clang-23"), sid("clang-tools-23"), sid("lld-23"), sid("llvm-23"), sid("libclang-rt-23-dev"),
    // LLVM 24: no old driver any more.
    snapshot("clang-24"), snapshot("clang-tools-24"), snapshot("lld-24"), snapshot("llvm-24"), snapshot("libclang-rt-24-dev"),
    // Header libraries that choose kernels by the name of the GPU, on the host and on the device.
    hip("librocprim-dev"), hip("libhipcub-dev"), hip("librocthrust-dev"), hip("librocrand-dev"),
    // Build systems and compiler caches.
    sid("make"), sid("ccache"), sid("sccache"),
    // Host linkers beside lld and binutils.
    sid("binutils-gold"), sid("mold"),
    // Oracles of the tests.
    sid("strace"), sid("file"), sid("python3"),
];

/// Files of packages that are not unpacked: documentation, programs for developers of LLVM and GCC, the C
/// interface of clang, 32-bit libraries.
pub(crate) const LEFT_OUT: &[&str] = &[
    "./usr/share/doc/*",
    "./usr/share/man/*",
    "./usr/share/info/*",
    "./usr/share/locale/*",
    "./usr/share/cmake-*/Help/*",
    "./usr/lib/llvm-*/bin/llvm-exegesis",
    "./usr/lib/llvm-*/bin/c-index-test",
    "./usr/bin/*-lto-dump-*",
    "./usr/lib/*/libclang-[0-9]*.so*",
    "./usr/lib/llvm-*/lib/clang/*/lib/linux/*-i386*",
    "./usr/lib32/*",
];

/// Directories that the packages' scripts make on a real system.
pub(crate) const DIRECTORIES: &[&str] = &["dev", "mnt", "opt", "proc", "run", "srv", "sys", "tmp", "var/tmp"];

/// Files that the packages' scripts copy on a real system: from, to.
pub(crate) const COPIES: &[(&str, &str)] = &[
    ("usr/share/base-passwd/passwd.master", "etc/passwd"),
    ("usr/share/base-passwd/group.master", "etc/group"),
    ("usr/share/libc-bin/nsswitch.conf", "etc/nsswitch.conf"),
];

/// Names that the packages' scripts give to programs on a real system (`update-alternatives`): link, its content.
pub(crate) const ALTERNATIVES: &[(&str, &str)] = &[
    ("usr/bin/c++", "g++"),
    ("usr/bin/cc", "gcc"),
    ("usr/bin/c89", "c89-gcc"),
    ("usr/bin/c99", "c99-gcc"),
    ("usr/bin/awk", "mawk"),
    ("usr/bin/nawk", "mawk"),
    ("usr/bin/which", "which.debianutils"),
];

/// CMake versions besides Debian's own, as wheels: one that is too old and must be rejected, the oldest supported one,
/// and the last of each line.
pub(crate) const CMAKE: &[&str] = &["3.25.2", "3.28.4", "3.31.6", "4.0.3"];

/// The clang that finds HIP and its device libraries without options.
pub(crate) const CLANG: &str = "/usr/lib/llvm-22/bin/clang++";

/// The directory with device libraries that every clang of the userland uses.
pub(crate) const DEVICE_LIBRARIES: &str = "/usr/lib/llvm-22/lib/clang/22/amdgcn/bitcode";

/// Links that make Debian's HIP look like one ROCm directory. Clang 23 and later look for `<rocm>/lib/libamdhip64.so` by
/// its full name, and Debian has it in the multiarch directory; CMake takes the directory for the ROCm root, hence the last
/// row. `{}` is the multiarch name.
pub(crate) const ROCM_LINKS: &[(&str, &str)] = &[
    ("lib/libamdhip64.so", "/usr/lib/{}/libamdhip64.so"),
    ("include", "/usr/include"),
    ("share", "/usr/share"),
    ("bin", "/usr/bin"),
    ("amdgcn/bitcode", DEVICE_LIBRARIES),
    ("lib/{}", "/usr/lib/{}"),
];

/// The recipe of a part as text: its stamp contains it, so that a change is detected.
pub(crate) fn text(part: Part) -> String {
    let mut text = format!("userland {VERSION} {}\n", part.name());
    for package in part.packages() {
        let suite = if package.experimental { "experimental" } else { "sid" };
        text += &format!("package {} {suite}\n", package.name);
    }
    match part {
        Part::Base => {
            let rows = [("link", ROCM_LINKS), ("copy", COPIES), ("alternative", ALTERNATIVES)];
            for (kind, (name, target)) in rows.iter().flat_map(|(kind, rows)| rows.iter().map(move |row| (kind, row))) {
                text += &format!("{kind} {name} {target}\n");
            }
            for pattern in LEFT_OUT {
                text += &format!("left out {pattern}\n");
            }
        }
        Part::Tests => {
            for version in CMAKE {
                text += &format!("cmake {version}\n");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_named_once() {
        let mut names: Vec<_> = BASE.iter().chain(TESTS).map(|package| package.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
