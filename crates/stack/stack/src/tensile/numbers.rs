//! Numbers of solutions, which all GPUs of hipBLASLt or hipSPARSELt share, and the two files that all of them share.
//!
//! A solution has its number in its index, and the tables of the same index choose by it. The table of numbers maps the
//! first number of each index to the index's name; a program that has a number (of an algorithm that it has kept) gets
//! the last index that begins at or below it. So the solutions of another GPU need numbers that no index has: those of
//! the source, raised by a distance that depends on the GPU alone, so that each index can be made without the others.
//!
//! The file of further operations has a list for each GPU, with the name of the code object.
//!
//! Invariants: every number of an index is that of one of its solutions, before and after. A place where a number would
//! be that HotSwap does not know is refused.

use super::{check_name, read_value, unknown_index, write_value};
use crate::plan::WantedTarget;
use hotswap_report::Diagnostic;
use hotswap_targets::PROCESSORS;
use rmpv::Value;
use std::collections::BTreeSet;

/// More than any library has solutions: Debian's hipBLASLt has 113,000 for eight GPUs.
const NUMBERS: u64 = 1 << 20;

/// The distance of a target's numbers from its source's.
fn number_distance(wanted: &WantedTarget) -> Result<u64, Diagnostic> {
    let place = PROCESSORS.iter().position(|processor| processor.name == wanted.target);
    let place = place.ok_or_else(|| unknown_index(format!("`{}` is not the name of one GPU", wanted.target)))?;
    Ok((place as u64 + 1) * NUMBERS)
}

/// The target's number of a source's.
fn raised_number(number: &Value, wanted: &WantedTarget) -> Result<Value, Diagnostic> {
    let number = number.as_u64().filter(|number| *number < NUMBERS);
    let number = number.ok_or_else(|| unknown_index("the index has a number of a solution that is none"))?;
    Ok((number + number_distance(wanted)?).into())
}

/// Gives the solutions of an index, and the places that choose them, the target's numbers.
pub(super) fn renumber_solutions(index: &mut Value, wanted: &WantedTarget) -> Result<(), Diagnostic> {
    let entries = map_of(index)?;
    let mut numbers = BTreeSet::new();
    let solutions = find_entry(entries, "solutions").and_then(array_of);
    for solution in solutions.ok_or_else(|| unknown_index("the index has no list of solutions"))? {
        let number = find_entry(map_of(solution)?, "index").ok_or_else(|| unknown_index("a solution has no number"))?;
        *number = raised_number(number, wanted)?;
        if !numbers.insert(number.as_u64()) {
            return Err(unknown_index("two solutions have one number"));
        }
    }
    let library = find_entry(entries, "library").ok_or_else(|| unknown_index("the index has no library"))?;
    renumber_node(library, wanted, &numbers)
}

/// Changes the node of a library and those below it.
fn renumber_node(node: &mut Value, wanted: &WantedTarget, numbers: &BTreeSet<Option<u64>>) -> Result<(), Diagnostic> {
    let entries = map_of(node)?;
    let kind = find_entry(entries, "type").and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default();
    match kind.as_str() {
        "Matching" => renumber_rows(find_entry(entries, "table"), wanted, numbers),
        "Single" => renumber_row(node, wanted, numbers),
        // The name of another index.
        "Placeholder" => Ok(()),
        "ProblemMap" => {
            let map = find_entry(entries, "map").ok_or_else(|| unknown_index("a node ProblemMap without a map"))?;
            map_of(map)?.iter_mut().try_for_each(|(_, node)| renumber_node(node, wanted, numbers))
        }
        kind @ ("Hardware" | "Problem") => {
            let rows = find_entry(entries, "rows")
                .and_then(array_of)
                .ok_or_else(|| unknown_index(format!("a node {kind} without rows")))?;
            rows.iter_mut().try_for_each(|row| {
                let node =
                    find_entry(map_of(row)?, "library").ok_or_else(|| unknown_index("a row without a library"))?;
                renumber_node(node, wanted, numbers)
            })
        }
        other => {
            Err(unknown_index(format!("the index has a node `{other}`, of which HotSwap does not know the numbers"))
                .advise("serve it with --names source"))
        }
    }
}

