//! Whether the comgr that HIP would load compiles SPIR-V: the code of `--offload-arch=amdgcnspirv`.
//!
//! Many distributions build comgr without the translator, and HIP 7.2 ends programs whose only code is SPIR-V by a segmentation
//! fault then, without a word. The library itself is asked, by the action that HIP would use, on no input: without the
//! translator it refuses that, too, and its log says why.
//!
//! Invariant: the library is loaded by a process of its own (`hotswap ask-comgr`, which help does not show): it brings LLVM with
//! it, may crash, and is searched for like HIP does it, with the library path of the program.
//!
//! Absent on purpose: whether a module of SPIR-V is valid.
#![allow(unsafe_code, reason = "a library is loaded and called, each call with its proof")]

use crate::probe;
use hotswap_files::ScratchDirectory;
use hotswap_report::{Diagnostic, codes};
use libc::{RTLD_LOCAL, RTLD_NOW, c_char, c_int, c_void};
use std::ffi::{CStr, CString, OsStr};
use std::path::Path;
use std::process::Command;
use std::ptr::null_mut;
use std::time::Duration;

/// The hidden command that asks.
pub const ASK_COMGR: &str = "ask-comgr";

/// Loading LLVM takes tenths of a second.
const LIMIT: Duration = Duration::from_secs(20);

/// The names by which HIP loads it, the newest first (`hip_comgr_helper.cpp` of CLR).
const LIBRARIES: &[&CStr] = &[c"libamd_comgr.so.3", c"libamd_comgr.so.2"];

/// The answer about SPIR-V.
#[derive(Debug, PartialEq, Eq)]
pub enum SpirvSupport {
    Compiled,
    /// With the reason in comgr's own words.
    Refused(String),
    /// There is no comgr, or it did not answer.
    Unknown,
}

const COMPILED: &str = "compiled";
const REFUSED: &str = "refused ";

/// The answer of the comgr that a program with this library path finds. `library` names one file instead.
///
/// # Errors
/// The system's, if this program cannot be started again.
pub fn spirv_support(search: Option<&OsStr>, library: Option<&Path>) -> Result<SpirvSupport, Diagnostic> {
    let scratch = ScratchDirectory::temporary("hotswap-comgr-")?;
    let own = std::env::current_exe().map_err(|error| Diagnostic::error(codes::CANNOT_READ, error.to_string()))?;
    let mut command = Command::new(own);
    command.arg(ASK_COMGR).args(library).env_remove("LD_PRELOAD");
    if let Some(search) = search {
        command.env("LD_LIBRARY_PATH", search);
    }
    let answer = probe::run_for(scratch.path(), command, LIMIT)?;
    Ok(if answer.success { read_answer(answer.stdout.trim()) } else { SpirvSupport::Unknown })
}

fn read_answer(line: &str) -> SpirvSupport {
    match line.strip_prefix(REFUSED) {
        Some(reason) => SpirvSupport::Refused(reason.to_owned()),
        None if line == COMPILED => SpirvSupport::Compiled,
        None => SpirvSupport::Unknown,
    }
}

