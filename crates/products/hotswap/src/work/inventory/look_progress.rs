//! The progress of a look that takes long: a bar on standard error, if that is a terminal.
//!
//! Invariant: a short look shows nothing, and nothing of a bar is left when it ends.

use hotswap_bundle::FoundContents;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// A look that ends earlier shows no bar.
const PATIENCE: Duration = Duration::from_millis(500);

pub(crate) struct LookProgress {
    bar: ProgressBar,
    /// The time at which the bar appears.
    due: Instant,
}

impl LookProgress {
    /// For a look at all containers of a file.
    pub(crate) fn of_contents(contents: &FoundContents<'_>) -> Self {
        Self::new(contents.found.iter().map(|found| found.bytes.len() as u64).sum())
    }

    /// For a look at so many bytes of containers, which differ in size.
    pub(crate) fn new(bytes: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{prefix} {bar:40} {bytes}/{total_bytes} {eta}");
        let bar = if let Ok(style) = style { bar.with_style(style) } else { bar };
        Self { bar: bar.with_prefix("reading"), due: Instant::now() + PATIENCE }
    }

    /// So many bytes more were read.
    pub(crate) fn advance(&self, bytes: u64) {
        if self.bar.is_hidden() && Instant::now() >= self.due {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(bytes);
    }
}

impl Drop for LookProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
