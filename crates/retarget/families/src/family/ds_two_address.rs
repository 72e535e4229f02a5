//! `ds_two_address`: LDS accesses at two addresses in one instruction.
//!
//! The target needs each element naturally aligned and otherwise gives wrong data. Accesses at one address may be
//! unaligned. In this order:
//!
//! | what is known | becomes |
//! |---|---|
//! | the address is aligned to the element | stays |
//! | the second element follows the first, and so do their registers (loads, stores) | one access of twice the width |
//! | otherwise | two accesses |
//!
//! Later waits count accesses that may still be outstanding, from the last one back. One access becomes two, one after
//! the other, so the number outstanding when a wait ends never grows: the program's waits are enough. If a register is
//! borrowed, or the program separates instructions itself, both are waited for at once.
//!
//! LLVM for the target does the same: it folds neighbours, keeps the two-address form if it knows the and
//! waits for two accesses where it needs their results.

use crate::code::{
    CandidateFilter, CodeSite, InstructionFamily, Scheduling, Sequence, SiteAnswer, SiteQueries, SiteRefusal,
    alloc_scratch, named_operand,
};
use crate::registry::{Apply, FamilyRegistry};
use crate::table::slot;
use hotswap_isa::encode::OperandArg;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Class, Name, TableEntry};

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_ds_two_address_patch(registry: &mut FamilyRegistry) {
    registry.bind(
        slot::DS_TWO_ADDRESS,
        Apply::Instruction(InstructionFamily { concerns, suspects: CandidateFilter::All, rewrite }),
    );
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LdsOperation {
    Load,
    Store,
    Exchange,
}

/// The properties that a mnemonic encodes.
#[derive(Debug, Clone, Copy)]
struct DsVariant {
    operation: LdsOperation,
    /// Bytes of an element.
    element: u64,
    /// Bytes that an offset counts.
    unit: u64,
}

impl DsVariant {
    fn from_mnemonic(mnemonic: &str) -> Option<Self> {
        let (name, rest) = mnemonic.strip_prefix("ds_")?.split_once("_2addr_")?;
        let operation = match name {
            "load" => LdsOperation::Load,
            "store" => LdsOperation::Store,
            "storexchg" => LdsOperation::Exchange,
            _ => return None,
        };
        let (stride, rest) = rest.strip_prefix("stride64_").map_or((1, rest), |rest| (64, rest));
        let element = match rest.trim_start_matches("rtn_") {
            "b32" => 4,
            "b64" => 8,
            _ => return None,
        };
        Some(Self { operation, element, unit: element * stride })
    }

    /// The same at one address.
    fn single_mnemonic(self) -> &'static str {
        match (self.operation, self.element) {
            (LdsOperation::Load, 4) => "ds_load_b32",
            (LdsOperation::Load, _) => "ds_load_b64",
            (LdsOperation::Store, 4) => "ds_store_b32",
            (LdsOperation::Store, _) => "ds_store_b64",
            (LdsOperation::Exchange, 4) => "ds_storexchg_rtn_b32",
            (LdsOperation::Exchange, _) => "ds_storexchg_rtn_b64",
        }
    }

    /// Both elements at one address.
    fn double_mnemonic(self) -> Option<&'static str> {
        match (self.operation, self.element) {
            (LdsOperation::Load, 4) => Some("ds_load_b64"),
            (LdsOperation::Load, _) => Some("ds_load_b128"),
            (LdsOperation::Store, 4) => Some("ds_store_b64"),
            (LdsOperation::Store, _) => Some("ds_store_b128"),
            (LdsOperation::Exchange, _) => None,
        }
    }
}

fn concerns(entry: TableEntry) -> bool {
    DsVariant::from_mnemonic(entry.mnemonic()).is_some()
}

/// One of the two accesses, with physical registers.
#[derive(Debug, Clone, Copy)]
struct TwoAddressHalf {
    address: Reg,
    offset: u64,
    result: Option<Reg>,
    data: Option<Reg>,
}

fn rewrite(site: &CodeSite<'_>, around: &dyn SiteQueries) -> Result<SiteAnswer, SiteRefusal> {
    let Some(shape) = DsVariant::from_mnemonic(site.inst.mnemonic()) else { return Ok(SiteAnswer::NotMine) };
    let banks = around.banks();
    let address = site.register_operand(Name::Addr, banks)?;
    if u64::from(around.alignment(address)) >= shape.element {
        return Ok(SiteAnswer::Leave("the address is aligned to the element"));
    }
    let dwords = (shape.element / 4) as u8;
    let result = site.physical_register(Name::Vdst, banks)?;
    let data = [site.physical_register(Name::Data0, banks)?, site.physical_register(Name::Data1, banks)?];
    let halves = [(0, Name::Offset0), (1, Name::Offset1)].map(|(second, offset)| TwoAddressHalf {
        address,
        offset: site.raw(offset) * shape.unit,
        result: result.map(|one| half_data_register(one, second, dwords)),
        data: data[usize::from(second)],
    });
    let mut code = Sequence::new(site, around);
    if !merge_accesses(&mut code, shape, halves)? {
        split_accesses(&mut code, shape, halves, site, around)?;
    }
    Ok(code.finish()?.into())
}

