//! Runs pieces of assembly through the whole engine. LLVM disassembles the result for the target, and the listing is
//! compared with the file next to the case. A second run changes nothing, and the number of threads does not matter.
//!
//! A case is `cases/NAME.s`: a whole file of assembly if it has a line `.amdhsa_kernel`, otherwise the instructions of
//! one kernel. With a line `// relocatable: refused` it is changed only in linked form. `cases/NAME.expect` is a
//! summary of the record followed by LLVM's listing of the linked result, or the refusals. The cases of the families
//! themselves run, too. With `HOTSWAP_BLESS=1` the output is written.

mod common;

use common::{SOURCE, TARGET, as_kernel, assemble, cases, disassembled, run, setting, stem};
use hotswap_adapt::{AdaptedObject, ObjectRecord};
use hotswap_report::Diagnostic;
use hotswap_userland::{Workbench, golden, say};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

type Outcome = Result<AdaptedObject, Vec<Diagnostic>>;

fn text_of(path: &PathBuf) -> String {
    let text = fs::read_to_string(path).unwrap();
    if text.contains(".amdhsa_kernel") { text } else { as_kernel(&text) }
}

fn summary(record: &ObjectRecord) -> String {
    let mut text = String::new();
    if record.unclaimed > 0 {
        let _ = writeln!(text, "// {} bytes that nothing leads to", record.unclaimed);
    }
    for function in &record.functions {
        let _ = write!(text, "// {}: {:+} bytes, {} cycles", function.name, function.grown, function.cycles);
        if let Some(kernel) = &function.kernel {
            for (name, change) in [
                ("vgprs", Some(kernel.vgprs)),
                ("sgprs", Some(kernel.sgprs)),
                ("waves", kernel.waves),
                ("private segment", kernel.private_segment),
            ] {
                if let Some(change) = change.filter(|change| change.before != change.after) {
                    let _ = write!(text, ", {name} {} -> {}", change.before, change.after);
                }
            }
        }
        if function.spilled.sites > 0 {
            let _ =
                write!(text, ", {} registers spilled at {} sites", function.spilled.registers, function.spilled.sites);
        }
        text.push('\n');
        for site in &function.sites {
            let left = site.left.as_ref().map_or(String::new(), |why| format!(" left: {why}"));
            let _ = writeln!(text, "//   {} x {}{left}", site.count, site.family);
        }
        function.assumes.iter().for_each(|what| text += &format!("//   assumes: {what}\n"));
    }
    text
}

fn found(outcome: &Outcome, lines: Option<&Vec<String>>) -> String {
    match (outcome, lines) {
        (Err(refusals), _) => refusals.iter().map(|refusal| format!("{refusal}\n")).collect(),
        (Ok(adapted), lines) => {
            let code: String = lines.into_iter().flatten().map(|line| format!("{line}\n")).collect();
            let code = code.split("s_code_end").next().unwrap_or_default().trim_end().to_owned();
            summary(&adapted.record) + &code + "\n"
        }
    }
}

fn check(directory: &str, expected: &str) {
    let Some(bench) = Workbench::new("adapt") else { return };
    let paths = cases(directory);
    let files: Vec<(String, String)> = paths.iter().map(|path| (stem(path).to_owned(), text_of(path))).collect();
    let objects = assemble(&bench, &files);
    let mut made = Vec::new();
    let mut outcomes = Vec::new();
    for ((name, _), (object, linked)) in files.iter().zip(&objects) {
        for (kind, data) in [("o", object), ("co", linked)] {
            let outcome = run(data, false);
            twice(name, data, &outcome);
            if let Ok(adapted) = &outcome {
                made.push((format!("{name}.{kind}"), adapted.bytes.clone()));
            }
            outcomes.push((name, kind, outcome));
        }
    }
    let lines = disassembled(&bench, &made);
    let listing = |name: &str, kind: &str| {
        let place = made.iter().position(|(made, _)| *made == format!("{name}.{kind}"))?;
        lines.get(place)
    };
    let has_data = |name: &str| files.iter().any(|(file, text)| name.starts_with(&file[..]) && text.contains(".long"));
    let is_bad = |line: &String| line.contains("<unknown>") || line.contains(".long");
    let invalid: Vec<_> =
        made.iter().zip(&lines).filter(|((name, _), lines)| !has_data(name) && lines.iter().any(is_bad)).collect();
    assert!(invalid.is_empty(), "{:?}", invalid.iter().map(|((name, _), lines)| (name, lines)).collect::<Vec<_>>());
    let mut wrong = Vec::new();
    for (path, pair) in paths.iter().zip(outcomes.chunks(2)) {
        let [(name, _, object), (_, _, linked)] = pair else { panic!("two outcomes each") };
        let text = found(linked, listing(name, "co"));
        let is_alike = setting(&fs::read_to_string(path).unwrap(), "relocatable") != Some("refused");
        let is_expected =
            object.is_ok() == linked.is_ok() && is_alike || object.is_err() && linked.is_ok() && !is_alike;
        assert!(is_expected, "{name}: {:?} {:?}", object.as_ref().err(), linked.as_ref().err());
        if let (Some(object), Some(linked)) = (listing(name, "o"), listing(name, "co")) {
            assert_eq!(without_padding(object), without_padding(linked), "{name}: relocatable and linked");
        }
        let beside = path.parent().unwrap().join(expected).join(format!("{name}.expect"));
        let beside = if expected.is_empty() { path.with_extension("expect") } else { beside };
        wrong.extend(golden(&beside, &text).err());
    }
    let refused = outcomes.iter().filter(|(_, _, outcome)| outcome.is_err()).count() / 2;
    say(&format!(
        "adapt: {} cases of {directory}, {refused} of them refused, {} not as expected",
        paths.len(),
        wrong.len()
    ));
    assert!(!paths.is_empty() && wrong.is_empty(), "{}", wrong.join("\n"));
}

