//! The program `isa-bench`: the cost of reading machine code, side by side in one run.
//!
//! It takes files with real code (libraries, code objects) and measures for each target in them: copying the bytes,
//! passing over them by length, decoding, decoding with reads and writes, and text; and LLVM's disassembler on the
//! same bytes. `cargo xtask isa bench` starts it with Debian's rocRAND and with kernels compiled for gfx1250.

mod corpus;
mod objdump;
mod race;

use clap::Parser;
use corpus::Corpus;
use hotswap_isa::effects::EffectReader;
use hotswap_isa::text::{PrintOptions as TextOptions, TextBuffer};
use hotswap_isa::{Isa, Target, table_bytes};
use hotswap_userland::{ENV_ROOT, Userland};
use objdump::Objdump;
use race::{Contestant, Rate, timed};
use std::error::Error;
use std::fmt::Write;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Measures hotswap-isa against memcpy and llvm-objdump.
#[derive(Parser)]
struct Options {
    /// Files with real code.
    files: Vec<PathBuf>,
    /// Only targets whose name begins with this; more than one may be given.
    #[arg(long)]
    target: Vec<String>,
    /// Rounds that are counted.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// The userland's directory; the environment names it when `cargo xtask` starts this program.
    #[arg(long)]
    userland: Option<PathBuf>,
    /// Set by the program itself: measures the first decode of a process.
    #[arg(long, hide = true)]
    cold: Option<String>,
}

/// Bytes for fast operations: more than the caches hold.
const LARGE: usize = 48 << 20;
/// Bytes for slow operations: LLVM needs a second for them.
const SMALL: usize = 3 << 20;

/// Generations whose encodings differ: GFX9, 90a, 940, 10.1, 10.3, 11, 11.7, 12 and 12.5.
const GENERATIONS: usize = 9;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("isa-bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Outcome<ExitCode> {
    if let Some(name) = &options.cold {
        cold(name)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let (Some(directory), None) = (&options.userland, std::env::var_os(ENV_ROOT)) {
        let mut command = Userland::new(directory).namespace().command(std::env::current_exe()?);
        let status = command.args(std::env::args_os().skip(1)).env(ENV_ROOT, directory).status()?;
        return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let all = corpus::read(&options.files).map_err(|problem| problem.to_string())?;
    tables(all.first().map_or("gfx1100", |corpus| corpus.name.as_str()))?;
    let mut held = true;
    for corpus in all.iter().filter(|corpus| is_wanted_target(&corpus.name, options)) {
        held &= measure(corpus, options.rounds)?;
    }
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn is_wanted_target(name: &str, options: &Options) -> bool {
    options.target.is_empty() || options.target.iter().any(|start| name.starts_with(start))
}

/// The position in a walk at which the work is done.
fn walk_sizes(isa: Isa, bytes: &[u8]) -> usize {
    let (mut at, mut count) = (0, 0);
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        at += usize::from(isa.instruction_size(rest).unwrap_or(4));
        count += 1;
    }
    count
}

fn decode_all(isa: Isa, bytes: &[u8]) -> usize {
    isa.walk(bytes).filter(|(_, result)| black_box(result).is_ok()).count()
}

/// Every register that is read or written: all properties of each effect are added to the sum, including those of
/// registers that no operand names.
fn effects_all(isa: Isa, bytes: &[u8]) -> usize {
    let reader = EffectReader::new(isa);
    let mut sum = 0_usize;
    for inst in isa.walk(bytes).filter_map(|(_, result)| result.ok()) {
        let implicit = reader.visit(&inst, |effect| sum = sum.wrapping_add(effect.bits() as usize));
        sum = sum.wrapping_add(usize::from(implicit.reads.bits()) << 8 | usize::from(implicit.writes.bits()));
    }
    sum
}

/// The same with an iterator over single effects.
fn effects_listed(isa: Isa, bytes: &[u8]) -> usize {
    let mut sum = 0;
    for inst in isa.walk(bytes).filter_map(|(_, result)| result.ok()) {
        for effect in inst.effects(isa) {
            sum += usize::from(effect.reg.index) + usize::from(effect.reg.count);
        }
    }
    sum
}

/// All lines of assembly, one after the other, as in a listing.
fn text_all(isa: Isa, bytes: &[u8], out: &mut TextBuffer) -> usize {
    out.clear();
    for (_, result) in isa.walk(bytes) {
        // Only labels can fail.
        let _ = match result {
            Ok(inst) => inst.append_text(isa, TextOptions::default(), out),
            Err(problem) => write!(out, "{problem}"),
        };
        out.push(b'\n');
    }
    out.len()
}

/// A required rate: a name, the value, the minimum.
struct Bar(&'static str, f64, f64);

fn measure(corpus: &Corpus, rounds: usize) -> Outcome<bool> {
    let (isa, large, small) = (corpus.isa, corpus.repeated(LARGE), corpus.start(SMALL));
    let (all, opaque) =
        isa.walk(&corpus.bytes).fold((0, 0), |(all, opaque), (_, r)| (all + 1, opaque + usize::from(r.is_err())));
    println!(
        "\n{isa:?}: {} functions, {} bytes, {all} instructions, {opaque} opaque",
        corpus.functions,
        corpus.bytes.len()
    );
    let objdump = Objdump::new(&corpus.name, small)?;
    let mut copy = vec![0; large.len()];
    let mut contestants = contestants(isa, &large, small, &mut copy);
    if let Some(objdump) = &objdump {
        let instructions = walk_sizes(isa, small);
        contestants.push(Contestant {
            name: OBJDUMP,
            bytes: small.len(),
            instructions,
            run: Box::new(|| objdump.run()),
        });
    }
    let rates = race::run(&mut contestants, rounds)?;
    for rate in &rates {
        println!("  {:24} {:10.1} MB/s {:8.1} M instr/s", rate.name, rate.megabytes, rate.millions);
    }
    Ok(judge(&rates))
}

const MEMCPY: &str = "memcpy";
const SIZE: &str = "size";
const DECODE: &str = "decode";
const EFFECTS: &str = "decode, reads, writes";
const LISTED: &str = "decode, list of effects";
const TEXT: &str = "text";
const OBJDUMP: &str = "llvm-objdump -d";

fn contestants<'a>(isa: Isa, large: &'a [u8], small: &'a [u8], copy: &'a mut [u8]) -> Vec<Contestant<'a>> {
    let count = walk_sizes(isa, large);
    let fast = |name, work: Box<dyn Fn() -> usize + 'a>| Contestant {
        name,
        bytes: large.len(),
        instructions: count,
        run: Box::new(move || Ok(timed(&work))),
    };
    let few = walk_sizes(isa, small);
    let mut listing = TextBuffer::new();
    vec![
        Contestant {
            name: MEMCPY,
            bytes: large.len(),
            instructions: 0,
            run: Box::new(move || Ok(timed(|| black_box(&mut *copy).copy_from_slice(black_box(large))))),
        },
        fast(SIZE, Box::new(move || walk_sizes(isa, black_box(large)))),
        fast(DECODE, Box::new(move || decode_all(isa, black_box(large)))),
        fast(EFFECTS, Box::new(move || effects_all(isa, black_box(large)))),
        fast(LISTED, Box::new(move || effects_listed(isa, black_box(large)))),
        Contestant {
            name: TEXT,
            bytes: small.len(),
            instructions: few,
            run: Box::new(move || Ok(timed(|| text_all(isa, black_box(small), &mut listing)))),
        },
    ]
}

