//! The functions and their calls, of all sections of code of a file.
//!
//! Invariant: functions are numbered through all sections in the order of sections and addresses.

use crate::table::{Callee, FactEvidence, Function, FunctionKind, IndirectCalls, Resources};
use crate::untyped::with_untyped_functions;
use crate::{registers, stated};
use hotswap_code_object::{CodeMap, CodeSymbol, ObjectKind, SymbolKind};
use hotswap_program::{BankMap, CallSite, CodeSource, MarkKind, Program, ProgramByte, SectionSymbol, code_lanes};
use hotswap_targets::WaveSizes;
use object::{Object, ObjectSymbol, ObjectSymbolTable, SymbolIndex};
use rayon::prelude::*;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

/// A section of code with the program in it.
pub(crate) struct AnalyzedSection<'a> {
    pub(crate) program: Program<'a>,
    banks: BankMap,
    section: String,
    /// Number of its first function.
    first: u32,
}

/// All sections of code of a file.
pub(crate) struct FileCode<'a> {
    pub(crate) units: Vec<AnalyzedSection<'a>>,
    /// The unit of each section by the section's number.
    by_section: HashMap<usize, usize>,
    linked: bool,
}

/// The target of a call outside of its section.
enum CallTarget {
    Function(u32),
    Import(String),
    Unknown,
}

impl<'a> FileCode<'a> {
    pub(crate) fn new(map: &CodeMap<'a>, sources: Vec<CodeSource<'a>>) -> Self {
        let mut units: Vec<AnalyzedSection<'a>> = Vec::new();
        for (source, section) in sources.into_iter().zip(&map.sections) {
            let first = units.last().map_or(0, |unit| unit.first + unit.program.functions.len() as u32);
            let program = Program::with_called_functions(with_untyped_functions(source));
            let banks = BankMap::by_convention(&program);
            units.push(AnalyzedSection { program, banks, section: section.name.to_string(), first });
        }
        let numbers = units.iter().enumerate();
        let by_section = numbers.filter_map(|(number, unit)| Some((unit.program.source.number?, number))).collect();
        Self { units, by_section, linked: map.kind == ObjectKind::Linked }
    }

    /// The number of the function that holds an offset of a section of a relocatable file.
    pub(crate) fn function_at(&self, section: usize, offset: u64) -> Option<u32> {
        let unit = &self.units[*self.by_section.get(&section)?];
        unit.function_number_at(u32::try_from(offset).ok()?)
    }

    /// The rows of all functions, without what follows from several of them.
    pub(crate) fn function_rows(&self, map: &CodeMap<'_>, file: Option<&stated::RelocatableElf<'_>>) -> Vec<Function> {
        let by_code = self.lanes_by_code(map);
        let usual = usual_lanes(map, &by_code);
        let lanes = common_lanes(map).or(usual);
        let rows = self.units.iter().flat_map(|unit| {
            let all = 0..unit.program.functions.len();
            // The ELF reader is not shared between threads; the registers, which take the time, need none.
            let own: Vec<Resources> =
                all.clone().into_par_iter().map(|number| unit.own_resources(number, lanes)).collect();
            all.zip(own).map(|(number, own)| self.function_row(unit, number, own, file)).collect::<Vec<_>>()
        });
        let mut all: Vec<Function> = rows.collect();
        // A file without kernels was compiled for one size, which some of its functions show.
        for (number, row) in all.iter_mut().enumerate() {
            row.wave_size = row.wave_size.or(by_code.get(number).copied().flatten()).or(usual);
        }
        all
    }

    /// The wave size of each function as its code states it, in a file without kernels; nothing for other files, and for processors
    /// that have one size.
    fn lanes_by_code(&self, map: &CodeMap<'_>) -> Vec<Option<u8>> {
        if has_kernels(map) || map.processor.is_none_or(|processor| processor.waves != WaveSizes::Both) {
            return Vec::new();
        }
        let functions =
            self.units.iter().flat_map(|unit| (0..unit.program.functions.len()).map(move |one| (unit, one)));
        functions.map(|(unit, number)| code_lanes(unit.code_of(number), unit.program.isa_of(number))).collect()
    }

