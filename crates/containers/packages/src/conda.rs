//! Conda packages of version 2 (`.conda`): a zip archive of `metadata.json`, and two tar archives, `info-NAME.tar.zst` with the list
//! of files and `pkg-NAME.tar.zst` with the files.
//!
//! The files are written first, because `info/paths.json` and `info/files` list them.
//!
//! Invariants: rows of files that do not change keep their values. A row with a hash that HotSwap cannot make (`sha256_in_prefix`)
//! refuses the change of its file.

use crate::archive_source::ArchiveSource;
use crate::stopped_writer::StoppedWriter;
use crate::tarball::rewrite_archive;
use crate::{
    AddedMember, MemberChange, NewPackage, PackageChanges, PackageMember, TarCompression, cannot_read, cannot_write,
    damaged_package, hash, malformed_package, write_member, wrong_hash,
};
use hotswap_report::limit::LimitedReader;
use hotswap_report::{Diagnostic, codes};
use serde_json::{Map, Value, json};
use sha2::Sha256;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

const METADATA: &str = "metadata.json";
const INFO: &str = "info-";
const FILES: &str = "pkg-";
/// The list of files with their hashes, and the one of their names.
const PATHS: &str = "info/paths.json";
const NAMES: &str = "info/files";
/// Hashes and signatures that depend on the content in ways that HotSwap does not know.
const UNKNOWN: &str = "sha256_in_prefix";

/// Whether a zip archive is a package of conda.
///
/// # Errors
/// [`codes::CANNOT_READ`]: an archive that was not read is not one of another kind.
pub(crate) fn is_conda(file: &File) -> Result<bool, Diagnostic> {
    let archive = match ZipArchive::new(file) {
        Ok(archive) => archive,
        Err(error) => {
            let error = damaged_package(&error);
            return if error.code == codes::CANNOT_READ { Err(error) } else { Ok(false) };
        }
    };
    let names: Vec<_> = archive.file_names().flatten().collect();
    let has_metadata = names.iter().any(|name| *name == METADATA);
    Ok(has_metadata && has_tar_member(INFO, &names) && has_tar_member(FILES, &names))
}

fn has_tar_member(start: &str, names: &[std::borrow::Cow<'_, str>]) -> bool {
    names.iter().any(|name| name.starts_with(start) && name.contains(".tar"))
}

/// A member of the package, in a file.
struct CondaPart {
    name: String,
    options: SimpleFileOptions,
    path: PathBuf,
}

pub(crate) fn run(
    input: File,
    new: Option<NewPackage<'_>>,
    scratch: &Path,
    changes: &mut PackageChanges<'_, '_>,
) -> Result<(), Diagnostic> {
    let mut parts = unpacked(input, scratch)?;
    let (info, files) = (find(&parts, INFO)?, find(&parts, FILES)?);
    let mut list = PathList::read(&parts[info], scratch)?;
    list.rewrite_files(&mut parts[files], new.is_some(), scratch, changes)?;
    let Some(NewPackage { file, .. }) = new else { return Ok(()) };
    list.rewrite_info(&mut parts[info], scratch)?;
    let mut writer = ZipWriter::new(StoppedWriter::new(file));
    for part in &parts {
        let mut content = File::open(&part.path).map_err(|error| cannot_read(&error))?;
        let started = writer.start_file(part.name.as_str(), part.options.large_file(true));
        started.map_err(|error| zip_error(&error, &part.name))?;
        std::io::copy(&mut content, &mut writer).map_err(|error| cannot_write(&error).in_entry(&part.name))?;
    }
    writer.finish().map(drop).map_err(|error| zip_error(&error, METADATA))
}

fn zip_error(error: &zip::result::ZipError, name: &str) -> Diagnostic {
    Diagnostic::error(codes::CANNOT_WRITE, error.to_string()).in_entry(name)
}

fn unpacked(input: File, scratch: &Path) -> Result<Vec<CondaPart>, Diagnostic> {
    let held = input.metadata().map_err(|error| cannot_read(&error))?.len();
    let mut archive = ZipArchive::new(input).map_err(|error| damaged_package(&error))?;
    let mut parts = Vec::new();
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| damaged_package(&error))?;
        let name = entry.name().map_err(|error| damaged_package(&error))?.into_owned();
        let mut options = SimpleFileOptions::default().compression_method(entry.compression());
        if let Some(time) = entry.last_modified() {
            options = options.last_modified_time(time);
        }
        let path = scratch.join(format!("part{index}"));
        write_member(&mut LimitedReader::new(entry, held), &path).map_err(|error| error.in_entry(&name))?;
        parts.push(CondaPart { name, options, path });
    }
    Ok(parts)
}

fn find(parts: &[CondaPart], start: &str) -> Result<usize, Diagnostic> {
    let mut found = parts.iter().enumerate().filter(|(_, part)| part.name.starts_with(start));
    match (found.next(), found.next()) {
        (Some((index, _)), None) => Ok(index),
        _ => Err(malformed_package(&format!("it has not one member {start}*"))),
    }
}

