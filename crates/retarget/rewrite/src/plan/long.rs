//! Branches that compute their target: for distances that the short form cannot encode.

use hotswap_isa::Isa;

/// The instructions of one target, as words with empty fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LongBranchForms {
    get: u32,
    set: u32,
    add: u32,
    add_carry: u32,
    /// The counter read by `get` has 48 bits without a sign.
    extend: u32,
    branch: u32,
}

fn word_mnemonic(isa: Isa, word: u32) -> &'static str {
    let mut bytes = [0; 20];
    bytes[..4].copy_from_slice(&word.to_le_bytes());
    isa.decode(&bytes).map_or("", |inst| inst.mnemonic())
}

/// The word with that mnemonic among those of an encoding.
fn find_word(isa: Isa, words: impl Iterator<Item = u32>, names: &[&str]) -> u32 {
    words.into_iter().find(|word| names.contains(&word_mnemonic(isa, *word))).unwrap_or(0)
}

impl LongBranchForms {
    pub(crate) fn new(isa: Isa) -> Self {
        let get = find_word(isa, sop1_opcodes(), &["s_getpc_b64", "s_get_pc_i64"]);
        let is_short = word_mnemonic(isa, get) == "s_getpc_b64" && isa.target().name.starts_with("gfx12");
        Self {
            get,
            set: find_word(isa, sop1_opcodes(), &["s_setpc_b64", "s_set_pc_i64"]),
            add: find_word(isa, sop2_opcodes(), &["s_add_u32", "s_add_co_u32"]),
            add_carry: find_word(isa, sop2_opcodes(), &["s_addc_u32", "s_add_co_ci_u32"]),
            extend: if is_short { find_word(isa, sop1_opcodes(), &["s_sext_i32_i16"]) } else { 0 },
            branch: find_word(isa, sopp_opcodes(), &["s_branch"]),
        }
    }

    /// Whether a branch with this word can be replaced: others have further effects.
    pub(crate) fn can_be_long(&self, word: u32) -> bool {
        // SOPP: nine bits. Forks and loops of sub-vectors are SOPK.
        word >> 23 == 0x17f && [self.get, self.set, self.add, self.add_carry, self.branch].iter().all(|word| *word != 0)
    }

    /// The word of a branch by that many bytes from its end.
    pub(crate) fn branch_word(&self, distance: i64) -> u32 {
        self.branch | u32::from((distance / 4) as i16 as u16)
    }

    pub(crate) fn is_conditional(&self, word: u32) -> bool {
        word >> 16 != self.branch >> 16
    }

    fn computation_size(&self) -> u64 {
        4 + u64::from(self.extend != 0) * 4 + 8 + 8 + 4
    }

    pub(crate) fn long_branch_size(&self, conditional: bool) -> u64 {
        self.computation_size() + if conditional { 8 } else { 0 }
    }

    /// Writes the words for a branch at `at` of the new section to `target`.
    pub(crate) fn write_branch(&self, word: u32, first: u8, at: u64, target: u64, out: &mut Vec<u32>) {
        let pair = u32::from(first);
        if self.is_conditional(word) {
            // Taken: over the branch around the computation.
            out.push(word & 0xffff_0000 | 1);
            out.push(self.branch | (self.computation_size() / 4) as u32);
        }
        out.push(self.get | pair << 16);
        let base = at + out.len() as u64 * 4;
        let distance = target.wrapping_sub(base);
        if self.extend != 0 {
            out.push(self.extend | (pair + 1) << 16 | (pair + 1));
        }
        out.extend([encode_literal_sop2(self.add, pair), distance as u32]);
        out.extend([encode_literal_sop2(self.add_carry, pair + 1), (distance >> 32) as u32]);
        out.push(self.set | pair);
    }
}

fn sopp_opcodes() -> impl Iterator<Item = u32> {
    (0..128).map(|op| 0xbf80_0000 | op << 16)
}

fn sop2_opcodes() -> impl Iterator<Item = u32> {
    (0..96).map(|op| 0x8000_0000 | op << 23)
}

fn sop1_opcodes() -> impl Iterator<Item = u32> {
    (0..256).map(|op| 0xbe80_0000 | op << 8)
}

fn encode_literal_sop2(opcode: u32, register: u32) -> u32 {
    opcode | register << 16 | 0xff << 8 | register
}
