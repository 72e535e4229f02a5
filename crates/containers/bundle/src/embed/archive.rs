//! Archives with changed members, in the forms of GNU, System V, BSD and Windows.
//!
//! A header of 60 bytes precedes each member; the size is decimal text at offset 48. BSD's names of any length
//! (`#1/LENGTH`) precede the member's data and are included in its size. Symbol tables refer to members by the offsets
//! of their headers, which change:
//!
//! | member | content |
//! |---|---|
//! | `/` | u32 count and offsets, big-endian |
//! | a second `/` (Windows) | the same, little-endian, then more |
//! | `/SYM64/` | as `/` with u64 |
//! | `__.SYMDEF`, `__.SYMDEF SORTED` (BSD) | u32 size, then pairs of u32 name and offset, little-endian |
//! | `__.SYMDEF_64` (BSD) | the same with u64 |

use super::{draft_of_form, no_place, shift_exchanges};
use crate::bytes::malformed_at;
use crate::linked::BundleReplacement;
use crate::magic::is_bundle;
use hotswap_report::{Diagnostic, codes};
use std::collections::BTreeMap;
use std::ops::Range;

const MAGIC: usize = 8;
const HEADER: usize = 60;
const SIZE: std::ops::Range<usize> = 48..58;
/// BSD's linkers expect members at such offsets; a changed one must not misalign the others.
const BSD_ALIGNMENT: usize = 8;

struct Member<'a> {
    /// Offset of its header.
    at: usize,
    header: &'a [u8],
    name: &'a [u8],
    /// BSD's name before the data.
    prefix: &'a [u8],
    data: &'a [u8],
}

impl Member<'_> {
    /// Offset of its data.
    fn start(&self) -> usize {
        self.at + HEADER + self.prefix.len()
    }
}

/// Form of a symbol table.
#[derive(Clone, Copy)]
struct SymbolTableForm {
    width: usize,
    is_big: bool,
    /// Pairs of a name and an offset, preceded by their size, instead of offsets, preceded by their number.
    is_pairs: bool,
}

impl SymbolTableForm {
    fn of_member(name: &[u8], first: bool) -> Option<Self> {
        let (width, is_big, is_pairs) = match name {
            b"/" => (4, first, false),
            b"/SYM64/" => (8, true, false),
            b"__.SYMDEF" | b"__.SYMDEF SORTED" => (4, false, true),
            b"__.SYMDEF_64" | b"__.SYMDEF_64 SORTED" => (8, false, true),
            _ => return None,
        };
        Some(Self { width, is_big, is_pairs })
    }

    fn read_offset(self, bytes: &[u8]) -> u64 {
        if self.is_big {
            bytes.iter().fold(0, append_offset_byte)
        } else {
            bytes.iter().rev().fold(0, append_offset_byte)
        }
    }

    fn write_offset(self, field: &mut [u8], value: u64) {
        if self.is_big {
            field.copy_from_slice(&value.to_be_bytes()[8 - self.width..]);
        } else {
            field.copy_from_slice(&value.to_le_bytes()[..self.width]);
        }
    }

    fn retarget_offsets(self, table: &mut [u8], moved: &BTreeMap<u64, u64>) -> Result<(), Diagnostic> {
        let head = self.read_offset(table.get(..self.width).ok_or_else(damaged_symbol_table_error)?) as usize;
        let count = if self.is_pairs { head / (2 * self.width) } else { head };
        if count > table.len() / self.width {
            return Err(damaged_symbol_table_error());
        }
        for number in 0..count {
            let at = self.width * if self.is_pairs { 2 * number + 2 } else { number + 1 };
            let field = table.get_mut(at..at + self.width).ok_or_else(damaged_symbol_table_error)?;
            let new = *moved.get(&self.read_offset(field)).ok_or_else(damaged_symbol_table_error)?;
            if self.width == 4 && new > u64::from(u32::MAX) {
                return Err(no_place("the archive's symbol table has 32 bits"));
            }
            self.write_offset(field, new);
        }
        Ok(())
    }
}

fn append_offset_byte(value: u64, byte: &u8) -> u64 {
    value << 8 | u64::from(*byte)
}

