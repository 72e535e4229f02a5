//! The text of the rows: one file for each part of the model, one line for each item.
//!
//! Invariants: [`parse`] of the output of [`texts`] gives the same model. Everything read is checked (names exist and
//! are unique, bits do not overlap, opcodes fit). Every error names file and line. A line that starts with white space
//! continues the previous line; `#` starts a comment line.
//!
//! Absent on purpose: corrections (`overlay.isa` is the importer's input, its effect is in the rows).

mod bits;
pub(crate) mod condition;
mod facts;
mod layout;
pub(crate) mod line;
mod row;
mod shape;

use crate::model::Model;
use line::Lines;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Files with rows, in the order in which they are read. A row is in the file of its first encoding class.
pub const ROW_FILES: &[&str] = &[
    "sop.isa",
    "smem.isa",
    "vop1.isa",
    "vop2.isa",
    "vopc.isa",
    "vop3.isa",
    "vop3p.isa",
    "dpp.isa",
    "sdwa.isa",
    "vopd.isa",
    "vinterp.isa",
    "ds.isa",
    "flat.isa",
    "mubuf.isa",
    "mtbuf.isa",
    "mimg.isa",
    "exp.isa",
];

/// Corrections that the importer applies; in the directory of the rows, but not one of them.
pub const OVERLAY: &str = "overlay.isa";

/// The reason why rows could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A malformed line.
    #[error("{file}:{line}: {what}")]
    Line {
        /// Name of the file.
        file: String,
        /// Line number, from 1.
        line: usize,
        /// The error.
        what: String,
    },
    /// A file that no part of the model belongs to, or that is missing.
    #[error("{file}: {what}")]
    Unexpected {
        /// Name of the file.
        file: String,
        /// The error.
        what: &'static str,
    },
}

/// Names that are known so far, so that a reference to an unknown one is reported at its position.
#[derive(Default)]
struct KnownNames {
    predicates: HashSet<String>,
    tables: HashSet<String>,
    kinds: HashSet<String>,
    layouts: std::collections::HashMap<String, u32>,
    shapes: HashSet<String>,
    bases: HashSet<String>,
}

type RowReader = fn(&mut Lines<'_>, &mut KnownNames, &mut Model) -> Result<(), RowError>;

/// The files that are not rows, in the order in which they are read.
const FACTS: &[(&str, RowReader)] = &[
    ("predicates.isa", facts::read_predicates),
    ("targets.isa", facts::read_targets),
    ("steps.isa", facts::read_steps),
    ("kinds.isa", facts::read_kinds),
    ("layouts.isa", layout::read),
    ("shapes.isa", shape::read),
    ("images.isa", facts::read_images),
];

/// Reads the rows of a directory.
///
/// # Errors
/// The first invalid file or line.
pub fn read(directory: &Path) -> Result<Model, RowError> {
    parse(&load(directory)?)
}

/// The files of a directory: names and texts, sorted by name.
///
/// # Errors
/// A file that cannot be read.
pub fn load(directory: &Path) -> Result<Vec<(String, String)>, RowError> {
    let error = |path: &Path| {
        let path = path.to_owned();
        move |source| RowError::File { path, source }
    };
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(error(directory))? {
        let path = entry.map_err(error(directory))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".isa") && name != OVERLAY {
            let text = std::fs::read_to_string(&path).map_err(error(&path))?;
            texts.push((name, text));
        }
    }
    texts.sort();
    Ok(texts)
}

/// Reads the rows from texts, each with the name of its file.
///
/// # Errors
/// The first invalid line.
pub fn parse(texts: &[(String, String)]) -> Result<Model, RowError> {
    let known = |name: &str| FACTS.iter().any(|(fact, _)| *fact == name) || ROW_FILES.contains(&name);
    if let Some((file, _)) = texts.iter().find(|(name, _)| !known(name)) {
        return Err(RowError::Unexpected { file: file.clone(), what: "no part of the model has this file" });
    }
    let find = |file: &str| texts.iter().find(|(name, _)| name == file).map(|(_, text)| text.as_str());
    let mut model = Model::default();
    let mut names = KnownNames::default();
    for (file, reader) in FACTS {
        let what = "the file is missing";
        let text = find(file).ok_or_else(|| RowError::Unexpected { file: (*file).to_owned(), what })?;
        reader(&mut Lines::new(file, text), &mut names, &mut model)?;
    }
    for file in ROW_FILES {
        row::read(&mut Lines::new(file, find(file).unwrap_or_default()), &names, &mut model)?;
    }
    Ok(model)
}

/// One row from the text of its line; names in it are not resolved.
#[cfg(feature = "import")]
pub(crate) fn parse_row(text: &str) -> Result<crate::model::EncodingRow, RowError> {
    let mut lines = Lines::new(OVERLAY, text);
    match lines.next()? {
        Some(mut line) => row::parse_row_line(&mut line),
        None => Err(RowError::Unexpected { file: OVERLAY.to_owned(), what: "a row without words" }),
    }
}

/// The text of a model: names of files and their texts. Rows must be in the order of [`family`].
#[must_use]
pub fn texts(model: &Model) -> Vec<(String, String)> {
    let mut texts = vec![
        ("predicates.isa", facts::write_predicates(model)),
        ("targets.isa", facts::write_targets(model)),
        ("steps.isa", facts::write_steps(model)),
        ("kinds.isa", facts::write_kinds(model)),
        ("layouts.isa", layout::write(model)),
        ("shapes.isa", shape::write(model)),
        ("images.isa", facts::write_images(model)),
    ];
    let mut files: Vec<String> = ROW_FILES.iter().map(|_| row::HEADER.to_owned()).collect();
    for item in &model.rows {
        let class = item.columns.first().and_then(|column| model.layouts.iter().find(|l| l.name == column.layout));
        let place = class.map_or(0, |layout| family(&layout.class));
        if let Some(file) = files.get_mut(place) {
            *file += &row::line(item);
        }
    }
    texts.extend(ROW_FILES.iter().copied().zip(files));
    texts.into_iter().map(|(name, text)| (name.to_owned(), text)).collect()
}

/// Writes a model's files into a directory.
///
/// # Errors
/// A file that cannot be written.
pub fn write(directory: &Path, model: &Model) -> Result<(), RowError> {
    for (name, text) in texts(model) {
        let path = directory.join(name);
        std::fs::write(&path, text).map_err(|source| RowError::File { path, source })?;
    }
    Ok(())
}

/// The index in [`ROW_FILES`] for the rows of an encoding class.
#[must_use]
pub fn family(class: &str) -> usize {
    let file = match class {
        _ if class.ends_with("_SDWA") => "sdwa.isa",
        _ if class.contains("_DPP") => "dpp.isa",
        _ if class.starts_with("SOP") => "sop.isa",
        "SMEM" => "smem.isa",
        "VOP1" => "vop1.isa",
        "VOP2" => "vop2.isa",
        "VOPC" => "vopc.isa",
        "VOP3" => "vop3.isa",
        "VOP3P" | "VOP3PX2" => "vop3p.isa",
        "VOPD" | "VOPD3" => "vopd.isa",
        "DS" => "ds.isa",
        "FLAT" => "flat.isa",
        "MUBUF" => "mubuf.isa",
        "MTBUF" => "mtbuf.isa",
        "MIMG" | "VIMAGE" | "VSAMPLE" => "mimg.isa",
        "VINTRP" | "VINTERP" | "LDSDIR" => "vinterp.isa",
        _ => "exp.isa",
    };
    ROW_FILES.iter().position(|name| *name == file).unwrap_or(0)
}

#[cfg(test)]
mod tests;
