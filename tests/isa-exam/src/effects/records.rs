//! LLVM's records of each encoding, read from the JSON of llvm-tblgen and kept as a digest.
//!
//! Invariants: this is an independent reader, which shares nothing with the importer of the rows; properties that the
//! record of a real encoding lacks are taken from its pseudo instruction, which LLVM's compiler uses.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io::{self, BufReader, Read};

/// Fields of records that matter.
const FIELDS: &[&str] = &[
    "!superclasses",
    "AsmString",
    "Constraints",
    "DecoderNamespace",
    "DecoderMethod",
    "Defs",
    "HasAGPR",
    "HasSGPR",
    "HasVGPR",
    "InOperandList",
    "Inst",
    "IsGFX9SpecificEncoding",
    "Offset",
    "OutOperandList",
    "Predicates",
    "PseudoInstr",
    "RegClass",
    "RegTypes",
    "SOffsetEn",
    "Size",
    "Subtarget",
    "Uses",
    "a16",
    "isAsmParserOnly",
    "isCodeGenOnly",
    "isPseudo",
];

/// The field that counts dwords with registers of addresses; no operand.
pub const NSA: &str = "nsa";

/// A bit of an encoding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bit {
    /// 0 or 1.
    Fixed(bool),
    /// A bit of an operand.
    Operand(String, u8),
    /// Nothing.
    Free,
}

/// A class of registers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    pub name: String,
    /// Bits of a register; 0 for a mask of lanes.
    pub bits: u32,
    /// Vector registers are in it.
    pub vector: bool,
    /// Accumulation registers are in it.
    pub accumulation: bool,
    /// Scalar registers are in it.
    pub scalar: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operand {
    pub name: String,
    pub kind: String,
    /// Its registers, if it is one.
    pub class: Option<Class>,
    /// Whether it is written.
    pub written: bool,
}

/// An encoding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    pub name: String,
    /// The mnemonic without suffixes.
    pub mnemonic: String,
    /// Table of the decoder, as the rows spell it.
    pub table: String,
    /// Names of predicates.
    pub predicates: Vec<String>,
    /// The bits, the lowest first.
    pub bits: Vec<Bit>,
    /// Written operands, then read ones.
    pub operands: Vec<Operand>,
    /// Pairs of operands that are one register.
    pub ties: Vec<(String, String)>,
    /// Registers read without an operand.
    pub reads: BTreeSet<String>,
    /// Registers written without an operand.
    pub writes: BTreeSet<String>,
}

type Fields = HashMap<&'static str, Value>;

/// Reads the JSON and keeps the encodings of these tables.
///
/// # Errors
/// JSON that cannot be read.
pub fn read(json: impl Read, tables: &BTreeSet<String>) -> io::Result<Vec<Description>> {
    let mut reader = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 20, json));
    let records = reader.deserialize_map(All)?;
    let mut pseudo: HashMap<&str, Vec<&Fields>> = HashMap::new();
    for record in records.values().filter(|record| int(record, "isPseudo") == 1) {
        pseudo.entry(text(record, "PseudoInstr")).or_default().push(record);
    }
    let mut found = Vec::new();
    for (name, record) in &records {
        let table = text(record, "DecoderNamespace").to_ascii_lowercase();
        let never = ["isPseudo", "isCodeGenOnly", "isAsmParserOnly"].iter().any(|field| int(record, field) == 1);
        if never || !tables.contains(&table) || !is(record, "Instruction") {
            continue;
        }
        let mut description = describe(&records, name, record, table);
        let key = text(record, "PseudoInstr");
        for pseudo in pseudo.get(key).into_iter().flatten().filter(|_| !key.is_empty()) {
            description.add_from(pseudo);
        }
        found.push(description);
    }
    Ok(found)
}

