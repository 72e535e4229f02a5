//! Reads and writes of every encoding, compared with LLVM's records.
//!
//! For each encoding of LLVM's decoder a word is made with a known register in every operand. The reads and writes of
//! `hotswap-isa` must be those of the record: the registers of the operands with their files and sizes, tied operands
//! as both, and the registers without an operand.
//!
//! Invariants: only the processors of an encoding are taken from the rows, nothing else. A difference that no rule
//! explains is a failure, and so is a rule that explains nothing, or an encoding of the rows that was not compared.
//!
//! Absent on purpose: sizes of image addresses and data that follow from other fields; the sweep checks the operands'
//! text, and here each image instruction is compared where LLVM's sizes are those of its record.

pub mod records;
pub mod rules;
pub mod words;

use crate::ours;
use crate::setting::Setting;
use crate::sweep::{FAMILIES, features, holds};
use hotswap_isa::reg::{Reg, Special};
use hotswap_isa::{Inst, Isa, TableEntry, Wave};
use hotswap_isa_meta::model::Model;
use hotswap_userland::ENV_RECORDS;
use records::{Bit, Description};
use rules::{Difference, Kind, Rule};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use words::{Case, Choice, Named, Numbers};

#[derive(Debug, Default)]
pub struct Outcome {
    /// Encodings of LLVM that were compared.
    pub compared: usize,
    /// Encodings with the same bits and operands as one of an earlier table.
    pub overtaken: usize,
    /// Encodings that none of the processors has.
    pub elsewhere: usize,
    /// Rows that they belong to.
    rows: BTreeSet<u16>,
    entries: BTreeSet<TableEntry>,
    /// Registers of operands.
    pub operands: usize,
    /// Registers without an operand.
    pub implicit: usize,
    /// Differences that no rule explains, with the encodings that have them.
    pub different: BTreeMap<String, BTreeMap<String, String>>,
    /// Numbers of encodings in which each rule explained a difference.
    pub explained: Vec<usize>,
    /// Encodings of LLVM whose words decode as something else.
    pub unreached: Vec<String>,
    /// Lines of the tables that were not compared.
    pub untouched: Vec<TableEntry>,
}

/// A processor in one mode.
struct Place {
    name: String,
    isa: Isa,
    features: BTreeSet<String>,
}

/// The digest of LLVM's records; `None` if it was not prepared.
pub fn file_of_env() -> Option<PathBuf> {
    std::env::var_os(ENV_RECORDS).filter(|file| !file.is_empty()).map(PathBuf::from)
}

/// The tables of the decoder.
pub fn tables(model: &Model) -> BTreeSet<String> {
    model.steps.iter().map(|step| step.table.clone()).collect()
}

/// Compares all encodings.
pub fn compare(model: &Model, descriptions: &[Description], rules: &[Rule]) -> Outcome {
    let places = places(model);
    let mut outcome = Outcome { explained: vec![0; rules.len()], ..Outcome::default() };
    let mut groups: BTreeMap<Signature<'_>, Vec<&Description>> = BTreeMap::new();
    for description in descriptions {
        groups.entry(signature(description)).or_default().push(description);
    }
    let tables: Vec<Tables> = places.iter().map(|place| Tables::of(model, &place.features)).collect();
    for group in groups.values() {
        // Of encodings with the same bits the decoder takes that of the first table.
        let first: Vec<Option<usize>> =
            tables.iter().map(|tables| group.iter().filter_map(|description| tables.step(description)).min()).collect();
        for description in group {
            let is_here = |at: &usize| tables[*at].step(description).is_some_and(|step| first[*at] == Some(step));
            let here: Vec<&Place> = (0..places.len()).filter(is_here).map(|at| &places[at]).collect();
            if here.is_empty() {
                let behind = tables.iter().any(|tables| tables.step(description).is_some());
                *(if behind { &mut outcome.overtaken } else { &mut outcome.elsewhere }) += 1;
            } else if one(description, &here, rules, &mut outcome) {
                outcome.compared += 1;
            } else {
                outcome.unreached.push(format!("{}: {}", description.name, decoded(description, here[0])));
            }
        }
    }
    let compared = &outcome.entries;
    let left =
        TableEntry::all_entries().filter(|entry| !compared.contains(entry) && is_available_anywhere(entry, &places));
    outcome.untouched = left.filter(|entry| !compared.iter().any(|compared| takes_all_of(*compared, *entry))).collect();
    outcome
}

