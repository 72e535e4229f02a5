//! Four or five builds of a project, and their comparison.
//!
//! | build | command | compared |
//! | --- | --- | --- |
//! | plain | clang, for the source | |
//! | through | the same through HotSwap, without a plan | all files with plain, byte by byte |
//! | plan | through HotSwap with a plan | the source's code objects with plain, the target's with both |
//! | both | clang, for source and targets | |
//! | coalesced | through HotSwap, for source and targets, siblings compiled once | all code objects with both |
//!
//! The last one only with more than one target.

use super::table::{BuildScript, Project, TestProgram};
use crate::outcome::{During, Failure, Outcome, fail};
use crate::packages::{Package, Packages};
use crate::run;
use crate::session::Session;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, ScopedJoinHandle};

const CLANG: &str = "/usr/lib/llvm-22/bin/clang++";
/// The linked program, in the directory of its build.
const PROGRAM: &str = "program";

const COALESCE: &str = "-fhotswap-coalesce";

/// How often builds are repeated whose times seem to differ: other work on the machine can only add to them.
const REPEATS: usize = 6;
/// The ratio that is promised where nothing is retargeted.
pub(super) const RATIO: f64 = 1.02;

/// Runs a command, and prints the seconds of all processors that it took.
pub(crate) const TIMED: &str = "import resource, subprocess, sys\n\
                     code = subprocess.run(sys.argv[1:]).returncode\n\
                     u = resource.getrusage(resource.RUSAGE_CHILDREN)\n\
                     print(u.ru_utime + u.ru_stime)\n\
                     sys.exit(code)";

pub(super) struct ProjectBench {
    pub(super) session: Session,
    /// The machine's directory that is visible inside as [`Session::work`].
    pub(super) work: PathBuf,
    pub(super) packages: Packages,
}

/// The results of a project.
#[derive(Default)]
pub(super) struct Comparison {
    pub(super) version: String,
    /// Seconds of processors and bytes, by build.
    pub(super) seconds: [f64; 5],
    pub(super) bytes: [u64; 5],
    pub(super) equal: EqualCount,
    /// Runs of programs.
    pub(super) runs: usize,
    pub(super) failures: Vec<String>,
    /// One for each unit, unless the project has its own build or a link of its device code.
    pub(super) units: Vec<ComparedUnit>,
}

/// How many comparisons of code objects found them equal.
#[derive(Default)]
pub(super) struct EqualCount {
    pub(super) equal: usize,
    pub(super) all: usize,
}

impl EqualCount {
    fn count(&mut self, is_equal: bool) {
        self.equal += usize::from(is_equal);
        self.all += 1;
    }

    fn add(&mut self, other: &Self) {
        self.equal += other.equal;
        self.all += other.all;
    }
}

/// The results of a unit.
#[derive(Default)]
pub(super) struct ComparedUnit {
    /// Seconds of processors, by build.
    pub(super) seconds: [f64; 5],
    pub(super) equal: EqualCount,
    /// GPUs whose code objects of the plan are not clang's.
    pub(super) differing: Vec<&'static str>,
    /// GPUs whose coalesced code objects were derived. HotSwap says so; it judges nothing here.
    pub(super) derived: Vec<String>,
}

impl Comparison {
    pub(super) fn failed(failure: &Failure) -> Self {
        let first = failure.to_string().lines().next().unwrap_or_default().to_owned();
        println!("  {failure}");
        Self { failures: vec![first], ..Self::default() }
    }
}

/// Seconds of processors that a build took, and the bytes of its files.
struct Measured {
    /// Of each command: one for each unit, then the link.
    commands: Vec<f64>,
    bytes: u64,
}

impl Measured {
    fn total_seconds(&self) -> f64 {
        self.commands.iter().sum()
    }
}

/// One of the builds.
struct Build {
    name: &'static str,
    compiler: &'static str,
    /// Whether it is for all GPUs of the project, not only for the source.
    all: bool,
    /// The option for HotSwap.
    request: Request,
}

#[derive(PartialEq, Eq)]
enum Request {
    Nothing,
    Plan,
    Coalesce,
}

#[rustfmt::skip]
static BUILDS: [Build; 5] = [
    Build { name: "plain", compiler: CLANG, all: false, request: Request::Nothing },
    Build { name: "through", compiler: "hotswap-clang++", all: false, request: Request::Nothing },
    Build { name: "plan", compiler: "hotswap-clang++", all: false, request: Request::Plan },
    Build { name: "both", compiler: CLANG, all: true, request: Request::Nothing },
    Build { name: "coalesced", compiler: "hotswap-clang++", all: true, request: Request::Coalesce },
];

