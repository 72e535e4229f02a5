//! Bundles in linked programs and libraries are replaced, and the programs still work: as the linker left them,
//! stripped, and copied by `objcopy`.
//!
//! `HOTSWAP_TEST_ROOT` names the userland; without it each test reports that it was skipped.

#[allow(dead_code, reason = "other tests use the rest")]
mod common;

use common::{HOST, id, object};
use hotswap_bundle::linked::{BundleReplacement, replace_bundles};
use hotswap_bundle::{Bundle, Compression, find_containers, parse};
use hotswap_report::codes;
use hotswap_userland::{HIP_HEADER, Workbench, hip_clang};

/// Registers its kernel and requests a GPU; `second` makes a second bundle.
const PROGRAM: &str = "#include \"hip.h\"
#include <cstdio>
static char zeros[70000];
__global__ void first(int *p) { p[0] += 1; }
void second(int *p);
int main(int argc, char **) {
  int *data = nullptr;
  zeros[argc] = 1;
  for (unsigned at = 2; at < sizeof zeros; ++at) if (zeros[at]) return 9;
  if (const hipError_t status = hipMalloc(reinterpret_cast<void **>(&data), 64)) {
    std::printf(\"%s\\n\", hipGetErrorString(status));
    return 1;
  }
  first<<<1, 64>>>(data);
  second(data);
  return 0;
}
";
const SECOND: &str = "#include \"hip.h\"
__global__ void kernel(int *p) { p[0] *= 3; }
void second(int *p) { kernel<<<1, 64>>>(p); }
";

/// A workbench with the program's sources, and the query of comgr.
fn program_bench(test: &str) -> Option<Workbench> {
    let bench = Workbench::new(test)?;
    bench.write("hip.h", HIP_HEADER.as_bytes());
    bench.write("program.hip", PROGRAM.as_bytes());
    bench.write("second.hip", SECOND.as_bytes());
    bench.build_lookup();
    Some(bench)
}

/// The program registers all its kernels, finds its zeros and ends with HIP's own message.
fn asks_for_a_gpu(bench: &Workbench, what: &str) {
    let output = bench.shell("LD_LIBRARY_PATH=. ./x");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("no ROCm-capable device"), "{what}: {said}");
}

/// Compiles and links; the file that holds the bundles is `x` or `libx.so`.
fn build(bench: &Workbench, version: u32, case: &Case) {
    let clang = format!("{} --offload-arch=gfx1030,gfx900 {}", hip_clang(version), case.words);
    bench.run(&match case.library {
        false => format!("{clang} program.hip second.hip -o x -lamdhip64"),
        true => format!(
            "set -e; {clang} -fPIC -shared program.hip second.hip -o libx.so -lamdhip64 -Wl,-soname,libx.so
             clang++-{version} -x c++ /dev/null -o x -L. -Wl,--no-as-needed -lx"
        ),
    });
}

struct Case {
    words: &'static str,
    library: bool,
    bundles: usize,
}

const fn case(words: &'static str, library: bool, bundles: usize) -> Case {
    Case { words, library, bundles }
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    case("-O1", false, 2),
    case("-O1 -no-pie -fno-pie", false, 2),
    case("-O1 -fuse-ld=lld", false, 2),
    case("-O1 -fuse-ld=lld -Wl,-z,pack-relative-relocs", false, 2),
    case("-O1 -fuse-ld=mold", false, 2),
    case("-O1 -fgpu-rdc --hip-link --offload-new-driver", false, 1),
    case("-O1", true, 2),
    case("-O1 -fuse-ld=lld --offload-compress", true, 2),
];

/// The replacement of each bundle: the same with one more entry, of that many bytes.
fn grown(file: &[u8], more: usize) -> Vec<BundleReplacement<'static>> {
    let contents = find_containers(file);
    assert_eq!(contents.problems, []);
    let exchange = |(number, found): (usize, &hotswap_bundle::FoundContainer<'_>)| {
        let (mut bundle, _) = parse(found.bytes).unwrap();
        bundle.remove(&id("gfx1031"));
        bundle.push(id("gfx1031"), object(number as u8 | 1, more)).unwrap();
        // Code objects made here are no real ones: they are found, not loaded.
        BundleReplacement { offset: found.place.file_offset, new: bundle.to_bytes().unwrap().into_owned().into() }
    };
    contents.found.iter().enumerate().map(exchange).collect()
}

