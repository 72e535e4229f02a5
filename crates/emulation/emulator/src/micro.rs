//! An instruction in the form in which it is executed.

use crate::buffer_resource::ResourceLayout;
use crate::device::EmulatedDevice;
use crate::fault::FaultKind;
use crate::group::GroupBarrier;
use crate::memory::{DeviceMemory, MemoryFault};
use crate::memory_operation::MemoryOperation;
use crate::store_watch::StoredPlace;
use crate::wave::WaveState;
use hotswap_isa::Inst;
use hotswap_isa::reg::Reg;
use hotswap_semantics::{
    AtomicRow, CompareRow, Float8, LaneFunction, LaneType, Lanes, MatrixRow, PackedRow, ScalarRow, VectorRow, WideLanes,
};

pub(crate) type InstHandler = fn(&mut ExecContext<'_>, &MicroOp) -> StepResult;
pub(crate) type StepResult = Result<StepFlow, Box<StepFault>>;

/// The continuation after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepFlow {
    Next,
    /// The program counter was set.
    Jump,
    /// The next one, after others had their turn.
    Yield,
    /// The same one again, after others had their turn.
    Again,
    /// The wave waits, or has ended.
    Stop,
}

/// A fault without its place.
#[derive(Debug)]
pub(crate) struct StepFault {
    pub(crate) kind: FaultKind,
    pub(crate) lane: Option<u32>,
}

/// Everything that an instruction may change.
pub(crate) struct ExecContext<'a> {
    pub(crate) wave: &'a mut WaveState,
    pub(crate) lds: &'a mut [u8],
    pub(crate) barrier: &'a mut GroupBarrier,
    pub(crate) memory: &'a dyn DeviceMemory,
    pub(crate) device: &'a EmulatedDevice,
    /// Room for sources that are the same in all lanes, and for a result. It holds what an instruction before has left.
    pub(crate) space: &'a mut [Lanes; 4],
    /// The same for 64 bits.
    pub(crate) wide_space: &'a mut [WideLanes; 4],
}

/// Room of a thread for lanes.
#[derive(Debug, Default)]
pub(crate) struct LaneSpaces {
    pub(crate) narrow: [Lanes; 4],
    pub(crate) wide: [WideLanes; 4],
}

impl ExecContext<'_> {
    /// A lane stores bytes.
    #[inline]
    pub(crate) fn note_store(&mut self, place: StoredPlace, bytes: &[u8], lane: usize) {
        if let (Some(watch), Some(count)) = (&mut self.wave.store_watch, &self.device.meeting_stores) {
            watch.record_store(self.wave.executed, (place, lane), bytes, count);
        }
    }
}

impl StepFault {
    pub(crate) fn new(kind: FaultKind) -> Box<Self> {
        Box::new(Self { kind, lane: None })
    }

    pub(crate) fn from_memory_fault(fault: MemoryFault, lane: Option<usize>) -> Box<Self> {
        Box::new(Self { kind: FaultKind::Memory(fault), lane: lane.map(|lane| lane as u32) })
    }

    /// A form of an instruction that is not known.
    pub(crate) fn unknown(op: &MicroOp, reason: &'static str) -> Box<Self> {
        let bytes = op.inst.bytes()[..usize::from(op.inst.len())].to_vec();
        Self::new(FaultKind::UnknownInstruction { mnemonic: op.inst.mnemonic(), bytes, reason })
    }
}

/// An instruction in the form in which it is executed.
#[derive(Debug, Clone)]
pub(crate) struct MicroOp {
    pub(crate) handler: InstHandler,
    pub(crate) body: MicroOpBody,
    pub(crate) sources: [SourceOperand; 3],
    pub(crate) target: DestOperand,
    /// The second result: a mask or a carry.
    pub(crate) scalar_target: DestOperand,
    /// A bit of each lane that is read.
    pub(crate) mask_source: SourceOperand,
    pub(crate) modifiers: Modifiers,
    pub(crate) immediate: i64,
    pub(crate) extra: Option<Box<Extra>>,
    /// The vector register that is written is not one of the sources.
    pub(crate) is_apart: bool,
    pub(crate) length: u8,
    pub(crate) inst: Inst,
}

/// The part that depends on the kind of instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MicroOpBody {
    None,
    Vector {
        row: &'static VectorRow,
        function: LaneFunction,
    },
    Compare(CompareRow),
    Packed {
        row: &'static PackedRow,
        function: LaneFunction,
    },
    Scalar {
        row: &'static ScalarRow,
        writes_condition: bool,
    },
    Memory(MemoryOperation),
    /// The format of 8-bit floats.
    Float8(Float8),
    /// A register that the wave does not have.
    MissingRegister(Reg),
    /// The rule of the stepping that the instruction breaks.
    Trapped(&'static str),
    Atomic {
        row: &'static AtomicRow,
        returns: bool,
    },
}

/// Parts that few instructions have.
#[derive(Debug, Clone)]
pub(crate) enum Extra {
    Dpp(DppControl),
    Sdwa(SdwaControl),
    /// Both halves of a dual instruction.
    Dual(Box<[MicroOp; 2]>),
    Buffer(BufferAddress),
    /// The resource of a scalar load.
    Resource(ResourceLayout),
    Matrix(MatrixPlan),
}

