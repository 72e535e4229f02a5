//! Objects with relocatable device code that a link would lose.
//!
//! Clang's two offload drivers keep device code of `-fgpu-rdc` objects in different sections and
//! link it by different means. Given the other driver's objects, or no device link at all, the
//! link fails with a message about undefined symbols at best; at worst it succeeds and the
//! program lacks device code. Only names of sections are read here.
//!
//! Absent on purpose: objects whose fat binary is finished (`.hip_fatbin`); they link like any
//! other. Shared libraries: theirs is finished, too.

use crate::command::{ClangCommand, CommandInput, InputKind};
use hotswap_bundle::{BitcodeUnit, read_bitcode_unit};
use hotswap_files::{InputFile, reads};
use hotswap_plan::{UNIT_PLAN_SECTION, UNIT_REFERENCE_SECTION};
use hotswap_report::{Diagnostic, codes};
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSection, ReadRef};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Section of relocatable device code by the new driver.
const NEW: &str = ".llvm.offloading";
/// Begin of the sections of relocatable device code by the old driver.
const OLD: &str = "__CLANG_OFFLOAD_BUNDLE__";

/// Sections of finished fat binaries; names in COFF are cut.
const FINISHED: [&str; 2] = [".hip_fatbin", ".hip_fat"];

/// The first object of each kind among the inputs.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct RelocatableInputs {
    /// Made by the old driver.
    pub old: Option<String>,
    /// Made by the new driver.
    pub new: Option<String>,
    /// With a finished fat binary.
    pub finished: Option<String>,
    /// An input that is neither an object nor a shared library: bitcode, a linker script, a file that is not there.
    pub unknown: Option<String>,
}

impl RelocatableInputs {
    /// Whether the output of a link of these inputs may have device code of its own.
    /// Shared libraries have theirs themselves.
    pub fn may_have_device_code(&self, command: &ClangCommand, args: &[OsString]) -> bool {
        let found = [&self.old, &self.new, &self.finished, &self.unknown];
        found.into_iter().any(Option::is_some)
            || command.inputs.iter().any(is_compiled_input)
            || names_hidden_input(args)
    }
}

fn is_compiled_input(input: &CommandInput) -> bool {
    !matches!(input.kind, InputKind::Link | InputKind::C | InputKind::Cxx)
}

/// Whether the host linker gets inputs that are not the driver's.
fn names_hidden_input(args: &[OsString]) -> bool {
    let is_file =
        |value: &[u8]| !value.starts_with(b"-") && [&b".a"[..], b".o", b".so"].iter().any(|end| value.ends_with(end));
    let follows_channel = args.windows(2).any(|pair| pair[0] == "-Xlinker" && is_file(pair[1].as_bytes()));
    let mut joined = args.iter().filter_map(|arg| arg.as_bytes().strip_prefix(b"-Wl,"));
    follows_channel || joined.any(|values| values.split(|byte| *byte == b',').any(is_file))
}

/// Reads the section names of the command's objects and archives. Files that are not there or not objects
/// are left to the linker.
///
/// # Errors
/// [`hotswap_report::codes::CANNOT_READ`] with the file.
pub fn find_relocatable(command: &ClangCommand) -> Result<RelocatableInputs, Diagnostic> {
    let mut found = RelocatableInputs::default();
    for path in input_files(command)? {
        let Some(bytes) = open_object(&path)? else {
            found.unknown.get_or_insert_with(|| path.display().to_string());
            continue;
        };
        // A file that is not an object is left to the linker.
        if look_into(&path, &bytes, &mut found)?.is_err() {
            found.unknown.get_or_insert_with(|| path.display().to_string());
        }
    }
    Ok(found)
}

/// The objects and archives that a command links.
///
/// # Errors
/// [`hotswap_report::codes::CANNOT_READ`] for a library that cannot be searched.
pub(crate) fn input_files(command: &ClangCommand) -> Result<Vec<PathBuf>, Diagnostic> {
    let inputs = command.inputs.iter().filter(|input| input.kind == InputKind::Link);
    let mut files: Vec<PathBuf> = inputs.map(|input| PathBuf::from(&input.path)).collect();
    for name in &command.libraries {
        files.extend(find_library(name, &command.library_directories)?);
    }
    Ok(files)
}

