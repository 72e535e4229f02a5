//! `cargo xtask isa fuzz`: both fuzz targets of hotswap-isa for some minutes, from LLVM's vectors as seeds.
//!
//! The engine is libFuzzer through cargo-fuzz, which needs a nightly compiler; without a sanitizer, because the crate
//! has no unsafe code. cargo-fuzz is installed into the cache folder if the machine has none.

use crate::isa_source::llvm_source;
use crate::outcome::{During, Outcome, fail};
use crate::{paths, run};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const TARGETS: [&str; 2] = ["decode", "round_trip"];
/// What an input is at most: the setting, two of the longest instructions, and a value for fields.
const LENGTH: &str = "-max_len=50";

/// Runs the fuzz targets of hotswap-isa.
#[derive(clap::Args)]
pub(crate) struct Words {
    /// How long each runs.
    #[arg(long, default_value_t = 10)]
    minutes: u32,
    /// Only this one: decode or round_trip.
    target: Option<String>,
}

pub(crate) fn main(words: &Words) -> Outcome {
    let tests = llvm_source()?.join("llvm/test/MC/Disassembler/AMDGPU");
    let work = paths::scratch("isa-fuzz");
    let seeds = work.join("seeds");
    fs::create_dir_all(&seeds).during("create", &seeds)?;
    let bin = tools()?;
    let fuzz = paths::workspace().join("crates/isa/fuzz");
    let mut command = Command::new(paths::cargo());
    command.current_dir(&fuzz).args(["run", "--quiet", "--release", "--example", "seeds", "--target-dir"]);
    run::show(command.arg(work.join("target")).arg("--").arg(&tests).arg(&seeds))?;

    let wanted = |name: &&str| words.target.as_deref().is_none_or(|target| target == *name);
    let names: Vec<&str> = TARGETS.into_iter().filter(wanted).collect();
    if names.is_empty() {
        return fail(format!("there are the targets {}", TARGETS.join(" and ")));
    }
    // Building twice at the same time would only wait for the lock.
    run::show(cargo_fuzz(&bin, &fuzz, "build").arg("--target-dir").arg(work.join("target")))?;
    let mut running = Vec::new();
    for name in names {
        running.push((name, start(&bin, &fuzz, &work, name, words.minutes)?));
    }
    let mut failed = Vec::new();
    for (name, mut child) in running {
        let good = child.wait()?.success();
        println!("{name}: {} executions, {}", executions(&log(&work, name)), if good { "no finding" } else { "FOUND" });
        failed.extend((!good).then_some(name));
    }
    if failed.is_empty() {
        return Ok(());
    }
    fail(format!("{} found something: see the logs in {}", failed.join(" and "), work.display()))
}

fn cargo_fuzz(bin: &Path, fuzz: &Path, action: &str) -> Command {
    let mut command = Command::new("cargo");
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:{}", bin.display())).env("RUSTUP_TOOLCHAIN", "nightly");
    // The nightly compiler must be that of cargo, too.
    command.env_remove("CARGO").env_remove("RUSTC");
    command.current_dir(fuzz).args(["fuzz", action, "--sanitizer", "none"]);
    command
}

fn start(bin: &Path, fuzz: &Path, work: &Path, name: &str, minutes: u32) -> Outcome<Child> {
    let corpus = work.join(name);
    fs::create_dir_all(&corpus).during("create", &corpus)?;
    let path = work.join(format!("{name}.log"));
    let log = fs::File::create(&path).during("create", &path)?;
    let mut command = cargo_fuzz(bin, fuzz, "run");
    command.arg("--target-dir").arg(work.join("target")).arg(name).arg(&corpus).arg(work.join("seeds"));
    command.args(["--", LENGTH, "-print_final_stats=1"]).arg(format!("-max_total_time={}", minutes * 60));
    println!("$ {}", run::line(run::words(&command)));
    Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?)
}

fn log(work: &Path, name: &str) -> String {
    let bytes = fs::read(work.join(format!("{name}.log"))).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The number in libFuzzer's last lines.
fn executions(log: &str) -> String {
    let line = log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    line.unwrap_or("an unknown number of").trim().to_owned()
}

/// A folder with cargo-fuzz; it need not be on the search path.
fn tools() -> Outcome<std::path::PathBuf> {
    let root = paths::cache()?.join("tools");
    if which::which("cargo-fuzz").is_err() && !root.join("bin/cargo-fuzz").exists() {
        let mut command = Command::new(paths::cargo());
        run::show(command.args(["install", "--quiet", "--locked", "cargo-fuzz", "--root"]).arg(&root))?;
    }
    Ok(root.join("bin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_read_from_the_last_lines() {
        let log = "#8 DONE\nDone 8 runs in 1 second(s)\nstat::number_of_executed_units: 200251\nstat::peak_rss_mb: 9\n";
        assert_eq!(executions(log), "200251");
        assert_eq!(executions("panicked"), "an unknown number of");
    }
}
