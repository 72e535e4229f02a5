//! Dependency files (`-MD`, `-M`) that name the files of every GPU's text: clang's own name those of the host's.
//!
//! Invariants: clang's rule stays as it is, and names follow that it lacks. A file that is not the expected rule is left
//! unchanged.
//!
//! Absent on purpose: quoting for NMake (`-MV`), and files that are named behind `-Wp,`.

use crate::command::ClangCommand;
use crate::flags;
use crate::source_text::IncludedFiles;
use hotswap_files::reads;
use hotswap_report::Diagnostic;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The dependencies that a command writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependencyOutput {
    /// The file; standard output without one.
    pub path: Option<PathBuf>,
    /// They are the output instead of the text or code (`-M`).
    pub is_output: bool,
    with_system: bool,
    with_phony_targets: bool,
}

impl DependencyOutput {
    /// The dependencies that a command with these arguments writes, if any.
    pub fn new(command: &ClangCommand, words: &[OsString]) -> Option<Self> {
        let flags = plain_flags(words);
        let is_output = has_any_flag(&["-M", "-MM", "--dependencies", "--user-dependencies"], &flags);
        if !is_output && !has_any_flag(&["-MD", "-MMD", "--write-dependencies", "--write-user-dependencies"], &flags) {
            return None;
        }
        let named = flags.iter().rev().find_map(|PlainFlag { name: flag, value }| match value {
            Some(value) if *flag == "-MF" => Some(value.clone()),
            _ => flag.as_bytes().strip_prefix(b"-MF").filter(|joined| !joined.is_empty()).map(os_string),
        });
        let path = match named {
            Some(path) => Some(PathBuf::from(path)),
            None if is_output => command.output.clone().map(PathBuf::from),
            None => Some(beside_output(command)?),
        };
        Some(Self {
            path: path.filter(|path| path != Path::new("-")),
            is_output,
            with_system: !has_any_flag(&["-MM", "-MMD", "--user-dependencies", "--write-user-dependencies"], &flags),
            with_phony_targets: has_any_flag(&["-MP"], &flags),
        })
    }

    /// Adds to the file what it lacks.
    ///
    /// # Errors
    /// Those of reading and writing it.
    pub fn complete_file(&self, files: &IncludedFiles) -> Result<(), Diagnostic> {
        let Some(path) = &self.path else { return Ok(()) };
        // A device, or a file that clang did not write: it has other names for it where there are several sources.
        if !reads::is_regular(path)? {
            return Ok(());
        }
        let old = hotswap_files::read_file(path)?;
        let new = self.complete(&old, files);
        if new == old { Ok(()) } else { hotswap_files::replace_like(path, &new, path) }
    }

    /// Takes the names of files in a directory out of the file.
    ///
    /// # Errors
    /// Those of reading and writing it.
    pub fn leave_out_directory(&self, directory: &Path) -> Result<(), Diagnostic> {
        let Some(path) = &self.path else { return Ok(()) };
        if !reads::is_regular(path)? {
            return Ok(());
        }
        let old = hotswap_files::read_file(path)?;
        let new = without_directory(&old, directory);
        if new == old { Ok(()) } else { hotswap_files::replace_like(path, &new, path) }
    }

    /// The rules with what the first of them lacks.
    pub fn complete(&self, rules: &[u8], files: &IncludedFiles) -> Vec<u8> {
        let Some(rule) = Rule::first(rules) else { return rules.to_vec() };
        let known = rule.names();
        let missing: BTreeSet<Vec<u8>> = files
            .names(self.with_system)
            .map(|name| without_leading_dot(&name).to_vec())
            .filter(|name| !known.contains(name))
            .collect();
        let mut text = rules[..rule.end].to_vec();
        for name in &missing {
            text.extend([b" \\\n  ", &escape(name)[..]].concat());
        }
        text.extend(&rules[rule.end..]);
        if self.with_phony_targets {
            missing.iter().for_each(|name| text.extend([&escape(name)[..], b":\n"].concat()));
        }
        text
    }
}

/// The names in the first rule, its targets with their colon among them.
pub(crate) fn names_of_first_rule(rules: &[u8]) -> BTreeSet<Vec<u8>> {
    Rule::first(rules).map(|rule| rule.names()).unwrap_or_default()
}

