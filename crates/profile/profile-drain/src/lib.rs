//! The profile drain: at the exit of a HIP program, counters of its device code become raw profiles of LLVM.
//!
//! Compiled twice: without `std`, as the object of [`ARCHIVE`], which the link of a user's program forces in; and as a
//! library, for the tests of its parts. In users' programs, `entry` (constructor, exit handler) calls `drain` (the
//! walk), which queries `hsa` for the loaded code objects. `capture` reads and checks one code object, `store` adds up
//! and writes files.
//! Below them: `image` (the code object in the GPU's memory), `elf`, `record`, `raw`, `name` (formats), `stated_names`, `symbols`, `layout` (tables), `index`, `memory`, `libc`, `loader`, `text`,
//! `bytes`.
//!
//! Invariants: never ends or changes the program (no panic is reachable, which the build script checks by the symbols
//! of the object; `errno` and signals are preserved). Never loads or initialises a runtime. A file is complete or
//! absent. Losses are reported on standard error. Draining is idempotent.
//!
//! Absent: `_exit`; `quick_exit`, `abort` and signals, which run no handler, unless the environment asks for them (`ends`);
//! programs that are linked with a static HIP; HIP on Windows.
#![cfg_attr(hotswap_archive, no_std)]

pub mod bytes;
pub mod capture;
pub mod drain;
pub mod elf;
mod ends;
#[cfg(hotswap_archive)]
mod entry;
#[cfg(hotswap_archive)]
mod host;
pub mod hsa;
pub mod image;
pub mod images;
pub mod index;
pub mod layout;
pub mod libc;
pub mod loader;
pub mod memory;
pub mod name;
pub mod raw;
pub mod record;
pub mod stack;
pub mod stated_names;
pub mod store;
pub mod symbols;
pub mod text;

/// `libhotswap-profile-drain.a` for the machine that HotSwap was built for; empty without HIP.
#[cfg(not(hotswap_archive))]
pub const ARCHIVE: &[u8] = include_bytes!(env!("HOTSWAP_PROFILE_DRAIN_ARCHIVE"));

/// Never linked in: were a panic reachable, this function would be undefined in our object, and the build
/// script would reject it.
#[cfg(hotswap_archive)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    #[allow(unsafe_code)]
    unsafe extern "C" {
        safe fn hotswap_profile_drain_can_panic() -> !;
    }
    hotswap_profile_drain_can_panic()
}
