//! The text form: assembly that an assembler accepts.
//!
//! The layout is that of `llvm-objdump`: a tab, the instruction, and in a fixed column `// ADDRESS: WORDS`. Everything
//! else is a directive or a comment, so that `llvm-mc` assembles the same bytes: branches name labels, padding is one
//! `.fill`, and bytes that are not an instruction are `.long` or `.byte`.

use crate::chunk::{Chunk, ChunkRole};
use crate::color::{self, Style};
use crate::instruction_reader::{InstructionReader, VersionJudgment};
use crate::names::NameStyle;
use crate::out::{OutputClosed, TextOutput, TextPart};
use crate::walk::{BranchTarget, RawBytesReason, SectionItem, SectionView, Sink, WalkItem};
use hotswap_code_object::{CodeSymbol, KernelFacts, ObjectKind, Relocation, SymbolKind};
use std::fmt::Write as _;
use std::io::{self, Write};

/// Width of an instruction after its tab, as in `llvm-objdump`.
const WIDTH: usize = 60;
/// The displayed width of the tab.
const TAB: usize = 8;

pub struct Assembly<'n, W> {
    pub out: TextOutput<W>,
    pub names: &'n NameStyle,
    pub color: bool,
}

/// The facts in the header comment of a code object.
pub struct AssemblyHeader<'h> {
    pub file: &'h str,
    pub entry: Option<&'h str>,
    pub target: &'h str,
    pub lanes: u8,
    /// The default of `llvm-mc`.
    pub default_lanes: u8,
}