fn bundles(file: &[u8]) -> Vec<Vec<u8>> {
    find_containers(file).found.iter().map(|found| found.bytes.to_vec()).collect()
}

/// A program or library whose `.bss` is large.
struct ZerosCase {
    case: Case,
    bytes: u64,
}

#[rustfmt::skip]
const ZEROS: &[ZerosCase] = &[
    ZerosCase { case: case("-O1", false, 2), bytes: 100_000_000 },
    ZerosCase { case: case("-O1", true, 2), bytes: 100_000_000 },
    ZerosCase { case: case("-O1 -no-pie -fno-pie", false, 2), bytes: 100_000_000 },
    ZerosCase { case: case("-O1 -fuse-ld=lld", true, 2), bytes: 100_000_000 },
    ZerosCase { case: case("-O1 -fuse-ld=mold", false, 2), bytes: 100_000_000 },
    ZerosCase { case: case("-O1 -Wl,-z,noseparate-code", false, 2), bytes: 100_000_000 },
    ZerosCase { case: case("-O1 -Xarch_host -mcmodel=medium", false, 2), bytes: 3_000_000_000 },
];

/// Memory that the program has without a byte in the file stays so: the moved bundles are in a segment of their own, the last one,
/// so the file grows by them alone, and shrinks with them.
#[test]
fn zeros_in_memory_are_not_written() {
    let Some(bench) = program_bench("zeros_in_memory_are_not_written") else { return };
    let version = bench.versions[0];
    for ZerosCase { case, bytes } in ZEROS {
        let what = format!("{} {bytes}", case.words);
        // A byte of each page is read.
        let program = PROGRAM.replace("zeros[70000]", &format!("zeros[{bytes}]")).replace("++at", "at += 4096");
        bench.write("program.hip", program.as_bytes());
        build(&bench, version, case);
        let name = if case.library { "libx.so" } else { "x" };
        let before = bench.read(name);
        assert!(before.len() < 1 << 20, "{what}");
        let exchanges = grown(&before, 300_000);
        let once = replace_bundles(&before, &exchanges).unwrap_or_else(|error| panic!("{what}: {error}"));
        let added = exchanges.iter().map(|exchange| exchange.new.size() as usize).sum::<usize>();
        assert!(once.len() < before.len() + added + (64 << 10), "{what}: {} to {}", before.len(), once.len());
        check(&bench, version, name, (&once, &["true", "strip X", "llvm-strip-V X", "objcopy X"]), &exchanges, &what);
        let exchanges = grown(&once, 700_000);
        let twice = replace_bundles(&once, &exchanges).unwrap_or_else(|error| panic!("{what}: {error}"));
        check(&bench, version, name, (&twice, &["true"]), &exchanges, &what);
        let exchanges = grown(&twice, 1000);
        let less = replace_bundles(&twice, &exchanges).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(less.len() < once.len(), "{what}: {} to {}", twice.len(), less.len());
        check(&bench, version, name, (&less, &["true", "strip X"]), &exchanges, &what);
    }
}

/// Without a program header to spare, zeros of more than 16 MiB are refused, with the ways out.
#[test]
fn zeros_without_a_free_header_are_refused() {
    let Some(bench) = program_bench("zeros_without_a_free_header_are_refused") else { return };
    bench.write("program.hip", PROGRAM.replace("zeros[70000]", "zeros[100000000]").as_bytes());
    build(&bench, bench.versions[0], &case("-O1", false, 2));
    let mut before = bench.read("x");
    let count = u16::from_le_bytes(before[56..58].try_into().unwrap()) as usize;
    for at in (0..count).map(|number| 64 + number * 56) {
        // PT_NOTE becomes PT_NULL.
        if before[at..at + 4] == [4, 0, 0, 0] {
            before[at] = 0;
        }
    }
    let refused = replace_bundles(&before, &grown(&before, 300_000)).unwrap_err();
    assert_eq!(refused.code, codes::NO_PLACE);
    let text = refused.to_string();
    assert!(text.contains("no program header is free") && text.contains("--compress"), "{text}");
}

