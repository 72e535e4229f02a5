//! Relocatable units that were compiled under a plan: whatever links them carries the plan out, or the link fails.
//!
//! One table: form of the link × origin of the plan × offload driver × compiler. The units have the plan, and no link one of
//! its own; or the link has it, and the units are plain clang's. The same units are then given to linkers without HotSwap, each of which must stop. A last table has links that have nothing
//! to do, which must succeed as clang's do.

use hotswap_tests::artifact::devices;
use hotswap_tests::mode::write_sources;
use hotswap_tests::{Bench, Call, Clang, Ran, Scratch, in_turn, parallel, say};

const KERNEL: &str = r#"#include "hip.h"
__attribute__((device)) int helper(int x);
__attribute__((global)) void kernel(int *p) { p[0] = helper(p[0]); }
extern "C" const void *address() { return reinterpret_cast<const void *>(kernel); }
"#;
const HELPER: &str = r#"#include "hip.h"
__attribute__((device)) int helper(int x) { return x * 3 + 1; }
"#;
/// Another text for gfx1031: the unit is compiled for it, too.
const ASKS: &str = r#"#include "hip.h"
#ifdef __gfx1031__
#define FACTOR 3
#else
#define FACTOR 2
#endif
__attribute__((global)) void kernel(int *p) { p[0] *= FACTOR; }
extern "C" const void *address() { return reinterpret_cast<const void *>(kernel); }
"#;
const MAIN: &str = "extern \"C\" const void *address();\nint main() { return address() == nullptr; }\n";
const HOST: &str = "int main() { return 0; }\n";
/// Begin of the symbol that a unit needs.
const SYMBOL: &str = "__hotswap_plan_of_this_object_was_not_carried_out__link_it_by_hotswap_clang__";
const PAIR: &str = "gfx1030=>gfx1031";
const BOTH: &str = "--offload-arch=gfx1030,gfx1031";

/// Where the plan of the units comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Words,
    Environment,
    /// `config.toml`.
    Configuration,
    Coalesced,
    /// The units are plain clang's, and the link has the plan: on its command line.
    LinkWords,
    /// In the environment.
    LinkEnvironment,
    /// In `config.toml`.
    LinkConfiguration,
}

impl Origin {
    /// Whether the link has the plan, and not the units.
    fn is_of_link(self) -> bool {
        matches!(self, Self::LinkWords | Self::LinkEnvironment | Self::LinkConfiguration)
    }

    /// The words and variables of a plan.
    fn request(self) -> (Vec<String>, Vec<(&'static str, &'static str)>) {
        match self {
            Self::Words | Self::LinkWords => {
                (vec!["-Xoffload-linker".to_owned(), format!("--hotswap-retarget={PAIR}")], Vec::new())
            }
            Self::Environment | Self::LinkEnvironment => (Vec::new(), vec![("HOTSWAP_RETARGET", PAIR)]),
            Self::Configuration | Self::LinkConfiguration => (Vec::new(), vec![("HOTSWAP_CONFIG", "config.toml")]),
            Self::Coalesced => (vec!["-fhotswap-coalesce".to_owned()], Vec::new()),
        }
    }
}

/// A link without a plan of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Program,
    Shared,
    /// Units in an archive, of which the linker takes members.
    Archive,
    ResponseFile,
    /// By `-r`, then a program by clang.
    Partial,
    /// By `--emit-static-lib`, then a program.
    StaticLibrary,
    /// `--offload-device-only`, which links in the old driver only.
    DeviceOnly,
}

const FORMS: [Form; 7] = [
    Form::Program,
    Form::Shared,
    Form::Archive,
    Form::ResponseFile,
    Form::Partial,
    Form::StaticLibrary,
    Form::DeviceOnly,
];
const LINKERS: [&str; 4] = ["bfd", "gold", "lld", "mold"];
const OLD: &str = "--no-offload-new-driver";
const NEW: &str = "--offload-new-driver";

/// The units of one origin and driver, compiled.
struct Units<'b> {
    origin: Origin,
    bench: &'b Bench,
    clang: &'b Clang,
    driver: &'static str,
    scratch: Scratch,
}