fn describe(records: &BTreeMap<String, Fields>, name: &str, record: &Fields, table: String) -> Description {
    let nine = int(record, "IsGFX9SpecificEncoding") == 1;
    let mut operands = Vec::new();
    for (field, written) in [("OutOperandList", true), ("InOperandList", false)] {
        let list = record.get(field).and_then(|dag| dag.get("args")).and_then(Value::as_array);
        for argument in list.into_iter().flatten() {
            let (Some(kind), Some(name)) = (argument.get(0).and_then(def), argument.get(1).and_then(Value::as_str))
            else {
                continue;
            };
            let class = class(records, kind);
            operands.push(Operand { name: name.to_owned(), kind: kind.to_owned(), class, written });
        }
    }
    let mut description = Description {
        name: name.to_owned(),
        mnemonic: mnemonic(text(record, "AsmString")),
        table,
        predicates: names(record, "Predicates").map(str::to_owned).collect(),
        bits: list(record, "Inst").iter().map(|value| known(bit(value, nine), record, &operands)).collect(),
        operands,
        ties: Vec::new(),
        reads: BTreeSet::new(),
        writes: BTreeSet::new(),
    };
    description.add_from(record);
    description.add_addresses();
    description
}

/// Some bits are not an operand's but those of another field of the record.
fn known(bit: Bit, record: &Fields, operands: &[Operand]) -> Bit {
    let Bit::Operand(name, index) = &bit else { return bit };
    if operands.iter().any(|operand| operand.name == *name) {
        return bit;
    }
    let value = match record.get(name.as_str()) {
        Some(Value::Array(bits)) => bits.get(usize::from(*index)).and_then(Value::as_u64),
        value => value.and_then(Value::as_u64),
    };
    value.map_or(Bit::Free, |value| Bit::Fixed(value == 1))
}

impl Description {
    /// Adds the registers of image addresses that follow the 64 bits of the record: one byte each, from the second
    /// address on, and their dwords in two bits of [`NSA`]. LLVM's decoder reads them in its C++ code.
    fn add_addresses(&mut self) {
        let addresses = self.operands.iter().filter_map(|operand| operand.name.strip_prefix("vaddr")?.parse().ok());
        let last: usize = addresses.max().unwrap_or(0);
        if last == 0 || self.bits.len() != 64 {
            return;
        }
        for (at, index) in [(1, 0), (2, 1)] {
            if self.bits[at] == Bit::Free {
                self.bits[at] = Bit::Operand(NSA.to_owned(), index);
            }
        }
        for number in 1..=last {
            self.bits.extend((0..8).map(|index| Bit::Operand(format!("vaddr{number}"), index)));
        }
        self.bits.resize(self.bits.len().next_multiple_of(32), Bit::Free);
    }

    /// Adds the record's effects other than operands.
    fn add_from(&mut self, record: &Fields) {
        self.reads.extend(names(record, "Uses").map(str::to_owned));
        self.writes.extend(names(record, "Defs").map(str::to_owned));
        for constraint in text(record, "Constraints").split(',') {
            if let Some((one, other)) = constraint.split_once('=') {
                self.ties.push((record_operand_name(one), record_operand_name(other)));
            }
        }
    }
}

fn record_operand_name(text: &str) -> String {
    text.trim().trim_start_matches('$').to_owned()
}

/// The register class of a kind of operand.
fn class(records: &BTreeMap<String, Fields>, kind: &str) -> Option<Class> {
    let name = records.get(kind)?.get("RegClass").and_then(def).unwrap_or(kind);
    let record = records.get(name).filter(|record| is(record, "SIRegisterClassLike"))?;
    let bits = match int(record, "Size") {
        0 => names(record, "RegTypes").next().and_then(|name| records.get(name)).map_or(0, |of| int(of, "Size")),
        bits => bits,
    };
    let has = |field: &str| int(record, field) == 1;
    let bits = u32::try_from(bits).unwrap_or(0);
    let (vector, accumulation, scalar) = (has("HasVGPR"), has("HasAGPR"), has("HasSGPR"));
    Some(Class { name: name.to_owned(), bits, vector, accumulation, scalar })
}

/// The mnemonic at the beginning of an assembly string.
fn mnemonic(text: &str) -> String {
    let text = text.replace(['{', '}'], "");
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(text.len());
    let (name, _) = text.split_at(end);
    let suffixes = ["_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa"];
    suffixes.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name).to_owned()
}

