//! The options of a plan in CMake and in its documentation are printed from the table.
//!
//! With `HOTSWAP_BLESS=1` the text is written into the files.

use hotswap_plan::{Keyword, PLAN_OPTIONS, PlanOption};
use hotswap_userland::golden;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(name)
}

/// Compares a file with its expected text, or writes it.
fn check(name: &str, expected: &str) {
    golden(&file(name), expected).unwrap_or_else(|difference| panic!("{difference}"));
}

/// The text with what is between two marks replaced; the marks stay.
fn replaced(text: &str, from: &str, to: &str, new: &str) -> String {
    let start = text.find(from).unwrap_or_else(|| panic!("no `{from}`")) + from.len();
    let end = start + text[start..].find(to).unwrap_or_else(|| panic!("no `{to}`"));
    format!("{}{new}{}", &text[..start], &text[end..])
}

/// Markdown without links and quotes of code.
fn plain(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, (label, after))) =
        rest.split_once('[').and_then(|(before, link)| Some((before, link.split_once("](")?)))
    {
        let (_, after) = after.split_once(')').unwrap();
        plain += &format!("{before}{label}");
        rest = after;
    }
    (plain + rest).replace('`', "")
}

/// A comment of CMake, whose first line begins with the keyword.
fn comment(keyword: &Keyword) -> String {
    let (mut lines, mut line) = (String::new(), format!("# {:<18}", keyword.name));
    for word in plain(keyword.help).split(' ') {
        if line.chars().count() + word.chars().count() >= 110 {
            writeln!(lines, "{}", line.trim_end()).unwrap();
            line = format!("# {:<18}", "");
        }
        write!(line, " {word}").unwrap();
    }
    format!("{lines}{line}.\n")
}

/// Keywords of the options that a test accepts.
fn keywords(is_meant: impl Fn(&PlanOption) -> bool) -> String {
    let names = PLAN_OPTIONS.iter().filter(|option| is_meant(option)).map(|option| option.keyword.name);
    names.collect::<Vec<_>>().join(" ")
}

fn synopsis() -> String {
    let one = |Keyword { name, values, .. }: &Keyword| match *values {
        "" => format!("[{name}]"),
        values => format!("[{name} {values}]"),
    };
    PLAN_OPTIONS.iter().map(|option| one(&option.keyword)).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_module_for_cmake_has_every_option() {
    let mut text = "\
# The options of a plan as keywords of add_hotswap_target.
#
# Printed from the table in crates/base/plan/src/options.rs:
#   HOTSWAP_BLESS=1 cargo test -p hotswap-plan --test cmake
#
"
    .to_owned();
    writeln!(text, "#   {}\n#", synopsis().replace("] [", "]\n#   [")).unwrap();
    PLAN_OPTIONS.iter().for_each(|option| text += &comment(&option.keyword));
    text += "include_guard(GLOBAL)\n\n# Sets the lists of keywords, and for each the option of `hotswap plan` and its words.\n";
    text += "macro(_hotswap_plan_options)\n";
    let is_switch = |option: &PlanOption| option.keyword.values.is_empty();
    writeln!(text, "  set(plan_switches {})", keywords(is_switch)).unwrap();
    writeln!(text, "  set(plan_values {})", keywords(|option| !is_switch(option) && !option.is_list)).unwrap();
    writeln!(text, "  set(plan_lists {})", keywords(|option| option.is_list && option.command.is_some())).unwrap();
    for option in PLAN_OPTIONS {
        let Some(command) = &option.command else { continue };
        writeln!(text, "  set(option_{} --{})", option.keyword.name, command.name).unwrap();
        if !is_switch(option) && !option.is_list {
            writeln!(text, "  set(words_{} {})", option.keyword.name, option.value.replace('|', " ")).unwrap();
        }
    }
    check("cmake/HotSwapOptions.cmake", &(text + "endmacro()\n"));
}

#[test]
fn the_documentation_of_cmake_has_every_option() {
    let page = fs::read_to_string(file("docs/guide/cmake.md")).unwrap();
    let rows: String = PLAN_OPTIONS
        .iter()
        .map(|option| format!("| `{}` | {} |\n", option.keyword.name, option.keyword.help))
        .collect();
    let page = replaced(&page, "`add_hotswap_target(TARGET ", " [COALESCE]", &synopsis());
    check("docs/guide/cmake.md", &replaced(&page, "| --- | --- |\n", "| `COALESCE` |", &rows));
}
