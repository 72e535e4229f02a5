//! Changed instructions: the instruction and its replacement are executed on the same states.
//!
//! Invariants: equal instructions with equal replacements are executed once. A register is left out of the comparison
//! only if the certificate names it, or it is a special one or a scalar one that the instruction reads, *and* it is dead after the instruction in the file before.

use crate::memory::SeededMemory;
use crate::object::{CheckedObject, OffsetMap};
use crate::order::PairAccess;
use crate::pair::{DeadRegister, MachinePair, MovedSgpr, PairPlan};
use crate::random::mix_seed;
use crate::report::Difference;
use hotswap_emulator::{ExecutionFault, FaultKind, SnippetEnd, SnippetShape};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Feature, Flag, Inst, Isa};
use hotswap_program::{BankCursor, DeadLanes, LiveSet, LivenessCursor, SectionProgram};
use hotswap_report::SiteCertificate;
use std::ops::Range;

/// Instructions that a replacement executes at most.
const BUDGET: u64 = 4096;

/// The result of one site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SiteResult {
    /// On how many states both did the same.
    Equal(u64),
    /// The first state on which they did not.
    Different(Box<Difference>),
    /// It cannot be executed.
    Unchecked(String),
}

/// A site with everything that its execution depends on.
pub(crate) struct SiteQuestion<'a> {
    pub(crate) section: usize,
    pub(crate) site: &'a SiteCertificate,
    pub(crate) old: Inst,
    pub(crate) new: Vec<Inst>,
    isa: Isa,
    banks: VgprBanks,
    after: LiveSet,
    /// Where a branch leads, in both files.
    target: Option<[u32; 2]>,
    /// System SGPRs that the files start its kernel with in different registers.
    moved: Vec<MovedSgpr>,
}

/// Sites with the same key have the same result.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct SiteKey {
    old: [u32; 5],
    banks: Option<u8>,
    new: Vec<u8>,
    dead: Vec<DeadRegisterKey>,
    slots: Vec<u32>,
    target: Option<[u32; 2]>,
}

/// A register that is not read after a site.
#[derive(PartialEq, Eq, Hash)]
struct DeadRegisterKey {
    reg: Reg,
    in_all_lanes: bool,
}

