//! Which instructions the emulator knows, by target: for documentation and tests.
//!
//! Invariants: an instruction counts as known if a plan for its mnemonic exists. Single forms of it may still be refused, by
//! name, when they are met.

use crate::device::{EmulatedDevice, UnknownDevice};
use crate::translate;
use hotswap_isa::{Class, Isa, TableEntry};
use std::collections::BTreeMap;

/// The mnemonics of a processor, and whether the emulator knows them.
///
/// # Errors
/// For names that are not a processor of gfx9 to gfx12.5.
pub fn known_mnemonics(gpu: &str) -> Result<BTreeMap<&'static str, bool>, UnknownDevice> {
    let isa = EmulatedDevice::new(gpu)?.isa();
    let mut known = BTreeMap::new();
    for entry in TableEntry::all_entries().filter(|entry| entry.available(isa)) {
        // A pair of halves is an instruction of its own.
        let is_dual = matches!(entry.class(), Some(Class::Vopd | Class::Vopd3));
        let name = if is_dual { entry.template() } else { entry.mnemonic() };
        *known.entry(name).or_insert(true) &= is_known(entry, isa);
    }
    Ok(known)
}

fn is_known(entry: TableEntry, isa: Isa) -> bool {
    match entry.class() {
        Some(Class::Vopd | Class::Vopd3) => translate::knows_both_halves(entry),
        _ => translate::knows_mnemonic(entry.mnemonic(), isa),
    }
}
