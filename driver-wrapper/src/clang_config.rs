//! Clang's own configuration files (`--config`, `clang++.cfg` beside clang): the arguments in them, and a plan there,
//! which HotSwap rejects.
//!
//! A plan in these files would reach the device linker, but without a plan on the command line none of our tools runs
//! below the command, so the real linker would fail on them without a remedy. They are found here before clang runs.
//!
//! Files are searched where clang 22 to 24 search them: named ones by their path or in the directories of
//! `--config-user-dir=`, `--config-system-dir=` and of clang, default ones by the names of driver and triple in these
//! directories. `@file` in them is relative to the file.
//!
//! Absent on purpose: directories that were set when clang was built (Debian's lacks any); the arguments' meaning.

use crate::options::is_own;
use hotswap_files::reads;
use hotswap_report::{Diagnostic, codes};
use std::env::consts::ARCH;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Nesting depth of files that name files; no real configuration is deeper.
const DEPTH: usize = 4;

/// Where a command's configuration files are.
#[derive(Debug)]
pub struct ConfigFiles<'a> {
    /// The command's arguments, response files expanded.
    pub words: &'a [OsString],
    pub clang: &'a Path,
    /// The C++ driver runs.
    pub cxx: bool,
    /// `--target`, where it is named.
    pub target: Option<&'a str>,
    /// The variable `CLANG_NO_DEFAULT_CONFIG` is set.
    pub no_default: bool,
}

impl ConfigFiles<'_> {
    /// Rejects HotSwap's arguments in these files.
    ///
    /// # Errors
    /// [`codes::BAD_CONFIG`] naming the file and the argument; [`codes::CANNOT_READ`].
    pub fn refuse_plan(&self) -> Result<(), Diagnostic> {
        self.words_with_files()?.into_iter().try_for_each(|ConfiguredWord { file, word }| {
            if is_own(&word) { Err(refusal(&file, &word)) } else { Ok(()) }
        })
    }

    /// The arguments in these files. A quoted argument with blanks is several here.
    ///
    /// # Errors
    /// [`codes::CANNOT_READ`]: an argument that was not seen may be one that names a GPU.
    pub fn configured_words(&self) -> Result<Vec<OsString>, Diagnostic> {
        Ok(self.words_with_files()?.into_iter().map(|one| one.word).collect())
    }

    fn words_with_files(&self) -> Result<Vec<ConfiguredWord>, Diagnostic> {
        let mut found = Vec::new();
        self.files()?.iter().try_for_each(|file| read_words(file, 0, &mut found))?;
        Ok(found)
    }

    fn files(&self) -> Result<Vec<PathBuf>, Diagnostic> {
        let directories = self.directories()?;
        let mut names = self.values("--config");
        let off = self.no_default || self.words.iter().any(|word| word == "--no-default-config");
        if !off {
            names.extend(self.default_names().into_iter().map(OsString::from));
        }
        let mut files = Vec::new();
        for name in names {
            files.extend(find(&directories, &name)?);
        }
        Ok(files)
    }

    fn directories(&self) -> Result<Vec<PathBuf>, Diagnostic> {
        let named = self.values("--config-user-dir").into_iter().chain(self.values("--config-system-dir"));
        let clang = reads::resolve_path(self.clang)?.unwrap_or_else(|| self.clang.to_owned());
        Ok(named.map(PathBuf::from).chain(clang.parent().map(Path::to_owned)).collect())
    }

    /// Values of an option that is written `--name=V` or `--name V`.
    fn values(&self, name: &str) -> Vec<OsString> {
        let mut values = Vec::new();
        let mut words = self.words.iter();
        while let Some(word) = words.next() {
            match word.as_bytes().strip_prefix(name.as_bytes()) {
                Some([]) => values.extend(words.next().cloned()),
                Some([b'=', value @ ..]) => values.push(OsStr::from_bytes(value).to_owned()),
                _ => {}
            }
        }
        values
    }

    fn default_names(&self) -> Vec<String> {
        let mode = if self.cxx { "clang++" } else { "clang" };
        let triples = match self.target {
            Some(target) => vec![target.to_owned()],
            None => ["pc-linux-gnu", "unknown-linux-gnu", "linux-gnu"].map(|rest| format!("{ARCH}-{rest}")).to_vec(),
        };
        let named = triples.iter().flat_map(|triple| [format!("{triple}-{mode}.cfg"), format!("{triple}.cfg")]);
        named.chain([format!("{mode}.cfg")]).collect()
    }
}

