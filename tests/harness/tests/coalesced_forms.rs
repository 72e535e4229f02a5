//! COALESCE equals clang in every form of a build: each code object of the output is clang's own for the same list of
//! targets.
//!
//! A generated matrix: list of targets (generic ones and settings of features among them) × relocatable code or not ×
//! form of the build × compiler. The library has a unit whose text is the same for all targets and one that tests for one
//! of them; programs have units of their own, of either compiler.

use hotswap_tests::artifact::{Device, devices};
use hotswap_tests::mode::write_sources;
use hotswap_tests::target_lists::lists;
use hotswap_tests::{Bench, Call, Clang, Ran, Scratch, parallel, say, slice};

const SAME: &str = r#"#include "hip.h"
__attribute__((device)) __attribute__((noinline)) float deep(float x, int n) {
  float r = 0;
  for (int i = 0; i < n; ++i)
    r += x * i;
  return r;
}
__attribute__((device)) float helper(float x, int n) { return deep(x, n) + deep(x + 1, n / 2); }
__attribute__((global)) void same(float *p, int n) { p[0] = helper(p[0], n); }
extern "C" const void *same_address() { return (const void *)same; }
"#;
/// `@` is one of the targets.
const ASKS: &str = r#"#include "hip.h"
#ifdef __@__
#define FACTOR 3
#else
#define FACTOR 2
#endif
__attribute__((global)) void asks(float *p, int n) { p[n] *= FACTOR; }
extern "C" const void *asks_address() { return (const void *)asks; }
"#;
const MAIN: &str = r#"#include "hip.h"
#ifdef RELOCATABLE
__attribute__((device)) float helper(float x, int n);
#else
__attribute__((device)) float helper(float x, int n) { return x * n; }
#endif
__attribute__((global)) void mine(float *p, int n) { p[0] = helper(p[1], n) + 1; }
extern "C" const void *same_address();
extern "C" const void *asks_address();
int main() { return same_address() == asks_address() || asks_address() == (const void *)mine; }
"#;
const HOST: &str = r#"extern "C" const void *same_address();
int main() { return same_address() == nullptr; }
"#;

/// How the library reaches its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Objects and nothing else.
    Object,
    /// An archive, in a program with units of its own by plain clang, linked by HotSwap without any option.
    StaticLibrary,
    /// The same, linked by plain clang.
    StaticByClang,
    /// The same, with a program that is coalesced, too.
    StaticCoalesced,
    /// The program's source is compiled in the command that links the archive.
    StaticOneStep,
    /// A shared library.
    SharedLibrary,
    /// Objects in a program without units of its own.
    ObjectLibrary,
    /// Sources that the program includes.
    Interface,
}

const FORMS: [Form; 8] = [
    Form::Object,
    Form::StaticLibrary,
    Form::StaticByClang,
    Form::StaticCoalesced,
    Form::StaticOneStep,
    Form::SharedLibrary,
    Form::ObjectLibrary,
    Form::Interface,
];

/// Who builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compiler {
    Clang,
    /// HotSwap without an option.
    HotSwap,
    Coalescing,
}

/// A cell of the matrix.
#[derive(Debug, Clone)]
struct Cell {
    list: String,
    relocatable: bool,
    form: Form,
    version: u32,
}

fn cells(bench: &Bench) -> Vec<Cell> {
    let mut cells = Vec::new();
    for list in lists() {
        for relocatable in [true, false] {
            for form in FORMS {
                let versions = bench.clangs.iter().map(|clang| clang.version);
                cells.extend(versions.map(|version| Cell { list: list.clone(), relocatable, form, version }));
            }
        }
    }
    cells
}

struct Build<'b> {
    bench: &'b Bench,
    clang: &'b Clang,
    cell: &'b Cell,
    scratch: Scratch,
}

impl<'b> Build<'b> {
    fn new(bench: &'b Bench, clang: &'b Clang, cell: &'b Cell) -> Self {
        let scratch = bench.scratch();
        write_sources(&scratch, false);
        let asked = cell.list.split(',').filter(|name| !name.contains("generic")).nth(1).unwrap_or("gfx000");
        let asks = ASKS.replace('@', asked.split(':').next().unwrap_or_default());
        let interface = "#include \"same.hip\"\n#include \"asks.hip\"\n".to_owned();
        for (name, text) in
            [("same.hip", SAME), ("asks.hip", &asks), ("main.hip", MAIN), ("host.cpp", HOST), ("both.hip", &interface)]
        {
            scratch.write(name, text);
        }
        Self { bench, clang, cell, scratch }
    }

    fn run(&self, compiler: Compiler, rest: &[&str]) -> Result<(), String> {
        let program = match compiler {
            Compiler::Clang => self.clang.program.clone(),
            _ => self.bench.installed("bin/hotswap-clang++"),
        };
        let mut words = vec![program, format!("--offload-arch={}", self.cell.list)];
        words.extend((compiler == Compiler::Coalescing).then(|| "-fhotswap-coalesce".to_owned()));
        words.extend(
            self.cell
                .relocatable
                .then(|| "-fgpu-rdc -DRELOCATABLE".split(' '))
                .into_iter()
                .flatten()
                .map(str::to_owned),
        );
        words.extend(self.clang.light());
        words.extend("-O2 -fPIC -Wno-unused-command-line-argument".split(' ').map(str::to_owned));
        words.extend(rest.iter().map(|word| (*word).to_owned()));
        let ran =
            Call::new(self.bench, &self.scratch.inside, &words).env("HOTSWAP_CLANG", self.clang.program.clone()).run();
        judged(compiler, rest, &ran)
    }

