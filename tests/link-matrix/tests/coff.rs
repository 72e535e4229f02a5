//! The matrix for COFF: registrars from the C text, `llvm-lib`, lld-link 22 and 23.

use hotswap_families::archive::PATCHES_DEF;
use hotswap_families::manifest::ManifestFormat;
use hotswap_link_matrix::{
    Expect, GHOST, LinkBench, Ran, Registrars, Tally, families, patches_def_without, product_fault, records, sweep,
};

const FORMAT: ManifestFormat = ManifestFormat::CoffX86_64;
const TARGET: &str = "--target=x86_64-pc-windows-msvc";
const LINKERS: &[&str] = &["lld-link-22", "lld-link-23"];
const KINDS: &[&[&str]] = &[&["/entry:mainCRTStartup", "/subsystem:console"], &["/dll", "/noentry"]];
const COLLECTIONS: &[&[&str]] = &[&[], &["/opt:ref"], &["/opt:noref"], &["/opt:ref", "/opt:icf"], &["/debug"]];
const USER: &str = "\
    int unused_function(void) { return 7; }\n\
    int mainCRTStartup(void) { return 0; }\n";

#[derive(Debug, Clone, Copy)]
struct Combination {
    linker: &'static str,
    kind: &'static [&'static str],
    collection: &'static [&'static str],
    lto: bool,
    library_first: bool,
    registrars: Registrars,
}

fn combinations() -> Vec<Combination> {
    let mut all = Vec::new();
    for (&linker, &kind) in LINKERS.iter().flat_map(|linker| KINDS.iter().map(move |kind| (linker, kind))) {
        for (&collection, lto) in COLLECTIONS.iter().flat_map(|words| [(words, false), (words, true)]) {
            for library_first in [false, true] {
                for registrars in Registrars::ALL {
                    all.push(Combination { linker, kind, collection, lto, library_first, registrars });
                }
            }
        }
    }
    all
}

fn library(bench: &LinkBench, name: &str, objects: &[String]) {
    let output = format!("/out:{name}");
    let words: Vec<&str> = ["/nologo", &output].into_iter().chain(objects.iter().map(String::as_str)).collect();
    bench.must("llvm-lib-22", &words);
}

fn prepare(bench: &LinkBench) {
    bench.write("user.c", USER);
    let compile = [TARGET, "-O2", "-ffunction-sections", "-c", "user.c", "-o"];
    bench.must("clang-22", &[&compile[..], &["user.obj"]].concat());
    bench.must("clang-22", &[&compile[..], &["user-lto.obj", "-flto"]].concat());
    bench.manifest("plan", FORMAT, &families());
    bench.manifest("ghost", FORMAT, &[&families()[..], &[GHOST]].concat());
    let clang = [TARGET, "-ffreestanding", "-ffunction-sections", "-fdata-sections"];
    let all = bench.registrars("all", PATCHES_DEF, &clang);
    library(bench, "Complete.lib", &all);
    library(bench, "ObjectRemoved.lib", &all[1..]);
    let less = bench.registrars("less", &patches_def_without(families()[families().len() - 1]), &clang);
    library(bench, "LineRemoved.lib", &less);
}

fn link(bench: &LinkBench, combination: &Combination, output: &str) -> Ran {
    let (manifest, library) = (combination.registrars.manifest(), combination.registrars.archive("lib"));
    let user = if combination.lto { "user-lto.obj" } else { "user.obj" };
    let inputs =
        if combination.library_first { [library.as_str(), user, manifest] } else { [user, manifest, library.as_str()] };
    let output = format!("/out:{output}");
    let common = ["/nologo", "/nodefaultlib", &output];
    bench.run(combination.linker, &[&common[..], combination.kind, combination.collection, &inputs].concat())
}

#[test]
fn a_missing_registrar_is_an_error_that_names_the_family() {
    let tools = ["clang-22", "llvm-lib-22", "lld-link-22", "lld-link-23", "llvm-strip-22"];
    let Some(bench) = LinkBench::new("COFF link matrix", &tools) else { return };
    prepare(&bench);
    let tally = sweep(&combinations(), |index, combination| {
        let output = format!("out-{index}.dll");
        let ran = link(&bench, combination, &output);
        let fault = combination.registrars.expectation().fault(&ran);
        fault.or_else(|| ran.ok.then(|| fault_of(&bench, &output)).flatten())
    });
    tally.finish("COFF link matrix");
}

fn fault_of(bench: &LinkBench, output: &str) -> Option<String> {
    let linked = product_fault(&bench.read(output), FORMAT);
    bench.must("llvm-strip-22", &[output]);
    linked.or_else(|| product_fault(&bench.read(output), FORMAT).map(|fault| format!("stripped, {fault}")))
}

#[test]
fn two_manifests_meet_in_one_image_and_only_force_lets_a_missing_registrar_pass() {
    let tools = ["clang-22", "llvm-lib-22", "lld-link-22", "lld-link-23"];
    let Some(bench) = LinkBench::new("COFF traps", &tools) else { return };
    prepare(&bench);
    bench.manifest("second", FORMAT, &families()[..1]);
    let mut tally = Tally::default();
    let common = ["/nologo", "/nodefaultlib", "/dll", "/noentry", "/out:out.dll", "user.obj", "plan.manifest.o"];
    let missing = Expect::ErrorNaming(families()[0].to_owned());
    library(&bench, "manifest.lib", &["plan.manifest.o".to_owned()]);
    for linker in LINKERS {
        let mut row = |name: &str, words: &[&str], expect: &Expect| {
            tally.add(&format!("{linker}, {name}"), expect.fault(&bench.run(linker, words)));
        };
        row("/force", &[&common[..], &["ObjectRemoved.lib", "/force:unresolved"]].concat(), &Expect::Links);
        let inside = [&common[..6], &["manifest.lib", "ObjectRemoved.lib"]].concat();
        row("manifest in a library", &inside, &Expect::Links);
        row("manifest in a whole library", &[&inside[..], &["/wholearchive:manifest.lib"]].concat(), &missing);
        row("two", &[&common[..], &["second.manifest.o", "Complete.lib"]].concat(), &Expect::Links);
        let found = records(&bench.read("out.dll")).unwrap();
        let families: Vec<_> = found.iter().map(|record| record.families.len()).collect();
        assert_eq!(families, [hotswap_families::FAMILIES.len(), 1]);
    }
    tally.finish("COFF traps");
}
