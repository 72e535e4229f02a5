//! Relocatable device code of one text for several targets: the mark with these targets, and the lending of bitcode.
//!
//! Where a unit is compiled, the findings of the wrapper become a mark in its object: an additional string of each
//! image of the new driver (`llvm-offload-binary`), a separate section after the old driver's bundler. Where units are
//! linked and one of them has separate code for a target, the others lend the bitcode of the processor whose text is
//! the same for them. The link then sees the same inputs as if all units had been compiled for the target.
//!
//! Invariants: Only a unit with a mark lends. A unit keeps its position in the link, and with it the order of
//! functions. The user's files are never changed: lent bitcode is in memory or in the link's own temporary files.
//!
//! Absent on purpose: deciding which targets are linked (the wrapper, which sees all units first), archives, whose
//! members do not lend (refused by the wrapper).

use crate::context::CallContext;
use crate::unit_images::triple_of_target;
use crate::words::{CommandLine, in_memory};
use crate::{child, unit_images};
use hotswap_bundle::{EntryId, OffloadBinary, OffloadImage};
use hotswap_code_object::bitcode::with_triple;
use hotswap_files::reads;
use hotswap_plan::TextMark;
use hotswap_report::{Diagnostic, codes};
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// `OffloadKind` of HIP's images.
const HIP: u16 = 4;
/// Section of the new driver's images.
const IMAGES: &str = ".llvm.offloading";

/// `llvm-offload-binary` and its older name: each image of the unit gets the mark.
pub(crate) fn packager(context: &CallContext, args: &[OsString]) -> Result<u8, Diagnostic> {
    let real = context.real_tool_of_driver(context.tool.name())?;
    let mark = TextMark::of_findings(&context.text_findings()?);
    let line = CommandLine::new(args)?;
    if !context.has_plan() || mark.is_empty() || !line.words().any(is_hip_image) {
        return Err(child::exec(context, &real, args));
    }
    let packed = unit_images::packager_words(context, line.words().map(|one| add_mark_to_image(one, &mark)).collect())?;
    Err(child::exec(context, &real, &packed.words))
}

fn add_mark_to_image(word: &OsStr, mark: &TextMark) -> OsString {
    let mut word = word.to_owned();
    if is_hip_image(&word) {
        word.push(format!(",{}={}", TextMark::KEY, mark.to_text()));
    }
    word
}

fn is_hip_image(word: &OsStr) -> bool {
    let text = word.to_string_lossy();
    text.starts_with("--image=") && text.split(',').any(|part| part == "kind=hip")
}

/// Adds the mark to the object that the old driver's bundler has written.
pub(crate) fn mark_object(context: &CallContext, object: &Path) -> Result<(), Diagnostic> {
    let mark = TextMark::of_findings(&context.text_findings()?);
    if mark.is_empty() {
        return Ok(());
    }
    // The bundler itself needs this tool, so it exists.
    let real = context.real_tool("llvm-objcopy")?;
    let content = in_memory(mark.to_text().as_bytes()).map_err(|error| cannot_write(&error))?;
    let section = format!("{}=/proc/self/fd/{}", TextMark::SECTION, content.as_raw_fd());
    let words = [
        format!("--add-section={section}").into(),
        format!("--set-section-flags={}=exclude", TextMark::SECTION).into(),
        object.as_os_str().to_owned(),
    ];
    match child::run(context, &real, &words)? {
        0 => Ok(()),
        _ => Err(Diagnostic::error(codes::CHILD_FAILED, "llvm-objcopy has not added the text mark").in_file(object)),
    }
}

/// Unbundles an object of the old driver, then adds the missing bitcode for lent targets.
pub(crate) fn unbundle(
    context: &CallContext,
    real: &Path,
    line: &CommandLine,
    args: &[OsString],
) -> Result<u8, Diagnostic> {
    let code = child::run(context, real, args)?;
    let input = line.value_of(&["-input", "--input"]).map(PathBuf::from);
    let targets = line.value_of(&["-targets", "--targets"]).unwrap_or_default();
    if let (0, Some(input)) = (code, input) {
        let outputs = line.values_of(&["-output", "--output"]);
        let targets = targets.to_string_lossy().split(',').map(processor_of).collect::<Vec<_>>();
        lend_files(context, &input, &targets, &outputs)?;
    }
    Ok(code)
}

fn processor_of(id: &str) -> Option<String> {
    EntryId::parse(id).ok()?.processor().map(str::to_owned)
}

