//! The code that is loaded in the place of an image or file.
//!
//! HIP does not copy every image, and reads some of them when a kernel is first used. So results are kept until the
//! process ends, once for each content: code compiled at run time is loaded again and again, and is not made again.
#![allow(unsafe_code)] // the program's image, with the proof

use crate::hip::Devices;
use crate::image;
use crate::message::say_once;
use crate::name_map::{NameMap, NamePair};
use crate::relabel::{needed_pairs, relabel_image};
use crate::scope::names_for;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The devices that an image is loaded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadScope {
    /// A module: the current one.
    Current,
    /// A library: the one that is current when it is used first, so any of them.
    All,
}

/// The image to load in the place of this one; `None` to load it as it is.
///
/// # Safety
/// As for [`image::image`]: `start` is the address of an image.
pub(crate) unsafe fn for_image(start: *const c_void, scope: LoadScope, devices: &Devices) -> Option<*const c_void> {
    let pairs = named_devices(&*names_for(devices.caller())?, scope, devices);
    if pairs.is_empty() {
        return None;
    }
    // SAFETY: the caller's promise; the bytes are read before this function returns.
    cached_relabelled(unsafe { image::image_at(start.cast()) }?, &pairs)
}

/// The image to load in the place of this file; `None` to load the file.
///
/// # Safety
/// A C string, or null.
pub(crate) unsafe fn for_file(path: *const c_char, scope: LoadScope, devices: &Devices) -> Option<*const c_void> {
    let names = names_for(devices.caller())?;
    if path.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let path = OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes());
    let pairs = named_devices(&names, scope, devices);
    if pairs.is_empty() {
        return None;
    }
    // Bytes read from a pipe are gone for HIP.
    let is_file = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= image::MAX_SIZE);
    cached_relabelled(&is_file.then(|| fs::read(path).ok())??, &pairs)
}

/// The named GPUs among the devices.
fn named_devices(names: &NameMap, scope: LoadScope, devices: &Devices) -> Vec<NamePair> {
    let own = match scope {
        LoadScope::Current => devices.current().into_iter().collect(),
        LoadScope::All => devices.device_names(),
    };
    let mut pairs: Vec<NamePair> = own.iter().filter_map(|name| names.find(name)).collect();
    pairs.sort_by_key(|pair| pair.own.name);
    pairs.dedup();
    pairs
}

/// Results by the hash of GPUs and image; `None` where HIP gets the image itself.
type RelabelledImages = Mutex<HashMap<[u8; 32], Option<&'static [u8]>>>;

fn lock_relabelled_images() -> MutexGuard<'static, HashMap<[u8; 32], Option<&'static [u8]>>> {
    static MADE: OnceLock<RelabelledImages> = OnceLock::new();
    // A map of results is as good after a panic as before.
    MADE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// The relabelled image, made now or before.
fn cached_relabelled(image: &[u8], pairs: &[NamePair]) -> Option<*const c_void> {
    let pairs = needed_pairs(image, pairs);
    if pairs.is_empty() {
        return None;
    }
    let mut hash = Sha256::new();
    pairs.iter().for_each(|pair| hash.update(format!("{}={},", pair.own.name, pair.shown.name)));
    let key: [u8; 32] = hash.chain_update(image).finalize().into();
    if let Some(made) = lock_relabelled_images().get(&key) {
        return made.map(|bytes| bytes.as_ptr().cast());
    }
    // Without the lock: another thread that makes the same does no harm.
    let result = relabel_image(image, &pairs);
    result.refusals.iter().for_each(|refusal| say_once(refusal));
    let kept = *lock_relabelled_images().entry(key).or_insert_with(|| result.image.map(|bytes| &*bytes.leak()));
    kept.map(|bytes| bytes.as_ptr().cast())
}
