//! Putting changed containers back into a file of any kind.
//!
//! [`embed`] takes a file and the containers that change, identified by their offsets as [`crate::open`] returns them,
//! and returns the whole new file: concatenated bundles, OffloadBinaries, relocatable host objects (ELF, COFF), linked
//! ELF programs, and archives of all of these.
//!
//! Invariant: the result is opened again; it has the original containers, in their order, except those that were
//! replaced or left out.
//!
//! Absent on purpose: PE images, Mach-O, thin archives, text bundles, which are refused; kernel archives, which have a writer
//! of their own.

mod archive;

use crate::coff_object;
use crate::draft::{DraftContent, DraftFacts, FileRope};
use crate::fatbin::{bundle_size, next_start};
use crate::host_object::{self, SECTION};
use crate::linked::{self, BundleReplacement};
use crate::magic::{OFFLOAD_BINARY, is_bundle};
use crate::offload_binary;
use hotswap_report::{Diagnostic, codes};
use object::{Object, ObjectSection};
use std::ops::Range;

/// Section of OffloadBinaries in objects.
const OFFLOADING: &str = ".llvm.offloading";

/// A copy of the file with other containers in place of some. A container that becomes empty is left out.
///
/// # Errors
/// [`codes::NOT_FOUND`] without a container at such an offset; [`codes::NO_PLACE`] where the file lacks space
/// for the new one; [`codes::VERIFY_FAILED`] where the result does not read back.
pub fn embed_containers(file: &[u8], exchanges: &[BundleReplacement<'_>]) -> Result<Vec<u8>, Diagnostic> {
    let changed = draft_with_exchanges(file, exchanges)?.to_vec();
    verify_exchanges(file, exchanges, &changed)?;
    Ok(changed)
}

/// As [`embed`], before it is written: large parts are not copied. The writer calls [`verify`] on the result.
///
/// # Errors
/// The same as those of [`embed`].
pub fn draft_with_exchanges<'a>(
    file: &'a [u8],
    exchanges: &'a [BundleReplacement<'a>],
) -> Result<FileRope<'a>, Diagnostic> {
    if exchanges.is_empty() {
        let mut same = FileRope::default();
        same.push(file);
        return Ok(same);
    }
    draft_of_form(file, exchanges)
}

fn draft_of_form<'a>(file: &'a [u8], exchanges: &'a [BundleReplacement<'a>]) -> Result<FileRope<'a>, Diagnostic> {
    match file {
        _ if is_bundle(file) => join_containers(file, exchanges, 4096, bundle_ranges),
        _ if file.starts_with(OFFLOAD_BINARY) => {
            join_containers(file, exchanges, offload_binary::ALIGNMENT, binary_ranges)
        }
        [b'!', b'<', b'a', b'r', b'c', b'h', b'>', b'\n', ..] => {
            archive::rewrite_archive(file, exchanges).map(FileRope::from)
        }
        _ if host_object::is_host_object(file) => {
            let (name, new) = draft_object_section(file, exchanges)?;
            host_object::draft_section(file, name, &new)
        }
        _ if linked::is_linked(file) => linked::draft_linked(file, exchanges),
        _ if coff_object::is_coff_object(file) => coff_object(file, exchanges).map(FileRope::from),
        _ => Err(no_place(format!("nothing can be put into {}", describe_unsupported(file)))),
    }
}

/// A description of a file that cannot be changed.
fn describe_unsupported(file: &[u8]) -> String {
    match file {
        [0x7f, b'E', b'L', b'F', 1, ..] => "a 32-bit ELF file".to_owned(),
        [0x7f, b'E', b'L', b'F', 2, 2, ..] => "a big-endian ELF file".to_owned(),
        [0x7f, b'E', b'L', b'F', ..] => {
            let machine = crate::bytes::u16_at(file, 18).unwrap_or_default();
            format!("an ELF file for machine {machine} (x86-64 is 62, AArch64 183)")
        }
        [0xcf | 0xce, 0xfa, 0xed, 0xfe, ..] | [0xfe, 0xed, 0xfa, 0xcf | 0xce, ..] | [0xca, 0xfe, 0xba, 0xbe, ..] => {
            "a Mach-O file".to_owned()
        }
        [b'M', b'Z', ..] => "a linked Windows program or DLL".to_owned(),
        [0, 0, 0xff, 0xff, ..] => "a COFF object with very many sections (/bigobj)".to_owned(),
        _ => "a file of this kind".to_owned(),
    }
}

