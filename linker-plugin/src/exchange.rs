//! Device functions that a link exports to other code objects, or imports from them: the words that it gets for that, and the
//! check of what it made.
//!
//! An export is kept although nothing in the link may use it, and no step of the compiler takes it for a function of this code
//! object alone. An import is a stub (`hotswap_device_link::import_stub`), from which the linker takes what the inputs refer to.
//!
//! Invariant: a link without exports and imports gets no other word.
//!
//! Absent on purpose: which library provides an import, which is known when code objects are loaded.

use crate::linker::{LinkedFile, input_files};
use crate::words::{CommandLine, in_memory};
use hotswap_device_link::{check_exports, check_imports, import_stub};
use hotswap_plan::Plan;
use hotswap_report::{Diagnostic, codes};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Words with which the compiler takes every function for one of this code object alone.
const INTERNALIZE: [&str; 2] = ["-plugin-opt=-amdgpu-internalize-symbols", "--plugin-opt=-amdgpu-internalize-symbols"];
/// With this word the linker refuses the words of imports; what else is undefined is checked afterwards.
const NO_UNDEFINED: &str = "--no-undefined";

/// The words of a link for its exports and imports.
#[derive(Default)]
pub(crate) struct LinkExchange {
    /// At the end of the command line.
    pub(crate) more: Vec<OsString>,
    /// Words that the linker does not get.
    pub(crate) left_out: Vec<&'static str>,
    /// The stubs, which children inherit; closed when this is dropped.
    _stubs: Vec<File>,
}

impl LinkExchange {
    /// The words that the plan requests for this link.
    ///
    /// # Errors
    /// `NOT_EXPORTED` for imports of a link of bitcode alone, and for processors without stubs.
    pub(crate) fn new(plan: &Plan, line: &CommandLine<'_>, output: &Path) -> Result<Self, Diagnostic> {
        let mut exchange = Self::default();
        if plan.device_exports.is_empty() && plan.device_imports.is_empty() {
            return Ok(exchange);
        }
        exchange.left_out.extend(INTERNALIZE);
        exchange.more.extend(plan.device_exports.iter().map(|name| OsString::from(format!("--undefined={name}"))));
        if !plan.device_imports.is_empty() {
            exchange.left_out.push(NO_UNDEFINED);
            exchange.add_stubs(&plan.device_imports, line, output).map_err(|error| error.in_file(output))?;
        }
        Ok(exchange)
    }

    /// Stubs are like members of an archive: the linker takes those that something refers to.
    fn add_stubs(&mut self, names: &BTreeSet<String>, line: &CommandLine<'_>, output: &Path) -> Result<(), Diagnostic> {
        let files = input_files(line, output)?;
        let inputs = files.iter().flat_map(LinkedFile::link_inputs);
        let Some(like) = inputs.into_iter().next() else {
            let what = "the link has no object with machine code, so that it cannot import functions";
            return Err(not_exported_error(what).advise(
                "compile one of its sources with -fgpu-rdc -fno-offload-lto (clang 23 and later), or link the functions instead of importing them",
            ));
        };
        self.more.push("--start-lib".into());
        for name in names {
            let stub = import_stub(name, like.bytes)
                .ok_or_else(|| not_exported_error(&format!("`{name}` cannot be imported by {}", like.name)))?;
            let file = in_memory(&stub).map_err(|error| Diagnostic::error(codes::CANNOT_WRITE, error.to_string()))?;
            self.more.push(format!("/proc/self/fd/{}", file.as_raw_fd()).into());
            self._stubs.push(file);
        }
        self.more.push("--end-lib".into());
        Ok(())
    }
}

fn not_exported_error(what: &str) -> Diagnostic {
    Diagnostic::error(codes::NOT_EXPORTED, what)
}

/// Checks the linked file: exports are there, imports are not, and nothing else is undefined where the
/// command line forbids that.
///
/// # Errors
/// `NOT_EXPORTED` with the name.
pub(crate) fn check_exchange(plan: &Plan, line: &CommandLine<'_>, linked: &[u8]) -> Result<(), Diagnostic> {
    if plan.device_exports.is_empty() && plan.device_imports.is_empty() {
        return Ok(());
    }
    check_exports(linked, &plan.device_exports)?;
    if plan.device_imports.is_empty() {
        return Ok(());
    }
    check_imports(linked, &plan.device_imports, line.leaves_out(NO_UNDEFINED))
}
