//! Settings of XNACK and SRAMECC. Code that states nothing runs with either setting, because its compiler allowed for
//! both; that holds on another processor only if the target's own compiler has the same restrictions.

use super::{ObjectFinding, ProcessorPair};
use hotswap_code_object::CodeObject;
use hotswap_targets::Support;

/// Offset of `e_flags` in the header of ELF64.
const AT: u64 = 48;

pub(super) fn judge_features(pair: &ProcessorPair, _: &CodeObject<'_>) -> Option<ObjectFinding> {
    let (source, target) = (&pair.source, &pair.target);
    let (from, to) = (source.processor, target.processor);
    let wrong = judge_xnack(from.xnack, source.xnack, to.xnack, target.xnack)
        .or_else(|| judge_sramecc(from.sramecc, source.sramecc, to.sramecc, target.sramecc));
    wrong.map(|what| ObjectFinding { offset: AT, why: format!("{source}=>{target}: {what}") })
}

/// Memory instructions that can be restarted must not overwrite their own operands: only code of processors
/// with XNACK obeys that.
fn judge_xnack(from: Support, source: Option<bool>, to: Support, target: Option<bool>) -> Option<&'static str> {
    match (from, to) {
        (_, Support::No) => None,
        (Support::No, _) if target == Some(false) => None,
        (Support::No, _) => Some("code of a processor without XNACK does not run under it; state xnack-"),
        _ => settings_differ(source, target).then_some("the code is for one setting of xnack; state the same"),
    }
}

/// Whether a 16-bit load relies on the other half is the subject of another check.
fn judge_sramecc(from: Support, source: Option<bool>, to: Support, target: Option<bool>) -> Option<&'static str> {
    let matters = from != Support::No && to != Support::No;
    (matters && settings_differ(source, target)).then_some("the code is for one setting of sramecc; state the same")
}

/// Whether code for one setting would get another or none.
fn settings_differ(source: Option<bool>, target: Option<bool>) -> bool {
    source.is_some() && source != target
}

#[cfg(test)]
mod tests {
    use super::*;
    use Support::{No, Yes};

    #[test]
    fn code_for_one_setting_stays_with_it() {
        let (any, on, off) = (None, Some(true), Some(false));
        #[rustfmt::skip]
        let rows = [
            (Yes, any, Yes, any, true), (Yes, any, Yes, on, true), (Yes, any, Yes, off, true),
            (Yes, on, Yes, on, true), (Yes, on, Yes, any, false), (Yes, on, Yes, off, false),
            (Yes, off, Yes, off, true), (Yes, off, Yes, any, false), (Yes, off, Yes, on, false),
            (Yes, any, No, any, true), (Yes, on, No, any, true), (Yes, off, No, any, true),
            (No, any, No, any, true),
            (No, any, Yes, any, false), (No, any, Yes, on, false), (No, any, Yes, off, true),
        ];
        for (from, source, to, target, good) in rows {
            assert_eq!(judge_xnack(from, source, to, target).is_none(), good, "{from:?} {source:?} {to:?} {target:?}");
        }
        assert_eq!(judge_sramecc(No, any, Yes, any), None);
        assert!(judge_sramecc(Yes, off, Yes, any).is_some());
    }
}
