//! Finding every container of device code in a file of any kind.
//!
//! [`open`] only locates: bundles are decompressed by [`Found::read`], one at a time, and nothing
//! is copied, so that a mapped library of a gigabyte costs its headers only.
//!
//! Invariant: anything that looks like a container and cannot be read is reported as a problem, never skipped.

use crate::bytes::{Bytes, shifted};
use crate::fatbin::{bundle_size, is_bundle, next_start};
use crate::foreign;
use crate::image::ImageKind;
use crate::offload_binary::{self, OffloadBinary};
use crate::{HashState, ccob, parse_lenient, split_record};
use hotswap_report::{Diagnostic, codes};
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSection};
use std::fmt;

/// Form of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Plain offload bundle.
    Bundle,
    /// Compressed offload bundle with the version of its header.
    CompressedBundle(u16),
    /// OffloadBinary with its version.
    OffloadBinary(u32),
    /// Section of an object with relocatable device code, old driver.
    ObjectVariant,
    /// A code object without a container.
    Bare,
}

/// The position of a container in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Archive members, outermost first.
    pub members: Vec<String>,
    /// Section of the object, program or library.
    pub section: Option<String>,
    /// Offset in the section, or in the member or file without one.
    pub offset: u64,
    /// Offset in the file.
    pub file_offset: u64,
}

/// A container, found but not yet read.
#[derive(Debug, Clone)]
pub struct Found<'a> {
    /// Its position.
    pub place: Place,
    /// Its form.
    pub form: Form,
    /// Its bytes.
    pub bytes: &'a [u8],
    id: Option<String>,
}

/// An image of a container.
#[derive(Debug, Clone)]
pub struct Image<'a> {
    /// Bundle entry ID; `None` for a bare code object, which names its target itself.
    pub id: Option<String>,
    /// The kind of its bytes.
    pub kind: ImageKind,
    /// Its bytes.
    pub data: Bytes<'a>,
}

/// The contents of a container.
#[derive(Debug, Clone)]
pub struct Device<'a> {
    /// Images in their order.
    pub images: Vec<Image<'a>>,
    /// Payload of HotSwap's record block, in a bundle or after a code object.
    pub record: Option<Bytes<'a>>,
    /// The validity of a compressed bundle's hash.
    pub hash: HashState,
    /// Bytes of the container without compression.
    pub plain_size: u64,
}

/// The contents of a file.
#[derive(Debug, Default)]
pub struct Contents<'a> {
    /// Containers in the order of the file.
    pub found: Vec<Found<'a>>,
    /// Sections with the requested names, and their bytes.
    pub sections: Vec<(Place, &'a [u8])>,
    /// Containers that could not be read.
    pub problems: Vec<Diagnostic>,
}

/// Finds every container in `bytes`: a bundle, concatenated bundles, an OffloadBinary, a code object, an ELF, COFF or
/// Mach-O file with such sections, or an archive of those.
pub fn open(bytes: &[u8]) -> Contents<'_> {
    open_with(bytes, &[])
}

/// As [`open`]; in the same pass, the sections with those names in ELF, COFF and Mach-O files.
pub fn open_with<'a>(bytes: &'a [u8], sections: &[&str]) -> Contents<'a> {
    let mut finder = Finder { base: bytes, wanted: sections, contents: Contents::default() };
    finder.search(bytes, &Place::default());
    finder.contents
}

impl Found<'_> {
    /// Whether its payload is compressed as a bundle.
    pub fn is_compressed(&self) -> bool {
        matches!(self.form, Form::CompressedBundle(_))
    }
}

