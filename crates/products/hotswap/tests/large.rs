//! Libraries that are larger than the memory that changing them may take, killed runs, and disks that are full.

mod made;

use hotswap_bundle::{Bundle, Compression, find_containers, parse};
use hotswap_samples::code_object::Sample;
use hotswap_targets::EFlags;
use made::{Directory, id};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const BUNDLES: u8 = 16;
/// Of the largest entry of each bundle.
const SIZE: usize = 24 << 20;
/// KiB that a run may take of memory, mapped files included; the file has twice as many.
const MEMORY: u64 = 192 << 10;

fn object(target: &str) -> Vec<u8> {
    let flags = EFlags::of(&target.parse().unwrap()).encode();
    Sample { target: format!("amdgcn-amd-amdhsa--{target}"), flags, lanes: 32, ..Sample::default() }.build()
}

/// Bundles with a code object and much else, one after the other.
fn library(bundles: u8, size: usize) -> Vec<u8> {
    let mut all = Vec::new();
    for number in 1..=bundles {
        let mut bundle = Bundle::default();
        bundle.push(id("gfx1030"), object("gfx1030")).unwrap();
        bundle.push(id("gfx906"), [b"BC\xc0\xde".to_vec(), vec![number; size]].concat()).unwrap();
        bundle.push(id("gfx1100"), object("gfx1100")).unwrap();
        all.resize(all.len().next_multiple_of(4096), 0);
        all.extend_from_slice(&bundle.to_bytes().unwrap());
    }
    all
}

impl Directory {
    fn new(library: &[u8]) -> Self {
        let directory = Self::empty();
        fs::write(directory.path("in"), library).unwrap();
        directory
    }

    fn start(&self, words: &str) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotswap"));
        command.args(words.split(' ')).current_dir(self.0.path()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Runs to the end; the most memory that it had, in KiB.
fn peak(mut child: Child) -> u64 {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default();
        peak = peak.max(now);
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return peak;
        }
        sleep(Duration::from_millis(1));
    }
}

fn same(one: &Path, other: &Path) -> bool {
    fs::read(one).unwrap() == fs::read(other).unwrap()
}

#[test]
fn a_library_needs_memory_for_a_part_of_it_with_any_number_of_threads() {
    let directory = Directory::new(&library(BUNDLES, SIZE));
    for words in ["retarget in --to gfx1031,gfx11-generic --policy keep", "prune in --drop gfx1100"] {
        for jobs in [1, 8] {
            let peak = peak(directory.start(&format!("{words} -o out{jobs} --jobs {jobs}")));
            assert!(peak > 0 && peak < MEMORY, "{words}, {jobs} threads: {peak} KiB");
        }
        assert!(same(&directory.path("out1"), &directory.path("out8")), "{words}");
        let made = fs::read(directory.path("out8")).unwrap();
        let contents = find_containers(&made);
        assert_eq!(contents.found.len(), usize::from(BUNDLES), "{words}");
        for (number, found) in (1..).zip(&contents.found) {
            let (bundle, _) = parse(found.bytes).unwrap();
            let large = &bundle.entry(&id("gfx906")).unwrap().data;
            assert!(large.len() == SIZE + 4 && large[4..].iter().all(|byte| *byte == number), "{words} {number}");
            let is_pruned = bundle.entry(&id("gfx1100")).is_none();
            assert_eq!(is_pruned, words.starts_with("prune"));
            let made = bundle.entry(&id("gfx1031")).map(|entry| entry.data.to_vec());
            assert!(made == (!is_pruned).then(|| object("gfx1031")), "{words} {number}");
        }
    }
    assert_eq!(directory.names(), ["in", "out1", "out8"]);
}

#[test]
fn a_run_that_is_killed_leaves_the_old_file_and_nothing_else() {
    let directory = Directory::new(&library(6, 8 << 20));
    assert!(directory.start("retarget in --to gfx1031 -o whole").wait().unwrap().success());
    fs::write(directory.path("out"), "old").unwrap();
    let mut killed = 0;
    for milliseconds in (0..200).step_by(7) {
        let mut child = directory.start("retarget in --to gfx1031 -o out --jobs 2");
        sleep(Duration::from_millis(milliseconds));
        // It may be done by now.
        let _ = child.kill();
        if !child.wait().unwrap().success() {
            killed += 1;
            let content = fs::read(directory.path("out")).unwrap();
            assert!(content == b"old" || same(&directory.path("out"), &directory.path("whole")), "{milliseconds} ms");
        }
    }
    assert!(killed > 0);
    assert!(directory.start("retarget in --to gfx1031 -o out").wait().unwrap().success());
    assert!(same(&directory.path("out"), &directory.path("whole")));
    assert_eq!(directory.names(), ["in", "out", "whole"]);
}

