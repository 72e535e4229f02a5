//! Steps backwards over one instruction.

use super::set::{LiveSet, RegisterBits, VECTORS, is_vector};
use crate::ops::{AddressOp, Ops};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::{EffectBits, EffectReader};
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Flag, Inst, Isa};

/// Registers without an operand, as bits of the words of scalar registers and of the last word.
#[derive(Debug, Clone, Copy, Default)]
struct Implicit {
    key: u16,
    read: [u64; 4],
    killed: [u64; 4],
    exec: bool,
}

/// Steps over instructions of one function.
pub(super) struct Stepper<'o> {
    isa: Isa,
    ops: &'o Ops,
    reader: EffectReader,
    /// An index may choose the vector registers of every VALU instruction.
    indexed: bool,
    /// Some combinations; most instructions have one of few.
    implicit: [Implicit; KINDS],
}

/// Cached combinations, each in a slot of its own; a power of two.
const KINDS: usize = 16;
/// An effect is at most one of 16; a power of two needs no division.
const MOST: usize = 32;

impl<'o> Stepper<'o> {
    pub(super) fn new(isa: Isa, ops: &'o Ops, indexed: bool) -> Self {
        Self { isa, ops, reader: EffectReader::new(isa), indexed, implicit: [Implicit::default(); KINDS] }
    }

    /// Steps from the set live after an instruction to the set live before it, for several sets. Returns whether bits
    /// of one kind become others.
    pub(super) fn step_back<const N: usize>(
        &mut self,
        inst: &Inst,
        banks: VgprBanks,
        mut lives: [&mut LiveSet; N],
    ) -> bool {
        let line = self.ops.line(inst);
        if line.indexed || self.indexed && line.valu {
            lives.iter_mut().for_each(|live| self.back_indexed(inst, banks, live));
            return true;
        }
        let mut reads = [EffectBits::NONE; MOST];
        let mut writes = [EffectBits::NONE; MOST];
        let (mut read, mut written) = (0, 0);
        let implicit = self.reader.visit(inst, |effect| {
            if effect.written() {
                writes[written % MOST] = effect;
                written += usize::from(!effect.is_none());
            } else {
                reads[read % MOST] = effect;
                read += usize::from(!effect.is_none());
            }
        });
        let key = u16::from(implicit.writes.bits()) << 8 | u16::from(implicit.reads.bits());
        // The multiplier spreads the bits that differ in practice: EXEC, MODE, SCC and VCC.
        let place = usize::from(key.wrapping_mul(0x9e37) >> 8) % KINDS;
        if key != self.implicit[place].key {
            self.implicit[place] = self.collect_implicits(key, |each| implicit.for_each_effect(self.isa, each));
        }
        let implicit = &self.implicit[place];
        let writes = &writes[..written.min(MOST)];
        let changes = implicit.exec || writes.iter().any(|effect| effect.is_special() && is_exec(effect.reg()));
        for live in &mut lives {
            if changes {
                self.change_lanes(inst, live);
            }
            for (number, bits) in implicit.killed.iter().enumerate() {
                live.words[VECTORS * 2 + number] &= !bits;
            }
        }
        for effect in writes.iter().filter(|effect| !effect.partial()) {
            kill_effect(*effect, banks, &mut lives);
        }
        for live in &mut lives {
            for (number, bits) in implicit.read.iter().enumerate() {
                live.words[VECTORS * 2 + number] |= bits;
            }
        }
        for effect in &reads[..read.min(MOST)] {
            gen_read(*effect, banks, line.crosses, &mut lives);
        }
        changes
    }

    fn collect_implicits(&self, key: u16, each: impl FnOnce(&mut dyn FnMut(EffectBits))) -> Implicit {
        let mut found = Implicit { key, ..Implicit::default() };
        each(&mut |effect| {
            let reg = effect.reg();
            let RegisterBits { word, low, high } = LiveSet::bits_of_register(reg);
            let Some(word) = word.checked_sub(VECTORS * 2).filter(|word| *word < 4) else { return };
            let set = match (effect.written(), effect.partial()) {
                (false, _) => &mut found.read,
                (true, false) => &mut found.killed,
                (true, true) => return,
            };
            set[word] |= low;
            if word < 3 {
                set[word + 1] |= high;
            }
            found.exec |= effect.written() && is_exec(reg);
        });
        found
    }

    /// Applies the effect of EXEC's new value on lanes.
    fn change_lanes(&self, inst: &Inst, live: &mut LiveSet) {
        match self.ops.address_op(inst) {
            AddressOp::Shrinks => live.before_shrinking(),
            AddressOp::Grows => live.before_growing(),
            AddressOp::AndExec if reads_exec_mask(self, inst) && same_half(inst, self.isa) => live.before_shrinking(),
            AddressOp::OrExec if reads_exec_mask(self, inst) && same_half(inst, self.isa) => live.before_growing(),
            AddressOp::AndNotExec if first_source_is_exec(self, inst) && same_half(inst, self.isa) => {
                live.before_shrinking()
            }
            _ => live.before_any_change(),
        }
    }

