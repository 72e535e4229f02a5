//! The order in which the addresses of functions are followed: callees before callers, functions that do not call each
//! other together.

use super::context::CfgContext;
use super::draft::GroupedBytes;
use crate::bits::DwordSet;
use crate::calls::bottom_up;

pub(crate) struct BlockOrder {
    /// Groups of stretches that call each other, by number; a level refers to earlier ones only.
    pub(crate) levels: Vec<Vec<Vec<u32>>>,
    called: DwordSet,
}

impl BlockOrder {
    /// From the stretches with these numbers, other called ones, and all that these refer to, as far as that is known.
    pub(crate) fn of(
        context: &CfgContext<'_, '_>,
        stretches: &[GroupedBytes],
        numbers: &[u32],
        others: &[u32],
    ) -> Self {
        let mut called = DwordSet::new(stretches.len());
        for number in others {
            called.set_bit(*number as usize);
        }
        let mut leads: Vec<Option<Vec<u32>>> = vec![None; stretches.len()];
        let mut work = [numbers, others].concat();
        while let Some(number) = work.pop() {
            let slot = &mut leads[number as usize];
            let Some(draft) = stretches[number as usize].draft.as_ref().filter(|_| slot.is_none()) else { continue };
            let mut list = draft.leads.clone();
            list.extend(draft.calls.iter().filter_map(|call| context.clobbers.callee_stretch(context.source, call.to)));
            list.sort_unstable();
            list.dedup();
            for callee in &list {
                called.set_bit(*callee as usize);
            }
            work.extend(list.iter().filter(|callee| leads[**callee as usize].is_none()));
            leads[number as usize] = Some(list);
        }
        let groups = bottom_up(stretches.len(), |number| stretch_leads_of(number as u32, &leads));
        let mut levels: Vec<Vec<Vec<u32>>> = Vec::new();
        // One more than the level, 0 before it is known.
        let mut known = vec![0; stretches.len()];
        for group in groups.into_iter().filter(|group| leads[group[0] as usize].is_some()) {
            let level: usize = group
                .iter()
                .flat_map(|member| stretch_leads_of(*member, &leads))
                .map(|callee| known[callee as usize])
                .max()
                .unwrap_or(0);
            group.iter().for_each(|member| known[*member as usize] = level + 1);
            levels.resize_with(levels.len().max(level + 1), Vec::new);
            levels[level].push(group);
        }
        Self { levels, called }
    }

    /// Whether another stretch refers to a stretch.
    pub(crate) fn is_called(&self, number: u32) -> bool {
        self.called.get(number as usize)
    }
}

fn stretch_leads_of(
    number: u32,
    leads: &[Option<Vec<u32>>],
) -> std::iter::Copied<std::iter::Flatten<std::option::Iter<'_, Vec<u32>>>> {
    leads[number as usize].iter().flatten().copied()
}
