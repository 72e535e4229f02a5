//! `-o -`: an output file that goes to standard output, and the report to standard error.
//!
//! A command writes and checks its output as a file, and only a complete one is printed. So the output is a file in a directory of
//! its own for the time of the command.
//!
//! Invariant: nothing is printed after an error.

use clap::builder::{PathBufValueParser, TypedValueParser};
use hotswap_files::ScratchDirectory;
use hotswap_report::{Diagnostic, codes};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The directory, while a command has such an output.
static DIRECTORY: Mutex<Option<ScratchDirectory>> = Mutex::new(None);

/// Its name in the directory.
const FILE: &str = "standard-output";

/// The parser of output files.
pub(crate) fn output_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| if path.as_os_str() == "-" { placeholder() } else { Ok(path) })
}

fn placeholder() -> Result<PathBuf, String> {
    let mut directory = DIRECTORY.lock().map_err(|error| error.to_string())?;
    if directory.is_none() {
        *directory = Some(ScratchDirectory::temporary("hotswap-output-").map_err(|error| error.to_string())?);
    }
    let path = directory.as_ref().map(|directory| directory.path().join(FILE));
    path.ok_or_else(|| "no directory for temporary files".to_owned())
}

/// A report or message, in which standard output has its name and not that of the file that stands for it.
pub(crate) fn named(text: String, placeholder: Option<&Path>) -> String {
    match placeholder {
        Some(path) => text.replace(&*path.to_string_lossy(), "standard output"),
        None => text,
    }
}

/// The file that stands for standard output, while there is one.
pub(crate) fn current() -> Option<PathBuf> {
    let directory = DIRECTORY.lock().ok()?;
    directory.as_ref().map(|directory| directory.path().join(FILE))
}

/// The bytes for standard output in the place of the report; removes the directory. `None` for other outputs, and where nothing
/// was written.
pub(crate) fn take() -> Option<Result<Vec<u8>, Diagnostic>> {
    let directory = DIRECTORY.lock().ok()?.take()?;
    let path = directory.path().join(FILE);
    path.exists().then(|| {
        std::fs::read(&path).map_err(|error| Diagnostic::error(codes::CANNOT_READ, error.to_string()).in_file(&path))
    })
}
