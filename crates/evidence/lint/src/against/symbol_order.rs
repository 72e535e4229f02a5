//! Symbols of a rewritten file in the order of the original.
//!
//! A link with kept relocations ([`super::kept`]) reads machine code where the compiler's own link read bitcode, and may number
//! symbols otherwise. The comparison goes by number, so the copy that is compared gets the original's order. Before that, the
//! rewritten file's hash tables must find every symbol: their bytes, and those of the names, are then the original's.
//!
//! Absent on purpose: tables with other names than the original's; they stay, and the comparison reports them.

use super::tables::{SectionRow, SymbolEntry, section_headers, section_range, symbol_entries, symbol_names};
use object::elf::{self, Rela64};
use object::pod::{bytes_of, slice_from_bytes};
use object::{LittleEndian as LE, U32};
use std::collections::{HashMap, VecDeque};

/// The table of dynamic symbols of one file.
struct DynamicSymbols<'a> {
    data: &'a [u8],
    rows: &'a [SectionRow],
    /// The number of its section.
    number: usize,
    symbols: &'a [SymbolEntry],
}

impl<'a> DynamicSymbols<'a> {
    fn find(data: &'a [u8]) -> Option<Self> {
        let rows = section_headers(data)?;
        let number = rows.iter().position(|row| row.sh_type.get(LE) == elf::SHT_DYNSYM)?;
        Some(Self { data, rows, number, symbols: symbol_entries(data, &rows[number])? })
    }

    fn symbol_names(&self) -> Option<Vec<&'a [u8]>> {
        symbol_names(self.data, self.rows, &self.rows[self.number], self.symbols)
    }

    /// The sections of that type that belong to it.
    fn linked_sections(&self, kind: u32) -> impl Iterator<Item = &'a SectionRow> {
        let number = self.number as u32;
        self.rows.iter().filter(move |row| row.sh_type.get(LE) == kind && row.sh_link.get(LE) == number)
    }

    /// Whether no other section has bytes of the sections that change.
    fn is_alone(&self) -> bool {
        let names = self.rows.get(self.rows[self.number].sh_link.get(LE) as usize);
        let own =
            [elf::SHT_HASH, elf::SHT_GNU_HASH, elf::SHT_RELA].into_iter().flat_map(|kind| self.linked_sections(kind));
        let mut own = own.chain([&self.rows[self.number]]).chain(names);
        own.all(|row| {
            !self
                .rows
                .iter()
                .filter(has_file_contents)
                .any(|other| !std::ptr::eq(other, row) && sections_overlap(other, self.data, row))
        })
    }

    /// Whether the hash tables find each symbol that is defined.
    fn are_found(&self, names: &[&[u8]]) -> bool {
        let sysv = self.linked_sections(elf::SHT_HASH).all(|row| {
            let found = section_words(self.data, row).and_then(|table| is_hash(&table, names));
            found == Some(true)
        });
        let gnu = self.linked_sections(elf::SHT_GNU_HASH).all(|row| {
            let Some(table) = section_words(self.data, row) else { return false };
            let mut defined = (1..names.len()).filter(|number: &usize| self.symbols[*number].st_shndx.get(LE) != 0);
            defined.all(|number| in_gnu_hash(&table, names, number) == Some(true))
        });
        sysv && gnu
    }
}

fn has_file_contents(row: &&SectionRow) -> bool {
    row.sh_type.get(LE) != elf::SHT_NOBITS
}

fn sections_overlap(other: &SectionRow, data: &[u8], row: &elf::SectionHeader64<LE>) -> bool {
    let (one, other) = (section_range(data, row), section_range(data, other));
    one.zip(other).is_none_or(|(one, other)| one.start < other.end && other.start < one.end)
}

/// Gives the copy's dynamic symbols the order of the original; `None` where the copy is unchanged.
pub(super) fn restore_order(original: &[u8], copy: &mut [u8]) -> Option<()> {
    let before = copy.to_vec();
    let (old, new) = (DynamicSymbols::find(original)?, DynamicSymbols::find(&before)?);
    let (old_names, new_names) = (old.symbol_names()?, new.symbol_names()?);
    let order = match_names(&old_names, &new_names)?;
    if order.iter().enumerate().all(|(place, number)| place == *number) || !new.are_found(&new_names) || !new.is_alone()
    {
        return None;
    }
    let table = section_range(&before, &new.rows[new.number])?;
    for (place, number) in order.iter().enumerate() {
        let symbol = SymbolEntry { st_name: old.symbols[place].st_name, ..new.symbols[*number] };
        let at = table.start + place * size_of::<SymbolEntry>();
        copy[at..at + size_of::<SymbolEntry>()].copy_from_slice(bytes_of(&symbol));
    }
    let mut places = vec![0; order.len()];
    order.iter().enumerate().for_each(|(place, number)| places[*number] = place as u32);
    new.linked_sections(elf::SHT_RELA).for_each(|row| renumber_relocations(&before, row, &places, copy));
    for kind in [elf::SHT_HASH, elf::SHT_GNU_HASH] {
        for (from, to) in old.linked_sections(kind).zip(new.linked_sections(kind)) {
            copy_section((original, from), to, copy);
        }
    }
    let strings =
        |table: &DynamicSymbols<'_>| table.rows.get(table.rows[table.number].sh_link.get(LE) as usize).copied();
    copy_section((original, &strings(&old)?), &strings(&new)?, copy);
    Some(())
}

