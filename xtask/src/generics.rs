//! The task `generics`: generic targets for libraries of Debian's, their bytes and the GPUs that they serve, as a table.
//!
//! By hand, not in CI: it downloads half a gigabyte and writes as much again. It writes `docs/evidence/generics.md`.
//!
//! Invariants: only `hotswap retarget` makes and `hotswap list` judges; a file of which something was refused says so.

use crate::outcome::{During, Outcome, fail};
use crate::packages::{self, Origin, Package, Packages};
use crate::{paths, remove, run};
use clap::Parser;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes generic targets for libraries of Debian's, and writes docs/evidence/generics.md.
#[derive(Parser)]
struct Options {
    /// Only libraries whose name contains this; nothing is written then
    filter: Option<String>,
    /// The command to run [default: built now, optimised]
    #[arg(long)]
    hotswap: Option<PathBuf>,
}

/// A library, or the files of one GPU in its directory of data.
struct Subject {
    package: &'static str,
    origin: Origin,
    title: &'static str,
    /// Whether a file belongs to it, by its name.
    is_file: fn(&str) -> bool,
}

const fn subject(package: &'static str, origin: Origin, title: &'static str, is_file: fn(&str) -> bool) -> Subject {
    Subject { package, origin, title, is_file }
}

#[rustfmt::skip]
const SUBJECTS: &[Subject] = &[
    subject("librocrand1", Origin::Experimental, "librocrand.so", |name| name.starts_with("librocrand.so")),
    subject("librocblas5", Origin::Experimental, "librocblas.so", |name| name.starts_with("librocblas.so")),
    subject("librocblas5", Origin::Experimental, "rocBLAS's files for gfx1030", |name| name.contains("gfx1030") && is_code(name)),
    subject("libggml0-backend-hip", Origin::Sid, "libggml-hip.so", |name| name.starts_with("libggml-hip.so")),
];

fn is_code(name: &str) -> bool {
    name.ends_with(".co") || name.ends_with(".hsaco")
}

/// The requested targets.
const GENERICS: &str = "gfx9-generic,gfx10-1-generic,gfx10-3-generic,gfx11-generic,gfx12-generic";
const PAGE: &str = "docs/evidence/generics.md";

const INTRODUCTION: &str = "\
# Generic targets for libraries of a distribution

<!-- Written by `cargo xtask generics`; do not edit. -->

For maintainers of distributions: the size of ROCm libraries, and the GPUs that they serve, with generic targets.

Bytes of the code files, and the GPUs for which every fat binary has code: as Debian has them; with the generic targets that
`hotswap retarget FILE --to GENERICS` can make (`--policy keep --allow names --compress`; `--keep-source` for code objects in
files of their own); and without the code that these make superfluous (`--drop covered`). *Refused* counts the containers in
which a generic target fails a check other than the lack of a source.

rocBLAS and rocRAND choose files and kernels by the GPU's name: the additional GPUs are served if their libraries see the
source's name ([names](../guide/gpu-names.md#another-gpus-name-for-host-programs)). The files of a GPU are found by its name; `hotswap serve` makes named targets for them.

| library | files | bytes | GPUs | with generics: bytes | GPUs | without covered code: bytes | refused |
| --- | --- | --- | --- | --- | --- | --- | --- |
";

/// The code in a set of files.
struct Stock {
    bytes: u64,
    gpus: usize,
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let options = Options::parse_from(words);
    let hotswap = options.hotswap.clone().map_or_else(build, Ok)?;
    let hotswap = fs::canonicalize(&hotswap).during("find", &hotswap)?;
    let covers = covers(&hotswap)?;
    let packages = Packages::open()?;
    let mut page = INTRODUCTION.to_owned();
    let wanted = |row: &&Subject| options.filter.as_ref().is_none_or(|part| row.title.contains(part.as_str()));
    for subject in SUBJECTS.iter().filter(wanted) {
        let row = row(subject, &packages, &hotswap, &covers)?;
        print!("{row}");
        page += &row;
    }
    if options.filter.is_some() {
        return Ok(());
    }
    let file = paths::workspace().join(PAGE);
    fs::write(&file, page).during("write", &file)
}

fn build() -> Outcome<PathBuf> {
    let words = ["build", "--quiet", "--release", "--package", "hotswap"];
    run::show(Command::new(paths::cargo()).current_dir(paths::workspace()).args(words))?;
    Ok(paths::target().join("release/hotswap"))
}

