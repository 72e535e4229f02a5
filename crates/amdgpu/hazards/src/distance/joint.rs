//! The register that an earlier and a later instruction have in common.

use hotswap_isa::bank::VgprBanks;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::{Feature, Flag, Inst, Isa, Name, OperandValue};

/// The register with which a hazard exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JointRegister {
    /// None: the classes alone decide.
    Nothing,
    /// A scalar register that the first writes and an operand of the second reads.
    Scalar,
    /// The scalar register that selects the lane of the second.
    LaneSelect,
    /// VCC, which the first writes. The class of the second says that it reads it; so does that of EXEC.
    Vcc,
    Exec,
    /// A vector register that the first writes and an operand of the second reads.
    Vector,
    /// A vector register that the first writes and the second reads or writes.
    VectorInUse,
    /// The data of the first, which the second overwrites.
    StoredData,
    /// A vector register that both write.
    Overwritten,
    /// C of the second is a part of the result of the first, or the other way.
    AddendPart,
    /// C of the second is the result of the first.
    AddendWhole,
    /// C of the second overlaps the result of the first.
    Addend,
    /// Another operand of the second overlaps the result of the first.
    Input,
    /// A, B or, of sparse ones of GFX12, the index of the second overlaps the result of the first.
    WmmaInput,
    /// The second overwrites C of the first.
    AddendOverwritten,
    /// The hardware register of `s_setreg` and `s_getreg`.
    Hardware,
    /// The result of a dot product that another instruction reads, or the same instruction in another form.
    OtherRead,
    /// The result of a dot product that the same instruction reads as A or B.
    SameInput,
    /// The result of a dot product that another instruction overwrites.
    OtherWritten,
}

impl JointRegister {
    /// Whether the two have such a register in common.
    #[must_use]
    pub fn joins_pair(self, isa: Isa, producer: &Inst, consumer: &Inst) -> bool {
        match self {
            Self::Nothing => true,
            Self::Scalar => scalars_meet(producer, consumer, isa),
            Self::LaneSelect => match consumer.operand(isa, Name::Src1) {
                Some(OperandValue::Reg(reg)) if !is_vector(reg) => writes_register(producer, isa, reg),
                _ => false,
            },
            Self::Vcc => writes_register(producer, isa, Reg::special(Special::VccLo, 2)),
            Self::Exec => writes_register(producer, isa, Reg::special(Special::ExecLo, 2)),
            Self::Vector => vectors_overlap(producer, consumer, isa, |written| !written),
            Self::VectorInUse => vectors_overlap(producer, consumer, isa, |_| true),
            Self::StoredData => overwrites_data(producer, consumer, isa),
            Self::Overwritten => vectors_overlap(producer, consumer, isa, |written| written),
            Self::AddendPart => {
                addends_meet(producer, consumer, isa, |one, other| one != other && registers_overlap(one, other))
            }
            Self::AddendWhole => addends_meet(producer, consumer, isa, |one, other| one == other),
            Self::Addend => addends_meet(producer, consumer, isa, registers_overlap),
            Self::Input => reads_as_input(producer, consumer, isa),
            Self::WmmaInput => reads_as_wmma_input(producer, consumer, isa),
            Self::AddendOverwritten => overwrites_addend(producer, consumer, isa),
            Self::Hardware => hardware_number(producer) == hardware_number(consumer),
            Self::OtherRead => {
                !have_same_form(producer, consumer) && vectors_overlap(producer, consumer, isa, |written| !written)
            }
            Self::SameInput => have_same_form(producer, consumer) && reads_as_input(producer, consumer, isa),
            Self::OtherWritten => {
                !have_same_form(producer, consumer) && vectors_overlap(producer, consumer, isa, |written| written)
            }
        }
    }
}

const fn is_vector(reg: Reg) -> bool {
    matches!(reg.file, RegFile::Vgpr | RegFile::Agpr)
}

fn writes_register(inst: &Inst, isa: Isa, reg: Reg) -> bool {
    inst.written_set(isa, VgprBanks::ENTRY).touches(reg)
}

