//! The cases.

use crate::case::Cache::{Ccache, Sccache};
use crate::case::Mode::{self, Compiler, CompilerC, Found, Launcher};
use crate::case::Needs::{Any, Blanks, Configurations, Ninja, OldCMake, Upgrade};
use crate::case::Step::{
    Build, Cache, ChangePlanFile, Clean, Compiles, Configure, Consumer, Contains, Counters, Derived, Executes,
    ExecutesOrStops, Exists, Has, Idle, Install, MadeByInstalled, NewClang, NewHotSwap, Plans, Refused, RemovePlans,
    Report, Runs, Says, Stops, Target, Warns,
};
use crate::case::{Case, Program, Step};

const ALL: &[Mode] = &[Found, Compiler, CompilerC, Launcher];
const BOTH: &[Mode] = &[Found, Launcher];

const GFX1030: &str = "gfx1030";
/// The GPUs at the end of most projects: compiled for the first, retargeted to the second.
const PAIR: &[&str] = &[GFX1030, "gfx1031"];
const OTHER_PLAN: &[&str] = &["-DRETARGET=gfx1030=>gfx1032,gfx1036"];
const ALLOWED: &[&str] =
    &["-DCMAKE_HIP_ARCHITECTURES=gfx1102", "-DRETARGET=gfx1102=>gfx1150", "-DALLOW=ALLOW_EXPERIMENTAL"];
/// Two siblings, one of which a source tests by its name, and a GPU without any.
const SIBLINGS: &str = "-DCMAKE_HIP_ARCHITECTURES=gfx1030;gfx1031;gfx1100";
const SIBLING_GPUS: &[&str] = &["gfx1030", "gfx1031", "gfx1100"];
const EXPERIMENTAL: &[&str] = &["-DCMAKE_HIP_ARCHITECTURES=gfx1102", "-DRETARGET=gfx1102=>gfx1150"];
/// A clang as C++ compiler, whose sources hip::device can make HIP.
const CLANG_CXX: &[&str] = &["-DCMAKE_CXX_COMPILER={clang}", "-DCMAKE_CXX_FLAGS={flags}", "-DGPU_TARGETS=gfx1030"];
const CLANG_CXX_LIBRARY: &[&str] =
    &["-DCMAKE_CXX_COMPILER={clang}", "-DCMAKE_CXX_FLAGS={flags}", "-DGPU_TARGETS=gfx1030", "-DLIBRARY_ONLY=ON"];
const CLANG_CXX_OTHER_PLAN: &[&str] =
    &["-DCMAKE_CXX_FLAGS={flags}", "-DGPU_TARGETS=gfx1030", "-DRETARGET=gfx1030=>gfx1032,gfx1036"];
