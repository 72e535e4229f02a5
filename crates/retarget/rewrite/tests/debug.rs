//! Rare forms of debug information: 64-bit DWARF, indices for debuggers, separate types. Instructions inserted into the
//! finished file must give what LLVM makes of the same instructions in the source, and it must verify.

mod common;

use common::{Random, assemble, edits, instructions, labels, renumbered, sites, tool, with_labels, with_nops};
use hotswap_code_object::image::ObjectImage;
use hotswap_rewrite::{RewriteOptions, rewrite_object};
use hotswap_userland::{Workbench, everything, in_turn, say};
use std::collections::BTreeMap;

/// Arguments for the compiler, the assembler and the linker; sections that must exist.
const FORMS: &[(&str, &str, &str, &[&str])] = &[
    ("-O2 -gdwarf-5 -gdwarf64", "--dwarf64", "", &[".debug_info", ".debug_rnglists", ".debug_loclists"]),
    ("-O1 -gdwarf-4 -gdwarf64", "--dwarf64 --dwarf-version=4", "", &[".debug_ranges", ".debug_loc"]),
    ("-O1 -gdwarf-5 -gdwarf64 -gdwarf-aranges -mllvm -generate-arange-section", "--dwarf64", "", &[".debug_aranges"]),
    ("-O2 -g -ggnu-pubnames", "", "--gdb-index", &[".gdb_index"]),
    ("-O1 -gdwarf-4 -ggnu-pubnames", "--dwarf-version=4", "--gdb-index", &[".gdb_index", ".debug_ranges"]),
    ("-O2 -gdwarf-5 -gpubnames", "", "--debug-names", &[".debug_names"]),
    ("-O1 -gdwarf-5 -gpubnames -gdwarf64", "--dwarf64", "", &[".debug_names"]),
    ("-O1 -gdwarf-4 -fdebug-types-section", "--dwarf-version=4", "", &[".debug_types"]),
    ("-O2 -gdwarf-5 -fdebug-types-section", "", "", &[".debug_info", ".debug_line_str"]),
];

fn linked(bench: &Workbench, version: u32, words: &str) -> Vec<u8> {
    bench.run(&format!("{} -shared {words} f.o -o f.co", tool(version, "ld.lld")));
    bench.read("f.co")
}

/// Sections of debug information with other bytes than in another file.
fn differing(ours: &[u8], theirs: &[u8]) -> Vec<String> {
    let content = |data: &[u8]| -> BTreeMap<String, Vec<u8>> {
        let image = ObjectImage::parse(data).unwrap();
        let sections = image.sections.iter().filter(|part| part.name.contains("debug") || part.name == ".gdb_index");
        sections.map(|part| (part.name.to_owned(), part.bytes.to_vec())).collect()
    };
    let (ours, theirs) = (content(ours), content(theirs));
    assert!(ours.keys().eq(theirs.keys()));
    ours.into_iter().filter(|(name, bytes)| theirs[name] != *bytes).map(|(name, _)| name).collect()
}

#[test]
fn rare_forms_of_debug_information_are_llvms_and_verify() {
    let Some(bench) = Workbench::new("rare debug information") else { return };
    let (mut random, mut files, mut exact, mut wrong) = (Random(5), 0, 0, Vec::new());
    let forms = in_turn("rare debug information", FORMS, &bench.versions, |_| false);
    let fewest = if everything() { 60 } else { forms.len() * 2 };
    for (&version, (compiler, assembler, linker, sections)) in forms {
        bench.write("t.clcpp", include_bytes!("kernels/types.clcpp"));
        bench.run(&format!(
            "{} -x cl -cl-std=clc++2021 --target=amdgcn-amd-amdhsa -nogpulib -fPIC -w -mcpu=gfx1250 {compiler} -S \
                 t.clcpp -o t.s",
            tool(version, "clang")
        ));
        let text = String::from_utf8(bench.read("t.s")).unwrap();
        let text: String =
            text.lines().filter(|line| !line.contains("inst_pref_size")).map(|line| format!("{line}\n")).collect();
        let lines = instructions(&text);
        assemble(&bench, version, "gfx1250", "places", &with_labels(&text, &lines));
        let sites = sites(&lines, &mut random, 7, true);
        let list = edits(&sites, &labels(&bench, version, "places.o", "hs_at_"));
        let object = |text: &str| {
            bench.write("f.s", text.as_bytes());
            let mc = tool(version, "llvm-mc");
            bench.run(&format!("{mc} -triple=amdgcn-amd-amdhsa -mcpu=gfx1250 -filetype=obj {assembler} f.s -o f.o"));
            // lld makes no index together with --emit-relocs: it crashes (22 and 23).
            let all = [None, Some("").filter(|_| linker.is_empty()).map(|_| "--emit-relocs"), Some(*linker)];
            all.map(|words| match words {
                None => bench.read("f.o"),
                Some(words) => linked(&bench, version, words),
            })
        };
        let (before, after) = (object(&text), object(&with_nops(&text, &lines, &sites, false)));
        for (number, (before, after)) in before.iter().zip(&after).enumerate() {
            let what = format!("LLVM {version} {compiler} {linker} {number}");
            let image = ObjectImage::parse(before).unwrap();
            let is_made = |name: &&&str| number < 2 || image.find(name).is_some();
            assert!(sections.iter().all(|name| is_made(&name)), "{what}: {sections:?} are there");
            let info = image.sections.iter().find(|part| part.name == ".debug_info").unwrap().bytes;
            assert_eq!(info.starts_with(&[0xff; 4]), compiler.contains("-gdwarf64"), "{what}: the width of DWARF");
            let new = match rewrite_object(before, &renumbered(&list, before), &RewriteOptions::default()) {
                Ok(new) => new.bytes,
                Err(error) => {
                    wrong.push(format!("{what}: {} {:?}", error.what, error.place));
                    continue;
                }
            };
            let other = differing(&new, after);
            // Where the two start a range at different labels of the same address, only that may differ.
            wrong.extend((!other.is_empty() && before != after).then(|| format!("{what}: other bytes in {other:?}")));
            bench.write("new", &new);
            bench.write("theirs", after);
            let dump = tool(version, "llvm-dwarfdump");
            let verify = |file: &str| bench.run(&format!("{dump} --verify {file} 2>&1 || true"));
            let (ours, theirs) = (verify("new"), verify("theirs"));
            if ours.replace("new", "theirs") != theirs {
                wrong.push(format!("{what}: {ours}"));
            }
            assert!(rewrite_object(&new, &BTreeMap::new(), &RewriteOptions::default()).unwrap().bytes == new, "{what}");
            files += 1;
            exact += usize::from(other.is_empty());
        }
    }
    say(&format!("layout engine: {files} files with rare debug information, {exact} have LLVM's"));
    assert!(wrong.is_empty() && exact > fewest, "{exact} of {files}\n{}", wrong.join("\n"));
}
