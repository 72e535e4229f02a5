//! A [`CodeSource`] from an ELF file: one for each section of code.
//!
//! Names and kernels are those of [`CodeMap`]; relocations, the loader's and those that a linker left, are read here.
//! Damaged parts are skipped, which reduces what is known and does nothing else.

use super::waves::wave_of_lanes;
use super::{AddressSlot, CodeSource, FixupKind, KernelNeeds, LinkerFixup, MarkKind, SectionSymbol};
use crate::place::ProgramByte;
use hotswap_code_object::image::{Formula, ObjectImage};
use hotswap_code_object::{CodeMap, CodeObject, CodeSection, CodeSymbol, Note, ObjectKind, SymbolKind};
use hotswap_isa::{Isa, Target, Wave};
use hotswap_report::{Diagnostic, codes};
use object::read::elf::{ElfFile64, ElfSection64};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, elf};
use std::collections::{BTreeSet, HashMap, HashSet};

type SourceFile<'a> = ElfFile64<'a, LittleEndian>;
const RELATIVE64: u32 = 13;
/// Relocations of whole addresses, and the empty one.
const WHOLE: [u32; 3] = [0, 3, RELATIVE64];
/// Bytes 58 and 59 of a descriptor: how many dwords of the arguments are preloaded, in the low seven bits.
const PRELOAD: usize = 58;
/// Offset in a descriptor of the distance to the code.
const ENTRY: u64 = 16;

impl<'a> CodeSource<'a> {
    /// The sources of the sections of code of an ELF file.
    ///
    /// # Errors
    /// As [`CodeMap::read`] has them; `UNKNOWN_MACHINE` for a processor whose instructions are not known, `UNKNOWN_FORMAT` for
    /// sections of more than 4 GiB.
    pub fn read(data: &'a [u8]) -> Result<Vec<Self>, Diagnostic> {
        if let Ok(object) = CodeObject::parse(data) {
            return Self::sources_of_object(&object);
        }
        let map = CodeMap::read(data)?;
        let target = target(&map)?;
        Self::of_parts(&map, target, &SourceParts::read(data, None, target))
    }

    /// The same for a code object that was already parsed.
    ///
    /// # Errors
    /// As [`CodeSource::read`] has them.
    pub fn sources_of_object(object: &CodeObject<'a>) -> Result<Vec<Self>, Diagnostic> {
        // Names take longer; the rest is read in parallel.
        let (map, rest) = rayon::join(
            || CodeMap::names_of(object),
            || {
                let target = Target::find(object.target_id().processor.name)?;
                Some(SourceParts::read(object.bytes(), Some(object.note()), target))
            },
        );
        let target = target(&map)?;
        Self::of_parts(&map, target, &rest.unwrap_or_default())
    }

    fn of_parts(map: &CodeMap<'a>, target: &'static Target, rest: &SourceParts<'a>) -> Result<Vec<Self>, Diagnostic> {
        let SourceParts { file, facts } = rest;
        map.sections.iter().map(|section| facts.source(map, section, Isa::new(target), file.as_ref())).collect()
    }
}

/// The processor that the code is for.
fn target(map: &CodeMap<'_>) -> Result<&'static Target, Diagnostic> {
    let name = map.processor.map_or("", |processor| processor.name);
    Target::find(name).ok_or_else(|| Diagnostic::error(codes::UNKNOWN_MACHINE, unknown_machine(map)))
}

/// The processor may be known by its name, and its instructions not.
fn unknown_machine(map: &CodeMap<'_>) -> String {
    match map.processor {
        Some(processor) => format!("the instructions of {} (machine {:#x}) are not known", processor.name, map.machine),
        None => format!("machine {:#x} is not known", map.machine),
    }
}

/// The parts that are read in parallel with the names.
#[derive(Default)]
struct SourceParts<'a> {
    file: Option<SourceFile<'a>>,
    facts: FileFacts<'a>,
}

