//! Functions that a link exports or imports. Callers in other code objects know nothing of their code, so it must be that of a function
//! which the compiler takes for visible.
//!
//! Invariant: an exported function that the compiler took for its own is refused: it may write registers that callers keep.

use hotswap_device_symbols::IMPORT_PREFIX;
use hotswap_report::{Diagnostic, codes};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSymbol, elf};
use std::collections::BTreeSet;

/// Checks that each of these is a function of the linked file which the compiler took for visible to others.
///
/// # Errors
/// `NOT_EXPORTED` with the name; `MALFORMED`.
pub fn check_exports(linked: &[u8], names: &BTreeSet<String>) -> Result<(), Diagnostic> {
    let file = ElfFile64::<LittleEndian>::parse(linked).map_err(export_elf_error)?;
    for name in names {
        check_export(&file, name)?;
    }
    Ok(())
}

fn export_elf_error(error: object::Error) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, error.to_string())
}

fn check_export(file: &ElfFile64<'_, LittleEndian>, name: &str) -> Result<(), Diagnostic> {
    let named = file.symbols().filter(|symbol| symbol.name() == Ok(name) && symbol.is_definition());
    let rows: Vec<_> = named.map(|symbol| *symbol.elf_symbol()).collect();
    let Some(row) = rows.first() else {
        return export_refusal("is to be exported, and the linked code object does not define it", name);
    };
    if row.st_type() != elf::STT_FUNC || file.symbols().any(|symbol| symbol.name() == Ok(&*format!("{name}.kd"))) {
        return export_refusal("is to be exported, and is no device function", name);
    }
    if rows.len() > 1 {
        return export_refusal(&format!("is to be exported, and {} functions have that name", rows.len()), name);
    }
    // The linker makes hidden symbols local; those of the compiler's own functions have default visibility.
    if row.st_bind() == elf::STB_LOCAL && row.st_visibility() == elf::STV_DEFAULT {
        return export_refusal("is to be exported, and the compiler took it for a function of its file alone", name);
    }
    Ok(())
}

fn export_refusal(what: &str, name: &str) -> Result<(), Diagnostic> {
    Err(Diagnostic::error(codes::NOT_EXPORTED, format!("`{name}` {what}")))
}

/// Checks that the linked file imports only these functions, if the link allows no other undefined symbol, and that it defines
/// none of them itself.
///
/// # Errors
/// `NOT_EXPORTED` with the name; `MALFORMED`.
pub fn check_imports(linked: &[u8], names: &BTreeSet<String>, no_others: bool) -> Result<(), Diagnostic> {
    let file = ElfFile64::<LittleEndian>::parse(linked).map_err(import_elf_error)?;
    let undefined = file.dynamic_symbols().filter(|symbol| symbol.is_undefined() && !symbol.is_weak());
    let undefined: BTreeSet<&str> =
        undefined.filter_map(|symbol| symbol.name().ok()).filter(|name| !name.is_empty()).collect();
    let imported: BTreeSet<&str> = undefined.iter().filter_map(|name| name.strip_prefix(IMPORT_PREFIX)).collect();
    if let Some(other) = undefined.iter().find(|name| no_others && !name.starts_with(IMPORT_PREFIX)) {
        return import_refusal(format!("`{other}` is undefined, and not among the imports"));
    }
    let own = file.symbols().find(|symbol| {
        let name = symbol.name().unwrap_or_default();
        symbol.is_definition() && names.contains(name) && !imported.contains(name)
    });
    match own {
        Some(symbol) => {
            let name = symbol.name().unwrap_or_default();
            import_refusal(format!("`{name}` is to be imported, and the link defines it"))
        }
        None => Ok(()),
    }
}

fn import_elf_error(error: object::Error) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, error.to_string())
}

fn import_refusal(what: String) -> Result<(), Diagnostic> {
    Err(Diagnostic::error(codes::NOT_EXPORTED, what))
}
