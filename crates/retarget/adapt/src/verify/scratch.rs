//! The registers that new code overwrites.
//!
//! Invariants: every register that new code writes and the old instruction did not is dead after it in the resulting
//! program, or is restored to its old value. No outstanding memory operation writes it, and the kernels that reach it
//! have it allocated. The bank mode after new code equals the one after the old.
//!
//! New matrix instructions read all lanes of their operands. Lanes that were off when other new code wrote an operand
//! therefore look as if they held a value from an earlier point ([`ClobberedRegister`]). The input decides there: the register was
//! dead in all its lanes, and no new code of the unit reads it before writing it.

use super::offset_map::CodeOffsetMap;
use super::{PlanDifference, PlannedChange, UnitPair};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Inst, Isa, Name, OperandValue};
use hotswap_program::{BankCursor, DeadLanes, LivenessCursor, OutstandingWrites, SectionProgram};
use rayon::prelude::*;
use std::ops::Range;

/// A register that new code at an offset overwrites, dead in all lanes in the input and live in some in the result.
pub(super) type ClobberedRegister = (u32, Reg);

/// Checks the changed places of a function: its number before and after.
///
/// # Errors
/// The first fault. Registers that still need a check of the whole unit are returned instead: see [`never_read`].
pub(super) fn check_function(
    pair: &UnitPair<'_, '_, '_>,
    followed: &CodeOffsetMap,
    old: usize,
    new: usize,
) -> Result<Vec<ClobberedRegister>, PlanDifference> {
    if !pair.shifts.is_empty() {
        return super::entry_copies::check_function(pair, old).map(|()| Vec::new());
    }
    let before = &pair.old.program.functions[old];
    let places = changed_ranges(pair, followed, before.start..before.end);
    let lasts = places.iter().map(ChangedRange::last_new_offset).collect();
    let function = NewFunction {
        unit: pair.new,
        lives: LivenessCursor::new(pair.new, new, lasts),
        under_way: OutstandingWrites::new(pair.new, new),
    };
    let granted = granted_registers(pair, old, new);
    let gives_away = pair.old.return_depends_on_writes(old);
    let asked = places.iter().filter(|place| gives_away || !keeps_lanes(place.code)).map(|place| place.offset);
    let lanes = LivenessCursor::new(pair.old, old, asked.collect());
    let (modes, old_modes) = (BankCursor::new(pair.new, new), BankCursor::new(pair.old, old));
    let mut held = Vec::new();
    for place in &places {
        // Unreachable code.
        let Some(banks) = modes.mode_before(place.start) else { continue };
        for reg in held_after_place(&function, place, banks, granted)? {
            let was_dead = lanes.live_around(place.offset).1.is_dead(reg, DeadLanes::InAllLanes);
            if reg.file != RegFile::Vgpr || !was_dead {
                return Err(read_later(place.start, reg));
            }
            held.push((place.start, reg));
        }
        // Matrix instructions read and write all lanes, also those of their scratch registers that were never written.
        // Whether other lanes hold a value is decided in the program in which no such instruction reads them. The
        // registers that new code writes must not affect whether a value is needed.
        let dead = match keeps_lanes(place.code) {
            false => Some(DeadLanes::InAllLanes),
            true => gives_away.then_some(DeadLanes::InActiveLanes),
        };
        if let Some((dead, banks)) = dead.zip(old_modes.mode_before(place.offset)) {
            dead_before(pair, &lanes, dead, place, banks, granted)?;
        }
    }
    Ok(held)
}

fn read_later(at: u32, reg: Reg) -> PlanDifference {
    (at, format!("new code overwrites {}, which is read later", name(reg)))
}

/// Checks that no new code of the unit reads any of these registers before writing it.
pub(super) fn never_read(
    pair: &UnitPair<'_, '_, '_>,
    followed: &CodeOffsetMap,
    held: &[ClobberedRegister],
) -> Result<(), PlanDifference> {
    let functions = (0..if held.is_empty() { 0 } else { pair.old.program.functions.len() }).into_par_iter();
    let read = functions.map(|number| read_first(pair, followed, number));
    let read = read.reduce(RegSet::new, |mut all, one| {
        all.union_with(&one);
        all
    });
    held.iter().find(|(_, reg)| read.touches(*reg)).map_or(Ok(()), |(at, reg)| Err(read_later(*at, *reg)))
}

