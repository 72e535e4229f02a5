//! The manifest: the object file that every host link with a plan gets.
//!
//! It has two sections.
//! - The registrar table ([`ManifestFormat::table_section`]): one pointer to the registrar of each family that the plan names.
//!   The references are strong, so a missing registrar fails the link. On ELF three things make that hold everywhere:
//!   the section is retained (`SHF_GNU_RETAIN`), which bfd and gold only honour in a file of `ELFOSABI_GNU`; and the
//!   references are hidden, so that `-shared` does not leave them for the loader. On COFF, `/INCLUDE` directives
//!   replace the table where a linker removes it.
//! - The record ([`ManifestFormat::record_section`]): one line of JSON, kept like the table. Linkers join
//!   the sections of several manifests (static libraries with plans of their own), so a program's
//!   section holds one or more lines.
//!
//! Invariants: equal arguments give equal bytes. No symbol of a manifest can collide with that of another one. The
//! object marks itself as fit for control-flow protection (it lacks code), so that the program keeps its mark.
//!
//! The object must be on the link line itself: a manifest inside an archive is never loaded, and bfd and gold require
//! the registry archive after it. A partial link (`-r`) must never get the archive: two of them would define the
//! registrars twice. It reports no missing registrar either; the final link does, with a manifest of its own.
//!
//! Absent on purpose: finding the section in a program (`hotswap inspect` does).

use crate::patches_def::{is_family_name, registrar_symbol};
use hotswap_report::{Diagnostic, codes};
use object::write::{Object, Relocation, SectionId, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, FileFlags, RelocationEncoding, RelocationFlags, RelocationKind,
    SectionFlags, SectionKind, SymbolFlags, SymbolKind, SymbolScope, elf, pe,
};
use serde::{Deserialize, Serialize};

/// The object-file format of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestFormat {
    /// An ELF64 object for x86-64.
    ElfX86_64,
    /// ELF64 for little-endian AArch64.
    ElfAarch64,
    /// A COFF object for x86-64.
    CoffX86_64,
}

/// The contents of the record section for one plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanManifest {
    /// Version of this format; 1.
    pub schema: u32,
    pub hotswap: String,
    /// Fingerprint of the HotSwap build.
    pub identity: String,
    /// Hash of the plan.
    pub plan: String,
    /// The plan's canonical text.
    pub plan_text: String,
    /// Families whose registrars the program must have, in the order of the table.
    pub families: Vec<String>,
}

const POINTER: u64 = 8;

impl ManifestFormat {
    /// The format for a target triple of clang, or `None` if HotSwap writes no manifest for it.
    pub fn for_triple(triple: &str) -> Option<Self> {
        let (arch, rest) = triple.split_once('-')?;
        let windows = rest.contains("windows");
        match arch {
            "x86_64" | "amd64" if windows => Some(Self::CoffX86_64),
            "x86_64" | "amd64" if rest.contains("linux") => Some(Self::ElfX86_64),
            "aarch64" | "arm64" if rest.contains("linux") => Some(Self::ElfAarch64),
            _ => None,
        }
    }

    /// Section of the registrar table. PE images cut names after eight bytes.
    pub const fn table_section(self) -> &'static str {
        match self {
            Self::ElfX86_64 | Self::ElfAarch64 => "hotswap_regtab",
            Self::CoffX86_64 => ".hsreg",
        }
    }

    /// Section of the record.
    pub const fn record_section(self) -> &'static str {
        match self {
            Self::ElfX86_64 | Self::ElfAarch64 => "hotswap_manifest_record",
            Self::CoffX86_64 => ".hsrec",
        }
    }

    /// The machine that the object is for.
    pub const fn architecture(self) -> Architecture {
        match self {
            Self::ElfX86_64 | Self::CoffX86_64 => Architecture::X86_64,
            Self::ElfAarch64 => Architecture::Aarch64,
        }
    }

    const fn is_coff(self) -> bool {
        matches!(self, Self::CoffX86_64)
    }
}

/// Names of record sections in programs of any format.
pub const RECORD_SECTIONS: &[&str] =
    &[ManifestFormat::ElfX86_64.record_section(), ManifestFormat::CoffX86_64.record_section()];

/// The object file for a link with that plan. A name without a registrar is not an error here: the link reports it.
///
/// # Errors
/// [`codes::UNKNOWN_FAMILY`] for a name that cannot be part of a symbol; [`codes::INTERNAL`] if
/// the object cannot be written.
pub fn manifest_object(
    format: ManifestFormat,
    plan_hash: &str,
    plan_text: &str,
    families: &[&str],
) -> Result<Vec<u8>, Diagnostic> {
    if let Some(name) = families.iter().find(|name| !is_family_name(name)) {
        return Err(Diagnostic::error(codes::UNKNOWN_FAMILY, format!("`{name}`")));
    }
    let record = record_line(plan_hash, plan_text, families);
    let mut object = new_object(format);
    add_record(&mut object, format, record.as_bytes());
    add_table(&mut object, format, families)?;
    object.write().map_err(|error| internal_error(&error))
}

