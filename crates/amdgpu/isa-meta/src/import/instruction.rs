//! From records to rows.

use super::encoding;
use super::json::{JsonRecord, Records};
use super::kinds::Kinds;
use super::layouts::{self, LayoutKey};
use super::shapes::{self, ShapeKey, Shapes};
use super::{ImportError, classes, conditions, flags, images, steps, wrong};
use crate::model::{EncodingColumn, EncodingLayout, EncodingRow, ImageVariant, Model};
use crate::rows::family;
use std::collections::{BTreeMap, BTreeSet};

/// One record as a row with one column; the column does not have a layout yet.
pub(super) struct ImportedInst {
    mnemonic: String,
    shape: ShapeKey,
    reads: Vec<String>,
    writes: Vec<String>,
    flags: Vec<String>,
    pub(super) image: Option<ImageVariant>,
    pub(super) column: EncodingColumn,
    layout: LayoutKey,
}

/// Reads an instruction's record.
///
/// `halves` are the mnemonics with a result of 16 bits.
pub(super) fn read_instruction(
    records: &Records,
    kinds: &Kinds,
    halves: &BTreeSet<&str>,
    record: &JsonRecord,
) -> Result<ImportedInst, ImportError> {
    let name = record.name();
    let mut operands = shapes::read_operands(records, kinds, record)?;
    let names: Vec<&str> = operands.iter().map(|operand| operand.name.as_str()).collect();
    let dpp8 = names.contains(&"dpp8");
    let mut encoding = encoding::read_encoding(record, &names)?;
    shapes::tie_old_values(&mut operands, |name| encoding.fields.contains_key(name));
    for operand in &operands {
        // The field of a tied pair is that of the written operand, whichever name the record gives it.
        if let Some(written) = operand.tied.as_ref().filter(|written| !encoding.fields.contains_key(*written))
            && let Some(bits) = encoding.fields.remove(&operand.name)
        {
            encoding.fields.insert(written.clone(), bits);
        }
    }
    let (mnemonic, template) = shapes::parse_assembly(record)?;
    let flags = flags::read_flags(record, halves.contains(mnemonic.as_str()));
    let table = record.text("DecoderNamespace").to_ascii_lowercase();
    if steps::table_age(&table).is_none() {
        return wrong(name, format!("unknown table: {table}"));
    }
    let class = classes::encoding_class(name, &encoding, &flags, dpp8)?;
    let (layout, opcode) = layouts::split(name, encoding, &class, steps::table_generation(&table))?;
    let predicates = checked_predicates(records, record)?;
    let sorted = |field: &str| record.names(field).map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect();
    Ok(ImportedInst {
        mnemonic,
        shape: ShapeKey { template, operands },
        reads: sorted("Uses"),
        writes: sorted("Defs"),
        flags,
        image: images::image_variant(record),
        column: EncodingColumn { table, predicates, layout: String::new(), opcode },
        layout,
    })
}

fn checked_predicates(records: &Records, record: &JsonRecord) -> Result<Vec<String>, ImportError> {
    let mut names = BTreeSet::new();
    for name in record.names("Predicates") {
        if conditions::is_decoder_checked(records.find(record.name(), name)?) {
            names.insert(name.to_owned());
        }
    }
    Ok(names.into_iter().collect())
}

/// Rows by everything but their columns; a key's order is that of the rows in their file.
type ImportedRows = BTreeMap<RowKey, Vec<(EncodingColumn, LayoutKey)>>;
/// Mnemonic, shape, flags, reads, writes, image.
type RowKey = (String, ShapeKey, Vec<String>, Vec<String>, Vec<String>, Option<(String, String, u8, u8)>);

/// Merges instructions to rows, and gives names to layouts and shapes.
pub(super) fn fill_rows(model: &mut Model, kinds: &Kinds, instructions: Vec<ImportedInst>) -> Result<(), ImportError> {
    let keys = instructions.iter().map(|instruction| instruction.layout.clone()).collect();
    let layouts: BTreeMap<LayoutKey, EncodingLayout> = layouts::name(keys).into_iter().collect();
    let mut rows: Vec<_> = merge_instructions(instructions, &layouts).into_iter().map(with_class).collect();
    rows.sort_by_key(|(class, ..)| family(class));
    let mut shapes = Shapes::default();
    for (class, (mnemonic, shape, flags, reads, writes, image), columns) in rows {
        let shape = shapes.name(kinds, &class, shape)?;
        let image = image.map(|(base, encoding, data, address)| ImageVariant { base, encoding, data, address });
        model.rows.push(EncodingRow { mnemonic, shape, reads, writes, flags, image, columns });
    }
    model.shapes = shapes.sorted_shapes();
    model.layouts = layouts.into_values().collect();
    Ok(())
}

fn merge_instructions(instructions: Vec<ImportedInst>, layouts: &BTreeMap<LayoutKey, EncodingLayout>) -> ImportedRows {
    let mut rows = ImportedRows::new();
    for item in instructions {
        let name = layouts.get(&item.layout).map(|layout| layout.name.clone()).unwrap_or_default();
        let column = EncodingColumn { layout: name, ..item.column };
        let image = item.image.map(|image| (image.base, image.encoding, image.data, image.address));
        let key = (item.mnemonic, item.shape, item.flags, item.reads, item.writes, image);
        rows.entry(key).or_default().push((column, item.layout));
    }
    rows
}

/// Sorts the columns of a row by generation; the class of the first is the row's.
fn with_class((key, mut columns): (RowKey, Vec<(EncodingColumn, LayoutKey)>)) -> (String, RowKey, Vec<EncodingColumn>) {
    columns.sort_by(|(a, a_layout), (b, b_layout)| {
        column_sort_order(a).cmp(&column_sort_order(b)).then_with(|| a_layout.cmp(b_layout))
    });
    columns.dedup();
    let class = columns.first().map(|(_, layout)| layout.class().to_owned()).unwrap_or_default();
    (class, key, columns.into_iter().map(|(column, _)| column).collect())
}

fn column_sort_order(column: &EncodingColumn) -> (Option<usize>, u32, Vec<String>) {
    (steps::table_age(&column.table), column.opcode, column.predicates.clone())
}
