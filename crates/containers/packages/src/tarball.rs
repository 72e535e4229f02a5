//! Tar archives. Entries are read raw: those that name the next one (GNU's `L` and `K`, pax's `x`) are copied as they are,
//! with the one that they belong to.

use crate::archive_source::ArchiveSource;
use crate::mtree::{self, ListChanges};
use crate::xz_blocks::XzBlockWriter;
use crate::{
    AddedContent, MemberChange, NewPackage, PackageChanges, PackageLink, PackageMember, TarCompression, cannot_read,
    cannot_write, damaged_package, write_member,
};
use hotswap_report::{Diagnostic, codes};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tar::{Archive, Builder, Entry, EntryType, Header};

/// Levels of the usual tools.
const GZIP: u32 = 9;
const ZSTD: i32 = 19;
/// Longer extension entries are not names.
const NAME: u64 = 1 << 20;

pub(crate) fn rewrite_tarball(
    source: &ArchiveSource<'_>,
    new: Option<NewPackage<'_>>,
    scratch: &Path,
    changes: &mut PackageChanges<'_, '_>,
) -> Result<(), Diagnostic> {
    let Some(NewPackage { file, .. }) = new else { return rewrite_archive(source, None, scratch, changes) };
    if !has_list(source)? {
        return rewrite_archive(source, Some(file), scratch, changes);
    }
    let first = mtree::first_pass(scratch);
    let mut plain = File::create(&first).map_err(|error| cannot_write(&error))?;
    let listed = copy_noting(source.content()?, &mut plain, scratch, changes)?;
    let mut changes = PackageChanges {
        change: &mut |member| match listed.is_empty() {
            true => Ok(MemberChange::Unchanged),
            false => listed.change_list(member, scratch),
        },
        link: None,
        added: &[],
    };
    let plain = File::open(&first).map_err(|error| cannot_write(&error))?;
    let plain = ArchiveSource::new(&plain, TarCompression::None);
    pack_archive(plain.content()?, source.compression, file, scratch, &mut changes)
}

/// Whether the package has a list of its files, which is one of its first members.
fn has_list(source: &ArchiveSource<'_>) -> Result<bool, Diagnostic> {
    const FIRST: usize = 8;
    let mut archive = Archive::new(source.content()?);
    let entries = archive.entries().map_err(|error| damaged_package(&error))?.take(FIRST);
    let found = entries.flatten().any(|entry| entry.path().is_ok_and(|path| is_mtree_list(&path)));
    let mut start = source.input;
    start.rewind().map_err(|error| cannot_read(&error))?;
    Ok(found)
}

fn is_mtree_list(path: &Path) -> bool {
    path.to_str().map(plain_name) == Some(mtree::LIST)
}

/// Writes the archive with its changes, and returns what lists of its files must have.
fn copy_noting(
    content: Box<dyn Read + '_>,
    output: &mut File,
    scratch: &Path,
    changes: &mut PackageChanges<'_, '_>,
) -> Result<ListChanges, Diagnostic> {
    let noted = RefCell::new(ListChanges::default());
    noted.borrow_mut().note_added(changes.added)?;
    let inner = &mut *changes.change;
    let mut inner_link = changes.link.take();
    let mut noting = PackageChanges {
        change: &mut |member| {
            let change = inner(member)?;
            noted.borrow_mut().note_change(member, &change)?;
            Ok(change)
        },
        link: Some(&mut |link| {
            let change = inner_link.as_mut().map_or(Ok(MemberChange::Unchanged), |inner| inner(link))?;
            noted.borrow_mut().note_link(link.name, &change)?;
            Ok(change)
        }),
        added: changes.added,
    };
    copy_archive(content, output, scratch, &mut noting)?;
    Ok(noted.into_inner())
}

/// Reads an archive, and writes it with its changes, in the same compression.
pub(crate) fn rewrite_archive(
    source: &ArchiveSource<'_>,
    output: Option<&mut dyn Write>,
    scratch: &Path,
    changes: &mut PackageChanges<'_, '_>,
) -> Result<(), Diagnostic> {
    let content = source.content()?;
    match output {
        None => copy_archive(content, &mut io::sink(), scratch, changes),
        Some(output) => pack_archive(content, source.compression, output, scratch, changes),
    }
}

