//! Runs of the real clang over the sources of a command.

use super::{module, overlay};
use crate::command::ClangCommand;
use hotswap_files::reads;
use hotswap_report::Diagnostic;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::sync::OnceLock;

/// More text than any translation unit has; longer output is not compared.
const TEXT_LIMIT: u64 = 1 << 30;

/// Arguments that would leave files, stop before the preprocessor is done, or hide which files it reads.
const LEFT_OUT: &[&str] = &[
    "--save-temps",
    "-save-temps",
    "-ftime-trace",
    "-ftime-report",
    "-emit-llvm",
    // It drops the markers of files that have nothing but macros.
    "-fminimize-whitespace",
];
/// The same, with a separate value.
const LEFT_OUT_WITH_VALUE: &[&str] = &["-MJ", "-gen-cdb-fragment-path", "-dumpdir", "-dumpbase", "-MF", "-MT", "-MQ"];
/// Arguments for a dependency file, which is up to the command itself, those that print one instead of the text, and
/// `-P`, which drops the line markers.
const DEPENDENCIES: &[&str] = &[
    "-M",
    "-MD",
    "-MG",
    "-MM",
    "-MMD",
    "-MP",
    "-MV",
    "-P",
    "--dependencies",
    "--no-line-commands",
    "--user-dependencies",
    "--write-dependencies",
    "--write-user-dependencies",
];
/// The same with a joined value.
const DEPENDENCIES_JOINED: &[&str] = &["-MF", "-MT", "-MQ", "-MJ"];

/// A compiler with the arguments of one command, response files expanded and HotSwap's removed.
#[derive(Debug)]
pub struct Preprocessor<'a> {
    pub clang: &'a Path,
    /// The argument that selects the called driver mode.
    pub mode: Option<&'static str>,
    pub words: &'a [OsString],
    /// The arguments in clang's configuration files, which clang adds itself.
    pub configured: &'a [OsString],
    /// The first answer that could not be read.
    pub(super) unread: UnreadAnswer,
}

/// The reason why an answer of clang's is missing: clang could not be started, or its answer could not be read. It is kept apart
/// from the answers, so that no conclusion from a missing one stands.
#[derive(Debug, Default)]
pub(super) struct UnreadAnswer(OnceLock<Diagnostic>);

impl UnreadAnswer {
    /// Keeps the first reason. `None` for all that depends on the answer.
    pub(super) fn note<T>(&self, why: Diagnostic) -> Option<T> {
        let _ = self.0.set(why);
        None
    }

    /// # Errors
    /// The reason, if an answer is missing.
    pub(super) fn check(&self) -> Result<(), Diagnostic> {
        self.0.get().map_or(Ok(()), |why| Err(why.clone()))
    }
}

/// The arguments of a command that compile one of its sources.
#[derive(Debug)]
pub(super) struct CompileCommand {
    pub(super) words: Vec<OsString>,
    /// The source, if it is the preprocessor's output.
    pub(super) preprocessed: Option<PathBuf>,
}

impl<'a> Preprocessor<'a> {
    /// For a command with these arguments; clang adds the `configured` ones itself.
    pub fn new(clang: &'a Path, mode: Option<&'static str>, words: &'a [OsString], configured: &'a [OsString]) -> Self {
        Self { clang, mode, words, configured, unread: UnreadAnswer::default() }
    }
}

