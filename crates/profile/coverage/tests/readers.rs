//! The forms for other tools, as their readers take them: Cobertura's XML by its DTD and by pycobertura, lcov's by genhtml,
//! annotations by the rules of GitHub Actions.
//!
//! Invariant: the figures of each reader are those that the report has, and each check sees the faults that are planted in
//! the text. Absent: services, which read the same forms.

use hotswap_coverage::render::{annotations, cobertura, lcov};
use hotswap_coverage::{AddedLines, CoverageReport, DiffCoverage, parse};
use hotswap_userland::skip;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An element of coverage-04.dtd: those that may contain it, its required attributes, and its children in their order.
struct DtdElement {
    name: &'static str,
    parent: &'static str,
    attributes: &'static str,
    children: &'static [&'static str],
}

#[rustfmt::skip]
const DTD: &[DtdElement] = &[
    DtdElement { name: "coverage", parent: "", attributes: "line-rate branch-rate lines-covered lines-valid branches-covered branches-valid complexity version timestamp", children: &["sources", "packages"] },
    DtdElement { name: "sources", parent: "coverage", attributes: "", children: &["source"] },
    DtdElement { name: "source", parent: "sources", attributes: "", children: &[] },
    DtdElement { name: "packages", parent: "coverage", attributes: "", children: &["package"] },
    DtdElement { name: "package", parent: "packages", attributes: "name line-rate branch-rate complexity", children: &["classes"] },
    DtdElement { name: "classes", parent: "package", attributes: "", children: &["class"] },
    DtdElement { name: "class", parent: "classes", attributes: "name filename line-rate branch-rate complexity", children: &["methods", "lines"] },
    DtdElement { name: "methods", parent: "class", attributes: "", children: &["method"] },
    DtdElement { name: "lines", parent: "class", attributes: "", children: &["line"] },
    DtdElement { name: "line", parent: "lines", attributes: "number hits", children: &[] },
];

/// Attributes that the DTD gives a default.
const OPTIONAL: &[&str] = &["branch", "condition-coverage"];

/// Element of the table whose end is awaited, and the children that it had.
struct OpenElement {
    row: &'static DtdElement,
    children: Vec<String>,
}

/// The first thing that the DTD does not permit, or nothing.
fn dtd_fault(xml: &str) -> Option<String> {
    let mut open: Vec<OpenElement> = Vec::new();
    for tag in xml.split('<').skip(1).filter(|tag| !tag.starts_with(['?', '!'])) {
        let Some((tag, _)) = tag.split_once('>') else { return Some(format!("<{tag}")) };
        if let Some(name) = tag.strip_prefix('/') {
            match open.pop() {
                Some(last) if last.row.name == name => {
                    if let Some(fault) = order_fault(&last) {
                        return Some(fault);
                    }
                }
                _ => return Some(format!("</{name}> ends another element")),
            }
            continue;
        }
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        let parent = open.last_mut().map_or("", |last| {
            last.children.push(name.to_owned());
            last.row.name
        });
        let Some(row) = DTD.iter().find(|row| row.name == name && row.parent == parent) else {
            return Some(format!("<{name}> in <{parent}>"));
        };
        if let Some(fault) = attribute_fault(row, tag) {
            return Some(fault);
        }
        if !tag.ends_with('/') {
            open.push(OpenElement { row, children: Vec::new() });
        }
    }
    open.pop().map(|last| format!("<{}> does not end", last.row.name))
}

fn order_fault(element: &OpenElement) -> Option<String> {
    let mut found = element.children.clone();
    found.dedup();
    let is_list = element.row.children.len() == 1;
    let is_right = if is_list { found.len() <= 1 } else { found == element.row.children };
    (!is_right).then(|| format!("children of <{}>: {found:?}", element.row.name))
}

fn attribute_fault(row: &DtdElement, tag: &str) -> Option<String> {
    let values: Vec<&str> = tag.split('"').collect();
    // Text before each value ends with the attribute's name.
    let names = values.iter().step_by(2).filter_map(|text| text.trim().strip_suffix('='));
    let names: Vec<&str> = names.map(|text| text.rsplit(' ').next().unwrap_or_default()).collect();
    let missing = row.attributes.split_whitespace().find(|name| !names.contains(name));
    let more =
        names.iter().find(|name| !row.attributes.split(' ').any(|own| own == **name) && !OPTIONAL.contains(name));
    let fault = missing.or(more.copied())?;
    Some(format!("attribute {fault} of <{}>", row.name))
}