fn row(subject: &Subject, packages: &Packages, hotswap: &Path, covers: &Covers) -> Outcome<String> {
    let unpacked = packages.get(&Package { name: subject.package, origin: subject.origin })?;
    let files: Vec<PathBuf> = packages::files(&unpacked.directory)?
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| !path.is_symlink() && is_subject_file(path, subject))
        .collect();
    if files.is_empty() {
        return fail(format!("{} has no files of {}", subject.package, subject.title));
    }
    let before = stock(hotswap, &files, covers)?;
    let scratch = paths::scratch("generics");
    let mut refused = 0;
    let mut made = |words: &[&str]| -> Outcome<Stock> {
        remove::delete(&scratch)?;
        fs::create_dir_all(&scratch).during("create", &scratch)?;
        let mut outputs = Vec::new();
        refused = 0;
        for file in &files {
            let output = scratch.join(file.file_name().unwrap_or_default());
            refused += retarget(hotswap, file, &output, words)?;
            outputs.push(output);
        }
        stock(hotswap, &outputs, covers)
    };
    let with = made(&[])?;
    let without = made(&["--drop", "covered"])?;
    remove::delete(&scratch)?;
    Ok(format!(
        "| {} ({} {}) | {} | {} | {} | {} | {} | {} | {refused} |\n",
        subject.title,
        subject.package,
        unpacked.version,
        files.len(),
        before.bytes,
        before.gpus,
        with.bytes,
        with.gpus,
        without.bytes
    ))
}

fn is_subject_file(path: &Path, subject: &Subject) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(subject.is_file)
}

/// Makes one file; returns the number of containers in which a target failed a check.
fn retarget(hotswap: &Path, file: &Path, output: &Path, words: &[&str]) -> Outcome<u64> {
    let bare = fs::read(file).during("read", file)?.get(18) == Some(&224);
    let mut command = Command::new(hotswap);
    command.arg("retarget").arg(file).args([
        "--to",
        GENERICS,
        "--policy",
        "keep",
        "--allow",
        "names",
        "--compress",
        "--allow-unchanged",
    ]);
    // A code object of its own has nothing that could be dropped.
    if bare {
        command.arg("--keep-source");
    } else {
        command.args(words);
    }
    let text = run::output(command.arg("-o").arg(output).args(["--format", "json"]))?;
    let report: Value = serde_json::from_str(&text)?;
    let targets = report["containers"].as_array().into_iter().flatten().flat_map(|one| one["targets"].as_array());
    let reasons = targets.flatten().flat_map(|target| target["reasons"].as_array()).flatten();
    Ok(reasons.filter(|reason| reason["code"] == "HS0408").count() as u64)
}

/// The GPUs that a generic target covers; a GPU covers itself.
type Covers = BTreeMap<String, BTreeSet<String>>;

fn covers(hotswap: &Path) -> Outcome<Covers> {
    let text = run::output(Command::new(hotswap).args(["targets", "--format", "json"]))?;
    let value: Value = serde_json::from_str(&text)?;
    Ok(value["targets"].as_array().into_iter().flatten().map(covered_processors_row).collect())
}

fn json_name_text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn covered_processors_row(target: &Value) -> (String, BTreeSet<String>) {
    let mut covered: BTreeSet<String> = target["covers"].as_array().into_iter().flatten().map(json_name_text).collect();
    if target["generic"] != true {
        covered.insert(json_name_text(&target["name"]));
    }
    (json_name_text(&target["name"]), covered)
}

fn stock(hotswap: &Path, files: &[PathBuf], covers: &Covers) -> Outcome<Stock> {
    let mut served: Option<BTreeSet<String>> = None;
    let mut bytes = 0;
    for file in files {
        bytes += fs::metadata(file).during("read", file)?.len();
        let text = run::output(Command::new(hotswap).arg("list").arg(file).args(["--format", "json"]))?;
        let value: Value = serde_json::from_str(&text)?;
        let containers = value["files"].as_array().into_iter().flatten().flat_map(|file| file["containers"].as_array());
        for container in containers.flatten() {
            let here = of_container(container, covers);
            served = Some(served.map_or(here.clone(), |all| all.intersection(&here).cloned().collect()));
        }
    }
    Ok(Stock { bytes, gpus: served.unwrap_or_default().len() })
}

fn of_container(container: &Value, covers: &Covers) -> BTreeSet<String> {
    let entries = container["entries"].as_array().into_iter().flatten().filter_map(entry_target_processor);
    entries.filter_map(|target| covers.get(&target)).flatten().cloned().collect()
}

fn entry_target_processor(entry: &Value) -> Option<String> {
    entry["target"].as_str()?.split(':').next().map(str::to_owned)
}
