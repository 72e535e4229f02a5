//! Writes a code object: kernels, their descriptors and metadata, as lld lays them out.
//!
//! Invariant: the same kernels give the same bytes.
//!
//! Absent on purpose: relocations, data, and calls between functions.

use crate::assembler::InstructionSet;
use crate::error::ConfirmError;
use hotswap_code_object::kernel_descriptor::{self as fields, KernelDescriptor};
use hotswap_isa::Wave;
use hotswap_targets::{Capability, EFlags, FeatureBits, Processor, Support};
use serde::Serialize;

/// Vector registers of a kernel; a multiple of each granule.
const VECTOR_REGISTERS: u32 = 32;
/// Scalar registers of a kernel with VCC and others.
const SCALAR_REGISTERS: u32 = 48;
/// User registers where 16 must be set up: the work-group's number is the last.
pub(crate) const USER_SGPRS_PADDED: u16 = 15;
/// Bytes of the arguments of a kernel: two addresses.
pub const ARGUMENT_BYTES: usize = 16;

const PAGE: u64 = 0x1000;
const CODE_ALIGN: usize = 256;

/// A kernel with its launch.
#[derive(Debug, Clone)]
pub(crate) struct KernelCode {
    pub(crate) name: String,
    pub(crate) code: Vec<u8>,
    /// Bytes of LDS of a work-group.
    pub(crate) lds: u32,
    /// Work-groups of its launch.
    pub(crate) groups: u32,
    /// Work-items of a work-group.
    pub(crate) group_size: u32,
}

#[derive(Serialize)]
struct NoteRoot<'a> {
    #[serde(rename = "amdhsa.kernels")]
    kernels: Vec<NoteKernel<'a>>,
    #[serde(rename = "amdhsa.target")]
    target: String,
    #[serde(rename = "amdhsa.version")]
    version: [u32; 2],
}

#[derive(Serialize)]
struct NoteKernel<'a> {
    #[serde(rename = ".args")]
    arguments: Vec<NoteArgument>,
    #[serde(rename = ".group_segment_fixed_size")]
    lds: u32,
    #[serde(rename = ".kernarg_segment_align")]
    argument_align: u32,
    #[serde(rename = ".kernarg_segment_size")]
    argument_size: u32,
    #[serde(rename = ".max_flat_workgroup_size")]
    workgroup: u32,
    #[serde(rename = ".name")]
    name: &'a str,
    #[serde(rename = ".private_segment_fixed_size")]
    scratch: u32,
    #[serde(rename = ".sgpr_count")]
    sgprs: u32,
    #[serde(rename = ".sgpr_spill_count")]
    sgpr_spills: u32,
    #[serde(rename = ".symbol")]
    symbol: String,
    #[serde(rename = ".uses_dynamic_stack")]
    dynamic_stack: bool,
    #[serde(rename = ".vgpr_count")]
    vgprs: u32,
    #[serde(rename = ".vgpr_spill_count")]
    vgpr_spills: u32,
    #[serde(rename = ".wavefront_size")]
    wave: u32,
}

#[derive(Serialize)]
struct NoteArgument {
    #[serde(rename = ".address_space")]
    address_space: &'static str,
    #[serde(rename = ".offset")]
    offset: u32,
    #[serde(rename = ".size")]
    size: u32,
    #[serde(rename = ".value_kind")]
    value_kind: &'static str,
}

fn metadata_note(set: &InstructionSet, kernels: &[KernelCode]) -> Result<Vec<u8>, ConfirmError> {
    let root = NoteRoot {
        kernels: kernels.iter().map(|kernel| note_kernel(set, kernel)).collect(),
        target: format!("amdgcn-amd-amdhsa--{}", set.processor.name),
        version: [1, 2],
    };
    let content = rmp_serde::to_vec_named(&root).map_err(|error| ConfirmError::Metadata(error.to_string()))?;
    let mut note = Vec::new();
    for number in [7, content.len() as u32, 32] {
        note.extend(number.to_le_bytes());
    }
    note.extend(b"AMDGPU\0\0");
    note.extend(&content);
    note.resize(note.len().next_multiple_of(4), 0);
    Ok(note)
}