/// The registers that new code of an old function reads before writing them and that the old instruction did not read.
fn read_first(pair: &UnitPair<'_, '_, '_>, followed: &CodeOffsetMap, number: usize) -> RegSet {
    let (isa, function) = (pair.old.isa(), &pair.old.program.functions[number]);
    let (modes, mut all) = (BankCursor::new(pair.old, number), RegSet::new());
    for place in changed_ranges(pair, followed, function.start..function.end) {
        // If the mode is unknown, an instruction reads every bank and writes none.
        let mut banks = modes.mode_before(place.offset).unwrap_or(VgprBanks::UNKNOWN);
        let (start, mut known) = (banks, place.old.read_set(isa, banks));
        for inst in place.code {
            let mut read = inst.read_set(pair.target, banks);
            read.subtract(&known);
            // A store that spills a register brings nothing into what new code computes.
            if inst.mnemonic() == "scratch_store_b32" {
                read = read.iter().filter(|reg| !is_reloaded(place.code, *reg, start, pair.target)).collect();
            }
            all.union_with(&read);
            known.union_with(&inst.overwritten_in_active_lanes(pair.target, banks));
            banks = banks.mode_after(inst, pair.target);
        }
    }
    all
}

/// The changed places of a function. Places with only waits inserted overwrite nothing.
fn changed_ranges<'p>(
    pair: &UnitPair<'p, '_, '_>,
    followed: &CodeOffsetMap,
    range: Range<u32>,
) -> Vec<ChangedRange<'p>> {
    let (plan, mut known) = (pair.plan.changes_in(range.clone()), followed.places_in(range).iter().peekable());
    let mut places = Vec::with_capacity(plan.len());
    for &PlannedChange { offset, old, code } in plan {
        while known.next_if(|place| place.old < offset).is_some() {}
        let Some(place) = known.next_if(|place| place.old == offset) else { continue };
        if !code.iter().all(|new| new.words() == old.words() || is_idle(new)) {
            places.push(ChangedRange { offset, start: place.start, end: place.end, old, code });
        }
    }
    places
}

fn is_idle(inst: &Inst) -> bool {
    matches!(inst.mnemonic(), "v_nop" | "s_nop") || inst.mnemonic().starts_with("s_wait_")
}

/// Vector registers of the kernels that reach a function.
#[derive(Clone, Copy)]
struct KernelVgprCounts {
    /// All of them have this many now.
    now: u16,
    /// None of them had registers from this one on: they hold no value.
    before: u16,
}

fn granted_registers(pair: &UnitPair<'_, '_, '_>, old: usize, new: usize) -> KernelVgprCounts {
    let now = granted_vgpr_counts(pair.new, new).into_iter().min().unwrap_or_else(|| pair.old.highest_vgpr(old));
    KernelVgprCounts { now, before: granted_vgpr_counts(pair.old, old).into_iter().max().unwrap_or(u16::MAX) }
}

fn granted_vgpr_counts(unit: &SectionProgram<'_>, number: usize) -> Vec<u16> {
    let kernels = unit.reached_from(number).0.into_owned().into_iter();
    let counts = kernels.filter_map(|kernel| unit.program.kernel_needs(kernel as usize)?.vgprs);
    counts.map(|count| u16::try_from(count).unwrap_or(u16::MAX)).collect::<Vec<u16>>()
}

impl KernelVgprCounts {
    fn is_new(self, reg: Reg) -> bool {
        reg.file == RegFile::Vgpr && reg.index >= self.before
    }
}

struct NewFunction<'u, 'a> {
    unit: &'u SectionProgram<'a>,
    lives: LivenessCursor<'u, 'a>,
    under_way: OutstandingWrites<'u, 'a>,
}

