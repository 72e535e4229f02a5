//! The table of the matrix in `docs/evidence/uses.md`, written after a run of all cells in which none was wrong.

use crate::matrix::{COMMANDS, Cell, Expected, FORMS};
use std::fs;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/evidence/uses.md");
const BEGIN: &str = "<!-- cells -->\n";
const END: &str = "<!-- /cells -->\n";

/// # Panics
/// If the page cannot be read or written, or has no place for the table.
pub(crate) fn write_table(cells: &[Cell]) {
    let page = fs::read_to_string(PAGE).expect("the page is readable");
    let (before, rest) = page.split_once(BEGIN).expect("the page has a mark for the table");
    let (_, after) = rest.split_once(END).expect("the page has a mark for the end of the table");
    fs::write(PAGE, format!("{before}{BEGIN}{}{END}{after}", table(cells))).expect("the page is writable");
}

fn table(cells: &[Cell]) -> String {
    let forms: Vec<&str> = FORMS.iter().map(|form| if form.end.is_empty() { "directory" } else { form.end }).collect();
    let mut text = format!("\n| command | {} |\n|{}\n", forms.join(" | "), " --- |".repeat(FORMS.len() + 1));
    for command in COMMANDS {
        let columns = FORMS.iter().map(|form| {
            let own: Vec<&Cell> =
                cells.iter().filter(|cell| cell.command.name == command.name && cell.form.end == form.end).collect();
            cell_text(&own)
        });
        text += &format!("| {} | {} |\n", command.name, columns.collect::<Vec<_>>().join(" | "));
    }
    text + "\n"
}

/// How many layouts work, and how many are refused.
fn cell_text(cells: &[&Cell]) -> String {
    let works = cells.iter().filter(|cell| matches!(cell.expected(), Expected::Works { .. })).count();
    match (works, cells.len() - works) {
        (0, 0) => "–".to_owned(),
        (works, 0) => format!("{works} work"),
        (0, refused) => format!("{refused} refused"),
        (works, refused) => format!("{works} work, {refused} refused"),
    }
}
