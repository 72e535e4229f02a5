//! The program found in code of every construct, assembled by the userland's llvm-mc: one file for each.
//!
//! A case is a `.s` file below `cases`. Its first line lists the processors for which it is assembled, and whether it
//! is linked as well. The output of [`hotswap_program::dump`] is in the `.txt` file beside it; `HOTSWAP_BLESS=1` writes it.

mod common;

use hotswap_program::{CodeSource, Program, dump};
use hotswap_userland::{Workbench, cases_in, golden, say};
use std::fmt::Write;
use std::fs;
use std::path::Path;

fn dumped(object: &[u8]) -> String {
    let mut text = String::new();
    for source in CodeSource::read(object).expect("the assembler makes ELF files") {
        common::around_agrees(&source, usize::MAX);
        dump(&Program::build(source), &mut text).expect("a string takes everything");
    }
    text
}

/// The findings for each processor and form; equal texts are written once.
fn findings(bench: &Workbench, name: &str, source: &str) -> String {
    let words: Vec<&str> = source.lines().next().unwrap_or_default().split_whitespace().skip(1).collect();
    let (forms, targets): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with("link"));
    let mut found: Vec<(String, String)> = Vec::new();
    for target in targets {
        bench.write(name, source.as_bytes());
        bench.run(&format!("llvm-mc-23 -triple=amdgcn-amd-amdhsa -mcpu={target} -filetype=obj {name} -o {name}.o"));
        let mut texts = vec![(target.to_owned(), dumped(&bench.read(&format!("{name}.o"))))];
        for form in &forms {
            let more = if *form == "link-relocs" { "--emit-relocs" } else { "" };
            bench.run(&format!("ld.lld-23 -shared {more} {name}.o -o {name}.so"));
            texts.push((format!("{target}/{form}"), dumped(&bench.read(&format!("{name}.so")))));
        }
        for (label, text) in texts {
            match found.iter_mut().find(|(_, known)| *known == text) {
                Some((labels, _)) => write!(labels, " {label}").expect("a string takes everything"),
                None => found.push((label, text)),
            }
        }
    }
    found.iter().map(|(labels, text)| format!("# {labels}\n{text}")).collect()
}

#[test]
fn constructs_are_found_as_the_cases_say() {
    let Some(bench) = Workbench::new("constructs_are_found_as_the_cases_say") else { return };
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let (mut wrong, mut count) = (Vec::new(), 0);
    for path in cases_in(&directory, "s") {
        let name = path.file_name().unwrap().to_str().unwrap();
        let found = findings(&bench, name, &fs::read_to_string(&path).unwrap());
        count += 1;
        wrong.extend(golden(&path.with_extension("txt"), &found).err());
    }
    assert!(count > 10 && wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n"));
    say(&format!("program: {count} cases as expected"));
}