impl NewFunction<'_, '_> {
    /// Registers that outstanding operations may write before an offset.
    fn under_way(&self, offset: u32) -> RegSet {
        let mut set = RegSet::EMPTY;
        if let Some(flight) = self.under_way.state_before(offset) {
            flight.add_to(&mut set);
        }
        set
    }
}

/// A changed place: its old offset, its new range, and its old and new code.
struct ChangedRange<'p> {
    offset: u32,
    start: u32,
    end: u32,
    old: &'p Inst,
    code: &'p [Inst],
}

impl ChangedRange<'_> {
    /// The last new instruction.
    fn last_new_offset(&self) -> u32 {
        self.end - self.code.last().map_or(0, |inst| u32::from(inst.len()))
    }
}

/// The effects of new code on registers.
struct NewCodeEffects {
    /// The registers that it writes and the old instruction did not.
    written: RegSet,
    /// The bank mode after it.
    banks: VgprBanks,
}

fn overwritten_registers(place: &ChangedRange<'_>, mut banks: VgprBanks, isa: Isa) -> NewCodeEffects {
    let own = place.old.written_set(isa, banks);
    let mut written = RegSet::EMPTY;
    for inst in place.code {
        written.union_with(&inst.written_set(isa, banks));
        banks = banks.mode_after(inst, isa);
    }
    // The bank mode is checked separately. No family writes other bits of MODE.
    written.remove(Reg::special(Special::Mode, 1));
    written.subtract(&own);
    NewCodeEffects { written, banks }
}

/// The registers that seem to hold a value after a place.
fn held_after_place(
    function: &NewFunction<'_, '_>,
    place: &ChangedRange<'_>,
    banks: VgprBanks,
    granted: KernelVgprCounts,
) -> Result<Vec<Reg>, PlanDifference> {
    let isa = function.unit.isa();
    let ChangedRange { start, old, code, .. } = *place;
    let wanted = banks.mode_after(old, isa).mode();
    let NewCodeEffects { written, banks: after } = overwritten_registers(place, banks, isa);
    if after.mode() != wanted {
        return Err((start, "the bank mode after the new code differs".to_owned()));
    }
    let mut held = Vec::new();
    if written.is_empty() {
        return Ok(held);
    }
    let ((_, behind), mut under_way) = (function.lives.live_around(place.last_new_offset()), function.under_way(start));
    // The registers that the old instruction reads are complete.
    under_way.subtract(&old.read_set(isa, banks));
    for reg in &written {
        let holds = !granted.is_new(reg) && !behind.is_dead(reg, DeadLanes::InActiveLanes);
        if holds && !comes_back(code, reg, isa) && !is_reloaded(code, reg, banks, isa) {
            held.push(reg);
        }
        if under_way.touches(reg) && matches!(reg.file, RegFile::Vgpr | RegFile::Sgpr) {
            return Err((
                start,
                format!("new code uses {}, which an outstanding memory instruction writes", name(reg)),
            ));
        }
        if reg.file == RegFile::Vgpr && reg.index >= granted.now {
            return Err((start, format!("new code uses {}, and the kernel has {}", name(reg), granted.now)));
        }
    }
    Ok(held)
}

/// Checks that no overwritten register held a value in the input, in the lanes in question.
fn dead_before(
    pair: &UnitPair<'_, '_, '_>,
    lives: &LivenessCursor<'_, '_>,
    dead: DeadLanes,
    place: &ChangedRange<'_>,
    banks: VgprBanks,
    granted: KernelVgprCounts,
) -> Result<(), PlanDifference> {
    let isa = pair.old.isa();
    let NewCodeEffects { written, .. } = overwritten_registers(place, banks, isa);
    if written.is_empty() {
        return Ok(());
    }
    let (_, behind) = lives.live_around(place.offset);
    let what = if dead == DeadLanes::InAllLanes { "all lanes" } else { "active lanes" };
    let lost = written.iter().find(|reg: &Reg| {
        let is_read_later = !granted.is_new(*reg) && !behind.is_dead(*reg, dead);
        is_read_later && !comes_back(place.code, *reg, isa) && !is_reloaded(place.code, *reg, banks, pair.target)
    });
    match lost {
        Some(reg) => {
            Err((place.start, format!("new code overwrites {what} of {}, some of which are read later", name(reg))))
        }
        None => Ok(()),
    }
}

