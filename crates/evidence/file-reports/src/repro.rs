//! `--save-repro`: the data for finding out why code was refused, or why it was rewritten the way it was.
//!
//! | file | content |
//! |---|---|
//! | `command.txt` | the command that does it again, in that directory; version and build of HotSwap |
//! | `input` | the input |
//! | `report.json` | the report |
//! | `entry-N.co` | in files with fat binaries: the code object of a refused entry |
//! | `NAME.s`, `NAME.bin` | a refused function: instructions with offsets, bytes |
//!
//! Invariants: the directory is new, so that it contains nothing of an earlier run; it is created completely or not at
//! all.

use crate::rewrite_report::RewriteReport;
use hotswap_code_object::{CodeMap, CodeSection, is_code_object};
use hotswap_isa::{Isa, Target};
use hotswap_plan::{IDENTITY, VERSION};
use hotswap_report::{Diagnostic, codes, text};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// A directory that does not exist yet.
pub struct ReproDirectory {
    path: PathBuf,
}

fn cannot(error: &std::io::Error, path: &Path) -> Diagnostic {
    Diagnostic::cannot_write(path, error)
}

impl ReproDirectory {
    /// Checks the name before the work, so that a wrong one does not cost it.
    ///
    /// # Errors
    /// Where something has that name already.
    pub fn new(path: &Path) -> Result<Self, Diagnostic> {
        if hotswap_files::reads::is_there(path)? {
            return Err(Diagnostic::error(codes::CANNOT_WRITE, "it is there already")
                .in_file(path)
                .advise("name a new directory"));
        }
        Ok(Self { path: path.to_owned() })
    }

    /// Writes everything to a temporary directory next to it, then renames that. `command` does it again in that directory.
    ///
    /// # Errors
    /// Where a file cannot be written, and the reason why a container cannot be read.
    pub fn save(&self, command: &str, input: &[u8], report: &RewriteReport<'_>) -> Result<(), Diagnostic> {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", std::process::id()));
        let draft = self.path.with_file_name(name);
        let result = fs::create_dir(&draft).map_err(|error| cannot(&error, &draft));
        let result = result.and_then(|()| {
            fill(&draft, command, input, report)?;
            fs::rename(&draft, &self.path).map_err(|error| cannot(&error, &self.path))
        });
        if result.is_err() {
            // The first error is the one to report.
            let _ = fs::remove_dir_all(&draft);
        }
        result
    }
}

fn put(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), Diagnostic> {
    let path = directory.join(name);
    fs::write(&path, bytes).map_err(|error| cannot(&error, &path))
}

fn fill(directory: &Path, command: &str, input: &[u8], report: &RewriteReport<'_>) -> Result<(), Diagnostic> {
    put(directory, "input", input)?;
    put(directory, "command.txt", format!("{command}\n# HotSwap {VERSION} ({IDENTITY})\n").as_bytes())?;
    put(directory, "report.json", text::json(&report.to_json(None)).as_bytes())?;
    if is_code_object(input) {
        let refused = report.objects.iter().flat_map(|object| &object.refused);
        return functions(directory, input, refused.collect());
    }
    let refused = report.objects.iter().filter(|object| !object.refused.is_empty());
    let wanted: Vec<_> = refused
        .flat_map(|object| object.refused.iter().map(move |reason| RefusedPlace { place: &object.place, reason }))
        .collect();
    entries(directory, input, &wanted)
}

/// A refusal of code in a container.
struct RefusedPlace<'r> {
    place: &'r str,
    reason: &'r Diagnostic,
}

/// The code objects of refused entries, each once, with their functions.
fn entries(directory: &Path, input: &[u8], refused: &[RefusedPlace<'_>]) -> Result<(), Diagnostic> {
    let contents = hotswap_bundle::find_containers(input);
    let mut number = 0;
    for found in &contents.found {
        let place = found.place.to_string();
        let device = found.read()?;
        for image in device.images.iter().filter(|image| is_code_object(&image.data)) {
            let id = image.id.clone().unwrap_or_default();
            let reasons = refused.iter().filter(|one| *one.place == place && is_reason_of_entry(one.reason, &id));
            let reasons: Vec<&Diagnostic> = reasons.map(|one| one.reason).collect();
            if !id.is_empty() && !reasons.is_empty() {
                number += 1;
                put(directory, &format!("entry-{number}.co"), &image.data)?;
                functions(directory, &image.data, reasons)?;
            }
        }
    }
    Ok(())
}

fn is_reason_of_entry(reason: &Diagnostic, id: &str) -> bool {
    reason.place.entry.as_ref().is_some_and(|entry| entry.starts_with(id))
}

/// The functions that the reasons name, each once.
fn functions(directory: &Path, data: &[u8], reasons: Vec<&Diagnostic>) -> Result<(), Diagnostic> {
    let Ok(map) = CodeMap::read(data) else { return Ok(()) };
    let mut done = BTreeSet::new();
    for reason in reasons {
        let Some(offset) = reason.place.offset else { continue };
        let entry = reason.place.entry.as_deref().unwrap_or_default();
        let Some(section) = map.sections.iter().find(|section| entry.ends_with(&*section.name)) else { continue };
        let Some(NamedFunction { name, range }) = function(section, offset as usize) else { continue };
        if !done.insert((section.name.to_string(), range.start)) {
            continue;
        }
        let file: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' })
            .take(100)
            .collect();
        let file = format!("{}-{file}", done.len());
        let bytes = section.bytes.get(range.clone()).unwrap_or_default();
        put(directory, &format!("{file}.bin"), bytes)?;
        put(directory, &format!("{file}.s"), listing(&map, &name, range.start, bytes).as_bytes())?;
    }
    Ok(())
}

/// A function of a section.
struct NamedFunction {
    name: String,
    range: std::ops::Range<usize>,
}

/// The function around an offset: from its symbol to its end, or to the next symbol.
fn function(section: &CodeSection<'_>, offset: usize) -> Option<NamedFunction> {
    let (symbol, _) = section.name_at(offset)?;
    let next = section.symbols.iter().map(|other| other.offset).find(|other| *other > symbol.offset);
    let end = if symbol.size > 0 { symbol.offset + symbol.size } else { next.unwrap_or(section.bytes.len()) };
    Some(NamedFunction { name: symbol.name.to_string(), range: symbol.offset..end.min(section.bytes.len()) })
}

/// Instructions as assembly, each with its offset in the section and its bytes.
fn listing(map: &CodeMap<'_>, name: &str, start: usize, bytes: &[u8]) -> String {
    let mut out = format!("// {name}\n");
    let Some(isa) = map.processor.and_then(|processor| Target::find(processor.name)).map(Isa::new) else { return out };
    let mut walk = isa.walk(bytes);
    loop {
        let at = walk.offset();
        let Some((_, inst)) = walk.next() else { return out };
        let text = inst.map_or_else(|_| "// no instruction".to_owned(), |inst| inst.text(isa).to_string());
        let hex: String = bytes[at..walk.offset()].iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = writeln!(out, "\t{text:<60} // {:#x}: {hex}", start + at);
    }
}
