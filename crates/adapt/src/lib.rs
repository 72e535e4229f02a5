//! Makes a code object for another stepping: finds what the target does otherwise, asks the families, lays the code out
//! anew, and checks the result.
//!
//! Terms: a *site* is an instruction that concerns some family. What stands in its place uses registers that are free
//! there (*scratch*).
//!
//! Invariants: what concerns no family comes through untouched, whatever is unknown around it; what does and is not
//! understood is a refusal that names it, and all refusals of an object come at once; the result depends on the input
//! alone; adapting a result changes nothing.
//!
//! Absent on purpose: what to put in place of a site (`hotswap-families`), how code is laid out (`hotswap-rewrite`),
//! which pairs are allowed (`hotswap-compat`), containers and files.

mod bank_cursor;
mod body;
mod callers;
mod certificate;
mod changes;
mod engine;
mod half_mode;
mod kernel_registers;
mod liveness_cursor;
mod neighbours;
mod order;
mod prepared;
mod reach;
mod refusal;
mod scan;
mod site_context;
mod sites;
mod spill;
mod unit;
mod unnamed;
mod verify;
mod waitcnt;

pub use order::{Adapted, Change, FunctionRecord, KernelRecord, ObjectRecord, Order, SiteCount, SpillCount};
pub use prepared::Prepared;

use hotswap_code_object::CodeObject;
use hotswap_report::Diagnostic;

/// Makes `data`, one device ELF (relocatable, or linked), for the target of the order.
///
/// With nothing to do for any family only the label changes; with [`Order::keep_machine`] not even that.
///
/// # Errors
/// All refusals, by section and offset, each with function or kernel, section and offset, source line where the file has
/// one, mnemonic, family, reason and advice; at most [`MOST_REFUSALS`], and one more that says how many are left out.
pub fn adapt(data: &[u8], order: &Order) -> Result<Adapted, Vec<Diagnostic>> {
    let one = |error: Diagnostic| vec![error];
    let object = CodeObject::parse(data).map_err(one)?;
    prepare(object, order)?.finish().map_err(one)
}

/// As [`adapt`], for who writes large files: what stays of the input is not copied, and what was written is to be checked by
/// [`Prepared::check`].
///
/// # Errors
/// As [`adapt`].
pub fn prepare<'a>(object: CodeObject<'a>, order: &Order) -> Result<Prepared<'a>, Vec<Diagnostic>> {
    engine::prepare(object, order)
}

/// More refusals than this are counted only.
pub const MOST_REFUSALS: usize = 100;
