//! Instructions of one active lane as terms.
//!
//! Invariants: an instruction, a modifier or an operand that is not known here is refused by name; nothing is guessed. LDS
//! is unbounded, and memory outside of it does not occur.

use super::term::{MemoryTerm, Term};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::bank_role;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::{Inst, Isa, Name, OperandValue};
use std::collections::BTreeMap;

/// The state of a lane.
#[derive(Debug, Clone)]
pub struct SymbolicLane {
    isa: Isa,
    registers: BTreeMap<(RegFile, u16), Term>,
    /// The lane's bit of masks in scalar registers.
    masks: BTreeMap<u16, Term>,
    /// LDS.
    pub memory: MemoryTerm,
    /// Bank modes of vector registers.
    pub banks: VgprBanks,
}

/// The name of the variable of a register.
pub fn variable_of(file: RegFile, index: u16) -> String {
    format!("{file:?}_{index}").to_lowercase()
}

/// The variables of the lane's number and of FP16_OVFL.
pub const LANE: &str = "lane";
/// See [`LANE`].
pub const OVERFLOW: &str = "overflow";

fn word(value: u64) -> Term {
    Term::constant(value, 32)
}

/// The meaning of an instruction that computes 32 bits of three sources.
type WordMeaning = fn(&[Term; 3]) -> Term;

fn amount(term: &Term) -> Term {
    term.and(&word(31))
}

fn field(value: &Term, low: &Term, width: &Term) -> Term {
    let ones = word(1).shift_left(&amount(width)).subtract(&word(1));
    value.shift_right(&amount(low)).and(&ones)
}

#[rustfmt::skip]
const WORDS: &[(&str, WordMeaning)] = &[
    ("v_mov_b32", |[a, _, _]| a.clone()),
    ("v_and_b32", |[a, b, _]| a.and(b)),
    ("v_or_b32", |[a, b, _]| a.or(b)),
    ("v_xor_b32", |[a, b, _]| a.xor(b)),
    ("v_add_nc_u32", |[a, b, _]| a.add(b)),
    ("v_sub_nc_u32", |[a, b, _]| a.subtract(b)),
    ("v_subrev_nc_u32", |[a, b, _]| b.subtract(a)),
    ("v_lshlrev_b32", |[a, b, _]| b.shift_left(&amount(a))),
    ("v_lshrrev_b32", |[a, b, _]| b.shift_right(&amount(a))),
    ("v_lshl_add_u32", |[a, b, c]| a.shift_left(&amount(b)).add(c)),
    ("v_lshl_or_b32", |[a, b, c]| a.shift_left(&amount(b)).or(c)),
    ("v_add3_u32", |[a, b, c]| a.add(b).add(c)),
    ("v_bfe_u32", |[a, b, c]| field(a, b, c)),
    ("v_bfi_b32", |[a, b, c]| a.and(b).or(&a.inverted().and(c))),
];

/// The meaning of a comparison.
type BitMeaning = fn(&Term, &Term) -> Term;

/// Comparisons of 32 bits.
const COMPARISONS: &[(&str, BitMeaning)] =
    &[("v_cmp_lt_u32", |a, b| a.less(b)), ("v_cmp_gt_u32", |a, b| b.less(a)), ("v_cmp_eq_u32", |a, b| a.equal(b))];

impl SymbolicLane {
    /// A lane whose registers are variables.
    pub fn new(isa: Isa, banks: VgprBanks) -> Self {
        let (registers, masks) = (BTreeMap::new(), BTreeMap::new());
        Self { isa, registers, masks, memory: MemoryTerm::initial(), banks }
    }

    pub fn register(&self, file: RegFile, index: u16) -> Term {
        let known = self.registers.get(&(file, index)).cloned();
        known.unwrap_or_else(|| Term::variable(variable_of(file, index), 32))
    }

