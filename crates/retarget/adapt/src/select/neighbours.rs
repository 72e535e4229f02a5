//! New code next to old: the distances that the hazard table requires between the two, and between new instructions.
//!
//! Hazards of matrix instructions belong to the family `wmma_hazard`; the other distances are kept here. The last
//! vector instruction on every path to each vector instruction is computed. If it is a transcendental instruction with
//! overlapping registers, a `v_nop` is inserted between them. New code after a V_PERM_PK16 starts with a `v_nop`.
//!
//! Invariants: only pairs with new code between them or at one end are changed, and only by a `v_nop` at the start of
//! new instructions or after the last one of a place. If callers or callees are unknown, a transcendental instruction
//! may have been the last one.

use super::function_families::each_instruction;
use crate::changes::InstChanges;
use hotswap_hazards::{BankedInstruction, InstClass, counts_towards_distance};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::ControlFlow;
use hotswap_isa::{Flag, Inst, Isa};
use hotswap_program::{Function, SectionProgram};
use std::cell::OnceCell;
use std::collections::BTreeSet;

/// The position of a missing `v_nop`: an offset of the old code, and the new instruction there that it must precede.
type MissingNop = (u32, usize);

/// Inserts the missing instructions next to changed code; `nop` is a `v_nop`.
pub(super) fn keep_apart(
    unit: &SectionProgram<'_>,
    number: usize,
    (target, nop): (Isa, Inst),
    changes: &mut InstChanges,
) {
    let missing = NopPlacement::new(unit, number, target, changes).missing_instructions();
    // In reverse order, so that the positions of the others stay valid.
    for (offset, before) in missing.into_iter().rev() {
        // The bits of the place's families stay: the distance belongs to them.
        changes.put_in(offset, before, &[nop], 0);
    }
}

/// An instruction with the bank mode before it.
type BankModeInst = (Inst, VgprBanks);

/// The last vector instructions on the paths to a point, as far as they are transcendental.
#[derive(Debug, Clone, Default)]
struct PrecedingTrans {
    trans: Vec<BankModeInst>,
    /// There may be further ones.
    unknown: bool,
}

struct NopPlacement<'n, 'u, 'a> {
    unit: &'u SectionProgram<'a>,
    number: usize,
    function: &'u Function,
    target: Isa,
    changes: &'n InstChanges,
    predecessors: OnceCell<Vec<Vec<usize>>>,
}

impl<'n, 'u, 'a> NopPlacement<'n, 'u, 'a> {
    fn new(unit: &'u SectionProgram<'a>, number: usize, target: Isa, changes: &'n InstChanges) -> Self {
        let function = &unit.program.functions[number];
        Self { unit, number, function, target, changes, predecessors: OnceCell::new() }
    }

    /// The missing instructions in ascending order, each once.
    fn missing_instructions(&self) -> BTreeSet<MissingNop> {
        let mut missing = BTreeSet::new();
        let blocks: BTreeSet<usize> = self.changes.iter().filter_map(|(at, ..)| self.function.block_at(at)).collect();
        for block in blocks {
            NeighbourWalk { neighbours: self, block, before: None, last: None, changed: None, missing: &mut missing }
                .walk_block();
        }
        missing
    }

    /// The instructions of a block after the rewrite: the old offset of each, its index if it is new, the instruction,
    /// and the bank mode before it.
    fn each_rewritten(&self, block: usize, mut give: impl FnMut(u32, Option<usize>, BankModeInst)) {
        let mut banks = self.unit.banks.at_block(self.number, block);
        each_instruction(self.unit, &self.function.block(block), self.changes, |at, old, new| match new {
            None => give_banked_inst(None, old, self, &mut give, at, &mut banks),
            Some(new) => new
                .iter()
                .enumerate()
                .for_each(|(number, inst)| give_banked_inst(Some(number), *inst, self, &mut give, at, &mut banks)),
        });
    }

    fn block_predecessors(&self, block: usize) -> &[usize] {
        let all = self.predecessors.get_or_init(|| {
            let mut all = vec![Vec::new(); self.function.block_count()];
            for from in 0..self.function.block_count() {
                self.function.successors(from).iter().for_each(|to| all[*to as usize].push(from));
            }
            all
        });
        &all[block]
    }

    /// The instructions that may directly precede a block.
    fn instructions_before(&self, block: usize) -> PrecedingTrans {
        let mut before = PrecedingTrans::default();
        let (mut work, mut seen) = (vec![block], BTreeSet::from([block]));
        while let Some(block) = work.pop() {
            let start = self.function.block(block).start;
            let mut entries = self.function.entries.iter();
            before.unknown |= entries.any(|entry| entry.offset == start && !entry.is_kernel());
            before.unknown |= self.function.entered_anywhere().is_some();
            for from in self.block_predecessors(block).iter().copied() {
                if self.function.leaves(from) {
                    before.unknown = true;
                    continue;
                }
                let mut last = None;
                self.each_rewritten(from, |_, _, one| {
                    last = if counts_towards_distance(&one.0) { Some(one) } else { last }
                });
                match last {
                    Some(last) => before.trans.extend(Some(last).filter(|(inst, _)| inst.is(Flag::Trans))),
                    None if seen.insert(from) => work.push(from),
                    None => {}
                }
            }
        }
        before
    }

