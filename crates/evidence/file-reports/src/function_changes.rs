//! The changes to the functions of a rewritten code object as a short table: the functions that grew most, and reports
//! that are the same for many functions once, with a count. JSON has all of them.

use hotswap_adapt::{FunctionRecord, KernelRecord, NumberChange, ObjectRecord};
use hotswap_report::text;
use std::collections::BTreeMap;

/// Rows of the table.
const MOST_ROWS: usize = 40;
/// Functions that are named in a line about many.
const MOST_NAMES: usize = 3;

/// The table and its remarks; empty where no function concerned a family. `all` is the option that shows all functions.
pub fn changes_table(record: &ObjectRecord, all: &str) -> String {
    if record.functions.is_empty() {
        return String::new();
    }
    let titles = ["  FUNCTION", "KIND", "PLACES", "BYTES", "VGPRS", "SGPRS", "WAVES", "CYCLES"];
    let FunctionsByGrowth { largest: shown, others } = largest(&record.functions);
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    rows.extend(shown.into_iter().map(row));
    let mut out = text::table(&rows);
    if !others.is_empty() {
        let grown: i64 = others.iter().map(|function| function.grown).sum();
        let functions = if others.len() == 1 { "function" } else { "functions" };
        out += &format!("  and {} more {functions}, {grown:+} bytes; {all} lists all\n", others.len());
    }
    out + &fewer_waves(&record.functions) + &spilled(&record.functions) + &left(&record.functions)
}

/// Functions in the order of the code.
struct FunctionsByGrowth<'f> {
    /// Those that grew most.
    largest: Vec<&'f FunctionRecord>,
    others: Vec<&'f FunctionRecord>,
}

fn largest(functions: &[FunctionRecord]) -> FunctionsByGrowth<'_> {
    let mut order: Vec<usize> = (0..functions.len()).collect();
    order.sort_by_key(|number| std::cmp::Reverse(function_sort_weight(&functions[*number])));
    let mut shown = vec![false; functions.len()];
    order.into_iter().take(MOST_ROWS).for_each(|number| shown[number] = true);
    let (mut largest, mut others) = (Vec::new(), Vec::new());
    for (function, is_shown) in functions.iter().zip(shown) {
        if is_shown { largest.push(function) } else { others.push(function) }
    }
    FunctionsByGrowth { largest, others }
}

fn has_changed_sites(function: &FunctionRecord) -> bool {
    function.sites.iter().any(|sites| sites.left.is_none())
}

fn function_sort_weight(function: &FunctionRecord) -> impl Ord + use<> {
    (function.grown, has_changed_sites(function))
}

/// Kernels with a lower occupancy; those with the same numbers in one line.
fn fewer_waves(functions: &[FunctionRecord]) -> String {
    let mut alike: BTreeMap<(u32, u32), Vec<&str>> = BTreeMap::new();
    for function in functions {
        let waves = function.kernel.as_ref().and_then(|kernel| kernel.waves);
        if let Some(NumberChange { before, after }) = waves.filter(|waves| waves.after < waves.before) {
            alike.entry((after, before)).or_default().push(&function.name);
        }
    }
    alike.iter().map(fewer_waves_line).collect()
}

fn fewer_waves_line(((after, before), names): (&(u32, u32), &Vec<&str>)) -> String {
    format!("  fewer waves: {}: {after} on a SIMD, {before} before\n", named(names))
}

/// Registers that were spilled because none was free, and the private segments of the kernels that reach them; what is
/// alike in one line.
fn spilled(functions: &[FunctionRecord]) -> String {
    let mut counts: BTreeMap<(u64, u64), Vec<&str>> = BTreeMap::new();
    let mut segments: BTreeMap<(u32, u32), Vec<&str>> = BTreeMap::new();
    for function in functions {
        if function.spilled.sites > 0 {
            let count = (function.spilled.sites, function.spilled.registers);
            counts.entry(count).or_default().push(&function.name);
        }
        let segment = function.kernel.as_ref().and_then(|kernel| kernel.private_segment);
        if let Some(NumberChange { before, after }) = segment {
            segments.entry((before, after)).or_default().push(&function.name);
        }
    }
    let mut text = String::new();
    for ((sites, registers), names) in &counts {
        let registers = format!("{registers} {}", if *registers == 1 { "register" } else { "registers" });
        let places = format!("{sites} {}", if *sites == 1 { "place" } else { "places" });
        text += &format!("  spilled: {}: {registers} at {places}\n", named(names));
    }
    for ((before, after), names) in &segments {
        text += &format!("  more scratch: {}: {after} bytes of private segment, {before} before\n", named(names));
    }
    text
}

