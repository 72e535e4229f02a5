//! xz in blocks, several of which are compressed at a time.
//!
//! liblzma compresses each block as a stream of its own, from which it is taken with its check; the headers and the index around the
//! blocks are written here, as liblzma's encoder with threads writes them. That encoder cannot work where no thread may be made.
//!
//! Invariant: the content alone decides where a block ends, so the bytes are the same for any number of threads, and without any.
//! They are those of `xz -T2`.

use flate2::Crc;
use liblzma::write::XzEncoder;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;
use std::thread::{self, Builder, JoinHandle};

/// The level of the usual tools.
const XZ: u32 = 6;
/// Content of a block: three dictionaries of the level, as `xz` takes by itself.
const BLOCK: usize = 24 << 20;
/// Blocks in work at a time. Each takes its content and 94 MiB of liblzma.
const MOST_THREADS: usize = 4;
/// Magic and flags of a stream with CRC-64, and the hash of the flags.
const STREAM_HEADER: &[u8; 12] = b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46";
const FLAGS: [u8; 2] = [0, 4];
const FOOTER_MAGIC: &[u8; 2] = b"YZ";
/// Size of a footer, which is that of the header.
const FOOTER: usize = 12;
/// Size of a block's CRC-64.
const CHECK: usize = 8;
/// Room for both sizes of a block of [`BLOCK`] bytes.
const BLOCK_HEADER: usize = 20;
/// Flag of a block's header: it has both of its sizes.
const HAS_SIZES: u8 = 0xc0;

/// A block that is compressed, with its header.
struct XzBlock {
    bytes: Vec<u8>,
    /// Bytes without the padding, as the index has them.
    unpadded: u64,
    /// Bytes of its uncompressed content.
    content: u64,
}

/// A block that is being compressed.
enum StartedBlock {
    Running(JoinHandle<io::Result<XzBlock>>),
    Done(io::Result<XzBlock>),
}

impl StartedBlock {
    fn start(content: Vec<u8>, threads: usize) -> Self {
        let content = Arc::new(content);
        let shared = Arc::clone(&content);
        // A thread that cannot be made costs only time.
        let thread = if threads > 1 { Builder::new().spawn(move || compress_block(&shared)).ok() } else { None };
        thread.map_or_else(|| Self::Done(compress_block(&content)), Self::Running)
    }

    fn finish(self) -> io::Result<XzBlock> {
        match self {
            Self::Done(block) => block,
            Self::Running(thread) => thread.join().map_err(|_| io::Error::other("a thread of xz has panicked"))?,
        }
    }
}

/// Compresses what is written to it.
pub(crate) struct XzBlockWriter<W> {
    output: W,
    /// Content of the block that is not full yet.
    content: Vec<u8>,
    /// Blocks in work, in order.
    started: VecDeque<StartedBlock>,
    /// Unpadded size and content of each block that is written.
    records: Vec<[u64; 2]>,
    threads: usize,
    /// Content of each block but the last.
    block: usize,
}

impl<W: Write> XzBlockWriter<W> {
    pub(crate) fn new(output: W) -> io::Result<Self> {
        Self::with_blocks(output, thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS), BLOCK)
    }

    fn with_blocks(mut output: W, threads: usize, block: usize) -> io::Result<Self> {
        output.write_all(STREAM_HEADER)?;
        Ok(Self { output, content: Vec::new(), started: VecDeque::new(), records: Vec::new(), threads, block })
    }

    fn start_block(&mut self) -> io::Result<()> {
        while self.started.len() >= self.threads {
            self.write_first()?;
        }
        self.started.push_back(StartedBlock::start(std::mem::take(&mut self.content), self.threads));
        Ok(())
    }

    fn write_first(&mut self) -> io::Result<()> {
        let Some(first) = self.started.pop_front() else { return Ok(()) };
        let block = first.finish()?;
        self.records.push([block.unpadded, block.content]);
        self.output.write_all(&block.bytes)
    }

    /// Writes the rest, and returns the output.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        if !self.content.is_empty() {
            self.start_block()?;
        }
        while !self.started.is_empty() {
            self.write_first()?;
        }
        let index = stream_index(&self.records);
        self.output.write_all(&index)?;
        self.output.write_all(&stream_footer(index.len()))?;
        Ok(self.output)
    }
}

impl<W: Write> Write for XzBlockWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let size = bytes.len().min(self.block - self.content.len());
        self.content.extend_from_slice(&bytes[..size]);
        if self.content.len() == self.block {
            self.start_block()?;
        }
        Ok(size)
    }

    /// A block that is not full stays open: another end of it would give other bytes.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The block of a content, in a header with its sizes, by which readers with threads find the next block.
fn compress_block(content: &[u8]) -> io::Result<XzBlock> {
    let mut encoder = XzEncoder::new(Vec::with_capacity(content.len() / 2), XZ);
    encoder.write_all(content)?;
    let stream = encoder.finish()?;
    let part = BlockPart::of_stream(&stream).ok_or_else(|| io::Error::other("liblzma has written another stream"))?;
    let mut bytes = block_header(&part, content.len() as u64);
    bytes.extend_from_slice(part.packed);
    let unpadded = (bytes.len() + CHECK) as u64;
    pad_to_four(&mut bytes);
    bytes.extend_from_slice(part.check);
    Ok(XzBlock { bytes, unpadded, content: content.len() as u64 })
}

