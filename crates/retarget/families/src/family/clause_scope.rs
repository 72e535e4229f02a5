//! `clause_scope`: ends hard clauses (`s_clause`) where the scope of their members changes.
//!
//! The target does not execute a clause over accesses of different scopes (LLVM #218788, `SIInsertHardClauses`). Members
//! of one scope stay together: the clause ends before the first member of another scope, and where at least two of
//! that scope follow, they get a clause of their own, as LLVM 24 gives them for the target. One member is not a clause.
//!
//! Absent on purpose: the count of the clause that ends. The layout engine shortens a clause wherever one of its
//! members gets new code before it, and an insertion without instructions is such a place.

use crate::code::{FunctionFamily, FunctionFlow, Insertion, SiteRefusal, build_instruction, named_operand};
use crate::registry::{Apply, FamilyRegistry};
use crate::table::slot;
use hotswap_isa::encode::OperandArg;
use hotswap_isa::{Class, Flag, Inst, Isa, Name, TableEntry};
use std::ops::Range;

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_clause_scope_patch(registry: &mut FamilyRegistry) {
    let family =
        FunctionFamily { entries: makes_clause, concerns: is_clause, confirms: Some(has_several_scopes), insertions };
    registry.bind(slot::CLAUSE_SCOPE, Apply::Function(family));
}

fn makes_clause(entry: TableEntry) -> bool {
    entry.is(Flag::Clause)
}

fn is_clause(inst: &Inst) -> bool {
    makes_clause(inst.entry())
}

/// The number of instructions that a clause covers.
fn member_count(clause: &Inst) -> usize {
    /// The bits of the immediate that count, from 0 for one member.
    const COUNT: u64 = 63;
    (clause.raw(Name::Simm16).unwrap_or(0) & COUNT) as usize + 1
}

/// The scope of an access, as its bits: 0 is the compute unit. `None` for accesses without a scope.
fn scope_of(inst: &Inst) -> Option<u64> {
    inst.raw(Name::Cpol).map(|policy| policy >> 3 & 3)
}

/// Whether an instruction can be a member of a clause without being an access: changes of the bank mode, and `s_nop`.
fn is_neutral_member(inst: &Inst) -> bool {
    inst.class() == Some(Class::Sopp) && matches!(inst.mnemonic(), "s_set_vgpr_msb" | "s_nop")
}

/// Whether the members of a clause, in the bytes after it, have different scopes.
fn has_several_scopes(isa: Isa, clause: &Inst, following: &[u8]) -> bool {
    let mut known = None;
    let decoded = isa.walk(following).take(member_count(clause)).map_while(|(_, inst)| inst.ok());
    for inst in decoded.take_while(|inst| inst.memory_access().is_some() || is_neutral_member(inst)) {
        if inst.memory_access().is_some() && *known.get_or_insert_with(|| scope_of(&inst)) != scope_of(&inst) {
            return true;
        }
    }
    false
}

fn insertions(flow: &FunctionFlow<'_>) -> Result<Vec<Insertion>, SiteRefusal> {
    let mut all = Vec::new();
    for block in flow.concerned.iter().copied() {
        let code = flow.block_code(block);
        for (index, clause) in code.iter().enumerate().filter(|(_, inst)| is_clause(inst)) {
            let members = members_after(code, index, member_count(clause));
            let is_cut = members.end == code.len() && members.len() < member_count(clause);
            if is_cut && !flow.blocks[block].successors.is_empty() {
                // Its other members are in the next block, which may be entered without the clause.
                all.push(Insertion { block, before: code.len(), code: Vec::new() });
            }
            split_clause(flow, block, &runs_of_one_scope(code, members), &mut all)?;
        }
    }
    Ok(all)
}

/// The members of a clause of `count` instructions, as far as they are in the block.
fn members_after(code: &[Inst], clause: usize, count: usize) -> Range<usize> {
    let rest = &code[clause + 1..];
    clause + 1..clause + 1 + rest.iter().take(count).take_while(is_clause_member).count()
}

fn is_clause_member(inst: &&Inst) -> bool {
    inst.memory_access().is_some() || is_neutral_member(inst)
}

/// Neighbouring members of one scope: from the first access to the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ScopeRun {
    first: usize,
    last: usize,
    accesses: usize,
}

fn runs_of_one_scope(code: &[Inst], members: Range<usize>) -> Vec<ScopeRun> {
    let mut runs: Vec<ScopeRun> = Vec::new();
    for index in members.filter(|index| code[*index].memory_access().is_some()) {
        match runs.last_mut().filter(|run| scope_of(&code[run.last]) == scope_of(&code[index])) {
            Some(run) => (run.last, run.accesses) = (index, run.accesses + 1),
            None => runs.push(ScopeRun { first: index, last: index, accesses: 1 }),
        }
    }
    runs
}

/// Ends the clause after its first run, and gives each other run of several accesses a clause of its own.
fn split_clause(
    flow: &FunctionFlow<'_>,
    block: usize,
    runs: &[ScopeRun],
    all: &mut Vec<Insertion>,
) -> Result<(), SiteRefusal> {
    for pair in runs.windows(2) {
        let [before, run] = pair else { continue };
        let own_clause = match run.accesses {
            1 => Vec::new(),
            _ => vec![new_clause(flow.target, run.last - run.first)?],
        };
        // Instructions between two runs belong to neither.
        if run.first > before.last + 1 {
            all.push(Insertion { block, before: before.last + 1, code: Vec::new() });
        }
        if run.first == before.last + 1 || !own_clause.is_empty() {
            all.push(Insertion { block, before: run.first, code: own_clause });
        }
    }
    Ok(())
}

/// An `s_clause` with that immediate.
fn new_clause(isa: Isa, immediate: usize) -> Result<Inst, SiteRefusal> {
    build_instruction(
        isa,
        "s_clause",
        Class::Sopp,
        &[named_operand(Name::Simm16, OperandArg::Number(immediate as i64))],
    )
}
