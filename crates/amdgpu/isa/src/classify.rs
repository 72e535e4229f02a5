//! Lengths and classes of instructions without full decoding, for passes that scan much code for few instructions.
//!
//! The caller that builds a classifier assigns a class to each table entry, with fields that must not hold a certain number
//! or a scalar register. A classifier is the part of the tables that one target needs, laid out so that most instructions
//! cost a few loads.
//!
//! A classifier for several targets answers where all of them agree.
//!
//! Invariants: an answer of a classifier agrees with [`Isa::decode`] on the same bytes: an instruction of that class and
//! length, with none of its fields holding its excluded number. Anything less simple does not get an answer.
//! [`Inst`](crate::Inst) is never made.

mod facts;
mod glance;

pub use glance::{QuickClass, QuickClassifier};

use crate::decode::{SECOND_PASS, other_candidates};
use crate::effects::{NamedField, NamedRegisters};
use crate::isa::Isa;
use crate::tables::{Piece, TableEntry, check, meaning};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use hotswap_isa_tables::{ACCEPT, AVAILABLE, CHECKS, ENTRIES, EntryData, NODES, PIECES, table_part};

/// The answer of a classifier for an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassifiedInst {
    /// Length in bytes, literal included.
    pub len: u8,
    /// The class of its table entry.
    pub class: u8,
    pub entry: TableEntry,
}

/// The caller's classification of one table entry.
#[derive(Debug, Clone, Default)]
pub struct ClassRule {
    /// The class of its instructions; `None` for entries whose instructions all need decoding.
    pub class: Option<u8>,
    /// Fields and numbers: instructions in which a field holds its number need decoding as well.
    pub except: Vec<(&'static [Piece], u64)>,
    /// Instructions that name a scalar register or VCC, or write VCC or SCC implicitly, need decoding as well.
    pub without_scalars: bool,
}

#[derive(Debug, Clone)]
pub struct Classifier {
    /// The decoder's nodes, but a leaf is the number of a line. The first 512 are indexed by the top nine bits
    /// of the first word.
    nodes: Vec<u32>,
    lines: Vec<ClassLine>,
    /// The meanings of field values.
    meanings: Vec<u8>,
}

/// A table entry with its conditions. Aligned to be within one cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct ClassLine {
    value: u64,
    mask: u64,
    at: [u8; FIELDS],
    bits: [u16; FIELDS],
    /// Start of the meanings of each field.
    set: [u16; FIELDS],
    /// Length in bytes for the combined meaning of the fields; 0 where the decoder has to determine it.
    lengths: [u8; 8],
    class: u8,
    entry: TableEntry,
    /// The number of fields.
    fields: u8,
    /// The next line to try where the fixed bits do not match, or [`NONE`].
    next: u16,
}

/// The number of no line.
const NONE: u16 = u16::MAX;

impl ClassLine {
    fn has_answers(&self) -> bool {
        self.lengths != [0; 8]
    }
}

/// Fields that are checked; unused ones accept everything.
const FIELDS: usize = 4;
const LEAF: u32 = 1 << 31;
/// A leaf without a line.
const NOTHING: u32 = LEAF | 0xffff;
/// The bits that index the first tables.
const ROOT: u64 = 0xff80_0000;
/// A table of the decoder that is indexed by the third word or the fourth.
const HIGH: u32 = 1 << 30;

impl Classifier {
    /// The classifier for code of `isa`. `grade` is called for each table entry that it needs, perhaps more than once.
    pub fn new(isa: Isa, grade: impl FnMut(TableEntry) -> ClassRule) -> Self {
        Self::shared_by(&[isa], grade)
    }

    /// The classifier for code that is scanned as code of several targets at once. It gives no answers if their lookup
    /// tables differ, and none for values of fields that they do not accept alike.
    pub fn shared_by(isas: &[Isa], grade: impl FnMut(TableEntry) -> ClassRule) -> Self {
        match isas {
            [first, others @ ..] if others.iter().all(|other| decodes_alike(other, first)) => {
                Self::build_classifier(*first, others, grade)
            }
            _ => Self { nodes: Vec::new(), lines: Vec::new(), meanings: Vec::new() },
        }
    }

