//! Two waves that begin in the same state: one executes the code before, the other the code after.
//!
//! Invariants: a state depends on the seed and its number only. Registers that neither side names have values, too, and are
//! compared now and then.

use crate::memory::SeededMemory;
use crate::object::CheckedObject;
use crate::order::PairAccess;
use crate::random::{NumberTheme, Random, THEMES, mix_seed};
use crate::report::DifferingValue;
use hotswap_emulator::{SnippetMachine, SnippetShape, scalar_registers};
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use hotswap_program::DeadLanes;

/// States after which all registers are set and compared, not only those that code names.
const WHOLE: u64 = 64;
/// Values that a report lists.
const LISTED: usize = 24;

/// The sizes, registers and modes from which states are drawn.
pub(crate) struct PairPlan {
    pub(crate) shape: SnippetShape,
    /// Registers that either side reads or writes.
    pub(crate) touched: Vec<Reg>,
    /// Registers that are dead afterwards, and in which lanes.
    pub(crate) dead: Vec<DeadRegister>,
    /// Offsets of dwords of scratch that hold spilled registers.
    pub(crate) slots: Vec<u32>,
    /// Bank modes to choose from.
    pub(crate) banks: Vec<u8>,
    /// An access to two elements, of which some results are not specified.
    pub(crate) pair_access: Option<PairAccess>,
    /// All lanes are active.
    pub(crate) all_lanes: bool,
    /// The address after the code of each side: a call leaves it in registers.
    pub(crate) returns: [u64; 2],
    /// Rounding and denormals are those that compilers set.
    pub(crate) plain_mode: bool,
    /// System SGPRs of a kernel's entry that are elsewhere on the side after.
    pub(crate) moved: Vec<MovedSgpr>,
    pub(crate) seed: u64,
}

/// A register that is not read afterwards, in these lanes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeadRegister {
    pub(crate) reg: Reg,
    pub(crate) lanes: DeadLanes,
}

/// A system SGPR: its register in the file before and in the file after.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MovedSgpr {
    pub(crate) home: u16,
    pub(crate) now: u16,
}

