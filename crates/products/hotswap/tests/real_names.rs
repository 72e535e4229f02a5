//! `hotswap retarget` on programs whose host part chooses kernels by the GPU's name, built as rocPRIM's users are.
//!
//! The planted fault is code for gfx1030 under another label, which a host part without the other name starts wrongly.
//! `HOTSWAP_TEST_ROOT` names the userland; without it each test reports that it was skipped.

mod made;

use hotswap_userland::{ENV_HEADERS, HIP_HEADER, Workbench, skip};
use made::RunsHotswap;
use std::path::Path;

/// A library with a table of names, in the form of rocPRIM's: `SPACE` is the inline namespace, `NAMES` the table. With
/// `INSTANCES`, kernels are instantiated for each GPU, and have a body for that which is compiled for.
const LIBRARY: &str = r#"
#include "hip.h"
#include <cstdio>
#include <cstring>

// Enough of HIP's own; the program is never run.
struct hipDeviceProp_t { char gcnArchName[256], others[4096]; };
extern "C" hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_t *, int);

namespace OUTER {
#ifdef SPACE
inline namespace SPACE {
#endif
namespace detail {
constexpr const char *known[] = {NAMES};
enum class target_arch : unsigned { a = 1030, b = 1100, unknown = 0xffffffffu };

#ifdef __gfx1030__
constexpr target_arch compiled = target_arch::a;
#else
constexpr target_arch compiled = target_arch::unknown;
#endif

template <class T> __global__ void reduce(T *data) { data[__builtin_amdgcn_workitem_id_x()] += compiled == target_arch::a ? 1 : 2; }

template <class T, target_arch Arch> __global__ void instance(T *data) {
  if constexpr (Arch == compiled)
    data[__builtin_amdgcn_workitem_id_x()] += 1;
}

inline int find(const char *name) {
  for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); ++i)
    if (std::strcmp(known[i], name) == 0)
      return static_cast<int>(i);
  return -1;
}
} // namespace detail
#ifdef SPACE
} // namespace SPACE
#endif
} // namespace OUTER

int main() {
  using namespace OUTER::detail;
  hipDeviceProp_t properties;
  if (hipGetDevicePropertiesR0600(&properties, 0) != 0)
    return 1;
  float *data = nullptr;
  const int place = find(properties.gcnArchName);
  std::printf("%d\n", place);
  reduce<<<1, place < 0 ? 256 : 64>>>(data);
#ifdef INSTANCES
  if (place < 0)
    instance<float, target_arch::unknown><<<1, 64>>>(data);
  else
    instance<float, target_arch::a><<<1, 64>>>(data);
#endif
  return 0;
}
"#;

const HIPCUB: &str = r"
#include <hip/hip_runtime.h>
#include <hipcub/hipcub.hpp>
int main() {
  float *in = nullptr, *out = nullptr;
  void *temporary = nullptr;
  size_t bytes = 0;
  return hipcub::DeviceReduce::Sum(temporary, bytes, in, out, 1000) == hipSuccess ? 0 : 1;
}
";

const OLD: &[&str] = &[
    "gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1102", "gfx1200", "gfx1201",
];
#[rustfmt::skip]
const NEW: &[&str] = &[
    "gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1102", "gfx1200",
    "gfx1201",
];
const CONVERTED: &[&str] =
    &["gfx902", "gfx909", "gfx90c", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"];
const NONE: &[&str] = &[];

struct Program {
    name: &'static str,
    outer: &'static str,
    space: Option<&'static str>,
    instances: bool,
    names: [&'static [&'static str]; 2],
    /// Processor of the compilation, and those to make from it.
    source: &'static str,
    targets: &'static str,
    right: bool,
}

#[rustfmt::skip]
const PROGRAMS: &[Program] = &[
    Program { name: "6x", outer: "rocprim", space: None, instances: false, names: [OLD, NONE], source: "gfx1030", targets: "gfx1031", right: false },
    Program { name: "6x-generic", outer: "rocprim", space: None, instances: false, names: [OLD, NONE], source: "gfx1030", targets: "gfx10-3-generic", right: false },
    Program { name: "6x-unknown", outer: "rocprim", space: None, instances: false, names: [OLD, NONE], source: "gfx1031", targets: "gfx1032", right: true },
    Program { name: "70", outer: "rocprim", space: Some("ROCPRIM_400000_NS"), instances: false, names: [OLD, NONE], source: "gfx1030", targets: "gfx1031", right: false },
    Program { name: "70-unknown", outer: "rocprim", space: Some("ROCPRIM_400000_NS"), instances: false, names: [OLD, NONE], source: "gfx1031", targets: "gfx1036", right: true },
    Program { name: "70-converted", outer: "rocprim", space: Some("ROCPRIM_400000_NS"), instances: false, names: [OLD, CONVERTED], source: "gfx1030", targets: "gfx1031", right: true },
    Program { name: "72", outer: "rocprim", space: Some("ROCPRIM_400200_NS"), instances: true, names: [NEW, NONE], source: "gfx1030", targets: "gfx1031", right: false },
    Program { name: "72-converted", outer: "rocprim", space: Some("ROCPRIM_400200_NS"), instances: true, names: [NEW, CONVERTED], source: "gfx1030", targets: "gfx10-3-generic", right: true },
    Program { name: "later", outer: "rocprim", space: Some("ROCPRIM_990000_NS"), instances: false, names: [NEW, NONE], source: "gfx1031", targets: "gfx1032", right: false },
    Program { name: "other", outer: "other", space: None, instances: true, names: [OLD, NONE], source: "gfx1030", targets: "gfx1031", right: false },
    Program { name: "plain", outer: "plain", space: None, instances: false, names: [OLD, NONE], source: "gfx1030", targets: "gfx1031", right: true },
];

