//! The task `tidy`: rules of this project that the compiler does not check.
//!
//! Function lengths rely on rustfmt's indentation, which `test` checks beside this.

use crate::arrows::ALLOWED;
use crate::outcome::{During, Outcome, fail};
use crate::{
    architecture, doc_pages, example_commits, exhaustive, fuzz_targets, ignored_reads, install, licences, measure,
    minimum, paths, registry, sources, started_programs, style_figures, walk,
};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};
use hotswap_userland::{ENV_BLESS, SKIPPED};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const FILE_LINES: usize = 600;
const FUNCTION_LINES: usize = 80;
/// One name stands for a type of at most so many modules.
const TYPE_NAME_FILES: usize = 2;
const LICENSE: &str = "Apache-2.0 WITH LLVM-exception";

const CMAKE_VERSION: &str = "cmake/HotSwapConfigVersion.cmake";

/// Files that may be long, with the reason.
const LONG_FILES: &[(&str, &str)] = &[];

/// Text that no file may contain, in two halves so that this table does not: registry hosts come from the machine's
/// configuration, and paths of one machine are meaningless on another.
#[rustfmt::skip]
const BANNED: &[(&str, &str)] = &[
    ("deb.", "debian.org"), ("snapshot.", "debian.org"), ("files.", "pythonhosted.org"), ("pypi", ".org"),
    ("registry.", "npmjs.org"), ("index.", "crates.io"), ("static.", "crates.io"), ("/ro", "ot/"), ("/wo", "rk/"),
    ("/tm", "p/w/"),
];

/// The page that says which words are retired.
const GLOSSARY: &str = "docs/reference/glossary.md";

const GENERATED: &[&str] = &["Cargo.lock"];

pub(crate) fn main(_: Vec<String>) -> Outcome {
    check()?;
    println!("tidy: nothing to complain about");
    Ok(())
}

/// Checks everything; the failure lists all complaints.
pub(crate) fn check() -> Outcome {
    let mut complaints = Vec::new();
    let metadata = MetadataCommand::new().current_dir(paths::workspace()).no_deps().exec()?;
    check_packages(&metadata, &mut complaints);
    check_cmake_version(&metadata, &mut complaints)?;
    complaints.extend(architecture::complaints(&metadata)?);
    complaints.extend(minimum::complaints()?);
    complaints.extend(fuzz_targets::complaints(&metadata)?);
    complaints.extend(walk::complaints()?);
    complaints.extend(licences::Crates::of(paths::workspace(), install::PACKAGES)?.denied(paths::workspace())?);
    let glossary = paths::workspace().join(GLOSSARY);
    let retired = retired_words(&fs::read_to_string(&glossary).during("read", &glossary)?);
    let mut types = TypeNames::default();
    let mut styles = style_figures::StyleCensus::default();
    for name in sources::committable_files(paths::workspace())? {
        let path = paths::workspace().join(&name);
        if path.is_symlink() || !path.is_file() {
            continue;
        }
        if let Ok(text) = String::from_utf8(fs::read(&path).during("read", &path)?) {
            check_text(&name, &text, &mut complaints);
            check_words(&name, &text, &retired, &mut complaints);
            complaints.extend(exhaustive::complaint(&name, &text));
            example_commits::check_text(&name, &text, &mut complaints);
            styles.add(&name, &text);
            if is_product(&name) {
                types.add(&name, &text);
            }
        }
    }
    types.check(&mut complaints);
    styles.check(&mut complaints);
    for row in styles.lowered_rows() {
        println!("tidy: xtask/src/style_figures.rs: a figure fell or rose: `{row}`");
    }
    complaints.extend(measure::circle_complaints()?);
    if complaints.is_empty() { Ok(()) } else { fail(complaints.join("\n")) }
}

/// Whether a file is Rust source of the product: no test, fuzz target or task.
pub(crate) fn is_product(name: &str) -> bool {
    name.ends_with(".rs") && !name.split('/').any(is_auxiliary_directory)
}

