//! `cargo xtask bench peers`: commands of HotSwap beside the tools that do the same, and `docs/evidence/benchmarks.md`.
//!
//! Each contest has the same input and the same result: the outputs are compared before anything is timed. The first contestant
//! is what the others are compared with; the peers are those of LLVM, and ccache, the wrapper that most builds already pay for.
//!
//! Absent on purpose: what lacks peers. `bench fat`, `bench rewrite` and other contests of `bench` measure that.

use crate::bench::{CODE_SOURCE, Inside, LLVM};
use crate::outcome::{During, Outcome, fail};
use crate::timer::{Contest, Limit, Score};
use crate::{bench_page, paths};
use std::fs;
use std::path::Path;

/// The rows, until the task that wrote the page reads them.
const ROWS: &str = "peers.md";

/// Runs the contests, inside the userland.
pub(crate) fn measure(inside: &Inside, rounds: Option<usize>) -> Outcome {
    prepare(inside)?;
    let (mut rows, mut failed) = (String::new(), 0);
    for mut contest in contests(inside)? {
        contest.rounds = rounds.unwrap_or(contest.rounds);
        let scores = contest.scores(&inside.env)?;
        failed += usize::from(!contest.limit.judge(&scores).0);
        rows += &table(&contest, &scores);
    }
    let file = inside.directory.join(ROWS);
    fs::write(&file, rows).during("write", &file)?;
    if failed == 0 { Ok(()) } else { fail(format!("{failed} limits do not hold")) }
}

/// Objects of a few megabytes of device code, and a fat binary of three GPUs.
fn prepare(inside: &Inside) -> Outcome {
    let source = inside.directory.join("peers.hip");
    fs::write(&source, CODE_SOURCE.replace("Launch<60>", "Launch<12>")).during("write", &source)?;
    for gpu in GPUS {
        let compile = format!("{LLVM}/clang++ --offload-arch={gpu} -O1 --offload-device-only --no-gpu-bundle-output");
        inside.prepare(&format!("{compile} -c peers.hip -o {gpu}.co"))?;
    }
    fs::write(inside.directory.join("host"), "").during("write", &inside.directory)?;
    inside.prepare(&format!("{LLVM}/clang-offload-bundler {} -output=peers.fat", bundle_words("")))?;
    inside.prepare(&format!("{LLVM}/clang-offload-bundler {} -output=peers.packed", bundle_words("-compress")))
}

const GPUS: [&str; 3] = ["gfx1030", "gfx1100", "gfx90a"];

fn bundle_words(more: &str) -> String {
    let targets = GPUS.map(|gpu| format!(",hipv4-amdgcn-amd-amdhsa--{gpu}")).concat();
    let inputs = GPUS.map(|gpu| format!(" -input={gpu}.co")).concat();
    let host = "host-x86_64-unknown-linux-gnu-";
    format!("-type=o -bundle-align=4096 {more} -targets={host}{targets} -input=host{inputs}")
}

fn contests(inside: &Inside) -> Outcome<Vec<Contest>> {
    let hotswap = inside.installed("bin/hotswap");
    let bundler = format!("{LLVM}/clang-offload-bundler");
    let one = "hipv4-amdgcn-amd-amdhsa--gfx1100";
    let entries = GPUS.map(|gpu| format!(" {gpu}={gpu}.co")).concat();
    let pairs = [
        ("peers.fat", "ours.fat", bundle_command_line("", &hotswap, &entries)),
        ("gfx1100.co", "ours.co", extract_command_line("peers.fat", &hotswap)),
        ("gfx1100.co", "ours.co", extract_command_line("peers.packed", &hotswap)),
    ];
    for (theirs, ours, line) in pairs {
        inside.prepare(&line)?;
        same(inside, theirs, ours)?;
    }
    let versus = |question, rounds, peer: (&'static str, String), ours: String| Contest {
        question,
        limit: Limit::None,
        rounds,
        contestants: vec![Inside::contestant(peer.0, &peer.1), Inside::contestant("hotswap", &ours)],
    };
    let help = Contest {
        question: "start of the command: --help",
        limit: Limit::Milliseconds(5.0),
        rounds: 50,
        contestants: vec![
            Inside::contestant("/bin/true", "/bin/true"),
            Inside::contestant("hotswap", &format!("{hotswap} --help")),
            Inside::contestant("ccache", "/usr/bin/ccache --help"),
            Inside::contestant("llvm-objdump", &format!("{LLVM}/llvm-objdump --help")),
        ],
    };
    let wrapper = Contest { limit: Limit::OfThird(0.5), ..inside.wrapper()? };
    Ok(vec![
        wrapper,
        help,
        versus(
            "entries of a fat binary, 3 GPUs",
            30,
            ("clang-offload-bundler", format!("{bundler} -list -type=o -input=peers.fat")),
            format!("{hotswap} list peers.fat"),
        ),
        versus(
            "one code object out of a fat binary",
            30,
            ("clang-offload-bundler", unbundle_command_line("peers.fat", &bundler, one)),
            extract_command_line("peers.fat", &hotswap),
        ),
        versus(
            "one code object out of a compressed fat binary",
            30,
            ("clang-offload-bundler", unbundle_command_line("peers.packed", &bundler, one)),
            extract_command_line("peers.packed", &hotswap),
        ),
        versus(
            "a fat binary of three code objects",
            30,
            ("clang-offload-bundler", format!("{bundler} {} -output=theirs.fat", bundle_words(""))),
            bundle_command_line("", &hotswap, &entries),
        ),
        versus(
            "the same, compressed",
            15,
            ("clang-offload-bundler", format!("{bundler} {} -output=theirs.fat", bundle_words("-compress"))),
            bundle_command_line("--compress", &hotswap, &entries),
        ),
        versus(
            "disassembly of a code object, 0.5 MB of code",
            10,
            ("llvm-objdump", format!("{LLVM}/llvm-objdump -d gfx1100.co")),
            format!("{hotswap} disasm gfx1100.co"),
        ),
    ])
}

