//! The projects as data: their sources, the options of their own build systems that matter, the translation units, and the
//! programs that are run.
//!
//! In options, `{S}` is the directory of the sources, `{0}`, `{1}` are the files of the further packages, `{G}` is
//! the directory of generated headers.

use crate::packages::{Origin, Package};

/// A part of a project that is built.
pub(super) struct Project {
    pub(super) name: &'static str,
    pub(super) sources: Package,
    /// The GPU that is compiled for, and those that the plan adds.
    pub(super) gpus: &'static [&'static str],
    /// Whether clang compiles other code for the target, for a reason that the note gives: then the program's runs are the judges.
    pub(super) differs: bool,
    /// Further packages: headers and libraries.
    pub(super) packages: &'static [Package],
    pub(super) options: &'static [&'static str],
    /// Headers that the project's build system makes: template, header, and what is replaced.
    pub(super) generated: &'static [GeneratedHeader],
    /// Sources, from the directory of the sources.
    pub(super) units: &'static [&'static str],
    /// The project's own build instead of commands for the units: a program in Python and its arguments. It makes this library in the
    /// directory of the build, with the compiler and the GPUs that PyTorch's variables name.
    pub(super) script: Option<BuildScript>,
    /// Whether the device code of all units is linked together.
    pub(super) relocatable: bool,
    /// Programs: the unit of each, its libraries and its arguments.
    pub(super) programs: &'static [TestProgram],
    /// The part that is built, in words, and why nothing is run.
    pub(super) note: &'static str,
}

impl Project {
    /// The plan: the targets, from the source.
    pub(super) fn plan(&self) -> String {
        format!("{}=>{}", self.gpus[0], self.gpus[1..].join(","))
    }

    /// Whether siblings are compiled once in a build of their own.
    pub(super) fn is_coalesced(&self) -> bool {
        self.gpus.len() > 2
    }

    /// The targets on which programs are run: one, or all where the code is not clang's.
    pub(super) fn run_targets(&self) -> &'static [&'static str] {
        if self.differs { &self.gpus[1..] } else { &self.gpus[1..2] }
    }

    /// The number of units whose results are told one by one: those that have code objects of their own.
    pub(super) fn compared_units(&self) -> usize {
        if self.script.is_some() || self.relocatable { 0 } else { self.units.len() }
    }
}

/// The build of a project by its own tools.
pub(super) struct BuildScript {
    pub(super) arguments: &'static [&'static str],
    /// The directories in which Python looks for modules.
    pub(super) modules: &'static str,
    pub(super) library: &'static str,
}

/// A header that is made of a template.
pub(super) struct GeneratedHeader {
    pub(super) template: &'static str,
    pub(super) header: &'static str,
    pub(super) values: &'static [(&'static str, &'static str)],
}

/// A program of one unit, or of all where they are linked together.
pub(super) struct TestProgram {
    pub(super) unit: usize,
    pub(super) libraries: &'static [&'static str],
    pub(super) arguments: &'static [&'static str],
    /// Libraries that have no code for the plan's GPU: it is added by `hotswap retarget` first.
    pub(super) retargeted: &'static [&'static str],
    /// The number of GPUs.
    pub(super) gpus: usize,
}

/// The GPUs of most projects.
const USUAL: &[&str] = &["gfx1030", "gfx1031"];
/// Those of projects that are coalesced, too.
const THREE: &[&str] = &["gfx1030", "gfx1031", "gfx1032"];

const fn experimental(name: &'static str) -> Package {
    Package { name, origin: Origin::Experimental }
}

const fn source(name: &'static str) -> Package {
    Package { name, origin: Origin::DebianSource }
}

const fn program(unit: usize) -> TestProgram {
    TestProgram { unit, libraries: &[], arguments: &[], retargeted: &[], gpus: 1 }
}

const ROCRAND_TEST: &[&str] = &[
    "{0}/usr/lib/x86_64-linux-gnu/libgtest.a",
    "{0}/usr/lib/x86_64-linux-gnu/libgtest_main.a",
    "{1}/usr/lib/x86_64-linux-gnu/librocrand.so.1",
];

const fn rocfft_program(unit: usize) -> TestProgram {
    TestProgram { libraries: ROCFFT, retargeted: &["{1}/usr/lib/x86_64-linux-gnu/librocfft.so.0.1"], ..program(unit) }
}

