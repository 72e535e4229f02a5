//! One known answer, computed by a library through its public interface, as a program of the user would let it. A
//! [`trial`](crate::trial) computes it once for each library and GPU, in the environment of the tree and on an emulated GPU.
//!
//! A library is recognised by the functions that it exports, not by its name. Its answer is compared with one that a few
//! lines of plain code compute on the CPU; inputs are small whole numbers where that makes the answer exact in any order of
//! additions.
//!
//! Absent on purpose: the HIP runtime and the libraries at build time. Their functions are looked up when the program runs, with
//! the prototypes of their headers.

mod blas;
mod blas_lt;
mod fourier;
mod loaded;
mod random;
mod solver;
mod sparse;

use hotswap_report::{Diagnostic, codes};
use loaded::LoadedLibrary;
use object::Object;
use std::path::Path;

/// A computation with a known answer.
pub struct Probe {
    /// A function that the library exports, and the computation calls.
    symbol: &'static str,
    /// The computation, for people.
    pub computation: &'static str,
    /// The number of values that were compared; else the reason why the answer is not right.
    compute: fn(&LoadedLibrary) -> Result<usize, String>,
}

/// The libraries that can be tried.
const PROBES: &[Probe] = &[
    Probe { symbol: "rocblas_sgemm", computation: "sgemm, 96 x 96", compute: blas::multiply_matrices },
    Probe { symbol: "rocrand_generate", computation: "4096 numbers of Philox", compute: random::generate_philox },
    Probe {
        symbol: "rocsparse_scsrmv",
        computation: "sparse matrix times vector, 2000 rows",
        compute: sparse::multiply_vector,
    },
    Probe {
        symbol: "rocfft_plan_create",
        computation: "Fourier transform of 240 complex numbers",
        compute: fourier::transform,
    },
    Probe {
        symbol: "hipblasLtMatmul",
        computation: "product of matrices of half precision, 64 x 64",
        compute: blas_lt::multiply_matrices,
    },
    Probe {
        symbol: "rocsolver_spotrf",
        computation: "Cholesky factor of a matrix, 32 x 32",
        compute: solver::factor_matrix,
    },
];

/// The computation for a library. `None` where it exports none of the functions, and for files that are not libraries.
///
/// # Errors
/// A file that cannot be read.
pub fn find(file: &Path) -> Result<Option<&'static Probe>, Diagnostic> {
    Ok(find_in(&hotswap_files::open_or_stdin(file)?))
}

fn find_in(bytes: &[u8]) -> Option<&'static Probe> {
    let library = object::File::parse(bytes).ok()?;
    let exported = library.exports().ok()?;
    PROBES.iter().find(|probe| exported.iter().any(|export| export.name() == probe.symbol.as_bytes()))
}

/// Computes the answer: the number of values that were compared, or the reason why it is not right.
///
/// # Errors
/// A library for which no computation is known, and a file that cannot be read.
pub fn compute(file: &Path) -> Result<Result<usize, String>, Diagnostic> {
    let probe = find(file)?
        .ok_or_else(|| Diagnostic::error(codes::USAGE, "--probe: no computation is known for it").in_file(file))?;
    Ok(LoadedLibrary::open(file).and_then(|library| (probe.compute)(&library)))
}

/// Compares results with the answer.
fn compare<T: PartialEq + std::fmt::Display>(found: &[T], expected: &[T]) -> Result<usize, String> {
    if found.len() != expected.len() || expected.is_empty() {
        return Err(format!("{} values instead of {}", found.len(), expected.len()));
    }
    let all = expected.len();
    let mut wrong = found.iter().zip(expected).enumerate().filter(|(_, (one, other))| one != other);
    match wrong.next() {
        None => Ok(all),
        Some((at, (found, expected))) => Err(format!(
            "{} of {} values are wrong; the first is number {at}: {found} instead of {expected}",
            1 + wrong.count(),
            all
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_values_are_counted_and_the_first_is_shown() {
        assert_eq!(compare(&[1, 2, 3], &[1, 2, 3]), Ok(3));
        let reason = compare(&[1, 0, 0], &[1, 2, 3]).unwrap_err();
        assert_eq!(reason, "2 of 3 values are wrong; the first is number 1: 0 instead of 2");
        assert!(compare(&[1], &[1, 2]).is_err() && compare::<u32>(&[], &[]).is_err());
    }

    #[test]
    fn files_that_export_none_of_the_functions_have_no_computation() {
        assert!(find(&std::env::current_exe().unwrap()).unwrap().is_none());
        assert_eq!(find(Path::new("/no/such/file")).err().unwrap().code, codes::CANNOT_READ);
    }
}
