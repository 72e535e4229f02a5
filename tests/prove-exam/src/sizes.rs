//! The sizes of a run: a default that a machine of two processors ends in half an hour, and a long one.

use clap::Args;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// The options of sizes, the same for all parts.
#[derive(Debug, Clone, Default, Args)]
pub struct SizeOptions {
    /// The sizes of a long run, hours; single options below change it.
    #[arg(long)]
    pub long: bool,
    /// States of each site of objects of assembly.
    #[arg(long)]
    pub states: Option<u64>,
    /// States of each site of compiled objects.
    #[arg(long)]
    pub corpus_states: Option<u64>,
    /// Generated sources of 20 programs each.
    #[arg(long)]
    pub sources: Option<u64>,
    /// Programs of csmith.
    #[arg(long)]
    pub csmith: Option<u64>,
    /// Conversions of every STEPth float, an odd number; 1 for all.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub step: Option<u64>,
}

/// The sizes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunSizes {
    /// States of each site of objects of assembly.
    pub states: u64,
    /// States of each site of compiled objects.
    pub corpus_states: u64,
    /// Generated sources.
    pub sources: u64,
    /// Programs of csmith.
    pub csmith: u64,
    /// The step between floats.
    pub step: u64,
}

/// The sizes without options.
pub const DEFAULT: RunSizes = RunSizes { states: 10_000, corpus_states: 1_000, sources: 10, csmith: 40, step: 3 };
/// Those of `--long`.
pub const LONG: RunSizes = RunSizes { states: 10_000, corpus_states: 10_000, sources: 50, csmith: 400, step: 1 };

impl SizeOptions {
    /// The sizes that they ask for.
    pub fn sizes(&self) -> RunSizes {
        let base = if self.long { LONG } else { DEFAULT };
        RunSizes {
            states: self.states.unwrap_or(base.states),
            corpus_states: self.corpus_states.unwrap_or(base.corpus_states),
            sources: self.sources.unwrap_or(base.sources),
            csmith: self.csmith.unwrap_or(base.csmith),
            step: self.step.unwrap_or(base.step),
        }
    }
}

/// A range of the 32-bit floats by their bits, in steps from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatRange {
    /// The first bits that may occur.
    pub start: u64,
    /// The bits after the range.
    pub end: u64,
    /// The distance of two of them.
    pub step: u64,
}

impl FloatRange {
    /// Every `step`th of all.
    pub fn all(step: u64) -> Self {
        Self { start: 0, end: 1 << 32, step }
    }

    /// The part `number`, from 0, of `count` parts, which together are the range.
    pub fn part(&self, number: u64, count: u64) -> Self {
        let size = self.end - self.start;
        let [start, end] = [number, number + 1].map(|number| self.start + size * number / count);
        Self { start, end, ..*self }
    }

    /// The first float; there is none where it is not below the end.
    pub fn first(&self) -> u64 {
        self.start.next_multiple_of(self.step)
    }

    /// In words.
    pub fn text(&self) -> String {
        let Self { start, end, step } = self;
        let which = if *step == 1 { "all".to_owned() } else { format!("one in {step}") };
        let of =
            if end - start == 1 << 32 { "2^32 floats".to_owned() } else { format!("floats {start:#x} to {end:#x}") };
        if *step == 1 { format!("{which} {of}") } else { format!("{which} of {of}") }
    }
}

/// One part of several, written `3/8`: counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunPart {
    /// Which, from 1.
    pub number: u64,
    /// Of how many.
    pub count: u64,
}

impl RunPart {
    /// The only part.
    pub const WHOLE: Self = Self { number: 1, count: 1 };
}

impl FromStr for RunPart {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (number, count) = text.split_once('/')?;
            let part = Self { number: number.parse().ok()?, count: count.parse().ok()? };
            (1..=part.count).contains(&part.number).then_some(part)
        };
        parse().ok_or_else(|| format!("`{text}` is no part such as 3/8"))
    }
}

impl Display for RunPart {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, "{}/{}", self.number, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole_range() {
        for (step, count) in [(1, 7), (3, 64), (257, 5)] {
            let all = FloatRange::all(step);
            let mut next = 0;
            for number in 0..count {
                let part = all.part(number, count);
                assert_eq!(part.first(), next, "{step} {number}");
                next = part.end.next_multiple_of(step);
            }
            assert!(next >= all.end, "{step}");
        }
    }

    #[test]
    fn parts_are_counted_from_one() {
        assert_eq!("8/8".parse(), Ok(RunPart { number: 8, count: 8 }));
        for wrong in ["0/8", "9/8", "1", "1/0", "x/2"] {
            assert!(wrong.parse::<RunPart>().is_err(), "{wrong}");
        }
    }
}
