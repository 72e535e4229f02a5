//! The entries of a bundle: those that are present, and those to add.

use hotswap_adapt::ObjectRecord;
use hotswap_bundle::{EntryBytes, EntryId};
use hotswap_code_object::CodeObject;
use hotswap_compat::AvailableObject;
use hotswap_report::{FamilyCount, Route};
use hotswap_targets::TargetId;

/// A code object of the bundle, with its own description of itself.
pub(crate) struct SourceEntry<'a> {
    pub(crate) id: EntryId,
    pub(crate) object: CodeObject<'a>,
    pub(crate) target: TargetId,
    pub(crate) data: &'a [u8],
    /// The same code with relocations, where the link has kept them.
    pub(crate) relocatable: Option<CodeObject<'a>>,
    /// The same bitcode for another processor, where the link has compiled it.
    pub(crate) recompiled: Option<CodeObject<'a>>,
}

impl SourceEntry<'_> {
    pub(crate) fn available_code(&self) -> AvailableObject {
        let recompiled = self.recompiled.as_ref().map(|object| object.target_id().processor);
        AvailableObject { target: self.target, recompiled }
    }
}

/// A code object to add.
pub(crate) struct NewEntry {
    pub(crate) id: String,
    pub(crate) data: EntryBytes<'static>,
    pub(crate) target: TargetId,
    /// The entry that it was derived from.
    pub(crate) source: EntryId,
    pub(crate) route: Route,
    pub(crate) families: Vec<FamilyCount>,
    /// The changes to its code.
    pub(crate) code: Option<ObjectRecord>,
    /// Kernels of its source that it lacks.
    pub(crate) left_out: Vec<String>,
}
