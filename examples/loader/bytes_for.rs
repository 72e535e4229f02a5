//! bytes_for FILE GPU OUT: writes the code object that a GPU loads from the first container of a file with code for it.
//!
//! rustc --edition 2024 bytes_for.rs -L LIBDIR -C link-arg=-Wl,-rpath,LIBDIR

use std::ffi::{CStr, CString, OsString, c_char, c_void};
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;
use std::ptr::{null, null_mut};

#[repr(C)]
struct Choice {
    struct_size: usize,
    entry: usize,
    route: u32,
    reserved: u32,
    source: *const c_char,
    rule: *const c_char,
}

#[link(name = "hotswap")]
unsafe extern "C" {
    fn hotswap_file_open(path: *const c_char, file: *mut *mut c_void, error: *mut *mut c_void) -> i32;
    fn hotswap_file_free(file: *mut c_void);
    fn hotswap_bytes_for(
        file: *const c_void,
        isa: *const c_char,
        container: usize,
        flags: u32,
        choice: *mut Choice,
        output: *mut *mut c_void,
        error: *mut *mut c_void,
    ) -> i32;
    fn hotswap_output_bytes(
        output: *const c_void,
        bytes: *mut *const c_void,
        size: *mut usize,
        error: *mut *mut c_void,
    ) -> i32;
    fn hotswap_output_free(output: *mut c_void);
    fn hotswap_error_message(error: *const c_void) -> *const c_char;
    fn hotswap_error_free(error: *mut c_void);
}

/// The message of a call that failed.
fn checked(status: i32, error: *mut c_void) -> Result<(), String> {
    if status == 0 {
        return Ok(());
    }
    // SAFETY: the error is that of the call, and is freed once.
    unsafe {
        let message = CStr::from_ptr(hotswap_error_message(error)).to_string_lossy().into_owned();
        hotswap_error_free(error);
        Err(message)
    }
}

/// The bytes, and the sentence that says how they were chosen.
struct LoadableCode {
    bytes: Vec<u8>,
    rule: String,
}

fn code_for(path: &CStr, gpu: &CStr) -> Result<LoadableCode, String> {
    let (mut file, mut output, mut error) = (null_mut(), null_mut(), null_mut());
    let (mut start, mut size) = (null(), 0);
    let mut choice =
        Choice { struct_size: size_of::<Choice>(), entry: 0, route: 0, reserved: 0, source: null(), rule: null() };
    // SAFETY: texts end with NUL, the structure states its size, handles are used only after success; texts live as long as the file.
    unsafe {
        checked(hotswap_file_open(path.as_ptr(), &mut file, &mut error), error)?;
        let status =
            hotswap_bytes_for(file, gpu.as_ptr(), usize::MAX, 0, &mut choice, &mut output, &mut error);
        let made = checked(status, error).and_then(|()| {
            checked(hotswap_output_bytes(output, &mut start, &mut size, &mut error), error)?;
            let bytes = std::slice::from_raw_parts(start.cast::<u8>(), size).to_vec();
            Ok(LoadableCode { bytes, rule: CStr::from_ptr(choice.rule).to_string_lossy().into_owned() })
        });
        hotswap_output_free(output);
        hotswap_file_free(file);
        made
    }
}

fn run(words: &[OsString]) -> Result<String, String> {
    let [path, gpu, out] = words else { return Err("usage: bytes_for FILE GPU OUT".to_owned()) };
    let c_text = |word: &OsString| CString::new(word.clone().into_vec()).map_err(|error| error.to_string());
    let code = code_for(&c_text(path)?, &c_text(gpu)?)?;
    std::fs::write(out, code.bytes).map_err(|error| error.to_string())?;
    Ok(code.rule)
}

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    match run(&words) {
        Ok(rule) => {
            println!("{rule}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
