//! A code object for the target before it is written: the unchanged or new code, and the label.
//!
//! Invariants: unchanged parts of the input are not copied. The writer has the result checked by [`Prepared::check`],
//! which reads it again.

use crate::order::{AdaptRequest, AdaptedObject, ObjectRecord};
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

    /// The label that the request wants; `None` where header and note are to keep naming the source.
    pub(crate) fn requested(object: &CodeObject<'_>, order: &AdaptRequest) -> Result<Option<Self>, Diagnostic> {
        (!order.keep_machine).then(|| Self::for_target(object, order.target)).transpose()
    }

    /// Notes the label and its families in the record.
    fn note_in(&self, record: &mut ObjectRecord) {
        record.labelled = true;
        for family in &self.families {
            match record.families.iter_mut().find(|known| known.name == family.name) {
                Some(known) => known.sites += family.sites,
                None => record.families.push(family.clone()),
            }
        }
    }

    /// The labelled file, read again and compared with the one that it was made from.
    fn apply_checked(&self, old: &CodeObject<'_>) -> Result<Vec<u8>, Diagnostic> {
        let made = self.patch.apply(old.bytes().to_vec());
        self.compare(old, &made, |old, new, _| same_but_for_label(old, new))?;
        Ok(made)
    }

    /// Reads the labelled file and compares it with `old`.
    fn compare(
        &self,
        old: &CodeObject<'_>,
        made: &[u8],
        same: impl FnOnce(&CodeObject<'_>, &CodeObject<'_>, &BytePatch) -> Result<(), String>,
    ) -> Result<(), Diagnostic> {
        let again = CodeObject::parse_copy(made, old)?;
        same(old, &again, &self.patch).map_err(|one| label_damage_error(one, old))?;
        if again.target_id().processor != self.target.processor {
            return Err(verify_failure(format!("the result is labelled {}", again.target_id())));
        }
        Ok(())
    }

    /// The labelled file in order: offsets and bytes. Unchanged parts are slices of `old`.
    pub(crate) fn parts<'p>(&'p self, old: &'p [u8]) -> Vec<(u64, &'p [u8])> {
        self.patch.file_parts(old)
    }
}

/// The code for the target, before header and note name it.
pub(crate) enum UnlabelledObject<'a> {
    /// Nothing in the code changes: the input, and the label to give it.
    Unchanged { object: Box<CodeObject<'a>>, label: Option<RelabelPatch>, record: ObjectRecord },
    /// A new file, whose label is still to be made.
    Rewritten { bytes: Vec<u8>, record: ObjectRecord },
}

impl<'a> UnlabelledObject<'a> {
    pub(crate) fn unchanged(object: CodeObject<'a>, label: Option<RelabelPatch>, record: ObjectRecord) -> Self {
        Self::Unchanged { object: Box::new(object), label, record }
    }

    pub(crate) fn rewritten(bytes: Vec<u8>, record: ObjectRecord) -> Self {
        Self::Rewritten { bytes, record }
    }

    /// The parts of the file, for a writer that does not copy the input.
    pub(crate) fn prepare(self, order: &AdaptRequest) -> Result<PreparedObject<'a>, Diagnostic> {
        match self {
            Self::Unchanged { object, label, record } => {
                Ok(PreparedObject::new(SourceCode::Same(object), label, record))
            }
            Self::Rewritten { bytes, record } => {
                let label = match order.keep_machine {
                    true => None,
                    false => RelabelPatch::requested(&CodeObject::parse(&bytes)?, order)?,
                };
                Ok(PreparedObject::new(SourceCode::New(bytes), label, record))
            }
        }
    }

    /// The file in memory, checked. The code is parsed once for its label and for the comparison.
    pub(crate) fn finish(self, order: &AdaptRequest) -> Result<AdaptedObject, Diagnostic> {
        let (mut record, bytes, label) = match self {
            Self::Unchanged { object, label, record } => {
                let bytes =
                    label.as_ref().map_or_else(|| Ok(object.bytes().to_vec()), |one| one.apply_checked(&object));
                (record, bytes?, label)
            }
            Self::Rewritten { bytes, record } if order.keep_machine => (record, bytes, None),
            Self::Rewritten { bytes, record } => {
                let object = CodeObject::parse(&bytes)?;
                let label = RelabelPatch::for_target(&object, order.target)?;
                (record, label.apply_checked(&object)?, Some(label))
            }
        };
        label.iter().for_each(|label| label.note_in(&mut record));
        Ok(AdaptedObject { bytes, record })
    }
}

/// A code object with the label of the source.
#[derive(Debug, Clone)]
enum SourceCode<'a> {
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
    fn new(code: SourceCode<'a>, label: Option<RelabelPatch>, mut record: ObjectRecord) -> Self {
        label.iter().for_each(|label| label.note_in(&mut record));
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
        let Some(label) = &self.label else { return Ok(()) };
        match &self.code {
            SourceCode::Same(object) => label.compare(object, made, same_but_for_patch),
            SourceCode::New(bytes) => label.compare(&CodeObject::parse(bytes)?, made, same_but_for_patch),
        }
    }
}

fn verify_failure(what: String) -> Diagnostic {
    Diagnostic::error(codes::VERIFY_FAILED, what)
}

fn label_damage_error(what: String, old: &CodeObject<'_>) -> Diagnostic {
    find_overlap(old).unwrap_or_else(|| verify_failure(format!("the label changed {what}")))
}
