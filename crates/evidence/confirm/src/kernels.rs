//! The kernel of a probe.
//!
//! A kernel has two arguments: the address of the inputs and that of the results. The work-item of a case loads a, b and c into
//! `v[2:7]`, executes one instruction and stores `v[8:11]`. Scalar instructions have a work-group of their own for each case.
//!
//! | registers | content |
//! | --- | --- |
//! | `s[20:21]`, `s[22:23]` | addresses of inputs and results |
//! | `s[24:27]` | a and b of scalar instructions; `s[28:29]` their result |
//! | `s30` | number of the work-group |
//! | `s[34:35]` | mask that an instruction reads; `s[36:37]` one that it writes |
//! | `v0`, `v1` | number of the work-item in its work-group, offset of the case's inputs |
//! | `v12` | offset of the case's results |
//!
//! Invariant: a kernel writes the results of its own cases only.

use crate::assembler::{Assembler, InstructionSet, NamedArg, arg, encode_entry, sgpr, special, vgpr};
use crate::error::ConfirmError;
use crate::inputs::CASES;
use crate::object_writer::{KernelCode, USER_SGPRS_PADDED};
use crate::probe_table::{Probe, ProbeKind};
use hotswap_isa::encode::{EncodeError, OperandArg};
use hotswap_isa::reg::Special;
use hotswap_isa::{Class, Flag, Inst, Name, TableEntry};
use hotswap_targets::{Capability, IsaFamily};

/// Work-items of a work-group of probes.
pub(crate) const GROUP_SIZE: u32 = 32;

/// Encodings of vector instructions, those with free operands first where a result is a mask.
const VECTOR_CLASSES: &[Class] = &[Class::Vop3p, Class::Vop1, Class::Vop2, Class::Vop3];

const SCALAR_CLASSES: &[Class] = &[Class::Sop1, Class::Sop2, Class::Sopc];

/// The kernel of a probe for a processor; `None` where the processor lacks its instruction.
pub(crate) fn probe_kernel(set: &InstructionSet, probe: &Probe) -> Result<Option<KernelCode>, ConfirmError> {
    let entries = probe_entries(set, probe);
    if entries.is_empty() {
        return Ok(None);
    }
    let mut code = Assembler::new(set);
    put_prologue(&mut code, probe.kind == ProbeKind::Scalar)?;
    put_probe(&mut code, probe, &entries)?;
    put_epilogue(&mut code)?;
    let groups = if probe.kind == ProbeKind::Scalar { CASES as u32 } else { CASES as u32 / GROUP_SIZE };
    let lds = if probe.kind == ProbeKind::Lds { 512 } else { 0 };
    Ok(Some(KernelCode { name: probe.name(), code: code.finish()?, lds, groups, group_size: GROUP_SIZE }))
}

fn probe_entries(set: &InstructionSet, probe: &Probe) -> Vec<TableEntry> {
    match probe.kind {
        ProbeKind::Vector | ProbeKind::Accumulate => set.find_entries(probe.names, VECTOR_CLASSES),
        ProbeKind::Scalar => set.find_entries(probe.names, SCALAR_CLASSES),
        ProbeKind::Lds | ProbeKind::Permute => set.find_entries(probe.names, &[Class::Ds]),
        ProbeKind::Atomic => {
            let found = set.find_entries(probe.names, &[Class::Flat]);
            found.into_iter().filter(|entry| entry.is(Flag::AtomicRet)).collect()
        }
        ProbeKind::Dpp(_) => set.find_entries(probe.names, &[Class::Vop1Dpp16]),
        ProbeKind::Program => Vec::new(),
    }
}

