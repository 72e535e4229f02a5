//! The 16-bit numbers of scalar instructions: hardware registers, counters, delays, modes, versions.

use super::TextWriter;
use super::message::isa_generation;
use crate::isa::Isa;
use crate::tables::Feature;
use core::fmt::{self, Write};
use hotswap_isa_tables::TextPart;

/// The targets that have a hardware register under a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HwregTargets {
    Always,
    /// Generations from the first number to before the second.
    Generations(u8, u8),
    /// From gfx940 to gfx950.
    Gfx940,
    /// Of gfx10 those before gfx1030.
    FirstGfx10,
    Gfx1030To11,
    /// The targets of gfx12.5.
    Gfx1250,
}

const GFX12: HwregTargets = HwregTargets::Generations(12, 255);

struct HardwareRegister {
    number: u16,
    name: &'static str,
    targets: HwregTargets,
}

const fn hardware_register(number: u16, name: &'static str, targets: HwregTargets) -> HardwareRegister {
    HardwareRegister { number, name, targets }
}

/// Names of hardware registers, after `HW_REG_`. The first that fits a target is used.
const HARDWARE_REGISTERS: &[HardwareRegister] = &[
    hardware_register(1, "WAVE_MODE", GFX12),
    hardware_register(1, "MODE", HwregTargets::Always),
    hardware_register(2, "WAVE_STATUS", GFX12),
    hardware_register(2, "STATUS", HwregTargets::Always),
    hardware_register(3, "TRAPSTS", HwregTargets::Generations(9, 12)),
    hardware_register(4, "HW_ID", HwregTargets::Generations(9, 10)),
    hardware_register(4, "WAVE_STATE_PRIV", GFX12),
    hardware_register(5, "WAVE_GPR_ALLOC", GFX12),
    hardware_register(5, "GPR_ALLOC", HwregTargets::Always),
    hardware_register(6, "WAVE_LDS_ALLOC", GFX12),
    hardware_register(6, "LDS_ALLOC", HwregTargets::Always),
    hardware_register(7, "IB_STS", HwregTargets::Always),
    hardware_register(10, "PERF_SNAPSHOT_DATA", GFX12),
    hardware_register(11, "PERF_SNAPSHOT_PC_LO", GFX12),
    hardware_register(12, "PERF_SNAPSHOT_PC_HI", GFX12),
    hardware_register(15, "SH_MEM_BASES", HwregTargets::Generations(9, 12)),
    hardware_register(15, "PERF_SNAPSHOT_DATA1", GFX12),
    hardware_register(16, "TBA_LO", HwregTargets::Generations(9, 11)),
    hardware_register(16, "PERF_SNAPSHOT_DATA2", GFX12),
    hardware_register(17, "TBA_HI", HwregTargets::Generations(9, 11)),
    hardware_register(17, "WAVE_EXCP_FLAG_PRIV", GFX12),
    hardware_register(18, "TMA_LO", HwregTargets::Generations(9, 11)),
    hardware_register(18, "PERF_SNAPSHOT_PC_LO", HwregTargets::Generations(11, 12)),
    hardware_register(18, "WAVE_EXCP_FLAG_USER", GFX12),
    hardware_register(19, "TMA_HI", HwregTargets::Generations(9, 11)),
    hardware_register(19, "PERF_SNAPSHOT_PC_HI", HwregTargets::Generations(11, 12)),
    hardware_register(19, "WAVE_TRAP_CTRL", GFX12),
    hardware_register(20, "FLAT_SCR_LO", HwregTargets::Generations(10, 12)),
    hardware_register(20, "WAVE_SCRATCH_BASE_LO", GFX12),
    hardware_register(20, "XCC_ID", HwregTargets::Gfx940),
    hardware_register(21, "FLAT_SCR_HI", HwregTargets::Generations(10, 12)),
    hardware_register(21, "WAVE_SCRATCH_BASE_HI", GFX12),
    hardware_register(21, "SQ_PERF_SNAPSHOT_DATA", HwregTargets::Gfx940),
    hardware_register(22, "XNACK_MASK", HwregTargets::FirstGfx10),
    hardware_register(22, "SQ_PERF_SNAPSHOT_DATA1", HwregTargets::Gfx940),
    hardware_register(23, "WAVE_HW_ID1", GFX12),
    hardware_register(23, "HW_ID1", HwregTargets::Generations(10, 255)),
    hardware_register(23, "SQ_PERF_SNAPSHOT_PC_LO", HwregTargets::Gfx940),
    hardware_register(24, "WAVE_HW_ID2", GFX12),
    hardware_register(24, "HW_ID2", HwregTargets::Generations(10, 255)),
    hardware_register(24, "SQ_PERF_SNAPSHOT_PC_HI", HwregTargets::Gfx940),
    hardware_register(25, "POPS_PACKER", HwregTargets::Generations(10, 11)),
    hardware_register(26, "WAVE_SCHED_MODE", GFX12),
    hardware_register(27, "PERF_SNAPSHOT_DATA", HwregTargets::Generations(11, 12)),
    hardware_register(28, "IB_STS2", HwregTargets::Gfx1250),
    hardware_register(29, "SHADER_CYCLES", HwregTargets::Gfx1030To11),
    hardware_register(29, "SHADER_CYCLES_LO", GFX12),
    hardware_register(30, "SHADER_CYCLES_HI", GFX12),
    hardware_register(31, "WAVE_DVGPR_ALLOC_LO", GFX12),
    hardware_register(32, "WAVE_DVGPR_ALLOC_HI", GFX12),
    hardware_register(33, "XNACK_STATE_PRIV", HwregTargets::Gfx1250),
    hardware_register(34, "XNACK_MASK", HwregTargets::Gfx1250),
];

