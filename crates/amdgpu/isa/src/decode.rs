//! From bytes to an instruction.
//!
//! The first words select, through a trie, a short list of entries in the order in which LLVM tries its tables. Each
//! table contributes its first entry whose fixed bits match and which the processor has. The first of these whose
//! operands all decode is taken; literals are read afterwards.
//!
//! Invariants: decoding is total: every input yields an instruction, opaque bytes, or a report of missing bytes. No
//! byte beyond the input is read; missing bytes read as 0 and never decide the result.

use crate::inst::{Inst, extract, gather};
use crate::isa::Isa;
use crate::tables::{TableEntry, check, meaning};
use hotswap_isa_tables::{
    ACCEPT, AVAILABLE, BLOCKS, CANDIDATES, CHECKS, CheckBlock, ENTRIES, EntryData, HIGH_BITS, NODES, OperandCheck,
    PIECES, Subtarget, table_part,
};

/// The reason why bytes do not decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undecoded {
    /// No row accepts them.
    Opaque {
        /// Their length, if the encoding class is known although the opcode or an operand is not.
        len: Option<u8>,
    },
    /// The instruction continues beyond the end of the input.
    Truncated {
        /// The number of bytes present.
        have: usize,
    },
}

impl core::fmt::Display for Undecoded {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Opaque { len: Some(len) } => write!(formatter, "{len} bytes that are no known instruction"),
            Self::Opaque { len: None } => formatter.write_str("bytes that are no known instruction"),
            Self::Truncated { have } => write!(formatter, "an instruction of which only {have} bytes are there"),
        }
    }
}

impl core::error::Error for Undecoded {}

const LEAF: u32 = 1 << 31;
/// A candidate that is tried in the second pass.
pub(crate) const SECOND_PASS: u16 = 1 << 15;

impl Isa {
    /// The instruction at the start of `bytes`.
    #[inline]
    pub fn decode(self, bytes: &[u8]) -> Result<Inst, Undecoded> {
        match self.decode_fast(bytes) {
            Some(inst) => Ok(inst),
            None => self.decode_slowly(bytes),
        }
    }

    /// Decodes most instructions of real code; `None` leaves the answer to [`Isa::decode_slowly`].
    #[inline(always)]
    pub(crate) fn decode_fast(self, bytes: &[u8]) -> Option<Inst> {
        decode_first_candidate(self.subtarget(), bytes.first_chunk()?)
    }

    #[inline(never)]
    pub(crate) fn decode_slowly(self, bytes: &[u8]) -> Result<Inst, Undecoded> {
        let have = bytes.len().min(20);
        let words = words_of_bytes(bytes);
        decode_words(self.subtarget(), &words, have).map_err(|missed| self.undecoded(&words, have, missed))
    }

    fn undecoded(self, words: &[u32; 5], have: usize, missed: CandidateMiss) -> Undecoded {
        if have < 4 {
            return Undecoded::Truncated { have };
        }
        let len = self.size_of(words);
        match (missed, len) {
            (CandidateMiss::Bytes, _) => Undecoded::Truncated { have },
            (CandidateMiss::All, Some(len)) if usize::from(len) > have => Undecoded::Truncated { have },
            _ => Undecoded::Opaque { len },
        }
    }
}

