//! What an instruction reads and writes: registers named by operands and registers that it touches without naming.
//!
//! Terms: an instruction *overwrites* a register if nothing of the old value is left; a *partial* write keeps some
//! bits (16-bit results, loads into one half, SDWA that preserves). What is live before an instruction is therefore
//! what is live after it without what it overwrites, and what it reads.
//!
//! Invariants: a tied operand is both read and written; NULL is neither; lane masks, VCC and EXEC are as wide as the
//! wave; the iterators allocate nothing.
//!
//! Absent on purpose: lanes. A vector write under a partial EXEC keeps the other lanes, as does DPP with its masks
//! (whose old value is a read operand). Registers that M0 or the index mode choose are not known here either.

mod flow;
mod memory;

pub use flow::Flow;
pub use memory::{Counter, Counters, Memory, Space};

use crate::bank::{Role, VgprBanks};
use crate::kind::{self, Decode, KINDS, Source};
use crate::operand::{Access, Operands};
use crate::reg::{Half, Reg, RegFile, Special};
use crate::regset::RegSet;
use crate::value::Value;
use crate::{Entry, Flag, Implicit, Inst, Isa, Name, Piece, Wave};

include!(concat!(env!("OUT_DIR"), "/effects.rs"));

/// Where a register's number lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    decode: Decode,
    slot: u8,
    role: Option<Role>,
    pieces: [Piece; 2],
}

/// The registers of a format: written ones, then read ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    start: u16,
    writes: u8,
    reads: u8,
    /// Other fields decide how many registers an operand has.
    sized: bool,
}

/// A register that an instruction reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effect {
    /// The register as the encoding names it; for banked VGPRs the number within the bank.
    pub reg: Reg,
    /// What the bank mode makes of it, see [`VgprBanks::resolve`].
    pub role: Option<Role>,
    /// Written, but something of the old value is left.
    pub partial: bool,
    /// Number of the operand that names it; `None` if no operand does.
    pub slot: Option<u8>,
}

impl Inst {
    /// Registers that it reads.
    #[inline]
    #[must_use]
    pub fn reads(&self, isa: Isa) -> Effects<'_> {
        Effects::new(self, isa, false)
    }

    /// Registers that it writes.
    #[inline]
    #[must_use]
    pub fn writes(&self, isa: Isa) -> Effects<'_> {
        Effects::new(self, isa, true)
    }

    /// Registers that it may read, under a bank mode: where a bank is not known, the register of every bank.
    #[must_use]
    pub fn read_set(&self, isa: Isa, banks: VgprBanks) -> RegSet {
        collect(self.reads(isa), banks)
    }

    /// Registers that it may write.
    #[must_use]
    pub fn written_set(&self, isa: Isa, banks: VgprBanks) -> RegSet {
        collect(self.writes(isa), banks)
    }

    /// Registers that it certainly overwrites.
    #[must_use]
    pub fn overwritten_set(&self, isa: Isa, banks: VgprBanks) -> RegSet {
        let whole = self.writes(isa).filter(|effect| !effect.partial);
        whole.filter_map(|effect| banks.resolve(effect.reg, effect.role)).collect()
    }
}

fn collect(effects: Effects<'_>, banks: VgprBanks) -> RegSet {
    let mut set = RegSet::new();
    for effect in effects {
        match banks.resolve(effect.reg, effect.role) {
            Some(reg) => set.insert(reg),
            None => (0..4).for_each(|bank| set.insert(Reg { index: effect.reg.index + 256 * bank, ..effect.reg })),
        }
    }
    set
}

/// The role of operand number `slot` of an entry, `None` where the bank mode does not concern it.
#[must_use]
pub fn role(entry: Entry, slot: u8) -> Option<Role> {
    let places = places(entry);
    let all = PLACES.get(range(places, true).start..range(places, false).end).unwrap_or_default();
    all.iter().find(|place| place.slot == slot)?.role
}

