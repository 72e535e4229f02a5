//! Operand lists: from the records' lists and constraints to shapes.

use super::json::{JsonRecord, Records, def};
use super::kinds::{KindKey, Kinds};
use super::{ImportError, wrong};
use crate::model::{OperandShape, ShapeOperand};
use serde_json::Value;
use std::collections::BTreeMap;

/// One operand, before kinds have names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OperandKey {
    pub(super) name: String,
    kind: KindKey,
    pub(super) written: bool,
    pub(super) tied: Option<String>,
}

/// A shape that is not named yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ShapeKey {
    pub(super) template: String,
    pub(super) operands: Vec<OperandKey>,
}

/// Suffixes that some records have in their mnemonic; the template has them here.
const SUFFIXES: &[&str] = &["_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa"];

/// The mnemonic in an assembly string, without the suffix of an encoding.
pub(super) fn parse_mnemonic(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '.'));
    let (mnemonic, _) = text.split_at(end.unwrap_or(text.len()));
    SUFFIXES.iter().find_map(|suffix| mnemonic.strip_suffix(suffix)).unwrap_or(mnemonic)
}

/// Mnemonic and template of a record's assembly string.
pub(super) fn parse_assembly(record: &JsonRecord) -> Result<(String, String), ImportError> {
    let text = record.text("AsmString").replace(['{', '}'], "");
    let mnemonic = parse_mnemonic(&text);
    if mnemonic.is_empty() || text.contains(['|', '"', '\n', '\t']) {
        return wrong(record.name(), format!("assembly string: {text}"));
    }
    let template = text.strip_prefix(mnemonic).unwrap_or_default();
    Ok((mnemonic.to_owned(), template.to_owned()))
}

/// The operands of a record.
pub(super) fn read_operands(
    records: &Records,
    kinds: &Kinds,
    record: &JsonRecord,
) -> Result<Vec<OperandKey>, ImportError> {
    let mut operands: Vec<OperandKey> = Vec::new();
    for (field, written) in [("OutOperandList", true), ("InOperandList", false)] {
        let list = record.get(field).and_then(|dag| dag.get("args")).and_then(Value::as_array);
        for argument in list.into_iter().flatten() {
            let (Some(kind), Some(name)) = (def(argument.get(0)), argument.get(1).and_then(Value::as_str)) else {
                return wrong(record.name(), format!("an operand that is not a kind with a name: {argument}"));
            };
            let kind = kinds.add_kind(records, record.name(), kind)?;
            operands.push(OperandKey { name: name.to_owned(), kind, written, tied: None });
        }
    }
    for constraint in record.text("Constraints").split(',').map(str::trim) {
        apply_constraint(record.name(), constraint, &mut operands)?;
    }
    Ok(operands)
}

/// Applies `$vdst = $src2`; `@earlyclobber` concerns register allocation only.
fn apply_constraint(record: &str, constraint: &str, operands: &mut [OperandKey]) -> Result<(), ImportError> {
    if constraint.is_empty() || constraint.starts_with("@earlyclobber") {
        return Ok(());
    }
    let names =
        constraint.split_once('=').map(|(a, b)| (a.trim().trim_start_matches('$'), b.trim().trim_start_matches('$')));
    let Some((a, b)) = names else { return wrong(record, format!("unknown constraint: {constraint}")) };
    let (written, read) = if is_written_operand(a, operands) { (a, b) } else { (b, a) };
    let known = is_written_operand(written, operands);
    match operands.iter_mut().find(|operand| !operand.written && operand.name == read) {
        Some(operand) if known => {
            operand.tied = Some(written.to_owned());
            Ok(())
        }
        _ => wrong(record, format!("constraint on unknown operands: {constraint}")),
    }
}

fn is_written_operand(name: &str, operands: &[OperandKey]) -> bool {
    operands.iter().any(|operand| operand.written && operand.name == name)
}

/// Ties operands that hold the old value of a result. Some records have lost the constraint that their pseudo
/// instructions have; such an operand lacks a field, and is identified by its name.
pub(super) fn tie_old_values(operands: &mut [OperandKey], has_field: impl Fn(&str) -> bool) {
    let written: Vec<String> = operands.iter().filter(|o| o.written).map(|o| o.name.clone()).collect();
    for operand in operands.iter_mut().filter(|o| !o.written && o.tied.is_none() && !has_field(&o.name)) {
        let result = if operand.name == "old" { "vdst" } else { operand.name.strip_suffix("_in").unwrap_or_default() };
        operand.tied = written.iter().find(|name| *name == result).cloned();
    }
}

/// Shapes without duplicates, with their names.
#[derive(Default)]
pub(super) struct Shapes(BTreeMap<ShapeKey, OperandShape>);

impl Shapes {
    /// The name of a shape: the first class with it and a digest of its content.
    pub(super) fn name(&mut self, kinds: &Kinds, class: &str, key: ShapeKey) -> Result<String, ImportError> {
        if let Some(shape) = self.0.get(&key) {
            return Ok(shape.name.clone());
        }
        let shape = build_shape(&key, kinds, class);
        if self.0.values().any(|other| other.name == shape.name) {
            return wrong(&shape.name, "two shapes have this name");
        }
        let name = shape.name.clone();
        self.0.insert(key, shape);
        Ok(name)
    }

    /// All shapes, by name.
    pub(super) fn sorted_shapes(self) -> Vec<OperandShape> {
        let mut shapes: Vec<OperandShape> = self.0.into_values().collect();
        shapes.sort_by(|a, b| a.name.cmp(&b.name));
        shapes
    }
}

fn build_shape(key: &ShapeKey, kinds: &Kinds, class: &str) -> OperandShape {
    let operands: Vec<ShapeOperand> = key.operands.iter().map(|one| make_shape_operand(one, kinds)).collect();
    let prefix = class.split_once('_').map_or(class, |(base, _)| base).to_ascii_lowercase();
    let name = format!("{prefix}_{:05x}", shape_digest(&key.template, &operands) & 0xf_ffff);
    OperandShape { name, template: key.template.clone(), operands }
}

fn make_shape_operand(operand: &OperandKey, kinds: &Kinds) -> ShapeOperand {
    ShapeOperand {
        name: operand.name.clone(),
        kind: kinds.name(&operand.kind),
        written: operand.written,
        tied: operand.tied.clone(),
    }
}

/// FNV-1a, so that a name depends on nothing but the content.
fn shape_digest(template: &str, operands: &[ShapeOperand]) -> u64 {
    let text = operands.iter().fold(template.to_owned(), |text, operand| text + &operand_digest_text(operand));
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    hash ^ hash >> 32
}

/// The text of an operand in the digest. It is fixed: names of shapes are in the committed rows.
fn operand_digest_text(operand: &ShapeOperand) -> String {
    let ShapeOperand { name, kind, written, tied } = operand;
    format!(" Operand {{ name: {name:?}, kind: {kind:?}, written: {written:?}, tied: {tied:?} }}")
}
