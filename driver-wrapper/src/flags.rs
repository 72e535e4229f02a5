//! The flags of clang that must be understood to judge a command; every other argument passes through.
//!
//! There are two kinds of flags: those that determine what a command does, and those that take their value as a
//! separate argument, which would be mistaken for an input otherwise. The rows of the second kind were found by passing
//! each option of clang 22, 23 and 24 to the driver without its value; a test repeats that with an installed clang.
//!
//! Invariant: rows are sorted by name, so a flag is found by binary search.
//!
//! Absent on purpose: the flags of clang-cl (`--driver-mode=cl`).

/// The last phase of a command. The earliest stop on the command line wins, as in clang.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Preprocess,
    /// Syntax check, precompiled header: no code is made.
    Front,
    /// `-S`: up to assembly.
    Assemble,
    /// `-c`: up to an object.
    Compile,
    /// To the end, a linked file.
    Link,
}

/// The side of an offload compilation for which code is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffloadSide {
    Both,
    Host,
    Device,
}

/// A kind of instrumentation with counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instrument {
    /// By the front end: `-fprofile-instr-generate`.
    Frontend,
    /// In the optimiser, before inlining: `-fprofile-generate`.
    Ir,
    /// In the optimiser, after inlining: `-fcs-profile-generate`.
    ContextSensitive,
    /// `-fcoverage-mapping`: maps the front end's counters to the source.
    Coverage,
}

/// The compilation to which the value of a flag applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressee {
    Host,
    Device,
    /// That of the processor or architecture in the flag.
    Named,
}

/// How a flag and its value are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagForm {
    /// The argument is the flag; no value.
    Alone,
    /// The argument is the flag; that many further arguments are its values.
    Separate(usize),
    /// The argument begins with the flag; the rest is the value.
    Joined,
    /// Joined, or separate where the argument ends with the flag.
    Either,
    /// The argument begins with the flag (the rest is the addressee); the value is the next argument.
    JoinedThenSeparate,
}

/// The meaning of a flag for the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagMeaning {
    /// The directory to which names of files are relative.
    WorkingDirectory,
    /// None here; only its value must not be taken for an input.
    Operand,
    /// The value is an argument for the device linker.
    Channel,
    /// The command ends with this phase.
    Stop(Phase),
    Output,
    /// A query to clang; nothing is built.
    Query,
    /// `-###`: commands are printed only.
    DryRun,
    /// Language of the inputs that follow.
    Language,
    /// A link with HIP code.
    HipLink,
    /// C++ inputs are HIP inputs.
    StandardParallel,
    /// Processors, separated by commas.
    Arch,
    /// Processors to leave out, or `all`.
    NoArch,
    /// Relocatable device code on or off.
    Rdc(bool),
    /// One side only, or both again.
    Side(OffloadSide),
    /// A device-only output is bundled or bare.
    Bundle(bool),
    /// Which of clang's two offload drivers.
    NewDriver(bool),
    /// The new driver's device link, whatever the inputs.
    OffloadLink,
    /// OpenMP on or off; it may offload, too.
    OpenMp(bool),
    /// Triples that OpenMP offloads to.
    OpenMpTargets,
    Partial,
    /// The output is an archive.
    StaticLibrary,
    /// LLVM IR in place of machine code.
    EmitLlvm,
    /// Device code stays a relocatable object.
    Relocatable,
    Target,
    DriverMode,
    /// Library to search for.
    Library,
    LibraryDirectory,
    /// Counters of that kind on; off with `false`, which for [`Instrument::Ir`] are both kinds of the optimiser.
    Counters(Instrument, bool),
    /// The value is a flag for one side.
    For(Addressee),
    /// Device code is compiled in the device link.
    DeviceLto(bool),
    /// Clang links no profile runtime.
    NoProfileLibrary,
    /// Directory of clang's own headers and libraries.
    ResourceDirectory,
    /// Begin or end of the arguments that may be unused without a warning.
    NoUnused(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flag {
    /// The flag, with its dashes.
    pub name: &'static str,
    /// The position of its value.
    pub attach: FlagForm,
    pub meaning: FlagMeaning,
}

/// An argument that is a flag of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlagMatch<'a> {
    pub flag: &'static Flag,
    /// The joined part, empty if it does not exist.
    pub joined: &'a [u8],
    /// How many of the following arguments belong to the flag.
    pub values: usize,
}