    fn build_classifier(isa: Isa, others: &[Isa], grade: impl FnMut(TableEntry) -> ClassRule) -> Self {
        let mut making = ClassifierBuilder {
            isa,
            others,
            grade,
            nodes: Vec::new(),
            tables: BTreeMap::new(),
            lines: Vec::new(),
            leaves: BTreeMap::new(),
            chains: BTreeMap::new(),
            // The one value of a field of no bits.
            meanings: vec![0],
            sets: BTreeMap::new(),
        };
        let root = (isa.subtarget().root & 0xf_ffff) as usize;
        making.nodes.resize(512, NOTHING);
        for number in 0..512 {
            let node = making.add_node(NODES.get(root + number).copied().unwrap_or(NOTHING), ROOT);
            making.nodes[number] = making.wrap_in_table(node);
        }
        let ClassifierBuilder { nodes, lines, meanings, .. } = making;
        Self { nodes, lines, meanings }
    }

    /// The instruction at the start of the bytes; `None` means that it has to be decoded.
    #[inline(always)]
    pub fn classify_bytes(&self, bytes: &[u8; 20]) -> Option<ClassifiedInst> {
        let low = u64::from_le_bytes(*bytes.first_chunk()?);
        let mut node = self.child_node(*self.nodes.get((low as u32 >> 23) as usize)?, low)?;
        while node & LEAF == 0 {
            node = self.child_node(node, low)?;
        }
        self.answer_of_line(node & 0xffff, low)
    }

    /// The answer of a line for the first eight bytes.
    #[inline(always)]
    fn answer_of_line(&self, number: u32, low: u64) -> Option<ClassifiedInst> {
        let mut line = self.lines.get(number as usize)?;
        if (low ^ line.value) & line.mask != 0 {
            line = self.next_matching_line(line, low)?;
        }
        // The processor predicts the next line anyway, and with it the amount of work here.
        let meaning = match line.fields {
            0 => 0,
            1 | 2 => line_field_meaning(0, self, low, line) | line_field_meaning(1, self, low, line),
            _ => {
                line_field_meaning(0, self, low, line)
                    | line_field_meaning(1, self, low, line)
                    | line_field_meaning(2, self, low, line)
                    | line_field_meaning(3, self, low, line)
            }
        };
        let len = line.lengths[usize::from(meaning & 7)];
        (len != 0).then_some(ClassifiedInst { len, class: line.class, entry: line.entry })
    }

    /// The first line after this one whose fixed bits match.
    #[inline(never)]
    fn next_matching_line(&self, line: &ClassLine, low: u64) -> Option<&ClassLine> {
        core::iter::successors(self.line_after(line), |line| self.line_after(line))
            .find(|line| (low ^ line.value) & line.mask == 0)
    }

    #[inline(always)]
    fn line_after(&self, line: &ClassLine) -> Option<&ClassLine> {
        self.lines.get(usize::from(line.next))
    }

    #[inline(always)]
    fn child_node(&self, node: u32, low: u64) -> Option<u32> {
        let index = (low >> (node >> 24 & 63)) as u32 & ((1 << (node >> 20 & 15)) - 1);
        self.nodes.get(((node & 0xf_ffff) + index) as usize).copied()
    }
}

fn decodes_alike(one: &Isa, other: &Isa) -> bool {
    one.subtarget().root == other.subtarget().root && one.longest() == other.longest()
}

fn line_field_meaning(number: usize, classifier: &Classifier, low: u64, line: &ClassLine) -> u8 {
    let raw = (low >> (line.at[number] & 63)) as u16 & line.bits[number];
    classifier.meanings.get(usize::from(line.set[number]) + usize::from(raw)).copied().unwrap_or(meaning::NONE)
}

/// A line of a sequence that is tried.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ChainLink {
    entry: TableEntry,
    has_answers: bool,
}

