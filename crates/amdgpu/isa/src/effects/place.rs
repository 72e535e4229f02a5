//! Positions of the registers that an encoding reads and writes.
//!
//! Invariants: the tables have one list for each kind of entry: its writes, then its reads, in groups of four places
//! that are padded with empty places, so that four places are always processed and no branch is mispredicted. A
//! register's number is in one run of bits of the first four words, with at most one bit more elsewhere (accumulation
//! register, upper half, parity of a dual result). Registers without an operand are bits of the entry.

use super::bits::{EffectBits, NO_SLOT};
use super::lookup::{self, Lookup};
use crate::bank::BankRole;
use crate::kind::{Decode, KINDS};
use crate::{Implicit, Isa, Piece, TableEntry};
use hotswap_isa_tables::{ENTRY_EFFECTS, EntryEffectsData, PLACE_GROUPS, PLACES, PlaceData, PlaceSource};

/// The position of a register's number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RegisterPlace {
    /// The part of the effect that does not depend on the number.
    known: EffectBits,
    /// Bits of the number that are always set: the section and the bits that the kind adds.
    plus: u32,
    /// The run: its bits of the number as a mask, how far to rotate its half of the words for them, and which half.
    mask: u32,
    rotation: u8,
    upper: bool,
    /// The bit elsewhere, [`NONE`] if it does not exist, and its position in the number.
    extra: u8,
    extra_from: u8,
}

/// Four places: one cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct PlaceGroup([RegisterPlace; 4]);

impl PlaceGroup {
    #[inline(always)]
    pub(super) fn places(&self) -> &[RegisterPlace; 4] {
        &self.0
    }
}

const NONE: u8 = 255;

/// Pads a list of places that is shorter than four.
const NOTHING: RegisterPlace = RegisterPlace {
    known: EffectBits::NONE,
    plus: lookup::NOTHING as u32,
    mask: 0,
    rotation: 0,
    upper: false,
    extra: NONE,
    extra_from: 0,
};

/// The groups of the tables.
static GROUPS: [PlaceGroup; PLACE_GROUPS.len()] = {
    let places = &build_places();
    let mut groups = [PlaceGroup([NOTHING; 4]); PLACE_GROUPS.len()];
    let mut number = 0;
    while number < groups.len() {
        let [a, b, c, d] = PLACE_GROUPS[number];
        groups[number] = PlaceGroup([places[a as usize], places[b as usize], places[c as usize], places[d as usize]]);
        number += 1;
    }
    groups
};

/// The places of the tables, each once.
const fn build_places() -> [RegisterPlace; PLACES.len()] {
    let mut places = [NOTHING; PLACES.len()];
    let mut number = 0;
    while number < places.len() {
        places[number] = build_place(&PLACES[number]);
        number += 1;
    }
    places
}

const fn build_place(data: &PlaceData) -> RegisterPlace {
    let mut place = RegisterPlace { upper: data.has_mark(PlaceData::UPPER), ..of_source(data) };
    if let Some((extra, from)) = data.extra {
        // Sections of nine bits have it after the number.
        let short = matches!(place.plus as u16, lookup::DUAL_Y | lookup::VECTOR);
        place.extra = extra;
        place.extra_from = if short { 8 } else { from };
    }
    if data.has_mark(PlaceData::ALSO_WRITTEN) {
        place.known = place.known.with_opposite_access(true);
    }
    if data.has_mark(PlaceData::ALSO_READ) {
        place.known = place.known.with_opposite_access(false);
    }
    place
}

