//! The request for a rewrite, and the record of its result.

use hotswap_report::FamilyCount;
use hotswap_targets::TargetId;
use serde::{Deserialize, Serialize};

/// The requested form of a code object.
#[derive(Debug, Clone)]
pub struct AdaptRequest {
    /// The target to run on.
    pub target: TargetId,
    /// Header and note keep naming the source, for runtimes that report the target by that name.
    pub keep_machine: bool,
}

/// A code object for the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdaptedObject {
    pub bytes: Vec<u8>,
    /// The changes made to it.
    pub record: ObjectRecord,
}

/// The changes made to a code object. Equal for equal input, whatever the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRecord {
    /// Target ID of the input.
    pub source: String,
    /// Target ID that the code is rewritten for.
    pub target: String,
    /// Header and note name the target, not the source.
    pub labelled: bool,
    /// Families that changed something, with the number of places, in the order in which they run.
    pub families: Vec<FamilyCount>,
    /// Bytes of code added, padding included.
    pub grown: i64,
    /// Bytes of code sections, without padding, that no known jump, call or symbol reaches and that hold nothing
    /// that concerns a family. They are counted if control flow was analysed: in files that change, or that have
    /// jumps and calls through registers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unclaimed: u64,
    /// Vector registers that were spilled because none was free.
    #[serde(default, skip_serializing_if = "SpillCount::is_zero")]
    pub spilled: SpillCount,
    /// Functions with sites, and kernels whose registers changed; by section and offset.
    pub functions: Vec<FunctionRecord>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The changes made to a function.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionRecord {
    /// Its symbol, or a name made from its offset.
    pub name: String,
    /// Section that holds it.
    pub section: String,
    /// Offset of its first byte in the section of the input.
    pub offset: u64,
    /// The hardware resources of its kernel; `None` for called functions.
    pub kernel: Option<KernelRecord>,
    /// Names of the known kernels that reach a called function.
    pub reached_from: Vec<String>,
    /// Places that concern a family, by family and outcome.
    pub sites: Vec<SiteCount>,
    /// Bytes of instructions added, padding not counted.
    pub grown: i64,
    /// Additional clock cycles of one pass over every changed place, by a rough model: issue of each instruction,
    /// nothing for waits with nothing outstanding. A loop is counted once.
    pub cycles: u64,
    /// Vector registers that were spilled because none was free.
    #[serde(default, skip_serializing_if = "SpillCount::is_zero")]
    pub spilled: SpillCount,
    /// Assumptions about the hardware that no public source states, each once.
    pub assumes: Vec<String>,
}

/// Places at which registers are stored to scratch memory before new code and loaded after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpillCount {
    pub sites: u64,
    /// Registers, summed over these.
    pub registers: u64,
}

impl SpillCount {
    fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.sites += other.sites;
        self.registers += other.registers;
    }
}

/// Places of one family in a function with the same outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteCount {
    pub family: String,
    /// Why these places are unchanged; `None` if they were changed.
    pub left: Option<String>,
    /// The number of places.
    pub count: u64,
}

/// The resources of a kernel, before and after.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelRecord {
    /// Vector registers of a lane, as the metadata counts them.
    pub vgprs: NumberChange,
    /// Number of scalar registers.
    pub sgprs: NumberChange,
    /// Waves on one SIMD; `None` if the metadata does not say enough.
    pub waves: Option<NumberChange>,
    /// Bytes of the private segment of a work-item, where registers are spilled in what the kernel reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_segment: Option<NumberChange>,
}

/// A number before and after the rewrite.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberChange {
    /// The number in the input.
    pub before: u32,
    /// The number in the output.
    pub after: u32,
}
