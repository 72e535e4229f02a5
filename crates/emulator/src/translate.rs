//! From a decoded instruction to the form in which it is executed.
//!
//! Invariants: what a mnemonic means is looked up once, in tables; a part of an instruction that the emulator does not
//! know makes the whole instruction unknown.

mod memory;
mod names;
mod operands;
mod scalar;
mod vector;

use crate::execute::{self, Handler};
use crate::micro::{Body, MicroOp, Modifiers, Place, Source};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::{Class, Feature, Inst, Isa};
use hotswap_semantics::Meaning;
use operands::OperandReader;

/// The plan for a mnemonic.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Plan {
    /// A handler that needs the operands only.
    Handler(Handler),
    /// A row of the semantics.
    Meaning(Meaning),
    /// An access to memory.
    Access(crate::memory_operation::MemoryOperation),
    /// Two accesses to LDS.
    TwoAddresses(Handler),
}

/// The form of an instruction in which it is executed, with vector registers in the banks of `banks`.
pub(crate) fn translate(inst: Inst, isa: Isa, banks: u8) -> MicroOp {
    let reader = OperandReader::new(inst, isa, VgprBanks::of_mode(banks));
    let op = reader.empty();
    let known = translated(&reader, op.clone()).unwrap_or(MicroOp { handler: execute::unknown, ..op });
    let vectors = reader.vectors();
    MicroOp { vectors, ..known }
}

fn translated(reader: &OperandReader, op: MicroOp) -> Option<MicroOp> {
    if matches!(reader.inst.class()?, Class::Vopd | Class::Vopd3) {
        return vector::dual(reader, op);
    }
    if let Some(handler) = execute::unsigned_float::handler(&reader.inst) {
        return Some(MicroOp { handler, ..op });
    }
    match names::plan(reader.inst.mnemonic())? {
        Plan::Handler(handler) => by_handler(reader, MicroOp { handler, ..op }),
        Plan::TwoAddresses(handler) => memory::two_addresses(reader, MicroOp { handler, ..op }),
        Plan::Access(operation) => memory::access(reader, op, operation),
        Plan::Meaning(Meaning::Scalar(row)) => scalar::row(reader, op, row),
        Plan::Meaning(Meaning::Vector(row)) => vector::row(reader, op, row),
        Plan::Meaning(Meaning::Compare(row)) => vector::compare(reader, op, row),
        Plan::Meaning(Meaning::Packed(row)) => vector::packed(reader, op, row),
        Plan::Meaning(Meaning::Atomic(row)) => memory::atomic(reader, op, row),
    }
}

/// Instructions whose handler does the rest.
fn by_handler(reader: &OperandReader, op: MicroOp) -> Option<MicroOp> {
    match reader.inst.class()? {
        Class::Sop1 | Class::Sop2 | Class::Sopc | Class::Sopk | Class::Sopp => scalar::control(reader, op),
        Class::Smem => scalar::control(reader, op),
        Class::Ds => memory::lanes(reader, op),
        Class::Flat | Class::Mubuf => Some(op),
        _ => vector::special(reader, op),
    }
}

impl OperandReader {
    /// A form without operands.
    fn empty(&self) -> MicroOp {
        MicroOp {
            handler: execute::unknown,
            body: Body::None,
            sources: [Source::None; 3],
            target: Place::None,
            scalar_target: Place::None,
            mask_source: Source::None,
            modifiers: Modifiers::default(),
            immediate: 0,
            extra: None,
            vectors: 0,
            length: self.inst.len(),
            inst: self.inst,
        }
    }

    /// Whether the target has features of gfx12.5.
    fn is_gfx125(&self) -> bool {
        self.isa.has(Feature::Gfx1250Insts)
    }
}
