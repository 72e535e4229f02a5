//! Files that were linked without their relocations: the same edits give the same loaded parts and debug information as
//! in the file with them, byte for byte.

mod common;

use common::{
    Random, assemble, compile_kernels, edits, instructions, labels, link, renumbered, sites, tool, with_labels,
};
use hotswap_code_object::image::ObjectImage;
use hotswap_rewrite::{CodeEdits, RewriteOptions, rewrite_object};
use hotswap_userland::{Workbench, everything, say, slice};
use std::collections::BTreeMap;

/// Targets, and the first version of LLVM that is tested for each.
const TARGETS: &[(&str, u32)] = &[
    ("gfx906", 22),
    ("gfx90a", 22),
    ("gfx950", 22),
    ("gfx1030", 22),
    ("gfx1100", 23),
    ("gfx1201", 22),
    ("gfx1250", 22),
    ("gfx1250-strict", 24),
];
const FORMS: &[&str] = &[
    "-O2 -g",
    "-O0 -g",
    "-O1 -gdwarf-4",
    "-O3 -mllvm -amdgpu-kernarg-preload-count=4",
    "-O0 -gline-tables-only",
    "-O2 -g -ffunction-sections",
    "-O1 -g3 -gdwarf-5",
];
const KERNELS: &[&str] = &[include_str!("kernels/calls.cl"), include_str!("kernels/pointers.cl")];

/// Names and bytes of loaded and debug sections, and names with values and sizes of symbols.
type Parts = (BTreeMap<String, (u64, Vec<u8>)>, BTreeMap<String, (u64, u64)>);

fn parts(data: &[u8]) -> Parts {
    let image = ObjectImage::parse(data).unwrap();
    let is_other =
        |name: &str| [".symtab", ".strtab", ".shstrtab", ""].contains(&name) || name.starts_with(".rela.debug");
    let sections = image.sections.iter().filter(|section| {
        !is_other(section.name)
            && (section.is_loaded() || section.name.starts_with(".debug") || section.name == ".comment")
    });
    let sections = sections.map(|section| (section.name.to_owned(), (section.address, section.bytes.to_vec())));
    let symbols = image.symbol_tables().unwrap().into_iter().flat_map(|table| table.rows);
    let symbols = symbols.filter(|row| !row.name.is_empty() && row.section.is_some());
    (sections.collect(), symbols.map(|row| (row.name.to_owned(), (row.value, row.size))).collect())
}

/// The file linked without its relocations.
fn bare(bench: &Workbench, version: u32, words: &str) -> Vec<u8> {
    bench.run(&format!("{} -shared {words} plain.o -o bare.co", tool(version, "ld.lld")));
    bench.read("bare.co")
}

fn judge(
    bench: &Workbench,
    (version, target, options): (u32, &str, &str),
    random: &mut Random,
    count: &mut usize,
    wrong: &mut Vec<String>,
) {
    for kernels in [KERNELS[*count % KERNELS.len()]] {
        let what = format!("LLVM {version} {target} {options} {}", &kernels[..40]);
        let text = compile_kernels(bench, version, target, options, kernels);
        let lines = instructions(&text);
        // Sections of functions are merged by the linker: their offsets are those of the linked file.
        assemble(bench, version, target, "places", &with_labels(&text, &lines));
        link(bench, version, "places");
        let places = labels(bench, version, "places.co", "hs_at_");
        assemble(bench, version, target, "plain", &text);
        let (with, without) = (link(bench, version, "plain"), bare(bench, version, ""));
        let (a, b) = (parts(&with), parts(&without));
        let differ = a.0.iter().find(|(name, part)| b.0.get(*name) != Some(*part)).map(|(name, _)| name);
        assert!(a == b, "{what}: the linker gives the same, but for {differ:?}");
        let base = ObjectImage::parse(&without).unwrap();
        let code = base.sections.iter().find(|section| section.is_code() && section.size > 0).unwrap().address;
        let places: Vec<(usize, u64)> = places.into_iter().map(|(_, address)| (0, address - code)).collect();
        let every = 2 + random.below(40);
        let list = edits(&sites(&lines, random, every, false), &places);
        if list.is_empty() {
            continue;
        }
        match compare(&with, &without, &list) {
            Ok(()) => *count += 1,
            Err(error) => wrong.push(format!("{what}: {error}")),
        }
    }
}

