//! Code objects that the userland's compilers make of one source, and LLVM's own tables about them.
#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod calls;

use hotswap_userland::{Workbench, tool};
use std::collections::{BTreeMap, BTreeSet};

/// A compilation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) version: u32,
    pub(crate) target: &'static str,
    pub(crate) level: char,
}

pub(crate) const TARGETS: [&str; 6] = ["gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201", "gfx1250"];

pub(crate) fn settings(bench: &Workbench) -> Vec<Setting> {
    let versions = bench.versions.iter().filter(|version| **version <= 24);
    let targets = versions.flat_map(|version| TARGETS.map(|target| (*version, target)));
    targets.flat_map(|(version, target)| ['0', '2'].map(|level| Setting { version, target, level })).collect()
}

/// The files of a compilation.
pub(crate) struct Made {
    /// Linked.
    pub(crate) linked: Vec<u8>,
    /// Before the link.
    pub(crate) object: Vec<u8>,
    /// The assembly.
    pub(crate) assembly: String,
    /// LLVM's listing of symbols and relocations of the same link with `--emit-relocs`.
    pub(crate) listing: String,
}

pub(crate) fn make(bench: &Workbench, setting: &Setting, source: &str) -> Made {
    make_with(bench, setting, source, "-nogpuinc -nogpulib")
}

/// The same with other options of the compiler.
pub(crate) fn make_with(bench: &Workbench, setting: &Setting, source: &str, options: &str) -> Made {
    try_make_with(bench, setting, source, options).unwrap_or_else(|told| panic!("{setting:?} {options}: {told}"))
}

/// The same for a source that may not compile, or not link alone: the messages then.
pub(crate) fn try_make_with(bench: &Workbench, setting: &Setting, source: &str, options: &str) -> Result<Made, String> {
    let Setting { version, target, level } = setting;
    bench.write("a.hip", source.as_bytes());
    let clang = tool(*version, "clang++");
    let waves = if options.contains("-mwavefrontsize64") { "-mwavefrontsize64" } else { "" };
    let lld = format!("{} -shared", tool(*version, "ld.lld"));
    let made = bench.shell(&format!(
        "{clang} -x hip --offload-arch={target} {options} --offload-device-only -O{level} -w -S a.hip -o a.s && \
         {clang} --target=amdgcn-amd-amdhsa -mcpu={target} {waves} -c a.s -o a.o && {lld} a.o -o a.co && \
         {lld} --emit-relocs a.o -o relocs.co"
    ));
    if !made.status.success() {
        return Err(String::from_utf8_lossy(&made.stderr).into_owned());
    }
    let listing = bench.run(&format!("{} -sW -rW relocs.co", tool(*version, "llvm-readelf")));
    let text = |name| String::from_utf8(bench.read(name)).expect("assembly is text");
    Ok(Made { linked: bench.read("a.co"), object: bench.read("a.o"), assembly: text("a.s"), listing })
}

/// HIP's headers and device libraries; those of clang 23 and later are in a directory of their own.
pub(crate) fn libraries(version: u32) -> &'static str {
    if version > 22 { "${ROCM:+--rocm-path=$ROCM}" } else { "" }
}

/// The functions of a listing by address, with their sizes.
pub(crate) fn functions(listing: &str) -> BTreeMap<u64, (String, u64)> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_function = words.get(3) == Some(&"FUNC") && words.get(6) != Some(&"UND");
        let size =
            |text: &str| text.strip_prefix("0x").map_or(text.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok());
        is_function
            .then(|| Some((u64::from_str_radix(words[1], 16).ok()?, ((*words.get(7)?).to_owned(), size(words[2])?))))?
    };
    listing.lines().filter_map(row).collect()
}

/// For each function the functions that instructions of its assembly name: the relocations that the assembler was asked
/// for. It resolves those of local symbols itself, so a file has fewer.
pub(crate) fn references(assembly: &str) -> BTreeMap<String, BTreeSet<String>> {
    let is_function = |line: &str| {
        line.trim()
            .strip_prefix(".type\t")
            .and_then(|rest| rest.split_once(",@function"))
            .map(|(name, _)| name.to_owned())
    };
    let names: BTreeSet<String> = assembly.lines().filter_map(is_function).collect();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut holder = String::new();
    for line in assembly.lines() {
        let code = line.split(';').next().unwrap_or_default();
        if let Some(name) = code.trim_end().strip_suffix(':').filter(|name| names.contains(*name)) {
            holder = name.to_owned();
        }
        let Some((before, _)) = code.split_once("@rel").or_else(|| code.split_once("@gotpcrel")) else { continue };
        let name = before.rsplit([' ', '\t', ',', '(']).next().unwrap_or_default();
        if names.contains(name) {
            found.entry(holder.clone()).or_default().insert(name.to_owned());
        }
    }
    found
}

/// For each function the functions that relocations in it name.
pub(crate) fn relocations(listing: &str) -> BTreeMap<String, BTreeSet<String>> {
    let functions = functions(listing);
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut is_code = false;
    for line in listing.lines() {
        if line.starts_with("Relocation section") {
            is_code = line.contains("'.rela.text'");
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let kind = words.get(2).filter(|kind| is_code && kind.starts_with("R_AMDGPU_"));
        let (Some(kind), Some(name)) = (kind, words.get(4)) else { continue };
        let at = u64::from_str_radix(words[0], 16).expect("an offset");
        let holder = functions.range(..=at).next_back().expect("code is in functions").1.0.clone();
        if kind.starts_with("R_AMDGPU_") && functions.values().any(|(function, _)| function == name) {
            found.entry(holder).or_default().insert((*name).to_owned());
        }
    }
    found
}

/// The numbers that `.set NAME.FIELD, …` gives: that of the function alone, and with all that it calls; `None` for the
/// latter where it is the largest of the module.
pub(crate) fn set_symbols(assembly: &str, field: &str) -> BTreeMap<String, (u64, Option<u64>)> {
    let suffix = format!(".{field}");
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for line in assembly.lines() {
        let Some((name, value)) = line.trim().strip_prefix(".set ").and_then(|rest| rest.split_once(", ")) else {
            continue;
        };
        if let Some(name) = name.strip_suffix(&suffix) {
            let name = name.strip_prefix(".L").unwrap_or(name);
            texts.insert(name.to_owned(), value.split(';').next().unwrap_or_default().trim().to_owned());
        }
    }
    let own = |text: &str| {
        let digits: String = text.trim_start_matches("max(").chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().unwrap_or_else(|_| panic!("`{text}`"))
    };
    let total = |name: &str| total(&texts, &suffix, name, 0);
    texts.iter().map(|(name, text)| (name.clone(), (own(text), total(name)))).collect()
}

fn total(texts: &BTreeMap<String, String>, suffix: &str, name: &str, depth: usize) -> Option<u64> {
    let text = texts.get(name).filter(|_| depth < 32)?;
    let inner = text.strip_prefix("max(").and_then(|text| text.strip_suffix(')')).unwrap_or(text);
    let part = |part: &str| match part.trim().parse::<u64>() {
        Ok(number) => Some(number),
        Err(_) => {
            let name = part.trim().strip_suffix(suffix)?;
            total(texts, suffix, name.strip_prefix(".L").unwrap_or(name), depth + 1)
        }
    };
    inner.split(',').map(part).collect::<Option<Vec<u64>>>()?.into_iter().max()
}
