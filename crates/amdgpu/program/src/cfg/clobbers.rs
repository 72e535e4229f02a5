//! The registers that a call changes.
//!
//! LLVM allocates registers across functions: a caller keeps values in any register that a callee does not write, and a
//! function without other callers need not save the registers that the convention requires it to save. So the code
//! itself counts.

use super::draft::{FunctionDraft, GroupedBytes, TAIL_OFFSET};
use crate::place::ProgramByte;
use crate::source::CodeSource;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::regset::RegSet;
use std::ops::Range;

/// For each stretch of the section the registers that a call into it may change.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clobbers {
    spans: Vec<Range<u32>>,
    sets: Vec<Option<Box<RegSet>>>,
    convention: Box<RegSet>,
    /// Counter of changes in what is known.
    clock: u32,
    /// Functions that write more than was known about them before.
    grown: Vec<u32>,
}

/// The registers that LLVM's calling convention lets a function change.
fn caller_saved_registers() -> RegSet {
    let mut set: RegSet = (0..256).filter_map(|index| clobbered_vector_register(RegFile::Vgpr, index)).collect();
    set.extend((256..1024).map(|index| Reg::new(RegFile::Vgpr, index, 1)));
    set.extend((0..256).map(|index| Reg::new(RegFile::Agpr, index, 1)));
    set.extend((0..108).filter(|index| !is_saved_register(index)).map(|index| Reg::new(RegFile::Sgpr, index, 1)));
    set
}

fn clobbered_vector_register(file: RegFile, index: u16) -> Option<Reg> {
    (index < 40 || index % 16 < 8).then_some(Reg::new(file, index, 1))
}

fn is_saved_register(index: &u16) -> bool {
    matches!(index, 30..=39 | 48..=55 | 64..=71 | 80..=87 | 96..=105)
}

impl Clobbers {
    /// Nothing is known about the functions in these stretches.
    pub(crate) fn new(stretches: &[GroupedBytes]) -> Self {
        Self {
            spans: stretches.iter().map(|stretch| stretch.start..stretch.end).collect(),
            sets: vec![None; stretches.len()],
            convention: Box::new(caller_saved_registers()),
            clock: 0,
            grown: Vec::new(),
        }
    }

    /// Counter of changes in what is known: while it is the same, nothing new is known.
    pub(crate) fn clock(&self) -> u32 {
        self.clock
    }

    /// Updates the registers written by a group of mutually recursive functions, given in order, with
    /// names in their drafts.
    pub(crate) fn update_group(&mut self, source: &CodeSource<'_>, stretches: &[GroupedBytes], group: &[u32]) {
        let mut all = Some(RegSet::EMPTY);
        for draft in group.iter().filter_map(|member| stretches[*member as usize].draft.as_ref()) {
            let own = self.written_registers(source, draft, group);
            all = all.zip(own).map(|(mut all, own)| {
                all.union_with(&own);
                all
            });
        }
        for member in group {
            let slot = &mut self.sets[*member as usize];
            if slot.as_deref() != all.as_ref() {
                self.clock += 1;
                if slot.as_ref().is_some_and(|known| all.is_none_or(|all| !all.is_subset(known))) {
                    self.grown.push(*member);
                }
                *slot = all.map(Box::new);
            }
        }
    }

    /// Functions that were found to write more since the last call of this.
    pub(crate) fn take_grown(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.grown)
    }

    /// Whether the registers of a function are known.
    pub(crate) fn is_known(&self, number: u32) -> bool {
        self.sets.get(number as usize).is_some_and(Option::is_some)
    }

    /// The registers that a function and its callees write; `None` if nothing is known about one of them.
    fn written_registers(&self, source: &CodeSource<'_>, draft: &FunctionDraft, group: &[u32]) -> Option<RegSet> {
        let named = draft.named.as_ref()?;
        let mut own = named.writes;
        for call in &draft.calls {
            match self.callee_stretch(source, call.to) {
                Some(callee) if group.binary_search(&callee).is_ok() => {}
                Some(callee) => drop(own.union_with(self.sets[callee as usize].as_ref()?)),
                None => drop(own.union_with(&self.convention)),
            }
        }
        // At an unknown transfer the convention is kept, as by an unknown callee.
        if draft.goes_astray() {
            own.union_with(&self.convention);
        }
        // Registers that it writes and loads again were saved, if the convention requires that.
        if draft.tracks {
            let mut saved = named.restored;
            saved.subtract(&self.convention);
            own.subtract(&saved);
        }
        Some(own)
    }

    /// The stretch that holds a call's target.
    pub(crate) fn callee_stretch(&self, source: &CodeSource<'_>, to: Option<ProgramByte>) -> Option<u32> {
        self.index_of(offset_of(source, to?)?)
    }

    /// The stretch that holds an offset.
    pub(crate) fn index_of(&self, offset: u32) -> Option<u32> {
        let index = self.spans.partition_point(|span| span.start <= offset).checked_sub(1)?;
        self.spans.get(index).filter(|span| offset < span.end).map(|_| index as u32)
    }

    /// The registers that a call may change; `None` if nothing is known about its callee yet.
    pub(crate) fn of_call(&self, callee: Option<u32>) -> Option<&RegSet> {
        match callee {
            None => Some(&self.convention),
            Some(offset) => self.sets.get(self.index_of(offset)? as usize)?.as_deref(),
        }
    }
}

/// The offset of a callee; tails state it, see [`TAIL_OFFSET`].
fn offset_of(source: &CodeSource<'_>, to: ProgramByte) -> Option<u32> {
    match to.base {
        TAIL_OFFSET => u32::try_from(to.at).ok(),
        _ => source.offset_of(to),
    }
}
