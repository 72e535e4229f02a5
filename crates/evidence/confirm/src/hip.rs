//! The HIP library of the machine, loaded at run time, as far as kernels need it.
//!
//! Invariant: it is loaded by a process of its own (`hotswap ask-hip`, which help does not show), which may hang or crash with the
//! GPU.
//!
//! Absent on purpose: streams and events. A kernel is started, and the device is waited for.
#![allow(unsafe_code, reason = "a library is loaded and called, each call with its proof")]

use libc::{RTLD_LOCAL, RTLD_NOW, c_char, c_int, c_uint, c_void};
use std::ffi::{CStr, CString};
use std::ptr::null_mut;

/// The names of the library, the newest first.
const LIBRARIES: &[&CStr] = &[
    c"libamdhip64.so.7",
    c"libamdhip64.so.6",
    c"libamdhip64.so.5",
    c"libamdhip64.so",
    c"/opt/rocm/lib/libamdhip64.so",
];

type HipStatus = c_int;
const SUCCESS: HipStatus = 0;
/// The status `hipErrorNoDevice` where there is none.
const NO_DEVICE: HipStatus = 100;
/// The directions `hipMemcpyHostToDevice` and `hipMemcpyDeviceToHost`.
const TO_DEVICE: c_int = 1;
const TO_HOST: c_int = 2;

/// The structure of a device's properties: its function, its size, and where `gcnArchName` is.
struct PropertiesLayout {
    function: &'static CStr,
    arch: usize,
}

/// The structures before and since HIP 6.0; both are smaller than [`PROPERTIES_ROOM`].
const LAYOUTS: &[PropertiesLayout] = &[
    PropertiesLayout { function: c"hipGetDevicePropertiesR0600", arch: 1160 },
    PropertiesLayout { function: c"hipGetDeviceProperties", arch: 396 },
];
const PROPERTIES_ROOM: usize = 8192;
/// Bytes of the names in the structure.
const NAME_SIZE: usize = 256;

type GetInteger = unsafe extern "C" fn(*mut c_int) -> HipStatus;
type SetDevice = unsafe extern "C" fn(c_int) -> HipStatus;
type GetProperties = unsafe extern "C" fn(*mut c_void, c_int) -> HipStatus;
type Synchronize = unsafe extern "C" fn() -> HipStatus;
type Allocate = unsafe extern "C" fn(*mut *mut c_void, usize) -> HipStatus;
type Copy = unsafe extern "C" fn(*mut c_void, *const c_void, usize, c_int) -> HipStatus;
type Fill = unsafe extern "C" fn(*mut c_void, c_int, usize) -> HipStatus;
type LoadModule = unsafe extern "C" fn(*mut *mut c_void, *const c_void) -> HipStatus;
type FindFunction = unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> HipStatus;
type ErrorName = unsafe extern "C" fn(HipStatus) -> *const c_char;
type Launch = unsafe extern "C" fn(
    *mut c_void,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
) -> HipStatus;

/// A device as HIP states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HipDevice {
    pub(crate) name: String,
    pub(crate) target: String,
}

/// The loaded library with its functions.
pub(crate) struct HipLibrary {
    handle: *mut c_void,
    set_device: SetDevice,
    synchronize: Synchronize,
    allocate: Allocate,
    copy: Copy,
    fill: Fill,
    load_module: LoadModule,
    find_function: FindFunction,
    launch: Launch,
    error_name: ErrorName,
}

/// Memory of the device; it is freed by the end of the process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceBuffer {
    address: *mut c_void,
    size: usize,
}

/// A loaded code object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HipModule(*mut c_void);

/// Work-groups and work-items of a launch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaunchSize {
    pub(crate) groups: u32,
    pub(crate) group_size: u32,
}

impl HipLibrary {
    /// The first of the libraries that can be loaded and has all functions.
    pub(crate) fn load() -> Option<Self> {
        LIBRARIES.iter().find_map(|name| Self::load_named(name))
    }

