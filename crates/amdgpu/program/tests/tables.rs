//! Large tables: edges are shared, and exceeded limits are reported.

use hotswap_isa::{Isa, Target};
use hotswap_program::{
    AddressSlot, BankMap, BlockExit, CodeSource, KernelNeeds, Liveness, LoopNest, MarkKind, ProblemReason, Program,
    ProgramByte, SectionSymbol, Summaries,
};

/// `s_load_b64 s[4:5], s[6:7], s8`, `s_set_pc_i64 s[4:5]`.
const JUMP: [u32; 3] = [0xf400_2103, 0x1000_0000, 0xbe80_4804];
const NOP: u32 = 0xbf80_0000;
const END: u32 = 0xbfb0_0000;

/// A kernel of `jumps` consecutive jumps, each before an `s_nop`, and then `nops` more of these; words name as many of
/// them.
fn code(jumps: usize, nops: usize) -> Vec<u8> {
    let mut words: Vec<u32> = (0..jumps).flat_map(|_| [JUMP[0], JUMP[1], JUMP[2], NOP]).collect();
    words.extend(std::iter::repeat_n(NOP, nops));
    words.push(END);
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn program(bytes: &[u8], targets: impl Iterator<Item = u32>) -> Program<'_> {
    let place = |at| ProgramByte { base: ProgramByte::CODE, at };
    let slot = |(number, offset): (usize, u32)| AddressSlot {
        place: place(0x100_0000 + number as u64 * 8),
        to: place(u64::from(offset)),
        constant: false,
    };
    let kind = MarkKind::Kernel(KernelNeeds { lanes: 32, ..KernelNeeds::default() });
    let size = bytes.len() as u32;
    Program::build(CodeSource {
        waves: Vec::new(),
        number: None,
        isa: Isa::new(Target::find("gfx1250").unwrap()),
        address: 0,
        bytes,
        linked: true,
        marks: vec![SectionSymbol { offset: 0, size, kind, name: "k".into(), exported: true }],
        fixups: Vec::new(),
        symbols: Vec::new(),
        slots: targets.enumerate().map(slot).collect(),
        shared: false,
        alone: true,
        hints: Vec::new(),
        entries: Vec::new(),
    })
}

#[test]
fn many_jumps_share_many_targets() {
    let (jumps, targets) = (16, 4096 - 16);
    let bytes = code(jumps, targets);
    let first = jumps as u32 * 16;
    let behind = (0..jumps as u32).map(|jump| jump * 16 + 12);
    let program = program(&bytes, behind.chain((0..targets as u32).map(|nop| first + nop * 4)));
    let function = &program.functions[0];
    assert!(function.is_closed() && function.entries.len() == 1, "{:?}", function.problems);
    let tables = (0..function.block_count()).filter(|block| function.exit(*block) == BlockExit::Table);
    assert!(tables.clone().count() == jumps && tables.clone().all(|block| function.successors(block).len() == 4096));
    assert!(tables.clone().all(|block| !function.leaves(block)));
    assert!(function.memory() < bytes.len() * 40, "{} bytes", function.memory());
    let banks = BankMap::by_convention(&program);
    let liveness = Liveness::of(&program, 0, &Summaries::of(&program, &banks), &banks);
    assert!(liveness.visit_count() < function.block_count() * 8, "{} visits", liveness.visit_count());
    assert_eq!(LoopNest::of(function).depth.len(), function.block_count());
}

#[test]
fn more_targets_than_are_followed_are_a_problem() {
    let bytes = code(1, 4097);
    let program = program(&bytes, (0..4097).map(|nop| 16 + nop * 4));
    let reasons: Vec<ProblemReason> = program.functions[0].problems.iter().map(|problem| problem.reason).collect();
    assert_eq!(reasons, [ProblemReason::CrowdedJump]);
}
