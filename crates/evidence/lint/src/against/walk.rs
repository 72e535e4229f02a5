//! Walks the instructions of the original and those of the rewritten section side by side.
//!
//! Invariants: every byte of the old section is compared. Every byte of the new one is claimed by an old one, by a
//! site, by padding, or by a branch that redirects from the old position of code. Instructions outside of sites are
//! unchanged except for distances, whose targets are the same, literals of computed addresses, and hints (`s_clause`,
//! `s_delay_alu`, prefetches) that claim less.

use super::entry_copies::RaisedKernel;
use super::map::AddressMap;
use super::site::SiteComparer;
use super::spill::{KernelPrivateSegments, PrivateNeeds};
use crate::finding::{CERTIFICATE, ENCODING, SCRATCH, TARGET, UNCHANGED};
use crate::finding::{LintFinding, LintRule};
use crate::returned::LiveRegisters;
use crate::unit::LintUnit;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::{Inst, Isa, Name};
use hotswap_program::{DeadLanes, FixupKind, MarkKind};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// `s_code_end`, `s_nop 0`, and the fill value of linkers.
const PADDING: [u32; 3] = [0xbf9f_0000, 0xbf80_0000, 0];
/// Maximum number of findings reported for one section.
const MOST: usize = 100;

/// One section in both files.
pub(crate) struct SectionWalk<'w, 'a, 'b> {
    pub(crate) old: &'w LintUnit<'a>,
    pub(crate) new: &'w LintUnit<'b>,
    pub(crate) map: &'w AddressMap,
    pub(crate) findings: Vec<LintFinding>,
    /// The position of an old instruction itself, if labels of it denote another one.
    pub(crate) itself: BTreeMap<u32, u32>,
    /// Old instructions whose literal changed.
    pub(crate) literals: BTreeSet<u32>,
    /// Instructions outside of sites that were compared.
    pub(crate) compared: u64,
    sites: SiteComparer<'w, 'a>,
    claimed: Vec<Range<u32>>,
    /// Branches that became long ones.
    long: Vec<LongBranch>,
    starts: BTreeSet<u32>,
    /// Kernels of the section whose user SGPRs were raised, by the old offset of their entries.
    raised: BTreeMap<u32, RaisedKernel>,
}

/// A branch that computes its target in a pair of registers.
struct LongBranch {
    /// Old offset of the branch.
    at: u32,
    /// Old offset of its target.
    target: u32,
    pair: Reg,
}

/// A target that new code computes in a pair of registers, and the end of that code.
struct ComputedTarget {
    to: u32,
    end: u32,
    pair: Reg,
}

/// An instruction of the new code, and its offset.
struct NewInstruction {
    at: u32,
    inst: Inst,
}

/// A position in the old code, and the one in the new code that corresponds to it.
struct WalkPosition {
    old: u32,
    new: u32,
}

impl<'w, 'a, 'b> SectionWalk<'w, 'a, 'b> {
    pub(super) fn new(
        (old, new): (&'w LintUnit<'a>, &'w LintUnit<'b>),
        map: &'w AddressMap,
        segments: (&'w KernelPrivateSegments, &'w KernelPrivateSegments),
    ) -> Self {
        let marks = old.program.source.marks.iter().filter(|mark| is_code_mark(&mark.kind)).map(|mark| mark.offset);
        Self {
            old,
            new,
            map,
            findings: Vec::new(),
            itself: BTreeMap::new(),
            literals: BTreeSet::new(),
            compared: 0,
            sites: SiteComparer::new(old, new, segments),
            claimed: Vec::new(),
            long: Vec::new(),
            raised: BTreeMap::new(),
            starts: marks.chain(old.program.functions.iter().map(|function| function.start)).collect(),
        }
    }

    /// Adds the kernels whose user SGPRs were raised; those without new code at their entries are checked at once.
    pub(super) fn add_raised_kernels(&mut self, raised: &[RaisedKernel]) {
        for kernel in raised {
            let Some(offset) = kernel.offset_in(self.old) else { continue };
            if self.map.site_at(offset).is_some() {
                self.raised.insert(offset, *kernel);
            } else if let Err(what) = kernel.check_unread(self.old, offset) {
                self.report_finding(&UNCHANGED, offset, what);
            }
        }
    }

    /// The number of copies of system SGPRs at a site: its kernel's, if the site is the entry of one with raised counts.
    fn copy_count(&self, site: &hotswap_report::SiteCertificate) -> usize {
        self.raised.get(&site.old).map_or(0, RaisedKernel::copy_count)
    }

