//! Profiles and coverage of device code: the additional requirements of a command with counters.
//!
//! Measured with clang 22, 23 and 24. Clang 22: device code counts by plain additions, with which lanes of a wave
//! overwrite each other's updates, so updates become atomic. Value profiling of the optimiser calls functions that no
//! device has, so it is off. Clang 23 and later: device code calls a runtime ([`crate::device_runtime`]). By default
//! only each eighth block counts, so that code which only other blocks run appears as never run; here all count, and
//! the user's `-mllvm -offload-pgo-sampling=N` takes precedence. The host link gets the drain, which writes the
//! counters when the program ends.
//!
//! A link of the host gets the drain, too, where it has the flag and HIP's library, in whatever form, since its objects,
//! archives or modules may have device code with counters; where one of its objects or archives has such code; and wherever it is asked
//! for by its option.
//!
//! Invariants: other non-HIP commands, or those without device counters, get no additions. Arguments before the
//! user's are overridden by those; the drain follows the user's inputs, since its exit handler must run before those of
//! HIP's registration.
//!
//! Absent on purpose: the drain itself (`crates/profile/profile-drain`); profile files.

use crate::command::{ClangCommand, CommandInput, InputKind, RequestedCounters};
use crate::counters_lost::{links_device_counters, names_hip_library};
use crate::flags::{OffloadSide, Phase};
use crate::options::{OptionId, OptionValues};
use crate::toolchain::Toolchain;
use hotswap_files::reads;
use hotswap_report::{Diagnostic, codes};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The drain, below `lib/hotswap` of the installation.
pub const DRAIN: &str = "libhotswap-profile-drain.a";
/// A symbol that it defines.
const DRAIN_SYMBOL: &str = "hotswap_profile_drain";
/// The first clang whose device code calls a runtime.
const WITH_RUNTIME: u32 = 23;
/// LLVM option: every counter is updated by an atomic.
const ATOMIC: &str = "-instrprof-atomic-counter-update-all";
/// lld option: counters of the optimiser, inserted when it compiles bitcode.
const LINK_TIME_COUNTERS: &str = "--lto-cs-profile-generate";
/// Arguments for code that records when functions ran first.
const TEMPORAL: &[&str] = &["-ftemporal-profile", "-pgo-temporal-instrumentation"];
/// The bounds table of the device profile runtime.
const TABLE: &str = "__llvm_profile_sections";
/// The last clang that has the old offload driver.
const OLD_DRIVER: u32 = 23;
/// Paths below clang's resource directory where a distribution may have a device profile runtime,
/// which clang then links itself.
const OWN_RUNTIMES: &[&str] = &[
    "lib/amdgcn-amd-amdhsa/libclang_rt.profile.a",
    "lib/amdgpu-amd-amdhsa/libclang_rt.profile.a",
    "lib/linux/libclang_rt.profile-amdgcn.a",
];

/// The handling of counters in device code for one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileSettings {
    /// Counters of the device code.
    pub device: RequestedCounters,
    /// Whether host code has counters, too.
    pub host: bool,
    /// Device code is made, or linked.
    pub device_code: bool,
    /// The host link gets the drain.
    pub drain: bool,
}

