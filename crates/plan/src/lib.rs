//! The plan: what one build asks HotSwap for, and how it travels.
//!
//! A plan has one canonical text. Its hash covers the text and the identity of this HotSwap
//! build; the build system writes the hash on the command line (`-Xoffload-linker
//! --hotswap-plan=HASH`), so that a changed plan or a changed HotSwap rebuilds. The text lies in
//! a file named after the hash; the wrapper finds it and hands it to the tools of the device link
//! through the environment ([`words`]).
//!
//! Absent on purpose: what a target is and which pairs are allowed (`hotswap-compat`).

mod findings;
mod plan;
mod store;
pub mod words;

pub use findings::{TextFinding, TextFindings, TextMark};
pub use plan::{NamesPolicy, Pair, Plan, Policy};
pub use store::{find, save};

/// Version of HotSwap.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Fingerprint of this HotSwap build: 16 hexadecimal digits over its sources.
pub const IDENTITY: &str = env!("HOTSWAP_IDENTITY");
