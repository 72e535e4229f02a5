//! Runs a case: the packages are copied, served and compared.

use crate::cases::{Case, Planted, ServedAs};
use hotswap_dispatch::{Dispatch, Recorded, Recorder, Setup, difference};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One row of the table.
pub(crate) struct Verdict {
    pub(crate) cells: Vec<String>,
    pub(crate) is_right: bool,
}

/// Copies what has code for one GPU or for another one, and what all GPUs share: a tenth of a package.
const COPY: &str = r#"mkdir -p "$1" && cd "$0" && find . \( -path '*/library/*' -o -path '*/miopen/db/*' \) \
    ! -name "*$2*" ! -name "*$3*" ! -name '*fallback.dat' ! -name 'hipblaslt*' ! -name 'Tensile*Mapping.dat' -prune -o ! -type d -print0 |
    tar -cf - --null -T - | tar -xf - -C "$1""#;

/// A case that is being run.
pub(crate) struct CaseBench<'b> {
    recorder: &'b Recorder,
    hotswap: String,
    /// Packages as files.
    files: Vec<PathBuf>,
    case: &'b Case,
}

fn stage(recorder: &Recorder, packages: &[PathBuf], names: &[&str], gpus: [&str; 2]) {
    for name in names {
        let package = packages
            .iter()
            .find(|one| is_stage_directory(one, name))
            .unwrap_or_else(|| panic!("no directory of {name} is named"));
        let mut copy = Command::new("bash");
        copy.args(["-o", "pipefail", "-c", COPY]).arg(package).arg(recorder.work.path("stock")).args(gpus);
        assert!(copy.status().is_ok_and(|status| status.success()), "{} cannot be copied", package.display());
    }
}

fn is_stage_directory(path: &&PathBuf, name: &&str) -> bool {
    path.is_dir() && path.components().any(|part| part.as_os_str().to_string_lossy().starts_with(&format!("{name}-")))
}

/// MIOpen's databases of the user: closes their logs and copies them, or counts their rows.
const DATABASES: &str = r#"
import glob, os, shutil, sqlite3, sys
rows = 0
for path in glob.glob("home/.cache/miopen/*/*.ukdb"):
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode=DELETE").fetchall()
    rows += database.execute("SELECT count(*) FROM kern_db").fetchone()[0]
    database.close()
    if sys.argv[1] == "keep":
        assert rows > 0
        name = os.path.basename(path).replace(".ukdb", ".kdb")
        shutil.copy(path, "stock/share/miopen/db/" + name)
print(rows)
"#;

/// A library that CuPy and ONNX Runtime name and Debian does not have: functions that start and stop a profiler.
const PROFILER: &str =
    "echo 'int roctracer_start(void) { return 0; } int roctracer_stop(void) { return 0; }' > roctracer.c
    echo 'ROCTRACER_4.0 { global: *; };' > roctracer.map
    gcc -shared -fPIC -Wl,-soname,libroctracer64.so.4 -Wl,--version-script=roctracer.map roctracer.c \
        -o hsa/libroctracer64.so.4";