fn retarget(bench: &Workbench, words: &str) -> assert_cmd::assert::Assert {
    bench.hotswap_line(&format!("retarget {words}"))
}

/// A refusal is one line, writes nothing, and can be overridden; the record has the override.
fn is_refused(bench: &Workbench, file: &str, to: &str) {
    let source = if file == "later" { "gfx1031" } else { "gfx1030" };
    for words in [format!("{file} --to {to} -o made"), format!("{file} --pairs {source}=>{to} -o made")] {
        let assert = retarget(bench, &words).failure().code(13);
        let error = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert_eq!(error.lines().count(), 1, "{file}: {error}");
        for part in ["[HS0414]", "host part", "HSA_OVERRIDE_GFX_VERSION=10.3", "--allow names"] {
            assert!(error.contains(part), "{file}: {part}: {error}");
        }
        assert!(!bench.path("made").exists(), "{file}");
    }
    let kept = retarget(bench, &format!("{file} --to {to} --policy keep -o kept")).success();
    let said = String::from_utf8_lossy(&kept.get_output().stdout).into_owned();
    assert!(said.contains("refused: the host part chooses by the GPU's name"), "{file}: {said}");
    retarget(bench, &format!("{file} --to {to} --allow names -o made")).success().stderr("");
    let bytes = bench.read("made");
    assert!(bytes.windows(11).any(|part| part == b"allow names"), "{file}: the record says that it was allowed");
    std::fs::remove_file(bench.path("made")).unwrap();
}

/// Programs of every generation: accepted where the host part treats both names alike, refused elsewhere.
#[test]
fn programs_that_choose_kernels_by_name_are_recognised() {
    let Some(bench) = Workbench::new("programs_that_choose_kernels_by_name_are_recognised") else { return };
    let version = bench.versions[0];
    bench.write("hip.h", HIP_HEADER.as_bytes());
    bench.write("library.hip", LIBRARY.as_bytes());
    for program in PROGRAMS {
        let names: Vec<String> = program.names.concat().iter().map(|name| format!("\"{name}\"")).collect();
        let space = program.space.map(|space| format!("-DSPACE={space}")).unwrap_or_default();
        let instances = if program.instances { "-DINSTANCES" } else { "" };
        bench.run(&format!(
            "clang++-{version} -x hip -nogpuinc --offload-arch={} -O2 -DOUTER={} '-DNAMES={}' {space} {instances} library.hip -o {} -lamdhip64",
            program.source, program.outer, names.join(","), program.name
        ));
        if program.right {
            retarget(&bench, &format!("{} --to {} -o made", program.name, program.targets)).success().stderr("");
            std::fs::remove_file(bench.path("made")).unwrap();
        } else {
            is_refused(&bench, program.name, program.targets);
        }
    }
}

/// The real library is refused, and accepted with Debian's option for both sides.
#[test]
fn hipcub_is_recognised() {
    let Some(bench) = Workbench::new("hipcub_is_recognised") else { return };
    let Some(headers) = std::env::var_os(ENV_HEADERS) else {
        skip("hipcub_is_recognised", "no headers of rocPRIM and hipCUB");
        return;
    };
    for directory in std::env::split_paths(&headers) {
        copy(&directory, &bench.path("include"));
    }
    let version = bench.versions[0];
    bench.write("reduce.hip", HIPCUB.as_bytes());
    for (name, option) in [("plain", ""), ("converted", "-DROCPRIM_USE_ARCH_CONVERSION")] {
        bench.run(&format!(
            "clang++-{version} -x hip --offload-arch=gfx1030 -O2 {option} -Iinclude reduce.hip -o {name} -lamdhip64"
        ));
    }
    is_refused(&bench, "plain", "gfx1031");
    is_refused(&bench, "plain", "gfx10-3-generic");
    retarget(&bench, "converted --to gfx1031,gfx10-3-generic -o made").success().stderr("");
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