    /// Whether a V_PERM_PK16 may be the last instruction before a block.
    fn permutes_before(&self, block: usize) -> bool {
        self.block_predecessors(block).iter().any(|from| {
            let mut last = None;
            self.each_rewritten(*from, |_, _, (inst, _)| last = Some(inst));
            last.is_some_and(|inst| self.is_permute(&inst))
        })
    }

    fn is_permute(&self, inst: &Inst) -> bool {
        InstClass::PermPk16.contains(inst, self.target)
    }

    /// Whether a vector instruction is too close after one of these.
    fn is_near(&self, before: &[BankModeInst], (inst, banks): &BankModeInst) -> bool {
        let later = BankedInstruction { inst, banks: *banks };
        before
            .iter()
            .any(|(inst, banks)| BankedInstruction { inst, banks: *banks }.trans_distance(self.target, later) > 0)
    }

    /// Whether the first vector instruction after a block is too close, on any path.
    fn is_near_behind(&self, block: usize, before: &[BankModeInst]) -> bool {
        let (mut work, mut seen) = (vec![block], BTreeSet::new());
        while let Some(block) = work.pop() {
            if self.function.leaves(block) {
                return true;
            }
            for next in self.function.successors(block).iter().map(|next| *next as usize) {
                if !seen.insert(next) {
                    continue;
                }
                let mut first = None;
                self.each_rewritten(next, |_, _, one| {
                    first = first.or(Some(one).filter(|(inst, _)| counts_towards_distance(inst)))
                });
                match first {
                    Some(first) if self.is_near(before, &first) => return true,
                    Some(_) => {}
                    None => work.push(next),
                }
            }
        }
        false
    }
}

fn give_banked_inst(
    number: Option<usize>,
    inst: Inst,
    neighbours: &NopPlacement<'_, '_, '_>,
    give: &mut impl FnMut(u32, Option<usize>, (Inst, VgprBanks)),
    at: u32,
    banks: &mut VgprBanks,
) {
    give(at, number, (inst, *banks));
    *banks = banks.mode_after(&inst, neighbours.target);
}

/// The walk through a block with changes.
struct NeighbourWalk<'w, 'n, 'u, 'a> {
    neighbours: &'w NopPlacement<'n, 'u, 'a>,
    block: usize,
    /// The last vector instruction, if there was one; the state at the start of the block otherwise.
    before: Option<PrecedingTrans>,
    last: Option<Inst>,
    /// The last place with new code since the last old vector instruction, and the number of its instructions.
    changed: Option<MissingNop>,
    missing: &'w mut BTreeSet<MissingNop>,
}

impl NeighbourWalk<'_, '_, '_, '_> {
    fn walk_block(mut self) {
        let neighbours = self.neighbours;
        neighbours.each_rewritten(self.block, |at, number, one| match number {
            Some(number) => self.new_inst(at, number, one),
            None => self.old_inst(one),
        });
        if let (Some(place), Some(before)) = (self.changed, &self.before)
            && !before.trans.is_empty()
            && neighbours.is_near_behind(self.block, &before.trans)
        {
            self.missing.insert(place);
        }
    }

    fn new_inst(&mut self, at: u32, number: usize, one: BankModeInst) {
        let neighbours = self.neighbours;
        let permutes = number == 0
            && match self.last {
                Some(last) => neighbours.is_permute(&last),
                None => neighbours.permutes_before(self.block),
            };
        if permutes {
            self.missing.insert((at, 0));
            self.before = Some(PrecedingTrans::default());
        }
        if counts_towards_distance(&one.0) {
            let before = self.before.get_or_insert_with(|| neighbours.instructions_before(self.block));
            if before.unknown && !one.0.is(Flag::Trans) || neighbours.is_near(&before.trans, &one) {
                self.missing.insert((at, number));
            }
            self.before = Some(PrecedingTrans::after_vector(one));
        }
        // A branch with code inserted before it stays the last instruction.
        let is_last = one.0.control_flow(u64::from(at), neighbours.target) != ControlFlow::Next;
        self.changed = Some((at, number + usize::from(!is_last)));
        self.last = Some(one.0);
    }

    fn old_inst(&mut self, one: BankModeInst) {
        if counts_towards_distance(&one.0) {
            let neighbours = self.neighbours;
            if let Some(place) = self.changed.take() {
                let before = self.before.get_or_insert_with(|| neighbours.instructions_before(self.block));
                if neighbours.is_near(&before.trans, &one) {
                    self.missing.insert(place);
                }
            }
            self.before = Some(PrecedingTrans::after_vector(one));
        }
        self.last = Some(one.0);
    }
}

impl PrecedingTrans {
    /// The state directly after a vector instruction.
    fn after_vector(one: BankModeInst) -> Self {
        Self { trans: Some(one).filter(|(inst, _)| inst.is(Flag::Trans)).into_iter().collect(), unknown: false }
    }
}
