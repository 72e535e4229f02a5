//! The functions of `hotswap.h`, called as a program in C calls them, with any bytes as a file, as an image, as an object that a
//! process has loaded, and as a user with its library: two code objects, one after the other.
//!
//! Shared by the fuzz target and by a program with a mutator of its own (`examples/mutate.rs`). A test sees to it that no function
//! is missing.
#![allow(missing_docs, unsafe_code, unreachable_pub)]

use hotswap_c::abi::*;
use hotswap_c::{BoundImages, CallStatus, DeviceFile, DeviceImage, LoadedCode, MadeCode};
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::zeroed;
use std::ptr::{null, null_mut};

const MOST: usize = 24;

/// A structure of the header, with its size set.
macro_rules! sized {
    ($type:ty) => {{
        let mut info: $type = zeroed();
        info.struct_size = size_of::<$type>();
        info
    }};
}

/// Every call with these bytes. Only statuses come back, whatever they are.
pub fn every_call(input: &[u8]) {
    // SAFETY: each call gets what the header asks for: handles that live, structures with their size, room as stated.
    unsafe {
        assert_eq!(hotswap_abi_version(), 0);
        assert!(!hotswap_release().is_null());
        opened(input);
        one_image(input);
        made(input);
        in_process(input);
        let split = second_object(input);
        bound(&input[..split], &input[split..]);
    }
}

/// Where another code object begins; the end where none does.
fn second_object(input: &[u8]) -> usize {
    let starts = input.windows(4).skip(1).position(|bytes| bytes == b"\x7fELF");
    starts.map_or(input.len(), |before| before + 1)
}

unsafe fn opened(input: &[u8]) {
    unsafe {
        let (mut file, mut error): (*mut DeviceFile, _) = (null_mut(), null_mut());
        let status = hotswap_file_from_memory(input.as_ptr().cast(), input.len(), &mut file, &mut error);
        assert_eq!(status == CallStatus::Ok, hotswap_error_message(error).is_null());
        assert_eq!(error.is_null(), hotswap_error_code(error).is_null());
        hotswap_error_free(error);
        if status == CallStatus::Ok {
            whole_file(file);
        }
        hotswap_file_free(hotswap_file_retain(file));
        hotswap_file_free(file);
        // One in eight is enough: it is read by the same code.
        if input.len().is_multiple_of(8) {
            mapped(input, status);
        }
    }
}

/// The same bytes in a file of the file system.
unsafe fn mapped(input: &[u8], from_memory: CallStatus) {
    let path = std::env::temp_dir().join(format!("hotswap-fuzz-{}", std::process::id()));
    std::fs::write(&path, input).expect("the temporary file can be written");
    let text = format!("{}\0", path.display());
    unsafe {
        let mut file: *mut DeviceFile = null_mut();
        let path = CStr::from_bytes_with_nul(text.as_bytes()).expect("it ends with NUL");
        assert_eq!(hotswap_file_open(path.as_ptr(), &mut file, null_mut()), from_memory);
        hotswap_file_free(file);
    }
}

unsafe fn whole_file(file: *mut DeviceFile) {
    unsafe {
        let mut count = 0;
        hotswap_file_entry_count(file, &mut count, null_mut());
        for entry in 0..count.min(MOST) {
            let mut info = sized!(EntryInfo);
            assert_eq!(hotswap_file_entry(file, entry, &mut info, null_mut()), CallStatus::Ok);
            let mut image = null_mut();
            if hotswap_file_image(file, entry, &mut image, null_mut()) == CallStatus::Ok {
                whole_image(image);
            }
            hotswap_image_free(image);
        }
        let mut text = null();
        hotswap_file_problem_count(file, &mut count, null_mut());
        for problem in 0..count.min(MOST) {
            assert_eq!(hotswap_file_problem(file, problem, &mut text, null_mut()), CallStatus::Ok);
        }
        let (mut choice, mut error) = (sized!(ChoiceInfo), null_mut());
        hotswap_file_best_entry(file, c"gfx90a:xnack-".as_ptr(), usize::MAX, 1, &mut choice, &mut error);
        assert_eq!(error.is_null(), hotswap_error_message(error).is_null());
        hotswap_error_free(error);
        let mut output = null_mut();
        hotswap_bytes_for(file, c"gfx1031".as_ptr(), usize::MAX, 5, null_mut(), &mut output, null_mut());
        hotswap_output_free(output);
    }
}

