//! The interface to HSA: the functions of a runtime that the program loaded and initialised itself.
//!
//! Never initialises HSA: a runtime that is not up has nothing to drain. Values and layouts are those of `hsa.h`
//! and `hsa_ven_amd_loader.h`, which are stable interfaces. `iterate_executables` is not used, because it holds
//! the loader's lock during its callbacks, and a copy may need that lock.
#![allow(unsafe_code)] // calls through pointers of dlsym, each with its proof

use crate::bytes::put;
use crate::capture::DeviceReader;
use crate::libc::pause;
use crate::loader::LoadedLibrary;
use crate::memory::Bytes;
use crate::text::Text;
use core::ffi::{CStr, c_char, c_void};
use core::mem::transmute;

type HsaStatus = u32;
type GetInfo = unsafe extern "C" fn(u32, *mut [u8; 256]) -> HsaStatus;
type NoWords = unsafe extern "C" fn() -> HsaStatus;
type GetTable = unsafe extern "C" fn(u16, u16, usize, *mut [usize; 2]) -> HsaStatus;
type Copy = unsafe extern "C" fn(*mut u8, *const u8, usize) -> HsaStatus;
type AgentInfo = unsafe extern "C" fn(u64, u32, *mut [u8; 256]) -> HsaStatus;
type GetSymbol = unsafe extern "C" fn(u64, *const c_char, *const u64, *mut u64) -> HsaStatus;
type SymbolInfo = unsafe extern "C" fn(u64, u32, *mut [u8; 256]) -> HsaStatus;
type Visit = unsafe extern "C" fn(u64, *mut c_void) -> HsaStatus;
type Iterate = unsafe extern "C" fn(Visit, *mut c_void) -> HsaStatus;
type Descriptors = unsafe extern "C" fn(*mut u8, *mut usize) -> HsaStatus;

const SUCCESS: HsaStatus = 0;
const NOT_INITIALIZED: HsaStatus = 0x100b;
const INCOMPATIBLE_ARGUMENTS: HsaStatus = 0x100d;
const INVALID_ARGUMENT: HsaStatus = 0x1001;
const SYSTEM_INFO_VERSION_MAJOR: u32 = 0;
const AGENT_INFO_NAME: u32 = 0;
const AGENT_INFO_NODE: u32 = 16;
const AGENT_INFO_DEVICE: u32 = 17;
const DEVICE_TYPE_GPU: u64 = 1;
const EXTENSION_AMD_LOADER: u16 = 0x201;
const SYMBOL_INFO_VARIABLE_SIZE: u32 = 9;
const SYMBOL_INFO_VARIABLE_ADDRESS: u32 = 21;
/// Size of a segment descriptor.
const DESCRIPTOR: usize = 64;
/// Other threads may load code between counting and reading; then it is repeated.
const ATTEMPTS: u32 = 20;

/// The reason why HSA cannot be queried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HsaRefusal {
    /// The program lacks HSA, or did not initialise it, or shut it down: nothing is loaded.
    NotUp,
    /// The runtime lacks this function.
    Function(&'static CStr),
    Failed(&'static CStr, u32),
}

impl HsaRefusal {
    /// The text for a message.
    pub fn describe<const N: usize>(self, text: &mut Text<N>) {
        match self {
            Self::NotUp => text.push(b"HSA is not initialised"),
            Self::Function(name) => text.push(b"libhsa-runtime64 has no ").push(name.to_bytes()),
            Self::Failed(name, status) => {
                text.push(name.to_bytes()).push(b" failed with status 0x").hex(u64::from(status), 0)
            }
        };
    }
}

/// A runtime that is initialised, and stays so while this lives.
pub struct Hsa {
    shut_down: NoWords,
    copy: Copy,
    agent_info: AgentInfo,
    get_symbol: Option<GetSymbol>,
    symbol_info: Option<SymbolInfo>,
    descriptors: Descriptors,
    iterate: Option<Iterate>,
    _library: LoadedLibrary,
}

/// The memory that holds the file of a code object.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileRange {
    pub start: usize,
    pub size: u64,
}