fn compression(part: &CondaPart) -> Result<TarCompression, Diagnostic> {
    match part.name.rsplit('.').next() {
        Some("tar") => Ok(TarCompression::None),
        Some("bz2") => Ok(TarCompression::Bzip2),
        Some("zst") => Ok(TarCompression::Zstd),
        _ => Err(Diagnostic::error(codes::UNKNOWN_FORMAT, format!("the part {} of the conda package", part.name))),
    }
}

/// A row of the list that changes: size and hash of the new content, or nothing where the file is left out.
struct ChangedRow {
    facts: Option<ListedContent>,
}

#[derive(Clone)]
struct ListedContent {
    size: u64,
    sha256: String,
}

impl ListedContent {
    fn read(content: &Path) -> Result<Self, Diagnostic> {
        let (sha256, size) = hash::hash_file::<Sha256>(content)?;
        Ok(Self { size, sha256: hotswap_report::hex_digits(&sha256) })
    }
}

/// A link of the package, with its change and the file that it leads to.
struct SeenLink {
    name: String,
    target: Option<PathBuf>,
    change: MemberChange,
}

/// The list of the package's files.
struct PathList {
    paths: Value,
    changed: BTreeMap<String, ChangedRow>,
    added: BTreeMap<String, ListedContent>,
}

impl PathList {
    fn read(info: &CondaPart, scratch: &Path) -> Result<Self, Diagnostic> {
        let mut paths = None;
        let input = File::open(&info.path).map_err(|error| cannot_read(&error))?;
        let mut changes =
            PackageChanges { change: &mut |one| read_paths_member(one, &mut paths), link: None, added: &[] };
        rewrite_archive(&ArchiveSource::new(&input, compression(info)?), None, scratch, &mut changes)?;
        let paths = paths.filter(|paths| paths["paths"].is_array());
        let paths = paths.ok_or_else(|| malformed_package(&format!("it has no {PATHS} with a list of paths")))?;
        Ok(Self { paths, changed: BTreeMap::new(), added: BTreeMap::new() })
    }

    fn row(&self, name: &str) -> Option<&Map<String, Value>> {
        let rows = self.paths["paths"].as_array().into_iter().flatten();
        rows.filter_map(Value::as_object).find(|row| row.get("_path").and_then(Value::as_str) == Some(name))
    }

    /// The content is that of the list.
    fn check(&self, member: &PackageMember<'_>) -> Result<(), Diagnostic> {
        let Some(row) = self.row(member.name) else {
            return Err(
                malformed_package(&format!("{PATHS} does not have a file of the package")).in_entry(member.name)
            );
        };
        let facts = ListedContent::read(member.content)?;
        let is_size = row.get("size_in_bytes").and_then(Value::as_u64).is_none_or(|size| size == facts.size);
        let is_hash = row.get("sha256").and_then(Value::as_str).is_none_or(|hash| hash == facts.sha256);
        if is_size && is_hash { Ok(()) } else { Err(wrong_hash(member.name, PATHS)) }
    }

    fn note(&mut self, name: &str, change: &MemberChange) -> Result<(), Diagnostic> {
        let facts = match change {
            MemberChange::Unchanged => return Ok(()),
            MemberChange::Replaced(content) => Some(ListedContent::read(content)?),
            MemberChange::Removed => None,
        };
        if facts.is_some() && self.row(name).is_some_and(|row| row.contains_key(UNKNOWN)) {
            let what = format!("its row in {PATHS} has {UNKNOWN}, a hash that only conda can make");
            let error = Diagnostic::error(codes::NO_PLACE, what).in_entry(name);
            return Err(error.advise("unpack the package, and change its files"));
        }
        self.changed.insert(name.to_owned(), ChangedRow { facts });
        Ok(())
    }

    fn rewrite_files(
        &mut self,
        files: &mut CondaPart,
        is_written: bool,
        scratch: &Path,
        changes: &mut PackageChanges<'_, '_>,
    ) -> Result<(), Diagnostic> {
        let (mut links, mut seen) = (Vec::new(), BTreeSet::new());
        let mut inner = changes.link.take();
        let mut checked = PackageChanges {
            change: &mut |member| {
                self.check(member)?;
                seen.insert(member.name.to_owned());
                let change = (changes.change)(member)?;
                self.note(member.name, &change)?;
                Ok(change)
            },
            link: Some(&mut |link| {
                let change = inner.as_mut().map_or(Ok(MemberChange::Unchanged), |inner| inner(link))?;
                links.push(SeenLink { name: link.name.to_owned(), target: link.target(), change: change.clone() });
                Ok(change)
            }),
            added: changes.added,
        };
        let input = File::open(&files.path).map_err(|error| cannot_read(&error))?;
        let path = scratch.join("conda-files");
        let mut output = File::create(&path).map_err(|error| cannot_write(&error))?;
        let output = is_written.then_some(&mut output as &mut dyn std::io::Write);
        rewrite_archive(&ArchiveSource::new(&input, compression(files)?), output, scratch, &mut checked)?;
        files.path = path;
        seen.extend(links.iter().map(|link| link.name.clone()));
        self.check_names(&seen)?;
        self.note_links(&links)?;
        self.note_added(changes.added)
    }