fn holds(when: HwregTargets, isa: Isa) -> bool {
    let generation = isa_generation(isa);
    match when {
        HwregTargets::Always => true,
        HwregTargets::Generations(first, end) => (first..end).contains(&generation),
        HwregTargets::Gfx940 => isa.has(Feature::Gfx940Insts),
        HwregTargets::FirstGfx10 => generation == 10 && !isa.has(Feature::Gfx10BEncoding),
        HwregTargets::Gfx1030To11 => generation < 12 && isa.has(Feature::Gfx10BEncoding),
        HwregTargets::Gfx1250 => isa.has(Feature::Gfx1250Insts),
    }
}

/// A counter of `s_waitcnt`.
struct WaitedCounter {
    /// A blank, the name and a parenthesis, with blanks up to nine bytes.
    name: &'static [u8; 9],
    /// The bytes without the blanks at the end.
    letters: usize,
    value: u16,
    /// The value that waits for nothing.
    full: u16,
}

/// A counter of `s_waitcnt_depctr`. All bits are set by default.
struct DependencyCounter {
    /// The name after `depctr_`.
    name: &'static str,
    /// The number of its lowest bit.
    at: u16,
    width: u16,
}

impl DependencyCounter {
    fn value_in(&self, raw: u16) -> u16 {
        raw >> self.at & full_mask(self.width)
    }

    fn is_default_in(&self, raw: u16) -> bool {
        self.value_in(raw) == full_mask(self.width)
    }
}

const DEPENDENCY_COUNTERS: [DependencyCounter; 7] = [
    DependencyCounter { name: "hold_cnt", at: 7, width: 1 },
    DependencyCounter { name: "sa_sdst", at: 0, width: 1 },
    DependencyCounter { name: "va_vdst", at: 12, width: 4 },
    DependencyCounter { name: "va_sdst", at: 9, width: 3 },
    DependencyCounter { name: "va_ssrc", at: 8, width: 1 },
    DependencyCounter { name: "va_vcc", at: 1, width: 1 },
    DependencyCounter { name: "vm_vsrc", at: 2, width: 3 },
];

/// The dependencies of a delay.
const DELAYS: [&str; 12] = [
    "NO_DEP",
    "VALU_DEP_1",
    "VALU_DEP_2",
    "VALU_DEP_3",
    "VALU_DEP_4",
    "TRANS32_DEP_1",
    "TRANS32_DEP_2",
    "TRANS32_DEP_3",
    "FMA_ACCUM_CYCLE_1",
    "SALU_CYCLE_1",
    "SALU_CYCLE_2",
    "SALU_CYCLE_3",
];

/// The distance to the second delay.
const SKIPS: [&str; 6] = ["SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4"];

/// Length that marks a missing text.
const INVALID: u8 = 255;

/// The parts of a delay in their order, with their lengths in the last byte.
static DELAY_BLOCKS: [[[u8; 32]; 16]; 3] =
    [delays("instid0(", &DELAYS), delays(" | instskip(", &SKIPS), delays(" | instid1(", &DELAYS)];

