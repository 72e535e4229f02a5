//! The parts of a linked device ELF that a drain needs: its profile sections, and two of its symbols.
//!
//! The file is read piece by piece through [`ByteSource`], because the loader's copy of it may be unmapped: a program need
//! not keep the memory that it loaded a code object from. Nothing is trusted. Absent: everything else in the file;
//! `hotswap-code-object` handles whole files.

use crate::bytes::{ByteSource, Span, until_zero, word};
use crate::memory::Bytes;
use core::cell::Cell;

/// An image that is read in blocks: each read of [`crate::libc::OwnMemory`] is a system call, and most instrumented
/// code objects fit into one block.
pub struct Blocks<I: ByteSource> {
    image: I,
    size: u64,
    /// The start of the last block, and its bytes.
    last: Cell<(u64, Bytes)>,
}

impl<I: ByteSource> Blocks<I> {
    const BLOCK: u64 = 64 << 10;

    /// Blocks of an image of `size` bytes.
    pub fn new(image: I, size: u64) -> Self {
        Self { image, size, last: Cell::new((0, Bytes::EMPTY)) }
    }
}

impl<I: ByteSource> ByteSource for Blocks<I> {
    fn read(&self, offset: u64, into: &mut [u8]) -> bool {
        let (start, bytes) = self.last.replace((0, Bytes::EMPTY));
        let relative = offset.checked_sub(start);
        if relative.is_some_and(|relative| (&*bytes).read(relative, into)) {
            self.last.set((start, bytes));
            return true;
        }
        let start = offset & !(Self::BLOCK - 1);
        let length = self.size.saturating_sub(start).min(Self::BLOCK) as usize;
        if let Some(mut block) = Bytes::zeroed(length) {
            let mine = offset.wrapping_sub(start);
            if self.image.read(start, &mut block) && (&*block).read(mine, into) {
                self.last.set((start, block));
                return true;
            }
        }
        self.image.read(offset, into) // across blocks, or a part that is not there
    }
}

/// The profile sections of a code object; absent ones are empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sections {
    /// `__llvm_prf_data`: one record for each function.
    pub data: Span,
    /// `__llvm_prf_cnts`: the counters of all functions.
    pub counters: Span,
    /// `__llvm_prf_ucnts`: how often whole waves executed it.
    pub uniform: Span,
    /// `__llvm_prf_bits`: of MC/DC coverage.
    pub bits: Span,
    /// `__llvm_prf_names`: chunks of function names.
    pub names: Span,
    /// Offset of the names in the file; zero where that is not known.
    pub names_offset: u64,
}

/// The reason why a file is not a code object with profile sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElfFault {
    /// The memory cannot be read.
    Unreadable,
    /// Not an ELF of 64 bits for an AMD GPU.
    Foreign,
    /// Section headers that are outside of the file or have another size.
    Headers,
    /// The memory holds another file by now.
    Replaced,
    /// There was no memory for it.
    Memory,
}

impl ElfFault {
    /// The text for a message.
    pub fn text(self) -> &'static [u8] {
        match self {
            Self::Unreadable => b"its file in memory cannot be read",
            Self::Foreign => b"it is no ELF of an AMD GPU",
            Self::Headers => b"its section headers are damaged",
            Self::Replaced => b"its file in memory is another one by now",
            Self::Memory => b"there is no memory",
        }
    }
}

/// e_machine of AMD GPUs.
const EM_AMDGPU: u16 = 224;
const SHF_ALLOC: u64 = 2;
const SHT_HASH: u32 = 5;
const SHT_DYNSYM: u32 = 11;
const SECTION_HEADER: usize = 64;
const SYMBOL: u64 = 24;
/// The maximum length of the names that are searched for.
const NAME: usize = 32;
/// Names of sections are not read beyond this.
const LONGEST_NAMES: u64 = 1 << 20;

/// Whether a header begins an ELF of 64 bits, little-endian, for an AMD GPU.
pub fn is_of_gpu(header: &[u8]) -> bool {
    header.starts_with(b"\x7fELF\x02\x01") && word::<2>(header, 18) == u64::from(EM_AMDGPU)
}

/// A file whose headers were read.
pub struct CodeObjectFile<'a, I: ByteSource> {
    image: &'a I,
    size: u64,
    headers: Bytes,
    /// The names of the sections.
    names: Bytes,
}

impl<'a, I: ByteSource> CodeObjectFile<'a, I> {
    /// Reads the headers of a file of `size` bytes.
    pub fn open(image: &'a I, size: u64) -> Result<Self, ElfFault> {
        let mut header = [0u8; 64];
        if size < header.len() as u64 {
            return Err(ElfFault::Foreign);
        }
        if !image.read(0, &mut header) {
            return Err(ElfFault::Unreadable);
        }
        if !is_of_gpu(&header) {
            return Err(ElfFault::Foreign);
        }
        let (offset, count) = (word::<8>(&header, 40), word::<2>(&header, 60));
        let length = count as usize * SECTION_HEADER;
        let file = Span { address: 0, size };
        if word::<2>(&header, 58) != SECTION_HEADER as u64 || !file.holds(offset, length as u64) {
            return Err(ElfFault::Headers);
        }
        let mut headers = Bytes::zeroed(length).ok_or(ElfFault::Memory)?;
        if !image.read(offset, &mut headers) {
            return Err(ElfFault::Unreadable);
        }
        let mut made = Self { image, size, headers, names: Bytes::EMPTY };
        let names = made.header(word::<2>(&header, 62) as usize).ok_or(ElfFault::Headers)?;
        let place = made.place(names).ok_or(ElfFault::Headers)?;
        // No real table of names is longer; of a damaged one the rest is not needed.
        let length = place.size.min(LONGEST_NAMES) as usize;
        made.names = Bytes::zeroed(length).ok_or(ElfFault::Memory)?;
        if !image.read(place.address, &mut made.names) {
            return Err(ElfFault::Unreadable);
        }
        Ok(made)
    }

