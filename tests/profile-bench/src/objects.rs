//! Many code objects of which a single one is compiled.

use crate::{Instrument, ProfileBench};
use md5::{Digest, Md5};
use std::fmt::Write;

/// The number of objects that the figures are about.
pub const OBJECTS: usize = 26;

/// Code objects `k00.fat` and so on, at most 1000, each with one kernel of another name: one is compiled, in the others
/// the name and its hash in the record are replaced.
///
/// # Panics
/// If clang makes an object in which the name is not found.
pub fn make(bench: &ProfileBench, version: u32, count: usize) {
    let clang = bench.clang(version, Instrument::Coverage);
    bench.work.run(&format!(
        "{clang} -Xarch_device -mllvm=-enable-name-compression=false --offload-arch=gfx90a -DKERNEL=kernel_000 -x hip -c object.hip -o object.o && \
         llvm-objcopy-{version} --dump-section=.hip_fatbin=k.fat object.o"
    ));
    let file = bench.work.read("k.fat");
    for object in 0..count {
        let name = format!("kernel_{object:03}");
        let renamed = replace(&file, b"kernel_000", name.as_bytes());
        bench.work.write(
            &format!("k{object:02}.fat"),
            &replace(&renamed, &name_md5_hash(b"kernel_000"), &name_md5_hash(name.as_bytes())),
        );
    }
}

fn name_md5_hash(name: &[u8]) -> Vec<u8> {
    Md5::digest(name)[..8].to_vec()
}

/// Replaces bytes by as many others, at all occurrences; there must be one.
fn replace(file: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    let places: Vec<usize> = (0..file.len() - old.len()).filter(|at| file[*at..].starts_with(old)).collect();
    assert!(!places.is_empty());
    places.iter().for_each(|at| file[*at..at + old.len()].copy_from_slice(new));
    file
}

/// Arguments of `script.hip`, in a directory of the bench: each GPU loads and runs the first objects.
#[must_use]
pub fn words(count: usize, devices: usize) -> String {
    let mut words = String::new();
    for device in 0..devices {
        let _ = write!(words, " device {device}");
        for object in 0..count {
            let _ = write!(words, " load ../k{object:02}.fat go");
        }
    }
    words
}