/// A classifier under construction.
struct ClassifierBuilder<'i, G> {
    isa: Isa,
    /// Targets that must have the same lines.
    others: &'i [Isa],
    grade: G,
    nodes: Vec<u32>,
    /// Tables that exist already, by the decoder's number and the bits that were tested before.
    tables: BTreeMap<(u32, u64), u32>,
    lines: Vec<ClassLine>,
    /// Leaves that exist already, by the decoder's number and the bits that were tested.
    leaves: BTreeMap<(u32, u64), u32>,
    /// Lines that exist already, by the sequence of entries that are tried, and whether they answer.
    chains: BTreeMap<Vec<ChainLink>, u32>,
    meanings: Vec<u8>,
    /// Lists of meanings that exist already.
    sets: BTreeMap<FieldConditions, Option<u16>>,
}

impl<G: FnMut(TableEntry) -> ClassRule> ClassifierBuilder<'_, G> {
    /// The node for one of the decoder's, below tables that tested the bits `decided`.
    fn add_node(&mut self, node: u32, decided: u64) -> u32 {
        if node & LEAF != 0 {
            return self.add_leaf(node, decided);
        }
        if node & HIGH != 0 {
            return NOTHING;
        }
        if let Some(known) = self.tables.get(&(node, decided)) {
            return *known;
        }
        let (first, count) = ((node & 0xf_ffff) as usize, 1usize << (node >> 20 & 15));
        let start = self.nodes.len();
        self.nodes.resize(start + count, NOTHING);
        let below = decided | (count as u64 - 1) << (node >> 24 & 63);
        for number in 0..count {
            let child = self.add_node(NODES.get(first + number).copied().unwrap_or(NOTHING), below);
            self.nodes[start + number] = child;
        }
        let made = node & !0xf_ffff | start as u32;
        self.tables.insert((node, decided), made);
        made
    }

    /// A table of no bits around a leaf: all first nodes are tables, so that the commonest paths are equally long.
    fn wrap_in_table(&mut self, node: u32) -> u32 {
        if node & LEAF == 0 {
            return node;
        }
        let made = self.nodes.len() as u32;
        self.nodes.push(node);
        made
    }

    /// The first candidate whose fixed bits match counts, as in the decoder's fast path.
    fn add_leaf(&mut self, leaf: u32, decided: u64) -> u32 {
        if let Some(known) = self.leaves.get(&(leaf, decided)) {
            return *known;
        }
        let mut lines: Vec<ClassLine> = Vec::new();
        for id in core::iter::once(leaf as u16).chain(other_candidates(leaf).iter().copied()) {
            lines.extend(self.candidate_line(id));
            // Everything that reaches this leaf has these bits.
            if lines.last().is_some_and(|line| line.mask & !decided == 0) {
                break;
            }
        }
        lines.truncate(lines.iter().rposition(ClassLine::has_answers).map_or(0, |last| last + 1));
        let made = self.add_chain(lines);
        self.leaves.insert((leaf, decided), made);
        made
    }

    /// A leaf for lines that are tried one after the other.
    fn add_chain(&mut self, mut lines: Vec<ClassLine>) -> u32 {
        let start = self.lines.len();
        let Some(others) = lines.len().checked_sub(1).filter(|others| start + others < usize::from(NONE)) else {
            return NOTHING;
        };
        let names = lines.iter().map(|line| ChainLink { entry: line.entry, has_answers: line.has_answers() }).collect();
        if let Some(known) = self.chains.get(&names) {
            return *known;
        }
        (start + 1..).zip(&mut lines[..others]).for_each(|(next, line)| line.next = next as u16);
        self.lines.append(&mut lines);
        self.chains.insert(names, LEAF | start as u32);
        LEAF | start as u32
    }

    /// The line of a candidate; `None` if no target has it. A line that is not for all of them, or whose instructions
    /// need decoding, lacks lengths.
    fn candidate_line(&mut self, id: u16) -> Option<ClassLine> {
        let number = id & !SECOND_PASS;
        let entry = ENTRIES.get(usize::from(number))?;
        if !is_available(entry, &self.isa) && !self.others.iter().any(|isa| is_available(entry, isa)) {
            return None;
        }
        let line = ClassLine {
            value: entry.value,
            mask: entry.mask,
            at: [0; FIELDS],
            bits: [0; FIELDS],
            set: [0; FIELDS],
            lengths: [0; 8],
            class: 0,
            entry: TableEntry::new(number),
            fields: 0,
            next: NONE,
        };
        // Candidates of the second pass find their literals elsewhere.
        let is_for_all =
            id == number && is_available(entry, &self.isa) && self.others.iter().all(|isa| is_available(entry, isa));
        let whole = if is_for_all { self.complete_line(entry, line) } else { None };
        Some(whole.unwrap_or(line))
    }

    /// The line with fields and lengths; `None` where instructions need decoding.
    fn complete_line(&mut self, entry: &EntryData, mut line: ClassLine) -> Option<ClassLine> {
        let ClassRule { class, except, without_scalars } = (self.grade)(line.entry);
        let mut fields = ClassFields::of(entry)?;
        fields.exclude_numbers(&except)?;
        if without_scalars {
            fields.without_scalars(line.entry, self.isa)?;
        }
        line.class = class?;
        line.lengths = fields.lengths_by_meaning(entry.bytes, self.isa.longest());
        line.fields = fields.list.len() as u8;
        for (number, PlacedConditions { at, field }) in fields.list.into_iter().enumerate() {
            line.set[number] = self.meaning_set_start(field)?;
            (line.at[number], line.bits[number]) = (at, field.bits);
        }
        Some(line)
    }

    /// The start of a list of meanings.
    fn meaning_set_start(&mut self, field: FieldConditions) -> Option<u16> {
        if let Some(known) = self.sets.get(&field) {
            return *known;
        }
        let start = self.meanings.len();
        for raw in 0..=field.bits {
            let meaning = self.field_meaning(field, usize::from(raw) << field.from);
            let excepted = field.except == Some(u64::from(raw)) || is_scalar_field(&field.named, raw, &self.isa);
            self.meanings.push(if excepted { meaning::NONE } else { meaning });
        }
        let made = u16::try_from(start).ok();
        self.sets.insert(field, made);
        made
    }

    /// The meaning of a field with this number: the one that it has on all targets.
    fn field_meaning(&self, field: FieldConditions, number: usize) -> u8 {
        let Some(set) = field.set else { return 0 };
        let own = accepted_meaning_in(&self.isa, set, number);
        if self.others.iter().all(|other| accepted_meaning_in(other, set, number) == own) { own } else { meaning::NONE }
    }
}

