//! Static tables of `hotswap-isa` from the model, as files that `hotswap-isa-tables` includes.
//!
//! Data flow: [`Model`] → [`expand`] (entries, formats) → [`settings`] (targets as decoders) →
//! [`accept`] (which field values decode) → [`trie`] (lookup) → [`size`] (lengths) → [`emit`] (tables).
//!
//! Invariants: the same model gives the same files, byte for byte; an undefined name is an error that states where it is
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
mod step;
mod table;
pub mod templates;
pub mod trie;
mod window;

use crate::model::Model;
use expand::Expanded;
use settings::TargetSettings;
use size::LengthTries;
use table::TableSet;
use trie::Tries;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    pub files: Vec<GeneratedFile>,
}

/// A file of the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedFile {
    /// Its name in the output directory of the build script.
    pub name: String,
    pub content: Vec<u8>,
}

impl GeneratedFile {
    fn of_text(name: &str, text: String) -> Self {
        Self { name: name.to_owned(), content: text.into_bytes() }
    }
}

/// Generates everything that `hotswap-isa-tables` includes.
pub fn generate(model: &Model) -> Result<Generated, GenerateError> {
    let expanded = Expanded::new(model)?;
    let settings = TargetSettings::new(model, &expanded)?;
    let tries = Tries::new(model, &expanded, &settings)?;
    let sizes = LengthTries::new(model, &expanded, &settings)?;
    let (mut enums, mut tables) = (emit::write_enums(&expanded), TableSet::default());
    emit::write_tables(&mut tables, model, &expanded, &settings, &tries)?;
    sizes.write_sizes(&mut tables);
    effects::write_effects(&mut tables, model, &expanded)?;
    kinds::write(&mut tables, model)?;
    templates::write_templates(&mut tables, &mut enums, model, &expanded)?;
    let mut files = tables.finish();
    files.push(GeneratedFile::of_text("enums.rs", enums));
    Ok(Generated { files })
}

/// `value` as the integer that a table has for it.
fn small<T: TryFrom<usize>>(value: usize, place: &str) -> Result<T, GenerateError> {
    T::try_from(value).map_err(|_| GenerateError::new(place, format!("{value} does not fit the table")))
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
