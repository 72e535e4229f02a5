//! The source file of each function, where debug information states it.
//!
//! Invariant: what nothing states is not known.
//!
//! Absent on purpose: symbols of type FILE, which LLVM's AMDGPU assembler does not write, and the linker's inputs, whose names are
//! those of temporary files.

use crate::stated::RelocatableElf;
use crate::table::Function;
use hotswap_code_object::SourceUnits;
use object::{Object, ObjectSection};
use std::collections::HashMap;

/// Gives each function its source; returns the sources.
pub(crate) fn state_sources(data: &[u8], file: &RelocatableElf<'_>, functions: &mut [Function]) -> Vec<String> {
    let units = SourceUnits::read(data);
    let sections: HashMap<&str, (usize, u64)> = file
        .sections()
        .filter_map(|section| Some((section.name().ok()?, (section.index().0, section.address()))))
        .collect();
    let (mut sources, mut numbers) = (Vec::new(), HashMap::new());
    for function in functions {
        let Some((section, start)) = sections.get(function.section.as_str()).copied() else { continue };
        let Some(name) = units.unit_at(section, function.address.wrapping_sub(start)) else { continue };
        let number = *numbers.entry(name).or_insert_with(|| {
            sources.push(name.to_owned());
            sources.len() as u32 - 1
        });
        function.source = Some(number);
    }
    sources
}
