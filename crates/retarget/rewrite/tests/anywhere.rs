//! Inserts instructions anywhere, also into clauses, delays and sums of addresses: the program stays equivalent, and
//! LLVM's readers report no error. Also the cases that must be refused.

mod common;

use common::{NOP, Random, assemble, compile, edits, instructions, labels, link, renumbered, sites, tool, with_labels};
use hotswap_code_object::image::{ObjectImage, SymbolRow};
use hotswap_isa::{Inst, Isa, Target};
use hotswap_rewrite::{CodeEdits, LongBranch, RewriteOptions, rewrite_object};
use hotswap_userland::{Workbench, say};
use std::collections::BTreeMap;

const TARGETS: &[&str] = &["gfx906", "gfx942", "gfx1010", "gfx1030", "gfx1102", "gfx1150", "gfx1200", "gfx1250"];

/// A code object of the kernels, linked, and places of its instructions.
struct Case {
    linked: Vec<u8>,
    places: Vec<(usize, u64)>,
    lines: Vec<common::Line>,
}

fn case(bench: &Workbench, version: u32, target: &str, options: &str) -> Case {
    let text = compile(bench, version, target, options);
    let lines = instructions(&text);
    assemble(bench, version, target, "places", &with_labels(&text, &lines));
    let places = labels(bench, version, "places.o", "hs_at_");
    assemble(bench, version, target, "plain", &text);
    Case { linked: link(bench, version, "plain"), places, lines }
}

/// Functions by name, with their instructions; `s_nop` omitted, and each branch with the number of its target
/// instruction in its section.
fn program(data: &[u8]) -> BTreeMap<String, Vec<(Inst, Option<usize>)>> {
    let image = ObjectImage::parse(data).unwrap();
    let isa = Isa::new(Target::find(image.flags.target_id().processor.name).unwrap());
    let tables = image.symbol_tables().unwrap();
    let is_function = |row: &&SymbolRow<'_>| row.kind == 2 && row.size > 0;
    let rows = tables.iter().flat_map(|table| &table.rows).filter(is_function);
    let mut found = BTreeMap::new();
    for row in rows {
        let section = &image.sections[row.section.unwrap()];
        let start = row.value - section.address;
        let bytes = &section.bytes[start as usize..(start + row.size) as usize];
        let all: Vec<(u64, Inst)> = isa.walk(bytes).map(|(at, inst)| (at as u64, inst.unwrap())).collect();
        let number = |target: u64| all.iter().filter(|(at, inst)| *at < target && inst.mnemonic() != "s_nop").count();
        let kept = all.iter().filter(|(_, inst)| inst.mnemonic() != "s_nop");
        let list = kept.map(|(at, inst)| (*inst, inst.branch_target(*at, isa).map(number))).collect();
        found.insert(row.name.to_owned(), list);
    }
    found
}

/// Whether the word counts instructions, or holds a distance.
fn counts(inst: &Inst) -> bool {
    let adds = ["s_add_u32", "s_addc_u32", "s_add_co_u32", "s_add_co_ci_u32", "s_add_nc_u64"];
    adds.contains(&inst.mnemonic()) && inst.len() > 4
}

fn assert_same_program(what: &str, old: &[u8], new: &[u8]) {
    let (old, new) = (program(old), program(new));
    assert!(old.keys().eq(new.keys()), "{what}: the same functions");
    for (name, list) in &old {
        let kept = |list: &[(Inst, Option<usize>)]| -> Vec<(Inst, Option<usize>)> {
            let is_hint = |inst: &Inst| ["s_clause", "s_delay_alu"].contains(&inst.mnemonic());
            list.iter().filter(|(inst, _)| !is_hint(inst)).copied().collect()
        };
        let hints = |list: &[(Inst, Option<usize>)]| list.len() - kept(list).len();
        assert!(hints(&new[name]) <= hints(list), "{what} {name}: no hint is new");
        let is_same = hints(list) == hints(&new[name]);
        let (list, changed) = (kept(list), kept(&new[name]));
        assert_eq!(list.len(), changed.len(), "{what} {name}");
        for ((old, target), (new, new_target)) in list.iter().zip(&changed) {
            // Dropped hints would be counted in one list only.
            assert!(target == new_target || !is_same, "{what} {name}: {old:?} goes to another instruction");
            let same =
                old.mnemonic() == new.mnemonic() && (old.words() == new.words() || target.is_some() || counts(old));
            assert!(same, "{what} {name}: {old:?} became {new:?}");
        }
    }
}

