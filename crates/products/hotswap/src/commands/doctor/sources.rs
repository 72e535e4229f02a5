//! The test programs.

use std::fs;
use std::path::Path;

/// Device code that needs neither HIP nor its libraries.
pub(super) const BARE: (&str, &str) =
    ("bare.hip", "extern \"C\" __attribute__((global)) void kernel(int *out) { *out = 1; }\n");
/// Device code that calls a function of the device libraries, without HIP's headers.
pub(super) const CALLS: (&str, &str) = (
    "calls.hip",
    "extern \"C\" __attribute__((device)) float __ocml_sin_f32(float);\n\
     extern \"C\" __attribute__((global)) void kernel(float *out) { *out = __ocml_sin_f32(*out); }\n",
);
pub(super) const PROGRAM: (&str, &str) = (
    "program.hip",
    "#include <hip/hip_runtime.h>\n__global__ void kernel(int *out) { *out = 1; }\n\
     int main() { kernel<<<1, 1>>>(nullptr); return hipDeviceSynchronize() != hipSuccess; }\n",
);

pub(super) fn write(directory: &Path) -> std::io::Result<()> {
    [BARE, CALLS, PROGRAM].iter().try_for_each(|(name, text)| fs::write(directory.join(name), text))
}
