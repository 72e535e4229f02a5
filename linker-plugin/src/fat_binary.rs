//! `clang-offload-bundler` and `clang-linker-wrapper`: the plan's targets are added to the fat binary.
//!
//! The real tool runs first, or its output is written here ([`crate::own_bundle`]); the output is read, expanded and replaced as a whole. The bundler that
//! `clang-linker-wrapper` starts is taken from that tool's own directory and bypasses us, hence the second shim.

use crate::context::CallContext;
use crate::device_link::refuse_special_file;
use crate::message::say;
use crate::own_bundle::BundleRequest;
use crate::tool::Tool;
use crate::words::{CommandLine, is_ours};
use crate::{child, refused, text_mark, trace, unit_images};
use hotswap_load_model::acceptance;
use hotswap_pipeline::{Expansion, MissingCode};
use hotswap_plan::Plan;
use hotswap_plan::words::{ENV_COMPRESSION_LEVEL, ENV_HOST_LINKER};
use hotswap_report::{Diagnostic, Severity, codes};
use serde_json::json;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The bundler: writing a bundle of objects is followed by expanding it; the rest passes through.
pub(crate) fn bundler(context: &CallContext, args: &[OsString]) -> Result<u8, Diagnostic> {
    let line = CommandLine::new(args)?;
    let real = context.real_tool_of_driver(context.tool.name())?;
    let queries = ["-unbundle", "--unbundle", "-list", "--list", "-help", "--help", "-version", "--version"];
    let writes_objects = line.value_of(&["-type", "--type"]).is_some_and(|kind| kind == "o");
    let output = line.value_of(&["-output", "--output", "-outputs", "--outputs"]);
    if context.lent_targets().next().is_some() && line.has(&["-unbundle", "--unbundle"]) {
        return text_mark::unbundle(context, &real, &line, args);
    }
    match output {
        Some(output) if context.has_plan() && writes_objects && !line.has(&queries) => {
            let words = unit_images::bundler_words(context, &line)?;
            then_expand(context, &real, &line, words.as_deref().unwrap_or(args), &PathBuf::from(output))
        }
        _ => Err(child::exec(context, &real, args)),
    }
}

/// The linker wrapper: writes a fat binary (`--emit-fatbin-only`), or links a program; for the latter its host linker
/// is replaced by ours, which sees the fat binary before it is linked.
pub(crate) fn linker_wrapper(context: &CallContext, args: &[OsString]) -> Result<u8, Diagnostic> {
    let line = CommandLine::new(args)?;
    let real = context.real_tool_of_driver(context.tool.name())?;
    if !context.has_plan() {
        return Err(child::exec(context, &real, args));
    }
    if line.has(&["--emit-fatbin-only"]) {
        return then_expand(context, &real, &line, args, &line.output());
    }
    let Some(linker) = line.value_of(&["--linker-path"]) else {
        return Err(child::exec(context, &real, args));
    };
    let addressed = line.rewritten(&for_amd_links)?;
    let line = CommandLine::new(&addressed.words)?;
    let lending = text_mark::lending_command(context, &line)?;
    let mut words = lending.as_ref().map_or_else(|| addressed.words.clone(), |lending| lending.words.clone());
    let mut own = OsString::from("--linker-path=");
    own.push(own_host_linker()?);
    // The last one counts, so a response file with the first can stay unchanged.
    words.push(own);
    let level = compression_level(&line)?
        .map(|level| child::AddedVariable { name: ENV_COMPRESSION_LEVEL, value: level.to_string().into() });
    let host_linker = child::AddedVariable { name: ENV_HOST_LINKER, value: linker };
    let variables: Vec<_> = level.into_iter().chain([host_linker]).collect();
    Err(child::exec_with(context, &real, &words, &variables))
}

/// The prefix of an argument for the device links of all architectures.
const DEVICE_LINKER: &str = "--device-linker=";
/// The triple that clang-linker-wrapper 22 to 24 takes for AMD's GPUs; 24 names sub-architectures beside it.
const AMD_TRIPLE: &str = "amdgcn-amd-amdhsa";

/// HotSwap's arguments are for AMD's device links alone: CUDA objects of the same program are linked by `nvlink`.
fn for_amd_links(word: &OsStr) -> Option<OsString> {
    let own = word.to_str()?.strip_prefix(DEVICE_LINKER).filter(|own| is_ours(own.as_ref()))?;
    Some(format!("{DEVICE_LINKER}{AMD_TRIPLE}={own}").into())
}

fn own_host_linker() -> Result<PathBuf, Diagnostic> {
    let own = hotswap_files::own_program()?;
    let path = own.with_file_name("hotswap-host-link");
    match path.try_exists() {
        Ok(true) => Ok(path),
        Ok(false) => Err(Diagnostic::error(codes::NO_INSTALL, "no such file").in_file(path)),
        Err(error) => Err(Diagnostic::cannot_read(path, error)),
    }
}

/// The level of `--offload-compression-level`, by the argument or by the variable that the bundler reads.
fn compression_level(line: &CommandLine) -> Result<Option<i32>, Diagnostic> {
    let word = line.value_of(&["-compression-level", "--compression-level"]);
    level_of(word.or_else(|| std::env::var_os("OFFLOAD_BUNDLER_COMPRESSION_LEVEL")))
}

/// Reads a level; the real tool has rejected anything that is not a number already.
pub(crate) fn level_of(text: Option<OsString>) -> Result<Option<i32>, Diagnostic> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| bad_compression_level(&text))
}

