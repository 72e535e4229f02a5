//! Relocatable device code of units that test for the GPU's name and of units that do not, in one program: every code
//! object is clang's own, by a plan and coalesced; units without a mark are recorded or refused.

use hotswap_tests::artifact::{Device, devices};
use hotswap_tests::mode::write_sources;
use hotswap_tests::{Bench, Call, Clang, Ran, Scratch, parallel, say};

const GPUS: &str = "gfx1030,gfx1031,gfx1032,gfx1036";
const OTHERS: &str = "gfx1031,gfx1032,gfx1036";

/// Has another text for gfx1031, and calls the other unit.
const ASKS: &str = r#"#include "hip.h"
#define SHARED __attribute__((shared))
__attribute__((device)) float helper(float x, int n);
#ifdef __gfx1031__
#define FACTOR 3
#else
#define FACTOR 2
#endif
__attribute__((global)) void ask(float *p, int n) {
  SHARED float s[64];
  int i = __builtin_amdgcn_workitem_id_x();
  s[i] = p[i];
  __builtin_amdgcn_s_barrier();
  p[i] = helper(s[63 - i], n) * FACTOR;
}
int main() {}
"#;
/// Does not test for any GPU.
const SAME: &str = r#"#include "hip.h"
__attribute__((device)) __attribute__((noinline)) float deep(float x, int n) {
  float r = 0;
  for (int i = 0; i < n; ++i)
    r += x * i;
  return r;
}
__attribute__((device)) float helper(float x, int n) { return deep(x, n) + deep(x + 1, n / 2); }
__attribute__((global)) void same(float *p, int n) { p[0] = helper(p[0], n); }
"#;

/// How a build requests the other GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Clang,
    Plan,
    Coalesce,
}

struct Build<'b> {
    bench: &'b Bench,
    clang: &'b Clang,
    scratch: Scratch,
}

impl<'b> Build<'b> {
    fn new(bench: &'b Bench, clang: &'b Clang) -> Self {
        let scratch = bench.scratch();
        write_sources(&scratch, false);
        for (name, text) in [("asks", ASKS), ("same", SAME)] {
            scratch.write(&format!("{name}.hip"), text);
        }
        // A third unit, with a text that tests for none of the GPUs, so that a program of such units alone can be
        // linked.
        scratch.write("quiet.hip", ASKS.replace("__gfx1031__", "__gfx1100__"));
        Self { bench, clang, scratch }
    }

    fn run(&self, way: Way, rest: &[&str]) -> Ran {
        let ours = || self.bench.installed("bin/hotswap-clang++");
        let mut words = match way {
            Way::Clang => vec![self.clang.program.clone(), format!("--offload-arch={GPUS}")],
            Way::Plan => vec![
                ours(),
                "--offload-arch=gfx1030".to_owned(),
                "-Xoffload-linker".to_owned(),
                format!("--hotswap-retarget=gfx1030=>{OTHERS}"),
            ],
            Way::Coalesce => vec![ours(), "-fhotswap-coalesce".to_owned(), format!("--offload-arch={GPUS}")],
        };
        words.extend(self.clang.light());
        words.extend(["-O2", "-fPIC", "-fgpu-rdc"].map(str::to_owned));
        words.extend(rest.iter().map(|word| (*word).to_owned()));
        Call::new(self.bench, &self.scratch.inside, &words).env("HOTSWAP_CLANG", self.clang.program.clone()).run()
    }

    /// Compiles a unit; the ID of the compilation is explicit, because it is hashed from the arguments otherwise.
    fn compile(&self, way: Way, unit: &str) -> Result<String, String> {
        let object = format!("{unit}-{way:?}.o");
        if self.scratch.has(&object) {
            return Ok(object);
        }
        let id = format!("-cuid={unit}");
        let ran = self.run(way, &[&id, "-c", &format!("{unit}.hip"), "-o", &object]);
        if ran.ok() { Ok(object) } else { Err(format!("{way:?} {unit}: {}", ran.brief())) }
    }

    /// Links objects into a shared library, which needs no HIP runtime.
    fn link(&self, way: Way, objects: &[&str], output: &str) -> Ran {
        let words = [&["-cuid=link", "--hip-link", "-shared", "-nostdlib", "-o", output], objects].concat();
        self.run(way, &words)
    }

    fn devices(&self, file: &str) -> Result<Vec<Device>, String> {
        let mut found = devices(&self.scratch.read(file))?;
        found.sort_by(|one, other| one.target().cmp(other.target()));
        Ok(found)
    }

    fn list(&self, file: &str) -> String {
        let words = [self.bench.installed("bin/hotswap"), "list".into(), file.into()];
        Call::new(self.bench, &self.scratch.inside, &words).run().stdout
    }

