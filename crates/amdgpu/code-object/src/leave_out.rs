//! A code object without some of its kernels: a loader reports "not found" instead of running them.
//!
//! Their names are removed from the symbol tables and the hash tables, their descriptions from the metadata, and their
//! descriptors and code are overwritten. Nothing moves: tables become shorter in place, and the bytes that they no
//! longer use are zero.
//!
//! Invariants, checked before the file is returned: the remaining kernels have their descriptions, descriptors, names
//! and code. No symbol table has a name of the removed ones. Every name is found through the hash tables that had it.

mod check;
mod hashes;
mod metadata;
mod symbols;

use crate::elf::ObjectKind;
use crate::image::ObjectImage;
use crate::{CodeMap, CodeObject, malformed};
use hotswap_report::{Diagnostic, codes};
use std::collections::BTreeSet;

/// `s_nop 0`, the same word on all processors; code to which no descriptor points.
const NOTHING: [u8; 4] = [0, 0, 0x80, 0xbf];
/// Bytes of a row in the section table, and of the size field in it.
const SECTION_ROW: usize = 64;
const SECTION_SIZE: usize = 32;
const SECTION_INFO: usize = 44;

/// Suffixes that compilers append to a kernel's name for symbols with its resource usage.
const RESOURCES: &[&str] = &[
    ".num_vgpr",
    ".num_agpr",
    ".numbered_sgpr",
    ".num_named_barrier",
    ".private_seg_size",
    ".uses_vcc",
    ".uses_flat_scratch",
    ".has_dyn_sized_stack",
    ".has_recursion",
    ".has_indirect_call",
];

/// The names to remove: kernels, and the symbols of their descriptors.
struct Leaving<'k> {
    kernels: &'k BTreeSet<&'k str>,
    symbols: BTreeSet<String>,
}

impl<'k> Leaving<'k> {
    fn new(object: &CodeObject<'_>, kernels: &'k BTreeSet<&'k str>) -> Self {
        let left = object.note().kernels.iter().filter(|one| is_left_out_kernel(one, kernels));
        let names = left.flat_map(|kernel| {
            let code = kernel.symbol.strip_suffix(".kd").unwrap_or(kernel.name);
            let resources = RESOURCES.iter().map(move |end| format!("{code}{end}"));
            resources.chain([kernel.name.to_owned(), kernel.symbol.to_owned(), code.to_owned()])
        });
        Self { kernels, symbols: names.collect() }
    }
}

fn is_left_out_kernel(kernel: &&crate::KernelMetadata<'_>, kernels: &BTreeSet<&'_ str>) -> bool {
    kernels.contains(kernel.name)
}

/// The code object without these kernels.
///
/// # Errors
/// `NOT_SAFE` for files from which they cannot be removed; `VERIFY_FAILED` where the result cannot be read back.
pub fn without_kernels(object: &CodeObject<'_>, kernels: &BTreeSet<&str>) -> Result<Vec<u8>, Diagnostic> {
    if object.kind() != ObjectKind::Linked {
        return Err(cannot_leave_out("it is not linked"));
    }
    let known = object.note().kernels.iter().filter(|kernel| kernels.contains(kernel.name)).count();
    if known != kernels.len() {
        return Err(cannot_leave_out("it has not all of these kernels"));
    }
    let leaving = Leaving::new(object, kernels);
    let image = ObjectImage::parse(object.bytes())?;
    let mut out = object.bytes().to_vec();
    let numbers = symbols::remove_symbols(&image, &leaving, &mut out)?;
    symbols::renumber_relocations(&image, &numbers, &mut out)?;
    hashes::rebuild_hashes(&image, &numbers, &mut out)?;
    metadata::remove_kernels(&image, &leaving, &mut out)?;
    erase_kernels(object, &leaving, &mut out);
    check::check_result(object, &leaving, &out)?;
    Ok(out)
}

fn cannot_leave_out(why: &str) -> Diagnostic {
    Diagnostic::error(codes::NOT_SAFE, format!("no kernel can be left out: {why}"))
}

/// Overwrites descriptors, and code that belongs to no other name.
fn erase_kernels(object: &CodeObject<'_>, leaving: &Leaving<'_>, out: &mut [u8]) {
    for (kernel, descriptor) in object.note().kernels.iter().zip(object.descriptors()) {
        if leaving.kernels.contains(kernel.name) {
            out[descriptor.range.clone()].fill(0);
        }
    }
    for section in &CodeMap::names_of(object).sections {
        for symbol in section.symbols.iter().filter(|symbol| leaving.symbols.contains(&*symbol.name)) {
            let range = symbol.offset..symbol.offset + symbol.size;
            let is_shared = section.symbols.iter().any(|other| {
                let stays = !leaving.symbols.contains(&*other.name);
                stays
                    && (range.contains(&other.offset)
                        || other.offset < range.start && other.offset + other.size > range.start)
            });
            let place = section.range.start + range.start..section.range.start + range.end;
            if !is_shared && place.end <= section.range.end {
                out[place].chunks_exact_mut(4).for_each(|word| word.copy_from_slice(&NOTHING));
            }
        }
    }
}

/// Writes a new size into a section's row.
fn set_size(image: &ObjectImage<'_>, section: usize, size: usize, out: &mut [u8]) -> Result<(), Diagnostic> {
    let at = image.sections_at as usize + section * SECTION_ROW + SECTION_SIZE;
    put_bytes(out, at, &(size as u64).to_le_bytes())
}

fn put_bytes(out: &mut [u8], at: usize, bytes: &[u8]) -> Result<(), Diagnostic> {
    let place = out.get_mut(at..at + bytes.len()).ok_or_else(|| malformed(at, "a table leaves the file"))?;
    place.copy_from_slice(bytes);
    Ok(())
}
