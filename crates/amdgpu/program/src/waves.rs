//! The functions of a section with code in both wave sizes.
//!
//! Invariants: functions of both sizes are found by two passes over the same names, and each is taken from the pass of
//! its size; calls lead to the function at the same offset.
//!
//! Absent on purpose: functions that kernels of both sizes call. They hold nothing that depends on the size, or are wrong.

use crate::calls::CallDestination;
use crate::cfg::builder;
use crate::function::Function;
use crate::ops::Ops;
use crate::source::{CodeSource, FunctionWave, WAVES};
use hotswap_isa::Wave;

/// The functions of a section with code in both sizes, each in its own. Sizes that only callers state are added to the
/// source.
pub(crate) fn functions(source: &mut CodeSource<'_>, ops: &Ops, offsets: Option<&[u32]>) -> Vec<Function> {
    let passes = WAVES.map(|wave| {
        let isa = source.isa.with_wave(wave);
        builder::find_functions(&CodeSource { isa, waves: Vec::new(), ..source.clone() }, ops, offsets)
    });
    add_callers(source, &passes);
    let mut functions: Vec<Function> = Vec::new();
    let mut numbers: [Vec<Option<u32>>; 2] = [Vec::new(), Vec::new()];
    let starts = passes.each_ref().map(|pass| pass.iter().map(|function| function.start).collect::<Vec<u32>>());
    for (number, pass) in passes.into_iter().enumerate() {
        functions.extend(pass.into_iter().filter(|function| stated_wave_index(source, function.start) == number));
    }
    functions.sort_by_key(|function| function.start);
    for (number, starts) in starts.iter().enumerate() {
        numbers[number] =
            starts.iter().map(|start| find_function_start(start, &functions).map(|number| number as u32)).collect();
    }
    for function in &mut functions {
        let numbers = &numbers[stated_wave_index(source, function.start)];
        for call in &mut function.calls {
            if let CallDestination::Function { function, entry } = call.callee {
                let moved = numbers.get(function as usize).copied().flatten();
                call.callee =
                    moved.map_or(CallDestination::Unknown, |function| CallDestination::Function { function, entry });
            }
        }
    }
    functions
}

fn stated_wave_index(source: &CodeSource<'_>, start: u32) -> usize {
    usize::from(source.isa_at(start).wave() == Wave::W64)
}

fn find_function_start(start: &u32, functions: &[Function]) -> Option<usize> {
    functions.binary_search_by_key(start, |function| function.start).ok()
}

/// Gives functions without a size that of a caller, until nothing is added.
fn add_callers(source: &mut CodeSource<'_>, passes: &[Vec<Function>; 2]) {
    loop {
        let mut added = Vec::new();
        for (wave, pass) in WAVES.into_iter().zip(passes) {
            for function in pass.iter().filter(|function| has_own_wave(function.start, &source.waves, &wave)) {
                for call in &function.calls {
                    if let CallDestination::Function { entry, .. } = call.callee {
                        added.push(FunctionWave { offset: entry, wave: Some(wave) });
                    }
                }
            }
        }
        let before: usize = source.waves.iter().filter(|row| row.wave.is_some()).count();
        for row in added {
            match source.waves.binary_search_by_key(&row.offset, |known| known.offset) {
                Ok(number) => source.waves[number].wave = source.waves[number].wave.or(row.wave),
                Err(number) => source.waves.insert(number, row),
            }
        }
        if source.waves.iter().filter(|row| row.wave.is_some()).count() == before {
            return;
        }
    }
}

fn has_own_wave(start: u32, source_waves: &[FunctionWave], wave: &Wave) -> bool {
    let row = source_waves.binary_search_by_key(&start, |row| row.offset);
    row.is_ok_and(|row| source_waves[row].wave == Some(*wave))
}
