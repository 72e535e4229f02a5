//! Warm headers (`-fhotswap-warm-headers`): the headers that every HIP source begins with are read from precompiled headers, one for the
//! host and one for each GPU, and the output is clang's, byte for byte.
//!
//! Clang takes a directory for `-include-pch` and picks the header that fits each front end. What front ends a command has, and with which
//! arguments, is asked of clang (`-###`, [`front_ends`]); whether it makes the same object of a program with and without the header
//! is found out once for each front end ([`making`]); whether the headers on disk are still those that were read is looked up before each
//! use ([`fingerprint`]).
//!
//! Invariants: off unless it is asked for. Whatever cannot be shown to be equal is compiled as without it, and `--hotswap-explain` says why.
//! Nothing here makes a compilation fail or changes its messages: where a header is lost or outdated while clang runs, or messages name
//! it, clang runs a second time without it.
//!
//! Absent on purpose: a user's own precompiled headers, and headers beside the source.

mod fingerprint;
mod front_ends;
mod making;
mod prefix;
mod store;
mod unit_id;

use crate::command::ClangCommand;
use crate::dependencies::DependencyOutput;
use crate::exec::{self, LaunchCommand};
use crate::flags::Phase;
use crate::options::{OptionId, OptionValues};
use crate::words::ClangArgument;
use front_ends::FrontEnd;
use hotswap_report::Diagnostic;
use prefix::Prefix;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use store::{HeaderSet, HeaderStore};

/// Clang's argument that prints its commands.
const DRY_RUN: &str = "-###";

/// How often a source with the same first directive was met before its header is worth being made.
const MEETINGS_OF_ONE: u64 = 1;
/// The same for several directives: their headers are further ones for every GPU, and save less.
const MEETINGS_OF_SEVERAL: u64 = 4;
const ADDS_LITTLE: &str = "the headers have few more bytes than those of a shorter beginning";
const FIRST_MEETING: &str = "no other source with the same first headers was met before";

/// Which headers are precompiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmMode {
    Off,
    /// Clang's own, which it includes into every HIP source.
    Implicit,
    /// Also the include directives at the beginning of a source, as far as several sources have them.
    Auto,
}

impl WarmMode {
    /// The mode that the settings ask for.
    ///
    /// # Errors
    /// [`hotswap_report::codes::USAGE`] or `BAD_CONFIG` for another word.
    pub fn of_settings(settings: &OptionValues) -> Result<Self, Diagnostic> {
        let Some(setting) = settings.get(OptionId::WarmHeaders) else { return Ok(Self::Off) };
        match settings.text(OptionId::WarmHeaders)? {
            None | Some("off") => Ok(Self::Off),
            Some("implicit") => Ok(Self::Implicit),
            Some("auto") => Ok(Self::Auto),
            Some(_) => Err(setting.reject("it is none of off, implicit and auto")),
        }
    }
}

/// A command for which headers may be warm.
#[derive(Debug, Clone, Copy)]
pub struct WarmRequest<'r> {
    pub mode: WarmMode,
    pub command: &'r ClangCommand,
    /// Clang's command without warm headers.
    pub launch: &'r LaunchCommand,
    /// The command is not run, and no header is made.
    pub is_dry: bool,
}

/// The answer about a command.
#[derive(Debug)]
pub enum WarmHeaders {
    /// They are not asked for.
    Off,
    /// They are asked for, and the command is left as it is, for this reason.
    LeftAlone(String),
    /// They would be made.
    Planned,
    Used(WarmUse),
}

/// Warm headers that a command uses.
#[derive(Debug)]
pub struct WarmUse {
    /// Arguments for clang, before the user's.
    pub words: Vec<OsString>,
    set: HeaderSet,
    root: PathBuf,
}

impl WarmHeaders {
    /// The headers for a command, which are made if they are missing.
    pub fn prepare_headers(request: &WarmRequest<'_>) -> Self {
        if request.mode == WarmMode::Off {
            return Self::Off;
        }
        request.find_headers().unwrap_or_else(Self::LeftAlone)
    }

    /// The headers in use.
    pub fn in_use(&self) -> Option<&WarmUse> {
        if let Self::Used(used) = self { Some(used) } else { None }
    }

    /// One line for `--hotswap-explain`.
    pub fn explanation(&self) -> Option<String> {
        match self {
            Self::Off => None,
            Self::LeftAlone(reason) => Some(format!("none, {reason}")),
            Self::Planned => Some("would be made".to_owned()),
            Self::Used(used) => Some(format!("from {}", used.set.directory.display())),
        }
    }
}

impl WarmUse {
    /// Runs clang's command with these headers; its exit code. `None`, without a message, where the run without them must decide: the
    /// headers may be the reason of a failure, or messages are theirs. Those about a header name the file with our prefix instead of
    /// the source; a terminal gets clang's messages from clang.
    ///
    /// # Errors
    /// Those of starting clang.
    pub fn run(&self, launch: &LaunchCommand) -> Result<Option<i32>, Diagnostic> {
        let exec::SilentRun { code, messages } = exec::run_silently(launch)?;
        let is_clangs = messages.is_empty() || !messages.names_file_in(&self.root) && !io::stderr().is_terminal();
        if !is_clangs || code != 0 && self.set.is_outdated() {
            return Ok(None);
        }
        messages.show();
        Ok(Some(code))
    }

    /// Takes the headers of ours out of the dependencies that clang wrote: a build must not depend on them.
    ///
    /// # Errors
    /// Those of reading and writing the file.
    pub fn complete_dependencies(&self, output: &DependencyOutput) -> Result<(), Diagnostic> {
        output.leave_out_directory(&self.root)
    }
}