impl<'a> SourceParts<'a> {
    fn read(data: &'a [u8], note: Option<&Note<'a>>, target: &Target) -> Self {
        let file = SourceFile::parse(data).ok();
        let preloads = has_second_entries(target);
        let facts = file.as_ref().map(|file| FileFacts::read(file, data, note, preloads)).unwrap_or_default();
        Self { file, facts }
    }
}

/// A word that the loader writes.
struct LoaderWord {
    address: u64,
    /// The address that it writes there.
    to: u64,
}

/// The information in the file besides names.
#[derive(Default)]
struct FileFacts<'a> {
    /// The needs of each kernel, by name.
    kernels: HashMap<&'a str, KernelNeeds>,
    /// Words that the loader writes, where a table lacks addends.
    words: Vec<LoaderWord>,
    /// Sections of a relocatable file, by number, that code of other sections refers to.
    shared: HashSet<usize>,
}

impl<'a> FileFacts<'a> {
    /// `preloads` enables the check of descriptors for preloaded arguments.
    fn read(file: &SourceFile<'a>, data: &'a [u8], note: Option<&Note<'a>>, preloads: bool) -> Self {
        let mut kernels: HashMap<&'a str, KernelNeeds> = HashMap::new();
        for symbol in file.symbols().chain(file.dynamic_symbols()).filter(|_| preloads) {
            let Some(name) = symbol.name().ok().and_then(|name| name.strip_suffix(".kd")) else { continue };
            let preloads = descriptor(file, &symbol).is_some_and(|bytes| bytes[PRELOAD] & 0x7f != 0);
            kernels.entry(name).or_default().preloads |= preloads;
        }
        for kernel in note.into_iter().flat_map(|note| note.kernels.iter()) {
            let name = kernel.symbol.strip_suffix(".kd").unwrap_or(kernel.name);
            let needs = kernels.entry(name).or_default();
            needs.workgroup = kernel.max_flat_workgroup_size.and_then(|count| u32::try_from(count).ok());
            needs.wgp = kernel.workgroup_processor_mode.unwrap_or(false);
        }
        let words = words_without_addend(file, data).unwrap_or_default();
        Self { kernels, words, shared: shared(file) }
    }

    fn source(
        &self,
        map: &CodeMap<'a>,
        section: &CodeSection<'a>,
        isa: Isa,
        file: Option<&SourceFile<'a>>,
    ) -> Result<CodeSource<'a>, Diagnostic> {
        if u32::try_from(section.bytes.len()).is_err() {
            let what = format!("section `{}` has more than 4 GiB", section.name);
            return Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what).at_offset(section.range.start as u64));
        }
        let linked = map.kind == ObjectKind::Linked;
        let second_entry = has_second_entries(isa.target());
        let mut source = CodeSource {
            number: section.number,
            isa,
            waves: Vec::new(),
            address: if linked { section.address } else { 0 },
            bytes: section.bytes,
            linked,
            marks: section.symbols.iter().map(|symbol| self.mark(symbol, second_entry)).collect(),
            fixups: Vec::new(),
            symbols: Vec::new(),
            slots: Vec::new(),
            shared: false,
            alone: map.sections.iter().filter(|section| !section.bytes.is_empty()).count() == 1,
            hints: Vec::new(),
            entries: Vec::new(),
        };
        if let Some(file) = file {
            relocations(file, section, &self.shared, &mut source);
            if linked {
                let places = AddressPlaces { file, own: 0, linked };
                source.slots.extend(self.words.iter().map(|word| places.slot(word.address, word.to)));
            }
        }
        source.sort();
        source.state_waves(kernel_waves(map));
        Ok(source)
    }

    fn mark(&self, symbol: &CodeSymbol<'a>, second_entry: bool) -> SectionSymbol<'a> {
        let kind = match &symbol.kind {
            SymbolKind::Kernel(facts) => {
                let known = self.kernels.get(&*symbol.name).copied().unwrap_or_default();
                MarkKind::Kernel(KernelNeeds {
                    preloads: known.preloads && second_entry,
                    lanes: facts.lanes,
                    lds: facts.lds,
                    vgprs: count_as_u32(facts.vgprs),
                    agprs: count_as_u32(facts.agprs),
                    sgprs: count_as_u32(facts.sgprs),
                    ..known
                })
            }
            SymbolKind::Function => MarkKind::Function,
            SymbolKind::Object => MarkKind::Object,
            SymbolKind::Label => MarkKind::Label,
        };
        let (offset, size) = (number_as_u32(symbol.offset), number_as_u32(symbol.size));
        SectionSymbol { offset, size, kind, name: symbol.name.clone(), exported: symbol.is_global }
    }
}