    fn function_row(
        &self,
        unit: &AnalyzedSection<'a>,
        number: usize,
        own: Resources,
        file: Option<&stated::RelocatableElf<'_>>,
    ) -> Function {
        let function = &unit.program.functions[number];
        let mut row = Function {
            name: unit.name(number),
            aliases: Vec::new(),
            kind: if function.is_kernel() { FunctionKind::Kernel } else { FunctionKind::Function },
            section: unit.section.clone(),
            address: unit.program.source.address.wrapping_add(u64::from(function.start)),
            size: u64::from(unit.function_size(number)),
            exported: false,
            wave_size: unit.program.source.stated_lanes(function.start),
            own,
            total: Resources::UNKNOWN,
            callees: Vec::new(),
            imports: Vec::new(),
            indirect_calls: IndirectCalls::default(),
            recursive: None,
            address_taken: false,
            cu_mode: None,
            source: None,
        };
        unit.add_names(number, &mut row);
        self.add_calls(unit, number, file, &mut row);
        if row.kind == FunctionKind::Function && row.own.vgprs.value == Some(0) && unit.is_stub(number) {
            row.kind = if row.imports.is_empty() { FunctionKind::EntryStub } else { FunctionKind::ImportStub };
        }
        row
    }

    fn add_calls(
        &self,
        unit: &AnalyzedSection<'a>,
        number: usize,
        file: Option<&stated::RelocatableElf<'_>>,
        row: &mut Function,
    ) {
        let function = &unit.program.functions[number];
        let (mut callees, mut imports, mut unresolved) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for call in &function.calls {
            let is_indirect = unit.program.decode(call.offset).is_some_and(|inst| unit.program.is_indirect(&inst));
            let target = self.call_target(unit, call, file);
            row.indirect_calls.resolved += u32::from(is_indirect && !matches!(target, CallTarget::Unknown));
            match target {
                CallTarget::Function(function) => {
                    callees.insert(Callee { function, evidence: FactEvidence::Disassembly });
                }
                CallTarget::Import(name) => {
                    imports.insert(name);
                }
                CallTarget::Unknown => {
                    unresolved.insert(unit.address_of(call.offset));
                }
            }
        }
        unresolved.extend(function.problems.iter().map(|problem| unit.address_of(problem.offset)));
        row.callees = callees.into_iter().collect();
        row.imports = imports.into_iter().collect();
        row.indirect_calls.unresolved = unresolved.into_iter().collect();
    }

    fn call_target(
        &self,
        unit: &AnalyzedSection<'a>,
        call: &CallSite,
        file: Option<&stated::RelocatableElf<'_>>,
    ) -> CallTarget {
        use hotswap_program::CallDestination;
        match call.callee {
            CallDestination::Function { function, .. } => CallTarget::Function(unit.first + function),
            CallDestination::Outside(place) => self.target_outside(place, file).unwrap_or(CallTarget::Unknown),
            CallDestination::Unknown => CallTarget::Unknown,
        }
    }

    /// The target of a call that leaves its section.
    fn target_outside(&self, place: ProgramByte, file: Option<&stated::RelocatableElf<'_>>) -> Option<CallTarget> {
        if place.base & ProgramByte::EXTERN != 0 {
            let number = SymbolIndex((place.base & (ProgramByte::EXTERN - 1)) as usize);
            let file = file?;
            let table = if self.linked { file.dynamic_symbol_table() } else { file.symbol_table() };
            let symbol = table?.symbol_by_index(number).ok()?;
            let name = symbol.name().ok().filter(|name| !name.is_empty() && place.at == 0)?;
            return Some(CallTarget::Import(name.to_owned()));
        }
        let found = match (self.linked, place.base) {
            (true, ProgramByte::CODE) => {
                self.units.iter().find_map(|unit| unit.function_number_at(unit.program.source.offset_of(place)?))
            }
            (false, base) if base != ProgramByte::CODE => self.function_at(base as usize - 1, place.at),
            _ => None,
        };
        found.map(CallTarget::Function)
    }

