//! Header libraries that choose kernels by the name of the GPU, on the host and in device code, built through a plan
//! for siblings: every code object is clang's own. (The first version derived all of them from the code for gfx1030,
//! with empty kernels where the host looks them up on a GPU whose name the library does not know.)

use hotswap_tests::artifact::{Device, devices};
use hotswap_tests::{Bench, Call, Clang, Scratch, everything, parallel, say, slice};
use std::time::Duration;

/// Seven compilations of the largest program, beside other tests.
const LIMIT: Duration = Duration::from_secs(900);
/// Two of them by default: with one text for GPUs that a library does not know, one is compiled and the others are derived.
const SIBLINGS: [&str; 6] = ["gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"];

/// Name, and the text of a program.
const PROGRAMS: &[(&str, &str)] = &[
    (
        "hipCUB",
        r"#include <hip/hip_runtime.h>
#include <hipcub/hipcub.hpp>
void use(void *space, size_t &size, int *in, int *out) {
  (void)hipcub::DeviceReduce::Sum(space, size, in, out, 1000);
#ifdef EVERYTHING
  (void)hipcub::DeviceRadixSort::SortKeys(space, size, in, out, 1000);
#endif
}
",
    ),
    (
        "rocPRIM",
        r"#include <cstring>
#include <hip/hip_runtime.h>
#include <rocprim/rocprim.hpp>
void use(void *space, size_t &size, int *in, int *out) {
  (void)rocprim::inclusive_scan(space, size, in, out, 1000, rocprim::plus<int>());
}
",
    ),
    (
        "rocThrust",
        r"#include <thrust/device_ptr.h>
#include <thrust/reduce.h>
int use(int *data) {
  thrust::device_ptr<int> first(data);
  return thrust::reduce(first, first + 1000);
}
",
    ),
    (
        "rocRAND",
        r"#include <hip/hip_runtime.h>
#include <rocrand/rocrand_kernel.h>
__global__ void use(float *out, unsigned long long seed) {
  rocrand_state_xorwow state;
  rocrand_init(seed, threadIdx.x, 0, &state);
  out[threadIdx.x] = rocrand_normal(&state);
}
",
    ),
];

fn build(bench: &Bench, clang: &Clang, text: &str, words: &[String]) -> Result<(Scratch, Vec<Device>), String> {
    let scratch = bench.scratch();
    let text = if everything() { format!("#define EVERYTHING\n{text}") } else { text.to_owned() };
    scratch.write("a.hip", text);
    let rest = ["-O1", "-w", "-fuse-cuid=none", "-c", "a.hip", "-o", "a.o"].map(str::to_owned);
    let words = [words, &clang.hip, &rest].concat();
    let ran = Call::new(bench, &scratch.inside, &words).env("HOTSWAP_CLANG", clang.program.clone()).limit(LIMIT).run();
    if !ran.ok() {
        return Err(ran.brief());
    }
    let mut found = devices(&scratch.read("a.o"))?;
    found.sort_by(|one, other| one.target().cmp(other.target()));
    Ok((scratch, found))
}

/// The number of code objects that were derived.
fn judge(bench: &Bench, clang: &Clang, text: &str, siblings: &str) -> Result<usize, String> {
    let plain = [clang.program.clone(), format!("--offload-arch=gfx1030,{siblings}")];
    let (_, clangs) = build(bench, clang, text, &plain)?;
    let planned = [
        bench.installed("bin/hotswap-clang++"),
        "--offload-arch=gfx1030".to_owned(),
        "-Xoffload-linker".to_owned(),
        format!("--hotswap-retarget=gfx1030=>{siblings}"),
    ];
    let (scratch, ours) = build(bench, clang, text, &planned)?;
    if ours.len() != clangs.len() {
        return Err(format!("{} code objects, clang has {}", ours.len(), clangs.len()));
    }
    if let Some((one, _)) = ours.iter().zip(&clangs).find(|(one, other)| one.bytes != other.bytes) {
        return Err(format!("the code object for {} is not clang's", one.target()));
    }
    let words = [bench.installed("bin/hotswap"), "list".into(), "a.o".into()];
    let listed = Call::new(bench, &scratch.inside, &words).run();
    Ok(listed.stdout.matches("retargeted from").count())
}

#[test]
fn libraries_that_ask_for_the_name_are_what_clang_compiles_itself() {
    let Some(bench) = Bench::ready("libraries that ask for the name") else { return };
    // HIP 7.2 is built with clang 22; the libraries' headers are not those of other clangs.
    let clang = bench.clangs.iter().find(|clang| clang.version == 22).expect("clang 22 is there");
    let siblings = slice("siblings of libraries that ask for the name", SIBLINGS.to_vec(), |number, _| number < 2);
    // hipCUB is made of rocPRIM, and rocRAND has a table of names of its own.
    let programs = slice("libraries that ask for the name", PROGRAMS.to_vec(), |_, (name, _)| {
        ["hipCUB", "rocRAND"].contains(name)
    });
    let results = parallel(&programs, |(_, text)| judge(&bench, clang, text, &siblings.join(",")));
    let named = programs.iter().zip(&results);
    for ((name, _), result) in named.clone() {
        say(&format!("{name}: {result:?} of {} code objects derived, all equal clang's own", siblings.len() + 1));
    }
    let wrong: Vec<_> = named.filter_map(|((name, _), result)| Some((name, result.as_ref().err()?))).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    // One text for all GPUs that rocPRIM does not know: one of them is compiled, and the others are derived from it.
    assert_eq!(results[0].as_ref().ok(), Some(&(siblings.len() - 1)));
}
