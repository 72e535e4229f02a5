//! The table in a file: the note `.note.hotswap.devsyms`, whose content is MessagePack: each structure an array of its members,
//! in their order, to which later versions append. Names of members would take most of the bytes.
//!
//! Invariants: a table in a file counts only if the hash in it is that of the file's code and it has the names of the file's symbols;
//! otherwise it is *stale*, and the file is analysed. [`with_table`] changes no loaded byte.
//!
//! Absent on purpose: relocatable files, whose functions a linker moves.

use crate::analysis::{VERSION, analyse_file};
use crate::code_hash::{NAMES, code_hash};
use crate::table::{Export, Form, Function, FunctionKind, SymbolTable};
use hotswap_code_object::{DEVICE_SYMBOLS_SECTION, device_symbols_note, with_device_symbols};
use hotswap_report::{Diagnostic, codes};
use object::pod::bytes_of_slice;
use object::read::elf::{ElfFile64, ElfSection64, ElfSymbol64};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, SectionKind, elf};
use std::collections::{BTreeSet, HashMap};

/// Where the table of a file comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableOrigin {
    /// The note, whose hash is that of the code.
    Note,
    /// An analysis, because the note is not that of the code.
    StaleNote,
    /// An analysis; the file lacks a note.
    NoNote,
}

/// The table of a file.
#[derive(Debug)]
pub struct FoundTable {
    pub table: SymbolTable,
    /// Warnings about a note that is not used, and about damaged parts.
    pub problems: Vec<Diagnostic>,
    /// Where it comes from.
    pub origin: TableOrigin,
}

/// The table of a file: its note's, if that fits the code, otherwise that of an analysis.
///
/// # Errors
/// As [`analyse`] has them.
pub fn found_table(data: &[u8]) -> Result<FoundTable, Diagnostic> {
    let (warning, origin) = match device_symbols_note(data).map(|content| read_table(data, content)) {
        Some(Ok(table)) => return Ok(FoundTable { table, problems: Vec::new(), origin: TableOrigin::Note }),
        Some(Err(warning)) => (Some(warning), TableOrigin::StaleNote),
        None => (None, TableOrigin::NoNote),
    };
    let (table, mut problems) = analyse_file(data)?;
    problems.extend(warning);
    Ok(FoundTable { table, problems, origin })
}

/// As [`found_table`], for those that do not ask where it comes from.
///
/// # Errors
/// As [`analyse`] has them.
pub fn table_of(data: &[u8]) -> Result<(SymbolTable, Vec<Diagnostic>), Diagnostic> {
    found_table(data).map(|found| (found.table, found.problems))
}

/// The table in a note.
///
/// # Errors
/// `STALE_TABLE` for a table of other code, of a later version, or one that cannot be read; a warning.
fn read_table(data: &[u8], content: &[u8]) -> Result<SymbolTable, Diagnostic> {
    let stale = |what: &str| Diagnostic::warning(codes::STALE_TABLE, what);
    let table: SymbolTable =
        rmp_serde::from_slice(content).map_err(|error| stale(&format!("the table cannot be read: {error}")))?;
    if table.version.0 != VERSION.0 {
        return Err(stale(&format!("its layout has version {}.{}", table.version.0, table.version.1)));
    }
    if code_hash(data)? != table.code_hash {
        return Err(stale("the code was changed after the table was made"));
    }
    if !table.is_sound() {
        return Err(stale("the table names functions or sources that it does not have"));
    }
    if let Some(name) = renamed_function(data, &table) {
        return Err(stale(&format!("the symbol `{name}` has another name in the table")));
    }
    Ok(table)
}

/// A symbol of a function whose name the table does not have at that address: tools rename symbols, which are not
/// loaded and not in the hash.
fn renamed_function(data: &[u8], table: &SymbolTable) -> Option<String> {
    let file = ElfFile64::<LittleEndian>::parse(data).ok()?;
    let rows: HashMap<u64, &Function> = table.functions.iter().map(|one| (one.address, one)).collect();
    let mut symbols = file.symbols().filter(|symbol| names_code(&file, symbol)).filter_map(|symbol| {
        let name = symbol.name().ok().filter(|name| !name.is_empty())?;
        Some((name, rows.get(&symbol.address())?))
    });
    let renamed = symbols.find(|(name, row)| row.name != *name && !row.aliases.iter().any(|alias| alias == name));
    renamed.map(|(name, _)| name.to_owned())
}

