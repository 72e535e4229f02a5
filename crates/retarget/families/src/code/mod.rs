//! The interface of families that change machine code: inputs, queries, answers.
//!
//! A family of scope `Instruction` is given one decoded instruction ([`CodeSite`]) and may query its [`Surroundings`]. It
//! answers with the replacement, or refuses with the reason. A family of scope `Function` is given the control flow of
//! a function after that ([`FunctionFlow`]) and answers with instructions to insert.
//!
//! Invariants: every instruction is made by the encoder from typed operands or by a change of one field, and decodes on
//! the target. Registers are physical (0 to 1023) until an instruction is encoded, where [`Sequence`] chooses the bank
//! mode and restores the previous one. No sequence touches EXEC, VCC or SCC. A sequence that depends on unknown state
//! (bank mode, a free register) is refused, never guessed.
//!
//! Not here: control flow and liveness (the engine answers queries), layout of code, `s_clause` and `s_delay_alu`
//! around an insertion (the engine's: it moves their members), and text.

mod flow;
pub(crate) mod scaled;
mod sequence;
mod site;
mod spill;

pub use flow::{FlowBlock, FunctionCode, FunctionFlow, Insertion};
pub use sequence::{NamedOperand, Sequence};
pub use site::{CodeSite, Replacement, Scheduling, SiteAnswer, SiteQueries, SiteRefusal};
pub use spill::{SPILL_LIMIT, SpillSlot, with_spills};

pub(crate) use sequence::{build_instruction, cannot_encode, named_operand, wait_for_vector_results};
pub use sequence::{no_operation, scalar_copy, scalar_no_operation};
pub(crate) use site::{FREE_REGISTERS, RECOMPILE, alloc_scratch};

use hotswap_isa::kind::Decode;
use hotswap_isa::{Flag, Inst, Isa, Name, Piece, Slot, TableEntry};

/// Whether an instruction is one of the matrix unit, which writes all lanes.
fn is_matrix(inst: &Inst) -> bool {
    inst.is(Flag::Wmma) || inst.is(Flag::Swmmac)
}

/// A family of scope `Instruction`.
#[derive(Debug, Clone, Copy)]
pub struct InstructionFamily {
    /// Whether instructions of that encoding concern it at all. Called once per encoding, so that most of the code
    /// costs one table lookup.
    pub concerns: fn(TableEntry) -> bool,
    /// Which of these may be its own, by their bits alone: for families with many encodings and few instructions.
    pub suspects: CandidateFilter,
    /// Rewrites one of them.
    pub rewrite: fn(&CodeSite<'_>, &dyn SiteQueries) -> Result<SiteAnswer, SiteRefusal>,
}

/// A number in a field of an instruction.
#[derive(Debug, Clone, Copy)]
pub struct FieldNumber {
    pub pieces: &'static [Piece],
    pub number: u64,
}

/// Instructions that may be a family's own, among those of its encodings.
#[derive(Debug, Clone, Copy)]
pub enum CandidateFilter {
    All,
    /// Those that hold one of the numbers in the field of one of these operands, if that names a source of this size.
    /// In a field of eight bits, or fewer, every number of a vector instruction is a vector register.
    Number {
        operands: &'static [Name],
        /// The numbers in instructions of an encoding.
        numbers: fn(TableEntry) -> &'static [u64],
        /// Size of the source.
        dwords: u8,
    },
}

impl CandidateFilter {
    /// The fields of the operands in that encoding, with the numbers that they hold in instructions of the family.
    /// `None` if the family is to see all of them.
    pub(crate) fn operand_fields(self, entry: TableEntry) -> Option<Vec<FieldNumber>> {
        let Self::Number { operands, numbers, dwords } = self else { return None };
        let has_size =
            |slot: &&Slot| matches!(slot.operand_kind().decode, Decode::Source { dwords: own, .. } if own == dwords);
        let slots = entry.slots().iter().filter(|slot| operands.contains(&slot.name)).filter(has_size);
        let fields = slots.filter_map(|slot| match slot.pieces() {
            [] => entry.fields().find(|field| field.name == slot.name).map(|field| field.pieces),
            pieces => Some(pieces),
        });
        let narrow = if entry.is(Flag::Salu) { 0 } else { 8 };
        let wide = fields.filter(|pieces| pieces.iter().map(|piece| piece.width).sum::<u8>() > narrow);
        Some(wide.flat_map(|pieces| numbers(entry).iter().map(move |&number| FieldNumber { pieces, number })).collect())
    }
}

/// Whether an instruction of code for the instruction set, with the bytes after it, is a reason.
pub type ConfirmReason = fn(Isa, &Inst, &[u8]) -> bool;

/// The functions of a family of scope `Function`.
#[derive(Debug, Clone, Copy)]
pub struct FunctionFamily {
    /// Whether instructions of that encoding may concern it.
    pub entries: fn(TableEntry) -> bool,
    /// Whether an instruction may be a reason to insert code into its function. The family skips functions without one.
    pub concerns: fn(&Inst) -> bool,
    /// Whether the bytes after such an instruction make it a reason, for families with many candidates and few reasons.
    /// `None` if they do not matter.
    pub confirms: Option<ConfirmReason>,
    pub insertions: fn(&FunctionFlow<'_>) -> Result<Vec<Insertion>, SiteRefusal>,
}
