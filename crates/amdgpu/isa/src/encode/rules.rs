//! Rules about several operands at once: scalar registers and literals of vector instructions, tied registers.
//!
//! The limits are those of LLVM's assembler: one scalar value before gfx10, two after, one for shifts of 64 bits.

use super::EncodeError;
use super::build::PlacedOperand;
use super::constant;
use crate::kind::KINDS;
use crate::reg::{Reg, RegFile, Special};
use crate::{Class, Feature, Flag, Implicit, Isa, Name, TableEntry};

/// Operands that are sources of vector instructions.
const SOURCES: [Name; 9] = [
    Name::Src0,
    Name::Src1,
    Name::Src2,
    Name::Src0X,
    Name::Vsrc1X,
    Name::Vsrc2X,
    Name::Src0Y,
    Name::Vsrc1Y,
    Name::Vsrc2Y,
];

/// Scalar values that a vector instruction reads: at most eight different registers are recorded; the
/// limits are far lower.
struct Scalars {
    registers: [Option<Reg>; 8],
    literals: [bool; 2],
}

impl Scalars {
    fn add(&mut self, reg: Reg) {
        if self.registers.contains(&Some(reg)) {
            return;
        }
        if let Some(free) = self.registers.iter_mut().find(|place| place.is_none()) {
            *free = Some(reg);
        }
    }

    fn count(&self) -> u8 {
        let registers = self.registers.iter().flatten().count();
        (registers + self.literals.iter().filter(|used| **used).count()) as u8
    }
}

/// Checks the constant bus: different scalar registers and literals of a vector instruction.
pub(super) fn constant_bus(entry: TableEntry, isa: Isa, operands: &[Option<PlacedOperand>]) -> Result<(), EncodeError> {
    if !is_vector(entry) || entry.mnemonic() == "v_writelane_b32" && lane_is_m0(entry, operands) {
        return Ok(());
    }
    let mut scalars = Scalars { registers: [None; 8], literals: [false; 2] };
    for implicit in Implicit::ALL.iter().filter(|implicit| entry.implicit_reads() >> **implicit as u8 & 1 != 0) {
        match implicit {
            Implicit::Vcc => scalars.add(Reg::special(Special::VccLo, crate::kind::lane_mask_dwords(isa))),
            Implicit::M0 => scalars.add(Reg::special(Special::M0, 1)),
            _ => {}
        }
    }
    if entry.slot(Name::Imm).is_some() {
        scalars.literals[0] = true;
    }
    for (slot, placed) in entry.slots().iter().zip(operands) {
        if !SOURCES.contains(&slot.name) {
            continue;
        }
        match placed {
            Some(PlacedOperand::Reg(reg)) if uses_bus(*reg) => scalars.add(*reg),
            Some(PlacedOperand::Literal(_)) => {
                let kind = KINDS.get(usize::from(slot.kind));
                let wide = kind.is_some_and(|kind| constant::is_wide(kind.operand_type));
                scalars.literals[usize::from(wide)] = true;
            }
            _ => {}
        }
    }
    let (limit, found) = (limit(entry, isa), scalars.count());
    if found > limit { Err(EncodeError::ConstantBus { limit, found }) } else { Ok(()) }
}

fn is_vector(entry: TableEntry) -> bool {
    let flags = [Flag::Vopc, Flag::Vop1, Flag::Vop2, Flag::Vop3, Flag::Vop3p, Flag::Sdwa];
    flags.into_iter().any(|flag| entry.is(flag)) || matches!(entry.class(), Some(Class::Vopd | Class::Vopd3))
}

/// The lane number of `v_writelane_b32` does not use the constant bus if it is in M0.
fn lane_is_m0(entry: TableEntry, operands: &[Option<PlacedOperand>]) -> bool {
    let lane = entry.slots().iter().zip(operands).find(|(slot, _)| slot.name == Name::Src1);
    matches!(lane, Some((_, Some(PlacedOperand::Reg(reg)))) if reg.is(Special::M0))
}

fn uses_bus(reg: Reg) -> bool {
    match reg.file {
        RegFile::Vgpr | RegFile::Agpr => false,
        RegFile::Sgpr | RegFile::Ttmp => true,
        RegFile::Special => !reg.is(Special::Null) && !reg.is(Special::LdsDirect),
    }
}

fn limit(entry: TableEntry, isa: Isa) -> u8 {
    if isa.has(Feature::Gfx10Insts) && !entry.is(Flag::OneScalar) { 2 } else { 1 }
}

/// Checks that tied operands are the same register.
pub(super) fn ties(entry: TableEntry, operands: &[Option<PlacedOperand>]) -> Result<(), EncodeError> {
    let slots = entry.slots();
    for (slot, placed) in slots.iter().zip(operands) {
        let Some(partner) = slot.tied.map(usize::from) else { continue };
        let (Some(Some(PlacedOperand::Reg(wanted))), Some(PlacedOperand::Reg(reg))) = (operands.get(partner), placed)
        else {
            continue;
        };
        if reg != wanted {
            let partner = slots.get(partner).map_or(slot.name, |slot| slot.name);
            return Err(EncodeError::Tied { name: slot.name, partner });
        }
    }
    Ok(())
}
