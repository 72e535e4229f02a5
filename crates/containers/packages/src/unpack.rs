//! The files and links of a package in a directory.
//!
//! Invariants: nothing is written outside of the directory, whatever the package names; a package with such a name is
//! refused. Links are made last, so that no file is written through one; those that lead elsewhere are left out.

use crate::archive_source::PlainCopy;
use crate::{
    MemberChange, PackageChanges, PackageFormat, PackageLink, PackageMember, cannot_write, malformed_package,
    rewrite_format,
};
use hotswap_files::ScratchDirectory;
use hotswap_report::Diagnostic;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

/// A link of a package that was unpacked, as the package has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpackedLink {
    /// Its path in the package.
    pub name: String,
    /// The same text or path as [`PackageLink::to`].
    pub to: PathBuf,
    pub is_hard: bool,
}

impl UnpackedLink {
    /// The same path as [`PackageLink::target`] gives.
    #[must_use]
    pub fn target(&self) -> Option<PathBuf> {
        PackageLink { name: &self.name, to: &self.to, is_hard: self.is_hard }.target()
    }

    #[must_use]
    pub fn of_package(link: &PackageLink<'_>) -> Self {
        Self { name: link.name.to_owned(), to: link.to.to_owned(), is_hard: link.is_hard }
    }
}

/// Writes the files and links of a package into a directory of this user, whose content is the package's alone. Returns
/// all of its links.
///
/// # Errors
/// [`hotswap_report::codes::MALFORMED`] for a damaged package and for names that lead out of it.
pub fn unpack_package(file: &Path, format: PackageFormat, directory: &Path) -> Result<Vec<UnpackedLink>, Diagnostic> {
    unpack_with_copy(file, format, directory, PlainCopy::Absent)
}

/// As [`unpack_package`], for a package that is changed afterwards: `copy` gets its archive
/// without compression, for [`crate::PackageSource`].
///
/// # Errors
/// Those of [`unpack_package`], and a copy that cannot be written.
pub fn unpack_to_change(
    file: &Path,
    format: PackageFormat,
    directory: &Path,
    copy: &Path,
) -> Result<Vec<UnpackedLink>, Diagnostic> {
    unpack_with_copy(file, format, directory, PlainCopy::Made(copy))
}

fn unpack_with_copy(
    file: &Path,
    format: PackageFormat,
    directory: &Path,
    copy: PlainCopy<'_>,
) -> Result<Vec<UnpackedLink>, Diagnostic> {
    // On the file system of the directory, so that a file only gets another name.
    let scratch = ScratchDirectory::new(directory.parent().unwrap_or(directory), "hotswap-package-")?;
    let mut links = Vec::new();
    let mut changes = PackageChanges {
        change: &mut |member| place_member(member, directory).map(|()| MemberChange::Unchanged),
        link: Some(&mut |link| {
            path_inside(link.name)?;
            links.push(UnpackedLink::of_package(link));
            Ok(MemberChange::Unchanged)
        }),
        added: &[],
    };
    rewrite_format((file, format), copy, None, &scratch, &mut changes).map_err(|error| error.in_file(file))?;
    make_links(directory, &links).map_err(|error| error.in_file(file))?;
    Ok(links)
}

fn place_member(member: &PackageMember<'_>, directory: &Path) -> Result<(), Diagnostic> {
    let path = directory.join(path_inside(member.name)?);
    let placed = parent_of(&path).and_then(|()| fs::hard_link(member.content, &path));
    placed.map_err(|error| cannot_write(&error).in_entry(member.name))
}

/// Makes the hard links first.
fn make_links(directory: &Path, links: &[UnpackedLink]) -> Result<(), Diagnostic> {
    for link in links.iter().filter(|link| link.is_hard) {
        let target = link.target();
        let to =
            target.ok_or_else(|| malformed_package("a hard link leads out of the package").in_entry(&link.name))?;
        let path = directory.join(&link.name);
        let made = parent_of(&path).and_then(|()| fs::hard_link(directory.join(to), &path));
        made.map_err(|error| cannot_write(&error).in_entry(&link.name))?;
    }
    for link in links.iter().filter(|link| !link.is_hard && stays_inside(Path::new(&link.name), &link.to)) {
        // A link below another one is none of the package's own directories.
        if is_plain(directory, Path::new(&link.name)) {
            let path = directory.join(&link.name);
            let made = parent_of(&path).and_then(|()| symlink(&link.to, &path));
            made.map_err(|error| cannot_write(&error).in_entry(&link.name))?;
        }
    }
    Ok(())
}

fn parent_of(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), hotswap_files::create_directories)
}

/// The name as a path below a directory.
fn path_inside(name: &str) -> Result<PathBuf, Diagnostic> {
    let path = Path::new(name);
    if name.is_empty() || !path.components().all(is_normal_component) {
        return Err(malformed_package("a name leads out of the package").in_entry(name));
    }
    Ok(path.to_owned())
}

fn is_normal_component(part: Component<'_>) -> bool {
    matches!(part, Component::Normal(_))
}

