//! Bundle entry IDs: `kind-arch-vendor-os-env[-target ID]`.
//!
//! The ID is split at the first five dashes, so that generic targets (`gfx10-3-generic`) keep theirs. `hip` and `hipv4`
//! mean the same to every reader. An ID keeps its spelling: an ID made from it by [`EntryId::with_target`] differs in
//! nothing but the target ID.

use hotswap_report::{Diagnostic, codes};
use std::fmt;

/// The offload kind of the entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OffloadKind {
    /// The host's part; an empty dummy in HIP.
    Host,
    OpenMp,
    /// HIP as clang's new driver writes it.
    Hip,
    /// HIP as clang's old driver writes it.
    HipV4,
    /// Another kind, for example `hcc` or `sycl`.
    Other(String),
}

/// A parsed bundle entry ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryId {
    text: String,
    kind: OffloadKind,
    /// Lengths of the texts before the triple and before the target ID.
    triple_start: usize,
    target_start: Option<usize>,
}

impl EntryId {
    /// Splits an ID into its components.
    ///
    /// Bundles of clang 13 and older have three components in the triple: a last component that begins with `gfx` is
    /// the target ID then.
    ///
    /// # Errors
    /// [`codes::MALFORMED`] where kind or triple is missing.
    pub fn parse(text: &str) -> Result<Self, Diagnostic> {
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(entry_id_error("is empty or has characters that no ID has", text));
        }
        let dashes: Vec<usize> = text.match_indices('-').map(|(at, _)| at).take(5).collect();
        if dashes.len() < 3 {
            return Err(entry_id_error("has no triple", text));
        }
        let word = &text[..dashes[0]];
        let after_fourth = dashes.get(3).map(|at| at + 1);
        let target_start = match (dashes.get(4), after_fourth) {
            (Some(at), _) => Some(at + 1),
            (None, Some(at)) if text[at..].starts_with("gfx") => Some(at),
            _ => None,
        };
        let target_start = target_start.filter(|at| *at < text.len());
        let kind = match word {
            "" => return Err(entry_id_error("has no kind", text)),
            "host" => OffloadKind::Host,
            "openmp" => OffloadKind::OpenMp,
            "hip" => OffloadKind::Hip,
            "hipv4" => OffloadKind::HipV4,
            other => OffloadKind::Other(other.to_owned()),
        };
        Ok(Self { text: text.to_owned(), kind, triple_start: dashes[0] + 1, target_start })
    }

    /// The ID as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The offload kind of the entry.
    pub fn kind(&self) -> &OffloadKind {
        &self.kind
    }

    /// Whether it is HIP device code, in either spelling.
    pub fn is_hip(&self) -> bool {
        matches!(self.kind, OffloadKind::Hip | OffloadKind::HipV4)
    }

    /// Whether it is HIP code for an AMD GPU and names its target: a possible source for HotSwap.
    pub fn is_amdgpu(&self) -> bool {
        let arch = self.triple().split('-').next().unwrap_or_default();
        self.is_hip() && (arch == "amdgcn" || arch.starts_with("amdgpu")) && self.target_start.is_some()
    }

    /// The triple as written, without the dash after it: `amdgcn-amd-amdhsa-` (empty environment).
    pub fn triple(&self) -> &str {
        let end = self.target_start.map_or(self.text.len(), |at| at - 1);
        self.text.get(self.triple_start..end).unwrap_or_default()
    }

    /// The target ID, for example `gfx90a:sramecc+:xnack-`; `None` for the host.
    pub fn target(&self) -> Option<&str> {
        self.target_start.map(|at| &self.text[at..])
    }

    /// The target ID's processor, without features.
    pub fn processor(&self) -> Option<&str> {
        self.target()?.split(':').next()
    }

    /// The same ID for another target ID; `None` where this one names no target, or where its
    /// triple has a subarch (`amdgpu10.30`) and the processor is not known.
    pub fn with_target(&self, target: &str) -> Option<Self> {
        let before = &self.text[..self.target_start?];
        let Some(rest) = self.triple().strip_prefix("amdgpu").filter(|rest| !rest.starts_with('-')) else {
            return Some(Self { text: format!("{before}{target}"), ..self.clone() });
        };
        let (_, after_arch) = rest.split_once('-')?;
        let subarch = hotswap_targets::find_processor(target.split(':').next()?)?.subarch;
        let kind = &self.text[..self.triple_start];
        Self::parse(&format!("{kind}amdgpu{subarch}-{after_arch}-{target}")).ok()
    }
}