fn note_kernel<'k>(set: &InstructionSet, kernel: &'k KernelCode) -> NoteKernel<'k> {
    NoteKernel {
        arguments: [0, 8].map(address_argument).into(),
        lds: kernel.lds,
        argument_align: 8,
        argument_size: ARGUMENT_BYTES as u32,
        workgroup: kernel.group_size,
        name: &kernel.name,
        scratch: 0,
        sgprs: SCALAR_REGISTERS,
        sgpr_spills: 0,
        symbol: format!("{}.kd", kernel.name),
        dynamic_stack: false,
        vgprs: VECTOR_REGISTERS,
        vgpr_spills: 0,
        wave: if set.isa.wave() == Wave::W32 { 32 } else { 64 },
    }
}

/// An argument that is an address.
fn address_argument(offset: u32) -> NoteArgument {
    NoteArgument { address_space: "global", offset, size: 8, value_kind: "global_buffer" }
}

/// The descriptor of a kernel whose code is `distance` bytes behind it.
fn kernel_descriptor(set: &InstructionSet, kernel: &KernelCode, distance: u64) -> Option<[u8; fields::SIZE]> {
    let processor = set.processor;
    let mut bytes = [0; fields::SIZE];
    let mut descriptor = KernelDescriptor::new(&mut bytes[..], processor)?;
    let lanes = if set.isa.wave() == Wave::W32 { 32 } else { 64 };
    let padded = set.has(Capability::UserSgprInit16Bug);
    let required = [
        (fields::LDS, u64::from(kernel.lds)),
        (fields::KERNARG, ARGUMENT_BYTES as u64),
        (fields::ENTRY, distance),
        (fields::VGPRS, processor.limits.vgprs(lanes)?.descriptor_blocks(VECTOR_REGISTERS)?.into()),
        (fields::DENORM_32, 3),
        (fields::DENORM_16_64, 3),
        (fields::USER_SGPRS, if padded { USER_SGPRS_PADDED.into() } else { 2 }),
        (fields::WORKGROUP_ID_X, 1),
        (fields::KERNARG_PTR, 1),
    ];
    for (field, value) in required {
        descriptor.set_field(field, value)?;
    }
    let granule = processor.limits.sgprs.shared.map_or(8, |file| u32::from(file.descriptor_granule));
    let optional = [
        (fields::SGPRS, u64::from(SCALAR_REGISTERS.div_ceil(granule) - 1)),
        // The defaults of clang.
        (fields::DX10_CLAMP, 1),
        (fields::IEEE_MODE, 1),
        (fields::WGP_MODE, 1),
        (fields::MEM_ORDERED, 1),
        (fields::WAVE32, u64::from(lanes == 32)),
        // Accumulation registers begin behind the vector registers.
        (fields::ACCUM_OFFSET, u64::from(VECTOR_REGISTERS / 4 - 1)),
    ];
    for (field, value) in optional {
        // Processors without the field behave as if it were set.
        let _ = descriptor.set_field(field, value);
    }
    Some(bytes)
}

/// `e_flags` of code that runs with each setting of the target's features.
fn header_flags(processor: &'static Processor) -> u32 {
    let [xnack, sramecc] = [processor.xnack, processor.sramecc].map(|support| match support {
        Support::Yes => FeatureBits::Any,
        Support::No | Support::Unsettled => FeatureBits::Unsupported,
    });
    EFlags { processor, xnack, sramecc }.encode()
}

/// A symbol of the file.
struct FileSymbol {
    name: String,
    section: u16,
    kind: u8,
    visibility: u8,
    value: u64,
    size: u64,
}

/// A section of the file.
struct FileSection {
    name: &'static str,
    kind: u32,
    flags: u64,
    link: u32,
    info: u32,
    align: u64,
    entry: u64,
    address: u64,
    offset: u64,
    bytes: Vec<u8>,
}

const HEADER: usize = 64;
const SEGMENT: usize = 56;
const SEGMENTS: usize = 6;
const RODATA: u16 = 5;
const TEXT: u16 = 6;

