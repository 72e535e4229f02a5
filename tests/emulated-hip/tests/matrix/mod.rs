//! The axes of the matrix as tables, and the bench that runs a cell.

use hotswap_emulated_hip::{EmulationBench, ProgramRun};
use rmpv::Value;
use std::fmt;

/// The GPUs that the library is built for.
pub(crate) const GPUS: [&str; 2] = ["gfx1030", "gfx1100"];
/// The GPU that is served by code for the first of them.
const SERVED: &str = "gfx1031";
const DATA: &str = "lib/rocblas/library";
/// The output of the program.
const RESULT: &str = "66\n";

/// The places of data files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// All in one directory.
    Flat,
    /// A directory for each GPU.
    PerGpu,
    /// Links to files in a store, whose names say nothing.
    Linked,
}

pub(crate) const LAYOUTS: &[Layout] = &[Layout::Flat, Layout::PerGpu, Layout::Linked];

/// A package, or a directory.
#[derive(Debug)]
pub(crate) struct Form {
    /// The end of its name; empty for a directory.
    pub(crate) end: &'static str,
    file: &'static str,
    /// The file that `serve` makes of it.
    served: &'static str,
}

pub(crate) const FORMS: &[Form] = &[
    Form { end: "", file: "tree", served: "" },
    Form { end: ".tar.gz", file: "pkg.tar.gz", served: "pkg.tar.gz" },
    Form { end: ".pkg.tar.zst", file: "pkg-1-1-x86_64.pkg.tar.zst", served: "pkg-1-1-x86_64.pkg.tar.zst" },
    Form { end: ".deb", file: "pkg_1.0_amd64.deb", served: "pkg_1.0_amd64.deb" },
    Form { end: ".whl", file: "pkg-1.0-py3-none-any.whl", served: "pkg-1.0-0hotswap-py3-none-any.whl" },
    Form { end: ".conda", file: "pkg-1.0-0.conda", served: "pkg-1.0-0.conda" },
];

/// The result of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// A new package or directory, in which these GPUs work, and these do not.
    Works { kept: &'static [&'static str], gone: &'static [&'static str] },
    /// A refusal with this exit code and text; the input stays as it is.
    Refused { code: i32, text: &'static str },
}

/// The way in which the program sees the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the place of the input.
    Itself,
    /// Beside it, with the environment of `env.sh`; in packages by the library of shown names.
    Served,
    /// The input itself, after the destination was removed.
    Undone,
}

/// A command; `IN` and `OUT` are its files, `&&` begins a further step, `END` is the end of the names of its files.
#[derive(Debug)]
pub(crate) struct MatrixCommand {
    pub(crate) name: &'static str,
    words: &'static str,
    place: Place,
    of_directory: Expected,
    of_package: Expected,
}

const fn both(name: &'static str, words: &'static str, place: Place, expected: Expected) -> MatrixCommand {
    MatrixCommand { name, words, place, of_directory: expected, of_package: expected }
}

const fn works(kept: &'static [&'static str], gone: &'static [&'static str]) -> Expected {
    Expected::Works { kept, gone }
}

const fn refused(code: i32, text: &'static str) -> Expected {
    Expected::Refused { code, text }
}

const ONE_FILE: Expected = refused(2, "for the containers of one file");

