//! The code that HIP loads, by the model and by execution: files that the commands call good run, and files that do not run are
//! reported.

use hotswap_emulated_hip::{EmulationBench, ProgramRun};
use object::{Object, ObjectSection};

const MAIN: &str = include_str!("../cases/units.hip");
const UNIT_A: &str = include_str!("../cases/unit-a.hip");
const UNIT_B: &str = include_str!("../cases/unit-b.hip");

/// The program `units` of two units of device code: one for gfx1030, one for its generic target.
fn build_units(bench: &EmulationBench, words: &str) {
    bench.compile("a.o", UNIT_A, &["gfx1030"], "-fPIE -c");
    bench.compile("b.o", UNIT_B, &["gfx10-3-generic"], "-fPIE -c");
    bench.work.write("units.hip", MAIN.as_bytes());
    bench.work.run("clang++-22 -w -fPIE -x c++ -D__HIP_PLATFORM_AMD__ -c units.hip -o units.o");
    bench.work.run(&format!("clang++-22 {words} units.o a.o b.o -o units -lamdhip64"));
}

fn run(bench: &EmulationBench, hotswap: &str, program: &str) -> ProgramRun {
    bench.script("", &format!("{hotswap} run --gpu gfx1030 -- ./{program}"))
}

#[test]
fn loading_survives_pruning() {
    const TEST: &str = "pruning by use";
    let Some(bench) = EmulationBench::new(TEST) else { return };
    let Some(hotswap) = bench.hotswap(TEST) else { return };
    build_units(&bench, "");
    assert_eq!(run(&bench, &hotswap, "units").passed(), "42\n");
    let uses = bench.script("", &format!("{hotswap} uses units --gpu gfx1030 --format json"));
    let answer: serde_json::Value = serde_json::from_str(uses.passed()).unwrap();
    let containers = answer["files"][0]["gpus"][0]["containers"].as_array().unwrap();
    let entries: Vec<_> = containers.iter().map(|one| one["entry"].as_str().unwrap().rsplit("--").next()).collect();
    assert_eq!(entries, [Some("gfx1030"), Some("gfx10-3-generic")]);
    // A second GPU's code makes the pruning remove something.
    bench.work.run(&format!("{hotswap} retarget units --to gfx1031 -o more"));
    bench.work.run(&format!("{hotswap} prune more --keep gfx1030 -o pruned && {hotswap} verify pruned"));
    assert_eq!(run(&bench, &hotswap, "pruned").passed(), "42\n");
    for (command, lost) in [
        ("remove units gfx10-3-generic -o removed", "gfx1030 would lose the code"),
        ("prune units --drop gfx10-3-generic -o removed", "gfx1030 would lose the code"),
    ] {
        let refused = bench.script("", &format!("{hotswap} {command}"));
        assert_eq!(refused.code, Some(13), "{command}");
        assert!(refused.error.contains("HS0450") && refused.error.contains(lost), "{}", refused.error);
        assert!(!bench.work.path("removed").exists());
    }
    // Only generics: what gfx1030 loads is there, although nothing has its name, so nothing is to be changed.
    let generic = bench.script("", &format!("{hotswap} prune b.o --keep gfx1030 -o b-pruned.o"));
    assert_eq!(generic.code, Some(17), "{}", generic.error);
}

/// rocPRIM has kernels for some GPUs alone, which the host part registers for all.
const SOME_GPUS: &str = r#"
#include <hip/hip_runtime.h>
#include <cstdio>
__global__ void all(int *out) { *out = 42; }
#if !defined(__HIP_DEVICE_COMPILE__) || defined(__gfx1100__)
__global__ void only(int *out) { *out = 43; }
#endif
int main(int count, char **) {
    int *out, result = 0;
    hipMalloc(&out, sizeof *out);
    all<<<1, 1>>>(out);
#ifndef __HIP_DEVICE_COMPILE__
    if (count > 1) only<<<1, 1>>>(out);
#endif
    hipMemcpy(&result, out, sizeof result, hipMemcpyDeviceToHost);
    printf("%d\n", result);
}
"#;

