//! The route that serves a requested target: one function.
//!
//! Order: a native code object for it (whatever features it states, which the build decided) → a generic target that
//! covers it → a source that its pair allows → refusal with everything that was considered. In a link the plan's pairs
//! precede generic targets: the target was requested by its name, and clang would compile it beside the generic one. The
//! source is chosen as follows. With a plan it is the first of its pairs whose source is present, experimental ones
//! last. Without one it is the first pair of the product's table ([`crate::pairs`]) whose source is present: identical
//! before generic before experimental. The pair's [`Strategy`] determines the conversion: the source is relabelled; or, where its code must
//! change, the link's bitcode compiled for the target is used if the link has compiled it, else the source's code is
//! rewritten. A generic target is requested as any other.
//!
//! Invariants: a native is never replaced; an experimental pair is taken only where that is allowed.
//!
//! Absent on purpose: the checks of the pair. Where a source fails them, the caller repeats the query without it.

use crate::{Check, PairStatus, Strategy, Verdict, all_pairs, find_pair, pair_verdict};
use hotswap_report::{Diagnostic, DiagnosticCode, codes};
use hotswap_targets::{Processor, Support, TargetId, describe_unknown, find_processor};
use std::fmt;

/// The route of a requested target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// A code object for it is present; nothing is derived.
    Native,
    /// A code object for a generic target that covers it is present; nothing is derived.
    Generic { generic: &'static Processor },
    /// Every code object of `source` is relabelled, its features kept.
    Relabelled {
        /// The sibling whose code it is.
        source: &'static Processor,
    },
    /// For every code object of `source` there is one that the link has compiled for the target from the same bitcode.
    Recompiled {
        /// The processor that the bitcode was compiled for first.
        source: &'static Processor,
    },
    /// The code in every code object of `source` is rewritten.
    Rewrite {
        /// The stepping whose code it is.
        source: &'static Processor,
    },
}

impl Selection {
    /// The source of the target's code objects; `None` where nothing is derived.
    pub fn derived_from(&self) -> Option<&'static Processor> {
        match self {
            Self::Native | Self::Generic { .. } => None,
            Self::Relabelled { source } | Self::Recompiled { source } | Self::Rewrite { source } => Some(source),
        }
    }
}

/// An available code object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AvailableObject {
    /// The target that it was compiled for.
    pub target: TargetId,
    /// The other processor that the link has compiled the same bitcode for.
    pub recompiled: Option<&'static Processor>,
}

impl From<TargetId> for AvailableObject {
    fn from(target: TargetId) -> Self {
        Self { target, recompiled: None }
    }
}

/// The siblings that may be used.
#[derive(Debug, Clone, Copy)]
pub enum AllowedSiblings<'a> {
    /// Those of a link's plan: pairs `(source, target)`, in their order. They precede generic targets.
    Plan(&'a [(&'a str, &'a str)]),
    /// For a finished file: those of these pairs, where no generic target covers the request.
    Only(&'a [(&'a str, &'a str)]),
    /// The best available one.
    Best,
}

/// Advice for a pair that is only experimental.
pub const EXPERIMENTAL_ADVICE: &str = "look at `hotswap compat SOURCE TARGET`, then allow it (--allow-experimental; in a \
     build --hotswap-allow=experimental), or compile for the target with --offload-arch";

/// Permissions beyond validated pairs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoutePermissions {
    pub experimental: bool,
}

/// The reason why a requested target cannot be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteRefusal {
    pub request: String,
    /// The available code objects.
    pub present: Vec<TargetId>,
    /// The alternatives that were considered, and why each was rejected; never empty.
    pub rejected: Vec<Rejection>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejection {
    /// No processor has the requested name.
    UnknownRequest,
    /// A pair of the plan has an unknown processor as its source.
    UnknownSource(String),
    /// A pair of the plan that is not possible, and the reason.
    Pair(String),
    /// A pair that is possible, but experimental, which was not allowed.
    Experimental(String),
    /// A pair of the plan that is allowed, but its source is absent.
    Absent(String),
    /// A code object that is present and could serve, but the plan lacks a pair for it.
    NoPair(String),
    /// A code object that is present, that was not requested as a source, and that could not serve either; the reason.
    Unfit(String),
    /// The plan lacks a pair for the request.
    NothingPlanned,
    /// Without a plan: none of the processors that the request can be made from is present.
    NoSource(Vec<String>),
}

/// [`choose_route_to`] the processor of that name.
///
/// # Errors
/// [`RouteRefusal`], which becomes a [`Diagnostic`].
pub fn choose_route(
    request: &str,
    present: &[AvailableObject],
    wish: AllowedSiblings<'_>,
    allow: RoutePermissions,
) -> Result<Selection, RouteRefusal> {
    match find_processor(request) {
        Some(target) => choose_route_to(target, present, wish, allow),
        None => Err(make_route_refusal(vec![Rejection::UnknownRequest], request, present)),
    }
}

