//! Maps of code: sections, symbols, kernels and relocations, of whole and of damaged files.

use hotswap_code_object::{CodeMap, CodeStarts, ObjectKind, SymbolKind};
use hotswap_report::codes;
use hotswap_samples::clangs::clangs;
use hotswap_samples::device_elf::{CODE, DeviceElf, Relocation, Section};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A descriptor of 64 bytes whose code begins `distance` bytes after it.
fn descriptor(distance: i64, wave32: bool) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..12].copy_from_slice(&[16, 1, 0, 0, 32, 0, 0, 0, 48, 0, 0, 0]);
    bytes[16..24].copy_from_slice(&distance.to_le_bytes());
    bytes[57] = if wave32 { 4 } else { 0 };
    bytes
}

fn data(name: &str, bytes: Vec<u8>) -> Section {
    Section { name: name.into(), flags: 2, bytes }
}

/// Starts of code: bytes in the file, and offsets with whether one is a kernel's, by the map.
fn by_map(map: &CodeMap<'_>) -> Vec<(usize, BTreeMap<usize, bool>)> {
    let code = map.sections.iter().map(|section| {
        let mut starts = BTreeMap::new();
        for symbol in &section.symbols {
            *starts.entry(symbol.offset).or_default() |= matches!(symbol.kind, SymbolKind::Kernel(_));
        }
        (section.range.start, starts)
    });
    code.collect()
}

/// The same without the names.
fn by_starts(bytes: &[u8]) -> Vec<(usize, BTreeMap<usize, bool>)> {
    let code = CodeStarts::read(bytes).unwrap().into_iter().map(|code| {
        assert_eq!(code.bytes, &bytes[code.range.clone()]);
        let mut starts = BTreeMap::new();
        code.starts.iter().for_each(|start| *starts.entry(start.offset).or_default() |= start.is_kernel);
        (code.range.start, starts)
    });
    code.collect()
}

/// A linked object with two kernels, a function inside of a symbol-less rest, and data.
fn linked() -> DeviceElf {
    let mut elf = DeviceElf { linked: true, ..DeviceElf::with_text(vec![0; 256]) };
    // `.text` is 256 bytes at a multiple of 64, `.rodata` follows it.
    elf.sections.push(data(".rodata", [descriptor(-256, true), descriptor(-256, false)].concat()));
    let mut elf = elf.symbol("one", 2, 0, 32).symbol("two", 2, 64, 16).symbol("label", 0, 72, 0);
    for (name, offset) in [("one.kd", 0), ("two.kd", 64)] {
        elf = elf.symbol(name, 1, offset, 64);
        elf.symbols.last_mut().unwrap().section = 2;
    }
    elf.symbol("table", 1, 128, 32)
}

fn names(map: &CodeMap<'_>) -> Vec<(String, usize, usize)> {
    let symbols = map.sections.iter().flat_map(|section| &section.symbols);
    symbols.map(|symbol| (symbol.name.to_string(), symbol.offset, symbol.size)).collect()
}

#[test]
fn kernels_functions_data_and_labels_are_told_apart() {
    let bytes = linked().build();
    let map = CodeMap::read(&bytes).unwrap();
    assert_eq!((map.kind, map.machine, map.processor.unwrap().name), (ObjectKind::Linked, 0x41, "gfx1100"));
    assert!(map.problems.is_empty(), "{:?}", map.problems);
    let [text] = map.sections.as_slice() else { panic!("one code section") };
    assert_eq!((&*text.name, text.address, text.bytes.len()), (".text", text.range.start as u64, 256));
    assert_eq!(by_starts(&bytes), by_map(&map));
    let expected = [("one", 0, 32), ("two", 64, 16), ("label", 72, 0), ("table", 128, 32)];
    assert_eq!(names(&map), expected.map(|(name, offset, size)| (name.to_owned(), offset, size)));
    let kinds: Vec<_> = text.symbols.iter().map(|symbol| &symbol.kind).collect();
    let [SymbolKind::Kernel(one), SymbolKind::Kernel(two), SymbolKind::Label, SymbolKind::Object] = kinds[..] else {
        panic!("{kinds:?}")
    };
    assert_eq!((one.lanes, one.lds, one.scratch, one.kernarg), (32, 0x110, 32, 48));
    assert_eq!((two.lanes, two.vgprs), (64, None));
    for (offset, name, distance) in [(0, "one", 0), (40, "one", 40), (76, "label", 4), (255, "table", 127)] {
        let (symbol, found) = text.name_at(offset).unwrap();
        assert_eq!((&*symbol.name, found), (name, distance));
    }
}

