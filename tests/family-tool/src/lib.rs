//! A tool with two third-party families, one in C and one in Rust: the examples of `crates/retarget/family-abi`, linked
//! statically.

// The example is written for a third-party crate.
#[allow(unsafe_code, missing_docs)]
#[path = "../../../crates/retarget/family-abi/examples/no_trap.rs"]
pub mod no_trap;

#[allow(unsafe_code)]
mod listed {
    // Sound: both are registrars of the header's type; the linker finds each exactly once.
    hotswap_family_abi::registrars! {
        /// The families, in the order in which they are queried.
        pub static FAMILIES: no_sethalt = hotswap_register_no_sethalt_patch, no_trap = hotswap_register_no_trap_patch
    }
}

pub use listed::FAMILIES;
