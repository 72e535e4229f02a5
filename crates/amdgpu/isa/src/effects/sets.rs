//! Reads and writes of an instruction as register sets, including everything that a single register cannot express.
//!
//! Invariants: a set of what *may* be accessed is never too small and a set of what is *certainly* overwritten never
//! too large. An operand that aliases other registers counts as those as well: `src_vccz` is VCC, `src_execz` is EXEC,
//! `src_lds_direct` is addressed by M0. An instruction whose registers M0 selects ([`Flag::Indexed`]) may access every
//! register of its file and certainly overwrites none.
//!
//! Absent on purpose: the VGPR index mode of gfx9. It is state of the wave: between an instruction for which
//! [`Inst::index_mode`] returns `true` and one for which it returns `false`, every vector register of a VALU
//! instruction may be another one, which only the caller can know.

use super::EffectBits;
use crate::bank::VgprBanks;
use crate::reg::{Reg, RegFile, Special};
use crate::regset::RegSet;
use crate::{Feature, Flag, Inst, Isa, Name};

impl Inst {
    /// Registers that it may read, under a bank mode: where a bank is not known, the register of every bank.
    #[must_use]
    pub fn read_set(&self, isa: Isa, banks: VgprBanks) -> RegSet {
        let mut set = self.chosen_by_index();
        self.for_each_effect(isa, |effect| {
            if !effect.written() {
                add_effect(&mut set, effect, banks)
            }
        });
        let aliases = [
            (Special::Vccz, special_register_pair(Special::VccLo)),
            (Special::Execz, special_register_pair(Special::ExecLo)),
            (Special::LdsDirect, Reg::special(Special::M0, 1)),
        ];
        for (named, meant) in aliases {
            if set.contains(Reg::special(named, 1)) {
                set.insert(meant);
            }
        }
        set
    }

    /// Registers that it may write.
    #[must_use]
    pub fn written_set(&self, isa: Isa, banks: VgprBanks) -> RegSet {
        let mut set = self.chosen_by_index();
        self.for_each_effect(isa, |effect| {
            if effect.written() {
                add_effect(&mut set, effect, banks)
            }
        });
        set
    }

    /// Registers that it certainly overwrites, whatever EXEC is.
    #[must_use]
    pub fn overwritten_set(&self, isa: Isa, banks: VgprBanks) -> RegSet {
        self.overwritten(isa, banks, |effect| !effect.partial() && !effect.masked())
    }

    /// Registers that it certainly overwrites in the lanes of EXEC: completely, if EXEC is full.
    #[must_use]
    pub fn overwritten_in_active_lanes(&self, isa: Isa, banks: VgprBanks) -> RegSet {
        self.overwritten(isa, banks, |effect| !effect.partial())
    }

    fn overwritten(&self, isa: Isa, banks: VgprBanks, whole: impl Fn(EffectBits) -> bool) -> RegSet {
        if self.is(Flag::Indexed) {
            return RegSet::EMPTY;
        }
        let mut set = RegSet::EMPTY;
        self.for_each_effect(isa, |effect| {
            if effect.written() && whole(effect) {
                set.extend(banks.resolve_register(effect.reg(), effect.role()));
            }
        });
        set
    }

    /// Everything that it reads and writes.
    fn for_each_effect(&self, isa: Isa, mut each: impl FnMut(EffectBits)) {
        self.visit(isa, &mut each).for_each_effect(isa, each);
    }

    /// Whether the VGPR index mode of gfx9 is on after it; `None` if it does not change the mode. An `s_setreg` that
    /// may switch it on counts as if it did.
    #[must_use]
    pub fn index_mode(&self, isa: Isa) -> Option<bool> {
        const ENABLE: u64 = 27;
        if !isa.has(Feature::VgprIndexMode) || !self.is(Flag::Salu) {
            return None;
        }
        match self.mnemonic() {
            "s_set_gpr_idx_on" => Some(true),
            "s_set_gpr_idx_off" => Some(false),
            "s_setreg_b32" | "s_setreg_imm32_b32" => {
                let part = self.raw(Name::Simm16)?;
                let (register, first, last) = (part & 63, part >> 6 & 31, (part >> 6 & 31) + (part >> 11 & 31));
                (register == 1 && (first..=last).contains(&ENABLE)).then_some(true)
            }
            _ => None,
        }
    }

    /// Every register that it may access because M0 selects it.
    fn chosen_by_index(&self) -> RegSet {
        if !self.is(Flag::Indexed) {
            return RegSet::EMPTY;
        }
        if self.is(Flag::Valu) {
            return RegSet::all_of(RegFile::Vgpr);
        }
        let mut set = RegSet::all_of(RegFile::Sgpr);
        set.insert(Reg::special(Special::VccLo, 2));
        set
    }
}

fn special_register_pair(special: Special) -> Reg {
    Reg::special(special, 2)
}

impl RegSet {
    /// Adds the register of an effect; an empty effect changes nothing.
    #[inline(always)]
    pub fn insert_effect(&mut self, effect: EffectBits) {
        self.insert_bits(effect.set_bits());
    }

    /// Whether some 32-bit register of an effect is in the set.
    #[inline(always)]
    #[must_use]
    pub fn has_bits(&self, effect: EffectBits) -> bool {
        let (word, low, high) = effect.set_bits();
        self.words()[word & 31] & low | self.words()[(word + 1) & 31] & high != 0
    }
}

fn add_effect(set: &mut RegSet, effect: EffectBits, banks: VgprBanks) {
    let reg = effect.reg();
    match banks.resolve_register(reg, effect.role()) {
        Some(reg) => set.insert(reg),
        None => (0..4).for_each(|bank| set.insert(Reg { index: reg.index + 256 * bank, ..reg })),
    }
}