    /// Marks the functions whose address is used otherwise than for a known call.
    pub(crate) fn mark_taken(&self, functions: &mut [Function]) {
        for unit in &self.units {
            // Each section's slots are relative to itself.
            let slots = unit.program.source.slots.iter().map(|slot| slot.to);
            for number in slots.filter_map(|to| unit.function_entry_at(to)) {
                functions[number as usize].address_taken = true;
            }
            for (number, function) in unit.program.functions.iter().enumerate() {
                let called = &functions[unit.first as usize + number].callees;
                let values = function.pc_values.iter().filter_map(|value| unit.function_entry_at(value.to));
                let escapes = function.lets_addresses_escape();
                let taken =
                    values.filter(|one| escapes || called.binary_search_by_key(one, |callee| callee.function).is_err());
                let taken: Vec<u32> = taken.collect();
                taken.into_iter().for_each(|one| functions[one as usize].address_taken = true);
            }
        }
    }

    /// Bytes that are in no function, neither padding nor named data.
    pub(crate) fn unclaimed_bytes(&self) -> u64 {
        self.units.iter().map(AnalyzedSection::unclaimed_in_unit).sum()
    }

    /// For some addresses, words of the GOT, the functions that compute them.
    pub(crate) fn users_of(&self, addresses: HashSet<u64>) -> HashMap<u64, Vec<u32>> {
        let mut users: HashMap<u64, Vec<u32>> = HashMap::new();
        let units = self.units.iter().filter(|_| self.linked && !addresses.is_empty());
        for unit in units {
            for (number, function) in (unit.first..).zip(&unit.program.functions) {
                let values = function.pc_values.iter().map(|value| value.to);
                for to in values.filter(|to| to.base == ProgramByte::CODE && addresses.contains(&to.at)) {
                    users.entry(to.at).or_default().push(number);
                }
            }
        }
        users
    }
}

