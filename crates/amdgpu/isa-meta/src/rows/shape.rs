//! `shapes.isa`.

use super::line::{Lines, LogicalLine, join};
use super::{KnownNames, RowError};
use crate::model::{Model, OperandShape, ShapeOperand};

const HEADER: &str = "\
# Operand lists with their assembly templates.
#
#   NAME \"TEMPLATE\" OPERAND…
#
# The template is what follows the mnemonic; it may begin with a suffix of it (`_e64`). An operand is
# `name>KIND` when it is written and `name:KIND` when it is read; `:KIND=other` reads the written operand `other`.

";

/// Writes the file.
pub(super) fn write(model: &Model) -> String {
    let mut text = HEADER.to_owned();
    for shape in &model.shapes {
        let mut words = vec![shape.name.clone(), format!("\"{}\"", shape.template)];
        words.extend(shape.operands.iter().map(|operand| {
            let arrow = if operand.written { '>' } else { ':' };
            let tied = operand.tied.as_ref().map_or(String::new(), |name| format!("={name}"));
            format!("{}{arrow}{}{tied}", operand.name, operand.kind)
        }));
        text += &join(words);
    }
    text
}

/// Reads the file.
pub(super) fn read(lines: &mut Lines<'_>, names: &mut KnownNames, model: &mut Model) -> Result<(), RowError> {
    while let Some(mut line) = lines.next()? {
        let name = line.word("the name")?.to_owned();
        if !names.shapes.insert(name.clone()) {
            return Err(line.error(format!("shape {name} exists twice")));
        }
        let template = line.word("the template")?.to_owned();
        let mut shape = OperandShape { name, template, operands: Vec::new() };
        while let Some(word) = line.next() {
            let operand = operand(word).ok_or_else(|| line.error(format!("not an operand: {word}")))?;
            check(&line, names, &shape, &operand)?;
            shape.operands.push(operand);
        }
        model.shapes.push(shape);
    }
    Ok(())
}

fn operand(word: &str) -> Option<ShapeOperand> {
    let at = word.find(['>', ':'])?;
    let (name, rest) = word.split_at_checked(at)?;
    let written = rest.starts_with('>');
    let kind = rest.get(1..)?;
    let (kind, tied) = match kind.rsplit_once('=') {
        Some((kind, tied)) => (kind, Some(tied.to_owned())),
        None => (kind, None),
    };
    let named = !name.is_empty() && !kind.is_empty();
    named.then(|| ShapeOperand { name: name.to_owned(), kind: kind.to_owned(), written, tied })
}

fn check(
    line: &LogicalLine<'_>,
    names: &KnownNames,
    shape: &OperandShape,
    operand: &ShapeOperand,
) -> Result<(), RowError> {
    let before = |name: &String| shape.operands.iter().find(|other| other.name == *name);
    if !names.kinds.contains(&operand.kind) {
        return Err(line.error(format!("there is no kind {}", operand.kind)));
    }
    if before(&operand.name).is_some() {
        return Err(line.error(format!("operand {} exists twice", operand.name)));
    }
    match &operand.tied {
        Some(tied) if !before(tied).is_some_and(|other| other.written) => {
            Err(line.error(format!("{} is tied to {tied}, which is not written", operand.name)))
        }
        _ => Ok(()),
    }
}