#[test]
fn loading_of_kernels_for_some_gpus_survives_pruning() {
    const TEST: &str = "kernels for some GPUs";
    let Some(bench) = EmulationBench::new(TEST) else { return };
    let Some(hotswap) = bench.hotswap(TEST) else { return };
    bench.compile("some", SOME_GPUS, &["gfx1030", "gfx1100"], "-w");
    bench.work.run(&format!("{hotswap} verify some && {hotswap} prune some --keep gfx1030 -o pruned"));
    let verified = bench.script("", &format!("{hotswap} verify pruned"));
    assert!(verified.passed().contains("verified"), "{}", verified.error);
    assert!(verified.error.contains("warning") && verified.error.contains("has no kernel"), "{}", verified.error);
    for program in ["some", "pruned"] {
        assert_eq!(run(&bench, &hotswap, program).passed(), "42\n", "{program}");
    }
}

/// A program's bytes with the places on the way to its two containers.
struct WrappedProgram {
    bytes: Vec<u8>,
    /// Offset of the first wrapper in the file.
    wrappers: usize,
    /// Offsets of the relocations of the two pointers.
    relocations: [usize; 2],
    /// An address in `.text`.
    code: u64,
}

impl WrappedProgram {
    fn read(bytes: Vec<u8>) -> Self {
        let file = object::File::parse(&*bytes).unwrap();
        let segment = file.section_by_name(".hipFatBinSegment").unwrap();
        let (wrappers, _) = segment.file_range().unwrap();
        let pointers = [segment.address() + 8, segment.address() + 32];
        let relocations = pointers.map(|place| find_relative(&bytes, place));
        let code = file.section_by_name(".text").unwrap().address();
        Self { wrappers: wrappers as usize, relocations, code, bytes }
    }

    fn with(&self, edits: &[(usize, &[u8])]) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        edits.iter().for_each(|(at, new)| bytes[*at..*at + new.len()].copy_from_slice(new));
        bytes
    }

    fn addend(&self, number: usize) -> [u8; 8] {
        let at = self.relocations[number] + 16;
        self.bytes[at..at + 8].try_into().unwrap()
    }

    /// Every fault that was once passed as verified.
    fn faults(&self) -> Vec<(&'static str, Vec<u8>)> {
        let [first, second] = self.relocations;
        vec![
            ("magic", self.with(&[(self.wrappers, b"XPIH")])),
            ("version", self.with(&[(self.wrappers + 4, &[2])])),
            ("nowhere", self.with(&[(first + 16, &0x7fff_0000_u64.to_le_bytes())])),
            ("code", self.with(&[(first + 16, &self.code.to_le_bytes())])),
            ("removed", self.with(&[(first + 8, &[0; 8])])),
            ("swapped", self.with(&[(first + 16, &self.addend(1)), (second + 16, &self.addend(0))])),
            ("equal", self.with(&[(second + 16, &self.addend(0))])),
        ]
    }
}

/// The relocation `R_X86_64_RELATIVE` of that address.
fn find_relative(bytes: &[u8], address: u64) -> usize {
    let entry = [address.to_le_bytes(), 8_u64.to_le_bytes()].concat();
    bytes.windows(16).position(|window| window == entry).expect("the pointer has a relocation")
}

#[test]
fn loading_by_faulty_wrappers_is_reported_and_does_not_run() {
    const TEST: &str = "faults of registration";
    let Some(bench) = EmulationBench::new(TEST) else { return };
    let Some(hotswap) = bench.hotswap(TEST) else { return };
    for words in ["-O0", "-Wl,-z,norelro", "-fuse-ld=lld", "-no-pie"] {
        build_units(&bench, words);
        bench.work.run(&format!("{hotswap} verify units"));
    }
    build_units(&bench, "");
    let program = WrappedProgram::read(std::fs::read(bench.work.path("units")).unwrap());
    for (name, bytes) in program.faults() {
        // Overwritten, so that it stays executable.
        std::fs::write(bench.work.path("units"), bytes).unwrap();
        let verified = bench.script("", &format!("{hotswap} verify units"));
        assert_eq!(verified.code, Some(12), "{name}: {}", verified.error);
        assert!(verified.error.contains("wrapper") && !verified.output.contains("verified"), "{name}");
        let ran = run(&bench, &hotswap, "units");
        assert!(ran.code != Some(0), "{name}: {}", ran.output);
    }
}

