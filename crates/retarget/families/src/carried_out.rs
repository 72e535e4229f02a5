//! The object that defines the symbols of the relocatable units whose plan a device link carries out.
//!
//! Each unit that was compiled under a plan refers to a symbol of its own (`hotswap_plan::unit_symbol`), which nothing
//! else defines. The definitions are weak, since groups of units that are linked with `-r` may share an archive, and
//! hidden, so that no shared library exports them. On COFF they are absolute, since linkers accept equal ones.
//!
//! Invariant: equal arguments give equal bytes.

use crate::manifest::{ManifestFormat, new_object};
use hotswap_report::{Diagnostic, codes};
use object::write::{Symbol, SymbolSection};
use object::{SectionKind, SymbolFlags, SymbolKind, SymbolScope, elf};

/// Section of the definitions.
const SECTION: &str = "hotswap_units";

/// The object for these symbols.
///
/// # Errors
/// [`codes::INTERNAL`] if the object cannot be written.
pub fn definitions_object(format: ManifestFormat, symbols: &[String]) -> Result<Vec<u8>, Diagnostic> {
    let mut object = new_object(format);
    let is_coff = format == ManifestFormat::CoffX86_64;
    let weak = SymbolFlags::Elf { st_info: elf::STB_WEAK << 4 | elf::STT_NOTYPE, st_other: elf::STV_HIDDEN };
    let (section, flags) = if is_coff {
        (SymbolSection::Absolute, SymbolFlags::None)
    } else {
        let section = object.add_section(Vec::new(), SECTION.as_bytes().to_vec(), SectionKind::Data);
        object.append_section_data(section, &[0; 8], 8);
        (SymbolSection::Section(section), weak)
    };
    for name in symbols {
        object.add_symbol(Symbol {
            name: name.clone().into_bytes(),
            value: 0,
            size: 0,
            kind: SymbolKind::Data,
            scope: SymbolScope::Linkage,
            weak: !is_coff,
            section,
            flags,
        });
    }
    object.write().map_err(|error| Diagnostic::error(codes::INTERNAL, format!("definitions of units: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Object, ObjectSymbol};

    #[test]
    fn each_symbol_is_defined_weakly_or_absolute() {
        for format in [ManifestFormat::ElfX86_64, ManifestFormat::ElfAarch64, ManifestFormat::CoffX86_64] {
            let symbols = ["one".to_owned(), "two".to_owned()];
            let bytes = definitions_object(format, &symbols).unwrap();
            let file = object::File::parse(&bytes[..]).unwrap();
            let is_soft = |symbol: &object::Symbol<'_, '_>| {
                symbol.is_weak() || symbol.section() == object::SymbolSection::Absolute
            };
            let defined =
                file.symbols().filter(|symbol| is_soft(symbol) && symbol.is_global() && !symbol.is_undefined());
            assert_eq!(defined.map(|symbol| symbol.name().unwrap()).collect::<Vec<_>>(), symbols);
            assert_eq!(bytes, definitions_object(format, &symbols).unwrap());
        }
    }
}
