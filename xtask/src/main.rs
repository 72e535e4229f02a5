//! Development tasks: `cargo xtask TASK`. Everything a fresh machine needs starts here.
//!
//! Invariants: A task prints each command that it runs. It works without a terminal and without standard input. Nothing
//! outside the target directory and HotSwap's cache directory is changed, except that long tasks and `test` install the few Debian
//! packages that they name where root starts them.
//!
//! Absent on purpose: knowledge about code objects and bundles (the crates and their tests have it).

mod additions;
mod architecture;
mod archives;
mod arrows;
mod bench;
mod bench_fat;
mod bench_files;
mod bench_many;
mod bench_page;
mod bench_peers;
mod bench_project;
mod bench_rewrite;
mod book;
mod browser;
mod built;
mod c_compiler;
mod c_library;
mod console;
mod corpus;
mod demo;
mod disk;
mod dist;
mod doc_pages;
mod documents;
mod example_commits;
mod exhaustive;
mod extras;
mod fresh;
mod fuzz;
mod fuzz_targets;
mod generics;
mod hip_tests;
mod ignored_reads;
mod install;
mod isa;
mod isa_bench;
mod isa_exam;
mod isa_fuzz;
mod isa_source;
mod libdir;
mod library;
mod licences;
mod llvm_tests;
mod measure;
mod minimum;
mod new_family;
mod outcome;
mod packages;
mod paths;
mod preflight;
mod programs;
mod progress;
mod projects;
mod prove;
mod readme;
mod recipe;
mod registry;
mod remote;
mod remove;
mod rewrite_exam;
mod rights;
mod rocm;
mod run;
mod session;
mod setup;
mod sources;
mod stack;
mod started_programs;
mod steppings;
mod style_figures;
mod summary;
mod survey;
mod symbols;
mod test;
mod tidy;
mod timer;
mod unpack;
mod userland;
mod walk;
mod warm_exam;
mod xz;

use outcome::Outcome;
use std::process::ExitCode;

/// One task of the command line.
struct Task {
    name: &'static str,
    help: &'static str,
    /// Gets the arguments after the task's name, preceded by a program name for the parser.
    run: fn(Vec<String>) -> Outcome,
}

#[rustfmt::skip]
const TASKS: &[Task] = &[
    Task { name: "setup", help: "find a usable ROCm, or build one in the cache directory (--remove deletes it)", run: setup::main },
    Task { name: "demo", help: "set up what is missing, build an example for GPUs it was not compiled for, show it", run: demo::main },
    Task { name: "install", help: "build HotSwap and install it: install --prefix DIRECTORY", run: install::main },
    Task { name: "dist", help: "make packages: a tarball and Debian packages (--try installs them in a Debian root)", run: dist::main },
    Task { name: "test", help: "set up what is missing and run every check and test", run: test::main },
    Task { name: "tidy", help: "check the rules of the house: arrows between crates, lengths, headers", run: tidy::main },
    Task { name: "measure", help: "print figures of the source text: sizes, names, words, circles", run: measure::main },
    Task { name: "bench", help: "measure what HotSwap costs, side by side with doing without it", run: bench::main },
    Task { name: "corpus", help: "treat the files of packages and wheels, and write docs/evidence/corpus.md", run: corpus::main },
    Task { name: "fuzz", help: "fuzz all readers of foreign bytes (--list: targets and their hours)", run: fuzz::main },
    Task { name: "readme", help: "do what README.md and docs say and compare (--bless writes what came out)", run: readme::main },
    Task { name: "book", help: "make a book of the pages below docs, and check its links", run: book::main },
    Task { name: "isa", help: "the rows of the instruction set: fetch LLVM's sources, import, check", run: isa::main },
    Task { name: "rewrite", help: "judge code that is made for another stepping: rewrite exam", run: rewrite_exam::main },
    Task { name: "steppings", help: "what LLVM 24 does otherwise for the processors of each pair, write docs/evidence/steppings.md", run: steppings::main },
    Task { name: "prove", help: "evidence by execution: rewrites, planted faults, proofs, generated programs; writes docs/evidence/execution.md", run: prove::main },
    Task { name: "projects", help: "build parts of real HIP projects by clang and through HotSwap, write docs/evidence/projects.md", run: projects::main },
    Task { name: "remote", help: "compile on a Remote Execution engine without network, and compare the bytes", run: remote::main },
    Task { name: "stack", help: "judge and measure served libraries of Debian: stack exam, stack cost", run: stack::main },
    Task { name: "symbols", help: "tables of device functions: symbols exam | bench | times, write docs/evidence/device-exam.md", run: symbols::main },
    Task { name: "new-family", help: "write the skeleton of a patch family: file, line of patches.def, case", run: new_family::main },
    Task { name: "additions", help: "add a GPU, an option, a container, a family in a copy, leave out each part, write docs/evidence/additions.md", run: additions::main },
    Task { name: "generics", help: "make generic targets for libraries of Debian's, write docs/evidence/generics.md", run: generics::main },
    Task { name: "llvm-tests", help: "run LLVM's tests of clang's driver with hotswap-clang, write docs/evidence/llvm-tests.md", run: llvm_tests::main },
    Task { name: "warm-headers", help: "compile sources of other projects with warm headers, write docs/evidence/warm-headers.md", run: warm_exam::main },
    Task { name: "hip-tests", help: "run AMD's hip-tests on emulated GPUs, write docs/evidence/hip-tests.md", run: hip_tests::main },
    Task { name: "survey", help: "judge retargeting of libraries of Debian and PyPI, write docs/evidence/names-survey.md", run: survey::main },
    Task { name: "fresh", help: "the README's commands on bare machines, one row each in docs/evidence/fresh.md (--list)", run: fresh::main },
    Task { name: "shell", help: "run a command, or a shell, inside the userland", run: session::main },
];

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_default();
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        return usage(&name);
    };
    let mut words: Vec<String> = words.collect();
    words.insert(0, format!("cargo xtask {name}"));
    match (task.run)(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask {name}: error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn usage(name: &str) -> ExitCode {
    println!("Usage: cargo xtask TASK [OPTIONS]\n\nTasks:");
    for task in TASKS {
        println!("  {:10} {}", task.name, task.help);
    }
    println!("\n`cargo xtask TASK --help` lists a task's options.");
    if matches!(name, "" | "help" | "-h" | "--help") {
        return ExitCode::SUCCESS;
    }
    eprintln!("xtask: error: there is no task `{name}`");
    ExitCode::from(2)
}

/// The names of all tasks, for the check of the README.
fn task_names() -> impl Iterator<Item = &'static str> {
    TASKS.iter().map(|task| task.name)
}
