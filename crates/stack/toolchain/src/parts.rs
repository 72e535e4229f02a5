//! The parts of a tool chain that builds HIP programs: what each is for, and the packages that have it. Data only.

/// A part of the tool chain.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ToolchainPart {
    /// Its name in the report.
    pub(crate) name: &'static str,
    /// The purpose that the report states for it.
    pub(crate) purpose: &'static str,
    /// Whether HIP programs cannot be built through HotSwap without it.
    pub(crate) is_required: bool,
    /// The package of Debian that has it.
    pub(crate) debian: &'static str,
    /// The package of Fedora that has it.
    pub(crate) fedora: &'static str,
    /// The attribute of nixpkgs that has it.
    pub(crate) nix: &'static str,
}

macro_rules! parts {
    ($($(#[doc = $doc:literal])* $constant:ident = $name:literal, $required:literal, $purpose:literal, $debian:literal, $fedora:literal, $nix:literal;)*) => {
        $($(#[doc = $doc])* pub(crate) const $constant: &ToolchainPart = &ToolchainPart {
            name: $name, purpose: $purpose, is_required: $required, debian: $debian, fedora: $fedora, nix: $nix,
        };)*
        #[cfg(test)]
        pub(crate) const PARTS: &[&ToolchainPart] = &[$($constant),*];
    };
}

#[rustfmt::skip]
parts! {
    // name, required, purpose, Debian, Fedora, Nix
    INSTALLATION = "hotswap", true, "everything", "hotswap", "hotswap", "hotswap";
    CLANG = "clang", true, "compiling", "clang-22", "rocm-clang", "rocmPackages.llvm.clang";
    LINKER = "lld", true, "the device link", "lld-22", "rocm-lld", "rocmPackages.llvm.lld";
    /// The tools that make fat binaries.
    BUNDLER = "clang tools", true, "fat binaries: clang-offload-bundler, clang-linker-wrapper, llvm-objcopy", "clang-tools-22, llvm-22", "rocm-clang, rocm-llvm", "rocmPackages.llvm.clang-unwrapped, rocmPackages.llvm.llvm";
    /// Bitcode of device functions.
    DEVICE_LIBRARIES = "device libraries", true, "device code", "rocm-device-libs-22", "rocm-device-libs", "rocmPackages.rocm-device-libs";
    HEADERS = "HIP headers", true, "compiling", "libamdhip64-dev", "rocm-hip-devel", "rocmPackages.clr";
    RUNTIME = "HIP runtime", true, "linking and running programs", "libamdhip64-dev", "rocm-hip-devel", "rocmPackages.clr";
    /// The library by which HIP loads compressed code and compiles at run time.
    COMGR = "comgr", false, "HIP's loading of compressed code and hipRTC", "libamd-comgr3", "rocm-comgr", "rocmPackages.rocm-comgr";
    /// The library that talks to the driver.
    HSA = "HSA runtime", false, "running programs", "libhsa-runtime64-1", "rocm-runtime", "rocmPackages.rocm-runtime";
    /// The compiler driver of AMD.
    HIPCC = "hipcc", false, "builds that call it", "hipcc", "hipcc", "rocmPackages.clr";
    /// The build system that finds HotSwap's package.
    CMAKE = "CMake", false, "find_package(HotSwap)", "cmake", "cmake", "cmake";
    /// Compiler caches; left out where none exists.
    CACHES = "compiler caches", false, "builds that use them", "ccache", "ccache", "ccache";
    /// Precompiled headers; left out where none were made.
    WARM_HEADERS = "warm headers", false, "compiles with -fhotswap-warm-headers", "hotswap", "hotswap", "hotswap";
    /// The library that CMake's language HIP links every program with.
    COMPILER_RT = "compiler-rt", false, "programs of CMake's language HIP, which names --rtlib=compiler-rt", "libclang-rt-22-dev", "rocm-clang-runtime-devel", "rocmPackages.llvm.compiler-rt";
    /// The tools of `hotswap profile`.
    PROFILES = "profile tools", false, "hotswap profile: llvm-profdata, llvm-cov", "llvm-22", "rocm-llvm", "rocmPackages.llvm.llvm";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_can_be_had_everywhere() {
        assert!(PARTS.iter().all(|part| ![part.debian, part.fedora, part.nix, part.purpose].contains(&"")));
        let mut names: Vec<_> = PARTS.iter().map(|part| part.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PARTS.len());
    }
}
