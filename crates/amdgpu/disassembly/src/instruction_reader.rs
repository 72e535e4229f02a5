//! The disassembler's view of the instruction set: the only file here that uses `hotswap-isa`.

use crate::out::TextOutput;
use hotswap_isa::effects::RegisterEffect;
use hotswap_isa::reg::{Reg, Special};
use hotswap_isa::text::PrintOptions;
use hotswap_isa::value::OperandValue;
use hotswap_isa::versions::version_judgment;
use hotswap_isa::{Feature, Flag, Isa, Target, Undecoded, Wave};
use std::io::Write;

pub use hotswap_isa::Inst;
pub use hotswap_isa::bank::VgprBanks as Banks;
pub use hotswap_isa::versions::VersionJudgment;

/// The top bits of SOPK, SOP1, SOPC and SOPP: every instruction with a branch target is one of these.
const SCALAR_IMMEDIATE: u32 = 0b1011;

/// The result of decoding bytes.
pub enum DecodeResult {
    Instruction(Inst),
    /// No instruction; the length where the encoding gives it.
    Opaque(Option<usize>),
    /// The bytes end inside of the instruction.
    Truncated,
}

/// Decodes and prints for one target and wave size.
#[derive(Clone, Copy)]
pub struct InstructionReader {
    isa: Isa,
    /// Operands name 256 of 1,024 vector registers.
    has_banks: bool,
}

impl InstructionReader {
    fn new(isa: Isa) -> Self {
        Self { isa, has_banks: isa.has(Feature::N1024AddressableVgprs) }
    }

    /// The reader for a processor's name, with the wave size that assemblers assume.
    pub fn find(processor: &str) -> Option<Self> {
        Target::find(processor).map(|target| Self::new(Isa::new(target)))
    }

    /// The reader for waves of that many lanes; unchanged for targets that have only one size.
    pub fn with_lanes(self, lanes: u8) -> Self {
        Self::new(self.isa.with_wave(if lanes == 64 { Wave::W64 } else { Wave::W32 }))
    }

    pub fn lanes(&self) -> u8 {
        match self.isa.wave() {
            Wave::W32 => 32,
            Wave::W64 => 64,
        }
    }

    /// The assembler's default wave size.
    pub fn default_lanes(&self) -> u8 {
        Self::new(Isa::new(self.isa.target())).lanes()
    }

    #[inline]
    pub fn decode(&self, bytes: &[u8]) -> DecodeResult {
        match self.isa.decode(bytes) {
            Ok(inst) => DecodeResult::Instruction(inst),
            Err(Undecoded::Opaque { len }) => DecodeResult::Opaque(len.map(usize::from)),
            Err(Undecoded::Truncated { .. }) => DecodeResult::Truncated,
        }
    }

    /// Length of an instruction; the same as that of [`InstructionReader::decode`], also for opaque bytes.
    #[inline]
    pub fn size(&self, bytes: &[u8]) -> Option<usize> {
        self.isa.instruction_size(bytes).map(usize::from)
    }

    /// Whether the first word can belong to an instruction that states a branch target.
    #[inline]
    pub fn may_branch(&self, bytes: &[u8]) -> bool {
        bytes.first_chunk().is_some_and(|word| u32::from_le_bytes(*word) >> 28 == SCALAR_IMMEDIATE)
    }

    /// The address that an instruction at `address` branches to or calls, where it states one.
    #[inline]
    pub fn branch(&self, inst: &Inst, address: u64) -> Option<u64> {
        if inst.words()[0] >> 28 != SCALAR_IMMEDIATE {
            return None;
        }
        inst.branch_target(address, self.isa)
    }

    /// Whether assembly names the destination by a distance that a label can replace.
    pub fn takes_label(&self, inst: &Inst) -> bool {
        inst.mnemonic() != "s_add_pc_i64"
    }

