//! `machine_flags`: sets `e_flags` and `EI_ABIVERSION` of the ELF header to the target's machine.
//!
//! Feature settings stay those of the source: the code was compiled with them. A target ID with another setting is
//! refused, not written. If only one of the two processors has a feature at all:
//!
//! | source | target | becomes |
//! |---|---|---|
//! | runs with either setting, or off | without the feature | not stated (bits 0) |
//! | needs it on | without the feature | refused |
//! | without the feature | with it | what the target ID says: off, or either setting (on is refused) |
//!
//! The pair's checks prove, before this family runs, that code runs with either setting.
//! Generic targets exist in code objects V6 only, whose notes are those of V5.

use crate::registry::{Apply, FamilyRegistry};
use crate::table::slot;
use hotswap_code_object::{CodeObject, ObjectEdit};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::{EFlags, FeatureBits, Support, TargetId};

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_machine_flags_patch(registry: &mut FamilyRegistry) {
    registry.bind(slot::MACHINE_FLAGS, Apply::CodeObject(apply));
}

/// `EI_ABIVERSION` of code object V4 and V5.
const V4: u8 = 2;
const V5: u8 = 3;
/// `EI_ABIVERSION` of code object V6.
const V6: u8 = 4;

fn apply(source: &CodeObject<'_>, target: &TargetId, edit: &mut ObjectEdit<'_, '_>) -> Result<u64, Diagnostic> {
    let flags = relabel_flags(source.flags(), target).ok_or_else(|| {
        machine_flags_refusal(format!("the features of {} cannot be labelled {target}", source.target_id()))
    })?;
    let version = match source.abi_version() {
        old @ ..V4 if target.processor.is_generic() => {
            let what = format!("generic targets need code object V6, and this is V{}", old + 2);
            return Err(machine_flags_refusal(what).advise("compile the source with -mcode-object-version=5 or later"));
        }
        // That V4 lacks arguments of its own is a check of the pair.
        V4..=V5 if target.processor.is_generic() => V6,
        old => old,
    };
    let flags = flags.encode_for(version);
    edit.set_e_flags(flags);
    edit.set_abi_version(version);
    Ok(u64::from(flags != source.e_flags()) + u64::from(version != source.abi_version()))
}

fn machine_flags_refusal(what: String) -> Diagnostic {
    Diagnostic::error(codes::PAIR_REFUSED, what)
}

fn relabel_flags(flags: EFlags, target: &TargetId) -> Option<EFlags> {
    let processor = target.processor;
    let made = EFlags {
        processor,
        xnack: feature_bits(flags.xnack, processor.xnack, target.xnack)?,
        sramecc: feature_bits(flags.sramecc, processor.sramecc, target.sramecc)?,
    };
    (made.target_id() == *target).then_some(made)
}

fn feature_bits(bits: FeatureBits, support: Support, stated: Option<bool>) -> Option<FeatureBits> {
    match (bits, support) {
        (FeatureBits::On, Support::No) => None,
        (_, Support::No) => Some(FeatureBits::Unsupported),
        (FeatureBits::Unsupported, Support::Yes) if stated.is_none() => Some(FeatureBits::Any),
        (FeatureBits::Unsupported, Support::Yes) => Some(FeatureBits::Off),
        (_, Support::Yes | Support::Unsettled) => Some(bits),
    }
}

#[cfg(test)]
mod tests {
    use super::relabel_flags;
    use hotswap_targets::EFlags;

    fn made(source: &str, target: &str) -> Option<u32> {
        relabel_flags(EFlags::of(&source.parse().unwrap()), &target.parse().unwrap()).map(|flags| flags.encode())
    }

    /// The values are those that clang writes for the target.
    #[test]
    fn features_are_kept_or_named_and_never_switched() {
        for (source, target, flags) in [
            ("gfx1030", "gfx10-3-generic", Some(0x0100_0053)),
            ("gfx900", "gfx9-generic", Some(0x0100_0151)),
            ("gfx900:xnack-", "gfx9-generic:xnack-", Some(0x0100_0251)),
            ("gfx942", "gfx9-4-generic", Some(0x0100_055f)),
            ("gfx1010", "gfx1030", Some(0x36)),
            ("gfx1010:xnack-", "gfx1030", Some(0x36)),
            ("gfx1010:xnack+", "gfx1030", None),
            ("gfx900", "gfx906", Some(0x52f)),
            ("gfx900", "gfx906:sramecc-", Some(0x92f)),
            ("gfx900", "gfx906:sramecc+", None),
            ("gfx900:xnack-", "gfx902", None),
            ("gfx900", "gfx902:xnack-", None),
            ("gfx906", "gfx9-generic", Some(0x0100_0151)),
            ("gfx906:sramecc+", "gfx9-generic", None),
        ] {
            assert_eq!(made(source, target), flags, "{source} {target}");
        }
    }
}
