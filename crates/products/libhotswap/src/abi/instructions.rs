//! Instructions with the registers that they read and write.

use super::boundary::{SizedStruct, object_of_handle, run_call};
use crate::call_error::{CallError, CallStatus};
use crate::device_image::DeviceImage;
use crate::instruction_walk::{InstructionView, NamedRegister};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null;

/// A run of registers, `hotswap_register` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct RegisterInfo {
    pub file: u16,
    pub index: u16,
    pub count: u32,
    pub name: *const c_char,
}

/// A decoded instruction, `hotswap_instruction` in C.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header has the meaning of each member")]
pub struct InstructionInfo {
    pub struct_size: usize,
    pub address: u64,
    pub size: u32,
    pub flags: u32,
    pub target: u64,
    pub bytes: *const u8,
    pub text: *const c_char,
    pub mnemonic: *const c_char,
    pub reads: *const RegisterInfo,
    pub n_reads: usize,
    pub writes: *const RegisterInfo,
    pub n_writes: usize,
}

// SAFETY: plain data that begins with its size.
unsafe impl SizedStruct for InstructionInfo {}

/// The caller's function that receives each instruction, `hotswap_instruction_visitor` in C.
pub type InstructionVisitor = Option<unsafe extern "C" fn(*const InstructionInfo, *mut c_void) -> c_int>;

/// Calls a visitor with each instruction of a range.
///
/// # Safety
/// The visitor is a function of that type.
unsafe fn visit(
    image: &DeviceImage,
    section: Option<&str>,
    range: (u64, u64),
    lanes: Option<u8>,
    (visitor, context): (InstructionVisitor, *mut c_void),
) -> Result<(), CallError> {
    let visitor = visitor.ok_or_else(|| CallError::invalid_argument("the callback is null"))?;
    let file = image.bytes();
    image.code_spans()?.walk_range(file, section, range, lanes, &mut |view| {
        let (reads, writes) = (register_rows(view, &view.reads), register_rows(view, &view.writes));
        let info = InstructionInfo {
            struct_size: size_of::<InstructionInfo>(),
            address: view.address,
            size: view.range.len() as u32,
            flags: view.flags,
            target: view.target,
            bytes: file.get(view.range.clone()).map_or(null(), <[u8]>::as_ptr),
            text: text_at(view, 0),
            mnemonic: text_at(view, view.mnemonic),
            reads: reads.as_ptr(),
            n_reads: reads.len(),
            writes: writes.as_ptr(),
            n_writes: writes.len(),
        };
        // SAFETY: the promise of the caller; all pointers in the structure live until the callback returns.
        unsafe { visitor(&raw const info, context) == 0 }
    })
}

fn text_at(view: &InstructionView, offset: usize) -> *const c_char {
    view.texts.get(offset..).map_or(c"".as_ptr(), |text| text.as_ptr().cast())
}

fn register_rows(view: &InstructionView, list: &[NamedRegister]) -> Vec<RegisterInfo> {
    list.iter().map(|one| register_info_row(one, view)).collect()
}

fn register_info_row(one: &NamedRegister, view: &InstructionView) -> RegisterInfo {
    RegisterInfo {
        file: one.reg.file as u16,
        index: one.reg.index,
        count: u32::from(one.reg.count),
        name: text_at(view, one.name),
    }
}

/// Visits the instructions of a function: `hotswap_function_instructions` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_function_instructions(
    image: *const DeviceImage,
    function: usize,
    visitor: InstructionVisitor,
    context: *mut c_void,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let image = object_of_handle(image)?;
            let (row, _) = image.index()?.function_row(function)?;
            let range = (row.address, row.size);
            visit(image, Some(&row.section), range, row.wave_size, (visitor, context))
        })
    }
}

/// Visits the instructions of a run of addresses: `hotswap_image_instructions` in C.
///
/// # Safety
/// The pointers are as the header has them: null, or valid for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotswap_image_instructions(
    image: *const DeviceImage,
    address: u64,
    size: u64,
    visitor: InstructionVisitor,
    context: *mut c_void,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the promises of the caller, which the header states.
    unsafe {
        run_call(error, || {
            let image = object_of_handle(image)?;
            // Where the table of functions cannot be made, the assembler's default counts.
            let index = image.index().ok();
            let function =
                index.and_then(|index| index.function_row(index.function_at(address).ok()?.number as usize).ok());
            let lanes = function.and_then(|(row, _)| row.wave_size);
            visit(image, None, (address, size), lanes, (visitor, context))
        })
    }
}