/// Loads the arguments and the inputs of the case.
pub(crate) fn put_prologue(code: &mut Assembler<'_>, is_scalar: bool) -> Result<(), ConfirmError> {
    put_arguments(code)?;
    code.put(
        "v_and_b32",
        &[arg(Name::Vdst, vgpr(0, 1)), arg(Name::Src0, OperandArg::Constant(0x3ff)), arg(Name::Src1, vgpr(0, 1))],
    )?;
    if is_scalar {
        // One case for a work-group.
        code.put("v_mov_b32", &[arg(Name::Vdst, vgpr(1, 1)), arg(Name::Src0, sgpr(30, 1))])?;
    } else {
        put_scalar(code, "s_lshl_b32", [31, 30], 5)?;
        code.put(
            "v_or_b32",
            &[arg(Name::Vdst, vgpr(1, 1)), arg(Name::Src0, sgpr(31, 1)), arg(Name::Src1, vgpr(0, 1))],
        )?;
    }
    put_case_offsets(code)?;
    put_case_loads(code)?;
    for register in 8..12 {
        put_zero(code, register)?;
    }
    Ok(())
}

/// Loads the addresses, and the number of the work-group.
pub(crate) fn put_arguments(code: &mut Assembler<'_>) -> Result<(), ConfirmError> {
    let number = work_group_register(code.set);
    code.put("s_mov_b32", &[arg(Name::Sdst, sgpr(30, 1)), arg(Name::Src0, number)])?;
    let places = [arg(Name::Sdst, sgpr(20, 4)), arg(Name::Sbase, sgpr(0, 2))];
    // gfx10 has one encoding for no offset: a register that is none.
    let offsets = [arg(Name::Offset, OperandArg::Number(0)), arg(Name::Soffset, special(Special::Null, 1))];
    let args = offsets.map(|offset| [places[0], places[1], offset]);
    let names = "s_load_dwordx4|s_load_b128";
    code.put(names, &args[0]).or_else(|_| code.put(names, &args[1]))?;
    code.wait_memory()
}

/// The register in which a wave finds the number of its work-group.
fn work_group_register(set: &InstructionSet) -> OperandArg {
    use hotswap_isa::reg::{Reg, RegFile};
    if set.processor.family >= IsaFamily::Rdna4 {
        return Reg::new(RegFile::Ttmp, 9, 1).into();
    }
    sgpr(if set.has(Capability::UserSgprInit16Bug) { USER_SGPRS_PADDED } else { 2 }, 1)
}

/// The offsets of the case in `v1`: of its inputs in `v1`, of its results in `v12`.
pub(crate) fn put_case_offsets(code: &mut Assembler<'_>) -> Result<(), ConfirmError> {
    put_shift(code, 12, 4, 1)?;
    put_shift(code, 1, 5, 1)
}

pub(crate) fn put_case_loads(code: &mut Assembler<'_>) -> Result<(), ConfirmError> {
    for (register, offset) in [(2, 0), (4, 8), (6, 16)] {
        put_load(code, register, offset)?;
    }
    code.wait_memory()?;
    code.settle()
}

fn put_load(code: &mut Assembler<'_>, register: u16, offset: i64) -> Result<(), ConfirmError> {
    let args = [
        arg(Name::Vdst, vgpr(register, 2)),
        arg(Name::Vaddr, vgpr(1, 1)),
        arg(Name::Saddr, sgpr(20, 2)),
        arg(Name::Offset, OperandArg::Number(offset)),
    ];
    code.put("global_load_dwordx2|global_load_b64", &args)
}

/// `vR = vS << shift`.
pub(crate) fn put_shift(code: &mut Assembler<'_>, to: u16, shift: u64, from: u16) -> Result<(), ConfirmError> {
    let args =
        [arg(Name::Vdst, vgpr(to, 1)), arg(Name::Src0, OperandArg::Constant(shift)), arg(Name::Src1, vgpr(from, 1))];
    code.put("v_lshlrev_b32", &args)
}

