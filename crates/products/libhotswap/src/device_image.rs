//! A code object, and what is known about it. Everything beyond its bytes is computed when it is first asked for, once.

use crate::call_error::{CallError, CallStatus};
use crate::file_bytes::FileBytes;
use crate::function_index::FunctionIndex;
use crate::instruction_walk::{CodeSpans, SpanPlace};
use crate::variables::{DeviceVariable, variables_of};
use crate::worker_threads::run_parallel;
use hotswap_code_object::{CodeObject, SourceFrame, SourceLines, is_code_object, source_frames};
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

/// The bytes of an image: a part of a file that stays open, or its own.
#[derive(Debug)]
pub(crate) enum ImageBytes {
    Part(Arc<FileBytes>, Range<usize>),
    Owned(Vec<u8>),
}

impl Deref for ImageBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Part(file, range) => file.get(range.clone()).unwrap_or_default(),
            Self::Owned(bytes) => bytes,
        }
    }
}

/// The code object behind a `hotswap_image`; queries fill the rest when they first need it.
#[derive(Debug)]
pub struct DeviceImage {
    bytes: ImageBytes,
    index: OnceLock<Result<FunctionIndex, CallError>>,
    spans: OnceLock<Result<CodeSpans, CallError>>,
    lines: OnceLock<Result<SourceLines, CallError>>,
    variables: OnceLock<Vec<DeviceVariable>>,
}

impl DeviceImage {
    pub(crate) fn new(bytes: ImageBytes) -> Result<Self, CallError> {
        if !is_code_object(&bytes) {
            let error = CodeObject::parse(&bytes).err().map(CallError::from);
            return Err(error.unwrap_or_else(|| CallError::new(CallStatus::BadInput, "it is no code object")));
        }
        let (index, spans, lines) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Ok(Self { bytes, index, spans, lines, variables: OnceLock::new() })
    }

    /// A copy of bytes.
    ///
    /// # Errors
    /// `BadInput` where they are not a code object.
    pub fn from_memory(bytes: &[u8]) -> Result<Self, CallError> {
        Self::new(ImageBytes::Owned(bytes.to_vec()))
    }

    /// The bytes of the whole code object.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn index(&self) -> Result<&FunctionIndex, CallError> {
        self.index
            .get_or_init(|| run_parallel(|| FunctionIndex::new(&self.bytes)).and_then(|made| made))
            .as_ref()
            .map_err(Clone::clone)
    }

    pub(crate) fn code_spans(&self) -> Result<&CodeSpans, CallError> {
        self.spans
            .get_or_init(|| run_parallel(|| CodeSpans::new(&self.bytes)).and_then(|made| made))
            .as_ref()
            .map_err(Clone::clone)
    }

    pub(crate) fn variables(&self) -> &[DeviceVariable] {
        self.variables.get_or_init(|| variables_of(&self.bytes))
    }

    /// The functions at an address, inlined ones first.
    pub(crate) fn frames(&self, address: u64) -> Result<Vec<SourceFrame>, CallError> {
        let frames = run_parallel(|| source_frames(&self.bytes, address))?;
        if frames.is_empty() {
            return Err(CallError::not_found(format!("the file has no debug information of {address:#x}")));
        }
        Ok(frames)
    }

    /// File and line of an address.
    pub(crate) fn source_line(&self, address: u64) -> Result<(String, u32), CallError> {
        self.find_source_line(address)?
            .ok_or_else(|| CallError::not_found(format!("the file tells no source line of {address:#x}")))
    }

    fn find_source_line(&self, address: u64) -> Result<Option<(String, u32)>, CallError> {
        let Some(SpanPlace { section, offset }) = self.code_spans()?.section_of(address) else { return Ok(None) };
        let lines = self.lines.get_or_init(|| run_parallel(|| SourceLines::read(&self.bytes)));
        let lines = lines.as_ref().map_err(Clone::clone)?;
        let text = lines.line_at(section, offset);
        let parts = text.as_ref().and_then(|text| text.rsplit_once(':'));
        Ok(parts.and_then(|(file, line)| Some((file.to_owned(), line.parse().ok()?))))
    }
}
