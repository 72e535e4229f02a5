//! `e5m3_conversion`: conversions between 32-bit floats and unsigned eight-bit floats with five exponent bits (UE5M3).
//!
//! In the source the CLAMP bit of the E4M3 conversions means UE5M3. The target has only E4M3 and would silently convert
//! to that. The replacements compute with integers, one conversion of floats to integers and a multiplication by a
//! power of two that is exact, so MODE's rounding and denormals do not matter.
//!
//! UE5M3: bias 15, three bits of mantissa, no sign, no infinity. 0xff is NaN, 0xfe the largest (114688), and values
//! below 2^-14 are multiples of 2^-17.
//!
//! No public document says how the source handles negative and too large numbers, and which NaN it produces. The
//! assumption is the behaviour of AMD's own translator: the sign is dropped, and too large numbers become NaN, or the
//! largest number if MODE.FP16_OVFL is set. Modifiers of the source (negation, absolute value) are refused.

use crate::code::{
    CandidateFilter, CodeSite, InstructionFamily, RECOMPILE, Sequence, SiteAnswer, SiteQueries, SiteRefusal,
    alloc_scratch, named_operand,
};
use crate::registry::{Apply, FamilyRegistry};
use crate::table::slot;
use hotswap_isa::encode::OperandArg;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::{Class, Name, OperandValue, TableEntry};

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_e5m3_conversion_patch(registry: &mut FamilyRegistry) {
    registry.bind(
        slot::E5M3_CONVERSION,
        Apply::Instruction(InstructionFamily { concerns, suspects: CandidateFilter::All, rewrite }),
    );
}

const TO: &str = "UE5M3 drops the sign, and what is too large becomes NaN, or 114688 if MODE.FP16_OVFL is set";
const TO_STOCHASTIC: &str = "UE5M3 drops the sign, what is too large becomes NaN, or 114688 if MODE.FP16_OVFL is set; \
    noise is added below the last bit that stays, and what is below 2^-18 becomes 0";
const FROM: &str = "the NaN of UE5M3 becomes 0x7fa3d000";

const FORMS: [&str; 3] = ["v_cvt_pk_fp8_f32", "v_cvt_sr_fp8_f32", "v_cvt_f32_fp8"];

fn concerns(entry: TableEntry) -> bool {
    FORMS.contains(&entry.mnemonic()) && entry.slot(Name::Clamp).is_some()
}

fn rewrite(site: &CodeSite<'_>, around: &dyn SiteQueries) -> Result<SiteAnswer, SiteRefusal> {
    if site.raw(Name::Clamp) == 0 {
        return Ok(SiteAnswer::NotMine);
    }
    if site.inst.class() != Some(Class::Vop3) {
        return Err(SiteRefusal::new("the conversion takes its source from other lanes (DPP)", RECOMPILE));
    }
    match site.inst.mnemonic() {
        "v_cvt_pk_fp8_f32" => convert_pack(site, around),
        "v_cvt_sr_fp8_f32" => convert_stochastic(site, around),
        _ => convert_unpack(site, around),
    }
}

/// A bit of the modifiers that selects the half of the result, not a property of the source.
const HIGH_HALF: u64 = 8;

fn plain_source(site: &CodeSite<'_>, modifiers: Name) -> Result<(), SiteRefusal> {
    match site.raw(modifiers) & 3 {
        0 => Ok(()),
        _ => Err(SiteRefusal::new(
            "what negation and absolute value of the source mean for UE5M3 is not known",
            RECOMPILE,
        )),
    }
}

/// The source as an operand with a physical register.
fn source_operand(site: &CodeSite<'_>, around: &dyn SiteQueries, name: Name) -> Result<OperandArg, SiteRefusal> {
    if let Some(reg) = site.physical_register(name, around.banks())? {
        return Ok(reg.into());
    }
    match site.value(name) {
        Some(OperandValue::Inline(inline)) => Ok(OperandArg::Inline(inline.code)),
        Some(OperandValue::Literal(literal)) if !literal.wide => Ok(OperandArg::Literal(literal.value as u32)),
        _ => Err(SiteRefusal::new(format!("operand {} is neither register nor constant", name.as_str()), RECOMPILE)),
    }
}

/// Temporary registers, and short names for operations on them.
struct Temporaries {
    code: Sequence,
    vector: Vec<Reg>,
    scalar: Vec<Reg>,
}

