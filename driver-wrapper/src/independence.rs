//! Whether a program's text is the same for all GPUs of a class: the preprocessor is asked.
//!
//! In a first run every name that differs between the GPUs is poisoned (`#pragma GCC poison`), so
//! that the preprocessor stops where the text asks for one of them, in an `#ifdef` and in a name
//! that is pasted together, too. A text that runs through is the same for all. One that does not
//! may ask in vain, or ask the same for all of them: then it is made for each GPU and compared.
//! The names are clang's own: its predefined macros for each GPU are compared, once for each
//! compiler and class.
//!
//! Invariants: whatever goes wrong in here means "not the same"; nothing is left behind; texts that
//! are the same but for an instruction that the compiler resolves per GPU (`__builtin_amdgcn_processor_is`,
//! `.amdgcn.gfx_generation_*` in assembly) count as different.
//!
//! Absent on purpose: clang's own configuration files, whose words these runs read as the compilation does.

use crate::store;
use crate::toolchain;
use hotswap_compat::Class;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names that are the same for every GPU and mean something else.
const RESOLVED_LATE: [&str; 3] =
    ["__builtin_amdgcn_processor_is", "__builtin_amdgcn_is_invocable", "__oclc_ISA_version"];
/// Parts of assembly that mean something else for every GPU: predefined symbols of the assembler (of code objects
/// from V3 on, and before), and the directive that names it.
const IN_ASSEMBLY: [&str; 3] = ["gfx_generation", "machine_version", "amdgcn_target"];
/// What a line of the header begins with.
const POISON: &str = "#pragma GCC poison ";
/// More text than any translation unit has; what is longer is not compared.
const TEXT_LIMIT: u64 = 1 << 30;

/// A compiler with the words of one command, response files expanded and ours removed.
#[derive(Debug)]
pub struct Preprocessor<'a> {
    /// The real clang.
    pub clang: &'a Path,
    /// What makes it the driver that was called.
    pub mode: Option<&'static str>,
    /// The words.
    pub words: &'a [OsString],
}

impl Preprocessor<'_> {
    /// Whether code for every GPU of the class comes from the same text.
    pub fn same_text(&self, class: &Class) -> bool {
        class.features.iter().all(|features| {
            let source = format!("{}{features}", class.source);
            let others: Vec<String> = class.others.iter().map(|other| format!("{other}{features}")).collect();
            self.asks_nothing(&source, &others) || self.equal_texts(&source, &others)
        })
    }

    fn asks_nothing(&self, source: &str, others: &[String]) -> bool {
        let Some(header) = self.poison(source, others) else { return false };
        // A macro that was defined before a name was poisoned may still expand to it, and those of the words are.
        let named = |name: &str| self.words.iter().any(|word| word.to_string_lossy().contains(name));
        if fs::read_to_string(&header).map_or(true, |text| text.lines().filter_map(poisoned).any(named)) {
            return false;
        }
        // In front of the user's words, and as macros: what `-imacros` and `-include` name is read in that order.
        // Without line markers, which say nothing here, the run takes 15 % less.
        let poison = ["-imacros".into(), header.into_os_string(), "-P".into()];
        self.text(source, &poison).is_some_and(|text| !resolved_late(&text))
    }

    fn equal_texts(&self, source: &str, others: &[String]) -> bool {
        let Some(text) = self.text(source, &[]).filter(|text| !resolved_late(text)) else { return false };
        others.iter().all(|other| self.text(other, &[]).as_ref() == Some(&text))
    }

    /// The program's text for that GPU.
    fn text(&self, arch: &str, first: &[OsString]) -> Option<Vec<u8>> {
        let mut words: Vec<OsString> = self.mode.iter().map(OsString::from).collect();
        words.extend_from_slice(first);
        words.extend_from_slice(self.words);
        let arch = format!("--offload-arch={arch}");
        // The last of several outputs wins. `-w`: a warning is no difference, nor is it with -Werror.
        words.extend(["--no-offload-arch=all", &arch, "--offload-device-only", "-w", "-E", "-o", "-"].map(Into::into));
        if writes_dependencies(self.words) {
            words.extend(["-MF", "/dev/null"].map(Into::into));
        }
        output(self.clang, &words)
    }

    /// A header that poisons what differs between the GPUs.
    fn poison(&self, source: &str, others: &[String]) -> Option<PathBuf> {
        let key = format!("{} {source} {}", toolchain::key(self.clang).ok()?, others.join(" "));
        let file = store::folder("coalesce").ok()?.join(format!("{}.h", store::name_for(&key)));
        let head = format!("// {key}\n");
        if fs::read_to_string(&file).is_ok_and(|text| text.starts_with(&head)) {
            return Some(file);
        }
        let names = self.differing(source, others)?;
        let lines = names.iter().map(|name| format!("{POISON}{name}\n"));
        store::put(&file, (head + &lines.collect::<String>()).as_bytes()).ok()?;
        Some(file)
    }

    /// Names of macros that are not predefined alike, and those that the compiler resolves.
    fn differing(&self, source: &str, others: &[String]) -> Option<BTreeSet<String>> {
        let macros = |arch: &String| {
            let arch = format!("--offload-arch={arch}");
            let words =
                ["-nogpuinc", "-nogpulib", &arch, "--offload-device-only", "-E", "-dM", "-x", "hip", "/dev/null"];
            let text = output(self.clang, &words.map(OsString::from))?;
            let text = String::from_utf8(text).ok()?;
            Some(text.lines().map(str::to_owned).collect::<BTreeSet<String>>())
        };
        let own = macros(&source.to_owned())?;
        let mut names: BTreeSet<String> = RESOLVED_LATE.into_iter().map(str::to_owned).collect();
        for other in others {
            let lines = macros(other)?;
            // `#define NAME VALUE` or `#define NAME(PARAMETERS) VALUE`.
            let name = |line: &String| Some(line.strip_prefix("#define ")?.split([' ', '(']).next()?.to_owned());
            names.extend(own.symmetric_difference(&lines).map(name).collect::<Option<Vec<_>>>()?);
        }
        Some(names)
    }
}

/// The name that a line of the header poisons.
fn poisoned(line: &str) -> Option<&str> {
    line.strip_prefix(POISON)
}

/// Flags after which clang writes a file about dependencies that the compilation itself is to write.
fn writes_dependencies(words: &[OsString]) -> bool {
    words.iter().any(|word| word == "-MD" || word == "-MMD" || word.as_encoded_bytes().starts_with(b"-MF"))
}

fn resolved_late(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    RESOLVED_LATE.iter().chain(&IN_ASSEMBLY).any(|part| text.contains(part))
}

/// What clang prints with those words; `None` if it fails. What it has to say is said again by the compilation.
fn output(clang: &Path, words: &[OsString]) -> Option<Vec<u8>> {
    let mut command = Command::new(clang);
    command.args(words).env_remove("COMPILER_PATH").stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).spawn().ok()?;
    let mut text = Vec::new();
    let read = child.stdout.take()?.take(TEXT_LIMIT).read_to_end(&mut text);
    let status = child.wait().ok()?;
    (read.is_ok() && status.success() && (text.len() as u64) < TEXT_LIMIT).then_some(text)
}
