//! The task `demo`: HotSwap's main function from scratch, with every command shown.
//!
//! Invariants: times in its last table are measured in the same run, by commands that are shown. A run with missing code, or
//! a program that fails on one of the GPUs, is a failure.

use crate::built::Profile;
use crate::outcome::{Outcome, fail};
use crate::preflight::{self, TaskNeeds};
use crate::recipe::Part;
use crate::run::{self, Times};
use crate::session::Session;
use crate::{disk, install, paths, registry};
use clap::Parser;
use hotswap_userland::Userland;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Instant;

/// Builds examples/hello-hip for gfx1030, retargets it to gfx1031…gfx1036, looks at the result, and runs it on each of them.
#[derive(Parser)]
struct Options {
    /// Another plan for the example.
    #[arg(long, default_value = "gfx1030=>gfx1031,gfx1032,gfx1033,gfx1034,gfx1035,gfx1036")]
    retarget: String,
}

const NEEDS: TaskNeeds = TaskNeeds { target: 1_000_000_000, part: Some(Part::Base) };

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let options = Options::parse_from(words);
    let plan = DemoPlan::parse(&options.retarget)?;
    let mut times = Times::default();
    times.time("checks, and crates", || preflight::check(&NEEDS))?;
    let session = install(&mut times)?;
    let demo = Demo { session, plan };
    if !demo.session.userland.is_machine() {
        println!("\nThe following runs inside {}.", demo.session.userland.root().display());
    }
    // A directory of our own from an earlier run: the demo shows a whole build.
    let _ = fs::remove_dir_all(paths::scratch("work").join(DIRECTORY));
    times.time("configure the example", || demo.configure())?;
    times.time("build the example", || demo.show(&["cmake", "--build", &demo.directory()]))?;
    let entries = times.time("list the program's code", || demo.list())?;
    let runs = times.time("run the program on emulated GPUs", || demo.run_program(&entries))?;
    let costs = times.time("compile with and without HotSwap", || demo.compare())?;
    times.print();
    print_sizes(&demo.session.userland);
    next_steps();
    print!("\n{}", summary(&demo.plan, &runs, &costs));
    Ok(())
}

/// Builds and installs HotSwap, and builds the userland where it is missing: the latter waits for a mirror, the former computes.
fn install(times: &mut Times) -> Outcome<Session> {
    let (prefix, work) = (paths::scratch("prefix"), paths::scratch("work"));
    let (session, built) = thread::scope(|scope| {
        let session = scope.spawn(|| Session::open(Part::Base, &prefix, &work));
        let built = times.time_with_size("build HotSwap", Some(paths::target()), build_demo_install);
        let session = times.time("set-up, after that", || session.join());
        (session.unwrap_or_else(|_| fail("the set-up panicked")), built)
    });
    let (session, built) = (session?, built?);
    times.time("install HotSwap", || install::lay_out_demo(&prefix, session.clang().as_deref(), &built))?;
    Ok(session)
}

fn build_demo_install() -> Result<crate::built::Built, crate::outcome::Failure> {
    install::build(Profile::Demo, OsStr::new(""))
}

/// The demo's directory below the session's.
const DIRECTORY: &str = "hello";

/// GPUs that the example is compiled for, and those whose code is made of that.
#[derive(Debug, PartialEq, Eq)]
struct DemoPlan {
    text: String,
    source: String,
    targets: Vec<String>,
}

impl DemoPlan {
    fn parse(text: &str) -> Outcome<Self> {
        let parts = text.split_once("=>").filter(|(_, targets)| !targets.contains("=>"));
        let Some((source, targets)) = parts else {
            return fail(format!("--retarget {text}: SOURCE=>TARGET[,TARGET…] is expected"));
        };
        let targets = targets.split(',').map(|target| target.trim().to_owned()).collect();
        Ok(Self { text: text.to_owned(), source: source.trim().to_owned(), targets })
    }

    /// The source and the targets.
    fn gpus(&self) -> impl Iterator<Item = &String> {
        [&self.source].into_iter().chain(&self.targets)
    }
}

struct Demo {
    session: Session,
    plan: DemoPlan,
}

/// A code object of the program.
#[derive(Debug, PartialEq, Eq)]
struct ListedEntry {
    target: String,
    /// Its origin, as `hotswap list` prints it.
    made: String,
}

