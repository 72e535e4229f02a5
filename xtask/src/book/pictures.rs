//! The pictures of the book, drawn from data: the way of a compile from a table here, sizes from the table of docs/evidence/generics.md.
//!
//! Invariant: a picture depends on its data alone, and a test compares the committed files with what is drawn now.

use crate::outcome::{During, Outcome};
use crate::paths;
use std::fmt::Write as _;
use std::fs;

/// Below `docs`.
const DIRECTORY: &str = "pictures";

/// Each picture with its file.
pub(super) fn all() -> Outcome<[(&'static str, String); 3]> {
    let page = paths::workspace().join("docs/evidence/generics.md");
    let generics = fs::read_to_string(&page).during("read", &page)?;
    let compile = StepColumn { title: "The way of a compile with a plan", steps: STEPS, second: 430 };
    let registration = StepColumn { title: "From registration to kernel", steps: REGISTRATION, second: 310 };
    Ok([
        ("data-flow.svg", compile.draw(&OWNERS)),
        ("registration.svg", registration.draw(&[])),
        ("sizes.svg", sizes(&generics)),
    ])
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

/// The steps by which HIP finds the code of a kernel (docs/guide/uses.md).
const REGISTRATION: &[(Owner, &str, &str)] = &[
    (Owner::Clang, "constructor of a source file", "registers the wrapper, then the name of each kernel"),
    (Owner::Clang, "wrapper in .hipFatBinSegment", "magic HIPF, version 1, pointer"),
    (Owner::Clang, "relocation of the pointer", "the dynamic loader makes the address of the container"),
    (Owner::File, "container in .hip_fatbin", "a bundle, plain or compressed, with one entry for each target"),
    (Owner::File, "entry", "the GPU's own target, else its generic target, else SPIR-V; the first that fits"),
    (Owner::File, "code object", "its flags must allow the GPU; its metadata names the kernels"),
    (Owner::File, "kernel", "looked up by the name that the constructor registered"),
];

/// The legend of the colours of a compile.
const OWNERS: [(Owner, &str); 3] =
    [(Owner::Clang, "clang and lld"), (Owner::HotSwap, "HotSwap"), (Owner::File, "files")];

/// Steps below each other.
struct StepColumn {
    title: &'static str,
    steps: &'static [(Owner, &'static str, &'static str)],
    /// Left edge of what the steps do.
    second: usize,
}

const WIDTH: usize = 900;

fn head(height: usize, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<title>{title}</title>\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    )
}

impl StepColumn {
    fn draw(&self, legend: &[(Owner, &str)]) -> String {
        const STEP: usize = 54;
        let mut text = head(self.steps.len() * STEP + if legend.is_empty() { 10 } else { 40 }, self.title);
        for (number, (owner, name, action)) in self.steps.iter().enumerate() {
            let (top, color) = (10 + number * STEP, owner.color());
            let _ = writeln!(
                text,
                "<rect x=\"10\" y=\"{top}\" width=\"880\" height=\"38\" rx=\"4\" fill=\"{color}\" stroke=\"#444444\"/>"
            );
            let (middle, second) = (top + 24, self.second);
            let _ = writeln!(text, "<text x=\"20\" y=\"{middle}\" font-weight=\"bold\">{}</text>", escaped(name));
            let _ = writeln!(text, "<text x=\"{second}\" y=\"{middle}\" font-size=\"12\">{}</text>", escaped(action));
            if number + 1 < self.steps.len() {
                let (from, to) = (top + 38, top + STEP);
                let _ = writeln!(
                    text,
                    "<path d=\"M450 {from} V{to} m-4 -6 l4 6 l4 -6\" fill=\"none\" stroke=\"#444444\"/>"
                );
            }
        }
        text + &draw_legend(legend, self.steps.len() * STEP + 10) + "</svg>\n"
    }
}

fn draw_legend(legend: &[(Owner, &str)], bottom: usize) -> String {
    let mut text = String::new();
    for (place, (owner, name)) in legend.iter().enumerate() {
        let (left, color) = (20 + place * 160, owner.color());
        let _ = writeln!(
            text,
            "<rect x=\"{left}\" y=\"{bottom}\" width=\"14\" height=\"14\" fill=\"{color}\" stroke=\"#444444\"/>"
        );
        let _ = writeln!(text, "<text x=\"{}\" y=\"{}\">{name}</text>", left + 22, bottom + 12);
    }
    text
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
    let bars = [(parse_size_text(bytes)?, gpus), (parse_size_text(generic)?, more), (parse_size_text(without)?, more)];
    Some(LibrarySizes { name: name.split(" (").next().unwrap_or(name), bars })
}

fn parse_size_text(text: &str) -> Option<u64> {
    text.parse::<u64>().ok()
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
