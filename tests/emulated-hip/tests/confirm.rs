//! `hotswap confirm` on emulated GPUs in the card's place: what it confirms, and that it contradicts planted faults.

use hotswap_emulated_hip::{EmulationBench, ProgramRun};
use hotswap_userland::say;
use std::time::Duration;

/// The table of this build.
const EXPECTED: &str = include_str!("../../../crates/evidence/confirm/expected.txt");

struct ConfirmBench {
    bench: EmulationBench,
    hotswap: String,
}

impl ConfirmBench {
    fn new(test: &str) -> Option<Self> {
        let bench = EmulationBench::new(test)?;
        let hotswap = bench.hotswap(test)?;
        Some(Self { bench, hotswap })
    }

    /// `hotswap confirm` with these words, on an emulated GPU.
    fn confirm(&self, gpu: &str, words: &str) -> ProgramRun {
        let Self { bench, hotswap } = self;
        bench.script("", &format!("{hotswap} run --gpu {gpu} -- {hotswap} confirm {words}"))
    }

    /// Keeps the code objects of a group, and writes another one in the place of one of them.
    fn plant(&self, kept: &str, planted: &str, change: impl Fn(&mut Vec<u8>)) {
        let mut bytes = std::fs::read(self.bench.work.path(kept)).unwrap();
        change(&mut bytes);
        std::fs::create_dir_all(self.bench.work.path("planted")).unwrap();
        std::fs::write(self.bench.work.path("planted").join(planted), bytes).unwrap();
    }
}

fn last_line(run: &ProgramRun) -> &str {
    run.output.lines().last().unwrap_or_default()
}

/// Replaces bytes that occur once.
fn exchange(bytes: &mut [u8], old: &[u8], new: &[u8]) {
    let found: Vec<usize> = (0..bytes.len() - old.len()).filter(|at| bytes[*at..].starts_with(old)).collect();
    assert_eq!(found.len(), 1, "{old:02x?} at {found:x?}");
    bytes[found[0]..found[0] + old.len()].copy_from_slice(new);
}

/// The report has the group's row of `v_xor_b32`, with two results.
fn assert_contradicted(run: &ProgramRun, probe: &str) {
    assert_eq!(run.code, Some(13), "{}{}", run.output, run.error);
    assert!(last_line(run).starts_with("Not confirmed: on this emulated GPU gfx1031 "), "{}", run.output);
    assert!(run.output.contains(&format!("  {probe}: ")), "{}", run.output);
    assert!(run.error.contains("[HS0459]"), "{}", run.error);
}

#[test]
fn emulated_gpus_confirm_what_is_claimed() {
    const TEST: &str = "confirm on emulated GPUs";
    let Some(bench) = ConfirmBench::new(TEST) else { return };
    for (gpu, siblings) in [("gfx1030", 6), ("gfx1031", 6), ("gfx1100", 3), ("gfx90a", 0), ("gfx1201", 1)] {
        let run = bench.confirm(gpu, "--format json");
        assert_eq!(run.code, Some(0), "{gpu}: {}{}", run.output, run.error);
        let report: serde_json::Value = serde_json::from_str(&run.output).unwrap();
        let sentence = report["sentence"].as_str().unwrap();
        assert!(sentence.starts_with(&format!("Confirmed: this emulated GPU {gpu}")), "{sentence}");
        assert_eq!(report["siblings"].as_array().unwrap().len(), siblings, "{gpu}");
        assert!(report["native"].as_array().unwrap().len() > 250, "{gpu}");
        assert_eq!(report["card"]["emulated"], true);
        // Progress is for terminals.
        assert!(!run.error.contains("gfx") && !run.output.contains(&bench.hotswap), "{}", run.error);
        say(&format!("{gpu}: {:.1} s: {sentence}", run.time.as_secs_f64()));
    }
}

/// The table says of an instruction what an emulator that exchanges its sources would say.
#[test]
fn a_wrong_instruction_of_the_emulator_is_contradicted() {
    const TEST: &str = "confirm and a wrong emulator";
    let Some(bench) = ConfirmBench::new(TEST) else { return };
    let exchanged = |line: &str| match line.split_once(' ') {
        Some(("v_sub_u32", _)) => None,
        Some(("v_subrev_u32", rest)) => Some(format!("{line}\nv_sub_u32 {rest}\n")),
        _ => Some(format!("{line}\n")),
    };
    bench.bench.work.write("wrong.txt", EXPECTED.lines().filter_map(exchanged).collect::<String>().as_bytes());
    let run = bench.confirm("gfx1031", "--own --group integer --expected wrong.txt");
    assert_contradicted(&run, "v_sub_u32");
    // Inputs and both results.
    let case = run.output.lines().find(|line| line.contains("case ")).unwrap();
    assert!(case.contains("inputs ") && case.contains("; expected ") && case.contains("; found "), "{case}");
    assert!(last_line(&run).ends_with("39 of 40 confirmed, 1 differ."), "{}", run.output);
    let run = bench.confirm("gfx1031", "--own --group integer");
    assert_eq!(run.code, Some(0), "{}", run.output);
}

