//! The command line of a device link: finds and removes HotSwap's arguments, finds the output.

use crate::counter_names::Renamer;
use hotswap_files::{ExpandedArgument, expand_response_files};
use hotswap_plan::words::{COUNTER_NAMES, PLAN, PREFIX};
use hotswap_plan::{PLAN_OPTIONS, Plan};
use hotswap_report::{Diagnostic, codes};
use rustix::fs::MemfdFlags;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// An expanded command line.
pub(crate) struct CommandLine<'a> {
    original: &'a [OsString],
    expanded: Vec<ExpandedArgument>,
    /// Words that the real tool does not get.
    left_out: Vec<&'static str>,
}

/// Arguments for the real tool, and the response files (in memory) that they name.
pub(crate) struct Stripped {
    pub(crate) words: Vec<OsString>,
    /// Inherited by the child; closed when this is dropped.
    _files: Vec<File>,
}

/// The change of one argument.
#[derive(PartialEq, Eq)]
enum ArgumentChange {
    Kept,
    Replaced(OsString),
    Removed,
}

pub(crate) fn is_ours(word: &OsStr) -> bool {
    word.as_bytes().starts_with(PREFIX.as_bytes())
}

impl<'a> CommandLine<'a> {
    pub(crate) fn new(original: &'a [OsString]) -> Result<Self, Diagnostic> {
        Ok(Self { original, expanded: expand_response_files(original)?, left_out: Vec::new() })
    }

    /// The same without these words, which must be no values of options.
    pub(crate) fn without(self, words: Vec<&'static str>) -> Self {
        Self { left_out: words, ..self }
    }

    /// Whether the command line has a word that is left out.
    pub(crate) fn leaves_out(&self, word: &'static str) -> bool {
        self.left_out.contains(&word) && self.expanded.iter().any(|one| one.text == word)
    }

    /// Whether the real tool does not get a word.
    pub(crate) fn removes(&self, word: &OsStr) -> bool {
        is_ours(word) || self.left_out.iter().any(|one| word == *one)
    }

    /// Every argument, response files expanded.
    pub(crate) fn words(&self) -> impl Iterator<Item = &OsStr> {
        self.expanded.iter().map(|word| word.text.as_os_str())
    }

    /// Whether HotSwap's arguments are present: this is a device link of a build with a plan.
    pub(crate) fn is_marked(&self) -> bool {
        self.words().any(is_ours)
    }

    /// Whether one of HotSwap's arguments is about a plan.
    pub(crate) fn has_plan_words(&self) -> bool {
        self.words().any(|word| is_ours(word) && word != COUNTER_NAMES)
    }

    /// The plan's hash, if the arguments contain one.
    pub(crate) fn token(&self) -> Result<Option<String>, Diagnostic> {
        let mut tokens: Vec<_> =
            self.words().filter_map(|w| w.to_str()?.strip_prefix(PLAN)).map(str::to_owned).collect();
        tokens.sort();
        tokens.dedup();
        match tokens.len() {
            0 | 1 => Ok(tokens.pop()),
            _ => Err(Diagnostic::error(codes::PLAN_CONFLICT, tokens.join(" and "))),
        }
    }

    /// Whether the plan covers the arguments' requests. The wrapper has ensured that, except for arguments in clang's
    /// own configuration files, which it does not read.
    pub(crate) fn agree_with(&self, plan: &Plan) -> Result<(), Diagnostic> {
        let mut asked = plan.clone();
        for word in self.words().filter_map(OsStr::to_str) {
            for option in PLAN_OPTIONS {
                word.strip_prefix(option.argument).map_or(Ok(()), |value| (option.set)(&mut asked, value))?;
            }
        }
        if asked == *plan {
            return Ok(());
        }
        Err(Diagnostic::error(codes::PLAN_CONFLICT, "words that the wrapper did not see ask for more than the plan")
            .advise("write them on the command line, not into a configuration file of clang"))
    }