/// A loaded segment: since code objects of version 2, all of one code object.
#[derive(Debug, Clone, Copy)]
pub struct LoadedSegment {
    /// Handle of the GPU.
    pub agent: u64,
    /// Handle of the executable.
    pub executable: u64,
    /// The file in memory, if its place is known.
    pub file: Option<FileRange>,
    /// The load address of the code object's address 0.
    pub base: u64,
    /// Bytes of its memory.
    pub size: u64,
}

#[derive(Debug, Clone, Copy)]
pub struct Agent {
    /// Its processor, for example `gfx90a`, padded with zeros.
    pub processor: [u8; 64],
    /// The number of its node.
    pub node: u32,
}

/// Converts a symbol to a function pointer.
macro_rules! function {
    ($library:expr, $name:literal, $type:ty) => {{
        let symbol = $library.symbol($name);
        // SAFETY: a symbol of this name in libhsa-runtime64 is a function of this type; null becomes `None`.
        unsafe { transmute::<*mut c_void, Option<$type>>(symbol) }.ok_or(HsaRefusal::Function($name))
    }};
}

fn is_up(library: &LoadedLibrary) -> Result<(), HsaRefusal> {
    let get_info = function!(library, c"hsa_system_get_info", GetInfo)?;
    let mut value = [0; 256];
    // SAFETY: the value has two bytes; the call is allowed, and returns an error, when HSA is not initialised.
    match unsafe { get_info(SYSTEM_INFO_VERSION_MAJOR, &mut value) } {
        SUCCESS => Ok(()),
        NOT_INITIALIZED => Err(HsaRefusal::NotUp),
        status => Err(HsaRefusal::Failed(c"hsa_system_get_info", status)),
    }
}

fn library() -> Option<LoadedLibrary> {
    LoadedLibrary::find(b"libhsa-runtime64.so")
}

/// Whether the program has loaded HSA, initialised or not.
pub fn is_loaded() -> bool {
    library().is_some()
}

/// Whether HSA is initialised.
pub fn is_initialised() -> bool {
    library().is_some_and(|library| is_up(&library).is_ok())
}

impl Hsa {
    /// The program's runtime, if it is initialised.
    pub fn find() -> Result<Self, HsaRefusal> {
        let library = library().ok_or(HsaRefusal::NotUp)?;
        is_up(&library)?;
        let get_table = function!(library, c"hsa_system_get_major_extension_table", GetTable)?;
        let copy = function!(library, c"hsa_memory_copy", Copy)?;
        let agent_info = function!(library, c"hsa_agent_get_info", AgentInfo)?;
        let get_symbol = function!(library, c"hsa_executable_get_symbol_by_name", GetSymbol).ok();
        let symbol_info = function!(library, c"hsa_executable_symbol_get_info", SymbolInfo).ok();
        let iterate = function!(library, c"hsa_iterate_agents", Iterate).ok();
        let shut_down = function!(library, c"hsa_shut_down", NoWords)?;
        let init = function!(library, c"hsa_init", NoWords)?;
        let mut table = [0usize; 2];
        // SAFETY: the size is that of the table; only the first two functions are requested.
        let status = unsafe { get_table(EXTENSION_AMD_LOADER, 1, size_of_val(&table), &mut table) };
        check(c"hsa_system_get_major_extension_table", status)?;
        // SAFETY: the second entry is `query_segment_descriptors`; zero becomes `None`.
        let descriptors = unsafe { transmute::<usize, Option<Descriptors>>(table[1]) };
        let descriptors = descriptors.ok_or(HsaRefusal::Function(c"query_segment_descriptors"))?;
        // SAFETY: HSA is initialised, so this only adds one more user; `drop` removes it.
        check(c"hsa_init", unsafe { init() })?;
        Ok(Self { shut_down, copy, agent_info, get_symbol, symbol_info, descriptors, iterate, _library: library })
    }