/// Decodes most of real code: the first candidate whose fixed bits match, operands that are simple, at most a literal
/// of 32 bits. `None` leaves the answer to the slow path.
///
/// Always inlined: an instruction that is returned through memory is copied in two overlapping pieces, and reading it
/// has to wait for both (63 against 86 million instructions a second).
#[inline(always)]
fn decode_first_candidate(subtarget: &'static Subtarget, bytes: &[u8; 20]) -> Option<Inst> {
    let (low, rest) = bytes.split_first_chunk::<8>()?;
    let (high, last) = rest.split_first_chunk::<8>()?;
    let (low, high) = (u64::from_le_bytes(*low), u64::from_le_bytes(*high));
    // The first table is indexed by the top nine bits, see the generator.
    let mut node = *NODES.get(((subtarget.root & 0xf_ffff) + (low as u32 >> 23)) as usize)?;
    while node & LEAF == 0 {
        let half = if node >> 30 == 0 { low } else { high };
        let index = (half >> (node >> 24 & 63)) as u32 & ((1 << (node >> 20 & 15)) - 1);
        node = *NODES.get(((node & 0xf_ffff) + index) as usize)?;
    }
    let mut id = node as u16;
    let mut entry = ENTRIES.get(usize::from(id))?;
    let available = AVAILABLE.get(subtarget.available as usize + usize::from(entry.need))?;
    if (low ^ entry.value) & entry.mask != 0 || *available == 0 {
        id = next_candidate(subtarget, node, low)?;
        entry = ENTRIES.get(usize::from(id))?;
    }
    let block = BLOCKS.get(usize::from(entry.block))?;
    let (mut len, mut flags) = (entry.bytes, 0);
    let meaning = meaning_of_all(block, subtarget.accept as usize, low);
    if meaning != 0 {
        if meaning != meaning::LITERAL32 || len + 4 > subtarget.max_bytes {
            return None;
        }
        (len, flags) = (len + 4, Inst::LITERAL32);
    }
    Some(Inst::whole(low, high, u32::from_le_bytes(*last.first_chunk()?), id, len, flags))
}

/// The first candidate after the leaf's own whose fixed bits match and which the processor has.
#[inline(never)]
fn next_candidate(subtarget: &'static Subtarget, leaf: u32, low: u64) -> Option<u16> {
    let mut others = other_candidates(leaf).iter().copied();
    // Candidates of the second pass find their literals elsewhere.
    others.find(|id| matches_candidate(*id, subtarget, low)).filter(|id| id & SECOND_PASS == 0)
}

fn matches_candidate(id: u16, subtarget: &'static Subtarget, low: u64) -> bool {
    let entry = ENTRIES.get(usize::from(id & !SECOND_PASS));
    entry.is_some_and(|entry| (low ^ entry.value) & entry.mask == 0)
        && TableEntry::new(id & !SECOND_PASS).in_subtarget(subtarget)
}

/// The first 20 bytes as words, 0 past the end.
#[inline]
pub(crate) fn words_of_bytes(bytes: &[u8]) -> [u32; 5] {
    let mut words = [0; 5];
    if let Some(whole) = bytes.first_chunk::<20>() {
        for (word, chunk) in words.iter_mut().zip(whole.chunks_exact(4)) {
            *word = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        }
        return words;
    }
    for (word, chunk) in words.iter_mut().zip(bytes.chunks(4)) {
        let mut padded = [0; 4];
        for (to, from) in padded.iter_mut().zip(chunk) {
            *to = *from;
        }
        *word = u32::from_le_bytes(padded);
    }
    words
}

/// The reason why no candidate was taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CandidateMiss {
    /// The words match none of them.
    All,
    /// One matches, but bytes of it are missing.
    Bytes,
}

fn decode_words(subtarget: &'static Subtarget, words: &[u32; 5], have: usize) -> Result<Inst, CandidateMiss> {
    let low = u64::from(words[0]) | u64::from(words[1]) << 32;
    let known = if have >= 8 { u64::MAX } else { (1u64 << (have * 8)) - 1 };
    let mut missed = CandidateMiss::All;
    let mut failed = u16::MAX;
    for candidate in trie_candidates(subtarget, words) {
        let id = candidate & !SECOND_PASS;
        let entry = TableEntry::new(id).data();
        let table = entry.table | candidate & SECOND_PASS;
        if (low ^ entry.value) & entry.mask & known != 0
            || failed == table
            || !TableEntry::new(id).in_subtarget(subtarget)
        {
            continue;
        }
        match fit_candidate(subtarget, words, have, candidate, entry) {
            Ok(inst) => return Ok(inst),
            Err(CandidateFit::Else) => {}
            Err(CandidateFit::No) => failed = table,
            Err(CandidateFit::Missing) => (missed, failed) = (CandidateMiss::Bytes, table),
            Err(CandidateFit::Never) => return Err(CandidateMiss::All),
            Err(CandidateFit::NeverMissing) => return Err(CandidateMiss::Bytes),
        }
    }
    Err(missed)
}

