//! The smaller files: predicates, targets, steps, kinds, images.

use super::line::{Lines, join, list};
use super::{KnownNames, RowError, condition};
use crate::model::{ImageBase, ImageForm, Model, OperandKind, Predicate, TableStep, TargetRow};

const PREDICATES: &str = "\
# Conditions under which an encoding exists.
#
#   NAME CONDITION
#
# A condition is a feature as LLVM's -mattr names it, not(CONDITION), all(CONDITION,…) or any(CONDITION,…).

";

const TARGETS: &str = "\
# Processors and generic targets with the features that predicates, steps or the decoder ask for.
#
#   NAME FEATURE…
#
# wavefrontsize32, wavefrontsize64 and real-true16 are the assembler's defaults; a decoder may be asked otherwise.

";

const STEPS: &str = "\
# The tables of encodings in the order in which they are tried; the first that accepts a word wins.
#
#   BITS TABLE CONDITION

";

const KINDS: &str = "\
# Kinds of operands.
#
#   NAME decode=… type=… print=… class=…
#
# decode: how the field becomes a value. type: how inline constants and literals are meant. print: how it is
# written in assembly. class: its register class.

";

const IMAGES: &str = "\
# Base operations of image instructions and their variants.
#
#   BASE EXTRA-ARGUMENTS PROPERTY,… ENCODING/DATA/ADDRESS…
#
# DATA and ADDRESS are dwords of the variants that exist; `-` stands for no property.

";

pub(super) fn write_predicates(model: &Model) -> String {
    let line = |item: &Predicate| join([format!("{:<40}", item.name), item.condition.to_string()]);
    model.predicates.iter().fold(PREDICATES.to_owned(), |text, item| text + &line(item))
}

pub(super) fn read_predicates(
    lines: &mut Lines<'_>,
    names: &mut KnownNames,
    model: &mut Model,
) -> Result<(), RowError> {
    while let Some(mut line) = lines.next()? {
        let name = line.word("the name")?.to_owned();
        let text = line.word("the condition")?;
        let condition = condition::parse(text).ok_or_else(|| line.error(format!("not a condition: {text}")))?;
        line.end()?;
        if !names.predicates.insert(name.clone()) {
            return Err(line.error(format!("predicate {name} exists twice")));
        }
        model.predicates.push(Predicate { name, condition });
    }
    Ok(())
}

pub(super) fn write_targets(model: &Model) -> String {
    let line = |item: &TargetRow| join(std::iter::once(&item.name).chain(&item.features));
    model.targets.iter().fold(TARGETS.to_owned(), |text, item| text + &line(item))
}

pub(super) fn read_targets(lines: &mut Lines<'_>, _: &mut KnownNames, model: &mut Model) -> Result<(), RowError> {
    while let Some(mut line) = lines.next()? {
        let name = line.word("the name")?.to_owned();
        if model.targets.iter().any(|target| target.name == name) {
            return Err(line.error(format!("target {name} exists twice")));
        }
        let mut features = Vec::new();
        while let Some(word) = line.next() {
            if features.last().is_some_and(|last: &String| last.as_str() >= word) {
                return Err(line.error(format!("features are not sorted at {word}")));
            }
            features.push(word.to_owned());
        }
        model.targets.push(TargetRow { name, features });
    }
    Ok(())
}

pub(super) fn write_steps(model: &Model) -> String {
    let line = |item: &TableStep| {
        join([format!("{:<3}", item.bits), format!("{:<14}", item.table), item.condition.to_string()])
    };
    model.steps.iter().fold(STEPS.to_owned(), |text, item| text + &line(item))
}

pub(super) fn read_steps(lines: &mut Lines<'_>, names: &mut KnownNames, model: &mut Model) -> Result<(), RowError> {
    while let Some(mut line) = lines.next()? {
        let bits: u8 = line.number("the size")?;
        if !matches!(bits, 32 | 64 | 96 | 128) {
            return Err(line.error(format!("no encoding has {bits} bits")));
        }
        let table = line.word("the table")?.to_owned();
        let text = line.word("the condition")?;
        let condition = condition::parse(text).ok_or_else(|| line.error(format!("not a condition: {text}")))?;
        line.end()?;
        names.tables.insert(table.clone());
        model.steps.push(TableStep { bits, table, condition });
    }
    Ok(())
}

pub(super) fn write_kinds(model: &Model) -> String {
    let line = |item: &OperandKind| {
        let mut words = vec![format!("{:<28}", item.name)];
        let fields =
            [("decode", &item.decode), ("type", &item.operand_type), ("print", &item.print), ("class", &item.class)];
        words.extend(
            fields.iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| format!("{name}={value}")),
        );
        join(words)
    };
    model.kinds.iter().fold(KINDS.to_owned(), |text, item| text + &line(item))
}

pub(super) fn read_kinds(lines: &mut Lines<'_>, names: &mut KnownNames, model: &mut Model) -> Result<(), RowError> {
    while let Some(mut line) = lines.next()? {
        let name = line.word("the name")?.to_owned();
        if !names.kinds.insert(name.clone()) {
            return Err(line.error(format!("kind {name} exists twice")));
        }
        let (decode, operand_type, print, class) = Default::default();
        let mut kind = OperandKind { name, decode, operand_type, print, class };
        while let Some(word) = line.next() {
            let (place, value) = match word.split_once('=') {
                Some(("decode", value)) => (&mut kind.decode, value),
                Some(("type", value)) => (&mut kind.operand_type, value),
                Some(("print", value)) => (&mut kind.print, value),
                Some(("class", value)) => (&mut kind.class, value),
                _ => return Err(line.error(format!("not a property of a kind: {word}"))),
            };
            value.clone_into(place);
        }
        if kind.decode.is_empty() {
            return Err(line.error("a kind without decode"));
        }
        model.kinds.push(kind);
    }
    Ok(())
}

pub(super) fn write_images(model: &Model) -> String {
    let line = |item: &ImageBase| {
        let properties = if item.properties.is_empty() { "-".to_owned() } else { item.properties.join(",") };
        let mut words = vec![format!("{:<36}", item.name), item.extra_arguments.to_string(), properties];
        words.extend(item.variants.iter().map(|form| format!("{}/{}/{}", form.encoding, form.data, form.address)));
        join(words)
    };
    model.image_bases.iter().fold(IMAGES.to_owned(), |text, item| text + &line(item))
}

pub(super) fn read_images(lines: &mut Lines<'_>, names: &mut KnownNames, model: &mut Model) -> Result<(), RowError> {
    while let Some(mut line) = lines.next()? {
        let name = line.word("the name")?.to_owned();
        if !names.bases.insert(name.clone()) {
            return Err(line.error(format!("image base {name} exists twice")));
        }
        let extra_arguments = line.number("the number of extra arguments")?;
        let properties = match line.word("the properties")? {
            "-" => Vec::new(),
            word => list(word),
        };
        let mut variants = Vec::new();
        while let Some(word) = line.next() {
            variants.push(image_form(word).ok_or_else(|| line.error(format!("not a variant: {word}")))?);
        }
        model.image_bases.push(ImageBase { name, properties, extra_arguments, variants });
    }
    Ok(())
}

fn image_form(word: &str) -> Option<ImageForm> {
    let mut parts = word.split('/');
    let encoding = parts.next()?.to_owned();
    let form = ImageForm { encoding, data: parts.next()?.parse().ok()?, address: parts.next()?.parse().ok()? };
    parts.next().is_none().then_some(form)
}