/// Reads the lines of a record section, as linked.
///
/// # Errors
/// [`codes::MALFORMED`] with the offset of the line; [`codes::UNKNOWN_FORMAT`] for a schema of a later HotSwap.
pub fn read_manifests(section: &[u8]) -> Result<Vec<PlanManifest>, Diagnostic> {
    let mut manifests = Vec::new();
    let mut offset = 0;
    for line in section.split_inclusive(|byte| *byte == b'\n') {
        // Linkers fill the gaps of alignment, PE images the end of the section, with zeros.
        let text = line.trim_ascii_end();
        let zeros = text.iter().take_while(|byte| **byte == 0).count();
        let text = &text[zeros..];
        if !text.is_empty() {
            manifests.push(read_line(text).map_err(|error| error.at_offset((offset + zeros) as u64))?);
        }
        offset += line.len();
    }
    Ok(manifests)
}

fn read_line(text: &[u8]) -> Result<PlanManifest, Diagnostic> {
    let value: serde_json::Value = serde_json::from_slice(text).map_err(manifest_record_error)?;
    match value.get("schema").and_then(serde_json::Value::as_u64) {
        Some(1) => serde_json::from_value(value).map_err(manifest_record_error),
        schema => {
            let found = schema.map_or("none".to_owned(), |number| number.to_string());
            Err(Diagnostic::error(codes::UNKNOWN_FORMAT, format!("manifest record with schema {found}")))
        }
    }
}

fn manifest_record_error(error: serde_json::Error) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, format!("manifest record: {error}"))
}

fn internal_error(error: &object::write::Error) -> Diagnostic {
    Diagnostic::error(codes::INTERNAL, format!("manifest object: {error}"))
}

fn record_line(plan_hash: &str, plan_text: &str, families: &[&str]) -> String {
    let manifest = PlanManifest {
        schema: 1,
        hotswap: hotswap_plan::VERSION.to_owned(),
        identity: hotswap_plan::IDENTITY.to_owned(),
        plan: plan_hash.to_owned(),
        plan_text: plan_text.to_owned(),
        families: families.iter().map(|&name| name.to_owned()).collect(),
    };
    serde_json::to_string(&manifest).expect("a manifest has only strings and numbers") + "\n"
}

pub(crate) fn new_object(format: ManifestFormat) -> Object<'static> {
    let binary = if format.is_coff() { BinaryFormat::Coff } else { BinaryFormat::Elf };
    let mut object = Object::new(binary, format.architecture(), Endianness::Little);
    if !format.is_coff() {
        object.flags = FileFlags::Elf { os_abi: elf::ELFOSABI_GNU, abi_version: 0, e_flags: 0 };
        object.add_section(Vec::new(), b".note.GNU-stack".to_vec(), SectionKind::Other);
        // GNU ld names the symbols of a file without this one by the file's path, which may be a random one.
        object.add_file_symbol(b"hotswap-manifest".to_vec());
    }
    // Feature bits: no code here breaks them. A program has the mark only if all its objects do.
    match format {
        ManifestFormat::ElfX86_64 => object.add_elf_gnu_property_u32(
            elf::GNU_PROPERTY_X86_FEATURE_1_AND,
            elf::GNU_PROPERTY_X86_FEATURE_1_IBT | elf::GNU_PROPERTY_X86_FEATURE_1_SHSTK,
        ),
        ManifestFormat::ElfAarch64 => object.add_elf_gnu_property_u32(
            elf::GNU_PROPERTY_AARCH64_FEATURE_1_AND,
            elf::GNU_PROPERTY_AARCH64_FEATURE_1_BTI | elf::GNU_PROPERTY_AARCH64_FEATURE_1_PAC,
        ),
        ManifestFormat::CoffX86_64 => {}
    }
    object
}

/// Adds a section that linkers keep; ELF garbage collection respects the flag, COFF linkers
/// only collect COMDAT sections.
fn add_kept(object: &mut Object<'_>, format: ManifestFormat, name: &str, writable: bool) -> SectionId {
    let id = object.add_section(Vec::new(), name.as_bytes().to_vec(), SectionKind::Data);
    object.section_mut(id).flags = if format.is_coff() {
        let write = if writable { pe::IMAGE_SCN_MEM_WRITE } else { 0 };
        let characteristics = pe::IMAGE_SCN_CNT_INITIALIZED_DATA | pe::IMAGE_SCN_MEM_READ | write;
        SectionFlags::Coff { characteristics }
    } else {
        let write = if writable { elf::SHF_WRITE } else { 0 };
        SectionFlags::Elf { sh_flags: u64::from(elf::SHF_ALLOC | elf::SHF_GNU_RETAIN | write) }
    };
    id
}

