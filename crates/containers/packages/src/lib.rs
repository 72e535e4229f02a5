//! Packages whose files hold device code: Python wheels, tar archives (plain, `.gz`, `.bz2`, `.xz`, `.zst`; Arch's packages), Debian
//! and conda packages.
//!
//! [`visit`] shows the files of a package one by one, [`rewrite`] writes a package with changed files and further ones,
//! [`unpack()`] writes the files into a directory. A file is in a scratch directory meanwhile, so that a command changes it
//! as any other.
//!
//! [`rewrite_directory`] does with a directory what [`rewrite`] does with a package.
//!
//! | format | what is kept true |
//! | --- | --- |
//! | wheel | hashes and sizes in `RECORD`, the build tag in `WHEEL`; files that do not change are copied as they are stored |
//! | tar | headers of files that do not change, and extension headers |
//! | Arch's package | sizes and hashes in `.MTREE`, the size in `.PKGINFO` |
//! | conda package | sizes and hashes in `info/paths.json`, names in `info/files` |
//! | Debian package | `md5sums`, `Installed-Size`; every member but `control.tar` and `data.tar` |
//!
//! Invariants: a package whose own hashes are not those of its files is refused, and nothing is written. The order of
//! files, their times and permissions stay, so the same input gives the same bytes. A signed package is refused: its
//! signature would be wrong.
//!
//! Absent on purpose: the names and versions of packages, which are their publishers'; RPM packages.

mod archive_source;
mod conda;
mod debian;
mod directory;
mod hash;
mod mtree;
mod record;
mod stopped_writer;
mod tarball;
mod unpack;
mod wheel;
mod xz_blocks;

pub use directory::{rewrite_directory, visit_directory};
pub use unpack::{UnpackedLink, unpack_package, unpack_to_change};

use archive_source::{ArchiveSource, PlainCopy};
use hotswap_files::ScratchDirectory;
use hotswap_report::{Diagnostic, codes};
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Component, Path, PathBuf};

/// A form of packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageFormat {
    /// A zip archive with `RECORD`.
    Wheel,
    Tar(TarCompression),
    Debian,
    /// A conda package of version 2: a zip archive of two tar archives.
    Conda,
}

/// The compression of a tar archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TarCompression {
    None,
    /// gzip, as in `.tar.gz`.
    Gzip,
    /// bzip2, as in `.tar.bz2`.
    Bzip2,
    /// xz, as in `.tar.xz`.
    Xz,
    /// zstd, as in `.tar.zst`.
    Zstd,
}

/// A file of a package.
#[derive(Debug)]
pub struct PackageMember<'m> {
    /// Its path in the package.
    pub name: &'m str,
    /// Where its content is for now.
    pub content: &'m Path,
}

/// A file or link that a package does not have yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedMember {
    /// Its path in the package.
    pub name: String,
    pub content: AddedContent,
}

/// The content of a new member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddedContent {
    /// A file with the content of this one.
    File(PathBuf),
    /// A symbolic link with this text.
    Link(PathBuf),
}

impl AddedMember {
    /// The file with its content, for packages that cannot get further links.
    ///
    /// # Errors
    /// [`codes::NO_PLACE`] for a link.
    fn file(&self) -> Result<&Path, Diagnostic> {
        match &self.content {
            AddedContent::File(file) => Ok(file),
            AddedContent::Link(_) => {
                let what = "it is a link, and a package of this form cannot get further links";
                let error = Diagnostic::error(codes::NO_PLACE, what).in_entry(&self.name);
                Err(error.advise("unpack the packages, and give the command their directories"))
            }
        }
    }
}

/// The change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberChange {
    Unchanged,
    /// The new content is that of this file.
    Replaced(PathBuf),
    /// It is left out.
    Removed,
}

/// Decides about the files of a package.
pub type ChangeMember<'c> = dyn FnMut(&PackageMember<'_>) -> Result<MemberChange, Diagnostic> + 'c;

/// A link of a package. Wheels lack links.
#[derive(Debug)]
pub struct PackageLink<'l> {
    /// Its path in the package.
    pub name: &'l str,
    /// The text of a symbolic link; the path in the package of the file that a hard link is a name of.
    pub to: &'l Path,
    /// Whether it is a hard link.
    pub is_hard: bool,
}

/// Decides about the links of a package: one that is replaced becomes a file.
pub type ChangeLink<'c> = dyn FnMut(&PackageLink<'_>) -> Result<MemberChange, Diagnostic> + 'c;

/// The changes of a package.
pub struct PackageChanges<'c, 'm> {
    /// Decides about the files.
    pub change: &'c mut ChangeMember<'m>,
    /// Decides about the links; without it all stay.
    pub link: Option<&'c mut ChangeLink<'m>>,
    /// Files that the package does not have yet.
    pub added: &'c [AddedMember],
}

