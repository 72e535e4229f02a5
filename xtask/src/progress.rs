//! The progress of a long step: a moving line on a terminal, plain lines in a pipe.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A running step; it ends when dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    plain: bool,
    start: Instant,
    done: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

impl Progress {
    /// Begins; on a terminal the line also shows the size of the directory `downloads`.
    pub(crate) fn start(downloads: PathBuf) -> Self {
        let plain = !std::io::stderr().is_terminal();
        let target = if plain { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let style = ProgressStyle::with_template("{spinner} {elapsed:>4} {wide_msg} {prefix}");
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        let done = Arc::new(AtomicBool::new(false));
        let watcher = (!plain).then(|| watch(bar.clone(), downloads, Arc::clone(&done)));
        Self { bar, plain, start: Instant::now(), done, watcher }
    }

    /// Names the step that begins now.
    pub(crate) fn step(&self, name: &str) {
        self.bar.set_message(name.to_owned());
        if self.plain {
            println!("  {:5.1} s  {name}", self.start.elapsed().as_secs_f64());
        }
    }
}

fn watch(bar: ProgressBar, directory: PathBuf, done: Arc<AtomicBool>) -> JoinHandle<()> {
    thread::spawn(move || {
        while !done.load(Ordering::Relaxed) {
            bar.set_prefix(format!("{} MB", size(&directory) / 1_000_000));
            bar.tick();
            thread::sleep(Duration::from_millis(200));
        }
    })
}

/// Bytes in the directory and in its `partial` directory.
fn size(directory: &Path) -> u64 {
    let entries =
        [directory.to_owned(), directory.join("partial")].into_iter().filter_map(|dir| fs::read_dir(dir).ok());
    entries.flatten().flatten().filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).sum()
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            // A watcher that panicked has nothing more to show.
            let _ = watcher.join();
        }
        self.bar.finish_and_clear();
    }
}
