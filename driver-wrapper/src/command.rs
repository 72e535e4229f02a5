//! The parts of a clang command line that HotSwap needs.
//!
//! Invariant: scanning never fails; unknown arguments are skipped, since clang itself will judge them.
//!
//! Absent on purpose: the arguments in clang's own configuration files, which clang reads later.

use crate::flags::{self, Addressee, FlagMatch, FlagMeaning, Instrument, OffloadSide, Phase};
use crate::options::is_own;
use hotswap_plan::words::CHANNEL;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The kind of an input to the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
    /// HIP source, by extension or `-x`.
    Hip,
    /// CUDA source, by extension or `-x`.
    Cuda,
    /// C source; the C++ driver would take it for C++.
    C,
    Cxx,
    Other,
    /// Passed to the linker: object, archive, or a name without a known extension.
    Link,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandInput {
    /// The file as named; `-` is standard input.
    pub path: OsString,
    pub kind: InputKind,
    /// Index of its argument.
    pub word: usize,
    /// It is the preprocessor's output for HIP.
    pub is_preprocessed: bool,
}

/// An argument of HotSwap and its form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnArgument {
    pub text: OsString,
    /// Whether it follows `-Xoffload-linker`.
    pub channel: bool,
}

/// Counters that are requested for one side's code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // independent flags of one command line
pub struct RequestedCounters {
    /// Whether `-fprofile-instr-generate` is in force.
    pub frontend: bool,
    /// Whether `-fprofile-generate` is in force.
    pub ir: bool,
    /// Whether `-fcs-profile-generate` is in force.
    pub context_sensitive: bool,
    /// Whether `-fcoverage-mapping` is in force.
    pub coverage: bool,
}

impl RequestedCounters {
    /// Whether there are any. Coverage mapping without the front end's counters is an error of clang's.
    pub fn any(self) -> bool {
        self.frontend || self.by_optimiser()
    }

    /// Whether the optimiser inserts them.
    pub fn by_optimiser(self) -> bool {
        self.ir || self.context_sensitive
    }

    fn set(&mut self, instrument: Instrument, on: bool) {
        match instrument {
            Instrument::Frontend => self.frontend = on,
            Instrument::Coverage => self.coverage = on,
            Instrument::ContextSensitive => self.context_sensitive = on,
            // Clang's -fno-profile-generate cancels both kinds.
            Instrument::Ir => (self.ir, self.context_sensitive) = (on, on && self.context_sensitive),
        }
    }
}

/// The parsed arguments. Of flags that come in pairs the last one counts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // independent flags of one command line
pub struct ClangCommand {
    /// Inputs in their order.
    pub inputs: Vec<CommandInput>,
    /// HotSwap's arguments in their order.
    pub own: Vec<OwnArgument>,
    pub phase: Phase,
    /// The side that is compiled.
    pub scope: OffloadSide,
    /// Relocatable device code is requested.
    pub rdc: bool,
    /// `--hip-link`, or `--hipstdpar`, which clang treats alike.
    pub hip_link: bool,
    /// `--offload-link`, the device link alone.
    pub offload_link: bool,
    /// `-fopenmp`, with which code may be offloaded by OpenMP.
    pub openmp: bool,
    /// Triples that OpenMP offloads to, where they are named.
    pub openmp_targets: Vec<String>,
    /// The offload driver, if named.
    pub new_driver: Option<bool>,
    /// Bundled device-only output, if named.
    pub bundle: Option<bool>,
    /// Processors that are requested and not cancelled.
    pub archs: Vec<String>,
    /// `-emit-llvm`: the output is bitcode or IR.
    pub emit_llvm: bool,
    /// `-fhip-emit-relocatable`: the output is a device object.
    pub relocatable: bool,
    /// `-r`, a partial link.
    pub partial: bool,
    /// `--emit-static-lib`: the output is an archive.
    pub static_library: bool,
    /// `-###`: commands are printed and not run.
    pub dry_run: bool,
    /// A query to clang.
    pub query: bool,
    /// Target triple, if named.
    pub target: Option<String>,
    /// Kind of driver, if named.
    pub driver_mode: Option<String>,
    /// The output file, if named.
    pub output: Option<OsString>,
    /// The value of `-working-directory`, if named.
    pub working_directory: Option<OsString>,
    /// Libraries named with `-l`.
    pub libraries: Vec<OsString>,
    /// Directories named with `-L`.
    pub library_directories: Vec<OsString>,
    /// Counters in host code.
    pub host_counters: RequestedCounters,
    /// Counters in the code of some device.
    pub device_counters: RequestedCounters,
    /// Device code is compiled in the device link, if named.
    pub device_lto: Option<bool>,
    /// `-noprofilelib`: clang does not link a profile runtime.
    pub no_profile_library: bool,
    /// Directory of clang's own headers and libraries, if named.
    pub resource_directory: Option<OsString>,
    /// `--` was there: every later argument is an input.
    pub only_inputs_follow: bool,
    /// `-x` is in effect for inputs at the end of the command.
    pub language_holds: bool,
}

