//! The first difference between two preprocessed texts, as a source location.

use super::SourceEvidence;
use hotswap_files::reads;
use hotswap_report::Diagnostic;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// How far above a difference its directive is searched.
const LINES_ABOVE: usize = 400;

/// The file and line at which two texts with line markers (`# LINE "FILE" FLAGS`) begin to differ.
pub(super) fn first_difference(one: &[u8], other: &[u8]) -> Option<SourceEvidence> {
    let (mut file, mut line) = (String::new(), 0);
    let mut others = other.split(|byte| *byte == b'\n');
    for text in one.split(|byte| *byte == b'\n') {
        if others.next() != Some(text) {
            return (!file.is_empty()).then_some(SourceEvidence { name: None, file, line });
        }
        match marker(text) {
            Some(marker) => (line, file) = (marker.line, marker.file),
            None => line += 1,
        }
    }
    None
}

/// The first line of a text that contains those bytes.
pub(super) fn place_of(text: &[u8], part: &str) -> Option<SourceEvidence> {
    let (mut file, mut line) = (String::new(), 0);
    for bytes in text.split(|byte| *byte == b'\n') {
        match marker(bytes) {
            Some(marker) => (line, file) = (marker.line, marker.file),
            None if String::from_utf8_lossy(bytes).contains(part) => {
                return Some(SourceEvidence { name: None, file, line });
            }
            None => line += 1,
        }
    }
    None
}

/// A line marker: the next line is that line of the file.
pub(super) struct LineMarker {
    pub(super) line: usize,
    pub(super) file: String,
}

pub(super) fn marker(text: &[u8]) -> Option<LineMarker> {
    let text = std::str::from_utf8(text.strip_prefix(b"# ")?).ok()?;
    let (number, rest) = text.split_once(" \"")?;
    let (file, _) = rest.rsplit_once('"')?;
    let file = file.replace("\\\\", "\\").replace("\\\"", "\"");
    Some(LineMarker { line: number.parse().ok()?, file })
}

/// The same location with the name that is tested there: in the line itself, or in a directive above it. The compiler's
/// own text has no file.
///
/// # Errors
/// [`hotswap_report::codes::CANNOT_READ`]: the place is a part of the record.
pub(super) fn named_place(place: SourceEvidence, names: &BTreeSet<String>) -> Result<SourceEvidence, Diagnostic> {
    let text = match fs::read(&place.file) {
        Ok(text) => text,
        Err(error) if reads::is_absent(&error) => return Ok(place),
        Err(error) => return Err(reads::unread_file(Path::new(&place.file), &error)),
    };
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let last = place.line.min(lines.len());
    let found =
        (last.saturating_sub(LINES_ABOVE)..last).rev().find_map(|at| Some((at + 1, name_in_line(lines[at], names)?)));
    Ok(match found {
        Some((line, name)) => SourceEvidence { name: Some(name), line, ..place },
        None => place,
    })
}

/// The longest of the names that a line contains as an identifier.
pub(super) fn name_in_line(line: &str, names: &BTreeSet<String>) -> Option<String> {
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| names.contains(*word)).max_by_key(|word| word.len()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_named_by_file_and_line() {
        let one = b"# 1 \"a.hip\"\n# 1 \"dir/b.h\" 1\nint a;\nint b;\n# 2 \"a.hip\" 2\nint c;\n";
        let mut other = one.to_vec();
        assert_eq!(first_difference(one, &other), None);
        let at = other.iter().position(|byte| *byte == b'b').unwrap();
        assert_eq!(other[at], b'b');
        other = String::from_utf8_lossy(one).replace("int b;", "int d;").into_bytes();
        assert_eq!(first_difference(one, &other).unwrap().to_string(), "dir/b.h:2");
        other = String::from_utf8_lossy(one).replace("int c;", "").into_bytes();
        assert_eq!(first_difference(one, &other).unwrap().to_string(), "a.hip:2");
        assert_eq!(first_difference(b"int a;", b"int b;"), None);
    }

    #[test]
    fn the_directive_above_a_difference_names_the_macro() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.h");
        fs::write(&file, "#if __gfx1030__x\n#endif\n#ifdef __gfx1030__\nint a;\n#endif\n").unwrap();
        let names: BTreeSet<String> = ["__gfx1030__".to_owned()].into();
        let place = SourceEvidence { name: None, file: file.display().to_string(), line: 4 };
        assert_eq!(named_place(place.clone(), &names).unwrap().short(), "`__gfx1030__` at a.h:3");
        assert_eq!(named_place(SourceEvidence { line: 2, ..place.clone() }, &names).unwrap().short(), "a.h:2");
        assert_eq!(
            named_place(SourceEvidence { file: "absent.h".into(), ..place }, &names).unwrap().short(),
            "absent.h:4"
        );
    }
}
