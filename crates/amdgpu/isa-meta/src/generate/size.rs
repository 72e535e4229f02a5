//! The length of an instruction from its first two words: a small trie for each group whose leaves are rules.
//!
//! Terms: a *rule* is a base length, the positions of the sources that may request a literal, and whether the first of
//! them may announce a DPP or SDWA word instead.
//!
//! Invariants: for every entry of a group the rule of its leaf gives the same length as decoding. Words that no entry
//! matches have the base length of their prefix if all entries with that prefix agree on it.

use super::GenerateError;
use super::accept::DecodeMethod;
use super::expand::{Expanded, OperandSlot, PlacedShape};
use super::settings::TargetSettings;
use super::table::{RecordBytes, TableSet};
use super::window::{Window, choose_window, matching_children};
use crate::model::{BitRun, FieldPiece, Model};
use std::collections::{BTreeMap, BTreeSet};

const LEAF: u32 = 1 << 31;
/// The number of sources that means "decode".
const DECODE: usize = 255;
const ROOT: Window = Window { word: 0, shift: 23, width: 9 };

/// The rule that derives the length from the words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LengthRule {
    /// Bytes without literals and DPP or SDWA words; 0 if not known.
    bytes: u8,
    /// Positions of nine-bit (or narrower) sources; 255 there means four more bytes.
    sources: Vec<BitRun>,
    /// 254 in a source means a literal of 64 bits: eight more bytes, none if the form has twelve.
    long: bool,
    /// The literal is in the encoding: 255 means no more bytes.
    inside: bool,
    /// Position of the source that may announce a DPP or SDWA word.
    announces: Option<u8>,
    /// Entries of different lengths match the same words: decoding decides.
    decode: bool,
}

impl LengthRule {
    fn fixed_length(bytes: u8) -> Self {
        Self { bytes, sources: Vec::new(), long: false, inside: false, announces: None, decode: false }
    }

    /// The rule as a Rust expression.
    fn rust_expression(&self) -> String {
        let fields = [0, 1, 2, 3].map(|number| self.sources.get(number).copied().unwrap_or_default());
        let LengthRule { bytes, long, inside, announces, decode, sources } = self;
        let count = if *decode { DECODE } else { sources.len() };
        let announces = announces.unwrap_or(u8::MAX);
        let (at, mask) = (fields.map(|field| field.at), fields.map(|field| (1u32 << field.width) - 1));
        let numbers = format!("bytes: {bytes}, count: {count}, announces: {announces}, at: {at:?}, mask: {mask:?}");
        format!("SizeRuleData {{ {numbers}, long: {long}, inside: {inside} }}")
    }

    fn add_sources(&mut self, other: &Self) {
        self.long |= other.long;
        let missing = other.sources.iter().filter(|source| !self.sources.contains(source));
        self.sources.extend(missing.copied().collect::<Vec<_>>());
    }
}

/// The length of the instructions with one prefix.
#[derive(Debug, Clone, Copy)]
struct PrefixLength {
    /// The length without literals; 0 if it differs.
    bytes: u8,
    /// Number of the rule for more bytes.
    rule: u8,
}

/// The tries and rules.
#[derive(Debug, Clone, Default)]
pub struct LengthTries {
    roots: Vec<u32>,
    nodes: Vec<u32>,
    rules: Vec<LengthRule>,
    places: BTreeMap<Vec<u32>, usize>,
    /// For each group the lengths of its prefixes.
    prefixes: Vec<Vec<PrefixLength>>,
}

/// An entry's rule, or the mark that another entry announces it.
struct SizeItem {
    entry: usize,
    rule: LengthRule,
    /// Position of the field that selects DPP or SDWA.
    announced: Option<u8>,
}

impl LengthTries {
    pub fn new(model: &Model, expanded: &Expanded, settings: &TargetSettings) -> Result<Self, GenerateError> {
        let methods: Vec<DecodeMethod> =
            model.kinds.iter().map(|kind| DecodeMethod::new(&kind.decode)).collect::<Result<_, _>>()?;
        let mut sizes = Self::default();
        for group in 0..settings.groups.len() {
            let exists = settings.entries_of(group, expanded.entries.len());
            let long = settings.modes_of(group).any(|setting| setting.features.contains("64-bit-literals"));
            let longest = settings.modes_of(group).map(|setting| setting.max_bytes).max().unwrap_or(0);
            let items: Vec<SizeItem> = (0..exists.len())
                .filter(|&entry| exists[entry])
                .map(|entry| size_item(expanded, &methods, entry, long, longest))
                .collect();
            let all: Vec<&SizeItem> = items.iter().collect();
            let root = sizes.split_items(expanded, &all, ROOT, 0, None)?;
            sizes.roots.push(root);
            sizes.add_prefixes(root)?;
        }
        Ok(sizes)
    }

