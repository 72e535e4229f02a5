//! The VGPR bank mode of gfx12.5: which 256 of the 1,024 VGPRs an operand's 8-bit number means.
//!
//! The mode is state of the wave, not of the instruction, so the caller threads it through: [`VgprBanks::after`]
//! along a path, [`VgprBanks::join`] where paths meet, [`VgprBanks::bank`] to read an operand. The immediate of
//! `s_set_vgpr_msb` has two bits for each role, source 0 lowest, destination highest, and above them the mode that
//! was in force before; MODE\[19:12\] has the same bits rotated left by two.
//!
//! Invariants: a role is either known or not, never guessed; at the entry of a kernel everything is bank 0.
//! Scale operands of WMMA lack a role: the hardware reads them from bank 0 in every mode.
//!
//! Absent on purpose: the control flow. After a call every role is unknown here; the calling convention of LLVM
//! (all banks 0 at entry and return) is the caller's to assume with [`VgprBanks::ENTRY`].

use crate::reg::{Reg, RegFile};
use crate::{Class, Feature, Flag, Inst, Isa, Name};

/// Number of MODE in the operand of `s_setreg`.
const HWREG_MODE: u32 = 1;
/// The highest four bits of SOPP, SOPK and SOP1.
const CHANGES: u32 = 0b1011;
/// Lowest bit of the banks in MODE.
const MODE_SHIFT: u32 = 12;

/// The bank-mode role of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum BankRole {
    /// The first source, or the address.
    Source0,
    /// Second source, first data operand.
    Source1,
    /// Third source, second data operand.
    Source2,
    Destination,
}

impl BankRole {
    /// All roles, in the order of their bits in `s_set_vgpr_msb`.
    pub const ALL: [Self; 4] = [Self::Source0, Self::Source1, Self::Source2, Self::Destination];

    const fn bits(self) -> u8 {
        3 << (2 * self as u8)
    }
}

/// The mode at one point of a program, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct VgprBanks {
    /// As the low byte of `s_set_vgpr_msb`; unknown roles have 0.
    value: u8,
    /// Both bits of each role that is known.
    known: u8,
    /// The instruction before was an `s_setreg` of MODE, after which gfx1250 may drop an `s_set_vgpr_msb`.
    after_setreg: bool,
}

impl VgprBanks {
    /// At the entry of a kernel: bank 0 for every role.
    pub const ENTRY: Self = Self::of_mode(0);
    pub const UNKNOWN: Self = Self { value: 0, known: 0, after_setreg: false };

    /// The mode that the low byte of `s_set_vgpr_msb` sets.
    #[must_use]
    pub const fn of_mode(mode: u8) -> Self {
        Self { value: mode, known: 0xff, after_setreg: false }
    }

    /// The mode as the low byte of `s_set_vgpr_msb`, if every role is known.
    #[must_use]
    pub const fn mode(self) -> Option<u8> {
        if self.known == 0xff { Some(self.value) } else { None }
    }

    /// The bank of a role, 0 to 3, if it is known.
    #[must_use]
    pub const fn bank(self, role: BankRole) -> Option<u8> {
        if self.known & role.bits() == 0 { None } else { Some(self.value >> (2 * role as u8) & 3) }
    }

    /// Whether some role is known to have another bank than the first.
    #[inline]
    pub(crate) const fn any_beyond(self) -> bool {
        self.value != 0
    }

    /// Where two paths meet: a role on which they disagree is unknown.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        let mut known = self.known & other.known;
        for role in BankRole::ALL {
            if (self.value ^ other.value) & role.bits() != 0 {
                known &= !role.bits();
            }
        }
        Self { value: self.value & known, known, after_setreg: self.after_setreg || other.after_setreg }
    }

    /// The mode after an instruction that neither changes modes nor calls.
    #[must_use]
    pub const fn after_other(self) -> Self {
        Self { after_setreg: false, ..self }
    }

    /// Whether an instruction that begins with this word may change the mode, or call.
    #[inline]
    #[must_use]
    pub const fn may_change(word: u32) -> bool {
        word >> 28 == CHANGES
    }

    /// The mode after `inst`, on the fall-through path.
    #[inline]
    #[must_use]
    pub fn mode_after(self, inst: &Inst, isa: Isa) -> Self {
        if !isa.has(Feature::N1024AddressableVgprs) {
            return self;
        }
        // The fast path: instructions that change the mode or call have one of the scalar encodings with this prefix.
        if !Self::may_change(inst.words()[0]) {
            return self.after_other();
        }
        self.after_scalar(inst, isa)
    }

    fn after_scalar(self, inst: &Inst, isa: Isa) -> Self {
        if inst.entry().is(Flag::Call) {
            return Self::UNKNOWN;
        }
        let before = self.after_other();
        match ModeChange::of(inst) {
            None => before,
            Some(ModeChange::Banks(mode)) if self.after_setreg => before.join(Self::of_mode(mode)),
            Some(ModeChange::Banks(mode)) => Self::of_mode(mode),
            Some(ModeChange::Mode(part)) => before.after_setreg(&part, isa),
        }
    }

    /// For gfx1250, LLVM 23 states that the hardware takes bits 19:12 of the immediate regardless of the field; older
    /// rewriters apply the field only. Where the two differ, the result is unknown.
    fn after_setreg(self, part: &ModePart, isa: Isa) -> Self {
        let by_field = self.with_mode(part.field());
        let result = match isa.has(Feature::SetregVgprMsbFixup) {
            true => by_field.join(self.with_mode(part.all_bank_bits())),
            false => by_field,
        };
        Self { after_setreg: true, ..result }
    }

    /// The mode after bits of MODE are set, to a value that may be unknown.
    fn with_mode(self, WrittenBits { mask: set, value }: WrittenBits) -> Self {
        let set = rotated_mode_bits(set);
        let mut result = self;
        for role in BankRole::ALL {
            match value {
                _ if set & role.bits() == 0 => {}
                // Setting half of a role leaves the other half unchanged, known or not.
                Some(_) if set & role.bits() == role.bits() => result.known |= role.bits(),
                Some(_) => {}
                None => result.known &= !role.bits(),
            }
        }
        let value = value.map_or(0, rotated_mode_bits);
        result.value = (self.value & !set | value & set) & result.known;
        result
    }

    /// The physical register for `reg`, as encoded, in an operand with this role. `None` where the bank is not known.
    /// Registers other than VGPRs and operands without a role are returned unchanged.
    #[must_use]
    pub fn resolve_register(self, reg: Reg, role: Option<BankRole>) -> Option<Reg> {
        match (reg.file, role) {
            (RegFile::Vgpr, Some(role)) => {
                let bank = self.bank(role)?;
                Some(Reg { index: reg.index + 256 * u16::from(bank), ..reg })
            }
            _ => Some(reg),
        }
    }
}

