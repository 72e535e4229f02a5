//! Builds the model from llvm-tblgen's JSON of LLVM's AMDGPU target.
//!
//! Invariants: the same JSON gives the same model, byte for byte; what is not understood is an error, never
//! skipped; nothing but the needed fields of the needed records is kept (the JSON has 570 MB).
//!
//! Absent on purpose: LLVM's C++ code. What it adds to the records stands here as tables: the order of the
//! steps ([`steps`]), where opcodes lie ([`classes`]), which features its code asks for ([`targets`]).

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

/// Why the JSON could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The JSON is damaged or cannot be read.
    #[error("the JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The overlay.
    #[error(transparent)]
    Overlay(#[from] crate::rows::RowError),
    /// A record says something that the importer does not know.
    #[error("record {record}: {what}")]
    Record {
        /// Name of the record.
        record: String,
        /// What is wrong.
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
    let mut model = Model { steps: steps::all(), ..Model::default() };
    model.predicates = conditions::predicates(&records)?;
    let processors = targets::all(&records)?;
    let kinds = kinds::Kinds::new();
    let halves = flags::halves(&records);
    let mut found = Vec::new();
    for record in &records.instructions {
        let instruction = instruction::read(&records, &kinds, &halves, record)?;
        if columns::exists(&instruction.column, &model, &processors) {
            found.push(instruction);
        }
    }
    model.image_bases = images::bases(&records, &found)?;
    instruction::fill(&mut model, &kinds, found)?;
    kinds.fill(&mut model);
    targets::fill(&mut model, processors);
    overlay::apply(&mut model, corrections)?;
    Ok(model)
}

#[cfg(test)]
mod tests;