    /// The versions of LLVM that read an instruction, where they differ.
    #[inline]
    pub fn version_judgment(&self, inst: &Inst) -> Option<&'static VersionJudgment> {
        version_judgment(inst, self.isa)
    }

    pub fn mnemonic(&self, inst: &Inst) -> &'static str {
        inst.mnemonic()
    }

    #[inline]
    pub fn print<W: Write>(&self, inst: &Inst, banks: Banks, out: &mut TextOutput<W>) {
        // Only labels can fail.
        let _ = inst.append_text(self.isa, PrintOptions { banks, ..PrintOptions::default() }, out.buffer());
    }

    /// The bank mode after an instruction. Blocks and functions begin and end with bank 0: LLVM's convention, on which
    /// its disassembler relies, too.
    #[inline]
    pub fn banks_after(&self, banks: Banks, inst: &Inst) -> Banks {
        if !self.has_banks || inst.is(Flag::Terminator) || inst.is(Flag::Call) {
            return Banks::ENTRY;
        }
        banks.mode_after(inst, self.isa)
    }

    /// Writes the registers that it reads, as elements of a JSON list.
    pub fn reads<W: Write>(&self, inst: &Inst, banks: Banks, out: &mut TextOutput<W>) {
        list(inst.reads(self.isa).map(|effect| meant(effect, banks)), out);
    }

    /// Writes the registers that it writes, as elements of a JSON list.
    pub fn writes<W: Write>(&self, inst: &Inst, banks: Banks, out: &mut TextOutput<W>) {
        list(inst.writes(self.isa).map(|effect| meant(effect, banks)), out);
    }

    /// The operands of a scalar instruction, if they are registers or constants.
    pub fn scalars(&self, inst: &Inst) -> [Option<Scalar>; 3] {
        let mut found = [None; 3];
        for (place, operand) in found.iter_mut().zip(inst.operands(self.isa)) {
            *place = match operand.value {
                OperandValue::Reg(reg) => Some(Scalar::Reg(reg)),
                // A literal of 32 bits is a signed number.
                OperandValue::Literal(literal) if literal.wide => Some(Scalar::Number(literal.value)),
                OperandValue::Literal(literal) => Some(Scalar::Number(literal.value as u32 as i32 as i64 as u64)),
                OperandValue::Inline(inline) => Some(Scalar::Number(inline.value as u64)),
                _ => None,
            };
        }
        found
    }
}

/// The register of an effect, in its bank where that is known.
fn meant(effect: RegisterEffect, banks: Banks) -> Reg {
    banks.resolve_register(effect.reg, effect.role).unwrap_or(effect.reg)
}

fn list<W: Write>(registers: impl Iterator<Item = Reg>, out: &mut TextOutput<W>) {
    for (index, register) in registers.enumerate() {
        out.text(if index > 0 { ",\"" } else { "\"" });
        // As a register, not as a source operand.
        match register.as_special() {
            Some(Special::Scc) => out.text("scc"),
            Some(Special::Vccz) => out.text("vccz"),
            Some(Special::Execz) => out.text("execz"),
            _ => drop(register.write(out)),
        }
        out.byte(b'"');
    }
}

/// An operand of a scalar instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    Reg(Reg),
    /// A constant, sign-extended to 64 bits.
    Number(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first pass relies on it: a boundary of one is a boundary of the other.
    #[test]
    fn lengths_agree_with_decoding_on_any_bytes() {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for target in Target::all_targets() {
            let reader = InstructionReader::find(target.name).unwrap();
            for _ in 0..20_000 {
                let words = [random(), random(), random()];
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let decoded = match reader.decode(&bytes) {
                    DecodeResult::Instruction(inst) => Some(usize::from(inst.len())),
                    DecodeResult::Opaque(len) => len,
                    DecodeResult::Truncated => None,
                };
                let length = reader.size(&bytes);
                assert_eq!(length, decoded, "{} {bytes:02x?}", target.name);
            }
        }
    }
}