#[rustfmt::skip]
pub(crate) const COMMANDS: &[MatrixCommand] = &[
    both("prune --keep", "prune IN --keep gfx1030 -o OUT", Place::Itself, works(&["gfx1030"], &["gfx1100"])),
    both("prune --keep the other", "prune IN --keep gfx1100 -o OUT", Place::Itself, works(&["gfx1100"], &["gfx1030"])),
    both("prune --drop", "prune IN --drop gfx1030 -o OUT", Place::Itself, works(&["gfx1100"], &["gfx1030"])),
    both("prune --drop a generic target", "prune IN --drop gfx10-3-generic -o OUT", Place::Itself, refused(13, "gfx1030 would lose")),
    both("compress", "compress IN -o OUT", Place::Itself, works(&GPUS, &[])),
    both("decompress", "decompress IN -o OUT", Place::Itself, works(&GPUS, &[])),
    both("remove", "remove IN gfx1100 -o OUT", Place::Itself, ONE_FILE),
    both("add", "add IN gfx1101=code-gfx1100.o -o OUT", Place::Itself, ONE_FILE),
    both("replace", "replace IN gfx1030=code-gfx1030.o -o OUT", Place::Itself, ONE_FILE),
    both("split and merge", "split IN -o part-{gpu}END && merge part-gfx1030END part-gfx1100END -o OUT", Place::Itself, works(&GPUS, &[])),
    MatrixCommand {
        name: "retarget", words: "retarget IN --to gfx1101 --policy warn --allow-experimental -o OUT", place: Place::Itself,
        of_directory: refused(14, "directory"), of_package: works(&GPUS, &[]),
    },
    both("serve", "serve gfx1031 IN --from gfx1030 --dest OUT", Place::Served, works(&[SERVED], &[])),
    both("serve --keep", "serve gfx1031 IN --from gfx1030 --keep gfx1100 --dest OUT", Place::Served, works(&[SERVED], &[])),
    both("serve --names own", "serve gfx1031 IN --from gfx1030 --names own --dest OUT", Place::Served, works(&[SERVED], &[])),
    both("serve and undo", "serve gfx1031 IN --from gfx1030 --dest OUT", Place::Undone, works(&GPUS, &[SERVED])),
];

/// One cell of the matrix.
pub(crate) struct Cell {
    pub(crate) command: &'static MatrixCommand,
    pub(crate) layout: Layout,
    pub(crate) form: &'static Form,
}

impl fmt::Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} of {:?} {}", self.command.name, self.layout, self.form.file)
    }
}

impl Cell {
    /// The table's result, but for what a form cannot say.
    pub(crate) fn expected(&self) -> Expected {
        // A shown name needs a file in the place of the link, and Arch's list of files would call it a link.
        let is_shown = self.command.place == Place::Served && !self.command.words.contains("--names own");
        let is_merged = self.command.words.contains("merge") && self.layout == Layout::Linked;
        match self.form.end {
            ".pkg.tar.zst" | ".conda" if is_merged => refused(13, "cannot get further links"),
            ".pkg.tar.zst" if is_shown && self.layout == Layout::Linked => refused(13, "a link becomes a file"),
            "" => self.command.of_directory,
            _ => self.command.of_package,
        }
    }

    /// The command with the fewest cells, of which the default part has one.
    pub(crate) fn is_first_undo(&self) -> bool {
        self.command.place == Place::Undone && self.layout == Layout::Flat
    }
}

/// All cells that mean something: an undo is of a directory, and a wheel has no links.
pub(crate) fn all_cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for command in COMMANDS {
        for layout in LAYOUTS.iter().copied() {
            for form in FORMS {
                let is_undo_of_package = command.place == Place::Undone && !form.end.is_empty();
                let has_no_links = layout == Layout::Linked && form.end == ".whl";
                if !is_undo_of_package && !has_no_links {
                    cells.push(Cell { command, layout, form });
                }
            }
        }
    }
    cells
}

/// A scratch directory with the built files in `tree-Flat` and so on.
pub(crate) struct MatrixBench {
    bench: EmulationBench,
    hotswap: String,
    names: String,
}

impl MatrixBench {
    /// `None` without a userland, after printing the reason.
    pub(crate) fn new(test: &str) -> Option<Self> {
        let bench = EmulationBench::new(test)?;
        let (hotswap, names) = (bench.hotswap(test)?, bench.names_library(test)?);
        // Where the command is not installed, the library has its place beside it nevertheless.
        bench.work.run("mkdir -p lib/hotswap; test ! -e libhotswap-names.so || cp libhotswap-names.so lib/hotswap/");
        let made = Self { bench, hotswap, names };
        made.build();
        for layout in LAYOUTS {
            made.lay_out(*layout);
        }
        Some(made)
    }