    /// The arguments without HotSwap's, with the inputs replaced whose counter names must be separated. The
    /// replacements are in memory: a file on disk would be left over when the process is killed.
    pub(crate) fn stripped(&self) -> Result<Stripped, Diagnostic> {
        let mut renamer = self.has(&[COUNTER_NAMES]).then(Renamer::default);
        self.changed(&mut |word, stripped| {
            if self.removes(word) {
                return Ok(ArgumentChange::Removed);
            }
            let renamed = renamer.as_mut().map(|renamer| renamer.apart(word)).transpose()?.flatten();
            renamed.map_or(Ok(ArgumentChange::Kept), |content| {
                Ok(ArgumentChange::Replaced(stripped.keep(in_memory(&content))?))
            })
        })
    }

    /// The arguments with those replaced for which there is a replacement.
    pub(crate) fn rewritten(&self, replacement: &dyn Fn(&OsStr) -> Option<OsString>) -> Result<Stripped, Diagnostic> {
        self.changed(&mut |word, _| Ok(replacement(word).map_or(ArgumentChange::Kept, ArgumentChange::Replaced)))
    }

    /// The arguments with each changed; a response file with changes is replaced by one in memory.
    fn changed(
        &self,
        change: &mut dyn FnMut(&OsStr, &mut Stripped) -> Result<ArgumentChange, Diagnostic>,
    ) -> Result<Stripped, Diagnostic> {
        let mut stripped = Stripped { words: Vec::new(), _files: Vec::new() };
        for (index, original) in self.original.iter().enumerate() {
            let (mut kept, mut is_changed) = (Vec::new(), false);
            for word in self.expanded.iter().filter(|word| word.index == index) {
                let change = change(&word.text, &mut stripped)?;
                is_changed |= change != ArgumentChange::Kept;
                match change {
                    ArgumentChange::Kept => kept.push(word.text.clone()),
                    ArgumentChange::Replaced(new) => kept.push(new),
                    ArgumentChange::Removed => {}
                }
            }
            if !is_changed {
                stripped.words.push(original.clone());
            } else if original.as_bytes().starts_with(b"@") {
                let file = stripped.keep(response_file(kept.iter().map(OsString::as_os_str)))?;
                stripped.words.push([OsStr::new("@"), &file].iter().copied().collect());
            } else {
                stripped.words.append(&mut kept);
            }
        }
        Ok(stripped)
    }

    /// The output of a GNU-style linker: the last `-o`, else `a.out`.
    pub(crate) fn output(&self) -> PathBuf {
        self.value_of(&["-o", "--output"]).unwrap_or_else(|| "a.out".into()).into()
    }

    /// The last value of an option written `-o V`, `-oV`, `--name V`, `--name=V` or `-name=V`.
    pub(crate) fn value_of(&self, names: &[&str]) -> Option<OsString> {
        self.values_of(names).pop()
    }

    /// Every value of such an option, in their order.
    pub(crate) fn values_of(&self, names: &[&str]) -> Vec<OsString> {
        let mut values = Vec::new();
        let mut words = self.words();
        while let Some(word) = words.next() {
            for name in names {
                match word.as_bytes().strip_prefix(name.as_bytes()) {
                    Some([]) => values.extend(words.next().map(OsStr::to_owned)),
                    Some([b'=', rest @ ..]) if name.len() > 2 => values.push(OsStr::from_bytes(rest).to_owned()),
                    Some(rest) if name.len() == 2 => values.push(OsStr::from_bytes(rest).to_owned()),
                    _ => continue,
                }
                break;
            }
        }
        values
    }

    /// Whether one of the arguments is present.
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.words().any(|word| names.iter().any(|name| word == *name))
    }
}

impl Stripped {
    /// The name by which the child reads a file that it inherits.
    fn keep(&mut self, file: std::io::Result<File>) -> Result<OsString, Diagnostic> {
        let file = file.map_err(|error| Diagnostic::cannot_write("a file in memory", error))?;
        let name = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
        self._files.push(file);
        Ok(name)
    }
}

pub(crate) fn in_memory(content: &[u8]) -> std::io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("hotswap-input", MemfdFlags::empty())?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file)
}

