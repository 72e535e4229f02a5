//! Real code: the functions of all code objects for a target in the given files.
//!
//! Invariant: only bytes inside of function symbols are taken, as consecutive whole instructions; padding between
//! functions would flatter a decoder that skips it fast and penalize one that does not.

use hotswap_code_object::{CodeMap, SymbolKind};
use hotswap_isa::{Isa, Target, Wave};
use hotswap_report::Diagnostic;
use std::collections::BTreeMap;
use std::path::Path;

/// Functions of one target.
#[derive(Debug)]
pub(crate) struct Corpus {
    pub(crate) name: String,
    /// The settings for decoding its bytes.
    pub(crate) isa: Isa,
    /// The functions, one after the other.
    pub(crate) bytes: Vec<u8>,
    /// How many there are.
    pub(crate) functions: usize,
}

/// Code for each target in the files.
///
/// # Errors
/// If a file cannot be read or lacks containers.
pub(crate) fn read(files: &[impl AsRef<Path>]) -> Result<Vec<Corpus>, Diagnostic> {
    let mut found: BTreeMap<(String, bool), Corpus> = BTreeMap::new();
    for file in files {
        let bytes = hotswap_files::open_input(file.as_ref())?;
        for container in hotswap_bundle::find_containers(&bytes).found {
            for image in container.read().map_err(|error| error.in_file(file.as_ref()))?.images {
                if let Ok(map) = CodeMap::read(&image.data) {
                    add(&mut found, &map);
                }
            }
        }
    }
    Ok(found.into_values().collect())
}

fn add(found: &mut BTreeMap<(String, bool), Corpus>, map: &CodeMap<'_>) {
    let Some(target) = map.processor.and_then(|processor| Target::find(processor.name)) else { return };
    for section in &map.sections {
        // One function may have several names.
        let mut end = 0;
        for symbol in &section.symbols {
            let range = symbol.offset..symbol.offset + symbol.size;
            let (true, Some(bytes)) = (range.start >= end, section.bytes.get(range.clone())) else { continue };
            let wave64 = match &symbol.kind {
                SymbolKind::Kernel(facts) => facts.lanes == 64,
                SymbolKind::Function => false,
                SymbolKind::Object | SymbolKind::Label => continue,
            };
            end = range.end;
            let corpus = found.entry((target.name.to_owned(), wave64)).or_insert_with(|| {
                let isa = Isa::new(target);
                let isa = if wave64 { isa.with_wave(Wave::W64) } else { isa };
                Corpus { name: target.name.to_owned(), isa, bytes: Vec::new(), functions: 0 }
            });
            corpus.bytes.extend_from_slice(bytes);
            corpus.functions += 1;
        }
    }
}

impl Corpus {
    /// The first functions up to about so many bytes, ending with a whole instruction.
    pub(crate) fn start(&self, most: usize) -> &[u8] {
        let mut at = 0;
        while at < most {
            let Some(rest) = self.bytes.get(at..).filter(|rest| !rest.is_empty()) else { break };
            at += usize::from(self.isa.instruction_size(rest).unwrap_or(4));
        }
        self.bytes.get(..at).unwrap_or(&self.bytes)
    }

    /// The functions repeated until there are at least so many bytes.
    pub(crate) fn repeated(&self, least: usize) -> Vec<u8> {
        let times = least.div_ceil(self.bytes.len().max(1));
        self.bytes.repeat(times)
    }
}
