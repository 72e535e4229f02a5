//! The code of a function as it becomes: the instructions of each block, with what stands in place of some.
//!
//! Invariants: blocks are those of the program, because nothing here makes or removes a branch; an instruction that stays
//! keeps its bytes and its place in the list of edits.

use crate::unit::{Unit, entered_anywhere};
use hotswap_families::Rewriter;
use hotswap_families::code::{Block, Code, Flow, Insertion, Refusal, Scheduling};
use hotswap_isa::{Inst, Isa};
use hotswap_program::{Exit, Function, Reason, Successors};
use hotswap_rewrite::Edits;
use std::cell::OnceCell;
use std::ops::Range;

/// Changed instructions of a function: the offset of each, rising, itself, and what stands there now.
#[derive(Debug, Default, Clone)]
pub(crate) struct Changes {
    lines: Vec<(u32, Inst, Vec<Inst>)>,
}

impl Changes {
    pub(crate) fn replace(&mut self, offset: u32, old: Inst, new: Vec<Inst>) {
        match self.find(offset) {
            Ok(found) => self.lines[found] = (offset, old, new),
            Err(place) => self.lines.insert(place, (offset, old, new)),
        }
    }

    fn find(&self, offset: u32) -> Result<usize, usize> {
        self.lines.binary_search_by_key(&offset, |(offset, ..)| *offset)
    }

    fn range(&self, range: Range<u32>) -> &[(u32, Inst, Vec<Inst>)] {
        let first = self.lines.partition_point(|(offset, ..)| *offset < range.start);
        let rest = &self.lines[first..];
        &rest[..rest.partition_point(|(offset, ..)| *offset < range.end)]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Inst, &[Inst])> {
        self.lines.iter().map(|(offset, old, new)| (*offset, old, &new[..]))
    }

    /// Bytes that came to the function.
    pub(crate) fn grown(&self) -> i64 {
        self.iter().map(|(_, old, new)| size(new) - i64::from(old.len())).sum()
    }

    /// As edits. What stays of a place is not touched: branches and relocations in it are the layout's.
    pub(crate) fn edits(&self, edits: &mut Edits) {
        for (offset, old, new) in self.iter() {
            let at = u64::from(offset);
            match new.iter().position(|inst| inst.words() == old.words()) {
                Some(place) => {
                    if place > 0 {
                        edits.before(at, &bytes(&new[..place]), &[]);
                    }
                    if place + 1 < new.len() {
                        edits.after(at, &bytes(&new[place + 1..]), &[]);
                    }
                }
                None => edits.replace(at, u64::from(old.len()), &bytes(new), &[]),
            }
        }
    }
}

#[cfg(test)]
impl Changes {
    /// Makes them wrong: without one of the instructions that were put in, and with v20 where v0 was free.
    pub(crate) fn spoil(&mut self) {
        for (_, old, new) in &mut self.lines {
            if new.first().is_some_and(|inst| inst.mnemonic() == "v_nop") {
                new.remove(0);
            }
            for inst in new.iter_mut().filter(|inst| inst.words() != old.words()) {
                let isa = Isa::new(hotswap_isa::Target::find("gfx1250-strict").unwrap());
                for name in [hotswap_isa::Name::Vdst, hotswap_isa::Name::Src0, hotswap_isa::Name::Src1] {
                    let first = hotswap_isa::reg::Reg::new(hotswap_isa::reg::RegFile::Vgpr, 0, 1);
                    if inst.operand(isa, name) == Some(hotswap_isa::Value::Reg(first)) {
                        *inst = inst.with_operand(isa, name, hotswap_isa::reg::Reg { index: 20, ..first }).unwrap();
                    }
                }
            }
        }
    }
}

fn size(code: &[Inst]) -> i64 {
    code.iter().map(|inst| i64::from(inst.len())).sum()
}

fn bytes(code: &[Inst]) -> Vec<u8> {
    code.iter().flat_map(|inst| inst.bytes().into_iter().take(usize::from(inst.len()))).collect()
}

/// Asks the families of scope `Function`, each about what the ones before have put in. `places` are offsets of what may
/// concern them in the code as it was. Gives the families that put in something, with the number of places.
pub(crate) fn function_families(
    rewriter: &Rewriter,
    unit: &Unit<'_>,
    number: usize,
    (target, scheduling): (Isa, Scheduling),
    places: impl Iterator<Item = u32>,
    changes: &mut Changes,
) -> Result<Vec<(&'static str, u64)>, (&'static str, Refusal)> {
    let mut counts = Vec::new();
    let function = &unit.program.functions[number];
    let successors: Vec<Successors> = (0..function.block_count()).map(|block| function.successors(block)).collect();
    let blocks = blocks(unit, number, &successors);
    let old = |offset: u32| Some((function.block_at(offset)?, unit.program.decode(offset)?));
    let old: Vec<(usize, Inst)> = places.filter_map(old).collect();
    let mut code = Bodies::new(unit, number);
    let mut families = rewriter.functions().peekable();
    while let Some(family) = families.next() {
        let concerns = |inst: &Inst| rewriter.concerns_family(family, inst);
        let concerned = concerned(concerns, function, &old, changes);
        let bodies = Changed { bodies: &code, changes };
        let flow = Flow { target, blocks: &blocks, code: &bodies, concerned: &concerned, scheduling };
        let found = rewriter.insertions(family, &flow).map_err(|refusal| (family.name, refusal))?;
        if !found.is_empty() {
            counts.push((family.name, found.len() as u64));
            insert(unit, number, found, changes);
            if families.peek().is_some() {
                code = Bodies::new(unit, number);
            }
        }
    }
    Ok(counts)
}

