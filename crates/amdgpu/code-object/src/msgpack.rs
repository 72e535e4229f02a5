//! A reader for MessagePack that skips values that are not needed.
//!
//! Metadata of a large library is megabytes of kernel arguments that these tools never read; a tree of values would
//! cost ten times the rest of the reading. Nothing is allocated, nesting is unlimited because nothing recurses, and
//! every read is bounded by the note.

use std::ops::Range;

/// Reads values one after the other.
pub(crate) struct ValueReader<'a> {
    data: &'a [u8],
    at: usize,
    end: usize,
}

/// Recently skipped values of a reader.
#[derive(Default)]
pub(crate) struct Skipped {
    values: [Range<usize>; 4],
    /// The next one to be replaced.
    next: usize,
}

/// Offset in the file, and the fault.
pub(crate) type NoteFault = (usize, &'static str);

type Result<T> = std::result::Result<T, NoteFault>;

/// A value up to its content.
enum MsgpackHead {
    /// Nothing, a boolean or a number; the integer when it is one.
    Scalar(Option<u64>),
    Boolean(bool),
    /// Text of that many bytes, which follow.
    Text(usize),
    /// Anything else of that many bytes, which follow.
    Bytes(usize),
    /// That many values follow.
    Array(usize),
    /// That many keys, each with its value, follow.
    Map(usize),
}

const CUT: &str = "the metadata is cut off";

/// Size of a number, a boolean or a short text by its first byte, that one included; 0 for all other values.
static SHORT: [u8; 256] = {
    let mut table = [0; 256];
    let mut marker = 0;
    while marker < 256 {
        let low = marker as u8;
        table[marker] = match low {
            0x00..=0x7f | 0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => 1,
            0xa0..=0xbf => 1 + (low & 0x1f),
            0xcc..=0xcf => 1 + (1 << (low - 0xcc)),
            0xd0..=0xd3 => 1 + (1 << (low - 0xd0)),
            _ => 0,
        };
        marker += 1;
    }
    table
};

impl<'a> ValueReader<'a> {
    /// Reads the values in `data[range]`, which the caller has checked to be inside.
    pub(crate) fn new(data: &'a [u8], range: Range<usize>) -> Self {
        Self { data, at: range.start, end: range.end }
    }

    /// Offset in the file of the next value.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Bytes that were not read yet.
    pub(crate) fn bytes_left(&self) -> usize {
        self.end.saturating_sub(self.at)
    }

    /// Whether every byte was read.
    pub(crate) fn is_done(&self) -> bool {
        self.at == self.end
    }

    fn take_bytes(&mut self, size: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(size).filter(|end| *end <= self.end).ok_or((self.at, CUT))?;
        let bytes = &self.data[self.at..end];
        self.at = end;
        Ok(bytes)
    }

    fn read_number(&mut self, size: usize) -> Result<u64> {
        Ok(self.take_bytes(size)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn read_size(&mut self, size: usize) -> Result<usize> {
        Ok(self.read_number(size)? as usize)
    }

    fn read_head(&mut self) -> Result<MsgpackHead> {
        let start = self.at;
        let marker = self.take_bytes(1)?[0];
        Ok(match marker {
            0x00..=0x7f => MsgpackHead::Scalar(Some(u64::from(marker))),
            0x80..=0x8f => MsgpackHead::Map(usize::from(marker & 0x0f)),
            0x90..=0x9f => MsgpackHead::Array(usize::from(marker & 0x0f)),
            0xa0..=0xbf => MsgpackHead::Text(usize::from(marker & 0x1f)),
            0xc0 | 0xe0..=0xff => MsgpackHead::Scalar(None),
            0xc1 => return Err((start, "the metadata is no MessagePack")),
            0xc2 | 0xc3 => MsgpackHead::Boolean(marker == 0xc3),
            0xc4..=0xc6 => MsgpackHead::Bytes(self.read_size(1 << (marker - 0xc4))?),
            0xc7..=0xc9 => MsgpackHead::Bytes(self.read_size(1 << (marker - 0xc7))?.saturating_add(1)),
            0xca | 0xcb => MsgpackHead::Bytes(4 << (marker - 0xca)),
            0xcc..=0xcf => MsgpackHead::Scalar(Some(self.read_number(1 << (marker - 0xcc))?)),
            0xd0..=0xd3 => self.read_signed(1 << (marker - 0xd0))?,
            0xd4..=0xd8 => MsgpackHead::Bytes((1 << (marker - 0xd4)) + 1),
            0xd9..=0xdb => MsgpackHead::Text(self.read_size(1 << (marker - 0xd9))?),
            0xdc | 0xdd => MsgpackHead::Array(self.read_size(2 << (marker - 0xdc))?),
            0xde | 0xdf => MsgpackHead::Map(self.read_size(2 << (marker - 0xde))?),
        })
    }

    fn read_signed(&mut self, size: usize) -> Result<MsgpackHead> {
        let number = self.read_number(size)?;
        let is_negative = number >> (8 * size - 1) != 0;
        Ok(MsgpackHead::Scalar((!is_negative).then_some(number)))
    }

    /// The number of keys of a map; they and their values are read next.
    pub(crate) fn read_map(&mut self, wrong: &'static str) -> Result<usize> {
        let start = self.at;
        match self.read_head()? {
            MsgpackHead::Map(count) => Ok(count),
            _ => Err((start, wrong)),
        }
    }

    /// The number of values of an array, which are read next.
    pub(crate) fn read_array(&mut self, wrong: &'static str) -> Result<usize> {
        let start = self.at;
        match self.read_head()? {
            MsgpackHead::Array(count) => Ok(count),
            _ => Err((start, wrong)),
        }
    }

    /// The bytes of a text; `None`, and the value skipped, when it is something else.
    pub(crate) fn read_text(&mut self) -> Result<Option<&'a [u8]>> {
        let start = self.at;
        match self.read_head()? {
            MsgpackHead::Text(size) => self.take_bytes(size).map(Some),
            _ => {
                self.at = start;
                self.skip_value()?;
                Ok(None)
            }
        }
    }

    /// A non-negative number; a boolean is 0 or 1; `None`, and the value skipped, for anything else.
    pub(crate) fn read_unsigned(&mut self) -> Result<Option<u64>> {
        let start = self.at;
        match self.read_head()? {
            MsgpackHead::Scalar(number) => Ok(number),
            MsgpackHead::Boolean(flag) => Ok(Some(u64::from(flag))),
            _ => {
                self.at = start;
                self.skip_value()?;
                Ok(None)
            }
        }
    }

    /// Skips one value and everything in it.
    pub(crate) fn skip_value(&mut self) -> Result<()> {
        let mut left = 1_usize;
        while left > 0 {
            left -= 1;
            // Nearly all values of a kernel's arguments give their size in their first byte.
            let size = self.data.get(self.at).map_or(0, |marker| usize::from(SHORT[usize::from(*marker)]));
            if size != 0 && size <= self.end - self.at {
                self.at += size;
                continue;
            }
            match self.read_head()? {
                MsgpackHead::Scalar(_) | MsgpackHead::Boolean(_) => {}
                MsgpackHead::Text(size) | MsgpackHead::Bytes(size) => {
                    self.take_bytes(size)?;
                }
                // Each value has at least one byte, so the sum stays below the size of the file.
                MsgpackHead::Array(count) => left = self.add_pending(left, count)?,
                MsgpackHead::Map(count) => left = self.add_pending(left, count.saturating_mul(2))?,
            }
        }
        Ok(())
    }

    /// As [`ValueReader::skip`]; a value that is one of `known`, byte for byte, has its size.
    pub(crate) fn skip_like(&mut self, known: &mut Skipped) -> Result<()> {
        let rest = &self.data[self.at..self.end.max(self.at)];
        let mut filled = known.values.iter().filter(|range| !range.is_empty());
        if let Some(range) = filled.find(|range| rest.starts_with(&self.data[range.start..range.end])) {
            self.at += range.len();
            return Ok(());
        }
        let start = self.at;
        self.skip_value()?;
        known.values[known.next] = start..self.at;
        known.next = (known.next + 1) % known.values.len();
        Ok(())
    }

    fn add_pending(&self, left: usize, count: usize) -> Result<usize> {
        let left = left.saturating_add(count);
        if left > self.end - self.at { Err((self.at, CUT)) } else { Ok(left) }
    }
}

/// Appends a string in its shortest form, as compilers write it.
pub(crate) fn write_text(out: &mut Vec<u8>, text: &str) {
    let [a, b, c, d] = u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes();
    match text.len() {
        0..=31 => out.push(0xa0 | d),
        32..=0xff => out.extend([0xd9, d]),
        0x100..=0xffff => out.extend([0xda, c, d]),
        _ => out.extend([0xdb, a, b, c, d]),
    }
    out.extend_from_slice(text.as_bytes());
}

/// Appends a number in its shortest form, as compilers write it.
pub(crate) fn write_unsigned(out: &mut Vec<u8>, number: u64) {
    let bytes = number.to_be_bytes();
    match number {
        0..=0x7f => out.push(bytes[7]),
        0x80..=0xff => out.extend([0xcc, bytes[7]]),
        0x100..=0xffff => out.extend([0xcd, bytes[6], bytes[7]]),
        0x1_0000..=0xffff_ffff => {
            out.push(0xce);
            out.extend_from_slice(&bytes[4..]);
        }
        _ => {
            out.push(0xcf);
            out.extend_from_slice(&bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Skipped, ValueReader};
    use proptest::prelude::*;
    use rmpv::Value;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Nil),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (0u64..300).prop_map(Value::from),
            any::<f32>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "\\PC{0,50}".prop_map(Value::from),
            "[a-z]{250,300}".prop_map(Value::from),
            prop::collection::vec(any::<u8>(), 0..300).prop_map(Value::from),
            (any::<i8>(), prop::collection::vec(any::<u8>(), 0..20)).prop_map(|(kind, data)| Value::Ext(kind, data)),
        ];
        leaf.prop_recursive(4, 64, 20, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..20).prop_map(Value::Array),
                prop::collection::vec((inner.clone(), inner), 0..20).prop_map(Value::Map),
            ]
        })
    }

    fn encode(value: &Value) -> Vec<u8> {
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, value).unwrap();
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Output of another implementation is skipped exactly, and its leaves are read.
        #[test]
        fn values_of_another_implementation_are_read(value in value()) {
            let bytes = encode(&value);
            let reader = || ValueReader::new(&bytes, 0..bytes.len());
            let mut skipped = reader();
            prop_assert_eq!(skipped.skip_value(), Ok(()));
            prop_assert!(skipped.is_done());
            let (mut text, mut number) = (reader(), reader());
            prop_assert_eq!(text.read_text(), Ok(value.as_str().map(str::as_bytes)));
            prop_assert_eq!(number.read_unsigned(), Ok(value.as_bool().map(u64::from).or(value.as_u64())));
            prop_assert!(text.is_done() && number.is_done());
            prop_assert_eq!(reader().read_array("").ok(), value.as_array().map(Vec::len));
            prop_assert_eq!(reader().read_map("").ok(), value.as_map().map(Vec::len));
        }

        /// Repeated values, and others, are skipped exactly.
        #[test]
        fn values_that_are_known_are_passed_over(values in prop::collection::vec(value(), 1..12), cut in any::<prop::sample::Index>()) {
            let again = values.iter().chain(values.iter().rev()).chain(&values);
            let all: Vec<Vec<u8>> = again.map(encode).collect();
            let bytes = all.concat();
            let (mut reader, mut known, mut end) = (ValueReader::new(&bytes, 0..bytes.len()), Skipped::default(), 0);
            for value in &all {
                prop_assert_eq!(reader.skip_like(&mut known), Ok(()));
                end += value.len();
                prop_assert_eq!(reader.at(), end);
            }
            // The last one of them is known by now, and cut off.
            let last = all.last().map_or(0, Vec::len);
            let mut reader = ValueReader::new(&bytes, end - last..end - last + cut.index(last));
            prop_assert!(reader.skip_like(&mut known).is_err());
        }

        #[test]
        fn what_is_cut_off_is_a_fault(value in value(), cut in any::<prop::sample::Index>()) {
            let bytes = encode(&value);
            let end = cut.index(bytes.len());
            prop_assert!(ValueReader::new(&bytes, 0..end).skip_value().is_err());
        }

        #[test]
        fn random_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = ValueReader::new(&bytes, 0..bytes.len());
            while !reader.is_done() && reader.skip_value().is_ok() {}
        }
    }
}
