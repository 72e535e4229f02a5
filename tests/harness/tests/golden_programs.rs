//! The golden oracle on programs with HIP's headers and the device libraries: the code object of a sibling, retargeted
//! by the command, is byte for byte clang's own output for the target. Programs are those of `examples`, and one that
//! uses features with host support: `printf`, `assert`, memory from the heap.
//!
//! Code of -O0 queries the device library for the number of the GPU at run time. Every pair is therefore tested there, and at
//! one other level of optimisation in rotation, with one clang in turn. With `--everything` each ordered pair of identical
//! siblings is tested with every clang, every level and every program.

use hotswap_tests::{Bench, Call, Clang, Scratch, everything, parallel, say};
use hotswap_userland::SLICE;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const PAIRS: &[(&str, &str)] = &[
    ("gfx900", "gfx90c"),
    ("gfx1010", "gfx1013"),
    ("gfx1011", "gfx1012"),
    ("gfx1030", "gfx1036"),
    ("gfx1150", "gfx1153"),
    ("gfx1200", "gfx1201"),
];

const GROUPS: &[&[&str]] = &[
    &["gfx900", "gfx902", "gfx909", "gfx90c"],
    &["gfx1010", "gfx1013"],
    &["gfx1011", "gfx1012"],
    &["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"],
    &["gfx1150", "gfx1152", "gfx1153"],
    &["gfx1200", "gfx1201"],
];

const LEVELS: &[&str] = &["-O0", "-O1", "-O2", "-O3"];

const HOST_CALLS: &str = r#"#include <hip/hip_runtime.h>
#include <cassert>
__device__ double table[64];
__constant__ float weights[16];
template <class T> __device__ __noinline__ T curve(T x) { return sin(x) * pow(x, T(1.5)) + erfc(x); }
__global__ void report(const double *in, float *out, int count) {
  __shared__ float part[256];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(i < count);
  auto *own = static_cast<double *>(malloc(sizeof(double) * (i & 7)));
  part[threadIdx.x] = curve(float(in[i])) * weights[i & 15];
  __syncthreads();
  atomicAdd(&table[i & 63], curve(in[i]));
  atomicAdd(out, __shfl_xor(part[threadIdx.x ^ 1], 3));
  if (own)
    printf("%d: %f %s\n", i, own[0], "heap");
  free(own);
}
"#;

/// A file of the examples.
fn example(name: &str) -> Vec<u8> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    std::fs::read(examples.join(name)).expect("the examples are there")
}

/// The sources by name.
fn sources() -> Vec<(&'static str, Vec<u8>)> {
    let examples = ["gemm/naive.hip", "gemm/tiled.hip", "hello-hip/hello.hip", "pgo/clamp.hip"];
    let mut all: Vec<_> = examples.map(|name| (name, example(name))).into();
    all.push(("host_calls.hip", HOST_CALLS.into()));
    all
}

/// One program, one compiler, one level, and the sources and targets.
struct Case<'a> {
    clang: &'a Clang,
    source: &'a (&'static str, Vec<u8>),
    level: &'static str,
    pairs: Vec<(&'static str, &'static str)>,
}

/// Each pair with one clang in turn at -O0 and at another level, rotating sources and levels.
fn some<'a>(bench: &'a Bench, sources: &'a [(&'static str, Vec<u8>)]) -> Vec<Case<'a>> {
    let mut cases = Vec::new();
    for (turn, clang) in bench.clangs.iter().enumerate() {
        for (number, pair) in PAIRS.iter().enumerate().filter(|(number, _)| number % bench.clangs.len() == turn) {
            let levels = [LEVELS[0], LEVELS[1 + (turn + number) % (LEVELS.len() - 1)]];
            for (step, level) in levels.into_iter().enumerate() {
                let source = &sources[(turn * 2 + number + step) % sources.len()];
                cases.push(Case { clang, source, level, pairs: vec![*pair] });
            }
        }
    }
    cases
}

/// All combinations: a case for each group.
fn all<'a>(bench: &'a Bench, sources: &'a [(&'static str, Vec<u8>)]) -> Vec<Case<'a>> {
    let mut cases = Vec::new();
    for clang in &bench.clangs {
        for (source, level) in sources.iter().flat_map(|source| LEVELS.iter().map(move |level| (source, *level))) {
            for group in GROUPS {
                let with = |one: &'static str| group.iter().filter(move |other| **other != one).map(move |o| (one, *o));
                let pairs = group.iter().flat_map(|one| with(one)).collect();
                cases.push(Case { clang, source, level, pairs });
            }
        }
    }
    cases
}