impl Default for ClangCommand {
    fn default() -> Self {
        Self {
            inputs: Vec::new(),
            own: Vec::new(),
            phase: Phase::Link,
            scope: OffloadSide::Both,
            rdc: false,
            hip_link: false,
            offload_link: false,
            openmp: false,
            openmp_targets: Vec::new(),
            new_driver: None,
            bundle: None,
            archs: Vec::new(),
            emit_llvm: false,
            relocatable: false,
            partial: false,
            static_library: false,
            dry_run: false,
            query: false,
            target: None,
            driver_mode: None,
            output: None,
            working_directory: None,
            libraries: Vec::new(),
            library_directories: Vec::new(),
            host_counters: RequestedCounters::default(),
            device_counters: RequestedCounters::default(),
            device_lto: None,
            no_profile_library: false,
            resource_directory: None,
            only_inputs_follow: false,
            language_holds: false,
        }
    }
}

/// Reads a command line whose response files are expanded, without the program's name.
pub fn scan(words: &[OsString]) -> ClangCommand {
    let command = ClangCommand::default();
    let mut scan = CommandScan { command, language: None, is_preprocessed: false, standard_parallel: false };
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let bytes = word.as_bytes();
        if bytes == b"--" {
            (at..words.len()).for_each(|at| scan.input(&words[at], at));
            scan.command.only_inputs_follow = true;
            break;
        } else if is_own(word) {
            scan.command.own.push(OwnArgument { text: word.clone(), channel: false });
        } else if bytes == b"-" || !bytes.starts_with(b"-") {
            scan.input(word, at - 1);
        } else if let Some(found) = flags::find(bytes) {
            let end = (at + found.values).min(words.len());
            let value =
                if found.values > 0 { words[at..end].first().map(|w| w.as_bytes()) } else { Some(found.joined) };
            scan.flag(&found, value.unwrap_or_default());
            at = end;
        }
    }
    scan.finish()
}

struct CommandScan {
    command: ClangCommand,
    language: Option<InputKind>,
    is_preprocessed: bool,
    standard_parallel: bool,
}

impl CommandScan {
    fn input(&mut self, word: &OsStr, at: usize) {
        let kind = self.language.unwrap_or_else(|| kind_of_name(word));
        let is_preprocessed = match self.language {
            Some(_) => self.is_preprocessed,
            None => word.as_bytes().ends_with(b".hipi"),
        };
        self.command.inputs.push(CommandInput { path: word.to_owned(), kind, word: at, is_preprocessed });
    }

