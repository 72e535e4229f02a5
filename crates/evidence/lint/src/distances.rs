//! Distances in wait states of processors before GFX12.5 ([`hotswap_hazards::distance`]).
//!
//! Every path from the earlier instruction of a row is walked until its distance is reached, so that the path with the
//! fewest wait states counts.
//!
//! Absent on purpose: paths through calls, which take longer than any distance, and registers that the index mode of gfx9
//! selects.

use crate::finding::{HAZARD, LintFinding};
use crate::unit::LintUnit;
use hotswap_hazards::distance::{DistanceRule, distances_for, wait_states};
use hotswap_isa::Inst;
use hotswap_isa::bank::VgprBanks;
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
    blocks: Vec<OnceCell<Vec<(u32, Inst, VgprBanks)>>>,
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
    fn block_code(&self, block: usize) -> &[(u32, Inst, VgprBanks)] {
        self.blocks[block].get_or_init(|| self.unit.block_code(self.number, block))
    }

    fn check_block(&mut self, block: usize, rules: &[&'static DistanceRule], findings: &mut Vec<LintFinding>) {
        let isa = self.unit.isa();
        for index in 0..self.block_code(block).len() {
            let producer = self.block_code(block)[index].1;
            let asked: Vec<&DistanceRule> =
                rules.iter().filter(|rule| rule.producer.contains(&producer, isa)).copied().collect();
            if !asked.is_empty() {
                self.walk_paths(PathPlace { block, index: index + 1, since: 0 }, &producer, &asked, findings);
            }
        }
    }

    /// Walks all paths from a place; a block is visited again if it is reached with fewer wait states on the path.
    fn walk_paths(
        &mut self,
        from: PathPlace,
        producer: &Inst,
        asked: &[&'static DistanceRule],
        findings: &mut Vec<LintFinding>,
    ) {
        let most = asked.iter().map(|rule| rule.wait_states).max().unwrap_or(0);
        let mut least: BTreeMap<usize, u8> = BTreeMap::new();
        let mut work = vec![from];
        while let Some(place) = work.pop() {
            let since = self.walk_block(place, producer, asked, findings);
            let function = &self.unit.program.functions[self.number];
            if since >= most || matches!(function.exit(place.block), BlockExit::Call) {
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
    fn walk_block(
        &mut self,
        place: PathPlace,
        producer: &Inst,
        asked: &[&'static DistanceRule],
        findings: &mut Vec<LintFinding>,
    ) -> u8 {
        let most = asked.iter().map(|rule| rule.wait_states).max().unwrap_or(0);
        let mut since = place.since;
        for index in place.index..self.block_code(place.block).len() {
            if since >= most {
                break;
            }
            let (at, consumer, _) = self.block_code(place.block)[index];
            for rule in asked.iter().filter(|rule| since < rule.wait_states) {
                if rule.concerns_pair(self.unit.isa(), producer, &consumer) && self.told.insert((at, rule.name)) {
                    findings.push(too_close(self.unit, at, producer, rule, since));
                }
            }
            since = since.saturating_add(wait_states(&consumer));
        }
        since
    }
}

fn too_close(unit: &LintUnit<'_>, at: u32, producer: &Inst, rule: &DistanceRule, since: u8) -> LintFinding {
    let (first, needed) = (producer.mnemonic(), rule.wait_states);
    let what = format!("{since} wait states follow `{first}`, and {needed} are needed ({})", rule.name);
    LintFinding::at_offset(&HAZARD, unit, at, what)
}
