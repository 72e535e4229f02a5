//! The linker's inputs, and code objects that are loaded together.
//!
//! Invariant: members of archives count only if the linked file has one of their functions; which ones the linker took is
//! its decision, and it does not tell.

use hotswap_device_symbols::{FactEvidence, FunctionKind, Resources, SymbolTable, analyse_file};
use object::read::archive::ArchiveFile;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol};
use std::collections::{BTreeSet, HashMap};

/// A relocatable device object.
#[derive(Debug, Clone)]
pub struct LinkInput<'a> {
    /// The file, and the member of an archive.
    pub name: String,
    pub bytes: &'a [u8],
}

/// A linked code object that is loaded together with others.
#[derive(Debug, Clone)]
pub struct BoundObject<'a> {
    /// Its name in messages.
    pub name: String,
    pub bytes: &'a [u8],
    /// The table of its functions.
    pub table: &'a SymbolTable,
}

/// The relocatable device objects in a file, an object or an archive.
#[must_use]
pub fn link_inputs<'a>(name: &str, bytes: &'a [u8]) -> Vec<LinkInput<'a>> {
    if is_device_object(bytes) {
        return vec![LinkInput { name: name.to_owned(), bytes }];
    }
    let Ok(archive) = ArchiveFile::parse(bytes) else { return Vec::new() };
    let members = archive.members().filter_map(|member| {
        let member = member.ok()?;
        let content = member.data(bytes).ok().filter(|content| is_device_object(content))?;
        Some(LinkInput { name: format!("{name}({})", String::from_utf8_lossy(member.name())), bytes: content })
    });
    members.collect()
}

fn is_device_object(bytes: &[u8]) -> bool {
    hotswap_code_object::is_code_object(bytes) && bytes.get(16) == Some(&1)
}

impl LinkInput<'_> {
    /// The names of the functions that other objects can call.
    pub(crate) fn exported_names(&self) -> BTreeSet<String> {
        let Ok(file) = ElfFile64::<LittleEndian>::parse(self.bytes) else { return BTreeSet::new() };
        let functions = file.symbols().filter(|symbol| symbol.is_global() && symbol.is_definition());
        functions.filter_map(|symbol| Some(symbol.name().ok()?.to_owned())).collect()
    }

    /// The names of those that the compiler may look into: of a weak one it takes no registers for granted.
    pub(crate) fn strong_names(&self) -> BTreeSet<String> {
        let Ok(file) = ElfFile64::<LittleEndian>::parse(self.bytes) else { return BTreeSet::new() };
        let functions =
            file.symbols().filter(|symbol| symbol.is_global() && symbol.is_definition() && !symbol.is_weak());
        functions.filter_map(|symbol| Some(symbol.name().ok()?.to_owned())).collect()
    }

    /// The compiler's version, if the object states one.
    pub(crate) fn stated_compiler(&self) -> Option<StatedCompiler> {
        Some(StatedCompiler { object: self.name.clone(), version: self.compiler_version()? })
    }

    /// The first number of the compiler's version, if the object states one.
    pub(crate) fn compiler_version(&self) -> Option<u32> {
        let file = ElfFile64::<LittleEndian>::parse(self.bytes).ok()?;
        let comment = file.section_by_name(".comment")?.data().ok()?;
        let text = String::from_utf8_lossy(comment).into_owned();
        let after = text.split("clang version ").nth(1)?;
        after.split(|one: char| !one.is_ascii_digit()).next()?.parse().ok()
    }
}

/// The compiler that an object names.
pub(crate) struct StatedCompiler {
    /// Name of the object.
    pub(crate) object: String,
    /// The first number of clang's version.
    pub(crate) version: u32,
}

/// The compiler's own numbers of functions, by name. Of several functions of one name none counts.
pub(crate) fn compiler_records(inputs: &[LinkInput<'_>]) -> HashMap<String, Resources> {
    let mut all: HashMap<String, Option<Resources>> = HashMap::new();
    for input in inputs {
        let Ok((table, _)) = analyse_file(input.bytes) else { continue };
        let recorded = table.functions.into_iter().filter(|one| one.own.vgprs.evidence == FactEvidence::CompilerRecord);
        for function in recorded.filter(|one| one.kind != FunctionKind::ImportStub) {
            let seen = all.entry(function.name).or_insert(Some(function.own));
            if *seen != Some(function.own) {
                *seen = None;
            }
        }
    }
    all.into_iter().filter_map(|(name, own)| Some((name, own?))).collect()
}
