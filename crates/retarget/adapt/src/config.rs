//! The configuration of a rewrite, which is the same for every function of a code object.

use crate::verify::PlainClassifier;
use hotswap_code_object::SystemSgprShift;
use hotswap_families::FamilyRewriter;
use hotswap_families::code::Scheduling;
use hotswap_isa::Isa;
use std::sync::OnceLock;

pub(crate) struct RewriteConfig<'t> {
    pub(crate) rewriter: &'t FamilyRewriter,
    pub(crate) target: Isa,
    pub(crate) scheduling: Scheduling,
    /// Why MODE may differ, for 16-bit floats, from what matrix instructions use.
    pub(crate) half_mode: Option<String>,
    /// Kernels whose system SGPRs are copied at their entries. If there are any, no family runs.
    pub(crate) shifts: Vec<SystemSgprShift>,
    plain: OnceLock<PlainClassifier>,
}

impl<'t> RewriteConfig<'t> {
    pub(crate) fn new(rewriter: &'t FamilyRewriter, target: Isa, scheduling: Scheduling) -> Self {
        Self { rewriter, target, scheduling, half_mode: None, shifts: Vec::new(), plain: OnceLock::new() }
    }

    /// The same configuration for copies at the entries of these kernels.
    pub(crate) fn with_shifts(self, shifts: &[SystemSgprShift]) -> Self {
        Self { shifts: shifts.to_vec(), ..self }
    }

    /// The same configuration where MODE may differ for 16-bit floats.
    pub(crate) fn with_half_mode(self, half_mode: Option<String>) -> Self {
        Self { half_mode, ..self }
    }

    /// For the check of the result: the instructions that may stay unchanged. All code of an object
    /// is for one `source`.
    pub(crate) fn plain_classifier(&self, source: Isa) -> &PlainClassifier {
        self.plain.get_or_init(|| PlainClassifier::new(source, self.target))
    }
}
