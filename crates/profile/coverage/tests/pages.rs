//! The pages in a browser: search, links to lines, light and dark mode, nothing loaded from elsewhere.
//!
//! A script is added to a copy of a page, acts as a reader and leaves its observations; the browser runs the page's own
//! script and style sheet.

use hotswap_coverage::render::pages;
use hotswap_coverage::{CoverageReport, parse};
use hotswap_userland::skip;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs that are tried, if `HOTSWAP_TEST_BROWSER` names none.
const BROWSERS: &[&str] = &["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/// The probe of a reader.
const PROBE: &str = include_str!("browser.js");

fn browser() -> Option<PathBuf> {
    let named = std::env::var_os("HOTSWAP_TEST_BROWSER").map(PathBuf::from);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    named.or_else(|| {
        let places = std::env::split_paths(&paths).flat_map(|path| BROWSERS.iter().map(move |name| path.join(name)));
        places.into_iter().find(|place| place.is_file())
    })
}

/// The export of a target: two files, the functions `scale` and `<left & right>`; each executes its own lines.
fn export(target: &str, count: u64) -> Vec<u8> {
    let file = |name: &str| {
        format!(
            r#"{{"filename":"/src/{name}","segments":[[2,1,{count},true,true,false],[4,2,0,false,false,false]],
            "summary":{{"lines":{{"count":3,"covered":{}}},"functions":{{"count":1,"covered":1}}}}}}"#,
            count.min(3)
        )
    };
    let function = |name: &str, file: &str| {
        format!(
            r#"{{"name":"{name}","count":{count},"filenames":["/src/{file}"],"regions":[[2,1,4,2,{count},0,0,0]],"branches":[]}}"#
        )
    };
    let (files, functions) = (
        [file("scale.hip"), file("other.hip")].join(","),
        [function("_Z5scaleff", "scale.hip"), function("<left & right>", "other.hip")].join(","),
    );
    let json = format!(
        r#"{{"data":[{{"files":[{files}],"functions":[{functions}]}}],"type":"llvm.coverage.json.export","version":"3.1.0"}}"#
    );
    assert!(serde_json::from_str::<Value>(&json).is_ok(), "{target}: {json}");
    json.into_bytes()
}

/// Writes the pages of a report, each with the probe.
fn write(directory: &Path) -> Vec<String> {
    let targets = [("host", 0), ("gfx90a", 7), ("gfx1030", 0)];
    let exports = targets.map(|(target, count)| parse(target, &export(target, count)).expect("the export is sound"));
    let report = CoverageReport::of(exports.into());
    let source = |_: &str| Some("// one\nint two() {\n  return 3;\n}\n".to_owned() + &"// more\n".repeat(300));
    let pages = pages(&report, "the <app>", "2026-11-25 00:00 UTC", source);
    for page in &pages {
        let text = page.text.replace("</body>", &format!("<script>\n{PROBE}</script>\n</body>"));
        std::fs::write(directory.join(&page.name), text).expect("the directory can be written");
    }
    pages.into_iter().map(|page| page.name).collect()
}

/// The observations of the probe on a page.
fn look(browser: &Path, directory: &Path, page: &str, is_dark: bool) -> Value {
    let scheme = format!("--blink-settings=preferredColorScheme={}", u8::from(!is_dark));
    let profile = format!("--user-data-dir={}", directory.join("profile").display());
    let address = format!("file://{}/{page}", directory.display());
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=1280,800",
            "--dump-dom",
            &scheme,
            &profile,
        ])
        .arg(&address)
        .output()
        .expect("the browser starts");
    let dom = String::from_utf8_lossy(&output.stdout);
    let result = dom.split_once("data-result=\"").and_then(|(_, rest)| rest.split_once('"'));
    let (result, _) = result.unwrap_or_else(|| panic!("{page}: {dom} {}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(
        &result.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"),
    )
    .expect("the probe leaves JSON")
}

#[test]
fn a_reader_finds_everything_in_light_and_dark_mode() {
    let Some(browser) = browser() else { return skip("pages in a browser", "there is no browser") };
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let names = write(scratch.path());
    for is_dark in [false, true] {
        for name in &names {
            let seen = look(&browser, scratch.path(), name, is_dark);
            let context = format!("{name}, dark: {is_dark}: {seen}");
            assert_eq!(seen["dark"], is_dark, "{context}");
            assert!(seen["contrast"].as_f64().is_some_and(|contrast| contrast >= 4.5), "{context}");
            assert_eq!((&seen["outside"], &seen["wide"]), (&0.into(), &false.into()), "{context}");
            for link in seen["links"].as_array().expect("links") {
                let file = link.as_str().and_then(|link| link.split('#').next()).expect("a link has a file");
                assert!(names.iter().any(|name| name == file), "{link} leads nowhere: {context}");
            }
        }
    }
}

#[test]
fn the_search_shows_what_fits_and_links_lead_to_the_line() {
    let Some(browser) = browser() else { return skip("pages in a browser", "there is no browser") };
    let scratch = tempfile::tempdir().expect("a scratch directory");
    write(scratch.path());
    let seen = look(&browser, scratch.path(), "index.html", false);
    assert_eq!(seen["all"], serde_json::json!([2, 2]), "{seen}");
    assert_eq!(seen["one"], serde_json::json!([1, 1]), "{seen}");
    assert_eq!((&seen["none"], &seen["again"]), (&serde_json::json!([0, 0]), &seen["all"]), "{seen}");
    let heading = seen["heading"].as_str().expect("a heading");
    assert!(heading.contains("the <app>") && heading.contains("2026-11-25") && heading.contains("gfx1030"), "{seen}");
    let links = seen["links"].as_array().expect("links");
    let line =
        links.iter().filter_map(Value::as_str).find(|link| link.ends_with("#L2")).expect("a function has a line");
    let seen = look(&browser, scratch.path(), line, false);
    assert_eq!((&seen["target"], &seen["seen"]), (&"L2".into(), &true.into()), "{seen}");
    let far = look(&browser, scratch.path(), &line.replace("#L2", "#L290"), false);
    assert_eq!((&far["target"], &far["seen"]), (&"L290".into(), &true.into()), "{far}");
}