/// A scalar instruction of a register and a constant: `[to, from]`.
pub(crate) fn put_scalar(
    code: &mut Assembler<'_>,
    name: &str,
    [to, from]: [u16; 2],
    constant: u64,
) -> Result<(), ConfirmError> {
    let args =
        [arg(Name::Sdst, sgpr(to, 1)), arg(Name::Src0, sgpr(from, 1)), arg(Name::Src1, OperandArg::Constant(constant))];
    code.put(name, &args)
}

fn put_zero(code: &mut Assembler<'_>, register: u16) -> Result<(), ConfirmError> {
    put_move(code, register, OperandArg::Constant(0))
}

/// Moves a source to a vector register: `vR = source`.
pub(crate) fn put_move(code: &mut Assembler<'_>, register: u16, source: OperandArg) -> Result<(), ConfirmError> {
    code.put("v_mov_b32", &[arg(Name::Vdst, vgpr(register, 1)), arg(Name::Src0, source)])
}

/// Stores `v[8:11]` as the results of the case.
pub(crate) fn put_epilogue(code: &mut Assembler<'_>) -> Result<(), ConfirmError> {
    for (register, offset) in [(8, 0), (10, 8)] {
        put_store(code, register, offset)?;
    }
    Ok(())
}

fn put_store(code: &mut Assembler<'_>, register: u16, offset: i64) -> Result<(), ConfirmError> {
    let args = [
        arg(Name::Vaddr, vgpr(12, 1)),
        arg(Name::Vdata, vgpr(register, 2)),
        arg(Name::Saddr, sgpr(22, 2)),
        arg(Name::Offset, OperandArg::Number(offset)),
    ];
    code.put("global_store_dwordx2|global_store_b64", &args)
}

fn put_probe(code: &mut Assembler<'_>, probe: &Probe, entries: &[TableEntry]) -> Result<(), ConfirmError> {
    match probe.kind {
        ProbeKind::Vector => put_vector(code, probe, entries),
        ProbeKind::Accumulate => {
            put_move(code, 8, vgpr(6, 1))?;
            put_move(code, 9, vgpr(7, 1))?;
            put_vector(code, probe, entries)
        }
        ProbeKind::Scalar => put_scalar_probe(code, probe, entries),
        ProbeKind::Lds => put_lds(code, probe, entries),
        ProbeKind::Atomic => put_atomic(code, probe, entries),
        ProbeKind::Permute => put_permute(code, probe, entries),
        ProbeKind::Dpp(control) => put_dpp(code, probe, entries, control),
        ProbeKind::Program => Ok(()),
    }
}

/// The mask of lanes that begins at this scalar register.
pub(crate) fn mask(set: &InstructionSet, register: u16) -> OperandArg {
    sgpr(register, set.mask_words())
}

fn put_vector(code: &mut Assembler<'_>, probe: &Probe, entries: &[TableEntry]) -> Result<(), ConfirmError> {
    let (read, written) = (mask(code.set, 34), mask(code.set, 36));
    let vcc = special(Special::VccLo, code.set.mask_words());
    for to in [read, vcc] {
        let negative = [arg(Name::Sdst, to), arg(Name::Src0, OperandArg::Constant(0)), arg(Name::Src1, vgpr(6, 1))];
        code.put_in("v_cmp_gt_i32", &[Class::Vop3], &negative)?;
    }
    let operands = [
        arg(Name::Vdst, vgpr(8, 1)),
        arg(Name::Sdst, written),
        arg(Name::Src0, vgpr(2, 1)),
        arg(Name::Src1, vgpr(4, 1)),
        arg(Name::Src2, vgpr(6, 1)),
    ];
    let inst = fit_probe(code.set, probe, entries, &operands)?;
    code.push(&inst);
    code.settle()?;
    if inst.entry().slot(Name::Sdst).is_some() {
        put_mask_bit(code, 10, written)?;
    }
    Ok(())
}

