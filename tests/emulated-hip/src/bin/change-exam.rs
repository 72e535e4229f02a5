//! The exam of commands that change files, with a distribution's libraries: each library computes a known answer on emulated GPUs
//! before and after each command. The answers are those of `hotswap serve --try`, compared with plain code on the CPU.
//!
//! The arguments are the directories of the packages (`usr` of each). `HOTSWAP_TEST_ROOT` names the userland. Prints a
//! table, and fails where a cell does. `CHANGE_EXAM_ONLY` chooses cells by a part of their titles: `rocBLAS serve`.
//!
//! Invariants: a kept GPU computes the answer, also before the change; a GPU that was taken away computes none, so an answer
//! cannot come from anything but the changed file. A command that refuses is a fault, unless the table of libraries names its code.
//!
//! Absent on purpose: MIOpen and rocFFT, which compile their kernels for any GPU while the program runs.

use hotswap_emulated_hip::EmulationBench;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// A library, and two GPUs that it has code for.
struct Library {
    name: &'static str,
    packages: &'static [&'static str],
    file: &'static str,
    gpus: [&'static str; 2],
    /// A GPU that the first of both can serve.
    served: &'static str,
    /// Whether the host part chooses kernels by a table of names, so that [`Change::refusal`] is right.
    chooses_by_name: bool,
}

/// A command that changes the tree.
struct Change {
    name: &'static str,
    steps: &'static str,
    kept: Kept,
    /// The environment in which the changed library is opened.
    opened: OpenedIn,
    /// The code by which a library that chooses kernels by name is refused.
    refusal: Option<&'static str>,
}

/// Where the steps of a change leave the library, and the environment that it needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenedIn {
    /// In `opened`.
    Plain,
    /// In `opened`, with the library of names preloaded.
    Preloaded,
    /// In `out`, with the variables of its `env.sh`.
    ServedTree,
}

/// The GPUs that compute after a change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Both,
    First,
    Second,
    /// The served one, which computes nothing without the change.
    Served,
}

/// A change whose result needs no environment, and that no library refuses.
const fn change(name: &'static str, kept: Kept, steps: &'static str) -> Change {
    Change { name, steps, kept, opened: OpenedIn::Plain, refusal: None }
}

const fn serve(name: &'static str, opened: OpenedIn, steps: &'static str) -> Change {
    Change { opened, ..change(name, Kept::Served, steps) }
}

#[rustfmt::skip]
const LIBRARIES: &[Library] = &[
    Library {
        name: "rocBLAS", packages: &["librocblas5", "libroctx64-4"], file: "librocblas.so.5",
        gpus: ["gfx1030", "gfx1100"], served: "gfx1031", chooses_by_name: false,
    },
    Library {
        name: "hipBLASLt", packages: &["libhipblaslt1", "libroctx64-4"], file: "libhipblaslt.so.1",
        gpus: ["gfx1102", "gfx1151"], served: "gfx1103", chooses_by_name: false,
    },
    Library {
        name: "rocSPARSE", packages: &["librocsparse1", "libroctx64-4"], file: "librocsparse.so.1",
        gpus: ["gfx1030", "gfx1100"], served: "gfx1031", chooses_by_name: true,
    },
    Library {
        name: "rocSOLVER", packages: &["librocsolver0", "librocblas5", "librocsparse1", "libroctx64-4"], file: "librocsolver.so.0",
        gpus: ["gfx1030", "gfx1100"], served: "gfx1031", chooses_by_name: true,
    },
    Library {
        name: "rocRAND", packages: &["librocrand1"], file: "librocrand.so.1",
        gpus: ["gfx1030", "gfx1100"], served: "gfx1031", chooses_by_name: true,
    },
];