/// A product of matrices with everything but its registers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MatrixPlan {
    pub(crate) row: MatrixRow,
    /// Products in one instruction.
    pub(crate) blocks: u32,
    pub(crate) layout: MatrixLayout,
    /// 8-bit floats without infinity.
    pub(crate) is_fnuz: bool,
    /// Denormal sources are 0 (16-bit floats on gfx90a).
    pub(crate) flushes: bool,
    /// The part of A that is read for all of it: how small, and which.
    pub(crate) broadcast: (u8, u8),
    /// A permutation of the lanes of B.
    pub(crate) permutation: u8,
    /// Of a sparse A the positions of its elements.
    pub(crate) index: Option<SparseIndex>,
    /// The scales of the rows of A, and of the columns of B.
    pub(crate) scales: [Option<MatrixScale>; 2],
}

/// Where the scales of rows or columns are: powers of two in a byte (E8M0), for 16 or 32 elements each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MatrixScale {
    pub(crate) register: u16,
    /// The lane of the first row or column; others follow, and further scales of all of them after these.
    pub(crate) first_lane: u8,
    /// The bytes of a lane that count.
    pub(crate) first_byte: u8,
    pub(crate) bytes: u8,
}

/// The positions of the elements of a sparse matrix: two bits each, in the lane that holds the elements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SparseIndex {
    pub(crate) register: u16,
    /// The lowest bit that is used.
    pub(crate) shift: u8,
}

/// How matrices are in registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatrixLayout {
    /// CDNA: a row in a lane, parts of it in further groups of lanes, blocks between them.
    Blocks,
    /// gfx11: a row in a lane, the same in all groups of 16 lanes.
    Replicated,
    /// gfx12: a row in a lane, parts of it in further groups of 16 lanes.
    Halves,
}

/// A value that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceOperand {
    None,
    /// A vector register; `high` selects the upper half for 16 bits.
    Vector {
        register: u16,
        high: bool,
    },
    /// Scalar registers from a slot.
    Scalar(u8),
    Constant(u64),
    Vccz,
    Execz,
    Scc,
}

/// A register that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DestOperand {
    None,
    /// A vector register; `high` is the upper half for 16 bits.
    Vector {
        register: u16,
        high: bool,
    },
    Scalar(u8),
}

/// Modifiers; bits are by source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Modifiers {
    /// Negated. Of packed operations the lower number.
    pub(crate) negative: u8,
    /// Without sign. Of packed operations: the upper number negated.
    pub(crate) absolute: u8,
    /// The upper half (for the lower result).
    pub(crate) select: u8,
    /// The upper half for the upper result.
    pub(crate) select_high: u8,
    /// 1: times 2, 2: times 4, 3: half.
    pub(crate) output: u8,
    pub(crate) clamp: bool,
    /// A 16-bit result sets the upper half to 0 (most instructions of gfx9).
    pub(crate) zero_upper: bool,
}

/// Data-parallel primitives: the first source is from other lanes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DppControl {
    pub(crate) pattern: DppPattern,
    pub(crate) row_mask: u8,
    pub(crate) bank_mask: u8,
    /// Lanes without a source read 0 instead of being left out.
    pub(crate) bound_control: bool,
    /// Inactive lanes are read.
    pub(crate) fetch_inactive: bool,
}

/// Which lane is read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DppPattern {
    /// The number of the lane in a group of 8, 3 bits each.
    Eight(u32),
    /// `dpp_ctrl`.
    Sixteen(u16),
}

/// Parts of registers as sources and result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SdwaControl {
    /// Of the sources and of the result: 0 to 3 a byte, 4 and 5 a half, 6 the dword.
    pub(crate) source_select: [u8; 2],
    /// A source has its sign extended.
    pub(crate) sign_extend: [bool; 2],
    pub(crate) target_select: u8,
    /// 0: 0, 1: the sign, 2: kept.
    pub(crate) unused: u8,
}

/// Address of a buffer access.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BufferAddress {
    pub(crate) descriptor: u8,
    pub(crate) offset: SourceOperand,
    pub(crate) has_index: bool,
    pub(crate) has_offset: bool,
    pub(crate) layout: ResourceLayout,
}

impl MicroOp {
    /// Whether values of another size than 32 bits, or modifiers, are involved.
    pub(crate) fn is_plain(&self, sources: [LaneType; 3], result: LaneType) -> bool {
        let words = sources.iter().chain([&result]).all(|kind| kind.bits() == 32);
        words && self.is_bare()
    }

    /// Whether the vector register that is written is not one of the sources.
    pub(crate) fn writes_apart(&self) -> bool {
        let DestOperand::Vector { register: target, .. } = self.target else { return false };
        !self
            .sources
            .iter()
            .any(|source| matches!(source, SourceOperand::Vector { register, .. } if *register == target))
    }

    /// Whether no modifiers and no halves are involved.
    pub(crate) fn is_bare(&self) -> bool {
        self.modifiers == Modifiers::default() && self.is_signed_only()
    }

    /// Whether parts of registers are sources and result (SDWA), without other modifiers.
    pub(crate) fn has_only_parts(&self) -> bool {
        matches!(self.extra.as_deref(), Some(Extra::Sdwa(_))) && Self { extra: None, ..self.clone() }.is_bare()
    }

    /// Whether no modifiers but signs of sources, and no halves are involved.
    pub(crate) fn is_signed_only(&self) -> bool {
        let Modifiers { negative, absolute, .. } = self.modifiers;
        let halves = matches!(self.target, DestOperand::Vector { high: true, .. })
            || self.sources.iter().any(|source| matches!(source, SourceOperand::Vector { high: true, .. }));
        !halves && self.modifiers == Modifiers { negative, absolute, ..Modifiers::default() } && self.extra.is_none()
    }
}
