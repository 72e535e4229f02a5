//! Whole libraries of Debian get code for more GPUs: rocRAND, GGML and rocSPARSE, judged by their consumers.
//!
//! `HOTSWAP_TEST_LIBRARIES` names them (`cargo xtask test` downloads them once). Judges are LLVM's tools, libamd_comgr
//! queried as by the HIP runtime, the loader of the system, and HIP itself when the library registers its fat binaries.
//! Nothing here depends on the contents of a package version: LLVM's bundler lists the original entries.

use hotswap_tests::{Bench, Call, Scratch, everything, parallel, say, slice};
use hotswap_userland::ENV_LIBRARIES;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// One retargeting of a library.
struct Case {
    /// Beginning of the file's name.
    library: &'static str,
    words: &'static [&'static str],
    /// Targets whose code must be there afterwards, in every fat binary, in addition to the original ones.
    made: &'static [&'static str],
    /// Whether another number of threads is tested, too.
    threads: bool,
}

impl Case {
    /// Whether it is tried by default.
    fn is_small(&self) -> bool {
        self.library == "librocrand.so"
    }
}

const RDNA: &str = "gfx1010,gfx1011,gfx1012,gfx1013,gfx1030,gfx1031,gfx1032,gfx1033,gfx1034,gfx1035,gfx1036,gfx1100,\
                    gfx1101,gfx1102,gfx1103,gfx1150,gfx1151,gfx1152,gfx1153";
const GENERIC: &[&str] = &["gfx9-generic", "gfx10-1-generic", "gfx10-3-generic", "gfx11-generic"];
const GENERICS: &str = "gfx9-generic,gfx10-1-generic,gfx10-3-generic,gfx11-generic";
/// Targets for which rocSPARSE has a safe source, and a sibling.
const SPARSE: &[&str] =
    &["gfx9-4-generic", "gfx10-1-generic", "gfx10-3-generic", "gfx11-generic", "gfx12-generic", "gfx1013"];
const FOR_SPARSE: &str = "gfx1013,gfx9-4-generic,gfx10-1-generic,gfx10-3-generic,gfx11-generic,gfx12-generic";
#[rustfmt::skip]
const SIBLINGS: &[&str] = &[
    "gfx1011", "gfx1012", "gfx1013", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036", "gfx1103", "gfx1150",
    "gfx1151", "gfx1152", "gfx1153",
];

/// Sizes and forms matter: an uncompressed library grows, compressed ones are packed again. The host parts of rocRAND
/// and rocSPARSE choose kernels by name; here it is allowed, because files are judged and no kernel is started.
#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { library: "librocrand.so", words: &["--to", RDNA, "--allow", "experimental,names"], made: SIBLINGS, threads: true },
    Case { library: "librocrand.so", words: &["--to", GENERICS, "--compress", "--allow", "names"], made: GENERIC, threads: true },
    Case { library: "libggml-hip.so", words: &["--to", GENERICS, "--compress"], made: GENERIC, threads: false },
    Case { library: "librocsparse.so", words: &["--to", FOR_SPARSE, "--allow", "names"], made: SPARSE, threads: false },
];

/// A library, the directory in which it is changed, and its judge.
struct Place<'a> {
    bench: &'a Bench,
    scratch: Scratch,
    library: PathBuf,
}

/// One fat binary of a library.
struct Container {
    range: std::ops::Range<usize>,
    targets: BTreeSet<String>,
}

fn library(name: &str) -> PathBuf {
    let libraries = std::env::var_os(ENV_LIBRARIES)
        .unwrap_or_else(|| panic!("{ENV_LIBRARIES} is not set: `cargo xtask test` downloads {name} and sets it"));
    let is_it = |path: &PathBuf| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name));
    std::env::split_paths(&libraries).find(is_it).unwrap_or_else(|| panic!("{ENV_LIBRARIES} names no {name}"))
}

impl<'a> Place<'a> {
    fn new(bench: &'a Bench, name: &str) -> Self {
        let scratch = bench.scratch();
        scratch.write("lookup.c", include_str!("../../comgr/lookup.c"));
        scratch.write("load.c", include_str!("../../comgr/load.c"));
        let place = Self { bench, scratch, library: library(name) };
        place.run("cc -std=c11 -O1 -o lookup lookup.c -lamd_comgr && cc -std=c11 -rdynamic -o load load.c -lamdhip64");
        place
    }

