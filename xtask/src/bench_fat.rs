//! `cargo xtask bench fat`: the cost of changing whole libraries, compared with `cp`, zstd and clang's own tools.
//!
//! The libraries are Debian's: GGML with 1.27 GB in 140 bundles, and rocRAND. Contestants take turns, and medians are
//! compared, as in [`timer`](crate::timer). Peak memory is read from `/proc` while they run (`VmHWM`: pages of mapped
//! files count, too), together with anonymous memory. Outputs of the round before are deleted first: `cp` would
//! overwrite its own, and each of the others would write next to the old file.

use crate::built::Profile;
use crate::library::{GGML, ROCRAND, library};
use crate::outcome::{During, Outcome, fail};
use crate::recipe::Part;
use crate::session::Session;
use crate::{install, paths, remove, run, timer};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// GPUs that GGML's ten targets can serve in addition to themselves.
const ALIASES: &str = "gfx902,gfx909,gfx90c,gfx1011,gfx1012,gfx1013,gfx1031,gfx1032,gfx1033,gfx1034,gfx1035,gfx1036,\
                       gfx1103,gfx1150,gfx1151,gfx1152,gfx1153";
/// The generic targets that serve them, and make seven entries superfluous: 28 GPUs with 7 entries.
const GENERICS: &str = "gfx9-generic,gfx10-1-generic,gfx10-3-generic,gfx11-generic";
/// For the smallest package; the default is clang's level 3.
const SMALL_LEVEL: &str = "9";
/// The outputs of the contestants.
const OUTPUTS: [&str; 6] = ["copy.so", "to.so", "less.so", "small.so", "small-to.so", "plain.zst"];
/// MiB of memory that changing a library may take.
const MEMORY: f64 = 200.0;
/// Images of each bundle of the libraries.
const IMAGES: usize = 10;
const POLL: Duration = Duration::from_millis(1);

/// One run of a command.
#[derive(Clone, Copy, Default)]
pub(crate) struct Run {
    pub(crate) milliseconds: f64,
    /// Seconds of all processors, as far as observed while it ran.
    pub(crate) processor: f64,
    /// Peaks in KiB.
    pub(crate) anonymous: u64,
    pub(crate) resident: u64,
}

type Contestant<'a> = (&'a str, Box<dyn Fn() -> Command + 'a>);

struct FatBench {
    session: Session,
    hotswap: PathBuf,
    directory: PathBuf,
    rounds: usize,
    failed: usize,
}

pub(crate) fn main(rounds: Option<usize>) -> Outcome {
    let (prefix, work) = (paths::scratch("prefix"), paths::scratch("work"));
    let session = Session::open(Part::Tests, &prefix, &work)?;
    install::install(&prefix, Profile::Dist, session.clang().as_deref())?;
    let directory = work.join("bench-fat");
    remove::delete(&directory)?;
    fs::create_dir_all(&directory).during("create", &directory)?;
    let mut bench =
        FatBench { session, hotswap: prefix.join("bin/hotswap"), directory, rounds: rounds.unwrap_or(5), failed: 0 };
    let (ggml, rocrand) = (library(&GGML)?, library(&ROCRAND)?);
    bench.list(&ggml)?;
    bench.whole(&ggml)?;
    bench.compression(&rocrand)?;
    bench.sizes("GGML's library", &ggml)?;
    bench.sizes("rocRAND", &rocrand)?;
    remove::delete(&bench.directory)?;
    if crate::bench::main(["cargo xtask bench", "coalesce"].map(str::to_owned).to_vec()).is_err() {
        bench.failed += 1;
    }
    if bench.failed == 0 { Ok(()) } else { fail(format!("{} limits do not hold", bench.failed)) }
}