    /// Registers that an index selects: the sets of the instruction contain all possible ones.
    fn back_indexed(&self, inst: &Inst, banks: VgprBanks, live: &mut LiveSet) {
        if inst.writes(self.isa).any(|effect| is_exec(effect.reg)) {
            self.change_lanes(inst, live);
        }
        let mut read = inst.read_set(self.isa, banks);
        if inst.is(Flag::Valu) {
            read.union_with(&RegSet::all_of(RegFile::Vgpr));
        }
        for reg in inst.overwritten_set(self.isa, banks).iter().filter(|reg| !is_vector(*reg)) {
            live.remove_bits(LiveSet::bits_of_register(reg));
        }
        for reg in &read {
            let bits = LiveSet::bits_of_register(reg);
            live.add_bits(bits);
            if is_vector(reg) {
                live.add_bits(bits.in_other_lanes());
            }
        }
    }
}

fn reads_exec_mask(stepper: &Stepper<'_>, inst: &Inst) -> bool {
    inst.reads(stepper.isa).any(|effect| is_exec(effect.reg))
}

/// `s_andn2 exec, x, exec` has the lanes that were not active.
fn first_source_is_exec(stepper: &Stepper<'_>, inst: &Inst) -> bool {
    let first = inst.operand(stepper.isa, hotswap_isa::Name::Src0);
    matches!(first, Some(hotswap_isa::OperandValue::Reg(reg)) if is_exec(reg))
}

/// Whether the EXEC that is read is the one that is written: both halves, or the same one.
fn same_half(inst: &Inst, isa: Isa) -> bool {
    let written = inst.writes(isa).find(|effect| is_exec(effect.reg)).map(|effect| effect.reg);
    let read = inst.reads(isa).filter(|effect| is_exec(effect.reg) && effect.slot.is_some());
    let mut read = read.map(|effect| effect.reg);
    read.any(|read| Some(read) == written)
}

fn is_exec(reg: Reg) -> bool {
    reg.is(Special::ExecLo) || reg.is(Special::ExecHi)
}

/// Bits of the register of an effect; `None` where its bank is not known.
#[inline(always)]
fn effect_bits(effect: EffectBits, banks: VgprBanks) -> Option<RegisterBits> {
    let (word, low, high) = effect.set_bits();
    if !effect.is_vector() {
        return Some(RegisterBits { word: word + VECTORS, low, high });
    }
    if banks == VgprBanks::ENTRY {
        return Some(RegisterBits { word, low, high });
    }
    banks.resolve_register(effect.reg(), effect.role()).map(LiveSet::bits_of_register)
}

#[inline(always)]
fn kill_effect<const N: usize>(effect: EffectBits, banks: VgprBanks, lives: &mut [&mut LiveSet; N]) {
    let Some(bits) = effect_bits(effect, banks) else { return };
    for live in lives {
        live.remove_bits(bits);
        if effect.is_vector() && !effect.masked() {
            live.remove_bits(bits.in_other_lanes());
        }
    }
}

#[inline(always)]
fn gen_read<const N: usize>(effect: EffectBits, banks: VgprBanks, crosses: bool, lives: &mut [&mut LiveSet; N]) {
    if effect.is_special() {
        return lives.iter_mut().for_each(|live| read_special(effect.reg(), live));
    }
    match effect_bits(effect, banks) {
        Some(place) => add_live_bits(place, lives, crosses, &effect),
        None => {
            let named = effect.reg();
            (0..4).for_each(|bank| {
                add_live_bits(
                    LiveSet::bits_of_register(Reg { index: named.index + 256 * bank, ..named }),
                    lives,
                    crosses,
                    &effect,
                )
            });
        }
    }
}

fn add_live_bits<const N: usize>(
    bits: RegisterBits,
    lives: &mut [&mut LiveSet; N],
    crosses: bool,
    effect: &EffectBits,
) {
    for live in lives {
        live.add_bits(bits);
        if crosses && effect.is_vector() {
            live.add_bits(bits.in_other_lanes());
        }
    }
}

fn read_special(named: Reg, live: &mut LiveSet) {
    live.add_bits(LiveSet::bits_of_register(named));
    for (alias, meant) in ALIASES {
        if named.is(alias) {
            live.add_bits(LiveSet::bits_of_register(meant));
        }
    }
}

/// Operands that alias other registers.
const ALIASES: [(Special, Reg); 3] = [
    (Special::Vccz, Reg::special(Special::VccLo, 2)),
    (Special::Execz, Reg::special(Special::ExecLo, 2)),
    (Special::LdsDirect, Reg::special(Special::M0, 1)),
];