fn is_available_anywhere(entry: &TableEntry, places: &[Place]) -> bool {
    places.iter().any(|place| entry.available(place.isa))
}

/// Whether an encoding matches all words of another one with the same operands.
fn takes_all_of(encoding: TableEntry, other: TableEntry) -> bool {
    let ((value, mask), (other_value, other_mask)) = (encoding.fixed(), other.fixed());
    let names = |entry: TableEntry| entry.slots().iter().map(|slot| slot.name);
    encoding.mnemonic() == other.mnemonic()
        && mask & other_mask == mask
        && other_value & mask == value
        && names(encoding).eq(names(other))
}

/// The decoder's view of an encoding: mnemonic, names of operands, value and mask of the fixed bits, length.
type Signature<'a> = (&'a str, Vec<&'a str>, u128, u128, usize);

fn signature(description: &Description) -> Signature<'_> {
    let names = description.operands.iter().map(|operand| operand.name.as_str()).collect();
    let (mut value, mut mask) = (0u128, 0u128);
    for (at, bit) in description.bits.iter().enumerate().take(128) {
        if let Bit::Fixed(set) = bit {
            mask |= 1 << at;
            value |= u128::from(*set) << at;
        }
    }
    (&description.mnemonic, names, value, mask, description.bits.len())
}

/// The tables that a processor's decoder tries, in their order, and the conditions that do not hold on it.
struct Tables<'m> {
    steps: BTreeMap<&'m str, usize>,
    missing: BTreeSet<&'m str>,
}

impl<'m> Tables<'m> {
    fn of(model: &'m Model, features: &BTreeSet<String>) -> Self {
        let features: BTreeSet<&str> = features.iter().map(String::as_str).collect();
        let steps = model.steps.iter().enumerate().rev().filter(|(_, step)| holds(&step.condition, &features));
        let missing = model.predicates.iter().filter(|predicate| !holds(&predicate.condition, &features));
        Self {
            steps: steps.map(|(at, step)| (step.table.as_str(), at)).collect(),
            missing: missing.map(|predicate| predicate.name.as_str()).collect(),
        }
    }

    /// When the table of an encoding is tried, if the processor has it.
    fn step(&self, description: &Description) -> Option<usize> {
        let missing = description.predicates.iter().any(|name| self.missing.contains(name.as_str()));
        self.steps.get(description.table.as_str()).copied().filter(|_| !missing)
    }
}

fn places(model: &Model) -> Vec<Place> {
    let settings = FAMILIES.iter().flat_map(|family| family.settings).filter_map(|text| Setting::parse(text));
    settings.filter_map(|one| setting_compare_place(one, model)).collect()
}

fn setting_compare_place(setting: Setting, model: &Model) -> Option<Place> {
    let features = features(model, &setting)?.into_iter().map(str::to_owned).collect();
    Some(Place { name: setting.to_string(), isa: ours::isa(&setting)?, features })
}

/// The result of decoding a word of an encoding.
fn decoded(description: &Description, place: &Place) -> String {
    let case = words::case(description, Choice::Vector, Numbers::default(), 1);
    let name = &place.name;
    match place.isa.decode(case.word.bytes()) {
        Ok(inst) => format!("{inst:?} on {name}, not {:x?}", case.word.bytes()),
        Err(error) => format!("{error:?} on {name}, {:x?}", case.word.bytes()),
    }
}

