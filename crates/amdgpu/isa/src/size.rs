//! The length of an instruction without decoding it.
//!
//! Terms: the *prefix* is the top nine bits of the first word. For nearly all instructions it determines the length,
//! unless a source requests a literal or announces a DPP or SDWA word; a trie and exact rules cover the rest.
//!
//! Invariants: on everything that [`Isa::decode`] accepts the length is the same; bytes beyond the input read as 0.

use crate::decode::{Undecoded, words_of_bytes};
use crate::isa::Isa;
use hotswap_isa_tables::{SIZE_NODES, SIZE_PREFIXES, SIZE_ROOTS, SIZE_RULES, SizeRuleData};

const NOTHING: u8 = u8::MAX;
/// Entries of different lengths match the same words (16-byte forms whose halves decode alone).
const DECODE: u8 = u8::MAX;
const LEAF: u32 = 1 << 31;
/// 233, 234, 249 and 250 as bits from 224 on.
const ANNOUNCED: u32 = 1 << 9 | 1 << 10 | 1 << 25 | 1 << 26;

/// Tests all sources at once for values that may change the length: fields that are all 0 after subtracting `pattern`,
/// found by the borrow that subtracting 1 from each field leaves in its highest bit.
#[derive(Debug, Clone, Copy)]
struct SizeTest {
    mask: u64,
    pattern: u64,
    lowest: u64,
    highest: u64,
    /// Position of the source that may announce a DPP or SDWA word, and its values that do, as bits from 224 on.
    announced_at: u8,
    announced: u32,
}

impl SizeTest {
    const NEVER: Self = Self { mask: 0, pattern: 0, lowest: 0, highest: 0, announced_at: 0, announced: 0 };
    /// Bit 0 of the remaining word is 0 for any word.
    const ALWAYS: Self = Self { lowest: 1, highest: 1, ..Self::NEVER };

    const fn new(count: u8, long: bool, announces: u8, at: [u8; 4], mask: [u16; 4]) -> Self {
        if count == DECODE || announces != NOTHING && count == 0 {
            return Self::ALWAYS;
        }
        let (mut test, mut number) = (Self::NEVER, 0);
        while number < count as usize {
            let place = at[number];
            // 255, or 254 and 255.
            let ignored = long as u8;
            let above = mask[number] >> ignored << ignored;
            let top = 15 - mask[number].leading_zeros() as u8;
            if place + top >= 64 {
                return Self::ALWAYS;
            }
            test.mask |= (above as u64) << place;
            test.pattern |= (0xff & above as u64) << place;
            test.lowest |= 1 << (place + ignored);
            test.highest |= 1 << (place + top);
            if place == announces {
                (test.announced_at, test.announced) = (place, ANNOUNCED);
            }
            number += 1;
        }
        test
    }

    #[inline]
    fn finds_literal(&self, low: u64) -> bool {
        let rest = (low ^ self.pattern) & self.mask;
        let literal = rest.wrapping_sub(self.lowest) & !rest & self.highest != 0;
        let source = (low >> (self.announced_at & 63)) as u32;
        let announced = (source & 0x1e0 == 0xe0) & (self.announced >> (source & 31) & 1 != 0);
        literal | announced
    }
}

/// The rule that derives the length from the words.
#[derive(Debug, Clone, Copy)]
struct SizeRule {
    bytes: u8,
    /// The number of sources that may request a literal, or [`DECODE`].
    count: u8,
    /// 254 in a source means a literal of 64 bits.
    long: bool,
    /// The literal is in the encoding: 255 means no more bytes.
    inside: bool,
    /// Position of the source that may announce a DPP or SDWA word; 255 if it does not exist.
    announces: u8,
    at: [u8; 4],
    mask: [u16; 4],
    test: SizeTest,
}

/// The rules of the tables, each with its test.
static RULES: [SizeRule; SIZE_RULES.len()] = {
    let mut rules = [NO_RULE; SIZE_RULES.len()];
    let mut number = 0;
    while number < rules.len() {
        rules[number] = SizeRule::new(&SIZE_RULES[number]);
        number += 1;
    }
    rules
};