/// Makes the same edits to both files.
fn compare(with: &[u8], without: &[u8], list: &BTreeMap<usize, CodeEdits>) -> Result<(), String> {
    let apply = |data: &[u8]| {
        let new = rewrite_object(data, &renumbered(list, data), &RewriteOptions::default());
        new.map(|new| new.bytes).map_err(|error| format!("{} {:?}", error.what, error.place))
    };
    let (ours, theirs) = (apply(without)?, apply(with)?);
    let (our_parts, their_parts) = (parts(&ours), parts(&theirs));
    for (name, part) in &their_parts.0 {
        let mine = &our_parts.0[name];
        let differs = part.1.iter().zip(&mine.1).position(|(a, b)| a != b);
        if part != mine {
            return Err(format!("`{name}` differs at {differs:x?} ({:#x} and {:#x})", part.0, mine.0));
        }
    }
    if our_parts.1 != their_parts.1 {
        return Err("symbols differ".to_owned());
    }
    match rewrite_object(&ours, &BTreeMap::new(), &RewriteOptions::default()) {
        Ok(again) if again.bytes == ours => Ok(()),
        _ => Err("a second run changes it".to_owned()),
    }
}

#[test]
fn without_relocations_the_result_is_that_with_them() {
    let Some(bench) = Workbench::new("linked without relocations") else { return };
    let (mut random, mut files, mut wrong) = (Random(23), 0, Vec::new());
    for version in &bench.versions {
        for (number, (target, _)) in TARGETS.iter().enumerate().filter(|(_, (_, first))| first <= version) {
            for more in slice(&format!("without relocations, LLVM {version} {target}"), vec![0, 3], |turn, _| turn == 0)
            {
                let options = FORMS[(number + more + *version as usize) % FORMS.len()];
                judge(&bench, (*version, target, options), &mut random, &mut files, &mut wrong);
            }
        }
    }
    say(&format!("layout engine: {files} files without relocations give what those with them give"));
    let fewest = if everything() { 20 } else { 15 };
    assert!(wrong.is_empty() && files > fewest, "{}", wrong.join("\n"));
}

/// Compressed debug information is that of the plain file, compressed again.
#[test]
fn compressed_sections_are_compressed_again() {
    let Some(bench) = Workbench::new("compressed sections") else { return };
    let version = *bench.versions.last().unwrap();
    let text = compile_kernels(&bench, version, "gfx1250", "-O2 -g", KERNELS[0]);
    let lines = instructions(&text);
    assemble(&bench, version, "gfx1250", "places", &with_labels(&text, &lines));
    let places = labels(&bench, version, "places.o", "hs_at_");
    assemble(&bench, version, "gfx1250", "plain", &text);
    let list = edits(&sites(&lines, &mut Random(3), 20, false), &places);
    for relocations in ["", "--emit-relocs"] {
        let plain = bare(&bench, version, relocations);
        let plain = rewrite_object(&plain, &renumbered(&list, &plain), &RewriteOptions::default()).unwrap().bytes;
        for form in ["zlib", "zstd"] {
            let packed = bare(&bench, version, &format!("{relocations} --compress-debug-sections={form}"));
            let new = rewrite_object(&packed, &renumbered(&list, &packed), &RewriteOptions::default()).unwrap().bytes;
            assert!(new.len() < plain.len(), "{form}: it is compressed");
            bench.write("packed", &new);
            let copy = tool(version, "llvm-objcopy");
            bench.run(&format!("{copy} --decompress-debug-sections packed unpacked"));
            let (ours, theirs) = (parts(&bench.read("unpacked")), parts(&plain));
            assert!(ours == theirs, "{form} {relocations}: the same content");
            assert!(
                rewrite_object(&new, &BTreeMap::new(), &RewriteOptions::default()).unwrap().bytes == new,
                "{form}: a second run"
            );
        }
    }
}