/// Compares one encoding where it exists; returns whether that was possible.
fn one(description: &Description, places: &[&Place], rules: &[Rule], outcome: &mut Outcome) -> bool {
    let judged = |alike: Alike| {
        let all = places.iter().flat_map(|place| Choice::ALL.map(|choice| (*place, choice)));
        let all = all.filter_map(|(place, choice)| Some((place, best(description, place, choice, alike)?)));
        all.collect::<Vec<_>>()
    };
    let mut cases = judged(Alike::Bits);
    if cases.is_empty() {
        cases = judged(Alike::Operands);
    }
    let Some((place, (inst, _))) = cases.first() else { return false };
    let implicit = inst.effects(place.isa).filter(|effect| effect.slot.is_none()).count();
    outcome.implicit += implicit;
    outcome.operands += inst.effects(place.isa).count() - implicit;
    let mut used = BTreeSet::new();
    for (place, (inst, differences)) in cases {
        outcome.entries.insert(inst.entry());
        outcome.rows.insert(inst.entry().row());
        for difference in differences {
            let explains = |rule: &Rule| rule.explains(&difference, &description.mnemonic, &description.table);
            match rules.iter().position(explains) {
                Some(rule) => drop(used.insert(rule)),
                None => outcome.enter(&difference, description, &place.name),
            }
        }
    }
    used.into_iter().for_each(|rule| outcome.explained[rule] += 1);
    true
}

/// The instruction and its differences; of the sizes of an image those that differ least.
fn best(description: &Description, place: &Place, choice: Choice, alike: Alike) -> Option<(Inst, Vec<Difference>)> {
    let is_image = description.operands.iter().any(|operand| operand.kind == "DMask");
    let numbers = (0..if is_image { 64 } else { 1u64 }).map(|number| Numbers {
        dimension: number & 7,
        mask: [1, 3, 7, 15][(number >> 3 & 3) as usize],
        d16: number >> 5 != 0,
    });
    let mask = if place.isa.wave() == Wave::W64 { 2 } else { 1 };
    let mut best: Option<(Inst, Vec<Difference>)> = None;
    for numbers in numbers {
        let case = words::case(description, choice, numbers, mask);
        let Ok(inst) = place.isa.decode(case.word.bytes()) else { continue };
        if !is_same(description, &inst, alike) {
            continue;
        }
        let differences = differences(description, &case, &inst, place.isa);
        if best.as_ref().is_none_or(|(_, best)| differences.len() < best.len()) {
            best = Some((inst, differences));
        }
    }
    best
}

/// How closely an instruction must match the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alike {
    /// Mnemonic, operands and fixed bits.
    Bits,
    /// Mnemonic and operands: the decoder takes another encoding first, which accepts all words of this one.
    Operands,
}

/// Whether the instruction is of that encoding.
fn is_same(description: &Description, inst: &Inst, alike: Alike) -> bool {
    let entry = inst.entry();
    let names = entry.slots().iter().map(|slot| slot.name.as_str());
    let (mnemonic, own, value, mask, _) = signature(description);
    entry.mnemonic() == mnemonic && names.eq(own) && (alike == Alike::Operands || entry.fixed() == (value, mask))
}

/// The differences between the record and `hotswap-isa`.
fn differences(description: &Description, case: &Case, inst: &Inst, isa: Isa) -> Vec<Difference> {
    let mut named = Vec::new();
    let mut implicit: Vec<(String, bool)> = Vec::new();
    for effect in inst.effects(isa) {
        let slot = effect.slot.and_then(|slot| inst.entry().slots().get(usize::from(slot)));
        match slot {
            Some(slot) => {
                named.push(Named { name: slot.name.as_str().to_owned(), written: effect.written, register: effect.reg })
            }
            None => implicit.push((implicit_name(effect.reg, &description.mnemonic, isa, case), effect.written)),
        }
    }
    let mut found = operand_differences(&case.named, &named);
    for (list, written) in [(&description.reads, false), (&description.writes, true)] {
        let ours: BTreeSet<&str> =
            implicit.iter().filter(|(_, w)| *w == written).map(|(name, _)| name.as_str()).collect();
        let theirs: BTreeSet<&str> = list.iter().map(String::as_str).collect();
        found.extend(theirs.difference(&ours).map(|what| new_effect_difference(Kind::Missing, what, written)));
        found.extend(ours.difference(&theirs).map(|what| new_effect_difference(Kind::Extra, what, written)));
    }
    found
}

