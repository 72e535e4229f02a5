//! Builds the model from llvm-tblgen's JSON of LLVM's AMDGPU target.
//!
//! Invariants: the same JSON gives the same model, byte for byte. Records that are not understood are an error, never
//! skipped. Nothing but the needed fields of the needed records is kept (the JSON has 570 MB).
//!
//! Absent on purpose: LLVM's C++ code. Its additions to the records are tables here: the order of the steps
//! ([`steps`]), the positions of opcodes ([`classes`]), the features that its code queries ([`targets`]).

mod classes;
mod columns;
mod conditions;
mod encoding;
mod flags;
mod images;
mod instruction;
mod json;
mod kinds;
mod layouts;
mod overlay;
mod shapes;
mod steps;
mod targets;

use crate::model::Model;
use std::io::Read;

/// The reason why the JSON could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The JSON is damaged or cannot be read.
    #[error("the JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Overlay(#[from] crate::rows::RowError),
    /// A record has a value that the importer does not know.
    #[error("record {record}: {what}")]
    Record {
        /// Name of the record.
        record: String,
        what: String,
    },
}

/// An error in a record.
fn wrong<T>(record: &str, what: impl Into<String>) -> Result<T, ImportError> {
    Err(ImportError::Record { record: record.to_owned(), what: what.into() })
}

/// Reads the JSON, builds the model and applies the corrections, which are the text of an overlay.
///
/// # Errors
/// Damaged JSON, records that the importer does not understand, and corrections that correct nothing.
pub fn import(json: impl Read, corrections: &str) -> Result<Model, ImportError> {
    let records = json::read(json)?;
    let mut model = Model { steps: steps::table_steps(), ..Model::default() };
    model.predicates = conditions::read_predicates(&records)?;
    let processors = targets::read_processors(&records)?;
    let kinds = kinds::Kinds::new();
    let halves = flags::half_result_mnemonics(&records);
    let mut found = Vec::new();
    for record in &records.instructions {
        let instruction = instruction::read_instruction(&records, &kinds, &halves, record)?;
        if columns::has_processor(&instruction.column, &model, &processors) {
            found.push(instruction);
        }
    }
    model.image_bases = images::image_bases(&records, &found)?;
    instruction::fill_rows(&mut model, &kinds, found)?;
    kinds.fill_kinds(&mut model);
    targets::fill_targets(&mut model, processors);
    overlay::apply_overlay(&mut model, corrections)?;
    Ok(model)
}

#[cfg(test)]
mod tests;