    /// Standard output of a script that must succeed inside the userland.
    fn run(&self, script: &str) -> String {
        let call = Call::new(self.bench, &self.scratch.inside, &["/bin/bash", "-c", script]);
        let ran = call.limit(Duration::from_secs(300)).run();
        assert!(ran.ok(), "{script}: {}", ran.brief());
        ran.stdout
    }

    /// Runs the installed program, which sees the machine's files.
    fn hotswap(&self, words: &[&str]) -> std::process::Output {
        let program = self.bench.userland.outside(self.bench.installed("bin/hotswap"));
        Command::new(program).args(words).current_dir(self.scratch.outside(".")).output().unwrap()
    }

    fn works(&self, words: &[&str]) -> Vec<u8> {
        let output = self.hotswap(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_slice(&self.works(&[words, &["--format", "json"]].concat())).unwrap()
    }

    fn containers(&self, file: &str) -> Vec<Container> {
        let listed = self.json(&["list", file]);
        let container = |found: &Value| {
            let start = found["file_offset"].as_u64().unwrap() as usize;
            let targets = found["entries"].as_array().unwrap().iter().map(|entry| entry["target"].as_str().unwrap());
            Container {
                range: start..start + found["size"].as_u64().unwrap() as usize,
                targets: targets.map(str::to_owned).collect(),
            }
        };
        listed["files"][0]["containers"].as_array().unwrap().iter().map(container).collect()
    }

    /// Each of the bundles as a file: `NAME.NUMBER`.
    fn cut(&self, name: &str, file: &Path, containers: &[Container]) {
        let bytes = std::fs::read(file).unwrap();
        for (number, container) in containers.iter().enumerate() {
            self.scratch.write(&format!("{name}.{number}"), &bytes[container.range.clone()]);
        }
    }
}

/// Targets of the entries that LLVM's bundler lists.
fn bundler_lists(place: &Place<'_>, file: &str) -> BTreeSet<String> {
    let listed = place.run(&format!("clang-offload-bundler-23 --list --type=o --input={file}"));
    let devices = listed.lines().filter(|line| !line.starts_with("host"));
    devices.map(|line| line.split_once("--").expect("an entry ID has a target").1.to_owned()).collect()
}

/// comgr finds all of these in one bundle.
fn comgr_finds(place: &Place<'_>, file: &str, targets: &[&str]) {
    let isas: Vec<_> = targets.iter().map(|target| format!("amdgcn-amd-amdhsa--{target}")).collect();
    let told = place.run(&format!("./lookup {file} {}", isas.join(" ")));
    assert_eq!(told.lines().filter(|line| !line.contains("absent")).count(), targets.len(), "{file}: {told}");
}

/// The code objects of one bundle: LLVM's bundler, comgr and `hotswap extract` give the same bytes, and LLVM reads them.
fn judge_entries(place: &Place<'_>, file: &str, targets: &[&str]) {
    place.run(&format!("! ./lookup {file} amdgcn-amd-amdhsa--gfx1310"));
    for target in targets {
        let co = format!("{file}.{target}");
        place.works(&["extract", file, "--target", target, "-o", &co]);
        let listed = place.run(&format!("clang-offload-bundler-23 --list --type=o --input={file}"));
        let id = listed.lines().find(|line| line.ends_with(&format!("--{target}"))).expect("it is listed");
        place.run(&format!(
            "set -e; clang-offload-bundler-23 --unbundle --type=o --input={file} --targets={id} --output={co}.llvm
             ./lookup -o {co}.comgr {file} amdgcn-amd-amdhsa--{target} > /dev/null
             cmp {co} {co}.llvm; cmp {co} {co}.comgr"
        ));
        let read = place.run(&format!("llvm-readelf-23 -hlS --notes {co} 2>&1"));
        assert!(read.contains(&format!("amdhsa--{target}")) && !read.contains("warning"), "{co}: {read}");
        let bad = place.run(&format!(
            "llvm-objdump-23 -d {co} > {co}.s 2>&1; grep -c s_endpgm {co}.s > /dev/null; \
             grep -E 'warning|error|<unknown>' {co}.s | head -3; rm -f {co}*"
        ));
        assert!(bad.is_empty(), "{co}: {bad}");
    }
}

/// The system's loader maps the library, and HIP gets all of its fat binaries, each from its wrapper.
///
/// Libraries that it needs and that are not in the userland are replaced by empty ones with the same symbols.
fn is_loaded(place: &Place<'_>, file: &str, containers: usize, magic: &str) {
    let script = r#"set -e; mkdir -p needed; lib=/usr/lib/$(gcc -dumpmachine)
    nm -D --undefined-only FILE | awk '$1 == "U" { print $2 }' | grep -vE '@(GLIBC|GLIBCXX|CXXABI|GCC|hip)_' > names || true
    { echo .text; sed 's/@.*//' names | while read name; do
        printf '.globl %s\n.type %s,@function\n%s: xor %%eax,%%eax\n ret\n' $name $name $name; done; } > stub.s
    sed -n 's/.*@//p' names | sort -u | while read version; do
        echo "$version { global: $(sed -n "s/@$version$/;/p" names | tr -d '\n') };"; done > stub.map
    for name in $(readelf -dW FILE | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
        case $name in
        libamdhip64.so.*) ln -sf $(readlink -f $lib/libamdhip64.so) needed/$name ;;
        *) test -e $lib/$name || cc -shared -o needed/$name -Wl,-soname,$name \
               $(test ! -s stub.map || echo -Wl,--version-script=stub.map) stub.s ;;
        esac
    done
    LD_LIBRARY_PATH=needed ./load ./FILE"#;
    let told = place.run(&script.replace("FILE", file));
    let registered: BTreeMap<&str, usize> = told.lines().fold(BTreeMap::new(), |mut counts, line| {
        *counts.entry(line).or_default() += 1;
        counts
    });
    let wrapper = format!("{magic} 48495046 1");
    assert_eq!(registered.get(wrapper.as_str()), Some(&containers), "{file}: {registered:?}");
    assert!(told.ends_with(&format!("loaded {containers}\n")), "{file}: {told}");
}

