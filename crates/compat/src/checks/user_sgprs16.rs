//! `gfx1100` and `gfx1102` start waves of 32 lanes with wrong scalar registers unless at least 16 are set up. Their
//! compilers ask for more user registers than they need; code for other processors cannot be changed to do so, because
//! the registers behind them would move.

use super::{KernelFacts, Pair};
use hotswap_targets::Capability;

const LEAST: u32 = 16;

pub(super) fn judge(pair: &Pair, kernel: &KernelFacts<'_>) -> Option<String> {
    let target = pair.runner_with(Capability::UserSgprInit16Bug).filter(|_| kernel.lanes == 32)?;
    let resources = kernel.resources2();
    // Bits 1 to 5: user registers; 7 to 10: workgroup ids x, y, z and the workgroup's information.
    let count = (resources >> 1 & 31) + (resources >> 7 & 15).count_ones();
    (count < LEAST).then(|| format!("the kernel sets up {count} scalar registers; {target} needs at least {LEAST}"))
}