/// Whether new code writes only active lanes.
fn keeps_lanes(code: &[Inst]) -> bool {
    !code.iter().any(|inst| inst.is(hotswap_isa::Flag::Wmma) || inst.is(hotswap_isa::Flag::Swmmac))
}

/// Whether a register is saved to another one before it is written, and is restored from it last.
fn comes_back(code: &[Inst], reg: Reg, isa: Isa) -> bool {
    let Some(first) = code.iter().position(|inst| writes_register(inst, reg, isa)) else { return false };
    let last = code.iter().rev().find(|inst| writes_register(inst, reg, isa));
    let Some(last) = last.filter(|inst| is_scalar_move(inst)) else { return false };
    let Some(from) = register_operand(last, Name::Src0, isa) else { return false };
    let saved = code[..first].iter().position(|inst: &Inst| {
        is_scalar_move(inst)
            && register_operand(inst, Name::Sdst, isa) == Some(from)
            && register_operand(inst, Name::Src0, isa) == Some(reg)
    });
    saved.is_some_and(|saved| !code[saved + 1..].iter().any(|inst| writes_register(inst, from, isa)))
}

fn writes_register(inst: &Inst, reg: Reg, isa: Isa) -> bool {
    inst.written_set(isa, VgprBanks::ENTRY).touches(reg)
}

fn register_operand(inst: &Inst, name: Name, isa: Isa) -> Option<Reg> {
    match inst.operand(isa, name) {
        Some(OperandValue::Reg(reg)) => Some(reg),
        _ => None,
    }
}

fn is_scalar_move(inst: &Inst) -> bool {
    inst.mnemonic() == "s_mov_b32"
}

/// Whether a vector register is stored to scratch memory before it is written, under the same EXEC, and loaded from there
/// last, with a wait after that.
fn is_reloaded(code: &[Inst], reg: Reg, banks: VgprBanks, isa: Isa) -> bool {
    let (mut banks, mut slot, mut state) = (banks, None, Spill::Before);
    for inst in code {
        let written = inst.written_set(isa, banks);
        let leaves_lanes = inst.is(hotswap_isa::Flag::Wmma) || inst.is(hotswap_isa::Flag::Swmmac);
        if leaves_lanes || written.touches(Reg::special(Special::ExecLo, 1)) {
            return false;
        }
        let own = spill_access(inst, isa);
        let is_in_slot = own.is_some() && own == slot;
        match (inst.mnemonic(), state) {
            ("scratch_store_b32", Spill::Before) if own.is_some() && inst.read_set(isa, banks).touches(reg) => {
                (slot, state) = (own, Spill::Stored);
            }
            ("scratch_store_b32", _) if is_in_slot => return false,
            ("scratch_load_b32", Spill::Stored) if is_in_slot && written.touches(reg) => state = Spill::Loaded,
            ("s_wait_loadcnt", Spill::Loaded) if inst.raw(Name::Simm16) == Some(0) => state = Spill::Complete,
            _ if written.touches(reg) && !matches!(state, Spill::Stored) => return false,
            _ => {}
        }
        banks = banks.mode_after(inst, isa);
    }
    matches!(state, Spill::Complete)
}

/// How far a register is that is spilled.
#[derive(Clone, Copy)]
enum Spill {
    Before,
    Stored,
    Loaded,
    Complete,
}

/// The offset of an access to scratch memory without registers in its address.
fn spill_access(inst: &Inst, isa: Isa) -> Option<u64> {
    let is_absolute = [Name::Vaddr, Name::Saddr].iter().all(|name| inst.operand(isa, *name).is_none());
    inst.raw(Name::Offset).filter(|_| is_absolute && inst.mnemonic().starts_with("scratch_"))
}

fn name(reg: Reg) -> String {
    let mut text = String::new();
    match reg.write(&mut text) {
        Ok(()) => text,
        Err(_) => format!("{reg:?}"),
    }
}