fn is_scalar_field(field_named: &Option<NamedRegisters>, raw: u16, isa: &Isa) -> bool {
    field_named.is_some_and(|named| named.is_scalar(raw, *isa))
}

fn accepted_meaning_in(isa: &Isa, set: u16, number: usize) -> u8 {
    let place = isa.subtarget().accept as usize + usize::from(set) + number;
    ACCEPT.get(place).copied().unwrap_or(meaning::NONE)
}

/// The conditions on a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FieldConditions {
    bits: u16,
    /// The position of its bits in the number that they are part of, if the others are 0.
    from: u8,
    set: Option<u16>,
    except: Option<u64>,
    /// The registers that its values name, if scalar registers are excluded.
    named: Option<NamedRegisters>,
}

fn is_available(entry: &EntryData, isa: &Isa) -> bool {
    let number = isa.subtarget().available as usize + usize::from(entry.need);
    AVAILABLE.get(number).is_some_and(|there| *there != 0)
}

/// A run of bits of the first eight bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct BitRun {
    at: u8,
    width: u8,
}

/// The conditions of the field that begins at a bit.
struct PlacedConditions {
    at: u8,
    field: FieldConditions,
}

impl PlacedConditions {
    fn is_of_whole_bits(&self, at: u8, bits: u16) -> bool {
        (self.at, self.field.bits, self.field.from) == (at, bits, 0)
    }
}

/// The parts of the first eight bytes that matter: fields and their positions.
#[derive(Default)]
struct ClassFields {
    list: Vec<PlacedConditions>,
    /// The position of the literal, if the encoding holds it.
    literal: Option<BitRun>,
}

