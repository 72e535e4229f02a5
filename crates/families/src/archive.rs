//! `libhotswap_registry.a` of the machine that HotSwap was built for, and the C text that it is
//! made of, for every other target.

use crate::c_source;
use crate::patches_def::Line;
use crate::table::FAMILIES;

/// The archive: one object per family, each with the registrar alone; ELF of the build's target.
pub const REGISTRY_ARCHIVE: &[u8] = include_bytes!(env!("HOTSWAP_REGISTRY_ARCHIVE"));

/// `hotswap_registry.h`.
pub const HEADER: &str = include_str!("../include/hotswap_registry.h");

/// `patches.def`, for installation beside the tools.
pub const PATCHES_DEF: &str = include_str!("../patches.def");

/// One C file per family and the header, as file name and text; compile each file alone and
/// put the objects in one archive (`llvm-ar`, `llvm-lib`).
pub fn c_sources() -> Vec<(String, String)> {
    let sources = FAMILIES.iter().map(|family| {
        let line = Line {
            name: family.name.to_owned(),
            scope: family.scope,
            order: family.order,
            summary: family.summary.to_owned(),
        };
        (c_source::file_name(family.name), c_source::registrar(&line))
    });
    sources.chain([("hotswap_registry.h".to_owned(), HEADER.to_owned())]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::read::archive::ArchiveFile;
    use object::{Object, ObjectSymbol};

    #[test]
    fn the_archive_has_one_object_per_family_with_one_strong_symbol_and_needs_nothing() {
        let archive = ArchiveFile::parse(REGISTRY_ARCHIVE).unwrap();
        let members: Vec<_> = archive.members().map(Result::unwrap).collect();
        let names: Vec<_> = members.iter().map(|member| String::from_utf8_lossy(member.name()).into_owned()).collect();
        assert_eq!(names, FAMILIES.iter().map(|family| format!("{}.o", family.name)).collect::<Vec<_>>());
        for (member, family) in members.iter().zip(FAMILIES) {
            assert_eq!(member.date(), Some(0));
            let object = object::File::parse(member.data(REGISTRY_ARCHIVE).unwrap()).unwrap();
            let globals: Vec<_> = object.symbols().filter(|symbol| symbol.is_global() && !symbol.is_weak()).collect();
            let names: Vec<_> = globals.iter().map(|symbol| symbol.name().unwrap()).collect();
            assert_eq!(names, [format!("hotswap_register_{}_patch", family.name)]);
            assert!(!globals[0].is_undefined());
        }
    }

    #[test]
    fn the_c_text_of_each_family_is_one_file() {
        let names: Vec<_> = c_sources().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["machine_flags.c", "target_note.c", "hotswap_registry.h"]);
    }
}
