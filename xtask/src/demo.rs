//! The task `demo`: HotSwap's main function from scratch, with every command shown.

use crate::built::Profile;
use crate::outcome::{Outcome, fail};
use crate::recipe::Part;
use crate::run::{self, Times};
use crate::session::Session;
use crate::{install, paths};
use clap::Parser;
use std::fs;
use std::path::Path;

/// Builds examples/hello-hip for gfx1030, retargets it to gfx1031…gfx1036, looks at the result, and runs it on each of them.
#[derive(Parser)]
struct Options {
    /// Another plan for the example.
    #[arg(long, default_value = "gfx1030=>gfx1031,gfx1032,gfx1033,gfx1034,gfx1035,gfx1036")]
    retarget: String,
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let options = Options::parse_from(words);
    let mut times = Times::default();
    let (prefix, work) = (paths::scratch("prefix"), paths::scratch("work"));
    let session = times.time("set-up", || Session::open(Part::Base, &prefix, &work))?;
    times.time("build and install HotSwap", || install::install(&prefix, Profile::Dist, session.clang().as_deref()))?;
    if !session.userland.is_machine() {
        println!("\nThe following runs inside {}.", session.userland.root().display());
    }
    // A directory of our own from an earlier run: the demo shows a whole build.
    let _ = fs::remove_dir_all(work.join("hello"));
    let demo = Demo { build: session.work.join("hello").display().to_string(), session };
    times.time("configure the example", || demo.configure(&options.retarget))?;
    times.time("build the example", || demo.show(&["cmake", "--build", &demo.build]))?;
    let program = format!("{}/hello", demo.build);
    times.time("list and inspect", || {
        demo.list(&program, &options.retarget)?;
        demo.show(&["hotswap", "inspect", &program])
    })?;
    times.time("run the program on emulated GPUs", || demo.run_program(&program, &options.retarget))?;
    times.print();
    next_steps(&work.join("hello/hello"));
    Ok(())
}

struct Demo {
    session: Session,
    /// The build directory, as a path inside.
    build: String,
}

impl Demo {
    fn show(&self, words: &[&str]) -> Outcome {
        println!();
        self.session.show(Path::new("/"), words)
    }

    fn configure(&self, retarget: &str) -> Outcome {
        let source = self.session.source.join("examples/hello-hip").display().to_string();
        let prefix = format!("-DCMAKE_PREFIX_PATH={}", self.session.prefix.display());
        let plan = format!("-DHELLO_RETARGET={retarget}");
        let compiler = "-DCMAKE_HIP_COMPILER=hotswap-clang++";
        let gpu = "-DCMAKE_HIP_ARCHITECTURES=gfx1030";
        self.show(&["cmake", "-G", "Ninja", "-S", &source, "-B", &self.build, &prefix, compiler, gpu, &plan])
    }

    /// Lists the program, and checks that every GPU of the plan is present.
    fn list(&self, program: &str, retarget: &str) -> Outcome {
        println!("\n$ hotswap list {program}");
        let text = run::output(self.session.inside(Path::new("/"), "hotswap").args(["list", program]))?;
        print!("{text}");
        match gpus(retarget).find(|gpu| !text.split_whitespace().any(|word| word == *gpu)) {
            Some(gpu) => fail(format!("{gpu} is not in the program")),
            None => Ok(()),
        }
    }

    /// Runs the program on each GPU of the plan, which the CPU emulates. HIP takes the GPU's own entry.
    fn run_program(&self, program: &str, retarget: &str) -> Outcome {
        for gpu in gpus(retarget) {
            self.show(&["hotswap", "run", "--gpu", gpu, "--", program])?;
        }
        Ok(())
    }
}

/// The GPUs that a plan names.
fn gpus(plan: &str) -> impl Iterator<Item = &str> {
    plan.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter(|word| word.starts_with("gfx"))
}

fn next_steps(program: &Path) {
    let hotswap = paths::scratch("prefix/bin/hotswap");
    println!("\nThe program is {}. Try next:", program.display());
    for words in [vec!["inspect", "--format", "json"], vec!["targets"]] {
        let mut command = std::process::Command::new(&hotswap);
        command.args(&words).args((words[0] == "inspect").then_some(program));
        println!("  {}", run::line(&command));
    }
    println!("  cargo xtask shell              # look around in the userland");
    println!("  cargo xtask test               # every check and test");
}
