//! The pictures of the book, drawn from data: the way of a compile from a table here, sizes from the table of docs/generics.md.
//!
//! Invariant: a picture depends on its data alone, and a test compares the committed files with what is drawn now.

use crate::outcome::{During, Outcome};
use crate::paths;
use std::fmt::Write as _;
use std::fs;

/// Below `docs`.
const DIRECTORY: &str = "pictures";

/// Each picture with its file.
pub(super) fn all() -> Outcome<[(&'static str, String); 2]> {
    let page = paths::workspace().join("docs/generics.md");
    let generics = fs::read_to_string(&page).during("read", &page)?;
    Ok([("data-flow.svg", data_flow()), ("sizes.svg", sizes(&generics))])
}

pub(super) fn write() -> Outcome {
    let directory = paths::workspace().join("docs").join(DIRECTORY);
    fs::create_dir_all(&directory).during("create", &directory)?;
    for (name, text) in all()? {
        let file = directory.join(name);
        fs::write(&file, text).during("write", &file)?;
        println!("{}", file.display());
    }
    Ok(())
}

/// Whose step it is.
#[derive(Clone, Copy)]
enum Owner {
    Clang,
    HotSwap,
    File,
}

/// A step of a compile with a plan: its owner, its name, what it does.
const STEPS: &[(Owner, &str, &str)] = &[
    (Owner::File, "a.hip, and a plan: gfx1030=>gfx1031", ""),
    (Owner::HotSwap, "hotswap-clang++", "reads the arguments, checks the plan, starts the real clang"),
    (Owner::Clang, "clang, cc1 for each GPU of --offload-arch", "compiles for gfx1030, and for the host"),
    (Owner::HotSwap, "device link: lld of HotSwap", "the real lld, then a companion where code must change"),
    (Owner::HotSwap, "fat binary: bundler or linker wrapper of HotSwap", "the real tool, then each GPU of the plan"),
    (Owner::HotSwap, "route for each GPU", "native code, relabelled, compiled again, or rewritten; else refused"),
    (Owner::HotSwap, "read again and verify", "the code object, then the fat binary, then the file gets its name"),
    (Owner::Clang, "host link", "with the manifest: the plan, and a symbol of each patch family"),
    (Owner::File, "program: code for gfx1030 and gfx1031, and a record", ""),
];

const WIDTH: usize = 900;

/// Opens a picture.
fn head(height: usize, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<title>{title}</title>\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    )
}

fn data_flow() -> String {
    const STEP: usize = 54;
    let mut text = head(STEPS.len() * STEP + 40, "The way of a compile with a plan");
    for (number, (owner, name, action)) in STEPS.iter().enumerate() {
        let (top, color) = (10 + number * STEP, owner.color());
        let _ = writeln!(
            text,
            "<rect x=\"10\" y=\"{top}\" width=\"880\" height=\"38\" rx=\"4\" fill=\"{color}\" stroke=\"#444444\"/>"
        );
        let middle = top + 24;
        let _ = writeln!(text, "<text x=\"20\" y=\"{middle}\" font-weight=\"bold\">{}</text>", escaped(name));
        let _ = writeln!(text, "<text x=\"430\" y=\"{middle}\" font-size=\"12\">{}</text>", escaped(action));
        if number + 1 < STEPS.len() {
            let (from, to) = (top + 38, top + STEP);
            let _ =
                writeln!(text, "<path d=\"M450 {from} V{to} m-4 -6 l4 6 l4 -6\" fill=\"none\" stroke=\"#444444\"/>");
        }
    }
    let bottom = STEPS.len() * STEP + 10;
    for (place, (owner, name)) in
        [(Owner::Clang, "clang and lld"), (Owner::HotSwap, "HotSwap"), (Owner::File, "files")].iter().enumerate()
    {
        let (left, color) = (20 + place * 160, owner.color());
        let _ = writeln!(
            text,
            "<rect x=\"{left}\" y=\"{bottom}\" width=\"14\" height=\"14\" fill=\"{color}\" stroke=\"#444444\"/>"
        );
        let _ = writeln!(text, "<text x=\"{}\" y=\"{}\">{name}</text>", left + 22, bottom + 12);
    }
    text + "</svg>\n"
}

