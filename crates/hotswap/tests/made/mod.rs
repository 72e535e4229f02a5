//! Files that the tests make.
#![allow(dead_code, reason = "each test uses some of them")]

use hotswap_bundle::{Bundle, Compression};
use object::write::{Object, StandardSection, Symbol, SymbolSection};
use object::{Architecture, BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolKind, SymbolScope};

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