#[test]
fn wrong_code_of_a_sibling_is_contradicted() {
    const TEST: &str = "confirm and a wrong sibling";
    let Some(bench) = ConfirmBench::new(TEST) else { return };
    let run = bench.confirm("gfx1031", "--group bits --keep kept");
    assert_eq!(run.code, Some(0), "{}{}", run.output, run.error);
    // `v_xor_b32 v8, v2, v4` becomes `v_or_b32`.
    let [xor, or] = [0x1d_u32, 0x1c].map(|operation| (operation << 25 | 8 << 17 | 4 << 9 | 0x102).to_le_bytes());
    let name = "gfx1031-from-gfx1030-bits.hsaco";
    bench.plant(&format!("kept/{name}"), name, |bytes| exchange(bytes, &xor, &or));
    let run = bench.confirm("gfx1031", "--group bits --objects planted");
    assert_contradicted(&run, "v_xor_b32");
    assert!(last_line(&run).contains("code made for gfx1030 does not"), "{}", run.output);
    // Code of another generation under the GPU's label.
    let run = bench.confirm("gfx1100", "--own --group bits --keep kept");
    assert_eq!(run.code, Some(0), "{}{}", run.output, run.error);
    bench.plant("kept/gfx1100-from-gfx1100-bits.hsaco", name, |bytes| {
        bytes[48] = 0x37;
        exchange(bytes, b"amdhsa--gfx1100", b"amdhsa--gfx1031");
    });
    let run = bench.confirm("gfx1031", "--group bits --objects planted");
    assert_eq!(run.code, Some(13), "{}", run.output);
    let rest =
        "; code made for gfx1030 does not; code made for gfx1032, gfx1033, gfx1034, gfx1035, gfx1036 was not run.";
    assert!(last_line(&run).ends_with(rest), "{}", run.output);
    // Failures are few: nothing more is started after them.
    assert!(run.output.contains("The run ended early: 3 kernels have failed"), "{}", run.output);
}

#[test]
fn a_kernel_that_never_ends_is_ended() {
    const TEST: &str = "confirm and a kernel that hangs";
    let Some(bench) = ConfirmBench::new(TEST) else { return };
    let run = bench.confirm("gfx1031", "--own --group programs --keep kept");
    assert_eq!(run.code, Some(0), "{}{}", run.output, run.error);
    // The only branch on an empty EXEC leaves the loop.
    let name = "gfx1031-from-gfx1031-programs.hsaco";
    bench.plant(&format!("kept/{name}"), name, |bytes| {
        let places: Vec<usize> = (0..bytes.len() - 4).filter(|at| bytes[at + 2..at + 4] == [0x88, 0xbf]).collect();
        assert_eq!(places.len(), 1, "{places:x?}");
        bytes[places[0]..places[0] + 4].copy_from_slice(&0xbf80_0000_u32.to_le_bytes());
    });
    let run = bench.confirm("gfx1031", "--own --group programs --objects planted --limit 3");
    assert_contradicted(&run, "collatz");
    assert!(run.output.contains("collatz: it did not end within 3 seconds"), "{}", run.output);
    // The other programs are run by another process.
    assert!(run.output.contains("3 of 4 confirmed, 1 failed"), "{}", run.output);
    assert!(run.time < Duration::from_secs(30), "{:?}", run.time);
    let run = bench.confirm("gfx1031", "--group bits --total-limit 1");
    assert!(run.code == Some(13) && run.output.contains("The run ended early: the time is over"), "{}", run.output);
}

#[test]
fn what_is_missing_is_said() {
    const TEST: &str = "confirm without a GPU";
    let Some(bench) = ConfirmBench::new(TEST) else { return };
    let hotswap = &bench.hotswap;
    let run = bench.bench.script("", &format!("{hotswap} confirm"));
    assert!(
        run.code == Some(10) && run.error.contains("[HS0111]") && run.error.contains("HIP finds no GPU"),
        "{:?} {}",
        run.code,
        run.error
    );
    let run = bench.confirm("gfx1031", "--device 1");
    assert!(run.code == Some(2) && run.error.contains("there is no GPU 1; HIP finds 1"), "{}", run.error);
    let run = bench.bench.script("export HSA_OVERRIDE_GFX_VERSION=10.3.0\n", &format!("{hotswap} confirm"));
    assert!(run.code == Some(10) && run.error.contains("HSA_OVERRIDE_GFX_VERSION is set"), "{}", run.error);
    bench.bench.work.write("other.txt", EXPECTED.replace("gfx1031", "gfx9999").as_bytes());
    let run = bench.confirm("gfx1031", "--expected other.txt");
    assert!(run.code == Some(13) && run.error.contains("no expected results for gfx1031"), "{}", run.error);
    let run = bench.bench.script("", &format!("{hotswap} confirm --list"));
    assert!(run.code == Some(0) && run.output.contains("programs: collatz reverse sum histogram\n"), "{}", run.output);
}