fn examine(bench: &Bench, case: &Case) -> String {
    let start = Instant::now();
    let place = Place::new(bench, case.library);
    let input = place.library.display().to_string();
    let before = place.containers(&input);
    let words = [&["retarget", &input, "-o", "new.so"], case.words].concat();
    let report = place.json(&words);
    let took = start.elapsed();
    assert_eq!(report["containers"].as_array().unwrap().len(), before.len());
    place.works(&["verify", "new.so"]);
    let after = place.containers("new.so");
    for (old, new) in before.iter().zip(&after) {
        let wanted = case.made.iter().map(|target| (*target).to_owned());
        assert_eq!(old.targets.iter().cloned().chain(wanted).collect::<BTreeSet<_>>(), new.targets);
    }
    place.works(&[&["retarget", "new.so", "-o", "again.so", "--allow-unchanged"], case.words].concat());
    place.run("cmp new.so again.so && rm again.so");
    if case.threads && (everything() || !case.words.contains(&"--compress")) {
        place.works(&[&["retarget", &input, "-o", "one.so", "--jobs", "1"], case.words].concat());
        place.run("cmp new.so one.so && rm one.so");
    }
    let read = place.run("llvm-readelf-23 -lSW new.so 2>&1; llvm-objdump-23 -h new.so 2>&1 > /dev/null");
    assert!(!read.contains("warning") && !read.contains("error"), "{read}");
    place.cut("bundle", &place.scratch.outside("new.so"), &after);
    let numbers: Vec<usize> = (0..after.len()).collect();
    parallel(&numbers, |number| comgr_finds(&place, &format!("bundle.{number}"), case.made));
    let largest = (0..after.len()).max_by_key(|number| after[*number].range.len()).unwrap();
    for (number, targets) in [(0, case.made), (largest, &case.made[..2]), (after.len() - 1, &case.made[..2])] {
        assert_eq!(bundler_lists(&place, &format!("bundle.{number}")), after[number].targets);
        judge_entries(&place, &format!("bundle.{number}"), targets);
    }
    let packed = place.scratch.read("bundle.0").starts_with(b"CCOB");
    place.run("rm bundle.*");
    is_loaded(&place, "new.so", after.len(), if packed { "CCOB" } else { "__CL" });
    let sizes = &report["sizes"];
    format!(
        "{}: {} fat binaries, {} targets more, {} to {} bytes, retargeted in {:.1} s, judged in {:.1} s",
        case.library,
        after.len(),
        case.made.len(),
        sizes[0],
        sizes[1],
        took.as_secs_f64(),
        (start.elapsed() - took).as_secs_f64()
    )
}