fn is_auxiliary_directory(part: &str) -> bool {
    ["tests", "fuzz", "benches", "examples", "xtask"].contains(&part)
}

/// The files that define a type of each name.
#[derive(Default)]
struct TypeNames(BTreeMap<String, Vec<String>>);

impl TypeNames {
    fn add(&mut self, file: &str, text: &str) {
        for name in text.lines().filter_map(defined_type) {
            self.0.entry(name.to_owned()).or_default().push(file.to_owned());
        }
    }

    /// A reader who searches for a name must not have to choose between many.
    fn check(&self, complaints: &mut Vec<String>) {
        for (name, files) in self.0.iter().filter(|(_, files)| files.len() > TYPE_NAME_FILES) {
            complaints.push(format!("the type name `{name}` is defined {} times: {}", files.len(), files.join(", ")));
        }
    }
}

fn check_packages(metadata: &Metadata, complaints: &mut Vec<String>) {
    for package in metadata.workspace_packages() {
        if package.license.as_deref() != Some(LICENSE) {
            complaints.push(format!("{}: the licence is not `{LICENSE}`", package.name));
        }
        // Tests may use every package.
        if package.manifest_path.starts_with(metadata.workspace_root.join("tests")) {
            continue;
        }
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == package.name.as_str()) else {
            complaints.push(format!("{}: no row in xtask/src/arrows.rs", package.name));
            continue;
        };
        for dependency in package.dependencies.iter().filter(is_workspace_dependency) {
            if !allowed.contains(&dependency.name.as_str()) {
                complaints.push(format!("{} must not use {}", package.name, dependency.name));
            }
        }
    }
}

fn is_workspace_dependency(dependency: &&cargo_metadata::Dependency) -> bool {
    dependency.path.is_some() && dependency.kind != DependencyKind::Development
}

/// CMake files are installed unchanged, so the version is written in them.
fn check_cmake_version(metadata: &Metadata, complaints: &mut Vec<String>) -> Outcome {
    let file = paths::workspace().join(CMAKE_VERSION);
    let text = fs::read_to_string(&file).during("read", &file)?;
    for package in metadata.workspace_packages().iter().filter(|package| package.name == "hotswap") {
        if !text.contains(&format!("set(PACKAGE_VERSION \"{}\")", package.version)) {
            complaints.push(format!("{CMAKE_VERSION}: PACKAGE_VERSION is not {}", package.version));
        }
    }
    Ok(())
}

fn check_text(name: &str, text: &str, complaints: &mut Vec<String>) {
    if GENERATED.contains(&name) {
        return;
    }
    if !text.is_empty() && !text.ends_with('\n') {
        complaints.push(format!("{name}: no newline at the end"));
    }
    for (number, line) in text.lines().enumerate() {
        if line.ends_with('\r') {
            complaints.push(format!("{name}:{}: carriage return", number + 1));
        }
        for (head, tail) in BANNED {
            if holds(line, &[*head, *tail].concat()) {
                complaints.push(format!("{name}:{}: holds `{head}{tail}`", number + 1));
            }
        }
    }
    doc_pages::check_text(name, text, complaints);
    registry::check_text(name, text, complaints);
    ignored_reads::check_text(name, text, complaints);
    started_programs::check_text(name, text, complaints);
    if Path::new(name).extension().is_some_and(|extension| extension == "rs") {
        check_rust(name, text, complaints);
    }
}

/// Whether the line contains the text at the beginning of a word or path.
fn holds(line: &str, banned: &str) -> bool {
    line.match_indices(banned).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '}' | ')' | '.'))
    })
}

