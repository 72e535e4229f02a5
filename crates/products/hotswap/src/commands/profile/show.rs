//! `hotswap profile show`: the contents of raw profiles.

use super::{Show, gather};
use crate::args::OutputFormat;
use crate::outcome::CommandOutcome;
use crate::work::text;
use hotswap_coverage::raw_profile::RawProfile;
use hotswap_coverage::{GatheredProfiles, ProfileFile, llvm_tools, target_of_part};
use hotswap_report::Diagnostic;
use serde_json::{Value, json};
use std::ffi::OsString;

const HEADS: [&str; 8] = ["FILE", "TARGET", "VERSION", "COUNTERS OF THE", "FUNCTIONS", "COUNTERS", "SUM", "WAVE"];

pub(crate) fn run(arguments: &Show) -> Result<CommandOutcome, Diagnostic> {
    let GatheredProfiles { profiles, problems } =
        gather(&arguments.files, &arguments.profiles, arguments.profiles.target.as_deref())?;
    let outcome = CommandOutcome { problems, ..CommandOutcome::default() };
    if arguments.functions {
        return functions(arguments, &profiles, outcome);
    }
    let text = match arguments.output.format {
        OutputFormat::Text => table(&profiles),
        OutputFormat::Json => {
            text::json(&json!({ "schema": 1, "files": profiles.iter().map(as_json).collect::<Vec<_>>() }))
        }
    };
    Ok(CommandOutcome { text, ..outcome })
}

fn functions(
    arguments: &Show,
    profiles: &[ProfileFile],
    mut outcome: CommandOutcome,
) -> Result<CommandOutcome, Diagnostic> {
    let llvms = llvm_tools::find_llvms(&arguments.profiles.llvm_bin)?;
    for profile in profiles {
        let raw = profile.parts.iter().flatten().next();
        let llvm = match raw {
            Some(part) => Some(llvm_tools::reader_of(&llvms, part, &profile.path)?),
            None => llvms.iter().max_by_key(|llvm| llvm.major),
        };
        let Some(llvm) = llvm else { continue };
        let words: [OsString; 4] =
            ["show".into(), "--all-functions".into(), "--counts".into(), profile.path.clone().into()];
        let ran = llvm_tools::run_tool(llvm, "llvm-profdata", &words)?;
        outcome.problems.extend(llvm_tools::warnings(&ran));
        outcome.text += &format!("{} ({}):\n", text::plain(&profile.path.display().to_string()), targets(profile));
        outcome.text += &String::from_utf8_lossy(&ran.stdout);
    }
    Ok(outcome)
}

fn table(profiles: &[ProfileFile]) -> String {
    let mut rows = vec![HEADS.map(str::to_owned).to_vec()];
    for profile in profiles {
        let file = text::plain(&profile.path.display().to_string());
        let Some(parts) = &profile.parts else {
            let mut row = vec![file, "all".to_owned(), "merged".to_owned()];
            row.resize(HEADS.len(), "-".to_owned());
            rows.push(row);
            continue;
        };
        rows.extend(parts.iter().map(|part| cells(&file, &target_on_gpu(profile, part), part)));
    }
    text::table(&rows)
}

/// The targets of a file's profiles.
fn targets(profile: &ProfileFile) -> String {
    let Some(parts) = &profile.parts else { return "all".to_owned() };
    let mut targets: Vec<String> = parts.iter().map(|part| target_of_part(&profile.path, part)).collect();
    targets.dedup();
    targets.join(", ")
}

/// The target of the code, and the GPU that ran it where that is another name.
fn target_on_gpu(profile: &ProfileFile, part: &RawProfile) -> String {
    let target = target_of_part(&profile.path, part);
    let gpu = part.device.as_ref().map_or("", |device| device.gpu.as_str());
    if gpu.is_empty() || target.split(':').next() == Some(gpu) { target } else { format!("{target} ({gpu})") }
}

fn cells(file: &str, target: &str, part: &RawProfile) -> Vec<String> {
    vec![
        file.to_owned(),
        text::plain(target),
        part.version.to_string(),
        part.kind.name().to_owned(),
        part.functions.to_string(),
        part.counters.to_string(),
        part.total.to_string(),
        part.wave.map_or_else(|| "-".to_owned(), |wave| wave.to_string()),
    ]
}

fn as_json(profile: &ProfileFile) -> Value {
    json!({
        "file": profile.path.display().to_string(),
        "target": profile.parts.is_some().then(|| targets(profile)),
        "merged": profile.parts.is_none(),
        "profiles": profile.parts.iter().flatten().map(|part| part_json(profile, part)).collect::<Vec<_>>(),
    })
}

fn part_json(profile: &ProfileFile, part: &RawProfile) -> Value {
    json!({
        "target": target_of_part(&profile.path, part),
        "gpu": part.device.as_ref().map(|device| &device.gpu),
        "code": part.device.as_ref().map(|device| format!("{:016x}", device.code)),
        "version": part.version,
        "kind": part.kind.name(),
        "functions": part.functions,
        "counters": part.counters,
        "sum": part.total,
        "wave": part.wave,
    })
}
