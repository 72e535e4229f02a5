//! Damaged and hostile input: nothing panics, nothing is read wrongly.

mod common;

use common::{bytes_with, forms, offload_binary, sample};
use hotswap_bundle::linked::{BundleReplacement, replace_bundles};
use hotswap_bundle::{
    Bundle, BundleEntry, ContainerForm, FileRope, HashState, OffloadBinary, embed_containers, find_containers,
    host_object, parse, parse_all_lenient, parse_lenient, walk_fatbin,
};
use hotswap_files::MemoryLender;
use hotswap_report::{Diagnostic, codes};
use hotswap_samples::host_files::{self, Oddity, archive_of, library};
use object::write::Object;
use object::{Architecture, BinaryFormat, Endianness, Object as _, ObjectSection, SectionKind};
use proptest::prelude::*;

/// A host object like that of clang-linker-wrapper: a fat binary, its symbol, a pointer to it.
fn host_object_with(fatbin: &[u8]) -> Vec<u8> {
    host_object_of(Architecture::X86_64, fatbin, Oddity::None)
}

fn host_object_of(architecture: Architecture, fatbin: &[u8], oddity: Oddity) -> Vec<u8> {
    host_files::host_object((BinaryFormat::Elf, architecture), ".hip_fatbin", fatbin, oddity)
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = forms().into_iter().map(bytes_with).collect();
    let mut recorded = sample();
    recorded.set_record(Some(br#"{"schema":1}"#.to_vec()));
    seeds.push(recorded.to_bytes().unwrap().into_owned());
    seeds.extend((1..=3).map(offload_binary));
    seeds.push(host_object_with(&seeds[0]));
    seeds.push(archive_of(&[("a.o", &seeds[9]), ("b.hipfb", &seeds[2])]));
    seeds
}

/// Calls every reader on the same bytes.
fn exercise(bytes: &[u8]) {
    if let Ok((bundle, size)) = parse_lenient(bytes) {
        assert!(size <= bytes.len());
        let _ = bundle.to_plain_bytes();
    }
    let _ = walk_fatbin(bytes).map(|found| found.map(|found| found.bundle.entries().len())).collect::<Vec<_>>();
    let contents = find_containers(bytes);
    for found in &contents.found {
        assert!(found.place.file_offset as usize + found.bytes.len() <= bytes.len());
        let _ = found.read();
    }
    let _ = host_object::fatbin_of(bytes);
    let _ = host_object::replace_fatbin(bytes, b"new content");
    let _ = OffloadBinary::parse(bytes);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutations_and_truncations_never_panic(
        seed in 0usize..11,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 0..8),
        cut in any::<prop::sample::Index>(),
        truncate in any::<bool>(),
    ) {
        let mut bytes = seeds()[seed].clone();
        for (place, value, near_start) in changes {
            // Headers and tables are at the start; most damage that matters is there.
            let length = if near_start { bytes.len().min(256) } else { bytes.len() };
            bytes[place.index(length)] = value;
        }
        if truncate {
            bytes.truncate(cut.index(bytes.len()));
        }
        exercise(&bytes);
    }

    #[test]
    fn noise_behind_a_magic_never_panics(noise in prop::collection::vec(any::<u8>(), 0..200), which in 0usize..4) {
        let magic: &[u8] = [&b"__CLANG_OFFLOAD_BUNDLE__"[..], b"CCOB", &[0x10, 0xff, 0x10, 0xad], b"\x7fELF\x02\x01\x01"][which];
        exercise(&[magic, &noise].concat());
    }

    #[test]
    fn what_is_read_is_what_was_written(
        sizes in prop::collection::vec(0usize..5000, 1..9), form in 0usize..5, record in any::<Option<String>>(),
    ) {
        let mut bundle = sample();
        for (n, size) in sizes.iter().enumerate() {
            bundle.push(common::id(&format!("gfx{n:04}")), common::object(n as u8, *size)).unwrap();
        }
        bundle.set_compression(forms()[form]);
        bundle.set_record(record.map(String::into_bytes));
        let bytes = bundle.to_bytes().unwrap();
        let (read, size) = parse(&bytes).unwrap();
        prop_assert_eq!(size, bytes.len());
        prop_assert_eq!(read.entries(), bundle.entries());
        prop_assert_eq!(read.record(), bundle.record());
    }
}

static LENDER: MemoryLender = MemoryLender::new(1 << 20);

/// The entries of a bundle, its record, hash and size, or its error.
type BundleReading<'b> = Result<(Vec<BundleEntry<'b>>, Option<Vec<u8>>, HashState, usize), Diagnostic>;