/// For each of the old names the number of the new one; several of one name stay in their order. `None` where they are
/// not the same names.
pub(super) fn match_names(old: &[&[u8]], new: &[&[u8]]) -> Option<Vec<usize>> {
    let mut numbers: HashMap<&[u8], VecDeque<usize>> = HashMap::new();
    new.iter().enumerate().for_each(|(number, name)| numbers.entry(name).or_default().push_back(number));
    let found: Option<Vec<usize>> = old.iter().map(|name| numbers.get_mut(name)?.pop_front()).collect();
    found.filter(|found| found.len() == new.len())
}

/// Sets the symbols of loaded relocations to their new places.
fn renumber_relocations(before: &[u8], row: &SectionRow, places: &[u32], copy: &mut [u8]) {
    let Some(range) = section_range(before, row) else { return };
    let (bytes, size) = (&before[range.clone()], size_of::<Rela64<LE>>());
    let Ok((relocations, _)) = slice_from_bytes::<Rela64<LE>>(bytes, bytes.len() / size) else { return };
    for (index, relocation) in relocations.iter().enumerate() {
        let Some(place) = places.get(relocation.r_sym(LE, false) as usize) else { continue };
        let mut relocation = *relocation;
        relocation.set_r_info(LE, false, *place, relocation.r_type(LE, false));
        let at = range.start + index * size;
        copy[at..at + size].copy_from_slice(bytes_of(&relocation));
    }
}

/// Copies the bytes of a section over those of one of the same size.
fn copy_section((original, from): (&[u8], &SectionRow), to: &SectionRow, copy: &mut [u8]) {
    let (from, to) = (section_range(original, from), section_range(copy, to));
    if let Some((from, to)) = from.zip(to).filter(|(from, to)| from.len() == to.len()) {
        copy[to].copy_from_slice(&original[from]);
    }
}

fn section_words(data: &[u8], row: &SectionRow) -> Option<Vec<u32>> {
    let bytes = data.get(section_range(data, row)?)?;
    let (words, _) = slice_from_bytes::<U32<LE>>(bytes, bytes.len() / 4).ok()?;
    Some(words.iter().map(|word| word.get(LE)).collect())
}

/// Whether `DT_HASH` has each symbol once, in the bucket of its name, and nothing else.
fn is_hash(table: &[u32], names: &[&[u8]]) -> Option<bool> {
    let buckets = *table.first()?;
    let mut found = 1; // the first symbol has no name
    for bucket in 0..buckets {
        let mut at = *table.get(2 + bucket as usize)? as usize;
        while at != 0 {
            found += 1;
            if elf::hash(names.get(at)?) % buckets != bucket || found > names.len() {
                return Some(false);
            }
            at = *table.get(2 + buckets as usize + at)? as usize;
        }
    }
    Some(found == names.len())
}

/// Whether `DT_GNU_HASH` finds the symbol by its name.
fn in_gnu_hash(table: &[u32], names: &[&[u8]], number: usize) -> Option<bool> {
    let [buckets, first, bloom, shift] = *table.first_chunk::<4>()?;
    let hash = elf::gnu_hash(names[number]);
    let word = 4 + 2 * (hash / 64).checked_rem(bloom)? as usize;
    let mask = u64::from(*table.get(word)?) | u64::from(*table.get(word + 1)?) << 32;
    if mask >> (hash % 64) & mask >> (hash.checked_shr(shift)? % 64) & 1 == 0 {
        return Some(false);
    }
    let start = 4 + 2 * bloom as usize;
    let mut at = *table.get(start + hash.checked_rem(buckets)? as usize)?;
    let chains = start + buckets as usize;
    loop {
        let chain = *table.get(chains + at.checked_sub(first)? as usize)?;
        if chain | 1 == hash | 1 && *names.get(at as usize)? == names[number] {
            return Some(at as usize == number);
        }
        if chain & 1 == 1 {
            return Some(false);
        }
        at = at.checked_add(1)?;
    }
}
