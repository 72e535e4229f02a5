//! A device link that is not carried out, because the code for its processor is derived from that of another one.
//!
//! The units of a coalesced build have bitcode for every sibling, and the new driver links all of it. The output of such a
//! link is an ELF file without any content, which the step that makes the fat binary replaces by the derived code object
//! (and refuses where it could not: `hotswap_pipeline::find_missing`).
//!
//! Absent on purpose: deciding which processors are derived (the wrapper, which reads the units).

use crate::context::CallContext;
use crate::linker::input_files;
use crate::trace;
use crate::words::CommandLine;
use hotswap_code_object::bitcode::parse_bitcode;
use hotswap_report::Diagnostic;
use hotswap_targets::{Processor, by_triple, find_processor};
use serde_json::json;
use std::path::Path;

/// Whether the link is for a processor whose code is derived.
///
/// # Errors
/// [`hotswap_report::codes::CANNOT_READ`] for one of its inputs.
pub(crate) fn is_skipped(context: &CallContext, line: &CommandLine, output: &Path) -> Result<bool, Diagnostic> {
    if !context.skips_links() {
        return Ok(false);
    }
    Ok(processor_of_link(line, output)?.is_some_and(|processor| context.skips(processor)))
}

/// The processor of the link: of its arguments, or of the first module's triple from LLVM 24 on.
fn processor_of_link(line: &CommandLine, output: &Path) -> Result<Option<&'static Processor>, Diagnostic> {
    let named = line.words().filter_map(|word| word.to_str()?.strip_prefix("-plugin-opt=mcpu=")).last();
    if let Some(processor) = named.and_then(find_processor) {
        return Ok(Some(processor));
    }
    let inputs = input_files(line, output)?;
    Ok(inputs.iter().find_map(|file| by_triple(&parse_bitcode(&file.bytes)?.triple)))
}

/// Writes the output of a link without inputs.
///
/// # Errors
/// [`hotswap_report::codes::CANNOT_WRITE`] for the output or the trace.
pub(crate) fn leave_out(context: &CallContext, output: &Path) -> Result<(), Diagnostic> {
    hotswap_files::replace_file(output, &empty_link())?;
    trace::step(context, "keep", output, json!({"why": "the code is derived"}))
}

/// An ELF file for AMDGPU without sections and segments.
fn empty_link() -> Vec<u8> {
    const SIZE: u8 = 64;
    const ET_DYN: u8 = 3;
    const EM_AMDGPU: u8 = 224;
    const ELFOSABI_AMDGPU_HSA: u8 = 64;
    // 64 bits, little endian, version 1.
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.push(ELFOSABI_AMDGPU_HSA);
    file.resize(usize::from(SIZE), 0);
    (file[16], file[18], file[20], file[52]) = (ET_DYN, EM_AMDGPU, 1, SIZE);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_the_output_of_a_link_without_inputs() {
        assert!(hotswap_code_object::is_empty_link(&empty_link()));
    }
}