/// The wave sizes of all kernels of a file. Code may be in other sections than they.
fn kernel_waves(map: &CodeMap<'_>) -> Vec<Wave> {
    let symbols = map.sections.iter().flat_map(|section| &section.symbols);
    let lanes: BTreeSet<u8> = symbols.filter_map(kernel_lanes).collect();
    lanes.into_iter().map(wave_of_lanes).collect()
}

fn kernel_lanes(symbol: &CodeSymbol<'_>) -> Option<u8> {
    match &symbol.kind {
        SymbolKind::Kernel(facts) => Some(facts.lanes),
        _ => None,
    }
}

fn count_as_u32(count: Option<u64>) -> Option<u32> {
    count.and_then(|count| u32::try_from(count).ok())
}

fn number_as_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The 64 bytes at a symbol.
fn descriptor<'a>(
    file: &SourceFile<'a>,
    symbol: &object::read::elf::ElfSymbol64<'a, '_, LittleEndian>,
) -> Option<&'a [u8]> {
    let section = file.section_by_index(symbol.section_index()?).ok()?;
    let offset = match is_relocatable(file) {
        true => symbol.address(),
        false => symbol.address().checked_sub(section.address())?,
    };
    let start = usize::try_from(offset).ok()?;
    section.data().ok()?.get(start..)?.get(..64)
}

/// Whether kernels with preloaded arguments have a second entry. From GFX12.5 on arguments are always preloaded, and
/// there is one entry.
fn has_second_entries(target: &Target) -> bool {
    target.name.starts_with("gfx9")
}

fn is_relocatable(file: &SourceFile<'_>) -> bool {
    file.elf_header().e_type.get(LittleEndian) == elf::ET_REL
}

/// The words that the loader writes by tables without addends, which are in the fields (`.rel.dyn`, `.relr.dyn`).
fn words_without_addend(file: &SourceFile<'_>, data: &[u8]) -> Option<Vec<LoaderWord>> {
    file.sections().find(|section| is_implicit_addend_table(section.elf_section_header().sh_type.get(LittleEndian)))?;
    let image = ObjectImage::parse(data).ok()?;
    let (tables, all, mut words) = (image.symbol_tables().ok()?, image.relocations().ok()?, Vec::new());
    for records in all.iter().filter(|records| is_implicit_addend_table(image.sections[records.section].kind)) {
        let table = tables.iter().find(|table| table.section == records.symbols);
        for rela in records.iter().flatten() {
            let symbol = table.and_then(|table| table.rows.get(rela.symbol as usize));
            let to = match (rela.kind.formula, symbol.filter(|symbol| symbol.section.is_some())) {
                (Formula::LoadRelative, _) => rela.addend as u64,
                (Formula::Absolute, Some(symbol)) => symbol.value.wrapping_add_signed(rela.addend),
                _ => continue,
            };
            words.push(LoaderWord { address: rela.place, to });
        }
    }
    Some(words)
}

fn is_implicit_addend_table(kind: u32) -> bool {
    [elf::SHT_REL, elf::SHT_RELR].contains(&kind)
}

/// Sections of a relocatable file that code of other sections refers to (`-ffunction-sections`).
fn shared(file: &SourceFile<'_>) -> HashSet<usize> {
    let mut shared = HashSet::new();
    if !is_relocatable(file) || file.sections().filter(is_text_section).count() < 2 {
        return shared;
    }
    for section in file.sections().filter(is_text_section) {
        for (_, relocation) in section.relocations() {
            let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
            let owner = file.symbol_by_index(symbol).ok().and_then(|symbol| symbol.section_index());
            shared.extend(owner.filter(|owner| *owner != section.index()).map(|owner| owner.0));
        }
    }
    shared
}

