//! The behaviour of the wrapper as a table: command, environment, expected decision.

use super::*;
use crate::options::{ConfigFile, OPTIONS, OwnOption};

const PAIR: &str = "gfx1030=>gfx1031";

fn sample(pairs: &str) -> Plan {
    let mut plan = Plan::default();
    plan.add_pairs(pairs).unwrap();
    plan
}

/// The file `f` has the plan of the pair.
fn find_sample(plan: PlanReference<'_>) -> Result<Plan, Diagnostic> {
    let known = [sample(PAIR), sample("gfx900=>gfx902")];
    let hash = match plan {
        PlanReference::Hash(hash) => hash.to_owned(),
        PlanReference::File("f", hash) if hash.is_none_or(|hash| hash == known[0].hash()) => known[0].hash(),
        PlanReference::Objects(_) => return Ok(Plan::default()),
        PlanReference::File(..) => return Err(Diagnostic::error(codes::PLAN_CHANGED, "another file")),
    };
    known
        .into_iter()
        .find(|plan| plan.hash() == hash)
        .ok_or_else(|| Diagnostic::error(codes::PLAN_MISSING, hash.clone()))
}

/// `{P}` and `{Q}` in commands are replaced by the hashes of two known plans.
fn expand(text: &str) -> Vec<OsString> {
    let text = text.replace("{P}", &sample(PAIR).hash()).replace("{Q}", &sample("gfx900=>gfx902").hash());
    text.split_whitespace().map(OsString::from).collect()
}

fn run(cxx: bool, text: &str, env: &str, config: &[(&str, &str)]) -> CommandJudgement {
    let value = |name: &str| {
        env.split_whitespace().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).map(OsString::from)
    };
    let rows = config
        .iter()
        .map(|(key, value)| (OPTIONS.iter().find(|opt| opt.key == Some(key)).unwrap(), OsString::from(value)));
    let files = [ConfigFile { path: "config.toml".into(), values: rows.collect() }];
    judge(cxx, &expand(text), &|one| gather_sample_settings(one, &value, &files), &find_sample)
}

fn gather_sample_settings(
    own: &[OwnOption],
    value: &impl Fn(&str) -> Option<OsString>,
    files: &[ConfigFile; 1],
) -> OptionValues {
    OptionValues::gather(own, value, files)
}

/// One line for a judgement, which keeps the tables below readable.
fn show(judgement: &CommandJudgement) -> String {
    let mut text = match &judgement.decision {
        CommandDecision::PassThrough(_) => "pass".to_owned(),
        CommandDecision::Disabled => "disabled".to_owned(),
        CommandDecision::Query(query) => format!("{query:?}"),
        CommandDecision::Error(error) => error.code.id.to_owned(),
        CommandDecision::WithPlan(plan) => show_plan(plan),
        CommandDecision::Preprocess(plan) => format!("preprocess {}", show_plan(plan)),
    };
    for (on, word) in [
        (judgement.cxx_mode, "+g++"),
        (judgement.explain == Some(Explain::Text), "+explain"),
        (judgement.explain == Some(Explain::Json), "+json"),
        (!judgement.warnings.is_empty(), "+warning"),
        (!judgement.notes.is_empty(), "+note"),
    ] {
        if on {
            text = format!("{text} {word}");
        }
    }
    text
}

fn show_plan(plan: &WithPlan) -> String {
    let source = match plan.source {
        PlanSource::Token => "token",
        PlanSource::Words => "words",
        PlanSource::Ambient => "ambient",
        PlanSource::Objects => "objects",
    };
    let parts = [
        (plan.device_link, "device"),
        (plan.host_link, "host"),
        (plan.manifest.is_some(), "manifest"),
        (plan.bare_output, "bare"),
    ];
    let parts = parts.iter().filter(|(on, _)| *on).map(|(_, name)| *name);
    let mut text = [source].into_iter().chain(parts).collect::<Vec<_>>().join(" ");
    for (number, pair) in plan.coalescing.iter().flat_map(|coalescing| coalescing.pairs()).enumerate() {
        text += &format!("{}{}=>{}", if number == 0 { " coalesce " } else { "," }, pair.source, pair.target);
    }
    text
}

const T: &str = "-Xoffload-linker --hotswap-plan={P}";
const W: &str = "-Xoffload-linker --hotswap-retarget=gfx1030=>gfx1031";
const G: &str = "HOTSWAP_RETARGET=gfx1030=>gfx1031";
const A: &str = "--offload-arch=gfx1030";

