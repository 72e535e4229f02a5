//! A classifier for callers that want length and class alone, as fast as possible.
//!
//! The upper half of a first word determines the line, or a group of lines that the lower half distinguishes. For lines
//! of four bytes, two parts of the lower half are then mapped to their *sorts*: parts of one sort are equivalent for
//! all such lines. So the commonest instructions cost four loads from small tables, whatever their line and fields.
//! Longer lines are grouped into kinds, which facts about parts of the first two words exclude ([`super::facts`]).
//!
//! Worth its length: with the plain classifier in its place, rewriting 40 MB of code in which nothing is to be patched takes
//! 1.16 times the processor time, and code with sites 1.01 to 1.03 times.
//!
//! Invariants: the answer of a glance is that of the classifier for the same bytes.

use super::facts::{ClassFacts, ClassFactsBuilder};
use super::{ClassLine, ClassifiedInst, Classifier, FIELDS, LEAF, NOTHING};
use crate::tables::meaning;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU8;

/// The answer of a glance for an instruction: the length, and the class in the bits above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuickClass(NonZeroU8);

impl QuickClass {
    /// `None` where a length or a class is too large; constants to compare with are made from both.
    pub const fn new(bytes: u8, class: u8) -> Option<Self> {
        if bytes > LENGTH || class >= CLASSES {
            return None;
        }
        Self::said(class << CLASS_AT | bytes)
    }

    const fn said(said: u8) -> Option<Self> {
        match NonZeroU8::new(said) {
            Some(said) => Some(Self(said)),
            None => None,
        }
    }

    /// Length in bytes, literal included.
    #[inline(always)]
    pub const fn bytes(self) -> u8 {
        self.0.get() & LENGTH
    }

    /// The class of its table entry.
    #[inline(always)]
    pub const fn class(self) -> u8 {
        self.0.get() >> CLASS_AT
    }
}

#[derive(Debug, Clone)]
pub struct QuickClassifier {
    classifier: Classifier,
    /// For each upper half: the start of a row of `short`, or [`LONG`] and the number of a kind of longer lines.
    upper: Box<[u32; HALVES]>,
    /// The sorts of the two parts of a lower half; those of the second one in steps of [`SORTS`].
    sorts: ([u8; LOW], [u16; HIGH]),
    /// The answers; `None` falls back to the classifier.
    short: Vec<Option<QuickClass>>,
    facts: ClassFacts,
    kinds: Vec<LineKind>,
}

/// The answers for longer lines: facts that must be absent, and the answer then; the first that fits counts.
///
/// The second is for instructions with a literal, or for the line that is tried where the fixed bits of the
/// first do not match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LineKind([ConditionalAnswer; 2]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ConditionalAnswer {
    absent: u64,
    said: Option<QuickClass>,
}

const HALVES: usize = 1 << 16;
/// The lower nine bits, which hold a source, and the upper eight: another source, or an opcode. They share one bit.
const LOW: usize = 1 << 9;
const HIGH: usize = 1 << 8;
const LOW_MASK: u16 = 0x1ff;
const HIGH_AT: u8 = 8;
const LONG: u32 = 1 << 31;
/// The classifier walks its nodes.
const UNKNOWN: u32 = u32::MAX;
/// Sorts of the first part, at most.
const SORTS: usize = 32;
/// The bits of a length.
const LENGTH: u8 = 31;
const CLASS_AT: u8 = 5;
/// Classes from here on do not fit above a length.
const CLASSES: u8 = 8;

impl QuickClassifier {
    /// The same answers as `classifier`, and as many where its classes are below 8.
    pub fn new(classifier: Classifier) -> Self {
        let mut making = QuickTableBuilder::new(&classifier);
        let mut upper = filled_halves(UNKNOWN);
        for (number, upper) in (0..=u16::MAX).zip(upper.iter_mut()) {
            let node = classifier.nodes.get(usize::from(number >> 7)).copied().unwrap_or(NOTHING);
            *upper = making.upper_value(node, number);
        }
        let QuickTableBuilder { list: rows, asking, kinds, .. } = making;
        let facts = asking.finish();
        let differences: BTreeSet<LineDifference> = rows.iter().flat_map(HalfRow::differences).collect();
        let ValueSorts { sorts: low, like: like_low } = sort_values(&differences, true, &classifier);
        let ValueSorts { sorts: high, like: like_high } = sort_values(&differences, false, &classifier);
        // Targets whose lower halves are of too many sorts get no answers.
        if like_low.len() > SORTS {
            upper.fill(UNKNOWN);
        }
        let row = SORTS * like_high.len();
        upper.iter_mut().for_each(|one| scale_row_index(one, row));
        let mut short = vec![None; rows.len() * row];
        let places = rows.iter().flat_map(|row| like_high.iter().map(move |high| (row, *high)));
        for ((row, high), short) in places.zip(short.chunks_exact_mut(SORTS)) {
            let said = like_low.iter().map(|low| row.classify_row(LowerHalves { low: *low, high }, &classifier));
            short.iter_mut().zip(said).for_each(|(short, said)| *short = said);
        }
        let sorts = (core::array::from_fn(|at| low[at] as u8), core::array::from_fn(|at| high[at] * SORTS as u16));
        Self { classifier, upper, sorts, short, facts, kinds }
    }

