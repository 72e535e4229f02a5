//! Runs the families of scope `Instruction` on the sites of one function, then those of scope `Function`.

use super::block_prefix::BlockPrefix;
use super::function_families::{self, InsertionCount};
use super::neighbours::keep_apart;
use super::site_context::{FunctionContext, SiteContext};
use crate::changes::{InstChanges, family_bit};
use crate::config::RewriteConfig;
use crate::refusal::{ConcernedSite, FunctionRefusal};
use crate::registers::budget::{KernelBudget, VgprBudget};
use crate::registers::{AtPlace, RegisterUse};
use hotswap_families::code::{CodeSite, Replacement, SiteAnswer, SpillSlot, no_operation, with_spills};
use hotswap_families::{FamilyAnswer, FamilyRefusal, PatchFamily};
use hotswap_isa::reg::RegFile;
use hotswap_isa::{Flag, Inst};
use hotswap_program::{AnalysisProblem, SectionProgram};
use std::collections::BTreeMap;

/// The rewrite of one function.
#[derive(Debug, Default)]
pub(crate) struct FunctionRewrite {
    pub(crate) number: usize,
    pub(crate) changes: InstChanges,
    /// Places by family and, if they are unchanged, the reason.
    pub(crate) counts: BTreeMap<(&'static str, Option<&'static str>), u64>,
    pub(crate) assumes: Vec<&'static str>,
    pub(crate) cycles: u64,
    pub(crate) registers: RegisterUse,
    pub(crate) refused: Vec<FunctionRefusal>,
}

/// The assumption of a place that relies on LLVM's calling convention.
const CONVENTION: &str = "functions that are called keep LLVM's calling convention: they begin and return with the bank mode \
                          0 and the usual rounding and denormals of 16-bit floats, take arguments where it says and wait for their loads before they return, and callers who \
                          are not known keep nothing in registers that it lets callees change";

/// The assumption of a place that uses registers which a function called by pointer does not use itself.
const POINTERS: &str = "functions that are called by pointer are called by kernels of this code object alone, as LLVM takes it when \
                        it counts registers and stack";

/// Offsets in one function. Each list is in ascending order.
pub(crate) struct FunctionOffsets<'p> {
    /// Instructions that concern a family of scope `Instruction`.
    pub(crate) sites: &'p [u32],
    /// Instructions that concern a family of scope `Function`.
    pub(crate) reasons: &'p [u32],
    /// Instructions that concern such a family if another one does.
    pub(crate) early: &'p [u32],
}

/// Rewrites a function: its sites, then the function as a whole.
pub(super) fn rewrite_function(
    config: &RewriteConfig<'_>,
    unit: &SectionProgram<'_>,
    kernels: &[KernelBudget],
    number: usize,
    places: &FunctionOffsets<'_>,
) -> FunctionRewrite {
    let FunctionOffsets { sites, reasons, .. } = places;
    let budget = VgprBudget::for_function(unit, kernels, number);
    let context = FunctionContext::new(unit, number, budget.clone(), config.scheduling, sites)
        .with_half_mode(config.half_mode.as_deref());
    let context = context.with_kernels(kernels);
    let registers = RegisterUse { budget, ..RegisterUse::default() };
    let mut outcome = FunctionRewrite { number, registers, ..FunctionRewrite::default() };
    if let Some(AnalysisProblem { offset: at, reason }) = function_families::unreadable_problem(unit, number) {
        // Nothing is known after undecodable bytes: the code there may be executed, or not.
        let first = sites
            .iter()
            .chain(*reasons)
            .find_map(|&offset| Some(ConcernedSite { offset, inst: unit.program.decode(offset)? }));
        outcome.refused.push(FunctionRefusal::unreadable_code(at, reason, dword_at(unit, at), first));
        return outcome;
    }
    outcome.changes.reserve(sites.len());
    let mut prefix = BlockPrefix::default();
    for offset in *sites {
        match is_known_instruction(&offset, unit, number) {
            true => rewrite_site(config, &context, &mut prefix, *offset, &mut outcome),
            false => refuse_hidden(config, unit, number, *offset, &mut outcome),
        }
    }
    let made =
        outcome.changes.iter().any(|(_, _, new)| new.iter().any(|one| concerns_whole_function(one, config.rewriter)));
    if outcome.refused.is_empty() && (made || reasons.iter().any(|offset| is_known_instruction(&offset, unit, number)))
    {
        run_function_families(config, unit, places, &mut outcome);
    }
    if outcome.refused.is_empty() && outcome.changes.len() > 0 {
        keep_distances(config, unit, &mut outcome);
    }
    outcome.changes.shrink();
    outcome
}

