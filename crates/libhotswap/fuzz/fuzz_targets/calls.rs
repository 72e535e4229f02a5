//! The functions of `hotswap.h`, called as a program in C calls them, with any bytes as a file and as an image.
//!
//! Shared by the fuzz target and by a program with a mutator of its own (`examples/mutate.rs`).
#![allow(missing_docs, unsafe_code, unreachable_pub)]

use hotswap_c::abi::*;
use hotswap_c::{BoundImages, CallStatus, DeviceFile, DeviceImage, LoadedCode, MadeCode};
use std::ffi::{c_char, c_int, c_void};
use std::mem::zeroed;
use std::ptr::{null, null_mut};

const MOST: usize = 24;

/// Every call with these bytes. Only statuses come back, whatever they are.
pub fn every_call(input: &[u8]) {
    let (start, size) = (input.as_ptr().cast::<c_void>(), input.len());
    // SAFETY: each call gets what the header asks for: handles that live, structures with their size, room as stated.
    unsafe {
        let mut file: *mut DeviceFile = null_mut();
        if hotswap_file_from_memory(start, size, &mut file, null_mut()) == CallStatus::Ok {
            whole_file(file);
        }
        hotswap_file_free(file);
        let mut image: *mut DeviceImage = null_mut();
        if hotswap_image_from_memory(start, size, &mut image, null_mut()) == CallStatus::Ok {
            whole_image(image);
        }
        hotswap_image_free(image);
        let mut output: *mut MadeCode = null_mut();
        hotswap_retarget(start, size, c"gfx1031".as_ptr(), 1, &mut output, null_mut());
        hotswap_output_free(output);
    }
}

unsafe fn whole_file(file: *mut DeviceFile) {
    unsafe {
        let mut count = 0;
        hotswap_file_entry_count(file, &mut count, null_mut());
        for entry in 0..count.min(MOST) {
            let mut info: EntryInfo = zeroed();
            info.struct_size = size_of::<EntryInfo>();
            assert_eq!(hotswap_file_entry(file, entry, &mut info, null_mut()), CallStatus::Ok);
            let mut image = null_mut();
            if hotswap_file_image(file, entry, &mut image, null_mut()) == CallStatus::Ok {
                whole_image(image);
            }
            hotswap_image_free(image);
        }
        let mut choice: ChoiceInfo = zeroed();
        choice.struct_size = size_of::<ChoiceInfo>();
        let mut error = null_mut();
        hotswap_file_best_entry(file, c"gfx90a:xnack-".as_ptr(), usize::MAX, 1, &mut choice, &mut error);
        assert_eq!(error.is_null(), hotswap_error_message(error).is_null());
        hotswap_error_free(error);
    }
}

unsafe extern "C" fn visit(instruction: *const InstructionInfo, bytes: *mut c_void) -> c_int {
    unsafe { *bytes.cast::<u64>() += u64::from((*instruction).size) };
    0
}

unsafe fn whole_image(image: *mut DeviceImage) {
    unsafe {
        let mut info: ImageInfo = zeroed();
        info.struct_size = size_of::<ImageInfo>();
        hotswap_image_info_get(image, &mut info, null_mut());
        for number in 0..info.functions.min(MOST) {
            let mut function: FunctionInfo = zeroed();
            function.struct_size = size_of::<FunctionInfo>();
            assert_eq!(hotswap_image_function(image, number, &mut function, null_mut()), CallStatus::Ok);
            let mut bytes = 0_u64;
            let context = (&raw mut bytes).cast();
            hotswap_function_instructions(image, number, Some(visit), context, null_mut());
            let (mut callees, mut count) = ([0_u32; 4], 4);
            hotswap_function_callees(image, number, callees.as_mut_ptr(), &mut count, null_mut());
            assert!(count > 4 || callees[..count].iter().all(|callee| (*callee as usize) < info.functions));
            let (mut name, mut size, mut line) = ([0; 16], 16, 0);
            hotswap_image_source_line(image, function.address, name.as_mut_ptr(), &mut size, &mut line, null_mut());
            let mut found = 0;
            hotswap_image_function_at(image, function.address, &mut found, null_mut(), null_mut());
        }
        for number in 0..info.variables.min(MOST) {
            let mut variable: VariableInfo = zeroed();
            variable.struct_size = size_of::<VariableInfo>();
            assert_eq!(hotswap_image_variable(image, number, &mut variable, null_mut()), CallStatus::Ok);
        }
        for number in 0..info.producers.min(MOST) {
            let mut text = null();
            assert_eq!(hotswap_image_producer(image, number, &mut text, null_mut()), CallStatus::Ok);
        }
        for number in 0..info.kernels.min(MOST) {
            let mut kernel: KernelInfo = zeroed();
            kernel.struct_size = size_of::<KernelInfo>();
            assert_eq!(hotswap_image_kernel(image, number, &mut kernel, null_mut()), CallStatus::Ok);
            assert!(kernel.function < info.functions);
        }
        let mut loaded: *mut LoadedCode = null_mut();
        if hotswap_image_load(image, 0x1000, null(), 0, &mut loaded, null_mut()) == CallStatus::Ok {
            let mut segment: SegmentInfo = zeroed();
            segment.struct_size = size_of::<SegmentInfo>();
            hotswap_loaded_segment(loaded, 0, &mut segment, null_mut());
        }
        hotswap_loaded_free(loaded);
        bound(image);
    }
}

unsafe extern "C" fn define(_: HsaHandle, _: HsaHandle, name: *const c_char, _: *mut c_void) -> c_int {
    c_int::from(name.is_null())
}

/// The image as its own library: it may import what it exports, or nothing.
unsafe fn bound(image: *const DeviceImage) {
    unsafe {
        let mut binding: *mut BoundImages = null_mut();
        if hotswap_binding_check(image, &image, 1, &mut binding, null_mut()) == CallStatus::Ok {
            let mut info: BindingInfo = zeroed();
            info.struct_size = size_of::<BindingInfo>();
            assert_eq!(hotswap_binding_info_get(binding, &mut info, null_mut()), CallStatus::Ok);
            for number in 0..info.budgets.min(MOST) {
                let mut budget: BudgetInfo = zeroed();
                budget.struct_size = size_of::<BudgetInfo>();
                assert_eq!(hotswap_binding_budget(binding, number, &mut budget, null_mut()), CallStatus::Ok);
            }
            let mut output: *mut MadeCode = null_mut();
            hotswap_binding_prepare(binding, &mut output, null_mut());
            hotswap_output_free(output);
            let handle = HsaHandle { handle: 1 };
            let status = hotswap_binding_define(binding, Some(define), handle, handle, &4096, 1, null_mut());
            assert_eq!(status == CallStatus::Ok, info.loadable == 1);
        }
        hotswap_binding_free(binding);
    }
}
