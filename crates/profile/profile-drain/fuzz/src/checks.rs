//! Properties of any memory of a GPU and any file: no crash, and LLVM's reader accepts every result.

#![allow(missing_docs, dead_code)] // each target uses one of the checks

#[path = "../../tests/common/mod.rs"]
mod common;

use common::{BASE, Memory, reader_accepts};
use hotswap_profile_drain::capture::{Capture, CaptureRefusal, Loaded, again, capture};
use hotswap_profile_drain::elf::{Blocks, CodeObjectFile, ElfFault};
use hotswap_profile_drain::layout;
use hotswap_profile_drain::raw::names_are_sound;
use hotswap_profile_drain::store::Store;

/// Two bytes with the size of the memory, the memory, the file.
pub(crate) fn file(input: &[u8]) {
    let Some((size, rest)) = input.split_first_chunk::<2>() else { return };
    let size = usize::from(u16::from_le_bytes(*size)).min(rest.len());
    let (memory, bytes) = rest.split_at(size);
    let blocks = Blocks::new(bytes, bytes.len() as u64);
    check(memory, None, &CodeObjectFile::open(&blocks, bytes.len() as u64));
}

/// Two bytes with the offset of the table, the memory.
pub(crate) fn table(input: &[u8]) {
    let Some((place, memory)) = input.split_first_chunk::<2>() else { return };
    let table = BASE + u64::from(u16::from_le_bytes(*place));
    check::<&[u8]>(memory, Some(table), &Err(ElfFault::Unreadable));
}

fn check<I: hotswap_profile_drain::bytes::ByteSource>(
    memory: &[u8],
    table: Option<u64>,
    file: &Result<CodeObjectFile<'_, I>, ElfFault>,
) {
    let device = Memory(memory.to_vec());
    let loaded = Loaded { base: BASE, size: memory.len() as u64, table };
    let captured = match capture(&device, loaded, file) {
        Ok(captured) => captured,
        Err(refusal) => return describe(refusal),
    };
    sound(&captured);
    let whole = captured.dropped == 0;
    let payload = again(&device, loaded, &captured.sections, &captured.fixed);
    assert_eq!(payload.as_deref(), whole.then_some(&*captured.payload), "a second look says the same");
    let mut store = Store::EMPTY;
    store.take(captured, (1, BASE), [b'g'; 64], 1).expect("there is memory");
    assert!(!whole || store.refresh((1, BASE), |sections, fixed| again(&device, loaded, sections, fixed)));
}

fn sound(captured: &Capture) {
    assert!(reader_accepts(captured));
    assert!(names_are_sound(&captured.fixed.names));
    let layout = layout::of_version(captured.fixed.version).expect("a known version");
    assert_eq!(captured.payload.len(), captured.fixed.parts.size());
    assert_eq!(captured.fixed.header(layout, 0).bytes().len() % 8, 0);
}

fn describe(refusal: CaptureRefusal) {
    let mut text = hotswap_profile_drain::text::Text::<1024>::default();
    refusal.describe(&mut text);
    assert!(!text.bytes().is_empty() && !text.is_cut());
}
