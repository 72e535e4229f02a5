//! A code object for the target before it is written: the unchanged or new code, and the label.
//!
//! Invariants: unchanged parts of the input are not copied. The writer has the result checked by [`Prepared::check`],
//! which reads it again.

use crate::order::{AdaptedObject, ObjectRecord};
use hotswap_code_object::{BytePatch, CodeObject, find_overlap, same_but_for_label, same_but_for_patch};
use hotswap_families::FamilyRegistry;
use hotswap_report::{Diagnostic, FamilyCount, codes};
use hotswap_targets::TargetId;

#[derive(Debug, Clone)]
pub struct PreparedObject<'a> {
    code: SourceCode<'a>,
    /// `None` if header and note keep naming the source.
    label: Option<RelabelPatch>,
    record: ObjectRecord,
}

/// Header and note of a code object that name the target.
#[derive(Debug, Clone)]
pub(crate) struct RelabelPatch {
    /// The changes in it.
    patch: BytePatch,
    target: TargetId,
    families: Vec<FamilyCount>,
}

impl RelabelPatch {
    pub(crate) fn for_target(object: &CodeObject<'_>, target: TargetId) -> Result<Self, Diagnostic> {
        let (patch, families) = FamilyRegistry::installed().patch_object(object, &target)?;
        Ok(Self { patch, target, families })
    }

    /// The labelled file in order: offsets and bytes. Unchanged parts are slices of `old`.
    pub(crate) fn parts<'p>(&'p self, old: &'p [u8]) -> Vec<(u64, &'p [u8])> {
        self.patch.file_parts(old)
    }
}

/// A code object with the label of the source.
#[derive(Debug, Clone)]
pub(crate) enum SourceCode<'a> {
    /// The input, which is unchanged.
    Same(Box<CodeObject<'a>>),
    New(Vec<u8>),
}

impl SourceCode<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Same(object) => object.bytes(),
            Self::New(bytes) => bytes,
        }
    }
}

impl<'a> PreparedObject<'a> {
    pub(crate) fn new(code: SourceCode<'a>, label: Option<RelabelPatch>, mut record: ObjectRecord) -> Self {
        if let Some(label) = &label {
            record.labelled = true;
            for family in &label.families {
                match record.families.iter_mut().find(|known| known.name == family.name) {
                    Some(known) => known.sites += family.sites,
                    None => record.families.push(family.clone()),
                }
            }
        }
        Self { code, label, record }
    }

    /// The record of the changes.
    pub fn record(&self) -> &ObjectRecord {
        &self.record
    }

    /// Size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.label.as_ref().map_or(self.code.bytes().len(), |label| label.patch.size()) as u64
    }

    /// The file in order: offsets and bytes. Parts taken from the input are slices of it.
    pub fn parts(&self) -> Vec<(u64, &[u8])> {
        let bytes = self.code.bytes();
        self.label.as_ref().map_or_else(|| vec![(0, bytes)], |label| label.parts(bytes))
    }

    /// Checks the label of the file that was written from the parts. The parts must have been compared with it before.
    ///
    /// # Errors
    /// `VERIFY_FAILED`, or the error found in the file.
    pub fn check_written(&self, made: &[u8]) -> Result<(), Diagnostic> {
        self.compare_label(made, same_but_for_patch)
    }

    /// The file in memory, checked.
    pub(crate) fn finish(self) -> Result<AdaptedObject, Diagnostic> {
        let Some(RelabelPatch { patch, .. }) = &self.label else {
            let bytes = match self.code {
                SourceCode::Same(object) => object.bytes().to_vec(),
                SourceCode::New(bytes) => bytes,
            };
            return Ok(AdaptedObject { bytes, record: self.record });
        };
        let bytes = patch.apply(self.code.bytes().to_vec());
        self.compare_label(&bytes, |old, new, _| same_but_for_label(old, new))?;
        Ok(AdaptedObject { bytes, record: self.record })
    }

    fn compare_label(
        &self,
        made: &[u8],
        same: impl FnOnce(&CodeObject<'_>, &CodeObject<'_>, &BytePatch) -> Result<(), String>,
    ) -> Result<(), Diagnostic> {
        let Some(RelabelPatch { patch, target, .. }) = &self.label else { return Ok(()) };
        let written;
        let old = match &self.code {
            SourceCode::Same(object) => object,
            SourceCode::New(bytes) => {
                written = CodeObject::parse(bytes)?;
                &written
            }
        };
        let again = CodeObject::parse_copy(made, old)?;
        same(old, &again, patch).map_err(|one| label_damage_error(one, old))?;
        if again.target_id().processor != target.processor {
            return Err(verify_failure(format!("the result is labelled {}", again.target_id())));
        }
        Ok(())
    }
}

fn verify_failure(what: String) -> Diagnostic {
    Diagnostic::error(codes::VERIFY_FAILED, what)
}

fn label_damage_error(what: String, old: &CodeObject<'_>) -> Diagnostic {
    find_overlap(old).unwrap_or_else(|| verify_failure(format!("the label changed {what}")))
}
