//! Lines on standard error, in the programs of users.
//!
//! Invariant: a line is one call of write(2), so that it is whole among the lines of HIP and of the program.

use std::io::Write;

/// Prints a line with the library's name. Control characters of names in code objects become blanks.
pub(crate) fn report(text: &str) {
    let line = format!("hotswap-emulated: {}\n", text.replace(char::is_control, " "));
    // Nothing can be done about a closed standard error.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
