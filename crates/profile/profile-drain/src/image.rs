//! The code object as the GPU has it: its program headers, its dynamic symbols, and the hash that identifies it.
//!
//! A linked code object begins with a segment of its headers, notes, symbols and read-only data, which the loader copies
//! with the rest. So the memory of the GPU tells where the counters are even when the program's own copy of the file
//! is freed, or holds another file by now. The hash covers the segments that code cannot write; it is the same in the
//! file, on every GPU and in every process.
//!
//! Absent: section headers, which are not loaded.

use crate::bytes::{Span, until_zero, word};
use crate::elf::{Sections, is_of_gpu};
use crate::memory::{Bytes, List};
use crate::raw::FNV_START;

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
/// No code object has more program headers.
const MOST_HEADERS: usize = 64;
const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PF_W: u64 = 2;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const SYMBOL: usize = 24;
/// A larger segment is damage.
const LARGEST: u64 = 1 << 30;
/// Bytes that are hashed at a time; a multiple of eight.
const CHUNK: usize = 64 << 10;

/// A part of the file that is loaded.
#[derive(Debug, Clone, Copy)]
struct LoadedPart {
    address: u64,
    offset: u64,
    size: u64,
    is_writable: bool,
}

/// Reads bytes of a code object: given are their address in the link and their offset in the file.
pub type ReadPart<'a> = &'a dyn Fn(u64, u64, &mut [u8]) -> bool;

/// The headers of a code object.
pub struct ImageHeaders {
    parts: List<LoadedPart>,
    dynamic: Span,
    /// `e_flags`: the processor, its features and the version of a generic one.
    pub flags: u32,
}

impl ImageHeaders {
    /// Reads the headers; `None` if these bytes are not a code object whose first segment has its headers.
    pub fn read(read: ReadPart<'_>) -> Option<Self> {
        let mut header = [0u8; HEADER];
        if !read(0, 0, &mut header) || !is_of_gpu(&header) || word::<2>(&header, 54) != PROGRAM_HEADER as u64 {
            return None;
        }
        let count = word::<2>(&header, 56) as usize;
        let offset = word::<8>(&header, 32);
        let mut table = Bytes::zeroed(count.min(MOST_HEADERS).wrapping_mul(PROGRAM_HEADER))?;
        if !read(offset, offset, &mut table) {
            return None;
        }
        let mut made = Self { parts: List::EMPTY, dynamic: Span::default(), flags: word::<4>(&header, 48) as u32 };
        table.chunks_exact(PROGRAM_HEADER).try_for_each(|entry| made.add(entry))?;
        made.parts.iter().any(|part| part.offset == 0 && part.address == 0).then_some(made)
    }

    fn add(&mut self, entry: &[u8]) -> Option<()> {
        let (offset, address, size) = (word::<8>(entry, 8), word::<8>(entry, 16), word::<8>(entry, 32));
        match word::<4>(entry, 0) {
            PT_LOAD if size > LARGEST => None,
            PT_LOAD => {
                let is_writable = word::<4>(entry, 4) & PF_W != 0;
                self.parts.push(LoadedPart { address, offset, size, is_writable }).map(drop)
            }
            PT_DYNAMIC => {
                self.dynamic = Span { address, size };
                Some(())
            }
            _ => Some(()),
        }
    }

    /// The hash of everything that code cannot write; `None` where it cannot be read.
    pub fn code_id(&self, read: ReadPart<'_>) -> Option<u64> {
        let mut chunk = Bytes::zeroed(CHUNK)?;
        let mut hash = FNV_START;
        for part in self.parts.iter().filter(|part| !part.is_writable) {
            hash = mix(mix(hash, part.address), part.size);
            let mut done = 0;
            while done < part.size {
                let length = (part.size.wrapping_sub(done)).min(CHUNK as u64);
                let bytes = chunk.get_mut(..length as usize)?;
                if !read(part.address.checked_add(done)?, part.offset.checked_add(done)?, bytes) {
                    return None;
                }
                hash = hash_words(hash, bytes);
                done = done.checked_add(length)?;
            }
        }
        Some(hash)
    }

    /// The first segment: headers, notes, symbols, names of counters.
    fn first_part(&self, read: ReadPart<'_>) -> Option<Bytes> {
        let first = self.parts.iter().find(|part| part.offset == 0 && part.address == 0)?;
        let mut bytes = Bytes::zeroed(first.size as usize)?;
        read(0, 0, &mut bytes).then_some(bytes)
    }
}

fn dynamic_value(table: &[u8], tag: u64) -> Option<usize> {
    let mut entries = table.chunks_exact(16);
    let entry = entries.find(|entry| word::<8>(entry, 0) == tag)?;
    usize::try_from(word::<8>(entry, 8)).ok()
}

