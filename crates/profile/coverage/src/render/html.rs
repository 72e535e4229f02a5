//! Pages: an overview with a search, and one page for each source file, with a column for each target.
//!
//! Colours: red, no target executed the line; amber, some target with the line did not; green, each one did. The style
//! sheet follows the light or dark mode of the browser. Nothing is loaded from elsewhere.

use super::text::short;
use super::{absence, demangled, escaped, fraction, percent};
use crate::ratio::Ratio;
use crate::union::{CoverageReport, FileCoverage, Totals};
use std::fmt::Write;

/// A file to write.
#[derive(Debug)]
pub struct Page {
    /// Its name in the directory.
    pub name: String,
    pub text: String,
}

/// All pages. `title` and `date` are shown in the heading; `source` reads a source file.
pub fn pages(report: &CoverageReport, title: &str, date: &str, source: impl Fn(&str) -> Option<String>) -> Vec<Page> {
    let mut pages = vec![Page { name: "index.html".to_owned(), text: overview(report, title, date) }];
    for (number, file) in report.files.iter().enumerate() {
        pages.push(Page { name: page_name(number), text: file_page(report, number, file, source(&file.name)) });
    }
    pages
}

fn page_name(number: usize) -> String {
    format!("file-{number}.html")
}

fn page(title: &str, heading: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<header>\n{heading}</header>\n{body}</body>\n</html>\n",
        escaped(title),
        include_str!("page.css")
    )
}

fn overview(report: &CoverageReport, title: &str, date: &str) -> String {
    let targets = report.targets.join(", ");
    let heading =
        format!("<h1>Coverage of {}</h1>\n<p>{} · targets: {}</p>\n", escaped(title), escaped(date), escaped(&targets));
    let mut body =
        String::from("<input type=\"search\" placeholder=\"Search files and functions\" aria-label=\"Search\">\n");
    body.push_str(&files(report));
    body.push_str(&functions(report));
    let _ = writeln!(body, "<script>\n{}</script>", include_str!("page.js"));
    page(&format!("Coverage of {title}"), &heading, &body)
}

fn files(report: &CoverageReport) -> String {
    let own: String = report.targets.iter().map(|target| format!("<th>{}</th>", escaped(target))).collect();
    let mut out = format!(
        "<table id=\"files\">\n<tr><th>File</th><th>Lines</th><th>Functions</th><th>Regions</th><th>Branches</th>{own}</tr>\n"
    );
    for (number, file) in report.files.iter().enumerate() {
        let name = format!("<a href=\"{}\">{}</a>", page_name(number), escaped(&file.name));
        let _ = write!(out, "<tr data-name=\"{}\">", escaped(&file.name));
        row(&mut out, &name, &file.union, &file.by_target, &file.lacks_data);
    }
    out.push_str("<tr id=\"total\">");
    row(&mut out, "All", &report.union, &report.known_totals(), &report.lacks_data);
    out.push_str("</table>\n");
    out
}

fn row(out: &mut String, name: &str, union: &Totals, by_target: &[Option<Totals>], lacks_data: &[bool]) {
    let ratios = [union.lines, union.functions, union.regions, union.branches].map(cell).concat();
    let own = by_target.iter().zip(lacks_data);
    let own: String =
        own.map(|(own, lacks)| own.map_or_else(|| absent_cell_html(lacks), |own| cell(own.lines))).collect();
    let _ = writeln!(out, "<td>{name}</td>{ratios}{own}</tr>");
}

fn absent_cell_html(lacks: &bool) -> String {
    format!("<td>{}</td>", absence(*lacks))
}

fn cell(ratio: Ratio) -> String {
    let meter =
        format!("<meter max=\"100\" low=\"50\" high=\"80\" optimum=\"100\" value=\"{:.2}\"></meter>", ratio.percent());
    format!("<td title=\"{}\">{meter} {}</td>", fraction(ratio), percent(ratio))
}

fn functions(report: &CoverageReport) -> String {
    let own: String = report.targets.iter().map(|target| format!("<th>{}</th>", escaped(target))).collect();
    let mut out = format!(
        "<h2>Functions and kernels</h2>\n<table id=\"functions\">\n<tr><th>Name</th><th>Regions</th>{own}</tr>\n"
    );
    for function in &report.functions {
        let name = escaped(&demangled(&function.name));
        let counts = function.counts.iter().zip(&function.lacks_data).map(|(count, lacks)| {
            let text = count.map_or_else(|| absence(*lacks).to_owned(), |count| count.to_string());
            format!("<td>{text}</td>")
        });
        let class = if function.counts.iter().flatten().all(|count| *count == 0) { " class=\"missed\"" } else { "" };
        let _ = writeln!(
            out,
            "<tr data-name=\"{name}\"{class}><td><a href=\"{}#L{}\">{name}</a></td><td>{}</td>{}</tr>",
            page_name(function.file),
            function.line,
            fraction(function.regions),
            counts.collect::<String>()
        );
    }
    out.push_str("</table>\n");
    out
}

fn file_page(report: &CoverageReport, number: usize, file: &FileCoverage, source: Option<String>) -> String {
    let missing = if source.is_none() { " · the source is not there" } else { "" };
    let heading = format!(
        "<h1>{}</h1>\n<p><a href=\"index.html\">All files</a> · lines {} ({}){missing}</p>\n",
        escaped(&file.name),
        percent(file.union.lines),
        fraction(file.union.lines)
    );
    let own: String = report.targets.iter().map(|target| format!("<th>{}</th>", escaped(target))).collect();
    let mut body = format!("<table class=\"lines\" id=\"file-{number}\">\n<tr><th></th>{own}<th></th></tr>\n");
    let last = file.lines.last_key_value().map_or(0, |(line, _)| *line);
    let lines: Vec<&str> = source.as_deref().map_or_else(|| vec![""; last as usize], |text| text.lines().collect());
    for (line, text) in (1..).zip(lines) {
        body.push_str(&source_row(file, line, text, report.targets.len()));
    }
    body.push_str("</table>\n");
    page(&file.name, &heading, &body)
}

fn source_row(file: &FileCoverage, line: u32, text: &str, targets: usize) -> String {
    let none = vec![None; targets];
    let counts = file.lines.get(&line).unwrap_or(&none);
    let missed = counts.iter().flatten().filter(|count| **count == 0).count();
    let class = match counts.iter().flatten().count() {
        0 => "",
        all if missed == all => " class=\"missed\"",
        _ if missed > 0 => " class=\"partly\"",
        _ => " class=\"hit\"",
    };
    let cells = counts.iter().map(|count| format!("<td>{}</td>", count.map_or_else(String::new, short)));
    let cells: String = cells.collect();
    format!("<tr id=\"L{line}\"{class}><td>{line}</td>{cells}<td class=\"source\">{}</td></tr>\n", escaped(text))
}
