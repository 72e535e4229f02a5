//! Numbers of eight bits. `gfx942` reads and writes FP8 and BF8 without infinities and negative zero (FNUZ), `gfx950`
//! in the format of the Open Compute Project (OCP): the same instructions, with other numbers for the same bits. HIP's
//! headers choose the format by the name of the GPU (`HIP_FP8_TYPE_FNUZ`, `HIP_FP8_TYPE_OCP`).

use super::{InvalidInstructions, ProcessorPair, every_form};
use crate::Check;
use hotswap_isa::TableEntry;

/// The format of each processor. The generic target of both lacks such an instruction.
const FORMATS: &[(&str, &str)] = &[("gfx942", "FNUZ"), ("gfx950", "OCP")];

pub(super) fn small_float_rule(pair: &ProcessorPair) -> Option<InvalidInstructions> {
    let (source, target) = (pair.source.processor, pair.target.processor);
    let (one, other) = (small_float_format(source.name)?, small_float_format(target.name)?);
    (one != other).then(|| InvalidInstructions {
        check: Check::SameInstructions,
        concerns: has_small_floats,
        is_invalid: every_form,
        why: format!("the code is for eight-bit floats of the format {one}; {target} has {other}"),
    })
}

fn small_float_format(name: &str) -> Option<&str> {
    FORMATS.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
}

fn has_small_floats(entry: TableEntry) -> bool {
    ["fp8", "bf8"].iter().any(|part| entry.mnemonic().contains(part))
}
