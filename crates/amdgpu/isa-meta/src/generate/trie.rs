//! Lookup tries over the words of an instruction: one for each group of settings.
//!
//! Terms: a *candidate* is an entry, perhaps in the pass that reads a literal inside the encoding. A node is a number:
//! bit 31 set is a leaf (bits 15:0 first candidate, 30:16 start of the list of the others); clear is a table (bits
//! 30:29 word, 28:24 shift, 23:20 width, 19:0 first node).
//!
//! Invariants: the candidates of a leaf are in the order in which LLVM tries them (step, then more fixed bits first,
//! then the order of the rows), except that plain forms, which are most of real code, precede the DPP and SDWA forms
//! whose announcement their first source does not accept. An entry that matches a word is among the candidates of the
//! leaf that the word selects.

use super::GenerateError;
use super::accept::{DecodeMethod, accept_methods};
use super::expand::{EncodedRow, Expanded};
use super::settings::TargetSettings;
use super::size::{announcing_field, literal_sources};
use super::table::{RecordBytes, TableSet};
use super::window::{Window, choose_window, matching_children};
use crate::model::Model;
use std::collections::{BTreeMap, BTreeSet};

/// The bit of a candidate for the pass that reads a literal inside the encoding.
const SECOND_PASS: u16 = 1 << 15;
/// The candidate of a leaf that lacks one: an entry that does not exist.
const NOTHING: u16 = SECOND_PASS - 1;
/// Lists as short as this are not split further.
const SHORT: usize = 1;
/// Bits tested first: all encoding prefixes are in the top nine bits.
const ROOT: Window = Window { word: 0, shift: 23, width: 9 };
const LEAF: u32 = 1 << 31;

/// The tries of all groups.
#[derive(Debug, Clone, Default)]
pub struct Tries {
    forms: Vec<WordAcceptance>,
    roots: Vec<u32>,
    nodes: Vec<u32>,
    candidates: Vec<u16>,
    node_places: BTreeMap<Vec<u32>, usize>,
    candidate_places: BTreeMap<Vec<u16>, usize>,
}

impl Tries {
    pub fn new(model: &Model, expanded: &Expanded, settings: &TargetSettings) -> Result<Self, GenerateError> {
        let methods = accept_methods(model)?;
        let forms = (0..expanded.entries.len()).map(|entry| WordAcceptance::new(expanded, &methods, entry)).collect();
        let mut tries = Self { forms, candidates: vec![0], ..Self::default() };
        tries.candidate_places.insert(vec![0], 0);
        for (number, steps) in settings.groups.iter().enumerate() {
            let exists = settings.entries_of(number, expanded.entries.len());
            let candidates = ordered_candidates(model, expanded, steps, &exists);
            let root = tries.split_candidates(expanded, &candidates, ROOT, 0)?;
            tries.roots.push(root);
        }
        Ok(tries)
    }

    fn build_node(&mut self, expanded: &Expanded, candidates: &[u16], decided: u128) -> Result<u32, GenerateError> {
        let candidates = &self.plain_first(candidates);
        let entries: Vec<&EncodedRow> =
            candidates.iter().map(|&candidate| candidate_entry(expanded, candidate)).collect();
        let first_form = candidates.first().map(|&candidate| &self.forms[usize::from(candidate & !SECOND_PASS)]);
        if entries.first().is_some_and(|one| is_settled_entry(one, decided))
            && first_form.is_some_and(|form| form.announced.is_none())
        {
            return self.add_leaf(candidates);
        }
        match choose_window(&entries, decided, false) {
            Some(window) if candidates.len() > SHORT => self.split_candidates(expanded, candidates, window, decided),
            _ => self.add_leaf(candidates),
        }
    }

    fn split_candidates(
        &mut self,
        expanded: &Expanded,
        candidates: &[u16],
        window: Window,
        decided: u128,
    ) -> Result<u32, GenerateError> {
        let mut children = vec![Vec::new(); 1 << window.width];
        for &candidate in candidates {
            let entry = candidate_entry(expanded, candidate);
            for index in matching_children(window, entry) {
                children[index].push(candidate);
            }
        }
        let mut known: BTreeMap<&[u16], u32> = BTreeMap::new();
        let mut nodes = Vec::with_capacity(children.len());
        for child in &children {
            let node = match known.get(child.as_slice()) {
                Some(&node) => node,
                None => self.build_node(expanded, child, decided | window.bit_mask())?,
            };
            known.insert(child, node);
            nodes.push(node);
        }
        // The decoder relies on the first table.
        if window != ROOT && nodes.iter().all(|node| *node == nodes[0]) {
            return Ok(nodes[0]);
        }
        let next = self.nodes.len();
        let first = *self.node_places.entry(nodes.clone()).or_insert(next);
        if first == next {
            self.nodes.extend(nodes);
        }
        window.encode_node(first, "trie")
    }

