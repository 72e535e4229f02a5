//! `flat_scratch_base`: vector instructions that read the scratch aperture's base as 64 bits.
//!
//! On the target only scalar instructions can. The base goes through a pair of scalar registers; all work in flight that
//! writes it is waited for first. Scalar instructions stay.

use crate::code::{Answer, InstructionFamily, Refusal, Sequence, Site, Surroundings, Suspects, borrow, cannot_encode};
use crate::registry::{Apply, Registry};
use crate::table::slot;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::{Class, Entry, Flag, Name, Value};

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_flat_scratch_base_patch(registry: &mut Registry) {
    registry
        .bind(slot::FLAT_SCRATCH_BASE, Apply::Instruction(InstructionFamily { concerns, suspects: SUSPECTS, rewrite }));
}

/// Number of the base in a source field.
const SELECTOR: u64 = 230;

fn concerns(entry: Entry) -> bool {
    entry.is(Flag::Valu) && SOURCES.iter().any(|name| entry.slot(*name).is_some())
}

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

// Most vector instructions have few operands and none with that number.
const SUSPECTS: Suspects = Suspects::Number { operands: &SOURCES, number: SELECTOR };

const BASE: Reg = Reg::special(Special::FlatScratchBaseLo, 2);

fn rewrite(site: &Site<'_>, around: &dyn Surroundings) -> Result<Answer, Refusal> {
    let reads = |name: &&Name| site.inst.raw(**name) == Some(SELECTOR) && site.value(**name) == Some(Value::Reg(BASE));
    let sources: Vec<Name> = SOURCES.iter().filter(reads).copied().collect();
    if sources.is_empty() {
        return Ok(Answer::NotMine);
    }
    let pair = borrow(around, RegFile::Sgpr, 2, 2, &site.registers(around.banks()))?;
    let mut code = Sequence::new(site, around);
    code.borrows(pair)?;
    code.wait("s_wait_alu", 0)?;
    code.add("s_mov_b64", Class::Sop1, &[(Name::Sdst, pair.into()), (Name::Src0, BASE.into())])?;
    let mut inst = *site.inst;
    for name in sources {
        inst = inst.with_operand(site.target, name, pair).map_err(|error| cannot_encode(inst.mnemonic(), error))?;
    }
    code.original(inst)?;
    Ok(code.finish()?.into())
}
