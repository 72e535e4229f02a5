//! `HSA_OVERRIDE_GFX_VERSION`: another GPU by name, for host part and loader alike.
//!
//! The runtime then reports the source's name for the GPU everywhere: libraries choose the source's files and kernels,
//! and the loader selects its code. That is consistent, and it is right where all code of the source is right: so for
//! pairs without any check. Where code must pass checks, the runtime runs none.

use crate::{Verdict, pair_verdict};
use hotswap_targets::Processor;

/// Whether a GPU may be reported under the name of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Override {
    /// Any code for the source is right on the target; the value to set.
    Safe(String),
    /// Some code is not; the value that would be set, and the reason not to.
    Unsafe(String, String),
    /// There is nothing to set: one of them is a generic target or a stepping, or both are the same.
    None,
}

/// The effect of the variable on `target`, set to the version of `source`.
pub fn override_version(source: &Processor, target: &Processor) -> Override {
    let Some(value) = dotted_version(source).filter(|_| source.name != target.name && dotted_version(target).is_some())
    else {
        return Override::None;
    };
    match pair_verdict(source, target) {
        Verdict::Identical { checks: [] } => Override::Safe(value),
        Verdict::Identical { checks } | Verdict::Conditional { checks } => {
            let names = checks.iter().map(|check| check.name()).collect::<Vec<_>>().join(", ");
            Override::Unsafe(value, format!("code must pass checks ({names}), and the runtime runs none"))
        }
        Verdict::Rewrite => Override::Unsafe(value, "code must be changed, and the runtime changes none".to_owned()),
        Verdict::Refused { why } => Override::Unsafe(value, why),
    }
}

/// Major, minor and stepping, as in the value of the variable: `gfx90c` is 9.0.12.
fn dotted_version(processor: &Processor) -> Option<String> {
    let digits = processor.name.strip_prefix("gfx").filter(|_| !processor.is_generic())?;
    let (major, rest) = digits.split_at_checked(digits.len().checked_sub(2)?)?;
    let minor = rest.get(..1)?.parse::<u32>().ok()?;
    let stepping = u32::from_str_radix(rest.get(1..)?, 16).ok()?;
    Some(format!("{}.{minor}.{stepping}", major.parse::<u32>().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_targets::{PROCESSORS, find_processor};

    fn of(source: &str, target: &str) -> Override {
        override_version(find_processor(source).unwrap(), find_processor(target).unwrap())
    }

    #[test]
    fn identical_siblings_may_be_called_by_each_others_names() {
        assert_eq!(of("gfx1030", "gfx1036"), Override::Safe("10.3.0".to_owned()));
        assert_eq!(of("gfx90c", "gfx900"), Override::Safe("9.0.12".to_owned()));
        assert_eq!(of("gfx1201", "gfx1200"), Override::Safe("12.0.1".to_owned()));
    }

    #[test]
    fn pairs_with_checks_may_not() {
        for (source, target) in
            [("gfx1100", "gfx1103"), ("gfx900", "gfx906"), ("gfx1013", "gfx1010"), ("gfx1030", "gfx1100")]
        {
            assert!(matches!(of(source, target), Override::Unsafe(..)), "{source} {target}");
        }
        for (source, target) in [("gfx10-3-generic", "gfx1031"), ("gfx1030", "gfx10-3-generic"), ("gfx1030", "gfx1030")]
        {
            assert_eq!(of(source, target), Override::None, "{source} {target}");
        }
    }

    #[test]
    fn every_native_processor_but_a_stepping_has_a_version() {
        for processor in PROCESSORS.iter().filter(|processor| !processor.is_generic()) {
            assert_eq!(dotted_version(processor).is_some(), !processor.name.contains('-'), "{processor}");
        }
    }
}
