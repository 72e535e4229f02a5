//! Processors, and their modes that decoding distinguishes.

use crate::TARGETS;

/// A processor whose instructions the tables have.
#[derive(Debug)]
pub struct Target {
    /// As in `--offload-arch`.
    pub name: &'static str,
    /// Number of its first mode in [`SUBTARGETS`](crate::SUBTARGETS); the others follow: target × 4 + wave 64 × 2 + 32-bit
    /// spelling of 16-bit registers.
    pub subtargets: u16,
}

impl Target {
    /// The processor that `--offload-arch` calls `name`.
    pub fn find(name: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// All processors, in the order of the rows.
    pub fn all_targets() -> &'static [Self] {
        &TARGETS
    }
}

/// A processor with a wave size and a spelling of 16-bit registers.
#[derive(Debug)]
pub struct Subtarget {
    /// Number of the processor.
    pub target: u16,
    pub wave64: bool,
    /// 16-bit registers have names of their own.
    pub true16: bool,
    /// Number of its set of features.
    pub features: u16,
    /// Number of its group: all that try the same decoder tables in the same order.
    pub group: u8,
    /// First node of its group's trie.
    pub root: u32,
    /// Start of its part of [`AVAILABLE`](crate::AVAILABLE).
    pub available: u32,
    /// Start of its part of [`ACCEPT`](crate::ACCEPT).
    pub accept: u32,
    /// Length of the longest instruction.
    pub max_bytes: u8,
}
