//! Lines on standard error, in the programs of users.
//!
//! Invariants: a line is one call of write(2), so that it is whole among the lines of HIP and of the program. The same line is
//! printed once in a process.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Lines that were printed.
static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Prints a line with the library's name. Control characters of names in code objects become blanks.
pub(crate) fn report_message(text: &str) {
    // A set of lines is as good after a panic as before.
    if !PRINTED.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned()) {
        return;
    }
    let line = format!("hotswap-emulated: {}\n", text.replace(char::is_control, " "));
    // Nothing can be done about a closed standard error.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
