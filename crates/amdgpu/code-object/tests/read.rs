//! Reading: the contents of a whole object, and the diagnostic of each kind of damage.

use hotswap_code_object::{CodeObject, ObjectEdit, ObjectKind, is_code_object, kernel_count};
use hotswap_report::codes;
use hotswap_samples::code_object::Sample;
use proptest::prelude::*;

fn refused(bytes: &[u8]) -> hotswap_report::Diagnostic {
    CodeObject::parse(bytes).expect_err("it should be refused")
}

#[test]
fn a_whole_object_is_read() {
    let bytes = Sample::default().build();
    let object = CodeObject::parse(&bytes).unwrap();
    assert!(is_code_object(&bytes));
    assert_eq!(object.target_id().to_string(), "gfx1030");
    assert_eq!((object.e_flags(), object.abi_version(), object.kind()), (0x36, 4, ObjectKind::Linked));
    let note = object.note();
    assert_eq!(note.target, "amdgcn-amd-amdhsa--gfx1030");
    assert_eq!(note.target_ranges.len(), 1);
    assert_eq!(&bytes[note.target_ranges[0].clone()], note.target.as_bytes());
    assert_eq!(note.version, (1, 2));
    let names: Vec<_> = note.kernels.iter().map(|k| (k.name, k.symbol, k.vgpr_count, k.lds)).collect();
    assert_eq!(names, [("first", "first.kd", Some(7), None), ("second", "second.kd", Some(7), None)]);
    assert_eq!(kernel_count(&bytes), Some(2));
    let text = object.sections().iter().find(|s| s.is_code()).unwrap();
    assert_eq!(text.name, ".text");
    for descriptor in object.descriptors() {
        assert_eq!(descriptor.range.len(), 64);
        assert_eq!(descriptor.entry, text.address);
    }
}

/// Images inside offload binaries start anywhere.
#[test]
fn alignment_of_the_bytes_does_not_matter() {
    let bytes = Sample::default().build();
    for shift in 1..8 {
        let shifted = [&vec![0; shift][..], &bytes].concat();
        assert_eq!(CodeObject::parse(&shifted[shift..]).unwrap().target_id().to_string(), "gfx1030");
    }
}

/// Every V3 object, and V4 and later where the kernels are written in assembly (hipBLASLt).
#[test]
fn without_a_target_in_the_note_the_flags_name_it() {
    for abi_version in 1..=4 {
        let flags = if abi_version == 1 { 0x32f } else { 0xf2f };
        let bytes = Sample { target: String::new(), flags, abi_version, lanes: 64, ..Sample::default() }.build();
        let object = CodeObject::parse(&bytes).unwrap();
        assert_eq!(object.target_id().to_string(), "gfx906:sramecc+:xnack+");
        assert_eq!((object.note().target, object.note().target_ranges.len()), ("", 0));
        let mut edit = ObjectEdit::new(&object);
        edit.set_note_target(&object.note().respell_target(&object.target_id())).unwrap();
        assert_eq!(edit.finish(), bytes);
    }
}

/// rocBLAS links assembly without a target with compiled kernels.
#[test]
fn a_target_in_some_of_the_notes_is_that_of_all() {
    let good = Sample { notes: 2, ..Sample::default() }.build();
    let ranges = CodeObject::parse(&good).unwrap().note().target_ranges.clone();
    for (without, with) in [(0, 1), (1, 0)] {
        let mut bytes = good.clone();
        bytes[ranges[without].start - 3] = b'_';
        let object = CodeObject::parse(&bytes).unwrap();
        assert_eq!(object.note().target, "amdgcn-amd-amdhsa--gfx1030");
        assert_eq!(object.note().target_ranges, [ranges[with].clone()]);
    }
}

#[test]
fn other_files_are_named() {
    for (bytes, part) in [
        (&b""[..], "empty"),
        (b"BC\xc0\xde\x35\x14", "bitcode"),
        (b"!<arch>\nxxxxxxxxxxxxxxxxxxxxxx", "not an ELF file"),
        (b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "64-bit"),
    ] {
        let error = refused(bytes);
        assert_eq!((error.code, error.place.offset), (codes::NOT_CODE_OBJECT, Some(0)));
        assert!(error.what.contains(part), "{}", error.what);
    }
    let mut x86 = Sample::default().build();
    x86[18] = 62;
    assert!(refused(&x86).what.contains("machine 62"));
    assert!(!is_code_object(&x86));
}

