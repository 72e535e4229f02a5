//! Files that were linked without their relocations and hold code with unresolved control flow: it stays byte for byte,
//! and functions that grow move to a pool after it.
//!
//! A case is `pool/NAME.s`: the code of the kernels that its line `// kernels:` names, and of other functions. Those on
//! a line `// still:` must have the same bytes at the same address afterwards. `pool/NAME.expect` is a summary of the
//! record followed by LLVM's listing of the result, with equal lines counted, or the refusals. `HOTSWAP_BLESS=1` writes
//! it.

mod common;

use common::{SOURCE, cases, disassembled, run, setting, stem};
use hotswap_adapt::AdaptedObject;
use hotswap_code_object::image::ObjectImage;
use hotswap_report::Diagnostic;
use hotswap_userland::{Workbench, golden, say};
use std::fmt::Write;
use std::fs;

/// Appends descriptors and metadata to the code.
fn whole(case: &str) -> String {
    let names: Vec<&str> = setting(case, "kernels").unwrap().split(", ").collect();
    let mut text =
        String::from(".amdgcn_target \"amdgcn-amd-amdhsa-unknown-gfx1250\"\n.amdhsa_code_object_version 5\n.text\n");
    text += case;
    text += "\n.rodata\n";
    let mut note = String::new();
    for name in names {
        let _ = write!(
            text,
            ".p2align 6\n.amdhsa_kernel {name}\n.amdhsa_next_free_vgpr 64\n.amdhsa_next_free_sgpr 60\n\
             .amdhsa_inst_pref_size 1\n.end_amdhsa_kernel\n"
        );
        let _ = write!(
            note,
            "  - .name: {name}\n    .symbol: {name}.kd\n    .kernarg_segment_size: 0\n    .kernarg_segment_align: 4\n    \
             .group_segment_fixed_size: 0\n    .private_segment_fixed_size: 0\n    .wavefront_size: 32\n    \
             .sgpr_count: 62\n    .vgpr_count: 64\n    .max_flat_workgroup_size: 256\n"
        );
    }
    text + ".amdgpu_metadata\n---\namdhsa.kernels:\n"
        + &note
        + "amdhsa.target: amdgcn-amd-amdhsa-unknown-gfx1250\namdhsa.version:\n  - 1\n  - 2\n...\n.end_amdgpu_metadata\n"
}

fn assembled(bench: &Workbench, name: &str, text: &str) -> Vec<u8> {
    bench.assemble(24, &format!("-mcpu={SOURCE}"), name, text);
    bench.link(24, "", name)
}

/// Address and bytes of a function.
fn function(data: &[u8], name: &str) -> (u64, Vec<u8>) {
    let image = ObjectImage::parse(data).unwrap();
    let symbols = image.symbol_tables().unwrap();
    let row = symbols.iter().flat_map(|table| &table.rows).find(|row| row.name == name).unwrap();
    let section = &image.sections[row.section.unwrap()];
    let start = (row.value - section.address) as usize;
    (row.value, section.bytes[start..start + row.size as usize].to_vec())
}

fn found(outcome: &Result<AdaptedObject, Vec<Diagnostic>>, lines: Option<&Vec<String>>) -> String {
    let mut text = String::new();
    match (outcome, lines) {
        (Ok(adapted), Some(lines)) => {
            let _ = writeln!(text, "// {:+} bytes", adapted.record.grown);
            for function in &adapted.record.functions {
                let _ = writeln!(text, "// {} at {:#x}: {:+} bytes", function.name, function.offset, function.grown);
                function.assumes.iter().for_each(|what| text += &format!("//   assumes: {what}\n"));
            }
            for equal in lines.chunk_by(|a, b| a == b) {
                let _ = match equal.len() {
                    1 => writeln!(text, "{}", equal[0]),
                    count => writeln!(text, "{count} x {}", equal[0]),
                };
            }
        }
        (Ok(_), None) => {}
        (Err(refusals), _) => refusals.iter().for_each(|refusal| text += &format!("{refusal}\n")),
    }
    text
}

#[test]
fn what_cannot_be_explained_stays_and_what_grows_goes_behind_it() {
    let Some(bench) = Workbench::new("adapt-pool") else { return };
    let paths = cases("tests/pool");
    let (mut wrong, mut made, mut outcomes) = (Vec::new(), Vec::new(), Vec::new());
    for path in &paths {
        let (name, case) = (stem(path), fs::read_to_string(path).unwrap());
        let data = assembled(&bench, name, &whole(&case));
        let outcome = run(&data, false);
        if let Ok(adapted) = &outcome {
            for still in setting(&case, "still").into_iter().flat_map(|names| names.split(", ")) {
                assert_eq!(function(&data, still), function(&adapted.bytes, still), "{name}: {still}");
            }
            let once = run(&data, true).unwrap();
            let again = run(&once.bytes, true).unwrap_or_else(|refused| panic!("{name}, again: {refused:?}"));
            assert!(once.bytes == again.bytes, "{name}: a second run changes something");
            made.push((name.to_owned(), adapted.bytes.clone()));
        }
        outcomes.push(outcome);
    }
    let lines = disassembled(&bench, &made);
    for (path, outcome) in paths.iter().zip(&outcomes) {
        let place = made.iter().position(|(name, _)| name == stem(path));
        let listing = place.map(|place| &lines[place]);
        let invalid = listing.is_some_and(|lines| lines.iter().any(|line| line.contains("<unknown>")));
        assert!(!invalid, "{}: {listing:?}", stem(path));
        wrong.extend(golden(&path.with_extension("expect"), &found(outcome, listing)).err());
    }
    let refused = outcomes.iter().filter(|outcome| outcome.is_err()).count();
    say(&format!("pool: {} cases, {refused} of them refused, {} not as expected", paths.len(), wrong.len()));
    assert!(!paths.is_empty() && wrong.is_empty(), "{}", wrong.join("\n"));
}