/// Writes an archive with its changes.
fn pack_archive(
    content: Box<dyn Read + '_>,
    compression: TarCompression,
    output: &mut dyn Write,
    scratch: &Path,
    changes: &mut PackageChanges<'_, '_>,
) -> Result<(), Diagnostic> {
    match compression {
        TarCompression::None => copy_archive(content, output, scratch, changes),
        TarCompression::Gzip => {
            // Neither a name nor a time is in the header, so that it is the same each time.
            let mut packed = flate2::GzBuilder::new().write(output, flate2::Compression::new(GZIP));
            copy_archive(content, &mut packed, scratch, changes)?;
            packed.finish().map(drop).map_err(archive_write_error)
        }
        TarCompression::Bzip2 => {
            let mut packed = bzip2::write::BzEncoder::new(output, bzip2::Compression::best());
            copy_archive(content, &mut packed, scratch, changes)?;
            packed.finish().map(drop).map_err(archive_write_error)
        }
        TarCompression::Xz => {
            let mut packed = XzBlockWriter::new(output).map_err(archive_write_error)?;
            copy_archive(content, &mut packed, scratch, changes)?;
            packed.finish().map(drop).map_err(archive_write_error)
        }
        TarCompression::Zstd => {
            let mut packed = zstd::stream::write::Encoder::new(output, ZSTD).map_err(archive_write_error)?;
            copy_archive(content, &mut packed, scratch, changes)?;
            packed.finish().map(drop).map_err(archive_write_error)
        }
    }
}

fn archive_write_error(error: io::Error) -> Diagnostic {
    cannot_write(&error)
}

fn copy_archive(
    content: Box<dyn Read + '_>,
    output: &mut dyn Write,
    scratch: &Path,
    changes: &mut PackageChanges<'_, '_>,
) -> Result<(), Diagnostic> {
    let mut archive = Archive::new(content);
    let mut copy = TarCopy {
        builder: Builder::new(output),
        pending: Vec::new(),
        name: None,
        link: None,
        like: None,
        directories: BTreeSet::new(),
        removed: BTreeSet::new(),
        scratch,
        changes,
    };
    let mut count = 0;
    for entry in archive.entries().map_err(|error| damaged_package(&error))?.raw(true) {
        let entry = entry.map_err(|error| first_error(&error, count))?;
        copy.copy_entry(entry)?;
        count += 1;
    }
    if count == 0 {
        return Err(no_archive(&"it is empty"));
    }
    copy.append_added()?;
    copy.builder.into_inner().map(drop).map_err(|error| cannot_write(&error))
}

fn plain_name(name: &str) -> &str {
    name.trim_start_matches("./")
}

/// The header of a further entry, with the time and owner of another one.
fn new_header(like: &Header, kind: EntryType, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(0);
    header.set_mtime(like.mtime().unwrap_or_default());
    header.set_uid(like.uid().unwrap_or_default());
    header.set_gid(like.gid().unwrap_or_default());
    header
}

/// The content of such a member is not what its file would have.
fn sparse_member(name: &str) -> Diagnostic {
    let what = "it is a sparse member, whose holes HotSwap does not read";
    Diagnostic::error(codes::UNKNOWN_FORMAT, what).in_entry(name).advise("pack it again without `tar --sparse`")
}

/// The first entry shows whether what is compressed is an archive at all.
fn first_error(error: &io::Error, count: usize) -> Diagnostic {
    let error_of_package = damaged_package(error);
    let is_content = count == 0 && error_of_package.code == codes::MALFORMED;
    if is_content { no_archive(error) } else { error_of_package }
}

fn no_archive(error: &dyn std::fmt::Display) -> Diagnostic {
    let what = format!("what is compressed is no tar archive ({error})");
    Diagnostic::error(codes::NOT_FOUND, what).advise("decompress it first, and name the file in it")
}

/// An entry with a name or with other properties of the next one.
struct ExtensionEntry {
    header: Header,
    data: Vec<u8>,
}

/// The file of the archive that added ones are like.
struct FileModel {
    name: String,
    header: Header,
}