fn is_text_section(section: &ElfSection64<'_, '_, LittleEndian>) -> bool {
    section.kind() == object::SectionKind::Text
}

/// Relocations of the section, and words of other sections that hold addresses.
fn relocations(file: &SourceFile<'_>, code: &CodeSection<'_>, shared: &HashSet<usize>, source: &mut CodeSource<'_>) {
    let own = code.number.and_then(|number| file.section_by_index(object::SectionIndex(number)).ok());
    let Some(own) = own.filter(|own| own.kind() == object::SectionKind::Text) else { return };
    source.shared = shared.contains(&own.index().0);
    let places = AddressPlaces { file, own: own.index().0, linked: source.linked };
    for (offset, relocation) in own.relocations() {
        let offset = if source.linked { offset.wrapping_sub(own.address()) } else { offset };
        let (RelocationFlags::Elf { r_type }, RelocationTarget::Symbol(symbol)) =
            (relocation.flags(), relocation.target())
        else {
            continue;
        };
        let (Ok(offset), Some(kind)) = (u32::try_from(offset), FixupKind::from_number(r_type)) else { continue };
        let symbol = u32::try_from(symbol.0).unwrap_or(u32::MAX);
        source.fixups.push(LinkerFixup { offset, kind, symbol, addend: relocation.addend() });
    }
    if !source.fixups.is_empty() {
        source.symbols = places.symbols();
    }
    if source.linked {
        places.loader_slots(&mut source.slots);
    } else {
        places.section_slots(&mut source.slots);
    }
    let hints = places.hints().filter_map(|place| source.offset_of(place));
    source.hints = hints.collect();
}

struct AddressPlaces<'f, 'a> {
    file: &'f SourceFile<'a>,
    own: usize,
    linked: bool,
}

impl AddressPlaces<'_, '_> {
    /// The place of each symbol, by number.
    fn symbols(&self) -> Vec<ProgramByte> {
        let count = self.file.symbols().map(|symbol| symbol.index().0 + 1).max().unwrap_or(0);
        let mut places: Vec<ProgramByte> = (0..count as u32).map(undefined).collect();
        for symbol in self.file.symbols() {
            if let Some(place) = places.get_mut(symbol.index().0) {
                *place =
                    self.program_byte(symbol.index().0, symbol.section_index().map(|index| index.0), symbol.address());
            }
        }
        places
    }

    fn program_byte(&self, number: usize, section: Option<usize>, value: u64) -> ProgramByte {
        match section {
            None => undefined(number as u32),
            Some(_) if self.linked => ProgramByte { base: ProgramByte::CODE, at: value },
            Some(section) => ProgramByte { base: self.base(section), at: value },
        }
    }

    fn base(&self, section: usize) -> u32 {
        match section {
            _ if section == self.own => ProgramByte::CODE,
            _ => (section as u32 + 1) & (ProgramByte::EXTERN - 1),
        }
    }

    /// The words that the loader writes.
    fn loader_slots(&self, slots: &mut Vec<AddressSlot>) {
        for (address, relocation) in self.file.dynamic_relocations().into_iter().flatten() {
            let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            if relocation.has_implicit_addend() {
                continue;
            }
            let symbol = match relocation.target() {
                RelocationTarget::Symbol(index) => self.file.dynamic_symbol_table().and_then(|table| {
                    use object::ObjectSymbolTable;
                    table.symbol_by_index(index).ok()
                }),
                _ => None,
            };
            let to = match (r_type, symbol) {
                (RELATIVE64, _) => relocation.addend() as u64,
                // Another file has what the word will point to.
                (3, Some(symbol)) if symbol.is_undefined() => {
                    let to = undefined(symbol.index().0 as u32).plus(relocation.addend() as u64);
                    slots.push(AddressSlot { to, ..self.slot(address, 0) });
                    continue;
                }
                (3, Some(symbol)) => symbol.address().wrapping_add_signed(relocation.addend()),
                _ => continue,
            };
            slots.push(self.slot(address, to));
        }
    }

