//! Pairs whose code must change, through every mode of the driver: the compiler's own code object is the same as
//! clang's alone, and the target's is made by the best available route.

use hotswap_tests::artifact::{Device, devices};
use hotswap_tests::mode::{plan_words, write_sources};
use hotswap_tests::{Bench, Call, Clang, Scratch, one_of_each, parallel, say};
use object::{Object, ObjectSection};

const PLAN: &str = "gfx1250=>gfx1250-strict";
const EF_MACH_STRICT: u8 = 0xeb;

/// Code that LLVM 24 cannot compile for the target: the instruction of depth 128 does not exist there.
const MATRIX: &str = r#"#include "hip.h"
typedef int V16 __attribute__((ext_vector_type(16)));
typedef float V8 __attribute__((ext_vector_type(8)));
__global__ void product(const V16 *a, const V16 *b, V8 *c) {
  unsigned lane = __builtin_amdgcn_workitem_id_x();
  c[lane] = __builtin_amdgcn_wmma_f32_16x16x128_fp8_fp8(a[lane], b[lane], (short)0, c[lane], false, false);
}
int main() { product<<<1, 32>>>(nullptr, nullptr, nullptr); return 0; }
"#;

/// The same in a function that is called: a linker that strips leaves no symbol of it.
const CALLED: &str = r#"#include "hip.h"
typedef int V16 __attribute__((ext_vector_type(16)));
typedef float V8 __attribute__((ext_vector_type(8)));
static __device__ __attribute__((noinline)) V8 step(const V16 *a, V8 c) {
  return __builtin_amdgcn_wmma_f32_16x16x128_fp8_fp8(a[0], a[1], (short)0, c, false, false);
}
__global__ void product(const V16 *a, V8 *c) {
  unsigned lane = __builtin_amdgcn_workitem_id_x();
  V8 sum = c[lane];
  for (int i = 0; i < 64; ++i) sum = step(a + 2 * i, sum);
  c[lane] = sum;
}
int main() { product<<<1, 32>>>(nullptr, nullptr); return 0; }
"#;
/// An instruction of [`MATRIX`] and [`CALLED`] that the target lacks.
const LACKED: &str = "v_wmma_f32_16x16x128_fp8_fp8";

/// Code that it can compile, with instructions that differ between the steppings.
const PAIRS: &str = r#"#include "hip.h"
__device__ __attribute__((noinline)) float sum(const float *p, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += p[i];
  return sum;
}
__global__ void neighbours(float *p, int n) {
  __attribute__((shared)) static float part[256];
  unsigned lane = __builtin_amdgcn_workitem_id_x();
  part[lane] = p[lane];
  __builtin_amdgcn_s_barrier();
  p[lane] = part[lane] + part[(lane + 1) & 255] + sum(p, n);
}
int main() { neighbours<<<1, 32>>>(nullptr, 0); return 0; }
"#;

#[derive(Debug, Clone)]
struct Case {
    version: u32,
    words: &'static [&'static str],
    rdc: bool,
    source: (&'static str, &'static str),
}

const DRIVERS: &[&[&str]] = &[
    &["--no-offload-new-driver"],
    &["--offload-new-driver"],
    &["--offload-new-driver", "--offload-compress", "-g"],
    &["--no-offload-new-driver", "--offload-compress", "-O0"],
];

/// Sections of the rewritten file that are damaged for a trial.
const FAULTS: &[&str] = &[".hash", ".gnu.hash", ".dynsym", ".dynstr", ".text"];

/// The file with other bits in the last byte but three of the section: that of a chain, a size, a name, or an instruction.
fn damaged(file: &[u8], section: &str) -> Vec<u8> {
    let parsed = object::File::parse(file).expect("it was read");
    let place = parsed.section_by_name(section).and_then(|section| section.file_range());
    let (start, size) = place.unwrap_or_else(|| panic!("there is no {section}"));
    let mut damaged = file.to_vec();
    damaged[(start + size) as usize - 4] ^= 0x15;
    damaged
}

