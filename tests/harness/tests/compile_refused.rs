//! The policy `compile`: a source whose code needs more registers than the other GPU has is compiled for it, by every
//! way in which clang is called, and its code objects are clang's own.

use hotswap_tests::artifact::{Device, devices};
use hotswap_tests::mode::write_sources;
use hotswap_tests::{Bench, Call, Clang, Ran, Scratch, parallel, say};

const GPUS: &str = "gfx1100,gfx1102,gfx1103";

/// Keeps 140 vector registers alive. Without bounds its workgroups may have 1024 lanes: clang allows 192 registers on
/// gfx1100 then, and 128 on the two others.
const BIG: &str = r#"#include "hip.h"
__attribute__((device)) int helper(int x, int n);
__attribute__((global)) void big(int *p, int n) {
  int kept[140];
  int lane = __builtin_amdgcn_workitem_id_x();
#pragma unroll
  for (int i = 0; i < 140; ++i)
    kept[i] = p[i * 1024 + lane];
  __asm__ volatile("" ::: "memory");
#pragma unroll
  for (int i = 0; i < 140; ++i)
    p[i * 1024 + lane] = kept[139 - i];
#ifdef CALLS
  p[n] = helper(p[n], n);
#endif
}
int main() {}
"#;
const SMALL: &str = r#"#include "hip.h"
__attribute__((device)) __attribute__((noinline)) int helper(int x, int n) {
  for (int i = 0; i < n; ++i)
    x = x * 31 + i;
  return x;
}
__attribute__((global)) void small(int *p, int n) { p[0] = helper(p[0], n); }
"#;

/// A way to build: the command makes a file `out`; the number of code objects that are derived.
struct Way {
    command: &'static str,
    derived: usize,
}

const WAYS: &[Way] = &[
    Way { command: "-cuid=x -c big.hip -o out", derived: 0 },
    Way { command: "-cuid=x -c small.hip -o out", derived: 2 },
    Way { command: "-cuid=x --offload-new-driver -c big.hip -o out", derived: 0 },
    Way { command: "-cuid=x --no-offload-new-driver -c big.hip -o out", derived: 0 },
    Way { command: "-cuid=x --offload-compress -c big.hip -o out", derived: 0 },
    Way { command: "-cuid=x -shared -nostdlib -o out -- big.hip", derived: 0 },
    Way { command: "-cuid=x -fgpu-rdc -shared -nostdlib big.hip -o out", derived: 0 },
];

struct Build<'b> {
    bench: &'b Bench,
    clang: &'b Clang,
    scratch: Scratch,
}

impl<'b> Build<'b> {
    fn new(bench: &'b Bench, clang: &'b Clang) -> Self {
        let scratch = bench.scratch();
        write_sources(&scratch, false);
        scratch.write("big.hip", BIG);
        scratch.write("small.hip", SMALL);
        Self { bench, clang, scratch }
    }

    fn run(&self, compiler: &[&str], rest: &str) -> Ran {
        let mut words: Vec<String> = compiler.iter().map(|word| (*word).to_owned()).collect();
        words.extend(self.clang.light());
        words.extend("-O2 -fPIC".split(' ').chain(rest.split(' ')).map(str::to_owned));
        Call::new(self.bench, &self.scratch.inside, &words).env("HOTSWAP_CLANG", self.clang.program.clone()).run()
    }

    fn run_plan(&self, policy: &str, rest: &str) -> Ran {
        let ours = self.bench.installed("bin/hotswap-clang++");
        let policy = format!("--hotswap-policy={policy}");
        let channel = "-Xoffload-linker";
        let pairs = "--hotswap-retarget=gfx1100=>gfx1102,gfx1103";
        self.run(&[&ours, "--offload-arch=gfx1100", channel, pairs, channel, &policy], rest)
    }

    fn devices(&self) -> Result<Vec<Device>, String> {
        let mut found = devices(&self.scratch.read("out"))?;
        found.sort_by(|one, other| one.target().cmp(other.target()));
        Ok(found)
    }

    fn list(&self) -> String {
        let words = [self.bench.installed("bin/hotswap"), "list".into(), "out".into()];
        Call::new(self.bench, &self.scratch.inside, &words).run().stdout
    }

