//! The plan's canonical text, which its hash covers, and reading it.

use crate::options::PLAN_OPTIONS;
use crate::plan::{Plan, syntax_error};
use crate::{IDENTITY, VERSION};
use hotswap_report::Diagnostic;
use sha2::{Digest, Sha256};

const HEADER: &str = "hotswap-plan 1";
/// The additional permission of `hotswap retarget`, which no option of a build grants.
const NAMES: &str = "names";
/// The place of its line in the plan's text, as [`crate::options::PlanOption::rank`].
const NAMES_RANK: u8 = 3;

/// A line of the text, which is sorted by the ranks of lines.
struct PlanLine {
    rank: u8,
    text: String,
}

impl Plan {
    /// The canonical text of this plan.
    pub fn canonical_text(&self) -> String {
        let mut all: Vec<PlanLine> = Vec::new();
        for option in PLAN_OPTIONS {
            let values = option.line_values(self).into_iter();
            all.extend(values.map(|value| PlanLine { rank: option.rank, text: format!("{} {value}\n", option.line) }));
        }
        if self.unchecked_names {
            all.push(PlanLine { rank: NAMES_RANK, text: format!("allow {NAMES}\n") });
        }
        all.sort_by_key(|line| line.rank);
        all.into_iter().fold(format!("{HEADER}\n"), |text, line| text + &line.text)
    }

    /// 16 hexadecimal digits over the canonical text, the version and the identity of HotSwap.
    pub fn hash(&self) -> String {
        let mut hash = Sha256::new();
        for part in [self.canonical_text().as_str(), VERSION, IDENTITY] {
            hash.update(part);
            hash.update([0]);
        }
        hotswap_report::hex_digits(&hash.finalize()[..8])
    }

    /// Reads a canonical text.
    ///
    /// # Errors
    /// [`hotswap_report::codes::PLAN_SYNTAX`] with the number of the line.
    pub fn parse(text: &str) -> Result<Self, Diagnostic> {
        let mut plan = Self::default();
        let mut lines = text.lines().enumerate();
        if lines.next().map(|(_, line)| line) != Some(HEADER) {
            return Err(syntax_error(format!("the first line is not `{HEADER}`")));
        }
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let (key, value) = line.split_once(' ').ok_or_else(|| line_syntax_error("it has one word only", number))?;
            if (key, value) == ("allow", NAMES) {
                plan.unchecked_names = true;
                continue;
            }
            let option = PLAN_OPTIONS.iter().find(|option| option.line == key);
            let option = option.ok_or_else(|| line_syntax_error(&format!("`{key}` is not known"), number))?;
            (option.set)(&mut plan, value).map_err(|e| line_syntax_error(&e.what, number))?;
        }
        Ok(plan)
    }
}

fn line_syntax_error(what: &str, number: usize) -> Diagnostic {
    syntax_error(format!("line {}: {what}", number + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{NamesPolicy, Policy};

    fn plan(pairs: &str) -> Plan {
        let mut plan = Plan::default();
        plan.add_pairs(pairs).unwrap();
        plan
    }

    #[test]
    fn order_and_repetition_do_not_change_the_plan() {
        let one = plan("gfx1030=>gfx1032,gfx1031;gfx900=>gfx902");
        let two = plan("gfx900=>gfx902 gfx1030=>gfx1031,gfx1032,gfx1031");
        assert_eq!(one.hash(), two.hash());
        assert_eq!(Plan::parse(&one.canonical_text()).unwrap(), one);
        assert_ne!(one.hash(), plan("gfx900=>gfx902").hash());
    }

    #[test]
    fn what_is_not_allowed_does_not_stand_in_the_text() {
        let one = plan("gfx1102=>gfx1103");
        assert_eq!(one.canonical_text(), "hotswap-plan 1\npolicy error\nretarget gfx1102=>gfx1103\n");
        let other = Plan { experimental: true, ..one.clone() };
        assert_eq!(
            other.canonical_text(),
            "hotswap-plan 1\npolicy error\nallow experimental\nretarget gfx1102=>gfx1103\n"
        );
        assert_eq!(Plan::parse(&other.canonical_text()).unwrap(), other);
        assert_ne!(one.hash(), other.hash());
        assert!(Plan::parse("hotswap-plan 1\nallow everything\n").is_err());
        let asks = Plan { names: NamesPolicy::Error, ..one.clone() };
        assert_eq!(asks.canonical_text(), "hotswap-plan 1\npolicy error\nnames error\nretarget gfx1102=>gfx1103\n");
        assert_eq!(Plan::parse(&asks.canonical_text()).unwrap(), asks);
        assert!(Plan::parse("hotswap-plan 1\nnames all\n").is_err());
        let names = Plan { unchecked_names: true, ..one.clone() };
        assert_eq!(names.canonical_text(), "hotswap-plan 1\npolicy error\nallow names\nretarget gfx1102=>gfx1103\n");
        assert_eq!(Plan::parse(&names.canonical_text()).unwrap(), names);
        assert!(Plan::default().allow("names").is_err(), "it is no word of a build");
    }

    /// The hash covers the text, so the order of its lines is fixed, whatever the order of the table.
    #[test]
    fn lines_are_in_the_order_of_their_ranks() {
        let mut all = plan("gfx1102=>gfx1103;gfx1030=>gfx1031");
        all.add_patches("zeta,alpha").unwrap();
        let all =
            Plan { policy: Policy::Keep, names: NamesPolicy::Derive, experimental: true, unchecked_names: true, ..all };
        let text = "hotswap-plan 1\npolicy keep\nallow experimental\nnames derive\nallow names\n\
                    retarget gfx1030=>gfx1031\nretarget gfx1102=>gfx1103\npatch alpha\npatch zeta\n";
        assert_eq!(all.canonical_text(), text);
        assert_eq!(Plan::parse(text).unwrap(), all);
    }

    #[test]
    fn a_damaged_plan_file_names_the_line() {
        let error = Plan::parse("hotswap-plan 1\npolicy error\nretarget x\n").unwrap_err();
        assert!(error.what.starts_with("line 3: "), "{}", error.what);
        assert!(Plan::parse("hotswap-plan 2\n").is_err());
    }
}