impl FatBench {
    fn hotswap(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.hotswap);
        command.args(words).arg("--allow-unchanged").current_dir(&self.directory);
        command
    }

    fn tool(&self, program: &str, words: &[String]) -> Command {
        let mut command = self.session.inside(&self.session.work.join("bench-fat"), program);
        command.args(words);
        command
    }

    /// Runs the contestants in turns and prints a line for each; the others are compared with the first.
    fn race(&self, question: &str, contestants: &[Contestant<'_>]) -> Outcome<Vec<Run>> {
        println!("\n{question} ({} rounds)", self.rounds);
        let mut runs = vec![Vec::new(); contestants.len()];
        // One round more than counted: the first one warms the caches.
        for round in 0..=self.rounds {
            for turn in 0..contestants.len() {
                let index = (round + turn) % contestants.len();
                // Most of them belong to other contestants and do not exist.
                OUTPUTS.iter().for_each(|name| drop(fs::remove_file(self.directory.join(name))));
                let run = measure(&mut contestants[index].1())?;
                if round > 0 {
                    runs[index].push(run);
                }
            }
        }
        let medians: Vec<Run> = runs.iter().map(|runs| middle(runs)).collect();
        for ((name, _), (run, all)) in contestants.iter().zip(medians.iter().zip(&runs)) {
            let pairs = all.iter().zip(&runs[0]).map(|(run, first)| run.milliseconds / first.milliseconds);
            let (ratio, megabytes) = (timer::median(pairs.collect()), |size: u64| size as f64 / 1024.0);
            let (anonymous, resident) = (megabytes(run.anonymous), megabytes(run.resident));
            let time = run.milliseconds;
            println!(
                "  {name:<36} {time:>9.1} ms  × {ratio:<7.3} {anonymous:>7.1} MB anonymous, {resident:>7.1} resident"
            );
        }
        Ok(medians)
    }

    fn limit(&mut self, what: &str, value: f64, limit: f64) {
        let holds = value <= limit;
        self.failed += usize::from(!holds);
        println!("  {}: {what}: {value:.3}, at most {limit}", if holds { "holds" } else { "DOES NOT HOLD" });
    }

    fn list(&mut self, ggml: &Path) -> Outcome {
        let path = ggml.display().to_string();
        // Inside the userland the library has another name.
        fs::hard_link(ggml, self.directory.join("lib.so"))
            .or_else(|_| fs::copy(ggml, self.directory.join("lib.so")).map(drop))?;
        let objdump = || self.tool("llvm-objdump-22", &["--offloading".into(), "lib.so".into()]);
        let runs = self.race(
            "list of GGML's library, 1.27 GB",
            &[
                ("hotswap list", Box::new(|| self.hotswap(&["list", &path]))),
                ("hotswap list --format json", Box::new(|| self.hotswap(&["list", "--format", "json", &path]))),
                ("llvm-objdump --offloading", Box::new(objdump)),
            ],
        )?;
        self.limit("milliseconds", runs[0].milliseconds, 100.0);
        Ok(())
    }

    /// All of a library: each changed byte by byte, or bundle by bundle.
    fn whole(&mut self, ggml: &Path) -> Outcome {
        let path = ggml.display().to_string();
        let copy = || {
            let mut command = Command::new("cp");
            command.args([&path, "copy.so"]).current_dir(&self.directory);
            command
        };
        let to = "gfx10-3-generic,gfx1031";
        let runs = self.race(
            "all bundles of GGML's library",
            &[
                ("cp", Box::new(copy)),
                (
                    "hotswap retarget, 2 targets more",
                    Box::new(|| self.hotswap(&["retarget", &path, "--to", to, "-o", "to.so"])),
                ),
                (
                    "hotswap prune, 1 target less",
                    Box::new(|| self.hotswap(&["prune", &path, "--drop", "gfx906", "-o", "less.so"])),
                ),
            ],
        )?;
        self.limit("retarget over cp", runs[1].milliseconds / runs[0].milliseconds, 3.0);
        self.limit("prune over cp", runs[2].milliseconds / runs[0].milliseconds, 3.0);
        self.memory(&runs[1..]);
        self.whole_packed(&path)
    }

    /// The same where the bundles are compressed: there libzstd dominates, on all cores.
    fn whole_packed(&mut self, path: &str) -> Outcome {
        run::output(&mut self.hotswap(&["compress", path, "-o", "packed.so"]))?;
        let threads = format!("-T{}", std::thread::available_parallelism().map_or(1, usize::from));
        let zstd = || {
            let mut command = Command::new("zstd");
            command.args(["-q", "-f", "-3", "--long=26", &threads, path, "-o", "plain.zst"]);
            command.current_dir(&self.directory);
            command
        };
        let to = "gfx10-3-generic,gfx1031";
        let mut contestants: Vec<Contestant<'_>> = Vec::new();
        match which::which("zstd") {
            Ok(_) => contestants.push(("zstd -3 --long of the file", Box::new(zstd))),
            Err(_) => println!("zstd is not installed here and left out"),
        }
        contestants.push(("hotswap compress", Box::new(|| self.hotswap(&["compress", path, "-o", "small.so"]))));
        let retarget = || self.hotswap(&["retarget", "packed.so", "--to", to, "-o", "small-to.so"]);
        contestants.push(("hotswap retarget, compressed", Box::new(retarget)));
        let decompress = || self.hotswap(&["decompress", "packed.so", "-o", "small.so"]);
        contestants.push(("hotswap decompress", Box::new(decompress)));
        let runs = self.race("all bundles of GGML's library, compressed", &contestants)?;
        let has_zstd = contestants.len() == 4;
        drop(contestants);
        let ours = &runs[usize::from(has_zstd)..];
        if has_zstd {
            self.limit("compress over zstd", ours[0].milliseconds / runs[0].milliseconds, 1.1);
        }
        self.memory(ours);
        Ok(())
    }

    fn memory(&mut self, runs: &[Run]) {
        let most = runs.iter().map(|run| run.resident).max().unwrap_or_default();
        self.limit("megabytes of memory", most as f64 / 1024.0, MEMORY);
    }

    /// One bundle, compressed by each tool with the same method, level and long-distance matching.
    fn compression(&mut self, rocrand: &Path) -> Outcome {
        let words = ["extract", &rocrand.display().to_string(), "--output-dir", "images"];
        run::output(&mut self.hotswap(&words))?;
        let images = largest_bundle(&self.directory)?;
        let ids: Vec<&str> = images.iter().map(|(id, _)| id.as_str()).collect();
        let bundler = |output: &str, more: &[&str]| {
            let mut words: Vec<String> =
                ["-type=o", "-bundle-align=4096", "-input=/dev/null"].map(str::to_owned).into();
            words.push(format!("-targets=host-x86_64-unknown-linux-gnu-,{}", ids.join(",")));
            words.extend(images.iter().map(|(_, file)| format!("-input={file}")));
            words.push(format!("-output={output}"));
            words.extend(more.iter().map(|word| (*word).to_owned()));
            self.tool("clang-offload-bundler-22", &words)
        };
        run::output(&mut bundler("plain.hipfb", &[]))?;
        let zstd = || {
            let mut command = Command::new("zstd");
            command.args(["-q", "-f", "-3", "--long=24", "--single-thread", "plain.hipfb", "-o", "plain.zst"]);
            command.current_dir(&self.directory);
            command
        };
        let mut contestants: Vec<Contestant<'_>> = vec![
            ("clang-offload-bundler -compress", Box::new(|| bundler("clang.hipfb", &["-compress"]))),
            ("hotswap compress", Box::new(|| self.hotswap(&["compress", "plain.hipfb", "-o", "ours.hipfb"]))),
        ];
        match which::which("zstd") {
            Ok(_) => contestants.push(("zstd -3 --long", Box::new(zstd))),
            Err(_) => println!("zstd is not installed here and left out"),
        }
        let question = format!(
            "compression of one bundle of rocRAND, {:.1} MB",
            file_size_megabytes("plain.hipfb", &self.directory)?
        );
        let runs = self.race(&question, &contestants)?;
        drop(contestants);
        println!(
            "  {:.3} MB by clang, {:.3} MB by hotswap",
            file_size_megabytes("clang.hipfb", &self.directory)?,
            file_size_megabytes("ours.hipfb", &self.directory)?
        );
        self.limit("hotswap over clang", runs[1].milliseconds / runs[0].milliseconds, 1.1);
        Ok(())
    }

    /// The size of more targets where the library is compressed, and the savings of generic ones.
    fn sizes(&mut self, name: &str, library: &Path) -> Outcome {
        let path = library.display().to_string();
        println!("\nsizes of {name}: the file, and its device code");
        // Sizes are measured: rocRAND's choice by name in its host part does not matter here.
        let common = ["--compress", "--allow", "experimental,names", "--policy", "keep"];
        run::output(&mut self.hotswap(&["compress", &path, "-o", "packed.so"]))?;
        run_retarget_command(&["--to", ALIASES, "-o", "aliases.so"], self, &path, &common)?;
        run_retarget_command(&["--to", GENERICS, "--drop", "covered", "-o", "lean.so"], self, &path, &common)?;
        let small = ["compress", "lean.so", "--level", SMALL_LEVEL, "-o", "smallest.so"];
        run::output(&mut self.hotswap(&small))?;
        let mut compressed = None;
        let mut changes = Vec::new();
        for (what, file) in [
            ("as Debian ships it, 10 GPUs", path.as_str()),
            ("compressed", "packed.so"),
            ("compressed, 17 GPUs more", "aliases.so"),
            ("compressed, generics in place of 7 entries", "lean.so"),
            ("the same at level 9", "smallest.so"),
        ] {
            let size = fs::metadata(self.directory.join(file))?.len() as f64 / 1e6;
            let device = self.device_bytes(file)?;
            let [file_more, device_more] = [
                percent_size_increase(size, compressed.map(|(size, _)| size)),
                percent_size_increase(device, compressed.map(|(_, device)| device)),
            ];
            println!("  {what:<44} {size:>9.3} MB {file_more:+7.2} %  {device:>9.3} MB {device_more:+7.2} %");
            changes.push(device_more);
            if file == "packed.so" {
                compressed = Some((size, device));
            }
        }
        self.limit("percent more device code for 17 GPUs", changes[2], 0.7);
        self.limit("percent more device code with generics", changes[3], -20.0);
        self.limit("percent more device code with generics at level 9", changes[4], -20.0);
        Ok(())
    }
}

