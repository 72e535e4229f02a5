//! A plan that is lost between the compilation of relocatable units and their link stops the build, in every linker, and
//! the message names the object's symbol.
//!
//! One table: place of the loss × linker × offload driver × compiler. Losses by CMake are cases of its own tests
//! (`rdc-lost-by-cmake`).

use hotswap_tests::artifact::{devices, targets};
use hotswap_tests::mode::write_sources;
use hotswap_tests::{Bench, Call, Clang, Ran, Scratch, in_turn, parallel, say};

const KERNEL: &str = r#"#include "hip.h"
__attribute__((global)) void kernel(int *p) { p[0] += 1; }
extern "C" const void *address() { return reinterpret_cast<const void *>(kernel); }
"#;
const MAIN: &str = "extern \"C\" const void *address();\nint main() { return address() == nullptr; }\n";
const SYMBOL: &str = "__hotswap_plan_of_this_object_was_not_carried_out__link_it_by_hotswap_clang__";
const RETARGET: [&str; 2] = ["-Xoffload-linker", "--hotswap-retarget=gfx1030=>gfx1031"];

/// Where the plan is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// The unit is compiled by hotswap-clang++, and linked by clang.
    Wrapper,
    /// The same with HotSwap switched off for the link.
    Disabled,
    /// The unit is compiled through `hotswap exec --`, and linked without that launcher.
    Launcher,
    /// The same with host code that is bitcode, which LTO joins.
    LtoLauncher,
    /// The unit comes from ccache, and is linked by clang.
    Ccache,
    /// The unit is in an archive that clang links.
    Archive,
    /// In a thin archive.
    ThinArchive,
    /// The whole archive is linked, and unused sections are removed.
    WholeArchive,
    /// The unit was joined with another one by `ld -r`, and stripped of its debug information.
    Joined,
    /// The host code is bitcode, which one LTO joins.
    FullLto,
    /// The same for ThinLTO.
    ThinLto,
    /// The same in an archive.
    LtoArchive,
}

impl Loss {
    /// The option by which the host code becomes bitcode.
    fn lto(self) -> Option<&'static str> {
        match self {
            Self::FullLto | Self::LtoArchive | Self::LtoLauncher => Some("-flto=full"),
            Self::ThinLto => Some("-flto=thin"),
            _ => None,
        }
    }
}

const LOSSES: [Loss; 12] = [
    Loss::Wrapper,
    Loss::Disabled,
    Loss::Launcher,
    Loss::Ccache,
    Loss::Archive,
    Loss::ThinArchive,
    Loss::WholeArchive,
    Loss::Joined,
    Loss::FullLto,
    Loss::ThinLto,
    Loss::LtoArchive,
    Loss::LtoLauncher,
];
const LINKERS: [&str; 4] = ["bfd", "gold", "lld", "mold"];

struct Build<'b> {
    bench: &'b Bench,
    clang: &'b Clang,
    driver: &'static str,
    scratch: Scratch,
}

