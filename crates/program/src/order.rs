//! In which order the addresses of functions are followed: callees before callers, those that do not call each other at
//! once.

use crate::bits::Bits;
use crate::builder::Stretch;
use crate::calls::bottom_up;
use crate::scan::Context;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

pub(crate) struct Order {
    /// Groups of stretches that call each other, by number; a level leads to earlier ones only.
    pub(crate) levels: Vec<Vec<Vec<u32>>>,
    called: Bits,
}

impl Order {
    /// Of the stretches with these numbers, of others that are called, and of all to which these lead, as far as that is
    /// known.
    pub(crate) fn of(context: &Context<'_, '_>, stretches: &[Stretch], numbers: &[u32], others: &[u32]) -> Self {
        let mut called = Bits::new(stretches.len());
        for number in others {
            called.set(*number as usize);
        }
        let mut leads: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut work = [numbers, others].concat();
        while let Some(number) = work.pop() {
            let Entry::Vacant(vacant) = leads.entry(number) else { continue };
            let Some(draft) = &stretches[number as usize].draft else { continue };
            let mut list = draft.leads.clone();
            list.extend(draft.calls.iter().filter_map(|call| context.clobbers.callee(context.source, call.to)));
            list.sort_unstable();
            list.dedup();
            for callee in &list {
                called.set(*callee as usize);
            }
            work.extend(&list);
            vacant.insert(list);
        }
        let of = |number: u32| leads.get(&number).into_iter().flatten().copied();
        let groups = bottom_up(stretches.len(), |number| of(number as u32));
        let mut levels: Vec<Vec<Vec<u32>>> = Vec::new();
        let mut level_of: HashMap<u32, usize> = HashMap::with_capacity(leads.len());
        for group in groups.into_iter().filter(|group| leads.contains_key(&group[0])) {
            let behind = group.iter().flat_map(|member| of(*member)).filter_map(|callee| level_of.get(&callee));
            let level = behind.max().map_or(0, |level| level + 1);
            level_of.extend(group.iter().map(|member| (*member, level)));
            levels.resize_with(levels.len().max(level + 1), Vec::new);
            levels[level].push(group);
        }
        Self { levels, called }
    }

    /// Whether somebody leads to a stretch.
    pub(crate) fn is_called(&self, number: u32) -> bool {
        self.called.get(number as usize)
    }
}
