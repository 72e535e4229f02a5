//! Names of functions that must be the same in a build with counters and in the one that uses them.
//!
//! In relocatable device code clang gives static kernels, and those of anonymous namespaces, a suffix: the hash of the
//! source's path and of all arguments of the command. The arguments for profiles differ between the two builds, so a
//! profile would never fit. Here the number itself is passed to clang (`-cuid=`), computed without these arguments. Other units
//! with counters get a number without HotSwap's paths, which differ between users.
//!
//! Absent on purpose: commands with several sources, which would all get one number; programs whose builds differ in
//! other arguments.

use crate::command::{ClangCommand, InputKind};
use crate::store;
use hotswap_files::reads;
use hotswap_report::Diagnostic;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Prefixes of arguments that request counters, or use them.
const PROFILE: &[&str] = &[
    "-fprofile-generate",
    "-fprofile-instr-generate",
    "-fcs-profile-generate",
    "-fprofile-use",
    "-fprofile-instr-use",
];
/// Prefixes of arguments that only a build with counters may have, or that name directories of a build.
const OTHER: &[&str] = &[
    "-fprofile",
    "-fno-profile",
    "-fcs-profile",
    "-fcoverage",
    "-fno-coverage",
    "-ftemporal-profile",
    "-W",
    "-w",
    "-O",
    "-I",
    "-L",
    "-M",
    "--start-no-unused",
    "--end-no-unused",
];
/// Arguments whose value is left out with them.
const WITH_VALUE: &[&str] =
    &["-I", "-L", "-MF", "-MT", "-MQ", "-isystem", "-iquote", "-idirafter", "-mllvm", "-Xoffload-linker"];

/// The argument that fixes the names, where the command needs one.
///
/// # Errors
/// [`hotswap_report::codes::CANNOT_READ`] with the file.
pub fn stable(command: &ClangCommand, words: &[OsString]) -> Result<Vec<OsString>, Diagnostic> {
    let is_profiled = words.iter().any(|word| word_begins_with(word, PROFILE));
    let Some(source) = only_unnumbered_source(command, words) else { return Ok(Vec::new()) };
    if !command.rdc || !is_profiled {
        return Ok(Vec::new());
    }
    let mut text = resolved_source(source)?;
    let mut words = words.iter().filter(|word| *word != source).peekable();
    while let Some(word) = words.next() {
        // `-Xarch_device -fprofile-…` are two arguments.
        let is_for = word.as_bytes().starts_with(b"-Xarch_");
        let is_for = is_for
            && words.peek().is_some_and(|next| word_begins_with(next, OTHER) || word_begins_with(next, &["-mllvm"]));
        if is_for || WITH_VALUE.iter().any(|own| word == own) {
            words.next();
        } else if !word_begins_with(word, OTHER) && !word_begins_with(word, &["-mllvm="]) {
            add_word(&mut text, word);
        }
    }
    Ok(number_words(&text))
}

/// The argument that fixes the number of a unit whose command gets paths of HotSwap's: that of the user's arguments alone, so that
/// the program does not depend on the home directory.
///
/// # Errors
/// [`hotswap_report::codes::CANNOT_READ`] with the file.
pub fn without_own_paths(command: &ClangCommand, words: &[OsString]) -> Result<Vec<OsString>, Diagnostic> {
    let Some(source) = only_unnumbered_source(command, words) else { return Ok(Vec::new()) };
    let mut text = resolved_source(source)?;
    words.iter().for_each(|word| add_word(&mut text, word));
    Ok(number_words(&text))
}

/// The source of a command with one, unless its number is given.
fn only_unnumbered_source<'c>(command: &'c ClangCommand, words: &[OsString]) -> Option<&'c OsString> {
    let mut sources = command.inputs.iter().filter(|input| input.kind == InputKind::Hip);
    let (Some(source), None) = (sources.next(), sources.next()) else { return None };
    let is_numbered = words.iter().any(|word| word_begins_with(word, &["-cuid=", "-fuse-cuid="]));
    (!is_numbered).then_some(&source.path)
}

