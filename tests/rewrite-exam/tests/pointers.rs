//! Functions that are called by pointer, as clang compiles them, with their symbols and without: they are changed and proven
//! where the file is linked, and a kernel that was not given the registers is noticed.

use hotswap_lint::compare_with_original;
use hotswap_rewrite_exam::compile::{Form, Object, SOURCE, strip};
use hotswap_rewrite_exam::exam::{Tally, object_of, run};
use hotswap_userland::{Workbench, say};

/// Versions of clang, levels, forms, and what the linker is told for them.
const SETTINGS: [(u32, char, Form, &str); 3] =
    [(22, '0', Form::Linked, ""), (24, '0', Form::Linked, ""), (24, '2', Form::Relocations, "--emit-relocs")];

/// The metadata key of the kernel with the calls; a number of one byte follows it.
const COUNT: &[u8] = b".vgpr_count";

#[test]
fn functions_that_are_called_by_pointer_are_changed_and_proven() {
    let Some(bench) = Workbench::new("functions called by pointer") else { return };
    bench.write("pointers.c", include_bytes!("pointers.c"));
    let (mut tally, mut noticed) = (Tally::default(), 0);
    for &(version, level, form, link) in SETTINGS.iter().filter(|(version, ..)| bench.versions.contains(version)) {
        let name = format!("pointers{version}-O{level}{link}");
        bench.run(&format!(
            "clang-{version} --target=amdgcn-amd-amdhsa -mcpu={SOURCE} -nogpulib -w -O{level} -c pointers.c -o {name}.o && \
             ld.lld-{version} -shared {link} {name}.o -o {name}"
        ));
        let plain = Object { bytes: bench.read(&name), name, form };
        for object in strip(&bench, &plain).into_iter().chain([plain.clone()]) {
            noticed += usize::from(judged(&bench, &object, &mut tally));
        }
    }
    say(&format!("functions called by pointer: {}, {noticed} faults noticed", tally.line()));
    assert!(tally.objects >= 5 && noticed == tally.objects, "{} objects, {noticed} faults noticed", tally.objects);
    assert!(tally.refused.is_empty(), "{}", tally.refused.join("\n"));
    assert!(tally.problems.is_empty(), "{}", tally.problems.join("\n"));
}

/// Through the engine, and proven; whether a kernel with one register too few is noticed.
fn judged(bench: &Workbench, object: &Object, tally: &mut Tally) -> bool {
    let Object { name, bytes, .. } = object;
    tally.objects += 1;
    object_of(bench, name, bytes, None, tally);
    let Ok(made) = run(bytes, false) else { return false };
    let proof = compare_with_original(bytes, &made.bytes).unwrap();
    tally.problems.extend(proof.findings.iter().map(|finding| format!("{name}: {}", finding.to_diagnostic())));
    let pointers = "called by kernels of this code object alone";
    let is_told = proof.assumes.iter().any(|what| what.contains(pointers));
    // The kernel with the calls stands first or last: of both one count too low, at least one is noticed.
    let places = made.bytes.windows(COUNT.len()).enumerate().filter(|(_, window)| *window == COUNT);
    let faults: Vec<usize> = places.map(|(at, _)| at + COUNT.len()).collect();
    let is_noticed = |at: &usize| {
        let mut fault = made.bytes.clone();
        // A number below 128 is its own byte; behind 0xcc comes a byte.
        let at = if fault[*at] == 0xcc { *at + 1 } else { *at };
        fault[at] = 4;
        let found = compare_with_original(bytes, &fault).unwrap().findings;
        found.iter().any(|finding| finding.reason.contains("vector registers"))
    };
    is_told && faults.iter().any(is_noticed)
}
