//! Generated tables: small ones as Rust text, tables of many records as bytes with a declaration in Rust.
//!
//! Invariants: the lowest byte of a number is the first, whatever machine builds. A record has the fields of its type in
//! `hotswap-isa-tables` in their order; a file of another length does not compile there.

use super::{GenerateError, GeneratedFile, small};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The declarations, and the files of bytes that they refer to.
#[derive(Default)]
pub(super) struct TableSet {
    declarations: String,
    files: Vec<GeneratedFile>,
    texts: String,
    ranges: BTreeMap<String, TextRange>,
}

/// A part of the pool of texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextRange {
    start: u32,
    length: u32,
}

impl TableSet {
    /// A small table as Rust text.
    pub(super) fn text<T>(
        &mut self,
        (name, title): (&str, &str),
        kind: &str,
        items: &[T],
        show: impl Fn(&T) -> String,
    ) {
        let out = &mut self.declarations;
        let _ = writeln!(out, "/// {title}\npub static {name}: [{kind}; {}] = [", items.len());
        for item in items {
            let _ = writeln!(out, "    {},", show(item));
        }
        out.push_str("];\n");
    }

    /// A table as bytes.
    pub(super) fn records(&mut self, (name, title): (&str, &str), kind: &str, records: &[RecordBytes]) {
        let (file, count) = (format!("{}.bin", name.to_ascii_lowercase()), records.len());
        let convert = CONVERTED.iter().find(|(converted, _)| *converted == kind);
        let convert = convert.map_or(String::new(), |(_, data)| format!(", {count}, {data} => {kind}::new"));
        let value = format!("table!({file:?}{convert})");
        let _ = writeln!(self.declarations, "/// {title}\npub static {name}: [{kind}; {count}] = {value};");
        let content = records.iter().flat_map(|record| &record.bytes).copied().collect();
        self.files.push(GeneratedFile { name: file, content });
    }

    /// The position of `text` in the pool.
    pub(super) fn range(&mut self, text: &str) -> Result<TextRange, GenerateError> {
        if let Some(range) = self.ranges.get(text) {
            return Ok(*range);
        }
        let range = TextRange { start: small(self.texts.len(), "texts")?, length: small(text.len(), text)? };
        self.texts.push_str(text);
        self.ranges.insert(text.to_owned(), range);
        Ok(range)
    }

    /// All files; the declarations are `tables.rs`.
    pub(super) fn finish(mut self) -> Vec<GeneratedFile> {
        let texts = "include_str!(concat!(env!(\"OUT_DIR\"), \"/texts.txt\"))";
        let _ = writeln!(self.declarations, "/// Mnemonics and templates.\npub static TEXTS: &str = {texts};");
        self.files.push(GeneratedFile::of_text("texts.txt", self.texts));
        self.files.push(GeneratedFile::of_text("tables.rs", self.declarations));
        self.files
    }
}

/// Types whose records are converted, because not every bit pattern is one of their values, and the types of their records.
const CONVERTED: &[(&str, &str)] =
    &[("Slot", "SlotData"), ("LayoutField", "FieldData"), ("FieldLayout", "LayoutData"), ("TextStep", "StepData")];

/// The bytes of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RecordBytes {
    bytes: Vec<u8>,
}

impl RecordBytes {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn u8(self, value: u8) -> Self {
        self.bytes(&[value])
    }

    pub(super) fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(super) fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(super) fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(super) fn u128(self, value: u128) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(super) fn text(self, TextRange { start, length }: TextRange) -> Self {
        self.u32(start).u32(length)
    }

    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{RecordBytes, TableSet};

    #[test]
    fn records_are_bytes_with_a_declaration() {
        let mut tables = TableSet::default();
        let both = [(); 2].map(|()| RecordBytes::new().text(tables.range("v_nop").unwrap()).u16(0x102));
        tables.records(("ROWS", "Rows."), "RowData", &both);
        let files = tables.finish();
        let file = |name: &str| files.iter().find(|file| file.name == name).unwrap().content.as_slice();
        assert_eq!(file("rows.bin"), [[0, 0, 0, 0, 5, 0, 0, 0, 2, 1]; 2].concat());
        assert_eq!(file("texts.txt"), b"v_nop");
        let declarations = str::from_utf8(file("tables.rs")).unwrap();
        assert!(declarations.contains("pub static ROWS: [RowData; 2] = table!(\"rows.bin\");"));
    }
}
