//! The MessagePack map inside the note.
//!
//! Strings are borrowed, so their place in the file is known. Keys that are not needed are read and
//! dropped; numbers that are absent stay absent.

use crate::malformed;
use hotswap_report::Diagnostic;
use rmpv::ValueRef;
use std::ops::Range;

/// Deepest nesting that the metadata of any compiler has is 5.
const MAX_DEPTH: usize = 32;

/// What the note says about one kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kernel<'a> {
    /// Name as the host asks for it.
    pub name: &'a str,
    /// Symbol of the kernel descriptor, `NAME.kd`.
    pub symbol: &'a str,
    /// Vector registers, per lane.
    pub vgpr_count: Option<u64>,
    /// Accumulation registers, per lane (CDNA).
    pub agpr_count: Option<u64>,
    /// Scalar registers.
    pub sgpr_count: Option<u64>,
    /// Vector registers spilled.
    pub vgpr_spill_count: Option<u64>,
    /// Scalar registers spilled.
    pub sgpr_spill_count: Option<u64>,
    /// Static LDS, bytes a work-group.
    pub lds: Option<u64>,
    /// Scratch, bytes a work-item.
    pub scratch: Option<u64>,
    /// Kernel arguments, bytes.
    pub kernarg_size: Option<u64>,
    /// Lanes of a wave.
    pub wavefront_size: Option<u64>,
    /// Largest work-group, work-items.
    pub max_flat_workgroup_size: Option<u64>,
    /// WGP mode (`true`) or CU mode; absent before GFX10.
    pub workgroup_processor_mode: Option<bool>,
    /// Whether the scratch size is a guess because of calls or recursion.
    pub uses_dynamic_stack: Option<bool>,
}

pub(crate) struct Metadata<'a> {
    /// `amdhsa.target` and its bytes in the file.
    pub(crate) target: Option<(&'a str, Range<usize>)>,
    pub(crate) version: (u64, u64),
    pub(crate) kernels: Vec<Kernel<'a>>,
}

/// Reads the map in `data[range]`.
pub(crate) fn read(data: &[u8], range: Range<usize>) -> Result<Metadata<'_>, Diagnostic> {
    let content = &data[range.clone()];
    let mut rest = content;
    let value = rmpv::decode::read_value_ref_with_max_depth(&mut rest, MAX_DEPTH).map_err(|error| {
        let at = range.start + content.len() - rest.len();
        malformed(at, format!("the metadata is no MessagePack: {error}"))
    })?;
    if !rest.is_empty() {
        return Err(malformed(range.end - rest.len(), "bytes follow the metadata inside its note"));
    }
    let at = range.start;
    let ValueRef::Map(map) = value else { return Err(malformed(at, "the metadata is no map")) };
    let mut fields = Fields::default();
    for (key, value) in map {
        fields.take(string(&key), value, data, at)?;
    }
    let version = fields.version.ok_or_else(|| malformed(at, "the metadata has no amdhsa.version"))?;
    // Compilers write the kernels even when there are none; assembler sources may leave them out.
    Ok(Metadata { target: fields.target, version, kernels: fields.kernels.unwrap_or_default() })
}

#[derive(Default)]
struct Fields<'a> {
    target: Option<(&'a str, Range<usize>)>,
    version: Option<(u64, u64)>,
    kernels: Option<Vec<Kernel<'a>>>,
}

impl<'a> Fields<'a> {
    fn take(&mut self, key: Option<&str>, value: ValueRef<'a>, data: &'a [u8], at: usize) -> Result<(), Diagnostic> {
        let wrong = |what: &str| malformed(at, format!("{what} in the metadata has a wrong form"));
        let twice = match key {
            Some(name @ "amdhsa.target") => {
                let text = string(&value).ok_or_else(|| wrong(name))?;
                self.target.replace((text, place(data, text))).is_some()
            }
            Some(name @ "amdhsa.version") => {
                self.version.replace(version(&value).ok_or_else(|| wrong(name))?).is_some()
            }
            Some(name @ "amdhsa.kernels") => {
                let ValueRef::Array(values) = &value else { return Err(wrong(name)) };
                let kernels = values.iter().map(|value| kernel(value, at)).collect::<Result<_, _>>()?;
                self.kernels.replace(kernels).is_some()
            }
            _ => false,
        };
        if twice { Err(malformed(at, format!("the metadata has {} twice", key.unwrap_or_default()))) } else { Ok(()) }
    }
}

fn string<'a>(value: &ValueRef<'a>) -> Option<&'a str> {
    match value {
        ValueRef::String(text) => (*text).into_str(),
        _ => None,
    }
}

fn version(value: &ValueRef<'_>) -> Option<(u64, u64)> {
    match value {
        ValueRef::Array(numbers) => match numbers.as_slice() {
            [major, minor] => Some((major.as_u64()?, minor.as_u64()?)),
            _ => None,
        },
        _ => None,
    }
}

/// `part` borrows from `data`; where it lies there.
fn place(data: &[u8], part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - data.as_ptr() as usize;
    start..start + part.len()
}

fn kernel<'a>(value: &ValueRef<'a>, at: usize) -> Result<Kernel<'a>, Diagnostic> {
    let ValueRef::Map(map) = value else { return Err(malformed(at, "a kernel in the metadata is no map")) };
    let mut kernel = Kernel::default();
    for (key, value) in map {
        if let Some(key) = string(key) {
            set(&mut kernel, key, value);
        }
    }
    if kernel.name.is_empty() || kernel.symbol.is_empty() {
        return Err(malformed(at, format!("kernel `{}` in the metadata has no .name or no .symbol", kernel.name)));
    }
    Ok(kernel)
}

fn set<'a>(kernel: &mut Kernel<'a>, key: &str, value: &ValueRef<'a>) {
    // Compilers have written these both as booleans and as 0 and 1.
    let flag = || match value {
        ValueRef::Boolean(flag) => Some(*flag),
        _ => value.as_u64().map(|number| number != 0),
    };
    match key {
        ".name" => kernel.name = string(value).unwrap_or_default(),
        ".symbol" => kernel.symbol = string(value).unwrap_or_default(),
        ".vgpr_count" => kernel.vgpr_count = value.as_u64(),
        ".agpr_count" => kernel.agpr_count = value.as_u64(),
        ".sgpr_count" => kernel.sgpr_count = value.as_u64(),
        ".vgpr_spill_count" => kernel.vgpr_spill_count = value.as_u64(),
        ".sgpr_spill_count" => kernel.sgpr_spill_count = value.as_u64(),
        ".group_segment_fixed_size" => kernel.lds = value.as_u64(),
        ".private_segment_fixed_size" => kernel.scratch = value.as_u64(),
        ".kernarg_segment_size" => kernel.kernarg_size = value.as_u64(),
        ".wavefront_size" => kernel.wavefront_size = value.as_u64(),
        ".max_flat_workgroup_size" => kernel.max_flat_workgroup_size = value.as_u64(),
        ".workgroup_processor_mode" => kernel.workgroup_processor_mode = flag(),
        ".uses_dynamic_stack" => kernel.uses_dynamic_stack = flag(),
        _ => {}
    }
}
