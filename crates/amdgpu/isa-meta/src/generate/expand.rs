//! The model with every reference resolved: numbers instead of names.
//!
//! Invariants: entries are in the order rows × columns; formats, field lists and so on are numbered in the order of
//! their first use; a slot's pieces do not overlap the fixed bits (the reader of the rows checks that).

use super::GenerateError;
use super::names::EnumTexts;
use crate::model::{
    Condition, EncodingColumn, EncodingLayout, EncodingRow, FieldPiece, Model, OperandShape, ShapeOperand,
};
use std::collections::{BTreeMap, BTreeSet};

/// The model with numbers for names.
#[derive(Debug, Clone)]
pub struct Expanded {
    /// The names of operands and fields.
    pub names: EnumTexts,
    /// The flags of instructions.
    pub flags: EnumTexts,
    /// The features of processors.
    pub features: EnumTexts,
    pub classes: EnumTexts,
    /// Registers read or written implicitly.
    pub implicit: EnumTexts,
    /// Operand lists with their places.
    pub formats: Vec<PlacedShape>,
    pub entries: Vec<EncodedRow>,
}

/// A shape in a layout.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlacedShape {
    /// Number of the shape in the model.
    pub shape: usize,
    /// Number of the layout in the model.
    pub layout: usize,
    /// Bytes without literals, image address words included.
    pub bytes: u8,
    /// The operands in LLVM's order.
    pub slots: Vec<OperandSlot>,
}

/// An operand and the position of its value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperandSlot {
    /// Number of its name.
    pub name: u8,
    /// Number of its kind in the model.
    pub kind: usize,
    /// Whether the instruction writes it.
    pub written: bool,
    /// Number of the slot that it must equal.
    pub tied: Option<u8>,
    /// The position of its value; none for implied operands.
    pub pieces: Vec<FieldPiece>,
}

/// One encoding of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedRow {
    /// Number of the row in the model.
    pub row: usize,
    /// Number of the column in the row.
    pub column: usize,
    /// Number of the format.
    pub format: usize,
    /// The fixed bits, including those of the opcode.
    pub mask: u128,
    pub value: u128,
}

impl Expanded {
    pub fn new(model: &Model) -> Result<Self, GenerateError> {
        let names = EnumTexts::new("Name", operand_and_field_names(model))?;
        let mut result = Self {
            names,
            flags: EnumTexts::new("Flag", clone_to_set(model.rows.iter().flat_map(|row| &row.flags)))?,
            features: EnumTexts::new("Feature", collect_features(model))?,
            classes: EnumTexts::new("Class", clone_to_set(model.layouts.iter().map(|layout| &layout.class)))?,
            implicit: EnumTexts::new(
                "Implicit",
                clone_to_set(model.rows.iter().flat_map(|row| row.reads.iter().chain(&row.writes))),
            )?,
            formats: Vec::new(),
            entries: Vec::new(),
        };
        result.expand_rows(model)?;
        Ok(result)
    }

    fn expand_rows(&mut self, model: &Model) -> Result<(), GenerateError> {
        let shapes = number_names(model.shapes.iter().map(|shape| shape.name.as_str()));
        let layouts = number_names(model.layouts.iter().map(|layout| layout.name.as_str()));
        let kinds = number_names(model.kinds.iter().map(|kind| kind.name.as_str()));
        let mut formats = BTreeMap::new();
        for (row_number, row) in model.rows.iter().enumerate() {
            let shape = find_number(&shapes, &row.shape, &row.mnemonic)?;
            for (column_number, column) in row.columns.iter().enumerate() {
                let layout = find_number(&layouts, &column.layout, &row.mnemonic)?;
                let format = match formats.get(&(shape, layout)) {
                    Some(&format) => format,
                    None => {
                        self.formats.push(self.place_shape(model, shape, layout, &kinds)?);
                        formats.insert((shape, layout), self.formats.len() - 1);
                        self.formats.len() - 1
                    }
                };
                let (value, mask) = fixed_bits(&model.layouts[layout], column, row)?;
                self.entries.push(EncodedRow { row: row_number, column: column_number, format, mask, value });
            }
        }
        Ok(())
    }

