//! Code objects that are in no container, and HotSwap's record after one.
//!
//! The block of [`crate::record_block`] follows the last byte that the ELF file's headers refer to, at a multiple of 8.
//! No section or note is added: loaders, comgr and LLVM use only what the headers refer to, so that the code object
//! before the block is byte for byte the same as without it. Tools that rewrite the file (`strip`, `objcopy`) drop the
//! block.
//!
//! Invariant: an appended record can be removed, which restores the code object.

use crate::bytes::{EntryBytes, slice, u16_at, u64_at};
use crate::container::{ContainerForm, ContainerFormat, ContainerImage, DeviceContents, FoundContainer};
use crate::draft::FileRope;
use crate::elf::SectionTable;
use crate::image::ImageKind;
use crate::record_block::{self, FoundBlock};
use hotswap_report::{Diagnostic, codes};

/// A file that is a code object, linked or relocatable.
#[derive(Debug)]
pub(crate) struct CodeObjects;

impl ContainerFormat for CodeObjects {
    fn begins(&self, bytes: &[u8]) -> bool {
        matches!(ImageKind::of(bytes), ImageKind::CodeObject | ImageKind::DeviceObject)
    }

    fn is_section(&self, _name: &str) -> bool {
        false
    }

    fn next(&self, _bytes: &[u8], at: usize) -> Result<Option<usize>, Diagnostic> {
        Ok((at == 0).then_some(0))
    }

    fn extent(&self, bytes: &[u8]) -> Result<(ContainerForm, usize), Diagnostic> {
        Ok((ContainerForm::Bare, bytes.len()))
    }

    fn read<'a>(&self, found: &FoundContainer<'a>) -> Result<DeviceContents<'a>, Diagnostic> {
        let (code, record) = split_record(found.bytes)?;
        let device = found.device(vec![ContainerImage::new(None, EntryBytes::from(code))]);
        Ok(DeviceContents { record: record.map(EntryBytes::from), ..device })
    }
}

/// The code object followed by the record.
///
/// # Errors
/// [`codes::MALFORMED`] where its headers refer to missing bytes, or where other bytes follow those that they refer to;
/// [`codes::VERIFY_FAILED`] where it does not read back.
pub fn with_record(code: &[u8], payload: &[u8]) -> Result<Vec<u8>, Diagnostic> {
    if end_of_elf(code) != Some(code.len() as u64) {
        let what = "its headers do not say where the file ends, so a record has no place";
        return Err(Diagnostic::error(codes::MALFORMED, what));
    }
    let mut out = FileRope::default();
    out.push(code);
    record_block::append_block(&mut out, payload);
    let whole = out.to_vec();
    if split_record(&whole)? != (code, Some(payload)) {
        return Err(Diagnostic::error(codes::VERIFY_FAILED, "the record after the code object"));
    }
    Ok(whole)
}

/// The code object without the record, and the record's payload.
///
/// # Errors
/// [`codes::MALFORMED`] or [`codes::UNKNOWN_FORMAT`] for a damaged record.
pub fn split_record(bytes: &[u8]) -> Result<(&[u8], Option<&[u8]>), Diagnostic> {
    let Some(end) = end_of_elf(bytes) else { return Ok((bytes, None)) };
    let Some(FoundBlock { payload, .. }) = record_block::find_block(bytes, end)? else { return Ok((bytes, None)) };
    let code = slice(bytes, 0, end).unwrap_or(bytes);
    Ok((code, slice(bytes, payload.start, payload.end - payload.start)))
}

/// The end of the last byte that the headers of an ELF64 file refer to; `None` where that is not in the file.
fn end_of_elf(bytes: &[u8]) -> Option<u64> {
    const SEGMENT: u64 = 56;
    let sections = SectionTable::read(bytes).ok()?;
    let (table, count) = (u64_at(bytes, 32)?, u64::from(u16_at(bytes, 56)?));
    let mut end = sections.table_end().max(table.checked_add(count * SEGMENT)?);
    for section in &sections.all {
        end = end.max(section.file_range().end);
    }
    for segment in 0..count {
        let at = table + segment * SEGMENT;
        end = end.max(u64_at(bytes, at + 8)?.checked_add(u64_at(bytes, at + 32)?)?);
    }
    (end >= crate::elf::HEADER && end <= bytes.len() as u64).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of a header and one section header that refers to the 5 bytes after it.
    fn elf() -> Vec<u8> {
        let mut file = vec![0; 64 + 64 + 5];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[40..48].copy_from_slice(&64u64.to_le_bytes());
        file[58] = 64;
        file[60] = 1;
        file[64 + 4] = 1;
        file[64 + 24..64 + 32].copy_from_slice(&128u64.to_le_bytes());
        file[64 + 32..64 + 40].copy_from_slice(&5u64.to_le_bytes());
        file
    }

    #[test]
    fn a_record_comes_off_and_leaves_the_code_object() {
        let code = elf();
        assert_eq!(split_record(&code).unwrap(), (&code[..], None));
        let whole = with_record(&code, b"{}").unwrap();
        assert_eq!(split_record(&whole).unwrap(), (&code[..], Some(&b"{}"[..])));
        assert!(whole.starts_with(&code) && whole.len().is_multiple_of(8));
        // There is no space for a second one, nor for one where the end is unknown.
        assert_eq!(with_record(&whole, b"{}").unwrap_err().code, codes::MALFORMED);
        assert_eq!(with_record(&code[..code.len() - 1], b"{}").unwrap_err().code, codes::MALFORMED);
        assert_eq!(with_record(b"\x7fELF", b"{}").unwrap_err().code, codes::MALFORMED);
    }

    #[test]
    fn damage_is_told_and_nothing_panics() {
        let whole = with_record(&elf(), b"{\"schema\":1}").unwrap();
        for cut in 0..whole.len() {
            // Without the whole block there is no record, or it is damaged.
            assert!(split_record(&whole[..cut]).is_err() || split_record(&whole[..cut]).unwrap().1.is_none(), "{cut}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            let _ = split_record(&damaged);
        }
    }
}