/// `vR` = whether the mask has the lane.
fn put_mask_bit(code: &mut Assembler<'_>, register: u16, mask: OperandArg) -> Result<(), ConfirmError> {
    let args = [
        arg(Name::Vdst, vgpr(register, 1)),
        arg(Name::Src0, OperandArg::Constant(0)),
        arg(Name::Src1, OperandArg::Constant(1)),
        arg(Name::Src2, mask),
    ];
    code.put_in("v_cndmask_b32", &[Class::Vop3], &args)
}

fn put_scalar_probe(code: &mut Assembler<'_>, probe: &Probe, entries: &[TableEntry]) -> Result<(), ConfirmError> {
    for (to, from) in [(24, 2), (25, 3), (26, 4), (27, 5), (28, 6), (29, 7)] {
        code.put("v_readfirstlane_b32", &[arg(Name::Vdst, sgpr(to, 1)), arg(Name::Src0, vgpr(from, 1))])?;
    }
    code.put("s_cmp_lg_u32", &[arg(Name::Src0, sgpr(28, 1)), arg(Name::Src1, OperandArg::Constant(0))])?;
    let operands = [arg(Name::Sdst, sgpr(28, 1)), arg(Name::Src0, sgpr(24, 1)), arg(Name::Src1, sgpr(26, 1))];
    let inst = fit_probe(code.set, probe, entries, &operands)?;
    code.push(&inst);
    code.settle()?;
    let flag = [
        arg(Name::Sdst, sgpr(31, 1)),
        arg(Name::Src0, OperandArg::Constant(1)),
        arg(Name::Src1, OperandArg::Constant(0)),
    ];
    code.put("s_cselect_b32", &flag)?;
    for (to, from) in [(8, 28), (9, 29), (10, 31)] {
        put_move(code, to, sgpr(from, 1))?;
    }
    Ok(())
}

/// The place of a lane in LDS: 16 bytes, so that two lanes never meet.
fn put_lds(code: &mut Assembler<'_>, probe: &Probe, entries: &[TableEntry]) -> Result<(), ConfirmError> {
    put_shift(code, 13, 4, 0)?;
    let store = [arg(Name::Addr, vgpr(13, 1)), arg(Name::Data0, vgpr(4, 2))];
    code.put("ds_write_b64|ds_store_b64", &store)?;
    code.wait_memory()?;
    let operands = [
        arg(Name::Vdst, vgpr(8, 1)),
        arg(Name::Addr, vgpr(13, 1)),
        arg(Name::Data0, vgpr(2, 1)),
        arg(Name::Data1, vgpr(6, 1)),
    ];
    let inst = fit_probe(code.set, probe, entries, &operands)?;
    code.push(&inst);
    code.wait_memory()?;
    code.put("ds_read_b64|ds_load_b64", &[arg(Name::Vdst, vgpr(10, 2)), arg(Name::Addr, vgpr(13, 1))])?;
    code.wait_memory()?;
    code.settle()
}

/// The first two words of the results are the place of the case.
fn put_atomic(code: &mut Assembler<'_>, probe: &Probe, entries: &[TableEntry]) -> Result<(), ConfirmError> {
    put_store(code, 4, 0)?;
    code.wait_memory()?;
    let operands = [
        arg(Name::Vdst, vgpr(10, 1)),
        arg(Name::Vaddr, vgpr(12, 1)),
        arg(Name::Vdata, vgpr(2, 1)),
        arg(Name::Saddr, sgpr(22, 2)),
    ];
    let inst = fit_probe(code.set, probe, entries, &operands)?;
    code.push(&inst);
    code.wait_memory()?;
    let load = [
        arg(Name::Vdst, vgpr(8, 2)),
        arg(Name::Vaddr, vgpr(12, 1)),
        arg(Name::Saddr, sgpr(22, 2)),
        arg(Name::Cpol, OperandArg::Number(uncached_policy(code.set.processor.family))),
    ];
    code.put("global_load_dwordx2|global_load_b64", &load)?;
    code.wait_memory()?;
    code.settle()
}

