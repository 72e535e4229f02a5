//! AMDGPU code objects: read, checked against themselves, and edited by exact bytes.
//!
//! A code object is an ELF64 file whose header flags and metadata note both name its target, and whose kernels are both
//! in the note and, as 64-byte descriptors, in the symbol tables. [`CodeObject::parse`] reads all of that and refuses a
//! file in which they disagree, so that later tools may rely on either. [`CodeMap::read`] is for inspection: the
//! positions and names of code, in files that may contradict themselves.
//!
//! # Which view of a file
//!
//! | question | view | what it accepts |
//! | --- | --- | --- |
//! | May it be loaded, for which target, with which kernels? Every change of a label begins and ends here. | [`CodeObject`] | files that agree with themselves |
//! | Which symbol, kernel, relocation belongs to an instruction? | [`CodeMap`] | also files without metadata; damaged names are skipped and reported |
//! | Where may code begin, in passes over much code that need no names? | [`CodeStarts`] | as [`CodeMap`] |
//! | Which parts does it consist of, so that they can change their size? | [`image::ObjectImage`] | files that consist of such parts and nothing else |
//! | How many kernels has it, in a listing of thousands? | [`kernel_count`] | anything; damage gives no number |
//! | Which kernels does a unit define before its link? | [`bitcode::Bitcode`] | LLVM bitcode |
//!
//! [`CodeMap::of`] and [`CodeStarts::of`] continue from a [`CodeObject`]; [`image::ObjectImage`] reads the tables again, because
//! it owns those that change. One view for all questions would read all names, relocations and sections for callers
//! that need the target and the kernels.
//!
//! # Which change
//!
//! | change | by | the rest of the file |
//! | --- | --- | --- |
//! | label: flags, ABI version, target in the note, ISA version, user SGPRs | [`ObjectEdit`], whose result is a [`BytePatch`] | at the same offsets |
//! | bytes of a known file as differences, without a copy of the file | [`BytePatch`] | shared with the old file |
//! | numbers of kernels in the metadata note | [`with_numbers`] | one section, of any size: for [`image::ImageLayout`] |
//! | the same in a linked file, whose code stays | [`with_kernel_numbers`] | a note that grows moves to the end |
//! | fields of a kernel descriptor | [`kernel_descriptor::KernelDescriptor`] | the same bytes |
//! | the build ID, where it is a hash | [`with_own_build_id`] | the same bytes |
//! | kernels that are left out | [`without_kernels`] | at the same offsets |
//! | instructions | `Edits` of `hotswap-rewrite`, above [`image::ObjectImage`] and [`image::ImageLayout`] | laid out anew |
//!
//! Invariants: a [`CodeObject`] borrows the file and copies none of it. An [`ObjectEdit`] changes the label (with the number
//! of the GPU in `__oclc_ISA_version`) and nothing else, which [`same_but_for_label`] checks, and without a change
//! returns the file byte for byte. No input makes reading panic. Every failure names an offset.
//!
//! Absent on purpose: instructions (code is never walked), code object V2.

pub mod bitcode;
mod build_id;
mod certificate_note;
mod count;
mod descriptor;
mod device_symbols_note;
mod edit;
mod elf;
mod empty_link;
mod grown_note;
pub mod image;
mod implicit_arguments;
mod isa_version;
pub mod kernel_descriptor;
mod leave_out;
mod metadata;
mod msgpack;
mod note;
mod note_edit;
mod object_file;
mod overlap;
mod own_note;
mod patch;
mod relabel;
mod same;
mod source_frames;
mod source_lines;
mod source_units;
mod symbols;
mod target_text;
mod user_sgprs;

pub use build_id::{build_id, with_own_build_id};
pub use certificate_note::{certificate_note, with_certificate};
pub use count::kernel_count;
pub use descriptor::DescriptorLocation;
pub use device_symbols_note::{DEVICE_SYMBOLS_SECTION, device_symbols_note, with_device_symbols, with_text_section};
pub use edit::ObjectEdit;
pub use elf::{ElfSectionView, ElfSegment, ObjectKind};
pub use empty_link::is_empty_link;
pub use grown_note::with_kernel_numbers;
pub use implicit_arguments::{ImplicitArguments, implicit_arguments};
pub use leave_out::without_kernels;
pub use metadata::KernelMetadata;
pub use note::Note;
pub use note_edit::{KernelNumber, with_numbers};
pub use object_file::{CodeObject, header_target, is_code_object};
pub use overlap::find_overlap;
pub use patch::BytePatch;
pub use same::{same_but_for_label, same_but_for_patch};
pub use source_frames::{SourceFrame, source_frames};
pub use source_lines::SourceLines;
pub use source_units::SourceUnits;
pub use symbols::{CodeMap, CodeSection, CodeStart, CodeStarts, CodeSymbol, KernelFacts, Relocation, SymbolKind};
pub use user_sgprs::{SgprMove, SystemSgprShift, system_sgpr_shifts};

use hotswap_report::{Diagnostic, codes};

/// A damaged file: the fault, and its offset.
fn malformed(offset: usize, what: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, what).at_offset(offset as u64)
}

/// A version or form that is not supported, and its offset.
fn unsupported_format(offset: usize, what: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::UNKNOWN_FORMAT, what).at_offset(offset as u64)
}
