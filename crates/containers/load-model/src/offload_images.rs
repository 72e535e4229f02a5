//! Checks of offload binaries: each image is what its entry says, and containers inside of images are read as well.
//!
//! Invariant: bytes that no consumer of the entry could read are an error, however few they are.

use hotswap_bundle::{ContainerForm, FoundContainer, ImageKind, OffloadBinary, OffloadImage};
use hotswap_report::{Diagnostic, codes};

/// Containers inside of containers; more is not a real file.
const DEPTH: usize = 4;

/// The judgement of a container of another form inside of an image.
pub(crate) type JudgeInner = fn(&FoundContainer<'_>) -> Vec<Diagnostic>;

/// The faults of the images of an offload binary; none for other containers.
pub(crate) fn check_images(found: &FoundContainer<'_>, judge: JudgeInner) -> Vec<Diagnostic> {
    let ContainerForm::OffloadBinary(_) = found.form else { return Vec::new() };
    // Damage of the container itself has been reported.
    let Ok((binary, _)) = OffloadBinary::parse(found.bytes) else { return Vec::new() };
    check_binary(&binary, judge, DEPTH)
}

fn check_binary(binary: &OffloadBinary<'_>, judge: JudgeInner, depth: usize) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for (number, image) in binary.images.iter().enumerate() {
        let name = image.entry_id().unwrap_or_else(|| format!("image {}", number + 1));
        let faults = match ImageKind::of(&image.data) {
            ImageKind::Container if depth > 0 => check_nested(&image.data, judge, depth - 1),
            kind => check_kind(image, kind).into_iter().collect(),
        };
        problems.extend(faults.into_iter().map(|fault| match fault.place.entry.clone() {
            Some(inner) => fault.in_entry(format!("{name}: {inner}")),
            None => fault.in_entry(&name),
        }));
    }
    problems
}

/// The containers in the bytes of an image.
#[deny(clippy::wildcard_enum_match_arm)]
fn check_nested(image: &[u8], judge: JudgeInner, depth: usize) -> Vec<Diagnostic> {
    let contents = hotswap_bundle::find_containers(image);
    let mut problems = contents.problems;
    for found in &contents.found {
        match found.form {
            ContainerForm::OffloadBinary(_) => match OffloadBinary::parse(found.bytes) {
                Ok((inner, _)) => problems.extend(check_binary(&inner, judge, depth)),
                Err(error) => problems.push(error.in_entry(found.place.to_string())),
            },
            ContainerForm::Bundle
            | ContainerForm::CompressedBundle(_)
            | ContainerForm::ObjectVariant
            | ContainerForm::KernelArchive
            | ContainerForm::Bare => problems.extend(judge(found)),
        }
    }
    problems
}

/// The kinds that entries state for images which HotSwap can tell: object, bitcode, fat binary, SPIR-V.
fn check_kind(image: &OffloadImage<'_>, kind: ImageKind) -> Option<Diagnostic> {
    let (stated, is_it) = match image.image_kind {
        _ if kind == ImageKind::Empty => return None,
        1 => ("object", matches!(kind, ImageKind::CodeObject | ImageKind::DeviceObject | ImageKind::OtherElf)),
        2 => ("bitcode", kind == ImageKind::Bitcode),
        4 => ("fat binary", kind == ImageKind::Container),
        6 => ("SPIR-V module", kind == ImageKind::SpirV),
        _ => return None,
    };
    // LLVM's linker wrapper takes bitcode under the kind of objects, and the other way round.
    let is_like = matches!(image.image_kind, 1 | 2)
        && matches!(kind, ImageKind::Bitcode | ImageKind::CodeObject | ImageKind::DeviceObject | ImageKind::OtherElf);
    (!is_it && !is_like)
        .then(|| malformed_image(format!("its {} bytes are not the {stated} that the entry states", image.data.len())))
}

fn malformed_image(what: String) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, what)
}
