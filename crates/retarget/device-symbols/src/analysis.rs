//! From the bytes of a file to the table of its functions.

use crate::code::FileCode;
use crate::code_hash::code_hash;
use crate::sources::state_sources;
use crate::stated::{self, CompilerRecord, DescriptorModes, RelocatableElf};
use crate::table::{
    Callee, FactEvidence, Form, Function, FunctionKind, Import, Kernel, Number, Resources, SymbolTable,
};
use crate::totals::{self, ReachWalk};
use hotswap_code_object::{CodeMap, KernelFacts, ObjectKind, SymbolKind};
use hotswap_program::CodeSource;
use hotswap_report::{Diagnostic, codes};
use object::{LittleEndian, Object, ObjectSymbol, RelocationFlags, RelocationTarget, SymbolIndex};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Version of the layout.
pub(crate) const VERSION: (u32, u32) = (2, 2);
/// `R_AMDGPU_ABS64`: the loader writes an address.
const ABS64: u32 = 3;

/// The table of a file, and the parts of the file that were skipped because they are damaged.
///
/// # Errors
/// As [`CodeMap::read`] and [`CodeSource::read`] have them: other files, damaged headers, and processors whose
/// instructions are not known.
pub fn analyse_file(data: &[u8]) -> Result<(SymbolTable, Vec<Diagnostic>), Diagnostic> {
    analyse_with(data, &HashMap::new())
}

/// As [`analyse`], with a function's own numbers from elsewhere, by its name: a linker drops the compiler's records, which the
/// linker's inputs still have.
///
/// # Errors
/// As [`analyse`].
pub fn analyse_with(
    data: &[u8],
    own: &HashMap<String, Resources>,
) -> Result<(SymbolTable, Vec<Diagnostic>), Diagnostic> {
    let mut map = CodeMap::read(data)?;
    let mut problems = std::mem::take(&mut map.problems);
    let code = FileCode::new(&map, CodeSource::read(data)?);
    let file = RelocatableElf::parse(data).ok();
    let mut functions = code.function_rows(&map, file.as_ref());
    let records = file.as_ref().map(stated::compiler_records).unwrap_or_default();
    apply_records(&code, &records, &mut functions);
    for function in &mut functions {
        if let Some(own) = own.get(&function.name) {
            function.own = totals::preferred_resources(*own, function.own);
        }
    }
    code.mark_taken(&mut functions);
    let modes = file.as_ref().map(|file| stated::descriptor_modes(file, &map)).unwrap_or_default();
    set_modes(&mut functions, &modes);
    let mut stated = stated_totals(&map, file.as_ref(), &functions, !records.is_empty());
    state_barriers(&mut stated, &functions, &modes);
    let needs = totals::propagate_totals(&mut functions, &stated);
    // Where the compiler recorded functions one by one, the numbers of kernels wait for a linker.
    if records.is_empty() {
        problems.extend(short_of_registers(&functions, &modes, &needs));
    }
    let kernels = kernel_rows(&functions, &needs);
    let sources = file.as_ref().map(|file| state_sources(data, file, &mut functions)).unwrap_or_default();
    let imports = file.as_ref().map(|file| undefined_imports(file, &code, &functions)).unwrap_or_default();
    let unclaimed = code.unclaimed_bytes();
    let closed = imports.is_empty() && unclaimed == 0 && functions.iter().all(totals::is_resolved);
    problems.extend(map.empty_kernels.iter().map(|name| empty_kernel(name)));
    let table = SymbolTable {
        version: VERSION,
        target: target_name(&map),
        form: if map.kind == ObjectKind::Linked { Form::Linked } else { Form::Relocatable },
        code_hash: code_hash(data)?,
        closed,
        unclaimed,
        functions,
        kernels,
        imports,
        exports: Vec::new(),
        producers: file.as_ref().map(stated::producers_of).unwrap_or_default(),
        sources,
    };
    Ok((table, problems))
}

fn target_name(map: &CodeMap<'_>) -> String {
    let stated = map.target_id.map(|id| id.to_string());
    stated.or_else(|| map.processor.map(|processor| processor.name.to_owned())).unwrap_or_default()
}

fn empty_kernel(name: &str) -> Diagnostic {
    Diagnostic::warning(codes::NO_PART, format!("kernel `{name}` has no code and is left out"))
        .advise("it begins at the end of the code; check the tool that made it")
}

