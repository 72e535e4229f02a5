//! Effects of a function call on liveness, callees before callers.
//!
//! Invariants: the set live before a call is a union over single bits of the set live after it. So a summary has the
//! set live at the entry for three cases: nothing, every register live in active lanes, every register live in other
//! lanes. Any set in between follows. Functions that call each other start from nothing and grow until they agree.

use super::set::{LiveSet, VECTORS, WORDS};
use super::solve::{Liveness, LivenessSolver};
use crate::analysis::banks::BankMap;
use crate::calls::{CallDestination, CallSite};
use crate::program::Program;
use rayon::prelude::*;
use std::collections::HashMap;

/// Rounds of a group of functions that call each other; then everything counts as live.
const ROUNDS: usize = 64;

/// The registers live at an entry, depending on those live when the function returns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LiveSummary {
    /// Registers that are live in any case.
    pub(super) always: LiveSet,
    /// If a register is live in active lanes after the call, or lacks lanes.
    pub(super) active: LiveSet,
    /// If it is live in other lanes.
    pub(super) others: LiveSet,
}

impl LiveSummary {
    const NOTHING: Self = Self { always: LiveSet::NOTHING, active: LiveSet::NOTHING, others: LiveSet::NOTHING };
    const EVERYTHING: Self =
        Self { always: LiveSet::EVERYTHING, active: LiveSet::EVERYTHING, others: LiveSet::EVERYTHING };

    /// Whether a word of vector registers does not pass through unchanged.
    pub(super) fn touches_word(&self, word: usize) -> bool {
        (live_word_pair(&self.always, word), live_word_pair(&self.active, word), live_word_pair(&self.others, word))
            != ((0, 0), (u64::MAX, 0), (0, u64::MAX))
    }

    /// The set live before a call with the set `after` live after it.
    pub(super) fn live_before_call(&self, after: &LiveSet) -> LiveSet {
        let mut live = self.always;
        for word in 0..VECTORS {
            let (active, others) = (after.words[word], after.words[word + VECTORS]);
            live.words[word] |= self.active.words[word] & active | self.others.words[word] & others;
            let (active_out, others_out) = (self.active.words[word + VECTORS], self.others.words[word + VECTORS]);
            live.words[word + VECTORS] |= active_out & active | others_out & others;
        }
        for word in 2 * VECTORS..WORDS {
            live.words[word] |= self.active.words[word] & after.words[word];
        }
        live
    }
}

fn live_word_pair(live: &LiveSet, word: usize) -> (u64, u64) {
    (live.words[word], live.words[word + VECTORS])
}

/// The registers that unknown callees may read.
#[derive(Debug, Clone)]
struct ArgumentRegisters {
    /// Read by callees that are called with LLVM's link register.
    usual: LiveSet,
    /// Read by other callees.
    any_vector: LiveSet,
}

impl Default for ArgumentRegisters {
    fn default() -> Self {
        Self { usual: LiveSet::argument_registers(false), any_vector: LiveSet::argument_registers(true) }
    }
}

/// Summaries of all functions that are called.
#[derive(Debug, Clone, Default)]
pub struct Summaries {
    /// By the offset of the entry.
    entries: HashMap<u32, LiveSummary>,
    /// The registers live before a call of an unknown function, besides those live after it. Everything if `None`.
    arguments: Option<Box<ArgumentRegisters>>,
    /// For each function whether that was used in it or in one that it calls.
    trusting: Vec<bool>,
}

/// Summaries by the offsets of their entries.
type EntrySummaries = Vec<(u32, LiveSummary)>;

impl Summaries {
    /// The summaries of all functions that are called from known places.
    #[must_use]
    pub fn of(program: &Program<'_>, banks: &BankMap) -> Self {
        Self::default().fill_summaries(program, banks)
    }

    /// The same, if unknown callees keep LLVM's calling convention: of scalar registers they read only their arguments,
    /// and so of vector registers where the call has the link register of LLVM's functions.
    #[must_use]
    pub fn by_convention(program: &Program<'_>, banks: &BankMap) -> Self {
        let mut trusting = vec![false; program.functions.len()];
        for group in program.bottom_up() {
            let any = group
                .iter()
                .flat_map(|member: &u32| &program.functions[*member as usize].calls)
                .any(|one| callee_trusts_convention(one, &trusting));
            group.iter().for_each(|member| trusting[*member as usize] = any);
        }
        Self { trusting, arguments: Some(Box::default()), ..Self::default() }.fill_summaries(program, banks)
    }

    /// Whether the liveness of a function is only valid if callees keep the convention.
    #[must_use]
    pub fn trusts_convention(&self, function: usize) -> bool {
        self.trusting.get(function).copied().unwrap_or_default()
    }

    /// The registers live before a call of an unknown function with `after` live after it.
    fn before_unknown(&self, call: &CallSite, after: &LiveSet) -> LiveSet {
        let Some(arguments) = &self.arguments else { return LiveSet::EVERYTHING };
        let mut live = if call.has_usual_link() { arguments.usual } else { arguments.any_vector };
        live.union_with(after);
        live
    }

    /// The summary of the callee of a call.
    pub(super) fn of_callee(&self, call: &CallSite) -> Option<&LiveSummary> {
        match call.callee {
            CallDestination::Function { entry, .. } => self.at(entry),
            _ => None,
        }
    }

