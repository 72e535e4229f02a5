//! A section of code with the program in it.

use hotswap_code_object::CodeObject;
use hotswap_code_object::image::ObjectImage;
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::{Inst, Isa, Name};
use hotswap_program::{BankMap, CodeSource, Program, Summaries};
use hotswap_report::Diagnostic;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// An instruction with its offset and the bank mode before it.
pub(crate) type BankedInst = (u32, Inst, VgprBanks);

pub(crate) struct LintUnit<'a> {
    /// Number of the section in the file's table.
    pub(crate) number: usize,
    pub(crate) name: String,
    pub(crate) program: Program<'a>,
    /// Bank modes, if functions that are called begin and end in mode 0.
    pub(crate) banks: BankMap,
    summaries: OnceLock<Summaries>,
}

impl<'a> LintUnit<'a> {
    /// All sections of code of a code object.
    pub(crate) fn units_of_object(object: &CodeObject<'a>) -> Result<Vec<Self>, Diagnostic> {
        let image = ObjectImage::parse(object.bytes())?;
        let mut units = Vec::new();
        for source in CodeSource::sources_of_object(object)? {
            let Some((number, section)) = source.number.and_then(|number| Some((number, image.sections.get(number)?)))
            else {
                continue;
            };
            let name = section.name.to_owned();
            let program = Program::build(source);
            let banks = BankMap::by_convention(&program);
            let summaries = OnceLock::new();
            units.push(Self { number, name, program, banks, summaries });
        }
        Ok(units)
    }

    pub(crate) fn isa(&self) -> Isa {
        self.program.source.isa
    }

    pub(crate) fn summaries(&self) -> &Summaries {
        self.summaries.get_or_init(|| Summaries::by_convention(&self.program, &self.banks))
    }

    /// Every decoded instruction of a function in the order of its blocks, with the bank mode before it.
    pub(crate) fn each_instruction(&self, function: usize, mut each: impl FnMut(usize, u32, &Inst, VgprBanks)) {
        for (block, line) in self.program.functions[function].blocks().enumerate() {
            let (mut at, mut banks) = (line.start, self.banks.at_block(function, block));
            while at < line.end {
                let Some(inst) = self.program.decode(at) else { break };
                each(block, at, &inst, banks);
                banks = banks.mode_after(&inst, self.isa());
                at += u32::from(inst.len());
            }
        }
    }

    /// The instructions of a block with their offsets and the bank mode before each.
    pub(crate) fn block_code(&self, function: usize, block: usize) -> Vec<BankedInst> {
        let line = self.program.functions[function].block(block);
        let (mut at, mut banks) = (line.start, self.banks.at_block(function, block));
        let mut all = Vec::new();
        while at < line.end {
            let Some(inst) = self.program.decode(at) else { break };
            all.push((at, inst, banks));
            banks = banks.mode_after(&inst, self.isa());
            at += u32::from(inst.len());
        }
        all
    }

    /// Whether the program may keep vector instructions apart itself: an instruction sets `SCHED_MODE`.
    pub(crate) fn sets_sched_mode(&self) -> bool {
        !self.sched_mode_setters().is_empty()
    }

    /// The functions in which the program may keep vector instructions apart itself: those that share a kernel with a function
    /// that sets `SCHED_MODE`, and those with unknown callers.
    pub(crate) fn managed_functions(&self) -> Vec<bool> {
        let setters = self.sched_mode_setters();
        let count = self.program.functions.len();
        let kernels: BTreeSet<u32> =
            setters.iter().flat_map(|setter| self.program.kernels_of(*setter).iter().copied()).collect();
        let is_open = setters.iter().any(|setter| self.program.kernels_of(*setter).is_empty());
        let mut managed = vec![is_open; count];
        if !setters.is_empty() {
            for (function, is_managed) in managed.iter_mut().enumerate() {
                let own = self.program.kernels_of(function);
                *is_managed |= own.is_empty() || own.iter().any(|kernel| kernels.contains(kernel));
            }
        }
        managed
    }

    fn sched_mode_setters(&self) -> Vec<usize> {
        (0..self.program.functions.len()).filter(|function| self.has_sched_mode_write(*function)).collect()
    }

    fn has_sched_mode_write(&self, function: usize) -> bool {
        let mut found = false;
        self.each_instruction(function, |_, _, inst, _| found |= sets_sched_mode(inst));
        found
    }
}

/// Whether an instruction sets `SCHED_MODE`, hardware register 26.
pub(crate) fn sets_sched_mode(inst: &Inst) -> bool {
    const SCHED_MODE: u64 = 26;
    inst.class() == Some(hotswap_isa::Class::Sopk)
        && matches!(inst.mnemonic(), "s_setreg_b32" | "s_setreg_imm32_b32")
        && inst.raw(Name::Simm16).is_some_and(|register| register & 63 == SCHED_MODE)
}