impl Build {
    fn concerns(&self, project: &Project) -> bool {
        self.request != Request::Coalesce || project.is_coalesced()
    }

    /// The GPUs that are asked for.
    fn requested_gpus(&self, project: &Project) -> impl Iterator<Item = &'static str> {
        project.gpus.iter().take(if self.all { usize::MAX } else { 1 }).copied()
    }
}

/// A project whose sources are in place.
struct Prepared<'p> {
    project: &'p Project,
    /// Its options, with the paths inside.
    options: Vec<String>,
    /// Paths inside for `{S}`, `{G}`, `{0}`, …
    paths: Vec<(String, String)>,
}

impl Prepared<'_> {
    fn expand(&self, text: &str) -> String {
        expand(text, &self.paths)
    }

    fn unit(&self, number: usize) -> String {
        Path::new(&self.expand("{S}")).join(self.project.units[number]).display().to_string()
    }

    /// The files that have device code.
    fn outputs(&self) -> Vec<String> {
        if let Some(script) = &self.project.script {
            return vec![script.library.to_owned()];
        }
        if self.project.relocatable {
            return vec![PROGRAM.to_owned()];
        }
        (0..self.project.units.len()).map(|number| format!("{number}.o")).collect()
    }
}

fn expand(text: &str, paths: &[(String, String)]) -> String {
    paths.iter().fold(text.to_owned(), |text, (name, path)| text.replace(name, path))
}

impl ProjectBench {
    pub(super) fn compare(&self, project: &Project) -> Outcome<Comparison> {
        let (prepared, version) = self.prepare(project)?;
        let mut result = Comparison { version, ..Comparison::default() };
        result.units.resize_with(project.compared_units(), ComparedUnit::default);
        for (number, measured) in self.build_all(&prepared)?.into_iter().enumerate() {
            result.seconds[number] = measured.total_seconds();
            result.bytes[number] = measured.bytes;
            for (unit, seconds) in result.units.iter_mut().zip(measured.commands) {
                unit.seconds[number] = seconds;
            }
        }
        for _ in 1..REPEATS {
            if result.seconds[1] <= result.seconds[0] * RATIO {
                break;
            }
            for (number, build) in BUILDS.iter().take(2).enumerate() {
                result.seconds[number] = result.seconds[number].min(self.build_once(&prepared, build)?.total_seconds());
            }
        }
        self.judge(&prepared, &mut result)?;
        for program in project.programs {
            self.run_program(&prepared, program, &mut result)?;
        }
        result.failures.iter().for_each(|failure| println!("  {failure}"));
        Ok(result)
    }

