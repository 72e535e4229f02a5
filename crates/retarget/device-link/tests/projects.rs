//! The calls of other projects' HIP programs, compared with those that LLVM's assembly of the same code names, and their budgets, which
//! suffice as the compiler wrote them: HIP's own tests, ROCm's examples and HeCBench. Their sources are in no package: the person who runs the
//! exam names a directory with checkouts (`cargo xtask symbols exam --programs DIRECTORY`).
//!
//! A program that clang does not compile, for want of a header of another project or because it names a GPU, is counted, and so is one
//! that needs functions of another file.

/// Code objects with LLVM's tables about them, and their comparison with a table of functions.
#[path = "../../device-symbols/tests/common/mod.rs"]
mod listed;

use hotswap_device_link::{DynamicStack, check_link, link_inputs};
use hotswap_device_symbols::analyse_file;
use hotswap_userland::{ENV_PROGRAMS, Workbench, run_cases, say, skip, slice};
use listed::calls::{Compared, compare_calls};
use listed::{Made, Setting, libraries, try_make_with};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of clang with which HIP's headers of the userland compile.
const VERSION: u32 = 22;
const TARGETS: [&str; 5] = ["gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"];

/// A project: the directory of its checkout has this name.
struct Project {
    name: &'static str,
    /// Where its programs are, from its directory.
    programs: &'static str,
    /// Directories of headers, from its directory.
    headers: &'static [&'static str],
}

const PROJECTS: [Project; 3] = [
    Project {
        name: "hip-tests",
        programs: "catch",
        headers: &["catch/include", "catch/external/Catch2", "catch/external/picojson"],
    },
    Project { name: "rocm-examples", programs: ".", headers: &["Common", "External"] },
    Project { name: "HeCBench", programs: "src", headers: &["src/include"] },
];

/// Ends of the names of files that may be HIP programs.
const ENDINGS: [&str; 4] = ["hip", "cu", "cc", "cpp"];

/// A compilation of a program.
struct Case {
    project: &'static Project,
    /// From the directory of all projects.
    path: PathBuf,
    setting: Setting,
    options: &'static str,
}

/// The findings about a program.
enum Examined {
    /// Clang does not compile it, or it does not link alone.
    NotCompiled,
    Equal(Compared),
    Different(String),
}

/// Sums over the programs of a project.
#[derive(Default)]
struct Sums {
    all: usize,
    ran: usize,
    not_compiled: usize,
    compared: Compared,
    different: usize,
}

