//! rocBLAS: a product of matrices, for which it opens its index and a file of kernels.

use super::compare;
use super::loaded::{LoadedLibrary, check};
use std::ffi::{c_int, c_void};
use std::ptr;

const NOT_TRANSPOSED: c_int = 111;
/// Rows and columns of the matrices. No power of two, and larger than one tile of a kernel.
const ORDER: i32 = 96;

type CreateHandle = unsafe extern "C" fn(*mut *mut c_void) -> c_int;
type Sgemm = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    c_int,
    i32,
    i32,
    i32,
    *const f32,
    *const f32,
    i32,
    *const f32,
    i32,
    *const f32,
    *mut f32,
    i32,
) -> c_int;

/// `C := 2 A B + C` of small whole numbers: all sums are exact.
#[allow(unsafe_code, reason = "rocBLAS has a C interface")]
pub(super) fn multiply_matrices(library: &LoadedLibrary) -> Result<usize, String> {
    // SAFETY: the prototypes are those of rocblas-functions.h and rocblas-auxiliary.h, with integers of 32 bits.
    let (create, sgemm) = unsafe {
        (library.function::<CreateHandle>(c"rocblas_create_handle")?, library.function::<Sgemm>(c"rocblas_sgemm")?)
    };
    let [a, b, c] = [3, 5, 7].map(matrix);
    let (on_a, on_b, on_c) = (library.upload(&a)?, library.upload(&b)?, library.upload(&c)?);
    let (mut handle, alpha, beta) = (ptr::null_mut(), 2.0_f32, 1.0_f32);
    // SAFETY: the handle is written to a variable of its type.
    check("rocblas_create_handle", unsafe { create(&raw mut handle) })?;
    let (order, none) = (ORDER, NOT_TRANSPOSED);
    // SAFETY: the matrices have `ORDER` rows and columns in memory of the GPU; the factors live until the call returns.
    let status = unsafe {
        let (a, b, c) = (on_a.address.cast(), on_b.address.cast(), on_c.address.cast());
        sgemm(handle, none, none, order, order, order, &raw const alpha, a, order, b, order, &raw const beta, c, order)
    };
    check("rocblas_sgemm", status)?;
    compare(&library.download(&on_c)?, &product(&a, &b, &c))
}

fn matrix(step: i32) -> Vec<f32> {
    (0..ORDER * ORDER).map(|at| ((at * step + at / ORDER) % 7 - 3) as f32).collect()
}

/// The answer; columns lie one after the other.
fn product(a: &[f32], b: &[f32], c: &[f32]) -> Vec<f32> {
    let order = ORDER as usize;
    let sum =
        |row: usize, column: usize| (0..order).map(|at| a[row + at * order] * b[at + column * order]).sum::<f32>();
    (0..order * order).map(|at| 2.0 * sum(at % order, at / order) + c[at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_with_the_identity_is_the_matrix() {
        let order = ORDER as usize;
        let identity: Vec<f32> = (0..order * order).map(|at| if at % (order + 1) == 0 { 1.0 } else { 0.0 }).collect();
        let (a, zero) = (matrix(3), vec![0.0; order * order]);
        let twice: Vec<f32> = a.iter().map(|value| 2.0 * value).collect();
        assert_eq!((product(&a, &identity, &zero), product(&identity, &a, &zero)), (twice.clone(), twice));
        assert_eq!(product(&zero, &a, &a), a);
    }
}
