//! `hotswap verify --against ORIGINAL REWRITTEN`: proves a rewrite from the two files, with the certificate in rewritten
//! code objects.
//!
//! Each file is a code object or contains code objects. Every code object of the rewritten file that carries a
//! certificate is compared with those of the original; one of them must be its source. JSON: `{schema: 1, original,
//! rewritten, objects: [{place, original, proven, unchanged, sites, assumes, released: [{part, bytes, reason}],
//! findings}]}`.
//!
//! Absent on purpose: the proof (`hotswap-lint`).

use crate::args::OutputFormat;
use crate::outcome::CommandOutcome;
use crate::work::code_objects::code_objects;
use hotswap_code_object::certificate_note;
use hotswap_file_reports::proof_report::{PlacedObject, prove};
use hotswap_report::{Diagnostic, text};
use serde_json::json;
use std::path::Path;

pub(crate) fn run(original: &Path, rewritten: &Path, format: OutputFormat) -> Result<CommandOutcome, Diagnostic> {
    let mut originals: Vec<PlacedObject> = Vec::new();
    let unread = code_objects(original, |place, _, data| originals.push(PlacedObject::new(place, data)))
        .map_err(|error| error.in_file(original))?;
    let (mut compared, mut problems) = (Vec::new(), unread);
    let mut bare: Vec<PlacedObject> = Vec::new();
    let unread = code_objects(rewritten, |place, _, data| match certificate_note(data).is_some() {
        true => compared.push(prove(place, data, &originals)),
        false => bare.push(PlacedObject::new(place, data)),
    });
    problems.extend(unread.map_err(|error| error.in_file(rewritten))?);
    // Without any certificate the file may be a copy with another label.
    if compared.is_empty() {
        compared.extend(bare.iter().map(|object| prove(&object.place, &object.bytes, &originals)));
    }
    let mut outcome = CommandOutcome { text: String::new(), problems, ..CommandOutcome::default() };
    let mut told = Vec::new();
    for result in compared {
        match result {
            Ok(compared) => {
                outcome.problems.extend(compared.problems(rewritten));
                outcome.text += &compared.to_text(rewritten);
                told.push(compared.to_json());
            }
            Err(error) => outcome.problems.push(error.in_file(rewritten)),
        }
    }
    if format == OutputFormat::Json {
        let (original, rewritten) = (original.display().to_string(), rewritten.display().to_string());
        outcome.text =
            text::json(&json!({ "schema": 1, "original": original, "rewritten": rewritten, "objects": told }));
    }
    Ok(outcome)
}