impl Case<'_> {
    /// Clang's own code object for one target.
    fn compile(&self, bench: &Bench, scratch: &Scratch, target: &str) -> Result<Vec<u8>, String> {
        let file = format!("{target}.co");
        let arch = format!("--offload-arch={target}");
        let device = ["--offload-device-only", "--no-gpu-bundle-output", "-fuse-cuid=none", "x.hip", "-o"];
        let words = [&[&arch, self.level], &device[..], &[&file]].concat();
        let words = words.into_iter().map(str::to_owned).collect();
        let words = [vec![self.clang.program.clone()], self.clang.hip.clone(), words].concat();
        let ran = Call::new(bench, &scratch.inside, &words).run();
        if ran.ok() { Ok(scratch.read(&file)) } else { Err(ran.brief()) }
    }

    /// Sizes of the code objects that equal clang's own, or the difference.
    fn judge(&self, bench: &Bench) -> Result<Vec<usize>, String> {
        let scratch = bench.scratch();
        ["gemm.h", "epilogue.h"].into_iter().for_each(|name| scratch.write(name, example(&format!("gemm/{name}"))));
        scratch.write("x.hip", &self.source.1);
        let mut clangs = BTreeMap::new();
        let mut sizes = Vec::new();
        for (source, target) in &self.pairs {
            let name = self.source.0;
            let told =
                |error| format!("clang {} {} {name} {source}=>{target}: {error}", self.clang.version, self.level);
            for one in [source, target] {
                if !clangs.contains_key(one) {
                    clangs.insert(*one, self.compile(bench, &scratch, one).map_err(told)?);
                }
            }
            sizes.push(retargeted(bench, &scratch, (source, target), &clangs[target]).map_err(told)?);
        }
        Ok(sizes)
    }
}

/// Retargets, and compares with clang's own.
fn retargeted(bench: &Bench, scratch: &Scratch, (source, target): (&str, &str), own: &[u8]) -> Result<usize, String> {
    let file = format!("{source}.co");
    let words = [&bench.installed("bin/hotswap"), "retarget", &file, "--to", target, "-o", "made.co"];
    let ran = Call::new(bench, &scratch.inside, &words).run();
    if !ran.ok() {
        return Err(ran.brief());
    }
    // HotSwap's record follows the code object, which must be clang's own to its last byte.
    let mut made = scratch.read("made.co");
    let record = made.split_off(own.len().min(made.len()));
    if !String::from_utf8_lossy(&record).contains("\"route\":\"alias\"") {
        return Err(format!("{} bytes behind the code object are no record", record.len()));
    }
    let differing = made.iter().zip(own).filter(|(one, other)| one != other).count();
    match made == own {
        true => Ok(made.len()),
        false => Err(format!("{} and {} bytes, {differing} differ", made.len(), own.len())),
    }
}

#[test]
fn programs_with_headers_are_what_clang_compiles_itself() {
    let Some(bench) = Bench::ready("golden programs") else { return };
    let sources = sources();
    let pairs = |cases: &[Case]| cases.iter().map(|case| case.pairs.len()).sum::<usize>();
    let all = all(&bench, &sources);
    let (count, some) = (pairs(&all), some(&bench, &sources));
    let used: BTreeSet<&str> = some.iter().map(|case| case.source.0).collect();
    assert_eq!(used.len(), sources.len(), "a program is not used");
    let cases = if everything() { all } else { some };
    say(&format!(
        "golden programs: {SLICE}{} of {count} cases; `cargo xtask test --everything` runs all",
        pairs(&cases)
    ));
    let results = parallel(&cases, |case| case.judge(&bench));
    let equal: Vec<usize> = results.iter().flatten().flatten().copied().collect();
    let wrong: Vec<_> = results.iter().filter_map(|result| result.as_ref().err().cloned()).collect();
    let bytes: usize = equal.iter().sum();
    say(&format!("golden programs: {} code objects, {bytes} bytes, equal clang's own", equal.len()));
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