/// Left by two in MODE: the destination is lowest there.
fn rotated_mode_bits(bits: u32) -> u8 {
    ((bits >> MODE_SHIFT) as u8).rotate_right(2)
}

impl Default for VgprBanks {
    fn default() -> Self {
        Self::ENTRY
    }
}

impl core::fmt::Debug for VgprBanks {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [source0, source1, source2, destination] = BankRole::ALL.map(|role| self.bank(role));
        formatter
            .debug_struct("VgprBanks")
            .field("source0", &source0)
            .field("source1", &source1)
            .field("source2", &source2)
            .field("destination", &destination)
            .finish()
    }
}

/// The mode that was in force before `inst`, an `s_set_vgpr_msb`, according to its immediate.
#[must_use]
pub fn previous_mode(inst: &Inst) -> Option<u8> {
    (inst.mnemonic() == "s_set_vgpr_msb").then(|| inst.raw(Name::Simm16).map(|immediate| (immediate >> 8) as u8))?
}

/// The effect of an instruction on the mode.
enum ModeChange {
    Banks(u8),
    Mode(ModePart),
}

impl ModeChange {
    fn of(inst: &Inst) -> Option<Self> {
        match inst.class()? {
            Class::Sopp if inst.mnemonic() == "s_set_vgpr_msb" => Some(Self::Banks(inst.raw(Name::Simm16)? as u8)),
            Class::Sopk => {
                let value = match inst.mnemonic() {
                    "s_setreg_b32" => None,
                    "s_setreg_imm32_b32" => Some(inst.raw(Name::Imm)? as u32),
                    _ => return None,
                };
                let part = ModePart::new(inst.raw(Name::Simm16)? as u32, value);
                (part.register == HWREG_MODE).then_some(Self::Mode(part))
            }
            _ => None,
        }
    }
}

/// The operand of `s_setreg`, and its value where it is an immediate.
struct ModePart {
    register: u32,
    offset: u32,
    size: u32,
    value: Option<u32>,
}

impl ModePart {
    fn new(simm16: u32, value: Option<u32>) -> Self {
        Self { register: simm16 & 63, offset: simm16 >> 6 & 31, size: (simm16 >> 11 & 31) + 1, value }
    }

    const BANKS: u32 = 0xff << MODE_SHIFT;

    /// The bits of MODE[19:12] that its field covers, and the value that it writes to them.
    fn field(&self) -> WrittenBits {
        let mask = u32::MAX >> (32 - self.size) << self.offset & Self::BANKS;
        WrittenBits { mask, value: self.value.map(|value| value << self.offset & mask) }
    }

    /// The same with the field ignored.
    fn all_bank_bits(&self) -> WrittenBits {
        WrittenBits { mask: Self::BANKS, value: self.value.map(|value| value & Self::BANKS) }
    }
}

/// Bits of MODE that are set.
struct WrittenBits {
    mask: u32,
    /// Their new value, if it is known.
    value: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TableEntry;

    #[test]
    fn what_may_change_the_mode_begins_as_it_should() {
        let may = |entry: &TableEntry| matches!(entry.class(), Some(Class::Sopp | Class::Sopk)) || entry.is(Flag::Call);
        assert!(TableEntry::all_entries().filter(may).count() > 100);
        for entry in TableEntry::all_entries().filter(may) {
            let (value, mask) = entry.fixed();
            assert_eq!((mask as u32 >> 28, value as u32 >> 28), (0xf, CHANGES), "{entry:?}");
        }
    }
}
