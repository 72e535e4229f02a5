//! Reading the JSON as a stream: one record at a time, known fields only.

use super::{ImportError, wrong};
use crate::model::ImageVariant;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::io::{BufReader, Read};

/// Tables of LLVM's decoder that serve gfx9 to gfx12.5. Absent: GFX80_UNPACKED (gfx8 only), GFX6, GFX7, GFX13.
const NAMESPACES: &[&str] = &[
    "GFX8",
    "GFX9",
    "GFX9_DL",
    "GFX90A",
    "GFX940",
    "GFX950",
    "GFX10",
    "GFX10_B",
    "GFX11",
    "GFX11_FAKE16",
    "GFX11W64",
    "GFX1170",
    "GFX1170_FAKE16",
    "GFX1170W64",
    "GFX12",
    "GFX12_FAKE16",
    "GFX12W64",
    "GFX1250",
    "GFX1250_FAKE16",
    "AMDGPU",
];

/// Fields that the importer reads.
const FIELDS: &[&str] = &[
    "!name",
    "!superclasses",
    "Pfl",
    "DstVT",
    "Mnemonic",
    "!anonymous",
    "AsmString",
    "Constraints",
    "DecoderNamespace",
    "InOperandList",
    "OutOperandList",
    "Inst",
    "Size",
    "TSFlags",
    "Predicates",
    "Uses",
    "Defs",
    "isPseudo",
    "isCodeGenOnly",
    "isAsmParserOnly",
    "isBranch",
    "isTerminator",
    "isBarrier",
    "isCall",
    "isReturn",
    "isIndirectBranch",
    "isTrap",
    "mayLoad",
    "mayStore",
    "hasSideEffects",
    "isCommutable",
    "isConvergent",
    "mayRaiseFPException",
    "IsSingle",
    "a16",
    "Offset",
    "SOffsetEn",
    "IsGFX9SpecificEncoding",
    "BaseOpcode",
    "MIMGEncoding",
    "VDataDwords",
    "VAddrDwords",
    "OperandType",
    "PrintMethod",
    "DecoderMethod",
    "RegClass",
    "Name",
    "Implies",
    "Features",
    "AssemblerCondDag",
    "AssemblerMatcherPredicate",
    "NumExtraArgs",
    "Store",
    "Atomic",
    "AtomicX2",
    "Sampler",
    "Gather4",
    "Gradients",
    "G16",
    "Coordinates",
    "LodOrClampOrMip",
    "HasD16",
    "IsAtomicRet",
    "MSAA",
    "BVH",
    "A16",
    "NoReturn",
    "PointSampleAccel",
];

/// One record of the JSON.
#[derive(Debug, Default)]
pub(super) struct JsonRecord(HashMap<&'static str, Value>);

/// The profile of a vector instruction.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InstructionProfile {
    pub(super) mnemonic: String,
    /// The name of the profile's record.
    pub(super) profile: String,
}

/// The records that the importer needs.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// Encodings that LLVM's decoder knows, in the order of the JSON (by name).
    pub(super) instructions: Vec<JsonRecord>,
    pub(super) processors: Vec<JsonRecord>,
    /// Base operations of image instructions.
    pub(super) image_bases: Vec<JsonRecord>,
    /// Variants of image instructions, including those that only the printer and the assembler know.
    pub(super) variants: BTreeSet<ImageVariant>,
    /// Mnemonics of vector instructions, each with its profile.
    pub(super) profiles: BTreeSet<InstructionProfile>,
    /// Operand kinds, predicates and features, by name.
    pub(super) named: HashMap<String, JsonRecord>,
}

impl JsonRecord {
    pub(super) fn get(&self, field: &str) -> Option<&Value> {
        self.0.get(field).filter(|value| !value.is_null())
    }

    pub(super) fn name(&self) -> &str {
        self.text("!name")
    }

