//! The time of the command `hotswap symbols` for large code objects, by the clock and of processors: one of 28 MB that is full of
//! calls (kernels of collectives and of matrix products, joined many times), and one of 69,212 small kernels.
//!
//! LLVM's own symbol table says how many functions and kernels a file has, and the command must list as many.
//!
//! Absent on purpose: the time of the analysis within a program (`tests/symbols-bench`).

use crate::bench_fat::{measure, middle};
use crate::bench_rewrite::object::Unit;
use crate::built::Profile;
use crate::outcome::{During, Outcome, fail};
use crate::recipe::Part;
use crate::session::Session;
use crate::{install, paths, remove, run};
use clap::Args;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const LLVM: &str = "/usr/lib/llvm-24/bin";
/// The directory, which [`Unit`] knows too.
const DIRECTORY: &str = "bench-rewrite";
/// Bytes of the large code object.
const BYTES: f64 = 28e6;
/// Kernels of the other one.
const KERNELS: usize = 69_212;
/// Millions of instructions of the code object by which the size is estimated.
const PROBE: f64 = 0.5;

#[derive(Args, Default)]
pub(super) struct TimesOptions {
    /// Use this installation in place of a new build
    #[arg(long, value_name = "PREFIX")]
    installed: Option<PathBuf>,
    /// Runs of which the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// A code object, and the seconds that the command may take.
struct Subject {
    what: &'static str,
    file: PathBuf,
    seconds: f64,
}

/// Functions and kernels in LLVM's table of symbols.
#[derive(Debug, PartialEq, Eq)]
struct SymbolCounts {
    functions: usize,
    kernels: usize,
}

/// The table of times.
pub(super) fn measure_command(options: &TimesOptions) -> Outcome<String> {
    let (prefix, work) = (paths::scratch("prefix"), paths::scratch("work"));
    let prefix = options.installed.clone().unwrap_or(prefix);
    let session = Session::open(Part::Tests, &prefix, &work)?;
    if options.installed.is_none() {
        install::install(&prefix, Profile::Dist, session.clang().as_deref())?;
    }
    let directory = work.join(DIRECTORY);
    remove::delete(&directory)?;
    fs::create_dir_all(&directory).during("create", &directory)?;
    let subjects = [
        Subject { what: "full of calls", file: large_object(&session, &directory)?, seconds: 3.0 },
        Subject { what: "small kernels", file: kernels_object(&session, &directory)?, seconds: 2.0 },
    ];
    let hotswap = prefix.join("bin/hotswap");
    let mut text =
        "| code object | MB | functions | kernels | by the clock, s | of processors, s | at most, s | |\n".to_owned();
    text += &format!("|{}", " --- |".repeat(8));
    for subject in &subjects {
        let row = subject.row(&session, &hotswap, options.rounds.max(1))?;
        println!("{row}");
        text += &format!("\n{row}");
    }
    remove::delete(&directory)?;
    Ok(text)
}

impl Subject {
    fn row(&self, session: &Session, hotswap: &Path, rounds: usize) -> Outcome<String> {
        let Self { what, file, seconds } = self;
        let bytes = fs::metadata(file).during("measure", file)?.len();
        let counts = self.symbol_counts(session)?;
        let told = run::output(Command::new(hotswap).arg("symbols").arg(file))?;
        let wanted = format!("{} functions, {} kernels", counts.functions, counts.kernels);
        if !told.lines().take(3).any(|line| line.contains(&wanted)) {
            let first = told.lines().next().unwrap_or_default();
            return fail(format!("{what}: LLVM has {wanted}, `hotswap symbols` says {first}"));
        }
        let runs = (0..rounds).map(|_| measure(Command::new(hotswap).arg("symbols").arg(file)));
        let run = middle(&runs.collect::<Outcome<Vec<_>>>()?);
        let (clock, megabytes) = (run.milliseconds / 1e3, bytes as f64 / 1e6);
        let verdict = if clock <= *seconds { "holds" } else { "missed" };
        Ok(format!(
            "| {what} | {megabytes:.1} | {} | {} | {clock:.2} | {:.2} | {seconds:.1} | {verdict} |",
            counts.functions, counts.kernels, run.processor
        ))
    }

