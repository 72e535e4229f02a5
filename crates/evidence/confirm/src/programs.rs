//! Whole kernels: loops with lanes that leave at different times, LDS with barriers between waves, atomics of all work-groups.
//!
//! Invariant: the results depend neither on the size of waves nor on their order.

use crate::assembler::{Assembler, InstructionSet, arg, sgpr, special, vgpr};
use crate::error::ConfirmError;
use crate::inputs::CASES;
use crate::kernels::{
    GROUP_SIZE, mask, put_arguments, put_case_loads, put_case_offsets, put_epilogue, put_move, put_prologue,
    put_scalar, put_shift,
};
use crate::object_writer::KernelCode;
use hotswap_isa::encode::OperandArg;
use hotswap_isa::reg::Special;
use hotswap_isa::{Class, Flag, Name};

/// Work-items of a work-group with several waves.
const LARGE_GROUP: u32 = 256;

/// The kernel of that name.
pub(crate) fn program_kernel(set: &InstructionSet, name: &str) -> Result<KernelCode, ConfirmError> {
    let mut code = Assembler::new(set);
    let group_size = if matches!(name, "reverse" | "sum") { LARGE_GROUP } else { GROUP_SIZE };
    match name {
        "collatz" => put_collatz(&mut code)?,
        "reverse" => put_reverse(&mut code)?,
        "sum" => put_sum(&mut code)?,
        _ => put_histogram(&mut code)?,
    }
    let lds = if group_size == LARGE_GROUP { 4 * LARGE_GROUP } else { 0 };
    Ok(KernelCode { name: name.to_owned(), code: code.finish()?, lds, groups: CASES as u32 / group_size, group_size })
}

/// An instruction of the vector registers `[to, first, second]`.
fn put_three(code: &mut Assembler<'_>, names: &str, [to, first, second]: [u16; 3]) -> Result<(), ConfirmError> {
    code.put(names, &[arg(Name::Vdst, vgpr(to, 1)), arg(Name::Src0, vgpr(first, 1)), arg(Name::Src1, vgpr(second, 1))])
}

/// An instruction of the vector registers `[to, from]` and a constant before the second.
fn put_constant(
    code: &mut Assembler<'_>,
    names: &str,
    [to, from]: [u16; 2],
    constant: u64,
) -> Result<(), ConfirmError> {
    let args =
        [arg(Name::Vdst, vgpr(to, 1)), arg(Name::Src0, OperandArg::Constant(constant)), arg(Name::Src1, vgpr(from, 1))];
    code.put(names, &args)
}

/// `s[36:37]` = lanes for which the comparison of a constant and the register holds.
fn put_compare(code: &mut Assembler<'_>, name: &str, constant: OperandArg, register: u16) -> Result<(), ConfirmError> {
    let args = [arg(Name::Sdst, mask(code.set, 36)), arg(Name::Src0, constant), arg(Name::Src1, vgpr(register, 1))];
    code.put_in(name, &[Class::Vop3], &args)
}

/// A scalar instruction on masks of lanes, by the name without its size.
fn put_mask(code: &mut Assembler<'_>, name: &str, sources: &[OperandArg], to: OperandArg) -> Result<(), ConfirmError> {
    let sized = format!("{name}_b{}", 32 * u32::from(code.set.mask_words()));
    let mut args = vec![arg(Name::Sdst, to)];
    args.extend([Name::Src0, Name::Src1].into_iter().zip(sources).map(|(name, source)| arg(name, *source)));
    code.put(&sized, &args)
}

/// The steps of (a mod 1024) | 1 until it is 1: halved if even, else three times itself and one.
fn put_collatz(code: &mut Assembler<'_>) -> Result<(), ConfirmError> {
    put_prologue(code, false)?;
    let exec = special(Special::ExecLo, code.set.mask_words());
    let (saved, active) = (mask(code.set, 38), mask(code.set, 36));
    put_constant(code, "v_and_b32", [2, 2], 0x3ff)?;
    put_constant(code, "v_or_b32", [2, 2], 1)?;
    put_mask(code, "s_mov", &[exec], saved)?;
    let (next, end) = (code.new_label(), code.new_label());
    code.place_label(next);
    put_compare(code, "v_cmp_ne_u32", OperandArg::Constant(1), 2)?;
    put_mask(code, "s_and", &[exec, active], exec)?;
    code.branch("s_cbranch_execz", end)?;
    put_constant(code, "v_and_b32", [4, 2], 1)?;
    put_constant(code, "v_lshrrev_b32", [5, 2], 1)?;
    put_constant(code, "v_mul_u32_u24", [6, 2], 3)?;
    put_constant(code, "v_add_u32|v_add_nc_u32", [6, 6], 1)?;
    put_compare(code, "v_cmp_eq_u32", OperandArg::Constant(0), 4)?;
    let choice = [
        arg(Name::Vdst, vgpr(2, 1)),
        arg(Name::Src0, vgpr(6, 1)),
        arg(Name::Src1, vgpr(5, 1)),
        arg(Name::Src2, active),
    ];
    code.put_in("v_cndmask_b32", &[Class::Vop3], &choice)?;
    put_constant(code, "v_add_u32|v_add_nc_u32", [8, 8], 1)?;
    code.branch("s_branch", next)?;
    code.place_label(end);
    put_mask(code, "s_mov", &[saved], exec)?;
    put_epilogue(code)
}

