//! rocFFT: a Fourier transform, whose kernels rocFFT compiles when it is planned, for the GPU whose name it sees.

use super::compare;
use super::loaded::{LoadedLibrary, check};
use std::f64::consts::TAU;
use std::ffi::{c_int, c_void};
use std::ptr;

/// Factors 2, 3 and 5: kernels with several radices.
const LENGTH: usize = 240;
const IN_PLACE: c_int = 0;
const COMPLEX_FORWARD: c_int = 0;
const SINGLE: c_int = 0;

type FftSetupFn = unsafe extern "C" fn() -> c_int;
type PlanCreate =
    unsafe extern "C" fn(*mut *mut c_void, c_int, c_int, c_int, usize, *const usize, usize, *mut c_void) -> c_int;
type Execute = unsafe extern "C" fn(*mut c_void, *mut *mut c_void, *mut *mut c_void, *mut c_void) -> c_int;

/// Transforms values whose spectrum is whole numbers: rounding takes the error of the additions.
#[allow(unsafe_code, reason = "rocFFT has a C interface")]
pub(super) fn transform(library: &LoadedLibrary) -> Result<usize, String> {
    // SAFETY: the prototypes are those of rocfft.h.
    let (setup, create, execute) = unsafe {
        (
            library.function::<FftSetupFn>(c"rocfft_setup")?,
            library.function::<PlanCreate>(c"rocfft_plan_create")?,
            library.function::<Execute>(c"rocfft_execute")?,
        )
    };
    let expected = spectrum();
    let buffer = library.upload(&signal(&expected))?;
    let (mut plan, length, mut address) = (ptr::null_mut(), LENGTH, buffer.address);
    // SAFETY: the plan is written to a variable of its type; the memory has `LENGTH` complex numbers; without a description and
    // information about the execution the pointers to them are null, as the documentation says.
    unsafe {
        check("rocfft_setup", setup())?;
        let none = ptr::null_mut();
        let status = create(&raw mut plan, IN_PLACE, COMPLEX_FORWARD, SINGLE, 1, &raw const length, 1, none);
        check("rocfft_plan_create", status)?;
        check("rocfft_execute", execute(plan, &raw mut address, ptr::null_mut(), ptr::null_mut()))?;
    }
    let found: Vec<f32> = library.download::<f32>(&buffer)?.into_iter().map(f32::round).collect();
    compare(&found, &expected)
}

/// Whole numbers: real and imaginary parts in turn.
fn spectrum() -> Vec<f32> {
    (0..2 * LENGTH).map(|at| ((at * 5 + at / 7) % 11) as f32 - 5.0).collect()
}

/// The values with that spectrum, by the definition of the inverse transform.
fn signal(spectrum: &[f32]) -> Vec<f32> {
    let count = spectrum.len() / 2;
    let mut values = Vec::new();
    for at in 0..count {
        let (mut real, mut imaginary) = (0.0, 0.0);
        for (number, part) in spectrum.chunks_exact(2).enumerate() {
            let (sine, cosine) = (TAU * (at * number % count) as f64 / count as f64).sin_cos();
            let (re, im) = (f64::from(part[0]), f64::from(part[1]));
            real += re * cosine - im * sine;
            imaginary += re * sine + im * cosine;
        }
        values.extend([real, imaginary].map(|sum| (sum / count as f64) as f32));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_of_a_constant_is_an_impulse_and_of_one_line_a_turning_wheel() {
        let mut constant = vec![0.0; 16];
        constant.iter_mut().step_by(2).for_each(|real| *real = 3.0);
        let impulse: Vec<i32> = signal(&constant).iter().map(|value| value.round() as i32).collect();
        assert_eq!(impulse, [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let line = [0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let wheel: Vec<i32> = signal(&line).iter().map(|value| value.round() as i32).collect();
        assert_eq!(wheel, [1, 0, 0, 1, -1, 0, 0, -1]);
        assert!(spectrum().iter().any(|value| *value != 0.0) && spectrum().len() == 2 * LENGTH);
    }
}
