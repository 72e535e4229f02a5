//! The checks, each in a file of its own, and their common parts: the pair, the kernels, the rules about instructions.
//!
//! Three kinds: of the code object as a whole, of each kernel's descriptor and metadata, and of each instruction. The
//! last are rules: the table entries that they concern, and why these are invalid on the target. All rules of a pair
//! are evaluated in one walk over the code ([`reading`]).
//!
//! Invariants: a rule that does not apply to the target at all (it lacks such a hazard) is not evaluated.

mod code_object_version;
mod d16_loads;
mod exports;
mod features;
pub(crate) mod findings;
mod hazards;
mod image_sampling;
mod lds;
mod matrix_waits;
mod packed_floats;
pub(crate) mod reading;
mod same_instructions;
mod small_floats;
pub(crate) mod stretches;
pub(crate) mod user_sgprs16;
mod vgpr_fit;
mod wave_size;

use crate::Check;
use hotswap_code_object::{CodeObject, DescriptorLocation, KernelMetadata};
use hotswap_isa::{Inst, TableEntry};
use hotswap_targets::{Processor, TargetId, find_processor};

/// The processor that the code was compiled for, and the one that is to run it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessorPair {
    pub(crate) source: TargetId,
    pub(crate) target: TargetId,
}

impl ProcessorPair {
    /// The processors that will run the code: the target, and those that a generic target covers.
    fn running_processors(&self) -> impl Iterator<Item = &'static Processor> {
        let covered = self.target.processor.covers.iter().filter_map(|name| find_processor(name));
        std::iter::once(self.target.processor).chain(covered)
    }

    /// The first of the named processors that will run the code, unless the source is one of them, too.
    fn first_new_runner(&self, names: &[&str]) -> Option<&'static Processor> {
        let own = names.contains(&self.source.processor.name);
        self.running_processors().find(|processor| !own && names.contains(&processor.name))
    }
}

/// A kernel: its metadata and its descriptor, which the hardware reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelFacts<'a> {
    pub(crate) metadata: &'a KernelMetadata<'a>,
    pub(crate) descriptor: &'a DescriptorLocation,
    bytes: &'a [u8],
    pub(crate) lanes: u64,
}

impl<'a> KernelFacts<'a> {
    /// The kernels of a code object.
    pub(crate) fn kernels_of_object(object: &'a CodeObject<'_>) -> impl Iterator<Item = Self> {
        let pairs = object.note().kernels.iter().zip(object.descriptors());
        pairs.map(|(metadata, descriptor)| {
            let bytes = object.bytes().get(descriptor.range.clone()).unwrap_or_default();
            let facts = Self { metadata, descriptor, bytes, lanes: 0 };
            Self { lanes: facts.wave_size(object.target_id().processor), ..facts }
        })
    }

    /// The code properties, bit 10: waves of 32 lanes, where the processor has both sizes.
    fn wave_size(&self, processor: &Processor) -> u64 {
        match (processor.waves.contains(32), processor.waves.contains(64)) {
            (true, false) => 32,
            (false, _) => 64,
            (true, true) if self.descriptor_word(56) >> 10 & 1 != 0 => 32,
            (true, true) => 64,
        }
    }

