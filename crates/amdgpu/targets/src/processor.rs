//! The rows of the processor table.

use crate::{Capabilities, Capability, Limits, PROCESSORS, TargetError};
use std::fmt;

/// One processor, or one generic target for several.
#[derive(Debug, PartialEq, Eq)]
pub struct Processor {
    /// Name as in `--offload-arch`, for example `gfx90a` or `gfx10-3-generic`.
    pub name: &'static str,
    /// Version part of the triple's architecture since LLVM 24: `10.30` in `amdgpu10.30-amd-amdhsa`.
    pub subarch: &'static str,
    /// `EF_AMDGPU_MACH`, bits 0 to 7 of `e_flags`.
    pub mach: u8,
    /// Its number in ROCm's device library, the constant `__oclc_ISA_version`; `None` where the library lacks a file
    /// for it, so that no code for it has the constant.
    pub isa_version: Option<u32>,
    /// One processor or a generic target.
    pub kind: ProcessorKind,
    pub family: IsaFamily,
    /// Wave sizes that code may have.
    pub waves: WaveSizes,
    /// Whether a target ID may state `xnack`.
    pub xnack: Support,
    /// Whether a target ID may state `sramecc`.
    pub sramecc: Support,
    /// Name of the group of siblings that one compilation serves. Being in one group is necessary
    /// for an alias, not sufficient: `hotswap-compat` decides, for an ordered pair.
    pub group: Option<&'static str>,
    /// Processors that a generic target's code runs on; empty for a native one.
    pub covers: &'static [&'static str],
    /// Registers, memory and waves that it has.
    pub limits: Limits,
    /// Its other features. See [`Processor::has`].
    pub capabilities: Capabilities,
    /// Withdrawn by LLVM before its hardware shipped: known, never accepted.
    pub withdrawn: bool,
}

/// One processor or a generic target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessorKind {
    Native,
    /// Code for several processors; needs code object V6.
    Generic {
        /// Version of the generic target, bits 24 to 31 of `e_flags`.
        version: u8,
    },
}

/// Whether code can be made for one setting of a target feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// The hardware lacks such a setting; it is 0 in `e_flags`.
    No,
    /// A target ID may state it; unstated means "any".
    Yes,
    /// LLVM 22, 23 and 24 disagree, so every value is accepted and none is chosen.
    Unsettled,
}

/// Wave sizes that code may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaveSizes {
    /// Waves of 32 lanes only.
    Only32,
    /// Waves of 64 lanes only.
    Only64,
    /// Selected by the kernel.
    Both,
}

/// Instruction set families: between two of them encodings differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IsaFamily {
    Gfx6,
    Gfx7,
    Gfx8,
    Vega,
    Cdna1,
    Cdna2,
    Cdna3,
    Cdna4,
    Rdna1,
    Rdna2,
    Rdna3,
    Rdna35,
    Gfx117,
    Rdna4,
    Gfx125,
    Gfx13,
}

impl fmt::Display for IsaFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gfx6 => "GFX6",
            Self::Gfx7 => "GFX7",
            Self::Gfx8 => "GFX8",
            Self::Vega => "GFX9 (Vega)",
            Self::Cdna1 => "GFX9 (CDNA 1)",
            Self::Cdna2 => "GFX9 (CDNA 2)",
            Self::Cdna3 => "GFX9.4 (CDNA 3)",
            Self::Cdna4 => "GFX9.5 (CDNA 4)",
            Self::Rdna1 => "GFX10.1 (RDNA 1)",
            Self::Rdna2 => "GFX10.3 (RDNA 2)",
            Self::Rdna3 => "GFX11 (RDNA 3)",
            Self::Rdna35 => "GFX11.5 (RDNA 3.5)",
            Self::Gfx117 => "GFX11.7",
            Self::Rdna4 => "GFX12 (RDNA 4)",
            Self::Gfx125 => "GFX12.5",
            Self::Gfx13 => "GFX13",
        })
    }
}

impl WaveSizes {
    /// Whether waves of that many lanes are possible.
    pub fn contains(self, lanes: u64) -> bool {
        match self {
            Self::Only32 => lanes == 32,
            Self::Only64 => lanes == 64,
            Self::Both => lanes == 32 || lanes == 64,
        }
    }
}

impl Processor {
    /// Whether it is a generic target.
    pub fn is_generic(&self) -> bool {
        matches!(self.kind, ProcessorKind::Generic { .. })
    }

    /// Value of bits 24 to 31 of `e_flags`; 0 for a native processor.
    pub fn generic_version(&self) -> u8 {
        match self.kind {
            ProcessorKind::Native => 0,
            ProcessorKind::Generic { version } => version,
        }
    }

    /// Whether it has that capability. A generic target has the features on which its code may rely, and the bugs of
    /// all processors that it covers.
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities.contains(capability)
    }

    /// Its triple in both spellings: `amdgcn-amd-amdhsa`, which needs `-mcpu`, and LLVM 24's,
    /// which names the processor.
    pub fn triples(&self) -> [String; 2] {
        ["amdgcn-amd-amdhsa".to_owned(), format!("amdgpu{}-amd-amdhsa", self.subarch)]
    }

    /// Whether code for it runs on `processor` because it is a generic target for it.
    pub fn covers(&self, processor: &Self) -> bool {
        self.covers.contains(&processor.name)
    }
}

impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The processor of that name, the withdrawn ones included.
pub fn find_processor(name: &str) -> Option<&'static Processor> {
    PROCESSORS.iter().find(|processor| processor.name == name)
}

/// [`find_processor`], for a name that must be known.
///
/// # Errors
/// [`TargetError::Unknown`].
pub fn require_processor(name: &str) -> Result<&'static Processor, TargetError> {
    find_processor(name).ok_or_else(|| TargetError::Unknown(name.to_owned()))
}

/// The processor that a triple names in LLVM 24's spelling, as in `amdgpu12.50-amd-amdhsa`.
pub fn by_triple(triple: &str) -> Option<&'static Processor> {
    let subarch = triple.strip_prefix("amdgpu")?.split('-').next()?;
    PROCESSORS.iter().find(|processor| processor.subarch == subarch)
}

/// The processor with that `EF_AMDGPU_MACH` value, the withdrawn ones included.
pub fn by_mach(mach: u8) -> Option<&'static Processor> {
    PROCESSORS.iter().find(|processor| processor.mach == mach)
}
