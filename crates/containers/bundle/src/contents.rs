//! Finding every container of device code in a file of any kind.
//!
//! [`open`] only locates: bundles are decompressed by [`FoundContainer::read`], one at a time, and nothing
//! is copied, so that a mapped library of a gigabyte costs its headers only.
//!
//! The forms of containers are rows of [`FORMATS`]; here is what they are found in: archives and sections of objects.
//!
//! Invariant: anything that looks like a container and cannot be read is reported as a problem, never skipped.

use crate::bare::CodeObjects;
use crate::bytes::shift_offset;
use crate::container::{ContainerFormat, ContainerPosition, FoundContainer};
use crate::device_sections::DeviceSections;
use crate::fatbin::BundleFormat;
use crate::foreign;
use crate::kernel_archive::ArchivedBinaries;
use crate::loose;
use crate::offload_binary::OffloadBinaries;
use hotswap_report::{Diagnostic, codes};
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSection};

/// Every form; the first one that bytes begin as, or that a section is named for, is taken.
const FORMATS: &[&dyn ContainerFormat] =
    &[&BundleFormat, &OffloadBinaries, &DeviceSections, &ArchivedBinaries, &CodeObjects];

/// The contents of a file.
#[derive(Debug, Default)]
pub struct FoundContents<'a> {
    /// All bytes of the file.
    pub(crate) file: &'a [u8],
    /// Containers in the order of the file.
    pub found: Vec<FoundContainer<'a>>,
    /// Sections with the requested names, and their bytes.
    pub sections: Vec<(ContainerPosition, &'a [u8])>,
    /// Containers that could not be read.
    pub problems: Vec<Diagnostic>,
}

/// Finds every container in `bytes`: a bundle, concatenated bundles, an OffloadBinary, a code object, an ELF, COFF or
/// Mach-O file with such sections, or an archive of those.
pub fn find_containers(bytes: &[u8]) -> FoundContents<'_> {
    open_with(bytes, &[])
}

/// As [`open`]; in the same pass, the sections with those names in ELF, COFF and Mach-O files.
pub fn open_with<'a>(bytes: &'a [u8], sections: &[&str]) -> FoundContents<'a> {
    let mut finder = ContainerFinder {
        base: bytes,
        wanted: sections,
        contents: FoundContents { file: bytes, ..FoundContents::default() },
    };
    finder.search_part(bytes, &ContainerPosition::default());
    finder.contents
}

impl FoundContents<'_> {
    /// The problem of a file without containers. It names code objects that are there without one.
    pub fn missing_container(&self) -> Diagnostic {
        loose::missing_container(self.file)
    }
}

struct ContainerFinder<'w, 'a> {
    base: &'a [u8],
    wanted: &'w [&'w str],
    contents: FoundContents<'a>,
}

/// The sections that name the kernel archives of a host file: in ELF, and in PE, where names have 8 characters.
pub const ARCHIVE_REFERENCES: &[&str] = &[".rocm_kpack_ref", ".kpackrf"];

/// Begins with a comment character of the language, so it is searched for near the start.
const TEXT_BUNDLE: &[u8] = b" __CLANG_OFFLOAD_BUNDLE____START__ ";
/// Archives inside of archives; more is not a real file.
const DEPTH: usize = 4;
const WRAPPER: usize = 24;