/// The combined meaning of the operands: 0 if they are plain values. Most instructions have at most two that matter.
#[inline(always)]
fn meaning_of_all(block: &CheckBlock, accept: usize, low: u64) -> u8 {
    let [first, second] = [0, 1].map(|number| operand_meaning(block, number, accept, low));
    if block.mask[2] == 0 {
        return first | second;
    }
    let [third, fourth] = [2, 3].map(|number| operand_meaning(block, number, accept, low));
    first | second | third | fourth
}

#[inline(always)]
fn operand_meaning(block: &CheckBlock, number: usize, accept: usize, low: u64) -> u8 {
    let raw = (low >> (block.at[number] & 63)) as u16 & block.mask[number];
    let place = accept + usize::from(block.set[number]) + usize::from(raw);
    ACCEPT.get(place).copied().unwrap_or(meaning::NONE)
}

/// The instruction that the words form under a candidate.
fn fit_candidate(
    subtarget: &Subtarget,
    words: &[u32; 5],
    have: usize,
    candidate: u16,
    entry: &EntryData,
) -> Result<Inst, CandidateFit> {
    if usize::from(entry.bytes) > have {
        return Err(CandidateFit::Missing);
    }
    if entry.high != 0 && !high_matches(entry.high, words) {
        return Err(CandidateFit::Else);
    }
    let mut literal = SharedLiteral::new(subtarget, words, have, entry.bytes, candidate & SECOND_PASS != 0);
    literal.check_all(table_part(&CHECKS, entry.checks, entry.check_count))?;
    Ok(finish_inst(words, candidate & !SECOND_PASS, literal.end, literal.flags))
}

/// The candidates selected by the first words.
fn trie_candidates(subtarget: &Subtarget, words: &[u32; 5]) -> impl Iterator<Item = u16> {
    let node = walk_trie(&NODES, subtarget.root, words);
    core::iter::once(node as u16).chain(other_candidates(node).iter().copied())
}

/// The candidates after a leaf's own.
pub(crate) fn other_candidates(leaf: u32) -> &'static [u16] {
    let start = (leaf >> 16 & 0x7fff) as usize;
    let count = CANDIDATES.get(start).copied().map_or(0, usize::from);
    CANDIDATES.get(start + 1..start + 1 + count).unwrap_or_default()
}

/// Follows a trie to its leaf.
#[inline]
pub(crate) fn walk_trie(nodes: &[u32], root: u32, words: &[u32; 5]) -> u32 {
    let mut node = root;
    while node & LEAF == 0 {
        let word = words[(node >> 29 & 3) as usize];
        let index = word >> (node >> 24 & 31) & ((1 << (node >> 20 & 15)) - 1);
        node = nodes.get(((node & 0xf_ffff) + index) as usize).copied().unwrap_or(LEAF);
    }
    node
}

#[inline]
fn high_matches(number: u16, words: &[u32; 5]) -> bool {
    let (value, mask) = HIGH_BITS.get(usize::from(number)).copied().unwrap_or_default();
    let high = u64::from(words[2]) | u64::from(words[3]) << 32;
    (high ^ value) & mask == 0
}

#[inline]
fn finish_inst(words: &[u32; 5], id: u16, len: usize, flags: u8) -> Inst {
    let mut own = *words;
    for (number, word) in own.iter_mut().enumerate().skip(1) {
        *word &= if number * 4 < len { u32::MAX } else { 0 };
    }
    Inst::from_parts(own, id, len as u8, flags)
}

