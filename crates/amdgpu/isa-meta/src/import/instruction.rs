//! From records to rows.

use super::encoding;
use super::json::{JsonRecord, Records};
use super::kinds::Kinds;
use super::layouts::{self, LayoutKey};
use super::shapes::{self, ShapeKey, Shapes};
use super::{ImportError, classes, conditions, flags, json, steps, wrong};
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
    Ok(ImportedInst {
        mnemonic,
        shape: ShapeKey { template, operands },
        reads: sorted_names(record, "Uses"),
        writes: sorted_names(record, "Defs"),
        flags,
        image: json::image_variant(record),
        column: EncodingColumn { table, predicates, layout: String::new(), opcode },
        layout,
    })
}

fn sorted_names(record: &JsonRecord, field: &str) -> Vec<String> {
    record.names(field).map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
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

/// Rows by everything but their columns.
type ImportedRows = BTreeMap<RowKey, Vec<ImportedColumn>>;

/// A row without its columns. The order of the members makes that of the rows in their file.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RowKey {
    mnemonic: String,
    shape: ShapeKey,
    flags: Vec<String>,
    reads: Vec<String>,
    writes: Vec<String>,
    image: Option<ImageVariant>,
}

/// A column, and its layout before that has a name.
#[derive(PartialEq)]
struct ImportedColumn {
    column: EncodingColumn,
    layout: LayoutKey,
}

/// A row whose columns are sorted, with the class that decides its file.
struct ClassedRow {
    class: String,
    key: RowKey,
    columns: Vec<EncodingColumn>,
}

/// Merges instructions to rows, and gives names to layouts and shapes.
pub(super) fn fill_rows(model: &mut Model, kinds: &Kinds, instructions: Vec<ImportedInst>) -> Result<(), ImportError> {
    let keys = instructions.iter().map(|instruction| instruction.layout.clone()).collect();
    let layouts = layouts::name_layouts(keys);
    let mut rows: Vec<_> = merge_instructions(instructions, &layouts).into_iter().map(with_class).collect();
    rows.sort_by_key(|row| family(&row.class));
    let mut shapes = Shapes::default();
    for ClassedRow { class, key, columns } in rows {
        let RowKey { mnemonic, shape, flags, reads, writes, image } = key;
        let shape = shapes.name(kinds, &class, shape)?;
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
        let ImportedInst { mnemonic, shape, reads, writes, flags, image, layout, .. } = item;
        let key = RowKey { mnemonic, shape, flags, reads, writes, image };
        rows.entry(key).or_default().push(ImportedColumn { column, layout });
    }
    rows
}

/// Sorts the columns of a row by generation; the class of the first is the row's.
fn with_class((key, mut columns): (RowKey, Vec<ImportedColumn>)) -> ClassedRow {
    columns.sort_by(|a, b| {
        column_sort_order(&a.column).cmp(&column_sort_order(&b.column)).then_with(|| a.layout.cmp(&b.layout))
    });
    columns.dedup();
    let class = columns.first().map(|column| column.layout.class().to_owned()).unwrap_or_default();
    ClassedRow { class, key, columns: columns.into_iter().map(|column| column.column).collect() }
}

fn column_sort_order(column: &EncodingColumn) -> impl Ord + use<> {
    (steps::table_age(&column.table), column.opcode, column.predicates.clone())
}
