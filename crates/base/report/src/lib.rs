//! Diagnostics and records: HotSwap's reports about its changes and refusals.
//!
//! Every error of the product becomes a [`Diagnostic`]: a stable code from one table ([`codes::CODES`]), the object,
//! the location, the reason and the advice, printed as one line. Every fat binary that HotSwap changes carries a
//! [`Record`] of the change.
//!
//! Invariants: a code is never renumbered or reused; a record holds nothing that differs between two equal builds (no
//! times, no absolute paths).
//!
//! Absent on purpose: printing and exiting (binaries do that), colours, translation.

mod certificate;
pub mod codes;
mod diagnostic;
mod digits;
pub mod exit_codes;
pub mod explanations;
pub mod limit;
mod plain_text;
mod record;
pub mod text;

pub use certificate::{
    Certificate, CertificateError, MapRun, ScratchRegisters, SectionCertificate, SiteCertificate, SpilledRegister,
};
pub use codes::DiagnosticCode;
pub use diagnostic::{Diagnostic, DiagnosticLocation, Severity};
pub use digits::hex_digits;
pub use explanations::CodeExplanation;
pub use plain_text::escape_control;
pub use record::{EntryRecord, FamilyCount, Record, Route, SourceText};
