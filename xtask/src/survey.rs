//! The task `survey`: which pairs are correct for the libraries of Debian and of PyPI, and why not, as a table.
//!
//! By hand, not in CI: it downloads gigabytes. It writes `docs/evidence/names-survey.md`.
//!
//! Invariants: only `hotswap retarget --dry-run` judges; a package that is not available is a row with the reason.

use crate::outcome::{During, Outcome, fail};
use crate::packages::{self, Origin, Package, Packages};
use crate::{paths, run};
use clap::Parser;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Judges packages of Debian and wheels of PyPI, and writes docs/evidence/names-survey.md.
#[derive(Parser)]
struct Options {
    /// Only packages whose name contains this; nothing is written then
    filter: Option<String>,
    /// Delete each package after it was judged
    #[arg(long)]
    forget: bool,
    /// The command to judge with [default: built now, optimised]
    #[arg(long)]
    hotswap: Option<PathBuf>,
}

const fn sid(name: &'static str) -> Package {
    Package { name, origin: Origin::Sid }
}

const fn experimental(name: &'static str) -> Package {
    Package { name, origin: Origin::Experimental }
}

const fn wheel(name: &'static str, version: &'static str, python: &'static str) -> Package {
    Package { name, origin: Origin::Wheel { version, python } }
}

#[rustfmt::skip]
const PACKAGES: &[Package] = &[
    sid("librocrand1"), experimental("librocrand1"),
    sid("librocsparse1"), experimental("librocsparse1"),
    sid("librocblas4"), experimental("librocblas5"), sid("librocsolver0"), experimental("librocsolver0"),
    experimental("libhipblaslt1"), experimental("librccl1"),
    sid("migraphx-tools"), sid("libmagma2-rocm"), experimental("librpp2-hip"), sid("libggml0-backend-hip"),
    wheel("tensorflow-rocm", "2.14.0.600", "3.11"),
    wheel("cupy-rocm-7-0", "14.2.0", "3.12"),
    wheel("jax-rocm7-pjrt", "0.12.0", "3.12"), wheel("jax-rocm7-plugin", "0.12.0", "3.12"),
    wheel("onnxruntime-rocm", "1.22.2.post3", "3.12"),
    wheel("bitsandbytes", "0.50.2", "3.12"),
];

/// The path of the table.
const PAGE: &str = "docs/evidence/names-survey.md";

const INTRODUCTION: &str = "\
# Which finished libraries can be retargeted

<!-- Written by `cargo xtask survey`; do not edit. -->

For owners of a GPU and packagers: which finished libraries can be retargeted to which GPUs, and why the others cannot.

The answers of `hotswap retarget --dry-run` for libraries of Debian and wheels of PyPI, for all targets of validated pairs.
*Right*: code can be made for these GPUs; no choice by the GPU's name that HotSwap knows was found in the file. *By name*: the host part chooses kernels by the GPU's name, and would start
kernels there that the code was not compiled for ([names](../guide/gpu-names.md)). *Checks*: the code does not
pass the checks of the pair. GPUs that a file has code for, and those that it does not have a source for, are not listed. The sources
are the best in each fat binary; a target is right only if it is right in all fat binaries with a source for it.

| package | file | fat binaries | right | by name | checks |
| --- | --- | --- | --- | --- | --- |
";

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let options = Options::parse_from(words);
    let hotswap = options.hotswap.clone().map_or_else(build, Ok)?;
    let targets = validated_targets(&hotswap)?.join(",");
    let packages = Packages::open()?;
    let wanted = |package: &&Package| options.filter.as_ref().is_none_or(|part| package.name.contains(part.as_str()));
    let mut page = INTRODUCTION.to_owned();
    for package in PACKAGES.iter().filter(wanted) {
        let rows = judge(&packages, package, &hotswap, &targets);
        print!("{rows}");
        page += &rows;
        if options.forget {
            packages.forget(package)?;
        }
    }
    if options.filter.is_none() {
        let file = paths::workspace().join(PAGE);
        fs::write(&file, page).during("write", &file)?;
    }
    Ok(())
}

