//! Registers: the names in operands.
//!
//! Invariants: `count` is at least 1; a tuple of vector or scalar registers is contiguous; a [`Special`] of two
//! dwords is named by its low half. Vector tuples may run past register 255: the encoding allows it and the
//! hardware decides, so the decoder keeps them. Scalar tuples may end in VCC, which has the numbers 106 and 107.
//!
//! Absent on purpose: the implicit registers of an instruction (see the effects), and the classes of registers that an
//! operand accepts (see [`crate::kind`]).

use crate::number;
use core::fmt;

/// A file of registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RegFile {
    /// Vector registers, `v0` to `v255`.
    Vgpr,
    /// Accumulation registers of the matrix cores, `a0` to `a255`.
    Agpr,
    /// Scalar registers, `s0` to `s105`.
    Sgpr,
    /// Registers of the trap handler, `ttmp0` to `ttmp15`.
    Ttmp,
    /// Registers with a name of their own; the index is a [`Special`].
    Special,
}

macro_rules! specials {
    ($($(#[$doc:meta])* $variant:ident $one:literal $two:literal;)*) => {
        /// A scalar register with a name of its own. The halves of a pair are neighbours, the low one first.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Special { $($(#[$doc])* $variant,)* }

        impl Special {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Special] = &[$(Special::$variant,)*];

            /// The name of the `dwords` dwords that begin here, as in assembly.
            pub const fn name(self, dwords: u8) -> &'static str {
                let [one, two] = match self { $(Special::$variant => [$one, $two],)* };
                if dwords > 1 { two } else { one }
            }
        }
    };
}

specials! {
    /// Carry and compare mask, low half.
    VccLo "vcc_lo" "vcc";
    /// Carry and compare mask, high half.
    VccHi "vcc_hi" "vcc_hi";
    /// Mask of active lanes, low half.
    ExecLo "exec_lo" "exec";
    /// Mask of active lanes, high half.
    ExecHi "exec_hi" "exec_hi";
    /// Scratch base of gfx9, low half.
    FlatScratchLo "flat_scratch_lo" "flat_scratch";
    /// Scratch base of gfx9, high half.
    FlatScratchHi "flat_scratch_hi" "flat_scratch_hi";
    /// Mask of replayed lanes, low half.
    XnackMaskLo "xnack_mask_lo" "xnack_mask";
    /// Mask of replayed lanes, high half.
    XnackMaskHi "xnack_mask_hi" "xnack_mask_hi";
    /// Trap base address, low half.
    TbaLo "tba_lo" "tba";
    /// Trap base address, high half.
    TbaHi "tba_hi" "tba_hi";
    /// Trap memory address, low half.
    TmaLo "tma_lo" "tma";
    /// Trap memory address, high half.
    TmaHi "tma_hi" "tma_hi";
    /// Start of the scratch aperture as a source, low half.
    FlatScratchBaseLo "src_flat_scratch_base_lo" "src_flat_scratch_base_lo";
    /// Start of the scratch aperture as a source, high half.
    FlatScratchBaseHi "src_flat_scratch_base_hi" "src_flat_scratch_base_hi";
    /// Offset, index and message register.
    M0 "m0" "m0";
    /// Reads zero, discards writes.
    Null "null" "null";
    /// Start of the LDS aperture.
    SharedBase "src_shared_base" "src_shared_base";
    /// End of the LDS aperture.
    SharedLimit "src_shared_limit" "src_shared_limit";
    /// Start of the private aperture.
    PrivateBase "src_private_base" "src_private_base";
    /// End of the private aperture.
    PrivateLimit "src_private_limit" "src_private_limit";
    /// Wave number for primitive ordered pixel shading.
    PopsExitingWaveId "src_pops_exiting_wave_id" "src_pops_exiting_wave_id";
    /// Whether VCC is zero.
    Vccz "src_vccz" "src_vccz";
    /// Whether EXEC is zero.
    Execz "src_execz" "src_execz";
    /// The scalar condition code.
    Scc "src_scc" "src_scc";
    /// A dword of LDS at the address in M0.
    LdsDirect "src_lds_direct" "src_lds_direct";
    /// The mode register; only read and written implicitly.
    Mode "mode" "mode";
    /// Counter of asynchronous copies; only read and written implicitly.
    AsyncCnt "asynccnt" "asynccnt";
    /// Counter of tensor copies; only read and written implicitly.
    TensorCnt "tensorcnt" "tensorcnt";
}

