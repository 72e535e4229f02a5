//! Inputs that are streams: pipes (`<(cat file)`), FIFOs, `/dev/stdin` of a pipe, devices. They can be read once and in order, and
//! commands read files several times and anywhere; so a stream is copied into a file first, which takes its place.
//!
//! Invariants: a stream is read once, to its end, and no further than a limit. Messages name it as the user did.
//!
//! Absent on purpose: `-`, which commands read themselves, and outputs.

use clap::builder::{PathBufValueParser, TypedValueParser};
use hotswap_files::ScratchDirectory;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// More is no file of device code that fits into a pipe's purpose, and may have no end (`/dev/zero`).
const LARGEST: u64 = 4 << 30;

/// The copies of streams.
static COPIES: Mutex<Option<StreamCopies>> = Mutex::new(None);

struct StreamCopies {
    directory: ScratchDirectory,
    /// The name of each stream; the place is that of its copy.
    names: Vec<PathBuf>,
}

/// The parser of input files.
pub(crate) fn input_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(readable_file)
}

/// The path, or that of a copy where it is a stream.
pub(crate) fn readable_file(path: PathBuf) -> Result<PathBuf, String> {
    if path.as_os_str() == "-" || !fs::metadata(&path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return Ok(path);
    }
    let mut copies = COPIES.lock().unwrap_or_else(PoisonError::into_inner);
    let copies = match &mut *copies {
        Some(copies) => copies,
        none => {
            let directory = ScratchDirectory::temporary("hotswap-stream-").map_err(|error| error.to_string())?;
            none.insert(StreamCopies { directory, names: Vec::new() })
        }
    };
    let copy = copies.path(copies.names.len());
    // The command says why it cannot be opened.
    let Ok(stream) = File::open(&path) else { return Ok(path) };
    copy_stream(stream, &copy).map_err(|error| format!("{}: {error}", path.display()))?;
    copies.names.push(path);
    Ok(copy)
}

fn copy_stream(stream: File, copy: &Path) -> io::Result<()> {
    if io::copy(&mut stream.take(LARGEST + 1), &mut File::create(copy)?)? > LARGEST {
        return Err(io::Error::other(format!(
            "it has more than {LARGEST} bytes, and is not a file; save it to a file first"
        )));
    }
    Ok(())
}

impl StreamCopies {
    fn path(&self, number: usize) -> PathBuf {
        self.directory.path().join(format!("stream{number}"))
    }
}

/// A report or message, in which streams have their names and not those of their copies.
pub(crate) fn named(text: String) -> String {
    let copies = COPIES.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(copies) = &*copies else { return text };
    // `stream1` is a part of `stream10`.
    let numbered = copies.names.iter().enumerate().rev();
    numbered.fold(text, |text, (number, name)| {
        text.replace(&*copies.path(number).to_string_lossy(), &name.to_string_lossy())
    })
}

pub(crate) fn remove_copies() {
    drop(COPIES.lock().unwrap_or_else(PoisonError::into_inner).take());
}