/// By default the smallest library in both forms: the others take five minutes.
#[test]
fn debians_libraries_serve_more_gpus() {
    let Some(bench) = Bench::ready("debians_libraries_serve_more_gpus") else { return };
    let cases = slice("debians_libraries_serve_more_gpus", CASES.iter().collect(), |_, case| case.is_small());
    for case in cases {
        say(&examine(&bench, case));
    }
}

/// rocRAND and rocSPARSE know gfx1030 by name and not gfx1031, and neither gfx1010 nor gfx1013.
#[test]
fn host_parts_that_choose_by_name_are_recognised() {
    let Some(bench) = Bench::ready("host_parts_that_choose_by_name_are_recognised") else { return };
    for name in ["librocrand.so", "librocsparse.so"] {
        let place = Place::new(&bench, name);
        let input = place.library.display().to_string();
        let refused = place.hotswap(&["retarget", &input, "-o", "new.so", "--to", "gfx1031,gfx10-3-generic"]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!((refused.status.code(), said.lines().count()), (Some(13), 1), "{said}");
        for part in ["[HS0414]", "refused: gfx1030=>gfx1031, gfx1030=>gfx10-3-generic (for gfx1031, "] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!place.scratch.has("new.so"));
        place.works(&["retarget", &input, "--to", "gfx1013,gfx10-1-generic", "--dry-run"]);
    }
}

/// Instructions in a library that the target lacks are refused with the kernel, the location and the instruction.
#[test]
fn refusals_in_a_library_name_kernel_and_instruction() {
    let Some(bench) = Bench::ready("refusals_in_a_library_name_kernel_and_instruction") else { return };
    let place = Place::new(&bench, "librocrand.so");
    let input = place.library.display().to_string();
    // gfx906 has v_fmac_f32, which gfx900 lacks.
    place.works(&["prune", &input, "--keep", "gfx906", "-o", "only.so"]);
    let words = ["retarget", "only.so", "-o", "new.so", "--to", "gfx900", "--allow", "experimental,names"];
    let refused = place.hotswap(&words);
    assert_eq!(refused.status.code(), Some(13));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    let explained = said.lines().filter(|line| line.contains("HS0408") && line.contains("v_fmac_f32")).count();
    assert!(explained > 0 && said.contains("only.so: .hip_fatbin: "), "{said}");
    assert!(!place.scratch.has("new.so"));
    // Under another policy it is left out, and the report lists the reasons separately.
    let report = place.json(&[&words[..], &["--policy", "keep"]].concat());
    let containers = report["containers"].as_array().unwrap();
    let reasons: Vec<&Value> = containers
        .iter()
        .flat_map(|container| container["targets"].as_array().unwrap())
        .filter(|target| target["how"] == "refused")
        .flat_map(|target| target["reasons"].as_array().unwrap())
        .collect();
    assert!(!reasons.is_empty());
    for reason in &reasons {
        assert!(
            reason["kernel"].is_string() && reason["offset"].is_u64() && reason["mnemonic"].is_string(),
            "{reason}"
        );
    }
    say(&format!("rocRAND for gfx906 on gfx900: {} reasons in {} fat binaries", reasons.len(), containers.len()));
}

/// gfx906 belongs to gfx9-generic and may have SRAMECC on, and few of rocSPARSE's kernels load halves of registers.
#[test]
fn a_library_whose_code_is_unsafe_on_one_member_of_a_generic_target_is_refused() {
    let Some(bench) = Bench::ready("a_library_whose_code_is_unsafe_on_one_member_of_a_generic_target_is_refused")
    else {
        return;
    };
    let place = Place::new(&bench, "librocsparse.so");
    let input = place.library.display().to_string();
    let refused = place.hotswap(&["retarget", &input, "-o", "new.so", "--to", "gfx9-generic", "--allow", "names"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(13), "{said}");
    let explained = |line: &&str| line.contains("HS0408") && line.contains("(d16-loads)") && line.contains("_d16");
    let count = said.lines().filter(explained).count();
    assert!(count > 0 && count == said.lines().count() && !place.scratch.has("new.so"), "{said}");
    say(&format!("rocSPARSE for gfx9-generic: {count} kernels and instructions refused"));
}
