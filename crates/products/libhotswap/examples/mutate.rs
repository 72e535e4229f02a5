//! The calls of the fuzz target without a fuzzing engine: `mutate MINUTES SEED FILE…` changes the files by a seeded generator and
//! makes every call with each of them. For machines without a nightly compiler; it knows nothing of the code that it reaches.
//!
//! Invariants: the same seed gives the same inputs. The input of a call is written to `mutate-input` first, so that one that ends
//! the process is there afterwards.

#[path = "../fuzz/fuzz_targets/calls.rs"]
mod calls;

use std::env;
use std::fs;
use std::time::{Duration, Instant};

/// Longer inputs take the time of many short ones.
const LONGEST: usize = 64 << 10;
/// A call that takes longer than this is told.
const SLOW: Duration = Duration::from_secs(5);

/// xorshift64*
struct Generator(u64);

impl Generator {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

fn main() {
    let words: Vec<String> = env::args().collect();
    let [_, minutes, seed, files @ ..] = &words[..] else { panic!("usage: mutate MINUTES SEED FILE…") };
    let minutes: u64 = minutes.parse().expect("a number of minutes");
    let mut random = Generator(seed.parse::<u64>().expect("a number") | 1);
    let seeds: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).expect("a seed can be read")).collect();
    let (start, mut count, mut slow) = (Instant::now(), 0_u64, 0_u64);
    while start.elapsed() < Duration::from_secs(minutes * 60) {
        let input = changed(&seeds, &mut random);
        fs::write("mutate-input", &input).expect("the input can be written");
        let before = Instant::now();
        calls::every_call(&input);
        if before.elapsed() > SLOW {
            slow += 1;
            let _ = fs::copy("mutate-input", format!("mutate-slow-{slow}"));
        }
        count += 1;
    }
    println!("{count} inputs in {} s, {slow} of them slow", start.elapsed().as_secs());
}

/// A seed with some changes: bytes, words, pieces of another seed, a shorter end.
fn changed(seeds: &[Vec<u8>], random: &mut Generator) -> Vec<u8> {
    const WORDS: [u64; 8] = [0, 1, u64::MAX, 1 << 31, 1 << 63, 0x7fff_ffff, 0xffff_ffff, 64];
    let mut input = seeds[random.below(seeds.len())].clone();
    input.truncate(LONGEST);
    for _ in 0..=random.below(6) {
        let at = random.below(input.len());
        match random.below(7) {
            0 => input.truncate(at),
            1 => {
                let word = WORDS[random.below(WORDS.len())].to_le_bytes();
                let size = [1, 2, 4, 8][random.below(4)];
                input.iter_mut().skip(at).zip(&word[..size]).for_each(|(byte, new)| *byte = *new);
            }
            2 => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len());
                let part = &other[from..(from + random.below(64)).min(other.len())];
                input.iter_mut().skip(at).zip(part).for_each(|(byte, new)| *byte = *new);
            }
            // The tables of the file are at its beginning and at its end.
            3 => flip(&mut input, at % 512, random),
            4 => flip(&mut input, (at % 2048).wrapping_neg(), random),
            _ => flip(&mut input, at, random),
        }
    }
    input
}

/// Changes a byte; places beyond the start count from the end.
fn flip(input: &mut [u8], at: usize, random: &mut Generator) {
    let at = if at > input.len() { input.len().wrapping_add(at) } else { at };
    if let Some(byte) = input.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}
