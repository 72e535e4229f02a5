//! What new code overwrites.
//!
//! Invariants: every register that new code writes and the old instruction did not is dead behind it in the program that
//! came out, or gets back what it held; no memory instruction under way writes it; the kernels that get there have it. The
//! bank mode behind new code is the one behind the old.

use super::follow::Followed;
use super::{Fault, Pair};
use crate::flight::Flights;
use crate::reach;
use crate::unit::Unit;
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Inst, Isa, Name, Value};
use hotswap_program::{Dead, Live, Liveness};
use std::cell::OnceCell;

/// Checks the changed places of a function: its number before and after.
pub(super) fn function(pair: &Pair<'_, '_, '_>, followed: &Followed, old: usize, new: usize) -> Result<(), Fault> {
    let before = &pair.old.program.functions[old];
    let function = Function { unit: pair.new, number: new, liveness: OnceCell::new(), flights: OnceCell::new() };
    let granted = granted(pair, old, new);
    let lanes: OnceCell<(Liveness, bool)> = OnceCell::new();
    for (offset, (inst, code)) in pair.plan.range(before.start..before.end) {
        let Some((start, end)) = followed.places.get(offset).copied() else { continue };
        // What is only waited for overwrites nothing.
        if code.iter().all(|new| new.words() == inst.words() || is_idle(new)) {
            continue;
        }
        // Nobody comes here.
        let Some(banks) = pair.new.banks.before(&pair.new.program, start) else { continue };
        let place = Place { start, end, old: inst, code };
        check(&function, &place, banks, granted)?;
        // Matrix instructions read and write all lanes, also those of their scratch that nobody has written: whether other lanes
        // hold something is for the program to say in which no such instruction reads them.
        if !keeps_lanes(code) {
            let (liveness, _) = lanes.get_or_init(|| pair.old.liveness(old));
            all_lanes(pair, liveness, *offset, &place, granted)?;
        }
    }
    Ok(())
}

fn is_idle(inst: &Inst) -> bool {
    matches!(inst.mnemonic(), "v_nop" | "s_nop") || inst.mnemonic().starts_with("s_wait_")
}

/// Vector registers of the kernels that get to a function.
#[derive(Clone, Copy)]
struct Granted {
    /// All of them have so many now.
    now: u16,
    /// None of them had one from here on: it holds nothing.
    before: u16,
}

fn granted(pair: &Pair<'_, '_, '_>, old: usize, new: usize) -> Granted {
    let counts = |unit: &Unit<'_>, number: usize| {
        let kernels = unit.program.kernels_of(number).into_iter();
        let count = |kernel: u32| unit.program.kernel_needs(kernel as usize)?.vgprs;
        kernels.filter_map(count).map(|count| u16::try_from(count).unwrap_or(u16::MAX)).collect::<Vec<u16>>()
    };
    let now = counts(pair.new, new).into_iter().min().unwrap_or_else(|| reach::highest(pair.old, old));
    Granted { now, before: counts(pair.old, old).into_iter().max().unwrap_or(u16::MAX) }
}

impl Granted {
    fn is_new(self, reg: Reg) -> bool {
        reg.file == RegFile::Vgpr && reg.index >= self.before
    }
}

struct Function<'u, 'a> {
    unit: &'u Unit<'a>,
    number: usize,
    liveness: OnceCell<(Liveness, bool)>,
    flights: OnceCell<Flights>,
}

impl Function<'_, '_> {
    fn behind(&self, last: u32) -> Live {
        let (liveness, _) = self.liveness.get_or_init(|| self.unit.liveness(self.number));
        let around = liveness.around(&self.unit.program, self.unit.summaries(), &self.unit.banks, last);
        around.map_or(Live::EVERYTHING, |(_, behind)| behind)
    }

    /// Registers that work under way may write before an offset.
    fn under_way(&self, offset: u32) -> RegSet {
        let flights = self.flights.get_or_init(|| Flights::of(self.unit, self.number));
        let mut set = RegSet::EMPTY;
        let function = &self.unit.program.functions[self.number];
        let Some(block) = function.block_at(offset) else { return set };
        let Some(mut flight) = flights.at_block(block) else { return set };
        let (mut at, mut banks) = (function.blocks[block].start, self.unit.banks.at_block(self.number, block));
        while at < offset {
            let Some(inst) = self.unit.program.decode(at) else { break };
            flight.pass(&inst, self.unit.isa(), banks);
            banks = banks.after(&inst, self.unit.isa());
            at += u32::from(inst.len());
        }
        flight.add_to(&mut set);
        set
    }
}

/// A changed place: where it is now, and what it was and is.
struct Place<'p> {
    start: u32,
    end: u32,
    old: &'p Inst,
    code: &'p [Inst],
}

