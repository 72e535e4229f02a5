//! Parser of `patches.def`, shared by build.rs and the library.
//!
//! Invariants of the result of [`parse`]: sorted by name, every name once, every pair of scope and order once. Not
//! here: C preprocessing. A line is a comment, blank, or one family.

use std::fmt;

/// The unit of work of a family. Scopes run in the order of the declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FamilyScope {
    Instruction,
    /// The control flow of a function.
    Function,
    /// A whole linked code object.
    CodeObject,
}

impl FamilyScope {
    const ALL: &'static [Self] = &[Self::Instruction, Self::Function, Self::CodeObject];

    /// The name in `patches.def`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instruction => "Instruction",
            Self::Function => "Function",
            Self::CodeObject => "CodeObject",
        }
    }
}

/// One line of `patches.def`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefLine {
    /// Name of the family.
    pub name: String,
    /// Its unit of work.
    pub scope: FamilyScope,
    /// Position among the families of its scope.
    pub order: u32,
    /// A short description of its changes.
    pub summary: String,
}

/// Why the file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefFault {
    /// Number of the line, from 1.
    pub line: usize,
    /// A description of the error.
    pub what: String,
}

impl fmt::Display for DefFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "patches.def:{}: {}", self.line, self.what)
    }
}

/// Whether the name can be part of a registrar's symbol.
pub fn is_family_name(name: &str) -> bool {
    name.bytes().all(is_family_name_byte) && name.as_bytes().first().is_some_and(u8::is_ascii_lowercase)
}

fn is_family_name_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'
}

/// Symbol of the family's registrar.
pub fn registrar_symbol(name: &str) -> String {
    format!("hotswap_register_{name}_patch")
}

/// Reads the whole file.
///
/// # Errors
/// The first line that is malformed, repeated or out of order.
pub fn parse(text: &str) -> Result<Vec<DefLine>, DefFault> {
    let mut lines: Vec<DefLine> = Vec::new();
    for (number, text) in text.lines().enumerate().map(|(index, line)| (index + 1, line.trim())) {
        if text.is_empty() || text.starts_with("//") {
            continue;
        }
        let line = parse_line(text).map_err(|one| definition_fault(one, number))?;
        check_line(&lines, &line).map_err(|one| definition_fault(one, number))?;
        lines.push(line);
    }
    Ok(lines)
}

fn definition_fault(what: String, number: usize) -> DefFault {
    DefFault { line: number, what }
}

fn parse_line(text: &str) -> Result<DefLine, String> {
    let inner = text.strip_prefix("HOTSWAP_PATCH(").and_then(|rest| rest.strip_suffix(')'));
    let inner = inner.ok_or("it is not HOTSWAP_PATCH(name, scope, order, \"what it changes\")")?;
    let fields: Vec<&str> = inner.splitn(4, ',').map(str::trim).collect();
    let [name, scope, order, summary] = fields[..] else {
        return Err(format!("{} fields where four belong", fields.len()));
    };
    if !is_family_name(name) {
        return Err(format!("`{name}` is no name of a family (a-z, 0-9, _; a letter first)"));
    }
    let Some(scope) = FamilyScope::ALL.iter().copied().find(|known| known.name() == scope) else {
        let known: Vec<&str> = FamilyScope::ALL.iter().map(|scope| scope.name()).collect();
        return Err(format!("`{name}` has no known scope (known: {})", known.join(", ")));
    };
    let order = order.parse().ok().filter(|order| *order > 0);
    let order = order.ok_or_else(|| format!("the order of `{name}` is no number from 1"))?;
    Ok(DefLine { name: name.to_owned(), scope, order, summary: unquote_field(name, summary)? })
}

fn unquote_field(name: &str, text: &str) -> Result<String, String> {
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).filter(|inner| !inner.is_empty());
    let plain = inner.filter(|inner| !inner.contains(['"', '\\']) && inner.is_ascii());
    plain.map(str::to_owned).ok_or_else(|| format!("`{name}` has no plain quoted ASCII text that says what it changes"))
}

fn check_line(before: &[DefLine], line: &DefLine) -> Result<(), String> {
    if let Some(last) = before.last() {
        if last.name == line.name {
            return Err(format!("`{}` is listed twice", line.name));
        }
        if last.name > line.name {
            return Err(format!("`{}` belongs before `{}` (alphabetical order)", line.name, last.name));
        }
    }
    match before.iter().find(|other| (other.scope, other.order) == (line.scope, line.order)) {
        Some(other) => Err(format!("`{}` and `{}` have the same scope and order", other.name, line.name)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, order: u32) -> String {
        format!("HOTSWAP_PATCH({name}, CodeObject, {order}, \"x, y\")\n")
    }

    #[test]
    fn lines_comments_and_commas_in_the_text_are_read() {
        let lines = parse(&format!("// HOTSWAP_PATCH(no)\n\n{}{}", line("a_1", 2), line("b", 1))).unwrap();
        assert_eq!(
            lines.iter().map(|line| (line.name.as_str(), line.order)).collect::<Vec<_>>(),
            [("a_1", 2), ("b", 1)]
        );
        assert_eq!(lines[0].summary, "x, y");
    }

    #[test]
    fn every_fault_names_the_line_and_the_family() {
        for (text, part) in [
            (line("b", 1) + &line("a", 2), "patches.def:2: `a` belongs before `b`"),
            (line("a", 1) + &line("a", 2), "patches.def:2: `a` is listed twice"),
            (line("a", 1) + &line("b", 1), "patches.def:2: `a` and `b` have the same scope and order"),
            (line("A", 1), "`A` is no name"),
            (line("1a", 1), "`1a` is no name"),
            (line("a-b", 1), "`a-b` is no name"),
            (line("", 1), "`` is no name"),
            (line("a", 0), "the order of `a`"),
            ("HOTSWAP_PATCH(a, Kernels, 1, \"x\")".into(), "`a` has no known scope"),
            ("HOTSWAP_PATCH(a, CodeObject, 1, x)".into(), "`a` has no plain quoted"),
            ("HOTSWAP_PATCH(a, CodeObject, 1, \"x\\n\")".into(), "`a` has no plain quoted"),
            ("HOTSWAP_PATCH(a, CodeObject, 1)".into(), "3 fields where four belong"),
            ("HOTSWAP_PATCH(a, CodeObject, 1, \"x\"".into(), "patches.def:1: it is not HOTSWAP_PATCH("),
            ("#include \"x\"".into(), "it is not HOTSWAP_PATCH("),
        ] {
            let fault = parse(&text).unwrap_err().to_string();
            assert!(fault.contains(part), "{text}: {fault}");
        }
    }
}