fn renumber_rows(
    rows: Option<&mut Value>,
    wanted: &WantedTarget,
    numbers: &BTreeSet<Option<u64>>,
) -> Result<(), Diagnostic> {
    let rows = rows.and_then(array_of).ok_or_else(|| unknown_index("a node Matching without a table"))?;
    rows.iter_mut().try_for_each(|row| renumber_row(row, wanted, numbers))
}

fn renumber_row(row: &mut Value, wanted: &WantedTarget, numbers: &BTreeSet<Option<u64>>) -> Result<(), Diagnostic> {
    let number = find_entry(map_of(row)?, "index").ok_or_else(|| unknown_index("a choice without a number"))?;
    *number = raised_number(number, wanted)?;
    if numbers.contains(&number.as_u64()) {
        Ok(())
    } else {
        Err(unknown_index("a choice of a solution that is not there"))
    }
}

/// The table of numbers with the targets' indices.
///
/// # Errors
/// [`hotswap_report::codes::UNKNOWN_FORMAT`] for a file of another form.
pub(crate) fn table_with_targets(bytes: &[u8], wanted: &[WantedTarget]) -> Result<Vec<u8>, Diagnostic> {
    let mut value = read_value(bytes)?;
    let rows = map_of(&mut value)?;
    let mut new = Vec::new();
    for row in wanted {
        let end = format!("_{}", row.source);
        for (number, name) in rows.iter() {
            let text = name.as_str().ok_or_else(|| unknown_index("the table of numbers has a name that is no text"))?;
            if let Some(before) = text.strip_suffix(&end) {
                new.push((raised_number(number, row)?, Value::from(format!("{before}_{}", row.target))));
            } else {
                check_name(name, row)?;
            }
        }
    }
    // Readers look for the nearest number, and take the rows in their order.
    new.sort_by_key(|(number, _)| number.as_u64());
    rows.extend(new);
    write_value(&value)
}

/// The file of further operations with the targets' lists.
///
/// # Errors
/// The same as those of [`table`].
pub(crate) fn operations_with_targets(bytes: &[u8], wanted: &[WantedTarget]) -> Result<Vec<u8>, Diagnostic> {
    let mut value = read_value(bytes)?;
    let lists = map_of(&mut value)?;
    for row in wanted {
        if find_named_list(&row.target, lists).is_some() {
            return Err(unknown_index(format!("it has operations for {} already", row.target)));
        }
        let Some(mut list) = find_named_list(&row.source, lists) else { continue };
        rename_objects(&mut list, row)?;
        lists.push((row.target.as_str().into(), list));
    }
    write_value(&value)
}

fn find_named_list(name: &str, lists: &MsgpackEntries) -> Option<Value> {
    lists.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, list)| list.clone())
}

/// Renames the code objects of operations.
fn rename_objects(value: &mut Value, wanted: &WantedTarget) -> Result<(), Diagnostic> {
    let (old, new) = (format!("extop_{}.co", wanted.source), format!("extop_{}.co", wanted.target));
    match value {
        Value::Map(entries) => entries.iter_mut().try_for_each(|(key, value)| {
            if key.as_str() == Some("co_path") && value.as_str() == Some(&old) {
                *value = new.as_str().into();
                return Ok(());
            }
            check_name(key, wanted)?;
            rename_objects(value, wanted)
        }),
        Value::Array(values) => values.iter_mut().try_for_each(|value| rename_objects(value, wanted)),
        other => check_name(other, wanted),
    }
}

type MsgpackEntries = Vec<(Value, Value)>;

fn map_of(value: &mut Value) -> Result<&mut MsgpackEntries, Diagnostic> {
    match value {
        Value::Map(entries) => Ok(entries),
        _ => Err(unknown_index("the index has another value where a map is expected")),
    }
}