fn build() -> Outcome<PathBuf> {
    let words = ["build", "--quiet", "--release", "--package", "hotswap"];
    run::show(Command::new(paths::cargo()).current_dir(paths::workspace()).args(words))?;
    Ok(paths::target().join("release/hotswap"))
}

/// The targets of validated pairs, by the table of the program that is asked: a pair that is new there is surveyed. The
/// source is the best that each fat binary has.
fn validated_targets(hotswap: &Path) -> Outcome<Vec<String>> {
    let mut command = Command::new(hotswap);
    let output = command.args(["compat", "--matrix", "--format", "json"]).output().during("start", hotswap)?;
    let matrix: Value = serde_json::from_slice(&output.stdout).during("read the pairs of", hotswap)?;
    let mut targets = Vec::new();
    for pair in matrix["pairs"].as_array().into_iter().flatten() {
        let target = pair["target"].as_str().unwrap_or_default();
        if pair["pair"]["status"] == "validated" && !targets.iter().any(|known| known == target) {
            targets.push(target.to_owned());
        }
    }
    if targets.is_empty() { fail(format!("{} names no validated pair", hotswap.display())) } else { Ok(targets) }
}

/// The rows of a package.
fn judge(packages: &Packages, package: &Package, hotswap: &Path, targets: &str) -> String {
    let unpacked = match packages.get(package) {
        Ok(unpacked) => unpacked,
        Err(failure) => {
            println!("{failure}");
            return format!("| {} | - | - | could not be had | - | - |\n", package.name);
        }
    };
    let title = format!("{} {}", package.name, unpacked.version);
    let files = packages::files(&unpacked.directory).unwrap_or_default();
    let mut rows: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for (path, _) in files.iter().filter(|(path, size)| *size > 0 && is_elf(path)) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match ask(hotswap, path, targets) {
            Ok(Some(row)) => {
                // Files of one kernel each, by the hundred, are one row.
                let same = rows.entry(row).or_insert((name, 0));
                same.1 += 1;
            }
            Ok(None) => {}
            Err(failure) => {
                drop(rows.insert(format!(" - | not read: {} | - | - |\n", cell(&failure.to_string())), (name, 1)))
            }
        }
    }
    if rows.is_empty() {
        return format!("| {title} | - | 0 | no fat binary | - | - |\n");
    }
    let mut lines: Vec<String> = rows
        .into_iter()
        .map(|(row, (name, count))| {
            let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
            format!("| {title} | {name}{more} |{row}")
        })
        .collect();
    lines.sort();
    lines.concat()
}

fn is_elf(path: &Path) -> bool {
    use std::io::Read;
    let mut magic = [0; 4];
    let device = path.extension().is_some_and(|extension| extension == "co" || extension == "hsaco");
    !device
        && fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok_and(|()| magic == *b"\x7fELF")
}

fn cell(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().replace('|', "\\|");
    let end = line.char_indices().nth(160).map_or(line.len(), |(at, _)| at);
    line[..end].to_owned()
}

/// The last columns of a file's row; none for a file without fat binaries.
fn ask(hotswap: &Path, file: &Path, targets: &str) -> Outcome<Option<String>> {
    let mut command = Command::new(hotswap);
    command.arg("retarget").arg(file).args(["--to", targets, "--policy", "keep", "--dry-run"]);
    let output = command.args(["--format", "json"]).output().during("start", hotswap)?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        // Files without device code are most of a package.
        if error.contains("[HS0304]") {
            return Ok(None);
        }
        let lines = error.lines().count();
        let text = error.lines().next().unwrap_or_default().rsplit_once(".so").map_or("", |(_, rest)| rest).to_owned();
        return fail(format!("{} ({lines} messages)", text.trim_start_matches([':', ' '])));
    }
    let value: Value = serde_json::from_slice(&output.stdout)?;
    Ok(Some(Verdicts::of(&value).row()))
}