    /// The instruction at the start of the bytes; `None` means that it has to be decoded.
    #[inline(always)]
    pub fn classify_bytes(&self, bytes: &[u8; 20]) -> Option<QuickClass> {
        let low = u64::from_le_bytes(*bytes.first_chunk()?);
        let upper = self.upper[(low as u32 >> 16) as usize];
        if upper < LONG {
            let half = low as u16;
            let (low, high) = (self.sorts.0[usize::from(half & LOW_MASK)], self.sorts.1[usize::from(half >> HIGH_AT)]);
            let place = upper as usize + usize::from(high) + usize::from(low);
            if let Some(Some(said)) = self.short.get(place) {
                return Some(*said);
            }
        } else if upper != UNKNOWN {
            let kind = self.kinds.get((upper & !LONG) as usize)?;
            let facts = self.facts.facts_of_word(low);
            let LineKind([first, second]) = kind;
            if facts & first.absent == 0 {
                return first.said;
            }
            if facts & second.absent == 0 {
                return second.said;
            }
        }
        self.classify_slowly(bytes)
    }

    /// Out of line, so that its register pressure does not affect the common paths.
    #[inline(never)]
    fn classify_slowly(&self, bytes: &[u8; 20]) -> Option<QuickClass> {
        self.classifier.classify_bytes(bytes).and_then(|ClassifiedInst { len, class, .. }| QuickClass::new(len, class))
    }
}

fn scale_row_index(upper: &mut u32, row: usize) {
    *upper = if *upper < LONG { *upper * row as u32 } else { *upper }
}

fn filled_halves(value: u32) -> Box<[u32; HALVES]> {
    let all = vec![value; HALVES].into_boxed_slice();
    all.try_into().unwrap_or_else(|_| Box::new([value; HALVES]))
}

/// The sorts of the values of one part of a lower half.
struct ValueSorts {
    /// The sort of each value.
    sorts: Vec<u16>,
    /// One half of each sort.
    like: Vec<u16>,
}

fn sort_values(differences: &BTreeSet<LineDifference>, low: bool, classifier: &Classifier) -> ValueSorts {
    let own: Vec<&LineDifference> = differences.iter().filter(|difference| difference.is_low() == low).collect();
    let (values, at) = if low { (LOW, 0) } else { (HIGH, HIGH_AT) };
    let (mut known, mut sorts, mut like) = (BTreeMap::new(), Vec::with_capacity(values), Vec::new());
    for value in 0..values {
        let half = (value << at) as u16;
        let answers: Vec<u8> = own.iter().map(|difference| difference.of(half, classifier)).collect();
        sorts.push(*known.entry(answers).or_insert_with(|| {
            like.push(half);
            (like.len() - 1) as u16
        }));
    }
    ValueSorts { sorts, like }
}

/// The meaning of lower halves for upper halves of one kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum HalfRow {
    /// No answer for any.
    Nothing,
    Line(ShortLine),
    /// A node distinguishes lines by some of their bits.
    Node {
        bits: LineBits,
        lines: Vec<Option<ShortLine>>,
    },
}

/// A line of four bytes, as far as the lower half matters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ShortLine {
    tests: Vec<HalfTest>,
    lengths: [u8; 8],
    class: u8,
}

/// A condition on one half of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum HalfTest {
    Fixed {
        mask: u16,
        value: u16,
    },
    /// A field, and the start of its meanings.
    Field {
        at: u8,
        bits: u16,
        set: u16,
    },
}

