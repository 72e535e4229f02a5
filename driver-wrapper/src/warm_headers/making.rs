//! Makes the precompiled header of one front end, and finds out whether it may be used: by the compiler itself, not by lists of options.
//!
//! A precompiled header is used only if a program of our own, which has what compilers treat in turn (virtual functions, templates,
//! functions that are emitted when they are first used), becomes the same object with it and without it, byte for byte; if its
//! headers say nothing while they are read; and if they leave nothing when they are included a second time, as the source does. The
//! program is compiled for one GPU of those that have the same options and read the same headers: the order of functions is not the GPU's.
//!
//! Invariant: the answer, with its reason, is recorded beside the header, so that it is found out once.
//!
//! Absent on purpose: where the files are, and who makes them first ([`super::store`]).

use super::fingerprint::Fingerprint;
use super::front_ends::FrontEnd;
use super::prefix::Prefix;
use hotswap_files::ScratchDirectory;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The beginnings of reasons that are likely to stay: others are those of the moment.
pub(super) const LASTING: [&str; 6] =
    [DIFFERS, MESSAGES, REPEATED, RELATIVE, OWN_NAME, "the headers do not compile alone"];
const DIFFERS: &str = "with these options clang makes another object of the same program";
const MESSAGES: &str = "the headers have messages of their own";
const RELATIVE: &str = "a header is found through a relative directory, whose name messages and dependencies have";
const OWN_NAME: &str = "a header has the name of a file in the cache";
const REPEATED: &str = "a header has text for a second inclusion";
/// A program in which the order of functions, weak functions and instances of templates may show.
const PROBE: &str = include_str!("probe.hip");

/// A header that is to be made.
pub(super) struct HeaderMaking<'m> {
    pub(super) front_end: &'m FrontEnd,
    pub(super) prefix: &'m Prefix,
    /// The source with the prefix alone; clang looks for it wherever the header is used.
    pub(super) source: &'m Path,
    /// The precompiled header that is written.
    pub(super) output: &'m Path,
    /// The headers with which clang made the same object for another GPU with the same options.
    pub(super) proven: Option<&'m Fingerprint>,
}