impl AnalyzedSection<'_> {
    fn address_of(&self, offset: u32) -> u64 {
        self.program.source.address.wrapping_add(u64::from(offset))
    }

    /// The name of a function: that of its symbol, or of a label at its start; its address where there is none.
    fn name(&self, number: usize) -> String {
        let function = &self.program.functions[number];
        let mark = function.mark.and_then(|mark| self.program.source.marks.get(mark as usize));
        match mark.filter(|mark| !mark.name.is_empty()).or_else(|| self.labels_at(function.start).next()) {
            Some(mark) => mark.name.to_string(),
            None => format!("code at {:#x}", self.address_of(function.start)),
        }
    }

    /// The symbols without a type at an offset.
    fn labels_at(&self, offset: u32) -> impl Iterator<Item = &SectionSymbol<'_>> {
        let marks = &self.program.source.marks;
        let first = marks.partition_point(|mark| mark.offset < offset);
        let same = marks[first..].iter().take_while(move |mark| mark.offset == offset);
        same.filter(|mark| mark.kind == MarkKind::Label && !mark.name.is_empty())
    }

    /// The number of the function that holds an offset.
    fn function_number_at(&self, offset: u32) -> Option<u32> {
        self.program.function_at(offset).map(|(number, _)| self.first + number as u32)
    }

    /// The number of the function that begins at a place.
    fn function_entry_at(&self, place: ProgramByte) -> Option<u32> {
        let offset = self.program.source.offset_of(place)?;
        let (number, function) = self.program.function_at(offset)?;
        let is_entry = function.entries.iter().any(|entry| entry.offset == offset);
        is_entry.then_some(self.first + number as u32)
    }

    /// The bytes of a function.
    fn code_of(&self, number: usize) -> &[u8] {
        let start = self.program.functions[number].start as usize;
        self.program.source.bytes.get(start..start + self.function_size(number) as usize).unwrap_or_default()
    }

    fn own_resources(&self, number: usize, lanes: Option<u8>) -> Resources {
        let own = self.program.source.stated_lanes(self.program.functions[number].start);
        registers::own_needs(&self.program, &self.banks, number, own.or(lanes))
    }

    fn unclaimed_in_unit(&self) -> u64 {
        let program = &self.program;
        let sizes = (0..program.functions.len()).map(|number| {
            let start = program.functions[number].start;
            start..start.saturating_add(self.function_size(number))
        });
        let mut claimed: Vec<Range<u32>> = sizes.chain(program.named_data()).collect();
        claimed.sort_unstable_by_key(|range| range.start);
        let (mut count, mut at, mut rest) = (0, 0, &claimed[..]);
        for word in program.source.bytes.chunks(4) {
            while let Some((first, more)) = rest.split_first().filter(|(first, _)| first.end <= at) {
                (_, rest) = (first, more);
            }
            let is_claimed = rest.first().is_some_and(|range| range.contains(&at));
            let is_padding = word.first_chunk().is_none_or(|word| Program::is_padding(u32::from_le_bytes(*word)));
            count += if is_claimed || is_padding { 0 } else { word.len() as u64 };
            at += 4;
        }
        count
    }

    /// Bytes of a function: those that its symbol states, otherwise up to the end of its code.
    fn function_size(&self, number: usize) -> u32 {
        let function = &self.program.functions[number];
        let stated =
            function.mark.and_then(|mark| self.program.source.marks.get(mark as usize)).map_or(0, |mark| mark.size);
        let code = function.blocks().map(|block| block.end).max().unwrap_or(function.start) - function.start;
        if stated > 0 { stated } else { code }
    }

    /// Further names, whether one is visible, and the wave size of a kernel.
    fn add_names(&self, number: usize, row: &mut Function) {
        let function = &self.program.functions[number];
        let marks = &self.program.source.marks;
        let first = marks.partition_point(|mark| mark.offset < function.start);
        let own = marks[first..].iter().take_while(|mark| mark.offset < function.end);
        for mark in own.filter(|mark| matches!(mark.kind, MarkKind::Kernel(_) | MarkKind::Function)) {
            if let (MarkKind::Kernel(needs), true) = (mark.kind, mark.offset == function.start) {
                row.wave_size.get_or_insert(needs.lanes);
            }
            row.exported |= mark.exported;
            if mark.name != row.name && !mark.name.is_empty() {
                row.aliases.push(mark.name.clone().into_owned());
            }
        }
        for label in self.labels_at(function.start) {
            row.exported |= label.exported;
            if label.name != row.name {
                row.aliases.push(label.name.to_string());
            }
        }
        row.aliases.sort();
        row.aliases.dedup();
    }

    /// Whether a function is one jump into another one, and few instructions before it; without vector registers
    /// these can only make its address.
    fn is_stub(&self, number: usize) -> bool {
        /// The longest form: three instructions for the address, a load, a wait, the jump.
        const MOST: usize = 8;
        let function = &self.program.functions[number];
        function.block_count() == 1
            && function.instruction_count() <= MOST
            && matches!(function.calls[..], [call] if call.is_tail())
            && function.is_closed()
    }
}

/// The wave size of a file without kernels: the processor's only one, or the one that its functions state.
fn usual_lanes(map: &CodeMap<'_>, by_code: &[Option<u8>]) -> Option<u8> {
    let waves = map.processor.filter(|_| !has_kernels(map))?.waves;
    let stated: BTreeSet<u8> = by_code.iter().copied().flatten().collect();
    match waves {
        WaveSizes::Only32 => Some(32),
        WaveSizes::Only64 => Some(64),
        WaveSizes::Both if stated.len() == 1 => stated.first().copied(),
        WaveSizes::Both => None,
    }
}

fn has_kernels(map: &CodeMap<'_>) -> bool {
    map.sections.iter().any(|section| section.symbols.iter().any(is_kernel))
}

fn is_kernel(symbol: &CodeSymbol<'_>) -> bool {
    matches!(symbol.kind, SymbolKind::Kernel(_))
}

/// Lanes of the waves of all kernels, if they agree.
fn common_lanes(map: &CodeMap<'_>) -> Option<u8> {
    let symbols = map.sections.iter().flat_map(|section| &section.symbols);
    let lanes = symbols.filter_map(|symbol| match &symbol.kind {
        SymbolKind::Kernel(facts) => Some(facts.lanes),
        _ => None,
    });
    let lanes: BTreeSet<u8> = lanes.collect();
    if lanes.len() == 1 { lanes.first().copied() } else { None }
}
