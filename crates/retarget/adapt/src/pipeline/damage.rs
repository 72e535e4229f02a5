//! The check of results finds every bit of code, and of address words that refer to code, that differs from the plan.

use super::*;
use hotswap_program::CodeSource;
use hotswap_userland::{Workbench, say};
use rayon::prelude::*;

/// Kernels with every kind of change: replaced and inserted instructions, branches,
/// clauses, calls, distances, registers.
const CASES: [(&str, &str); 4] = [
    ("second_kernel", include_str!("../../tests/cases/second_kernel.s")),
    ("everything", include_str!("../../tests/damage/everything.s")),
    ("hazards", include_str!("../../tests/damage/hazards.s")),
    ("scratch", include_str!("../../tests/damage/scratch.s")),
];

fn assemble_text(bench: &Workbench, name: &str, text: &str) -> Vec<u8> {
    bench.write(&format!("{name}.s"), text.as_bytes());
    bench.run(&format!(
        "llvm-mc-24 -triple=amdgcn-amd-amdhsa -mcpu=gfx1250 -filetype=obj {name}.s -o {name}.o && \
         ld.lld-24 -shared --emit-relocs {name}.o -o {name}.co"
    ));
    bench.read(&format!("{name}.co"))
}

/// Hints and padding: other values of them are equally correct.
fn is_hint(inst: &hotswap_isa::Inst) -> bool {
    matches!(inst.mnemonic(), "s_delay_alu" | "s_clause" | "s_nop" | "s_code_end")
}

/// The work on a file for gfx1250.
fn section_work<'a>(object: &CodeObject<'a>, image: &ObjectImage<'a>, task: &Task<'_>) -> Vec<Work<'a>> {
    let found = suspects(object, find_isa("gfx1250").unwrap(), task.rewriter);
    planned(object, image, task, found).unwrap()
}

/// Every bit of the instructions of a section, except hints: its byte in the file, its number there, the instruction.
fn bits_of_code(made: &[u8], number: usize, isa: Isa) -> Vec<(usize, usize, String)> {
    let new = ObjectImage::parse(made).unwrap();
    let section = &new.sections[number];
    let mut bits = Vec::new();
    for mark in CodeSource::read(made).unwrap().iter().flat_map(|source| source.marks.clone()) {
        let start = mark.offset as usize;
        let code = isa.walk(&section.bytes[start..start + mark.size as usize]);
        for (at, inst) in code.filter_map(|(at, inst)| Some((at, inst.ok()?))).filter(|(_, inst)| !is_hint(inst)) {
            let name = format!("{} at {:#x}", inst.mnemonic(), start + at);
            let byte = section.offset as usize + start + at;
            bits.extend((0..usize::from(inst.len()) * 8).map(|bit| (byte + bit / 8, bit % 8, name.clone())));
        }
    }
    bits
}

#[test]
fn a_flipped_bit_of_code_is_found() {
    let Some(bench) = Workbench::new("damaged results") else { return };
    let rewriter = FamilyRegistry::installed().prepare_rewriter().unwrap();
    let to = find_isa("gfx1250-strict").unwrap();
    let task = Task::new(&rewriter, to, Scheduling::Hardware);
    let (mut tried, mut missed) = (0, Vec::new());
    for (name, text) in CASES {
        let data = assemble_text(&bench, name, text);
        let object = CodeObject::parse(&data).unwrap();
        let image = ObjectImage::parse(&data).unwrap();
        let work = section_work(&object, &image, &task);
        let made = written(&object, (&image, &work), &[], &mut ObjectRecord::default()).unwrap();
        assert_eq!(verified(&image, &work, &made, &task).err(), None, "{name}");
        let bits = bits_of_code(&made, work[0].unit.number, to);
        tried += bits.len();
        let found = bits.par_iter().filter(|(place, bit, _): &&(usize, usize, String)| {
            let mut damaged = made.clone();
            damaged[*place] ^= 1 << bit;
            verified(&image, &work, &damaged, &task).is_ok()
        });
        missed.extend(found.map(|(_, bit, inst)| format!("{name}: {inst}, bit {bit}")).collect::<Vec<_>>());
    }
    say(&format!("damaged results: {tried} flipped bits, {} not found", missed.len()));
    assert!(tried > 3000 && missed.is_empty(), "{}", missed.join("\n"));
}

