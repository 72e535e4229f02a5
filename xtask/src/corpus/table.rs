//! `docs/evidence/corpus.md`: one part for each package, so that one can be made again without the others.

use super::file::Row;
use crate::outcome::{During, Outcome};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const HEAD: &str = "# What packages hold, and what HotSwap makes of it

For packagers and reviewers: what HotSwap's commands do with the files of packages and wheels, package by package.

Written by `cargo xtask corpus`. Each file with device code was listed, verified, unbundled and compared with the
output of clang-offload-bundler (*compared*), compressed, pruned and retargeted; each output was verified, and loaded where
the file itself can be loaded in the userland (*loaded*). *Wrong* counts outputs that contradict another tool or do not verify; what
was refused, and why, is listed below each table. *Time* is the time of making all outputs, as a multiple of the time of as many copies by `cp`.
";

/// Writes the part of a package, and leaves those of other packages.
pub(super) fn update(path: &Path, title: &str, rows: &[(String, Row)]) -> Outcome {
    let old = fs::read_to_string(path).unwrap_or_default();
    let mut parts = parts(&old);
    parts.insert(title.to_owned(), part(rows));
    let text: String = parts.iter().map(|(title, part)| format!("\n## {title}\n\n{part}")).collect();
    fs::write(path, format!("{HEAD}{text}")).during("write", path)
}

fn parts(text: &str) -> BTreeMap<String, String> {
    let parts = text.split("\n## ").skip(1).filter_map(|part| part.split_once("\n\n"));
    parts.map(|(title, part)| (title.to_owned(), part.to_owned())).collect()
}

fn part(rows: &[(String, Row)]) -> String {
    if rows.is_empty() {
        return "No file of it holds device code.\n".to_owned();
    }
    let mut out = "| file | files | MB | containers | images | compared | wrong | made | loaded | list, ms | time | MB of memory |\n\
                   | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for (name, row) in rows {
        let made: Vec<&str> = row.made.iter().map(String::as_str).collect();
        let ratio = if row.times[2] > 0.0 { format!("× {:.1}", row.times[1] / row.times[2]) } else { "-".to_owned() };
        out += &format!(
            "| {name} | {} | {:.1} | {} | {} | {} | {} | {} | {} | {:.0} | {ratio} | {} |\n",
            row.files,
            row.bytes as f64 / 1e6,
            row.containers,
            row.images,
            row.compared,
            row.wrong.len(),
            made.join(", "),
            row.loaded,
            row.times[0],
            row.memory / 1024,
        );
    }
    let told: String = rows
        .iter()
        .map(|(name, row)| {
            shortened_line_list("wrong", name, &mut row.wrong.iter())
                + &shortened_line_list("refused", name, &mut row.refused.iter())
        })
        .collect();
    if told.is_empty() { out } else { format!("{out}\n{told}") }
}

fn shortened_line_list(kind: &str, name: &str, all: &mut dyn Iterator<Item = &String>) -> String {
    let lines: Vec<&String> = all.collect();
    let more = lines.len().saturating_sub(SHOWN);
    let shown: String = lines.iter().take(SHOWN).map(|line| format!("- {name}, {kind}: {line}\n")).collect();
    if more > 0 { format!("{shown}- {name}, {kind}: {more} more\n") } else { shown }
}

/// Lines of one kind that are shown of a file.
const SHOWN: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_replaced_and_the_others_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("corpus.md");
        let row = |files| vec![("x.so".to_owned(), Row { files, ..Row::default() })];
        update(&path, "b 1", &row(7)).unwrap();
        update(&path, "a 1", &[]).unwrap();
        let both = fs::read_to_string(&path).unwrap();
        assert!(both.find("## a 1").unwrap() < both.find("## b 1").unwrap() && both.contains("| x.so | 7 |"));
        update(&path, "b 1", &row(8)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), both.replace("| x.so | 7 |", "| x.so | 8 |"));
    }
}
