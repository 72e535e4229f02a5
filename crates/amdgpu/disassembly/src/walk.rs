//! Walks over a code section: the items at each offset, and the targets of branches.
//!
//! Two passes use the same rules. The first, which computes lengths only, marks instruction starts and branch targets,
//! two bits for each dword. The second passes every item to a [`Sink`], with labels known.
//!
//! Invariants: The items of a section are contiguous and cover it. No item crosses the end of its chunk, and no item
//! allocates. The output does not depend on the number of cores.

use crate::chunk::{Chunk, ChunkRole, chunks};
use crate::instruction_reader::{Banks, DecodeResult, Inst, InstructionReader};
use crate::out::OutputClosed;
use crate::pc::PcSumTracker;
use hotswap_code_object::{CodeMap, CodeSection, CodeSymbol, ObjectKind, Relocation};
use std::hint::black_box;
use std::ops::Range;
use std::panic::resume_unwind;
use std::thread::{self, ScopedJoinHandle, available_parallelism};

/// Runs of equal padding words are shown as one item from this length on.
const RUN: usize = 4;
/// The same between functions, where only padding is expected.
const RUN_IN_GAP: usize = 2;
const LONGEST: usize = 20;
/// The padding of assemblers between functions before GFX10.
const S_NOP: u32 = 0xbf80_0000;
/// `s_code_end`, the padding after code since GFX10.
const S_CODE_END: u32 = 0xbf9f_0000;
/// Bytes that one core processes at a time; their text has about fifteen times as many.
const BATCH: usize = 64 * 1024;
/// Data is shown in lines of that many bytes.
const DATA_LINE: usize = 16;

/// The reason why bytes are shown as bytes.
#[derive(Debug, Clone, Copy)]
pub enum RawBytesReason {
    /// They are not an instruction of the target.
    Unknown,
    /// The section ends inside of the instruction.
    Truncated,
    /// Another symbol, or the end of this one, is inside of this instruction.
    Crosses(Inst),
    /// They precede the next multiple of four.
    Unaligned,
    /// The symbol table marks them as data.
    Data,
}

/// The item at an offset.
#[derive(Debug, Clone, Copy)]
pub enum SectionItem {
    Instruction(Inst),
    Bytes(RawBytesReason),
    /// The same padding word, repeated.
    Padding(u32),
}

/// An item with its size in bytes.
struct SizedItem {
    what: SectionItem,
    size: usize,
}

impl SizedItem {
    fn bytes(reason: RawBytesReason, size: usize) -> Self {
        Self { what: SectionItem::Bytes(reason), size }
    }
}

/// The target of a branch, or of a computed address.
#[derive(Debug, Clone, Copy)]
pub struct BranchTarget<'s> {
    pub address: u64,
    /// Offset of a label in this section.
    pub label: Option<usize>,
    /// The symbol that covers it, and the distance from the symbol's start.
    pub name: Option<(&'s CodeSymbol<'s>, usize)>,
}

/// An item with all facts about it.
#[derive(Debug, Clone, Copy)]
pub struct WalkItem<'s> {
    pub offset: usize,
    pub address: u64,
    pub bytes: &'s [u8],
    pub what: SectionItem,
    /// Whether a branch targets it.
    pub is_label: bool,
    pub target: Option<BranchTarget<'s>>,
    /// The address that it completes (`s_getpc_b64` and additions).
    pub refers: Option<BranchTarget<'s>>,
    /// The banks of vector registers that its operands refer to (gfx12.5).
    pub banks: Banks,
    /// The relocations of its bytes.
    pub relocations: &'s [Relocation<'s>],
}

/// Receives the items of a section.
pub trait Sink {
    /// The same for a part of a section, in memory.
    type Part: Sink + Send;
    /// A part; `is_first` if it begins the section.
    fn part(&self, is_first: bool) -> Self::Part;
    /// Appends a part to the output so far.
    fn append(&mut self, part: &Self::Part) -> Result<(), OutputClosed>;
    fn section(&mut self, view: &SectionView<'_>) -> Result<(), OutputClosed>;
    fn chunk(&mut self, view: &SectionView<'_>, chunk: &Chunk<'_>) -> Result<(), OutputClosed>;
    fn item(
        &mut self,
        view: &SectionView<'_>,
        reader: &InstructionReader,
        item: &WalkItem<'_>,
    ) -> Result<(), OutputClosed>;
    fn end_chunk(&mut self) -> Result<(), OutputClosed>;
    fn end_section(&mut self) -> Result<(), OutputClosed>;
}

/// Counts of the items seen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub instructions: u64,
    /// Bytes of all these instructions.
    pub bytes: u64,
    /// Bytes of padding that is shown as one line.
    pub padding: u64,
    /// Bytes of data that the symbol table names.
    pub data: u64,
    /// Bytes in code that decode to no instruction.
    pub opaque: u64,
    /// Address of the first of them.
    pub first_opaque: Option<u64>,
}

