//! Hash tables over the remaining symbols, in the place of the old ones: as many buckets, shorter chains.

use super::symbols::SymbolRenumbering;
use super::{cannot_leave_out, put_bytes, set_size};
use crate::image::{ObjectImage, SectionPart};
use crate::malformed;
use hotswap_report::Diagnostic;
use object::elf;

/// Rebuilds `.gnu.hash` and `.hash`.
pub(super) fn rebuild_hashes(
    image: &ObjectImage<'_>,
    numbers: &SymbolRenumbering,
    out: &mut [u8],
) -> Result<(), Diagnostic> {
    for (number, section) in image.sections.iter().enumerate() {
        let new = match section.kind {
            elf::SHT_GNU_HASH => rebuild_gnu_hash(image, section, numbers)?,
            elf::SHT_HASH => rebuild_sysv_hash(image, section, numbers)?,
            _ => continue,
        };
        if new.len() > section.bytes.len() {
            return Err(cannot_leave_out("a hash table would grow"));
        }
        let size = new.len();
        let mut padded = new;
        padded.resize(section.bytes.len(), 0);
        put_bytes(out, section.offset as usize, &padded)?;
        set_size(image, number, size, out)?;
    }
    Ok(())
}

/// Names of the table's remaining symbols, in their order.
fn hashed_names<'a>(
    image: &ObjectImage<'a>,
    section: &SectionPart<'_>,
    numbers: &SymbolRenumbering,
) -> Result<Vec<&'a str>, Diagnostic> {
    let link = section.link as usize;
    let table = image.symbol_tables()?.into_iter().find(|table| table.section == link);
    let (Some(table), Some(numbers)) = (table, numbers.get(&link)) else {
        return Err(cannot_leave_out("a hash table belongs to no symbol table"));
    };
    let stays = table.rows.iter().zip(numbers).filter(|(_, number)| number.is_some());
    Ok(stays.map(|(row, _)| row.name).collect())
}

fn word_at(bytes: &[u8], index: usize) -> Result<u32, Diagnostic> {
    let bytes = bytes.get(index * 4..index * 4 + 4).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u32::from_le_bytes).ok_or_else(|| malformed(0, "a hash table is cut off"))
}

/// Header, filter, buckets, chains. The filter is unchanged: it may hold removed names. Symbols are sorted by
/// bucket, and stay so.
fn rebuild_gnu_hash(
    image: &ObjectImage<'_>,
    section: &SectionPart<'_>,
    numbers: &SymbolRenumbering,
) -> Result<Vec<u8>, Diagnostic> {
    let (buckets, first, filter) = (word_at(section.bytes, 0)?, word_at(section.bytes, 1)?, word_at(section.bytes, 2)?);
    let names = hashed_names(image, section, numbers)?;
    let old = numbers.get(&(section.link as usize)).map_or(&[][..], Vec::as_slice);
    let first_now = old.iter().take(first as usize).flatten().count();
    let head = 16 + filter as usize * 8;
    let head = section.bytes.get(..head).ok_or_else(|| malformed(0, "a hash table is cut off"))?;
    let mut places = vec![0_u32; buckets as usize];
    let mut chains: Vec<u32> = Vec::new();
    let hashes: Vec<u32> = names.iter().skip(first_now).map(|name| gnu_hash(name)).collect();
    let own_buckets: Vec<u32> = hashes.iter().map(|hash| hash.checked_rem(buckets).unwrap_or(0)).collect();
    for (index, (hash, bucket)) in hashes.iter().zip(&own_buckets).enumerate() {
        let is_last = own_buckets.get(index + 1).is_none_or(|next| next != bucket);
        chains.push(hash & !1 | u32::from(is_last));
        if let Some(place) = places.get_mut(*bucket as usize).filter(|place| **place == 0) {
            *place = (first_now + index) as u32;
        }
    }
    let mut new = head.to_vec();
    new[4..8].copy_from_slice(&(first_now as u32).to_le_bytes());
    new.extend(places.iter().chain(&chains).flat_map(|word| word.to_le_bytes()));
    Ok(new)
}

/// Numbers of buckets and chains, buckets, chains.
fn rebuild_sysv_hash(
    image: &ObjectImage<'_>,
    section: &SectionPart<'_>,
    numbers: &SymbolRenumbering,
) -> Result<Vec<u8>, Diagnostic> {
    let buckets = word_at(section.bytes, 0)?;
    let names = hashed_names(image, section, numbers)?;
    let (mut places, mut chains) = (vec![0_u32; buckets as usize], vec![0_u32; names.len()]);
    for (number, name) in names.iter().enumerate().skip(1) {
        let bucket = sysv_hash(name).checked_rem(buckets).unwrap_or(0) as usize;
        let place = places.get_mut(bucket).ok_or_else(|| malformed(0, "a hash table has no buckets"))?;
        chains[number] = std::mem::replace(place, number as u32);
    }
    let header = [buckets, names.len() as u32];
    Ok(header.iter().chain(&places).chain(&chains).flat_map(|word| word.to_le_bytes()).collect())
}

pub(super) fn gnu_hash(name: &str) -> u32 {
    name.bytes().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)))
}

pub(super) fn sysv_hash(name: &str) -> u32 {
    name.bytes().fold(0, |hash: u32, byte| {
        let hash = (hash << 4).wrapping_add(u32::from(byte));
        let high = hash & 0xf000_0000;
        (hash ^ high >> 24) & !high
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from the specifications.
    #[test]
    fn hashes_are_those_of_the_specifications() {
        assert_eq!([gnu_hash(""), gnu_hash("printf"), gnu_hash("exit")], [0x1505, 0x156b_2bb8, 0x7c96_7e3f]);
        assert_eq!([sysv_hash(""), sysv_hash("printf"), sysv_hash("exit")], [0, 0x0779_05a6, 0x0006_cf04]);
    }
}
