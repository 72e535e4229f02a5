//! Bytes that nobody wrote on purpose: readers answer or refuse, and what they write LLVM's rules accept.

use hotswap_profile_drain::capture::{Device, Loaded, Refusal, capture};
use hotswap_profile_drain::elf::{Blocks, Fault, File, Image, Sections, Span, word};
use hotswap_profile_drain::layout::{LAYOUTS, Layout};
use hotswap_profile_drain::raw::{Parts, add, names_are_sound, padded, subtract};
use hotswap_profile_drain::record::{self, Frame};
use proptest::prelude::*;

/// Memory that a "GPU" holds from address 0x10000 on.
struct Memory(Vec<u8>);

const BASE: u64 = 0x10000;

impl Device for Memory {
    fn copy(&self, address: u64, into: &mut [u8]) -> Result<(), u32> {
        let from = address.checked_sub(BASE).ok_or(0x1001u32)?;
        if self.0.as_slice().read(from, into) { Ok(()) } else { Err(0x1001) }
    }
}

const COUNTERS: Span = Span { address: 0x400, size: 48 };
const UNIFORM: Span = Span { address: 0x430, size: 48 };
const NAMES: &[u8] = b"\x03\x00f\x01g";

/// Two functions with three counters each, in one layout, and the ELF that describes them.
fn object(layout: &Layout) -> (Vec<u8>, Vec<u8>, Sections) {
    let data = Span { address: 0x500, size: 2 * layout.record as u64 };
    let uniform = if layout.uniform.is_some() { UNIFORM } else { Span::default() };
    let names = Span { address: 0x100, size: NAMES.len() as u64 };
    let mut memory = vec![0; 0x800];
    memory[0x100..0x100 + NAMES.len()].copy_from_slice(NAMES);
    for index in 0..2usize {
        let at = 0x500 + index * layout.record;
        let mut set =
            |offset: usize, bytes: &[u8]| memory[at + offset..at + offset + bytes.len()].copy_from_slice(bytes);
        set(0, &[index as u8 + 1; 16]);
        let counters = COUNTERS.address + 24 * index as u64;
        set(layout.counters, &counters.wrapping_sub(at as u64).to_le_bytes());
        set(layout.counter_count, &3u32.to_le_bytes());
        if let Some(field) = layout.uniform {
            set(field, &(counters + 0x30).wrapping_sub(at as u64).to_le_bytes());
        }
    }
    for index in 0..12u64 {
        let at = 0x400 + 8 * index as usize;
        memory[at..at + 8].copy_from_slice(&(100 + index).to_le_bytes());
    }
    let sections = Sections { data, counters: COUNTERS, uniform, names, names_offset: 0x100, ..Sections::default() };
    let file = elf(&memory, &sections);
    (memory, file, sections)
}

/// The memory as a file, with section headers behind it.
fn elf(memory: &[u8], sections: &Sections) -> Vec<u8> {
    let mut file = memory.to_vec();
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    file[18..20].copy_from_slice(&224u16.to_le_bytes());
    let mut texts = vec![0u8];
    let mut headers = vec![0u8; 64];
    let named = [
        ("__llvm_prf_data", sections.data),
        ("__llvm_prf_cnts", sections.counters),
        ("__llvm_prf_ucnts", sections.uniform),
        ("__llvm_prf_names", sections.names),
    ];
    let header = |name: usize, flags: u64, span: Span, offset: u64| {
        let mut header = vec![0u8; 64];
        header[..4].copy_from_slice(&(name as u32).to_le_bytes());
        header[8..16].copy_from_slice(&flags.to_le_bytes());
        header[16..24].copy_from_slice(&span.address.to_le_bytes());
        header[24..32].copy_from_slice(&offset.to_le_bytes());
        header[32..40].copy_from_slice(&span.size.to_le_bytes());
        header
    };
    for (name, span) in named.iter().filter(|(_, span)| span.size > 0) {
        headers.extend(header(texts.len(), 2, *span, span.address));
        texts.extend(name.bytes().chain([0]));
    }
    let offset = file.len() as u64;
    headers.extend(header(0, 0, Span { address: 0, size: texts.len() as u64 }, offset));
    file.extend(&texts);
    let count = headers.len() / 64;
    let start = file.len() as u64;
    file[40..48].copy_from_slice(&start.to_le_bytes());
    file[58..60].copy_from_slice(&64u16.to_le_bytes());
    file[60..62].copy_from_slice(&(count as u16).to_le_bytes());
    file[62..64].copy_from_slice(&(count as u16 - 1).to_le_bytes());
    file.extend(headers);
    file
}

