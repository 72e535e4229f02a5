//! By what route a requested target is served.
//!
//! Order: a native code object for it (whatever features it states: the build decided about them) →
//! a generic target that covers it → an identical sibling by the first pair of the plan whose source
//! is there → refusal with everything that was considered.

use crate::{Verdict, verdict};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::{Processor, TargetId, find};
use std::fmt;

/// How a requested target is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// A code object for it is there; nothing is derived.
    Native,
    /// A code object for a generic target that covers it is there; nothing is derived.
    Generic {
        /// The generic target.
        generic: &'static Processor,
    },
    /// Every code object of `source` is relabelled, its features kept.
    Alias {
        /// The sibling.
        source: &'static Processor,
    },
}

/// Why a requested target cannot be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The requested processor.
    pub request: String,
    /// What was there.
    pub present: Vec<TargetId>,
    /// What was considered, and why it was rejected; never empty.
    pub rejected: Vec<Rejection>,
}

/// One thing that was considered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejection {
    /// No processor has the requested name.
    UnknownRequest,
    /// A pair of the plan names a source that no processor has.
    UnknownSource(String),
    /// A pair of the plan that is not allowed, and the reason.
    Pair(String),
    /// A pair of the plan that is allowed, but its source is not there.
    Absent(String),
    /// A code object that is there and could serve, but the plan has no pair for it.
    NoPair(String),
    /// The plan has no pair for the request.
    NothingPlanned,
}

/// The route for the processor `request`, given the code objects that are there and the plan's pairs
/// `(source, target)` in their order.
///
/// # Errors
/// [`Refusal`], which becomes a [`Diagnostic`].
pub fn route<'p>(
    request: &str,
    present: &[TargetId],
    pairs: impl IntoIterator<Item = (&'p str, &'p str)>,
) -> Result<Selection, Refusal> {
    let refuse = |rejected| Refusal { request: request.to_owned(), present: present.to_vec(), rejected };
    let Some(target) = find(request) else { return Err(refuse(vec![Rejection::UnknownRequest])) };
    if present.iter().any(|id| id.processor == target) {
        return Ok(Selection::Native);
    }
    if let Some(id) = present.iter().find(|id| id.processor.covers(target)) {
        return Ok(Selection::Generic { generic: id.processor });
    }
    let mut rejected = Vec::new();
    let sources: Vec<&str> = pairs.into_iter().filter(|pair| pair.1 == request).map(|pair| pair.0).collect();
    for name in &sources {
        match alias(name, target, present) {
            Ok(source) => return Ok(Selection::Alias { source }),
            Err(rejection) => rejected.push(rejection),
        }
    }
    if sources.is_empty() {
        rejected.push(Rejection::NothingPlanned);
    }
    rejected.extend(not_planned(target, present, &sources));
    Err(refuse(rejected))
}

fn alias(name: &str, target: &Processor, present: &[TargetId]) -> Result<&'static Processor, Rejection> {
    let source = find(name).ok_or_else(|| Rejection::UnknownSource(name.to_owned()))?;
    if let Verdict::Refused { why } = verdict(source, target) {
        return Err(Rejection::Pair(why));
    }
    let there = present.iter().any(|id| id.processor == source);
    if there { Ok(source) } else { Err(Rejection::Absent(name.to_owned())) }
}

/// Siblings that are there and that the plan does not name.
fn not_planned(target: &Processor, present: &[TargetId], sources: &[&str]) -> Vec<Rejection> {
    let mut names: Vec<&str> = Vec::new();
    for id in present {
        let processor = id.processor;
        let named = sources.contains(&processor.name) || names.contains(&processor.name);
        if !named && verdict(processor, target).is_identical() {
            names.push(processor.name);
        }
    }
    names.into_iter().map(|name| Rejection::NoPair(name.to_owned())).collect()
}

/// The target ID of what is derived from `source` for the processor `request`: the same features.
///
/// # Errors
/// [`codes::UNKNOWN_TARGET`]; [`codes::PAIR_REFUSED`] when the processor does not have a feature that
/// the source states.
pub fn derive_target_id(source: &TargetId, request: &str) -> Result<TargetId, Diagnostic> {
    let target: TargetId = request.parse()?;
    source.with_processor(target.processor).ok_or_else(|| {
        let what = format!("{source} states a feature that {} does not have", target.processor);
        Diagnostic::error(codes::PAIR_REFUSED, what)
    })
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Native => f.write_str("compiled for it; nothing is derived"),
            Self::Generic { generic } => write!(f, "covered by {generic}; nothing is derived"),
            Self::Alias { source } => write!(f, "relabelled from {source}"),
        }
    }
}

impl Rejection {
    fn text(&self, request: &str) -> String {
        match self {
            Self::UnknownRequest => format!("`{request}` is no known processor"),
            Self::UnknownSource(name) => format!("{name}=>{request}: `{name}` is no known processor"),
            Self::Pair(why) => why.clone(),
            Self::Absent(name) => format!("{name}=>{request}: there is no code object for {name}"),
            Self::NoPair(name) => format!("{name} is there, but the plan has no {name}=>{request}"),
            Self::NothingPlanned => format!("the plan has no pair for {request}"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let present: Vec<String> = self.present.iter().map(TargetId::to_string).collect();
        let present = if present.is_empty() { "nothing".to_owned() } else { present.join(", ") };
        write!(f, "{} cannot be made from {present}", self.request)?;
        for (index, rejection) in self.rejected.iter().enumerate() {
            write!(f, "{}{}", if index == 0 { ": " } else { "; " }, rejection.text(&self.request))?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}

impl From<Refusal> for Diagnostic {
    fn from(refusal: Refusal) -> Self {
        let any = |test: fn(&Rejection) -> bool| refusal.rejected.iter().any(test);
        let code = if any(|r| matches!(r, Rejection::UnknownRequest | Rejection::UnknownSource(_))) {
            codes::UNKNOWN_TARGET
        } else if any(|r| matches!(r, Rejection::Pair(_))) && !any(|r| matches!(r, Rejection::Absent(_))) {
            codes::PAIR_REFUSED
        } else {
            codes::NO_ROUTE
        };
        let diagnostic = Self::error(code, refusal.to_string());
        let absent = refusal.rejected.iter().find_map(|rejection| match rejection {
            Rejection::Absent(name) => Some(name),
            _ => None,
        });
        match absent {
            Some(name) if code == codes::NO_ROUTE => diagnostic
                .advise(format!("add --offload-arch={name}, change the plan, or set the policy to warn or keep")),
            _ => diagnostic,
        }
    }
}
