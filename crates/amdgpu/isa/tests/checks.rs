//! The checks of the fuzz targets on pseudorandom bytes that are the same in every run.

#[path = "../fuzz/src/checks.rs"]
mod checks;
mod common;

use common::Random;
use hotswap_isa::{Isa, TableEntry, Target, Wave};

/// Inputs for each target, in each mode.
const INPUTS: u32 = 150;

/// An entry's fixed bits with arbitrary bits between them, then arbitrary bytes.
fn code(entry: TableEntry, numbers: &mut Random) -> Vec<u8> {
    let (value, mask) = entry.fixed();
    let word = value | numbers.wide() & !mask;
    let mut code = word.to_le_bytes().get(..usize::from(entry.bytes())).unwrap_or_default().to_vec();
    code.extend_from_slice(&numbers.wide().to_le_bytes()[..(numbers.next() % 13) as usize]);
    code
}

fn run(check: fn(&[u8])) {
    let mut numbers = Random::new(1);
    let mut count = 0;
    for target in Target::all_targets() {
        for (wave, true16) in [(Wave::W32, true), (Wave::W64, true), (Wave::W32, false), (Wave::W64, false)] {
            let isa = Isa::new(target).with_wave(wave).with_true16(true16);
            let entries: Vec<TableEntry> = TableEntry::all_entries().filter(|entry| entry.available(isa)).collect();
            for number in 0..INPUTS {
                let code = match number % 8 {
                    0 => numbers.wide().to_le_bytes().to_vec(),
                    _ => {
                        let entry = entries[numbers.next() as usize % entries.len()];
                        code(entry, &mut numbers)
                    }
                };
                check(&checks::join(target.name, wave, true16, &code));
                count += 1;
            }
        }
    }
    println!("{count} inputs");
}

#[test]
fn what_decodes_fits_together() {
    run(checks::decode);
}

#[test]
fn what_is_changed_or_built_again_is_what_was_asked_for() {
    run(checks::round_trip);
}

#[test]
fn all_zero_and_all_one_bytes_are_walked_over() {
    for target in Target::all_targets() {
        for byte in [0, 0xff] {
            for length in 0..40 {
                checks::decode(&checks::join(target.name, Wave::W32, true, &vec![byte; length]));
            }
        }
    }
}
