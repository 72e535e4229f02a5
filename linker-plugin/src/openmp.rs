//! OpenMP's device images in a host link with a plan.
//!
//! `clang-linker-wrapper` puts them into an object like that of HIP's fat binary, with a descriptor that lists each.
//! The driver wrapper refuses commands with OpenMP offload; the images here come from inputs that it could not see:
//! objects, archives, clang's configuration files.
//!
//! Absent on purpose: making such images.

use crate::context::CallContext;
use crate::message::say;
use crate::trace;
use hotswap_bundle::{ContainerForm, ImageKind};
use hotswap_code_object::CodeObject;
use hotswap_plan::{Plan, Policy};
use hotswap_report::{Diagnostic, Severity, codes};
use serde_json::json;
use std::path::Path;

/// Reports by the plan's policy that it is not carried out for the object's images, where it requests more than these.
pub(crate) fn check(context: &CallContext, plan: &Plan, object: &[u8], path: &Path) -> Result<(), Diagnostic> {
    let images = images(object).map_err(|error| error.in_file(path))?;
    let lacking = lacking(plan, &images);
    if lacking.is_empty() {
        return trace::step(context, "keep", path, json!({"why": "no .hip_fatbin"}));
    }
    let what = format!("of {} the plan asks for {}", images.join(", "), lacking.join(", "));
    let advice = "compile for each GPU by --offload-arch, drop the plan, or set its policy to warn or keep";
    let refusal = Diagnostic::error(codes::OPENMP_OFFLOAD, what).in_file(path).advise(advice);
    match plan.policy {
        Policy::Error | Policy::Compile => return Err(refusal),
        Policy::Warn => say(Diagnostic { severity: Severity::Warning, ..refusal }),
        Policy::Keep => {}
    }
    trace::step(context, "keep", path, json!({"why": "OpenMP offload", "lacks": lacking}))
}

/// Processors of the linked device images outside of fat binaries.
fn images(object: &[u8]) -> Result<Vec<String>, Diagnostic> {
    let mut processors = Vec::new();
    for found in hotswap_bundle::find_containers(object).found {
        if matches!(found.form, ContainerForm::OffloadBinary(_)) {
            let images = found.read()?.images.into_iter().filter(|image| image.kind == ImageKind::CodeObject);
            for image in images {
                processors.push(CodeObject::parse(&image.data)?.target_id().processor.name.to_owned());
            }
        }
    }
    Ok(processors)
}

/// Targets that the plan makes from one of these, and that are not among them.
fn lacking<'p>(plan: &'p Plan, images: &[String]) -> Vec<&'p str> {
    let pairs = plan
        .pairs
        .iter()
        .filter(|pair| has_named_image(&pair.source, images) && !has_named_image(&pair.target, images));
    pairs.map(|pair| pair.target.as_str()).collect()
}

fn has_named_image(name: &String, images: &[String]) -> bool {
    images.contains(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_lack_only_where_their_source_is_there() {
        let mut plan = Plan::default();
        plan.add_pairs("gfx1030=>gfx1031,gfx1032; gfx900=>gfx902").unwrap();
        for (images, expected) in [
            (&["gfx1030"][..], &["gfx1031", "gfx1032"][..]),
            (&["gfx1030", "gfx1032"], &["gfx1031"]),
            (&["gfx1030", "gfx1031", "gfx1032"], &[]),
            (&["gfx1100"], &[]),
            (&[], &[]),
        ] {
            let images: Vec<String> = images.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(lacking(&plan, &images), expected, "{images:?}");
        }
    }
}
