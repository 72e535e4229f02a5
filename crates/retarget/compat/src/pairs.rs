//! The pairs that HotSwap applies, in order of preference.
//!
//! A *validated* pair has an oracle, and a test measures it again on the whole test corpus: the converted code of the
//! source equals the compiler's own object for the target, or its code, or its instructions and distances are compared
//! with it. All other pairs that the matrix allows are *experimental*: the checks prove them safe by LLVM's model of
//! the hardware, and nothing has confirmed it.
//!
//! Invariants, with tests: every pair that the matrix allows is here once, and no other; every validated pair is
//! measured. For a request without a plan, the earlier row is taken.
//!
//! Absent on purpose: how code is changed (`hotswap-adapt`), which route serves a request ([`crate::route`]).

use PairStatus::{Experimental, Validated};
use hotswap_targets::IsaFamily::{Gfx117, Rdna1, Rdna35};
use hotswap_targets::Selection::{Family, Group, Named};
use hotswap_targets::{Processor, processors};
use std::fmt;

/// The conversion that makes the target's code object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// The source's code object with the label of the target.
    Relabel,
    /// Compiled again where the link has the bitcode and the toolchain supports the target, else the source's code
    /// object with its code rewritten.
    Rewrite,
}

/// The level of confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairStatus {
    /// A compiler's output has confirmed it.
    Validated,
    /// Applied only where explicitly allowed.
    Experimental,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValidatedPair {
    /// Processor that code was compiled for.
    pub source: &'static str,
    /// Processor that it can be converted for.
    pub target: &'static str,
    pub strategy: Strategy,
    /// The level of confirmation.
    pub status: PairStatus,
    /// The evidence for the status.
    pub evidence: &'static str,
    /// First version of HotSwap with it.
    pub since: &'static str,
}

struct PairRow {
    sources: &'static [&'static str],
    targets: &'static [&'static str],
    strategy: Strategy,
    status: PairStatus,
    evidence: &'static str,
    since: &'static str,
}

const BYTES: &str = "byte oracle: the relabelled object is clang's own object for the target, for clang 22, 23 and 24";
const CODE: &str = "code oracle: clang's instructions for both are equal on the test corpus, for clang 22, 23 and 24";
const SETTINGS: &str = "settings oracle: with the source's settings of what they differ in, clang's code for the target is the source's on the test \
     corpus, for clang 22, 23 and 24; the pair's checks ask whether these settings matter";
const STEPPING: &str = "code oracle: LLVM 24 reads every instruction of the result, and its own code for the target has no longer distances; \
     not run on hardware of that stepping";
const MODEL: &str = "no oracle: safe by LLVM's model of the hardware";

const fn validated(
    sources: &'static [&'static str],
    targets: &'static [&'static str],
    evidence: &'static str,
) -> PairRow {
    PairRow { sources, targets, strategy: Strategy::Relabel, status: Validated, evidence, since: "0.1.0" }
}

const fn rewritten(
    sources: &'static [&'static str],
    targets: &'static [&'static str],
    evidence: &'static str,
) -> PairRow {
    PairRow { sources, targets, strategy: Strategy::Rewrite, status: Validated, evidence, since: "0.1.0" }
}

const fn experimental(sources: &'static [&'static str], targets: &'static [&'static str]) -> PairRow {
    PairRow { sources, targets, strategy: Strategy::Relabel, status: Experimental, evidence: MODEL, since: "0.1.0" }
}

const GFX900: &[&str] = processors![Group("gfx900")];
const RDNA1: &[&str] = processors![Family(Rdna1)];
const GFX1010: &[&str] = processors![Group("gfx1010")];
const GFX1011: &[&str] = processors![Group("gfx1011")];
const RDNA2: &[&str] = processors![Group("gfx1030")];
/// In the order of preference as a source: the most workarounds and the fewest registers first.
const RDNA3: &[&str] = &["gfx1102", "gfx1103", "gfx1101", "gfx1100"];
const RDNA35: &[&str] = processors![Family(Rdna35)];
const GFX1150: &[&str] = processors![Group("gfx1150")];
const GFX117: &[&str] = processors![Family(Gfx117)];
const RDNA4: &[&str] = processors![Group("gfx1200")];