    fn flag(&mut self, found: &FlagMatch<'_>, value: &[u8]) {
        let command = &mut self.command;
        match found.flag.meaning {
            FlagMeaning::Operand | FlagMeaning::NoUnused(_) => {}
            FlagMeaning::Channel => {
                let word = OsStr::from_bytes(value);
                if is_own(word) {
                    command.own.push(OwnArgument { text: word.to_owned(), channel: true });
                }
            }
            FlagMeaning::Stop(phase) => command.phase = command.phase.min(phase),
            FlagMeaning::Output => command.output = Some(OsStr::from_bytes(value).to_owned()),
            FlagMeaning::Query => command.query = true,
            FlagMeaning::DryRun => command.dry_run = true,
            FlagMeaning::Language => {
                self.language = language(value);
                self.is_preprocessed = value == b"hip-cpp-output";
            }
            FlagMeaning::HipLink => command.hip_link = true,
            FlagMeaning::StandardParallel => self.standard_parallel = true,
            FlagMeaning::Arch => command.archs.extend(lossy_flag_value(value).split(',').map(str::to_owned)),
            FlagMeaning::NoArch => remove_archs(&mut command.archs, &lossy_flag_value(value)),
            FlagMeaning::Rdc(on) => command.rdc = on,
            FlagMeaning::Side(scope) => command.scope = scope,
            FlagMeaning::Bundle(on) => command.bundle = Some(on),
            FlagMeaning::NewDriver(on) => command.new_driver = Some(on),
            FlagMeaning::OffloadLink => command.offload_link = true,
            FlagMeaning::OpenMp(on) => command.openmp = on,
            FlagMeaning::OpenMpTargets => {
                command.openmp_targets = lossy_flag_value(value).split(',').map(str::to_owned).collect()
            }
            FlagMeaning::Partial => command.partial = true,
            FlagMeaning::StaticLibrary => command.static_library = true,
            FlagMeaning::EmitLlvm => command.emit_llvm = true,
            FlagMeaning::Relocatable => command.relocatable = true,
            FlagMeaning::Target => command.target = Some(lossy_flag_value(value)),
            FlagMeaning::DriverMode => command.driver_mode = Some(lossy_flag_value(value)),
            FlagMeaning::WorkingDirectory => command.working_directory = Some(OsStr::from_bytes(value).to_owned()),
            FlagMeaning::Library => command.libraries.push(OsStr::from_bytes(value).to_owned()),
            FlagMeaning::LibraryDirectory => command.library_directories.push(OsStr::from_bytes(value).to_owned()),
            FlagMeaning::Counters(instrument, on) => {
                command.host_counters.set(instrument, on);
                command.device_counters.set(instrument, on);
            }
            FlagMeaning::For(addressee) => {
                let host = addressee == Addressee::Host || (addressee == Addressee::Named && !names_gpu(found.joined));
                let counters = if host { &mut command.host_counters } else { &mut command.device_counters };
                match flags::find(value).map(|found| found.flag.meaning) {
                    // Cancelled for one GPU, it still applies to the others.
                    Some(FlagMeaning::Counters(_, false)) if addressee == Addressee::Named => {}
                    Some(FlagMeaning::Counters(instrument, on)) => counters.set(instrument, on),
                    _ => {}
                }
            }
            FlagMeaning::DeviceLto(on) => command.device_lto = Some(on),
            FlagMeaning::NoProfileLibrary => command.no_profile_library = true,
            FlagMeaning::ResourceDirectory => command.resource_directory = Some(OsStr::from_bytes(value).to_owned()),
        }
    }

    /// `--hipstdpar` may follow the inputs that it changes.
    fn finish(mut self) -> ClangCommand {
        self.command.language_holds = self.language.is_some();
        if self.standard_parallel {
            self.command.hip_link = true;
            for input in self.command.inputs.iter_mut().filter(|input| input.kind == InputKind::Cxx) {
                input.kind = InputKind::Hip;
            }
        }
        self.command
    }
}

