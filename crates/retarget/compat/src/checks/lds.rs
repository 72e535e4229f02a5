//! Static LDS. LDS added at launch is the caller's responsibility; the caller queries the runtime for the device's
//! limit.

use super::{KernelFacts, ProcessorPair};

pub(super) fn judge_lds(pair: &ProcessorPair, kernel: &KernelFacts<'_>) -> Option<String> {
    // The descriptor is passed to the hardware, the runtime adds up the metadata.
    let bytes = u64::from(kernel.descriptor_word(0)).max(kernel.metadata.lds.unwrap_or(0));
    let small =
        pair.running_processors().find(|processor| !fits_addressable_lds(processor.limits.lds.addressable, bytes))?;
    Some(format!("{bytes} bytes of LDS; a workgroup on {small} has {}", small.limits.lds.addressable))
}

fn fits_addressable_lds(addressable: u32, bytes: u64) -> bool {
    bytes <= u64::from(addressable)
}