    /// Copies the sources to where the userland sees them, and makes headers.
    fn prepare<'p>(&self, project: &'p Project) -> Outcome<(Prepared<'p>, String)> {
        let place = self.place(project.name);
        fs::create_dir_all(self.work.join(&place)).during("create", &self.work)?;
        let version = self.packages.get(&project.sources)?.version;
        let mut paths = vec![("{S}".to_owned(), self.copy(&project.sources, &place, "sources")?)];
        paths.push(("{G}".to_owned(), self.session.work.join(&place).join("generated").display().to_string()));
        for (number, package) in project.packages.iter().enumerate() {
            let copied = self.copy(package, &place, &format!("package-{number}"))?;
            paths.push((format!("{{{number}}}"), copied));
        }
        for header in project.generated {
            let template = self.work.join(&place).join("sources").join(header.template);
            let text = fs::read_to_string(&template).during("read", &template)?;
            let text = header.values.iter().fold(text, |text, (name, value)| text.replace(name, value));
            let file = self.work.join(&place).join("generated").join(header.header);
            fs::create_dir_all(file.parent().unwrap_or(&self.work)).during("create", &file)?;
            fs::write(&file, text).during("write", &file)?;
        }
        let options = project.options.iter().map(|option| expand(option, &paths)).collect();
        Ok((Prepared { project, options, paths }, version))
    }

    /// A project's directory, from the work directory.
    fn place(&self, name: &str) -> String {
        name.chars().filter(char::is_ascii_alphanumeric).collect()
    }

    fn copy(&self, package: &Package, place: &str, name: &str) -> Outcome<String> {
        let from = self.packages.get(package)?.directory;
        run::output(Command::new("cp").arg("-a").arg(from).arg(self.work.join(place).join(name)))?;
        Ok(self.session.work.join(place).join(name).display().to_string())
    }

    /// The directory of a build, from the work directory.
    fn directory(&self, prepared: &Prepared, build: &str) -> String {
        format!("{}/{build}", self.place(prepared.project.name))
    }

    /// Makes the builds that concern the project, at the same time: other work on the machine then slows all of them down alike. Those by
    /// a script share a directory, and follow each other.
    fn build_all(&self, prepared: &Prepared) -> Outcome<Vec<Measured>> {
        let builds = BUILDS.iter().filter(|build| build.concerns(prepared.project));
        if prepared.project.script.is_some() {
            return builds.map(|build| self.build_once(prepared, build)).collect();
        }
        thread::scope(|scope| {
            let running: Vec<_> = builds.map(|build| scope.spawn(|| self.build_once(prepared, build))).collect();
            running.into_iter().map(join_build).collect()
        })
    }

    /// Builds the project, and measures that.
    fn build_once(&self, prepared: &Prepared, build: &Build) -> Outcome<Measured> {
        let directory = self.directory(prepared, build.name);
        let outside = self.work.join(&directory);
        fs::create_dir_all(&outside).during("create", &outside)?;
        let commands = match &prepared.project.script {
            Some(script) => vec![self.run_script(prepared, build, script)?],
            None => self.build_units(prepared, build)?,
        };
        let mut bytes = 0;
        for file in prepared.outputs() {
            let path = outside.join(file);
            bytes += fs::metadata(&path).during("read", &path)?.len();
        }
        let measured = Measured { commands, bytes };
        println!("  {:9} {:7.2} s {bytes:10} bytes", build.name, measured.total_seconds());
        Ok(measured)
    }

    /// Compiles all units, and links them where their device code is linked together. Returns seconds of processors, by command.
    fn build_units(&self, prepared: &Prepared, build: &Build) -> Outcome<Vec<f64>> {
        let mut seconds = Vec::new();
        let gpus: Vec<String> =
            build.requested_gpus(prepared.project).map(|gpu| format!("--offload-arch={gpu}")).collect();
        let relocatable = prepared.project.relocatable.then_some("-fgpu-rdc");
        for number in 0..prepared.project.units.len() {
            let mut words: Vec<String> = ["-x", "hip", "-O2", "-w", "-c"].map(str::to_owned).into();
            words.extend(gpus.iter().cloned().chain(relocatable.map(str::to_owned)));
            words.extend((build.request == Request::Coalesce).then(|| COALESCE.to_owned()));
            words.extend(prepared.options.iter().cloned());
            // Clang makes this identifier of its arguments, which differ between the builds.
            words.push(format!("-cuid=unit{number}"));
            words.extend([prepared.unit(number), "-o".to_owned(), format!("{number}.o")]);
            seconds.push(self.measure_processor(self.python_of_build(prepared, build), build.compiler, &words)?);
        }
        if prepared.project.relocatable {
            let mut words = ["--hip-link", "-fgpu-rdc", "-o", PROGRAM].map(str::to_owned).to_vec();
            words.extend(gpus);
            words.extend((0..prepared.project.units.len()).map(|number| format!("{number}.o")));
            seconds.push(self.measure_processor(self.python_of_build(prepared, build), build.compiler, &words)?);
        }
        Ok(seconds)
    }

    /// Builds the project by its own tools. PyTorch writes the variable with the compiler's name into a command as it is, so it may
    /// have options.
    fn run_script(&self, prepared: &Prepared, build: &Build, script: &BuildScript) -> Outcome<f64> {
        let mut compiler = build.compiler.to_owned();
        if build.request == Request::Coalesce {
            compiler += &format!(" {COALESCE}");
        }
        let mut command = self.python_of_build(prepared, build);
        command.env("PYTORCH_NVCC", compiler).env("PYTHONPATH", prepared.expand(script.modules));
        command.env("PYTORCH_ROCM_ARCH", build.requested_gpus(prepared.project).collect::<Vec<_>>().join(";"));
        let words: Vec<String> = script.arguments.iter().map(|argument| prepared.expand(argument)).collect();
        self.measure_processor(command, "python3", &words)
    }

    /// A command in the directory of a build, with the build's plan: Python, which measures.
    fn python_of_build(&self, prepared: &Prepared, build: &Build) -> Command {
        let directory = self.directory(prepared, build.name);
        let mut command = self.session.inside(&self.session.work.join(directory), "python3");
        if build.request == Request::Plan {
            command.env("HOTSWAP_RETARGET", prepared.project.plan());
        }
        command
    }

    /// Seconds of processors of a program.
    fn measure_processor(&self, mut command: Command, program: &str, words: &[String]) -> Outcome<f64> {
        let output = run::output(command.args(["-c", TIMED, program]).args(words))?;
        let line = output.lines().last().unwrap_or_default();
        line.parse().or_else(|_| fail(format!("`{program}` was not measured: {line}")))
    }

    fn judge(&self, prepared: &Prepared, result: &mut Comparison) -> Outcome {
        let [plain, through, ..] = BUILDS.each_ref().map(|build| self.directory(prepared, build.name));
        for (number, file) in prepared.outputs().into_iter().enumerate() {
            let is_same = read_built_file(&plain, self, &file)? == read_built_file(&through, self, &file)?;
            result
                .failures
                .extend((!is_same).then(|| format!("{file} is another file through HotSwap without a plan")));
            let unit = self.judge_code(prepared, &file, &mut result.failures)?;
            result.equal.add(&unit.equal);
            if let Some(timed) = result.units.get_mut(number) {
                *timed = ComparedUnit { seconds: timed.seconds, ..unit };
            }
        }
        if result.seconds[1] > result.seconds[0] * RATIO {
            result.failures.push(format!("without a plan, HotSwap takes more than {RATIO} of clang's time"));
        }
        Ok(())
    }

    /// Compares the code objects of a file: the plan's with those that clang made, and the coalesced ones.
    fn judge_code(&self, prepared: &Prepared, file: &str, failures: &mut Vec<String>) -> Outcome<ComparedUnit> {
        let project = prepared.project;
        let [plain, _, plan, both, coalesced] = BUILDS.each_ref().map(|build| self.directory(prepared, build.name));
        let mut unit = ComparedUnit::default();
        for (number, gpu) in project.gpus.iter().enumerate() {
            let clang = if number == 0 { &plain } else { &both };
            let difference = self.compare_code([clang, &plan], file, gpu)?;
            unit.differing.extend(difference.is_some().then_some(*gpu));
            unit.equal.count(difference.is_none());
            let may_differ = number > 0 && project.differs;
            failures.extend(difference.filter(|_| !may_differ));
            // Coalesced code must be clang's in each project: GPUs whose code may differ are compiled.
            if project.is_coalesced() {
                let difference = self.compare_code([&both, &coalesced], file, gpu)?;
                unit.equal.count(difference.is_none());
                failures.extend(difference);
            }
        }
        if project.is_coalesced() {
            unit.derived = self.derived_gpus(&coalesced, file)?;
        }
        Ok(unit)
    }

    /// Adds code for the plan's GPU to the libraries that lack it, as HS0445 advises who starts the program there.
    fn retarget_libraries(&self, prepared: &Prepared, program: &TestProgram) -> Outcome {
        for library in program.retargeted {
            let library = prepared.expand(library);
            let mut retarget = self.session.inside(&self.session.work, "hotswap");
            let targets = prepared.project.gpus[1..].join(",");
            retarget.args(["retarget", "--allow-unchanged", "--to", &targets, &library, "-o", &library]);
            run::output(&mut retarget)?;
        }
        Ok(())
    }

    /// Runs the program of two builds: clang's on the source, HotSwap's on source and target.
    fn run_program(&self, prepared: &Prepared, program: &TestProgram, result: &mut Comparison) -> Outcome {
        self.retarget_libraries(prepared, program)?;
        let mut expected = None;
        for ProgramRun { build, gpus } in program.planned_runs(prepared.project.gpus[0], prepared.project.run_targets())
        {
            let directory = self.session.work.join(self.directory(prepared, build.name));
            let libraries: Vec<String> = program.libraries.iter().map(|path| prepared.expand(path)).collect();
            if !prepared.project.relocatable {
                let mut link = self.session.inside(&directory, CLANG);
                let object = format!("{}.o", program.unit);
                run::output(link.args(["--hip-link", "-o", PROGRAM, &object]).args(&libraries))?;
            }
            let path: Vec<&str> = libraries.iter().filter_map(|path| Some(path.rsplit_once('/')?.0)).collect();
            let mut command = self.session.inside(&directory, "hotswap");
            command.args(["run", "--gpu", &gpus, "--", &format!("./{PROGRAM}")]).args(program.arguments);
            let output = run::output(command.env("LD_LIBRARY_PATH", path.join(":")));
            let place = format!("the program of unit {} on {gpus} ({})", program.unit, build.name);
            let output = match output {
                Ok(output) => without_times(&output),
                Err(failure) => {
                    result.failures.push(format!("{place}: {failure}"));
                    continue;
                }
            };
            result.runs += 1;
            let first = expected.get_or_insert_with(|| output.clone());
            if *first != output || output.trim().is_empty() {
                result.failures.push(format!("{place} prints something else"));
            }
        }
        Ok(())
    }
}

