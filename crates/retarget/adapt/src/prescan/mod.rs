//! The first phase: what a pass over the bytes shows, before anything is known of the control flow.
//!
//! | | in |
//! |---|---|
//! | the instructions that may concern a family | [`scan`] |
//! | whether jumps or calls through registers may reach code that no symbol names | [`indirect`] |
//! | candidates in such code, once the program is known | [`unnamed`] |
//! | whether MODE may be unusual for 16-bit floats | [`half_mode`] |
//!
//! Invariants: nothing that concerns a family is overlooked; candidates may turn out to be data, or to be unreachable.

mod half_mode;
mod indirect;
mod scan;
mod unnamed;

pub(crate) use scan::{Candidates, find_candidates};
pub(crate) use unnamed::add_unnamed;

use hotswap_code_object::{CodeObject, CodeStarts};
use hotswap_families::FamilyRewriter;
use hotswap_families::code::Scheduling;
use hotswap_isa::Isa;

/// The findings in a code object.
#[derive(Debug)]
pub(crate) struct Prescan {
    /// The candidates in each section of code.
    pub(crate) sections: Vec<Candidates>,
    /// Only branches from symbols can reach code if this is false.
    pub(crate) has_indirect_transfers: bool,
}

impl Prescan {
    pub(crate) fn from_object(object: &CodeObject<'_>, isa: Isa, rewriter: &FamilyRewriter) -> Self {
        let (code, classifier) =
            rayon::join(|| CodeStarts::from_object(object), || scan::classifier_for(object, isa, rewriter));
        let has_indirect_transfers = indirect::has_transfers(&code, isa);
        let sections = scan::scan_sections(code, isa, rewriter, classifier.as_ref());
        Self { sections, has_indirect_transfers }
    }

    /// Whether no family can have work to do. A section without candidates may hold code that no symbol names, if
    /// something can branch to it.
    pub(crate) fn is_clean(&self) -> bool {
        self.has_no_candidates() && !self.has_indirect_transfers
    }

    pub(crate) fn has_no_candidates(&self) -> bool {
        self.sections.iter().all(Candidates::is_empty)
    }

    /// Whether the hardware or the program keeps vector instructions apart: the program, if an instruction sets SCHED_MODE.
    pub(crate) fn scheduling_mode(&self) -> Scheduling {
        match self.sections.iter().any(|section| section.schedules) {
            true => Scheduling::Program,
            false => Scheduling::Hardware,
        }
    }

    /// Why MODE may have 16-bit floats rounded other than to the nearest even, or their denormals flushed.
    pub(crate) fn half_mode(&self, object: &CodeObject<'_>) -> Option<String> {
        half_mode::half_mode_reason(object, self.sections.iter().any(|section| section.sets_half_mode))
    }
}
