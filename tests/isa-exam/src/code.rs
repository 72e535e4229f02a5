//! Real code: every byte of every code section is an instruction, padding or opaque, and instructions begin at the
//! addresses of llvm-objdump.

use crate::exam::Exam;
use crate::oracle::{Oracle, Word};
use crate::ours;
use crate::report::Report;
use crate::setting::Setting;
use crate::tools::Tools;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

/// Version of LLVM that compiles and judges.
pub const VERSION: u32 = 23;

/// Targets for which the kernels are compiled: server parts, desktop parts, both wave sizes where there are two.
pub const TARGETS: &[&str] = &[
    "gfx906",
    "gfx90a",
    "gfx942",
    "gfx950",
    "gfx1030",
    "gfx1030/wave64",
    "gfx1100",
    "gfx1100/wave64",
    "gfx1201",
    "gfx1250",
];

pub const LEVELS: &[&str] = &["-O0", "-O3"];

/// Byte counts of code sections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bytes {
    pub objects: usize,
    /// Bytes of code sections.
    pub total: usize,
    pub instructions: usize,
    /// Bytes of instructions.
    pub decoded: usize,
    /// Bytes of instructions that only fill the space after a function (`s_code_end`, `s_nop` at its end).
    pub padding: usize,
    /// Bytes that LLVM does not decode either.
    pub opaque: usize,
}

impl Bytes {
    pub fn add(&mut self, other: &Self) {
        self.objects += other.objects;
        self.total += other.total;
        self.instructions += other.instructions;
        self.decoded += other.decoded;
        self.padding += other.padding;
        self.opaque += other.opaque;
    }

    /// The counts in one line.
    pub fn line(&self, name: &str) -> String {
        format!(
            "{name}: {} objects, {} bytes of code: {} instructions in {} bytes, {} bytes of padding, {} opaque",
            self.objects, self.total, self.instructions, self.decoded, self.padding, self.opaque
        )
    }
}

/// Compiles all kernels of the directory into one code object; returns its bytes.
///
/// # Errors
/// If the compiler fails.
pub fn compile(tools: &Tools, sources: &Path, setting: &Setting, level: &str) -> io::Result<Vec<u8>> {
    let compiler = format!("clang-{VERSION}");
    let cpu = format!("-mcpu={}", setting.cpu);
    let out = format!("kernels-{}.co", setting.to_string().replace('/', "-"));
    let mut words =
        vec![compiler.as_str(), "--target=amdgcn-amd-amdhsa", &cpu, level, "-nogpulib", "-ffreestanding", "-w"];
    if setting.wave == Some(64) {
        words.extend(["-mwavefrontsize64", "-DWAVE64"]);
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(sources)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        fs::copy(&path, tools.outside(&name))?;
        if name.ends_with(".c") {
            names.push(name);
        }
    }
    names.sort();
    words.extend(names.iter().map(String::as_str));
    words.extend(["-o", &out]);
    let output = tools.run(&words, &[])?;
    if !output.status.success() {
        return Err(io::Error::other(format!("{setting} {level}: {}", String::from_utf8_lossy(&output.stderr))));
    }
    fs::read(tools.outside(&out))
}

/// Compares one code object with llvm-objdump, instruction by instruction, and each instruction with the judge.
///
/// # Errors
/// If the object cannot be read, or a program of the userland cannot be started.
pub fn compare(
    exam: &Exam<'_>,
    oracle: &mut Oracle,
    setting: &Setting,
    object: &[u8],
    name: &str,
    report: &mut Report,
) -> io::Result<(Bytes, Vec<String>)> {
    let file = object::File::parse(object).map_err(io::Error::other)?;
    let theirs = objdump(exam.tools, setting, object)?;
    let isa = ours::isa(setting).ok_or_else(|| io::Error::other(format!("{setting} is no target of ours")))?;
    let (mut bytes, mut problems, mut words) = (Bytes { objects: 1, ..Bytes::default() }, Vec::new(), BTreeSet::new());
    for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
        let data = section.data().map_err(io::Error::other)?;
        bytes.total += data.len();
        for (from, to) in parts(&file, &section, data.len()) {
            for (offset, result) in isa.walk(&data[from..to]) {
                let at = section.address() + u64::try_from(from + offset).unwrap_or(0);
                match result {
                    Ok(inst) => {
                        let length = usize::from(inst.len());
                        bytes.instructions += 1;
                        let padding = matches!(inst.mnemonic(), "s_code_end");
                        *(if padding { &mut bytes.padding } else { &mut bytes.decoded }) += length;
                        words.insert(Word::new(&data[from + offset..to]).cut(length));
                        if !theirs.contains(&(at, length)) {
                            problems.push(format!("{name} {at:#x}: {length} bytes for us, not so for llvm-objdump"));
                        }
                    }
                    Err(_) => bytes.opaque += opaque(&theirs, at, &mut problems, name),
                }
            }
        }
    }
    // Every word once; the bytes after an instruction are not a part of it.
    let items = words.iter().map(|word| (*word, name)).collect();
    exam.judge(oracle, setting, items, report)?;
    Ok((bytes, problems))
}

