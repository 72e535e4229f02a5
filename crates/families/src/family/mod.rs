//! The families, one file each. A file here without a line in `patches.def` does not build; a line
//! without a file here does not link.

mod machine_flags;
mod target_note;