unsafe extern "C" fn ignore_frame(_: *const FrameInfo, _: *mut c_void) -> i32 {
    0
}

unsafe fn one_image(input: &[u8]) {
    unsafe {
        let mut image: *mut DeviceImage = null_mut();
        if hotswap_image_from_memory(input.as_ptr().cast(), input.len(), &mut image, null_mut()) == CallStatus::Ok {
            whole_image(image);
        }
        hotswap_image_free(image);
    }
}

unsafe extern "C" fn visit(instruction: *const InstructionInfo, bytes: *mut c_void) -> c_int {
    unsafe { *bytes.cast::<u64>() += u64::from((*instruction).size) };
    0
}

unsafe fn whole_image(image: *mut DeviceImage) {
    unsafe {
        let (mut start, mut size) = (null(), 0);
        assert_eq!(hotswap_image_bytes(image, &mut start, &mut size, null_mut()), CallStatus::Ok);
        let mut info = sized!(ImageInfo);
        hotswap_image_info_get(image, &mut info, null_mut());
        for number in 0..info.functions.min(MOST) {
            whole_function(image, number, &info);
        }
        for number in 0..info.variables.min(MOST) {
            assert_eq!(hotswap_image_variable(image, number, &mut sized!(VariableInfo), null_mut()), CallStatus::Ok);
        }
        let mut text = null();
        for number in 0..info.producers.min(MOST) {
            assert_eq!(hotswap_image_producer(image, number, &mut text, null_mut()), CallStatus::Ok);
        }
        for number in 0..info.warnings.min(MOST) {
            assert_eq!(hotswap_image_warning(image, number, &mut text, null_mut()), CallStatus::Ok);
        }
        for number in 0..info.kernels.min(MOST) {
            let mut kernel = sized!(KernelInfo);
            assert_eq!(hotswap_image_kernel(image, number, &mut kernel, null_mut()), CallStatus::Ok);
            assert!(kernel.function < info.functions);
            let (mut numbers, mut count) = ([0_u32; 4], 4);
            hotswap_kernel_reachable(image, number, numbers.as_mut_ptr(), &mut count, null_mut());
            assert!(count == kernel.reachable);
        }
        for number in 0..info.imports.min(MOST) {
            whole_import(image, number, info.functions);
        }
        laid_out(image);
    }
}

unsafe fn whole_function(image: *mut DeviceImage, number: usize, info: &ImageInfo) {
    unsafe {
        let mut function = sized!(FunctionInfo);
        assert_eq!(hotswap_image_function(image, number, &mut function, null_mut()), CallStatus::Ok);
        let mut bytes = 0_u64;
        let context = (&raw mut bytes).cast();
        hotswap_function_instructions(image, number, Some(visit), context, null_mut());
        hotswap_image_instructions(image, function.address, 64, Some(visit), context, null_mut());
        let (mut callees, mut count) = ([0_u32; 4], 4);
        hotswap_function_callees(image, number, callees.as_mut_ptr(), &mut count, null_mut());
        assert!(count > 4 || callees[..count].iter().all(|callee| (*callee as usize) < info.functions));
        let (mut unknown, mut count) = ([0_u64; 2], 2);
        hotswap_function_unknown_calls(image, number, unknown.as_mut_ptr(), &mut count, null_mut());
        assert!(count == function.unknown_calls);
        let mut text = null();
        for alias in 0..function.aliases.min(MOST) {
            assert_eq!(hotswap_function_alias(image, number, alias, &mut text, null_mut()), CallStatus::Ok);
        }
        for import in 0..function.imports.min(MOST) {
            assert_eq!(hotswap_function_import(image, number, import, &mut text, null_mut()), CallStatus::Ok);
        }
        let (mut name, mut size, mut line) = ([0; 16], 16, 0);
        hotswap_image_source_line(image, function.address, name.as_mut_ptr(), &mut size, &mut line, null_mut());
        hotswap_image_frames(image, function.address, Some(ignore_frame), null_mut(), null_mut());
        size = name.len();
        hotswap_demangle(function.name, name.as_mut_ptr(), &mut size, null_mut());
        let mut found = 0;
        hotswap_image_function_at(image, function.address, &mut found, null_mut(), null_mut());
        hotswap_image_function_named(image, function.name, &mut found, null_mut());
    }
}

