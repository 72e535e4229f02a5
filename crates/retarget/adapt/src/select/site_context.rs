//! The queries that a family may make about a site, answered from the program.

use super::block_prefix::BlockPrefix;
use crate::registers::budget::{KernelBudget, SGPRS, VgprBudget, never_borrowed};
use crate::registers::spill::{self, SpillRefusal};
use hotswap_families::code::{SPILL_LIMIT, Scheduling, SiteQueries, SpillSlot};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::WaitCounter;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Flag, Inst};
use hotswap_program::{
    BankCursor, DeadLanes, LiveSet, LivenessCursor, OutstandingWrites, ReachingDefs, SectionProgram, WaitcntState,
};
use std::cell::{Cell, OnceCell, RefCell};

/// The query context that the sites of one function share.
pub(super) struct FunctionContext<'u, 'a> {
    pub(super) unit: &'u SectionProgram<'a>,
    pub(super) number: usize,
    pub(super) budget: VgprBudget,
    pub(super) scheduling: Scheduling,
    /// Why MODE may differ, for 16-bit floats, from what matrix instructions use.
    half_mode: Option<&'u str>,
    /// The kernels of the unit.
    kernels: &'u [KernelBudget],
    /// The offset of the first slot for registers that are spilled.
    first_slot: OnceCell<Result<u32, SpillRefusal>>,
    liveness: LivenessCursor<'u, 'a>,
    outstanding: OutstandingWrites<'u, 'a>,
    bank_modes: BankCursor<'u, 'a>,
}

impl<'u, 'a> FunctionContext<'u, 'a> {
    /// `sites` are the offsets that will be queried, in ascending order.
    pub(super) fn new(
        unit: &'u SectionProgram<'a>,
        number: usize,
        budget: VgprBudget,
        scheduling: Scheduling,
        sites: &[u32],
    ) -> Self {
        let liveness = LivenessCursor::new(unit, number, sites.to_vec());
        let (outstanding, bank_modes) = (OutstandingWrites::new(unit, number), BankCursor::new(unit, number));
        let (kernels, first_slot) = (&[][..], OnceCell::new());
        Self {
            unit,
            number,
            budget,
            scheduling,
            half_mode: None,
            kernels,
            first_slot,
            liveness,
            outstanding,
            bank_modes,
        }
    }

    /// The same context where MODE may differ for 16-bit floats.
    pub(super) fn with_half_mode(self, half_mode: Option<&'u str>) -> Self {
        Self { half_mode, ..self }
    }

    /// The same with the kernels of the unit, without which nothing is spilled.
    pub(super) fn with_kernels(self, kernels: &'u [KernelBudget]) -> Self {
        Self { kernels, ..self }
    }

    fn first_slot(&self) -> Result<u32, SpillRefusal> {
        let slot = self.first_slot.get_or_init(|| {
            let kernels: Vec<_> = self.budget.kernels.iter().filter_map(|number| self.kernels.get(*number)).collect();
            spill::first_slot(self.unit, self.number, &kernels)
        });
        slot.clone()
    }

    /// The registers live before and after an instruction.
    pub(super) fn live_around(&self, offset: u32) -> (LiveSet, LiveSet) {
        self.liveness.live_around(offset)
    }

    /// Whether a liveness answer relied on the calling convention.
    pub(super) fn trusts_convention(&self) -> bool {
        self.liveness.trusts_convention()
    }

    /// The outstanding memory operations before the instruction at an offset.
    pub(super) fn outstanding_at(&self, offset: u32) -> Option<WaitcntState> {
        self.outstanding.state_before(offset)
    }
}

/// The query context of one site.
pub(super) struct SiteContext<'s, 'u, 'a> {
    context: &'s FunctionContext<'u, 'a>,
    offset: u32,
    inst: Inst,
    banks: VgprBanks,
    /// The block up to an earlier site, or up to this one if a family looks back.
    earlier: Cell<BlockPrefix>,
    before: OnceCell<BlockPrefix>,
    live: OnceCell<(LiveSet, LiveSet)>,
    outstanding: OnceCell<WaitcntState>,
    /// Registers that were borrowed although they hold a value.
    spilled: RefCell<Vec<SpillSlot>>,
}

