//! HIP programs as users write them, on emulated GPUs: each judges its results by the host's own computation.

use crate::evidence::EvidenceRow;
use crate::workers::on_all_processors;
use hotswap_emulated_hip::EmulationBench;

const GPUS: [&str; 5] = ["gfx1031", "gfx1100", "gfx1201", "gfx90a", "gfx942"];

/// A program: its source, further arguments of the compiler, and how many results it judges.
struct HipProgram {
    name: &'static str,
    source: &'static str,
    words: &'static str,
    results: usize,
    /// GPUs that it sees, of one kind.
    devices: usize,
}

macro_rules! program {
    ($name:literal, $words:literal, $results:literal) => {
        HipProgram {
            name: $name,
            source: include_str!(concat!("../../emulated-hip/cases/programs/", $name, ".hip")),
            words: $words,
            results: $results,
            devices: 1,
        }
    };
}

const PROGRAMS: &[HipProgram] = &[
    program!("shared", "", 3),
    program!("warp", "", 13),
    program!("coop", "", 3),
    program!("atomics", "", 15),
    program!("streams", "", 8),
    program!("managed", "", 5),
    program!("graphs", "", 4),
    program!("heap", "", 2),
    program!("rtc", "-lhiprtc", 9),
    // The host rounds products before it adds them.
    program!("numeric", "-ffp-contract=off", 12),
    program!("api", "", 16),
    program!("copies", "", 17),
    program!("symbols", "", 17),
    program!("launches", "", 20),
    program!("cooperative", "", 11),
    program!("nodes", "", 12),
    program!("pools", "", 14),
    program!("compiled", "-lhiprtc", 29),
    program!("objects", "", 7),
    program!("lanes", "", 44),
    program!("widths", "", 11),
    program!("formats", "", 23),
    program!("maths", "", 72),
    program!("printed", "", 2),
    program!("assembly", "", 8),
    HipProgram { devices: 2, ..program!("machines", "", 30) },
];

/// Runs all of it; `None` where the userland lacks something, after printing what.
///
/// # Panics
/// If a compiler fails.
pub fn row() -> Option<EvidenceRow> {
    let bench = EmulationBench::new("prove programs")?;
    bench.work.write("check.h", include_bytes!("../../emulated-hip/cases/check.h"));
    on_all_processors(PROGRAMS, |program| bench.compile(program.name, program.source, &GPUS, program.words));
    let (mut results, mut wrong) = (0, Vec::new());
    for HipProgram { name, results: expected, devices, .. } in PROGRAMS {
        for gpu in GPUS {
            let gpus = vec![gpu; *devices].join(",");
            for late in ["", "HOTSWAP_EMULATE_LATE=1"] {
                let run = bench.run(&gpus, late, &format!("./{name}"));
                let right = run.output.lines().filter(|line| line.starts_with("right ")).count();
                results += right;
                if run.code != Some(0) || right != *expected {
                    wrong.push(format!("{name} on {gpu} {late}: {right} of {expected}\n{}{}", run.output, run.error));
                }
            }
        }
        println!("programs: {name}, {} wrong", wrong.len());
    }
    wrong.iter().for_each(|what| println!("{what}"));
    Some(EvidenceRow {
        claim: "Programs as users write them give the host's results".to_owned(),
        method: "HIP programs under the real runtime on emulated GPUs, with results at once and late".to_owned(),
        cases: format!("{} programs on {} GPUs, {results} results", PROGRAMS.len(), GPUS.len()),
        result: match wrong.len() {
            0 => "the host's results".to_owned(),
            count => format!("{count} runs are wrong"),
        },
        open: "textures: HIP refuses them on these GPUs".to_owned(),
        holds: wrong.is_empty() && results > 0,
    })
}
