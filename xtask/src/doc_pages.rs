//! The pages of `docs`: each begins with the sentence that says who it is for, and every file of `docs` that a text names exists.
//!
//! Absent on purpose: links between pages with their anchors (a test of `readme.rs`), and links of the book (`book.rs`).

use crate::paths;
use std::path::Path;

/// The directories of the pages, and the page that names them.
const PARTS: [&str; 4] = ["docs/guide/", "docs/reference/", "docs/evidence/", "docs/README.md"];

/// The page that a run of all tests writes, which is not committed.
const WRITTEN_LATER: &str = "docs/evidence/full-run.md";

/// The first words of a page.
const OPENING: &str = "For ";

pub(crate) fn check_text(name: &str, text: &str, complaints: &mut Vec<String>) {
    if PARTS.iter().any(|part| name.starts_with(part)) && name.ends_with(".md") && !has_opening(text) {
        complaints.push(format!("{name}: does not open with the sentence that says who it is for (`{OPENING}…`)"));
    }
    for (number, line) in text.lines().enumerate() {
        let missing = named_files(line).filter(|file| !exists(paths::workspace(), file));
        complaints.extend(missing.map(|file| format!("{name}:{}: {file} does not exist", number + 1)));
    }
}

/// Whether the first paragraph below the heading and comments says who the page is for.
fn has_opening(text: &str) -> bool {
    let mut lines = text.lines().skip(1).filter(|line| !line.is_empty() && !line.starts_with("<!--"));
    lines.next().is_some_and(|line| line.starts_with(OPENING))
}

/// The texts below `docs` that a line names, from the workspace or relative to another directory.
fn named_files(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|letter: char| letter.is_whitespace() || "`'\"()[]<>,;:#|".contains(letter));
    let words = words.map(|word| word.trim_start_matches(['.', '/']).trim_end_matches('.'));
    words.filter(|word| word.starts_with("docs/") && (word.ends_with(".md") || word.ends_with(".txt")))
}

fn exists(workspace: &Path, file: &str) -> bool {
    file == WRITTEN_LATER || workspace.join(file).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_without_an_opening_and_absent_pages_are_found() {
        assert!(has_opening("# Pairs\n\n<!-- Written. -->\n\nFor users: pairs.\n\nText.\n"));
        assert!(!has_opening("# Pairs\n\nText.\n\nFor users: pairs.\n"));
        let absent = ["docs", "/guide/absent.md"].concat();
        let line =
            format!("see `{absent}`, [x](../../docs/guide/cmake.md#a), ({absent}). \"/../docs/evidence/full-run.md\"");
        let found: Vec<&str> = named_files(&line).filter(|file| !exists(paths::workspace(), file)).collect();
        assert_eq!(found, [&absent, &absent]);
        let mut complaints = Vec::new();
        check_text("docs/guide/cmake.md", &format!("# X\n\n{absent}\n"), &mut complaints);
        assert_eq!(complaints.len(), 2, "{complaints:?}");
    }
}
