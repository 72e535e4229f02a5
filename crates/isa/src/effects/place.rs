//! Positions of the registers that an encoding reads and writes.
//!
//! Invariants: the build script makes one list for each kind of entry: its writes, then its reads, in groups of four
//! places that are padded with empty places, so that four places are always processed and no branch is mispredicted. A
//! register's number is in one run of bits of the first four words, with at most one bit more elsewhere (accumulation
//! register, upper half, parity of a dual result). Registers without an operand are bits of the entry.

use super::bits::{EffectBits, NO_SLOT};
use super::lookup::{self, Lookup};
use crate::bank::Role;
use crate::kind::{Decode, KINDS};
use crate::{Entry, Implicit, Isa, Piece};

include!(concat!(env!("OUT_DIR"), "/effects.rs"));

/// The position of a register's number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// The part of the effect that does not depend on the number.
    known: EffectBits,
    /// Bits of the number that are always set: the section and the bits that the kind adds.
    plus: u32,
    /// The run: its bits of the number as a mask, how far to rotate its half of the words for them, and which half.
    mask: u32,
    rotation: u8,
    upper: bool,
    /// The bit elsewhere, [`NONE`] if there is none, and its position in the number.
    extra: u8,
    extra_from: u8,
}

/// Four places: one cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Chunk(pub(super) [Place; 4]);

const NONE: u8 = 255;

/// Pads a list.
const NOTHING: Place = Place {
    known: EffectBits::NONE,
    plus: lookup::NOTHING as u32,
    mask: 0,
    rotation: 0,
    upper: false,
    extra: NONE,
    extra_from: 0,
};

/// Flags of an operand: written; then: in the lanes of EXEC only; part of a vector register survives.
const WRITTEN: u8 = 1;
const MASKED: u8 = 2;
const KEEPS: u8 = 4;

/// An operand.
const fn p(decode: Decode, at: u8, width: u8, from: u8, role: u8, slot: u8, marks: u8) -> Place {
    // Roles count from 1, 0 is none.
    let role = if role < 4 { role + 1 } else { 0 };
    let kept = marks & KEEPS != 0 && is_vector(decode);
    let known = EffectBits::of_place(marks & WRITTEN != 0, kept, marks & MASKED != 0, role, slot);
    let (plus, dwords) = meaning(decode);
    // A field of nine bits may say vector register where nothing else is possible; the result is the same.
    let narrow = matches!(decode, Decode::Half) || plus == lookup::VECTOR;
    let width = if narrow && width > 8 { 8 } else { width };
    Place {
        known: known.and(EffectBits::count(dwords)),
        plus: plus as u32,
        mask: !(u32::MAX << width) << from,
        rotation: at.wrapping_sub(from) & 63,
        ..NOTHING
    }
}

/// The same in the third or fourth word.
const fn in_upper(place: Place) -> Place {
    Place { upper: true, ..place }
}

/// The same with a bit of the number elsewhere.
const fn with_extra(place: Place, extra: u8, extra_from: u8) -> Place {
    // Sections of nine bits have it after the number.
    let short = matches!(place.plus as u16, lookup::DUAL_Y | lookup::VECTOR);
    Place { extra, extra_from: if short { 8 } else { extra_from }, ..place }
}

/// The EXEC of a scalar instruction, in the width that it states.
const fn x(dwords: u16, written: bool) -> Place {
    Place { known: unnamed(written, false), plus: (lookup::EXEC + dwords - 1) as u32, ..NOTHING }
}

/// M0, if the bit at `at` is set.
const fn g(at: u8) -> Place {
    let known = unnamed(false, false);
    Place { known, plus: lookup::GDS as u32, mask: 1, rotation: at & 63, upper: at >= 64, ..NOTHING }
}

/// One of the registers that the number of a hardware register means. Only a part of it is written.
const fn h(part: u16, written: bool) -> Place {
    let plus = lookup::HARDWARE + part * lookup::HARDWARE_NUMBERS;
    Place { known: unnamed(written, written), plus: plus as u32, mask: lookup::HARDWARE_NUMBERS as u32 - 1, ..NOTHING }
}

const fn unnamed(written: bool, kept: bool) -> EffectBits {
    EffectBits::of_place(written, kept, false, 0, NO_SLOT)
}

/// The register of an operand that it reads is written as well, in part.
const fn also_written(place: Place) -> Place {
    Place { known: place.known.also(true), ..place }
}

/// The register of an operand that it writes is read as well.
const fn also_read(place: Place) -> Place {
    Place { known: place.known.also(false), ..place }
}

