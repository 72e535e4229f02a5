//! Functions and kernels that the linker folded into others (`--icf=all`), with and without debug information: what is left of
//! them in call frames and line tables is about no code.

use hotswap_lint::compare_with_original;
use hotswap_rewrite_exam::compile::SOURCE;
use hotswap_rewrite_exam::exam::{Tally, object_of, run};
use hotswap_userland::{Workbench, say};

/// Debug information: clang 22 writes call frames for it alone, clang 24 always.
const DEBUG: [&str; 4] = ["", "-g", "-g -gdwarf-4", "-gline-tables-only"];

/// Further linker options.
const LINKS: [&str; 4] = ["", "--emit-relocs", "-s", "--gc-sections"];

#[test]
fn folded_functions_are_no_reason_to_refuse() {
    let Some(bench) = Workbench::new("folded functions") else { return };
    bench.write("folded.c", include_bytes!("folded.c"));
    let mut tally = Tally::default();
    for version in [22, 24].into_iter().filter(|version| bench.versions.contains(version)) {
        for (debug, link) in DEBUG.iter().flat_map(|debug| LINKS.map(|link| (debug, link))) {
            let name = format!("folded{version}{}{link}", debug.replace(' ', ""));
            bench.run(&format!(
                "clang-{version} --target=amdgcn-amd-amdhsa -mcpu={SOURCE} -nogpulib -w -O2 -ffunction-sections {debug} \
                 -c folded.c -o {name}.o && ld.lld-{version} -shared --icf=all {link} {name}.o -o {name}"
            ));
            let bytes = bench.read(&name);
            tally.objects += 1;
            object_of(&bench, &name, &bytes, None, &mut tally);
            let Ok(made) = run(&bytes, false) else { continue };
            let proof = compare_with_original(&bytes, &made.bytes).unwrap();
            tally.problems.extend(proof.findings.iter().map(|finding| format!("{name}: {}", finding.to_diagnostic())));
        }
    }
    say(&format!("folded functions: {}", tally.line()));
    assert!(tally.objects >= 16, "{} objects", tally.objects);
    assert!(tally.refused.is_empty(), "{}", tally.refused.join("\n"));
    assert!(tally.problems.is_empty(), "{}", tally.problems.join("\n"));
}
