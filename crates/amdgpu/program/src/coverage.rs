//! Every byte of a section of code is accounted for: functions that no symbol names, and bytes that nothing claims.
//!
//! A byte is *claimed* by an instruction that an entry reaches, by a function that was skipped because it is plain, by
//! named data that is never executed, or by padding (`s_code_end`, `s_nop`, zeros). The rest is *unclaimed*. Symbols
//! may be stripped, and the target of a jump or call may be unknown, so unclaimed bytes may be code. They are decoded
//! from the end of the claimed bytes: bytes that decode up to an instruction that does not continue are a function
//! without a name. It becomes an entry if something known refers to it, or if the section has an *unknown transfer*: a
//! jump or call to an unknown address, or callers in other sections. Without one nothing can reach unclaimed bytes:
//! they are data, or dead.
//!
//! Invariants: a byte after one that does not decode is never taken for code, because the start of the next instruction
//! is unknown. The result depends on the section alone, so the same functions are found again in a section that was
//! laid out anew.
//!
//! Absent on purpose: which instructions matter (`hotswap-adapt` checks the unclaimed bytes for them).

use crate::calls::CallDestination;
use crate::function::Function;
use crate::program::Program;
use crate::source::{CodeSource, MarkKind, SectionSymbol};
use hotswap_isa::effects::ControlFlow;
use std::ops::Range;

/// Rounds of finding functions in the unclaimed bytes. A function that is found claims its code, so few are needed.
const ROUNDS: usize = 8;

/// `s_code_end`, which LLVM emits after the last instruction for the instruction prefetcher.
const CODE_END: u32 = 0xbf9f_0000;
/// `s_nop` without its immediate, with which LLVM aligns functions.
const NOP: u32 = 0xbf80_0000;

/// The bytes of a section that nothing claims.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The reason why unclaimed bytes may be reached; they cannot be if such a transfer does not exist.
    pub unknown_transfer: Option<UnknownTransfer>,
    /// Unclaimed bytes without the padding around them, ascending.
    pub unclaimed: Vec<Range<u32>>,
}

/// A jump or a call whose target is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownTransfer {
    /// The instruction at that offset.
    Instruction(u32),
    /// One in another section of code.
    OtherSection,
}

/// Code without a symbol that becomes an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
struct UnnamedCode {
    range: Range<u32>,
    /// Something known refers to it.
    is_referenced: bool,
    /// More code of the enclosing function follows it.
    is_inside: bool,
}

/// One pass over the bytes that are not claimed.
#[derive(Debug, Default)]
struct Pass {
    code: Vec<UnnamedCode>,
    unclaimed: Vec<Range<u32>>,
}

