//! The checks of the fuzz targets on bytes that look random, and are the same in every run.

#[path = "../fuzz/src/checks.rs"]
mod checks;

use hotswap_isa::{Entry, Isa, Target, Wave};

/// Inputs for each target, in each mode.
const INPUTS: u32 = 150;

/// Marsaglia's xorshift64.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }

    /// An entry's fixed bits with anything between them, then anything.
    fn code(&mut self, entry: Entry) -> Vec<u8> {
        let (value, mask) = entry.fixed();
        let word = value | self.wide() & !mask;
        let mut code = word.to_le_bytes().get(..usize::from(entry.bytes())).unwrap_or_default().to_vec();
        code.extend_from_slice(&self.wide().to_le_bytes()[..(self.next() % 13) as usize]);
        code
    }
}

fn run(check: fn(&[u8])) {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut count = 0;
    for target in Target::all() {
        for (wave, true16) in [(Wave::W32, true), (Wave::W64, true), (Wave::W32, false), (Wave::W64, false)] {
            let isa = Isa::new(target).with_wave(wave).with_true16(true16);
            let entries: Vec<Entry> = Entry::all().filter(|entry| entry.available(isa)).collect();
            for number in 0..INPUTS {
                let code = match number % 8 {
                    0 => numbers.wide().to_le_bytes().to_vec(),
                    _ => {
                        let entry = entries[numbers.next() as usize % entries.len()];
                        numbers.code(entry)
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
    for target in Target::all() {
        for byte in [0, 0xff] {
            for length in 0..40 {
                checks::decode(&checks::join(target.name, Wave::W32, true, &vec![byte; length]));
            }
        }
    }
}