/// Loads comgr and asks it; the line to print.
pub fn ask_loaded_comgr(library: Option<&Path>) -> String {
    let names: Vec<CString> = match library {
        Some(path) => CString::new(path.as_os_str().as_encoded_bytes()).into_iter().collect(),
        None => LIBRARIES.iter().map(|name| (*name).to_owned()).collect(),
    };
    match names.iter().find_map(|name| Comgr::load(name)).map(|comgr| comgr.translate_nothing()) {
        None => "absent\n".to_owned(),
        Some(None) => format!("{COMPILED}\n"),
        Some(Some(log)) => format!("{REFUSED}{}\n", log.split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}

/// `amd_comgr_data_set_t`, `amd_comgr_action_info_t` and `amd_comgr_data_t`: structs of one 64-bit handle.
type Handle = u64;
type Create = unsafe extern "C" fn(*mut Handle) -> c_int;
type DoAction = unsafe extern "C" fn(c_int, Handle, Handle, Handle) -> c_int;
type SetLogging = unsafe extern "C" fn(Handle, bool) -> c_int;
type GetOutput = unsafe extern "C" fn(Handle, c_int, usize, *mut Handle) -> c_int;
type GetBytes = unsafe extern "C" fn(Handle, *mut usize, *mut c_char) -> c_int;

/// `AMD_COMGR_ACTION_TRANSLATE_SPIRV_TO_BC` and `AMD_COMGR_DATA_KIND_LOG` of amd_comgr.h.
const TRANSLATE_SPIRV: c_int = 0x13;
const LOG: c_int = 5;
const SUCCESS: c_int = 0;

/// The functions that are called.
struct Comgr {
    create_data_set: Create,
    create_action_info: Create,
    set_logging: SetLogging,
    do_action: DoAction,
    get_output: GetOutput,
    get_bytes: GetBytes,
}

impl Comgr {
    fn load(name: &CStr) -> Option<Self> {
        // SAFETY: the name ends with NUL. Constructors of the library run in a process that does nothing else.
        let library = unsafe { libc::dlopen(name.as_ptr(), RTLD_NOW | RTLD_LOCAL) };
        if library.is_null() {
            return None;
        }
        // SAFETY: each symbol has the type of its declaration in amd_comgr.h, unchanged since version 2.
        unsafe {
            Some(Self {
                create_data_set: find_function(library, c"amd_comgr_create_data_set")?,
                create_action_info: find_function(library, c"amd_comgr_create_action_info")?,
                set_logging: find_function(library, c"amd_comgr_action_info_set_logging")?,
                do_action: find_function(library, c"amd_comgr_do_action")?,
                get_output: find_function(library, c"amd_comgr_action_data_get_data")?,
                get_bytes: find_function(library, c"amd_comgr_get_data")?,
            })
        }
    }

    /// Translates an empty set: nothing if that is possible, else the log.
    fn translate_nothing(&self) -> Option<String> {
        let (mut input, mut output, mut action) = (0, 0, 0);
        // SAFETY: the pointers are to handles that live here, and handles are used only after they were made.
        unsafe {
            let is_ready = (self.create_data_set)(&raw mut input) == SUCCESS
                && (self.create_data_set)(&raw mut output) == SUCCESS
                && (self.create_action_info)(&raw mut action) == SUCCESS
                && (self.set_logging)(action, true) == SUCCESS;
            if !is_ready {
                return Some("it makes no data sets".to_owned());
            }
            if (self.do_action)(TRANSLATE_SPIRV, action, input, output) == SUCCESS {
                return None;
            }
        }
        Some(self.log_of(output).unwrap_or_else(|| "it gives no reason".to_owned()))
    }

    fn log_of(&self, output: Handle) -> Option<String> {
        let (mut log, mut size) = (0, 0);
        // SAFETY: as above; without a buffer the call gives the size.
        let is_known = unsafe {
            (self.get_output)(output, LOG, 0, &raw mut log) == SUCCESS
                && (self.get_bytes)(log, &raw mut size, null_mut()) == SUCCESS
        };
        let mut bytes = vec![0u8; if is_known { size } else { return None }];
        // SAFETY: the buffer has that size.
        let status = unsafe { (self.get_bytes)(log, &raw mut size, bytes.as_mut_ptr().cast()) };
        (status == SUCCESS && !bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// A function of a loaded library.
///
/// # Safety
/// `F` is a pointer to a function, of the type that the library declares.
unsafe fn find_function<F: Copy>(library: *mut c_void, name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the library is loaded and is never unloaded; the name ends with NUL.
    let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
    // SAFETY: both have the same size, and the caller vouches for the type.
    (!symbol.is_null()).then(|| unsafe { std::mem::transmute_copy::<*mut c_void, F>(&symbol) })
}
