//! The task `new-family`: the file, the lines and the case of a new patch family, which builds and has no effect yet.
//!
//! Invariants: nothing is written before every edit is known to fit; the lists stay sorted, as the build requires.
//!
//! Absent on purpose: families outside this workspace, which `install --family` links into the tools.

use crate::outcome::{During, Outcome, fail};
use crate::paths;
use clap::{Parser, ValueEnum};
use std::fs;
use std::path::{Path, PathBuf};

/// Writes the skeleton of a new patch family: source file, line of patches.def, and a test case.
#[derive(Parser)]
struct Options {
    /// Name of the family: a-z, 0-9 and _.
    name: String,
    /// The unit that one run of the family processes.
    #[arg(long, value_enum, default_value = "instruction")]
    scope: FamilyScope,
    /// The family's effect, in brief.
    #[arg(long, default_value = "not written yet")]
    summary: String,
    /// Directory of the crate that lists the families.
    #[arg(long, hide = true)]
    directory: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FamilyScope {
    /// One instruction, which is replaced.
    Instruction,
    /// The control flow of a function, into which instructions are inserted.
    Function,
    /// A linked code object outside its code.
    CodeObject,
}

impl FamilyScope {
    /// The spelling in `patches.def`.
    fn listed(self) -> &'static str {
        match self {
            Self::Instruction => "Instruction",
            Self::Function => "Function",
            Self::CodeObject => "CodeObject",
        }
    }

    fn template(self) -> &'static str {
        match self {
            Self::Instruction => include_str!("../templates/instruction.rs.txt"),
            Self::Function => include_str!("../templates/function.rs.txt"),
            Self::CodeObject => include_str!("../templates/code-object.rs.txt"),
        }
    }
}

pub(crate) fn main(arguments: Vec<String>) -> Outcome {
    let options = Options::parse_from(arguments);
    let directory = options.directory.clone().unwrap_or_else(|| paths::workspace().join("crates/retarget/families"));
    let written = create(&options, &directory)?;
    written.iter().for_each(|file| println!("wrote {}", file.display()));
    println!("Next: docs/guide/writing-a-family.md; `cargo xtask test --debug -p hotswap-families` runs its cases");
    Ok(())
}

/// Writes everything and returns the files.
fn create(options: &Options, directory: &Path) -> Outcome<Vec<PathBuf>> {
    let Options { name, scope, summary, .. } = options;
    check(name, summary)?;
    let (list, modules) = (directory.join("patches.def"), directory.join("src/family/mod.rs"));
    let source = directory.join(format!("src/family/{name}.rs"));
    let new_list = with_family(&read(&list)?, name, *scope, summary)?;
    let new_modules = with_line(&read(&modules)?, &format!("mod {name};"), |line| line.starts_with("mod "));
    let text = scope.template().replace("@name@", name).replace("@SLOT@", &name.to_ascii_uppercase());
    let mut files = vec![(source, text.replace("@summary@", summary)), (list, new_list), (modules, new_modules)];
    if *scope != FamilyScope::CodeObject {
        files.push((directory.join(format!("tests/code/{name}.s")), "s_endpgm\n".to_owned()));
        files.push((directory.join(format!("tests/code/{name}.expect")), "s_endpgm\n".to_owned()));
    }
    for (path, text) in &files {
        fs::create_dir_all(path.parent().unwrap_or(directory)).during("create", path)?;
        fs::write(path, text).during("write", path)?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

fn read(path: &Path) -> Outcome<String> {
    fs::read_to_string(path).during("read", path)
}

fn check(name: &str, summary: &str) -> Outcome {
    if !name.bytes().all(is_family_name_byte) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        return fail(format!("`{name}` is no name of a family: a-z, 0-9 and _, a letter first"));
    }
    if summary.is_empty() || summary.contains(['"', '\\', '\n']) {
        return fail("--summary is one line without quotes and backslashes");
    }
    Ok(())
}

fn is_family_name_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'
}

const MACRO: &str = "HOTSWAP_PATCH(";

/// The list with the family after all others of its scope in their order, and in its place by name.
fn with_family(list: &str, name: &str, scope: FamilyScope, summary: &str) -> Outcome<String> {
    if list.lines().any(|line| line.starts_with(&format!("{MACRO}{name},"))) {
        return fail(format!("patches.def lists `{name}` already"));
    }
    let in_scope = format!(", {}, ", scope.listed());
    let of_scope = list.lines().filter(|line| line.starts_with(MACRO)).filter_map(|line| line.split_once(&in_scope));
    let last = of_scope.filter_map(|(_, rest)| leading_order_number(rest)).max().unwrap_or(0);
    let line = format!("{MACRO}{name}, {}, {}, \"{summary}\")", scope.listed(), last + 1);
    Ok(with_line(list, &line, |line| line.starts_with(MACRO)))
}

fn leading_order_number(rest: &str) -> Option<u32> {
    rest.split(',').next()?.parse::<u32>().ok()
}

/// The text with one more line in its place among those that belong to the sorted list.
fn with_line(text: &str, new: &str, is_listed: impl Fn(&str) -> bool) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let behind = lines.iter().rposition(|line| is_listed(line) && line_sort_key(line) < line_sort_key(new));
    let first = lines.iter().position(|line| is_listed(line)).unwrap_or(lines.len());
    lines.insert(behind.map_or(first, |place| place + 1), new);
    lines.join("\n") + "\n"
}

fn line_sort_key(line: &str) -> String {
    line.split([',', ';']).next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_stay_sorted_and_orders_count_up() {
        let list = "// x\nHOTSWAP_PATCH(b, Instruction, 2, \"\")\nHOTSWAP_PATCH(d, Function, 7, \"\")\n";
        let with = |name, scope| with_family(list, name, scope, "it").unwrap();
        assert_eq!(
            with("c", FamilyScope::Function),
            list.replace("HOTSWAP_PATCH(d", "HOTSWAP_PATCH(c, Function, 8, \"it\")\nHOTSWAP_PATCH(d")
        );
        assert_eq!(
            with("a", FamilyScope::Instruction),
            list.replace("HOTSWAP_PATCH(b", "HOTSWAP_PATCH(a, Instruction, 3, \"it\")\nHOTSWAP_PATCH(b")
        );
        assert_eq!(with("e", FamilyScope::CodeObject), format!("{list}HOTSWAP_PATCH(e, CodeObject, 1, \"it\")\n"));
        assert!(with_family(list, "b", FamilyScope::Function, "").is_err());
        assert!(
            check("A", "x").is_err()
                && check("1a", "x").is_err()
                && check("a", "\"").is_err()
                && check("a_1", "x").is_ok()
        );
    }
}
