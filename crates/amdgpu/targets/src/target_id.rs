//! Target IDs: a processor and the features that the code states.
//!
//! `gfx90a:sramecc+:xnack-`: the processor, then each stated feature once, in alphabetical order.
//! Reading accepts any order (the bundle tools sort, people do not); writing is canonical.

use crate::{Processor, Support, describe_unknown, require_processor};
use hotswap_report::{Diagnostic, codes};
use std::fmt;
use std::str::FromStr;

/// A processor and the features that the code states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetId {
    pub processor: &'static Processor,
    /// Stated `xnack`; `None` runs with either setting, or the processor lacks it.
    pub xnack: Option<bool>,
    /// Stated `sramecc`; `None` runs with either setting, or the processor lacks it.
    pub sramecc: Option<bool>,
}

/// The settings of a GPU at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureSettings {
    /// Page faults may be retried.
    pub xnack: bool,
    /// The memory corrects errors.
    pub sramecc: bool,
}

impl FeatureSettings {
    /// All settings that a GPU can have.
    pub const ALL: [Self; 4] = [
        Self { xnack: false, sramecc: false },
        Self { xnack: false, sramecc: true },
        Self { xnack: true, sramecc: false },
        Self { xnack: true, sramecc: true },
    ];
}

/// The reason why a text is not a target ID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// No row of the processor table has that name.
    #[error("{}", describe_unknown(.0))]
    Unknown(String),
    /// LLVM withdrew the processor.
    #[error("`{0}` was withdrawn before its hardware shipped; runtimes refuse it")]
    Withdrawn(String),
    /// A feature is not `name+` or `name-` with a known name.
    #[error("`{feature}` in `{text}` is no target feature (xnack+, xnack-, sramecc+, sramecc-)")]
    Feature { feature: String, text: String },
    /// A feature is stated twice.
    #[error("`{text}` states {feature} twice")]
    Twice {
        /// Name of the feature.
        feature: &'static str,
        text: String,
    },
    /// The processor lacks such a feature.
    #[error("`{text}` states {feature}, which {processor} does not have")]
    Unsupported {
        /// Name of the feature.
        feature: &'static str,
        /// Name of the processor.
        processor: &'static str,
        text: String,
    },
}

impl Processor {
    /// Refuses a processor that LLVM has withdrawn: no code is made for it.
    ///
    /// # Errors
    /// [`TargetError::Withdrawn`].
    pub fn refuse_withdrawn(&self) -> Result<(), TargetError> {
        if self.withdrawn { Err(TargetError::Withdrawn(self.name.to_owned())) } else { Ok(()) }
    }
}

impl From<TargetError> for Diagnostic {
    fn from(error: TargetError) -> Self {
        Self::error(codes::UNKNOWN_TARGET, error.to_string())
    }
}

impl TargetId {
    /// The processor with no feature stated.
    pub const fn of_processor(processor: &'static Processor) -> Self {
        Self { processor, xnack: None, sramecc: None }
    }

    /// The same features stated for another processor; `None` when it does not have one of them.
    pub fn with_processor(self, processor: &'static Processor) -> Option<Self> {
        (is_feature_allowed(self.xnack, processor.xnack) && is_feature_allowed(self.sramecc, processor.sramecc))
            .then_some(Self { processor, ..self })
    }

    /// Whether code of this ID runs on a GPU with those settings: a feature that is not stated runs with either.
    pub fn runs_with(&self, settings: FeatureSettings) -> bool {
        self.xnack.is_none_or(|on| on == settings.xnack) && self.sramecc.is_none_or(|on| on == settings.sramecc)
    }

    /// The features alone as they follow the processor: `:sramecc+:xnack-`, or nothing.
    pub fn feature_suffix(&self) -> String {
        feature_suffix_part("sramecc", self.sramecc) + &feature_suffix_part("xnack", self.xnack)
    }
}

fn is_feature_allowed(stated: Option<bool>, support: Support) -> bool {
    stated.is_none() || support != Support::No
}

fn feature_suffix_part(name: &str, stated: Option<bool>) -> String {
    match stated {
        Some(on) => format!(":{name}{}", if on { '+' } else { '-' }),
        None => String::new(),
    }
}

impl fmt::Display for TargetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}{}", self.processor.name, self.feature_suffix()))
    }
}

impl FromStr for TargetId {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let processor = require_processor(name)?;
        processor.refuse_withdrawn()?;
        let mut id = Self::of_processor(processor);
        for part in parts {
            id.state_feature(part, text)?;
        }
        Ok(id)
    }
}

impl TargetId {
    fn state_feature(&mut self, part: &str, text: &str) -> Result<(), TargetError> {
        let (name, on) = match (part.strip_suffix('+'), part.strip_suffix('-')) {
            (Some(name), _) => (name, true),
            (_, Some(name)) => (name, false),
            _ => return Err(unknown_feature_error(part, text)),
        };
        let (feature, support, slot) = match name {
            "xnack" => ("xnack", self.processor.xnack, &mut self.xnack),
            "sramecc" => ("sramecc", self.processor.sramecc, &mut self.sramecc),
            _ => return Err(unknown_feature_error(part, text)),
        };
        if support == Support::No {
            let (processor, text) = (self.processor.name, text.to_owned());
            return Err(TargetError::Unsupported { feature, processor, text });
        }
        match slot.replace(on) {
            Some(_) => Err(TargetError::Twice { feature, text: text.to_owned() }),
            None => Ok(()),
        }
    }
}

fn unknown_feature_error(part: &str, text: &str) -> TargetError {
    TargetError::Feature { feature: part.to_owned(), text: text.to_owned() }
}
