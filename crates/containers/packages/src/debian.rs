//! Debian packages: an archive of `debian-binary`, `control.tar` and `data.tar`. The control part has the MD5 of each
//! file, and the size of all.
//!
//! The data part is written first, because the control part describes it.

use crate::archive_source::{ArchiveSource, PlainCopy};
use crate::tarball::rewrite_archive;
use crate::{
    AddedContent, AddedMember, MemberChange, NewPackage, PackageChanges, PackageMember, TarCompression, cannot_read,
    cannot_write, damaged_package, hash, malformed_package, signed_package, write_member, wrong_hash,
};
use hotswap_report::{Diagnostic, codes};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A member of the package, in a file.
struct DebianPart {
    header: ar::Header,
    path: PathBuf,
}

pub(crate) fn rewrite_debian(
    input: File,
    copy: PlainCopy<'_>,
    new: Option<NewPackage<'_>>,
    scratch: &Path,
    changes: &mut PackageChanges<'_, '_>,
) -> Result<(), Diagnostic> {
    let mut parts = unpack_parts(input, scratch)?;
    let (control, data) = (find_part(&parts, "control.tar")?, find_part(&parts, "data.tar")?);
    let mut sums = Sums::read(&parts[control], scratch)?;
    let path = scratch.join("data");
    let mut output = match &new {
        Some(_) => Some(File::create(&path).map_err(|error| cannot_write(&error))?),
        None => None,
    };
    let input = File::open(&parts[data].path).map_err(|error| cannot_read(&error))?;
    let source = ArchiveSource { input: &input, compression: compression_of_part(&parts[data])?, copy };
    sums.rewrite_data(&source, output.as_mut(), scratch, changes)?;
    let Some(NewPackage { file, .. }) = new else { return Ok(()) };
    parts[data].path = path;
    sums.rewrite_control(&mut parts[control], scratch)?;
    let mut builder = ar::Builder::new(file);
    for part in &parts {
        let content = File::open(&part.path).map_err(|error| cannot_read(&error))?;
        let size = content.metadata().map_err(|error| cannot_read(&error))?.len();
        let mut header = ar::Header::new(part.header.identifier().to_vec(), size);
        header.set_mtime(part.header.mtime());
        header.set_uid(part.header.uid());
        header.set_gid(part.header.gid());
        header.set_mode(part.header.mode());
        builder.append(&header, content).map_err(|error| cannot_write(&error))?;
    }
    Ok(())
}

fn unpack_parts(input: File, scratch: &Path) -> Result<Vec<DebianPart>, Diagnostic> {
    let failure = Cell::new(None);
    let mut archive = ar::Archive::new(NotedReader { inner: input, failure: &failure });
    let mut parts: Vec<DebianPart> = Vec::new();
    while let Some(entry) = archive.next_entry() {
        let mut entry = entry.map_err(|error| unread_member(failure.get(), &error))?;
        let header = entry.header().clone();
        let name = String::from_utf8_lossy(header.identifier()).into_owned();
        if name.starts_with("_gpg") {
            return Err(signed_package(&name));
        }
        let path = scratch.join(format!("part{}", parts.len()));
        write_member(&mut entry, &path).map_err(|error| error.in_entry(name))?;
        if hash::file_size(&path)? != header.size() {
            return Err(malformed_package("it is cut off"));
        }
        parts.push(DebianPart { header, path });
    }
    check_members(&parts)?;
    Ok(parts)
}

/// Notes the number of the system's error: the reader of such archives has a text of its own in its place.
struct NotedReader<'f, R> {
    inner: R,
    failure: &'f Cell<Option<i32>>,
}

impl<R: Read> Read for NotedReader<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes);
        if let Err(error) = &read {
            self.failure.set(error.raw_os_error());
        }
        read
    }
}

fn unread_member(failure: Option<i32>, error: &io::Error) -> Diagnostic {
    failure.map_or_else(|| damaged_package(error), |number| cannot_read(&io::Error::from_raw_os_error(number)))
}

/// The members in the order in which `dpkg` takes them. It ignores those whose names begin with `_`.
fn check_members(parts: &[DebianPart]) -> Result<(), Diagnostic> {
    let names: Vec<String> = parts.iter().map(part_identifier_name).filter(|name| !name.starts_with('_')).collect();
    let [first, second, third, ..] = [names.first(), names.get(1), names.get(2)];
    let is_first = first.is_some_and(|name| name == "debian-binary");
    if is_first
        && is_compressed_part(second, "control.tar")
        && is_compressed_part(third, "data.tar")
        && names.len() == 3
    {
        return Ok(());
    }
    for part in ["control.tar", "data.tar"] {
        if !names.iter().any(|name| name.starts_with(part)) {
            return Err(malformed_package(&format!("it has no {part}")));
        }
    }
    let what = format!("its members are {}, and not debian-binary, control.tar and data.tar", names.join(", "));
    Err(malformed_package(&what))
}

fn part_identifier_name(part: &DebianPart) -> String {
    String::from_utf8_lossy(part.header.identifier()).into_owned()
}

