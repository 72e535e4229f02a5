//! `e_flags` of AMDGPU ELF files.
//!
//! V4 to V6 (`EI_ABIVERSION` 2 to 4): bits 0-7 machine, 8-9 xnack, 10-11 sramecc, in V6 24-31
//! generic version. V3 (1): bit 8 xnack, bit 9 sramecc. Every other bit is 0.
//! V2 used the bits otherwise and is not read.

use crate::{Processor, Support, TargetId, by_mach};

/// `EI_ABIVERSION` of code object V3.
const ABI_V3: u8 = 1;
/// `EI_ABIVERSION` of code object V6.
const ABI_V6: u8 = 4;

/// Two bits that state a target feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeatureBits {
    /// 0: the processor lacks such a setting.
    Unsupported,
    /// 1: the code runs with either setting.
    Any,
    /// 2: the code needs it off.
    Off,
    /// 3: the code needs it on.
    On,
}

/// The fields of `e_flags`, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EFlags {
    /// The machine, which also gives the generic version.
    pub processor: &'static Processor,
    pub xnack: FeatureBits,
    pub sramecc: FeatureBits,
}

/// The reason why a value is not a valid `e_flags`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlagsError {
    /// The machine is in no row of the table.
    #[error("machine {0:#04x} in e_flags is not known")]
    Machine(u8),
    /// The machine was withdrawn.
    #[error("machine {mach:#04x} in e_flags is {name}, which was withdrawn before its hardware shipped")]
    Withdrawn { mach: u8, name: &'static str },
    /// `EI_ABIVERSION` is not one of 1 to 4.
    #[error("code object ABI version {0} is not known")]
    Abi(u8),
    /// The generic version is not the processor's.
    #[error("e_flags {flags:#010x} has generic version {found}; {name} has {expected}")]
    GenericVersion {
        flags: u32,
        /// Name of the processor.
        name: &'static str,
        expected: u8,
        found: u8,
    },
    /// A feature that the processor does not have is stated, or one that it has is not.
    #[error("e_flags {flags:#010x} says {bits:?} for {feature}, which does not fit {name}")]
    Feature {
        flags: u32,
        /// Name of the feature.
        feature: &'static str,
        bits: FeatureBits,
        /// Name of the processor.
        name: &'static str,
    },
    /// Bits without a meaning are set.
    #[error("e_flags {0:#010x} sets bits that have no meaning")]
    Reserved(u32),
}

impl FeatureBits {
    fn decode(bits: u32) -> Self {
        match bits & 3 {
            0 => Self::Unsupported,
            1 => Self::Any,
            2 => Self::Off,
            _ => Self::On,
        }
    }

    fn encode(self) -> u32 {
        match self {
            Self::Unsupported => 0,
            Self::Any => 1,
            Self::Off => 2,
            Self::On => 3,
        }
    }

    fn decode_v3(set: bool, support: Support) -> Self {
        match (set, support) {
            (true, _) => Self::On,
            (false, Support::No) => Self::Unsupported,
            (false, _) => Self::Off,
        }
    }

    fn of_setting(stated: Option<bool>, support: Support) -> Self {
        match (stated, support) {
            (Some(true), _) => Self::On,
            (Some(false), _) => Self::Off,
            (None, Support::Yes) => Self::Any,
            (None, Support::No | Support::Unsettled) => Self::Unsupported,
        }
    }

    fn fits_support(self, support: Support) -> bool {
        match support {
            Support::No => self == Self::Unsupported,
            Support::Yes => self != Self::Unsupported,
            Support::Unsettled => true,
        }
    }

    /// The setting that a target ID states for these bits.
    pub fn stated(self) -> Option<bool> {
        match self {
            Self::Unsupported | Self::Any => None,
            Self::Off => Some(false),
            Self::On => Some(true),
        }
    }
}