impl<'a> Found<'a> {
    /// Reads the container, decompressing where needed. A wrong hash is reported, not rejected.
    ///
    /// # Errors
    /// [`codes::MALFORMED`] or [`codes::UNKNOWN_FORMAT`], with the place as its entry.
    pub fn read(&self) -> Result<Device<'a>, Diagnostic> {
        self.read_images().map_err(|error| error.in_entry(self.place.to_string()))
    }

    /// IDs and sizes of the entries of a compressed bundle, read from the start of its content alone, which costs only
    /// some kilobytes. `None` where more must be read: for every other container, and where HotSwap's record follows
    /// the entries.
    ///
    /// # Errors
    /// As for [`Found::read`], but damage further on is not detected.
    pub fn table(&self) -> Result<Option<Vec<(String, u64)>>, Diagnostic> {
        let Form::CompressedBundle(_) = self.form else { return Ok(None) };
        let table = ccob::header(self.bytes).and_then(|header| ccob::table(self.bytes, &header));
        table.map_err(|error| error.in_entry(self.place.to_string()))
    }

    /// Its size without compression, as its header claims.
    pub fn plain_size(&self) -> u64 {
        let packed = match self.form {
            Form::CompressedBundle(_) => ccob::header(self.bytes).ok().map(|header| header.uncompressed),
            Form::OffloadBinary(_) => offload_binary::inflated_size(self.bytes),
            _ => None,
        };
        packed.unwrap_or(self.bytes.len() as u64)
    }

    /// Memory that reading it needs in addition to the file: its stated expanded size, 0 where nothing is compressed.
    pub fn expands_to(&self) -> u64 {
        match self.form {
            Form::CompressedBundle(_) => self.plain_size(),
            Form::OffloadBinary(_) => offload_binary::inflated_size(self.bytes).unwrap_or(0),
            _ => 0,
        }
    }

    fn read_images(&self) -> Result<Device<'a>, Diagnostic> {
        let image = |id, data: Bytes<'a>| Image { id, kind: ImageKind::of(&data), data };
        let plain_size = self.plain_size();
        let device = |images| Device { images, record: None, hash: HashState::Absent, plain_size };
        match self.form {
            Form::Bundle | Form::CompressedBundle(_) => {
                let (bundle, _) = parse_lenient(self.bytes)?;
                let (entries, record, hash) = bundle.into_parts();
                let images = entries.into_iter().map(|entry| image(Some(entry.id), entry.data)).collect();
                Ok(Device { images, record, hash, plain_size })
            }
            Form::OffloadBinary(_) => {
                let (binary, _) = OffloadBinary::parse(self.bytes)?;
                Ok(device(binary.images.into_iter().map(|found| image(found.id(), found.data)).collect()))
            }
            Form::ObjectVariant => Ok(device(vec![image(self.id.clone(), Bytes::from(self.bytes))])),
            Form::Bare => {
                let (code, record) = split_record(self.bytes)?;
                Ok(Device { record: record.map(Bytes::from), ..device(vec![image(None, Bytes::from(code))]) })
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.members.clone();
        parts.extend(self.section.clone());
        match (parts.is_empty(), self.offset) {
            (true, offset) => write!(f, "{offset:#x}"),
            (false, 0) => f.write_str(&parts.join(":")),
            (false, offset) => write!(f, "{}+{offset:#x}", parts.join(":")),
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bundle => f.write_str("offload bundle"),
            Self::CompressedBundle(version) => write!(f, "compressed bundle V{version}"),
            Self::OffloadBinary(version) => write!(f, "offload binary V{version}"),
            Self::ObjectVariant => f.write_str("object with device sections"),
            Self::Bare => f.write_str("bare"),
        }
    }
}

struct Finder<'w, 'a> {
    base: &'a [u8],
    wanted: &'w [&'w str],
    contents: Contents<'a>,
}

const VARIANT: &str = "__CLANG_OFFLOAD_BUNDLE__";
/// Begins with a comment character of the language, so it is searched for near the start.
const TEXT_BUNDLE: &[u8] = b" __CLANG_OFFLOAD_BUNDLE____START__ ";
/// Archives inside of archives; more is no real file.
const DEPTH: usize = 4;
const WRAPPER: usize = 24;

