//! The parts of a file that are read as code: symbols separate data from code; without symbols, everything is code.

use hotswap_code_object::CodeObject;
use hotswap_compat::{Check, PassedChecks, check_for};
use hotswap_report::Diagnostic;
use hotswap_userland::Workbench;

const SOURCE: &str = include_str!("checks/reading.s");
/// An instruction that `gfx1010` lacks.
const DOT: &str = "v_dot4c_i32_i8 v0, v1, v2";
/// No instruction anywhere.
const JUNK: &str = ".long 0xffffffff";

/// The object with that code in the kernel and after it.
fn assemble(bench: &Workbench, body: &str, after: &str, options: &str) -> Vec<u8> {
    let source = SOURCE.replace("BODY\n", &format!("{body}\n")).replace("AFTER\n", &format!("{after}\n"));
    bench.write("k.s", source.as_bytes());
    let clang = bench.versions[bench.versions.len() / 2];
    bench.run(&format!("clang-{clang} -x assembler --target=amdgcn-amd-amdhsa -mcpu=gfx1011 {options} k.s -o object"));
    bench.read("object")
}

fn run(bytes: &[u8]) -> Result<PassedChecks, Vec<Diagnostic>> {
    let object = CodeObject::parse(bytes).unwrap();
    check_for(&object, &"gfx1010".parse().unwrap(), &[Check::SameInstructions])
}

/// Kernel, mnemonic and reason of the only finding.
fn finding(bytes: &[u8]) -> (Option<String>, Option<String>, String) {
    let [found] = <[Diagnostic; 1]>::try_from(run(bytes).unwrap_err()).unwrap();
    let text =
        CodeObject::parse(bytes).unwrap().sections().iter().find(|section| section.is_code()).unwrap().range.clone();
    assert!(text.contains(&(found.place.offset.unwrap() as usize)), "{found}");
    (found.place.kernel, found.place.mnemonic, found.what)
}

#[test]
fn everything_that_can_be_executed_is_read() {
    let Some(bench) = Workbench::new("everything_that_can_be_executed_is_read") else { return };
    let function = format!("s_nop 0\nf:\n.type f,@function\n{DOT}\ns_setpc_b64 s[30:31]\n.Lf:\n.size f, .Lf-f");
    let label = format!("place:\n{DOT}");
    let twice = format!("{JUNK}\ns_nop 0\n{DOT}");
    let some = |text: &str| Some(text.to_owned());
    for (body, after, options, kernel) in [
        (DOT, "", "", some("k")),
        ("", DOT, "", None),
        ("", label.as_str(), "", None),
        // In undecodable bytes, instruction boundaries are unknown.
        ("", twice.as_str(), "", None),
        ("", function.as_str(), "", some("f")),
        // A function whose symbol was removed.
        ("", function.as_str(), "-Wl,--strip-all", None),
    ] {
        let found = finding(&assemble(&bench, body, after, options));
        assert_eq!((found.0, found.1.as_deref()), (kernel, Some("v_dot4c_i32_i8")), "{body} {after} {options}");
    }
}

#[test]
fn data_is_not_read_and_bytes_that_are_no_instructions_are_counted() {
    let Some(bench) = Workbench::new("data_is_not_read_and_bytes_that_are_no_instructions_are_counted") else { return };
    let data = format!("table:\n.type table,@object\n{DOT}\n{JUNK}\n.Lt:\n.size table, .Lt-table");
    let checked = run(&assemble(&bench, "", &data, "")).unwrap();
    // v_mov_b32, s_endpgm and sixteen times s_code_end.
    assert_eq!((checked.instructions, checked.opaque), (18, 0));
    // After undecodable bytes, nothing marks s_code_end as an instruction.
    let checked = run(&assemble(&bench, "", JUNK, "")).unwrap();
    assert_eq!((checked.instructions, checked.opaque), (2, 1));
    let (kernel, mnemonic, why) = finding(&assemble(&bench, JUNK, "", ""));
    assert_eq!((kernel.as_deref(), mnemonic), (Some("k"), None));
    assert!(why.contains("no instruction of gfx1011"), "{why}");
}

#[test]
fn damage_is_a_refusal_or_another_answer_and_never_a_panic() {
    let Some(bench) = Workbench::new("damage_is_a_refusal_or_another_answer_and_never_a_panic") else { return };
    let good = assemble(&bench, DOT, JUNK, "");
    let target = "gfx10-1-generic".parse().unwrap();
    let judge = |bytes: &[u8]| {
        let Ok(object) = CodeObject::parse(bytes) else { return false };
        check_for(&object, &target, Check::ALL).is_err()
    };
    assert!(judge(&good));
    let cut = (0..good.len()).step_by(61).filter(|length| judge(&good[..*length])).count();
    assert!(cut < good.len() / 61);
    let (mut state, mut refused) = (0x2545_f491_4f6c_dd1d_u64, 0);
    for _ in 0..4000 {
        let mut bad = good.clone();
        for _ in 0..3 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = state as usize % bad.len();
            bad[at] = (state >> 40) as u8;
        }
        refused += usize::from(judge(&bad));
    }
    assert!(refused > 1000, "only {refused} of 4000 are still code objects");
}