fn join_build(build: ScopedJoinHandle<Outcome<Measured>>) -> Outcome<Measured> {
    build.join().unwrap_or_else(|_| fail("the thread of a build ended early"))
}

fn read_built_file(directory: &str, bench: &ProjectBench, file: &str) -> Result<Vec<u8>, Failure> {
    fs::read(bench.work.join(directory).join(file)).during("read", &bench.work)
}

/// A run of a program: the build that it is of, and the emulated GPUs.
struct ProgramRun {
    build: &'static Build,
    gpus: String,
}

impl TestProgram {
    /// The builds that are run, and the emulated GPUs: with two of them, HotSwap's program runs on both kinds at once.
    fn planned_runs(&self, source: &'static str, targets: &[&'static str]) -> Vec<ProgramRun> {
        let gpus = |first: &'static str, last| {
            let mut all = vec![first; self.gpus];
            all[self.gpus - 1] = last;
            all.join(",")
        };
        let [plain, _, plan, ..] = &BUILDS;
        let target_of_both = if self.gpus > 1 { targets[0] } else { source };
        let mut runs = vec![
            ProgramRun { build: plain, gpus: gpus(source, source) },
            ProgramRun { build: plan, gpus: gpus(source, target_of_both) },
        ];
        runs.extend(targets.iter().map(|target| ProgramRun { build: plan, gpus: gpus(target, target) }));
        runs
    }
}

