//! Static tables of `hotswap-isa` from the model, as Rust text.
//!
//! Data flow: [`Model`] → [`expand`] (entries, formats) → [`settings`] (targets as decoders) →
//! [`accept`] (which field values decode) → [`trie`] (lookup) → [`size`] (lengths) → [`emit`] (text).
//!
//! Invariants: the same model gives the same text, byte for byte; an undefined name is an error that states where it is
//! used.

pub mod accept;
pub mod effects;
pub mod emit;
pub mod expand;
pub mod kinds;
mod lines;
pub mod names;
pub mod settings;
pub mod size;
pub mod templates;
pub mod trie;

use crate::model::Model;
use expand::Expanded;
use settings::Settings;
use size::Sizes;
use std::fmt::Write;
use trie::Tries;

/// Generated text, a file each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// File name and content.
    pub files: Vec<(&'static str, String)>,
}

/// Generates everything that `hotswap-isa` includes.
pub fn generate(model: &Model) -> Result<Generated, GenerateError> {
    let expanded = Expanded::new(model)?;
    let settings = Settings::new(model, &expanded)?;
    let tries = Tries::new(model, &expanded, &settings)?;
    let sizes = Sizes::new(model, &expanded, &settings)?;
    let tables = emit::tables(model, &expanded, &settings, &tries, &sizes)?;
    let (mut effects, mut kinds, mut templates) = (String::new(), String::new(), String::new());
    effects::write(&mut effects, model, &expanded)?;
    kinds::write(&mut kinds, model)?;
    templates::write(&mut templates, model, &expanded)?;
    let files = vec![
        ("enums.rs", emit::enums(&expanded)),
        ("tables.rs", tables),
        ("effects.rs", effects),
        ("kinds.rs", kinds),
        ("templates.rs", templates),
    ];
    Ok(Generated { files })
}

/// A static array as Rust text.
fn emit_array<T>(out: &mut String, name: &str, kind: &str, items: &[T], show: impl Fn(&T) -> String) {
    let _ = writeln!(out, "pub(crate) static {name}: [{kind}; {}] = [", items.len());
    for item in items {
        out.push_str(&show(item));
        out.push_str(",\n");
    }
    out.push_str("];\n");
}

/// The reason why the model yields no tables.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct GenerateError {
    place: String,
    message: String,
}

impl GenerateError {
    /// An error at `place`: the name of a row, a layout, a kind.
    pub fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }
}
