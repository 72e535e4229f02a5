//! Bundles as an interposer uses them: read, add, write, read again.

use hotswap_bundle::{Compression, CompressionMethod, EntryId, HashState, parse, parse_lenient, walk_fatbin};
use hotswap_report::codes;
use std::borrow::Cow;

mod common;

use common::{bytes_with, forms, id, object, sample};

#[test]
fn every_form_reads_back_and_unchanged_bytes_stay() {
    for form in forms() {
        let bytes = bytes_with(form);
        let (bundle, size) = parse(&bytes).unwrap();
        assert_eq!(size, bytes.len());
        assert_eq!(bundle.entries(), sample().entries());
        assert_eq!(bundle.compression(), form);
        assert_eq!(bundle.alignment(), 4096);
        assert!(matches!(bundle.to_bytes().unwrap(), Cow::Borrowed(same) if same == bytes));
    }
}

#[test]
fn entries_and_a_record_are_added_behind_those_that_are_there() {
    for form in forms() {
        let bytes = bytes_with(form);
        let (mut bundle, _) = parse(&bytes).unwrap();
        let source = EntryId::parse(&bundle.entries()[1].id).unwrap();
        bundle.push(source.with_target("gfx1031").unwrap().as_str(), object(3, 9001)).unwrap();
        bundle.set_record(Some(b"{\"a\":1}".to_vec()));
        let written = bundle.to_bytes().unwrap();
        let (read, size) = parse(&written).unwrap();
        assert_eq!(size, written.len());
        assert_eq!(read.entries(), bundle.entries());
        assert_eq!(read.record(), Some(&b"{\"a\":1}"[..]));
        assert_eq!(read.compression(), form);
        assert_eq!(read.to_plain_bytes().unwrap(), bundle.to_plain_bytes().unwrap());
    }
}

#[test]
fn an_id_is_taken_once() {
    let error = sample().push(id("gfx900"), Vec::new()).unwrap_err();
    assert_eq!(error.code, codes::INTERNAL);
}

#[test]
fn the_table_of_a_plain_bundle_fits_what_hip_reads() {
    let full = |count: usize, compression| {
        let mut bundle = sample();
        bundle.set_compression(compression);
        for n in 0..count {
            bundle.push(id(&format!("gfx9-{n:03}")), object(1, 10)).unwrap();
        }
        bundle.to_bytes().map(|bytes| parse(&bytes).unwrap().0.entries().len())
    };
    assert_eq!(full(60, None).unwrap(), 63);
    assert_eq!(full(80, None).unwrap_err().code, codes::BUNDLE_FULL);
    assert_eq!(full(80, Some(Compression::default())).unwrap(), 83);
}

#[test]
fn a_wrong_hash_is_refused_or_told() {
    let mut bytes = bytes_with(Some(Compression::default()));
    bytes[24] ^= 1;
    assert_eq!(parse(&bytes).unwrap_err().code, codes::MALFORMED);
    let (mut bundle, _) = parse_lenient(&bytes).unwrap();
    assert_eq!(bundle.hash(), HashState::Wrong);
    bundle.set_record(Some(Vec::new()));
    assert_eq!(parse(&bundle.to_bytes().unwrap()).unwrap().0.hash(), HashState::Right);
}

#[test]
fn a_fat_binary_section_is_walked_over_its_padding() {
    let mut section = Vec::new();
    let mut starts = Vec::new();
    for form in forms() {
        section.resize(usize::next_multiple_of(section.len(), 4096), 0);
        starts.push(section.len());
        section.extend(bytes_with(form));
    }
    section.resize(section.len() + 77, 0);
    let found: Vec<_> = walk_fatbin(&section).collect::<Result<_, _>>().unwrap();
    assert_eq!(found.iter().map(|f| f.offset).collect::<Vec<_>>(), starts);
    section.push(1);
    let last = walk_fatbin(&section).last().unwrap().unwrap_err();
    assert_eq!((last.code, last.place.offset), (codes::UNKNOWN_FORMAT, Some(section.len() as u64 - 1)));
}

#[test]
fn a_huge_claim_is_refused_before_memory_is_reserved() {
    for (form, field) in [(3u16, 16..24), (2, 12..16)] {
        for method in [CompressionMethod::Zstd, CompressionMethod::Zlib] {
            let mut bytes = bytes_with(Some(Compression { version: form, method, level: None }));
            bytes[field.clone()].fill(0xff);
            assert_eq!(parse(&bytes).unwrap_err().code, codes::MALFORMED);
            bytes[field.clone()].fill(0);
            assert_eq!(parse(&bytes).unwrap_err().code, codes::MALFORMED);
        }
    }
}

/// Where HotSwap's record follows the entries, the table is not the whole content.
#[test]
fn the_table_of_a_compressed_bundle_is_there_without_the_rest() {
    let mut bundle = hotswap_bundle::Bundle::default();
    bundle.push("hipv4-amdgcn-amd-amdhsa--gfx1030", vec![7; 1 << 20]).unwrap();
    let table = |bundle: &hotswap_bundle::Bundle<'_>| {
        hotswap_bundle::find_containers(&bundle.to_bytes().unwrap()).found[0].table().unwrap()
    };
    assert_eq!(table(&bundle), None, "it is not compressed");
    bundle.set_compression(Some(Compression::default()));
    assert_eq!(table(&bundle), Some(vec![("hipv4-amdgcn-amd-amdhsa--gfx1030".to_owned(), 1 << 20)]));
    bundle.set_record(Some(b"{}".to_vec()));
    assert_eq!(table(&bundle), None);
}
