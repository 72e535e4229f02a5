//! What is asked for, and what was done.

use hotswap_report::FamilyCount;
use hotswap_targets::TargetId;
use serde::{Deserialize, Serialize};

/// What a code object is to become.
#[derive(Debug, Clone)]
pub struct Order {
    /// What it is to run on.
    pub target: TargetId,
    /// Header and note go on naming the source, for runtimes that report the target by that name.
    pub keep_machine: bool,
}

/// A code object for the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapted {
    /// The file.
    pub bytes: Vec<u8>,
    /// What was done to it.
    pub record: ObjectRecord,
}

/// What was done to a code object. The same for the same input, whatever the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRecord {
    /// Target ID of the input.
    pub source: String,
    /// Target ID that the code is made for.
    pub target: String,
    /// Header and note name the target, not the source.
    pub labelled: bool,
    /// Families that changed something, with the number of places, in the order in which they run.
    pub families: Vec<FamilyCount>,
    /// Bytes of code that came to it, padding included.
    pub grown: i64,
    /// Bytes of code sections, padding left out, that no known jump, call or symbol leads to and that hold nothing that
    /// concerns a family. They are counted where code was followed: in files that change, or have jumps and calls through
    /// registers.
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

/// What was done to a function.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionRecord {
    /// Its symbol, or one made of its offset.
    pub name: String,
    /// Section that holds it.
    pub section: String,
    /// Offset of its first byte in the section of the input.
    pub offset: u64,
    /// What its kernel takes of the hardware; `None` for functions that are called.
    pub kernel: Option<KernelRecord>,
    /// Names of the kernels that get to a function that is called, as far as they are known.
    pub reached_from: Vec<String>,
    /// Places that concern a family, by family and outcome.
    pub sites: Vec<SiteCount>,
    /// Bytes of instructions that came to it, padding not counted.
    pub grown: i64,
    /// Clock cycles that one pass over every changed place costs more, by a rough model: issue of each instruction, nothing
    /// for waits that find nothing to wait for, and the latency of a load from scratch where registers are spilled. A loop is
    /// counted once.
    pub cycles: u64,
    /// Vector registers that were spilled because none was free.
    #[serde(default, skip_serializing_if = "SpillCount::is_zero")]
    pub spilled: SpillCount,
    /// What is taken for granted about the hardware that no public source states, each once.
    pub assumes: Vec<String>,
}

/// Places at which registers are stored to scratch memory before new code and loaded after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpillCount {
    /// How many places.
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
    /// Its name.
    pub family: String,
    /// Why these places stay as they are; `None` where they were changed.
    pub left: Option<String>,
    /// How many.
    pub count: u64,
}

/// What a kernel takes, before and after.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelRecord {
    /// Vector registers of a lane, as the metadata counts them.
    pub vgprs: Change,
    /// Scalar registers.
    pub sgprs: Change,
    /// Waves on one SIMD; `None` where the metadata does not say enough.
    pub waves: Option<Change>,
    /// Bytes of the private segment of a work-item, where registers are spilled in what the kernel reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_segment: Option<Change>,
}

/// A number before and after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// In the input.
    pub before: u32,
    /// In the output.
    pub after: u32,
}