    /// Moves plain forms before announced ones where the order makes no difference.
    fn plain_first(&self, candidates: &[u16]) -> Vec<u16> {
        let mut result: Vec<u16> = Vec::with_capacity(candidates.len());
        for &candidate in candidates {
            let sources = &candidate_form(candidate, self).sources;
            let steps = if candidate_form(candidate, self).announced.is_some() {
                0
            } else {
                result.iter().rev().take_while(|one| is_passed_candidate(one, self, sources)).count()
            };
            result.insert(result.len() - steps, candidate);
        }
        result
    }

    /// A leaf holds its first candidate; the others are a list that begins with its length.
    fn add_leaf(&mut self, candidates: &[u16]) -> Result<u32, GenerateError> {
        let Some((first, others)) = candidates.split_first() else { return Ok(LEAF | u32::from(NOTHING)) };
        let mut list = vec![others.len() as u16];
        list.extend(others);
        let next = self.candidates.len();
        let start = *self.candidate_places.entry(list.clone()).or_insert(next);
        if start == next {
            self.candidates.extend(list);
        }
        if start >= 1 << 15 {
            return Err(GenerateError::new("trie", "the lists of candidates are too long"));
        }
        Ok(LEAF | (start as u32) << 16 | u32::from(*first))
    }

    /// The root of a group's trie.
    pub fn group_root(&self, group: usize) -> u32 {
        self.roots.get(group).copied().unwrap_or(LEAF)
    }

    pub(super) fn write_tries(&self, out: &mut TableSet) {
        let nodes: Vec<RecordBytes> = self.nodes.iter().map(|node| RecordBytes::new().u32(*node)).collect();
        out.records(("NODES", "Nodes of the decoder's tries."), "u32", &nodes);
        let candidates: Vec<RecordBytes> =
            self.candidates.iter().map(|number| RecordBytes::new().u16(*number)).collect();
        out.records(
            ("CANDIDATES", "Lists of candidates after a leaf's own, each after its length."),
            "u16",
            &candidates,
        );
    }
}

fn is_settled_entry(entry: &&EncodedRow, decided: u128) -> bool {
    entry.mask & !decided == 0
}

fn candidate_form(candidate: u16, tries: &Tries) -> &WordAcceptance {
    &tries.forms[usize::from(candidate & !SECOND_PASS)]
}

fn is_passed_candidate(other: &&u16, tries: &Tries, sources: &[u8]) -> bool {
    candidate_form(**other, tries).announced.is_some_and(|at| sources.contains(&at))
}

/// The announcement of DPP and SDWA words by an entry, or its acceptance of them.
#[derive(Debug, Clone)]
struct WordAcceptance {
    /// Position of its announcement, if it is a DPP or SDWA form.
    announced: Option<u8>,
    /// Positions of sources that do not accept an announcement.
    sources: Vec<u8>,
}

impl WordAcceptance {
    fn new(expanded: &Expanded, methods: &[DecodeMethod], entry: usize) -> Self {
        let format = &expanded.formats[expanded.entries[entry].format];
        let sources = literal_sources(format, methods).into_iter().filter(|source| source.width == 9);
        Self {
            announced: announcing_field(expanded, format, methods, entry),
            sources: sources.map(|source| source.at).collect(),
        }
    }
}

fn candidate_entry(expanded: &Expanded, candidate: u16) -> &EncodedRow {
    &expanded.entries[usize::from(candidate & !SECOND_PASS)]
}

/// The entries of a group in the order in which they are tried.
fn ordered_candidates(model: &Model, expanded: &Expanded, steps: &[usize], exists: &[bool]) -> Vec<u16> {
    let mut by_table: BTreeMap<(&str, u8), Vec<u16>> = BTreeMap::new();
    for (number, entry) in expanded.entries.iter().enumerate().filter(|(number, _)| exists[*number]) {
        let column = &model.rows[entry.row].columns[entry.column];
        let bits = model.layouts[expanded.formats[entry.format].layout].bits;
        by_table.entry((&column.table, bits)).or_default().push(number as u16);
    }
    for list in by_table.values_mut() {
        list.sort_by_key(|&number| std::cmp::Reverse(candidate_entry(expanded, number).mask.count_ones()));
    }
    let mut seen = BTreeSet::new();
    let mut result = Vec::new();
    for &step in steps {
        let table = (model.steps[step].table.as_str(), model.steps[step].bits);
        let pass = if seen.insert(table) { 0 } else { SECOND_PASS };
        result.extend(by_table.get(&table).into_iter().flatten().map(|number| number | pass));
    }
    result
}
