//! Python wheels: zip archives with a hash of every file in `RECORD`.
//!
//! `RECORD` is written last, as wheels should have it. The name of a wheel is `NAME-VERSION[-BUILD]-TAGS.whl`; where the
//! new one has a build number, `WHEEL` gets it, because installers compare the two.

use crate::record::WheelRecord;
use crate::stopped_writer::StoppedWriter;
use crate::{
    MemberChange, NewPackage, PackageChanges, PackageMember, cannot_read, damaged_package, signed_package, write_member,
};
use hotswap_report::limit::{Charge, LimitedReader};
use hotswap_report::{Diagnostic, codes};
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

const RECORD: &str = ".dist-info/RECORD";
const WHEEL: &str = ".dist-info/WHEEL";
/// Permissions of files that are added.
const ADDED: u32 = 0o644;
const SIGNATURES: [&str; 2] = ["RECORD.jws", "RECORD.p7s"];

pub(crate) fn rewrite_wheel(
    input: File,
    new: Option<NewPackage<'_>>,
    scratch: &Path,
    changes: &mut PackageChanges<'_, '_>,
) -> Result<(), Diagnostic> {
    let held = input.metadata().map_err(|error| crate::cannot_read(&error))?.len();
    let mut archive = ZipArchive::new(input).map_err(|error| damaged_package(&error))?;
    let names = archive.file_names().map(|name| name.map(|name| name.into_owned()));
    let names: Vec<String> = names.collect::<Result<_, _>>().map_err(|error| damaged_package(&error))?;
    let record_name = record_name(&names)?;
    let record = read_member(&mut archive, &record_name)?;
    let record = WheelRecord::parse(&record).map_err(|error| error.in_entry(&record_name))?;
    let files = names.iter().filter(|name| !name.ends_with('/'));
    record.check_names(files.map(String::as_str))?;
    let (file, name) = new.map(|new| (new.file, new.path)).unzip();
    let writer = file.map(|file| ZipWriter::new(StoppedWriter::new(file)));
    let build = name.and_then(build_number);
    let left = Charge::allowed_bytes(held);
    let mut wheel = WheelWriter { archive, record, record_name, writer, build, scratch, changes, left };
    (0..wheel.archive.len()).try_for_each(|index| wheel.copy_or_change(index))?;
    wheel.finish_archive()
}

/// The only RECORD; a signed wheel is refused.
fn record_name(names: &[String]) -> Result<String, Diagnostic> {
    if let Some(name) = names.iter().find(|name| SIGNATURES.iter().any(|end| name.ends_with(end))) {
        return Err(signed_package(name));
    }
    let mut records = names.iter().filter(|name| name.ends_with(RECORD) && name.matches('/').count() == 1);
    match (records.next(), records.next()) {
        (Some(record), None) => Ok(record.clone()),
        _ => {
            let what = "it is a zip archive without the one RECORD that Python wheels have";
            Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what).advise("unpack it first, and name the files in it"))
        }
    }
}

fn read_member(archive: &mut ZipArchive<File>, name: &str) -> Result<Vec<u8>, Diagnostic> {
    let mut text = Vec::new();
    let entry = archive.by_name(name).map_err(|error| damaged_package(&error).in_entry(name))?;
    let held = entry.compressed_size();
    LimitedReader::new(entry, held).read_to_end(&mut text).map_err(|error| damaged_package(&error).in_entry(name))?;
    Ok(text)
}

/// The build number in the name of a wheel.
fn build_number(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.strip_suffix(".whl")?;
    let parts: Vec<&str> = name.split('-').collect();
    let build = parts.get(2).filter(|_| parts.len() == 6)?;
    build.starts_with(|c: char| c.is_ascii_digit()).then(|| (*build).to_owned())
}

struct WheelWriter<'w, 'c, 'm, W: Write + Seek> {
    archive: ZipArchive<File>,
    record: WheelRecord,
    record_name: String,
    writer: Option<ZipWriter<W>>,
    build: Option<String>,
    scratch: &'w Path,
    changes: &'w mut PackageChanges<'c, 'm>,
    /// Bytes to which the files that follow may expand.
    left: u64,
}

