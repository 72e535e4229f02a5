//! Compiles through compiler caches and distributed compilers: the same bytes as without, or an error, never code without the plan.
//!
//! Everything runs in one root directory without a network: the daemons of distcc and icecc listen on its loopback device. A compile
//! of plain C++ shows that they do take work.

use super::page;
use crate::outcome::{Outcome, fail};
use std::collections::BTreeMap;

pub(super) const OUTER: &str = include_str!("caches-outer.sh");

/// The launchers, how each is used, and the package whose version counts.
const LAUNCHERS: &[(&str, &str, &str)] = &[
    ("ccache", "`ccache hotswap-clang++ …`", "ccache"),
    ("sccache", "`sccache hotswap-clang++ …`", "sccache"),
    ("distcc", "`distcc hotswap-clang++ …`", "distcc"),
    ("distcc-inside", "`hotswap-clang++ …`, with distcc's `clang++` as its compiler", "distcc"),
    ("icecc", "`icecc hotswap-clang++ …`", "icecc"),
    ("icecc-inside", "`hotswap-clang++ …`, with icecc's `clang++` as its compiler", "icecc"),
];

/// Lines of the script: `WHO PLAN FILE CODE HASH`, `version PACKAGE VERSION`, `count WHO NUMBER`.
struct Results<'t> {
    lines: Vec<Vec<&'t str>>,
}

impl<'t> Results<'t> {
    fn read(text: &'t str) -> Self {
        Self { lines: text.lines().map(|line| line.split(' ').collect()).collect() }
    }

    /// Exit code and hash of each file.
    fn of(&self, who: &str) -> BTreeMap<&'t str, (&'t str, &'t str)> {
        let compiles = self.lines.iter().filter(|words| words.len() == 5 && words[0] == who);
        compiles.map(|words| (words[2], (words[3], words[4]))).collect()
    }

    fn word(&self, kind: &str, name: &str) -> &'t str {
        let line = self.lines.iter().find(|words| words.len() == 3 && words[0] == kind && words[1] == name);
        line.map_or("none", |words| words[2])
    }

    fn count(&self, who: &str) -> u32 {
        self.word("count", who).parse().unwrap_or(0)
    }

    /// The result of some compiles in words, where they are acceptable.
    fn verdict(&self, who: &str, expected: &str) -> Outcome<&'static str> {
        let (ours, expected) = (self.of(who), self.of(expected));
        if expected.len() != 2 || expected.values().any(|(code, _)| *code != "0") {
            return fail("the compiles without a launcher failed: see their messages");
        }
        if ours == expected {
            return Ok("the same bytes");
        }
        if ours.len() == 2 && ours.values().all(|(code, hash)| *code != "0" && *hash == "none") {
            return Ok("an error, no object");
        }
        fail(format!("{who}: objects that are not those of the plan: {ours:?}"))
    }
}

/// Judges the lines, and writes the table.
pub(super) fn judge(text: &str) -> Outcome {
    page::replace("docs/guide/remote-builds.md", BEGIN, END, &table(&Results::read(text))?)
}

const BEGIN: &str = "<!-- caches -->";
const END: &str = "<!-- end of caches -->";

fn table(results: &Results<'_>) -> Outcome<String> {
    let (one, other) = (results.of("none"), results.of("none-other"));
    if one.iter().any(|(file, result)| other.get(file) == Some(result)) {
        return fail("two plans give one object: nothing can be judged");
    }
    for cache in ["ccache", "sccache"] {
        // Two files again; neither the first compiles nor those with another plan.
        if results.count(cache) != 2 {
            return fail(format!("{cache} answered {} of 6 compiles, not 2", results.count(cache)));
        }
    }
    let mut table = String::from("| used as | version | a plan | once more | another plan | answered elsewhere |\n");
    table += "| --- | --- | --- | --- | --- | --- |\n";
    for (who, usage, package) in LAUNCHERS {
        let first = results.verdict(who, "none")?;
        let again = results.verdict(&format!("{who}-again"), "none")?;
        let changed = results.verdict(&format!("{who}-other"), "none-other")?;
        let elsewhere = match *package {
            "ccache" | "sccache" => "2 of 6: the repeated ones".to_owned(),
            _ if results.count(&format!("{package}-plain")) <= results.count(package) => {
                return fail(format!("{package} took no plain C++ either, so that nothing can be judged"));
            }
            _ => format!("{} of 12 with both uses; plain C++ is", results.count(package)),
        };
        let version = results.word("version", package);
        table += &format!("| {usage} | {version} | {first} | {again} | {changed} | {elsewhere} |\n");
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> String {
        let mut text = String::new();
        let mut lines = |who: &str, plan: &str, hash: &str| {
            text += &format!("{who} {plan} naive 0 {hash}1\n{who} {plan} tiled 0 {hash}2\n");
        };
        lines("none", "p", "a");
        lines("none-other", "q", "b");
        for (who, _, _) in LAUNCHERS {
            lines(who, "p", "a");
            lines(&format!("{who}-again"), "p", "a");
            lines(&format!("{who}-other"), "q", "b");
        }
        text + "count ccache 2\ncount sccache 2\ncount distcc 0\ncount distcc-plain 1\ncount icecc 0\ncount icecc-plain 1\n"
    }

    #[test]
    fn code_without_the_plan_is_a_failure_and_an_error_is_none() {
        let good = good();
        assert!(table(&Results::read(&good)).is_ok_and(|table| table.matches("the same bytes").count() == 18));
        let refused =
            good.replace("icecc p naive 0 a1\nicecc p tiled 0 a2", "icecc p naive 1 none\nicecc p tiled 1 none");
        assert!(table(&Results::read(&refused)).is_ok_and(|table| table.contains("an error, no object")));
        let faults = [
            ("icecc p naive 0 a1", "icecc p naive 0 c1"),
            ("sccache-other q tiled 0 b2", "sccache-other q tiled 0 a2"),
            ("distcc-again p naive 0 a1\n", ""),
            ("count sccache 2", "count sccache 4"),
            ("count distcc-plain 1", "count distcc-plain 0"),
            ("none-other q naive 0 b1", "none-other q naive 0 a1"),
            ("none p tiled 0 a2", "none p tiled 1 none"),
        ];
        for (old, new) in faults {
            assert!(good.contains(old) && table(&Results::read(&good.replace(old, new))).is_err(), "{old}");
        }
    }
}
