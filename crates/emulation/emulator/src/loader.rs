//! Loads a code object into memory of its own: the direct launcher's loader, by the rules of HSA's.
//!
//! Invariants: segments keep their distances. A relocation or a symbol that the loader of HSA would refuse is refused.
//! A relocatable file, which no loader takes, gets the places that a link of it alone could give it.

mod relocatable;

use crate::memory::{DeviceMemory, SparseMemory};
use hotswap_code_object::{CodeObject, DescriptorLocation, KernelMetadata, ObjectKind};
use hotswap_report::{Diagnostic, codes};
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, Rela, SectionHeader, Sym};
use object::{LittleEndian, SectionIndex};
use serde::Deserialize;

const ABS64: u32 = 3;
const RELATIVE64: u32 = 13;

/// A code object in memory.
#[derive(Debug, Clone)]
pub struct LoadedObject {
    /// Name of the processor that it is for.
    pub processor: &'static str,
    pub kernels: Vec<LoadedKernel>,
    /// The distance of its addresses in memory from those in the file; 0 for a relocatable file, which has no addresses.
    pub delta: u64,
    /// The address in memory of each section, in the order of their table. That of a section that is not
    /// loaded has no meaning.
    pub sections: Vec<u64>,
}

/// A kernel in memory.
#[derive(Debug, Clone)]
pub struct LoadedKernel {
    pub name: String,
    /// Address of its descriptor.
    pub kernel_object: u64,
    /// Bytes of its arguments.
    pub kernarg_size: u64,
    /// Bytes of LDS that it has by itself.
    pub lds: u64,
    /// Bytes of scratch of a work-item: those of the metadata, and for a dynamic stack what HIP gives at least.
    pub scratch: u64,
    pub arguments: Vec<KernelArgument>,
    /// Work-groups of a cluster, if it must be started in clusters.
    pub cluster: u64,
}

/// An argument of a kernel.
#[derive(Debug, Clone, Deserialize)]
pub struct KernelArgument {
    /// Its position in the arguments.
    #[serde(rename = ".offset")]
    pub offset: u64,
    #[serde(rename = ".size")]
    pub size: u64,
    /// Its kind: `global_buffer`, `by_value`, or one of those with `hidden_`.
    #[serde(rename = ".value_kind")]
    pub value_kind: String,
}

#[derive(Debug, Deserialize)]
struct NoteMap {
    #[serde(rename = "amdhsa.kernels", default)]
    kernels: Vec<NoteKernel>,
}

#[derive(Debug, Deserialize)]
struct NoteKernel {
    #[serde(rename = ".name")]
    name: String,
    #[serde(rename = ".args", default)]
    arguments: Vec<KernelArgument>,
    #[serde(rename = ".cluster_dims", default)]
    cluster: Vec<u64>,
}

impl LoadedObject {
    /// Loads a code object.
    ///
    /// # Errors
    /// `MALFORMED` for damaged files, and for relocations and symbols that cannot be resolved.
    pub fn load(bytes: &[u8], memory: &mut SparseMemory) -> Result<Self, Diagnostic> {
        let parsed = CodeObject::parse(bytes)?;
        let (delta, sections) = match parsed.kind() {
            ObjectKind::Relocatable => (0, relocatable::place_sections(bytes, memory)?),
            ObjectKind::Linked => {
                let delta = place_segments(bytes, memory)?;
                apply_relocations(bytes, memory, delta)?;
                (delta, section_addresses(bytes, delta)?)
            }
        };
        memory.code_changed();
        let notes = kernel_notes(bytes, &parsed);
        let kernels = parsed.note().kernels.iter().zip(parsed.descriptors()).map(|(kernel, descriptor)| {
            let note = notes.iter().find(|found| found.name == kernel.name);
            LoadedKernel {
                name: kernel.name.to_owned(),
                kernel_object: match parsed.kind() {
                    ObjectKind::Linked => descriptor.address.wrapping_add(delta),
                    ObjectKind::Relocatable => address_in_section(&parsed, &sections, descriptor),
                },
                kernarg_size: kernel.kernarg_size.unwrap_or(0),
                lds: kernel.lds.unwrap_or(0),
                scratch: scratch_of_hip(kernel),
                arguments: note.map(|found| found.arguments.clone()).unwrap_or_default(),
                cluster: note.map_or(1, |found| found.cluster.iter().fold(1, |all, size| size.saturating_mul(all))),
            }
        });
        Ok(Self { processor: parsed.target_id().processor.name, kernels: kernels.collect(), delta, sections })
    }

    /// The kernel of that name.
    pub fn find_kernel(&self, name: &str) -> Option<&LoadedKernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }
}

/// The addresses of the sections of a linked file.
fn section_addresses(bytes: &[u8], delta: u64) -> Result<Vec<u64>, Diagnostic> {
    let sections = elf_header(bytes)?.sections(LittleEndian, bytes);
    let sections = sections.map_err(|error| malformed_error(error.to_string()))?;
    Ok(sections.iter().map(|section| section.sh_addr(LittleEndian).wrapping_add(delta)).collect())
}