fn reading_of<'b>(read: Result<(Bundle<'b>, usize), Diagnostic>) -> BundleReading<'b> {
    read.map(|(bundle, size)| (bundle.entries().to_vec(), bundle.record().map(<[u8]>::to_vec), bundle.hash(), size))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Side by side in lent memory, with damaged ones among them, as each is read alone.
    #[test]
    fn bundles_in_lent_memory_are_read_as_alone(
        damages in prop::collection::vec((0usize..5, any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..20),
        lend in any::<bool>(),
    ) {
        let damaged = damages.iter().map(|(form, place, value, is_damaged)| {
            let mut bytes = bytes_with(forms()[*form]);
            if *is_damaged {
                // Headers with their sizes are at the start.
                let length = bytes.len().min(64);
                bytes[place.index(length)] = *value;
            }
            bytes
        });
        let damaged: Vec<Vec<u8>> = damaged.collect();
        let bundles: Vec<&[u8]> = damaged.iter().map(Vec::as_slice).collect();
        let together = parse_all_lenient(&bundles, lend.then_some(&LENDER));
        prop_assert_eq!(together.len(), bundles.len());
        for (together, bytes) in together.into_iter().zip(&bundles) {
            prop_assert_eq!(reading_of(together), reading_of(parse_lenient(bytes)));
        }
    }
}

#[test]
fn every_truncation_is_an_error() {
    for bytes in forms().into_iter().map(bytes_with) {
        for cut in (0..bytes.len()).step_by(if bytes.len() > 4000 { 97 } else { 1 }) {
            assert!(parse(&bytes[..cut]).is_err(), "{cut} of {}", bytes.len());
        }
    }
}

#[test]
fn containers_inside_of_files_are_found_with_their_places() {
    let seeds = seeds();
    let archive = find_containers(&seeds[10]);
    assert_eq!(archive.problems, []);
    let places: Vec<_> = archive.found.iter().map(|found| (found.place.to_string(), found.form)).collect();
    let expected = [
        ("a.o:.hip_fatbin".to_owned(), ContainerForm::Bundle),
        ("b.hipfb".to_owned(), ContainerForm::CompressedBundle(3)),
    ];
    assert_eq!(places, expected);
    for found in &archive.found {
        let start = found.place.file_offset as usize;
        assert_eq!(&seeds[10][start..start + found.bytes.len()], found.bytes);
        assert_eq!(found.read().unwrap().images.len(), 3);
    }
}

#[test]
fn offload_binaries_of_all_generations_read_back() {
    for version in 1..=3 {
        let bytes = offload_binary(version);
        let (binary, size) = OffloadBinary::parse(&bytes).unwrap();
        assert_eq!((size, binary.version, binary.to_bytes().unwrap()), (bytes.len(), version, bytes.clone()));
        let found = find_containers(&bytes).found;
        let id = found[0].read().unwrap().images[0].id.clone();
        assert_eq!(id.as_deref(), Some("hip-amdgcn-amd-amdhsa--gfx1030"));
    }
    let mut unknown = offload_binary(1);
    unknown[4] = 4;
    assert_eq!(OffloadBinary::parse(&unknown).unwrap_err().code, codes::UNKNOWN_FORMAT);
}

#[test]
fn kpack_and_text_bundles_are_recognised_and_refused() {
    let mut wrapped = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let section = wrapped.add_section(Vec::new(), b".hipFatBinSegment".to_vec(), SectionKind::Data);
    wrapped.append_section_data(section, &[&0x4b50_4948u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0; 16]].concat(), 8);
    for bytes in [
        wrapped.write().unwrap(),
        b"KPAK\x02\0\0\0\x40\0\0\0\0\0\0\0".to_vec(),
        b"# __CLANG_OFFLOAD_BUNDLE____START__ hip-amdgcn-amd-amdhsa--gfx900\n".to_vec(),
        b"!<thin>\n".to_vec(),
    ] {
        let contents = find_containers(&bytes);
        assert!(contents.found.is_empty());
        assert_eq!(contents.problems.iter().map(|p| p.code).collect::<Vec<_>>(), [codes::UNKNOWN_FORMAT]);
    }
}

#[test]
fn a_fat_binary_is_exchanged_for_both_hosts_and_all_else_stays() {
    for architecture in [Architecture::X86_64, Architecture::Aarch64] {
        let old = host_object_of(architecture, &bytes_with(None), Oddity::None);
        for new in [&[7; 100_000][..], b"short", b""] {
            let made = host_object::replace_fatbin(&old, new).unwrap();
            assert_eq!(host_object::fatbin_of(&made).unwrap(), Some(new));
            assert_eq!(host_object::replace_fatbin(&old, new).unwrap(), made);
            let is_found = |bytes: &[u8]| bytes.windows(24).any(|window| window == b"__CLANG_OFFLOAD_BUNDLE__");
            assert!(is_found(&old) && !is_found(&made));
        }
    }
}