impl Temporaries {
    fn new(site: &CodeSite<'_>, around: &dyn SiteQueries, vector: usize, scalar: usize) -> Result<Self, SiteRefusal> {
        let mut taken = site.named_registers(around.banks());
        let mut work = Self { code: Sequence::new(site, around), vector: Vec::new(), scalar: Vec::new() };
        for (file, count) in [(RegFile::Vgpr, vector), (RegFile::Sgpr, scalar)] {
            for _ in 0..count {
                let reg = alloc_scratch(around, file, 1, 1, &taken)?;
                taken.insert(reg);
                work.code.declare_scratch(reg)?;
                if file == RegFile::Vgpr { work.vector.push(reg) } else { work.scalar.push(reg) }
            }
        }
        Ok(work)
    }

    /// `to` becomes the operation of `a`.
    fn add_unary(&mut self, mnemonic: &str, to: Reg, a: impl Into<OperandArg>) -> Result<(), SiteRefusal> {
        self.code.add(mnemonic, Class::Vop1, &[named_operand(Name::Vdst, to), named_operand(Name::Src0, a)])
    }

    /// `to` becomes the operation of `a` and `b`; the short form has a register as its second source.
    fn add_binary(&mut self, mnemonic: &str, to: Reg, a: impl Into<OperandArg>, b: Reg) -> Result<(), SiteRefusal> {
        let class = if b.file == RegFile::Vgpr { Class::Vop2 } else { Class::Vop3 };
        self.code.add(
            mnemonic,
            class,
            &[named_operand(Name::Vdst, to), named_operand(Name::Src0, a), named_operand(Name::Src1, b)],
        )
    }

    fn add_ternary(&mut self, mnemonic: &str, to: Reg, [a, b, c]: [OperandArg; 3]) -> Result<(), SiteRefusal> {
        let operands = [
            named_operand(Name::Vdst, to),
            named_operand(Name::Src0, a),
            named_operand(Name::Src1, b),
            named_operand(Name::Src2, c),
        ];
        self.code.add(mnemonic, Class::Vop3, &operands)
    }

    /// The mask of lanes in which the comparison of `a` and `b` holds.
    fn add_compare(&mut self, mnemonic: &str, to: Reg, a: u32, b: Reg) -> Result<(), SiteRefusal> {
        let operands = [
            named_operand(Name::Sdst, to),
            named_operand(Name::Src0, constant_operand(a)),
            named_operand(Name::Src1, b),
        ];
        self.code.add(mnemonic, Class::Vop3, &operands)
    }

    /// `to` becomes `yes` in the lanes of `mask`, `no` in the others.
    fn add_select(
        &mut self,
        to: Reg,
        no: impl Into<OperandArg>,
        yes: impl Into<OperandArg>,
        mask: Reg,
    ) -> Result<(), SiteRefusal> {
        self.add_ternary("v_cndmask_b32", to, [no.into(), yes.into(), mask.into()])
    }

    /// `to` becomes the bits of `source` without its sign.
    fn clear_sign(&mut self, to: Reg, source: OperandArg) -> Result<(), SiteRefusal> {
        const MASK: u32 = 0x7fff_ffff;
        match source {
            OperandArg::Reg(reg) => self.add_binary("v_and_b32", to, constant_operand(MASK), reg),
            other => {
                self.add_unary("v_mov_b32", to, other)?;
                self.add_binary("v_and_b32", to, constant_operand(MASK), to)
            }
        }
    }
}

fn constant_operand(value: u32) -> OperandArg {
    OperandArg::Constant(u64::from(value))
}

/// Part of MODE as the operand of `s_getreg_b32`: register 1, bit 23, one bit.
const FP16_OVFL: i64 = 1 | 23 << 6;
/// The bits of infinity: anything above is NaN.
const INFINITY: u32 = 0x7f80_0000;
/// The bits of 2^-14: values below are multiples of 2^-17.
const SMALLEST_NORMAL: u32 = 0x3880_0000;
/// The difference of the biases, in units of the last bit that is kept: (127 − 15) × 8.
const BIAS: u32 = 0x380;
/// The bits of 2^-18: values below are lost, whatever the noise.
const HALF_STEP: u32 = 0x3680_0000;
const NAN: u32 = 0xff;
const LARGEST: u32 = 0xfe;

