//! The forms of a report: text, JSON, lcov, cobertura, Markdown, annotations of pull requests, pages.
//!
//! Invariants: names of files and functions are escaped as the form needs; the output depends on the report alone.

mod annotations;
mod cobertura;
mod html;
mod json;
mod lcov;
mod markdown;
mod text;

pub use annotations::annotations;
pub use cobertura::cobertura;
pub use html::{Page, pages};
pub use json::json;
pub use lcov::lcov;
pub use markdown::markdown;
pub use text::{functions, listing, table};

use crate::ratio::Ratio;

/// As llvm-cov prints it: two digits, and never 100 for less than all.
fn percent(ratio: Ratio) -> String {
    if ratio.count == 0 {
        return "-".to_owned();
    }
    let rounded = (ratio.percent() * 100.0).floor() / 100.0;
    format!("{rounded:.2}%")
}

/// A cell about a target that may lack the code, or a profile of it.
fn share_or_reason(ratio: Option<Ratio>, lacks_data: bool) -> String {
    match ratio {
        Some(ratio) => percent(ratio),
        None => absence(lacks_data).to_owned(),
    }
}

/// Why a target lacks a count: it does not have such code, or does not have a profile of it.
const fn absence(lacks_data: bool) -> &'static str {
    if lacks_data { "no data" } else { "-" }
}

fn fraction(ratio: Ratio) -> String {
    format!("{}/{}", ratio.covered, ratio.count)
}

/// A C++ name in the form of the source; other names unchanged.
fn demangled(name: &str) -> String {
    let symbol = cpp_demangle::Symbol::new(name).ok().and_then(|symbol| symbol.demangle().ok());
    symbol.map_or_else(|| name.to_owned(), |name| name.to_string())
}

/// Text in XML and HTML. Control characters, which XML cannot hold, are replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(character),
            control if control.is_control() => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_than_all_is_never_all() {
        let of = |covered, count| percent(Ratio { covered, count });
        assert_eq!([of(99_999, 100_000), of(1, 1), of(0, 3), of(0, 0)], ["99.99%", "100.00%", "0.00%", "-"]);
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(escaped("<a href=\"x\">&'\u{1}"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\u{fffd}");
    }
}