impl<'a> Program<'a> {
    /// As [`around`](Self::around), with functions that no symbol names; also the bytes that are left unclaimed.
    /// `offsets` returns those that matter for a source.
    #[must_use]
    pub fn covering(mut source: CodeSource<'a>, offsets: impl Fn(&CodeSource<'a>) -> Vec<u32>) -> (Self, Coverage) {
        for round in 0.. {
            let wanted = offsets(&source);
            let program = Self::around(source, &wanted);
            let unknown_transfer = program.unknown_transfer();
            let pass = program.pass(unknown_transfer.is_some());
            if pass.code.is_empty() || round == ROUNDS {
                let unclaimed = program.unreached(pass);
                return (program, Coverage { unknown_transfer, unclaimed });
            }
            source = program.into_source();
            source.name(&pass.code);
        }
        unreachable!("the last round returns")
    }

    /// As [`with_calls`](Self::with_calls). Where no symbol names code, each place in it that known code calls or jumps to begins a
    /// function of its own, and so does each that is called within a function whose symbol states no size.
    #[must_use]
    pub fn with_called_functions(mut source: CodeSource<'a>) -> Self {
        for _ in 0..ROUNDS {
            let program = Self::with_calls(source);
            let starts = program.unnamed_starts();
            if starts.is_empty() {
                return program;
            }
            source = program.into_source();
            source.name_starts(&starts);
        }
        Self::with_calls(source)
    }

    /// The entries of functions without a symbol that have several, or begin before their only one.
    fn unnamed_starts(&self) -> Vec<u32> {
        let unnamed = self.functions.iter().filter(|function| function.mark.is_none());
        let joined = unnamed.filter(|function| function.entries.iter().any(|entry| entry.offset != function.start));
        let mut starts: Vec<u32> = joined
            .flat_map(|function| &function.entries)
            .map(|entry| entry.offset)
            .chain(self.called_inside())
            .collect();
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    /// The places that known code calls within functions whose symbols state no size.
    fn called_inside(&self) -> impl Iterator<Item = u32> {
        let calls = self.functions.iter().flat_map(|function| &function.calls).filter(|call| !call.is_tail());
        calls.filter_map(|call| {
            let CallDestination::Function { function, entry } = call.callee else { return None };
            let callee = self.functions.get(function as usize).filter(|callee| callee.start != entry)?;
            let mark = self.source.marks.get(callee.mark? as usize)?;
            (mark.size == 0).then_some(entry)
        })
    }

    /// A jump or a call with an unknown target: the first one, or one in code outside of the section.
    #[must_use]
    pub fn unknown_transfer(&self) -> Option<UnknownTransfer> {
        let found = self.functions.iter().find_map(first_unknown_transfer).map(UnknownTransfer::Instruction);
        found.or_else(|| (self.source.shared || !self.source.alone).then_some(UnknownTransfer::OtherSection))
    }

    /// Whether a dword is padding as emitted by LLVM and linkers.
    #[must_use]
    pub fn is_padding(word: u32) -> bool {
        word == CODE_END || word & 0xffff_0000 == NOP || word == 0
    }

    fn pass(&self, is_open: bool) -> Pass {
        let mut pass = Pass::default();
        let references = self.references(is_open);
        for gap in self.unclaimed_gaps() {
            let own =
                self.function_at(gap.start).map(|(_, function)| function).filter(|function| function.mark.is_some());
            // Where a jump of the function itself is not known, its target need not keep the calling convention.
            let is_code = own.is_none_or(|own| is_open && own.is_closed());
            match is_code {
                true => self.read_gap(&gap, own, is_open, &references, &mut pass),
                false => pass.unclaimed.extend(self.trimmed(gap)),
            }
        }
        pass
    }

    /// Entries without a symbol, and, where a jump or call may take them, addresses in the section that known code
    /// computes; ascending. Otherwise these are addresses of data.
    fn references(&self, is_open: bool) -> Vec<u32> {
        let values = self.functions.iter().filter(|_| is_open).flat_map(|function| &function.pc_values);
        let values = values.filter_map(|value| self.source.offset_of(value.to));
        let unnamed = self.functions.iter().filter(|function| function.mark.is_none());
        let entries = unnamed.flat_map(|function| &function.entries).map(|entry| entry.offset);
        let mut all: Vec<u32> = values.chain(entries).filter(|offset| offset.is_multiple_of(4)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Bytes outside of claimed ones, cut at the ends of stretches; ascending. They include the code of functions
    /// without a symbol: several may be taken for one.
    fn unclaimed_gaps(&self) -> Vec<Range<u32>> {
        let mut claimed: Vec<Range<u32>> = Vec::new();
        for function in self.functions.iter().filter(|function| function.mark.is_some()) {
            for block in function.blocks() {
                match claimed.last_mut().filter(|last| last.end == block.start && last.start >= function.start) {
                    Some(last) => last.end = block.end,
                    None => claimed.push(block.start..block.end),
                }
            }
        }
        claimed.extend(self.named_data());
        claimed.extend(self.plain_functions());
        claimed.sort_unstable_by_key(|range| range.start);
        let mut cuts: Vec<u32> = self.functions.iter().flat_map(|function| [function.start, function.end]).collect();
        cuts.sort_unstable();
        let end = self.source.bytes.len() as u32 & !3;
        let (mut gaps, mut at) = (Vec::new(), 0);
        for range in claimed.into_iter().chain(std::iter::once(end..end)) {
            while at < range.start {
                let next =
                    cuts.get(cuts.partition_point(|cut| *cut <= at)).map_or(range.start, |cut| *cut.min(&range.start));
                gaps.push(at..next);
                at = next;
            }
            at = at.max(range.end);
        }
        gaps
    }

    /// The bytes that a pass leaves unclaimed, without the reached code of functions that lack a symbol.
    fn unreached(&self, pass: Pass) -> Vec<Range<u32>> {
        let mut ranges = pass.unclaimed;
        ranges.extend(pass.code.into_iter().map(|code| code.range));
        ranges.sort_unstable_by_key(|range| range.start);
        let unnamed = self.functions.iter().filter(|function| function.mark.is_none());
        let mut blocks = unnamed.flat_map(Function::blocks).peekable();
        let mut left = Vec::new();
        for range in ranges {
            let mut at = range.start;
            while blocks.next_if(|block| block.end <= at).is_some() {}
            while let Some(block) = blocks.next_if(|block| block.start < range.end) {
                left.extend(self.trimmed(at..block.start.max(at)));
                at = at.max(block.end);
            }
            left.extend(self.trimmed(at.min(range.end)..range.end));
        }
        left
    }

    /// Functions with a symbol that are absent because they are plain: all their bytes were decoded as instructions.
    fn plain_functions(&self) -> impl Iterator<Item = Range<u32>> {
        let marks = &self.source.marks;
        let plain = marks.iter().filter(|mark| is_code(mark) && self.function_at(mark.offset).is_none());
        plain.map(|mark| {
            let later = &marks[marks.partition_point(|other| other.offset <= mark.offset)..];
            let next =
                || later.iter().find(|mark| is_code(mark)).map_or(self.source.bytes.len() as u32, |mark| mark.offset);
            let end = if mark.size == 0 { next() } else { mark.offset.saturating_add(mark.size).next_multiple_of(4) };
            mark.offset..end
        })
    }

    /// The range without the padding at both ends; `None` if it is all padding.
    fn trimmed(&self, mut gap: Range<u32>) -> Option<Range<u32>> {
        while gap.start < gap.end && self.word(gap.start).is_none_or(Self::is_padding) {
            gap.start += 4;
        }
        while gap.start < gap.end && self.word(gap.end - 4).is_none_or(Self::is_padding) {
            gap.end -= 4;
        }
        (gap.start < gap.end).then_some(gap)
    }

    fn word(&self, offset: u32) -> Option<u32> {
        let bytes = self.source.bytes.get(offset as usize..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    }

    /// Decodes a gap as consecutive functions; `own` is the function with a symbol that holds it.
    fn read_gap(&self, gap: &Range<u32>, own: Option<&Function>, is_open: bool, references: &[u32], pass: &mut Pass) {
        let mut at = gap.start;
        while let Some(rest) = self.trimmed(at..gap.end) {
            let Some(range) = self.read_function(&rest, own, references) else {
                // A known address gives the next start of code.
                let next = references.partition_point(|offset| *offset <= rest.start);
                let next = references.get(next).map_or(rest.end, |offset| *offset.min(&rest.end));
                pass.unclaimed.extend(self.trimmed(rest.start..next));
                at = next;
                continue;
            };
            at = range.end;
            let first = references.partition_point(|offset| *offset < range.start);
            let is_referenced = references.get(first).is_some_and(|offset| *offset < range.end);
            let is_inside = own.is_some_and(|own| own.blocks().next_back().is_some_and(|last| last.start >= range.end));
            match is_open || is_referenced {
                true => pass.code.push(UnnamedCode { range, is_referenced, is_inside }),
                false => pass.unclaimed.push(range),
            }
        }
    }

    /// The function at the start of a gap: up to an instruction that does not continue and that no branch of the
    /// function passes. `None` if something in it does not decode, or it runs into code that is not its own.
    fn read_function(&self, gap: &Range<u32>, own: Option<&Function>, references: &[u32]) -> Option<Range<u32>> {
        let (mut at, mut furthest) = (gap.start, gap.start);
        let mut next_known = references[references.partition_point(|offset| *offset <= gap.start)..].iter().peekable();
        while at < gap.end {
            let inst = self.decode(at)?;
            let next = at + u32::from(inst.len());
            while next_known.next_if(|known| **known <= at).is_some() {}
            // A known reference points into the middle of the instruction.
            if next > gap.end || next_known.peek().is_some_and(|known| **known < next) {
                return None;
            }
            let ends = match inst.control_flow(self.source.address.wrapping_add(u64::from(at)), self.source.isa) {
                ControlFlow::Next | ControlFlow::Call { .. } => false,
                ControlFlow::End => true,
                ControlFlow::Indirect { conditional } => !conditional,
                ControlFlow::Branch { target, conditional } => {
                    let target = target.wrapping_sub(self.source.address);
                    furthest = furthest.max(u32::try_from(target).ok().filter(|to| gap.contains(to)).unwrap_or(0));
                    !conditional
                }
            };
            at = next;
            if ends && furthest < at {
                return Some(gap.start..at);
            }
        }
        // It continues in code of the same function.
        own.filter(|own| own.is_block_start(at) && at < own.end).map(|_| gap.start..at)
    }
}

fn first_unknown_transfer(function: &Function) -> Option<u32> {
    let calls = function.calls.iter().filter(|call| call.callee == CallDestination::Unknown).map(|call| call.offset);
    calls.chain(function.problems.iter().map(|problem| problem.offset)).min()
}

fn is_code(mark: &SectionSymbol<'_>) -> bool {
    matches!(mark.kind, MarkKind::Kernel(_) | MarkKind::Function)
}

impl CodeSource<'_> {
    /// Adds marks without a name for the starts of functions.
    fn name_starts(&mut self, starts: &[u32]) {
        self.marks.extend(starts.iter().map(|offset: &u32| SectionSymbol {
            offset: *offset,
            size: 0,
            kind: MarkKind::Function,
            name: "".into(),
            exported: false,
        }));
        self.sort();
    }

    /// Adds marks for code without a symbol.
    fn name(&mut self, code: &[UnnamedCode]) {
        for UnnamedCode { range, is_referenced, is_inside } in code {
            if *is_inside {
                self.entries.push(range.start);
                continue;
            }
            // Code without a known reference has unknown callers.
            let (offset, size, exported) = (range.start, range.end - range.start, !is_referenced);
            self.marks.push(SectionSymbol { offset, size, kind: MarkKind::Function, name: "".into(), exported });
        }
        self.sort();
    }
}