    fn load_named(name: &CStr) -> Option<Self> {
        // SAFETY: the name ends with NUL. Constructors of the library run in a process that does nothing else.
        let handle = unsafe { libc::dlopen(name.as_ptr(), RTLD_NOW | RTLD_LOCAL) };
        if handle.is_null() {
            return None;
        }
        // SAFETY: each symbol has the type of its declaration in hip_runtime_api.h, unchanged since HIP 5.
        unsafe {
            Some(Self {
                handle,
                set_device: find_symbol(handle, c"hipSetDevice")?,
                synchronize: find_symbol(handle, c"hipDeviceSynchronize")?,
                allocate: find_symbol(handle, c"hipMalloc")?,
                copy: find_symbol(handle, c"hipMemcpy")?,
                fill: find_symbol(handle, c"hipMemset")?,
                load_module: find_symbol(handle, c"hipModuleLoadData")?,
                find_function: find_symbol(handle, c"hipModuleGetFunction")?,
                launch: find_symbol(handle, c"hipModuleLaunchKernel")?,
                error_name: find_symbol(handle, c"hipGetErrorName")?,
            })
        }
    }

    fn check(&self, status: HipStatus, call: &str) -> Result<(), String> {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: the function takes any number and returns a C string of the library, or null.
        let name = unsafe { (self.error_name)(status) };
        if name.is_null() {
            return Err(format!("{call}: error {status}"));
        }
        // SAFETY: it is not null, ends with NUL, and the library is never unloaded.
        let name = unsafe { CStr::from_ptr(name) };
        Err(format!("{call}: {} ({status})", name.to_string_lossy()))
    }

    /// A version that HIP states as a number.
    pub(crate) fn integer(&self, function: &CStr) -> Option<i32> {
        let mut value = 0;
        // SAFETY: functions of this name take a pointer to an integer, which lives here.
        let status = unsafe { find_symbol::<GetInteger>(self.handle, function)?(&raw mut value) };
        (status == SUCCESS).then_some(value)
    }

    /// The devices in HIP's order.
    pub(crate) fn devices(&self) -> Result<Vec<HipDevice>, String> {
        let mut count = 0;
        // SAFETY: as in `integer`.
        let status = unsafe {
            match find_symbol::<GetInteger>(self.handle, c"hipGetDeviceCount") {
                Some(function) => function(&raw mut count),
                None => return Err("it lacks hipGetDeviceCount".to_owned()),
            }
        };
        if status == NO_DEVICE {
            return Ok(Vec::new());
        }
        self.check(status, "hipGetDeviceCount")?;
        (0..count).map(|number| self.device(number)).collect()
    }

    fn device(&self, number: c_int) -> Result<HipDevice, String> {
        for layout in LAYOUTS {
            let mut bytes = vec![0_u64; PROPERTIES_ROOM / 8];
            // SAFETY: the function fills a structure that is smaller than the buffer and needs no stricter alignment.
            let status = unsafe {
                let Some(function) = find_symbol::<GetProperties>(self.handle, layout.function) else { continue };
                function(bytes.as_mut_ptr().cast(), number)
            };
            self.check(status, "hipGetDeviceProperties")?;
            let bytes: Vec<u8> = bytes.iter().flat_map(|word| word.to_le_bytes()).collect();
            return Ok(HipDevice { name: text_at(&bytes, 0), target: text_at(&bytes, layout.arch) });
        }
        Err("it lacks hipGetDeviceProperties".to_owned())
    }

    pub(crate) fn choose_device(&self, number: i32) -> Result<(), String> {
        // SAFETY: the function takes any number.
        self.check(unsafe { (self.set_device)(number) }, "hipSetDevice")
    }