const COALESCED: &[&str] = &["-DHOW=COALESCE", "-DCMAKE_HIP_ARCHITECTURES=gfx1030;gfx1031"];
const SIBLING_PAIR: &str = "-DCMAKE_HIP_ARCHITECTURES=gfx1030;gfx1031";
const COALESCED_LIBRARY: &[&str] = &["-DLIBRARY=COALESCE", SIBLING_PAIR];
/// The text that every linker prints for a unit whose plan was not carried out.
pub(crate) const LOST: &str = "__hotswap_plan_of_this_object_was_not_carried_out__link_it_by_hotswap_clang__";
const RDC_BY_FLAGS: &[&str] =
    &["-DFORM=flags", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_HIP_FLAGS_RELEASE=-O2 -fgpu-rdc"];
/// The programs of `rdc-variants`, by form.
const OBJECT_VARIANTS: &[Program] = &[
    program("sources"),
    program("linked"),
    program("archive"),
    in_library("shared", "libshared_library.so"),
    program("two"),
];
const FLAGS_VARIANTS: &[Program] = &[
    program("static"),
    program("chain"),
    program("interface"),
    program("file"),
    in_library("whole", "libwhole_library.so"),
];
const SOURCE_VARIANTS: &[Program] = &[
    program("static"),
    program("words"),
    program("condition"),
    in_library("objects", "libobjects_library.so"),
    program("own"),
];
const OBJECT_FORM: &[&str] = &["-DFORM=object", "-DCMAKE_BUILD_TYPE=Release"];
const SOURCE_FORM: &[&str] = &["-DFORM=source", "-DCMAKE_BUILD_TYPE=Release"];
const TOOLCHAIN: &str = "-DCMAKE_TOOLCHAIN_FILE={prefix}/share/cmake/HotSwap/HotSwapToolchain.cmake";
const CCACHE: &str = "-DCMAKE_HIP_COMPILER_LAUNCHER=ccache";
const SCCACHE: &str = "-DCMAKE_HIP_COMPILER_LAUNCHER=sccache";
const OTHER_GPUS: &[&str] = &[GFX1030, "gfx1032", "gfx1036"];

/// Builds, checks `app`, runs it, builds again.
const APP: &[Step] = &[Configure(&[]), Build, Has("app", PAIR), Plans("app", 1), Runs("app"), Idle];
/// The same where the code objects are in a library.
const LIBRARY: &[Step] =
    &[Configure(&[]), Build, Has("libkernels.so", PAIR), Plans("libkernels.so", 1), Runs("app"), Idle];

const fn case(name: &'static str, modes: &'static [Mode], steps: &'static [Step]) -> Case {
    Case { name, project: name, modes, needs: Any, steps }
}

/// A call that must be refused at configure time.
const fn refusal(name: &'static str, steps: &'static [Step]) -> Case {
    Case { name, project: "refusals", modes: &[Found], needs: Any, steps }
}

const fn program(name: &'static str) -> Program {
    Program { name, file: name }
}

const fn in_library(name: &'static str, file: &'static str) -> Program {
    Program { name, file }
}

#[rustfmt::skip]
pub const CASES: &[Case] = &[
    // Kinds of targets.
    case("executable", ALL, &[
        Configure(&[]), Build, Has("app", PAIR), Plans("app", 1), Report("app.json", PAIR), Runs("app"), Idle,
    ]),
    case("static", BOTH, &[
        Configure(&[]), Build, Has("libkernels.a", PAIR), Has("app", PAIR), Plans("app", 1), Runs("app"), Idle,
    ]),
    case("chain", BOTH, APP),
    case("object", BOTH, APP),
    case("shared", BOTH, &[
        Configure(&[]), Build, Has("libkernels.so", PAIR), Plans("libkernels.so", 1),
        Report("reports of shared/kernels.json", PAIR), Runs("app"), Idle,
    ]),
    case("module", BOTH, LIBRARY),
    case("rdc", ALL, &[
        Configure(&[]), Build, Has("app", PAIR), Plans("app", 1), Report("app.json", PAIR), Runs("app"), Idle,
    ]),
    // Without a plan of the program: its link starts with HotSwap, or our argument would reach the real linker.
    case("rdc-static", &[Found, Compiler, Launcher], APP),
    Case { name: "rdc-static-and-program", project: "rdc-static", modes: &[Compiler, Launcher], needs: Any, steps: &[
        Configure(&["-DPROGRAM_TOO=ON"]), Build, Has("app", PAIR), Plans("app", 1), Runs("app"), Idle,
    ] },
    Case { name: "rdc-static-by-directory", project: "rdc-static", modes: &[Launcher, Found], needs: Any, steps: &[
        Configure(&["-DBY_DIRECTORY=ON"]), Build, Has("app", PAIR), Plans("app", 1), Runs("app"), Idle,
    ] },
    // Relocatable code that the text of the project does not show: the objects bring their plan to the link.
    Case { name: "rdc-forms-object", project: "rdc-forms", modes: &[Launcher, Compiler], needs: Any, steps: &[
        Configure(&[]), Build, Has("app", PAIR), Runs("app"), Idle,
        Configure(COALESCED), Build, Has("app", PAIR), Runs("app"), Idle,
    ] },
    Case { name: "rdc-forms-flags", project: "rdc-forms", modes: &[Compiler, Launcher], needs: Any, steps: &[
        Configure(RDC_BY_FLAGS), Build, Has("app", PAIR), Runs("app"), Idle,
        Configure(COALESCED), Build, Has("app", PAIR), Runs("app"), Idle,
    ] },
    Case { name: "rdc-forms-source", project: "rdc-forms", modes: &[Launcher, Compiler], needs: Any, steps: &[
        Configure(&["-DFORM=source"]), Build, Has("app", PAIR), Runs("app"), Idle,
        Configure(COALESCED), Build, Has("app", PAIR), Runs("app"), Idle,
    ] },
    // Five variants of each form, executed on both GPUs.
    Case { name: "rdc-variants-object", project: "rdc-variants", modes: &[Launcher, Compiler], needs: Any, steps: &[
        Configure(OBJECT_FORM), Executes(OBJECT_VARIANTS, PAIR), Configure(COALESCED), Executes(OBJECT_VARIANTS, PAIR),
    ] },
    Case { name: "rdc-variants-flags", project: "rdc-variants", modes: &[Compiler, Launcher], needs: Any, steps: &[
        Configure(RDC_BY_FLAGS), Executes(FLAGS_VARIANTS, PAIR), Configure(COALESCED), Executes(FLAGS_VARIANTS, PAIR),
    ] },
    Case { name: "rdc-variants-source", project: "rdc-variants", modes: &[Launcher, Compiler], needs: Any, steps: &[
        Configure(SOURCE_FORM), Executes(SOURCE_VARIANTS, PAIR), Configure(COALESCED), Executes(SOURCE_VARIANTS, PAIR),
    ] },
    // The package's guesses are planted wrong: what is built is right, and what is not stops.
    Case { name: "rdc-guess-relocatable", project: "rdc-variants", modes: &[Launcher, Compiler], needs: Any, steps: &[
        Configure(OBJECT_FORM), Configure(&["-DPLANTED=_hotswap_is_relocatable;target;flags;FALSE"]), ExecutesOrStops(OBJECT_VARIANTS, PAIR),
        Configure(&["-DPLANTED=_hotswap_is_relocatable;target;flags;TRUE"]), ExecutesOrStops(OBJECT_VARIANTS, PAIR),
    ] },
    Case { name: "rdc-guess-device-link", project: "rdc-variants", modes: &[Launcher, Compiler], needs: Any, steps: &[
        Configure(SOURCE_FORM), Configure(&["-DPLANTED=_hotswap_links_device;target;FALSE"]), ExecutesOrStops(SOURCE_VARIANTS, PAIR),
        Configure(&["-DPLANTED=_hotswap_links_device;target;TRUE"]), ExecutesOrStops(SOURCE_VARIANTS, PAIR),
    ] },
    // HotSwap's part in the link is lost behind CMake's back: no linker accepts the units.
    Case { name: "rdc-lost-by-cmake", project: "rdc-forms", modes: &[Launcher], needs: Any, steps: &[
        Configure(&["-DLOST_BY_LINKER=bfd"]), Stops(LOST), Configure(&["-DLOST_BY_LINKER=gold"]), Stops(LOST),
        Configure(&["-DLOST_BY_LINKER=lld"]), Stops(LOST), Configure(&["-DLOST_BY_LINKER=mold"]), Stops(LOST),
        Configure(&["-DLOST_BY_LINKER="]), Build, Has("app", PAIR),
    ] },
    // The library has one plan, the program another one, or units that were compiled for both GPUs.
    Case { name: "rdc-two-plans", project: "rdc-program-units", modes: &[Launcher, Compiler], needs: Any, steps: &[
        Configure(&["-DPROGRAM=RETARGET;gfx1030=>gfx1032"]), Build, Has("app", &[GFX1030, "gfx1031", "gfx1032"]), Runs("app"), Idle,
    ] },
    Case { name: "rdc-coalesced-library", project: "rdc-program-units", modes: &[Compiler, Launcher], needs: Any, steps: &[
        Configure(COALESCED_LIBRARY), Build, Has("app", PAIR), Runs("app"), Idle,
        Configure(&[SIBLING_PAIR, "-DPROGRAM=COALESCE"]), Build, Has("app", PAIR), Runs("app"), Idle,
        Configure(&[SIBLING_PAIR, "-DPROGRAM=RETARGET;gfx1030=>gfx1032"]), Build, Has("app", &[GFX1030, "gfx1031", "gfx1032"]), Runs("app"), Idle,
    ] },
    case("two-plans", BOTH, &[
        Configure(&[]), Build, Has("app", &[GFX1030, "gfx1031", "gfx1032", "gfx1033"]), Plans("app", 3), Runs("app"), Idle,
    ]),
    // Shapes of projects.
    case("hip-only", ALL, APP),
    case("hip-first", &[Compiler, CompilerC, Launcher], APP),
    case("subdirectory", BOTH, &[
        Configure(&[]), Build, Has("gpu/libkernels.so", PAIR), Plans("gpu/libkernels.so", 1), Runs("app"), Idle,
    ]),
    case("sources-later", BOTH, &[
        Configure(&[]), Build, Has("app", &["gfx1030", "gfx1031", "gfx900"]), Plans("app", 1), Runs("app"), Idle,
        NewHotSwap, Compiles(&["also.hip", "made.hip"]), MadeByInstalled("app"), Idle,
    ]),
    case("untouched", BOTH, &[
        Configure(&[]), Build, Has("app", PAIR), Has("plain", &[GFX1030]), Plans("plain", 0), Runs("app"), Idle,
    ]),
    Case { name: "blanks", project: "shared", modes: BOTH, needs: Blanks, steps: LIBRARY },
    Case { name: "blanks-rdc", project: "rdc", modes: BOTH, needs: Blanks, steps: APP },
    Case { name: "response-files", project: "static", modes: BOTH, needs: Ninja, steps: &[
        Configure(&["-DCMAKE_NINJA_FORCE_RESPONSE_FILE=ON"]), Build, Has("app", PAIR), Plans("app", 1), Runs("app"), Idle,
    ] },
    Case { name: "response-files-rdc", project: "rdc", modes: BOTH, needs: Ninja, steps: &[
        Configure(&["-DCMAKE_NINJA_FORCE_RESPONSE_FILE=ON"]), Build, Has("app", PAIR), Plans("app", 1), Runs("app"), Idle,
    ] },
    case("export", BOTH, &[
        Configure(&[]), Build, Has("libkernels.a", PAIR), Install, Consumer("consumer"), Has("app", PAIR), Runs("app"), Idle,
    ]),
    Case { name: "export-build-tree", project: "export", modes: BOTH, needs: Any, steps: &[
        Configure(&[]), Build, Has("libkernels.a", PAIR), Consumer("consumer"), Has("app", PAIR), Plans("app", 0), Runs("app"), Idle,
    ] },
    // Plans without a call, calls for several targets, configurations, components, HotSwap as a part of the project.
    case("directory-plan", BOTH, &[
        Configure(&[]), Build, Has("app", PAIR), Plans("app", 1), Has("plain", &[GFX1030]), Plans("plain", 0),
        Has("own", &[GFX1030, "gfx1036"]), Has("below/libkernels.so", PAIR), Runs("app"), Idle,
        Configure(OTHER_PLAN), Build, Has("app", OTHER_GPUS), Idle,
    ]),
    case("unseen-sources", BOTH, &[
        Configure(&[]), Build, Has("expression", PAIR), Has("inherited", PAIR), Has("property", PAIR), Has("device_link", PAIR),
        Has("by_package", PAIR),
        Plans("host", 0), Plans("no_objects", 0), Has("own", &[GFX1030, "gfx1032"]), Runs("expression"), Runs("by_package"), Idle,
    ]),
    case("hip-device", BOTH, &[
        Configure(CLANG_CXX), Build, Has("direct", PAIR), Has("through", PAIR), Has("called", PAIR), Has("relocatable", PAIR),
        Plans("host", 0), Runs("through"), Runs("relocatable"), Idle,
        Configure(CLANG_CXX_OTHER_PLAN), Build, Has("through", OTHER_GPUS), Has("relocatable", OTHER_GPUS), Idle,
    ]),
    Case { name: "hip-device-library", project: "hip-device", modes: BOTH, needs: Any, steps: &[
        Configure(CLANG_CXX_LIBRARY), Build, Has("relocatable", PAIR), Has("direct", &[GFX1030]), Runs("relocatable"), Idle,
    ] },
    case("hip-device-alone", &[Found], &[
        Configure(CLANG_CXX), Build, Has("app", PAIR), Plans("app", 1), Runs("app"), Idle,
    ]),
    case("list-of-targets", BOTH, &[
        Configure(&[]), Build, Has("libkernels.a", PAIR), Has("app", PAIR), Has("other", PAIR), Runs("app"), Idle,
        Refused(&["-DREPORT=REPORT;x.json"], "REPORT names one file, but the call names 2 targets"),
    ]),
    case("configurations", BOTH, &[
        Configure(&["-DCMAKE_BUILD_TYPE=Release"]), Build, Has("app", PAIR), Report("reports/Release/app.json", PAIR), Idle,
        Refused(&["-DRETARGET=$<IF:1,gfx1030=>gfx1031,>"], "RETARGET is a generator expression"),
    ]),
    Case { name: "several-configurations", project: "configurations", modes: BOTH, needs: Configurations, steps: &[
        Configure(&[]), Build, Has("Debug/app", PAIR), Plans("Debug/app", 1), Report("reports/Debug/app.json", PAIR),
        Runs("Debug/app"), Idle,
        Refused(&["-DREPORT=app.json"], "REPORT names one file for all configurations; write for example REPORT $<CONFIG>/app.json."),
    ] },
    case("components", &[Found], &[
        Configure(&[]), Build, Has("app", PAIR),
        Refused(&["-DWANTED=names;nonsense"], "there is no component `nonsense`: the components are names, profile, families and library."),
    ]),
    case("fetch-content", &[Found, Launcher], &[
        Configure(&["-DHOTSWAP_PREFIX={prefix}", "-DHOTSWAP_SOURCE={source}"]), Build, Has("app", PAIR), Has("by_variable", PAIR), Runs("app"), Idle,
    ]),
    Case { name: "toolchain-file", project: "presets", modes: &[Found], needs: Any, steps: &[
        Configure(&[TOOLCHAIN]), Build, Has("app", PAIR), Runs("app"), Idle,
    ] },
    Case { name: "toolchain-alone", project: "toolchain-alone", modes: &[Found], needs: Any, steps: &[
        Configure(&[TOOLCHAIN, "-DHOTSWAP_RETARGET=gfx1030=>gfx1031"]), Build, Has("app", PAIR), Has("below/libkernels.so", PAIR),
        Runs("app"), Idle,
        Refused(&[TOOLCHAIN, "-DHOTSWAP_RETARGET=gfx1030=>gfx900"], "code for gfx1030 cannot serve gfx900"),
    ] },
    case("presets", &[Found], &[Configure(&["--preset=hotswap"]), Build, Has("app", PAIR), Runs("app"), Idle]),
    // Changes.
    Case { name: "plan-changes", project: "executable", modes: BOTH, needs: Any, steps: &[
        Configure(&[]), Compiles(&["kernel.hip", "main.cpp"]), Has("app", PAIR),
        Configure(OTHER_PLAN), Compiles(&["kernel.hip"]), Has("app", OTHER_GPUS), Report("app.json", OTHER_GPUS), Plans("app", 1), Idle,
        Configure(&["-DRETARGET=gfx1030=>gfx1036 gfx1030=>gfx1032"]), Idle,
    ] },
    Case { name: "plan-changes-rdc", project: "rdc", modes: BOTH, needs: Any, steps: &[
        Configure(&[]), Build, Has("app", PAIR), Configure(OTHER_PLAN), Build, Has("app", OTHER_GPUS), Plans("app", 1), Idle,
    ] },
    Case { name: "hotswap-changes", project: "executable", modes: BOTH, needs: Any, steps: &[
        Configure(&[]), Build, Idle, NewHotSwap, Compiles(&["kernel.hip"]), Has("app", PAIR), MadeByInstalled("app"), Plans("app", 1), Idle,
    ] },
    Case { name: "plan-file-changes", project: "executable", modes: BOTH, needs: Any, steps: &[
        Configure(&[]), Build, ChangePlanFile, Build, Has("app", PAIR), Idle, RemovePlans, Build, Has("app", PAIR), Idle,
    ] },
    Case { name: "ccache", project: "executable", modes: BOTH, needs: Any, steps: &[
        Configure(&["-DCMAKE_HIP_COMPILER_LAUNCHER=ccache"]), Build, Has("app", PAIR), Cache(Ccache, 0, 1),
        Clean, Build, Has("app", PAIR), Cache(Ccache, 1, 0),
        Configure(OTHER_PLAN), Build, Has("app", OTHER_GPUS), Cache(Ccache, 0, 1),
        NewHotSwap, Build, Has("app", OTHER_GPUS), MadeByInstalled("app"), Cache(Ccache, 0, 1), Idle,
    ] },
    Case { name: "sccache", project: "executable", modes: BOTH, needs: Any, steps: &[
        Configure(&["-DCMAKE_HIP_COMPILER_LAUNCHER=sccache"]), Build, Has("app", PAIR), Cache(Sccache, 0, 1),
        Clean, Build, Has("app", PAIR), Cache(Sccache, 1, 0),
        Configure(OTHER_PLAN), Build, Has("app", OTHER_GPUS), Cache(Sccache, 0, 1),
        NewHotSwap, Build, Has("app", OTHER_GPUS), MadeByInstalled("app"), Cache(Sccache, 0, 1), Idle,
    ] },
    // With a plan and without one: the objects of another clang are not taken, which took its place.
    Case { name: "upgrade-ccache", project: "untouched", modes: BOTH, needs: Upgrade, steps: &[
        Configure(&[CCACHE]), Build, Cache(Ccache, 0, 2), Clean, Build, Cache(Ccache, 2, 0),
        NewClang, Configure(&[CCACHE]), Build, Cache(Ccache, 0, 2), Has("app", PAIR), Has("plain", &[GFX1030]), Idle,
    ] },
    // (Of a plain clang, which compiles `plain` under the launcher, sccache caches nothing here.)
    Case { name: "upgrade-sccache", project: "untouched", modes: &[Found], needs: Upgrade, steps: &[
        Configure(&[SCCACHE]), Build, Cache(Sccache, 0, 2), Clean, Build, Cache(Sccache, 2, 0),
        NewClang, Configure(&[SCCACHE]), Build, Cache(Sccache, 0, 2), Has("app", PAIR), Has("plain", &[GFX1030]), Idle,
    ] },
    // Policies.
    Case { name: "policy-warn", project: "executable", modes: BOTH, needs: Any, steps: &[
        Warns(&["-DPOLICY=warn", "-DRETARGET=gfx1030=>gfx1031 gfx1010=>gfx1013"], "the plan makes GPUs from gfx1010, but HIP_ARCHITECTURES is gfx1030"), Build, Has("app", PAIR), Idle,
    ] },
    Case { name: "policy-keep", project: "executable", modes: BOTH, needs: Any, steps: &[
        Configure(&["-DPOLICY=keep", "-DRETARGET=gfx1030=>gfx1031 gfx1010=>gfx1013"]), Build, Has("app", PAIR), Idle,
    ] },
    Case { name: "experimental", project: "executable", modes: &[Found], needs: Any, steps: &[
        Refused(EXPERIMENTAL, "gfx1102=>gfx1150 is experimental, which was not allowed"),
        Configure(ALLOWED), Build, Has("app", &["gfx1102", "gfx1150"]), Idle,
    ] },
    // `kernel.hip` is compiled once for both siblings, `asks.hip` for each of them.
    Case { name: "coalesce", project: "coalesce", modes: ALL, needs: Any, steps: &[
        Configure(&[SIBLINGS]), Build, Has("app", SIBLING_GPUS), Derived("app", &[("gfx1031", 1)]), Plans("app", 1), Runs("app"), Idle,
    ] },
    Case { name: "coalesce-and-retarget", project: "coalesce", modes: &[Found], needs: Any, steps: &[
        Configure(&[SIBLINGS, "-DPAIRS=gfx1030=>gfx1036"]), Build, Has("app", &["gfx1030", "gfx1031", "gfx1036", "gfx1100"]),
        Derived("app", &[("gfx1031", 1), ("gfx1036", 2)]), Runs("app"), Idle,
    ] },
    // The generic target covers the siblings and replaces none of them.
    Case { name: "coalesce-generic", project: "coalesce", modes: &[Found], needs: Any, steps: &[
        Configure(&["-DCMAKE_HIP_ARCHITECTURES=gfx10-3-generic;gfx1030;gfx1031"]), Build, Has("app", &["gfx10-3-generic", "gfx1030", "gfx1031"]),
        Derived("app", &[("gfx1031", 1)]), Runs("app"), Idle,
    ] },
    Case { name: "coalesce-nothing", project: "coalesce", modes: &[Found], needs: Any, steps: &[
        Configure(&["-DCMAKE_HIP_ARCHITECTURES=gfx1030;gfx1100"]), Build, Has("app", &["gfx1030", "gfx1100"]),
        Derived("app", &[]), Plans("app", 0), Runs("app"), Idle,
    ] },
    // Targets: with a plan, without, by the directory's variable, and with both. Two are off.
    case("warm-headers", BOTH, &[
        Configure(&[]), Contains("compile_commands.json", "--hotswap-warm-headers=implicit", 2),
        Contains("compile_commands.json", "--hotswap-warm-headers=auto", 2), Build,
        Has("app", PAIR), Has("plain", &[GFX1030]), Has("below/default", &[GFX1030]), Has("below/planned", PAIR),
        Plans("app", 1), Plans("plain", 0), Plans("below/default", 0), Runs("app"), Runs("plain"), Runs("below/default"), Idle,
        Configure(&["-DWARM=off"]), Contains("compile_commands.json", "--hotswap-warm-headers=implicit", 0), Build, Has("app", PAIR), Idle,
        Refused(&["-DWARM=hot"], "WARM_HEADERS `hot` is not known; the values are auto, implicit and off."),
    ]),
    // Counters, and their use. Without a GPU only the host's are written.
    Case { name: "profile", project: "profile", modes: BOTH, needs: Any, steps: &[
        Configure(&[]), Build, Counters("one", true), Counters("libkernels.a", true), Idle, Runs("one"),
        Target("one-profdata"), Exists("one.profdata"),
        Configure(&["-DPROFILE=use", "-DPROFDATA=one.profdata"]), Build, Counters("one", false), Runs("one"), Idle,
        Configure(&["-DPROFILE=use", "-DPROFDATA=other.profdata"]), Says("mismatched data that will be ignored"), Idle,
        Configure(&["-DPROFILE=use", "-DPROFDATA=one.profdata;gfx1030=other.profdata"]), Says("mismatched data that will be ignored"), Idle,
    ] },
    Case { name: "profile-coverage", project: "profile", modes: BOTH, needs: Any, steps: &[
        Configure(&["-DPROFILE=coverage", "-DPAIRS=gfx1030=>gfx1031"]), Build, Counters("one", true), Has("one", PAIR), Runs("one"), Idle,
        Target("one-coverage"), Exists("one-coverage/index.html"),
    ] },
    Case { name: "profile-static", project: "profile", modes: BOTH, needs: Any, steps: &[
        Configure(&[]), Build, Counters("app", true), Runs("app"), Idle,
    ] },
    Case { name: "profile-refusals", project: "profile", modes: &[Found], needs: Any, steps: &[
        Refused(&["-DPROFILE=always"], "PROFILE `always` is not known; write generate, coverage or use."),
        Refused(&["-DPROFILE=use"], "PROFILE use needs PROFDATA <file>"),
        Refused(&["-DPROFILE=use", "-DPROFDATA=absent.profdata"], "absent.profdata is not there"),
        Refused(&["-DPROFILE=use", "-DPROFDATA=other.profdata;other.profdata"], "names 2 files for all"),
        Refused(&["-DPROFILE=use", "-DPROFDATA=gfx900=other.profdata"], "PROFDATA names gfx900, but HIP_ARCHITECTURES is gfx1030"),
        Refused(&["-DPROFILE=generate", "-DPROFDATA=other.profdata"], "PROFDATA is for PROFILE use"),
    ] },
    // Refusals.
    refusal("no-mistake", &[Configure(&["-DMISTAKE=none"]), Build, Has("app", PAIR)]),
    refusal("words", &[
        Refused(&["-DMISTAKE=no-target"], "add_hotswap_target(nobody): there is no such target; call it after add_executable or add_library."),
        Refused(&["-DMISTAKE=no-pair"], "RETARGET names no pair; write for example RETARGET gfx1030=>gfx1031."),
        Refused(&["-DMISTAKE=bad-pair"], "`gfx1030=gfx1031` has no `=>`"),
        Refused(&["-DMISTAKE=unknown-gpu"], "gfx9999"),
        Refused(&["-DMISTAKE=impossible-pair"], "gfx1030=>gfx900: code for gfx1030 cannot serve gfx900"),
        Refused(&["-DMISTAKE=unknown-policy"], "POLICY `maybe` is not known; the values are error, warn, keep and compile."),
        Refused(&["-DMISTAKE=policy-off"], "POLICY `OFF` is not known; the values are error, warn, keep and compile."),
        Refused(&["-DMISTAKE=names-no"], "NAMES `NO` is not known; the values are compile, error, warn and derive."),
        Refused(&["-DMISTAKE=unknown-patch"], "no_such_family"),
        Refused(&["-DMISTAKE=unknown-word"], "`FROM;gfx1030` is not understood"),
        Refused(&["-DMISTAKE=twice"], "name all pairs in one call."),
    ]),
    refusal("targets", &[
        Refused(&["-DMISTAKE=interface"], "the target compiles nothing (INTERFACE_LIBRARY)"),
        Refused(&["-DMISTAKE=imported"], "the target is imported"),
        Refused(&["-DMISTAKE=report-of-objects"], "REPORT needs a target that makes a file"),
        Refused(&["-DMISTAKE=report-elsewhere"], "REPORT needs the call to stand in the directory of the target"),
        Refused(&["-DMISTAKE=other-source"], "the plan makes GPUs from gfx1010, but HIP_ARCHITECTURES is gfx1030"),
        Refused(&["-DMISTAKE=hip-in-cxx"], "as those of hip::device, compile"),
        Refused(&["-DMISTAKE=ipo"], "INTERPROCEDURAL_OPTIMIZATION is on, but CMake has no IPO for HIP"),
        Refused(&["-DMISTAKE=ipo-of-configuration", "-DCMAKE_BUILD_TYPE=Release"], "INTERPROCEDURAL_OPTIMIZATION_RELEASE is on"),
    ]),
    refusal("no-hip", &[Refused(&["-DMISTAKE=no-hip"], "HIP is not enabled here; write enable_language(HIP)")]),
    Case { name: "bypass", project: "hip-first", modes: &[Launcher], needs: Any, steps: &[
        Refused(&["-DBYPASS=ON"], "the self-test failed"),
        Refused(&["-DBYPASS=OFF", "-DCMAKE_HIP_COMPILER_LAUNCHER=env;-i;PATH=/usr/bin"], "the self-test failed"),
        Refused(&["-DCMAKE_HIP_COMPILER_LAUNCHER=", "-DRULE=env -i PATH=/usr/bin"], "the self-test failed"),
        Refused(&["-DRULE=true"], "something goes around HotSwap"),
        // A rule that HotSwap can start itself, and one for a shell.
        Configure(&["-DRULE=env A=B"]), Configure(&["-DRULE=env A=B > /dev/null"]), Build, Has("app", PAIR),
    ] },
    // The tools of a directory of -B are used, below HotSwap's own.
    Case { name: "tool-directory", project: "hip-first", modes: &[Launcher], needs: Any, steps: &[
        Configure(&["-DCMAKE_HIP_FLAGS={flags} -B/usr/lib/llvm-{version}/bin"]), Build, Has("app", PAIR), Runs("app"),
    ] },
    Case { name: "old-cmake", project: "old-cmake", modes: &[Found], needs: OldCMake, steps: &[
        Refused(&[], "does not find HIP in Debian's directories"),
    ] },
    // The examples, with HIP's headers.
    Case { name: "hello-hip", project: "examples/hello-hip", modes: BOTH, needs: Any, steps: &[
        Configure(&[]), Build, Has("hello", &[GFX1030, "gfx1031", "gfx1032"]), Runs("hello"), Idle,
    ] },
    Case { name: "gemm", project: "examples/gemm", modes: BOTH, needs: Any, steps: &[
        Configure(&[]), Build, Has("libgemm.so", GFX103X), Runs("gemm_check"), Idle,
    ] },
    Case { name: "gemm-rdc", project: "examples/gemm", modes: BOTH, needs: Any, steps: &[
        Configure(&["-DGEMM_RDC=ON"]), Build, Has("libgemm.so", GFX103X), Runs("gemm_check"), Idle,
    ] },
    Case { name: "gemm-without-hotswap", project: "examples/gemm", modes: &[Launcher], needs: Any, steps: &[
        Configure(&["-DCMAKE_DISABLE_FIND_PACKAGE_HotSwap=ON"]), Build, Has("libgemm.so", &[GFX1030]), Runs("gemm_check"), Idle,
    ] },
];

const GFX103X: &[&str] = &["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"];
