//! The relocatable device code among a link's inputs, unit by unit: the targets for which each unit was compiled, and
//! the others for which its compilation has seen the same program.
//!
//! A unit whose text depends on the GPU's name has bitcode for each target with a text of its own. Any other unit has
//! that of the plan's source and a *text mark*, which the interposer writes (`hotswap_plan::TextMark`). Both together
//! decide for each target whether the linked code object may be derived, must be linked, or cannot be made. A unit that was
//! coalesced has the source's bitcode under the name of each sibling, too, so that any link can use it; its mark tells
//! which.
//!
//! Invariants: a target is derived from another one only where every unit has the same text for both, or where no unit
//! has a mark; units without device code do not matter.
//!
//! Absent on purpose: linking, and lending one target's bitcode to another (the interposer).

use crate::command::ClangCommand;
use crate::objects::{bitcode_unit, input_files, open_member, open_object};
use hotswap_bundle::{BitcodeUnit, EntryId, OffloadBinary};
use hotswap_pipeline::UnitKernels;
use hotswap_plan::{Plan, TextMark, UNIT_PLAN_SECTION, UNIT_SYMBOL, parse_unit_plans};
use hotswap_report::Diagnostic;
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::BTreeSet;
use std::path::Path;

/// Section of relocatable device code by the new driver.
const NEW: &str = ".llvm.offloading";
/// Begin of the sections of relocatable device code by the old driver.
const OLD: &str = "__CLANG_OFFLOAD_BUNDLE__";
/// `OffloadKind` of HIP's images.
const HIP: u16 = 4;

/// The device code of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceUnit {
    /// File, with the member of an archive.
    pub name: String,
    /// Whether it is a member of an archive.
    pub in_archive: bool,
    /// Processors that it has bitcode for.
    pub targets: BTreeSet<String>,
    /// The others for which its text is the same.
    pub mark: TextMark,
    /// Whether its host code is bitcode (`-flto`).
    pub is_bitcode: bool,
    /// Whether the old offload driver made it.
    pub is_old: bool,
    /// The section with the plans that it needs.
    pub plan_text: String,
    /// Undefined symbols that the link defines which carries these plans out.
    pub symbols: Vec<String>,
}

impl DeviceUnit {
    /// The processor whose bitcode replaces the target's; `None` where it is unknown.
    pub fn text_of<'u>(&'u self, target: &'u str) -> Option<&'u str> {
        let marked = self.mark.source_of(target).filter(|source| self.targets.contains(*source));
        marked.or_else(|| self.targets.contains(target).then_some(target))
    }

    /// The plans that its link must carry out; more than one in an object of several units.
    ///
    /// # Errors
    /// [`hotswap_report::codes::PLAN_SYNTAX`] where one cannot be read.
    pub fn plans(&self) -> Result<Vec<Plan>, Diagnostic> {
        parse_unit_plans(&self.plan_text).map_err(|error| error.in_file(&self.name))
    }
}

/// How the code for a target is made in a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Linked {
    /// Derived from the linked code object of that processor, which has the same text in every unit.
    Derived(String),
    /// Derived according to the plan: that unit lacks a mark about its text.
    NotChecked(String),
    /// Linked from separate bitcode, because that unit has some.
    Own(String),
    /// Neither: the first unit has separate bitcode, the second neither that nor a mark.
    Mixed(String, String),
}

/// The decision about a target.
#[derive(Debug)]
pub struct LinkedTarget {
    pub target: String,
    pub linked: Linked,
}

/// Decides for each target, in their order; `source` is the plan's for all of them.
pub fn decide(units: &[DeviceUnit], source: &str, targets: &[&str]) -> Vec<LinkedTarget> {
    let mut linked: Vec<&str> = vec![source];
    let mut decided = Vec::new();
    for target in targets {
        let how = decide_one(units, source, target, &linked);
        if matches!(how, Linked::Own(_)) {
            linked.push(target);
        }
        decided.push(LinkedTarget { target: (*target).to_owned(), linked: how });
    }
    decided
}

fn decide_one(units: &[DeviceUnit], source: &str, target: &str, linked: &[&str]) -> Linked {
    let own = units.iter().find(|unit| unit.text_of(target) == Some(target));
    let silent = units.iter().find(|unit| unit.text_of(target).is_none());
    match (own, silent) {
        (Some(own), Some(silent)) => Linked::Mixed(own.name.clone(), silent.name.clone()),
        (None, Some(silent)) => Linked::NotChecked(silent.name.clone()),
        (own, None) => match linked.iter().find(|one| has_same_unit_text(one, units, target)) {
            Some(other) => Linked::Derived((*other).to_owned()),
            None => Linked::Own(own.or(units.first()).map_or_else(|| source.to_owned(), |unit| unit.name.clone())),
        },
    }
}

