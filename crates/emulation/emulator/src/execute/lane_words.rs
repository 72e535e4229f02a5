//! Loads and stores of whole words by all active lanes together.
//!
//! Invariants: what a lane reads and writes, and which lane has the first fault, is what the access lane by lane gives. A load
//! reads everything before it writes registers. Where all lanes' words are in LDS, the processor's own gather reads them.

use super::data::LARGEST;
use super::lds::{register_of, target_of};
use super::{ExecContext, StepFault, StepFlow, StepResult, write_lanes};
use crate::fault::FaultKind;
use crate::memory::LaneAddresses;
use crate::memory_operation::{DataHalf, MemoryOperation};
use crate::micro::{MicroOp, SourceOperand};
use crate::wave::WaveState;
use hotswap_semantics::{BITS, LANES, Lanes, on_long_vectors};

/// Words of the largest access of a lane.
const WORDS: usize = LARGEST / 4;

/// The words of an access that is one of whole words, unless stores are watched.
pub(crate) fn words_of(step: &ExecContext<'_>, operation: MemoryOperation) -> Option<usize> {
    let is_whole = operation.half == DataHalf::Whole && operation.bytes >= 4;
    let is_watched = operation.is_store && step.wave.store_watch.is_some();
    (is_whole && !is_watched && usize::from(operation.bytes) <= LARGEST).then_some(usize::from(operation.bytes / 4))
}

/// An access to memory of half a wave.
pub(crate) fn access_memory(
    step: &mut ExecContext<'_>,
    op: &MicroOp,
    (is_store, words): (bool, usize),
    addresses: &LaneAddresses,
    half: usize,
) -> Result<(), Box<StepFault>> {
    let exec = step.wave.exec_half(half);
    if is_store {
        let register = data_register(op)?;
        let blocks: [&Lanes; WORDS] =
            std::array::from_fn(|number| step.wave.block(register + number.min(words - 1) as u16, half));
        return step
            .memory
            .write_lanes(addresses, exec, &blocks[..words])
            .map_err(|one| memory_access_fault(one, half));
    }
    let register = target_of(op)?;
    let loaded = &mut step.space[..words];
    step.memory.read_lanes(addresses, exec, loaded).map_err(|one| memory_access_fault(one, half))?;
    write_loaded(step.wave, register, half, loaded);
    Ok(())
}

fn memory_access_fault((lane, fault): (usize, crate::MemoryFault), half: usize) -> Box<StepFault> {
    StepFault::from_memory_fault(fault, Some(LANES * half + lane))
}

fn data_register(op: &MicroOp) -> Result<u16, Box<StepFault>> {
    register_of(op.sources[2], op)
}

/// Writes what was loaded to the active lanes.
fn write_loaded(wave: &mut WaveState, register: u16, half: usize, loaded: &[Lanes]) {
    #[inline(always)]
    fn all(wave: &mut WaveState, register: u16, half: usize, loaded: &[Lanes]) {
        let exec = wave.exec_half(half);
        for (number, lanes) in loaded.iter().enumerate() {
            write_lanes(wave.block_mut(register + number as u16, half), lanes, exec);
        }
    }
    on_long_vectors!(all(wave: &mut WaveState, register: u16, half: usize, loaded: &[Lanes]))
}

/// A load of one to four words of each lane from LDS; beyond its end they are 0.
pub(crate) fn load_lds(step: &mut ExecContext<'_>, op: &MicroOp, words: usize, address: u16) -> StepResult {
    let (register, offset) = (target_of(op)?, op.immediate as u32);
    match words {
        1 => load_elements::<1, 1>(step, register, address, [offset]),
        2 => load_elements::<2, 1>(step, register, address, [offset]),
        3 => load_elements::<3, 1>(step, register, address, [offset]),
        _ => load_elements::<4, 1>(step, register, address, [offset]),
    }
    Ok(StepFlow::Next)
}

/// Two elements of each lane from LDS.
pub(crate) fn load_pair(step: &mut ExecContext<'_>, target: u16, is_wide: bool, address: u16, offsets: [u32; 2]) {
    match is_wide {
        true => load_elements::<2, 2>(step, target, address, offsets),
        false => load_elements::<1, 2>(step, target, address, offsets),
    }
}

/// Elements of `W` words. Everything is read before registers are written.
fn load_elements<const W: usize, const N: usize>(
    step: &mut ExecContext<'_>,
    target: u16,
    address: u16,
    offsets: [u32; N],
) {
    let mut loaded = [[[0; LANES]; W]; N];
    for half in 0..step.wave.halves {
        let (exec, addresses) = (step.wave.exec_half(half), step.wave.block(address, half));
        for (offset, words) in offsets.into_iter().zip(&mut loaded) {
            gather_lds(step.lds, (addresses, exec), offset, words);
        }
        for (number, words) in loaded.iter().enumerate() {
            write_loaded(step.wave, target + (number * W) as u16, half, words);
        }
    }
}

