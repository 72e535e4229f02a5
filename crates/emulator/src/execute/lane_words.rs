//! Loads and stores of whole words by all active lanes together.
//!
//! Invariants: what a lane reads and writes, and which lane has the first fault, is what the access lane by lane gives. A load
//! reads everything before it writes registers. Where all lanes' words are in LDS, the processor's own gather reads them.

use super::data::LARGEST;
use super::lds::{register_of, target_of};
use super::{Flow, Outcome, Step, StepFault, write_lanes};
use crate::memory::LaneAddresses;
use crate::memory_operation::{DataHalf, MemoryOperation};
use crate::micro::{MicroOp, Source};
use hotswap_semantics::{BITS, LANES, Lanes};

/// Words of the largest access of a lane.
const WORDS: usize = LARGEST / 4;

/// The words of an access that is one of whole words, unless stores are watched.
pub(crate) fn words_of(step: &Step<'_>, operation: MemoryOperation) -> Option<usize> {
    let is_whole = operation.half == DataHalf::Whole && operation.bytes >= 4;
    let is_watched = operation.is_store && step.wave.store_watch.is_some();
    (is_whole && !is_watched && usize::from(operation.bytes) <= LARGEST).then_some(usize::from(operation.bytes / 4))
}

/// An access to memory of half a wave.
pub(crate) fn access_memory(
    step: &mut Step<'_>,
    op: &MicroOp,
    (is_store, words): (bool, usize),
    addresses: &LaneAddresses,
    half: usize,
) -> Result<(), Box<StepFault>> {
    let exec = step.wave.exec(half);
    let fault = |(lane, fault)| StepFault::memory(fault, Some(LANES * half + lane));
    if is_store {
        let register = data_register(op)?;
        let blocks: [&Lanes; WORDS] =
            std::array::from_fn(|number| step.wave.block(register + number.min(words - 1) as u16, half));
        return step.memory.write_lanes(addresses, exec, &blocks[..words]).map_err(fault);
    }
    let register = target_of(op)?;
    let mut loaded = [[0; LANES]; WORDS];
    step.memory.read_lanes(addresses, exec, &mut loaded[..words]).map_err(fault)?;
    keep(step, register, half, &loaded[..words]);
    Ok(())
}

fn data_register(op: &MicroOp) -> Result<u16, Box<StepFault>> {
    register_of(op.sources[2], op)
}

/// Writes what was loaded to the active lanes.
fn keep(step: &mut Step<'_>, register: u16, half: usize, loaded: &[Lanes]) {
    let exec = step.wave.exec(half);
    for (number, lanes) in loaded.iter().enumerate() {
        write_lanes(step.wave.block_mut(register + number as u16, half), lanes, exec);
    }
}

/// A load of one to four words of each lane from LDS; beyond its end they are 0.
pub(crate) fn load_lds(step: &mut Step<'_>, op: &MicroOp, words: usize, address: u16) -> Outcome {
    let (register, offset) = (target_of(op)?, op.immediate as u32);
    match words {
        1 => load_elements::<1, 1>(step, register, address, [offset]),
        2 => load_elements::<2, 1>(step, register, address, [offset]),
        3 => load_elements::<3, 1>(step, register, address, [offset]),
        _ => load_elements::<4, 1>(step, register, address, [offset]),
    }
    Ok(Flow::Next)
}

/// Two elements of each lane from LDS.
pub(crate) fn load_pair(step: &mut Step<'_>, target: u16, is_wide: bool, address: u16, offsets: [u32; 2]) {
    match is_wide {
        true => load_elements::<2, 2>(step, target, address, offsets),
        false => load_elements::<1, 2>(step, target, address, offsets),
    }
}

/// Elements of `W` words. Everything is read before registers are written.
fn load_elements<const W: usize, const N: usize>(step: &mut Step<'_>, target: u16, address: u16, offsets: [u32; N]) {
    for half in 0..step.wave.halves {
        let loaded = offsets.map(|offset| gather_lds::<W>(step, (address, half), offset));
        for (number, words) in loaded.iter().enumerate() {
            keep(step, target + (number * W) as u16, half, words);
        }
    }
}

/// Reads words of LDS of the active lanes. An element that is not all in LDS is 0.
#[inline]
fn gather_lds<const W: usize>(step: &Step<'_>, (address, half): (u16, usize), offset: u32) -> [Lanes; W] {
    let (exec, addresses) = (step.wave.exec(half), step.wave.block(address, half));
    let lds = &*step.lds;
    // Lanes that are not active read the first element, which is dropped.
    let places: Lanes = std::array::from_fn(|lane| match exec & BITS[lane] {
        0 => 0,
        _ => addresses[lane].wrapping_add(offset),
    });
    let last = places.iter().fold(0, |last, place| last.max(*place));
    let mut loaded = [[0; LANES]; W];
    if last as usize + 4 * W <= lds.len().min(i32::MAX as usize) {
        gathered(lds, &places, &mut loaded);
        return loaded;
    }
    for lane in 0..LANES {
        let at = places[lane] as usize;
        if let Some(bytes) = lds.get(at..at + 4 * W).filter(|_| exec & BITS[lane] != 0) {
            put_words(bytes, lane, &mut loaded);
        }
    }
    loaded
}

