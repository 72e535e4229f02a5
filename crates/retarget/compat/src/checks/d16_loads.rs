//! 16-bit loads into one half of a register. With SRAMECC on, memory is read and written in whole dwords, and so are
//! the registers that loads write: the other half is lost, while compilers for processors without SRAMECC rely on it.
//!
//! A target that states `sramecc-` has it off; a generic target cannot say so for a processor with SRAMECC that it
//! covers. Code of a processor with SRAMECC was compiled with that in mind, unless it states `sramecc-`.

use super::{InvalidInstructions, ProcessorPair, every_form};
use crate::Check;
use hotswap_isa::Flag;
use hotswap_targets::{Support, TargetId};

pub(super) fn d16_load_rule(pair: &ProcessorPair) -> Option<InvalidInstructions> {
    let mut runners = pair.running_processors();
    let target = runners.find(|processor| match processor.name == pair.target.processor.name {
        true => may_enable_sramecc(&pair.target),
        false => may_enable_sramecc(&TargetId::of_processor(processor)),
    });
    let target = target.filter(|_| !may_enable_sramecc(&pair.source))?;
    Some(InvalidInstructions {
        check: Check::D16Loads,
        concerns: |entry| entry.is(Flag::Load) && !entry.is(Flag::Mimg) && entry.mnemonic().contains("_d16"),
        is_invalid: every_form,
        why: format!("with SRAMECC, which {target} may have on, the other half of the register is lost"),
    })
}

fn may_enable_sramecc(id: &TargetId) -> bool {
    id.processor.sramecc != Support::No && id.sramecc != Some(false)
}
