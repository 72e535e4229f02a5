//! Numbers and registers of random kernels.

/// A fixed generator: the same seed gives the same kernels.
#[derive(Debug, Clone)]
pub(super) struct RandomSource(u64);

impl RandomSource {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub(super) fn next_word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    pub(super) fn below(&mut self, bound: u32) -> u32 {
        (self.next_word() % u64::from(bound.max(1))) as u32
    }

    /// True so many times of 100.
    pub(super) fn percent(&mut self, chance: u32) -> bool {
        self.below(100) < chance
    }
}

/// Registers of every bank that hold addresses, and that nothing writes.
pub(super) const ADDRESS: u32 = 60;
/// Registers of a bank.
const BANK: u32 = 256;

/// The operand that a bank of the mode belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperandRole {
    First,
    Second,
    Third,
    Result,
}

impl OperandRole {
    /// Its bank in a mode.
    pub(super) fn bank_in(self, mode: u8) -> u32 {
        u32::from(mode >> (2 * self as u8) & 3)
    }
}

/// A run of registers of one bank: their numbers as written, and their place in the register file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RegisterRun {
    /// Number of the first one in its bank.
    pub(super) written: u32,
    pub(super) first: u32,
    pub(super) count: u32,
}

impl RegisterRun {
    pub(super) fn new(bank: u32, written: u32, count: u32) -> Self {
        Self { written, first: bank * BANK + written, count }
    }

    pub(super) fn text(self) -> String {
        match self.count {
            1 => format!("v{}", self.written),
            count => format!("v[{}:{}]", self.written, self.written + count - 1),
        }
    }

    pub(super) fn overlaps(self, other: Self) -> bool {
        self.first < other.first + other.count && other.first < self.first + self.count
    }

    /// Whether it fits a kernel of so many registers, below the last register that a name has, and leaves the addresses.
    pub(super) fn fits(self, registers: u32) -> bool {
        let address = Self::new(self.first / BANK, ADDRESS, 2);
        self.first + self.count <= registers && self.written + self.count <= BANK && !self.overlaps(address)
    }
}

/// The banks that a kernel of so many registers has.
pub(super) fn banks_of(registers: u32) -> u32 {
    (registers / BANK).max(1)
}

/// A run for a role: low registers mostly, so that instructions meet.
pub(super) fn draw_run(
    random: &mut RandomSource,
    role: OperandRole,
    mode: u8,
    count: u32,
    registers: u32,
) -> RegisterRun {
    let step = if count > 1 { 2 } else { 1 };
    let bank = role.bank_in(mode);
    loop {
        let high = random.percent(12);
        let from = if high { random.below(BANK) } else { random.below(58) };
        let run = RegisterRun::new(bank, from / step * step, count);
        if run.fits(registers) {
            return run;
        }
    }
}
