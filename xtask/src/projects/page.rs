//! `docs/evidence/projects.md`: a row for each project. Rows of projects that were not built stay.

use super::build::{ComparedUnit, Comparison};
use super::table::{ABSENT, PROJECTS, Project};
use crate::outcome::{During, Outcome};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const HEAD: &str = "\
# Real projects, built through HotSwap

For developers of HIP projects: build times and results of parts of known projects, with clang and through HotSwap.

Made by `cargo xtask projects`. The sources are those of Debian's source packages, of a crate and of Python packages, downloaded when the task runs; from
each project a few translation units are compiled with the options of its own build system, by clang 22 at `-O2`:

- *plain*: clang, for gfx1030; *through*: the same through `hotswap-clang++` without a plan. All files must be the same, byte by
  byte, and the ratio of the times at most 1.02.
- *plan*: through HotSwap with `HOTSWAP_RETARGET='gfx1030=>gfx1031'`; *both*: clang, for gfx1030 and gfx1031. The code objects for
  gfx1030 must equal those of *plain*, those for gfx1031 the ones that clang compiles in *both*. LLVM's tools extract them.
- hipRAND, PyTorch's extensions (gfx1030, gfx1031, gfx1032) and composable_kernel (the GPUs in its rows) are built for more GPUs:
  *both* is clang for all of them, *plan* compiles for the first, and *coalesced* is *both* through HotSwap with
  `-fhotswap-coalesce`. Each code object must equal that of clang, except those of the plans of RCCL and of attention: clang's code for
  these GPUs differs, so the program runs on each target.
- All have `-cuid=`: otherwise clang makes this identifier, a symbol in code objects, from its arguments.
- Programs are linked by clang and run on [emulated GPUs](../guide/run.md): *plain* on gfx1030, *plan* on gfx1030 and on gfx1031, with the
  same output and exit code 0.
- RCCL is compiled for gfx1100, and the plan adds gfx1101: its sources name GPUs, and do not compile for gfx1031. Its program is linked
  in each build, and runs on two GPUs: *plain* on two gfx1100, *plan* on one of each kind and on two gfx1101.

Times are seconds of processor time (user and system, of all processes), so that other work on the machine adds little.

";

/// Above the rows of units.
const UNIT_HEAD: &str = "
Units of those that are built for more than two GPUs. The ratios are times of HotSwap's build by those of clang's for all GPUs.
`-fhotswap-coalesce` decides itself which GPUs it compiles and which it derives:

";

const UNIT_TITLES: &str = "| unit | GPUs | clang for all, s | plan, s | plan / clang | coalesced, s | coalesced / clang | equal code objects | not clang's, by the plan | derived, where coalesced |\n";

const TITLES: &str = "| project | part | plain, s | through / plain | plan, s | both, s | coalesced, s | plain, bytes | through / plain | plan / both | equal code objects | runs | failures |\n";

/// Writes the rows of a project.
pub(super) fn update(page: &Path, project: &Project, result: &Comparison) -> Outcome {
    let old = fs::read_to_string(page).unwrap_or_default();
    let (mut rows, mut units) = (rows(&old), unit_rows(&old));
    rows.insert(project.name.to_owned(), row(project, result));
    units.insert(project.name.to_owned(), rows_of_units(project, result));
    fs::write(page, page_text(&rows, &units)).during("write", page)
}

/// The rows of units in a page, by project.
fn unit_rows(page: &str) -> BTreeMap<String, String> {
    let mut rows: BTreeMap<String, String> = BTreeMap::new();
    for line in page.lines() {
        if let Some(project) = PROJECTS.iter().find(|project| line.starts_with(&unit_prefix(project))) {
            *rows.entry(project.name.to_owned()).or_default() += &format!("{line}\n");
        }
    }
    rows
}

fn unit_prefix(project: &Project) -> String {
    format!("| {}: ", project.name)
}

/// The rows of a project's units, where they are coalesced.
fn rows_of_units(project: &Project, result: &Comparison) -> String {
    let units = result.units.iter().zip(project.units);
    let rows = units.filter(|_| project.is_coalesced()).map(|(unit, path)| unit_row(project, unit, path));
    rows.collect()
}

fn unit_row(project: &Project, unit: &ComparedUnit, path: &str) -> String {
    let [_, _, plan, both, coalesced] = unit.seconds;
    let name = Path::new(path).file_stem().unwrap_or_default().to_string_lossy();
    format!(
        "{}{name} | {} | {both:.1} | {plan:.1} | {} | {coalesced:.1} | {} | {} of {} | {} | {} |\n",
        unit_prefix(project),
        project.gpus.len(),
        ratio(plan, both),
        ratio(coalesced, both),
        unit.equal.equal,
        unit.equal.all,
        list_or_none(&unit.differing.join(", ")),
        list_or_none(&unit.derived.join(", ")),
    )
}

fn list_or_none(list: &str) -> &str {
    if list.is_empty() { "none" } else { list }
}

