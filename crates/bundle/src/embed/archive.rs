//! Archives in the form of GNU and System V, with changed members.
//!
//! A header of 60 bytes stands before each member; the size is decimal text at offset 48. The symbol
//! tables `/` (32-bit offsets, big-endian) and `/SYM64/` (64-bit) name members by the offsets of their
//! headers, which move. Those of BSD (`__.SYMDEF`) are refused.

use super::{into, no_place, shifted};
use crate::bytes::malformed;
use crate::linked::Exchange;
use hotswap_report::{Diagnostic, codes};
use std::collections::BTreeMap;

const MAGIC: usize = 8;
const HEADER: usize = 60;
const SIZE: std::ops::Range<usize> = 48..58;

struct Member<'a> {
    /// Offset of its header.
    at: usize,
    header: &'a [u8],
    data: &'a [u8],
}

pub(super) fn rewrite(archive: &[u8], exchanges: &[Exchange]) -> Result<Vec<u8>, Diagnostic> {
    let members = members(archive)?;
    let mut out = archive[..MAGIC].to_vec();
    let mut moved: BTreeMap<u64, u64> = BTreeMap::new();
    let mut tables: Vec<(usize, usize, usize)> = Vec::new();
    let mut taken = 0;
    for member in &members {
        moved.insert(member.at as u64, out.len() as u64);
        let start = (member.at + HEADER) as u64;
        let range = start..start + member.data.len() as u64;
        let inside: Vec<_> = exchanges.iter().filter(|exchange| range.contains(&exchange.offset)).cloned().collect();
        taken += inside.len();
        let name = member.header[..16].trim_ascii_end();
        let changed = if inside.is_empty() { None } else { Some(into(member.data, &shifted(&inside, start))?) };
        let data = changed.as_deref().unwrap_or(member.data);
        let mut header = member.header.to_vec();
        header[SIZE].copy_from_slice(format!("{:<10}", data.len()).as_bytes());
        out.extend_from_slice(&header);
        match name {
            b"/" => tables.push((out.len(), data.len(), 4)),
            b"/SYM64/" => tables.push((out.len(), data.len(), 8)),
            _ if name.starts_with(b"__.SYMDEF") || name.starts_with(b"#1/") => {
                return Err(no_place("the archive has the form of BSD"));
            }
            _ => {}
        }
        out.extend_from_slice(data);
        if out.len() % 2 == 1 {
            out.push(b'\n');
        }
    }
    if taken != exchanges.len() {
        return Err(Diagnostic::error(codes::NOT_FOUND, "a container is in no member of the archive"));
    }
    tables.into_iter().try_for_each(|(start, size, width)| retarget(&mut out[start..start + size], width, &moved))?;
    Ok(out)
}

fn members(archive: &[u8]) -> Result<Vec<Member<'_>>, Diagnostic> {
    let (mut members, mut at) = (Vec::new(), MAGIC);
    while at < archive.len() {
        let cut = || malformed("a member's header is damaged", at as u64);
        let header = archive.get(at..at + HEADER).ok_or_else(cut)?;
        let size = std::str::from_utf8(&header[SIZE]).ok().and_then(|text| text.trim_end().parse::<usize>().ok());
        let size = size.filter(|_| header.ends_with(b"`\n")).ok_or_else(cut)?;
        // A size of ten digits cannot overflow.
        let data = archive.get(at + HEADER..at + HEADER + size).ok_or_else(cut)?;
        members.push(Member { at, header, data });
        at = (at + HEADER + size).next_multiple_of(2);
    }
    Ok(members)
}

/// Exchanges the offsets in a symbol table: a number of them, then that many.
fn retarget(table: &mut [u8], width: usize, moved: &BTreeMap<u64, u64>) -> Result<(), Diagnostic> {
    let broken = || malformed("the archive's symbol table is damaged", MAGIC as u64);
    let number = |bytes: &[u8]| bytes.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    let count = number(table.get(..width).ok_or_else(broken)?) as usize;
    if count > table.len() / width {
        return Err(broken());
    }
    for at in 1..=count {
        let field = table.get_mut(at * width..(at + 1) * width).ok_or_else(broken)?;
        let new = *moved.get(&number(field)).ok_or_else(broken)?;
        if width == 4 && new > u64::from(u32::MAX) {
            return Err(no_place("the archive's symbol table has 32 bits"));
        }
        field.copy_from_slice(&new.to_be_bytes()[8 - width..]);
    }
    Ok(())
}