#[test]
fn grown_programs_and_libraries_work_stripped_and_copied() {
    let Some(bench) = program_bench("grown_programs_and_libraries_work_stripped_and_copied") else { return };
    for (number, case) in CASES.iter().enumerate() {
        // Every linker and mode with one clang, every clang with some: compiling dominates the time.
        let one = number % bench.versions.len();
        let versions = &bench.versions[one..=one];
        for version in versions {
            let what = format!("clang {version} {}", case.words);
            build(&bench, *version, case);
            let name = if case.library { "libx.so" } else { "x" };
            asks_for_a_gpu(&bench, &what);
            let before = bench.read(name);
            assert_eq!(bundles(&before).len(), case.bundles, "{what}");
            let exchanges = grown(&before, 300_000);
            let once = replace_bundles(&before, &exchanges).unwrap_or_else(|error| panic!("{what}: {error}"));
            let all = ["true", "strip X", "llvm-strip-V X", "objcopy X", "llvm-objcopy-V X"];
            check(&bench, *version, name, (&once, &all), &exchanges, &what);
            // At the end of the file it grows in place.
            let exchanges = grown(&once, 700_000);
            let twice = replace_bundles(&once, &exchanges).unwrap_or_else(|error| panic!("{what}: {error}"));
            check(&bench, *version, name, (&twice, &["strip -g X"]), &exchanges, &what);
        }
    }
}

fn check(
    bench: &Workbench,
    version: u32,
    name: &str,
    (file, commands): (&[u8], &[&str]),
    exchanges: &[BundleReplacement],
    what: &str,
) {
    let expected: Vec<_> = exchanges.iter().map(|exchange| exchange.new.to_vec()).collect();
    for command in commands {
        let what = format!("{what}: {command}");
        bench.write(name, file);
        let command = command.replace('X', name).replace('V', &version.to_string());
        let said = bench.shell(&command);
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.is_empty(), "{what}: {said}");
        assert!(bundles(&bench.read(name)) == expected, "{what}");
        asks_for_a_gpu(bench, &what);
    }
    bench.write(name, file);
    let said = bench
        .run(&format!("llvm-readelf-{version} -a {name} 2>&1 >/dev/null; readelf -Wa {name} 2>&1 >/dev/null; true"));
    assert_eq!(said, "", "{what}");
    bench.run(&format!("objcopy -O binary --only-section=.hip_fatbin {name} fatbin"));
    assert!(bench.read("fatbin").starts_with(&expected[0]), "{what}");
    bench.write("one", &expected[0]);
    bench.run("rm -f out; ./lookup -o out one amdgcn-amd-amdhsa--gfx1031");
    assert_eq!(
        bench.read("out"),
        parse(&expected[0]).unwrap().0.entry(&id("gfx1031")).unwrap().data.to_vec(),
        "{what}"
    );
    if version > 22 {
        let listed = bench.run(&format!("clang-offload-bundler-{version} -list -type=o -input=fatbin"));
        assert_eq!(listed.matches("gfx1031").count(), expected.len(), "{what}: {listed}");
    }
}

/// Relocatable device code of the old driver: the library exports a symbol for the bundle, which its wrapper's relocation
/// names (RCCL is such a library).
#[test]
fn a_pointer_by_an_exported_symbol_moves_with_it() {
    let Some(bench) = program_bench("a_pointer_by_an_exported_symbol_moves_with_it") else { return };
    // Later ones have the new driver alone.
    assert_eq!(bench.versions[0], 22);
    let case = case("-O1 -fgpu-rdc --hip-link --no-offload-new-driver", true, 1);
    build(&bench, 22, &case);
    let file = bench.read("libx.so");
    let rows = bench.run("readelf -rW libx.so");
    let row = rows.lines().find(|line| line.contains("__hip_fatbin_")).unwrap_or_else(|| panic!("{rows}"));
    assert!(row.contains("R_X86_64_64") && row.ends_with("+ 0"), "{row}");
    let exchanges = grown(&file, 300_000);
    let moved = replace_bundles(&file, &exchanges).unwrap();
    check(&bench, 22, "libx.so", (&moved, &["true", "strip X", "llvm-strip-V X"]), &exchanges, case.words);
    // The loader's own answer: the symbol is where the bundle is.
    let symbol = row.split_whitespace().nth(4).unwrap();
    bench.write("libx.so", &moved);
    let begins = format!(
        "import ctypes; library = ctypes.CDLL('./libx.so'); bundle = ctypes.c_char.in_dll(library, '{symbol}'); \
         print(ctypes.string_at(ctypes.addressof(bundle), 24).decode())"
    );
    bench.write("begins.py", begins.as_bytes());
    assert_eq!(bench.run("python3 begins.py").trim(), "__CLANG_OFFLOAD_BUNDLE__");
    // The relocation's entry: place, type, number of the symbol, addend.
    let place = u64::from_str_radix(row.split_whitespace().next().unwrap(), 16).unwrap();
    let entry = [place.to_le_bytes().as_slice(), &[1, 0, 0, 0]].concat();
    let at = file.windows(entry.len()).position(|bytes| bytes == entry).unwrap();
    for (field, value, code) in [(16, 8, codes::NO_PLACE), (12, 0, codes::NO_PLACE), (12, 0xff, codes::MALFORMED)] {
        let mut odd = file.clone();
        odd[at + field..at + field + 4].copy_from_slice(&[value, value, value, 0]);
        let error = replace_bundles(&odd, &exchanges).unwrap_err();
        assert_eq!(error.code, code, "{field} {value}: {error}");
    }
}

