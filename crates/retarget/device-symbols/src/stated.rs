//! Statements of compiler and assembler about single functions: records in `.amdgpu.info`, and symbols such as
//! `NAME.num_vgpr`.
//!
//! The records are those of LLVM 23 and later (`-mllvm -amdgpu-enable-object-linking`), in relocatable files: a kind, a
//! length and that many bytes each; kinds that are not known are skipped. Their numbers are those of the function alone.
//! The numbers of symbols include all that the function calls.
//!
//! Invariant: a damaged record ends the reading of its section, and what was read before it counts.

use crate::table::{FactEvidence, Number, Resources};
use hotswap_code_object::CodeMap;
use hotswap_code_object::kernel_descriptor::{self, ACCUM_OFFSET, KernelDescriptor, NAMED_BARRIERS, WGP_MODE};
use object::read::elf::{ElfFile64, ElfSection64, FileHeader};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, RelocationTarget, elf};
use std::collections::{BTreeMap, HashMap};

pub(crate) type RelocatableElf<'a> = ElfFile64<'a, LittleEndian>;

/// Section and offset of a function in a relocatable file.
pub(crate) type FunctionPosition = (usize, u64);

/// A compiler's record of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompilerRecord {
    pub(crate) own: Resources,
    /// The functions that it calls.
    pub(crate) callees: Vec<FunctionPosition>,
    /// Names of functions that it calls and that the file does not define.
    pub(crate) outside: Vec<String>,
    /// Number of its calls through pointers.
    pub(crate) indirect: u32,
}

/// The kinds of records.
mod kind {
    pub(super) const FUNCTION: u8 = 1;
    pub(super) const SGPRS: u8 = 3;
    pub(super) const VGPRS: u8 = 4;
    pub(super) const AGPRS: u8 = 5;
    pub(super) const SCRATCH: u8 = 6;
    pub(super) const USE: u8 = 7;
    pub(super) const CALL: u8 = 8;
    pub(super) const INDIRECT_CALL: u8 = 9;
}

/// The records of a relocatable file by function.
pub(crate) fn compiler_records(file: &RelocatableElf<'_>) -> BTreeMap<FunctionPosition, CompilerRecord> {
    let mut records = BTreeMap::new();
    if file.elf_header().e_type(LittleEndian) == elf::ET_REL {
        for section in file.sections().filter(is_info_section) {
            read_section(file, &section, &mut records);
        }
    }
    records
}

fn is_info_section(section: &ElfSection64<'_, '_, LittleEndian>) -> bool {
    section.name() == Ok(".amdgpu.info")
}

/// The symbol that the eight bytes of a record name.
enum RecordTarget {
    Here(FunctionPosition),
    /// A variable in LDS, to which a linker gives a place: alignment and size; 0 for one whose size the launch decides.
    Lds {
        align: u64,
        size: u64,
    },
    Outside(String),
}

/// The section number of variables in LDS.
const SHN_AMDGPU_LDS: u16 = 0xff00;

fn read_section(
    file: &RelocatableElf<'_>,
    section: &ElfSection64<'_, '_, LittleEndian>,
    records: &mut BTreeMap<FunctionPosition, CompilerRecord>,
) {
    let targets: HashMap<u64, RecordTarget> = section
        .relocations()
        .filter_map(|(at, one)| Some((at, record_target(file, one.target(), one.addend())?)))
        .collect();
    let Ok(bytes) = section.data() else { return };
    let (mut at, mut current) = (0, None);
    while let Some([kind, size]) = bytes.get(at..at + 2) {
        let start = at + 2;
        let Some(payload) = bytes.get(start..start + usize::from(*size)) else { return };
        at = start + payload.len();
        let target = targets.get(&(start as u64));
        if *kind == kind::FUNCTION {
            current = match target {
                Some(RecordTarget::Here(function)) => Some(*function),
                _ => None,
            };
            // A function without accumulation registers, or variables in LDS, lacks a record of them.
            let none = Number::known_by(0, FactEvidence::CompilerRecord);
            let own = Resources { agprs: none, lds: none, ..Resources::UNKNOWN };
            let new = CompilerRecord { own, callees: Vec::new(), outside: Vec::new(), indirect: 0 };
            current.map(|function| records.entry(function).or_insert(new));
            continue;
        }
        if let Some(record) = current.and_then(|function| records.get_mut(&function)) {
            record.add_record(*kind, payload, target);
        }
    }
}

