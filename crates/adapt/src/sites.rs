//! Runs the families of scope `Instruction` on the sites of one function, then those of scope `Function`.

use crate::body;
use crate::changes::{Changes, family_bit};
use crate::neighbours::keep_apart;
use crate::reach::{Kernel, Room};
use crate::refusal::Refused;
use crate::site_context::{FunctionContext, SiteContext};
use crate::unit::{Unit, entered_anywhere};
use crate::verify::Plain;
use hotswap_families::code::{
    Answer, Refusal, Replacement, Scheduling, Site, SpillSlot, Writers, no_operation, with_spills,
};
use hotswap_families::{Family, Rewriter};
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::{Flag, Inst, Isa};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The configuration that is the same for every function.
pub(crate) struct Task<'t> {
    pub(crate) rewriter: &'t Rewriter,
    pub(crate) target: Isa,
    pub(crate) scheduling: Scheduling,
    /// Why MODE may differ, for 16-bit floats, from what matrix instructions use.
    pub(crate) half_mode: Option<String>,
    plain: OnceLock<Plain>,
}

impl<'t> Task<'t> {
    pub(crate) fn new(rewriter: &'t Rewriter, target: Isa, scheduling: Scheduling) -> Self {
        Self { rewriter, target, scheduling, half_mode: None, plain: OnceLock::new() }
    }

    /// The same task where MODE may differ for 16-bit floats.
    pub(crate) fn with_half_mode(self, half_mode: Option<String>) -> Self {
        Self { half_mode, ..self }
    }

    /// For the check of the result: the instructions that may stay unchanged. All code of an object is for one
    /// `source`.
    pub(crate) fn plain(&self, source: Isa) -> &Plain {
        self.plain.get_or_init(|| Plain::new(source, self.target))
    }
}

/// The outcome for one function.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) number: usize,
    pub(crate) changes: Changes,
    /// Places by family and, if they are unchanged, the reason.
    pub(crate) counts: BTreeMap<(&'static str, Option<&'static str>), u64>,
    pub(crate) assumes: Vec<&'static str>,
    pub(crate) cycles: u64,
    /// One more than the highest register used beyond those of the sites.
    pub(crate) vgprs: u16,
    pub(crate) sgprs: u16,
    /// Registers used at each place, for the check of the result.
    pub(crate) scratch: Vec<(u32, Vec<Reg>)>,
    /// Those of them that are spilled around the replacement, with their slots.
    pub(crate) spilled: Vec<(u32, Vec<SpillSlot>)>,
    pub(crate) room: Room,
    pub(crate) refused: Vec<Refused>,
}

/// The assumption of a place that relies on LLVM's calling convention.
const CONVENTION: &str = "functions that are called keep LLVM's calling convention: they begin and return with the bank mode \
                          0 and the usual rounding and denormals of 16-bit floats, take arguments where it says and wait for their loads before they return, and callers who \
                          are not known keep nothing in registers that it lets callees change";

/// The assumption of a place that uses registers which a function called by pointer does not use itself.
const POINTERS: &str = "functions that are called by pointer are called by kernels of this code object alone, as LLVM takes it when \
                        it counts registers and stack";

/// Offsets in one function. Each list is in ascending order.
pub(crate) struct Places<'p> {
    /// Instructions that concern a family of scope `Instruction`.
    pub(crate) sites: &'p [u32],
    /// Instructions that concern a family of scope `Function`.
    pub(crate) reasons: &'p [u32],
    /// Instructions that concern such a family if another one does.
    pub(crate) early: &'p [u32],
}

