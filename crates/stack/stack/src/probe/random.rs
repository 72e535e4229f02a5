//! rocRAND: numbers of Philox 4x32-10, which its inventors' paper defines (Salmon et al., "Parallel Random Numbers: As Easy as
//! 1, 2, 3", 2011).

use super::compare;
use super::loaded::{LoadedLibrary, check};
use std::ffi::{c_int, c_void};
use std::ptr;

const PHILOX: c_int = 404;
const COUNT: usize = 4096;
const SEED: u64 = 0x0123_4567_89ab_cdef;

type CreateGenerator = unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int;
type SetSeed = unsafe extern "C" fn(*mut c_void, u64) -> c_int;
type Generate = unsafe extern "C" fn(*mut c_void, *mut u32, usize) -> c_int;

#[allow(unsafe_code, reason = "rocRAND has a C interface")]
pub(super) fn generate_philox(library: &LoadedLibrary) -> Result<usize, String> {
    // SAFETY: the prototypes are those of rocrand.h.
    let (create, seed, generate) = unsafe {
        (
            library.function::<CreateGenerator>(c"rocrand_create_generator")?,
            library.function::<SetSeed>(c"rocrand_set_seed")?,
            library.function::<Generate>(c"rocrand_generate")?,
        )
    };
    let numbers = library.upload(&vec![0_u32; COUNT])?;
    let mut generator = ptr::null_mut();
    // SAFETY: the generator is written to a variable of its type, and used by its own library; the memory has that many
    // numbers.
    unsafe {
        check("rocrand_create_generator", create(&raw mut generator, PHILOX))?;
        check("rocrand_set_seed", seed(generator, SEED))?;
        check("rocrand_generate", generate(generator, numbers.address.cast(), COUNT))?;
    }
    let expected: Vec<u32> = (0..COUNT as u32 / 4).flat_map(|counter| philox([counter, 0, 0, 0], SEED)).collect();
    compare(&library.download(&numbers)?, &expected)
}

fn high_word(product: u64) -> u32 {
    (product >> 32) as u32
}

/// One block of numbers.
fn philox(mut counter: [u32; 4], seed: u64) -> [u32; 4] {
    let (mut low, mut high) = (seed as u32, (seed >> 32) as u32);
    for _ in 0..10 {
        let (one, two) = (u64::from(counter[0]) * 0xd251_1f53, u64::from(counter[2]) * 0xcd9e_8d57);
        counter = [high_word(two) ^ counter[1] ^ low, two as u32, high_word(one) ^ counter[3] ^ high, one as u32];
        (low, high) = (low.wrapping_add(0x9e37_79b9), high.wrapping_add(0xbb67_ae85));
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers of the inventors' library (Random123, kat_vectors).
    #[test]
    fn philox_gives_the_known_answers() {
        assert_eq!(philox([0; 4], 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([u32::MAX; 4], u64::MAX), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    }
}