impl ProfileSettings {
    /// The requirements of a command; `None` without any.
    ///
    /// # Errors
    /// [`codes::BAD_CONFIG`] for an invalid switch; [`codes::USAGE`] where the drain lacks a place.
    pub fn profile_of_command(
        command: &ClangCommand,
        words: &[OsString],
        settings: &OptionValues,
    ) -> Result<Option<Self>, Diagnostic> {
        let objects = command.offload_link || command.new_driver == Some(true);
        let hip = command.is_hip() || (objects && command.links_host_code());
        let builds = !command.query && command.has_inputs() && command.phase > Phase::Front;
        let other = command.targets_gpu() || command.driver_mode.as_deref() == Some("cl");
        let is_stated = settings.get(OptionId::Drain).is_some();
        let is_asked = is_stated && settings.switch(OptionId::Drain).unwrap_or(false);
        let links = command.links_host_code() && !command.partial;
        let counts = command.device_counters.any() && command.scope != OffloadSide::Host;
        // A link of the host alone: its objects, archives or modules have device code with counters.
        let links_hip = links && (is_asked || (counts && !hip && links_counted_code(command)?));
        if !builds || other || !((counts && hip) || links_hip) {
            return Ok(None);
        }
        let wanted = !is_stated || settings.switch(OptionId::Drain)?;
        if !(wanted || (counts && hip)) {
            return Ok(None);
        }
        let drain = wanted && links && !names(words, DRAIN);
        if drain && command.only_inputs_follow && command.language_holds {
            let what =
                "the drain would be compiled as source: `--` makes all that follows inputs, and -x their language";
            return Err(
                Diagnostic::error(codes::USAGE, what).advise("write `-x none` before the objects, or drop `--`")
            );
        }
        let device_code = counts && hip && (command.has_hip_source() || command.links_host_code());
        Ok(Some(Self { device: command.device_counters, host: command.host_counters.any(), device_code, drain }))
    }

    /// Arguments before the user's, for the compiler and its tools.
    ///
    /// # Errors
    /// Those of the toolchain and of the runtime; [`codes::COUNTERS_NOT_LINKED`].
    pub fn front(
        &self,
        command: &ClangCommand,
        words: &[OsString],
        toolchain: &Toolchain<'_>,
        dry: bool,
    ) -> Result<Vec<OsString>, Diagnostic> {
        let mut front: Vec<OsString> = Vec::new();
        if self.device_code {
            let major = toolchain.major()?;
            if major < WITH_RUNTIME {
                front.extend(self.without_runtime(words));
                front.extend(self.with_table(command, words, toolchain, major, dry)?);
            } else {
                front.extend(sampling(words));
                front.extend(self.with_runtime(command, words, toolchain, major, dry)?);
                front.extend(device_lto(command, major, || Ok(!toolchain.new_driver(command.new_driver)?))?);
            }
            front.extend(self.in_the_link(command, words, toolchain, major)?);
        }
        if !front.is_empty() {
            // Commands differ in their outputs; an unused argument is not a reason for a warning.
            front.insert(0, "--start-no-unused-arguments".into());
            front.push("--end-no-unused-arguments".into());
        }
        Ok(front)
    }

    /// Whether our linker must separate sources: clang 22 gives the names of each source's counters the same strong
    /// symbol, which matters only where their device code is linked together.
    ///
    /// # Errors
    /// Those of the toolchain.
    pub fn has_one_symbol(&self, command: &ClangCommand, toolchain: &Toolchain<'_>) -> Result<bool, Diagnostic> {
        let several = command.inputs.iter().filter(may_hold_device_code).count() > 1;
        Ok(several && command.rdc && command.links_host_code() && toolchain.major()? < WITH_RUNTIME)
    }

    /// The warning about context-sensitive counters, which the optimiser omits at low optimisation levels.
    ///
    /// # Errors
    /// Those of the toolchain.
    pub fn limit(
        &self,
        command: &ClangCommand,
        words: &[OsString],
        toolchain: &Toolchain<'_>,
    ) -> Result<Option<Diagnostic>, Diagnostic> {
        if !self.device.context_sensitive || self.device.frontend || self.device.ir || !self.device_code {
            return Ok(None);
        }
        // Measured: in the device link from -O2 on (its own default); in a compilation by clang 22 from -O1 on.
        let in_the_link = toolchain.major()? >= WITH_RUNTIME || command.rdc;
        let level = words.iter().rev().find_map(|word| word.as_bytes().strip_prefix(b"-O"));
        let needed = match (level, in_the_link) {
            (Some(b"0"), false) | (None, false) => "-O1",
            (Some(b"0"), true) => "-O2",
            (Some(b"" | b"1" | b"g"), true) if toolchain.major()? >= WITH_RUNTIME => "-O2",
            _ => return Ok(None),
        };
        let what = "-fcs-profile-generate: the optimiser puts no counters into device code here";
        Ok(Some(
            Diagnostic::warning(codes::COUNTERS_COUNT_NOTHING, what)
                .advise(format!("compile and link with {needed} or more")),
        ))
    }