    fn check_names(&self, seen: &BTreeSet<String>) -> Result<(), Diagnostic> {
        let rows = self.paths["paths"].as_array().into_iter().flatten();
        let listed = rows.filter(|row| row["path_type"] != "directory").filter_map(|row| row["_path"].as_str());
        match listed.into_iter().find(|name| !seen.contains(*name)) {
            Some(name) => Err(malformed_package(&format!("{PATHS} has a file that is not there")).in_entry(name)),
            None => Ok(()),
        }
    }

    /// The row of a link has the hash of the file that it leads to.
    fn note_links(&mut self, links: &[SeenLink]) -> Result<(), Diagnostic> {
        // A link may lead to a link: as many rounds as there are links.
        for _ in links {
            for link in links.iter().filter(|link| link.change == MemberChange::Unchanged) {
                let facts = link.target.as_ref().and_then(|to| self.changed.get(to.to_str()?)?.facts.clone());
                if facts.is_some() {
                    self.changed.insert(link.name.clone(), ChangedRow { facts });
                }
            }
        }
        links.iter().try_for_each(|link| self.note(&link.name, &link.change))
    }

    fn note_added(&mut self, added: &[AddedMember]) -> Result<(), Diagnostic> {
        for member in added {
            let name = &member.name;
            if self.row(name).is_some() {
                return Err(malformed_package("a file to add is there already").in_entry(name));
            }
            self.added.insert(name.clone(), ListedContent::read(member.file()?)?);
        }
        Ok(())
    }

    fn rewrite_info(&self, info: &mut CondaPart, scratch: &Path) -> Result<(), Diagnostic> {
        if self.changed.is_empty() && self.added.is_empty() {
            return Ok(());
        }
        let input = File::open(&info.path).map_err(|error| cannot_read(&error))?;
        let path = scratch.join("conda-info");
        let mut output = File::create(&path).map_err(|error| cannot_write(&error))?;
        let mut changes =
            PackageChanges { change: &mut |member| self.change_list(member, scratch), link: None, added: &[] };
        rewrite_archive(&ArchiveSource::new(&input, compression(info)?), Some(&mut output), scratch, &mut changes)?;
        info.path = path;
        Ok(())
    }

    /// Writes a list of the package's files anew; other members stay.
    fn change_list(&self, member: &PackageMember<'_>, scratch: &Path) -> Result<MemberChange, Diagnostic> {
        let text = match member.name {
            PATHS => format!("{:#}\n", self.new_paths()),
            NAMES => self.new_names(member)?,
            _ => return Ok(MemberChange::Unchanged),
        };
        let path = scratch.join("conda-list");
        fs::write(&path, text).map_err(|error| cannot_write(&error).in_entry(member.name))?;
        Ok(MemberChange::Replaced(path))
    }

    fn new_paths(&self) -> Value {
        let mut paths = self.paths.clone();
        let rows = self.paths["paths"].as_array().into_iter().flatten();
        let mut rows: Vec<Value> = rows.filter_map(|row| self.new_row(row)).collect();
        rows.extend(self.added.iter().map(|(name, facts)| {
            json!({ "_path": name, "path_type": "hardlink", "sha256": facts.sha256, "size_in_bytes": facts.size })
        }));
        paths["paths"] = rows.into();
        paths
    }

    /// The row as it is in the new package, if it is in it.
    fn new_row(&self, row: &Value) -> Option<Value> {
        let name = row["_path"].as_str().unwrap_or_default();
        let Some(changed) = self.changed.get(name) else { return Some(row.clone()) };
        let (facts, mut row) = (changed.facts.as_ref()?, row.clone());
        if row.get("sha256").is_some() {
            row["sha256"] = facts.sha256.as_str().into();
        }
        if row.get("size_in_bytes").is_some() {
            row["size_in_bytes"] = facts.size.into();
        }
        Some(row)
    }

    fn new_names(&self, member: &PackageMember<'_>) -> Result<String, Diagnostic> {
        let text = fs::read_to_string(member.content).map_err(|error| damaged_package(&error).in_entry(NAMES))?;
        let names = text.lines().filter(|one| is_kept_name(one, self)).chain(self.added.keys().map(String::as_str));
        Ok(names.map(|name| format!("{name}\n")).collect())
    }
}

fn read_paths_member(member: &PackageMember<'_>, paths: &mut Option<Value>) -> Result<MemberChange, Diagnostic> {
    if member.name == PATHS {
        let text = fs::read(member.content).map_err(|error| cannot_read(&error).in_entry(PATHS))?;
        let read = serde_json::from_slice::<Value>(&text);
        *paths = Some(read.map_err(|error| malformed_package(&format!("{PATHS}: {error}")))?);
    }
    Ok(MemberChange::Unchanged)
}

fn is_kept_name(name: &&str, list: &PathList) -> bool {
    list.changed.get(*name).is_none_or(|changed| changed.facts.is_some())
}