fn scalars_meet(producer: &Inst, consumer: &Inst, isa: Isa) -> bool {
    let mut named = consumer.reads(isa).filter(|effect| effect.slot.is_some() && !is_vector(effect.reg)).peekable();
    let written = named.peek().map(|_| producer.written_set(isa, VgprBanks::ENTRY));
    written.is_some_and(|written| named.any(|effect| written.touches(effect.reg)))
}

fn registers_overlap(one: Reg, other: Reg) -> bool {
    let ends = (one.index + u16::from(one.count), other.index + u16::from(other.count));
    one.file == other.file && one.index < ends.1 && other.index < ends.0
}

/// Whether the first writes a vector register that the second accesses in a way that counts.
fn vectors_overlap(producer: &Inst, consumer: &Inst, isa: Isa, counts: impl Fn(bool) -> bool) -> bool {
    let written = producer.writes(isa).map(|effect| effect.reg).filter(|reg| is_vector(*reg));
    let mut pairs = written.flat_map(|one| consumer.effects(isa).map(move |effect| (one, effect)));
    pairs.any(|(one, effect)| counts(effect.written) && registers_overlap(one, effect.reg))
}

/// Result and C of matrix instructions.
fn result_register(inst: &Inst, isa: Isa) -> Option<Reg> {
    vector_operand(inst, isa, Name::Vdst)
}

/// C, which is the result where the instruction adds to it.
fn addend_register(inst: &Inst, isa: Isa) -> Option<Reg> {
    vector_operand(inst, isa, Name::Src2)
}

fn vector_operand(inst: &Inst, isa: Isa, name: Name) -> Option<Reg> {
    match inst.operand(isa, name) {
        Some(OperandValue::Reg(reg)) if is_vector(reg) => Some(reg),
        _ => None,
    }
}

fn addends_meet(producer: &Inst, consumer: &Inst, isa: Isa, meet: impl Fn(Reg, Reg) -> bool) -> bool {
    let pair = result_register(producer, isa).zip(addend_register(consumer, isa));
    pair.is_some_and(|(result, addend)| meet(result, addend))
}

fn reads_as_input(producer: &Inst, consumer: &Inst, isa: Isa) -> bool {
    let Some(result) = result_register(producer, isa) else { return false };
    let inputs = consumer
        .reads(isa)
        .filter(|effect| effect.slot.is_some_and(|slot| slot_name(consumer, slot) != Some(Name::Src2)));
    inputs.map(|effect| effect.reg).any(|input| registers_overlap(result, input))
}

fn slot_name(inst: &Inst, slot: u8) -> Option<Name> {
    Some(inst.entry().slots().get(usize::from(slot))?.name)
}

fn reads_as_wmma_input(producer: &Inst, consumer: &Inst, isa: Isa) -> bool {
    let Some(result) = result_register(producer, isa) else { return false };
    let has_index = consumer.is(Flag::Swmmac) && isa.has(Feature::Gfx12Insts);
    let names: &[Name] = if has_index { &[Name::Src0, Name::Src1, Name::Src2] } else { &[Name::Src0, Name::Src1] };
    let mut inputs = names.iter().filter_map(|name| vector_operand(consumer, isa, *name));
    inputs.any(|input| registers_overlap(result, input))
}

fn overwrites_addend(producer: &Inst, consumer: &Inst, isa: Isa) -> bool {
    let Some(addend) = addend_register(producer, isa) else { return false };
    consumer.writes(isa).any(|effect| registers_overlap(addend, effect.reg))
}

fn overwrites_data(producer: &Inst, consumer: &Inst, isa: Isa) -> bool {
    let Some(OperandValue::Reg(data)) = producer.operand(isa, Name::Vdata) else { return false };
    consumer.writes(isa).any(|effect| registers_overlap(data, effect.reg))
}

/// Whether LLVM has one opcode for both: an encoding in VOP2, in VOP3 or with DPP is one of its own.
fn have_same_form(one: &Inst, other: &Inst) -> bool {
    one.mnemonic() == other.mnemonic() && form_flags(one) == form_flags(other)
}

fn form_flags(inst: &Inst) -> [bool; 3] {
    [Flag::Vop3, Flag::Dpp, Flag::Sdwa].map(|flag| inst.is(flag))
}

/// The number in the immediate of `s_setreg` and `s_getreg`.
fn hardware_number(inst: &Inst) -> Option<u64> {
    inst.raw(Name::Simm16).map(|field| field & 63)
}
