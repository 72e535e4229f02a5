//! The bank mode before each line: a property of the control flow, starting with mode 0 at the start of a function.

use crate::listing::{Listing, Role, Vgprs};

/// The mode, or that paths disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// No path reaches the line.
    Unreached,
    /// Two bits each for the first, second and third source and the result, from bit 0 up.
    Known(u8),
    /// Different on different paths, or from a register.
    Unknown,
}

impl Mode {
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unreached, mode) | (mode, Self::Unreached) => mode,
            (left, right) if left == right => left,
            _ => Self::Unknown,
        }
    }

    /// The physical registers; with an unknown bank those of all banks.
    pub fn physical(self, role: Role, regs: Vgprs) -> Vec<Vgprs> {
        let shift = match role {
            Role::Fixed => return vec![regs],
            Role::Src0 => 0,
            Role::Src1 => 2,
            Role::Src2 => 4,
            Role::Dst => 6,
        };
        let in_bank = |bank: u16| Vgprs { first: regs.first + 256 * bank, ..regs };
        match self {
            Self::Known(mode) => vec![in_bank(u16::from(mode >> shift & 3))],
            Self::Unknown | Self::Unreached => (0..4).map(in_bank).collect(),
        }
    }
}

/// The modes, and problems of the instructions that set them.
#[derive(Debug, Default)]
pub struct Banks {
    /// Before each line.
    pub before: Vec<Mode>,
    /// Lines that name another previous mode than the one in force, or that follow a write of MODE directly.
    pub problems: Vec<String>,
}

/// Follows the mode through a listing.
pub fn banks(listing: &Listing) -> Banks {
    let mut before = vec![Mode::Unreached; listing.lines.len()];
    let mut work = Vec::new();
    for &start in listing.functions.keys().filter(|start| **start < listing.lines.len()) {
        before[start] = Mode::Known(0);
        work.push(start);
    }
    while let Some(line) = work.pop() {
        let after = after(listing, line, before[line]);
        for next in listing.successors(line) {
            let joined = before[next].join(after);
            if joined != before[next] {
                before[next] = joined;
                work.push(next);
            }
        }
    }
    let problems = (0..listing.lines.len()).filter_map(|line| problem(listing, line, before[line])).collect();
    Banks { before, problems }
}

fn after(listing: &Listing, line: usize, mode: Mode) -> Mode {
    let here = &listing.lines[line];
    match here.mnemonic() {
        "s_set_vgpr_msb" => here.words.first().map_or(Mode::Unknown, |word| Mode::Known(*word as u8)),
        "s_setreg_imm32_b32" if here.text.contains("HW_REG_WAVE_MODE") || here.text.contains("HW_REG_MODE") => {
            // The hardware takes the bits from their positions in MODE, whatever field is named.
            let bits = here.words.get(1).map_or(0, |word| (word >> 12 & 0xff) as u8);
            Mode::Known(bits.rotate_right(2))
        }
        "s_setreg_b32" if here.text.contains("MODE, 0, 32") || here.text.contains("MODE)") => Mode::Unknown,
        // Functions are entered and left in mode 0.
        "s_swap_pc_i64" | "s_call_i64" => Mode::Known(0),
        _ => mode,
    }
}

fn problem(listing: &Listing, line: usize, mode: Mode) -> Option<String> {
    let here = &listing.lines[line];
    if here.mnemonic() != "s_set_vgpr_msb" {
        return None;
    }
    let said = here.words.first().map_or(0, |word| (word >> 8) as u8);
    match mode {
        Mode::Known(mode) if mode != said => {
            Some(format!("{}: the mode before is {mode:#x}, not {said:#x}", listing.show(line)))
        }
        _ if line > 0 && listing.lines[line - 1].mnemonic().starts_with("s_setreg") => {
            Some(format!("{}: directly behind a write of MODE", listing.show(line)))
        }
        _ => None,
    }
}
