//! Distances in wait states of processors before GFX12.5 ([`hotswap_hazards::distance`]).
//!
//! Every path from the earlier instruction of a row is walked until its distance is reached, so that the path with the
//! fewest wait states counts.
//!
//! Absent on purpose: paths through calls, which take longer than any distance, and registers that the index mode of gfx9
//! selects.

use crate::finding::{HAZARD, LintFinding, MATRIX_DISTANCE};
use crate::unit::{BankedInst, LintUnit};
use hotswap_hazards::distance::{
    DistanceClass, DistanceRule, JointRegister, MATRIX_DISTANCES, distances_for, wait_states,
};
use hotswap_isa::{Inst, Isa};
use hotswap_program::BlockExit;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn check_distances(unit: &LintUnit<'_>, findings: &mut Vec<LintFinding>) {
    let rules: Vec<&DistanceRule> = distances_for(unit.isa()).collect();
    let numbers = 0..if rules.is_empty() { 0 } else { unit.program.functions.len() };
    for number in numbers {
        let blocks = unit.program.functions[number].blocks().map(|_| OnceCell::new()).collect();
        let mut walk = FunctionWalk { unit, number, blocks, told: BTreeSet::new() };
        for block in 0..walk.blocks.len() {
            walk.check_block(block, &rules, findings);
        }
    }
}

/// A function with the code of the blocks that were reached.
struct FunctionWalk<'c, 'a> {
    unit: &'c LintUnit<'a>,
    number: usize,
    blocks: Vec<OnceCell<Vec<BankedInst>>>,
    /// Places with a finding of a row: one is enough.
    told: BTreeSet<(u32, &'static str)>,
}

/// A place to go on from: the instruction of a block, and the wait states on the path to it.
#[derive(Clone, Copy)]
struct PathPlace {
    block: usize,
    index: usize,
    since: u8,
}

impl FunctionWalk<'_, '_> {
    fn block_code(&self, block: usize) -> &[BankedInst] {
        self.blocks[block].get_or_init(|| self.unit.block_code(self.number, block))
    }

    fn check_block(&mut self, block: usize, rules: &[&'static DistanceRule], findings: &mut Vec<LintFinding>) {
        for index in 0..self.block_code(block).len() {
            let from = AskedProducer::new(self.block_code(block)[index].1, rules, self.unit.isa());
            if from.most > 0 {
                self.walk_paths(PathPlace { block, index: index + 1, since: 0 }, &from, findings);
            }
        }
    }

    /// Walks all paths from a place; a block is visited again if it is reached with fewer wait states on the path.
    fn walk_paths(&mut self, from: PathPlace, producer: &AskedProducer, findings: &mut Vec<LintFinding>) {
        let mut least: BTreeMap<usize, u8> = BTreeMap::new();
        let mut work = vec![from];
        while let Some(place) = work.pop() {
            let since = self.walk_block(place, producer, findings);
            let function = &self.unit.program.functions[self.number];
            if since >= producer.most || matches!(function.exit(place.block), BlockExit::Call) {
                continue;
            }
            for next in function.successors(place.block).iter().map(|next| *next as usize) {
                let known = least.entry(next).or_insert(u8::MAX);
                if since < *known {
                    *known = since;
                    work.push(PathPlace { block: next, index: 0, since });
                }
            }
        }
    }

    /// Walks a block to its end, or until every distance is reached; the result is the wait states on the path.
    fn walk_block(&mut self, place: PathPlace, producer: &AskedProducer, findings: &mut Vec<LintFinding>) -> u8 {
        let isa = self.unit.isa();
        let mut since = place.since;
        for index in place.index..self.block_code(place.block).len() {
            if since >= producer.most {
                break;
            }
            let (at, consumer, _) = self.block_code(place.block)[index];
            for asked in producer.asked.iter().filter(|asked| since < asked.needed) {
                let concerned = asked.rule.concerns_pair(isa, &producer.inst, &consumer);
                if concerned && self.told.insert((at, asked.rule.name)) {
                    findings.push(asked.distance_finding(self.unit, at, &producer.inst, since));
                }
            }
            since = since.saturating_add(wait_states(&consumer, isa));
            if producer.is_replaced(&consumer, isa) || producer.is_ended(&consumer, isa, since) {
                return producer.most;
            }
        }
        since
    }
}

/// An instruction with the rows that ask for a distance after it, each with its wait states.
struct AskedProducer {
    inst: Inst,
    asked: Vec<AskedDistance>,
    most: u8,
}

/// A row with the wait states that it asks for.
struct AskedDistance {
    rule: &'static DistanceRule,
    needed: u8,
}

impl AskedProducer {
    fn new(inst: Inst, rules: &[&'static DistanceRule], isa: Isa) -> Self {
        let own = rules.iter().copied().filter(|rule| rule.producer.contains(&inst, isa));
        let asked: Vec<AskedDistance> =
            own.map(|rule| AskedDistance { rule, needed: rule.wait_states.after_instruction(&inst, isa) }).collect();
        let most = asked.iter().map(|asked| asked.needed).max().unwrap_or(0);
        Self { inst, asked, most }
    }

    /// Whether a later matrix instruction writes the result of this one: LLVM asks for the distance from the later one.
    fn is_replaced(&self, later: &Inst, isa: Isa) -> bool {
        let are_matrix = [&self.inst, later].into_iter().all(|inst| DistanceClass::Matrix.contains(inst, isa));
        are_matrix && JointRegister::Overwritten.joins_pair(isa, &self.inst, later)
    }

    /// Whether a later instruction makes all distances needless that are not reached with it.
    fn is_ended(&self, later: &Inst, isa: Isa, since: u8) -> bool {
        let mut open = self.asked.iter().filter(|asked| since < asked.needed);
        open.all(|asked| asked.rule.ended_by.is_some_and(|class| class.contains(later, isa)))
    }
}

impl AskedDistance {
    fn distance_finding(&self, unit: &LintUnit<'_>, at: u32, producer: &Inst, since: u8) -> LintFinding {
        let (first, needed, row) = (producer.mnemonic(), self.needed, self.rule.name);
        let counted = if self.rule.producer == DistanceClass::Wmma { "vector instructions" } else { "wait states" };
        let what = format!("{since} {counted} follow `{first}`, and {needed} are needed ({row})");
        let is_matrix = MATRIX_DISTANCES.iter().any(|rule| rule.name == row);
        LintFinding::at_offset(if is_matrix { &MATRIX_DISTANCE } else { &HAZARD }, unit, at, what)
    }
}
