//! Instructions that are compared by their bytes, without decoding: nearly all.
//!
//! Invariants: an answer means that both sides decode, the old one for the source and the new one for the target, to
//! the same encoding and to the same bytes, except for the distance of branches. Any instruction that is not that
//! simple does not get an answer.

use hotswap_isa::{ClassRule, ClassifiedInst, Classifier, Isa, TableEntry};

/// The classification of such instructions, before and after.
#[derive(Debug)]
pub(crate) struct PlainClassifier(Classifier);

/// The result for an unchanged instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnchangedMatch {
    /// It implies nothing about other instructions; its length.
    Bytes(u32),
    /// The same, for a matrix instruction.
    Matrix(u32),
    /// A branch of four bytes, with its distance in dwords before and now.
    Branch([i16; 2]),
}

const PLAIN: u8 = 0;
/// Class of branches whose distance is in the lower half of their only dword.
const BRANCH: u8 = 1;
const MATRIX: u8 = 2;

fn class_rule(entry: TableEntry) -> ClassRule {
    let class = match (entry.branch_distance(), entry.mnemonic()) {
        (Some([piece]), _) if (piece.at, piece.from, piece.width, entry.bytes()) == (0, 0, 16, 4) => Some(BRANCH),
        (Some(_), _) | (None, "s_clause" | "s_add_pc_i64") => None,
        (None, name) if is_matrix(name) => Some(MATRIX),
        (None, _) => Some(PLAIN),
    };
    ClassRule { class, ..ClassRule::default() }
}

/// Whether an instruction of that name may be a matrix instruction.
pub(super) fn is_matrix(mnemonic: &str) -> bool {
    mnemonic.starts_with("v_wmma_") || mnemonic.starts_with("v_swmmac_")
}

/// For each length in dwords, the mask of the first 16 bytes that belong to an instruction.
const KEEP: [u128; 5] = [0, 0xffff_ffff, u64::MAX as u128, u128::MAX >> 32, u128::MAX];

impl PlainClassifier {
    pub(crate) fn new(source: Isa, target: Isa) -> Self {
        Self(Classifier::shared_by(&[source, target], class_rule))
    }

    /// The result for the instruction at the start of both.
    #[inline(always)]
    pub(super) fn compare_instructions(&self, old: &[u8; 20], new: &[u8; 20]) -> Option<UnchangedMatch> {
        let ClassifiedInst { len, class, .. } = self.0.classify_bytes(new)?;
        let differs = (low_bits(old) ^ low_bits(new)) & KEEP.get(usize::from(len / 4))?;
        match class {
            PLAIN if differs == 0 => Some(UnchangedMatch::Bytes(u32::from(len))),
            MATRIX if differs == 0 => Some(UnchangedMatch::Matrix(u32::from(len))),
            BRANCH if len == 4 && differs >> 16 == 0 && self.0.classify_bytes(old) == self.0.classify_bytes(new) => {
                Some(UnchangedMatch::Branch([branch_distance_field(old), branch_distance_field(new)]))
            }
            _ => None,
        }
    }
}

fn branch_distance_field(bytes: &[u8; 20]) -> i16 {
    i16::from_le_bytes([bytes[0], bytes[1]])
}

#[inline(always)]
fn low_bits(bytes: &[u8; 20]) -> u128 {
    bytes.first_chunk().map_or(0, |low| u128::from_le_bytes(*low))
}
