//! `libhotswap_registry.a` for the machine that HotSwap was built for, and its C source for every other target.

use crate::c_source;
use crate::manifest::ManifestFormat;
use crate::patches_def::DefLine;
use crate::table::FAMILIES;

/// The archive: one object per family, each with the registrar alone. Its objects are of
/// [`built_for`]'s format; a link for another target needs an archive made from [`c_sources`].
pub const REGISTRY_ARCHIVE: &[u8] = include_bytes!(env!("HOTSWAP_REGISTRY_ARCHIVE"));

/// The manifest format whose links [`REGISTRY_ARCHIVE`] fits: that of this build's target.
pub const fn built_for() -> Option<ManifestFormat> {
    if cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        Some(ManifestFormat::ElfX86_64)
    } else if cfg!(all(target_arch = "aarch64", target_os = "linux")) {
        Some(ManifestFormat::ElfAarch64)
    } else if cfg!(all(target_arch = "x86_64", target_os = "windows")) {
        Some(ManifestFormat::CoffX86_64)
    } else {
        None
    }
}

/// The text of `hotswap_registry.h`, for C sources of families.
pub const HEADER: &str = hotswap_family_abi::HEADER;

/// `patches.def`, for installation next to the tools.
pub const PATCHES_DEF: &str = include_str!("../patches.def");

/// One C file per family and the header, as file name and text. Compile each file alone
/// (`clang --target=… -ffreestanding -fPIC -c`) and put the objects in one archive (`llvm-ar`,
/// `llvm-lib`); a file needs no header but this one and the compiler's own `stdint.h`.
pub fn c_sources() -> Vec<(String, String)> {
    let sources = FAMILIES.iter().map(|family| {
        let line = DefLine {
            name: family.name.to_owned(),
            scope: family.scope,
            order: family.order,
            summary: family.summary.to_owned(),
        };
        (c_source::file_name(family.name), c_source::registrar_source(&line))
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
            assert_eq!(Some(object.architecture()), built_for().map(ManifestFormat::architecture));
        }
    }

    #[test]
    fn the_archive_names_no_directory_of_the_build() {
        let directory = env!("CARGO_MANIFEST_DIR").as_bytes();
        assert!(!REGISTRY_ARCHIVE.windows(directory.len()).any(|window| window == directory));
        assert!(!REGISTRY_ARCHIVE.windows(12).any(|window| window == b".debug_info\0"));
    }

    #[test]
    fn the_c_text_of_each_family_is_one_file() {
        let names: Vec<_> = c_sources().into_iter().map(|(name, _)| name).collect();
        let files: Vec<_> = FAMILIES.iter().map(|family| format!("{}.c", family.name)).collect();
        assert_eq!(names, [&files[..], &["hotswap_registry.h".to_owned()]].concat());
    }
}
