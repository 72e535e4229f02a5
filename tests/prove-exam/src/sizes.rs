//! The sizes of a run: a default that a machine of two processors ends in half an hour, and a long one.

use clap::Args;

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
    /// The step between floats.
    pub step: u64,
}

/// The sizes without options.
pub const DEFAULT: RunSizes = RunSizes { states: 10_000, corpus_states: 1_000, sources: 10, step: 3 };
/// Those of `--long`.
pub const LONG: RunSizes = RunSizes { states: 10_000, corpus_states: 10_000, sources: 50, step: 1 };

impl SizeOptions {
    /// The sizes that they ask for.
    pub fn sizes(&self) -> RunSizes {
        let base = if self.long { LONG } else { DEFAULT };
        RunSizes {
            states: self.states.unwrap_or(base.states),
            corpus_states: self.corpus_states.unwrap_or(base.corpus_states),
            sources: self.sources.unwrap_or(base.sources),
            step: self.step.unwrap_or(base.step),
        }
    }
}

/// A step in words.
pub fn floats(step: u64) -> String {
    if step == 1 { "all 2^32 floats".to_owned() } else { format!("every {step}th of 2^32 floats") }
}