    fn build_node(
        &mut self,
        expanded: &Expanded,
        items: &[&SizeItem],
        decided: u128,
        base: u8,
    ) -> Result<u32, GenerateError> {
        if let Some(rule) = merge_items(items, base) {
            return self.add_leaf(rule);
        }
        let entries: Vec<_> = items.iter().map(|item| &expanded.entries[item.entry]).collect();
        match choose_window(&entries, decided, false).or_else(|| choose_window(&entries, decided, true)) {
            Some(window) => self.split_items(expanded, items, window, decided, Some(base)),
            None => {
                let shortest = items.iter().map(|item| item.rule.bytes).min().unwrap_or(0);
                let mut rule = LengthRule { decode: true, ..LengthRule::fixed_length(shortest) };
                // Where only literals make the difference, the sources determine when there may be one.
                if items.iter().all(|item| item.rule.bytes == shortest && item.announced.is_none()) {
                    items.iter().for_each(|item| rule.add_sources(&item.rule));
                }
                self.add_leaf(rule)
            }
        }
    }

    fn split_items(
        &mut self,
        expanded: &Expanded,
        items: &[&SizeItem],
        window: Window,
        decided: u128,
        base: Option<u8>,
    ) -> Result<u32, GenerateError> {
        let mut children = vec![Vec::new(); 1 << window.width];
        for &item in items {
            for index in matching_children(window, &expanded.entries[item.entry]) {
                children[index].push(item);
            }
        }
        let mut nodes = Vec::with_capacity(children.len());
        for child in &children {
            let base = base.unwrap_or_else(|| common_base(child));
            nodes.push(self.build_node(expanded, child, decided | window.bit_mask(), base)?);
        }
        if nodes.iter().all(|node| *node == nodes[0]) {
            return Ok(nodes[0]);
        }
        let next = self.nodes.len();
        let first = *self.places.entry(nodes.clone()).or_insert(next);
        if first == next {
            self.nodes.extend(nodes);
        }
        window.encode_node(first, "size")
    }

    fn add_leaf(&mut self, rule: LengthRule) -> Result<u32, GenerateError> {
        if rule.sources.len() > 4 && !rule.decode {
            return Err(GenerateError::new("size", format!("more than four sources: {rule:?}")));
        }
        let bytes = u32::from(rule.bytes);
        Ok(LEAF | bytes << 24 | self.rule_number(rule) as u32)
    }

    fn rule_number(&mut self, rule: LengthRule) -> usize {
        let number = self.rules.iter().position(|other| *other == rule).unwrap_or(self.rules.len());
        if number == self.rules.len() {
            self.rules.push(rule);
        }
        number
    }

    /// For each prefix the base length, if all rules below it have one, and a rule that requests more bytes wherever
    /// one of them does.
    fn add_prefixes(&mut self, root: u32) -> Result<(), GenerateError> {
        let mut prefixes = Vec::with_capacity(1 << ROOT.width);
        for prefix in 0..1u32 << ROOT.width {
            let mut rules = BTreeSet::new();
            let first = if root & LEAF == 0 { self.nodes[((root & 0xf_ffff) + prefix) as usize] } else { root };
            self.collect_rules_below(first, &mut rules);
            let (bytes, rule) = match self.common_rule(&rules) {
                Some(rule) => (rule.bytes, self.rule_number(rule)),
                None => (0, 0),
            };
            let rule = u8::try_from(rule).map_err(|_| GenerateError::new("size", "more than 256 rules"))?;
            prefixes.push(PrefixLength { bytes, rule });
        }
        self.prefixes.push(prefixes);
        Ok(())
    }

    fn collect_rules_below(&self, node: u32, rules: &mut BTreeSet<usize>) {
        if node & LEAF != 0 {
            rules.insert((node & 0xff_ffff) as usize);
            return;
        }
        let first = (node & 0xf_ffff) as usize;
        self.nodes[first..first + (1 << (node >> 20 & 15))]
            .iter()
            .for_each(|child| self.collect_rules_below(*child, rules));
    }

    /// A rule that requests more bytes wherever one of those does; `None` if their base lengths differ.
    fn common_rule(&self, numbers: &BTreeSet<usize>) -> Option<LengthRule> {
        let mut all = LengthRule::fixed_length(self.rules[*numbers.first()?].bytes);
        for rule in numbers.iter().map(|&number| &self.rules[number]) {
            if rule.bytes != all.bytes || rule.decode && rule.announces.is_none() && rule.sources.is_empty() {
                return None;
            }
            all.add_sources(rule);
            if let Some(at) = rule.announces {
                if *all.announces.get_or_insert(at) != at {
                    return None;
                }
                if !all.sources.iter().any(|source| source.at == at) {
                    all.sources.push(BitRun { at, width: 9 });
                }
            }
        }
        (all.sources.len() <= 4).then_some(all)
    }