fn file_size_megabytes(name: &str, directory: &Path) -> Result<f64, std::io::Error> {
    fs::metadata(directory.join(name)).map(|meta| meta.len() as f64 / 1e6)
}

fn run_retarget_command(
    to: &[&str],
    bench: &FatBench,
    path: &str,
    common: &[&str; 5],
) -> Result<String, crate::outcome::Failure> {
    run::output(&mut bench.hotswap(&[&["retarget", path], to, common].concat()))
}

fn percent_size_increase(now: f64, before: Option<f64>) -> f64 {
    before.map_or(0.0, |before| (now / before - 1.0) * 100.0)
}

impl FatBench {
    /// Megabytes of the fat binaries of a file.
    fn device_bytes(&self, name: &str) -> Outcome<f64> {
        // The first line ends with `BYTES bytes in PACKED`, without the last two tokens where nothing is packed.
        let listed = run::output(&mut self.hotswap(&["list", name]))?;
        let last = listed.lines().next().and_then(|line| line.rsplit(' ').find_map(|word| word.parse::<f64>().ok()));
        last.map_or_else(|| fail(format!("{name} is listed without a size")), |bytes| Ok(bytes / 1e6))
    }
}

/// Entry IDs and files of the images of the largest bundle; `hotswap extract` calls them NAME.NUMBER.TARGET.co.
fn largest_bundle(directory: &Path) -> Outcome<Vec<(String, String)>> {
    let mut bundles: BTreeMap<usize, (u64, Vec<(String, String)>)> = BTreeMap::new();
    for entry in fs::read_dir(directory.join("images")).during("read", directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let parts: Vec<&str> = name.rsplit('.').collect();
        let (Some(number), Some(target)) = (parts.get(2).and_then(|number| number.parse::<usize>().ok()), parts.get(1))
        else {
            continue;
        };
        let bundle = bundles.entry((number - 1) / IMAGES).or_default();
        bundle.0 += entry.metadata()?.len();
        bundle.1.push((format!("hipv4-amdgcn-amd-amdhsa--{target}"), format!("images/{name}")));
    }
    Ok(bundles.into_values().max_by_key(|(size, _)| *size).map(|(_, images)| images).unwrap_or_default())
}

