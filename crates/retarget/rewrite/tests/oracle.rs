//! LLVM's assembler and linker as the oracle: inserting instructions into a finished object must give the same bytes as
//! the same instructions in the source, with symbols, relocations, debug information and call frames.

mod common;

use common::{
    Random, assemble, compile, edits, instructions, labels, link, renumbered, sites, tool, with_labels, with_nops,
};
use hotswap_rewrite::{CodeEdits, RewriteOptions, rewrite_object};
use hotswap_userland::{Workbench, say, slice};
use std::collections::BTreeMap;

/// Targets, and the first version of LLVM that is tested for each. gfx1010 is not among them: its assembler pads
/// branches of an unlucky distance, and that padding cannot be distinguished from the program's own.
const TARGETS: &[(&str, u32)] = &[
    ("gfx900", 22),
    ("gfx90a", 22),
    ("gfx942", 22),
    ("gfx1030", 22),
    ("gfx1100", 23),
    ("gfx1201", 23),
    ("gfx1250", 22),
    ("gfx1250-strict", 24),
];
/// Arguments for the compiler; DWARF 4 and 5, without, functions in sections of their own.
const FORMS: &[&str] = &[
    "-O2 -g",
    "-O1 -gdwarf-4",
    "-O2 -mllvm -amdgpu-kernarg-preload-count=4",
    "-O0 -gline-tables-only",
    "-O3",
    "-O2 -g -ffunction-sections",
];

/// Equal, or equal except for debug information: where a loop was aligned without padding, a label before the alignment
/// and one after it are at the same address, and ranges may begin at either when padding is added.
fn assert_same(bench: &Workbench, version: u32, what: &str, ours: &[u8], theirs: &[u8]) -> bool {
    if ours == theirs {
        return true;
    }
    bench.write("ours", ours);
    bench.write("theirs", theirs);
    let strip = tool(version, "llvm-strip");
    bench.run(&format!("{strip} --strip-debug ours && {strip} --strip-debug theirs"));
    assert!(bench.read("ours") == bench.read("theirs"), "{what}: other bytes than LLVM's");
    false
}

fn apply(what: &str, data: &[u8], edits: &BTreeMap<usize, CodeEdits>) -> Vec<u8> {
    rewrite_object(data, edits, &RewriteOptions::default())
        .unwrap_or_else(|error| panic!("{what}: {} {:?}", error.what, error.place))
        .bytes
}

/// One object: nops inserted, compared with the assembler; the linked file likewise; nops removed, compared with the
/// original.
fn judge(bench: &Workbench, version: u32, target: &str, options: &str, random: &mut Random) -> usize {
    let what = format!("LLVM {version} {target} {options}");
    let text = compile(bench, version, target, options);
    // LLVM 22 writes the size of the prefetch as a number, which does not change with the code.
    let text: String = text
        .lines()
        .filter(|line| version > 22 || !line.contains("inst_pref_size"))
        .map(|line| format!("{line}\n"))
        .collect();
    let lines = instructions(&text);
    let every = 2 + random.below(60);
    let sites = sites(&lines, random, every, true);
    let before = assemble(bench, version, target, "before", &text);
    assemble(bench, version, target, "places", &with_labels(&text, &lines));
    let list = edits(&sites, &labels(bench, version, "places.o", "hs_at_"));
    let after = assemble(bench, version, target, "after", &with_nops(&text, &lines, &sites, false));
    let mut exact = usize::from(assert_same(bench, version, &what, &apply(&what, &before, &list), &after));
    if !options.contains("-ffunction-sections") {
        let (before, after) = (link(bench, version, "before"), link(bench, version, "after"));
        let ours = apply(&what, &before, &renumbered(&list, &before));
        exact += usize::from(assert_same(bench, version, &format!("{what}, linked"), &ours, &after));
        assert_eq!(apply(&what, &ours, &BTreeMap::new()), ours, "{what}: a second run changes nothing");
    }
    assemble(bench, version, target, "nops", &with_nops(&text, &lines, &sites, true));
    let mut back: BTreeMap<usize, CodeEdits> = BTreeMap::new();
    for (section, offset) in labels(bench, version, "nops.o", "hs_nop_") {
        back.entry(section).or_default().remove(offset, 4);
    }
    let ours = apply(&what, &after, &back);
    // Where loops are aligned, an `s_nop` before padding cannot be distinguished from padding.
    if !["gfx103", "gfx11"].iter().any(|family| target.starts_with(family)) {
        exact += usize::from(assert_same(bench, version, &format!("{what}, taken out"), &ours, &before));
    }
    exact
}

#[test]
fn inserted_and_removed_instructions_give_the_bytes_of_llvm() {
    let Some(bench) = Workbench::new("oracle of the layout engine") else { return };
    let mut random = Random(7);
    let (mut objects, mut files, mut exact) = (0, 0, 0);
    for version in &bench.versions {
        for (number, (target, _)) in TARGETS.iter().enumerate().filter(|(_, (_, first))| first <= version) {
            let forms = [FORMS[(number + 2 + *version as usize) % FORMS.len()], FORMS[number % FORMS.len()]];
            for options in
                slice(&format!("layout engine, LLVM {version} {target}"), forms.to_vec(), |turn, _| turn == 0)
            {
                exact += judge(&bench, *version, target, options, &mut random);
                let is_linked = !options.contains("-ffunction-sections");
                let aligns_loops = ["gfx103", "gfx11"].iter().any(|family| target.starts_with(family));
                files += 1 + usize::from(is_linked) + usize::from(!aligns_loops);
                objects += 1;
            }
        }
    }
    say(&format!("layout engine: {objects} objects, {files} files compared with LLVM's, {exact} equal in every byte"));
    assert!(exact * 10 >= files * 9, "nearly all files are equal in every byte: {exact} of {files}");
}