impl CompilerRecord {
    fn add_record(&mut self, kind: u8, payload: &[u8], target: Option<&RecordTarget>) {
        let value = payload.first_chunk().map(|bytes| u64::from(u32::from_le_bytes(*bytes)));
        let number = Number { value, at_least: false, evidence: FactEvidence::CompilerRecord };
        match (kind, target) {
            (kind::SGPRS, _) => self.own.sgprs = number,
            (kind::VGPRS, _) => self.own.vgprs = number,
            (kind::AGPRS, _) => self.own.agprs = number,
            (kind::SCRATCH, _) => self.own.scratch = number,
            (kind::USE, Some(RecordTarget::Lds { align, size })) => {
                self.own.lds = with_variable(self.own.lds, *align, *size)
            }
            (kind::CALL, Some(RecordTarget::Here(function))) => self.callees.push(*function),
            (kind::CALL, Some(RecordTarget::Outside(name))) => self.outside.push(name.clone()),
            (kind::INDIRECT_CALL, _) => self.indirect += 1,
            _ => {}
        }
    }
}

/// LDS with one more variable behind those before. Their order is the linker's, so padding may differ: a lower bound
/// where there is some.
fn with_variable(lds: Number, align: u64, size: u64) -> Number {
    let before = lds.value.unwrap_or(0);
    let start = before.checked_next_multiple_of(align.max(1)).unwrap_or(before);
    let at_least = lds.at_least || size == 0 || start != before;
    Number { value: Some(before.saturating_add(size)), at_least, ..lds }
}

fn record_target(file: &RelocatableElf<'_>, target: RelocationTarget, addend: i64) -> Option<RecordTarget> {
    let RelocationTarget::Symbol(number) = target else { return None };
    let symbol = file.symbol_by_index(number).ok()?;
    if symbol.elf_symbol().st_shndx.get(LittleEndian) == SHN_AMDGPU_LDS {
        return Some(RecordTarget::Lds { align: symbol.address(), size: symbol.size() });
    }
    Some(match symbol.section_index() {
        Some(section) => RecordTarget::Here((section.0, symbol.address().wrapping_add_signed(addend))),
        None => RecordTarget::Outside(symbol.name().ok()?.to_owned()),
    })
}

/// The facts of a kernel's descriptor that its processor has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DescriptorModes {
    /// Stated from GFX10 on.
    pub(crate) cu_mode: Option<bool>,
    /// On gfx12.5, in steps of four.
    pub(crate) named_barriers: Option<u64>,
    /// Vector registers that the hardware grants, in granules; accumulation registers of a unified file not counted.
    pub(crate) granted_vgprs: Option<u64>,
}

/// The modes of each kernel by its name.
pub(crate) fn descriptor_modes<'a>(file: &RelocatableElf<'a>, map: &CodeMap<'_>) -> HashMap<&'a str, DescriptorModes> {
    let Some(processor) = map.processor else { return HashMap::new() };
    let modes = file.symbols().chain(file.dynamic_symbols()).filter_map(|symbol| {
        let name = symbol.name().ok()?.strip_suffix(".kd")?;
        let section = file.section_by_index(symbol.section_index()?).ok()?;
        let offset = usize::try_from(symbol.address().checked_sub(section.address())?).ok()?;
        let bytes = section.data().ok()?.get(offset..)?.get(..kernel_descriptor::SIZE)?;
        let descriptor = KernelDescriptor::new(bytes, processor)?;
        let cu_mode = descriptor.get(WGP_MODE).map(|wgp| wgp == 0);
        let named_barriers = descriptor.get(NAMED_BARRIERS).map(|steps| steps * 4);
        let total = descriptor.vector_registers().map(u64::from);
        let first_agpr = descriptor.get(ACCUM_OFFSET).map(|offset| (offset + 1) * 4);
        let granted_vgprs = total.map(|total| first_agpr.map_or(total, |first| first.min(total)));
        Some((name, DescriptorModes { cu_mode, named_barriers, granted_vgprs }))
    });
    modes.collect()
}

/// The programs that made a file, each once, in the order of the section `.comment`.
pub(crate) fn producers_of(file: &RelocatableElf<'_>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let comment = file.section_by_name(".comment").and_then(|section| section.data().ok()).unwrap_or_default();
    for text in comment.split(|byte| *byte == 0).filter(|text| !text.is_empty()) {
        let text = String::from_utf8_lossy(text).into_owned();
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

/// The numbers in symbols of the assembler, by the name of the function.
pub(crate) fn assembler_symbols<'a>(file: &RelocatableElf<'a>) -> HashMap<&'a str, Resources> {
    let mut all: HashMap<&str, Resources> = HashMap::new();
    for symbol in file.symbols().filter(|symbol| symbol.elf_symbol().st_shndx.get(LittleEndian) == elf::SHN_ABS) {
        let Some((function, what)) = symbol.name().ok().and_then(|name| name.rsplit_once('.')) else { continue };
        let number = Number::known_by(symbol.address(), FactEvidence::AssemblerSymbol);
        let field: fn(&mut Resources) -> &mut Number = match what {
            "num_vgpr" => |one| &mut one.vgprs,
            "num_agpr" => |one| &mut one.agprs,
            "numbered_sgpr" => |one| &mut one.sgprs,
            "private_seg_size" => |one| &mut one.scratch,
            _ => continue,
        };
        *field(all.entry(function).or_insert(Resources::UNKNOWN)) = number;
    }
    all
}
