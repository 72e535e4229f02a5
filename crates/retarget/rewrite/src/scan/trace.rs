//! The distance added to a program counter: the forms that compilers and authors of libraries use.
//!
//! LLVM adds a literal, half by half or all 64 bits. Tensile puts the distance into a third register first, adds the
//! size of the code in between, and either adds that or subtracts its absolute value; where it does not know the sign
//! it tests it. Instructions that do not use these registers may be between the steps.

use super::{PcComputation, Range32};
use hotswap_isa::effects::ControlFlow;
use hotswap_isa::reg::RegFile;
use hotswap_isa::{Implicit, Inst, Isa, Name, OperandValue};

/// Maximum instructions examined after a get-PC.
const MOST: usize = 32;

/// SCC among the implicit registers.
const SCC: u32 = 1 << Implicit::Scc as u32;
/// The number 0 as a source.
const INLINE_ZERO: u32 = 128;

/// A distance in a third register.
#[derive(Debug, Clone, Copy)]
struct SpareDistance {
    register: u32,
    /// Offset of its literal.
    literal: u64,
    bias: i32,
    /// It is the absolute value already.
    is_absolute: bool,
}

struct Trace<'t> {
    isa: Isa,
    bytes: &'t [u8],
    at: u64,
    pair: u32,
    spare: Option<SpareDistance>,
    low: Option<LowAddition>,
    /// SCC says that the distance in the third register is not negative.
    is_sign_tested: bool,
    /// The target if the distance is not negative.
    positive: Option<u64>,
}

/// The addition of the low half.
#[derive(Debug, Clone, Copy)]
struct LowAddition {
    /// The offset of the instruction.
    at: u64,
    addend: LowAddend,
}

#[derive(Debug, Clone, Copy)]
enum LowAddend {
    Literal(u64),
    Spare { subtracts: bool },
}

/// Follows the result of the get-PC at `at` to the distances that are added to it.
pub(super) fn trace_get_pc(isa: Isa, bytes: &[u8], at: u64, pair: u32) -> Option<PcComputation> {
    Trace { isa, bytes, at, pair, spare: None, low: None, is_sign_tested: false, positive: None }.run(at + 4)
}