    /// A program of these units is clang's own; returns the number of its derived code objects.
    fn equals_clangs(&self, way: Way, units: &[&str]) -> Result<usize, String> {
        let mut made = Vec::new();
        for way in [Way::Clang, way] {
            let objects = units.iter().map(|unit| self.compile(way, unit)).collect::<Result<Vec<_>, _>>()?;
            let output = format!("{way:?}.so");
            let objects: Vec<&str> = objects.iter().map(String::as_str).collect();
            let ran = self.link(way, &objects, &output);
            if !ran.ok() {
                return Err(format!("{way:?} link: {}", ran.brief()));
            }
            made.push(self.devices(&output)?);
        }
        let (clangs, ours) = (&made[0], &made[1]);
        if ours.len() != clangs.len() {
            return Err(format!("{way:?}: {} code objects, clang has {}", ours.len(), clangs.len()));
        }
        if let Some((one, _)) = ours.iter().zip(clangs).find(|(one, other)| one.bytes != other.bytes) {
            return Err(format!("{way:?}: the code object for {} is not clang's", one.target()));
        }
        Ok(self.list(&format!("{way:?}.so")).matches("retargeted from").count())
    }
}

fn judge(bench: &Bench, clang: &Clang) -> Result<String, String> {
    let build = Build::new(bench, clang);
    let mut told = Vec::new();
    for way in [Way::Plan, Way::Coalesce] {
        let mixed = build.equals_clangs(way, &["asks", "same"])?;
        let quiet = build.equals_clangs(way, &["quiet", "same"])?;
        if (mixed, quiet) != (2, 3) {
            return Err(format!("{way:?}: {mixed} and {quiet} code objects derived, not 2 and 3"));
        }
        told.push(format!("{way:?}: {mixed} and {quiet} derived"));
    }
    let foreign = build.run_foreign()?;
    let refused = build.link(Way::Plan, &["asks-Plan.o", &foreign], "mixed.so");
    if refused.code != Some(13) || !refused.stderr.contains("HS0453") || !refused.stderr.contains(&foreign) {
        return Err(format!("a unit that does not tell: {}", refused.brief()));
    }
    let unchecked = build.link(Way::Plan, &["quiet-Plan.o", &foreign], "unchecked.so");
    if !unchecked.ok() || build.list("unchecked.so").matches("text not checked").count() != 3 {
        return Err(format!("units that do not tell: {} {}", unchecked.brief(), build.list("unchecked.so")));
    }
    build.refuses_lenders()?;
    Ok(told.join(", "))
}

impl Build<'_> {
    /// A member of an archive, and a unit whose host code is bitcode, cannot lend their device code: the link names them.
    fn refuses_lenders(&self) -> Result<(), String> {
        let archive = format!("{} rcs libsame.a same-new.o", self.clang.tool("llvm-ar"));
        for command in [
            "asks.hip -cuid=asks -o asks-new.o",
            "same.hip -cuid=same -o same-new.o",
            "same.hip -cuid=same -flto -o same-lto.o",
        ] {
            let words: Vec<&str> = ["--offload-new-driver", "-c"].into_iter().chain(command.split(' ')).collect();
            let ran = self.run(Way::Plan, &words);
            if !ran.ok() {
                return Err(format!("{command}: {}", ran.brief()));
            }
        }
        let ran = Call::new(self.bench, &self.scratch.inside, &archive.split(' ').collect::<Vec<_>>()).run();
        if !ran.ok() {
            return Err(format!("{archive}: {}", ran.brief()));
        }
        for (lender, said) in [
            (
                "libsame.a",
                "libsame.a(same-new.o) has code for gfx1030 alone, and other units have some of their own for gfx1031",
            ),
            ("same-lto.o", "same-lto.o was compiled with -flto and has device code for gfx1030 alone, and other units"),
        ] {
            let words = ["--offload-new-driver", "-fuse-ld=lld", "-flto", "asks-new.o", lender];
            let link = self.link(Way::Plan, &words, "lent.so");
            let is_named = link.stderr.contains("HS0453") && link.stderr.contains(said);
            if link.code != Some(13) || !is_named || self.scratch.has("lent.so") {
                return Err(format!("{lender} lends: {}", link.brief()));
            }
        }
        Ok(())
    }

    /// The unit of one text, compiled for gfx1030 alone by plain clang.
    fn run_foreign(&self) -> Result<String, String> {
        let mut words = vec![self.clang.program.clone(), "--offload-arch=gfx1030".to_owned()];
        words.extend(self.clang.light());
        words.extend(
            ["-O2", "-fPIC", "-fgpu-rdc", "-cuid=same", "-c", "same.hip", "-o", "foreign.o"].map(str::to_owned),
        );
        let ran = Call::new(self.bench, &self.scratch.inside, &words).run();
        if ran.ok() { Ok("foreign.o".to_owned()) } else { Err(ran.brief()) }
    }
}

#[test]
fn units_of_both_kinds_make_clangs_own_program() {
    let Some(bench) = Bench::ready("relocatable units") else { return };
    let results = parallel(&bench.clangs.iter().collect::<Vec<_>>(), |clang| judge(&bench, clang));
    for (clang, result) in bench.clangs.iter().zip(&results) {
        say(&format!("relocatable units, clang {}: {result:?}", clang.version));
    }
    let wrong: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
