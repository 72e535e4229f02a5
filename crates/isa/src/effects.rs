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
//! Absent on purpose: lanes. A vector write under a partial EXEC keeps the other lanes, as does DPP with its masks
//! (whose old value is a read operand). Registers that M0 chooses are not among the effects of an instruction with
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
    /// Number of the operand that names it; `None` if no operand does.
    pub slot: Option<u8>,
}

impl Inst {
    /// Registers that it writes, then registers that it reads.
    #[inline]
    #[must_use]
    pub fn effects(&self, isa: Isa) -> Effects<'_> {
        let effects = EntryEffects::of(self.entry());
        Effects::new(self, isa, effects, effects.all())
    }

    /// Registers that it reads.
    #[inline]
    #[must_use]
    pub fn reads(&self, isa: Isa) -> Effects<'_> {
        let effects = EntryEffects::of(self.entry());
        Effects::new(self, isa, effects, effects.read())
    }

    /// Registers that it writes.
    #[inline]
    #[must_use]
    pub fn writes(&self, isa: Isa) -> Effects<'_> {
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
pub struct Effects<'a> {
    inst: &'a Inst,
    isa: Isa,
    /// The first four words.
    halves: [u64; 2],
    places: Range,
    lookup: Lookup,
    /// Vector results keep bits.
    partial: bool,
    /// Other fields decide how many registers an operand has.
    sized: bool,
}

impl<'a> Effects<'a> {
    #[inline(always)]
    fn new(inst: &'a Inst, isa: Isa, effects: EntryEffects, places: Range) -> Self {
        let [a, b, c, d, _] = *inst.words();
        Self {
            inst,
            isa,
            halves: [u64::from(a) | u64::from(b) << 32, u64::from(c) | u64::from(d) << 32],
            places,
            lookup: Lookup::of(isa),
            partial: effects.keeps_bits()
                || effects.is_sdwa() && preserves(inst)
                || effects.is_fetch() && fetch::in_part(inst),
            sized: effects.is_sized(),
        }
    }

    #[inline(always)]
    fn effect(&self, place: &Place) -> Option<Effect> {
        let mut reg = place.register(self.halves, self.lookup)?;
        if self.sized {
            reg = with_size(self.inst, self.isa, place, reg);
        }
        let partial = place.kept || place.written && (reg.half.is_some() || self.partial && reg.file == RegFile::Vgpr);
        Some(Effect { reg, written: place.written, role: place.role, partial, slot: place.slot() })
    }
}

/// The same register with as many dwords as the instruction's other fields say.
#[cold]
fn with_size(inst: &Inst, isa: Isa, place: &Place, reg: Reg) -> Reg {
    let slot = place.slot().and_then(|slot| inst.entry().slots().get(usize::from(slot)));
    let Some(slot) = slot else { return reg };
    match inst.operand(isa, slot.name) {
        Some(Value::Reg(reg)) => fetch::touched(inst, reg, slot.name, place.written),
        _ => reg,
    }
}

impl Iterator for Effects<'_> {
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

/// SDWA: the result is less than the dword (`dst_sel` 6), and what is beside it stays (`dst_unused` 2).
#[cold]
fn preserves(inst: &Inst) -> bool {
    inst.raw(Name::DstUnused) == Some(2) && inst.raw(Name::DstSel) != Some(6)
}
