//! Records of the registers that an encoding reads and writes.

use crate::record::record;

record! {
    /// The reads and writes of an entry: its part of [`PLACE_GROUPS`](crate::PLACE_GROUPS).
    #[repr(align(8))]
    pub struct EntryEffectsData {
        /// Number of its first group of places.
        pub start: u16,
        /// See `EntryEffects` of `hotswap-isa`.
        pub flags: u16,
        /// Number of places that are written, which come first.
        pub writes: u8,
        /// Number of places that are read.
        pub reads: u8,
        /// Registers written without an operand, a bit for each [`Implicit`](crate::Implicit).
        pub implicit_writes: u8,
        /// Registers read without an operand.
        pub implicit_reads: u8,
    }
}

/// The position of a register's number, and the access to the register.
#[derive(Debug, Clone, Copy)]
pub struct PlaceData {
    pub source: PlaceSource,
    /// The bit of the number that is elsewhere, and its position in the number.
    pub extra: Option<(u8, u8)>,
    /// Constants of this type.
    pub marks: u8,
}

/// Which register a place names.
#[derive(Debug, Clone, Copy)]
pub enum PlaceSource {
    /// None: the place pads a group.
    Nothing,
    /// The register of an operand.
    Operand {
        /// Number of its kind.
        kind: u16,
        /// Lowest bit of its field in the instruction.
        at: u8,
        width: u8,
        /// Lowest bit in the register's number.
        from: u8,
        /// The role that selects its VGPR bank; 4 for none.
        role: u8,
        /// Number of the operand.
        slot: u8,
    },
    /// EXEC in the width that a scalar instruction states.
    Exec { dwords: u16 },
    /// M0, if a bit of the instruction selects global data share.
    M0ForGds { at: u8 },
    /// One of the registers whose state is visible in a hardware register.
    Hardware {
        /// Number of the register among them.
        part: u16,
    },
}

impl PlaceData {
    /// Written rather than read.
    pub const WRITTEN: u8 = 1;
    /// In the lanes of EXEC only.
    pub const MASKED: u8 = 2;
    /// Part of a vector register survives.
    pub const KEEPS: u8 = 4;
    /// The field is in the third or fourth word.
    pub const UPPER: u8 = 8;
    /// The register of a read operand that is written as well, in part.
    pub const ALSO_WRITTEN: u8 = 16;
    /// The register of a written operand that is read as well.
    pub const ALSO_READ: u8 = 32;

    /// Whether it has the mark.
    pub const fn has_mark(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }
}

/// Constructors with short names, for the generated table of places.
pub(crate) mod place {
    use super::{PlaceData, PlaceSource};

    const fn place_data(source: PlaceSource, marks: u8) -> PlaceData {
        PlaceData { source, extra: None, marks }
    }

    const fn add_mark(place: PlaceData, mark: u8) -> PlaceData {
        PlaceData { marks: place.marks | mark, ..place }
    }

    const fn written_mark(written: bool) -> u8 {
        if written { PlaceData::WRITTEN } else { 0 }
    }

    pub(crate) const NOTHING: PlaceData = place_data(PlaceSource::Nothing, 0);

    /// An operand.
    pub(crate) const fn p(kind: u16, at: u8, width: u8, from: u8, role: u8, slot: u8, marks: u8) -> PlaceData {
        place_data(PlaceSource::Operand { kind, at, width, from, role, slot }, marks)
    }

    /// EXEC.
    pub(crate) const fn x(dwords: u16, is_written: bool) -> PlaceData {
        place_data(PlaceSource::Exec { dwords }, written_mark(is_written))
    }

    /// M0, if the bit is set.
    pub(crate) const fn g(at: u8) -> PlaceData {
        place_data(PlaceSource::M0ForGds { at }, 0)
    }

    /// A hardware register, of which only a part is written.
    pub(crate) const fn h(part: u16, is_written: bool) -> PlaceData {
        place_data(PlaceSource::Hardware { part }, written_mark(is_written))
    }

    pub(crate) const fn in_upper(place: PlaceData) -> PlaceData {
        add_mark(place, PlaceData::UPPER)
    }

    pub(crate) const fn with_extra(place: PlaceData, at: u8, from: u8) -> PlaceData {
        PlaceData { extra: Some((at, from)), ..place }
    }

    pub(crate) const fn also_written(place: PlaceData) -> PlaceData {
        add_mark(place, PlaceData::ALSO_WRITTEN)
    }

    pub(crate) const fn also_read(place: PlaceData) -> PlaceData {
        add_mark(place, PlaceData::ALSO_READ)
    }
}
