//! Register classes on a target: which registers they hold, and their names.
//!
//! Invariants: read-only registers are in every class, because they are constants.

use crate::isa::Isa;
use crate::kind::{RegClass, aligns_tuples};
use crate::reg::{Reg, RegFile, Special};
use crate::tables::Feature;

/// A register class on a target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TargetClass {
    class: RegClass,
    isa: Isa,
}

impl TargetClass {
    /// `class` on the target of `isa`.
    pub(crate) fn new(class: RegClass, isa: Isa) -> Self {
        Self { class, isa }
    }

    /// Whether `reg` is in the class.
    pub(crate) fn contains(self, reg: Reg) -> bool {
        if self.class.name.is_empty() || self.class.holds_any(RegClass::LANE_MASK) {
            return true;
        }
        match reg.file {
            RegFile::Vgpr => self.class.holds_any(RegClass::VECTOR) && self.holds_vector(reg),
            RegFile::Agpr => self.holds_accumulation() && self.holds_vector(reg),
            RegFile::Sgpr | RegFile::Ttmp => self.class.holds_any(RegClass::SCALAR),
            RegFile::Special => self.holds_special(reg),
        }
    }

    /// Whether vector tuples must begin at an even register.
    fn even(self) -> bool {
        self.class.holds_any(RegClass::EVEN)
            || (self.class.holds_any(RegClass::EVEN_ON_TARGET) && aligns_tuples(self.isa))
    }

    /// Whether the number of a vector register fits.
    fn holds_vector(self, reg: Reg) -> bool {
        let end = reg.index + u16::from(reg.count);
        !(self.class.holds_any(RegClass::LOW_128) && end > 128
            || self.class.holds_any(RegClass::LOW_256) && end > 256
            || reg.count > 1 && reg.index & 1 != 0 && self.even())
    }

    /// Whether accumulation registers are in the class.
    fn holds_accumulation(self) -> bool {
        let aligned = aligns_tuples(self.isa);
        let matrix = self.isa.has(Feature::MaiInsts);
        if self.class.holds_any(RegClass::ACCUMULATION_LOADS) {
            return aligned && matrix;
        }
        // Where a target lacks accumulation registers, a class of both files is one of vector registers.
        let both = self.class.holds_any(RegClass::VECTOR) && self.class.holds_any(RegClass::EVEN_ON_TARGET);
        self.class.holds_any(RegClass::ACCUMULATION) && !(both && aligned && !matrix)
    }

    /// Whether a register with a name is in the class.
    fn holds_special(self, reg: Reg) -> bool {
        match reg.as_special() {
            Some(Special::M0) => self.class.holds_any(RegClass::M0),
            Some(Special::ExecLo) => self.class.holds_any(RegClass::EXEC_LO),
            Some(Special::ExecHi) => self.class.holds_any(RegClass::EXEC_HI),
            Some(Special::LdsDirect) => self.class.holds_any(RegClass::LDS),
            Some(special) if special >= Special::Null || is_scratch_base(special) => true,
            _ => self.class.holds_any(RegClass::SCALAR),
        }
    }

    /// The name that LLVM gives the class, for registers of `dwords` dwords.
    pub(crate) fn name(self, dwords: u8) -> ClassName {
        let RegClass { name, .. } = self.class;
        let (vector, accumulation) = (self.class.holds_any(RegClass::VECTOR), self.holds_accumulation());
        let fixed = RegClass::SCALAR | RegClass::LOW_128 | RegClass::LOW_256 | RegClass::LDS;
        if self.class.holds_any(fixed) || name == "VGPR_16" {
            let stem = name.strip_suffix("_AlignTarget");
            let suffix = if aligns_tuples(self.isa) { "_Align2" } else { "" };
            let plain = ClassName { stem: name, bits: None, suffix: "" };
            return stem.map_or(plain, |stem| ClassName { stem, bits: None, suffix });
        }
        let stem = match (vector, accumulation, dwords) {
            (true, true, _) => "AV_",
            (true, false, 1) => "VGPR_",
            (true, false, _) => "VReg_",
            (false, _, 1) => "AGPR_",
            (false, ..) => "AReg_",
        };
        let suffix = if dwords > 1 && self.even() { "_Align2" } else { "" };
        ClassName { stem, bits: Some(u16::from(dwords) * 32), suffix }
    }
}

/// The parts of a class's name, in their order.
pub(crate) struct ClassName {
    pub(crate) stem: &'static str,
    /// The size of its registers, where the name has it.
    pub(crate) bits: Option<u16>,
    pub(crate) suffix: &'static str,
}

/// Whether it is a half of the scratch base, which is a constant like the registers from NULL on.
fn is_scratch_base(special: Special) -> bool {
    matches!(special, Special::FlatScratchBaseLo | Special::FlatScratchBaseHi)
}
