# CuPy as a whole: kernels that it compiles while it runs, and those of rocPRIM in its libraries, on each device.
import cupy

for device in range(cupy.cuda.runtime.getDeviceCount()):
    with cupy.cuda.Device(device):
        for size in (1000, 100_000, 5_000_000):
            array = cupy.arange(size, dtype=cupy.float32)
            cupy.sort(array)
            cupy.argsort(array)
            cupy.sort(array.reshape(100, -1), axis=1)
        cupy.cumsum(array)
        array.max()
        cupy.random.default_rng(1).random(100)
        cupy.lexsort(cupy.stack([array[:100], array[:100]]))
        cupy.cuda.runtime.deviceSynchronize()