    fn place_shape(
        &self,
        model: &Model,
        shape: usize,
        layout: usize,
        kinds: &BTreeMap<&str, usize>,
    ) -> Result<PlacedShape, GenerateError> {
        let (shape_data, layout_data) = (&model.shapes[shape], &model.layouts[layout]);
        let mut slots = Vec::with_capacity(shape_data.operands.len());
        for operand in &shape_data.operands {
            slots.push(OperandSlot {
                name: self.names.number(&operand.name)?,
                kind: find_number(kinds, &operand.kind, &shape_data.name)?,
                written: operand.written,
                tied: tied_operand(shape_data, operand)?,
                pieces: operand_pieces(layout_data, operand),
            });
        }
        let end = slots.iter().flat_map(|slot| &slot.pieces).map(|piece| piece.at + piece.width).max().unwrap_or(0);
        let bytes = (end.max(layout_data.bits) as usize).div_ceil(32) * 4;
        Ok(PlacedShape { shape, layout, bytes: bytes as u8, slots })
    }
}

/// Bits of the opcode and of the layout together.
fn fixed_bits(
    layout: &EncodingLayout,
    column: &EncodingColumn,
    row: &EncodingRow,
) -> Result<(u128, u128), GenerateError> {
    let (mut value, mut mask) = (layout.fixed_value, layout.fixed_mask);
    let mut placed = 0;
    for piece in &layout.opcode {
        let bits = low_bits(piece.width);
        value |= ((u128::from(column.opcode) >> piece.from) & bits) << piece.at;
        mask |= bits << piece.at;
        placed |= bits << piece.from;
    }
    if u128::from(column.opcode) & !placed != 0 {
        let message = format!("opcode {:#x} does not fit layout {}", column.opcode, layout.name);
        return Err(GenerateError::new(&row.mnemonic, message));
    }
    Ok((value, mask))
}

/// The `width` lowest bits.
pub fn low_bits(width: u8) -> u128 {
    1u128.checked_shl(u32::from(width)).map_or(u128::MAX, |bit| bit - 1)
}

/// The position of an operand's value. Image addresses after the first that lack a field take a byte each after the
/// eight bytes of the instruction (non-sequential addresses, gfx10 and gfx11).
fn operand_pieces(layout: &EncodingLayout, operand: &ShapeOperand) -> Vec<FieldPiece> {
    if let Some(field) = layout.fields.iter().find(|field| field.name == operand.name) {
        return field.pieces.clone();
    }
    let number = operand.name.strip_prefix("vaddr").and_then(|number| number.parse::<u8>().ok());
    match number {
        Some(number @ 1..=12) if layout.class == "MIMG" => {
            vec![FieldPiece { at: 64 + 8 * (number - 1), from: 0, width: 8 }]
        }
        _ => Vec::new(),
    }
}

fn tied_operand(shape: &OperandShape, operand: &ShapeOperand) -> Result<Option<u8>, GenerateError> {
    let Some(name) = &operand.tied else { return Ok(None) };
    let found = shape.operands.iter().position(|other| other.name == *name && other.name != operand.name);
    let missing =
        || GenerateError::new(&shape.name, format!("`{}` is tied to `{name}`, which is not there", operand.name));
    Ok(Some(found.ok_or_else(missing)? as u8))
}

fn operand_and_field_names(model: &Model) -> BTreeSet<String> {
    let operands = model.shapes.iter().flat_map(|shape| shape.operands.iter().map(|operand| &operand.name));
    let fields = model.layouts.iter().flat_map(|layout| layout.fields.iter().map(|field| &field.name));
    clone_to_set(operands.chain(fields))
}

fn collect_features(model: &Model) -> BTreeSet<String> {
    let mut result = clone_to_set(model.targets.iter().flat_map(|target| &target.features));
    let conditions = model.predicates.iter().map(|predicate| &predicate.condition);
    for condition in conditions.chain(model.steps.iter().map(|step| &step.condition)) {
        collect_condition_features(condition, &mut result);
    }
    result
}

fn collect_condition_features(condition: &Condition, into: &mut BTreeSet<String>) {
    match condition {
        Condition::Has(feature) => {
            into.insert(feature.clone());
        }
        Condition::Not(inner) => collect_condition_features(inner, into),
        Condition::All(inner) | Condition::Any(inner) => {
            inner.iter().for_each(|condition| collect_condition_features(condition, into))
        }
    }
}

fn clone_to_set<'a>(texts: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
    texts.cloned().collect()
}

fn number_names<'a>(names: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    names.enumerate().map(|(number, name)| (name, number)).collect()
}

fn find_number(numbers: &BTreeMap<&str, usize>, name: &str, place: &str) -> Result<usize, GenerateError> {
    numbers.get(name).copied().ok_or_else(|| GenerateError::new(place, format!("unknown name `{name}`")))
}
