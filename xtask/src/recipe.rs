//! The contents of the userland: a table of Debian packages and of CMake versions. Data only.
//!
//! Suites: `sid` everywhere; a row may name a package of `experimental`, which has HIP 7.2 and snapshots of the next
//! LLVM. Mirrors are never named here: they come from the machine's apt.

/// Number in the directory's name. Raise it when an older checkout must keep its own userland.
pub(crate) const VERSION: u32 = 2;

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

#[rustfmt::skip]
pub(crate) const PACKAGES: &[Package] = &[
    sid("ca-certificates"),
    // HIP 7.2: runtime, comgr, HSA, hipcc; the device libraries are those of LLVM 22.
    hip("hipcc"), hip("libamdhip64-dev"), hip("libamd-comgr-dev"), hip("libhsa-runtime-dev"), hip("rocm-device-libs-22"),
    // LLVM 22: old offload driver by default, the one that HIP 7.2 is built with.
    sid("clang-22"), sid("clang-tools-22"), sid("lld-22"), sid("llvm-22"), sid("libclang-rt-22-dev"),
    extra("clangd-22"), extra("clang-tidy-22"),
    // LLVM 23: new offload driver by default.
    sid("clang-23"), sid("clang-tools-23"), sid("lld-23"), sid("llvm-23"), sid("libclang-rt-23-dev"),
    // LLVM 24: no old driver any more.
    snapshot("clang-24"), snapshot("clang-tools-24"), snapshot("lld-24"), snapshot("llvm-24"), snapshot("libclang-rt-24-dev"),
    // Header libraries that choose kernels by the name of the GPU, on the host and on the device.
    hip("librocprim-dev"), hip("libhipcub-dev"), hip("librocthrust-dev"), hip("librocrand-dev"),
    // Build systems and compiler caches.
    sid("cmake"), sid("ninja-build"), sid("make"), sid("g++"), sid("ccache"), sid("sccache"),
    // Host linkers beside lld.
    sid("binutils"), sid("binutils-gold"), sid("mold"),
    // Oracles of the tests.
    sid("strace"), sid("file"), sid("python3"),
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

/// The recipe as text: the stamp of a finished userland contains it, so that a change is detected.
pub(crate) fn text() -> String {
    let mut text = format!("userland {VERSION}\n");
    for package in PACKAGES {
        let suite = if package.experimental { "experimental" } else { "sid" };
        text += &format!("package {} {suite}\n", package.name);
    }
    for version in CMAKE {
        text += &format!("cmake {version}\n");
    }
    for (link, target) in ROCM_LINKS {
        text += &format!("link {link} {target}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_named_once() {
        let mut names: Vec<_> = PACKAGES.iter().map(|package| package.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
