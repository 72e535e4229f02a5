//! A small instrumented object in the memory of a "GPU", and the acceptance rules of LLVM's reader: for tests and
//! fuzzing.

#![allow(unreachable_pub)] // also part of the fuzz targets

use hotswap_profile_drain::bytes::{ByteSource, Span, word};
use hotswap_profile_drain::capture::{CaptureRefusal, DeviceReader, Loaded, capture};
use hotswap_profile_drain::elf::{Blocks, CodeObjectFile, Sections};
use hotswap_profile_drain::layout::{LAYOUTS, RecordLayout};

/// Memory that a "GPU" holds from address 0x10000 on.
pub struct Memory(pub Vec<u8>);

/// Its first address.
pub const BASE: u64 = 0x10000;

impl DeviceReader for Memory {
    fn copy(&self, address: u64, into: &mut [u8]) -> Result<(), u32> {
        let from = address.checked_sub(BASE).ok_or(0x1001u32)?;
        if self.0.as_slice().read(from, into) { Ok(()) } else { Err(0x1001) }
    }
}

const COUNTERS: Span = Span { address: 0x400, size: 48 };
const UNIFORM: Span = Span { address: 0x430, size: 48 };
const NAMES: &[u8] = b"\x03\x00f\x01g";

/// Two functions with three counters each, in one layout, and the ELF that describes them.
pub fn object(layout: &RecordLayout) -> (Vec<u8>, Vec<u8>, Sections) {
    let data = Span { address: 0x500, size: 2 * layout.record as u64 };
    let uniform = if layout.uniform.is_some() { UNIFORM } else { Span::default() };
    let names = Span { address: 0x100, size: NAMES.len() as u64 };
    let mut memory = vec![0; 0x800];
    memory[0x100..0x100 + NAMES.len()].copy_from_slice(NAMES);
    for index in 0..2usize {
        let at = 0x500 + index * layout.record;
        let mut set =
            |offset: usize, bytes: &[u8]| memory[at + offset..at + offset + bytes.len()].copy_from_slice(bytes);
        set(0, &[index as u8 + 1; 16]);
        let counters = COUNTERS.address + 24 * index as u64;
        set(layout.counters, &counters.wrapping_sub(at as u64).to_le_bytes());
        set(layout.counter_count, &3u32.to_le_bytes());
        if let Some(field) = layout.uniform {
            set(field, &(counters + 0x30).wrapping_sub(at as u64).to_le_bytes());
        }
    }
    for index in 0..12u64 {
        let at = 0x400 + 8 * index as usize;
        memory[at..at + 8].copy_from_slice(&(100 + index).to_le_bytes());
    }
    let sections = Sections { data, counters: COUNTERS, uniform, names, names_offset: 0x100, ..Sections::default() };
    let file = elf(&memory, &sections);
    (memory, file, sections)
}

/// The memory as a file, followed by section headers.
pub fn elf(memory: &[u8], sections: &Sections) -> Vec<u8> {
    let mut file = memory.to_vec();
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    file[18..20].copy_from_slice(&224u16.to_le_bytes());
    let mut texts = vec![0u8];
    let mut headers = vec![0u8; 64];
    let named = [
        ("__llvm_prf_data", sections.data),
        ("__llvm_prf_cnts", sections.counters),
        ("__llvm_prf_ucnts", sections.uniform),
        ("__llvm_prf_names", sections.names),
    ];
    let header = |name: usize, flags: u64, span: Span, offset: u64| {
        let mut header = vec![0u8; 64];
        header[..4].copy_from_slice(&(name as u32).to_le_bytes());
        header[8..16].copy_from_slice(&flags.to_le_bytes());
        header[16..24].copy_from_slice(&span.address.to_le_bytes());
        header[24..32].copy_from_slice(&offset.to_le_bytes());
        header[32..40].copy_from_slice(&span.size.to_le_bytes());
        header
    };
    for (name, span) in named.iter().filter(|(_, span)| span.size > 0) {
        headers.extend(header(texts.len(), 2, *span, span.address));
        texts.extend(name.bytes().chain([0]));
    }
    let offset = file.len() as u64;
    headers.extend(header(0, 0, Span { address: 0, size: texts.len() as u64 }, offset));
    file.extend(&texts);
    let count = headers.len() / 64;
    let start = file.len() as u64;
    file[40..48].copy_from_slice(&start.to_le_bytes());
    file[58..60].copy_from_slice(&64u16.to_le_bytes());
    file[60..62].copy_from_slice(&(count as u16).to_le_bytes());
    file[62..64].copy_from_slice(&(count as u16 - 1).to_le_bytes());
    file.extend(headers);
    file
}

/// A capture of such memory and file.
pub fn take(memory: &[u8], file: &[u8]) -> Result<hotswap_profile_drain::capture::Capture, CaptureRefusal> {
    let device = Memory(memory.to_vec());
    let blocks = Blocks::new(file, file.len() as u64);
    let loaded = Loaded { base: BASE, size: memory.len() as u64, table: None };
    capture(&device, loaded, &CodeObjectFile::open(&blocks, file.len() as u64))
}

/// The acceptance rules of LLVM's reader: every record must point into the counters.
pub fn reader_accepts(capture: &hotswap_profile_drain::capture::Capture) -> bool {
    let layout = LAYOUTS.iter().find(|layout| u64::from(layout.version) == capture.fixed.version & 0xffff_ffff);
    let layout = layout.expect("a known version");
    let (mut delta, mut uniform) = (capture.fixed.deltas.counters, capture.fixed.deltas.uniform);
    let parts = capture.fixed.parts;
    let fits = |offset: u64, count: u64, size: usize| {
        offset.checked_add(count * 8).is_some_and(|end| end <= size as u64) && offset.is_multiple_of(8)
    };
    capture.fixed.data.chunks(layout.record).all(|record| {
        let count = word::<4>(record, layout.counter_count);
        let good = count > 0 && fits(word::<8>(record, layout.counters).wrapping_sub(delta), count, parts.counters);
        let field = layout.uniform.filter(|_| parts.uniform > 0);
        let also = field.is_none_or(|field| fits(word::<8>(record, field).wrapping_sub(uniform), count, parts.uniform));
        let sites = record[layout.sites..layout.sites + 6] == [0; 6];
        delta = delta.wrapping_sub(layout.record as u64);
        uniform = uniform.wrapping_sub(layout.record as u64);
        good && also && sites
    })
}