    fn symbol_counts(&self, session: &Session) -> Outcome<SymbolCounts> {
        let name = self.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(symbol_counts(&llvm(session, "llvm-readelf", &format!("-s -W {name}"))?))
    }
}

/// The functions by address, and the descriptors, in a listing of `.symtab`.
fn symbol_counts(listing: &str) -> SymbolCounts {
    let table = listing.split("Symbol table '.symtab'").nth(1).unwrap_or_default();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let mut functions: Vec<&str> =
        rows.iter().filter(|row| row.get(3) == Some(&"FUNC")).filter_map(|row| row.get(1).copied()).collect();
    functions.sort_unstable();
    functions.dedup();
    let is_descriptor =
        |row: &&Vec<&str>| row.get(3) == Some(&"OBJECT") && row.last().is_some_and(|name| name.ends_with(".kd"));
    SymbolCounts { functions: functions.len(), kernels: rows.iter().filter(is_descriptor).count() }
}

fn llvm(session: &Session, tool: &str, words: &str) -> Outcome<String> {
    let mut command = session.inside(&session.work.join(DIRECTORY), &format!("{LLVM}/{tool}"));
    run::output(command.args(shell_words::split(words)?))
}

/// The code object of about [`BYTES`].
fn large_object(session: &Session, directory: &Path) -> Outcome<PathBuf> {
    let unit = Unit::compile(session, directory, "calls", "-DNO_SITES")?;
    let [.., probe] = unit.join(session, PROBE)?;
    let probe = directory.join(probe);
    let size = fs::metadata(&probe).during("measure", &probe)?.len();
    let [.., file] = unit.join(session, PROBE * BYTES / size as f64)?;
    Ok(directory.join(file))
}

/// The code object of [`KERNELS`] kernels.
fn kernels_object(session: &Session, directory: &Path) -> Outcome<PathBuf> {
    let source = directory.join("kernels.s");
    fs::write(&source, kernels_text(KERNELS)).during("write", &source)?;
    llvm(session, "llvm-mc", "-triple=amdgcn-amd-amdhsa -mcpu=gfx1030 -filetype=obj kernels.s -o kernels.o")?;
    llvm(session, "ld.lld", "-shared kernels.o -o kernels.co")?;
    Ok(directory.join("kernels.co"))
}

/// Assembly of so many kernels, each with another constant.
fn kernels_text(count: usize) -> String {
    let mut text = "\t.amdgcn_target \"amdgcn-amd-amdhsa--gfx1030\"\n\t.amdhsa_code_object_version 5\n".to_owned();
    for number in 0..count {
        let _ = write!(
            text,
            "\t.text\n\t.globl k{number}\n\t.protected k{number}\n\t.p2align 8\n\t.type k{number},@function\nk{number}:\n\
             \ts_load_dwordx2 s[0:1], s[4:5], 0x0\n\tv_lshlrev_b32_e32 v1, 2, v0\n\ts_waitcnt lgkmcnt(0)\n\
             \tglobal_load_dword v2, v1, s[0:1]\n\ts_waitcnt vmcnt(0)\n\tv_add_nc_u32_e32 v2, 0x{number:x}, v2\n\
             \tglobal_store_dword v1, v2, s[0:1]\n\ts_endpgm\n\t.size k{number}, .-k{number}\n\
             \t.section .rodata,\"a\",@progbits\n\t.p2align 6\n\t.amdhsa_kernel k{number}\n\
             \t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1\n\t\t.amdhsa_next_free_vgpr 3\n\t\t.amdhsa_next_free_sgpr 6\n\
             \t.end_amdhsa_kernel\n"
        );
    }
    text += "\t.amdgpu_metadata\n---\namdhsa.kernels:\n";
    for number in 0..count {
        let _ = write!(
            text,
            "  - .group_segment_fixed_size: 0\n    .kernarg_segment_align: 8\n    .kernarg_segment_size: 8\n\
             \x20   .max_flat_workgroup_size: 256\n    .name: k{number}\n    .private_segment_fixed_size: 0\n\
             \x20   .sgpr_count: 6\n    .symbol: k{number}.kd\n    .vgpr_count: 3\n    .wavefront_size: 32\n"
        );
    }
    text + "amdhsa.target: amdgcn-amd-amdhsa--gfx1030\namdhsa.version:\n  - 1\n  - 2\n...\n\t.end_amdgpu_metadata\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_descriptors_are_counted_in_the_whole_table() {
        let listing = "Symbol table '.dynsym' contains 1 entries:\n 1: 0000000000001000 8 FUNC GLOBAL PROTECTED 2 k\n\
                       Symbol table '.symtab' contains 4 entries:\n 1: 0000000000001000 8 FUNC GLOBAL PROTECTED 2 k\n\
                       2: 0000000000001000 8 FUNC LOCAL HIDDEN 2 alias\n 3: 0000000000002000 8 FUNC LOCAL HIDDEN 2 f\n\
                       4: 0000000000000100 64 OBJECT GLOBAL PROTECTED 1 k.kd\n 5: 0000000000000200 4 OBJECT LOCAL HIDDEN 1 v\n";
        assert_eq!(symbol_counts(listing), SymbolCounts { functions: 2, kernels: 1 });
        assert_eq!(symbol_counts(""), SymbolCounts { functions: 0, kernels: 0 });
    }

    #[test]
    fn each_kernel_has_code_a_descriptor_and_metadata() {
        let text = kernels_text(3);
        for number in 0..3 {
            for part in ["\nk{}:\n", "\t.amdhsa_kernel k{}\n", "    .symbol: k{}.kd\n"] {
                assert_eq!(text.matches(&part.replace("{}", &number.to_string())).count(), 1, "{part}");
            }
        }
    }
}
