//! LDS of functions: a compiler gives a kernel the LDS of the functions that it sees, and these functions use it at fixed places.
//! A kernel that was compiled apart from such a function allocates nothing for it.
//!
//! Evidence: a function that accesses LDS needs at most what each kernel has that reaches it in the object it was compiled in;
//! the smallest of these counts. A function without such a kernel has a trap instead of the address.
//!
//! Absent on purpose: LDS that is laid out again, which would change the code of functions.

use hotswap_device_symbols::{Function, FunctionKind, SymbolTable};
use hotswap_isa::effects::Space;
use hotswap_isa::{Inst, Isa, Name};
use hotswap_report::{Diagnostic, codes};
use std::collections::HashMap;

/// LDS of a function that was compiled for kernels of its own object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FunctionLds {
    pub(crate) bytes: u64,
    /// The object that it was compiled in.
    pub(crate) object: String,
    /// The kernels of that object.
    pub(crate) kernels: Vec<String>,
}

/// Whether code accesses LDS.
pub(crate) fn accesses_lds(mut code: impl Iterator<Item = Inst>) -> bool {
    code.any(|inst| is_lds_access(&inst))
}

/// `ds_bpermute`, `ds_permute` and `ds_swizzle` exchange values between lanes by the hardware of LDS and use no memory of it:
/// LLVM marks them neither as loads nor as stores.
fn is_lds_access(inst: &Inst) -> bool {
    inst.memory_access().is_some_and(|access| access.space == Space::Lds && (access.load || access.store))
}

/// Whether code has the trap that stands for the address of LDS which is not laid out: the access follows it at once, where an
/// assertion ends. On GFX11 the trap is elsewhere, behind a branch that lanes always take.
pub(crate) fn has_lds_trap(bytes: &[u8], isa: Isa) -> bool {
    let (mut at, mut behind) = (0, false);
    while let Ok(inst) = isa.decode(bytes.get(at..).unwrap_or_default()) {
        if behind && is_lds_access(&inst) {
            return true;
        }
        at += usize::from(inst.len());
        let leaves = inst.mnemonic().contains("branch")
            || inst.mnemonic().contains("set_pc")
            || inst.mnemonic().contains("setpc");
        behind = is_trap(&inst)
            || leads_to_trap(&inst, bytes, at, isa)
            || (behind && !leaves && inst.mnemonic() != "s_endpgm");
    }
    false
}

fn is_trap(inst: &Inst) -> bool {
    inst.mnemonic() == "s_trap" && inst.raw(Name::Simm16) == Some(2)
}

/// Whether `inst`, which ends at `at`, branches to a trap.
fn leads_to_trap(inst: &Inst, bytes: &[u8], at: usize, isa: Isa) -> bool {
    let distance = inst.raw(Name::Simm16).map(|raw| isize::from(raw as u16 as i16) * 4);
    let target = distance.and_then(|distance| at.checked_add_signed(distance));
    let rest = target.filter(|_| inst.mnemonic() == "s_cbranch_execnz").and_then(|target| bytes.get(target..));
    rest.and_then(|rest| isa.decode(rest).ok()).is_some_and(|inst| is_trap(&inst))
}

/// The LDS of a function of an object.
pub(crate) struct ObjectLds {
    /// Number of the function in the object's table.
    pub(crate) function: usize,
    pub(crate) lds: FunctionLds,
}

/// The LDS of the functions of an object by their numbers in its table; `accesses` tells which ones access LDS.
pub(crate) fn functions_with_lds(
    name: &str,
    table: &SymbolTable,
    accesses: impl Fn(&Function) -> bool,
) -> Vec<ObjectLds> {
    let mut found = Vec::new();
    let functions = (0..table.functions.len()).filter(|one| table.functions[*one].kind == FunctionKind::Function);
    for number in functions {
        let users: Vec<_> =
            table.kernels.iter().filter(|kernel| kernel.reachable.binary_search(&(number as u32)).is_ok()).collect();
        let least = users.iter().filter_map(|kernel| table.functions[kernel.function as usize].total.lds.value).min();
        if let Some(bytes) = least.filter(|bytes| *bytes > 0 && accesses(&table.functions[number])) {
            let kernels = table.kernels.iter().map(|kernel| table.functions[kernel.function as usize].name.clone());
            let kernels = kernels.collect();
            let lds = FunctionLds { bytes, object: name.to_owned(), kernels };
            found.push(ObjectLds { function: number, lds });
        }
    }
    found
}

/// Kernels with LDS of their own, and functions with LDS that were compiled apart from them. `declared` has the LDS of
/// kernels by their functions' numbers.
pub(crate) fn lds_overlaps(
    table: &SymbolTable,
    lds: &[Option<FunctionLds>],
    declared: &HashMap<u32, u64>,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for kernel in &table.kernels {
        let own = &table.functions[kernel.function as usize];
        let has = declared.get(&kernel.function).copied().unwrap_or(0);
        let other = kernel.reachable.iter().find_map(|number| {
            let lds = lds.get(*number as usize)?.as_ref()?;
            (!lds.kernels.contains(&own.name) && has >= lds.bytes).then_some((*number as usize, lds))
        });
        if let Some((number, lds)) = other {
            let what = format!(
                "kernel `{}` has {has} bytes of LDS, and `{}`, which it reaches, was compiled apart from it ({}) with up to {}: both may use the same bytes",
                own.name, table.functions[number].name, lds.object, lds.bytes
            );
            found.push(
                Diagnostic::warning(codes::CONVENTION_MIX, what)
                    .advise("pass LDS to functions by pointers, or link the device code by LTO"),
            );
        }
    }
    found
}

/// Kernels that reach a function with a trap for LDS.
pub(crate) fn kernels_that_trap(table: &SymbolTable, traps: impl Fn(usize) -> bool) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (number, function) in table.functions.iter().enumerate().filter(|(_, one)| one.kind == FunctionKind::Function) {
        let Some(kernel) = table.kernels.iter().find(|kernel| kernel.reachable.binary_search(&(number as u32)).is_ok())
        else {
            continue;
        };
        if traps(number) {
            let what = format!(
                "`{}`, which kernel `{}` reaches, uses LDS that no kernel of its object has: the compiler put a trap there",
                function.name, table.functions[kernel.function as usize].name
            );
            found.push(
                Diagnostic::error(codes::CONVENTION_MIX, what)
                    .advise("pass LDS to functions by pointers, or link the device code by LTO"),
            );
        }
    }
    found
}
