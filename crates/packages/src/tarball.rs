//! Tar archives. Entries are read raw: those that name the next one (GNU's `L` and `K`, pax's `x`) are copied as they are,
//! with the one that they belong to.

use crate::{ChangeMember, MemberChange, NewPackage, PackageMember, TarCompression, cannot_write, damaged, unpack};
use hotswap_report::{Diagnostic, codes};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use tar::{Archive, Builder, Entry, EntryType, Header};

/// Levels of the usual tools.
const GZIP: u32 = 9;
const XZ: u32 = 6;
const ZSTD: i32 = 19;
/// Longer extension entries are no names.
const NAME: u64 = 1 << 20;

pub(crate) fn run(
    input: File,
    compression: TarCompression,
    new: NewPackage<'_>,
    scratch: &Path,
    change: &mut ChangeMember<'_>,
) -> Result<(), Diagnostic> {
    rewrite(&input, compression, new.map(|(file, _)| file as &mut dyn Write), scratch, change)
}

/// Reads an archive, and writes it with its changes, in the same compression.
pub(crate) fn rewrite(
    input: &dyn ReadFrom,
    compression: TarCompression,
    output: Option<&mut dyn Write>,
    scratch: &Path,
    change: &mut ChangeMember<'_>,
) -> Result<(), Diagnostic> {
    let content = input.content(compression)?;
    let Some(output) = output else { return copy(content, &mut io::sink(), scratch, change) };
    let failed = |error: io::Error| cannot_write(&error);
    match compression {
        TarCompression::None => copy(content, output, scratch, change),
        TarCompression::Gzip => {
            // Neither a name nor a time is in the header, so that it is the same each time.
            let mut packed = flate2::GzBuilder::new().write(output, flate2::Compression::new(GZIP));
            copy(content, &mut packed, scratch, change)?;
            packed.finish().map(drop).map_err(failed)
        }
        TarCompression::Xz => {
            let mut packed = liblzma::write::XzEncoder::new(output, XZ);
            copy(content, &mut packed, scratch, change)?;
            packed.finish().map(drop).map_err(failed)
        }
        TarCompression::Zstd => {
            let mut packed = zstd::stream::write::Encoder::new(output, ZSTD).map_err(failed)?;
            copy(content, &mut packed, scratch, change)?;
            packed.finish().map(drop).map_err(failed)
        }
    }
}

/// The source of an archive.
pub(crate) trait ReadFrom {
    /// The archive without its compression.
    fn content(&self, compression: TarCompression) -> Result<Box<dyn Read + '_>, Diagnostic>;
}

impl ReadFrom for File {
    fn content(&self, compression: TarCompression) -> Result<Box<dyn Read + '_>, Diagnostic> {
        let input = io::BufReader::new(self);
        Ok(match compression {
            TarCompression::None => Box::new(input),
            TarCompression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(input)),
            TarCompression::Xz => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(input)),
            TarCompression::Zstd => {
                Box::new(zstd::stream::read::Decoder::with_buffer(input).map_err(|error| damaged(&error))?)
            }
        })
    }
}

fn copy(
    content: Box<dyn Read + '_>,
    output: &mut dyn Write,
    scratch: &Path,
    change: &mut ChangeMember<'_>,
) -> Result<(), Diagnostic> {
    let mut archive = Archive::new(content);
    let mut copy = TarCopy { builder: Builder::new(output), pending: Vec::new(), name: None, scratch, change };
    let mut count = 0;
    for entry in archive.entries().map_err(|error| damaged(&error))?.raw(true) {
        let entry = entry.map_err(|error| if count == 0 { no_archive(&error) } else { damaged(&error) })?;
        copy.entry(entry)?;
        count += 1;
    }
    if count == 0 {
        return Err(no_archive(&"it is empty"));
    }
    copy.builder.into_inner().map(drop).map_err(|error| cannot_write(&error))
}

fn no_archive(error: &dyn std::fmt::Display) -> Diagnostic {
    let what = format!("what is compressed is no tar archive ({error})");
    Diagnostic::error(codes::NOT_FOUND, what).advise("decompress it first, and name the file in it")
}

struct TarCopy<'t, 'c> {
    builder: Builder<&'t mut dyn Write>,
    /// Extension entries of the next one.
    pending: Vec<(Header, Vec<u8>)>,
    /// The name that they give it.
    name: Option<String>,
    scratch: &'t Path,
    change: &'t mut ChangeMember<'c>,
}

impl TarCopy<'_, '_> {
    fn entry(&mut self, mut entry: Entry<'_, Box<dyn Read + '_>>) -> Result<(), Diagnostic> {
        let kind = entry.header().entry_type();
        if kind.is_gnu_longname() || kind.is_gnu_longlink() || kind.is_pax_local_extensions() {
            return self.extension(&mut entry, kind);
        }
        let own = || String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let name = self.name.take().unwrap_or_else(own);
        let header = entry.header().clone();
        if !kind.is_file() {
            self.flush()?;
            return self.builder.append(&header, entry).map_err(|error| cannot_write(&error).in_entry(name));
        }
        let content = self.scratch.join("member");
        unpack(&mut entry, &content).map_err(|error| error.in_entry(&name))?;
        match (self.change)(&PackageMember { name: name.trim_start_matches("./"), content: &content })? {
            MemberChange::Unchanged => self.file(header, &content, &name),
            MemberChange::Replaced(content) => self.file(header, &content, &name),
            MemberChange::Removed => {
                self.pending.clear();
                Ok(())
            }
        }
    }

    fn extension(&mut self, entry: &mut Entry<'_, Box<dyn Read + '_>>, kind: EntryType) -> Result<(), Diagnostic> {
        let header = entry.header().clone();
        let mut data = Vec::new();
        entry.take(NAME).read_to_end(&mut data).map_err(|error| damaged(&error))?;
        if kind.is_gnu_longname() {
            self.name = Some(String::from_utf8_lossy(data.split(|byte| *byte == 0).next().unwrap_or_default()).into());
        } else if kind.is_pax_local_extensions() {
            for row in tar::PaxExtensions::new(&data) {
                let row = row.map_err(|error| damaged(&error))?;
                match row.key() {
                    Ok("path") => self.name = Some(String::from_utf8_lossy(row.value_bytes()).into_owned()),
                    Ok("size") => {
                        let what = "a tar archive with sizes in extension headers";
                        return Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what));
                    }
                    _ => {}
                }
            }
        }
        self.pending.push((header, data));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Diagnostic> {
        for (header, data) in std::mem::take(&mut self.pending) {
            self.builder.append(&header, &data[..]).map_err(|error| cannot_write(&error))?;
        }
        Ok(())
    }

    fn file(&mut self, mut header: Header, content: &Path, name: &str) -> Result<(), Diagnostic> {
        self.flush()?;
        let failed = |error: io::Error| cannot_write(&error).in_entry(name);
        let file = File::open(content).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        // The header of a file that stays is copied byte for byte.
        if header.size().ok() != Some(size) {
            header.set_size(size);
            header.set_cksum();
        }
        self.builder.append(&header, file).map_err(failed)
    }
}