fn unbundle_command_line(file: &str, bundler: &str, one: &str) -> String {
    format!("{bundler} -unbundle -type=o -targets={one} -input={file} -output=theirs.co")
}

fn extract_command_line(file: &str, hotswap: &str) -> String {
    format!("{hotswap} extract {file} --target gfx1100 -o ours.co")
}

fn bundle_command_line(more: &str, hotswap: &str, entries: &str) -> String {
    format!("{hotswap} bundle ours.fat {more} --entry{entries}")
}

fn same(inside: &Inside, theirs: &str, ours: &str) -> Outcome {
    if read_contest_file(theirs, inside)? == read_contest_file(ours, inside)? {
        Ok(())
    } else {
        fail(format!("{ours} is not {theirs}, byte by byte"))
    }
}

fn read_contest_file(name: &str, inside: &Inside) -> Result<Vec<u8>, crate::outcome::Failure> {
    fs::read(inside.directory.join(name)).during("read", &inside.directory)
}

/// The part of the page for one contest.
fn table(contest: &Contest, scores: &[Score]) -> String {
    let (holds, promise) = contest.limit.judge(scores);
    let mut text = format!("## {}\n\n| program | ms | more than the first, ms | × the first |\n", contest.question);
    text += "| --- | --- | --- | --- |\n";
    for (contestant, score) in contest.contestants.iter().zip(scores) {
        let Score { median, more, ratio, .. } = score;
        text += &format!("| {} | {median:.2} | {more:+.2} | {ratio:.2} |\n", contestant.name);
    }
    if !promise.is_empty() {
        text += &format!("\nPromised: {promise}: {}.\n", if holds { "holds" } else { "does not hold" });
    }
    text + "\n"
}

/// Makes the page of the rows in that directory; without them, the contests did not end.
pub(crate) fn write_page(directory: &Path) -> Outcome {
    let file = directory.join(ROWS);
    let Ok(rows) = fs::read_to_string(&file) else { return Ok(()) };
    let page = paths::workspace().join("docs/evidence/benchmarks.md");
    let old = fs::read_to_string(&page).unwrap_or_default();
    let parts = bench_page::written_parts(&old);
    let parts = if parts.is_empty() { String::new() } else { format!("\n{parts}") };
    fs::write(&page, format!("{HEAD}{}\n{parts}", rows.trim_end())).during("write", &page)?;
    println!("\nThe tables are in {}", page.display());
    Ok(())
}

const HEAD: &str = "\
# Benchmarks

<!-- Written by `cargo xtask bench peers` and, at the end, `bench files` and `bench project`; do not edit. -->

For readers who ask what HotSwap costs: the times of its commands beside those of the tools that do the same.

HotSwap's commands beside the tools that do the same: LLVM 22's, and ccache, a wrapper that many builds already have. Times are
medians by the clock, of rounds in which all programs take turns; differences and ratios are medians of the rounds'. All outputs
that are compared are the same bytes.

What HotSwap does and no other tool: `cargo xtask bench coalesce` (builds for seven GPUs), `bench fat` (whole libraries),
`bench rewrite` (code of up to 26 million instructions). Whole projects are in [Real projects](projects.md), sizes in
[Generic targets](generics.md).

";