fn entry_id_error(why: &str, text: &str) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, format!("bundle entry ID `{text}` {why}"))
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_all_generations_are_taken_apart() {
        for (text, kind, triple, target) in [
            ("host-x86_64-unknown-linux-gnu-", OffloadKind::Host, "x86_64-unknown-linux-gnu-", None),
            ("host-x86_64-unknown-linux", OffloadKind::Host, "x86_64-unknown-linux", None),
            ("hipv4-amdgcn-amd-amdhsa--gfx1030", OffloadKind::HipV4, "amdgcn-amd-amdhsa-", Some("gfx1030")),
            ("hip-amdgcn-amd-amdhsa-gfx900", OffloadKind::Hip, "amdgcn-amd-amdhsa", Some("gfx900")),
            ("hip-amdgcn-amd-amdhsa--gfx10-3-generic", OffloadKind::Hip, "amdgcn-amd-amdhsa-", Some("gfx10-3-generic")),
            (
                "hip-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-",
                OffloadKind::Hip,
                "amdgcn-amd-amdhsa-",
                Some("gfx90a:sramecc+:xnack-"),
            ),
            ("openmp-amdgcn-amd-amdhsa--gfx906", OffloadKind::OpenMp, "amdgcn-amd-amdhsa-", Some("gfx906")),
            ("hcc-amdgcn-amd-amdhsa--gfx803", OffloadKind::Other("hcc".into()), "amdgcn-amd-amdhsa-", Some("gfx803")),
            ("hip-spirv64-amd-amdhsa--amdgcnspirv", OffloadKind::Hip, "spirv64-amd-amdhsa-", Some("amdgcnspirv")),
        ] {
            let id = EntryId::parse(text).unwrap();
            assert_eq!((id.kind(), id.triple(), id.target()), (&kind, triple, target), "{text}");
            assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn another_target_changes_nothing_else() {
        let id = EntryId::parse("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+").unwrap();
        assert_eq!(id.processor(), Some("gfx90a"));
        let made = id.with_target("gfx10-3-generic").unwrap();
        assert_eq!(made.as_str(), "hipv4-amdgcn-amd-amdhsa--gfx10-3-generic");
        assert_eq!(EntryId::parse(made.as_str()).unwrap(), made);
        assert!(EntryId::parse("host-x86_64-unknown-linux-gnu-").unwrap().with_target("gfx900").is_none());
    }

    #[test]
    fn a_subarch_in_the_triple_follows_the_target() {
        let id = EntryId::parse("hip-amdgpu10.30-amd-amdhsa--gfx1030").unwrap();
        assert_eq!(id.with_target("gfx1031").unwrap().as_str(), "hip-amdgpu10.31-amd-amdhsa--gfx1031");
        assert_eq!(id.with_target("gfx90a:xnack-").unwrap().as_str(), "hip-amdgpu9.0a-amd-amdhsa--gfx90a:xnack-");
        let generic = id.with_target("gfx10-3-generic").unwrap();
        assert_eq!(generic.as_str(), "hip-amdgpu10.3-amd-amdhsa--gfx10-3-generic");
        assert!(id.with_target("gfx1").is_none());
        let plain = EntryId::parse("hip-amdgpu-amd-amdhsa--gfx1030").unwrap();
        assert_eq!(plain.with_target("gfx10-3-generic").unwrap().as_str(), "hip-amdgpu-amd-amdhsa--gfx10-3-generic");
    }

    #[test]
    fn only_hip_code_for_amd_gpus_is_a_source() {
        let yes = ["hip-amdgcn-amd-amdhsa--gfx900", "hipv4-amdgpu10.30-amd-amdhsa--gfx1030"];
        let no = [
            "hip-spirv64-amd-amdhsa--amdgcnspirv",
            "openmp-amdgcn-amd-amdhsa--gfx900",
            "host-x86_64-unknown-linux-gnu-",
        ];
        assert!(yes.iter().all(|text| EntryId::parse(text).unwrap().is_amdgpu()));
        assert!(!no.iter().any(|text| EntryId::parse(text).unwrap().is_amdgpu()));
    }

    #[test]
    fn what_is_no_id_is_refused() {
        for text in ["", "host", "hip-amdgcn", "-a-b-c-d", "hip-amdgcn-amd-am dhsa--gfx900", "hip-ä-b-c-d"] {
            assert_eq!(EntryId::parse(text).unwrap_err().code, codes::MALFORMED, "{text}");
        }
    }
}