/// The parts of a block in a stream of its own.
struct BlockPart<'s> {
    /// The filter with its properties, as the header has it.
    filter: &'s [u8],
    /// The compressed content without its padding.
    packed: &'s [u8],
    check: &'s [u8],
}

impl<'s> BlockPart<'s> {
    /// The block of a stream that has one, whose header has no sizes.
    fn of_stream(stream: &'s [u8]) -> Option<Self> {
        const SIZE: usize = 12;
        let (body, footer) = stream.split_at_checked(stream.len().checked_sub(FOOTER)?)?;
        let body = body.strip_prefix(STREAM_HEADER)?;
        let index_words = u32::from_le_bytes(footer.get(4..8)?.try_into().ok()?) as usize + 1;
        let (block, index) = body.split_at_checked(body.len().checked_sub(index_words * 4)?)?;
        // No size, one filter: LZMA2 with the size of its dictionary.
        let filter = block.strip_prefix(&[(SIZE / 4 - 1) as u8, 0])?.get(..3)?;
        let unpadded = read_number(index.strip_prefix(&[0, 1])?)?;
        let packed = block.get(SIZE..usize::try_from(unpadded).ok()?.checked_sub(CHECK)?)?;
        Some(Self { filter, packed, check: block.get(block.len().checked_sub(CHECK)?..)? })
    }
}

fn block_header(part: &BlockPart<'_>, content: u64) -> Vec<u8> {
    let mut header = vec![(BLOCK_HEADER / 4 - 1) as u8, HAS_SIZES];
    push_number(&mut header, part.packed.len() as u64);
    push_number(&mut header, content);
    header.extend_from_slice(part.filter);
    header.resize(BLOCK_HEADER - 4, 0);
    push_crc(&mut header);
    header
}

fn stream_index(records: &[[u64; 2]]) -> Vec<u8> {
    let mut index = vec![0];
    push_number(&mut index, records.len() as u64);
    records.iter().flatten().for_each(|number| push_number(&mut index, *number));
    pad_to_four(&mut index);
    push_crc(&mut index);
    index
}

fn stream_footer(index: usize) -> Vec<u8> {
    let mut fields = ((index / 4 - 1) as u32).to_le_bytes().to_vec();
    fields.extend_from_slice(&FLAGS);
    [&crc_of(&fields)[..], &fields, FOOTER_MAGIC].concat()
}

fn pad_to_four(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn push_crc(bytes: &mut Vec<u8>) {
    let crc = crc_of(bytes);
    bytes.extend_from_slice(&crc);
}

fn crc_of(bytes: &[u8]) -> [u8; 4] {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum().to_le_bytes()
}

/// Seven bits in each byte, the lowest first; the last byte lacks the highest bit.
fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read_number(bytes: &[u8]) -> Option<u64> {
    let size = bytes.iter().take(9).position(|byte| byte & 0x80 == 0)? + 1;
    Some(bytes[..size].iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use liblzma::bufread::XzDecoder;
    use std::io::Read;

    const SMALL: usize = 1 << 20;

    fn noise(size: usize) -> Vec<u8> {
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        (0..size).map(|_| next()).collect()
    }

    fn packed(content: &[u8], threads: usize, step: usize) -> Vec<u8> {
        let mut writer = XzBlockWriter::with_blocks(Vec::new(), threads, SMALL).unwrap();
        content.chunks(step).for_each(|part| writer.write_all(part).unwrap());
        writer.finish().unwrap()
    }

    fn unpacked(bytes: &[u8]) -> Vec<u8> {
        let mut content = Vec::new();
        XzDecoder::new(bytes).read_to_end(&mut content).unwrap();
        content
    }

    #[test]
    fn any_number_of_threads_gives_the_same_bytes() {
        let content = [noise(SMALL / 4).repeat(9), b"the end".to_vec()].concat();
        let one = packed(&content, 1, content.len());
        assert!(unpacked(&one) == content && one.len() < content.len() / 2);
        for (threads, step) in [(2, content.len()), (3, 1 << 16), (16, 99_999)] {
            assert!(packed(&content, threads, step) == one, "{threads} threads");
        }
        assert_eq!(unpacked(&packed(b"short", 2, 2)), b"short");
        assert_eq!(unpacked(&packed(b"", 2, 1)), b"");
    }

    #[test]
    fn noise_is_packed_as_well() {
        let content = noise(SMALL * 3 / 2);
        let bytes = packed(&content, 2, content.len());
        assert!(bytes.len() > content.len() && unpacked(&bytes) == content);
    }

    #[test]
    fn numbers_are_read_as_written() {
        for number in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, BLOCK as u64, u64::from(u32::MAX), u64::MAX >> 1] {
            let mut bytes = Vec::new();
            push_number(&mut bytes, number);
            bytes.push(0xff);
            assert_eq!(read_number(&bytes), Some(number));
        }
        assert_eq!(read_number(&[0x80; 12]), None);
        assert_eq!(read_number(&[]), None);
    }
}