    fn build(&self) {
        let work = &self.bench.work;
        work.write("pack.py", include_bytes!("../../cases/matrix/pack.py"));
        work.write("program.cpp", include_bytes!("../../cases/matrix/program.cpp"));
        self.bench.compile("own.o", include_str!("../../cases/matrix/library.hip"), &GPUS, "-fPIC -c");
        let generic = include_str!("../../cases/matrix/generic.hip");
        self.bench.compile("generic.o", generic, &["gfx10-3-generic", "gfx1100"], "-fPIC -c");
        work.run("mkdir -p base/bin base/lib");
        work.run(
            "clang++-22 -shared own.o generic.o -o base/lib/librocblas.so.5 -Wl,-soname,librocblas.so.5 -lamdhip64",
        );
        work.run(
            "clang++-22 -w -D__HIP_PLATFORM_AMD__ program.cpp -o base/bin/program base/lib/librocblas.so.5 \
             -Wl,--enable-new-dtags,-rpath,'$ORIGIN/../lib' -lamdhip64",
        );
        work.write("files.hip", include_bytes!("../../cases/matrix/files.hip"));
        for gpu in GPUS {
            work.run(&format!(
                "clang++-22 -O1 -w -x hip --offload-device-only --no-gpu-bundle-output --offload-arch={gpu} files.hip -o code-{gpu}.o
                 clang-offload-bundler-22 -type=o -bundle-align=4096 -compress -input=/dev/null -input=code-{gpu}.o -output=code-{gpu}.co \
                 -targets=host-x86_64-unknown-linux-gnu-,hipv4-amdgcn-amd-amdhsa--{gpu}"
            ));
        }
    }

    /// Makes the tree of a layout.
    fn lay_out(&self, layout: Layout) {
        let tree = format!("tree-{layout:?}");
        let work = &self.bench.work;
        work.run(&format!("cp -a base {tree}"));
        for gpu in GPUS {
            let directory = match layout {
                Layout::PerGpu => format!("{tree}/{DATA}/{gpu}"),
                Layout::Flat | Layout::Linked => format!("{tree}/{DATA}"),
            };
            work.run(&format!("mkdir -p {directory}"));
            let tuned = format!("TensileLibrary_a_{gpu}");
            work.write(&format!("{directory}/TensileLibrary_lazy_{gpu}.dat"), &lazy_index(gpu, &tuned));
            work.write(&format!("{directory}/{tuned}.dat"), &solutions(false));
            work.write(&format!("{directory}/TensileLibrary_b_fallback.dat"), &solutions(true));
            work.run(&format!(
                "cp code-{gpu}.co {directory}/{tuned}.co
                 cp code-{gpu}.o {directory}/TensileLibrary_b_fallback_{gpu}.hsaco
                 cp code-{gpu}.o {directory}/Kernels.so-000-{gpu}.hsaco"
            ));
        }
        if layout == Layout::Linked {
            work.run(&format!(
                "mkdir {tree}/store; cd {tree}/{DATA}; number=0
                 for file in *; do mv $file ../../../store/$number; ln -s ../../../store/$number $file; number=$((number + 1)); done"
            ));
        }
    }

    /// Runs the steps of a command, up to the first that fails.
    fn hotswap(&self, words: &str) -> ProgramRun {
        let mut steps: Vec<&str> = words.split(" && ").collect();
        let last = steps.pop().unwrap_or_default();
        let before: String = steps.iter().map(|step| format!("{} {step} || exit\n", self.hotswap)).collect();
        self.bench.script(&before, &format!("{} {last}", self.hotswap))
    }

    fn run_program(&self, before: &str, program: &str, gpu: &str) -> ProgramRun {
        self.bench.script(before, &format!("{} run --gpu {gpu} -- {program}", self.hotswap))
    }