/// The route for a processor, given the available code objects.
///
/// # Errors
/// [`RouteRefusal`], which becomes a [`Diagnostic`].
pub fn choose_route_to(
    target: &'static Processor,
    present: &[AvailableObject],
    wish: AllowedSiblings<'_>,
    allow: RoutePermissions,
) -> Result<Selection, RouteRefusal> {
    if present.iter().any(|present| present.target.processor == target) {
        return Ok(Selection::Native);
    }
    let generic = present.iter().map(|present| present.target.processor).find(|processor| processor.covers(target));
    if let Some(generic) = generic.filter(|_| !matches!(wish, AllowedSiblings::Plan(_))) {
        return Ok(Selection::Generic { generic });
    }
    let sources = source_names(target, wish);
    let mut rejected = Vec::new();
    for name in &sources {
        match from_source(name, target, present, allow) {
            Ok(selection) => return Ok(selection),
            // The table's pairs were not requested explicitly: those whose source is absent need no mention.
            Err(Rejection::Absent(_)) if matches!(wish, AllowedSiblings::Best) => {}
            Err(rejection) => rejected.push(rejection),
        }
    }
    if let Some(generic) = generic {
        return Ok(Selection::Generic { generic });
    }
    match wish {
        AllowedSiblings::Plan(_) | AllowedSiblings::Only(_) if sources.is_empty() => {
            rejected.push(Rejection::NothingPlanned)
        }
        AllowedSiblings::Best if rejected.is_empty() => {
            rejected.push(Rejection::NoSource(sources.iter().map(|name| (*name).to_owned()).collect()));
        }
        _ => {}
    }
    rejected.extend(not_wished(target, present, &sources));
    Err(make_route_refusal(rejected, target.name, present))
}

fn present_target_ids(present: &[AvailableObject]) -> Vec<TargetId> {
    present.iter().map(|present| present.target).collect()
}

fn make_route_refusal(rejected: Vec<Rejection>, request: &str, present: &[AvailableObject]) -> RouteRefusal {
    RouteRefusal { request: request.to_owned(), present: present_target_ids(present), rejected }
}

/// Names of the sources to try, the preferred first.
fn source_names<'a>(target: &Processor, wish: AllowedSiblings<'a>) -> Vec<&'a str> {
    match wish {
        AllowedSiblings::Plan(pairs) | AllowedSiblings::Only(pairs) => {
            let mut names: Vec<&str> = pairs.iter().filter(|pair| pair.1 == target.name).map(|pair| pair.0).collect();
            names.sort_by_key(|name| is_experimental(name, target));
            names
        }
        AllowedSiblings::Best => {
            all_pairs().filter(|pair| pair.target == target.name).map(|pair| pair.source).collect()
        }
    }
}

fn is_experimental(source: &str, target: &Processor) -> bool {
    let known = find_processor(source).and_then(|source| find_pair(source, target));
    known.is_some_and(|pair| pair.status == PairStatus::Experimental)
}

fn from_source(
    name: &str,
    target: &Processor,
    present: &[AvailableObject],
    allow: RoutePermissions,
) -> Result<Selection, Rejection> {
    let source = find_processor(name).ok_or_else(|| Rejection::UnknownSource(name.to_owned()))?;
    if let Verdict::Refused { why } = pair_verdict(source, target) {
        return Err(Rejection::Pair(why));
    }
    let mut sources = present.iter().filter(|present| present.target.processor == source).peekable();
    if sources.peek().is_none() {
        return Err(Rejection::Absent(name.to_owned()));
    }
    let pair = find_pair(source, target);
    if !allow.experimental && pair.is_none_or(|pair| pair.status != PairStatus::Validated) {
        return Err(Rejection::Experimental(name.to_owned()));
    }
    Ok(match pair.map_or(Strategy::Relabel, |pair| pair.strategy) {
        Strategy::Relabel => Selection::Relabelled { source },
        Strategy::Rewrite if sources.all(|present| present.recompiled == Some(target)) => {
            Selection::Recompiled { source }
        }
        Strategy::Rewrite => Selection::Rewrite { source },
    })
}

/// The available code objects beyond the sources that were tried.
fn not_wished(target: &Processor, present: &[AvailableObject], sources: &[&str]) -> Vec<Rejection> {
    let mut names: Vec<&str> = Vec::new();
    let mut rejected = Vec::new();
    for processor in present.iter().map(|present| present.target.processor) {
        if sources.contains(&processor.name) || names.contains(&processor.name) {
            continue;
        }
        names.push(processor.name);
        rejected.push(match pair_verdict(processor, target) {
            Verdict::Refused { why } => Rejection::Unfit(why),
            _ => Rejection::NoPair(processor.name.to_owned()),
        });
    }
    rejected
}

/// [`derive_target_id_for`] the processor of that name.
///
/// # Errors
/// [`codes::UNKNOWN_TARGET`]; [`codes::PAIR_REFUSED`] when the processor does not have a feature
/// that the source states.
pub fn derive_target_id(source: &TargetId, request: &str) -> Result<TargetId, Diagnostic> {
    derive_target_id_for(source, request.parse::<TargetId>()?.processor)
}

