//! One line on standard error, in the programs of users.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Mutex, OnceLock};

/// Prints a line, once in a process: programs load code and ask for names many times.
pub(crate) fn say_once(text: &str) {
    static SAID: OnceLock<Mutex<BTreeSet<String>>> = OnceLock::new();
    // A set of texts is as good after a panic as before.
    let mut said = SAID.get_or_init(Mutex::default).lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if said.insert(text.to_owned()) {
        let line = format!("hotswap-names: {}\n", text.replace(char::is_control, " "));
        // Nothing can be done about a closed standard error.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}