    /// # Errors
    /// The fault.
    pub(crate) fn run_cell(&self, cell: &Cell) -> Result<(), String> {
        let Cell { command, layout, form } = cell;
        let work = &self.bench.work;
        work.run(&format!("rm -rf tree out* part* pkg* deb; cp -a tree-{layout:?} tree"));
        let is_package = !form.end.is_empty();
        if is_package {
            work.run(&format!("python3 pack.py make {}", form.file));
        }
        let is_served = command.words.starts_with("serve");
        let output = if is_package && !is_served { format!("out{}", form.end) } else { "out".to_owned() };
        let input = if is_served && !is_package { "--root tree" } else { form.file };
        let words = command.words.replace("IN", input).replace("OUT", &output).replace("END", form.end);
        let ran = self.hotswap(&words);
        match cell.expected() {
            Expected::Refused { code, text } => {
                let is_so = ran.code == Some(code) && ran.error.contains(text);
                let is_left = work.shell(&format!("test -e {output}")).status.success();
                expect(is_so && !is_left, || format!("ended with {:?}: {}", ran.code, ran.error))
            }
            Expected::Works { kept, gone } => {
                expect(ran.code == Some(0), || format!("ended with {:?}: {}", ran.code, ran.error))?;
                let before = self.open_result(cell, &output)?;
                let program = if matches!(command.place, Place::Itself) || is_package {
                    "./opened/bin/program"
                } else {
                    "./tree/bin/program"
                };
                kept.iter().try_for_each(|gpu| {
                    let run = self.run_program(&before, program, gpu);
                    expect(run.code == Some(0) && run.output == RESULT, || {
                        format!("{gpu} computes {:?}, code {:?}: {}", run.output, run.code, run.error)
                    })
                })?;
                gone.iter().try_for_each(|gpu| {
                    let run = self.run_program(&before, program, gpu);
                    expect(run.code != Some(0), || format!("{gpu} still works"))
                })
            }
        }
    }

    /// Puts the result where the program finds it; the lines to run before the program.
    fn open_result(&self, cell: &Cell, output: &str) -> Result<String, String> {
        let work = &self.bench.work;
        let (command, form) = (cell.command, cell.form);
        match (command.place, form.end.is_empty()) {
            (Place::Itself, true) => drop(work.run(&format!("rm -rf opened; mv {output} opened"))),
            (Place::Itself, false) => drop(work.run(&format!("python3 pack.py unpack {output} opened"))),
            (Place::Served, true) => {
                let checked = self.hotswap("serve --check --dest out");
                expect(checked.code == Some(0), || format!("--check: {}", checked.error))?;
                return Ok(". ./out/env.sh\n".to_owned());
            }
            (Place::Served, false) => {
                work.run(&format!("python3 pack.py unpack out/{} opened", form.served));
                return Ok(format!("export LD_PRELOAD={}\n", self.names));
            }
            (Place::Undone, _) => {
                let undone = self.hotswap("serve --undo --dest out");
                let is_left = work.shell("test -e out").status.success();
                expect(undone.code == Some(0) && !is_left, || format!("--undo: {}", undone.error))?;
            }
        }
        Ok(String::new())
    }

    /// Merges the parts of a tree of which one was changed.
    ///
    /// # Errors
    /// Another end than a refusal that names the file.
    pub(crate) fn refuse_merge(&self, change: &str, name: &str) -> Result<(), String> {
        let work = &self.bench.work;
        work.run(&format!("rm -rf out part*; {} split tree-Flat -o 'part-{{gpu}}'", self.hotswap));
        work.run(&format!("cd part-gfx1100; {change}"));
        let ran = self.hotswap("merge part-gfx1030 part-gfx1100 -o out");
        let is_left = work.shell("test -e out").status.success();
        let is_named = ran.code == Some(13) && ran.error.contains("HS0452") && ran.error.contains(name);
        expect(is_named && !is_left, || format!("ended with {:?}: {}", ran.code, ran.error))
    }