/// Rewrites a function: its sites, then the function as a whole.
pub(crate) fn function(
    task: &Task<'_>,
    unit: &Unit<'_>,
    kernels: &[Kernel],
    number: usize,
    places: &Places<'_>,
) -> Outcome {
    let Places { sites, reasons, .. } = places;
    let room = crate::reach::room(unit, kernels, number);
    let scene = FunctionContext::new(unit, number, room.clone(), task.scheduling, sites)
        .with_half_mode(task.half_mode.as_deref());
    let scene = scene.with_kernels(kernels);
    let mut outcome = Outcome { number, room, ..Outcome::default() };
    let known = |offset: &&u32| unit.program.functions[number].is_instruction(**offset);
    if let Some((at, reason)) = body::unreadable(unit, number) {
        // Nothing is known after undecodable bytes: the code there may be executed, or not.
        let decoded = |offset: &u32| Some((*offset, unit.program.decode(*offset)?));
        let first = sites.iter().chain(*reasons).find_map(decoded);
        outcome.refused.push(Refused::unreadable(at, reason, word(unit, at), first));
        return outcome;
    }
    outcome.changes.reserve(sites.len());
    let mut line = Line::default();
    for offset in *sites {
        match known(&offset) {
            true => site(task, &scene, &mut line, *offset, &mut outcome),
            false => hidden(task, unit, number, *offset, &mut outcome),
        }
    }
    let flows = |inst: &Inst| task.rewriter.concerns_function(inst);
    let made = outcome.changes.iter().any(|(_, _, new)| new.iter().any(flows));
    if outcome.refused.is_empty() && (made || reasons.iter().any(|offset| known(&offset))) {
        whole(task, unit, places, &mut outcome);
    }
    if outcome.refused.is_empty() && outcome.changes.len() > 0 {
        beside(task, unit, &mut outcome);
    }
    outcome.changes.shrink();
    outcome
}

/// Keeps new code at the required distance from the code around it.
fn beside(task: &Task<'_>, unit: &Unit<'_>, outcome: &mut Outcome) {
    let before = outcome.changes.grown();
    match no_operation(task.target) {
        Ok(nop) => keep_apart(unit, outcome.number, (task.target, nop), &mut outcome.changes),
        Err(refusal) => {
            let at = unit.program.functions[outcome.number].start;
            outcome.refused.push(Refused::new(at, None, "v_nop", &refusal));
        }
    }
    // Each v_nop has one cycle and four bytes.
    outcome.cycles += ((outcome.changes.grown() - before) / 4) as u64;
}

fn whole(task: &Task<'_>, unit: &Unit<'_>, places: &Places<'_>, outcome: &mut Outcome) {
    let setting = (task.target, task.scheduling);
    let before = outcome.changes.grown();
    let places = places.reasons.iter().chain(places.early).copied();
    match body::function_families(task.rewriter, unit, outcome.number, setting, places, &mut outcome.changes) {
        Ok(counts) => {
            counts.into_iter().for_each(|(family, count)| *outcome.counts.entry((family, None)).or_default() += count);
            // The families insert v_nop and waits, of one cycle and four bytes each.
            outcome.cycles += ((outcome.changes.grown() - before) / 4) as u64;
        }
        Err((family, refusal)) => {
            let at = unit.program.functions[outcome.number].start;
            outcome.refused.push(Refused::new(at, None, family, &refusal));
        }
    }
}

/// The block up to a site. Sites of one block are visited in order, and few families look back.
#[derive(Debug, Default)]
pub(crate) struct Line {
    block: Option<usize>,
    code: Vec<Inst>,
    /// The end of `code`.
    at: u32,
    writers: Writers,
}

impl Line {
    /// The code of a block before an offset.
    pub(crate) fn before(&mut self, unit: &Unit<'_>, number: usize, offset: u32) {
        let function = &unit.program.functions[number];
        let block = function.block_at(offset);
        if self.block != block {
            self.code.clear();
            self.writers.clear();
            (self.block, self.at) = (block, block.map_or(offset, |block| function.block(block).start));
        }
        while self.at < offset {
            let Some(inst) = unit.program.decode(self.at) else { break };
            self.at += u32::from(inst.len());
            self.code.push(inst);
        }
    }

    pub(crate) fn code(&self) -> &[Inst] {
        &self.code
    }

    /// Cached results about the code.
    pub(crate) fn writers(&self) -> &Writers {
        &self.writers
    }
}

