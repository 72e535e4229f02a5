//! The task `stack`: a distribution's libraries. `exam` judges which kernels they start when they are served, `changes` what they
//! compute after each command that changes files, and `cost` measures what serving them takes beside copying them.
//!
//! By hand, not in CI: it downloads gigabytes. Each writes its table to a page, between marks.
//!
//! Invariants: the judge is `hotswap-stack-exam` of `tests/dispatch`; `cost` measures the same files for both commands,
//! from a warm page cache.

use crate::built::{Built, Profile};
use crate::outcome::{During, Outcome, fail};
use crate::packages::{self, Origin, Package, Packages};
use crate::recipe::Part;
use crate::session::Session;
use crate::{paths, remove, run};
use clap::{Parser, Subcommand};
use hotswap_userland::ENV_PREFIX;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Judges and measures served libraries of Debian.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Compares the kernels that the libraries start on their own GPU and, served, on others.
    Exam {
        /// Only the cases of libraries whose name contains this; nothing is written then
        only: Option<String>,
    },
    /// Lets the libraries compute on emulated GPUs before and after each command that changes files.
    Changes {
        /// Only the cells whose titles contain this (`rocBLAS serve`); nothing is written then
        only: Option<String>,
    },
    /// Measures time and memory of serving the libraries, and the time of copying them.
    Cost {
        /// The command to measure [default: built now, as users get it]
        #[arg(long)]
        hotswap: Option<PathBuf>,
    },
}

const PAGE: &str = "docs/evidence/serve-exam.md";
const PAGE_OF_CHANGES: &str = "docs/evidence/uses.md";

const fn experimental(name: &'static str) -> Package {
    Package { name, origin: Origin::Experimental }
}

const fn sid(name: &'static str) -> Package {
    Package { name, origin: Origin::Sid }
}

const LIBRARIES: &[Package] = &[
    experimental("librocblas5"),
    experimental("libhipblaslt1"),
    experimental("libhipsparselt0"),
    experimental("librocsparse1"),
    experimental("librocsolver0"),
    experimental("librocrand1"),
    experimental("librocfft0"),
    experimental("librccl1"),
    sid("migraphx-tools"),
    sid("libmagma2-rocm"),
    experimental("librpp2-hip"),
    experimental("libmiopen1"),
    experimental("libmiopen-tests-data"),
];

/// The headers and libraries that programs of the exam need besides.
const NEEDED: &[Package] = &[
    experimental("librocsparse-dev"),
    experimental("libhipblaslt-dev"),
    experimental("libhipblas-common-dev"),
    experimental("libmiopen-dev"),
    experimental("libroctx64-4"),
    experimental("libhipblas3"),
    experimental("libhipfft0"),
    experimental("libhiprand1"),
    experimental("libhipsparse4"),
    sid("libboost-filesystem1.90.0"),
    sid("libboost-atomic1.90.0"),
    sid("librocm-smi64-1"),
    sid("libpython3.14-dev"),
];

/// Packages that are served as files.
const FILES: &[Package] = &[
    experimental("librocfft0"),
    Package { name: "cupy-rocm-7-0", origin: Origin::Wheel { version: "14.2.0", python: "3.14" } },
    Package { name: "onnxruntime-rocm", origin: Origin::Wheel { version: "1.22.2.post3", python: "3.14" } },
    Package { name: "numpy", origin: Origin::Wheel { version: "2.4.1", python: "3.14" } },
    Package { name: "triton", origin: Origin::Wheel { version: "3.9.0", python: "3.14" } },
];

pub(crate) fn main(words: Vec<String>) -> Outcome {
    match Options::parse_from(words).action {
        Action::Exam { only } => exam(only.as_deref()),
        Action::Changes { only } => run_change_exam(only.as_deref()),
        Action::Cost { hotswap } => cost(hotswap),
    }
}

