//! The table in a file: LLVM still reads the file, and a table of other code is not used.

mod common;

use common::{Setting, make};
use hotswap_device_symbols::function_map::with_function_map;
use hotswap_device_symbols::note::{TableOrigin, check_written, found_table, table_of, with_table};
use hotswap_device_symbols::{Function, FunctionKind, analyse_file};
use hotswap_userland::{Workbench, say, tool};
use std::collections::BTreeSet;

const SOURCE: &str = include_str!("functions.hip");

fn setting(bench: &Workbench) -> Setting {
    Setting { version: *bench.versions.last().expect("there is a compiler"), target: "gfx1100", level: '2' }
}

#[test]
fn a_table_is_read_back_and_the_code_stays() {
    let Some(bench) = Workbench::new("a_table_is_read_back_and_the_code_stays") else { return };
    let setting = setting(&bench);
    let old = make(&bench, &setting, SOURCE).linked;
    let (new, table) = with_table(&old).unwrap();
    assert_eq!(table_of(&new).unwrap(), (table.clone(), Vec::new()));
    let origins = [&old, &new].map(|bytes| found_table(bytes).unwrap().origin);
    assert_eq!(origins, [TableOrigin::NoNote, TableOrigin::Note]);
    assert_eq!(with_table(&new).unwrap().0, new, "writing again changes nothing");
    assert_eq!(analyse_file(&new).unwrap().0, table, "the note is no part of what it describes");
    bench.write("new.co", &new);
    let [before, after] = ["a.co", "new.co"].map(|name| {
        let text = bench.disassemble(setting.version, "-r -t -j .text", name);
        text.replace(name, "FILE")
    });
    assert_eq!(before, after);
    let notes = bench.run(&format!("{} --notes -S new.co", tool(setting.version, "llvm-readelf")));
    assert!(notes.contains(".note.hotswap.devsyms") && notes.contains("amdhsa.kernels"), "{notes}");
    bench.run(&format!("{} --strip-debug new.co -o kept.co", tool(setting.version, "llvm-strip")));
    assert_eq!(table_of(&bench.read("kept.co")).unwrap(), (table, Vec::new()));
}

/// `objcopy --redefine-sym` changes names and no loaded byte.
#[test]
fn a_table_with_old_names_is_not_used() {
    let Some(bench) = Workbench::new("a_table_with_old_names_is_not_used") else { return };
    let setting = setting(&bench);
    let (new, _) = with_table(&make(&bench, &setting, SOURCE).linked).unwrap();
    bench.write("new.co", &new);
    let objcopy = tool(setting.version, "llvm-objcopy");
    bench.run(&format!("{objcopy} --redefine-sym _Z4leaff=renamed new.co renamed.co && {objcopy} new.co copied.co"));
    let found = found_table(&bench.read("renamed.co")).unwrap();
    assert_eq!(found.origin, TableOrigin::StaleNote);
    assert!(
        found.problems.iter().any(|one| one.code.id == "HS0310" && one.what.contains("`renamed`")),
        "{:?}",
        found.problems
    );
    assert!(found.table.number_of_name("renamed").is_some() && found.table.number_of_name("_Z4leaff").is_none());
    assert_eq!(found_table(&bench.read("copied.co")).unwrap().origin, TableOrigin::Note);
}

#[test]
fn a_stale_table_is_told_and_not_used() {
    let Some(bench) = Workbench::new("a_stale_table_is_told_and_not_used") else { return };
    let old = make(&bench, &setting(&bench), SOURCE).linked;
    let (new, table) = with_table(&old).unwrap();
    let leaf = table.functions[table.number_of_name("_Z4leaff").unwrap()].clone();
    let map = hotswap_code_object::CodeMap::read(&new).unwrap();
    let text = &map.sections[0];
    let at = text.range.start + (leaf.address - text.address) as usize;
    let mut changed = new.clone();
    // v_mov_b32 v90, v0
    changed[at..at + 4].copy_from_slice(&0x7eb4_0300_u32.to_le_bytes());
    let (found, problems) = table_of(&changed).unwrap();
    // The kernels have fewer registers than the function names now.
    let told: BTreeSet<&str> = problems.iter().map(|one| one.code.id).collect();
    assert_eq!(told, BTreeSet::from(["HS0310", "HS0424"]));
    assert_eq!(found_table(&changed).unwrap().origin, TableOrigin::StaleNote);
    let stale = problems.iter().find(|one| one.code.id == "HS0310").unwrap();
    say(&format!("exam refused | a table of other code | HS0310 | {}; the code is analysed |", stale.what));
    assert_eq!(found.functions[found.number_of_name("_Z4leaff").unwrap()].own.vgprs.value, Some(91));
    assert!(check_written(&old, &changed, &table).is_err(), "changed code");
    let mut damaged = new.clone();
    let note = new.windows(8).rposition(|window| window == b"HotSwap\0").unwrap();
    damaged[note + 8] = 0xc1;
    let (found, problems) = table_of(&damaged).unwrap();
    assert_eq!((found, problems[0].code.id), (table, "HS0310"));
}

