//! Wrong headers of a code object: whatever a command does with such a file, it does not report an internal error (exit
//! 15 and 70) and does not crash.

use hotswap_samples::code_object::Sample;
use hotswap_targets::EFlags;
use std::fs;
use std::process::Command;
use tempfile::TempDir;

fn code_object() -> Vec<u8> {
    let flags = EFlags::of(&"gfx1250".parse().unwrap()).encode();
    Sample { target: "amdgcn-amd-amdhsa--gfx1250".into(), flags, lanes: 32, ..Sample::default() }.build()
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Each field of each header with the values of the same field of the others, and with extremes.
fn damaged(file: &[u8]) -> Vec<(String, Vec<u8>)> {
    let number = |at: usize| usize::from(u16::from_le_bytes([file[at], file[at + 1]]));
    let segments = (0..number(56)).map(|row| ("segment", row, word(file, 32) as usize + row * 56, 56));
    let sections = (0..number(60)).map(|row| ("section", row, word(file, 40) as usize + row * 64, 64));
    let rows: Vec<_> = segments.chain(sections).collect();
    let mut all = Vec::new();
    for (what, row, at, size) in &rows {
        for field in (0..*size).step_by(8) {
            let same = rows.iter().filter(|other| other.0 == *what).map(|other| word(file, other.2 + field));
            let mut values: Vec<u64> = same.chain([0, 64, u64::MAX, 1 << 63]).collect();
            values.sort_unstable();
            values.dedup();
            for value in values.into_iter().filter(|value| *value != word(file, at + field)) {
                let mut bytes = file.to_vec();
                bytes[at + field..][..8].copy_from_slice(&value.to_le_bytes());
                all.push((format!("{what} {row}, field {field}, {value:#x}"), bytes));
            }
        }
    }
    all
}

#[test]
fn damaged_headers_are_not_called_a_defect_of_ours() {
    let directory = TempDir::new().unwrap();
    let run = |bytes: &[u8]| {
        fs::write(directory.path().join("x"), bytes).unwrap();
        let words = ["rewrite", "x", "-o", "z", "--to", "gfx1250-strict"];
        Command::new(env!("CARGO_BIN_EXE_hotswap")).args(words).current_dir(directory.path()).output().unwrap()
    };
    let file = code_object();
    let whole = run(&file);
    assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
    let (mut wrong, mut refused) = (Vec::new(), 0);
    for (name, bytes) in damaged(&file) {
        let output = run(&bytes);
        match output.status.code() {
            Some(0) => {}
            Some(12 | 13) => refused += 1,
            other => wrong.push(format!("{name}: {other:?} {}", String::from_utf8_lossy(&output.stderr))),
        }
    }
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join(""));
    assert!(refused > 100, "{refused} are refused");
}
