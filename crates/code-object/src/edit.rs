//! Changes to a code object, byte for byte.
//!
//! A change replaces bytes by as many bytes. Everything else, padding included, stays; the caller
//! reads the result again with [`CodeObject::parse`], which checks that header and note agree.

use crate::CodeObject;
use crate::object_file::E_FLAGS;
use crate::target_text::TargetText;
use hotswap_report::{Diagnostic, codes};

/// A changed copy of a code object.
#[derive(Debug)]
pub struct Edit<'o, 'a> {
    object: &'o CodeObject<'a>,
    bytes: Vec<u8>,
}

impl<'o, 'a> Edit<'o, 'a> {
    /// A copy without a change.
    pub fn new(object: &'o CodeObject<'a>) -> Self {
        Self { object, bytes: object.bytes().to_vec() }
    }

    /// Replaces `e_flags`.
    pub fn set_e_flags(&mut self, flags: u32) {
        self.bytes[E_FLAGS..E_FLAGS + 4].copy_from_slice(&flags.to_le_bytes());
    }

    /// Replaces `amdhsa.target` in the note by `text` (see [`crate::Note::spell`]). A note
    /// without it wants an empty text, and nothing changes.
    ///
    /// # Errors
    /// [`codes::NO_ROUTE`] when the text has another length (the note cannot grow) or is no triple
    /// with a target ID; the copy is unchanged then.
    pub fn set_note_target(&mut self, text: &str) -> Result<(), Diagnostic> {
        let note = self.object.note();
        let at = note.target_start() as u64;
        let refuse = |what: String| Diagnostic::error(codes::NO_ROUTE, what).at(at);
        if text.len() != note.target.len() {
            let what =
                format!("`{text}` does not fit in the place of `{}`: the note cannot change its size", note.target);
            return Err(refuse(what));
        }
        if !text.is_empty() {
            TargetText::parse(text).map_err(refuse)?;
        }
        for range in &note.target_ranges {
            self.bytes[range.clone()].copy_from_slice(text.as_bytes());
        }
        Ok(())
    }

    /// The changed file.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}