#[test]
fn without_symbols_the_code_still_tells_calls() {
    let Some(bench) = Workbench::new("without_symbols_the_code_still_tells_calls") else { return };
    let setting = setting(&bench);
    let linked = make(&bench, &setting, SOURCE).linked;
    bench.run(&format!("{} --strip-all a.co -o bare.co", tool(setting.version, "llvm-strip")));
    let (whole, bare) = (analyse_file(&linked).unwrap().0, analyse_file(&bench.read("bare.co")).unwrap().0);
    assert!(!bare.closed && bare.kernels.len() == whole.kernels.len());
    for kernel in &bare.kernels {
        let function = &bare.functions[kernel.function as usize];
        let twin = whole.kernel_of_function(whole.number_of_name(&function.name).unwrap()).unwrap();
        // Neighbours without a symbol may be one row.
        let reached: Vec<_> = kernel.reachable.iter().map(|one| &bare.functions[*one as usize]).collect();
        for address in twin.reachable.iter().map(|one| whole.functions[*one as usize].address) {
            let holds = |one: &Function| (one.address..one.address + one.size).contains(&address);
            assert!(reached.iter().any(|one| holds(one)), "{}: {address:#x}", function.name);
        }
        assert!(twin.complete || !kernel.complete, "{}", function.name);
    }
    let unnamed = bare.functions.iter().filter(|one| one.kind != FunctionKind::Kernel);
    let unnamed = unnamed.filter(|one| one.name.starts_with("code at ")).count();
    assert!(unnamed > 3);
    say(&format!(
        "exam refused | no symbols | - | analysed: {unnamed} functions without a name; the set of calls does not count as complete |"
    ));
}

/// Reading ends with a table or an error, whatever the bytes are.
#[test]
fn damaged_files_are_errors_or_tables() {
    let Some(bench) = Workbench::new("damaged_files_are_errors_or_tables") else { return };
    let (file, _) = with_table(&make(&bench, &setting(&bench), SOURCE).linked).unwrap();
    let (mut tables, mut errors) = (0, 0);
    for step in 0..400 {
        let mut damaged = file.clone();
        let at = step * 7919 % file.len();
        match step % 3 {
            0 => damaged[at] ^= 0xff,
            1 => damaged.truncate(at),
            _ => damaged[at.min(file.len() - 8)..][..8].fill(0xff),
        }
        match table_of(&damaged) {
            Ok(_) => tables += 1,
            Err(_) => errors += 1,
        }
    }
    say(&format!("damaged files: {tables} tables, {errors} errors"));
    assert!(tables > 50 && errors > 50);
}

/// A row of the section `.sqtt_funcmap` as AMD's decoder reads it: lines end with a line feed or NUL, names at the first `@`, an
/// ID is a number of 32 bits before the first colon. `None` for rows that it warns about.
fn decoded(line: &str) -> Option<(char, Option<u32>, String)> {
    let (kind, payload) = line.split_once(':').filter(|(kind, _)| kind.len() == 1)?;
    let kind = kind.chars().next()?;
    let (id, name) = match kind {
        'K' => (None, payload),
        'F' => payload.split_once(':').and_then(|(id, name)| Some((Some(id.parse().ok()?), name)))?,
        _ => return None,
    };
    let name = name.split('@').next().filter(|name| !name.is_empty())?;
    Some((kind, id, name.trim_end().to_owned()))
}

#[test]
fn rows_for_the_trace_decoder_name_every_function() {
    let Some(bench) = Workbench::new("rows_for_the_trace_decoder_name_every_function") else { return };
    let setting = setting(&bench);
    let old = make(&bench, &setting, SOURCE).linked;
    let (table, _) = table_of(&old).unwrap();
    let (new, left_out) = with_function_map(&old, &table).unwrap();
    bench.write("new.co", &new);
    bench.run(&format!("{} --dump-section=.sqtt_funcmap=rows new.co /dev/null", tool(setting.version, "llvm-objcopy")));
    let text = String::from_utf8(bench.read("rows")).unwrap();
    let rows: Vec<_> = text.lines().map(|line| decoded(line).unwrap_or_else(|| panic!("`{line}`"))).collect();
    let wanted: Vec<(char, String)> = table
        .functions
        .iter()
        .map(|one| (if one.kind == FunctionKind::Kernel { 'K' } else { 'F' }, one.name.clone()))
        .collect();
    assert_eq!((rows.iter().map(|row| (row.0, row.2.clone())).collect::<Vec<_>>(), left_out), (wanted, 0));
    let ids: BTreeSet<u32> = rows.iter().filter_map(|row| row.1).collect();
    assert_eq!(ids.len(), rows.iter().filter(|row| row.0 == 'F').count());
    assert!(ids.iter().all(|id| (1 << 29..1 << 30).contains(id)), "markers have 30 bits");
    // With the table in the file as well, and by tools that copy.
    let (both, again) = with_table(&new).unwrap();
    assert_eq!(again.functions, table.functions);
    bench.write("both.co", &both);
    bench.run(&format!("{} --strip-debug both.co -o kept.co", tool(setting.version, "llvm-strip")));
    let kept = bench.run(&format!("{} -p .sqtt_funcmap kept.co", tool(setting.version, "llvm-readelf")));
    assert!(kept.contains("_Z4leaff"), "{kept}");
    assert_eq!(with_function_map(&both, &table).unwrap_err().code.id, "HS0308");
    // A name that would not read back has no row.
    let mut odd = table.clone();
    odd.functions[0].name = "a@b".to_owned();
    odd.functions[1].name = "a b".to_owned();
    assert_eq!(with_function_map(&old, &odd).unwrap().1, 2);
}
