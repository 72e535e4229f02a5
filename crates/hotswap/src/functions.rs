//! What was done to the functions of a rewritten code object, as a table.

use crate::text;
use hotswap_adapt::{Change, FunctionRecord, KernelRecord, ObjectRecord};

/// The table, and what is to be said besides; empty where no function concerned a family.
pub(crate) fn table(record: &ObjectRecord) -> String {
    let titles = ["  FUNCTION", "KIND", "PLACES", "BYTES", "VGPRS", "SGPRS", "WAVES", "CYCLES"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    rows.extend(record.functions.iter().map(row));
    let mut out = if rows.len() > 1 { text::table(&rows) } else { String::new() };
    for function in &record.functions {
        let name = text::plain(&function.name);
        let waves = function.kernel.as_ref().and_then(|kernel| kernel.waves);
        if let Some(Change { before, after }) = waves.filter(|waves| waves.after < waves.before) {
            out += &format!("  fewer waves: {name}: {after} on a SIMD, {before} before\n");
        }
        for sites in &function.sites {
            if let Some(why) = &sites.left {
                out += &format!(
                    "  left as it is: {name}: {} {}: {}\n",
                    text::plain(&sites.family),
                    sites.count,
                    text::plain(why)
                );
            }
        }
    }
    out
}

fn row(function: &FunctionRecord) -> Vec<String> {
    let changed = function.sites.iter().filter(|sites| sites.left.is_none());
    let places: Vec<String> = changed.map(|sites| format!("{} {}", sites.family, sites.count)).collect();
    let kernel = |field: fn(&KernelRecord) -> Option<Change>| {
        function.kernel.as_ref().and_then(field).map_or("-".to_owned(), change)
    };
    vec![
        format!("  {}", text::plain(&function.name)),
        if function.kernel.is_some() { "kernel" } else { "called" }.to_owned(),
        if places.is_empty() { "-".to_owned() } else { places.join(", ") },
        format!("{:+}", function.grown),
        kernel(|kernel| Some(kernel.vgprs)),
        kernel(|kernel| Some(kernel.sgprs)),
        kernel(|kernel| kernel.waves),
        format!("+{}", function.cycles),
    ]
}

fn change(change: Change) -> String {
    if change.before == change.after {
        change.before.to_string()
    } else {
        format!("{} to {}", change.before, change.after)
    }
}
