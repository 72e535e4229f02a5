//! Parts of docs/evidence/benchmarks.md that tasks of their own write, each between two marks with its name.

use crate::outcome::{During, Outcome};
use crate::paths;
use std::fs;

const PAGE: &str = "docs/evidence/benchmarks.md";
/// The parts in the order of the page.
const PARTS: [&str; 3] = ["many", "files", "project"];

/// Replaces the part with that name; the others keep their text.
pub(crate) fn write_part(name: &str, table: &str) -> Outcome {
    let page = paths::workspace().join(PAGE);
    let text = fs::read_to_string(&page).during("read", &page)?;
    fs::write(&page, with_part(&text, name, table)).during("write", &page)?;
    println!("\nThe table is in {}", page.display());
    Ok(())
}

/// The parts of the page, for the task that writes the rest of it.
pub(crate) fn written_parts(page: &str) -> String {
    PARTS.iter().map(|name| written_part(page, name)).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn with_part(page: &str, name: &str, table: &str) -> String {
    let before = PARTS.iter().filter_map(|part| page.find(&opening_mark(part))).min();
    let before = page[..before.unwrap_or(page.len())].trim_end();
    let mut text = format!("{before}\n");
    for part in PARTS {
        let new = format!("{}{table}{}", opening_mark(part), closing_mark(part));
        let part = if part == name { &new } else { written_part(page, part) };
        if !part.is_empty() {
            text += &format!("\n{part}");
        }
    }
    text
}

fn written_part<'p>(page: &'p str, name: &str) -> &'p str {
    let last = closing_mark(name);
    match (page.find(&opening_mark(name)), page.find(&last)) {
        (Some(start), Some(end)) if start < end => &page[start..end + last.len()],
        _ => "",
    }
}

fn opening_mark(name: &str) -> String {
    format!("<!-- {name} -->\n")
}

fn closing_mark(name: &str) -> String {
    format!("<!-- /{name} -->\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_replaced_and_the_others_stay() {
        let page = with_part("# Page\n\ntext\n", "project", "p\n");
        assert_eq!(page, "# Page\n\ntext\n\n<!-- project -->\np\n<!-- /project -->\n");
        let page = with_part(&page, "files", "f\n");
        assert_eq!(
            page,
            "# Page\n\ntext\n\n<!-- files -->\nf\n<!-- /files -->\n\n<!-- project -->\np\n<!-- /project -->\n"
        );
        let page = with_part(&page, "project", "q\n");
        assert!(
            page.starts_with("# Page\n\ntext\n\n<!-- files -->\nf\n") && page.ends_with("-->\nq\n<!-- /project -->\n")
        );
        assert_eq!(written_parts(&page), page["# Page\n\ntext\n\n".len()..]);
        assert_eq!(written_parts("# Page\n"), "");
    }
}