/// A megabyte of device data, so that there is much to remove.
const LARGE: &str = "#include \"hip.h\"
__device__ int table[300000] = {1};
__global__ void kernel(int *p) { p[0] *= table[p[0]]; }
void second(int *p) { kernel<<<1, 64>>>(p); }
";

/// Arguments, whether it is a library, and whether the linker's layout lets the file become smaller.
const SHRINKING: &[(&str, bool, bool)] = &[
    ("-O1 -fuse-ld=bfd -fexceptions", false, true),
    ("-O1 -fuse-ld=bfd -no-pie -fno-pie", false, true),
    ("-O1 -fuse-ld=bfd -Wl,-z,now", true, true),
    ("-O1 -fuse-ld=bfd -Wl,-z,norelro", false, false),
    ("-O1 -fuse-ld=lld", true, false),
];

#[test]
fn files_become_smaller_where_their_layout_allows_it() {
    let Some(bench) = program_bench("files_become_smaller_where_their_layout_allows_it") else { return };
    bench.write("second.hip", LARGE.as_bytes());
    let version = bench.versions[0];
    for (words, library, shrinks) in SHRINKING {
        build(&bench, version, &Case { words, library: *library, bundles: 2 });
        let name = if *library { "libx.so" } else { "x" };
        let file = bench.read(name);
        let exchange = |found: &hotswap_bundle::FoundContainer<'_>| {
            let (mut bundle, _) = parse(found.bytes).unwrap();
            bundle.retain(|entry| !entry.id.ends_with("gfx900"));
            bundle.push(id("gfx1031"), object(3, 20_000)).unwrap();
            bundle.set_compression(Some(Compression::default()));
            BundleReplacement { offset: found.place.file_offset, new: bundle.to_bytes().unwrap().into_owned().into() }
        };
        let exchanges: Vec<_> = find_containers(&file).found.iter().map(exchange).collect();
        let smaller = replace_bundles(&file, &exchanges).unwrap_or_else(|error| panic!("{words}: {error}"));
        assert_eq!(smaller.len() + 2_000_000 < file.len(), *shrinks, "{words}: {} to {}", file.len(), smaller.len());
        let all = ["true", "strip X", "llvm-strip-V X", "objcopy X", "llvm-objcopy-V X", "strip -g X"];
        check(&bench, version, name, (&smaller, &all), &exchanges, words);
        if !shrinks {
            continue;
        }
        // It grows again, and the part that grew at the end of the file becomes smaller there.
        let decompressed = |found: &hotswap_bundle::FoundContainer<'_>| {
            let (mut bundle, _) = parse(found.bytes).unwrap();
            bundle.set_compression(None);
            BundleReplacement { offset: found.place.file_offset, new: bundle.to_bytes().unwrap().into_owned().into() }
        };
        let plain: Vec<_> = find_containers(&smaller).found.iter().map(decompressed).collect();
        let larger = replace_bundles(&smaller, &plain).unwrap();
        let places = find_containers(&larger).found.iter().map(|found| found.place.file_offset).collect::<Vec<_>>();
        let pairs = places.into_iter().zip(&exchanges);
        let back: Vec<_> = pairs.map(|(offset, old)| BundleReplacement { offset, new: old.new.clone() }).collect();
        let again = replace_bundles(&larger, &back).unwrap_or_else(|error| panic!("{words}: {error}"));
        assert!(again.len() + 1_100_000 < larger.len(), "{words}: {} to {}", larger.len(), again.len());
        check(&bench, version, name, (&again, &["true", "strip X", "objcopy X"]), &back, words);
    }
}