const fn delays(start: &str, names: &[&str]) -> [[u8; 32]; 16] {
    let mut blocks = [[0; 32]; 16];
    let mut number = 1;
    while number < 16 {
        blocks[number][31] = INVALID;
        if number < names.len() {
            let parts = [start, names[number], ")"];
            let (mut len, mut part) = (0, 0);
            while part < parts.len() {
                let (text, mut at) = (parts[part].as_bytes(), 0);
                while at < text.len() {
                    blocks[number][len] = text[at];
                    len += 1;
                    at += 1;
                }
                part += 1;
            }
            blocks[number][31] = len as u8;
        }
        number += 1;
    }
    blocks
}

impl TextWriter<'_, '_, '_> {
    /// Numbers of scalar control instructions.
    pub(super) fn scalar_control(&mut self, part: TextPart, raw: u16) -> fmt::Result {
        match part {
            TextPart::HardwareRegister => self.hardware_register(raw),
            TextPart::Message => self.write_message(raw),
            TextPart::WaitCounters => self.wait_counters(raw),
            TextPart::DependencyCounters => self.dependency_counters(raw),
            TextPart::DelayAlu => self.delay_alu(raw),
            TextPart::IndexMode => self.index_mode(raw),
            TextPart::WaitEvent => self.wait_event(raw),
            _ => Ok(()),
        }
    }

    /// `name(number)`, with a separator unless it is the first.
    fn call(&mut self, first: &mut bool, separator: &str, name: &str, number: u16) -> fmt::Result {
        if !core::mem::replace(first, false) {
            self.out.write_str(separator)?;
        }
        self.out.write_str(name)?;
        self.out.write_char('(')?;
        self.out.write_decimal(u64::from(number))?;
        self.out.write_char(')')
    }

    /// Register in bits 0 to 5, first bit in bits 6 to 10, number of bits less one in bits 11 to 15.
    fn hardware_register(&mut self, raw: u16) -> fmt::Result {
        let (id, offset, size) = (raw & 63, raw >> 6 & 31, (raw >> 11) + 1);
        let found = HARDWARE_REGISTERS.iter().find(|row| row.number == id && holds(row.targets, self.isa));
        self.out.write_str("hwreg(")?;
        match found {
            Some(row) => {
                self.out.write_str("HW_REG_")?;
                self.out.write_str(row.name)?;
            }
            None => self.out.write_decimal(u64::from(id))?,
        }
        if offset != 0 || size != 32 {
            for number in [offset, size] {
                self.out.write_str(", ")?;
                self.out.write_decimal(u64::from(number))?;
            }
        }
        self.out.write_char(')')
    }

    /// Counters that are waited for; their places changed in gfx10 and gfx11.
    fn wait_counters(&mut self, raw: u16) -> fmt::Result {
        let (vector, export, other) = match isa_generation(self.isa) {
            9 => (raw & 15 | raw >> 14 << 4, raw >> 4 & 7, raw >> 8 & 15),
            10 => (raw & 15 | raw >> 14 << 4, raw >> 4 & 7, raw >> 8 & 63),
            _ => (raw >> 10, raw & 7, raw >> 4 & 63),
        };
        let most_others = if isa_generation(self.isa) == 9 { 15 } else { 63 };
        let counters = [
            WaitedCounter { name: b" vmcnt(  ", letters: 7, value: vector, full: 63 },
            WaitedCounter { name: b" expcnt( ", letters: 8, value: export, full: 7 },
            WaitedCounter { name: b" lgkmcnt(", letters: 9, value: other, full: most_others },
        ];
        let all = counters.iter().all(|counter| counter.value == counter.full);
        let start = self.out.at;
        for WaitedCounter { name, letters, value, full } in counters {
            if value != full || all {
                // No blank before the first.
                match self.out.at == start {
                    true => self.out.write_letters(
                        &[name[1], name[2], name[3], name[4], name[5], name[6], name[7], name[8]],
                        letters - 1,
                    )?,
                    false => self.out.write_letters(name, letters)?,
                }
                self.out.write_decimal(u64::from(value))?;
                self.out.write_letters(b")", 1)?;
            }
        }
        Ok(())
    }

    fn dependency_counters(&mut self, raw: u16) -> fmt::Result {
        let hold = self.isa.has(Feature::Gfx10BEncoding);
        let counters = &DEPENDENCY_COUNTERS[usize::from(!hold)..];
        let known = counters.iter().fold(0, |mask, counter| mask | full_mask(counter.width) << counter.at);
        if raw & !known != 0 {
            return self.out.write_hexadecimal(u64::from(raw));
        }
        let all = counters.iter().all(|counter| counter.is_default_in(raw));
        let mut first = true;
        for counter in counters {
            if !counter.is_default_in(raw) || all {
                if !core::mem::replace(&mut first, false) {
                    self.out.write_char(' ')?;
                }
                self.out.write_str("depctr_")?;
                self.call(&mut true, "", counter.name, counter.value_in(raw))?;
            }
        }
        Ok(())
    }

    /// A delay in bits 0 to 3, the distance of another in bits 4 to 6, that one in bits 7 to 10.
    fn delay_alu(&mut self, raw: u16) -> fmt::Result {
        let [first, distance, second] = [raw & 15, raw >> 4 & 7, raw >> 7 & 15].map(usize::from);
        let (first, distance, second) = (&DELAY_BLOCKS[0][first], &DELAY_BLOCKS[1][distance], &DELAY_BLOCKS[2][second]);
        if first[31] == 0 || first[31] == INVALID || distance[31] == INVALID || second[31] == INVALID {
            return self.any_delay_alu(raw);
        }
        for block in [first, distance, second] {
            self.out.write_letters(block, usize::from(block[31]))?;
        }
        Ok(())
    }

    /// The same with meaningless numbers, and without a first delay.
    fn any_delay_alu(&mut self, raw: u16) -> fmt::Result {
        let parts = [
            ("instid0(", usize::from(raw & 15), &DELAYS[..], "/* invalid instid value */"),
            ("instskip(", usize::from(raw >> 4 & 7), &SKIPS[..], "/* invalid instskip value */"),
            ("instid1(", usize::from(raw >> 7 & 15), &DELAYS[..], "/* invalid instid value */"),
        ];
        let mut first = true;
        for (text, number, names, invalid) in parts {
            if number == 0 {
                continue;
            }
            if !core::mem::replace(&mut first, false) {
                self.out.write_str(" | ")?;
            }
            self.out.write_str(text)?;
            self.out.write_str(names.get(number).unwrap_or(&invalid))?;
            self.out.write_char(')')?;
        }
        if first { self.out.write_char('0') } else { Ok(()) }
    }

    fn index_mode(&mut self, raw: u16) -> fmt::Result {
        if raw & !15 != 0 {
            return self.out.write_hexadecimal(u64::from(raw));
        }
        self.out.write_str("gpr_idx(")?;
        let mut first = true;
        for (bit, name) in ["SRC0", "SRC1", "SRC2", "DST"].into_iter().enumerate() {
            if raw >> bit & 1 != 0 {
                if !core::mem::replace(&mut first, false) {
                    self.out.write_char(',')?;
                }
                self.out.write_str(name)?;
            }
        }
        self.out.write_char(')')
    }

    /// Bit 0 means "do not wait" in gfx11, bit 1 "wait" from gfx12 on.
    fn wait_event(&mut self, raw: u16) -> fmt::Result {
        let text = match (isa_generation(self.isa), raw) {
            (12, 0) => "{ export_ready: 0 }",
            (12, 2) => "{ export_ready: 1 }",
            (11, 0) => "{ dont_wait_export_ready: 0 }",
            (11, 1) => "{ dont_wait_export_ready: 1 }",
            _ => return self.out.write_hexadecimal(u64::from(raw)),
        };
        self.out.write_str(text)
    }

    /// Version in bits 0 to 7, flags in bits 13 to 15.
    pub(super) fn version(&mut self, raw: u16) -> fmt::Result {
        if raw & 0x1f00 != 0 {
            return self.out.write_hexadecimal(u64::from(raw));
        }
        let flags = (13..).zip(["UC_VERSION_W64_BIT", "UC_VERSION_W32_BIT", "UC_VERSION_MDP_BIT"]);
        let set = raw.count_ones() - (raw & 0xff).count_ones();
        // Every flag but the last encloses the preceding text in parentheses.
        for _ in 1..set {
            self.out.write_char('(')?;
        }
        match raw & 0xff {
            0 => self.out.write_str("UC_VERSION_GFX7")?,
            4 => self.out.write_str("UC_VERSION_GFX10")?,
            6 => self.out.write_str("UC_VERSION_GFX11")?,
            9 => self.out.write_str("UC_VERSION_GFX12")?,
            other => self.out.write_decimal(u64::from(other))?,
        }
        let mut left = set;
        for (bit, name) in flags {
            if raw >> bit & 1 != 0 {
                self.out.write_char('|')?;
                self.out.write_str(name)?;
                left -= 1;
                if left > 0 {
                    self.out.write_char(')')?;
                }
            }
        }
        Ok(())
    }
}

fn full_mask(width: u16) -> u16 {
    (1u16 << width) - 1
}