    /// Four bytes of the descriptor; 0 beyond it.
    fn descriptor_word(&self, at: usize) -> u32 {
        self.bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// The word COMPUTE_PGM_RSRC1 of the descriptor.
    fn resources1(&self) -> u32 {
        self.descriptor_word(48)
    }
}

/// The finding of a check of the code object as a whole.
pub(crate) struct ObjectFinding {
    /// Offset in the file.
    pub(crate) offset: u64,
    pub(crate) why: String,
}

/// A check of the code object as a whole.
pub(crate) type ObjectCheck = fn(&ProcessorPair, &CodeObject<'_>) -> Option<ObjectFinding>;

/// A check of one kernel: the reason of the finding.
pub(crate) type KernelCheck = fn(&ProcessorPair, &KernelFacts<'_>) -> Option<String>;

/// Checks of the code object as a whole.
pub(crate) const OF_OBJECT: &[(Check, ObjectCheck)] =
    &[(Check::CodeObjectVersion, code_object_version::judge_version), (Check::Features, features::judge_features)];

/// Checks of each kernel.
pub(crate) const OF_KERNEL: &[(Check, KernelCheck)] = &[
    (Check::WaveSize, wave_size::judge_wave_size),
    (Check::Lds, lds::judge_lds),
    (Check::VgprFit, vgpr_fit::judge_vgprs),
];

/// The finding of a check of all kernels and their program.
pub(crate) struct ProgramFinding<'o> {
    pub(crate) kernel: &'o str,
    /// Offset of the kernel's descriptor in the file.
    pub(crate) offset: u64,
    pub(crate) why: String,
}

/// A check of all kernels and their program.
pub(crate) type ProgramCheck = for<'o> fn(&ProcessorPair, &'o CodeObject<'_>) -> Vec<ProgramFinding<'o>>;

/// Checks of the program's use of its registers.
pub(crate) const OF_PROGRAM: &[(Check, ProgramCheck)] = &[(Check::UserSgprs16, user_sgprs16::judge_user_sgprs)];

/// Instructions that are invalid on the target.
pub(crate) struct InvalidInstructions {
    pub(crate) check: Check,
    /// The entries that it concerns.
    pub(crate) concerns: fn(TableEntry) -> bool,
    /// Which of their forms are invalid.
    pub(crate) is_invalid: fn(&Inst) -> bool,
    /// The reason, as half a sentence.
    pub(crate) why: String,
}

/// An instruction that is invalid whatever its operands are.
fn every_form(_: &Inst) -> bool {
    true
}

/// The rules of a check for the pair; none where it does not matter to the target.
pub(crate) fn rules_of_check(check: Check, pair: &ProcessorPair) -> Vec<InvalidInstructions> {
    match check {
        Check::SameInstructions => {
            small_floats::small_float_rule(pair).into_iter().chain(packed_floats::packed_float_rule(pair)).collect()
        }
        Check::D16Loads => d16_loads::d16_load_rule(pair).into_iter().collect(),
        Check::ImageSampling => image_sampling::image_sampling_rule(pair).into_iter().collect(),
        Check::Exports => exports::export_rule(pair).into_iter().collect(),
        Check::MatrixWaits => matrix_waits::matrix_wait_rule(pair).into_iter().collect(),
        Check::Hazards => hazards::hazard_rules(pair),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_isa::{Isa, Target, Wave};
    use std::collections::BTreeSet;

    /// Names of the source's instructions that the rules of a check concern.
    fn concerned(check: Check, source: &str, target: &str) -> BTreeSet<&'static str> {
        let pair = ProcessorPair { source: source.parse().unwrap(), target: target.parse().unwrap() };
        let rules = rules_of_check(check, &pair);
        let isas = [Wave::W32, Wave::W64].map(|wave| Isa::new(Target::find(source).unwrap()).with_wave(wave));
        let here = |entry: &TableEntry| isas.iter().any(|isa| entry.available(*isa));
        let names =
            TableEntry::all_entries().filter(here).filter(|entry| rules.iter().any(|rule| (rule.concerns)(*entry)));
        names.map(TableEntry::mnemonic).collect()
    }

    #[test]
    fn rules_concern_all_instructions_that_they_mean_and_no_others() {
        use Check::{D16Loads, Exports, Hazards, ImageSampling, MatrixWaits};
        let halves = concerned(D16Loads, "gfx900", "gfx906");
        assert!(halves.iter().all(|name| name.contains("_load_") || name.contains("_read_")), "{halves:?}");
        for name in ["ds_read_u8_d16", "flat_load_sbyte_d16_hi", "scratch_load_short_d16", "tbuffer_load_format_d16_x"]
        {
            assert!(halves.contains(name), "{name}");
        }
        let samples = concerned(ImageSampling, "gfx1102", "gfx1150");
        let sampled = |name: &&&str| name.starts_with("image_sample") || name.starts_with("image_gather4");
        assert_eq!(samples.iter().filter(|name| !sampled(name)).collect::<Vec<_>>(), [&"image_get_lod"]);
        assert_eq!(concerned(Exports, "gfx1102", "gfx1150"), BTreeSet::from(["exp"]));
        let matrices = concerned(MatrixWaits, "gfx942", "gfx950");
        assert!(matrices.contains("v_smfmac_f32_16x16x32_f16") && !matrices.contains("v_accvgpr_read_b32"));
        let hazards = concerned(Hazards, "gfx950", "gfx942");
        assert_eq!(hazards, BTreeSet::from(["v_cvt_f32_bf8", "v_cvt_f32_fp8", "v_cvt_pk_f32_bf8", "v_cvt_pk_f32_fp8"]));
        let sizes = [halves.len(), samples.len(), concerned(Hazards, "gfx1150", "gfx1100").len()];
        assert_eq!(sizes, [39, 57, 22]);
    }

    #[test]
    fn rules_are_silent_where_the_source_has_the_same_trouble() {
        for (check, source, target) in [
            (Check::D16Loads, "gfx906", "gfx908"),
            (Check::ImageSampling, "gfx1150", "gfx1151"),
            (Check::ImageSampling, "gfx908", "gfx900"),
            (Check::ImageSampling, "gfx1150", "gfx11-generic"),
            (Check::Exports, "gfx1151", "gfx1150"),
            (Check::MatrixWaits, "gfx950", "gfx9-4-generic"),
            (Check::Hazards, "gfx1102", "gfx1103"),
        ] {
            assert!(concerned(check, source, target).is_empty(), "{check}: {source}=>{target}");
        }
    }
}
