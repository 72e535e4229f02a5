//! Classifies instructions for the walk of a function, without decoding most of them.
//!
//! Invariants: an answer agrees with the decoded instruction; without an answer, the instruction has to be decoded. A
//! small amount of code gets no answers: making the tables takes longer than decoding it.

use crate::ops::{AddressOp, Ops};
use hotswap_isa::{ClassRule, ClassifiedInst, Classifier, Flag, Isa, Piece, TableEntry};
use std::sync::OnceLock;

/// Minimum bytes of code for which tables are worth making (a millisecond each).
const MUCH: usize = 256 << 10;

/// Execution continues after it, and the walk needs nothing else.
pub(crate) const PLAIN: u8 = 0;
/// Continues after it or at the target in the lower half of its only word.
pub(crate) const CONDITIONAL: u8 = 1;
/// Continues at the target in the lower half of its only word.
pub(crate) const BRANCH: u8 = 2;
pub(crate) const END: u8 = 3;

/// The tables for one target.
pub(crate) struct FlowClassifiers {
    isa: Isa,
    flow: Option<Classifier>,
    quiet: OnceLock<Classifier>,
}

impl FlowClassifiers {
    /// For `bytes` bytes; `patched` means that a linker fills in branch targets.
    pub(crate) fn new(isa: Isa, ops: &Ops, bytes: usize, patched: bool) -> Self {
        let flow = (bytes >= MUCH).then(|| {
            Classifier::new(isa, |entry| ClassRule { class: class(entry, ops, patched), ..ClassRule::default() })
        });
        Self { isa, flow, quiet: OnceLock::new() }
    }

    /// The classification of the instruction at the start of the bytes for the walk.
    #[inline(always)]
    pub(crate) fn classify_bytes(&self, bytes: &[u8]) -> Option<ClassifiedInst> {
        self.flow.as_ref()?.classify_bytes(bytes.first_chunk()?)
    }

    /// A classifier that only has answers for instructions without any relation to scalar registers.
    pub(crate) fn quiet(&self, ops: &Ops) -> Option<&Classifier> {
        self.flow
            .as_ref()
            .map(|_| self.quiet.get_or_init(|| Classifier::new(self.isa, |one| quiet_class_rule(one, ops))))
    }
}

fn quiet_entry_class(entry: TableEntry, ops: &Ops) -> Option<u8> {
    (!ops.line_of(entry).marks_scalars()).then_some(PLAIN)
}

fn quiet_class_rule(entry: TableEntry, ops: &Ops) -> ClassRule {
    ClassRule { class: quiet_entry_class(entry, ops), except: Vec::new(), without_scalars: true }
}

fn class(entry: TableEntry, ops: &Ops, patched: bool) -> Option<u8> {
    let op = ops.line_of(entry).op;
    if op.is_passed() {
        return Some(PLAIN);
    }
    // The trap ID decides whether a trap ends the wave.
    if op != AddressOp::Branch || entry.is(Flag::Call) || entry.is(Flag::Trap) {
        return None;
    }
    if entry.is(Flag::Return) {
        return Some(END);
    }
    if !entry.is(Flag::Branch) {
        return Some(PLAIN);
    }
    let lower_half = matches!(entry.branch_distance(), Some([Piece { at: 0, from: 0, width: 16 }]));
    let stated = lower_half && entry.is(Flag::Salu) && entry.bytes() == 4 && !patched;
    stated.then_some(if entry.is(Flag::NoFallthrough) { BRANCH } else { CONDITIONAL })
}

