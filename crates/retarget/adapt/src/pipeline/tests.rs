//! The phases as their tests call them: each on a file that was read by the test.

use super::*;
use crate::prescan::Prescan;
use hotswap_families::code::Scheduling;

#[path = "damage.rs"]
mod damage;

type Work<'a> = SectionRewrite<'a>;
type Task<'t> = RewriteConfig<'t>;

fn suspects(object: &CodeObject<'_>, isa: Isa, rewriter: &FamilyRewriter) -> Prescan {
    prescan_object(object, isa, rewriter)
}

/// Analyses a file and selects new code.
fn planned<'a>(
    object: &CodeObject<'a>,
    image: &ObjectImage<'a>,
    config: &Task<'_>,
    found: Prescan,
) -> Result<Vec<Work<'a>>, Vec<Diagnostic>> {
    let source = ParsedObject { object, image: image.clone() };
    select_code(&source, analyse_sections(&source, found, config)?, config)
}

/// Lays the file out and emits it.
fn written(
    object: &CodeObject<'_>,
    (image, work): (&ObjectImage<'_>, &[Work<'_>]),
    free: &[MovableTail],
    record: &mut ObjectRecord,
) -> Result<Vec<u8>, Diagnostic> {
    let source = ParsedObject { object, image: image.clone() };
    let made = layout_edits(&source, work, record).and_then(|layout| emit_file(&source, work, layout, free, record))?;
    Ok(made.unwrap_or_else(|| object.bytes().to_vec()))
}

fn verified<'a>(
    image: &ObjectImage<'_>,
    work: impl AsRef<[Work<'a>]> + Send + Sync,
    made: &[u8],
    config: &Task<'_>,
) -> Result<Vec<SectionMap>, Diagnostic> {
    verify_file(image, work, made, config)
}
