//! Changed numbers in the metadata note, encoded again at any size.
//!
//! Invariants: only the named numbers change, each in the shortest form, as compilers write them; a section without a
//! change is unchanged byte for byte.

use crate::malformed;
use crate::msgpack::{NoteFault, ValueReader, write_unsigned};
use crate::note;
use hotswap_report::Diagnostic;
use std::ops::Range;

const FALSE: u8 = 0xc2;
const TRUE: u8 = 0xc3;

/// The new value of a number in a kernel's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelNumber<'a> {
    /// Symbol of the kernel's descriptor.
    pub symbol: &'a str,
    /// Its key in the kernel's map: `.vgpr_count`, `.sgpr_count` and the like.
    pub key: &'a str,
    /// The number; 0 or 1 where it is a Boolean.
    pub value: u64,
}

/// A note section with those numbers in it; `offset` is that of the section in the file.
///
/// # Errors
/// `MALFORMED` for notes that cannot be read, and for a kernel or key that the notes of this section do not have.
pub fn with_numbers(section: &[u8], offset: usize, numbers: &[KernelNumber<'_>]) -> Result<Vec<u8>, Diagnostic> {
    let mut out = Vec::with_capacity(section.len() + 8);
    let mut found = 0;
    let mut from = 0;
    for content in note::metadata_notes(section, 0..section.len(), 4)? {
        let mut places =
            find_numbers(section, content.clone(), numbers).map_err(|one| note_fault_error(one, offset))?;
        places.sort_by_key(|place| place.range.start);
        found += places.len();
        out.extend_from_slice(&section[from..content.start]);
        let start = out.len();
        from = content.start;
        for ChangedNumber { range: place, value } in places {
            out.extend_from_slice(&section[from..place.start]);
            match section.get(place.start) {
                Some(&(FALSE | TRUE)) => out.push(if value == 0 { FALSE } else { TRUE }),
                _ => write_unsigned(&mut out, value),
            }
            from = place.end;
        }
        out.extend_from_slice(&section[from..content.end]);
        let size = (out.len() - start) as u32;
        // Name, with its NUL and padding, is 8 bytes; it is preceded by the sizes of name and content, and the type.
        out[start - 16..start - 12].copy_from_slice(&size.to_le_bytes());
        out.resize(out.len().next_multiple_of(4), 0);
        from = content.end.next_multiple_of(4).min(section.len());
    }
    out.extend_from_slice(&section[from..]);
    if found != numbers.len() {
        let what = format!("{} of {} numbers are not in the metadata", numbers.len() - found, numbers.len());
        return Err(malformed(offset, what));
    }
    Ok(out)
}

fn note_fault_error((at, what): NoteFault, offset: usize) -> Diagnostic {
    malformed(offset + at, what)
}

/// A number in the metadata that changes.
struct ChangedNumber {
    range: Range<usize>,
    value: u64,
}

/// A number in the metadata of a kernel.
struct FoundNumber<'a> {
    key: &'a [u8],
    range: Range<usize>,
}

/// The changing numbers in the order of the note.
fn find_numbers(
    data: &[u8],
    range: Range<usize>,
    numbers: &[KernelNumber<'_>],
) -> Result<Vec<ChangedNumber>, NoteFault> {
    let mut reader = ValueReader::new(data, range);
    let mut found = Vec::new();
    for _ in 0..reader.read_map("the metadata is no map")? {
        if reader.read_text()? != Some(b"amdhsa.kernels") {
            reader.skip_value()?;
            continue;
        }
        for _ in 0..reader.read_array("amdhsa.kernels is no array")? {
            found.extend(read_kernel(&mut reader, numbers)?);
        }
    }
    Ok(found)
}

fn read_kernel(reader: &mut ValueReader<'_>, numbers: &[KernelNumber<'_>]) -> Result<Vec<ChangedNumber>, NoteFault> {
    let (mut symbol, mut values) = (&b""[..], Vec::new());
    for _ in 0..reader.read_map("a kernel in the metadata is no map")? {
        let key = reader.read_text()?.unwrap_or_default();
        let start = reader.at();
        if key == b".symbol" {
            symbol = reader.read_text()?.unwrap_or_default();
        } else if numbers.iter().any(|number| number.key.as_bytes() == key) {
            reader.read_unsigned()?.ok_or((start, "a number that is to change is none"))?;
            values.push(FoundNumber { key, range: start..reader.at() });
        } else {
            reader.skip_value()?;
        }
    }
    let wanted = numbers.iter().filter(|number| number.symbol.as_bytes() == symbol);
    Ok(wanted.filter_map(|one| located_kernel_number(one, &values)).collect())
}

fn located_kernel_number(number: &KernelNumber<'_>, values: &[FoundNumber<'_>]) -> Option<ChangedNumber> {
    let found = values.iter().find(|found| found.key == number.key.as_bytes())?;
    Some(ChangedNumber { range: found.range.clone(), value: number.value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmpv::Value;

    fn section(counts: &[u64]) -> Vec<u8> {
        let kernel = |(number, count): (usize, &u64)| {
            Value::Map(vec![
                (".vgpr_count".into(), (*count).into()),
                (".symbol".into(), format!("k{number}.kd").into()),
                (".sgpr_count".into(), 7.into()),
            ])
        };
        let kernels = Value::Array(counts.iter().enumerate().map(kernel).collect());
        let mut content = Vec::new();
        rmpv::encode::write_value(&mut content, &Value::Map(vec![("amdhsa.kernels".into(), kernels)])).unwrap();
        let mut out = Vec::new();
        out.extend([7, content.len() as u32, 32].iter().flat_map(|word| word.to_le_bytes()));
        out.extend(b"AMDGPU\0\0");
        out.extend(content);
        out.resize(out.len().next_multiple_of(4), 0);
        out
    }

    #[test]
    fn numbers_of_any_size_take_each_others_places() {
        let values = [0, 127, 128, 255, 256, 65535, 65536, u64::from(u32::MAX), 1 << 32];
        for old in values {
            for new in values {
                let number = KernelNumber { symbol: "k1.kd", key: ".vgpr_count", value: new };
                let changed = with_numbers(&section(&[3, old, 5]), 0, &[number]).unwrap();
                assert_eq!(changed, section(&[3, new, 5]), "{old} becomes {new}");
            }
        }
    }

    #[test]
    fn nothing_changes_without_numbers_and_what_is_missing_is_said() {
        let bytes = section(&[1, 2]);
        assert_eq!(with_numbers(&bytes, 0, &[]).unwrap(), bytes);
        for (symbol, key) in [("k9.kd", ".vgpr_count"), ("k0.kd", ".agpr_count")] {
            let error = with_numbers(&bytes, 0, &[KernelNumber { symbol, key, value: 1 }]).unwrap_err();
            assert!(error.what.contains("not in the metadata"), "{error:?}");
        }
    }
}
