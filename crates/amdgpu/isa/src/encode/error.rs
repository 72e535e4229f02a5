//! Errors of encoding an instruction.

use crate::reg::Reg;
use crate::{Name, TableEntry};
use core::fmt;

/// The reason why an instruction cannot be encoded as requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncodeError {
    /// No row has this mnemonic in this encoding class.
    UnknownInstruction,
    /// Rows have it, but not for this target in this mode.
    NotOnTarget,
    /// The encoding lacks an operand or field of this name.
    NoSuchOperand(Name),
    /// A required operand was not set.
    Missing(Name),
    /// An operand that the encoding does not hold was set to a value other than the one it implies.
    Implied(Name),
    /// More operands than an instruction can have.
    TooMany,
    /// A register was passed where a number belongs, or a number where a register belongs.
    WrongSort(Name),
    /// The operand takes registers of another file, or not this one.
    NotInClass { name: Name, reg: Reg },
    /// The operand takes registers of another size.
    WrongSize {
        name: Name,
        /// Dwords that it takes.
        wanted: u8,
        /// Dwords of the register passed.
        found: u8,
    },
    /// The tuple is not aligned.
    Unaligned { name: Name, reg: Reg, multiple: u8 },
    /// The field has too few bits, or the value has bits that the field leaves out.
    OutOfRange {
        /// The operand or field.
        name: Name,
        value: u64,
        /// The bits that the field holds.
        bits: u64,
    },
    /// The number of a register or constant lacks an encoding on this target.
    NoEncoding(Name),
    /// No inline constant has this value, and the operand takes no literal.
    NotInline { name: Name, value: u64 },
    /// The operand, or the encoding on this target, takes no literal (of this size).
    LiteralNotAllowed(Name),
    /// Two operands have different literals; there is room for one.
    TwoLiterals(Name),
    /// Vector instructions read at most this many different scalar registers and literals.
    ConstantBus {
        limit: u8,
        /// The number that the operands need.
        found: u8,
    },
    /// Operands that must be the same register are not.
    Tied { name: Name, partner: Name },
    /// The result would be another instruction.
    OtherInstruction { wanted: TableEntry, found: TableEntry },
    /// The result would have another length, because a literal is added or removed.
    OtherLength { before: u8, after: u8 },
    /// The result does not decode.
    Undecodable,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownInstruction => out.write_str("no instruction of this name in this encoding class"),
            Self::NotOnTarget => out.write_str("the target does not have this instruction"),
            Self::NoSuchOperand(name) => write!(out, "no operand `{}`", name.as_str()),
            Self::Missing(name) => write!(out, "operand `{}` is missing", name.as_str()),
            Self::Implied(name) => write!(out, "operand `{}` is implied and has another value", name.as_str()),
            Self::TooMany => out.write_str("more operands than an instruction can have"),
            Self::WrongSort(name) => write!(out, "operand `{}` is no such thing", name.as_str()),
            Self::NotInClass { name, reg } => write!(out, "operand `{}` does not take {reg}", name.as_str()),
            Self::WrongSize { name, wanted, found } => {
                write!(out, "operand `{}` takes {wanted} dwords, not {found}", name.as_str())
            }
            Self::Unaligned { name, reg, multiple } => {
                write!(out, "operand `{}`: {reg} does not begin at a multiple of {multiple}", name.as_str())
            }
            Self::OutOfRange { name, value, bits } => {
                write!(out, "`{}`: {value:#x} does not fit the bits {bits:#x}", name.as_str())
            }
            Self::NoEncoding(name) => write!(out, "operand `{}` has no encoding on this target", name.as_str()),
            Self::NotInline { name, value } => {
                write!(out, "operand `{}` takes inline constants only, and {value:#x} is none", name.as_str())
            }
            Self::LiteralNotAllowed(name) => write!(out, "operand `{}` takes no such literal", name.as_str()),
            Self::TwoLiterals(name) => write!(out, "operand `{}` needs a second literal", name.as_str()),
            Self::ConstantBus { limit, found } => {
                write!(out, "{found} scalar registers and literals, and the constant bus has room for {limit}")
            }
            Self::Tied { name, partner } => {
                write!(out, "operand `{}` is not the register of `{}`", name.as_str(), partner.as_str())
            }
            Self::OtherInstruction { wanted, found } => {
                write!(out, "the result is {} instead of {}", found.mnemonic(), wanted.mnemonic())
            }
            Self::OtherLength { before, after } => {
                write!(out, "the length changes from {before} to {after} bytes")
            }
            Self::Undecodable => out.write_str("the result does not decode"),
        }
    }
}

impl core::error::Error for EncodeError {}
