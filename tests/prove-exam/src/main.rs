//! `prove`: evidence by execution, at full size.

use clap::Parser;
use hotswap_check::CheckOptions;
use hotswap_prove_exam::rewrites::RewriteTally;
use hotswap_prove_exam::subjects::{self, SubjectKind};
use hotswap_rewrite_exam::compile::Setting;
use hotswap_userland::Workbench;
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Evidence by execution")]
enum Words {
    /// Rewritten objects against their originals.
    Rewrites {
        /// Only objects whose name holds this.
        #[arg(default_value = "")]
        name: String,
        /// States of each site.
        #[arg(long, default_value_t = 10_000)]
        states: u64,
    },
}

fn main() -> ExitCode {
    let Some(bench) = Workbench::new("prove") else {
        eprintln!("prove: error: no ROCm userland (`cargo xtask prove` gives one)");
        return ExitCode::FAILURE;
    };
    let good = match Words::parse() {
        Words::Rewrites { name, states } => rewrites(&bench, &name, states),
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn rewrites(bench: &Workbench, name: &str, states: u64) -> bool {
    let options = CheckOptions { states, ..CheckOptions::default() };
    let mut all = subjects::assembly(bench, SubjectKind::Variants);
    all.extend(subjects::assembly(bench, SubjectKind::Spills));
    let setting = Setting { version: 24, level: '2', debug: true };
    all.extend(subjects::corpus(bench, setting, |unit| unit.name.contains(name)));
    let mut tally = RewriteTally::default();
    for pair in all.iter().filter(|pair| pair.name.contains(name)) {
        let mut own = RewriteTally::default();
        let start = std::time::Instant::now();
        own.add(pair, &options);
        println!("{} ({:.1} s): {}", pair.name, start.elapsed().as_secs_f64(), own.text());
        own.differences.iter().for_each(|difference| println!("{difference}"));
        tally.merge(own);
    }
    println!("{}", tally.text());
    tally.differences.is_empty()
}