fn resolved_source(source: &OsString) -> Result<String, Diagnostic> {
    let named = Path::new(source);
    Ok(reads::resolve_path(named)?.unwrap_or_else(|| named.to_owned()).display().to_string())
}

fn add_word(text: &mut String, word: &OsString) {
    text.push('\n');
    text.push_str(&word.to_string_lossy());
}

fn number_words(text: &str) -> Vec<OsString> {
    let number = format!("-cuid={}", &store::name_for(text)[..16]);
    ["--start-no-unused-arguments", &number, "--end-no-unused-arguments"].map(OsString::from).to_vec()
}

fn word_begins_with(word: &OsString, starts: &[&str]) -> bool {
    starts.iter().any(|s| word.as_bytes().starts_with(s.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::scan;

    fn number(line: &str) -> String {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let found = stable(&scan(&words), &words).unwrap();
        found.get(1).map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
    }

    #[test]
    fn a_number_without_our_paths_is_that_of_the_users_words() {
        let number = |line: &str| {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            without_own_paths(&scan(&words), &words).unwrap().get(1).cloned()
        };
        let one = number("-c a.hip -o a.o -fprofile-generate -Iinclude");
        assert!(one.is_some());
        assert_eq!(one, number("-c a.hip -o a.o -fprofile-generate -Iinclude"));
        // Two objects of one source are parts of one program.
        for other in ["-c a.hip -o b.o -fprofile-generate -Iinclude", "-c a.hip -o a.o -fprofile-generate -Iother"] {
            assert_ne!(one, number(other), "{other}");
        }
        for none in ["-c a.hip -cuid=1", "-c a.hip -fuse-cuid=none", "a.hip b.hip", "a.o"] {
            assert_eq!(number(none), None, "{none}");
        }
    }

    #[test]
    fn builds_with_and_for_counters_have_one_number() {
        let base = number("-fgpu-rdc -c a.hip -o a.o -fprofile-generate");
        assert!(base.starts_with("-cuid="), "{base}");
        for same in [
            "-fgpu-rdc -c a.hip -o a.o -fprofile-use=x.profdata",
            "-fgpu-rdc -O2 -fprofile-instr-generate -fcoverage-mapping -c a.hip -o a.o",
            "-I build -isystem other -MD -MF a.d -fgpu-rdc -Xarch_device -fprofile-use=y -c a.hip -o a.o",
            "-fgpu-rdc -mllvm -disable-vp -Wall -w -fprofile-generate=directory -c a.hip -o a.o",
            "-fgpu-rdc -Xoffload-linker --hotswap-plan=1 -c a.hip -o a.o -fprofile-use",
        ] {
            assert_eq!(number(same), base, "{same}");
        }
        for other in [
            "-fgpu-rdc -c b.hip -o a.o -fprofile-use=x.profdata",
            "-fgpu-rdc -c a.hip -o b.o -fprofile-use=x.profdata",
            "-fgpu-rdc -DX -c a.hip -o a.o -fprofile-use=x.profdata",
        ] {
            assert_ne!(number(other), base, "{other}");
        }
    }

    #[test]
    fn other_commands_stay_as_they_are() {
        for line in [
            "-c a.hip -fprofile-generate",
            "-fgpu-rdc -c a.hip -o a.o",
            "-fgpu-rdc a.hip b.hip -fprofile-generate",
            "-fgpu-rdc -c a.hip -fprofile-use=x -cuid=1",
            "-fgpu-rdc -c a.hip -fprofile-use=x -fuse-cuid=none",
            "-fgpu-rdc --hip-link a.o -fprofile-generate",
            "-c a.cpp -fprofile-use=x",
        ] {
            assert_eq!(number(line), "", "{line}");
        }
    }
}