fn new_effect_difference(kind: Kind, what: &&str, written: bool) -> Difference {
    Difference { kind, written, what: (*what).to_owned(), detail: String::new() }
}

fn operand_differences(theirs: &[Named], ours: &[Named]) -> Vec<Difference> {
    let mut found = Vec::new();
    let one =
        |kind, of: &Named, detail: String| Difference { kind, written: of.written, what: of.name.clone(), detail };
    for their in theirs {
        match find_partner_operand(their, ours) {
            None => found.push(one(Kind::Missing, their, words::text(their.register))),
            Some(our) if our.register != their.register => {
                let wider = Reg { count: their.register.count, ..our.register } == their.register
                    && our.register.count > their.register.count;
                let detail = format!("{} is {} in ours", words::text(their.register), words::text(our.register));
                found.push(one(if wider { Kind::Wider } else { Kind::Other }, their, detail));
            }
            Some(_) => {}
        }
    }
    let extra = ours.iter().filter(|our| find_partner_operand(our, theirs).is_none());
    found.extend(extra.map(|our| one(Kind::Extra, our, words::text(our.register))));
    found
}

fn find_partner_operand(of: &Named, list: &[Named]) -> Option<Named> {
    list.iter().find(|other| other.name == of.name && other.written == of.written).cloned()
}

/// LLVM's name of a register that no operand names; the operand's where it is the register of one.
fn implicit_name(register: Reg, mnemonic: &str, isa: Isa, case: &Case) -> String {
    let mask = if isa.wave() == Wave::W64 { 2 } else { 1 };
    // LLVM has EXEC as a whole; for scalar instructions its width follows from their name.
    let exec = match mnemonic.contains("saveexec_") || mnemonic.contains("wrexec_") {
        true => {
            if mnemonic.ends_with("_b64") {
                2
            } else {
                1
            }
        }
        false => mask,
    };
    let name = match register.as_special() {
        Some(Special::ExecLo) if register.count == exec => "EXEC",
        Some(Special::VccLo) if register.count == mask => "VCC",
        Some(Special::Scc) => "SCC",
        Some(Special::M0) => "M0",
        Some(Special::Mode) => "MODE",
        Some(Special::FlatScratchLo) if register.count == 2 => "FLAT_SCR",
        Some(Special::AsyncCnt) => "ASYNCcnt",
        Some(Special::TensorCnt) => "TENSORcnt",
        _ => {
            let of = case.named.iter().find(|named| named.register == register);
            return of.map_or_else(|| words::text(register), |named| format!("of-{}", named.name));
        }
    };
    name.to_owned()
}

impl Outcome {
    fn enter(&mut self, difference: &Difference, description: &Description, place: &str) {
        let group = self.different.entry(difference.to_string()).or_default();
        let example = || format!("{place}: {}", difference.detail);
        group.entry(format!("{} {}", description.table, description.name)).or_insert_with(example);
    }

    /// The counts, and the differences and explanations.
    pub fn lines(&self, rules: &[Rule]) -> Vec<String> {
        let explained: usize = self.explained.iter().sum();
        let encodings: BTreeSet<&String> = self.different.values().flat_map(BTreeMap::keys).collect();
        let mut lines = vec![format!(
            "reads and writes: {} encodings of {} rows compared, {} registers of operands, {} without an operand; \
             {} different; {explained} explained; {} are decoded as their twin of another table; \
             {} on none of the processors",
            self.compared,
            self.rows.len(),
            self.operands,
            self.implicit,
            encodings.len(),
            self.overtaken,
            self.elsewhere
        )];
        for (rule, count) in rules.iter().zip(&self.explained) {
            lines.push(format!("explained in {count} encodings: {rule}"));
        }
        lines.extend(self.unreached.iter().map(|name| format!("decodes as something else: {name}")));
        lines.extend(self.untouched.iter().map(|entry| format!("nothing was compared with {entry:?}")));
        lines
    }

