//! Warm headers against clang: object, messages, exit code and dependencies are those of the real compiler, for every state of the
//! headers and of the cache.

#[allow(dead_code, reason = "other tests use the rest")]
mod common;

use common::{Bench, ok};

/// Functions of the scripts. `both` compiles `$words` by clang and by the wrapper, and prints the label with `same` or what differs;
/// `state` prints what `--hotswap-explain` says.
const FUNCTIONS: &str = r#"
rocm=${HIP%-nogpuinc}
compile() {
    rm -f s.o s.d
    "$@" $rocm $words -MD -MF s.d -c s.hip -o s.o 2>messages
    echo "code $?" >>messages
    tr -d '\\' <s.d 2>/dev/null | tr ' ' '\n' | grep . | sort -u >names
    [ ! -e s.o ] || cp s.o object
}
both() {
    rm -f object; compile $R; rm -rf plain; mkdir plain; mv messages names plain/; [ ! -e object ] || mv object plain/
    compile $W -fhotswap-warm-headers
    rm -rf warm; mkdir warm; mv messages names warm/; [ ! -e object ] || mv object warm/
    diff -r plain warm >differences && echo "$1: same" || { echo "$1: different"; cat differences; }
}
state() { $W -fhotswap-warm-headers --hotswap-explain $rocm $words -c s.hip -o s.o | grep "^warm headers"; }
"#;

const SOURCE: &str = r#"// a comment
#include <hip/hip_runtime.h>
#include <cmath>

__global__ void kernel(float *out, float x) { int unused; out[threadIdx.x] = sinf(x) + blockIdx.x; }

int main() { kernel<<<1, 64>>>(nullptr, 2); return int(std::sqrt(4.0)); }
"#;

/// The script after [`FUNCTIONS`], its output.
fn run(bench: &Bench, version: u32, script: &str) -> String {
    ok(&bench.run(version, &format!("{FUNCTIONS}{script}"))).0
}

fn has_headers(bench: &Bench, version: u32) -> bool {
    let script = "$R ${HIP%-nogpuinc} --offload-arch=gfx1030 -fsyntax-only -x hip -include hip/hip_runtime.h /dev/null";
    bench.run(version, script).status.success()
}

#[test]
fn the_output_is_clangs_whether_or_not_headers_are_warm() {
    let Some(bench) = Bench::new("the_output_is_clangs_whether_or_not_headers_are_warm") else { return };
    std::fs::write(bench.at("s.hip"), SOURCE).unwrap();
    let mut states = Vec::new();
    for version in bench.versions().into_iter().filter(|version| has_headers(&bench, *version)) {
        let script = "words='-O2 -Wall --offload-arch=gfx1030'; both first; both made; both warm; state; \
                      words='-O0 --offload-arch=gfx1030'; both first; both made; both warm";
        let said = run(&bench, version, script);
        let wrong: Vec<&str> = said.lines().filter(|line| !line.ends_with(": same") && !is_state(line)).collect();
        assert!(wrong.is_empty(), "clang {version}: {said}");
        states.extend(said.lines().filter(|line| is_state(line)).map(str::to_owned));
    }
    // Which versions of clang make equal objects is theirs.
    assert!(states.iter().any(|state| state.starts_with("warm headers: from ")), "{states:?}");
    let is_known = |state: &String| state.contains(": from ") || state.contains("makes another object");
    assert!(states.iter().all(is_known), "{states:?}");
}

fn is_state(line: &str) -> bool {
    line.starts_with("warm headers: ")
}

