//! The front ends of a command: the `-cc1` lines that clang's driver prints for `-###`, one for the host and one for each GPU.
//!
//! Invariant: everything about a compilation is read from these lines, which are what clang executes, not guessed from the user's
//! arguments.
//!
//! Absent on purpose: linkers, bundlers and assemblers, which headers do not concern.

use crate::emission_witness;
use hotswap_files::tokenize_gnu;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The arguments by which a front end is told what to do with the program.
const ACTIONS: &[&str] = &["-emit-obj", "-emit-llvm-bc", "-emit-llvm", "-S"];
/// Arguments of one compilation, with a value, that do not concern its headers.
const OWN_WITH_VALUE: &[&str] = &[
    "-o",
    "-main-file-name",
    "-dependency-file",
    "-MT",
    "-fcuda-include-gpubinary",
    "-foffload-include-binary",
    "-dumpdir",
    "-split-dwarf-output",
];
/// The same without a value, or with a joined one.
const OWN: &[&str] = &[
    "-sys-header-deps",
    "-MP",
    "-MG",
    "-MV",
    "-module-file-deps",
    "-cuid=",
    "-object-file-name=",
    "-fembed-offload-object=",
    // Names of directories in debug information and coverage: where they have an effect, headers of their own are no gain.
    "-fdebug-compilation-dir=",
    "-fcoverage-compilation-dir=",
];
/// The header that clang's driver includes into every HIP source.
const OWN_HEADER: &str = "__clang_hip_runtime_wrapper.h";
/// An argument with which a command is left alone.
struct UnsuitedWord {
    start: &'static str,
    reason: &'static str,
}

const fn unsuited_word(start: &'static str, reason: &'static str) -> UnsuitedWord {
    UnsuitedWord { start, reason }
}

/// Arguments, by how they begin, under which the text or the output may depend on how headers were read; each with the reason.
#[rustfmt::skip]
const UNSUITED: &[UnsuitedWord] = &[
    unsuited_word("-include-pch", "the command has a precompiled header of its own"),
    unsuited_word("-imacros", "macros are read before the source"),
    unsuited_word("-fmodule", "modules are in use"),
    unsuited_word("-fimplicit-module", "modules are in use"),
    unsuited_word("-load", "a plugin of clang's sees the program"),
    unsuited_word("-plugin", "a plugin of clang's sees the program"),
    unsuited_word("-add-plugin", "a plugin of clang's sees the program"),
    unsuited_word("-ivfsoverlay", "files are seen through an overlay"),
    unsuited_word("-working-directory", "names of files are relative to another directory"),
    unsuited_word("-ftime-trace", "the time of each header is traced"),
    unsuited_word("-header-include-file", "the headers are printed as they are read"),
    unsuited_word("-sys-header-deps-only", "the headers are printed as they are read"),
    unsuited_word("-H", "the headers are printed as they are read"),
    unsuited_word("-Wsystem-headers", "warnings about headers are wanted"),
    unsuited_word("-Weverything", "warnings about headers are wanted"),
    unsuited_word("-verify", "messages of clang's are compared"),
    unsuited_word("-serialize-diagnostic-file", "messages of clang's go to a file"),
    unsuited_word("-diagnostic-log-file", "messages of clang's go to a file"),
    unsuited_word("-diagnostics-format", "messages of clang's have another form"),
];

/// One line with `-cc1`, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FrontEnd {
    /// The program that the driver starts.
    pub(super) program: PathBuf,
    /// The arguments that concern every source alike, `-cc1` first and the action among them.
    pub(super) words: Vec<OsString>,
    /// The source's ID that the driver gives to this compilation.
    pub(super) unit_id: Option<String>,
    /// It writes a dependency file.
    pub(super) has_dependencies: bool,
    /// Where headers are searched for, in order.
    pub(super) directories: Vec<PathBuf>,
}

/// All front ends of a command, from the text of `-###`.
///
/// # Errors
/// The reason why one of them is left alone.
pub(super) fn parse_front_ends(text: &[u8]) -> Result<Vec<FrontEnd>, String> {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b" \""));
    let commands = lines.map(tokenize_gnu).filter(|words| words.get(1).is_some_and(|word| word == "-cc1"));
    let found: Vec<FrontEnd> = commands.map(parse_front_end).collect::<Result<_, _>>()?;
    if found.is_empty() { Err("the command compiles nothing".to_owned()) } else { Ok(found) }
}

fn parse_front_end(line: Vec<OsString>) -> Result<FrontEnd, String> {
    let mut words = line.into_iter();
    let program = PathBuf::from(words.next().unwrap_or_default());
    let mut front_end =
        FrontEnd { program, words: Vec::new(), unit_id: None, has_dependencies: false, directories: Vec::new() };
    let mut language = None;
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        check_word(&text)?;
        if text == "-x" {
            language = words.next();
            // The input is last.
            words.next();
            continue;
        }
        if text == "-mllvm" {
            let value = words.next().unwrap_or_default();
            if !emission_witness::is_own_word(&value.to_string_lossy()) {
                front_end.words.extend([word, value]);
            }
            continue;
        }
        if let Some(id) = text.strip_prefix("-cuid=") {
            front_end.unit_id = Some(id.to_owned());
        }
        front_end.has_dependencies |= text == "-dependency-file";
        if OWN_WITH_VALUE.contains(&text.as_str()) {
            words.next();
        } else if !OWN.iter().any(|own| text.starts_with(own)) {
            check_no_temporary_file(&text)?;
            front_end.add_word(word, &text, &mut words)?;
        }
    }
    if language.is_none_or(|language| language != "hip") {
        return Err("the command compiles something beside HIP sources, or one that is preprocessed".to_owned());
    }
    if !front_end.words.iter().any(is_action) {
        return Err("the command makes no code".to_owned());
    }
    Ok(front_end)
}