/// The program of [`build_units`], as a distribution builds it that has a package for each GPU.
fn build_for(bench: &EmulationBench, gpu: &str, words: &str) {
    bench.compile("a.o", UNIT_A, &[gpu], &format!("-fPIE -c {words}"));
    bench.compile("b.o", UNIT_B, &[gpu], &format!("-fPIE -c {words}"));
    bench.work.write("units.hip", MAIN.as_bytes());
    bench.work.run(&format!("clang++-22 -w -fPIE -x c++ -D__HIP_PLATFORM_AMD__ -c {words} units.hip -o units.o"));
    bench.work.run(&format!("clang++-22 units.o a.o b.o -o {gpu} -lamdhip64"));
}

fn run_on(bench: &EmulationBench, hotswap: &str, gpu: &str, program: &str) -> ProgramRun {
    bench.script("", &format!("{hotswap} run --gpu {gpu} -- ./{program}"))
}

#[test]
fn loading_survives_merging_and_splitting() {
    const TEST: &str = "merging";
    let Some(bench) = EmulationBench::new(TEST) else { return };
    let Some(hotswap) = bench.hotswap(TEST) else { return };
    for gpu in ["gfx1030", "gfx1100", "gfx1201"] {
        build_for(&bench, gpu, "");
    }
    bench.work.run(&format!("{hotswap} merge gfx1030 gfx1100 gfx1201 -o all && {hotswap} verify all"));
    bench.work.run(&format!("{hotswap} verify all --require gfx1030,gfx1100,gfx1201"));
    for gpu in ["gfx1030", "gfx1100", "gfx1201"] {
        assert_eq!(run_on(&bench, &hotswap, gpu, "all").passed(), "42\n", "{gpu}");
    }
    assert!(run_on(&bench, &hotswap, "gfx1100", "gfx1030").code != Some(0), "the parts have code for one GPU");
    bench.work.run(&format!("{hotswap} split all -o 'part-{{gpu}}' && {hotswap} verify part-gfx1030 part-gfx1100"));
    for gpu in ["gfx1030", "gfx1100"] {
        assert_eq!(run_on(&bench, &hotswap, gpu, &format!("part-{gpu}")).passed(), "42\n", "{gpu}");
        let listed = bench.work.run(&format!("{hotswap} list part-{gpu}"));
        assert!(listed.contains(gpu) && !listed.contains("gfx1201"), "{listed}");
    }
    // The parts together are the whole again.
    bench.work.run(&format!("{hotswap} merge part-gfx1030 part-gfx1100 part-gfx1201 -o again"));
    assert_eq!(run_on(&bench, &hotswap, "gfx1201", "again").passed(), "42\n");
    // Host parts that differ in more than their fat binaries, and two kinds of code for one GPU.
    build_for(&bench, "gfx1100", "-O2");
    let other = bench.script("", &format!("{hotswap} merge gfx1030 gfx1100 -o none"));
    assert!(other.code == Some(13) && other.error.contains("HS0452"), "{}", other.error);
    build_for(&bench, "gfx1100", "-Xarch_device -O3");
    bench.work.run("cp gfx1100 one");
    build_for(&bench, "gfx1100", "-Xarch_device -O0");
    let twice = bench.script("", &format!("{hotswap} merge one gfx1100 -o none"));
    assert!(twice.code != Some(0) && twice.error.contains("other code for the same target"), "{}", twice.error);
    assert!(!bench.work.path("none").exists());
}
