//! The scalar register file: one array for everything that a scalar operand can name.
//!
//! Invariants: numbers 0 to 127 are those of the encoding from gfx11 on, so tuples are contiguous. NULL reads as 0; what
//! is written to it goes to a slot that is never read.

use hotswap_isa::reg::{Reg, RegFile, Special};

/// Slots of the file.
pub(crate) const SCALAR_SLOTS: usize = 160;
pub(crate) const VCC: u8 = 106;
pub(crate) const TTMP: u8 = 108;
/// A register that always reads as 0.
pub(crate) const NULL: u8 = 124;
pub(crate) const M0: u8 = 125;
pub(crate) const EXEC: u8 = 126;
pub(crate) const SHARED_BASE: u8 = 128;
const SHARED_LIMIT: u8 = 130;
pub(crate) const PRIVATE_BASE: u8 = 132;
const PRIVATE_LIMIT: u8 = 134;
pub(crate) const FLAT_SCRATCH: u8 = 136;
pub(crate) const FLAT_SCRATCH_BASE: u8 = 138;
const XNACK_MASK: u8 = 140;
/// The first of sixteen slots that take what is written to NULL.
pub(crate) const DISCARD: u8 = 142;

/// Vector registers that a wave has: those for accumulation (CDNA) follow the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VectorLimits {
    pub(crate) vectors: u16,
    pub(crate) accumulators: u16,
}

impl VectorLimits {
    /// The number of a vector register in the wave's file.
    pub(crate) fn register_number(self, reg: Reg) -> Option<u16> {
        match reg.file {
            RegFile::Vgpr => Some(reg.index),
            RegFile::Agpr => Some(self.vectors + reg.index),
            _ => None,
        }
    }

    /// The last register of `reg` if it is beyond the limits.
    pub(crate) fn last_beyond_limit(self, reg: Reg) -> Option<Reg> {
        let limit = match reg.file {
            RegFile::Vgpr => self.vectors,
            RegFile::Agpr => self.accumulators,
            _ => return None,
        };
        let end = reg.index + u16::from(reg.count);
        (end > limit).then(|| Reg::new(reg.file, end - 1, 1))
    }

    /// Registers of both kinds.
    pub(crate) fn total_registers(self) -> u16 {
        self.vectors + self.accumulators
    }
}

/// A register as a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalarName {
    /// A slot, and the ones after it.
    Slot(u8),
    /// Whether VCC is 0.
    Vccz,
    /// Whether EXEC is 0.
    Execz,
    Scc,
}

/// The slot of a register that is read; `None` for those that the emulator does not have.
pub(crate) fn slot_of(reg: Reg) -> Option<ScalarName> {
    let slot = match (reg.file, reg.as_special()) {
        (RegFile::Sgpr, _) => u8::try_from(reg.index).ok()?,
        (RegFile::Ttmp, _) => TTMP + u8::try_from(reg.index).ok()?,
        // As a 64-bit source either number means the whole base (ROCm/rocm-systems #9405; `hotswap_isa` reads it so, too).
        (_, Some(Special::FlatScratchBaseHi)) if reg.count > 1 => FLAT_SCRATCH_BASE,
        (_, Some(special)) => return special_slot(special),
        _ => return None,
    };
    Some(ScalarName::Slot(slot))
}

fn special_slot(special: Special) -> Option<ScalarName> {
    let slot = match special {
        Special::VccLo => VCC,
        Special::VccHi => VCC + 1,
        Special::ExecLo => EXEC,
        Special::ExecHi => EXEC + 1,
        Special::M0 => M0,
        Special::Null => NULL,
        Special::SharedBase => SHARED_BASE,
        Special::SharedLimit => SHARED_LIMIT,
        Special::PrivateBase => PRIVATE_BASE,
        Special::PrivateLimit => PRIVATE_LIMIT,
        Special::FlatScratchLo => FLAT_SCRATCH,
        Special::FlatScratchHi => FLAT_SCRATCH + 1,
        Special::FlatScratchBaseLo => FLAT_SCRATCH_BASE,
        Special::FlatScratchBaseHi => FLAT_SCRATCH_BASE + 1,
        Special::XnackMaskLo => XNACK_MASK,
        Special::XnackMaskHi => XNACK_MASK + 1,
        Special::Vccz => return Some(ScalarName::Vccz),
        Special::Execz => return Some(ScalarName::Execz),
        Special::Scc => return Some(ScalarName::Scc),
        _ => return None,
    };
    Some(ScalarName::Slot(slot))
}

/// The initial file: apertures are set, everything else is 0.
pub(crate) fn initial_file(shared: u64, private: u64) -> [u32; SCALAR_SLOTS] {
    let mut file = [0; SCALAR_SLOTS];
    put_scalar_pair(SHARED_BASE, shared, &mut file);
    put_scalar_pair(SHARED_LIMIT, shared | 0xffff_ffff, &mut file);
    put_scalar_pair(PRIVATE_BASE, private, &mut file);
    put_scalar_pair(PRIVATE_LIMIT, private | 0xffff_ffff, &mut file);
    put_scalar_pair(FLAT_SCRATCH_BASE, private, &mut file);
    file
}

fn put_scalar_pair(slot: u8, value: u64, file: &mut [u32; 160]) {
    file[usize::from(slot)] = value as u32;
    file[usize::from(slot) + 1] = (value >> 32) as u32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_number_of_the_scratch_base_means_the_whole_base_as_64_bits() {
        let slot = |special, count| slot_of(Reg::special(special, count));
        let base = Some(ScalarName::Slot(FLAT_SCRATCH_BASE));
        assert_eq!(slot(Special::FlatScratchBaseLo, 2), base);
        assert_eq!(slot(Special::FlatScratchBaseHi, 2), base);
        assert_eq!(slot(Special::FlatScratchBaseLo, 1), base);
        assert_eq!(slot(Special::FlatScratchBaseHi, 1), Some(ScalarName::Slot(FLAT_SCRATCH_BASE + 1)));
    }
}
