//! Rewrites a code object for another stepping: finds the instructions that behave differently on the target, runs the
//! families on them, lays out the code again, and checks the result.
//!
//! [`pipeline`] has the phases in their order, each one function:
//!
//! | phase | in |
//! |---|---|
//! | prescan: candidates, from the bytes alone | [`prescan`] |
//! | analyse: programs, kernels and the registers they have | `hotswap-program`, [`registers`] |
//! | select: families give new code, or refuse | [`select`], [`refusal`] |
//! | layout, emit: edits, counts of registers, the file | [`changes`], [`registers`], [`record`], `hotswap-rewrite` |
//! | verify: the file is read again and compared | [`verify`], [`certificate`] |
//! | label: header and note name the target | [`prepared`] |
//!
//! Terms: a *site* is an instruction that concerns some family. Its replacement uses registers that are free there
//! (*scratch*).
//!
//! Invariants: code that concerns no family is never changed, whatever is unknown around it. Code that concerns one and
//! is not understood is refused with a message that names it, and all refusals of an object are reported together. The
//! result depends on the input alone. Adapting a result changes nothing.
//!
//! Not here: the replacement of a site (`hotswap-families`), the layout of code (`hotswap-rewrite`), the permitted
//! pairs (`hotswap-compat`), containers and files.

mod certificate;
mod changes;
mod config;
mod order;
mod pipeline;
mod prepared;
mod prescan;
mod record;
mod refusal;
mod registers;
mod select;
mod verify;

pub use order::{
    AdaptRequest, AdaptedObject, FunctionRecord, KernelRecord, NumberChange, ObjectRecord, SiteCount, SpillCount,
};
pub use prepared::PreparedObject;

use hotswap_code_object::{CodeObject, SystemSgprShift};
use hotswap_report::Diagnostic;

/// Makes `data`, one device ELF (relocatable, or linked), for the target of the order.
///
/// If no family has work to do, only the label changes. With [`AdaptRequest::keep_machine`] not even that does.
///
/// # Errors
/// All refusals, by section and offset, each with function or kernel, section and offset, source line if the file has
/// one, mnemonic, family, reason and advice. At most [`MOST_REFUSALS`] are reported, and one more that gives the
/// number of the rest.
pub fn adapt_object(data: &[u8], order: &AdaptRequest) -> Result<AdaptedObject, Vec<Diagnostic>> {
    adapt_parsed(&CodeObject::parse(data).map_err(single_diagnostic_list)?, order)
}

/// [`adapt_object`] for a code object that was parsed already.
///
/// # Errors
/// The same as those of [`adapt_object`].
pub fn adapt_parsed(object: &CodeObject<'_>, order: &AdaptRequest) -> Result<AdaptedObject, Vec<Diagnostic>> {
    pipeline::run_phases(object.clone(), order)?.finish(order).map_err(single_diagnostic_list)
}

/// Makes a linked code object whose kernels `shifts` read their system SGPRs from registers in which the target of
/// the order does not put them, for that target: new code at their entries copies the registers.
///
/// # Errors
/// A file that cannot be laid out with the new code, and a kernel whose entry is unknown.
pub fn copy_system_sgprs(
    object: &CodeObject<'_>,
    shifts: &[SystemSgprShift],
    order: &AdaptRequest,
) -> Result<AdaptedObject, Vec<Diagnostic>> {
    pipeline::copy_at_entries(object, shifts, order)?.finish(order).map_err(single_diagnostic_list)
}

fn single_diagnostic_list(error: Diagnostic) -> Vec<Diagnostic> {
    vec![error]
}

/// Like [`adapt`], for callers that write large files: unchanged parts of the input are not copied, and the written
/// file must be checked with [`Prepared::check`].
///
/// # Errors
/// The same as those of [`adapt`].
pub fn prepare_object<'a>(object: CodeObject<'a>, order: &AdaptRequest) -> Result<PreparedObject<'a>, Vec<Diagnostic>> {
    pipeline::run_phases(object, order)?.prepare(order).map_err(single_diagnostic_list)
}

/// The most refusals that are reported. Further ones are only counted.
pub const MOST_REFUSALS: usize = 100;