    /// The set live before a call, with the set `after` live after it.
    pub(crate) fn before_call(&self, call: &CallSite, after: &LiveSet) -> LiveSet {
        match (self.of_callee(call), call.callee) {
            (Some(known), _) => known.live_before_call(after),
            (None, CallDestination::Function { .. }) => LiveSet::EVERYTHING,
            (None, _) => self.before_unknown(call, after),
        }
    }

    fn fill_summaries(mut self, program: &Program<'_>, banks: &BankMap) -> Self {
        // Inside one of many tasks this runs alone: waiting for help would start other tasks, which wait for this
        // summary.
        let is_task = rayon::current_thread_index().is_some();
        for level in group_levels(program) {
            let made: EntrySummaries = match is_task {
                true => level.iter().flat_map(|group| self.summarize_group(program, banks, group)).collect(),
                false => level.par_iter().flat_map_iter(|group| self.summarize_group(program, banks, group)).collect(),
            };
            self.entries.extend(made);
        }
        self
    }

    pub(super) fn at(&self, entry: u32) -> Option<&LiveSummary> {
        self.entries.get(&entry)
    }

    fn summarize_group(&self, program: &Program<'_>, banks: &BankMap, group: &[u32]) -> EntrySummaries {
        let members: Vec<u32> =
            group.iter().copied().filter(|member| program.callers(*member as usize).next().is_some()).collect();
        let recursive = group.len() > 1 || members.iter().any(|member| calls_itself(program, *member));
        if !recursive {
            return members.iter().flat_map(|member| self.entries_of(program, banks, *member)).collect();
        }
        let mut trial = Self { arguments: self.arguments.clone(), ..Self::default() };
        for function in group.iter().map(|member| &program.functions[*member as usize]) {
            trial.entries.extend(function.entries.iter().map(|entry| (entry.offset, LiveSummary::NOTHING)));
            // Callees outside of the group are known already.
            for call in &function.calls {
                if let CallDestination::Function { entry, .. } = call.callee
                    && let Some(known) = self.entries.get(&entry)
                {
                    trial.entries.insert(entry, *known);
                }
            }
        }
        for _ in 0..ROUNDS {
            let made: EntrySummaries =
                members.iter().flat_map(|member| trial.entries_of(program, banks, *member)).collect();
            if made.iter().all(|(entry, summary)| trial.entries.get(entry) == Some(summary)) {
                return made;
            }
            trial.entries.extend(made);
        }
        let entries = members.iter().flat_map(|member| &program.functions[*member as usize].entries);
        entries.map(|entry| (entry.offset, LiveSummary::EVERYTHING)).collect()
    }

    fn entries_of(&self, program: &Program<'_>, banks: &BankMap, member: u32) -> EntrySummaries {
        let (mut active, mut others) = (LiveSet::EVERYTHING, LiveSet::NOTHING);
        for word in 0..VECTORS {
            active.words[word + VECTORS] = 0;
            others.words[word + VECTORS] = u64::MAX;
        }
        let solved: [Liveness; 3] = [LiveSet::NOTHING, active, others].map(|returned| {
            LivenessSolver::with_full_rows(program, member as usize, self, banks, returned).solve_liveness()
        });
        let function = &program.functions[member as usize];
        let summaries = function.entries.iter().map(|entry| {
            let [always, active, others] = solved
                .each_ref()
                .map(|liveness| liveness.at_entry(function, entry.offset).unwrap_or(LiveSet::EVERYTHING));
            (entry.offset, LiveSummary { always, active, others })
        });
        summaries.collect()
    }
}

fn callee_trusts_convention(call: &CallSite, trusting: &[bool]) -> bool {
    match call.callee {
        CallDestination::Function { function, .. } => trusting[function as usize],
        _ => true,
    }
}

fn calls_itself(program: &Program<'_>, member: u32) -> bool {
    program.callers(member as usize).any(|(caller, _)| caller == member as usize)
}

/// The group of a function.
#[derive(Clone, Copy)]
struct GroupPlace {
    group: usize,
    level: usize,
}

/// Groups of functions that can be analysed together, because their callees are in earlier levels.
fn group_levels<'p>(program: &'p Program<'_>) -> Vec<Vec<&'p [u32]>> {
    // For each function its group and the level of that.
    let mut place = vec![GroupPlace { group: usize::MAX, level: 0 }; program.functions.len()];
    let mut levels: Vec<Vec<&[u32]>> = Vec::new();
    for (number, group) in program.bottom_up().iter().enumerate() {
        group.iter().for_each(|member| place[*member as usize].group = number);
        let callees = group.iter().flat_map(|member| &program.functions[*member as usize].calls);
        let level = callees
            .filter_map(|call| match call.callee {
                CallDestination::Function { function, .. } => {
                    let GroupPlace { group, level } = place[function as usize];
                    (group != number).then_some(level + 1)
                }
                _ => None,
            })
            .max()
            .unwrap_or(0);
        group.iter().for_each(|member| place[*member as usize].level = level);
        if levels.len() <= level {
            levels.resize_with(level + 1, Vec::new);
        }
        levels[level].push(group);
    }
    levels
}
