//! Counts combinations and keeps those that did not end as expected.

use crate::{Ran, say};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The expected end of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// Exit code 0.
    Links,
    /// Another exit code, and a message that names the family's registrar.
    ErrorNaming(String),
}

/// Result of one matrix.
#[derive(Debug, Default)]
pub struct Tally {
    count: usize,
    wrong: Vec<String>,
}

impl Tally {
    /// Counts one combination; `fault` is the deviation from the expectation.
    pub fn add(&mut self, combination: &str, fault: Option<String>) {
        self.count += 1;
        self.wrong.extend(fault.map(|fault| format!("{combination}: {fault}")));
    }

    /// Prints the count.
    ///
    /// # Panics
    /// If a combination deviated from the expectation, or if there was none.
    pub fn finish(self, matrix: &str) {
        let good = self.count - self.wrong.len();
        say(&format!("{matrix}: {} combinations: {good} as expected", self.count));
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
        assert_ne!(self.count, 0, "{matrix} is empty");
    }
}

impl Expect {
    /// The deviation from the expectation.
    pub fn fault(&self, ran: &Ran) -> Option<String> {
        match self {
            Self::Links if ran.ok => None,
            Self::Links => Some(format!("does not link: {}", ran.text)),
            Self::ErrorNaming(_) if ran.ok => Some("links without an error".to_owned()),
            Self::ErrorNaming(family) if ran.text.contains(&format!("hotswap_register_{family}_patch")) => None,
            Self::ErrorNaming(family) => Some(format!("the message does not name `{family}`: {}", ran.text)),
        }
    }
}

/// Judges every combination, on all processors; `judge` returns the deviation from the expectation.
pub fn sweep<C: Sync + std::fmt::Debug>(
    combinations: &[C],
    judge: impl Fn(usize, &C) -> Option<String> + Sync,
) -> Tally {
    let next = AtomicUsize::new(0);
    let tally = Mutex::new(Tally::default());
    let work = || {
        while let Some((index, combination)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            combinations.get(index).map(|combination| (index, combination))
        } {
            let fault = judge(index, combination);
            tally.lock().expect("no judge panics with it").add(&format!("{combination:?}"), fault);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    tally.into_inner().expect("all workers have ended")
}
