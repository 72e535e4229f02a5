//! Instructions that were translated: a cache by address.
//!
//! Invariants: an entry is made from the bytes that are in memory when it is first executed, and forgotten when the memory
//! says that code changed, or when a dispatch begins and finds other bytes there: a kernel may have written them.

use crate::device::{EmulatedDevice, PlantedFault};
use crate::execute;
use crate::fault::FaultKind;
use crate::memory::DeviceMemory;
use crate::micro::{MicroOp, MicroOpBody, StepFault};
use crate::registers::VectorLimits;
use crate::stepping;
use crate::translate;
use foldhash::HashMap;
use hotswap_isa::{Feature, Inst, Isa};
use std::sync::PoisonError;

/// Bytes of code in a page.
const PAGE: u64 = 2048;
/// `s_nop 0`.
const S_NOP: [u8; 4] = [0, 0, 0x80, 0xbf];
/// Bytes of the longest instruction.
const LONGEST: usize = 20;

/// Caches that a device keeps: kernels with several numbers of registers, on several threads.
const IDLE: usize = 32;
/// Instructions of a block at most.
const BLOCK: usize = 64;

/// Blocks of a part of memory, one place for each dword.
#[derive(Debug)]
struct CodePage {
    /// One more than the number of the block.
    blocks: Vec<u32>,
    /// Address of its first byte.
    start: u64,
    /// The banks of vector registers that it was translated for.
    banks: u8,
}

/// The cache of one thread.
#[derive(Debug)]
pub(crate) struct CodeCache {
    pages: Vec<CodePage>,
    /// The page that was used last.
    page: usize,
    numbers: HashMap<(u64, u8), usize>,
    blocks: Vec<Box<[MicroOp]>>,
    /// Address and bytes of each block.
    sources: Vec<(u64, Box<[u8]>)>,
    version: u64,
    isa: Isa,
    limits: VectorLimits,
    planted: Option<PlantedFault>,
    uninterpreted: bool,
}

impl CodeCache {
    fn new(device: &EmulatedDevice, isa: Isa, limits: VectorLimits) -> Self {
        let planted = device.planted.clone();
        Self {
            pages: Vec::new(),
            page: 0,
            numbers: HashMap::default(),
            blocks: Vec::new(),
            sources: Vec::new(),
            version: 0,
            isa,
            limits,
            planted,
            uninterpreted: device.uninterpreted,
        }
    }

    /// A cache for a thread: one that another thread has left, if there is any for these conditions.
    pub(crate) fn of_device(device: &EmulatedDevice, isa: Isa, limits: VectorLimits) -> Self {
        let planted = device.planted.as_ref();
        let mut idle = device.idle_caches.lock().unwrap_or_else(PoisonError::into_inner);
        let found = idle
            .iter()
            .rposition(|cache| cache.downcast_ref::<Self>().is_some_and(|cache| cache.is_for(isa, limits, planted)));
        let found = found.map(|number| idle.swap_remove(number));
        let found = found.and_then(|cache| cache.downcast().ok());
        found.map_or_else(|| Self::new(device, isa, limits), |cache| *cache)
    }

    /// Leaves the cache to other threads; the oldest one is forgotten.
    pub(crate) fn release_to_device(self, device: &EmulatedDevice) {
        let mut idle = device.idle_caches.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() >= IDLE {
            idle.remove(0);
        }
        idle.push(Box::new(self));
    }

    /// Whether it translates for these conditions.
    fn is_for(&self, isa: Isa, limits: VectorLimits, planted: Option<&PlantedFault>) -> bool {
        self.isa.features() == isa.features()
            && self.isa.target().name == isa.target().name
            && self.limits == limits
            && self.planted.as_ref() == planted
    }

    /// Forgets everything if code may have changed.
    pub(crate) fn discard_stale(&mut self, memory: &dyn DeviceMemory) {
        let version = memory.code_version();
        if version != self.version || version == 0 || !self.is_current(memory) {
            self.pages.clear();
            self.numbers.clear();
            self.blocks.clear();
            self.sources.clear();
            self.version = version;
        }
    }

    /// Whether the bytes of all blocks are those that were translated.
    fn is_current(&self, memory: &dyn DeviceMemory) -> bool {
        let mut found = [0; BLOCK * LONGEST];
        self.sources.iter().all(|(address, bytes)| {
            let found = &mut found[..bytes.len()];
            memory.read(*address, found).is_ok() && **bytes == *found
        })
    }

    /// The number of the page of an address.
    fn page_of(&mut self, pc: u64, banks: u8) -> usize {
        let start = pc & !(PAGE - 1);
        *self.numbers.entry((start, banks)).or_insert_with(|| {
            let blocks = vec![0; (PAGE / 4) as usize];
            self.pages.push(CodePage { blocks, start, banks });
            self.pages.len() - 1
        })
    }