    fn equals_clangs(&self, way: &Way) -> Result<(), String> {
        let ran = self.run(&[&self.clang.program, &format!("--offload-arch={GPUS}")], way.command);
        if !ran.ok() {
            return Err(format!("clang {}: {}", way.command, ran.brief()));
        }
        let clangs = self.devices()?;
        let ran = self.run_plan("compile", way.command);
        if !ran.ok() || ran.stderr.contains("error") {
            return Err(format!("{}: {}", way.command, ran.brief()));
        }
        let notes = ran.stderr.matches("note: the source is compiled for gfx110").count();
        let (ours, list) = (self.devices()?, self.list());
        let compiled = list.matches("compiled, since nothing can be derived: gfx1100=>gfx110").count();
        let derived = list.matches("retargeted from gfx1100").count();
        // Derived code is right, but not scheduled as clang would for the other GPU.
        let judged = if way.derived == 0 { ours.len() } else { 1 };
        let same = ours.iter().zip(&clangs).take(judged).all(|(one, other)| one.bytes == other.bytes);
        let expected = (way.derived, 2 - way.derived, 2 - way.derived);
        if (derived, compiled, notes) != expected || !same || ours.len() != 3 {
            return Err(format!("{}: {notes} notes, clang's own: {same}, {list}", way.command));
        }
        Ok(())
    }

    /// Units of relocatable device code are compiled already: their link refuses until they are for the other GPUs, too.
    fn refuses_links(&self) -> Result<(), String> {
        let units =
            ["-cuid=big -fgpu-rdc -DCALLS -c big.hip -o big.o", "-cuid=small -fgpu-rdc -c small.hip -o small.o"];
        let link = "-cuid=link -fgpu-rdc --hip-link -shared -nostdlib big.o small.o -o linked";
        for (more, links) in [("", false), (" --offload-arch=gfx1102,gfx1103", true)] {
            for command in units.iter().chain([&link]) {
                let ran = self.run_plan("compile", &format!("{command}{more}"));
                let refused = ran.stderr.contains("HS0408") && ran.stderr.contains("--offload-arch=gfx110");
                let expected = *command != link || links;
                if ran.ok() != expected || refused == expected {
                    return Err(format!("{command}{more}: {}", ran.brief()));
                }
            }
            if self.scratch.has("linked") != links {
                return Err(format!("{link}{more}: the output is there: {}", !links));
            }
        }
        Ok(())
    }

    /// A unit with code of its own for gfx1102, and one whose bitcode is for the registers of gfx1100, which is not lent.
    fn lends_nothing(&self) -> Result<(), String> {
        self.scratch.write(
            "asks.hip",
            format!("{SMALL}\n#ifdef __gfx1102__\nint main() {{}}\n#endif\n").replace("small", "asks"),
        );
        let asks = self.run_plan("error", "-cuid=asks -fgpu-rdc -c asks.hip -o asks.o");
        let other = self.run_plan("error", "-cuid=big -fgpu-rdc -c big.hip -o other.o");
        let link = self.run_plan("error", "-cuid=link -fgpu-rdc --hip-link -shared -nostdlib asks.o other.o -o lent");
        let is_told = link.stderr.contains("HS0453") && link.stderr.contains("has bitcode for gfx1100 alone");
        if !asks.ok() || !other.ok() || link.ok() || !is_told || self.scratch.has("lent") {
            return Err(format!("lent bitcode: {} {} {}", asks.brief(), other.brief(), link.brief()));
        }
        Ok(())
    }

    /// Other policies refuse, and so does this one where nothing can be compiled; no file is left.
    fn refuses(&self) -> Result<(), String> {
        let cases = [("error", "-cuid=x -c big.hip -o none"), ("compile", "-cuid=x -c -Wno-error broken.hip -o none")];
        self.scratch.write("broken.hip", format!("{BIG}\nint broken = undeclared;\n"));
        for (policy, command) in cases {
            let ran = self.run_plan(policy, command);
            if ran.ok() || self.scratch.has("none") {
                return Err(format!("{policy} {command}: {}", ran.brief()));
            }
        }
        Ok(())
    }
}

fn judge(bench: &Bench, clang: &Clang) -> Result<String, String> {
    let build = Build::new(bench, clang);
    WAYS.iter().try_for_each(|way| build.equals_clangs(way))?;
    build.refuses()?;
    build.refuses_links()?;
    build.lends_nothing()?;
    Ok(format!("{} ways", WAYS.len()))
}

#[test]
fn code_that_does_not_fit_is_compiled() {
    let Some(bench) = Bench::ready("compile refused") else { return };
    let results = parallel(&bench.clangs.iter().collect::<Vec<_>>(), |clang| judge(&bench, clang));
    for (clang, result) in bench.clangs.iter().zip(&results) {
        say(&format!("compile refused, clang {}: {result:?}", clang.version));
    }
    let wrong: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