/// Reads words of LDS of the active lanes. An element that is not all in LDS is 0.
#[inline]
fn gather_lds<const W: usize>(lds: &[u8], (addresses, exec): (&Lanes, u32), offset: u32, loaded: &mut [Lanes; W]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the feature.
        #[allow(unsafe_code, reason = "instructions of processors with AVX2")]
        let all_inside = unsafe { vector_gather(lds, (addresses, exec), offset, loaded) };
        if all_inside {
            return;
        }
    }
    for lane in 0..LANES {
        let at = addresses[lane].wrapping_add(offset) as usize;
        let bytes = lds.get(at..at + 4 * W).filter(|_| exec & BITS[lane] != 0);
        for (number, block) in loaded.iter_mut().enumerate() {
            let word = bytes.and_then(|bytes| bytes[4 * number..].first_chunk());
            block[lane] = word.map_or(0, |word| u32::from_le_bytes(*word));
        }
    }
}

/// Reads the words of lanes whose elements are all in LDS, below 2^31; otherwise nothing, and the result is `false`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[allow(unsafe_code, reason = "instructions of processors with AVX2")]
fn vector_gather<const W: usize>(
    lds: &[u8],
    (addresses, exec): (&Lanes, u32),
    offset: u32,
    loaded: &mut [Lanes; W],
) -> bool {
    use std::arch::x86_64::{__m256i, _mm256_storeu_si256};
    // Lanes that are not active read the first element, which is dropped.
    let mut places = [0; LANES];
    let mut last = 0;
    for lane in 0..LANES {
        let place = addresses[lane].wrapping_add(offset);
        places[lane] = if exec & BITS[lane] == 0 { 0 } else { place };
        last = last.max(places[lane]);
    }
    if last as usize + 4 * W > lds.len().min(i32::MAX as usize) {
        return false;
    }
    for (number, block) in loaded.iter_mut().enumerate() {
        for (places, words) in places.chunks_exact(8).zip(block.chunks_exact_mut(8)) {
            // SAFETY: both chunks have eight words, and `place + 4 * number + 4` is at most the length of LDS for each place.
            unsafe {
                let from = lds.as_ptr().add(4 * number);
                _mm256_storeu_si256(words.as_mut_ptr().cast::<__m256i>(), eight_words(from, places));
            }
        }
    }
    true
}

/// Eight words at places behind a pointer; those one after the other, or all at one place, without a gather, which takes longer.
///
/// # Safety
/// There are eight places, and four bytes at each.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[allow(unsafe_code, reason = "instructions of processors with AVX2")]
unsafe fn eight_words(from: *const u8, places: &[u32]) -> std::arch::x86_64::__m256i {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi32, _mm256_cmpeq_epi32, _mm256_i32gather_epi32, _mm256_loadu_si256,
        _mm256_movemask_epi8, _mm256_set1_epi32, _mm256_setr_epi32,
    };
    // SAFETY: the caller's promise; words one after the other are those at the places.
    unsafe {
        let all = _mm256_loadu_si256(places.as_ptr().cast::<__m256i>());
        let first = _mm256_set1_epi32(places[0] as i32);
        let row = _mm256_add_epi32(first, _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
        let start = from.add(places[0] as usize);
        if _mm256_movemask_epi8(_mm256_cmpeq_epi32(all, row)) == -1 {
            return _mm256_loadu_si256(start.cast::<__m256i>());
        }
        if _mm256_movemask_epi8(_mm256_cmpeq_epi32(all, first)) == -1 {
            return _mm256_set1_epi32(start.cast::<i32>().read_unaligned());
        }
        _mm256_i32gather_epi32::<1>(from.cast::<i32>(), all)
    }
}

/// The part of LDS that all lanes store to, if each has the word after that of the lane before it.
fn row_of_lds<'l>(lds: &'l mut [u8], (addresses, exec): (&Lanes, u32), offset: u32) -> Option<&'l mut [u8]> {
    #[inline(always)]
    fn is_row(addresses: &Lanes) -> bool {
        let mut differing = 0;
        for lane in 0..LANES {
            differing |= addresses[lane] ^ addresses[0].wrapping_add(4 * lane as u32);
        }
        differing == 0
    }
    let test = || on_long_vectors!(is_row(addresses: &Lanes) -> bool);
    // Where all of the row is in LDS, no lane's address has wrapped.
    let start = addresses[0].checked_add(offset)? as usize;
    if exec == u32::MAX && test() { lds.get_mut(start..start + 4 * LANES) } else { None }
}