fn site(task: &Task<'_>, scene: &FunctionContext<'_, '_>, line: &mut Line, offset: u32, outcome: &mut Outcome) {
    let (unit, number) = (scene.unit, scene.number);
    let function = &unit.program.functions[number];
    let Some((block, inst)) = function.block_at(offset).zip(unit.program.decode(offset)) else { return };
    let around = SiteContext::new(scene, offset, std::mem::take(line), inst);
    let question = Site { source: unit.isa(), target: task.target, inst: &inst };
    let mut answer = task.rewriter.rewrite(&question, &around);
    let spilled = spilled(&mut answer, &question, &around);
    *line = around.into_line();
    match answer {
        Ok(None) | Ok(Some((_, Answer::NotMine))) => {}
        Ok(Some((family, Answer::Leave(why)))) => {
            *outcome.counts.entry((family.name, Some(why))).or_default() += 1;
        }
        Ok(Some((family, Answer::Replace(new)))) => {
            if new.code[..] == [inst] {
                *outcome.counts.entry((family.name, Some("it is as the target wants it"))).or_default() += 1;
                return;
            }
            if unit.trusts_convention(number, block) || scene.trusts_convention() {
                assume(outcome, CONVENTION);
            }
            outcome.cycles += if spilled.is_empty() { 0 } else { RELOAD };
            replaced(outcome, offset, inst, family, new);
            if !spilled.is_empty() {
                outcome.spilled.push((offset, spilled));
            }
        }
        Err((family, refusal)) => {
            let refused = Refused::new(offset, Some(&inst), family.name, &refusal);
            outcome.refused.push(refused.with(entered_anywhere(function)));
        }
    }
}

/// The answer of a family about an instruction, or its refusal.
type Answered = Result<Option<(&'static Family, Answer)>, (&'static Family, Refusal)>;

/// Puts the stores and loads of the registers that are spilled around a replacement; returns those that it uses.
fn spilled(answer: &mut Answered, site: &Site<'_>, around: &SiteContext<'_, '_, '_>) -> Vec<SpillSlot> {
    let Ok(Some((family, Answer::Replace(new)))) = answer else { return Vec::new() };
    let mut slots = around.spilled();
    slots.retain(|slot| new.scratch.contains(&slot.reg));
    if slots.is_empty() {
        return slots;
    }
    let family = *family;
    *answer = match with_spills(site, around, new.clone(), &slots) {
        Ok(new) => Ok(Some((family, Answer::Replace(new)))),
        Err(refusal) => Err((family, refusal)),
    };
    slots
}

fn assume(outcome: &mut Outcome, what: &'static str) {
    if !outcome.assumes.contains(&what) {
        outcome.assumes.push(what);
    }
}

fn replaced(outcome: &mut Outcome, offset: u32, inst: Inst, family: &Family, new: Replacement) {
    // Family names have static lifetime.
    *outcome.counts.entry((family.name, None)).or_default() += 1;
    for reg in &new.scratch {
        let end = reg.index + u16::from(reg.count);
        match reg.file {
            RegFile::Vgpr => {
                outcome.vgprs = outcome.vgprs.max(end);
                if outcome.room.by_pointer.is_some_and(|own| end > own) {
                    assume(outcome, POINTERS);
                }
            }
            RegFile::Sgpr => outcome.sgprs = outcome.sgprs.max(end),
            _ => {}
        }
    }
    if let Some(what) = new.assumes {
        assume(outcome, what);
    }
    let cost = |code: &[Inst]| code.iter().map(cycles).sum::<u64>();
    outcome.cycles += cost(&new.code).saturating_sub(cycles(&inst));
    if !new.scratch.is_empty() {
        outcome.scratch.push((offset, new.scratch));
    }
    outcome.changes.replace(offset, inst, &new.code, family_bit(family.name));
}

/// Cycles until a load from scratch that is waited for at once has its value, roughly.
const RELOAD: u64 = 120;

/// Cycles in which an instruction keeps its wave from issuing the next one, roughly.
fn cycles(inst: &Inst) -> u64 {
    match inst {
        _ if inst.is(Flag::Wmma) || inst.is(Flag::Swmmac) => 8,
        _ if inst.is(Flag::Trans) => 4,
        _ => 1,
    }
}

fn word(unit: &Unit<'_>, offset: u32) -> u32 {
    let bytes = unit.program.source.bytes.get(offset as usize..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |word| u32::from_le_bytes(*word))
}

/// A place that concerns a family and that no known path reaches. If all paths of the function are known, it is data,
/// or is never executed.
fn hidden(task: &Task<'_>, unit: &Unit<'_>, number: usize, offset: u32, outcome: &mut Outcome) {
    let function = &unit.program.functions[number];
    let Some(problem) = entered_anywhere(function) else { return };
    let Some(inst) = unit.program.decode(offset).filter(|inst| task.rewriter.suspects(inst)) else { return };
    outcome.refused.push(Refused::hidden(offset, &inst, *problem));
}
