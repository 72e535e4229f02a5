//! Any words, any marks: no panic, and an answer to every query.

mod common;

use hotswap_isa::{Isa, Target};
use hotswap_program::{
    AddressSlot, BankMap, BlockExit, CodeSource, FixupKind, KernelNeeds, LinkerFixup, Liveness, LoopNest, MarkKind,
    Program, ProgramByte, SectionSymbol, Summaries, dump,
};
use proptest::prelude::*;

/// Words of branches, calls and jumps among any others; distances are small so that targets are inside the code.
fn word() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => any::<u32>(),
        // SOPP with an opcode below 64, and SOP1 with registers.
        4 => (0..64u32, -12i16..12).prop_map(|(op, to)| 0xbf80_0000 | op << 16 | u32::from(to as u16)),
        2 => (0..128u32, 0..32u32, 0..32u32).prop_map(|(op, to, from)| 0xbe80_0000 | to << 16 | op << 8 | from),
        2 => any::<[u8; 3]>().prop_map(|[a, b, c]| 0x8000_0000 | u32::from(a & 31) << 16 | u32::from(b) << 8 | u32::from(c)),
        1 => Just(0x7e00_0200),
    ]
}

fn mark() -> impl Strategy<Value = SectionSymbol<'static>> {
    (0..400u32, 0..200u32, 0..4u8, any::<bool>()).prop_map(|(offset, size, kind, exported)| {
        let kind = match kind {
            0 => MarkKind::Kernel(KernelNeeds { lanes: 32, preloads: exported, ..KernelNeeds::default() }),
            1 => MarkKind::Function,
            2 => MarkKind::Object,
            _ => MarkKind::Label,
        };
        SectionSymbol { offset, size, kind, name: "name".into(), exported }
    })
}

/// Instructions of gfx1250 that jump by tables, make such jumps' addresses, or branch elsewhere.
fn part() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        // s_load_b64 s[4:5], s[6:7], s8; s_set_pc_i64 s[4:5]
        3 => Just(vec![0xf400_2103, 0x1000_0000, 0xbe80_4804]),
        3 => Just(vec![0xf400_2103, 0x1000_0000]),
        1 => Just(vec![0xbe80_4804]),
        // s_mov_b64 s[4:5], s[10:11]; s_get_pc_i64 s[6:7] and a sum
        1 => Just(vec![0xbe84_010a]),
        1 => (0..200u32).prop_map(|distance| vec![0xbe86_4700, 0xa986_fe06, distance, 0]),
        4 => (32..36u32, -12i16..12).prop_map(|(op, to)| vec![0xbf80_0000 | op << 16 | u32::from(to as u16)]),
        2 => Just(vec![0xbf80_0000]),
        1 => Just(vec![0xbfb0_0000]),
    ]
}

