//! A paired timer: the contestants of one question take turns, and medians are compared.
//!
//! Each round runs every contestant once, in an order that moves on by one each round, so that a
//! machine which gets slower or faster meanwhile favours nobody. What is compared is the median of
//! the rounds' differences and of their ratios, not the difference of medians.

use crate::outcome::{Outcome, fail};
use crate::run;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A command that takes part. It runs with this environment only.
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    pub(crate) words: Vec<String>,
    /// Runs before each timed run, without being timed.
    pub(crate) before: Option<Vec<String>>,
}

/// What the second contestant may cost over the first.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    Milliseconds(f64),
    Ratio(f64),
}

/// One question and those who answer it. The first contestant is what the others are compared with.
pub(crate) struct Contest {
    pub(crate) question: &'static str,
    pub(crate) limit: Limit,
    pub(crate) rounds: usize,
    pub(crate) contestants: Vec<Contestant>,
}

/// Result of one contestant, in milliseconds.
struct Score {
    median: f64,
    best: f64,
    /// Median of the rounds' differences to the first contestant.
    more: f64,
    /// Median of the rounds' ratios to the first contestant.
    ratio: f64,
}

impl Contest {
    /// Runs all rounds and prints a line for each contestant: its median and its best time, and
    /// the medians of difference and ratio to the first one. Returns whether the limit holds.
    pub(crate) fn run(&self, env: &[(&str, String)]) -> Outcome<bool> {
        println!("\n{} ({} rounds)", self.question, self.rounds);
        let mut times = vec![Vec::with_capacity(self.rounds); self.contestants.len()];
        // One round more than counted: the first one warms the caches.
        for round in 0..=self.rounds {
            for turn in 0..self.contestants.len() {
                let index = (round + turn) % self.contestants.len();
                let time = time(&self.contestants[index], env)?;
                if round > 0 {
                    times[index].push(time.as_secs_f64() * 1000.0);
                }
            }
        }
        let scores: Vec<Score> = times.iter().map(|times_of| score(times_of, &times[0])).collect();
        for (contestant, score) in self.contestants.iter().zip(&scores) {
            let Score { median, best, more, ratio } = score;
            println!("  {:<28} {median:>9.2} ms (best {best:.2})  {more:>+8.2} ms  × {ratio:.3}", contestant.name);
        }
        let second = &scores[1];
        let (holds, text) = match self.limit {
            Limit::Milliseconds(limit) => (second.more <= limit, format!("at most {limit} ms more")),
            Limit::Ratio(limit) => (second.ratio <= limit, format!("at most × {limit}")),
        };
        println!("  {}: {text}", if holds { "holds" } else { "DOES NOT HOLD" });
        Ok(holds)
    }
}

fn time(contestant: &Contestant, env: &[(&str, String)]) -> Outcome<Duration> {
    if let Some(before) = &contestant.before {
        run::output(&mut command(before, env))?;
    }
    let mut command = command(&contestant.words, env);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status()?;
    let time = start.elapsed();
    if status.success() { Ok(time) } else { fail(format!("`{}`: {status}", shell_words::join(&contestant.words))) }
}

fn command(words: &[String], env: &[(&str, String)]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env_clear();
    command.envs(env.iter().map(|(name, value)| (name, value)));
    command
}

fn score(times: &[f64], base: &[f64]) -> Score {
    let pairs = || times.iter().zip(base);
    Score {
        median: median(times.to_vec()),
        best: times.iter().copied().fold(f64::INFINITY, f64::min),
        more: median(pairs().map(|(time, base)| time - base).collect()),
        ratio: median(pairs().map(|(time, base)| time / base).collect()),
    }
}

/// The middle value; with an even number the mean of the two in the middle; of nothing, 0.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_of_pairs() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(vec![4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
        // The machine slowed down tenfold in the last round; the second one always costs 1 more.
        let score = score(&[11.0, 12.0, 101.0], &[10.0, 11.0, 100.0]);
        assert!((score.more - 1.0).abs() < 1e-9);
        assert!(score.ratio < 1.1);
    }

    #[test]
    fn a_contestant_that_fails_ends_the_contest() {
        let contestant = |words: &[&str]| Contestant {
            name: "x",
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            before: None,
        };
        let contest = |second: &[&str]| Contest {
            question: "q",
            limit: Limit::Ratio(1000.0),
            rounds: 2,
            contestants: vec![contestant(&["/bin/true"]), contestant(second)],
        };
        assert!(contest(&["/bin/true"]).run(&[]).unwrap());
        assert!(contest(&["/bin/false"]).run(&[]).is_err());
    }
}