    /// Memory of the device.
    pub(crate) fn allocate(&self, size: usize) -> Result<DeviceBuffer, String> {
        let mut address = null_mut();
        // SAFETY: the pointer is to a pointer that lives here.
        self.check(unsafe { (self.allocate)(&raw mut address, size) }, "hipMalloc")?;
        Ok(DeviceBuffer { address, size })
    }

    /// Writes bytes to the start of a buffer.
    pub(crate) fn upload(&self, buffer: DeviceBuffer, bytes: &[u8]) -> Result<(), String> {
        let size = bytes.len().min(buffer.size);
        // SAFETY: the source has at least `size` bytes, and so has the buffer, which is never freed.
        self.check(unsafe { (self.copy)(buffer.address, bytes.as_ptr().cast(), size, TO_DEVICE) }, "hipMemcpy")
    }

    pub(crate) fn clear(&self, buffer: DeviceBuffer) -> Result<(), String> {
        // SAFETY: the buffer has that size, and is never freed.
        self.check(unsafe { (self.fill)(buffer.address, 0, buffer.size) }, "hipMemset")
    }

    /// The bytes of a buffer, once the device is idle.
    pub(crate) fn download(&self, buffer: DeviceBuffer) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; buffer.size];
        // SAFETY: both have that size.
        let status = unsafe { (self.copy)(bytes.as_mut_ptr().cast(), buffer.address, buffer.size, TO_HOST) };
        self.check(status, "hipMemcpy")?;
        Ok(bytes)
    }

    /// Loads a code object.
    pub(crate) fn load_module(&self, object: &[u8]) -> Result<HipModule, String> {
        let mut module = null_mut();
        // SAFETY: the file says how long it is, and the caller has written it; the pointer is to a pointer that lives here.
        let status = unsafe { (self.load_module)(&raw mut module, object.as_ptr().cast()) };
        self.check(status, "hipModuleLoadData")?;
        Ok(HipModule(module))
    }

    /// Starts a kernel whose arguments are the addresses of these buffers, and waits for its end.
    pub(crate) fn launch(
        &self,
        module: HipModule,
        kernel: &str,
        size: LaunchSize,
        buffers: [DeviceBuffer; 2],
    ) -> Result<(), String> {
        let name = CString::new(kernel).map_err(|error| error.to_string())?;
        let mut function = null_mut();
        // SAFETY: the module was loaded, the name ends with NUL, and the pointer is to a pointer that lives here.
        let status = unsafe { (self.find_function)(&raw mut function, module.0, name.as_ptr()) };
        self.check(status, "hipModuleGetFunction")?;
        let mut addresses = buffers.map(|buffer| buffer.address);
        let mut arguments = addresses.each_mut().map(|address| std::ptr::from_mut(address).cast::<c_void>());
        // SAFETY: the kernel has two arguments of 8 bytes, to which these pointers lead until the call returns; it takes the
        // default stream, and no further arguments.
        let status = unsafe {
            (self.launch)(
                function,
                size.groups,
                1,
                1,
                size.group_size,
                1,
                1,
                0,
                null_mut(),
                arguments.as_mut_ptr(),
                null_mut(),
            )
        };
        self.check(status, "hipModuleLaunchKernel")?;
        // SAFETY: it takes nothing.
        self.check(unsafe { (self.synchronize)() }, "hipDeviceSynchronize")
    }
}

/// The text at an offset, up to its NUL.
fn text_at(bytes: &[u8], offset: usize) -> String {
    let field = bytes.get(offset..offset + NAME_SIZE).unwrap_or_default();
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

/// A function of a loaded library.
///
/// # Safety
/// `F` is a pointer to a function, of the type that the library declares.
unsafe fn find_symbol<F: std::marker::Copy>(library: *mut c_void, name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the library is loaded and is never unloaded; the name ends with NUL.
    let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
    // SAFETY: both have the same size, and the caller vouches for the type.
    (!symbol.is_null()).then(|| unsafe { std::mem::transmute_copy::<*mut c_void, F>(&symbol) })
}
