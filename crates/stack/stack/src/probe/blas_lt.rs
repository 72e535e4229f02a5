//! hipBLASLt: a product of matrices of half precision, for which it chooses a solution by its index, and loads its kernels.

use super::compare;
use super::loaded::{LoadedLibrary, check};
use std::ffi::{c_int, c_void};
use std::ptr;

/// Rows and columns of the matrices.
const ORDER: usize = 64;
const HALF: c_int = 2;
const FLOAT: c_int = 0;
const COMPUTE_FLOAT: c_int = 2;

type Object = *mut c_void;
type LtCreateFn = unsafe extern "C" fn(*mut Object) -> c_int;
type CreateDescription = unsafe extern "C" fn(*mut Object, c_int, c_int) -> c_int;
type CreateLayout = unsafe extern "C" fn(*mut Object, c_int, u64, u64, i64) -> c_int;
type Choose = unsafe extern "C" fn(
    Object,
    Object,
    Object,
    Object,
    Object,
    Object,
    Object,
    c_int,
    *mut Choice,
    *mut c_int,
) -> c_int;
type Multiply = unsafe extern "C" fn(
    Object,
    Object,
    *const f32,
    *const c_void,
    Object,
    *const c_void,
    Object,
    *const f32,
    *const c_void,
    Object,
    *mut c_void,
    Object,
    *const Choice,
    *mut c_void,
    usize,
    *mut c_void,
) -> c_int;

/// A chosen solution: `hipblasLtMatmulHeuristicResult_t`, which begins with the solution itself and is smaller than this.
#[repr(C, align(16))]
struct Choice([u8; 1024]);

/// Handle, description, layout of all matrices, preference.
struct Objects {
    handle: Object,
    description: Object,
    layout: Object,
    preference: Object,
}

/// `D := A B` of small whole numbers: all sums are exact in half precision.
#[allow(unsafe_code, reason = "hipBLASLt has a C interface")]
pub(super) fn multiply_matrices(library: &LoadedLibrary) -> Result<usize, String> {
    // SAFETY: the prototypes are those of hipblaslt.h.
    let (choose, multiply) = unsafe {
        (
            library.function::<Choose>(c"hipblasLtMatmulAlgoGetHeuristic")?,
            library.function::<Multiply>(c"hipblasLtMatmul")?,
        )
    };
    let Objects { handle, description, layout, preference } = create_objects(library)?;
    let (a, b) = (whole_numbers(3), whole_numbers(5));
    let (on_a, on_b, on_d) =
        (library.upload(&halves(&a))?, library.upload(&halves(&b))?, library.upload(&[0_u16; ORDER * ORDER])?);
    let (mut choice, mut count, one, zero) = (Choice([0; 1024]), 0, 1.0_f32, 0.0_f32);
    // SAFETY: the objects are those that the library has made; one choice fits into its variable; the matrices have `ORDER` rows
    // and columns in memory of the GPU; the factors live until the call returns; a preference of no workspace needs none.
    unsafe {
        let status =
            choose(handle, description, layout, layout, layout, layout, preference, 1, &raw mut choice, &raw mut count);
        check("hipblasLtMatmulAlgoGetHeuristic", status)?;
        if count == 0 {
            return Err("hipBLASLt has no solution for a product of matrices of half precision".to_owned());
        }
        let (a, b, d) = (on_a.address, on_b.address, on_d.address);
        let (one, zero, choice, none) = (&raw const one, &raw const zero, &raw const choice, ptr::null_mut());
        let status =
            multiply(handle, description, one, a, layout, b, layout, zero, d, layout, d, layout, choice, none, 0, none);
        check("hipblasLtMatmul", status)?;
    }
    compare(&library.download::<u16>(&on_d)?, &halves(&product(&a, &b)))
}

#[allow(unsafe_code, reason = "hipBLASLt has a C interface")]
fn create_objects(library: &LoadedLibrary) -> Result<Objects, String> {
    // SAFETY: the prototypes are those of hipblaslt.h.
    let (create, describe, lay_out, prefer) = unsafe {
        (
            library.function::<LtCreateFn>(c"hipblasLtCreate")?,
            library.function::<CreateDescription>(c"hipblasLtMatmulDescCreate")?,
            library.function::<CreateLayout>(c"hipblasLtMatrixLayoutCreate")?,
            library.function::<LtCreateFn>(c"hipblasLtMatmulPreferenceCreate")?,
        )
    };
    let mut made = [ptr::null_mut(); 4];
    let [handle, description, layout, preference] = &mut made;
    let order = ORDER as u64;
    // SAFETY: each object is written to a variable of its type.
    unsafe {
        check("hipblasLtCreate", create(handle))?;
        check("hipblasLtMatmulDescCreate", describe(description, COMPUTE_FLOAT, FLOAT))?;
        check("hipblasLtMatrixLayoutCreate", lay_out(layout, HALF, order, order, ORDER as i64))?;
        check("hipblasLtMatmulPreferenceCreate", prefer(preference))?;
    }
    let [handle, description, layout, preference] = made;
    Ok(Objects { handle, description, layout, preference })
}

fn whole_numbers(step: usize) -> Vec<i32> {
    (0..ORDER * ORDER).map(|at| ((at * step + at / ORDER) % 7) as i32 - 3).collect()
}

/// The answer; columns lie one after the other.
fn product(a: &[i32], b: &[i32]) -> Vec<i32> {
    (0..ORDER * ORDER).map(|at| element_of_product(a, b, at % ORDER, at / ORDER)).collect()
}

fn element_of_product(a: &[i32], b: &[i32], row: usize, column: usize) -> i32 {
    (0..ORDER).map(|at| a[row + at * ORDER] * b[at + column * ORDER]).sum()
}

/// Whole numbers up to 2048 as half precision has them: IEEE 754 binary16.
fn halves(numbers: &[i32]) -> Vec<u16> {
    numbers.iter().map(|number| half(*number)).collect()
}

fn half(number: i32) -> u16 {
    let size = number.unsigned_abs();
    if size == 0 {
        return 0;
    }
    let exponent = size.ilog2();
    let fraction = (size << 10 >> exponent) & 0x3ff;
    ((u32::from(number < 0) << 15) | ((exponent + 15) << 10) | fraction) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_the_bits_of_the_standard() {
        assert_eq!(halves(&[0, 1, -2, 3, 1000, 2047, -2048]), [0, 0x3c00, 0xc000, 0x4200, 0x63d0, 0x67ff, 0xe800]);
    }

    #[test]
    fn the_product_with_the_identity_is_the_matrix_and_no_sum_needs_rounding() {
        let identity: Vec<i32> = (0..ORDER * ORDER).map(|at| i32::from(at % (ORDER + 1) == 0)).collect();
        let (a, b) = (whole_numbers(3), whole_numbers(5));
        assert_eq!((product(&a, &identity), product(&identity, &b)), (a.clone(), b.clone()));
        assert!(product(&a, &b).iter().all(|sum| sum.abs() < 2048));
    }
}