/// Places that stay as they are; those of one family for one reason in one line.
fn left(functions: &[FunctionRecord]) -> String {
    let mut alike: BTreeMap<(&str, &str), (u64, Vec<&str>)> = BTreeMap::new();
    for function in functions {
        for sites in &function.sites {
            let Some(why) = &sites.left else { continue };
            let (count, names) = alike.entry((&sites.family, why)).or_default();
            *count += sites.count;
            names.push(&function.name);
        }
    }
    alike.iter().map(left_sites_line).collect()
}

fn left_sites_line(((family, why), (count, names)): (&(&str, &str), &(u64, Vec<&str>))) -> String {
    format!("  left as it is: {}: {} {count}: {}\n", named(names), text::plain(family), text::plain(why))
}

/// The first names, and how many more there are.
fn named(names: &[&str]) -> String {
    let first: Vec<String> = names.iter().take(MOST_NAMES).map(|name| text::plain(name)).collect();
    match names.len() - first.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

fn row(function: &FunctionRecord) -> Vec<String> {
    let changed = function.sites.iter().filter(|sites| sites.left.is_none());
    let places: Vec<String> = changed.map(|sites| format!("{} {}", sites.family, sites.count)).collect();
    vec![
        format!("  {}", text::plain(&function.name)),
        if function.kernel.is_some() { "kernel" } else { "called" }.to_owned(),
        if places.is_empty() { "-".to_owned() } else { places.join(", ") },
        format!("{:+}", function.grown),
        kernel_change(function, |kernel| Some(kernel.vgprs)),
        kernel_change(function, |kernel| Some(kernel.sgprs)),
        kernel_change(function, |kernel| kernel.waves),
        format!("+{}", function.cycles),
    ]
}

fn kernel_change(function: &FunctionRecord, field: fn(&KernelRecord) -> Option<NumberChange>) -> String {
    function.kernel.as_ref().and_then(field).map_or("-".to_owned(), change)
}

fn change(change: NumberChange) -> String {
    if change.before == change.after {
        change.before.to_string()
    } else {
        format!("{} to {}", change.before, change.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_adapt::{SiteCount, SpillCount};

    fn function(number: usize) -> FunctionRecord {
        let site = |left: Option<&str>| SiteCount { family: "f".into(), left: left.map(str::to_owned), count: 2 };
        let waves = Some(NumberChange { before: 16, after: if number.is_multiple_of(2) { 12 } else { 16 } });
        FunctionRecord {
            name: format!("k{number}"),
            kernel: Some(KernelRecord { waves, ..KernelRecord::default() }),
            sites: vec![site(None), site(Some("why"))],
            grown: if number == 60 { 4000 } else { 4 },
            ..FunctionRecord::default()
        }
    }

    #[test]
    fn many_functions_take_few_lines() {
        let record = ObjectRecord { functions: (0..100).map(function).collect(), ..ObjectRecord::default() };
        let text = changes_table(&record, "--report json");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + MOST_ROWS + 3);
        assert!(lines[1].starts_with("  k0 ") && lines[MOST_ROWS].starts_with("  k60 "), "{text}");
        assert_eq!(
            lines[41..],
            [
                "  and 60 more functions, +240 bytes; --report json lists all",
                "  fewer waves: k0, k2, k4 and 47 more: 12 on a SIMD, 16 before",
                "  left as it is: k0, k1, k2 and 97 more: f 200: why",
            ]
        );
    }

    #[test]
    fn spilled_registers_are_told_with_their_cost() {
        let mut functions = [1, 3, 5].map(function);
        for one in &mut functions[..2] {
            one.spilled = SpillCount { sites: 1, registers: 2 };
            let private_segment = Some(NumberChange { before: 0, after: 16 });
            one.kernel = Some(KernelRecord { private_segment, ..KernelRecord::default() });
        }
        let record = ObjectRecord { functions: functions.into(), ..ObjectRecord::default() };
        let text = changes_table(&record, "--report json");
        let expected = "  spilled: k1, k3: 2 registers at 1 place\n  more scratch: k1, k3: 16 bytes of private segment, 0 before\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn few_functions_are_all_told() {
        let record = ObjectRecord { functions: vec![function(0), function(1)], ..ObjectRecord::default() };
        let text = changes_table(&record, "--report json");
        assert_eq!(text.lines().count(), 5);
        assert!(text.ends_with("before\n  left as it is: k0, k1: f 4: why\n") && !text.contains("more"), "{text}");
        assert_eq!(changes_table(&ObjectRecord::default(), "--report json"), "");
    }
}