fn add_record(object: &mut Object<'_>, format: ManifestFormat, record: &[u8]) {
    let section = add_kept(object, format, format.record_section(), false);
    // Alignment 1: joined records are without gaps.
    object.append_section_data(section, record, 1);
}

fn add_table(object: &mut Object<'_>, format: ManifestFormat, families: &[&str]) -> Result<(), Diagnostic> {
    if families.is_empty() {
        return Ok(());
    }
    let section = add_kept(object, format, format.table_section(), true);
    let size = POINTER * families.len() as u64;
    object.append_section_data(section, &vec![0; size as usize], POINTER);
    object.add_symbol(table_symbol(section, size));
    for (index, name) in families.iter().enumerate() {
        let symbol = object.add_symbol(undefined_registrar(format, name));
        let flags = RelocationFlags::Generic {
            kind: RelocationKind::Absolute,
            encoding: RelocationEncoding::Generic,
            size: 64,
        };
        let relocation = Relocation { offset: POINTER * index as u64, symbol, addend: 0, flags };
        object.add_relocation(section, relocation).map_err(|error| internal_error(&error))?;
    }
    if format.is_coff() {
        add_directives(object, families);
    }
    Ok(())
}

fn add_directives(object: &mut Object<'_>, families: &[&str]) {
    let section = object.add_section(Vec::new(), b".drectve".to_vec(), SectionKind::Linker);
    let text: String = families.iter().map(|name| format!(" /INCLUDE:{}", registrar_symbol(name))).collect();
    object.append_section_data(section, text.as_bytes(), 1);
}

/// Local, so that several manifests can be linked together, and present for readers of the symbol table.
fn table_symbol(section: SectionId, size: u64) -> Symbol {
    Symbol {
        name: b"hotswap_manifest".to_vec(),
        value: 0,
        size,
        kind: SymbolKind::Data,
        scope: SymbolScope::Compilation,
        weak: false,
        section: SymbolSection::Section(section),
        flags: SymbolFlags::None,
    }
}

