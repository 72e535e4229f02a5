//! Reads the result again: the remaining parts are present and equal, the removed ones are absent.

use super::hashes::{gnu_hash, sysv_hash};
use super::{Leaving, NOTHING};
use crate::CodeObject;
use crate::image::{ObjectImage, SectionPart};
use hotswap_report::{Diagnostic, codes};
use object::elf;

pub(super) fn check_result(old: &CodeObject<'_>, leaving: &Leaving<'_>, new: &[u8]) -> Result<(), Diagnostic> {
    let object = CodeObject::parse(new).map_err(|error| left_out_verify_failure(error.to_string()))?;
    check_kernels(old, leaving, &object).map_err(left_out_verify_failure)?;
    let (before, after) = (ObjectImage::parse(old.bytes())?, ObjectImage::parse(new)?);
    check_symbol_names(&before, &after, leaving).map_err(left_out_verify_failure)?;
    check_bytes(&before, &after, old, leaving).map_err(left_out_verify_failure)
}

fn left_out_verify_failure(what: String) -> Diagnostic {
    Diagnostic::error(codes::VERIFY_FAILED, format!("without some kernels: {what}"))
}

fn check_kernels(old: &CodeObject<'_>, leaving: &Leaving<'_>, new: &CodeObject<'_>) -> Result<(), String> {
    let stay =
        old.note().kernels.iter().zip(old.descriptors()).filter(|(kernel, _)| !leaving.kernels.contains(kernel.name));
    let mut now = new.note().kernels.iter().zip(new.descriptors());
    for (kernel, descriptor) in stay {
        let (found, place) = now.next().ok_or_else(|| format!("{} is missing", kernel.name))?;
        let is_same =
            found == kernel && old.bytes().get(descriptor.range.clone()) == new.bytes().get(place.range.clone());
        if !is_same {
            return Err(format!("{} is described otherwise", kernel.name));
        }
    }
    now.next().map_or(Ok(()), |(kernel, _)| Err(format!("{} is still there", kernel.name)))
}

/// Each name keeps its value, or is removed, and is found through the hash tables.
fn check_symbol_names(old: &ObjectImage<'_>, new: &ObjectImage<'_>, leaving: &Leaving<'_>) -> Result<(), String> {
    let (before, after) =
        (old.symbol_tables().map_err(diagnostic_text)?, new.symbol_tables().map_err(diagnostic_text)?);
    for (before, after) in before.iter().zip(&after) {
        let stay = before.rows.iter().filter(|row| !leaving.symbols.contains(row.name));
        if !stay.eq(&after.rows) {
            return Err("a symbol table has other names than those that stay".to_owned());
        }
        for table in new.sections.iter().filter(|section| section.link as usize == after.section) {
            let finds = match table.kind {
                elf::SHT_GNU_HASH => find_gnu,
                elf::SHT_HASH => find_sysv,
                _ => continue,
            };
            // Undefined names are in no GNU table.
            let wanted = after.rows.iter().enumerate().skip(1).filter(|(_, row)| row.section.is_some());
            let names: Vec<&str> = after.rows.iter().map(|row| row.name).collect();
            if let Some((_, row)) = wanted.into_iter().find(|(_, row)| finds(table, &names, row.name).is_none()) {
                return Err(format!("{} is not found through `{}`", row.name, table.name));
            }
        }
    }
    Ok(())
}

fn diagnostic_text(error: Diagnostic) -> String {
    error.to_string()
}

fn word_at(table: &SectionPart<'_>, index: usize) -> Option<u32> {
    table.bytes.get(index * 4..index * 4 + 4)?.try_into().ok().map(u32::from_le_bytes)
}

/// The number of a name, looked up as loaders do.
fn find_gnu(table: &SectionPart<'_>, names: &[&str], name: &str) -> Option<usize> {
    let (buckets, first, filter) = (word_at(table, 0)?, word_at(table, 1)? as usize, word_at(table, 2)? as usize);
    let hash = gnu_hash(name);
    let start = 4 + filter * 2;
    let mut number = word_at(table, start + hash.checked_rem(buckets)? as usize)? as usize;
    loop {
        let chain = word_at(table, start + buckets as usize + number.checked_sub(first)?)?;
        if chain | 1 == hash | 1 && names.get(number) == Some(&name) {
            return Some(number);
        }
        if chain & 1 != 0 {
            return None;
        }
        number += 1;
    }
}

fn find_sysv(table: &SectionPart<'_>, names: &[&str], name: &str) -> Option<usize> {
    let (buckets, chains) = (word_at(table, 0)?, word_at(table, 1)? as usize);
    let mut number = word_at(table, 2 + sysv_hash(name).checked_rem(buckets)? as usize)? as usize;
    for _ in 0..chains {
        if number == 0 || names.get(number) == Some(&name) {
            break;
        }
        number = word_at(table, 2 + buckets as usize + number)? as usize;
    }
    (number != 0 && names.get(number) == Some(&name)).then_some(number)
}

/// Sections that are not tables are the same except for the overwritten bytes.
fn check_bytes(
    old: &ObjectImage<'_>,
    new: &ObjectImage<'_>,
    object: &CodeObject<'_>,
    leaving: &Leaving<'_>,
) -> Result<(), String> {
    let tables = [
        elf::SHT_SYMTAB,
        elf::SHT_DYNSYM,
        elf::SHT_GNU_HASH,
        elf::SHT_HASH,
        elf::SHT_NOTE,
        elf::SHT_RELA,
        elf::SHT_REL,
    ];
    let left = object.note().kernels.iter().zip(object.descriptors());
    let left =
        left.filter(|(kernel, _)| leaving.kernels.contains(kernel.name)).map(|(_, descriptor)| &descriptor.range);
    let descriptors: Vec<_> = left.collect();
    for (before, after) in old.sections.iter().zip(&new.sections) {
        let is_like = (before.name, before.offset, before.address) == (after.name, after.offset, after.address);
        if !is_like || !tables.contains(&before.kind) && before.bytes.len() != after.bytes.len() {
            return Err(format!("the section `{}` is elsewhere", before.name));
        }
        if tables.contains(&before.kind) {
            continue;
        }
        for (at, (was, is)) in before.bytes.chunks(4).zip(after.bytes.chunks(4)).enumerate() {
            let place = before.offset as usize + at * 4;
            let is_descriptor = descriptors.iter().any(|range| range.start < place + 4 && place < range.end);
            if was != is && !is_descriptor && !(before.is_code() && is == NOTHING) {
                return Err(format!("a word of `{}` changed at {place:#x}", before.name));
            }
        }
    }
    Ok(())
}
