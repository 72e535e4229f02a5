//! What a call leaves in registers.
//!
//! LLVM allocates registers across functions: a caller keeps values in any register that a callee does not write, and a
//! function that nobody else can call need not save what the convention asks it to save. So the code itself counts.

use crate::builder::Stretch;
use crate::calls::bottom_up;
use crate::place::Place;
use crate::scan::{Context, Draft, TAIL_OFFSET};
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::regset::RegSet;
use rayon::prelude::*;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// For each stretch of the section the registers that a call into it may change.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clobbers {
    spans: Vec<(u32, u32)>,
    sets: Vec<Option<Box<RegSet>>>,
    convention: Box<RegSet>,
}

/// What LLVM's calling convention lets a function change.
fn convention() -> RegSet {
    let vector = |file, index: u16| (index < 40 || index % 16 < 8).then_some(Reg::new(file, index, 1));
    let mut set: RegSet = (0..256).filter_map(|index| vector(RegFile::Vgpr, index)).collect();
    set.extend((256..1024).map(|index| Reg::new(RegFile::Vgpr, index, 1)));
    set.extend((0..256).map(|index| Reg::new(RegFile::Agpr, index, 1)));
    let saved = |index: &u16| matches!(index, 30..=39 | 48..=55 | 64..=71 | 80..=87 | 96..=105);
    set.extend((0..108).filter(|index| !saved(index)).map(|index| Reg::new(RegFile::Sgpr, index, 1)));
    set
}

impl Clobbers {
    /// Of the stretches with these numbers, and of what they call, as far as that is known.
    pub(crate) fn of(context: &Context<'_, '_>, stretches: &mut [Stretch], mut work: Vec<u32>) -> Self {
        let mut made = Self {
            spans: stretches.iter().map(|stretch| (stretch.start, stretch.end)).collect(),
            sets: vec![None; stretches.len()],
            convention: Box::new(convention()),
        };
        let mut called: HashMap<u32, Vec<Option<u32>>> = HashMap::new();
        while let Some(number) = work.pop() {
            let Entry::Vacant(vacant) = called.entry(number) else { continue };
            let callee = |to: Option<Place>| Some(made.index_of(offset_of(context, to?)?)? as u32);
            let draft = stretches[number as usize].draft.iter();
            let callees = vacant.insert(draft.flat_map(|draft| &draft.calls).map(|call| callee(call.to)).collect());
            work.extend(callees.iter().flatten());
        }
        let drafts = stretches.par_iter_mut().enumerate().filter(|(number, _)| called.contains_key(&(*number as u32)));
        drafts.filter_map(|(_, stretch)| stretch.draft.as_mut()).for_each(|draft| draft.name(context));
        let callees = |number: usize| called.get(&(number as u32)).into_iter().flatten().flatten().copied();
        for group in bottom_up(stretches.len(), callees) {
            let mut set = RegSet::EMPTY;
            for (member, called) in group.iter().filter_map(|member| Some((*member, called.get(member)?))) {
                let Some(draft) = &stretches[member as usize].draft else { continue };
                made.add(draft, called, &mut set);
            }
            for member in group.into_iter().filter(|member| called.contains_key(member)) {
                made.sets[member as usize] = Some(Box::new(set));
            }
        }
        made
    }

    fn add(&self, draft: &Draft, called: &[Option<u32>], set: &mut RegSet) {
        // Drafts have names since [`Clobbers::of`]; one without could write anything.
        let Some(named) = &draft.named else {
            set.union_with(&RegSet::from_words([u64::MAX; RegSet::EMPTY.words().len()]));
            return;
        };
        let mut own = named.writes;
        for callee in called {
            match callee {
                Some(callee) => drop(self.sets[*callee as usize].as_ref().map(|callee| own.union_with(callee))),
                None => drop(own.union_with(&self.convention)),
            }
        }
        // What it writes and loads again it saved, if the convention asks for that.
        if draft.tracks {
            let mut saved = named.restored;
            saved.subtract(&self.convention);
            own.subtract(&saved);
        }
        set.union_with(&own);
    }

    fn index_of(&self, offset: u32) -> Option<usize> {
        let index = self.spans.partition_point(|(start, _)| *start <= offset).checked_sub(1)?;
        self.spans.get(index).filter(|(_, end)| offset < *end).map(|_| index)
    }

    /// What a call may change; `None` if nothing is known of what is called there yet.
    pub(crate) fn of_call(&self, callee: Option<u32>) -> Option<&RegSet> {
        match callee {
            None => Some(&self.convention),
            Some(offset) => self.sets.get(self.index_of(offset)?)?.as_deref(),
        }
    }
}

/// The offset of what is called; tails state it, see [`TAIL_OFFSET`].
fn offset_of(context: &Context<'_, '_>, to: Place) -> Option<u32> {
    match to.base {
        TAIL_OFFSET => u32::try_from(to.at).ok(),
        _ => context.source.offset_of(to),
    }
}