/// Whether the link leads to a place below the directory, by its text.
fn stays_inside(name: &Path, to: &Path) -> bool {
    let mut depth = name.components().count().saturating_sub(1);
    to.components().all(|part| match part {
        Component::Normal(_) => {
            depth += 1;
            true
        }
        Component::ParentDir if depth > 0 => {
            depth -= 1;
            true
        }
        Component::CurDir => true,
        Component::ParentDir | Component::RootDir | Component::Prefix(_) => false,
    })
}

/// Whether no directory on the way to the path is a link.
fn is_plain(directory: &Path, name: &Path) -> bool {
    let parents = name.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty());
    !parents.into_iter().any(|path| directory.join(path).is_symlink())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PackageSource, TarCompression, rewrite_package};
    use hotswap_report::codes;
    use tar::{Builder, EntryType, Header};

    /// A tar archive of files (with no target) and links.
    fn archive(path: &Path, entries: &[(&str, Option<&str>)]) {
        let mut builder = Builder::new(fs::File::create(path).unwrap());
        for (name, to) in entries {
            let mut header = Header::new_gnu();
            // The crate refuses such names, so they are written as bytes.
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_mode(0o644);
            if let Some(to) = to {
                header.set_entry_type(EntryType::Symlink);
                header.as_old_mut().linkname[..to.len()].copy_from_slice(to.as_bytes());
            }
            let content = if to.is_some() { &b""[..] } else { b"content" };
            header.set_size(content.len() as u64);
            header.set_cksum();
            builder.append(&header, content).unwrap();
        }
        builder.into_inner().unwrap();
    }

    fn unpacked(entries: &[(&str, Option<&str>)]) -> (tempfile::TempDir, Result<(), Diagnostic>) {
        let scratch = tempfile::tempdir().unwrap();
        let (file, directory) = (scratch.path().join("a.tar"), scratch.path().join("deep/out"));
        fs::create_dir_all(&directory).unwrap();
        archive(&file, entries);
        let result = unpack_package(&file, PackageFormat::Tar(TarCompression::None), &directory);
        (scratch, result.map(drop))
    }

    #[test]
    fn files_and_links_are_as_in_the_package() {
        let entries = [("./lib/a.so.1", None), ("lib/a.so", Some("a.so.1")), ("b", None), ("out", Some("/etc/passwd"))];
        let (scratch, result) = unpacked(&entries);
        result.unwrap();
        let out = scratch.path().join("deep/out");
        assert_eq!(fs::read(out.join("lib/a.so")).unwrap(), b"content");
        assert_eq!(fs::read_link(out.join("lib/a.so")).unwrap(), Path::new("a.so.1"));
        assert_eq!(fs::read(out.join("b")).unwrap(), b"content");
        assert!(!out.join("out").is_symlink());
    }

    #[test]
    fn nothing_is_written_elsewhere() {
        for name in ["../x", "a/../../x", "/tmp/hotswap-x", "."] {
            let (scratch, result) = unpacked(&[(name, None)]);
            assert_eq!(result.unwrap_err().code, codes::MALFORMED, "{name}");
            assert!(!scratch.path().join("deep/x").exists());
        }
        // Files are written before links, and links below links are left out.
        let (scratch, result) = unpacked(&[("a", Some("..")), ("a/x", None)]);
        assert!(result.is_ok() && !scratch.path().join("deep/x").exists());
        let (scratch, result) = unpacked(&[("d/e/f", None), ("a", Some("d/e")), ("a/up", Some("../../../deep"))]);
        assert!(result.is_ok() && !scratch.path().join("deep/out/d/e/up").exists());
        let (_scratch, result) = unpacked(&[("a", None), ("a", None)]);
        assert_eq!(result.unwrap_err().code, codes::CANNOT_WRITE);
    }

    /// A compressed archive that was unpacked to be changed is not decompressed again: its bytes may be gone then.
    #[test]
    fn an_archive_is_decompressed_once() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        archive(&at("plain.tar"), &[("lib/a.so.1", None), ("lib/a.so", Some("a.so.1")), ("b", None)]);
        let packed = |level| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            std::io::Write::write_all(&mut encoder, &fs::read(at("plain.tar")).unwrap()).unwrap();
            encoder.finish().unwrap()
        };
        fs::write(at("a.tar.gz"), packed(flate2::Compression::fast())).unwrap();
        fs::create_dir(at("in")).unwrap();
        let (file, format) = (at("a.tar.gz"), PackageFormat::Tar(TarCompression::Gzip));
        let links = unpack_to_change(&file, format, &at("in"), &at("copy")).unwrap();
        assert_eq!(links, [UnpackedLink { name: "lib/a.so".into(), to: "a.so.1".into(), is_hard: false }]);
        fs::write(&file, b"not an archive").unwrap();
        let mut change = |member: &PackageMember<'_>| {
            Ok(if member.name == "b" { MemberChange::Removed } else { MemberChange::Unchanged })
        };
        let changes = PackageChanges { change: &mut change, link: None, added: &[] };
        let source = PackageSource { file: &file, format, copy: Some(&at("copy")) };
        rewrite_package(source, &at("new.tar.gz"), changes, &|_| Ok(())).unwrap();
        fs::create_dir(at("out")).unwrap();
        assert_eq!(unpack_package(&at("new.tar.gz"), format, &at("out")).unwrap(), links);
        assert_eq!(fs::read(at("out/lib/a.so")).unwrap(), b"content");
        assert!(!at("out/b").exists());
    }
}