/// The reason why a candidate is not taken.
enum CandidateFit {
    /// Its fixed bits do not match after all: the next candidate is tried.
    Else,
    /// An operand does not decode: the next table is tried.
    No,
    /// It would fit, but bytes are missing: the next table is tried.
    Missing,
    /// An operand is wrong, and nothing else is tried.
    Never,
    /// Bytes of the literal are missing, and nothing else is tried.
    NeverMissing,
}

/// The state shared by the operands of one candidate: LLVM reads at most one literal and lets sources share it.
struct SharedLiteral<'a> {
    words: &'a [u32; 5],
    accept: usize,
    longest: usize,
    have: usize,
    /// Start of the next literal of 64 bits, in bytes.
    start: usize,
    /// End of the instruction, in bytes.
    end: usize,
    value: Option<u64>,
    /// A source field is 255.
    wanted: bool,
    flags: u8,
}

impl<'a> SharedLiteral<'a> {
    #[inline]
    fn new(subtarget: &Subtarget, words: &'a [u32; 5], have: usize, bytes: u8, second_pass: bool) -> Self {
        let end = usize::from(bytes);
        Self {
            words,
            accept: subtarget.accept as usize,
            longest: usize::from(subtarget.max_bytes),
            have: have.min(usize::from(subtarget.max_bytes)),
            start: if second_pass { 4 } else { end },
            end,
            value: None,
            wanted: false,
            flags: 0,
        }
    }

    fn check_all(&mut self, checks: &[OperandCheck]) -> Result<(), CandidateFit> {
        for check in checks {
            let raw = match check.count {
                0 => extract(self.words, check.at, check.width),
                count => gather(self.words, table_part(&PIECES, check.pieces, count)),
            };
            if check.what > check::SOURCE {
                self.apply_rare_check(check.what, raw)?;
                continue;
            }
            let place = self.accept + usize::from(check.set) + raw as usize;
            match ACCEPT.get(place).copied().unwrap_or(meaning::NONE) {
                meaning::NONE => return Err(CandidateFit::No),
                meaning::LITERAL32 => self.wanted = true,
                meaning::LITERAL64 => self.take_literal64()?,
                _ => {}
            }
        }
        if self.wanted { self.take_literal32() } else { Ok(()) }
    }

    #[cold]
    fn apply_rare_check(&mut self, what: u8, raw: u64) -> Result<(), CandidateFit> {
        match what {
            check::LITERAL32 | check::LITERAL64 => {
                if self.value.is_some_and(|value| value != raw) {
                    return Err(CandidateFit::No);
                }
                self.value = Some(raw);
                self.flags |= Inst::LITERAL_FIELD;
                Ok(())
            }
            check::NOT_NEGATIVE if raw >> 23 & 1 != 0 => Err(CandidateFit::Never),
            _ => Ok(()),
        }
    }

    /// A source field is 254, and the target has literals of 64 bits.
    #[cold]
    fn take_literal64(&mut self) -> Result<(), CandidateFit> {
        if self.value.is_some() {
            return Ok(());
        }
        if self.start + 8 > self.longest {
            return Err(CandidateFit::No);
        }
        if self.start + 8 > self.have {
            return Err(CandidateFit::Missing);
        }
        let inside = self.start < self.end;
        self.value = Some(extract(self.words, (self.start * 8) as u8, 64));
        self.flags |= if inside { Inst::LITERAL_INSIDE } else { Inst::LITERAL64 };
        self.end = self.start + 8;
        Ok(())
    }

    /// A literal of 32 bits follows, unless there is one already.
    fn take_literal32(&mut self) -> Result<(), CandidateFit> {
        if self.value.is_some() {
            return Ok(());
        }
        if self.end + 4 > self.longest {
            return Err(CandidateFit::Never);
        }
        if self.end + 4 > self.have {
            return Err(CandidateFit::NeverMissing);
        }
        self.flags |= Inst::LITERAL32;
        self.end += 4;
        Ok(())
    }
}
