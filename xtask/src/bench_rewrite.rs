//! `cargo xtask bench rewrite`: the cost of making code objects for another stepping, from one to 26 million
//! instructions.
//!
//! The objects are made of real kernels ([`object`]): with sites (LDS accesses at two addresses, matrix instructions that
//! the target lacks), calls and plain code, in the three forms that users have; and of plain code alone. Contestants take
//! turns with `cp` of the same file; medians and ratios of one run are compared.

mod calls;
mod object;

use crate::bench_fat::{Run, measure, middle};
use crate::built::Profile;
use crate::outcome::{During, Outcome, fail};
use crate::session::Session;
use crate::{install, paths, remove};
use calls::{SHAPES, Shape};
use object::Unit;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// As a path inside; the one that knows the target.
const LLVM: &str = "/usr/lib/llvm-24/bin";
const TARGET: &str = "gfx1250-strict";
/// Instructions of the objects, in millions: with the last one the code has more than 200 MB.
const SIZES: [f64; 6] = [1.0, 2.0, 5.0, 10.0, 22.0, 26.0];
/// Seconds for the largest object: the goal and the limit.
const GOAL: f64 = 2.0;
const FLOOR: f64 = 5.0;
/// Memory over the size of the input, without the pages of the mapped input: those are the kernel's to take back.
const MEMORY: f64 = 3.5;
/// Time over `cp` where nothing is to be done.
const NOTHING: f64 = 4.0;
/// Time an instruction of the largest object over that of the smallest.
const LINEAR: f64 = 1.3;
/// Functions of the objects of many calls: the time a function of the last over that of the first is limited by `LINEAR`.
const FUNCTIONS: [usize; 3] = [1_000, 4_000, 16_000];

/// The inputs: a name, and whether the file has sites.
const FORMS: [(&str, bool); 4] = [
    ("relocatable", true),
    ("linked, --emit-relocs", true),
    ("linked, no relocations", true),
    ("nothing to patch", false),
];

struct Bench {
    hotswap: PathBuf,
    directory: PathBuf,
    rounds: usize,
    failed: usize,
}

/// The median of a form at one size.
struct Point {
    millions: f64,
    copy: Run,
    run: Run,
    bytes: u64,
}

pub(crate) fn main(rounds: Option<usize>) -> Outcome {
    let (prefix, work) = (paths::scratch("prefix"), paths::scratch("work"));
    let session = Session::open(&prefix, &work)?;
    if !session.userland.outside(LLVM).is_dir() {
        return fail(format!("the objects are made by LLVM 24 in {LLVM}: run in the userland of `setup --userland`"));
    }
    install::install(&prefix, Profile::Dist, session.clang().as_deref())?;
    let directory = work.join("bench-rewrite");
    remove::delete(&directory)?;
    fs::create_dir_all(&directory).during("create", &directory)?;
    let mut bench = Bench { hotswap: prefix.join("bin/hotswap"), directory, rounds: rounds.unwrap_or(3), failed: 0 };
    let units = [
        Unit::compile(&session, &bench.directory, "sites", "")?,
        Unit::compile(&session, &bench.directory, "plain", "-DNO_SITES")?,
    ];
    let mut curves: [Vec<Point>; FORMS.len()] = Default::default();
    for millions in SIZES {
        let files = [units[0].join(&session, millions)?, units[1].join(&session, millions)?];
        for (number, (name, sites)) in FORMS.into_iter().enumerate() {
            let file = if sites { &files[0][number] } else { &files[1][1] };
            curves[number].push(bench.point(name, file, millions)?);
        }
        files.iter().flatten().for_each(|file| drop(fs::remove_file(bench.directory.join(file))));
    }
    for ((name, sites), curve) in FORMS.into_iter().zip(&curves) {
        bench.judge(name, sites, curve);
    }
    println!();
    for (shape, name) in SHAPES {
        bench.calls(&session, shape, name)?;
    }
    remove::delete(&bench.directory)?;
    if bench.failed == 0 { Ok(()) } else { fail(format!("{} limits do not hold", bench.failed)) }
}

impl Bench {
    /// Measures one file, in turns with its copy.
    fn point(&self, name: &str, file: &str, millions: f64) -> Outcome<Point> {
        let path = self.directory.join(file);
        let bytes = fs::metadata(&path).during("measure", &path)?.len();
        let (mut copies, mut runs) = (Vec::new(), Vec::new());
        // One round more than counted: the first one warms the caches.
        for round in 0..=self.rounds {
            let copy = self.run("cp", &[file, "copy"])?;
            let hotswap = self.hotswap.display().to_string();
            let run = self.run(&hotswap, &["rewrite", file, "-o", "new", "--to", TARGET])?;
            if round > 0 {
                copies.push(copy);
                runs.push(run);
            }
        }
        let (copy, run) = (middle(&copies), middle(&runs));
        let megabytes = |size: u64| size as f64 / 1024.0;
        println!(
            "{name:<24} {millions:>5} M {:>7.1} MB  {:>9.1} ms  {:>7.2} s of processors  cp × {:<7.2} {:>7.1} MB anonymous, \
             {:>7.1} resident",
            bytes as f64 / 1e6,
            run.milliseconds,
            run.processor,
            run.milliseconds / copy.milliseconds,
            megabytes(run.anonymous),
            megabytes(run.resident),
        );
        Ok(Point { millions, copy, run, bytes })
    }

    /// Measures objects of many functions, and whether the time grows with their number.
    fn calls(&mut self, session: &Session, shape: Shape, name: &str) -> Outcome {
        let mut each = Vec::new();
        for count in FUNCTIONS {
            let file = shape.link(session, &self.directory, count)?;
            let hotswap = self.hotswap.display().to_string();
            let run = || self.run(&hotswap, &["rewrite", &file, "-o", "new", "--to", TARGET]);
            let runs = (0..self.rounds).map(|_| run()).collect::<Outcome<Vec<_>>>()?;
            let run = middle(&runs);
            println!("{name:<24} {count:>7} functions {:>9.1} ms", run.milliseconds);
            each.push(run.milliseconds / count as f64);
        }
        let [first, .., last] = each[..] else { return Ok(()) };
        self.limit("time a function, most over fewest", last / first, LINEAR);
        Ok(())
    }

    fn run(&self, program: &str, words: &[&str]) -> Outcome<Run> {
        ["copy", "new"].iter().for_each(|name| drop(fs::remove_file(self.directory.join(name))));
        measure(Command::new(program).args(words).current_dir(&self.directory))
    }

    fn judge(&mut self, name: &str, sites: bool, curve: &[Point]) {
        let [first, .., last] = curve else { return };
        println!("\n{name}");
        let each = |point: &Point| point.run.milliseconds / point.millions;
        self.limit("time an instruction, largest over smallest", each(last) / each(first), LINEAR);
        let anonymous = last.run.anonymous as f64 * 1024.0 / last.bytes as f64;
        self.limit("anonymous memory of the largest over input", anonymous, MEMORY);
        if sites {
            let seconds = last.run.milliseconds / 1000.0;
            println!("  {} the goal of {GOAL} s", if seconds <= GOAL { "reaches" } else { "misses" });
            self.limit("seconds", seconds, FLOOR);
        } else {
            self.limit("time over cp", last.run.milliseconds / last.copy.milliseconds, NOTHING);
        }
    }

    fn limit(&mut self, what: &str, value: f64, limit: f64) {
        let holds = value <= limit;
        self.failed += usize::from(!holds);
        println!("  {}: {what}: {value:.3}, at most {limit}", if holds { "holds" } else { "DOES NOT HOLD" });
    }
}