#[test]
fn smaller_bundles_stay_in_their_slots_and_larger_ones_use_the_room_of_others() {
    let Some(bench) = program_bench("smaller_bundles_stay_in_their_slots_and_larger_ones_use_the_room_of_others")
    else {
        return;
    };
    build(&bench, bench.versions[0], &CASES[0]);
    let file = bench.read("x");
    let found: Vec<_> = find_containers(&file).found.iter().map(|found| found.place.file_offset).collect();
    let small = |seed| {
        let mut bundle = Bundle::default();
        bundle.push(HOST, Vec::new()).unwrap();
        bundle.push(id("gfx1030"), object(seed, 500)).unwrap();
        bundle.to_bytes().unwrap().into_owned()
    };
    let new = vec![BundleReplacement { offset: found[1], new: small(3).into() }];
    let changed = replace_bundles(&file, &new).unwrap();
    assert_eq!(changed.len(), file.len());
    assert_eq!(bundles(&changed), [bundles(&file)[0].clone(), small(3)]);
    bench.write("x", &changed);
    asks_for_a_gpu(&bench, "a smaller bundle");
    // The first grows into the space that the second leaves free.
    let mut larger = Bundle::default();
    larger.push(HOST, Vec::new()).unwrap();
    larger.push(id("gfx1030"), object(7, (found[1] - found[0]) as usize - 4096)).unwrap();
    let new = vec![
        BundleReplacement { offset: found[0], new: larger.to_bytes().unwrap().into_owned().into() },
        new[0].clone(),
    ];
    let changed = replace_bundles(&file, &new).unwrap();
    assert_eq!(changed.len(), file.len());
    assert_eq!(bundles(&changed), [new[0].new.to_vec(), small(3)]);
    bench.write("x", &changed);
    asks_for_a_gpu(&bench, "bundles one behind another");
}

#[test]
fn what_cannot_be_moved_is_refused() {
    let Some(bench) = program_bench("what_cannot_be_moved_is_refused") else { return };
    build(&bench, bench.versions[0], &CASES[0]);
    let file = bench.read("x");
    let refused = |file: &[u8], exchanges: &[BundleReplacement]| replace_bundles(file, exchanges).unwrap_err();
    let larger = grown(&file, 300_000);
    // No wrapper: its magic is overwritten.
    let mut odd = file.clone();
    let wrapper = odd.windows(8).rposition(|bytes| bytes == *b"FPIH\x01\0\0\0").unwrap();
    odd[wrapper] = 0;
    let error = refused(&odd, &larger);
    assert!(error.code == codes::NO_PLACE && error.what.contains("no wrapper points"), "{error}");
    // In its slot it needs none.
    let same = BundleReplacement { offset: larger[0].offset, new: bundles(&file)[0].clone().into() };
    assert_eq!(replace_bundles(&odd, &[same]).unwrap(), odd);
    // An offset without a bundle, and one that is given twice.
    let error = refused(&file, &[BundleReplacement { offset: larger[0].offset + 8, new: Vec::new().into() }]);
    assert_eq!(error.code, codes::NOT_FOUND);
    let error = refused(&file, &[larger[0].clone(), larger[0].clone()]);
    assert_eq!(error.code, codes::NOT_FOUND);
    // No section headers.
    let mut bare = file.clone();
    bare[40..48].fill(0);
    bare[58..64].fill(0);
    let error = refused(&bare, &larger);
    assert!(error.code == codes::NO_PLACE && error.what.contains("stripped"), "{error}");
    // Every cut is an error and no panic.
    for cut in (0..file.len()).step_by(509) {
        assert!(replace_bundles(&file[..cut], &larger).is_err(), "{cut}");
    }
    for at in 16..64 {
        let mut odd = file.clone();
        odd[at] ^= 0xff;
        let _ = replace_bundles(&odd, &larger);
    }
}
