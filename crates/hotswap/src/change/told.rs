//! What is said where a command changed nothing, or made nothing smaller although it could have.

use super::open::Change;
use crate::containers::Work;

/// What is done to containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// `add` and `replace`.
    Put,
    /// `remove` and `prune`.
    Remove,
    Compress,
    Decompress,
}

/// Less than this is alignment.
const ALIGNMENT: u64 = 4096;

/// One line on the whole file; `sizes` are those before and now.
pub(super) fn notice(verb: Verb, work: &Work<'_, Vec<Change>>, sizes: [u64; 2]) -> Option<String> {
    if work.done.iter().all(|handled| handled.said.is_empty()) {
        return unchanged(verb).map(|why| format!("unchanged: {why}"));
    }
    let [old, new] = sizes;
    if !matches!(verb, Verb::Remove | Verb::Compress) || new < old {
        return None;
    }
    let before: u64 = work.done.iter().map(|handled| handled.found.bytes.len() as u64).sum();
    let now: u64 = work.done.iter().map(|handled| handled.size.unwrap_or(handled.found.bytes.len() as u64)).sum();
    Some(format!("nothing became smaller ({old} to {new} bytes): {}", not_smaller(before, now)))
}

fn unchanged(verb: Verb) -> Option<&'static str> {
    match verb {
        Verb::Put => None,
        Verb::Remove => Some("nothing in it is to go"),
        Verb::Compress => Some("its fat binaries are compressed in this way already"),
        Verb::Decompress => Some("none of its fat binaries is compressed"),
    }
}

/// Why the file did not follow its containers, whose sizes are given.
fn not_smaller(before: u64, now: u64) -> &'static str {
    match before.checked_sub(now) {
        None | Some(0) => "its fat binaries take no less room in this form",
        Some(saved) if saved < ALIGNMENT => "its fat binaries are aligned to 4096 bytes, and shrank by less",
        Some(_) => {
            "its linker (LLD) put code behind the fat binary, whose old place stays as zeros; change it before the link"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_goes_by_what_the_containers_saved() {
        for (before, now, expected) in
            [(100, 200, "take no less room"), (9, 9, "take no less room"), (8192, 8000, "aligned"), (99_999, 9, "LLD")]
        {
            assert!(not_smaller(before, now).contains(expected), "{before} {now}");
        }
    }
}