/// Scalar temporaries: a mask of NaN, another mask, MODE.FP16_OVFL.
const MASKS: usize = 3;

impl Temporaries {
    fn overflow_flag(&mut self) -> Result<(), SiteRefusal> {
        let operands =
            [named_operand(Name::Sdst, self.scalar[2]), named_operand(Name::Simm16, OperandArg::Number(FP16_OVFL))];
        self.code.add("s_getreg_b32", Class::Sopk, &operands)
    }

    /// `out` holds a number of at least eight bits. Values above the largest become what MODE specifies, and lanes of
    /// the first mask become NaN.
    fn apply_limits(&mut self, out: Reg, temporary: Reg) -> Result<(), SiteRefusal> {
        let [is_nan, mask, flag] = [self.scalar[0], self.scalar[1], self.scalar[2]];
        self.add_compare("v_cmp_lt_u32", mask, LARGEST, out)?;
        self.add_binary("v_xor_b32", temporary, constant_operand(NAN), flag)?;
        self.add_select(out, out, temporary, mask)?;
        self.add_unary("v_mov_b32", temporary, constant_operand(NAN))?;
        self.add_select(out, out, temporary, is_nan)
    }

    /// `out` becomes the UE5M3 of `source`, rounded to the nearest even.
    fn round_to_nearest(
        &mut self,
        source: OperandArg,
        out: Reg,
        [normal, temporary]: [Reg; 2],
    ) -> Result<(), SiteRefusal> {
        let [is_nan, small] = [self.scalar[0], self.scalar[1]];
        self.clear_sign(out, source)?;
        self.add_compare("v_cmp_lt_u32", is_nan, INFINITY, out)?;
        self.add_compare("v_cmp_gt_u32", small, SMALLEST_NORMAL, out)?;
        // Half of the last kept bit, less one, plus that bit: a tie rounds to even.
        self.add_ternary("v_bfe_u32", temporary, [out.into(), constant_operand(20), constant_operand(1)])?;
        self.add_ternary("v_add3_u32", normal, [out.into(), temporary.into(), constant_operand(0x7_ffff)])?;
        self.add_binary("v_lshrrev_b32", normal, constant_operand(20), normal)?;
        self.add_binary("v_subrev_nc_u32", normal, constant_operand(BIAS), normal)?;
        // Times 2^17: the number of steps, rounded to the nearest even whatever MODE says.
        self.add_binary("v_mul_f32", temporary, constant_operand(0x4800_0000), out)?;
        self.add_unary("v_rndne_f32", temporary, temporary)?;
        self.add_unary("v_cvt_u32_f32", temporary, temporary)?;
        self.add_select(out, normal, temporary, small)?;
        self.apply_limits(out, temporary)
    }
}

fn convert_pack(site: &CodeSite<'_>, around: &dyn SiteQueries) -> Result<SiteAnswer, SiteRefusal> {
    plain_source(site, Name::Src0Modifiers)?;
    plain_source(site, Name::Src1Modifiers)?;
    let sources = [source_operand(site, around, Name::Src0)?, source_operand(site, around, Name::Src1)?];
    let result = whole_register(site.register_operand(Name::Vdst, around.banks())?);
    let mut work = Temporaries::new(site, around, 4, MASKS)?;
    work.code.declare_assumption(TO);
    let [low, high, normal, temporary] = [work.vector[0], work.vector[1], work.vector[2], work.vector[3]];
    work.overflow_flag()?;
    work.round_to_nearest(sources[0], low, [normal, temporary])?;
    work.round_to_nearest(sources[1], high, [normal, temporary])?;
    work.add_ternary("v_lshl_or_b32", low, [high.into(), constant_operand(8), low.into()])?;
    let upper = site.raw(Name::Src0Modifiers) & HIGH_HALF != 0;
    if upper {
        work.add_binary("v_lshlrev_b32", low, constant_operand(16), low)?;
    }
    let mask = constant_operand(if upper { 0xffff_0000 } else { 0xffff });
    work.add_ternary("v_bfi_b32", result, [mask, low.into(), result.into()])?;
    Ok(work.code.finish()?.into())
}

