//! Evaluates LDS accesses and their replacements for one lane, on the text of the disassembler.
//!
//! All lanes are active. The result of a load is available at once, so waits do nothing here (distances and
//! counters are judged elsewhere). An unknown instruction is an error: nothing is skipped.

use crate::banks::Banks;
use crate::listing::{Line, Listing, Role, vgprs};
use std::collections::BTreeMap;

/// Registers and LDS of one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// Physical registers, by number.
    pub vector: BTreeMap<u16, u32>,
    /// Bytes of LDS that were written or are initial values.
    pub lds: BTreeMap<u32, u8>,
    /// M0.
    pub m0: u32,
    /// Number of the lane.
    pub number: u32,
    /// The seed of the content of uninitialized registers and LDS.
    pub seed: u32,
}

/// A hash of both numbers.
fn mixed(seed: u32, value: u32) -> u32 {
    let x = (seed ^ value.wrapping_mul(0x9e37_79b9)).wrapping_mul(0x85eb_ca6b);
    (x ^ x >> 13).wrapping_mul(0xc2b2_ae35) ^ x >> 16
}

impl Lane {
    /// A lane whose content is derived from a number.
    pub fn new(seed: u32) -> Self {
        Self { vector: BTreeMap::new(), lds: BTreeMap::new(), m0: mixed(seed, 7) & 0xf_ffff, number: seed % 32, seed }
    }

    fn reg(&self, number: u16) -> u32 {
        // Addresses are arbitrary, so accesses are misaligned and overlap.
        self.vector.get(&number).copied().unwrap_or_else(|| mixed(self.seed, u32::from(number)) & 0xffff)
    }

    fn load(&self, address: u32) -> u32 {
        (0..4).map(|one| load_shifted_lds_byte(one, self, address)).sum()
    }

    fn store(&mut self, address: u32, value: u32) {
        for (offset, byte) in value.to_le_bytes().into_iter().enumerate() {
            self.lds.insert(address.wrapping_add(offset as u32), byte);
        }
    }

    /// Runs a function of a listing to its `s_endpgm`.
    ///
    /// # Errors
    /// An unknown instruction.
    pub fn run(&mut self, listing: &Listing, banks: &Banks, from: usize) -> Result<(), String> {
        for (number, line) in listing.lines.iter().enumerate().skip(from) {
            if line.mnemonic() == "s_endpgm" {
                return Ok(());
            }
            let operand = |(role, text): (Role, &str)| match vgprs(text) {
                Some(regs) => banks.before[number].physical(role, regs).first().map(|regs| Operand::Reg(regs.first)),
                None if text == "m0" => Some(Operand::Number(self.m0)),
                None => number_of(text).map(Operand::Number),
            };
            let operands: Vec<Option<Operand>> = line.operands().into_iter().map(operand).collect();
            self.step(line, &operands).ok_or_else(|| listing.show(number))?;
        }
        Err("no end".to_owned())
    }

    fn step(&mut self, line: &Line, operands: &[Option<Operand>]) -> Option<()> {
        let name = line.mnemonic();
        if name.starts_with("s_wait_")
            || matches!(name, "s_nop" | "s_set_vgpr_msb" | "s_clause" | "s_delay_alu" | "v_nop")
        {
            return Some(());
        }
        if let Some(access) = name.strip_prefix("ds_") {
            return self.access(access, line, operands);
        }
        let Operand::Reg(result) = operands.first().copied()?? else { return None };
        let value = match name.trim_end_matches("_e32").trim_end_matches("_e64") {
            "v_mov_b32" => operand_dword_value(1, self, operands)?,
            "v_mbcnt_lo_u32_b32" => {
                (operand_dword_value(1, self, operands)? & ((1 << self.number) - 1)).count_ones()
                    + operand_dword_value(2, self, operands)?
            }
            "v_lshl_add_u32" => (operand_dword_value(1, self, operands)?
                << (operand_dword_value(2, self, operands)? & 31))
                .wrapping_add(operand_dword_value(3, self, operands)?),
            "v_bfe_u32" => {
                operand_dword_value(1, self, operands)? >> (operand_dword_value(2, self, operands)? & 31)
                    & ((1 << (operand_dword_value(3, self, operands)? & 31)) - 1)
            }
            "v_add_nc_u32" => {
                operand_dword_value(1, self, operands)?.wrapping_add(operand_dword_value(2, self, operands)?)
            }
            _ => return None,
        };
        self.vector.insert(result, value);
        Some(())
    }

