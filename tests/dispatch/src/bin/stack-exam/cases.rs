//! The cases: libraries, the GPU that they are served from, the GPUs that are served, and the program that calls them.

/// A program of `cases`.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    /// The libraries that it is linked with.
    pub(crate) links: &'static str,
}

/// How the libraries, served for further GPUs, come to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServedAs {
    /// As a directory beside the installed ones.
    Tree,
    /// As the first of the packages, which dpkg installs.
    Debian,
    /// As the first of the packages, a wheel, which pip installs.
    Wheel,
    /// Both: the first of the packages as a wheel, and the libraries of the others as a directory.
    WheelAndTree,
    /// Not at all: the program compiles its kernels, and `HOTSWAP_NAMES` shows it the source's name.
    NamesAlone,
}

impl ServedAs {
    /// Whether the first of the packages is a wheel.
    pub(crate) fn is_wheel(self) -> bool {
        matches!(self, Self::Wheel | Self::WheelAndTree)
    }
}

#[derive(Debug)]
pub(crate) struct Case {
    /// The libraries as their users know them.
    pub(crate) libraries: &'static str,
    pub(crate) packages: &'static [&'static str],
    /// The GPU whose code serves.
    pub(crate) source: &'static str,
    /// Another GPU whose files are there, too.
    pub(crate) other: &'static str,
    /// The GPUs to serve.
    pub(crate) targets: &'static [&'static str],
    /// Further arguments of `hotswap serve`.
    pub(crate) words: &'static str,
    /// The wheels that the program needs, by the beginnings of their files' names; the first is served where one is.
    pub(crate) wheels: &'static [&'static str],
    /// How they are served.
    pub(crate) served: ServedAs,
    /// Whether the host sees the GPU's own name.
    pub(crate) is_own: bool,
    /// Whether MIOpen makes a database first, which is served then.
    pub(crate) has_database: bool,
    /// Whether the library chooses in the same order each time: hipBLASLt's order of algorithms that it takes for equally
    /// good differs from run to run, without HotSwap, too.
    pub(crate) is_ordered: bool,
    pub(crate) program: &'static Program,
}

impl Case {
    /// The libraries, the source, and whose name the host sees.
    pub(crate) fn title(&self) -> String {
        format!("{} {} {}", self.libraries, self.source, if self.is_own { "own" } else { "source" })
    }
}

/// A request that must be refused.
#[derive(Debug)]
pub(crate) struct Planted {
    /// Its name.
    pub(crate) title: &'static str,
    /// As [`Case::libraries`].
    pub(crate) libraries: &'static str,
    /// As [`Case::packages`].
    pub(crate) packages: &'static [&'static str],
    /// Files that are removed first.
    pub(crate) removed: &'static str,
    /// Arguments of `hotswap serve`.
    pub(crate) words: &'static str,
    /// The code that it says.
    pub(crate) code: &'static str,
}

const BLAS: Program =
    Program { name: "blas.c", text: include_str!("../../../cases/exam/blas.c"), links: "-l:librocblas.so.5" };
const RANDOM: Program =
    Program { name: "random.cpp", text: include_str!("../../../cases/random.cpp"), links: "-l:librocrand.so.1" };
const SPARSE: Program =
    Program { name: "sparse.cpp", text: include_str!("../../../cases/exam/sparse.cpp"), links: "-l:librocsparse.so.1" };
const MATMUL: Program =
    Program { name: "matmul.cpp", text: include_str!("../../../cases/exam/matmul.cpp"), links: "-l:libhipblaslt.so.1" };
const LAYERS: Program =
    Program { name: "layers.cpp", text: include_str!("../../../cases/exam/layers.cpp"), links: "-l:libMIOpen.so.1" };

const TRANSFORM: Program =
    Program { name: "transform.c", text: include_str!("../../../cases/exam/transform.c"), links: "-l:librocfft.so.0" };
const ARRAYS: Program = Program { name: "arrays.py", text: include_str!("../../../cases/exam/arrays.py"), links: "" };
const MODEL: Program = Program { name: "model.py", text: include_str!("../../../cases/exam/model.py"), links: "" };
const COMPILED: Program =
    Program { name: "compiled.cpp", text: include_str!("../../../cases/exam/compiled.cpp"), links: "-lhiprtc" };

const LOOKED_UP: Program = Program {
    name: "looked_up.cpp",
    text: concat!(include_str!("../../../cases/exam/looked_up.h"), include_str!("../../../cases/exam/compiled.cpp")),
    links: "-lhiprtc",
};
const CTYPES: Program =
    Program { name: "compiled.py", text: include_str!("../../../cases/exam/compiled.py"), links: "" };
const TRITON_ADD: Program =
    Program { name: "triton_add.py", text: include_str!("../../../cases/exam/triton_add.py"), links: "" };

