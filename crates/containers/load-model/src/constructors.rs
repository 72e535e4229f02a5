//! The registrations that a host program's constructors make: which wrapper, and which kernels of it.
//!
//! clang's constructor calls `__hipRegisterFatBinary(&wrapper)` and then, itself or in a function that it calls,
//! `__hipRegisterFunction(handle, stub, "kernel", "kernel", …)` for each kernel. The arguments are constants, so following the
//! argument registers through straight code suffices. Where a constant is not seen, nothing is concluded.
//!
//! Absent on purpose: AArch64; clang's new driver, whose constructors walk a table of entries, so that the kernels of a wrapper are
//! unknown.

use crate::address_space::{AddressSpace, PointerValue};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConstructedWrapper {
    /// Address of the wrapper.
    pub(crate) wrapper: u64,
    /// Names of the registered kernels in their order.
    pub(crate) kernels: Vec<String>,
}

const REGISTER_BINARY: &str = "__hipRegisterFatBinary";
const REGISTER_KERNEL: &str = "__hipRegisterFunction";
/// A constructor with a hundred thousand kernels has fewer instructions.
const LONGEST: usize = 4_000_000;

/// Every registration, in the order in which the program makes them.
pub(crate) fn registrations_of(space: &AddressSpace<'_>) -> Vec<ConstructedWrapper> {
    let mut reader = ConstructorReader { space, known: BTreeMap::new(), found: Vec::new() };
    if space.machine == object::elf::EM_X86_64 {
        for constructor in space.constructors() {
            reader.known.clear();
            reader.follow_function(constructor, true);
        }
    }
    reader.found
}

struct ConstructorReader<'s, 'a> {
    space: &'s AddressSpace<'a>,
    /// Constants that are known to be in registers.
    known: BTreeMap<Register, u64>,
    found: Vec<ConstructedWrapper>,
}

impl ConstructorReader<'_, '_> {
    /// Reads a function up to its first return or tail call.
    fn follow_function(&mut self, function: u64, is_constructor: bool) {
        let before = self.found.len();
        let mut decoder = Decoder::with_ip(64, self.space.bytes_from(function), function, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        for _ in 0..LONGEST {
            if !decoder.can_decode() {
                return;
            }
            decoder.decode_out(&mut instruction);
            match instruction.flow_control() {
                FlowControl::Return | FlowControl::Exception => return,
                FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => {
                    // A constructor of few kernels may end in a call of the function that registers them.
                    self.visit_call(&instruction, is_constructor && self.found.len() > before);
                    return;
                }
                FlowControl::Call | FlowControl::IndirectCall => {
                    self.visit_call(&instruction, is_constructor && self.found.len() > before);
                    self.known.clear();
                }
                _ => self.track_constants(&instruction),
            }
        }
    }

    fn visit_call(&mut self, instruction: &Instruction, may_enter: bool) {
        match self.callee_of(instruction) {
            Some(RegisteringCallee::Import(name)) if name == REGISTER_BINARY => {
                if let Some(wrapper) = self.known.get(&Register::RDI) {
                    self.found.push(ConstructedWrapper { wrapper: *wrapper, kernels: Vec::new() });
                }
            }
            Some(RegisteringCallee::Import(name)) if name == REGISTER_KERNEL => {
                let name = self.known.get(&Register::RDX).and_then(|address| self.space.text_at(*address));
                if let (Some(current), Some(name)) = (self.found.last_mut(), name) {
                    current.kernels.push(name.to_owned());
                }
            }
            Some(RegisteringCallee::Local(function)) if may_enter => {
                self.known.clear();
                self.follow_function(function, false);
            }
            _ => {}
        }
    }

    fn callee_of(&self, instruction: &Instruction) -> Option<RegisteringCallee> {
        let slot = match instruction.op0_kind() {
            OpKind::NearBranch64 => {
                let target = instruction.near_branch_target();
                match self.stub_slot(target) {
                    Some(slot) => slot,
                    None => return Some(RegisteringCallee::Local(target)),
                }
            }
            OpKind::Memory if instruction.is_ip_rel_memory_operand() => instruction.ip_rel_memory_address(),
            _ => return None,
        };
        match self.space.pointer_at(slot) {
            PointerValue::Import(name) => Some(RegisteringCallee::Import(name)),
            PointerValue::Address(to) => Some(RegisteringCallee::Local(to)),
            _ => None,
        }
    }

    /// The slot that an entry of the procedure linkage table jumps through.
    fn stub_slot(&self, stub: u64) -> Option<u64> {
        let mut decoder = Decoder::with_ip(64, self.space.bytes_from(stub), stub, DecoderOptions::NONE);
        for _ in 0..2 {
            let instruction = decoder.decode();
            if instruction.mnemonic() == Mnemonic::Jmp && instruction.is_ip_rel_memory_operand() {
                return Some(instruction.ip_rel_memory_address());
            }
            if instruction.mnemonic() != Mnemonic::Endbr64 {
                return None;
            }
        }
        None
    }

    /// Constants that an instruction puts into a register.
    fn track_constants(&mut self, instruction: &Instruction) {
        if instruction.op0_kind() != OpKind::Register || instruction.op_count() < 2 {
            return;
        }
        let to = instruction.op0_register().full_register();
        let value = match (instruction.mnemonic(), instruction.op1_kind()) {
            (Mnemonic::Lea, _) if instruction.is_ip_rel_memory_operand() => Some(instruction.ip_rel_memory_address()),
            (Mnemonic::Mov, OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64) => {
                Some(instruction.immediate(1))
            }
            (Mnemonic::Mov, OpKind::Register) => self.known.get(&instruction.op1_register().full_register()).copied(),
            (Mnemonic::Cmp | Mnemonic::Test, _) => return,
            _ => None,
        };
        match value {
            Some(value) => self.known.insert(to, value),
            None => self.known.remove(&to),
        };
    }
}

enum RegisteringCallee {
    Import(String),
    Local(u64),
}
