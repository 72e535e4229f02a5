//! The committed answers to kinds of differences.

use super::{PairDifferences, SteppingPair};

/// A line `SOURCE TARGET | KIND | ANSWER`; `*` in a kind is any text.
#[derive(Debug, Clone)]
pub struct KindLine {
    pair: String,
    kind: String,
    /// The family, the row or the reason.
    pub answer: String,
}

#[derive(Debug, Clone)]
pub struct KindTable(Vec<KindLine>);

impl KindTable {
    /// Reads the file; comments begin with `#`.
    ///
    /// # Errors
    /// A line that is not of that form.
    pub fn read(text: &str) -> Result<Self, String> {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(KindLine::read).collect::<Result<_, _>>().map(Self)
    }

    /// The answer to a kind of a pair.
    #[must_use]
    pub fn answer_to(&self, pair: &SteppingPair, kind: &str) -> Option<&str> {
        self.0.iter().find(|line| line.is_for(pair, kind)).map(|line| line.answer.as_str())
    }

    /// Kinds without a line, and lines that no kind needs.
    #[must_use]
    pub fn problems(&self, found: &[(SteppingPair, PairDifferences)]) -> Vec<String> {
        let mut problems = Vec::new();
        for (pair, differences) in found {
            let unknown = differences.kinds.iter().filter(|(kind, _)| self.answer_to(pair, kind).is_none());
            problems.extend(unknown.map(|(kind, found)| {
                format!(
                    "{} {} | {kind} | no answer; {} times, first: {}",
                    pair.source, pair.target, found.count, found.example
                )
            }));
        }
        let is_needed = |line: &&KindLine| {
            let own = found.iter().filter(|(pair, _)| line.is_of(pair));
            own.clone().count() == 0
                || own
                    .into_iter()
                    .any(|(pair, differences)| differences.kinds.keys().any(|kind| line.is_for(pair, kind)))
        };
        let stale = self.0.iter().filter(|line| !is_needed(line));
        problems.extend(stale.map(|line| format!("{} | {} | no difference is of this kind", line.pair, line.kind)));
        problems
    }
}

impl KindLine {
    fn read(line: &str) -> Result<Self, String> {
        let parts: Vec<&str> = line.split(" | ").collect();
        let [pair, kind, answer] = parts.as_slice() else { return Err(format!("not `pair | kind | answer`: {line}")) };
        Ok(Self { pair: (*pair).to_owned(), kind: (*kind).to_owned(), answer: (*answer).to_owned() })
    }

    fn is_of(&self, pair: &SteppingPair) -> bool {
        self.pair == format!("{} {}", pair.source, pair.target)
    }

    fn is_for(&self, pair: &SteppingPair, kind: &str) -> bool {
        self.is_of(pair) && matches(&self.kind, kind)
    }
}

/// Whether a text has the parts of a pattern in their order.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steppings::PAIRS;

    #[test]
    fn a_pattern_has_its_parts_in_order() {
        assert!(matches("a*c", "abc") && matches("a*", "a") && matches("a", "a"));
        assert!(!matches("a", "ab") && !matches("a*c", "acb") && !matches("*b*", "ac"));
    }

    #[test]
    fn a_kind_without_a_line_and_a_line_without_a_kind_are_problems() {
        let table = KindTable::read("# why\ngfx1250 gfx1250-strict | code +v_nop | row: `wmma-vector`\n").unwrap();
        let mut known = PairDifferences::default();
        known.add("code +v_nop".to_owned(), "k1");
        assert!(table.problems(&[(PAIRS[0], known.clone())]).is_empty());
        known.add("code -s_clause".to_owned(), "k2");
        assert_eq!(table.problems(&[(PAIRS[0], known)]).len(), 1);
        assert_eq!(table.problems(&[(PAIRS[0], PairDifferences::default())]).len(), 1);
    }
}