fn undefined_registrar(format: ManifestFormat, family: &str) -> Symbol {
    let flags = if format.is_coff() {
        SymbolFlags::None
    } else {
        SymbolFlags::Elf { st_info: elf::STB_GLOBAL << 4 | elf::STT_NOTYPE, st_other: elf::STV_HIDDEN }
    };
    Symbol {
        name: registrar_symbol(family).into_bytes(),
        value: 0,
        size: 0,
        kind: SymbolKind::Text,
        scope: SymbolScope::Unknown,
        weak: false,
        section: SymbolSection::Undefined,
        flags,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::read::elf::FileHeader;
    use object::{Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget};

    const FORMATS: [ManifestFormat; 3] =
        [ManifestFormat::ElfX86_64, ManifestFormat::ElfAarch64, ManifestFormat::CoffX86_64];

    fn sample(format: ManifestFormat) -> Vec<u8> {
        super::manifest_object(
            format,
            "0123456789abcdef",
            "hotswap-plan 1\npolicy error\n",
            &["machine_flags", "target_note"],
        )
        .unwrap()
    }

    #[test]
    fn elf_objects_name_themselves() {
        for format in [ManifestFormat::ElfX86_64, ManifestFormat::ElfAarch64] {
            let bytes = sample(format);
            let file = object::File::parse(&*bytes).unwrap();
            let names: Vec<_> =
                file.symbols().filter(|s| s.kind() == SymbolKind::File).map(|s| s.name().unwrap()).collect();
            assert_eq!(names, ["hotswap-manifest"]);
        }
    }

    fn section(bytes: &[u8], name: &str) -> Vec<u8> {
        let file = object::File::parse(bytes).unwrap();
        file.section_by_name(name).unwrap().data().unwrap().to_vec()
    }

    #[test]
    fn the_table_refers_to_each_registrar_by_a_strong_reference() {
        for format in FORMATS {
            let bytes = sample(format);
            let file = object::File::parse(&*bytes).unwrap();
            let table = file.section_by_name(format.table_section()).unwrap();
            assert_eq!((table.size(), table.align()), (16, 8));
            let mut names = Vec::new();
            for (offset, relocation) in table.relocations() {
                assert_eq!((offset, relocation.size()), (8 * names.len() as u64, 64));
                let RelocationTarget::Symbol(index) = relocation.target() else { panic!("{relocation:?}") };
                let symbol = file.symbol_by_index(index).unwrap();
                assert!(symbol.is_undefined() && symbol.is_global() && !symbol.is_weak());
                names.push(symbol.name().unwrap().to_owned());
            }
            assert_eq!(names, ["hotswap_register_machine_flags_patch", "hotswap_register_target_note_patch"]);
            let global = |symbol: &object::Symbol| symbol.is_definition() && symbol.is_global();
            assert!(!file.symbols().any(|symbol| global(&symbol)), "{format:?} defines a global symbol");
        }
    }

    #[test]
    fn elf_sections_are_retained_in_a_file_of_the_gnu_abi_and_references_are_hidden() {
        for format in [ManifestFormat::ElfX86_64, ManifestFormat::ElfAarch64] {
            let bytes = sample(format);
            let header = elf::FileHeader64::<Endianness>::parse(&*bytes).unwrap();
            assert_eq!(header.e_ident.os_abi, elf::ELFOSABI_GNU);
            let file = object::File::parse(&*bytes).unwrap();
            for name in [format.table_section(), format.record_section()] {
                let SectionFlags::Elf { sh_flags } = file.section_by_name(name).unwrap().flags() else { panic!() };
                assert_ne!(sh_flags & u64::from(elf::SHF_GNU_RETAIN), 0, "{name}");
                assert_ne!(sh_flags & u64::from(elf::SHF_ALLOC), 0, "{name}");
            }
            for symbol in file.symbols().filter(|symbol| symbol.is_undefined()) {
                let SymbolFlags::Elf { st_other, .. } = symbol.flags() else { panic!() };
                assert_eq!(st_other, elf::STV_HIDDEN, "{:?}", symbol.name());
            }
        }
    }

    #[test]
    fn coff_has_include_directives() {
        assert_eq!(
            section(&sample(ManifestFormat::CoffX86_64), ".drectve"),
            b" /INCLUDE:hotswap_register_machine_flags_patch /INCLUDE:hotswap_register_target_note_patch"
        );
    }

    #[test]
    fn equal_arguments_give_equal_bytes_and_joined_records_are_read() {
        for format in FORMATS {
            assert_eq!(sample(format), sample(format));
            let line = section(&sample(format), format.record_section());
            let joined = [&line[..], b"\0\0\0", &line, b"\0\0"].concat();
            let manifests = read_manifests(&joined).unwrap();
            assert_eq!(manifests.len(), 2);
            assert_eq!(manifests[0], manifests[1]);
            assert_eq!(manifests[0].families, ["machine_flags", "target_note"]);
            assert_eq!(manifests[0].plan_text, "hotswap-plan 1\npolicy error\n");
            assert_eq!(manifests[0].identity, hotswap_plan::IDENTITY);
        }
    }

    #[test]
    fn damaged_or_later_records_are_told() {
        let line = section(&sample(ManifestFormat::ElfX86_64), "hotswap_manifest_record");
        let error = read_manifests(&[&line[..], b"{\"schema\":1"].concat()).unwrap_err();
        assert_eq!((error.code, error.place.offset), (codes::MALFORMED, Some(line.len() as u64)));
        assert_eq!(read_manifests(b"{\"schema\":2}\n").unwrap_err().code, codes::UNKNOWN_FORMAT);
        assert_eq!(read_manifests(b"{}").unwrap_err().code, codes::UNKNOWN_FORMAT);
        assert_eq!(read_manifests(b"\0\0\n").unwrap(), []);
    }

    #[test]
    fn names_that_are_no_symbols_are_refused_and_no_family_gives_no_table() {
        let error = super::manifest_object(ManifestFormat::ElfX86_64, "0", "", &["a b"]).unwrap_err();
        assert_eq!(error.code, codes::UNKNOWN_FAMILY);
        let bytes = super::manifest_object(ManifestFormat::ElfX86_64, "0", "", &[]).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        assert!(file.section_by_name("hotswap_regtab").is_none());
        assert!(file.section_by_name("hotswap_manifest_record").is_some());
    }

    #[test]
    fn triples_of_clang_choose_the_format() {
        for (triple, format) in [
            ("x86_64-pc-linux-gnu", Some(ManifestFormat::ElfX86_64)),
            ("aarch64-unknown-linux-gnu", Some(ManifestFormat::ElfAarch64)),
            ("x86_64-pc-windows-msvc", Some(ManifestFormat::CoffX86_64)),
            ("aarch64-pc-windows-msvc", None),
            ("riscv64-linux-gnu", None),
            ("", None),
        ] {
            assert_eq!(ManifestFormat::for_triple(triple), format, "{triple}");
        }
    }
}