unsafe fn whole_import(image: *mut DeviceImage, number: usize, functions: usize) {
    unsafe {
        let mut import = sized!(ImportInfo);
        assert_eq!(hotswap_image_import(image, number, &mut import, null_mut()), CallStatus::Ok);
        let (mut slots, mut count) = ([0_u64; 2], 2);
        hotswap_import_slots(image, number, slots.as_mut_ptr(), &mut count, null_mut());
        assert!(count == import.slots);
        let (mut users, mut count) = ([0_u32; 2], 2);
        hotswap_import_users(image, number, users.as_mut_ptr(), &mut count, null_mut());
        assert!(count == import.users && users[..count.min(2)].iter().all(|user| (*user as usize) < functions));
    }
}

/// Laid out twice: names that were missing are there at the second time.
unsafe fn laid_out(image: *mut DeviceImage) {
    unsafe {
        let mut externals = Vec::new();
        let mut loaded: *mut LoadedCode = null_mut();
        let mut again: *mut LoadedCode = null_mut();
        if hotswap_image_load(image, 0x1000, null(), 0, &mut loaded, null_mut()) == CallStatus::Ok {
            let mut info = sized!(LoadedInfo);
            assert_eq!(hotswap_loaded_info_get(loaded, &mut info, null_mut()), CallStatus::Ok);
            for segment in 0..info.segments.min(MOST) {
                let mut segment_info = sized!(SegmentInfo);
                assert_eq!(hotswap_loaded_segment(loaded, segment, &mut segment_info, null_mut()), CallStatus::Ok);
            }
            for relocation in 0..info.relocations.min(MOST) {
                let mut row = sized!(RelocationInfo);
                assert_eq!(hotswap_loaded_relocation(loaded, relocation, &mut row, null_mut()), CallStatus::Ok);
            }
            for number in 0..info.undefined {
                let mut name = null();
                assert_eq!(hotswap_loaded_undefined(loaded, number, &mut name, null_mut()), CallStatus::Ok);
                externals.push(ExternalInfo { name, address: 0x7000 });
            }
            hotswap_image_load(image, 0x1000, externals.as_ptr(), externals.len(), &mut again, null_mut());
            hotswap_loaded_free(hotswap_loaded_retain(loaded));
        }
        hotswap_loaded_free(again);
        hotswap_loaded_free(loaded);
    }
}

/// Code for other GPUs.
unsafe fn made(input: &[u8]) {
    let (start, size) = (input.as_ptr().cast::<c_void>(), input.len());
    unsafe {
        let mut outputs: [*mut MadeCode; 2] = [null_mut(); 2];
        hotswap_retarget(start, size, c"gfx1031".as_ptr(), 1, &mut outputs[0], null_mut());
        hotswap_rewrite(start, size, c"gfx1250-strict".as_ptr(), 2, &mut outputs[1], null_mut());
        for output in outputs {
            let (mut bytes, mut count) = (null(), 0);
            hotswap_output_bytes(output, &mut bytes, &mut count, null_mut());
            assert_eq!(output.is_null(), hotswap_output_report(output).is_null());
            hotswap_output_free(output);
        }
    }
}

