//! The files and links of a package in a directory.
//!
//! Invariants: nothing is written outside of the directory, whatever the package names; a package with such a name is
//! refused. Links are made last, so that no file is written through one; those that lead elsewhere are left out.

use crate::{
    MemberChange, PackageChanges, PackageFormat, PackageLink, PackageMember, cannot_write, malformed_package,
    rewrite_format,
};
use hotswap_files::ScratchDirectory;
use hotswap_report::Diagnostic;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

/// Writes the files and links of a package into a directory of this user, whose content is the package's alone.
///
/// # Errors
/// [`hotswap_report::codes::MALFORMED`] for a damaged package and for names that lead out of it.
pub fn unpack_package(file: &Path, format: PackageFormat, directory: &Path) -> Result<(), Diagnostic> {
    // On the file system of the directory, so that a file only gets another name.
    let scratch = ScratchDirectory::new(directory.parent().unwrap_or(directory), "hotswap-package-")?;
    let mut links: Vec<(PathBuf, PathBuf)> = Vec::new();
    let mut hard: Vec<(PathBuf, PathBuf)> = Vec::new();
    let mut change = |member: &PackageMember<'_>| {
        let path = directory.join(path_inside(member.name)?);
        let placed = parent_of(&path).and_then(|()| fs::hard_link(member.content, &path));
        placed.map_err(|error| cannot_write(&error).in_entry(member.name))?;
        Ok(MemberChange::Unchanged)
    };
    let mut changes = PackageChanges {
        change: &mut change,
        link: Some(&mut |one| collect_package_link(one, &mut hard, &mut links)),
        added: &[],
    };
    rewrite_format(file, format, None, &scratch, &mut changes).map_err(|error| error.in_file(file))?;
    for (name, to) in hard {
        let path = directory.join(&name);
        let made = parent_of(&path).and_then(|()| fs::hard_link(directory.join(to), &path));
        made.map_err(|error| cannot_write(&error).in_entry(name.display().to_string()).in_file(file))?;
    }
    for (name, to) in links.iter().filter(|(name, to)| stays_inside(name, to)) {
        // A |one| link(one, &mut hard, &mut links) below another one is none of the package's own directories.
        if is_plain(directory, name) {
            let path = directory.join(name);
            let made = parent_of(&path).and_then(|()| symlink(to, &path));
            made.map_err(|error| cannot_write(&error).in_entry(name.display().to_string()).in_file(file))?;
        }
    }
    Ok(())
}

fn collect_package_link(
    link: &PackageLink<'_>,
    hard: &mut Vec<(PathBuf, PathBuf)>,
    links: &mut Vec<(PathBuf, PathBuf)>,
) -> Result<MemberChange, Diagnostic> {
    if link.is_hard {
        let target = link
            .target()
            .ok_or_else(|| malformed_package("a hard link leads out of the package").in_entry(link.name))?;
        hard.push((path_inside(link.name)?, target));
    } else {
        links.push((path_inside(link.name)?, link.to.to_owned()));
    }
    Ok(MemberChange::Unchanged)
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
    use crate::TarCompression;
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
        (scratch, result)
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
}
