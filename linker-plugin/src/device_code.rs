//! The code object of a device link before the next step reads it: budgets of kernels checked or raised, and the table of its
//! functions.
//!
//! Invariants: by default nothing is read beyond the command line, unless the link has several separately compiled objects.
//! A companion with relocations gets the same numbers. The file is replaced in one step.
//!
//! Absent on purpose: the numbers (`hotswap-device-link`), the table (`hotswap-device-symbols`).

use crate::companion::CompanionData;
use crate::linker::{LinkOutput, LinkedFile, Linker, input_files};
use crate::message::say;
use crate::{exchange, trace};
use hotswap_device_link::{DynamicStack, LinkInput, LinkReport, StackRules, check_link, raise_kernels};
use hotswap_device_symbols::note;
use hotswap_plan::{DeviceLinkAction, Plan, Policy};
use hotswap_report::{Diagnostic, Severity};
use serde_json::json;

/// Checks and changes the output of a successful link as the plan requests it.
///
/// # Errors
/// Under the policy `error`: kernels that have too little, objects that do not fit each other. Numbers that
/// cannot be raised, and defects.
pub(crate) fn finish_device_code(
    linker: &Linker<'_>,
    plan: &Plan,
    output: &mut LinkOutput<'_>,
    companion: &mut CompanionData,
) -> Result<(), Diagnostic> {
    exchange::check_exchange(plan, linker.line, &output.bytes).map_err(|error| error.in_file(output.path))?;
    check_budgets(linker, plan, output, companion).map_err(|error| error.in_file(linker.output))?;
    // Exports are in the table.
    if !plan.device_symbols && plan.device_exports.is_empty() {
        return Ok(());
    }
    let (made, table) =
        note::with_exports(&output.bytes, &plan.device_exports).map_err(|error| error.in_file(output.path))?;
    output.replace(&made)?;
    trace::step(linker.context, "device-symbols", linker.output, json!({"functions": table.functions.len()}))
}

fn check_budgets(
    linker: &Linker<'_>,
    plan: &Plan,
    output: &mut LinkOutput<'_>,
    companion: &mut CompanionData,
) -> Result<(), Diagnostic> {
    if plan.device_link == DeviceLinkAction::Off {
        return Ok(());
    }
    let files = input_files(linker.line, linker.output)?;
    let inputs: Vec<LinkInput<'_>> = files.iter().flat_map(LinkedFile::link_inputs).collect();
    let is_usual = plan.device_link == DeviceLinkAction::Usual;
    // One object, or bitcode: the compiler has seen kernels and functions together.
    if is_usual && inputs.len() < 2 {
        return Ok(());
    }
    let is_fix = plan.device_link == DeviceLinkAction::Fix;
    let rules = StackRules {
        dynamic: if is_fix { DynamicStack::AsStated } else { DynamicStack::OfHip },
        unbounded: plan.device_link_stack.map(u64::from),
    };
    let report = check_link(&output.bytes, &inputs, rules)?;
    // Calls through pointers: the compiler has counted the functions that it has seen, and it has seen all of them.
    let is_seen_whole = inputs.len() < 2 && plan.device_imports.is_empty();
    let told = json!({"kernels": report.kernels, "short": report.short.len(), "open": report.open.len(), "mixes": report.mixes.len()});
    trace::step(linker.context, "device-budgets", linker.output, told)?;
    let is_raised = is_fix && !report.short.is_empty();
    if is_raised {
        // Replaced by one with raised numbers.
        let made = raise_kernels(&output.bytes, &report)?;
        output.replace(&made)?;
        if let Some(bytes) = &mut companion.bytes {
            *bytes = raise_kernels(bytes, &report)?;
        }
        report.short.iter().for_each(|one| say(Diagnostic { severity: Severity::Note, ..one.raised_note() }));
    }
    let told = LinkReport {
        short: if is_raised { Vec::new() } else { report.short },
        open: if is_usual || is_seen_whole { Vec::new() } else { report.open },
        unbounded: if is_usual { Vec::new() } else { report.unbounded },
        ..report
    };
    refuse(plan, told.problems())
}

/// The problems under the plan's policy; warnings stay warnings.
fn refuse(plan: &Plan, problems: Vec<Diagnostic>) -> Result<(), Diagnostic> {
    if plan.policy == Policy::Keep {
        return Ok(());
    }
    let fails = matches!(plan.policy, Policy::Error | Policy::Compile);
    let (mut errors, warnings): (Vec<_>, Vec<_>) =
        problems.into_iter().partition(|one| one.severity == Severity::Error && fails);
    warnings.into_iter().for_each(|one| say(Diagnostic { severity: Severity::Warning, ..one }));
    let Some(last) = errors.pop() else { return Ok(()) };
    errors.into_iter().for_each(say);
    Err(last)
}
