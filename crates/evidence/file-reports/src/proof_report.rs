//! The proof of a rewrite from the two files, with the certificate in rewritten code objects, as text and JSON.
//!
//! Absent on purpose: the proof itself (`hotswap-lint`).

use crate::code_objects::{finding_json, in_place};
use hotswap_code_object::CodeObject;
use hotswap_lint::{Proof, ReleasedPart, compare_with_original};
use hotswap_report::{Diagnostic, codes, text};
use serde_json::{Value, json};
use std::path::Path;

/// A code object of a file.
pub struct PlacedObject {
    /// Container and entry; empty for a file that is one code object.
    pub place: String,
    pub bytes: Vec<u8>,
}

impl PlacedObject {
    pub fn new(place: &str, bytes: &[u8]) -> Self {
        Self { place: place.to_owned(), bytes: bytes.to_vec() }
    }
}

/// A rewritten code object with the original that it was compared with.
pub struct Compared {
    place: String,
    original: String,
    proof: Proof,
}

/// Compares a code object with its source among `originals`; without one, the result is the attempt that got furthest.
///
/// # Errors
/// [`codes::NOT_PROVEN`] where no original has these kernels, and the reason why code cannot be read.
pub fn prove(place: &str, data: &[u8], originals: &[PlacedObject]) -> Result<Compared, Diagnostic> {
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
    pub fn problems(&self, file: &Path) -> impl Iterator<Item = Diagnostic> {
        self.proof.findings.iter().map(move |finding| in_place(finding.to_diagnostic().in_file(file), &self.place))
    }

    pub fn to_text(&self, file: &Path) -> String {
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

    pub fn to_json(&self) -> Value {
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
