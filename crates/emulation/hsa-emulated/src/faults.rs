//! Faults of kernels and copies: what HSA tells the program, and one line for the user.
//!
//! | fault | what HSA tells |
//! | --- | --- |
//! | access to memory that is not valid | the event of a memory fault; without a handler, ROCr's message and abort |
//! | instruction that is unknown or illegal, program counter outside of code | the queue's callback: illegal instruction |
//! | aligned access at an odd address, access beyond scratch | the queue's callback: aperture violation |
//! | trap, exhausted budget, deadlock, and the rest | the queue's callback: exception |

use crate::abi::{AgentHandle, MemoryFaultEvent};
use crate::devices::gpu_of;
use crate::events::raise_event;
use crate::executor::MEMORY;
use crate::loader::LoadedKernel;
use crate::memory::allocations::{AllocationKind, allocation_facts};
use crate::message::report_message;
use crate::status::HsaStatus;
use hotswap_emulator::{DeviceMemory, ExecutionFault, FaultKind, MemoryFault};
use hotswap_isa::{Isa, Target};
use std::process::abort;

/// The event of a memory fault, and its reasons: the GPU has no such page, or may only read it.
const MEMORY_FAULT_EVENT: u32 = 0;
const PAGE_NOT_PRESENT: u32 = 1;
const READ_ONLY_PAGE: u32 = 2;
const LONGEST: usize = 20;

/// The status of the queue's callback; `None` for a memory fault.
fn callback_status(kind: &FaultKind) -> Option<HsaStatus> {
    match kind {
        FaultKind::Memory(_) => None,
        FaultKind::UnknownInstruction { .. }
        | FaultKind::IllegalInstruction { .. }
        | FaultKind::IllegalPc
        | FaultKind::SteppingTrap { .. } => Some(HsaStatus::ILLEGAL_INSTRUCTION),
        FaultKind::Misaligned { .. } | FaultKind::Scratch { .. } => Some(HsaStatus::APERTURE_VIOLATION),
        _ => Some(HsaStatus::EXCEPTION),
    }
}

/// The name of an agent's GPU.
fn gpu_name(agent: AgentHandle) -> String {
    gpu_of(agent).map_or_else(|_| "the host".to_owned(), |gpu| format!("{} (GPU {})", gpu.target, gpu.number))
}

/// The instruction at an address, as assembly.
fn instruction_text(agent: AgentHandle, pc: u64) -> Option<String> {
    let isa = Isa::new(Target::find(gpu_of(agent).ok()?.target.processor.name)?);
    let mut bytes = [0; LONGEST];
    // The code may end within the longest instruction.
    let length = (1..=LONGEST / 4).rev().map(|words| words * 4);
    let length = length.into_iter().find(|size| MEMORY.view_of_all().read(pc, &mut bytes[..*size]).is_ok())?;
    let text = isa.decode(&bytes[..length]).ok()?.text(isa).to_string();
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The line for the user.
fn fault_line(agent: AgentHandle, kernel: Option<&LoadedKernel>, fault: &ExecutionFault) -> String {
    let name = kernel.map_or("without a name", |kernel| kernel.name.as_str());
    let pc = fault.place.pc;
    let object = kernel.map(|kernel| &kernel.object);
    let place = object.and_then(|object| object.describe_address(pc)).map_or(String::new(), |at| format!(" [{at}]"));
    let source = object.and_then(|object| object.source_line(pc)).map_or(String::new(), |line| format!(" ({line})"));
    let instruction = instruction_text(agent, pc).map_or(String::new(), |text| format!(" `{text}`"));
    let reason = if let FaultKind::Memory(access) = &fault.kind { missing_access(agent, access) } else { None };
    let reason = reason.map_or(String::new(), |reason| format!("; {reason}"));
    format!("kernel {name} on {}: {fault}{place}{source}{instruction}{reason}", gpu_name(agent))
}

/// The right that the GPU lacks, where the memory exists.
fn missing_access(agent: AgentHandle, access: &MemoryFault) -> Option<String> {
    let gpu = gpu_of(agent).ok()?;
    let found = allocation_facts(usize::try_from(access.address).ok()?)?;
    Some(match (found.kind, found.access.for_gpu(gpu.number).may_read) {
        (_, true) => "this GPU may only read that memory: hipMemSetAccess has set it so".to_owned(),
        (AllocationKind::Virtual, false) => {
            "this GPU has no access to that memory: hipMemSetAccess (or hipMemPoolSetAccess) gives it".to_owned()
        }
        (_, false) => format!(
            "that is memory of {}, to which this GPU has no access: hipDeviceEnablePeerAccess gives it",
            gpu_name(found.owner())
        ),
    })
}

/// Reports the fault of a dispatch. The status is for the queue's callback; `None`: the program was told of a memory fault.
pub(crate) fn report_fault(
    agent: AgentHandle,
    kernel: Option<&LoadedKernel>,
    fault: &ExecutionFault,
) -> Option<HsaStatus> {
    report_message(&fault_line(agent, kernel, fault));
    if let FaultKind::Memory(access) = &fault.kind {
        memory_fault(agent, access.address, fault_reasons(agent, access));
    }
    callback_status(&fault.kind)
}

/// Reports a copy of memory that the GPU does not see.
pub(crate) fn report_copy_fault(agent: AgentHandle, address: u64) {
    report_message(&format!(
        "a copy by {}: the memory at 0x{address:x} is neither allocated nor locked",
        gpu_name(agent)
    ));
    memory_fault(agent, address, PAGE_NOT_PRESENT);
}

/// The reasons of the event.
fn fault_reasons(agent: AgentHandle, access: &MemoryFault) -> u32 {
    let known = gpu_of(agent).ok().zip(allocation_facts(access.address as usize));
    let may_read = known.is_some_and(|(gpu, found)| found.access.for_gpu(gpu.number).may_read);
    if may_read && access.is_write { READ_ONLY_PAGE } else { PAGE_NOT_PRESENT }
}

/// Tells the program of a memory fault; the process ends if it has registered no handler, as with ROCr.
fn memory_fault(agent: AgentHandle, address: u64, reasons: u32) {
    // Hardware reports pages.
    let page = address & !0xfff;
    let event = MemoryFaultEvent { event_type: MEMORY_FAULT_EVENT, agent, address: page, reasons };
    if !raise_event(&event) {
        let node = gpu_of(agent).map_or(0, |gpu| gpu.number + 1);
        report_message(&format!(
            "Memory access fault by GPU node-{node} (Agent handle: 0x{:x}) on address 0x{page:x}. Reason: Page not present \
             or supervisor privilege.",
            agent.0
        ));
        abort();
    }
}