impl Trace<'_> {
    fn run(&mut self, mut next: u64) -> Option<PcComputation> {
        for _ in 0..MOST {
            let inst = self.decode(next)?;
            if inst.entry().implicit_writes() & SCC != 0 {
                self.is_sign_tested = self.tests_sign(&inst);
            }
            if let Some(found) = self.step(next, &inst)? {
                return Some(found);
            }
            next += u64::from(inst.len());
        }
        None
    }

    fn decode(&self, at: u64) -> Option<Inst> {
        self.isa.decode(self.bytes.get(at as usize..)?).ok()
    }

    /// `None` if the trace ends here without a result.
    #[allow(clippy::option_option, reason = "whether it goes on, and what it gave")]
    fn step(&mut self, at: u64, inst: &Inst) -> Option<Option<PcComputation>> {
        let word = inst.words()[0];
        let is_sop2 = word >> 30 == 2;
        let (to, sources) = (word >> 16 & 127, [word & 255, word >> 8 & 255]);
        match inst.mnemonic() {
            "s_add_u32" | "s_add_co_u32" if is_own_sop2_result(self.pair, is_sop2, to, &sources) => {
                self.add_low(at, inst, false)?
            }
            "s_sub_u32" | "s_sub_co_u32"
                if is_own_sop2_result(self.pair, is_sop2, to, &sources) && sources[0] == self.pair =>
            {
                self.add_low(at, inst, true)?
            }
            "s_addc_u32" | "s_add_co_ci_u32" if is_own_sop2_result(self.pair + 1, is_sop2, to, &sources) => {
                return self.add_high(at, inst, false).map(Some);
            }
            "s_subb_u32" | "s_sub_co_ci_u32" if is_own_sop2_result(self.pair + 1, is_sop2, to, &sources) => {
                return self.add_high(at, inst, true).map(Some);
            }
            "s_add_nc_u64" | "s_add_u64"
                if is_own_sop2_result(self.pair, is_sop2, to, &sources) && inst.len() == 12 =>
            {
                return Some(Some(self.literal64_result(at)));
            }
            "s_add_nc_u64" | "s_add_u64" if is_own_sop2_result(self.pair, is_sop2, to, &sources) && inst.len() == 8 => {
                return self.literal32_result(at).map(Some);
            }
            // GFX12 keeps 48 bits of the counter: the high half is sign-extended first.
            "s_sext_i32_i16" if touches_registers(self.isa, inst, self.pair + 1, 1) => {}
            "s_cbranch_scc1" if self.is_sign_tested && self.low.is_none() && self.positive.is_none() => {
                self.positive = Some(inst.branch_target(at, self.isa)?);
            }
            _ if touches_registers(self.isa, inst, self.pair, 2)
                || !matches!(inst.control_flow(0, self.isa), ControlFlow::Next) =>
            {
                return None;
            }
            _ => self.trace_other(at, inst)?,
        }
        Some(None)
    }

    /// Whether SCC becomes the sign of the distance: a comparison of anything else selects a way that the
    /// distance does not have.
    fn tests_sign(&self, inst: &Inst) -> bool {
        let sources = [inst.words()[0] & 255, inst.words()[0] >> 8 & 255];
        inst.mnemonic() == "s_cmp_ge_i32" && self.spare.is_some_and(|one| is_tested_spare(one, &sources))
    }

    fn add_low(&mut self, at: u64, inst: &Inst, subtracts: bool) -> Option<()> {
        if self.low.is_some() {
            return None;
        }
        let by_spare = self.spare.filter(|spare| touches_registers(self.isa, inst, spare.register, 1));
        let addend = match by_spare {
            Some(spare) if spare.is_absolute == subtracts => LowAddend::Spare { subtracts },
            None if inst.len() > 4 && !subtracts => LowAddend::Literal(at + 4),
            _ => return None,
        };
        self.low = Some(LowAddition { at, addend });
        Some(())
    }

    fn add_high(&mut self, at: u64, inst: &Inst, subtracts: bool) -> Option<PcComputation> {
        let LowAddition { at: first, addend: low } = self.low?;
        let number = inline_source(inst, self.isa);
        match low {
            LowAddend::Literal(low) if !subtracts && inst.len() > 4 => {
                let distance = self.literal_at(low) | self.literal_at(at + 4) << 32;
                Some(PcComputation { high: Some(at + 4), ..self.make_computation(low, 4, distance, (first, at)) })
            }
            LowAddend::Literal(low) if !subtracts && matches!(number, Some(0 | -1)) => {
                let (high, range) = if number == Some(0) { (0, Range32::Positive) } else { (!0, Range32::Negative) };
                let distance = self.literal_at(low) | high << 32;
                Some(PcComputation { range, ..self.make_computation(low, 4, distance, (first, at)) })
            }
            LowAddend::Spare { subtracts: was } if was == subtracts && number == Some(0) => {
                let spare = self.spare?;
                let distance = i64::from(self.literal_at(spare.literal) as u32 as i32) + i64::from(spare.bias);
                let range = match (self.positive, subtracts) {
                    (Some(positive), true) => self.other_way(positive, spare).map(|()| Range32::Signed)?,
                    (Some(_), false) => return None,
                    (None, true) => Range32::Negative,
                    (None, false) => Range32::Positive,
                };
                let bias = spare.bias;
                let adds = (first, self.positive.unwrap_or(at));
                Some(PcComputation { bias, range, ..self.make_computation(spare.literal, 4, distance as u64, adds) })
            }
            _ => None,
        }
    }

    /// The path for a distance that is not negative must add it.
    fn other_way(&self, at: u64, spare: SpareDistance) -> Option<()> {
        let add = self.decode(at)?;
        let carry = self.decode(at + u64::from(add.len()))?;
        let adds = ["s_add_u32", "s_add_co_u32"].contains(&add.mnemonic())
            && reads_own_register(&add, self.pair)
            && touches_registers(self.isa, &add, spare.register, 1);
        let carries = ["s_addc_u32", "s_add_co_ci_u32"].contains(&carry.mnemonic())
            && reads_own_register(&carry, self.pair + 1)
            && inline_source(&carry, self.isa) == Some(0);
        (adds && carries).then_some(())
    }

    /// Any other instruction: it may put the distance into a third register.
    fn trace_other(&mut self, at: u64, inst: &Inst) -> Option<()> {
        let word = inst.words()[0];
        let (is_sop2, is_sop1) = (word >> 30 == 2 && word >> 23 != 0x17d, word >> 23 == 0x17d);
        let to = word >> 16 & 127;
        let spare = self.spare.filter(|spare| touches_registers(self.isa, inst, spare.register, 1));
        match (inst.mnemonic(), spare) {
            ("s_add_i32" | "s_add_u32" | "s_add_co_i32" | "s_add_co_u32", None) if is_sop2 && inst.len() == 8 => {
                if let (None, Some(bias)) = (self.spare, inline_source(inst, self.isa)) {
                    self.spare = Some(SpareDistance { register: to, literal: at + 4, bias, is_absolute: false });
                }
            }
            ("s_mov_b32", None) if is_sop1 && inst.len() == 8 && self.spare.is_none() => {
                self.spare = Some(SpareDistance { register: to, literal: at + 4, bias: 0, is_absolute: false });
            }
            ("s_add_i32" | "s_add_co_i32", Some(spare)) if is_sop2 && inst.len() == 4 && to == spare.register => {
                let bias = spare.bias.checked_add(inline_source(inst, self.isa)?)?;
                self.spare = Some(SpareDistance { bias, ..spare }).filter(|spare| !spare.is_absolute);
            }
            ("s_abs_i32", Some(spare)) if is_sop1 && to == spare.register && word & 255 == to => {
                self.spare = Some(SpareDistance { is_absolute: true, ..spare });
            }
            (name, Some(_)) if name.starts_with("s_cmp_") => {}
            (_, Some(_)) => self.spare = None,
            (_, None) => {}
        }
        Some(())
    }

    fn literal64_result(&self, at: u64) -> PcComputation {
        let distance = self.literal_at(at + 4) | self.literal_at(at + 8) << 32;
        self.make_computation(at + 4, 8, distance, (at, at))
    }

    /// A literal of 32 bits in a sum of 64. If the highest bit is set, the result depends on its extension; LLVM
    /// only writes the others.
    fn literal32_result(&self, at: u64) -> Option<PcComputation> {
        let (distance, range) = (self.literal_at(at + 4), Range32::Small);
        range
            .can_encode(distance as i64)
            .then(|| PcComputation { range, ..self.make_computation(at + 4, 4, distance, (at, at)) })
    }

    fn make_computation(&self, low: u64, size: u8, distance: u64, adds: (u64, u64)) -> PcComputation {
        let (at, base, range) = (self.at, self.at + 4, Range32::Signed);
        PcComputation { at, base, low, high: None, size, bias: 0, range, distance, adds }
    }

    fn literal_at(&self, at: u64) -> u64 {
        let word = self.bytes.get(at as usize..).and_then(|bytes| bytes.first_chunk());
        word.map_or(0, |word| u64::from(u32::from_le_bytes(*word)))
    }
}

