//! Where the registers lie that an encoding reads and writes.
//!
//! Invariants: one list for each kind of entry, made by the build script: what it writes, then what it reads,
//! operands before registers without one. A register's number lies in one run of bits of the first four words, and
//! at most one bit more elsewhere (accumulation register, upper half, parity of a dual result).

use super::lookup::{self, Lookup};
use crate::bank::Role;
use crate::kind::{Decode, KINDS};
use crate::reg::Reg;
use crate::{Entry, Piece};

include!(concat!(env!("OUT_DIR"), "/effects.rs"));

/// Where a register's number lies.
#[derive(Debug, Clone, Copy)]
#[repr(align(16))]
pub(crate) struct Place {
    /// Bits of the number that are always set: the section and what the kind adds.
    plus: u16,
    /// The run: its bits of the number as a mask, how far to rotate its half of the words for them, and which half.
    mask: u16,
    rotation: u8,
    upper: bool,
    /// The bit elsewhere, [`NONE`] if there is none, and where it goes.
    extra: u8,
    extra_from: u8,
    dwords: u8,
    /// Bits of the index that a scalar tuple leaves out.
    below: u8,
    pub(super) written: bool,
    /// Written, but something of the old value is left, whatever the instruction's fields say.
    pub(super) kept: bool,
    pub(super) role: Option<Role>,
    /// Number of the operand; [`NONE`] if there is none.
    slot: u8,
}

const NONE: u8 = 255;

/// A line of the table: an operand.
#[expect(clippy::too_many_arguments, reason = "a line of a table")]
const fn p(
    decode: Decode,
    at: u8,
    width: u8,
    from: u8,
    extra: u8,
    extra_from: u8,
    role: u8,
    slot: u8,
    written: bool,
) -> Place {
    let role = match role {
        0 => Some(Role::Source0),
        1 => Some(Role::Source1),
        2 => Some(Role::Source2),
        3 => Some(Role::Destination),
        _ => None,
    };
    let (plus, dwords) = meaning(decode);
    // A field of nine bits may say vector register where nothing else is possible; it is one anyway.
    let width = if matches!(decode, Decode::Half) && width > 8 { 8 } else { width };
    Place {
        plus,
        mask: !(u16::MAX << width) << from,
        rotation: at.wrapping_sub(from) & 63,
        upper: at >= 64,
        extra,
        extra_from: if matches!(decode, Decode::DualResultY) { 8 } else { extra_from },
        dwords,
        below: match decode {
            Decode::Source { plus: 0 | 512, dwords: 3.. } => 3,
            Decode::Source { plus: 0 | 512, dwords: 2 } => 1,
            _ => 0,
        },
        written,
        kept: false,
        role,
        slot,
    }
}

/// A line of the table: a register without an operand.
const fn i(number: u8, written: bool) -> Place {
    Place {
        plus: lookup::IMPLICIT + number as u16,
        mask: 0,
        rotation: 0,
        upper: false,
        extra: NONE,
        extra_from: 0,
        dwords: 2,
        below: 0,
        written,
        kept: false,
        role: None,
        slot: NONE,
    }
}

/// A line of the table: a register without an operand, of which something is left when it is written.
const fn k(number: u8) -> Place {
    Place { kept: true, ..i(number, true) }
}

/// A line of the table: the EXEC of a scalar instruction, as wide as it says.
const fn x(dwords: u16, written: bool) -> Place {
    Place { plus: lookup::EXEC + dwords - 1, ..i(0, written) }
}

/// A line of the table: M0, if the bit at `at` says so.
const fn g(at: u8) -> Place {
    Place { plus: lookup::GDS, mask: 1, rotation: at & 63, upper: at >= 64, ..i(0, false) }
}

/// A line of the table: one of the registers that the number of a hardware register means. A part of it is written.
const fn h(part: u16, written: bool) -> Place {
    let plus = lookup::HARDWARE + part * lookup::HARDWARE_NUMBERS;
    Place { plus, mask: lookup::HARDWARE_NUMBERS - 1, kept: written, ..i(0, written) }
}

/// A line of the table: the register of an operand that it is for the instruction in another way as well.
const fn also(place: Place, written: bool) -> Place {
    Place { written, kept: written, slot: NONE, ..place }
}

/// Section and added bits, and the size of the register.
const fn meaning(decode: Decode) -> (u16, u8) {
    match decode {
        Decode::Vgpr { dwords } => (lookup::SOURCE | 256, dwords),
        Decode::VgprLow128 => (lookup::SOURCE | 256, 1),
        Decode::Agpr { dwords } => (lookup::SOURCE | 768, dwords),
        Decode::Source { dwords, plus } => (lookup::SOURCE | plus, dwords),
        Decode::Barrier => (lookup::SOURCE, 1),
        Decode::LaneMask => (lookup::LANE_MASK, 2),
        Decode::Half => (lookup::HALF | 256, 1),
        Decode::HalfSource => (lookup::HALF, 1),
        Decode::HalfLow128 => (lookup::HALF_LOW_128 | 256, 1),
        Decode::HalfSourceLow128 => (lookup::HALF_LOW_128, 1),
        Decode::SdwaSource => (lookup::SDWA, 1),
        Decode::SdwaLaneMask => (lookup::SDWA_LANE_MASK, 2),
        Decode::DualResultY => (lookup::DUAL_Y, 1),
        // Numbers: the build script leaves them out, and no register is there.
        Decode::Imm
        | Decode::Literal32
        | Decode::Literal64
        | Decode::ScalarOffset
        | Decode::BranchTarget
        | Decode::Dpp8FetchInvalid
        | Decode::Version => (u16::MAX, 0),
    }
}