/// Relocation records of the words of a table: the loader's, or those of a linker.
#[test]
fn a_flipped_bit_of_what_says_where_words_lead_is_found() {
    let Some(bench) = Workbench::new("damaged words") else { return };
    let rewriter = FamilyRegistry::installed().prepare_rewriter().unwrap();
    let to = find_isa("gfx1250-strict").unwrap();
    let task = Task::new(&rewriter, to, Scheduling::Hardware);
    let linked = assemble_text(&bench, "table", include_str!("../../tests/damage/table.s"));
    let (mut tried, mut missed) = (0, Vec::new());
    for (data, records) in [(linked, ".rela.dyn"), (bench.read("table.o"), ".rela.data.rel.ro")] {
        let object = CodeObject::parse(&data).unwrap();
        let image = ObjectImage::parse(&data).unwrap();
        let work = section_work(&object, &image, &task);
        let made = written(&object, (&image, &work), &[], &mut ObjectRecord::default()).unwrap();
        assert_eq!(verified(&image, &work, &made, &task).err(), None, "{records}");
        let new = ObjectImage::parse(&made).unwrap();
        let section = &new.sections[new.find(records).unwrap()];
        for bit in (0..section.size as usize * 8).filter(|one| is_verified_bit(one, records)) {
            let mut damaged = made.clone();
            damaged[section.offset as usize + bit / 8] ^= 1 << (bit % 8);
            tried += 1;
            if verified(&image, &work, &damaged, &task).is_ok() {
                missed.push(format!("{records}: bit {bit}"));
            }
        }
    }
    say(&format!("damaged words: {tried} flipped bits, {} not found", missed.len()));
    assert!(tried > 500 && missed.is_empty(), "{}", missed.join("\n"));
}

/// The loader's records have no symbols: their symbol index is never read.
fn is_verified_bit(bit: &usize, records: &str) -> bool {
    records != ".rela.dyn" || bit % 192 / 32 != 3
}

/// In a relocatable file no descriptor gives the start of a kernel.
#[test]
fn a_kernel_that_begins_where_the_hardware_does_not_is_found() {
    let Some(bench) = Workbench::new("crooked kernels") else { return };
    let rewriter = FamilyRegistry::installed().prepare_rewriter().unwrap();
    let to = find_isa("gfx1250-strict").unwrap();
    let task = Task::new(&rewriter, to, Scheduling::Hardware);
    assemble_text(&bench, "table", include_str!("../../tests/damage/table.s"));
    let data = bench.read("table.o");
    let object = CodeObject::parse(&data).unwrap();
    let image = ObjectImage::parse(&data).unwrap();
    let work = section_work(&object, &image, &task);
    let mut made = written(&object, (&image, &work), &[], &mut ObjectRecord::default()).unwrap();
    assert_eq!(verified(&image, &work, &made, &task).err(), None);
    let kernel = object.note().kernels[0].name;
    let place = ObjectImage::parse(&made)
        .unwrap()
        .symbol_tables()
        .unwrap()
        .iter()
        .find_map(|one| kernel_symbol_value_offset(one, kernel))
        .unwrap();
    made[place] += 4;
    let error = verified(&image, &work, &made, &task).unwrap_err();
    assert!(error.what.contains("does not begin at a multiple of 256 bytes"), "{error}");
}

fn kernel_symbol_value_offset(table: &hotswap_code_object::image::SymbolRows<'_>, kernel: &str) -> Option<usize> {
    let rows = table.rows.iter().position(|row| row.name == kernel);
    rows.map(|number| table.at + number * 24 + 8)
}

/// Plans that are wrong in themselves: the check does not trust them.
#[test]
fn a_wrong_plan_is_found() {
    let Some(bench) = Workbench::new("wrong plans") else { return };
    let rewriter = FamilyRegistry::installed().prepare_rewriter().unwrap();
    let to = find_isa("gfx1250-strict").unwrap();
    let task = Task::new(&rewriter, to, Scheduling::Hardware);
    for (name, text, expected) in [
        ("hazards", CASES[2].1, "vector instructions after a matrix instruction"),
        ("scratch", CASES[3].1, "which is read later"),
    ] {
        let data = assemble_text(&bench, name, text);
        let object = CodeObject::parse(&data).unwrap();
        let image = ObjectImage::parse(&data).unwrap();
        let mut work = section_work(&object, &image, &task);
        for changes in work.iter_mut().flat_map(|work| &mut work.outcomes).map(|outcome| &mut outcome.changes) {
            changes.corrupt_for_test();
        }
        let made = written(&object, (&image, &work), &[], &mut ObjectRecord::default()).unwrap();
        let found = verified(&image, &work, &made, &task).unwrap_err();
        assert!(found.what.contains(expected), "{name}: {found}");
    }
}
