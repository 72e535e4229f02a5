//! A paired timer: the contestants of one question take turns, and medians are compared.
//!
//! Each round runs every contestant once, in an order that rotates by one each round, so that a machine that gets
//! slower or faster meanwhile favours none of them. The result is the median of the rounds' differences and of their
//! ratios, not the difference of medians. Processor time is shown, too: other load on the machine affects it least.

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

/// The allowed cost of the second contestant compared with the first.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    Milliseconds(f64),
    Ratio(f64),
    /// Of what the third contestant costs more than the first.
    OfThird(f64),
    /// No promise; the figures are shown.
    None,
}

impl Limit {
    /// Whether it holds, and its text.
    pub(crate) fn judge(self, scores: &[Score]) -> (bool, String) {
        let more = |number: usize| scores.get(number).map(|score| score.more);
        match self {
            Self::Milliseconds(limit) => {
                (more(1).is_some_and(|more| more <= limit), format!("at most {limit} ms more than the first"))
            }
            Self::Ratio(limit) => {
                (scores.get(1).is_some_and(|score| score.ratio <= limit), format!("at most × {limit}"))
            }
            Self::OfThird(part) => match (more(1), more(2)) {
                (Some(second), Some(third)) => {
                    (second <= part * third, format!("at most {part} of the third's cost; here {:.2}", second / third))
                }
                _ => (false, "nothing to compare with".to_owned()),
            },
            Self::None => (true, String::new()),
        }
    }
}

/// One question and its contestants. The others are compared with the first one.
pub(crate) struct Contest {
    pub(crate) question: &'static str,
    pub(crate) limit: Limit,
    pub(crate) rounds: usize,
    pub(crate) contestants: Vec<Contestant>,
}

/// Result of one contestant, in milliseconds.
pub(crate) struct Score {
    pub(crate) median: f64,
    best: f64,
    /// Median of the rounds' differences to the first contestant.
    pub(crate) more: f64,
    /// Median of the rounds' ratios to the first contestant.
    pub(crate) ratio: f64,
    /// Median of the rounds' ratios of processor time to the first contestant; 0 where it is too short to measure.
    cpu_ratio: f64,
}

impl Contest {
    /// Runs all rounds and prints a line for each contestant. Returns whether the limit holds.
    pub(crate) fn run(&self, env: &[(&str, String)]) -> Outcome<bool> {
        Ok(self.limit.judge(&self.scores(env)?).0)
    }

    /// Runs all rounds and prints a line for each contestant: its median and its best time, and
    /// the medians of difference and ratio to the first one.
    pub(crate) fn scores(&self, env: &[(&str, String)]) -> Outcome<Vec<Score>> {
        println!("\n{} ({} rounds)", self.question, self.rounds);
        let mut times = vec![Vec::with_capacity(self.rounds); self.contestants.len()];
        let mut cpu = times.clone();
        // One round more than counted: the first one warms the caches.
        for round in 0..=self.rounds {
            for turn in 0..self.contestants.len() {
                let index = (round + turn) % self.contestants.len();
                let (time, ticks) = time(&self.contestants[index], env)?;
                if round > 0 {
                    times[index].push(time.as_secs_f64() * 1000.0);
                    cpu[index].push(ticks);
                }
            }
        }
        let scores: Vec<Score> =
            times.iter().zip(&cpu).map(|(time, cpu_time)| score((time, cpu_time), (&times[0], &cpu[0]))).collect();
        for (contestant, score) in self.contestants.iter().zip(&scores) {
            let Score { median, best, more, ratio, cpu_ratio } = score;
            let name = contestant.name;
            print!("  {name:<37} {median:>9.2} ms (best {best:.2})  {more:>+8.2} ms  × {ratio:.3}");
            println!("{}", if *cpu_ratio > 0.0 { format!("  processor time × {cpu_ratio:.3}") } else { String::new() });
        }
        let (holds, text) = self.limit.judge(&scores);
        if !text.is_empty() {
            println!("  {}: {text}", if holds { "holds" } else { "DOES NOT HOLD" });
        }
        Ok(scores)
    }
}

fn time(contestant: &Contestant, env: &[(&str, String)]) -> Outcome<(Duration, f64)> {
    if let Some(before) = &contestant.before {
        run::output(&mut command(before, env))?;
    }
    let mut command = command(&contestant.words, env);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (start, ticks) = (Instant::now(), children_ticks());
    let status = command.status()?;
    let (time, ticks) = (start.elapsed(), children_ticks() - ticks);
    if status.success() {
        Ok((time, ticks))
    } else {
        fail(format!("`{}`: {status}", shell_words::join(&contestant.words)))
    }
}

/// Processor time of all children that have ended, and of theirs, in ticks of the kernel's clock (`cutime` and `cstime` of
/// proc(5)); 0 without /proc.
fn children_ticks() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the program's name in parentheses, with whatever is in it.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    fields.split_whitespace().skip(13).take(2).filter_map(|field| field.parse::<f64>().ok()).sum()
}

fn command(words: &[String], env: &[(&str, String)]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env_clear();
    command.envs(env.iter().map(|(name, value)| (name, value)));
    command
}

/// Elapsed and processor time of all rounds, and those of the first contestant.
fn score((times, cpu): (&[f64], &[f64]), (base, cpu_base): (&[f64], &[f64])) -> Score {
    /// Ticks below which the kernel's clock is too coarse for a ratio.
    const FEWEST_TICKS: f64 = 20.0;
    let pairs = || times.iter().zip(base);
    let is_told = cpu.iter().chain(cpu_base).all(|ticks| *ticks >= FEWEST_TICKS);
    Score {
        median: median(times.to_vec()),
        best: times.iter().copied().fold(f64::INFINITY, f64::min),
        more: median(pairs().map(|(time, base)| time - base).collect()),
        ratio: median(pairs().map(|(time, base)| time / base).collect()),
        cpu_ratio: if is_told { median(cpu.iter().zip(cpu_base).map(|(cpu, base)| cpu / base).collect()) } else { 0.0 },
    }
}

/// The middle value, or with an even number the mean of the two in the middle. It is 0 for no values.
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
        let score = score((&[11.0, 12.0, 101.0], &[30.0, 30.0, 60.0]), (&[10.0, 11.0, 100.0], &[20.0, 20.0, 20.0]));
        assert!((score.more - 1.0).abs() < 1e-9);
        assert!(score.ratio < 1.1);
        assert!((score.cpu_ratio - 1.5).abs() < 1e-9);
    }

    #[test]
    fn a_part_of_the_third_is_of_what_it_costs_more() {
        let score = |more: f64| Score { median: 10.0 + more, best: 0.0, more, ratio: 1.0, cpu_ratio: 0.0 };
        let scores = [score(0.0), score(1.0), score(2.0)];
        assert!(Limit::OfThird(0.5).judge(&scores).0 && !Limit::OfThird(0.49).judge(&scores).0);
        assert!(!Limit::Milliseconds(0.9).judge(&scores).0 && !Limit::OfThird(0.5).judge(&scores[..2]).0);
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