impl EFlags {
    /// Decodes a value from a file of that `EI_ABIVERSION`.
    ///
    /// # Errors
    /// [`FlagsError`]; nothing is guessed.
    pub fn decode(flags: u32, abi_version: u8) -> Result<Self, FlagsError> {
        let mach = (flags & 0xff) as u8;
        let processor = by_mach(mach).ok_or(FlagsError::Machine(mach))?;
        if processor.withdrawn {
            return Err(FlagsError::Withdrawn { mach, name: processor.name });
        }
        let (decoded, known) = match abi_version {
            ABI_V3 => (Self::decode_v3(flags, processor), 0x0000_03ff),
            2..ABI_V6 => (Self::decode_v4(flags, processor), 0x0000_0fff),
            ABI_V6 => (Self::decode_v4(flags, processor), 0xff00_0fff),
            _ => return Err(FlagsError::Abi(abi_version)),
        };
        if flags & !known != 0 {
            return Err(FlagsError::Reserved(flags));
        }
        decoded.check_support(flags)
    }

    fn decode_v3(flags: u32, processor: &'static Processor) -> Self {
        let xnack = FeatureBits::decode_v3(flags & 0x100 != 0, processor.xnack);
        let sramecc = FeatureBits::decode_v3(flags & 0x200 != 0, processor.sramecc);
        Self { processor, xnack, sramecc }
    }

    fn decode_v4(flags: u32, processor: &'static Processor) -> Self {
        Self { processor, xnack: FeatureBits::decode(flags >> 8), sramecc: FeatureBits::decode(flags >> 10) }
    }

    fn check_support(self, flags: u32) -> Result<Self, FlagsError> {
        let (name, expected, found) = (self.processor.name, self.processor.generic_version(), (flags >> 24) as u8);
        if expected != found {
            return Err(FlagsError::GenericVersion { flags, name, expected, found });
        }
        let features = [("xnack", self.xnack, self.processor.xnack), ("sramecc", self.sramecc, self.processor.sramecc)];
        match features.into_iter().find(|(_, bits, support)| !bits.fits_support(*support)) {
            Some((feature, bits, _)) => Err(FlagsError::Feature { flags, feature, bits, name }),
            None => Ok(self),
        }
    }

    /// The value for a file of V4 to V6 (V3: see [`EFlags::encode_v3`]).
    pub fn encode(&self) -> u32 {
        u32::from(self.processor.mach)
            | self.xnack.encode() << 8
            | self.sramecc.encode() << 10
            | u32::from(self.processor.generic_version()) << 24
    }

    /// The value for a file of that `EI_ABIVERSION`.
    pub fn encode_for(&self, abi_version: u8) -> u32 {
        if abi_version == ABI_V3 { self.encode_v3() } else { self.encode() }
    }

    /// The value for a file of V3.
    pub fn encode_v3(&self) -> u32 {
        u32::from(self.processor.mach)
            | enabled_feature_bit(self.xnack, 0x100)
            | enabled_feature_bit(self.sramecc, 0x200)
    }

    /// The flags that compilers write for this target ID. They do not agree on a feature that is
    /// [`Support::Unsettled`]: unstated, it becomes 0 here, so derive from existing flags instead.
    pub fn of(target: &TargetId) -> Self {
        let processor = target.processor;
        let xnack = FeatureBits::of_setting(target.xnack, processor.xnack);
        Self { processor, xnack, sramecc: FeatureBits::of_setting(target.sramecc, processor.sramecc) }
    }

    /// The same features on another processor; `None` when they do not fit it.
    pub fn with_processor(self, processor: &'static Processor) -> Option<Self> {
        (self.xnack.fits_support(processor.xnack) && self.sramecc.fits_support(processor.sramecc))
            .then_some(Self { processor, ..self })
    }

    /// The target ID that these flags state.
    pub fn target_id(&self) -> TargetId {
        TargetId { processor: self.processor, xnack: self.xnack.stated(), sramecc: self.sramecc.stated() }
    }
}

fn enabled_feature_bit(bits: FeatureBits, bit: u32) -> u32 {
    if bits == FeatureBits::On { bit } else { 0 }
}