/// Two files of host and GPU, with branches, in two directories whose names must be escaped.
fn sample_report() -> CoverageReport {
    let exports = [("host", 0), ("gfx90a", 7)].map(|(target, count)| {
        let file = |name: &str| {
            format!(
                r#"{{"filename":"/src/{name}","segments":[[2,1,{count},true,true,false],[4,2,0,false,false,false],[6,1,0,true,true,false],[7,2,0,false,false,false]],"branches":[[2,1,2,9,{count},0,0,0,4]],"summary":{{}}}}"#
            )
        };
        let function = format!(
            r#"{{"name":"_Z5scaleff","count":{count},"filenames":["/src/a&b/scale.hip"],"regions":[[2,1,4,2,{count},0,0,0]],"branches":[]}}"#
        );
        let files = [file("a&b/scale.hip"), file("<c>/other.hip")].join(",");
        let json = format!(
            r#"{{"data":[{{"files":[{files}],"functions":[{function}]}}],"type":"llvm.coverage.json.export","version":"3.1.0"}}"#
        );
        parse(target, json.as_bytes()).expect("the export is sound")
    });
    CoverageReport::of(exports.into())
}

/// Lines of the report, and those that were executed.
#[derive(Default)]
struct LineSums {
    valid: usize,
    covered: usize,
}

fn line_sums(report: &CoverageReport) -> LineSums {
    let lines =
        report.files.iter().flat_map(|file| file.lines.keys().map(|line| file.count(*line).unwrap_or_default()));
    let counts: Vec<u64> = lines.collect();
    LineSums { valid: counts.len(), covered: counts.iter().filter(|count| **count > 0).count() }
}

fn find_program(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).map(|path| path.join(name)).find(|place| place.is_file())
}

/// The output of a program in the directory, or the end of its complaint.
fn read_output(program: &Path, args: &[&str], directory: &Path) -> Result<String, String> {
    let output = Command::new(program).args(args).current_dir(directory).output().expect("the program starts");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(text) } else { Err(format!("{}: {text}{error}", program.display())) }
}

/// A change of a text that a check must see.
struct PlantedFault {
    name: &'static str,
    from: &'static str,
    to: &'static str,
}

/// The check finds no fault in the text, and one after each change.
fn each_plant_is_seen(text: &str, plants: &[PlantedFault], find_fault: &dyn Fn(&str) -> Option<String>) {
    assert_eq!(find_fault(text), None, "{text}");
    for PlantedFault { name, from, to } in plants {
        assert!(text.contains(from), "{name}: no {from}: {text}");
        assert!(find_fault(&text.replacen(from, to, 1)).is_some(), "{name}: {from} becomes {to}");
    }
}

#[test]
fn coberturas_form_is_that_of_its_dtd() {
    let xml = cobertura(&sample_report(), 1);
    assert!(xml.contains("coverage-04.dtd") && xml.contains("a&amp;b") && xml.contains("&lt;c&gt;"), "{xml}");
    let plants = [
        PlantedFault { name: "missing attribute", from: " timestamp=\"1\"", to: "" },
        PlantedFault { name: "attribute of another name", from: "hits=", to: "count=" },
        PlantedFault { name: "missing child", from: "<methods/>\n", to: "" },
        PlantedFault { name: "element without an end", from: "</lines>", to: "" },
        PlantedFault {
            name: "child elsewhere",
            from: "<sources><source>/</source></sources>",
            to: "<source>/</source>",
        },
        PlantedFault { name: "unknown attribute", from: " number=", to: " executed=\"1\" number=" },
    ];
    each_plant_is_seen(&xml, &plants, &dtd_fault);
}

/// The value of an attribute in the first tag of a text.
fn attribute<'x>(element: &'x str, name: &str) -> &'x str {
    let tag = element.split('>').next().unwrap_or_default();
    tag.split_once(&format!(" {name}=\"")).and_then(|(_, rest)| rest.split('"').next()).unwrap_or_default()
}

/// Lines and branches below an element, counted from its `<line>` elements.
#[derive(Default)]
struct CountedLines {
    lines: LineSums,
    branches: LineSums,
}

fn count_lines(element: &str) -> CountedLines {
    let mut counted = CountedLines::default();
    for line in element.split("<line ").skip(1) {
        counted.lines.valid += 1;
        counted.lines.covered += usize::from(!line.contains("hits=\"0\""));
        let outcomes = line.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
        if let Some((covered, valid)) = outcomes.and_then(|(outcomes, _)| outcomes.split_once('/')) {
            counted.branches.covered += covered.parse::<usize>().unwrap_or_default();
            counted.branches.valid += valid.parse::<usize>().unwrap_or_default();
        }
    }
    counted
}

