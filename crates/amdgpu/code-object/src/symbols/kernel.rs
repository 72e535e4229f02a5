//! Kernels: the symbols `NAME.kd` and the contents of their 64 bytes.
//!
//! A readable metadata note adds the exact register counts; the descriptor has them in granules only.

use super::table::TableRow;
use super::{CodeSymbol, NamedCode, SectionNames, SymbolKind, left_out};
use crate::elf::{Elf, ObjectKind};
use crate::metadata::KernelMetadata;
use crate::note::Note;
use foldhash::{HashMap, HashMapExt};
use hotswap_targets::{WaveSizes, by_mach};
use std::borrow::Cow;
use std::cell::{Cell, OnceCell};

/// Bit 10 of the code properties: waves of 32 lanes. Without a meaning before GFX10, where it is 0.
const WAVE32: u16 = 1 << 10;

/// A kernel's properties from the descriptor and the metadata.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelFacts {
    /// Lanes of a wave: 32 or 64.
    pub lanes: u8,
    /// Static LDS, bytes a work-group.
    pub lds: u32,
    /// Scratch, bytes a work-item.
    pub scratch: u32,
    /// Size of the kernel arguments, in bytes.
    pub kernarg: u32,
    /// Vector registers, from the metadata.
    pub vgprs: Option<u64>,
    /// Accumulation registers, from the metadata.
    pub agprs: Option<u64>,
    /// Scalar registers, from the metadata.
    pub sgprs: Option<u64>,
}

/// Adds a kernel symbol for each descriptor.
pub(super) fn add_kernels<'a>(
    elf: &Elf<'a>,
    rows: &[TableRow<'a>],
    note: Option<&Note<'a>>,
    NamedCode { found, empty_kernels, problems }: &mut NamedCode<'a>,
) {
    let described = DescribedKernels::new(note);
    // In a relocatable file only the name connects the descriptor to the code.
    let mut named: HashMap<&str, &TableRow<'_>> = HashMap::new();
    if elf.kind == ObjectKind::Relocatable {
        // Half of the names are those of descriptors.
        named.reserve(rows.len() / 2);
        named.extend(rows.iter().filter(|row| !is_descriptor_symbol(row)).map(|row| (&*row.name, row)));
    }
    for row in rows.iter().filter(|row| is_descriptor_symbol(row)) {
        let Some(name) = row.name.strip_suffix(".kd").filter(|name| !name.is_empty()) else { continue };
        let Some(descriptor) = DescriptorContents::read(elf, row.value, row.section) else {
            problems.push(left_out(row.at, format!("the kernel descriptor `{}` is outside of the file", row.name)));
            continue;
        };
        let mut facts = descriptor.facts;
        if let Some(kernel) = described.get(&row.name) {
            (facts.vgprs, facts.agprs, facts.sgprs) = (kernel.vgpr_count, kernel.agpr_count, kernel.sgpr_count);
        }
        let code = named.get(name);
        let entry = match elf.kind {
            ObjectKind::Linked => descriptor.entry.and_then(|entry| at_address(found, entry)),
            ObjectKind::Relocatable => code.and_then(|code| at_symbol(found, code)),
        };
        let Some(KernelStart { owner, offset }) = entry else {
            let is_at_end = found.iter().any(|found| match elf.kind {
                ObjectKind::Linked => descriptor.entry.is_some_and(|entry| found.ends_at(elf.kind, entry)),
                ObjectKind::Relocatable => {
                    code.is_some_and(|code| found.defines_symbol(code) && found.ends_at(elf.kind, code.value))
                }
            });
            match is_at_end {
                true => empty_kernels.push(kernel_name(&row.name)),
                false => problems.push(left_out(row.at, format!("the code of kernel `{name}` is in no code section"))),
            }
            continue;
        };
        let (kind, name) = (SymbolKind::Kernel(facts), kernel_name(&row.name));
        // The size is that of the function symbol with the same name, if there is one.
        owner.section.symbols.push(CodeSymbol { name, kind, offset, size: 0, is_global: row.is_global });
    }
}