impl HalfTest {
    fn outcome_for_half(self, half: u16, classifier: &Classifier) -> u8 {
        match self {
            Self::Fixed { mask, value } => {
                if (half ^ value) & mask == 0 {
                    0
                } else {
                    meaning::NONE
                }
            }
            Self::Field { at, bits, set } => {
                let number = usize::from(set) + usize::from(half >> at & bits);
                classifier.meanings.get(number).copied().unwrap_or(meaning::NONE)
            }
        }
    }

    /// The conditions of the upper half and of the lower one; `None` if one spans both or is after the first word.
    fn line_tests(line: &ClassLine) -> Option<[Vec<Self>; 2]> {
        if line.mask >> 32 != 0 || line.lengths[0] != 4 || line.class >= CLASSES {
            return None;
        }
        let lower = [LOW_MASK, !LOW_MASK].map(|mask| Self::of_fixed_bits(line, 0, mask));
        let mut halves = [vec![Self::of_fixed_bits(line, 16, u16::MAX)], lower.to_vec()];
        for field in 0..usize::from(line.fields).min(FIELDS) {
            let (at, bits, set) = (line.at[field], line.bits[field], line.set[field]);
            let test = Self::Field { at: at % 16, bits, set };
            let is_inside = u32::from(at % 16) + 16 - bits.leading_zeros() <= 16;
            let half = halves.get_mut(usize::from(at < 16)).filter(|_| at < 32 && is_inside)?;
            if at < 16 && !test.is_low() && at < HIGH_AT {
                return None;
            }
            half.push(test);
        }
        Some(halves)
    }

    fn of_fixed_bits(line: &ClassLine, at: u32, mask: u16) -> Self {
        Self::Fixed { mask: (line.mask >> at) as u16 & mask, value: (line.value >> at) as u16 & mask }
    }

    /// Whether it tests nothing but the first part of a lower half.
    fn is_low(self) -> bool {
        match self {
            Self::Fixed { mask, .. } => mask & !LOW_MASK == 0,
            Self::Field { at, bits, .. } => u32::from(bits) << at & !u32::from(LOW_MASK) == 0,
        }
    }
}

impl ShortLine {
    /// The line, if it has four bytes and the upper half belongs to it.
    fn of(line: &ClassLine, upper: u16, classifier: &Classifier) -> Option<Self> {
        let [above, tests] = HalfTest::line_tests(line)?;
        let fits = above.iter().all(|test| test.outcome_for_half(upper, classifier) == 0);
        fits.then_some(Self { tests, lengths: line.lengths, class: line.class })
    }

    fn test_differences(&self) -> Vec<LineDifference> {
        self.tests.iter().map(|test| LineDifference::Test(*test)).collect()
    }

    fn classify_lower(&self, parts: LowerHalves, classifier: &Classifier) -> Option<QuickClass> {
        let outcomes =
            self.tests.iter().map(|test| test.outcome_for_half(parts.bits_for_half(test.is_low()), classifier));
        let meaning = outcomes.fold(0, |all, one| all | one);
        classify_meaning(&self.lengths, meaning, self.class)
    }
}

/// The answer for an instruction whose fields have this combined meaning.
fn classify_meaning(lengths: &[u8; 8], meaning: u8, class: u8) -> Option<QuickClass> {
    let len = lengths[usize::from(meaning & 7)];
    QuickClass::new(len, class).filter(|_| len != 0)
}

/// Two lower halves: one that supplies the first part, one that supplies the second.
#[derive(Clone, Copy)]
struct LowerHalves {
    low: u16,
    high: u16,
}

impl LowerHalves {
    fn bits_for_half(self, low: bool) -> u16 {
        if low { self.low } else { self.high }
    }
}

/// The bits of a half that distinguish lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LineBits {
    at: u8,
    width: u8,
}

impl LineBits {
    fn of(self, half: u16) -> usize {
        usize::from(half >> self.at) & ((1 << self.width) - 1)
    }

    fn is_low(self) -> bool {
        usize::from(self.at + self.width) <= LOW.ilog2() as usize
    }
}

impl HalfRow {
    fn classify_row(&self, parts: LowerHalves, classifier: &Classifier) -> Option<QuickClass> {
        match self {
            Self::Nothing => None,
            Self::Line(line) => line.classify_lower(parts, classifier),
            Self::Node { bits, lines } => {
                let line = lines.get(bits.of(parts.bits_for_half(bits.is_low())));
                line.and_then(Option::as_ref)?.classify_lower(parts, classifier)
            }
        }
    }