fn is_compressed_part(name: Option<&String>, part: &str) -> bool {
    let end = name.and_then(|name| name.strip_prefix(part));
    end.is_some_and(|end| ["", ".gz", ".xz", ".zst", ".bz2", ".lzma"].contains(&end))
}

fn find_part(parts: &[DebianPart], name: &str) -> Result<usize, Diagnostic> {
    parts.iter().position(|one| has_part_prefix(one, name)).ok_or_else(|| missing_part_error(name))
}

fn has_part_prefix(part: &DebianPart, name: &str) -> bool {
    part.header.identifier().starts_with(name.as_bytes())
}

fn missing_part_error(name: &str) -> Diagnostic {
    malformed_package(&format!("it has no {name}"))
}

fn compression_of_part(part: &DebianPart) -> Result<TarCompression, Diagnostic> {
    let name = String::from_utf8_lossy(part.header.identifier()).into_owned();
    match name.rsplit('.').next() {
        Some("tar") => Ok(TarCompression::None),
        Some("gz") => Ok(TarCompression::Gzip),
        Some("bz2") => Ok(TarCompression::Bzip2),
        Some("xz") => Ok(TarCompression::Xz),
        Some("zst") => Ok(TarCompression::Zstd),
        _ => Err(Diagnostic::error(codes::UNKNOWN_FORMAT, format!("the part {name} of the Debian package"))),
    }
}

/// A link of the data part, with its change.
struct ChangedLink {
    name: String,
    /// The file of a hard link.
    to: Option<PathBuf>,
    change: MemberChange,
}

/// The hashes of the package's files.
struct Sums {
    /// By path; none where the package lacks md5sums.
    sums: Option<BTreeMap<String, String>>,
    /// Bytes of all files, before and after.
    sizes: [u64; 2],
}

impl Sums {
    fn read(control: &DebianPart, scratch: &Path) -> Result<Self, Diagnostic> {
        let mut sums = None;
        let input = File::open(&control.path).map_err(|error| cannot_read(&error))?;
        rewrite_archive(
            &ArchiveSource::new(&input, compression_of_part(control)?),
            None,
            scratch,
            &mut PackageChanges { change: &mut |one| read_md5sums_member(one, &mut sums), link: None, added: &[] },
        )?;
        Ok(Self { sums, sizes: [0; 2] })
    }

    /// Checks and changes the files.
    fn rewrite_data(
        &mut self,
        source: &ArchiveSource<'_>,
        output: Option<&mut File>,
        scratch: &Path,
        changes: &mut PackageChanges<'_, '_>,
    ) -> Result<(), Diagnostic> {
        let mut seen = Vec::new();
        let mut links = Vec::new();
        let mut inner = changes.link.as_mut();
        let is_written = output.is_some();
        let output = output.map(|output| output as &mut dyn std::io::Write);
        let mut checked = PackageChanges {
            change: &mut |member| {
                let old = hash::file_size(member.content)?;
                // Content of the copy was hashed when the copy was made.
                if self.has_checked_sum(member, source.is_kept())? {
                    seen.push(member.name.to_owned());
                }
                let made = (changes.change)(member)?;
                self.note_change(member.name, old, &made)?;
                Ok(made)
            },
            link: Some(&mut |link| {
                let change = inner.as_mut().map_or(Ok(MemberChange::Unchanged), |change| change(link))?;
                links.push(ChangedLink {
                    name: link.name.to_owned(),
                    to: link.target().filter(|_| link.is_hard),
                    change: change.clone(),
                });
                Ok(change)
            }),
            added: changes.added,
        };
        rewrite_archive(source, output, scratch, &mut checked)?;
        for link in links {
            seen.push(link.name.clone());
            self.add_link(&link)?;
        }
        let unseen = self.sums.iter().flatten().find(|(name, _)| !seen.contains(name));
        if let Some((name, _)) = unseen {
            return Err(malformed_package("md5sums has a hash of a file that is not there").in_entry(name));
        }
        if is_written {
            self.note_added(changes.added)?;
        }
        Ok(())
    }

    /// Whether `md5sums` has the file, whose content must have that hash then. Files that are configuration may lack one.
    fn has_checked_sum(&self, member: &PackageMember<'_>, is_kept: bool) -> Result<bool, Diagnostic> {
        let Some(sum) = self.sums.as_ref().and_then(|sums| sums.get(member.name)) else { return Ok(false) };
        if !is_kept && *sum != hash::md5_of_file(member.content)? {
            return Err(wrong_hash(member.name, "md5sums"));
        }
        Ok(true)
    }

    /// Notes the hash and the size of a file that had `old` bytes before its change.
    fn note_change(&mut self, name: &str, old: u64, made: &MemberChange) -> Result<(), Diagnostic> {
        self.sizes[0] += old;
        self.sizes[1] += match made {
            MemberChange::Unchanged => old,
            MemberChange::Replaced(path) => hash::file_size(path)?,
            MemberChange::Removed => 0,
        };
        match (made, &mut self.sums) {
            (MemberChange::Replaced(path), Some(sums)) if sums.contains_key(name) => {
                sums.insert(name.to_owned(), hash::md5_of_file(path)?);
            }
            (MemberChange::Removed, Some(sums)) => drop(sums.remove(name)),
            _ => {}
        }
        Ok(())
    }

