//! Response files, read as clang reads them: `@file` arguments, nested, with GNU quoting.
//!
//! Callers examine the expanded arguments and pass the original ones on: an expanded list could be longer than the
//! system allows for one command (E2BIG).

use crate::input::cannot_read;
use crate::reads::is_absent;
use hotswap_report::Diagnostic;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// An argument of the expanded command line and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpandedArgument {
    pub text: OsString,
    /// Index of the original argument that holds it (itself, or the `@file` that it came from).
    pub index: usize,
}

/// Depth to which response files are read: more than any tool writes, and far from the end of the stack.
const DEPTH: usize = 256;

/// The identity of a file, independent of its path.
type Identity = (u64, u64);

/// Expands every `@file`. The argument of a file that is not there is unchanged, as in clang. So is that of a file
/// that is being read already: it includes itself, which clang and lld reject with messages of their own.
///
/// # Errors
/// [`codes::CANNOT_READ`] for a file that is there, as in clang: an argument in it may be a plan.
pub fn expand_response_files(words: &[OsString]) -> Result<Vec<ExpandedArgument>, Diagnostic> {
    let mut out = Vec::with_capacity(words.len());
    for (index, word) in words.iter().enumerate() {
        push(&mut out, word, index, &mut Vec::new())?;
    }
    Ok(out)
}

/// Relative names are resolved against the working directory, even those inside a file: so do clang, lld and similar tools
/// (only in clang's configuration files a name is relative to the file).
fn push(
    out: &mut Vec<ExpandedArgument>,
    word: &OsStr,
    index: usize,
    above: &mut Vec<Identity>,
) -> Result<(), Diagnostic> {
    let name = word.as_bytes().strip_prefix(b"@").filter(|_| above.len() < DEPTH).map(OsStr::from_bytes);
    let read = name.map_or(Ok(None), |name| read_below(name, above));
    let Some(content) = read.map_err(|error| cannot_read(Path::new(name.unwrap_or_default()), &error))? else {
        out.push(ExpandedArgument { text: word.to_owned(), index });
        return Ok(());
    };
    above.push(content.identity);
    for word in tokenize_gnu(&content.bytes) {
        push(out, &word, index, above)?;
    }
    above.pop();
    Ok(())
}

struct ResponseFile {
    identity: Identity,
    bytes: Vec<u8>,
}

/// The file's content; `None` for a file that is not there, or that includes itself.
fn read_below(name: &OsStr, above: &[Identity]) -> io::Result<Option<ResponseFile>> {
    let mut file = match File::open(name) {
        Ok(file) => file,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let meta = file.metadata()?;
    let identity = (meta.dev(), meta.ino());
    if above.contains(&identity) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Some(ResponseFile { identity, bytes }))
}

/// GNU quoting as in LLVM's `TokenizeGNUCommandLine`: blanks separate; `\` quotes the next byte, even inside double
/// quotes and, unlike in a shell, single ones. Also unlike in a shell, empty quotes are not an argument.
pub fn tokenize_gnu(bytes: &[u8]) -> Vec<OsString> {
    let (mut words, mut word) = (Vec::new(), Vec::new());
    let mut quote = 0u8;
    let mut rest = bytes.iter().copied();
    while let Some(byte) = rest.next() {
        match byte {
            // At the end of the file it stands for itself.
            b'\\' => word.push(rest.next().unwrap_or(b'\\')),
            b'\'' | b'"' if quote == 0 => quote = byte,
            _ if byte == quote && quote != 0 => quote = 0,
            b' ' | b'\t' | b'\r' | b'\n' if quote == 0 => words.push(std::mem::take(&mut word)),
            _ => word.push(byte),
        }
    }
    words.push(word);
    words.into_iter().filter(|word| !word.is_empty()).map(OsString::from_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn quoting_is_gnu() {
        let words = tokenize_gnu(br#"-a 'b c' "d \" e" f\ g '' x"y"z '-DX=\"s\"' 'it\'s'"#);
        assert_eq!(words, ["-a", "b c", "d \" e", "f g", "xyz", "-DX=\"s\"", "it's"]);
    }

    #[test]
    fn a_backslash_at_the_end_stays() {
        assert_eq!(tokenize_gnu(b"a\\"), ["a\\"]);
        assert_eq!(tokenize_gnu(b"'a \\"), ["a \\"]);
    }

    #[test]
    fn nested_files_expand_and_missing_ones_stay() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| format!("@{}/{name}", dir.path().display());
        fs::write(dir.path().join("inner"), "-fgpu-rdc").unwrap();
        // `inner` alone would have to be in the working directory, not next to `outer`.
        let content = format!("--offload-arch=gfx1030 {} @absent @inner", at("inner"));
        fs::write(dir.path().join("outer"), content).unwrap();
        let words = expand_response_files(&["-c".into(), at("outer").into()]).unwrap();
        let texts: Vec<_> = words.iter().map(|w| (w.text.to_str().unwrap(), w.index)).collect();
        let expected = [("-c", 0), ("--offload-arch=gfx1030", 1), ("-fgpu-rdc", 1), ("@absent", 1), ("@inner", 1)];
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_file_that_is_there_and_cannot_be_read_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let word = OsString::from(format!("@{}", dir.path().display()));
        let error = expand_response_files(&["-c".into(), word]).unwrap_err();
        assert_eq!(error.code, hotswap_report::codes::CANNOT_READ);
        let long = OsString::from(format!("@{}", "x".repeat(300)));
        assert_eq!(expand_response_files(std::slice::from_ref(&long)).unwrap()[0].text, long);
    }

    #[test]
    fn a_file_that_names_itself_stays_a_word() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| format!("@{}", dir.path().join(name).display());
        let write = |name: &str, words: String| fs::write(dir.path().join(name), words).unwrap();
        // Twice: a limit of the depth alone would leave 2^32 arguments. Also through a link, and through another file.
        write("twice", format!("{} {}", at("twice"), at("twice")));
        std::os::unix::fs::symlink(dir.path().join("link"), dir.path().join("loop")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("self"), dir.path().join("link")).unwrap();
        write("self", format!("-c {}", at("loop")));
        write("one", format!("-g {}", at("other")));
        write("other", format!("{} {}", at("one"), at("one")));
        for (name, expected) in [
            ("twice", vec![at("twice"), at("twice")]),
            ("self", vec!["-c".into(), at("loop")]),
            ("one", vec!["-g".into(), at("one"), at("one")]),
        ] {
            let words = expand_response_files(&[at(name).into(), at("absent").into()]).unwrap();
            let texts: Vec<_> = words.iter().map(|word| word.text.to_str().unwrap().to_owned()).collect();
            assert_eq!(texts, [expected, vec![at("absent")]].concat());
        }
        // The same file twice in a row is no loop.
        write("plain", "-c".into());
        assert_eq!(expand_response_files(&[at("plain").into(), at("plain").into()]).unwrap().len(), 2);
    }
}
