//! The notice of a command that changed nothing, or saved no space although it could have.

use hotswap_file_edit::HandledFile;
use hotswap_file_edit::opened_container::EntryChange;

/// The operation on containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContainerOperation {
    /// The change of `add` and `replace`.
    Put,
    /// The change of `remove` and `prune`.
    Remove,
    Compress,
    Decompress,
}

/// Bundles begin at multiples of it.
const ALIGNMENT: u64 = 4096;
/// A linked file is only made shorter by 64 KiB or more (`hotswap-bundle`), on top of the alignment of its segments.
const WORTH_MOVING: u64 = 72 << 10;

/// One line about the whole file; `sizes` are the old and the new size.
pub(super) fn notice(
    verb: ContainerOperation,
    work: &HandledFile<'_, Vec<EntryChange>>,
    sizes: [u64; 2],
) -> Option<String> {
    if work.done.iter().all(|handled| handled.said.is_empty()) {
        let is_packed = work.done.iter().all(|handled| handled.found.form.is_compressed_bundle());
        return unchanged(verb, is_packed).map(|why| format!("unchanged: {why}"));
    }
    let [old, new] = sizes;
    if !matches!(verb, ContainerOperation::Remove | ContainerOperation::Compress) || new < old {
        return None;
    }
    let before: u64 = work.done.iter().map(|handled| handled.found.bytes.len() as u64).sum();
    let now: u64 = work.done.iter().map(|handled| handled.size.unwrap_or(handled.found.bytes.len() as u64)).sum();
    Some(format!("nothing became smaller ({old} to {new} bytes): {}", not_smaller(before, now)))
}

fn unchanged(verb: ContainerOperation, is_packed: bool) -> Option<&'static str> {
    match verb {
        ContainerOperation::Put => None,
        ContainerOperation::Remove => Some("nothing in it is to go"),
        ContainerOperation::Compress if is_packed => Some("its fat binaries are compressed in this way already"),
        ContainerOperation::Compress => Some("its fat binaries take no less room in this form"),
        ContainerOperation::Decompress => Some("none of its fat binaries is compressed"),
    }
}

/// Why the file did not shrink with its containers, whose old and new sizes are given.
fn not_smaller(before: u64, now: u64) -> String {
    match before.saturating_sub(now) {
        0 => "its fat binaries take no less room in this form".to_owned(),
        saved if saved < ALIGNMENT => {
            format!("its fat binaries shrank by {saved} bytes, and each begins at a multiple of {ALIGNMENT}")
        }
        saved if saved < WORTH_MOVING => {
            format!(
                "its fat binaries shrank by {saved} bytes, for which nothing is moved in a linked file: they are zeros now"
            )
        }
        saved => format!(
            "its fat binaries shrank by {saved} bytes, which are zeros now: its linker's layout (LLD's) has other content \
             behind them; change the objects before the link"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_goes_by_what_the_containers_saved() {
        for (before, now, expected) in [
            (100, 200, "take no less room"),
            (9, 9, "take no less room"),
            (8192, 8000, "192 bytes, and each begins"),
            (69_720, 16_553, "53167 bytes, for which nothing is moved"),
            (99_999, 9, "99990 bytes, which are zeros now"),
        ] {
            assert!(not_smaller(before, now).contains(expected), "{before} {now}");
        }
    }
}
