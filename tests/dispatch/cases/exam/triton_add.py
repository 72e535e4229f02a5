# Triton without PyTorch: its driver module, compiled when it is first needed, looks HIP's functions up by the handle of HIP's
# library. A kernel is compiled for the GPU whose name the module states, with a block that is chosen by that name.
import ctypes
import glob
import os

os.environ["TRITON_LIBHIP_PATH"] = glob.glob("/usr/lib/*/libamdhip64.so.7")[0]
headers = os.path.abspath("stock/include")
os.environ["CPATH"] = ":".join(glob.glob(headers + "/python3.*") + [headers])

import triton
import triton.language as tl
from triton.backends.amd.driver import HIPUtils
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

SIGNATURE = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


hip = ctypes.CDLL(os.environ["TRITON_LIBHIP_PATH"])
utils = HIPUtils()
count = ctypes.c_int()
assert hip.hipGetDeviceCount(ctypes.byref(count)) == 0
for device in range(count.value):
    assert hip.hipSetDevice(device) == 0
    name = utils.get_device_properties(device)["arch"].split(":")[0]
    block = 256 if name == "gfx1200" else 64
    made = triton.compile(ASTSource(add, SIGNATURE, {"BLOCK": block}), target=GPUTarget("hip", name, 32))
    shared, threads = made.metadata.shared, 32 * made.metadata.num_warps
    module, function, *_ = utils.load_binary(made.metadata.name, made.asm["hsaco"], shared, device)
    data = ctypes.c_void_p()
    assert hip.hipMalloc(ctypes.byref(data), ctypes.c_size_t(1 << 16)) == 0
    words = [data, data, data, ctypes.c_int(4096), ctypes.c_void_p(), ctypes.c_void_p()]
    arguments = (ctypes.c_void_p * len(words))(*[ctypes.addressof(word) for word in words])
    kernel = ctypes.c_void_p(function)
    assert hip.hipModuleLaunchKernel(kernel, 4096 // block, 1, 1, threads, 1, 1, shared, None, arguments, None) == 0
    assert hip.hipDeviceSynchronize() == 0
