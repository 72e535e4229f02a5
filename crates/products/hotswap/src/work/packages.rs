//! Packages given to commands: each file with device code is treated as a file of its own.

pub(crate) use hotswap_packages::format_of;
pub(crate) use hotswap_stack::package_files::{archives_text, gpu_of, has_code, is_fixed, label, size};

use hotswap_packages::MemberChange;
use hotswap_report::{Diagnostic, codes};

/// The refusal of `--in-place`.
pub(crate) fn not_in_place() -> Diagnostic {
    Diagnostic::error(codes::USAGE, "--in-place is for a file of its own; packages and directories are written anew")
}

/// The sums of a changed package.
#[derive(Debug, Default)]
pub(crate) struct PackageSums {
    pub(crate) changed: usize,
    pub(crate) removed: usize,
    pub(crate) unchanged: usize,
    /// Files with device code that lack entries to remove.
    pub(crate) fixed: usize,
}

impl PackageSums {
    /// Counts a file with code.
    pub(crate) fn add(&mut self, change: &MemberChange) {
        *match change {
            MemberChange::Unchanged => &mut self.unchanged,
            MemberChange::Replaced(_) => &mut self.changed,
            MemberChange::Removed => &mut self.removed,
        } += 1;
    }
}
