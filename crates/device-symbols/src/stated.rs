//! Statements of compiler and assembler about single functions: records in `.amdgpu.info`, and symbols such as
//! `NAME.num_vgpr`.
//!
//! The records are those of LLVM 23 and later (`-mllvm -amdgpu-enable-object-linking`), in relocatable files: a kind, a
//! length and that many bytes each; kinds that are not known are skipped. Their numbers are those of the function alone.
//! The numbers of symbols include all that the function calls.
//!
//! Invariant: a damaged record ends the reading of its section, and what was read before it counts.

use crate::table::{Evidence, Number, Resources};
use object::read::elf::{ElfFile64, ElfSection64, FileHeader};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, RelocationTarget, elf};
use std::collections::{BTreeMap, HashMap};

pub(crate) type File<'a> = ElfFile64<'a, LittleEndian>;

/// Section and offset of a function in a relocatable file.
pub(crate) type At = (usize, u64);

/// A compiler's record of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompilerRecord {
    pub(crate) own: Resources,
    /// The functions that it calls.
    pub(crate) callees: Vec<At>,
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
    pub(super) const CALL: u8 = 8;
    pub(super) const INDIRECT_CALL: u8 = 9;
}

/// The records of a relocatable file by function.
pub(crate) fn records(file: &File<'_>) -> BTreeMap<At, CompilerRecord> {
    let mut records = BTreeMap::new();
    if file.elf_header().e_type(LittleEndian) == elf::ET_REL {
        let is_it = |section: &ElfSection64<'_, '_, LittleEndian>| section.name() == Ok(".amdgpu.info");
        for section in file.sections().filter(is_it) {
            read(file, &section, &mut records);
        }
    }
    records
}

/// The symbol that the eight bytes of a record name.
enum RecordTarget {
    Here(At),
    Outside(String),
}

fn read(file: &File<'_>, section: &ElfSection64<'_, '_, LittleEndian>, records: &mut BTreeMap<At, CompilerRecord>) {
    let targets: HashMap<u64, RecordTarget> =
        section.relocations().filter_map(|(at, one)| Some((at, target(file, one.target(), one.addend())?))).collect();
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
            // A function without accumulation registers has no record of them.
            let own = Resources { agprs: Number::known(0, Evidence::CompilerRecord), ..Resources::UNKNOWN };
            let new = || CompilerRecord { own, callees: Vec::new(), outside: Vec::new(), indirect: 0 };
            current.map(|function| records.entry(function).or_insert_with(new));
            continue;
        }
        if let Some(record) = current.and_then(|function| records.get_mut(&function)) {
            record.add(*kind, payload, target);
        }
    }
}

impl CompilerRecord {
    fn add(&mut self, kind: u8, payload: &[u8], target: Option<&RecordTarget>) {
        let value = payload.first_chunk().map(|bytes| u64::from(u32::from_le_bytes(*bytes)));
        let number = Number { value, at_least: false, evidence: Evidence::CompilerRecord };
        match (kind, target) {
            (kind::SGPRS, _) => self.own.sgprs = number,
            (kind::VGPRS, _) => self.own.vgprs = number,
            (kind::AGPRS, _) => self.own.agprs = number,
            (kind::SCRATCH, _) => self.own.scratch = number,
            (kind::CALL, Some(RecordTarget::Here(function))) => self.callees.push(*function),
            (kind::CALL, Some(RecordTarget::Outside(name))) => self.outside.push(name.clone()),
            (kind::INDIRECT_CALL, _) => self.indirect += 1,
            _ => {}
        }
    }
}

fn target(file: &File<'_>, target: RelocationTarget, addend: i64) -> Option<RecordTarget> {
    let RelocationTarget::Symbol(number) = target else { return None };
    let symbol = file.symbol_by_index(number).ok()?;
    Some(match symbol.section_index() {
        Some(section) => RecordTarget::Here((section.0, symbol.address().wrapping_add_signed(addend))),
        None => RecordTarget::Outside(symbol.name().ok()?.to_owned()),
    })
}

/// The numbers in symbols of the assembler, by the name of the function.
pub(crate) fn assembler_symbols<'a>(file: &File<'a>) -> HashMap<&'a str, Resources> {
    let mut all: HashMap<&str, Resources> = HashMap::new();
    for symbol in file.symbols().filter(|symbol| symbol.elf_symbol().st_shndx.get(LittleEndian) == elf::SHN_ABS) {
        let Some((function, what)) = symbol.name().ok().and_then(|name| name.rsplit_once('.')) else { continue };
        let number = Number::known(symbol.address(), Evidence::AssemblerSymbol);
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