fn convert_stochastic(site: &CodeSite<'_>, around: &dyn SiteQueries) -> Result<SiteAnswer, SiteRefusal> {
    plain_source(site, Name::Src0Modifiers)?;
    plain_source(site, Name::Src1Modifiers)?;
    let value = source_operand(site, around, Name::Src0)?;
    let seed = source_operand(site, around, Name::Src1)?;
    let result = site.register_operand(Name::Vdst, around.banks())?;
    let mut work = Temporaries::new(site, around, 5, MASKS)?;
    work.code.declare_assumption(TO_STOCHASTIC);
    let [out, noise, normal, shift, steps] =
        [work.vector[0], work.vector[1], work.vector[2], work.vector[3], work.vector[4]];
    let [is_nan, mask] = [work.scalar[0], work.scalar[1]];
    work.overflow_flag()?;
    work.add_unary("v_mov_b32", noise, seed)?;
    work.clear_sign(out, value)?;
    work.add_compare("v_cmp_lt_u32", is_nan, INFINITY, out)?;
    // 20 bits of noise below the last kept bit.
    work.add_binary("v_lshrrev_b32", normal, constant_operand(12), noise)?;
    work.add_binary("v_add_nc_u32", normal, out, normal)?;
    work.add_binary("v_lshrrev_b32", normal, constant_operand(20), normal)?;
    work.add_binary("v_subrev_nc_u32", normal, constant_operand(BIAS), normal)?;
    // Below 2^-14 the mantissa with its leading one is shifted right by 133 - exponent, 21 to 24, and the noise by the
    // rest of 32, exponent - 101.
    work.add_binary("v_lshrrev_b32", shift, constant_operand(23), out)?;
    work.add_binary("v_subrev_nc_u32", shift, constant_operand(101), shift)?;
    work.add_binary("v_and_b32", steps, constant_operand(0x7f_ffff), out)?;
    work.add_binary("v_or_b32", steps, constant_operand(0x80_0000), steps)?;
    work.add_binary("v_lshrrev_b32", noise, shift, noise)?;
    work.add_binary("v_add_nc_u32", steps, steps, noise)?;
    work.add_binary("v_sub_nc_u32", shift, constant_operand(32), shift)?;
    work.add_binary("v_lshrrev_b32", steps, shift, steps)?;
    work.add_compare("v_cmp_gt_u32", mask, HALF_STEP, out)?;
    work.add_select(steps, steps, constant_operand(0), mask)?;
    work.add_compare("v_cmp_gt_u32", mask, SMALLEST_NORMAL, out)?;
    work.add_select(out, normal, steps, mask)?;
    work.apply_limits(out, shift)?;
    let byte = site.raw(Name::ByteSel) as u32;
    if byte != 0 {
        work.add_binary("v_lshlrev_b32", out, constant_operand(8 * byte), out)?;
    }
    work.add_ternary("v_bfi_b32", result, [constant_operand(0xff << (8 * byte)), out.into(), result.into()])?;
    Ok(work.code.finish()?.into())
}

fn convert_unpack(site: &CodeSite<'_>, around: &dyn SiteQueries) -> Result<SiteAnswer, SiteRefusal> {
    let value = source_operand(site, around, Name::Src0)?;
    let result = site.register_operand(Name::Vdst, around.banks())?;
    let mut work = Temporaries::new(site, around, 2, 1)?;
    work.code.declare_assumption(FROM);
    let ([byte, steps], mask) = ([work.vector[0], work.vector[1]], work.scalar[0]);
    let shift = constant_operand(8 * site.raw(Name::ByteSel) as u32);
    work.add_ternary("v_bfe_u32", byte, [value, shift, constant_operand(8)])?;
    // Normal numbers: the bits in their position, plus the difference of the biases.
    work.add_ternary("v_lshl_add_u32", result, [byte.into(), constant_operand(20), constant_operand(BIAS << 20)])?;
    // The others are multiples of 2^-17.
    work.add_unary("v_cvt_f32_ubyte0", steps, byte)?;
    work.add_binary("v_mul_f32", steps, constant_operand(0x3700_0000), steps)?;
    work.add_compare("v_cmp_gt_u32", mask, 8, byte)?;
    work.add_select(result, result, steps, mask)?;
    work.add_compare("v_cmp_eq_u32", mask, NAN, byte)?;
    work.add_select(result, result, constant_operand(0x7fa3_d000), mask)?;
    Ok(work.code.finish()?.into())
}

/// The whole register of which the operand names a half.
fn whole_register(reg: Reg) -> Reg {
    Reg { half: None, ..reg }
}
