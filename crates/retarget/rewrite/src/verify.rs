//! Reads a result again.

use crate::code::{WordClass, WordClassTable};
use crate::place::{function_ranges, named_data};
use hotswap_code_object::image::ObjectImage;
use hotswap_code_object::{CodeObject, ObjectKind};
use hotswap_isa::{Isa, Target};
use hotswap_report::{Diagnostic, codes};
use rayon::prelude::*;
use std::ops::Range;

fn verify_error(offset: u64, what: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::VERIFY_FAILED, what).at_offset(offset)
}

/// Checks that a code object is sound: header, note and descriptors agree, kernels are aligned, symbols are inside of
/// their sections, and every branch of every function targets an instruction.
///
/// # Errors
/// Errors of reading, and `VERIFY_FAILED` with the offset.
pub fn verify_object(data: &[u8]) -> Result<(), Diagnostic> {
    let (object, read) = rayon::join(
        || CodeObject::parse(data).and_then(|object| object.check_descriptors().map(|()| object)),
        || {
            let image = ObjectImage::parse(data)?;
            let symbols = image.symbol_tables();
            let tables = symbols.as_ref().map_or(&[][..], |symbols| symbols);
            let functions = function_ranges(&image, tables).into_iter().zip(named_data(&image, tables));
            let functions: Vec<_> = functions.collect();
            Ok::<_, Diagnostic>((image, symbols, functions))
        },
    );
    let (object, (image, symbols, functions)) = (object?, read?);
    for (kernel, descriptor) in object.note().kernels.iter().zip(object.descriptors()) {
        if object.kind() == ObjectKind::Linked && descriptor.entry % 256 != 0 {
            let mut error =
                verify_error(descriptor.range.start as u64, "the kernel does not begin at a multiple of 256 bytes");
            error.place.kernel = Some(kernel.name.to_owned());
            return Err(error);
        }
    }
    for table in &symbols? {
        for (number, row) in table.rows.iter().enumerate() {
            let Some(section) = row.section.map(|section| &image.sections[section]) else { continue };
            let end = row.value.checked_add(row.size).filter(|_| row.value >= section.address);
            if section.is_code() && end.is_none_or(|end| end > section.addresses().end) {
                return Err(verify_error(
                    (table.at + number * 24) as u64,
                    format!("`{}` is outside of its section", row.name),
                ));
            }
        }
    }
    let Some(target) = Target::find(image.flags.target_id().processor.name) else { return Ok(()) };
    let marks = WordClassTable::new(Isa::new(target));
    for (section, (functions, data)) in image.sections.iter().zip(functions) {
        // The first one in order, whichever is found first.
        let wrong = functions.par_iter().find_map_first(|function| {
            let bytes = &section.bytes[function.start as usize..function.end as usize];
            let first = data.partition_point(|data| data.start <= function.start);
            let inside = data[first..].iter().take_while(|data| data.start < function.end);
            let data = inside.map(|data| data.start - function.start..data.end - function.start);
            // A name alone does not make data: targets of branches are code.
            let read =
                check_branches(&marks, bytes, std::iter::empty()).or_else(|_| check_branches(&marks, bytes, data));
            let (at, what) = read.err()?;
            Some(verify_error(section.offset + function.start + at, format!("{what} in `{}`", function.name)))
        });
        if let Some(error) = wrong {
            return Err(error);
        }
    }
    Ok(())
}

/// A branch with its target; both are offsets in the code.
struct BranchTarget {
    at: u64,
    target: u64,
}

/// Branches inside a function must target the start of an instruction. `data` is skipped.
fn check_branches(
    marks: &WordClassTable,
    bytes: &[u8],
    data: impl Iterator<Item = Range<u64>>,
) -> Result<(), (u64, &'static str)> {
    let mut data = data.peekable();
    // One bit for each dword at which an instruction begins.
    let mut begins = vec![0_u64; bytes.len() / 256 + 1];
    let mut targets: Vec<BranchTarget> = Vec::new();
    let (mut at, mut is_clean) = (0, true);
    while at < bytes.len() {
        if let Some(passed) = data.next_if(|data| data.start <= at as u64) {
            at = at.max((passed.end as usize).next_multiple_of(4));
            continue;
        }
        begins[at / 256] |= 1 << (at / 4 % 64);
        let word = bytes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        let Some(size) = marks.isa.instruction_size(&bytes[at..]) else {
            is_clean = false;
            at += 4;
            continue;
        };
        let behind = at + usize::from(size);
        if marks.mark_of_word(word) == WordClass::Branch {
            let target = (behind as u64).wrapping_add_signed(i64::from(word as u16 as i16) * 4);
            targets.push(BranchTarget { at: at as u64, target });
        }
        at = behind;
    }
    let wrong =
        targets.iter().find(|one| one.target < bytes.len() as u64 && !is_instruction_begin(one.target, &begins));
    match wrong.filter(|_| is_clean) {
        Some(one) => Err((one.at, "a branch target is inside an instruction")),
        None => Ok(()),
    }
}

fn is_instruction_begin(target: u64, begins: &[u64]) -> bool {
    begins[target as usize / 256] >> (target / 4 % 64) & 1 != 0
}