impl<W: Write> Assembly<'_, W> {
    /// The first lines of a code object.
    pub fn head(&mut self, head: &AssemblyHeader<'_>) -> Result<(), OutputClosed> {
        let entry = head.entry.map(|entry| format!(", {entry}")).unwrap_or_default();
        self.comment_line(&format!("{}{entry}: {}", head.file, head.target))?;
        let lanes = if head.lanes == head.default_lanes { "" } else { wave_option(head.lanes) };
        let processor = head.target.split(':').next().unwrap_or_default();
        self.comment_line(&format!("assemble: llvm-mc -triple=amdgcn-amd-amdhsa -mcpu={processor}{lanes}"))
    }

    fn comment_line(&mut self, text: &str) -> Result<(), OutputClosed> {
        let line = format!("// {}", hotswap_report::escape_control(text));
        self.painted(Style::Comment, &line);
        self.out.line()
    }

    fn painted(&mut self, style: Style, text: &str) {
        if self.color { color::painted(&mut self.out, style, text) } else { self.out.text(text) }
    }

    /// `NAME:` and a comment about the symbol.
    fn name_line(
        &mut self,
        view: &SectionView<'_>,
        symbol: &CodeSymbol<'_>,
        around: Option<&CodeSymbol<'_>>,
    ) -> Result<(), OutputClosed> {
        let mark = self.out.mark();
        let name = quoted(&symbol.name);
        self.out.text(&name);
        self.out.byte(b':');
        self.pad_painted(mark, Style::Label, TAB + WIDTH);
        self.start_comment(view.address(symbol.offset));
        match &symbol.kind {
            SymbolKind::Kernel(facts) => self.kernel(facts),
            SymbolKind::Function => self.out.text(" function"),
            SymbolKind::Object => self.out.text(" data"),
            SymbolKind::Label => self.out.text(" label"),
        }
        if symbol.size > 0 {
            let _ = write!(self.out, ", {} bytes", symbol.size);
        }
        if let Some(around) = around {
            let _ = write!(self.out, " in {}", hotswap_report::escape_control(&self.names.shown(&around.name)));
        }
        if let Some(name) = self.names.readable(&symbol.name) {
            let _ = write!(self.out, ": {}", hotswap_report::escape_control(&name));
        }
        self.end_comment()
    }

    fn kernel(&mut self, facts: &KernelFacts) {
        let _ = write!(self.out, " kernel, wave{}", facts.lanes);
        let counts =
            [(facts.vgprs, "VGPRs"), (facts.agprs.filter(|count| *count > 0), "AGPRs"), (facts.sgprs, "SGPRs")];
        for (count, what) in counts {
            if let Some(count) = count {
                let _ = write!(self.out, ", {count} {what}");
            }
        }
        let _ = write!(self.out, ", LDS {}, scratch {}, arguments {}", facts.lds, facts.scratch, facts.kernarg);
    }

    /// Pads to the comment's column. Escape sequences for colours do not count.
    fn pad_painted(&mut self, mark: usize, style: Style, width: usize) {
        let used = self.out.mark() - mark;
        if self.color {
            let text = String::from_utf8_lossy(self.out.since(mark)).into_owned();
            self.out.cut(mark);
            color::painted(&mut self.out, style, &text);
        }
        let mark = self.out.mark();
        self.out.pad(mark, width.saturating_sub(used));
    }

    #[inline]
    fn start_comment(&mut self, address: u64) {
        if self.color {
            color::start(&mut self.out, Style::Comment);
        }
        self.out.comment_address(address);
    }

    #[inline]
    fn end_comment(&mut self) -> Result<(), OutputClosed> {
        if self.color {
            color::end(&mut self.out);
        }
        self.out.line()
    }

    fn label_line(&mut self, view: &SectionView<'_>, offset: usize) -> Result<(), OutputClosed> {
        if self.color {
            color::start(&mut self.out, Style::Label);
        }
        label(&mut self.out, view, offset);
        self.out.byte(b':');
        if self.color {
            color::end(&mut self.out);
        }
        self.out.line()
    }

    /// The part before the comment.
    #[inline]
    fn code(&mut self, view: &SectionView<'_>, reader: &InstructionReader, item: &WalkItem<'_>) {
        self.out.byte(b'\t');
        let mark = self.out.mark();
        match &item.what {
            SectionItem::Instruction(inst) => {
                reader.print(inst, item.banks, &mut self.out);
                if let Some(offset) = item.target.and_then(|target| target.label).filter(|_| reader.takes_label(inst)) {
                    // The target is the last operand of every branch.
                    let last = self.out.since(mark).iter().rposition(|byte| *byte == b' ');
                    self.out.cut(mark + last.map_or(0, |at| at + 1));
                    label(&mut self.out, view, offset);
                }
                if self.color {
                    let text = String::from_utf8_lossy(self.out.since(mark)).into_owned();
                    self.out.cut(mark);
                    color::instruction(&mut self.out, &text);
                    let mark = self.out.mark();
                    return self.out.pad(mark, WIDTH.saturating_sub(text.len()));
                }
                self.out.pad(mark, WIDTH);
            }
            SectionItem::Bytes(_) => {
                directive(&mut self.out, item.bytes);
                self.pad_painted(mark, Style::Directive, WIDTH);
            }
            SectionItem::Padding(word) => {
                let _ = write!(self.out, ".fill {}, 4, 0x{word:08x}", item.bytes.len() / 4);
                self.pad_painted(mark, Style::Directive, WIDTH);
            }
        }
    }

    /// The instruction's words, and further remarks.
    #[inline]
    fn words(&mut self, item: &WalkItem<'_>) {
        if let SectionItem::Padding(word) = item.what {
            let _ = write!(self.out, " {} bytes of padding ({word:08X})", item.bytes.len());
            return;
        }
        let (words, rest) = item.bytes.as_chunks::<4>();
        for word in words {
            self.out.word(u32::from_le_bytes(*word));
        }
        for byte in rest {
            let _ = write!(self.out, " {byte:02X}");
        }
    }

    fn remarks(&mut self, reader: &InstructionReader, item: &WalkItem<'_>) {
        match &item.what {
            SectionItem::Bytes(RawBytesReason::Unknown) => self.out.text(" no instruction"),
            SectionItem::Bytes(RawBytesReason::Truncated) => self.out.text(" an instruction that is cut off"),
            SectionItem::Bytes(RawBytesReason::Unaligned) => self.out.text(" not aligned"),
            SectionItem::Bytes(RawBytesReason::Crosses(inst)) => {
                self.out.text(" crosses the end: ");
                reader.print(inst, item.banks, &mut self.out);
            }
            SectionItem::Bytes(RawBytesReason::Data) | SectionItem::Instruction(_) | SectionItem::Padding(_) => {}
        }
        // A label identifies a branch's target, unless the target is outside of the function or no instruction.
        if let Some(target) = item.target {
            self.destination(&target, target.label.is_none());
        }
        if let Some(target) = item.refers {
            self.destination(&target, true);
        }
        for relocation in item.relocations {
            self.relocation(relocation);
        }
    }

    /// The version of LLVM that rejects the instruction.
    fn version(&mut self, judgment: Option<&VersionJudgment>) {
        if let Some(judgment) = judgment {
            let _ = write!(self.out, " {judgment}");
        }
    }

    fn destination(&mut self, target: &BranchTarget<'_>, always: bool) {
        match target.name {
            Some((symbol, 0)) => {
                let _ = write!(self.out, " <{}>", hotswap_report::escape_control(&self.names.shown(&symbol.name)));
            }
            Some((symbol, distance)) if always => {
                let _ = write!(
                    self.out,
                    " <{}+{distance:#x}>",
                    hotswap_report::escape_control(&self.names.shown(&symbol.name))
                );
            }
            None if always => {
                self.out.text(" <");
                self.out.small_hex(target.address, 1);
                self.out.byte(b'>');
            }
            _ => {}
        }
    }

    fn relocation(&mut self, relocation: &Relocation<'_>) {
        self.out.byte(b' ');
        match relocation.type_name() {
            "" => drop(write!(self.out, "relocation {}", relocation.kind)),
            name => self.out.text(name),
        }
        let _ = write!(self.out, " {}", hotswap_report::escape_control(&self.names.shown(&relocation.symbol)));
        match relocation.addend {
            0 => {}
            addend => drop(write!(self.out, "{}{:#x}", if addend < 0 { '-' } else { '+' }, addend.unsigned_abs())),
        }
    }
}

