//! The names that connect the archive with the rest of a link: read by the build script, the drain and its tests.

/// File name of the archive, in `lib/hotswap` of an installation.
pub const ARCHIVE_NAME: &str = "libhotswap-profile-drain.a";

/// The symbol that a link forces in (`-u`), and the function that a program may call itself.
pub const FORCED: &str = "hotswap_profile_drain";

/// The symbols that LLVM's device profiling of version 23 and later expects of a host runtime. Registrations do
/// nothing: we read the code that HSA has loaded. By the last one the host's profile runtime requests a drain.
pub const LEGACY: &[&str] = &[
    "__llvm_profile_offload_register_shadow_variable",
    "__llvm_profile_offload_register_section_shadow_variable",
    "__llvm_profile_offload_register_dynamic_module",
    "__llvm_profile_offload_unregister_dynamic_module",
    "__llvm_profile_hip_collect_device_data",
];

/// A function of HIP or HSA that the drain takes the place of.
pub struct WrappedFunction {
    pub name: &'static str,
    /// The result where the real function is not in the process.
    pub failure: u32,
}

const fn wrapped_function(name: &'static str, failure: u32) -> WrappedFunction {
    WrappedFunction { name, failure }
}

/// Functions that destroy code objects: calls of this image are bound to ours, which drains and forwards the call.
pub const WRAPPED: &[WrappedFunction] = &[
    // hipErrorSharedObjectSymbolNotFound
    wrapped_function("hipModuleUnload", 302),
    wrapped_function("hipLibraryUnload", 302),
    wrapped_function("__hipUnregisterFatBinary", 0),
    // Destroys nothing, but identifies the code objects that the other will destroy.
    wrapped_function("__hipRegisterFatBinary", 0),
    // HSA_STATUS_ERROR
    wrapped_function("hsa_executable_destroy", 0x1000),
    wrapped_function("hsa_shut_down", 0x1000),
];

/// The symbols that the object may leave undefined: those of libc, of the loader, and of the host's profile runtime.
pub const UNDEFINED: &[&str] = &[
    "_GLOBAL_OFFSET_TABLE_",
    "__errno_location",
    "__llvm_profile_filename",
    "__llvm_profile_get_filename",
    "__llvm_profile_set_filename",
    "__llvm_profile_write_file",
    "atexit",
    "bcmp",
    "calloc",
    "clock_gettime",
    "close",
    "dl_iterate_phdr",
    "dlclose",
    "dlopen",
    "dlsym",
    "flock",
    "free",
    "fstat",
    "getauxval",
    "getenv",
    "gethostname",
    "getpid",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
    "mkdir",
    "mmap",
    "mprotect",
    "munmap",
    "open",
    "pread",
    "process_vm_readv",
    "pthread_atfork",
    "pthread_self",
    "pthread_sigmask",
    "read",
    "rename",
    "sched_yield",
    "sigaddset",
    "sigaltstack",
    "sigemptyset",
    "sigfillset",
    "sigismember",
    "signal",
    "sigpending",
    "sigtimedwait",
    "strlen",
    "syscall",
    "unlink",
    "usleep",
    "write",
    "writev",
];