/// The loaded code object.
pub struct DeviceImage {
    pub headers: ImageHeaders,
    /// Its first segment, which has the dynamic symbols.
    first: Bytes,
    /// Where the symbols say that the profile is.
    pub sections: Sections,
    /// The bounds table of LLVM's device runtime.
    pub table: Option<Span>,
    pub version: Option<Span>,
}

impl DeviceImage {
    /// Reads the image; `None` where the GPU does not have the headers.
    pub fn read(read: ReadPart<'_>) -> Option<Self> {
        let headers = ImageHeaders::read(read)?;
        let first = headers.first_part(read)?;
        let mut made = Self { headers, first, sections: Sections::default(), table: None, version: None };
        made.find_symbols(read);
        Some(made)
    }

    /// Whether a file has the same first segment.
    pub fn is_of_file(&self, read: ReadPart<'_>) -> bool {
        let Some(mut bytes) = Bytes::zeroed(self.first.len()) else { return false };
        read(0, 0, &mut bytes) && *bytes == *self.first
    }

    /// Whether it has counters, by its symbols.
    pub fn has_counters(&self) -> bool {
        self.sections.data.size > 0 && self.sections.counters.size > 0
    }

    fn find_symbols(&mut self, read: ReadPart<'_>) -> Option<()> {
        let (address, size) = (self.headers.dynamic.address, self.headers.dynamic.size.min(4096));
        let offset = self.headers.parts.iter().find_map(|part| {
            let here = Span { address: part.address, size: part.size };
            here.holds(address, size).then(|| address.wrapping_sub(part.address).wrapping_add(part.offset))
        })?;
        let mut dynamic = Bytes::zeroed(size as usize)?;
        if !read(address, offset, &mut dynamic) {
            return None;
        }
        let symbols = dynamic_value(&dynamic, DT_SYMTAB)?;
        let (texts, hash) = (dynamic_value(&dynamic, DT_STRTAB)?, dynamic_value(&dynamic, DT_HASH)?);
        // nbucket, nchain: the latter is the number of symbols.
        let count = word::<4>(self.first.get(hash..)?, 4) as usize;
        let first = core::mem::replace(&mut self.first, Bytes::EMPTY);
        for symbol in first.get(symbols..).unwrap_or_default().chunks_exact(SYMBOL).take(count) {
            let name = texts.checked_add(word::<4>(symbol, 0) as usize);
            let name = name.and_then(|name| first.get(name..)).map(until_zero).unwrap_or_default();
            if word::<2>(symbol, 6) != 0 {
                self.place(name, Span { address: word::<8>(symbol, 8), size: word::<8>(symbol, 16) });
            }
        }
        self.first = first;
        Some(())
    }

    fn place(&mut self, name: &[u8], span: Span) {
        let sections = &mut self.sections;
        match name {
            b"__llvm_profile_sections" => self.table = Some(span),
            b"__llvm_profile_raw_version" => self.version = Some(span),
            _ if name.starts_with(b"__profd_") => include(&mut sections.data, span),
            _ if name.starts_with(b"__profc_") => include(&mut sections.counters, span),
            _ if name.starts_with(b"__profbm_") => include(&mut sections.bits, span),
            _ if name.starts_with(b"__llvm_prf_unifcnt_") => include(&mut sections.uniform, span),
            _ if name.starts_with(b"__llvm_prf_nm") => include(&mut sections.names, span),
            _ => {}
        }
    }
}

/// Extends a span so that it holds another.
fn include(whole: &mut Span, part: Span) {
    if part.size == 0 {
        return;
    }
    let (Some(end), Some(own)) = (part.end(), whole.end()) else { return };
    if whole.size == 0 {
        *whole = part;
        return;
    }
    let address = whole.address.min(part.address);
    *whole = Span { address, size: end.max(own).wrapping_sub(address) };
}

fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

fn hash_words(start: u64, bytes: &[u8]) -> u64 {
    let words = bytes.chunks(8).map(|chunk| {
        let mut whole = [0u8; 8];
        crate::bytes::copy(&mut whole, chunk);
        u64::from_le_bytes(whole)
    });
    words.fold(start, mix)
}

/// The hash of a code object in a file, as the drain computes it from the memory of a GPU.
pub fn code_id_of_file(file: &[u8]) -> Option<u64> {
    use crate::bytes::ByteSource;
    let read = |_: u64, offset: u64, into: &mut [u8]| file.read(offset, into);
    ImageHeaders::read(&read)?.code_id(&read)
}