fn array_of(value: &mut Value) -> Option<&mut Vec<Value>> {
    if let Value::Array(values) = value { Some(values) } else { None }
}

fn find_entry<'e>(entries: &'e mut MsgpackEntries, name: &str) -> Option<&'e mut Value> {
    entries.iter_mut().find(|(key, _)| key.as_str() == Some(name)).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::super::{rewrite_index, write_value};
    use super::*;
    use crate::rules::FileKind;

    fn wanted(target: &str) -> WantedTarget {
        WantedTarget { target: target.to_owned(), source: "gfx1102".to_owned() }
    }

    fn map(entries: &[(&str, Value)]) -> Value {
        Value::Map(entries.iter().map(|(key, value)| ((*key).into(), value.clone())).collect())
    }

    fn node(kind: &str, name: &str, content: Value) -> Value {
        map(&[("type", kind.into()), (name, content)])
    }

    fn of_gpu(gpu: &str) -> Value {
        node("AMDGPU", "value", node("Processor", "value", gpu.into()))
    }

    fn always() -> Value {
        map(&[("type", "TruePred".into())])
    }

    /// An index of hipBLASLt's form: solutions 7 and 9, and a table that chooses the second one twice.
    fn index(numbers: [u64; 2], chosen: u64, gpu: &str, predicate: &Value) -> Value {
        let any = always();
        let solution = |number: u64| {
            let size = map(&[("index", 0.into()), ("type", "FreeSizeA".into())]);
            map(&[
                ("name", "Cijk_ISA1102".into()),
                ("hardwarePredicate", predicate.clone()),
                ("size", size),
                ("index", number.into()),
            ])
        };
        let choice = |key: u64| map(&[("key", Value::Array(vec![key.into(), 1.into()])), ("index", chosen.into())]);
        let property = map(&[("type", "FreeSizeA".into()), ("index", 0.into())]);
        let matching = map(&[
            ("type", "Matching".into()),
            ("properties", Value::Array(vec![property])),
            ("table", Value::Array(vec![choice(1), choice(2)])),
        ]);
        let single = node("Single", "index", chosen.into());
        let other = node("Placeholder", "value", format!("TensileLibrary_x_{gpu}").into());
        let rows = [matching, single, other].map(|library| map(&[("predicate", any.clone()), ("library", library)]));
        let library =
            node("ProblemMap", "map", map(&[("Contraction", node("Problem", "rows", Value::Array(rows.into())))]));
        map(&[("solutions", Value::Array(numbers.map(solution).into())), ("library", library)])
    }

    fn rewritten(value: &Value) -> Result<Vec<u8>, Diagnostic> {
        rewrite_index(&write_value(value).unwrap(), &wanted("gfx1103"), FileKind::NumberedIndex)
    }

    /// Numbers are raised where they are those of solutions, and nowhere else.
    #[test]
    fn solutions_and_choices_get_the_targets_numbers() {
        let far = number_distance(&wanted("gfx1103")).unwrap();
        assert!(far.is_multiple_of(NUMBERS) && far < 1 << 31);
        let wrapped = node("AMDGPU", "value", always());
        let new = rewritten(&index([7, 9], 9, "gfx1102", &of_gpu("gfx1102"))).unwrap();
        assert!(new == write_value(&index([far + 7, far + 9], far + 9, "gfx1103", &wrapped)).unwrap());
        let all: BTreeSet<u64> =
            PROCESSORS.iter().map(|target| number_distance(&wanted(target.name)).unwrap()).collect();
        assert_eq!(all.len(), PROCESSORS.len());
        // An index without numbers stays as it is but for its names.
        let plain = rewrite_index(
            &write_value(&index([7, 9], 9, "gfx1102", &of_gpu("gfx1102"))).unwrap(),
            &wanted("gfx1103"),
            FileKind::Index,
        );
        assert!(plain.unwrap() == write_value(&index([7, 9], 9, "gfx1103", &always())).unwrap());
    }

    #[test]
    fn numbers_in_unknown_places_are_refused() {
        let change = |path: &[&str], new: Value| {
            let mut whole = index([7, 9], 9, "gfx1102", &of_gpu("gfx1102"));
            let mut value = &mut whole;
            for name in path {
                value = match name.parse::<usize>() {
                    Ok(number) => &mut array_of(value).unwrap()[number],
                    Err(_) => find_entry(map_of(value).unwrap(), name).unwrap(),
                };
            }
            *value = new;
            whole
        };
        let rows = ["library", "map", "Contraction", "rows"];
        let at = |rest: &[&'static str]| [&rows[..], rest].concat();
        for (path, new, says) in [
            (at(&["0", "library", "type"]), "DecisionTree".into(), "`DecisionTree`"),
            (at(&["0", "library", "table", "0", "index"]), 8.into(), "not there"),
            (at(&["1", "library", "index"]), "9".into(), "that is none"),
            (at(&["1", "library"]), map(&[("type", "Single".into())]), "without a number"),
            (vec!["solutions", "0", "index"], 9.into(), "two solutions"),
            (vec!["solutions", "0", "index"], NUMBERS.into(), "that is none"),
            (vec!["solutions"], Value::Nil, "no list of solutions"),
            (vec!["library"], "text".into(), "where a map is expected"),
        ] {
            let error = rewritten(&change(&path, new)).unwrap_err();
            assert!(error.to_string().contains(says), "{path:?}: {error}");
        }
    }

    #[test]
    fn the_table_gets_rows_for_each_target_in_order() {
        let rows = |rows: &[(u64, &str)]| {
            write_value(&Value::Map(rows.iter().map(|(number, name)| ((*number).into(), (*name).into())).collect()))
                .unwrap()
        };
        let old = [(0, "a_gfx1100"), (5, "a_gfx1102"), (9, "b_gfx1102")];
        let of = |target: &str| number_distance(&wanted(target)).unwrap();
        let (one, other) = (of("gfx1103"), of("gfx1101"));
        assert!(other < one);
        let new = [(other + 5, "a_gfx1101"), (other + 9, "b_gfx1101"), (one + 5, "a_gfx1103"), (one + 9, "b_gfx1103")];
        let made = table_with_targets(&rows(&old), &[wanted("gfx1103"), wanted("gfx1101")]).unwrap();
        assert!(made == rows(&[&old[..], &new].concat()));
        for damaged in
            [&b"\xc0"[..], &rows(&[(5, "gfx1102_x")]), &rows(&[(NUMBERS, "a_gfx1102")]), &made[..made.len() - 1]]
        {
            assert!(table_with_targets(damaged, &[wanted("gfx1103")]).is_err());
        }
    }

    #[test]
    fn operations_name_the_targets_code_object() {
        let list = |gpu: &str| {
            let one = map(&[("func_name", "Softmax".into()), ("co_path", format!("extop_{gpu}.co").into())]);
            node("x", "Softmax", map(&[("S", Value::Array(vec![one]))]))
        };
        let file =
            |gpus: &[&str]| write_value(&map(&gpus.iter().map(|gpu| (*gpu, list(gpu))).collect::<Vec<_>>())).unwrap();
        let made = operations_with_targets(&file(&["gfx1100", "gfx1102"]), &[wanted("gfx1103")]).unwrap();
        assert!(made == file(&["gfx1100", "gfx1102", "gfx1103"]));
        assert!(operations_with_targets(&made, &[wanted("gfx1103")]).is_err(), "twice");
        let named = write_value(&map(&[("gfx1102", node("x", "name", "for_gfx1102".into()))])).unwrap();
        assert!(operations_with_targets(&named, &[wanted("gfx1103")]).unwrap_err().to_string().contains("for_gfx1102"));
    }
}