fn check_word(word: &str) -> Result<(), String> {
    let found = UNSUITED.iter().find(|unsuited| word.starts_with(unsuited.start));
    found.map_or(Ok(()), |unsuited| Err(format!("{} ({word})", unsuited.reason)))
}

/// A file that is another one in each run, in an argument that is not known here: headers would be made again and again.
fn check_no_temporary_file(word: &str) -> Result<(), String> {
    let directory = std::env::temp_dir();
    let value = word.rsplit_once('=').map_or(word, |(_, value)| value);
    match Path::new(value).parent() {
        Some(parent) if parent == directory => Err(format!("a temporary file is among the arguments ({word})")),
        _ => Ok(()),
    }
}

fn is_action(word: &OsString) -> bool {
    ACTIONS.iter().any(|action| word == action)
}

impl FrontEnd {
    fn add_word(
        &mut self,
        word: OsString,
        text: &str,
        rest: &mut impl Iterator<Item = OsString>,
    ) -> Result<(), String> {
        const DIRECTORIES: [&str; 7] =
            ["-internal-isystem", "-internal-externc-isystem", "-isystem", "-idirafter", "-iquote", "-I", "-c-isystem"];
        self.words.push(word);
        if text == "-include" {
            let value = rest.next().unwrap_or_default();
            if value != OWN_HEADER {
                return Err(format!("a file is included before the source (-include {})", value.display()));
            }
            self.words.push(value);
        } else if DIRECTORIES.contains(&text) {
            let value = rest.next().unwrap_or_default();
            self.directories.push(PathBuf::from(&value));
            self.words.push(value);
        } else if let Some(joined) = text.strip_prefix("-I") {
            self.directories.push(PathBuf::from(joined));
        }
        Ok(())
    }

    /// The arguments with another action.
    pub(super) fn words_with_action(&self, action: &str) -> Vec<OsString> {
        self.words.iter().map(|word| if is_action(word) { action.into() } else { word.clone() }).collect()
    }

    /// The arguments without those by which one GPU is another one than the next; those of the host are whole.
    pub(super) fn words_of_any_gpu(&self) -> Vec<OsString> {
        const OF_ONE_GPU: [&str; 4] = ["-target-cpu", "-target-feature", "-triple", "-mlink-builtin-bitcode"];
        if !self.words.iter().any(|word| word == "-fcuda-is-device") {
            return self.words.clone();
        }
        let mut words = Vec::new();
        let mut rest = self.words.iter();
        while let Some(word) = rest.next() {
            if OF_ONE_GPU.iter().any(|one| word == one) {
                rest.next();
            } else {
                words.push(word.clone());
            }
        }
        words
    }

    /// Whether a directory's name means another one elsewhere.
    pub(super) fn has_relative_directory(&self) -> bool {
        self.directories.iter().any(|directory| directory.is_relative())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#" "/usr/bin/clang" "-cc1" "-triple" "amdgcn-amd-amdhsa" "-emit-obj" "-main-file-name" "a b.hip" "-D" "X=\"1\"" "-I" "inc" "-include" "__clang_hip_runtime_wrapper.h" "-cuid=12ab" "-o" "/tmp/x.o" "-x" "hip" "a b.hip""#;

    #[test]
    fn the_arguments_of_one_compilation_are_left_out() {
        let text = format!("clang version 22\n{LINE}\n \"/usr/bin/lld\" \"-shared\"\n");
        let found = parse_front_ends(text.as_bytes()).unwrap();
        assert_eq!(found.len(), 1);
        let words: Vec<_> = found[0].words.iter().map(|word| word.to_str().unwrap()).collect();
        let expected =
            "-cc1 -triple amdgcn-amd-amdhsa -emit-obj -D X=\"1\" -I inc -include __clang_hip_runtime_wrapper.h";
        assert_eq!(words.join(" "), expected);
        assert_eq!(found[0].unit_id.as_deref(), Some("12ab"));
        assert_eq!(found[0].words_of_any_gpu(), found[0].words, "the host's");
        assert_eq!(found[0].directories, [PathBuf::from("inc")]);
        assert!(found[0].has_relative_directory());
        assert_eq!(found[0].words_with_action("-emit-pch")[3], "-emit-pch");
    }

    #[test]
    fn a_line_that_headers_may_change_is_left_alone_with_the_reason() {
        for (from, to, reason) in [
            ("\"-D\"", "\"-include-pch\"", "precompiled header"),
            ("__clang_hip_runtime_wrapper.h", "mine.h", "included before"),
            ("\"hip\"", "\"c++\"", "beside HIP"),
            ("\"-emit-obj\"", "\"-fsyntax-only\"", "no code"),
            ("\"-D\"", "\"-fmodules\"", "modules"),
            ("\"-D\"", &format!("\"-unknown={}/x.o\"", std::env::temp_dir().display()), "temporary file"),
        ] {
            let error = parse_front_ends(LINE.replace(from, to).as_bytes()).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        assert!(parse_front_ends(b"clang: error: no input files\n").is_err());
    }
}
