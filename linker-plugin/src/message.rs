//! The interposer's messages: lines on standard error.

use std::fmt::Display;
use std::io::Write;

/// A line on standard error. A failed write (a full disk) must not fail a link, as with `eprintln!`.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "hotswap-lld: {line}");
}
