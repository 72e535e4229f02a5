//! Containers of device code to which no further target is added, and the reason.
//!
//! HotSwap adds targets to bundles of linked HIP code objects. Other device code is refused by name, so that no command
//! ends as if it had processed it. A target that such a container already has counts as present.
//!
//! Absent on purpose: containers without device code for AMD GPUs, where there is nothing to do; in linked files,
//! unlinked device code, which is never loaded.

#![deny(clippy::wildcard_enum_match_arm)]

use hotswap_bundle::inventory::image_target;
use hotswap_bundle::{ContainerForm, ContainerImage, EntryId, FoundContainer, ImageKind, OffloadKind, linked};
use hotswap_code_object::CodeObject;
use hotswap_pipeline::{TargetOutcome, TargetResult};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::{Processor, TargetId};

/// The outcome for the targets in a container to which nothing can be added; empty where it lacks device code.
///
/// # Errors
/// The diagnostic of a damaged container.
pub fn unsuited_results(
    found: &FoundContainer<'_>,
    targets: &[&'static Processor],
    file: &[u8],
) -> Result<Vec<TargetOutcome>, Diagnostic> {
    if found.form == ContainerForm::Bare {
        // Damage is the more important reason.
        CodeObject::parse(found.bytes)?;
    }
    let images = device_images(found, file)?;
    if images.is_empty() {
        return Ok(Vec::new());
    }
    Ok(targets.iter().map(|target| unsuited_target(target, found.form, &images)).collect())
}

fn unsuited_target(target: &'static Processor, form: ContainerForm, images: &[ContainerImage<'_>]) -> TargetOutcome {
    TargetOutcome::for_target(target, unsuited_result(target, form, images))
}

fn unsuited_result(target: &Processor, form: ContainerForm, images: &[ContainerImage<'_>]) -> TargetResult {
    if images.iter().any(|image| is_for(image, target)) {
        return TargetResult::There;
    }
    TargetResult::Refused { reasons: vec![reason(form, images)], names: Vec::new() }
}

/// Whether these are images of a linked program into which another section of it points.
pub fn is_fixed(found: &FoundContainer<'_>, file: &[u8]) -> bool {
    matches!(found.form, ContainerForm::OffloadBinary(_)) && linked::is_linked(file)
}

/// The refusal to change such images.
pub fn fixed_images_error() -> Diagnostic {
    let what = "the program's descriptor holds where each of its images begins and ends, so none can change";
    Diagnostic::error(codes::OPENMP_OFFLOAD, what)
        .advise("change the objects before the link, or compile the program again")
}

/// The error when no container of the file can be processed.
pub fn no_code_error(containers: usize) -> Diagnostic {
    let what = match containers {
        1 => "its one container holds no code for an AMD GPU".to_owned(),
        count => format!("none of its {count} containers holds code for an AMD GPU"),
    };
    Diagnostic::error(codes::NOT_FOUND, what).advise("see `hotswap list` for what is in it")
}

fn device_images<'a>(found: &FoundContainer<'a>, file: &[u8]) -> Result<Vec<ContainerImage<'a>>, Diagnostic> {
    let images = found.read()?.images.into_iter();
    let is_linked = linked::is_linked(file);
    Ok(images.filter(|one| is_device_image(one, is_linked)).collect())
}

fn is_device_image(image: &ContainerImage<'_>, is_linked: bool) -> bool {
    let counts = match image.kind {
        ImageKind::CodeObject => true,
        ImageKind::DeviceObject | ImageKind::Bitcode | ImageKind::SpirV => !is_linked,
        ImageKind::Empty | ImageKind::OtherElf | ImageKind::Container | ImageKind::Unknown => false,
    };
    counts && image.id.as_deref().is_none_or(is_amdgpu)
}

fn is_amdgpu(id: &str) -> bool {
    let Ok(id) = EntryId::parse(id) else { return false };
    let is_gpu = ["amdgcn", "amdgpu", "spirv"].iter().any(|arch| id.triple().starts_with(arch));
    is_gpu && *id.kind() != OffloadKind::Host
}

fn is_for(image: &ContainerImage<'_>, wanted: &Processor) -> bool {
    let target = image_target(image).and_then(|target| target.parse::<TargetId>().ok());
    image.kind == ImageKind::CodeObject && target.is_some_and(|target| target.processor == wanted)
}

fn is_openmp(image: &ContainerImage<'_>) -> bool {
    let id = image.id.as_deref().and_then(|id| EntryId::parse(id).ok());
    id.is_some_and(|id| *id.kind() == OffloadKind::OpenMp)
}

fn reason(form: ContainerForm, images: &[ContainerImage<'_>]) -> Diagnostic {
    let list = list(images);
    let is_linked = images.iter().any(|image| image.kind == ImageKind::CodeObject);
    match form {
        _ if is_linked && images.iter().all(is_openmp) => {
            let what = format!("the program's descriptor names each of its OpenMP images ({list})");
            Diagnostic::error(codes::OPENMP_OFFLOAD, what).advise("compile the program for each GPU by --offload-arch")
        }
        ContainerForm::Bare => no_room_error(
            format!("a {list} on its own inside of an archive has no room for another target"),
            "unpack the archive, and change its members",
        ),
        _ if !is_linked => no_room_error(
            format!("its device code is not linked yet ({list})"),
            "link it with a plan (hotswap-clang++), or retarget what is linked from it",
        ),
        ContainerForm::OffloadBinary(_) => no_room_error(
            format!("an offload binary gets no further images ({list})"),
            "extract its code objects, and bundle them with clang-offload-bundler",
        ),
        ContainerForm::Bundle
        | ContainerForm::CompressedBundle(_)
        | ContainerForm::KernelArchive
        | ContainerForm::ObjectVariant => {
            no_room_error(format!("it has no code object of HIP ({list})"), "see `hotswap list` for what is in it")
        }
    }
}

fn no_room_error(what: String, advice: &str) -> Diagnostic {
    Diagnostic::error(codes::NO_PLACE, what).advise(advice)
}

/// The targets of the images of one kind, each once.
struct KindTargets {
    kind: ImageKind,
    targets: Vec<String>,
}

/// Kind and target of each image, those of one kind together.
fn list(images: &[ContainerImage<'_>]) -> String {
    let mut kinds: Vec<KindTargets> = Vec::new();
    for image in images {
        let target = image_target(image).unwrap_or_else(|| "an unnamed target".to_owned());
        match kinds.iter_mut().find(|known| known.kind == image.kind) {
            Some(known) if known.targets.contains(&target) => {}
            Some(known) => known.targets.push(target),
            None => kinds.push(KindTargets { kind: image.kind, targets: vec![target] }),
        }
    }
    let kinds = kinds.iter().map(|known| format!("{} for {}", known.kind, known.targets.join(", ")));
    kinds.collect::<Vec<_>>().join("; ")
}
