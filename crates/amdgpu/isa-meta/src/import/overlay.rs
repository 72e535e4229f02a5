//! Corrections to LLVM's records, from `overlay.isa`.
//!
//! Invariants: each correction has a reason. One that changes nothing (because a name is unknown, or LLVM has made the
//! change meanwhile) is an error, so that the overlay holds no dead lines.

use crate::model::{EncodingColumn, EncodingRow, Model, Predicate, TargetRow};
use crate::rows::line::{Lines, LogicalLine};
use crate::rows::{OVERLAY, RowError, condition, family, parse_row};

/// Applies the corrections of an overlay's text.
///
/// # Errors
/// A line that is not a correction, lacks a reason, or corrects nothing.
pub(super) fn apply_overlay(model: &mut Model, text: &str) -> Result<(), RowError> {
    let mut lines = Lines::new(OVERLAY, text);
    while let Some(mut line) = lines.next()? {
        let words = correction_words(&mut line)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let result = match words.as_slice() {
            ["target", name, from, changes @ ..] => add_target(model, name, from, changes),
            ["predicate", name, text] => add_predicate(model, name, text),
            ["flag", mnemonics, flags @ ..] => add_flags(model, mnemonics, flags),
            ["reads", mnemonics, registers @ ..] => registers_of(model, mnemonics, registers, |row| &mut row.reads),
            ["writes", mnemonics, registers @ ..] => registers_of(model, mnemonics, registers, |row| &mut row.writes),
            ["row", text] => add_row(model, text),
            ["require", encodings, class, name] => require_predicate(model, encodings, class, name),
            ["replace", encodings, class, old, new] => replace_predicate(model, encodings, class, old, new),
            _ => Err("not a correction".to_owned()),
        };
        result.map_err(|what| line.error(what))?;
    }
    Ok(())
}

/// The words of a correction without its reason.
fn correction_words(line: &mut LogicalLine<'_>) -> Result<Vec<String>, RowError> {
    let mut words = Vec::new();
    while let Some(word) = line.next() {
        words.push(word.to_owned());
    }
    match words.pop() {
        // Only a quoted word has blanks, and a single word is not a reason.
        Some(reason) if reason.contains(' ') => Ok(words),
        _ => Err(line.error("a correction needs its reason, in quotes, at its end")),
    }
}

/// A target that LLVM does not know: another one with features added and removed.
fn add_target(model: &mut Model, name: &str, from: &str, changes: &[&str]) -> Result<(), String> {
    if model.targets.iter().any(|target| target.name == name) {
        return Err(format!("LLVM knows the target {name}"));
    }
    let place = model.targets.iter().position(|target| target.name == from);
    let place = place.ok_or_else(|| format!("there is no target {from}"))?;
    let mut features = model.targets.get(place).map(|target| target.features.clone()).unwrap_or_default();
    for change in changes {
        let (add, feature) = match (change.strip_prefix('+'), change.strip_prefix('-')) {
            (Some(feature), _) => (true, feature),
            (_, Some(feature)) => (false, feature),
            _ => return Err(format!("neither +feature nor -feature: {change}")),
        };
        match (features.binary_search_by(|known| known.as_str().cmp(feature)), add) {
            (Err(at), true) => features.insert(at, feature.to_owned()),
            (Ok(at), false) => drop(features.remove(at)),
            _ => return Err(format!("{change} changes nothing")),
        }
    }
    model.targets.insert(place + 1, TargetRow { name: name.to_owned(), features });
    Ok(())
}

/// A condition that LLVM lacks a name for.
fn add_predicate(model: &mut Model, name: &str, text: &str) -> Result<(), String> {
    let condition = condition::parse(text).ok_or_else(|| format!("not a condition: {text}"))?;
    match model.predicates.binary_search_by(|known| known.name.as_str().cmp(name)) {
        Ok(_) => Err(format!("predicate {name} exists")),
        Err(at) => {
            model.predicates.insert(at, Predicate { name: name.to_owned(), condition });
            Ok(())
        }
    }
}

/// An instruction that LLVM does not know, or another encoding of one that it knows.
fn add_row(model: &mut Model, text: &str) -> Result<(), String> {
    let row = parse_row(text).map_err(|error| error.to_string())?;
    if !model.shapes.iter().any(|shape| shape.name == row.shape) {
        return Err(format!("there is no shape {}", row.shape));
    }
    let file =
        layout_class_family(&row.columns, &model.layouts).ok_or("the row has no encoding with a known layout")?;
    let known = model
        .rows
        .iter()
        .filter(|known| is_same_row(known, &row.mnemonic, &row.shape))
        .flat_map(|known| &known.columns);
    if let Some(column) = known.clone().find(|known| row.columns.contains(known)) {
        return Err(format!("LLVM knows {} in the table {}", row.mnemonic, column.table));
    }
    let key = (file, row.mnemonic.clone());
    let last = model.rows.iter().rposition(|known| {
        (layout_class_family(&known.columns, &model.layouts).unwrap_or(0), known.mnemonic.clone()) <= key
    });
    let place = last.map_or(0, |last| last + 1);
    model.rows.insert(place, row);
    Ok(())
}

