//! Arguments that the runtime passes to kernels besides those of the program: `hidden_*` in the metadata.
//!
//! Their places differ between versions of code objects. A kernel without any has the same arguments in all.
//!
//! Invariant: a kernel whose metadata leaves room for arguments that it does not state counts as having some.

use crate::CodeObject;
use crate::malformed;
use crate::msgpack::{NoteFault, ValueReader};
use hotswap_report::Diagnostic;

/// A kernel with such arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImplicitArguments<'a> {
    pub kernel: &'a str,
    /// The first of them; `None` where the metadata does not state what the room is for.
    pub kind: Option<&'a str>,
}

/// More bytes than this after the stated arguments are not alignment.
const ALIGNMENT: u64 = 16;

/// The first kernel with implicit arguments.
///
/// # Errors
/// [`hotswap_report::codes::MALFORMED`] for arguments that cannot be read.
pub fn implicit_arguments<'a>(object: &CodeObject<'a>) -> Result<Option<ImplicitArguments<'a>>, Diagnostic> {
    for range in &object.note().ranges {
        let mut reader = ValueReader::new(object.bytes(), range.clone());
        let found = in_note(&mut reader).map_err(|(at, what)| malformed(at, what))?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn in_note<'a>(reader: &mut ValueReader<'a>) -> Result<Option<ImplicitArguments<'a>>, NoteFault> {
    let mut first = None;
    for _ in 0..reader.read_map("the metadata is no map")? {
        if reader.read_text()? != Some(b"amdhsa.kernels") {
            reader.skip_value()?;
            continue;
        }
        for _ in 0..reader.read_array("amdhsa.kernels is no array")? {
            let found = of_kernel(reader)?;
            first = first.or(found);
        }
    }
    Ok(first)
}

fn of_kernel<'a>(reader: &mut ValueReader<'a>) -> Result<Option<ImplicitArguments<'a>>, NoteFault> {
    let (mut kernel, mut size, mut stated) = ("", 0, StatedArguments::default());
    for _ in 0..reader.read_map("a kernel in the metadata is no map")? {
        match reader.read_text()? {
            Some(b".args") => {
                for _ in 0..reader.read_array(".args is no array")? {
                    stated.add_argument(reader)?;
                }
            }
            Some(b".name") => kernel = read_text(reader)?.unwrap_or_default(),
            Some(b".kernarg_segment_size") => size = reader.read_unsigned()?.unwrap_or(u64::MAX),
            _ => reader.skip_value()?,
        }
    }
    let has_room = size >= stated.end.saturating_add(ALIGNMENT);
    Ok((stated.hidden.is_some() || has_room).then_some(ImplicitArguments { kernel, kind: stated.hidden }))
}

/// The arguments of a kernel.
#[derive(Default)]
struct StatedArguments<'a> {
    /// The kind of the first implicit one.
    hidden: Option<&'a str>,
    /// The end of the last one.
    end: u64,
}

impl<'a> StatedArguments<'a> {
    fn add_argument(&mut self, reader: &mut ValueReader<'a>) -> Result<(), NoteFault> {
        let (mut kind, mut offset, mut size) = (None, 0, 0);
        for _ in 0..reader.read_map("an argument in the metadata is no map")? {
            match reader.read_text()? {
                Some(b".value_kind") => kind = read_text(reader)?,
                Some(b".offset") => offset = reader.read_unsigned()?.unwrap_or(0),
                Some(b".size") => size = reader.read_unsigned()?.unwrap_or(0),
                _ => reader.skip_value()?,
            }
        }
        // The runtime passes nothing for `hidden_none`.
        let kind = kind.filter(|kind| kind.starts_with("hidden_") && *kind != "hidden_none");
        self.hidden = self.hidden.or(kind);
        self.end = self.end.max(offset.saturating_add(size));
        Ok(())
    }
}

fn read_text<'a>(reader: &mut ValueReader<'a>) -> Result<Option<&'a str>, NoteFault> {
    Ok(reader.read_text()?.and_then(|text| std::str::from_utf8(text).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmpv::Value;

    fn kernel(arguments: &[(&str, u64, u64)], size: u64) -> Value {
        let argument = |(kind, offset, size): &(&str, u64, u64)| {
            let pairs = [(".offset", (*offset).into()), (".size", (*size).into()), (".value_kind", (*kind).into())];
            Value::Map(pairs.into_iter().map(|(key, value): (&str, Value)| (key.into(), value)).collect())
        };
        let arguments: Vec<Value> = arguments.iter().map(argument).collect();
        Value::Map(vec![
            (".args".into(), Value::Array(arguments)),
            (".kernarg_segment_size".into(), size.into()),
            (".name".into(), "k".into()),
        ])
    }

    fn kind_of(kernel: Value) -> Option<Option<String>> {
        let map = Value::Map(vec![("amdhsa.kernels".into(), Value::Array(vec![kernel]))]);
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, &map).unwrap();
        let found = in_note(&mut ValueReader::new(&bytes, 0..bytes.len())).unwrap();
        found.map(|found| found.kind.map(str::to_owned))
    }

    #[test]
    fn only_stated_arguments_are_the_programs() {
        let own = ("by_value", 0, 124);
        assert_eq!(kind_of(kernel(&[own], 128)), None);
        assert_eq!(kind_of(kernel(&[own, ("hidden_none", 128, 8)], 136)), None);
        let offset = ("hidden_global_offset_x", 128, 8);
        assert_eq!(kind_of(kernel(&[own, offset], 136)), Some(Some("hidden_global_offset_x".to_owned())));
        // Room for 56 bytes of implicit arguments of V4, which no row states.
        assert_eq!(kind_of(kernel(&[own], 184)), Some(None));
        assert_eq!(kind_of(kernel(&[], 0)), None);
        assert_eq!(kind_of(kernel(&[], 16)), Some(None));
    }
}
