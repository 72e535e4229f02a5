//! Environment variables by which `hotswap run` tells the HSA library in the program what to emulate.

/// The GPUs: target IDs separated by commas.
pub const GPUS: &str = "HOTSWAP_EMULATE";
/// Instructions that a wave may execute.
pub const BUDGET: &str = "HOTSWAP_EMULATE_BUDGET";
/// `1`: instructions by kernel at exit.
pub const COUNTERS: &str = "HOTSWAP_EMULATE_COUNTERS";
/// `1`: results of memory operations arrive as late as the code allows.
pub const LATE: &str = "HOTSWAP_EMULATE_LATE";
/// How products of matrices are added: a name of [`MATRIX_CHOICES`](crate::MATRIX_CHOICES).
pub const MATRIX: &str = "HOTSWAP_EMULATE_MATRIX";
/// MiB of memory that each GPU has.
pub const MEMORY: &str = "HOTSWAP_EMULATE_MEMORY";
/// `1`: what no kernel and no copy has written has values that are not zero.
pub const POISON: &str = "HOTSWAP_EMULATE_POISON";
/// Threads that execute one dispatch.
pub const THREADS: &str = "HOTSWAP_EMULATE_THREADS";
