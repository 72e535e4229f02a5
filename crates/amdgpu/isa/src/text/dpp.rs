//! DPP controls and SDWA selections.

use super::TextWriter;
use crate::tables::Feature;
use core::fmt::{self, Write};

pub(super) const SDWA_SELECTS: [&str; 7] = ["BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"];
/// The SDWA treatment of the other bits of the result. The last number is meaningless; LLVM writes
/// the first one's name.
pub(super) const SDWA_UNUSED: [&str; 4] = ["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE", "UNUSED_PAD"];

impl TextWriter<'_, '_, '_> {
    /// Eight lanes of three bits.
    pub(super) fn write_dpp8(&mut self, raw: u64) -> fmt::Result {
        for lane in 0..8 {
            self.out.write_str(if lane == 0 { "dpp8:[" } else { "," })?;
            self.out.write_decimal(raw >> (3 * lane) & 7)?;
        }
        self.out.write_char(']')
    }

    /// Whether the double-rate unit does not support a control. `operation`: 1 multiplications of 32 bits, 2
    /// operands of 64 bits.
    fn unknown_to_double_rate(&self, raw: u64, operation: u8) -> bool {
        let uses_it = match operation {
            0 => false,
            1 => self.isa.has(Feature::Gfx1250Insts),
            _ => true,
        };
        uses_it && self.isa.has(Feature::Dpp64bit) && !(0x150..=0x15f).contains(&raw)
    }

    /// The control of a DPP instruction.
    pub(super) fn dpp_control(&mut self, raw: u64, operation: u8) -> fmt::Result {
        let gfx10 = self.isa.has(Feature::Gfx10Insts);
        if self.unknown_to_double_rate(raw, operation) {
            self.out.write_str(" /* DP ALU dpp only supports ")?;
            self.out.write_str(if self.isa.has(Feature::Gfx12Insts) { "row_share" } else { "row_newbcast" })?;
            return self.out.write_str(" */");
        }
        let (text, number) = match raw {
            0..=0xff => return self.quad_permutation(raw),
            0x101..=0x10f => ("row_shl:", raw & 15),
            0x111..=0x11f => ("row_shr:", raw & 15),
            0x121..=0x12f => ("row_ror:", raw & 15),
            0x130 | 0x134 | 0x138 | 0x13c | 0x142 | 0x143 if gfx10 => return self.removed_in_gfx10(raw),
            0x130 => ("wave_shl:", 1),
            0x134 => ("wave_rol:", 1),
            0x138 => ("wave_shr:", 1),
            0x13c => ("wave_ror:", 1),
            0x140 => return self.out.write_str("row_mirror"),
            0x141 => return self.out.write_str("row_half_mirror"),
            0x142 => ("row_bcast:", 15),
            0x143 => ("row_bcast:", 31),
            0x150..=0x15f if self.isa.has(Feature::Gfx90aInsts) => ("row_newbcast:", raw & 15),
            0x150..=0x15f if gfx10 => ("row_share:", raw & 15),
            0x150..=0x15f => {
                let text = " /* row_newbcast/row_share is not supported on ASICs earlier than GFX90A/GFX10 */";
                return self.out.write_str(text);
            }
            0x160..=0x16f if gfx10 => ("row_xmask:", raw & 15),
            0x160..=0x16f => return self.out.write_str("/* row_xmask is not supported on ASICs earlier than GFX10 */"),
            _ => return self.out.write_str("/* Invalid dpp_ctrl value */"),
        };
        self.out.write_str(text)?;
        self.out.write_decimal(number)
    }

    fn quad_permutation(&mut self, raw: u64) -> fmt::Result {
        for lane in 0..4 {
            self.out.write_str(if lane == 0 { "quad_perm:[" } else { "," })?;
            self.out.write_decimal(raw >> (2 * lane) & 3)?;
        }
        self.out.write_char(']')
    }

    fn removed_in_gfx10(&mut self, raw: u64) -> fmt::Result {
        let name = match raw {
            0x130 => "wave_shl",
            0x134 => "wave_rol",
            0x138 => "wave_shr",
            0x13c => "wave_ror",
            _ => "row_bcast",
        };
        self.out.write_str("/* ")?;
        self.out.write_str(name)?;
        self.out.write_str(" is not supported starting from GFX10 */")
    }
}