/// Installs a package in a directory of its own, and lets dpkg compare what is there with the package's hashes.
const INSTALL: &str = r#"mkdir -p root/var/lib/dpkg/info root/var/lib/dpkg/updates
    touch root/var/lib/dpkg/status root/var/lib/dpkg/available
    dpkg="dpkg --root=$PWD/root --force-depends --force-bad-path --log=/dev/null"
    $dpkg -i served/*.deb > /dev/null 2>&1 && test -z "$($dpkg --verify)" "#;

/// The served directories of libraries, without those that are not part of ROCm: they are beside the stand-in.
const ARRANGE: &str =
    "mkdir -p stock/lib; mv stock/lib/*/libboost* stock/lib/*/libroctx64* hsa/ 2> /dev/null; ls stock/lib > triplet";

impl<'b> CaseBench<'b> {
    pub(crate) fn new(recorder: &'b Recorder, packages: &[PathBuf], case: &'b Case) -> Self {
        let is_wheel = case.served.is_wheel();
        stage(recorder, packages, &case.packages[usize::from(is_wheel)..], [case.source, case.other]);
        recorder.work.run(ARRANGE);
        let hotswap = recorder.hotswap("stack-exam").expect("`hotswap` is built");
        let files = packages.iter().filter(|path| path.is_file()).cloned().collect();
        let bench = Self { recorder, hotswap, files, case };
        bench.build();
        if is_wheel {
            recorder.work.run(PROFILER);
        }
        if !case.wheels.is_empty() {
            let wheels: Vec<PathBuf> = case.wheels.iter().map(|name| bench.file(name)).collect();
            bench.install_wheels("stock-site", &wheels);
        }
        bench
    }

    /// The file of a package, by the beginning of its name.
    fn file(&self, name: &str) -> PathBuf {
        self.files
            .iter()
            .find(|one| has_file_name_prefix(one, name))
            .cloned()
            .unwrap_or_else(|| panic!("no file of {name} is named"))
    }

    /// Installs wheels for the userland's Python by the machine's pip, which checks their hashes.
    fn install_wheels(&self, directory: &str, wheels: &[PathBuf]) {
        let version = self.recorder.work.run("python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'");
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--only-binary=:all:", "--target"]);
        pip.arg(self.recorder.work.path(directory)).args([
            "--implementation",
            "cp",
            "--python-version",
            version.trim(),
        ]);
        for glibc in ["manylinux2014", "manylinux_2_27", "manylinux_2_28", "manylinux_2_34"] {
            pip.args(["--platform", &format!("{glibc}_x86_64")]);
        }
        let output = pip.args(wheels).output().expect("python3 starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn build(&self) {
        let program = self.case.program;
        self.recorder.work.write(program.name, program.text.as_bytes());
        if program.name.ends_with(".py") {
            return;
        }
        let compiler = if program.name.ends_with(".c") { "gcc" } else { "g++ -std=c++17" };
        self.recorder.work.run(&format!(
            "{compiler} -O1 -w -D__HIP_PLATFORM_AMD__ -Istock/include {} -o program $(echo -L stock/lib/*-linux-gnu) \
             -Wl,--as-needed -lamdhip64 {} -Wl,-rpath-link,hsa:$(echo stock/lib/*-linux-gnu),--allow-shlib-undefined",
            program.name, program.links
        ));
    }

    fn run(&self, devices: &str, script: &str) -> Recorded {
        let home = "rm -rf home; export HOME=$PWD/home; mkdir home";
        let name = self.case.program.name;
        let program = if name.ends_with(".py") { format!("python3 {name}") } else { "./program".to_owned() };
        let command = format!("bash -c '{home}; {script} exec {program}'");
        self.recorder.run(&Setup { devices, ..Setup::default() }, &command)
    }

    /// The libraries as they are installed.
    fn run_stock(&self, devices: &str) -> Recorded {
        self.run(
            devices,
            "lib=$(echo $PWD/stock/lib/*-linux-gnu); export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$lib; \
             export MIOPEN_SYSTEM_DB_PATH=$PWD/stock/share/miopen/db PYTHONPATH=$PWD/stock-site;",
        )
    }

    /// Makes what is served; the reason where that is refused.
    fn serve(&self) -> Result<(), String> {
        let Case { source, targets, words, is_own, served, .. } = self.case;
        let names = if *is_own { "--names own" } else { "" };
        let input = match served {
            ServedAs::NamesAlone => return Ok(()),
            ServedAs::Tree => "--root $PWD/stock".to_owned(),
            ServedAs::Debian => self.copied(&self.file(self.case.packages[0])),
            ServedAs::Wheel | ServedAs::WheelAndTree => self.copied(&self.file(self.case.wheels[0])),
        };
        let (hotswap, targets) = (&self.hotswap, targets.join(","));
        let mut command =
            format!("{hotswap} serve {targets} --from {source} {input} --dest $PWD/served {names} {words}");
        if *served == ServedAs::WheelAndTree {
            command += &format!(" && {hotswap} serve {targets} --from {source} --root $PWD/stock --dest $PWD/tree");
        }
        let output = self.recorder.work.shell(&command);
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        match served {
            ServedAs::Debian => drop(self.recorder.work.run(INSTALL)),
            ServedAs::Wheel | ServedAs::WheelAndTree => {
                let wheel = self.recorder.work.run("ls served/*.whl");
                let others = self.case.wheels[1..].iter().map(|name| self.file(name));
                let wheels: Vec<PathBuf> = others.chain([self.recorder.work.path(wheel.trim())]).collect();
                self.install_wheels("site", &wheels);
            }
            ServedAs::Tree | ServedAs::NamesAlone => {}
        }
        Ok(())
    }

    /// A package where the userland sees it.
    fn copied(&self, file: &Path) -> String {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        std::fs::copy(file, self.recorder.work.path(&name)).expect("scratch is writable");
        format!("./{name}")
    }

    /// The served libraries, in their environment.
    fn run_served(&self, devices: &str, has_names: bool) -> Recorded {
        let names = if has_names { "export LD_PRELOAD=$PWD/libhotswap-names.so;" } else { "" };
        let (path, stock) = ("export LD_LIBRARY_PATH=$LD_LIBRARY_PATH", "$(echo $PWD/stock/lib/*-linux-gnu)");
        let environment = match self.case.served {
            ServedAs::Tree => "unset LD_PRELOAD; . served/env.sh; unset LD_PRELOAD;".to_owned(),
            ServedAs::Debian => format!("{path}:$(echo $PWD/root/usr/lib/*-linux-gnu);"),
            ServedAs::Wheel => format!("{path}:{stock} PYTHONPATH=$PWD/site;"),
            ServedAs::WheelAndTree => {
                format!("unset LD_PRELOAD; . tree/env.sh; unset LD_PRELOAD; {path}:{stock} PYTHONPATH=$PWD/site;")
            }
            ServedAs::NamesAlone => {
                let pair = |target: &&str| format!("{target}={}", self.case.source);
                let pairs = self.case.targets.iter().map(pair).collect::<Vec<_>>().join(",");
                format!("export HOTSWAP_NAMES={pairs} PYTHONPATH=$PWD/stock-site;")
            }
        };
        self.run(devices, &format!("{environment} {names}"))
    }

    /// The database that MIOpen has made while it ran becomes the system's.
    fn keep_database(&self) {
        self.recorder.work.write("database.py", DATABASES.as_bytes());
        self.recorder.work.run("python3 database.py keep && ls stock/share/miopen/db/*.kdb");
    }

    /// The number of kernels that MIOpen has compiled in the last run, which it keeps for the user.
    fn compiled(&self) -> String {
        let count = self.recorder.work.run("python3 database.py count");
        format!("; {} kernels compiled", count.trim())
    }

    pub(crate) fn judge(&self) -> Vec<Verdict> {
        let Case { source, targets, is_own, has_database, .. } = self.case;
        if *has_database {
            self.run_stock(source);
            self.keep_database();
        }
        let reference = self.run_stock(source);
        if let Err(said) = self.serve() {
            return vec![self.verdict(&targets.join(", "), &reference, Err(said))];
        }
        if *is_own {
            return targets.iter().map(|target| self.own(target, &reference)).collect();
        }
        // CuPy keeps what it compiles by compute capability, which is 10.3 for all of these GPUs: with two of them in one
        // process it loads code for the other, with HotSwap and without.
        let mut verdicts = if self.case.served.is_wheel() { Vec::new() } else { vec![self.all(&reference)] };
        verdicts.extend(targets.first().map(|target| self.alone(target, &reference)));
        verdicts
    }

    /// The source and all targets in one process.
    fn all(&self, reference: &Recorded) -> Verdict {
        let devices: Vec<&str> = std::iter::once(self.case.source).chain(self.case.targets.iter().copied()).collect();
        let ran = self.run_served(&devices.join(","), true);
        let results = (0..devices.len()).map(|device| self.same(reference, &ran, &ran.on(device)));
        let result = results.into_iter().find(Result::is_err).unwrap_or(Ok("the same on each".to_owned()));
        self.verdict(&format!("{} in one process", devices.join(", ")), reference, result)
    }

    /// One target alone; and without the names, so that the comparison is seen to find a difference.
    fn alone(&self, target: &str, reference: &Recorded) -> Verdict {
        let ran = self.run_served(target, true);
        let mut result = self.same(reference, &ran, &ran.dispatches);
        if self.case.has_database {
            let compiled = self.compiled();
            return self.verdict(target, reference, result.map(|text| text + &compiled));
        }
        let wrong = self.run_served(target, false);
        let difference = without_names(reference, &wrong);
        result = result.map(|text| format!("{text}; without the names {difference}"));
        self.verdict(target, reference, result)
    }

    /// One target under its own name.
    fn own(&self, target: &str, reference: &Recorded) -> Verdict {
        let ran = self.run_served(target, false);
        let others = ran.dispatches.iter().filter(|dispatch| !dispatch.is_for_device()).count();
        let result = match (ran.code, others, ran.empty().len()) {
            (Some(0), 0, empty) if empty <= reference.empty().len() => Ok(compared(reference, &ran)),
            (code, others, empty) => {
                Err(format!("code {code:?}, {others} dispatches of other code, {empty} empty: {}", ran.error))
            }
        };
        self.verdict(target, reference, result)
    }

    /// Whether the dispatches on a device are those of the reference, from code for the device.
    fn same(&self, reference: &Recorded, ran: &Recorded, dispatches: &[Dispatch]) -> Result<String, String> {
        if ran.code != Some(0) {
            return Err(format!("code {:?}: {}", ran.code, ran.error));
        }
        if let Some(other) = dispatches.iter().find(|dispatch| !dispatch.is_for_device()) {
            return Err(format!("code of another GPU: {other:?}"));
        }
        let found = match self.case.is_ordered {
            true => difference(&reference.dispatches, dispatches),
            false => difference(&sorted(&reference.dispatches), &sorted(dispatches)),
        };
        found.map_or_else(|| Ok("the same".to_owned()), Err)
    }

    fn verdict(&self, gpus: &str, reference: &Recorded, result: Result<String, String>) -> Verdict {
        let kernels: BTreeSet<&str> = reference.dispatches.iter().map(|dispatch| dispatch.kernel.as_str()).collect();
        let is_right = result.is_ok() && reference.code == Some(0) && !kernels.is_empty();
        let text = match result {
            Ok(text) => text,
            Err(text) => format!("**{}**", first_line(&text)),
        };
        let cells = vec![
            self.case.libraries.to_owned(),
            self.case.source.to_owned(),
            gpus.to_owned(),
            if self.case.is_own { "its own name".to_owned() } else { self.case.source.to_owned() },
            reference.dispatches.len().to_string(),
            kernels.len().to_string(),
            if is_right {
                text
            } else {
                format!("{text} (reference: code {:?} {})", reference.code, first_line(&reference.error))
            },
        ];
        Verdict { cells, is_right }
    }
}

fn has_file_name_prefix(path: &&PathBuf, name: &str) -> bool {
    path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().replace('|', "/")
}

fn without_names(reference: &Recorded, wrong: &Recorded) -> String {
    let empty = wrong.empty().len();
    match wrong.code {
        None => "a signal ends the program".to_owned(),
        Some(0) if wrong.dispatches.is_empty() => "no kernel is started".to_owned(),
        Some(0) if empty > reference.empty().len() => {
            format!("{empty} of {} kernels are empty", wrong.dispatches.len())
        }
        Some(0) => compared(reference, wrong),
        Some(code) => format!("the program ends with {code}"),
    }
}

/// The dispatches in an order that does not depend on the run.
fn sorted(dispatches: &[Dispatch]) -> Vec<Dispatch> {
    let mut sorted = dispatches.to_vec();
    sorted.sort_by(|one, other| (&one.kernel, one.grid, one.group).cmp(&(&other.kernel, other.grid, other.group)));
    sorted
}

/// The number of dispatches that two runs have in common.
fn compared(reference: &Recorded, ran: &Recorded) -> String {
    if difference(&sorted(&reference.dispatches), &sorted(&ran.dispatches)).is_none() {
        return "the same".to_owned();
    }
    let mut expected: Vec<_> = reference.dispatches.iter().map(dispatch_shape_key).collect();
    let common = ran.dispatches.iter().filter(|dispatch| {
        let place = expected.iter().position(|other| *other == dispatch_shape_key(dispatch));
        place.map(|place| expected.swap_remove(place)).is_some()
    });
    format!("{} of {} as on the source", common.count(), ran.dispatches.len())
}

fn dispatch_shape_key(dispatch: &Dispatch) -> (String, [u32; 3], [u32; 3]) {
    (dispatch.kernel.clone(), dispatch.grid, dispatch.group)
}

/// A request that must be refused; its message, and whether it was.
pub(crate) fn plant(recorder: &Recorder, packages: &[PathBuf], planted: &Planted) -> (String, bool) {
    stage(recorder, packages, planted.packages, ["gfx1030"; 2]);
    recorder.work.run(ARRANGE);
    if !planted.removed.is_empty() {
        recorder.work.run(&format!("rm stock/lib/*/{}", planted.removed));
    }
    let hotswap = recorder.hotswap("stack-exam").expect("`hotswap` is built");
    let output =
        recorder.work.shell(&format!("{hotswap} serve {} --root $PWD/stock --dest $PWD/served", planted.words));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_right = output.status.code() == Some(13) && said.contains(planted.code) && !served(recorder);
    let place = recorder.work.run("pwd");
    (first_line(&said).replace(place.trim(), ""), is_right)
}

fn served(recorder: &Recorder) -> bool {
    Path::exists(&recorder.work.path("served"))
}
