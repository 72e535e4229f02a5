//! Errors as callers in C get them.

use hotswap_report::Diagnostic;
use std::any::Any;
use std::ffi::CString;

/// The outcome of a call, `hotswap_status` in C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum CallStatus {
    /// The call has done its work.
    Ok = 0,
    /// An argument is out of range.
    InvalidArgument = 1,
    /// A list does not fit the buffer.
    ShortBuffer = 2,
    /// No such name, address or entry.
    NotFound = 3,
    /// The file cannot be read.
    CannotRead = 4,
    /// Damaged or unknown bytes.
    BadInput = 5,
    /// The result would not be correct.
    Refused = 6,
    /// A callback asked to stop.
    Stopped = 7,
    /// A defect of ours.
    Internal = 8,
}

/// Why a call failed.
#[derive(Debug, Clone)]
pub struct CallError {
    /// The status that the call returns.
    pub status: CallStatus,
    /// Number of the diagnostic; empty where it does not exist.
    pub code: CString,
    /// The whole text, one line.
    pub message: CString,
}

impl CallError {
    pub(crate) fn new(status: CallStatus, message: impl Into<String>) -> Self {
        Self { status, code: CString::default(), message: c_string(message) }
    }

    pub(crate) fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(CallStatus::InvalidArgument, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(CallStatus::NotFound, message)
    }

    /// A panic, which is a defect of ours.
    pub(crate) fn of_panic(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        Self::new(CallStatus::Internal, format!("libhotswap itself failed: {text}; report it with the input"))
    }

    /// Several reasons for one refusal.
    pub(crate) fn of_all(reasons: &[Diagnostic]) -> Self {
        let text: Vec<String> = reasons.iter().map(Diagnostic::to_string).collect();
        match reasons.first() {
            Some(first) => Self { message: c_string(text.join("\n")), ..Self::from(first.clone()) },
            None => Self::new(CallStatus::Refused, "no reason is known"),
        }
    }
}

impl From<Diagnostic> for CallError {
    fn from(diagnostic: Diagnostic) -> Self {
        // The exit codes of the commands are classes of diagnostics.
        let status = match diagnostic.code.exit {
            2 => CallStatus::InvalidArgument,
            10 | 11 | 13 => CallStatus::Refused,
            12 => CallStatus::BadInput,
            14 => CallStatus::CannotRead,
            _ => CallStatus::Internal,
        };
        Self { status, code: c_string(diagnostic.code.id), message: c_string(diagnostic.to_string()) }
    }
}

/// The text for C; a NUL inside would end it.
pub(crate) fn c_string(text: impl Into<String>) -> CString {
    let text: String = text.into();
    CString::new(text).unwrap_or_else(|error| {
        let bytes = error.into_vec().into_iter().filter(|byte| *byte != 0).collect::<Vec<_>>();
        CString::new(bytes).unwrap_or_default()
    })
}
