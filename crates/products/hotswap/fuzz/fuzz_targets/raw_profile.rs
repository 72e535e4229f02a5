//! Raw profiles, as the command reads them, against a second reader.
#![no_main]

#[path = "../src/second_reader.rs"]
mod second_reader;

use hotswap_coverage::raw_profile::read_raw_profiles;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check(input));

fn check(input: &[u8]) {
    let parts = match read_raw_profiles(input) {
        Ok(parts) => parts,
        Err(reason) => return assert!(!reason.to_string().contains('\n'), "{reason:?}"),
    };
    let mut rest = input;
    for part in &parts {
        let facts =
            second_reader::read(&mut rest).expect("what is accepted can be read by the definition of the format");
        let read = (u64::from(part.version), part.functions, part.counters, part.total);
        assert_eq!((facts.version, facts.records, facts.counters, facts.total), read);
    }
    assert!(rest.is_empty(), "{} bytes belong to no part", rest.len());
    let twice = read_raw_profiles(&[input, input].concat()).expect("files can be concatenated");
    assert_eq!(twice, [parts.as_slice(), &parts].concat());
}