    fn check_copies(&mut self, site: &hotswap_report::SiteCertificate, copies: &[Inst]) {
        let Some(kernel) = self.raised.get(&site.old) else { return };
        if let Err(what) = kernel.check_copies(self.old, copies, self.new.isa()) {
            self.report_finding(&UNCHANGED, site.old, what);
        }
    }

    /// The position of an old instruction itself.
    pub(crate) fn new_offset(&self, old: u32) -> Option<u32> {
        self.itself.get(&old).copied().or_else(|| self.map.new_start(old))
    }

    /// The private segments that the sites need.
    pub(super) fn take_needs(&mut self) -> PrivateNeeds {
        self.sites.take_needs()
    }

    pub(crate) fn walk_section(&mut self) {
        let data: Vec<Range<u32>> = self.old.program.named_data();
        let (mut old, mut new, mut begin) = (0, 0, 0);
        while old < self.map.old_size && self.findings.len() < MOST {
            if let Some(to) = self.map.point_at(old).filter(|to| *to != new) {
                self.claimed.push(begin..new);
                (new, begin) = (to, to);
            }
            let next = self.map.next_point(old).min(self.map.next_site(old + 1));
            if let Some(site) = self.map.site_at(old).cloned() {
                if site.new.start != new {
                    self.report_finding(
                        &CERTIFICATE,
                        old,
                        format!("the site begins at {:#x}, and the map leads to {new:#x}", site.new.start),
                    );
                    return;
                }
                self.compare_site(&site);
                (old, new) = (old + site.old_size, site.new.end);
                continue;
            }
            if self.is_padding_up_to(old, next) {
                // Padding may be longer or shorter now. Where it is shorter, the code after it may look like padding.
                let same = self.words_alike(old, new, next);
                let room = self.map.point_at(next).and_then(|to| to.checked_sub(new));
                let same = room.map_or(same, |room| same.min(room));
                (old, new) = (next, new + same);
                continue;
            }
            let in_data = data.iter().find(|data| data.contains(&old)).map(|data| data.end.min(next));
            WalkPosition { old, new } = self.walk_step(old, new, next, in_data);
        }
        self.claimed.push(begin..new);
        self.check_unclaimed();
        self.long_branches();
        let mut own = self.sites.take_findings();
        self.findings.append(&mut own);
    }

    fn report_finding(&mut self, rule: &'static LintRule, old: u32, reason: impl Into<String>) {
        self.findings.push(LintFinding::at_offset(rule, self.old, old, reason));
    }