fn bad_compression_level(text: &OsString) -> Diagnostic {
    Diagnostic::error(codes::BAD_CONFIG, format!("compression level `{}`", text.to_string_lossy()))
}

fn then_expand(
    context: &CallContext,
    real: &Path,
    line: &CommandLine,
    args: &[OsString],
    output: &Path,
) -> Result<u8, Diagnostic> {
    // Before the work: an unusable plan should not cost a link.
    let plan = context.plan(None)?;
    let level = compression_level(line)?;
    refuse_special_file(output)?;
    match write_fat_binary(context, real, args)? {
        0 => {}
        failed => return Ok(failed),
    }
    let bytes = hotswap_files::open_input(output)?;
    refuse_garbage(&bytes, output)?;
    if !hotswap_bundle::is_bundle(&bytes) {
        text_mark::mark_object(context, output)?;
    }
    let expansion = hotswap_pipeline::expand_bundle(&bytes, &plan, &context.text_findings()?, level)
        .map_err(|error| error.in_file(output))?;
    refused::report(context, &expansion.refused, output)?;
    check_request(context, &plan, expansion.bytes.as_deref().unwrap_or(&bytes), output)?;
    if let Some(new) = &expansion.bytes {
        check_accepted(new).map_err(|error| error.in_file(output))?;
        hotswap_files::replace_file(output, new)?;
    }
    warn_of_size(expansion.bytes.as_deref().unwrap_or(&bytes), output);
    report(context, &expansion, output).map(|()| 0)
}

/// The real tool's output; for the usual command of clang's bundler it is written here.
fn write_fat_binary(context: &CallContext, real: &Path, args: &[OsString]) -> Result<u8, Diagnostic> {
    if context.tool == Tool::Bundler
        && let Some(request) = BundleRequest::find(context, real, &CommandLine::new(args)?)
        && request.write()?
    {
        return Ok(0);
    }
    child::run(context, real, args)
}

/// The linker's own message would be about relocations, and say nothing of the fat binary.
pub(crate) fn warn_of_size(bytes: &[u8], output: &Path) {
    if hotswap_bundle::is_bundle(bytes) {
        size_warning(bytes.len() as u64).into_iter().for_each(|warning| say(warning.in_file(output)));
    }
}

/// From this size on, a host program of some size on either side is out of reach of 32-bit distances.
const FAR: u64 = 3 << 29;

fn size_warning(size: u64) -> Option<Diagnostic> {
    let what = format!("it has {size} bytes, and code and data on its two sides reach each other over 2 GiB at most");
    (size >= FAR).then(|| Diagnostic::warning(codes::TOO_FAR, what))
}

/// A fat binary that `hotswap verify` would reject is not written.
///
/// # Errors
/// [`codes::VERIFY_FAILED`] with the fault.
pub(crate) fn check_accepted(new: &[u8]) -> Result<(), Diagnostic> {
    let contents = hotswap_bundle::find_containers(new);
    let in_containers = contents.found.iter().flat_map(acceptance::container_errors);
    match contents.problems.iter().cloned().chain(in_containers).next() {
        None => Ok(()),
        Some(fault) => Err(Diagnostic { code: codes::VERIFY_FAILED, advice: None, ..fault }),
    }
}

/// The fat binary has what the command and the plan request. A GPU that only the link's arguments name, and that no object
/// was compiled for, is clang's own matter: a warning.
///
/// # Errors
/// [`codes::LACKS_GPU`] with the first target that is missing.
pub(crate) fn check_request(context: &CallContext, plan: &Plan, bytes: &[u8], output: &Path) -> Result<(), Diagnostic> {
    let missing = hotswap_pipeline::find_missing(bytes, &context.requested).map_err(|error| error.in_file(output))?;
    let targets = plan.targets();
    for MissingCode { target, is_requested, problem } in missing {
        let problem = problem.in_file(output);
        if is_requested || targets.contains(&target.processor.name) {
            return Err(problem);
        }
        say(Diagnostic { severity: Severity::Warning, ..problem });
    }
    Ok(())
}

/// The tools write a bundle, or (relocatable device code in the old driver) a host object with
/// sections for the bitcode. Anything else would reach the program as a fat binary without a target.
fn refuse_garbage(bytes: &[u8], output: &Path) -> Result<(), Diagnostic> {
    // ELF; COFF for x86-64 and AArch64, and its form for large objects.
    let objects: [&[u8]; 4] = [b"\x7fELF", b"\x64\x86", b"\x64\xaa", b"\x00\x00\xff\xff"];
    if hotswap_bundle::is_bundle(bytes) || objects.iter().any(|magic| bytes.starts_with(magic)) {
        return Ok(());
    }
    Err(Diagnostic::error(codes::MALFORMED, "the tool wrote neither a bundle nor an object").in_file(output))
}

/// Prints the warnings and writes the trace.
pub(crate) fn report(context: &CallContext, expansion: &Expansion, output: &Path) -> Result<(), Diagnostic> {
    for warning in &expansion.warnings {
        say(warning.clone().in_file(output));
    }
    let event = if expansion.bytes.is_some() { "expand" } else { "keep" };
    trace::step(context, event, output, json!({"derived": expansion.derived, "kept": expansion.kept}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fat_binary_of_some_gigabytes_is_a_warning_that_names_the_way_out() {
        assert_eq!(size_warning(1 << 30), None);
        let warning = size_warning(2_500_000_000).unwrap().to_string();
        assert!(warning.contains("HS0458") && warning.contains("--offload-compress"), "{warning}");
    }
}