thread_local! {
    /// The input that `get_info` tells of.
    static LOADED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

unsafe extern "C" fn executables(
    callback: unsafe extern "C" fn(HsaHandle, *mut c_void) -> c_int,
    data: *mut c_void,
) -> c_int {
    unsafe { callback(HsaHandle { handle: 1 }, data) }
}

unsafe extern "C" fn objects(
    executable: HsaHandle,
    callback: unsafe extern "C" fn(HsaHandle, HsaHandle, *mut c_void) -> c_int,
    data: *mut c_void,
) -> c_int {
    unsafe { callback(executable, HsaHandle { handle: 2 }, data) }
}

/// The attributes of `hsa_ven_amd_loader.h`: 5 and 6 are place and size of the bytes, 11 and 12 the URI's.
unsafe extern "C" fn get_info(_: HsaHandle, attribute: c_int, value: *mut c_void) -> c_int {
    let (start, size) = LOADED.get();
    unsafe {
        match attribute {
            5 => *value.cast::<u64>() = start,
            6 => *value.cast::<u64>() = size,
            11 => *value.cast::<u32>() = (size % 9) as u32,
            12 => std::ptr::write_bytes(value.cast::<u8>(), b'u', (size % 9) as usize),
            _ => return 0x1001,
        }
    }
    0
}

unsafe extern "C" fn visit_object(object: *const ProcessObject, kept: *mut c_void) -> c_int {
    unsafe {
        let kept = &mut *kept.cast::<*mut DeviceImage>();
        *kept = hotswap_image_retain((*object).image);
    }
    0
}

/// An object that the process has loaded.
unsafe fn in_process(input: &[u8]) {
    LOADED.set((input.as_ptr() as u64, input.len() as u64));
    let loader = HsaLoader {
        struct_size: size_of::<HsaLoader>(),
        iterate_executables: Some(executables),
        iterate_objects: Some(objects),
        get_info: Some(get_info),
    };
    unsafe {
        let mut kept: *mut DeviceImage = null_mut();
        let context = (&raw mut kept).cast();
        assert_eq!(hotswap_process_iterate(&loader, Some(visit_object), context, null_mut()), CallStatus::Ok);
        let mut info = sized!(ImageInfo);
        assert!(kept.is_null() || hotswap_image_info_get(kept, &mut info, null_mut()) != CallStatus::InvalidArgument);
        hotswap_image_free(kept);
    }
}

unsafe extern "C" fn define(_: HsaHandle, _: HsaHandle, name: *const c_char, _: *mut c_void) -> c_int {
    c_int::from(name.is_null())
}

/// A user and its library; both are the same where the input is one code object.
unsafe fn bound(user: &[u8], library: &[u8]) {
    unsafe {
        let image = |bytes: &[u8]| {
            let mut image: *mut DeviceImage = null_mut();
            hotswap_image_from_memory(bytes.as_ptr().cast(), bytes.len(), &mut image, null_mut());
            image
        };
        let (one, other) = (image(user), image(if library.is_empty() { user } else { library }));
        for (user, libraries) in [(one, vec![other]), (other, vec![one, other]), (one, vec![])] {
            let mut binding: *mut BoundImages = null_mut();
            let libraries: Vec<*const DeviceImage> = libraries.into_iter().map(<*mut _>::cast_const).collect();
            let count = libraries.len();
            if hotswap_binding_check(user, libraries.as_ptr(), count, &mut binding, null_mut()) == CallStatus::Ok {
                whole_binding(binding, count);
            }
            hotswap_binding_free(binding);
        }
        hotswap_image_free(one);
        hotswap_image_free(other);
    }
}

unsafe fn whole_binding(binding: *mut BoundImages, libraries: usize) {
    unsafe {
        let mut info = sized!(BindingInfo);
        assert_eq!(hotswap_binding_info_get(binding, &mut info, null_mut()), CallStatus::Ok);
        for number in 0..info.imports.min(MOST) {
            let mut import = sized!(BoundImportInfo);
            assert_eq!(hotswap_binding_import(binding, number, &mut import, null_mut()), CallStatus::Ok);
            assert!(import.library < libraries);
        }
        for number in 0..info.budgets.min(MOST) {
            let mut budget = sized!(BudgetInfo);
            assert_eq!(hotswap_binding_budget(binding, number, &mut budget, null_mut()), CallStatus::Ok);
        }
        for number in 0..info.problems.min(MOST) {
            let mut text = null();
            assert_eq!(hotswap_binding_problem(binding, number, &mut text, null_mut()), CallStatus::Ok);
        }
        let mut output: *mut MadeCode = null_mut();
        hotswap_binding_prepare(binding, &mut output, null_mut());
        hotswap_output_free(output);
        let (handle, deltas) = (HsaHandle { handle: 1 }, [4096; 2]);
        let status =
            hotswap_binding_define(binding, Some(define), handle, handle, deltas.as_ptr(), libraries, null_mut());
        assert_eq!(status == CallStatus::Ok, info.loadable == 1);
        hotswap_binding_free(hotswap_binding_retain(binding));
    }
}