/// Whether other fields decide how many registers an operand has.
pub(crate) fn sized_by_fields(entry: Entry) -> bool {
    places(entry).sized
}

/// The bit elsewhere that says which half of its register operand number `slot` is.
pub(crate) fn half_piece(entry: Entry, slot: u8) -> Option<Piece> {
    let places = places(entry);
    let all = PLACES.get(range(places, true).start..range(places, false).end).unwrap_or_default();
    let place = all.iter().find(|place| place.slot == slot)?;
    place.pieces.into_iter().find(|piece| piece.from == 9 && piece.width == 1)
}

#[inline]
fn places(entry: Entry) -> Places {
    const NONE: Places = Places { start: 0, writes: 0, reads: 0, sized: false };
    FORMAT_PLACES.get(entry.format_number()).copied().unwrap_or(NONE)
}

#[inline]
fn range(places: Places, written: bool) -> core::ops::Range<usize> {
    let middle = usize::from(places.start) + usize::from(places.writes);
    if written { usize::from(places.start)..middle } else { middle..middle + usize::from(places.reads) }
}

/// Iterator over what an instruction reads or writes: operands in LLVM's order, then registers without an operand.
#[derive(Debug, Clone)]
pub struct Effects<'a> {
    inst: &'a Inst,
    isa: Isa,
    written: bool,
    partial: bool,
    named: Named,
    implicit: u32,
}

/// Registers of operands.
#[derive(Debug, Clone)]
enum Named {
    Places(core::slice::Iter<'static, Place>),
    Operands(Operands, u8),
}

impl<'a> Effects<'a> {
    #[inline]
    fn new(inst: &'a Inst, isa: Isa, written: bool) -> Self {
        let entry = inst.entry();
        let places = places(entry);
        let named = if places.sized {
            Named::Operands(inst.operands(isa), 0)
        } else {
            Named::Places(PLACES.get(range(places, written)).unwrap_or_default().iter())
        };
        let implicit = if written { entry.implicit_writes() } else { entry.implicit_reads() };
        Self { inst, isa, written, partial: written && keeps_bits(inst, entry), named, implicit }
    }

    #[inline]
    fn next_named(&mut self) -> Option<Effect> {
        match &mut self.named {
            Named::Places(places) => {
                let isa = self.isa;
                let (inst, written, partial) = (self.inst, self.written, self.partial);
                places.find_map(|place| {
                    let reg = place.register(inst, isa)?;
                    effect(reg, place.role, place.slot, written && (partial || reg.half.is_some()))
                })
            }
            Named::Operands(operands, number) => {
                for operand in operands {
                    let slot = *number;
                    *number += 1;
                    let Value::Reg(reg) = operand.value else { continue };
                    // A tied operand stands in the list twice, written and read.
                    let touched = self.written == (operand.access != Access::Read);
                    let role = role(self.inst.entry(), slot);
                    if let (true, Some(effect)) = (touched, effect(reg, role, slot, self.partial)) {
                        return Some(effect);
                    }
                }
                None
            }
        }
    }
}

impl Iterator for Effects<'_> {
    type Item = Effect;

    #[inline]
    fn next(&mut self) -> Option<Effect> {
        if let Some(effect) = self.next_named() {
            return Some(effect);
        }
        if self.implicit == 0 {
            return None;
        }
        let bit = self.implicit.trailing_zeros() as usize;
        self.implicit &= self.implicit - 1;
        let reg = implicit_register(*Implicit::ALL.get(bit)?, self.isa);
        Some(Effect { reg, role: None, partial: false, slot: None })
    }
}

/// `reg` as an effect; NULL is none.
#[inline]
fn effect(reg: Reg, role: Option<Role>, slot: u8, partial: bool) -> Option<Effect> {
    if reg.is(Special::Null) {
        return None;
    }
    Some(Effect { reg, role, partial: partial && reg.file == RegFile::Vgpr, slot: Some(slot) })
}

