//! Response files, read the way clang reads them: `@file` words, nested, with GNU quoting.
//!
//! Callers judge the expanded words and pass the original ones on: an expanded list could be
//! longer than the system allows for one command (E2BIG).

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// A word of the expanded command line and where it stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The word.
    pub text: OsString,
    /// Index of the original word that holds it (itself, or the `@file` that it came from).
    pub index: usize,
}

/// Depth at which a response file that names itself is taken as plain text.
const DEPTH: usize = 32;

/// Expands every `@file`. A file that cannot be read stays the word it is, as in clang.
pub fn expand(words: &[OsString]) -> Vec<Word> {
    let mut out = Vec::with_capacity(words.len());
    for (index, word) in words.iter().enumerate() {
        push(&mut out, word, index, 0);
    }
    out
}

/// Relative names are looked up in the working folder, also those inside a file: so do clang, lld
/// and their like (only in clang's configuration files a name is relative to the file).
fn push(out: &mut Vec<Word>, word: &OsStr, index: usize, depth: usize) {
    let name = word.as_bytes().strip_prefix(b"@").filter(|_| depth < DEPTH);
    let Some(bytes) = name.and_then(|name| fs::read(OsStr::from_bytes(name)).ok()) else {
        out.push(Word { text: word.to_owned(), index });
        return;
    };
    for word in tokenize(&bytes) {
        push(out, &word, index, depth + 1);
    }
}

/// GNU quoting as in LLVM's `TokenizeGNUCommandLine`: blanks separate; `\` quotes the next byte,
/// also inside double quotes and, unlike in a shell, single ones.
pub(crate) fn tokenize(bytes: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = 0u8;
    let mut rest = bytes.iter().copied();
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' => word.get_or_insert_default().extend(rest.next()),
            b'\'' | b'"' if quote == 0 => {
                quote = byte;
                word.get_or_insert_default();
            }
            _ if byte == quote && quote != 0 => quote = 0,
            b' ' | b'\t' | b'\r' | b'\n' if quote == 0 => words.extend(word.take().map(OsString::from_vec)),
            _ => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word.map(OsString::from_vec));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_is_gnu() {
        let words = tokenize(br#"-a 'b c' "d \" e" f\ g '' x"y"z '-DX=\"s\"' 'it\'s'"#);
        assert_eq!(words, ["-a", "b c", "d \" e", "f g", "", "xyz", "-DX=\"s\"", "it's"]);
    }

    #[test]
    fn nested_files_expand_and_missing_ones_stay() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| format!("@{}/{name}", dir.path().display());
        fs::write(dir.path().join("inner"), "-fgpu-rdc").unwrap();
        // `inner` alone would have to lie in the working folder, not beside `outer`.
        let content = format!("--offload-arch=gfx1030 {} @absent @inner", at("inner"));
        fs::write(dir.path().join("outer"), content).unwrap();
        let words = expand(&["-c".into(), at("outer").into()]);
        let texts: Vec<_> = words.iter().map(|w| (w.text.to_str().unwrap(), w.index)).collect();
        let expected = [("-c", 0), ("--offload-arch=gfx1030", 1), ("-fgpu-rdc", 1), ("@absent", 1), ("@inner", 1)];
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_file_that_names_itself_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("loop");
        fs::write(&path, format!("-c @{}", path.display())).unwrap();
        let words = expand(&[format!("@{}", path.display()).into()]);
        assert_eq!(words.len(), DEPTH + 1);
    }
}
