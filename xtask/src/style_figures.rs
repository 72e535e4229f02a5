//! The style figures that `tidy` keeps: bound closures, tuple types and short doc comments of each crate.
//!
//! The figures of a crate may only fall. What they count is text, line by line, so that a figure can be found again by a
//! search; unit tests at the end of a file are left out. A doc comment counts if it is one line of at most three words:
//! the last line of a longer comment may be as short as it is. Where strangers read the documentation or clap prints it,
//! short lines are in order.

use std::collections::BTreeMap;

/// The most that each crate may have.
#[derive(Debug, PartialEq)]
struct FigureRow {
    /// Directory of the crate, below the workspace.
    krate: &'static str,
    most: StyleFigures,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct StyleFigures {
    /// Lines `let name = |…| …`.
    closures: usize,
    /// Lines with a tuple as result or in a `Vec`, `Option` or array.
    tuples: usize,
    short_docs: usize,
}

const fn row(krate: &'static str, closures: usize, tuples: usize, short_docs: usize) -> FigureRow {
    FigureRow { krate, most: StyleFigures { closures, tuples, short_docs } }
}

/// Crates whose documentation strangers read: every public item has some (`missing_docs`).
const DOCUMENTED_CRATES: &[&str] = &["crates/products/libhotswap", "crates/retarget/family-abi"];

const SHORT_DOC_WORDS: usize = 3;

#[rustfmt::skip]
const ROWS: &[FigureRow] = &[
    row("crates/amdgpu/code-object", 0, 20, 0),
    row("crates/amdgpu/disassembly", 0, 5, 0),
    row("crates/amdgpu/hazards", 1, 2, 6),
    row("crates/amdgpu/isa", 0, 26, 0),
    row("crates/amdgpu/isa-meta", 10, 26, 12),
    row("crates/amdgpu/isa-tables", 0, 2, 9),
    row("crates/amdgpu/program", 0, 28, 0),
    row("crates/amdgpu/semantics", 3, 24, 16),
    row("crates/amdgpu/targets", 1, 1, 1),
    row("crates/base/files", 1, 0, 0),
    row("crates/base/plan", 0, 0, 0),
    row("crates/base/report", 0, 0, 2),
    row("crates/containers/bundle", 0, 25, 1),
    row("crates/containers/load-model", 1, 5, 2),
    row("crates/containers/packages", 0, 3, 0),
    row("crates/emulation/emulator", 11, 29, 7),
    row("crates/emulation/hsa-emulated", 4, 12, 25),
    row("crates/evidence/check", 0, 0, 0),
    row("crates/evidence/confirm", 0, 9, 0),
    row("crates/evidence/lint", 0, 10, 0),
    row("crates/products/hotswap", 0, 13, 0),
    row("crates/products/libhotswap", 0, 1, 0),
    row("crates/profile/coverage", 2, 7, 4),
    row("crates/profile/profile-drain", 1, 12, 0),
    row("crates/retarget/adapt", 0, 14, 0),
    row("crates/retarget/compat", 0, 11, 0),
    row("crates/retarget/device-link", 0, 1, 0),
    row("crates/retarget/device-symbols", 1, 8, 0),
    row("crates/retarget/families", 0, 4, 0),
    row("crates/retarget/family-abi", 0, 0, 0),
    row("crates/retarget/file-edit", 0, 0, 0),
    row("crates/retarget/pipeline", 0, 8, 0),
    row("crates/retarget/rewrite", 0, 10, 1),
    row("crates/stack/names", 0, 0, 0),
    row("crates/stack/stack", 0, 4, 0),
    row("driver-wrapper", 3, 7, 0),
    row("linker-plugin", 2, 0, 0),
    row("xtask", 35, 90, 10),
];

/// The figures of each crate whose files were added.
#[derive(Default)]
pub(crate) struct StyleCensus {
    by_crate: BTreeMap<String, StyleFigures>,
}

impl StyleCensus {
    /// Adds a file of the workspace, unless it is a test, a fuzz target or no Rust.
    pub(crate) fn add(&mut self, file: &str, text: &str) {
        let Some(krate) = crate_of(file) else { return };
        let figures = self.by_crate.entry(krate.to_owned()).or_default();
        let lines: Vec<&str> = product_part(text).lines().map(str::trim).collect();
        figures.closures += lines.iter().filter(|line| is_bound_closure(line)).count();
        figures.tuples += lines.iter().filter(|line| holds_tuple_type(line)).count();
        if !DOCUMENTED_CRATES.contains(&krate) && !holds_help_texts(text) {
            figures.short_docs += (0..lines.len()).filter(|at| is_short_doc(&lines, *at)).count();
        }
    }

    /// Figures that rose, and crates that lack a row.
    pub(crate) fn check(&self, complaints: &mut Vec<String>) {
        self.check_rows(ROWS, complaints);
    }

    fn check_rows(&self, rows: &[FigureRow], complaints: &mut Vec<String>) {
        for (krate, found) in &self.by_crate {
            let most = rows.iter().find(|row| row.krate == krate).map_or(StyleFigures::default(), |row| row.most);
            check_figure(krate, "bound closures (`let name = |…|`)", found.closures, most.closures, complaints);
            check_figure(krate, "tuple types", found.tuples, most.tuples, complaints);
            check_figure(krate, "doc comments of three words or fewer", found.short_docs, most.short_docs, complaints);
        }
    }