    fn access(&mut self, access: &str, line: &Line, operands: &[Option<Operand>]) -> Option<()> {
        let regs: Vec<u16> = operands.iter().flatten().filter_map(|operand| operand.reg()).collect();
        let words = if access.contains("b128") {
            4
        } else if access.contains("b64") {
            2
        } else {
            1
        };
        let step = 4 * words * if access.contains("stride64") { 64 } else { 1 };
        let places: Vec<u32> = match access.contains("2addr") {
            true => {
                vec![offset_modifier_value("offset0:", line) * step, offset_modifier_value("offset1:", line) * step]
            }
            false => vec![offset_modifier_value("offset:", line)],
        };
        let own = (self.m0.wrapping_add(4 * self.number)) & 0xf_ffff;
        let kind = access.split('_').next()?;
        // Everything is read before anything is written, but the second exchange sees what the first one stored.
        let (address, data): (u32, Vec<u32>) = match (kind, access.contains("addtid")) {
            ("load", true) => (own, Vec::new()),
            ("load", false) => (self.reg(*regs.get(1)?), Vec::new()),
            ("store", true) => (own, self.tuple(&regs[..1], words)),
            ("store", false) => (self.reg(*regs.first()?), self.tuple(&regs[1..], words)),
            ("storexchg", false) => (self.reg(*regs.get(1)?), self.tuple(&regs[2..], words)),
            _ => return None,
        };
        let mut loaded = Vec::new();
        for (number, place) in places.iter().enumerate() {
            for word in 0..words {
                let at = address.wrapping_add(*place).wrapping_add(4 * word);
                if kind != "store" {
                    loaded.push(self.load(at));
                }
                if kind != "load" {
                    self.store(at, *data.get(number * words as usize + word as usize)?);
                }
            }
        }
        for (index, value) in loaded.into_iter().enumerate() {
            self.vector.insert(regs.first()? + index as u16, value);
        }
        Some(())
    }

    fn tuple(&self, regs: &[u16], words: u32) -> Vec<u32> {
        regs.iter().flat_map(|reg| (0..words as u16).map(move |word| reg + word)).map(|reg| self.reg(reg)).collect()
    }
}

fn load_shifted_lds_byte(offset: u32, lane: &Lane, address: u32) -> u32 {
    let at = address.wrapping_add(offset);
    u32::from(lane.lds.get(&at).copied().unwrap_or_else(|| mixed(!lane.seed, at) as u8)) << (8 * offset)
}

fn operand_dword_value(number: usize, lane: &Lane, operands: &[Option<Operand>]) -> Option<u32> {
    match operands.get(number).copied()?? {
        Operand::Reg(reg) => Some(lane.reg(reg)),
        Operand::Number(number) => Some(number),
    }
}

fn offset_modifier_value(key: &str, line: &Line) -> u32 {
    modifier(&line.text, key).unwrap_or(0)
}

#[derive(Debug, Clone, Copy)]
enum Operand {
    Reg(u16),
    Number(u32),
}

impl Operand {
    fn reg(self) -> Option<u16> {
        match self {
            Self::Reg(reg) => Some(reg),
            Self::Number(_) => None,
        }
    }
}

fn number_of(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse::<i32>().ok().map(|number| number as u32),
    }
}

fn modifier(text: &str, key: &str) -> Option<u32> {
    text.split(' ').find_map(|word| word.strip_prefix(key)).and_then(number_of)
}
