//! Cache policies and offsets of memory accesses.

use super::TextWriter;
use super::message::isa_generation;
use crate::operand::sign_extended;
use crate::tables::Feature;
use core::fmt::{self, Write};
use hotswap_isa_tables::TextStep;

/// Kinds of accesses that temporal hints apply to.
const STORE: u8 = 1;
const ATOMIC: u8 = 2;

impl TextWriter<'_, '_, '_> {
    /// The cache policy. Extra: the kind of access, then whether it is scalar.
    pub(super) fn cache_policy(&mut self, bits: u64, extra: [u8; 4]) -> fmt::Result {
        if bits == 0 {
            return Ok(());
        }
        if self.isa.has(Feature::Gfx12Insts) {
            return self.hint_and_scope(bits, extra[0]);
        }
        let gfx940 = self.isa.has(Feature::Gfx940Insts);
        if bits & 1 != 0 {
            self.out.write_str(if gfx940 && extra[1] == 0 { " sc0" } else { " glc" })?;
        }
        if bits & 2 != 0 {
            self.out.write_str(if gfx940 { " nt" } else { " slc" })?;
        }
        if bits & 4 != 0 && self.isa.has(Feature::Gfx10Insts) {
            self.out.write_str(" dlc")?;
        }
        if bits & 16 != 0 && self.isa.has(Feature::Gfx90aInsts) {
            self.out.write_str(if gfx940 { " sc1" } else { " scc" })?;
        }
        if bits & !0x17 != 0 { self.out.write_str(" /* unexpected cache policy bit */") } else { Ok(()) }
    }

    /// The policy from gfx12 on: temporal hint in bits 0 to 2, scope in bits 3 and 4.
    fn hint_and_scope(&mut self, bits: u64, access: u8) -> fmt::Result {
        if bits & 1 << 11 != 0 {
            self.out.write_str(" scale_offset")?;
        }
        let (hint, scope) = (bits & 7, bits >> 3 & 3);
        if hint != 0 {
            self.out.write_str(" th:")?;
            match access {
                ATOMIC => self.atomic_hint(hint, scope)?,
                _ => self.plain_hint(hint, scope, access == STORE)?,
            }
        }
        self.out.write_str(["", " scope:SCOPE_SE", " scope:SCOPE_DEV", " scope:SCOPE_SYS"][scope as usize])?;
        if bits & 32 != 0 { self.out.write_str(" nv") } else { Ok(()) }
    }

    /// The hint of an atomic: 1 returns, 2 not temporal, 4 cascades.
    fn atomic_hint(&mut self, hint: u64, scope: u64) -> fmt::Result {
        self.out.write_str("TH_ATOMIC_")?;
        let text = match hint {
            4 | 5 if scope >= 2 => "CASCADE_RT",
            6 | 7 if scope >= 2 => "CASCADE_NT",
            1 => "RETURN",
            2 => "NT",
            3 => "NT_RETURN",
            _ => return self.out.write_hexadecimal(hint),
        };
        self.out.write_str(text)
    }

    fn plain_hint(&mut self, hint: u64, scope: u64, store: bool) -> fmt::Result {
        if hint == 7 && !store {
            return self.out.write_hexadecimal(hint);
        }
        self.out.write_str(if store { "TH_STORE_" } else { "TH_LOAD_" })?;
        let third = match (scope, store) {
            (3, _) => "BYPASS",
            (_, true) => "WB",
            (_, false) => "LU",
        };
        self.out.write_str(["", "NT", "HT", third, "NT_RT", "RT_NT", "NT_HT", "NT_WB"][hint as usize & 7])
    }

    /// The offset of a buffer (24 bits, signed, from gfx12 on) or of LDS.
    pub(super) fn write_offset(&mut self, raw: u64, step: &TextStep) -> fmt::Result {
        if raw as u32 == 0 {
            return Ok(());
        }
        self.out.write_block(&step.text)?;
        if step.extra[0] != 0 && self.isa.has(Feature::Gfx12Insts) {
            return self.out.write_signed(sign_extended(raw, 24));
        }
        self.out.write_decimal(raw & 0xffff)
    }

    /// The offset of a flat access: signed for global and scratch, and where flat ones may be negative.
    pub(super) fn flat_offset(&mut self, raw: u64, step: &TextStep) -> fmt::Result {
        if raw as u32 == 0 {
            return Ok(());
        }
        self.out.write_block(&step.text)?;
        if step.extra[0] == 0 && !self.isa.has(Feature::FlatSignedOffset) {
            return self.out.write_decimal(raw & 0xffff);
        }
        // gfx9 and gfx11 have 13 bits.
        let bits = match isa_generation(self.isa) {
            10 => 12,
            12 => 24,
            _ => 13,
        };
        self.out.write_signed(sign_extended(raw, bits))
    }
}
