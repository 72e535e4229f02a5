//! Kinds of operands, without duplicates.

use super::json::{JsonRecord, Records};
use super::{ImportError, wrong};
use crate::model::{Model, OperandKind};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Content of a kind: decode, operand type, print, class.
type KindContent = [String; 4];

/// The kinds that were requested, with their names in the records.
pub(super) struct Kinds(RefCell<BTreeMap<KindContent, BTreeSet<String>>>);

/// A kind that gets its name once all are known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KindKey(KindContent);

impl Kinds {
    pub(super) fn new() -> Self {
        Self(RefCell::default())
    }

    /// The kind of an operand.
    pub(super) fn add_kind(&self, records: &Records, user: &str, name: &str) -> Result<KindKey, ImportError> {
        let record = records.find(user, name)?;
        let content = kind_content(records, record)?;
        let mut kinds = self.0.borrow_mut();
        let names = kinds.entry(content.clone()).or_default();
        if !record.name().starts_with("anonymous_") {
            names.insert(record.name().to_owned());
        }
        Ok(KindKey(content))
    }

    /// Puts the kinds that some shape has into the model, by name.
    pub(super) fn fill_kinds(&self, model: &mut Model) {
        let used: BTreeSet<&String> = model.shapes.iter().flat_map(|shape| &shape.operands).map(|o| &o.kind).collect();
        let mut kinds: Vec<OperandKind> = self.0.borrow().keys().map(|content| self.operand_kind(content)).collect();
        kinds.retain(|kind| used.contains(&kind.name));
        kinds.sort_by(|a, b| a.name.cmp(&b.name));
        model.kinds = kinds;
    }

    /// Name of a kind: the first of its records' names, or one made from its content.
    pub(super) fn name(&self, key: &KindKey) -> String {
        let kinds = self.0.borrow();
        match kinds.get(&key.0).and_then(BTreeSet::first) {
            Some(name) => name.clone(),
            None => made_name(&key.0),
        }
    }

    fn operand_kind(&self, content: &KindContent) -> OperandKind {
        let name = self.name(&KindKey(content.clone()));
        let [decode, operand_type, print, class] = content.clone();
        OperandKind { name, decode, operand_type, print, class }
    }
}

fn made_name([decode, operand_type, print, class]: &KindContent) -> String {
    let base = if class.is_empty() { decode } else { class };
    let mut name = format!("{base}_{print}");
    if operand_type != "REGISTER" && operand_type != "IMMEDIATE" {
        name = format!("{name}_{operand_type}");
    }
    if !class.is_empty() && class != decode {
        name = format!("{name}_{decode}");
    }
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect::<String>().replace("__", "_")
}

fn kind_content(records: &Records, record: &JsonRecord) -> Result<KindContent, ImportError> {
    let is_class = record.is("RegisterClassLike");
    let class = if is_class { record.name() } else { record.def("RegClass").unwrap_or_default() };
    let method = match record.text("DecoderMethod") {
        "" if !class.is_empty() => records.find(record.name(), class)?.text("DecoderMethod"),
        method => method,
    };
    let decode = match method {
        "" if class.is_empty() => "imm",
        "" => class,
        _ => decoder_name(method),
    };
    let operand_type = if is_class { "OPERAND_REGISTER" } else { record.text("OperandType") };
    let Some(operand_type) = operand_type.strip_prefix("OPERAND_") else {
        return wrong(record.name(), format!("unknown operand type: {operand_type}"));
    };
    let print = printer_name(record, is_class)?;
    Ok([decode.to_owned(), operand_type.to_owned(), print, class.to_owned()])
}

/// `decodeBoolReg` is `BoolReg`; a decoder of a register class is the class.
fn decoder_name(method: &str) -> &str {
    let class = method.strip_prefix("Decode").and_then(|rest| rest.strip_suffix("RegisterClass"));
    class.unwrap_or_else(|| method.strip_prefix("decode").unwrap_or(method))
}

/// `printCPol` is `CPol`; a closure that calls `printNamedBit(…, "clamp")` is `NamedBit(clamp)`.
fn printer_name(record: &JsonRecord, is_class: bool) -> Result<String, ImportError> {
    let method = if is_class { "printOperand" } else { record.text("PrintMethod") };
    if let Some(rest) = method.strip_prefix("print") {
        return Ok(rest.to_owned());
    }
    let call = method.split_once("{ print").and_then(|(_, rest)| rest.split_once('('));
    let quoted = call.and_then(|(name, rest)| Some((name, rest.split_once('"')?.1)));
    match quoted.and_then(|(name, rest)| Some((name, rest.split_once(')')?.0))) {
        Some((name, arguments)) => {
            let arguments: String = arguments.chars().filter(|c| *c != '"' && *c != ' ').collect();
            Ok(format!("{name}({arguments})"))
        }
        None => wrong(record.name(), format!("unknown print method: {method}")),
    }
}