impl WarmRequest<'_> {
    fn find_headers(&self) -> Result<WarmHeaders, String> {
        self.check_command()?;
        let words = self.expanded_words()?;
        let printed = self.printed_commands()?;
        let front_ends = front_ends::parse_front_ends(&printed)?;
        self.check_dependencies(&words, &front_ends)?;
        let id = front_ends.iter().find_map(|one| one.unit_id.as_deref());
        let id_words = unit_id::words_that_keep_id(&words, DRY_RUN, id)?;
        let store = HeaderStore::open()?;
        let Some(set) = self.find_set(&store, &front_ends)? else { return Ok(WarmHeaders::Planned) };
        let mut words: Vec<OsString> = ["-Xclang", "-include-pch", "-Xclang"].map(OsString::from).into();
        words.push(set.directory.clone().into());
        words.extend(id_words);
        Ok(WarmHeaders::Used(WarmUse { words, set, root: store.root().to_owned() }))
    }

    fn check_command(&self) -> Result<(), String> {
        let command = self.command;
        let reason = match () {
            () if !command.has_hip_source() => "the command has no HIP source",
            () if command.inputs.iter().any(|input| input.path == "-") => "the source is standard input",
            () if command.hip_sources().nth(1).is_some() => "the command has several sources",
            () if command.phase <= Phase::Front => "the command makes no code",
            () if command.rdc => "relocatable code has its functions in another order then",
            () => return Ok(()),
        };
        Err(reason.to_owned())
    }

    /// Our headers must not stay among the dependencies that a build reads.
    fn check_dependencies(&self, words: &[OsString], front_ends: &[FrontEnd]) -> Result<(), String> {
        const VARIABLES: [&str; 2] = ["DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES"];
        let output = DependencyOutput::new(self.command, words).and_then(|output| output.path);
        let has_others = output.is_none() && front_ends.iter().any(|front_end| front_end.has_dependencies);
        if has_others || VARIABLES.iter().any(|name| std::env::var_os(name).is_some()) {
            return Err("dependencies are written where they are not found again".to_owned());
        }
        Ok(())
    }

    /// All arguments, response files expanded.
    fn expanded_words(&self) -> Result<Vec<OsString>, String> {
        let mut words: Vec<OsString> = Vec::new();
        for word in &self.launch.words {
            match word {
                ClangArgument::Plain(word) => words.push(word.clone()),
                ClangArgument::Listed(list) => words.extend_from_slice(list),
            }
        }
        let expanded = hotswap_files::expand_response_files(&words).map_err(|error| error.to_string())?;
        Ok(expanded.into_iter().map(|word| word.text).collect())
    }

    /// The commands that clang's driver would run.
    fn printed_commands(&self) -> Result<Vec<u8>, String> {
        let mut launch = self.launch.clone();
        launch.words.insert(0, ClangArgument::Plain(DRY_RUN.into()));
        launch.verbose = false;
        let printed = exec::run_for_messages(&launch).map_err(|error| error.to_string())?;
        if printed.code == 0 { Ok(printed.text) } else { Err("clang refuses the command".to_owned()) }
    }

    /// The headers of the longest prefix that is worth them; `None` where they would be made.
    fn find_set(&self, store: &HeaderStore, front_ends: &[FrontEnd]) -> Result<Option<HeaderSet>, String> {
        let leading = self.leading_directives();
        let mut refused = None;
        for prefix in leading.beginnings() {
            match self.set_of_prefix(store, front_ends, &prefix) {
                Ok(Some(set)) => return Ok(Some(set)),
                Ok(None) => {}
                Err(reason) => refused = Some(reason),
            }
        }
        let own = Prefix::default();
        match store.find_ready_set(front_ends, &own)? {
            Some(set) => Ok(Some(set)),
            None if self.is_dry => Ok(None),
            // The next source with the same headers is worth theirs.
            None if refused.is_none() && !leading.directives.is_empty() => Err(FIRST_MEETING.to_owned()),
            None => store.make_set(front_ends, &own).map(Some),
        }
    }

    /// The headers of a prefix, if they are made or worth it.
    fn set_of_prefix(
        &self,
        store: &HeaderStore,
        front_ends: &[FrontEnd],
        prefix: &Prefix,
    ) -> Result<Option<HeaderSet>, String> {
        let ready = store.find_ready_set(front_ends, prefix)?;
        if ready.is_some() || self.is_dry {
            return Ok(ready);
        }
        let needed = if prefix.directives.len() == 1 { MEETINGS_OF_ONE } else { MEETINGS_OF_SEVERAL };
        if store.note_meeting(front_ends, prefix) < needed {
            return Ok(None);
        }
        let shorter =
            prefix.shorter_beginnings().find_map(|shorter| store.find_ready_set(front_ends, &shorter).ok()?);
        match shorter {
            Some(shorter) if store.adds_little(front_ends, prefix, &shorter) => Err(ADDS_LITTLE.to_owned()),
            _ => store.make_set(front_ends, prefix).map(Some),
        }
    }

    /// The include directives at the beginning of the source, where they may be precompiled.
    fn leading_directives(&self) -> Prefix {
        let source = self.command.hip_sources().next().filter(|_| self.mode == WarmMode::Auto);
        let Some(path) = source.map(|source| Path::new(&source.path)) else { return Prefix::default() };
        let text = std::fs::read(path).ok();
        let directory = path.parent().unwrap_or(Path::new(""));
        text.map_or_else(Prefix::default, |text| Prefix::leading_directives(&text, directory))
    }
}