/// The place without the bit elsewhere.
const fn of_source(data: &PlaceData) -> RegisterPlace {
    let written = data.has_mark(PlaceData::WRITTEN);
    match data.source {
        PlaceSource::Nothing => NOTHING,
        PlaceSource::Operand { .. } => operand_place(data),
        PlaceSource::Exec { dwords } => {
            RegisterPlace { known: unnamed_effect(written, false), plus: (lookup::EXEC + dwords - 1) as u32, ..NOTHING }
        }
        PlaceSource::M0ForGds { at } => {
            let (known, plus) = (unnamed_effect(false, false), lookup::GDS as u32);
            RegisterPlace { known, plus, mask: 1, rotation: at & 63, upper: at >= 64, ..NOTHING }
        }
        PlaceSource::Hardware { part } => {
            let plus = (lookup::HARDWARE + part * lookup::HARDWARE_NUMBERS) as u32;
            RegisterPlace {
                known: unnamed_effect(written, written),
                plus,
                mask: lookup::HARDWARE_NUMBERS as u32 - 1,
                ..NOTHING
            }
        }
    }
}

const fn operand_place(data: &PlaceData) -> RegisterPlace {
    let PlaceSource::Operand { kind, at, width, from, role, slot } = data.source else { return NOTHING };
    let decode = KINDS[kind as usize].decode;
    // Roles count from 1, 0 means none.
    let role = if role < 4 { role + 1 } else { 0 };
    let kept = data.has_mark(PlaceData::KEEPS) && is_vector(decode);
    let known =
        EffectBits::of_place(data.has_mark(PlaceData::WRITTEN), kept, data.has_mark(PlaceData::MASKED), role, slot);
    let DecodeSection { plus, dwords } = section_of_decode(decode);
    // A field of nine bits may say vector register where nothing else is possible; the result is the same.
    let narrow = matches!(decode, Decode::Half) || plus == lookup::VECTOR;
    let width = if narrow && width > 8 { 8 } else { width };
    RegisterPlace {
        known: known.combined_with(EffectBits::register_count(dwords)),
        plus: plus as u32,
        mask: !(u32::MAX << width) << from,
        rotation: at.wrapping_sub(from) & 63,
        ..NOTHING
    }
}

const fn unnamed_effect(written: bool, kept: bool) -> EffectBits {
    EffectBits::of_place(written, kept, false, 0, NO_SLOT)
}

/// Where the registers of a kind are looked up.
struct DecodeSection {
    /// The section with the bits that the kind adds.
    plus: u16,
    /// The size of the register where the section does not determine it.
    dwords: u8,
}

