//! A library that is loaded while the program runs, and the HIP runtime that it brings with it.

use std::ffi::{CStr, CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

const HOST_TO_DEVICE: c_int = 1;
const DEVICE_TO_HOST: c_int = 2;

type HipMalloc = unsafe extern "C" fn(*mut *mut c_void, usize) -> c_int;
type HipMemcpy = unsafe extern "C" fn(*mut c_void, *const c_void, usize, c_int) -> c_int;
type HipSynchronize = unsafe extern "C" fn() -> c_int;

/// A loaded library. It stays loaded until the process ends, because the HIP runtime keeps pointers into it.
pub(super) struct LoadedLibrary {
    handle: *mut c_void,
}

/// Memory of the GPU. It is not freed: the process ends with the computation.
pub(super) struct DeviceBuffer {
    pub(super) address: *mut c_void,
    size: usize,
}

/// Values whose bytes may be copied to and from a GPU: any bytes are a value of them.
pub(super) trait DeviceValue: Copy + Default {}

impl DeviceValue for f32 {}
impl DeviceValue for i32 {}
impl DeviceValue for u32 {}
impl DeviceValue for u16 {}

impl LoadedLibrary {
    /// Loads a library with all that it needs.
    #[allow(unsafe_code, reason = "the dynamic loader has a C interface")]
    pub(super) fn open(file: &Path) -> Result<Self, String> {
        let name = CString::new(file.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: the name is a C string. Constructors of the library run, as in every program that is linked with it.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() { Err(loader_error()) } else { Ok(Self { handle }) }
    }

    /// A function of the library, or of one that it was loaded with.
    ///
    /// # Safety
    /// `F` is a pointer to a C function with the prototype of the function that has that name.
    #[allow(unsafe_code, reason = "the loader gives addresses without types")]
    pub(super) unsafe fn function<F: Copy>(&self, name: &CStr) -> Result<F, String> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: the handle is that of a loaded library, which is never closed, and the name is a C string.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        if address.is_null() {
            return Err(loader_error());
        }
        // SAFETY: `F` has the size of an address, and by this function's contract the type of what is there.
        Ok(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
    }

    /// Memory of the GPU with these values.
    #[allow(unsafe_code, reason = "HIP has a C interface")]
    pub(super) fn upload<T: DeviceValue>(&self, values: &[T]) -> Result<DeviceBuffer, String> {
        // SAFETY: the prototypes are those of hip_runtime_api.h.
        let (allocate, copy) =
            unsafe { (self.function::<HipMalloc>(c"hipMalloc")?, self.function::<HipMemcpy>(c"hipMemcpy")?) };
        let (mut address, size) = (ptr::null_mut(), size_of_val(values));
        // SAFETY: the address is written to a variable of its type; the copy reads the bytes of the slice and writes as many
        // to memory that was allocated with that size.
        let status = unsafe {
            match allocate(&raw mut address, size) {
                0 => copy(address, values.as_ptr().cast(), size, HOST_TO_DEVICE),
                failed => failed,
            }
        };
        check("HIP: memory of the GPU", status)?;
        Ok(DeviceBuffer { address, size })
    }

    /// The values in memory of the GPU, after everything that was started before.
    #[allow(unsafe_code, reason = "HIP has a C interface")]
    pub(super) fn download<T: DeviceValue>(&self, buffer: &DeviceBuffer) -> Result<Vec<T>, String> {
        // SAFETY: the prototypes are those of hip_runtime_api.h.
        let (wait, copy) = unsafe {
            (self.function::<HipSynchronize>(c"hipDeviceSynchronize")?, self.function::<HipMemcpy>(c"hipMemcpy")?)
        };
        let mut values = vec![T::default(); buffer.size / size_of::<T>()];
        // SAFETY: the vector does not have more bytes than the buffer, and any bytes are values of its type.
        let status = unsafe {
            match wait() {
                0 => copy(values.as_mut_ptr().cast(), buffer.address, size_of_val(&*values), DEVICE_TO_HOST),
                failed => failed,
            }
        };
        check("HIP: the end of the kernels", status)?;
        Ok(values)
    }
}

/// Whether a call succeeded: HIP and ROCm's libraries return 0 then.
pub(super) fn check(call: &str, status: c_int) -> Result<(), String> {
    if status == 0 { Ok(()) } else { Err(format!("{call} returned the error {status}")) }
}

/// The loader's last error.
#[allow(unsafe_code, reason = "the dynamic loader has a C interface")]
fn loader_error() -> String {
    // SAFETY: dlerror returns null or a C string that lives until this thread's next call of the loader.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the loader gave no reason".to_owned();
    }
    // SAFETY: as above; it is copied before any other call.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
