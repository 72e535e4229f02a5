//! Properties of any bytes, one function for each fuzz target.
//!
//! Nothing panics; everything read is inside the input; everything written reads back. Odd input is reported with the
//! codes for input: a failed verification or a defect of our own would be a finding.

// Each target calls one of them.
#![allow(dead_code)]

use hotswap_bundle::linked::{BundleReplacement, replace_bundles};
use hotswap_bundle::{
    Bundle, FoundContents, OffloadBinary, embed_containers, find_containers, host_object, is_bundle, parse_lenient,
    walk_fatbin_lenient,
};
use hotswap_code_object::{CodeMap, CodeObject, ObjectEdit, kernel_count};
use hotswap_report::{Diagnostic, codes};
use std::io::Write;

/// The number of containers of one input that are changed.
const CHANGES: usize = 3;

fn check(error: &Diagnostic) {
    let ours = [codes::VERIFY_FAILED, codes::INTERNAL];
    assert!(!ours.contains(&error.code), "{error}");
    let line = error.to_string();
    assert!(!line.chars().any(char::is_control), "more than a line: {line}");
}

/// Reads everything in a file and changes it.
fn file(input: &[u8]) {
    let contents = find_containers(input);
    contents.problems.iter().for_each(check);
    for found in &contents.found {
        let start = found.place.file_offset as usize;
        assert_eq!(input.get(start..start + found.bytes.len()), Some(found.bytes));
        match found.read() {
            Ok(device) => drop(device.images.iter().map(|image| image.data.len()).sum::<usize>()),
            Err(error) => check(&error),
        }
    }
    change(input, &contents);
}

fn change(input: &[u8], contents: &FoundContents<'_>) {
    for found in contents.found.iter().take(CHANGES) {
        let news = if is_bundle(found.bytes) {
            [grown(found.bytes), Some(small())]
        } else {
            [Some(found.bytes.to_vec()), None]
        };
        for new in news.into_iter().flatten() {
            let exchange = BundleReplacement { offset: found.place.file_offset, new: new.clone().into() };
            match embed_containers(input, &[exchange]) {
                Ok(changed) => assert!(find_containers(&changed).found.iter().any(|found| found.bytes == new)),
                Err(error) => check(&error),
            }
        }
    }
}

fn small() -> Vec<u8> {
    let mut bundle = Bundle::default();
    bundle.push("host-x86_64-unknown-linux-gnu-", Vec::new()).expect("it is empty");
    bundle.to_bytes().expect("a small bundle").into_owned()
}

/// The bundle with one entry more.
fn grown(bytes: &[u8]) -> Option<Vec<u8>> {
    let (mut bundle, _) = parse_lenient(bytes).ok()?;
    bundle.push("hip-amdgcn-amd-amdhsa--gfx1037", vec![7; 9000]).ok()?;
    bundle.to_bytes().ok().map(Into::into)
}

pub(crate) fn bundle(input: &[u8]) {
    match parse_lenient(input) {
        Ok((bundle, size)) => {
            assert!(size <= input.len());
            written(bundle);
        }
        Err(error) => check(&error),
    }
    for found in walk_fatbin_lenient(input) {
        match found {
            Ok(found) => assert!(found.offset + found.size <= input.len()),
            Err(error) => check(&error),
        }
    }
    file(input);
}

/// After a new layout it has the same entries.
fn written(bundle: Bundle<'_>) {
    let mut plain = bundle.clone();
    plain.set_compression(None);
    let Ok(bytes) = plain.to_plain_bytes() else { return };
    let (again, _) = parse_lenient(&bytes).expect("what is written is read");
    assert_eq!(again.entries(), bundle.entries());
    assert_eq!(again.record(), bundle.record());
}

/// The first byte: header version and method; the rest is a payload, or is compressed to one.
pub(crate) fn compressed(input: &[u8]) {
    bundle(input);
    let [how, content @ ..] = input else { return };
    let (version, zlib) = (1 + how % 3, how & 4 != 0);
    let payload = match (how & 8 != 0, zlib) {
        (true, _) => content.to_vec(),
        (_, true) => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(content).and_then(|()| encoder.finish()).expect("memory takes it")
        }
        _ => zstd::bulk::compress(content, 1).expect("memory takes it"),
    };
    let mut bytes = [b"CCOB".as_slice(), &[version, 0, u8::from(!zlib), 0]].concat();
    let total = (payload.len() + [20, 24, 32][usize::from(version) - 1]) as u64;
    let (total, plain) = (total.to_le_bytes(), (content.len() as u64).to_le_bytes());
    match version {
        1 => bytes.extend_from_slice(&plain[..4]),
        2 => bytes.extend([&total[..4], &plain[..4]].concat()),
        _ => bytes.extend([total, plain].concat()),
    }
    bytes.extend([0; 8]);
    bytes.extend(payload);
    bundle(&bytes);
}

pub(crate) fn offload_binary(input: &[u8]) {
    if let Ok((binary, size)) = OffloadBinary::parse(input) {
        assert!(size <= input.len());
        if let Ok(bytes) = binary.to_bytes() {
            let (again, _) = OffloadBinary::parse(&bytes).expect("what is written is read");
            assert_eq!(again.images, binary.images);
        }
    }
    file(input);
}

pub(crate) fn host_object(input: &[u8]) {
    match host_object::fatbin_of(input) {
        Ok(None) | Err(_) => {}
        Ok(Some(old)) => assert!(old.len() <= input.len()),
    }
    for new in [b"short".as_slice(), &[7; 5000], b""] {
        match host_object::replace_fatbin(input, new) {
            Ok(changed) => assert_eq!(host_object::fatbin_of(&changed).expect("it was just read"), Some(new)),
            Err(error) => check(&error),
        }
    }
    file(input);
}

pub(crate) fn linked(input: &[u8]) {
    file(input);
    // An offset without a container.
    let offset = input.len() as u64 / 2;
    if find_containers(input).found.iter().any(|found| found.place.file_offset == offset) {
        return;
    }
    let wild = BundleReplacement { offset, new: input.to_vec().into() };
    if let Err(error) = replace_bundles(input, &[wild]) {
        check(&error);
    }
}

pub(crate) fn archive(input: &[u8]) {
    file(input);
}

pub(crate) fn coff(input: &[u8]) {
    file(input);
}

pub(crate) fn code_object(input: &[u8]) {
    let count = kernel_count(input);
    match CodeObject::parse(input) {
        Ok(object) => {
            if !object.sections().is_empty() {
                assert!(count.is_some_and(|count| count <= object.note().kernels.len()));
            }
            assert_eq!(ObjectEdit::new(&object).finish(), input);
        }
        Err(error) => check(&error),
    }
    if let Err(error) = CodeMap::read(input) {
        check(&error);
    }
}