impl<'a> Finder<'_, 'a> {
    /// The offset of a part of the file. An empty section has no position; its slice may point anywhere.
    fn offset(&self, bytes: &[u8]) -> u64 {
        let start = (bytes.as_ptr() as usize).wrapping_sub(self.base.as_ptr() as usize);
        if bytes.is_empty() { 0 } else { start as u64 }
    }

    fn problem(&mut self, error: Diagnostic, place: &Place) {
        let named = !place.members.is_empty() || place.section.is_some();
        self.contents.problems.push(if named { error.in_entry(place.to_string()) } else { error });
    }

    fn refuse(&mut self, what: &str, place: &Place) {
        self.problem(Diagnostic::error(codes::UNKNOWN_FORMAT, what), place);
    }

    fn add(&mut self, form: Form, bytes: &'a [u8], id: Option<String>, place: &Place) {
        let place = Place { file_offset: self.offset(bytes), ..place.clone() };
        self.contents.found.push(Found { place, form, bytes, id });
    }

    fn search(&mut self, bytes: &'a [u8], place: &Place) {
        match bytes {
            _ if is_bundle(bytes) => self.bundles(bytes, place),
            _ if bytes.starts_with(offload_binary::MAGIC) => self.offload_binaries(bytes, place),
            [b'!', b'<', b'a', b'r', b'c', b'h', b'>', b'\n', ..] => self.archive(bytes, place),
            [b'!', b'<', b't', b'h', b'i', b'n', b'>', b'\n', ..] => {
                self.refuse("a thin archive: its members are files of their own, name those", place);
            }
            [b'K', b'P', b'A', b'K', ..] => self.refuse("a kpack archive", place),
            _ if is_text_bundle(bytes) => self.refuse("a bundle of text (assembly or source)", place),
            _ => match ImageKind::of(bytes) {
                ImageKind::CodeObject | ImageKind::DeviceObject => self.add(Form::Bare, bytes, None, place),
                // Inside of archives such files are irrelevant to a linker.
                _ => match foreign::named(bytes).filter(|_| place.members.is_empty()) {
                    Some(error) => self.problem(error, place),
                    None => self.object(bytes, place),
                },
            },
        }
    }

    /// Concatenated bundles, by their sizes.
    fn bundles(&mut self, bytes: &'a [u8], place: &Place) {
        let mut at = 0;
        loop {
            let start = match next_start(bytes, at) {
                Ok(Some(start)) => start,
                Ok(None) => return,
                Err(error) => return self.problem(error, place),
            };
            let here = Place { offset: start as u64, ..place.clone() };
            match bundle_size(&bytes[start..]) {
                Ok(size) => {
                    self.add(bundle_form(&bytes[start..]), &bytes[start..start + size], None, &here);
                    at = start + size;
                }
                Err(error) => return self.problem(shifted(error, start as u64), place),
            }
        }
    }

    fn offload_binaries(&mut self, bytes: &'a [u8], place: &Place) {
        let mut at = 0usize;
        while bytes.get(at..).is_some_and(|rest| rest.iter().any(|byte| *byte != 0)) {
            let (version, size) = match offload_binary::extent(&bytes[at..]) {
                Ok(extent) => extent,
                Err(error) => return self.problem(shifted(error, at as u64), place),
            };
            let here = Place { offset: at as u64, ..place.clone() };
            self.add(Form::OffloadBinary(version), &bytes[at..at + size as usize], None, &here);
            at = (at + size as usize).next_multiple_of(offload_binary::ALIGNMENT as usize);
        }
    }

    fn archive(&mut self, bytes: &'a [u8], place: &Place) {
        if place.members.len() >= DEPTH {
            return self.refuse("archives inside of archives, too deep", place);
        }
        let damaged = |error: object::read::Error| Diagnostic::error(codes::MALFORMED, format!("archive: {error}"));
        let archive = match ArchiveFile::parse(bytes) {
            Ok(archive) => archive,
            Err(error) => return self.problem(damaged(error), place),
        };
        for member in archive.members() {
            let read = member.and_then(|member| Ok((member.name(), member.data(bytes)?)));
            match read {
                Ok((foreign::DEBIAN, _)) => return self.problem(foreign::debian_package(), place),
                Ok((name, data)) => {
                    let mut inner = place.clone();
                    inner.members.push(String::from_utf8_lossy(name).into_owned());
                    self.search(data, &inner);
                }
                // The next header is not where this one states: nothing after it can be trusted.
                Err(error) => return self.problem(damaged(error), place),
            }
        }
    }

    /// Sections of a host file. A file of an unknown kind holds none.
    fn object(&mut self, bytes: &'a [u8], place: &Place) {
        if object::FileKind::parse(bytes).is_err() {
            return;
        }
        let file = match object::File::parse(bytes) {
            Ok(file) => file,
            Err(error) => {
                let what = format!("object file: {error}");
                return self.problem(Diagnostic::error(codes::MALFORMED, what), place);
            }
        };
        let is_linked = matches!(file.kind(), object::ObjectKind::Executable | object::ObjectKind::Dynamic);
        if file.format() == object::BinaryFormat::Elf && is_linked && file.sections().next().is_none() {
            let what = "the section headers are stripped: nothing says where its device code is";
            let error = Diagnostic::error(codes::UNKNOWN_FORMAT, what);
            return self.problem(error.advise("use the file as it was before `--strip-section-headers`"), place);
        }
        for section in file.sections() {
            let Ok(name) = section.name() else { continue };
            let role = Role::of(name);
            let here = Place { section: Some(name.to_owned()), ..place.clone() };
            if self.wanted.contains(&name) {
                let data = section.data().unwrap_or_default();
                self.contents.sections.push((Place { file_offset: self.offset(data), ..here.clone() }, data));
            }
            match (role, section.data()) {
                (Role::Other, _) => {}
                (_, Err(error)) => {
                    self.problem(Diagnostic::error(codes::MALFORMED, format!("section: {error}")), &here);
                }
                (Role::FatBinary, Ok(data)) => self.bundles(data, &here),
                (Role::Offloading, Ok(data)) => self.offload_binaries(data, &here),
                (Role::Variant, Ok(data)) => {
                    let id = name.strip_prefix(VARIANT).unwrap_or_default().to_owned();
                    self.add(Form::ObjectVariant, data, Some(id), &here);
                }
                (Role::Wrapper, Ok(data)) => self.wrappers(data, &here),
                (Role::Kpack, Ok(_)) => self.refuse("a kpack reference: the code is in .kpack files", &here),
            }
        }
    }

    fn wrappers(&mut self, data: &[u8], place: &Place) {
        if data.chunks(WRAPPER).any(|wrapper| wrapper.starts_with(b"HIPK")) {
            self.refuse("a kpack wrapper (HIPK): the code is in .kpack files", place);
        }
    }
}

/// The purpose of a section. PE images truncate names to 8 characters.
enum Role {
    FatBinary,
    Offloading,
    Variant,
    Wrapper,
    Kpack,
    Other,
}

impl Role {
    fn of(name: &str) -> Self {
        match name {
            ".hip_fatbin" | "__hip_fatbin" | ".hip_fat" => Self::FatBinary,
            ".llvm.offloading" | ".llvm.of" => Self::Offloading,
            ".hipFatBinSegment" | "__fatbin" | ".hipFatB" => Self::Wrapper,
            ".rocm_kpack_ref" | ".rocm_kp" => Self::Kpack,
            _ if name.starts_with(VARIANT) => Self::Variant,
            _ => Self::Other,
        }
    }
}

fn bundle_form(bytes: &[u8]) -> Form {
    match ccob::header(bytes) {
        Ok(header) => Form::CompressedBundle(header.compression.version),
        Err(_) => Form::Bundle,
    }
}

fn is_text_bundle(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(TEXT_BUNDLE.len() + 3)];
    start.windows(TEXT_BUNDLE.len()).any(|window| window == TEXT_BUNDLE)
}
