//! Progress of long work on standard error, if that is a terminal.

use hotswap_file_edit::EditProgress;
use indicatif::{ProgressBar, ProgressStyle};

/// A bar that counts bytes.
pub(crate) struct TerminalProgress {
    bar: ProgressBar,
}

impl TerminalProgress {
    pub(crate) fn new(verb: &'static str) -> Self {
        let bar = ProgressBar::new(0);
        match ProgressStyle::with_template("{prefix} {bar:40} {bytes}/{total_bytes} {eta}") {
            Ok(style) => Self { bar: bar.with_style(style).with_prefix(verb) },
            Err(_) => Self { bar },
        }
    }
}

impl EditProgress for TerminalProgress {
    fn begin(&self, bytes: u64) {
        self.bar.set_length(bytes);
    }

    fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
