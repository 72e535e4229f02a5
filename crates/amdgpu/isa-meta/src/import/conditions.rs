//! Predicates of the assembler as conditions over features.

use super::json::{JsonRecord, Records, def};
use super::{ImportError, wrong};
use crate::model::{Condition, Predicate};
use serde_json::Value;
use std::collections::BTreeSet;

/// All predicates that some instruction names and the decoder checks, by name.
pub(super) fn read_predicates(records: &Records) -> Result<Vec<Predicate>, ImportError> {
    let used: BTreeSet<&str> = records.instructions.iter().flat_map(|record| record.names("Predicates")).collect();
    let mut predicates = Vec::new();
    for name in used {
        let record = records.find(name, name)?;
        if is_decoder_checked(record) {
            let condition = parse_condition_dag(records, name, record.get("AssemblerCondDag"))?;
            predicates.push(Predicate { name: name.to_owned(), condition });
        }
    }
    Ok(predicates)
}

/// Whether the decoder checks a predicate: only those that the assembler knows, and that can fail.
pub(super) fn is_decoder_checked(record: &JsonRecord) -> bool {
    record.int("AssemblerMatcherPredicate") == 1 && record.get("AssemblerCondDag").is_some()
}

fn parse_condition_dag(records: &Records, user: &str, value: Option<&Value>) -> Result<Condition, ImportError> {
    let Some(args) = value.and_then(|value| value.get("args")).and_then(Value::as_array) else {
        return feature_condition(records, user, value);
    };
    let operator = def(value.and_then(|value| value.get("operator"))).unwrap_or_default();
    let parts = args.iter().map(|arg| parse_condition_dag(records, user, arg.get(0)));
    let mut parts = parts.collect::<Result<Vec<_>, _>>()?;
    match (operator, parts.len()) {
        ("all_of" | "any_of", 1) => Ok(parts.remove(0)),
        ("all_of", _) => Ok(Condition::All(parts)),
        ("any_of", _) => Ok(Condition::Any(parts)),
        ("not", 1) => Ok(Condition::Not(Box::new(parts.remove(0)))),
        _ => wrong(user, format!("unknown operator of a condition: {operator}")),
    }
}

fn feature_condition(records: &Records, user: &str, value: Option<&Value>) -> Result<Condition, ImportError> {
    match def(value) {
        Some(name) => Ok(Condition::Has(records.find(user, name)?.text("Name").to_owned())),
        None => wrong(user, "a condition without features"),
    }
}

/// Whether a condition holds for these features.
pub(super) fn condition_holds(condition: &Condition, has: &dyn Fn(&str) -> bool) -> bool {
    match condition {
        Condition::Has(name) => has(name),
        Condition::Not(part) => !condition_holds(part, has),
        Condition::All(parts) => parts.iter().all(|part| condition_holds(part, has)),
        Condition::Any(parts) => parts.iter().any(|part| condition_holds(part, has)),
    }
}

/// Adds the features that a condition mentions.
pub(super) fn collect_features<'a>(condition: &'a Condition, features: &mut BTreeSet<&'a str>) {
    match condition {
        Condition::Has(name) => drop(features.insert(name)),
        Condition::Not(part) => collect_features(part, features),
        Condition::All(parts) | Condition::Any(parts) => parts.iter().for_each(|part| collect_features(part, features)),
    }
}