    /// All loaded segments of all GPUs.
    pub fn segments(&self) -> Result<Segments, HsaRefusal> {
        const NAME: &CStr = c"query_segment_descriptors";
        let mut status = SUCCESS;
        for attempt in 0..ATTEMPTS {
            let mut count = 0;
            // SAFETY: without a place, the function counts.
            check(NAME, unsafe { (self.descriptors)(core::ptr::null_mut(), &mut count) })?;
            let size = count.saturating_mul(DESCRIPTOR);
            let mut bytes = Bytes::zeroed(size).ok_or(HsaRefusal::Failed(NAME, 0x1008))?;
            if count == 0 {
                return Ok(Segments { bytes });
            }
            // SAFETY: there is room for `count` descriptors of 64 bytes; calloc aligns them.
            status = unsafe { (self.descriptors)(bytes.as_mut_ptr(), &mut count) };
            bytes.truncate(count.saturating_mul(DESCRIPTOR));
            match status {
                SUCCESS => return Ok(Segments { bytes }),
                INCOMPATIBLE_ARGUMENTS | INVALID_ARGUMENT => pause(if attempt < 4 { 0 } else { 500 }),
                _ => break,
            }
        }
        Err(HsaRefusal::Failed(NAME, status))
    }

    /// The properties of an agent; `None` if it is not a GPU.
    pub fn agent(&self, agent: u64) -> Result<Option<Agent>, HsaRefusal> {
        let device = self.agent_value(agent, AGENT_INFO_DEVICE)?;
        if crate::bytes::word::<4>(&device, 0) != DEVICE_TYPE_GPU {
            return Ok(None);
        }
        let name = self.agent_value(agent, AGENT_INFO_NAME)?;
        let node = match self.agent_value(agent, AGENT_INFO_NODE) {
            Ok(node) => crate::bytes::word::<4>(&node, 0) as u32,
            Err(refusal) => self.number(agent).ok_or(refusal)?,
        };
        let mut made = Agent { processor: [0; 64], node };
        let _ = put(&mut made.processor, 0, name.get(..63).unwrap_or_default());
        Ok(Some(made))
    }

    /// The number of an agent among all, which is that of its node wherever each node has one agent.
    fn number(&self, agent: u64) -> Option<u32> {
        unsafe extern "C" fn visit(agent: u64, search: *mut c_void) -> HsaStatus {
            // SAFETY: `number` passes its own search, and waits for the end of the calls.
            let search = unsafe { &mut *search.cast::<(u64, u32, bool)>() };
            search.2 |= search.0 == agent;
            search.1 += u32::from(!search.2);
            SUCCESS
        }
        let mut search = (agent, 0u32, false);
        // SAFETY: HSA calls the visitor for each agent before it returns.
        let status = unsafe { (self.iterate?)(visit, (&raw mut search).cast()) };
        (status == SUCCESS && search.2).then_some(search.1)
    }

    fn agent_value(&self, agent: u64, what: u32) -> Result<[u8; 256], HsaRefusal> {
        let mut value = [0; 256];
        // SAFETY: HSA returned the handle; no value that we query is longer than 64 bytes.
        check(c"hsa_agent_get_info", unsafe { (self.agent_info)(agent, what, &mut value) })?;
        Ok(value)
    }

