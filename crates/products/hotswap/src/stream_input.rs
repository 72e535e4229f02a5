//! Inputs that are streams: pipes (`<(cat file)`), FIFOs, `/dev/stdin` of a pipe, devices. They can be read once and in order, and
//! commands read files several times and anywhere; so a stream is copied into a file first, which takes its place.
//!
//! Invariants: a stream is read once, to its end, and no further than a limit. Messages name it as the user did. A stream that
//! cannot be read, and a copy that cannot be written, are errors of these files, not of the command line that names them.
//!
//! Absent on purpose: `-`, which commands read themselves, and outputs.

use clap::builder::{PathBufValueParser, TypedValueParser};
use hotswap_files::{ScratchDirectory, reads};
use hotswap_report::{Diagnostic, codes};
use std::error::Error;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// More is no file of device code that fits into a pipe's purpose, and may have no end (`/dev/zero`).
const LARGEST: u64 = 4 << 30;
/// Bytes that are copied at a time: the size of a pipe.
const CHUNK: usize = 64 << 10;

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

/// The error of [`readable_file`] behind one of clap's.
pub(crate) fn stream_error(error: &clap::Error) -> Option<Diagnostic> {
    let error = error.source()?.downcast_ref::<Diagnostic>()?;
    (error.code.exit == codes::CANNOT_READ.exit).then(|| error.clone())
}

/// The path, or that of a copy where it is a stream.
///
/// # Errors
/// [`codes::CANNOT_READ`] for the stream, [`codes::NO_TEMPORARY`] for its copy.
pub(crate) fn readable_file(path: PathBuf) -> Result<PathBuf, Diagnostic> {
    if path.as_os_str() == "-" || !is_stream(&path)? {
        return Ok(path);
    }
    let mut copies = COPIES.lock().unwrap_or_else(PoisonError::into_inner);
    let copies = match &mut *copies {
        Some(copies) => copies,
        none => {
            let directory = ScratchDirectory::temporary("hotswap-stream-")?;
            none.insert(StreamCopies { directory, names: Vec::new() })
        }
    };
    let copy = copies.path(copies.names.len());
    copy_stream(&path, &copy)?;
    copies.names.push(path);
    Ok(copy)
}

/// A path that does not exist is not a stream: the command says so.
fn is_stream(path: &Path) -> Result<bool, Diagnostic> {
    Ok(reads::find_metadata(path)?.is_some_and(|meta| !meta.is_file() && !meta.is_dir()))
}

fn copy_stream(path: &Path, copy: &Path) -> Result<(), Diagnostic> {
    let mut stream = File::open(path).map_err(|error| reads::unread_file(path, &error))?;
    let mut file = File::create(copy).map_err(|error| unwritten_copy_error(copy, &error))?;
    let mut buffer = vec![0; CHUNK];
    let mut size = 0;
    loop {
        let read = match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.map_err(|error| reads::unread_file(path, &error))?,
        };
        size += read as u64;
        if size > LARGEST {
            let what = format!("it has more than {LARGEST} bytes, and is not a file; save it to a file first");
            return Err(Diagnostic::error(codes::CANNOT_READ, what).in_file(path));
        }
        file.write_all(&buffer[..read]).map_err(|error| unwritten_copy_error(copy, &error))?;
    }
}

fn unwritten_copy_error(copy: &Path, error: &io::Error) -> Diagnostic {
    let directory = copy.parent().and_then(Path::parent).unwrap_or(copy);
    Diagnostic::error(codes::NO_TEMPORARY, format!("{error}, for the copy of a stream")).in_file(directory)
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