/// The messages about each target, over all fat binaries of a file.
#[derive(Default)]
struct Verdicts {
    containers: usize,
    made: BTreeMap<String, BTreeSet<String>>,
    by_name: BTreeMap<String, BTreeSet<String>>,
    checks: BTreeMap<String, usize>,
    libraries: BTreeSet<String>,
}

impl Verdicts {
    fn of(value: &Value) -> Self {
        let mut verdicts = Self::default();
        for container in json_array_items(&value["containers"]) {
            verdicts.containers += 1;
            json_array_items(&container["targets"]).iter().for_each(|target| verdicts.take(target));
        }
        verdicts
    }

    fn take(&mut self, target: &Value) {
        let name = json_string_text(&target["target"]);
        match target["how"].as_str() {
            Some("made") => drop(self.made.entry(name).or_default().insert(json_string_text(&target["source"]))),
            Some("refused") => {
                for row in json_list_items(&target["names"]) {
                    self.by_name.entry(name.clone()).or_default().insert(json_string_text(&row["source"]));
                    self.libraries.insert(json_string_text(&row["library"]));
                }
                let unsafe_ones =
                    json_list_items(&target["reasons"]).iter().filter(|reason| is_unsafe_reason(reason)).count();
                if unsafe_ones > 0 {
                    *self.checks.entry(name).or_default() += unsafe_ones;
                }
            }
            _ => {}
        }
    }

    fn row(&self) -> String {
        let pairs = |targets: &BTreeMap<String, BTreeSet<String>>, except: &[&BTreeSet<String>]| {
            let mut of_source: BTreeMap<String, Vec<&str>> = BTreeMap::new();
            for (target, sources) in
                targets.iter().filter(|(target, _)| !except.iter().any(|set| set.contains(*target)))
            {
                let sources = sources.iter().map(String::as_str).collect::<Vec<_>>().join("/");
                of_source.entry(sources).or_default().push(target);
            }
            let pairs: Vec<String> = of_source
                .iter()
                .map(|(source, targets)| format!("{source} => {}", targets.join(" ").replace("gfx", "")))
                .collect();
            if pairs.is_empty() { "-".to_owned() } else { pairs.join("; ") }
        };
        let names: BTreeSet<String> = self.by_name.keys().cloned().collect();
        let checks: BTreeSet<String> = self.checks.keys().cloned().collect();
        let mut by_name = pairs(&self.by_name, &[]);
        if !self.libraries.is_empty() {
            let libraries: Vec<&str> = self.libraries.iter().map(String::as_str).collect();
            let _ = write!(by_name, " ({})", libraries.join(", "));
        }
        let found: Vec<String> =
            self.checks.iter().map(|(target, count)| format!("{target}: {count} findings")).collect();
        let found = if found.is_empty() { "-".to_owned() } else { found.join("; ") };
        format!(" {} | {} | {by_name} | {found} |\n", self.containers, pairs(&self.made, &[&names, &checks]))
    }
}

fn json_array_items(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn json_string_text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn json_list_items(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn is_unsafe_reason(reason: &Value) -> bool {
    reason["code"] == "HS0408"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_target_is_right_only_if_it_is_right_everywhere() {
        let made = |target: &str| json!({ "target": target, "how": "made", "source": "gfx1030" });
        let refused = json!({
            "target": "gfx1031", "how": "refused", "reasons": [],
            "names": [{ "source": "gfx1030", "library": "rocPRIM 4.2.0" }],
        });
        let value = json!({ "containers": [
            { "targets": [made("gfx1031"), made("gfx1032")] },
            { "targets": [refused, made("gfx1032")] },
        ]});
        let row = Verdicts::of(&value).row();
        assert_eq!(row, " 2 | gfx1030 => 1032 | gfx1030 => 1031 (rocPRIM 4.2.0) | - |\n");
    }

    #[test]
    fn packages_are_named_once() {
        assert!((1..PACKAGES.len()).all(|place| !PACKAGES[..place].contains(&PACKAGES[place])));
    }
}
