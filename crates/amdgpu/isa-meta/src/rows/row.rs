//! The files of the instructions.

use super::line::{Lines, LogicalLine, join, list};
use super::{KnownNames, RowError};
use crate::model::{EncodingColumn, EncodingRow, ImageVariant, Model};

/// Header of every file with rows.
pub(super) const HEADER: &str = "\
# Instructions: one line for each instruction and form, with its encodings.
#
#   MNEMONIC SHAPE [f=FLAG,…] [r=REGISTER,…] [w=REGISTER,…] [image=BASE/ENCODING/DATA/ADDRESS] TABLE:LAYOUT/OPCODE[?PREDICATE+…]…
#
# `r` and `w` are registers that are read and written without being named. An image variant has DATA dwords of data
# and ADDRESS dwords of address. An encoding exists where all its predicates hold; opcodes are hexadecimal.

";

/// Writes a row.
pub(super) fn line(row: &EncodingRow) -> String {
    let mut words = vec![format!("{:<28}", row.mnemonic), format!("{:<12}", row.shape)];
    for (name, items) in [("f", &row.flags), ("r", &row.reads), ("w", &row.writes)] {
        if !items.is_empty() {
            words.push(format!("{name}={}", items.join(",")));
        }
    }
    if let Some(image) = &row.image {
        words.push(format!("image={}/{}/{}/{}", image.base, image.encoding, image.data, image.address));
    }
    words.extend(row.columns.iter().map(|column| {
        let mark = if column.predicates.is_empty() { "" } else { "?" };
        let predicates = column.predicates.join("+");
        format!("{}:{}/{:x}{mark}{predicates}", column.table, column.layout, column.opcode)
    }));
    join(words)
}

/// Reads a file of rows.
pub(super) fn read(lines: &mut Lines<'_>, names: &KnownNames, model: &mut Model) -> Result<(), RowError> {
    while let Some(mut line) = lines.next()? {
        let row = parse_row_line(&mut line)?;
        check(&line, names, &row)?;
        model.rows.push(row);
    }
    Ok(())
}

/// Reads one line.
pub(super) fn parse_row_line(line: &mut LogicalLine<'_>) -> Result<EncodingRow, RowError> {
    let mnemonic = line.word("the mnemonic")?.to_owned();
    let shape = line.word("the shape")?.to_owned();
    let (reads, writes, flags, columns) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut row = EncodingRow { mnemonic, shape, reads, writes, flags, image: None, columns };
    while let Some(word) = line.next() {
        part(word, &mut row).ok_or_else(|| line.error(format!("not a property or an encoding: {word}")))?;
    }
    Ok(row)
}

fn part(word: &str, row: &mut EncodingRow) -> Option<()> {
    match word.split_once('=') {
        Some(("f", items)) => row.flags = list(items),
        Some(("r", items)) => row.reads = list(items),
        Some(("w", items)) => row.writes = list(items),
        Some(("image", variant)) => row.image = Some(image(variant)?),
        Some(_) => return None,
        None => row.columns.push(column(word)?),
    }
    Some(())
}

fn image(text: &str) -> Option<ImageVariant> {
    let mut parts = text.split('/');
    let (base, encoding) = (parts.next()?.to_owned(), parts.next()?.to_owned());
    let (data, address) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some(ImageVariant { base, encoding, data, address })
}

fn column(word: &str) -> Option<EncodingColumn> {
    let (table, rest) = word.split_once(':')?;
    let (encoding, predicates) = rest.split_once('?').unwrap_or((rest, ""));
    let (layout, opcode) = encoding.split_once('/')?;
    let opcode = u32::from_str_radix(opcode, 16).ok()?;
    let predicates = predicates.split('+').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    Some(EncodingColumn { table: table.to_owned(), predicates, layout: layout.to_owned(), opcode })
}

fn check(line: &LogicalLine<'_>, names: &KnownNames, row: &EncodingRow) -> Result<(), RowError> {
    if !names.shapes.contains(&row.shape) {
        return Err(line.error(format!("there is no shape {}", row.shape)));
    }
    if let Some(image) = row.image.as_ref().filter(|image| !names.bases.contains(&image.base)) {
        return Err(line.error(format!("there is no image base {}", image.base)));
    }
    if row.columns.is_empty() {
        return Err(line.error("a row without an encoding"));
    }
    for column in &row.columns {
        check_column(names, column).map_err(|what| line.error(what))?;
    }
    Ok(())
}

fn check_column(names: &KnownNames, column: &EncodingColumn) -> Result<(), String> {
    if !names.tables.contains(&column.table) {
        return Err(format!("no step tries the table {}", column.table));
    }
    if let Some(name) = column.predicates.iter().find(|name| !names.predicates.contains(*name)) {
        return Err(format!("there is no predicate {name}"));
    }
    let Some(width) = names.layouts.get(&column.layout) else {
        return Err(format!("there is no layout {}", column.layout));
    };
    if column.opcode.checked_shr(*width).unwrap_or(0) != 0 {
        return Err(format!("opcode {:x} has more than the {width} bits of {}", column.opcode, column.layout));
    }
    Ok(())
}