/// The programs of a build.
fn programs(profile: Profile, words: &[&str]) -> Outcome<PathBuf> {
    let mut cargo = Command::new(paths::cargo());
    cargo.args(["build", "--profile", profile.name()]);
    let built = Built::new(cargo, words)?;
    let program = built.programs.iter().find(|path| path.file_name().is_some_and(|name| name == "hotswap"));
    let directory = program.and_then(|path| path.parent());
    directory.map_or_else(|| fail("cargo built no `hotswap`"), |directory| Ok(directory.to_owned()))
}

/// The `usr` directories of packages.
fn directories(list: &[Package]) -> Outcome<Vec<PathBuf>> {
    let packages = Packages::open()?;
    list.iter().map(|package| Ok(packages.get(package)?.directory.join("usr"))).collect()
}

fn exam(only: Option<&str>) -> Outcome {
    let directory = programs(Profile::Checked, &["--package", "hotswap", "--package", "hotswap-dispatch"])?;
    let session = Session::open(Part::Tests, &paths::scratch("prefix"), &paths::scratch("work"))?;
    let mut command = session.beside(directory.join("hotswap-stack-exam"));
    command.env_remove(ENV_PREFIX).env("STACK_EXAM_ONLY", only.unwrap_or_default());
    command.args(directories(LIBRARIES)?).args(directories(NEEDED)?);
    let packages = Packages::open()?;
    command.args(FILES.iter().map(|package| packages.file(package)).collect::<Outcome<Vec<_>>>()?);
    let text = printed_table(command)?;
    if only.is_none() { replace_table(PAGE, "exam", &text) } else { Ok(()) }
}

/// The programs of the exam of changes, and the libraries that emulate GPUs and show names.
const CHANGE_EXAM: &[&str] = &[
    "--package",
    "hotswap",
    "--package",
    "hotswap-emulated-hip",
    "--package",
    "hotswap-hsa-emulated",
    "--package",
    "hotswap-names",
];

fn run_change_exam(only: Option<&str>) -> Outcome {
    let directory = programs(Profile::Checked, CHANGE_EXAM)?;
    let session = Session::open(Part::Tests, &paths::scratch("prefix"), &paths::scratch("work"))?;
    let mut command = session.beside(directory.join("hotswap-change-exam"));
    command.env_remove(ENV_PREFIX).env("CHANGE_EXAM_ONLY", only.unwrap_or_default());
    command.args(directories(LIBRARIES)?).args(directories(NEEDED)?);
    let text = printed_table(command)?;
    if only.is_none() { replace_table(PAGE_OF_CHANGES, "changes", &text) } else { Ok(()) }
}

/// The output of an exam, which is shown line by line.
fn printed_table(mut command: Command) -> Outcome<String> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut text = String::new();
    for line in child.stdout.take().into_iter().flat_map(|pipe| BufReader::new(pipe).lines()) {
        let line = line?;
        println!("{line}");
        text += &(line + "\n");
    }
    if child.wait()?.success() { Ok(text) } else { fail("a case of the exam failed: see the table") }
}

/// One row: bytes, and what a command took.
struct Measured {
    seconds: f64,
    processor: f64,
    megabytes: f64,
}

fn cost(hotswap: Option<PathBuf>) -> Outcome {
    let hotswap = match hotswap {
        Some(path) => path,
        None => lay_out_command(&programs(Profile::Dist, &["--package", "hotswap", "--package", "hotswap-names"])?)?,
    };
    let scratch = paths::scratch("stack-cost");
    let mut text =
        "| package | bytes | `cp -a` | `hotswap serve gfx1031` | processor time | memory | written |\n".to_owned();
    text += &format!("|{}\n", " --- |".repeat(7));
    print!("{text}");
    let directories = directories(LIBRARIES)?;
    for (package, directory) in LIBRARIES.iter().zip(&directories) {
        text += &row(&hotswap, package.name, std::slice::from_ref(directory), &scratch)?;
    }
    text += &row(&hotswap, "all of them", &directories, &scratch)?;
    replace_table(PAGE, "cost", &text)
}

