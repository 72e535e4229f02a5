//! Bits that do not matter, as LLVM 23's assembler sets them.
//!
//! Unused sources of a vector instruction are the constant 0 from gfx10 on, so that the hardware does not wait for
//! scalar registers; the unused result of `v_cmpx` is EXEC; unused `op_sel_hi` bits are set. Everything else is 0.
//!
//! Invariant: only bits are set that are neither fixed nor part of a field.

use super::field::low_bits;
use crate::{Class, Feature, Flag, Isa, Name, Piece, TableEntry};

/// Constant 0 as a source.
const ZERO: u128 = 0x80;
/// EXEC as a result.
const EXEC: u128 = 0x7e;
/// Positions of the three sources, nine bits each.
const SOURCES: [u32; 3] = [32, 41, 50];
/// `op_sel_hi` of the three sources.
const OP_SEL_HI: [u32; 3] = [59, 60, 14];

/// The fixed bits of an entry with the bits that do not matter.
pub(super) fn initial_words(entry: TableEntry, isa: Isa) -> [u32; 5] {
    let (value, mask) = entry.fixed();
    let free = !(mask | field_bits(entry));
    let value = value | vector_bits(entry, isa, free) & free;
    core::array::from_fn(|word| value.checked_shr(32 * word as u32).unwrap_or(0) as u32)
}

/// The bits of all fields.
fn field_bits(entry: TableEntry) -> u128 {
    let mut bits = 0;
    entry.fields().for_each(|field| add_piece_bits(field.pieces, &mut bits));
    entry.slots().iter().for_each(|slot| add_piece_bits(slot.pieces(), &mut bits));
    bits
}

fn add_piece_bits(pieces: &[Piece], bits: &mut u128) {
    for piece in pieces {
        let ones = u128::from(low_bits(piece.width));
        *bits |= ones.checked_shl(u32::from(piece.at)).unwrap_or(0);
    }
}

fn vector_bits(entry: TableEntry, isa: Isa, free: u128) -> u128 {
    let mut bits = 0;
    let compare = entry.is(Flag::Vopc) || is_compare(entry);
    let plain = matches!(entry.class(), Some(Class::Vop3 | Class::Vop3p));
    let promoted_compare = compare && matches!(entry.class(), Some(Class::Vop3Dpp16 | Class::Vop3Dpp8));
    if isa.has(Feature::Gfx10Insts) && (plain || promoted_compare && !has_result(entry)) {
        for at in SOURCES {
            if free >> at & 0x1ff == 0x1ff {
                bits |= ZERO << at;
            }
        }
        if compare && !has_result(entry) && free & 0xff == 0xff {
            bits |= EXEC;
        }
    }
    // The halves that load scales keep their own source bits in the first eight bytes.
    if entry.class() == Some(Class::Vop3px2) && isa.has(Feature::Gfx10Insts) && free >> SOURCES[2] & 0x1ff == 0x1ff {
        bits |= ZERO << SOURCES[2];
    }
    bits | op_sel_hi(entry)
}

/// `op_sel_hi` of sources that the instruction does not have; all three where it lacks such an operand.
fn op_sel_hi(entry: TableEntry) -> u128 {
    let names_b_format =
        [Name::MatrixBFmt, Name::MatrixBScale, Name::MatrixBReuse].iter().any(|name| entry.slot(*name).is_some());
    let reads_accumulators = matches!(entry.mnemonic(), "v_accvgpr_read_b32" | "v_accvgpr_write_b32");
    if !(entry.is(Flag::Vop3p) || reads_accumulators) || names_b_format {
        return 0;
    }
    let used = match entry.slot(Name::OpSelHi) {
        None => 0,
        Some(_) if entry.slot(Name::Src2).is_some() => 3,
        Some(_) if entry.slot(Name::Src1).is_some() => 2,
        Some(_) => 1,
    };
    OP_SEL_HI.iter().skip(used).fold(0, |bits, at| bits | 1 << at)
}

fn is_compare(entry: TableEntry) -> bool {
    entry.mnemonic().starts_with("v_cmpx_")
}

fn has_result(entry: TableEntry) -> bool {
    entry.slots().iter().any(|slot| slot.written)
}