/// The kernels as a code object for the processor of the set.
pub(crate) fn write_object(set: &InstructionSet, kernels: &[KernelCode]) -> Result<Vec<u8>, ConfirmError> {
    let note = metadata_note(set, kernels)?;
    let (mut text, mut starts) = (Vec::new(), Vec::new());
    for kernel in kernels {
        text.resize(usize::next_multiple_of(text.len(), CODE_ALIGN), 0);
        starts.push(text.len() as u64);
        text.extend(&kernel.code);
    }
    let symbol_count = 2 * kernels.len() as u32 + 1;
    let names: usize = kernels.iter().map(|kernel| 2 * kernel.name.len() + 5).sum();
    let mut layout = FileLayout::default();
    layout.place(".note", 7, 2, 4, note);
    layout.place(".dynsym", 11, 2, 8, vec![0; 24 * symbol_count as usize]);
    layout.place(".hash", 5, 2, 4, vec![0; 4 * (3 + symbol_count as usize)]);
    layout.place(".dynstr", 3, 2, 1, vec![0; names + 1]);
    layout.place(".rodata", 1, 2, 64, vec![0; fields::SIZE * kernels.len()]);
    layout.next_page();
    layout.place(".text", 1, 6, CODE_ALIGN as u64, text);
    layout.next_page();
    layout.place(".dynamic", 6, 3, 8, vec![0; 16 * 6]);
    let [rodata, code] = [RODATA, TEXT].map(|number| layout.sections[usize::from(number) - 1].address);
    let mut descriptors = Vec::new();
    let mut symbols = Vec::new();
    for (number, (kernel, start)) in kernels.iter().zip(&starts).enumerate() {
        let at = rodata + (fields::SIZE * number) as u64;
        let descriptor = kernel_descriptor(set, kernel, code + start - at);
        descriptors.extend(descriptor.ok_or(ConfirmError::Registers(set.processor.name))?);
        let size = kernel.code.len() as u64;
        let function =
            FileSymbol { name: kernel.name.clone(), section: TEXT, kind: 2, visibility: 3, value: code + start, size };
        let name = format!("{}.kd", kernel.name);
        symbols.push(function);
        symbols.push(FileSymbol {
            name,
            section: RODATA,
            kind: 1,
            visibility: 3,
            value: at,
            size: fields::SIZE as u64,
        });
    }
    layout.sections[usize::from(RODATA) - 1].bytes = descriptors;
    layout.fill_tables(&symbols);
    Ok(layout.write_file(header_flags(set.processor)))
}

/// The sections with their places, those that are loaded first.
#[derive(Default)]
struct FileLayout {
    sections: Vec<FileSection>,
    /// The end of the last one in the file, and how far addresses are beyond offsets.
    end: u64,
    shift: u64,
}

impl FileLayout {
    fn place(&mut self, name: &'static str, kind: u32, flags: u64, align: u64, bytes: Vec<u8>) {
        let start = self.end.max((HEADER + SEGMENT * SEGMENTS) as u64);
        let offset = start.next_multiple_of(align);
        self.end = offset + bytes.len() as u64;
        let address = if flags == 0 { 0 } else { offset + self.shift };
        self.sections.push(FileSection {
            name,
            kind,
            flags,
            link: 0,
            info: 0,
            align,
            entry: 0,
            address,
            offset,
            bytes,
        });
    }

    /// The next sections are in another page of memory, because they have other permissions.
    fn next_page(&mut self) {
        self.end = self.end.next_multiple_of(CODE_ALIGN as u64);
        self.shift += PAGE;
    }

    fn section(&mut self, name: &str) -> Option<&mut FileSection> {
        self.sections.iter_mut().find(|section| section.name == name)
    }

    fn find_section(&self, name: &str) -> Option<&FileSection> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// Fills symbols, their names and the hash table, and the table of the dynamic linker, whose sizes are fixed.
    fn fill_tables(&mut self, symbols: &[FileSymbol]) {
        let table = symbol_table(symbols);
        let hash = hash_table(symbols);
        let mut places = [0; 3];
        for (place, name) in places.iter_mut().zip([".dynsym", ".hash", ".dynstr"]) {
            *place = self.section(name).map_or(0, |section| section.address);
        }
        let dynamic =
            [(4, places[1]), (5, places[2]), (6, places[0]), (10, table.names.len() as u64), (11, 24), (0, 0)];
        let dynamic: Vec<u8> = dynamic
            .iter()
            .flat_map(|(tag, value): &(u64, u64)| [tag.to_le_bytes(), value.to_le_bytes()].concat())
            .collect();
        self.place(".symtab", 2, 0, 8, table.symbols.clone());
        self.place(".strtab", 3, 0, 1, table.names.clone());
        for (name, bytes, links) in [
            (".dynsym", Some(table.symbols), [4, 1, 24]),
            (".symtab", None, [9, 1, 24]),
            (".hash", Some(hash), [2, 0, 4]),
            (".dynstr", Some(table.names), [0, 0, 0]),
            (".dynamic", Some(dynamic), [4, 0, 16]),
        ] {
            let Some(section) = self.section(name) else { continue };
            [section.link, section.info] = [links[0], links[1]];
            section.entry = u64::from(links[2]);
            if let Some(bytes) = bytes {
                section.bytes = bytes;
            }
        }
    }

