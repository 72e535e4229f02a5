//! `lld` and `ld.lld`: a device link, checked against the plan.
//!
//! The link itself is the real linker's. Its output is read again at once, so that a plan that cannot be carried out
//! stops the build here, with the code object available, and not as a fat binary without a target. New targets are
//! added one step later ([`crate::fat_binary`]), where all code objects of a bundle are known: only there is it visible
//! that a target was also compiled.

use crate::companion::{self, CompanionData, FinishedLink};
use crate::context::CallContext;
use crate::exchange::LinkExchange;
use crate::linker::{LinkOutput, Linker};
use crate::message::say;
use crate::tool::Tool;
use crate::words::CommandLine;
use crate::{child, device_code, skipped_link, trace};
use hotswap_code_object::is_empty_link;
use hotswap_files::reads;
use hotswap_plan::{Plan, Policy};
use hotswap_report::{Diagnostic, Severity, codes};
use hotswap_targets::TargetId;
use serde_json::json;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// Arguments with which lld writes text or bitcode beside its output and links nothing.
#[rustfmt::skip]
const NO_LINK: &[&str] = &[
    "--lto-emit-asm", "--lto-emit-llvm", "--thinlto-index-only",
    "-plugin-opt=emit-asm", "-plugin-opt=emit-llvm", "-plugin-opt=thinlto-index-only",
    "--plugin-opt=emit-asm", "--plugin-opt=emit-llvm", "--plugin-opt=thinlto-index-only",
];

/// Runs a device link; a host link, or a device link without a plan, becomes the real linker.
pub(crate) fn run(context: &CallContext, args: &[OsString]) -> Result<u8, Diagnostic> {
    let line = CommandLine::new(args)?;
    // The clang that starts `ld.lld` for device code gets no `-B`.
    let is_inner = context.tool == Tool::LdLld && line.is_marked();
    let name = context.tool.name();
    let real = if is_inner { context.real_tool(name) } else { context.real_tool_of_driver(name) }?;
    if !line.is_marked() {
        return Err(child::exec(context, &real, args));
    }
    if !line.has_plan_words() && !context.has_plan() {
        return child::run(context, &real, &line.stripped()?.words);
    }
    let plan = context.plan(line.token()?.as_deref())?;
    line.agree_with(&plan)?;
    let output = line.output();
    refuse_special_file(&output)?;
    if skipped_link::is_skipped(context, &line, &output)? && links(&line) {
        return skipped_link::leave_out(context, &output).map(|()| 0);
    }
    let exchange = if links(&line) { LinkExchange::new(&plan, &line, &output)? } else { LinkExchange::default() };
    let args: Vec<OsString> = args.iter().chain(&exchange.more).cloned().collect();
    let line = CommandLine::new(&args)?.without(exchange.left_out.clone());
    let linker = Linker { context, line: &line, real: &real, output: &output };
    let wanted = if links(&line) && !context.bare_output { companion::wanted(&plan) } else { Vec::new() };
    let finished =
        if wanted.is_empty() { plain_link(&linker)? } else { companion::link_with_companion(&linker, &wanted)? };
    match finished {
        FinishedLink { exit_code: 0, output, companion } => finish_link(&linker, &plan, output, companion).map(|()| 0),
        failed => Ok(failed.exit_code),
    }
}

/// The compiler's link alone.
fn plain_link<'l>(linker: &Linker<'l>) -> Result<FinishedLink<'l>, Diagnostic> {
    Ok(FinishedLink { exit_code: linker.link(None)?, output: None, companion: CompanionData::default() })
}

/// The steps after a successful link.
fn finish_link<'l>(
    linker: &Linker<'l>,
    plan: &Plan,
    read: Option<LinkOutput<'l>>,
    mut companion: CompanionData,
) -> Result<(), Diagnostic> {
    let Linker { context, line, output: path, .. } = *linker;
    if line.has(&["-r", "--relocatable"]) {
        return trace::step(context, "keep", path, json!({"why": "relocatable output"}));
    }
    if line.has(NO_LINK) {
        return trace::step(context, "pass-through", path, json!({"why": "stops before the link"}));
    }
    let mut output = read.map_or_else(|| LinkOutput::open(path), Ok)?;
    if is_empty_link(&output.bytes) {
        return trace::step(context, "keep", path, json!({"why": "the link has no input"}));
    }
    device_code::finish_device_code(linker, plan, &mut output, &mut companion)?;
    check_against_plan(context, plan, &output, companion)
}

/// Whether the output is a code object. `--save-temps` of clang 24 runs the linker a second time, in parallel with the
/// first and with the same `-o`, for assembly text beside it: the file at `-o` is not that run's.
fn links(line: &CommandLine) -> bool {
    !line.has(&["-r", "--relocatable"]) && !line.has(NO_LINK)
}

/// The output in a device or a pipe cannot be read again.
pub(crate) fn refuse_special_file(output: &Path) -> Result<(), Diagnostic> {
    match reads::find_metadata(output)? {
        Some(meta) if !meta.is_file() => {
            let what = "a build with a plan cannot write device code to a device, pipe or directory";
            Err(Diagnostic::error(codes::UNSUPPORTED_OUTPUT, what).in_file(output))
        }
        _ => Ok(()),
    }
}

/// Whether the plan can be carried out with this code object; its companion is appended.
fn check_against_plan(
    context: &CallContext,
    plan: &Plan,
    linked: &LinkOutput<'_>,
    companion: CompanionData,
) -> Result<(), Diagnostic> {
    let output = linked.path;
    let target = linked.target_id()?;
    let wanted = wanted_from(plan, &target).map_err(|error| error.in_file(output))?;
    if context.bare_output && !wanted.is_empty() {
        no_place(plan, output, &target, &wanted)?;
    }
    if let Some(companion) = &companion.bytes {
        append(output, linked.bytes.len(), companion).map_err(|error| Diagnostic::cannot_write(output, error))?;
    }
    let told = json!({"target": target.to_string(), "derives": wanted, "beside": companion.kind, "attempts": companion.failed});
    trace::step(context, "device-link", output, told)
}

/// Appends the companion to the code object, which stays unchanged even if the write fails midway.
fn append(output: &Path, size: usize, companion: &[u8]) -> std::io::Result<()> {
    let frame = hotswap_pipeline::companion::frame_companion(size, companion.len());
    let mut file = OpenOptions::new().append(true).open(output)?;
    let written = [&frame.padding, companion, &frame.trailer].into_iter().try_for_each(|part| file.write_all(part));
    if written.is_err() {
        file.set_len(size as u64)?;
    }
    written
}

/// The targets that the plan makes from this code object.
fn wanted_from(plan: &Plan, source: &TargetId) -> Result<Vec<String>, Diagnostic> {
    let mut wanted = Vec::new();
    for pair in plan.pairs.iter().filter(|pair| pair.source == source.processor.name) {
        if hotswap_pipeline::check_pair(pair, plan)? {
            wanted.push(pair.target.clone());
        }
    }
    Ok(wanted)
}

/// A bare code object has one target; the policy decides how severe that is.
fn no_place(plan: &Plan, output: &Path, target: &TargetId, wanted: &[String]) -> Result<(), Diagnostic> {
    let what = format!("the output is one bare code object for {target}, the plan also asks for {}", wanted.join(", "));
    let mut diagnostic = Diagnostic::error(codes::NO_PLACE, what).in_file(output);
    match plan.policy {
        Policy::Error | Policy::Compile => return Err(diagnostic),
        Policy::Warn => {
            diagnostic.severity = Severity::Warning;
            say(diagnostic);
        }
        Policy::Keep => {}
    }
    Ok(())
}