/// The name of the kernel with that descriptor.
fn kernel_name<'a>(descriptor: &Cow<'a, str>) -> Cow<'a, str> {
    match descriptor {
        Cow::Borrowed(whole) => Cow::Borrowed(whole.strip_suffix(".kd").unwrap_or(whole)),
        Cow::Owned(whole) => Cow::Owned(whole.strip_suffix(".kd").unwrap_or(whole).to_owned()),
    }
}

fn is_descriptor_symbol(row: &TableRow<'_>) -> bool {
    row.name.ends_with(".kd") && row.size == DescriptorContents::SIZE
}

/// The kernels of the note by the names of their descriptors.
struct DescribedKernels<'n, 'a> {
    kernels: &'n [KernelMetadata<'a>],
    /// The one that is likely to be next: symbols and metadata usually have the same order.
    next: Cell<usize>,
    by_name: OnceCell<HashMap<&'a str, usize>>,
}

impl<'n, 'a> DescribedKernels<'n, 'a> {
    fn new(note: Option<&'n Note<'a>>) -> Self {
        let kernels = note.map_or(&[][..], |note| &note.kernels);
        Self { kernels, next: Cell::new(0), by_name: OnceCell::new() }
    }

    /// Of several with one name, returns the last unless one is next.
    fn get(&self, name: &str) -> Option<&'n KernelMetadata<'a>> {
        let is_next = self.kernels.get(self.next.get()).is_some_and(|kernel| kernel.symbol == name);
        let number = match is_next {
            true => self.next.get(),
            false => *self
                .by_name
                .get_or_init(|| {
                    self.kernels.iter().enumerate().map(|(number, kernel)| (kernel.symbol, number)).collect()
                })
                .get(name)?,
        };
        self.next.set(number + 1);
        self.kernels.get(number)
    }
}

/// The first instruction of a kernel.
struct KernelStart<'f, 'a> {
    owner: &'f mut SectionNames<'a>,
    /// Its offset in the section.
    offset: usize,
}

fn at_address<'f, 'a>(found: &'f mut [SectionNames<'a>], address: u64) -> Option<KernelStart<'f, 'a>> {
    found.iter_mut().find_map(|owner| {
        owner.offset_of_value(ObjectKind::Linked, address).map(|offset| KernelStart { owner, offset })
    })
}

fn at_symbol<'f, 'a>(found: &'f mut [SectionNames<'a>], row: &TableRow<'_>) -> Option<KernelStart<'f, 'a>> {
    let owner = found.iter_mut().find(|found| found.defines_symbol(row))?;
    let offset = owner.offset_of_value(ObjectKind::Relocatable, row.value)?;
    Some(KernelStart { owner, offset })
}

pub(super) struct DescriptorContents {
    facts: KernelFacts,
    /// Address of the code in a linked file.
    pub(super) entry: Option<u64>,
}

impl DescriptorContents {
    pub(super) const SIZE: u64 = 64;

    /// The descriptor that the symbol with that value and section names.
    pub(super) fn read(elf: &Elf<'_>, value: u64, section: Option<usize>) -> Option<Self> {
        let range = match elf.kind {
            ObjectKind::Linked => elf.file_range(value, Self::SIZE)?,
            ObjectKind::Relocatable => elf.section_range(section?, value, Self::SIZE)?,
        };
        let bytes = elf.data.get(range)?;
        let offset = i64::from_le_bytes(*bytes.get(16..)?.first_chunk()?);
        let properties = u16::from_le_bytes(*bytes.get(56..)?.first_chunk()?);
        let waves = by_mach((elf.flags & 0xff) as u8).map(|processor| processor.waves);
        let lanes = match waves {
            Some(WaveSizes::Only32) => 32,
            Some(WaveSizes::Only64) => 64,
            _ if properties & WAVE32 != 0 => 32,
            _ => 64,
        };
        let facts = KernelFacts {
            lanes,
            lds: descriptor_word_at(0, bytes)?,
            scratch: descriptor_word_at(4, bytes)?,
            kernarg: descriptor_word_at(8, bytes)?,
            ..KernelFacts::default()
        };
        Some(Self { facts, entry: value.checked_add_signed(offset) })
    }
}

fn descriptor_word_at(at: usize, bytes: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
