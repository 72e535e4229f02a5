//! Code for gfx1250 that HotSwap rewrites for gfx1250-strict: executed there, it gives the memory of the host; as it was, it
//! is a fault where it has forms that the stepping lacks.

use hotswap_adapt::{AdaptRequest, adapt_object};
use hotswap_emulator::EmulatedDevice;
use hotswap_emulator_exam::{TwinCase, TwinRun, generated_source};
use hotswap_userland::{Workbench, say};
use std::path::Path;

fn cases() -> Vec<TwinCase> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("twins");
    let read = |name: &str| std::fs::read_to_string(directory.join(format!("{name}.cpp"))).unwrap();
    let names = ["bytes", "calls", "floats", "integers", "odd", "pairs", "radix", "reduce", "sgemm", "sha256"];
    let mut cases: Vec<TwinCase> = names.iter().map(|name| TwinCase::new(name, &read(name))).collect();
    cases.push(TwinCase::new("generated", &generated_source(5, 16)));
    cases
}

#[test]
fn rewritten_code_gives_the_same_memory() {
    let Some(bench) = Workbench::new("stepping") else { return };
    let header = include_str!("../twins/twin.h");
    let (mut rewritten, mut trapped, mut failures) = (0, 0, Vec::new());
    for case in cases() {
        let expected = case.host(&bench, header);
        for words in ["-O0", "-O3"] {
            // The rewriter needs relocations where addresses in the code cannot be determined.
            let words = &format!("{words} -Wl,--emit-relocs");
            let object =
                case.compile(&bench, &TwinRun { clang: *bench.versions.last().unwrap(), gpu: "gfx1250", words });
            let device = |gpu: &str| {
                let mut device = EmulatedDevice::new(gpu).unwrap();
                device.instruction_budget = Some(20_000_000);
                device
            };
            let label = format!("{} {words}", case.name);
            match case.emulate(&object, &device("gfx1250")) {
                Ok((memory, _)) if memory == expected => {}
                Ok(_) => failures.push(format!("{label}: the original differs on gfx1250")),
                Err(failure) => failures.push(format!("{label}: the original on gfx1250: {failure}")),
            }
            trapped += usize::from(case.emulate(&object, &device("gfx1250-strict")).is_err());
            let request = AdaptRequest { target: "gfx1250-strict".parse().unwrap(), keep_machine: false };
            let adapted = match adapt_object(&object, &request) {
                Ok(adapted) => adapted,
                Err(refusals) => {
                    failures.push(format!("{label}: refused: {}", refusals[0]));
                    continue;
                }
            };
            match case.emulate(&adapted.bytes, &device("gfx1250-strict")) {
                Ok((memory, _)) if memory == expected => rewritten += 1,
                Ok(_) => failures.push(format!("{label}: the rewritten code differs")),
                Err(failure) => failures.push(format!("{label}: the rewritten code: {failure}")),
            }
        }
    }
    say(&format!("stepping: {rewritten} objects rewritten and executed, {trapped} trap as they were"));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(trapped > 0, "no original has a form that the stepping lacks");
}