struct TarCopy<'t, 'c, 'm> {
    builder: Builder<&'t mut dyn Write>,
    /// Extension entries of the next one.
    pending: Vec<ExtensionEntry>,
    /// The name that they give it.
    name: Option<String>,
    /// The target that they give it, where it is a link.
    link: Option<PathBuf>,
    /// The first file, for those that are added.
    like: Option<FileModel>,
    /// The directories that the archive has, without `./` and the last `/`.
    directories: BTreeSet<String>,
    /// The files that were left out.
    removed: BTreeSet<PathBuf>,
    scratch: &'t Path,
    changes: &'t mut PackageChanges<'c, 'm>,
}

impl TarCopy<'_, '_, '_> {
    fn copy_entry(&mut self, mut entry: Entry<'_, Box<dyn Read + '_>>) -> Result<(), Diagnostic> {
        let kind = entry.header().entry_type();
        if kind.is_gnu_longname() || kind.is_gnu_longlink() || kind.is_pax_local_extensions() {
            return self.copy_extension(&mut entry, kind);
        }
        let name = match self.name.take() {
            Some(name) => name,
            None => String::from_utf8_lossy(&entry.path_bytes()).into_owned(),
        };
        let header = entry.header().clone();
        let link = self.link.take();
        if !kind.is_file() {
            if kind.is_dir() {
                self.directories.insert(plain_name(&name).trim_end_matches('/').to_owned());
            }
            if kind == EntryType::GNUSparse {
                return Err(sparse_member(&name));
            }
            if kind.is_symlink() || kind.is_hard_link() {
                let to = match link {
                    Some(to) => to,
                    None => entry.link_name_bytes().map_or_else(PathBuf::new, |to| OsStr::from_bytes(&to).into()),
                };
                let change = self.change_link(plain_name(&name), &to, kind.is_hard_link())?;
                match change {
                    MemberChange::Unchanged => {}
                    MemberChange::Removed => {
                        self.pending.clear();
                        return Ok(());
                    }
                    MemberChange::Replaced(content) => return self.file_for_link(&header, &content, &name),
                }
            }
            self.flush_pending()?;
            return self.builder.append(&header, entry).map_err(|error| cannot_write(&error).in_entry(name));
        }
        let content = self.scratch.join("member");
        write_member(&mut entry, &content).map_err(|error| error.in_entry(&name))?;
        self.like.get_or_insert_with(|| FileModel { name: name.clone(), header: header.clone() });
        match (self.changes.change)(&PackageMember { name: plain_name(&name), content: &content })? {
            MemberChange::Unchanged => self.append_file(header, &content, &name),
            MemberChange::Replaced(content) => self.append_file(header, &content, &name),
            MemberChange::Removed => {
                self.removed.insert(PathBuf::from(plain_name(&name)));
                self.pending.clear();
                Ok(())
            }
        }
    }

    /// A hard link cannot stay without the file that it is a name of.
    fn change_link(&mut self, name: &str, to: &Path, is_hard: bool) -> Result<MemberChange, Diagnostic> {
        let link = PackageLink { name, to, is_hard };
        let change = self.changes.link.as_mut().map_or(Ok(MemberChange::Unchanged), |change| change(&link))?;
        let file = link.target().filter(|_| is_hard && change == MemberChange::Unchanged);
        match file.filter(|file| self.removed.contains(file)) {
            None => Ok(change),
            Some(file) => {
                let what = format!("it is a hard link to {}, which is left out", file.display());
                let error = Diagnostic::error(codes::NO_PLACE, what).in_entry(name);
                Err(error.advise("keep the GPU of that file, or drop that of the link, too"))
            }
        }
    }

    /// A file in the place of a link. Its name may be in extension entries, those of the link's target are not needed any more.
    fn file_for_link(&mut self, like: &Header, content: &Path, name: &str) -> Result<(), Diagnostic> {
        self.pending.clear();
        let file = File::open(content).map_err(|one| link_write_error(one, name))?;
        let mut header = new_header(like, EntryType::Regular, 0o644);
        header.set_size(file.metadata().map_err(|one| link_write_error(one, name))?.len());
        self.builder.append_data(&mut header, name, file).map_err(|one| link_write_error(one, name))
    }

    fn copy_extension(&mut self, entry: &mut Entry<'_, Box<dyn Read + '_>>, kind: EntryType) -> Result<(), Diagnostic> {
        let header = entry.header().clone();
        let mut data = Vec::new();
        entry.take(NAME).read_to_end(&mut data).map_err(|error| damaged_package(&error))?;
        if kind.is_gnu_longname() {
            self.name = Some(String::from_utf8_lossy(extension_text_bytes(&data)).into());
        } else if kind.is_gnu_longlink() {
            self.link = Some(PathBuf::from(OsStr::from_bytes(extension_text_bytes(&data))));
        } else if kind.is_pax_local_extensions() {
            for row in tar::PaxExtensions::new(&data) {
                let row = row.map_err(|error| damaged_package(&error))?;
                match row.key() {
                    Ok("path") => self.name = Some(String::from_utf8_lossy(row.value_bytes()).into_owned()),
                    Ok("linkpath") => self.link = Some(PathBuf::from(OsStr::from_bytes(row.value_bytes()))),
                    Ok(key) if key.starts_with("GNU.sparse.") => {
                        return Err(sparse_member(self.name.as_deref().unwrap_or("?")));
                    }
                    Ok("size") => {
                        let what = "a tar archive with sizes in extension headers";
                        return Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what));
                    }
                    _ => {}
                }
            }
        }
        self.pending.push(ExtensionEntry { header, data });
        Ok(())
    }

    /// Appends the files that the archive did not have, with the time and owner of its first file, and their directories.
    fn append_added(&mut self) -> Result<(), Diagnostic> {
        let Some(FileModel { name: first, header }) = self.like.take() else { return Ok(()) };
        let start = if first.starts_with("./") { "./" } else { "" };
        for added in self.changes.added {
            let parents: Vec<&Path> = Path::new(&added.name).ancestors().skip(1).collect();
            for parent in parents.iter().rev().filter_map(|path| path.to_str()).filter(|path| !path.is_empty()) {
                if self.directories.insert(parent.to_owned()) {
                    let mut header = new_header(&header, EntryType::Directory, 0o755);
                    let appended = self.builder.append_data(&mut header, format!("{start}{parent}/"), io::empty());
                    appended.map_err(|error| cannot_write(&error).in_entry(parent))?;
                }
            }
            let name = format!("{start}{}", added.name);
            self.append_new(&header, &name, &added.content).map_err(|error| link_write_error(error, &added.name))?;
        }
        Ok(())
    }

    fn append_new(&mut self, like: &Header, name: &str, content: &AddedContent) -> io::Result<()> {
        match content {
            AddedContent::File(file) => {
                let content = std::fs::read(file)?;
                let mut header = new_header(like, EntryType::Regular, 0o644);
                header.set_size(content.len() as u64);
                self.builder.append_data(&mut header, name, &content[..])
            }
            AddedContent::Link(to) => {
                self.builder.append_link(&mut new_header(like, EntryType::Symlink, 0o777), name, to)
            }
        }
    }

    fn flush_pending(&mut self) -> Result<(), Diagnostic> {
        for ExtensionEntry { header, data } in std::mem::take(&mut self.pending) {
            self.builder.append(&header, &data[..]).map_err(|error| cannot_write(&error))?;
        }
        Ok(())
    }

    fn append_file(&mut self, mut header: Header, content: &Path, name: &str) -> Result<(), Diagnostic> {
        self.flush_pending()?;
        let file = File::open(content).map_err(|one| file_write_error(one, name))?;
        let size = file.metadata().map_err(|one| file_write_error(one, name))?.len();
        // The header of a file that stays is copied byte for byte.
        if header.size().ok() != Some(size) {
            header.set_size(size);
            header.set_cksum();
        }
        self.builder.append(&header, file).map_err(|one| file_write_error(one, name))
    }
}

fn link_write_error(error: io::Error, name: &str) -> Diagnostic {
    cannot_write(&error).in_entry(name)
}

fn extension_text_bytes(data: &[u8]) -> &[u8] {
    data.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn file_write_error(error: io::Error, name: &str) -> Diagnostic {
    cannot_write(&error).in_entry(name)
}