    /// The rows as they could be, if a figure fell.
    pub(crate) fn lowered_rows(&self) -> Vec<String> {
        let lowered = ROWS.iter().filter(|row| self.by_crate.get(row.krate).is_some_and(|found| *found != row.most));
        lowered.map(|row| row_text(row.krate, self.by_crate[row.krate])).collect()
    }
}

fn check_figure(krate: &str, what: &str, found: usize, most: usize, complaints: &mut Vec<String>) {
    if found > most {
        complaints.push(format!("{krate}: {found} {what}, more than {most} (xtask/src/style_figures.rs)"));
    }
}

fn row_text(krate: &str, figures: StyleFigures) -> String {
    format!("row(\"{krate}\", {}, {}, {}),", figures.closures, figures.tuples, figures.short_docs)
}

/// The directory of the crate that a source file belongs to.
fn crate_of(file: &str) -> Option<&str> {
    let is_auxiliary = file.split('/').any(|part| ["tests", "fuzz", "benches", "examples", "tests.rs"].contains(&part));
    if is_auxiliary || !file.ends_with(".rs") {
        return None;
    }
    file.split_once("/src/").map(|parts| parts.0).or_else(|| file.strip_suffix("/build.rs"))
}

/// The text before the unit tests.
fn product_part(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

fn is_bound_closure(line: &str) -> bool {
    let Some(binding) = line.strip_prefix("let ") else { return false };
    let Some((name, value)) = binding.split_once(" = ") else { return false };
    let name = name.strip_prefix("mut ").unwrap_or(name);
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name && value.strip_prefix("move ").unwrap_or(value).starts_with('|')
}

fn holds_tuple_type(line: &str) -> bool {
    let is_code = !line.starts_with("//");
    is_code && ["Vec<(", "[(", "Option<(", "-> ("].iter().any(|opening| line.contains(opening))
}

/// Whether clap prints the doc comments of the file.
fn holds_help_texts(text: &str) -> bool {
    let derives = text.lines().filter(|line| line.trim_start().starts_with("#[derive("));
    derives.into_iter().any(|line| ["Parser", "Args", "Subcommand", "ValueEnum"].iter().any(|name| line.contains(name)))
}

/// Whether the line is a whole doc comment, of few words.
fn is_short_doc(lines: &[&str], at: usize) -> bool {
    let Some(words) = doc_words(lines[at]) else { return false };
    let continues = at > 0 && doc_words(lines[at - 1]).is_some();
    let is_continued = lines.get(at + 1).is_some_and(|next| doc_words(next).is_some());
    (1..=SHORT_DOC_WORDS).contains(&words) && !continues && !is_continued
}

fn doc_words(line: &str) -> Option<usize> {
    line.strip_prefix("///").map(|text| text.split_whitespace().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "crates/x/y/src/a.rs";
    const KNOWN: &[FigureRow] = &[row("crates/x/y", 1, 1, 1)];
    const ONE_OF_EACH: &str = "//! Purpose.\n/// Its name.\nfn a() -> (u32, u32) {\n    let f = |x| x;\n}\n";

    fn complaints_about(file: &str, text: &str) -> Vec<String> {
        let mut census = StyleCensus::default();
        census.add(file, text);
        let mut complaints = Vec::new();
        census.check_rows(KNOWN, &mut complaints);
        complaints
    }

    fn assert_planted(line: &str, what: &str) {
        let complaints = complaints_about(FILE, &format!("{ONE_OF_EACH}{line}\n"));
        assert_eq!(complaints.len(), 1, "{line}: {complaints:?}");
        assert!(complaints[0].starts_with(&format!("crates/x/y: 2 {what}")), "{complaints:?}");
    }

    #[test]
    fn a_planted_closure_tuple_or_short_doc_is_complained_about() {
        assert!(complaints_about(FILE, ONE_OF_EACH).is_empty());
        assert_planted("    let mut g = move |x: u32| {", "bound closures");
        assert_planted("    place: Option<(u32, u32)>,", "tuple types");
        assert_planted("    places: &'a [(u32, u32)],", "tuple types");
        assert_planted("    /// The place.\n    place: u32,", "doc comments");
    }

    #[test]
    fn a_crate_without_row_may_have_none() {
        assert_eq!(complaints_about("crates/z/src/lib.rs", ONE_OF_EACH).len(), 3);
        assert_eq!(complaints_about("z/build.rs", ONE_OF_EACH).len(), 3);
    }

    #[test]
    fn tests_help_texts_and_ends_of_comments_are_left_out() {
        let tests = format!("{ONE_OF_EACH}#[cfg(test)]\nmod tests {{\n    let g = |x| x;\n}}\n");
        assert!(complaints_about(FILE, &tests).is_empty());
        assert!(complaints_about(FILE, &format!("{ONE_OF_EACH}/// Why it is done\n/// like that.\n")).is_empty());
        assert!(complaints_about(FILE, &format!("{ONE_OF_EACH}// let f = |x| x; -> (\n")).is_empty());
        let help =
            "/// Its name\n/// \n#[derive(Parser)]\n/// One\n/// Two\nstruct A;\n/// Its place\n#[derive(Args)]\n";
        assert!(complaints_about(FILE, help).is_empty());
        assert!(complaints_about("crates/x/y/tests/a.rs", &ONE_OF_EACH.repeat(2)).is_empty());
    }

    #[test]
    fn every_row_names_a_crate_once() {
        for pair in ROWS.windows(2) {
            assert!(pair[0].krate < pair[1].krate, "{} is not before {}", pair[0].krate, pair[1].krate);
        }
        for row in ROWS {
            assert!(crate::paths::workspace().join(row.krate).join("Cargo.toml").is_file(), "{}", row.krate);
        }
    }
}