pub(crate) struct MachinePair<'a> {
    pub(crate) sides: [SnippetMachine<'a>; 2],
    memories: [&'a SeededMemory; 2],
    plan: &'a PairPlan,
    lds: Vec<u8>,
    scratch: Vec<u8>,
    /// EXEC of the state.
    exec: u64,
    mode: u32,
}

/// A vector register that differs in a lane.
struct DifferingLane {
    register: u16,
    lane: usize,
}

impl<'a> MachinePair<'a> {
    pub(crate) fn new(
        objects: [&'a CheckedObject<'a>; 2],
        memories: [&'a SeededMemory; 2],
        plan: &'a PairPlan,
    ) -> Self {
        let sides = [0, 1].map(|side: usize| SnippetMachine::new(&objects[side].device, memories[side], &plan.shape));
        let mut random = Random::new(plan.seed);
        let lds = random_byte_vector(plan.shape.lds, &mut random);
        let scratch = random_byte_vector(plan.shape.scratch as usize * plan.shape.lanes, &mut random);
        Self { sides, memories, plan, lds, scratch, exec: 0, mode: 0 }
    }

    /// Sets both to state `number`.
    pub(crate) fn prepare_state(&mut self, number: u64) {
        let mut random = Random::new(mix_seed(self.plan.seed, number));
        let theme = THEMES[number as usize % THEMES.len()];
        let memory_theme = random.choose_from(&THEMES);
        self.memories.iter().for_each(|memory| memory.reset(mix_seed(self.plan.seed, number), memory_theme));
        if number.is_multiple_of(WHOLE) {
            self.draw_everything(number);
        }
        self.sides.iter_mut().for_each(|side| {
            side.lds_mut().copy_from_slice(&self.lds);
            side.scratch_mut().copy_from_slice(&self.scratch);
        });
        for reg in scalar_registers() {
            let value =
                if random.below(4) == 0 { random.draw_word(NumberTheme::Small) } else { random.draw_word(theme) };
            self.sides.iter_mut().for_each(|side| side.set_scalar(reg, value));
        }
        self.move_system_sgprs();
        let plan = self.plan;
        for reg in plan.touched.iter().filter(|reg| reg.file == RegFile::Vgpr) {
            self.draw_vector(reg.index, theme, &mut random);
        }
        self.set_modes(&mut random, number);
        if let Some(access) = self.plan.pair_access.filter(|_| random.below(4) != 0) {
            let (lanes, register) =
                (PairAccess::spread_addresses(&mut random), access.address_register(self.sides[0].banks()));
            self.sides.iter_mut().for_each(|side| *side.vector_mut(register, 0) = lanes);
        }
    }

    /// Puts system SGPRs where the descriptor of the file after has them. Their old registers hold something else then.
    fn move_system_sgprs(&mut self) {
        let side = &mut self.sides[1];
        let values: Vec<u32> =
            self.plan.moved.iter().map(|moved| side.scalar(sgpr(moved.home)).unwrap_or_default()).collect();
        for (moved, value) in self.plan.moved.iter().zip(&values) {
            side.set_scalar(sgpr(moved.home), !value);
        }
        for (moved, value) in self.plan.moved.iter().zip(values) {
            side.set_scalar(sgpr(moved.now), value);
        }
    }

    /// Whether the result of the state is specified.
    pub(crate) fn is_specified(&self) -> bool {
        self.plan.pair_access.is_none_or(|access| access.is_specified(&self.sides[0]))
    }

    /// Gives every vector register other values.
    fn draw_everything(&mut self, number: u64) {
        let mut random = Random::new(mix_seed(self.plan.seed ^ 0x77, number));
        for register in 0..self.plan.shape.vectors {
            self.draw_vector(register, NumberTheme::Uniform, &mut random);
        }
    }

    fn draw_vector(&mut self, register: u16, theme: NumberTheme, random: &mut Random) {
        if register >= self.plan.shape.vectors {
            return;
        }
        let all = (random.below(8) == 0).then(|| random.draw_word(theme));
        for half in 0..self.sides[0].halves() {
            let lanes = std::array::from_fn(|_| all.unwrap_or_else(|| random.draw_word(theme)));
            self.sides.iter_mut().for_each(|side| *side.vector_mut(register, half) = lanes);
        }
    }

    /// EXEC, MODE, and whether results are late.
    fn set_modes(&mut self, random: &mut Random, number: u64) {
        let all = if self.plan.shape.lanes == 64 { u64::MAX } else { 0xffff_ffff };
        let lane = 1 << random.below(self.plan.shape.lanes as u32);
        let choices = [all, all, all, 0, lane, all & !lane, random.next() & all, 0x5555_5555_5555_5555 & all];
        self.exec = if self.plan.all_lanes { all } else { random.choose_from(&choices) };
        let rounding = if self.plan.plain_mode {
            0xf0
        } else {
            random.choose_from(&[0xf0, 0xf0, 0x00, 0x30, 0xc0, 0xf1, 0xf2, 0xf3])
        };
        self.mode = rounding | 0x300 | random.below(2) << 23;
        let banks = random.choose_from(&self.plan.banks);
        for side in &mut self.sides {
            side.set_scalar(Reg::special(Special::ExecLo, 1), self.exec as u32);
            side.set_scalar(Reg::special(Special::ExecHi, 1), (self.exec >> 32) as u32);
            side.set_mode(self.mode, banks);
            side.set_late(number % 2 == 1);
        }
    }

    /// The lanes in which a vector register has to be the same.
    fn lanes_of(&self, register: u16) -> u64 {
        let reg = Reg::new(RegFile::Vgpr, register, 1);
        match self.plan.dead.iter().find(|dead| dead.reg == reg) {
            Some(DeadRegister { lanes: DeadLanes::InAllLanes, .. }) => 0,
            Some(DeadRegister { lanes: DeadLanes::InActiveLanes, .. }) => !self.exec,
            None => u64::MAX,
        }
    }

    /// The first difference between the ends of both.
    pub(crate) fn find_difference(&self, number: u64) -> Option<String> {
        let scalars = scalar_registers().filter(|reg| !is_planned_dead(reg, self.plan));
        if let Some(reg) = { scalars }.find(|one| differs_outside_return(one, self)) {
            let [before, after] = scalar_on_both_sides(reg, self).map(Option::unwrap_or_default);
            return Some(format!("{reg} is {before:#x} before and {after:#x} after"));
        }
        if let Some(DifferingLane { register, lane }) = self.differing_vector(number) {
            let [before, after] = self.lane_values(register, lane);
            return Some(format!("v{register} in lane {lane} is {before:#x} before and {after:#x} after"));
        }
        self.differing_rest()
    }

    /// Whether a scalar register is the lower half of the return address on both sides.
    fn is_return(&self, reg: Reg) -> bool {
        reg.file == RegFile::Sgpr && [0, 1].map(|side| self.scalar_pair(side, reg)) == self.plan.returns
    }

    fn scalar_pair(&self, side: usize, lower: Reg) -> u64 {
        let [low, high] = [lower.index, lower.index + 1]
            .map(|index| self.sides[side].scalar(Reg { index, ..lower }).unwrap_or_default());
        u64::from(low) | u64::from(high) << 32
    }

    fn differing_rest(&self) -> Option<String> {
        let [before, after] = &self.sides;
        if before.mode() != after.mode() {
            return Some(format!("MODE is {:#x} before and {:#x} after", before.mode(), after.mode()));
        }
        if let Some(at) = first_difference(before.lds(), after.lds()) {
            let values = [before.lds()[at], after.lds()[at]];
            return Some(format!("byte {at:#x} of LDS is {:#x} before and {:#x} after", values[0], values[1]));
        }
        if let Some(at) = self.differing_scratch() {
            let size = self.plan.shape.scratch as usize;
            return Some(format!("byte {:#x} of the scratch of lane {} differs", at % size, at / size));
        }
        if let Some(address) = differing_words(self.memories).next() {
            let [old, new] = self.memories.map(|memory| memory.word(address));
            return Some(format!("memory at {address:#x} is {old:#x} before and {new:#x} after"));
        }
        self.newly_outstanding()
    }

    /// A register that a memory operation may still write after one side only.
    fn newly_outstanding(&self) -> Option<String> {
        let [before, after] = [0, 1].map(|side| self.sides[side].outstanding_registers());
        let mut new: RegSet = after;
        new.subtract(&before);
        let reg = new.iter().find(|reg| !is_planned_dead(reg, self.plan))?;
        Some(format!("a memory operation after it may still write {reg}, none before it does"))
    }

    fn differing_scratch(&self) -> Option<usize> {
        let size = self.plan.shape.scratch as usize;
        let [before, after] = [self.sides[0].scratch(), self.sides[1].scratch()];
        (0..before.len()).find(|at| before[*at] != after[*at] && !is_scratch_slot_byte(*at, self.plan, size))
    }

    fn lane_values(&self, register: u16, lane: usize) -> [u32; 2] {
        [0, 1].map(|side| self.sides[side].vector(register, lane / 32)[lane % 32])
    }

    fn differing_vector(&self, number: u64) -> Option<DifferingLane> {
        let whole = number % WHOLE == WHOLE - 1;
        let named = self.plan.touched.iter().filter(|reg| reg.file == RegFile::Vgpr).map(|reg| reg.index);
        let all = 0..if whole { self.plan.shape.vectors } else { 0 };
        let here =
            |register: u16| (register < self.plan.shape.vectors).then(|| self.differing_lane(register)).flatten();
        named.chain(all).find_map(|register| Some(DifferingLane { register, lane: here(register)? }))
    }

    fn differing_lane(&self, register: u16) -> Option<usize> {
        let mask = self.lanes_of(register);
        let halves = 0..self.sides[0].halves();
        let half = { halves }.find(|half| {
            !has_equal_vector_half(*half, self, register)
                && (0..32).any(|lane| self.is_lane_different(register, 32 * half + lane, mask))
        })?;
        (32 * half..32 * half + 32).find(|lane| self.is_lane_different(register, *lane, mask))
    }

    fn is_lane_different(&self, register: u16, lane: usize, mask: u64) -> bool {
        let [before, after] = self.lane_values(register, lane);
        mask >> lane & 1 != 0 && before != after
    }

    /// The state in words.
    pub(crate) fn describe_state(&self, number: u64) -> String {
        let late = if number % 2 == 1 { ", results of memory operations late" } else { "" };
        format!("state {number}: EXEC {:#x}, MODE {:#x}{late}", self.exec, self.mode)
    }

    /// The registers that either side names, at the start and at both ends: those that differ first.
    pub(crate) fn differing_values(&mut self, number: u64) -> Vec<DifferingValue> {
        let lane =
            self.differing_vector(number).map_or_else(|| self.exec.trailing_zeros() as usize % 32, |one| one.lane);
        let named: Vec<Reg> = self.plan.touched.clone();
        let ends: Vec<[u64; 2]> = named.iter().map(|reg| self.register_values(*reg, lane)).collect();
        self.prepare_state(number);
        let mut values = Vec::new();
        for (reg, end) in named.into_iter().zip(ends) {
            let name = if reg.file == RegFile::Vgpr { format!("{reg}, lane {lane}") } else { reg.to_string() };
            values.push(DifferingValue { name, start: self.register_values(reg, lane)[0], end });
        }
        values.sort_by_key(|value| value.end[0] == value.end[1]);
        values.truncate(LISTED);
        values
    }

    fn register_values(&self, reg: Reg, lane: usize) -> [u64; 2] {
        [0, 1].map(|side| {
            let machine = &self.sides[side];
            match reg.file {
                RegFile::Vgpr if reg.index < machine.vector_count() => {
                    machine.vector(reg.index, lane / 32)[lane % 32].into()
                }
                _ => machine.scalar(reg).unwrap_or_default().into(),
            }
        })
    }
}

fn sgpr(index: u16) -> Reg {
    Reg::new(RegFile::Sgpr, index, 1)
}

fn random_byte_vector(size: usize, random: &mut Random) -> Vec<u8> {
    (0..size).map(|_| random.next() as u8).collect::<Vec<u8>>()
}

fn scalar_on_both_sides(reg: Reg, pair: &MachinePair<'_>) -> [Option<u32>; 2] {
    [pair.sides[0].scalar(reg), pair.sides[1].scalar(reg)]
}

fn differs_outside_return(reg: &Reg, pair: &MachinePair<'_>) -> bool {
    scalar_on_both_sides(*reg, pair)[0] != scalar_on_both_sides(*reg, pair)[1] && !pair.is_return(*reg)
}

fn is_planned_dead(reg: &Reg, plan: &PairPlan) -> bool {
    plan.dead.iter().any(|dead| dead.reg == *reg)
}

fn is_scratch_slot_byte(at: usize, plan: &PairPlan, size: usize) -> bool {
    plan.slots.iter().any(|slot| at % size / 4 == *slot as usize / 4)
}

fn has_equal_vector_half(half: usize, pair: &MachinePair<'_>, register: u16) -> bool {
    pair.sides[0].vector(register, half) == pair.sides[1].vector(register, half)
}

fn first_difference(one: &[u8], other: &[u8]) -> Option<usize> {
    if one == other { None } else { one.iter().zip(other).position(|(one, other)| one != other) }
}

/// The words of memory that are not the same after both, ascending.
pub(crate) fn differing_words([one, other]: [&SeededMemory; 2]) -> impl Iterator<Item = u64> {
    let mut all = one.written_addresses();
    all.extend(other.written_addresses());
    all.sort_unstable();
    all.into_iter().filter(|address| one.word(*address) != other.word(*address))
}
