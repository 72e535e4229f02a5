//! Changes to the label of a code object: header flags, ABI version, the target's name in the note, its number in the
//! constant of ROCm's device library, required user SGPRs.
//!
//! Everything else is unchanged; the caller reads the result again with [`CodeObject::parse`], which checks that header
//! and note agree, and compares with [`crate::same_but_for_label`].

use crate::CodeObject;
use crate::isa_version;
use crate::object_file::{ABI_VERSION, E_FLAGS};
use crate::patch::{BytePatch, NewWord};
use crate::relabel;
use crate::target_text::TargetText;
use crate::user_sgprs;
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::Processor;

/// A changed copy of a code object.
#[derive(Debug)]
pub struct ObjectEdit<'o, 'a> {
    object: &'o CodeObject<'a>,
    flags: u32,
    abi_version: u8,
    note: BytePatch,
    /// The constants of the device library.
    isa_versions: Vec<NewWord>,
    /// COMPUTE_PGM_RSRC2 of kernels that get more user SGPRs.
    user_sgprs: Vec<NewWord>,
}

impl<'o, 'a> ObjectEdit<'o, 'a> {
    /// A copy without a change.
    pub fn new(object: &'o CodeObject<'a>) -> Self {
        let note = BytePatch::without_changes(object.bytes().len());
        let (flags, abi_version) = (object.e_flags(), object.abi_version());
        Self { object, flags, abi_version, note, isa_versions: Vec::new(), user_sgprs: Vec::new() }
    }

    pub fn set_e_flags(&mut self, flags: u32) {
        self.flags = flags;
    }

    pub fn set_abi_version(&mut self, version: u8) {
        self.abi_version = version;
    }

    /// Replaces `amdhsa.target` in the note by `text` (see [`crate::Note::spell`]), whatever its length. For a note
    /// without it the text must be empty, and nothing changes.
    ///
    /// # Errors
    /// [`codes::NO_ROUTE`] when the text is not a triple with a target ID, or when the notes are in several places and
    /// would have to grow; the copy is unchanged then.
    pub fn set_note_target(&mut self, text: &str) -> Result<(), Diagnostic> {
        let note = self.object.note();
        if note.target.is_empty() != text.is_empty() {
            return Err(note_target_refusal(format!("`{text}` cannot take the place of `{}`", note.target), note));
        }
        if !text.is_empty() {
            TargetText::parse(text).map_err(|one| note_target_refusal(one, note))?;
        }
        self.note = relabel::with_target(self.object, text)?;
        Ok(())
    }

    /// Puts the number of `target` into every `__oclc_ISA_version`; returns their count. None has to change where both
    /// processors have the same number.
    ///
    /// # Errors
    /// [`codes::NOT_SAFE`] where something may be the constant without proof; the copy is unchanged then.
    pub fn set_isa_version(&mut self, target: &Processor) -> Result<usize, Diagnostic> {
        let places = isa_version::find_constants(self.object, target)?;
        let number = target.isa_version.unwrap_or_default();
        self.isa_versions = places.into_iter().map(|at| NewWord { at, value: number }).collect();
        Ok(self.isa_versions.len())
    }

    /// Adds unused user SGPRs to kernels in waves of 32 lanes that set up fewer than 16 registers, if `target`, or a
    /// processor that it covers, needs them; returns the number of kernels. Their work-group IDs move: the caller must
    /// know that the code reads none of them.
    pub fn raise_user_sgprs(&mut self, target: &Processor) -> usize {
        self.user_sgprs = user_sgprs::raised_rsrc2_words(self.object, target);
        self.user_sgprs.len()
    }

    /// The file with all changes.
    pub fn finish(self) -> Vec<u8> {
        let old = self.object.bytes().to_vec();
        self.build_patch().apply(old)
    }

    /// The changes to the file.
    pub fn build_patch(self) -> BytePatch {
        let mut patch = self.note;
        for NewWord { at, value } in self.isa_versions.into_iter().chain(self.user_sgprs) {
            patch.put(at, value.to_le_bytes().to_vec());
        }
        if self.flags != self.object.e_flags() {
            patch.put(E_FLAGS, self.flags.to_le_bytes().to_vec());
        }
        if self.abi_version != self.object.abi_version() {
            patch.put(ABI_VERSION, vec![self.abi_version]);
        }
        patch
    }
}

fn note_target_refusal(what: String, note: &crate::Note<'_>) -> Diagnostic {
    Diagnostic::error(codes::NO_ROUTE, what).at_offset(note.target_start() as u64)
}