/// Whether a symbol may name a function: with that type, or without one in a section of code.
fn names_code(file: &ElfFile64<'_, LittleEndian>, symbol: &ElfSymbol64<'_, '_, LittleEndian>) -> bool {
    match symbol.elf_symbol().st_type() {
        elf::STT_FUNC => symbol.is_definition(),
        elf::STT_NOTYPE => symbol
            .section_index()
            .and_then(|number| file.section_by_index(number).ok())
            .is_some_and(|section| section.kind() == SectionKind::Text),
        _ => false,
    }
}

impl SymbolTable {
    /// Whether all numbers of functions and sources in it are those of rows.
    fn is_sound(&self) -> bool {
        let callees = self.functions.iter().flat_map(|one| &one.callees).map(|callee| callee.function);
        let reached = self.kernels.iter().flat_map(|one| one.reachable.iter().copied().chain([one.function]));
        let users = self.imports.iter().flat_map(|one| one.used_by.iter().copied());
        let exports = self.exports.iter().map(|one| one.function);
        let mut sources = self.functions.iter().filter_map(|one| one.source);
        let mut numbers = callees.chain(reached).chain(users).chain(exports);
        numbers.all(|number| (number as usize) < self.functions.len())
            && sources.all(|number| (number as usize) < self.sources.len())
    }
}

/// The file with a table of its functions. Only parts that are not loaded differ; see [`check`]. Exports of a table
/// that it has stay.
///
/// # Errors
/// As [`analyse`] has them; `NO_PLACE` for relocatable files, and for those whose section table takes no further row.
pub fn with_table(data: &[u8]) -> Result<(Vec<u8>, SymbolTable), Diagnostic> {
    with_table_like(data, data)
}

/// As [`with_table`], for a file that was made from another one, whose exports it keeps.
///
/// # Errors
/// As [`with_table`]; `NOT_EXPORTED` where such a function is gone.
pub fn with_table_like(data: &[u8], source: &[u8]) -> Result<(Vec<u8>, SymbolTable), Diagnostic> {
    let old = device_symbols_note(source).and_then(|content| rmp_serde::from_slice::<SymbolTable>(content).ok());
    let names: BTreeSet<String> = old.into_iter().flat_map(|table| table.exports).map(|export| export.name).collect();
    with_exports(data, &names)
}

/// As [`with_table`], with these functions for other code objects.
///
/// # Errors
/// As [`with_table`]; `NOT_EXPORTED` where one of them is not a function of the file.
pub fn with_exports(data: &[u8], names: &BTreeSet<String>) -> Result<(Vec<u8>, SymbolTable), Diagnostic> {
    let (mut table, _) = analyse_file(data)?;
    table.exports = names.iter().map(|name| export_of(&table, name)).collect::<Result<_, _>>()?;
    with_new_table(data, table)
}

fn export_of(table: &SymbolTable, name: &str) -> Result<Export, Diagnostic> {
    let number = table.number_of_name(name).filter(|number| table.functions[*number].kind == FunctionKind::Function);
    let gone =
        || Diagnostic::error(codes::NOT_EXPORTED, format!("`{name}` is not a device function of the code object"));
    let function = number.and_then(|number| u32::try_from(number).ok()).ok_or_else(gone)?;
    Ok(Export { name: name.to_owned(), function })
}

fn with_new_table(data: &[u8], table: SymbolTable) -> Result<(Vec<u8>, SymbolTable), Diagnostic> {
    Ok((with_made_table(data, &table)?, table))
}

