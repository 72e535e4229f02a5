//! The decoding mode: a target with its wave size and its spelling of 16-bit registers.
//!
//! Invariants: making one is a table lookup; nothing is computed at start-up.

use crate::tables::{Feature, TableEntry, Target};
use hotswap_isa_tables::{FEATURE_SETS, SUBTARGETS, Subtarget, TARGETS};

/// Lanes of a wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wave {
    W32,
    W64,
}

/// A target with a wave size and a spelling: everything that decoding depends on.
#[derive(Clone, Copy)]
pub struct Isa {
    subtarget: &'static Subtarget,
}

impl Isa {
    /// `target` with an assembler's defaults: 32 lanes from gfx10 on, 16-bit registers with names of their own where
    /// the target has them.
    pub fn new(target: &'static Target) -> Self {
        let wave64 = Self::in_mode(target, true, true);
        let wave32 = Self::in_mode(target, false, true);
        if wave32.has(Feature::Wavefrontsize32) { wave32 } else { wave64 }
    }

    fn in_mode(target: &'static Target, wave64: bool, true16: bool) -> Self {
        let number = usize::from(target.subtargets) + usize::from(wave64) * 2 + usize::from(!true16);
        Self { subtarget: SUBTARGETS.get(number).unwrap_or(&SUBTARGETS[0]) }
    }

    /// The same with waves of another size; no change on a target that has one size.
    #[must_use]
    pub fn with_wave(self, wave: Wave) -> Self {
        let changed = Self::in_mode(self.target(), wave == Wave::W64, self.subtarget.true16);
        if changed.wave() == wave { changed } else { self }
    }

    /// The same with 16-bit registers named (`v1.h`) or not (`v1`).
    #[must_use]
    pub fn with_true16(self, true16: bool) -> Self {
        Self::in_mode(self.target(), self.subtarget.wave64, true16)
    }

    pub fn target(self) -> &'static Target {
        TARGETS.get(usize::from(self.subtarget.target)).unwrap_or(&TARGETS[0])
    }

    /// Lanes of a wave.
    pub fn wave(self) -> Wave {
        if self.has(Feature::Wavefrontsize32) { Wave::W32 } else { Wave::W64 }
    }

    /// Whether 16-bit registers have names of their own.
    pub fn true16(self) -> bool {
        self.has(Feature::RealTrue16)
    }

    /// Whether the processor has `feature` in this mode.
    #[inline]
    pub fn has(self, feature: Feature) -> bool {
        self.features().has(feature)
    }

    /// All features of the processor in this mode.
    #[inline]
    pub fn features(self) -> FeatureSet {
        FeatureSet(FEATURE_SETS.get(usize::from(self.subtarget.features)).copied().unwrap_or_default())
    }

    /// Length in bytes of the longest instruction.
    pub fn longest(self) -> u8 {
        self.subtarget.max_bytes
    }

    #[inline]
    pub(crate) fn subtarget(self) -> &'static Subtarget {
        self.subtarget
    }
}

impl PartialEq for Isa {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.subtarget, other.subtarget)
    }
}

impl Eq for Isa {}

impl core::fmt::Debug for Isa {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "Isa({}, {:?}, true16: {})", self.target().name, self.wave(), self.true16())
    }
}

impl TableEntry {
    /// Whether `isa` has this encoding.
    pub fn available(self, isa: Isa) -> bool {
        self.in_subtarget(isa.subtarget)
    }
}

/// A set of features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureSet([u64; 4]);

impl FeatureSet {
    /// Whether `feature` is in it.
    #[inline]
    pub fn has(self, feature: Feature) -> bool {
        self.0[feature as usize / 64] >> (feature as usize % 64) & 1 != 0
    }
}