impl Preprocessor<'_> {
    /// One for each HIP source of the command.
    pub(super) fn programs(&self) -> Vec<CompileCommand> {
        let command = crate::command::scan(self.words);
        command
            .hip_sources()
            .map(|source| CompileCommand {
                words: words_of(self.words, &command, source.word),
                preprocessed: source.is_preprocessed.then(|| PathBuf::from(&source.path)),
            })
            .collect()
    }

    /// The program's text for that GPU. `first` precedes the user's arguments.
    pub(super) fn text(&self, program: &CompileCommand, id: &str, first: &[OsString]) -> Option<Vec<u8>> {
        self.output(&self.device_words(program, id, first, &["-E", "-o", "-"]))
    }

    /// The program's text for that GPU, or clang's messages where the preprocessor does not accept it.
    /// `first` precedes the user's arguments.
    pub(super) fn checked_text(
        &self,
        program: &CompileCommand,
        id: &str,
        first: &[OsString],
    ) -> Option<Result<Vec<u8>, String>> {
        let last = [&["-E", "-o", "-"][..], &overlay::MESSAGES].concat();
        let words = self.device_words(program, id, first, &last);
        let output = match hotswap_files::command_output(&mut clang(self.clang, &words)) {
            Ok(output) => output,
            Err(error) => return self.unread.note(reads::unread_file(self.clang, &error)),
        };
        if output.status.success() {
            return ((output.stdout.len() as u64) < TEXT_LIMIT).then_some(Ok(output.stdout));
        }
        Some(Err(String::from_utf8_lossy(&output.stderr).into_owned()))
    }

    /// A text for each program; `None` where one cannot be made.
    pub(super) fn texts(&self, programs: &[CompileCommand], id: &str) -> Option<Vec<Vec<u8>>> {
        programs.iter().map(|program| self.text(program, id, &[])).collect()
    }

    /// The texts of all programs for that GPU, as far as the preprocessor comes; one that it refuses is marked.
    pub(super) fn attempts(&self, programs: &[CompileCommand], id: &str, first: &[OsString]) -> Vec<Vec<u8>> {
        programs.iter().map(|one| attempt_preprocessing(one, self, id, first)).collect()
    }

    /// Clang's messages about a program that it cannot preprocess.
    pub(super) fn complaints(&self, program: &CompileCommand, id: &str, first: &[OsString]) -> Option<String> {
        let words = self.device_words(program, id, first, &["-E", "-o", "/dev/null"]);
        match hotswap_files::command_output(&mut clang(self.clang, &words)) {
            Ok(said) => Some(String::from_utf8_lossy(&said.stderr).into_owned()),
            Err(error) => self.unread.note(reads::unread_file(self.clang, &error)),
        }
    }

    /// A hash of each program's LLVM IR from the front end, without the name of its GPU.
    ///
    /// The device libraries are left out: those of siblings differ in the name alone,
    /// which retargeting takes into account.
    pub(super) fn modules(&self, programs: &[CompileCommand], id: &str) -> Option<Vec<[u8; 32]>> {
        let words = ["-nogpulib", "-emit-llvm", "-S", "-Xclang", "-disable-llvm-passes", "-fuse-cuid=none", "-o", "-"];
        let texts = programs.iter().map(|program| self.output(&self.device_words(program, id, &[], &words)));
        texts.map(|text| module::hash_without_target(&text?, id)).collect()
    }

    /// The front end's LLVM IR of preprocessed text in a file, as text, with the options that the program has for that GPU. `further`
    /// are arguments for the front end.
    pub(super) fn module_of_preprocessed(
        &self,
        program: &CompileCommand,
        id: &str,
        file: &Path,
        further: &[OsString],
    ) -> Option<Vec<u8>> {
        let last =
            ["-###", "-nogpulib", "-emit-llvm", "-S", "-Xclang", "-disable-llvm-passes", "-fuse-cuid=none", "-o", "-"];
        let words = self.device_words(program, id, &[], &last);
        let printed = match hotswap_files::command_output(&mut clang(self.clang, &words)) {
            Ok(printed) => printed.stderr,
            Err(error) => return self.unread.note(reads::unread_file(self.clang, &error)),
        };
        let line = printed.split(|byte| *byte == b'\n').find(|line| line.windows(6).any(|part| part == b"\"-cc1\""))?;
        let mut words = hotswap_files::tokenize_gnu(line).into_iter();
        let front_end = PathBuf::from(words.next()?);
        let words = words_for_preprocessed(words, further, file);
        match read(&front_end, &words) {
            Ok(output) => Some(output).filter(|output| output.is_whole).map(|output| output.text),
            Err(error) => self.unread.note(reads::unread_file(&front_end, &error)),
        }
    }

    /// The macros that clang predefines for that GPU.
    pub(super) fn macros(&self, id: &str) -> PredefinedMacros {
        let arch = format!("--offload-arch={id}");
        let words = ["-nogpuinc", "-nogpulib", &arch, "--offload-device-only", "-E", "-dM", "-x", "hip", "/dev/null"];
        let Some(found) = self.read(&words.map(OsString::from)) else { return PredefinedMacros::Unread };
        if found.is_refused {
            return PredefinedMacros::UnknownGpu;
        }
        match String::from_utf8(found.text) {
            Ok(text) if found.is_whole => PredefinedMacros::Known(text.lines().map(str::to_owned).collect()),
            _ => PredefinedMacros::Unread,
        }
    }

    /// Clang's output with those arguments; `None` if it fails. The compilation repeats its messages.
    fn output(&self, words: &[OsString]) -> Option<Vec<u8>> {
        self.read(words).filter(|read| read.is_whole).map(|read| read.text)
    }

    fn read(&self, words: &[OsString]) -> Option<ClangOutput> {
        match read(self.clang, words) {
            Ok(output) => Some(output),
            Err(error) => self.unread.note(reads::unread_file(self.clang, &error)),
        }
    }

    fn device_words(&self, program: &CompileCommand, id: &str, first: &[OsString], last: &[&str]) -> Vec<OsString> {
        let mut words: Vec<OsString> = self.mode.iter().map(OsString::from).collect();
        words.extend_from_slice(first);
        // The last of several outputs wins. `-w`: a warning is not a difference, also not with -Werror. A command that asks for a
        // bundle would start clang's bundler for a single text.
        let arch = format!("--offload-arch={id}");
        let mut behind: Vec<OsString> =
            ["--no-offload-arch=all", &arch, "--offload-device-only", "--no-gpu-bundle-output", "-w"]
                .map(Into::into)
                .into();
        behind.extend(last.iter().map(OsString::from));
        // After `--` every argument is an input.
        let end = program.words.iter().position(|word| word == "--").unwrap_or(program.words.len());
        words.extend_from_slice(&program.words[..end]);
        words.extend(behind);
        words.extend_from_slice(&program.words[end..]);
        words
    }
}