/// What new code writes and the old instruction did not, and the bank mode behind it.
fn overwritten(place: &Place<'_>, mut banks: VgprBanks, isa: Isa) -> (RegSet, VgprBanks) {
    let own = place.old.written_set(isa, banks);
    let mut written = RegSet::EMPTY;
    for inst in place.code {
        written.union_with(&inst.written_set(isa, banks));
        banks = banks.after(inst, isa);
    }
    // The bank mode is checked by itself; other bits of MODE are written by nothing that families have.
    written.remove(Reg::special(Special::Mode, 1));
    written.subtract(&own);
    (written, banks)
}

fn check(function: &Function<'_, '_>, place: &Place<'_>, banks: VgprBanks, granted: Granted) -> Result<(), Fault> {
    let isa = function.unit.isa();
    let Place { start, end, old, code } = *place;
    let wanted = banks.after(old, isa).mode();
    let (written, after) = overwritten(place, banks, isa);
    if after.mode() != wanted {
        return Err((start, "the bank mode behind new code is another one".to_owned()));
    }
    if written.is_empty() {
        return Ok(());
    }
    let last = end - code.last().map_or(0, |inst| u32::from(inst.len()));
    let (behind, mut under_way) = (function.behind(last), function.under_way(start));
    // What the old instruction reads is there.
    under_way.subtract(&old.read_set(isa, banks));
    for reg in &written {
        let holds = !granted.is_new(reg) && !behind.is_dead(reg, Dead::InActiveLanes);
        if holds && !comes_back(code, reg, isa) {
            return Err((start, format!("new code overwrites {}, which is read later", name(reg))));
        }
        if under_way.touches(reg) && matches!(reg.file, RegFile::Vgpr | RegFile::Sgpr) {
            return Err((start, format!("new code uses {}, which a memory instruction under way writes", name(reg))));
        }
        if reg.file == RegFile::Vgpr && reg.index >= granted.now {
            return Err((start, format!("new code uses {}, and the kernel has {}", name(reg), granted.now)));
        }
    }
    Ok(())
}

/// No other lane of what is overwritten holds anything.
fn all_lanes(
    pair: &Pair<'_, '_, '_>,
    liveness: &Liveness,
    offset: u32,
    place: &Place<'_>,
    granted: Granted,
) -> Result<(), Fault> {
    let unit = pair.old;
    let around = liveness.around(&unit.program, unit.summaries(), &unit.banks, offset);
    let Some(banks) = unit.banks.before(&unit.program, offset) else { return Ok(()) };
    let (_, behind) = around.unwrap_or((Live::EVERYTHING, Live::EVERYTHING));
    let (written, _) = overwritten(place, banks, unit.isa());
    let held = |reg: &Reg| !granted.is_new(*reg) && !behind.is_dead(*reg, Dead::InAllLanes);
    let live = |reg: &Reg| held(reg) && !comes_back(place.code, *reg, unit.isa());
    match written.iter().find(live) {
        Some(reg) => {
            Err((place.start, format!("new code overwrites all lanes of {}, some of which are read later", name(reg))))
        }
        None => Ok(()),
    }
}

/// Whether all that new code writes is written in active lanes alone.
fn keeps_lanes(code: &[Inst]) -> bool {
    !code.iter().any(|inst| inst.is(hotswap_isa::Flag::Wmma) || inst.is(hotswap_isa::Flag::Swmmac))
}

/// Whether a register is saved into another one before it is written, and comes from there last.
fn comes_back(code: &[Inst], reg: Reg, isa: Isa) -> bool {
    let is_move = |inst: &Inst| inst.mnemonic() == "s_mov_b32";
    let operand = |inst: &Inst, name| match inst.operand(isa, name) {
        Some(Value::Reg(reg)) => Some(reg),
        _ => None,
    };
    let writes = |inst: &&Inst| inst.written_set(isa, VgprBanks::ENTRY).touches(reg);
    let Some(first) = code.iter().position(|inst| writes(&inst)) else { return false };
    let Some(last) = code.iter().rev().find(writes).filter(|inst| is_move(inst)) else { return false };
    let Some(from) = operand(last, Name::Src0) else { return false };
    let saves = |inst: &Inst| {
        is_move(inst) && operand(inst, Name::Sdst) == Some(from) && operand(inst, Name::Src0) == Some(reg)
    };
    let saved = code[..first].iter().position(saves);
    saved.is_some_and(|saved| {
        !code[saved + 1..].iter().any(|inst| inst.written_set(isa, VgprBanks::ENTRY).touches(from))
    })
}

fn name(reg: Reg) -> String {
    let mut text = String::new();
    match reg.write(&mut text) {
        Ok(()) => text,
        Err(_) => format!("{reg:?}"),
    }
}