/// Adds what the compiler recorded; its numbers are exact, and its calls include all that the code shows.
fn apply_records(
    code: &FileCode<'_>,
    records: &BTreeMap<stated::FunctionPosition, CompilerRecord>,
    functions: &mut [Function],
) {
    for ((section, offset), record) in records {
        let Some(number) = code.function_at(*section, *offset) else { continue };
        let row = &mut functions[number as usize];
        row.own = totals::preferred_resources(record.own, row.own);
        let recorded = record.callees.iter().filter_map(|(section, offset)| code.function_at(*section, *offset));
        let mut callees: BTreeMap<u32, FactEvidence> =
            row.callees.iter().map(|callee| (callee.function, callee.evidence)).collect();
        callees.extend(recorded.map(|function| (function, FactEvidence::CompilerRecord)));
        row.callees = callees.into_iter().map(|(function, evidence)| Callee { function, evidence }).collect();
        let imports: BTreeSet<String> = row.imports.drain(..).chain(record.outside.iter().cloned()).collect();
        row.imports = imports.into_iter().collect();
    }
}

/// A function has the wave size and the mode of the kernels that the file has, if they agree.
fn set_modes(functions: &mut [Function], modes: &HashMap<&str, DescriptorModes>) {
    for kernel in functions.iter_mut().filter(|one| one.kind == FunctionKind::Kernel) {
        kernel.cu_mode = modes.get(kernel.name.as_str()).and_then(|modes| modes.cu_mode);
    }
    let wave_size = common_value(functions.iter().filter_map(|one| one.wave_size));
    let cu_mode = common_value(functions.iter().filter_map(|one| one.cu_mode));
    for function in functions.iter_mut().filter(|one| one.kind != FunctionKind::Kernel) {
        (function.wave_size, function.cu_mode) = (function.wave_size.or(wave_size), cu_mode);
    }
}

/// The value that all have, if they have the same.
fn common_value<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    let all: BTreeSet<T> = values.collect();
    if all.len() == 1 { all.first().copied() } else { None }
}

/// The numbers that the file states for functions with all that they call. Where the compiler recorded functions one by one, the
/// numbers of kernels wait for a linker.
fn stated_totals(
    map: &CodeMap<'_>,
    file: Option<&RelocatableElf<'_>>,
    functions: &[Function],
    is_recorded: bool,
) -> Vec<Option<Resources>> {
    if is_recorded {
        return vec![None; functions.len()];
    }
    let symbols = file.map(stated::assembler_symbols).unwrap_or_default();
    let mut kernels: BTreeMap<&str, &KernelFacts> = BTreeMap::new();
    for symbol in map.sections.iter().flat_map(|section| &section.symbols) {
        if let SymbolKind::Kernel(facts) = &symbol.kind {
            kernels.insert(&symbol.name, facts);
        }
    }
    let unified = map
        .processor
        .is_some_and(|processor| processor.capabilities.contains(hotswap_targets::Capability::UnifiedRegisterFile));
    let stated = functions.iter().map(|function| {
        let symbols = symbols.get(function.name.as_str()).copied();
        let kernel = kernels.get(function.name.as_str()).map(|facts| of_kernel(facts, unified));
        match (symbols, kernel) {
            (Some(symbols), Some(kernel)) => Some(totals::preferred_resources(symbols, kernel)),
            (symbols, kernel) => symbols.or(kernel),
        }
    });
    stated.collect()
}

/// Adds the named barriers that descriptors state.
fn state_barriers(stated: &mut [Option<Resources>], functions: &[Function], modes: &HashMap<&str, DescriptorModes>) {
    for (function, stated) in functions.iter().zip(stated) {
        let barriers = modes.get(function.name.as_str()).and_then(|modes| modes.named_barriers);
        if let (Some(stated), Some(barriers)) = (stated, barriers) {
            stated.barriers = Number::known_by(barriers, FactEvidence::Descriptor);
        }
    }
}

fn of_kernel(facts: &KernelFacts, unified: bool) -> Resources {
    // In a unified file the metadata counts both kinds, and AGPRs begin at a multiple of four.
    let vgprs = match (facts.vgprs, facts.agprs.filter(|agprs| unified && *agprs > 0)) {
        (Some(all), Some(agprs)) => all.checked_sub(agprs),
        (all, _) => all,
    };
    Resources {
        vgprs: metadata_number(vgprs),
        agprs: metadata_number(facts.agprs),
        // The metadata counts VCC and other special registers as well.
        sgprs: metadata_number(facts.sgprs),
        scratch: Number::known_by(u64::from(facts.scratch), FactEvidence::Descriptor),
        lds: Number::known_by(u64::from(facts.lds), FactEvidence::Descriptor),
        barriers: Number::UNKNOWN,
    }
}

