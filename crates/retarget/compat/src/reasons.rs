//! The reasons why pairs outside the matrix are refused: withdrawn processors, generic targets as sources, and families
//! between which the encodings differ.

use hotswap_targets::Processor;

/// The reason, as half a sentence that names both.
pub(crate) fn refusal_reason(source: &Processor, target: &Processor) -> String {
    let pair = format!("code for {source} cannot serve {target}");
    if let Some(withdrawn) = [source, target].into_iter().find(|processor| processor.withdrawn) {
        return format!("{pair}: {withdrawn} was withdrawn before its hardware shipped");
    }
    if source.is_generic() && source.covers(target) {
        return format!("{pair}: it need not, since a runtime loads {source} on {target} as it is");
    }
    if source.is_generic() {
        return format!("{pair}: {source} covers {} only", source.covers.join(", "));
    }
    if source.family != target.family {
        return format!("{pair}: {} and {} encode instructions differently", source.family, target.family);
    }
    format!("{pair}: both are {}, but their instructions and hazards have not been compared", source.family)
}