/// `-lname` is `libname.a`, `-l:file` is that file.
fn find_library(name: &OsString, directories: &[OsString]) -> Result<Option<PathBuf>, Diagnostic> {
    let bytes = name.as_bytes();
    let file = match bytes.strip_prefix(b":") {
        Some(file) => file.to_vec(),
        None => [b"lib", bytes, b".a"].concat(),
    };
    for path in directories.iter().map(|directory| Path::new(directory).join(OsStr::from_bytes(&file))) {
        if reads::is_regular(&path)? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// A regular file that is linked; `None` where there is none.
///
/// # Errors
/// [`hotswap_report::codes::CANNOT_READ`] with the file.
pub(crate) fn open_object(path: &Path) -> Result<Option<InputFile>, Diagnostic> {
    if reads::is_regular(path)? { hotswap_files::open_input(path).map(Some) } else { Ok(None) }
}

/// The member of a thin archive, which is a file beside it; `None` where there is none.
///
/// # Errors
/// [`hotswap_report::codes::CANNOT_READ`] with the file.
pub(crate) fn open_member(archive: &Path, name: &[u8]) -> Result<Option<InputFile>, Diagnostic> {
    open_object(&archive.with_file_name(OsStr::from_bytes(name)))
}

fn look_into(path: &Path, bytes: &[u8], found: &mut RelocatableInputs) -> Result<object::Result<()>, Diagnostic> {
    let name = path.display().to_string();
    let Ok(archive) = ArchiveFile::parse(bytes) else { return Ok(note(bytes, &name, found)) };
    for member in archive.members() {
        let member = match member {
            Ok(member) => member,
            Err(error) => return Ok(Err(error)),
        };
        if member.is_thin() {
            // One member that is not an object does not hide the others.
            let _ = open_member(path, member.name())?.map(|bytes| note(&bytes[..], &name, found));
            continue;
        }
        let label = format!("{name}({})", String::from_utf8_lossy(member.name()));
        if let Ok(bytes) = member.data(bytes) {
            let _ = note(bytes, &label, found);
        }
    }
    Ok(Ok(()))
}

fn note<'data>(data: impl ReadRef<'data>, name: &str, found: &mut RelocatableInputs) -> object::Result<()> {
    // Host code in bitcode keeps the new driver's device code among its constants.
    let size = if data.read_bytes_at(0, 4) == Ok(&b"BC\xc0\xde"[..]) { data.len().unwrap_or(0) } else { 0 };
    if bitcode_unit(data.read_bytes_at(0, size).unwrap_or_default())
        .is_some_and(|unit| !unit.offload_binaries.is_empty())
    {
        found.new.get_or_insert_with(|| name.to_owned());
    }
    let file = object::File::parse(data)?;
    if file.kind() != object::ObjectKind::Relocatable {
        return Ok(());
    }
    for section in file.sections() {
        let section = section.name()?;
        if FINISHED.contains(&section) {
            found.finished.get_or_insert_with(|| name.to_owned());
        } else if section == NEW {
            found.new.get_or_insert_with(|| name.to_owned());
        } else if section.starts_with(OLD) {
            found.old.get_or_insert_with(|| name.to_owned());
        }
    }
    Ok(())
}

/// A unit whose host code is bitcode.
pub fn bitcode_unit(bytes: &[u8]) -> Option<BitcodeUnit> {
    read_bitcode_unit(bytes, UNIT_PLAN_SECTION, UNIT_REFERENCE_SECTION)
}

/// Checks the result: `new_driver` returns which driver links, where the command does not state it.
///
/// # Errors
/// [`codes::MIXED_DRIVERS`], [`codes::RDC_NOT_LINKED`], naming the objects; those of `new_driver`.
pub fn check(
    command: &ClangCommand,
    found: &RelocatableInputs,
    new_driver: impl FnOnce() -> Result<bool, Diagnostic>,
) -> Result<(), Diagnostic> {
    let (old, new) = match (&found.old, &found.new) {
        (None, None) => return Ok(()),
        (Some(old), Some(new)) => return Err(mixed(format!("{old} is of the old one, {new} of the new one"))),
        (old, new) => (old, new),
    };
    let name = old.as_ref().or(new.as_ref()).map_or("", String::as_str);
    if !device_link(command, new.is_some()) {
        return Err(Diagnostic::error(codes::RDC_NOT_LINKED, name));
    }
    let forced = command.offload_link || command.openmp;
    match (new_driver()?, old.is_some()) {
        (true, true) => Err(mixed(format!("{name} is of the old one, and the new one links"))),
        (false, false) if !forced => Err(mixed(format!("{name} is of the new one, and the old one links"))),
        _ => Ok(()),
    }
}

fn mixed(what: String) -> Diagnostic {
    Diagnostic::error(codes::MIXED_DRIVERS, what)
}

/// Whether a device link happens at all. Measured with clang 22 and 23: the old driver needs both `-fgpu-rdc` and a HIP
/// link; the new one any of several flags.
fn device_link(command: &ClangCommand, new: bool) -> bool {
    if new {
        command.is_hip() || command.offload_link || command.openmp || command.new_driver == Some(true)
    } else {
        command.is_hip() && command.rdc
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::scan;
    use object::write::{self, SectionId};
    use object::{Architecture, BinaryFormat, Endianness, SectionKind};

    fn with_section(name: &str) -> Vec<u8> {
        let mut object = write::Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        let id: SectionId = object.add_section(Vec::new(), name.as_bytes().to_vec(), SectionKind::Data);
        object.append_section_data(id, b"x", 1);
        object.write().unwrap()
    }

    /// A System V archive of one member.
    fn archive(name: &str, member: &[u8]) -> Vec<u8> {
        let mut bytes = b"!<arch>\n".to_vec();
        let header = format!("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", format!("{name}/"), 0, 0, 0, 644, member.len());
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(member);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
        bytes
    }

    fn verdict(text: &str, old: bool, new: bool, new_driver: bool) -> &'static str {
        let words: Vec<_> = text.split_whitespace().map(OsString::from).collect();
        let name = |on: bool, name: &str| on.then(|| name.to_owned());
        let found =
            RelocatableInputs { old: name(old, "old.o"), new: name(new, "new.o"), ..RelocatableInputs::default() };
        check(&scan(&words), &found, || Ok(new_driver)).map_or_else(|error| error.code.id, |()| "ok")
    }

    #[test]
    fn sections_tell_the_driver_in_objects_and_archives() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| std::fs::write(dir.path().join(name), bytes).unwrap();
        write("old.o", &with_section("__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx1030"));
        write("new.o", &with_section(".llvm.offloading"));
        write("plain.o", &with_section(".hip_fatbin"));
        write("libnew.a", &archive("in.o", &with_section(".llvm.offloading")));
        write("junk.o", b"\x7fELF junk");
        write("damaged.a", b"!<arch>\ntruncated");
        let at = |name: &str| dir.path().join(name).display().to_string();
        let find = |text: &str| {
            let words: Vec<_> = text.replace('@', &at("")).split_whitespace().map(OsString::from).collect();
            find_relocatable(&scan(&words)).unwrap()
        };
        let both = find("@plain.o @junk.o @damaged.a @absent.o /dev/null - @old.o @new.o");
        assert_eq!(both.finished, Some(at("plain.o")));
        assert_eq!(both.unknown, Some(at("junk.o")));
        assert_eq!((both.old, both.new), (Some(at("old.o")), Some(at("new.o"))));
        let inside = Some(format!("{}(in.o)", at("libnew.a")));
        assert_eq!(find("@libnew.a").new, inside);
        assert_eq!(find("-L@ -lnew").new, inside);
        assert_eq!(find("-L@ -l:new.o").new, Some(at("new.o")));
        let plain = find("@plain.o");
        assert_eq!(plain, RelocatableInputs { finished: Some(at("plain.o")), ..RelocatableInputs::default() });
        write("host.o", &with_section(".text.x"));
        for (text, expected) in [
            ("@host.o", false),
            ("@host.o main.cpp -lm", false),
            ("@host.o k.hip", true),
            ("@plain.o", true),
            ("@junk.o", true),
            ("@host.o -Wl,--start-group,libk.a", true),
            ("@host.o -Xlinker k.o", true),
            ("@host.o -Wl,-rpath,/lib -Xlinker --as-needed", false),
        ] {
            let words: Vec<_> = text.replace('@', &at("")).split_whitespace().map(OsString::from).collect();
            let command = scan(&words);
            assert_eq!(find_relocatable(&command).unwrap().may_have_device_code(&command, &words), expected, "{text}");
        }
    }

    #[test]
    fn links_that_lose_device_code_are_told() {
        const RDC: &str = "HS0403";
        const MIXED: &str = "HS0404";
        for (text, old, new, new_driver, expected) in [
            ("a.o", false, false, true, "ok"),
            ("a.o", true, true, true, MIXED),
            ("a.o", true, false, false, RDC),
            ("a.o", false, true, true, RDC),
            ("--hip-link a.o", true, false, false, RDC),
            ("--hip-link -fgpu-rdc a.o", true, false, false, "ok"),
            ("--hip-link -fgpu-rdc a.o", true, false, true, MIXED),
            ("--hip-link a.o", false, true, true, "ok"),
            ("--hip-link -fgpu-rdc a.o", false, true, false, MIXED),
            ("--offload-link a.o", false, true, false, "ok"),
            ("--offload-new-driver a.o", false, true, true, "ok"),
            ("-fgpu-rdc a.hip b.o", false, true, true, "ok"),
            ("-fopenmp a.o", false, true, false, "ok"),
        ] {
            assert_eq!(verdict(text, old, new, new_driver), expected, "{text} {old} {new} {new_driver}");
        }
    }
}