    /// Notes a link: a hard one has the hash of its file.
    fn add_link(&mut self, link: &ChangedLink) -> Result<(), Diagnostic> {
        let Some(sums) = &mut self.sums else { return Ok(()) };
        match &link.change {
            MemberChange::Removed => drop(sums.remove(&link.name)),
            MemberChange::Replaced(path) => {
                self.sizes[1] += hash::file_size(path)?;
                sums.insert(link.name.clone(), hash::md5_of_file(path)?);
            }
            MemberChange::Unchanged => {
                let file = link.to.as_ref().and_then(|to| sums.get(to.to_str()?).cloned());
                if let (Some(sum), Some(own)) = (file, sums.get_mut(&link.name)) {
                    *own = sum;
                }
            }
        }
        Ok(())
    }

    /// Notes the files that are added.
    fn note_added(&mut self, added: &[AddedMember]) -> Result<(), Diagnostic> {
        for AddedMember { name, content } in added {
            // Links have no row in the list, and no size.
            let AddedContent::File(content) = content else { continue };
            self.sizes[1] += hash::file_size(content)?;
            let Some(sums) = &mut self.sums else { continue };
            if sums.insert(name.clone(), hash::md5_of_file(content)?).is_some() {
                return Err(malformed_package("a file to add is there already").in_entry(name));
            }
        }
        Ok(())
    }

    fn change_control_file(&self, member: &PackageMember<'_>, new_file: &Path) -> Result<MemberChange, Diagnostic> {
        match (member.name, &self.sums) {
            ("md5sums", Some(sums)) => {
                // The rows keep the order that they have in the file; new ones follow.
                let text = fs::read_to_string(member.content).map_err(|error| damaged_package(&error))?;
                let names = text.lines().filter_map(|row| row.split_once("  ")).map(|(_, name)| name);
                let old: BTreeSet<&str> = names.clone().collect();
                let new = sums.keys().map(String::as_str).filter(|name| !old.contains(name));
                let rows = names.chain(new).filter_map(|name| Some(format!("{}  {name}\n", sums.get(name)?)));
                replace_with_text(new_file, rows.collect())
            }
            ("control", _) => {
                let text = fs::read_to_string(member.content).map_err(|error| damaged_package(&error))?;
                replace_with_text(new_file, self.with_size(&text))
            }
            _ => Ok(MemberChange::Unchanged),
        }
    }

    /// Writes the hashes and the size into the control part.
    fn rewrite_control(&self, control: &mut DebianPart, scratch: &Path) -> Result<(), Diagnostic> {
        let new_file = scratch.join("text");
        let input = File::open(&control.path).map_err(|error| cannot_read(&error))?;
        let path = scratch.join("control");
        let mut output = File::create(&path).map_err(|error| cannot_write(&error))?;
        rewrite_archive(
            &ArchiveSource::new(&input, compression_of_part(control)?),
            Some(&mut output),
            scratch,
            &mut PackageChanges {
                change: &mut |member| self.change_control_file(member, &new_file),
                link: None,
                added: &[],
            },
        )?;
        control.path = path;
        Ok(())
    }

    /// The text of `control` with the installed size, in KiB.
    fn with_size(&self, text: &str) -> String {
        let [before, after] = self.sizes.map(|bytes| bytes.div_ceil(1024));
        text.lines().map(|one| update_installed_size(one, after, before)).collect()
    }
}

fn read_md5sums_member(
    member: &PackageMember<'_>,
    sums: &mut Option<BTreeMap<String, String>>,
) -> Result<MemberChange, Diagnostic> {
    if member.name == "md5sums" {
        let text = fs::read_to_string(member.content).map_err(|error| damaged_package(&error).in_entry("md5sums"))?;
        let rows = text.lines().map(|row| row.split_once("  ").map(|(sum, name)| (name.into(), sum.into())));
        let rows = rows.collect::<Option<BTreeMap<String, String>>>();
        *sums = Some(rows.ok_or_else(|| malformed_package("a row of md5sums is not a hash and a name"))?);
    }
    Ok(MemberChange::Unchanged)
}

fn update_installed_size(row: &str, after: u64, before: u64) -> String {
    match row.strip_prefix("Installed-Size:").map(|size| size.trim().parse::<u64>()) {
        Some(Ok(size)) => format!("Installed-Size: {}\n", size.saturating_add(after).saturating_sub(before)),
        _ => format!("{row}\n"),
    }
}

/// Writes the new text of a member to that path.
fn replace_with_text(path: &Path, text: String) -> Result<MemberChange, Diagnostic> {
    fs::write(path, text).map_err(|error| cannot_write(&error))?;
    Ok(MemberChange::Replaced(path.to_owned()))
}