/// Offset, new value, code, part of the message.
#[test]
fn each_damage_has_its_code_and_offset() {
    let good = Sample::default().build();
    let table = u64::from_le_bytes(good[40..48].try_into().unwrap()) as usize;
    let note = CodeObject::parse(&good).unwrap().note().ranges[0].start;
    for (at, value, code, offset, part) in [
        (6, 2, codes::UNKNOWN_FORMAT, 6, "version"),
        (7, 65, codes::UNKNOWN_FORMAT, 7, "OS ABI 65"),
        (8, 0, codes::UNKNOWN_FORMAT, 8, "V2"),
        (8, 5, codes::UNKNOWN_FORMAT, 8, "newer than V6"),
        (16, 2, codes::UNKNOWN_FORMAT, 16, "ELF type 2"),
        (48, 0xff, codes::UNKNOWN_MACHINE, 48, "machine 0xff"),
        (48, 0x40, codes::UNKNOWN_MACHINE, 48, "gfx940"),
        (49, 1, codes::MALFORMED, 48, "xnack"),
        (50, 1, codes::MALFORMED, 48, "no meaning"),
        (51, 1, codes::UNKNOWN_FORMAT, 48, "generic version 1"),
        (48, 0x37, codes::MALFORMED, usize::MAX, "is for gfx1030, the ELF header for gfx1031"),
        (47, 1, codes::MALFORMED, 40, "section table"),
        (60, 0xff, codes::MALFORMED, 40, "section table"),
        (58, 63, codes::MALFORMED, 58, "64 bytes"),
        (54, 55, codes::MALFORMED, 54, "56 bytes"),
        (56, 0xff, codes::MALFORMED, 32, "program header table"),
        (64 + 39, 1, codes::MALFORMED, 64, "a segment"),
        (table + 64 * 4 + 31, 1, codes::MALFORMED, table + 64 * 4, "a section"),
        (table + 64 * 2 + 40, 99, codes::MALFORMED, usize::MAX, "string table"),
        (table + 64 * 5, 0xf0, codes::MALFORMED, table + 64 * 5, "name"),
        (note - 20, 99, codes::MALFORMED, note - 20, "a note leaves"),
        (note - 12, 31, codes::MALFORMED, 0, "no AMDGPU metadata note"),
        (note, 0x96, codes::MALFORMED, note, "no map"),
        (note, 0x84, codes::MALFORMED, usize::MAX, "cut off"),
        (note + 1, 0xc1, codes::MALFORMED, note + 1, "no MessagePack"),
        (note, 0x82, codes::MALFORMED, usize::MAX, "bytes follow"),
    ] {
        let mut bytes = good.clone();
        bytes[at] = value;
        let error = refused(&bytes);
        assert_eq!(error.code, code, "{at}: {}", error.what);
        assert!(error.what.contains(part), "{at}: {}", error.what);
        let found = error.place.offset.expect("an offset");
        assert!(offset == usize::MAX || found == offset as u64, "{at}: {found:#x}: {}", error.what);
    }
}

#[test]
fn kernels_and_descriptors_must_agree() {
    let good = Sample::default().build();
    let object = CodeObject::parse(&good).unwrap();
    let [first, second] = [0, 1].map(|index| object.descriptors()[index].range.clone());
    let symbol = object.sections().iter().find(|s| s.name == ".dynsym").unwrap().range.start + 24;
    for (at, value, part) in [
        (first.start + 57, 0, "waves of 32 lanes, the descriptor of 64"),
        (second.start + 23, 1, "leaves its section"),
        (second.start + 20, 0xff, "leaves its section"),
        (symbol + 16, 63, "no symbol `first.kd`"),
        (symbol + 12, 0xff, "leaves its section"),
        (symbol, 200, "leaves its string table"),
    ] {
        let mut bytes = good.clone();
        bytes[at] = value;
        let error = refused(&bytes);
        assert_eq!(error.code, codes::MALFORMED);
        assert!(error.what.contains(part), "{}", error.what);
    }
    let wave64_only = Sample { lanes: 16, ..Sample::default() };
    assert!(refused(&wave64_only.build()).what.contains("which gfx1030 does not have"));
}

