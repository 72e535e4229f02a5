//! Tensile's indices (MessagePack) for another GPU, where its host library sees the GPU's own name.
//!
//! An index names the GPU in two places: in the predicate of the row of tuned kernels, and at the end of the names of
//! other files (nodes `Placeholder`). The names get the other GPU's. The predicate becomes `TruePred`, because host
//! libraries do not know the names of all GPUs: a predicate with an unknown name never holds, and then only the fallback
//! kernels are used, without a message. hipBLASLt and hipSPARSELt end by a segmentation fault unless the predicate of a
//! solution is one of AMD GPUs, so there `TruePred` is inside of that.
//!
//! hipBLASLt and hipSPARSELt number the solutions of all GPUs together, and look a number up in one table of the files
//! that have it ([`numbers`]), so the solutions of another GPU get numbers of their own there.
//!
//! Invariants: an index whose bytes our writer does not reproduce is refused, and so is one that names the GPU in any
//! other place. An index that does not name it is the same for both.

mod numbers;

pub(crate) use numbers::{operations_with_targets, table_with_targets};

use crate::plan::WantedTarget;
use crate::rules::FileKind;
use hotswap_report::{Diagnostic, codes};
use rmpv::Value;

/// The index for the target of `wanted`, of an index for its source.
///
/// # Errors
/// [`codes::UNKNOWN_FORMAT`] for an index of another form.
pub(crate) fn rewrite_index(bytes: &[u8], wanted: &WantedTarget, kind: FileKind) -> Result<Vec<u8>, Diagnostic> {
    let mut value = read_value(bytes)?;
    rename_in_node(&mut value, wanted, kind)?;
    if kind == FileKind::NumberedIndex {
        numbers::renumber_solutions(&mut value, wanted)?;
    }
    write_value(&value)
}

fn unknown_index(what: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::UNKNOWN_FORMAT, what)
}

/// A value that [`write`] would write as the same bytes.
fn read_value(bytes: &[u8]) -> Result<Value, Diagnostic> {
    let mut rest = bytes;
    let value = rmpv::decode::read_value(&mut rest).map_err(|error| unknown_index(format!("the index: {error}")))?;
    if !rest.is_empty() || write_value(&value)? != bytes {
        return Err(unknown_index("the index is MessagePack of a form that HotSwap does not write"));
    }
    Ok(value)
}

fn write_value(value: &Value) -> Result<Vec<u8>, Diagnostic> {
    let mut out = Vec::new();
    let written = rmpv::encode::write_value(&mut out, value);
    written.map_err(|error| Diagnostic::error(codes::INTERNAL, format!("the index: {error}")))?;
    Ok(out)
}

/// Changes a node and those below it.
fn rename_in_node(value: &mut Value, wanted: &WantedTarget, kind: FileKind) -> Result<(), Diagnostic> {
    if is_predicate(value, &wanted.source) {
        let always = Value::Map(vec![("type".into(), "TruePred".into())]);
        let is_wrapped = kind == FileKind::NumberedIndex;
        *value = if is_wrapped { wrap_amdgpu_value(always) } else { always };
        return Ok(());
    }
    if let Some(name) = placeholder_name(value) {
        if let Some(before) = name.as_str().and_then(|name| name.strip_suffix(&format!("_{}", wanted.source))) {
            *name = format!("{before}_{}", wanted.target).into();
        }
        return check_name(name, wanted);
    }
    match value {
        Value::Map(entries) => entries.iter_mut().try_for_each(|(key, value)| {
            check_name(key, wanted)?;
            rename_in_node(value, wanted, kind)
        }),
        Value::Array(values) => values.iter_mut().try_for_each(|value| rename_in_node(value, wanted, kind)),
        other => check_name(other, wanted),
    }
}

fn wrap_amdgpu_value(inner: Value) -> Value {
    Value::Map(vec![("type".into(), "AMDGPU".into()), ("value".into(), inner)])
}

/// Refuses text that still names the source.
fn check_name(value: &Value, wanted: &WantedTarget) -> Result<(), Diagnostic> {
    match value.as_str() {
        Some(text) if text.contains(&wanted.source) && !wanted.target.contains(&wanted.source) => {
            let what = format!("the index names {} in a place that HotSwap does not know: `{text}`", wanted.source);
            Err(unknown_index(what).advise("serve it with --names source"))
        }
        _ => Ok(()),
    }
}