const ROCFFT: &[&str] = &["{1}/usr/lib/x86_64-linux-gnu/librocfft.so.0"];

/// Headers of the libraries that MAGMA calls, and those that its own build makes.
pub(crate) const MAGMA_HEADERS: &[Package] = &[
    Package { name: "libmagma-rocm-dev", origin: Origin::Sid },
    experimental("libhipblas-dev"),
    experimental("librocblas-dev"),
    experimental("libhipblas-common-dev"),
    experimental("libhipsparse-dev"),
    experimental("librocsparse-dev"),
];

/// The projects that could not be had, and the reason.
pub(super) const ABSENT: &[(&str, &str)] = &[
    ("hipRAND's library", "the mirror's index names sources that its pool does not have; its header is built above"),
    (
        "ROCm's examples (the repository)",
        "in no registry; the examples of rocThrust, hipCUB and rocPRIM are built above",
    ),
    (
        "ggml-hip as a whole",
        "144 units, of which 139 have device code, built, linked and run by hand and not by this task: 278 of 278 code objects equal clang's, in 0.68 of its time for two GPUs; `hotswap verify --require gfx1030,gfx1031 FILE` passes; 20 operators (products of f16 and four quantised types, attention, softmax, norm, rope) give the same values on emulated gfx1030 and gfx1031, where `hotswap serve` serves rocBLAS",
    ),
    ("ginkgo, RAJA, AMReX", "Debian has no source packages of them"),
    ("bitsandbytes", "the newest sources on PyPI are those of 0.42.0, and have no device code"),
];

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project {
        name: "rocRAND",
        sources: source("rocrand"),
        gpus: USUAL,
        differs: false,
        packages: &[Package { name: "libgtest-dev", origin: Origin::Sid }, experimental("librocrand1")],
        options: &["-std=c++17", "-I{S}/test", "-isystem", "{0}/usr/include"],
        generated: &[],
        units: &["test/test_rocrand_kernel_lfsr113.cpp", "test/test_rocrand_kernel_philox4x32_10.cpp"],
        script: None,
        relocatable: false,
        programs: &[TestProgram { libraries: ROCRAND_TEST, arguments: &["--gtest_filter=*.rocrand"], ..program(0) }],
        note: "tests of device functions; with the headers of HIP's version, and run with Debian's library",
    },
    Project {
        name: "hipRAND",
        sources: experimental("libhiprand-dev"),
        gpus: THREE,
        differs: false,
        packages: &[],
        options: &["-std=c++17", "-isystem", "{S}/usr/include", "-I/mnt/source/xtask/src/projects"],
        generated: &[],
        units: &["/mnt/source/xtask/src/projects/hiprand.hip"],
        script: None,
        relocatable: false,
        programs: &[program(0)],
        note: "its device functions in a program of HotSwap's",
    },
    Project {
        name: "rocPRIM",
        sources: source("rocprim"),
        gpus: USUAL,
        differs: false,
        packages: &[],
        options: &["-std=c++17", "-include", "cstring", "-I{S}/example"],
        generated: &[],
        units: &["example/example_temporary_storage.cpp"],
        script: None,
        relocatable: false,
        programs: &[],
        note: "an example, with the headers of HIP's version; not run: with these, clang's own program lacks its kernel",
    },
    Project {
        name: "hipCUB",
        sources: source("hipcub"),
        gpus: USUAL,
        differs: false,
        packages: &[],
        options: &["-std=c++17", "-include", "hip/hip_runtime.h", "-I{S}/examples"],
        generated: &[],
        units: &["examples/device/example_device_scan.cpp", "examples/device/example_device_reduce.cpp"],
        script: None,
        relocatable: false,
        programs: &[program(0), program(1)],
        note: "examples, with the headers of HIP's version",
    },
    Project {
        name: "rocThrust",
        sources: source("rocthrust"),
        gpus: USUAL,
        differs: false,
        packages: &[],
        options: &["-std=c++17", "-I{S}"],
        generated: &[],
        units: &["examples/stream_compaction.cu", "examples/norm.cu"],
        script: None,
        relocatable: false,
        programs: &[program(0), program(1)],
        note: "examples",
    },
    Project {
        name: "rocSPARSE",
        sources: source("rocsparse"),
        gpus: USUAL,
        differs: false,
        packages: &[experimental("librocsparse-dev")],
        options: &["-std=c++17", "-I{S}/library/include", "-I{S}/library/src/include", "-I{S}/library/src",
                   "-I{0}/usr/include", "-I{0}/usr/include/rocsparse"],
        generated: &[],
        units: &["library/src/level1/rocsparse_axpyi.cpp", "library/src/level1/rocsparse_roti.cpp"],
        script: None,
        relocatable: false,
        programs: &[],
        note: "two functions of level 1; not run, which would need the whole library",
    },
    Project {
        name: "RCCL",
        sources: source("rccl"),
        // Its sources name GPUs: those for gfx1031 hold an instruction that gfx1031 does not have.
        gpus: &["gfx1100", "gfx1101"],
        differs: true,
        packages: &[],
        options: &["-std=c++14", "-fvisibility=hidden", "-fPIC", "-DBUILD_ALLREDUCE_ONLY", "-DENABLE_COLLTRACE", "-I{G}", "-I{S}/src", "-I{S}/src/include",
                   "-I{S}/src/collectives", "-I{S}/src/collectives/device"],
        generated: &[
            GeneratedHeader { template: "src/nccl.h.in", header: "rccl.h", values: NCCL },
            GeneratedHeader { template: "src/nccl.h.in", header: "nccl.h", values: NCCL },
        ],
        units: &["/mnt/source/xtask/src/projects/all_reduce.hip", "src/collectives/device/sendrecv.cu",
                 "src/collectives/device/functions.cu"],
        script: None,
        relocatable: true,
        programs: &[TestProgram { gpus: 2, ..program(0) }],
        note: "device code of all-reduce for sums of floats, by its own option for this part, in a program of HotSwap's that connects two GPUs as a ring (protocols LL and simple); clang's kernels for gfx1101 read the number of the work-group from another register, because their descriptors state fewer",
    },
    Project {
        name: "rocFFT",
        sources: source("rocfft"),
        gpus: USUAL,
        differs: false,
        packages: &[experimental("librocfft-dev"), experimental("librocfft0")],
        options: &["-std=c++17", "-I{0}/usr/include"],
        generated: &[],
        units: &["clients/samples/rocfft/rocfft_example_callback.cpp", "clients/samples/rocfft/rocfft_example_complexcomplex.cpp"],
        script: None,
        relocatable: false,
        programs: &[rocfft_program(0), rocfft_program(1)],
        note: "samples: a device function of the program that the library's kernels call, and a transform of data that a kernel makes; run with Debian's library, to which `hotswap retarget` has added gfx1031, and which compiles its kernels when it is run",
    },
    Project {
        name: "MAGMA",
        sources: source("magma-rocm"),
        gpus: USUAL,
        differs: false,
        packages: MAGMA_HEADERS,
        options: &["-DMAGMA_HAVE_HIP", "-DADD_", "-I{S}/include", "-I{S}/control", "-I{S}/magmablas_hip", "-I{0}/usr/include", "-I{1}/usr/include",
                   "-I{2}/usr/include", "-I{3}/usr/include", "-I{4}/usr/include", "-I{5}/usr/include"],
        generated: &[],
        units: &["magmablas_hip/dswap.hip.cpp", "magmablas_hip/dgeadd.hip.cpp"],
        script: None,
        relocatable: false,
        programs: &[],
        note: "two functions of its BLAS; not run, which would need the whole library",
    },
    Project {
        name: "composable_kernel GEMM",
        sources: FLASH_ATTN,
        gpus: &["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"],
        differs: false,
        packages: &[],
        options: CK_OPTIONS,
        generated: &[],
        units: &["/mnt/source/xtask/src/projects/composable_kernel/gemm_f32.hip",
                 "/mnt/source/xtask/src/projects/composable_kernel/gemm_f16.hip",
                 "/mnt/source/xtask/src/projects/composable_kernel/gemm_i8.hip",
                 "/mnt/source/xtask/src/projects/composable_kernel/gemm_f16_padded.hip"],
        script: None,
        relocatable: false,
        programs: &[program(0), program(1), program(2), program(3)],
        note: "four instances of `DeviceGemmDl` of its own lists (f32, f16, i8, f16 with padding; four layouts) in programs of HotSwap's, for gfx1030 to gfx1036; a header of HotSwap's adds gfx1033 to CK's list of the family; the sources are those in flash-attn of that version",
    },
    Project {
        name: "composable_kernel attention",
        sources: FLASH_ATTN,
        gpus: &["gfx1100", "gfx1101", "gfx1102", "gfx1103"],
        differs: true,
        packages: &[],
        options: CK_OPTIONS,
        generated: &[],
        units: &["/mnt/source/xtask/src/projects/composable_kernel/attention_f16.hip",
                 "/mnt/source/xtask/src/projects/composable_kernel/attention_f16_wide.hip",
                 "/mnt/source/xtask/src/projects/composable_kernel/attention_f16_causal.hip",
                 "/mnt/source/xtask/src/projects/composable_kernel/attention_bf16.hip"],
        script: None,
        relocatable: false,
        programs: &[program(0), program(1), program(2), program(3)],
        note: "four instances of `DeviceBatchedGemmSoftmaxGemmPermute_Wmma_CShuffle` (f16, f16 with its example's tile, f16 with a causal mask and two waves, bf16) in programs of HotSwap's, for gfx1100 to gfx1103; pairs of these GPUs are conditional, clang's code for them differs ([compatibility](../reference/compatibility.md)), and it compiles each of them where `-fhotswap-coalesce` is given, so runs judge the plan's code",
    },
    Project {
        name: "PyTorch's extensions",
        sources: Package { name: "torch", origin: Origin::ArmWheel { version: "2.8.0", python: "3.12" } },
        gpus: THREE,
        differs: false,
        packages: &[Package { name: "setuptools", origin: Origin::Wheel { version: "80.9.0", python: "3.12" } }],
        options: &[],
        generated: &[],
        units: &[],
        script: Some(BuildScript {
            arguments: &["/mnt/source/xtask/src/projects/torch_extension/build.py", "{S}",
                         "/mnt/source/xtask/src/projects/torch_extension/scale.cu"],
            modules: "{0}",
            library: "scale.so",
        }),
        relocatable: false,
        programs: &[],
        note: "an extension of HotSwap's with PyTorch's headers, built by `torch.utils.cpp_extension.load`: its hipify, its options, its ninja; not run, because it is not linked with PyTorch's libraries, which are those of another machine",
    },
    Project {
        name: "ggml (llama.cpp)",
        sources: Package { name: "llama-cpp-sys-2", origin: Origin::Crate { version: "0.1.161" } },
        gpus: USUAL,
        differs: false,
        packages: &[experimental("libhipblas-dev"), experimental("librocblas-dev"), experimental("libhipblas-common-dev")],
        options: &["-std=c++17", "-DGGML_USE_HIP", "-I{0}/usr/include", "-I{1}/usr/include", "-I{2}/usr/include", "-I{S}/llama.cpp/ggml/include", "-I{S}/llama.cpp/ggml/src",
                   "-I{S}/llama.cpp/ggml/src/ggml-cuda"],
        generated: &[],
        units: &["llama.cpp/ggml/src/ggml-cuda/acc.cu", "llama.cpp/ggml/src/ggml-cuda/clamp.cu",
                 "llama.cpp/ggml/src/ggml-cuda/softmax.cu"],
        script: None,
        relocatable: false,
        programs: &[],
        note: "three operators of the HIP back end; not run, which would need the whole back end",
    },
];

const FLASH_ATTN: Package = Package { name: "flash-attn", origin: Origin::Sdist { version: "2.8.3.post2" } };

/// Those of flash-attn's build that concern composable_kernel, which its source distribution contains.
const CK_OPTIONS: &[&str] = &[
    "-std=c++17",
    "-DCK_ENABLE_BF16",
    "-DCK_ENABLE_BF8",
    "-DCK_ENABLE_FP16",
    "-DCK_ENABLE_FP32",
    "-DCK_ENABLE_FP64",
    "-DCK_ENABLE_FP8",
    "-DCK_ENABLE_INT8",
    "-DCK_USE_XDL",
    "-I/mnt/source/xtask/src/projects/composable_kernel",
    "-I{S}/csrc/composable_kernel/include",
    "-I{S}/csrc/composable_kernel/library/include",
];

const NCCL: &[(&str, &str)] = &[
    ("${NCCL_MAJOR}", "2"),
    ("${NCCL_MINOR}", "13"),
    ("${NCCL_PATCH}", "4"),
    ("${NCCL_SUFFIX}", ""),
    ("${NCCL_VERSION}", "21304"),
];