/// Prints each rate with its requirement; returns whether all are met.
fn judge(rates: &[Rate]) -> bool {
    let rate = |name: &str| rates.iter().find(|rate| rate.name == name);
    let mut bars = Vec::new();
    if let (Some(size), Some(memcpy)) = (rate(SIZE), rate(MEMCPY)) {
        let least = f64::min(1000.0, 0.3 * memcpy.megabytes);
        bars.push(Bar("size, MB/s", size.megabytes, least));
    }
    bars.extend(rate(EFFECTS).map(|decode| Bar("decode with reads and writes, M instr/s", decode.millions, 60.0)));
    if let (Some(text), Some(objdump)) = (rate(TEXT), rate(OBJDUMP)) {
        bars.push(Bar("text, times llvm-objdump", text.megabytes / objdump.megabytes, 20.0));
    }
    let mut line = String::new();
    for Bar(name, value, least) in &bars {
        let verdict = if value >= least { "holds" } else { "MISSED" };
        let _ = write!(line, "  {name}: {value:.1} of {least:.1} {verdict};");
    }
    println!("{}", line.trim_end_matches(';'));
    bars.iter().all(|Bar(_, value, least)| value >= least)
}

/// Prints the cost of the first instruction of a process.
fn cold(name: &str) -> Outcome {
    let start = Instant::now();
    let target = Target::find(name).ok_or("unknown target")?;
    black_box(Isa::new(target).decode(black_box(&[0; 20]))).ok();
    println!("{}", start.elapsed().as_nanos());
    Ok(())
}

/// Prints the size of the tables and the cost of the first decode of a process.
fn tables(name: &str) -> Outcome {
    println!("tables, shared by all generations:");
    for (table, bytes) in table_bytes() {
        println!("  {table:24} {bytes:10} bytes");
    }
    let all: usize = table_bytes().map(|(_, bytes)| bytes).sum();
    println!("  {:24} {all:10} bytes, {} for each of {GENERATIONS} generations", "together", all / GENERATIONS);
    println!("first decode of a process: {} microseconds", start_up(name)? / 1000);
    Ok(())
}

/// Nanoseconds from the start of the first call to the end of the first decode, median of several processes.
fn start_up(name: &str) -> Outcome<u64> {
    let program = std::env::current_exe()?;
    let mut times = Vec::new();
    for _ in 0..11 {
        let output = Command::new(&program).args(["--cold", name]).output()?;
        times.push(String::from_utf8_lossy(&output.stdout).trim().parse()?);
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}
