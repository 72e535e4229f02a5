//! Arbitrary bytes: readers answer or refuse, and LLVM's rules accept everything they write.

mod common;

use common::{BASE, Memory, elf, object, reader_accepts, take};
use hotswap_profile_drain::bytes::{ByteSource, Span};
use hotswap_profile_drain::capture::{Capture, CaptureRefusal, Loaded, capture};
use hotswap_profile_drain::elf::{Blocks, CodeObjectFile, ElfFault, Sections};
use hotswap_profile_drain::layout::LAYOUTS;
use hotswap_profile_drain::raw::{Fixed, PayloadParts, add, names_are_sound, padded, subtract};
use hotswap_profile_drain::record::{self, Frame};
use hotswap_profile_drain::store::Store;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn a_sound_object_is_captured_as_it_is() {
    for layout in &LAYOUTS {
        let (memory, file, sections) = object(layout);
        let capture = take(&memory, &file).unwrap_or_else(|refusal| panic!("{refusal:?}"));
        assert_eq!((capture.fixed.version, capture.dropped), (u64::from(layout.version), 0));
        assert!(reader_accepts(&capture));
        assert_eq!(capture.sections, sections);
        assert_eq!(&capture.payload[..8], &100u64.to_le_bytes());
        let size = hotswap_profile_drain::raw::header_size(layout);
        assert_eq!(
            (capture.fixed.header(layout, 0).bytes().len(), size),
            if layout.version == 10 { (128, 128) } else { (152, 152) }
        );
    }
}

#[test]
fn a_record_in_the_middle_that_is_dropped_moves_the_later_ones() {
    for layout in &LAYOUTS {
        let (mut memory, file, _) = object(layout);
        let whole = take(&memory, &file).unwrap_or_else(|refusal| panic!("{refusal:?}"));
        memory[0x500 + layout.counter_count] = 0;
        let rest = take(&memory, &file).unwrap_or_else(|refusal| panic!("{refusal:?}"));
        assert_eq!((rest.dropped, rest.fixed.data.len()), (1, layout.record));
        assert!(reader_accepts(&rest));
        assert_ne!(rest.fixed.identity(layout), whole.fixed.identity(layout));
    }
}

