//! Whether bytes are the same instruction on both processors.
//!
//! That every word decodes proves nothing: `v_fma_mix_f32` of `gfx904` and `v_mad_mix_f32` of `gfx900` have the same
//! bits and round differently. So the same bytes are decoded for both processors, and the results must be the same
//! instruction.
//!
//! Why that is sound, and why a comparison of two numbers is usually enough: the result of decoding is a table entry
//! (one instruction in one encoding) and a length. The entry determines the mnemonic, the operands and the positions of
//! their bits; so with the same entry and length all raw values are the same. The *meaning* of a raw value (register
//! 124 is M0 or NULL, constants, widths of masks) depends on the entry, the words and those features of the processor
//! that the operand reader queries: [`ASKED`], a list that a test compares with the reader's source. Processors that
//! agree on them read the same operands from the same entry, whatever the words. Where they do not agree, the operands
//! of each instruction are compared. Different entries mean the same if mnemonic, effects and operands agree. Numbers
//! that name something of the processor (hardware registers, messages) are compared by their names in assembly.
//!
//! Processors with the same features in the same mode are one processor to the decoder: then nothing is compared.

use hotswap_isa::{Feature, Inst, InstructionWalk, Isa, Operand, TableEntry};

/// Features that the meaning of an operand depends on.
pub(super) const ASKED: &[Feature] = &[
    Feature::G16,
    Feature::Gfx10Insts,
    Feature::Gfx11Insts,
    Feature::Gfx12Insts,
    Feature::Gfx1250Insts,
    Feature::Gfx1250Strict,
    Feature::Gfx1251GemmInsts,
    Feature::Gfx90aInsts,
    Feature::N64BitLiterals,
    Feature::NsaEncoding,
    Feature::PartialNsaEncoding,
    Feature::UnpackedD16Vmem,
    Feature::Wavefrontsize32,
];

/// Two processors in one wave size.
#[derive(Debug, Clone, Copy)]
pub(super) struct IsaComparison {
    source: Isa,
    target: Isa,
    /// They read the same operands from the same entry.
    same_operands: bool,
}

impl IsaComparison {
    /// `None` where the decoder cannot distinguish the two.
    pub(super) fn new(source: Isa, target: Isa) -> Option<Self> {
        let same_operands = ASKED.iter().all(|feature| source.has(*feature) == target.has(*feature));
        (source.features() != target.features()).then_some(Self { source, target, same_operands })
    }

    /// The target's decoding of the same bytes.
    pub(super) fn walk_target<'b>(&self, bytes: &'b [u8]) -> InstructionWalk<'b> {
        self.target.walk(bytes)
    }

    /// Whether the source's and the target's decoding are certainly the same.
    #[inline(always)]
    pub(super) fn decodings_agree(&self, inst: &Inst, other: &Inst) -> bool {
        let same_line = inst.entry() == other.entry() && inst.len() == other.len();
        same_line && (self.same_operands || self.operands_agree(inst, other))
    }

    #[inline(never)]
    fn operands_agree(&self, inst: &Inst, other: &Inst) -> bool {
        let mut pairs = inst.operands(self.source).zip(other.operands(self.target));
        inst.operands(self.source).len() == other.operands(self.target).len() && pairs.all(has_equal_operands)
    }

    /// The fault, where the decodings do not [agree](Compare::agrees) or the entry is one of those that [`names`]
    /// something; `None` without a fault.
    pub(super) fn find_fault(&self, inst: &Inst, bytes: &[u8]) -> Option<InstructionFault> {
        let Ok(other) = self.target.decode(bytes) else { return Some(InstructionFault::Absent) };
        let (entry, others) = (inst.entry(), other.entry());
        let same_line = entry == others || has_same_effects(&entry, &others);
        let same = same_line
            && inst.len() == other.len()
            && self.operands_agree(inst, &other)
            && (!names_hardware_item(entry) || has_same_text(self, inst, &other));
        (!same).then_some(InstructionFault::Other(other))
    }

    /// The message for the fault.
    #[cold]
    pub(super) fn fault_message(&self, inst: &Inst, fault: &InstructionFault) -> String {
        let (name, target) = (inst.mnemonic(), self.target.target().name);
        match fault {
            InstructionFault::Absent if self.exists_on_target(name) => {
                format!("this form of {name} is absent on {target}")
            }
            InstructionFault::Absent => format!("{name} is absent on {target}"),
            InstructionFault::Other(other) if other.mnemonic() != name => {
                format!("{name} means {} on {target}", other.mnemonic())
            }
            InstructionFault::Other(other) => {
                format!("`{}` means `{}` on {target}", inst.text(self.source), other.text(self.target))
            }
        }
    }

    /// Whether the target has an instruction of that name.
    fn exists_on_target(&self, mnemonic: &str) -> bool {
        TableEntry::all_entries().any(|entry| entry.mnemonic() == mnemonic && entry.available(self.target))
    }
}

