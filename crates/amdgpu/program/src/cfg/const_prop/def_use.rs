//! The effects of a function's instructions on scalar registers, recorded once its code is found.
//!
//! Addresses pass through a few registers of a function, so most instructions do not affect them. These lists give the
//! ones that do, without reading code again.
//!
//! Invariants: every scalar register and VCC that an instruction names, every VCC and SCC that it writes without
//! naming, is included; an instruction that is not in [`DefUseList::points`] touches no register that a point's address
//! can be in.

use crate::ops::{AddressOp, OpProperties};
use hotswap_isa::effects::{EffectBits, EffectReader};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Implicit, Inst, Isa};
use std::ops::Range;

/// Entries of one instruction at most: its effects, VCC, SCC, a mark.
const MOST: usize = 24;

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChainKind {
    /// A register is read or written by an instruction through which no address passes.
    Other,
    /// The same by one through which addresses may pass.
    Step,
    /// The same by one that reads the program counter, or jumps or calls through registers.
    Seed,
    /// The instruction matters whatever it touches.
    Always,
    /// The same: it writes or reads a lane of a vector register.
    Lane,
    Scc,
    /// M0 selects the overwritten register.
    Indexed,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct DefUseEntry {
    pub(super) offset: u32,
    pub(super) effect: EffectBits,
    pub(super) kind: ChainKind,
}

const NOTHING: DefUseEntry = DefUseEntry { offset: 0, effect: EffectBits::NONE, kind: ChainKind::Other };

/// The list of one function; the memory is reused for the next.
pub(crate) struct DefUseList {
    isa: Isa,
    reader: EffectReader,
    list: Vec<DefUseEntry>,
    count: usize,
}

/// An instruction through which addresses may pass, with the scalar registers that it touches, a bit for each.
struct AddressPoint {
    offset: u32,
    reads: u128,
    writes: u128,
    always: bool,
    lane: bool,
}

impl DefUseList {
    pub(crate) fn new(isa: Isa) -> Self {
        Self { isa, reader: EffectReader::new(isa), list: Vec::new(), count: 0 }
    }

    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &DefUseEntry> {
        self.list.iter().take(self.count)
    }

    /// Whether a jump or a call in a range of code certainly uses the result of the first instruction, or sums of it.
    /// Instructions come in order.
    pub(super) fn leads_to_seed(&self, code: Range<u32>) -> bool {
        let list = &self.list[..self.count];
        let first = list.partition_point(|touch| touch.offset < code.start);
        let mut held = 0;
        for one in list[first..].chunk_by(|a, b| a.offset == b.offset) {
            if one[0].offset >= code.end {
                break;
            }
            let (mut reads, mut writes, mut kind) = (0, 0, ChainKind::Other);
            for touch in one {
                let registers = scalar_registers(touch.effect);
                *(if touch.effect.written() { &mut writes } else { &mut reads }) |= registers;
                kind = if matches!(touch.kind, ChainKind::Seed | ChainKind::Step) { touch.kind } else { kind };
            }
            match kind {
                _ if one[0].offset == code.start => held = writes,
                ChainKind::Seed if reads & held != 0 => return true,
                // Any other reader makes numbers of it, or uses it for something else than prefetching.
                ChainKind::Step if reads & held != 0 => held |= writes,
                _ => held &= !writes,
            }
        }
        false
    }

    #[inline(always)]
    fn push_touch(&mut self, touch: DefUseEntry, wanted: bool) {
        if let Some(slot) = self.list.get_mut(self.count) {
            *slot = touch;
            self.count += usize::from(wanted);
        }
    }

    /// Records the registers that an instruction touches.
    #[inline(always)]
    pub(crate) fn record_touches(&mut self, offset: u32, inst: &Inst, line: OpProperties) {
        if self.list.len() < self.count + MOST {
            self.list.resize((self.list.len() * 2).max(4096), NOTHING);
        }
        let kind = match line.op {
            AddressOp::GetPc | AddressOp::SetPc | AddressOp::SwapPc => ChainKind::Seed,
            _ if line.moves => ChainKind::Step,
            _ => ChainKind::Other,
        };
        let reader = self.reader;
        let mut reads = false;
        let implicit = reader.visit(inst, |effect| {
            let scalar = effect.is_scalar();
            reads |= scalar & !effect.written();
            // A prefetched value is not used.
            self.push_touch(DefUseEntry { offset, effect, kind }, scalar & (line.op != AddressOp::Fetch));
        });
        let effect = EffectBits::NONE;
        self.push_touch(
            DefUseEntry { offset, effect, kind: ChainKind::Scc },
            implicit.writes.has_register(Implicit::Scc),
        );
        if implicit.writes.has_register(Implicit::Vcc) {
            implicit.for_each_effect(self.isa, |effect| {
                self.push_touch(DefUseEntry { offset, effect, kind }, effect.written() && effect.is_scalar());
            });
        }
        // A carry of two numbers lacks a register that marks it as one.
        let mark = match line.op {
            AddressOp::GetPc | AddressOp::SetPc | AddressOp::SwapPc | AddressOp::Call => Some(ChainKind::Always),
            AddressOp::ReadLane | AddressOp::WriteLane => Some(ChainKind::Lane),
            op => (op.carries() && !reads).then_some(ChainKind::Always),
        };
        self.push_touch(DefUseEntry { offset, effect, kind: mark.unwrap_or(ChainKind::Always) }, mark.is_some());
        self.push_touch(DefUseEntry { offset, effect, kind: ChainKind::Indexed }, line.indexed && !line.moves);
    }

    /// Offsets, ascending, of the instructions through which addresses of code may pass: those that read the program
    /// counter, jump, call or use lanes, and those that share a register with one of these, or with one that they
    /// write, and so on.
    pub(crate) fn address_points(&self) -> Vec<u32> {
        let CandidatePoints { points, mut wanted } = self.candidate_points();
        // A lane that is read may be any that is written.
        let mut lanes = false;
        loop {
            let before = (wanted, lanes);
            for point in points.iter().rev() {
                let makes = point.writes & wanted != 0;
                lanes |= makes && point.lane;
                if makes || lanes && point.lane {
                    wanted |= point.reads;
                }
            }
            if (wanted, lanes) == before {
                break;
            }
        }
        let mut offsets: Vec<u32> =
            points.iter().filter(|one| touches_wanted_register(one, wanted)).map(|point| point.offset).collect();
        offsets.sort_unstable();
        offsets
    }

    fn candidate_points(&self) -> CandidatePoints {
        let (mut points, mut wanted): (Vec<AddressPoint>, u128) = (Vec::new(), 0);
        let is_point =
            |kind: ChainKind| matches!(kind, ChainKind::Step | ChainKind::Seed | ChainKind::Always | ChainKind::Lane);
        for touch in self.iter().filter(|touch| is_point(touch.kind)) {
            let registers = scalar_registers(touch.effect);
            wanted |= if touch.kind == ChainKind::Seed { registers } else { 0 };
            if points.last().is_none_or(|point| point.offset != touch.offset) {
                points.push(AddressPoint { offset: touch.offset, reads: 0, writes: 0, always: false, lane: false });
            }
            if let Some(point) = points.last_mut() {
                point.always |= touch.kind == ChainKind::Always;
                point.lane |= touch.kind == ChainKind::Lane;
                *(if touch.effect.written() { &mut point.writes } else { &mut point.reads }) |= registers;
            }
        }
        CandidatePoints { points, wanted }
    }
}

/// All instructions through which addresses may pass.
struct CandidatePoints {
    points: Vec<AddressPoint>,
    /// The registers of those that make or use addresses.
    wanted: u128,
}

fn touches_wanted_register(point: &&AddressPoint, wanted: u128) -> bool {
    point.always || point.lane || (point.reads | point.writes) & wanted != 0
}

/// Words of a set with scalar registers and VCC.
const SCALARS: usize = 20;

/// The scalar registers of a set, VCC as 106 and 107.
pub(super) fn scalars_of(set: &RegSet) -> u128 {
    u128::from(set.words()[SCALARS]) | u128::from(set.words()[SCALARS + 1]) << 64
}

/// The scalar registers of an effect, VCC as 106 and 107.
pub(super) fn scalar_registers(effect: EffectBits) -> u128 {
    let (word, low, high) = effect.set_bits();
    match word.checked_sub(SCALARS) {
        Some(0) => u128::from(low) | u128::from(high) << 64,
        Some(1) => u128::from(low) << 64,
        _ => 0,
    }
}
