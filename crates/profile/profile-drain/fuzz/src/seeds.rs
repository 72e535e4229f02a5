//! Writes the first inputs of each fuzz target: the object of the tests, in each version of the format.

#![allow(missing_docs, dead_code)]

#[path = "../../tests/common/mod.rs"]
mod common;

use common::{BASE, object};
use hotswap_profile_drain::bytes::Span;
use hotswap_profile_drain::elf::Sections;
use hotswap_profile_drain::layout::LAYOUTS;
use std::path::Path;
use std::{env, fs, io};

/// Offset of the table in the memory: between the object's names and its counters.
const TABLE: u16 = 0x200;

fn main() -> io::Result<()> {
    let Some(directory) = env::args_os().nth(1) else { return Err(io::Error::other("usage: seeds DIRECTORY")) };
    for layout in &LAYOUTS {
        let (memory, file, sections) = object(layout);
        let size = (memory.len() as u16).to_le_bytes();
        let name = format!("version-{}", layout.version);
        put(Path::new(&directory).join("drained_file"), &name, &[&size, &memory, &file])?;
        let memory = with_table(memory, &sections, layout.version);
        put(Path::new(&directory).join("drained_table"), &name, &[&TABLE.to_le_bytes(), &memory])?;
    }
    Ok(())
}

fn put(directory: impl AsRef<Path>, name: &str, parts: &[&[u8]]) -> io::Result<()> {
    fs::create_dir_all(&directory)?;
    fs::write(directory.as_ref().join(name), parts.concat())
}

/// The table, followed by its version.
fn with_table(mut memory: Vec<u8>, sections: &Sections, version: u32) -> Vec<u8> {
    let bounds = |span: Span| if span.size == 0 { [0, 0] } else { [BASE + span.address, BASE + span.address + span.size] };
    let spans = [sections.names, sections.counters, sections.data, sections.uniform];
    let place = u64::from(TABLE) + 72;
    let words = spans.into_iter().flat_map(bounds).chain([BASE + place, u64::from(version)]);
    for (index, word) in words.enumerate() {
        let at = usize::from(TABLE) + 8 * index;
        memory[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    memory
}