    /// The instructions from an address on, one after the other up to one after which another place or
    /// other banks may follow.
    ///
    /// # Errors
    /// Where the address is not at code.
    #[inline]
    pub(crate) fn block_at(
        &mut self,
        pc: u64,
        banks: u8,
        memory: &dyn DeviceMemory,
    ) -> Result<&[MicroOp], Box<StepFault>> {
        if !self.pages.get(self.page).is_some_and(|one| page_holds_address(one, pc, banks)) {
            self.page = self.page_of(pc, banks);
        }
        let number = self.pages[self.page].blocks[(pc & (PAGE - 1)) as usize / 4];
        if number == 0 || !pc.is_multiple_of(4) {
            return self.translate_block(pc, banks, memory);
        }
        Ok(&self.blocks[number as usize - 1])
    }

    #[cold]
    fn translate_block(&mut self, pc: u64, banks: u8, memory: &dyn DeviceMemory) -> Result<&[MicroOp], Box<StepFault>> {
        let mut ops = vec![self.translate_instruction(pc, banks, memory)?];
        let mut at = pc + u64::from(ops[0].length);
        // Bytes that are not code are a fault only if they are reached.
        while ops.len() < BLOCK && !ops.last().is_some_and(|op| ends_block(&op.inst)) {
            let Ok(op) = self.translate_instruction(at, banks, memory) else { break };
            at += u64::from(op.length);
            ops.push(op);
        }
        let mut bytes = vec![0; (at - pc) as usize];
        // They were read for the instructions.
        let _ = memory.read(pc, &mut bytes);
        self.sources.push((pc, bytes.into_boxed_slice()));
        self.blocks.push(ops.into_boxed_slice());
        self.pages[self.page].blocks[(pc & (PAGE - 1)) as usize / 4] = self.blocks.len() as u32;
        Ok(&self.blocks[self.blocks.len() - 1])
    }

    /// Translates the instruction at an address.
    fn translate_instruction(&self, pc: u64, banks: u8, memory: &dyn DeviceMemory) -> Result<MicroOp, Box<StepFault>> {
        if !pc.is_multiple_of(4) {
            return Err(StepFault::new(FaultKind::IllegalPc));
        }
        let mut bytes = [0; LONGEST];
        let have = read_code_bytes(memory, pc, &mut bytes);
        if have == 0 {
            return Err(StepFault::new(FaultKind::IllegalPc));
        }
        let inst = self.isa.decode(&bytes[..have]).map_err(|one| illegal_instruction_fault(one, &bytes, have))?;
        let op = translate::translate_instruction(inst, self.isa, banks, self.limits);
        let handler = self.uninterpreted.then(|| execute::uninterpreted::find_handler(&inst)).flatten();
        let op = MicroOp { handler: handler.unwrap_or(op.handler), ..op };
        let op = with_fault(op, self.planted.as_ref(), self.isa);
        let broken = self.isa.has(Feature::Gfx1250Strict).then(|| stepping::broken_rule(&inst, self.isa)).flatten();
        Ok(match broken {
            Some(rule) => MicroOp { handler: execute::stepping_trap, body: MicroOpBody::Trapped(rule), ..op },
            None => op,
        })
    }
}

fn page_holds_address(page: &CodePage, pc: u64, banks: u8) -> bool {
    page.start == pc & !(PAGE - 1) && page.banks == banks
}

fn illegal_instruction_fault(_: hotswap_isa::Undecoded, bytes: &[u8; 20], have: usize) -> Box<StepFault> {
    StepFault::new(FaultKind::IllegalInstruction { bytes: bytes[..have.min(8)].to_vec() })
}

/// Whether another place or other banks may follow: branches, calls, ends, and everything that sets a register of hardware.
fn ends_block(inst: &Inst) -> bool {
    const STARTS: [&str; 9] =
        ["s_branch", "s_cbranch", "s_endpgm", "s_call", "s_swap", "s_set", "s_add_pc", "s_trap", "s_rfe"];
    let mnemonic = inst.mnemonic();
    STARTS.iter().any(|start| mnemonic.starts_with(start))
}

/// The instruction with the fault that a test planted.
fn with_fault(mut op: MicroOp, planted: Option<&PlantedFault>, isa: Isa) -> MicroOp {
    match planted {
        Some(PlantedFault::Skipped(name)) if *name == op.inst.mnemonic() => {
            op.handler = execute::no_effect;
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
fn read_code_bytes(memory: &dyn DeviceMemory, pc: u64, into: &mut [u8; LONGEST]) -> usize {
    if memory.read(pc, into).is_ok() {
        return LONGEST;
    }
    let words = into.chunks_exact_mut(4).enumerate();
    words.map_while(|(number, word)| memory.read(pc + 4 * number as u64, word).ok()).count() * 4
}