/// The policy of a load that no cache before that of atomics serves.
fn uncached_policy(family: IsaFamily) -> i64 {
    const GLC: i64 = 1;
    const DLC: i64 = 4;
    const SC1: i64 = 16;
    const SCOPE_SYSTEM: i64 = 24;
    match family {
        IsaFamily::Cdna3 | IsaFamily::Cdna4 => GLC | SC1,
        IsaFamily::Rdna4 | IsaFamily::Gfx125 => SCOPE_SYSTEM,
        family if family >= IsaFamily::Rdna1 => GLC | DLC,
        _ => GLC,
    }
}

fn put_permute(code: &mut Assembler<'_>, probe: &Probe, entries: &[TableEntry]) -> Result<(), ConfirmError> {
    let address =
        [arg(Name::Vdst, vgpr(13, 1)), arg(Name::Src0, OperandArg::Constant(0x7c)), arg(Name::Src1, vgpr(2, 1))];
    code.put("v_and_b32", &address)?;
    let operands = [arg(Name::Vdst, vgpr(8, 1)), arg(Name::Addr, vgpr(13, 1)), arg(Name::Data0, vgpr(4, 1))];
    let inst = fit_probe(code.set, probe, entries, &operands)?;
    code.push(&inst);
    code.wait_memory()?;
    code.settle()
}

fn put_dpp(code: &mut Assembler<'_>, probe: &Probe, entries: &[TableEntry], control: u16) -> Result<(), ConfirmError> {
    let operands = [
        arg(Name::Vdst, vgpr(8, 1)),
        arg(Name::Src0, vgpr(2, 1)),
        arg(Name::DppCtrl, OperandArg::Number(i64::from(control))),
        arg(Name::RowMask, OperandArg::Number(15)),
        arg(Name::BankMask, OperandArg::Number(15)),
        arg(Name::BoundCtrl, OperandArg::Number(0)),
    ];
    let inst = fit_probe(code.set, probe, entries, &operands)?;
    code.push(&inst);
    code.settle()
}

/// The instruction of a probe with the operands that it has, each of the size that its row states.
fn fit_probe(
    set: &InstructionSet,
    probe: &Probe,
    entries: &[TableEntry],
    operands: &[NamedArg],
) -> Result<Inst, ConfirmError> {
    let mut reason = EncodeError::UnknownInstruction;
    for entry in entries {
        match fit_entry(set, *entry, operands) {
            Ok(inst) => return Ok(inst),
            Err(error) => reason = error,
        }
    }
    Err(ConfirmError::NotEncoded { processor: set.processor.name, names: probe.names.to_owned(), reason })
}

fn fit_entry(set: &InstructionSet, entry: TableEntry, operands: &[NamedArg]) -> Result<Inst, EncodeError> {
    let mut args: Vec<NamedArg> = operands.iter().filter(|arg| is_free(entry, arg.name)).copied().collect();
    // Each round changes one operand; there are few of them.
    for _ in 0..12 {
        match encode_entry(set.isa, entry, &args) {
            Err(EncodeError::WrongSize { name, wanted, .. }) => resize_operand(&mut args, name, wanted),
            // The mask that an instruction reads.
            Err(EncodeError::NotInClass { name: Name::Src2, .. }) => {
                args.retain(|arg| arg.name != Name::Src2);
                args.push(arg(Name::Src2, mask(set, 34)));
            }
            made => return made,
        }
    }
    Err(EncodeError::UnknownInstruction)
}

/// Whether the entry has the operand, and it is not the same as another one.
fn is_free(entry: TableEntry, name: Name) -> bool {
    entry.slot(name).is_some_and(|slot| slot.tied.is_none() && !slot.pieces().is_empty())
}

fn resize_operand(args: &mut [NamedArg], wrong: Name, wanted: u8) {
    for arg in args.iter_mut().filter(|arg| arg.name == wrong) {
        if let OperandArg::Reg(reg) = &mut arg.value {
            reg.count = wanted;
        }
    }
}