fn has_same_unit_text(other: &&&str, units: &[DeviceUnit], target: &str) -> bool {
    units.iter().all(|unit| unit.text_of(target) == unit.text_of(other))
}

/// The units among a command's objects and archives. Files that are not there are left to the linker.
///
/// # Errors
/// [`hotswap_report::codes::CANNOT_READ`]: a unit that was not seen may need a plan.
pub fn of_inputs(command: &ClangCommand) -> Result<Vec<DeviceUnit>, Diagnostic> {
    let mut found = Vec::new();
    for path in input_files(command)? {
        visit_objects(&path, &mut |bytes, name, in_archive| found.extend(of_object(bytes, name, in_archive)))?;
    }
    Ok(found)
}

/// The kernels of the units among a command's objects and archives.
///
/// # Errors
/// As [`of_inputs`], about their files.
pub fn kernels_of_inputs(command: &ClangCommand) -> Result<Vec<UnitKernels>, Diagnostic> {
    let mut found = Vec::new();
    for path in input_files(command)? {
        visit_objects(&path, &mut |bytes, name, in_archive| found.extend(kernels_of_object(bytes, name, in_archive)))?;
    }
    Ok(found)
}

/// The file, or the members of an archive, with their names and whether they are members. Those of a thin archive are files beside it.
fn visit_objects(path: &Path, visit: &mut dyn FnMut(&[u8], String, bool)) -> Result<(), Diagnostic> {
    let Some(bytes) = open_object(path)? else { return Ok(()) };
    let name = path.display().to_string();
    let Ok(archive) = ArchiveFile::parse(&bytes[..]) else {
        visit(&bytes, name, false);
        return Ok(());
    };
    for member in archive.members().flatten() {
        let label = format!("{name}({})", String::from_utf8_lossy(member.name()));
        if member.is_thin() {
            if let Some(bytes) = open_member(path, member.name())? {
                visit(&bytes, label, true);
            }
        } else if let Ok(bytes) = member.data(&bytes[..]) {
            visit(bytes, label, true);
        }
    }
    Ok(())
}

fn kernels_of_object(bytes: &[u8], name: String, in_archive: bool) -> Option<UnitKernels> {
    let unit = of_object(bytes, name, in_archive)?;
    let same_text = unit.mark.iter().map(|(target, source)| (target.to_owned(), source.to_owned())).collect();
    let mut kernels = UnitKernels::default();
    match bitcode_unit(bytes) {
        Some(bitcode) => {
            for binary in bitcode.offload_binaries {
                for (processor, names) in UnitKernels::of_object(&binary)?.kernels {
                    kernels.kernels.entry(processor).or_default().extend(names);
                }
            }
        }
        None => kernels = UnitKernels::of_object(bytes)?,
    }
    Some(UnitKernels { name: unit.name, in_archive, same_text, ..kernels })
}

fn of_bitcode(bitcode: BitcodeUnit, name: String, in_archive: bool) -> Option<DeviceUnit> {
    let mut unit = DeviceUnit { name, in_archive, is_bitcode: true, ..DeviceUnit::default() };
    for binary in &bitcode.offload_binaries {
        add_images(binary, &mut unit);
    }
    unit.plan_text = bitcode.note;
    unit.symbols = bitcode.symbol.into_iter().filter(|name| name.starts_with(UNIT_SYMBOL)).collect();
    (!unit.targets.is_empty()).then_some(unit)
}

