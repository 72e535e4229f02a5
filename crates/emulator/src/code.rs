//! Instructions that were translated: a cache by address.
//!
//! Invariants: an entry is made from the bytes that are in memory when it is first executed, and forgotten when the
//! memory says that code changed.

use crate::device::{EmulatedDevice, PlantedFault};
use crate::execute;
use crate::fault::FaultKind;
use crate::memory::DeviceMemory;
use crate::micro::{Body, MicroOp, StepFault};
use crate::stepping;
use crate::translate;
use foldhash::HashMap;
use hotswap_isa::{Feature, Isa};

/// Bytes of code in a page.
const PAGE: u64 = 2048;
/// `s_nop 0`.
const S_NOP: [u8; 4] = [0, 0, 0x80, 0xbf];
/// Bytes of the longest instruction.
const LONGEST: usize = 20;

/// Translated instructions of a part of memory, one place for each dword.
#[derive(Debug)]
pub(crate) struct CodePage {
    ops: Vec<Option<Box<MicroOp>>>,
    /// Address of its first byte.
    start: u64,
    /// The banks of vector registers that it was translated for.
    banks: u8,
}

/// The cache of one thread.
#[derive(Debug)]
pub(crate) struct CodeCache {
    pages: Vec<CodePage>,
    numbers: HashMap<(u64, u8), usize>,
    version: u64,
    isa: Isa,
    planted: Option<PlantedFault>,
    uninterpreted: bool,
}

impl CodeCache {
    pub(crate) fn new(isa: Isa, planted: Option<PlantedFault>) -> Self {
        Self { pages: Vec::new(), numbers: HashMap::default(), version: 0, isa, planted, uninterpreted: false }
    }

    /// Matrix products are functions of which only the arguments are known, if the device asks for it.
    #[must_use]
    pub(crate) fn of_device(self, device: &EmulatedDevice) -> Self {
        Self { uninterpreted: device.uninterpreted, ..self }
    }

    /// Forgets everything if code may have changed.
    pub(crate) fn refresh(&mut self, memory: &dyn DeviceMemory) {
        let version = memory.code_version();
        if version != self.version {
            self.pages.clear();
            self.numbers.clear();
            self.version = version;
        }
    }

    /// The number of the page of an address.
    pub(crate) fn page(&mut self, pc: u64, banks: u8) -> usize {
        let start = pc & !(PAGE - 1);
        *self.numbers.entry((start, banks)).or_insert_with(|| {
            let ops = vec![None; (PAGE / 4) as usize];
            self.pages.push(CodePage { ops, start, banks });
            self.pages.len() - 1
        })
    }

    /// Whether a page holds an address, for these banks.
    #[inline]
    pub(crate) fn holds(&self, page: usize, pc: u64, banks: u8) -> bool {
        let page = &self.pages[page];
        page.start == pc & !(PAGE - 1) && page.banks == banks
    }

    /// The instruction at an address of a page.
    #[inline]
    pub(crate) fn get(&self, page: usize, pc: u64) -> Option<&MicroOp> {
        self.pages[page].ops[(pc & (PAGE - 1)) as usize / 4].as_deref()
    }

    /// Translates the instruction at an address of a page.
    ///
    /// # Errors
    /// Where the address is not at code.
    pub(crate) fn fill(&mut self, page: usize, pc: u64, memory: &dyn DeviceMemory) -> Result<(), Box<StepFault>> {
        if !pc.is_multiple_of(4) {
            return Err(StepFault::new(FaultKind::IllegalPc));
        }
        let mut bytes = [0; LONGEST];
        let have = readable(memory, pc, &mut bytes);
        if have == 0 {
            return Err(StepFault::new(FaultKind::IllegalPc));
        }
        let illegal = |_| StepFault::new(FaultKind::IllegalInstruction { bytes: bytes[..have.min(8)].to_vec() });
        let inst = self.isa.decode(&bytes[..have]).map_err(illegal)?;
        let page = &mut self.pages[page];
        let op = translate::translate(inst, self.isa, page.banks);
        let handler = self.uninterpreted.then(|| execute::uninterpreted::handler(&inst)).flatten();
        let op = MicroOp { handler: handler.unwrap_or(op.handler), ..op };
        let op = with_fault(op, self.planted.as_ref(), self.isa);
        let broken = self.isa.has(Feature::Gfx1250Strict).then(|| stepping::broken_rule(&inst, self.isa)).flatten();
        let op = match broken {
            Some(rule) => MicroOp { handler: execute::trapped, body: Body::Trapped(rule), ..op },
            None => op,
        };
        page.ops[(pc & (PAGE - 1)) as usize / 4] = Some(Box::new(op));
        Ok(())
    }
}

/// The instruction with the fault that a test planted.
fn with_fault(mut op: MicroOp, planted: Option<&PlantedFault>, isa: Isa) -> MicroOp {
    match planted {
        Some(PlantedFault::Skipped(name)) if *name == op.inst.mnemonic() => {
            op.handler = execute::nothing;
            // Nothing that follows instructions shall see it either.
            if let Ok(inst) = isa.decode(&S_NOP) {
                op.inst = inst;
            }
        }
        Some(PlantedFault::Exchanged(name)) if *name == op.inst.mnemonic() => op.sources.swap(0, 1),
        _ => {}
    }
    op
}

/// Reads up to the longest instruction; returns the bytes that are there.
fn readable(memory: &dyn DeviceMemory, pc: u64, into: &mut [u8; LONGEST]) -> usize {
    if memory.read(pc, into).is_ok() {
        return LONGEST;
    }
    let words = into.chunks_exact_mut(4).enumerate();
    words.map_while(|(number, word)| memory.read(pc + 4 * number as u64, word).ok()).count() * 4
}
