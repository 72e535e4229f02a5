//! Each sentence of `docs/guide/compiler.md` and of `SECURITY.md`, and each row of their tables, has a line in `promises.txt` or
//! `security-promises.txt` with the tests that show it.
//!
//! Blocks of commands are no promises: `cargo xtask readme` runs them and compares their output.
//!
//! Invariants: a sentence without a line, a line whose sentence is gone or has changed, and a test that does not exist are
//! failures. A sentence that promises nothing says so, with the reason.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A page and the table of its promises.
struct PromisePage {
    page: &'static str,
    table: &'static str,
    text: &'static str,
    /// Promises that it has at least: the page is read as it is meant.
    at_least: usize,
}

const PAGES: [PromisePage; 2] = [
    PromisePage {
        page: "docs/guide/compiler.md",
        table: "promises.txt",
        text: include_str!("promises.txt"),
        at_least: 150,
    },
    PromisePage {
        page: "SECURITY.md",
        table: "security-promises.txt",
        text: include_str!("security-promises.txt"),
        at_least: 35,
    },
];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The sentences and rows of a page.
fn promises(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut paragraph, mut is_code) = (String::new(), false);
    for line in without_comments(page).lines().map(str::trim).chain([""]) {
        if line.starts_with("```") {
            is_code = !is_code;
            continue;
        }
        let begins_item = line.starts_with("- ");
        if is_code || line.is_empty() || line.starts_with(['#', '|']) || begins_item {
            found.extend(sentences(&paragraph));
            paragraph.clear();
        }
        match line.strip_prefix("- ").unwrap_or(line) {
            row if row.starts_with('|') => found.extend(row_promise(row)),
            heading if is_code || heading.starts_with('#') => {}
            text => paragraph = format!("{paragraph} {text}"),
        }
    }
    found
}

fn without_comments(page: &str) -> String {
    let mut parts = page.split("<!--");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once("-->").map_or("", |(_, rest)| rest))
}

/// The row's first cell with a text; nothing for the line below a table's head. Bars in a cell are escaped.
fn row_promise(row: &str) -> Option<String> {
    let row = row.replace("\\|", "/");
    let first = row.split('|').map(str::trim).find(|cell| !cell.is_empty())?;
    (!first.starts_with("---")).then(|| format!("| {first}"))
}

/// A sentence ends with a mark before a blank and the beginning of another one.
fn sentences(paragraph: &str) -> Vec<String> {
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    let (mut found, mut sentence) = (Vec::new(), String::new());
    for (at, word) in words.iter().enumerate() {
        sentence = if sentence.is_empty() { (*word).to_owned() } else { format!("{sentence} {word}") };
        let begins = |next: &&str| next.starts_with(|first: char| first.is_uppercase() || "`(*".contains(first));
        let is_end = word.ends_with(['.', ':']) || word.ends_with(".)");
        if is_end && words.get(at + 1).is_none_or(begins) {
            found.push(std::mem::take(&mut sentence));
        }
    }
    found.extend(Some(sentence).filter(|rest| !rest.is_empty()));
    found
}

/// The test or the other reason by which a promise is true.
enum Evidence<'t> {
    /// A test function, or a row of a test's table in quotes.
    Test { file: &'t str, name: &'t str },
    /// There is nothing to show.
    Nothing { reason: &'t str },
}

/// The table: a sentence in a line of its own, and below it, indented, its evidence.
fn table(text: &str) -> BTreeMap<&str, Vec<Evidence<'_>>> {
    let mut found: BTreeMap<&str, Vec<Evidence<'_>>> = BTreeMap::new();
    let mut promise = None;
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some(evidence) = line.strip_prefix("  ") else {
            assert!(found.insert(line, Vec::new()).is_none(), "twice in the table: {line}");
            promise = Some(line);
            continue;
        };
        let (file, name) = evidence.split_once(' ').unwrap_or((evidence, ""));
        let evidence =
            if file == "nothing:" { Evidence::Nothing { reason: name } } else { Evidence::Test { file, name } };
        let promise = promise.expect("evidence without a promise");
        found.get_mut(promise).expect("the promise is in the table").push(evidence);
    }
    found
}