/// Whether a stated rate is that of the counts. Rates are cut after four digits; without lines all are covered.
fn is_rate(stated: &str, sums: &LineSums) -> bool {
    let ten_thousandths = (10_000 * sums.covered).checked_div(sums.valid).unwrap_or(10_000);
    stated == format!("{}.{:04}", ten_thousandths / 10_000, ten_thousandths % 10_000)
}

/// The first element whose stated figures are not those of its lines.
fn figure_fault(xml: &str) -> Option<String> {
    let total = count_lines(xml);
    let root = &xml[xml.find("<coverage ")?..];
    let stated =
        ["lines-covered", "lines-valid", "branches-covered", "branches-valid"].map(|name| attribute(root, name));
    let figures = [total.lines.covered, total.lines.valid, total.branches.covered, total.branches.valid];
    if stated != figures.map(|figure| figure.to_string()) {
        return Some(format!("{stated:?}, counted {figures:?}"));
    }
    let packages = root.split("<package ").skip(1).map(|element| format!("<package {element}"));
    let classes = root.split("<class ").skip(1).map(|element| format!("<class {element}"));
    // An element ends before the next one of its kind begins.
    std::iter::once(root.to_owned()).chain(packages).chain(classes).find_map(|element| {
        let counted = count_lines(&element);
        let is_right = is_rate(attribute(&element, "line-rate"), &counted.lines)
            && is_rate(attribute(&element, "branch-rate"), &counted.branches);
        (!is_right).then(|| element.split('>').next().unwrap_or_default().to_owned())
    })
}

#[test]
fn coberturas_figures_are_those_of_its_lines() {
    let report = sample_report();
    let xml = cobertura(&report, 1);
    let sums = line_sums(&report);
    let stated = format!("lines-covered=\"{}\" lines-valid=\"{}\"", sums.covered, sums.valid);
    assert!(xml.contains(&stated) && sums.covered > 0 && sums.covered < sums.valid, "{stated}: {xml}");
    let plants = [
        PlantedFault { name: "rate of everything", from: "<coverage line-rate=\"0", to: "<coverage line-rate=\"1" },
        PlantedFault { name: "rate of a file", from: "scale.hip\" line-rate=\"0", to: "scale.hip\" line-rate=\"1" },
        PlantedFault { name: "rate of a directory", from: "a&amp;b\" line-rate=\"0", to: "a&amp;b\" line-rate=\"1" },
        PlantedFault { name: "rate of branches", from: "branch-rate=\"", to: "branch-rate=\"0" },
        PlantedFault { name: "executed line", from: "hits=\"0\"", to: "hits=\"1\"" },
        PlantedFault { name: "line left out", from: "<line number=\"2\" ", to: "<gap number=\"2\" " },
        PlantedFault { name: "sum", from: "lines-valid=\"", to: "lines-valid=\"1" },
    ];
    each_plant_is_seen(&xml, &plants, &figure_fault);
}

/// A file as a reader states it.
#[derive(Debug, PartialEq, Eq)]
struct ReadFile {
    name: String,
    valid: u64,
    missed: u64,
}

fn reported_files(report: &CoverageReport) -> Vec<ReadFile> {
    let mut files: Vec<ReadFile> = report
        .files
        .iter()
        .map(|file| {
            let missed = file.lines.keys().filter(|line| file.count(**line).unwrap_or_default() == 0).count();
            let name = file.name.trim_start_matches('/').to_owned();
            ReadFile { name, valid: file.lines.len() as u64, missed: missed as u64 }
        })
        .collect();
    files.sort_by(|one, other| one.name.cmp(&other.name));
    files
}

fn pycobertura_fault(program: &Path, xml: &str, expected: &[ReadFile]) -> Option<String> {
    let directory = tempfile::tempdir().expect("a scratch directory");
    std::fs::write(directory.path().join("c.xml"), xml).expect("the directory can be written");
    let text = match read_output(program, &["show", "--format", "json", "c.xml"], directory.path()) {
        Ok(text) => text,
        Err(complaint) => return Some(complaint),
    };
    let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let rows = json["files"].as_array().expect("rows of files").iter();
    let mut files: Vec<ReadFile> = rows
        .map(|row| ReadFile {
            name: row["Filename"].as_str().unwrap_or_default().to_owned(),
            valid: row["Stmts"].as_u64().unwrap_or_default(),
            missed: row["Miss"].as_u64().unwrap_or_default(),
        })
        .collect();
    files.sort_by(|one, other| one.name.cmp(&other.name));
    let total = expected.iter().map(|file| file.missed).sum::<u64>();
    (files != expected || json["total"]["Miss"] != total).then_some(text)
}

