//! The example commits of CONTRIBUTING.md: each one changes a file that its row names.
//!
//! Crates have moved into groups since, so a path counts from its crate on, and a name without a directory by itself. Without the history (a source package, a shallow
//! clone) nothing is judged.

use crate::paths;
use std::process::Command;

/// Endings of the files that a row may name.
const ENDINGS: [&str; 4] = [".rs", ".def", ".toml", ".isa"];

/// A row of the table with its commit.
struct ExampleRow<'t> {
    text: &'t str,
    commit: &'t str,
}

pub(crate) fn check_text(name: &str, text: &str, complaints: &mut Vec<String>) {
    if name != "CONTRIBUTING.md" || !has_history() {
        return;
    }
    let wrong = text.lines().filter_map(example_row).filter(|row| !changes_named_file(row));
    complaints
        .extend(wrong.map(|row| format!("{name}: `{}` changes no file that its row names: {}", row.commit, row.text)));
}

/// A line of the table whose last column is a commit.
fn example_row(line: &str) -> Option<ExampleRow<'_>> {
    let last = line.trim_end_matches([' ', '|']).rsplit('|').next()?.trim();
    let commit = last.strip_prefix('`')?.strip_suffix('`')?;
    let is_hash = commit.len() >= 7 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hash && line.starts_with('|')).then_some(ExampleRow { text: line, commit })
}

fn changes_named_file(row: &ExampleRow<'_>) -> bool {
    let named: Vec<&str> = named_files(row.text).collect();
    git_lines(&["show", "--format=", "--name-only", row.commit])
        .is_some_and(|changed| changed.lines().any(|file| named.iter().any(|name| is_named(file, name))))
}

/// The files of a row, from their crates on.
fn named_files(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| letter.is_whitespace() || "`'()[]{}|;,".contains(letter));
    words
        .map(from_crate)
        .filter(|word| ENDINGS.iter().any(|ending| word.len() > ending.len() && word.ends_with(ending)))
}

/// The path without `crates` and the group of the crate.
fn from_crate(path: &str) -> &str {
    path.strip_prefix("crates/").and_then(|rest| rest.split_once('/')).map_or(path, |(_, rest)| rest)
}

fn is_named(changed: &str, name: &str) -> bool {
    changed.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

fn has_history() -> bool {
    git_lines(&["rev-parse", "--is-shallow-repository"]).is_some_and(|answer| answer.trim() == "false")
}

/// The output of git; `None` where it fails.
fn git_lines(words: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(paths::workspace()).args(words).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_name_their_files_and_commits() {
        let row = example_row(
            "| a GPU | [page](docs/guide/new-gpu.md): a row of `crates/amdgpu/x/src/table.rs` | `87b53bf1` |",
        )
        .unwrap();
        assert_eq!((row.commit, named_files(row.text).collect::<Vec<_>>()), ("87b53bf1", vec!["x/src/table.rs"]));
        assert!(is_named("crates/x/src/table.rs", "x/src/table.rs") && is_named("a/table.rs", "table.rs"));
        assert!(!is_named("crates/y/src/table.rs", "x/src/table.rs") && !is_named("a/vtable.rs", "table.rs"));
        assert!(example_row("| a | b | `no commit` |").is_none() && example_row("text `87b53bf1`").is_none());
    }

    #[test]
    fn a_commit_that_changes_other_files_is_found() {
        if !has_history() {
            return;
        }
        let mut complaints = Vec::new();
        let table = "| a | `absent.rs` | `87b53bf1` |\n| b | `absent.rs` | `0000000` |\n";
        check_text("CONTRIBUTING.md", table, &mut complaints);
        assert_eq!(complaints.len(), 2, "{complaints:?}");
    }
}
