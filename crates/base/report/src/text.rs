//! Tables of text, and escaping of names that come from files.

pub use crate::escape_control as plain;

/// Wider cells (names out of damaged files) overflow instead of widening their column.
const WIDEST: usize = 200;

/// Columns as wide as their widest cell, two blanks between them, none at the end of a line.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns).map(|column| column_width(rows, column)).collect();
    rows.iter().map(|row| padded_line(row, &widths)).collect()
}

fn column_width(rows: &[Vec<String>], column: usize) -> usize {
    let cells = rows.iter().filter_map(|row| row.get(column));
    cells.map(|cell| cell.chars().count()).filter(|width| *width <= WIDEST).max().unwrap_or_default()
}

fn padded_line(row: &[String], widths: &[usize]) -> String {
    let cells = row.iter().zip(widths).map(|(cell, &width)| format!("{cell:<width$}"));
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
}

/// A word that a shell takes as this text, whatever characters are in it.
pub fn shell_word(text: &str) -> String {
    if !text.contains(char::is_control) {
        return shell_words::quote(text).into_owned();
    }
    format!("$'{}'", text.chars().map(escaped_shell_char).collect::<String>())
}

/// Control characters would move the cursor of a terminal; `$'…'` is in POSIX since 2024, and in all usual shells.
fn escaped_shell_char(c: char) -> String {
    match c {
        '\'' | '\\' => format!("\\{c}"),
        c if c.is_control() => c.to_string().bytes().map(|byte| format!("\\{byte:03o}")).collect(),
        c => c.to_string(),
    }
}

/// A number of things.
pub fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// A decimal or hexadecimal number of the command line.
pub fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|error| format!("{error}; write decimal or 0x and hexadecimal digits"))
}

/// JSON for standard output.
pub fn json(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_words_as_they_are() {
        for text in ["plain/x.deb", "a b", "o/a;touch x.deb", "it's", "$(x)`y`", "a\nb\x1b[2J'\\", "", "-x", "\u{85}"] {
            let script = format!("printf %s {}", shell_word(text));
            let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text, "{script}");
        }
    }

    #[test]
    fn columns_line_up_and_lines_end_without_blanks() {
        let rows = [vec!["a".into(), "bb".into(), String::new()], vec!["ccc".into(), "d".into(), "e".into()]];
        assert_eq!(table(&rows), "a    bb\nccc  d   e\n");
        let long = "x".repeat(100_000);
        assert_eq!(
            table(&[vec![long.clone(), "a".into()], vec!["b".into(), "c".into()]]),
            format!("{long}  a\nb  c\n")
        );
        assert_eq!(plain("a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\n");
    }
}