/// A section that is being walked.
pub struct SectionView<'s> {
    pub map: &'s CodeMap<'s>,
    pub section: &'s CodeSection<'s>,
    /// Prefix of the address in labels, so that they differ between sections that all begin at 0.
    pub prefix: Option<usize>,
    reader: InstructionReader,
    /// Padding is shown word by word.
    every_word: bool,
    chunks: Vec<Chunk<'s>>,
    starts: DwordBits,
    targets: DwordBits,
}

/// One bit for each dword of a section.
struct DwordBits(Vec<u64>);

impl DwordBits {
    fn new(bytes: usize) -> Self {
        Self(vec![0; bytes.div_ceil(4 * 64)])
    }

    /// Sets the bit of a dword; offsets between dwords are ignored, no instruction starts there.
    fn set(&mut self, offset: usize) {
        if let Some(word) = self.0.get_mut(offset / 256).filter(|_| offset.is_multiple_of(4)) {
            *word |= 1 << (offset / 4 % 64);
        }
    }

    fn has(&self, offset: usize) -> bool {
        offset.is_multiple_of(4) && self.0.get(offset / 256).is_some_and(|word| word >> (offset / 4 % 64) & 1 != 0)
    }
}

impl<'s> SectionView<'s> {
    /// The first pass over a section: marks labels.
    pub fn new(
        map: &'s CodeMap<'s>,
        section: &'s CodeSection<'s>,
        prefix: Option<usize>,
        reader: InstructionReader,
        every_word: bool,
    ) -> Self {
        let size = section.bytes.len();
        let (chunks, starts, targets) = (chunks(section), DwordBits::new(size), DwordBits::new(size));
        let mut view = Self { map, section, prefix, reader, every_word, chunks, starts, targets };
        let (mut starts, mut targets) = (DwordBits::new(size), DwordBits::new(size));
        for chunk in &view.chunks {
            let reader = view.reader_of(chunk);
            let mut at = chunk.start;
            while at < chunk.end {
                starts.set(at);
                if let Some(target) = view.branch_at(&reader, chunk, at) {
                    targets.set(target);
                }
                // A branch per length is predicted long before the length is known: twice as fast.
                at += match view.length(&reader, chunk, at) {
                    4 => black_box(4),
                    8 => black_box(8),
                    length => length,
                };
            }
        }
        (view.starts, view.targets) = (starts, targets);
        view
    }

    /// Length of the item at an offset, as in [`SectionView::at`], without decoding.
    #[inline]
    fn length(&self, reader: &InstructionReader, chunk: &Chunk<'_>, at: usize) -> usize {
        match self.plain(chunk, at) {
            Some(item) => item.size,
            None => {
                match self.section.bytes.get(at..at + LONGEST) {
                    Some(bytes) => reader.size(bytes).unwrap_or(4).min(chunk.end - at),
                    // Near the end an instruction may be cut off.
                    None => self.at(reader, chunk, at).size,
                }
            }
        }
    }

    /// The offset in this section that the branch at an offset targets.
    #[inline]
    fn branch_at(&self, reader: &InstructionReader, chunk: &Chunk<'_>, at: usize) -> Option<usize> {
        let bytes =
            self.section.bytes.get(at..).filter(|bytes| chunk.role != ChunkRole::Data && reader.may_branch(bytes))?;
        let DecodeResult::Instruction(inst) = reader.decode(bytes) else { return None };
        let target = reader.branch(&inst, self.address(at)).and_then(|address| self.offset(address));
        target.filter(|_| at + usize::from(inst.len()) <= chunk.end)
    }

    /// The offset of an address in this section.
    fn offset(&self, address: u64) -> Option<usize> {
        let offset = usize::try_from(address.wrapping_sub(self.section.address)).ok();
        offset.filter(|offset| *offset < self.section.bytes.len())
    }

    /// Lanes of a wave in a chunk.
    pub fn lanes(&self, chunk: &Chunk<'_>) -> u8 {
        self.reader_of(chunk).lanes()
    }

    fn reader_of(&self, chunk: &Chunk<'_>) -> InstructionReader {
        chunk.lanes.map_or(self.reader, |lanes| self.reader.with_lanes(lanes))
    }

    pub fn address(&self, offset: usize) -> u64 {
        self.section.address.wrapping_add(offset as u64)
    }

