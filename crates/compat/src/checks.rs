//! The checks, each in a file of its own, and what they share: the pair, the kernels, the rules about instructions.
//!
//! Three kinds: of the code object as a whole, of each kernel's descriptor and metadata, and of each instruction. The
//! last are rules: which lines of the instruction tables they concern, and why that is no good on the target. All rules
//! of a pair are asked in one walk over the code ([`reading`]).
//!
//! Invariants: a rule that does not apply to the target at all (it has no such hazard) is not asked.

mod code_object_version;
mod d16_loads;
mod exports;
mod features;
pub(crate) mod findings;
mod hazards;
mod image_sampling;
mod lds;
mod matrix_waits;
pub(crate) mod reading;
mod same_instructions;
pub(crate) mod stretches;
mod user_sgprs16;
mod vgpr_fit;
mod wave_size;

use crate::Check;
use hotswap_code_object::{CodeObject, Descriptor, Kernel};
use hotswap_isa::Entry;
use hotswap_targets::{Capability, Processor, TargetId, find};

/// Who the code was made for, and who shall run it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) source: TargetId,
    pub(crate) target: TargetId,
}

impl Pair {
    /// The processors that will run the code: the target, and those that a generic target covers.
    fn runners(&self) -> impl Iterator<Item = &'static Processor> {
        let covered = self.target.processor.covers.iter().filter_map(|name| find(name));
        std::iter::once(self.target.processor).chain(covered)
    }

    fn runner_with(&self, capability: Capability) -> Option<&'static Processor> {
        self.runners().find(|processor| processor.has(capability))
    }

    /// The first of the named processors that will run the code, unless the source is one of them, too.
    fn newly(&self, names: &[&str]) -> Option<&'static Processor> {
        let own = names.contains(&self.source.processor.name);
        self.runners().find(|processor| !own && names.contains(&processor.name))
    }
}

/// A kernel: what the metadata says and what the hardware reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelFacts<'a> {
    pub(crate) metadata: &'a Kernel<'a>,
    pub(crate) descriptor: &'a Descriptor,
    bytes: &'a [u8],
    pub(crate) lanes: u64,
}

impl<'a> KernelFacts<'a> {
    /// The kernels of a code object.
    pub(crate) fn all(object: &'a CodeObject<'_>) -> impl Iterator<Item = Self> {
        let pairs = object.note().kernels.iter().zip(object.descriptors());
        pairs.map(|(metadata, descriptor)| {
            let bytes = object.bytes().get(descriptor.range.clone()).unwrap_or_default();
            let facts = Self { metadata, descriptor, bytes, lanes: 0 };
            Self { lanes: facts.wave(object.target_id().processor), ..facts }
        })
    }

    /// The code properties, bit 10: waves of 32 lanes, where the processor has both sizes.
    fn wave(&self, processor: &Processor) -> u64 {
        match (processor.waves.contains(32), processor.waves.contains(64)) {
            (true, false) => 32,
            (false, _) => 64,
            (true, true) if self.word(56) >> 10 & 1 != 0 => 32,
            (true, true) => 64,
        }
    }

    /// Four bytes of the descriptor; 0 beyond it.
    fn word(&self, at: usize) -> u32 {
        self.bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// COMPUTE_PGM_RSRC1.
    fn resources1(&self) -> u32 {
        self.word(48)
    }

    /// COMPUTE_PGM_RSRC2.
    fn resources2(&self) -> u32 {
        self.word(52)
    }
}

/// A question about the code object as a whole: where in the file the answer stands, and what is wrong.
pub(crate) type ObjectCheck = fn(&Pair, &CodeObject<'_>) -> Option<(u64, String)>;

/// A question about one kernel: what is wrong.
pub(crate) type KernelCheck = fn(&Pair, &KernelFacts<'_>) -> Option<String>;

/// Checks of the code object as a whole.
pub(crate) const OF_OBJECT: &[(Check, ObjectCheck)] =
    &[(Check::CodeObjectVersion, code_object_version::judge), (Check::Features, features::judge)];

/// Checks of each kernel.
pub(crate) const OF_KERNEL: &[(Check, KernelCheck)] = &[
    (Check::WaveSize, wave_size::judge),
    (Check::Lds, lds::judge),
    (Check::VgprFit, vgpr_fit::judge),
    (Check::UserSgprs16, user_sgprs16::judge),
];

/// Instructions that are no good on the target.
pub(crate) struct Rule {
    pub(crate) check: Check,
    /// Which.
    pub(crate) concerns: fn(Entry) -> bool,
    /// Why, as half a sentence.
    pub(crate) why: String,
}

/// The rules that a check means for the pair; none where it does not matter to the target.
pub(crate) fn rules(check: Check, pair: &Pair) -> Vec<Rule> {
    match check {
        Check::D16Loads => d16_loads::rule(pair).into_iter().collect(),
        Check::ImageSampling => image_sampling::rule(pair).into_iter().collect(),
        Check::Exports => exports::rule(pair).into_iter().collect(),
        Check::MatrixWaits => matrix_waits::rule(pair).into_iter().collect(),
        Check::Hazards => hazards::rules(pair),
        _ => Vec::new(),
    }
}
