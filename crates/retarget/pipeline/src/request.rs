//! The request for a bundle, and the result for one of its targets. A plan becomes a request.

use hotswap_adapt::ObjectRecord;
use hotswap_bundle::Compression;
use hotswap_compat::names::Disagreement;
use hotswap_compat::{AllowedSiblings, RoutePermissions};
use hotswap_plan::{Plan, Policy, RetargetPair, TextFinding, TextFindings};
use hotswap_report::{Diagnostic, Route};
use hotswap_targets::{Processor, TargetId, require_processor};
use std::fmt;

/// The request for every bundle.
#[derive(Debug, Clone, Default)]
pub struct RetargetRequest {
    /// Processors, native or generic.
    pub targets: Vec<&'static Processor>,
    /// The code objects that targets may be made from.
    pub sources: SourcePolicy,
    /// Targets whose entries are removed; without features, those with any.
    pub drop: Vec<TargetId>,
    /// Removes entries of processors that a generic target of the bundle serves as well, unless they are requested.
    pub drop_covered: bool,
    /// Which pairs may be applied.
    pub allow: RoutePermissions,
    /// Makes code although the host part chooses kernels by another name of the GPU.
    pub unchecked_names: bool,
    /// Makes code objects without the kernels that cannot be made, where other kernels can.
    pub leave_out_kernels: bool,
    /// Compresses bundles that are not.
    pub compression: Option<Compression>,
    /// The level at which compressed bundles are compressed again, which a bundle does not record;
    /// `None` is clang's default.
    pub level: Option<i32>,
    /// The caller's policy about refusals, for the record.
    pub policy: Policy,
}

/// The code objects that targets may be made from.
#[derive(Debug, Clone, Default)]
pub enum SourcePolicy {
    /// For a finished file: the first pair of the product's table whose source is present and passes its checks. The
    /// output of an earlier run is a source only where no other will do.
    #[default]
    Best,
    /// As `Best`, from these pairs only, the preferred first: the host part is shown the source's name, so no other
    /// processor's code may take its place.
    Only(Vec<RetargetPair>),
    /// In a link: those of the plan's pairs, as far as the source's text allows it.
    Plan {
        /// The plan, for its pairs and for the record.
        plan: Plan,
        /// The code object that a target is derived from where that is not the plan's source, and the targets that were
        /// compiled because their text differs.
        findings: TextFindings,
    },
}

impl RetargetRequest {
    /// The request of a plan in a link.
    ///
    /// # Errors
    /// As [`plan_targets`].
    pub(crate) fn of_plan(plan: &Plan, findings: &TextFindings, level: Option<i32>) -> Result<Self, Diagnostic> {
        Ok(Self {
            targets: plan_targets(plan)?,
            sources: SourcePolicy::Plan { plan: plan.clone(), findings: findings.clone() },
            allow: RoutePermissions { experimental: plan.experimental },
            // The host part is not linked yet; the source's text was examined instead.
            unchecked_names: true,
            level,
            policy: plan.policy,
            ..Self::default()
        })
    }

    /// The route that the request wants for a target by these pairs ([`Self::pairs_for`]).
    pub(crate) fn wished_route<'p>(&self, pairs: Option<&'p [(&'p str, &'p str)]>) -> AllowedSiblings<'p> {
        match (pairs, &self.sources) {
            (None, _) => AllowedSiblings::Best,
            (Some(pairs), SourcePolicy::Plan { .. }) => AllowedSiblings::Plan(pairs),
            (Some(pairs), _) => AllowedSiblings::Only(pairs),
        }
    }

    /// The pairs that may serve a target; `None` where the best source may. With a plan it is the one that the source's
    /// text requires, none where the text requires compilation, else the plan's. A finding about one source does not
    /// apply to another, so an alternative does not exist then.
    pub(crate) fn pairs_for(&self, target: &'static Processor) -> Option<Vec<(&str, &str)>> {
        let (plan, findings) = match &self.sources {
            SourcePolicy::Best => return None,
            SourcePolicy::Only(pairs) => return Some(pairs.iter().map(pair_processor_names).collect()),
            SourcePolicy::Plan { plan, findings } => (plan, findings),
        };
        Some(match findings.find(target.name) {
            Some(finding) if finding.status.is_compiled() => Vec::new(),
            Some(TextFinding { source: Some(source), .. }) => vec![(source, target.name)],
            _ => plan.pairs.iter().map(pair_processor_names).collect(),
        })
    }

    /// Whether the source was compiled for that processor because its code object could not, or must not, be derived.
    pub(crate) fn is_compiled(&self, processor: &str) -> bool {
        let SourcePolicy::Plan { findings, .. } = &self.sources else { return false };
        findings.find(processor).is_some_and(|finding| finding.status.is_compiled())
    }
}

