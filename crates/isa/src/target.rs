//! Processors by name.

use crate::tables::{TARGETS, Target};

impl Target {
    /// The processor that `--offload-arch` calls `name`.
    pub fn find(name: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// All processors, in the order of the rows.
    pub fn all() -> &'static [Self] {
        &TARGETS
    }
}