impl Build<'_> {
    fn run(&self, program: &[&str], rest: &[&str], variables: &[(&str, &str)]) -> Ran {
        let mut words: Vec<String> = program.iter().map(|word| (*word).to_owned()).collect();
        words.extend(self.clang.light());
        words.extend(["-Wno-unused-command-line-argument", "--offload-arch=gfx1030", self.driver].map(str::to_owned));
        words.extend(rest.iter().map(|word| (*word).to_owned()));
        let cache = self.scratch.inside("cache");
        let call = Call::new(self.bench, &self.scratch.inside, &words).env("HOTSWAP_CLANG", self.clang.program.clone());
        let call = call.env("CCACHE_DIR", cache).env("CCACHE_NODIRECT", "1");
        variables.iter().fold(call, |call, (name, value)| call.env(name, *value)).run()
    }

    fn tool(&self, words: &[&str]) -> Result<(), String> {
        judged(&Call::new(self.bench, &self.scratch.inside, words).run())
    }

    /// Compiles the unit in the way that belongs to the loss.
    fn compile(&self, loss: Loss) -> Result<(), String> {
        let (hotswap, command) = (self.bench.installed("bin/hotswap-clang++"), self.bench.installed("bin/hotswap"));
        let lto = loss.lto();
        let compile = ["-fgpu-rdc", "-fPIC", "-g", "-c", "kernel.hip", "-o", "kernel.o"];
        let unit = [&RETARGET[..], &compile, lto.as_slice()].concat();
        let program: Vec<&str> = match loss {
            Loss::Launcher | Loss::LtoLauncher => vec![&command, "exec", "--", &self.clang.program],
            Loss::Ccache => vec!["ccache", &hotswap],
            _ => vec![&hotswap],
        };
        judged(&self.run(&program, &unit, &[]))?;
        if loss == Loss::Ccache {
            std::fs::remove_file(self.scratch.outside("kernel.o")).map_err(|error| error.to_string())?;
            judged(&self.run(&program, &unit, &[]))?;
            let counts = Call::new(self.bench, &self.scratch.inside, &["ccache", "--print-stats"])
                .env("CCACHE_DIR", self.scratch.inside("cache"))
                .run();
            if !counts.stdout.lines().any(|line| line == "preprocessed_cache_hit\t1") {
                return Err(format!("the cache has no hit: {}", counts.stdout));
            }
        }
        let main = [&["-c", "main.cpp", "-o", "main.o"][..], lto.as_slice()].concat();
        judged(&self.run(&[&self.clang.program], &main, &[]))?;
        let ar = self.clang.tool("llvm-ar");
        match loss {
            Loss::Archive | Loss::WholeArchive | Loss::LtoArchive => self.tool(&[&ar, "rcs", "libunits.a", "kernel.o"]),
            Loss::ThinArchive => self.tool(&[&ar, "rcs", "--thin", "libunits.a", "kernel.o"]),
            Loss::Joined => {
                self.tool(&["ld", "-r", "main.o", "kernel.o", "-o", "joined.o"])?;
                self.tool(&[&self.clang.tool("llvm-objcopy"), "--strip-debug", "joined.o"])
            }
            _ => Ok(()),
        }
    }

    /// The link that has lost the plan fails and names the symbol; with HotSwap the same link carries the plan out.
    fn link(&self, loss: Loss, linker: &str) -> Result<(), String> {
        let inputs: &[&str] = match loss {
            Loss::Archive | Loss::ThinArchive | Loss::LtoArchive => &["main.o", "libunits.a"],
            Loss::WholeArchive => {
                &["main.o", "-Wl,--gc-sections", "-Wl,--whole-archive", "libunits.a", "-Wl,--no-whole-archive"]
            }
            Loss::Joined => &["joined.o"],
            _ => &["main.o", "kernel.o"],
        };
        let linker = format!("-fuse-ld={linker}");
        let link = ["-fgpu-rdc", "--hip-link", &linker, "-o", "lost"];
        let runtime: Vec<&str> = self.clang.link.iter().map(String::as_str).collect();
        let lto = loss.lto();
        let words = [&link[..], inputs, &runtime, lto.as_slice()].concat();
        let hotswap = self.bench.installed("bin/hotswap-clang++");
        let ran = match loss {
            Loss::Disabled => self.run(&[&hotswap], &words, &[("HOTSWAP_DISABLE", "1")]),
            _ => self.run(&[&self.clang.program], &words, &[]),
        };
        // The plugin of gold leaves the file that it has refused.
        let is_left = self.scratch.has("lost") && linker != "-fuse-ld=gold";
        if ran.ok() || !ran.stderr.contains(SYMBOL) || is_left {
            return Err(format!("{linker}: {}", ran.brief()));
        }
        if loss.lto().is_some() || loss == Loss::ThinArchive {
            judged(&self.run(&[&hotswap], &words, &[])).map_err(|error| format!("with HotSwap, {linker}: {error}"))?;
            let found = targets(&devices(&self.scratch.read("lost"))?);
            std::fs::remove_file(self.scratch.outside("lost")).map_err(|error| error.to_string())?;
            if found.keys().ne(["gfx1030", "gfx1031"]) {
                return Err(format!("with HotSwap, {linker}: {found:?}"));
            }
        }
        Ok(())
    }
}

fn judged(ran: &Ran) -> Result<(), String> {
    if ran.ok() { Ok(()) } else { Err(ran.brief()) }
}

#[derive(Debug, Clone, Copy)]
struct Row {
    loss: Loss,
    driver: &'static str,
}

fn judge(bench: &Bench, clang: &Clang, row: &Row) -> Result<usize, String> {
    let driver = if clang.version < 24 { row.driver } else { "--offload-new-driver" };
    let scratch = bench.scratch();
    write_sources(&scratch, false);
    scratch.write("kernel.hip", KERNEL);
    scratch.write("main.cpp", MAIN);
    let build = Build { bench, clang, driver, scratch };
    build.compile(row.loss)?;
    LINKERS.iter().try_for_each(|linker| build.link(row.loss, linker))?;
    Ok(LINKERS.len())
}

#[test]
fn a_lost_plan_stops_every_linker() {
    let Some(bench) = Bench::ready("lost plans") else { return };
    let drivers = ["--no-offload-new-driver", "--offload-new-driver"];
    let rows = LOSSES.iter().flat_map(|loss| drivers.map(|driver| Row { loss: *loss, driver }));
    // Clang's old driver does not link relocatable units with LTO (undefined `__hip_gpubin_handle_…`).
    let rows: Vec<Row> = rows.filter(|row| row.loss.lto().is_none() || row.driver == drivers[1]).collect();
    let cases = in_turn("lost plans", &rows, &bench.clangs, |_| false);
    let results = parallel(&cases, |(clang, row)| judge(&bench, clang, row));
    let links: usize = results.iter().flatten().sum();
    say(&format!("lost plans: {links} links of {} rows stop", cases.len()));
    let wrong = cases.iter().zip(&results).filter_map(|((clang, row), result)| {
        Some(format!("clang {} {row:?}: {}", clang.version, result.as_ref().err()?))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