fn is_known_instruction(offset: &&u32, unit: &SectionProgram<'_>, number: usize) -> bool {
    unit.program.functions[number].is_instruction(**offset)
}

fn concerns_whole_function(inst: &Inst, config_rewriter: &hotswap_families::FamilyRewriter) -> bool {
    config_rewriter.concerns_function(inst)
}

/// Keeps new code at the required distance from the code around it.
fn keep_distances(config: &RewriteConfig<'_>, unit: &SectionProgram<'_>, outcome: &mut FunctionRewrite) {
    let before = outcome.changes.growth_bytes();
    match no_operation(config.target) {
        Ok(nop) => keep_apart(unit, outcome.number, (config.target, nop), &mut outcome.changes),
        Err(refusal) => {
            let at = unit.program.functions[outcome.number].start;
            outcome.refused.push(FunctionRefusal::new(at, None, "v_nop", &refusal));
        }
    }
    // Each v_nop has one cycle and four bytes.
    outcome.cycles += ((outcome.changes.growth_bytes() - before) / 4) as u64;
}

fn run_function_families(
    config: &RewriteConfig<'_>,
    unit: &SectionProgram<'_>,
    places: &FunctionOffsets<'_>,
    outcome: &mut FunctionRewrite,
) {
    let setting = (config.target, config.scheduling);
    let before = outcome.changes.growth_bytes();
    let places = places.reasons.iter().chain(places.early).copied();
    match function_families::run_families(config.rewriter, unit, outcome.number, setting, places, &mut outcome.changes)
    {
        Ok(counts) => {
            for InsertionCount { family, count } in counts {
                *outcome.counts.entry((family, None)).or_default() += count;
            }
            // The families insert v_nop and waits, of one cycle and four bytes each.
            outcome.cycles += ((outcome.changes.growth_bytes() - before) / 4) as u64;
        }
        Err(FamilyRefusal { family, refusal }) => {
            let at = unit.program.functions[outcome.number].start;
            outcome.refused.push(FunctionRefusal::new(at, None, family.name, &refusal));
        }
    }
}

fn rewrite_site(
    config: &RewriteConfig<'_>,
    context: &FunctionContext<'_, '_>,
    prefix: &mut BlockPrefix,
    offset: u32,
    outcome: &mut FunctionRewrite,
) {
    let (unit, number) = (context.unit, context.number);
    let function = &unit.program.functions[number];
    let Some((block, inst)) = function.block_at(offset).zip(unit.program.decode(offset)) else { return };
    let around = SiteContext::new(context, offset, std::mem::take(prefix), inst);
    let question = CodeSite { source: unit.isa(), target: config.target, inst: &inst };
    let mut answer = config.rewriter.rewrite_site(&question, &around);
    let spilled = add_spill_code(&mut answer, &question, &around);
    *prefix = around.into_prefix();
    match answer {
        Ok(None) | Ok(Some(FamilyAnswer { answer: SiteAnswer::NotMine, .. })) => {}
        Ok(Some(FamilyAnswer { family, answer: SiteAnswer::Leave(why) })) => {
            *outcome.counts.entry((family.name, Some(why))).or_default() += 1;
        }
        Ok(Some(FamilyAnswer { family, answer: SiteAnswer::Replace(new) })) => {
            if new.code[..] == [inst] {
                *outcome.counts.entry((family.name, Some("it is as the target wants it"))).or_default() += 1;
                return;
            }
            if unit.trusts_convention(number, block) || context.trusts_convention() {
                add_assumption(outcome, CONVENTION);
            }
            outcome.cycles += if spilled.is_empty() { 0 } else { RELOAD };
            record_replacement(outcome, offset, inst, family, new);
            if !spilled.is_empty() {
                outcome.registers.spilled.push(AtPlace { offset, list: spilled });
            }
        }
        Err(FamilyRefusal { family, refusal }) => {
            let refused = FunctionRefusal::new(offset, Some(&inst), family.name, &refusal);
            outcome.refused.push(refused.with_problem(function.entered_anywhere()));
        }
    }
}

