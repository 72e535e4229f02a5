//! The instructions of a code object, one after the other, with the registers that they read and write.
//!
//! Invariant: bytes that decode to nothing are passed on as opaque, with the length that the encoding gives or one word,
//! so that every byte is visited once. The bank mode of gfx12.5 is that of LLVM's convention: bank 0 where a function
//! begins, after a call, and after the end of a block.

use crate::call_error::{CallError, CallStatus};
use hotswap_code_object::{CodeMap, ObjectKind};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::{ControlFlow, RegisterEffect};
use hotswap_isa::reg::{Reg, Special};
use hotswap_isa::text::PrintOptions;
use hotswap_isa::{Feature, Flag, Inst, Isa, Target, Undecoded, Wave};
use hotswap_report::{Diagnostic, codes};
use std::ops::Range;

/// The bits of `hotswap_instruction.flags`, as the header defines them.
pub(crate) mod flag {
    pub(crate) const OPAQUE: u32 = 1;
    pub(crate) const BRANCH: u32 = 2;
    pub(crate) const CONDITIONAL: u32 = 4;
    pub(crate) const CALL: u32 = 8;
    pub(crate) const END: u32 = 16;
    pub(crate) const HAS_TARGET: u32 = 32;
    pub(crate) const INDIRECT: u32 = 64;
    pub(crate) const INDEXED: u32 = 128;
    pub(crate) const BANK_UNKNOWN: u32 = 256;
}

/// A section of code.
#[derive(Debug)]
struct CodeSpan {
    name: String,
    /// Number in the section table.
    number: Option<usize>,
    address: u64,
    range: Range<usize>,
}

/// The sections of code of a file, and how they are decoded.
#[derive(Debug)]
pub(crate) struct CodeSpans {
    spans: Vec<CodeSpan>,
    isa: Isa,
    is_linked: bool,
}

/// A register of an instruction: its first number, how many, and its name's offset in [`InstructionView::texts`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedRegister {
    pub(crate) reg: Reg,
    pub(crate) name: usize,
}

/// One instruction. Texts end with NUL.
#[derive(Debug, Default)]
pub(crate) struct InstructionView {
    pub(crate) address: u64,
    pub(crate) range: Range<usize>,
    pub(crate) flags: u32,
    pub(crate) target: u64,
    pub(crate) texts: Vec<u8>,
    pub(crate) mnemonic: usize,
    pub(crate) reads: Vec<NamedRegister>,
    pub(crate) writes: Vec<NamedRegister>,
}

/// A place in a section with code.
pub(crate) struct SpanPlace {
    /// Number of the section in the file's table.
    pub(crate) section: usize,
    pub(crate) offset: u64,
}

impl CodeSpans {
    pub(crate) fn new(bytes: &[u8]) -> Result<Self, CallError> {
        let map = CodeMap::read(bytes)?;
        let name = map.processor.map_or("", |processor| processor.name);
        let isa = Target::find(name).map(Isa::new).ok_or_else(|| {
            Diagnostic::error(codes::NO_INSTRUCTIONS, format!("machine {:#04x}, `{name}`", map.machine))
        })?;
        Ok(Self {
            spans: map.sections.iter().map(section_code_span).collect(),
            isa,
            is_linked: map.kind == ObjectKind::Linked,
        })
    }

    /// The place of an address; linked files only.
    pub(crate) fn section_of(&self, address: u64) -> Option<SpanPlace> {
        let span = self.spans.iter().find(|span| self.is_linked && span.offset_of(address).is_some())?;
        Some(SpanPlace { section: span.number?, offset: span.offset_of(address)? as u64 })
    }

    /// Visits the instructions from `address` for `size` bytes; `section` tells offsets of relocatable files apart.
    pub(crate) fn walk_range(
        &self,
        bytes: &[u8],
        section: Option<&str>,
        (address, size): (u64, u64),
        lanes: Option<u8>,
        visit: &mut dyn FnMut(&InstructionView) -> bool,
    ) -> Result<(), CallError> {
        let is_it =
            |span: &&CodeSpan| section.is_none_or(|name| name == span.name) && span.offset_of(address).is_some();
        let span = self.spans.iter().find(is_it);
        let span = span.ok_or_else(|| CallError::not_found(format!("there is no code at {address:#x}")))?;
        let start = span.range.start + span.offset_of(address).unwrap_or(0);
        let end = start.saturating_add(usize::try_from(size).unwrap_or(usize::MAX)).min(span.range.end);
        let isa = lanes.map_or(self.isa, |lanes| self.isa.with_wave(if lanes == 64 { Wave::W64 } else { Wave::W32 }));
        let mut walk = VisitorWalk { bytes, isa, banks: VgprBanks::ENTRY, view: InstructionView::default() };
        walk.walk_span(start..end, address, visit)
    }
}

fn section_code_span(section: &hotswap_code_object::CodeSection<'_>) -> CodeSpan {
    CodeSpan {
        name: section.name.to_string(),
        number: section.number,
        address: section.address,
        range: section.range.clone(),
    }
}