/// Why the evidence shows nothing.
fn fault(root: &Path, evidence: &Evidence<'_>) -> Option<String> {
    match evidence {
        Evidence::Nothing { reason } => reason.is_empty().then(|| "no reason".to_owned()),
        Evidence::Test { file, name } => {
            let Ok(source) = fs::read_to_string(root.join(file)) else { return Some(format!("{file} is absent")) };
            (name.is_empty() || !is_in(&source, name)).then(|| format!("{file} has no {name}"))
        }
    }
}

/// A name in quotes is a part of the source, another one a test function.
fn is_in(source: &str, name: &str) -> bool {
    if name.starts_with('"') {
        return name.len() > 2 && source.contains(name.trim_matches('"'));
    }
    let head = format!("fn {name}(");
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let mut functions = lines.iter().enumerate().filter(|(_, line)| line.contains(&head));
    functions.any(|(at, _)| lines[at.saturating_sub(3)..at].contains(&"#[test]"))
}

/// The faults of a page and its table.
fn faults(root: &Path, page: &str, text: &str) -> Vec<String> {
    let (promises, table) = (promises(page), table(text));
    let without = promises.iter().filter(|promise| !table.contains_key(promise.as_str()));
    let mut found: Vec<String> = without.map(|promise| format!("no line for: {promise}")).collect();
    for (promise, evidence) in &table {
        if !promises.iter().any(|there| there == promise) {
            found.push(format!("not on the page: {promise}"));
        }
        if evidence.is_empty() {
            found.push(format!("no test for: {promise}"));
        }
        found
            .extend(evidence.iter().filter_map(|one| fault(root, one)).map(|fault| format!("{fault}, for: {promise}")));
    }
    found
}

#[test]
fn each_promise_of_the_pages_has_a_test() {
    let root = workspace();
    for PromisePage { page, table, text, at_least } in PAGES {
        let content = fs::read_to_string(root.join(page)).expect("the page can be read");
        let found = faults(&root, &content, text);
        assert!(found.is_empty(), "{page} and {table}:\n{}", found.join("\n"));
        assert!(promises(&content).len() >= at_least, "{page}");
    }
}

#[test]
fn lost_sentences_and_absent_tests_are_found() {
    let page = "# Head\n\nOne is so. Two is\nso (`x`):\n\n```sh\nThree. Four.\n```\n\n- Five.\n| Six | is |\n| --- | --- |\n<!-- Seven. -->\n";
    assert_eq!(promises(page), ["One is so.", "Two is so (`x`):", "Five.", "| Six"]);
    let good = "One is so.\n  tests/harness/tests/promises.rs each_promise_of_the_pages_has_a_test\n\
        Two is so (`x`):\n  nothing: it begins a list\nFive.\n  Cargo.toml \"[workspace]\"\n| Six\n  nothing: a head\n";
    let root = workspace();
    assert_eq!(faults(&root, page, good), [""; 0]);
    for (from, to, fault) in [
        ("Five.\n", "Fine.\n", "no line for: Five."),
        ("Five.\n", "Fine.\n", "not on the page: Fine."),
        ("each_promise_of", "a_promise_of", "has no a_promise_of"),
        ("[workspace]", "[no such table]", "has no \"[no such table]\""),
        ("tests/promises.rs", "tests/absent.rs", "absent.rs is absent"),
        ("a head", "", "no reason"),
        ("  nothing: a head\n", "", "no test for: | Six"),
        // A function that is no test.
        ("each_promise_of_the_pages_has_a_test", "without_comments", "has no without_comments"),
    ] {
        let found = faults(&root, page, &good.replace(from, to));
        assert!(found.iter().any(|found| found.contains(fault)), "{fault}: {found:?}");
    }
}
