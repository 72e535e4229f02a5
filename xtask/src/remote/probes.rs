//! Build systems other than CMake: what they find out about HotSwap's compiler, by each of its names, is what they find out about
//! clang, and what they build has the plan's GPUs. (CMake's probes are in `tests/harness/tests/probes.rs`.)

use super::page;
use crate::outcome::{Outcome, fail};
use std::collections::BTreeMap;

pub(super) const OUTER: &str = include_str!("probes-outer.sh");

/// The build systems: the name in the script, and that of the page.
const SYSTEMS: &[(&str, &str)] =
    &[("meson", "Meson"), ("autotools", "autoconf, automake and libtool"), ("scons", "SCons")];
/// Names of HotSwap's compiler in the script.
const NAMES: [&str; 2] = ["bin", "lib"];

const BEGIN: &str = "<!-- probes -->";
const END: &str = "<!-- end of probes -->";

/// The answers to one system's questions, by question.
type Answers<'t> = BTreeMap<&'t str, &'t str>;

/// Judges the lines `SYSTEM COMPILER QUESTION ANSWER` and `version SYSTEM VERSION`, and writes the table.
pub(super) fn judge(text: &str) -> Outcome {
    page::replace("docs/guide/compiler.md", BEGIN, END, &table(text)?)
}

fn table(text: &str) -> Outcome<String> {
    let mut table =
        String::from("| build system | version | answers that are clang's | a program with the plan's GPUs |\n");
    table += "| --- | --- | --- | --- |\n";
    for (system, name) in SYSTEMS {
        let clang = answers(text, system, "clang");
        if clang.len() < 8 || clang.get("runs") != Some(&"0") {
            return fail(format!("{name} does not build the project with clang: see its messages"));
        }
        for compiler in NAMES {
            compare_answers(&format!("{name}, {compiler}"), &clang, &answers(text, system, compiler))?;
        }
        let version = text.lines().find_map(|line| line.strip_prefix(&format!("version {system} "))).unwrap_or("none");
        table += &format!("| {name} | {version} | {} | yes |\n", clang.len() - 1);
    }
    Ok(table)
}

fn answers<'t>(text: &'t str, system: &str, compiler: &str) -> Answers<'t> {
    let start = format!("{system} {compiler} ");
    text.lines().filter_map(|line| line.strip_prefix(&start)?.split_once(' ')).collect()
}

/// All answers are those with clang but the GPUs, which the plan adds to.
fn compare_answers(who: &str, clang: &Answers<'_>, found: &Answers<'_>) -> Outcome {
    for question in clang.keys().chain(found.keys()) {
        let (expected, answer) = (clang.get(question), found.get(question));
        let expected = if *question == "gpus" { Some(&"gfx1030_gfx1031_") } else { expected };
        if answer != expected {
            return fail(format!("{who}: {question} is {answer:?}, not {expected:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> String {
        let mut text = String::new();
        for (system, _) in SYSTEMS {
            for (compiler, gpus) in [("clang", "gfx1030_"), ("bin", "gfx1030_gfx1031_"), ("lib", "gfx1030_gfx1031_")] {
                for question in ["id", "linker", "archiver", "header", "threads", "sizeof"] {
                    text += &format!("{system} {compiler} {question} x\n");
                }
                text += &format!("{system} {compiler} runs 0\n{system} {compiler} gpus {gpus}\n");
            }
            text += &format!("version {system} 1.2\n");
        }
        text
    }

    #[test]
    fn an_answer_that_is_not_clangs_is_a_failure() {
        let good = good();
        assert!(table(&good).is_ok_and(|table| table.contains("| SCons | 1.2 | 7 | yes |")));
        for (old, new) in [
            ("meson bin archiver x", "meson bin archiver y"),
            ("scons lib linker x\n", ""),
            ("autotools lib header x", "autotools lib header x\nautotools lib more x"),
            ("autotools bin gpus gfx1030_gfx1031_", "autotools bin gpus gfx1030_"),
            ("meson lib runs 0", "meson lib runs 1"),
            ("scons clang runs 0", "scons clang runs 1"),
        ] {
            assert!(good.contains(old) && table(&good.replace(old, new)).is_err(), "{old}");
        }
    }
}
