# A program that calls HIP by ctypes: it compiles a kernel for the GPU whose name it sees, and chooses its work-groups by that
# name.
import ctypes
from ctypes import byref

hip = ctypes.CDLL("libamdhip64.so.7")
hiprtc = ctypes.CDLL("libhiprtc.so.7")
TEXT = b'extern "C" __global__ void scale(float *p, float by) { p[blockIdx.x * blockDim.x + threadIdx.x] *= by; }'


def call(function, *words):
    status = function(*words)
    assert status == 0, (function.__name__, status)


def name_of(device):
    properties = ctypes.create_string_buffer(4096)
    call(hip.hipGetDevicePropertiesR0600, properties, device)
    return properties.raw[1160:].split(b"\0")[0]


def compiled(name):
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    call(hiprtc.hiprtcCreateProgram, byref(program), TEXT, b"kernels", 0, None, None)
    options = (ctypes.c_char_p * 1)(b"--offload-arch=" + name)
    call(hiprtc.hiprtcCompileProgram, program, 1, options)
    call(hiprtc.hiprtcGetCodeSize, program, byref(size))
    code = ctypes.create_string_buffer(size.value)
    call(hiprtc.hiprtcGetCode, program, code)
    return code


count = ctypes.c_int()
call(hip.hipGetDeviceCount, byref(count))
for device in range(count.value):
    call(hip.hipSetDevice, device)
    name = name_of(device)
    size = 256 if name == b"gfx1030" else 64
    module, kernel, data, by = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float(2)
    code = compiled(name)
    call(hip.hipModuleLoadDataEx, byref(module), code, 0, None, None)
    call(hip.hipModuleGetFunction, byref(kernel), module, b"scale")
    call(hip.hipMalloc, byref(data), ctypes.c_size_t(1 << 20))
    arguments = (ctypes.c_void_p * 2)(ctypes.addressof(data), ctypes.addressof(by))
    call(hip.hipModuleLaunchKernel, kernel, 4096 // size, 1, 1, size, 1, 1, 0, None, arguments, None)
    call(hip.hipDeviceSynchronize)
