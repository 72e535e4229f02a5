//! Default values of omitted operands.
//!
//! Invariant: an operand has a usual value if LLVM's assembler prints nothing for it.

use super::field::low_bits;
use crate::kind::{Decode, OperandType};
use crate::{Name, Slot, TableEntry};

/// The value of an operand when it is omitted; `None` if it is required.
pub(super) fn usual(entry: TableEntry, slot: &Slot) -> Option<u64> {
    let kind = slot.operand_kind();
    let held = slot.pieces().iter().fold(0, |held, piece| held | low_bits(piece.width) << piece.from.min(63));
    if kind.operand_type == OperandType::InputMods {
        // `op_sel_hi` of packed operands, which is usually set.
        return Some(if entry.slot(Name::OpSelHi).is_some() { 8 & held } else { 0 });
    }
    match slot.name {
        Name::OpSelHi => Some(held),
        Name::Fi if kind.decode == Decode::Dpp8FetchInvalid => Some(0xe9),
        Name::DstSel | Name::Src0Sel | Name::Src1Sel => Some(6),
        Name::DstUnused => Some(2),
        Name::RowMask | Name::BankMask => Some(15),
        Name::A16
        | Name::Abid
        | Name::Bitop3
        | Name::Blgp
        | Name::BoundCtrl
        | Name::ByteSel
        | Name::Cbsz
        | Name::Clamp
        | Name::Compr
        | Name::Cpol
        | Name::D16
        | Name::Da
        | Name::Fi
        | Name::Gds
        | Name::High
        | Name::IndexKey8bit
        | Name::IndexKey16bit
        | Name::IndexKey32bit
        | Name::IsAsync
        | Name::Lwe
        | Name::MatrixAFmt
        | Name::MatrixAReuse
        | Name::MatrixAScale
        | Name::MatrixAScaleFmt
        | Name::MatrixBFmt
        | Name::MatrixBReuse
        | Name::MatrixBScale
        | Name::MatrixBScaleFmt
        | Name::NegHi
        | Name::NegLo
        | Name::Offset
        | Name::Offset0
        | Name::Offset1
        | Name::Omod
        | Name::OpSel
        | Name::R128
        | Name::ScaleSel
        | Name::Swz
        | Name::Tfe
        | Name::Unorm
        | Name::Vm
        | Name::Waitexp
        | Name::Waitvdst
        | Name::Waitvsrc => Some(0),
        _ => None,
    }
}
