//! Any words, any marks: no panic, and an answer to every question.

mod common;

use hotswap_isa::{Isa, Target};
use hotswap_program::{
    BankMap, Fixup, FixupKind, KernelNeeds, Liveness, LoopNest, Mark, MarkKind, Place, Program, Slot, Source,
    Summaries, dump,
};
use proptest::prelude::*;

/// Words of branches, calls and jumps among any others; distances are small so that they lead somewhere.
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

fn mark() -> impl Strategy<Value = Mark<'static>> {
    (0..400u32, 0..200u32, 0..4u8, any::<bool>()).prop_map(|(offset, size, kind, exported)| {
        let kind = match kind {
            0 => MarkKind::Kernel(KernelNeeds { lanes: 32, preloads: exported, ..KernelNeeds::default() }),
            1 => MarkKind::Function,
            2 => MarkKind::Object,
            _ => MarkKind::Label,
        };
        Mark { offset, size, kind, name: "name".into(), exported }
    })
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
        let at = |at| Place { base: Place::CODE, at };
        let fixups = fixups.into_iter().filter_map(|(offset, kind, symbol, addend)| {
            Some(Fixup { offset, kind: FixupKind::from_number(kind)?, symbol, addend: addend.into() })
        });
        let mut source = Source {
            isa: Isa::new(Target::find(target).unwrap()),
            address: if linked { 0x1000 } else { 0 },
            bytes: &bytes,
            linked,
            marks,
            fixups: fixups.collect(),
            symbols: vec![at(0), at(64), Place { base: Place::EXTERN, at: 0 }],
            slots: vec![Slot { place: at(0x9000), to: at(0x1010), constant: true }],
            shared: false,
            alone: true,
            hints: Vec::new(),
        };
        source.sort();
        common::around_agrees(&source, 4);
        let program = Program::build(source);
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
                prop_assert!(liveness.around(&program, &summaries, &banks, offset).is_some(), "{offset:#x}\n{text}");
                prop_assert!(banks.before(&program, offset).is_some());
                let covers = program.covers(offset);
                prop_assert!(covers.clause.into_iter().chain(covers.delay).all(|cover| cover.offset < offset));
                ways.following(offset, 8, |_, _, _| true);
                ways.preceding(offset, 8, |_, _, _| true);
            }
        }
    }
}
