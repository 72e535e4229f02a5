//! Layouts of all encodings, without duplicates.

use super::ImportError;
use super::encoding::Encoding;
use super::{classes, encoding, wrong};
use crate::model::{BitRun, EncodingField, EncodingLayout, FieldPiece};
use std::collections::{BTreeMap, BTreeSet};

/// A layout that is not named yet. The order is that of the names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LayoutKey {
    class: String,
    bits: u8,
    opcode: Vec<FieldPiece>,
    fixed_mask: u128,
    fixed_value: u128,
    fields: Vec<EncodingField>,
}

impl LayoutKey {
    pub(super) fn class(&self) -> &str {
        &self.class
    }
}

/// Separates the opcode from an encoding.
pub(super) fn split(
    record: &str,
    mut encoding: Encoding,
    class: &str,
    generation: u8,
) -> Result<(LayoutKey, u32), ImportError> {
    let mut opcode = Vec::new();
    let (mut value, mut from) = (0_u128, 0);
    for &BitRun { at, width } in classes::opcode_position(class, encoding.bits, generation) {
        let mask = (1_u128 << width) - 1;
        if encoding.fixed_mask >> at & mask != mask {
            return wrong(record, format!("the opcode bits of {class} are not all fixed"));
        }
        value |= (encoding.fixed_value >> at & mask) << from;
        encoding.fixed_mask &= !(mask << at);
        encoding.fixed_value &= !(mask << at);
        opcode.push(FieldPiece { at, from, width });
        from += width;
    }
    let fields = encoding::encoding_fields(&encoding);
    let Encoding { bits, fixed_mask, fixed_value, .. } = encoding;
    let key = LayoutKey { class: class.to_owned(), bits, opcode, fixed_mask, fixed_value, fields };
    Ok((key, u32::try_from(value).unwrap_or(u32::MAX)))
}

/// Names of layouts: the class and a number.
pub(super) fn name_layouts(keys: BTreeSet<LayoutKey>) -> BTreeMap<LayoutKey, EncodingLayout> {
    let (mut class, mut number) = (String::new(), 0);
    let mut layouts = BTreeMap::new();
    for key in keys {
        number = if key.class == class { number + 1 } else { 1 };
        class.clone_from(&key.class);
        let layout = EncodingLayout {
            name: format!("{class}.{number}"),
            class: class.clone(),
            bits: key.bits,
            opcode: key.opcode.clone(),
            fixed_mask: key.fixed_mask,
            fixed_value: key.fixed_value,
            fields: key.fields.clone(),
        };
        layouts.insert(key, layout);
    }
    layouts
}
