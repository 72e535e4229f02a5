//! Whether a row of the table applies to two given instructions.

use crate::class::InstClass;
use crate::table::{HazardRule, Overlap, Requirement, rules_for};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::{Flag, Inst, Isa};

/// An instruction with the bank mode before it.
#[derive(Debug, Clone, Copy)]
pub struct BankedInstruction<'a> {
    pub inst: &'a Inst,
    /// The bank mode before it.
    pub banks: VgprBanks,
}

impl HazardRule {
    /// Whether both instructions are of the row's classes and their registers overlap as the row requires.
    ///
    /// Rows of matrix instructions are judged by [`MatrixHazard`](crate::MatrixHazard), which knows the relevant operands.
    #[must_use]
    pub fn is_about(&self, isa: Isa, producer: BankedInstruction<'_>, consumer: BankedInstruction<'_>) -> bool {
        self.producer.contains(producer.inst, isa)
            && self.consumer.contains(consumer.inst, isa)
            && operands_overlap(self.overlap, isa, producer, consumer)
    }
}

impl BankedInstruction<'_> {
    /// The required number of vector instructions between this transcendental instruction and a later instruction,
    /// apart from all other hazards.
    #[must_use]
    pub fn trans_distance(self, isa: Isa, later: BankedInstruction<'_>) -> u8 {
        if !self.inst.is(Flag::Trans) {
            return 0;
        }
        let asked = rules_for(isa).filter(|rule| rule.producer == InstClass::Trans && rule.is_about(isa, self, later));
        asked.map(|rule| rule.requirement.vector_insts()).max().unwrap_or(0)
    }

    /// The explicit operands that are registers: whether each is written, and the register; in each bank that it may be
    /// in.
    fn explicit_registers(self, isa: Isa) -> Vec<(bool, Reg)> {
        let mut found = Vec::with_capacity(6);
        self.inst.visit(isa, |effect| {
            if effect.is_none() || effect.slot().is_none() {
                return;
            }
            let reg = Reg { half: None, ..effect.reg() };
            match self.banks.resolve_register(reg, effect.role()) {
                Some(reg) => found.push((effect.written(), reg)),
                None => found.extend((0..BANKS).map(|bank| (effect.written(), in_bank(reg, bank)))),
            }
        });
        found
    }
}

/// Banks of vector registers, and registers of one.
const BANKS: u16 = 4;
const BANK: u16 = 256;

fn in_bank(reg: Reg, bank: u16) -> Reg {
    Reg { index: reg.index + BANK * bank, ..reg }
}

fn operands_overlap(
    overlap: Overlap,
    isa: Isa,
    producer: BankedInstruction<'_>,
    consumer: BankedInstruction<'_>,
) -> bool {
    if overlap == Overlap::NONE {
        return true;
    }
    let (earlier, later) = (producer.explicit_registers(isa), consumer.explicit_registers(isa));
    let meet = |(first, one): &(bool, Reg)| {
        (!overlap.in_vectors || one.file == RegFile::Vgpr)
            && later.iter().any(|(second, other)| {
                counts_as_overlap(
                    *first,
                    *second,
                    overlap.read_after_write,
                    overlap.write_after_read,
                    overlap.write_after_write,
                ) && registers_overlap(*one, *other)
            })
    };
    earlier.iter().any(meet)
}

fn counts_as_overlap(
    first: bool,
    second: bool,
    overlap_read_after_write: bool,
    overlap_write_after_read: bool,
    overlap_write_after_write: bool,
) -> bool {
    match (first, second) {
        (true, false) => overlap_read_after_write,
        (false, true) => overlap_write_after_read,
        (true, true) => overlap_write_after_write,
        (false, false) => false,
    }
}

fn registers_overlap(one: Reg, other: Reg) -> bool {
    one.file == other.file
        && one.file != RegFile::Ttmp
        && one.index < register_range_end(other)
        && other.index < register_range_end(one)
}

fn register_range_end(reg: Reg) -> u16 {
    reg.index + u16::from(reg.count)
}

impl Requirement {
    /// The distance in vector instructions, 0 where the requirement is a different one.
    #[must_use]
    pub fn vector_insts(self) -> u8 {
        match self {
            Self::VectorInsts(count) => count,
            _ => 0,
        }
    }
}
