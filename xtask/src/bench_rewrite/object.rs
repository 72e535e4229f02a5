//! Objects as large as the largest known ones, made of real code: one compiled object, joined many times under other names.
//!
//! The assembler takes the bytes of each section unchanged (`.incbin`) and gets symbols, relocations and the metadata
//! of every copy as text; so a copy costs it no more than its names.

use super::LLVM;
use crate::outcome::{During, Outcome, fail};
use crate::run;
use crate::session::Session;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The prefix of names in the source; copies have a number in its place.
const PREFIX: &str = "copy_";
/// Sections that are joined, how they are declared, and the powers of two of their alignments.
const SECTIONS: [(&str, &str, u8); 3] = [
    (".text", ".text", 8),
    (".rodata", ".section .rodata,\"a\",@progbits", 6),
    (".eh_frame", ".section .eh_frame,\"a\",@progbits", 3),
];
const SOURCE: &str = "xtask/src/bench_rewrite/kernels.c";
const COMPILE: &str = "--target=amdgcn-amd-amdhsa -mcpu=gfx1250 -nogpulib -nogpuinc -O3 -x c";

struct Symbol {
    name: String,
    section: String,
    value: u64,
    size: u64,
    is_function: bool,
    is_global: bool,
}

struct Relocation {
    section: String,
    place: u64,
    kind: String,
    /// Symbol or section, and the addend.
    target: String,
    addend: String,
}

/// A compiled object in parts.
pub(crate) struct Unit {
    name: &'static str,
    directory: PathBuf,
    inside: PathBuf,
    symbols: Vec<Symbol>,
    relocations: Vec<Relocation>,
    target: String,
    /// The metadata before the kernels, of one copy's kernels, and after them.
    metadata: [String; 3],
    pub(super) instructions: usize,
}

impl Unit {
    /// Compiles the kernels, those with sites only where requested.
    pub(crate) fn compile(session: &Session, directory: &Path, name: &'static str, define: &str) -> Outcome<Self> {
        let inside = session.work.join("bench-rewrite");
        let source = session.source.join(SOURCE).display().to_string();
        for (form, file) in [("-c", format!("{name}.part.o")), ("-S", format!("{name}.part.s"))] {
            run_compile_tool("clang", &format!("{COMPILE} {define} {form} {source} -o {file}"), session, &inside)?;
        }
        for (section, ..) in SECTIONS {
            run_compile_tool(
                "llvm-objcopy",
                &format!("--dump-section={section}={name}{section} {name}.part.o /dev/null"),
                session,
                &inside,
            )?;
        }
        let listed = run_compile_tool("llvm-readelf", &format!("-S -s -r -W {name}.part.o"), session, &inside)?;
        let code = run_compile_tool("llvm-objdump", &format!("-d --no-show-raw-insn {name}.part.o"), session, &inside)?;
        let text_file = directory.join(format!("{name}.part.s"));
        let text = fs::read_to_string(&text_file).during("read", &text_file)?;
        let target = text.lines().find(|line| line.contains(".amdgcn_target")).unwrap_or_default().to_owned();
        Ok(Self {
            name,
            directory: directory.to_owned(),
            inside: inside.clone(),
            symbols: symbols(&listed),
            relocations: relocations(&listed),
            target,
            metadata: metadata(&text)?,
            // s_code_end is the padding between functions.
            instructions: code.lines().filter(|line| line.contains("// ") && !line.contains("s_code_end")).count(),
        })
    }

    /// An object of about so many instructions: relocatable, linked with relocations, and linked without.
    pub(crate) fn join(&self, session: &Session, millions: f64) -> Outcome<[String; 3]> {
        let copies = (millions * 1e6 / self.instructions.max(1) as f64).round().max(1.0) as usize;
        let name = format!("{}-{millions}", self.name);
        let source = self.directory.join(format!("{name}.s"));
        let mut out = BufWriter::new(File::create(&source).during("create", &source)?);
        self.write(copies, &mut out).during("write", &source)?;
        out.flush().during("write", &source)?;
        run_join_tool(
            "llvm-mc",
            &format!("-triple=amdgcn-amd-amdhsa -mcpu=gfx1250 -filetype=obj {name}.s -o {name}.o"),
            self,
            session,
        )?;
        run_join_tool("ld.lld", &format!("-shared --emit-relocs {name}.o -o {name}.relocs.co"), self, session)?;
        run_join_tool("ld.lld", &format!("-shared {name}.o -o {name}.co"), self, session)?;
        fs::remove_file(&source).during("remove", &source)?;
        Ok([format!("{name}.o"), format!("{name}.relocs.co"), format!("{name}.co")])
    }

    fn write(&self, copies: usize, out: &mut impl Write) -> std::io::Result<()> {
        writeln!(out, "{}\n.amdhsa_code_object_version 6", self.target)?;
        for (section, declaration, align) in SECTIONS {
            writeln!(out, "{declaration}")?;
            for copy in 0..copies {
                writeln!(out, ".p2align {align}\n{}: .incbin \"{}{section}\"", label(section, copy), self.name)?;
                out.write_all(self.part(section, copy).as_bytes())?;
            }
        }
        let [head, kernels, tail] = &self.metadata;
        out.write_all(head.as_bytes())?;
        for copy in 0..copies {
            out.write_all(kernels.replace(PREFIX, &format!("c{copy}_")).as_bytes())?;
        }
        out.write_all(tail.as_bytes())
    }