const fn section_of_decode(decode: Decode) -> DecodeSection {
    let (plus, dwords) = match decode {
        Decode::Vgpr { dwords } | Decode::Source { dwords, plus: 256 } => (lookup::VECTOR, dwords),
        Decode::VgprLow128 => (lookup::VECTOR, 1),
        Decode::Agpr { dwords } => (lookup::VECTOR | 256, dwords),
        Decode::Source { dwords, plus } => match lookup::source_section(dwords) {
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
    };
    DecodeSection { plus, dwords }
}

/// Whether its registers are vector or accumulation registers and nothing else.
const fn is_vector(decode: Decode) -> bool {
    let plus = section_of_decode(decode).plus;
    matches!(plus & !256, lookup::VECTOR | lookup::DUAL_Y) || matches!(decode, Decode::Half | Decode::HalfLow128)
}

/// The reads and writes of an entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryEffects(EntryEffectsData);

const NO_EFFECTS: EntryEffectsData =
    EntryEffectsData { start: 0, flags: 0, writes: 0, reads: 0, implicit_writes: 0, implicit_reads: 0 };

impl EntryEffects {
    /// Other fields decide how many registers an operand has.
    const SIZED: u16 = 1;
    /// SDWA, whose fields determine whether it preserves bits.
    const SDWA: u16 = 2;
    /// A failed fetch (`tfe`, `lwe`) or 16-bit data (`d16`) leaves part of the result unchanged.
    const FETCHES: u16 = 4;
    /// A place has a bit elsewhere, or is in the third or fourth word.
    const EXTRA: u16 = 8;
    /// More than one group of places.
    const MANY: u16 = 16;
    /// One more place that is read, after those that it counts.
    const FOR_GDS: u16 = 32;

    #[inline(always)]
    pub(super) fn of(entry: TableEntry) -> Self {
        Self(ENTRY_EFFECTS.get(usize::from(entry.id())).copied().unwrap_or(NO_EFFECTS))
    }

    #[inline(always)]
    const fn has_flags(self, flags: u16) -> bool {
        self.0.flags & flags != 0
    }

    /// All its places are in one group, and they describe all effects.
    #[inline(always)]
    pub(super) const fn is_plain(self) -> bool {
        !self.has_flags(Self::SIZED | Self::SDWA | Self::FETCHES | Self::EXTRA | Self::MANY)
    }

    /// Its places describe all effects.
    #[inline(always)]
    pub(super) const fn is_placed(self) -> bool {
        !self.has_flags(Self::SIZED | Self::SDWA | Self::FETCHES)
    }

    /// Its first four places.
    #[inline(always)]
    pub(super) fn first_places(self) -> &'static [RegisterPlace; 4] {
        &GROUPS[usize::from(self.0.start) & (GROUPS.len() - 1)].0
    }

    /// All its places, four after four.
    #[inline(always)]
    pub(super) fn place_groups(self) -> &'static [PlaceGroup] {
        let start = usize::from(self.0.start);
        GROUPS.get(start..start + self.len().div_ceil(4)).unwrap_or_default()
    }

    /// Its number of places.
    #[inline(always)]
    fn len(self) -> usize {
        self.late_places().end.into()
    }

    /// Numbers of its written places.
    #[inline]
    pub(super) fn written_places(self) -> PlaceRange {
        PlaceRange { line: self.0.start, next: 0, end: self.0.writes }
    }

    /// Numbers of its read places.
    #[inline]
    pub(super) fn read_places(self) -> PlaceRange {
        PlaceRange { line: self.0.start, next: self.0.writes, end: self.0.writes + self.0.reads }
    }

    /// Whether there are places after registers without an operand.
    #[inline(always)]
    pub(super) const fn has_late(self) -> bool {
        self.has_flags(Self::FOR_GDS)
    }

    /// Read places that are listed after registers without an operand.
    #[inline]
    pub(super) fn late_places(self) -> PlaceRange {
        let next = self.0.writes + self.0.reads;
        PlaceRange { line: self.0.start, next, end: next + u8::from(self.has_late()) }
    }

    /// Numbers of all its places.
    pub(super) fn all_places(self) -> PlaceRange {
        PlaceRange { next: 0, ..self.late_places() }
    }

    /// Registers written without an operand, a bit for each.
    #[inline(always)]
    pub(super) const fn implicit_writes(self) -> u8 {
        self.0.implicit_writes
    }

    /// Registers read without an operand, a bit for each.
    #[inline(always)]
    pub(super) const fn implicit_reads(self) -> u8 {
        self.0.implicit_reads
    }

    #[inline]
    pub(super) fn is_sized(self) -> bool {
        self.has_flags(Self::SIZED)
    }

    #[inline]
    pub(super) fn is_fetch(self) -> bool {
        self.has_flags(Self::FETCHES)
    }

    #[inline]
    pub(super) fn is_sdwa(self) -> bool {
        self.has_flags(Self::SDWA)
    }
}

/// A subrange of an entry's places. The table's length is a power of two, so an index needs no comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlaceRange {
    line: u16,
    next: u8,
    end: u8,
}

impl Iterator for PlaceRange {
    type Item = &'static RegisterPlace;

    #[inline(always)]
    fn next(&mut self) -> Option<&'static RegisterPlace> {
        if self.next == self.end {
            return None;
        }
        let line = usize::from(self.line) + usize::from(self.next / 4);
        let place = &GROUPS[line & (GROUPS.len() - 1)].0[usize::from(self.next % 4)];
        self.next += 1;
        Some(place)
    }
}