fn no_place(what: impl Into<String>) -> Diagnostic {
    let advice = "change the fat binary or the ELF object before it gets into this file";
    Diagnostic::error(codes::NO_PLACE, what).advise(advice)
}

/// A function that finds the ranges of the containers in a section.
type ContainerRanges = fn(&[u8]) -> Result<Vec<Range<usize>>, Diagnostic>;

/// The range of each bundle.
fn bundle_ranges(content: &[u8]) -> Result<Vec<Range<usize>>, Diagnostic> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(start) = next_start(content, at)? {
        let size = bundle_size(&content[start..])?;
        found.push(start..start + size);
        at = start + size;
    }
    Ok(found)
}

/// The range of each OffloadBinary.
fn binary_ranges(content: &[u8]) -> Result<Vec<Range<usize>>, Diagnostic> {
    let (mut found, mut at) = (Vec::new(), 0);
    while content.get(at..).is_some_and(|rest| rest.iter().any(|byte| *byte != 0)) {
        let (_, size) = offload_binary::binary_extent(&content[at..])
            .map_err(|error| crate::bytes::shift_offset(error, at as u64))?;
        found.push(at..at + size as usize);
        at = (at + size as usize).next_multiple_of(offload_binary::ALIGNMENT as usize);
    }
    Ok(found)
}

/// Concatenates the containers, each at a multiple of `alignment`.
fn join_containers<'a>(
    content: &'a [u8],
    exchanges: &[BundleReplacement<'a>],
    alignment: u64,
    ranges: ContainerRanges,
) -> Result<FileRope<'a>, Diagnostic> {
    let parts = ranges(content)?;
    if let Some(lost) = exchanges.iter().find(|one| starts_no_part(one, &parts)) {
        let what = format!("no container begins at offset {:#x}", lost.offset);
        return Err(Diagnostic::error(codes::NOT_FOUND, what));
    }
    let mut out = FileRope::default();
    for range in parts {
        let exchange = exchanges.iter().find(|exchange| exchange.offset == range.start as u64);
        let part = exchange.map_or(DraftContent::Old(&content[range]), |exchange| DraftContent::New(&exchange.new));
        if part.size() > 0 {
            out.pad_to(out.size().next_multiple_of(alignment));
            part.append_to(&mut out);
        }
    }
    if out.size() == 0 {
        return Err(no_place("nothing would be left of its device code"));
    }
    Ok(out)
}

fn starts_no_part(exchange: &&BundleReplacement, parts: &[Range<usize>]) -> bool {
    !parts.iter().any(|part| part.start as u64 == exchange.offset)
}

/// A relocatable object: one section holds all of them. Returns its name and its new content.
fn draft_object_section<'a>(
    file: &'a [u8],
    exchanges: &[BundleReplacement<'a>],
) -> Result<(&'static str, FileRope<'a>), Diagnostic> {
    for (name, is_bundles) in [(SECTION, true), (OFFLOADING, false)] {
        let Some(section) = host_object::section_of(file, name)? else { continue };
        if let Some(new) = joined_section(file, section, is_bundles, exchanges)? {
            return Ok((name, new));
        }
    }
    Err(no_place("the containers are in several sections, or in one that cannot change"))
}

