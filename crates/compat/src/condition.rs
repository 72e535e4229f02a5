//! Pairs whose code is the same unless it uses certain instructions.
//!
//! Two groups have a member with an instruction or a waiting rule of its own: `gfx1013` has ray
//! tracing (BVH) instructions that `gfx1010` lacks, and `gfx1153` needs no waits around accelerated
//! point sampling where `gfx1150` and `gfx1152` do. Code in the other direction always fits.
//!
//! The code is not decoded. Every aligned word that could begin such an instruction counts, so a
//! constant that looks like one is a refusal too many; a wrong acceptance is not possible.

use hotswap_code_object::CodeObject;
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::Processor;

/// `p_flags`: executable.
const PF_X: u32 = 1;

struct Condition {
    source: &'static str,
    targets: &'static [&'static str],
    forbidden: fn(u32) -> bool,
    mnemonic: &'static str,
    why: &'static str,
}

const CONDITIONS: &[Condition] = &[
    Condition {
        source: "gfx1013",
        targets: &["gfx1010"],
        forbidden: gfx10_opcode_above_127,
        mnemonic: "image_bvh_intersect_ray",
        why: "gfx1010 has no ray tracing instructions",
    },
    Condition {
        source: "gfx1153",
        targets: &["gfx1150", "gfx1152"],
        forbidden: gfx11_sampler,
        mnemonic: "image_sample",
        why: "the target accelerates point sampling and needs waits that gfx1153's code does not have",
    },
];

/// First word of an image instruction (MIMG) on GFX10 and GFX11: bits 26 to 31 are `111100`.
fn is_image(word: u32) -> bool {
    word >> 26 == 0b11_1100
}

/// GFX10 keeps bit 7 of the opcode in bit 0 of the word. On `gfx1013` only the ray tracing
/// instructions and `image_msaa_load` have it set.
fn gfx10_opcode_above_127(word: u32) -> bool {
    is_image(word) && word & 1 == 1
}

/// GFX11 has the opcode in bits 18 to 25; those that use a sampler begin with `image_sample`, 0x1b.
fn gfx11_sampler(word: u32) -> bool {
    is_image(word) && word >> 18 & 0xff >= 0x1b
}

/// Whether this code object meets the condition of its pair; pairs without one always do.
///
/// # Errors
/// [`codes::NO_ROUTE`] at the offset of the first word that can begin such an instruction.
pub(crate) fn check(source: &CodeObject<'_>, target: &Processor) -> Result<(), Diagnostic> {
    let name = source.target_id().processor.name;
    let fits = |c: &&Condition| c.source == name && c.targets.contains(&target.name);
    let Some(condition) = CONDITIONS.iter().find(fits) else { return Ok(()) };
    match first(source, condition.forbidden) {
        None => Ok(()),
        Some(offset) => {
            let what = format!("{name}=>{target}: {}; this code has a word that can begin one", condition.why);
            let mut error = Diagnostic::error(codes::NO_ROUTE, what).at(offset as u64);
            error.place.mnemonic = Some(condition.mnemonic.to_owned());
            Err(error.advise(format!("compile for it with --offload-arch={target}, or derive {name} from {target}")))
        }
    }
}

/// Offset in the file of the first such word in what can be executed.
fn first(source: &CodeObject<'_>, forbidden: fn(u32) -> bool) -> Option<usize> {
    let sections = source.sections().iter().filter(|section| section.is_code()).map(|section| section.range.clone());
    let segments = source.segments().iter().filter(|segment| segment.flags & PF_X != 0);
    let ranges = sections.chain(segments.map(|segment| segment.range.clone()));
    let in_range = |range: std::ops::Range<usize>| {
        let words = source.bytes()[range.clone()].chunks_exact(4);
        let found = words.map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        found.enumerate().find(|(_, word)| forbidden(*word)).map(|(index, _)| range.start + 4 * index)
    };
    ranges.filter_map(in_range).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words as llvm-mc 22 encodes them for gfx1013 and gfx1153.
    #[test]
    fn the_forbidden_instructions_and_only_they_are_recognised() {
        for (word, bvh, sampler) in [
            (0xf198_9f01, true, true),   // gfx1013: image_bvh_intersect_ray
            (0xf19c_9f01, true, true),   // gfx1013: image_bvh64_intersect_ray
            (0xf06c_0f04, false, true),  // gfx1153: image_sample
            (0xf0bc_0104, false, true),  // gfx1153: image_gather4
            (0xf240_0104, false, true),  // gfx1153: image_gather4h
            (0xf000_0f04, false, false), // gfx1153: image_load
            (0xf030_0104, false, false), // gfx1153: image_atomic_add
            (0xbfb0_0000, false, false), // s_endpgm
        ] {
            assert_eq!((gfx10_opcode_above_127(word), gfx11_sampler(word)), (bvh, sampler), "{word:#x}");
        }
    }
}
