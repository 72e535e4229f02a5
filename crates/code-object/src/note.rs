//! The metadata note: name `AMDGPU`, type 32, MessagePack.
//!
//! It is found through `PT_NOTE` segments and `SHT_NOTE` sections, which in a linked file name the
//! same bytes. There must be exactly one: loaders take the first they meet and ignore the others.

use crate::elf::Elf;
use crate::metadata::{self, Kernel};
use crate::target_text::TargetText;
use crate::{malformed, unknown};
use hotswap_report::Diagnostic;
use hotswap_targets::TargetId;
use object::elf::{PT_NOTE, SHT_NOTE};
use std::ops::Range;

const NAME: &[u8] = b"AMDGPU\0";
/// `NT_AMDGPU_METADATA`.
const METADATA: u32 = 32;
/// Name size, content size and type, each a `u32`.
const HEADER: usize = 12;

/// What the metadata note says.
#[derive(Debug, Clone)]
pub struct Note<'a> {
    /// The note's content in the file.
    pub range: Range<usize>,
    /// `amdhsa.target`: the triple and the target ID; empty in V3, which has none.
    pub target: &'a str,
    /// The bytes of [`Note::target`] in the file; empty in V3.
    pub target_range: Range<usize>,
    /// `amdhsa.version`.
    pub version: (u64, u64),
    /// Kernels in the note's order.
    pub kernels: Vec<Kernel<'a>>,
}

impl<'a> Note<'a> {
    pub(crate) fn find(elf: &Elf<'a>) -> Result<Self, Diagnostic> {
        let range = content(elf)?;
        let metadata = metadata::read(elf.data, range.clone())?;
        let (target, target_range) = match metadata.target {
            Some(target) => target,
            // V3 names the target in e_flags only.
            None if elf.abi_version == 1 => ("", range.end..range.end),
            None => return Err(malformed(range.start, "the metadata has no amdhsa.target")),
        };
        Ok(Self { range, target, target_range, version: metadata.version, kernels: metadata.kernels })
    }

    /// The target ID that the note states; `None` in V3.
    pub(crate) fn target_id(&self) -> Result<Option<TargetId>, Diagnostic> {
        if self.target.is_empty() {
            return Ok(None);
        }
        let text = TargetText::parse(self.target).map_err(|what| malformed(self.target_range.start, what))?;
        Ok(Some(text.id))
    }

    /// [`Note::target`] for another target ID, spelled the way this file spells its own:
    /// `amdgcn-amd-amdhsa--gfx1031` where it says `amdgcn-amd-amdhsa--gfx1030`, and
    /// `amdgpu10.31-amd-amdhsa-unknown-gfx1031` where it says that of `gfx1030`. Empty in V3.
    pub fn spell(&self, target: &TargetId) -> String {
        TargetText::parse(self.target).map_or_else(|_| String::new(), |text| text.spell(target))
    }
}

/// The content of the one metadata note.
fn content(elf: &Elf<'_>) -> Result<Range<usize>, Diagnostic> {
    let segments = elf.segments.iter().filter(|s| s.kind == PT_NOTE).map(|s| (&s.range, s.align));
    let sections = elf.sections.iter().filter(|s| s.kind == SHT_NOTE).map(|s| (&s.range, s.align));
    let mut found: Option<Range<usize>> = None;
    for (area, align) in segments.chain(sections) {
        for note in notes(elf.data, area.clone(), align)? {
            match &found {
                Some(first) if *first != note => {
                    let what = format!("there is a second metadata note (the first is at {:#x})", first.start);
                    return Err(unknown(note.start, what));
                }
                _ => found = Some(note),
            }
        }
    }
    found.ok_or_else(|| malformed(0, "there is no AMDGPU metadata note"))
}

/// Contents of the metadata notes in one area; notes of other kinds are passed over.
fn notes(data: &[u8], area: Range<usize>, align: u64) -> Result<Vec<Range<usize>>, Diagnostic> {
    let align = if align == 8 { 8 } else { 4 };
    let (mut at, mut found) = (area.start, Vec::new());
    while at < area.end {
        let cut = || malformed(at, "a note leaves its section or segment");
        let words = data[at..area.end].first_chunk::<HEADER>().ok_or_else(cut)?;
        let word = |index: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| words[index * 4 + byte]));
        let (name_size, content_size, kind) = (word(0) as usize, word(1) as usize, word(2));
        let name = at + HEADER..at.saturating_add(HEADER).saturating_add(name_size);
        let start = align_up(name.end, align, area.start);
        let content = start..start.saturating_add(content_size);
        if content.end > area.end {
            return Err(cut());
        }
        if kind == METADATA && data[name] == *NAME {
            found.push(content.clone());
        }
        at = align_up(content.end, align, area.start);
    }
    Ok(found)
}

/// Rounds up relative to the start of the area, as note readers do.
fn align_up(offset: usize, align: usize, start: usize) -> usize {
    offset.saturating_add((align - offset.saturating_sub(start) % align) % align)
}
