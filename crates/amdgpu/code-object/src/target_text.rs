//! The text of `amdhsa.target`: a triple, a dash, a target ID.
//!
//! Compilers spell the triple in three ways: `amdgcn-amd-amdhsa-` (LLVM 22),
//! `amdgcn-amd-amdhsa-unknown` (23), and `amdgpu10.30-amd-amdhsa-unknown` (24), where the
//! architecture names the processor a second time.

use hotswap_targets::{Processor, TargetId};

pub(crate) struct TargetText<'a> {
    arch: Arch<'a>,
    environment: &'a str,
    pub(crate) id: TargetId,
}

enum Arch<'a> {
    /// It names the processor and changes with it.
    OfProcessor,
    /// It names no processor, or a generic target that covers it.
    Fixed(&'a str),
}

impl<'a> TargetText<'a> {
    /// Parses the text; the error names its fault.
    pub(crate) fn parse(text: &'a str) -> Result<Self, String> {
        let parts: Vec<&str> = text.splitn(5, '-').collect();
        let [arch, vendor, system, environment, id] = parts[..] else {
            return Err(format!("`{text}` is not a triple and a target ID"));
        };
        if vendor != "amd" || system != "amdhsa" {
            return Err(format!("`{text}` is not for the HSA runtime (amd-amdhsa)"));
        }
        let id: TargetId = id.parse().map_err(|error| format!("{error} in `{text}`"))?;
        let arch = Arch::parse(arch, id.processor)
            .ok_or_else(|| format!("the architecture in `{text}` does not fit {}", id.processor))?;
        Ok(Self { arch, environment, id })
    }

    /// The same spelling for another target ID.
    pub(crate) fn respell_target(&self, target: &TargetId) -> String {
        let arch = match self.arch {
            Arch::OfProcessor => format!("amdgpu{}", target.processor.subarch),
            Arch::Fixed(arch) => arch.to_owned(),
        };
        format!("{arch}-amd-amdhsa-{}-{target}", self.environment)
    }
}

impl<'a> Arch<'a> {
    fn parse(text: &'a str, processor: &Processor) -> Option<Self> {
        match (text, text.strip_prefix("amdgpu")) {
            ("amdgcn" | "amdgpu", _) => Some(Self::Fixed(text)),
            (_, Some(subarch)) if subarch == processor.subarch => Some(Self::OfProcessor),
            (_, Some(subarch)) if is_generic_subarch(subarch, processor) => Some(Self::Fixed(text)),
            _ => None,
        }
    }
}

fn is_generic_subarch(subarch: &str, processor: &Processor) -> bool {
    let mut rows = hotswap_targets::PROCESSORS.iter();
    rows.any(|row| row.subarch == subarch && row.covers(processor))
}
