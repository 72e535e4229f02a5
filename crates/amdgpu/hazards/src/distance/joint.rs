//! The register that an earlier and a later instruction have in common.

use hotswap_isa::bank::VgprBanks;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Inst, Isa, Name, OperandValue};

/// The register with which a hazard exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JointRegister {
    /// A scalar register that the first writes and the second reads, implicitly or not.
    Scalar,
    /// The same where an operand of the second names it, or VCC.
    NamedScalar,
    /// The scalar register that selects the lane of the second.
    LaneSelect,
    /// VCC, which the first writes. The class of the second says that it reads it; so do those of EXEC and M0.
    Vcc,
    Exec,
    M0,
    /// A vector register that the first writes and an operand of the second reads.
    Vector,
    /// A vector register that the first writes and the second reads or writes.
    VectorInUse,
    /// The data of the first, which the second overwrites.
    StoredData,
    /// The hardware register of `s_setreg` and `s_getreg`.
    Hardware,
}

impl JointRegister {
    /// Whether the two have such a register in common.
    #[must_use]
    pub fn joins_pair(self, isa: Isa, producer: &Inst, consumer: &Inst) -> bool {
        match self {
            Self::Scalar => scalars_of_set(&producer.written_set(isa, VgprBanks::ENTRY))
                .intersects(&consumer.read_set(isa, VgprBanks::ENTRY)),
            Self::NamedScalar => scalars_of_set(&producer.written_set(isa, VgprBanks::ENTRY))
                .intersects(&named_scalars(consumer, isa)),
            Self::LaneSelect => match consumer.operand(isa, Name::Src1) {
                Some(OperandValue::Reg(reg)) if !is_vector(reg) => writes_register(producer, isa, reg),
                _ => false,
            },
            Self::Vcc => writes_register(producer, isa, Reg::special(Special::VccLo, 2)),
            Self::Exec => writes_register(producer, isa, Reg::special(Special::ExecLo, 2)),
            Self::M0 => writes_register(producer, isa, Reg::special(Special::M0, 1)),
            Self::Vector => vectors_overlap(producer, consumer, isa, |written| !written),
            Self::VectorInUse => vectors_overlap(producer, consumer, isa, |_| true),
            Self::StoredData => overwrites_data(producer, consumer, isa),
            Self::Hardware => hardware_number(producer) == hardware_number(consumer),
        }
    }
}

const fn is_vector(reg: Reg) -> bool {
    matches!(reg.file, RegFile::Vgpr | RegFile::Agpr)
}

fn writes_register(inst: &Inst, isa: Isa, reg: Reg) -> bool {
    inst.written_set(isa, VgprBanks::ENTRY).touches(reg)
}

/// A set without its vector registers.
fn scalars_of_set(set: &RegSet) -> RegSet {
    let mut words = *set.words();
    words[..RegSet::SGPR_WORD].fill(0);
    RegSet::from_words(words)
}

fn named_scalars(inst: &Inst, isa: Isa) -> RegSet {
    let vcc = Reg::special(Special::VccLo, 2);
    let named = inst.reads(isa).filter(|effect| effect.slot.is_some()).map(|effect| effect.reg);
    let mut set: RegSet = named.filter(|reg| !is_vector(*reg)).collect();
    if inst.read_set(isa, VgprBanks::ENTRY).touches(vcc) {
        set.insert(vcc);
    }
    set
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

fn overwrites_data(producer: &Inst, consumer: &Inst, isa: Isa) -> bool {
    let Some(OperandValue::Reg(data)) = producer.operand(isa, Name::Vdata) else { return false };
    consumer.writes(isa).any(|effect| registers_overlap(data, effect.reg))
}

/// The number in the immediate of `s_setreg` and `s_getreg`.
fn hardware_number(inst: &Inst) -> Option<u64> {
    inst.raw(Name::Simm16).map(|field| field & 63)
}