impl Owner {
    const fn color(self) -> &'static str {
        match self {
            Self::Clang => "#d9d9d9",
            Self::HotSwap => "#9ecae1",
            Self::File => "#fdd0a2",
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A library: bytes and GPUs as installed, with generic targets, and without what these cover.
struct LibrarySizes<'t> {
    name: &'t str,
    bars: [(u64, &'t str); 3],
}

/// The rows of the table.
fn rows(page: &str) -> Vec<LibrarySizes<'_>> {
    page.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<LibrarySizes<'_>> {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [name, _, bytes, gpus, generic, more, without, _] = cells[..] else { return None };
    let size = |text: &str| text.parse::<u64>().ok();
    let bars = [(size(bytes)?, gpus), (size(generic)?, more), (size(without)?, more)];
    Some(LibrarySizes { name: name.split(" (").next().unwrap_or(name), bars })
}

fn sizes(page: &str) -> String {
    const BAR: usize = 20;
    const LONGEST: u64 = 420;
    const NAMES: [&str; 3] = ["as installed", "with generic targets", "without covered code"];
    const COLORS: [&str; 3] = ["#d9d9d9", "#9ecae1", "#3182bd"];
    let rows = rows(page);
    let group = 3 * BAR + 36;
    let mut text = head(rows.len() * group + 10, "Sizes of libraries, and the GPUs that they serve");
    for (number, row) in rows.iter().enumerate() {
        let top = 10 + number * group;
        let largest = row.bars.iter().map(|(bytes, _)| *bytes).max().unwrap_or(1).max(1);
        let _ = writeln!(text, "<text x=\"10\" y=\"{}\" font-weight=\"bold\">{}</text>", top + 14, escaped(row.name));
        for (place, (bytes, gpus)) in row.bars.iter().enumerate() {
            let (y, width) = (top + 22 + place * BAR, (bytes * LONGEST / largest).max(1));
            let (name, color) = (NAMES[place], COLORS[place]);
            let _ = writeln!(text, "<text x=\"10\" y=\"{}\" font-size=\"12\">{name}</text>", y + 13);
            let _ =
                writeln!(text, "<rect x=\"150\" y=\"{y}\" width=\"{width}\" height=\"{}\" fill=\"{color}\"/>", BAR - 3);
            let (at, megabytes) = (156 + width, *bytes as f64 / 1e6);
            let label = format!("{megabytes:.0} MB, {gpus} GPU{}", if *gpus == "1" { "" } else { "s" });
            let _ = writeln!(text, "<text x=\"{at}\" y=\"{}\" font-size=\"12\">{label}</text>", y + 13);
        }
    }
    text + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_pictures_are_drawn_from_the_data() {
        for (name, text) in all().unwrap() {
            let file = paths::workspace().join("docs").join(DIRECTORY).join(name);
            let committed = fs::read_to_string(&file).unwrap_or_default();
            assert!(committed == text, "{}: `cargo xtask book --pictures` draws it anew", file.display());
        }
    }

    #[test]
    fn a_bar_is_as_long_as_its_part_of_the_largest() {
        let page = "| library | files | bytes | GPUs | with: bytes | GPUs | without: bytes | refused |\n\
                    | a.so (p 1) | 1 | 4000000 | 14 | 2000000 | 32 | 1000000 | 0 |\n";
        let drawn = sizes(page);
        for part in ["width=\"420\"", "width=\"210\"", "width=\"105\"", "4 MB, 14 GPUs", "1 MB, 32 GPUs", ">a.so<"] {
            assert!(drawn.contains(part), "{part}\n{drawn}");
        }
        assert_eq!(rows(page).len(), 1);
    }
}