fn layout_class_family(columns: &[EncodingColumn], model_layouts: &[crate::model::EncodingLayout]) -> Option<usize> {
    let name = &columns.first()?.layout;
    model_layouts.iter().find(|layout| layout.name == *name).map(|layout| family(&layout.class))
}

fn is_same_row(known: &EncodingRow, row_mnemonic: &str, row_shape: &str) -> bool {
    known.mnemonic == *row_mnemonic && known.shape == *row_shape
}

/// Flags of mnemonics that LLVM does not set, in all their forms.
fn add_flags(model: &mut Model, mnemonics: &str, flags: &[&str]) -> Result<(), String> {
    if let Some(flag) = flags.iter().find(|flag| !is_flag_name(flag)) {
        return Err(format!("not the name of a flag: {flag}"));
    }
    for mnemonic in mnemonics.split(',') {
        for flag in flags {
            let rows = model.rows.iter_mut().filter(|row| matches_pattern(mnemonic, &row.mnemonic));
            let missing = rows.filter_map(|row| {
                let at = row.flags.binary_search_by(|known| known.as_str().cmp(flag)).err()?;
                row.flags.insert(at, (*flag).to_owned());
                Some(())
            });
            if missing.count() == 0 {
                return Err(format!("{mnemonic} has the flag {flag}, or does not exist"));
            }
        }
    }
    Ok(())
}

fn is_flag_name(flag: &&&str) -> bool {
    flag.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Registers that mnemonics read or write implicitly, in all their forms that do not list them yet.
fn registers_of(
    model: &mut Model,
    mnemonics: &str,
    registers: &[&str],
    list: fn(&mut EncodingRow) -> &mut Vec<String>,
) -> Result<(), String> {
    if let Some(register) = registers.iter().find(|register| !is_used_register(register, model)) {
        return Err(format!("no instruction reads or writes a register {register}"));
    }
    for mnemonic in mnemonics.split(',') {
        for register in registers {
            let rows = model.rows.iter_mut().filter(|row| matches_pattern(mnemonic, &row.mnemonic));
            let missing = rows.filter_map(|row| {
                let list = list(row);
                let at = list.binary_search_by(|known| known.as_str().cmp(register)).err()?;
                list.insert(at, (*register).to_owned());
                Some(())
            });
            if missing.count() == 0 {
                return Err(format!("{mnemonic} names {register} already, or does not exist"));
            }
        }
    }
    Ok(())
}

fn is_used_register(register: &str, model: &Model) -> bool {
    model.rows.iter().flat_map(|row| row.reads.iter().chain(&row.writes)).any(|known| known == register)
}

/// Whether a mnemonic matches the pattern; a star at the pattern's end matches anything.
fn matches_pattern(pattern: &str, mnemonic: &str) -> bool {
    pattern.strip_suffix('*').map_or(mnemonic == pattern, |head| mnemonic.starts_with(head))
}

/// One more predicate for the encodings of a mnemonic and class.
fn require_predicate(model: &mut Model, encodings: &str, class: &str, name: &str) -> Result<(), String> {
    check_predicate_exists(model, name)?;
    change_predicates(model, encodings, class, |predicates| {
        let at = predicates.binary_search_by(|known| known.as_str().cmp(name)).err()?;
        predicates.insert(at, name.to_owned());
        Some(())
    })
}

/// Another predicate in place of one.
fn replace_predicate(model: &mut Model, encodings: &str, class: &str, old: &str, new: &str) -> Result<(), String> {
    check_predicate_exists(model, new)?;
    change_predicates(model, encodings, class, |predicates| {
        let at = predicates.iter().position(|known| known == old)?;
        predicates.remove(at);
        predicates.push(new.to_owned());
        predicates.sort_unstable();
        predicates.dedup();
        Some(())
    })
}

fn check_predicate_exists(model: &Model, name: &str) -> Result<(), String> {
    let known = model.predicates.iter().any(|predicate| predicate.name == name);
    if known { Ok(()) } else { Err(format!("there is no predicate {name}")) }
}

/// Changes the predicates of columns: `encodings` is `MNEMONIC@TABLE`, `class` an encoding class or `*`.
fn change_predicates(
    model: &mut Model,
    encodings: &str,
    class: &str,
    apply: impl Fn(&mut Vec<String>) -> Option<()>,
) -> Result<(), String> {
    let (mnemonic, table) = encodings.split_once('@').ok_or_else(|| format!("not MNEMONIC@TABLE: {encodings}"))?;
    let rows = model.rows.iter_mut().filter(|row| row.mnemonic == mnemonic);
    let columns = rows
        .flat_map(|row| &mut row.columns)
        .filter(|column| column.table == table && is_column_of_class(column, &model.layouts, class));
    match columns.filter_map(|column| apply(&mut column.predicates)).count() {
        0 => Err(format!("{encodings} {class}: the correction changes nothing")),
        _ => Ok(()),
    }
}

fn is_column_of_class(column: &EncodingColumn, model_layouts: &[crate::model::EncodingLayout], class: &str) -> bool {
    let layout = model_layouts.iter().find(|layout| layout.name == column.layout);
    class == "*" || layout.is_some_and(|layout| layout.class == class)
}