/// The targets of a plan's pairs, each once.
///
/// # Errors
/// [`hotswap_report::codes::UNKNOWN_TARGET`] for a name that no processor has.
pub fn plan_targets(plan: &Plan) -> Result<Vec<&'static Processor>, Diagnostic> {
    plan.targets().into_iter().map(|name| Ok(require_processor(name)?)).collect()
}

fn pair_processor_names(pair: &'_ RetargetPair) -> (&str, &str) {
    (pair.source.as_str(), pair.target.as_str())
}

/// A requested target, or an entry that was removed, with its result in one bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetOutcome {
    pub subject: OutcomeSubject,
    pub result: TargetResult,
}

/// The target or entry that an outcome is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutcomeSubject {
    Target(&'static Processor),
    /// ID of an entry that was removed.
    Entry(String),
}

impl OutcomeSubject {
    /// The requested target; `None` for an entry that was removed.
    #[must_use]
    pub fn target(&self) -> Option<&'static Processor> {
        match self {
            Self::Target(target) => Some(target),
            Self::Entry(_) => None,
        }
    }
}

impl fmt::Display for OutcomeSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Target(target) => target.name,
            Self::Entry(id) => id,
        })
    }
}

impl TargetOutcome {
    /// The result of a requested target.
    #[must_use]
    pub fn for_target(target: &'static Processor, result: TargetResult) -> Self {
        Self { subject: OutcomeSubject::Target(target), result }
    }

    /// Whether it is the result of that requested target.
    #[must_use]
    pub fn is_for(&self, target: &Processor) -> bool {
        self.subject.target() == Some(target)
    }
}

/// The result for one target in one bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetResult {
    /// It was compiled, or made by an earlier run.
    There,
    /// This generic target covers it.
    Covered(&'static Processor),
    /// Made from the code objects of this processor; the bundle's new entries.
    Made {
        source: &'static Processor,
        route: Route,
        entries: Vec<String>,
        /// The changes to the code of each entry, where it was changed.
        code: Vec<ObjectRecord>,
        /// Entry ID and name of each kernel that was left out.
        left_out: Vec<(String, String)>,
    },
    /// Its entry was removed.
    Dropped,
    /// Its entry was removed, because this generic target covers it.
    Superseded(&'static Processor),
    Refused {
        /// The defects of the sources.
        reasons: Vec<Diagnostic>,
        /// Disagreements of the host part with a source about a GPU's name.
        names: Vec<Disagreement>,
    },
}

impl TargetResult {
    /// The defects of the sources; empty unless the target is refused.
    #[must_use]
    pub fn reasons(&self) -> &[Diagnostic] {
        if let Self::Refused { reasons, .. } = self { reasons } else { &[] }
    }

    /// Disagreements of the host part with the sources; empty unless the target is refused.
    #[must_use]
    pub fn disagreements(&self) -> &[Disagreement] {
        if let Self::Refused { names, .. } = self { names } else { &[] }
    }

    /// The refusals in one list: the defects of the sources, then the disagreements of the host part.
    #[must_use]
    pub fn refusals(&self) -> Vec<Diagnostic> {
        self.reasons().iter().cloned().chain(self.disagreements().iter().map(Diagnostic::from)).collect()
    }

    /// The result in a word, as in the reports for programs.
    #[must_use]
    pub fn how(&self) -> &'static str {
        match self {
            Self::There => "native",
            Self::Covered(_) => "generic",
            Self::Made { .. } => "made",
            Self::Dropped | Self::Superseded(_) => "dropped",
            Self::Refused { .. } => "refused",
        }
    }

    /// The processor whose code serves the target in place of code of its own, or that it was made from.
    #[must_use]
    pub fn serving(&self) -> Option<&'static Processor> {
        match *self {
            Self::Covered(processor) | Self::Superseded(processor) | Self::Made { source: processor, .. } => {
                Some(processor)
            }
            Self::There | Self::Dropped | Self::Refused { .. } => None,
        }
    }

    /// Names of the kernels that were left out.
    #[must_use]
    pub fn left_out_kernels(&self) -> Vec<&str> {
        let Self::Made { left_out, .. } = self else { return Vec::new() };
        left_out.iter().map(|(_, kernel)| kernel.as_str()).collect()
    }

    /// IDs of the entries that were made for the target.
    pub(crate) fn into_entries(self) -> Vec<String> {
        if let Self::Made { entries, .. } = self { entries } else { Vec::new() }
    }
}
