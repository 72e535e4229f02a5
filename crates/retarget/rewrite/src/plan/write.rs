//! The bytes of a section in its new layout.

use super::{ChangeContent, CodePlan};
use crate::edit::CodeEdit;
use crate::map::MapChange;
use crate::refuse_layout;
use crate::scan::{BranchSite, DistanceEncoding};
use hotswap_report::Diagnostic;
use rayon::prelude::*;

/// Changes written per task.
const CHANGES: usize = 1 << 12;
/// Old bytes written per task, where changes are rare.
const BYTES: u64 = 4 << 20;

/// The position after some changes, in the old section and in the new one.
#[derive(Clone, Copy, Default)]
struct PlanPosition {
    old: u64,
    new: u64,
}

/// The function that [`CodePlan::in_pieces`] calls for each piece of the new code.
type PieceWriter<'t> = dyn Fn(&[MapChange], PlanPosition, u64, &mut [u8]) -> Result<(), Diagnostic> + Sync + 't;

impl CodePlan<'_> {
    /// Writes the section; `out` has its new size.
    pub(crate) fn write_section(&self, old: &[u8], out: &mut [u8]) -> Result<(), Diagnostic> {
        self.in_pieces(old.len(), out, &|changes, from, end, out| {
            self.write_changes(changes, from, &old[..end as usize], out)
        })?;
        for split in &self.words {
            if let Some(at) = self.map.new_bytes(split.at) {
                out[at as usize..at as usize + 4].copy_from_slice(&split.word.to_le_bytes());
            }
        }
        // Errors in new code are reported first.
        self.in_pieces(old.len(), out, &|_, from, end, out| {
            let first = self.branches.partition_point(|branch| branch.at() < from.old);
            let own = self.branches[first..].iter().take_while(|branch| branch.at() < end);
            own.into_iter().try_for_each(|branch| self.write_branch(*branch, old, from, out))
        })
    }

    /// Calls `task` for each piece of the section, cut after changes: with the changes of the piece, its start, its end
    /// in the old section, and its bytes in the new one. The first error counts.
    fn in_pieces(&self, size: usize, out: &mut [u8], task: &PieceWriter<'_>) -> Result<(), Diagnostic> {
        let mut pieces = Vec::new();
        let (mut from, mut rest) = (PlanPosition::default(), out);
        let mut left = self.map.changes();
        loop {
            let near = left.partition_point(|change| change.old < from.old + BYTES).max(1);
            let (own, behind) = left.split_at(left.len().min(CHANGES).min(near));
            // The last piece extends to the end of the section.
            let end = match (own.last(), behind.is_empty()) {
                (Some(last), false) => PlanPosition { old: last.old + last.removed, new: last.new + last.size },
                _ => PlanPosition { old: size as u64, new: self.map.size() },
            };
            let (part, more) = rest.split_at_mut((end.new - from.new) as usize);
            pieces.push((own, from, end.old, part));
            if behind.is_empty() {
                break;
            }
            (from, rest, left) = (end, more, behind);
        }
        let done: Vec<Result<(), Diagnostic>> =
            pieces.into_par_iter().map(|(changes, from, end, out)| task(changes, from, end, out)).collect();
        done.into_iter().collect()
    }

    /// Writes adjacent changes, and the old bytes between and after them, up to the end of `old`.
    /// `out` begins at `from`.
    fn write_changes(
        &self,
        changes: &[MapChange],
        from: PlanPosition,
        old: &[u8],
        out: &mut [u8],
    ) -> Result<(), Diagnostic> {
        let (mut at, mut to) = (from.old as usize, 0);
        for change in changes {
            let size = change.old as usize - at;
            out[to..to + size].copy_from_slice(&old[at..][..size]);
            let new = (change.new - from.new) as usize;
            to = new + change.size as usize;
            self.write_content(change.content, change.new, old, &mut out[new..to])?;
            at = (change.old + change.removed) as usize;
        }
        out[to..].copy_from_slice(&old[at..]);
        Ok(())
    }

    fn write_content(&self, content: u32, new: u64, old: &[u8], out: &mut [u8]) -> Result<(), Diagnostic> {
        match self.contents[content as usize] {
            ChangeContent::Edit(number) => self.write_edit(&self.edits.rows[number as usize], new, out),
            ChangeContent::Padding(number) => {
                self.paddings[number as usize].write(new, out);
                Ok(())
            }
            ChangeContent::Nop => {
                out.copy_from_slice(&crate::padding::NOP.to_le_bytes());
                Ok(())
            }
            ChangeContent::Long(number, first) => {
                let branch = self.branches[number as usize];
                let mut words = Vec::with_capacity(9);
                self.forms.write_branch(
                    branch.first_word(old),
                    first,
                    new,
                    self.branch_target(branch, old)?,
                    &mut words,
                );
                out.chunks_exact_mut(4).zip(words).for_each(|(out, word)| out.copy_from_slice(&word.to_le_bytes()));
                Ok(())
            }
        }
    }

    fn write_edit(&self, edit: &CodeEdit, new: u64, out: &mut [u8]) -> Result<(), Diagnostic> {
        out.copy_from_slice(self.edits.bytes_of(edit));
        for fixup in self.edits.fixups_of(edit) {
            let target = self
                .map
                .new_start(fixup.target)
                .ok_or_else(|| new_branch_error("has a target that was removed", self, edit))?;
            let distance = target.wrapping_sub(new + u64::from(fixup.at) + 4) as i64;
            let field = out.get_mut(fixup.at as usize..).and_then(|bytes| bytes.get_mut(..2));
            let field = field.ok_or_else(|| new_branch_error("is outside of it", self, edit))?;
            if !DistanceEncoding::Short.can_encode(distance) {
                return Err(new_branch_error("is out of reach", self, edit));
            }
            field.copy_from_slice(&((distance / 4) as i16).to_le_bytes());
        }
        Ok(())
    }

    /// `out` begins at `from`.
    fn write_branch(
        &self,
        branch: BranchSite,
        old: &[u8],
        from: PlanPosition,
        out: &mut [u8],
    ) -> Result<(), Diagnostic> {
        let Some(at) = self.map.new_bytes(branch.at()) else { return Ok(()) };
        let target = self.branch_target(branch, old)?;
        let behind = branch.at() + branch.size();
        let (old, new) = (branch.target_offset(old).wrapping_sub(behind), target.wrapping_sub(at + branch.size()));
        if old == new {
            return Ok(());
        }
        let at = (at - from.new) as usize;
        match branch.encoding_reach() {
            DistanceEncoding::Short => out[at..at + 2].copy_from_slice(&((new as i64 / 4) as i16).to_le_bytes()),
            DistanceEncoding::Literal32 => out[at + 4..at + 8].copy_from_slice(&(new as i32).to_le_bytes()),
            DistanceEncoding::Literal64 => out[at + 4..at + 12].copy_from_slice(&new.to_le_bytes()),
        }
        Ok(())
    }
}

fn new_branch_error(what: &str, plan: &CodePlan<'_>, edit: &CodeEdit) -> Diagnostic {
    refuse_layout(plan.file + edit.offset, format!("a branch in new code {what}"))
}
