//! The compiler's device link, which a companion repeats with one more argument, its inputs and its output.

use crate::child;
use crate::context::CallContext;
use crate::words::CommandLine;
use hotswap_code_object::CodeObject;
use hotswap_device_link::{LinkInput, link_inputs};
use hotswap_files::{InputFile, reads};
use hotswap_report::Diagnostic;
use hotswap_targets::TargetId;
use std::cell::OnceCell;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub(crate) struct Linker<'l> {
    pub(crate) context: &'l CallContext,
    pub(crate) line: &'l CommandLine<'l>,
    pub(crate) real: &'l Path,
    pub(crate) output: &'l Path,
}

impl Linker<'_> {
    /// Runs the compiler's link with one additional argument; returns the exit code.
    pub(crate) fn link(&self, more: Option<OsString>) -> Result<u8, Diagnostic> {
        let mut stripped = self.line.stripped()?;
        stripped.words.extend(more);
        child::run(self.context, self.real, &stripped.words)
    }
}

/// The file that a link has made: read once, and again only where a step has replaced it.
pub(crate) struct LinkOutput<'l> {
    pub(crate) path: &'l Path,
    pub(crate) bytes: InputFile,
    /// The target of the code object, once it was parsed.
    target: OnceCell<TargetId>,
}

impl<'l> LinkOutput<'l> {
    pub(crate) fn open(path: &'l Path) -> Result<Self, Diagnostic> {
        Ok(Self { path, bytes: hotswap_files::open_input(path)?, target: OnceCell::new() })
    }

    /// Replaces the file in one step.
    pub(crate) fn replace(&mut self, made: &[u8]) -> Result<(), Diagnostic> {
        hotswap_files::replace_like(self.path, made, self.path)?;
        self.bytes = hotswap_files::open_input(self.path)?;
        self.target = OnceCell::new();
        Ok(())
    }

    /// The code object in the file.
    pub(crate) fn parse(&self) -> Result<CodeObject<'_>, Diagnostic> {
        let object = CodeObject::parse(&self.bytes).map_err(|error| error.in_file(self.path))?;
        let _ = self.target.set(object.target_id());
        Ok(object)
    }

    /// The target of the code object, which is parsed only if it was not since the last change.
    pub(crate) fn target_id(&self) -> Result<TargetId, Diagnostic> {
        match self.target.get() {
            Some(target) => Ok(*target),
            None => self.parse().map(|object| object.target_id()),
        }
    }
}

/// A file that a link reads.
pub(crate) struct LinkedFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: InputFile,
}

impl LinkedFile {
    /// The objects in it, with the name of the file.
    pub(crate) fn link_inputs(&self) -> Vec<LinkInput<'_>> {
        link_inputs(&self.path.display().to_string(), &self.bytes)
    }
}

/// The files of the command line that may be objects or archives.
pub(crate) fn input_files(line: &CommandLine<'_>, output: &Path) -> Result<Vec<LinkedFile>, Diagnostic> {
    let words = line.words().filter(|word| !word.as_bytes().starts_with(b"-"));
    let mut files = Vec::new();
    for path in words.map(PathBuf::from).filter(|path| path != output) {
        if reads::is_regular(&path)? {
            let bytes = hotswap_files::open_input(&path)?;
            files.push(LinkedFile { path, bytes });
        }
    }
    Ok(files)
}
