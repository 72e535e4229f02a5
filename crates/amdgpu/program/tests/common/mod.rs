//! Helpers of several tests.

use hotswap_program::{BankMap, CallDestination, CodeSource, Function, Liveness, Program, Summaries};

/// The known facts of a function, with offsets in place of numbers of functions.
fn known(program: &Program<'_>, number: usize) -> String {
    let function = &program.functions[number];
    let callee = |callee: CallDestination| match callee {
        CallDestination::Function { function, entry } => {
            format!("{:#x} at {entry:#x}", program.functions[function as usize].start)
        }
        other => format!("{other:?}"),
    };
    let calls: Vec<_> = function.calls.iter().map(|call| (call.offset, callee(call.callee), call.link)).collect();
    let edges: Vec<_> = (0..function.block_count()).map(|block| function.successors(block)).collect();
    let Function { start, end, mark, entries, problems, pc_values, .. } = function;
    let blocks: Vec<_> = function.blocks().collect();
    format!("{start:#x}..{end:#x} {mark:?} {entries:?} {blocks:?} {edges:?} {calls:?} {problems:?} {pc_values:?}")
}

/// The live registers at the blocks of a function, and the bank modes there.
fn states(program: &Program<'_>, number: usize) -> Vec<String> {
    let maps = [BankMap::of(program), BankMap::by_convention(program)];
    let summaries = Summaries::of(program, &maps[1]);
    let liveness = Liveness::of(program, number, &summaries, &maps[1]);
    let blocks = 0..program.functions[number].block_count();
    blocks
        .map(|block| {
            format!("{:?} {:?}", liveness.at_block(block), [0, 1].map(|map| maps[map].at_block(number, block)))
        })
        .collect()
}

/// A program around each of some functions agrees with the whole program about them.
pub(crate) fn around_agrees(source: &CodeSource<'_>, most: usize) {
    let whole = Program::build(source.clone());
    let step = whole.functions.len().div_ceil(most.max(1)).max(1);
    for (number, wanted) in whole.functions.iter().enumerate().step_by(step) {
        let Some(block) = wanted.blocks().last() else { continue };
        let part = Program::around(source.clone(), &[block.last]);
        let found = part.function_at(block.last).unwrap_or_else(|| panic!("{:#x} is not there", wanted.start)).0;
        assert_eq!(states(&whole, number), states(&part, found), "{}", whole.name(wanted));
        for (number, function) in part.functions.iter().enumerate() {
            let same = whole.function_at(function.start).expect("the whole has all").0;
            assert_eq!(known(&whole, same), known(&part, number));
        }
        let calls =
            |program: &Program<'_>| program.functions.iter().map(|function| function.calls.len()).sum::<usize>();
        let values = |program: &Program<'_>| program.functions.iter().map(|f| f.pc_values.len()).sum::<usize>();
        assert_eq!((calls(&whole), values(&whole)), (calls(&part), values(&part)));
    }
}
