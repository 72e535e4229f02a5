//! `flat_scratch_base`: instructions that read the scratch aperture's base as 64 bits.
//!
//! The source has two operand numbers for it, one for each half. The target has only the first, and only in scalar
//! instructions. A scalar instruction therefore gets that number. For a vector instruction the base is copied to a pair
//! of scalar registers, after a wait for all outstanding operations that write it. If no such pair is free, its halves
//! are copied to a pair of vector registers of the first bank, after the same wait. Instructions that read 32 bits are unchanged.

use crate::code::{
    CandidateFilter, CodeSite, InstructionFamily, Replacement, Sequence, SiteAnswer, SiteQueries, SiteRefusal,
    alloc_scratch, cannot_encode, named_operand,
};
use crate::registry::{Apply, FamilyRegistry};
use crate::table::slot;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Class, Flag, Inst, Name, OperandValue, TableEntry};

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_flat_scratch_base_patch(registry: &mut FamilyRegistry) {
    registry
        .bind(slot::FLAT_SCRATCH_BASE, Apply::Instruction(InstructionFamily { concerns, suspects: SUSPECTS, rewrite }));
}

/// Numbers of the base in a source field.
const LOW: u64 = 230;
const HIGH: u64 = 231;

fn concerns(entry: TableEntry) -> bool {
    (entry.is(Flag::Valu) || entry.is(Flag::Salu))
        && SUSPECTS.operand_fields(entry).is_some_and(|fields| !fields.is_empty())
}

/// The numbers that the target does not have.
fn missing_source_numbers(entry: TableEntry) -> &'static [u64] {
    if entry.is(Flag::Salu) { &[HIGH] } else { &[LOW, HIGH] }
}

const SOURCES: [Name; 11] = [
    Name::Src0,
    Name::Src1,
    Name::Src2,
    Name::Src0X,
    Name::Vsrc1X,
    Name::Vsrc2X,
    Name::Src0Y,
    Name::Vsrc1Y,
    Name::Vsrc2Y,
    // Scales of 16 elements are 64 bits.
    Name::ScaleSrc0,
    Name::ScaleSrc1,
];

// Most vector instructions have few operands and none with that number.
const SUSPECTS: CandidateFilter =
    CandidateFilter::Number { operands: &SOURCES, numbers: missing_source_numbers, dwords: 2 };

const BASE: Reg = Reg::special(Special::FlatScratchBaseLo, 2);
const BASE_BY_HIGH: Reg = Reg::special(Special::FlatScratchBaseHi, 2);

fn rewrite(site: &CodeSite<'_>, around: &dyn SiteQueries) -> Result<SiteAnswer, SiteRefusal> {
    let sources: Vec<Name> = SOURCES.into_iter().filter(|name| is_missing_base(site, *name)).collect();
    if sources.is_empty() {
        return Ok(SiteAnswer::NotMine);
    }
    if site.inst.is(Flag::Salu) {
        return Ok(Replacement::single_instruction(with_new_sources(site, &sources, BASE)?).into());
    }
    let taken = site.named_registers(around.banks());
    match alloc_scratch(around, RegFile::Sgpr, 2, 2, &taken) {
        Ok(pair) => through_scalars(site, around, &sources, pair),
        Err(refusal) => match vector_pair(site, around, taken) {
            Some(pair) => through_vectors(site, around, &sources, pair),
            None => Err(refusal),
        },
    }
}

/// Whether an operand is the base of scratch, by a number that the target lacks.
fn is_missing_base(site: &CodeSite<'_>, name: Name) -> bool {
    let numbers = missing_source_numbers(site.inst.entry());
    site.inst.raw(name).is_some_and(|raw| numbers.contains(&raw))
        && [BASE, BASE_BY_HIGH].into_iter().any(|base| site.value(name) == Some(OperandValue::Reg(base)))
}

fn through_scalars(
    site: &CodeSite<'_>,
    around: &dyn SiteQueries,
    sources: &[Name],
    pair: Reg,
) -> Result<SiteAnswer, SiteRefusal> {
    let mut code = Sequence::new(site, around);
    code.declare_scratch(pair)?;
    code.wait("s_wait_alu", 0)?;
    code.add("s_mov_b64", Class::Sop1, &[named_operand(Name::Sdst, pair), named_operand(Name::Src0, BASE)])?;
    code.add_original(with_new_sources(site, sources, pair)?)?;
    Ok(code.finish()?.into())
}

/// A free pair that the site's own instruction can encode: a half of a dual instruction cannot encode every register.
fn vector_pair(site: &CodeSite<'_>, around: &dyn SiteQueries, mut taken: RegSet) -> Option<Reg> {
    if around.banks().mode() != Some(0) || site.inst.entry().slot(Name::Src0X).is_some() {
        return None;
    }
    (256..1024).for_each(|index| taken.insert(Reg::new(RegFile::Vgpr, index, 1)));
    around.find_dead(RegFile::Vgpr, 2, 2, &taken)
}

fn through_vectors(
    site: &CodeSite<'_>,
    around: &dyn SiteQueries,
    sources: &[Name],
    pair: Reg,
) -> Result<SiteAnswer, SiteRefusal> {
    let mut code = Sequence::new(site, around);
    code.declare_scratch(pair)?;
    code.wait("s_wait_alu", 0)?;
    for (half, base) in [Special::FlatScratchBaseLo, Special::FlatScratchBaseHi].into_iter().enumerate() {
        let to = Reg::new(RegFile::Vgpr, pair.index + half as u16, 1);
        let from = Reg::special(base, 1);
        code.add("v_mov_b32", Class::Vop1, &[named_operand(Name::Vdst, to), named_operand(Name::Src0, from)])?;
    }
    code.add_original(with_new_sources(site, sources, pair)?)?;
    Ok(code.finish()?.into())
}

/// The site's own instruction with other sources.
fn with_new_sources(site: &CodeSite<'_>, sources: &[Name], pair: Reg) -> Result<Inst, SiteRefusal> {
    // Until the last source is replaced, the target may not have the instruction.
    sources.iter().enumerate().try_fold(*site.inst, |inst, (number, name)| {
        let isa = if number + 1 == sources.len() { site.target } else { site.source };
        inst.with_operand(isa, *name, pair).map_err(|error| cannot_encode(inst.mnemonic(), error))
    })
}
