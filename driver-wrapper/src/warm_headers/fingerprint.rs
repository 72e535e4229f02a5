//! The state of the files that a precompiled header was made of: the headers themselves, and every place where the compiler would find
//! another header of the same name.
//!
//! A header is as it was while its size and time of change are. A lookup is as it was while the same ones of its candidates exist, a
//! directory's time of change being looked at first, since it changes with each entry.
//!
//! Invariants: candidates are all names of all include directives and questions (`__has_include`) of the headers, in all directories of
//! the search and beside the headers, whether or not a directive was reached. What was written just before cannot be told from what is
//! written just after, so that such a state is never taken.
//!
//! Absent on purpose: contents, for which clang looks by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Words in a header whose value is that of the moment, or of the source that includes it.
const UNSETTLED: [&[u8]; 5] = [b"__DATE__", b"__TIME__", b"__TIMESTAMP__", b"__BASE_FILE__", b"__INCLUDE_LEVEL__"];
/// The grain of time stamps: changes that are no older may be followed by others with the same stamp.
const GRAIN_NANOSECONDS: i128 = 2_000_000_000;

/// The stamp of a directory that just changed.
const CHANGING: &str = "changing";

/// The recorded state of headers and of their search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fingerprint {
    /// By header, its stamp.
    files: BTreeMap<PathBuf, String>,
    /// By directory, its stamp, and whether each candidate in it exists.
    directories: BTreeMap<PathBuf, DirectoryState>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct DirectoryState {
    stamp: String,
    candidates: BTreeMap<Vec<u8>, bool>,
}

impl Fingerprint {
    /// The state of these headers for a search in these directories.
    ///
    /// # Errors
    /// The reason why it is not taken.
    pub(super) fn of_headers(headers: &BTreeSet<PathBuf>, search: &[PathBuf]) -> Result<Self, String> {
        let mut taken = Self::default();
        let mut candidates = BTreeSet::new();
        for header in headers {
            let text = fs::read(header).map_err(|error| format!("{}: {error}", header.display()))?;
            if let Some(word) = UNSETTLED.iter().find(|word| contains(&text, word)) {
                return Err(format!("{} has {}", header.display(), String::from_utf8_lossy(word)));
            }
            taken.files.insert(header.clone(), settled_stamp(header)?);
            let beside = header.parent().map(Path::to_owned);
            for name in included_names(&text) {
                let name = Path::new(OsStr::from_bytes(name));
                candidates.extend(search.iter().chain(&beside).map(|directory| directory.join(name)));
            }
            // A directive may have its name from a macro.
            for name in search.iter().filter_map(|directory| header.strip_prefix(directory).ok()) {
                candidates.extend(search.iter().map(|directory| directory.join(name)));
            }
        }
        for candidate in candidates {
            let (Some(directory), Some(name)) = (candidate.parent(), candidate.file_name()) else { continue };
            if !taken.directories.contains_key(directory) {
                let state = DirectoryState { stamp: directory_stamp(directory), candidates: BTreeMap::new() };
                taken.directories.insert(directory.to_owned(), state);
            }
            let exists = candidate.exists();
            let state = taken.directories.get_mut(directory);
            state.map(|state| state.candidates.insert(name.as_bytes().to_vec(), exists));
        }
        Ok(taken)
    }

    /// Whether everything is as it was. What is in `known` was found to be so before.
    pub(super) fn still_holds(&self, known: &mut BTreeSet<PathBuf>) -> bool {
        self.files.iter().all(|(file, recorded)| {
            known.contains(file) || {
                let holds = file_stamp(file).is_some_and(|stamp| stamp == *recorded);
                holds && known.insert(file.clone())
            }
        }) && self.directories.iter().all(|(directory, state)| {
            known.contains(directory) || {
                let is_untouched = state.stamp != CHANGING && directory_stamp(directory) == state.stamp;
                let holds = is_untouched || state.has_same_candidates(directory);
                holds && known.insert(directory.clone())
            }
        })
    }

    pub(super) fn has_file(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }

    /// Bytes of all headers.
    pub(super) fn header_bytes(&self) -> u64 {
        self.files.values().map(|stamp| bytes_of_stamp(stamp)).sum()
    }

    /// Whether both are of the same headers in the same state.
    pub(super) fn has_same_files(&self, other: &Self) -> bool {
        self.files == other.files
    }

    /// One line for each file, directory and candidate.
    pub(super) fn to_text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for (file, stamp) in &self.files {
            push_line(&mut text, "file", stamp, file.as_os_str().as_bytes());
        }
        for (directory, state) in &self.directories {
            push_line(&mut text, "directory", &state.stamp, directory.as_os_str().as_bytes());
            for (name, exists) in &state.candidates {
                push_line(&mut text, "candidate", if *exists { "1" } else { "0" }, name);
            }
        }
        text
    }

    /// Reads the text of [`Fingerprint::to_text`]; `None` for anything else.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let mut parsed = Self::default();
        let mut directory: Option<PathBuf> = None;
        if text.is_empty() {
            return Some(parsed);
        }
        for line in text.strip_suffix(b"\n")?.split(|byte| *byte == b'\n') {
            let mut parts = line.splitn(3, |byte| *byte == b' ');
            let (kind, stamp, name) = (parts.next()?, str::from_utf8(parts.next()?).ok()?, parts.next()?);
            let path = PathBuf::from(OsString::from_vec(name.to_vec()));
            match kind {
                b"file" => {
                    parsed.files.insert(path, stamp.to_owned());
                }
                b"directory" => {
                    let state = DirectoryState { stamp: stamp.to_owned(), candidates: BTreeMap::new() };
                    parsed.directories.insert(path.clone(), state);
                    directory = Some(path);
                }
                b"candidate" => {
                    let state = parsed.directories.get_mut(directory.as_ref()?)?;
                    state.candidates.insert(name.to_vec(), stamp == "1");
                }
                _ => return None,
            }
        }
        Some(parsed)
    }
}

