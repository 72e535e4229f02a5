//! Libraries in C that crates compile into the programs. Scanners for vulnerabilities know them by names of their own, which a
//! crate's name does not show.
//!
//! Invariant: the version is read from the sources that are compiled.
//!
//! Absent on purpose: crates whose C or assembly code is their own (`blake3`).

use crate::documents::read;
use crate::outcome::{Outcome, fail};
use cargo_metadata::Package;
use serde_json::{Value, json};
use std::path::Path;

/// How a header has the library's version.
enum VersionMacros {
    /// As text.
    Text(&'static str),
    /// As three numbers.
    Parts([&'static str; 3]),
    /// As one number: the major part, and two digits each for the others.
    Digits(&'static str),
}

/// A library in C.
struct CLibrary {
    /// The crate that compiles it.
    from: &'static str,
    name: &'static str,
    /// The beginning of its file's name where it is a library of the system.
    shared: &'static str,
    /// Vendor and product in the dictionary of CPE names.
    cpe: &'static str,
    licence: &'static str,
    /// The header with the version, relative to the crate.
    header: &'static str,
    version: VersionMacros,
}

const C_LIBRARIES: &[CLibrary] = &[
    CLibrary {
        from: "liblzma-sys",
        name: "xz",
        shared: "liblzma.so.",
        cpe: "tukaani:xz",
        licence: "0BSD",
        header: "xz/src/liblzma/api/lzma/version.h",
        version: VersionMacros::Parts(["LZMA_VERSION_MAJOR", "LZMA_VERSION_MINOR", "LZMA_VERSION_PATCH"]),
    },
    CLibrary {
        from: "libmimalloc-sys",
        name: "mimalloc",
        shared: "libmimalloc.so.",
        cpe: "microsoft:mimalloc",
        licence: "MIT",
        header: "c_src/mimalloc/v3/include/mimalloc.h",
        version: VersionMacros::Digits("MI_MALLOC_VERSION"),
    },
    CLibrary {
        from: "libsqlite3-sys",
        name: "sqlite",
        shared: "libsqlite3.so.",
        cpe: "sqlite:sqlite",
        licence: "blessing",
        header: "sqlite3/sqlite3.h",
        version: VersionMacros::Text("SQLITE_VERSION"),
    },
    CLibrary {
        from: "zstd-sys",
        name: "zstd",
        shared: "libzstd.so.",
        cpe: "facebook:zstandard",
        licence: "BSD-3-Clause",
        header: "zstd/lib/zstd.h",
        version: VersionMacros::Parts(["ZSTD_VERSION_MAJOR", "ZSTD_VERSION_MINOR", "ZSTD_VERSION_RELEASE"]),
    },
];

/// The library in C of a crate, for the bill of materials; `None` where the crate has none, and where it is one of the shared
/// libraries that the programs load.
pub(super) fn component(package: &Package, loaded: &[String]) -> Outcome<Option<Value>> {
    let Some(library) = C_LIBRARIES.iter().find(|library| library.from == package.name.as_str()) else {
        return Ok(None);
    };
    if loaded.iter().any(|name| name.starts_with(library.shared)) {
        return Ok(None);
    }
    let directory = package.manifest_path.parent().map(|path| path.as_std_path()).unwrap_or(Path::new("."));
    let header = directory.join(library.header);
    let text = read(&header)?;
    let Some(version) = library.version.value(&text) else {
        return fail(format!("{} does not have the version of {}", header.display(), library.name));
    };
    let purl = format!("pkg:generic/{}@{version}", library.name);
    Ok(Some(json!({
        "type": "library",
        "bom-ref": purl,
        "name": library.name,
        "version": version,
        "purl": purl,
        "cpe": format!("cpe:2.3:a:{}:{version}:*:*:*:*:*:*:*", library.cpe),
        "licenses": [{ "license": { "id": library.licence } }],
    })))
}

impl VersionMacros {
    fn value(&self, header: &str) -> Option<String> {
        match self {
            Self::Text(name) => Some(macro_value(header, name)?.trim_matches('"').to_owned()),
            Self::Parts(names) => {
                let parts: Option<Vec<&str>> = names.iter().map(|name| macro_value(header, name)).collect();
                Some(parts?.join("."))
            }
            Self::Digits(name) => {
                let number: u32 = macro_value(header, name)?.parse().ok()?;
                Some(format!("{}.{}.{}", number / 10_000, number / 100 % 100, number % 100))
            }
        }
    }
}

/// The value of a macro in a header.
fn macro_value<'t>(header: &'t str, name: &str) -> Option<&'t str> {
    header.lines().find_map(|line| {
        let mut words = line.strip_prefix('#')?.split_whitespace();
        (words.next() == Some("define") && words.next() == Some(name)).then(|| words.next())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_in_all_forms() {
        let header = "#define A_VERSION   \"3.54.1\"\n# define B_MAJOR 1\n#define B_MINOR 5\n#define B_PATCH 7\n#define C_V 20302 // c\n";
        for (macros, expected) in [
            (VersionMacros::Text("A_VERSION"), Some("3.54.1")),
            (VersionMacros::Parts(["B_MAJOR", "B_MINOR", "B_PATCH"]), Some("1.5.7")),
            (VersionMacros::Digits("C_V"), Some("2.3.2")),
            (VersionMacros::Text("ABSENT"), None),
        ] {
            assert_eq!(macros.value(header).as_deref(), expected);
        }
    }
}