/// The answer of a family about an instruction, or its refusal.
type FamilyResult = Result<Option<FamilyAnswer>, FamilyRefusal>;

/// Puts the stores and loads of the registers that are spilled around a replacement; returns those that it uses.
fn add_spill_code(answer: &mut FamilyResult, site: &CodeSite<'_>, around: &SiteContext<'_, '_, '_>) -> Vec<SpillSlot> {
    let Ok(Some(FamilyAnswer { family, answer: SiteAnswer::Replace(new) })) = answer else { return Vec::new() };
    let mut slots = around.spill_slots();
    slots.retain(|slot| new.scratch.contains(&slot.reg));
    if slots.is_empty() {
        return slots;
    }
    let family = *family;
    *answer = match with_spills(site, around, new.clone(), &slots) {
        Ok(new) => Ok(Some(FamilyAnswer { family, answer: SiteAnswer::Replace(new) })),
        Err(refusal) => Err(FamilyRefusal { family, refusal }),
    };
    slots
}

fn add_assumption(outcome: &mut FunctionRewrite, what: &'static str) {
    if !outcome.assumes.contains(&what) {
        outcome.assumes.push(what);
    }
}

fn record_replacement(outcome: &mut FunctionRewrite, offset: u32, inst: Inst, family: &PatchFamily, new: Replacement) {
    // Family names have static lifetime.
    *outcome.counts.entry((family.name, None)).or_default() += 1;
    for reg in &new.scratch {
        let end = reg.index + u16::from(reg.count);
        match reg.file {
            RegFile::Vgpr => {
                outcome.registers.vgprs = outcome.registers.vgprs.max(end);
                if outcome.registers.budget.by_pointer.is_some_and(|own| end > own) {
                    add_assumption(outcome, POINTERS);
                }
            }
            RegFile::Sgpr => outcome.registers.sgprs = outcome.registers.sgprs.max(end),
            _ => {}
        }
    }
    if let Some(what) = new.assumes {
        add_assumption(outcome, what);
    }
    outcome.cycles += total_issue_cycles(&new.code).saturating_sub(issue_cycles(&inst));
    if !new.scratch.is_empty() {
        outcome.registers.scratch.push(AtPlace { offset, list: new.scratch });
    }
    outcome.changes.replace(offset, inst, &new.code, family_bit(family.name));
}

fn total_issue_cycles(code: &[Inst]) -> u64 {
    code.iter().map(issue_cycles).sum::<u64>()
}

/// Cycles until a load from scratch that is waited for at once has its value, roughly.
const RELOAD: u64 = 120;

/// Cycles in which an instruction keeps its wave from issuing the next one, roughly.
fn issue_cycles(inst: &Inst) -> u64 {
    match inst {
        _ if inst.is(Flag::Wmma) || inst.is(Flag::Swmmac) => 8,
        _ if inst.is(Flag::Trans) => 4,
        _ => 1,
    }
}

fn dword_at(unit: &SectionProgram<'_>, offset: u32) -> u32 {
    let bytes = unit.program.source.bytes.get(offset as usize..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |word| u32::from_le_bytes(*word))
}

/// A place that concerns a family and that no known path reaches. If all paths of the function are known, it is data,
/// or is never executed.
fn refuse_hidden(
    config: &RewriteConfig<'_>,
    unit: &SectionProgram<'_>,
    number: usize,
    offset: u32,
    outcome: &mut FunctionRewrite,
) {
    let function = &unit.program.functions[number];
    let Some(problem) = function.entered_anywhere() else { return };
    let Some(inst) = unit.program.decode(offset).filter(|inst| config.rewriter.concerns_instruction(inst)) else {
        return;
    };
    outcome.refused.push(FunctionRefusal::hidden_site(offset, &inst, *problem));
}