/// The command in a directory as an installation has it: `serve` is an error without the library of names.
fn lay_out_command(built: &Path) -> Outcome<PathBuf> {
    let prefix = paths::scratch("stack-prefix");
    let command = prefix.join("bin/hotswap");
    copy_to(&built.join("libhotswap_names.so"), &prefix.join("lib/hotswap/libhotswap-names.so"))?;
    copy_to(&built.join("hotswap"), &command)?;
    Ok(command)
}

/// Copies a file to a directory that may not exist yet.
fn copy_to(from: &Path, to: &Path) -> Outcome {
    let directory = to.parent().unwrap_or(to);
    fs::create_dir_all(directory).during("create", directory)?;
    fs::copy(from, to).during("copy", from)?;
    Ok(())
}

fn row(hotswap: &Path, name: &str, roots: &[PathBuf], scratch: &Path) -> Outcome<String> {
    let sizes = roots.iter().map(|root| size(root)).collect::<Outcome<Vec<u64>>>()?;
    let bytes: u64 = sizes.iter().sum();
    let (copy, served) = (scratch.join("copy"), scratch.join("served"));
    let mut copying = Command::new("cp");
    copying.arg("-a").args(roots.iter().map(|root| root.join("."))).arg(&copy);
    let mut serving = Command::new(hotswap);
    serving.args(["serve", "gfx1031", "--from", "gfx1030", "--dest"]).arg(&served);
    roots.iter().for_each(|root| {
        serving.arg("--root").arg(root);
    });
    for (file, _) in roots.iter().map(|root| packages::files(root)).collect::<Outcome<Vec<_>>>()?.concat() {
        std::io::copy(&mut fs::File::open(&file).during("read", &file)?, &mut std::io::sink())?;
    }
    remove::delete(scratch)?;
    fs::create_dir_all(&copy).during("create", &copy)?;
    let copied = measure(&mut copying)?;
    remove::delete(&copy)?;
    let made = measure(&mut serving)?;
    let written = size(&served).unwrap_or(0);
    remove::delete(scratch)?;
    let line = format!(
        "| {name} | {} | {:.1} s | {:.1} s | {:.1} s | {:.0} MB | {} |\n",
        megabyte_text(bytes),
        copied.seconds,
        made.seconds,
        made.processor,
        made.megabytes,
        megabyte_text(written)
    );
    print!("{line}");
    Ok(line)
}

fn megabyte_text(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

fn size(directory: &Path) -> Outcome<u64> {
    Ok(packages::files(directory)?.into_iter().map(|(_, size)| size).sum())
}

/// Runs a command below a program that says what its child took.
fn measure(command: &mut Command) -> Outcome<Measured> {
    let line = run::line(command);
    let script = "import resource, subprocess, sys\n\
                  code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode\n\
                  u = resource.getrusage(resource.RUSAGE_CHILDREN)\n\
                  print(code, u.ru_utime + u.ru_stime, u.ru_maxrss)";
    let start = Instant::now();
    let mut python = Command::new("python3");
    python.arg("-c").arg(script).arg(command.get_program()).args(command.get_args());
    let output = run::output(&mut python)?;
    let seconds = start.elapsed().as_secs_f64();
    let words: Vec<f64> = output.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [code, processor, kilobytes] = words[..] else { return fail(format!("`{line}` was not measured")) };
    // 13: a library of the tree is refused, or has nothing to serve, which the table shows by what is written.
    if code != 0.0 && code != 13.0 {
        return fail(format!("`{line}` ended with {code}"));
    }
    Ok(Measured { seconds, processor, megabytes: kilobytes / 1e3 })
}

/// Writes a table between its marks in the page.
fn replace_table(name: &str, mark: &str, table: &str) -> Outcome {
    let page = paths::workspace().join(name);
    let text = fs::read_to_string(&page).during("read", &page)?;
    let (first, last) = (format!("<!-- {mark} -->\n"), format!("<!-- end of {mark} -->\n"));
    let parts = text.split_once(&first).and_then(|(before, rest)| Some((before, rest.split_once(&last)?.1)));
    let Some((before, after)) = parts else { return fail(format!("{name} has no marks `{mark}`")) };
    fs::write(&page, format!("{before}{first}{table}{last}{after}")).during("write", &page)
}