#[rustfmt::skip]
const CHANGES: &[Change] = &[
    change("none", Kept::Both, "cp -a tree opened"),
    change("prune --keep", Kept::First, "hotswap prune tree --keep FIRST -o opened"),
    change("prune --drop", Kept::Second, "hotswap prune tree --drop FIRST -o opened"),
    change(
        "prune of a Debian package", Kept::Second,
        "python3 pack.py make pkg_1.0_amd64.deb; hotswap prune pkg_1.0_amd64.deb --keep SECOND -o out.deb; python3 pack.py unpack out.deb opened",
    ),
    change(
        "prune of a wheel", Kept::First,
        "python3 pack.py make pkg-1.0-py3-none-any.whl; hotswap prune pkg-1.0-py3-none-any.whl --keep FIRST -o pkg-1.0-1-py3-none-any.whl
         python3 pack.py unpack pkg-1.0-1-py3-none-any.whl opened",
    ),
    // Some are compressed as Debian has them.
    change("compress", Kept::Both, "hotswap decompress tree --allow-unchanged -o plain; hotswap compress plain -o opened"),
    change(
        "decompress", Kept::Both,
        "hotswap decompress tree --allow-unchanged -o plain; hotswap compress plain -o packed; hotswap decompress packed -o opened",
    ),
    change("split and merge", Kept::Both, "hotswap split tree -o 'part-{gpu}'; hotswap merge part-FIRST part-SECOND -o opened"),
    serve(
        "serve", OpenedIn::ServedTree,
        "hotswap serve SERVED --root tree --from FIRST --dest out; hotswap serve --check --dest out",
    ),
    Change {
        refusal: Some("HS0414"),
        ..serve(
            "serve --names own", OpenedIn::ServedTree,
            "hotswap serve SERVED --root tree --from FIRST --names own --dest out; hotswap serve --check --dest out",
        )
    },
    serve(
        "serve of a Debian package", OpenedIn::Preloaded,
        "python3 pack.py make pkg_1.0_amd64.deb; hotswap serve SERVED pkg_1.0_amd64.deb --from FIRST --dest out; python3 pack.py unpack out/pkg_1.0_amd64.deb opened",
    ),
];

/// Copies libraries and the data files of two GPUs, and of those that all share, into `tree/lib`.
const COPY: &str = r#"cd "$0/lib/x86_64-linux-gnu" && mkdir -p "$1" && find . \( -path '*/library/*' \
    ! -name "*$2*" ! -name "*$3*" ! -name '*fallback.dat' ! -name 'hipblaslt*' ! -name 'Tensile*Mapping.dat' \) -prune -o \
    \( -path '*/library/*' -o -name '*.so*' \) ! -type d -print0 | tar -cf - --null -T - | tar -xf - -C "$1""#;

const REMOVE: &str = "rm -rf opened plain packed out out.deb pkg_1.0_amd64.deb pkg-1.0* part-*";

fn main() -> ExitCode {
    let packages: Vec<PathBuf> = std::env::args().skip(1).map(Into::into).collect();
    let only = std::env::var("CHANGE_EXAM_ONLY").unwrap_or_default();
    println!("| library | {} |", CHANGES.iter().map(|change| change.name).collect::<Vec<_>>().join(" | "));
    println!("|{}", " --- |".repeat(CHANGES.len() + 1));
    let mut faults = 0;
    for library in LIBRARIES {
        let is_chosen = |change: &Change| format!("{} {}", library.name, change.name).contains(&only);
        if !CHANGES.iter().any(is_chosen) {
            continue;
        }
        let Some(bench) = LibraryBench::new(library, &packages) else { return ExitCode::FAILURE };
        let mut row = format!("| {}", library.name);
        for change in CHANGES {
            let judgement = if is_chosen(change) { bench.judge_change(change) } else { Judgement::not_run() };
            row += &format!(" | {}", judgement.cell);
            faults += judgement.faults.len();
            judgement.faults.iter().for_each(|fault| eprintln!("{fault}"));
        }
        println!("{row} |");
    }
    if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A cell of the table, and what is wrong there.
struct Judgement {
    cell: String,
    faults: Vec<String>,
}

impl Judgement {
    fn not_run() -> Self {
        Self { cell: "not run".to_owned(), faults: Vec::new() }
    }
}

/// The end of a computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Right,
    /// Wrong values, an error, or a signal.
    NotRight,
    /// Neither: it did not end.
    TimedOut,
}

struct Computed {
    answer: Answer,
    said: String,
}

/// A library in a scratch directory, as `tree`, with the code of its two GPUs alone.
struct LibraryBench<'l> {
    library: &'l Library,
    bench: EmulationBench,
    hotswap: String,
    names: String,
}

impl<'l> LibraryBench<'l> {
    fn new(library: &'l Library, packages: &[PathBuf]) -> Option<Self> {
        let bench = EmulationBench::new("change-exam")?;
        let (hotswap, names) = (bench.hotswap("change-exam")?, bench.names_library("change-exam")?);
        // Where `serve` looks for it: beside the library that emulates GPUs.
        bench.work.run("cp libhotswap-names.so lib/hotswap/");
        for name in library.packages {
            copy_package(packages, name, &bench.work.path("whole/lib"), library.gpus);
        }
        bench.work.write("pack.py", include_bytes!("../../cases/matrix/pack.py"));
        let made = Self { library, bench, hotswap, names };
        let [first, second] = library.gpus;
        made.bench
            .work
            .run(&made.expand_steps(&format!("hotswap prune whole --keep {first},{second} -o tree; rm -rf whole")));
        Some(made)
    }

