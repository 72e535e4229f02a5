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
use crate::work::code_objects::{code_objects, finding_json, in_place};
use crate::work::text;
use hotswap_code_object::{CodeObject, certificate_note};
use hotswap_lint::{Proof, ReleasedPart, compare_with_original};
use hotswap_report::{Diagnostic, codes};
use serde_json::{Value, json};
use std::path::Path;

pub(crate) fn run(original: &Path, rewritten: &Path, format: OutputFormat) -> Result<CommandOutcome, Diagnostic> {
    let mut originals: Vec<PlacedObject> = Vec::new();
    let unread = code_objects(original, |place, _, data| originals.push(PlacedObject::new(place, data)))
        .map_err(|error| error.in_file(original))?;
    let (mut compared, mut problems) = (Vec::new(), unread);
    let mut bare: Vec<PlacedObject> = Vec::new();
    problems.extend(
        code_objects(rewritten, |one, other, third| {
            compare_found_object(one, other, third, &mut compared, &originals, &mut bare)
        })
        .map_err(|error| error.in_file(rewritten))?,
    );
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
                outcome.text += &compared.text(rewritten);
                told.push(compared.json());
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

/// A code object of a file.
struct PlacedObject {
    /// Container and entry; empty for a file that is one code object.
    place: String,
    bytes: Vec<u8>,
}

impl PlacedObject {
    fn new(place: &str, bytes: &[u8]) -> Self {
        Self { place: place.to_owned(), bytes: bytes.to_vec() }
    }
}

fn compare_found_object(
    place: &str,
    _: &str,
    data: &[u8],
    compared: &mut Vec<Result<Compared, Diagnostic>>,
    originals: &[PlacedObject],
    bare: &mut Vec<PlacedObject>,
) {
    match certificate_note(data).is_some() {
        true => compared.push(prove(place, data, originals)),
        false => bare.push(PlacedObject::new(place, data)),
    }
}

/// A rewritten code object with the original that it was compared with.
struct Compared {
    place: String,
    original: String,
    proof: Proof,
}

/// The proof against the code object's source among `originals`; without one, the attempt that got furthest.
fn prove(place: &str, data: &[u8], originals: &[PlacedObject]) -> Result<Compared, Diagnostic> {
    let mut best: Option<Compared> = None;
    for PlacedObject { place: original, bytes } in originals {
        // An object with other kernels is not a candidate.
        if !has_same_kernels(bytes, data) {
            continue;
        }
        let proof = compare_with_original(bytes, data).map_err(|error| in_place(error, place))?;
        let is_done = proof.findings.is_empty();
        if is_done || best.as_ref().is_none_or(|best| proof.unchanged > best.proof.unchanged) {
            best = Some(Compared { place: place.to_owned(), original: original.clone(), proof });
        }
        if is_done {
            break;
        }
    }
    best.ok_or_else(|| {
        let what = "the original has no code object with these kernels";
        in_place(Diagnostic::error(codes::NOT_PROVEN, what), place)
    })
}

fn has_same_kernels(one: &[u8], other: &[u8]) -> bool {
    let (Ok(one), Ok(other)) = (CodeObject::parse(one), CodeObject::parse(other)) else { return false };
    let (one, other): (Vec<String>, Vec<String>) = (kernel_symbol_names(&one), kernel_symbol_names(&other));
    one == other
}

fn kernel_symbol_names(object: &CodeObject<'_>) -> Vec<String> {
    object.note().kernels.iter().map(|kernel| kernel.symbol.to_owned()).collect()
}

impl Compared {
    fn problems(&self, file: &Path) -> impl Iterator<Item = Diagnostic> {
        self.proof.findings.iter().map(move |finding| in_place(finding.to_diagnostic().in_file(file), &self.place))
    }

    fn text(&self, file: &Path) -> String {
        let place = if self.place.is_empty() { String::new() } else { format!(": {}", self.place) };
        let name = text::plain(&format!("{}{place}", file.display()));
        let Proof { unchanged, sites, assumes, findings, released } = &self.proof;
        if !findings.is_empty() {
            return format!("{name}: not proven, {} findings\n", findings.len());
        }
        let mut text = format!("{name}: proven: {unchanged} instructions unchanged, {sites} replaced\n");
        text.extend(assumes.iter().map(|what| format!("  taken for granted: {}\n", text::plain(what))));
        for ReleasedPart { release, bytes } in released {
            text += &format!("  not compared: {} ({bytes} bytes): {}\n", release.part, release.reason);
        }
        text
    }

    fn json(&self) -> Value {
        let Proof { unchanged, sites, assumes, findings, released } = &self.proof;
        let part =
            |one: &ReleasedPart| json!({ "part": one.release.part, "bytes": one.bytes, "reason": one.release.reason });
        let released: Vec<Value> = released.iter().map(part).collect();
        let findings: Vec<Value> = findings.iter().map(finding_json).collect();
        json!({
            "place": self.place,
            "original": self.original,
            "proven": findings.is_empty(),
            "unchanged": unchanged,
            "sites": sites,
            "assumes": assumes,
            "released": released,
            "findings": findings,
        })
    }
}
