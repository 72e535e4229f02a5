//! The functions of code objects for viewers of samples and traces, which know a code object by its bytes and a place in it by an
//! offset: JSON by the hash of the code object, then by ranges of offsets.
//!
//! `{schema: 1, code_objects: {SHA256: {target, code_hash, ranges: [{start, end, name, kind, section}]}}}`; an offset is the address
//! in the code object, in a running program the distance from the load address. Ranges ascend and do not overlap.
//!
//! Absent on purpose: relocatable files, whose functions do not have addresses yet.

use crate::symbol_report::ShownTable;
use hotswap_device_symbols::{Form, Function};
use hotswap_report::{Diagnostic, codes};
use serde_json::{Map, Value, json};

/// The side-car of some code objects.
pub struct SideCar {
    pub document: Value,
    /// Warnings about the code objects that lack a place in it.
    pub left_out: Vec<Diagnostic>,
}

pub fn to_side_car(objects: &[ShownTable<'_>]) -> SideCar {
    let (mut all, mut problems) = (Map::new(), Vec::new());
    for shown in objects {
        let (table, place) = (&shown.object.table, &shown.object.place);
        let Some(hash) = shown.object.sha256.as_ref().filter(|_| table.form == Form::Linked) else {
            problems.push(relocatable(place));
            continue;
        };
        let ranges = ranges(shown.functions().map(|(_, function)| function).collect());
        let object = json!({ "target": shown.object.target, "code_hash": table.code_hash, "ranges": ranges });
        all.insert(hash.clone(), object);
    }
    SideCar { document: json!({ "schema": 1, "code_objects": all }), left_out: problems }
}

fn relocatable(place: &str) -> Diagnostic {
    let of = if place.is_empty() { String::new() } else { format!("{place}: ") };
    let what = format!("{of}functions of a relocatable file have no offsets in a code object");
    Diagnostic::warning(codes::NO_PART, what).advise("ask for the side-car of the linked code object")
}

/// The ranges by offset. A function that begins inside of another one, by its symbol, ends that one's range.
fn ranges(mut functions: Vec<&Function>) -> Vec<Value> {
    functions.sort_by_key(|function| function.address);
    let starts = functions.iter().skip(1).map(|next| next.address).chain([u64::MAX]);
    let with_end = functions.iter().zip(starts).map(|(function, next)| {
        let end = function.address.saturating_add(function.size).min(next);
        (function, end)
    });
    with_end.filter(|(function, end)| *end > function.address).map(function_range_json).collect()
}

fn function_range_json((function, end): (&&Function, u64)) -> Value {
    json!({
        "start": function.address,
        "end": end,
        "name": function.name,
        "kind": function.kind,
        "section": function.section,
    })
}