/// The rules without the names of files in a directory, as dependencies and as targets.
fn without_directory(rules: &[u8], directory: &Path) -> Vec<u8> {
    let start = [&escape(directory.as_os_str().as_bytes())[..], b"/"].concat();
    let mut text = Vec::with_capacity(rules.len());
    let mut rest = rules;
    while let Some(at) = rest.windows(start.len()).position(|window| window == start) {
        let is_name = at == 0 || rest[at - 1].is_ascii_whitespace();
        let end = (at + start.len()..rest.len()).find(|end| ends_name(rest, *end)).unwrap_or(rest.len());
        let is_target = rest[at..end].ends_with(b":");
        if !is_name {
            text.extend(&rest[..end]);
        } else if is_target {
            text.extend(&rest[..at]);
        } else {
            text.extend(trim_before_name(&rest[..at]));
        }
        rest = &rest[if is_name && is_target { (end + 1).min(rest.len()) } else { end }..];
    }
    text.extend(rest);
    text
}

/// Whether a name is over before that byte.
fn ends_name(text: &[u8], at: usize) -> bool {
    text[at] == b'\n' || text[at].is_ascii_whitespace() && text[at - 1] != b'\\'
}

/// A rule up to a name, without the blanks or the continued line before it.
fn trim_before_name(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii_end();
    text.strip_suffix(b"\\").map_or(text, <[u8]>::trim_ascii_end)
}

/// A flag of the command.
struct PlainFlag<'w> {
    name: &'w OsStr,
    /// Its value, where that is an argument of its own.
    value: Option<OsString>,
}

fn has_any_flag(names: &[&str], flags: &[PlainFlag<'_>]) -> bool {
    names.iter().any(|name| flags.iter().any(|flag| flag.name == *name))
}

/// The arguments that are flags, with a separate value.
fn plain_flags(words: &[OsString]) -> Vec<PlainFlag<'_>> {
    let mut flags = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| *word != "--") {
        at += 1;
        let values = flags::find(word.as_bytes()).map_or(0, |found| found.values);
        if word.as_bytes().starts_with(b"-") {
            let value = if values == 1 { words.get(at).cloned() } else { None };
            flags.push(PlainFlag { name: word.as_os_str(), value });
        }
        at += values;
    }
    flags
}

/// Clang's name for the file: that of the output, or of the source in the working directory.
fn beside_output(command: &ClangCommand) -> Option<PathBuf> {
    if let Some(output) = &command.output {
        return Some(Path::new(output).with_extension("d"));
    }
    let source = command.hip_sources().next()?;
    Some(Path::new(Path::new(&source.path).file_stem()?).with_extension("d"))
}

/// A rule of make.
struct Rule<'t> {
    text: &'t [u8],
    /// Before the line's end.
    end: usize,
}

impl<'t> Rule<'t> {
    /// The first rule, which clang 22 writes between lines of a bundle.
    fn first(rules: &'t [u8]) -> Option<Self> {
        let mut start = 0;
        loop {
            let line = rules[start..].split(|byte| *byte == b'\n').next()?;
            if !line.is_empty() && !line.starts_with(b"#") {
                break;
            }
            start += line.len() + 1;
            if start >= rules.len() {
                return None;
            }
        }
        let end = (start..rules.len())
            .find(|at: &usize| rules[*at] == b'\n' && (*at == 0 || rules[*at - 1] != b'\\'))
            .unwrap_or(rules.len());
        Some(Self { text: &rules[start..end], end })
    }

    /// Its names, targets as well.
    fn names(&self) -> BTreeSet<Vec<u8>> {
        let mut names = BTreeSet::new();
        let mut name = Vec::new();
        let mut bytes = self.text.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            match byte {
                b'\\' if bytes.peek().is_some_and(|next| b" #\n".contains(next)) => match bytes.next() {
                    Some(b'\n') | None => {}
                    Some(escaped) => name.push(escaped),
                },
                b'$' if bytes.peek() == Some(&b'$') => name.extend(bytes.next()),
                b' ' | b'\n' | b'\t' => {
                    names.insert(std::mem::take(&mut name));
                }
                other => name.push(other),
            }
        }
        names.insert(name);
        names
    }
}

