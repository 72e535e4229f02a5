//! A library of a distribution, linked without relocations: every code object is identical after a rewrite without
//! edits. With instructions inserted before the first one of every function it is the same program, or the refusal
//! names the function that prevents it.

use hotswap_code_object::image::ObjectImage;
use hotswap_code_object::is_code_object;
use hotswap_program::{BlockExit, CallDestination, CodeSource, Program};
use hotswap_rewrite::{CodeEdits, RewriteOptions, rewrite_object};
use hotswap_userland::{ENV_LIBRARIES, say, skip};
use std::collections::BTreeMap;

const NOP: [u8; 4] = 0xbf80_0000_u32.to_le_bytes();

/// The library that `cargo xtask test` downloads.
fn library() -> Option<Vec<u8>> {
    let libraries = std::env::var_os(ENV_LIBRARIES)?;
    let is_it = |path: &std::path::PathBuf| path.to_string_lossy().contains("librocrand.so");
    std::fs::read(std::env::split_paths(&libraries).find(is_it)?).ok()
}

/// The parts of a program that do not depend on positions: functions by their order, with calls, exits and counts of
/// instructions.
fn shape(program: &Program<'_>) -> Vec<String> {
    let functions = program.functions.iter().map(|function| {
        let offset = |place: u32| program.function_at(place).map(|(number, _)| number);
        let calls: Vec<String> = function
            .calls
            .iter()
            .map(|call| match call.callee {
                CallDestination::Function { function, .. } => format!("f{function}"),
                other => format!("{:?}", std::mem::discriminant(&other)),
            })
            .collect();
        let values: Vec<_> = function
            .pc_values
            .iter()
            .map(|value| program.source.offset_of(value.to).map_or("data".to_owned(), |to| format!("{:?}", offset(to))))
            .collect();
        // A block is named by the instructions before it: padding before loops may appear or disappear.
        let (mut kept, mut places) = (0, Vec::with_capacity(function.block_count()));
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for block in function.blocks() {
            places.push(kept);
            let mut at = block.start;
            while at < block.end {
                let Some(inst) = program.decode(at) else { break };
                if !["s_nop", "s_clause", "s_delay_alu"].contains(&inst.mnemonic()) {
                    *counts.entry(inst.mnemonic()).or_default() += 1;
                    kept += 1;
                }
                at += u32::from(inst.len());
            }
        }
        let ends = function.blocks().enumerate().filter(|(_, block)| block.exit != BlockExit::Fall);
        let blocks: Vec<(BlockExit, Vec<usize>)> = ends
            .map(|(number, block)| {
                let to = function.successors(number).into_iter().map(|to| places[to as usize]);
                (block.exit, to.collect())
            })
            .collect();
        format!("{} {calls:?} {values:?} {blocks:?} {counts:?} {:?}", program.name(function), function.problems.len())
    });
    functions.collect()
}

fn sections(data: &[u8]) -> Vec<usize> {
    let image = ObjectImage::parse(data).unwrap();
    (0..image.sections.len())
        .filter(|number| image.sections[*number].is_code() && image.sections[*number].size > 0)
        .collect()
}

#[test]
fn code_objects_of_a_library_come_back_and_take_instructions() {
    let Some(library) = library() else {
        skip("layout engine: a library", "HOTSWAP_TEST_LIBRARIES names no librocrand");
        return;
    };
    let (mut same, mut changed, mut unknown, mut refused) = (0, 0, 0, BTreeMap::<String, usize>::new());
    let contents = hotswap_bundle::find_containers(&library);
    assert!(contents.problems.is_empty(), "{:?}", contents.problems);
    for found in &contents.found {
        let device = found.read().unwrap();
        for image in device.images.iter().filter(|image| is_code_object(&image.data)) {
            let name = image.id.as_deref().unwrap_or("code object");
            let again = rewrite_object(&image.data, &BTreeMap::new(), &RewriteOptions::default());
            assert!(again.unwrap_or_else(|error| panic!("{name}: {error}")).bytes == *image.data, "{name} comes back");
            same += 1;
            if same % EVERY == 1 {
                match judge(name, &image.data) {
                    Ok(true) => changed += 1,
                    Ok(false) => unknown += 1,
                    Err(why) => *refused.entry(why).or_default() += 1,
                }
            }
        }
    }
    say(&format!(
        "layout engine: {same} code objects of librocrand come back, {changed} take instructions, {unknown} are for gfx803"
    ));
    assert!(same > 100 && changed > 10 && refused.is_empty(), "{same} {changed} {refused:?}");
}

/// One of this many code objects is changed.
const EVERY: usize = 7;

/// Inserts instructions before every function and every 61st instruction. The error is the refusal; `false` if nothing
/// was inserted: Debian builds for gfx803, too, whose instructions are not known.
fn judge(name: &str, data: &[u8]) -> Result<bool, String> {
    let section = sections(data);
    let sources = match CodeSource::read(data) {
        Ok(sources) => sources,
        Err(_) if name.ends_with("gfx803") => return Ok(false),
        Err(error) => return Err(error.what),
    };
    let programs: Vec<Program<'_>> = sources.into_iter().map(Program::build).collect();
    let (mut edits, mut count) = (BTreeMap::new(), 0);
    for (section, program) in section.iter().zip(&programs) {
        let list: &mut CodeEdits = edits.entry(*section).or_default();
        for block in program.functions.iter().flat_map(|function| function.blocks()) {
            let mut at = block.start;
            while at < block.end {
                let Some(inst) = program.decode(at) else { break };
                count += 1;
                let begins = program.function_at(at).is_some_and(|(_, function)| function.start == at);
                if begins || count % 61 == 0 && inst.mnemonic() != "s_nop" {
                    list.insert_before(u64::from(at), &NOP, &[]);
                }
                at += u32::from(inst.len());
            }
        }
    }
    let new = rewrite_object(data, &edits, &RewriteOptions::default()).map_err(|error| error.what)?.bytes;
    let after: Vec<Program<'_>> = CodeSource::read(&new).unwrap().into_iter().map(Program::build).collect();
    for (before, after) in programs.iter().zip(&after) {
        let (before, after) = (shape(before), shape(after));
        assert_eq!(before.len(), after.len(), "{name}: functions");
        if let Some((a, b)) = before.iter().zip(&after).find(|(a, b)| a != b) {
            let common = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
            let near = |text: &str| text.get(common.saturating_sub(80)..common + 120).unwrap_or_default().to_owned();
            panic!("{name}: {} became {}", near(a), near(b));
        }
    }
    Ok(true)
}