/// The code objects in the output of `hotswap list --format json`.
fn listed_entries(json: &str) -> Outcome<Vec<ListedEntry>> {
    let listing: serde_json::Value = serde_json::from_str(json)?;
    let files = listing["files"].as_array().into_iter().flatten();
    let containers = files.filter_map(|file| file["containers"].as_array()).flatten();
    let mut found = Vec::new();
    for entry in containers.filter_map(|container| container["entries"].as_array()).flatten() {
        if let (Some(target), Some(made)) = (entry["target"].as_str(), entry["made"].as_str()) {
            found.push(ListedEntry { target: target.to_owned(), made: made.to_owned() });
        }
    }
    Ok(found)
}

/// A run of the program on one GPU.
struct EmulatedRun {
    gpu: String,
    /// The origin of the code that ran.
    made: String,
    seconds: f64,
    output: String,
}

/// A compilation with link.
struct CompileCost {
    name: &'static str,
    gpus: usize,
    seconds: f64,
}

impl Demo {
    /// The build directory, as a path inside.
    fn directory(&self) -> String {
        self.session.work.join(DIRECTORY).display().to_string()
    }

    fn program(&self) -> String {
        format!("{}/hello", self.directory())
    }

    fn show(&self, words: &[&str]) -> Outcome {
        println!();
        self.session.show(Path::new("/"), words)
    }

    fn configure(&self) -> Outcome {
        let source = self.session.source.join("examples/hello-hip").display().to_string();
        let prefix = format!("-DCMAKE_PREFIX_PATH={}", self.session.prefix.display());
        let plan = format!("-DHELLO_RETARGET={}", self.plan.text);
        let compiler = "-DCMAKE_HIP_COMPILER=hotswap-clang++";
        let gpu = format!("-DCMAKE_HIP_ARCHITECTURES={}", self.plan.source);
        self.show(&["cmake", "-G", "Ninja", "-S", &source, "-B", &self.directory(), &prefix, compiler, &gpu, &plan])
    }

    /// Lists the program, and checks that every GPU of the plan is present.
    fn list(&self) -> Outcome<Vec<ListedEntry>> {
        print!("{}", self.output("hotswap", &["list", &self.program()])?);
        let words = ["list", "--format", "json", &self.program()];
        let entries = listed_entries(&run::output(self.session.inside(Path::new("/"), "hotswap").args(words))?)?;
        match self.plan.gpus().find(|gpu| !entries.iter().any(|entry| entry.target == **gpu)) {
            Some(gpu) => fail(format!("{gpu} is not in the program")),
            None => Ok(entries),
        }
    }

    /// Prints the command, and returns its output.
    fn output(&self, program: &str, words: &[&str]) -> Outcome<String> {
        println!("\n$ {program} {}", shell_words::join(words));
        run::output(self.session.inside(Path::new("/"), program).args(words))
    }

    /// Runs the program on each GPU of the plan, which the CPU emulates. HIP takes the GPU's own entry, and the program
    /// checks its numbers.
    fn run_program(&self, entries: &[ListedEntry]) -> Outcome<Vec<EmulatedRun>> {
        let mut runs = Vec::new();
        for ListedEntry { target: gpu, made } in entries {
            let start = Instant::now();
            let output = self.output("hotswap", &["run", "--gpu", gpu, "--", &self.program()])?;
            print!("{output}");
            let seconds = start.elapsed().as_secs_f64();
            let output = output.trim().to_owned();
            runs.push(EmulatedRun { gpu: gpu.clone(), made: made.clone(), seconds, output });
        }
        Ok(runs)
    }

    /// Compiles the example by clang for the plan's source, through HotSwap for all GPUs, and by clang for all of them.
    fn compare(&self) -> Outcome<Vec<CompileCost>> {
        let clang = self.session.clang().unwrap_or_else(|| "clang++".into()).display().to_string();
        let one = vec![format!("--offload-arch={}", self.plan.source)];
        let all: Vec<String> = self.plan.gpus().map(|gpu| format!("--offload-arch={gpu}")).collect();
        let plan =
            vec![one[0].clone(), "-Xoffload-linker".to_owned(), format!("--hotswap-retarget={}", self.plan.text)];
        let count = all.len();
        Ok(vec![
            CompileCost { name: "clang alone", gpus: 1, seconds: self.compile(&clang, &one)? },
            CompileCost { name: "through HotSwap", gpus: count, seconds: self.compile("hotswap-clang++", &plan)? },
            CompileCost { name: "clang alone", gpus: count, seconds: self.compile(&clang, &all)? },
        ])
    }

