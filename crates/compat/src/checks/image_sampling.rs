//! Image instructions with a sampler. `gfx1150` to `gfx1152` answer some of them out of order (accelerated point
//! sampling), and compilers for other processors wait too little; on GFX9 the 16-bit form of
//! `image_gather4` is broken, on all of those that have images: no pair of today is concerned.

use super::{Pair, Rule};
use crate::Check;
use hotswap_isa::{Entry, Flag, Name};

const ACCELERATED: &[&str] = &["gfx1150", "gfx1151", "gfx1152"];
const BROKEN_GATHER: &[&str] = &["gfx900", "gfx902", "gfx904", "gfx906", "gfx908", "gfx909", "gfx90c", "gfx9-generic"];

pub(super) fn rule(pair: &Pair) -> Option<Rule> {
    let accelerated = pair.newly(ACCELERATED).map(|target| Rule {
        check: Check::ImageSampling,
        concerns: has_sampler,
        why: format!("{target} accelerates point sampling and needs waits that this code does not have"),
    });
    accelerated.or_else(|| {
        let target = pair.newly(BROKEN_GATHER)?;
        let concerns = |entry: Entry| entry.is(Flag::Gather4);
        let why = format!("on {target} gathering 16-bit values is broken, around which this code does not work");
        Some(Rule { check: Check::ImageSampling, concerns, why })
    })
}

fn has_sampler(entry: Entry) -> bool {
    // One name up to GFX11, the other from GFX12 on.
    entry.slot(Name::Ssamp).or_else(|| entry.slot(Name::Samp)).is_some()
}