    /// A text field; empty where the record lacks it.
    pub(super) fn text(&self, field: &str) -> &str {
        self.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// A bit or integer field; 0 where the record lacks it.
    pub(super) fn int(&self, field: &str) -> u64 {
        self.get(field).and_then(Value::as_u64).unwrap_or_default()
    }

    /// Bits as an integer; 0 where the record lacks them.
    pub(super) fn bits(&self, field: &str) -> u64 {
        self.list(field).iter().enumerate().map(shifted_json_bit).sum()
    }

    /// A list; empty where the record lacks it.
    pub(super) fn list(&self, field: &str) -> &[Value] {
        self.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Names of the records in a list.
    pub(super) fn names(&self, field: &str) -> impl Iterator<Item = &str> {
        self.list(field).iter().filter_map(|value| def(Some(value)))
    }

    /// Name of the record that a field refers to.
    pub(super) fn def(&self, field: &str) -> Option<&str> {
        def(self.get(field))
    }

    /// Whether the record is of that class.
    pub(super) fn is(&self, class: &str) -> bool {
        self.list("!superclasses").iter().any(|value| value == class)
    }
}

fn shifted_json_bit((at, bit): (usize, &Value)) -> u64 {
    bit.as_u64().unwrap_or_default() << at
}

/// Name of the record that a value refers to.
pub(super) fn def(value: Option<&Value>) -> Option<&str> {
    value?.get("def")?.as_str()
}

impl Records {
    /// The record of that name.
    pub(super) fn find(&self, user: &str, name: &str) -> Result<&JsonRecord, ImportError> {
        self.named.get(name).map_or_else(|| wrong(user, format!("there is no record {name}")), Ok)
    }

    fn add(&mut self, name: String, record: JsonRecord) {
        if record.is("Instruction") {
            self.variants.extend(image_variant(&record));
            self.profiles.extend(profile(&record));
            let never = ["isPseudo", "isCodeGenOnly", "isAsmParserOnly"].iter().any(|field| record.int(field) == 1);
            if !never && NAMESPACES.contains(&record.text("DecoderNamespace")) {
                self.instructions.push(record);
            }
        } else if record.is("Processor") {
            self.processors.push(record);
        } else if record.is("MIMGBaseOpcode") {
            self.image_bases.push(record);
        } else if ["DAGOperand", "RegisterClassLike", "Predicate", "SubtargetFeature", "VOPProfile", "MIMGEncoding"]
            .iter()
            .any(|c| record.is(c))
        {
            self.named.insert(name, record);
        }
    }
}

/// The image variant that an instruction is.
pub(super) fn image_variant(record: &JsonRecord) -> Option<ImageVariant> {
    let encoding = record.def("MIMGEncoding")?.trim_start_matches("MIMGEnc").to_owned();
    Some(ImageVariant {
        base: record.def("BaseOpcode")?.to_owned(),
        encoding,
        data: variant_dword_count("VDataDwords", record),
        address: variant_dword_count("VAddrDwords", record),
    })
}

fn variant_dword_count(field: &str, record: &JsonRecord) -> u8 {
    u8::try_from(record.bits(field) + record.int(field)).unwrap_or(u8::MAX)
}

/// The profile of a vector instruction; a pseudo instruction has its mnemonic in a field of its own.
fn profile(record: &JsonRecord) -> Option<InstructionProfile> {
    let mnemonic = match record.text("Mnemonic") {
        "" => super::shapes::parse_mnemonic(record.text("AsmString")),
        mnemonic => mnemonic,
    };
    Some(InstructionProfile { mnemonic: mnemonic.to_owned(), profile: record.def("Pfl")?.to_owned() })
}

/// Reads the whole JSON.
pub(super) fn read(json: impl Read) -> Result<Records, ImportError> {
    let mut reader = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 20, json));
    let records = reader.deserialize_map(RecordsVisitor)?;
    reader.end()?;
    Ok(records)
}

/// The map of all records.
struct RecordsVisitor;

impl<'de> Visitor<'de> for RecordsVisitor {
    type Value = Records;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the records of llvm-tblgen --dump-json")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Records, A::Error> {
        let mut records = Records::default();
        while let Some(name) = map.next_key::<String>()? {
            if name.starts_with('!') {
                map.next_value::<IgnoredAny>()?;
            } else {
                let record = map.next_value_seed(RecordSeed)?;
                records.add(name, record);
            }
        }
        Ok(records)
    }
}

struct RecordSeed;

impl<'de> DeserializeSeed<'de> for RecordSeed {
    type Value = JsonRecord;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<JsonRecord, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RecordSeed {
    type Value = JsonRecord;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonRecord, A::Error> {
        let mut record = JsonRecord::default();
        while let Some(field) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            match FIELDS.iter().find(|known| **known == field) {
                Some(known) => drop(record.0.insert(known, map.next_value()?)),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(record)
    }
}