impl CodeSpan {
    fn offset_of(&self, address: u64) -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(self.address)?).ok()?;
        (offset < self.range.len()).then_some(offset)
    }
}

struct VisitorWalk<'w> {
    bytes: &'w [u8],
    isa: Isa,
    banks: VgprBanks,
    view: InstructionView,
}

impl VisitorWalk<'_> {
    fn walk_span(
        &mut self,
        range: Range<usize>,
        address: u64,
        visit: &mut dyn FnMut(&InstructionView) -> bool,
    ) -> Result<(), CallError> {
        let mut at = range.start;
        while at < range.end {
            let rest = self.bytes.get(at..range.end).unwrap_or_default();
            let place = address.wrapping_add((at - range.start) as u64);
            let size = match self.isa.decode(rest) {
                Ok(inst) => self.view_decoded(&inst, place),
                Err(Undecoded::Opaque { len }) => self.view_opaque(len.map_or(4, usize::from), place),
                Err(Undecoded::Truncated { .. }) => self.view_opaque(rest.len(), place),
            };
            let size = size.clamp(1, range.end - at);
            self.view.range = at..at + size;
            if !visit(&self.view) {
                return Err(CallError::new(CallStatus::Stopped, "the callback asked to stop"));
            }
            at += size;
        }
        Ok(())
    }

    fn begin_view(&mut self, address: u64, flags: u32) {
        let view = &mut self.view;
        (view.address, view.flags, view.target) = (address, flags, 0);
        view.texts.clear();
        view.reads.clear();
        view.writes.clear();
    }

    fn view_opaque(&mut self, size: usize, address: u64) -> usize {
        self.begin_view(address, flag::OPAQUE);
        self.view.texts.extend_from_slice(b"\0\0");
        self.view.mnemonic = 1;
        size
    }

    fn view_decoded(&mut self, inst: &Inst, address: u64) -> usize {
        self.begin_view(address, 0);
        let mut text = String::new();
        // Only labels can fail, and none exist here.
        let _ = inst.write_text(self.isa, PrintOptions { banks: self.banks, ..PrintOptions::default() }, &mut text);
        self.view.push(&text);
        self.view.mnemonic = self.view.push(inst.mnemonic());
        self.add_flow(inst, address);
        for effect in inst.effects(self.isa) {
            self.add_register(effect);
        }
        self.view.flags |= if inst.is(Flag::Indexed) { flag::INDEXED } else { 0 };
        if self.isa.has(Feature::N1024AddressableVgprs) {
            let is_end = inst.is(Flag::Terminator) || inst.is(Flag::Call);
            self.banks = if is_end { VgprBanks::ENTRY } else { self.banks.mode_after(inst, self.isa) };
        }
        usize::from(inst.len())
    }

    fn add_flow(&mut self, inst: &Inst, address: u64) {
        let (flags, target) = match inst.control_flow(address, self.isa) {
            ControlFlow::Next => (0, None),
            ControlFlow::Branch { target, conditional } => (flag::BRANCH | condition_flag(conditional), Some(target)),
            ControlFlow::Indirect { conditional } => {
                (flag::BRANCH | flag::INDIRECT | condition_flag(conditional), None)
            }
            ControlFlow::Call { target: None } => (flag::CALL | flag::INDIRECT, None),
            ControlFlow::Call { target } => (flag::CALL, target),
            ControlFlow::End => (flag::END, None),
        };
        self.view.flags |= flags | if target.is_some() { flag::HAS_TARGET } else { 0 };
        self.view.target = target.unwrap_or(0);
    }

    fn add_register(&mut self, effect: RegisterEffect) {
        let resolved = self.banks.resolve_register(effect.reg, effect.role);
        self.view.flags |= if resolved.is_none() { flag::BANK_UNKNOWN } else { 0 };
        let reg = resolved.unwrap_or(effect.reg);
        let register = NamedRegister { reg, name: self.view.push(&name(reg)) };
        let list = if effect.written { &mut self.view.writes } else { &mut self.view.reads };
        list.push(register);
    }
}

/// The name of a register, not of a source operand.
fn name(reg: Reg) -> String {
    let mut name = String::new();
    match reg.as_special() {
        Some(Special::Scc) => name.push_str("scc"),
        Some(Special::Vccz) => name.push_str("vccz"),
        Some(Special::Execz) => name.push_str("execz"),
        // A string takes everything.
        _ => drop(reg.write(&mut name)),
    }
    name
}

fn condition_flag(conditional: bool) -> u32 {
    if conditional { flag::CONDITIONAL } else { 0 }
}

impl InstructionView {
    /// Adds a text and its NUL; returns its offset.
    fn push(&mut self, text: &str) -> usize {
        let at = self.texts.len();
        self.texts.extend(text.bytes().filter(|byte| *byte != 0));
        self.texts.push(0);
        at
    }
}