/// The target of a four-byte branch seen at an offset: beyond every offset if not in the section.
#[inline]
pub(crate) fn branch_target(bytes: &[u8], offset: u32) -> i64 {
    let half = bytes.get(offset as usize..).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or_default();
    i64::from(offset) + 4 + i64::from(i16::from_le_bytes(half)) * 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cfg::const_prop::DefUseList;
    use hotswap_isa::Target;
    use hotswap_isa::effects::ControlFlow;

    /// Instructions of every line, with registers or anything else as operands.
    fn words(isa: Isa) -> impl Iterator<Item = [u8; 20]> {
        let mut state = 1u64;
        let mut next = move || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            state >> 29
        };
        TableEntry::all_entries().filter(move |entry| entry.available(isa)).flat_map(move |entry| {
            let (value, mask) = entry.fixed();
            let mut bytes = [[0; 20]; 8];
            for (turn, bytes) in bytes.iter_mut().enumerate() {
                let wild = u128::from(next()) << 64 | u128::from(next()) | u128::from(next()) << 31;
                let vectors = wild & !(0x1ff | 0x7ff_ffff << 32) | 0x102 | 0x402_0501 << 32;
                let random = if turn % 2 == 0 { vectors } else { wild };
                bytes[..16].copy_from_slice(&(random & !mask | value).to_le_bytes());
            }
            bytes
        })
    }

    #[test]
    fn answers_are_those_of_the_decoder() {
        let ops = Ops::new();
        for name in ["gfx900", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201", "gfx1250"] {
            let isa = Isa::new(Target::find(name).unwrap());
            let sift = FlowClassifiers::new(isa, &ops, MUCH, false);
            let (mut seen, mut counts) = (0, [0; 4]);
            for bytes in words(isa) {
                seen += 1;
                let Some(answer) = sift.classify_bytes(&bytes) else { continue };
                counts[usize::from(answer.class)] += 1;
                let inst = isa.decode(&bytes).unwrap();
                assert_eq!(answer.len, inst.len(), "{inst:?}");
                // Far from the section's first byte, so that no target is before it.
                let target = branch_target(&bytes, 0).wrapping_add(1 << 32) as u64;
                let flow = match answer.class {
                    PLAIN => ControlFlow::Next,
                    END => ControlFlow::End,
                    class => ControlFlow::Branch { target, conditional: class == CONDITIONAL },
                };
                assert_eq!(inst.control_flow(1 << 32, isa), flow, "{inst:?}");
                let op = ops.address_op(&inst);
                assert!(op == AddressOp::Branch || op.is_passed() && answer.class == PLAIN, "{inst:?}");
            }
            assert!(counts[0] * 3 > seen && counts[1..].iter().all(|count| *count > 0), "{name}: {counts:?} of {seen}");
        }
    }

    #[test]
    fn what_is_quiet_touches_nothing() {
        let ops = Ops::new();
        for name in ["gfx900", "gfx90a", "gfx1030", "gfx1250"] {
            let isa = Isa::new(Target::find(name).unwrap());
            let sift = FlowClassifiers::new(isa, &ops, MUCH, false);
            let (quiet, mut count) = (sift.quiet(&ops).unwrap(), 0);
            for bytes in words(isa).filter(|bytes| quiet.classify_bytes(bytes).is_some()) {
                let inst = isa.decode(&bytes).unwrap();
                let mut touches = DefUseList::new(isa);
                touches.record_touches(0, &inst, ops.line(&inst));
                assert!(touches.is_empty(), "{inst:?}");
                count += 1;
            }
            assert!(count > 1000, "{name}: {count}");
        }
    }

    #[test]
    fn little_code_is_decoded() {
        let (ops, isa) = (Ops::new(), Isa::new(Target::find("gfx1250").unwrap()));
        let sift = FlowClassifiers::new(isa, &ops, MUCH - 4, false);
        assert!(sift.quiet(&ops).is_none() && words(isa).all(|bytes| sift.classify_bytes(&bytes).is_none()));
    }

    #[test]
    fn branches_that_a_linker_fills_in_are_decoded() {
        let (ops, isa) = (Ops::new(), Isa::new(Target::find("gfx1250").unwrap()));
        let sift = FlowClassifiers::new(isa, &ops, MUCH, true);
        let classes = words(isa).filter_map(|bytes| Some(sift.classify_bytes(&bytes)?.class));
        assert!(classes.collect::<std::collections::BTreeSet<u8>>() == [PLAIN, END].into());
    }
}