#[test]
fn the_program_stays_the_same_wherever_instructions_come() {
    let Some(bench) = Workbench::new("instructions anywhere") else { return };
    let (mut random, mut count) = (Random(11), 0);
    let version = *bench.versions.last().unwrap();
    for target in TARGETS {
        let case = case(&bench, version, target, "-O2 -g");
        for every in [2, 30] {
            let sites = sites(&case.lines, &mut random, every, false);
            let list = renumbered(&edits(&sites, &case.places), &case.linked);
            let new = rewrite_object(&case.linked, &list, &RewriteOptions::default());
            let new = new.unwrap_or_else(|error| panic!("{target}: {} {:?}", error.what, error.place)).bytes;
            assert_same_program(target, &case.linked, &new);
            bench.write("new.co", &new);
            let (dump, read) = (tool(version, "llvm-dwarfdump"), tool(version, "llvm-readelf"));
            bench.run(&format!("{dump} --verify new.co"));
            let warnings = bench.run(&format!(
                "{read} -aW new.co 2>&1 >/dev/null; {} -d new.co 2>&1 >/dev/null",
                tool(version, "llvm-objdump")
            ));
            assert_eq!(warnings, "", "{target}");
            assert_eq!(
                rewrite_object(&new, &BTreeMap::new(), &RewriteOptions::default()).unwrap().bytes,
                new,
                "{target}"
            );
            count += sites.len();
        }
    }
    say(&format!("layout engine: {count} instructions put anywhere, the programs are the same"));
}

#[test]
fn branches_that_get_out_of_reach_need_registers() {
    let Some(bench) = Workbench::new("long branches") else { return };
    let version = *bench.versions.last().unwrap();
    for target in ["gfx90a", "gfx1030", "gfx1200", "gfx1250"] {
        let case = case(&bench, version, target, "-O2");
        // 160 KiB into the middle of a loop.
        let image = ObjectImage::parse(&case.linked).unwrap();
        let section = image.sections.iter().position(|section| section.is_code() && section.size > 0).unwrap();
        let isa = Isa::new(Target::find(image.flags.target_id().processor.name).unwrap());
        let back = isa.walk(image.sections[section].bytes).find_map(|(at, inst)| {
            let goes = inst.ok()?.branch_target(at as u64, isa)?;
            (goes < at as u64).then_some(at as u64)
        });
        let mut list = CodeEdits::new();
        list.insert_before(back.unwrap(), &NOP.repeat(40_000), &[]);
        let list = BTreeMap::from([(section, list)]);
        let error = rewrite_object(&case.linked, &list, &RewriteOptions::default()).unwrap_err();
        assert!(error.code.id == "HS0409" && error.what.contains("scalar registers"), "{target}: {}", error.what);
        let registers = |request: &LongBranch| {
            assert_eq!(request.section, section);
            Some(100)
        };
        let options = RewriteOptions { registers: Some(&registers), ..RewriteOptions::default() };
        let new =
            rewrite_object(&case.linked, &list, &options).unwrap_or_else(|error| panic!("{target}: {}", error.what));
        assert!(new.grown >= 160_000, "{target}");
        bench.write("new.co", &new.bytes);
        let text = bench.run(&format!("{} -d new.co", tool(version, "llvm-objdump")));
        let computed =
            |line: &&str| line.contains("s_setpc_b64 s[100:101]") || line.contains("s_set_pc_i64 s[100:101]");
        assert!(text.lines().any(|line| computed(&line)), "{target}: a branch computes its target");
    }
}

#[test]
fn what_is_not_known_is_refused() {
    let Some(bench) = Workbench::new("refusals of the layout engine") else { return };
    let version = *bench.versions.last().unwrap();
    let case = case(&bench, version, "gfx90a", "-O2 -g");
    let image = ObjectImage::parse(&case.linked).unwrap();
    let section = image.find(".text").unwrap();
    let with = |offset: u64| {
        let mut list = CodeEdits::new();
        list.insert_before(offset, &NOP, &[]);
        list
    };
    let refusal = |data: &[u8], section: usize, list: CodeEdits| {
        let error = rewrite_object(data, &BTreeMap::from([(section, list)]), &RewriteOptions::default()).unwrap_err();
        assert_eq!(error.code.id, "HS0409", "{}", error.what);
        error.what
    };
    assert!(refusal(&case.linked, 1, with(0)).contains("holds no code"));
    assert!(refusal(&case.linked, section, with(2)).contains("is not at an instruction"));
    assert!(refusal(&case.linked, section, with(1 << 40)).contains("is in no function"));
    let mut part = CodeEdits::new();
    part.remove(case.places[0].1, 2);
    assert!(refusal(&case.linked, section, part).contains("no whole instructions"));
}
