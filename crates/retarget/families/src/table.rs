//! The table of families, generated from `patches.def`.

pub use crate::patches_def::FamilyScope;

/// One family of `patches.def`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchFamily {
    /// Name, as in plans and records.
    pub name: &'static str,
    /// Its unit of work.
    pub scope: FamilyScope,
    /// Position among the families of its scope, from 1.
    pub order: u32,
    /// A short description of its changes.
    pub summary: &'static str,
}

/// The index of a family in [`FAMILIES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FamilySlot(pub(crate) usize);

include!(concat!(env!("OUT_DIR"), "/table.rs"));

/// The family of that name.
pub fn find_family(name: &str) -> Option<&'static PatchFamily> {
    FAMILIES.iter().find(|family| family.name == name)
}