/// The row for that argument; the longest name wins.
pub fn find(word: &[u8]) -> Option<FlagMatch<'_>> {
    let end = FLAGS.partition_point(|flag| flag.name.as_bytes() <= word);
    let near = FLAGS[..end].iter().rev().take_while(|flag| flag.name.as_bytes()[..2] == word[..2.min(word.len())]);
    near.into_iter().find_map(|flag| matches(flag, word))
}

fn matches<'a>(flag: &'static Flag, word: &'a [u8]) -> Option<FlagMatch<'a>> {
    let joined = word.strip_prefix(flag.name.as_bytes())?;
    let values = match flag.attach {
        FlagForm::Alone if joined.is_empty() => 0,
        FlagForm::Separate(count) if joined.is_empty() => count,
        FlagForm::Joined => 0,
        FlagForm::Either => usize::from(joined.is_empty()),
        FlagForm::JoinedThenSeparate => 1,
        _ => return None,
    };
    Some(FlagMatch { flag, joined, values })
}

const fn flag(name: &'static str, attach: FlagForm, meaning: FlagMeaning) -> Flag {
    Flag { name, attach, meaning }
}

use FlagForm::{Alone, Either, Joined, JoinedThenSeparate, Separate};
use FlagMeaning::{
    Arch, Bundle, Channel, Counters, DeviceLto, DriverMode, DryRun, EmitLlvm, For, HipLink, Language, Library,
    LibraryDirectory, NewDriver, NoArch, NoProfileLibrary, NoUnused, OffloadLink, OpenMp, OpenMpTargets, Operand,
    Output, Partial, Query, Rdc, Relocatable, ResourceDirectory, Side, StandardParallel, StaticLibrary, Stop, Target,
    WorkingDirectory,
};
use Instrument::{ContextSensitive, Coverage, Frontend, Ir};