    fn write_file(mut self, flags: u32) -> Vec<u8> {
        let mut names = vec![0];
        let mut starts = Vec::new();
        for name in self.sections.iter().map(|section| section.name).chain([".shstrtab"]) {
            starts.push(names.len() as u32);
            names.extend(name.as_bytes());
            names.push(0);
        }
        self.place(".shstrtab", 3, 0, 1, names);
        let table = self.end.next_multiple_of(8);
        let mut file = file_header(flags, table, self.sections.len() as u16 + 1);
        for segment in self.segments() {
            file.extend(segment);
        }
        for section in &self.sections {
            file.resize(section.offset as usize, 0);
            file.extend(&section.bytes);
        }
        file.resize(table as usize + 64, 0);
        for (section, name) in self.sections.iter().zip(starts) {
            file.extend(section_header(section, name));
        }
        file
    }

    /// Program headers: those of the headers themselves, the three kinds of memory, the dynamic table and the note.
    fn segments(&self) -> Vec<Vec<u8>> {
        let headers = (HEADER + SEGMENT * SEGMENTS) as u64;
        let mut segments = vec![segment(6, 4, [64, 64, headers - 64, 8])];
        let read_only = self.find_section(".rodata").map_or(0, |section| section.offset + section.bytes.len() as u64);
        segments.push(segment(1, 4, [0, 0, read_only, PAGE]));
        for (name, kind, access, align) in
            [(".text", 1, 5, PAGE), (".dynamic", 1, 6, PAGE), (".dynamic", 2, 6, 8), (".note", 4, 4, 4)]
        {
            if let Some(section) = self.find_section(name) {
                let size = section.bytes.len() as u64;
                segments.push(segment(kind, access, [section.offset, section.address, size, align]));
            }
        }
        segments
    }
}

/// A program header; the places are offset, address, size and alignment.
fn segment(kind: u32, access: u32, [offset, address, size, align]: [u64; 4]) -> Vec<u8> {
    let mut bytes = [kind.to_le_bytes(), access.to_le_bytes()].concat();
    for number in [offset, address, address, size, size, align] {
        bytes.extend(number.to_le_bytes());
    }
    bytes
}

fn section_header(section: &FileSection, name: u32) -> Vec<u8> {
    let mut bytes = [name.to_le_bytes(), section.kind.to_le_bytes()].concat();
    for number in [section.flags, section.address, section.offset, section.bytes.len() as u64] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(section.link.to_le_bytes());
    bytes.extend(section.info.to_le_bytes());
    bytes.extend(section.align.to_le_bytes());
    bytes.extend(section.entry.to_le_bytes());
    bytes
}

fn file_header(flags: u32, section_table: u64, section_count: u16) -> Vec<u8> {
    // ELF64, little-endian, OS ABI of HSA, code object V5.
    let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 64, 3];
    bytes.resize(16, 0);
    bytes.extend(3_u16.to_le_bytes());
    bytes.extend(224_u16.to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    for number in [0, HEADER as u64, section_table] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(flags.to_le_bytes());
    for number in [HEADER as u16, SEGMENT as u16, SEGMENTS as u16, 64, section_count, section_count - 1] {
        bytes.extend(number.to_le_bytes());
    }
    bytes
}

struct SymbolTable {
    symbols: Vec<u8>,
    names: Vec<u8>,
}

fn symbol_table(symbols: &[FileSymbol]) -> SymbolTable {
    let mut table = SymbolTable { symbols: vec![0; 24], names: vec![0] };
    for symbol in symbols {
        table.symbols.extend((table.names.len() as u32).to_le_bytes());
        table.symbols.extend([1 << 4 | symbol.kind, symbol.visibility]);
        table.symbols.extend(symbol.section.to_le_bytes());
        table.symbols.extend(symbol.value.to_le_bytes());
        table.symbols.extend(symbol.size.to_le_bytes());
        table.names.extend(symbol.name.as_bytes());
        table.names.push(0);
    }
    table
}

/// All symbols in one bucket: loaders that use the table find each, and there are few.
fn hash_table(symbols: &[FileSymbol]) -> Vec<u8> {
    let count = symbols.len() as u32 + 1;
    let mut words = vec![1, count, u32::from(count > 1), 0];
    words.extend((1..count).map(|number| if number + 1 < count { number + 1 } else { 0 }));
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