#[test]
fn in_a_relocatable_file_the_name_leads_to_the_kernel() {
    let mut elf = linked();
    elf.linked = false;
    elf.relocations = vec![
        Relocation { section: 1, offset: 8, kind: 10, symbol: 2, addend: 4 },
        Relocation { section: 1, offset: 4, kind: 99, symbol: 6, addend: -4 },
    ];
    let bytes = elf.build();
    let map = CodeMap::read(&bytes).unwrap();
    assert_eq!((map.kind, map.problems.len()), (ObjectKind::Relocatable, 0));
    let text = &map.sections[0];
    assert!(matches!(text.symbols[1].kind, SymbolKind::Kernel(facts) if facts.lanes == 64));
    let rows: Vec<_> =
        text.relocations.iter().map(|row| (row.offset, row.type_name(), &*row.symbol, row.addend)).collect();
    assert_eq!(rows, [(4, "", "table", -4), (8, "R_AMDGPU_REL32_LO", "two", 4)]);
}

#[test]
fn files_without_sections_are_looked_at_by_their_segments() {
    let mut bytes = linked().build();
    bytes[40..48].fill(0);
    bytes[60..64].fill(0);
    let map = CodeMap::read(&bytes).unwrap();
    let names: Vec<_> = map.sections.iter().map(|section| (&*section.name, section.address)).collect();
    assert_eq!(names, [("segment 1", 0)]);
}

#[test]
fn assembled_objects_of_any_system_are_read() {
    for os_abi in [0, 64, 65, 66] {
        let bytes = DeviceElf { os_abi, ..linked() }.build();
        assert_eq!(names(&CodeMap::read(&bytes).unwrap()).len(), 4, "{os_abi}");
    }
}

#[test]
fn damage_to_names_is_left_out_and_told() {
    let good = linked().build();
    let header = |number| DeviceElf::header_of(&good, number);
    let symtab = u64::from_le_bytes(good[header(3) + 24..][..8].try_into().unwrap()) as usize;
    let symbol = |number: usize| symtab + 24 * number;
    // The damage, the position and value of the changed byte, the number of remaining names, the reported text.
    for (case, at, value, left, told) in [
        ("no string table", header(3) + 40, 99, 0, "no string table"),
        ("a name outside", symbol(1) + 3, 0xff, 4, "leaves its string table"),
        ("a symbol outside", symbol(3) + 12, 0xff, 3, "`label` is outside of its section"),
        ("an end outside", symbol(6) + 18, 0xff, 4, "the end of `table`"),
        ("a descriptor outside", symbol(4) + 14, 0xff, 4, "`one.kd` is outside of the file"),
    ] {
        let mut bytes = good.clone();
        bytes[at] = value;
        let map = CodeMap::read(&bytes).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(names(&map).len(), left, "{case}: {:?}", map.problems);
        assert!(map.problems.iter().any(|problem| problem.what.contains(told)), "{case}: {:?}", map.problems);
        assert!(map.problems.iter().all(|problem| problem.place.offset.is_some()), "{case}");
    }
    // A descriptor without a valid target makes its kernel a function.
    let mut bytes = good.clone();
    let rodata = u64::from_le_bytes(good[header(2) + 24..][..8].try_into().unwrap()) as usize;
    bytes[rodata + 22] = 1;
    let map = CodeMap::read(&bytes).unwrap();
    assert_eq!(map.sections[0].symbols[0].kind, SymbolKind::Function);
    assert!(map.problems[0].what.contains("the code of kernel `one`"), "{:?}", map.problems);
}

#[test]
fn damaged_relocations_are_left_out_and_told() {
    let mut elf = linked();
    elf.linked = false;
    elf.relocations = vec![Relocation { section: 1, offset: 8, kind: 10, symbol: 99, addend: 4 }];
    let bytes = elf.build();
    let map = CodeMap::read(&bytes).unwrap();
    assert!(map.sections[0].relocations.is_empty());
    assert!(map.problems[0].what.contains("names no symbol"), "{:?}", map.problems);
}