fn without_padding(lines: &[String]) -> Vec<&String> {
    // A linker fills in literals of addresses and merges sections, whose names LLVM prints. Padding differs.
    let is_code = |line: &&String| {
        let differs = line.starts_with("s_add_nc_u64") || line.starts_with(".text");
        !["s_code_end", "...", "s_nop 0"].contains(&line.as_str()) && !differs
    };
    lines.iter().filter(is_code).collect()
}

/// If the label is kept, the result is an input of the same kind, and nothing is left to do.
fn twice(name: &str, data: &[u8], outcome: &Outcome) {
    let Ok(adapted) = outcome else { return };
    assert_eq!(run(&adapted.bytes, false).as_ref().map(|again| &again.bytes), Ok(&adapted.bytes), "{name}: labelled");
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(pool.install(|| run(data, false)).as_ref(), Ok(adapted), "{name}: {threads} threads");
    }
    let once = run(data, true).unwrap_or_else(|refused| panic!("{name}: {refused:?}"));
    let again = run(&once.bytes, true).unwrap_or_else(|refused| panic!("{name}, again: {refused:?}"));
    assert!(once.bytes == again.bytes, "{name}: a second run changes something: {:?}", again.record);
}

#[test]
fn every_case_becomes_what_stands_beside_it() {
    check("tests/cases", "");
}

#[test]
fn the_cases_of_the_families_go_through_the_engine() {
    check("../families/tests/code", "../../../adapt/tests/families");
}

/// The words of a table in a linked code object, and LLVM's line for the instruction at each target.
fn led_to(bench: &Workbench, name: &str, data: &[u8], target: &str) -> Vec<String> {
    bench.write(name, data);
    let words = bench.run(&format!("llvm-readelf-24 -rW {name} | awk '/R_AMDGPU_RELATIVE64/ {{print $NF}}'"));
    let lines = bench.run(&format!("llvm-objdump-24 -d --mcpu={target} {name}"));
    let at = |word: &str| {
        let address = u64::from_str_radix(word, 16).unwrap();
        let line = lines.lines().find(|line| line.contains(&format!("// {address:012X}:")));
        line.unwrap_or_else(|| panic!("{name}: no instruction at {word}")).split("//").next().unwrap().trim().to_owned()
    };
    words.lines().map(at).collect()
}

/// In the file before and after, with its relocations and without: the instructions to which the words of its table
/// point.
#[test]
fn words_of_tables_lead_to_the_instructions_that_they_led_to() {
    let Some(bench) = Workbench::new("adapt-tables") else { return };
    let mut all = String::new();
    for path in cases("tests/cases").iter().filter(|path| stem(path).starts_with("jump_table")) {
        let name = stem(path);
        let (_, linked) = assemble(&bench, &[(name.to_owned(), text_of(path))]).remove(0);
        bench.run(&format!("ld.lld-24 -shared {name}.o -o {name}.bare; rm {name}.s"));
        let words = |data: &[u8]| {
            let outcome = run(data, false);
            twice(name, data, &outcome);
            let Ok(adapted) = outcome else { return "  refused\n".to_owned() };
            let before = led_to(&bench, &format!("{name}.old"), data, SOURCE);
            let after = led_to(&bench, &format!("{name}.new"), &adapted.bytes, TARGET);
            assert_eq!(before.len(), after.len(), "{name}");
            let pairs = before.iter().zip(&after).map(|(before, after)| format!("  {before} -> {after}\n"));
            pairs.collect::<String>()
        };
        let [linked, bare] = [linked, bench.read(&format!("{name}.bare"))].map(|data| words(&data));
        let differs =
            if linked == bare { String::new() } else { format!("{name}, linked without relocations\n{bare}") };
        all += &format!("{name}\n{linked}{differs}");
    }
    let beside = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/jump_tables.words");
    golden(&beside, &all).unwrap_or_else(|difference| panic!("{difference}"));
}