#[test]
fn what_lies_outside_is_refused() {
    for layout in &LAYOUTS {
        let (memory, _, mut sections) = object(layout);
        sections.counters.size = 0x10000;
        let refusal = take(&memory, &elf(&memory, &sections)).err();
        assert!(matches!(refusal, Some(CaptureRefusal::Section(b"__llvm_prf_cnts", _))), "{refusal:?}");
        sections.counters.size = 0;
        assert_eq!(take(&memory, &elf(&memory, &sections)).err(), Some(CaptureRefusal::NoProfile));
        assert_eq!(
            take(&memory, b"no ELF at all, but long enough to hold a header of one, sixty-four").err(),
            Some(CaptureRefusal::NoProfile)
        );
        let loaded = Loaded { base: BASE, size: 0x800, table: None };
        let missing: Result<CodeObjectFile<'_, &[u8]>, ElfFault> = Err(ElfFault::Unreadable);
        let refusal = capture(&Memory(memory), loaded, &missing).err();
        assert_eq!(refusal, Some(CaptureRefusal::Unknown(ElfFault::Unreadable)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damaged_files_and_memory_give_profiles_that_llvm_reads_or_none(
        version in 0usize..2,
        file_damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        memory_damage in prop::collection::vec((0x400usize..0x600, any::<u8>()), 0..6),
    ) {
        let (mut memory, mut file, _) = object(&LAYOUTS[version]);
        for (at, byte) in file_damage {
            let at = at.index(file.len());
            file[at] = byte;
        }
        for (at, byte) in memory_damage {
            memory[at] = byte;
        }
        if let Ok(capture) = take(&memory, &file) {
            prop_assert!(reader_accepts(&capture));
            prop_assert!(names_are_sound(&capture.fixed.names));
        }
    }

    #[test]
    fn any_bytes_are_a_file_or_not(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let image = bytes.as_slice();
        if let Ok(file) = CodeObjectFile::open(&image, bytes.len() as u64) {
            let _ = file.sections();
            let _ = file.symbol(b"__llvm_profile_sections");
        }
        let _ = names_are_sound(&bytes);
    }

    #[test]
    fn what_was_added_can_be_taken_back(
        parts in (0usize..6, 0usize..20, 0usize..6),
        seed in any::<u64>(),
    ) {
        let parts = PayloadParts { counters: parts.0 * 8, bits: parts.1, uniform: parts.2 * 8 };
        let payload = |salt: u64| -> Vec<u8> {
            let words = (0..parts.size() / 8).map(|index| (seed ^ salt).wrapping_mul(index as u64 + 3) >> 2);
            words.flat_map(u64::to_le_bytes).collect()
        };
        let (first, second) = (payload(1), payload(2));
        let mut sum = first.clone();
        add(&mut sum, &second, parts, false);
        subtract(&mut sum, &second, parts, false);
        prop_assert_eq!(&sum[..parts.counters], &first[..parts.counters]);
        prop_assert_eq!(&sum[parts.uniform_at()..], &first[parts.uniform_at()..]);
        prop_assert_eq!(parts.size(), padded(parts.counters) + padded(parts.bits) + padded(parts.uniform));
    }

    #[test]
    fn records_of_any_bytes_are_cleaned_in_place(mut data in prop::collection::vec(any::<u8>(), 0..600), version in 0usize..2) {
        let layout = &LAYOUTS[version];
        let sections = Sections {
            data: Span { address: 0x1000, size: data.len() as u64 },
            counters: Span { address: 0x800, size: 0x800 },
            ..Sections::default()
        };
        let records = data.len() / layout.record;
        let count = record::clean(&mut data, layout, Frame { sections: &sections, counter: 8 });
        prop_assert_eq!(count.kept + count.dropped, records);
    }
}

#[test]
fn small_profiles_share_a_file_and_each_is_in_one() {
    let layout = &LAYOUTS[1];
    let mut store = Store::EMPTY;
    let objects = 400u32;
    for node in 0..2 {
        for number in 0..objects {
            let (mut memory, file, _) = object(layout);
            memory[0x500..0x504].copy_from_slice(&number.to_le_bytes());
            let capture = take(&memory, &file).unwrap_or_else(|refusal| panic!("{refusal:?}"));
            assert!(store.take(capture, (u64::from(number), u64::from(node)), [b'g'; 64], node).is_some());
        }
    }
    let files = |alone: bool| (0..store.entries().len()).filter_map(|number| store.volume(number, 0, alone)).collect();
    let (shared, alone): (Vec<_>, Vec<_>) = (files(false), files(true));
    assert_eq!(alone.len(), 2 * objects as usize);
    // Each profile has 152 bytes of header, 80 of its identity, two records of 72, six counters twice and eight bytes of names: 109 in 64 KiB.
    assert_eq!(shared.len(), 8);
    assert_eq!(shared.iter().map(|volume| store.records(*volume)).sum::<usize>(), 4 * objects as usize);
    let names: BTreeSet<_> =
        shared.iter().filter_map(|volume| store.device(*volume)).map(|d| (d.content, d.node)).collect();
    assert_eq!(names.len(), shared.len());
}

/// The capture of an object whose first function has this hash, after `launches`.
fn captured(hash: u32, launches: u64) -> Capture {
    let (mut memory, file, _) = object(&LAYOUTS[1]);
    memory[0x500..0x504].copy_from_slice(&hash.to_le_bytes());
    memory[0x400..0x408].copy_from_slice(&launches.to_le_bytes());
    take(&memory, &file).unwrap_or_else(|refusal| panic!("{refusal:?}"))
}

#[test]
fn each_load_counts_once_whatever_becomes_of_its_handles() {
    let mut store = Store::EMPTY;
    let load = |store: &mut Store, key, hash, launches| {
        assert!(store.take(captured(hash, launches), key, [b'g'; 64], 1).is_some());
    };
    let again = |launches: u64| {
        move |_: &Sections, _: &Fixed| {
            let mut payload = captured(1, 0).payload;
            payload[..8].copy_from_slice(&launches.to_le_bytes());
            Some(payload)
        }
    };
    load(&mut store, (1, BASE), 1, 10);
    load(&mut store, (2, BASE), 1, 100);
    // Other code under the handles of the first load, which is gone: its counts stay, and are added once.
    load(&mut store, (1, BASE), 2, 1000);
    assert_eq!(store.loads(), 2);
    assert_eq!(first_counters(&store), [110, 1000]);
    // Known loads are read again; the one that is not listed any more keeps its last counts.
    assert!(store.refresh((2, BASE), again(101)) && !store.refresh((3, BASE), again(7)));
    // A load that is captured as a whole again is the same load.
    load(&mut store, (2, BASE), 1, 101);
    store.retire_all_but([(2, BASE)].into_iter());
    assert_eq!((store.loads(), first_counters(&store)), (1, [111, 1000].to_vec()));
    assert!(!store.refresh((1, BASE), again(7)));
    // The same code comes back under these handles, and is added to what there was.
    load(&mut store, (1, BASE), 2, 5);
    store.retire_all_but(std::iter::empty());
    assert_eq!((store.loads(), first_counters(&store)), (0, [111, 1005].to_vec()));
}

/// The first counter of each entry.
fn first_counters(store: &Store) -> Vec<u64> {
    let first = |bytes: &[u8]| u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
    store.entries().iter().map(|entry| first(&entry.counts().expect("there is memory"))).collect()
}

#[test]
fn blocks_read_what_is_there() {
    let bytes: Vec<u8> = (0..200_001u32).map(|index| ((index * 7) >> 3) as u8).collect();
    let blocks = Blocks::new(bytes.as_slice(), bytes.len() as u64);
    for offset in [0u64, 1, 65_535, 65_536, 131_000, 199_990, 200_000, 200_001, 5, u64::MAX] {
        for length in [0usize, 1, 8, 10, 65_536, 70_000] {
            let (mut one, mut other) = (vec![0; length], vec![0; length]);
            let read = bytes.as_slice().read(offset, &mut one);
            assert_eq!(blocks.read(offset, &mut other), read, "{offset}, {length}");
            assert!(!read || one == other, "{offset}, {length}");
        }
    }
}