/// As rocPRIM's are for every architecture except one: valid, and without anything that could be run.
#[test]
fn a_kernel_without_instructions_begins_at_the_end_of_the_code() {
    for apart in [false, true] {
        let good = Sample { apart, ..Sample::default() }.build();
        let object = CodeObject::parse(&good).unwrap();
        let entry = object.descriptors()[1].range.start + 16;
        let text = object.sections().iter().find(|section| section.name == ".text").unwrap();
        let distance = |to: u64| (to as i64 - object.descriptors()[1].address as i64).to_le_bytes();
        let end = text.address + text.range.len() as u64;
        let at = |address: u64| {
            let mut bytes = good.clone();
            bytes[entry..entry + 8].copy_from_slice(&distance(address));
            bytes
        };
        assert_eq!(CodeObject::parse(&at(end)).unwrap().descriptors()[1].entry, end);
        for outside in [end + 1, end + 4, end + 256, u64::MAX] {
            let error = refused(&at(outside));
            assert_eq!((error.code, error.place.kernel.as_deref()), (codes::MALFORMED, Some("second")));
        }
        assert_eq!(CodeObject::parse(&at(text.address - 4)).is_err(), apart, "headers are code unless code is apart");
    }
}

/// That many descriptors are searched on all cores.
#[test]
fn of_many_kernels_the_first_that_is_wrong_is_told() {
    let names: Vec<&'static str> = (0..9000).map(|number| &*format!("k{number}").leak()).collect();
    let good = Sample { kernels: names.clone(), ..Sample::default() }.build();
    let object = CodeObject::parse(&good).unwrap();
    assert_eq!(object.descriptors().len(), names.len());
    assert!(object.descriptors().windows(2).all(|pair| pair[0].range.end == pair[1].range.start));
    assert!(object.note().kernels.iter().zip(&names).all(|(kernel, name)| kernel.name == *name));
    for wrong in [[8999, 4097], [5, 8000], [2048, 2047]] {
        let mut bytes = good.clone();
        wrong.iter().for_each(|number| bytes[object.descriptors()[*number].range.start + 57] = 0);
        let error = refused(&bytes);
        let first = names[wrong[0].min(wrong[1])];
        assert_eq!(error.place.kernel.as_deref(), Some(first), "{}", error.what);
    }
}

#[test]
fn the_note_must_be_there_and_name_the_target_of_the_header() {
    let of = |target: &str| Sample { target: target.into(), ..Sample::default() };
    for (sample, part) in [
        (Sample { notes: 0, ..Sample::default() }, "no AMDGPU metadata note"),
        (Sample { notes: 2, kernels: vec!["first", "first"], ..Sample::default() }, "`first` is in two"),
        (of("amdgcn-amd-amdhsa--gfx1031"), "is for gfx1031"),
        (of("amdgcn-amd-amdhsa--gfx9999"), "no known processor"),
        (of("amdgcn-amd-amdhsa"), "not a triple"),
        (of("amdgcn-amd-amdpal--gfx1030"), "HSA runtime"),
        (of("amdgpu10.31-amd-amdhsa-unknown-gfx1030"), "architecture"),
        (of("amdgpu11-amd-amdhsa-unknown-gfx1030"), "architecture"),
        (of("r600-amd-amdhsa--gfx1030"), "architecture"),
    ] {
        let error = refused(&sample.build());
        assert!(error.what.contains(part), "{}", error.what);
    }
}

/// Clang 22 writes one note for each LTO partition.
#[test]
fn several_notes_are_one_and_are_edited_together() {
    let sample = Sample { notes: 2, ..Sample::default() };
    let bytes = sample.build();
    let object = CodeObject::parse(&bytes).unwrap();
    let names: Vec<_> = object.note().kernels.iter().map(|kernel| kernel.name).collect();
    assert_eq!((names, object.note().ranges.len()), (vec!["first", "second"], 2));
    let mut edit = ObjectEdit::new(&object);
    edit.set_e_flags(0x37);
    edit.set_note_target("amdgcn-amd-amdhsa--gfx1031").unwrap();
    let expected = Sample { flags: 0x37, target: "amdgcn-amd-amdhsa--gfx1031".into(), ..sample };
    assert_eq!(edit.finish(), expected.build());

    let mut torn = bytes.clone();
    torn[object.note().target_ranges[1].end - 1] = b'1';
    let error = refused(&torn);
    assert_eq!((error.code, error.place.offset), (codes::MALFORMED, Some(object.note().ranges[1].start as u64)));
}

