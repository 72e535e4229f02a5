//! `hotswap check`: rewritten code against its original, two compiles, planted faults, and code that cannot be compared.

mod made;

use assert_cmd::assert::Assert;
use hotswap_userland::Workbench;
use made::RunsHotswap;
use predicates::prelude::*;
use predicates::str::contains;

const KERNEL: &str = "#define KERNEL extern \"C\" __attribute__((global)) void
#define LANE __builtin_amdgcn_workitem_id_x()
__attribute__((shared)) unsigned tile[2048];
KERNEL turned(const unsigned *in, unsigned *out, unsigned n) {
    unsigned at = LANE + n;
    tile[at & 1023] = in[LANE];
    __builtin_amdgcn_s_barrier();
    out[LANE] = tile[at & 1023] * FACTOR + tile[(at & 1023) + 7];
}
KERNEL racing(volatile unsigned *out) {
    // One lane of each wave.
    for (unsigned k = 0; k < 400; ++k) if (LANE % 32 == 0) out[0] = out[0] * FACTOR + LANE + k;
}
KERNEL meeting(const unsigned *in, unsigned *out) {
    unsigned at = in[LANE] & 15;
    tile[at + 1] = in[LANE + 64] * FACTOR;
    tile[at] = in[LANE + 128];
    __builtin_amdgcn_s_barrier();
    out[LANE] = tile[at + 1];
}
KERNEL wide(unsigned *out, int n) { if (LANE > 200 && n > 100) out[LANE] = FACTOR; }
KERNEL endless(unsigned *out) { while (__atomic_load_n(out, 0) != 3) {} }
#ifndef NEW
KERNEL formatted(float *out) {
    float x;
    asm volatile(\"buffer_load_format_x %0, off, s[0:3], m0\\n s_waitcnt vmcnt(0)\" : \"=v\"(x));
    out[LANE] = x;
}
#endif
";

struct CheckBench(Workbench);

impl CheckBench {
    fn new(test: &str) -> Option<Self> {
        let bench = Self(Workbench::new(test)?);
        bench.0.write("k.hip", KERNEL.as_bytes());
        Some(bench)
    }

    fn compile(&self, to: &str, words: &str) {
        let clang = self.0.versions[0];
        let fixed = "--offload-device-only -nogpuinc -nogpulib --no-gpu-bundle-output";
        self.0.run(&format!("clang++-{clang} {fixed} {words} k.hip -o {to}"));
    }

    fn hotswap(&self, words: &[&str]) -> Assert {
        self.0.hotswap(words).assert()
    }

    fn check(&self, before: &str, after: &str, words: &[&str]) -> Assert {
        self.hotswap(&[&["check", "--before", before, "--after", after], words].concat())
    }
}

/// `ds_load_2addr_b32`, `ds_load_b32`: kept or halved, one of them is in every rewritten kernel.
fn with_another_offset(mut bytes: Vec<u8>) -> Vec<u8> {
    let is_load = |word: &[u8]| matches!(word, [_, _, 0xd8 | 0xdc, 0xd8]);
    let at = (0..bytes.len()).step_by(4).find(|at| is_load(&bytes[*at..at + 4])).expect("a load of LDS");
    bytes[at] ^= 4;
    bytes
}

#[test]
fn rewritten_code_does_the_same_and_a_planted_fault_does_not() {
    let Some(bench) = CheckBench::new("rewritten_code_does_the_same_and_a_planted_fault_does_not") else { return };
    bench.compile("k.co", "--offload-arch=gfx1250 -O2 -g -DFACTOR=1 -DNEW -Wl,--emit-relocs");
    bench.hotswap(&["rewrite", "k.co", "--to", "gfx1250-strict", "-o", "made.co"]).success();
    let turned = ["--kernel", "turned"];
    bench.check("k.co", "made.co", &turned).success().stdout(contains("turned: equal; "));
    // The certificate of a rewrite says nothing of a file that is rewritten itself.
    let again = bench.check("made.co", "made.co", &turned).success();
    again.stdout("turned: equal; 16 launches\n");
    bench.0.write("wrong.co", &with_another_offset(bench.0.read("made.co")));
    let wrong = bench.check("k.co", "wrong.co", &turned).code(13).stderr(contains("[HS0434] wrong.co: turned: "));
    wrong.stdout(contains("turned: different").and(contains("at the start")).and(contains("(k.hip:")));
    let json = bench.check("k.co", "wrong.co", &[&turned[..], &["--format", "json"]].concat()).code(13);
    json.stdout(contains("\"schema\": 1").and(contains("\"equal\": false")).and(contains("\"line\": \"k.hip:")));
}

#[test]
fn two_compiles_are_compared_by_launches() {
    let Some(bench) = CheckBench::new("two_compiles_are_compared_by_launches") else { return };
    for (file, words) in [
        ("plain.co", "--offload-arch=gfx1100 -O0 -DFACTOR=3"),
        ("fast.co", "--offload-arch=gfx1100 -O3 -DFACTOR=3"),
        ("other.co", "--offload-arch=gfx1100 -O3 -g -DFACTOR=5"),
        ("newer.co", "--offload-arch=gfx1201 -O1 -DFACTOR=3 -DNEW"),
    ] {
        bench.compile(file, words);
    }
    let turned = ["--kernel", "turned"];
    bench.check("plain.co", "fast.co", &turned).success().stdout("turned: equal; 16 launches\n");
    bench.check("fast.co", "plain.co", &["--kernel", "turned", "--launches", "3"]).success();
    bench.check("plain.co", "newer.co", &turned).success();
    // Only the last lanes of a large work-group differ.
    bench.check("fast.co", "other.co", &["--kernel", "wide"]).code(13).stdout(contains("wide: different"));
    let other = bench.check("fast.co", "other.co", &turned).code(13);
    other.stdout(contains("k.hip:8").and(contains("stored by lane"))).stderr(contains("[HS0434]"));
}

#[test]
fn the_order_of_waves_is_no_difference() {
    let Some(bench) = CheckBench::new("the_order_of_waves_is_no_difference") else { return };
    // Turns end in other rounds of the loop where a round has more instructions.
    bench.compile("plain.co", "--offload-arch=gfx1100 -O0 -DFACTOR=3");
    bench.compile("fast.co", "--offload-arch=gfx1100 -O3 -DFACTOR=3");
    bench.compile("other.co", "--offload-arch=gfx1100 -O3 -DFACTOR=5");
    let racing = ["--kernel", "racing"];
    let same = bench.check("plain.co", "fast.co", &racing).success();
    same.stdout(contains("racing: equal; ").and(contains("more depend on the order of waves")));
    // Launches of one wave have an order.
    bench.check("fast.co", "other.co", &racing).code(13).stdout(contains("racing: different"));
}

#[test]
fn the_order_of_lanes_that_store_to_one_place_is_no_difference() {
    let Some(bench) = CheckBench::new("the_order_of_lanes_that_store_to_one_place_is_no_difference") else { return };
    // One instruction stores both elements, the lower one first.
    bench.compile("plain.co", "--offload-arch=gfx1100 -O0 -DFACTOR=3");
    bench.compile("fast.co", "--offload-arch=gfx1100 -O3 -DFACTOR=3");
    bench.compile("other.co", "--offload-arch=gfx1100 -O3 -DFACTOR=5");
    let meeting = ["--kernel", "meeting"];
    let same = bench.check("plain.co", "fast.co", &meeting).success();
    same.stdout(contains("meeting: equal; ").and(contains("more depend on the order of lanes")));
    // Launches of one lane have an order.
    bench.check("fast.co", "other.co", &meeting).code(13).stdout(contains("meeting: different"));
}

#[test]
fn what_cannot_be_executed_is_named_and_not_equal() {
    let Some(bench) = CheckBench::new("what_cannot_be_executed_is_named_and_not_equal") else { return };
    bench.compile("k.co", "--offload-arch=gfx1100 -O2 -DFACTOR=3");
    let check = |name: &str| bench.check("k.co", "k.co", &["--kernel", name]);
    check("formatted").code(13).stderr(contains("[HS0435]").and(contains("unknown instruction buffer_load_format_x")));
    check("endless").code(13).stderr(contains("[HS0435]").and(contains("no launch ends within the budget")));
    check("third").code(12).stderr(contains("the file before has no kernel `third`"));
    bench.check("k.co", "k.co", &[]).code(13).stdout(contains("turned: equal"));
    bench.check("k.co", "k.co", &["--kernel", "turned", "--launches", "0"]).code(13).stderr(contains("nothing of it"));
    bench.0.write("cut.co", &bench.0.read("k.co")[..900]);
    bench.check("k.co", "cut.co", &[]).code(12);
    bench.check("k.co", "missing.co", &[]).code(14);
}

/// LDS at two addresses, a table among the constants, and a function that is called.
const RELOCATABLE: &str = "typedef unsigned u;
__attribute__((address_space(3), loader_uninitialized)) static u tile[2048];
__attribute__((used)) static const u table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__attribute__((noinline)) static u mixed(u x) { return table[x & 7] * FACTOR + x; }
__attribute__((amdgpu_kernel)) void turned(__attribute__((address_space(1))) const u *in,
                                           __attribute__((address_space(1))) u *out) {
    u lane = __builtin_amdgcn_workitem_id_x();
    tile[lane & 1023] = in[lane];
    __builtin_amdgcn_s_barrier();
    out[lane] = mixed(tile[lane & 1023]) + tile[(lane & 1023) + 7];
}
__attribute__((amdgpu_kernel)) void outside(__attribute__((address_space(1))) u *out) {
    extern u elsewhere(u);
    CALL(out[0] = elsewhere(out[1]);)
}
";

#[test]
fn relocatable_files_are_executed_as_if_they_were_linked() {
    let Some(bench) = CheckBench::new("relocatable files are compared") else { return };
    bench.0.write("k.c", RELOCATABLE.as_bytes());
    let clang = bench.0.versions[0];
    let compile = |to: &str, words: &str| {
        let fixed = "--target=amdgcn-amd-amdhsa -mcpu=gfx1250 -nogpulib -w -c k.c";
        bench.0.run(&format!("clang-{clang} {fixed} {words} -o {to}"));
    };
    let plain = "'-DCALL(x)=' -DFACTOR=3";
    compile("plain.o", &format!("-O0 {plain}"));
    compile("fast.o", &format!("-O2 {plain}"));
    compile("other.o", "-O2 '-DCALL(x)=' -DFACTOR=5");
    compile("open.o", "-O2 '-DCALL(x)=x' -DFACTOR=3");
    let turned = ["--kernel", "turned"];
    bench.check("plain.o", "fast.o", &turned).success().stdout("turned: equal; 16 launches\n");
    bench.check("fast.o", "other.o", &turned).code(13).stdout(contains("turned: different"));
    bench.hotswap(&["rewrite", "fast.o", "--to", "gfx1250-strict", "-o", "made.o"]).success();
    bench.check("fast.o", "made.o", &turned).success().stdout(contains("turned: equal; "));
    let open = bench.check("open.o", "open.o", &turned).code(12);
    open.stderr(contains("leaves the place of the symbol elsewhere to a link").and(contains("link it first")));
}