/// Runs a command that must succeed, and watches its memory.
pub(crate) fn measure(command: &mut Command) -> Outcome<Run> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn()?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut run = Run::default();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let text = fs::read_to_string(&status_file).unwrap_or_default();
        run.anonymous = run.anonymous.max(field(&text, "RssAnon:"));
        run.resident = run.resident.max(field(&text, "VmHWM:"));
        run.processor = run.processor.max(processor(child.id()));
        std::thread::sleep(POLL);
    };
    run.milliseconds = start.elapsed().as_secs_f64() * 1000.0;
    if status.success() { Ok(run) } else { fail(format!("`{}`: {status}", run::line(command))) }
}

/// A number of KiB in `/proc/PID/status`.
fn field(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// Seconds of all processors that a process has used.
fn processor(process: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // User and system time are the 14th and 15th field, in hundredths of a second; the second one ends with the last `)`.
    let fields = text.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(2);
    fields.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Median times, largest peaks.
pub(crate) fn middle(runs: &[Run]) -> Run {
    Run {
        milliseconds: timer::median(runs.iter().map(|run| run.milliseconds).collect()),
        processor: timer::median(runs.iter().map(|run| run.processor).collect()),
        anonymous: runs.iter().map(|run| run.anonymous).max().unwrap_or_default(),
        resident: runs.iter().map(|run| run.resident).max().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_status() {
        let text = "Name:\tx\nVmHWM:\t    1234 kB\nRssAnon:\t      56 kB\n";
        assert_eq!((field(text, "VmHWM:"), field(text, "RssAnon:"), field(text, "Rss:")), (1234, 56, 0));
        assert!(measure(&mut Command::new("/bin/false")).is_err());
        assert!(measure(&mut Command::new("/bin/true")).is_ok());
    }
}