    /// Classifies an offset of a chunk without decoding instructions.
    #[inline]
    fn plain(&self, chunk: &Chunk<'_>, at: usize) -> Option<SizedItem> {
        let rest = chunk.end - at;
        if chunk.role == ChunkRole::Data {
            return Some(SizedItem::bytes(RawBytesReason::Data, rest.min(DATA_LINE - at % DATA_LINE)));
        }
        if !at.is_multiple_of(4) {
            return Some(SizedItem::bytes(RawBytesReason::Unaligned, rest.min(4 - at % 4)));
        }
        let bytes = self.section.bytes.get(at..).unwrap_or_default();
        self.padding(chunk, bytes, rest)
    }

    /// The item at an offset of a chunk.
    #[inline]
    fn at(&self, reader: &InstructionReader, chunk: &Chunk<'_>, at: usize) -> SizedItem {
        if let Some(plain) = self.plain(chunk, at) {
            return plain;
        }
        let rest = chunk.end - at;
        let bytes = self.section.bytes.get(at..).unwrap_or_default();
        match reader.decode(bytes) {
            DecodeResult::Instruction(inst) if usize::from(inst.len()) <= rest => {
                SizedItem { what: SectionItem::Instruction(inst), size: usize::from(inst.len()) }
            }
            DecodeResult::Instruction(inst) => SizedItem::bytes(RawBytesReason::Crosses(inst), rest),
            DecodeResult::Truncated => SizedItem::bytes(RawBytesReason::Truncated, rest),
            DecodeResult::Opaque(len) => SizedItem::bytes(RawBytesReason::Unknown, rest.min(len.unwrap_or(4))),
        }
    }

    /// A run of padding words at the start of `bytes`.
    #[inline]
    fn padding(&self, chunk: &Chunk<'_>, bytes: &[u8], rest: usize) -> Option<SizedItem> {
        let [words, ..] = bytes.first_chunk::<8>()?.as_chunks::<4>().0 else { return None };
        let word = u32::from_le_bytes(*words);
        let is_padding = word == 0 || word == S_CODE_END || word == S_NOP && chunk.role == ChunkRole::Gap;
        if !is_padding || self.every_word || bytes.get(4..8) != Some(words) {
            return None;
        }
        let bytes = bytes.get(..rest)?;
        let same = bytes.as_chunks::<4>().0.iter().take_while(|other| *other == words).count();
        let run = if chunk.role == ChunkRole::Gap { RUN_IN_GAP } else { RUN };
        (same >= run).then_some(SizedItem { what: SectionItem::Padding(word), size: same * 4 })
    }

    /// Passes everything inside of `wanted` to the sink. Large sections are processed by all cores.
    pub fn walk<S: Sink>(&self, wanted: &[Range<usize>], sink: &mut S, tally: &mut Tally) -> Result<(), OutputClosed> {
        let chunks: Vec<_> = self.chunks.iter().filter(|one| is_wanted_chunk(one, wanted)).copied().collect();
        let batches = batches(&chunks);
        let threads = available_parallelism().map_or(1, usize::from);
        sink.section(self)?;
        if batches.len() < 2 || threads < 2 {
            self.show(&chunks, sink, tally)?;
            return sink.end_section();
        }
        for (round, batches) in batches.chunks(threads).enumerate() {
            let parts = thread::scope(|scope| {
                let mut started = Vec::with_capacity(threads);
                for (index, &chunks) in batches.iter().enumerate() {
                    let first = round == 0 && index == 0;
                    let part = sink.part(first);
                    let thread = thread::Builder::new().spawn_scoped(scope, move || self.show_part(chunks, part));
                    // Where the system does not have any more threads, this one does the work.
                    started.push(thread.map_err(|_| self.show_part(chunks, sink.part(first))));
                }
                started
                    .into_iter()
                    .map(|thread: Result<_, _>| thread.map_or_else(|done| done, join_or_panic))
                    .collect::<Vec<_>>()
            });
            for shown in parts {
                let shown = shown?;
                sink.append(&shown.part)?;
                tally.merge(&shown.tally);
            }
        }
        sink.end_section()
    }

