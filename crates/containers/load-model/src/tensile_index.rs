//! Tensile's indices as rocBLAS, hipBLASLt and hipSPARSELt read them: the other files that an index names for a GPU, and the
//! kind of code that its solutions need.
//!
//! Sources: `Tensile/PlaceholderLibrary.hpp` (file names of a placeholder), `ExactLogicLibrary` and
//! `AMDGPUPredicates.hpp` (rows of a hardware library), `ContractionSolution.hpp` (`sourceKernel`).
//!
//! Invariants: rows for another processor than the shown one name nothing. A name that leads out of the directory is kept as it
//! is: the caller refuses it.
//!
//! Absent on purpose: which solution is taken for a problem.

use flate2::read::ZlibDecoder;
use hotswap_report::limit::Charge;
use hotswap_report::{Diagnostic, codes};
use rmpv::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Read;

/// The end of the name of a compressed index, after that of the index.
pub(crate) const COMPRESSED: &str = ".zlib";
/// Compressed at most this many times; more is damage, not an index.
const EXPANSION: u64 = 1024;

/// The kinds of code that the solutions of an index need.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SolutionCode {
    /// Kernels in assembly: in `.co`.
    pub(crate) has_assembly: bool,
    /// Kernels in HIP: in `.hsaco`.
    pub(crate) has_source: bool,
}

/// The bytes of an index, decompressed where its name says so.
///
/// # Errors
/// [`codes::MALFORMED`] for a damaged stream, and the memory limit's error.
pub(crate) fn plain_index<'b>(bytes: &'b [u8], name: &str) -> Result<Cow<'b, [u8]>, Diagnostic> {
    if !name.ends_with(COMPRESSED) {
        return Ok(Cow::Borrowed(bytes));
    }
    let limit = (bytes.len() as u64).saturating_mul(EXPANSION);
    Charge::default().add(bytes.len(), limit.min(1 << 30))?;
    let mut plain = Vec::new();
    let read = ZlibDecoder::new(bytes).take(limit + 1).read_to_end(&mut plain);
    read.map_err(|error| damaged_index(format!("the compressed index: {error}")))?;
    if plain.len() as u64 > limit {
        return Err(damaged_index("the compressed index is longer than such an index can be".to_owned()));
    }
    Ok(Cow::Owned(plain))
}

/// The names (`Placeholder`) of the other indices that a library reads for the processor that it sees.
///
/// # Errors
/// [`codes::MALFORMED`] for an index that is not MessagePack, or ends early.
pub(crate) fn placeholders_of(index: &[u8], processor: &str) -> Result<BTreeSet<String>, Diagnostic> {
    let mut rest = index;
    let value = rmpv::decode::read_value(&mut rest).map_err(|error| damaged_index(format!("the index: {error}")))?;
    let mut names = BTreeSet::new();
    collect_placeholders(&value, processor, &mut names);
    Ok(names)
}

fn damaged_index(what: String) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, what)
}

fn collect_placeholders(value: &Value, processor: &str, names: &mut BTreeSet<String>) {
    match value {
        Value::Map(entries) => {
            if find_field(entries, "type").and_then(Value::as_str) == Some("Placeholder") {
                names.extend(find_field(entries, "value").and_then(Value::as_str).map(str::to_owned));
                return;
            }
            let is_others = find_field(entries, "predicate").is_some_and(|predicate| names_other(predicate, processor));
            if !is_others {
                entries.iter().for_each(|(_, value)| collect_placeholders(value, processor, names));
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect_placeholders(value, processor, names)),
        _ => {}
    }
}

/// Whether a row's predicate requires another processor.
fn names_other(predicate: &Value, processor: &str) -> bool {
    let Value::Map(entries) = predicate else { return false };
    let value = find_field(entries, "value");
    match find_field(entries, "type").and_then(Value::as_str) {
        Some("Processor") => value.and_then(Value::as_str).is_some_and(|named| named != processor),
        Some("AMDGPU") => value.is_some_and(|inner| names_other(inner, processor)),
        Some("And") => value.and_then(Value::as_array).into_iter().flatten().any(|inner| names_other(inner, processor)),
        _ => false,
    }
}

fn find_field<'v>(entries: &'v [(Value, Value)], name: &str) -> Option<&'v Value> {
    entries.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, value)| value)
}

/// The code that the solutions of an index need, by the field `sourceKernel` of each. The index is not decoded: Debian's
/// rocBLAS has 29 MB of them for one GPU.
pub(crate) fn solution_code(index: &[u8]) -> SolutionCode {
    const SOURCE: &[u8] = b"\xacsourceKernel\xc3";
    const ASSEMBLY: &[u8] = b"\xacsourceKernel\xc2";
    SolutionCode { has_assembly: index_mentions_text(ASSEMBLY, index), has_source: index_mentions_text(SOURCE, index) }
}

