//! The table of diagnostic codes: id, exit code, summary, advice.
//!
//! `hotswap explain HS0201` prints a row; the documentation lists the table. Exit codes stay in
//! 1..=125: clang reports 126, 127 and signals of its linker as crashes.

/// One kind of diagnostic.
#[derive(Debug, PartialEq, Eq)]
pub struct DiagnosticCode {
    /// Stable name, `HS` and four digits; the first two digits are the area.
    pub id: &'static str,
    /// Exit code of the process that ends because of it.
    pub exit: u8,
    /// Its meaning, one sentence without a final stop.
    pub summary: &'static str,
    /// The advice to the user, one sentence without a final stop.
    pub advice: &'static str,
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $id:literal, $exit:literal, $summary:literal, $advice:literal;)*) => {
        $($(#[doc = $doc])* #[doc = $summary] pub const $name: &DiagnosticCode = &DiagnosticCode { id: $id, exit: $exit, summary: $summary, advice: $advice };)*
        /// Every code, in the order of the ids.
        pub const CODES: &[&DiagnosticCode] = &[$($name),*];
    };
}

#[rustfmt::skip]
codes! {
    // 00: the command line and the process itself (exit 2; 70 for a defect of ours)
    USAGE = "HS0001", 2, "the command line cannot be understood", "see --help";
    INTERNAL = "HS0002", 70, "HotSwap itself failed", "report it with the command that HOTSWAP_VERBOSE=1 prints";
    CHILD_FAILED = "HS0003", 1, "a tool that HotSwap ran has failed", "see its own message above; HotSwap changed nothing";
    // 01: the environment (exit 10)
    NO_CLANG = "HS0101", 10, "no usable clang was found", "set HOTSWAP_CLANG to the real clang++, or install clang 22 or later with HIP support";
    NO_TOOL = "HS0102", 10, "a tool that the device link needs was not found", "install lld and clang-tools of the same version as clang, or set HOTSWAP_LLVM_BIN to their directory";
    RECURSION = "HS0103", 10, "HotSwap found itself where the real tool should be", "set HOTSWAP_CLANG to the real clang++, not to a wrapper or a link to one";
    BAD_CONFIG = "HS0104", 10, "a configuration value cannot be used", "correct the named file or environment variable";
    NO_INSTALL = "HS0105", 10, "a part of HotSwap's own installation is missing", "install HotSwap again: bin, libexec/hotswap and lib/hotswap belong together";
    TOOLCHAIN = "HS0107", 10, "HIP programs cannot be built through HotSwap here", "install the packages that the report of `hotswap doctor` names, or set HOTSWAP_CLANG and ROCM_PATH to another ROCm";
    NOT_STARTED = "HS0108", 10, "a program could not be started", "check its path and that it may be executed";
    UNKNOWN_VARIABLE = "HS0109", 10, "an environment variable is not known to HotSwap and has no effect", "see `hotswap-clang --hotswap-help` for the names that have one";
    NO_PROC = "HS0110", 10, "/proc is not mounted, and it is needed here", "mount it (mount -t proc proc /proc): programs find their installation through it, and pass each other files";
    NO_CARD = "HS0111", 10, "no AMD GPU of this machine can be asked", "install HIP and the kernel driver (amdgpu), be a member of the group that may use /dev/kfd, and unset what the message names";
    // 02: the plan (exit 11)
    PLAN_SYNTAX = "HS0201", 11, "the plan cannot be understood", "write SOURCE=>TARGET[,TARGET…], for example gfx1030=>gfx1031,gfx1032";
    UNKNOWN_TARGET = "HS0202", 11, "a target is not known to HotSwap", "see `hotswap targets` for the known names";
    PAIR_REFUSED = "HS0203", 11, "a pair is not allowed", "choose a source in the same group (`hotswap targets`), or compile for the target with --offload-arch";
    PLAN_MISSING = "HS0204", 11, "the plan that the build names was not found", "run the configure step again, or set HOTSWAP_PLAN_DIR to the directory that holds it";
    PLAN_CHANGED = "HS0205", 11, "the plan or HotSwap changed under the build", "run the configure step again so that the build system sees the new plan";
    PLAN_CONFLICT = "HS0206", 11, "the command names more than one plan", "give one target one plan";
    UNKNOWN_FAMILY = "HS0207", 11, "a patch family is not known to HotSwap", "see `hotswap families` for the known names";
    OTHER_TARGET = "HS0208", 11, "the code is for another target than the one that is named", "name the target that the code was compiled for";
    PLAN_NOT_KEPT = "HS0209", 11, "a plan that was linked into the program was not carried out", "link it through hotswap-clang++ with device code that the plan is for, or link it without the plan";
    PLAN_OF_OBJECTS = "HS0210", 11, "objects were compiled under a plan that their link cannot carry out", "link them through hotswap-clang++ with the same plan, or compile them again without one";
    // 03: input that cannot be read (exit 12)
    NOT_CODE_OBJECT = "HS0301", 12, "the file is not an AMDGPU code object", "check the command that made it";
    MALFORMED = "HS0302", 12, "the input is damaged", "build it again; if another tool reads it, report it";
    UNKNOWN_FORMAT = "HS0303", 12, "the format or its version is not known", "update HotSwap, or convert the file with the tool that made it";
    NOT_FOUND = "HS0304", 12, "no device code was found", "check that the file was built for an AMD GPU";
    NO_PART = "HS0305", 12, "the code object has no such section or symbol", "choose one of those that are there";
    OPAQUE = "HS0306", 12, "some bytes are no instructions", "check that the target is the right one; data between functions is no harm";
    NO_ENTRY = "HS0307", 12, "there is no such entry", "see `hotswap list` for the entries that are there";
    TAKEN = "HS0308", 12, "the entry is there already", "use `hotswap replace`, or remove it first";
    NO_PROFILE = "HS0309", 12, "no profile or coverage map was found", "build with counters through hotswap-clang, and run the program first";
    STALE_TABLE = "HS0310", 12, "the table of device functions in the file is not used; the code was analysed instead", "write it again with `hotswap symbols --write`";
    UNKNOWN_MACHINE = "HS0311", 12, "the processor of a code object is not known", "update HotSwap; name the code objects of other processors by --target";
    // 04: refusals (exit 13)
    NO_ROUTE = "HS0401", 13, "a requested target cannot be made from what is there", "add the source to --offload-arch, change the plan, or set the policy to warn or keep";
    NO_PLACE = "HS0402", 13, "the output has no place for another target", "let clang write a bundle (drop --no-gpu-bundle-output), or drop the plan for this command";
    RDC_NOT_LINKED = "HS0403", 13, "objects with relocatable device code are linked without a device link", "link with --hip-link and -fgpu-rdc";
    MIXED_DRIVERS = "HS0404", 13, "objects of the old and of the new offload driver meet in one link", "compile all of them with the same clang and the same --[no-]offload-new-driver";
    BUNDLE_FULL = "HS0405", 13, "the bundle has too many entries for the HIP runtime, which reads 4096 bytes of table", "request fewer targets or compress the bundle (--offload-compress)";
    UNSUPPORTED_OUTPUT = "HS0406", 13, "the output is no regular file", "give the device link a regular file as its output";
    NO_INSTRUCTIONS = "HS0407", 13, "the instructions of a target are not known to HotSwap", "choose a target from gfx900 to gfx1251";
    NOT_SAFE = "HS0408", 13, "the code is not safe on the target", "compile for the target with --offload-arch (in builds --hotswap-policy=compile does so where it is needed), or choose another source";
    NO_LAYOUT = "HS0409", 13, "the code cannot be laid out again", "link the code object with -Wl,--emit-relocs from current objects, or report it with the file";
    COUNTERS_NOT_LINKED = "HS0410", 13, "device code with counters cannot be linked this way", "change the command as the message says, or drop the counters";
    COUNTERS_COUNT_NOTHING = "HS0411", 13, "device code gets no counters at this level of optimisation", "optimise more, as the message says";
    OPENMP_OFFLOAD = "HS0412", 13, "HotSwap neither makes nor changes device images of OpenMP offload", "compile for each GPU by --offload-arch, or drop the plan";
    TEXT_DIFFERS = "HS0413", 13, "the source's text depends on the name of the GPU", "compile for the target (--hotswap-names=compile, or --offload-arch), or derive it all the same with --hotswap-names=derive";
    CHOSEN_BY_NAME = "HS0414", 13, "the library's host part chooses kernels by the GPU's name, and would choose others than the code was compiled for", "build the library for the target through HotSwap or with --offload-arch, or allow it (`hotswap retarget --allow names`) if you know that both sides agree";
    COUNTERS_NOT_WRITTEN = "HS0415", 13, "objects have counters that no runtime writes", "link with the flag that they were compiled with";
    PROFILE_DOES_NOT_FIT = "HS0416", 13, "a profile fits little of the device code", "use it with the sources and options that it was made with";
    TOO_LARGE = "HS0417", 13, "the compressed content is larger than is allowed", "if the file is what it should be, allow more with --max-size";
    LINT = "HS0418", 13, "the code breaks a rule of its target", "compile it for the target again; if a compiler or HotSwap made it as it is, report it with the file";
    NOT_PROVEN = "HS0419", 13, "the rewritten code is not proven to do what the original does", "do not use the file, and report it with the original";
    BELOW_THRESHOLD = "HS0420", 13, "the coverage is below the threshold", "test what the report shows as not executed, or lower --fail-under";
    NOT_SERVED = "HS0421", 13, "a library is not served", "serve it with what it needs, or leave it out of --root";
    STALE = "HS0422", 13, "the served files are no longer what their libraries need", "run `hotswap serve` with the same arguments again";
    NOT_OURS = "HS0423", 13, "a file in the destination is not what HotSwap wrote there", "move it away, or choose another --dest";
    TOO_FEW_REGISTERS = "HS0424", 13, "a kernel calls functions that need more registers than it is launched with", "link the device code by LTO (without -fno-offload-lto), so that the compiler sees kernel and functions together";
    NOT_RAISED = "HS0425", 13, "the registers of a kernel cannot be raised to what the functions that it calls need", "compile the function with fewer registers (`__launch_bounds__`, -mllvm -amdgpu-num-vgpr), or link the device code by LTO";
    CONVENTION_MIX = "HS0426", 13, "device code of different calling conventions meets in one link", "compile all of it with one compiler and the same options";
    UNKNOWN_CALLEES = "HS0427", 13, "a kernel calls functions that are not known", "check the numbers of that kernel yourself: calls through pointers, and functions of other code objects, have no budget";
    HOST_UNCHECKED = "HS0428", 13, "the host part of the code is in other files", "serve archives and libraries together by `hotswap serve`, or allow it by --allow names";
    NOT_BOUND = "HS0429", 13, "device functions of several code objects do not fit each other", "export each imported function by one library (--hotswap-device-exports), built for the same processor";
    UNKNOWN_TO_HIP = "HS0430", 13, "the HIP runtime does not know the GPU", "use a HIP that knows it, or start kernels directly (`hotswap run --kernel`)";
    KERNEL_FAULT = "HS0431", 13, "a kernel did not run to its end", "correct the kernel as the message says; report an unknown instruction with the code object";
    NOT_EXPORTED = "HS0432", 13, "a device function cannot be exported or imported by this link", "name functions of relocatable device code (-fgpu-rdc) as `hotswap symbols` shows them; imports need objects with machine code (-fno-offload-lto)";
    UNKNOWN_ORDER = "HS0433", 13, "results of a kernel depend on an order of additions that is not known", "compare with another order (`hotswap run --matrix exact`), or end such kernels (`--matrix refuse`)";
    DIFFERS = "HS0434", 13, "the two code objects do not do the same", "do not use the one in the place of the other; report it with both files if HotSwap made one of them";
    NOT_CHECKED = "HS0435", 13, "the code objects are not compared completely", "what is named has not been compared: check it by other means, or report an unknown instruction with the code object";
    OTHER_SOURCE = "HS0436", 13, "a file is served by code of another GPU than the rest of the tree", "if all of it is to be made from that GPU's code, name it by --from";
    NOT_TAKEN = "HS0437", 13, "an output that was made apart is not the one that the tree needs, and was made anew", "run the actions of `hotswap serve --list-actions` again, with this build of HotSwap and the libraries as they are";
    UNBOUNDED_SCRATCH = "HS0440", 13, "the scratch that a kernel needs has no known bound", "write enough by --hotswap-device-link=fix --hotswap-device-link-stack=BYTES, or let the program ask for it (fix, and hipDeviceSetLimit(hipLimitStackSize, BYTES)), which a recursion needs after LTO, too; frames of unknown size are known to LTO (without -fno-offload-lto), and recorded by clang 23 and later with -mllvm -amdgpu-enable-object-linking";
    NO_CODE_FOR_GPU = "HS0445", 13, "code for the GPU that a program is started on is missing", "add it by `hotswap retarget FILE --to GPU`, or compile the file for the GPU (--offload-arch)";
    LACKS_GPU = "HS0446", 13, "a fat binary lacks code for a required GPU", "build it for the GPU (--offload-arch, or a plan that the compiler gets), or add the code by `hotswap retarget FILE --to GPU`";
    NOT_TRIED = "HS0448", 13, "a served library does not compute a known answer on the emulated GPU", "serve the tree again with the same arguments (`hotswap serve --check` says what changed); report it with the output if it fails still";
    LOAD_LOST = "HS0450", 13, "a GPU would lose code that it loads from the file", "keep the entry that is named, or drop the GPU by name; `hotswap uses FILE --gpu GPU` shows what it loads";
    HOSTS_DIFFER = "HS0452", 13, "the host parts of the files are not the same", "build the files from the same source, with the same compiler and options but --offload-arch";
    UNIT_LACKS_GPU = "HS0453", 13, "a unit of a link lacks code for a GPU that other units have code of their own for", "compile the unit with --offload-arch for that GPU, too";
    TEXT_UNKNOWN = "HS0454", 13, "it is not known whether the source's text depends on the name of the GPU", "compile for the target (--hotswap-names=compile, or --offload-arch), or derive it all the same with --hotswap-names=derive";
    NOT_JUDGED = "HS0455", 16, "a rule that is required cannot be judged for the target", "leave it out of --require, and judge it otherwise: compile the code with the newest compiler for the target, or run it";
    PROFILE_UNMATCHED = "HS0456", 13, "a profile is not of the code that it is reported with", "name the program or library that it is of, or run the program again after a build";
    PROFILE_STALE = "HS0457", 13, "functions have changed since their profile was written", "build and run again with the same sources";
    TOO_FAR = "HS0458", 13, "the fat binary may be too large for the program that it is linked into", "compress it: --offload-compress";
    NOT_CONFIRMED = "HS0459", 13, "the GPU does not confirm all that HotSwap claims", "paste the report into an issue (docs/evidence/confirmed.md says how): it has what is needed and no personal data";
    UNCHANGED = "HS0470", 17, "nothing was to be changed", "say --allow-unchanged where that is as good as a change (exit code 0)";
    // 05: files (exit 14)
    CANNOT_READ = "HS0501", 14, "a file cannot be read", "check the path and its permissions";
    CANNOT_WRITE = "HS0502", 14, "a file cannot be written; the old content is untouched", "check space and permissions";
    CANNOT_PRINT = "HS0503", 14, "the standard output cannot be written; files that the command writes are written", "check where the output goes";
    CACHE_REFUSED = "HS0504", 14, "the cache directory is not used, because other users could have written to it", "let only its user write to it and to the directories above it (chmod go-w), or set XDG_CACHE_HOME to such a directory";
    NO_TEMPORARY = "HS0505", 14, "the directory for temporary files cannot be used", "set TMPDIR to a directory that exists, that you may write to, and that has room";
    OTHER_NAMES = "HS0506", 14, "the file has other names (hard links), which keep the old content", "--in-place changes the content of all names; or write to another file";
    UNFINISHED_WRITE = "HS0507", 14, "a write in place was not completed, and the file may have parts of both contents", "copy the complete content, which is beside it, over it (cp) and remove it; or remove it, where the file was built again since";
    // 06: verification of our own output (exit 15)
    VERIFY_FAILED = "HS0601", 15, "what HotSwap wrote does not read back as planned; nothing was replaced", "report it with the input file";
}

/// The row with that id.
pub fn find_code(id: &str) -> Option<&'static DiagnosticCode> {
    CODES.iter().copied().find(|code| code.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_sorted_and_unique_and_exits_are_in_range() {
        assert!(CODES.windows(2).all(|pair| pair[0].id < pair[1].id));
        assert!(CODES.iter().all(|code| (1..=125).contains(&code.exit)));
        assert_eq!(find_code("HS0201"), Some(PLAN_SYNTAX));
        assert_eq!(find_code("HS9999"), None);
    }
}