fn lossy_flag_value(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

/// Whether the suffix of `-Xarch_` names a GPU and not an architecture of the host.
fn names_gpu(name: &[u8]) -> bool {
    ["gfx", "amdgcn", "amdgpu"].iter().any(|start| name.starts_with(start.as_bytes()))
}

fn remove_archs(archs: &mut Vec<String>, names: &str) {
    if names == "all" {
        archs.clear();
    }
    archs.retain(|arch| !names.split(',').any(|name| name == arch));
}

/// The kind that `-x` gives to the inputs that follow; `None` means by extension again.
fn language(name: &[u8]) -> Option<InputKind> {
    Some(match name {
        b"none" => return None,
        b"hip" | b"hip-cpp-output" => InputKind::Hip,
        b"cuda" | b"cuda-cpp-output" => InputKind::Cuda,
        b"c" | b"c-header" | b"cpp-output" => InputKind::C,
        _ if name.starts_with(b"c++") => InputKind::Cxx,
        _ => InputKind::Other,
    })
}

/// The kind that clang derives from a file's extension.
fn kind_of_name(word: &OsStr) -> InputKind {
    let name = word.as_bytes();
    let file = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
    let Some(dot) = file.iter().rposition(|byte| *byte == b'.') else { return InputKind::Link };
    match &file[dot + 1..] {
        b"hip" | b"hipi" => InputKind::Hip,
        b"c" | b"i" | b"h" => InputKind::C,
        b"C" | b"cc" | b"CC" | b"cp" | b"cpp" | b"CPP" | b"cxx" | b"CXX" | b"c++" | b"C++" | b"ii" | b"cppm"
        | b"ccm" | b"cxxm" | b"c++m" | b"ixx" | b"hh" | b"hpp" | b"hxx" | b"H" => InputKind::Cxx,
        b"cu" | b"cui" => InputKind::Cuda,
        b"cuh" | b"cl" | b"clcpp" | b"s" | b"S" | b"asm" | b"ll" | b"bc" | b"m" | b"mi" | b"mm" | b"mii" | b"M"
        | b"f" | b"F" | b"f90" | b"F90" | b"ast" | b"pcm" | b"hlsl" | b"cir" => InputKind::Other,
        _ => InputKind::Link,
    }
}

impl ClangCommand {
    /// Whether the command requests the processor, with whatever features.
    pub fn requests_processor(&self, name: &str) -> bool {
        self.archs.iter().any(|arch| arch.split(':').next() == Some(name))
    }

    /// The inputs that are HIP source.
    pub fn hip_sources(&self) -> impl Iterator<Item = &CommandInput> {
        self.inputs.iter().filter(|input| input.kind == InputKind::Hip)
    }

    /// Whether an input is HIP source.
    pub fn has_hip_source(&self) -> bool {
        self.hip_sources().next().is_some()
    }

    /// Whether CUDA is compiled, which clang does not mix with HIP in one command.
    pub fn compiles_cuda(&self) -> bool {
        self.inputs.iter().any(|input| input.kind == InputKind::Cuda) && !self.is_hip()
    }

    /// Whether clang takes the command for HIP: `--offload-arch` alone does not make it one.
    pub fn is_hip(&self) -> bool {
        self.has_hip_source() || self.hip_link
    }

    /// Whether there is anything to build.
    pub fn has_inputs(&self) -> bool {
        !self.inputs.is_empty() || !self.libraries.is_empty()
    }

    /// Whether a device link can happen below this command, except for links of relocatable code.
    pub fn links_device_code(&self) -> bool {
        let device_only = self.scope == OffloadSide::Device;
        let bitcode = self.rdc || self.relocatable || (self.emit_llvm && device_only);
        let reaches = match self.phase {
            Phase::Preprocess | Phase::Front => false,
            // The new driver of clang 22 puts the fat binary into the host's assembly.
            Phase::Assemble => !device_only && !bitcode,
            Phase::Compile => !bitcode,
            Phase::Link => !(device_only && self.relocatable),
        };
        self.has_hip_source() && self.scope != OffloadSide::Host && reaches
    }

    /// Whether relocatable device code is compiled into an object, for a later link.
    pub fn compiles_relocatable(&self) -> bool {
        self.rdc
            && self.has_hip_source()
            && self.phase == Phase::Compile
            && self.scope == OffloadSide::Both
            && !self.emit_llvm
            && !self.relocatable
            && !self.openmp
    }

    /// Whether relocatable device code is linked.
    pub fn links_relocatable(&self) -> bool {
        let for_program = self.links_host_code()
            && (self.offload_link || self.new_driver == Some(true) || (self.is_hip() && self.rdc) || self.hip_link);
        for_program || self.links_for_archive()
    }

    /// Whether relocatable device code is linked although no host code is: the old driver does so for an archive
    /// (`--emit-static-lib`), and for the device side alone.
    fn links_for_archive(&self) -> bool {
        let output = (self.scope == OffloadSide::Both && self.static_library) || self.scope == OffloadSide::Device;
        self.phase == Phase::Link && output && self.is_hip() && self.rdc && self.has_inputs() && !self.relocatable
    }

    /// Whether the host linker makes a program or library, or combines objects for one.
    pub fn links_host_code(&self) -> bool {
        self.phase == Phase::Link && self.scope == OffloadSide::Both && !self.static_library && self.has_inputs()
    }

    /// Whether clang compiles for a GPU as its main target (`--target=amdgcn-amd-amdhsa`).
    pub fn targets_gpu(&self) -> bool {
        let gpu =
            |triple: &String| ["amdgcn", "amdgpu", "r600", "spirv", "nvptx"].iter().any(|a| triple.starts_with(a));
        self.target.as_ref().is_some_and(gpu)
    }
}

/// The arguments for clang.
#[derive(Debug)]
pub struct StrippedWords {
    pub kept: Vec<OsString>,
    /// Whether an argument was removed.
    pub is_changed: bool,
}

/// `words` without HotSwap's and without brackets of unused arguments that became empty.
pub fn without_own(words: &[OsString]) -> StrippedWords {
    let mut kept: Vec<OsString> = Vec::with_capacity(words.len());
    let mut emptied = false;
    for word in words {
        let behind_open = kept.last().is_some_and(|last| is_bracket(last, true));
        if is_own(word) {
            // No other flag has values that begin like our arguments, so a channel flag before one belongs to it.
            if kept.last().is_some_and(|last| is_channel(last)) {
                kept.pop();
            }
            emptied = kept.last().is_some_and(|last| is_bracket(last, true));
        } else if emptied && behind_open && is_bracket(word, false) {
            kept.pop();
        } else {
            emptied &= is_channel(word);
            kept.push(word.clone());
        }
    }
    let is_changed = kept.len() != words.len();
    StrippedWords { kept, is_changed }
}

fn is_channel(word: &OsStr) -> bool {
    word.as_bytes().starts_with(CHANNEL.as_bytes())
}

fn is_bracket(word: &OsStr, start: bool) -> bool {
    flags::find(word.as_bytes()).is_some_and(|found| found.flag.meaning == FlagMeaning::NoUnused(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    fn inputs(text: &str) -> Vec<(String, InputKind)> {
        scan(&words(text)).inputs.iter().map(|i| (i.path.to_str().unwrap().to_owned(), i.kind)).collect()
    }

    #[test]
    fn operands_are_no_inputs() {
        let text = "-o out.o -I inc -Xarch_device a.hip -mllvm b.hip -sectcreate a b c -MF d.d -target t -Xclang x.hip";
        assert_eq!(inputs(text), []);
        assert_eq!(inputs("-ofoo -Iinc -lm a.o"), [("a.o".to_owned(), InputKind::Link)]);
    }

    #[test]
    fn languages_come_from_x_and_from_extensions() {
        for (text, kinds) in [
            ("a.hip b.cpp c.c d.cu e.o f.a libg.so.1 h", "HXCULLLL"),
            ("-x hip a.cpp b.o -x none c.cpp -xc -", "HHXC"),
            ("--hipstdpar a.cpp b.c", "HC"),
            ("a.cpp --hipstdpar", "H"),
            ("a.hip -- -x.hip -c", "HHL"),
            ("dir.hip/a", "L"),
            ("a.CU.hip", "H"),
        ] {
            let found: String = inputs(text)
                .iter()
                .map(|(_, kind)| match kind {
                    InputKind::Hip => 'H',
                    InputKind::Cuda => 'U',
                    InputKind::C => 'C',
                    InputKind::Cxx => 'X',
                    InputKind::Other => 'O',
                    InputKind::Link => 'L',
                })
                .collect();
            assert_eq!(found, kinds, "{text}");
        }
    }

    #[test]
    fn the_earliest_phase_and_the_last_of_a_pair_win() {
        assert_eq!(scan(&words("-c -S a.c")).phase, Phase::Assemble);
        assert_eq!(scan(&words("-c -E a.c")).phase, Phase::Preprocess);
        assert_eq!(scan(&words("-MD -MF x a.c")).phase, Phase::Link);
        assert!(!scan(&words("-fgpu-rdc -fno-gpu-rdc a.hip")).rdc);
        assert_eq!(scan(&words("--cuda-device-only --offload-host-device")).scope, OffloadSide::Both);
        let command = scan(&words("--offload-arch=gfx1030,gfx900 --no-offload-arch=all --offload-arch=gfx90a:xnack+"));
        assert_eq!(command.archs, ["gfx90a:xnack+"]);
    }

    #[test]
    fn our_words_are_removed_with_their_channel_and_empty_brackets() {
        let open = "--start-no-unused-arguments";
        let close = "--end-no-unused-arguments";
        for (text, left) in [
            (format!("{open} -Xoffload-linker --hotswap-plan=1 {close} -c a.hip"), "-c a.hip".to_owned()),
            ("-c a.hip".to_owned(), "-c a.hip".to_owned()),
            (format!("{open} -Xoffload-linker --hotswap-plan=1 -lm {close}"), format!("{open} -lm {close}")),
            (
                "-Xoffload-linker --emit-relocs -Xoffload-linker --hotswap-x=1".into(),
                "-Xoffload-linker --emit-relocs".into(),
            ),
            ("--hotswap-explain -c a.hip".to_owned(), "-c a.hip".to_owned()),
            ("-Xoffload-linker-amdgcn-amd-amdhsa --hotswap-plan=1 a".to_owned(), "a".to_owned()),
        ] {
            let stripped = without_own(&words(&text));
            assert_eq!(stripped.kept, words(&left));
            assert_eq!(stripped.is_changed, text != left);
        }
        // Brackets that were empty in the user's command are not ours.
        let own = words(&format!("{open} {close} -c"));
        assert_eq!(without_own(&own).kept, own);
    }
}
