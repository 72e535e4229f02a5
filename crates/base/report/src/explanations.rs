//! A cause and an example for each diagnostic code, for `hotswap explain` and the page of errors. The mend is the code's advice.
//!
//! Invariant: one row for each code, in the order of the codes.

use crate::DiagnosticCode;
use crate::codes;

/// The explanation of a code.
#[derive(Debug)]
pub struct CodeExplanation {
    pub code: &'static DiagnosticCode,
    /// The state that leads to the message: full sentences.
    pub cause: &'static str,
    /// A command that ends with it, with a remark in parentheses.
    pub example: &'static str,
}

const fn explanation_row(code: &'static DiagnosticCode, cause: &'static str, example: &'static str) -> CodeExplanation {
    CodeExplanation { code, cause, example }
}

#[rustfmt::skip]
pub const EXPLANATIONS: &[CodeExplanation] = &[
    explanation_row(codes::USAGE, "An option, an argument or a combination of them does not exist in this command, or a value does not have the form that the option takes.",
        "hotswap run --gpu 6700xt -- ./app     (`6700xt` is a product: write gfx1031)"),
    explanation_row(codes::INTERNAL, "A check inside HotSwap failed, or it reached a state that its code excludes. The input is not at fault, and no file was replaced.",
        "hotswap retarget app --to gfx1031 -o new     (a panic in a thread of the command)"),
    explanation_row(codes::CHILD_FAILED, "A program that HotSwap starts for its own work (llvm-profdata, llvm-cov, dot, git) ended with an error.",
        "hotswap profile report app --profile all.profdata --diff no-such-branch     (git knows no such branch)"),
    explanation_row(codes::NO_CLANG, "Neither HOTSWAP_CLANG, the installation's default, ROCM_PATH, /opt/rocm, PATH nor /usr/lib/llvm-* has a clang, or the one that is named is not clang: it does not define __clang_major__.",
        "HOTSWAP_CLANG=/usr/bin/g++ HOTSWAP_RETARGET='gfx1030=>gfx1031' hotswap-clang++ -x hip --offload-arch=gfx1030 app.hip"),
    explanation_row(codes::NO_TOOL, "The directory of the chosen clang has no lld, clang-offload-bundler or clang-linker-wrapper, or a profile command finds no llvm-profdata and llvm-cov of a version that reads the profile.",
        "HOTSWAP_LLVM_BIN=/opt/empty HOTSWAP_RETARGET='gfx1030=>gfx1031' hotswap-clang++ --offload-arch=gfx1030 app.hip     (or clang-22 is installed, and lld-22 is not)"),
    explanation_row(codes::RECURSION, "The variable or setting that names the real compiler names HotSwap's own wrapper, directly or through links, so that it would start itself again.",
        "HOTSWAP_CLANG=/usr/local/bin/hotswap-clang++ hotswap-clang++ app.hip"),
    explanation_row(codes::BAD_CONFIG, "An environment variable or a line of HotSwap's configuration file has a value that the setting does not take.",
        "HOTSWAP_HERMETIC=yes hotswap-clang++ app.hip     (HOTSWAP_HERMETIC is neither 0 nor 1)"),
    explanation_row(codes::NO_INSTALL, "The program was copied out of its installation, or only a part of it was installed: it looks for the others by its own path.",
        "./hotswap run --gpu gfx1031 -- ./app     (only bin/hotswap was copied to this machine)"),
    explanation_row(codes::TOOLCHAIN, "`hotswap doctor` compiled and linked a small HIP program as a build would, and one of the steps failed.",
        "HOTSWAP_CLANG=/usr/bin/g++ hotswap doctor     (or clang 19 is installed; HotSwap needs 22)"),
    explanation_row(codes::NOT_STARTED, "The system refused to start a program: it does not exist, may not be executed, or is for another machine.",
        "hotswap run --gpu gfx1031 -- ./no-such-program"),
    explanation_row(codes::UNKNOWN_VARIABLE, "The name of a variable begins with HOTSWAP_, and no part of HotSwap reads it, so another variable was probably meant.",
        "HOTSWAP_RETRAGET='gfx1030=>gfx1031' hotswap-clang++ -x hip app.hip"),
    explanation_row(codes::NO_PROC, "A root directory without /proc, as some build services make it: the program cannot know where it is, so that it does not find the rest of its installation.",
        "chroot /srv/build hotswap run --gpu gfx1031 -- ./app     (/srv/build/proc is empty)"),
    explanation_row(codes::NO_CARD, "`hotswap confirm` needs a GPU with HIP: the library libamdhip64.so was not found, finds no GPU, or would state another GPU than there is.",
        "hotswap confirm     (on a machine without an AMD GPU)"),
    explanation_row(codes::PLAN_SYNTAX, "The text of a plan is not pairs of processor names with an arrow between them, or an option of it has an unknown value.",
        "hotswap plan gfx1030     (the arrow and the targets are missing)"),
    explanation_row(codes::UNKNOWN_TARGET, "No processor and no generic target of HotSwap's table has the name, a product's name belongs to several GPUs, or the GPU cannot be what the command needs (emulated, or served).",
        "hotswap compat gfx1030 gfx9999"),
    explanation_row(codes::PAIR_REFUSED, "Code for the source is not valid on the target, because instructions, encodings or resources differ; or the pair is experimental and that was not allowed.",
        "hotswap compat gfx1030 gfx900     (RDNA 2 and GCN have different instructions)"),
    explanation_row(codes::PLAN_MISSING, "A command refers to a plan by its hash, and no plan directory has a file of that hash: it was removed, or the command runs on another machine.",
        "hotswap manifest --plan 0123456789abcdef -o m.o"),
    explanation_row(codes::PLAN_CHANGED, "The file of the plan, or HotSwap itself, is another one than when the build was configured, so the outputs would not match what the build system recorded.",
        "ninja     (after HotSwap was upgraded, without running cmake again)"),
    explanation_row(codes::PLAN_CONFLICT, "A command has two plans (options, environment, a configuration file of clang) with different content.",
        "hotswap-clang++ -Xoffload-linker --hotswap-plan=0123456789abcdef -Xoffload-linker --hotswap-plan=fedcba9876543210 app.hip"),
    explanation_row(codes::UNKNOWN_FAMILY, "No patch family of this build has the name, or the family does nothing for the pairs of the plan.",
        "hotswap plan 'gfx1030=>gfx1031' --patches nothing_such"),
    explanation_row(codes::OTHER_TARGET, "The name of a file, an entry or an option states one processor, and the ELF header of the code another one.",
        "hotswap disasm --target gfx1030 kernel-for-gfx1100.hsaco"),
    explanation_row(codes::PLAN_NOT_KEPT, "The program has the manifest of a plan, and no fat binary in it has code for all targets of that plan: device code was linked past HotSwap.",
        "hotswap inspect app     (the manifest names a plan, which no fat binary's record has)"),
    explanation_row(codes::PLAN_OF_OBJECTS, "The objects of one link were compiled under plans that differ in more than their targets (policy, patches, permissions), so no single plan carries all of them out.",
        "hotswap-clang++ -fgpu-rdc --hip-link --offload-arch=gfx1030 warning.o plain.o -shared -o app.so     (warning.o was compiled with --hotswap-policy=warn, plain.o was not)"),
    explanation_row(codes::NOT_CODE_OBJECT, "The input is not an ELF file for AMD GPUs. A fat binary has to be unpacked first where a command takes single code objects.",
        "hotswap add app.hipfb gfx1031=notes.txt -o out.hipfb"),
    explanation_row(codes::MALFORMED, "Sizes, offsets or hashes in the file contradict each other: it is cut off, was changed by another tool, or its writer has a fault.",
        "hotswap list cut.hipfb     (the download ended early)"),
    explanation_row(codes::UNKNOWN_FORMAT, "The file begins as no container that HotSwap reads, or has a later version than it knows.",
        "hotswap verify new.bundle     (a compressed bundle of version 9)"),
    explanation_row(codes::NOT_FOUND, "The file can be read, and has no AMD GPU code: it was built for the host only, or the code is in other files.",
        "hotswap list /bin/true"),
    explanation_row(codes::NO_PART, "The code object has no kernel, function or section of the given name. Names of C++ kernels are mangled; `hotswap symbols` lists them.",
        "hotswap disasm app.hsaco --symbol missing"),
    explanation_row(codes::OPAQUE, "A part of a code section decodes to no instruction of the target: data, padding, or code for another processor.",
        "hotswap disasm --target gfx1030 kernel-for-gfx1100.hsaco"),
    explanation_row(codes::NO_ENTRY, "The container has no entry for the named target. Features are a part of the name: gfx90a:xnack+ is not gfx90a.",
        "hotswap remove app.hipfb gfx1032 -o out.hipfb"),
    explanation_row(codes::TAKEN, "The container has an entry for that target, and a second one would never be used.",
        "hotswap add two.hipfb gfx1031=new.hsaco -o out.hipfb"),
    explanation_row(codes::NO_PROFILE, "The program or library has no counters or no map of its source lines, so there is nothing to report; or no file of profiles is where the command looks.",
        "hotswap profile report app --profile all.profdata     (app was built without -fprofile-instr-generate -fcoverage-mapping)"),
    explanation_row(codes::STALE_TABLE, "The note with the table of functions was made of other code (its hash differs), by a later version, or is damaged. The result is right: it was analysed from the code.",
        "hotswap symbols app.hsaco     (the file was rewritten after `symbols --write`)"),
    explanation_row(codes::UNKNOWN_MACHINE, "The code object is for a processor that this HotSwap has no instructions of, such as gfx803 or a later one. Where the file has other code objects, these are read and the one is passed over with a warning.",
        "hotswap symbols gfx803.co"),
    explanation_row(codes::NO_ROUTE, "There is no code in the input from which code for the target can be made: no native, generic or related GPU's, or the related one's fails a check.",
        "hotswap retarget app --to gfx1100 -o new     (app has code for gfx1030 only)"),
    explanation_row(codes::NO_PLACE, "The file cannot grow where the code is: a linked Windows program, an image without room, or a format with 32-bit sizes.",
        "hotswap retarget program.exe --to gfx1031 -o new.exe"),
    explanation_row(codes::RDC_NOT_LINKED, "Objects were compiled with -fgpu-rdc, so their device code waits for a device link, and the link command does not ask for one.",
        "HOTSWAP_RETARGET='gfx1030=>gfx1031' hotswap-clang++ --hip-link --offload-arch=gfx1030 rdc.o -o linked     (rdc.o was compiled with -fgpu-rdc, which is missing here)"),
    explanation_row(codes::MIXED_DRIVERS, "The old and the new offload driver of clang store device code in different sections, and one link cannot use both.",
        "HOTSWAP_RETARGET='gfx1030=>gfx1031' hotswap-clang++ -fgpu-rdc --hip-link --offload-arch=gfx1030 old.o new.o -o mixed     (old.o was compiled with --no-offload-new-driver, new.o with --offload-new-driver)"),
    explanation_row(codes::BUNDLE_FULL, "The HIP runtime reads 4,096 bytes of an uncompressed bundle's table; entries after that do not exist for it.",
        "hotswap add app.hipfb $(printf 'hip-amdgcn-amd-amdhsa-x%d-gfx1030=app.hsaco ' $(seq 80)) -o out.hipfb"),
    explanation_row(codes::UNSUPPORTED_OUTPUT, "The output is a directory, a device or a pipe: HotSwap reads back what it wrote, and replaces files by a rename.",
        "hotswap retarget app --to gfx1031 -o /dev/null"),
    explanation_row(codes::NO_INSTRUCTIONS, "The command has to decode the code, and HotSwap has no instruction table for that generation (before GFX9, or after gfx1251).",
        "hotswap disasm polaris.hsaco     (gfx803)"),
    explanation_row(codes::NOT_SAFE, "The code was examined for the target and has something that is not valid there: too many registers, an instruction or a constant that only the source has. The message names the kernel and the place.",
        "hotswap retarget app --to gfx1102 -o new     (a kernel of gfx1100 needs 1,200 vector registers)"),
    explanation_row(codes::NO_LAYOUT, "Instructions have to be inserted, and the addresses in the code cannot all be followed: the file was linked without relocations and computes some of them.",
        "hotswap rewrite app.hsaco --to gfx1250-strict -o new.hsaco"),
    explanation_row(codes::COUNTERS_NOT_LINKED, "Counters in device code need a link that joins them, by LTO, and the command switches that off or has several objects that define the same names.",
        "hotswap-clang++ -fprofile-generate -ftemporal-profile -fno-offload-lto --offload-arch=gfx1030 app.hip -o counted"),
    explanation_row(codes::COUNTERS_COUNT_NOTHING, "The pass that inserts these counters does not run at the given level of optimisation.",
        "hotswap-clang++ -O0 -fcs-profile-generate --offload-arch=gfx1030 app.hip -lamdhip64"),
    explanation_row(codes::OPENMP_OFFLOAD, "Device images of OpenMP offload are chosen by another runtime than HIP's, by rules that HotSwap does not implement.",
        "hotswap retarget openmp-app --to gfx1031 -o new"),
    explanation_row(codes::TEXT_DIFFERS, "The preprocessor or the front end gives another program for the target than for the source (`__gfx1030__`, `__amdgcn_processor__`), so code of one is not the code of the other.",
        "HOTSWAP_NAMES=error HOTSWAP_RETARGET='gfx1030=>gfx1031' hotswap-clang++ --offload-arch=gfx1030 by-name.hip     (its kernel tests __gfx1030__)"),
    explanation_row(codes::CHOSEN_BY_NAME, "The library's host part has a table of GPU names (rocPRIM, hipCUB, rocRAND). On the target it would start kernels that the relabelled code does not have, or with other sizes, and the results would be wrong without an error.",
        "hotswap retarget /usr/lib/x86_64-linux-gnu/librocrand.so.1 --to gfx1031 -o new.so.1     (use `hotswap serve`, which shows the source's name)"),
    explanation_row(codes::COUNTERS_NOT_WRITTEN, "Objects were compiled with counters, and the link has no profile runtime, so the program runs and writes no profile.",
        "hotswap-clang++ counted.o -o uncounted -lamdhip64     (counted.o was compiled with -fprofile-generate)"),
    explanation_row(codes::PROFILE_DOES_NOT_FIT, "Fewer than half of the device functions match the profile by name and hash: sources, options or names changed since it was made.",
        "hotswap-clang++ -O3 -fprofile-use=old.profdata app.hip"),
    explanation_row(codes::TOO_LARGE, "A compressed part states, or expands to, more bytes than the limit that protects against damaged and hostile files.",
        "hotswap list unknown.hipfb     (its header claims 900 GB)"),
    explanation_row(codes::LINT, "The code object has an instruction, distance, wait, mode or register use that its processor does not permit.",
        "hotswap lint kernel.hsaco"),
    explanation_row(codes::NOT_PROVEN, "`verify --against` or a rewrite could not show for a place that new and original code do the same; often because a value is computed in a way that it does not follow.",
        "hotswap verify new.hsaco --against kernel-for-gfx1100.hsaco     (new.hsaco was made of another file)"),
    explanation_row(codes::BELOW_THRESHOLD, "The covered part of lines, functions or regions is smaller than the option requires.",
        "hotswap profile report app --profile all.profdata --fail-under 80"),
    explanation_row(codes::NOT_SERVED, "A file that the library needs for the GPU cannot be made, or nothing in the tree is for a GPU that can serve it. Other libraries of the tree are served.",
        "hotswap serve gfx1031 --root /opt/rocm/lib --dest out     (hipBLASLt has no code for gfx1030)"),
    explanation_row(codes::STALE, "An input changed since the tree was made (an upgrade of packages), a file of the tree was removed, or the last run was interrupted.",
        "hotswap serve --check --dest ~/rocm-gfx1031     (after apt upgrade)"),
    explanation_row(codes::NOT_OURS, "A file that HotSwap would write exists, and its content is not what an earlier run recorded. It is never overwritten or removed.",
        "hotswap serve gfx1031 --root /opt/rocm/lib --dest ~/libraries     (librocblas.so.5 is there already)"),
    explanation_row(codes::TOO_FEW_REGISTERS, "Kernel and function were compiled apart. The kernel is launched with its own numbers, and a function that it calls uses more registers or scratch.",
        "hotswap-clang++ --hip-link -fgpu-rdc -fno-offload-lto kernel.o function.o -o app"),
    explanation_row(codes::NOT_RAISED, "--hotswap-device-link=fix would have to raise the kernel's numbers above what its processor or its launch bounds permit.",
        "hotswap-clang++ --hip-link -fgpu-rdc --hotswap-device-link=fix kernel.o function.o -o app"),
    explanation_row(codes::CONVENTION_MIX, "Objects of one link pass arguments, registers or LDS by different rules: other compilers, other options, or LDS that two units both place at address 0.",
        "hotswap-clang++ --hip-link -fgpu-rdc from-clang-22.o from-clang-23.o -o app"),
    explanation_row(codes::UNKNOWN_CALLEES, "A kernel calls through a pointer, or a function of another code object, so what it needs cannot be added up.",
        "hotswap-clang++ --hip-link -fgpu-rdc --hotswap-device-link=check callbacks.o -o app"),
    explanation_row(codes::HOST_UNCHECKED, "A kernel archive has device code only. Whether its host library chooses kernels by the GPU's name cannot be seen in it.",
        "hotswap retarget blas_lib_gfx1030.kpack --to gfx1031 -o blas_lib_gfx1031.kpack"),
    explanation_row(codes::NOT_BOUND, "A code object imports device functions that none of the others exports, that two export, or that were built for another processor.",
        "hotswap bind app.hsaco new.hsaco     (app.hsaco is for gfx1030, new.hsaco for gfx1031)"),
    explanation_row(codes::UNKNOWN_TO_HIP, "The emulator knows the GPU, and the HIP runtime of this machine has no row for it, so it finds no device.",
        "hotswap run --gpu gfx1250 -- ./app     (HIP 7.2)"),
    explanation_row(codes::KERNEL_FAULT, "The emulator stopped a kernel: an access outside of allocated memory, an unknown instruction, a trap, or more instructions than --budget.",
        "hotswap run --gpu gfx1030 --kernel _Z3addPf --arg u64:64 app.hsaco     (64 is not an address of allocated memory)"),
    explanation_row(codes::NOT_EXPORTED, "The named device function is not in the linked code, is a kernel, or was inlined and removed before the link could export it.",
        "hotswap-clang++ --hip-link -fgpu-rdc --hotswap-device-exports=no_such_function library.o -o library"),
    explanation_row(codes::UNKNOWN_ORDER, "The kernel uses matrix instructions, and no public document says in which order the hardware adds. With these inputs the order changes the last bits.",
        "hotswap run --gpu gfx1100 --kernel gemm --arg in:a.bin --arg out:c.bin:4096 wmma.hsaco"),
    explanation_row(codes::DIFFERS, "Both code objects were executed with the same state, and memory or registers were different afterwards. The message has the first difference.",
        "hotswap check --before old.hsaco --after new.hsaco"),
    explanation_row(codes::NOT_CHECKED, "A part of the code was not executed or not compared: an unknown instruction, a path that no generated state takes, a kernel that only one file has.",
        "hotswap check --before one.hsaco --after other.hsaco --kernel unusual"),
    explanation_row(codes::OTHER_SOURCE, "Code of the tree's source fails a check for the target, and code of another GPU in the same library passes it, so that one was used. The result is right; the warning is for those who compare speed.",
        "hotswap serve gfx1103 --from gfx1100 --root /opt/rocm/lib --dest out     (helper kernels are made from gfx1102's)"),
    explanation_row(codes::NOT_TAKEN, "--made names a directory of outputs from other machines, and one of them is missing, or was made from other inputs or by another build.",
        "hotswap serve gfx1031 --root /opt/rocm/lib --dest out --made results"),
    explanation_row(codes::UNBOUNDED_SCRATCH, "A function that the kernel reaches is recursive, or has a frame whose size is not recorded.",
        "hotswap-clang++ --hip-link -fgpu-rdc -fno-offload-lto recursive.o -o app"),
    explanation_row(codes::NO_CODE_FOR_GPU, "The program, or a library that it loads, has code for other GPUs only. HIP may crash at the first kernel without a message.",
        "hotswap run --gpu gfx1031 -- ./app     (it has no code for gfx1031, only for gfx1030)"),
    explanation_row(codes::LACKS_GPU, "`verify --require` found a fat binary in the file that has nothing which the GPU executes: the build lost its plan, or an object was compiled without it.",
        "hotswap verify --require gfx1031 app"),
    explanation_row(codes::NOT_TRIED, "A library of the tree gave a wrong answer, returned an error, or ended its process; or no library of the tree can be tried. A missing file of the tree is the usual reason.",
        "hotswap serve --try --dest ~/rocm-gfx1031     (rocBLAS on gfx1031: rocblas_sgemm returned the error 6)"),
    explanation_row(codes::LOAD_LOST, "After the change the HIP runtime would find nothing for a GPU, or refuse the file, where it loads code now: entries of several GPUs can depend on one that is removed.",
        "hotswap remove app.hipfb gfx10-3-generic -o out.hipfb     (gfx1036 loads it)"),
    explanation_row(codes::HOSTS_DIFFER, "Files are merged only where they are builds of one source: their host parts, without the fat binaries, have the same sections, code, data and symbols, at whatever addresses.",
        "hotswap merge gfx1030/app gfx1100/another-app -o app"),
    explanation_row(codes::UNIT_LACKS_GPU, "Objects of one program were compiled for different GPUs: some have their own code for the target, and one has code only for the plan's source, which cannot be used instead (it is a member of an archive, or it is not known that its text is the same).",
        "hotswap-clang++ -fgpu-rdc --hip-link own.o foreign.o -o app     (foreign.o was compiled for gfx1030 by clang)"),
    explanation_row(codes::TEXT_UNKNOWN, "The source cannot be compared for both GPUs: it is standard input, preprocessed, or reads what the preprocessor does not show (a precompiled header, linked bitcode, assembly with .include).",
        "hotswap-clang++ -Xoffload-linker --hotswap-names=error -include-pch a.pch -c a.hip"),
    explanation_row(codes::NOT_JUDGED, "`hotswap lint` does not know the waits, hazards or distances of every processor, and says so; a rule named by --require must be judged.",
        "hotswap lint --require wait kernel.gfx942.hsaco"),
    explanation_row(codes::PROFILE_UNMATCHED, "A raw profile names the code object or the file that it is of, and that is not in the report; or it names none, and only its file's name tells its target.",
        "hotswap profile report app --profile .     (the directory has profiles of another program, too)"),
    explanation_row(codes::PROFILE_STALE, "A profile has a function of the program with another shape: its source changed between the build that was run and the one that is reported.",
        "hotswap profile report app --profile default.profraw     (app was built again after the run)"),
    explanation_row(codes::TOO_FAR, "Code and data of a program reach each other over at most 2 GiB, and the fat binary lies between them. Larger ones end in relocation errors of the linker (\"relocation R_X86_64_PC32 out of range\").",
        "hotswap-clang++ --offload-arch=gfx1030 large.hip -o large     (its device code has 1 GiB, and the plan adds gfx1031)"),
    explanation_row(codes::NOT_CONFIRMED, "A program of `hotswap confirm` gave another result than the emulator, or derived code another one than the GPU's own; or a program did not end, or was not run. Either the emulator or HotSwap is wrong, or the GPU is faulty: the same result in a second run says which.",
        "hotswap confirm     (on a GPU with another result)"),
    explanation_row(codes::UNCHANGED, "The file is as requested already: the code that was asked for is in it, nothing in it was to be removed, it is compressed in that way, or the tree is up to date. A file that was to be changed in place was not touched; an output of another name is a copy of the input. It is a note, with an exit code of its own in every command.",
        "hotswap compress app -o app     (a second time)"),
    explanation_row(codes::CANNOT_READ, "The system refused to open or to read the file, or it became shorter while it was read.",
        "hotswap list no-such-file"),
    explanation_row(codes::CANNOT_WRITE, "The system refused to write: no permission, no space, a read-only file system. The output is written to a temporary file beside the old one and renamed at the end, so the old content is kept.",
        "hotswap retarget app --to gfx1031 -o /proc/app"),
    explanation_row(codes::CANNOT_PRINT, "Writing to the standard output failed: the file that it goes to is full, or it is closed.",
        "hotswap targets > /dev/full"),
    explanation_row(codes::CACHE_REFUSED, "The cache directory belongs to another user, or others may write to it, so its content could have been planted. HotSwap works without a cache.",
        "chmod 777 open && XDG_CACHE_HOME=$PWD/open HOTSWAP_RETARGET='gfx1030=>gfx1031' hotswap-clang++ --offload-arch=gfx1030 app.hip -lamdhip64"),
    explanation_row(codes::NO_TEMPORARY, "TMPDIR names a directory that does not exist, may not be written, or is on a full file system. Programs that HotSwap starts need it, too: the HIP runtime ends by a segmentation fault without it.",
        "TMPDIR=/no/such/directory hotswap run --gpu gfx1031 -- ./app"),
    explanation_row(codes::OTHER_NAMES, "A file that is changed in place is replaced by a new one in one step, so that it is never half written. Its hard links are names of the old one. The command has done its work; this is a warning. With --in-place there is no warning, because all names change.",
        "ln app copy && hotswap compress app -o app"),
    explanation_row(codes::UNFINISHED_WRITE, "With --in-place the new content is made complete beside the file (.NAME.hotswap-content) and then copied into it, so that all of its names (hard links) change. The command was killed, or the machine stopped, during that copy. The complete new content is still there.",
        "hotswap compress app -o app     (after `hotswap compress app -o app --in-place` was killed)"),
    explanation_row(codes::VERIFY_FAILED, "HotSwap reads back everything that it writes, and the result was not what it had planned. The faulty file was discarded.",
        "hotswap retarget app --to gfx1031 -o new     (a defect of HotSwap, or of memory or disk)"),
];

/// The explanation of a code.
pub fn find_explanation(code: &DiagnosticCode) -> Option<&'static CodeExplanation> {
    EXPLANATIONS.iter().find(|explanation| explanation.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::CODES;
    use std::collections::BTreeSet;

    #[test]
    fn each_code_has_one_explanation_in_its_place() {
        let explained: Vec<&str> = EXPLANATIONS.iter().map(|explanation| explanation.code.id).collect();
        let codes: Vec<&str> = CODES.iter().map(|code| code.id).collect();
        assert_eq!(explained, codes, "crates/base/report/src/explanations.rs needs a row for each code");
    }

    #[test]
    fn explanations_say_more_than_the_code() {
        for CodeExplanation { code, cause, example } in EXPLANATIONS {
            assert!(cause.ends_with('.') && cause.len() > 40 && !cause.contains(code.summary), "{}: cause", code.id);
            assert!(example.len() > 10 && !example.contains('\n'), "{}: example", code.id);
        }
        let causes: BTreeSet<&str> = EXPLANATIONS.iter().map(|explanation| explanation.cause).collect();
        assert_eq!(causes.len(), EXPLANATIONS.len());
    }
}