fn has_equal_operands((a, b): (Operand, Operand)) -> bool {
    a.name == b.name && a.access == b.access && a.value == b.value
}

fn has_same_effects(entry: &TableEntry, others: &TableEntry) -> bool {
    let [own, other] = [entry, others].map(|entry| (entry.flags(), entry.implicit_reads(), entry.implicit_writes()));
    entry.mnemonic() == others.mnemonic() && own == other
}

fn has_same_text(compare: &IsaComparison, inst: &Inst, other: &Inst) -> bool {
    inst.text(compare.source).to_string() == other.text(compare.target).to_string()
}

/// The reason why bytes are not the same instruction.
#[derive(Debug, Clone, Copy)]
pub(super) enum InstructionFault {
    /// The target decodes no instruction.
    Absent,
    /// It decodes this one.
    Other(Inst),
}

/// Whether a number of the instruction names something that not every processor has.
pub(super) fn names_hardware_item(entry: TableEntry) -> bool {
    ["s_getreg", "s_setreg", "s_sendmsg"].iter().any(|start| entry.mnemonic().starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_isa::{Target, Wave};

    /// The code that reads operands, values and sizes of images: every feature that these files query must
    /// be in the list.
    const READERS: &[&str] = &[
        include_str!("../../../../amdgpu/isa/src/kind.rs"),
        include_str!("../../../../amdgpu/isa/src/number.rs"),
        include_str!("../../../../amdgpu/isa/src/operand.rs"),
        include_str!("../../../../amdgpu/isa/src/operand/image.rs"),
        include_str!("../../../../amdgpu/isa/src/quirks.rs"),
        include_str!("../../../../amdgpu/isa/src/reg.rs"),
        include_str!("../../../../amdgpu/isa/src/target_class.rs"),
        include_str!("../../../../amdgpu/isa/src/value.rs"),
    ];

    /// Queried for the registers that assemblers accept, on which no value depends.
    const OF_CLASSES: &str = "MaiInsts";

    #[test]
    fn the_list_has_every_feature_that_the_reader_of_operands_asks_for() {
        for (number, text) in READERS.iter().enumerate() {
            assert!(!text.contains(".setting(") && !text.contains(".target("), "reader {number} asks for more");
            for part in text.split("Feature::").skip(1) {
                let name: String = part.chars().take_while(char::is_ascii_alphanumeric).collect();
                let known = ASKED.iter().any(|feature| format!("{feature:?}") == name);
                assert!(known || name == OF_CLASSES, "reader {number} asks for {name}");
            }
        }
    }

    fn isa(name: &str, wave: Wave) -> Isa {
        Isa::new(Target::find(name).unwrap()).with_wave(wave)
    }

    /// A xorshift generator; words that decode often have few random bits in the upper half.
    fn words(count: usize) -> impl Iterator<Item = [u8; 20]> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        (0..count).map(move |_| {
            let mut bytes = [0; 20];
            for chunk in bytes.chunks_exact_mut(4) {
                chunk.copy_from_slice(&(next() as u32).to_le_bytes());
            }
            bytes
        })
    }

    /// The basis of the comparison: equal features are one decoder, and entries that agree read the same operands.
    #[test]
    fn readings_that_agree_are_the_same_to_the_last_operand() {
        let pairs = [
            ("gfx900", "gfx906"),
            ("gfx904", "gfx900"),
            ("gfx906", "gfx908"),
            ("gfx942", "gfx950"),
            ("gfx1010", "gfx1030"),
            ("gfx1011", "gfx1010"),
            ("gfx1030", "gfx10-3-generic"),
            ("gfx1100", "gfx1102"),
            ("gfx1102", "gfx1150"),
            ("gfx1150", "gfx1100"),
            ("gfx1200", "gfx12-generic"),
            ("gfx908", "gfx90a"),
            ("gfx1030", "gfx1100"),
        ];
        for (source, target) in pairs {
            for wave in [Wave::W32, Wave::W64] {
                let (one, other) = (isa(source, wave), isa(target, wave));
                let compare = IsaComparison::new(one, other);
                let mut decoded = 0;
                for bytes in words(15_000) {
                    let (a, b) = (one.decode(&bytes), other.decode(&bytes));
                    let Some(compare) = compare else {
                        assert_eq!(a, b, "{source}=>{target}: {bytes:02x?}");
                        continue;
                    };
                    let (Ok(a), Ok(b)) = (a, b) else { continue };
                    decoded += 1;
                    if compare.decodings_agree(&a, &b) {
                        let same = a.operands(one).zip(b.operands(other)).all(|(a, b)| a.value == b.value);
                        assert!(same, "{source}=>{target}: {} and {}", a.text(one), b.text(other));
                        assert!(names_hardware_item(a.entry()) || compare.find_fault(&a, &bytes).is_none());
                    }
                }
                assert!(compare.is_none() || decoded > 250, "{source}=>{target}: {decoded}");
            }
        }
    }
}