/// A limit on the size of files replaces a disk that becomes full: tests may not mount one.
#[test]
fn a_full_disk_is_one_line_and_leaves_the_old_file() {
    let directory = Directory::new(&library(3, 1 << 20));
    fs::write(directory.path("out"), "old").unwrap();
    let hotswap = env!("CARGO_BIN_EXE_hotswap");
    for words in ["retarget in --to gfx1031 -o out", "prune in --drop gfx1100 -o out", "compress in -o out"] {
        // Without the signal the write fails, as it does on a full disk.
        let script = format!("trap '' XFSZ; ulimit -f 8; exec {hotswap} {words}");
        let run = Command::new("sh").args(["-c", &script]).current_dir(directory.0.path()).output().unwrap();
        let said = String::from_utf8(run.stderr).unwrap();
        // Well compressible data fits.
        let fits = words.starts_with("compress") && run.status.success();
        let is_told = said.lines().count() <= 2 && said.contains("out") && said.contains("File too large");
        assert!(fits || !run.status.success() && is_told, "{words}: {said}");
        assert_eq!(fs::read(directory.path("out")).unwrap() == b"old", !fits, "{words}");
        fs::write(directory.path("out"), "old").unwrap();
    }
    assert_eq!(directory.names(), ["in", "out"]);
}

/// The bar comes after half a second; a listing that takes this long shows it.
const LONG_ENOUGH: Duration = Duration::from_millis(1500);

/// A bundle of 100 MB, which is small when compressed, as one unit of a linked file.
fn compressed_unit() -> Vec<u8> {
    let mut bundle = Bundle::default();
    bundle.push(id("gfx1030"), object("gfx1030")).unwrap();
    bundle.push(id("gfx906"), [b"BC\xc0\xde".to_vec(), vec![0; 96 << 20]].concat()).unwrap();
    bundle.set_compression(Some(Compression::default()));
    let mut bytes = bundle.to_bytes().unwrap().into_owned();
    bytes.resize(bytes.len().next_multiple_of(4096), 0);
    bytes
}

fn successful_output(command: &mut Command, directory: &Directory) -> Output {
    let output = command.current_dir(directory.0.path()).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

/// A bar after half a second, on a terminal (of `script`), which is gone at the end; nothing of it anywhere else.
#[test]
fn a_long_look_shows_its_progress_on_a_terminal_only() {
    let unit = compressed_unit();
    let program = env!("CARGO_BIN_EXE_hotswap");
    let mut units = 9;
    // As many as take long on this machine, in the run that is judged: the next one may find the file in memory.
    let (shown, rest) = loop {
        let directory = Directory::new(&unit.repeat(units));
        let plain = successful_output(Command::new(program).args(["list", "--kernels", "in"]), &directory);
        assert!(plain.stderr.is_empty() && !plain.stdout.contains(&b'\r'));
        let line = format!("{program} list --kernels in");
        let start = Instant::now();
        // A terminal that is not named can do nothing, so a bar is not shown there.
        let mut terminal = Command::new("script");
        let typed = successful_output(terminal.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm"), &directory);
        if start.elapsed() > LONG_ENOUGH {
            let text = String::from_utf8(typed.stdout).unwrap();
            let listing = text.find(&format!("in: {units} containers")).expect("the listing");
            break (text[..listing].to_owned(), text[listing..].to_owned());
        }
        units *= 2;
    };
    assert!(shown.contains("reading"), "{units} units: {shown:?}");
    assert!(!rest.contains("reading"), "{units} units: {rest:?}");
}

/// The hashes that a record would be compared with are needed by `inspect` alone, which prints them.
#[test]
fn verify_reads_each_container_once_and_hashes_nothing_without_a_record() {
    let directory = Directory::new(&library(4, SIZE));
    let inspect = processor_ticks(directory.start("inspect in"));
    let verify = processor_ticks(directory.start("verify in"));
    assert!(inspect > 4 && verify * 2 < inspect, "inspect took {inspect} ticks, verify {verify}");
}

/// The processor time of a command until it ends.
fn processor_ticks(mut child: Child) -> u64 {
    let file = format!("/proc/{}/stat", child.id());
    loop {
        let stat = fs::read_to_string(&file).unwrap();
        // The name may have blanks and ends with the last bracket; the state is the first field behind it.
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        if fields[0] == "Z" {
            assert!(child.wait().unwrap().success());
            return fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        }
        sleep(Duration::from_millis(5));
    }
}