fn is_own_sop2_result(register: u32, is_sop2: bool, to: u32, sources: &[u32; 2]) -> bool {
    is_sop2 && to == register && sources.contains(&register)
}

fn is_tested_spare(spare: SpareDistance, sources: &[u32; 2]) -> bool {
    !spare.is_absolute && *sources == [spare.register, INLINE_ZERO]
}

fn reads_own_register(inst: &Inst, register: u32) -> bool {
    let word = inst.words()[0];
    word >> 16 & 127 == register && [word & 255, word >> 8 & 255].contains(&register)
}

/// The inline number among the sources.
fn inline_source(inst: &Inst, isa: Isa) -> Option<i32> {
    [Name::Src0, Name::Src1].into_iter().find_map(|name| match inst.operand(isa, name)? {
        OperandValue::Inline(inline) => i32::try_from(inline.value).ok(),
        _ => None,
    })
}

/// Whether an instruction may read or write one of `count` scalar registers.
fn touches_registers(isa: Isa, inst: &Inst, register: u32, count: u32) -> bool {
    inst.operands(isa).any(|operand| match operand.value {
        OperandValue::Reg(reg) if reg.file == RegFile::Sgpr => {
            let (first, end) = (u32::from(reg.index), u32::from(reg.index) + u32::from(reg.count));
            first < register + count && register < end
        }
        // VCC is a pair like others.
        OperandValue::Reg(reg) if register >= 106 && reg.file == RegFile::Special => register < 108,
        _ => false,
    })
}