/// What an entry reads and writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryEffects {
    start: u16,
    writes: u8,
    reads: u8,
    flags: u8,
}

/// A line of the table.
const fn e(start: u16, writes: u8, reads: u8, flags: u8) -> EntryEffects {
    EntryEffects { start, writes, reads, flags }
}

impl EntryEffects {
    /// Other fields decide how many registers an operand has.
    const SIZED: u8 = 1;
    /// Vector results keep bits of what was there.
    const KEEPS: u8 = 2;
    /// SDWA, whose fields say whether it keeps bits.
    const SDWA: u8 = 4;
    /// A failed fetch (`tfe`, `lwe`) or 16-bit data (`d16`) leaves something of the result as it was.
    const FETCHES: u8 = 8;
    /// Vector results change in the lanes of EXEC only.
    const MASKED: u8 = 16;

    #[inline(always)]
    pub(super) fn of(entry: Entry) -> Self {
        const EMPTY: EntryEffects = e(0, 0, 0, 0);
        ENTRY_EFFECTS.get(usize::from(entry.id())).copied().unwrap_or(EMPTY)
    }

    /// Numbers of its written registers.
    #[inline]
    pub(super) fn written(self) -> Range {
        let start = self.start;
        Range { next: start, end: start + u16::from(self.writes) }
    }

    /// Numbers of its read registers.
    #[inline]
    pub(super) fn read(self) -> Range {
        let start = self.start + u16::from(self.writes);
        Range { next: start, end: start + u16::from(self.reads) }
    }

    /// Numbers of all its registers.
    #[inline]
    pub(super) fn all(self) -> Range {
        Range { next: self.start, end: self.start + u16::from(self.writes) + u16::from(self.reads) }
    }

    #[inline]
    pub(super) fn is_sized(self) -> bool {
        self.flags & Self::SIZED != 0
    }

    #[inline]
    pub(super) fn keeps_bits(self) -> bool {
        self.flags & Self::KEEPS != 0
    }

    #[inline]
    pub(super) fn may_keep_bits(self) -> bool {
        self.flags & (Self::SDWA | Self::FETCHES) != 0
    }

    #[inline]
    pub(super) fn is_masked(self) -> bool {
        self.flags & Self::MASKED != 0
    }

    #[inline]
    pub(super) fn is_fetch(self) -> bool {
        self.flags & Self::FETCHES != 0
    }

    #[inline]
    pub(super) fn is_sdwa(self) -> bool {
        self.flags & Self::SDWA != 0
    }
}

/// A run of the table of places. The table's length is a power of two, so an index needs no comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    next: u16,
    end: u16,
}

impl Iterator for Range {
    type Item = &'static Place;

    #[inline(always)]
    fn next(&mut self) -> Option<&'static Place> {
        if self.next == self.end {
            return None;
        }
        let place = &PLACES[usize::from(self.next) & (PLACES.len() - 1)];
        self.next += 1;
        Some(place)
    }
}

/// Whether other fields decide how many registers an operand has.
pub(crate) fn sized_by_fields(entry: Entry) -> bool {
    EntryEffects::of(entry).is_sized()
}

/// The bit elsewhere that says which half of its register operand number `slot` is.
pub(crate) fn half_piece(entry: Entry, slot: u8) -> Option<Piece> {
    let place = EntryEffects::of(entry).all().find(|place| place.slot == slot)?;
    let is_half = place.plus & !256 == lookup::HALF && place.extra != NONE;
    is_half.then_some(Piece { at: place.extra, from: place.extra_from, width: 1 })
}

impl Place {
    /// Number of the operand.
    #[inline]
    pub(super) fn slot(&self) -> Option<u8> {
        (self.slot != NONE).then_some(self.slot)
    }

    /// The register that its bits name; `None` if they name a constant or NULL. The run lies in one half of the first
    /// four words, which the build script checks.
    #[inline(always)]
    pub(super) fn register(&self, halves: [u64; 2], lookup: Lookup) -> Option<Reg> {
        let half = if self.upper { halves[1] } else { halves[0] };
        let mut number = half.rotate_right(self.rotation.into()) as u16 & self.mask | self.plus;
        if self.extra != NONE {
            let half = if self.extra & 64 == 0 { halves[0] } else { halves[1] };
            number |= ((half >> (self.extra & 63)) as u16 & 1) << (self.extra_from & 15);
        }
        lookup.register(number, self.dwords, self.below)
    }
}
