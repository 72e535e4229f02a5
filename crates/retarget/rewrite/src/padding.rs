//! Bytes between functions, and before loops: their kinds, and how to write them again.
//!
//! Compilers align functions and loops with `s_nop`. They put `s_code_end` after the last function of a source file so
//! that prefetching stays inside. Linkers fill the rest with zeros. Padding is kept as a rule, not as bytes: up to an
//! alignment, and a fixed amount after that.

/// `s_nop 0` of every target.
pub(crate) const NOP: u32 = 0xbf80_0000;
/// `s_code_end` of every target that has one.
pub(crate) const CODE_END: u32 = 0xbf9f_0000;
/// Alignment of a kernel's entry.
pub(crate) const ENTRY: u64 = 256;
/// Alignment of a loop that the compiler aligns.
const LOOP: u64 = 64;

/// One kind of word: up to the next multiple of `align`, then `fixed` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PaddingRun {
    pub(crate) word: u32,
    pub(crate) align: u64,
    pub(crate) fixed: u64,
}

/// Padding at `start..end` of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Padding {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) runs: Vec<PaddingRun>,
}

impl PaddingRun {
    pub(crate) fn size(&self, at: u64) -> u64 {
        at.next_multiple_of(self.align) - at + self.fixed
    }
}

impl Padding {
    /// Its size if it begins at `at`.
    pub(crate) fn size(&self, at: u64) -> u64 {
        self.runs.iter().fold(at, |at, run| at + run.size(at)) - at
    }

    /// Writes it; `out` has its size at `at`.
    pub(crate) fn write(&self, mut at: u64, out: &mut [u8]) {
        let mut rest = out;
        for run in &self.runs {
            let size = run.size(at);
            let (words, behind) = std::mem::take(&mut rest).split_at_mut(size as usize);
            words.chunks_exact_mut(4).for_each(|word| word.copy_from_slice(&run.word.to_le_bytes()));
            rest = behind;
            at += size;
        }
    }

    /// The padding before the second entry of the kernel that begins at `kernel`; `None` without one.
    pub(crate) fn before_entry(bytes: &[u8], kernel: u64, distance: u64) -> Option<Self> {
        let end = kernel.checked_add(distance)?;
        let prologue = bytes.get(kernel as usize..end as usize)?;
        let code = prologue.as_chunks::<4>().0.iter().rposition(|word| u32::from_le_bytes(*word) != NOP);
        let start = kernel + code.map_or(0, |last| last as u64 + 1) * 4;
        Some(Self { start, end, runs: vec![PaddingRun { word: NOP, align: distance, fixed: 0 }] })
    }

    /// The padding before a loop that begins at `end`, if that is aligned.
    pub(crate) fn before_loop(start: u64, end: u64) -> Option<Self> {
        let is_aligned = start.next_multiple_of(LOOP) == end;
        is_aligned.then(|| Self { start, end, runs: vec![PaddingRun { word: NOP, align: LOOP, fixed: 0 }] })
    }
}

/// The item that follows the padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaddingSuccessor {
    /// Nothing: the section ends.
    End,
    Kernel,
    Function,
}

/// The padding conventions of a target and a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PaddingStyle {
    /// Bytes of a line of the instruction cache.
    pub(crate) line: u64,
    /// Alignment of all functions except kernels; 0 where they lack a common one.
    pub(crate) function: u64,
}

/// Neighbouring words that are equal.
struct EqualWords {
    word: u32,
    /// Bytes of all of them.
    size: u64,
}

/// Possible alignments of a function.
const ALIGNMENTS: [u64; 7] = [4, 8, 16, 32, 64, 128, 256];

impl PaddingStyle {
    /// The padding in `bytes[start..end]`; `None` if these are other bytes.
    pub(crate) fn read_padding(&self, bytes: &[u8], start: u64, end: u64, behind: PaddingSuccessor) -> Option<Padding> {
        let part = &bytes[start as usize..end as usize];
        if !part.len().is_multiple_of(4) {
            return part.iter().all(|byte| *byte == 0).then(|| self.zero_padding(start, end));
        }
        let mut runs: Vec<EqualWords> = Vec::new();
        for word in part.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)) {
            if let Some(run) = runs.last_mut().filter(|run| run.word == word) {
                run.size += 4;
            } else if ![NOP, CODE_END, 0].contains(&word) || runs.len() > 64 {
                return None;
            } else {
                runs.push(EqualWords { word, size: 4 });
            }
        }
        Some(Padding { start, end, runs: self.padding_runs(start, end, &runs, behind) })
    }

    fn zero_padding(&self, start: u64, end: u64) -> Padding {
        Padding { start, end, runs: vec![PaddingRun { word: 0, align: 1, fixed: end - start }] }
    }

    fn padding_runs(&self, start: u64, end: u64, runs: &[EqualWords], behind: PaddingSuccessor) -> Vec<PaddingRun> {
        let mut rules = Vec::with_capacity(runs.len() + 1);
        let mut at = start;
        for (number, EqualWords { word, size }) in runs.iter().enumerate() {
            let align = self.explaining_alignment(at, end, behind).filter(|_| number + 1 == runs.len());
            rules.push(match align {
                Some(align) => PaddingRun { word: *word, align, fixed: 0 },
                None => self.tail_run(*word, at, *size),
            });
            at += size;
        }
        // A run that ended at an alignment by chance, and adjacent functions.
        if rules.last().is_none_or(|rule| rule.fixed > 0) {
            let align = self.explaining_alignment(end, end, behind);
            let word = if rules.is_empty() { NOP } else { 0 };
            rules.extend(align.map(|align| PaddingRun { word, align, fixed: 0 }));
        }
        rules
    }

    /// The padding that the compiler puts after its last function: up to a line of the cache, then whole lines.
    fn tail_run(&self, word: u32, at: u64, size: u64) -> PaddingRun {
        let to_line = at.next_multiple_of(self.line) - at;
        match size.checked_sub(to_line) {
            Some(fixed) if word != 0 && fixed % self.line == 0 => PaddingRun { word, align: self.line, fixed },
            _ => PaddingRun { word, align: 4, fixed: size },
        }
    }

    /// The alignment that moved `start` to `end`.
    fn explaining_alignment(&self, start: u64, end: u64, behind: PaddingSuccessor) -> Option<u64> {
        match behind {
            PaddingSuccessor::End => None,
            PaddingSuccessor::Kernel => Some(ENTRY)
                .filter(|one| alignment_explains_padding(one, start, end))
                .or_else(|| ALIGNMENTS.into_iter().find(|one| alignment_explains_padding(one, start, end))),
            PaddingSuccessor::Function => {
                let common = Some(self.function)
                    .filter(|align| *align > 0)
                    .filter(|one| alignment_explains_padding(one, start, end));
                common.or_else(|| ALIGNMENTS.into_iter().find(|one| alignment_explains_padding(one, start, end)))
            }
        }
    }
}

fn alignment_explains_padding(align: &u64, start: u64, end: u64) -> bool {
    start.next_multiple_of(*align) == end
}
