//! The words that the real clang gets.
//!
//! Invariant: the user's words stay as they are and where they are, also inside response files,
//! but for words of ours that name a plan, whose place a token takes;
//! what is added stands in front of them, because `-x` holds for every input that follows.

use crate::command::without_own;
use crate::judge::WithPlan;
use crate::manifest::Manifest;
use hotswap_files::expand;
use hotswap_plan::words::{CHANNEL, PLAN};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// A word for clang: as it is, or a list that goes into a response file without a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// One word.
    Plain(OsString),
    /// Words that stood in a response file.
    Listed(Vec<OsString>),
}

/// What is put in front of the user's words. `token`: the plan's hash is not among these.
pub fn added(plan: &WithPlan, manifest: Option<&Manifest>, token: bool) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    if token {
        // A command may have no use for the word (a link without device code); that is no
        // reason for a warning, which -Werror would make an error.
        words.push("--start-no-unused-arguments".into());
        words.push(CHANNEL.into());
        words.push(format!("{PLAN}{}", plan.hash).into());
        words.push("--end-no-unused-arguments".into());
    }
    if let Some(manifest) = manifest {
        for file in [&manifest.object, &manifest.archive] {
            // As words for the host linker: the old driver would look for device code in inputs.
            words.push("-Xlinker".into());
            words.push(file.into());
        }
    }
    words
}

/// The user's words without ours. A response file that holds such words is replaced by a list.
pub fn stripped(words: &[OsString]) -> Vec<Word> {
    let (kept, _) = without_own(words);
    let mut list: Vec<Word> = Vec::with_capacity(kept.len());
    for word in kept {
        let inside = if word.as_bytes().starts_with(b"@") { inside(&word) } else { None };
        list.push(inside.map_or(Word::Plain(word), Word::Listed));
    }
    list
}

/// The words of a response file without ours, if it holds any of ours.
fn inside(word: &OsStr) -> Option<Vec<OsString>> {
    let expanded: Vec<_> = expand(&[word.to_owned()]).into_iter().map(|word| word.text).collect();
    let (kept, removed) = without_own(&expanded);
    removed.then_some(kept)
}

/// The content of a response file with those words, in GNU quoting.
pub fn response(words: &[OsString]) -> Vec<u8> {
    let mut text = Vec::new();
    for word in words {
        text.push(b'"');
        for byte in word.as_bytes() {
            if matches!(byte, b'"' | b'\\') {
                text.push(b'\\');
            }
            text.push(*byte);
        }
        text.extend_from_slice(b"\"\n");
    }
    text
}

/// A command line as a shell would read it.
pub fn shell<'a>(words: impl IntoIterator<Item = &'a OsStr>) -> OsString {
    let quoted = words.into_iter().map(|word| match word.to_str() {
        Some(text) => shell_words::quote(text).into_owned().into_bytes(),
        // A shell's $'…' would be exact, but such names only have to be recognized here.
        None => word.as_bytes().to_vec(),
    });
    OsString::from_vec(quoted.collect::<Vec<_>>().join(&b' '))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_response_file_reads_back_as_the_words() {
        let dir = tempfile::tempdir().unwrap();
        let words: Vec<OsString> =
            ["a b", "", "q\"uo'te", "back\\slash", "new\nline", "@at", "ü"].map(Into::into).into();
        let path = dir.path().join("r");
        // `@at` names no file, so it stays the word it is.
        fs::write(&path, response(&words)).unwrap();
        let back = expand(&[format!("@{}", path.display()).into()]);
        assert_eq!(back.into_iter().map(|word| word.text).collect::<Vec<_>>(), words);
    }

    #[test]
    fn only_response_files_with_our_words_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| OsString::from(format!("@{}", dir.path().join(name).display()));
        fs::write(dir.path().join("ours"), "-c 'a b.hip' -Xoffload-linker --hotswap-plan=00").unwrap();
        fs::write(dir.path().join("others"), "-O2").unwrap();
        let words = [at("ours"), at("others"), "-Xoffload-linker".into(), "--hotswap-plan=00".into()];
        let expected = [Word::Listed(vec!["-c".into(), "a b.hip".into()]), Word::Plain(at("others"))];
        assert_eq!(stripped(&words), expected);
    }
}