/// Links that leave fewer symbols.
const STRIPPED: &[&[&str]] = &[
    &["--no-offload-new-driver", "-Xoffload-linker", "-s"],
    &["--no-offload-new-driver", "-Xoffload-linker", "-x"],
    &["--no-offload-new-driver", "-Xoffload-linker", "--discard-all"],
    &["--offload-new-driver", "-Xoffload-linker", "-s"],
];

fn cases(clang: &Clang) -> Vec<Case> {
    let mut cases = Vec::new();
    // Clang 24 has one driver only.
    let drivers = DRIVERS.iter().filter(|words| clang.version < 24 || words[0] == "--offload-new-driver");
    for words in drivers {
        for rdc in [false, true] {
            for source in [("matrix", MATRIX), ("pairs", PAIRS)] {
                cases.push(Case { version: clang.version, words, rdc, source });
            }
        }
    }
    let drivers = STRIPPED.iter().filter(|words| clang.version < 24 || words[0] == "--offload-new-driver");
    for words in drivers {
        for source in [("matrix", MATRIX), ("called", CALLED)] {
            cases.push(Case { version: clang.version, words, rdc: false, source });
        }
    }
    cases
}

impl Case {
    fn name(&self) -> String {
        let rdc = if self.rdc { " RDC" } else { "" };
        format!("clang {} {}{rdc} {}", self.version, self.words.join(" "), self.source.0)
    }