    fn without_runtime(&self, words: &[OsString]) -> Vec<OsString> {
        let mut front: Vec<OsString> = vec!["-Xarch_device".into(), "-fprofile-update=atomic".into()];
        if self.device.context_sensitive {
            // Clang ignores -fprofile-update for these counters, which the compiler or the device link inserts.
            front.extend(["-Xarch_device".into(), format!("-mllvm={ATOMIC}").into()]);
            front.extend(["-Xoffload-linker".into(), format!("-plugin-opt={ATOMIC}").into()]);
        }
        if self.device.by_optimiser() && !names(words, "-disable-vp") {
            front.extend(["-Xarch_device".into(), "-mllvm=-disable-vp".into()]);
        }
        front
    }

    /// Clang 22 needs the runtime in two cases. When relocatable device code is optimised in the device link, its
    /// version variable, which marks counters as the optimiser's, is removed unless the bounds table refers to it. And
    /// code of -ftemporal-profile calls a function of it, which lld only keeps for callers that are bitcode, too.
    fn with_table(
        &self,
        command: &ClangCommand,
        words: &[OsString],
        toolchain: &Toolchain<'_>,
        major: u32,
        dry: bool,
    ) -> Result<Vec<OsString>, Diagnostic> {
        let is_temporal = TEMPORAL.iter().any(|word| names(words, word));
        if !self.device.by_optimiser() || !(command.rdc || is_temporal) {
            return Ok(Vec::new());
        }
        let mut front = self.with_runtime(command, words, toolchain, major, dry)?;
        front.extend(["-Xoffload-linker".into(), format!("--undefined={TABLE}").into()]);
        if command.rdc || !command.links_device_code() {
            return Ok(front);
        }
        if command.device_lto == Some(false) {
            let what = "-ftemporal-profile with -fno-offload-lto, for clang 22";
            return Err(Diagnostic::error(codes::COUNTERS_NOT_LINKED, what).advise("drop -fno-offload-lto"));
        }
        front.extend(command.device_lto.is_none().then(|| "-foffload-lto".into()));
        Ok(front)
    }

    fn with_runtime(
        &self,
        command: &ClangCommand,
        words: &[OsString],
        toolchain: &Toolchain<'_>,
        major: u32,
        dry: bool,
    ) -> Result<Vec<OsString>, Diagnostic> {
        let present = names(words, crate::device_runtime::NAME);
        if present || has_own_runtime(command, toolchain.clang(), major)? {
            return Ok(Vec::new());
        }
        let archive = crate::device_runtime::prepare(toolchain.clang(), dry)?;
        Ok(vec!["-Xoffload-linker".into(), archive.into()])
    }

    /// Context-sensitive counters are inserted where device code is optimised for the last time. Under the new driver
    /// that is the device link, to whose linker clang's wrapper does not pass the flag: then nothing counts. A
    /// third-party runtime may not be excluded from counting, which would recurse endlessly, so it is left alone.
    fn in_the_link(
        &self,
        command: &ClangCommand,
        words: &[OsString],
        toolchain: &Toolchain<'_>,
        major: u32,
    ) -> Result<Vec<OsString>, Diagnostic> {
        let foreign = major >= WITH_RUNTIME && has_own_runtime(command, toolchain.clang(), major)?;
        if !self.device.context_sensitive || foreign || names(words, LINK_TIME_COUNTERS) {
            return Ok(Vec::new());
        }
        Ok(vec!["-Xoffload-linker".into(), LINK_TIME_COUNTERS.into()])
    }

