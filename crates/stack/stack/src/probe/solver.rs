//! rocSOLVER: the Cholesky factor of a matrix, which it computes with kernels of its own and with rocBLAS.

use super::compare;
use super::loaded::{LoadedLibrary, check};
use std::ffi::{c_int, c_void};
use std::ptr;

const LOWER: c_int = 122;
/// Rows and columns of the matrix: no more than the lanes of a wave. With more of them the answer depends on the order of waves, because
/// rocSOLVER 3.32's kernel lacks a barrier between readers of a pivot and the wave that overwrites it by its root.
const ORDER: usize = 32;

type CreateHandle = unsafe extern "C" fn(*mut *mut c_void) -> c_int;
type Spotrf = unsafe extern "C" fn(*mut c_void, c_int, i32, *mut f32, i32, *mut i32) -> c_int;

/// Factors the product of a matrix of whole numbers, whose diagonal has powers of two, with its transpose: all sums, square roots
/// and quotients are exact.
#[allow(unsafe_code, reason = "rocSOLVER has a C interface")]
pub(super) fn factor_matrix(library: &LoadedLibrary) -> Result<usize, String> {
    // SAFETY: the prototypes are those of rocsolver-functions.h and rocblas-auxiliary.h, with integers of 32 bits.
    let (create, spotrf) = unsafe {
        (library.function::<CreateHandle>(c"rocblas_create_handle")?, library.function::<Spotrf>(c"rocsolver_spotrf")?)
    };
    let factor = lower_triangle();
    let (matrix, info) = (library.upload(&times_transpose(&factor))?, library.upload(&[1_i32])?);
    let (mut handle, order) = (ptr::null_mut(), ORDER as i32);
    // SAFETY: the handle is written to a variable of its type; the matrix has `ORDER` rows and columns, and the state one number, in
    // memory of the GPU.
    unsafe {
        check("rocblas_create_handle", create(&raw mut handle))?;
        let status = spotrf(handle, LOWER, order, matrix.address.cast(), order, info.address.cast());
        check("rocsolver_spotrf", status)?;
    }
    match library.download::<i32>(&info)?[..] {
        [0] => compare(&below_diagonal(&library.download(&matrix)?), &below_diagonal(&factor)),
        ref info => Err(format!("rocsolver_spotrf returned {info:?}: the matrix is not positive definite for it")),
    }
}

/// Columns lie one after the other, as in all matrices here.
fn lower_triangle() -> Vec<f32> {
    let mut factor = vec![0.0; ORDER * ORDER];
    for column in 0..ORDER {
        factor[column * ORDER + column] = (1 << (column % 3)) as f32;
        for row in column + 1..ORDER {
            factor[column * ORDER + row] = ((row * 3 + column) % 5) as f32 - 2.0;
        }
    }
    factor
}

fn times_transpose(factor: &[f32]) -> Vec<f32> {
    let sum =
        |row: usize, column: usize| (0..ORDER).map(|at| factor[at * ORDER + row] * factor[at * ORDER + column]).sum();
    (0..ORDER * ORDER).map(|at| sum(at % ORDER, at / ORDER)).collect()
}

/// With the diagonal; the values above it are not a part of the answer.
fn below_diagonal(matrix: &[f32]) -> Vec<f32> {
    (0..ORDER * ORDER).filter(|at| at % ORDER >= at / ORDER).map(|at| matrix[at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_is_symmetric_and_its_factor_is_that_of_the_textbook() {
        let (factor, matrix) = (lower_triangle(), times_transpose(&lower_triangle()));
        for at in 0..ORDER * ORDER {
            assert_eq!(matrix[at], matrix[at % ORDER * ORDER + at / ORDER]);
        }
        // The first steps of Cholesky's method by hand.
        let first = matrix[0].sqrt();
        let below = matrix[1] / first;
        let second = (matrix[ORDER + 1] - below * below).sqrt();
        assert_eq!([first, below, second], [factor[0], factor[1], factor[ORDER + 1]]);
        assert_eq!(below_diagonal(&factor).len(), ORDER * (ORDER + 1) / 2);
    }
}