impl<'b> Units<'b> {
    fn compile(bench: &'b Bench, clang: &'b Clang, driver: &'static str, origin: Origin) -> Result<Self, String> {
        let scratch = bench.scratch();
        write_sources(&scratch, false);
        for (name, text) in
            [("kernel.hip", KERNEL), ("asks.hip", ASKS), ("helper.hip", HELPER), ("main.cpp", MAIN), ("host.cpp", HOST)]
        {
            scratch.write(name, text);
        }
        scratch.write("config.toml", format!("retarget = \"{PAIR}\"\n"));
        let units = Self { origin, bench, clang, driver, scratch };
        for unit in ["kernel", "helper", "asks"] {
            units.compile_unit(origin, unit)?;
        }
        units.succeed(units.clang(&["-c", "main.cpp", "host.cpp"]))?;
        Ok(units)
    }

    fn compile_unit(&self, origin: Origin, unit: &str) -> Result<(), String> {
        let (source, object) = (format!("{unit}.hip"), format!("{unit}.o"));
        let words = ["-fgpu-rdc", "-fPIC", "-c", &source, "-o", &object];
        let arch = if origin == Origin::Coalesced { BOTH } else { "--offload-arch=gfx1030" };
        if origin.is_of_link() {
            return self.succeed(self.clang(&[&[arch][..], &words].concat()));
        }
        let (request, variables) = origin.request();
        let request: Vec<&str> = request.iter().map(String::as_str).collect();
        self.succeed(self.hotswap(&[&request[..], &[arch], &words].concat(), &variables))
    }

    fn hotswap(&self, rest: &[&str], variables: &[(&str, &str)]) -> Ran {
        self.run(self.bench.installed("bin/hotswap-clang++"), rest, variables)
    }

    fn clang(&self, rest: &[&str]) -> Ran {
        self.run(self.clang.program.clone(), rest, &[])
    }

    fn run(&self, program: String, rest: &[&str], variables: &[(&str, &str)]) -> Ran {
        let mut words = vec![program];
        words.extend(self.clang.light());
        // Not every command has a use for the words of the userland.
        words.extend(["-Wno-unused-command-line-argument", self.driver].map(str::to_owned));
        words.extend(rest.iter().map(|word| (*word).to_owned()));
        let call = Call::new(self.bench, &self.scratch.inside, &words).env("HOTSWAP_CLANG", self.clang.program.clone());
        variables.iter().fold(call, |call, (name, value)| call.env(name, (*value).to_owned())).run()
    }

    fn succeed(&self, ran: Ran) -> Result<(), String> {
        if ran.ok() { Ok(()) } else { Err(ran.brief()) }
    }

    /// A device link of these inputs by HotSwap, without a plan of its own unless that is its origin.
    fn device_link(&self, rest: &[&str]) -> Result<(), String> {
        if !self.origin.is_of_link() {
            return self.succeed(self.hotswap(&[&["-fgpu-rdc", "--hip-link", BOTH], rest].concat(), &[]));
        }
        let (request, variables) = self.origin.request();
        let request: Vec<&str> = request.iter().map(String::as_str).collect();
        let link = ["-fgpu-rdc", "--hip-link", "--offload-arch=gfx1030"];
        self.succeed(self.hotswap(&[&request[..], &link, rest].concat(), &variables))
    }

