//! The record that a changed fat binary carries, and that `hotswap inspect` prints.
//!
//! One record belongs to one bundle and follows its last entry (`hotswap-bundle` defines the layout). It has the route
//! of every entry, so that a program shows which of its code was compiled and which derived, from which source, by
//! which HotSwap.

use serde::{Deserialize, Serialize};

/// The route by which a code object came into a bundle; the order is the order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// Compiled for this target by the compiler.
    Native,
    /// Compiled for a generic target that covers it.
    Generic,
    /// Relabelled from an identical sibling.
    #[serde(rename = "alias")]
    Relabelled,
    /// Compiled for this target by the link, from the bitcode of another one.
    Recompiled,
    /// Its code was changed.
    Rewritten,
}

impl Route {
    /// Whether HotSwap has made it.
    pub fn is_made(self) -> bool {
        !matches!(self, Self::Native | Self::Generic)
    }
}

/// Whether the source's text depends on which of two processors it is compiled for.
///
/// Libraries choose kernels by the processor's name on the host and in device code; code that is derived from another
/// processor's text would not be what the host expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceText {
    /// The compiler saw the same program for both, so the derived code object is the one that it would have made.
    Same,
    /// The text differs, so the source was compiled for the target.
    Compiled,
    /// The text differs, and the code object was derived nevertheless, as the plan requires.
    Differs,
    /// No check was made: the text was not available, or the plan disables the check.
    NotChecked,
    /// No code object could be derived, so the source was compiled for the target.
    Refused,
}

impl SourceText {
    /// The word that the record and the tools between them use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Compiled => "compiled",
            Self::Differs => "differs",
            Self::NotChecked => "not-checked",
            Self::Refused => "refused",
        }
    }

    /// Whether the source was compiled for the target, which the plan would have derived.
    pub fn is_compiled(self) -> bool {
        matches!(self, Self::Compiled | Self::Refused)
    }

    /// The status of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Same, Self::Compiled, Self::Differs, Self::NotChecked, Self::Refused]
            .into_iter()
            .find(|text| text.word() == word)
    }
}

/// How often a patch family acted on a code object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FamilyCount {
    /// Name of the family as in `patches.def`.
    pub name: String,
    pub sites: u64,
}

/// One entry of the bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryRecord {
    pub id: String,
    /// Target ID, for example `gfx90a:sramecc+:xnack-`.
    pub target: String,
    /// The route by which it was made.
    pub route: Route,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
    pub size: u64,
    /// Target ID of the code object that it was derived from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// SHA-256 of that code object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_sha256: Option<String>,
    /// Whether the source's text is the same for both processors, for entries that are in a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<SourceText>,
    /// The place in the text that depends on the processor, or the reason why no check was made: one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_evidence: Option<String>,
    /// Patch families that acted, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub families: Vec<FamilyCount>,
    /// The changes to rewritten code, function by function: `hotswap_adapt::ObjectRecord`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<serde_json::Value>,
}

/// The changes of HotSwap to one bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Version of this form; 1.
    pub schema: u32,
    pub hotswap: String,
    /// Fingerprint of the HotSwap build ([`hotswap_plan`'s identity]).
    pub identity: String,
    /// Hash of the plan.
    pub plan: String,
    /// The plan's canonical text.
    pub plan_text: String,
    /// Entries, in bundle order, without the host's empty one.
    pub entries: Vec<EntryRecord>,
    /// Targets that the plan requested and that were skipped, with the reason (policy `warn` or `keep`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
}

impl Record {
    /// Compact JSON with the fields in the order of the declaration.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a record has only strings and numbers")
    }

    /// Reads the output of [`Record::to_json`]; unknown fields of later versions are skipped.
    pub fn from_json(text: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text)
    }
}
