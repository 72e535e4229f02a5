//! `hotswap check`: whether two code objects do the same, by executing both.
//!
//! Each file is a code object, or contains exactly one; each is executed for the target in its own header. JSON: `{schema:
//! 1, before, after, targets, kernels: [{kernel, equal, sites, states, launches, unfinished, unordered, meeting, unchecked, difference}],
//! assumes, rejected: {before, after}}`, where `rejected` has the instructions that one version of LLVM accepts and a newer one rejects.
//!
//! Absent on purpose: the execution (`hotswap-check`).

use crate::args::OutputFormat;
use crate::args::OutputOptions;
use crate::outcome::CommandOutcome;
use crate::stream_input::input_file;
use crate::work::code_objects::{code_objects, rejected_json, rejected_text};
use crate::work::text;
use clap::Args;
use hotswap_check::{CheckOptions, CheckReport, CodePlace, Difference, KernelResult, compare_code_objects};
use hotswap_lint::{RejectedForm, rejected_forms};
use hotswap_report::{Diagnostic, codes};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The code object as it was, or a file that contains only this one
    #[arg(value_parser = input_file(), long, value_name = "FILE")]
    before: PathBuf,
    /// The code object that takes its place
    #[arg(value_parser = input_file(), long, value_name = "FILE")]
    after: PathBuf,
    /// Only this kernel
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// States on which each replaced instruction is executed
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    states: u64,
    /// Launches of each kernel
    #[arg(long, value_name = "N", default_value_t = 16)]
    launches: u64,
    /// The number on which all states and launches depend
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: OutputOptions,
}

pub(crate) fn run(arguments: &CheckArguments) -> Result<CommandOutcome, Diagnostic> {
    let [before, after] = [&arguments.before, &arguments.after].map(|file| code_object(file));
    let (before, after) = (before?, after?);
    let options = CheckOptions {
        kernel: arguments.kernel.clone(),
        states: arguments.states,
        launches: arguments.launches,
        seed: arguments.seed,
    };
    let report = compare_code_objects(&before, &after, &options).map_err(|error| error.in_file(&arguments.after))?;
    let rejected = RejectedPair {
        before: rejected_forms(&before).map_err(|error| error.in_file(&arguments.before))?,
        after: rejected_forms(&after).map_err(|error| error.in_file(&arguments.after))?,
    };
    let text = match arguments.output.format {
        OutputFormat::Text => {
            let kernels: String = report.kernels.iter().map(kernel_text).collect();
            kernels + &assumptions(&report) + &rejected.text()
        }
        OutputFormat::Json => text::json(&to_json(arguments, &report, &rejected)),
    };
    let problems = report.kernels.iter().flat_map(|kernel| problems(kernel, &arguments.after)).collect();
    Ok(CommandOutcome { text, problems, ..CommandOutcome::default() })
}

/// The instructions of both files that a version of LLVM rejects.
struct RejectedPair {
    before: Vec<RejectedForm>,
    after: Vec<RejectedForm>,
}

impl RejectedPair {
    fn text(&self) -> String {
        rejected_side("before", &self.before) + &rejected_side("after", &self.after)
    }
}

fn rejected_side(side: &str, rejected: &[RejectedForm]) -> String {
    if rejected.is_empty() { String::new() } else { format!("{side}:\n{}", rejected_text(rejected)) }
}

/// The only code object of a file.
fn code_object(file: &Path) -> Result<Vec<u8>, Diagnostic> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    let unread = code_objects(file, |_, _, data| found.push(data.to_vec())).map_err(|error| error.in_file(file))?;
    match (unread.into_iter().next(), found.len()) {
        (Some(problem), _) => Err(problem.in_file(file)),
        (None, 1) => Ok(found.swap_remove(0)),
        (None, count) => {
            let error =
                Diagnostic::error(codes::USAGE, format!("it contains {count} code objects, and one is compared"));
            Err(error.advise("write one to a file of its own by `hotswap extract`").in_file(file))
        }
    }
}

fn kernel_text(kernel: &KernelResult) -> String {
    let KernelResult { sites, states, launches, unfinished, unordered, meeting, .. } = kernel;
    let verdict = match &kernel.difference {
        Some(_) => "different",
        None if kernel.is_equal() => "equal",
        None => "not compared completely",
    };
    let mut line = format!("{}: {verdict}", text::plain(&kernel.kernel));
    if *sites > 0 {
        line += &format!("; {sites} replaced instructions, {states} states");
    }
    line += &format!("; {launches} launches");
    if *unfinished > 0 {
        line += &format!(" ({unfinished} more did not end within the budget)");
    }
    if *unordered > 0 {
        line += &format!(" ({unordered} more depend on the order of waves)");
    }
    if *meeting > 0 {
        line += &format!(" ({meeting} more depend on the order of lanes that store to one place)");
    }
    line.push('\n');
    if let Some(difference) = &kernel.difference {
        line += &format!("  {}\n{}", text::plain(&difference.summary()), difference.state_table());
    }
    line.extend(kernel.unchecked.iter().map(|reason| format!("  not compared: {}\n", text::plain(reason))));
    line
}

fn assumptions(report: &CheckReport) -> String {
    report.assumes.iter().map(|what| format!("taken for granted: {}\n", text::plain(what))).collect()
}

/// The first difference, or the first reason why the kernel was not compared completely.
fn problems(kernel: &KernelResult, file: &Path) -> Option<Diagnostic> {
    let problem = match (&kernel.difference, kernel.unchecked.first()) {
        (Some(difference), _) => Diagnostic::error(codes::DIFFERS, difference.summary()),
        (None, Some(reason)) => Diagnostic::error(codes::NOT_CHECKED, reason),
        (None, None) if kernel.is_equal() => return None,
        (None, None) => Diagnostic::error(codes::NOT_CHECKED, "nothing of it was executed"),
    };
    let mut problem = problem.in_file(file);
    problem.place.kernel = Some(kernel.kernel.clone());
    Some(problem)
}

fn to_json(arguments: &CheckArguments, report: &CheckReport, rejected: &RejectedPair) -> Value {
    let kernels: Vec<Value> = report.kernels.iter().map(kernel_json).collect();
    json!({
        "schema": 1,
        "before": arguments.before.display().to_string(),
        "after": arguments.after.display().to_string(),
        "targets": report.processors,
        "kernels": kernels,
        "assumes": report.assumes,
        "rejected": { "before": rejected_json(&rejected.before), "after": rejected_json(&rejected.after) },
    })
}

fn kernel_json(kernel: &KernelResult) -> Value {
    json!({
        "kernel": kernel.kernel,
        "equal": kernel.is_equal(),
        "sites": kernel.sites,
        "states": kernel.states,
        "launches": kernel.launches,
        "unfinished": kernel.unfinished,
        "unordered": kernel.unordered,
        "meeting": kernel.meeting,
        "unchecked": kernel.unchecked,
        "difference": kernel.difference.as_ref().map(difference_json),
    })
}

fn difference_json(difference: &Difference) -> Value {
    let values: Vec<Value> = difference
        .values
        .iter()
        .map(|value| json!({ "name": value.name, "start": value.start, "before": value.end[0], "after": value.end[1] }))
        .collect();
    json!({
        "before": code_location_json(&difference.places[0]),
        "after": code_location_json(&difference.places[1]),
        "families": difference.families,
        "what": difference.what,
        "state": difference.state,
        "values": values,
    })
}

fn code_location_json(place: &CodePlace) -> Value {
    json!({ "address": place.address, "mnemonic": place.mnemonic, "line": place.line })
}
