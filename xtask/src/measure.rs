//! The task `measure`: figures of the source text, to compare two trees: sizes, names of types, words of comments, and
//! modules that import each other in a circle.
//!
//! Invariants: only tracked Rust files outside of tests, fuzz targets and xtask count; the figures are the same on every
//! machine.
//!
//! Not here: rules. `cargo xtask tidy` has those.

use crate::outcome::{During, Outcome};
use crate::tidy::{comment, defined_type, functions, is_no_letter, is_product};
use crate::{paths, sources};
use clap::Parser;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Prints figures of the source text.
#[derive(Parser)]
struct Options {
    /// Another checkout, for figures before a change.
    #[arg(long, value_name = "DIRECTORY")]
    tree: Option<PathBuf>,
}

/// Words of comments that are counted.
const WORDS: &[&str] =
    &["nobody", "somebody", "whoever", "who", "told", "behind", "stands", "lies", "goes", "folder", "directory"];

/// One source file: its crate and module, and its text.
struct Source {
    crate_name: String,
    module: String,
    text: String,
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let tree = Options::parse_from(words).tree.unwrap_or_else(|| paths::workspace().to_owned());
    let sources = sources(&tree)?;
    sizes(&sources);
    type_names(&sources);
    comments(&sources);
    circles(&sources);
    places(&tree)
}

fn sources(tree: &Path) -> Outcome<Vec<Source>> {
    let read = |name: &str| {
        let path = tree.join(name);
        let (crate_name, module) = name.split_once("/src/").unwrap_or((name, ""));
        let module = module.split(['/', '.']).next().unwrap_or_default();
        let text = fs::read_to_string(&path).during("read", &path)?;
        Ok(Source { crate_name: crate_name.to_owned(), module: module.to_owned(), text })
    };
    let files = sources::tracked_files(tree)?;
    files.iter().map(String::as_str).filter(|name| is_product(name)).map(read).collect()
}

fn row(name: &str, value: impl std::fmt::Display) {
    println!("{name:<44} {value}");
}

fn sizes(sources: &[Source]) {
    let lines: usize = sources.iter().map(|source| source.text.lines().count()).sum();
    let mut lengths = Vec::new();
    for source in sources {
        let code: Vec<&str> = source.text.lines().take_while(|line| *line != "#[cfg(test)]").collect();
        lengths.extend(functions(&code).into_iter().map(|(_, _, length)| length));
    }
    row("files", sources.len());
    row("lines", lines);
    row("functions", lengths.len());
    row("functions of more than 25 lines", lengths.iter().filter(|length| **length > 25).count());
    row("lines of the longest function", lengths.iter().max().copied().unwrap_or_default());
}

fn type_names(sources: &[Source]) {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for name in sources.iter().flat_map(|source| source.text.lines()).filter_map(defined_type) {
        *places.entry(name).or_default() += 1;
    }
    let one_word = places.keys().filter(is_single_word_type).count();
    row("names of types", places.len());
    row("of one word, percent", format!("{:.0}", 100.0 * one_word as f64 / places.len().max(1) as f64));
    row("defined in more than two places", places.values().filter(|count| **count > 2).count());
    let most = places.iter().max_by_key(|(_, count)| **count);
    row("most often defined", most.map_or_else(String::new, |(name, count)| format!("{name} ({count})")));
}

fn is_single_word_type(name: &&&str) -> bool {
    name.chars().filter(|c| c.is_uppercase()).count() == 1
}

fn comments(sources: &[Source]) {
    let lines = sources.iter().flat_map(|source| source.text.lines());
    let texts: Vec<&str> = lines.map(comment).filter(|text| !text.is_empty()).collect();
    row("lines of comments", texts.len());
    row(
        "of 1,000: open with `What`",
        rate_per_thousand(texts.iter().filter(|text| text.starts_with("What ")).count(), &texts),
    );
    for word in WORDS {
        row(
            &format!("of 1,000: hold `{word}`"),
            rate_per_thousand(texts.iter().filter(|one| comment_holds_word(one, word)).count(), &texts),
        );
    }
}

fn rate_per_thousand(count: usize, texts: &[&str]) -> String {
    format!("{:.1}", 1000.0 * count as f64 / texts.len().max(1) as f64)
}

fn comment_holds_word(text: &&&str, word: &str) -> bool {
    text.split(is_no_letter).any(|part| part.eq_ignore_ascii_case(word))
}

fn circles(sources: &[Source]) {
    let counts = circle_sizes(sources);
    row("modules in circles of imports", counts.values().sum::<usize>());
    counts.iter().for_each(|(name, count)| row(&format!("  {name}"), count));
}

/// A complaint for each crate whose modules import each other.
pub(crate) fn circle_complaints() -> Outcome<Vec<String>> {
    let sources = sources(paths::workspace())?;
    let counts = circle_sizes(&sources);
    Ok(counts.into_iter().map(circle_complaint_text).collect())
}

fn circle_complaint_text((name, count): (&str, usize)) -> String {
    format!("{name}: {count} modules import each other in a circle")
}

