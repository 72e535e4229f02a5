//! A section of code with the program in it.

use crate::returned;
use hotswap_code_object::CodeObject;
use hotswap_code_object::image::Image;
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::{Inst, Isa};
use hotswap_program::{BankMap, Live, Liveness, Program, Source, Summaries};
use hotswap_report::Diagnostic;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// See the module.
pub(crate) struct Unit<'a> {
    /// Number of the section in the file's table.
    pub(crate) number: usize,
    pub(crate) name: String,
    pub(crate) program: Program<'a>,
    /// Bank modes, if functions that are called begin and end in mode 0.
    pub(crate) banks: BankMap,
    summaries: OnceLock<Summaries>,
}

impl<'a> Unit<'a> {
    /// All sections of code of a code object.
    pub(crate) fn all(object: &CodeObject<'a>) -> Result<Vec<Self>, Diagnostic> {
        let image = Image::parse(object.bytes())?;
        let mut units = Vec::new();
        for source in Source::of(object)? {
            let at = source.bytes.as_ptr() as usize;
            let own = |part: &&(usize, &hotswap_code_object::image::Part<'_>)| {
                part.1.is_code() && part.1.bytes.as_ptr() as usize == at && part.1.bytes.len() == source.bytes.len()
            };
            let parts: Vec<_> = image.sections.iter().enumerate().collect();
            let Some((number, part)) = parts.iter().find(own) else { continue };
            let program = Program::build(source);
            let banks = BankMap::by_convention(&program);
            let summaries = OnceLock::new();
            units.push(Self { number: *number, name: part.name.to_owned(), program, banks, summaries });
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
    pub(crate) fn each(&self, function: usize, mut each: impl FnMut(usize, u32, &Inst, VgprBanks)) {
        for (block, line) in self.program.functions[function].blocks().enumerate() {
            let (mut at, mut banks) = (line.start, self.banks.at_block(function, block));
            while at < line.end {
                let Some(inst) = self.program.decode(at) else { break };
                each(block, at, &inst, banks);
                banks = banks.after(&inst, self.isa());
                at += u32::from(inst.len());
            }
        }
    }

    /// The instructions of a block with their offsets and the bank mode before each.
    pub(crate) fn block(&self, function: usize, block: usize) -> Vec<(u32, Inst, VgprBanks)> {
        let line = self.program.functions[function].block(block);
        let (mut at, mut banks) = (line.start, self.banks.at_block(function, block));
        let mut all = Vec::new();
        while at < line.end {
            let Some(inst) = self.program.decode(at) else { break };
            all.push((at, inst, banks));
            banks = banks.after(&inst, self.isa());
            at += u32::from(inst.len());
        }
        all
    }
}

/// Registers live around instructions of a unit; functions are solved on demand.
pub(crate) struct LiveRegisters<'u, 'a> {
    unit: &'u Unit<'a>,
    functions: BTreeMap<usize, Liveness>,
    returned: returned::Returned,
}

impl<'u, 'a> LiveRegisters<'u, 'a> {
    pub(crate) fn new(unit: &'u Unit<'a>) -> Self {
        Self { unit, functions: BTreeMap::new(), returned: returned::Returned::of(unit) }
    }

    /// The registers live before and after the instruction at an offset; everything if there is no instruction.
    pub(crate) fn around(&mut self, offset: u32) -> (Live, Live) {
        let everything = (Live::EVERYTHING, Live::EVERYTHING);
        let unit = self.unit;
        let Some((number, _)) = unit.program.function_at(offset) else { return everything };
        if !self.functions.contains_key(&number) {
            let live = self.returned.by(unit, number);
            let made = Liveness::returning(&unit.program, number, unit.summaries(), &unit.banks, &live);
            self.functions.insert(number, made);
        }
        let found = self.functions[&number].around(&unit.program, unit.summaries(), &unit.banks, offset);
        found.unwrap_or(everything)
    }
}
