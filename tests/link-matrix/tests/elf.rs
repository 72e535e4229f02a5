//! The ELF link matrix: linker × kind of output × garbage collection × LTO × order × registrars.

use hotswap_families::archive::{PATCHES_DEF, REGISTRY_ARCHIVE};
use hotswap_families::manifest::ManifestFormat;
use hotswap_link_matrix::{Expect, GHOST, LinkBench, Registrars, families, patches_def_without, product_fault, sweep};
use hotswap_userland::slice;

const LINKERS: &[(&str, &str)] = &[("bfd", "ld.bfd"), ("gold", "ld.gold"), ("lld", "ld.lld-22"), ("mold", "mold")];
const KINDS: &[&[&str]] =
    &[&["-no-pie"], &["-pie"], &["-shared"], &["-shared", "-Wl,-Bsymbolic"], &["-static"], &["-shared", "-Wl,-z,defs"]];
const USER: &str = "\
    int unused_function(void) { return 7; }\n\
    int answer(void) { return 42; }\n\
    int main(void) { return answer() - 42; }\n";

/// The position of the wrapper's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Manifest, archive, then the user's object.
    Front,
    /// The user's object, manifest, archive.
    Back,
    /// The user's object, archive, manifest.
    ArchiveFirst,
}

#[derive(Debug, Clone, Copy)]
struct Combination {
    linker: &'static str,
    kind: &'static [&'static str],
    gc: bool,
    lto: bool,
    order: Order,
    registrars: Registrars,
}

fn combinations(linkers: &[&'static str]) -> Vec<Combination> {
    let mut all = Vec::new();
    for (&linker, &kind) in linkers.iter().flat_map(|linker| KINDS.iter().map(move |kind| (linker, kind))) {
        for (gc, lto) in [(false, false), (true, false), (false, true), (true, true)] {
            for order in [Order::Front, Order::Back, Order::ArchiveFirst] {
                for registrars in Registrars::ALL {
                    all.push(Combination { linker, kind, gc, lto, order, registrars });
                }
            }
        }
    }
    all
}

fn expectation(combination: &Combination) -> Expect {
    let unseen = combination.order == Order::ArchiveFirst && !looks_back(combination);
    match combination.registrars {
        Registrars::Complete if unseen => Expect::ErrorNaming(families()[0].to_owned()),
        registrars => registrars.expectation(),
    }
}

/// Whether the linker finds a member of an archive that no earlier input had referenced.
fn looks_back(combination: &Combination) -> bool {
    match combination.linker {
        "gold" => false,
        // bfd reads the archives again for references from link-time optimization.
        "bfd" => combination.lto,
        _ => true,
    }
}

fn prepare(bench: &LinkBench) {
    bench.write("user.c", USER);
    bench.must("clang-22", &["-O2", "-fPIC", "-ffunction-sections", "-c", "user.c", "-o", "user.o"]);
    bench.must("clang-22", &["-O2", "-fPIC", "-ffunction-sections", "-flto", "-c", "user.c", "-o", "user-lto.o"]);
    bench.manifest("plan", ManifestFormat::ElfX86_64, &families());
    bench.manifest("ghost", ManifestFormat::ElfX86_64, &[&families()[..], &[GHOST]].concat());
    bench.write("Complete.a", REGISTRY_ARCHIVE);
    bench.write("ObjectRemoved.a", REGISTRY_ARCHIVE);
    bench.must("ar", &["d", "ObjectRemoved.a", &format!("{}.o", families()[0])]);
    let objects = bench.registrars("less", &patches_def_without(families()[families().len() - 1]), &["-fPIC"]);
    let words: Vec<&str> = ["crsD", "LineRemoved.a"].into_iter().chain(objects.iter().map(String::as_str)).collect();
    bench.must("ar", &words);
}

fn words(combination: &Combination, output: &str) -> Vec<String> {
    let own = |word: &str| vec!["-Xlinker".to_owned(), word.to_owned()];
    let manifest = own(combination.registrars.manifest());
    let archive = own(&combination.registrars.archive("a"));
    let user = vec![if combination.lto { "user-lto.o" } else { "user.o" }.to_owned()];
    let inputs = match combination.order {
        Order::Front => [manifest, archive, user].concat(),
        Order::Back => [user, manifest, archive].concat(),
        Order::ArchiveFirst => [user, archive, manifest].concat(),
    };
    let mut words = vec![format!("-fuse-ld={}", combination.linker)];
    words.extend(combination.kind.iter().map(|&word| word.to_owned()));
    words.extend(combination.gc.then(|| "-Wl,--gc-sections".to_owned()));
    words.extend(combination.lto.then(|| "-flto".to_owned()));
    words.extend(inputs);
    words.extend(["-o".to_owned(), output.to_owned()]);
    words
}

/// A linked file must run, and contain the record and the table, also after `strip`.
fn fault_of(bench: &LinkBench, combination: &Combination, output: &str) -> Option<String> {
    let executable = !combination.kind.contains(&"-shared");
    if executable && !bench.run(&format!("./{output}"), &[]).ok {
        return Some("the program does not run".to_owned());
    }
    let after = |strip: &str| {
        bench.must(strip, &[output]);
        product_fault(&bench.read(output), ManifestFormat::ElfX86_64).map(|fault| format!("after {strip}, {fault}"))
    };
    let linked = product_fault(&bench.read(output), ManifestFormat::ElfX86_64);
    linked.or_else(|| after("strip")).or_else(|| after("llvm-strip-22"))
}

#[test]
fn a_missing_registrar_is_an_error_that_names_the_family_in_every_way_to_link() {
    let tools = ["clang-22", "ar", "strip", "llvm-strip-22"];
    let Some(bench) = LinkBench::new("ELF link matrix", &tools) else { return };
    prepare(&bench);
    let linkers = bench.present("ELF link matrix", LINKERS);
    // A sixth: with `kind` counted by one, each two values of different columns meet, and so do linker, order and registrars.
    let combinations = slice("ELF link matrix", combinations(&linkers), |number, _| {
        let (registrars, order, group) = (number % 4, number / 4 % 3, number / 12 % 4);
        (registrars + 2 * order + group + number / 48 % 6 + number / 288) % 6 == 0
    });
    let tally = sweep(&combinations, |index, combination| {
        let output = format!("out-{index}");
        let words = words(combination, &output);
        let ran = bench.run("clang-22", &words.iter().map(String::as_str).collect::<Vec<_>>());
        let fault = expectation(combination).fault(&ran);
        let fault = fault.or_else(|| ran.ok.then(|| fault_of(&bench, combination, &output)).flatten());
        bench.remove(&output);
        fault
    });
    tally.finish("ELF link matrix");
}

#[test]
fn c_can_include_the_list_of_families() {
    let Some(bench) = LinkBench::new("patches.def in C", &["clang-22"]) else { return };
    bench.write("patches.def", PATCHES_DEF);
    bench.write(
        "list.c",
        "#include <stdio.h>\n\
         int main(void) {\n\
         #define HOTSWAP_PATCH(name, scope, order, summary) puts(#name \" \" #scope \" \" #order);\n\
         #include \"patches.def\"\n\
         return 0; }\n",
    );
    bench.must("clang-22", &["-Werror", "list.c", "-o", "list"]);
    let expected: Vec<_> = hotswap_families::FAMILIES
        .iter()
        .map(|family| format!("{} {} {}", family.name, family.scope.name(), family.order))
        .collect();
    assert_eq!(bench.must("./list", &[]).lines().collect::<Vec<_>>(), expected);
}