/// Half of a vector register, for 16-bit operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum VgprHalf {
    /// Bits 0 to 15.
    Low,
    /// Bits 16 to 31.
    High,
}

/// A register, or a tuple of consecutive ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg {
    /// The file that contains it.
    pub file: RegFile,
    /// Number of the first register, or the number of a [`Special`].
    pub index: u16,
    /// The number of dwords.
    pub count: u8,
    /// Which half, if only half of one register is meant.
    pub half: Option<VgprHalf>,
}

impl Reg {
    /// `count` registers of `file` from `index`.
    pub const fn new(file: RegFile, index: u16, count: u8) -> Reg {
        Reg { file, index, count, half: None }
    }

    /// Half of vector register `index`.
    pub const fn half(index: u16, half: VgprHalf) -> Reg {
        Reg { file: RegFile::Vgpr, index, count: 1, half: Some(half) }
    }

    /// `count` dwords from `special`.
    pub const fn special(special: Special, count: u8) -> Reg {
        Reg { file: RegFile::Special, index: special as u16, count, half: None }
    }

    /// The [`Special`] that this register is, if any.
    pub fn as_special(self) -> Option<Special> {
        match self.file {
            RegFile::Special => Special::ALL.get(usize::from(self.index)).copied(),
            _ => None,
        }
    }

    /// Whether this is `special`, in any width.
    pub fn is(self, special: Special) -> bool {
        self.file == RegFile::Special && self.index == special as u16
    }

    /// Writes the name as in assembly: `v3`, `s[4:7]`, `vcc_lo`, `v1.h`.
    pub fn write(self, out: &mut impl fmt::Write) -> fmt::Result {
        if self.count > 1 {
            return self.write_tuple(out);
        }
        match self.file {
            RegFile::Vgpr if self.index < 256 => out.write_str(number::vector_name(self.index))?,
            RegFile::Vgpr => {
                out.write_str("v")?;
                number::write_decimal(out, u64::from(self.index))?;
            }
            RegFile::Sgpr => return out.write_str(number::scalar_name(self.index)),
            RegFile::Special => return self.write_special(out),
            RegFile::Agpr | RegFile::Ttmp => {
                out.write_str(if self.file == RegFile::Agpr { "a" } else { "ttmp" })?;
                number::write_decimal(out, u64::from(self.index))?;
            }
        }
        match self.half {
            None => Ok(()),
            Some(VgprHalf::Low) => out.write_str(".l"),
            Some(VgprHalf::High) => out.write_str(".h"),
        }
    }

    fn write_special(self, out: &mut impl fmt::Write) -> fmt::Result {
        out.write_str(self.as_special().map_or("", |special| special.name(self.count)))
    }

    fn write_tuple(self, out: &mut impl fmt::Write) -> fmt::Result {
        let end = self.index + u16::from(self.count);
        out.write_str(match self.file {
            RegFile::Vgpr => "v[",
            RegFile::Agpr => "a[",
            RegFile::Sgpr if end > FIRST_VCC => return self.write_with_vcc(out),
            RegFile::Sgpr => "s[",
            RegFile::Ttmp => "ttmp[",
            RegFile::Special => return self.write_special(out),
        })?;
        number::write_decimal(out, u64::from(self.index))?;
        out.write_str(":")?;
        number::write_decimal(out, u64::from(end) - 1)?;
        out.write_str("]")
    }
}

/// The number of VCC among the scalar registers.
const FIRST_VCC: u16 = 106;

impl Reg {
    /// A scalar tuple that ends in VCC: all its registers, one by one.
    fn write_with_vcc(self, out: &mut impl fmt::Write) -> fmt::Result {
        for number in 0..u16::from(self.count) {
            out.write_char(if number == 0 { '[' } else { ',' })?;
            match self.index + number {
                index if index < FIRST_VCC => {
                    out.write_char('s')?;
                    number::write_decimal(out, u64::from(index))?;
                }
                FIRST_VCC => out.write_str("vcc_lo")?,
                _ => out.write_str("vcc_hi")?,
            }
        }
        out.write_char(']')
    }
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f)
    }
}
