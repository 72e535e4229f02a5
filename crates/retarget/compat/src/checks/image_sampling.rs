//! Image instructions with a sampler. `gfx1150` to `gfx1152` complete some of them out of order (accelerated point
//! sampling), and compilers for other processors insert too few waits.
//!
//! Absent on purpose: the 16-bit form of `image_gather4`, broken on GFX9. All of GFX9 that has images shares it.

use super::{InvalidInstructions, ProcessorPair, every_form};
use crate::Check;
use hotswap_isa::{Name, TableEntry};

const ACCELERATED: &[&str] = &["gfx1150", "gfx1151", "gfx1152"];

pub(super) fn image_sampling_rule(pair: &ProcessorPair) -> Option<InvalidInstructions> {
    pair.first_new_runner(ACCELERATED).map(|target| InvalidInstructions {
        check: Check::ImageSampling,
        concerns: has_sampler,
        is_invalid: every_form,
        why: format!("{target} accelerates point sampling and needs waits that this code does not have"),
    })
}

fn has_sampler(entry: TableEntry) -> bool {
    // One name up to GFX11, the other from GFX12 on.
    entry.slot(Name::Ssamp).or_else(|| entry.slot(Name::Samp)).is_some()
}
