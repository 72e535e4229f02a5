//! Cost of the program model, on real code repeated until it is as large as the largest known objects.
//!
//! `cargo bench -p hotswap-program -- FILE…` with code objects; `--once` only prints the counts found in them,
//! `--whole` measures each unmodified file. Each line is one size: seconds of each part, bytes of the model for each
//! byte of code. Processor time per million instructions must stay constant.

use hotswap_program::{BankMap, CodeSource, Liveness, LoopNest, Program, SectionSymbol, Summaries};
use rayon::prelude::*;
use std::time::Instant;

/// Instructions, in millions.
const SIZES: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 22.0];

fn main() {
    let files: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let once = std::env::args().any(|word| word == "--once");
    let whole = std::env::args().any(|word| word == "--whole");
    if files.is_empty() {
        println!("no code objects to measure");
    }
    for file in files {
        let data = std::fs::read(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        if whole {
            measure_whole(&data);
            continue;
        }
        let sources = CodeSource::read(&data).unwrap_or_else(|error| panic!("{file}: {error}"));
        let largest = sources.into_iter().max_by_key(|source| source.bytes.len());
        let Some(source) = largest else { panic!("{file}: no code") };
        println!("{file}: {} bytes of code", source.bytes.len());
        let facts = Program::build(source.clone()).facts();
        println!("{facts:?}");
        let own = facts.instructions;
        for millions in SIZES.into_iter().filter(|_| !once) {
            measure(&source, (millions * 1e6 / own.max(1) as f64).ceil() as usize);
        }
    }
}

/// Seconds of all processors that this process has used; other load on the machine hardly changes them.
fn processor() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(") ").next().unwrap_or_default().split(' ');
    // User and system time, the 14th and 15th field, in hundredths of a second.
    fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Seconds since a start point: wall time and processor time.
struct Clock(Instant, f64);

impl Clock {
    fn start() -> Self {
        Self(Instant::now(), processor())
    }

    fn text(&self) -> String {
        format!("{:.3} s ({:.2} s of processors)", self.0.elapsed().as_secs_f64(), processor() - self.1)
    }
}

/// Peak memory of the process, in MiB.
fn peak() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

/// The code repeated `times` times, with all its names; only what is relative to the code itself is the same.
fn repeated<'a>(source: &CodeSource<'_>, times: usize, bytes: &'a mut Vec<u8>) -> CodeSource<'a> {
    // Functions of kernels begin at multiples of 256.
    let length = source.bytes.len().next_multiple_of(256);
    let mut one = source.bytes.to_vec();
    one.resize(length, 0);
    for _ in 0..times {
        bytes.extend_from_slice(&one);
    }
    let mark = |copy: usize, mark: &SectionSymbol<'_>| SectionSymbol {
        offset: mark.offset + (copy * length) as u32,
        size: mark.size,
        kind: mark.kind,
        name: mark.name.clone().into_owned().into(),
        exported: mark.exported,
    };
    let marks = (0..times).flat_map(|copy| source.marks.iter().map(move |one| mark(copy, one)));
    CodeSource {
        waves: Vec::new(),
        number: source.number,
        isa: source.isa,
        address: source.address,
        bytes,
        linked: source.linked,
        marks: marks.collect(),
        fixups: Vec::new(),
        symbols: Vec::new(),
        slots: Vec::new(),
        shared: false,
        alone: true,
        hints: Vec::new(),
        entries: Vec::new(),
    }
}

/// A complete file, with its other sections and relocations.
fn measure_whole(data: &[u8]) {
    let clock = Clock::start();
    let sources = CodeSource::read(data).unwrap_or_else(|error| panic!("{error}"));
    println!("{} bytes: read {}", data.len(), clock.text());
    for source in sources.into_iter().filter(|source| !source.bytes.is_empty()) {
        let wanted = sites(&source);
        let clock = Clock::start();
        let part = Program::around(source.clone(), &wanted);
        println!("around {} sites: {} functions, {}", wanted.len(), part.functions.len(), clock.text());
        drop(part);
        measure_source(source);
    }
}

/// Instructions as patch families look for them.
fn sites(source: &CodeSource<'_>) -> Vec<u32> {
    let mut found = Vec::new();
    for mark in &source.marks {
        let mut at = mark.offset;
        while at < mark.offset + mark.size {
            let Ok(inst) = source.isa.decode(&source.bytes[at as usize..]) else { break };
            if inst.mnemonic().contains("_2addr_") || inst.mnemonic().contains("_16x16x128_") {
                found.push(at);
            }
            at += u32::from(inst.len());
        }
    }
    found
}

fn measure(source: &CodeSource<'_>, times: usize) {
    let mut bytes = Vec::new();
    measure_source(repeated(source, times, &mut bytes));
}

fn measure_source(source: CodeSource<'_>) {
    let length = source.bytes.len();
    let clock = Clock::start();
    let program = Program::build(source);
    let built = clock.text();
    let clock = Clock::start();
    let banks = BankMap::by_convention(&program);
    let summaries = Summaries::of(&program, &banks);
    let called = clock.text();
    let clock = Clock::start();
    let functions = (0..program.functions.len()).into_par_iter();
    let (visits, rows) = functions
        .map(|number| Liveness::of(&program, number, &summaries, &banks))
        .map(|liveness| (liveness.visit_count(), liveness.memory_bytes()))
        .reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    let live = clock.text();
    let clock = Clock::start();
    let loops: usize = program.functions.par_iter().map(|function| LoopNest::of(function).loops.len()).sum();
    let looped = clock.text();
    let facts = program.facts();
    let million = facts.instructions as f64 / 1e6;
    println!(
        "{million:6.2} M in {:.0} MB, {} functions, {} closed: build {built}, banks and calls {called}, liveness of all \
         {live}, loops {looped}; {} blocks visited {:.2} times, {loops} loops; model {:.2}, live rows {:.2}, peak of the \
         process {:.2} bytes a byte",
        length as f64 / 1e6,
        facts.functions,
        facts.closed,
        facts.blocks,
        visits as f64 / facts.blocks.max(1) as f64,
        facts.memory as f64 / length as f64,
        rows as f64 / length as f64,
        peak() * 1048576.0 / length as f64,
    );
}