    /// Address of a variable of this size in an executable.
    pub fn variable(&self, executable: u64, agent: u64, name: &CStr, size: u64) -> Option<u64> {
        let (get_symbol, symbol_info) = (self.get_symbol?, self.symbol_info?);
        let mut symbol = 0;
        // SAFETY: HSA returned both handles, and the name ends with zero.
        if unsafe { get_symbol(executable, name.as_ptr(), &agent, &mut symbol) } != SUCCESS {
            return None;
        }
        let (mut own, mut address) = ([0; 256], [0; 256]);
        // SAFETY: a symbol that HSA just returned; the values have four and eight bytes.
        let known = unsafe {
            symbol_info(symbol, SYMBOL_INFO_VARIABLE_SIZE, &mut own) == SUCCESS
                && symbol_info(symbol, SYMBOL_INFO_VARIABLE_ADDRESS, &mut address) == SUCCESS
        };
        if !known {
            return None;
        }
        let (own, address) = (crate::bytes::word::<4>(&own, 0), crate::bytes::word::<8>(&address, 0));
        (own == size && address != 0).then_some(address)
    }
}

fn check(name: &'static CStr, status: HsaStatus) -> Result<(), HsaRefusal> {
    if status == SUCCESS { Ok(()) } else { Err(HsaRefusal::Failed(name, status)) }
}

impl DeviceReader for Hsa {
    fn copy(&self, address: u64, into: &mut [u8]) -> Result<(), u32> {
        if into.is_empty() {
            return Ok(());
        }
        // SAFETY: the destination is a slice of this size; HSA looks the other address up and never follows it here.
        match unsafe { (self.copy)(into.as_mut_ptr(), address as *const u8, into.len()) } {
            SUCCESS => Ok(()),
            status => Err(status),
        }
    }
}

impl Drop for Hsa {
    fn drop(&mut self) {
        // SAFETY: undoes our `hsa_init`. Nothing can be done about a failure.
        unsafe { (self.shut_down)() };
    }
}

/// Segment descriptors as HSA wrote them.
pub struct Segments {
    bytes: Bytes,
}

impl Segments {
    pub fn iter(&self) -> impl Iterator<Item = LoadedSegment> + '_ {
        use crate::bytes::word;
        const STORAGE_MEMORY: u64 = 2;
        self.bytes.chunks_exact(DESCRIPTOR).map(|bytes| {
            let start = word::<8>(bytes, 24) as usize;
            let in_memory = word::<4>(bytes, 16) == STORAGE_MEMORY && start != 0;
            LoadedSegment {
                agent: word::<8>(bytes, 0),
                executable: word::<8>(bytes, 8),
                file: in_memory.then(|| FileRange { start, size: word::<8>(bytes, 32) }),
                base: word::<8>(bytes, 48),
                size: word::<8>(bytes, 56),
            }
        })
    }
}

/// Waits until all work of HIP has finished, if the program uses HIP: running work would be counted in part.
pub fn finish_work() {
    type Call = unsafe extern "C" fn(i32) -> i32;
    type Count = unsafe extern "C" fn(*mut i32) -> i32;
    type Wait = unsafe extern "C" fn() -> i32;
    let Some(hip) = LoadedLibrary::find(b"libamdhip64.so") else { return };
    // SAFETY: symbols of these names in libamdhip64 are functions of these types; null becomes `None`.
    let (count, get, set, wait) = unsafe {
        (
            transmute::<*mut c_void, Option<Count>>(hip.symbol(c"hipGetDeviceCount")),
            transmute::<*mut c_void, Option<Count>>(hip.symbol(c"hipGetDevice")),
            transmute::<*mut c_void, Option<Call>>(hip.symbol(c"hipSetDevice")),
            transmute::<*mut c_void, Option<Wait>>(hip.symbol(c"hipDeviceSynchronize")),
        )
    };
    let (Some(count), Some(get), Some(set), Some(wait)) = (count, get, set, wait) else { return };
    let (mut devices, mut current) = (0, 0);
    // SAFETY: each pointer is to a place of its type. HSA is initialised, so HIP is, and nothing is initialised here.
    unsafe {
        if count(&mut devices) != 0 || get(&mut current) != 0 {
            return;
        }
        for device in 0..devices {
            if set(device) == 0 {
                wait();
            }
        }
        set(current);
    }
}