    fn slot(&self, address: u64, to: u64) -> AddressSlot {
        AddressSlot { place: code_byte_at(address), to: code_byte_at(to), constant: self.is_constant_at(address) }
    }

    /// Sections that are not written once the loader is done.
    fn is_constant_at(&self, address: u64) -> bool {
        self.file
            .sections()
            .find(|section| is_loaded(section) && section_covers_address(section, address))
            .is_some_and(|s| is_constant(&s))
    }

    /// The targets of relocations in other sections that a linker applies and that are not whole addresses. Call frames
    /// and kernel descriptors never transfer control to other offsets than starts of code.
    fn hints(&self) -> impl Iterator<Item = ProgramByte> {
        let descriptors = self.file.symbols().filter(|symbol| symbol.name().is_ok_and(|name| name.ends_with(".kd")));
        let entries: HashSet<u64> = descriptors.map(|symbol| symbol.address().wrapping_add(ENTRY)).collect();
        let sections = self.file.sections().filter(|one| may_point_to_code(one, self));
        sections.flat_map(|section| section.relocations()).filter_map(move |(offset, relocation)| {
            let RelocationFlags::Elf { r_type } = relocation.flags() else { return None };
            let RelocationTarget::Symbol(index) = relocation.target() else { return None };
            let is_entry = r_type == FixupKind::Rel64 as u32 && entries.contains(&offset);
            let symbol = self.file.symbol_by_index(index).ok().filter(|_| !is_entry && !WHOLE.contains(&r_type))?;
            let to = self.program_byte(index.0, symbol.section_index().map(|index| index.0), symbol.address());
            Some(to.plus(relocation.addend() as u64))
        })
    }

    /// The words that a linker writes into other sections.
    fn section_slots(&self, slots: &mut Vec<AddressSlot>) {
        for section in self.file.sections().filter(|section| section.index().0 != self.own && is_loaded(section)) {
            let constant = is_constant(&section);
            for (offset, relocation) in section.relocations() {
                let (RelocationFlags::Elf { r_type: 3 }, RelocationTarget::Symbol(index)) =
                    (relocation.flags(), relocation.target())
                else {
                    continue;
                };
                let Ok(symbol) = self.file.symbol_by_index(index) else { continue };
                let to = self.program_byte(index.0, symbol.section_index().map(|index| index.0), symbol.address());
                let place = ProgramByte { base: self.base(section.index().0), at: offset };
                slots.push(AddressSlot { place, to: to.plus(relocation.addend() as u64), constant });
            }
        }
    }
}

fn code_byte_at(at: u64) -> ProgramByte {
    ProgramByte { base: ProgramByte::CODE, at }
}

fn section_covers_address(section: &ElfSection64<'_, '_, LittleEndian>, address: u64) -> bool {
    section.address() <= address && address - section.address() < section.size()
}

fn may_point_to_code(section: &ElfSection64<'_, '_, LittleEndian>, places: &AddressPlaces<'_, '_>) -> bool {
    section.index().0 != places.own && is_loaded(section) && section.name() != Ok(".eh_frame")
}

fn undefined(number: u32) -> ProgramByte {
    ProgramByte { base: ProgramByte::EXTERN | number & (ProgramByte::EXTERN - 1), at: 0 }
}

fn flags(section: &ElfSection64<'_, '_, LittleEndian>) -> u64 {
    section.elf_section_header().sh_flags.get(LittleEndian)
}

fn is_loaded(section: &ElfSection64<'_, '_, LittleEndian>) -> bool {
    flags(section) & u64::from(elf::SHF_ALLOC) != 0
}

/// Read-only, or made so by the loader: the GOT and data that is constant except for addresses.
fn is_constant(section: &ElfSection64<'_, '_, LittleEndian>) -> bool {
    let name = section.name().unwrap_or_default();
    flags(section) & u64::from(elf::SHF_WRITE) == 0 || name == ".got" || name.starts_with(".data.rel.ro")
}