/// Command (with `T`, `W` and `A` for the arguments above), environment, expectation; C++ driver.
#[rustfmt::skip]
const TABLE: &[(&str, &str, &str)] = &[
    // No request.
    ("-c a.cpp", "", "pass"),
    ("A a.hip -o x", "", "pass"),
    ("A -c a.hip", "", "pass"),
    ("--hip-link a.o", "", "pass"),
    ("", "", "pass"),
    ("--version", "", "pass"),
    ("-Xoffload-linker --emit-relocs A a.hip", "", "pass"),
    // A token: the build system's request.
    ("T A a.hip -o x", "", "token device host manifest"),
    ("T A -c a.hip -o a.o", "", "token device"),
    ("T -Xoffload-linker --hotswap-toolchain=0123 A -c a.hip -o a.o", "", "token device"),
    ("-Xoffload-linker --hotswap-toolchain=0123 A -c a.hip -o a.o", "", "pass"),
    ("T A -S a.hip", "", "token device"),
    ("T A -fgpu-rdc -c a.hip", "", "token"),
    ("T A -fgpu-rdc a.hip", "", "token device host manifest"),
    ("T --hip-link a.o -o x", "", "token host manifest"),
    ("T --hip-link -fgpu-rdc A a.o -o x", "", "token device host manifest"),
    ("T --hip-link -shared a.o -o x.so", "", "token host manifest"),
    ("T --hip-link -r a.o -o b.o", "", "token host"),
    ("T --hip-link -fgpu-rdc -r a.o -o b.o", "", "token device host"),
    ("T --emit-static-lib A a.hip -o x.a", "", "token device"),
    ("T a.o -o x", "", "token host manifest"),
    ("T a.cpp -o x", "", "token host manifest"),
    ("T -c a.cpp", "", "pass"),
    ("T -E A a.hip", "", "preprocess token device"),
    ("T -M A a.hip", "", "preprocess token device"),
    ("T -MM A a.hip", "", "preprocess token device"),
    ("T -E A -fgpu-rdc a.hip", "", "preprocess token"),
    ("T -E -dM A a.hip", "", "pass"),
    ("T -E A -x hip -", "", "pass"),
    ("T -E A a.cpp", "", "pass"),
    ("T -E --cuda-host-only A a.hip", "", "pass"),
    ("T -MD -MF d A -c a.hip", "", "token device"),
    ("T -fsyntax-only A a.hip", "", "pass"),
    ("T -x hip A -c a.cpp", "", "token device"),
    ("T -x hip A a.cpp -x none b.o", "", "token device host manifest"),
    ("T -xhip -c -", "", "token device"),
    ("T -### A a.hip", "", "token device host manifest"),
    ("T -flto -fuse-ld=lld A a.hip", "", "token device host manifest"),
    ("T A a.hip dir/{P}.manifest.o", "", "token device host"),
    ("T A a.hip dir/{Q}.manifest.o", "", "token device host manifest"),
    ("T T A -c a.hip", "", "token device"),
    // Two plans with other targets are joined.
    ("T -Xoffload-linker --hotswap-plan={Q} A -c a.hip", "", "objects device"),
    ("T -Xoffload-linker --hotswap-plan={Q} W A -c a.hip", "", "HS0206"),
    ("T -Xoffload-linker --hotswap-plan={Q} -c a.cpp", "", "pass"),
    ("-Xoffload-linker --hotswap-plan=00 A -c a.hip", "", "HS0204"),
    ("-Xoffload-linker-amdgcn-amd-amdhsa --hotswap-plan={P} A -c a.hip", "", "token device"),
    ("-Xoffload-linker --hotswap-plan={Q} A -c a.hip", G, "token device"),
    ("T W A -c a.hip", "", "token device"),
    ("-Xoffload-linker --hotswap-plan={Q} W A -c a.hip", "", "HS0206"),
    ("T -Xoffload-linker --hotswap-policy=keep A -c a.hip", "", "HS0206"),
    ("T -Xoffload-linker --hotswap-policy=error A -c a.hip", "", "token device"),
    ("T --version", "", "pass"),
    ("T -v", "", "pass"),
    ("T -v -print-targets", "", "pass"),
    ("T -dumpmachine a.hip", "", "pass"),
    ("T -print-libgcc-file-name --rtlib=compiler-rt -unwindlib=libgcc", "", "pass"),
    ("T --help", "", "pass"),
    ("T -c", "", "pass"),
    ("T --hip-link -lfoo", "", "token host manifest"),
    // One side only.
    ("T A --offload-device-only a.hip", "", "token device"),
    ("T A --cuda-device-only -c a.hip", "", "token device"),
    ("T A --offload-device-only --no-gpu-bundle-output a.hip", "", "token device bare"),
    ("T A --offload-device-only --no-gpu-bundle-output --gpu-bundle-output a.hip", "", "token device"),
    ("T A --offload-device-only -S a.hip", "", "pass"),
    ("T A --offload-device-only -c -emit-llvm a.hip", "", "pass"),
    ("T A --offload-device-only -fgpu-rdc -c a.hip", "", "pass"),
    ("T A --offload-device-only -c -fhip-emit-relocatable a.hip", "", "pass"),
    ("T A --offload-host-only -c a.hip", "", "pass"),
    ("T --cuda-host-only a.hip -o x", "", "pass"),
    // Requests by arguments.
    ("W A a.hip -o x", "", "words device host manifest"),
    ("W A -c a.hip", "", "words device"),
    ("W -c a.cpp", "", "words"),
    ("W -E a.cpp", "", "pass"),
    ("W A -print-rocm-search-dirs -c a.hip", "", "words device"),
    ("W A -dumpfullversion -c a.hip", "", "words device"),
    ("W A -print-ivar-layout -c a.hip", "", "words device"),
    ("W A --print-rocm-search-dirs -c a.hip", "", "words device"),
    ("W a.hip -o x", "", "words device host manifest"),
    ("W A -c a.hip", "HOTSWAP_RETARGET=junk", "words device"),
    ("W -Xoffload-linker --hotswap-retarget=gfx1030=>gfx1032 A -c a.hip", "", "words device"),
    ("-Xoffload-linker --hotswap-patches=target_note A -c a.hip", "", "words device"),
    ("-Xoffload-linker --hotswap-patches=teleport A -c a.hip", "", "HS0207"),
    ("-Xoffload-linker --hotswap-retarget=junk A -c a.hip", "", "HS0201"),
    ("-Xoffload-linker --hotswap-retarget=gfx1030=>gfx9999 A -c a.hip", "", "HS0202"),
    ("-Xoffload-linker --hotswap-retarget=gfx1030=>gfx1100 A -c a.hip", "", "HS0203"),
    ("-Xoffload-linker --hotswap-retarget=gfx1030=>gfx1100 -Xoffload-linker --hotswap-policy=warn A -c a.hip", "", "words device"),
    ("-Xoffload-linker --hotswap-policy=maybe W A -c a.hip", "", "HS0201"),
    ("-Xoffload-linker --hotswap-retarget=gfx1102=>gfx1150 A -c a.hip", "", "HS0203"),
    ("-Xoffload-linker --hotswap-retarget=gfx1102=>gfx1150 -Xoffload-linker --hotswap-allow=experimental A -c a.hip", "", "words device"),
    ("-Xoffload-linker --hotswap-retarget=gfx1030=>gfx1100 -Xoffload-linker --hotswap-allow=experimental A -c a.hip", "", "HS0203"),
    ("-Xoffload-linker --hotswap-retarget=gfx1102=>gfx11-generic A -c a.hip", "", "words device"),
    ("-Xoffload-linker --hotswap-allow=everything W A -c a.hip", "", "HS0201"),
    ("T -Xoffload-linker --hotswap-allow=experimental A -c a.hip", "", "HS0206"),
    ("-Xoffload-linker --hotswap-policy=keep A -c a.hip", "", "pass"),
    ("-Xoffload-linker --hotswap-policy=keep A -c a.hip", G, "ambient device"),
    ("-Xoffload-linker --hotswap-retraget=x -c a.cpp", "", "HS0001"),
    ("-Xoffload-linker --hotswap-plan= -c a.cpp", "", "HS0001"),
    ("--hotswap-retarget=gfx1030=>gfx1031 A a.hip", "", "HS0001"),
    ("W --driver-mode=cl A -c a.hip", "", "HS0001"),
    ("W --target=amdgcn-amd-amdhsa -mcpu=gfx1030 a.cl -o x", "", "HS0402"),
    ("W --target=amdgcn-amd-amdhsa -mcpu=gfx1030 -c a.cl", "", "pass"),
    ("W -Xoffload-linker --hotswap-policy=keep --target=amdgcn-amd-amdhsa -mcpu=gfx1030 a.cl -o x", "", "pass"),
    ("W --target=aarch64-linux-gnu A a.hip", "", "words device host manifest"),
    ("W --target=x86_64 A a.hip", "", "words device host manifest"),
    ("W --target=riscv64-linux-gnu A a.hip", "", "HS0303"),
    ("W --target=riscv64-linux-gnu A -c a.hip", "", "words device"),
    // Requests by the environment, for HIP commands only.
    ("A a.hip -o x", G, "ambient device host manifest"),
    ("A -c a.hip", G, "ambient device"),
    ("--offload-arch=gfx900,gfx1030 -c a.hip", G, "ambient device"),
    ("--hip-link a.o -o x", G, "ambient host manifest"),
    ("--hip-link -fgpu-rdc A a.o", G, "ambient device host manifest"),
    ("-c a.cpp", G, "pass"),
    ("a.cpp -o x", G, "pass"),
    ("a.o b.o -o x", G, "pass"),
    ("A a.o -o x", G, "pass"),
    ("-c a.cu", G, "pass"),
    ("--hipstdpar A -c a.cpp", G, "ambient device"),
    ("--offload-link a.o", G, "ambient device host manifest"),
    ("--offload-new-driver a.o", G, "ambient host manifest"),
    ("--offload-new-driver -c a.cpp", G, "pass"),
    ("--hipstdpar -fgpu-rdc A a.o", G, "ambient device host manifest"),
    ("-c a.hip", G, "pass +warning"),
    ("-v CMakeHIPCompilerId.hip", G, "pass +warning"),
    ("-c a.hip", "HOTSWAP_RETARGET=gfx1030=>gfx1031 HOTSWAP_POLICY=keep", "pass"),
    ("A --no-offload-arch=all -c a.hip", G, "pass +warning"),
    ("-E a.hip", G, "pass"),
    ("--cuda-host-only a.hip", G, "pass"),
    ("--version", G, "pass"),
    ("-v -print-targets", G, "pass"),
    ("--driver-mode=cl A -c a.hip", G, "ambient device"),
    ("--target=amdgcn-amd-amdhsa a.cl", G, "pass"),
    ("A -c a.hip", "HOTSWAP_RETARGET=", "pass"),
    ("A -c a.hip", "HOTSWAP_RETARGET=junk", "HS0201"),
    ("-c a.cpp", "HOTSWAP_RETARGET=junk", "pass"),
    // A plan of the environment concerns commands that compile for its sources.
    ("--offload-arch=gfx1100 -c a.hip", "HOTSWAP_RETARGET=gfx1030=>gfx1031", "pass +note"),
    ("--offload-arch=gfx1100 -fgpu-rdc -c a.hip", "HOTSWAP_RETARGET=gfx1030=>gfx1031", "pass +note"),
    ("--offload-arch=gfx1100 --hip-link a.o", "HOTSWAP_RETARGET=gfx1030=>gfx1031", "pass +note"),
    ("A -c a.hip", "HOTSWAP_RETARGET=gfx1030=>gfx1031;gfx900=>gfx902", "ambient device +note"),
    ("--offload-arch=native -c a.hip", "HOTSWAP_RETARGET=gfx1030=>gfx1031", "ambient device"),
    ("W --offload-arch=gfx1100 -c a.hip", "", "words device"),
    ("A -c a.hip", "HOTSWAP_POLICY=warn", "pass"),
    ("A -c a.hip", "HOTSWAP_PATCHES=target_note", "ambient device"),
    // OpenMP offload.
    ("W -fopenmp A a.cpp -o x", "", "HS0412"),
    ("W -fopenmp A -c a.cpp", "", "HS0412"),
    ("T -fopenmp A a.o -o x", "", "HS0412"),
    ("T -fopenmp -fopenmp-targets=amdgcn-amd-amdhsa -Xopenmp-target -march=gfx1030 -c a.cpp", "", "HS0412"),
    ("W -fopenmp --offload-targets=amdgpu-amd-amdhsa a.cpp", "", "HS0412"),
    ("W -fopenmp -fopenmp-targets=amdgcn-amd-amdhsa a.hip", "", "HS0412"),
    ("W -fopenmp -fopenmp-targets=nvptx64-nvidia-cuda a.cpp -o x", "", "words host manifest"),
    ("W -Xoffload-linker --hotswap-policy=warn -fopenmp A a.cpp", "", "pass +warning"),
    ("W -Xoffload-linker --hotswap-policy=keep -fopenmp A a.cpp", "", "pass"),
    ("-fopenmp A a.cpp -o x", G, "pass +warning"),
    ("-fopenmp --offload-arch=gfx908 a.cpp -o x", G, "pass"),
    ("-fopenmp --offload-arch=sm_52 a.cpp -o x", G, "pass"),
    ("-fopenmp A -c a.cpp", G, "pass +warning"),
    ("-fopenmp -fopenmp-targets=amdgcn-amd-amdhsa -c a.cpp", G, "pass +warning"),
    ("-fopenmp A -c a.cpp", "HOTSWAP_RETARGET=gfx1030=>gfx1031 HOTSWAP_POLICY=keep", "pass"),
    ("-fopenmp A -E a.cpp", G, "pass"),
    ("-fopenmp -c a.cpp", G, "pass"),
    ("-fopenmp A -fno-openmp -c a.cpp", G, "pass"),
    ("-fopenmp A --version", G, "pass"),
    ("-fopenmp A -c a.cpp", "", "pass"),
    ("-fopenmp --offload-arch=gfx1030,gfx1031 a.cpp -o x", G, "pass"),
    ("W -fopenmp --offload-arch=gfx1030,gfx1031 a.cpp -o x", "", "words host manifest"),
    ("W -fopenmp A a.hip -o x", "", "words device host manifest"),
    ("W -fopenmp A --hip-link a.o -o x", "", "words host manifest"),
    ("-fopenmp A -c a.hip", G, "ambient device"),
    ("-fhotswap-coalesce -fopenmp --offload-arch=gfx1030,gfx1031 a.cpp", "", "pass"),
    // One compilation for several siblings.
    ("-fhotswap-coalesce --offload-arch=gfx1030,gfx1031 -c a.hip", "", "words device coalesce gfx1030=>gfx1031"),
    ("--offload-arch=gfx1030,gfx1031 a.hip -o x -fhotswap-coalesce", "", "words device host manifest coalesce gfx1030=>gfx1031"),
    ("-fhotswap-coalesce -fno-hotswap-coalesce --offload-arch=gfx1030,gfx1031 -c a.hip", "", "pass"),
    ("-fno-hotswap-coalesce --offload-arch=gfx1030,gfx1031 -c a.hip", "HOTSWAP_COALESCE=1", "pass"),
    ("--offload-arch=gfx1030,gfx1031 -c a.hip", "HOTSWAP_COALESCE=1", "ambient device coalesce gfx1030=>gfx1031"),
    ("--offload-arch=gfx1030,gfx1100 -c a.hip", "HOTSWAP_COALESCE=1", "pass"),
    ("--offload-arch=gfx1030,gfx1031 -fgpu-rdc -c a.hip", "HOTSWAP_COALESCE=1", "ambient coalesce gfx1030=>gfx1031"),
    ("-fhotswap-coalesce a.o -o x", "", "pass"),
    ("-fhotswap-coalesce -E --offload-arch=gfx1030,gfx1031 a.hip", "", "preprocess words device coalesce gfx1030=>gfx1031"),
    ("-fhotswap-fast -c a.cpp", "", "HS0001"),
    ("--hotswap-coalesce=1 A -c a.hip", "", "HS0001"),
    ("W -Xoffload-linker --hotswap-coalesce=1 --offload-arch=gfx900,gfx902,gfx1030 -c a.hip", "", "words device coalesce gfx900=>gfx902"),
    ("T -Xoffload-linker --hotswap-coalesce=1 --offload-arch=gfx1030,gfx1031 -c a.hip", "", "token device coalesce gfx1030=>gfx1031"),
    ("T -Xoffload-linker --hotswap-coalesce=1 --offload-arch=gfx900,gfx902 -c a.hip", "", "token device"),
    ("T -fhotswap-coalesce --offload-arch=gfx1030,gfx1031,gfx1032 -c a.hip", "", "token device coalesce gfx1030=>gfx1031"),
    // Switched off, or queries to HotSwap.
    ("T A a.hip", "HOTSWAP_DISABLE=1", "disabled"),
    ("-c a.cpp", "HOTSWAP_DISABLE=1", "disabled"),
    ("T A -c a.hip", "HOTSWAP_DISABLE=0", "token device"),
    ("-c a.cpp", "HOTSWAP_DISABLE=maybe", "HS0104"),
    ("--hotswap-version", "", "Version"),
    ("--hotswap-identity", G, "Identity"),
    ("--hotswap-identity=files", G, "IdentityFiles"),
    ("--hotswap-identity=x", "", "HS0001"),
    ("--hotswap-version", G, "Version"),
    ("--hotswap-help", "", "Help(Text)"),
    ("--hotswap-help=markdown -c a.cpp", "", "Help(Markdown)"),
    ("--hotswap-help=host-options", "", "Help(HostOptions)"),
    ("--hotswap-help=html", "", "HS0001"),
    ("--hotswap-explain -c a.cpp", "", "pass +explain"),
    ("--hotswap-explain=json W A -c a.hip", "", "words device +json"),
    ("-Xoffload-linker --hotswap-explain A -c a.hip", G, "ambient device +explain"),
    ("--hotswap-explain=xml -c a.cpp", "", "HS0001"),
];