/// Runs every query.
fn answers(source: &CodeSource<'_>) -> Result<(), TestCaseError> {
    common::around_agrees(source, 4);
    let program = Program::build(source.clone());
    let mut text = String::new();
    dump(&program, &mut text).unwrap();
    let banks = BankMap::of(&program);
    let summaries = Summaries::of(&program, &banks);
    for (number, function) in program.functions.iter().enumerate() {
        let liveness = Liveness::of(&program, number, &summaries, &banks);
        prop_assert_eq!(LoopNest::of(function).depth.len(), function.block_count());
        prop_assert!(program.needs(number).vgprs <= 1024);
        let ways = program.ways(number).unwrap();
        let mut end = function.start;
        for block in function.blocks() {
            prop_assert!(block.start >= end && block.start <= block.last && block.last < block.end);
            prop_assert!(function.is_instruction(block.start) && function.is_instruction(block.last));
            end = block.end;
        }
        for offset in (function.start..function.end).step_by(4).filter(|offset| function.is_instruction(*offset)) {
            prop_assert!(liveness.live_around(&program, &summaries, &banks, offset).is_some(), "{offset:#x}\n{text}");
            prop_assert!(banks.mode_before(&program, offset).is_some());
            let covers = program.covers(offset);
            prop_assert!(covers.clause.into_iter().chain(covers.delay).all(|cover| cover.offset < offset));
            ways.following(offset, 8, |_, _, _| true);
            ways.preceding(offset, 8, |_, _, _| true);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn any_words_make_a_program(
        words in prop::collection::vec(word(), 0..120),
        marks in prop::collection::vec(mark(), 0..8),
        fixups in prop::collection::vec((0..480u32, 0..15u32, 0..3u32, any::<i8>()), 0..6),
        target in prop::sample::select(vec!["gfx900", "gfx90a", "gfx1030", "gfx1100", "gfx1201", "gfx1250"]),
        linked in any::<bool>(),
    ) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let at = |at| ProgramByte { base: ProgramByte::CODE, at };
        let fixups = fixups.into_iter().filter_map(|(offset, kind, symbol, addend)| {
            Some(LinkerFixup { offset, kind: FixupKind::from_number(kind)?, symbol, addend: addend.into() })
        });
        let mut source = CodeSource {
            waves: Vec::new(),
            number: None,
            isa: Isa::new(Target::find(target).unwrap()),
            address: if linked { 0x1000 } else { 0 },
            bytes: &bytes,
            linked,
            marks,
            fixups: fixups.collect(),
            symbols: vec![at(0), at(64), ProgramByte { base: ProgramByte::EXTERN, at: 0 }],
            slots: vec![AddressSlot { place: at(0x9000), to: at(0x1010), constant: true }],
            shared: false,
            alone: true,
            hints: Vec::new(),
            entries: Vec::new(),
        };
        source.sort();
        answers(&source)?;
    }

    #[test]
    fn any_words_with_jumps_by_tables_make_a_program(
        parts in prop::collection::vec(part(), 1..24),
        marks in prop::collection::vec(mark(), 0..3),
        slots in prop::collection::vec((0..60u32, 0..12u8), 0..8),
        linked in any::<bool>(),
    ) {
        let bytes: Vec<u8> = parts.concat().iter().flat_map(|word| word.to_le_bytes()).collect();
        let at = |at| ProgramByte { base: ProgramByte::CODE, at };
        let address = if linked { 0x1000 } else { 0 };
        let kernel = MarkKind::Kernel(KernelNeeds { lanes: 32, ..KernelNeeds::default() });
        let whole = SectionSymbol { offset: 0, size: bytes.len() as u32, kind: kernel, name: "k".into(), exported: true };
        let slot = |(number, (dword, odd)): (usize, (u32, u8))| AddressSlot {
            place: at(0x9000 + number as u64 * 8),
            to: at(address + u64::from(dword * 4 + u32::from(odd == 0))),
            constant: odd % 2 == 0,
        };
        let mut source = CodeSource {
            waves: Vec::new(),
            number: None,
            isa: Isa::new(Target::find("gfx1250").unwrap()),
            address,
            bytes: &bytes,
            linked,
            marks: marks.into_iter().chain([whole]).collect(),
            fixups: Vec::new(),
            symbols: Vec::new(),
            slots: slots.into_iter().enumerate().map(slot).collect(),
            shared: false,
            alone: true,
            hints: Vec::new(),
            entries: Vec::new(),
        };
        source.sort();
        answers(&source)?;
        let named: Vec<u32> = source.slots.iter().filter_map(|slot| source.offset_of(slot.to)).collect();
        let program = Program::build(source);
        for function in &program.functions {
            for block in (0..function.block_count()).filter(|block| function.exit(*block) == BlockExit::Table) {
                let to: Vec<u32> = function.successors(block).iter().map(|to| function.block(*to as usize).start).collect();
                let own = named.iter().filter(|offset| (function.start..function.end).contains(offset));
                prop_assert!(own.clone().all(|offset| to.contains(offset)), "{to:?} {named:?}");
            }
        }
    }
}