    /// The words of a link with HIP's runtime.
    fn with_runtime<'w>(&'w self, words: &[&'w str]) -> Vec<&'w str> {
        words.iter().copied().chain(self.clang.link.iter().map(String::as_str)).collect()
    }

    fn archive(&self) -> Result<(), String> {
        let words =
            [self.clang.tool("llvm-ar"), "rcs".into(), "libunits.a".into(), "kernel.o".into(), "helper.o".into()];
        self.succeed(Call::new(self.bench, &self.scratch.inside, &words).run())
    }

    /// Links the units in that form; the file with the code objects.
    fn link(&self, form: Form) -> Result<&'static str, String> {
        match form {
            Form::Program => self.device_link(&self.with_runtime(&["main.o", "kernel.o", "helper.o", "-o", "x"])),
            Form::Shared => self.device_link(&["-shared", "-nostdlib", "kernel.o", "helper.o", "-o", "x"]),
            Form::Archive => {
                self.archive()?;
                self.device_link(&self.with_runtime(&["main.o", "-L.", "-lunits", "-o", "x"]))
            }
            Form::ResponseFile => {
                self.scratch.write("inputs.rsp", "main.o \"kernel.o\"\nhelper.o -o x\n");
                self.device_link(&self.with_runtime(&["@inputs.rsp"]))
            }
            Form::Partial => {
                self.device_link(&["-r", "kernel.o", "helper.o", "-o", "group.o"])?;
                self.succeed(self.clang(&["main.o", "group.o", "-o", "x", "-lamdhip64"]))
            }
            Form::StaticLibrary => {
                self.device_link(&["--emit-static-lib", "kernel.o", "helper.o", "-o", "libgroup.a"])?;
                self.device_link(&self.with_runtime(&["main.o", "libgroup.a", "-o", "x"]))
            }
            Form::DeviceOnly => self.device_link(&["--offload-device-only", "kernel.o", "helper.o", "-o", "x"]),
        }?;
        Ok("x")
    }

    /// The output has code for both GPUs with the kernel, by the bytes and by `hotswap verify`.
    fn judge(&self, form: Form) -> Result<(), String> {
        let file = self.link(form)?;
        self.judge_code(file)
    }

    fn judge_code(&self, file: &str) -> Result<(), String> {
        let found = devices(&self.scratch.read(file))?;
        let mut targets: Vec<&str> = found.iter().map(|device| device.target()).collect();
        targets.sort_unstable();
        if targets != ["gfx1030", "gfx1031"] {
            return Err(format!("the output has {targets:?}"));
        }
        if let Some(fault) = found.iter().find_map(|device| device.fault(device.target())) {
            return Err(fault);
        }
        let words =
            [self.bench.installed("bin/hotswap"), "verify".into(), "--require".into(), "gfx1030,gfx1031".into()];
        let words = [&words[..], &[file.to_owned()]].concat();
        let verified = Call::new(self.bench, &self.scratch.inside, &words).run();
        match verified.ok() && verified.stdout.contains("gfx1030 1 kernel, gfx1031 1 kernel") {
            true => Ok(()),
            false => Err(format!("{} {}", verified.stdout, verified.brief())),
        }
    }

    /// Every linker without HotSwap names the unit's symbol and makes nothing. Coalesced units are complete, and plain clang
    /// links both GPUs.
    fn judge_losses(&self) -> Result<(), String> {
        if self.origin.is_of_link() {
            // Nothing in the units tells that they have a plan.
            return Ok(());
        }
        self.archive()?;
        for linker in LINKERS {
            let linker = format!("-fuse-ld={linker}");
            for inputs in
                [&["kernel.o", "helper.o"][..], &["libunits.a"], &["-Wl,--gc-sections", "kernel.o", "helper.o"]]
            {
                let link = ["-fgpu-rdc", "--hip-link", BOTH, &linker, "main.o"];
                let words = self.with_runtime(&[&link[..], inputs, &["-o", "lost"]].concat());
                let ran = self.clang(&words);
                if self.origin == Origin::Coalesced {
                    self.succeed(ran).and_then(|()| self.judge_code("lost"))?;
                    continue;
                }
                if ran.ok() || !ran.stderr.contains(SYMBOL) || self.scratch.has("lost") {
                    return Err(format!("{linker} {inputs:?} loses the plan: {}", ran.brief()));
                }
            }
        }
        Ok(())
    }

    /// A unit that was compiled for the plan's target: a link that requests only the source has both, or is not made.
    fn judge_own_text(&self) -> Result<(), String> {
        if self.origin.is_of_link() {
            return Ok(());
        }
        let arch = if self.origin == Origin::Coalesced { BOTH } else { "--offload-arch=gfx1030" };
        let words = self.with_runtime(&["-fgpu-rdc", "--hip-link", arch, "main.o", "asks.o", "-o", "own"]);
        self.succeed(self.hotswap(&words, &[])).and_then(|()| self.judge_code("own"))?;
        let _ = std::fs::remove_file(self.scratch.outside("own"));
        let ran = self.clang(&words);
        if ran.ok() { self.judge_code("own") } else { Ok(()) }
    }