/// The address in memory of a descriptor of a relocatable file.
fn address_in_section(parsed: &CodeObject<'_>, sections: &[u64], descriptor: &DescriptorLocation) -> u64 {
    let at = descriptor.range.start;
    let owner = parsed.sections().iter().zip(sections).find(|(section, _)| section.range.contains(&at));
    owner.map_or(0, |(section, address)| address.wrapping_add((at - section.range.start) as u64))
}

/// `hipLimitStackSize` of a program that does not change it.
const HIP_STACK: u64 = 1024;

/// The scratch that HIP writes into the packet.
fn scratch_of_hip(kernel: &KernelMetadata<'_>) -> u64 {
    let stated = kernel.scratch.unwrap_or(0);
    if kernel.uses_dynamic_stack == Some(true) { stated.max(HIP_STACK) } else { stated }
}

fn malformed_error(what: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, what.into())
}

fn kernel_notes(bytes: &[u8], parsed: &CodeObject<'_>) -> Vec<NoteKernel> {
    let ranges = parsed.note().ranges.clone();
    let maps = ranges.into_iter().filter_map(|range| rmp_serde::from_slice::<NoteMap>(bytes.get(range)?).ok());
    maps.flat_map(|map| map.kernels).collect()
}

type ElfObjectHeader = FileHeader64<LittleEndian>;

fn elf_header(bytes: &[u8]) -> Result<&ElfObjectHeader, Diagnostic> {
    ElfObjectHeader::parse(bytes).map_err(|error| malformed_error(error.to_string()))
}

/// Copies the segments to one range of memory; returns the distance.
fn place_segments(bytes: &[u8], memory: &mut SparseMemory) -> Result<u64, Diagnostic> {
    let endian = LittleEndian;
    let segments =
        elf_header(bytes)?.program_headers(endian, bytes).map_err(|error| malformed_error(error.to_string()))?;
    let loads = segments.iter().filter(|segment| segment.p_type(endian) == elf::PT_LOAD);
    let ends = loads.clone().filter_map(|segment| segment.p_vaddr(endian).checked_add(segment.p_memsz(endian)));
    let end = ends.max();
    let start = loads.clone().map(|segment| segment.p_vaddr(endian)).min().unwrap_or(0) & !0xfff;
    let size = end.unwrap_or(0).saturating_sub(start);
    if size > 1 << 31 {
        return Err(malformed_error("the segments take more than 2 GiB of memory"));
    }
    let delta = memory.allocate(size).wrapping_sub(start);
    for segment in loads {
        let content = segment.data(endian, bytes).map_err(|()| malformed_error("a segment leaves the file"))?;
        let address = segment.p_vaddr(endian).wrapping_add(delta);
        memory
            .write(address, content)
            .map_err(|_| malformed_error("a segment is larger in the file than in memory"))?;
    }
    Ok(delta)
}

/// Applies the relocations of a linked file.
fn apply_relocations(bytes: &[u8], memory: &SparseMemory, delta: u64) -> Result<(), Diagnostic> {
    let endian = LittleEndian;
    let header = elf_header(bytes)?;
    let sections = header.sections(endian, bytes).map_err(malformed_object_error)?;
    for section in sections.iter() {
        // Only those that are loaded concern the loader; others are kept by `--emit-relocs`.
        if section.sh_flags(endian) & u64::from(elf::SHF_ALLOC) == 0 {
            continue;
        }
        let Some((relocations, link)) = section.rela(endian, bytes).map_err(malformed_object_error)? else { continue };
        let symbols =
            sections.symbol_table_by_index(endian, bytes, SectionIndex(link.0)).map_err(malformed_object_error)?;
        for relocation in relocations {
            let addend = relocation.r_addend(endian) as u64;
            let value = match relocation.r_type(endian, false) {
                RELATIVE64 => addend.wrapping_add(delta),
                ABS64 => {
                    let number = relocation.r_sym(endian, false) as usize;
                    let symbol = symbols.symbol(object::SymbolIndex(number)).map_err(malformed_object_error)?;
                    if symbol.is_undefined(endian) {
                        let name = symbols.symbol_name(endian, symbol).unwrap_or_default();
                        let name = String::from_utf8_lossy(name);
                        return Err(malformed_error(format!("the symbol {name} is not defined in the code object")));
                    }
                    symbol.st_value(endian).wrapping_add(addend).wrapping_add(delta)
                }
                kind => return Err(malformed_error(format!("a relocation of type {kind}, which loaders do not know"))),
            };
            let address = relocation.r_offset(endian).wrapping_add(delta);
            memory.write(address, &value.to_le_bytes()).map_err(outside_segments_error)?;
        }
    }
    Ok(())
}

fn malformed_object_error(error: object::Error) -> Diagnostic {
    malformed_error(error.to_string())
}

fn outside_segments_error(_: crate::MemoryFault) -> Diagnostic {
    malformed_error("a relocation is outside of the segments")
}
