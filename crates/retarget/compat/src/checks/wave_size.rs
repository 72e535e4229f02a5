//! A kernel's descriptor states the number of lanes of its waves; code for 64 lanes cannot run in waves of 32.

use super::{KernelFacts, ProcessorPair};

pub(super) fn judge_wave_size(pair: &ProcessorPair, kernel: &KernelFacts<'_>) -> Option<String> {
    let without = pair.running_processors().find(|processor| !processor.waves.contains(kernel.lanes))?;
    Some(format!("the kernel runs in waves of {} lanes, which {without} does not have", kernel.lanes))
}