impl PackageLink<'_> {
    /// The path in the package that it leads to; none where it leads out of the package.
    #[must_use]
    pub fn target(&self) -> Option<PathBuf> {
        let start = if self.is_hard { Path::new("") } else { Path::new(self.name).parent()? };
        let mut path = start.to_owned();
        for part in self.to.components() {
            match part {
                Component::Normal(name) => path.push(name),
                Component::CurDir => {}
                Component::ParentDir => {
                    if !path.pop() {
                        return None;
                    }
                }
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(path)
    }
}

/// The first bytes that decide.
const START: usize = 512;
/// Where a tar archive has its magic.
const USTAR: usize = 257;

/// The format of a package; `None` for other files.
///
/// # Errors
/// [`codes::CANNOT_READ`] for a file that cannot be opened or read.
pub fn format_of(file: &Path) -> Result<Option<PackageFormat>, Diagnostic> {
    if file.as_os_str() == "-" {
        return Ok(None);
    }
    let mut start = Vec::new();
    let opened = File::open(file).map_err(|one| format_read_error(one, file))?;
    if opened.metadata().map_err(|one| format_read_error(one, file))?.is_dir() {
        return Ok(None);
    }
    opened.take(START as u64).read_to_end(&mut start).map_err(|one| format_read_error(one, file))?;
    Ok(match &start[..] {
        [b'P', b'K', 3, 4, ..] => Some(zip_format(file)?),
        [0x1f, 0x8b, ..] => tar_package_format(TarCompression::Gzip),
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] => {
            tar_package_format(TarCompression::Bzip2)
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => tar_package_format(TarCompression::Xz),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => tar_package_format(TarCompression::Zstd),
        _ if start.starts_with(b"!<arch>\ndebian-binary") => Some(PackageFormat::Debian),
        _ if start.get(USTAR..).is_some_and(|at| at.starts_with(b"ustar")) => tar_package_format(TarCompression::None),
        start if is_v7_header(start) => tar_package_format(TarCompression::None),
        _ => None,
    })
}

fn format_read_error(error: io::Error, file: &Path) -> Diagnostic {
    cannot_read(&error).in_file(file)
}

fn tar_package_format(compression: TarCompression) -> Option<PackageFormat> {
    Some(PackageFormat::Tar(compression))
}

/// Conda's packages and wheels are zip archives.
fn zip_format(file: &Path) -> Result<PackageFormat, Diagnostic> {
    let opened = File::open(file).map_err(|error| cannot_read(&error).in_file(file))?;
    Ok(if conda::is_conda(&opened).map_err(|error| error.in_file(file))? {
        PackageFormat::Conda
    } else {
        PackageFormat::Wheel
    })
}

/// Whether a block is a tar header of version 7, which lacks a magic: its checksum is right, and it names a file.
fn is_v7_header(block: &[u8]) -> bool {
    const CHECKSUM: std::ops::Range<usize> = 148..156;
    let Some(field) = block.get(CHECKSUM).filter(|_| block.len() == START && block[0] != 0) else { return false };
    let digits = field.split(|byte| matches!(byte, 0 | b' ')).find(|part| !part.is_empty()).unwrap_or_default();
    let stated = std::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 8).ok());
    stated == Some((0..START).map(|at: usize| u32::from(if CHECKSUM.contains(&at) { b' ' } else { block[at] })).sum())
}

