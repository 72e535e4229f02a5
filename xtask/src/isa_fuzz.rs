//! `cargo xtask isa fuzz`: both fuzz targets of hotswap-isa for some minutes, from LLVM's vectors as seeds.

use crate::fuzz::{Campaign, INSTRUCTIONS};
use crate::isa_source::llvm_source;
use crate::outcome::Outcome;
use crate::paths;

/// Runs the fuzz targets of hotswap-isa.
#[derive(clap::Args)]
pub(crate) struct Words {
    /// How long each runs.
    #[arg(long, default_value_t = 10)]
    minutes: u32,
    /// Only this one: decode or round_trip.
    target: Option<String>,
}

pub(crate) fn main(words: &Words) -> Outcome {
    let tests = llvm_source()?.join("llvm/test/MC/Disassembler/AMDGPU");
    let campaign = Campaign {
        directory: "crates/amdgpu/isa/fuzz",
        work: paths::scratch("isa-fuzz"),
        targets: INSTRUCTIONS,
        // The setting, two of the longest instructions, and a value for fields.
        length: 50,
        own_seeds: false,
        sanitizer: "none",
    };
    campaign.seeds(&[&tests])?;
    campaign.run(words.target.as_deref(), words.minutes)
}