/// A name as clang writes it into rules.
fn escape(name: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(name.len());
    for byte in name {
        match byte {
            b' ' | b'#' => text.push(b'\\'),
            b'$' => text.push(b'$'),
            _ => {}
        }
        text.push(*byte);
    }
    text
}

/// Clang names no file with a leading `./`.
fn without_leading_dot(mut name: &[u8]) -> &[u8] {
    while let Some(rest) = name.strip_prefix(b"./") {
        name = rest;
        while let Some(rest) = name.strip_prefix(b"/") {
            name = rest;
        }
    }
    name
}

fn os_string(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::scan;

    fn output(text: &str) -> Option<DependencyOutput> {
        let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
        DependencyOutput::new(&scan(&words), &words)
    }

    #[test]
    fn the_file_is_where_clang_writes_it() {
        for (words, expected) in [
            ("-c a.hip -MD -MF x.d", Some("x.d")),
            ("-c a.hip -MD -MFx.d", Some("x.d")),
            ("-c a.hip -MMD -o dir/a.hip.o", Some("dir/a.hip.d")),
            ("-c dir/a.hip -MD", Some("a.d")),
            ("-M a.hip -o x", Some("x")),
            ("-M a.hip -MF y -o x", Some("y")),
            ("-M a.hip", None),
        ] {
            assert_eq!(output(words).unwrap().path.as_deref(), expected.map(Path::new), "{words}");
        }
        for words in ["-c a.hip", "-c a.hip -MF x.d", "-c a.hip -include -MD", "-c -- -MD a.hip"] {
            assert_eq!(output(words), None, "{words}");
        }
        assert!(output("-M a.hip").unwrap().is_output && !output("-MD -E a.hip").unwrap().is_output);
    }

    fn files() -> IncludedFiles {
        let mut files = IncludedFiles::default();
        files.add_text(b"# 1 \"./b c$.h\" 1\n# 1 \"known.h\" 1\n# 1 \"/s.h\" 1 3\n", b"");
        files
    }

    fn rules_without(rules: &str) -> String {
        String::from_utf8(without_directory(rules.as_bytes(), Path::new("/c d"))).unwrap()
    }

    #[test]
    fn the_names_in_a_directory_are_left_out() {
        assert_eq!(rules_without("a.o: a.hip /c\\ d/x.pch \\\n  b.h\n"), "a.o: a.hip \\\n  b.h\n");
        assert_eq!(rules_without("a.o: a.hip \\\n  /c\\ d/1/x.pch \\\n  b.h\nb.h:\n"), "a.o: a.hip \\\n  b.h\nb.h:\n");
        assert_eq!(rules_without("a.o: a.hip \\\n  b.h \\\n  /c\\ d/x.pch\n"), "a.o: a.hip \\\n  b.h\n");
        assert_eq!(rules_without("a.o: a.hip\nb.h:\n/c\\ d/x.pch:\nd.h:\n"), "a.o: a.hip\nb.h:\nd.h:\n");
        assert_eq!(rules_without("a.o: /e/c\\ d/x.pch /c\\ dd/x\n"), "a.o: /e/c\\ d/x.pch /c\\ dd/x\n");
    }

    #[test]
    fn a_rule_gets_the_names_that_it_lacks() {
        let complete = |flags: &str, rules: &str| {
            String::from_utf8(output(flags).unwrap().complete(rules.as_bytes(), &files())).unwrap()
        };
        assert_eq!(
            complete("-MD -c a.hip", "a.o: a.hip \\\n  known.h\n"),
            "a.o: a.hip \\\n  known.h \\\n  /s.h \\\n  b\\ c$$.h\n"
        );
        assert_eq!(complete("-MMD -c a.hip", "a.o: known.h b\\ c$$.h\n"), "a.o: known.h b\\ c$$.h\n");
        assert_eq!(
            complete("-MMD -MP -c a.hip", "a.o: a.hip known.h\nknown.h:\n"),
            "a.o: a.hip known.h \\\n  b\\ c$$.h\nknown.h:\nb\\ c$$.h:\n"
        );
        assert_eq!(
            complete("-MM a.hip", "\n# __START__ x\na.o: known.h\n\n# __END__ x\n"),
            "\n# __START__ x\na.o: known.h \\\n  b\\ c$$.h\n\n# __END__ x\n"
        );
        assert_eq!(complete("-MM a.hip", "\n# only this\n"), "\n# only this\n");
    }
}