    fn header(&self, index: usize) -> Option<&[u8]> {
        let start = index.checked_mul(SECTION_HEADER)?;
        self.headers.get(start..start.checked_add(SECTION_HEADER)?)
    }

    /// The range of a section's bytes in the file.
    fn place(&self, header: &[u8]) -> Option<Span> {
        let place = Span { address: word::<8>(header, 24), size: word::<8>(header, 32) };
        Span { address: 0, size: self.size }.holds(place.address, place.size).then_some(place)
    }

    /// Up to [`NAME`] bytes of a text that ends with zero, in a table of the file.
    fn text(&self, table: Span, offset: u64) -> Option<[u8; NAME]> {
        let mut text = [0u8; NAME];
        let left = table.size.checked_sub(offset)?.min(NAME as u64) as usize;
        let read = self.image.read(table.address.checked_add(offset)?, text.get_mut(..left)?);
        read.then_some(text)
    }

    /// The profile sections, each with its address.
    pub fn sections(&self) -> Result<Sections, ElfFault> {
        let mut sections = Sections::default();
        for header in self.headers.chunks_exact(SECTION_HEADER) {
            let name = self.names.get(word::<4>(header, 0) as usize..).ok_or(ElfFault::Headers)?;
            let name = name.get(..NAME).unwrap_or(name);
            let Some(place) = slot(&mut sections, name) else { continue };
            // Without the flag, they are for tools, and not in the memory of the GPU.
            if word::<8>(header, 8) & SHF_ALLOC == 0 {
                continue;
            }
            *place = Span { address: word::<8>(header, 16), size: word::<8>(header, 32) };
            if until_zero(name) == NAMES {
                sections.names_offset = self.place(header).map_or(0, |place| place.address);
            }
        }
        Ok(sections)
    }

    /// Bytes of the file itself.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> bool {
        let inside = Span { address: 0, size: self.size }.holds(offset, into.len() as u64);
        inside && self.image.read(offset, into)
    }

    /// Address and size of a symbol of the dynamic table, which survives `strip`.
    pub fn symbol(&self, wanted: &[u8]) -> Option<Span> {
        let symbols = self.header_of_kind(SHT_DYNSYM)?;
        let texts = self.place(self.header(word::<4>(symbols, 40) as usize)?)?;
        let symbols = self.place(symbols)?;
        let hash = self.header_of_kind(SHT_HASH).and_then(|header| self.place(header))?;
        // nbucket, nchain, buckets, chains: four bytes each.
        let (buckets, chains) = (self.number(hash, 0)?, self.number(hash, 1)?);
        let mut index = self.number(hash, 2 + u64::from(hash_of(wanted)).checked_rem(buckets)?)?;
        // A damaged chain may be circular: no more steps than it has entries.
        for _ in 0..chains {
            if index == 0 {
                return None;
            }
            let mut symbol = [0u8; SYMBOL as usize];
            let at = index.checked_mul(SYMBOL)?;
            let inside = Span { address: 0, size: symbols.size }.holds(at, SYMBOL);
            if !inside || !self.image.read(symbols.address.checked_add(at)?, &mut symbol) {
                return None;
            }
            let name = self.text(texts, word::<4>(&symbol, 0))?;
            if until_zero(&name) == wanted && word::<2>(&symbol, 6) != 0 {
                return Some(Span { address: word::<8>(&symbol, 8), size: word::<8>(&symbol, 16) });
            }
            index = self.number(hash, 2 + buckets + index)?;
        }
        None
    }

    /// The first section header of a type.
    fn header_of_kind(&self, wanted: u32) -> Option<&[u8]> {
        self.headers.chunks_exact(SECTION_HEADER).find(|header| word::<4>(header, 4) == u64::from(wanted))
    }

    fn number(&self, table: Span, index: u64) -> Option<u64> {
        let mut bytes = [0u8; 4];
        let at = index.checked_mul(4)?;
        let inside = Span { address: 0, size: table.size }.holds(at, 4);
        (inside && self.image.read(table.address.checked_add(at)?, &mut bytes)).then(|| word::<4>(&bytes, 0))
    }
}

const NAMES: &[u8] = b"__llvm_prf_names";

fn slot<'a>(sections: &'a mut Sections, name: &[u8]) -> Option<&'a mut Span> {
    if !name.starts_with(b"__llvm_prf_") {
        return None;
    }
    match until_zero(name) {
        b"__llvm_prf_data" => Some(&mut sections.data),
        b"__llvm_prf_cnts" => Some(&mut sections.counters),
        b"__llvm_prf_ucnts" => Some(&mut sections.uniform),
        b"__llvm_prf_bits" => Some(&mut sections.bits),
        NAMES => Some(&mut sections.names),
        _ => None,
    }
}

/// The hash of the System V ABI.
fn hash_of(name: &[u8]) -> u32 {
    name.iter().fold(0u32, |hash, byte| {
        let hash = (hash << 4).wrapping_add(u32::from(*byte));
        let high = hash & 0xf000_0000;
        (hash ^ (high >> 24)) & !high
    })
}