/// Output without the milliseconds that GoogleTest prints, and without the line in which hipCUB's examples name the GPU.
fn without_times(output: &str) -> String {
    let lines = output.lines().filter(|line| !line.starts_with("Using device "));
    lines.map(strip_line_time).collect::<Vec<_>>().join("\n")
}

fn strip_line_time(line: &str) -> String {
    match line.rsplit_once(" (") {
        Some((text, time)) if time.contains(" ms") => text.to_owned(),
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::projects::table::PROJECTS;

    #[test]
    fn only_times_are_dropped() {
        assert_eq!(without_times("[ OK ] a (3 ms)\nsum (of 4): 5\n"), "[ OK ] a\nsum (of 4): 5");
        assert_eq!(without_times("Using device 0: gfx1030\nPASS\n"), "PASS");
        assert_eq!(without_times("[====] 2 tests ran. (17 ms total)"), "[====] 2 tests ran.");
    }

    #[test]
    fn two_gpus_are_of_both_kinds_once() {
        let runs = |gpus| {
            let program = TestProgram { unit: 0, libraries: &[], arguments: &[], retargeted: &[], gpus };
            program.planned_runs("gfx1030", &["gfx1031"]).into_iter().map(|run| run.gpus).collect::<Vec<_>>()
        };
        assert_eq!(runs(1), ["gfx1030", "gfx1030", "gfx1031"]);
        assert_eq!(runs(2), ["gfx1030,gfx1030", "gfx1030,gfx1031", "gfx1031,gfx1031"]);
    }

    #[test]
    fn code_that_differs_from_that_of_clang_is_run_on_each_target() {
        let targets =
            ["RCCL", "hipRAND", "composable_kernel attention"].map(|name| find_project(name).run_targets().to_vec());
        assert_eq!(targets, [vec!["gfx1101"], vec!["gfx1031"], vec!["gfx1101", "gfx1102", "gfx1103"]]);
    }

    fn find_project(name: &str) -> &'static Project {
        PROJECTS.iter().find(|project| project.name == name).unwrap()
    }

    #[test]
    fn siblings_are_coalesced_where_the_plan_has_more_than_one_target() {
        let [hiprand, magma] = ["hipRAND", "MAGMA"].map(find_project);
        assert_eq!(hiprand.plan(), "gfx1030=>gfx1031,gfx1032");
        assert_eq!(magma.plan(), "gfx1030=>gfx1031");
        assert_eq!(
            [hiprand, magma].map(|project| BUILDS.iter().filter(|build| build.concerns(project)).count()),
            [5, 4]
        );
    }

    #[test]
    fn each_path_has_its_name() {
        let paths = [("{S}".to_owned(), "/s".to_owned()), ("{0}".to_owned(), "/p".to_owned())];
        assert_eq!(expand("-I{S}/include{0}", &paths), "-I/s/include/p");
    }
}
