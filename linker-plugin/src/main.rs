//! The device-link interposer: one binary that replaces four tools of a HIP build.
//!
//! Clang looks for `lld`, `ld.lld`, `clang-offload-bundler` and `clang-linker-wrapper` in `COMPILER_PATH` first, in
//! every driver mode; `hotswap-clang` puts our directory there when a build has a plan. Depending on its name, the binary
//! - checks the output of a device link against the plan ([`device_link`]),
//! - separates the counters of several sources where clang 22 does not ([`counter_names`]),
//! - adds the plan's targets to a fat binary that was just written ([`fat_binary`]), by clang's bundler or here ([`own_bundle`]),
//! - does the same to the fat binary of relocatable device code, before the host link ([`host_link`]).
//!
//! Invariants: without a plan (and without such counters) it is one `exec` of the real tool. It exits with 0 to 125 and
//! never by a signal, because clang takes those for a crash of its own (clang 23 aborts). A file of clang's is replaced
//! as a whole or not at all; data may be appended to a device link's output, whose bytes stay unchanged.
//!
//! Absent on purpose: searching for tools by starting clang; everything about code objects (`hotswap-pipeline` does it,
//! as for the `hotswap` command).
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod child;
mod companion;
mod context;
mod counter_names;
mod device_code;
mod device_link;
mod exchange;
mod fat_binary;
mod host_link;
mod linker;
mod message;
mod openmp;
mod own_bundle;
mod refused;
mod skipped_link;
mod text_mark;
mod tool;
mod trace;
mod unit_images;
mod words;

use context::CallContext;
use hotswap_plan::unknown_variables;
use hotswap_plan::words::ENV_ACTIVE;
use hotswap_report::{Diagnostic, codes};
use std::env;
use std::ffi::OsString;
use std::panic::{self, UnwindSafe};
use std::process::ExitCode;
use tool::Tool;

fn main() -> ExitCode {
    hotswap_files::end_on_truncated_input("hotswap-lld");
    ExitCode::from(catching(run).unwrap_or_else(|diagnostic| {
        message::say(&diagnostic);
        diagnostic.code.exit
    }))
}

/// The result of a run; a panic becomes one line like every other error.
fn catching(run: impl FnOnce() -> Result<u8, Diagnostic> + UnwindSafe) -> Result<u8, Diagnostic> {
    panic::set_hook(Box::new(|_| {}));
    panic::catch_unwind(run).unwrap_or_else(|cause| Err(internal(cause.as_ref())))
}

fn run() -> Result<u8, Diagnostic> {
    let mut args = env::args_os();
    let tool = Tool::from_name(&args.next().unwrap_or_default())?;
    let args: Vec<OsString> = args.collect();
    let context = CallContext::from_env(tool)?;
    warn_of_unknown_variables(tool);
    match tool {
        Tool::Lld | Tool::LdLld => device_link::run(&context, &args),
        Tool::Bundler => fat_binary::bundler(&context, &args),
        Tool::LinkerWrapper => fat_binary::linker_wrapper(&context, &args),
        Tool::OffloadBinary | Tool::OffloadPackager => text_mark::packager(&context, &args),
        Tool::HostLinker => host_link::run(&context, &args),
    }
}

/// Below the wrapper, which has warned already, nothing is said again. Where `COMPILER_PATH` was set by hand, the tools that run once
/// for each command say it, and not the device links, which run once for each GPU.
fn warn_of_unknown_variables(tool: Tool) {
    let runs_once = matches!(tool, Tool::Bundler | Tool::LinkerWrapper);
    if runs_once && env::var_os(ENV_ACTIVE).is_none() {
        unknown_variables(env::vars_os().map(|(name, _)| name)).iter().for_each(message::say);
    }
}

fn internal(cause: &(dyn std::any::Any + Send)) -> Diagnostic {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("no message");
    Diagnostic::error(codes::INTERNAL, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_with_70() {
        let failed = catching(|| panic!("number {}", 5)).unwrap_err();
        let _ = panic::take_hook();
        assert_eq!((failed.code.exit, failed.what.as_str()), (70, "number 5"));
    }
}
