//! Hand-made raw profiles, valid and damaged.

use super::*;

/// A profile of functions with these counters, one function's after the other's.
fn profile(version: u32, flags: u64, functions: &[&[u64]]) -> Vec<u8> {
    let layout = LAYOUTS.iter().find(|layout| layout.version == version).unwrap();
    let counters: Vec<u64> = functions.concat();
    let mut head = vec![0_u64; layout.words];
    (head[0], head[1]) = (MAGIC, u64::from(version) | flags);
    (head[3], head[5]) = (functions.len() as u64, counters.len() as u64);
    let data_size = (functions.len() * layout.record) as u64;
    head[layout.names] = 3;
    head[layout.delta] = data_size;
    let mut bytes: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut before = 0;
    for (number, function) in functions.iter().enumerate() {
        let mut record = vec![0; layout.record];
        let pointer = data_size - (number * layout.record) as u64 + before;
        record[16..24].copy_from_slice(&pointer.to_le_bytes());
        record[layout.counter_count..layout.counter_count + 4].copy_from_slice(&(function.len() as u32).to_le_bytes());
        if let Some(wave) = layout.wave {
            record[wave] = 64;
        }
        before += 8 * function.len() as u64;
        bytes.extend(record);
    }
    bytes.extend(counters.iter().flat_map(|counter| counter.to_le_bytes()));
    bytes.extend(b"abc\0\0\0\0\0");
    bytes
}

#[test]
fn both_versions_are_read_alone_and_one_behind_the_other() {
    let old = profile(10, 0, &[&[1, 2], &[3]]);
    let new = profile(11, IR, &[&[5], &[6, u64::MAX]]);
    let first =
        RawProfile { version: 10, kind: CounterKind::Frontend, functions: 2, counters: 3, total: 6, wave: None };
    let second = RawProfile {
        version: 11,
        kind: CounterKind::Optimiser,
        functions: 2,
        counters: 3,
        total: u64::MAX,
        wave: Some(64),
    };
    assert_eq!(parts(&old), Ok(vec![first.clone()]));
    assert_eq!(parts(&new), Ok(vec![second.clone()]));
    assert_eq!(parts(&[old, new].concat()), Ok(vec![first, second]));
}

#[test]
fn every_cut_and_damage_is_told() {
    let good = profile(11, 0, &[&[1, 2], &[3]]);
    for size in 0..good.len() {
        assert!(parts(&good[..size]).is_err(), "{size}");
    }
    let with = |at: usize, value: u64| {
        let mut bytes = good.clone();
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        parts(&bytes).unwrap_err()
    };
    let record = 19 * 8;
    assert_eq!(with(0, 7), "it is no raw profile");
    assert_eq!(with(8, 99), "version 99 of raw profiles is not known");
    assert_eq!(with(24, u64::MAX), "the file ends too early");
    assert_eq!(with(40, 1 << 61), "the file ends too early");
    assert_eq!(with(record + 56, 0), "record 0 has no counters");
    assert_eq!(with(record + 56, 9), "record 0: its counters lie outside the file's");
    assert_eq!(with(record + 72 + 16, 0), "record 1: its counters lie outside the file's");
    assert_eq!(with(record + 72 + 60, 1), "record 1: its value data is cut off");
    let trailing = [good.as_slice(), b"more"].concat();
    assert_eq!(parts(&trailing).unwrap_err(), format!("offset {:#x}: it is no raw profile", good.len()));
    assert!(is_merged(&MERGED.to_le_bytes()) && !is_merged(&good));
}