const ROCBLAS: &[&str] = &["librocblas5", "libroctx64-4"];
const ROCRAND: &[&str] = &["librocrand1"];
const ROCSPARSE: &[&str] = &["librocsparse1", "librocsparse-dev", "libroctx64-4"];
const HIPBLASLT: &[&str] = &["libhipblaslt1", "libhipblaslt-dev", "libhipblas-common-dev", "libroctx64-4"];
const MIOPEN: &[&str] = &[
    "libmiopen1",
    "libmiopen-dev",
    "libmiopen-tests-data",
    "librocblas5",
    "libhipblaslt1",
    "libroctx64-4",
    "libboost-filesystem1.90.0",
    "libboost-atomic1.90.0",
];
const CUPY: &[&str] = &[
    "cupy-rocm-7-0",
    "librocblas5",
    "librocfft0",
    "librocrand1",
    "librocsparse1",
    "librocsolver0",
    "librccl1",
    "libhipblaslt1",
    "libhipblas3",
    "libhipfft0",
    "libhiprand1",
    "libhipsparse4",
    "libroctx64-4",
];
const ONNX_RUNTIME: &[&str] = &[
    "onnxruntime-rocm",
    "libmiopen1",
    "librocblas5",
    "librocfft0",
    "librocrand1",
    "librocsparse1",
    "librocsolver0",
    "libhipblaslt1",
    "libhipblas3",
    "libhipfft0",
    "libhipsparse4",
    "librocm-smi64-1",
    "libroctx64-4",
    "libboost-filesystem1.90.0",
    "libboost-atomic1.90.0",
];
const RDNA2: &[&str] = &["gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"];

const fn case(libraries: &'static str, packages: &'static [&'static str], program: &'static Program) -> Case {
    Case {
        libraries,
        packages,
        source: "gfx1030",
        other: "gfx1030",
        targets: RDNA2,
        words: "",
        wheels: &[],
        served: ServedAs::Tree,
        is_own: false,
        has_database: false,
        is_ordered: true,
        program,
    }
}

/// Kernels that put more waves on a SIMD than the target has registers for are left out: the library has others.
const LEAVE_OUT: &str = "--leave-out kernels";

const fn lt() -> Case {
    Case { is_ordered: false, ..case("hipBLASLt", HIPBLASLT, &MATMUL) }
}

/// A program without served libraries, which sees the names by `HOTSWAP_NAMES`.
const fn alone(libraries: &'static str, program: &'static Program) -> Case {
    Case { served: ServedAs::NamesAlone, ..case(libraries, &[], program) }
}

/// Triton knows no RDNA 2.
const fn triton() -> Case {
    Case {
        packages: &["libpython3.14-dev"],
        source: "gfx1200",
        targets: &["gfx1201"],
        wheels: &["triton"],
        ..alone("Triton (wheel, pip)", &TRITON_ADD)
    }
}

#[rustfmt::skip]
pub(crate) const CASES: &[Case] = &[
    case("rocRAND", ROCRAND, &RANDOM),
    case("rocSPARSE", ROCSPARSE, &SPARSE),
    case("rocBLAS", ROCBLAS, &BLAS),
    Case { source: "gfx1102", targets: &["gfx1103"], ..case("rocBLAS", ROCBLAS, &BLAS) },
    Case { source: "gfx1151", targets: &["gfx1150"], words: LEAVE_OUT, ..case("rocBLAS", ROCBLAS, &BLAS) },
    Case { source: "gfx900", targets: &["gfx90c"], ..case("rocBLAS", ROCBLAS, &BLAS) },
    Case { source: "gfx1102", targets: &["gfx1103"], ..lt() },
    Case { source: "gfx1151", targets: &["gfx1150"], words: LEAVE_OUT, ..lt() },
    Case { source: "gfx1102", targets: &["gfx1103"], is_own: true, ..lt() },
    Case { source: "gfx1151", targets: &["gfx1150"], is_own: true, words: LEAVE_OUT, ..lt() },
    Case { targets: &["gfx1031"], is_own: true, ..case("rocBLAS", ROCBLAS, &BLAS) },
    Case { targets: &["gfx1031", "gfx1032"], has_database: true, ..case("MIOpen", MIOPEN, &LAYERS) },
    // Code objects of gfx1100 that need more registers than gfx1103 has are made from gfx1102's.
    Case { source: "gfx1100", other: "gfx1102", targets: &["gfx1103"], ..lt() },
    Case { served: ServedAs::Debian, ..case("rocFFT (.deb, dpkg)", &["librocfft0"], &TRANSFORM) },
    Case { served: ServedAs::Wheel, wheels: &["cupy", "numpy"], ..case("CuPy (wheel, pip)", CUPY, &ARRAYS) },
    Case { targets: &["gfx1031"], served: ServedAs::WheelAndTree, wheels: &["onnxruntime_rocm", "numpy"], ..case("ONNX Runtime (wheel, pip)", ONNX_RUNTIME, &MODEL) },
    alone("a hiprtc program", &COMPILED),
    alone("a program that looks HIP up (dlsym)", &LOOKED_UP),
    alone("a Python program (ctypes)", &CTYPES),
    triton(),
];

/// Requests that must be refused.
pub(crate) const PLANTED: &[Planted] = &[
    Planted {
        title: "rocRAND under the GPU's own name",
        libraries: "rocRAND",
        packages: ROCRAND,
        removed: "",
        words: "gfx1031 --names own",
        code: "HS0414",
    },
    Planted {
        title: "rocBLAS without librocblas.so",
        libraries: "rocBLAS",
        packages: ROCBLAS,
        removed: "librocblas.so*",
        words: "gfx1031 --from gfx1030",
        code: "HS0421",
    },
];
