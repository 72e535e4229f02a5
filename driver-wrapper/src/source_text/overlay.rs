//! Headers in which conditions with one value for all GPUs are settled, shown to clang in the places of the real ones.
//!
//! A text that uses names of GPUs in such conditions alone ([`super::condition`]) is the same for all GPUs: the preprocessor
//! accepts it with the names poisoned, once the conditions are written without them. So one more run of it answers for all
//! GPUs, instead of one for each.
//!
//! Invariants: a file that is shown differs in settled conditions alone, and clang finds it by the path by which it found the
//! real one; a use of a name that was missed is still poisoned. The real files are never written.

use super::condition::{NameValues, settle_condition};
use hotswap_files::ScratchDirectory;
use hotswap_report::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

/// Clang's message for each use.
const POISONED: &str = ": error: attempt to use a poisoned identifier";
/// Arguments that make clang print each use in a line of its own, and nothing of the source.
pub(super) const MESSAGES: [&str; 2] = ["-ferror-limit=0", "-fno-caret-diagnostics"];
/// A part of an argument that shows other files to clang already.
const SHOWS_FILES: &str = "vfsoverlay";

/// Lines with uses of names, from 1, by the spelling of their file.
pub(super) type NameUses = BTreeMap<String, BTreeSet<usize>>;

/// The uses that clang reports; `None` if it has another error, or none at all.
pub(super) fn reported_uses(messages: &str) -> Option<NameUses> {
    let mut uses = NameUses::new();
    for line in messages.lines().filter(|line| line.contains("error: ")) {
        let mut place = line.strip_suffix(POISONED)?.rsplitn(3, ':').skip(1);
        let line = place.next()?.parse().ok()?;
        let file = place.next()?;
        uses.entry(file.to_owned()).or_default().insert(line);
    }
    (!uses.is_empty()).then_some(uses)
}

/// Whether the arguments let clang show other files in the places of headers.
pub(super) fn may_show_files<'w>(mut words: impl Iterator<Item = &'w OsString>) -> bool {
    words.any(|word| word.to_string_lossy().contains(SHOWS_FILES))
}

/// Copies of headers and the file that tells clang where they are shown.
#[derive(Debug)]
pub(super) struct SettledHeaders {
    scratch: ScratchDirectory,
}

impl SettledHeaders {
    /// `None` where a use is no condition that is known to have one value, or a file cannot be read or shown.
    ///
    /// # Errors
    /// The copies cannot be written.
    pub(super) fn write_copies(uses: &NameUses, names: &NameValues<'_>) -> Result<Option<Self>, Diagnostic> {
        let Some(files) = settled_files(uses, names) else { return Ok(None) };
        let headers = Self { scratch: ScratchDirectory::temporary("hotswap-conditions-")? };
        let mut shown = Vec::new();
        for (number, file) in files.iter().enumerate() {
            let copy = headers.scratch.path().join(format!("{number}.h"));
            hotswap_files::replace_file(&copy, &file.text)?;
            shown.extend(file.paths.iter().map(|path| shown_file(path, &copy)));
        }
        let overlay =
            serde_json::json!({"version": 0, "case-sensitive": true, "use-external-names": false, "roots": shown});
        hotswap_files::replace_file(&headers.overlay_path(), overlay.to_string().as_bytes())?;
        Ok(Some(headers))
    }

    fn overlay_path(&self) -> PathBuf {
        self.scratch.path().join("overlay.yaml")
    }

    /// Arguments that let clang read the copies.
    pub(super) fn overlay_words(&self) -> [OsString; 2] {
        ["-ivfsoverlay".into(), self.overlay_path().into_os_string()]
    }
}

fn shown_file(path: &str, copy: &Path) -> serde_json::Value {
    serde_json::json!({"type": "file", "name": path, "external-contents": copy})
}

/// A file with settled conditions.
struct SettledFile {
    /// The paths at which clang finds it.
    paths: Vec<String>,
    text: Vec<u8>,
}

fn settled_files(uses: &NameUses, names: &NameValues<'_>) -> Option<Vec<SettledFile>> {
    let mut files = Vec::new();
    for (spelling, lines) in uses {
        let mut text = fs::read(spelling).ok()?;
        for line in lines {
            let place = logical_line(&text, *line)?;
            // A line with several uses is settled again, which leaves it as it is.
            let settled = settle_condition(&text[place.clone()], names)?;
            text[place].copy_from_slice(&settled);
        }
        files.push(SettledFile { paths: shown_paths(Path::new(spelling))?, text });
    }
    Some(files)
}

/// The bytes of the line with that number and of those that `\` joins with it, without the last line's end.
fn logical_line(text: &[u8], number: usize) -> Option<Range<usize>> {
    let mut start = 0;
    let mut lines = text.split_inclusive(|byte| *byte == b'\n').enumerate();
    let mut at = 0;
    loop {
        let (index, line) = lines.next()?;
        at += line.len();
        let body = line.strip_suffix(b"\n").unwrap_or(line);
        let body = body.strip_suffix(b"\r").unwrap_or(body);
        if body.ends_with(b"\\") && line.ends_with(b"\n") {
            continue;
        }
        if index + 1 >= number {
            return Some(start..at - (line.len() - body.len()));
        }
        start = at;
    }
}

/// The absolute paths that clang may make of the spelling, without `.` and `..`; `None` where `..` behind a symbolic link would
/// make it another file.
fn shown_paths(spelling: &Path) -> Option<Vec<String>> {
    let real = spelling.canonicalize().ok()?;
    let mut paths = Vec::new();
    for directory in [env::current_dir().ok(), env::var_os("PWD").map(PathBuf::from)].into_iter().flatten() {
        let plain = without_dots(&directory.join(spelling));
        let is_same = plain.is_absolute() && plain.canonicalize().is_ok_and(|path| path == real);
        let path = plain.into_os_string().into_string().ok()?;
        if is_same && !paths.contains(&path) {
            paths.push(path);
        }
    }
    (!paths.is_empty()).then_some(paths)
}

fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}