/// The section with the bits that the kind adds, and the size of the register where the section does not determine it.
const fn meaning(decode: Decode) -> (u16, u8) {
    match decode {
        Decode::Vgpr { dwords } | Decode::Source { dwords, plus: 256 } => (lookup::VECTOR, dwords),
        Decode::VgprLow128 => (lookup::VECTOR, 1),
        Decode::Agpr { dwords } => (lookup::VECTOR | 256, dwords),
        Decode::Source { dwords, plus } => match lookup::source(dwords) {
            Some(section) => (section | plus, 0),
            None => panic!("a size of sources that has no section"),
        },
        Decode::Barrier => (0, 0),
        Decode::LaneMask => (lookup::LANE_MASK, 0),
        Decode::Half => (lookup::HALF | 256, 0),
        Decode::HalfSource => (lookup::HALF, 0),
        Decode::HalfLow128 => (lookup::HALF_LOW_128 | 256, 0),
        Decode::HalfSourceLow128 => (lookup::HALF_LOW_128, 0),
        Decode::SdwaSource => (lookup::SDWA, 0),
        Decode::SdwaLaneMask => (lookup::SDWA_LANE_MASK, 0),
        Decode::DualResultY => (lookup::DUAL_Y, 0),
        // Numbers: the build script omits them, because they name no register.
        Decode::Imm
        | Decode::Literal32
        | Decode::Literal64
        | Decode::ScalarOffset
        | Decode::BranchTarget
        | Decode::Dpp8FetchInvalid
        | Decode::Version => (lookup::NOTHING, 0),
    }
}

/// Whether its registers are vector or accumulation registers and nothing else.
const fn is_vector(decode: Decode) -> bool {
    let (plus, _) = meaning(decode);
    matches!(plus & !256, lookup::VECTOR | lookup::DUAL_Y) || matches!(decode, Decode::Half | Decode::HalfLow128)
}

/// The reads and writes of an entry.
#[derive(Debug, Clone, Copy)]
#[repr(align(8))]
pub(super) struct EntryEffects {
    /// Number of its first group of places.
    start: u16,
    writes: u8,
    reads: u8,
    flags: u8,
    /// Registers without an operand, a bit for each.
    pub(super) implicit_writes: u8,
    pub(super) implicit_reads: u8,
}

/// A table entry.
const fn e(start: u16, writes: u8, reads: u8, flags: u8, implicit_writes: u8, implicit_reads: u8) -> EntryEffects {
    EntryEffects { start, writes, reads, flags, implicit_writes, implicit_reads }
}

impl EntryEffects {
    /// Other fields decide how many registers an operand has.
    const SIZED: u8 = 1;
    /// SDWA, whose fields determine whether it preserves bits.
    const SDWA: u8 = 2;
    /// A failed fetch (`tfe`, `lwe`) or 16-bit data (`d16`) leaves part of the result unchanged.
    const FETCHES: u8 = 4;
    /// A place has a bit elsewhere, or is in the third or fourth word.
    const EXTRA: u8 = 8;
    /// More than one group of places.
    const MANY: u8 = 16;
    /// One more place that is read, after those that it counts.
    const FOR_GDS: u8 = 32;

    #[inline(always)]
    pub(super) fn of(entry: Entry) -> Self {
        const EMPTY: EntryEffects = e(0, 0, 0, 0, 0, 0);
        ENTRY_EFFECTS.get(usize::from(entry.id())).copied().unwrap_or(EMPTY)
    }

    #[inline(always)]
    const fn has(self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// All its places are in one group, and they describe all effects.
    #[inline(always)]
    pub(super) const fn is_plain(self) -> bool {
        !self.has(Self::SIZED | Self::SDWA | Self::FETCHES | Self::EXTRA | Self::MANY)
    }

    /// Its places describe all effects.
    #[inline(always)]
    pub(super) const fn is_placed(self) -> bool {
        !self.has(Self::SIZED | Self::SDWA | Self::FETCHES)
    }

    /// Its first four places.
    #[inline(always)]
    pub(super) fn first(self) -> &'static [Place; 4] {
        &PLACES[usize::from(self.start) & (PLACES.len() - 1)].0
    }

    /// All its places, four after four.
    #[inline(always)]
    pub(super) fn chunks(self) -> &'static [Chunk] {
        let start = usize::from(self.start);
        PLACES.get(start..start + self.len().div_ceil(4)).unwrap_or_default()
    }

    /// Its number of places.
    #[inline(always)]
    fn len(self) -> usize {
        self.late().end.into()
    }

    /// Numbers of its written places.
    #[inline]
    pub(super) fn written(self) -> Range {
        Range { line: self.start, next: 0, end: self.writes }
    }

    /// Numbers of its read places.
    #[inline]
    pub(super) fn read(self) -> Range {
        Range { line: self.start, next: self.writes, end: self.writes + self.reads }
    }

    /// Whether there are places after registers without an operand.
    #[inline(always)]
    pub(super) const fn has_late(self) -> bool {
        self.has(Self::FOR_GDS)
    }

    /// Read places that are listed after registers without an operand.
    #[inline]
    pub(super) fn late(self) -> Range {
        let next = self.writes + self.reads;
        Range { line: self.start, next, end: next + u8::from(self.has_late()) }
    }

    /// Numbers of all its places.
    pub(super) fn all(self) -> Range {
        Range { next: 0, ..self.late() }
    }

    #[inline]
    pub(super) fn is_sized(self) -> bool {
        self.has(Self::SIZED)
    }

    #[inline]
    pub(super) fn is_fetch(self) -> bool {
        self.has(Self::FETCHES)
    }

    #[inline]
    pub(super) fn is_sdwa(self) -> bool {
        self.has(Self::SDWA)
    }
}