    /// Links without relocatable device code succeed under a plan.
    fn judge_idle_links(&self) -> Result<(), String> {
        self.device_link(&self.with_runtime(&["-shared", "kernel.o", "helper.o", "-o", "libkernel.so"]))?;
        self.device_link(&["-r", "kernel.o", "helper.o", "-o", "group.o"])?;
        self.device_link(&["--emit-static-lib", "kernel.o", "helper.o", "-o", "libgroup.a"])?;
        let plan: &[(&str, &str)] = &[("HOTSWAP_RETARGET", "gfx1030=>gfx1032")];
        let is_old = self.driver == OLD;
        for (inputs, links) in [
            (&["host.o"][..], true),
            (&["main.o", "libkernel.so"], true),
            (&["main.o", "group.o"], true),
            // In the new driver it is an archive of units, which need their link.
            (&["main.o", "libgroup.a"], is_old),
        ] {
            let words = [&["-fgpu-rdc", "--hip-link", "--offload-arch=gfx1030"], inputs, &["-o", "idle"]].concat();
            if links {
                let ran = self.hotswap(&self.with_runtime(&words), plan);
                self.succeed(ran).map_err(|error| format!("{inputs:?}: {error}"))?;
            }
        }
        Ok(())
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
struct Row {
    origin: Origin,
    driver: &'static str,
}

const ROWS: [Row; 14] = [
    Row { origin: Origin::Words, driver: OLD },
    Row { origin: Origin::Environment, driver: NEW },
    Row { origin: Origin::Coalesced, driver: OLD },
    Row { origin: Origin::Words, driver: NEW },
    Row { origin: Origin::Environment, driver: OLD },
    Row { origin: Origin::Coalesced, driver: NEW },
    Row { origin: Origin::Configuration, driver: OLD },
    Row { origin: Origin::LinkEnvironment, driver: OLD },
    Row { origin: Origin::LinkWords, driver: NEW },
    Row { origin: Origin::LinkConfiguration, driver: OLD },
    Row { origin: Origin::Configuration, driver: NEW },
    Row { origin: Origin::LinkWords, driver: OLD },
    Row { origin: Origin::LinkEnvironment, driver: NEW },
    Row { origin: Origin::LinkConfiguration, driver: NEW },
];

/// The driver was removed in clang 24.
fn has_driver(clang: &Clang, driver: &str) -> bool {
    driver == NEW || clang.version < 24
}

fn judge_row(bench: &Bench, clang: &Clang, row: &Row) -> Result<usize, String> {
    let driver = if has_driver(clang, row.driver) { row.driver } else { NEW };
    let units = Units::compile(bench, clang, driver, row.origin)?;
    let mut links = 0;
    for form in FORMS.into_iter().filter(|form| driver == OLD || *form != Form::DeviceOnly) {
        units.judge(form).map_err(|error| format!("{form:?}: {error}"))?;
        let _ = std::fs::remove_file(units.scratch.outside("x"));
        links += 1;
    }
    units.judge_losses()?;
    units.judge_own_text()?;
    units.judge_idle_links()?;
    Ok(links)
}

#[test]
fn units_are_linked_with_their_plan_or_not_at_all() {
    let Some(bench) = Bench::ready("planned units") else { return };
    let cases = in_turn("planned units", &ROWS, &bench.clangs, |_| false);
    let results = parallel(&cases, |(clang, row)| judge_row(&bench, clang, row));
    let links: usize = results.iter().flatten().sum();
    say(&format!("planned units: {links} links of {} rows carry the plan out", cases.len()));
    let wrong = cases.iter().zip(&results).filter_map(|((clang, row), result)| {
        Some(format!("clang {} {row:?}: {}", clang.version, result.as_ref().err()?))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
