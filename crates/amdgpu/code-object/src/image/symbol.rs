//! Symbol tables as rows.

use super::ObjectImage;
use crate::elf::{record_table, string_at};
use crate::malformed;
use hotswap_report::Diagnostic;
use object::LittleEndian as LE;
use object::elf::{self, Sym64};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolRow<'a> {
    /// Name; empty when it is not UTF-8.
    pub name: &'a str,
    /// Address in a linked file, offset in the section in a relocatable one.
    pub value: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Number of its section; `None` where that does not exist (undefined and absolute symbols).
    pub section: Option<usize>,
    /// The symbol's type, an `STT_…` constant.
    pub kind: u8,
    /// Whether other files see it.
    pub is_global: bool,
}

/// The symbols of one table, by number.
#[derive(Debug, Clone)]
pub struct SymbolRows<'a> {
    /// Number of the table's section.
    pub section: usize,
    /// Offset of the table in the file.
    pub at: usize,
    /// All symbols, the empty first one included.
    pub rows: Vec<SymbolRow<'a>>,
}

impl<'a> ObjectImage<'a> {
    /// All symbol tables: `.symtab`, `.dynsym`.
    ///
    /// # Errors
    /// `MALFORMED` for a table without strings, for names that leave them and for symbols of sections that do not
    /// exist; `UNKNOWN_FORMAT` for more than 65279 sections.
    pub fn symbol_tables(&self) -> Result<Vec<SymbolRows<'a>>, Diagnostic> {
        let tables = self.sections.iter().enumerate().filter(|(_, section)| is_symbol_table_kind(section.kind));
        tables.map(|(number, _)| self.symbols_of(number)).collect()
    }

    fn symbols_of(&self, number: usize) -> Result<SymbolRows<'a>, Diagnostic> {
        let section = &self.sections[number];
        let at = section.offset as usize;
        let strings = self.sections.get(section.link as usize).filter(|strings| strings.kind == elf::SHT_STRTAB);
        let strings = strings.ok_or_else(|| malformed(at, "a symbol table has no string table"))?.bytes;
        let count = section.bytes.len() / size_of::<Sym64<LE>>();
        let symbols = record_table::<Sym64<LE>>(self.data, section.offset, count as u64, at, "the symbol table")?;
        let rows = symbols.iter().enumerate().map(|(index, symbol)| {
            let place = at + index * size_of::<Sym64<LE>>();
            let name = string_at(strings, symbol.st_name.get(LE))
                .ok_or_else(|| malformed(place, "a symbol's name leaves its string table"))?;
            let owner = match symbol.st_shndx.get(LE) {
                elf::SHN_UNDEF | elf::SHN_ABS | elf::SHN_COMMON => None,
                elf::SHN_XINDEX => {
                    return Err(crate::unsupported_format(place + 6, "more than 65279 sections are not handled"));
                }
                owner if usize::from(owner) >= self.sections.len() => {
                    // Numbers from SHN_LORESERVE on have special meanings: LDS symbols and the like.
                    if owner < elf::SHN_LORESERVE {
                        return Err(malformed(place + 6, "a symbol is in a section that does not exist"));
                    }
                    None
                }
                owner => Some(usize::from(owner)),
            };
            Ok(SymbolRow {
                name: std::str::from_utf8(name).unwrap_or_default(),
                value: symbol.st_value.get(LE),
                size: symbol.st_size.get(LE),
                section: owner,
                kind: symbol.st_type(),
                is_global: symbol.st_bind() != elf::STB_LOCAL,
            })
        });
        let rows = rows.collect::<Result<_, _>>()?;
        Ok(SymbolRows { section: number, at, rows })
    }
}

fn is_symbol_table_kind(kind: u32) -> bool {
    kind == elf::SHT_SYMTAB || kind == elf::SHT_DYNSYM
}

impl SymbolRow<'_> {
    /// Writes a changed value and size into the bytes of a record.
    pub fn write(record: &mut [u8], value: u64, size: u64) {
        record[8..16].copy_from_slice(&value.to_le_bytes());
        record[16..24].copy_from_slice(&size.to_le_bytes());
    }
}
