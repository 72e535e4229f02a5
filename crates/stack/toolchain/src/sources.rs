//! The test programs that show whether a part can be used.

use std::fs;
use std::path::Path;

/// A source file of a test program.
pub(crate) struct TestSource {
    pub(crate) name: &'static str,
    text: &'static str,
}

/// Device code that needs neither HIP nor its libraries.
pub(crate) const BARE: TestSource =
    TestSource { name: "bare.hip", text: "extern \"C\" __attribute__((global)) void kernel(int *out) { *out = 1; }\n" };
/// Device code that calls a function of the device libraries, without HIP's headers.
pub(crate) const CALLS: TestSource = TestSource {
    name: "calls.hip",
    text: "extern \"C\" __attribute__((device)) float __ocml_sin_f32(float);\n\
     extern \"C\" __attribute__((global)) void kernel(float *out) { *out = __ocml_sin_f32(*out); }\n",
};
pub(crate) const PROGRAM: TestSource = TestSource {
    name: "program.hip",
    text: "#include <hip/hip_runtime.h>\n__global__ void kernel(int *out) { *out = 1; }\n\
     int main() { kernel<<<1, 1>>>(nullptr); return hipDeviceSynchronize() != hipSuccess; }\n",
};

pub(crate) fn write(directory: &Path) -> std::io::Result<()> {
    [BARE, CALLS, PROGRAM].iter().try_for_each(|source| fs::write(directory.join(source.name), source.text))
}