/// The rows of a page, by project.
fn rows(page: &str) -> BTreeMap<String, String> {
    page.lines()
        .filter(|line| line.matches('|').count() > 5)
        .filter(is_project_line)
        .filter_map(|line| {
            let (name, line) = named_table_line(line)?;
            let project = PROJECTS.iter().find(|project| name.starts_with(project.name))?;
            Some((project.name.to_owned(), line))
        })
        .collect()
}

fn named_table_line(line: &str) -> Option<(String, String)> {
    Some((line.strip_prefix("| ")?.split(" |").next()?.to_owned(), line.to_owned()))
}

fn is_project_line(line: &&str) -> bool {
    PROJECTS.iter().any(|project| line.starts_with(&format!("| {} ", project.name)))
}

fn page_text(rows: &BTreeMap<String, String>, units: &BTreeMap<String, String>) -> String {
    let mut text = format!("{HEAD}{}", with_rule(TITLES));
    for row in PROJECTS.iter().filter_map(|project| rows.get(project.name)) {
        text += &format!("{row}\n");
    }
    text += &format!("{UNIT_HEAD}{}", with_rule(UNIT_TITLES));
    text.extend(PROJECTS.iter().filter_map(|project| units.get(project.name)).map(String::as_str));
    text += "\nNot built by this task:\n\n| what | reason |\n| --- | --- |\n";
    for project in PROJECTS.iter().filter(|project| !rows.contains_key(project.name)) {
        text += &format!("| {} | not yet: `cargo xtask projects {}` |\n", project.name, project.name);
    }
    for (what, reason) in ABSENT {
        text += &format!("| {what} | {reason} |\n");
    }
    text
}

/// The titles of a table with the line below them.
fn with_rule(titles: &str) -> String {
    format!("{titles}|{}\n", " --- |".repeat(titles.matches('|').count() - 1))
}

fn row(project: &Project, result: &Comparison) -> String {
    let [plain, through, plan, both, coalesced] = result.seconds;
    let coalesced = if project.is_coalesced() { format!("{coalesced:.1}") } else { "–".to_owned() };
    let bytes = result.bytes.map(|bytes| bytes as f64);
    let version = result.version.split('-').next().unwrap_or_default();
    let failures = if result.failures.is_empty() { "none".to_owned() } else { result.failures.join("; ") };
    let runs = if project.programs.is_empty() {
        "–".to_owned()
    } else {
        format!("{} of {}", result.runs, (2 + project.run_targets().len()) * project.programs.len())
    };
    let units = if project.script.is_some() { 1 } else { project.units.len() };
    format!(
        "| {} {version} | {}: {units} unit{} | {plain:.1} | {} | {plan:.1} | {both:.1} | {coalesced} | {} | {} | {} | {} of {} | {runs} | {} |",
        project.name,
        project.note,
        if units == 1 { "" } else { "s" },
        ratio(through, plain),
        result.bytes[0],
        ratio(bytes[1], bytes[0]),
        ratio(bytes[2], bytes[3]),
        result.equal.equal,
        result.equal.all,
        failures.replace('|', "/").replace('\n', " "),
    )
}

fn ratio(one: f64, other: f64) -> String {
    if other > 0.0 { format!("{:.3}", one / other) } else { "–".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::projects::build::{EqualCount, RATIO};

    #[test]
    fn a_row_replaces_the_row_of_its_project_and_no_other() {
        let of = |number: usize, plain: f64| {
            row(&PROJECTS[number], &Comparison { seconds: [plain; 5], bytes: [7; 5], ..Comparison::default() })
        };
        let both = [0, 1].map(|number| (PROJECTS[number].name.to_owned(), of(number, 1.0)));
        let page = page_text(&BTreeMap::from(both.clone()), &BTreeMap::new());
        assert_eq!(rows(&page), BTreeMap::from(both));
        assert!(page.contains("| 1.000 |") && HEAD.contains(&format!("at most {RATIO}")));
    }

    #[test]
    fn rows_of_units_stay_where_another_project_is_built() {
        let project = PROJECTS.iter().find(|project| project.name == "composable_kernel GEMM").unwrap();
        let unit = |seconds: f64| ComparedUnit {
            seconds: [1.0, 1.0, 2.0, seconds, 4.0],
            equal: EqualCount { equal: 7, all: 8 },
            differing: vec!["gfx1031"],
            derived: vec!["gfx1032".to_owned()],
        };
        let result = Comparison { units: vec![unit(8.0), unit(16.0)], ..Comparison::default() };
        let units = BTreeMap::from([(project.name.to_owned(), rows_of_units(project, &result))]);
        let page = page_text(&BTreeMap::from([(project.name.to_owned(), row(project, &result))]), &units);
        assert_eq!(unit_rows(&page), units);
        assert!(page.contains(
            "| composable_kernel GEMM: gemm_f32 | 7 | 8.0 | 2.0 | 0.250 | 4.0 | 0.500 | 7 of 8 | gfx1031 | gfx1032 |"
        ));
        assert_eq!(rows(&page).len(), 1, "rows of units are no rows of projects");
    }
}