impl HeaderMaking<'_> {
    /// Makes the header; the state of the files that it was made of.
    ///
    /// # Errors
    /// The reason why it is not to be used.
    pub(super) fn make_header(&self) -> Result<Fingerprint, String> {
        let scratch = ScratchDirectory::temporary("hotswap-warm-headers-").map_err(|error| error.to_string())?;
        // The state is taken before the header is made and must hold after it: what changes meanwhile is in one of the two.
        let headers = self.headers_read("-E", scratch.path(), None)?;
        let fingerprint = Fingerprint::of_headers(&headers, &self.front_end.directories)?;
        let made_of = self.headers_read("-emit-pch", scratch.path(), Some(self.output))?;
        if made_of != headers || !fingerprint.still_holds(&mut BTreeSet::new()) {
            return Err("the headers changed while they were read".to_owned());
        }
        self.check_second_inclusion()?;
        if !self.proven.is_some_and(|proven| proven.has_same_files(&fingerprint)) {
            self.check_equal_objects(scratch.path())?;
        }
        Ok(fingerprint)
    }

    /// The headers that the prefix reads.
    ///
    /// # Errors
    /// The reason why it is not to be used.
    pub(super) fn headers_of_prefix(&self) -> Result<BTreeSet<PathBuf>, String> {
        let scratch = ScratchDirectory::temporary("hotswap-warm-headers-").map_err(|error| error.to_string())?;
        self.headers_read("-E", scratch.path(), None)
    }

    /// Runs the front end with an action; the files that it read, without our own.
    fn headers_read(&self, action: &str, scratch: &Path, output: Option<&Path>) -> Result<BTreeSet<PathBuf>, String> {
        let dependencies = scratch.join("headers.d");
        let mut words = self.front_end.words_with_action(action);
        words.extend(["-sys-header-deps", "-MT", "x", "-dependency-file"].map(OsString::from));
        words.push(dependencies.clone().into());
        let made = self.run_front_end(words, self.source, output)?;
        if !made.stderr.is_empty() {
            return Err(reason_with_message(MESSAGES, &made));
        }
        let rules = fs::read(dependencies).map_err(|error| error.to_string())?;
        let names = crate::dependencies::names_of_first_rule(&rules);
        let paths = names.into_iter().filter(|name| !name.is_empty() && name != b"x:");
        let paths = paths.map(|name| PathBuf::from(OsString::from_vec(name)));
        let headers: BTreeSet<PathBuf> = paths.filter(|path| path != self.source).collect();
        // A name with quotes is searched beside our source first.
        let own = self.source.parent();
        if headers.iter().any(|header| own.is_some_and(|own| header.starts_with(own))) {
            return Err(OWN_NAME.to_owned());
        }
        // A precompiled header names it by its whole path.
        if headers.iter().any(|header| header.is_relative()) { Err(RELATIVE.to_owned()) } else { Ok(headers) }
    }

    /// The source includes the headers again: nothing may come of it.
    fn check_second_inclusion(&self) -> Result<(), String> {
        if self.prefix.directives.is_empty() {
            return Ok(());
        }
        let mut words = self.front_end.words_with_action("-E");
        words.push("-P".into());
        words.extend(self.words_of_header());
        let printed = self.run_front_end(words, self.source, None)?.stdout;
        if printed.trim_ascii().is_empty() { Ok(()) } else { Err(REPEATED.to_owned()) }
    }

    /// The arguments by which the front end reads the header.
    fn words_of_header(&self) -> [OsString; 2] {
        [OsStr::new("-include-pch"), self.output.as_os_str()].map(OsStr::to_owned)
    }

    fn check_equal_objects(&self, scratch: &Path) -> Result<(), String> {
        let source = scratch.join("probe.hip");
        write_source(&source, [&self.prefix.source_text(), PROBE].concat().as_bytes())?;
        let plain = self.object_of_probe(&source, &scratch.join("plain.o"), &[])?;
        let warm = self.object_of_probe(&source, &scratch.join("warm.o"), &self.words_of_header())?;
        if plain == warm {
            return Ok(());
        }
        Err(DIFFERS.to_owned())
    }

    fn object_of_probe(&self, source: &Path, output: &Path, further: &[OsString]) -> Result<Vec<u8>, String> {
        // No one reads the warnings about this program, and with -Werror they would be errors.
        let words = [&self.front_end.words[..], further, &["-w".into()]].concat();
        self.run_front_end(words, source, Some(output))?;
        fs::read(output).map_err(|error| error.to_string())
    }

    /// Runs the front end for a source of ours.
    fn run_front_end(&self, mut words: Vec<OsString>, source: &Path, output: Option<&Path>) -> Result<Output, String> {
        words.extend(["-main-file-name".into(), source.file_name().unwrap_or_default().to_owned(), "-o".into()]);
        words.push(output.map_or_else(|| "-".into(), |output| output.as_os_str().to_owned()));
        words.extend(["-x".into(), "hip".into(), source.as_os_str().to_owned()]);
        let mut command = Command::new(&self.front_end.program);
        command.args(words).env_remove("COMPILER_PATH");
        let output = hotswap_files::command_output(&mut command).map_err(|error| error.to_string())?;
        if output.status.success() {
            Ok(output)
        } else {
            Err(reason_with_message("the headers do not compile alone", &output))
        }
    }
}

fn write_source(path: &Path, text: &[u8]) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// A reason with clang's first message.
fn reason_with_message(what: &str, output: &Output) -> String {
    let first = output.stderr.split(|byte| *byte == b'\n').find(|line| !line.is_empty()).unwrap_or_default();
    format!("{what}: {}", OsStr::from_bytes(first).display())
}