fn blocks<'s>(unit: &Unit<'_>, number: usize, successors: &'s [Successors]) -> Vec<Block<'s>> {
    let function = &unit.program.functions[number];
    let anywhere = entered_anywhere(function).is_some();
    let begins = |start: u32| function.entries.iter().any(|entry| entry.offset == start && entry.is_kernel());
    let block = |(block, line): (usize, hotswap_program::Block)| Block {
        banks: unit.banks.at_block(number, block),
        successors: &successors[block],
        leaves: matches!(line.exit, Exit::Call | Exit::Return | Exit::Tail | Exit::Unknown),
        begins: !anywhere && begins(line.start),
    };
    function.blocks().enumerate().map(block).collect()
}

/// The blocks with something that concerns a family: `old` instructions, and those that were put in. What stands no more
/// does no harm.
fn concerned(
    concerns: impl Fn(&Inst) -> bool,
    function: &Function,
    old: &[(usize, Inst)],
    changes: &Changes,
) -> Vec<usize> {
    let there = old.iter().filter(|(_, inst)| concerns(inst)).map(|(block, _)| *block);
    let made = changes.iter().filter(|(_, _, new)| new.iter().any(&concerns));
    let mut all: Vec<usize> = there.chain(made.filter_map(|(offset, ..)| function.block_at(offset))).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The instructions of a function as it becomes; those of a block are made when somebody asks for them.
struct Bodies<'u, 'a> {
    unit: &'u Unit<'a>,
    number: usize,
    blocks: Vec<OnceCell<Vec<Inst>>>,
}

impl<'u, 'a> Bodies<'u, 'a> {
    fn new(unit: &'u Unit<'a>, number: usize) -> Self {
        let blocks = unit.program.functions[number].blocks().map(|_| OnceCell::new()).collect();
        Self { unit, number, blocks }
    }
}

/// Bodies with the changes that they are to have.
struct Changed<'c, 'u, 'a> {
    bodies: &'c Bodies<'u, 'a>,
    changes: &'c Changes,
}

impl Code for Changed<'_, '_, '_> {
    fn of_block(&self, number: usize) -> &[Inst] {
        let Bodies { unit, number: function, blocks } = self.bodies;
        let function = &unit.program.functions[*function];
        let Some(code) = blocks.get(number) else { return &[] };
        code.get_or_init(|| {
            let block = function.block(number);
            // Most instructions have eight bytes.
            let mut body = Vec::with_capacity((block.end - block.start) as usize / 6 + 1);
            each(unit, &block, self.changes, |_, inst, new| match new {
                Some(new) => body.extend_from_slice(new),
                None => body.push(inst),
            });
            body
        })
    }
}

/// The instructions of a block: the offset of each, itself, and what stands in its place.
fn each(
    unit: &Unit<'_>,
    block: &hotswap_program::Block,
    changes: &Changes,
    mut each: impl FnMut(u32, Inst, Option<&[Inst]>),
) {
    let mut at = block.start;
    let mut changed = changes.range(block.start..block.end).iter().peekable();
    while at < block.end {
        let Some(inst) = unit.program.decode(at) else { break };
        while changed.next_if(|(offset, ..)| *offset < at).is_some() {}
        let new = changed.next_if(|(offset, ..)| *offset == at).map(|(_, _, new)| &new[..]);
        each(at, inst, new);
        at += u32::from(inst.len());
    }
}

/// For each instruction of a block as it becomes the offset of the one in whose place it stands, and its number among
/// those there.
fn places(unit: &Unit<'_>, block: &hotswap_program::Block, changes: &Changes) -> Vec<(u32, usize)> {
    let mut places = Vec::new();
    each(unit, block, changes, |at, _, new| places.extend((0..new.map_or(1, <[Inst]>::len)).map(|place| (at, place))));
    places
}

fn insert(unit: &Unit<'_>, number: usize, mut insertions: Vec<Insertion>, changes: &mut Changes) {
    insertions.sort_by_key(|insertion| (insertion.block, insertion.before));
    let mut fresh: Vec<(u32, Inst, Vec<Inst>)> = Vec::new();
    for group in insertions.chunk_by(|one, next| one.block == next.block) {
        let function = &unit.program.functions[number];
        let number = group.first().map(|one| one.block).filter(|block| *block < function.block_count());
        let Some(block) = number.map(|number| function.block(number)) else { continue };
        let places = self::places(unit, &block, changes);
        // From the last on, so that the places of the others stay.
        for Insertion { before, code, .. } in group.iter().rev() {
            let place = match places.get(*before) {
                Some(place) => Some(*place),
                // Behind the last instruction of the block.
                None => places.last().map(|(offset, place)| (*offset, place + 1)),
            };
            let Some((offset, place)) = place else { continue };
            if changes.find(offset).is_err() && fresh.last().is_none_or(|(last, ..)| *last != offset) {
                let Some(old) = unit.program.decode(offset) else { continue };
                fresh.push((offset, old, vec![old]));
            }
            let line = match changes.find(offset) {
                Ok(found) => changes.lines.get_mut(found),
                Err(_) => fresh.last_mut(),
            };
            let Some((_, _, line)) = line else { continue };
            let place = place.min(line.len());
            line.splice(place..place, code.iter().copied());
        }
    }
    changes.lines.append(&mut fresh);
    changes.lines.sort_by_key(|(offset, ..)| *offset);
}

/// Why what is known of a function is not enough to change it.
pub(crate) fn unreadable(unit: &Unit<'_>, number: usize) -> Option<(u32, Reason)> {
    let bad = |reason| matches!(reason, Reason::Undecodable | Reason::Overlap);
    let problems = &unit.program.functions[number].problems;
    problems.iter().find(|problem| bad(problem.reason)).map(|problem| (problem.offset, problem.reason))
}
