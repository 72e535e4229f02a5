//! The arguments for the real clang.
//!
//! Invariant: the user's arguments stay unchanged and in place, also inside response files, except for HotSwap's
//! arguments that name a plan, which a token replaces. Additions precede them, because `-x` applies to every input that
//! follows.

use crate::command::without_own;
use crate::judge::WithPlan;
use crate::manifest::{ManifestInputs, search_words};
use crate::unit_plans::UnitDefinitions;
use hotswap_files::expand_response_files;
use hotswap_plan::words::{CHANNEL, PLAN};
use hotswap_report::Diagnostic;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// An argument for clang: unchanged, or a list for a response file without a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClangArgument {
    Plain(OsString),
    /// Arguments from a response file.
    Listed(Vec<OsString>),
}

/// Additions before the user's arguments. `token`: the plan's hash is not among these; `units`: the object that defines
/// the symbols of relocatable units.
pub fn added(
    plan: &WithPlan,
    manifest: Option<&ManifestInputs>,
    units: Option<&UnitDefinitions>,
    token: bool,
) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    if token {
        // A command may not need the argument (a link without device code); that is not a reason for a warning,
        // which -Werror would make an error.
        words.push("--start-no-unused-arguments".into());
        words.push(CHANNEL.into());
        words.push(format!("{PLAN}{}", plan.hash).into());
        words.push("--end-no-unused-arguments".into());
    }
    if let Some(units) = units.filter(|units| units.for_archive) {
        // An archive gets no arguments of the linker.
        words.push(units.object.clone().into());
    }
    let linked = units.filter(|units| !units.for_archive).map(|units| units.object.as_path());
    // As arguments for the host linker: the old driver would look for device code in inputs.
    let is_searched = manifest.is_some_and(|manifest| manifest.is_searched);
    let manifest = manifest.iter().flat_map(|manifest| [manifest.object.as_path(), manifest.archive.as_path()]);
    for file in linked.into_iter().chain(manifest) {
        match is_searched {
            true => words.extend(search_words(file)),
            false => words.extend(["-Xlinker".into(), OsString::from(file)]),
        }
    }
    words
}

/// The files that the host linker searches for by name.
pub fn searched_files<'f>(
    manifest: &'f ManifestInputs,
    units: Option<&'f UnitDefinitions>,
) -> impl Iterator<Item = &'f Path> {
    let files = [Some(&manifest.object), Some(&manifest.archive), units.map(|units| &units.object)];
    files.into_iter().flatten().map(PathBuf::as_path)
}

/// The user's arguments without HotSwap's. A response file with such arguments is replaced by a list.
///
/// # Errors
/// Those of response files.
pub fn stripped(words: &[OsString]) -> Result<Vec<ClangArgument>, Diagnostic> {
    let kept = without_own(words).kept;
    let mut list: Vec<ClangArgument> = Vec::with_capacity(kept.len());
    for word in kept {
        let inside = if word.as_bytes().starts_with(b"@") { inside(&word)? } else { None };
        list.push(inside.map_or(ClangArgument::Plain(word), ClangArgument::Listed));
    }
    Ok(list)
}

/// The arguments of a response file without HotSwap's, if it has any of these.
fn inside(word: &OsStr) -> Result<Option<Vec<OsString>>, Diagnostic> {
    let expanded: Vec<_> = expand_response_files(&[word.to_owned()])?.into_iter().map(|word| word.text).collect();
    let stripped = without_own(&expanded);
    Ok(stripped.is_changed.then_some(stripped.kept))
}

/// The content of a response file with those arguments, in GNU quoting. No file can have an empty argument: clang drops it.
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

/// A command line in a shell's syntax.
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
        let words: Vec<OsString> = ["a b", "q\"uo'te", "back\\slash", "new\nline", "@at", "ü"].map(Into::into).into();
        let path = dir.path().join("r");
        // `@at` names no file, so it stays a plain argument.
        fs::write(&path, response(&words)).unwrap();
        let back = expand_response_files(&[format!("@{}", path.display()).into()]).unwrap();
        assert_eq!(back.into_iter().map(|word| word.text).collect::<Vec<_>>(), words);
    }

    #[test]
    fn only_response_files_with_our_words_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| OsString::from(format!("@{}", dir.path().join(name).display()));
        fs::write(dir.path().join("ours"), "-c 'a b.hip' -Xoffload-linker --hotswap-plan=00").unwrap();
        fs::write(dir.path().join("others"), "-O2").unwrap();
        let words = [at("ours"), at("others"), "-Xoffload-linker".into(), "--hotswap-plan=00".into()];
        let expected = [ClangArgument::Listed(vec!["-c".into(), "a b.hip".into()]), ClangArgument::Plain(at("others"))];
        assert_eq!(stripped(&words).unwrap(), expected);
    }
}