fn check_rust(name: &str, text: &str, complaints: &mut Vec<String>) {
    if !text.starts_with("//!") {
        complaints.push(format!("{name}: does not open with its purpose (`//!`)"));
    }
    complaints
        .extend(examples(text).map(|line| format!("{name}:{line}: an example in documentation, which no test runs")));
    if name.contains("tests/") || name.contains("benches/") {
        check_test(name, text, complaints);
        return;
    }
    let code: Vec<&str> = text.lines().take_while(|line| *line != "#[cfg(test)]").collect();
    if code.len() > FILE_LINES && !LONG_FILES.iter().any(|(long, _)| *long == name) {
        complaints.push(format!("{name}: {} lines, more than {FILE_LINES}", code.len()));
    }
    for (function, start, lines) in functions(&code) {
        if lines > FUNCTION_LINES {
            complaints.push(format!("{name}:{start}: `{function}` has {lines} lines, more than {FUNCTION_LINES}"));
        }
    }
}

/// One place reads the variable of expectations and writes the report of a skip, so that all of them are counted.
fn check_test(name: &str, text: &str, complaints: &mut Vec<String>) {
    if name.starts_with("tests/userland/") {
        return;
    }
    for (number, line) in text.lines().enumerate().filter(|(_, line)| comment(line).is_empty()) {
        for (found, instead) in [(SKIPPED.to_owned(), "skip"), (format!("\"{ENV_BLESS}\""), "golden or blesses")] {
            if line.contains(&found) {
                complaints.push(format!("{name}:{}: `{found}`: use {instead} of hotswap_userland", number + 1));
            }
        }
    }
}

/// Lines that open a code block in documentation which is not marked as text. `cargo xtask test` runs programs only.
fn examples(text: &str) -> impl Iterator<Item = usize> {
    let mut open = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let line = line.trim_start();
        let fence = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?.trim_start().strip_prefix("```")?;
        // Otherwise it is code within a line.
        if fence.contains('`') {
            return None;
        }
        open = !open;
        (open && fence.trim() != "text").then_some(number + 1)
    })
}

/// Name, first line and number of lines of each function.
pub(crate) fn functions<'a>(code: &[&'a str]) -> Vec<(&'a str, usize, usize)> {
    let mut found = Vec::new();
    for (at, line) in code.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let end = [indent, "}"].concat();
        let body = code[at..].iter().position(|line| *line == end);
        if let Some(length) = body.filter(|_| !line.ends_with('}') && !line.ends_with(';')) {
            found.push((name, at + 1, length + 1));
        }
    }
    found
}

/// The name in a line that begins a function.
fn function_name(line: &str) -> Option<&str> {
    let (head, tail) = line.trim_start().split_once("fn ")?;
    let name = tail.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (head.split_whitespace().all(is_function_modifier) && !name.is_empty()).then_some(name)
}

fn is_function_modifier(word: &str) -> bool {
    word.starts_with("pub") || ["const", "unsafe", "extern", "\"C\"", "in"].contains(&word)
}

/// The words that the glossary retires: those in backticks in the first column of its last table.
fn retired_words(glossary: &str) -> Vec<String> {
    let table = glossary.split_once("## Retired words").map_or("", |(_, table)| table);
    let cells = table.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(1));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// Retired words in comments, and types with retired names.
fn check_words(name: &str, text: &str, retired: &[String], complaints: &mut Vec<String>) {
    if !name.ends_with(".rs") {
        return;
    }
    for (number, line) in text.lines().enumerate() {
        let found = retired.iter().find(|word| match word.strip_suffix(" …") {
            Some(opening) => comment(line).starts_with(&format!("{opening} ")),
            None if word.starts_with(char::is_lowercase) => comment(line).split(is_no_letter).any(|part| part == *word),
            None => defined_type(line) == Some(word),
        });
        if let Some(word) = found {
            complaints.push(format!("{name}:{}: `{word}` is retired: see {GLOSSARY}", number + 1));
        }
    }
}

pub(crate) fn is_no_letter(c: char) -> bool {
    !c.is_alphanumeric()
}

