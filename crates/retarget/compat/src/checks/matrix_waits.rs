//! Matrix instructions whose results need longer waits on the target. The hardware does not interlock; the compiler
//! inserts as many `s_nop` as its processor needs.

use super::{InvalidInstructions, ProcessorPair, every_form};
use crate::Check;
use hotswap_isa::TableEntry;

struct SlowMatrixRule {
    processors: &'static [&'static str],
    why: &'static str,
}

const SLOWER: &[SlowMatrixRule] = &[
    SlowMatrixRule { processors: &["gfx950"], why: "matrix results take a pass longer, those of f64 up to eight" },
    SlowMatrixRule {
        processors: &["gfx1251", "gfx12-5-generic"],
        why: "matrix results need up to 17 waits instead of 9",
    },
];

pub(super) fn matrix_wait_rule(pair: &ProcessorPair) -> Option<InvalidInstructions> {
    let mut slower = SLOWER.iter().filter_map(|row| Some((pair.first_new_runner(row.processors)?, row.why)));
    let (target, why) = slower.next()?;
    Some(InvalidInstructions {
        check: Check::MatrixWaits,
        concerns: is_matrix,
        is_invalid: every_form,
        why: format!("on {target} {why}"),
    })
}

fn is_matrix(entry: TableEntry) -> bool {
    ["v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_"].iter().any(|start| entry.mnemonic().starts_with(start))
}