/// Files with kernels below a directory, in the order of their paths.
fn files_with_kernels(directory: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = open.pop() {
        let entries = std::fs::read_dir(&directory).unwrap_or_else(|told| panic!("{}: {told}", directory.display()));
        for path in entries.map(|entry| entry.expect("the directory is readable").path()) {
            if path.is_dir() && !path.is_symlink() && !is_for_cuda(&path) {
                open.push(path);
            } else if path.extension().is_some_and(|end| ENDINGS.iter().any(|one| end == *one)) && has_kernel(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// HeCBench has each program in several languages, each in a directory of its own.
fn is_for_cuda(directory: &Path) -> bool {
    directory.file_name().is_some_and(|name| name.to_string_lossy().ends_with("-cuda"))
}

fn has_kernel(path: &Path) -> bool {
    std::fs::read(path).is_ok_and(|text| String::from_utf8_lossy(&text).contains("__global__"))
}

/// The programs of a project, spread so that each beginning of the list has some of all of its directories.
fn cases_of(project: &'static Project, all: &Path) -> Vec<Case> {
    let files = files_with_kernels(&all.join(project.name).join(project.programs));
    let count = files.len();
    let order = (0..count).map(|turn| turn * 7919 % count.max(1));
    let case = |(number, place): (usize, usize)| {
        let target = TARGETS[number % TARGETS.len()];
        let options = match (number % 4, target.starts_with("gfx1")) {
            (0, _) => "-mcode-object-version=4",
            (1, true) => "-mwavefrontsize64",
            (2, _) => "-mcode-object-version=6",
            _ => "",
        };
        let level = if number % 3 == 1 { '0' } else { '2' };
        let path = files[place].strip_prefix(all).expect("it is below").to_owned();
        Case { project, path, setting: Setting { version: VERSION, target, level }, options }
    };
    order.enumerate().map(case).collect()
}

/// The programs of all projects, mixed in proportion.
fn all_cases(directory: &Path) -> Vec<Case> {
    let mut placed: Vec<(usize, Case)> = Vec::new();
    for project in &PROJECTS {
        let cases = cases_of(project, directory);
        let count = cases.len();
        placed.extend(cases.into_iter().enumerate().map(|(number, case)| (number * 1_000_000 / count, case)));
    }
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, case)| case).collect()
}

/// A scratch directory of the userland with a copy of all projects.
fn bench_with_projects(test: &str, directory: &Path) -> Workbench {
    let bench = Workbench::with_llvm(VERSION, test).expect("it was there");
    for project in &PROJECTS {
        let copied = Command::new("cp").arg("-a").arg(directory.join(project.name)).arg(bench.directory()).status();
        assert!(copied.is_ok_and(|status| status.success()), "{} is not copied", project.name);
    }
    bench
}

fn examine(bench: &Workbench, case: &Case) -> Examined {
    let Case { project, path, setting, options } = case;
    let source = String::from_utf8_lossy(&bench.read(&path.display().to_string())).into_owned();
    // A file's own directory comes first, as it does where the file lies.
    let own = path.ancestors().skip(1).take(2).map(|directory| format!("-I{}", directory.display()));
    let shared = project.headers.iter().map(|header| format!("-I{}/{header}", project.name));
    let headers: Vec<String> = own.chain(shared).collect();
    let words = format!("-std=c++17 {} {} {options}", libraries(setting.version), headers.join(" "));
    let Ok(made) = try_make_with(bench, setting, &source, &words) else { return Examined::NotCompiled };
    let compared = match analyse_file(&made.linked) {
        Ok((_, problems)) if !problems.is_empty() => Err(format!("{problems:?}")),
        Ok((table, _)) => compare_calls(&table, &made).and_then(|compared| findings(&made).map(|()| compared)),
        Err(told) => Err(told.to_string()),
    };
    match compared {
        Ok(compared) => Examined::Equal(compared),
        Err(told) => Examined::Different(format!("{}, {setting:?}, {options}: {told}", path.display())),
    }
}

/// A link of one object as clang makes it runs right today: `check` has nothing to report of it.
fn findings(made: &Made) -> Result<(), String> {
    let inputs = link_inputs("a.o", &made.object);
    let report = check_link(&made.linked, &inputs, DynamicStack::OfHip).map_err(|told| told.to_string())?;
    let is_clean = report.short.is_empty() && report.mixes.is_empty() && report.unbounded.is_empty();
    if is_clean { Ok(()) } else { Err(format!("check: {:?}", report.problems())) }
}

impl Sums {
    fn add(&mut self, one: &Examined) {
        self.ran += 1;
        match one {
            Examined::NotCompiled => self.not_compiled += 1,
            Examined::Equal(compared) => self.compared = self.compared.plus(*compared),
            Examined::Different(told) => {
                say(told);
                self.different += 1;
            }
        }
    }

    /// The row of a project in the table of `cargo xtask symbols exam`.
    fn row(&self, name: &str) -> String {
        let Self { all, ran, not_compiled, compared, different } = self;
        let Compared { functions, equal, taken, unresolved } = compared;
        format!(
            "exam projects | {name} | {ran} of {all} | {not_compiled} | {functions} | {equal} | {taken} | {unresolved} | {different} |"
        )
    }
}

/// A project's name, with the commit that a file `VERSION` beside its sources tells.
fn name_with_version(directory: &Path, name: &str) -> String {
    let version = std::fs::read_to_string(directory.join(name).join("VERSION")).unwrap_or_default();
    format!("{name} {}", version.trim()).trim_end().to_owned()
}

#[test]
fn programs_of_other_projects_call_what_llvm_says() {
    let test = "programs_of_other_projects_call_what_llvm_says";
    let Some(directory) = std::env::var_os(ENV_PROGRAMS).filter(|path| !path.is_empty()).map(PathBuf::from) else {
        return skip(test, &format!("{ENV_PROGRAMS} names no checkouts of HIP programs"));
    };
    if Workbench::with_llvm(VERSION, test).is_none() {
        return;
    }
    let cases = slice(test, all_cases(&directory), |number, _| number % 20 == 0);
    let found = run_cases(&cases, || bench_with_projects(test, &directory), examine);
    let mut sums: BTreeMap<&str, Sums> = BTreeMap::new();
    for case in &cases {
        sums.entry(case.project.name).or_default().all += 1;
    }
    for (case, one) in cases.iter().zip(&found) {
        sums.entry(case.project.name).or_default().add(one);
    }
    for (name, sum) in &sums {
        say(&sum.row(&name_with_version(&directory, name)));
    }
    let different: usize = sums.values().map(|sum| sum.different).sum();
    let compared = sums.values().fold(Compared::default(), |all, sum| all.plus(sum.compared));
    assert!(different == 0 && compared.functions > 0, "{different} programs differ, {compared:?}");
}