fn damaged_symbol_table_error() -> Diagnostic {
    malformed_at("the archive's symbol table is damaged", MAGIC as u64)
}

/// A symbol table in the new archive, whose offsets are still the old ones.
struct WrittenSymbolTable {
    range: Range<usize>,
    form: SymbolTableForm,
}

pub(super) fn rewrite_archive(archive: &[u8], exchanges: &[BundleReplacement<'_>]) -> Result<Vec<u8>, Diagnostic> {
    let members = read_members(archive)?;
    let mut out = archive[..MAGIC].to_vec();
    let mut moved: BTreeMap<u64, u64> = BTreeMap::new();
    let mut tables: Vec<WrittenSymbolTable> = Vec::new();
    let mut taken = 0;
    for (number, member) in members.iter().enumerate() {
        moved.insert(member.at as u64, out.len() as u64);
        let start = member.start() as u64;
        let range = start..start + member.data.len() as u64;
        let inside: Vec<_> = exchanges.iter().filter(|exchange| range.contains(&exchange.offset)).cloned().collect();
        taken += inside.len();
        let changed =
            if inside.is_empty() { None } else { Some(changed_member(member, &shift_exchanges(&inside, start))?) };
        let data = changed.as_deref().unwrap_or(member.data);
        let mut header = member.header.to_vec();
        header[SIZE].copy_from_slice(format!("{:<10}", member.prefix.len() + data.len()).as_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(member.prefix);
        let form = SymbolTableForm::of_member(member.name, number == 0);
        tables.extend(form.map(|form| WrittenSymbolTable { range: out.len()..out.len() + data.len(), form }));
        out.extend_from_slice(data);
        if out.len() % 2 == 1 {
            out.push(b'\n');
        }
    }
    if taken != exchanges.len() {
        return Err(Diagnostic::error(codes::NOT_FOUND, "a container is in no member of the archive"));
    }
    tables.into_iter().try_for_each(|table| table.form.retarget_offsets(&mut out[table.range], &moved))?;
    Ok(out)
}

/// The member's new data. Zeros may follow objects, but not bundles.
fn changed_member(member: &Member<'_>, exchanges: &[BundleReplacement<'_>]) -> Result<Vec<u8>, Diagnostic> {
    let mut data = draft_of_form(member.data, exchanges)?.to_vec();
    if !member.prefix.is_empty() && !is_bundle(&data) {
        let odd = data.len().abs_diff(member.data.len()) % BSD_ALIGNMENT;
        let more = if data.len() > member.data.len() { (BSD_ALIGNMENT - odd) % BSD_ALIGNMENT } else { odd };
        data.resize(data.len() + more, 0);
    }
    Ok(data)
}

fn read_members(archive: &[u8]) -> Result<Vec<Member<'_>>, Diagnostic> {
    let (mut members, mut at) = (Vec::new(), MAGIC);
    while at < archive.len() {
        let header = archive.get(at..at + HEADER).ok_or_else(|| damaged_member_error(at))?;
        let size: usize = parse_decimal_field(&header[SIZE])
            .filter(|_| header.ends_with(b"`\n"))
            .ok_or_else(|| damaged_member_error(at))?;
        // A size of ten digits cannot overflow.
        let all = archive.get(at + HEADER..at + HEADER + size).ok_or_else(|| damaged_member_error(at))?;
        let mut name = header[..16].trim_ascii_end();
        let length: usize =
            name.strip_prefix(b"#1/").map_or(Some(0), parse_decimal_field).ok_or_else(|| damaged_member_error(at))?;
        let (prefix, data) = all.split_at_checked(length).ok_or_else(|| damaged_member_error(at))?;
        if length > 0 {
            name = &prefix[..prefix.iter().position(|byte| *byte == 0).unwrap_or(length)];
        }
        members.push(Member { at, header, name, prefix, data });
        at = (at + HEADER + size).next_multiple_of(2);
    }
    Ok(members)
}

fn damaged_member_error(at: usize) -> Diagnostic {
    malformed_at("a member's header is damaged", at as u64)
}

fn parse_decimal_field(bytes: &[u8]) -> Option<usize> {
    std::str::from_utf8(bytes).ok().and_then(|text| text.trim_end().parse().ok())
}