#[rustfmt::skip]
pub const FLAGS: &[Flag] = &[
    flag("-###", Alone, DryRun),
    flag("--CLASSPATH", Separate(1), Operand),
    flag("--analyze", Alone, Stop(Phase::Front)),
    flag("--analyzer-output", Separate(1), Operand),
    flag("--assemble", Alone, Stop(Phase::Assemble)),
    flag("--assert", Separate(1), Operand),
    flag("--autocomplete=", Joined, Query),
    flag("--bootclasspath", Separate(1), Operand),
    flag("--classpath", Separate(1), Operand),
    flag("--compile", Alone, Stop(Phase::Compile)),
    flag("--config", Separate(1), Operand),
    flag("--cuda-compile-host-device", Alone, Side(OffloadSide::Both)),
    flag("--cuda-device-only", Alone, Side(OffloadSide::Device)),
    flag("--cuda-gpu-arch=", Joined, Arch),
    flag("--cuda-host-only", Alone, Side(OffloadSide::Host)),
    flag("--define-macro", Separate(1), Operand),
    flag("--dependencies", Alone, Stop(Phase::Preprocess)),
    flag("--driver-mode=", Joined, DriverMode),
    flag("--dyld-prefix", Separate(1), Operand),
    flag("--emit-static-lib", Alone, StaticLibrary),
    flag("--encoding", Separate(1), Operand),
    flag("--end-no-unused-arguments", Alone, NoUnused(false)),
    flag("--extdirs", Separate(1), Operand),
    flag("--for-linker", Separate(1), Operand),
    flag("--force-link", Separate(1), Operand),
    flag("--gpu-bundle-output", Alone, Bundle(true)),
    flag("--help", Alone, Query),
    flag("--help-hidden", Alone, Query),
    flag("--hip-link", Alone, HipLink),
    flag("--hipstdpar", Alone, StandardParallel),
    flag("--imacros", Separate(1), Operand),
    flag("--include", Separate(1), Operand),
    flag("--include-directory", Separate(1), Operand),
    flag("--include-directory-after", Separate(1), Operand),
    flag("--include-prefix", Separate(1), Operand),
    flag("--include-with-prefix", Separate(1), Operand),
    flag("--include-with-prefix-after", Separate(1), Operand),
    flag("--include-with-prefix-before", Separate(1), Operand),
    flag("--language", Separate(1), Language),
    flag("--language=", Joined, Language),
    flag("--library-directory", Separate(1), LibraryDirectory),
    flag("--library-directory=", Joined, LibraryDirectory),
    flag("--mhwdiv", Separate(1), Operand),
    flag("--no-cuda-gpu-arch=", Joined, NoArch),
    flag("--no-gpu-bundle-output", Alone, Bundle(false)),
    flag("--no-offload-arch=", Joined, NoArch),
    flag("--no-offload-new-driver", Alone, NewDriver(false)),
    flag("--offload-arch=", Joined, Arch),
    flag("--offload-device-only", Alone, Side(OffloadSide::Device)),
    flag("--offload-host-device", Alone, Side(OffloadSide::Both)),
    flag("--offload-host-only", Alone, Side(OffloadSide::Host)),
    flag("--offload-link", Alone, OffloadLink),
    flag("--offload-new-driver", Alone, NewDriver(true)),
    flag("--offload-targets=", Joined, OpenMpTargets),
    flag("--output", Separate(1), Output),
    flag("--output-class-directory", Separate(1), Operand),
    flag("--output=", Joined, Output),
    flag("--param", Separate(1), Operand),
    flag("--precompile", Alone, Stop(Phase::Front)),
    flag("--prefix", Separate(1), Operand),
    flag("--preprocess", Alone, Stop(Phase::Preprocess)),
    flag("--print-", Joined, Query),
    flag("--print-file-name", Either, Query),
    flag("--print-prog-name", Either, Query),
    flag("--print-rocm-search-dirs", Alone, Operand), // prints additionally; the build continues
    flag("--resource", Separate(1), Operand),
    flag("--rtlib", Separate(1), Operand),
    flag("--serialize-diagnostics", Separate(1), Operand),
    flag("--specs", Separate(1), Operand),
    flag("--start-no-unused-arguments", Alone, NoUnused(true)),
    flag("--std", Separate(1), Operand),
    flag("--sysroot", Separate(1), Operand),
    flag("--target=", Joined, Target),
    flag("--undefine-macro", Separate(1), Operand),
    flag("--user-dependencies", Alone, Stop(Phase::Preprocess)),
    flag("--version", Alone, Query),
    flag("--vfsoverlay", Separate(1), Operand),
    flag("-A", Either, Operand),
    flag("-B", Either, Operand),
    flag("-D", Either, Operand),
    flag("-E", Alone, Stop(Phase::Preprocess)),
    flag("-F", Either, Operand),
    flag("-G", Either, Operand),
    flag("-I", Either, Operand),
    flag("-L", Either, LibraryDirectory),
    flag("-M", Alone, Stop(Phase::Preprocess)),
    flag("-MF", Either, Operand),
    flag("-MJ", Either, Operand),
    flag("-MM", Alone, Stop(Phase::Preprocess)),
    flag("-MQ", Either, Operand),
    flag("-MT", Either, Operand),
    flag("-S", Alone, Stop(Phase::Assemble)),
    flag("-T", Either, Operand),
    flag("-U", Either, Operand),
    flag("-V", Either, Operand),
    flag("-Xanalyzer", Separate(1), Operand),
    flag("-Xarch_", JoinedThenSeparate, For(Addressee::Named)),
    flag("-Xarch_device", Separate(1), For(Addressee::Device)),
    flag("-Xarch_host", Separate(1), For(Addressee::Host)),
    flag("-Xassembler", Separate(1), Operand),
    flag("-Xclang", Separate(1), Operand),
    flag("-Xclangas", Separate(1), Operand),
    flag("-Xcuda-fatbinary", Separate(1), Operand),
    flag("-Xcuda-ptxas", Separate(1), Operand),
    flag("-Xlinker", Separate(1), Operand),
    flag("-Xoffload-compiler", JoinedThenSeparate, Operand),
    flag("-Xoffload-linker", JoinedThenSeparate, Channel),
    flag("-Xopenmp-target", Separate(1), Operand),
    flag("-Xopenmp-target=", JoinedThenSeparate, Operand),
    flag("-Xpreprocessor", Separate(1), Operand),
    flag("-allowable_client", Separate(1), Operand),
    flag("-arch", Separate(1), Operand),
    flag("-arch_only", Separate(1), Operand),
    flag("-b", Either, Operand),
    flag("-bundle_loader", Separate(1), Operand),
    flag("-c", Alone, Stop(Phase::Compile)),
    flag("-cc1", Alone, Query),
    flag("-cc1as", Alone, Query),
    flag("-cc1gen-reproducer", Alone, Query),
    flag("-ccc-gcc-name", Separate(1), Operand),
    flag("-ccc-install-dir", Separate(1), Operand),
    flag("-client_name", Separate(1), Operand),
    flag("-compatibility_version", Separate(1), Operand),
    flag("-current_version", Separate(1), Operand),
    flag("-cxx-isystem", Either, Operand),
    flag("-darwin-target-variant", Separate(1), Operand),
    flag("-darwin-target-variant-triple", Separate(1), Operand),
    flag("-dependency-dot", Separate(1), Operand),
    flag("-dependency-file", Separate(1), Operand),
    flag("-dsym-dir", Separate(1), Operand),
    flag("-dumpdir", Separate(1), Operand),
    flag("-dumpmachine", Alone, Query),
    flag("-dumpversion", Alone, Query),
    flag("-dylib_file", Separate(1), Operand),
    flag("-dylinker_install_name", Separate(1), Operand),
    flag("-e", Separate(1), Operand),
    flag("-emit-ast", Alone, Stop(Phase::Front)),
    flag("-emit-interface-stubs", Alone, Stop(Phase::Front)),
    flag("-emit-llvm", Alone, EmitLlvm),
    flag("-exported_symbols_list", Separate(1), Operand),
    flag("-fcoverage-mapping", Alone, Counters(Coverage, true)),
    flag("-fcs-profile-generate", Alone, Counters(ContextSensitive, true)),
    flag("-fcs-profile-generate=", Joined, Counters(ContextSensitive, true)),
    flag("-fcuda-rdc", Alone, Rdc(true)),
    flag("-fdebug-compilation-dir", Separate(1), Operand),
    flag("-fexperimental-openacc-macro-override", Separate(1), Operand),
    flag("-fgpu-rdc", Alone, Rdc(true)),
    flag("-fhip-emit-relocatable", Alone, Relocatable),
    flag("-filelist", Separate(1), Operand),
    flag("-fmodule-implementation-of", Separate(1), Operand),
    flag("-fmodules-user-build-path", Separate(1), Operand),
    flag("-fnew-alignment", Separate(1), Operand),
    flag("-fno-coverage-mapping", Alone, Counters(Coverage, false)),
    flag("-fno-cuda-rdc", Alone, Rdc(false)),
    flag("-fno-gpu-rdc", Alone, Rdc(false)),
    flag("-fno-offload-lto", Alone, DeviceLto(false)),
    flag("-fno-openmp", Alone, OpenMp(false)),
    flag("-fno-profile-generate", Alone, Counters(Ir, false)),
    flag("-fno-profile-instr-generate", Alone, Counters(Frontend, false)),
    flag("-foffload-lto", Alone, DeviceLto(true)),
    flag("-foffload-lto=", Joined, DeviceLto(true)),
    flag("-fopenmp", Alone, OpenMp(true)),
    flag("-fopenmp-targets=", Joined, OpenMpTargets),
    flag("-fopenmp=", Joined, OpenMp(true)),
    flag("-fprofile-generate", Alone, Counters(Ir, true)),
    flag("-fprofile-generate=", Joined, Counters(Ir, true)),
    flag("-fprofile-instr-generate", Alone, Counters(Frontend, true)),
    flag("-fprofile-instr-generate=", Joined, Counters(Frontend, true)),
    flag("-framework", Separate(1), Operand),
    flag("-fsyntax-only", Alone, Stop(Phase::Front)),
    flag("-ftrapv-handler", Separate(1), Operand),
    flag("-gen-cdb-fragment-path", Separate(1), Operand),
    flag("-help", Alone, Query),
    flag("-hlsl-entry", Separate(1), Operand),
    flag("-iapinotes-modules", Separate(1), Operand),
    flag("-idirafter", Either, Operand),
    flag("-iframework", Either, Operand),
    flag("-iframeworkwithsysroot", Either, Operand),
    flag("-imacros", Either, Operand),
    flag("-image_base", Separate(1), Operand),
    flag("-imultilib", Separate(1), Operand),
    flag("-include", Either, Operand),
    flag("-include-pch", Separate(1), Operand),
    flag("-init", Separate(1), Operand),
    flag("-install_name", Separate(1), Operand),
    flag("-iprefix", Either, Operand),
    flag("-iquote", Either, Operand),
    flag("-isysroot", Either, Operand),
    flag("-isystem", Either, Operand),
    flag("-isystem-after", Either, Operand),
    flag("-ivfsoverlay", Either, Operand),
    flag("-iwithprefix", Either, Operand),
    flag("-iwithprefixbefore", Either, Operand),
    flag("-iwithsysroot", Either, Operand),
    flag("-l", Either, Library),
    flag("-lazy_framework", Separate(1), Operand),
    flag("-lazy_library", Separate(1), Operand),
    flag("-meabi", Separate(1), Operand),
    flag("-mllvm", Separate(1), Operand),
    flag("-mmlir", Separate(1), Operand),
    flag("-module-dependency-dir", Separate(1), Operand),
    flag("-module-file-info", Alone, Stop(Phase::Front)),
    flag("-mthread-model", Separate(1), Operand),
    flag("-multiply_defined", Separate(1), Operand),
    flag("-multiply_defined_unused", Separate(1), Operand),
    flag("-noprofilelib", Alone, NoProfileLibrary),
    flag("-o", Either, Output),
    flag("-pagezero_size", Separate(1), Operand),
    flag("-print-", Joined, Query),
    flag("-print-ivar-layout", Alone, Operand),
    flag("-print-rocm-search-dirs", Alone, Operand),
    flag("-r", Alone, Partial),
    flag("-read_only_relocs", Separate(1), Operand),
    flag("-resource-dir", Separate(1), ResourceDirectory),
    flag("-resource-dir=", Joined, ResourceDirectory),
    flag("-rewrite-objc", Alone, Stop(Phase::Front)),
    flag("-rpath", Separate(1), Operand),
    flag("-sectalign", Separate(3), Operand),
    flag("-sectcreate", Separate(3), Operand),
    flag("-sectobjectsymbols", Separate(2), Operand),
    flag("-sectorder", Separate(3), Operand),
    flag("-seg_addr_table", Separate(1), Operand),
    flag("-seg_addr_table_filename", Separate(1), Operand),
    flag("-segaddr", Separate(2), Operand),
    flag("-segcreate", Separate(3), Operand),
    flag("-segprot", Separate(3), Operand),
    flag("-segs_read_only_addr", Separate(1), Operand),
    flag("-segs_read_write_addr", Separate(1), Operand),
    flag("-serialize-diagnostics", Separate(1), Operand),
    flag("-specs", Separate(1), Operand),
    flag("-stdlib++-isystem", Either, Operand),
    flag("-sub_library", Separate(1), Operand),
    flag("-sub_umbrella", Separate(1), Operand),
    flag("-target", Separate(1), Target),
    flag("-u", Either, Operand),
    flag("-umbrella", Separate(1), Operand),
    flag("-undefined", Separate(1), Operand),
    flag("-unexported_symbols_list", Separate(1), Operand),
    flag("-validator-version", Separate(1), Operand),
    flag("-verify-pch", Alone, Stop(Phase::Front)),
    flag("-vfsoverlay", Separate(1), Operand),
    flag("-weak_framework", Separate(1), Operand),
    flag("-weak_library", Separate(1), Operand),
    flag("-weak_reference_mismatches", Separate(1), Operand),
    flag("-working-directory", Separate(1), WorkingDirectory),
    flag("-working-directory=", Joined, WorkingDirectory),
    flag("-x", Either, Language),
    flag("-z", Separate(1), Operand),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_unique() {
        assert!(FLAGS.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(FLAGS.iter().all(|flag| flag.name.len() >= 2 && flag.name.starts_with('-')));
    }

    #[test]
    fn words_find_the_longest_row() {
        for (word, name, joined, values) in [
            ("-o", "-o", "", 1),
            ("-ofile", "-o", "file", 0),
            ("-xhip", "-x", "hip", 0),
            ("-include-pch", "-include-pch", "", 1),
            ("-includefoo.h", "-include", "foo.h", 0),
            ("-Xarch_gfx1030", "-Xarch_", "gfx1030", 1),
            ("-Xoffload-linker-amdgcn-amd-amdhsa", "-Xoffload-linker", "-amdgcn-amd-amdhsa", 1),
            ("--offload-arch=gfx90a,gfx942", "--offload-arch=", "gfx90a,gfx942", 0),
            ("-sectcreate", "-sectcreate", "", 3),
            ("-print-targets", "-print-", "targets", 0),
            ("-dumpversion", "-dumpversion", "", 0),
            ("-dumpdir", "-dumpdir", "", 1),
            ("-M", "-M", "", 0),
            ("-MF", "-MF", "", 1),
        ] {
            let found = find(word.as_bytes()).unwrap_or_else(|| panic!("{word} is not found"));
            assert_eq!((found.flag.name, found.joined, found.values), (name, joined.as_bytes(), values), "{word}");
        }
    }

    #[test]
    fn other_words_are_not_understood() {
        for word in ["-", "-MD", "-cl-std=CL2.0", "-fgpu-rdcx", "--", "-g", "-sectcreated", "-rdynamic", "-shared"] {
            assert_eq!(find(word.as_bytes()), None, "{word}");
        }
    }
}