#[test]
fn headers_that_change_are_never_read_from_an_old_form() {
    let Some(bench) = Bench::new("headers_that_change_are_never_read_from_an_old_form") else { return };
    let script = r#"
mkdir -p early late
printf '#include <own.h>\n__attribute__((device)) int before;\n' >s.hip
echo '__attribute__((device)) int result = own();' >>s.hip
own() { printf '#pragma once\n__attribute__((device)) constexpr int own() { return %s; }\n' $1 >$2/own.h; touch -d "$3" $2/own.h; }
words="-O2 -nogpuinc -I$PWD/early -I$PWD/late --offload-arch=gfx1030"
own 1 late '1 hour ago'; both first; both made; both warm; state
own 2 late '2 hours ago'; both edited; state
own 3 late now; both 'just written'
own 3 late '90 minutes ago'; both settled; state
own 4 early '1 hour ago'; both 'another one earlier in the search'; both again; state
rm early/own.h; own 5 late '1 hour ago'; both 'and gone again'; both again; state
for one in home/.cache/hotswap/warm-headers/headers/*/header.pch; do truncate -s 4000 $one; done; both truncated; state
set -- home/.cache/hotswap/warm-headers/headers/*/header.pch; cp "$1" kept.pch; cp "$2" "$1"; cp kept.pch "$2"; both 'exchanged'; state
own 5 late '1 hour'; both 'from the future'; both 'still from the future'; own 5 late '1 hour ago'; both 'of the past again'; state
rm -r home/.cache; (trap '' XFSZ; ulimit -f 2000; both 'a full disk'; both 'a disk that is still full'); both 'room again'; both 'made then'; state
mkdir old; for one in home/.cache/hotswap/warm-headers/headers/*/; do cp -p $one/header.pch old/$(basename $one); done
own 6 late '3 hours ago'; both 'edited once more'
for one in old/*; do cp -p $one home/.cache/hotswap/warm-headers/headers/$(basename $one)/header.pch; done
both 'old ones put in their place by hand'; state
printf '#pragma once\ntemplate <typename T> __attribute__((device)) T twice(T x) { int unused; return 2 * x; }\n' >early/t.h; touch -d '1 hour ago' early/t.h
sed -i '1i #include <t.h>' s.hip; echo '__attribute__((device)) int two = twice(1);' >>s.hip
words="$words -Wall"; both 'a message about a header'; both made; both warm; state; grep -q 'unused variable' plain/messages || echo 'no message'
echo 'error;' >>s.hip; both 'an error in the source'
rm -r home/.cache; both removed
mkdir home/.cache; touch home/.cache/hotswap; both 'no cache'
rm home/.cache/hotswap; sed -i '/error/d' s.hip; own 7 late '1 hour ago'
words="-O2 -nogpuinc -iquote$PWD/early -I$PWD/late --offload-arch=gfx1030"
printf '#include "own.h"\n__attribute__((device)) int result = own();\n' >s.hip
own 8 late '1 hour ago'; both 'with quotes'; both again; both warm; state
own 9 early '1 hour ago'; both 'in a directory for quotes'; both again; both warm; state
own 1 . '1 hour ago'; both 'beside the source'; both again; rm own.h; both 'gone from there'; state
printf '#include "record"\n__attribute__((device)) int result = own();\n' >s.hip; cp -p late/own.h late/record; both 'a name of ours'; both again; both warm
words='-O2 -nogpuinc -Iearly -Ilate --offload-arch=gfx1030'; both 'a relative directory'; both again
"#;
    let version = bench.versions()[0];
    let said = run(&bench, version, script);
    let (states, answers): (Vec<&str>, Vec<&str>) = said.lines().partition(|line| is_state(line));
    assert!(answers.iter().all(|line| line.ends_with(": same")), "{said}");
    assert_eq!(answers.len(), 41, "{said}");
    assert!(states.iter().all(|state| state.starts_with("warm headers: from ")), "{said}");
    assert_eq!(states.len(), 14, "{said}");
}

#[test]
fn a_longer_beginning_gets_headers_of_its_own_where_it_adds_much() {
    let Some(bench) = Bench::new("a_longer_beginning_gets_headers_of_its_own_where_it_adds_much") else { return };
    let script = r#"
mkdir inc
header() { { echo '#pragma once'; yes '// as large as headers are' | head -n $2; } >inc/$1.h; touch -d '1 hour ago' inc/$1.h; }
header large 400; header small 10; header also_large 400
words="-O2 -nogpuinc -I$PWD/inc --offload-arch=gfx1030"
for second in small also_large; do
    printf '#include <large.h>\n#include <%s.h>\n__attribute__((device)) int after;\n' $second >s.hip
    for turn in 1 2 3 4 5 6; do both $second; done; state
done
echo "little: $(cat home/.cache/hotswap/warm-headers/headers/*/record | grep -c 'few more bytes')"
echo "long: $(grep -l also_large home/.cache/hotswap/warm-headers/headers/*/prefix.hip | wc -l)"
"#;
    let said = run(&bench, bench.versions()[0], script);
    let answers = said.lines().filter(|line| line.ends_with(": same")).count();
    assert_eq!(answers, 12, "{said}");
    assert_eq!(said.lines().filter(|line| line.starts_with("warm headers: from ")).count(), 2, "{said}");
    // One for the host and one for the GPU.
    assert!(said.contains("little: 1\nlong: 2\n"), "{said}");
}

#[test]
fn commands_that_cannot_have_warm_headers_are_told_why() {
    let Some(bench) = Bench::new("commands_that_cannot_have_warm_headers_are_told_why") else { return };
    let script = r#"
touch b.hip
state_of() { $W -fhotswap-warm-headers --hotswap-explain $HIP --offload-arch=gfx1030 "$@" | grep "^warm headers"; }
state_of -c a.hip b.hip; state_of -fgpu-rdc -c a.hip; state_of -c main.cpp; state_of -c -x hip -; state_of -fsyntax-only a.hip
state_of -include a.hip -c b.hip; state_of -Weverything -c a.hip; state_of -Wp,-MD,a.d -fuse-cuid=none -c a.hip
DEPENDENCIES_OUTPUT=x.d state_of -c a.hip
HOTSWAP_WARM_HEADERS=perhaps $W -c a.hip 2>&1; HOTSWAP_WARM_HEADERS=auto $W -fno-hotswap-warm-headers --hotswap-explain -c a.hip | grep -c "^warm"
true
"#;
    let said = run(&bench, bench.versions()[0], script);
    for (line, reason) in said.lines().zip([
        "several sources",
        "another order",
        "no HIP source",
        "standard input",
        "no code",
        "included before",
        "warnings about headers",
        "dependencies are written",
        "dependencies are written",
        "none of off, implicit and auto",
        "0",
    ]) {
        assert!(line.contains(reason), "{line}: {reason}");
    }
    assert_eq!(said.lines().count(), 11, "{said}");
}
