//! Odd and damaged inputs, one file for each: the result of inserting an instruction into them.
//!
//! A case is a `.s` file below `inputs`. Its first lines are directives: `// mc WORDS` for the assembler,
//! `// link WORDS` (without it the file stays relocatable), `// run COMMAND` on the file `f`, and changes of bytes:
//! `// header OFFSET SIZE VALUE`, `// section NAME FIELD VALUE`, `// symbol NAME FIELD VALUE` in all tables,
//! `// in SECTION OFFSET SIZE VALUE`, `// cut SIZE`. Then `s_nop` is inserted before the first instruction of `.text`,
//! or at the offset given by `// edit OFFSET`. The refusal, or the code that LLVM reads from the result and the output
//! of `// show COMMAND`, is in the `.txt` file beside it; `HOTSWAP_BLESS=1` writes it.

mod common;

use common::{NOP, tool};
use hotswap_code_object::image::ObjectImage;
use hotswap_rewrite::{CodeEdits, RewriteOptions, rewrite_object};
use hotswap_userland::{Workbench, cases_in, golden, say};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Positions of the fields in a row of the section table, and of a symbol.
const SECTION: &[(&str, usize, usize)] =
    &[("type", 4, 4), ("flags", 8, 8), ("address", 16, 8), ("offset", 24, 8), ("size", 32, 8), ("info", 44, 4)];
const SYMBOL: &[(&str, usize, usize)] = &[("name", 0, 4), ("section", 6, 2), ("value", 8, 8), ("size", 16, 8)];

fn number(word: &str) -> u64 {
    let hex = word.strip_prefix("0x").map(|hex| u64::from_str_radix(hex, 16));
    hex.unwrap_or_else(|| word.parse()).unwrap_or_else(|_| panic!("`{word}` is a number"))
}

fn put(file: &mut [u8], at: usize, size: usize, value: u64) {
    file[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
}

/// Changes a sound file according to a line.
fn damage(sound: &[u8], file: &mut Vec<u8>, words: &[&str]) {
    let image = ObjectImage::parse(sound).expect("the file is sound before it is damaged");
    let section = |name: &str| image.find(name).unwrap_or_else(|| panic!("there is a section {name}"));
    let field = |table: &[(&str, usize, usize)], name: &str| {
        let row = table.iter().find(|(known, ..)| *known == name);
        row.map(|(_, at, size)| (*at, *size)).unwrap_or_else(|| panic!("there is a field {name}"))
    };
    match words {
        ["header", at, size, value] => put(file, number(at) as usize, number(size) as usize, number(value)),
        ["section", name, what, value] => {
            let (at, size) = field(SECTION, what);
            let table = u64::from_le_bytes(sound[40..48].try_into().unwrap()) as usize;
            put(file, table + section(name) * 64 + at, size, number(value));
        }
        ["symbol", name, what, value] => {
            let (at, size) = field(SYMBOL, what);
            for table in image.symbol_tables().unwrap() {
                for (index, _) in table.rows.iter().enumerate().filter(|(_, row)| row.name == *name) {
                    put(file, table.at + index * 24 + at, size, number(value));
                }
            }
        }
        ["in", name, at, size, value] => {
            let start = image.sections[section(name)].offset + number(at);
            put(file, start as usize, number(size) as usize, number(value));
        }
        ["cut", size] => file.truncate(number(size) as usize),
        other => panic!("`{other:?}` is no directive"),
    }
}

fn outcome(bench: &Workbench, name: &str, source: &str) -> String {
    let version = *bench.versions.last().unwrap();
    let lines: Vec<Vec<&str>> = source
        .lines()
        .map_while(|line| line.strip_prefix("// "))
        .map(|line| line.split_whitespace().collect())
        .collect();
    let words = |name: &str| lines.iter().find(|line| line[0] == name).map(|line| line[1..].join(" "));
    let target = words("target").unwrap_or_else(|| "gfx1250".to_owned());
    bench.write("f.s", source.as_bytes());
    let mc = tool(version, "llvm-mc");
    bench.run(&format!(
        "{mc} -triple=amdgcn-amd-amdhsa -mcpu={target} -filetype=obj {} f.s -o f",
        words("mc").unwrap_or_default()
    ));
    if let Some(more) = words("link") {
        bench.run(&format!("{} -shared {more} f -o linked && mv linked f", tool(version, "ld.lld")));
    }
    if let Some(command) = words("run") {
        bench.run(&format!("PATH=/usr/lib/llvm-{version}/bin:$PATH; {command}"));
    }
    let sound = bench.read("f");
    let mut file = sound.clone();
    for line in lines.iter().filter(|line| !["target", "mc", "link", "run", "edit", "show"].contains(&line[0])) {
        damage(&sound, &mut file, line);
    }
    let mut edits = CodeEdits::new();
    edits.insert_before(words("edit").map_or(0, |at| number(&at)), &NOP, &[]);
    let text = ObjectImage::parse(&sound).map_or(1, |image| image.find(".text").unwrap());
    match rewrite_object(&file, &BTreeMap::from([(text, edits)]), &RewriteOptions::default()) {
        Err(error) => format!("{error}\n"),
        Ok(new) => {
            bench.write(&format!("{name}.new"), &new.bytes);
            let dump = tool(version, "llvm-objdump");
            let listed = bench.run(&format!("{dump} -d --no-show-raw-insn --section=.text {name}.new"));
            let plain = listed.lines().skip(3).map(str::trim_end).filter(|line| !line.contains("s_code_end"));
            let mut found: String = plain.map(|line| format!("{line}\n")).collect();
            if let Some(command) = words("show") {
                bench.run(&format!("mv {name}.new f"));
                found += &bench.run(&format!("PATH=/usr/lib/llvm-{version}/bin:$PATH; {command}"));
            }
            found
        }
    }
}

#[test]
fn odd_inputs_are_refused_or_changed_as_the_cases_say() {
    let Some(bench) = Workbench::new("odd inputs") else { return };
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs");
    let (mut wrong, mut count) = (Vec::new(), 0);
    for path in cases_in(&directory, "s") {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let found = outcome(&bench, name, &fs::read_to_string(&path).unwrap());
        count += 1;
        wrong.extend(golden(&path.with_extension("txt"), &found).err());
    }
    assert!(count > 15 && wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n"));
    say(&format!("layout engine: {count} odd inputs as expected"));
}
