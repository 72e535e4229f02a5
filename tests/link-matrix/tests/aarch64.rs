//! The matrix for AArch64: cross-compiled registrars from the C text, lld and mold, no libc.

use hotswap_families::archive::PATCHES_DEF;
use hotswap_families::manifest::ManifestFormat;
use hotswap_link_matrix::{GHOST, LinkBench, Registrars, families, patches_def_without, product_fault, sweep};

const FORMAT: ManifestFormat = ManifestFormat::ElfAarch64;
const TARGET: &str = "--target=aarch64-linux-gnu";
const LINKERS: &[&[&str]] = &[&["ld.lld-22"], &["ld.lld-23"], &["mold", "-m", "aarch64linux"]];
const KINDS: &[&[&str]] = &[&["-static"], &["-pie"], &["-shared"], &["-shared", "-Bsymbolic"]];
fn archive(bench: &LinkBench, name: &str, objects: &[String]) {
    let words: Vec<&str> = ["crsD", name].into_iter().chain(objects.iter().map(String::as_str)).collect();
    bench.must("llvm-ar-22", &words);
}

fn prepare(bench: &LinkBench) {
    bench.write("user.c", "int unused_function(void) { return 7; }\nint _start(void) { return 0; }\n");
    let compile = [TARGET, "-O2", "-fPIC", "-ffunction-sections", "-c", "user.c"];
    bench.must("clang-22", &[&compile[..], &["-o", "user.o"]].concat());
    bench.manifest("plan", FORMAT, &families());
    bench.manifest("ghost", FORMAT, &[&families()[..], &[GHOST]].concat());
    let clang = [TARGET, "-ffreestanding", "-fPIC"];
    let all = bench.registrars("all", PATCHES_DEF, &clang);
    archive(bench, "Complete.a", &all);
    archive(bench, "ObjectRemoved.a", &all[1..]);
    let less = bench.registrars("less", &patches_def_without(families()[families().len() - 1]), &clang);
    archive(bench, "LineRemoved.a", &less);
}

#[test]
fn a_missing_registrar_is_an_error_that_names_the_family() {
    let tools = ["clang-22", "ld.lld-22", "ld.lld-23", "mold", "llvm-ar-22", "llvm-strip-22"];
    let Some(bench) = LinkBench::new("AArch64 link matrix", &tools) else { return };
    prepare(&bench);
    let mut combinations = Vec::new();
    for (linker, kind) in LINKERS.iter().flat_map(|linker| KINDS.iter().map(move |kind| (linker, kind))) {
        for (gc, archive_first) in [(false, false), (true, false), (false, true), (true, true)] {
            combinations.extend(Registrars::ALL.map(|registrars| (linker, kind, gc, archive_first, registrars)));
        }
    }
    let tally = sweep(&combinations, |index, &(linker, kind, gc, archive_first, registrars)| {
        let output = format!("out-{index}");
        let (manifest, archive) = (registrars.manifest(), registrars.archive("a"));
        let own = if archive_first { [archive.as_str(), manifest] } else { [manifest, archive.as_str()] };
        let collect: &[&str] = if gc { &["--gc-sections"] } else { &[] };
        let words = [&linker[1..], *kind, collect, &["user.o"], &own, &["-o", &output]].concat();
        let ran = bench.run(linker[0], &words);
        let fault = registrars.expectation().fault(&ran);
        fault.or_else(|| ran.ok.then(|| fault_of(&bench, &output)).flatten())
    });
    tally.finish("AArch64 link matrix");
}

fn fault_of(bench: &LinkBench, output: &str) -> Option<String> {
    let linked = product_fault(&bench.read(output), FORMAT);
    bench.must("llvm-strip-22", &[output]);
    linked.or_else(|| product_fault(&bench.read(output), FORMAT).map(|fault| format!("stripped, {fault}")))
}
