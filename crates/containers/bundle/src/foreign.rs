//! Files that hold device code in a form that is not parsed: archives, compressed files, databases.
//!
//! They are reported with the steps to extract the code, because "no device code was found" would be wrong of a wheel
//! that is full of it.
//!
//! Absent on purpose: unpacking them.

use hotswap_report::{Diagnostic, codes};

/// A format and its signature.
struct SignatureRow {
    /// Offset and value of its first bytes.
    offset: usize,
    magic: &'static [u8],
    what: &'static str,
    advice: &'static str,
}

const fn format(offset: usize, magic: &'static [u8], what: &'static str, advice: &'static str) -> SignatureRow {
    SignatureRow { offset, magic, what, advice }
}

#[rustfmt::skip]
const FORMATS: &[SignatureRow] = &[
    format(0, b"PK\x03\x04", "it is a zip archive, as Python wheels are", "unpack it first (`unzip`), and name the libraries in it"),
    format(0, b"\x1f\x8b", "it is compressed by gzip (.gz, .tgz)", "decompress it first (`gunzip`, or `tar -xf` for a package)"),
    format(0, b"\xfd7zXZ\0", "it is compressed by xz", "decompress it first (`unxz`, or `tar -xf` for a package)"),
    format(0, b"\x28\xb5\x2f\xfd", "it is compressed by zstd", "decompress it first (`unzstd`, or `tar -xf` for a package)"),
    format(0, b"BZh", "it is compressed by bzip2", "decompress it first (`bunzip2`, or `tar -xf` for a package)"),
    format(257, b"ustar", "it is a tar archive", "unpack it first (`tar -xf`), and name the libraries in it"),
    format(0, b"\xed\xab\xee\xdb", "it is an RPM package", "unpack it first (`rpm2cpio FILE | cpio -id`), and name the libraries in it"),
    format(0, b"SQLite format 3\0", "it is an SQLite database, as MIOpen's kernel caches (.kdb, .ukdb) are",
           "HotSwap does not change them: MIOpen compiles what its cache does not hold; single kernels are rows of `kern_db`, compressed by bzip2"),
];

/// The format of files that [`is_tensile`] recognises.
const TENSILE_FORMAT: SignatureRow = format(
    0,
    b"",
    "it is a MessagePack file of Tensile (.dat), which names kernels and holds no code",
    "its code is in the .co and .hsaco files next to it: name those",
);

/// Strings in the maps that Tensile writes: libraries of rocBLAS and hipBLASLt.
const TENSILE: [&[u8]; 4] = [b"solutions", b"library", b"co_path", b"TensileL"];
/// The strings are near the start, where they are keys.
const NEAR: usize = 64 << 10;

/// Reports the format, if the file is of one of these.
pub(crate) fn report_foreign_format(bytes: &[u8]) -> Option<Diagnostic> {
    let found = FORMATS.iter().find(|format| bytes.get(format.offset..).is_some_and(|at| at.starts_with(format.magic)));
    let found = found.or_else(|| is_tensile(bytes).then_some(&TENSILE_FORMAT))?;
    Some(Diagnostic::error(codes::NOT_FOUND, found.what).advise(found.advice))
}

/// A Debian package is an archive of `ar` with compressed members.
pub(crate) fn debian_package() -> Diagnostic {
    Diagnostic::error(codes::NOT_FOUND, "it is a Debian package")
        .advise("unpack it first (`dpkg-deb -x FILE DIRECTORY`), and name the libraries in it")
}

/// Name of a Debian package's first member.
pub(crate) const DEBIAN: &[u8] = b"debian-binary";

/// A map of MessagePack with one of Tensile's strings.
fn is_tensile(bytes: &[u8]) -> bool {
    let is_map = matches!(bytes.first(), Some(0x81..=0x8f | 0xde | 0xdf));
    let near = &bytes[..bytes.len().min(NEAR)];
    is_map && TENSILE.iter().any(|word| near.windows(word.len()).any(|window| window == *word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_their_first_bytes() {
        let tar = [vec![b'x'; 257], b"ustar\x0000".to_vec(), vec![0; 248]].concat();
        for (bytes, word) in [
            (&b"PK\x03\x04rest"[..], "zip"),
            (b"\x1f\x8b\x08", "gzip"),
            (b"SQLite format 3\0\x10", "SQLite"),
            (&tar, "tar archive"),
            (b"\x82\xa9solutions\x90", "Tensile"),
            (b"\xde\x00\x20\x00\xd9\x30TensileLibrary_gfx1030", "Tensile"),
        ] {
            let what = report_foreign_format(bytes).map(|problem| problem.what).unwrap_or_default();
            assert!(what.contains(word), "{word}: {what}");
        }
        for bytes in [&b"\x7fELF"[..], b"", b"PK", b"\x82\xa3abc", b"solutions", b"MZ"] {
            assert_eq!(report_foreign_format(bytes), None, "{bytes:?}");
        }
    }
}