    fn word_at(unit: &LintUnit<'_>, at: u32) -> Option<u32> {
        let bytes = unit.program.source.bytes.get(at as usize..at as usize + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    /// Whether the old section holds padding alone up to an offset, which no path executes.
    fn is_padding_up_to(&self, old: u32, end: u32) -> bool {
        let executed =
            |at: u32| self.old.program.function_at(at).is_some_and(|(_, function)| function.is_instruction(at));
        end > old && (old..end).step_by(4).all(|at| is_padding_at(self.old, at) && !executed(at))
    }

    /// The number of equal bytes, in whole words, from two positions on.
    fn words_alike(&self, old: u32, new: u32, end: u32) -> u32 {
        let mut size = 0;
        while size < end - old && Self::word_at(self.old, old + size) == Self::word_at(self.new, new + size) {
            size += 4;
        }
        size
    }

    /// Handles one instruction, or word, outside of sites; returns the next position on both sides.
    fn walk_step(&mut self, old: u32, new: u32, next: u32, data: Option<u32>) -> WalkPosition {
        if let Some(end) = data {
            let size = end - old;
            if instruction_bytes_at(self.old, old, size) != instruction_bytes_at(self.new, new, size) {
                self.report_finding(&UNCHANGED, old, "data between the instructions has changed");
            }
            return WalkPosition { old: end, new: new + size };
        }
        let boundary = self.starts.range(old + 1..).next().map_or(next, |start| next.min(*start));
        let executed = self.old.program.function_at(old).is_some_and(|(_, function)| function.is_instruction(old));
        match self.old.program.decode(old).filter(|one| fits_before_boundary(one, old, boundary, executed)) {
            Some(inst) => {
                self.compared += 1;
                let size = self.compare_unchanged(old, &inst, new, executed);
                WalkPosition { old: old + u32::from(inst.len()), new: new + size }
            }
            None => {
                if Self::word_at(self.old, old) != Self::word_at(self.new, new) {
                    self.report_finding(&UNCHANGED, old, "bytes that are no instruction have changed");
                }
                WalkPosition { old: old + 4, new: new + 4 }
            }
        }
    }

    /// Compares an unchanged instruction; returns its new length.
    fn compare_unchanged(&mut self, at: u32, old: &Inst, now: u32, executed: bool) -> u32 {
        let Some(new) = self.new.program.decode(now) else {
            let same = (0..u32::from(old.len()))
                .step_by(4)
                .all(|byte| Self::word_at(self.old, at + byte) == Self::word_at(self.new, now + byte));
            if executed || !same {
                self.report_finding(&ENCODING, at, "the target has no such instruction, and nothing replaces it");
            }
            return u32::from(old.len());
        };
        if let Some(target) = old.branch_target(u64::from(at), self.old.isa()).filter(|_| !self.is_linked_later(at)) {
            return self.compare_branch(at, old, (now, &new), target as u32, executed);
        }
        let alike = old.words() == new.words() && old.mnemonic() == new.mnemonic();
        if !alike && !self.may_differ(at, old, &new) {
            let what = format!("`{}` has become `{}` with other bits", old.mnemonic(), new.mnemonic());
            self.report_finding(&UNCHANGED, at, what);
        }
        if new.mnemonic() == "s_clause" && executed {
            self.compare_clause(at, old, (now, &new));
        }
        u32::from(old.len())
    }

    /// Whether a linker fills in the distance.
    fn is_linked_later(&self, at: u32) -> bool {
        let source = &self.old.program.source;
        !source.linked && source.fixups_in(at..at + 4).iter().any(|fixup| fixup.kind == FixupKind::Rel16)
    }

    fn compare_branch(&mut self, at: u32, old: &Inst, (now, new): (u32, &Inst), target: u32, executed: bool) -> u32 {
        let expected = self.map.new_start(target);
        if new.entry() == old.entry() && !self.skips_a_long_one(now, new) {
            let to = new.branch_target(u64::from(now), self.new.isa()).map(|to| to as u32);
            let alike = to.is_some() && (to == expected || to.is_some_and(|to| self.leads_on(to) == expected));
            // Unexecuted bytes may be data that looks like a branch.
            if !alike && (executed || old.words() != new.words()) {
                let what = format!(
                    "a branch leads to {:#x}, but its target ({target:#x}) was moved elsewhere",
                    to.unwrap_or(0)
                );
                self.report_finding(&TARGET, at, what);
            }
            return u32::from(new.len());
        }
        let start = if new.entry() == old.entry() { now + 8 } else { now };
        match self.computed_target(start) {
            Some(ComputedTarget { to, end, pair })
                if Some(to) == expected && (new.entry() != old.entry() || self.goes_to(now + 4, end)) =>
            {
                self.long.push(LongBranch { at, target, pair });
                end - now
            }
            _ => {
                self.report_finding(
                    &TARGET,
                    at,
                    format!("`{}` has become `{}`, which does not lead where it led", old.mnemonic(), new.mnemonic()),
                );
                u32::from(old.len())
            }
        }
    }

    /// Whether there is an unconditional branch from one new offset to another.
    fn goes_to(&self, at: u32, end: u32) -> bool {
        let branch = self.new.program.decode(at).filter(|inst| inst.mnemonic() == "s_branch");
        branch.and_then(|inst| inst.branch_target(u64::from(at), self.new.isa())) == Some(u64::from(end))
    }

    /// Whether a conditional branch skips the branch after it, to a computation.
    fn skips_a_long_one(&self, at: u32, new: &Inst) -> bool {
        let next = self.new.program.decode(at + 4);
        new.raw(Name::Simm16) == Some(1)
            && next.is_some_and(|inst| inst.mnemonic() == "s_branch")
            && self.computed_target(at + 8).is_some()
    }

    /// The target that `s_get_pc_i64`, two additions and `s_set_pc_i64` compute.
    fn computed_target(&self, at: u32) -> Option<ComputedTarget> {
        let isa = self.new.isa();
        let (mut place, mut distance) = (at, 0_u64);
        let mut pair: Option<Reg> = None;
        for mnemonic in ["s_get_pc_i64", "s_add_co_u32", "s_add_co_ci_u32", "s_set_pc_i64"] {
            let inst = self.new.program.decode(place).filter(|inst| inst.mnemonic() == mnemonic)?;
            // The half of the pair that an addition changes.
            let half = match mnemonic {
                "s_add_co_u32" => Some(0),
                "s_add_co_ci_u32" => Some(1),
                _ => None,
            };
            let known = pair;
            match (mnemonic, half, known) {
                ("s_get_pc_i64", ..) => pair = Some(operand_register(&inst, isa, Name::Sdst)?),
                (_, Some(half), Some(pair)) => {
                    let own = Reg::new(RegFile::Sgpr, pair.index + half, 1);
                    let named = [Name::Sdst, Name::Src0].map(|name| operand_register(&inst, isa, name));
                    if named != [Some(own); 2] {
                        return None;
                    }
                    distance |= (inst.literal()? & 0xffff_ffff) << (32 * half);
                }
                (_, None, Some(pair)) if operand_register(&inst, isa, Name::Src0)? == pair => {}
                _ => return None,
            }
            place += u32::from(inst.len());
        }
        let to = (u64::from(at) + 4).wrapping_add(distance) as u32;
        Some(ComputedTarget { to, end: place, pair: pair? })
    }

    /// The target of a branch that was left at an old position.
    pub(crate) fn leads_on(&self, at: u32) -> Option<u32> {
        let inst = self.new.program.decode(at)?;
        match inst.mnemonic() {
            "s_branch" => inst.branch_target(u64::from(at), self.new.isa()).map(|to| to as u32),
            _ => self.computed_target(at).map(|target| target.to),
        }
    }

    /// The permitted changes of bits in an unchanged instruction.
    fn may_differ(&mut self, at: u32, old: &Inst, new: &Inst) -> bool {
        match old.mnemonic() {
            "s_clause" | "s_delay_alu" => [old.mnemonic(), "s_nop"].contains(&new.mnemonic()),
            "s_prefetch_inst_pc_rel" | "s_prefetch_data_pc_rel" => differ_in_distance_alone(old, new),
            "s_prefetch_inst" | "s_prefetch_data" if self.serves_prefetch(at) => differ_in_distance_alone(old, new),
            _ => {
                let whole = usize::from(old.entry().bytes()) / 4;
                let fixed = old.words()[..whole] == new.words()[..whole] && old.len() == new.len();
                if fixed && old.entry() == new.entry() {
                    self.literals.insert(at);
                }
                fixed
            }
        }
    }

    fn serves_prefetch(&self, at: u32) -> bool {
        self.old.program.function_at(at).is_some_and(|(_, function)| function.serves_fetching(at))
    }

    /// Members of a clause follow it as before, and none of them is new.
    fn compare_clause(&mut self, at: u32, old: &Inst, (now, new): (u32, &Inst)) {
        let (mut before, mut after) = (at + u32::from(old.len()), now + u32::from(new.len()));
        if clause_member_count(new) > clause_member_count(old) {
            self.report_finding(&UNCHANGED, at, "a clause has grown");
            return;
        }
        for _ in 0..clause_member_count(new) {
            let Some(inst) = self.old.program.decode(before) else { break };
            if self.map.site_at(before).is_some() || self.map.new_start(before) != Some(after) {
                self.report_finding(&UNCHANGED, at, "a clause holds new code");
                return;
            }
            before += u32::from(inst.len());
            after += u32::from(inst.len());
        }
    }

    fn compare_site(&mut self, site: &hotswap_report::SiteCertificate) {
        let Some(old) = self.old.program.decode(site.old).filter(|inst| u32::from(inst.len()) == site.old_size) else {
            self.report_finding(&CERTIFICATE, site.old, "the site is no instruction of the original");
            return;
        };
        let Some(mut code) = self.decode_range(site.new.clone()) else {
            self.report_finding(&ENCODING, site.old, "the replacement of the instruction is not code of the target");
            return;
        };
        let rest = code.split_off(self.copy_count(site).min(code.len()));
        self.check_copies(site, &code.into_iter().map(|line| line.inst).collect::<Vec<_>>());
        let code = rest;
        let branches = old.branch_target(u64::from(site.old), self.old.isa()).is_some();
        let kept = code.iter().position(|line| match branches {
            true => line.inst.entry() == old.entry(),
            false => line.inst.words() == old.words(),
        });
        if let Some(kept) = kept {
            self.itself.insert(site.old, code[kept].at);
            if code.iter().enumerate().all(|(number, line)| number == kept || is_idle_instruction(line)) {
                let now = code[kept].at;
                if branches {
                    self.compare_unchanged(site.old, &old, now, true);
                }
                return;
            }
        }
        // A long branch after instructions that only keep a distance.
        if branches {
            let first =
                code.iter().position(|line| !is_idle_instruction(line)).map_or(site.new.start, |first| code[first].at);
            if let Some(new) = self.new.program.decode(first) {
                let target = old.branch_target(u64::from(site.old), self.old.isa()).unwrap_or(0) as u32;
                let size = self.compare_branch(site.old, &old, (first, &new), target, true);
                if first + size == site.new.end {
                    return;
                }
            }
            self.report_finding(&UNCHANGED, site.old, "a branch has become something else");
            return;
        }
        let code: Vec<Inst> = code.into_iter().map(|line| line.inst).collect();
        self.sites.check_site(site, &old, &code);
    }

    fn decode_range(&self, range: Range<u32>) -> Option<Vec<NewInstruction>> {
        let (mut at, mut code) = (range.start, Vec::new());
        while at < range.end {
            let inst = self.new.program.decode(at)?;
            code.push(NewInstruction { at, inst });
            at += u32::from(inst.len());
        }
        (at == range.end).then_some(code)
    }

    /// New bytes that no old ones claim are padding, or redirect.
    fn check_unclaimed(&mut self) {
        self.claimed.sort_by_key(|range| range.start);
        let mut end = 0;
        let mut gaps = Vec::new();
        for range in self.claimed.iter().filter(|range| !range.is_empty()) {
            if range.start < end {
                let what = format!("two pieces of the original are at {:#x}", range.start);
                self.findings.push(LintFinding::at_offset(&CERTIFICATE, self.new, range.start, what));
                return;
            }
            gaps.push(end..range.start);
            end = range.end;
        }
        gaps.push(end..self.map.new_size);
        for gap in gaps {
            let mut at = gap.start;
            while at < gap.end {
                if is_padding_at(self.new, at) {
                    at += 4;
                    continue;
                }
                // At a function's old position, a branch leads to its new one: its old offset is this one, as nothing
                // moved then.
                let led =
                    self.leads_on(at).is_some_and(|to| self.moved_function_start(at).is_some_and(|was| was == to));
                if !led {
                    let what = format!("new code at {at:#x} corresponds to nothing in the original");
                    self.findings.push(LintFinding::at_offset(&UNCHANGED, self.new, at, what));
                    return;
                }
                at = self.computed_target(at).map_or(at + 4, |target| target.end);
            }
        }
    }

    /// The new start of the function whose old code was at a new offset.
    fn moved_function_start(&self, at: u32) -> Option<u32> {
        // The old position follows from the code before it, whose distance is unchanged.
        self.starts
            .iter()
            .copied()
            .find(|start| self.map.new_end(*start) == Some(at))
            .and_then(|start| self.map.new_start(start))
    }

    /// Registers that long branches use are dead at their targets.
    fn long_branches(&mut self) {
        if self.long.is_empty() {
            return;
        }
        let mut live = LiveRegisters::new(self.old);
        for LongBranch { at, target, pair } in std::mem::take(&mut self.long) {
            let (before, _) = live.live_around(target);
            let (_, behind) = live.live_around(at);
            let scc = Reg::special(Special::Scc, 1);
            let dead = [&before, &behind].iter().all(|live| live.is_dead(pair, DeadLanes::InAllLanes));
            if !dead || !before.is_dead(scc, DeadLanes::InAllLanes) {
                self.report_finding(&SCRATCH, at, "a long branch overwrites registers that are read at its target");
            }
        }
    }
}

fn is_code_mark(kind: &MarkKind) -> bool {
    matches!(kind, MarkKind::Kernel(_) | MarkKind::Function)
}

fn instruction_bytes_at(unit: &LintUnit<'_>, at: u32, size: u32) -> Option<Vec<u8>> {
    unit.program.source.bytes.get(at as usize..(at + size) as usize).map(<[u8]>::to_vec)
}

fn fits_before_boundary(inst: &Inst, old: u32, boundary: u32, executed: bool) -> bool {
    old + u32::from(inst.len()) <= boundary || executed
}

fn clause_member_count(inst: &Inst) -> u64 {
    (inst.raw(Name::Simm16).unwrap_or(0) & 63) + 1
}

fn is_idle_instruction(line: &NewInstruction) -> bool {
    super::site::is_idle(&line.inst)
}

fn is_padding_at(unit: &LintUnit<'_>, at: u32) -> bool {
    SectionWalk::word_at(unit, at).is_some_and(|word| PADDING.contains(&word))
}

fn operand_register(inst: &Inst, isa: Isa, name: Name) -> Option<Reg> {
    match inst.operand(isa, name) {
        Some(hotswap_isa::OperandValue::Reg(reg)) => Some(reg),
        _ => None,
    }
}

/// Whether two instructions that fetch code ahead are the same but for the distance of that code.
fn differ_in_distance_alone(old: &Inst, new: &Inst) -> bool {
    const FETCH: u32 = 0xff_ffff;
    old.len() == 8
        && new.len() == 8
        && old.words()[0] == new.words()[0]
        && (old.words()[1] ^ new.words()[1]) & !FETCH == 0
}
