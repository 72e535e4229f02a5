//! What an instruction reads and writes: registers named by operands and registers that it touches without naming.
//!
//! Terms: an instruction *overwrites* a register if nothing of the old value is left; a *partial* write keeps some
//! bits (16-bit results, loads into one half, SDWA that preserves). What is live before an instruction is therefore
//! what is live after it without what it overwrites, and what it reads.
//!
//! Invariants: a tied operand is both read and written; NULL is neither; lane masks, VCC and EXEC are as wide as the
//! wave; the iterators allocate nothing and look nothing up that the build script could know: one line of a table
//! for the instruction, one for each register.
//!
//! A vector write under a partial EXEC keeps the other lanes; such a write is *masked*. DPP with its masks has the old
//! value as a read operand.
//!
//! Absent on purpose: the value of EXEC. Registers that M0 chooses are not among the effects of an instruction with
//! [`Flag::Indexed`](crate::Flag::Indexed), but the sets have all that it may choose; the index mode of gfx9 is state of
//! the wave, see [`Inst::index_mode`].

mod fetch;
mod flow;
mod lookup;
mod memory;
mod place;
mod sets;

pub use flow::Flow;
pub use memory::{Counter, Counters, Memory, Space};
pub(crate) use place::{half_piece, sized_by_fields};

use crate::bank::Role;
use crate::reg::{Reg, RegFile};
use crate::value::Value;
use crate::{Entry, Inst, Isa, Name};
use lookup::Lookup;
use place::{EntryEffects, Place, Range};

/// A register that an instruction reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effect {
    /// The register as the encoding names it; for banked VGPRs the number within the bank.
    pub reg: Reg,
    /// Written rather than read.
    pub written: bool,
    /// What the bank mode makes of it, see [`VgprBanks::resolve`](crate::bank::VgprBanks::resolve).
    pub role: Option<Role>,
    /// Written, but something of the old value is left.
    pub partial: bool,
    /// Written in the lanes of EXEC only: the others keep the old value. A caller who proves that EXEC is full may
    /// take it as overwritten.
    pub masked: bool,
    /// Number of the operand that names it; `None` if no operand does.
    pub slot: Option<u8>,
}

impl Inst {
    /// Registers that it writes, then registers that it reads.
    #[inline]
    #[must_use]
    pub fn effects(&self, isa: Isa) -> Effects {
        let effects = EntryEffects::of(self.entry());
        Effects::new(self, isa, effects, effects.all())
    }

    /// Registers that it reads.
    #[inline]
    #[must_use]
    pub fn reads(&self, isa: Isa) -> Effects {
        let effects = EntryEffects::of(self.entry());
        Effects::new(self, isa, effects, effects.read())
    }

    /// Registers that it writes.
    #[inline]
    #[must_use]
    pub fn writes(&self, isa: Isa) -> Effects {
        let effects = EntryEffects::of(self.entry());
        Effects::new(self, isa, effects, effects.written())
    }
}

/// The role of operand number `slot` of an entry, `None` where the bank mode does not concern it.
#[must_use]
pub fn role(entry: Entry, slot: u8) -> Option<Role> {
    EntryEffects::of(entry).all().find(|place| place.slot() == Some(slot))?.role
}

/// Iterator over what an instruction reads or writes: operands in LLVM's order, then registers without an operand.
#[derive(Debug, Clone)]
pub struct Effects {
    parts: Parts,
    isa: Isa,
    places: Range,
    lookup: Lookup,
    /// Vector results keep bits.
    partial: bool,
    /// Vector results keep lanes.
    masked: bool,
    /// Other fields decide how many registers an operand has.
    sized: bool,
}

/// An instruction as numbers that fit registers: what refers to an [`Inst`] keeps it in memory, where it was written
/// in other pieces than it is read, which the processor cannot forward (10 ns of 38 for decoding with all effects).
#[derive(Debug, Clone, Copy)]
struct Parts {
    /// The first four words.
    halves: [u64; 2],
    last: u32,
    entry: Entry,
    len: u8,
}

impl Parts {
    #[inline(always)]
    fn of(inst: &Inst) -> Self {
        let [a, b, c, d, last] = *inst.words();
        let halves = [u64::from(a) | u64::from(b) << 32, u64::from(c) | u64::from(d) << 32];
        Self { halves, last, entry: inst.entry(), len: inst.len() }
    }

    /// The instruction, but for where its literal is.
    #[cold]
    fn inst(self) -> Inst {
        let [low, high] = self.halves;
        Inst::whole(low, high, self.last, self.entry.id(), self.len, 0)
    }
}

impl Effects {
    #[inline(always)]
    fn new(inst: &Inst, isa: Isa, effects: EntryEffects, places: Range) -> Self {
        let parts = Parts::of(inst);
        Self {
            parts,
            isa,
            places,
            lookup: Lookup::of(isa),
            partial: effects.keeps_bits() || effects.may_keep_bits() && keeps_bits(parts, effects),
            masked: effects.is_masked(),
            sized: effects.is_sized(),
        }
    }

    #[inline(always)]
    fn effect(&self, place: &Place) -> Option<Effect> {
        let reg = match self.sized {
            false => place.register(self.parts.halves, self.lookup)?,
            true => with_size(self.parts, self.isa, *place, self.lookup)?,
        };
        let partial = place.kept || place.written && (reg.half.is_some() || self.partial && reg.file == RegFile::Vgpr);
        let masked = place.written && self.masked && matches!(reg.file, RegFile::Vgpr | RegFile::Agpr);
        Some(Effect { reg, written: place.written, role: place.role, partial, masked, slot: place.slot() })
    }
}

/// The same register with as many dwords as the instruction's other fields say.
#[cold]
fn with_size(parts: Parts, isa: Isa, place: Place, lookup: Lookup) -> Option<Reg> {
    let reg = place.register(parts.halves, lookup)?;
    let slot = place.slot().and_then(|slot| parts.entry.slots().get(usize::from(slot)));
    let Some(slot) = slot else { return Some(reg) };
    let inst = parts.inst();
    match inst.operand(isa, slot.name) {
        Some(Value::Reg(reg)) => Some(fetch::touched(&inst, reg, slot.name, place.written)),
        _ => Some(reg),
    }
}

impl Iterator for Effects {
    type Item = Effect;

    #[inline(always)]
    fn next(&mut self) -> Option<Effect> {
        loop {
            let place = self.places.next()?;
            if let Some(effect) = self.effect(place) {
                return Some(effect);
            }
        }
    }

    #[inline]
    fn fold<B, F: FnMut(B, Effect) -> B>(self, init: B, mut each: F) -> B {
        self.places.filter_map(|place| self.effect(place)).fold(init, &mut each)
    }
}

/// Whether the instruction's fields say that something of a vector result stays.
#[cold]
fn keeps_bits(parts: Parts, effects: EntryEffects) -> bool {
    let inst = parts.inst();
    // SDWA: the result is less than the dword (`dst_sel` 6), and what is beside it stays (`dst_unused` 2).
    let preserves = || inst.raw(Name::DstUnused) == Some(2) && inst.raw(Name::DstSel) != Some(6);
    effects.is_sdwa() && preserves() || effects.is_fetch() && fetch::in_part(&inst)
}