impl ClassFields {
    /// The decoder's checks; `None` where they are less simple.
    fn of(entry: &EntryData) -> Option<Self> {
        let mut fields = Self::default();
        if entry.high != 0 {
            return None;
        }
        for check in table_part(&CHECKS, entry.checks, entry.check_count) {
            let (at, width, from) = match table_part(&PIECES, check.pieces, check.count) {
                [] => (check.at, check.width, 0),
                [piece] => (piece.at, piece.width, piece.from),
                _ => return None,
            };
            match check.what {
                0..=check::SOURCE if width + from <= 10 && at + width <= 64 => {
                    let bits = (1 << width) - 1;
                    let field = FieldConditions { bits, from, set: Some(check.set), except: None, named: None };
                    fields.list.push(PlacedConditions { at, field });
                }
                // Two of them must be equal.
                check::LITERAL32 if from == 0 && fields.literal.is_none_or(|place| place == BitRun { at, width }) => {
                    fields.literal = Some(BitRun { at, width });
                }
                _ => return None,
            }
        }
        (fields.list.len() <= FIELDS).then_some(fields)
    }

    /// Fields that must not hold a number.
    fn exclude_numbers(&mut self, except: &[(&'static [Piece], u64)]) -> Option<()> {
        for (pieces, number) in except {
            let piece = pieces
                .iter()
                .find(|one| piece_holds_number(one, number))
                .filter(|piece| piece.at + piece.width <= 64)?;
            let bits = (1u16 << piece.width) - 1;
            let mut known = self.list.iter_mut().filter(|one| one.is_of_whole_bits(piece.at, bits));
            match known.find(|one| differs_from_number(&one.field.except, number)) {
                Some(known) => known.field.except = Some(*number),
                None => {
                    let field = FieldConditions { bits, from: 0, set: None, except: Some(*number), named: None };
                    self.list.push(PlacedConditions { at: piece.at, field });
                }
            }
        }
        (self.list.len() <= FIELDS).then_some(())
    }

    /// Fields that must not name a scalar register.
    fn without_scalars(&mut self, entry: TableEntry, isa: Isa) -> Option<()> {
        for named in NamedRegisters::of_entry_fields(entry)? {
            let NamedField { at, width, registers: named } = named?;
            let bits = 1u16.checked_shl(width.into())? - 1;
            if !(0..=bits).any(|raw| named.is_scalar(raw, isa)) {
                continue;
            }
            if width > 10 || at + width > 64 {
                return None;
            }
            let mut known = self.list.iter_mut().filter(|one| one.is_of_whole_bits(at, bits));
            match known.find(|one| one.field.named.is_none_or(|known| known == named)) {
                Some(known) => known.field.named = Some(named),
                None => {
                    let field = FieldConditions { bits, from: 0, set: None, except: None, named: Some(named) };
                    self.list.push(PlacedConditions { at, field });
                }
            }
        }
        (self.list.len() <= FIELDS).then_some(())
    }

    /// The length for each sum of meanings.
    fn lengths_by_meaning(&self, bytes: u8, longest: u8) -> [u8; 8] {
        let mut lengths = [0; 8];
        lengths[0] = bytes;
        // A source may mean a literal of the encoding; whether that can be one of 64 bits is not so simple.
        let of_encoding = self.literal.is_some();
        lengths[usize::from(meaning::LITERAL32)] =
            if of_encoding { bytes } else { length_within_longest(bytes + 4, longest) };
        lengths[usize::from(meaning::LITERAL64)] =
            if of_encoding { 0 } else { length_within_longest(bytes + 8, longest) };
        lengths
    }
}

/// Other pieces of the field, if any, can only make the number larger.
fn piece_holds_number(piece: &&Piece, number: &u64) -> bool {
    piece.from == 0 && piece.width <= 10 && number >> piece.width == 0
}

fn differs_from_number(value: &Option<u64>, number: &u64) -> bool {
    value.is_none_or(|value| value == *number)
}

fn length_within_longest(len: u8, longest: u8) -> u8 {
    if len <= longest { len } else { 0 }
}