fn take(memory: &[u8], file: &[u8]) -> Result<hotswap_profile_drain::capture::Capture, Refusal> {
    let device = Memory(memory.to_vec());
    let blocks = Blocks::new(file, file.len() as u64);
    let loaded = Loaded { base: BASE, size: memory.len() as u64, table: None };
    capture(&device, loaded, &File::open(&blocks, file.len() as u64))
}

/// LLVM's reader, as far as it decides: every record must lead into the counters.
fn reader_accepts(capture: &hotswap_profile_drain::capture::Capture) -> bool {
    let layout = LAYOUTS.iter().find(|layout| u64::from(layout.version) == capture.fixed.version & 0xffff_ffff);
    let layout = layout.expect("a known version");
    let (mut delta, mut uniform) = (capture.fixed.deltas.counters, capture.fixed.deltas.uniform);
    let parts = capture.fixed.parts;
    let fits = |offset: u64, count: u64, size: usize| {
        offset.checked_add(count * 8).is_some_and(|end| end <= size as u64) && offset.is_multiple_of(8)
    };
    capture.fixed.data.chunks(layout.record).all(|record| {
        let count = word::<4>(record, layout.counter_count);
        let good = count > 0 && fits(word::<8>(record, layout.counters).wrapping_sub(delta), count, parts.counters);
        let field = layout.uniform.filter(|_| parts.uniform > 0);
        let also = field.is_none_or(|field| fits(word::<8>(record, field).wrapping_sub(uniform), count, parts.uniform));
        let sites = record[layout.sites..layout.sites + 6] == [0; 6];
        delta = delta.wrapping_sub(layout.record as u64);
        uniform = uniform.wrapping_sub(layout.record as u64);
        good && also && sites
    })
}

#[test]
fn a_sound_object_is_captured_as_it_is() {
    for layout in &LAYOUTS {
        let (memory, file, sections) = object(layout);
        let capture = take(&memory, &file).unwrap_or_else(|refusal| panic!("{refusal:?}"));
        assert_eq!((capture.fixed.version, capture.dropped), (u64::from(layout.version), 0));
        assert!(reader_accepts(&capture));
        assert_eq!(capture.sections, sections);
        assert_eq!(&capture.payload[..8], &100u64.to_le_bytes());
        assert_eq!(capture.fixed.header(layout).bytes().len(), if layout.version == 10 { 128 } else { 152 });
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
        assert!(matches!(refusal, Some(Refusal::Section(b"__llvm_prf_cnts", _))), "{refusal:?}");
        sections.counters.size = 0;
        assert_eq!(take(&memory, &elf(&memory, &sections)).err(), Some(Refusal::NoProfile));
        assert_eq!(
            take(&memory, b"no ELF at all, but long enough to hold a header of one, sixty-four").err(),
            Some(Refusal::NoProfile)
        );
        let loaded = Loaded { base: BASE, size: 0x800, table: None };
        let missing: Result<File<'_, &[u8]>, Fault> = Err(Fault::Unreadable);
        let refusal = capture(&Memory(memory), loaded, &missing).err();
        assert_eq!(refusal, Some(Refusal::Unknown(Fault::Unreadable)));
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
        if let Ok(file) = File::open(&image, bytes.len() as u64) {
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
        let parts = Parts { counters: parts.0 * 8, bits: parts.1, uniform: parts.2 * 8 };
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