/// A name with a directory is a path; any other is searched in the directories.
fn find(directories: &[PathBuf], name: &OsStr) -> Result<Option<PathBuf>, Diagnostic> {
    if name.as_bytes().contains(&b'/') {
        return Ok(Some(name.into()));
    }
    for path in directories.iter().map(|directory| directory.join(name)) {
        if reads::is_regular(&path)? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// An argument of a configuration file.
struct ConfiguredWord {
    file: PathBuf,
    word: OsString,
}

/// A file that is not there is left to clang.
fn read_words(file: &Path, depth: usize, found: &mut Vec<ConfiguredWord>) -> Result<(), Diagnostic> {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if reads::is_absent(&error) => return Ok(()),
        Err(error) => return Err(reads::unread_file(file, &error)),
    };
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !is_comment_line(line));
    for word in lines.flat_map(|line| line.split(|byte| byte.is_ascii_whitespace())) {
        let start = word.iter().take_while(|byte| is_quote_byte(byte)).count();
        let word = &word[start..];
        match word.strip_prefix(b"@").filter(|_| depth < DEPTH) {
            Some(name) => read_words(&file.with_file_name(OsStr::from_bytes(name)), depth + 1, found)?,
            None if word.is_empty() => {}
            None => found.push(ConfiguredWord { file: file.to_owned(), word: OsStr::from_bytes(word).to_owned() }),
        }
    }
    Ok(())
}

fn is_comment_line(line: &&[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"#")
}

fn is_quote_byte(byte: &u8) -> bool {
    matches!(*byte, b'\'' | b'"')
}

fn refusal(file: &Path, word: &OsStr) -> Diagnostic {
    let what = format!("`{}` stands in a configuration file of clang, where HotSwap takes no words", word.display());
    Diagnostic::error(codes::BAD_CONFIG, what).in_file(file).advise(
        "write it on the command line, or as `retarget = \"…\"` into HotSwap's own config.toml (--hotswap-help)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name and content of a file beside clang, arguments of a command, and whether they are rejected.
    const TABLE: &[(&str, &str, &str, bool)] = &[
        ("clang++.cfg", "-Xoffload-linker --hotswap-plan=1", "", true),
        ("clang++.cfg", "# --hotswap-plan=1\n-O2", "", false),
        ("clang++.cfg", "-O2\n  -Xoffload-linker '--hotswap-retarget=a=>b'", "", true),
        ("clang++.cfg", "-fhotswap-coalesce", "", true),
        ("clang.cfg", "-fhotswap-coalesce", "", false),
        ("clang++.cfg", "-fhotswap-coalesce", "--no-default-config", false),
        ("mine.cfg", "-fhotswap-coalesce", "", false),
        ("mine.cfg", "-fhotswap-coalesce", "--config=mine.cfg", true),
        ("mine.cfg", "-fhotswap-coalesce", "--config mine.cfg", true),
        ("mine.cfg", "-fhotswap-coalesce", "--no-default-config --config=@/mine.cfg", true),
        ("mine.cfg", "-fhotswap-coalesce", "--config=@/other.cfg", false),
        ("t-clang++.cfg", "-fhotswap-coalesce", "--target=t", true),
        ("t.cfg", "-fhotswap-coalesce", "--target=t", true),
        ("sub/clang++.cfg", "-fhotswap-coalesce", "--config-user-dir=@/sub", true),
    ];

    #[test]
    fn words_are_found_where_clang_reads_them() {
        for (name, content, words, refused) in TABLE {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, content).unwrap();
            let words = words.replace('@', &dir.path().display().to_string());
            let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
            let target = words.iter().find_map(|word| word.to_str()?.strip_prefix("--target="));
            let clang = dir.path().join("clang++");
            let found =
                ConfigFiles { words: &words, clang: &clang, cxx: true, target, no_default: false }.refuse_plan();
            assert_eq!(found.is_err(), *refused, "{name} {content} {words:?}: {found:?}");
            assert!(found.is_ok() || found.unwrap_err().place.file.as_ref() == Some(&file));
        }
    }

    #[test]
    fn files_that_are_named_in_a_file_are_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("clang.cfg"), "-O2 @more").unwrap();
        fs::write(dir.path().join("more"), "@more -Xoffload-linker --hotswap-policy=keep").unwrap();
        let clang = dir.path().join("clang");
        let found =
            ConfigFiles { words: &[], clang: &clang, cxx: false, target: None, no_default: false }.refuse_plan();
        assert_eq!(found.unwrap_err().code, codes::BAD_CONFIG);
    }
}
