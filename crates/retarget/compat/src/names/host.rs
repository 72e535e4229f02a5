//! The host part of a file: the names of GPUs that it contains as strings.
//!
//! A host part that compares `gcnArchName` with a table has each name as a string that ends with a zero byte. So a name
//! that is absent is unknown to it. A name that is present may be in another list; the order of names identifies an
//! option that puts more of them into the table.
//!
//! Absent on purpose: pointers to the strings and the instructions that use them. Their form changes with the compiler,
//! with position independence and with the level of optimisation; the strings do not.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::OnceLock;

/// The parts of a file outside device code. Scanned on first use.
#[derive(Debug, Default)]
pub struct HostPart<'a> {
    parts: Vec<&'a [u8]>,
    strings: OnceLock<HostStrings>,
}

/// Names in the host part.
#[derive(Debug, Default)]
pub(crate) struct HostStrings {
    pub(crate) names: BTreeSet<String>,
    /// Names that directly follow each other, two or more.
    pub(crate) rows: Vec<Vec<String>>,
}

impl<'a> HostPart<'a> {
    /// The bytes of a file without its containers of device code.
    pub fn without_containers(file: &'a [u8], containers: impl IntoIterator<Item = Range<usize>>) -> Self {
        let mut containers: Vec<Range<usize>> = containers.into_iter().collect();
        containers.sort_by_key(|container| container.start);
        let (mut parts, mut at) = (Vec::new(), 0);
        for container in containers {
            parts.push(file.get(at..container.start).unwrap_or_default());
            at = at.max(container.end);
        }
        parts.push(file.get(at..).unwrap_or_default());
        Self { parts, strings: OnceLock::new() }
    }

    pub(crate) fn host_strings(&self) -> &HostStrings {
        self.strings.get_or_init(|| {
            let mut strings = HostStrings::default();
            self.parts.iter().for_each(|part| strings.collect_strings(part));
            strings
        })
    }
}

impl HostStrings {
    fn collect_strings(&mut self, bytes: &[u8]) {
        let (mut row, mut end) = (Vec::new(), 0);
        let mut at = 0;
        while let Some(next) = bytes[at..].iter().position(|byte| *byte == b'g') {
            at += next;
            let Some(name) = name(&bytes[at..]) else {
                at += 1;
                continue;
            };
            if at != end {
                self.close_row(std::mem::take(&mut row));
            }
            self.names.insert(name.to_owned());
            row.push(name.to_owned());
            at += name.len() + 1;
            end = at;
        }
        self.close_row(row);
    }

    fn close_row(&mut self, row: Vec<String>) {
        if row.len() > 1 {
            self.rows.push(row);
        }
    }

    /// Whether all of these names are present.
    pub(crate) fn has_all<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> bool {
        names.into_iter().all(|name| self.names.contains(name))
    }

    /// Whether these names directly follow each other.
    pub(crate) fn has_row(&self, names: &[&str]) -> bool {
        self.rows.iter().any(|row| row.windows(names.len()).any(|part| part.iter().eq(names.iter().copied())))
    }
}

/// The name at the beginning, if a zero byte follows: linkers put strings into the tails of longer ones.
fn name(bytes: &[u8]) -> Option<&str> {
    /// `gfx90c`, `gfx1030`, and room for longer ones.
    const LONGEST: usize = 8;
    let digits = bytes.strip_prefix(b"gfx")?;
    let length = digits.iter().take(LONGEST).position(|byte| !matches!(byte, b'0'..=b'9' | b'a'..=b'f'))?;
    let ends = length >= 3 && digits.get(length) == Some(&0);
    std::str::from_utf8(bytes.get(..3 + length)?).ok().filter(|_| ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(bytes: &[u8]) -> HostStrings {
        let mut strings = HostStrings::default();
        strings.collect_strings(bytes);
        strings
    }

    #[test]
    fn names_are_strings_and_their_rows_are_kept() {
        let found = strings(b"x\0gfx1030\0gfx90a\0 gfx1100\0gfx110x\0gfx12\0--gfx1201\0gfx1031 is\0gfx9000");
        let names: Vec<&str> = found.names.iter().map(String::as_str).collect();
        assert_eq!(names, ["gfx1030", "gfx1100", "gfx1201", "gfx90a"]);
        assert!(found.has_row(&["gfx1030", "gfx90a"]) && !found.has_row(&["gfx90a", "gfx1100"]));
    }

    #[test]
    fn device_code_is_no_part_of_it() {
        let file = b"gfx1030\0gfx1031\0gfx1032\0";
        let host = HostPart::without_containers(file, std::iter::once(8..16));
        assert_eq!(host.host_strings().names.iter().collect::<Vec<_>>(), ["gfx1030", "gfx1032"]);
        assert!(HostPart::without_containers(file, std::iter::once(0..24)).host_strings().names.is_empty());
        assert_eq!(HostPart::without_containers(file, [16..24, 0..8]).host_strings().names.len(), 1);
    }
}