#[test]
fn sections_that_leave_the_file_are_refused_with_the_offset() {
    let good = linked().build();
    let header = DeviceElf::header_of(&good, 1);
    for at in [header + 31, header + 39] {
        let mut bytes = good.clone();
        bytes[at] = 1;
        let error = CodeMap::read(&bytes).unwrap_err();
        assert_eq!((error.code, error.place.offset), (codes::MALFORMED, Some(header as u64)));
    }
    for size in 0..good.len() {
        let error = CodeMap::read(&good[..size]).expect_err("the section table is at the end");
        assert!(error.place.offset.is_some(), "{size}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_change_of_bytes_makes_reading_panic_or_breaks_the_order(
        relocatable: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut elf = DeviceElf { linked: !relocatable, ..linked() };
        elf.relocations = vec![Relocation { section: 1, offset: 8, kind: 10, symbol: 2, addend: 4 }];
        elf.sections.push(Section { name: ".text.more".into(), flags: CODE, bytes: vec![1; 12] });
        let mut bytes = elf.build();
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(map) = CodeMap::read(&bytes) {
            for section in &map.sections {
                prop_assert_eq!(section.bytes, &bytes[section.range.clone()]);
                prop_assert!(section.symbols.is_sorted_by_key(|symbol| symbol.offset));
                let inside = |offset: usize, size: usize| offset < section.bytes.len() && offset + size <= section.bytes.len();
                prop_assert!(section.symbols.iter().all(|symbol| inside(symbol.offset, symbol.size)));
                prop_assert!(section.relocations.is_sorted_by_key(|relocation| relocation.offset));
            }
            prop_assert_eq!(by_starts(&bytes), by_map(&map));
        }
    }
}

const SOURCE: &str = "#define KERNEL __attribute__((amdgpu_kernel))
__attribute__((noinline)) int helper(int x) { int sum = 0; for (int i = 0; i < x; ++i) sum ^= sum * i + x; return sum; }
KERNEL void first(__attribute__((address_space(1))) int *p) { *p = helper(*p); }
KERNEL void second(__attribute__((address_space(1))) int *p) { *p += 1; }
";

/// Name, offset and size of the symbols of code sections as `llvm-readelf` prints them.
fn by_readelf(text: &str, code: &[(usize, u64)]) -> BTreeMap<String, (u64, u64)> {
    let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).filter(|words| words.len() == 8);
    let number = |text: &str, radix| u64::from_str_radix(text.trim_start_matches("0x"), radix).ok();
    let row = |words: Vec<&str>| {
        let section: usize = words[6].parse().ok()?;
        let (_, address) = code.iter().find(|(index, _)| *index == section)?;
        let is_named = !matches!(words[3], "SECTION" | "FILE");
        let size = number(words[2], if words[2].starts_with("0x") { 16 } else { 10 })?;
        is_named.then_some((words[7].to_owned(), (number(words[1], 16)? - address, size)))
    };
    rows.filter_map(row).collect()
}

#[test]
fn symbols_are_those_of_readelf() {
    for clang in clangs("symbols_are_those_of_readelf") {
        let directory = clang.scratch();
        std::fs::write(directory.path().join("k.c"), SOURCE).unwrap();
        for (target, lanes, options) in
            [("gfx1100", 32, ""), ("gfx1100", 64, "-mwavefrontsize64"), ("gfx942", 64, ""), ("gfx1030", 32, "-O0 -g")]
        {
            let suffix = clang.command.rsplit_once('-').map_or(String::new(), |(_, version)| format!("-{version}"));
            let text = clang.run(
                directory.path(),
                &format!(
                    "\"$CLANG\" --target=amdgcn-amd-amdhsa -mcpu={target} -nogpulib -O2 {options} -ffunction-sections -c k.c -o k.o
                     ld.lld{suffix} -shared k.o -o k.co; llvm-readelf{suffix} -sW k.o > k.o.txt; llvm-readelf{suffix} -sW k.co > k.co.txt"
                ),
            );
            assert_eq!(text, "");
            for file in ["k.o", "k.co"] {
                let read = |name: &str| std::fs::read(directory.path().join(name)).unwrap();
                let (bytes, told) = (read(file), String::from_utf8(read(&format!("{file}.txt"))).unwrap());
                let map = CodeMap::read(&bytes).unwrap();
                assert!(map.problems.is_empty(), "{target} {file}: {:?}", map.problems);
                let found: BTreeMap<_, _> =
                    names(&map).into_iter().map(|(name, at, size)| (name, (at as u64, size as u64))).collect();
                let code: Vec<_> = code_sections(&bytes, &map);
                assert_eq!(found, by_readelf(&told, &code), "{target} {file}");
                let symbols = map.sections.iter().flat_map(|section| &section.symbols);
                let kernels: Vec<_> = symbols
                    .filter_map(|symbol| match symbol.kind {
                        SymbolKind::Kernel(facts) => {
                            Some((symbol.name.to_string(), facts.lanes, facts.vgprs.is_some()))
                        }
                        _ => None,
                    })
                    .collect();
                let expected = ["first", "second"].map(|name| (name.to_owned(), lanes, true));
                assert_eq!(kernels, expected, "{target} {file}");
            }
        }
    }
}

/// Numbers and addresses of the map's sections in the file's table.
fn code_sections(bytes: &[u8], map: &CodeMap<'_>) -> Vec<(usize, u64)> {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let table = word(40) as usize;
    let count = usize::from(u16::from_le_bytes(bytes[60..62].try_into().unwrap()));
    let is_code = |index: &usize| {
        let (offset, size) = (word(table + 64 * index + 24), word(table + 64 * index + 32));
        let flags = word(table + 64 * index + 8);
        flags & 4 != 0
            && map.sections.iter().any(|section| section.range == (offset as usize..(offset + size) as usize))
    };
    (0..count).filter(is_code).map(|index| (index, word(table + 64 * index + 16))).collect()
}
