//! Statements of `docs/guide/compiler.md` that no other test holds, each as a script that succeeds where the statement is true.

use hotswap_tests::mode::write_sources;
use hotswap_tests::{Bench, Call, Clang, in_turn, parallel, say};

/// Its workgroups may have 1024 lanes, for which gfx1102 has fewer vector registers than the kernel uses.
const BIG: &str = r#"#include "hip.h"
__attribute__((global)) void big(int *p, int n) {
  int kept[140];
  int lane = __builtin_amdgcn_workitem_id_x();
#pragma unroll
  for (int i = 0; i < 140; ++i)
    kept[i] = p[i * 1024 + lane];
  __asm__ volatile("" ::: "memory");
#pragma unroll
  for (int i = 0; i < 140; ++i)
    p[i * 1024 + lane] = kept[139 - i];
}
int main() {}
"#;
const UNIT: &str = "#include \"hip.h\"\n__attribute__((global)) void NAME(int *p) { p[0] = p[1] * 3; }\n";

/// One statement. In scripts `$H` is HotSwap's C++ compiler with the arguments that every HIP command needs, `$C` the real clang with
/// the same, `$P` the installation, `$W` these arguments. `refuses CODE TEXT COMMAND…` succeeds where the command prints the text
/// and ends with that code.
struct Fact {
    statement: &'static str,
    script: &'static str,
    /// The statement is about this version of clang alone.
    version: Option<u32>,
}

const fn fact(statement: &'static str, script: &'static str) -> Fact {
    Fact { statement, script, version: None }
}

const PRELUDE: &str = r#"
set -eu
refuses() {
  code=$1 text=$2; shift 2
  set +e; "$@" >said 2>&1; ended=$?; set -e
  [ $ended = $code ] && grep -q -e "$text" said || { echo "ended with $ended: $(cat said)"; exit 1; }
}
has() { "$P/bin/hotswap" verify --require "$1" "$2" >said 2>&1 || { cat said; exit 1; }; }
plan() { echo "-Xoffload-linker --hotswap-retarget=$1"; }
"#;

