//! Files as HotSwap needs them: outputs that are never half written, response files, folders.
//!
//! Invariants: [`replace`] leaves either the old or the whole new content under the name, also
//! when the process is killed or the disk is full; it never writes through to a device or a pipe.
//!
//! Absent on purpose: locking between two builds of one output (the build system's job).

mod ahead;
mod copy;
mod in_place;
mod input;
mod response;
mod scratch;
mod write;

pub use ahead::Ahead;
pub use in_place::open_to_change;
pub use input::{Input, open, open_or_stdin};
pub use response::{Word, expand};
pub use scratch::Scratch;
pub use write::{How, read, replace, replace_like, replace_parts};

use std::env;
use std::path::PathBuf;

/// `$XDG_CACHE_HOME/hotswap`, or `~/.cache/hotswap`; `None` where neither variable is set.
pub fn cache_dir() -> Option<PathBuf> {
    let set = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(base.join("hotswap"))
}