fn index_mentions_text(text: &[u8], index: &[u8]) -> bool {
    memchr::memmem::find(index, text).is_some()
}

/// The files of code (`co_path`) that the index of further operations has for a processor; `None` where it does
/// not know the processor.
///
/// # Errors
/// As for [`placeholders`].
pub(crate) fn operation_files(index: &[u8], processor: &str) -> Result<Option<BTreeSet<String>>, Diagnostic> {
    let mut rest = index;
    let value = rmpv::decode::read_value(&mut rest).map_err(|error| damaged_index(format!("the index: {error}")))?;
    let rows = value.as_map().map(Vec::as_slice).unwrap_or_default();
    let mut files = BTreeSet::new();
    let Some(operations) = find_field(rows, processor) else { return Ok(None) };
    collect_paths(operations, &mut files);
    Ok(Some(files))
}

fn collect_paths(value: &Value, files: &mut BTreeSet<String>) {
    match value {
        Value::Map(entries) => {
            files.extend(find_field(entries, "co_path").and_then(Value::as_str).map(str::to_owned));
            entries.iter().for_each(|(_, value)| collect_paths(value, files));
        }
        Value::Array(values) => values.iter().for_each(|value| collect_paths(value, files)),
        _ => {}
    }
}

/// Names of indices in a table of solution numbers.
///
/// # Errors
/// As for [`placeholders`].
pub(crate) fn numbered_indices(table: &[u8], processor: &str) -> Result<BTreeSet<String>, Diagnostic> {
    let mut rest = table;
    let value = rmpv::decode::read_value(&mut rest).map_err(|error| damaged_index(format!("the table: {error}")))?;
    let names = value.as_map().into_iter().flatten().filter_map(|(_, name)| name.as_str());
    let ending = format!("_{processor}");
    Ok(names.filter(|name| name.ends_with(&ending)).map(str::to_owned).collect())
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

    fn encoded(value: &Value) -> Vec<u8> {
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, value).unwrap();
        bytes
    }

    fn row(predicate: Value, name: &str) -> Value {
        map(&[("predicate", predicate), ("library", node("Placeholder", name.into()))])
    }

    #[test]
    fn rows_of_other_processors_name_nothing() {
        let processor = |gpu: &str| node("Processor", gpu.into());
        let both = node("And", Value::Array(vec![processor("gfx90a"), node("CUCount", 104.into())]));
        let rows = vec![
            row(node("AMDGPU", processor("gfx1030")), "tuned_gfx1030"),
            row(node("AMDGPU", processor("gfx1100")), "tuned_gfx1100"),
            row(node("AMDGPU", both), "tuned_gfx90a"),
            row(map(&[("type", "TruePred".into())]), "x_fallback"),
        ];
        let index = encoded(&map(&[("library", map(&[("type", "Hardware".into()), ("rows", Value::Array(rows))]))]));
        let names = |gpu: &str| placeholders_of(&index, gpu).unwrap().into_iter().collect::<Vec<_>>();
        assert_eq!(names("gfx1030"), ["tuned_gfx1030", "x_fallback"]);
        assert_eq!(names("gfx90a"), ["tuned_gfx90a", "x_fallback"]);
        assert_eq!(names("gfx1031"), ["x_fallback"]);
        assert_eq!(placeholders_of(&index[..index.len() - 3], "gfx1030").unwrap_err().code, codes::MALFORMED);
    }

    #[test]
    fn solutions_say_which_code_they_need() {
        let solution = |is_source: bool| map(&[("sizeMapping", map(&[("sourceKernel", is_source.into())]))]);
        let index = |kinds: &[bool]| encoded(&Value::Array(kinds.iter().map(|kind| solution(*kind)).collect()));
        for (kinds, has_assembly, has_source) in [
            (&[true, true][..], false, true),
            (&[false], true, false),
            (&[true, false], true, true),
            (&[], false, false),
        ] {
            assert_eq!(solution_code(&index(kinds)), SolutionCode { has_assembly, has_source });
        }
    }

    #[test]
    fn compressed_indices_are_read() {
        use std::io::Write;
        let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(b"text").unwrap();
        let packed = packed.finish().unwrap();
        assert_eq!(&*plain_index(&packed, "x.dat.zlib").unwrap(), b"text");
        assert_eq!(&*plain_index(b"text", "x.dat").unwrap(), b"text");
        assert_eq!(plain_index(&packed[..5], "x.dat.zlib").unwrap_err().code, codes::MALFORMED);
    }
}