impl DirectoryState {
    fn has_same_candidates(&self, directory: &Path) -> bool {
        self.candidates.iter().all(|(name, existed)| directory.join(OsStr::from_bytes(name)).exists() == *existed)
    }
}

fn push_line(text: &mut Vec<u8>, kind: &str, stamp: &str, name: &[u8]) {
    text.extend(kind.bytes().chain([b' ']).chain(stamp.bytes()).chain([b' ']));
    text.extend_from_slice(name);
    text.push(b'\n');
}

/// Size, time of change and place of a file.
pub(super) fn file_stamp(path: &Path) -> Option<String> {
    let meta = fs::metadata(path).ok()?;
    let mut text = String::new();
    let _ = write!(text, "{}.{}.{:09}.{}", meta.size(), meta.mtime(), meta.mtime_nsec(), meta.ino());
    Some(text)
}

/// The size of the file that has the stamp.
pub(super) fn bytes_of_stamp(stamp: &str) -> u64 {
    stamp.split('.').next().and_then(|size| size.parse().ok()).unwrap_or_default()
}

/// A stamp after which the file cannot change without another stamp.
fn settled_stamp(path: &Path) -> Result<String, String> {
    let meta = fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let settled = file_stamp(path).filter(|_| is_settled(&meta));
    settled.ok_or_else(|| format!("{} was just written", path.display()))
}

fn is_settled(meta: &fs::Metadata) -> bool {
    let changed = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos());
    i128::try_from(now).is_ok_and(|now| changed + GRAIN_NANOSECONDS < now)
}

/// A directory's stamp; one that just changed has none, so that its candidates are looked at.
fn directory_stamp(directory: &Path) -> String {
    match fs::metadata(directory) {
        Ok(meta) if is_settled(&meta) => format!("{}.{:09}.{}", meta.mtime(), meta.mtime_nsec(), meta.ino()),
        Ok(_) => CHANGING.to_owned(),
        Err(_) => "absent".to_owned(),
    }
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

/// The names in directives and questions: `include <NAME>`, `__has_include("NAME")`.
fn included_names(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines =
        text.split(|byte| *byte == b'\n').filter(|line| contains(line, b"include") || contains(line, b"import"));
    lines.flat_map(|line| {
        let pieces = line.split(|byte| b"<>\"".contains(byte)).skip(1).step_by(2);
        pieces.map(<[u8]>::trim_ascii).filter(|name| !name.is_empty() && !name.starts_with(b"/"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::FileTimes;
    use std::time::Duration;

    struct Tree {
        directory: tempfile::TempDir,
    }

    impl Tree {
        fn new() -> Self {
            let tree = Self { directory: tempfile::tempdir().unwrap() };
            fs::create_dir_all(tree.path("first/sub")).unwrap();
            fs::create_dir(tree.path("second")).unwrap();
            tree.write("second/a.h", "#include <sub/b.h>\n#if __has_include(<c.h>)\n#endif\n");
            tree.write("second/b.h", "");
            tree
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        /// Writes a file as if it were old.
        fn write(&self, name: &str, text: &str) {
            let path = self.path(name);
            fs::write(&path, text).unwrap();
            let old = SystemTime::now() - Duration::from_secs(100);
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_times(FileTimes::new().set_modified(old)).unwrap();
        }

        fn take(&self) -> Result<Fingerprint, String> {
            let headers = ["second/a.h", "second/b.h"].map(|name| self.path(name)).into();
            Fingerprint::of_headers(&headers, &[self.path("first"), self.path("second"), self.path("none")])
        }
    }

    fn holds(fingerprint: &Fingerprint) -> bool {
        fingerprint.still_holds(&mut BTreeSet::new())
    }

    #[test]
    fn an_edited_header_is_noticed_and_reads_back() {
        let tree = Tree::new();
        let taken = tree.take().unwrap();
        assert!(holds(&taken));
        assert_eq!(Fingerprint::parse(&taken.to_text()), Some(taken.clone()));
        assert_eq!(Fingerprint::parse(b""), Some(Fingerprint::default()));
        assert_eq!(Fingerprint::parse(b"file 1\n"), None);
        assert_eq!(Fingerprint::parse(b"candidate 1 x\n"), None);
        tree.write("second/b.h", "int x;\n");
        assert!(!holds(&taken));
    }

    #[test]
    fn a_header_of_the_same_name_elsewhere_is_noticed() {
        for name in ["first/sub/b.h", "second/c.h", "none/c.h", "first/c.h"] {
            let tree = Tree::new();
            let taken = tree.take().unwrap();
            tree.write("first/unrelated.h", "");
            assert!(holds(&taken), "an entry of another name");
            fs::create_dir_all(tree.path("none")).unwrap();
            assert!(holds(&taken), "an empty directory");
            tree.write(name, "");
            assert!(!holds(&taken), "{name}");
        }
    }

    #[test]
    fn a_state_of_the_moment_is_not_taken() {
        let tree = Tree::new();
        fs::write(tree.path("second/b.h"), "").unwrap();
        assert!(tree.take().unwrap_err().contains("was just written"));
        tree.write("second/b.h", "const char *built = __DATE__;\n");
        assert!(tree.take().unwrap_err().contains("__DATE__"));
    }
}