#[test]
fn the_note_is_spelled_for_siblings_as_the_compiler_would() {
    let target = "gfx1031".parse().unwrap();
    for (target_text, spelled) in [
        ("amdgcn-amd-amdhsa--gfx1030", "amdgcn-amd-amdhsa--gfx1031"),
        ("amdgcn-amd-amdhsa-unknown-gfx1030", "amdgcn-amd-amdhsa-unknown-gfx1031"),
        ("amdgpu10.30-amd-amdhsa-unknown-gfx1030", "amdgpu10.31-amd-amdhsa-unknown-gfx1031"),
        ("amdgpu10.3-amd-amdhsa-unknown-gfx1030", "amdgpu10.3-amd-amdhsa-unknown-gfx1031"),
        ("amdgpu-amd-amdhsa--gfx1030", "amdgpu-amd-amdhsa--gfx1031"),
    ] {
        let bytes = Sample { target: target_text.into(), ..Sample::default() }.build();
        assert_eq!(CodeObject::parse(&bytes).unwrap().note().respell_target(&target), spelled);
    }
}

#[test]
fn an_edit_changes_what_it_names_and_nothing_else() {
    let bytes = Sample::default().build();
    let object = CodeObject::parse(&bytes).unwrap();
    assert_eq!(ObjectEdit::new(&object).finish(), bytes);
    let mut edit = ObjectEdit::new(&object);
    edit.set_e_flags(0x37);
    edit.set_note_target("amdgcn-amd-amdhsa--gfx1031").unwrap();
    let changed = edit.finish();
    let expected = Sample { flags: 0x37, target: "amdgcn-amd-amdhsa--gfx1031".into(), ..Sample::default() };
    assert_eq!(changed, expected.build());
    assert_eq!(CodeObject::parse(&changed).unwrap().target_id().to_string(), "gfx1031");
}

#[test]
fn a_name_that_is_none_is_refused_and_nothing_changes() {
    let bytes = Sample::default().build();
    let object = CodeObject::parse(&bytes).unwrap();
    for text in ["gfx1031", "amdgcn-amd-amdhsa--gfx9zzz", ""] {
        let mut edit = ObjectEdit::new(&object);
        let error = edit.set_note_target(text).unwrap_err();
        assert_eq!(
            (error.code, error.place.offset),
            (codes::NO_ROUTE, Some(object.note().target_ranges[0].start as u64))
        );
        assert_eq!(edit.finish(), bytes);
    }
}

#[test]
fn every_truncation_is_refused() {
    let whole = Sample::default().build();
    // No truncation changes the number.
    // A count for which the note has no room is rejected.
    let (mut claims, key) = (whole.clone(), b"amdhsa.kernels");
    let at = whole.windows(key.len()).position(|window| window == key).unwrap() + key.len();
    claims[at..at + 5].copy_from_slice(&[0xdd, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(kernel_count(&claims), None);
    assert!((0..whole.len()).all(|cut| kernel_count(&whole[..cut]).is_none_or(|count| count == 2)));
    let bytes = Sample::default().build();
    for size in 0..bytes.len() {
        assert!(refused(&bytes[..size]).place.offset.is_some(), "{size}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_change_of_bytes_makes_reading_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = Sample::default().build();
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(object) = CodeObject::parse(&bytes) {
            prop_assert_eq!(ObjectEdit::new(&object).finish(), bytes.clone());
            prop_assert!(object.descriptors().iter().all(|d| d.range.end <= bytes.len()));
        }
    }

    #[test]
    fn extreme_words_in_headers_and_tables_do_not_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(vec![0, 1, 8, u64::MAX, u64::MAX - 7, 1 << 63, 0xffff_ffff, 1 << 32])), 1..4),
    ) {
        let mut bytes = Sample::default().build();
        for (index, value) in changes {
            let at = index.index(bytes.len() / 8 - 1) * 8;
            bytes[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
        }
        let _ = CodeObject::parse(&bytes);
    }

    #[test]
    fn random_bytes_behind_a_good_header_do_not_panic(tail in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut bytes = Sample::default().build()[..64].to_vec();
        bytes.extend(tail);
        let _ = CodeObject::parse(&bytes);
    }
}
