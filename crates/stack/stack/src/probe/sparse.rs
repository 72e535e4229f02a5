//! rocSPARSE: a matrix with three entries in a row, times a vector.

use super::compare;
use super::loaded::{LoadedLibrary, check};
use std::ffi::{c_int, c_void};
use std::ptr;

const NOT_TRANSPOSED: c_int = 111;
const ROWS: i32 = 2000;

type SparseCreateFn = unsafe extern "C" fn(*mut *mut c_void) -> c_int;
type Scsrmv = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    i32,
    i32,
    i32,
    *const f32,
    *mut c_void,
    *const f32,
    *const i32,
    *const i32,
    *mut c_void,
    *const f32,
    *const f32,
    *mut f32,
) -> c_int;

/// A matrix in compressed rows.
#[derive(Default)]
struct SparseMatrix {
    starts: Vec<i32>,
    columns: Vec<i32>,
    values: Vec<f32>,
}

/// `y := 2 A x + y` of small whole numbers: all sums are exact.
#[allow(unsafe_code, reason = "rocSPARSE has a C interface")]
pub(super) fn multiply_vector(library: &LoadedLibrary) -> Result<usize, String> {
    // SAFETY: the prototypes are those of rocsparse-auxiliary.h and rocsparse_csrmv.h, with integers of 32 bits.
    let (create_handle, create_description, scsrmv) = unsafe {
        (
            library.function::<SparseCreateFn>(c"rocsparse_create_handle")?,
            library.function::<SparseCreateFn>(c"rocsparse_create_mat_descr")?,
            library.function::<Scsrmv>(c"rocsparse_scsrmv")?,
        )
    };
    let (matrix, x, y) = (band_matrix(), whole_numbers(7), whole_numbers(5));
    let (starts, columns) = (library.upload(&matrix.starts)?, library.upload(&matrix.columns)?);
    let (values, on_x, on_y) = (library.upload(&matrix.values)?, library.upload(&x)?, library.upload(&y)?);
    let (mut handle, mut description, alpha, beta) = (ptr::null_mut(), ptr::null_mut(), 2.0_f32, 1.0_f32);
    // SAFETY: handle and description are written to variables of their types; the arrays in memory of the GPU have the sizes
    // that the matrix states; the factors live until the call returns. Without the result of an analysis the pointer to it
    // is null, as the documentation says.
    let status = unsafe {
        check("rocsparse_create_handle", create_handle(&raw mut handle))?;
        check("rocsparse_create_mat_descr", create_description(&raw mut description))?;
        scsrmv(
            handle,
            NOT_TRANSPOSED,
            ROWS,
            ROWS,
            matrix.values.len() as i32,
            &raw const alpha,
            description,
            values.address.cast(),
            starts.address.cast(),
            columns.address.cast(),
            ptr::null_mut(),
            on_x.address.cast(),
            &raw const beta,
            on_y.address.cast(),
        )
    };
    check("rocsparse_scsrmv", status)?;
    compare(&library.download(&on_y)?, &product(&matrix, &x, &y))
}

fn whole_numbers(modulus: i32) -> Vec<f32> {
    (0..ROWS).map(|at| (at % modulus - 2) as f32).collect()
}

/// A matrix with entries on the diagonal and beside it.
fn band_matrix() -> SparseMatrix {
    let mut matrix = SparseMatrix { starts: vec![0], ..SparseMatrix::default() };
    for row in 0..ROWS {
        let columns = (row - 1..=row + 1).filter(|column| (0..ROWS).contains(column));
        for column in columns {
            matrix.columns.push(column);
            matrix.values.push(((row + 2 * column) % 5) as f32);
        }
        matrix.starts.push(matrix.columns.len() as i32);
    }
    matrix
}

/// The answer that the GPU has to give: `2 A x + y`.
fn product(matrix: &SparseMatrix, x: &[f32], y: &[f32]) -> Vec<f32> {
    matrix.starts.windows(2).zip(y).map(|(row, y)| 2.0 * sparse_row_product(row, matrix, x) + y).collect()
}

fn sparse_row_product(row: &[i32], matrix: &SparseMatrix, x: &[f32]) -> f32 {
    let entries = row[0] as usize..row[1] as usize;
    entries.map(|at| matrix.values[at] * x[matrix.columns[at] as usize]).sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_multiplied_by_their_columns() {
        let matrix = SparseMatrix { starts: vec![0, 2, 2, 3], columns: vec![0, 2, 1], values: vec![1.0, 4.0, 3.0] };
        assert_eq!(product(&matrix, &[1.0, 10.0, 100.0], &[0.0, 5.0, 1.0]), [802.0, 5.0, 61.0]);
        assert_eq!(band_matrix().values.len(), 3 * ROWS as usize - 2);
    }
}
