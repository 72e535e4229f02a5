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
    let all =
        |bytes: &[u8]| read_raw_profiles(bytes).map(|parts| parts.iter().map(raw_profile_facts).collect::<Vec<_>>());
    let first = (10, CounterKind::Frontend, 2, 3, 6, None);
    let second = (11, CounterKind::Optimiser, 2, 3, u64::MAX, Some(64));
    assert_eq!(all(&old), Ok(vec![first]));
    assert_eq!(all(&new), Ok(vec![second]));
    let both = [old.as_slice(), &new].concat();
    assert_eq!(all(&both), Ok(vec![first, second]));
    let ranges: Vec<_> = read_raw_profiles(&both).unwrap().into_iter().map(|part| part.range).collect();
    assert_eq!(ranges, [0..old.len(), old.len()..both.len()]);
}

fn raw_profile_facts(part: &RawProfile) -> (u32, CounterKind, u64, u64, u64, Option<u16>) {
    (part.version, part.kind, part.functions, part.counters, part.total, part.wave)
}

/// A profile with a list of binary IDs.
fn with_ids(list: &[u8]) -> Vec<u8> {
    let mut bytes = profile(11, 0, &[&[1]]);
    bytes[16..24].copy_from_slice(&(list.len() as u64).to_le_bytes());
    bytes.splice(19 * 8..19 * 8, list.iter().copied());
    bytes
}

fn entry(text: &[u8]) -> Vec<u8> {
    let mut entry = (text.len() as u64).to_le_bytes().to_vec();
    entry.extend(text);
    entry.resize(entry.len().next_multiple_of(8), 0);
    entry
}

#[test]
fn the_identity_is_among_the_binary_ids() {
    let text = b"hotswap:id=0123456789abcdef:flags=01000053:gpu=gfx1031";
    let list = [entry(b"\x01\x02\x03"), entry(text)].concat();
    let part = read_raw_profiles(&with_ids(&list)).unwrap().remove(0);
    let device = part.device.unwrap();
    assert_eq!((device.code, device.gpu.as_str()), (0x0123_4567_89ab_cdef, "gfx1031"));
    assert_eq!(device.target, "gfx10-3-generic");
    let part = read_raw_profiles(&with_ids(&entry(b"\x01\x02\x03"))).unwrap().remove(0);
    assert_eq!((part.device, part.build_ids), (None, vec![vec![1, 2, 3]]));
    for size in 1..list.len() {
        assert!(read_raw_profiles(&with_ids(&list[..size])).is_err() || size == 16, "{size}");
    }
}

#[test]
fn every_cut_and_damage_is_told() {
    let good = profile(11, 0, &[&[1, 2], &[3]]);
    for size in 0..good.len() {
        assert!(read_raw_profiles(&good[..size]).is_err(), "{size}");
    }
    let with = |at: usize, value: u64| {
        let mut bytes = good.clone();
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        read_raw_profiles(&bytes).unwrap_err().to_string()
    };
    let record = 19 * 8;
    assert_eq!(with(0, 7), "it is not a raw profile");
    assert_eq!(with(8, 99), "version 99 of raw profiles is not known");
    assert_eq!(with(24, u64::MAX), "the file ends too early");
    assert_eq!(with(40, 1 << 61), "the file ends too early");
    assert_eq!(with(record + 56, 0), "record 0 has no counters");
    assert_eq!(with(record + 56, 9), "record 0: its counters lie outside the file's");
    assert_eq!(with(record + 72 + 16, 0), "record 1: its counters lie outside the file's");
    assert_eq!(with(record + 72 + 60, 1), "record 1: its value data is cut off");
    let trailing = [good.as_slice(), b"more"].concat();
    assert_eq!(
        read_raw_profiles(&trailing).unwrap_err().to_string(),
        format!("offset {:#x}: it is not a raw profile", good.len())
    );
    assert!(is_indexed_profile(&MERGED.to_le_bytes()) && !is_indexed_profile(&good));
}