/// A response file without a name; the child reads it through the inherited descriptor.
pub(crate) fn response_file<'a>(words: impl Iterator<Item = &'a OsStr>) -> std::io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("hotswap-response", MemfdFlags::empty())?);
    for word in words {
        // GNU quoting: a backslash keeps the next byte unchanged.
        let quoted: Vec<u8> = word
            .as_bytes()
            .iter()
            .flat_map(|byte| match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b'\\' | b'\'' | b'"' => vec![b'\\', *byte],
                _ => vec![*byte],
            })
            .collect();
        file.write_all(if quoted.is_empty() { b"''" } else { &quoted })?;
        file.write_all(b"\n")?;
    }
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[&str]) -> Vec<OsString> {
        text.iter().map(OsString::from).collect()
    }

    #[test]
    fn our_words_go_and_the_others_stay() {
        let args = words(&["-shared", "--hotswap-plan=12ab", "-o", "x", "--hotswap-retarget=a=>b", "i.o"]);
        let line = CommandLine::new(&args).unwrap();
        assert!(line.is_marked());
        assert_eq!(line.token().unwrap().as_deref(), Some("12ab"));
        assert_eq!(line.stripped().unwrap().words, words(&["-shared", "-o", "x", "i.o"]));
    }

    #[test]
    fn words_that_are_left_out_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.rsp");
        std::fs::write(&path, "--no-undefined i.o").unwrap();
        let args = words(&["--hotswap-plan=1", &format!("@{}", path.display()), "--no-undefined", "-shared"]);
        let line = CommandLine::new(&args).unwrap();
        assert!(!line.leaves_out("--no-undefined"));
        let line = line.without(vec!["--no-undefined"]);
        let stripped = line.stripped().unwrap();
        let texts: Vec<_> = expand_response_files(&stripped.words).unwrap().into_iter().map(|word| word.text).collect();
        assert_eq!(texts, words(&["i.o", "-shared"]));
        assert!(line.leaves_out("--no-undefined") && !line.leaves_out("-shared"));
    }

    #[test]
    fn a_response_file_is_copied_without_our_words() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.rsp");
        std::fs::write(&path, "--hotswap-plan=1 'a b' \"c\\\"d\" ''").unwrap();
        let args = vec![OsString::from(format!("@{}", path.display())), "-r".into()];
        let stripped = CommandLine::new(&args).unwrap().stripped().unwrap();
        let again = expand_response_files(&stripped.words).unwrap();
        let texts: Vec<_> = again.iter().map(|word| word.text.to_str().unwrap()).collect();
        // Empty quotes are no argument in a response file, as for LLVM.
        assert_eq!(texts, ["a b", "c\"d", "-r"]);
    }

    #[test]
    fn the_last_output_counts_in_every_spelling() {
        for (text, output) in
            [(&["-o", "x", "--output=y"][..], "y"), (&["-ox"], "x"), (&["--output", "z"], "z"), (&["i.o"], "a.out")]
        {
            assert_eq!(CommandLine::new(&words(text)).unwrap().output(), PathBuf::from(output), "{text:?}");
        }
        let args = words(&["-type=o", "-output=b"]);
        assert_eq!(CommandLine::new(&args).unwrap().value_of(&["-output"]).unwrap(), "b");
    }

    #[test]
    fn words_that_the_plan_does_not_hold_are_refused() {
        let mut plan = Plan::default();
        plan.add_pairs("gfx1030=>gfx1031,gfx1032").unwrap();
        for (word, agrees) in [
            ("--hotswap-plan=1", true),
            ("--hotswap-retarget=gfx1030=>gfx1032", true),
            ("--hotswap-policy=error", true),
            ("--hotswap-retarget=gfx1030=>gfx1033", false),
            ("--hotswap-patches=target_note", false),
            ("--hotswap-policy=keep", false),
            ("--hotswap-names=compile", true),
            ("--hotswap-names=derive", false),
            ("--hotswap-allow=experimental", false),
        ] {
            let found = CommandLine::new(&words(&[word, "-shared"])).unwrap().agree_with(&plan);
            assert_eq!(found.is_ok(), agrees, "{word}: {found:?}");
        }
    }

    #[test]
    fn two_plans_in_one_command_are_refused() {
        let args = words(&["--hotswap-plan=1", "--hotswap-plan=2"]);
        assert_eq!(CommandLine::new(&args).unwrap().token().unwrap_err().code, codes::PLAN_CONFLICT);
    }
}
