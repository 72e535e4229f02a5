//! Reasons why a dispatch ended before its kernel did.

use crate::memory::MemoryFault;
use std::fmt;

/// A dispatch that ended before its kernel did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionFault {
    pub kind: FaultKind,
    /// The wave that met it.
    pub place: FaultPlace,
}

/// The reason of an [`ExecutionFault`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// The emulator does not know what the instruction does, in this form.
    UnknownInstruction {
        mnemonic: &'static str,
        bytes: Vec<u8>,
        /// The part that is not known, empty for the whole instruction.
        reason: &'static str,
    },
    /// Bytes that are not an instruction of the target.
    IllegalInstruction {
        /// The first of them.
        bytes: Vec<u8>,
    },
    /// The program counter is where no memory is, or not a multiple of 4.
    IllegalPc,
    /// An access to memory that is not valid.
    Memory(MemoryFault),
    /// An atomic access to an address that is not a multiple of its size.
    Misaligned {
        address: u64,
        /// Bytes of the access.
        size: u32,
    },
    /// An access beyond a lane's scratch.
    Scratch {
        /// Offset in the lane's scratch.
        offset: u64,
        /// Bytes of scratch that the lane has.
        size: u32,
    },
    /// A register that the wave does not have.
    Register { name: String },
    /// `s_trap`, as compiled from `abort()` and `__builtin_trap()`.
    Trap { number: u8 },
    /// The wave executed all instructions of its budget.
    BudgetExhausted,
    /// No wave of the work-group can go on: all wait at barriers that are not complete.
    Deadlock,
    /// A form of an instruction that this stepping does not execute as intended.
    SteppingTrap { mnemonic: &'static str, rule: &'static str },
    /// A register is read before the wait for the memory operation that fills it (late completion only).
    MissingWait {
        name: String,
        /// The instruction that reads it.
        mnemonic: &'static str,
    },
    /// Elements of a product of matrices that depend on the order of additions (where the device refuses them).
    Undetermined { mnemonic: &'static str, elements: u64 },
    /// The kernel's descriptor or the packet cannot be executed.
    Dispatch { reason: String },
    /// The caller asked for it, see [`EmulatedDevice::stop`](crate::EmulatedDevice::stop).
    Stopped,
}

/// Where a fault was met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultPlace {
    /// Address of the instruction.
    pub pc: u64,
    /// Lane of the access, where there is one.
    pub lane: Option<u32>,
    /// Number of the wave in its work-group.
    pub wave: u32,
    /// Number of the work-group in each dimension.
    pub workgroup: [u32; 3],
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownInstruction { mnemonic, bytes, reason } => {
                write!(f, "unknown instruction {mnemonic} ({})", Hex(bytes))?;
                if reason.is_empty() { Ok(()) } else { write!(f, ": {reason}") }
            }
            Self::IllegalInstruction { bytes } => write!(f, "bytes that are no instruction ({})", Hex(bytes)),
            Self::IllegalPc => f.write_str("the program counter is not at code"),
            Self::Memory(MemoryFault { address, size, is_write }) => {
                let access = if *is_write { "write" } else { "read" };
                write!(f, "invalid {access} of {size} bytes at 0x{address:x}")
            }
            Self::Misaligned { address, size } => {
                write!(f, "atomic access of {size} bytes at 0x{address:x}, which is not aligned")
            }
            Self::Scratch { offset, size } => {
                write!(f, "access at offset 0x{offset:x} of scratch, of which a lane has {size} bytes")
            }
            Self::Register { name } => write!(f, "{name} is a register that the wave does not have"),
            Self::Trap { number } => write!(f, "s_trap {number}"),
            Self::BudgetExhausted => f.write_str("the instruction budget is exhausted"),
            Self::Deadlock => f.write_str("all waves of the work-group wait at barriers"),
            Self::SteppingTrap { mnemonic, rule } => write!(f, "{mnemonic} does not run on this stepping: {rule}"),
            Self::MissingWait { name, mnemonic } => {
                write!(f, "{mnemonic} reads {name} before the wait for the memory operation that fills it")
            }
            Self::Undetermined { mnemonic, elements } => {
                write!(f, "{elements} elements of {mnemonic} depend on the order of additions, which is not known")
            }
            Self::Dispatch { reason } => f.write_str(reason),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

impl fmt::Display for ExecutionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FaultPlace { pc, lane, wave, workgroup: [x, y, z] } = self.place;
        write!(f, "{} at PC 0x{pc:x}, ", self.kind)?;
        if let Some(lane) = lane {
            write!(f, "lane {lane}, ")?;
        }
        write!(f, "wave {wave} of work-group ({x}, {y}, {z})")
    }
}

impl std::error::Error for ExecutionFault {}

/// Bytes in the order of addresses.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