/// A processor is not paired with itself: a row with the same list twice means all others.
#[rustfmt::skip]
const ROWS: &[PairRow] = &[
    validated(GFX900, GFX900, BYTES),
    validated(GFX1010, GFX1010, BYTES),
    validated(GFX1011, GFX1011, BYTES),
    validated(RDNA2, RDNA2, BYTES),
    validated(GFX1150, GFX1150, BYTES),
    validated(RDNA4, RDNA4, BYTES),
    validated(GFX900, &["gfx9-generic"], CODE),
    validated(&["gfx942"], &["gfx9-4-generic"], CODE),
    validated(GFX1010, &["gfx10-1-generic"], CODE),
    validated(RDNA2, &["gfx10-3-generic"], CODE),
    validated(&["gfx1102"], &["gfx11-generic"], CODE),
    validated(RDNA4, &["gfx12-generic"], CODE),
    rewritten(&["gfx1250"], &["gfx1250-strict"], STEPPING),
    validated(&["gfx1102"], &["gfx1103", "gfx1101", "gfx1100"], SETTINGS),
    validated(&["gfx1103"], &["gfx1101"], SETTINGS),
    validated(&["gfx1101"], &["gfx1103"], SETTINGS),
    validated(&["gfx1100"], &["gfx1101", "gfx1102", "gfx1103", "gfx11-generic"], SETTINGS),
    // Kernels that read work-group IDs, which is most of them, get new code: other sources are preferred.
    validated(&["gfx1103", "gfx1101"], &["gfx1102", "gfx1100", "gfx11-generic"], SETTINGS),
    validated(GFX1150, &["gfx1151"], SETTINGS),
    validated(&["gfx1151"], GFX1150, SETTINGS),
    validated(&["gfx942"], &["gfx950"], SETTINGS),
    experimental(GFX1010, GFX1011),
    experimental(GFX1011, GFX1010),
    experimental(GFX1011, &["gfx10-1-generic"]),
    experimental(GFX1150, &["gfx1154"]),
    experimental(&["gfx1154"], &["gfx1150", "gfx1151", "gfx1152", "gfx1153"]),
    experimental(&["gfx1151"], &["gfx1154"]),
    experimental(RDNA3, RDNA35),
    experimental(RDNA35, RDNA3),
    experimental(RDNA35, &["gfx11-generic"]),
    experimental(GFX117, GFX117),
    experimental(GFX117, &["gfx11-7-generic"]),
    experimental(GFX900, &["gfx904", "gfx906", "gfx908"]),
    experimental(&["gfx904"], GFX900),
    experimental(&["gfx904"], &["gfx906", "gfx908", "gfx9-generic"]),
    experimental(&["gfx906"], &["gfx908", "gfx904"]),
    experimental(&["gfx906"], processors![Group("gfx900"), Named("gfx9-generic")]),
    experimental(&["gfx908"], &["gfx906", "gfx904"]),
    experimental(&["gfx908"], processors![Group("gfx900"), Named("gfx9-generic")]),
    experimental(&["gfx950"], &["gfx9-4-generic", "gfx942"]),
    experimental(RDNA1, RDNA2),
    experimental(RDNA1, &["gfx10-3-generic"]),
    experimental(&["gfx1250"], &["gfx1251", "gfx12-5-generic"]),
];

impl PairRow {
    fn row_pairs(&'static self) -> impl Iterator<Item = ValidatedPair> {
        let sources = self.sources.iter();
        let pairs = sources.flat_map(move |source| self.targets.iter().map(move |target| (*source, *target)));
        pairs.filter(|(source, target)| source != target).map(move |(source, target)| ValidatedPair {
            source,
            target,
            strategy: self.strategy,
            status: self.status,
            evidence: self.evidence,
            since: self.since,
        })
    }
}

/// All pairs, the preferred first.
pub fn all_pairs() -> impl Iterator<Item = ValidatedPair> {
    ROWS.iter().flat_map(PairRow::row_pairs)
}

/// The pair of these two processors; `None` where the matrix does not allow it.
pub fn find_pair(source: &Processor, target: &Processor) -> Option<ValidatedPair> {
    all_pairs().find(|pair| pair.source == source.name && pair.target == target.name)
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relabel => f.pad("relabel"),
            Self::Rewrite => f.pad("rewrite"),
        }
    }
}

impl fmt::Display for PairStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Validated => "validated",
            Self::Experimental => "experimental",
        })
    }
}
