//! Expressions of locations: addresses in them.
//!
//! An address that is converted to another address space (`…, space, DW_OP_swap, DW_OP_xderef`) is an offset in LDS or
//! scratch and is left unchanged.

use super::DebugTargets;
use crate::refuse_layout;
use crate::tables::place_of;
use gimli::{EndianSlice, Expression, LittleEndian, Operation};
use hotswap_report::Diagnostic;

/// DWARF 5, 8-byte addresses: of these, operations only need the width of an address and of a reference.
fn expression_encoding(width: usize) -> gimli::Encoding {
    let format = if width == 8 { gimli::Format::Dwarf64 } else { gimli::Format::Dwarf32 };
    gimli::Encoding { address_size: 8, format, version: 5 }
}

/// An operation with its place in the expression.
struct PlacedOperation<'e> {
    at: usize,
    operation: Operation<EndianSlice<'e, LittleEndian>>,
}

/// Records the addresses in an expression whose first byte is at `offset` of a section, and whose references have this
/// width. Returns indices of `.debug_addr` that are addresses of other spaces.
///
/// # Errors
/// `NO_LAYOUT` for unknown operations, if they may contain an address of code.
pub(super) fn record_addresses(
    source: &DebugTargets<'_>,
    (section, width): (usize, usize),
    offset: u64,
    bytes: &[u8],
) -> Result<Vec<u64>, Diagnostic> {
    if !source.is_bare(section) {
        return Ok(Vec::new());
    }
    let expression = Expression(EndianSlice::new(bytes, LittleEndian));
    let mut operations = expression.operations(expression_encoding(width));
    let mut found: Vec<PlacedOperation<'_>> = Vec::new();
    loop {
        let at = operations.offset_from(&expression);
        match operations.next() {
            Ok(Some(operation)) => found.push(PlacedOperation { at, operation }),
            Ok(None) => break,
            Err(_) if may_hold_address(source, &bytes[at.min(bytes.len())..]) => {
                let file = source.image.sections[section].offset + offset + at as u64;
                return Err(refuse_layout(
                    file,
                    "a location in the debug information has an operation that is not known",
                )
                .advise("link without debug information (-Wl,--strip-debug), or report it with the file"));
            }
            Err(_) => break,
        }
    }
    let mut foreign = Vec::new();
    for (number, PlacedOperation { at, operation }) in found.iter().enumerate() {
        let is_foreign = matches!(
            found.get(number + 2..number + 4),
            Some([
                PlacedOperation { operation: Operation::Swap, .. },
                PlacedOperation { operation: Operation::Deref { space: true, .. }, .. }
            ])
        );
        match operation {
            Operation::Address { address } if !is_foreign => {
                source.record_address(section, offset + *at as u64 + 1, *address);
            }
            Operation::AddressIndex { index } if is_foreign => foreign.push(index.0 as u64),
            _ => {}
        }
    }
    Ok(foreign)
}

/// Whether one of the bytes could begin an operation with an address of something loaded.
fn may_hold_address(source: &DebugTargets<'_>, bytes: &[u8]) -> bool {
    let addresses = bytes.windows(9).filter(|window| window[0] == gimli::DW_OP_addr.0);
    addresses.filter_map(|window| window[1..].first_chunk()).any(|address| {
        let address = u64::from_le_bytes(*address);
        address > 1 && place_of(source.image, address).is_some()
    })
}
