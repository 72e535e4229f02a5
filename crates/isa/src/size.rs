//! The length of an instruction without decoding it.
//!
//! Invariants: on everything that [`Isa::decode`] accepts the length is the same; bytes beyond the input read as 0.

use crate::decode::{Undecoded, walk, words};
use crate::isa::Isa;
use crate::tables::{SIZE_NODES, SIZE_ROOTS, SIZE_RULES};

const NOTHING: u8 = u8::MAX;
/// Entries of different lengths match the same words (16-byte forms whose halves decode alone).
const DECODE: u8 = u8::MAX;

/// How the length follows from the words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SizeRule {
    bytes: u8,
    /// How many sources may ask for a literal, or [`DECODE`].
    count: u8,
    /// 254 in a source means a literal of 64 bits.
    long: bool,
    /// The literal is in the encoding: 255 means no more bytes.
    inside: bool,
    /// Place of the source that may announce a DPP or SDWA word; 255 if there is none.
    announces: u8,
    at: [u8; 4],
    mask: [u16; 4],
}

pub(crate) const fn z(
    bytes: u8,
    count: u8,
    long: bool,
    inside: bool,
    announces: u8,
    at: [u8; 4],
    mask: [u16; 4],
) -> SizeRule {
    SizeRule { bytes, count, long, inside, announces, at, mask }
}

impl Isa {
    /// The length in bytes of the instruction at the start of `bytes`; `None` if not even its encoding is known, or if
    /// it does not end within `bytes`.
    #[inline]
    pub fn size(self, bytes: &[u8]) -> Option<u8> {
        let words = words(bytes);
        let rule = self.size_rule(&words)?;
        let size = match rule.count {
            0 if rule.announces == NOTHING => rule.bytes,
            DECODE => self.decoded_size(bytes)?,
            _ => rule.bytes + rule.more(&words),
        };
        (size != 0 && usize::from(size) <= bytes.len()).then_some(size)
    }

    /// The length that the words say, whether or not they decode.
    pub(crate) fn size_of(self, words: &[u32; 5]) -> Option<u8> {
        let rule = self.size_rule(words).filter(|rule| rule.bytes != 0)?;
        Some(if rule.count == DECODE { rule.bytes } else { rule.bytes + rule.more(words) })
    }

    #[inline]
    fn size_rule(self, words: &[u32; 5]) -> Option<&'static SizeRule> {
        let root = SIZE_ROOTS.get(usize::from(self.setting().group)).copied()?;
        SIZE_RULES.get((walk(&SIZE_NODES, root, words) & 0xff_ffff) as usize)
    }

    #[cold]
    fn decoded_size(self, bytes: &[u8]) -> Option<u8> {
        match self.decode(bytes) {
            Ok(inst) => Some(inst.len()),
            Err(Undecoded::Opaque { len }) => len,
            Err(Undecoded::Truncated { .. }) => None,
        }
    }
}

impl SizeRule {
    /// Bytes beyond the encoding's own.
    #[inline]
    fn more(&self, words: &[u32; 5]) -> u8 {
        let low = u64::from(words[0]) | u64::from(words[1]) << 32;
        let high = u64::from(words[2]) | u64::from(words[3]) << 32;
        let (mut short, mut long) = (false, false);
        let announced =
            matches!(low >> (self.announces & 63) & 511, 233 | 234 | 249 | 250) && self.announces != NOTHING;
        for number in 0..usize::from(self.count).min(4) {
            let half = if self.at[number] < 64 { low } else { high };
            let raw = (half >> (self.at[number] & 63)) as u16 & self.mask[number];
            short |= raw == 255;
            long |= raw == 254;
        }
        match (short, long && self.long) {
            // A literal of 64 bits lies inside a 12-byte form.
            (_, true) if announced => 4,
            (_, true) if self.bytes >= 12 => 0,
            (_, true) => 8,
            (true, _) if !self.inside => 4 + 4 * u8::from(announced),
            _ => 4 * u8::from(announced),
        }
    }
}
