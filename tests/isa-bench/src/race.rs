//! Runs contestants in turn, round after round, and takes the median.
//!
//! Time is processor time, not wall time, so that other load on the machine has less effect; its effect on caches
//! remains. Contestants of one round run within seconds of each other, so ratios are steadier than rates.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// One implementation of the work; returns the time that it took.
pub(crate) type Run<'a> = Box<dyn FnMut() -> std::io::Result<Duration> + 'a>;

/// One line of the result.
pub(crate) struct Contestant<'a> {
    /// Its description.
    pub(crate) name: &'static str,
    /// Bytes of code that one run passes over.
    pub(crate) bytes: usize,
    /// Instructions in them; 0 where they are not counted.
    pub(crate) instructions: usize,
    /// The work.
    pub(crate) run: Run<'a>,
}

/// The result of a contestant.
#[derive(Debug, Clone)]
pub(crate) struct Rate {
    /// Its description.
    pub(crate) name: &'static str,
    /// Median of megabytes of code a second.
    pub(crate) megabytes: f64,
    /// Median of million instructions a second.
    pub(crate) millions: f64,
}

/// Processor time of this thread.
fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Processor time that `work` takes.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = now();
    std::hint::black_box(work());
    now().saturating_sub(start)
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(f64::INFINITY, Duration::as_secs_f64)
}

/// Runs all of them in turn, `rounds` times after a warm-up round that is not counted.
///
/// # Errors
/// Those of a contestant.
pub(crate) fn run(contestants: &mut [Contestant<'_>], rounds: usize) -> std::io::Result<Vec<Rate>> {
    let mut times = vec![Vec::new(); contestants.len()];
    for round in 0..=rounds {
        for (contestant, times) in contestants.iter_mut().zip(&mut times) {
            let time = (contestant.run)()?;
            if round > 0 {
                times.push(time);
            }
        }
    }
    let rates = contestants.iter().zip(times).map(|(contestant, times)| {
        let million_seconds = median(times) * 1e6;
        let (megabytes, millions) =
            (contestant.bytes as f64 / million_seconds, contestant.instructions as f64 / million_seconds);
        Rate { name: contestant.name, megabytes, millions }
    });
    Ok(rates.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contestants_take_turns_and_the_median_counts() {
        let (first, second) = (std::cell::RefCell::new(Vec::new()), [9, 1, 30, 2]);
        let mut times = second.iter();
        let mut contestants = [
            Contestant {
                name: "a",
                bytes: 10,
                instructions: 5,
                run: Box::new(|| {
                    first.borrow_mut().push('a');
                    Ok(Duration::from_micros(*times.next().unwrap()))
                }),
            },
            Contestant {
                name: "b",
                bytes: 10,
                instructions: 0,
                run: Box::new(|| {
                    first.borrow_mut().push('b');
                    Ok(Duration::from_micros(10))
                }),
            },
        ];
        let rates = run(&mut contestants, 3).unwrap();
        drop(contestants);
        assert_eq!(first.into_inner(), ['a', 'b', 'a', 'b', 'a', 'b', 'a', 'b']);
        // The first round is not counted: the median of 1, 30 and 2.
        assert_eq!((rates[0].megabytes, rates[0].millions), (5.0, 2.5));
        assert_eq!((rates[1].megabytes, rates[1].millions), (1.0, 0.0));
    }
}