/// Whether it is `{type: AMDGPU, value: {type: Processor, value: GPU}}` and nothing else.
fn is_predicate(value: &Value, gpu: &str) -> bool {
    let Some(TypedNode { content, .. }) =
        typed_node_parts(value).filter(|node| has_predicate_key(&node.kind, "AMDGPU"))
    else {
        return false;
    };
    typed_node_parts(&content)
        .is_some_and(|node| has_predicate_key(&node.kind, "Processor") && has_predicate_key(&node.content, gpu))
}

fn has_predicate_key(value: &Value, text: &str) -> bool {
    value.as_str() == Some(text)
}

/// A node of the predicates.
struct TypedNode {
    kind: Value,
    content: Value,
}

fn typed_node_parts(value: &Value) -> Option<TypedNode> {
    match value.as_map().map(Vec::as_slice) {
        Some([(first, kind), (second, content)])
            if has_predicate_key(first, "type") && has_predicate_key(second, "value") =>
        {
            Some(TypedNode { kind: kind.clone(), content: content.clone() })
        }
        _ => None,
    }
}

/// The name in `{type: Placeholder, value: NAME}`.
fn placeholder_name(value: &mut Value) -> Option<&mut Value> {
    let Value::Map(entries) = value else { return None };
    let is_one =
        entries.iter().any(|(key, kind)| has_placeholder_key(key, "type") && has_placeholder_key(kind, "Placeholder"));
    let name = entries.iter_mut().find(|(key, _)| has_placeholder_key(key, "value")).filter(|_| is_one)?;
    Some(&mut name.1)
}

fn has_placeholder_key(value: &Value, text: &str) -> bool {
    value.as_str() == Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&str, Value)]) -> Value {
        Value::Map(entries.iter().map(|(key, value)| ((*key).into(), value.clone())).collect())
    }

    fn node(kind: &str, value: Value) -> Value {
        map(&[("type", kind.into()), ("value", value)])
    }

    /// The form of rocBLAS's lazy index.
    fn index(predicate: Value, gpu: &str) -> Value {
        let tuned = node("Placeholder", format!("TensileLibrary_Type_HH_{gpu}").into());
        let fallback = node("Placeholder", "TensileLibrary_Type_HH_fallback".into());
        let row = |predicate: Value, library: Value| map(&[("predicate", predicate), ("library", library)]);
        let rows = Value::Array(vec![row(predicate, tuned), row(map(&[("type", "TruePred".into())]), fallback)]);
        let library = map(&[("type", "Hardware".into()), ("rows", rows), ("size", 70_000.into()), ("x", 1.5.into())]);
        map(&[("solutions", Value::Array(Vec::new())), ("library", library)])
    }

    fn processor(gpu: &str) -> Value {
        node("AMDGPU", node("Processor", gpu.into()))
    }

    fn wanted() -> WantedTarget {
        WantedTarget { target: "gfx1031".to_owned(), source: "gfx1030".to_owned() }
    }

    #[test]
    fn predicate_and_names_are_those_of_the_target() {
        let old = write_value(&index(processor("gfx1030"), "gfx1030")).unwrap();
        let expected = write_value(&index(map(&[("type", "TruePred".into())]), "gfx1031")).unwrap();
        assert!(rewrite_index(&old, &wanted(), FileKind::Index).unwrap() == expected);
        let other = write_value(&index(processor("gfx1100"), "gfx1100")).unwrap();
        assert!(rewrite_index(&other, &wanted(), FileKind::Index).unwrap() == other);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let units = node(
            "AMDGPU",
            node("And", Value::Array(vec![node("Processor", "gfx1030".into()), node("CUCount", 104.into())])),
        );
        let old = write_value(&index(processor("gfx1030"), "gfx1030")).unwrap();
        // 5 as a number of 8 bytes, which no writer of Tensile's makes.
        let long = [&[0x81, 0xa1, b'a', 0xcf][..], &5u64.to_be_bytes()].concat();
        let cases = [
            write_value(&index(units, "gfx1030")).unwrap(),
            write_value(&index(processor("gfx1030"), "gfx1030_x")).unwrap(),
            write_value(&map(&[("gfx1030", 1.into())])).unwrap(),
            old[..old.len() - 1].to_vec(),
            [&old[..], b"\0"].concat(),
            long,
            Vec::new(),
        ];
        for (number, case) in cases.iter().enumerate() {
            assert_eq!(
                rewrite_index(case, &wanted(), FileKind::Index).unwrap_err().code,
                codes::UNKNOWN_FORMAT,
                "{number}"
            );
        }
    }
}