#[inline]
fn put_words(bytes: &[u8], lane: usize, loaded: &mut [Lanes]) {
    for (block, word) in loaded.iter_mut().zip(bytes.chunks_exact(4)) {
        block[lane] = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
    }
}

/// Elements that are all in LDS, whose end is below 2^31.
#[inline]
fn gathered<const W: usize>(lds: &[u8], places: &Lanes, loaded: &mut [Lanes; W]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        for (number, block) in loaded.iter_mut().enumerate() {
            // SAFETY: the processor has the feature; every word is in LDS.
            #[allow(unsafe_code, reason = "an instruction of processors with AVX2")]
            unsafe {
                vector_gather(lds, places, 4 * number, block);
            }
        }
        return;
    }
    for lane in 0..LANES {
        let at = places[lane] as usize;
        put_words(&lds[at..at + 4 * W], lane, loaded);
    }
}

/// Reads a word at each place, `offset` bytes further.
///
/// # Safety
/// `place + offset + 4` is at most the length of LDS for every place, and below 2^31.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[allow(unsafe_code, reason = "an instruction of processors with AVX2")]
unsafe fn vector_gather(lds: &[u8], places: &Lanes, offset: usize, block: &mut Lanes) {
    use std::arch::x86_64::{__m256i, _mm256_i32gather_epi32, _mm256_loadu_si256, _mm256_storeu_si256};
    for (places, words) in places.chunks_exact(8).zip(block.chunks_exact_mut(8)) {
        // SAFETY: both chunks have eight words; the caller promises that all words that are read are in LDS.
        unsafe {
            let places = _mm256_loadu_si256(places.as_ptr().cast::<__m256i>());
            let found = _mm256_i32gather_epi32::<1>(lds.as_ptr().add(offset).cast::<i32>(), places);
            _mm256_storeu_si256(words.as_mut_ptr().cast::<__m256i>(), found);
        }
    }
}

/// A store of one to four words of each lane to LDS; beyond its end they are dropped.
pub(crate) fn store_lds(step: &mut Step<'_>, op: &MicroOp, words: usize, address: u16) -> Outcome {
    let register = register_of(op.sources[1], op)?;
    let Step { wave, lds, .. } = step;
    for half in 0..wave.halves {
        let (exec, addresses) = (wave.exec(half), wave.block(address, half));
        let blocks: [&Lanes; WORDS] =
            std::array::from_fn(|number| wave.block(register + number.min(words - 1) as u16, half));
        for lane in (0..LANES).filter(|lane| exec & BITS[*lane] != 0) {
            let at = addresses[lane].wrapping_add(op.immediate as u32) as usize;
            let Some(bytes) = lds.get_mut(at..at + 4 * words) else { continue };
            for (word, block) in bytes.chunks_exact_mut(4).zip(blocks) {
                word.copy_from_slice(&block[lane].to_le_bytes());
            }
        }
    }
    Ok(Flow::Next)
}

/// The addresses of half a wave: a register pair, or a scalar base and offsets.
pub(crate) fn addresses(step: &Step<'_>, op: &MicroOp, half: usize, all: &mut LaneAddresses) {
    let wave = &*step.wave;
    match (op.sources[0], &op.sources[1]) {
        (Source::Vector { register, .. }, Source::None) => {
            let (low, high) = (wave.block(register, half), wave.block(register + 1, half));
            for lane in 0..LANES {
                all[lane] = (u64::from(low[lane]) | u64::from(high[lane]) << 32).wrapping_add_signed(op.immediate);
            }
        }
        (first, base) => {
            let base = super::scalar_of(wave, base).wrapping_add_signed(op.immediate);
            let Source::Vector { register, .. } = first else { return all.fill(base) };
            let offsets = wave.block(register, half);
            for lane in 0..LANES {
                let offset = if op.modifiers.clamp { offsets[lane] as i32 as u64 } else { offsets[lane].into() };
                all[lane] = base.wrapping_add(offset << op.modifiers.output);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processors_gather_reads_the_words_of_each_lane() {
        let lds: Vec<u8> = (0..1024_u32).map(|byte| (byte * 37 % 251) as u8).collect();
        // Aligned or not, in any order, up to the last byte.
        let places: Lanes = std::array::from_fn(|lane| (lane as u32 * 389 + 5) % 1017);
        let mut loaded = [[0; LANES]; 2];
        gathered(&lds, &places, &mut loaded);
        for (lane, place) in places.iter().enumerate() {
            for (number, block) in loaded.iter().enumerate() {
                let at = *place as usize + 4 * number;
                assert_eq!(block[lane].to_le_bytes(), lds[at..at + 4], "lane {lane}, word {number}");
            }
        }
    }
}