fn metadata_number(value: Option<u64>) -> Number {
    match value {
        Some(value) => Number::known_by(value, FactEvidence::Metadata),
        None => Number::UNKNOWN,
    }
}

/// Kernels that are granted fewer vector registers than the code that they reach names: objects with native code were linked, and no
/// linker raises the numbers of a kernel.
fn short_of_registers(
    functions: &[Function],
    modes: &HashMap<&str, DescriptorModes>,
    needs: &[Resources],
) -> Vec<Diagnostic> {
    let kernels = functions.iter().zip(needs).filter(|(function, _)| function.kind == FunctionKind::Kernel);
    let short = kernels.filter_map(|(function, needs)| {
        let granted = modes.get(function.name.as_str())?.granted_vgprs?;
        let needed = needs.vgprs.value.filter(|needed| *needed > granted)?;
        let what = format!(
            "`{}` is granted {granted} vector registers, and the code that it reaches names {needed}",
            function.name
        );
        Some(Diagnostic::warning(codes::TOO_FEW_REGISTERS, what))
    });
    short.collect()
}

pub(crate) fn kernel_rows(functions: &[Function], needs: &[Resources]) -> Vec<Kernel> {
    let numbers = (0_u32..).zip(functions).filter(|(_, one)| one.kind == FunctionKind::Kernel);
    let mut walk = ReachWalk::new(functions);
    numbers.map(|one| make_kernel_row(one, &mut walk, needs)).collect()
}

fn make_kernel_row((function, _): (u32, &Function), walk: &mut ReachWalk<'_>, needs: &[Resources]) -> Kernel {
    let (reachable, complete) = walk.from(function);
    Kernel { function, reachable, complete, needs: needs[function as usize] }
}

/// Undefined symbols that something refers to.
fn undefined_imports(file: &RelocatableElf<'_>, code: &FileCode<'_>, functions: &[Function]) -> Vec<Import> {
    let mut all: BTreeMap<String, Import> = BTreeMap::new();
    for (number, function) in (0_u32..).zip(functions) {
        for name in &function.imports {
            all.entry(name.clone()).or_insert_with(|| new_import_row(name)).used_by.push(number);
        }
    }
    for (address, relocation) in file.dynamic_relocations().into_iter().flatten() {
        let (RelocationFlags::Elf { r_type: ABS64 }, RelocationTarget::Symbol(symbol)) =
            (relocation.flags(), relocation.target())
        else {
            continue;
        };
        let Some(name) = undefined_symbol(file, symbol) else { continue };
        let import = all.entry(name.to_owned()).or_insert_with(|| new_import_row(name));
        import.slots.push(address);
    }
    let users = code.users_of(all.values().flat_map(|import| import.slots.iter().copied()).collect());
    // Undefined symbols of a relocatable file are there for a reason: data may name them.
    for symbol in file.symbols().filter(|symbol| symbol.is_undefined()) {
        if let Some(name) = symbol.name().ok().filter(|name| !name.is_empty()) {
            all.entry(name.to_owned()).or_insert_with(|| new_import_row(name));
        }
    }
    for import in all.values_mut() {
        import.used_by.extend(import.slots.iter().filter_map(|slot| users.get(slot)).flatten());
        import.used_by.sort_unstable();
        import.used_by.dedup();
        import.slots.sort_unstable();
    }
    all.into_values().collect()
}

fn new_import_row(name: &str) -> Import {
    Import { name: name.to_owned(), slots: Vec::new(), used_by: Vec::new() }
}

fn undefined_symbol<'a>(file: &RelocatableElf<'a>, number: SymbolIndex) -> Option<&'a str> {
    use object::ObjectSymbolTable;
    let symbol = file.dynamic_symbol_table()?.symbol_by_index(number).ok()?;
    let section = symbol.elf_symbol().st_shndx.get(LittleEndian);
    symbol.name().ok().filter(|name| section == object::elf::SHN_UNDEF && !name.is_empty())
}
