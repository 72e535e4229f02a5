//! The forms for other tools, as their readers take them: Cobertura's XML by its DTD and by pycobertura, lcov's by genhtml.
//!
//! Invariant: the figures of each reader are those that the report has. Absent: services, which read the same forms.

use hotswap_coverage::render::{cobertura, lcov};
use hotswap_coverage::{CoverageReport, parse};
use hotswap_userland::skip;
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

/// The output of a program that must succeed in the directory.
fn read_output(program: &Path, args: &[&str], directory: &Path) -> String {
    let output = Command::new(program).args(args).current_dir(directory).output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}: {text}{}", program.display(), String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn coberturas_form_is_that_of_its_dtd() {
    let xml = cobertura(&sample_report(), 1);
    assert_eq!(dtd_fault(&xml), None, "{xml}");
    assert!(xml.contains("coverage-04.dtd") && xml.contains("a&amp;b") && xml.contains("&lt;c&gt;"), "{xml}");
    // Faults that the check must see.
    for (from, to) in [
        (" timestamp=\"1\"", ""),
        ("hits=", "count="),
        ("<methods/>\n", ""),
        ("</lines>", ""),
        ("<sources><source>/</source></sources>", "<source>/</source>"),
        (" number=", " executed=\"1\" number="),
    ] {
        assert!(xml.contains(from), "{from}: {xml}");
        assert!(dtd_fault(&xml.replacen(from, to, 1)).is_some(), "{from} becomes {to:?}");
    }
    let sums = line_sums(&sample_report());
    let stated = format!("lines-covered=\"{}\" lines-valid=\"{}\"", sums.covered, sums.valid);
    assert!(xml.contains(&stated) && sums.covered > 0 && sums.covered < sums.valid, "{stated}: {xml}");
}

#[test]
fn pycobertura_reads_the_same_figures() {
    let Some(program) = find_program("pycobertura") else {
        return skip("coverage for pycobertura", "there is no pycobertura");
    };
    let directory = tempfile::tempdir().expect("a scratch directory");
    let report = sample_report();
    std::fs::write(directory.path().join("c.xml"), cobertura(&report, 1)).expect("the directory can be written");
    let text = read_output(&program, &["show", "--format", "json", "c.xml"], directory.path());
    let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let sums = line_sums(&report);
    let total = &json["total"];
    assert_eq!((&total["Stmts"], &total["Miss"]), (&sums.valid.into(), &(sums.valid - sums.covered).into()), "{text}");
}

#[test]
fn genhtml_reads_the_same_figures() {
    let Some(program) = find_program("genhtml") else { return skip("coverage for genhtml", "there is no genhtml") };
    let directory = tempfile::tempdir().expect("a scratch directory");
    let report = sample_report();
    let mut sources = lcov(&report);
    for (number, file) in report.files.iter().enumerate() {
        let name = directory.path().join(format!("{number}.hip"));
        std::fs::write(&name, "// text\n".repeat(9)).expect("the directory can be written");
        sources = sources.replace(&file.name, &name.display().to_string());
    }
    std::fs::write(directory.path().join("c.info"), sources).expect("the directory can be written");
    let text = read_output(&program, &["c.info", "-o", "pages"], directory.path());
    let sums = line_sums(&report);
    assert!(text.contains(&format!("({} of {} lines)", sums.covered, sums.valid)), "{text}");
}