    /// Seconds of a compilation.
    fn compile(&self, compiler: &str, options: &[String]) -> Outcome<f64> {
        let source = self.session.source.join("examples/hello-hip/hello.hip").display().to_string();
        let output = self.session.work.join(DIRECTORY).join("compared").display().to_string();
        let mut words: Vec<&str> = options.iter().map(String::as_str).collect();
        words.extend(["-O2", &source, "-o", &output, "-lamdhip64"]);
        let start = Instant::now();
        self.output(compiler, &words)?;
        Ok(start.elapsed().as_secs_f64())
    }
}

/// Everything that the demo and earlier tasks left on the disk.
fn print_sizes(userland: &Userland) {
    let userland = Some(userland).filter(|userland| !userland.is_machine());
    let places = [
        ("HotSwap, built and installed", Some(paths::target().to_owned())),
        ("crates", registry::directory()),
        ("ROCm userland", userland.map(|userland| userland.root().to_owned())),
    ];
    println!("\nON THE DISK");
    let mut together = 0;
    for (name, directory) in places {
        let Some(directory) = directory else { continue };
        let bytes = disk::size_of(&directory);
        together += bytes;
        println!("  {name:<32} {:>8}  {}", disk::in_words(bytes), directory.display());
    }
    println!("  {:<32} {:>8}", "together", disk::in_words(together));
}

fn next_steps() {
    let hotswap = paths::scratch("prefix/bin/hotswap");
    let program = paths::scratch("work").join(DIRECTORY).join("hello");
    println!("\nThe program is {}. Try next:", program.display());
    for words in [vec!["inspect"], vec!["targets"]] {
        let mut command = std::process::Command::new(&hotswap);
        command.args(&words).args((words[0] == "inspect").then_some(&program));
        println!("  {}", run::line(&command));
    }
    println!("  cargo xtask shell              # look around in the userland");
    println!("  cargo xtask test               # every check and test");
}

/// One sentence, and the figures.
fn summary(plan: &DemoPlan, runs: &[EmulatedRun], costs: &[CompileCost]) -> String {
    let made = runs.iter().filter(|run| run.gpu != plan.source).count();
    let mut text = format!(
        "hello.hip was compiled for {} only. HotSwap made the code of {made} more GPUs from that in the link, and HIP ran the \
         program on all {} (emulated).\n\n",
        plan.source,
        runs.len()
    );
    text += &format!("{:<10} {:<24} {:>9}  OUTPUT\n", "GPU", "CODE", "RUN");
    for EmulatedRun { gpu, made, seconds, output } in runs {
        text += &format!("{gpu:<10} {made:<24} {seconds:>7.1} s  {output}\n");
    }
    text += &format!("\n{:<18} {:>4} {:>11}\n", "COMPILE AND LINK", "GPUS", "TIME");
    for CompileCost { name, gpus, seconds } in costs {
        text += &format!("{name:<18} {gpus:>4} {seconds:>9.1} s\n");
    }
    text + "The times were measured just now, once each.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_have_one_source() {
        let plan = DemoPlan::parse("gfx1030=>gfx1031, gfx1032").unwrap();
        assert_eq!(plan.gpus().collect::<Vec<_>>(), ["gfx1030", "gfx1031", "gfx1032"]);
        assert!(DemoPlan::parse("gfx1030").is_err() && DemoPlan::parse("a=>b;c=>d").is_err());
    }

    #[test]
    fn the_summary_names_every_gpu_and_cost() {
        let plan = DemoPlan::parse("gfx1030=>gfx1031").unwrap();
        let listed = r#"{"files": [{"containers": [{"entries": [
            {"target": "gfx1030", "made": "compiled"}, {"target": "gfx1031", "made": "retargeted from gfx1030"}]}]}]}"#;
        let run = |entry: ListedEntry| {
            let ListedEntry { target: gpu, made } = entry;
            EmulatedRun { gpu, made, seconds: 0.5, output: "hello".to_owned() }
        };
        let runs: Vec<EmulatedRun> = listed_entries(listed).unwrap().into_iter().map(run).collect();
        let costs = [
            CompileCost { name: "clang alone", gpus: 1, seconds: 1.0 },
            CompileCost { name: "through HotSwap", gpus: 2, seconds: 1.25 },
        ];
        let expected =
            "hello.hip was compiled for gfx1030 only. HotSwap made the code of 1 more GPUs from that in the link, \
                        and HIP ran the program on all 2 (emulated).

GPU        CODE                           RUN  OUTPUT
gfx1030    compiled                     0.5 s  hello
gfx1031    retargeted from gfx1030      0.5 s  hello

COMPILE AND LINK   GPUS        TIME
clang alone           1       1.0 s
through HotSwap       2       1.2 s
The times were measured just now, once each.
";
        assert_eq!(summary(&plan, &runs, &costs), expected);
    }
}