    /// The registers that were written.
    pub fn written(&self) -> impl Iterator<Item = (RegFile, u16)> + '_ {
        self.registers.keys().copied()
    }

    fn resolved(&self, inst: &Inst, name: Name) -> Result<OperandValue, String> {
        let unknown = || format!("`{}` has no operand {name:?}", inst.mnemonic());
        let mut operands = inst.operands(self.isa).enumerate();
        let (number, operand) = operands.find(|(_, operand)| operand.name == name).ok_or_else(unknown)?;
        match operand.value {
            OperandValue::Reg(reg) => {
                let reg =
                    self.banks.resolve_register(reg, bank_role(inst.entry(), number as u8)).ok_or_else(unknown)?;
                if reg.half.is_some() { Err(unknown()) } else { Ok(OperandValue::Reg(reg)) }
            }
            value => Ok(value),
        }
    }

    /// Dword `dword` of an operand.
    fn source(&self, inst: &Inst, name: Name, dword: u16) -> Result<Term, String> {
        match self.resolved(inst, name)? {
            OperandValue::Reg(reg) => Ok(self.register(reg.file, reg.index + dword)),
            OperandValue::Inline(inline) => Ok(word(inline.value as u64)),
            OperandValue::Literal(literal) => Ok(word(literal.value)),
            OperandValue::Imm(number) => Ok(word(number as u64)),
            OperandValue::None => Err(format!("`{}` has no source {name:?}", inst.mnemonic())),
        }
    }

    /// Sources that an instruction does not have are 0.
    fn sources(&self, inst: &Inst) -> Result<[Term; 3], String> {
        let has = |name: Name| inst.operands(self.isa).any(|operand| operand.name == name);
        let one = |name: Name| if has(name) { self.source(inst, name, 0) } else { Ok(word(0)) };
        for name in [Name::Src0Modifiers, Name::Src1Modifiers, Name::Src2Modifiers] {
            if inst.raw(name).unwrap_or(0) != 0 {
                return Err(format!("`{}` has modifiers", inst.mnemonic()));
            }
        }
        Ok([one(Name::Src0)?, one(Name::Src1)?, one(Name::Src2)?])
    }

    fn target(&self, inst: &Inst, name: Name) -> Result<Reg, String> {
        match self.resolved(inst, name)? {
            OperandValue::Reg(reg) => Ok(reg),
            _ => Err(format!("`{}` has no target", inst.mnemonic())),
        }
    }

    fn set(&mut self, reg: Reg, dword: u16, value: Term) {
        self.registers.insert((reg.file, reg.index + dword), value);
    }

    /// Executes an instruction.
    ///
    /// # Errors
    /// Instructions that are not known here, by name.
    pub fn step(&mut self, inst: &Inst) -> Result<(), String> {
        let name = inst.mnemonic();
        let idle = ["s_nop", "v_nop", "s_delay_alu", "s_clause", "s_set_vgpr_msb"];
        if idle.contains(&name) || name.starts_with("s_wait_") {
            self.banks = self.banks.mode_after(inst, self.isa);
            return Ok(());
        }
        if let Some((_, meaning)) = WORDS.iter().find(|(known, _)| *known == name) {
            let value = meaning(&self.sources(inst)?);
            let target = self.target(inst, Name::Vdst)?;
            self.set(target, 0, value);
            return Ok(());
        }
        if let Some((_, meaning)) = COMPARISONS.iter().find(|(known, _)| *known == name) {
            let [a, b, _] = self.sources(inst)?;
            let target = self.target(inst, Name::Sdst)?;
            self.masks.insert(target.index, meaning(&a, &b));
            // Other lanes' bits are not known: the register is nothing that a comparison of states could use.
            self.registers.insert((target.file, target.index), Term::variable("unknown_mask", 32));
            return Ok(());
        }
        match name {
            "v_cndmask_b32" => self.choose(inst),
            "v_mbcnt_lo_u32_b32" => self.count_lanes(inst),
            "v_cvt_sr_fp8_f32" => self.stochastic(inst),
            "s_getreg_b32" => self.read_overflow(inst),
            _ if name.starts_with("ds_") => self.access(inst),
            _ => Err(format!("`{name}` is not known as a term")),
        }
    }

    fn choose(&mut self, inst: &Inst) -> Result<(), String> {
        let [no, yes, _] = {
            let mut sources = self.sources_without_mask(inst)?;
            sources[2] = word(0);
            sources
        };
        let mask = match self.resolved(inst, Name::Src2)? {
            OperandValue::Reg(reg) if reg.file == RegFile::Sgpr => self.masks.get(&reg.index).cloned(),
            _ => None,
        };
        let mask = mask.ok_or_else(|| "a mask of unknown origin".to_owned())?;
        let target = self.target(inst, Name::Vdst)?;
        self.set(target, 0, mask.choose(&yes, &no));
        Ok(())
    }

    fn sources_without_mask(&self, inst: &Inst) -> Result<[Term; 3], String> {
        Ok([self.source(inst, Name::Src0, 0)?, self.source(inst, Name::Src1, 0)?, word(0)])
    }

    /// The number of lower lanes, with a mask of all lanes.
    fn count_lanes(&mut self, inst: &Inst) -> Result<(), String> {
        let all =
            matches!(self.resolved(inst, Name::Src0)?, OperandValue::Inline(inline) if inline.value as u32 == u32::MAX);
        if !all {
            return Err("a count of some lanes".to_owned());
        }
        let sum = self.source(inst, Name::Src1, 0)?.add(&Term::variable(LANE, 32));
        let target = self.target(inst, Name::Vdst)?;
        self.set(target, 0, sum);
        Ok(())
    }

    /// FP16_OVFL of MODE.
    fn read_overflow(&mut self, inst: &Inst) -> Result<(), String> {
        // Register 1, bit 23, one bit.
        if inst.raw(Name::Simm16) != Some(1 | 23 << 6) {
            return Err("another field of a hardware register".to_owned());
        }
        let target = self.target(inst, Name::Sdst)?;
        self.set(target, 0, Term::variable(OVERFLOW, 1).extended(32));
        Ok(())
    }

    /// The stochastic conversion to unsigned E5M3, as AMD's public table of the steppings' differences has it.
    fn stochastic(&mut self, inst: &Inst) -> Result<(), String> {
        if inst.raw(Name::Clamp).unwrap_or(0) == 0 {
            return Err("a conversion to E4M3".to_owned());
        }
        let (value, noise) = (self.source(inst, Name::Src0, 0)?, self.source(inst, Name::Src1, 0)?);
        let magnitude = value.and(&word(0x7fff_ffff));
        let normal = magnitude.add(&noise.shift_right(&word(12))).shift_right(&word(20)).subtract(&word(0x380));
        let shift = word(133).subtract(&magnitude.shift_right(&word(23)));
        let mantissa = magnitude.and(&word(0x7f_ffff)).or(&word(0x80_0000));
        let small = mantissa.add(&noise.shift_right(&word(32).subtract(&shift))).shift_right(&shift);
        let small = magnitude.less(&word(0x3680_0000)).choose(&word(0), &small);
        let code = magnitude.less(&word(0x3880_0000)).choose(&small, &normal);
        let largest = Term::variable(OVERFLOW, 1).choose(&word(0xfe), &word(0xff));
        let code = word(0xfe).less(&code).choose(&largest, &code);
        let code = word(0x7f80_0000).less(&magnitude).choose(&word(0xff), &code);
        let shift = u64::from(inst.words()[0] >> 13 & 3) * 8;
        let target = self.target(inst, Name::Vdst)?;
        let old = self.register(target.file, target.index).and(&word(!(0xff << shift)));
        self.set(target, 0, old.or(&code.shift_left(&word(shift))));
        Ok(())
    }

    /// An access to LDS.
    fn access(&mut self, inst: &Inst) -> Result<(), String> {
        let name = inst.mnemonic();
        let dwords = match name.rsplit('_').next() {
            Some("b32") => 1,
            Some("b64") => 2,
            Some("b128") => 4,
            _ => return Err(unknown_access_error(name)),
        };
        let rest = name.trim_start_matches("ds_");
        let (loads, stores) = match rest {
            rest if rest.starts_with("load_") => (true, false),
            rest if rest.starts_with("store_") => (false, true),
            rest if rest.starts_with("storexchg_") && rest.contains("_rtn_") => (true, true),
            _ => return Err(unknown_access_error(name)),
        };
        let places = self.places(inst, dwords)?;
        let data = [Name::Data0, Name::Data1];
        let mut new = Vec::new();
        for (number, _) in places.iter().enumerate().filter(|_| stores) {
            let words = (0..dwords).map(|dword| self.source(inst, data[number], dword));
            new.push(words.collect::<Result<Vec<Term>, String>>()?);
        }
        let target = if loads { Some(self.target(inst, Name::Vdst)?) } else { None };
        let mut old = Vec::new();
        for (number, place) in places.iter().enumerate() {
            for dword in 0..dwords {
                let at = place.add(&word(4 * u64::from(dword)));
                if loads {
                    old.push(self.memory.dword(&at));
                }
            }
            for (dword, value) in new.get(number).into_iter().flatten().enumerate() {
                self.memory = self.memory.stored(&place.add(&word(4 * dword as u64)), value);
            }
        }
        if let Some(target) = target {
            old.into_iter().enumerate().for_each(|(dword, value)| self.set(target, dword as u16, value));
        }
        Ok(())
    }

    /// The addresses of the elements.
    fn places(&self, inst: &Inst, dwords: u16) -> Result<Vec<Term>, String> {
        let name = inst.mnemonic();
        let raw = |name| inst.raw(name).unwrap_or(0);
        if name.contains("addtid") {
            // 20 bits of M0 on gfx1250.
            let m0 = self.register(RegFile::Special, hotswap_isa::reg::Special::M0 as u16);
            let lane = Term::variable(LANE, 32).shift_left(&word(2));
            let sum = m0.add(&lane).and(&word(0xf_ffff)).add(&word(raw(Name::Offset)));
            return Ok(vec![sum]);
        }
        let address = self.source(inst, Name::Addr, 0)?;
        if !name.contains("2addr") {
            return Ok(vec![address.add(&word(raw(Name::Offset)))]);
        }
        let unit = u64::from(dwords) * 4 * if name.contains("stride64") { 64 } else { 1 };
        Ok([Name::Offset0, Name::Offset1].map(|name| address.add(&word(raw(name) * unit))).to_vec())
    }
}

fn unknown_access_error(name: &str) -> String {
    format!("`{name}` is not known as a term")
}
