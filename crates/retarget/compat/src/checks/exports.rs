//! Exports. From GFX11.5 on they need `s_setprio` around them, which compilers for GFX11 leave out. Compute kernels have
//! none.

use super::{InvalidInstructions, ProcessorPair, every_form};
use crate::Check;
use hotswap_isa::Flag;

const PRIORITY: &[&str] = &["gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx1154", "gfx11-generic"];

pub(super) fn export_rule(pair: &ProcessorPair) -> Option<InvalidInstructions> {
    let target = pair.first_new_runner(PRIORITY)?;
    Some(InvalidInstructions {
        check: Check::Exports,
        concerns: |entry| entry.is(Flag::Exp),
        is_invalid: every_form,
        why: format!("{target} needs a priority around exports that this code does not set"),
    })
}