fn half_data_register(reg: Reg, second: u16, dwords: u8) -> Reg {
    Reg { index: reg.index + second * u16::from(dwords), count: dwords, ..reg }
}

/// One access of twice the width, if the elements and their registers are neighbours.
fn merge_accesses(
    code: &mut Sequence,
    shape: DsVariant,
    [first, second]: [TwoAddressHalf; 2],
) -> Result<bool, SiteRefusal> {
    let Some(mnemonic) = shape.double_mnemonic().filter(|_| second.offset == first.offset + shape.element) else {
        return Ok(false);
    };
    let registers = match shape.operation {
        LdsOperation::Load => first.result.zip(second.result),
        _ => first.data.zip(second.data),
    };
    let Some(registers) = registers.and_then(|(low, high)| joined_register_pair(low, high)) else { return Ok(false) };
    let name = if shape.operation == LdsOperation::Load { Name::Vdst } else { Name::Data0 };
    code.add(
        mnemonic,
        Class::Ds,
        &[
            named_operand(Name::Addr, first.address),
            (name, registers.into()),
            named_operand(Name::Offset, OperandArg::Number(first.offset as i64)),
        ],
    )?;
    Ok(true)
}

/// Tuples begin at an even register.
fn joined_register_pair(low: Reg, high: Reg) -> Option<Reg> {
    let neighbours = high.index == low.index + u16::from(low.count) && low.index.is_multiple_of(2);
    neighbours.then_some(Reg { count: 2 * low.count, ..low })
}

fn split_accesses(
    code: &mut Sequence,
    shape: DsVariant,
    halves: [TwoAddressHalf; 2],
    site: &CodeSite<'_>,
    around: &dyn SiteQueries,
) -> Result<(), SiteRefusal> {
    let halves = halves.map(|half| with_reachable_offset(code, half, site, around));
    let [first, second] = [halves[0].clone()?, halves[1].clone()?];
    let (first, second) = match first_may_lead(shape, first, second)? {
        true => (first, second),
        false => (second, first),
    };
    for half in [first, second] {
        let mut operands = Vec::with_capacity(4);
        operands.extend([
            named_operand(Name::Addr, half.address),
            named_operand(Name::Offset, OperandArg::Number(half.offset as i64)),
        ]);
        operands.extend(half.result.map(|reg| named_operand(Name::Vdst, reg)));
        operands.extend(half.data.map(|reg| named_operand(Name::Data0, reg)));
        code.add(shape.single_mnemonic(), Class::Ds, &operands)?;
    }
    match code.scratch_registers().is_empty() && around.scheduling() == Scheduling::Hardware {
        true => Ok(()),
        false => code.wait("s_wait_dscnt", 0),
    }
}

/// The access with an offset that fits the field of 16 bits.
fn with_reachable_offset(
    code: &mut Sequence,
    half: TwoAddressHalf,
    site: &CodeSite<'_>,
    around: &dyn SiteQueries,
) -> Result<TwoAddressHalf, SiteRefusal> {
    if half.offset <= u64::from(u16::MAX) {
        return Ok(half);
    }
    let mut taken = site.named_registers(around.banks());
    taken.union_with(code.scratch_registers());
    let address = alloc_scratch(around, RegFile::Vgpr, 1, 1, &taken)?;
    code.declare_scratch(address)?;
    let sum = [
        named_operand(Name::Vdst, address),
        named_operand(Name::Src0, OperandArg::Constant(half.offset)),
        named_operand(Name::Src1, half.address),
    ];
    code.add("v_add_nc_u32", Class::Vop2, &sum)?;
    Ok(TwoAddressHalf { address, offset: 0, ..half })
}

/// Whether the first access may come first; otherwise the second does. A result must not overwrite a register that the
/// other access still reads.
fn first_may_lead(shape: DsVariant, first: TwoAddressHalf, second: TwoAddressHalf) -> Result<bool, SiteRefusal> {
    match shape.operation {
        // Equal addresses: the second value stays.
        LdsOperation::Store => Ok(true),
        LdsOperation::Load => Ok(!overwrites_later_reads(first, second)),
        LdsOperation::Exchange if first.offset == second.offset && first.address == second.address => {
            Err(SiteRefusal::new(
                "both exchanges are at one address, and their order is not known",
                "change the source of the kernel",
            ))
        }
        LdsOperation::Exchange if !overwrites_later_reads(first, second) => Ok(true),
        LdsOperation::Exchange if !overwrites_later_reads(second, first) => Ok(false),
        LdsOperation::Exchange => Err(SiteRefusal::new(
            "each of the two exchanges writes what the other one reads",
            crate::code::FREE_REGISTERS,
        )),
    }
}

fn overwrites_later_reads(earlier: TwoAddressHalf, later: TwoAddressHalf) -> bool {
    let reads: RegSet = [Some(later.address), later.data].into_iter().flatten().collect();
    earlier.result.is_some_and(|result| reads.touches(result))
}
