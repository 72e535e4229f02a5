//! Whether bytes are the same instruction on both processors.
//!
//! That every word decodes proves nothing: `v_fma_mix_f32` of `gfx904` and `v_mad_mix_f32` of `gfx900` have the same
//! bits and round differently. So both processors' decoders are asked about the same bytes, and must answer with the
//! same instruction.
//!
//! Why that is sound, and why mostly a comparison of two numbers is enough. The decoder's answer is a line of the tables
//! (an *entry*: one instruction in one encoding) and a length. The line fixes the mnemonic, the operands and where their
//! bits lie; so with the same line and length all raw values are the same. What a raw value then *means* (register 124
//! is M0 or NULL, constants, widths of masks) depends on the line, the words and those features of the processor that
//! the reader of operands asks for: [`ASKED`], a list that a test compares with the reader's source. Processors that
//! agree on them read the same operands from the same line, whatever the words; where they do not agree, the operands
//! of each instruction are compared. Different lines mean the same if mnemonic and operands agree. Numbers that name
//! something of the processor (hardware registers, messages) are compared by what the assembler calls them.
//!
//! Processors with the same features in the same mode are one processor to the decoder: then nothing is compared.

use hotswap_isa::{Entry, Feature, Inst, Isa, Undecoded, Walk};

/// Features that the meaning of an operand depends on.
pub(super) const ASKED: &[Feature] = &[
    Feature::G16,
    Feature::Gfx10Insts,
    Feature::Gfx11Insts,
    Feature::Gfx12Insts,
    Feature::Gfx1250Insts,
    Feature::Gfx90aInsts,
    Feature::MaiInsts,
    Feature::N64BitLiterals,
    Feature::NsaEncoding,
    Feature::PartialNsaEncoding,
    Feature::UnpackedD16Vmem,
    Feature::Wavefrontsize32,
];

/// Two processors in one wave size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compare {
    source: Isa,
    target: Isa,
    /// They read the same operands from the same line.
    same_operands: bool,
}

impl Compare {
    /// `None` where the decoder cannot tell the two from each other.
    pub(super) fn new(source: Isa, target: Isa) -> Option<Self> {
        let same_operands = ASKED.iter().all(|feature| source.has(*feature) == target.has(*feature));
        (source.features() != target.features()).then_some(Self { source, target, same_operands })
    }

    /// The target's reading of the same bytes.
    pub(super) fn walk<'b>(&self, bytes: &'b [u8]) -> Walk<'b> {
        self.target.walk(bytes)
    }

    /// Whether the bytes from which the source read `inst` are the same instruction on the target, beyond doubt.
    pub(super) fn is_same(&self, inst: &Inst, bytes: &[u8]) -> bool {
        self.target.decode(bytes).is_ok_and(|other| self.agrees(inst, &other))
    }

    /// Whether the source's and the target's reading are the same, beyond doubt.
    #[inline(always)]
    pub(super) fn agrees(&self, inst: &Inst, other: &Inst) -> bool {
        let same_line = inst.entry() == other.entry() && inst.len() == other.len();
        same_line && (self.same_operands || self.operands(inst, other))
    }

    #[inline(never)]
    fn operands(&self, inst: &Inst, other: &Inst) -> bool {
        let mut pairs = inst.operands(self.source).zip(other.operands(self.target));
        let same = |(a, b): (hotswap_isa::Operand, hotswap_isa::Operand)| {
            a.name == b.name && a.access == b.access && a.value == b.value
        };
        inst.operands(self.source).len() == other.operands(self.target).len() && pairs.all(same)
    }

    /// What is wrong, where [`Compare::is_same`] says no or the line is one of those that [`names`] something; `None`
    /// if nothing is.
    #[cold]
    pub(super) fn fault(&self, inst: &Inst, bytes: &[u8]) -> Option<String> {
        let (name, target) = (inst.mnemonic(), self.target.target().name);
        let other = match self.target.decode(bytes) {
            Ok(other) => other,
            Err(Undecoded::Opaque { .. } | Undecoded::Truncated { .. }) if self.exists(name) => {
                return Some(format!("this form of {name} is absent on {target}"));
            }
            Err(_) => return Some(format!("{name} is absent on {target}")),
        };
        if other.mnemonic() != name {
            return Some(format!("{name} means {} on {target}", other.mnemonic()));
        }
        let same_text = || inst.text(self.source).to_string() == other.text(self.target).to_string();
        let same = inst.len() == other.len() && self.operands(inst, &other) && (!names(inst.entry()) || same_text());
        (!same).then(|| format!("`{}` means `{}` on {target}", inst.text(self.source), other.text(self.target)))
    }

    /// Whether the target has an instruction of that name.
    fn exists(&self, mnemonic: &str) -> bool {
        Entry::all().any(|entry| entry.mnemonic() == mnemonic && entry.available(self.target))
    }
}

/// Whether a number of the instruction names something that not every processor has.
pub(super) fn names(entry: Entry) -> bool {
    ["s_getreg", "s_setreg", "s_sendmsg"].iter().any(|start| entry.mnemonic().starts_with(start))
}
