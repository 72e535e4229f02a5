//! The MessagePack map inside the note.
//!
//! Strings are borrowed, and their position in the file is known. Keys that are not needed are skipped; numbers that
//! are absent stay absent.

use crate::malformed;
use crate::msgpack::{NoteFault, Skipped, ValueReader};
use hotswap_report::Diagnostic;
use std::ops::Range;

/// The note's description of one kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelMetadata<'a> {
    /// Name by which the host requests it.
    pub name: &'a str,
    /// Symbol of the kernel descriptor, `NAME.kd`.
    pub symbol: &'a str,
    /// Vector registers, per lane.
    pub vgpr_count: Option<u64>,
    /// Accumulation registers, per lane (CDNA).
    pub agpr_count: Option<u64>,
    /// Number of scalar registers.
    pub sgpr_count: Option<u64>,
    pub vgpr_spill_count: Option<u64>,
    pub sgpr_spill_count: Option<u64>,
    /// Static LDS, bytes a work-group.
    pub lds: Option<u64>,
    /// Scratch, bytes a work-item.
    pub scratch: Option<u64>,
    /// Size of the kernel arguments, in bytes.
    pub kernarg_size: Option<u64>,
    /// Lanes of a wave.
    pub wavefront_size: Option<u64>,
    pub max_flat_workgroup_size: Option<u64>,
    /// WGP mode (`true`) or CU mode; absent before GFX10.
    pub workgroup_processor_mode: Option<bool>,
    /// Whether the scratch size is a guess because of calls or recursion.
    pub uses_dynamic_stack: Option<bool>,
}

pub(crate) struct Metadata<'a> {
    pub(crate) target: Option<NoteTarget<'a>>,
    pub(crate) version: (u64, u64),
    pub(crate) kernels: Vec<KernelMetadata<'a>>,
}

/// The string `amdhsa.target` of a note.
pub(crate) struct NoteTarget<'a> {
    pub(crate) text: &'a str,
    /// Its bytes in the file.
    pub(crate) range: Range<usize>,
    /// Start of the string, MessagePack's marker and length included.
    pub(crate) head: usize,
}

/// Reads the map in `data[range]`.
pub(crate) fn read_metadata(data: &[u8], range: Range<usize>) -> Result<Metadata<'_>, Diagnostic> {
    let mut reader = ValueReader::new(data, range.clone());
    let fields = NoteFields::read(&mut reader).map_err(|(at, what)| malformed(at, what))?;
    if !reader.is_done() {
        return Err(malformed(reader.at(), "bytes follow the metadata inside its note"));
    }
    let version = fields.version.ok_or_else(|| malformed(range.start, "the metadata has no amdhsa.version"))?;
    // Compilers write the kernels even without any; assembler sources may omit them.
    Ok(Metadata { target: fields.target, version, kernels: fields.kernels.unwrap_or_default() })
}

#[derive(Default)]
struct NoteFields<'a> {
    target: Option<NoteTarget<'a>>,
    version: Option<(u64, u64)>,
    kernels: Option<Vec<KernelMetadata<'a>>>,
}

impl<'a> NoteFields<'a> {
    fn read(reader: &mut ValueReader<'a>) -> Result<Self, NoteFault> {
        let mut fields = Self::default();
        for _ in 0..reader.read_map("the metadata is no map")? {
            let at = reader.at();
            let is_second = match reader.read_text()? {
                Some(b"amdhsa.target") => fields.target.replace(read_target(reader)?).is_some(),
                Some(b"amdhsa.version") => fields.version.replace(read_version(reader)?).is_some(),
                Some(b"amdhsa.kernels") => fields.kernels.replace(read_kernels(reader)?).is_some(),
                _ => {
                    reader.skip_value()?;
                    false
                }
            };
            if is_second {
                return Err((at, "the metadata has this key twice"));
            }
        }
        Ok(fields)
    }
}