/// The code objects of a library, by the setting in their own headers.
///
/// # Errors
/// A container that cannot be read.
pub fn objects(library: &[u8]) -> io::Result<BTreeMap<Setting, Vec<Vec<u8>>>> {
    let contents = hotswap_bundle::find_containers(library);
    if let Some(problem) = contents.problems.first() {
        return Err(io::Error::other(problem.to_string()));
    }
    let mut all: BTreeMap<Setting, Vec<Vec<u8>>> = BTreeMap::new();
    for found in &contents.found {
        for image in found.read().map_err(|error| io::Error::other(error.to_string()))?.images {
            if let Ok(object) = hotswap_code_object::CodeObject::parse(&image.data) {
                let setting = Setting::new(object.target_id().processor.name);
                all.entry(setting).or_default().push(image.data.to_vec());
            }
        }
    }
    Ok(all)
}

/// Bytes that are opaque for us: llvm-objdump must not have found an instruction there.
fn opaque(theirs: &BTreeSet<(u64, usize)>, at: u64, problems: &mut Vec<String>, name: &str) -> usize {
    if let Some((_, length)) = theirs.range((at, 0)..(at + 1, 0)).next() {
        problems.push(format!("{name} {at:#x}: opaque for us, {length} bytes for llvm-objdump"));
    }
    4
}

/// A code section is disassembled from symbol to symbol, as llvm-objdump does.
fn parts<'a>(file: &object::File<'a>, section: &impl ObjectSection<'a>, size: usize) -> Vec<(usize, usize)> {
    let inside = |symbol: &object::Symbol<'_, '_>| {
        let offset = usize::try_from(symbol.address().checked_sub(section.address())?).ok()?;
        (symbol.section_index() == Some(section.index()) && offset < size).then_some(offset)
    };
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let mut starts: BTreeSet<usize> = symbols.filter_map(|symbol| inside(&symbol)).collect();
    starts.insert(0);
    let ends = starts.iter().skip(1).copied().chain([size]);
    starts.iter().copied().zip(ends).collect()
}

/// Addresses and lengths of the instructions that llvm-objdump shows.
fn objdump(tools: &Tools, setting: &Setting, object: &[u8]) -> io::Result<BTreeSet<(u64, usize)>> {
    fs::write(tools.outside("object.co"), object)?;
    let (program, cpu) = (format!("llvm-objdump-{VERSION}"), format!("--mcpu={}", setting.cpu));
    let attributes = format!("--mattr={}", setting.attributes());
    let output = tools.run(&[&program, "-d", "-z", &cpu, &attributes, "object.co"], &[])?;
    if !output.status.success() {
        return Err(io::Error::other(format!("{program}: {}", String::from_utf8_lossy(&output.stderr))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(line).collect())
}

/// `s_endpgm  // 000000001900: BF810000`, followed by a label where it is a branch.
fn line(line: &str) -> Option<(u64, usize)> {
    let (text, comment) = line.rsplit_once("// ")?;
    if text.trim_start().starts_with('.') {
        return None;
    }
    let (address, words) = comment.split_once(": ")?;
    let words = words.split(' ').take_while(|word| word.len() == 8 && u32::from_str_radix(word, 16).is_ok());
    Some((u64::from_str_radix(address, 16).ok()?, 4 * words.count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_objdump_are_read() {
        let branch = "\ts_cbranch_execz 5      // 000000001908: BF880005 <copy+0x20>";
        let wide = "\ts_load_dwordx4 s[0:3], s[4:5], 0x0  // 000000001900: C00A0002 00000000";
        assert_eq!(line(branch), Some((0x1908, 4)));
        assert_eq!(line(wide), Some((0x1900, 8)));
        assert_eq!(line("\t.long 0xffffffff   // 000000001900: FFFFFFFF"), None);
        assert_eq!(line("0000000000001900 <copy>:"), None);
    }
}