    /// LLVM 24 knows the target and its missing intrinsics.
    fn route(&self) -> &'static str {
        if self.version >= 24 && self.source.0 == "pairs" { "recompiled" } else { "rewritten" }
    }

    /// Builds `x`; leaves no files in the directory of temporary files.
    fn build(&self, bench: &Bench, plan: bool, arch: &str) -> Result<Scratch, String> {
        let clang = bench.clang(self.version).expect("cases are made for clangs that are there");
        let scratch = bench.scratch();
        write_sources(&scratch, false);
        scratch.write("x.hip", self.source.1);
        std::fs::create_dir(scratch.outside("tmp")).expect("scratch is writable");
        let compiler = match plan {
            true => [vec![bench.installed("bin/hotswap-clang++")], plan_words(PLAN, None)].concat(),
            false => vec![clang.program.clone()],
        };
        let mut words = [compiler, clang.light()].concat();
        // Device libraries of distributions do not know the other stepping; debug information names the directory.
        let same = ["-O2", "-nogpulib", "-fdebug-compilation-dir=/"].map(str::to_owned);
        words.extend([vec![format!("--offload-arch={arch}")], same.to_vec()].concat());
        words.extend(self.words.iter().map(|word| (*word).to_owned()));
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        // Without device libraries clang links no HIP either.
        let libraries = [clang.link.clone(), list(&["-lamdhip64"])].concat();
        let commands = if self.rdc {
            let compile = list(&["-fgpu-rdc", "-cuid=x", "-c", "x.hip", "-o", "x.o"]);
            let link = list(&["-fgpu-rdc", "--hip-link", "x.o", "-o", "x"]);
            vec![[words.clone(), compile].concat(), [words, link, libraries].concat()]
        } else {
            vec![[words, list(&["-fuse-cuid=none", "x.hip", "-o", "x"]), libraries].concat()]
        };
        for command in commands {
            let call = Call::new(bench, &scratch.inside, &command).env("HOTSWAP_CLANG", clang.program.clone());
            let ran = call.env("TMPDIR", scratch.inside("tmp")).run();
            if !ran.ok() {
                return Err(ran.brief());
            }
        }
        let left = scratch.names("tmp");
        if plan && !left.is_empty() {
            return Err(format!("left behind: {left:?}"));
        }
        Ok(scratch)
    }

    fn judge(&self, bench: &Bench) -> Result<(), String> {
        let ours = self.build(bench, true, "gfx1250")?;
        let clangs = self.build(bench, false, "gfx1250")?;
        let (all, native) = (devices(&ours.read("x"))?, devices(&clangs.read("x"))?);
        if of(&all, "gfx1250")?.bytes != of(&native, "gfx1250")?.bytes {
            return Err("gfx1250 is not what clang makes".to_owned());
        }
        let strict = of(&all, "gfx1250-strict")?;
        if strict.mach() != Some(EF_MACH_STRICT) {
            return Err(format!("machine {:?}", strict.mach()));
        }
        ours.write("strict.co", &strict.bytes);
        let listed = Call::new(bench, &ours.inside, &["llvm-objdump-24", "-d", "strict.co"]).run();
        if !listed.ok() || !listed.stdout.contains("s_endpgm") || listed.stdout.contains(LACKED) {
            return Err(format!("gfx1250-strict has `{LACKED}`, or cannot be read: {}", listed.brief()));
        }
        let hotswap = bench.installed("bin/hotswap");
        let inspected = Call::new(bench, &ours.inside, &[hotswap.as_str(), "inspect", "--format", "json", "x"]).run();
        let route = format!("\"route\": \"{}\"", self.route());
        if !inspected.ok() || !inspected.stdout.contains(&route) {
            return Err(format!("no {route}: {}", inspected.brief()));
        }
        if self.route() == "rewritten" {
            // Its link had relocations, which the code object beside it in the fat binary has not.
            ours.write("source.co", &of(&all, "gfx1250")?.bytes);
            let words = [hotswap.as_str(), "verify", "--against", "source.co", "strict.co"];
            let proven = Call::new(bench, &ours.inside, &words).run();
            if !proven.ok() {
                return Err(format!("not proven from the fat binary: {}", proven.brief()));
            }
            // Relocatable device code has its symbols in another order there.
            let faults = if self.rdc { FAULTS } else { &[] };
            for section in faults {
                ours.write("strict.co", damaged(&strict.bytes, section));
                if Call::new(bench, &ours.inside, &words).run().ok() {
                    return Err(format!("a fault in {section} is not noticed"));
                }
            }
        }
        if self.route() == "recompiled" {
            let own = self.build(bench, false, "gfx1250-strict")?;
            if devices(&own.read("x"))?.iter().all(|device| device.bytes != strict.bytes) {
                return Err("gfx1250-strict is not what clang makes".to_owned());
            }
        }
        let again = [hotswap.as_str(), "rewrite", "x", "-o", "y", "--to", "gfx1250-strict"];
        let ran = Call::new(bench, &ours.inside, &again).run();
        if ran.code != Some(17) || ours.read("x") != ours.read("y") {
            return Err(format!("the second run changes something: {}", ran.brief()));
        }
        Ok(())
    }
}

fn of<'a>(devices: &'a [Device], target: &str) -> Result<&'a Device, String> {
    devices.iter().find(|device| device.target() == target).ok_or_else(|| format!("no {target}"))
}

#[test]
fn every_mode_makes_the_other_stepping_and_keeps_what_clang_made() {
    let Some(bench) = Bench::ready("steppings") else { return };
    let all = bench.clangs.iter().flat_map(cases).collect();
    // Clang 24 takes another route for one of the sources; which symbols are left depends on the linker's version.
    let with_all = |case: &Case| case.version >= 24 || case.source.0 == "called";
    let cases = one_of_each("steppings", all, |case| (case.words, case.rdc, case.source.0), with_all);
    let results = parallel(&cases, |case| case.judge(&bench));
    let wrong = cases.iter().zip(&results).filter_map(|(case, result)| Some((case.name(), result.as_ref().err()?)));
    let wrong: Vec<_> = wrong.map(|(name, error)| format!("{name}: {error}")).collect();
    let count = |route: &str| cases.iter().filter(|case| case.route() == route).count();
    say(&format!(
        "steppings: {} programs for gfx1250 and gfx1250-strict, {} rewritten, {} compiled again as clang does it; gfx1250 is clang's in all",
        cases.len(),
        count("rewritten"),
        count("recompiled")
    ));
    assert!(wrong.is_empty(), "{} of {} programs:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