#[test]
fn an_empty_fat_binary_with_a_label_gets_its_first_content() {
    let old = host_object_of(Architecture::X86_64, b"", Oddity::None);
    let made = host_object::replace_fatbin(&old, b"new").unwrap();
    assert_eq!(host_object::fatbin_of(&made).unwrap(), Some(b"new".as_slice()));
}

/// In COFF objects several sections may have one name: the one that holds the bundle changes.
#[test]
fn one_of_two_sections_of_one_name_changes_in_coff() {
    let [bundle, new] = [forms()[0], forms()[1]].map(bytes_with);
    let old =
        host_files::host_object((BinaryFormat::Coff, Architecture::X86_64), ".hip_fatbin", &bundle, Oddity::Twice);
    let found = find_containers(&old).found;
    let exchange = BundleReplacement { offset: found[0].place.file_offset, new: FileRope::from(new.as_slice()) };
    let made = embed_containers(&old, &[exchange]).unwrap();
    let file = object::File::parse(&*made).unwrap();
    let named = file.sections().filter(|section| section.name() == Ok(".hip_fatbin"));
    assert_eq!(named.map(|section| section.data().unwrap()).collect::<Vec<_>>(), [new.as_slice(), b""]);
}

/// An empty section of a device is a container that stays when another one changes.
#[test]
fn an_empty_section_of_a_device_does_not_forbid_a_change_beside_it() {
    let [bundle, new] = [forms()[0], forms()[1]].map(bytes_with);
    let elf = (BinaryFormat::Elf, Architecture::X86_64);
    let object = host_files::host_object(elf, "__CLANG_OFFLOAD_BUNDLE__host-x86_64", b"", Oddity::None);
    let old = archive_of(&[("a.o", &object), ("b.hipfb", &bundle)]);
    let found = find_containers(&old).found;
    assert_eq!(
        found.iter().map(|found| &found.form).collect::<Vec<_>>(),
        [&ContainerForm::ObjectVariant, &ContainerForm::Bundle]
    );
    let exchange = BundleReplacement { offset: found[1].place.file_offset, new: FileRope::from(new.as_slice()) };
    let made = embed_containers(&old, &[exchange]).unwrap();
    let made = find_containers(&made).found;
    assert_eq!(made.iter().map(|found| found.bytes).collect::<Vec<_>>(), [b"".as_slice(), &new]);
}

#[test]
fn a_fat_binary_that_cannot_move_is_refused() {
    let one = bytes_with(None);
    let two = [one.clone(), vec![0; one.len().next_multiple_of(4096) - one.len()], one.clone()].concat();
    let refused = |object: Vec<u8>| host_object::replace_fatbin(&object, b"new").unwrap_err().code;
    assert_eq!(refused(host_object_with(&two)), codes::NO_PLACE);
    for oddity in [Oddity::Addend, Oddity::Inside, Oddity::Symbol, Oddity::Twice] {
        assert_eq!(refused(host_object_of(Architecture::X86_64, &one, oddity)), codes::NO_PLACE);
    }
    assert_eq!(refused(host_object_of(Architecture::Riscv64, &one, Oddity::None)), codes::UNKNOWN_FORMAT);
    let empty = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little).write().unwrap();
    assert_eq!(refused(empty.clone()), codes::NOT_FOUND);
    assert_eq!(host_object::fatbin_of(&empty).unwrap(), None);
}

#[test]
fn a_library_without_symbols_grows_and_changes_in_place() {
    let (one, two) = (bytes_with(None), bytes_with(forms()[2]));
    let old = library(&[&one, &two]);
    let places: Vec<u64> = find_containers(&old).found.iter().map(|found| found.place.file_offset).collect();
    for new in [two.clone(), one.repeat(2)[..one.len()].to_vec(), {
        let mut large = sample();
        large.push(common::id("gfx902"), common::object(9, 70_000)).unwrap();
        large.to_bytes().unwrap().into_owned()
    }] {
        let changed =
            replace_bundles(&old, &[BundleReplacement { offset: places[0], new: new.clone().into() }]).unwrap();
        let found = find_containers(&changed).found.into_iter().map(|found| found.bytes.to_vec()).collect::<Vec<_>>();
        assert_eq!(found, [new, two.clone()]);
    }
}

/// The section header table of a file that [`library`] has made.
fn section_header(file: &[u8], number: usize) -> usize {
    u64::from_le_bytes(file[40..48].try_into().unwrap()) as usize + 64 * number
}