const FACTS: &[Fact] = &[
    Fact {
        version: Some(22),
        ..fact(
            "a plan of the environment is for CMake's HIP and for C++ with hip::device",
            r#"mkdir outside; cp one.hip two.cpp
            printf '%s\n' 'cmake_minimum_required(VERSION 3.27)' 'project(outside LANGUAGES CXX HIP)' 'find_package(hip REQUIRED)' \
              'add_library(hip OBJECT ../one.hip)' 'add_library(cxx OBJECT ../two.cpp)' 'target_link_libraries(cxx hip::device)' \
              >outside/CMakeLists.txt
            export HOTSWAP_RETARGET='gfx1030=>gfx1031'
            for compiler in $P/lib/hotswap/clang/clang++ ${C%% *}; do
              rm -rf b; cmake -S outside -B b -DCMAKE_HIP_ARCHITECTURES=gfx1030 -DGPU_TARGETS=gfx1030 \
                -DCMAKE_HIP_COMPILER=$P/bin/hotswap-clang++ -DCMAKE_CXX_COMPILER=$compiler >said 2>&1 || { cat said; exit 1; }
              cmake --build b >said 2>&1 || { cat said; exit 1; }
              has gfx1030,gfx1031 "$(find b -name one.hip.o)"
              object=$(find b -name two.cpp.o)
              case $compiler in
                $P/*) has gfx1030,gfx1031 "$object" ;;
                *) refuses 13 gfx1031 "$P/bin/hotswap" verify --require gfx1030,gfx1031 "$object" ;;
              esac
            done"#,
        )
    },
    fact(
        "hipcc runs the compiler in HIP_CLANG_PATH",
        r#"export HOTSWAP_RETARGET='gfx1030=>gfx1031' HIP_CLANG_PATH=$P/lib/hotswap/clang
        hipcc $W --offload-arch=gfx1030 -c a.hip -o a.o
        has gfx1030,gfx1031 a.o"#,
    ),
    fact(
        "a namespace makes an environment's plan part of ccache's key",
        r#"export CCACHE_DIR=$PWD/cache CCACHE_COMPILERTYPE=clang
        for gpu in gfx1031 gfx1032 gfx1031; do
          export HOTSWAP_RETARGET="gfx1030=>$gpu"
          export CCACHE_NAMESPACE="$HOTSWAP_RETARGET"
          ccache $H --offload-arch=gfx1030 -c a.hip -o a.o
          has gfx1030,$gpu a.o
        done
        ccache --print-stats | grep -E '^(direct|preprocessed)_cache_hit.1$'"#,
    ),
    fact(
        "a plan file is part of ccache's key as an extra file",
        r#"export CCACHE_DIR=$PWD/cache CCACHE_COMPILERTYPE=clang CCACHE_EXTRAFILES=$PWD/plan
        for gpu in gfx1031 gfx1032; do
          rm -rf made; "$P/bin/hotswap" plan "gfx1030=>$gpu" --out-dir made >said
          cp made/* plan
          ccache $H --offload-arch=gfx1030 -Xoffload-linker --hotswap-plan-file=$PWD/plan -c a.hip -o a.o
          has gfx1030,$gpu a.o
        done"#,
    ),
    fact(
        "a buster makes an environment's plan part of sccache's key",
        r#"export SCCACHE_DIR=$PWD/cache SCCACHE_SERVER_UDS=$PWD/server SCCACHE_IDLE_TIMEOUT=60
        trap 'sccache --stop-server >stopped 2>&1' EXIT
        for gpu in gfx1031 gfx1032 gfx1031; do
          sccache --stop-server >stopped 2>&1 || :
          export HOTSWAP_RETARGET="gfx1030=>$gpu"
          export SCCACHE_C_CUSTOM_CACHE_BUSTER="$HOTSWAP_RETARGET"
          sccache $H --offload-arch=gfx1030 -c a.hip -o a.o
          has gfx1030,$gpu a.o
        done
        sccache --show-stats | grep -E '^Cache hits +1$'"#,
    ),
    fact(
        "a plan in flags that a shell expands again is quoted",
        r#"mkdir quoted
        printf '%s\n' 'cmake_minimum_required(VERSION 3.27)' 'project(quoted LANGUAGES CXX)' \
          'set_source_files_properties(../a.hip PROPERTIES LANGUAGE CXX)' 'add_library(kernels OBJECT ../a.hip)' >quoted/CMakeLists.txt
        for tool in Ninja 'Unix Makefiles'; do
          cmake -G "$tool" -S quoted -B "built by $tool" -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY \
            -DCMAKE_CXX_COMPILER=$P/lib/hotswap/clang/clang++ \
            -DCMAKE_CXX_FLAGS="$W -x hip --offload-arch=gfx1030 -Xoffload-linker '--hotswap-retarget=gfx1030=>gfx1031'" >said
          cmake --build "built by $tool" >said
          has gfx1030,gfx1031 "$(find "built by $tool" -name 'a.hip.o')"
        done"#,
    ),
    Fact {
        version: Some(22),
        ..fact(
            "objects without an ID of their compilation cannot be linked together",
            r#"for name in one two; do
              $C --offload-arch=gfx1030 -fuse-cuid=none -c $name.hip -o $name.o
            done
            refuses 1 __hip_cuid_ $C -shared -nostdlib -fuse-ld=lld one.o two.o -o out.so"#,
        )
    },
    fact(
        "options for the host reach clang unchanged with 0, and go to the host's code with 1, with and without a plan",
        r#"export HOTSWAP_CONFIG=$PWD/config.toml
        : > config.toml
        hot="$H --offload-arch=gfx1030 -fcf-protection -c a.hip -o a.o"
        refuses 1 cf-protection $hot
        refuses 1 cf-protection $hot $(plan 'gfx1030=>gfx1031') -Xoffload-linker --hotswap-host-options=0
        $hot $(plan 'gfx1030=>gfx1031')
        HOTSWAP_HOST_OPTIONS=1 $hot
        $hot -Xoffload-linker --hotswap-host-options=1
        echo 'host-options = "1"' > config.toml
        $hot"#,
    ),
    fact(
        "options in clang's configuration files are read by clang alone",
        r#"echo "-fcf-protection" > refused.cfg
        echo "-Xarch_host -fcf-protection" > accepted.cfg
        hot="$H --offload-arch=gfx1030 $(plan 'gfx1030=>gfx1031') -c a.hip -o a.o"
        refuses 1 cf-protection $hot --config=$PWD/refused.cfg
        $hot --config=$PWD/accepted.cfg
        has gfx1030,gfx1031 a.o"#,
    ),
    fact(
        "an option for one GPU in clang's configuration files leaves nothing to derive",
        r#"echo "-O2" > plain.cfg
        echo "-Xarch_gfx1031 -O0" > one.cfg
        for file in plain one; do
          $H --offload-arch=gfx1030 $(plan 'gfx1030=>gfx1031') --config=$PWD/$file.cfg -c a.hip -o $file.o
          "$P/bin/hotswap" list $file.o > $file
        done
        $H --offload-arch=gfx1030,gfx1031 -fhotswap-coalesce --config=$PWD/one.cfg -c a.hip -o coalesced.o
        grep 'gfx1031.*retargeted from gfx1030' plain
        grep 'gfx1031.*compiled' one
        "$P/bin/hotswap" list coalesced.o > one
        grep 'gfx1031.*compiled' one"#,
    ),
    fact(
        "code that does not fit fails the build, with the kernel and the reason",
        r#"refuses 13 'HS0408.*_Z3bigPii.*192 VGPRs' $H --offload-arch=gfx1100 $(plan 'gfx1100=>gfx1102') -c big.hip -o big.o
        [ ! -e big.o ]"#,
    ),
    fact(
        "a source on standard input cannot be compiled again",
        r#"hot="$H --offload-arch=gfx1100 $(plan 'gfx1100=>gfx1102') -Xoffload-linker --hotswap-policy=compile"
        $hot -c big.hip -o big.o
        has gfx1100,gfx1102 big.o
        [ "$(sh -c "$hot -x hip -c - -o none.o < big.hip" 2>&1 | grep -c 'error: \[HS0')" = 1 ]
        [ ! -e none.o ]"#,
    ),
    fact(
        "a GPU is left out with a warning, or only in the record",
        r#"for policy in warn keep; do
          $H --offload-arch=gfx1100 $(plan 'gfx1100=>gfx1102') -Xoffload-linker --hotswap-policy=$policy -c big.hip -o $policy.o 2>$policy
          "$P/bin/hotswap" inspect $policy.o > record
          grep -q 'left out: gfx1100=>gfx1102' record
          refuses 13 gfx1102 "$P/bin/hotswap" verify --require gfx1100,gfx1102 $policy.o
        done
        grep -q 'warning.*gfx1102' warn
        [ ! -s keep ]"#,
    ),
    fact(
        "units of plans that differ in more than their targets are refused",
        r#"unit="$H -fPIC --offload-new-driver -fgpu-rdc --offload-arch=gfx1030"
        $unit $(plan 'gfx1030=>gfx1031') -c one.hip -o one.o
        $unit $(plan 'gfx1030=>gfx1032') -Xoffload-linker --hotswap-allow=experimental -c two.hip -o two.o
        refuses 11 HS0210 $unit --hip-link -shared -nostdlib one.o two.o -o out.so
        $unit $(plan 'gfx1030=>gfx1032') -c two.hip -o two.o
        $unit --hip-link -shared -nostdlib one.o two.o -o out.so
        has gfx1030,gfx1031,gfx1032 out.so"#,
    ),
    Fact {
        version: Some(22),
        ..fact(
            "a link of the old driver must request the GPU of a unit's source",
            r#"old="$H -fPIC --no-offload-new-driver -fgpu-rdc"
            $old --offload-arch=gfx1030,gfx1100 $(plan 'gfx1030=>gfx1031') -c one.hip -o one.o
            refuses 13 HS0401 $old --offload-arch=gfx1100 --hip-link -shared -nostdlib one.o -o out.so
            [ ! -e out.so ]"#,
        )
    },
    fact(
        "a link for Windows that carries a plan out needs the library for Windows",
        r#"windows="$H --target=x86_64-pc-windows-msvc -nogpulib --offload-new-driver -fgpu-rdc --offload-arch=gfx1030"
        $windows $(plan 'gfx1030=>gfx1031') -c one.hip -o one.obj
        refuses 10 HS0105 $windows --hip-link one.obj -o one.exe"#,
    ),
];

fn judge(bench: &Bench, clang: &Clang, fact: &Fact) -> Result<(), String> {
    let scratch = bench.scratch();
    write_sources(&scratch, false);
    scratch.write("big.hip", BIG);
    for name in ["one", "two"] {
        scratch.write(&format!("{name}.hip"), UNIT.replace("NAME", name));
    }
    let words = [&clang.light()[..], &["-O2".to_owned()]].concat().join(" ");
    let script = format!("{PRELUDE}\n{}", fact.script);
    let call = Call::new(bench, &scratch.inside, &["sh", "-c", &script])
        .env("HOTSWAP_CLANG", clang.program.clone())
        .env("P", bench.prefix.display().to_string())
        .env("H", format!("{} {words}", bench.installed("bin/hotswap-clang++")))
        .env("C", format!("{} {words}", clang.program))
        .env("W", words);
    let ran = call.run();
    if ran.ok() { Ok(()) } else { Err(format!("{}\n{}", ran.brief(), ran.stdout)) }
}

#[test]
fn statements_of_the_page_hold() {
    let Some(bench) = Bench::ready("page facts") else { return };
    let facts: Vec<&Fact> = FACTS.iter().filter(|fact| fact.version.is_none()).collect();
    let mut cases = in_turn("page facts", &facts, &bench.clangs, |_| false);
    let single: Vec<&Fact> = FACTS.iter().filter(|fact| fact.version.is_some()).collect();
    cases.extend(single.iter().filter_map(|fact| Some((bench.clang(fact.version?)?, fact))));
    let results = parallel(&cases, |(clang, fact)| judge(&bench, clang, fact));
    say(&format!("page facts: {} of {} hold", results.iter().flatten().count(), cases.len()));
    let wrong = cases.iter().zip(&results).filter_map(|((clang, fact), result)| {
        Some(format!("clang {}, {}: {}", clang.version, fact.statement, result.as_ref().err()?))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
