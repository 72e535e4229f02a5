//! Files that the tests make.
#![allow(dead_code, reason = "each test uses some of them")]

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use hotswap_bundle::{Bundle, Compression};
use hotswap_userland::Workbench;
use object::write::{Object, StandardSection, Symbol, SymbolSection};
use object::{Architecture, BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolKind, SymbolScope};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

pub(crate) const HOST: &str = "host-x86_64-unknown-linux-gnu-";

/// The entry ID of a target.
pub(crate) fn id(target: &str) -> String {
    format!("hipv4-amdgcn-amd-amdhsa--{target}")
}

/// Opaque bitcode: no test reads it.
pub(crate) fn bitcode(text: &str) -> Vec<u8> {
    [b"BC\xc0\xde".as_slice(), text.as_bytes(), &[7; 3000]].concat()
}

/// A host entry without content, then one entry for each target.
pub(crate) fn bundle(targets: &[&str], compression: Option<Compression>, code: fn(&str) -> Vec<u8>) -> Vec<u8> {
    let mut bundle = Bundle::default();
    bundle.set_compression(compression);
    bundle.push(HOST, Vec::new()).unwrap();
    targets.iter().for_each(|target| bundle.push(id(target), code(target)).unwrap());
    bundle.to_bytes().unwrap().into_owned()
}

/// An object with that section and a symbol in it.
pub(crate) fn section(name: &str, content: &[u8], alignment: u64, format: BinaryFormat) -> Vec<u8> {
    let mut file = Object::new(format, Architecture::X86_64, Endianness::Little);
    let section = file.add_section(Vec::new(), name.as_bytes().to_vec(), SectionKind::ReadOnlyData);
    file.append_section_data(section, content, alignment);
    let data = file.section_id(StandardSection::Data);
    file.append_section_data(data, &[7; 24], 8);
    file.add_symbol(Symbol {
        name: b"fatbin".to_vec(),
        value: 0,
        size: 0,
        kind: SymbolKind::Data,
        scope: SymbolScope::Compilation,
        weak: false,
        section: SymbolSection::Section(section),
        flags: SymbolFlags::None,
    });
    file.write().unwrap()
}

/// A GNU archive with a symbol table that names the second member.
pub(crate) fn archive(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let header = |name: &str, size: usize| format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644);
    let second = 8 + 60 + 12 + 60 + members[0].1.len().next_multiple_of(2);
    let table = [&1u32.to_be_bytes()[..], &(second as u32).to_be_bytes(), b"abc\0"].concat();
    let mut out = [b"!<arch>\n".as_slice(), header("/", table.len()).as_bytes(), &table].concat();
    for (name, data) in members {
        out.extend_from_slice(header(&format!("{name}/"), data.len()).as_bytes());
        out.extend_from_slice(data);
        out.resize(out.len().next_multiple_of(2), b'\n');
    }
    out
}

/// A directory in which a test writes files and runs the command. Tests add what they need in `impl`s of their own.
pub(crate) struct Directory(pub(crate) TempDir);

impl Directory {
    pub(crate) fn empty() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// A directory with one file.
    pub(crate) fn with(name: &str, bytes: &[u8]) -> Self {
        let directory = Self::empty();
        directory.write(name, bytes);
        directory
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file; directories in its name are made.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    /// Runs the command with these arguments, which spaces separate.
    pub(crate) fn run(&self, words: &str) -> Assert {
        Command::new(installed()).args(words.split(' ')).current_dir(self.0.path()).assert()
    }

    pub(crate) fn json(&self, words: &str) -> Value {
        let out = self.run(&format!("{words} --format json"));
        serde_json::from_slice(&out.get_output().stdout).unwrap()
    }
}

/// The command in the directory of a workbench.
pub(crate) trait RunsHotswap {
    fn hotswap(&self, words: &[&str]) -> Command;

    /// Runs the command with these arguments, which spaces separate.
    fn hotswap_line(&self, words: &str) -> Assert {
        self.hotswap(&words.split(' ').collect::<Vec<_>>()).assert()
    }

    /// The targets of a file's images, sorted.
    fn listed_targets(&self, file: &str) -> Vec<String> {
        let output = self.hotswap(&["list", "--format", "json", file]).assert().success().get_output().stdout.clone();
        let listed: Value = serde_json::from_slice(&output).unwrap();
        let containers = listed["files"][0]["containers"].as_array().unwrap().clone();
        let entries = containers.iter().flat_map(|container| container["entries"].as_array().unwrap().clone());
        let mut targets: Vec<_> = entries.map(|entry| entry["target"].as_str().unwrap().to_owned()).collect();
        targets.sort();
        targets
    }
}

impl RunsHotswap for Workbench {
    fn hotswap(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotswap"));
        command.current_dir(self.directory()).args(words);
        command
    }
}

/// The command in a directory like that of an installation, with the library that served trees preload: `serve` refuses to write a
/// tree without it. Nothing here loads the library, so that any file has its place.
pub(crate) fn installed() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let program = Path::new(env!("CARGO_BIN_EXE_hotswap"));
        let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("installed");
        let place = prefix.join("bin/hotswap");
        for directory in ["bin", "lib/hotswap"] {
            fs::create_dir_all(prefix.join(directory)).unwrap();
        }
        fs::write(prefix.join("lib/hotswap/libhotswap-names.so"), "").unwrap();
        // Other tests may start it at this moment.
        let own = prefix.join(format!("bin/hotswap.{}", std::process::id()));
        let _ = fs::remove_file(&own);
        fs::hard_link(program, &own).or_else(|_| fs::copy(program, &own).map(drop)).unwrap();
        fs::rename(&own, &place).unwrap();
        let _ = fs::remove_file(&own);
        place
    })
}