#[test]
fn pycobertura_reads_the_same_figures() {
    let Some(program) = find_program("pycobertura") else {
        return skip("coverage for pycobertura", "there is no pycobertura");
    };
    let report = sample_report();
    let expected = reported_files(&report);
    let plants = [
        PlantedFault { name: "file of another name", from: "filename=\"src/", to: "filename=\"source/" },
        PlantedFault { name: "file without a name", from: " filename=", to: " file=" },
        PlantedFault { name: "executed line", from: "hits=\"0\"", to: "hits=\"1\"" },
        PlantedFault { name: "element without an end", from: "</lines>", to: "" },
    ];
    each_plant_is_seen(&cobertura(&report, 1), &plants, &|xml| pycobertura_fault(&program, xml, &expected));
}

fn genhtml_fault(program: &Path, text: &str, report: &CoverageReport) -> Option<String> {
    let directory = tempfile::tempdir().expect("a scratch directory");
    let mut sources = text.to_owned();
    for (number, file) in report.files.iter().enumerate() {
        let name = directory.path().join(format!("{number}.hip"));
        std::fs::write(&name, "// text\n".repeat(9)).expect("the directory can be written");
        sources = sources.replace(&file.name, &name.display().to_string());
    }
    std::fs::write(directory.path().join("c.info"), sources).expect("the directory can be written");
    let pages = match read_output(program, &["c.info", "-o", "pages"], directory.path()) {
        Ok(pages) => pages,
        Err(complaint) => return Some(complaint),
    };
    let sums = line_sums(report);
    (!pages.contains(&format!("({} of {} lines)", sums.covered, sums.valid))).then_some(pages)
}

#[test]
fn genhtml_reads_the_same_figures() {
    let Some(program) = find_program("genhtml") else { return skip("coverage for genhtml", "there is no genhtml") };
    let report = sample_report();
    let plants = [
        PlantedFault { name: "unknown file", from: "SF:/src/", to: "SF:/source/" },
        PlantedFault { name: "line left out", from: "DA:2,", to: "DB:2," },
        PlantedFault { name: "executed line", from: "DA:6,0", to: "DA:6,1" },
        PlantedFault { name: "file without an end", from: "end_of_record", to: "end" },
    ];
    each_plant_is_seen(&lcov(&report), &plants, &|text| genhtml_fault(&program, text, &report));
}

/// The first thing that GitHub Actions does not show as it is meant: an eleventh warning of a step, a line that is not a
/// command, a file that is not of the repository, a range that ends before it begins.
fn annotation_fault(text: &str) -> Option<String> {
    if text.lines().count() > 10 {
        return Some("more than ten warnings".to_owned());
    }
    text.lines().find(|line| !is_annotation(line)).map(str::to_owned)
}

fn is_annotation(line: &str) -> bool {
    let Some((properties, message)) = line.strip_prefix("::warning ").and_then(|rest| rest.split_once("::")) else {
        return false;
    };
    let values: BTreeMap<&str, &str> = properties.split(',').filter_map(|pair| pair.split_once('=')).collect();
    let is_inside = values.get("file").is_some_and(|file| !file.is_empty() && !file.starts_with('/'));
    let [first, last] = ["line", "endLine"].map(|name| values.get(name).and_then(|value| value.parse::<u32>().ok()));
    let (Some(first), Some(last)) = (first, last) else { return false };
    is_inside && values.len() == 3 && first > 0 && first <= last && !message.is_empty()
}

#[test]
fn annotations_keep_githubs_limits() {
    let report = sample_report();
    let added = AddedLines { files: BTreeMap::from([("<c>/other.hip".to_owned(), (1..=9).collect())]) };
    let text = annotations(&report, &DiffCoverage::of(&report, &added, "/src"), "/src");
    assert!(text.contains("file=<c>/other.hip,"), "{text}");
    let eleven = "::warning file=a,line=1,endLine=1::not executed\n".repeat(11);
    assert!(annotation_fault(&eleven).is_some());
    let plants = [
        PlantedFault { name: "file elsewhere", from: "file=", to: "file=/src/" },
        PlantedFault { name: "missing attribute", from: ",endLine=", to: "-" },
        PlantedFault { name: "range that ends early", from: "line=", to: "line=9" },
        PlantedFault { name: "another command", from: "::warning ", to: "::warn-" },
        PlantedFault { name: "end of a line in a message", from: "not executed", to: "not\nexecuted" },
    ];
    each_plant_is_seen(&text, &plants, &annotation_fault);
}