impl<'s, 'u, 'a> SiteContext<'s, 'u, 'a> {
    pub(super) fn new(context: &'s FunctionContext<'u, 'a>, offset: u32, prefix: BlockPrefix, inst: Inst) -> Self {
        let banks = context.bank_modes.mode_before(offset).unwrap_or(VgprBanks::UNKNOWN);
        let (earlier, before) = (Cell::new(prefix), OnceCell::new());
        let (live, outstanding, spilled) = (OnceCell::new(), OnceCell::new(), RefCell::new(Vec::new()));
        Self { context, offset, inst, banks, earlier, before, live, outstanding, spilled }
    }

    /// The registers that were borrowed although they hold a value.
    pub(super) fn spill_slots(&self) -> Vec<SpillSlot> {
        self.spilled.borrow().clone()
    }

    /// The block as far as it has been decoded.
    pub(super) fn into_prefix(self) -> BlockPrefix {
        self.before.into_inner().unwrap_or_else(|| self.earlier.take())
    }

    fn live_registers(&self) -> &(LiveSet, LiveSet) {
        self.live.get_or_init(|| self.context.live_around(self.offset))
    }

    fn outstanding_writes(&self) -> &WaitcntState {
        self.outstanding.get_or_init(|| match self.context.outstanding_at(self.offset) {
            Some(known) => known,
            None => WaitcntState::all_outstanding(self.context.unit.isa()),
        })
    }

    /// The block up to the site. If the function may be entered anywhere, earlier instructions prove nothing.
    fn prefix_before_site(&self) -> Option<&BlockPrefix> {
        let function = &self.context.unit.program.functions[self.context.number];
        function.entered_anywhere().is_none().then(|| self.before.get_or_init(|| read_site_prefix(self)))
    }

    /// The definitions in the block before the site.
    fn reaching_defs(&self) -> ReachingDefs<'_> {
        let before = self.prefix_before_site().map_or(&[][..], BlockPrefix::code);
        ReachingDefs { isa: self.context.unit.isa(), banks: self.banks, before }
    }

    /// Whether the instruction acts in active lanes only, so that its replacement does so, too. Matrix
    /// instructions write all lanes.
    fn keeps_to_its_lanes(&self) -> bool {
        let mut written =
            self.inst.writes(self.context.unit.isa()).filter(|effect| effect.reg.file == RegFile::Vgpr).peekable();
        let computes = self.inst.is(Flag::Valu) && written.peek().is_some();
        self.inst.is(Flag::Ds) || computes && written.all(|effect| effect.masked)
    }

    fn alloc_vgprs(&self, count: u8, align: u8, excluding: &RegSet) -> Option<Reg> {
        let allocated = self.context.budget.allocated;
        let live = &self.live_registers().0;
        for lanes in [DeadLanes::InAllLanes, DeadLanes::InActiveLanes] {
            let (file, align) = (RegFile::Vgpr, u16::from(align));
            let found = live.find_dead_registers(file, count, align, allocated, excluding, lanes);
            let is_allowed = match lanes {
                _ if found.is_none() => false,
                DeadLanes::InAllLanes => allocated > 0,
                DeadLanes::InActiveLanes => self.keeps_to_its_lanes(),
            };
            if is_allowed {
                return found;
            }
        }
        self.alloc_growable(count, align, excluding)
    }

    /// Vector registers that are spilled around the site: those that the kernels have, that the site does not name, and
    /// that nothing outstanding writes.
    fn spill_registers(&self, count: u8, align: u8, excluding: &RegSet) -> Result<Reg, SpillRefusal> {
        if self.context.scheduling == Scheduling::Program {
            return Err("the program keeps vector instructions apart itself (SCHED_MODE)".into());
        }
        if !self.keeps_to_its_lanes() {
            return Err("the instruction writes lanes that EXEC disables".into());
        }
        if self.banks.mode().is_none() {
            return Err("the bank mode (s_set_vgpr_msb) at this place is not known".into());
        }
        let mut spilled = self.spilled.borrow_mut();
        let first = self.context.first_slot()? + spilled.len() as u32 * spill::SLOT;
        if first + u32::from(count) * spill::SLOT > SPILL_LIMIT {
            return Err("the offset of a slot does not fit a scratch instruction".into());
        }
        let mut taken = *excluding;
        self.outstanding_writes().add_to(&mut taken);
        taken.union_with(&self.inst.read_set(self.context.unit.isa(), self.banks));
        taken.union_with(&self.inst.written_set(self.context.unit.isa(), self.banks));
        taken.extend(spilled.iter().map(|slot| slot.reg));
        let last = self.context.budget.allocated.checked_sub(u16::from(count));
        let starts = last.into_iter().flat_map(|last| (0..=last).step_by(usize::from(align.max(1))));
        let mut registers = starts.map(|index| Reg::new(RegFile::Vgpr, index, count));
        let found = registers.find(|reg| !taken.touches(*reg));
        let found =
            found.ok_or("memory operations that are outstanding write all registers that the site does not name")?;
        spilled.extend((0..u16::from(count)).map(|number| SpillSlot {
            reg: Reg::new(RegFile::Vgpr, found.index + number, 1),
            offset: first + u32::from(number) * spill::SLOT,
        }));
        Ok(found)
    }

    /// Registers that no kernel has yet: they hold nothing.
    fn alloc_growable(&self, count: u8, align: u8, excluding: &RegSet) -> Option<Reg> {
        let (first, end) = self.context.budget.growable;
        let first = first.next_multiple_of(u16::from(align.max(1)));
        let candidates = (first..end).step_by(usize::from(align.max(1)));
        let mut registers = candidates.map(|index| Reg::new(RegFile::Vgpr, index, count));
        registers.find(|reg| reg.index + u16::from(count) <= end && !excluding.touches(*reg))
    }
}