/// A front end's arguments for another input, which is preprocessed: macros and files before the source are in its text.
fn words_for_preprocessed(words: impl Iterator<Item = OsString>, further: &[OsString], file: &Path) -> Vec<OsString> {
    const IN_THE_TEXT: [&str; 5] = ["-D", "-U", "-include", "-imacros", "-include-pch"];
    let mut kept = Vec::new();
    let mut words = words;
    while let Some(word) = words.next() {
        let is_joined = ["-D", "-U"].iter().any(|start| word.as_bytes().starts_with(start.as_bytes()));
        if word == "-x" {
            // The language; the input follows it.
            words.nth(1);
        } else if IN_THE_TEXT.iter().any(|one| word == *one) {
            words.next();
        } else if !is_joined {
            kept.push(word);
        }
    }
    kept.extend_from_slice(further);
    kept.extend(["-x".into(), "hip-cpp-output".into(), file.as_os_str().to_owned()]);
    kept
}

fn attempt_preprocessing(
    program: &CompileCommand,
    preprocessor: &Preprocessor<'_>,
    id: &str,
    first: &[OsString],
) -> Vec<u8> {
    let read = preprocessor.read(&preprocessor.device_words(program, id, first, &["-E", "-o", "-"]));
    let (text, is_whole) = read.map_or((Vec::new(), false), |read| (read.text, read.is_whole));
    if is_whole { text } else { [&text[..], b"\n// refused\n"].concat() }
}

/// The command's arguments with a single input, and without those that leave files.
fn words_of(words: &[OsString], command: &ClangCommand, source: usize) -> Vec<OsString> {
    let mut kept = Vec::with_capacity(words.len());
    let mut skip = false;
    for (at, word) in words.iter().enumerate() {
        let text = word.to_string_lossy();
        let goes = skip || is_other_input_word(at, command, source) || is_left_out(&text);
        skip = !skip && LEFT_OUT_WITH_VALUE.contains(&text.as_ref());
        if !goes && !skip {
            kept.push(word.clone());
        }
    }
    kept
}

