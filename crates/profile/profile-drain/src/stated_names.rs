//! The names of files that the images of a process state: command lines of a program and its libraries may differ.
//!
//! Invariants: code keeps the name that it got when it was drained first, that of the image that it is in, so that no count
//! is in two files; an image changes only a name that it added. Images that state one name share it.
//! Absent: the expansion of patterns, in `name`.

use crate::images::AddressRange;
use crate::memory::{Bytes, List};
use crate::name::Path;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The name of the host's profile, as far as an image knows it.
#[derive(Default)]
pub struct HostName {
    /// The pattern of the command line.
    pub pattern: Option<Path>,
    /// The file that the host's runtime will write, if it is present and provides that.
    pub file: Option<Path>,
    /// The process ID when this image was loaded: the host's runtime does not notice a fork.
    pub first_process: u64,
    /// When this image was loaded, by the clock of file times.
    pub start: u64,
}

/// An image that states a name.
pub struct NamingImage<'a> {
    pub host: HostName,
    /// The number of the name that it added, plus one.
    pub added: &'a AtomicUsize,
}

/// The image that drains, and the others.
pub struct NamingImages<'a> {
    pub own: NamingImage<'a>,
    pub others: &'a OtherImages,
}

/// Calls with the image that has an address.
type FindImage = fn(usize, &mut dyn FnMut(NamingImage<'_>));

/// The other images with a drain.
pub struct OtherImages {
    pub ranges: List<AddressRange>,
    /// Calls with the image that has an address, while that cannot be unloaded.
    pub find: FindImage,
}

/// The name of the host's file in an image.
pub struct StatedName {
    pub pattern: Bytes,
    /// The file that the program itself set; empty without one.
    pub chosen: Bytes,
    /// When the image was loaded, by the clock of file times.
    pub since: u64,
}

impl StatedName {
    /// A copy of both; `None` without memory.
    pub fn new(pattern: &[u8], chosen: &[u8], since: u64) -> Option<Self> {
        Some(Self { pattern: Bytes::copy(pattern)?, chosen: Bytes::copy(chosen)?, since })
    }

    fn is_same(&self, other: &Self) -> bool {
        (&*self.pattern, &*self.chosen) == (&*other.pattern, &*other.chosen)
    }
}

/// The number of the name that an image states now; `None` without memory.
pub fn number_name(names: &mut List<StatedName>, stated: StatedName, added: &AtomicUsize) -> Option<usize> {
    let own = added.load(Ordering::Relaxed).checked_sub(1);
    if let Some((number, known)) = own.and_then(|number| Some((number, names.get_mut(number)?))) {
        (known.pattern, known.chosen) = (stated.pattern, stated.chosen);
        return Some(number);
    }
    if let Some(number) = names.iter().position(|known| known.is_same(&stated)) {
        return Some(number);
    }
    names.push(stated)?;
    added.store(names.len(), Ordering::Relaxed);
    names.len().checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(names: &mut List<StatedName>, pattern: &str, added: &AtomicUsize) -> usize {
        number_name(names, StatedName::new(pattern.as_bytes(), b"", 1).unwrap(), added).unwrap()
    }

    #[test]
    fn an_image_changes_only_the_name_that_it_added() {
        let (mut names, program, library) = (List::EMPTY, AtomicUsize::new(0), AtomicUsize::new(0));
        assert_eq!(state(&mut names, "a", &program), 0);
        assert_eq!(state(&mut names, "a", &library), 0);
        // The program sets another name: its code follows, and the library has a name of its own.
        assert_eq!(state(&mut names, "b", &program), 0);
        assert_eq!(state(&mut names, "a", &library), 1);
        assert_eq!(state(&mut names, "c", &library), 1);
        let patterns: Vec<&[u8]> = names.iter().map(|name| &*name.pattern).collect();
        assert_eq!(patterns, [b"b", b"c"]);
    }
}
