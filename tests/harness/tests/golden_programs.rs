//! The golden oracle on programs with HIP's headers and the device libraries: the code object of a sibling, retargeted by
//! the command, is byte for byte what clang makes for the target. Programs are those of `examples`, and one that
//! uses what needs the host: `printf`, `assert`, memory from the heap.

use hotswap_tests::{Bench, Call, Clang, Scratch, parallel, say};
use std::path::Path;

const PAIRS: &[(&str, &str)] = &[
    ("gfx900", "gfx90c"),
    ("gfx1010", "gfx1013"),
    ("gfx1011", "gfx1012"),
    ("gfx1030", "gfx1036"),
    ("gfx1150", "gfx1153"),
    ("gfx1200", "gfx1201"),
];

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

/// A code object of one source for one target, by one clang.
fn compile(bench: &Bench, clang: &Clang, scratch: &Scratch, target: &str) -> Result<Vec<u8>, String> {
    let file = format!("{target}.co");
    let arch = format!("--offload-arch={target}");
    let words =
        [&arch, "-O2", "--offload-device-only", "--no-gpu-bundle-output", "-fuse-cuid=none", "x.hip", "-o", &file];
    let words = [vec![clang.program.clone()], clang.hip.clone(), words.map(str::to_owned).to_vec()].concat();
    let ran = Call::new(bench, &scratch.inside, &words).run();
    if ran.ok() { Ok(scratch.read(&file)) } else { Err(ran.brief()) }
}

fn judge(bench: &Bench, clang: &Clang, (name, text): &(&str, Vec<u8>), pair: (&str, &str)) -> Result<usize, String> {
    let scratch = bench.scratch();
    ["gemm.h", "epilogue.h"].into_iter().for_each(|name| scratch.write(name, example(&format!("gemm/{name}"))));
    scratch.write("x.hip", text);
    let (source, target) = pair;
    let told = |error| format!("clang {} {name} {source}=>{target}: {error}", clang.version);
    compile(bench, clang, &scratch, source).map_err(told)?;
    let native = compile(bench, clang, &scratch, target).map_err(told)?;
    let file = format!("{source}.co");
    let words = [&bench.installed("bin/hotswap"), "retarget", &file, "--to", target, "-o", "made.co"];
    let ran = Call::new(bench, &scratch.inside, &words).run();
    if !ran.ok() {
        return Err(told(ran.brief()));
    }
    let made = scratch.read("made.co");
    let differing = made.iter().zip(&native).filter(|(one, other)| one != other).count();
    match made == native {
        true => Ok(made.len()),
        false => Err(told(format!("{} and {} bytes, {differing} differ", made.len(), native.len()))),
    }
}

#[test]
fn programs_with_headers_are_what_clang_compiles_itself() {
    let Some(bench) = Bench::ready("golden programs") else { return };
    let sources = sources();
    // Each pair with each clang, the sources by turns: all of them meet every clang.
    let cases = bench.clangs.iter().enumerate().flat_map(|(turn, clang)| {
        let sources = &sources;
        PAIRS
            .iter()
            .enumerate()
            .map(move |(number, pair)| (clang, &sources[(turn * 2 + number) % sources.len()], *pair))
    });
    let cases: Vec<_> = cases.collect();
    let results = parallel(&cases, |(clang, source, pair)| judge(&bench, clang, source, *pair));
    let bytes: usize = results.iter().flatten().sum();
    let wrong: Vec<_> = results.iter().filter_map(|result| result.as_ref().err().cloned()).collect();
    say(&format!("golden programs: {} code objects, {bytes} bytes, equal clang's own", cases.len() - wrong.len()));
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