/// The prologue of a large work-group: the number of the case in `v1`, then as in small ones; `v13` is the place in LDS.
fn put_large_prologue(code: &mut Assembler<'_>) -> Result<(), ConfirmError> {
    put_arguments(code)?;
    put_constant(code, "v_and_b32", [0, 0], 0x3ff)?;
    put_scalar(code, "s_lshl_b32", [31, 30], 8)?;
    code.put("v_or_b32", &[arg(Name::Vdst, vgpr(1, 1)), arg(Name::Src0, sgpr(31, 1)), arg(Name::Src1, vgpr(0, 1))])?;
    put_case_offsets(code)?;
    put_case_loads(code)?;
    for register in 8..12 {
        put_move(code, register, OperandArg::Constant(0))?;
    }
    put_shift(code, 13, 2, 0)
}

fn put_lds_store(code: &mut Assembler<'_>, place: u16, value: u16) -> Result<(), ConfirmError> {
    code.put("ds_write_b32|ds_store_b32", &[arg(Name::Addr, vgpr(place, 1)), arg(Name::Data0, vgpr(value, 1))])
}

fn put_lds_load(code: &mut Assembler<'_>, to: u16, place: u16, offset: u32) -> Result<(), ConfirmError> {
    let args = [
        arg(Name::Vdst, vgpr(to, 1)),
        arg(Name::Addr, vgpr(place, 1)),
        arg(Name::Offset, OperandArg::Number(i64::from(offset))),
    ];
    code.put("ds_read_b32|ds_load_b32", &args)?;
    code.wait_memory()
}

/// Each work-item gets the number of the opposite one, which another wave has written.
fn put_reverse(code: &mut Assembler<'_>) -> Result<(), ConfirmError> {
    put_large_prologue(code)?;
    put_lds_store(code, 13, 2)?;
    code.barrier()?;
    put_constant(code, "v_xor_b32", [14, 13], 4 * u64::from(LARGE_GROUP - 1))?;
    put_lds_load(code, 8, 14, 0)?;
    put_epilogue(code)
}

/// The sum of the work-group, by halves.
fn put_sum(code: &mut Assembler<'_>) -> Result<(), ConfirmError> {
    put_large_prologue(code)?;
    let exec = special(Special::ExecLo, code.set.mask_words());
    let (saved, active) = (mask(code.set, 38), mask(code.set, 36));
    put_lds_store(code, 13, 2)?;
    let mut half = LARGE_GROUP / 2;
    while half > 0 {
        code.barrier()?;
        code.put("s_mov_b32", &[arg(Name::Sdst, sgpr(40, 1)), arg(Name::Src0, OperandArg::Constant(half.into()))])?;
        put_compare(code, "v_cmp_gt_u32", sgpr(40, 1), 0)?;
        put_mask(code, "s_and_saveexec", &[active], saved)?;
        put_lds_load(code, 14, 13, 4 * half)?;
        put_lds_load(code, 15, 13, 0)?;
        put_three(code, "v_add_u32|v_add_nc_u32", [15, 15, 14])?;
        put_lds_store(code, 13, 15)?;
        code.wait_memory()?;
        put_mask(code, "s_mov", &[saved], exec)?;
        half /= 2;
    }
    code.barrier()?;
    put_move(code, 14, OperandArg::Constant(0))?;
    put_lds_load(code, 8, 14, 0)?;
    put_epilogue(code)
}

/// Counts the values of a mod 1024, in the first words of the results.
fn put_histogram(code: &mut Assembler<'_>) -> Result<(), ConfirmError> {
    put_prologue(code, false)?;
    put_constant(code, "v_and_b32", [2, 2], 0x3ff)?;
    put_shift(code, 13, 4, 2)?;
    put_move(code, 14, OperandArg::Constant(1))?;
    let args = [arg(Name::Vaddr, vgpr(13, 1)), arg(Name::Vdata, vgpr(14, 1)), arg(Name::Saddr, sgpr(22, 2))];
    let entries = code.set.find_entries("global_atomic_add|global_atomic_add_u32", &[Class::Flat]);
    let entries = entries.into_iter().filter(|entry| !entry.is(Flag::AtomicRet));
    code.put_first(entries, &args)
}
