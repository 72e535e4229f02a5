//! The section that all functions are found in: its source, what is known of calls, and targets of branches.

use super::clobbers::Clobbers;
use super::sift::{FlowClassifiers, branch_target};
use crate::ops::Ops;
use crate::place::ProgramByte;
use crate::source::{CodeSource, FixupKind, LinkerFixup};
use hotswap_isa::{ClassifiedInst, Inst, Isa};

/// State that all functions share.
pub(crate) struct CfgContext<'s, 'a> {
    pub(crate) source: &'s CodeSource<'a>,
    pub(crate) ops: &'s Ops,
    pub(crate) clobbers: Clobbers,
    pub(crate) sift: FlowClassifiers,
    /// Numbers of the fixups of branches in a file that is not linked; most files do not have any.
    branches: Vec<u32>,
}

impl<'s, 'a> CfgContext<'s, 'a> {
    pub(crate) fn new(source: &'s CodeSource<'a>, ops: &'s Ops) -> Self {
        let fixups = source.fixups.iter().enumerate().filter(|_| !source.linked);
        let branches: Vec<u32> = fixups.filter(is_branch_fixup).map(|(number, _)| number as u32).collect();
        let sift = FlowClassifiers::new(source.isa, ops, source.bytes.len(), !branches.is_empty());
        Self { source, ops, clobbers: Clobbers::default(), sift, branches }
    }

    /// The fixup of the branch at an offset.
    fn branch_fixup(&self, offset: u32) -> Option<&'s LinkerFixup> {
        let number =
            self.branches.get(self.branches.partition_point(|number| fixup_offset_at(number, self.source) < offset))?;
        self.source.fixups.get(*number as usize).filter(|fixup| fixup.offset - offset < 4)
    }

    pub(crate) fn isa(&self) -> Isa {
        self.source.isa
    }

    /// The instruction at an offset.
    #[inline]
    pub(crate) fn decode_at(&self, offset: u32) -> Option<Inst> {
        self.source.isa.decode(self.source.bytes.get(offset as usize..)?).ok()
    }

    /// The classification of the instruction at an offset, if it needs no decoding.
    #[inline(always)]
    pub(crate) fn classify_at(&self, offset: u32) -> Option<ClassifiedInst> {
        self.sift.classify_bytes(self.source.bytes.get(offset as usize..)?)
    }

    /// The target of a branch that was classified without decoding.
    #[inline]
    pub(crate) fn seen_target(&self, offset: u32) -> EdgeTarget {
        let target = u32::try_from(branch_target(self.source.bytes, offset)).ok();
        let inside = target.filter(|target| (*target as usize) < self.source.bytes.len());
        inside.map_or(EdgeTarget::Wrong, aligned_target)
    }

    pub(crate) fn address_of_offset(&self, offset: u32) -> u64 {
        self.source.address.wrapping_add(u64::from(offset))
    }
}

fn is_branch_fixup((_, fixup): &(usize, &LinkerFixup)) -> bool {
    fixup.kind == FixupKind::Rel16
}

fn fixup_offset_at(number: &u32, source: &CodeSource<'_>) -> u32 {
    source.fixups.get(*number as usize).map_or(u32::MAX, |fixup| fixup.offset)
}

/// The target of a direct branch or call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EdgeTarget {
    /// An offset in the section.
    Offset(u32),
    /// An address outside of it.
    Outside(ProgramByte),
    /// An address that does not exist.
    Wrong,
}

/// The target of a direct branch or call at an offset; `None` for other instructions.
pub(crate) fn direct_target(context: &CfgContext<'_, '_>, offset: u32, inst: &Inst) -> Option<EdgeTarget> {
    resolve_target(context, offset, inst.branch_target(context.address_of_offset(offset), context.isa()))
}

/// The target of an instruction that states this address.
pub(crate) fn resolve_target(context: &CfgContext<'_, '_>, offset: u32, stated: Option<u64>) -> Option<EdgeTarget> {
    let source = context.source;
    if let Some(fixup) = context.branch_fixup(offset) {
        let place = source.target(fixup)?;
        // The distance counts from the fixup, and the hardware counts from the end of the instruction.
        return Some(source.offset_of(place).map_or(EdgeTarget::Outside(place), aligned_target));
    }
    let place = ProgramByte { base: ProgramByte::CODE, at: stated? };
    Some(source.offset_of(place).map_or(EdgeTarget::Wrong, aligned_target))
}

fn aligned_target(offset: u32) -> EdgeTarget {
    if offset.is_multiple_of(4) { EdgeTarget::Offset(offset) } else { EdgeTarget::Wrong }
}