    /// The files that the model names for the first GPU, but those that are optional.
    pub(crate) fn data_files(&self, layout: Layout) -> Vec<String> {
        let answer = self.hotswap(&format!("uses tree-{layout:?} --gpu gfx1030 --format json"));
        // Files of a store are listed by themselves, too, and those of the other GPU have nothing for this one.
        let answer: serde_json::Value = serde_json::from_str(&answer.output).expect("the answer is JSON");
        let rows = answer["trees"][0]["gpus"][0]["files"].as_array().expect("files are a list");
        let needed = rows.iter().filter(|row| row["optional"] == false);
        needed.map(|row| row["file"].as_str().expect("a file is text").to_owned()).collect()
    }

    /// Takes a file away from the libraries and, in a second round, from the served tree.
    ///
    /// # Errors
    /// The look that said nothing.
    pub(crate) fn take_away(&self, layout: Layout, file: &str) -> Result<(), String> {
        let work = &self.bench.work;
        let name = file.rsplit('/').next().unwrap_or(file);
        work.run(&format!(
            "rm -rf tree out; cp -a tree-{layout:?} tree; {} serve gfx1031 --root tree --from gfx1030 --dest out",
            self.hotswap
        ));
        work.run(&format!("rm out/{file}"));
        let served = self.run_program(". ./out/env.sh\n", "./tree/bin/program", SERVED);
        expect(served.code != Some(0), || "the served program still works".to_owned())?;
        let checked = self.hotswap("serve --check --dest out");
        expect(checked.code != Some(0) && checked.error.contains(name), || format!("--check: {}", checked.error))?;
        work.run(&format!("rm -rf out; rm tree/{file}"));
        let alone = self.run_program("", "./tree/bin/program", "gfx1030");
        expect(alone.code != Some(0), || "the program still works".to_owned())?;
        let used = self.hotswap("uses tree --gpu gfx1030");
        expect(used.code != Some(0) && used.error.contains(name), || format!("uses: {}", used.error))?;
        let again = self.hotswap("serve gfx1031 --root tree --from gfx1030 --dest out");
        expect(again.error.contains(name), || format!("serve says nothing: {:?} {}", again.code, again.error))
    }
}

fn expect(is_so: bool, fault: impl FnOnce() -> String) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(fault()) }
}

fn map(entries: &[(&str, Value)]) -> Value {
    Value::Map(entries.iter().map(|(key, value)| ((*key).into(), value.clone())).collect())
}

fn node(kind: &str, value: Value) -> Value {
    map(&[("type", kind.into()), ("value", value)])
}

fn row(predicate: Value, index: &str) -> Value {
    map(&[("predicate", predicate), ("library", node("Placeholder", index.into()))])
}

fn encoded(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, value).expect("memory takes all bytes");
    bytes
}

/// An index that names one for the processor, and one for all.
fn lazy_index(gpu: &str, tuned: &str) -> Vec<u8> {
    let own = node("AMDGPU", node("Processor", gpu.into()));
    let rows = vec![row(own, tuned), row(map(&[("type", "TruePred".into())]), "TensileLibrary_b_fallback")];
    let library = map(&[("type", "Hardware".into()), ("rows", Value::Array(rows))]);
    encoded(&map(&[("solutions", Value::Array(Vec::new())), ("library", library)]))
}

/// An index of one solution, in assembly or in HIP.
fn solutions(is_source: bool) -> Vec<u8> {
    let code = map(&[("sourceKernel", is_source.into())]);
    let solution = map(&[("name", "Cijk".into()), ("index", 7.into()), ("sizeMapping", code)]);
    let library = map(&[("type", "Single".into()), ("index", 7.into())]);
    encoded(&map(&[("solutions", Value::Array(vec![solution])), ("library", library)]))
}
