//! Writes one random kernel: instructions, and the structures that hold them.

use super::registers::{ADDRESS, OperandRole, RandomSource, RegisterRun, banks_of, draw_run};
use super::templates::{AllowedPlace, CLAUSES, PendingKind, TEMPLATES, Template};
use std::fmt::Write;

/// Loops and masked blocks in each other.
const DEPTH: usize = 2;
/// Counters of loops, and masks that are saved, by depth.
const COUNTER: usize = 90;
const SAVED_MASK: usize = 70;

/// A register that an operation in flight reads or writes.
#[derive(Debug, Clone, Copy)]
struct PendingRun {
    kind: PendingKind,
    run: RegisterRun,
}

/// An instruction with its registers chosen.
struct ChosenInstruction {
    text: String,
    runs: Vec<RegisterRun>,
    result: Option<RegisterRun>,
}

pub(super) struct KernelWriter {
    random: RandomSource,
    name: String,
    registers: u32,
    text: String,
    mode: u8,
    is_masked: bool,
    pending: Vec<PendingRun>,
    labels: usize,
}

impl KernelWriter {
    pub(super) fn new(random: RandomSource, name: String, registers: u32) -> Self {
        let (text, pending) = (String::new(), Vec::new());
        Self { random, name, registers, text, mode: 0, is_masked: false, pending, labels: 0 }
    }

    pub(super) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// A writer for the function that the kernel calls.
    pub(super) fn into_callee(self) -> Self {
        Self { mode: 0, is_masked: false, ..self }
    }