impl<W: Write + Seek> WheelWriter<'_, '_, '_, W> {
    fn copy_or_change(&mut self, index: usize) -> Result<(), Diagnostic> {
        let mut entry = self.archive.by_index(index).map_err(|error| damaged_package(&error))?;
        let name = entry.name().map_err(|error| damaged_package(&error))?.into_owned();
        if name == self.record_name {
            return Ok(());
        }
        if entry.is_dir() {
            drop(entry);
            return self.copy_stored(index, &name);
        }
        let content = self.scratch.join("member");
        let mut limited = LimitedReader::with_limit(&mut entry, self.left);
        write_member(&mut limited, &content).map_err(|error| error.in_entry(&name))?;
        self.left = limited.left();
        drop(entry);
        self.record.check_file(&name, &content)?;
        let change = match &self.build {
            Some(build) if name.ends_with(WHEEL) => with_build(&content, build, self.scratch)?,
            _ => (self.changes.change)(&PackageMember { name: &name, content: &content })?,
        };
        match change {
            MemberChange::Unchanged => self.copy_stored(index, &name),
            MemberChange::Removed => {
                self.record.note_removed(&name);
                Ok(())
            }
            MemberChange::Replaced(content) => self.replace_content(index, &name, &content),
        }
    }

    /// Copies an entry as it is stored.
    fn copy_stored(&mut self, index: usize, name: &str) -> Result<(), Diagnostic> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let entry = self.archive.by_index_raw(index).map_err(|error| damaged_package(&error))?;
        writer.raw_copy_file(entry).map_err(|error| cannot_write(&error).in_entry(name))
    }

    fn replace_content(&mut self, index: usize, name: &str, content: &Path) -> Result<(), Diagnostic> {
        self.record.note_replaced(name, content)?;
        let options = self.options_of_member(index)?;
        self.write_member(name, content, options)
    }

    fn write_member(&mut self, name: &str, content: &Path, options: SimpleFileOptions) -> Result<(), Diagnostic> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let mut file = File::open(content).map_err(|error| cannot_read(&error).in_file(content))?;
        let size = file.metadata().map_err(|error| cannot_read(&error))?.len();
        let started = writer.start_file(name, options.large_file(size > u64::from(u32::MAX)));
        started.map_err(|error| cannot_write(&error).in_entry(name))?;
        io::copy(&mut file, writer).map(drop).map_err(|error| crate::cannot_write(&error).in_entry(name))
    }

    /// Compression, time and permissions of an entry.
    fn options_of_member(&mut self, index: usize) -> Result<SimpleFileOptions, Diagnostic> {
        let entry = self.archive.by_index_raw(index).map_err(|error| damaged_package(&error))?;
        let options = SimpleFileOptions::default().compression_method(entry.compression());
        let options = entry.last_modified().map_or(options, |time| options.last_modified_time(time));
        Ok(entry.unix_mode().map_or(options, |mode| options.unix_permissions(mode)))
    }

    /// Writes RECORD and the directory of the archive.
    fn finish_archive(mut self) -> Result<(), Diagnostic> {
        let index = self.archive.index_for_name(&self.record_name).unwrap_or_default();
        let options = self.options_of_member(index)?;
        for added in self.changes.added {
            self.record.note_added(&added.name, added.file()?)?;
            self.write_member(&added.name, added.file()?, options.unix_permissions(ADDED))?;
        }
        let Some(mut writer) = self.writer else { return Ok(()) };
        writer.start_file(self.record_name.as_str(), options).map_err(|error| cannot_write(&error))?;
        writer.write_all(&self.record.to_text()?).map_err(|error| crate::cannot_write(&error))?;
        writer.finish().map(drop).map_err(|error| cannot_write(&error))
    }
}

/// WHEEL with a build number.
fn with_build(content: &Path, build: &str, scratch: &Path) -> Result<MemberChange, Diagnostic> {
    let text = fs::read_to_string(content).map_err(|error| damaged_package(&error).in_entry("WHEEL"))?;
    let row = format!("Build: {build}");
    let mut rows: Vec<&str> = text.lines().filter(|row| !row.starts_with("Build:")).collect();
    let at = rows.iter().position(|row| row.starts_with("Tag:")).unwrap_or(rows.len());
    rows.insert(at, &row);
    let path = scratch.join("WHEEL");
    fs::write(&path, rows.join("\n") + "\n").map_err(|error| crate::cannot_write(&error))?;
    Ok(MemberChange::Replaced(path))
}

fn cannot_write(error: &zip::result::ZipError) -> Diagnostic {
    Diagnostic::error(codes::CANNOT_WRITE, error.to_string())
}