    fn show_part<P: Sink>(&self, chunks: &[Chunk<'_>], mut part: P) -> Result<ShownPart<P>, OutputClosed> {
        let mut tally = Tally::default();
        self.show(chunks, &mut part, &mut tally).map(|()| ShownPart { part, tally })
    }

    fn show<S: Sink>(&self, chunks: &[Chunk<'_>], sink: &mut S, tally: &mut Tally) -> Result<(), OutputClosed> {
        for chunk in chunks {
            sink.chunk(self, chunk)?;
            let reader = self.reader_of(chunk);
            let (mut addresses, mut banks) = (PcSumTracker::default(), Banks::default());
            let before = self.section.relocations.partition_point(|relocation| relocation.offset < chunk.start);
            let mut relocations = self.section.relocations.get(before..).unwrap_or_default();
            let mut at = chunk.start;
            while at < chunk.end {
                let SizedItem { what, size: len } = self.at(&reader, chunk, at);
                let mut item = self.item(&reader, at, len, what, &mut addresses, &mut relocations);
                item.banks = banks;
                if let SectionItem::Instruction(inst) = &what {
                    banks = reader.banks_after(banks, inst);
                }
                tally.add(&item);
                sink.item(self, &reader, &item)?;
                at += len;
            }
            sink.end_chunk()?;
        }
        Ok(())
    }

    #[inline]
    fn item<'v>(
        &'v self,
        reader: &InstructionReader,
        offset: usize,
        len: usize,
        what: SectionItem,
        addresses: &mut PcSumTracker,
        relocations: &mut &'v [Relocation<'s>],
    ) -> WalkItem<'v>
    where
        's: 'v,
    {
        let address = self.address(offset);
        let bytes = self.section.bytes.get(offset..offset + len).unwrap_or_default();
        let (mut target, mut refers) = (None, None);
        if let SectionItem::Instruction(inst) = &what {
            let end = address.wrapping_add(len as u64);
            target = reader.branch(inst, address).map(|address| self.target(address));
            // In a relocatable file the values are not there yet.
            if self.map.kind == ObjectKind::Linked {
                refers = addresses.follow(reader, inst, end).map(|address| self.target(address));
            }
        }
        let relocations = if relocations.is_empty() { &[] } else { take(relocations, offset, offset + len) };
        let (is_label, banks) = (self.targets.has(offset), Banks::default());
        WalkItem { offset, address, bytes, what, is_label, target, refers, banks, relocations }
    }

    fn target(&self, address: u64) -> BranchTarget<'_> {
        let own = self.offset(address);
        let label = own.filter(|offset| self.starts.has(*offset) && self.targets.has(*offset));
        let name = match own {
            Some(offset) => self.section.name_at(offset),
            None => self.name_elsewhere(address),
        };
        BranchTarget { address, label, name }
    }

    /// In a linked file an address belongs to the whole file.
    fn name_elsewhere(&self, address: u64) -> Option<(&CodeSymbol<'_>, usize)> {
        let mut sections = self.map.sections.iter().filter(|_| self.map.kind == ObjectKind::Linked);
        sections.find_map(|section| {
            let offset = usize::try_from(address.checked_sub(section.address)?).ok()?;
            (offset < section.bytes.len()).then(|| section.name_at(offset))?
        })
    }
}

fn is_wanted_chunk(chunk: &&Chunk<'_>, wanted: &[Range<usize>]) -> bool {
    wanted.iter().any(|range| range.contains(&chunk.start))
}

/// A part of a section that a thread has passed to its sink.
struct ShownPart<P> {
    part: P,
    tally: Tally,
}

fn join_or_panic<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// The relocations inside of a range; those before it are skipped.
fn take<'v, 's>(relocations: &mut &'v [Relocation<'s>], start: usize, end: usize) -> &'v [Relocation<'s>] {
    let before = relocations.iter().take_while(|relocation| relocation.offset < start).count();
    let inside = relocations[before..].iter().take_while(|relocation| relocation.offset < end).count();
    let (taken, rest) = relocations[before..].split_at(inside);
    *relocations = rest;
    taken
}

/// Chunks in groups of about the same size, in their order.
fn batches<'c, 's>(mut chunks: &'c [Chunk<'s>]) -> Vec<&'c [Chunk<'s>]> {
    let mut batches = Vec::new();
    while let Some(first) = chunks.first() {
        let count = chunks.iter().take_while(|chunk| chunk.start < first.start + BATCH).count();
        let (batch, rest) = chunks.split_at(count);
        batches.push(batch);
        chunks = rest;
    }
    batches
}

impl Tally {
    fn merge(&mut self, other: &Self) {
        self.instructions += other.instructions;
        self.bytes += other.bytes;
        self.padding += other.padding;
        self.data += other.data;
        self.opaque += other.opaque;
        self.first_opaque = self.first_opaque.or(other.first_opaque);
    }

    #[inline]
    fn add(&mut self, item: &WalkItem<'_>) {
        let len = item.bytes.len() as u64;
        match item.what {
            SectionItem::Instruction(_) => {
                self.instructions += 1;
                self.bytes += len;
            }
            SectionItem::Padding(_) => self.padding += len,
            SectionItem::Bytes(RawBytesReason::Data) => self.data += len,
            SectionItem::Bytes(_) => {
                self.opaque += len;
                self.first_opaque.get_or_insert(item.address);
            }
        }
    }
}