/// `targets` and `outputs` correspond to each other by index.
fn lend_files(
    context: &CallContext,
    input: &Path,
    targets: &[Option<String>],
    outputs: &[OsString],
) -> Result<(), Diagnostic> {
    for target in context.lent_targets() {
        let Some(output) = output_of_target(target, targets, outputs) else { continue };
        if !is_empty(&output)? {
            continue;
        }
        let mark = read_mark(input)?;
        let Some(source) = mark.source_of(target).and_then(|one| output_of_target(one, targets, outputs)) else {
            continue;
        };
        if !is_empty(&source)? {
            fs::copy(source, &output).map_err(|error| cannot_write(&error).in_file(&output))?;
        }
    }
    Ok(())
}

fn output_of_target(name: &str, targets: &[Option<String>], outputs: &[OsString]) -> Option<PathBuf> {
    let at = targets.iter().position(|target| target.as_deref() == Some(name))?;
    outputs.get(at).map(PathBuf::from)
}

fn is_empty(path: &Path) -> Result<bool, Diagnostic> {
    Ok(reads::find_metadata(path)?.is_some_and(|meta| meta.len() == 0))
}

fn read_mark(path: &Path) -> Result<TextMark, Diagnostic> {
    let bytes = hotswap_files::open_input(path)?;
    let file = object::File::parse(&bytes[..]).ok();
    let section = file.as_ref().and_then(|file| file.section_by_name(TextMark::SECTION));
    let text = section.and_then(|section| section.data().ok().map(|data| String::from_utf8_lossy(data).into_owned()));
    Ok(text.map(|text| TextMark::parse(&text)).unwrap_or_default())
}

/// A command of `clang-linker-wrapper` whose objects lend.
pub(crate) struct LendingCommand {
    /// The arguments, with copies in memory in place of objects that lend.
    pub(crate) words: Vec<OsString>,
    /// The copies; they exist as long as these are open.
    _copies: Vec<File>,
}

/// The arguments of `clang-linker-wrapper` with lending objects replaced by copies; `None` where nothing is lent.
pub(crate) fn lending_command(context: &CallContext, line: &CommandLine) -> Result<Option<LendingCommand>, Diagnostic> {
    let lent: Vec<&str> = context.lent_targets().collect();
    if lent.is_empty() {
        return Ok(None);
    }
    let mut command = LendingCommand { words: Vec::new(), _copies: Vec::new() };
    for word in line.words() {
        match lending_copy(word, &lent)? {
            Some(copy) => {
                let file = in_memory(&copy).map_err(|error| cannot_write(&error))?;
                command.words.push(format!("/proc/self/fd/{}", file.as_raw_fd()).into());
                command._copies.push(file);
            }
            None => command.words.push(word.to_owned()),
        }
    }
    Ok(Some(command))
}

/// The object with images for the lent targets; `None` for any other argument, and where it has nothing to lend.
fn lending_copy(word: &OsStr, lent: &[&str]) -> Result<Option<Vec<u8>>, Diagnostic> {
    let path = Path::new(word);
    if word.as_bytes().starts_with(b"-") || !reads::is_regular(path)? {
        return Ok(None);
    }
    let bytes = hotswap_files::open_input(path)?;
    let Ok(file) = ElfFile64::<Endianness>::parse(&bytes[..]) else { return Ok(None) };
    let Some(section) = file.section_by_name(IMAGES) else { return Ok(None) };
    let content = section.data().map_err(|error| malformed(path, &error))?;
    let more = lent_images(content, lent).map_err(|error| error.in_file(path))?;
    if more.is_empty() {
        return Ok(None);
    }
    let table = file.elf_header().e_shoff.get(Endianness::Little) as usize;
    let header = table + section.index().0 * SECTION_HEADER;
    Ok(Some(with_section_at_end(&bytes, header, &[content, &more].concat())))
}

/// Size of a section header, and the positions of its offset and size.
const SECTION_HEADER: usize = 64;
const OFFSET: usize = 24;

/// A copy of the object with the section's new content at the end of the file; nothing else moves.
fn with_section_at_end(object: &[u8], header: usize, content: &[u8]) -> Vec<u8> {
    let mut copy = object.to_vec();
    copy.resize(object.len().next_multiple_of(8), 0);
    let place = [copy.len() as u64, content.len() as u64].map(u64::to_le_bytes).concat();
    copy.extend_from_slice(content);
    copy[header + OFFSET..header + OFFSET + place.len()].copy_from_slice(&place);
    copy
}