fn bit(value: &Value, nine: bool) -> Bit {
    if let Some(number) = value.as_u64() {
        return Bit::Fixed(number == 1);
    }
    let Some(name) = value.get("var").and_then(Value::as_str) else {
        return chosen_bit(value.get("printable").and_then(Value::as_str).unwrap_or_default(), nine);
    };
    let index = value.get("index").and_then(Value::as_u64).unwrap_or(0);
    Bit::Operand(name.to_owned(), u8::try_from(index).unwrap_or(u8::MAX))
}

/// A bit that depends on whether the encoding is one of gfx9's own, the one condition that is left in the records:
/// `!if(!and(IsGFX9SpecificEncoding, 1), { soffset{6}, …, soffset{0} }, ?){3}`.
fn chosen_bit(text: &str, nine: bool) -> Bit {
    let Some(rest) = text.strip_prefix("!if(!and(IsGFX9SpecificEncoding, 1), ").filter(|_| nine) else {
        return Bit::Free;
    };
    let (Some(at), Some((items, _))) = (braced_bit_number(rest), rest.split_once(" }")) else { return Bit::Free };
    let items: Vec<&str> = items.trim_start_matches("{ ").split(", ").collect();
    let item = items.len().checked_sub(at + 1).and_then(|at| items.get(at)).copied().unwrap_or_default();
    match (item, braced_bit_number(item), item.split_once('{')) {
        ("0" | "1", ..) => Bit::Fixed(item == "1"),
        (_, Some(index), Some((name, _))) => Bit::Operand(name.to_owned(), u8::try_from(index).unwrap_or(u8::MAX)),
        _ => Bit::Free,
    }
}

fn braced_bit_number(text: &str) -> Option<usize> {
    text.rsplit_once('{')?.1.strip_suffix('}')?.parse::<usize>().ok()
}

fn text<'a>(record: &'a Fields, field: &str) -> &'a str {
    record.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn int(record: &Fields, field: &str) -> u64 {
    record.get(field).and_then(Value::as_u64).unwrap_or_default()
}

fn list<'a>(record: &'a Fields, field: &str) -> &'a [Value] {
    record.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn names<'a>(record: &'a Fields, field: &str) -> impl Iterator<Item = &'a str> {
    list(record, field).iter().filter_map(def)
}

fn def(value: &Value) -> Option<&str> {
    value.get("def")?.as_str()
}

fn is(record: &Fields, class: &str) -> bool {
    list(record, "!superclasses").iter().any(|value| value == class)
}

/// The map of all records, of which instructions, operands, classes and types are kept.
struct All;

impl<'de> Visitor<'de> for All {
    type Value = BTreeMap<String, Fields>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the records of llvm-tblgen --dump-json")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut records = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            if name.starts_with('!') {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let record = map.next_value_seed(One)?;
            let wanted = ["Instruction", "DAGOperand", "SIRegisterClassLike", "ValueType"];
            if wanted.iter().any(|class| is(&record, class)) {
                records.insert(name, record);
            }
        }
        Ok(records)
    }
}

/// One record.
struct One;

impl<'de> DeserializeSeed<'de> for One {
    type Value = Fields;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Fields, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for One {
    type Value = Fields;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut record = Fields::new();
        while let Some(field) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            match FIELDS.iter().find(|known| **known == field) {
                Some(known) => drop(record.insert(known, map.next_value()?)),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_in_the_bits_is_decided() {
        let text = "!if(!and(IsGFX9SpecificEncoding, 1), { soffset{2}, soffset{1}, 0 }, ?){2}";
        assert_eq!(chosen_bit(text, true), Bit::Operand("soffset".into(), 2));
        assert_eq!(chosen_bit(&text.replace("){2}", "){0}"), true), Bit::Fixed(false));
        assert_eq!(chosen_bit(text, false), Bit::Free);
        assert_eq!(chosen_bit(&text.replace(", 1)", ", 0)"), true), Bit::Free);
    }

    #[test]
    fn mnemonics_lose_their_suffix() {
        assert_eq!(mnemonic("v_cmpx_class_f16{_e64_dpp} $src0, $src1"), "v_cmpx_class_f16");
        assert_eq!(mnemonic("s_nop $simm16"), "s_nop");
    }
}