/// As [`with_table`], with a table of the file that was made before, by [`analyse`].
///
/// # Errors
/// As [`with_table`]; `VERIFY_FAILED` for a table of other code.
pub fn with_made_table(data: &[u8], table: &SymbolTable) -> Result<Vec<u8>, Diagnostic> {
    if table.form == Form::Relocatable {
        let what = "a relocatable file keeps no table of functions: the linker moves them";
        return Err(Diagnostic::error(codes::NO_PLACE, what).advise("write the table into the linked code object"));
    }
    let content = rmp_serde::to_vec(table)
        .map_err(|error| Diagnostic::error(codes::INTERNAL, format!("the table has no MessagePack form: {error}")))?;
    let Some(made) = with_device_symbols(data, &content) else {
        let what = "the file has no section table that can take a note";
        return Err(Diagnostic::error(codes::NO_PLACE, what)
            .advise("link the code object again without removing its section table"));
    };
    check_written(data, &made, table)?;
    Ok(made)
}

/// Checks a file with a table against the file that it was made from: every segment and every section but the names of
/// sections and the note has the same bytes at the same place, and the table reads back.
///
/// # Errors
/// `VERIFY_FAILED` where that is not so.
pub fn check_written(old: &[u8], new: &[u8], table: &SymbolTable) -> Result<(), Diagnostic> {
    let content = device_symbols_note(new).ok_or_else(|| verify_failed("the table is not found again"))?;
    if read_table(new, content).ok().as_ref() != Some(table) {
        return Err(verify_failed("the table is not what was written"));
    }
    check_rest(old, new)
}

/// Checks that every segment and every section but the names of sections and the note has the same bytes at the same place.
///
/// # Errors
/// `VERIFY_FAILED` where that is not so.
pub(crate) fn check_rest(old: &[u8], new: &[u8]) -> Result<(), Diagnostic> {
    let (before, after) = (parse(old)?, parse(new)?);
    let mut kept = after.sections();
    for section in before.sections() {
        let name = section.name().unwrap_or_default();
        let twin = kept.next().ok_or_else(|| verify_failed("a section is gone"))?;
        if ![NAMES, DEVICE_SYMBOLS_SECTION].contains(&name) && !is_same(&section, &twin) {
            return Err(verify_failed(&format!("section `{name}` is not what it was")));
        }
    }
    let has_same_rows = bytes_of_slice(before.elf_program_headers()) == bytes_of_slice(after.elf_program_headers());
    if !has_same_rows || loaded_bytes(&before, old) != loaded_bytes(&after, new) {
        return Err(verify_failed("a segment is not what it was"));
    }
    Ok(())
}

pub(crate) fn verify_failed(what: &str) -> Diagnostic {
    Diagnostic::error(codes::VERIFY_FAILED, what)
}

fn parse(data: &[u8]) -> Result<ElfFile64<'_, LittleEndian>, Diagnostic> {
    ElfFile64::parse(data).map_err(|error| verify_failed(&error.to_string()))
}

type LeElfSection<'d, 'f> = ElfSection64<'d, 'f, LittleEndian>;

/// Whether two sections have the same name, row and bytes.
fn is_same(one: &LeElfSection<'_, '_>, other: &LeElfSection<'_, '_>) -> bool {
    let [own, others] = [one.elf_section_header(), other.elf_section_header()]
        .map(|row| (row.sh_type, row.sh_flags, row.sh_addr, row.sh_offset, row.sh_size, row.sh_link, row.sh_info));
    own == others && one.name().ok() == other.name().ok() && one.data().ok() == other.data().ok()
}

/// The bytes of all segments, without the fields of the ELF header that place the section table.
fn loaded_bytes(file: &ElfFile64<'_, LittleEndian>, data: &[u8]) -> Vec<Option<Vec<u8>>> {
    let parts = file.elf_program_headers().iter().map(|row| {
        let start = usize::try_from(row.p_offset.get(LittleEndian)).ok()?;
        let end = start.checked_add(usize::try_from(row.p_filesz.get(LittleEndian)).ok()?)?;
        let mut part = data.get(start..end)?.to_vec();
        if start == 0 && part.len() >= 64 {
            part[40..48].fill(0);
            part[60..62].fill(0);
        }
        Some(part)
    });
    parts.collect()
}