impl Isa {
    /// The length in bytes of the instruction at the start of `bytes`; `None` if not even its encoding is known, or if
    /// it does not end within `bytes`.
    #[inline]
    pub fn instruction_size(self, bytes: &[u8]) -> Option<u8> {
        // No encoding is longer than 16 bytes without a literal.
        let first = bytes.first_chunk::<8>().filter(|_| bytes.len() >= 16);
        if let (Some(first), Some(prefixes)) = (first, SIZE_PREFIXES.get(self.group())) {
            let low = u64::from_le_bytes(*first);
            let prefix = (low as u32 >> 23) as usize;
            let size = prefixes.bytes[prefix];
            let rule = RULES.get(usize::from(prefixes.rules[prefix])).unwrap_or(&NO_RULE);
            if size != 0 && !rule.test.finds_literal(low) {
                // A constant after a predicted branch lets the next instruction begin before this length is known; as a
                // value it would have to be loaded from memory first (745 against 1,300 MB/s).
                return Some(match size {
                    4 => core::hint::black_box(4),
                    8 => core::hint::black_box(8),
                    size => size,
                });
            }
        }
        self.exact_size(bytes)
    }

    /// As [`Isa::size`], for prefixes that do not determine the length.
    fn exact_size(self, bytes: &[u8]) -> Option<u8> {
        let [low, high] = match bytes.first_chunk::<16>().map(|first| u128::from_le_bytes(*first)) {
            Some(first) => [first as u64, (first >> 64) as u64],
            None => word_halves(&words_of_bytes(bytes)),
        };
        let rule = self.size_rule(self.size_node(low, high));
        if rule.count == DECODE {
            return self.decoded_size(bytes);
        }
        fitting_size(rule.bytes + rule.extra_bytes(low, high), bytes).filter(|_| rule.bytes != 0)
    }

    /// The length that the words determine, whether or not they decode.
    pub(crate) fn size_of(self, words: &[u32; 5]) -> Option<u8> {
        let [low, high] = word_halves(words);
        let rule = self.size_rule(self.size_node(low, high));
        let more = if rule.count == DECODE { 0 } else { rule.extra_bytes(low, high) };
        (rule.bytes != 0).then_some(rule.bytes + more)
    }

    #[inline]
    fn group(self) -> usize {
        usize::from(self.subtarget().group)
    }

    #[inline]
    fn size_rule(self, node: u32) -> &'static SizeRule {
        RULES.get((node & 0xff_ffff) as usize).unwrap_or(&NO_RULE)
    }

    /// The leaf that the words select. The first node is indexed by the top nine bits of the first word.
    #[inline]
    fn size_node(self, low: u64, high: u64) -> u32 {
        let root = SIZE_ROOTS.get(self.group()).copied().unwrap_or(LEAF);
        let mut node = SIZE_NODES[((root & 0xf_ffff) + (low as u32 >> 23)) as usize & (SIZE_NODES.len() - 1)];
        while node & LEAF == 0 {
            let half = if node >> 30 & 1 == 0 { low } else { high };
            let index = (half >> (node >> 24 & 63)) as u32 & ((1 << (node >> 20 & 15)) - 1);
            node = SIZE_NODES[((node & 0xf_ffff) + index) as usize & (SIZE_NODES.len() - 1)];
        }
        node
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

const NO_RULE: SizeRule = SizeRule::new(&SizeRuleData {
    bytes: 0,
    count: 0,
    long: false,
    inside: false,
    announces: NOTHING,
    at: [0; 4],
    mask: [0; 4],
});

#[inline]
fn word_halves(words: &[u32; 5]) -> [u64; 2] {
    [join_dword_halves(words[0], words[1]), join_dword_halves(words[2], words[3])]
}

fn join_dword_halves(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

#[inline]
fn fitting_size(size: u8, bytes: &[u8]) -> Option<u8> {
    (usize::from(size) <= bytes.len()).then_some(size)
}

impl SizeRule {
    const fn new(rule: &SizeRuleData) -> Self {
        let SizeRuleData { bytes, count, long, inside, announces, at, mask } = *rule;
        let test = SizeTest::new(count, long, announces, at, mask);
        Self { bytes, count, long, inside, announces, at, mask, test }
    }

    /// Bytes in addition to the encoding's own.
    #[inline]
    fn extra_bytes(&self, low: u64, high: u64) -> u8 {
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
            // A literal of 64 bits is inside a 12-byte form.
            (_, true) if announced => 4,
            (_, true) if self.bytes >= 12 => 0,
            (_, true) => 8,
            (true, _) if !self.inside => 4 + 4 * u8::from(announced),
            _ => 4 * u8::from(announced),
        }
    }
}
