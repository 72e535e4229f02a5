//! Accesses to two elements of LDS, of which some results are not specified.
//!
//! Where lanes of one instruction store to the same bytes, which lane is the last one is not documented, so the two stores
//! that replace it may give something else; nor is it whether the end of LDS is asked for each element or for both. States in
//! which lanes meet, or in which a lane has one element in LDS and one beyond its end, are left out; elements of one lane
//! may overlap.

use crate::random::Random;
use hotswap_emulator::SnippetMachine;
use hotswap_isa::bank::{BankRole, VgprBanks};
use hotswap_isa::{Inst, Isa, Name, OperandValue};

/// An access to two elements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PairAccess {
    address: hotswap_isa::reg::Reg,
    offsets: [u32; 2],
    size: u32,
    stores: bool,
}

impl PairAccess {
    /// Whether an instruction is one.
    pub(crate) fn of_instruction(inst: &Inst, isa: Isa) -> Option<Self> {
        let name = inst.mnemonic();
        let is_pair = name.starts_with("ds_") && name.contains("_2addr");
        let Some(OperandValue::Reg(address)) = inst.operand(isa, Name::Addr).filter(|_| is_pair) else { return None };
        let size = if name.ends_with("b64") { 8 } else { 4 };
        let unit = if name.contains("stride64") { 64 * size } else { size };
        Some(Self {
            address,
            offsets: [Name::Offset0, Name::Offset1].map(|name| inst.raw(name).unwrap_or(0) as u32 * unit),
            size,
            stores: !name.starts_with("ds_load"),
        })
    }

    /// The register of the address in a bank mode.
    pub(crate) fn address_register(&self, banks: u8) -> u16 {
        let banks = VgprBanks::of_mode(banks);
        banks.resolve_register(self.address, Some(BankRole::Source0)).map_or(self.address.index, |reg| reg.index)
    }

    /// Addresses at which lanes rarely meet.
    pub(crate) fn spread_addresses(random: &mut Random) -> [u32; 32] {
        let (stride, base) = (random.choose_from(&[8, 12, 16, 24, 4096, 4100]), random.below(512));
        std::array::from_fn(|lane| base + stride * lane as u32)
    }

    /// Whether the result is specified.
    pub(crate) fn is_specified(&self, machine: &SnippetMachine<'_>) -> bool {
        !(self.is_cut(machine) || self.stores && self.lanes_meet(machine))
    }

    /// Whether some lane has an element in LDS, and one that is not, or not all of it.
    fn is_cut(&self, machine: &SnippetMachine<'_>) -> bool {
        let (register, exec, end) =
            (self.address_register(machine.banks()), machine.exec(), machine.lds().len() as u64);
        let lanes = (0..32 * machine.halves()).filter(|lane| exec >> lane & 1 != 0);
        { lanes }.any(|lane| !accesses_stay_together(machine.vector(register, lane / 32)[lane % 32], self, end))
    }

    /// Whether different lanes store to the same byte.
    fn lanes_meet(&self, machine: &SnippetMachine<'_>) -> bool {
        let register = self.address_register(machine.banks());
        let exec = machine.exec();
        let mut stored: Vec<StoredElement> = Vec::new();
        for lane in (0..32 * machine.halves()).filter(|lane| exec >> lane & 1 != 0) {
            let base = machine.vector(register, lane / 32)[lane % 32];
            stored.extend(self.offsets.map(|offset| StoredElement { start: base.wrapping_add(offset), lane }));
        }
        stored.sort_unstable();
        (0..stored.len()).any(|at| meets_other_lane(at, self, &stored))
    }
}

fn accesses_stay_together(base: u32, access: &PairAccess, end: u64) -> bool {
    let ends = access.offsets.map(|offset| u64::from(base) + u64::from(offset) + u64::from(access.size));
    let all = ends.iter().all(|last| *last <= end);
    let none = ends.iter().all(|last| last - u64::from(access.size) >= end && *last <= 1 << 32);
    all || none
}

/// The address of an element that a lane stores.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct StoredElement {
    start: u32,
    lane: usize,
}

/// Elements of one size: if two of them meet, two that are next to each other in this order do, or all between
/// them belong to one lane.
fn meets_other_lane(at: usize, access: &PairAccess, stored: &[StoredElement]) -> bool {
    let one = &stored[at];
    let after = stored[at + 1..].iter().take_while(|next| next.start - one.start < access.size);
    { after }.any(|other| other.lane != one.lane)
}