    /// The arguments for the host linker. A missing drain is reported by the linker.
    pub fn back(&self, command: &ClangCommand, prefix: &Path) -> DrainArguments {
        if !self.drain {
            return DrainArguments::default();
        }
        let archive = prefix.join("lib/hotswap").join(DRAIN).into_os_string();
        let mut forced = vec![format!("-Wl,-u,{DRAIN_SYMBOL}").into()];
        // Without the host's counters clang links no runtime that could define it.
        if self.host {
            forced.push("-Wl,-u,__llvm_profile_runtime".into());
        }
        if command.only_inputs_follow {
            return DrainArguments { early: forced, late: vec![archive] };
        }
        // A linker argument: the old driver would look for device code in an input.
        forced.extend(["-Xlinker".into(), archive]);
        DrainArguments { early: Vec::new(), late: forced }
    }
}

/// The arguments that link the drain.
#[derive(Debug, Default)]
pub struct DrainArguments {
    /// Those before the user's.
    pub early: Vec<OsString>,
    /// Those after the user's.
    pub late: Vec<OsString>,
}

fn may_hold_device_code(input: &&CommandInput) -> bool {
    matches!(input.kind, InputKind::Hip | InputKind::Link)
}

/// Whether the link has HIP's library, or else an object with device code that counts: HIP's library may come from a linker script,
/// from another library, or in an argument of the linker alone.
fn links_counted_code(command: &ClangCommand) -> Result<bool, Diagnostic> {
    Ok(names_hip_library(command) || links_device_counters(command)?)
}

/// Whether some argument contains `part`; it may be inside a list of `-Wl,`.
fn names(words: &[OsString], part: &str) -> bool {
    words.iter().any(|word| word.as_bytes().windows(part.len()).any(|window| window == part.as_bytes()))
}

fn sampling(words: &[OsString]) -> Vec<OsString> {
    if names(words, "-offload-pgo-sampling") {
        return Vec::new();
    }
    vec!["-Xarch_device".into(), "-mllvm=-offload-pgo-sampling=0".into()]
}

/// Whether clang has a device profile runtime of its own.
fn has_own_runtime(command: &ClangCommand, clang: &Path, major: u32) -> Result<bool, Diagnostic> {
    let resolved = reads::resolve_path(clang)?;
    let beside = resolved.as_deref().and_then(Path::parent).and_then(Path::parent);
    let named = command.resource_directory.as_ref().map(PathBuf::from);
    let Some(directory) = named.or_else(|| Some(beside?.join(format!("lib/clang/{major}")))) else { return Ok(false) };
    for name in OWN_RUNTIMES {
        if reads::is_regular(&directory.join(name))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The old chain of tools (old driver, and device-only output under both) links machine code in which the compiler
/// cannot see the counters' runtime, and lld makes the runtime's symbols local before it resolves them. Compiled in the
/// link, both are bitcode.
fn device_lto(
    command: &ClangCommand,
    major: u32,
    old_driver: impl FnOnce() -> Result<bool, Diagnostic>,
) -> Result<Vec<OsString>, Diagnostic> {
    let device_only = command.scope == OffloadSide::Device;
    if command.rdc || !command.links_device_code() || !(device_only || (major <= OLD_DRIVER && old_driver()?)) {
        return Ok(Vec::new());
    }
    if command.device_lto == Some(false) {
        let what = "-fno-offload-lto in a device link by the old chain of tools";
        return Err(Diagnostic::error(codes::COUNTERS_NOT_LINKED, what).advise("drop -fno-offload-lto"));
    }
    let mut words: Vec<OsString> = Vec::new();
    if command.device_lto.is_none() {
        words.push("-foffload-lto".into());
    }
    // Clang 24 names its own runtime in this chain, whether it exists or not.
    if device_only && major > OLD_DRIVER && !command.no_profile_library {
        words.push("-noprofilelib".into());
    }
    Ok(words)
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
