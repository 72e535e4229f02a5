//! Diagnostics in text form: equal ones about several places are one line, with the first place and a count.
//!
//! A library has hundreds of fat binaries, and an impossible request often fails alike in all of them. JSON has each.

use hotswap_report::Diagnostic;

/// The lines, in the order of the first occurrence of their reasons.
pub fn grouped_lines(problems: &[Diagnostic]) -> Vec<String> {
    let mut groups: Vec<RepeatedDiagnostic<'_>> = Vec::new();
    for problem in problems {
        match groups.iter_mut().find(|group| is_same(group.first, problem)) {
            Some(group) => group.count += 1,
            None => groups.push(RepeatedDiagnostic { first: problem, count: 1 }),
        }
    }
    groups.iter().map(RepeatedDiagnostic::line).collect()
}

/// Diagnostics with the same reason.
struct RepeatedDiagnostic<'d> {
    first: &'d Diagnostic,
    count: usize,
}

impl RepeatedDiagnostic<'_> {
    fn line(&self) -> String {
        match self.count {
            1 => self.first.to_string(),
            count => format!("{} [{count} times; this is the first place]", self.first),
        }
    }
}

/// Whether the reason and the file are the same. Entry, kernel and offset only locate an occurrence.
fn is_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    one.code.id == other.code.id
        && one.severity == other.severity
        && one.what == other.what
        && one.advice == other.advice
        && one.place.file == other.place.file
        && one.place.mnemonic == other.place.mnemonic
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_report::codes;

    #[test]
    fn equal_reasons_are_one_line_and_others_keep_theirs() {
        let refused =
            |what: &str, entry: &str| Diagnostic::error(codes::NO_ROUTE, what).in_file("a.so").in_entry(entry);
        let warning = Diagnostic::warning(codes::NO_ROUTE, "no source").in_file("a.so").in_entry("first");
        let problems = [
            refused("no source", "first"),
            refused("another", "first"),
            refused("no source", "second").at_offset(4),
            warning.clone(),
            refused("no source", "third"),
        ];
        let lines = grouped_lines(&problems);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!(lines[0], format!("{} [3 times; this is the first place]", problems[0]));
        assert_eq!(lines[1..], [problems[1].to_string(), warning.to_string()]);
        let other = refused("no source", "first");
        let elsewhere = Diagnostic {
            place: hotswap_report::DiagnosticLocation { file: Some("b.so".into()), ..other.place.clone() },
            ..other
        };
        assert_eq!(grouped_lines(&[problems[0].clone(), elsewhere]).len(), 2);
    }
}