    pub(super) fn write_sizes(&self, out: &mut TableSet) {
        let roots = ("SIZE_ROOTS", "Roots of the tries of lengths, one for each group.");
        out.text(roots, "u32", &self.roots, |node| format!("{node:#x}"));
        // A power of two, so that an index needs a mask and no comparison.
        let mut nodes = self.nodes.clone();
        nodes.resize(nodes.len().next_power_of_two(), LEAF);
        let nodes: Vec<RecordBytes> = nodes.into_iter().map(|node| RecordBytes::new().u32(node)).collect();
        out.records(("SIZE_NODES", "Nodes of the tries of lengths."), "u32", &nodes);
        let prefixes = self.prefixes.iter().map(|prefixes| {
            let bytes: Vec<u8> = prefixes.iter().map(|prefix| prefix.bytes).collect();
            let rules: Vec<u8> = prefixes.iter().map(|prefix| prefix.rule).collect();
            RecordBytes::new().bytes(&bytes).bytes(&rules)
        });
        let prefixes: Vec<RecordBytes> = prefixes.collect();
        out.records(("SIZE_PREFIXES", "Lengths by prefix, one record for each group."), "SizePrefixes", &prefixes);
        out.text(("SIZE_RULES", "Rules of lengths."), "SizeRuleData", &self.rules, LengthRule::rust_expression);
    }
}

fn size_item(expanded: &Expanded, methods: &[DecodeMethod], entry: usize, long: bool, longest: u8) -> SizeItem {
    let format = &expanded.formats[expanded.entries[entry].format];
    let inside =
        format.slots.iter().any(|slot| matches!(methods[slot.kind], DecodeMethod::Literal32 | DecodeMethod::Literal64));
    let sources = literal_sources(format, methods);
    let long = long && !sources.is_empty();
    let mut rule = LengthRule { sources, long, inside, ..LengthRule::fixed_length(format.bytes) };
    if (inside && !long) || format.bytes + 4 > longest {
        rule.sources.clear();
    }
    if rule.sources.is_empty() {
        rule.inside = false;
    }
    SizeItem { entry, rule, announced: announcing_field(expanded, format, methods, entry) }
}

/// Positions of sources that may request a literal of their own. Their value is in the low nine bits of the field.
pub fn literal_sources(format: &PlacedShape, methods: &[DecodeMethod]) -> Vec<BitRun> {
    let mut result = Vec::new();
    for slot in format.slots.iter().take_while(|slot| !is_literal_slot(slot, methods)) {
        if let (true, Some(piece)) = (methods[slot.kind].takes_literal(), slot.pieces.iter().find(is_low_source_piece))
        {
            // A field of eight bits lacks vector registers; one of nine or ten marks them by bit 8.
            result.push(BitRun { at: piece.at, width: piece.width.min(9) });
        }
    }
    result
}

/// After a literal that is in the encoding, sources share it.
fn is_literal_slot(slot: &&OperandSlot, methods: &[DecodeMethod]) -> bool {
    matches!(methods[slot.kind], DecodeMethod::Literal32 | DecodeMethod::Literal64)
}

fn is_low_source_piece(piece: &&FieldPiece) -> bool {
    piece.from == 0 && piece.width >= 8
}

/// The position of the field that selects DPP or SDWA: fixed to 249 or 250, or read as 233 or 234.
pub fn announcing_field(
    expanded: &Expanded,
    format: &PlacedShape,
    methods: &[DecodeMethod],
    entry: usize,
) -> Option<u8> {
    let entry = &expanded.entries[entry];
    let dpp8 =
        format.slots.iter().find(|slot| methods[slot.kind] == DecodeMethod::Dpp8).and_then(|slot| slot.pieces.first());
    dpp8.map(|piece| piece.at)
        .or_else(|| [0, 32].into_iter().find(|&at| is_fixed_announcement(at, entry) && format.bytes > at / 8 + 4))
}

fn is_fixed_announcement(at: u8, entry: &super::expand::EncodedRow) -> bool {
    let (value, mask) = (entry.value >> at & 511, entry.mask >> at & 511);
    mask == 511 && matches!(value, 249 | 250)
}

/// The one rule of all items, if there is one.
fn merge_items(items: &[&SizeItem], base: u8) -> Option<LengthRule> {
    let Some(first) = items.first() else { return Some(LengthRule::fixed_length(base)) };
    let plain = items.iter().find(|item| item.announced.is_none());
    let Some(plain) = plain else {
        // Only DPP or SDWA forms: their own length.
        let same = items.iter().all(|item| item.rule == first.rule);
        return same.then(|| first.rule.clone());
    };
    let mut rule = plain.rule.clone();
    for item in items {
        match item.announced {
            None if item.rule == plain.rule => {}
            Some(at) if item.rule.bytes == rule.bytes + 4 && rule.announces.is_none_or(|other| other == at) => {
                // An entry without a source there (v_nop) accepts any value, even one whose DPP or SDWA word is
                // invalid.
                rule.decode |= rule.sources.iter().all(|source| source.at != at);
                // The other sources of a DPP form may request a literal too.
                rule.decode |= rule.sources.iter().filter(|source| source.at != at).ne(&item.rule.sources);
                rule.announces = Some(at);
            }
            _ => return None,
        }
    }
    Some(rule)
}

/// The base length of everything with one prefix; 0 if they differ.
fn common_base(items: &[&SizeItem]) -> u8 {
    let mut plain = items.iter().filter(|item| item.announced.is_none()).map(|item| item.rule.bytes);
    let first = plain.next().unwrap_or(0);
    if plain.all(|bytes| bytes == first) { first } else { 0 }
}