    /// The ID of the compilation is explicit, because it is hashed from the arguments otherwise.
    fn compile(&self, compiler: Compiler, unit: &str) -> Result<(), String> {
        let (id, source, object) = (format!("-cuid={unit}"), format!("{unit}.hip"), format!("{unit}.o"));
        self.run(compiler, &[&id, "-c", &source, "-o", &object])
    }

    fn archive(&self) -> Result<(), String> {
        let _ = std::fs::remove_file(self.scratch.outside("libunits.a"));
        let tool = self.clang.tool("llvm-ar");
        let words = [&tool, "rcs", "libunits.a", "same.o", "asks.o"];
        judged(Compiler::Clang, &words, &Call::new(self.bench, &self.scratch.inside, &words).run())
    }

    fn link(&self, compiler: Compiler, inputs: &[&str]) -> Result<(), String> {
        let link = ["--hip-link", "-cuid=link", "-shared", "-nostdlib", "-o", "out"];
        self.run(compiler, &[&link, inputs].concat())
    }

    /// Builds the form; coalesced, or by clang alone.
    fn build(&self, coalesced: bool) -> Result<Vec<Device>, String> {
        let own = if coalesced { Compiler::Coalescing } else { Compiler::Clang };
        let hotswap = if coalesced { Compiler::HotSwap } else { Compiler::Clang };
        if self.cell.form == Form::Interface {
            self.run(own, &["-cuid=both", "--hip-link", "-shared", "-nostdlib", "both.hip", "-o", "out"])?;
            return self.devices();
        }
        self.compile(own, "same")?;
        self.compile(own, "asks")?;
        self.archive()?;
        match self.cell.form {
            Form::Object | Form::SharedLibrary => self.link(own, &["same.o", "asks.o"])?,
            Form::ObjectLibrary => {
                self.run(Compiler::Clang, &["-c", "host.cpp", "-o", "host.o"])?;
                self.link(own, &["host.o", "same.o", "asks.o"])?;
            }
            Form::StaticOneStep => {
                self.run(
                    own,
                    &["-cuid=main", "--hip-link", "-shared", "-nostdlib", "main.hip", "libunits.a", "-o", "out"],
                )?;
            }
            Form::StaticLibrary | Form::StaticByClang | Form::StaticCoalesced | Form::Interface => {
                let (program, linker) = match self.cell.form {
                    Form::StaticLibrary => (Compiler::Clang, hotswap),
                    Form::StaticCoalesced => (own, own),
                    _ => (Compiler::Clang, Compiler::Clang),
                };
                self.compile(program, "main")?;
                self.link(linker, &["main.o", "libunits.a"])?;
            }
        }
        self.devices()
    }

    fn devices(&self) -> Result<Vec<Device>, String> {
        let mut found = devices(&self.scratch.read("out"))?;
        found.sort_by(|one, other| (&one.id, &one.bytes).cmp(&(&other.id, &other.bytes)));
        Ok(found)
    }
}

fn judged(compiler: Compiler, words: &[&str], ran: &Ran) -> Result<(), String> {
    if ran.ok() { Ok(()) } else { Err(format!("{compiler:?} {}: {}", words.join(" "), ran.brief())) }
}

/// The number of code objects, if all of them are clang's.
fn compare(bench: &Bench, cell: &Cell) -> Result<usize, String> {
    let clang = bench.clang(cell.version).ok_or("no such clang")?;
    let build = Build::new(bench, clang, cell);
    // Clang 24 itself fails to link an archive whose units have code for a generic target beside others.
    let Ok(clangs) = build.build(false) else { return Ok(0) };
    let ours = build.build(true)?;
    let ids = |list: &[Device]| list.iter().filter_map(|device| device.id.clone()).collect::<Vec<_>>();
    if ids(&ours) != ids(&clangs) {
        return Err(format!("{:?}, clang has {:?}", ids(&ours), ids(&clangs)));
    }
    match ours.iter().zip(&clangs).find(|(one, other)| one.bytes != other.bytes) {
        Some((one, _)) => Err(format!("the code object for {} is not clang's", one.target())),
        None => Ok(ours.len()),
    }
}

/// One cell in 61: a number that shares no factor with forms, compilers and kinds of code, so that each pair of them occurs.
const STRIDE: usize = 61;

#[test]
fn every_form_of_a_coalesced_build_is_clangs() {
    let Some(bench) = Bench::ready("coalesced forms") else { return };
    let cells = slice("coalesced forms", cells(&bench), |number, _| number % STRIDE == 0);
    let results = parallel(&cells, |cell| compare(&bench, cell));
    let objects: usize = results.iter().flatten().sum();
    let failing = results.iter().filter(|result| **result == Ok(0)).count();
    let compared = cells.len() - failing;
    say(&format!(
        "coalesced forms: {objects} code objects of {compared} builds equal clang's; clang fails in {failing}"
    ));
    assert!(failing * 8 <= cells.len(), "clang itself fails in {failing} of {} builds", cells.len());
    let wrong =
        cells.iter().zip(&results).filter_map(|(cell, result)| Some(format!("{cell:?}: {}", result.as_ref().err()?)));
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{} of {} builds:\n{}", wrong.len(), cells.len(), wrong.join("\n"));
}