    fn line(&mut self, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "\t{text}");
    }

    /// Addresses in every bank, and numbers in some registers.
    pub(super) fn start_kernel(&mut self) {
        let (address, pair) = (format!("v{ADDRESS}"), format!("v{}", ADDRESS + 1));
        self.line(&format!("v_and_b32 {address}, 31, v0"));
        self.line(&format!("v_lshlrev_b32 {address}, 4, {address}"));
        self.line(&format!("v_mov_b32 {pair}, 0x10"));
        for bank in 1..banks_of(self.registers) {
            self.set_mode((bank as u8) << 6);
            self.line(&format!("v_mov_b32 {address}, {address}"));
            self.line(&format!("v_mov_b32 {pair}, {pair}"));
        }
        self.set_mode(0);
        self.line("s_mov_b32 s4, 0");
        self.line("s_mov_b32 s5, 0x70");
        for register in (8..20).chain(20..30).chain(32..50) {
            let value = self.random.below(1 << 20);
            self.line(&format!("s_mov_b32 s{register}, {value:#x}"));
        }
        for register in 1..48 {
            let value = self.random.next_word() as u32;
            self.line(&format!("v_xor_b32 v{register}, {value:#x}, v{ADDRESS}"));
        }
    }

    pub(super) fn write_body(&mut self, calls: bool) {
        let count = 6 + self.random.below(26) as usize;
        let call_at = self.random.below(count as u32) as usize;
        for number in 0..count {
            if calls && number == call_at {
                self.write_call();
            }
            self.write_part(0);
        }
        self.settle(0);
    }

    /// Stores registers, so that launches can be compared.
    pub(super) fn end_kernel(&mut self) {
        for bank in 0..banks_of(self.registers) {
            self.set_mode((bank as u8) << 2);
            for number in 0..6 {
                let run = draw_run(&mut self.random, OperandRole::Second, self.mode, 1, self.registers);
                let offset = 0x1000 + bank * 0x100 + number * 4;
                self.line(&format!("global_store_b32 v{ADDRESS}, {}, s[4:5] offset:{offset}", run.text()));
            }
        }
        self.set_mode(0);
        self.line("s_endpgm");
    }

    pub(super) fn end_callee(&mut self) {
        self.line("s_set_pc_i64 s[30:31]");
    }

    fn write_call(&mut self) {
        self.settle(0);
        let name = self.name.clone();
        self.line("s_get_pc_i64 s[50:51]");
        self.line(&format!("s_add_nc_u64 s[50:51], s[50:51], {name}_f-."));
        self.line("s_swap_pc_i64 s[30:31], s[50:51]");
    }

    fn write_part(&mut self, depth: usize) {
        match self.random.below(100) {
            0..5 => self.write_clause(),
            5..9 => self.write_dual(),
            9..16 if depth < DEPTH => self.write_loop(depth),
            16..23 if depth < DEPTH => self.write_masked(depth),
            23..29 if depth < DEPTH => self.write_branch(depth),
            _ => self.write_template(),
        }
    }

    fn write_block(&mut self, depth: usize) {
        for _ in 0..1 + self.random.below(7) {
            self.write_part(depth);
        }
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!(".L{}_{}", self.name, self.labels)
    }

    fn write_loop(&mut self, depth: usize) {
        let (label, counter) = (self.label(), COUNTER + depth);
        let mode = self.mode;
        self.settle(mode);
        self.line(&format!("s_mov_b32 s{counter}, 2"));
        let _ = writeln!(self.text, "{label}:");
        self.write_block(depth + 1);
        self.settle(mode);
        self.line(&format!("s_sub_co_u32 s{counter}, s{counter}, 1"));
        self.line(&format!("s_cmp_lg_u32 s{counter}, 0"));
        self.line(&format!("s_cbranch_scc1 {label}"));
    }

    fn write_masked(&mut self, depth: usize) {
        let (label, saved) = (self.label(), SAVED_MASK + depth);
        let mode = self.mode;
        self.settle(mode);
        let register = self.random.below(48);
        let number = self.random.next_word() as u32;
        self.line(&format!("v_cmp_gt_u32 vcc_lo, {number:#x}, v{register}"));
        self.line(&format!("s_and_saveexec_b32 s{saved}, vcc_lo"));
        if self.random.percent(60) {
            self.line(&format!("s_cbranch_execz {label}"));
        }
        let was_masked = std::mem::replace(&mut self.is_masked, true);
        self.write_block(depth + 1);
        self.is_masked = was_masked;
        self.settle(mode);
        let _ = writeln!(self.text, "{label}:");
        self.line(&format!("s_mov_b32 exec_lo, s{saved}"));
    }

    fn write_branch(&mut self, depth: usize) {
        let label = self.label();
        let mode = self.mode;
        self.settle(mode);
        let (register, bit) = (20 + self.random.below(10), self.random.below(20));
        self.line(&format!("s_bitcmp1_b32 s{register}, {bit}"));
        self.line(&format!("s_cbranch_scc1 {label}"));
        self.write_block(depth + 1);
        self.settle(mode);
        let _ = writeln!(self.text, "{label}:");
    }

    /// Two instructions in one.
    fn write_dual(&mut self) {
        self.set_mode(0);
        let draw = [0; 4].map(|_: u32| self.random.below(14));
        let [first, second] = [2 * draw[0], 2 * draw[1] + 1];
        let [left, right] = [4 * draw[2], 4 * draw[3] + 1];
        let runs: Vec<RegisterRun> =
            [first, second, left, right].iter().map(|written| RegisterRun::new(0, *written, 1)).collect();
        self.wait_for_runs(&runs);
        let text = match self.random.percent(50) {
            true => format!("v_dual_mov_b32 v{first}, v{left} :: v_dual_mov_b32 v{second}, v{right}"),
            false => format!("v_dual_add_f32 v{first}, v{left}, v{} :: v_dual_mov_b32 v{second}, v{right}", left + 1),
        };
        self.wait_for_runs(&[RegisterRun::new(0, left + 1, 1)]);
        self.line(&text);
    }

    fn write_clause(&mut self) {
        let (members, kind) = CLAUSES[self.random.below(CLAUSES.len() as u32) as usize];
        self.maybe_change_mode();
        let count = 2 + self.random.below(4) as usize;
        let mut chosen: Vec<ChosenInstruction> = Vec::new();
        while chosen.len() < count {
            let text = members[self.random.below(members.len() as u32) as usize];
            let one = self.choose_registers(text);
            let meets = |run: &RegisterRun| chosen.iter().any(|old| old.runs.iter().any(|other| other.overlaps(*run)));
            if !one.result.as_ref().is_some_and(meets) {
                chosen.push(one);
            }
        }
        let runs: Vec<RegisterRun> = chosen.iter().flat_map(|one| one.runs.clone()).collect();
        self.wait_for_runs(&runs);
        self.line(&format!("s_clause {:#x}", count - 1));
        for one in chosen {
            self.line(&one.text);
            self.pending.extend(one.runs.into_iter().map(|run| PendingRun { kind, run }));
        }
        if kind == PendingKind::Scalar {
            self.line("s_wait_kmcnt 0x0");
        }
    }

    fn write_template(&mut self) {
        let template = self.draw_template();
        if template.text.contains("_async_") || template.text.starts_with("s_setreg") {
            self.set_mode(0);
        } else {
            self.maybe_change_mode();
        }
        let chosen = self.choose_registers(template.text);
        self.wait_for_runs(&chosen.runs);
        self.line(&chosen.text);
        if template.needs_nop {
            self.line("v_nop");
        }
        // A bank mode directly after a write of MODE would be dropped.
        if template.text.starts_with("s_setreg") {
            self.line("s_nop 0");
        }
        match template.pending {
            PendingKind::None => {}
            PendingKind::Scalar => self.line("s_wait_kmcnt 0x0"),
            PendingKind::Tensor => self.line("s_wait_tensorcnt 0x0"),
            PendingKind::Async => self.line("s_wait_asynccnt 0x0"),
            kind => {
                self.pending.extend(chosen.runs.into_iter().map(|run| PendingRun { kind, run }));
                if self.random.percent(50) {
                    self.wait_for_kind(kind);
                }
            }
        }
    }

    fn draw_template(&mut self) -> &'static Template {
        let all: u32 = TEMPLATES.iter().map(|template| template.weight).sum();
        loop {
            let mut left = self.random.below(all);
            for template in TEMPLATES {
                if left < template.weight {
                    if self.is_masked && template.place == AllowedPlace::AllLanes {
                        break;
                    }
                    return template;
                }
                left -= template.weight;
            }
        }
    }

    /// An instruction with registers: the result of a matrix instruction meets no factor, and its addend is the result or
    /// meets neither.
    fn choose_registers(&mut self, template: &str) -> ChosenInstruction {
        loop {
            let chosen = self.draw_registers(template);
            let is_matrix = template.starts_with("v_wmma") || template.starts_with("v_swmmac");
            let result = chosen.result;
            let meets = |run: &RegisterRun| result.is_some_and(|result| *run != result && run.overlaps(result));
            let scales = RegisterRun::new(0, 40, 4);
            let writes_scales = template.contains("v40") || template.contains("v[40");
            let overwrites_scales = writes_scales && result.is_some_and(|run| run.overlaps(scales));
            let is_apart = !overwrites_scales && !chosen.runs.iter().any(meets);
            if !is_matrix || is_apart {
                return chosen;
            }
        }
    }

    fn draw_registers(&mut self, template: &str) -> ChosenInstruction {
        let mut chosen = ChosenInstruction { text: String::new(), runs: Vec::new(), result: None };
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, behind)) = after.split_once('}') else { break };
            chosen.text += before;
            chosen.text += &self.draw_operand(name, &mut chosen.runs, &mut chosen.result);
            rest = behind;
        }
        chosen.text += rest;
        // The scales of matrix instructions.
        if template.contains("v40") || template.contains("v[40") {
            chosen.runs.push(RegisterRun::new(0, 40, 4));
        }
        chosen
    }

    fn draw_operand(&mut self, name: &str, runs: &mut Vec<RegisterRun>, result: &mut Option<RegisterRun>) -> String {
        let (kind, count) = name.split_at(1);
        let count = count.parse().unwrap_or(1);
        let role = match kind {
            "s" => return format!("s{}", self.draw_scalar()),
            "t" => {
                let first = self.draw_scalar() / 2 * 2;
                return format!("s[{first}:{}]", first + 1);
            }
            "k" => return format!("{}", 10 + 4 * self.random.below(20)),
            "x" => return format!("{}", self.random.below(30)),
            "p" | "q" => {
                let bank = OperandRole::First.bank_in(self.mode);
                return RegisterRun::new(bank, ADDRESS, if kind == "p" { 1 } else { 2 }).text();
            }
            "a" => OperandRole::First,
            "b" => OperandRole::Second,
            "c" | "m" => OperandRole::Third,
            _ => OperandRole::Result,
        };
        let own = result.filter(|_| kind == "m" && role.bank_in(self.mode) == OperandRole::Result.bank_in(self.mode));
        let run = match own {
            Some(own) if self.random.percent(70) => own,
            _ => draw_run(&mut self.random, role, self.mode, count, self.registers),
        };
        if role == OperandRole::Result {
            *result = Some(run);
        }
        runs.push(run);
        run.text()
    }

    /// A scalar register without another purpose.
    fn draw_scalar(&mut self) -> u32 {
        let number = self.random.below(28);
        if number < 10 { 20 + number } else { 22 + number }
    }

    fn maybe_change_mode(&mut self) {
        let banks = banks_of(self.registers);
        if banks > 1 && self.random.percent(30) {
            let mode = (0..4).fold(0, |mode, role| mode | (self.random.below(banks) as u8) << (2 * role));
            self.set_mode(mode);
        }
    }

    fn set_mode(&mut self, mode: u8) {
        if mode != self.mode {
            let number = u32::from(mode) | u32::from(self.mode) << 8;
            self.line(&format!("s_set_vgpr_msb {number:#x}"));
            self.mode = mode;
        }
    }

    /// Waits for everything in flight, and sets a mode: paths meet here.
    fn settle(&mut self, mode: u8) {
        for kind in [PendingKind::Load, PendingKind::Store, PendingKind::Lds] {
            self.wait_for_kind(kind);
        }
        self.set_mode(mode);
    }

    /// Waits for what is in flight in some registers.
    fn wait_for_runs(&mut self, runs: &[RegisterRun]) {
        for kind in [PendingKind::Load, PendingKind::Store, PendingKind::Lds] {
            let meets = |pending: &PendingRun| pending.kind == kind && runs.iter().any(|run| run.overlaps(pending.run));
            if self.pending.iter().any(meets) {
                self.wait_for_kind(kind);
            }
        }
    }

    fn wait_for_kind(&mut self, kind: PendingKind) {
        if !self.pending.iter().any(|pending| pending.kind == kind) {
            return;
        }
        self.pending.retain(|pending| pending.kind != kind);
        match kind {
            PendingKind::Load => self.line("s_wait_loadcnt 0x0"),
            PendingKind::Store => self.line("s_wait_storecnt 0x0"),
            PendingKind::Lds => self.line("s_wait_dscnt 0x0"),
            PendingKind::None | PendingKind::Scalar | PendingKind::Tensor | PendingKind::Async => {}
        }
    }
}