/// Numbers of modules of a crate that import each other, directly or through others.
fn circle_sizes(sources: &[Source]) -> BTreeMap<&str, usize> {
    let mut imports: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for source in sources {
        let own = imports.entry((&source.crate_name, &source.module)).or_default();
        own.extend(imported(&source.text).into_iter().filter(|module| *module != source.module));
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (crate_name, module) in imports.keys() {
        let is_root = ["lib", "main"].contains(module);
        if !is_root && reaches_itself(&imports, crate_name, module) {
            *counts.entry(crate_name).or_default() += 1;
        }
    }
    counts
}

/// Top modules of the own crate that a text names by `crate::`, alone or in a list of braces.
fn imported(text: &str) -> Vec<&str> {
    let mut modules = Vec::new();
    for (at, path) in text.match_indices("crate::") {
        let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
        if !text[line..].trim_start().starts_with("//") {
            let rest = &text[at + path.len()..];
            modules.extend(rest.strip_prefix('{').map_or_else(|| vec![first_word(rest)], listed));
        }
    }
    modules.retain(|module| !module.is_empty());
    modules
}

/// The first words of a list's entries; the list ends with its brace.
fn listed(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut entries) = (0_usize, 0, Vec::new());
    for (at, character) in list.char_indices() {
        match character {
            ',' | '}' if depth == 0 => {
                entries.push(first_word(&list[start..at]));
                start = at + 1;
                if character == '}' {
                    break;
                }
            }
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    entries
}

fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

fn reaches_itself(imports: &BTreeMap<(&str, &str), BTreeSet<&str>>, crate_name: &str, module: &str) -> bool {
    let (mut seen, mut work) = (BTreeSet::new(), vec![module]);
    while let Some(next) = work.pop() {
        for target in imports.get(&(crate_name, next)).into_iter().flatten() {
            if *target == module {
                return true;
            }
            if seen.insert(*target) {
                work.push(target);
            }
        }
    }
    false
}

/// Tables of the product, and how their rows name things: the file, the text before a name, the text after it.
const TABLES: &[(&str, &str, &str, &str)] = &[
    ("an option of a plan", "crates/base/plan/src/options.rs", "copy: |plan, other| ", ""),
    ("a container", "crates/containers/bundle/src/contents.rs", "&", "]"),
    ("a family", "crates/retarget/families/patches.def", "HOTSWAP_PATCH(", ","),
    ("a GPU", "crates/amdgpu/targets/src/table.rs", "native(\"", "\""),
];

/// Files of the product that name a row of a table: what a new row touches.
fn places(tree: &Path) -> Outcome {
    let files = product_files(tree)?;
    for (what, table, before, after) in TABLES {
        let Ok(text) = fs::read_to_string(tree.join(table)) else { continue };
        let mut counts: Vec<(usize, String)> = rows_of(what, &text, before, after)
            .into_iter()
            .map(|name| (files.iter().filter(|text| holds_word(text, &name)).count(), name))
            .collect();
        counts.sort();
        let middle = counts.get(counts.len() / 2).map_or(0, |(count, _)| *count);
        let most = counts.last().map_or_else(String::new, |(count, name)| format!("{count} ({name})"));
        row(&format!("files that name {what}: median, most"), format!("{middle}, {most}"));
    }
    Ok(())
}

/// Sources of the product in every language; no tests, no pages.
fn product_files(tree: &Path) -> Outcome<Vec<String>> {
    let listed = sources::tracked_files(tree)?;
    Ok(listed
        .iter()
        .map(String::as_str)
        .filter(is_source_document)
        .filter_map(|name| fs::read_to_string(tree.join(name)).ok())
        .collect())
}

fn is_source_document(name: &&str) -> bool {
    is_product(&format!("{name}.rs")) && !name.ends_with(".md")
}

/// The names in a table. The containers are the rows of `FORMATS`.
fn rows_of(what: &str, text: &str, before: &str, after: &str) -> Vec<String> {
    if what == "a container" {
        let rows = text.split_once("FORMATS: ").and_then(|(_, rest)| rest.split_once("&[&")?.1.split_once("];"));
        return rows.map_or_else(Vec::new, |(rows, _)| rows.split(", &").map(str::to_owned).collect());
    }
    let lines = text.lines().filter(|line| !line.starts_with("//"));
    let named = lines.filter_map(|line| Some(line.split_once(before)?.1));
    named
        .map(|rest| {
            if after.is_empty() {
                leading_field_path(rest)
            } else {
                rest.split(after).next().unwrap_or_default().to_owned()
            }
        })
        .collect()
}

/// An option is named where the field that holds it is read or written: `plan.FIELD`.
fn leading_field_path(rest: &str) -> String {
    let parts: Vec<&str> = rest.split(|c: char| is_no_letter(c) && c != '_').take(2).collect();
    parts.join(".")
}

fn holds_word(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        is_word_boundary(text[..at].chars().next_back()) && is_word_boundary(text[at + name.len()..].chars().next())
    })
}

fn is_word_boundary(c: Option<char>) -> bool {
    c.is_none_or(is_no_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_that_import_each_other_are_a_circle() {
        let imports = BTreeMap::from([
            (("a", "one"), BTreeSet::from(["two"])),
            (("a", "two"), BTreeSet::from(["one"])),
            (("a", "three"), BTreeSet::from(["one"])),
        ]);
        let in_circle = |module| reaches_itself(&imports, "a", module);
        assert_eq!([in_circle("one"), in_circle("two"), in_circle("three")], [true, true, false]);
        let text = "use crate::{one, x::{a, b}, y::C,\n    z};\n// crate::no\ncrate::two::f()";
        assert_eq!(imported(text), ["one", "x", "y", "z", "two"]);
    }
}
