//! A link of relocatable device code whose device linker loses an input for one of the GPUs, and ends well: the output lacks
//! a kernel of that unit, which HotSwap finds, and removes it.

use hotswap_tests::artifact::devices;
use hotswap_tests::mode::write_sources;
use hotswap_tests::{Bench, Call, Clang, Ran, Scratch, in_turn, say};

/// The text differs for gfx1031, so that its code is linked and not derived.
const ASKS: &str = r#"#include "hip.h"
#ifdef __gfx1031__
#define FACTOR 3
#else
#define FACTOR 2
#endif
__attribute__((global)) void asks(float *p) { p[0] *= FACTOR; }
"#;
const SAME: &str = r#"#include "hip.h"
__attribute__((global)) void same(float *p) { p[0] += 1; }
"#;
/// A linker that leaves out the last input of a link for gfx1031.
const FAULTY: &str = r#"lost=
for word; do case $word in *gfx1031*.o) lost=$word;; esac; done
for word; do shift; [ "$word" = "$lost" ] || set -- "$@" "$word"; done
echo "lost: $lost" >>DIRECTORY/lost.txt
exec /usr/lib/llvm-VERSION/bin/TOOL "$@""#;
const PAIR: &str = "--hotswap-retarget=gfx1030=>gfx1031";

struct Link<'b> {
    bench: &'b Bench,
    clang: &'b Clang,
    driver: &'static str,
    scratch: Scratch,
}

impl Link<'_> {
    fn run(&self, rest: &[&str], tools: Option<&str>) -> Ran {
        let mut words = vec![self.bench.installed("bin/hotswap-clang++"), "--offload-arch=gfx1030".to_owned()];
        words.extend(["-Xoffload-linker", PAIR, "-fgpu-rdc", "-fPIC", self.driver].map(str::to_owned));
        words.extend(self.clang.light());
        words.extend(rest.iter().map(|word| (*word).to_owned()));
        let call = Call::new(self.bench, &self.scratch.inside, &words).env("HOTSWAP_CLANG", self.clang.program.clone());
        tools.iter().fold(call, |call, tools| call.env("HOTSWAP_LLVM_BIN", *tools)).run()
    }

    /// The compiler's tools, with a device linker that loses an input.
    fn plant(&self) -> Result<String, String> {
        let bin = format!("/usr/lib/llvm-{}/bin", self.clang.version);
        let link = format!("mkdir faulty && ln -s {bin}/* faulty/ && rm faulty/lld faulty/ld.lld");
        let ran = Call::new(self.bench, &self.scratch.inside, &["sh", "-c", &link]).run();
        for name in ["lld", "ld.lld"] {
            let script = FAULTY
                .replace("DIRECTORY", &self.scratch.inside("."))
                .replace("VERSION", &self.clang.version.to_string());
            self.scratch.script(&format!("faulty/{name}"), &script.replace("TOOL", name));
        }
        if ran.ok() { Ok(self.scratch.inside("faulty")) } else { Err(ran.brief()) }
    }
}

fn judge(bench: &Bench, clang: &Clang, driver: &'static str) -> Result<(), String> {
    let scratch = bench.scratch();
    write_sources(&scratch, false);
    let link = Link { bench, clang, driver, scratch };
    for (name, text) in [("asks", ASKS), ("same", SAME)] {
        link.scratch.write(&format!("{name}.hip"), text);
        let ran = link.run(&["-c", &format!("{name}.hip"), "-o", &format!("{name}.o")], None);
        if !ran.ok() {
            return Err(ran.brief());
        }
    }
    let words = ["--hip-link", "-shared", "-nostdlib", "asks.o", "same.o", "-o", "out.so"];
    let right = link.run(&words, None);
    let found = devices(&link.scratch.read("out.so"))?.len();
    if !right.ok() || found != 2 {
        return Err(format!("{found} code objects: {}", right.brief()));
    }
    let faulty = link.plant()?;
    let ran = link.run(&words, Some(&faulty));
    let lost = String::from_utf8_lossy(&link.scratch.read("lost.txt")).into_owned();
    if !lost.contains("gfx1031") {
        return Err(format!("the fault was not planted: {lost} {}", ran.brief()));
    }
    let is_named = ["HS0446", "gfx1031", "_Z4samePf", "same.o"].iter().all(|part| ran.stderr.contains(part));
    if ran.code != Some(13) || !is_named || link.scratch.has("out.so") {
        return Err(format!("a lost input is not found: {}", ran.brief()));
    }
    Ok(())
}

#[test]
fn a_kernel_that_a_device_linker_loses_stops_the_link() {
    let Some(bench) = Bench::ready("lost kernels") else { return };
    let drivers = ["--no-offload-new-driver", "--offload-new-driver"];
    for (clang, driver) in in_turn("lost kernels", &drivers, &bench.clangs, |_| true) {
        if clang.version < 24 || *driver == drivers[1] {
            let result = judge(&bench, clang, driver);
            say(&format!("lost kernels, clang {} {driver}: {result:?}", clang.version));
            assert!(result.is_ok(), "clang {} {driver}: {result:?}", clang.version);
        }
    }
}