    /// The differences that distinguish two lower halves.
    fn differences(&self) -> Vec<LineDifference> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Line(line) => line.test_differences(),
            Self::Node { bits, lines } => {
                // Lines that are equal need no distinction.
                let kinds: BTreeSet<&Option<ShortLine>> = lines.iter().collect();
                let kinds: BTreeMap<_, u8> = kinds.into_iter().zip(0..).collect();
                let kinds_of = lines.iter().map(|line| kinds.get(line).copied().unwrap_or(0)).collect();
                let node = LineDifference::Node { bits: *bits, kinds: kinds_of };
                kinds
                    .keys()
                    .filter_map(|line| line.as_ref())
                    .flat_map(ShortLine::test_differences)
                    .chain([node])
                    .collect()
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum LineDifference {
    Test(HalfTest),
    Node { bits: LineBits, kinds: Vec<u8> },
}

impl LineDifference {
    fn of(&self, half: u16, classifier: &Classifier) -> u8 {
        match self {
            Self::Test(test) => test.outcome_for_half(half, classifier),
            Self::Node { bits, kinds } => kinds.get(bits.of(half)).copied().unwrap_or(0),
        }
    }

    fn is_low(&self) -> bool {
        match self {
            Self::Test(test) => test.is_low(),
            Self::Node { bits, .. } => bits.is_low(),
        }
    }
}

/// The answers for a line and the next one, for words whose `known` bits match them; `None` where facts do not suffice.
fn line_kind(
    asking: &mut ClassFactsBuilder<'_>,
    line: &ClassLine,
    next: Option<&ClassLine>,
    known: u64,
) -> Option<LineKind> {
    let need = asking.need_of_line(line, known)?;
    let second = match next {
        Some(next) => {
            ConditionalAnswer { absent: asking.need_of_line(next, known)?.alone, said: single_line_meaning(next) }
        }
        None => {
            let said = classify_meaning(&line.lengths, meaning::LITERAL32, line.class);
            ConditionalAnswer { absent: need.literal, said }
        }
    };
    Some(LineKind([ConditionalAnswer { absent: need.alone, said: single_line_meaning(line) }, second]))
}

fn line_of_leaf(classifier: &Classifier, leaf: u32) -> Option<&ClassLine> {
    classifier.lines.get((leaf & 0xffff) as usize)
}

fn single_line_meaning(line: &ClassLine) -> Option<QuickClass> {
    classify_meaning(&line.lengths, 0, line.class)
}

struct QuickTableBuilder<'s> {
    classifier: &'s Classifier,
    rows: BTreeMap<HalfRow, u32>,
    list: Vec<HalfRow>,
    /// The conditions on upper halves that reach a node.
    asked: BTreeMap<u32, Vec<HalfTest>>,
    /// Rows by node and by the results of the conditions for upper halves.
    known: BTreeMap<(u32, u64), u32>,
    asking: ClassFactsBuilder<'s>,
    kinds: Vec<LineKind>,
    /// The values for leaves of longer lines, by the bits of lower halves that are known.
    known_kinds: BTreeMap<(u32, u16), u32>,
}

impl<'s> QuickTableBuilder<'s> {
    fn new(classifier: &'s Classifier) -> Self {
        Self {
            classifier,
            rows: BTreeMap::new(),
            list: Vec::new(),
            asked: BTreeMap::new(),
            known: BTreeMap::new(),
            asking: ClassFactsBuilder::new(&classifier.meanings),
            kinds: Vec::new(),
            known_kinds: BTreeMap::new(),
        }
    }

    /// The value for an upper half that reaches a node.
    fn upper_value(&mut self, mut node: u32, upper: u16) -> u32 {
        loop {
            if node & LEAF != 0 {
                return self
                    .row_of_node(node, &[node], None, upper)
                    .unwrap_or_else(|| self.leaf_kind(node, (upper, 0), 0));
            }
            let bits = LineBits { at: (node >> 24 & 63) as u8, width: (node >> 20 & 15) as u8 };
            let first = (node & 0xf_ffff) as usize;
            let index = match bits {
                LineBits { width: 0, .. } => 0,
                LineBits { at, width } if at + width <= 16 => {
                    let leaves = self.classifier.nodes.get(first..first + (1 << width)).unwrap_or_default();
                    let is_inside = bits.is_low() || at >= HIGH_AT;
                    let row = is_inside.then(|| self.row_of_node(node, leaves, Some(bits), upper));
                    return row.flatten().unwrap_or(UNKNOWN);
                }
                LineBits { at, width } if at < 16 && at + width <= 32 => return self.common_kind(first, bits, upper),
                LineBits { at, width } if at < 16 || at + width > 32 => return UNKNOWN,
                LineBits { at, width } => LineBits { at: at - 16, width }.of(upper),
            };
            node = self.classifier.nodes.get(first + index).copied().unwrap_or(NOTHING);
        }
    }

