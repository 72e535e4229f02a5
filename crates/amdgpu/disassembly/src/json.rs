//! The JSON form: one document, streamed, one line for each instruction.
//!
//! ```text
//! { "schema": 1, "file": F, "objects": [
//!   { "entry": N or null, "id": ID or null, "place": P, "target": T, "kind": "linked" | "relocatable" | "raw",
//!     "lanes": 32 | 64, "sections": [
//!     { "name": N, "address": A, "file_offset": O, "size": S, "symbols": [
//!       { "names": [ {"name": N, "demangled": D, "kind": "kernel" | "function" | "data" | "label", "size": S,
//!                     "kernel": {…}} ], "in": N, "address": A, "size": S, "lanes": 32 | 64, "instructions": [
//!         { "offset": A, "size": S, "bytes": HEX, … } ] } ] } ],
//!     "summary": {…} } ], "problems": [] }
//! ```
//!
//! An element of `instructions` is one of three things. An instruction has `mnemonic`, `text`, `reads`, `writes`, and
//! `target` where it branches, and `llvm` where one version of LLVM accepts it and a newer one rejects it. Bytes that are not one have `opaque` with the reason. Padding has `padding` with
//! the word, and no `bytes`. `offset` is the address in linked files and the offset in the section in others. `bytes`
//! are in the order of the file. Registers of gfx12.5 are those of their bank. Keys without a value are left out,
//! except `entry` and `id`. New keys may be added; `schema` changes when the meaning of an existing one changes.

use crate::assembly::label;
use crate::chunk::Chunk;
use crate::instruction_reader::{Inst, InstructionReader};
use crate::names::NameStyle;
use crate::out::{OutputClosed, TextOutput, TextPart};
use crate::walk::{BranchTarget, RawBytesReason, SectionItem, SectionView, Sink, Tally, WalkItem};
use hotswap_code_object::{CodeSymbol, KernelFacts, Relocation, SymbolKind};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{self, Write};

/// The writer of the JSON document.
pub struct Json<'n, W> {
    pub out: TextOutput<W>,
    pub names: &'n NameStyle,
    /// Whether the next element of each open list is its first: objects, sections, symbols, instructions.
    first: [bool; 4],
}

/// The keys of an object besides its sections.
pub struct ObjectHead<'h> {
    pub entry: Option<usize>,
    pub id: Option<&'h str>,
    pub place: &'h str,
    pub target: &'h str,
    pub kind: &'static str,
    pub lanes: u8,
}

impl<'n, W: Write> Json<'n, W> {
    pub fn new(writer: W, names: &'n NameStyle) -> Self {
        Self { out: TextOutput::new(writer), names, first: [true; 4] }
    }

    pub fn begin(&mut self, file: &str) -> Result<(), OutputClosed> {
        self.out.text("{\"schema\":1,\"file\":");
        self.string(file);
        self.out.text(",\"objects\":[");
        self.out.line()
    }

    pub fn object(&mut self, head: &ObjectHead<'_>) -> Result<(), OutputClosed> {
        self.open(0);
        self.out.text("{\"entry\":");
        self.value(&json!(head.entry));
        self.out.text(",\"id\":");
        self.value(&json!(head.id));
        self.member("place", head.place);
        self.member("target", head.target);
        self.member("kind", head.kind);
        self.number("lanes", u64::from(head.lanes));
        self.out.text(",\"sections\":[");
        self.out.line()
    }

    pub fn end_object(&mut self, tally: &Tally) -> Result<(), OutputClosed> {
        self.out.text("],\"summary\":");
        self.value(&json!({
            "instructions": tally.instructions,
            "instruction_bytes": tally.bytes,
            "padding_bytes": tally.padding,
            "data_bytes": tally.data,
            "opaque_bytes": tally.opaque,
            "first_opaque": tally.first_opaque,
        }));
        self.out.byte(b'}');
        self.out.line()
    }

    pub fn end(&mut self, problems: &[Value]) -> Result<(), OutputClosed> {
        self.out.text("],\"problems\":");
        self.value(&json!(problems));
        self.out.byte(b'}');
        self.out.line()
    }

    /// Writes a comma, unless the element is the first of its list; the lists inside of it start anew.
    fn open(&mut self, depth: usize) {
        let Some(first) = self.first.get_mut(depth) else { return };
        let is_first = std::mem::replace(first, false);
        self.first.iter_mut().skip(depth + 1).for_each(|first| *first = true);
        if !is_first {
            self.out.byte(b',');
        }
    }

    fn value(&mut self, value: &Value) {
        let _ = write!(self.out, "{value}");
    }

