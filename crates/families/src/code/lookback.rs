//! What the instructions before a site say about a register.
//!
//! Invariants: a claim holds on every path to the site, in every lane that is active there; what is not understood
//! gives the weakest claim. Nothing is looked at behind a change of the bank mode, and no vector register behind a
//! change of EXEC: a write under a smaller EXEC leaves old values in the other lanes.

use super::site::{Site, Surroundings};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::{Flow, ImplicitSet, role};
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::{Flag, Inst, Isa, Name, Value};

/// How many instructions back one register is followed, and through how many operations.
const REACH: usize = 64;
const DEPTH: u32 = 6;

/// The nearest instruction before the site that may write `reg` (physical), and how many stand before that one.
pub fn last_writer<'a>(site: &Site<'_>, around: &'a dyn Surroundings, reg: Reg) -> Option<(usize, &'a Inst)> {
    let look = Look { isa: site.source, banks: around.banks(), before: around.before() };
    look.writer(around.before().len(), reg)
}

/// A power of two that divides the value of a VGPR (physical) in every active lane; 1 if nothing is known.
pub fn alignment(site: &Site<'_>, around: &dyn Surroundings, reg: Reg) -> u32 {
    let look = Look { isa: site.source, banks: around.banks(), before: around.before() };
    1 << look.zeros(around.before().len(), reg, DEPTH)
}

/// More low zero bits than this are not counted: no access is wider than 16 bytes.
const MOST: u32 = 4;

#[derive(Clone, Copy)]
struct Look<'a> {
    isa: Isa,
    banks: VgprBanks,
    before: &'a [Inst],
}

impl<'a> Look<'a> {
    /// The nearest instruction before number `end` that may write `reg`.
    fn writer(&self, end: usize, reg: Reg) -> Option<(usize, &'a Inst)> {
        let vector = reg.file == RegFile::Vgpr;
        let start = end.saturating_sub(REACH);
        for (index, inst) in self.before.get(start..end)?.iter().enumerate().rev() {
            // Of vector and memory instructions most write other registers, and no set of them is needed to say so.
            if vector && !inst.is(Flag::Salu) && !inst.is(Flag::Indexed) && self.writes_others(inst, reg) {
                continue;
            }
            let written = inst.written_set(self.isa, self.banks);
            if written.touches(reg) {
                return Some((start + index, inst));
            }
            let exec = written.touches(Reg::special(Special::ExecLo, 1));
            if vector && (exec || written.touches(Reg::special(Special::Mode, 1)))
                || inst.flow(0, self.isa) != Flow::Next
            {
                return None;
            }
        }
        None
    }

    /// Whether an instruction writes nothing but vector registers, and none of `reg`'s.
    fn writes_others(&self, inst: &Inst, reg: Reg) -> bool {
        let mut others = true;
        let own = reg.index..reg.index + u16::from(reg.count);
        let implicit = inst.visit(self.isa, |effect| {
            if !effect.written() || effect.is_none() {
                return;
            }
            others &= self.banks.resolve(effect.reg(), effect.role()).is_some_and(|written| {
                let end = written.index + u16::from(written.count);
                written.file == RegFile::Vgpr && (end <= own.start || own.end <= written.index)
            });
        });
        others && implicit.writes == ImplicitSet::default() && inst.flow(0, self.isa) == Flow::Next
    }

    /// Low bits of `reg` before number `end` that are zero.
    fn zeros(&self, end: usize, reg: Reg, depth: u32) -> u32 {
        let Some((index, inst)) = self.writer(end, reg).filter(|_| depth > 0) else { return 0 };
        let dst = self.banks.resolve(reg_of(inst.operand(self.isa, Name::Vdst)), role_of(inst, Name::Vdst));
        if dst != Some(reg) || inst.raw(Name::Clamp).unwrap_or(0) != 0 || inst.mnemonic().contains("dpp") {
            return 0;
        }
        let of = |name| self.operand(inst, name, index, depth - 1);
        let shifted = |value: u32, by: Option<u32>| by.map_or(0, |by| (value + (by & 31)).min(MOST));
        let bits = match inst.mnemonic() {
            "v_mov_b32" => of(Name::Src0),
            "v_lshlrev_b32" => shifted(of(Name::Src1), self.constant(inst, Name::Src0)),
            "v_add_nc_u32" | "v_or_b32" | "v_xor_b32" | "v_sub_nc_u32" => of(Name::Src0).min(of(Name::Src1)),
            "v_and_b32" => of(Name::Src0).max(of(Name::Src1)),
            "v_mul_lo_u32" | "v_mul_u32_u24" => of(Name::Src0) + of(Name::Src1),
            "v_lshl_add_u32" | "v_lshl_or_b32" => {
                shifted(of(Name::Src0), self.constant(inst, Name::Src1)).min(of(Name::Src2))
            }
            "v_add_lshl_u32" => shifted(of(Name::Src0).min(of(Name::Src1)), self.constant(inst, Name::Src2)),
            "v_mad_u32_u24" => (of(Name::Src0) + of(Name::Src1)).min(of(Name::Src2)),
            "v_and_or_b32" => of(Name::Src0).max(of(Name::Src1)).min(of(Name::Src2)),
            "v_add3_u32" => of(Name::Src0).min(of(Name::Src1)).min(of(Name::Src2)),
            _ => 0,
        };
        bits.min(MOST)
    }

    /// Low bits of an operand of instruction number `index` that are zero.
    fn operand(&self, inst: &Inst, name: Name, index: usize, depth: u32) -> u32 {
        if let Some(value) = self.constant(inst, name) {
            return value.trailing_zeros().min(MOST);
        }
        match self.banks.resolve(reg_of(inst.operand(self.isa, name)), role_of(inst, name)) {
            Some(reg) if reg.file == RegFile::Vgpr && reg.count == 1 && reg.half.is_none() => {
                self.zeros(index, reg, depth)
            }
            _ => 0,
        }
    }

    fn constant(&self, inst: &Inst, name: Name) -> Option<u32> {
        match inst.operand(self.isa, name)? {
            Value::Inline(inline) => Some(inline.value as u32),
            Value::Literal(literal) => Some(literal.value as u32),
            _ => None,
        }
    }
}

/// The register, or one that nothing names.
fn reg_of(value: Option<Value>) -> Reg {
    match value {
        Some(Value::Reg(reg)) => reg,
        _ => Reg::new(RegFile::Special, u16::MAX, 1),
    }
}

fn role_of(inst: &Inst, name: Name) -> Option<hotswap_isa::bank::Role> {
    let entry = inst.entry();
    let slot = entry.slots().iter().position(|slot| slot.name == name)?;
    role(entry, slot as u8)
}
