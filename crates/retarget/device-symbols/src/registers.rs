//! The needs of a function by its own instructions: the highest registers that they name, bank modes included, and its frame.
//!
//! One pass, in which every instruction is decoded once.
//!
//! Invariant: where an instruction's registers are selected by M0, by the index mode of gfx9 or by a bank mode that is
//! not known, or where code was not decoded, the number is a lower bound and says so.

use crate::frame::{FrameScan, StackUse};
use crate::table::{FactEvidence, Number, Resources};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::EffectReader;
use hotswap_isa::reg::RegFile;
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Feature, Flag, Inst, Isa, OperandValue};
use hotswap_program::{BankMap, Program};

/// The registers named so far.
#[derive(Debug, Default)]
struct NamedRegisters {
    registers: RegSet,
    /// Vector registers may be more.
    open_vectors: bool,
    /// Scalar registers may be more.
    open_scalars: bool,
    /// The highest number of a named barrier, which count from 1, and whether M0 selects further ones.
    barriers: u64,
    open_barriers: bool,
}

/// The needs of one function without its callees. `lanes` are those of a wave.
pub(crate) fn own_needs(program: &Program<'_>, banks: &BankMap, number: usize, lanes: Option<u8>) -> Resources {
    let function = &program.functions[number];
    let isa = program.isa_of(number);
    let reader = EffectReader::new(isa);
    let mut named = NamedRegisters { open_vectors: function.uses_index_mode(), ..NamedRegisters::default() };
    let (mut frame, mut is_decoded) = (FrameScan::default(), function.is_closed());
    for (block, line) in function.blocks().enumerate() {
        let mut mode = banks.at_block(number, block);
        // Bytes after the block are included, so that its last instructions are read in one step.
        let bytes = program.source.bytes.get(line.start as usize..).unwrap_or_default();
        for (_, inst) in isa.walk(bytes).take_while(|(at, _)| line.start as usize + at < line.end as usize) {
            let Ok(inst) = inst else {
                is_decoded = false;
                break;
            };
            let stack = named.add_instruction(&inst, mode, reader);
            if stack.is_some() {
                frame.add_instruction(&inst, stack, isa);
            }
            if inst.is(Flag::SyncBarrier) {
                named.add_barrier(&inst, isa);
            }
            mode = mode.mode_after(&inst, isa);
        }
    }
    let scratch = if is_decoded { frame.frame_bytes(function.is_kernel(), isa, lanes) } else { Number::UNKNOWN };
    Resources { scratch, ..named.resources(is_decoded) }
}

impl NamedRegisters {
    /// Adds the registers of an instruction. Returns its use of the stack and frame pointers.
    #[inline(always)]
    fn add_instruction(&mut self, inst: &Inst, banks: VgprBanks, reader: EffectReader) -> StackUse {
        if inst.is(Flag::Indexed) {
            self.open_vectors |= inst.is(Flag::Valu);
            self.open_scalars |= !inst.is(Flag::Valu);
        }
        let mut stack = StackUse::default();
        if banks == VgprBanks::ENTRY {
            reader.visit(inst, |effect| {
                self.registers.insert_effect(effect);
                stack.add_effect(effect);
            });
            return stack;
        }
        reader.visit(inst, |effect| {
            let reg = banks.resolve_register(effect.reg(), effect.role());
            self.open_vectors |= reg.is_none() && !effect.is_none();
            self.registers.insert(reg.unwrap_or(effect.reg()));
            stack.add_effect(effect);
        });
        stack
    }

    /// Adds an instruction that concerns a barrier. The work-group's own and that of the cluster have negative numbers.
    fn add_barrier(&mut self, inst: &Inst, isa: Isa) {
        if !isa.has(Feature::N1024AddressableVgprs) {
            return;
        }
        let number = match inst.operands(isa).next().map(|operand| operand.value) {
            Some(OperandValue::Inline(number)) => number.value,
            Some(OperandValue::Imm(number)) => i64::from(number as i16),
            _ => {
                self.open_barriers = true;
                return;
            }
        };
        self.barriers = self.barriers.max(u64::try_from(number).unwrap_or(0));
    }

    fn resources(&self, is_decoded: bool) -> Resources {
        Resources {
            vgprs: disassembled_register_count(RegFile::Vgpr, self.open_vectors, self, is_decoded),
            agprs: disassembled_register_count(RegFile::Agpr, false, self, is_decoded),
            sgprs: disassembled_register_count(RegFile::Sgpr, self.open_scalars, self, is_decoded),
            barriers: Number {
                value: Some(self.barriers),
                at_least: self.open_barriers || !is_decoded,
                evidence: FactEvidence::Disassembly,
            },
            ..Resources::UNKNOWN
        }
    }
}

fn disassembled_register_count(file: RegFile, open: bool, this: &NamedRegisters, is_decoded: bool) -> Number {
    Number {
        value: Some(u64::from(this.registers.end_of(file))),
        at_least: open || !is_decoded,
        evidence: FactEvidence::Disassembly,
    }
}