    fn string(&mut self, text: &str) {
        // Mnemonics and registers need no escaping.
        if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\') {
            self.out.byte(b'"');
            self.out.text(text);
            self.out.byte(b'"');
        } else {
            self.value(&Value::from(text));
        }
    }

    fn key(&mut self, key: &str) {
        self.out.text(",\"");
        self.out.text(key);
        self.out.text("\":");
    }

    fn member(&mut self, key: &str, text: &str) {
        self.key(key);
        self.string(text);
    }

    fn number(&mut self, key: &str, number: u64) {
        self.key(key);
        self.out.decimal(number);
    }

    fn symbol(&mut self, symbol: &CodeSymbol<'_>) -> Value {
        let mut value = json!({
            "name": symbol.name,
            "kind": match symbol.kind {
                SymbolKind::Kernel(_) => "kernel",
                SymbolKind::Function => "function",
                SymbolKind::Object => "data",
                SymbolKind::Label => "label",
            },
            "size": symbol.size,
            "global": symbol.is_global,
        });
        if let Some(readable) = self.names.readable(&symbol.name) {
            value["demangled"] = readable.into();
        }
        if let SymbolKind::Kernel(facts) = &symbol.kind {
            value["kernel"] = kernel(facts);
        }
        value
    }

    #[inline]
    fn instruction(&mut self, view: &SectionView<'_>, reader: &InstructionReader, inst: &Inst, item: &WalkItem<'_>) {
        self.member("mnemonic", reader.mnemonic(inst));
        self.out.text(",\"text\":\"");
        reader.print(inst, item.banks, &mut self.out);
        self.out.text("\",\"reads\":[");
        reader.reads(inst, item.banks, &mut self.out);
        self.out.text("],\"writes\":[");
        reader.writes(inst, item.banks, &mut self.out);
        self.out.byte(b']');
        if let Some(judgment) = reader.version_judgment(inst) {
            let versions = json!({
                "rejected_by": judgment.rejected_by, "accepted_by": judgment.accepted_by, "form": judgment.form,
            });
            self.key("llvm");
            self.value(&versions);
        }
        for (key, target) in [("target", item.target), ("refers", item.refers)] {
            if let Some(target) = target {
                self.key(key);
                self.destination(view, &target);
            }
        }
    }

    fn destination(&mut self, view: &SectionView<'_>, target: &BranchTarget<'_>) {
        self.out.text("{\"offset\":");
        self.out.decimal(target.address);
        if let Some(offset) = target.label {
            self.out.text(",\"label\":\"");
            label(&mut self.out, view, offset);
            self.out.byte(b'"');
        }
        if let Some((symbol, distance)) = target.name {
            self.member("symbol", &symbol.name);
            self.number("distance", distance as u64);
        }
        self.out.byte(b'}');
    }

    fn relocations(&mut self, view: &SectionView<'_>, relocations: &[Relocation<'_>]) {
        self.key("relocations");
        self.value(&relocations.iter().map(|one| relocation_json(view, one)).collect());
    }
}

fn relocation_json(view: &SectionView<'_>, relocation: &Relocation<'_>) -> Value {
    json!({
        "offset": view.address(relocation.offset),
        "type": relocation.type_name(),
        "number": relocation.kind,
        "symbol": relocation.symbol,
        "addend": relocation.addend,
    })
}

impl<'n, W: Write> Sink for Json<'n, W> {
    type Part = Json<'n, io::Sink>;

    fn part(&self, is_first: bool) -> Self::Part {
        Json { out: TextPart::in_memory(), names: self.names, first: [false, false, is_first, true] }
    }

    fn append(&mut self, part: &Self::Part) -> Result<(), OutputClosed> {
        self.out.append(&part.out)
    }

    fn section(&mut self, view: &SectionView<'_>) -> Result<(), OutputClosed> {
        self.open(1);
        let section = view.section;
        self.out.text("{\"name\":");
        self.string(&section.name);
        self.number("address", section.address);
        self.number("file_offset", section.range.start as u64);
        self.number("size", section.bytes.len() as u64);
        self.out.text(",\"symbols\":[");
        self.out.line()
    }

    fn chunk(&mut self, view: &SectionView<'_>, chunk: &Chunk<'_>) -> Result<(), OutputClosed> {
        self.open(2);
        let names: Vec<_> = chunk.symbols.iter().map(|symbol| self.symbol(symbol)).collect();
        self.out.text("{\"names\":");
        self.value(&names.into());
        if let Some(around) = chunk.around {
            self.member("in", &around.name);
        }
        self.number("address", view.address(chunk.start));
        self.number("size", (chunk.end - chunk.start) as u64);
        self.number("lanes", u64::from(view.lanes(chunk)));
        self.out.text(",\"instructions\":[");
        self.out.line()
    }

    #[inline]
    fn item(
        &mut self,
        view: &SectionView<'_>,
        reader: &InstructionReader,
        item: &WalkItem<'_>,
    ) -> Result<(), OutputClosed> {
        self.open(3);
        self.out.text("{\"offset\":");
        self.out.decimal(item.address);
        self.number("size", item.bytes.len() as u64);
        if !matches!(item.what, SectionItem::Padding(_)) {
            self.out.text(",\"bytes\":\"");
            for byte in item.bytes {
                self.out.small_hex(u64::from(*byte), 2);
            }
            self.out.byte(b'"');
        }
        if item.is_label {
            self.out.text(",\"label\":\"");
            label(&mut self.out, view, item.offset);
            self.out.byte(b'"');
        }
        match &item.what {
            SectionItem::Instruction(inst) => self.instruction(view, reader, inst, item),
            SectionItem::Padding(word) => {
                self.out.text(",\"padding\":\"");
                self.out.small_hex(u64::from(*word), 8);
                self.out.byte(b'"');
            }
            SectionItem::Bytes(why) => self.member("opaque", why.word()),
        }
        if !item.relocations.is_empty() {
            self.relocations(view, item.relocations);
        }
        self.out.byte(b'}');
        self.out.line()
    }

    fn end_chunk(&mut self) -> Result<(), OutputClosed> {
        self.out.text("]}");
        self.out.line()
    }

    fn end_section(&mut self) -> Result<(), OutputClosed> {
        self.out.text("]}");
        self.out.line()
    }
}

impl RawBytesReason {
    fn word(&self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Truncated => "truncated",
            Self::Crosses(_) => "crosses",
            Self::Unaligned => "unaligned",
            Self::Data => "data",
        }
    }
}

fn kernel(facts: &KernelFacts) -> Value {
    json!({
        "lanes": facts.lanes,
        "lds": facts.lds,
        "scratch": facts.scratch,
        "kernarg": facts.kernarg,
        "vgprs": facts.vgprs,
        "agprs": facts.agprs,
        "sgprs": facts.sgprs,
    })
}
