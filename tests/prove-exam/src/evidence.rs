//! The table of `docs/evidence/execution.md`.

use std::fmt::Write;

/// One line: a claim with what was done for it.
#[derive(Debug, Clone, Default)]
pub struct EvidenceRow {
    pub claim: String,
    /// How it was judged.
    pub method: String,
    /// The executed cases, with numbers.
    pub cases: String,
    /// The outcome.
    pub result: String,
    /// Facts that the line does not show.
    pub open: String,
    /// Whether the outcome is the claimed one.
    pub holds: bool,
}

const HEAD: &str = "# Evidence by execution

For readers who doubt that rewritten code computes the same: each claim, what was executed for it, and the result.

Written by `cargo xtask prove`. The judge is [the emulator](../reference/emulator.md), which shares nothing with the rewriter, the host's
processor, or an SMT solver. `cargo xtask test` runs a part of each row. Runs over all 2^32 floats take an hour; they are run in
parts by `cargo xtask prove exhaustive --record --part 3/16`, which adds a line to `docs/evidence/exhaustive-runs.txt`.
";

const TABLE: &str = "
| claim | method | cases | result | open |
| --- | --- | --- | --- | --- |
";

/// The page. `words` are those of the run: `--name` leaves objects out.
pub fn page(rows: &[EvidenceRow], words: &str) -> String {
    let mut text = format!("{HEAD}\nThis run was `cargo xtask prove {words}`.\n{TABLE}");
    for EvidenceRow { claim, method, cases, result, open, holds } in rows {
        let mark = if *holds { "" } else { "**fails**: " };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {claim} | {method} | {cases} | {mark}{result} | {open} |");
    }
    text
}