impl<'a> SiteQuestion<'a> {
    /// Reads both sides of a site; `None` for damaged ones.
    pub(crate) fn read_site(
        program: &SectionProgram<'_>,
        objects: [&CheckedObject<'_>; 2],
        map: &OffsetMap<'_>,
        site: &'a SiteCertificate,
    ) -> Option<Self> {
        let old = program.program.decode(site.old)?;
        let [before, after] = objects;
        let section = map.section.number as usize;
        let bytes = after.section_code(section).get(site.new.start as usize..site.new.end as usize)?;
        let (function, _) = program.program.function_at(site.old)?;
        let banks = BankCursor::new(program, function).mode_before(site.old).unwrap_or(VgprBanks::UNKNOWN);
        let (_, live) = LivenessCursor::new(program, function, vec![site.old]).live_around(site.old);
        let target = old.branch_target(u64::from(site.old), program.isa()).map(|target| target as u32);
        let target = match target {
            Some(target) => Some([target, map.new_offset(target)?]),
            None => None,
        };
        Some(Self {
            section,
            site,
            old,
            new: decode_all(bytes, after.isa)?,
            isa: program.isa(),
            banks,
            after: live,
            target,
            moved: moved_system_sgprs([before, after], (section, site.old)),
        })
    }

    pub(crate) fn key(&self) -> SiteKey {
        let new = self.new.iter().flat_map(|inst| inst.bytes()[..usize::from(inst.len())].to_vec()).collect();
        let dead = self
            .dead_registers()
            .into_iter()
            .map(|dead| DeadRegisterKey { reg: dead.reg, in_all_lanes: dead.lanes == DeadLanes::InAllLanes })
            .collect();
        SiteKey {
            old: *self.old.words(),
            banks: self.banks.mode(),
            new,
            dead,
            slots: self.spill_slots(),
            target: self.target,
        }
    }

    /// Whether the replacement relies on rounding to the nearest and on denormals.
    pub(crate) fn needs_plain_mode(&self) -> bool {
        self.is_matrix() || self.old.mnemonic().starts_with("v_cvt_")
    }

    fn is_matrix(&self) -> bool {
        self.old.is(Flag::Wmma) || self.old.is(Flag::Swmmac)
    }

    fn spill_slots(&self) -> Vec<u32> {
        self.site.spilled.iter().map(|spilled| spilled.slot).collect()
    }

    /// Registers that are not compared.
    fn dead_registers(&self) -> Vec<DeadRegister> {
        let scratch = self.site.scratch.iter().flat_map(|run| {
            let file = if run.is_vector { RegFile::Vgpr } else { RegFile::Sgpr };
            (run.first..run.first.saturating_add(run.count)).map(move |index| Reg::new(file, index, 1))
        });
        let special = [Special::VccLo, Special::VccHi, Special::M0, Special::Scc].map(|name| Reg::special(name, 1));
        // Scalar registers that the instruction reads, such as a descriptor, may be changed for it.
        let named = self.old.read_set(self.isa, VgprBanks::UNKNOWN);
        let own: Vec<Reg> = named.iter().filter(|reg| reg.file == RegFile::Sgpr).collect();
        let candidates = scratch.chain(special).chain(own);
        candidates.filter_map(|reg| Some(DeadRegister { reg, lanes: dead_lanes_of_register(&reg, self)? })).collect()
    }

    /// Executes both sides on `states` states.
    pub(crate) fn check_states(
        &self,
        objects: [&CheckedObject<'_>; 2],
        memories: [&SeededMemory; 2],
        (seed, states): (u64, u64),
    ) -> SiteResult {
        let plan = self.pair_plan(objects, seed);
        let mut pair = MachinePair::new(objects, memories, &plan);
        let ranges = self.address_ranges(objects);
        let mut equal = 0;
        for number in 0..states {
            pair.prepare_state(number);
            if !pair.is_specified() {
                continue;
            }
            let ends = [0, 1].map(|side| {
                let inside = &ranges[side];
                pair.sides[side].run_until(inside.start, BUDGET, &|pc| !inside.contains(&pc))
            });
            match self.compare_ends(&pair, &ends, objects, number) {
                StateResult::Equal => equal += 1,
                StateResult::Skipped => {}
                StateResult::Unchecked(what) => return SiteResult::Unchecked(what),
                StateResult::Different(what) => {
                    let places =
                        [0, 1].map(|side| objects[side].code_place(end_address(&ends[side], ranges[side].start)));
                    let (state, values) = (pair.describe_state(number), pair.differing_values(number));
                    let families = Vec::new();
                    return SiteResult::Different(Box::new(Difference { places, families, what, state, values }));
                }
            }
        }
        if equal == 0 {
            return SiteResult::Unchecked(format!("`{}` is a fault in every state", self.old.mnemonic()));
        }
        SiteResult::Equal(equal)
    }

    fn compare_ends(
        &self,
        pair: &MachinePair<'_>,
        [before, after]: &[Result<SnippetEnd, Box<ExecutionFault>>; 2],
        objects: [&CheckedObject<'_>; 2],
        number: u64,
    ) -> StateResult {
        let ranges = self.address_ranges(objects);
        let target =
            self.target.map(|target| [0, 1].map(|side| objects[side].memory_address(self.section, target[side])));
        match (before, after) {
            (Err(fault), _) | (_, Err(fault)) if is_unknown(&fault.kind) => {
                StateResult::Unchecked(unknown_name(&fault.kind))
            }
            // The state is one in which the instruction must not be executed.
            (Err(_), _) => StateResult::Skipped,
            (Ok(_), Err(fault)) => StateResult::Different(format!("after it is a fault: {}", fault.kind)),
            (Ok(before), Ok(after)) => match expected_new_end(before, &ranges, &target) {
                None => StateResult::Unchecked(format!("`{}` transfers control", self.old.mnemonic())),
                Some(wanted) if wanted != *after => {
                    StateResult::Different("control goes elsewhere after it".to_owned())
                }
                Some(_) => pair.find_difference(number).map_or(StateResult::Equal, StateResult::Different),
            },
        }
    }

    fn address_ranges(&self, objects: [&CheckedObject<'_>; 2]) -> [Range<u64>; 2] {
        let offsets = [self.site.old..self.site.old + self.site.old_size, self.site.new.clone()];
        [0, 1].map(|side| {
            section_memory_address(offsets[side].start, self, &objects, side)
                ..section_memory_address(offsets[side].end, self, &objects, side)
        })
    }

    fn pair_plan(&self, objects: [&CheckedObject<'_>; 2], seed: u64) -> PairPlan {
        let isa = objects[0].isa;
        let banked = isa.has(Feature::N1024AddressableVgprs);
        let lanes = objects[0].parsed.note().kernels.iter().find_map(|kernel| kernel.wavefront_size).unwrap_or(32);
        let name = self.old.mnemonic();
        let pair_access = PairAccess::of_instruction(&self.old, isa);
        let far = pair_access.is_some() || name.contains("stride64");
        let slots = self.spill_slots();
        let shape = SnippetShape {
            lanes: lanes as usize,
            vectors: if banked { 1024 } else { 256 },
            lds: if far { 160 << 10 } else { 8 << 10 },
            scratch: slots.iter().max().map_or(64, |slot| (slot + 64) & !15),
        };
        let matrix = self.is_matrix();
        PairPlan {
            shape,
            touched: self.touched_registers(isa, objects[1].isa),
            dead: self.dead_registers(),
            slots,
            pair_access,
            returns: self.address_ranges(objects).map(|range| range.end),
            banks: if banked { possible_modes(self.banks) } else { vec![0] },
            all_lanes: matrix,
            plain_mode: self.needs_plain_mode(),
            moved: self.moved.clone(),
            seed: mix_seed(seed, u64::from(self.old.words()[0])),
        }
    }

    /// The registers that either side names.
    fn touched_registers(&self, before: Isa, after: Isa) -> Vec<Reg> {
        let mut all = RegSet::EMPTY;
        for mode in possible_modes(self.banks) {
            let mut banks = VgprBanks::of_mode(mode);
            all.union_with(&self.old.read_set(before, banks));
            all.union_with(&self.old.written_set(before, banks));
            for inst in &self.new {
                all.union_with(&inst.read_set(after, banks));
                all.union_with(&inst.written_set(after, banks));
                banks = banks.mode_after(inst, after);
            }
        }
        all.iter().filter(|reg| !reg.is(Special::Mode)).collect()
    }
}

fn dead_lanes_of_register(reg: &Reg, question: &SiteQuestion<'_>) -> Option<DeadLanes> {
    let all = question.after.is_dead(*reg, DeadLanes::InAllLanes).then_some(DeadLanes::InAllLanes);
    all.or_else(|| question.after.is_dead(*reg, DeadLanes::InActiveLanes).then_some(DeadLanes::InActiveLanes))
}

fn expected_new_end(end: &SnippetEnd, ranges: &[Range<u64>; 2], target: &Option<[u64; 2]>) -> Option<SnippetEnd> {
    match end {
        SnippetEnd::Reached(pc) if *pc == ranges[0].end => Some(SnippetEnd::Reached(ranges[1].end)),
        SnippetEnd::Reached(pc) => match *target {
            Some([old, new]) => (*pc == old).then_some(SnippetEnd::Reached(new)),
            // The address is in registers, the same for both.
            None => Some(SnippetEnd::Reached(*pc)),
        },
        SnippetEnd::Ended => Some(SnippetEnd::Ended),
    }
}

fn section_memory_address(
    offset: u32,
    question: &SiteQuestion<'_>,
    objects: &[&CheckedObject<'_>; 2],
    side: usize,
) -> u64 {
    objects[side].memory_address(question.section, offset)
}

/// The result of one state.
enum StateResult {
    Equal,
    Skipped,
    Different(String),
    Unchecked(String),
}

fn end_address(end: &Result<SnippetEnd, Box<ExecutionFault>>, start: u64) -> u64 {
    end.as_ref().err().map_or(start, |fault| fault.place.pc)
}

/// Whether the emulator, not the code, is the reason of a fault.
pub(crate) fn is_unknown(kind: &FaultKind) -> bool {
    matches!(kind, FaultKind::UnknownInstruction { .. } | FaultKind::BudgetExhausted)
}

/// The reason without the bytes of the instruction, so that many sites have one.
pub(crate) fn unknown_name(kind: &FaultKind) -> String {
    match kind {
        FaultKind::UnknownInstruction { mnemonic, reason: "", .. } => format!("unknown instruction {mnemonic}"),
        FaultKind::UnknownInstruction { mnemonic, reason, .. } => format!("unknown instruction {mnemonic}: {reason}"),
        kind => kind.to_string(),
    }
}

/// Bank modes that fit what is known.
fn possible_modes(banks: VgprBanks) -> Vec<u8> {
    if let Some(mode) = banks.mode() {
        return vec![mode];
    }
    (0..8).map(|one| numbered_bank_mode(one, &banks)).collect()
}

fn bank_role_bits(number: u32, role: hotswap_isa::bank::BankRole, banks: &VgprBanks) -> u8 {
    banks.bank(role).unwrap_or(number as u8 % 4) << (2 * role as u8)
}

fn numbered_bank_mode(number: u32, banks: &VgprBanks) -> u8 {
    let roles = hotswap_isa::bank::BankRole::ALL.into_iter().enumerate();
    roles.fold(0, |mode, (turn, one)| mode | bank_role_bits(number + turn as u32 * (number / 4), one, banks))
}

/// The system SGPRs that a kernel with its entry at an offset of a section starts with in other registers
/// in the file after.
fn moved_system_sgprs(objects: [&CheckedObject<'_>; 2], (section, offset): (usize, u32)) -> Vec<MovedSgpr> {
    let [before, after] = objects;
    let Some(part) = before.image.sections.get(section) else { return Vec::new() };
    let entry = part.address.wrapping_add(u64::from(offset));
    let found = before.parsed.descriptors().iter().position(|descriptor| descriptor.entry == entry);
    let [Some(was), Some(is)] = [before, after].map(|object| initial_sgprs(object, found?)) else { return Vec::new() };
    let system = (was >> 7 & 15).count_ones() as u16;
    let [home, now] = [was, is].map(|word| (word >> 1 & 31) as u16);
    let moved = (0..system).map(|number| MovedSgpr { home: home + number, now: now + number });
    moved.filter(|moved| moved.home != moved.now).collect()
}

/// COMPUTE_PGM_RSRC2 of a kernel.
fn initial_sgprs(object: &CheckedObject<'_>, kernel: usize) -> Option<u32> {
    let start = object.parsed.descriptors().get(kernel)?.range.start + 52;
    Some(u32::from_le_bytes(*object.parsed.bytes().get(start..)?.first_chunk()?))
}

fn decode_all(bytes: &[u8], isa: Isa) -> Option<Vec<Inst>> {
    let (mut at, mut all) = (0, Vec::new());
    while at < bytes.len() {
        let inst = isa.decode(&bytes[at..]).ok()?;
        at += usize::from(inst.len());
        all.push(inst);
    }
    Some(all)
}
