//! The files that texts include, read from their line markers (`# LINE "FILE" FLAGS`, where flag 1 enters a file).
//!
//! Absent on purpose: names in `#line` directives of the source. They are not read, and lack a flag.

use std::collections::BTreeMap;

/// Files by name, as the markers spell them, and whether every text takes them from a system directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IncludedFiles {
    files: BTreeMap<Vec<u8>, bool>,
}

impl IncludedFiles {
    /// Adds the files that a text enters, except for `own`, a header of HotSwap's.
    pub fn add_text(&mut self, text: &[u8], own: &[u8]) {
        for line in text.split(|byte| *byte == b'\n') {
            if let Some(MarkerParts { name, flags }) =
                name_and_flags(line).filter(|marker| !ends_with_path(marker.name, own))
            {
                let mut flags = flags.split(|byte| *byte == b' ').filter(|flag| !flag.is_empty());
                let is_entered = flags.next() == Some(b"1");
                let is_system = flags.any(|flag| flag == b"3");
                if is_entered && !name.starts_with(b"<") {
                    *self.files.entry(name.to_owned()).or_insert(true) &= is_system;
                }
            }
        }
    }

    /// Adds those of another set.
    pub fn extend(&mut self, other: &Self) {
        for (name, is_system) in &other.files {
            *self.files.entry(name.clone()).or_insert(true) &= is_system;
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Line markers that enter each file and return to `main`, without any text.
    pub fn markers(&self, main: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        for (name, is_system) in &self.files {
            let system: &[u8] = if *is_system { b" 3" } else { b"" };
            text.extend([b"# 1 \"", &name[..], b"\" 1", system, b"\n# 1 \"", main, b"\" 2\n"].concat());
        }
        text
    }

    /// The names, without those in system directories unless they are wanted.
    pub fn names(&self, with_system: bool) -> impl Iterator<Item = Vec<u8>> {
        let wanted = self.files.iter().filter(move |(_, is_system)| with_system || !**is_system);
        wanted.map(|(name, _)| unescape(name))
    }
}

/// The text without the markers that name a header of HotSwap's, whose path is not the same on every machine.
pub(super) fn without_own_header(text: &[u8], own: &[u8]) -> Vec<u8> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let kept = lines
        .filter(|line| name_and_flags(line.trim_ascii_end()).is_none_or(|marker| !ends_with_path(marker.name, own)));
    kept.collect::<Vec<_>>().concat()
}

/// A relative name may have `./` before it.
fn ends_with_path(name: &[u8], path: &[u8]) -> bool {
    !path.is_empty() && name.strip_suffix(path).is_some_and(|start| start.is_empty() || start == b"./")
}

/// The parts of a line marker after the number.
struct MarkerParts<'l> {
    /// The file's name, as it is spelled there.
    name: &'l [u8],
    flags: &'l [u8],
}

fn name_and_flags(line: &[u8]) -> Option<MarkerParts<'_>> {
    let rest = line.strip_prefix(b"# ")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = rest[digits..].strip_prefix(b" \"").filter(|_| digits > 0)?;
    let end = rest.iter().rposition(|byte| *byte == b'"')?;
    Some(MarkerParts { name: &rest[..end], flags: &rest[end + 1..] })
}

fn unescape(name: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(name.len());
    let mut bytes = name.iter().copied();
    while let Some(byte) = bytes.next() {
        plain.push(if byte == b'\\' { bytes.next().unwrap_or(byte) } else { byte });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"# 1 \"a.hip\"\n# 1 \"<built-in>\" 1\n# 1 \"./p.h\" 1\n# 1 \"in/b \\\"q\\\".h\" 1\nint y;\n\
        # 2 \"a.hip\" 2\n# 1 \"/usr/include/s.h\" 1 3\n# 7 \"gen.y\"\n#pragma x\n";

    #[test]
    fn entered_files_are_included_and_others_are_not() {
        let mut files = IncludedFiles::default();
        files.add_text(TEXT, b"p.h");
        let names = |with_system| -> Vec<String> {
            files.names(with_system).map(|name| String::from_utf8(name).unwrap()).collect()
        };
        assert_eq!(names(true), ["/usr/include/s.h", "in/b \"q\".h"]);
        assert_eq!(names(false), ["in/b \"q\".h"]);
        let markers = String::from_utf8(files.markers(b"a.hip")).unwrap();
        assert_eq!(
            markers,
            "# 1 \"/usr/include/s.h\" 1 3\n# 1 \"a.hip\" 2\n# 1 \"in/b \\\"q\\\".h\" 1\n# 1 \"a.hip\" 2\n"
        );
        let mut again = IncludedFiles::default();
        again.add_text(markers.as_bytes(), b"");
        assert_eq!(again, files);
    }

    #[test]
    fn a_file_that_one_text_has_from_elsewhere_is_no_system_file() {
        let mut files = IncludedFiles::default();
        files.add_text(b"# 1 \"x.h\" 1 3\n", b"");
        files.add_text(b"# 1 \"x.h\" 1\n", b"");
        assert_eq!(files.names(false).count(), 1);
    }

    #[test]
    fn the_own_header_leaves_no_trace() {
        let text = without_own_header(TEXT, b"p.h");
        assert!(!text.windows(3).any(|part| part == b"p.h"));
        assert_eq!(text.len() + "# 1 \"./p.h\" 1\n".len(), TEXT.len());
    }
}