/// A subrange of an entry's places. The table's length is a power of two, so an index needs no comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    line: u16,
    next: u8,
    end: u8,
}

impl Iterator for Range {
    type Item = &'static Place;

    #[inline(always)]
    fn next(&mut self) -> Option<&'static Place> {
        if self.next == self.end {
            return None;
        }
        let line = usize::from(self.line) + usize::from(self.next / 4);
        let place = &PLACES[line & (PLACES.len() - 1)].0[usize::from(self.next % 4)];
        self.next += 1;
        Some(place)
    }
}

/// Whether other fields decide how many registers an operand has.
pub(crate) fn sized_by_fields(entry: Entry) -> bool {
    EntryEffects::of(entry).is_sized()
}

/// The bit elsewhere that selects the half of the register of operand number `slot`.
pub(crate) fn half_piece(entry: Entry, slot: u8) -> Option<Piece> {
    let place = EntryEffects::of(entry).all().find(|place| place.slot() == Some(slot))?;
    let is_half = place.plus as u16 & !256 == lookup::HALF && place.extra != NONE;
    is_half.then_some(Piece { at: place.extra, from: place.extra_from, width: 1 })
}

/// The registers that the numbers of one field name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Named {
    plus: u32,
    from: u8,
}

impl Named {
    /// For each field of an entry that may name a scalar register: its lowest bit, its width and the registers that it
    /// names; `None` for a field that is not a single run of bits of the first two words. The whole result is `None` if
    /// other fields decide what is named, or if VCC or SCC is written implicitly.
    pub(crate) fn all(entry: Entry) -> Option<impl Iterator<Item = Option<(u8, u8, Self)>>> {
        let line = EntryEffects::of(entry);
        let writes = [Implicit::Vcc, Implicit::Scc].iter().any(|one| line.implicit_writes >> (*one as u8) & 1 != 0);
        let names_vectors = |place: &&Place| matches!(place.plus as u16 & !256, lookup::VECTOR | lookup::DUAL_Y);
        (line.is_placed() && !writes).then(|| line.all().filter(move |place| !names_vectors(place)).map(Place::named))
    }

    /// Whether a number is a scalar register, or VCC or a half of it.
    pub(crate) fn is_scalar(self, raw: u16, isa: Isa) -> bool {
        Lookup::of(isa).register(u32::from(raw) << self.from | self.plus).is_scalar()
    }
}

impl Place {
    /// The field's position, its width and the registers that it names, if nothing else matters.
    fn named(&self) -> Option<(u8, u8, Named)> {
        let from = self.mask.trailing_zeros().min(31) as u8;
        let width = self.mask.count_ones() as u8;
        let whole = !self.upper && self.extra == NONE;
        whole.then_some((self.rotation.wrapping_add(from) & 63, width, Named { plus: self.plus, from }))
    }

    /// Number of the operand.
    pub(super) fn slot(&self) -> Option<u8> {
        self.known.slot()
    }

    /// The role that selects its VGPR bank.
    pub(super) fn role(&self) -> Option<Role> {
        self.known.role()
    }

    /// The number in its run of bits, which is in one half of the first four words (checked by the build script).
    #[inline(always)]
    fn number(&self, half: u64) -> u32 {
        half.rotate_right(self.rotation.into()) as u32 & self.mask | self.plus
    }

    /// The effect of a place that has no bit elsewhere and is in the first two words.
    #[inline(always)]
    pub(super) fn plain(&self, [low, _]: [u64; 2], lookup: Lookup) -> EffectBits {
        lookup.register(self.number(low)).and(self.known)
    }

    /// The effect of any place.
    #[inline(always)]
    pub(super) fn effect(&self, halves: [u64; 2], lookup: Lookup) -> EffectBits {
        let mut number = self.number(if self.upper { halves[1] } else { halves[0] });
        if self.extra != NONE {
            let half = if self.extra & 64 == 0 { halves[0] } else { halves[1] };
            number |= ((half >> (self.extra & 63)) as u32 & 1) << (self.extra_from & 15);
        }
        lookup.register(number).and(self.known)
    }
}