/// Shows every file of a package.
///
/// # Errors
/// [`codes::MALFORMED`] for a damaged package, and the errors of `see`.
pub fn visit_package(
    file: &Path,
    format: PackageFormat,
    see: &mut dyn FnMut(&PackageMember<'_>) -> Result<(), Diagnostic>,
) -> Result<(), Diagnostic> {
    visit_source(PackageSource { file, format, copy: None }, see)
}

/// As [`visit_package`], with the copy of its archive where there is one.
///
/// # Errors
/// As for [`visit_package`]; the copy must be readable, too.
pub fn visit_source(
    source: PackageSource<'_>,
    see: &mut dyn FnMut(&PackageMember<'_>) -> Result<(), Diagnostic>,
) -> Result<(), Diagnostic> {
    let PackageSource { file, format, copy } = source;
    let scratch = ScratchDirectory::temporary("hotswap-package-")?;
    let mut changes =
        PackageChanges { change: &mut |member| see(member).map(|()| MemberChange::Unchanged), link: None, added: &[] };
    let copy = copy.map_or(PlainCopy::Absent, PlainCopy::Kept);
    rewrite_format((file, format), copy, None, &scratch, &mut changes).map_err(|error| error.in_file(file))
}

/// A package to change.
#[derive(Debug, Clone, Copy)]
pub struct PackageSource<'p> {
    pub file: &'p Path,
    pub format: PackageFormat,
    /// The copy of its archive that [`unpack_to_change`] has left, so that the archive is decompressed once.
    pub copy: Option<&'p Path>,
}

/// Writes a package with its changes to `output`. The output is replaced in one step after `check`, which gets a path of the new
/// package; returns its size.
///
/// # Errors
/// [`codes::MALFORMED`] for a damaged package, [`codes::NO_PLACE`] for a signed one and for a hard link whose file is left out,
/// and the errors of the changes.
pub fn rewrite_package(
    source: PackageSource<'_>,
    output: &Path,
    mut changes: PackageChanges<'_, '_>,
    check: &dyn Fn(&Path) -> Result<(), Diagnostic>,
) -> Result<u64, Diagnostic> {
    let scratch = ScratchDirectory::temporary("hotswap-package-")?;
    let mut size = 0;
    let PackageSource { file, format, copy } = source;
    let copy = copy.map_or(PlainCopy::Absent, PlainCopy::Kept);
    hotswap_files::replace_written(output, file, |new| {
        rewrite_format((file, format), copy, Some(NewPackage { file: new, path: output }), &scratch, &mut changes)
            .map_err(|error| error.in_file(file))?;
        // The new file does not have a name of its own yet.
        check(Path::new(&format!("/proc/self/fd/{}", new.as_raw_fd())))
            .map_err(|error| hotswap_files::no_proc().unwrap_or(error))?;
        size = new.metadata().map_err(|error| cannot_read(&error))?.len();
        Ok(())
    })?;
    Ok(size)
}

/// The package that is written.
struct NewPackage<'n> {
    file: &'n mut File,
    /// The path of the output, whose name may have the build number of a wheel.
    path: &'n Path,
}

fn rewrite_format(
    (file, format): (&Path, PackageFormat),
    copy: PlainCopy<'_>,
    new: Option<NewPackage<'_>>,
    scratch: &ScratchDirectory,
    changes: &mut PackageChanges<'_, '_>,
) -> Result<(), Diagnostic> {
    let input = File::open(file).map_err(|error| cannot_read(&error))?;
    match format {
        PackageFormat::Wheel => wheel::rewrite_wheel(input, new, scratch.path(), changes),
        PackageFormat::Tar(compression) => {
            let source = ArchiveSource { input: &input, compression, copy };
            tarball::rewrite_tarball(&source, new, scratch.path(), changes)
        }
        PackageFormat::Debian => debian::rewrite_debian(input, copy, new, scratch.path(), changes),
        PackageFormat::Conda => conda::run(input, new, scratch.path(), changes),
    }
}

/// Writes a file of a package. A former one of that path may have another name by now, and keeps its content.
fn write_member(content: &mut dyn Read, path: &Path) -> Result<(), Diagnostic> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot_write(&error).in_file(path)),
        _ => {}
    }
    let mut file = File::create(path).map_err(|error| cannot_write(&error).in_file(path))?;
    let mut block = vec![0; BLOCK];
    loop {
        match content.read(&mut block) {
            Ok(0) => return Ok(()),
            // The disk of temporary files, and not the package.
            Ok(size) => file.write_all(&block[..size]).map_err(|error| cannot_write(&error).in_file(path))?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(damaged_package(&error)),
        }
    }
}

/// Bytes that are copied at a time.
const BLOCK: usize = 1 << 16;

fn cannot_read(error: &io::Error) -> Diagnostic {
    Diagnostic::error(codes::CANNOT_READ, error.to_string())
}

fn cannot_write(error: &io::Error) -> Diagnostic {
    Diagnostic::error(codes::CANNOT_WRITE, error.to_string())
}

/// A fault of the package's content.
fn malformed_package(what: &str) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, format!("the package: {what}")).advise("get the package again")
}

/// An error of a reader: that of the system or of a limit where one is among its causes, or else a damaged package.
fn damaged_package(error: &(dyn Error + 'static)) -> Diagnostic {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(diagnostic) = error.downcast_ref::<Diagnostic>() {
            return diagnostic.clone();
        }
        cause = error.source();
        let Some(error) = error.downcast_ref::<io::Error>() else { continue };
        if error.raw_os_error().is_some() {
            return cannot_read(error);
        }
        // An error that another one wraps is not among its sources.
        cause = error.get_ref().map(|inner| inner as &(dyn Error + 'static)).or(cause);
    }
    malformed_package(&error.to_string())
}

fn wrong_hash(name: &str, list: &str) -> Diagnostic {
    let what = format!("the content of the file is not that of its hash in {list}");
    Diagnostic::error(codes::MALFORMED, what).in_entry(name).advise("get the package again")
}

fn signed_package(name: &str) -> Diagnostic {
    Diagnostic::error(codes::NO_PLACE, "the package is signed, and the signature of a changed one would be wrong")
        .in_entry(name)
        .advise("unpack it, and change its files")
}