    /// The kind of all longer lines that bits of both halves select, if they are of one.
    fn common_kind(&mut self, first: usize, LineBits { at, width }: LineBits, upper: u16) -> u32 {
        let below = 1usize << (16 - at);
        let above = usize::from(upper) & ((1 << (at + width - 16)) - 1);
        let start = first + above * below;
        let leaves = self.classifier.nodes.get(start..start + below).unwrap_or_default();
        let bits = (below as u16 - 1) << at;
        let mut kinds = (0..).zip(leaves).map(|(number, leaf)| match leaf & LEAF {
            0 => UNKNOWN,
            _ => self.leaf_kind(*leaf, (upper, number << at), bits),
        });
        let Some(one) = kinds.next() else { return UNKNOWN };
        if kinds.all(|other| other == one) { one } else { UNKNOWN }
    }

    /// The kind of a longer line, for a first word with the upper half and those bits of the lower one.
    fn leaf_kind(&mut self, leaf: u32, (upper, lower): (u16, u16), bits: u16) -> u32 {
        let known = 0xffff_0000 | u64::from(bits);
        let Some(line) =
            self.classifier.lines.get((leaf & 0xffff) as usize).filter(|line| is_own_line(line, upper, lower, known))
        else {
            return UNKNOWN;
        };
        // Where only its fixed bits are tested, the next one is for words that do not match.
        let next = self.classifier.lines.get(usize::from(line.next)).filter(|_| line.fields == 0);
        if next.is_some_and(|next| !is_own_line(next, upper, lower, known)) {
            return UNKNOWN;
        }
        *self.known_kinds.entry((leaf, bits)).or_insert_with(|| {
            let Some(kind) = line_kind(&mut self.asking, line, next, known) else { return UNKNOWN };
            let number = self.kinds.iter().position(|known| *known == kind).unwrap_or(self.kinds.len());
            if number == self.kinds.len() {
                self.kinds.push(kind);
            }
            LONG | number as u32
        })
    }

    /// The row for the leaves that bits of a node select, if one of them is a line for which there are rows.
    fn row_of_node(&mut self, node: u32, leaves: &[u32], bits: Option<LineBits>, upper: u16) -> Option<u32> {
        let classifier = self.classifier;
        let asked = self.asked.entry(node).or_insert_with(|| {
            let lines = leaves.iter().filter_map(|leaf| line_of_leaf(classifier, *leaf));
            let tests = lines.filter_map(HalfTest::line_tests);
            let tests: BTreeSet<HalfTest> = tests.flat_map(|[above, _]| above).collect();
            let all = leaves.iter().all(|leaf| leaf & LEAF != 0);
            tests.into_iter().filter(|_| all).collect()
        });
        if asked.is_empty() {
            return None;
        }
        // Three bits hold a meaning.
        let fits = asked.len() <= 21;
        let answers =
            asked.iter().fold(1u64, |all, test| all << 3 | u64::from(test.outcome_for_half(upper, classifier)));
        if let Some(known) = self.known.get(&(node, answers)).filter(|_| fits) {
            return Some(*known);
        }
        let mut lines: Vec<Option<ShortLine>> =
            leaves.iter().map(|leaf| ShortLine::of(line_of_leaf(classifier, *leaf)?, upper, classifier)).collect();
        let row = match bits {
            Some(bits) => HalfRow::Node { bits, lines },
            None => lines.pop()?.map_or(HalfRow::Nothing, HalfRow::Line),
        };
        let number = self.row_number(row);
        if fits {
            self.known.insert((node, answers), number);
        }
        Some(number)
    }

    fn row_number(&mut self, row: HalfRow) -> u32 {
        if let Some(known) = self.rows.get(&row) {
            return *known;
        }
        let number = self.list.len() as u32;
        self.list.push(row.clone());
        self.rows.insert(row, number);
        number
    }
}

fn is_own_line(line: &ClassLine, upper: u16, lower: u16, known: u64) -> bool {
    let word = u64::from(upper) << 16 | u64::from(lower);
    (word ^ line.value) & line.mask & known == 0 && line.lengths[0] != 4 && line.class < CLASSES
}
