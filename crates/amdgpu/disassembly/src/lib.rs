//! The instructions of a code object as assembly text or JSON, streamed: the text of a large library has gigabytes.
//!
//! | step | module |
//! | --- | --- |
//! | chunks | [`chunk`]: a section cut at its symbols |
//! | walk | [`walk`]: instructions, padding, data and bytes that are no instruction, in order, several parts at a time |
//! | decode | [`instruction_reader`]: the decoder with the state that a listing follows; `pc`: addresses that code computes |
//! | write | [`assembly`] or [`json`], through [`out`]; [`color`]; [`names`]: C++ names in their source form |
//!
//! Invariants: every byte of a range is shown exactly once. Bytes that are no instruction are shown as bytes and counted,
//! never guessed.
//!
//! Absent on purpose: choosing an image of a file, and messages about it (the command `hotswap disasm`).

pub mod assembly;
pub mod chunk;
pub mod color;
pub mod instruction_reader;
pub mod json;
pub mod names;
pub mod out;
mod pc;
pub mod walk;

#[cfg(test)]
mod tests {
    use crate::assembly::Assembly;
    use crate::instruction_reader::InstructionReader;
    use crate::json::Json;
    use crate::names::NameStyle;
    use crate::out::TextOutput;
    use crate::walk::{SectionView, Tally};
    use hotswap_code_object::{CodeMap, CodeSection, CodeSymbol, ObjectKind, SymbolKind};
    use serde_json::Value;
    use std::slice;

    /// A pseudo-random sequence, the same in every run.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        fn below(&mut self, limit: usize) -> usize {
            (self.next() % limit.max(1) as u64) as usize
        }
    }

    /// Bytes that look like code: random words, padding, branches to arbitrary targets.
    fn code(random: &mut Random, size: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < size {
            let word = match random.below(8) {
                0 => 0,
                1 => 0xbf9f_0000,
                2 => 0xbfa0_0000 | random.below(64) as u32,
                3 => 0xbfa0_ffff - random.below(64) as u32,
                4 => 0xbe80_0000 | random.next() as u32 & 0xffff,
                _ => random.next() as u32,
            };
            bytes.extend(word.to_le_bytes().repeat(if word == 0 { random.below(9) + 1 } else { 1 }));
        }
        bytes.truncate(size);
        bytes
    }

    fn symbols(random: &mut Random, size: usize) -> Vec<CodeSymbol<'static>> {
        let kinds = [SymbolKind::Function, SymbolKind::Object, SymbolKind::Label];
        let mut symbols: Vec<_> = (0..random.below(8))
            .map(|number| {
                let offset = random.below(size) & if random.below(4) > 0 { !3 } else { !0 };
                let kind = kinds[random.below(3)].clone();
                let size = random.below(2) * random.below(size - offset + 1);
                CodeSymbol { name: format!("s{number}").into(), kind, offset, size, is_global: true }
            })
            .collect();
        symbols.sort_by_key(|symbol| symbol.offset);
        symbols
    }

    fn map<'m>(bytes: &'m [u8], symbols: Vec<CodeSymbol<'m>>, kind: ObjectKind) -> CodeMap<'m> {
        let (name, relocations, address) =
            (".text".into(), Vec::new(), if kind == ObjectKind::Linked { 0x1000 } else { 0 });
        let section = CodeSection { number: None, name, address, range: 0..bytes.len(), bytes, symbols, relocations };
        let (processor, target_id, problems) = (None, None, Vec::new());
        CodeMap { kind, machine: 0, processor, target_id, sections: vec![section], empty_kernels: Vec::new(), problems }
    }

    /// For arbitrary bytes and names, every byte is shown once, and the JSON form is valid JSON.
    #[test]
    fn every_byte_is_shown_exactly_once() {
        let names = NameStyle { demangle: true };
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for target in hotswap_isa::Target::all_targets() {
            for round in 0..25 {
                let size = random.below(300) + 1;
                let bytes = code(&mut random, size);
                let kind = if round % 2 == 0 { ObjectKind::Linked } else { ObjectKind::Relocatable };
                let map = map(&bytes, symbols(&mut random, size), kind);
                let reader = InstructionReader::find(target.name).unwrap();
                let view = SectionView::new(&map, &map.sections[0], None, reader, round % 5 == 0);
                let (range, mut written) = (0..size, Vec::new());
                let whole = slice::from_ref(&range);
                let mut json = Json::new(&mut written, &names);
                let mut tally = Tally::default();
                assert!(view.walk(whole, &mut json, &mut tally).is_ok() && json.out.finish().is_none());
                let shown: Value = serde_json::from_slice(&written).unwrap();
                let mut at = map.sections[0].address;
                for chunk in shown["symbols"].as_array().unwrap() {
                    assert_eq!(chunk["address"], at, "{}", target.name);
                    for item in chunk["instructions"].as_array().unwrap() {
                        assert_eq!(item["offset"], at, "{}", target.name);
                        at += item["size"].as_u64().unwrap();
                    }
                }
                assert_eq!(at - map.sections[0].address, size as u64, "{}", target.name);
                assert_eq!(tally.bytes + tally.padding + tally.data + tally.opaque, size as u64);
                let mut text = Vec::new();
                let mut assembly = Assembly { out: TextOutput::new(&mut text), names: &names, color: round % 3 == 0 };
                assert!(view.walk(whole, &mut assembly, &mut tally).is_ok() && assembly.out.finish().is_none());
                labels_are_there(std::str::from_utf8(&text).unwrap(), round % 3 == 0);
            }
        }
    }

    /// Every label that a branch names is defined exactly once.
    fn labels_are_there(text: &str, is_coloured: bool) {
        if is_coloured {
            return;
        }
        let code = text.lines().map(|line| line.split("//").next().unwrap_or_default().trim_end());
        let (defined, used): (Vec<_>, Vec<_>) = code.partition(|line| line.starts_with(".L"));
        for line in used {
            if let Some(label) = line.rsplit(' ').next().filter(|word| word.starts_with(".L")) {
                let count = defined.iter().filter(|line| line.trim_end_matches(':') == label).count();
                assert_eq!(count, 1, "{label}\n{text}");
            }
        }
    }
}
