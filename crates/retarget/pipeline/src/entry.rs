//! The entries of a bundle: those that are present, and those to add.

use hotswap_adapt::ObjectRecord;
use hotswap_bundle::{EntryBytes, EntryId};
use hotswap_code_object::CodeObject;
use hotswap_compat::AvailableObject;
use hotswap_report::{FamilyCount, Route};
use hotswap_targets::{Processor, TargetId};

/// A code object of the bundle, with its own description of itself.
pub(crate) struct SourceEntry<'a> {
    pub(crate) id: EntryId,
    pub(crate) object: CodeObject<'a>,
    pub(crate) target: TargetId,
    pub(crate) data: &'a [u8],
    /// The same code with relocations, where the link has kept them.
    pub(crate) relocatable: Option<&'a [u8]>,
    /// The same bitcode for another processor, where the link has compiled it.
    pub(crate) recompiled: Option<RecompiledObject<'a>>,
}

/// A code object that the link has compiled for another processor from the same bitcode.
#[derive(Clone, Copy)]
pub(crate) struct RecompiledObject<'a> {
    pub(crate) processor: &'static Processor,
    pub(crate) data: &'a [u8],
}

impl SourceEntry<'_> {
    pub(crate) fn available_code(&self) -> AvailableObject {
        AvailableObject { target: self.target, recompiled: self.recompiled.map(|object| object.processor) }
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
