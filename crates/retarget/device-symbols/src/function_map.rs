//! Names of device functions and kernels as rows of text in the section `.sqtt_funcmap`, which AMD's trace decoder reads:
//! `F:ID:name` and `K:name`, a line each.
//!
//! The format is that of `projects/rocprof-trace-decoder/include/rocprof_trace_decoder/cxx/funcmap.hpp` in AMD's
//! `rocm-systems`. IDs are those of marker instructions; code without markers lacks these numbers in its traces, so
//! they begin where hand-written markers hardly are.
//!
//! Invariants: IDs are unique. The section is not loaded, and nothing else of the file changes. A name that would not read
//! back (`@` begins the place in a source) does not get a row, and is counted.
//!
//! Absent on purpose: places in sources, marker instructions, and files that have such a section: their IDs have a meaning.

use crate::note::{check_rest, verify_failed};
use crate::table::{FunctionKind, SymbolTable};
use hotswap_code_object::with_text_section;
use hotswap_report::{Diagnostic, codes};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};
use std::fmt::Write;

/// Name of the section.
pub const FUNCTION_MAP_SECTION: &str = ".sqtt_funcmap";
/// The ID of the function with number 0; IDs have 30 bits.
const FIRST_ID: u32 = 1 << 29;

/// The rows, and the number of functions without one.
#[must_use]
pub fn function_map(table: &SymbolTable) -> (String, usize) {
    let (mut rows, mut left_out) = (String::new(), 0);
    for (number, function) in (0_u32..FIRST_ID).zip(&table.functions) {
        let name = &function.name;
        // The decoder takes spaces and controls at ends of lines for no part of a name.
        if name.is_empty() || name.contains(|one: char| one == '@' || one.is_whitespace() || one.is_control()) {
            left_out += 1;
            continue;
        }
        let _ = match function.kind {
            FunctionKind::Kernel => writeln!(rows, "K:{name}"),
            _ => writeln!(rows, "F:{}:{name}", FIRST_ID + number),
        };
    }
    (rows, left_out)
}

/// The file with the rows of its functions, and the number of functions without one.
///
/// # Errors
/// `TAKEN` if the file has such a section, `NO_PLACE` if it lacks a section table to take one, `VERIFY_FAILED`.
pub fn with_function_map(data: &[u8], table: &SymbolTable) -> Result<(Vec<u8>, usize), Diagnostic> {
    let (rows, left_out) = function_map(table);
    if ElfFile64::parse(data).is_ok_and(has_function_map) {
        let what = format!("the file has a section {FUNCTION_MAP_SECTION} already");
        return Err(Diagnostic::error(codes::TAKEN, what).advise(
            "code with trace markers names its functions itself; remove the section with llvm-objcopy otherwise",
        ));
    }
    let made =
        with_text_section(data, FUNCTION_MAP_SECTION, rows.as_bytes()).ok_or_else(missing_section_table_error)?;
    check_map(data, &made, &rows)?;
    Ok((made, left_out))
}

fn has_function_map(file: ElfFile64<'_, LittleEndian>) -> bool {
    file.section_by_name(FUNCTION_MAP_SECTION).is_some()
}

fn missing_section_table_error() -> Diagnostic {
    Diagnostic::error(codes::NO_PLACE, "the file has no section table that can take a section")
}

fn check_map(old: &[u8], new: &[u8], rows: &str) -> Result<(), Diagnostic> {
    let file = ElfFile64::<LittleEndian>::parse(new).map_err(|error| verify_failed(&error.to_string()))?;
    let found = file.section_by_name(FUNCTION_MAP_SECTION).and_then(|section| section.data().ok());
    if found != Some(rows.as_bytes()) {
        return Err(verify_failed("the rows of functions are not found again"));
    }
    check_rest(old, new)
}