/// Sections may state a larger size than exists: no loop runs to its end.
#[test]
fn sections_of_a_hundred_terabytes_take_no_time() {
    let one = bytes_with(None);
    let plain = library(&[&one]);
    let place = find_containers(&plain).found[0].place.file_offset;
    let [kind, size] = [4, 32];
    for (section, claimed) in [(2, 8u32), (3, 2)] {
        let mut odd = plain.clone();
        let header = section_header(&odd, section);
        odd[header + kind..header + kind + 4].copy_from_slice(&claimed.to_le_bytes());
        odd[header + size..header + size + 8].copy_from_slice(&(100u64 << 40).to_le_bytes());
        let large = BundleReplacement { offset: place, new: vec![7; 70_000].into() };
        let refused = replace_bundles(&odd, &[large]).unwrap_err();
        assert!([codes::NO_PLACE, codes::MALFORMED].contains(&refused.code), "{refused}");
    }
}

/// Data that expands a thousand times is rejected by its first bytes, or by its entry table.
#[test]
fn bombs_are_refused_before_they_are_expanded() {
    use hotswap_bundle::CompressionMethod;
    use std::io::Write;
    let size = 20usize << 20;
    let pack = |method: CompressionMethod, start: &[u8]| {
        let mut payload = Vec::new();
        let zeros = vec![0; 1 << 20];
        let feed = |out: &mut dyn Write| {
            out.write_all(start).unwrap();
            out.write_all(&zeros[start.len()..]).unwrap();
            (1..size >> 20).for_each(|_| out.write_all(&zeros).unwrap());
        };
        match method {
            CompressionMethod::Zlib => {
                let mut encoder = flate2::write::ZlibEncoder::new(&mut payload, flate2::Compression::fast());
                feed(&mut encoder);
                encoder.finish().unwrap();
            }
            CompressionMethod::Zstd => {
                let mut encoder = zstd::stream::Encoder::new(&mut payload, 1).unwrap();
                encoder.set_pledged_src_size(Some(size as u64)).unwrap();
                feed(&mut encoder);
                encoder.finish().unwrap();
            }
        }
        let number = u16::from(method == CompressionMethod::Zstd).to_le_bytes();
        let total = (payload.len() as u64 + 32).to_le_bytes();
        [b"CCOB\x03\0", &number[..], &total, &(size as u64).to_le_bytes(), &[0; 8], &payload].concat()
    };
    let table = b"__CLANG_OFFLOAD_BUNDLE__\0\0\0\0\0\0\0\0";
    for method in [CompressionMethod::Zlib, CompressionMethod::Zstd] {
        for (start, says) in [(&b""[..], "is no bundle"), (table, "its entries end at")] {
            let error = parse_lenient(&pack(method, start)).unwrap_err();
            assert!(error.code == codes::MALFORMED && error.what.contains(says), "{error}");
        }
    }
}

/// A damaged bundle before or after the one that is changed: the change is made, or the input is damaged; never is the result
/// another one than planned.
#[test]
fn damage_beside_a_changed_bundle_is_damage_of_the_input() {
    let bundle = sample().to_bytes().unwrap().into_owned();
    for fault in [0x38, 0x20, 0x18] {
        let mut damaged = bundle.clone();
        damaged[fault..fault + 2].copy_from_slice(&[0xff; 2]);
        let file = library(&[&damaged, &bundle, &damaged]);
        for found in find_containers(&file).found {
            let mut larger = sample();
            larger.push("hip-amdgcn-amd-amdhsa--gfx1037", vec![7; 9000]).unwrap();
            let new = larger.to_bytes().unwrap().into_owned();
            let exchange = BundleReplacement { offset: found.place.file_offset, new: new.clone().into() };
            match embed_containers(&file, &[exchange]) {
                Ok(changed) => assert!(find_containers(&changed).found.iter().any(|found| found.bytes == new)),
                Err(error) => assert_eq!(error.code, codes::MALFORMED, "{error}"),
            }
        }
    }
}

/// The header's version, which our own reader does not need.
#[test]
fn a_file_that_other_readers_refuse_is_damaged() {
    let bundle = sample().to_bytes().unwrap().into_owned();
    let mut file = library(&[&bundle]);
    let found = find_containers(&file).found.first().map(|found| found.place.file_offset);
    file[6] = 2;
    let mut larger = sample();
    larger.push("hip-amdgcn-amd-amdhsa--gfx1037", vec![7; 9000]).unwrap();
    let exchange = BundleReplacement { offset: found.unwrap(), new: larger.to_bytes().unwrap().into_owned().into() };
    assert_eq!(replace_bundles(&file, &[exchange]).unwrap_err().code, codes::MALFORMED);
}
