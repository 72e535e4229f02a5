//! Conditions as text: `name`, `not(c)`, `all(c,c,…)`, `any(c,c,…)`, without blanks.

use crate::model::Condition;
use std::fmt;

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, parts) = match self {
            Self::Has(name) => return f.write_str(name),
            Self::Not(part) => return write!(f, "not({part})"),
            Self::All(parts) => ("all", parts),
            Self::Any(parts) => ("any", parts),
        };
        write!(f, "{word}(")?;
        for (index, part) in parts.iter().enumerate() {
            write!(f, "{}{part}", if index == 0 { "" } else { "," })?;
        }
        f.write_str(")")
    }
}

/// Reads a condition; `None` when the text is not one.
pub(crate) fn parse(text: &str) -> Option<Condition> {
    let (condition, rest) = parse_single_condition(text, 0)?;
    rest.is_empty().then_some(condition)
}

/// Nesting that no real condition has; deeper text is rejected instead of overflowing the stack.
const DEPTH: usize = 32;

fn parse_single_condition(text: &str, depth: usize) -> Option<(Condition, &str)> {
    if depth > DEPTH {
        return None;
    }
    let end = text.find(['(', ')', ',']).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(end)?;
    let Some(mut rest) = rest.strip_prefix('(') else {
        return (!name.is_empty()).then(|| (Condition::Has(name.to_owned()), rest));
    };
    let mut parts = Vec::new();
    while !rest.starts_with(')') {
        let (part, after) = parse_single_condition(rest, depth + 1)?;
        parts.push(part);
        rest = after.strip_prefix(',').unwrap_or(after);
        if rest.len() == after.len() && !rest.starts_with(')') {
            return None;
        }
    }
    let rest = rest.strip_prefix(')')?;
    let condition = match name {
        "all" => Condition::All(parts),
        "any" => Condition::Any(parts),
        "not" if parts.len() == 1 => Condition::Not(Box::new(parts.pop()?)),
        _ => return None,
    };
    Some((condition, rest))
}