/// `None` for a file without relocatable device code.
pub fn of_object(bytes: &[u8], name: String, in_archive: bool) -> Option<DeviceUnit> {
    if let Some(bitcode) = bitcode_unit(bytes) {
        return of_bitcode(bitcode, name, in_archive);
    }
    let file = object::File::parse(bytes).ok()?;
    let mut unit = DeviceUnit { name, in_archive, ..DeviceUnit::default() };
    for section in file.sections() {
        let section_name = section.name().unwrap_or_default();
        if section_name == TextMark::SECTION {
            unit.mark = TextMark::parse(&String::from_utf8_lossy(section.data().unwrap_or_default()));
        } else if section_name == UNIT_PLAN_SECTION {
            unit.plan_text += &String::from_utf8_lossy(section.data().unwrap_or_default());
        } else if section_name == NEW {
            add_images(section.data().unwrap_or_default(), &mut unit);
        } else if let Some(id) = section_name.strip_prefix(OLD) {
            let id = EntryId::parse(id).ok().filter(EntryId::is_hip);
            unit.is_old = true;
            unit.targets.extend(id.and_then(|id| id.processor().map(str::to_owned)));
        }
    }
    if unit.targets.is_empty() {
        return None;
    }
    unit.symbols = unit_symbols(&file);
    Some(unit)
}

fn unit_symbols(file: &object::File<'_>) -> Vec<String> {
    let undefined = file.symbols().filter(|symbol| symbol.is_undefined()).filter_map(|symbol| symbol.name().ok());
    undefined.filter(|name| name.starts_with(UNIT_SYMBOL)).map(str::to_owned).collect()
}

/// The images of consecutive offload binaries.
fn add_images(mut bytes: &[u8], unit: &mut DeviceUnit) {
    while let Ok((binary, size)) = OffloadBinary::parse(bytes) {
        for image in binary.images.iter().filter(|image| image.offload_kind == HIP) {
            let arch = image.string("arch").and_then(|arch| arch.split(':').next());
            unit.targets.extend(arch.map(str::to_owned));
            unit.mark.extend(image.string(TextMark::KEY).map(TextMark::parse).unwrap_or_default());
        }
        bytes = bytes.get(size.next_multiple_of(8)..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(name: &str, targets: &str, mark: &str) -> DeviceUnit {
        let targets = targets.split(' ').map(str::to_owned).collect();
        DeviceUnit { name: name.to_owned(), targets, mark: TextMark::parse(mark), ..DeviceUnit::default() }
    }

    fn show(units: &[DeviceUnit]) -> String {
        let one = |one: LinkedTarget| format!("{} {:?}", one.target, one.linked);
        decide(units, "gfx1030", &["gfx1031", "gfx1032"]).into_iter().map(one).collect::<Vec<_>>().join("; ")
    }

    /// The plan of a unit that was not seen would be lost.
    #[test]
    fn a_unit_that_cannot_be_read_is_an_error_and_one_that_is_not_there_is_none() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("loop.o", dir.path().join("loop.o")).unwrap();
        std::fs::create_dir(dir.path().join("directory.o")).unwrap();
        let read = |words: &str| {
            let words: Vec<_> =
                words.replace('@', &dir.path().display().to_string()).split(' ').map(Into::into).collect();
            of_inputs(&crate::command::scan(&words)).map(|units| units.len())
        };
        for words in ["--hip-link @/absent.o -o x", "--hip-link @/directory.o -o x", "--hip-link -L@ -labsent -o x"] {
            assert_eq!(read(words), Ok(0), "{words}");
        }
        for words in ["--hip-link @/loop.o -o x", "--hip-link -L@ -l:loop.o -o x"] {
            assert_eq!(read(words).unwrap_err().code, hotswap_report::codes::CANNOT_READ, "{words}");
        }
    }

    #[test]
    fn a_target_is_derived_where_every_unit_has_one_text() {
        let same = || unit("same.o", "gfx1030", "gfx1031=gfx1030+gfx1032=gfx1030");
        let asks = || unit("asks.o", "gfx1030 gfx1031", "gfx1032=gfx1031");
        let foreign = || unit("foreign.o", "gfx1030", "");
        let full = || unit("full.o", "gfx1030 gfx1031 gfx1032", "");
        for (units, expected) in [
            (vec![same(), same()], r#"gfx1031 Derived("gfx1030"); gfx1032 Derived("gfx1030")"#),
            (vec![same(), foreign()], r#"gfx1031 NotChecked("foreign.o"); gfx1032 NotChecked("foreign.o")"#),
            (vec![same(), asks()], r#"gfx1031 Own("asks.o"); gfx1032 Derived("gfx1031")"#),
            (vec![asks(), foreign()], r#"gfx1031 Mixed("asks.o", "foreign.o"); gfx1032 NotChecked("foreign.o")"#),
            (vec![asks(), full()], r#"gfx1031 Own("asks.o"); gfx1032 Own("full.o")"#),
        ] {
            assert_eq!(show(&units), expected);
        }
    }
}
