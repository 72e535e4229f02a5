//! Files that hold fat binaries, made here so that tests and fuzzing need no compiler.

use object::write::{Object, Relocation, StandardSection, Symbol, SymbolSection};
use object::{Architecture, BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolKind, SymbolScope};

/// An obstacle to the replacement.
#[derive(Clone, Copy, PartialEq)]
pub enum Oddity {
    None,
    /// The pointer's target is beyond the start of the content.
    Addend,
    /// The content holds a pointer itself.
    Inside,
    /// A symbol names a part of the content.
    Symbol,
    /// The section exists twice.
    Twice,
}

/// A host object as clang makes it: a fat binary, its symbol, and a wrapper that points to it.
pub fn host_object(
    (format, architecture): (BinaryFormat, Architecture),
    name: &str,
    fatbin: &[u8],
    oddity: Oddity,
) -> Vec<u8> {
    let mut file = Object::new(format, architecture, Endianness::Little);
    let section = file.add_section(Vec::new(), name.as_bytes().to_vec(), SectionKind::ReadOnlyData);
    file.append_section_data(section, fatbin, 16);
    let part = if oddity == Oddity::Symbol { 8 } else { 0 };
    let symbol = file.add_symbol(Symbol {
        name: b".fatbin_image".to_vec(),
        value: part,
        size: fatbin.len() as u64 - part,
        kind: SymbolKind::Data,
        scope: SymbolScope::Compilation,
        weak: false,
        section: SymbolSection::Section(section),
        flags: SymbolFlags::None,
    });
    let wrapper = file.add_section(Vec::new(), b".hipFatBinSegment".to_vec(), SectionKind::Data);
    file.append_section_data(wrapper, &[b"FPIH\x01\0\0\0".as_slice(), &[0; 16]].concat(), 8);
    let data = file.section_id(StandardSection::Data);
    file.append_section_data(data, &[7; 24], 8);
    let flags = object::RelocationFlags::Generic {
        kind: object::RelocationKind::Absolute,
        encoding: object::RelocationEncoding::Generic,
        size: 64,
    };
    let addend = if oddity == Oddity::Addend { 4096 } else { 0 };
    file.add_relocation(wrapper, Relocation { offset: 8, symbol, addend, flags }).unwrap();
    if oddity == Oddity::Inside {
        file.add_relocation(section, Relocation { offset: 64, symbol, addend: 0, flags }).unwrap();
    }
    if oddity == Oddity::Twice {
        file.add_section(Vec::new(), name.as_bytes().to_vec(), SectionKind::ReadOnlyData);
    }
    file.write().unwrap()
}

/// Without a symbol table.
pub fn archive_of(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    for (name, data) in members {
        let header = format!("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", format!("{name}/"), 0, 0, 0, 644, data.len());
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(data);
        out.resize(out.len().next_multiple_of(2), b'\n');
    }
    out
}

/// Type, link and name of the sections of [`library`] after the first.
const SECTIONS: [(u32, u32, u64, &str); 5] = [
    (1, 0, 2, ".hip_fatbin"),
    (1, 0, 3, ".hipFatBinSegment"),
    (4, 0, 2, ".rela.dyn"),
    (6, 0, 3, ".dynamic"),
    (3, 0, 0, ".shstrtab"),
];

/// A shared library for x86-64: one segment with consecutive bundles, a wrapper for each, and the relocations of their
/// pointers.
pub fn library(bundles: &[&[u8]]) -> Vec<u8> {
    let mut file = vec![0; 4096];
    let mut places = Vec::new();
    for bundle in bundles {
        file.resize(file.len().next_multiple_of(4096), 0);
        places.push(file.len() as u64);
        file.extend_from_slice(bundle);
    }
    let mut parts = vec![(4096, file.len())];
    file.resize(file.len().next_multiple_of(16), 0);
    let wrappers = file.len() as u64;
    for place in &places {
        file.extend_from_slice(b"FPIH\x01\0\0\0");
        words(&mut file, &[*place, 0]);
    }
    parts.push((wrappers as usize, file.len()));
    let relocations = file.len() as u64;
    for (number, place) in places.iter().enumerate() {
        words(&mut file, &[wrappers + 24 * number as u64 + 8, 8, *place]);
    }
    parts.push((relocations as usize, file.len()));
    let dynamic = file.len();
    words(&mut file, &[7, relocations, 8, 24 * places.len() as u64, 9, 24, 0, 0]);
    parts.push((dynamic, file.len()));
    finish(file, &parts)
}

fn words(out: &mut Vec<u8>, words: &[u64]) {
    words.iter().for_each(|word| out.extend(word.to_le_bytes()));
}

fn finish(mut file: Vec<u8>, parts: &[(usize, usize)]) -> Vec<u8> {
    let loaded = file.len() as u64;
    let names = SECTIONS.iter().map(|section| section.3).collect::<Vec<_>>().join("\0");
    let names_at = file.len();
    file.extend_from_slice(format!("\0{names}\0").as_bytes());
    let all: Vec<_> = parts.iter().copied().chain([(names_at, file.len())]).collect();
    file.resize(file.len().next_multiple_of(8), 0);
    let table = file.len() as u64;
    file.extend([0; 64]);
    let mut name = 1u32;
    for ((kind, link, flags, text), (start, end)) in SECTIONS.iter().zip(all) {
        file.extend([name, *kind].iter().flat_map(|word| word.to_le_bytes()));
        words(&mut file, &[*flags, start as u64, start as u64, (end - start) as u64]);
        let alignment = if *text == ".hip_fatbin" { 4096 } else { 8 };
        file.extend([*link, 0].iter().flat_map(|word| word.to_le_bytes()));
        words(&mut file, &[alignment, 0]);
        name += text.len() as u32 + 1;
    }
    let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    words(&mut header, &[0, 64, table]);
    header.extend([0, 0, 0, 0]);
    header.extend([64u16, 56, 2, 64, 6, 5].iter().flat_map(|half| half.to_le_bytes()));
    let (start, end) = parts[3];
    for (kind, at, size) in [(1u64, 0, loaded), (2, start as u64, (end - start) as u64)] {
        words(&mut header, &[kind | 6 << 32, at, at, at, size, size, 4096]);
    }
    file[..header.len()].copy_from_slice(&header);
    file
}