/// The text of a line that is a comment.
pub(crate) fn comment(line: &str) -> &str {
    let text = line.trim_start().strip_prefix("//").unwrap_or_default();
    text.strip_prefix(['/', '!']).unwrap_or(text).trim_start()
}

/// The name of the type that a line defines.
///
/// Associated types, which are indented, have the name that their trait gives them.
pub(crate) fn defined_type(line: &str) -> Option<&str> {
    if line.starts_with(' ') && line.trim_start().starts_with("type ") {
        return None;
    }
    let words = line.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ");
    let (kind, name) = words.trim_start_matches("pub ").split_once(' ')?;
    let is_type = ["struct", "enum", "trait", "type", "union"].contains(&kind);
    is_type.then(|| name.split(is_no_letter).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_and_measured() {
        let code = [
            "impl X {",
            "    pub(crate) fn a(&self) {",
            "        x();",
            "    }",
            "    fn b();",
            "}",
            "const fn c() {",
            "}",
        ];
        assert_eq!(functions(&code), [("a", 2, 3), ("c", 7, 2)]);
        assert_eq!(function_name("    let f = |fn_name| 1;"), None);
        assert_eq!(function_name("/// the fn of"), None);
    }

    #[test]
    fn examples_in_documentation_are_found() {
        let fence = "`".repeat(3);
        let text =
            |mark: &str| format!("//! Purpose.\n//!\n//! {fence}{mark}\n//! let a = 1;\n//! {fence}\nfn a() {{}}\n");
        assert_eq!(examples(&text("")).collect::<Vec<_>>(), [3]);
        assert_eq!(examples(&text("rust")).collect::<Vec<_>>(), [3]);
        assert_eq!(examples(&text("text")).count(), 0);
        assert_eq!(examples(&format!("//! {fence}` {fence}console {fence}` a line\n")).count(), 0);
    }

    #[test]
    fn banned_words_are_found_at_the_beginning_of_a_path_only() {
        let machine = ["/ro", "ot/x"].concat();
        assert!(holds(&format!("cd {machine}"), &machine));
        assert!(!holds(&format!("a{machine}"), &machine));
    }

    #[test]
    fn a_file_without_purpose_and_final_newline_is_complained_about() {
        let mut complaints = Vec::new();
        check_text("crates/x/src/lib.rs", "fn a() {}", &mut complaints);
        assert_eq!(complaints.len(), 2, "{complaints:?}");
    }

    #[test]
    fn a_test_that_reports_a_skip_by_itself_is_complained_about() {
        let complaints = |name: &str, line: &str| {
            let mut complaints = Vec::new();
            check_text(name, &format!("//! Purpose.\n{line}\n"), &mut complaints);
            complaints.len()
        };
        let skip = format!("println!(\"x: {SKIPPED}why\");");
        let bless = format!("std::env::var(\"{ENV_BLESS}\");");
        assert_eq!((complaints("crates/x/tests/a.rs", &skip), complaints("tests/x/src/a.rs", &bless)), (1, 1));
        let comment = format!("// {skip} {bless}");
        assert_eq!((complaints("tests/x/src/a.rs", &comment), complaints("tests/userland/src/lib.rs", &skip)), (0, 0));
    }

    #[test]
    fn retired_words_are_found_in_comments_and_definitions() {
        let glossary = "| `kept` | |\n## Retired words\n| not | but |\n| `whom`, `What …` | |\n| `Thing` | `Item` |\n";
        let retired = retired_words(glossary);
        assert_eq!(retired, ["whom", "What …", "Thing"]);
        let complaints = |text: &str| {
            let mut complaints = Vec::new();
            check_words("a.rs", text, &retired, &mut complaints);
            complaints.len()
        };
        assert_eq!(complaints("/// What it is.\n//! for whom\n    pub(crate) struct Thing {"), 3);
        assert_eq!(
            complaints("let whom = \"What is\";\n/// The whomever.\nfn x(a: &Thing) {}\n/// Whatever What is"),
            0
        );
    }
}