fn spell(text: &str) -> String {
    text.split_whitespace().map(expand_word_shorthand).collect::<Vec<_>>().join(" ")
}

fn expand_word_shorthand(word: &str) -> &str {
    match word {
        "T" => T,
        "W" => W,
        "A" => A,
        other => other,
    }
}

#[test]
fn every_scenario_is_decided_as_the_table_says() {
    let mut wrong = Vec::new();
    for (text, env, expected) in TABLE {
        let found = show(&run(true, &spell(text), env, &[]));
        if found != *expected {
            wrong.push(format!("{text} [{env}]: {found}, not {expected}"));
        }
    }
    assert!(TABLE.len() >= 60);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_c_driver_links_hip_code_as_cxx() {
    for (text, expected) in [
        ("A a.hip -o x", "pass +g++"),
        ("--hip-link a.o -o x", "pass +g++"),
        ("-v CMakeHIPCompilerId.hip", "pass +g++"),
        ("--cuda-host-only a.hip -o x", "pass +g++"),
        ("T --hip-link a.o", "token host manifest +g++"),
        ("A -c a.hip", "pass"),
        ("A --offload-device-only a.hip", "pass"),
        ("a.c -o x", "pass"),
        ("a.o -o x", "pass"),
        ("A a.hip b.c -o x", "pass"),
        ("--driver-mode=gcc A a.hip -o x", "pass"),
        ("--version --hip-link a.o", "pass"),
        ("--hip-link", "pass"),
    ] {
        assert_eq!(show(&run(false, &spell(text), "", &[])), expected, "{text}");
    }
    assert_eq!(show(&run(false, &spell("A a.hip"), "HOTSWAP_DISABLE=1", &[])), "disabled");
}

#[test]
fn a_configuration_file_asks_as_the_environment_does() {
    let config = [("retarget", PAIR), ("policy", "warn")];
    let judgement = run(true, "--offload-arch=gfx1030 -c a.hip", "HOTSWAP_POLICY=keep", &config);
    let CommandDecision::WithPlan(plan) = judgement.decision else { panic!("{:?}", judgement.decision) };
    assert_eq!((plan.source, plan.plan.policy), (PlanSource::Ambient, Policy::Keep));
    let judgement = run(true, "-c a.hip --offload-arch=gfx1030", "", &[("policy", "maybe"), ("retarget", PAIR)]);
    let CommandDecision::Error(error) = judgement.decision else { panic!("{:?}", judgement.decision) };
    assert!(error.what.starts_with("config.toml: "), "{}", error.what);
}

#[test]
fn words_replace_the_environment_option_by_option() {
    let judgement = run(true, &spell("W A -c a.hip"), "HOTSWAP_RETARGET=gfx900=>gfx902 HOTSWAP_POLICY=warn", &[]);
    let CommandDecision::WithPlan(plan) = judgement.decision else { panic!("{:?}", judgement.decision) };
    assert_eq!(plan.plan.targets().into_iter().collect::<Vec<_>>(), ["gfx1031"]);
    assert_eq!(plan.plan.policy, Policy::Warn);
    assert_eq!(plan.hash, plan.plan.hash());
}