fn is_other_input_word(at: usize, command: &ClangCommand, source: usize) -> bool {
    command.inputs.iter().any(|input| input.word == at && at != source)
}

fn is_left_out(text: &str) -> bool {
    DEPENDENCIES.contains(&text)
        || is_joined_dependency_option(text)
        || LEFT_OUT.iter().any(|start| text.starts_with(start))
}

fn is_joined_dependency_option(text: &str) -> bool {
    DEPENDENCIES_JOINED.iter().any(|start| text.len() > start.len() && text.starts_with(start))
}

fn clang(clang: &Path, words: &[OsString]) -> Process {
    let mut process = Process::new(clang);
    process.args(words).env_remove("COMPILER_PATH").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    process
}

/// Standard output of a run of clang.
struct ClangOutput {
    text: Vec<u8>,
    /// It succeeded, and nothing was cut.
    is_whole: bool,
    /// Clang ended with an error of its own.
    is_refused: bool,
}

/// The answer to a question for the macros of a GPU.
pub(super) enum PredefinedMacros {
    /// Each of the lines is a definition.
    Known(Vec<String>),
    /// Clang does not know the GPU.
    UnknownGpu,
    /// Clang could not be run, was ended by a signal, or its answer could not be read.
    Unread,
}

fn read(program: &Path, words: &[OsString]) -> io::Result<ClangOutput> {
    let mut child = clang(program, words).stdout(Stdio::piped()).spawn()?;
    let mut text = Vec::new();
    let output = child.stdout.take().ok_or_else(|| io::Error::other("clang has no output"))?;
    let read = output.take(TEXT_LIMIT).read_to_end(&mut text);
    let status = child.wait()?;
    read?;
    let is_whole = status.success() && (text.len() as u64) < TEXT_LIMIT;
    let is_refused = status.code().is_some_and(|code| code != 0);
    Ok(ClangOutput { text, is_whole, is_refused })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_is_asked_alone_and_leaves_nothing_behind() {
        let words = "-O2 a.hip b.o -MJ x.json -MD -MF x.d -MTx.o -save-temps=obj main.cpp -x hip c.cpp -lm -o x";
        let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        let preprocessor = Preprocessor::new(Path::new("clang"), None, &words, &[]);
        let programs = preprocessor.programs();
        let shown: Vec<String> = programs
            .iter()
            .map(|program| program.words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(shown, ["-O2 a.hip -x hip -lm -o x", "-O2 -x hip c.cpp -lm -o x"]);
    }

    #[test]
    fn the_text_of_one_gpu_is_no_bundle_where_the_command_asks_for_one() {
        let words: Vec<OsString> = ["--gpu-bundle-output", "a.hip"].map(OsString::from).into();
        let preprocessor = Preprocessor::new(Path::new("clang"), None, &words, &[]);
        let program = CompileCommand { words: words.clone(), preprocessed: None };
        let made = preprocessor.device_words(&program, "gfx1030", &[], &["-E"]);
        let last = made.iter().rfind(|word| word.to_string_lossy().ends_with("gpu-bundle-output"));
        assert_eq!(last.unwrap(), "--no-gpu-bundle-output");
    }

    #[test]
    fn words_of_ours_stand_in_front_of_the_inputs_that_two_dashes_begin() {
        let words: Vec<OsString> = ["-O2", "--", "-a.hip"].map(OsString::from).into();
        let preprocessor = Preprocessor::new(Path::new("clang"), None, &words, &[]);
        let program = CompileCommand { words: words.clone(), preprocessed: None };
        let made = preprocessor.device_words(&program, "gfx1030", &[], &["-E"]);
        assert_eq!(made.last().unwrap(), "-a.hip");
        assert!(made.iter().position(|word| word == "-E") < made.iter().position(|word| word == "--"));
    }
}