/// The target ID of the code object derived from `source` for a processor: the same features. A
/// feature that the target does not have is dropped where the pair's checks examine features: code that states it
/// runs without it, too.
///
/// # Errors
/// [`codes::UNKNOWN_TARGET`] for a processor that was withdrawn; [`codes::PAIR_REFUSED`] when the processor does not
/// have a feature that the source states.
pub fn derive_target_id_for(source: &TargetId, target: &'static Processor) -> Result<TargetId, Diagnostic> {
    target.refuse_withdrawn()?;
    let checks = pair_verdict(source.processor, target).checks().unwrap_or_default();
    if checks.contains(&Check::Features) {
        return Ok(TargetId {
            processor: target,
            xnack: supported_feature_state(source.xnack, target.xnack),
            sramecc: supported_feature_state(source.sramecc, target.sramecc),
        });
    }
    source.with_processor(target).ok_or_else(|| {
        let what = format!("{source} states a feature that {target} does not have");
        Diagnostic::error(codes::PAIR_REFUSED, what)
    })
}

fn supported_feature_state(stated: Option<bool>, support: Support) -> Option<bool> {
    stated.filter(|_| support != Support::No)
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Native => f.write_str("compiled for it; nothing is derived"),
            Self::Generic { generic } => write!(f, "covered by {generic}; nothing is derived"),
            Self::Relabelled { source } => write!(f, "relabelled from {source}"),
            Self::Recompiled { source } => write!(f, "compiled again from the bitcode for {source}"),
            Self::Rewrite { source } => write!(f, "rewritten from {source}"),
        }
    }
}

impl Rejection {
    fn rejection_text(&self, request: &str) -> String {
        match self {
            Self::UnknownRequest => describe_unknown(request),
            Self::UnknownSource(name) => format!("{name}=>{request}: {}", describe_unknown(name)),
            Self::Pair(why) | Self::Unfit(why) => why.clone(),
            Self::Experimental(name) => format!("{name}=>{request} is experimental, which was not allowed"),
            Self::Absent(name) => format!("{name}=>{request}: there is no code object for {name}"),
            Self::NoPair(name) => format!("{name} is there, but the plan has no {name}=>{request}"),
            Self::NothingPlanned => format!("the plan has no pair for {request}"),
            Self::NoSource(names) if names.is_empty() => "no pair makes it".to_owned(),
            Self::NoSource(names) => format!("it is made from {}", names.join(", ")),
        }
    }
}

impl fmt::Display for RouteRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let present: Vec<String> = self.present.iter().map(TargetId::to_string).collect();
        let present = if present.is_empty() { "nothing".to_owned() } else { present.join(", ") };
        write!(f, "{} cannot be made from {present}", self.request)?;
        for (index, rejection) in self.rejected.iter().enumerate() {
            write!(f, "{}{}", if index == 0 { ": " } else { "; " }, rejection.rejection_text(&self.request))?;
        }
        Ok(())
    }
}

impl std::error::Error for RouteRefusal {}

impl From<RouteRefusal> for Diagnostic {
    fn from(refusal: RouteRefusal) -> Self {
        let forbidden =
            has_any_rejection(|r| matches!(r, Rejection::Pair(_) | Rejection::Experimental(_)), &refusal.rejected);
        let code = if has_any_rejection(
            |r| matches!(r, Rejection::UnknownRequest | Rejection::UnknownSource(_)),
            &refusal.rejected,
        ) {
            codes::UNKNOWN_TARGET
        } else if forbidden && !has_any_rejection(|r| matches!(r, Rejection::Absent(_)), &refusal.rejected) {
            codes::PAIR_REFUSED
        } else {
            codes::NO_ROUTE
        };
        let diagnostic = Self::error(code, refusal.to_string());
        match refusal_advice(&refusal, code) {
            Some(advice) => diagnostic.advise(advice),
            None => diagnostic,
        }
    }
}

fn has_any_rejection(test: fn(&Rejection) -> bool, refusal_rejected: &[Rejection]) -> bool {
    refusal_rejected.iter().any(test)
}

/// The advice, where it is more than the code's own.
fn refusal_advice(refusal: &RouteRefusal, code: &DiagnosticCode) -> Option<String> {
    let experimental = refusal.rejected.iter().any(|rejection| matches!(rejection, Rejection::Experimental(_)));
    let absent = refusal.rejected.iter().find_map(|rejection| match rejection {
        Rejection::Absent(name) => Some(name),
        _ => None,
    });
    match absent {
        _ if experimental && code == codes::PAIR_REFUSED => Some(EXPERIMENTAL_ADVICE.to_owned()),
        Some(name) if code == codes::NO_ROUTE => {
            Some(format!("add --offload-arch={name}, change the plan, or set the policy to warn or keep"))
        }
        _ => None,
    }
}