impl<'a> ContainerFinder<'_, 'a> {
    /// The offset of a part of the file. An empty section lacks a position; its slice may point anywhere.
    fn offset_in_file(&self, bytes: &[u8]) -> u64 {
        let start = (bytes.as_ptr() as usize).wrapping_sub(self.base.as_ptr() as usize);
        if bytes.is_empty() { 0 } else { start as u64 }
    }

    fn note_problem(&mut self, error: Diagnostic, place: &ContainerPosition) {
        let named = !place.members.is_empty() || place.section.is_some();
        self.contents.problems.push(if named { error.in_entry(place.to_string()) } else { error });
    }

    fn note_refusal(&mut self, what: &str, place: &ContainerPosition) {
        self.note_problem(Diagnostic::error(codes::UNKNOWN_FORMAT, what), place);
    }

    fn search_part(&mut self, bytes: &'a [u8], place: &ContainerPosition) {
        if let Some(format) = FORMATS.iter().find(|format| format.begins(bytes)) {
            return self.search_containers(*format, bytes, None, place);
        }
        match bytes {
            [b'!', b'<', b'a', b'r', b'c', b'h', b'>', b'\n', ..] => self.search_archive(bytes, place),
            [b'!', b'<', b't', b'h', b'i', b'n', b'>', b'\n', ..] => {
                self.note_refusal("a thin archive: its members are files of their own, name those", place);
            }
            _ if is_text_bundle(bytes) => self.note_refusal("a bundle of text (assembly or source)", place),
            // Inside of archives such files are irrelevant to a linker.
            _ => match foreign::report_foreign_format(bytes).filter(|_| place.members.is_empty()) {
                Some(error) => self.note_problem(error, place),
                None => self.search_object(bytes, place),
            },
        }
    }

    /// The containers that follow each other in a section or file.
    fn search_containers(
        &mut self,
        format: &'static dyn ContainerFormat,
        bytes: &'a [u8],
        id: Option<&str>,
        place: &ContainerPosition,
    ) {
        let mut at = 0;
        loop {
            let start = match format.next(bytes, at) {
                Ok(Some(start)) => start,
                Ok(None) => return,
                Err(error) => return self.note_problem(error, place),
            };
            let (form, size) = match format.extent(&bytes[start..]) {
                Ok(extent) => extent,
                Err(error) => return self.note_problem(shift_offset(error, start as u64), place),
            };
            let bytes = &bytes[start..start + size];
            let place =
                ContainerPosition { offset: start as u64, file_offset: self.offset_in_file(bytes), ..place.clone() };
            let found = FoundContainer { place, form, bytes, id: id.map(str::to_owned), format };
            match format.parts(bytes) {
                None => self.contents.found.push(found),
                Some(parts) => self.contents.found.extend(parts.into_iter().map(|part| found.part(part))),
            }
            at = start + size;
            // A section that is a container as a whole may be empty: nothing can follow it.
            if size == 0 {
                return;
            }
        }
    }

    fn search_archive(&mut self, bytes: &'a [u8], place: &ContainerPosition) {
        if place.members.len() >= DEPTH {
            return self.note_refusal("archives inside of archives, too deep", place);
        }
        let archive = match ArchiveFile::parse(bytes) {
            Ok(archive) => archive,
            Err(error) => return self.note_problem(archive_error(error), place),
        };
        for member in archive.members() {
            let read = member.and_then(|member| Ok((member.name(), member.data(bytes)?)));
            match read {
                Ok((foreign::DEBIAN, _)) => return self.note_problem(foreign::debian_package(), place),
                Ok((name, data)) => {
                    let mut inner = place.clone();
                    inner.members.push(String::from_utf8_lossy(name).into_owned());
                    self.search_part(data, &inner);
                }
                // The next header is not where this one states: nothing after it can be trusted.
                Err(error) => return self.note_problem(archive_error(error), place),
            }
        }
    }

    /// Sections of a host file. A file of an unknown kind holds none.
    fn search_object(&mut self, bytes: &'a [u8], place: &ContainerPosition) {
        if object::FileKind::parse(bytes).is_err() {
            return;
        }
        let file = match object::File::parse(bytes) {
            Ok(file) => file,
            Err(error) => {
                let what = format!("object file: {error}");
                return self.note_problem(Diagnostic::error(codes::MALFORMED, what), place);
            }
        };
        let is_linked = matches!(file.kind(), object::ObjectKind::Executable | object::ObjectKind::Dynamic);
        if file.format() == object::BinaryFormat::Elf && is_linked && file.sections().next().is_none() {
            let what = "the section headers are stripped: nothing says where its device code is";
            let error = Diagnostic::error(codes::UNKNOWN_FORMAT, what);
            return self.note_problem(error.advise("use the file as it was before `--strip-section-headers`"), place);
        }
        for section in file.sections() {
            let name = match section.name() {
                Ok(name) => name,
                // Tools strip the table of long names from programs for Windows.
                Err(_) if file.format() != object::BinaryFormat::Elf => continue,
                Err(error) => {
                    let what = format!("the name of section {}: {error}", section.index().0);
                    self.note_problem(Diagnostic::error(codes::MALFORMED, what), place);
                    continue;
                }
            };
            let here = ContainerPosition { section: Some(name.to_owned()), ..place.clone() };
            if self.wanted.contains(&name) {
                let data = section.data().unwrap_or_default();
                self.contents
                    .sections
                    .push((ContainerPosition { file_offset: self.offset_in_file(data), ..here.clone() }, data));
            }
            let Some(role) = SectionRole::of_section(name) else { continue };
            match (role, section.data()) {
                (_, Err(error)) => {
                    self.note_problem(Diagnostic::error(codes::MALFORMED, format!("section: {error}")), &here);
                }
                (SectionRole::Containers(format), Ok(data)) => {
                    self.search_containers(format, data, format.entry_id(name), &here);
                }
                (SectionRole::Wrapper, Ok(data)) => self.check_wrappers(data, &here),
                (SectionRole::Kpack, Ok(_)) => {
                    self.note_refusal("a kpack reference: the code is in .kpack files", &here)
                }
            }
        }
    }

    fn check_wrappers(&mut self, data: &[u8], place: &ContainerPosition) {
        if data.chunks(WRAPPER).any(|wrapper| wrapper.starts_with(b"HIPK")) {
            self.note_refusal("a kpack wrapper (HIPK): the code is in .kpack files", place);
        }
    }
}

fn archive_error(error: object::read::Error) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, format!("archive: {error}"))
}

/// The purpose of a section. PE images truncate names to 8 characters.
enum SectionRole {
    Containers(&'static dyn ContainerFormat),
    Wrapper,
    Kpack,
}

impl SectionRole {
    fn of_section(name: &str) -> Option<Self> {
        match name {
            ".hipFatBinSegment" | "__fatbin" | ".hipFatB" => Some(Self::Wrapper),
            _ if ARCHIVE_REFERENCES.contains(&name) => Some(Self::Kpack),
            _ => FORMATS.iter().find(|format| format.is_section(name)).map(|format| Self::Containers(*format)),
        }
    }
}

fn is_text_bundle(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(TEXT_BUNDLE.len() + 3)];
    start.windows(TEXT_BUNDLE.len()).any(|window| window == TEXT_BUNDLE)
}