/// Whether a vector result keeps bits of what was there.
#[inline]
fn keeps_bits(inst: &Inst, entry: Entry) -> bool {
    entry.is(Flag::Dst16) || entry.is(Flag::TiedSourceNotRead) || entry.is(Flag::Sdwa) && preserves(inst)
}

/// SDWA: the result is less than the dword (`dst_sel` 6), and what is beside it stays (`dst_unused` 2).
fn preserves(inst: &Inst) -> bool {
    inst.raw(Name::DstUnused) == Some(2) && inst.raw(Name::DstSel) != Some(6)
}

fn implicit_register(implicit: Implicit, isa: Isa) -> Reg {
    let mask = if isa.wave() == Wave::W32 { 1 } else { 2 };
    match implicit {
        Implicit::Exec => Reg::special(Special::ExecLo, mask),
        Implicit::Vcc => Reg::special(Special::VccLo, mask),
        Implicit::Scc => Reg::special(Special::Scc, 1),
        Implicit::M0 => Reg::special(Special::M0, 1),
        Implicit::Mode => Reg::special(Special::Mode, 1),
        Implicit::FlatScr => Reg::special(Special::FlatScratchLo, 2),
        Implicit::ASYNCcnt => Reg::special(Special::AsyncCnt, 1),
        Implicit::TENSORcnt => Reg::special(Special::TensorCnt, 1),
    }
}

impl Place {
    /// The register that its bits name, `None` if they name a constant.
    #[inline]
    fn register(&self, inst: &Inst, isa: Isa) -> Option<Reg> {
        let [first, second] = self.pieces;
        let mut raw = bits(inst, first);
        if second.width != 0 {
            raw |= bits(inst, second);
        }
        let vector = |dwords| Some(Reg::new(RegFile::Vgpr, raw & 255, dwords));
        let source = match self.decode {
            Decode::Vgpr { dwords } => return vector(dwords),
            Decode::Source { dwords, plus } => kind::source(raw | plus, dwords, isa),
            Decode::VgprLow128 => return vector(1),
            Decode::Agpr { dwords } => return Some(Reg::new(RegFile::Agpr, raw & 255, dwords)),
            Decode::Half => return half(raw & 255, raw & 512),
            Decode::HalfLow128 => return half(raw & 127, raw & 128),
            Decode::HalfSource if raw & 256 != 0 => return half(raw & 255, raw & 512),
            Decode::HalfSourceLow128 if raw & 256 != 0 => return half(raw & 127, raw & 128),
            Decode::HalfSource | Decode::HalfSourceLow128 | Decode::Barrier => kind::source(raw & 511, 1, isa),
            Decode::LaneMask => kind::source(raw, kind::lane_mask_dwords(isa), isa),
            Decode::SdwaSource => kind::sdwa_source(raw, isa),
            Decode::SdwaLaneMask => kind::sdwa_lane_mask(raw, isa),
            Decode::DualResultY => return Some(Reg::new(RegFile::Vgpr, raw ^ 1, 1)),
            Decode::Imm
            | Decode::Literal32
            | Decode::Literal64
            | Decode::ScalarOffset
            | Decode::BranchTarget
            | Decode::Dpp8FetchInvalid
            | Decode::Version => return None,
        };
        match source {
            Source::Reg(reg) => Some(reg),
            _ => None,
        }
    }
}

#[inline]
fn half(index: u16, high: u16) -> Option<Reg> {
    Some(Reg::half(index, if high == 0 { Half::Low } else { Half::High }))
}

/// The bits of one piece, at their place in the value. A piece does not reach over more than two words.
#[inline]
fn bits(inst: &Inst, piece: Piece) -> u16 {
    let words = inst.words();
    let (word, shift) = (usize::from(piece.at / 32), piece.at % 32);
    let low = u64::from(words.get(word).copied().unwrap_or(0));
    let high = u64::from(words.get(word + 1).copied().unwrap_or(0));
    let value = ((high << 32 | low) >> shift) as u16 & !(u16::MAX << piece.width);
    value << piece.from
}
