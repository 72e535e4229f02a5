//! `cargo xtask bench rewrite`: the cost of making code objects for another stepping, from one to 26 million
//! instructions.
//!
//! The objects are made of real kernels ([`object`]): with sites (LDS accesses at two addresses, matrix instructions that
//! the target lacks), calls and plain code, in the three forms that users have; and without sites, with calls and without.
//! Others have thousands of small functions ([`calls`]). Contestants take turns with `cp` of the same file; medians and
//! ratios of one run are compared.

mod calls;
pub(crate) mod object;

use crate::bench_fat::{Run, measure, middle};
use crate::built::Profile;
use crate::outcome::{During, Outcome, fail};
use crate::recipe::Part;
use crate::session::Session;
use crate::{install, paths, remove};
use calls::{SHAPES, Shape};
use object::Unit;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// As a path inside; the one that knows the target.
const LLVM: &str = "/usr/lib/llvm-24/bin";
const TARGET: &str = "gfx1250-strict";
/// Instructions of the objects, in millions: with the last one the code has more than 200 MB.
const SIZES: [f64; 6] = [1.0, 2.0, 5.0, 10.0, 22.0, 26.0];
const LARGEST: f64 = SIZES[SIZES.len() - 1];
/// Time over that of another program.
const AGAINST: f64 = 1.1;
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

/// The inputs: a name, the number of the unit they are made of, and the number of the form that it is linked in.
const FORMS: [(&str, usize, usize); 5] = [
    ("relocatable", 0, 0),
    ("linked, --emit-relocs", 0, 1),
    ("linked, no relocations", 0, 2),
    // Code with calls may reach code that no symbol names: that nothing is to be done takes a proof.
    ("nothing to patch, calls", 1, 1),
    ("nothing to patch", NO_CALLS, 1),
];
/// The unit without sites and calls: the bytes alone show that nothing is to be done.
const NO_CALLS: usize = 2;

struct RewriteBench {
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

pub(crate) fn main(rounds: Option<usize>, against: Option<PathBuf>) -> Outcome {
    let (prefix, work) = (paths::scratch("prefix"), paths::scratch("work"));
    let session = Session::open(Part::Tests, &prefix, &work)?;
    if !session.userland.outside(LLVM).is_dir() {
        return fail(format!("the objects are made by LLVM 24 in {LLVM}: run in the userland of `setup --userland`"));
    }
    install::install(&prefix, Profile::Dist, session.clang().as_deref())?;
    let directory = work.join("bench-rewrite");
    remove::delete(&directory)?;
    fs::create_dir_all(&directory).during("create", &directory)?;
    let mut bench =
        RewriteBench { hotswap: prefix.join("bin/hotswap"), directory, rounds: rounds.unwrap_or(3), failed: 0 };
    let units = [
        Unit::compile(&session, &bench.directory, "sites", "")?,
        Unit::compile(&session, &bench.directory, "calls", "-DNO_SITES")?,
        Unit::compile(&session, &bench.directory, "plain", "-DNO_SITES -DNO_CALLS")?,
    ];
    let mut curves: [Vec<Point>; FORMS.len()] = Default::default();
    for millions in SIZES {
        let files = units.iter().map(|unit| unit.join(&session, millions)).collect::<Outcome<Vec<_>>>()?;
        for (curve, (name, unit, form)) in curves.iter_mut().zip(FORMS) {
            curve.push(bench.point(name, &files[unit][form], millions)?);
            if let Some(other) = against.as_ref().filter(|_| millions == LARGEST && unit == 0) {
                bench.compare(other, &files[unit][form])?;
            }
        }
        files.iter().flatten().for_each(|file| drop(fs::remove_file(bench.directory.join(file))));
    }
    for ((name, unit, _), curve) in FORMS.into_iter().zip(&curves) {
        bench.judge(name, unit != NO_CALLS, curve);
    }
    println!();
    for (shape, name) in SHAPES {
        bench.calls(&session, shape, name)?;
    }
    remove::delete(&bench.directory)?;
    if bench.failed == 0 { Ok(()) } else { fail(format!("{} limits do not hold", bench.failed)) }
}

impl RewriteBench {
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
        println!(
            "{name:<24} {millions:>5} M {:>7.1} MB  {:>9.1} ms  {:>7.2} s of processors  cp × {:<7.2} {:>7.1} MB anonymous, \
             {:>7.1} resident",
            bytes as f64 / 1e6,
            run.milliseconds,
            run.processor,
            run.milliseconds / copy.milliseconds,
            kib_to_megabytes(run.anonymous),
            kib_to_megabytes(run.resident),
        );
        Ok(Point { millions, copy, run, bytes })
    }

    /// Runs another program and ours in turns.
    fn compare(&mut self, other: &Path, file: &str) -> Outcome {
        let programs = [other.display().to_string(), self.hotswap.display().to_string()];
        let mut runs = [Vec::new(), Vec::new()];
        for turn in 0..2 * self.rounds {
            let number = turn % 2;
            runs[number].push(self.run(&programs[number], &["rewrite", file, "-o", "new", "--to", TARGET])?);
        }
        let [theirs, ours] = runs.map(|runs| middle(&runs));
        self.limit("time over that of the other program", ours.milliseconds / theirs.milliseconds, AGAINST);
        Ok(())
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

    fn judge(&mut self, name: &str, is_analysed: bool, curve: &[Point]) {
        let [first, .., last] = curve else { return };
        println!("\n{name}");
        self.limit(
            "time an instruction, largest over smallest",
            milliseconds_per_million(last) / milliseconds_per_million(first),
            LINEAR,
        );
        let anonymous = last.run.anonymous as f64 * 1024.0 / last.bytes as f64;
        self.limit("anonymous memory of the largest over input", anonymous, MEMORY);
        if is_analysed {
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

fn kib_to_megabytes(size: u64) -> f64 {
    size as f64 / 1024.0
}

fn milliseconds_per_million(point: &Point) -> f64 {
    point.run.milliseconds / point.millions
}