impl<'n, W: Write> Sink for Assembly<'n, W> {
    type Part = Assembly<'n, io::Sink>;

    fn part(&self, _: bool) -> Self::Part {
        Assembly { out: TextPart::in_memory(), names: self.names, color: self.color }
    }

    fn append(&mut self, part: &Self::Part) -> Result<(), OutputClosed> {
        self.out.append(&part.out)
    }

    fn section(&mut self, view: &SectionView<'_>) -> Result<(), OutputClosed> {
        self.out.line()?;
        self.out.byte(b'\t');
        let mark = self.out.mark();
        let name = &view.section.name;
        match (&**name, view.map.kind) {
            (".text", _) => self.out.text(".text"),
            (_, ObjectKind::Linked | ObjectKind::Relocatable) => {
                self.out.text(".section ");
                self.out.text(&quoted(name));
                self.out.text(",\"ax\",@progbits");
            }
        }
        self.pad_painted(mark, Style::Directive, WIDTH);
        self.start_comment(view.address(0));
        let _ = write!(
            self.out,
            " {} bytes at {:#x} of the code object",
            view.section.bytes.len(),
            view.section.range.start
        );
        self.end_comment()
    }

    fn chunk(&mut self, view: &SectionView<'_>, chunk: &Chunk<'_>) -> Result<(), OutputClosed> {
        if chunk.role != ChunkRole::Gap && chunk.around.is_none() {
            self.out.line()?;
        }
        chunk.symbols.iter().try_for_each(|symbol| self.name_line(view, symbol, chunk.around))
    }

    #[inline]
    fn item(
        &mut self,
        view: &SectionView<'_>,
        reader: &InstructionReader,
        item: &WalkItem<'_>,
    ) -> Result<(), OutputClosed> {
        if item.is_label {
            self.label_line(view, item.offset)?;
        }
        self.code(view, reader, item);
        self.start_comment(item.address);
        self.words(item);
        let is_plain = matches!(item.what, SectionItem::Instruction(_)) && item.relocations.is_empty();
        if !is_plain || item.target.is_some() || item.refers.is_some() {
            self.remarks(reader, item);
        }
        if let SectionItem::Instruction(inst) = &item.what {
            self.version(reader.version_judgment(inst));
        }
        self.end_comment()
    }

    fn end_chunk(&mut self) -> Result<(), OutputClosed> {
        Ok(())
    }

    fn end_section(&mut self) -> Result<(), OutputClosed> {
        Ok(())
    }
}

/// The label of a branch target: its address, so that it does not depend on the rest of the output.
pub fn label<W: Write>(out: &mut TextOutput<W>, view: &SectionView<'_>, offset: usize) {
    out.text(".L");
    if let Some(prefix) = view.prefix {
        out.decimal(prefix as u64);
        out.byte(b'_');
    }
    out.small_hex(view.address(offset), 1);
}

/// The option of `llvm-mc` for a wave size other than its default.
fn wave_option(lanes: u8) -> &'static str {
    if lanes == 64 { " -mattr=+wavefrontsize64" } else { " -mattr=+wavefrontsize32" }
}

fn directive<W: Write>(out: &mut TextOutput<W>, bytes: &[u8]) {
    let (words, rest) = if bytes.len().is_multiple_of(4) { bytes.as_chunks::<4>() } else { (&[][..], bytes) };
    out.text(if rest.is_empty() { ".long " } else { ".byte " });
    for (index, word) in words.iter().enumerate() {
        out.text(if index > 0 { ", 0x" } else { "0x" });
        out.small_hex(u64::from(u32::from_le_bytes(*word)), 8);
    }
    for (index, byte) in rest.iter().enumerate() {
        out.text(if index > 0 { ", 0x" } else { "0x" });
        out.small_hex(u64::from(*byte), 2);
    }
}

/// A symbol name in the assembler's syntax, quoted where needed.
fn quoted(name: &str) -> String {
    if !name.is_empty() && name.chars().all(is_plain_in_symbols) && !name.starts_with(|c: char| c.is_ascii_digit()) {
        return name.to_owned();
    }
    let escaped = hotswap_report::escape_control(name).replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

fn is_plain_in_symbols(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_assembler_takes_are_quoted() {
        for (name, expected) in [
            ("_Z3addPKf", "_Z3addPKf"),
            ("k.num_vgpr", "k.num_vgpr"),
            ("a b", "\"a b\""),
            ("a\"b", "\"a\\\"b\""),
            ("9a", "\"9a\""),
            ("", "\"\""),
            ("a\x1bb", "\"a\\\\u{1b}b\""),
        ] {
            assert_eq!(quoted(name), expected);
        }
    }
}
