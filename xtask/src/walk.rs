//! The walk of docs/reference/walk.md: each function that it names is defined in the file that it names.

use crate::outcome::{During, Outcome};
use crate::paths;
use std::fs;

const PAGE: &str = "docs/reference/walk.md";
/// More is not a picture.
const MOST_STATIONS: usize = 20;

/// A row of the page's table.
struct Station<'t> {
    function: &'t str,
    file: &'t str,
}

/// Rows whose function is not in their file.
pub(crate) fn complaints() -> Outcome<Vec<String>> {
    let page = paths::workspace().join(PAGE);
    let text = fs::read_to_string(&page).during("read", &page)?;
    let stations: Vec<Station<'_>> = text.lines().filter_map(station_of_row).collect();
    let mut complaints = Vec::new();
    if stations.is_empty() || stations.len() > MOST_STATIONS {
        complaints.push(format!("{PAGE}: {} stations, not 1 to {MOST_STATIONS}", stations.len()));
    }
    for Station { function, file } in stations {
        let source = fs::read_to_string(paths::workspace().join(file)).unwrap_or_default();
        if !defines_function(&source, function) {
            complaints.push(format!("{PAGE}: {file} does not define `{function}`"));
        }
    }
    Ok(complaints)
}

/// `| 1 | ``function`` | ``file`` | text |`
fn station_of_row(line: &str) -> Option<Station<'_>> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    cells.next()?.parse::<usize>().ok()?;
    let function = cells.next()?.trim_matches('`');
    Some(Station { function, file: cells.next()?.trim_matches('`') })
}

fn defines_function(source: &str, function: &str) -> bool {
    ["(", "<"].iter().any(|next| source.contains(&format!("fn {function}{next}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_moved_is_noticed() {
        let station = station_of_row("| 3 | `judge` | `a/judge.rs` | decides |").expect("a row of the table");
        assert_eq!((station.function, station.file), ("judge", "a/judge.rs"));
        assert!(defines_function("pub fn judge<'a>(x: &'a str)", "judge"));
        assert!(!defines_function("fn judge_all() {} // fn judge", "judge"));
        assert!(station_of_row("| | function | file |").is_none());
    }
}