    /// A shell's lines with the command's path and the GPUs in them.
    fn expand_steps(&self, steps: &str) -> String {
        let [first, second] = self.library.gpus;
        let steps = steps.replace("FIRST", first).replace("SECOND", second).replace("SERVED", self.library.served);
        format!("set -e\nhotswap() {{ {} \"$@\"; }}\n{steps}", self.hotswap)
    }

    fn judge_change(&self, change: &Change) -> Judgement {
        self.bench.work.run(REMOVE);
        let refusal = change.refusal.filter(|_| self.library.chooses_by_name);
        let changed = self.bench.work.shell(&self.expand_steps(change.steps));
        let said = String::from_utf8_lossy(&changed.stderr).into_owned();
        let title = format!("{}, {}", self.library.name, change.name);
        let faults = match refusal {
            Some(code) if !changed.status.success() && said.contains(code) => {
                return Judgement { cell: format!("refused ({code})"), faults: Vec::new() };
            }
            Some(code) => vec![format!("{title}: not refused with {code}: {said}")],
            None if !changed.status.success() => vec![format!("{title}: {said}")],
            None => self.judge_gpus(change, &title),
        };
        let cell = if faults.is_empty() { "right" } else { "**wrong**" };
        Judgement { cell: cell.to_owned(), faults }
    }

    /// Lets each GPU compute; returns those that do what they should not.
    fn judge_gpus(&self, change: &Change, title: &str) -> Vec<String> {
        let [first, second] = self.library.gpus;
        let (kept, gone): (&[&str], &[&str]) = match change.kept {
            Kept::Both => (&[first, second], &[self.library.served]),
            Kept::First => (&[first], &[second]),
            Kept::Second => (&[second], &[first]),
            Kept::Served => (&[self.library.served], &[]),
        };
        let mut faults = Vec::new();
        for gpu in kept.iter().chain(gone) {
            let expected = if kept.contains(gpu) { Answer::Right } else { Answer::NotRight };
            let computed = self.compute_answer(change.opened, gpu);
            if computed.answer != expected {
                faults.push(format!("{title}: {gpu}: {:?}: {}", computed.answer, computed.said));
            }
        }
        faults
    }

    /// The library's answer on a GPU.
    fn compute_answer(&self, opened: OpenedIn, gpu: &str) -> Computed {
        let work = &self.bench.work;
        let tree = if opened == OpenedIn::ServedTree { "out" } else { "opened" };
        let environment = match opened {
            OpenedIn::Plain => String::new(),
            OpenedIn::Preloaded => format!("export LD_PRELOAD={}", self.names),
            OpenedIn::ServedTree => ". ./out/env.sh".to_owned(),
        };
        let found = work.run(&format!("find {tree} -name '{}' | head -n 1", self.library.file));
        let file = Path::new(found.trim());
        let directory = file.parent().unwrap_or(Path::new("")).display();
        // Libraries without device code are not served.
        let before = format!("{environment}\nexport LD_LIBRARY_PATH=$PWD/{directory}:$LD_LIBRARY_PATH:$PWD/tree/lib\n");
        let command = format!("{0} run --gpu {gpu} -- {0} serve --probe {1}", self.hotswap, file.display());
        let run = work.shell(&format!("{before}exec timeout -k 5 600 {command}"));
        let output = String::from_utf8_lossy(&run.stdout);
        let answer = match run.status.code() {
            Some(0) if output.contains("\"compared\":") => Answer::Right,
            Some(124 | 137) => Answer::TimedOut,
            _ => Answer::NotRight,
        };
        Computed { answer, said: format!("{} {output}{}", run.status, String::from_utf8_lossy(&run.stderr)) }
    }
}

fn copy_package(packages: &[PathBuf], name: &str, to: &Path, [first, second]: [&str; 2]) {
    let package = packages.iter().find(|path| is_package(path, name));
    let package = package.unwrap_or_else(|| panic!("no directory of {name} is named"));
    let mut copy = Command::new("bash");
    copy.args(["-o", "pipefail", "-c", COPY]).arg(package).arg(to).args([first, second]);
    assert!(copy.status().is_ok_and(|status| status.success()), "{} cannot be copied", package.display());
}

fn is_package(directory: &Path, name: &str) -> bool {
    let prefix = format!("{name}-");
    directory.components().any(|part| part.as_os_str().to_string_lossy().starts_with(&prefix))
}