fn read_target<'a>(reader: &mut ValueReader<'a>) -> Result<NoteTarget<'a>, NoteFault> {
    let head = reader.at();
    let text = read_string(reader)?.ok_or((head, "amdhsa.target is no text"))?;
    Ok(NoteTarget { text, range: reader.at() - text.len()..reader.at(), head })
}

fn read_version(reader: &mut ValueReader<'_>) -> Result<(u64, u64), NoteFault> {
    let fault = (reader.at(), "amdhsa.version is not two numbers");
    if reader.read_array(fault.1)? != 2 {
        return Err(fault);
    }
    Ok((reader.read_unsigned()?.ok_or(fault)?, reader.read_unsigned()?.ok_or(fault)?))
}

/// Text in UTF-8; `None` for any other value.
fn read_string<'a>(reader: &mut ValueReader<'a>) -> Result<Option<&'a str>, NoteFault> {
    Ok(reader.read_text()?.and_then(|text| std::str::from_utf8(text).ok()))
}

fn read_kernels<'a>(reader: &mut ValueReader<'a>) -> Result<Vec<KernelMetadata<'a>>, NoteFault> {
    let count = reader.read_array("amdhsa.kernels is no array")?;
    // A kernel has a name and a symbol at least: 24 bytes with their keys. A count beyond what the rest can hold is
    // false.
    let mut kernels = Vec::with_capacity(count.min(reader.bytes_left() / 24));
    let mut arguments = Skipped::default();
    for _ in 0..count {
        kernels.push(read_kernel(reader, &mut arguments)?);
    }
    Ok(kernels)
}

fn read_kernel<'a>(reader: &mut ValueReader<'a>, arguments: &mut Skipped) -> Result<KernelMetadata<'a>, NoteFault> {
    let at = reader.at();
    let mut kernel = KernelMetadata::default();
    for _ in 0..reader.read_map("a kernel in the metadata is no map")? {
        match reader.read_text()? {
            // Instances of one template have the same arguments.
            Some(b".args") => reader.skip_like(arguments)?,
            key => kernel.set_field(key.unwrap_or_default(), reader)?,
        }
    }
    if kernel.name.is_empty() || kernel.symbol.is_empty() {
        return Err((at, "a kernel in the metadata has no .name or no .symbol"));
    }
    Ok(kernel)
}

impl<'a> KernelMetadata<'a> {
    fn set_field(&mut self, key: &[u8], reader: &mut ValueReader<'a>) -> Result<(), NoteFault> {
        match key {
            b".name" => self.name = read_string(reader)?.unwrap_or_default(),
            b".symbol" => self.symbol = read_string(reader)?.unwrap_or_default(),
            b".vgpr_count" => self.vgpr_count = reader.read_unsigned()?,
            b".agpr_count" => self.agpr_count = reader.read_unsigned()?,
            b".sgpr_count" => self.sgpr_count = reader.read_unsigned()?,
            b".vgpr_spill_count" => self.vgpr_spill_count = reader.read_unsigned()?,
            b".sgpr_spill_count" => self.sgpr_spill_count = reader.read_unsigned()?,
            b".group_segment_fixed_size" => self.lds = reader.read_unsigned()?,
            b".private_segment_fixed_size" => self.scratch = reader.read_unsigned()?,
            b".kernarg_segment_size" => self.kernarg_size = reader.read_unsigned()?,
            b".wavefront_size" => self.wavefront_size = reader.read_unsigned()?,
            b".max_flat_workgroup_size" => self.max_flat_workgroup_size = reader.read_unsigned()?,
            // Compilers have written these both as booleans and as 0 and 1.
            b".workgroup_processor_mode" => {
                self.workgroup_processor_mode = reader.read_unsigned()?.map(|flag| flag != 0)
            }
            b".uses_dynamic_stack" => self.uses_dynamic_stack = reader.read_unsigned()?.map(|flag| flag != 0),
            _ => reader.skip_value()?,
        }
        Ok(())
    }
}