/// As [`object`] for COFF, where an object may truncate names to 8 characters.
fn coff_object(file: &[u8], exchanges: &[BundleReplacement<'_>]) -> Result<Vec<u8>, Diagnostic> {
    let parsed = object::read::coff::CoffFile::<&[u8]>::parse(file).map_err(coff_object_error)?;
    for section in parsed.sections() {
        let name = section.name().map_err(coff_object_error)?;
        let is_bundles = [SECTION, &SECTION[..8]].contains(&name);
        if !is_bundles && ![OFFLOADING, &OFFLOADING[..8]].contains(&name) {
            continue;
        }
        let content = section.data().map_err(coff_object_error)?;
        if let Some(new) = joined_section(file, content, is_bundles, exchanges)? {
            let start = (content.as_ptr() as usize).wrapping_sub(file.as_ptr() as usize) as u64;
            return coff_object::replace_section(file, start, &new.to_vec());
        }
    }
    Err(no_place("the containers are in several sections, or in one that cannot change"))
}

fn coff_object_error(error: object::read::Error) -> Diagnostic {
    crate::bytes::malformed_at(format!("COFF object: {error}"), 0)
}

/// The section's new content; `None` where it does not hold all of the containers.
fn joined_section<'a>(
    file: &[u8],
    section: &'a [u8],
    is_bundles: bool,
    exchanges: &[BundleReplacement<'a>],
) -> Result<Option<FileRope<'a>>, Diagnostic> {
    let start = (section.as_ptr() as usize).wrapping_sub(file.as_ptr() as usize) as u64;
    let range = start..start.saturating_add(section.len() as u64);
    if !exchanges.iter().all(|exchange| range.contains(&exchange.offset)) {
        return Ok(None);
    }
    let inner = shift_exchanges(exchanges, start);
    let new = if is_bundles {
        join_containers(section, &inner, 4096, bundle_ranges)
    } else {
        join_containers(section, &inner, offload_binary::ALIGNMENT, binary_ranges)
    };
    new.map(Some)
}

fn shift_exchanges<'n>(exchanges: &[BundleReplacement<'n>], by: u64) -> Vec<BundleReplacement<'n>> {
    let shifted = exchanges
        .iter()
        .map(|exchange| BundleReplacement { offset: exchange.offset.wrapping_sub(by), new: exchange.new.clone() });
    shifted.collect()
}

/// Whether `changed` has the expected containers, and is otherwise unchanged.
///
/// # Errors
/// [`codes::VERIFY_FAILED`]; [`codes::MALFORMED`] where the input is inconsistent.
pub fn verify_exchanges(file: &[u8], exchanges: &[BundleReplacement<'_>], changed: &[u8]) -> Result<(), Diagnostic> {
    verify_with(file, exchanges, changed, DraftFacts::Nothing)
}

/// As [`verify`], where the contents are partly known already.
///
/// # Errors
/// The same as those of [`verify`].
pub fn verify_with(
    file: &[u8],
    exchanges: &[BundleReplacement<'_>],
    changed: &[u8],
    known: DraftFacts,
) -> Result<(), Diagnostic> {
    if exchanges.is_empty() {
        let is_same = DraftContent::Old(file).equals_content(changed, known);
        return if is_same { Ok(()) } else { Err(Diagnostic::error(codes::VERIFY_FAILED, "the copy differs")) };
    }
    let is_linked = linked::is_linked(file);
    if is_linked {
        linked::verify_linked(file, exchanges, changed, known)?;
    } else if host_object::is_host_object(file) {
        let (name, new) = draft_object_section(file, exchanges)?;
        host_object::verify_section(file, changed, (name, &new), known)?;
    }
    let (before, after) = (crate::find_containers(file), crate::find_containers(changed));
    let planned = before.found.iter().map(|found| {
        let exchange = exchanges.iter().find(|exchange| exchange.offset == found.place.file_offset);
        exchange.map_or(DraftContent::Old(found.bytes), |exchange| DraftContent::New(&exchange.new))
    });
    let planned: Vec<DraftContent<'_, '_>> = planned.filter(is_present_content).collect();
    // The contents of a linked file have just been compared, byte for byte.
    let known = if is_linked { DraftFacts::Contents } else { known };
    let is_same = after.problems.len() <= before.problems.len()
        && planned.len() == after.found.len()
        && planned.iter().zip(&after.found).all(|(planned, found)| planned.equals_content(found.bytes, known));
    if is_same { Ok(()) } else { Err(Diagnostic::error(codes::VERIFY_FAILED, "the containers differ")) }
}

/// A container replaced by nothing is removed; an empty section of a device stays.
fn is_present_content(content: &DraftContent<'_, '_>) -> bool {
    content.size() > 0 || matches!(content, DraftContent::Old(_))
}
