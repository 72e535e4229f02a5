//! Changed instructions of a function.
//!
//! Invariants: places are in ascending order. All new code of a function is in one list: there are many places, and a
//! list for each would be a separate allocation, freed by another thread.

use hotswap_families::FAMILIES;
use hotswap_isa::Inst;
use hotswap_rewrite::CodeEdits;
use std::ops::Range;

/// The offset of each changed instruction, the instruction, and its replacement.
#[derive(Debug, Default, Clone)]
pub(crate) struct InstChanges {
    places: Vec<ChangedOffset>,
    /// The new code of all places. Parts of it may no longer belong to any.
    code: Vec<Inst>,
}

#[derive(Debug, Clone)]
struct ChangedOffset {
    offset: u32,
    /// The start of its new code, and the length.
    first: u32,
    count: u32,
    /// The families that contributed to it, see [`family_bit`].
    families: u32,
    old: Inst,
}

/// The bit of a family: its index in the table, or the highest bit for third-party families.
pub(crate) fn family_bit(name: &str) -> u32 {
    1 << FAMILIES.iter().position(|family| family.name == name).unwrap_or(OTHERS)
}

/// The index shared by all third-party families.
pub(crate) const OTHERS: usize = 31;

/// A changed instruction, while its new code is being collected.
pub(crate) struct NewChange {
    pub(crate) offset: u32,
    pub(crate) old: Inst,
    pub(crate) new: Vec<Inst>,
}

impl InstChanges {
    /// Reserves capacity for `count` places with the usual number of instructions each.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.places.reserve_exact(count);
        self.code.reserve_exact(2 * count);
    }

    /// Gives back capacity that is not used.
    pub(crate) fn shrink(&mut self) {
        if self.places.capacity() > 2 * self.places.len() + 8 {
            self.places.shrink_to_fit();
            self.code.shrink_to_fit();
        }
    }

    /// Replaces an instruction by new code.
    pub(crate) fn replace(&mut self, offset: u32, old: Inst, new: &[Inst], family: u32) {
        let place = self.push_new_code(offset, old, new, family);
        match self.find(offset) {
            Ok(found) => self.places[found] = place,
            Err(next) => self.places.insert(next, place),
        }
    }

    /// The same for many instructions that are still unchanged, in any order.
    pub(crate) fn add_changes(&mut self, more: &[NewChange], family: u32) {
        for NewChange { offset, old, new } in more {
            let place = self.push_new_code(*offset, *old, new, family);
            self.places.push(place);
        }
        self.places.sort_by_key(|place| place.offset);
    }

    fn push_new_code(&mut self, offset: u32, old: Inst, new: &[Inst], families: u32) -> ChangedOffset {
        let first = self.code.len() as u32;
        self.code.extend_from_slice(new);
        ChangedOffset { offset, first, count: new.len() as u32, families, old }
    }

    /// Inserts more code into that of a place, before its instruction number `before`. Returns whether there
    /// is such a place.
    pub(crate) fn put_in(&mut self, offset: u32, before: usize, more: &[Inst], family: u32) -> bool {
        let Ok(found) = self.find(offset) else { return false };
        let mut code = self.new_code(&self.places[found]).to_vec();
        let before = before.min(code.len());
        code.splice(before..before, more.iter().copied());
        let place = &mut self.places[found];
        (place.first, place.count) = (self.code.len() as u32, code.len() as u32);
        place.families |= family;
        self.code.append(&mut code);
        true
    }

    fn find(&self, offset: u32) -> Result<usize, usize> {
        // Most are added in order.
        match self.places.last() {
            Some(last) if last.offset < offset => Err(self.places.len()),
            _ => self.places.binary_search_by_key(&offset, |place| place.offset),
        }
    }

    fn new_code(&self, place: &ChangedOffset) -> &[Inst] {
        &self.code[place.first as usize..][..place.count as usize]
    }

    /// The number of changed places.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Inst, &[Inst])> {
        self.changes_of_places(&self.places)
    }

    /// The changes in a range of offsets.
    pub(crate) fn changes_in(&self, range: Range<u32>) -> impl Iterator<Item = (u32, &Inst, &[Inst])> {
        let first = self.places.partition_point(|place| place.offset < range.start);
        let rest = &self.places[first..];
        self.changes_of_places(&rest[..rest.partition_point(|place| place.offset < range.end)])
    }

    /// The offset of each place, its instruction, and the families that contributed to it.
    pub(crate) fn sites(&self) -> impl Iterator<Item = (u32, &Inst, u32)> {
        self.places.iter().map(|place| (place.offset, &place.old, place.families))
    }

    fn changes_of_places<'c>(
        &'c self,
        places: &'c [ChangedOffset],
    ) -> impl Iterator<Item = (u32, &'c Inst, &'c [Inst])> {
        places.iter().map(|place| (place.offset, &place.old, self.new_code(place)))
    }

    /// Bytes by which the function grew.
    pub(crate) fn growth_bytes(&self) -> i64 {
        self.iter().map(|(_, old, new)| code_size(new) - i64::from(old.len())).sum()
    }

    /// The changes as edits. The part of a place that stays is not touched: its branches and relocations
    /// belong to the layout.
    pub(crate) fn append_edits(&self, edits: &mut CodeEdits) {
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        for (offset, old, new) in self.iter() {
            let at = u64::from(offset);
            match new.iter().position(|inst| inst.words() == old.words()) {
                Some(place) => {
                    encode_into(&new[..place], &mut before);
                    encode_into(&new[place + 1..], &mut behind);
                    // Without new instructions, a clause ends here.
                    if !before.is_empty() || new.len() == 1 {
                        edits.insert_before(at, &before, &[]);
                    }
                    if !behind.is_empty() {
                        edits.insert_after(at, &behind, &[]);
                    }
                }
                None => {
                    encode_into(new, &mut before);
                    edits.replace(at, u64::from(old.len()), &before, &[]);
                }
            }
        }
    }
}

#[cfg(test)]
impl InstChanges {
    /// Corrupts the changes: drops one of the inserted instructions, and uses v20 where v0 was free.
    pub(crate) fn corrupt_for_test(&mut self) {
        use hotswap_isa::reg::{Reg, RegFile};
        use hotswap_isa::{Isa, Name, OperandValue, Target};
        let isa = Isa::new(Target::find("gfx1250-strict").unwrap());
        let first = Reg::new(RegFile::Vgpr, 0, 1);
        for place in &mut self.places {
            let own = place.first as usize..(place.first + place.count) as usize;
            if self.code[own.clone()].first().is_some_and(|inst| inst.mnemonic() == "v_nop") {
                (place.first, place.count) = (place.first + 1, place.count - 1);
            }
            for inst in self.code[own].iter_mut().filter(|inst| inst.words() != place.old.words()) {
                for name in [Name::Vdst, Name::Src0, Name::Src1] {
                    if inst.operand(isa, name) == Some(OperandValue::Reg(first)) {
                        *inst = inst.with_operand(isa, name, Reg { index: 20, ..first }).unwrap();
                    }
                }
            }
        }
    }
}

fn code_size(code: &[Inst]) -> i64 {
    code.iter().map(|inst| i64::from(inst.len())).sum()
}

/// The bytes of some code, in a buffer that is reused.
fn encode_into(code: &[Inst], bytes: &mut Vec<u8>) {
    bytes.clear();
    for inst in code {
        bytes.extend_from_slice(&inst.bytes()[..usize::from(inst.len())]);
    }
}