/// Additional offload binaries, one for each target that the images' marks allow.
fn lent_images(mut content: &[u8], lent: &[&str]) -> Result<Vec<u8>, Diagnostic> {
    let mut more = Vec::new();
    while !content.is_empty() {
        let (binary, size) = OffloadBinary::parse(content)?;
        let images: Vec<_> = binary.images.iter().filter(|image| image.offload_kind == HIP).collect();
        for target in lent.iter().filter(|target| images.iter().all(|image| image.string("arch") != Some(target))) {
            let Some(image) = images.iter().find(|one| lends_to_target(one, target)) else { continue };
            let image = for_target(image, target)?;
            let lent = OffloadBinary { version: binary.version, compressed: false, images: vec![image] };
            more.extend_from_slice(&lent.to_bytes()?);
        }
        content = content.get(size.next_multiple_of(8)..).unwrap_or_default();
    }
    Ok(more)
}

fn lends_to_target(image: &&OffloadImage<'_>, target: &str) -> bool {
    let mark = image.string(TextMark::KEY).map(TextMark::parse).unwrap_or_default();
    mark.source_of(target).is_some_and(|source| image.string("arch") == Some(source))
}

/// The image under the names of another target; from LLVM 24 on the triple names it, in the module, too.
fn for_target<'a>(image: &OffloadImage<'a>, target: &str) -> Result<OffloadImage<'a>, Diagnostic> {
    let mut image = image.clone();
    let source = image.string("arch").unwrap_or_default().to_owned();
    for (key, value) in &mut image.strings {
        match key.as_str() {
            "arch" => *value = target.to_owned(),
            "triple" => {
                let Some(triple) = triple_of_target(value, &source, target) else { continue };
                image.data =
                    with_triple(&image.data, &triple).ok_or_else(|| unreadable_bitcode_message(&source))?.into();
                *value = triple;
            }
            _ => {}
        }
    }
    Ok(image)
}

fn unreadable_bitcode_message(source: &str) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, format!("the bitcode for {source} cannot be read"))
}

fn cannot_write(error: &std::io::Error) -> Diagnostic {
    Diagnostic::error(codes::CANNOT_WRITE, error.to_string())
}

fn malformed(path: &Path, error: &object::Error) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, error.to_string()).in_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(arch: &str, mark: Option<&str>) -> OffloadImage<'static> {
        let mut strings = vec![("arch".to_owned(), arch.to_owned())];
        strings.extend(mark.map(|mark| (TextMark::KEY.to_owned(), mark.to_owned())));
        OffloadImage { image_kind: 2, offload_kind: HIP, flags: 0, strings, data: b"bitcode!".to_vec().into() }
    }

    fn lent(images: Vec<OffloadImage<'_>>, targets: &[&str]) -> Vec<String> {
        let binary = OffloadBinary { version: 2, compressed: false, images }.to_bytes().unwrap();
        let more = lent_images(&binary, targets).unwrap();
        let (mut rest, mut found) = (&more[..], Vec::new());
        while let Ok((binary, size)) = OffloadBinary::parse(rest) {
            found.extend(binary.images.iter().filter_map(|image| image.string("arch").map(str::to_owned)));
            rest = &rest[size..];
        }
        found
    }

    #[test]
    fn only_marked_images_lend_and_only_what_is_missing() {
        let mark = Some("gfx1031=gfx1030+gfx1032=gfx1031");
        assert_eq!(lent(vec![image("gfx1030", mark)], &["gfx1031"]), ["gfx1031"]);
        assert!(lent(vec![image("gfx1030", None)], &["gfx1031"]).is_empty());
        assert!(lent(vec![image("gfx1030", mark), image("gfx1031", mark)], &["gfx1031"]).is_empty());
        assert!(lent(vec![image("gfx1030", mark)], &["gfx1032"]).is_empty());
        assert_eq!(lent(vec![image("gfx1030", mark), image("gfx1031", mark)], &["gfx1031", "gfx1032"]), ["gfx1032"]);
        // Data that is no module cannot be lent under a triple of its own.
        let mut named = image("gfx1030", mark);
        named.strings.push(("triple".into(), "amdgpu10.30-amd-amdhsa".into()));
        assert_eq!(for_target(&named, "gfx1031").unwrap_err().code, codes::MALFORMED);
    }
}
