//! The table of all operations.

use crate::atomic::{self, AtomicRow};
use crate::compare::{self, CompareRow};
use crate::lanes::VectorRow;
use crate::packed::{self, PackedRow};
use crate::scalar::{self, ScalarRow};
use crate::source::MeaningSource;
use crate::{convert, double, half, integer, single, small_float, transcendental, wide};

/// The computation of an instruction.
#[derive(Debug, Clone, Copy)]
pub enum InstSemantics {
    /// In each lane on its own.
    Vector(&'static VectorRow),
    /// In each lane, twice.
    Packed(&'static PackedRow),
    /// A comparison in each lane.
    Compare(CompareRow),
    Scalar(&'static ScalarRow),
    Atomic(&'static AtomicRow),
}

/// The tables of vector instructions.
const VECTOR: &[&[VectorRow]] = &[
    integer::ROWS,
    wide::ROWS,
    single::ROWS,
    half::ROWS,
    double::ROWS,
    convert::ROWS,
    small_float::ROWS,
    transcendental::ROWS,
];

/// The meaning of the instruction `mnemonic`, if it is known. For a start-up table; not for use while code runs.
pub fn find_meaning(mnemonic: &str) -> Option<InstSemantics> {
    let vector =
        || VECTOR.iter().copied().flatten().find(|row| row.names.contains(&mnemonic)).map(InstSemantics::Vector);
    vector()
        .or_else(|| find_packed_meaning(mnemonic))
        .or_else(|| scalar::ROWS.iter().find(|row| row.names.contains(&mnemonic)).map(InstSemantics::Scalar))
        .or_else(|| find_compare_meaning(mnemonic))
        .or_else(|| find_atomic_meaning(mnemonic))
}

fn find_packed_meaning(mnemonic: &str) -> Option<InstSemantics> {
    packed::ROWS.iter().find(|row| row.name == mnemonic).map(InstSemantics::Packed)
}

fn find_atomic_meaning(mnemonic: &str) -> Option<InstSemantics> {
    atomic::find_atomic(mnemonic).map(InstSemantics::Atomic)
}

fn find_compare_meaning(mnemonic: &str) -> Option<InstSemantics> {
    compare::find_comparison(mnemonic).map(InstSemantics::Compare)
}

/// The names of all operations with their evidence.
pub fn evidence_rows() -> impl Iterator<Item = (&'static str, MeaningSource)> {
    let vector = VECTOR.iter().copied().flatten().flat_map(|row| row.names.iter().map(|name| (*name, row.evidence)));
    let packed = packed::ROWS.iter().map(|row| (row.name, row.evidence));
    let scalar = scalar::ROWS.iter().flat_map(|row| row.names.iter().map(|name| (*name, row.evidence)));
    vector.chain(packed).chain(scalar)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_isa::TableEntry;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_occurs_once_and_is_an_instruction() {
        let known: BTreeSet<&str> = TableEntry::all_entries().map(TableEntry::mnemonic).collect();
        let mut seen = BTreeSet::new();
        for (name, _) in evidence_rows() {
            assert!(seen.insert(name), "{name} has two rows");
            assert!(known.contains(name), "{name} is no instruction");
        }
        assert!(seen.len() > 500, "{}", seen.len());
    }
}
