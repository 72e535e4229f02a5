//! Grouping of findings: one diagnostic for each kernel, check and instruction, with the first offset and the number of
//! further ones.
//!
//! Invariants: the order is that of finding. A kernel with more than [`SHOWN`] diagnostics keeps the first ones and
//! reports how many are not shown. Names come from the file, and `Diagnostic` escapes them.

use super::ProcessorPair;
use crate::Check;
use hotswap_report::{Diagnostic, codes};
use std::collections::HashMap;

/// The number of diagnostics shown for one kernel.
pub(crate) const SHOWN: usize = 4;

/// One thing that is invalid on the target.
#[derive(Debug, Clone)]
pub(crate) struct CompatFinding<'a> {
    pub(crate) check: Check,
    /// The kernel or function; none for code outside of all of them.
    pub(crate) kernel: Option<&'a str>,
    /// Offset in the file.
    pub(crate) offset: u64,
    pub(crate) mnemonic: Option<&'static str>,
    pub(crate) why: String,
}

#[derive(Debug)]
struct FindingGroup<'a> {
    first: CompatFinding<'a>,
    more: u64,
}

#[derive(Debug, Default)]
pub(crate) struct CompatFindings<'a> {
    groups: Vec<FindingGroup<'a>>,
    of_kernel: HashMap<Option<&'a str>, KernelFindings>,
}

/// The groups of a kernel, by number, and the findings beyond them.
#[derive(Debug, Default)]
struct KernelFindings {
    shown: Vec<usize>,
    hidden: u64,
}

impl<'a> CompatFindings<'a> {
    /// Adds a finding; `why` is called only if it is shown.
    pub(crate) fn add(
        &mut self,
        check: Check,
        kernel: Option<&'a str>,
        offset: u64,
        mnemonic: Option<&'static str>,
        why: impl FnOnce() -> String,
    ) {
        let of_kernel = self.of_kernel.entry(kernel).or_default();
        let groups = &mut self.groups;
        let known = of_kernel.shown.iter().copied().find(|group| {
            groups.get(*group).is_some_and(|group| (group.first.check, group.first.mnemonic) == (check, mnemonic))
        });
        if let Some(group) = known.and_then(|number| groups.get_mut(number)) {
            group.more += 1;
        } else if of_kernel.shown.len() < SHOWN {
            of_kernel.shown.push(groups.len());
            groups.push(FindingGroup { first: CompatFinding { check, kernel, offset, mnemonic, why: why() }, more: 0 });
        } else {
            of_kernel.hidden += 1;
        }
    }

    pub(crate) fn into_diagnostics(self, pair: &ProcessorPair) -> Vec<Diagnostic> {
        let reports = self.groups.iter().enumerate().map(|(number, group)| {
            group.group_diagnostic(pair, hidden_finding_count(number, group.first.kernel, &self.of_kernel))
        });
        reports.collect()
    }
}

fn hidden_finding_count(
    number: usize,
    kernel: Option<&str>,
    self_of_kernel: &HashMap<Option<&'_ str>, KernelFindings>,
) -> u64 {
    match self_of_kernel.get(&kernel) {
        Some(of_kernel) if of_kernel.shown.last() == Some(&number) => of_kernel.hidden,
        _ => 0,
    }
}

impl FindingGroup<'_> {
    fn group_diagnostic(&self, pair: &ProcessorPair, hidden: u64) -> Diagnostic {
        let CompatFinding { check, kernel, offset, mnemonic, why } = &self.first;
        let (source, target) = (pair.source, pair.target);
        let mut what = format!("{source}=>{target} ({check}): {why}");
        if self.more > 0 {
            what += &format!(" (and in {} more places)", self.more);
        }
        if hidden > 0 {
            what += &format!("; {hidden} more findings of other kinds are not shown");
        }
        let mut error = Diagnostic::error(codes::NOT_SAFE, what).at_offset(*offset);
        error.place.kernel = kernel.map(str::to_owned);
        error.place.mnemonic = mnemonic.map(str::to_owned);
        error.advise(format!(
            "compile for it with --offload-arch={target} (in builds --hotswap-policy=compile does so where it is needed), or choose another source"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_one_kind_are_one_line_and_a_kernel_has_few() {
        let pair = ProcessorPair { source: "gfx904".parse().unwrap(), target: "gfx900".parse().unwrap() };
        let mut findings = CompatFindings::default();
        for (number, name) in ["v_a", "v_a", "v_b", "v_c", "v_a", "v_d", "v_e", "v_f", "v_e"].into_iter().enumerate() {
            findings
                .add(Check::SameInstructions, Some("k"), number as u64 * 4, Some(name), || format!("{name} is absent"));
        }
        findings.add(Check::SameInstructions, Some("other"), 0x40, Some("v_a"), || "v_a is absent".to_owned());
        let found: Vec<String> = findings.into_diagnostics(&pair).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), SHOWN + 1);
        assert!(
            found[0].contains("k: v_a: offset 0x0: ") && found[0].contains("absent (and in 2 more places)"),
            "{found:?}"
        );
        assert!(found[3].contains("v_d is absent; 3 more findings of other kinds are not shown"), "{found:?}");
        assert!(found[4].contains("other: v_a: offset 0x40: "), "{found:?}");
    }
}
