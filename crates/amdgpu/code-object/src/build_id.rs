//! The build ID of a code object (`-Xoffload-linker --build-id`), where it is a hash of the file.
//!
//! lld hashes the whole file with zeros in the ID's place, block by block, and then the hashes of the blocks (`computeHash` in
//! `lld/ELF/Writer.cpp`, since LLVM 17). Debuggers and symbol servers find files by the ID, so a file that was made from
//! another one has its own: the same that lld would have given it.
//!
//! Absent on purpose: IDs that are not a hash of their file: given as a number, random, or belonging to a
//! file that was changed after its link. They are kept.

use crate::elf::file_header;
use object::LittleEndian as LE;
use object::elf::{ELF_NOTE_GNU, NT_GNU_BUILD_ID};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use std::ops::Range;
use twox_hash::XxHash3_64;

/// Bytes that are hashed together.
const BLOCK: usize = 1 << 20;

/// Writes the hash of the bytes.
type BuildIdHash = fn(&[u8], &mut [u8]);

/// The hashes by their bytes: `fast`, `md5`, `sha1`. The last two names are older than the function.
const HASHES: [(usize, BuildIdHash); 3] = [(8, hash_xxh3), (16, hash_blake3), (20, hash_blake3)];

/// The range of the build ID in a linked code object.
#[must_use]
pub fn build_id(data: &[u8]) -> Option<Range<usize>> {
    file_header(data)?.program_headers(LE, data).ok()?.iter().find_map(|segment| {
        let mut notes = segment.notes(LE, data).ok()??;
        while let Ok(Some(note)) = notes.next() {
            if note.name() == ELF_NOTE_GNU && note.n_type(LE) == NT_GNU_BUILD_ID {
                let start = note.desc().as_ptr().addr() - data.as_ptr().addr();
                return Some(start..start + note.desc().len());
            }
        }
        None
    })
}

/// Sets the build ID to the hash of the file, if that of the file it was made from is one.
#[must_use]
pub fn with_own_build_id(mut data: Vec<u8>, source: &[u8]) -> Vec<u8> {
    let Some(old) = build_id(source) else { return data };
    let Some(hash) = hash_of_file(source, &old) else { return data };
    if let Some(place) = build_id(&data).filter(|place| place.len() == old.len()) {
        let id = id_of_file(&mut data, &place, hash);
        data[place].copy_from_slice(&id);
    }
    data
}

/// The hash that the file's build ID is.
fn hash_of_file(data: &[u8], place: &Range<usize>) -> Option<BuildIdHash> {
    let (_, hash) = HASHES.into_iter().find(|(size, _)| *size == place.len())?;
    (id_of_file(&mut data.to_vec(), place, hash) == data[place.clone()]).then_some(hash)
}

/// The hash of the file with zeros in that place, which it has afterwards.
fn id_of_file(data: &mut [u8], place: &Range<usize>, hash: BuildIdHash) -> Vec<u8> {
    data[place.clone()].fill(0);
    let mut hashes = vec![0; data.len().div_ceil(BLOCK) * place.len()];
    for (block, into) in data.chunks(BLOCK).zip(hashes.chunks_mut(place.len())) {
        hash(block, into);
    }
    let mut id = vec![0; place.len()];
    hash(&hashes, &mut id);
    id
}

fn hash_xxh3(bytes: &[u8], into: &mut [u8]) {
    into.copy_from_slice(&XxHash3_64::oneshot(bytes).to_le_bytes());
}

fn hash_blake3(bytes: &[u8], into: &mut [u8]) {
    let size = into.len();
    into.copy_from_slice(&blake3::hash(bytes).as_bytes()[..size]);
}