fn read_site_prefix(this: &SiteContext<'_, '_, '_>) -> BlockPrefix {
    let mut prefix = this.earlier.take();
    prefix.read(this.context.unit, this.context.number, this.offset);
    prefix
}

impl SiteQueries for SiteContext<'_, '_, '_> {
    fn banks(&self) -> VgprBanks {
        self.banks
    }

    fn last_def(&self, reg: Reg) -> Option<&Inst> {
        self.reaching_defs().last_def(self.prefix_before_site()?.last_defs(), reg)
    }

    fn alignment(&self, reg: Reg) -> u32 {
        self.reaching_defs().known_alignment(self.prefix_before_site().and_then(BlockPrefix::last_defs), reg)
    }

    fn find_dead(&self, file: RegFile, count: u8, align: u8, excluding: &RegSet) -> Option<Reg> {
        let mut taken = *excluding;
        self.outstanding_writes().add_to(&mut taken);
        never_borrowed().for_each(|reg| taken.insert(reg));
        match file {
            RegFile::Vgpr => self.alloc_vgprs(count, align, &taken),
            _ => self.live_registers().0.find_dead_registers(
                file,
                count,
                u16::from(align),
                SGPRS,
                &taken,
                DeadLanes::InAllLanes,
            ),
        }
    }

    fn spill(&self, count: u8, align: u8, excluding: &RegSet) -> Option<Result<Reg, SpillRefusal>> {
        Some(self.spill_registers(count, align, excluding))
    }

    fn is_dead_after(&self, reg: Reg) -> bool {
        self.live_registers().1.is_dead(reg, DeadLanes::InAllLanes)
    }

    fn outstanding(&self, reg: Reg) -> Vec<WaitCounter> {
        self.outstanding_writes().counters_of_reg(reg)
    }

    fn other_half_mode(&self) -> Option<&str> {
        self.context.half_mode
    }

    fn scheduling(&self) -> Scheduling {
        self.context.scheduling
    }
}
