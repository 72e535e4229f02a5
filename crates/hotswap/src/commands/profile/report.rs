//! `hotswap profile report`: coverage of host and device code in one report.
//!
//! llvm-cov reads coverage maps out of programs; those of device code are in code objects inside the fat binary. These
//! are written to a separate directory and passed to llvm-cov in addition to the program.

use super::merge::merge;
use super::tools::{self, Llvm};
use super::{Gathered, Report, gather};
use crate::args::Format;
use crate::outcome::Outcome;
use crate::work::{inventory, text};
use hotswap_bundle::ImageKind;
use hotswap_files::ScratchDirectory;
use hotswap_report::{Diagnostic, codes};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The name of the section with the coverage map.
const SECTION: &[u8] = b"__llvm_covmap\0";

/// A file for llvm-cov, and the target of its code.
struct Covered {
    path: PathBuf,
    target: String,
    from: PathBuf,
}

pub(crate) fn run(arguments: &Report) -> Result<Outcome, Diagnostic> {
    let target = arguments.profiles.target.as_deref();
    let Gathered { profiles, problems } = gather(&arguments.files, &arguments.profiles)?;
    let llvms = tools::find(&arguments.profiles.llvm_bin)?;
    let scratch = ScratchDirectory::temporary("hotswap-profile.")?;
    let mut covered = Vec::new();
    for file in std::iter::once(&arguments.program).chain(&arguments.object) {
        covered.extend(look_into(file, target, scratch.path(), covered.len())?);
    }
    if covered.is_empty() {
        let what = "no code with a coverage map is in it";
        let advice = "compile and link with -fprofile-instr-generate -fcoverage-mapping, through hotswap-clang";
        return Err(Diagnostic::error(codes::NO_PROFILE, what).in_file(&arguments.program).advise(advice));
    }
    let merged = scratch.path().join("merged.profdata");
    let mut outcome = merge(&profiles, &llvms, &merged, arguments.profiles.failure_mode)?;
    outcome.problems.splice(0..0, problems);
    let llvm = judge(&profiles, &llvms)?;
    let ran = tools::run(llvm, "llvm-cov", &words(arguments, &covered, &merged))?;
    outcome.problems.extend(tools::warnings(&ran));
    outcome.text = match (arguments.output.format, &arguments.html) {
        (Format::Json, _) => text::json(&as_json(&covered, &ran.stdout)?),
        (Format::Text, Some(directory)) => {
            format!("{}\n", text::plain(&directory.join("index.html").display().to_string()))
        }
        (Format::Text, None) => said(&ran.stdout, &covered),
    };
    Ok(outcome)
}

/// The newest LLVM that reads one of the profiles: it reads the coverage maps of older ones, too.
fn judge<'a>(profiles: &[super::Profile], llvms: &'a [Llvm]) -> Result<&'a Llvm, Diagnostic> {
    let mut readers = Vec::new();
    for profile in profiles {
        for part in profile.parts.iter().flatten() {
            readers.push(tools::reader(llvms, part, &profile.path)?);
        }
    }
    let merged = profiles.iter().any(|profile| profile.parts.is_none());
    let all = if merged || readers.is_empty() { llvms.iter().collect() } else { readers };
    let newest = all.into_iter().max_by_key(|llvm| llvm.major);
    newest.ok_or_else(|| Diagnostic::error(codes::NO_TOOL, "no llvm-cov is at hand"))
}

/// The file itself if it has a map, and its code objects that have one, written to `directory`.
fn look_into(file: &Path, target: Option<&str>, directory: &Path, before: usize) -> Result<Vec<Covered>, Diagnostic> {
    let bytes = hotswap_files::open(file)?;
    let contents = hotswap_bundle::open(&bytes);
    let mut covered = Vec::new();
    let mut failed = None;
    let problems = inventory::visit(&contents, |container| {
        for row in container.rows {
            let name = row.target.clone().unwrap_or_else(|| "unknown".to_owned());
            let wanted = target.is_none_or(|target| row.is_for(target) || processor(&name) == target);
            if row.image.kind != ImageKind::CodeObject || !wanted || !has_map(&row.image.data) {
                continue;
            }
            let path = directory.join(format!("{}.co", before + covered.len()));
            failed = hotswap_files::replace(&path, &row.image.data).err().or(failed.take());
            covered.push(Covered { path, target: name, from: file.to_owned() });
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    // A program without device code may be covered, too.
    let damage = problems.into_iter().find(|problem| problem.code != codes::NOT_FOUND);
    if let Some(problem) = damage {
        return Err(problem.in_file(file));
    }
    if target.is_none_or(|target| target == "host") && host_map(&bytes, &contents) {
        let host = Covered { path: file.to_owned(), target: "host".to_owned(), from: file.to_owned() };
        covered.insert(0, host);
    }
    Ok(covered)
}

fn processor(target: &str) -> &str {
    target.split(':').next().unwrap_or_default()
}

fn has_map(bytes: &[u8]) -> bool {
    find(bytes, SECTION)
}

/// Whether the section name occurs outside of the fat binaries, whose code objects have it, too.
fn host_map(bytes: &[u8], contents: &hotswap_bundle::Contents<'_>) -> bool {
    let base = bytes.as_ptr() as usize;
    let mut inside: Vec<(usize, usize)> = contents
        .found
        .iter()
        .map(|found| (found.bytes.as_ptr() as usize).wrapping_sub(base))
        .zip(contents.found.iter().map(|found| found.bytes.len()))
        .collect();
    inside.sort_unstable();
    let mut at = 0;
    for (start, size) in inside {
        if bytes.get(at..start).is_some_and(|part| find(part, SECTION)) {
            return true;
        }
        at = start.saturating_add(size);
    }
    bytes.get(at..).is_some_and(|part| find(part, SECTION))
}

/// Finds a section name, which ends with a zero and follows one.
fn find(bytes: &[u8], name: &[u8]) -> bool {
    bytes.windows(name.len()).any(|window| window == name)
}

fn words(arguments: &Report, covered: &[Covered], merged: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    match (arguments.output.format, &arguments.html, arguments.lines) {
        (Format::Json, ..) => words.extend(["export".into(), "--format=text".into()]),
        (_, Some(directory), _) => {
            let mut output = OsString::from("--output-dir=");
            output.push(directory);
            words.extend(["show".into(), "--format=html".into(), output]);
        }
        (.., true) => words.push("show".into()),
        _ => words.push("report".into()),
    }
    let mut profile = OsString::from("--instr-profile=");
    profile.push(merged);
    words.push(profile);
    for (number, covered) in covered.iter().enumerate() {
        if number > 0 {
            words.push("-object".into());
        }
        words.push(covered.path.clone().into());
    }
    words
}

fn said(report: &[u8], covered: &[Covered]) -> String {
    let whose = |covered: &Covered| format!("{} of {}", covered.target, covered.from.display());
    let objects: Vec<_> = covered.iter().map(whose).collect();
    format!("coverage of {}\n{}", text::plain(&objects.join(", ")), String::from_utf8_lossy(report))
}

fn as_json(covered: &[Covered], export: &[u8]) -> Result<Value, Diagnostic> {
    let export: Value = serde_json::from_slice(export)
        .map_err(|error| Diagnostic::error(codes::CHILD_FAILED, format!("llvm-cov export: {error}")))?;
    let objects =
        covered.iter().map(|covered| json!({ "file": covered.from.display().to_string(), "target": covered.target }));
    Ok(json!({ "schema": 1, "objects": objects.collect::<Vec<_>>(), "llvm_cov": export }))
}