/// A store of one to four words of each lane to LDS; beyond its end they are dropped.
pub(crate) fn store_lds(step: &mut ExecContext<'_>, op: &MicroOp, words: usize, address: u16) -> StepResult {
    let register = register_of(op.sources[1], op)?;
    let ExecContext { wave, lds, .. } = step;
    for half in 0..wave.halves {
        let (exec, addresses) = (wave.exec_half(half), wave.block(address, half));
        let blocks: [&Lanes; WORDS] =
            std::array::from_fn(|number| wave.block(register + number.min(words - 1) as u16, half));
        let row = if words == 1 { row_of_lds(lds, (addresses, exec), op.immediate as u32) } else { None };
        if let Some(row) = row {
            row.chunks_exact_mut(4).zip(blocks[0]).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
            continue;
        }
        for lane in (0..LANES).filter(|lane| exec & BITS[*lane] != 0) {
            let at = addresses[lane].wrapping_add(op.immediate as u32) as usize;
            let Some(bytes) = lds.get_mut(at..at + 4 * words) else { continue };
            for (word, block) in bytes.chunks_exact_mut(4).zip(blocks) {
                word.copy_from_slice(&block[lane].to_le_bytes());
            }
        }
    }
    Ok(StepFlow::Next)
}

/// An access to words of each lane's scratch, at offsets that `offsets_of` gives for half a wave.
#[inline]
pub(crate) fn access_scratch(
    step: &mut ExecContext<'_>,
    op: &MicroOp,
    (is_store, words): (bool, usize),
    offsets_of: impl Fn(&WaveState, usize) -> LaneAddresses,
) -> StepResult {
    let register = if is_store { data_register(op)? } else { target_of(op)? };
    let wave = &mut *step.wave;
    let size = wave.scratch_size;
    for half in 0..wave.halves {
        let (exec, mut offsets) = (wave.exec_half(half), offsets_of(wave, half));
        let active = || (0..LANES).filter(|lane| exec & BITS[*lane] != 0);
        for lane in active() {
            let (number, offset) = (LANES * half + lane, offsets[lane]);
            if offset + 4 * words as u64 > u64::from(size) {
                let kind = FaultKind::Scratch { offset, size };
                return Err(Box::new(StepFault { kind, lane: Some(number as u32) }));
            }
            offsets[lane] += number as u64 * u64::from(size);
        }
        for number in 0..words {
            let (block, scratch) = wave.block_and_scratch(register + number as u16, half);
            for lane in active() {
                let Some(rest) = scratch.get_mut(offsets[lane] as usize + 4 * number..) else { continue };
                let Some(word) = rest.first_chunk_mut() else { continue };
                if is_store {
                    *word = block[lane].to_le_bytes();
                } else {
                    block[lane] = u32::from_le_bytes(*word);
                }
            }
        }
    }
    Ok(StepFlow::Next)
}

/// The addresses of half a wave: a register pair, or a scalar base and offsets.
pub(crate) fn lane_addresses(wave: &WaveState, op: &MicroOp, half: usize, into: &mut LaneAddresses) {
    on_long_vectors!(all_addresses(wave: &WaveState, op: &MicroOp, half: usize, into: &mut LaneAddresses))
}

#[inline(always)]
fn all_addresses(wave: &WaveState, op: &MicroOp, half: usize, all: &mut LaneAddresses) {
    match (op.sources[0], &op.sources[1]) {
        (SourceOperand::Vector { register, .. }, SourceOperand::None) => {
            let (low, high) = (wave.block(register, half), wave.block(register + 1, half));
            for lane in 0..LANES {
                all[lane] = (u64::from(low[lane]) | u64::from(high[lane]) << 32).wrapping_add_signed(op.immediate);
            }
        }
        (first, base) => {
            let base = super::scalar_of(wave, base).wrapping_add_signed(op.immediate);
            let SourceOperand::Vector { register, .. } = first else { return all.fill(base) };
            let offsets = wave.block(register, half);
            // The bits above an offset are 0, or its sign.
            let upper = if op.modifiers.clamp { u32::MAX } else { 0 };
            for lane in 0..LANES {
                let sign = (offsets[lane] as i32 >> 31) as u32 & upper;
                let offset = u64::from(offsets[lane]) | u64::from(sign) << 32;
                all[lane] = base.wrapping_add(offset << op.modifiers.output);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_read_their_words_of_lds_and_0_beyond_its_end() {
        let lds: Vec<u8> = (0..1024_u32).map(|byte| (byte * 37 % 251) as u8).collect();
        // Aligned or not, in any order, up to the last byte, and beyond it.
        for (most, exec) in [(1017, u32::MAX), (1017, 0x8421_f00f), (1024, u32::MAX), (5000, 0x0ff0_3c5a)] {
            let addresses: Lanes = std::array::from_fn(|lane| match exec & BITS[lane] {
                0 => u32::MAX - lane as u32,
                _ => (lane as u32 * 389 + 2) % most,
            });
            let mut loaded = [[0; LANES]; 2];
            gather_lds(&lds, (&addresses, exec), 3, &mut loaded);
            for lane in (0..LANES).filter(|lane| exec & BITS[*lane] != 0) {
                let at = addresses[lane] as usize + 3;
                let expected = lds.get(at..at + 8).unwrap_or(&[0; 8]);
                let found: Vec<u8> = loaded.iter().flat_map(|block| block[lane].to_le_bytes()).collect();
                assert_eq!(found, expected, "lane {lane} of {exec:#x}, below {most}");
            }
        }
    }
}
