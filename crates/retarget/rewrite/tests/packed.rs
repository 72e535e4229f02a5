//! Relocations in forms other than rows with addends: inserting instructions into a finished object must give the same
//! bytes as the same instructions in the source, whatever form assembler and linker were set to.

mod common;

use common::{Random, compile_kernels, edits, instructions, labels, renumbered, sites, tool, with_labels, with_nops};
use hotswap_rewrite::{RewriteOptions, rewrite_object};
use hotswap_userland::{Workbench, say};
use std::collections::BTreeMap;

/// Arguments for the assembler and, where it is linked, for the linker.
const FORMS: &[(&str, Option<&str>)] = &[
    ("--crel", None),
    ("--crel", Some("--emit-relocs")),
    ("", Some("--emit-relocs -z rel")),
    ("", Some("--emit-relocs -z pack-relative-relocs")),
    ("--crel", Some("-z rel")),
    ("", Some("-z pack-relative-relocs")),
];
const TARGETS: &[&str] = &["gfx90a", "gfx1250"];

/// The object of a text, linked if requested.
fn make(bench: &Workbench, (version, target): (u32, &str), text: &str, form: (&str, Option<&str>)) -> Vec<u8> {
    bench.write("f.s", text.as_bytes());
    let mc = tool(version, "llvm-mc");
    bench.run(&format!("{mc} -triple=amdgcn-amd-amdhsa -mcpu={target} -filetype=obj {} f.s -o f.o", form.0));
    if let Some(words) = form.1 {
        bench.run(&format!("{} -shared {words} f.o -o f.co && mv f.co f.o", tool(version, "ld.lld")));
    }
    bench.read("f.o")
}

fn stripped(bench: &Workbench, version: u32, data: &[u8]) -> Vec<u8> {
    bench.write("s.o", data);
    bench.run(&format!("{} --strip-debug s.o", tool(version, "llvm-strip")));
    bench.read("s.o")
}

#[test]
fn relocations_of_all_forms_move_with_the_code() {
    let Some(bench) = Workbench::new("forms of relocations") else { return };
    let mut random = Random(11);
    let mut count = 0;
    for version in bench.versions.iter().copied() {
        for target in TARGETS {
            let text = compile_kernels(&bench, version, target, "-O1 -g", include_str!("kernels/pointers.cl"));
            let text: String =
                text.lines().filter(|line| !line.contains("inst_pref_size")).map(|line| format!("{line}\n")).collect();
            let lines = instructions(&text);
            make(&bench, (version, target), &with_labels(&text, &lines), ("", None));
            let places = labels(&bench, version, "f.o", "hs_at_");
            for form in FORMS {
                let what = format!("LLVM {version} {target} {form:?}");
                let sites = sites(&lines, &mut random, 9, true);
                let before = make(&bench, (version, target), &text, *form);
                let after = make(&bench, (version, target), &with_nops(&text, &lines, &sites, false), *form);
                let list = renumbered(&edits(&sites, &places), &before);
                let ours = rewrite_object(&before, &list, &RewriteOptions::default())
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_ne!(before, after, "{what}");
                let same =
                    ours.bytes == after || stripped(&bench, version, &ours.bytes) == stripped(&bench, version, &after);
                assert!(same, "{what}: other bytes than LLVM's");
                let again = rewrite_object(&ours.bytes, &BTreeMap::new(), &RewriteOptions::default()).unwrap();
                assert!(again.bytes == ours.bytes, "{what}: a second run changes nothing");
                count += 1;
            }
        }
    }
    say(&format!("layout engine: {count} files with relocations of other forms are LLVM's"));
}