    /// Symbols and relocations of a section's copy.
    fn part(&self, section: &str, copy: usize) -> String {
        let mut text = String::new();
        for symbol in self.symbols.iter().filter(|symbol| symbol.section == section) {
            let name = prefix_copy_name(&symbol.name, copy);
            if symbol.is_global {
                let _ = writeln!(text, ".globl {name}\n.protected {name}");
            }
            let kind = if symbol.is_function { "function" } else { "object" };
            let (value, size) = (symbol.value, symbol.size);
            let start = label(section, copy);
            let _ = writeln!(text, ".type {name},@{kind}\n.set {name},{start}+{value}\n.size {name},{size}");
        }
        for one in self.relocations.iter().filter(|one| one.section == section) {
            let is_section = SECTIONS.iter().any(|(name, ..)| *name == one.target);
            let target = if is_section { label(&one.target, copy) } else { prefix_copy_name(&one.target, copy) };
            let start = label(section, copy);
            let _ = writeln!(text, ".reloc {start}+{},{},{target}{}", one.place, one.kind, one.addend);
        }
        text
    }
}

fn run_compile_tool(
    tool: &str,
    words: &str,
    session: &Session,
    inside: &Path,
) -> Result<String, crate::outcome::Failure> {
    let mut command = session.inside(inside, &format!("{LLVM}/{tool}"));
    command.args(shell_words::split(words)?);
    run::output(&mut command)
}

fn run_join_tool(tool: &str, words: &str, unit: &Unit, session: &Session) -> Result<String, crate::outcome::Failure> {
    let mut command = session.inside(&unit.inside, &format!("{LLVM}/{tool}"));
    command.args(shell_words::split(words)?);
    run::output(&mut command)
}

fn prefix_copy_name(name: &str, copy: usize) -> String {
    name.replacen(PREFIX, &format!("c{copy}_"), 1)
}

fn label(section: &str, copy: usize) -> String {
    format!(".L{}{copy}", section.trim_start_matches('.'))
}

/// Functions and data with their sections, of `llvm-readelf -S -s`.
fn symbols(listed: &str) -> Vec<Symbol> {
    let sections: Vec<(&str, &str)> = listed
        .lines()
        .filter_map(|line| line.trim().strip_prefix('[')?.split_once(']'))
        .filter_map(|(number, rest)| Some((number.trim(), rest.split_whitespace().next()?)))
        .collect();
    listed.lines().filter_map(|one| parse_symbol_line(one, &sections)).collect()
}

fn parse_symbol_line(line: &str, sections: &[(&str, &str)]) -> Option<Symbol> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, value, size, kind @ ("FUNC" | "OBJECT"), binding, _, section, name] = words[..] else { return None };
    let section = sections.iter().find(|(number, _)| *number == section)?.1;
    Some(Symbol {
        name: name.to_owned(),
        section: section.to_owned(),
        value: u64::from_str_radix(value, 16).ok()?,
        size: size.parse().ok()?,
        is_function: kind == "FUNC",
        is_global: binding == "GLOBAL",
    })
}

/// The records of `llvm-readelf -r`.
fn relocations(listed: &str) -> Vec<Relocation> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in listed.lines() {
        if let Some(rest) = line.strip_prefix("Relocation section '.rela") {
            section = rest.split('\'').next().unwrap_or_default().to_owned();
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [place, _, kind, _, target, rest @ ..] = &words[..] else { continue };
        let Some(place) = u64::from_str_radix(place, 16).ok().filter(|_| kind.starts_with("R_AMDGPU_")) else {
            continue;
        };
        let addend = match rest {
            [sign, number] => format!("{sign}0x{number}"),
            _ => String::new(),
        };
        let (section, target) = (section.clone(), (*target).to_owned());
        found.push(Relocation { section, place, kind: (*kind).to_owned(), target, addend });
    }
    found
}

fn metadata(text: &str) -> Outcome<[String; 3]> {
    const KERNELS: &str = "amdhsa.kernels:\n";
    const END: &str = ".end_amdgpu_metadata\n";
    let start = text.find("\t.amdgpu_metadata\n");
    let parts = start.and_then(|start| {
        let kernels = start + text[start..].find(KERNELS)? + KERNELS.len();
        let behind = kernels + text[kernels..].find("amdhsa.target:")?;
        let end = behind + text[behind..].find(END)? + END.len();
        Some([&text[start..kernels], &text[kernels..behind], &text[behind..end]].map(str::to_owned))
    });
    parts.map_or_else(|| fail("the compiler's assembly has no metadata"), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_readelf_are_read() {
        let listed = "  [ 2] .text             PROGBITS        0000000000000000 000100 018400 00  AX  0   0 256\n\
                      Relocation section '.rela.text' at offset 0x1d520 contains 117 entries:\n\
                      000000000000aedc  0000000100000005 R_AMDGPU_REL64         0000000000000000 .text + ae04\n\
                      30: 0000000000005900  2508 FUNC    GLOBAL PROTECTED   2 copy_deep_4\n";
        let (symbols, relocations) = (symbols(listed), relocations(listed));
        let [symbol] = &symbols[..] else { panic!("one symbol") };
        assert_eq!(
            (&*symbol.name, &*symbol.section, symbol.value, symbol.size),
            ("copy_deep_4", ".text", 0x5900, 2508)
        );
        let [one] = &relocations[..] else { panic!("one record") };
        assert_eq!((&*one.section, one.place, &*one.target, &*one.addend), (".text", 0xaedc, ".text", "+0xae04"));
    }
}
