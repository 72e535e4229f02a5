//! Links programs with manifests by the real linkers of the test userland.
//!
//! A [`LinkBench`] is a scratch directory inside the userland with the parts of a link: objects of a user, registry archives
//! complete and incomplete, manifests. Tests run whole matrices of link commands over them and compare each outcome
//! with the expected one ([`Tally`]).
//!
//! Invariants: no file is left in the userland; every message that requires action by a user is checked for the name of
//! the family.

mod registrars;
mod tally;

pub use registrars::Registrars;
pub use tally::{Expect, Tally, sweep};

use hotswap_families::{archive, c_source, manifest, patches_def};
pub use hotswap_userland::say;
use hotswap_userland::{Workbench, skip};
use object::{Object, ObjectSection};
use std::fs;

/// The plan that the manifests of the tests carry.
pub const PLAN_TEXT: &str = "hotswap-plan 1\npolicy error\nretarget gfx1030=>gfx1031\n";
/// Its hash; the manifest takes it unchanged.
pub const PLAN_HASH: &str = "0123456789abcdef";
/// A family that no `patches.def` has.
pub const GHOST: &str = "ghost";

/// The families that the manifests of the tests name.
pub fn families() -> Vec<&'static str> {
    hotswap_families::FAMILIES.iter().map(|family| family.name).collect()
}

/// The result of a command inside the userland.
#[derive(Debug)]
pub struct Ran {
    /// Whether it ended with 0.
    pub ok: bool,
    /// Standard output and standard error.
    pub text: String,
}

/// A scratch directory inside the userland; removed at the end.
pub struct LinkBench {
    work: Workbench,
}

impl LinkBench {
    /// `None`, after printing the reason, where no userland was prepared or `tools` are missing.
    pub fn new(test: &str, tools: &[&str]) -> Option<Self> {
        let bench = Self { work: Workbench::new(test)? };
        let missing: Vec<_> = tools.iter().filter(|tool| !bench.run("which", &[tool]).ok).collect();
        if !missing.is_empty() {
            skip(test, &format!("not in the userland: {missing:?}"));
            return None;
        }
        Some(bench)
    }

    /// The names whose tool is in the userland; prints a line for each missing one.
    ///
    /// # Panics
    /// If none is.
    pub fn present<'n>(&self, test: &str, tools: &[(&'n str, &str)]) -> Vec<&'n str> {
        let mut present = Vec::new();
        for (name, tool) in tools {
            if self.run("which", &[tool]).ok {
                present.push(*name);
            } else {
                skip(&format!("{test}: {name}"), &format!("no {tool} in the userland"));
            }
        }
        assert!(!present.is_empty(), "{test}: the userland has none of {tools:?}");
        present
    }

    /// Runs a command in the scratch directory.
    pub fn run(&self, program: &str, words: &[&str]) -> Ran {
        let output = self.work.command(program).args(words).output().expect("the userland runs");
        let text = [output.stdout, output.stderr].concat();
        Ran { ok: output.status.success(), text: String::from_utf8_lossy(&text).into_owned() }
    }

    /// Runs a command that must succeed.
    pub fn must(&self, program: &str, words: &[&str]) -> String {
        let ran = self.run(program, words);
        assert!(ran.ok, "{program} {words:?}: {}", ran.text);
        ran.text
    }

    /// Writes a file of the scratch directory.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        self.work.write(name, bytes.as_ref());
    }

    /// Reads a file of the scratch directory.
    pub fn read(&self, name: &str) -> Vec<u8> {
        self.work.read(name)
    }

    /// Whether the file exists.
    pub fn has(&self, name: &str) -> bool {
        self.work.path(name).exists()
    }

    /// Removes a file, if it exists.
    pub fn remove(&self, name: &str) {
        self.work.remove(name);
    }

    /// Writes `NAME.manifest.o` for those families.
    pub fn manifest(&self, name: &str, format: manifest::ManifestFormat, families: &[&str]) -> String {
        let bytes = manifest::manifest_object(format, PLAN_HASH, PLAN_TEXT, families).expect("a manifest");
        let file = format!("{name}.manifest.o");
        self.write(&file, bytes);
        file
    }

    /// Compiles the C registrars of `patches_def` with those arguments of clang and returns the objects.
    pub fn registrars(&self, directory: &str, patches_def: &str, clang: &[&str]) -> Vec<String> {
        fs::create_dir_all(self.work.path(directory)).expect("scratch directory");
        self.write("hotswap_registry.h", archive::HEADER);
        let lines = patches_def::parse(patches_def).expect("a list of families");
        lines.iter().map(|one| compile_registrar_object(one, self, directory, clang)).collect()
    }
}

fn compile_registrar_object(line: &patches_def::DefLine, bench: &LinkBench, directory: &str, clang: &[&str]) -> String {
    let source = format!("{directory}/{}", c_source::file_name(&line.name));
    bench.write(&source, c_source::registrar_source(line));
    let object = format!("{directory}/{}.o", line.name);
    let words = [clang, &["-I.", "-O2", "-Wall", "-Wextra", "-Werror", "-c", &source, "-o", &object]].concat();
    bench.must("clang-22", &words);
    object
}

/// `patches.def` without the line of that family.
pub fn patches_def_without(family: &str) -> String {
    let lines = archive::PATCHES_DEF.lines();
    lines.filter(|line| !line.contains(&format!("({family},"))).map(|line| format!("{line}\n")).collect()
}

/// The manifests in the record section of a linked file; `None` without such a section.
pub fn records(bytes: &[u8]) -> Option<Vec<manifest::PlanManifest>> {
    let file = object::File::parse(bytes).expect("a linked file");
    let section = manifest::RECORD_SECTIONS.iter().find_map(|name| file.section_by_name(name))?;
    Some(manifest::read_manifests(section.data().expect("its bytes")).expect("records"))
}

/// The defect in the record or the table of a file that was linked with the whole manifest.
pub fn product_fault(bytes: &[u8], format: manifest::ManifestFormat) -> Option<String> {
    let found = records(bytes).unwrap_or_default();
    if found.len() != 1 || !is_expected_manifest(&found[0]) {
        return Some(format!("its records are {found:?}"));
    }
    let file = object::File::parse(bytes).expect("a linked file");
    let size = file.section_by_name(format.table_section()).map_or(0, |section| section.size());
    // Images round section sizes up.
    let full = 8 * families().len() as u64;
    let fits = size == full || (format == manifest::ManifestFormat::CoffX86_64 && size > full);
    (!fits).then(|| format!("its table has {size} bytes"))
}

fn is_expected_manifest(record: &manifest::PlanManifest) -> bool {
    (record.plan.as_str(), record.plan_text.as_str()) == (PLAN_HASH, PLAN_TEXT) && record.families == families()
}