    /// The differences with the encodings that have them.
    pub fn differences(&self) -> String {
        let mut text = String::new();
        for (difference, encodings) in &self.different {
            text += &format!("{difference}: {} encodings\n", encodings.len());
            encodings.iter().for_each(|(name, example)| text += &format!("    {name} on {example}\n"));
        }
        text
    }

    /// Whether no difference is unexplained, no rule is idle, and every line of the tables was compared.
    pub fn is_good(&self) -> bool {
        self.compared > 0
            && self.different.is_empty()
            && self.unreached.is_empty()
            && self.untouched.is_empty()
            && self.explained.iter().all(|count| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::{Class, Operand};

    fn operand(name: &str, class: &str, written: bool) -> Operand {
        let (vector, scalar) = (class.starts_with('V'), class.contains('S'));
        let class = Class { name: class.to_owned(), bits: 32, vector, accumulation: false, scalar };
        Operand { name: name.to_owned(), kind: String::new(), class: Some(class), written }
    }

    fn field(name: &str, width: u8) -> impl Iterator<Item = Bit> {
        (0..width).map(move |index| Bit::Operand(name.to_owned(), index))
    }

    fn fixed(text: &str) -> impl Iterator<Item = Bit> {
        text.chars().rev().map(|digit| Bit::Fixed(digit == '1'))
    }

    /// `v_add_f32` of gfx11: 0 000011 vdst src1 src0.
    fn add() -> Description {
        let operands = [("vdst", "VGPR_32", true), ("src0", "VS_32", false), ("src1", "VGPR_32", false)];
        let bits = field("src0", 9).chain(field("src1", 8)).chain(field("vdst", 8)).chain(fixed("0000011"));
        Description {
            name: "V_ADD_F32_e32_gfx11".into(),
            mnemonic: "v_add_f32".into(),
            table: "gfx11".into(),
            predicates: Vec::new(),
            bits: bits.collect(),
            operands: operands.map(|(name, class, written)| operand(name, class, written)).into(),
            ties: Vec::new(),
            reads: ["EXEC", "MODE"].map(str::to_owned).into(),
            writes: BTreeSet::new(),
        }
    }

    fn differences_of(description: &Description) -> Vec<String> {
        let isa = ours::isa(&Setting::new("gfx1100")).unwrap();
        let place = Place { name: String::new(), isa, features: BTreeSet::new() };
        let (_, found) = best(description, &place, Choice::Scalar, Alike::Bits).unwrap();
        found.iter().map(|difference| format!("{difference} {}", difference.detail).trim().to_owned()).collect()
    }

    #[test]
    fn what_is_the_same_is_no_difference() {
        assert!(differences_of(&add()).is_empty());
    }

    #[test]
    fn every_kind_of_difference_is_found() {
        let mut lacking = add();
        lacking.reads.remove("MODE");
        lacking.writes.insert("SCC".into());
        assert_eq!(differences_of(&lacking), ["extra read MODE", "missing write SCC"]);

        let mut pair = add();
        pair.operands[1].class.as_mut().unwrap().bits = 64;
        assert_eq!(differences_of(&pair), ["other read src0 s[12:13] is s12 in ours"]);

        let mut result = add();
        result.operands[2].written = true;
        assert_eq!(differences_of(&result), ["missing write src1 v28", "extra read src1 v28"]);

        let mut file = add();
        file.operands[2].class =
            Some(Class { name: "AGPR_32".into(), bits: 32, vector: false, accumulation: true, scalar: false });
        assert_eq!(differences_of(&file), ["other read src1 a28 is v28 in ours"]);
    }

    #[test]
    fn an_idle_rule_fails() {
        let good = Outcome { compared: 1, explained: vec![1, 2], ..Outcome::default() };
        assert!(good.is_good());
        assert!(!Outcome { explained: vec![1, 0], ..good }.is_good());
        assert!(!Outcome::default().is_good());
    }
}
