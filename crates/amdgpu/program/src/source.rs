//! The contents of a file for one section of code: the input of everything here, as plain data.
//!
//! Invariants: offsets count from the section's first byte and fit 32 bits; marks, fixups and slots are sorted by their
//! positions ([`CodeSource::sort`] does it).

mod read;
mod vote_lanes;
mod waves;

pub(crate) use waves::WAVES;
pub use waves::{FunctionWave, code_lanes, instructions, mask_lanes};

use crate::place::ProgramByte;
use hotswap_isa::Isa;
use std::borrow::Cow;
use std::ops::Range;

/// One section of code with all information of its file about it.
#[derive(Debug, Clone)]
pub struct CodeSource<'a> {
    /// Number of the section in the file's table; `None` for a segment of a file without sections, or without a file.
    pub number: Option<usize>,
    /// The instruction set of the bytes. Where kernels of both wave sizes are in the section, [`CodeSource::isa_at`] has
    /// that of each function.
    pub isa: Isa,
    /// Wave sizes of functions by offset, ascending; empty if the whole section has that of `isa`.
    pub waves: Vec<FunctionWave>,
    /// Address of the first byte; 0 in a relocatable file.
    pub address: u64,
    pub bytes: &'a [u8],
    /// Whether literals hold their final values. Otherwise those with a fixup hold nothing.
    pub linked: bool,
    /// The symbols of the section.
    pub marks: Vec<SectionSymbol<'a>>,
    /// Fields in the section that a linker fills, or filled.
    pub fixups: Vec<LinkerFixup>,
    /// The symbols that fixups name; empty without fixups.
    pub symbols: Vec<ProgramByte>,
    /// Words outside of the section that hold an address when the program runs.
    pub slots: Vec<AddressSlot>,
    /// Code of other sections of the same relocatable file refers to this one: it may have callers there.
    pub shared: bool,
    /// The file lacks any other section of code.
    pub alone: bool,
    /// Offsets that relocations of other loaded sections may denote otherwise than as a whole address, ascending.
    /// Depending on the base of such a distance they need not be exact.
    pub hints: Vec<u32>,
    /// Offsets inside of functions at which unknown transfers may enter; see [`Coverage`](crate::Coverage).
    pub entries: Vec<u32>,
}

/// A name in the section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionSymbol<'a> {
    pub offset: u32,
    /// Bytes; 0 if the file does not state it.
    pub size: u32,
    /// The kind of the symbol.
    pub kind: MarkKind,
    /// The name; empty for code that no symbol names.
    pub name: Cow<'a, str>,
    /// Whether other files can call it.
    pub exported: bool,
}

/// The kind of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkKind {
    /// Entry of a kernel.
    Kernel(KernelNeeds),
    Function,
    /// A symbol of data.
    Object,
    /// A symbol without a type.
    Label,
}

/// The hardware resources of a kernel, and its entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelNeeds {
    /// Lanes of a wave, 32 or 64.
    pub lanes: u8,
    /// Kernel arguments are preloaded: there is a second entry 256 bytes later.
    pub preloads: bool,
    /// Vector registers, AGPRs of a unified file not counted.
    pub vgprs: Option<u32>,
    /// Number of accumulation registers.
    pub agprs: Option<u32>,
    /// Number of scalar registers.
    pub sgprs: Option<u32>,
    /// Static LDS of a work-group, bytes.
    pub lds: u32,
    pub workgroup: Option<u32>,
    /// The waves of a work-group share a work-group processor: two compute units.
    pub wgp: bool,
}

/// A field in the section that a linker fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkerFixup {
    /// Offset of the bytes that it fills.
    pub offset: u32,
    /// The type of its relocation.
    pub kind: FixupKind,
    /// Number of the symbol in [`CodeSource::symbols`].
    pub symbol: u32,
    /// Added to the symbol.
    pub addend: i64,
}

/// The computation of a filled-in value; numbers are those of the ELF relocation types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FixupKind {
    /// Low half of the address.
    Abs32Lo = 1,
    /// High half of the address.
    Abs32Hi = 2,
    /// The address, in 64 bits.
    Abs64 = 3,
    /// Low half of the distance from here.
    Rel32 = 4,
    /// The distance from here.
    Rel64 = 5,
    /// The address, which must fit 32 bits.
    Abs32 = 6,
    /// Distance to the GOT's word, which must fit 32 bits.
    GotRel = 7,
    /// Low half of the distance to the GOT's word.
    GotRelLo = 8,
    /// High half of the distance to the GOT's word.
    GotRelHi = 9,
    /// Low half of the distance from here.
    RelLo = 10,
    /// High half of the distance from here.
    RelHi = 11,
    /// Distance of a branch in dwords, from its end.
    Rel16 = 14,
}

impl FixupKind {
    /// The kind with that number of `R_AMDGPU_*`.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        use FixupKind::*;
        let all = [Abs32Lo, Abs32Hi, Abs64, Rel32, Rel64, Abs32, GotRel, GotRelLo, GotRelHi, RelLo, RelHi, Rel16];
        all.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// A word outside of the section that holds an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressSlot {
    pub place: ProgramByte,
    /// The address that it holds.
    pub to: ProgramByte,
    /// Not written while the program runs.
    pub constant: bool,
}

impl CodeSource<'_> {
    /// Puts marks, fixups and slots in order.
    pub fn sort(&mut self) {
        self.marks.sort_by_key(|mark| mark.offset);
        self.fixups.sort_by_key(|fixup| fixup.offset);
        self.slots.sort_by_key(|slot| slot.place);
        self.hints.sort_unstable();
        self.entries.sort_unstable();
    }

    /// The offset in the section, if the place is in it.
    #[must_use]
    pub fn offset_of(&self, place: ProgramByte) -> Option<u32> {
        let offset = place.at.checked_sub(self.address).filter(|_| place.base == ProgramByte::CODE)?;
        u32::try_from(offset).ok().filter(|offset| (*offset as usize) < self.bytes.len())
    }

    /// The place of an offset.
    #[must_use]
    pub fn place_of(&self, offset: u32) -> ProgramByte {
        ProgramByte { base: ProgramByte::CODE, at: self.address.wrapping_add(u64::from(offset)) }
    }

    /// The fixups of bytes of the section.
    #[must_use]
    pub fn fixups_in(&self, range: Range<u32>) -> &[LinkerFixup] {
        let first = self.fixups.partition_point(|fixup| fixup.offset < range.start);
        let rest = self.fixups.get(first..).unwrap_or_default();
        let count = rest.partition_point(|fixup| fixup.offset < range.end);
        rest.get(..count).unwrap_or_default()
    }

    /// The target of a fixup: symbol and addend.
    #[must_use]
    pub fn target(&self, fixup: &LinkerFixup) -> Option<ProgramByte> {
        Some(self.symbols.get(fixup.symbol as usize)?.plus(fixup.addend as u64))
    }

    /// The value that a word outside of the section certainly holds.
    #[must_use]
    pub fn loaded(&self, place: ProgramByte) -> Option<ProgramByte> {
        if place.base & ProgramByte::GOT != 0 {
            return self.symbols.get((place.base & !ProgramByte::GOT) as usize).copied().filter(|_| place.at == 0);
        }
        let found = self.slots.binary_search_by_key(&place, |slot| slot.place).ok()?;
        self.slots.get(found).filter(|slot| slot.constant).map(|slot| slot.to)
    }
}
