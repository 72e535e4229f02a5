//! The functions of a section with code in both wave sizes.
//!
//! Invariants: functions of both sizes are found by two passes over the same names, and each is taken from the pass of
//! its size; calls lead to the function at the same offset.
//!
//! Functions that kernels of both sizes call hold nothing that depends on the size, or are wrong; their size is unknown.

use crate::calls::CallDestination;
use crate::cfg::builder;
use crate::function::Function;
use crate::ops::Ops;
use crate::source::{CodeSource, FunctionWave, WAVES};
use hotswap_isa::Wave;
use std::collections::BTreeMap;

/// The functions of a section with code in both sizes, each in its own. Sizes that only callers state are
/// added to the source.
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

/// Gives functions without a size that of their callers. Code that kernels of both sizes reach is valid in both, and keeps none.
fn add_callers(source: &mut CodeSource<'_>, passes: &[Vec<Function>; 2]) {
    let stated = source.waves.iter().filter_map(|row| Some((row.offset, row.wave?)));
    let mut callers = CallerWaves { stated: stated.collect(), reached: BTreeMap::new() };
    while passes.iter().enumerate().any(|(number, pass)| callers.add_callees(number, pass)) {}
    for (offset, reached) in callers.reached {
        let wave = match reached {
            [true, false] => Some(WAVES[0]),
            [false, true] => Some(WAVES[1]),
            _ => None,
        };
        match source.waves.binary_search_by_key(&offset, |known| known.offset) {
            Ok(number) => source.waves[number].wave = wave,
            Err(number) => source.waves.insert(number, FunctionWave { offset, wave }),
        }
    }
}

/// The wave sizes of functions, by offset.
struct CallerWaves {
    stated: BTreeMap<u32, Wave>,
    /// For functions that state none: by which of [`WAVES`] they are reached.
    reached: BTreeMap<u32, [bool; 2]>,
}

impl CallerWaves {
    /// Adds the size of this number to what functions of that size call. Returns whether one of these had not been reached by it.
    fn add_callees(&mut self, number: usize, pass: &[Function]) -> bool {
        let mut is_changed = false;
        for function in pass {
            if !self.is_of_wave(function.start, number) {
                continue;
            }
            for call in &function.calls {
                let CallDestination::Function { entry, .. } = call.callee else { continue };
                if !self.stated.contains_key(&entry) {
                    let reached = &mut self.reached.entry(entry).or_default()[number];
                    is_changed |= !std::mem::replace(reached, true);
                }
            }
        }
        is_changed
    }

    fn is_of_wave(&self, start: u32, number: usize) -> bool {
        match self.stated.get(&start) {
            Some(wave) => *wave == WAVES[number],
            None => self.reached.get(&start).is_some_and(|reached| reached[number]),
        }
    }
}