/// Whether other fields decide how many registers an operand has.
pub(crate) fn sized_by_fields(entry: TableEntry) -> bool {
    EntryEffects::of(entry).is_sized()
}

/// The bit elsewhere that selects the half of the register of operand number `slot`.
pub(crate) fn half_piece(entry: TableEntry, slot: u8) -> Option<Piece> {
    let place = EntryEffects::of(entry).all_places().find(|place| place.slot() == Some(slot))?;
    let is_half = place.plus as u16 & !256 == lookup::HALF && place.extra != NONE;
    is_half.then_some(Piece { at: place.extra, from: place.extra_from, width: 1 })
}

/// The registers that the numbers of one field name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamedRegisters {
    plus: u32,
    from: u8,
}

/// A field that names registers.
pub(crate) struct NamedField {
    /// The number of its lowest bit.
    pub(crate) at: u8,
    /// The number of its bits.
    pub(crate) width: u8,
    pub(crate) registers: NamedRegisters,
}

impl NamedRegisters {
    /// The fields of an entry that may name a scalar register; `None` for a field that is not a single run of bits of
    /// the first two words. The whole result is `None` if other fields decide what is named, or if VCC or
    /// SCC is written implicitly.
    pub(crate) fn of_entry_fields(entry: TableEntry) -> Option<impl Iterator<Item = Option<NamedField>>> {
        let line = EntryEffects::of(entry);
        let writes = [Implicit::Vcc, Implicit::Scc].iter().any(|one| line.implicit_writes() >> (*one as u8) & 1 != 0);
        let names_vectors =
            |place: &&RegisterPlace| matches!(place.plus as u16 & !256, lookup::VECTOR | lookup::DUAL_Y);
        (line.is_placed() && !writes)
            .then(|| line.all_places().filter(move |place| !names_vectors(place)).map(RegisterPlace::named_registers))
    }

    /// Whether a number is a scalar register, or VCC or a half of it.
    pub(crate) fn is_scalar(self, raw: u16, isa: Isa) -> bool {
        Lookup::of(isa).register_at(u32::from(raw) << self.from | self.plus).is_scalar()
    }
}

impl RegisterPlace {
    /// The field and the registers that it names, if nothing else matters.
    fn named_registers(&self) -> Option<NamedField> {
        let from = self.mask.trailing_zeros().min(31) as u8;
        let width = self.mask.count_ones() as u8;
        let whole = !self.upper && self.extra == NONE;
        let registers = NamedRegisters { plus: self.plus, from };
        whole.then_some(NamedField { at: self.rotation.wrapping_add(from) & 63, width, registers })
    }

    /// Number of the operand.
    pub(super) fn slot(&self) -> Option<u8> {
        self.known.slot()
    }

    /// The role that selects its VGPR bank.
    pub(super) fn role(&self) -> Option<BankRole> {
        self.known.role()
    }

    /// The number in its run of bits, which is in one half of the first four words (checked by the build script).
    #[inline(always)]
    fn register_number(&self, half: u64) -> u32 {
        half.rotate_right(self.rotation.into()) as u32 & self.mask | self.plus
    }

    /// The effect of a place that lacks a bit elsewhere and is in the first two words.
    #[inline(always)]
    pub(super) fn plain_effect(&self, [low, _]: [u64; 2], lookup: Lookup) -> EffectBits {
        lookup.register_at(self.register_number(low)).combined_with(self.known)
    }

    /// The effect of any place.
    #[inline(always)]
    pub(super) fn effect_in(&self, halves: [u64; 2], lookup: Lookup) -> EffectBits {
        let mut number = self.register_number(if self.upper { halves[1] } else { halves[0] });
        if self.extra != NONE {
            let half = if self.extra & 64 == 0 { halves[0] } else { halves[1] };
            number |= ((half >> (self.extra & 63)) as u32 & 1) << (self.extra_from & 15);
        }
        lookup.register_at(number).combined_with(self.known)
    }
}
