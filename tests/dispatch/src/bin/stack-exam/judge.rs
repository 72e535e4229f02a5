//! Runs a case: the packages are copied, served and compared.

use crate::cases::{Case, Planted};
use hotswap_dispatch::{Dispatch, Recorded, Recorder, Setup, difference};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One row of the table.
pub(crate) struct Verdict {
    pub(crate) cells: Vec<String>,
    pub(crate) is_right: bool,
}

/// Copies what has code for one GPU, and what all GPUs share: a tenth of a package.
const COPY: &str = r#"mkdir -p "$1" && cd "$0" && find . \( -path '*/library/*' -o -path '*/miopen/db/*' \) \
    ! -name "*$2*" ! -name '*fallback.dat' ! -name 'hipblaslt*' ! -name 'Tensile*Mapping.dat' -prune -o ! -type d -print0 |
    tar -cf - --null -T - | tar -xf - -C "$1""#;

/// A case that is being run.
pub(crate) struct Bench<'b> {
    recorder: &'b Recorder,
    hotswap: String,
    case: &'b Case,
}

fn stage(recorder: &Recorder, packages: &[PathBuf], names: &[&str], source: &str) {
    for name in names {
        let is_its = |path: &&PathBuf| {
            path.components().any(|part| part.as_os_str().to_string_lossy().starts_with(&format!("{name}-")))
        };
        let package = packages.iter().find(is_its).unwrap_or_else(|| panic!("no directory of {name} is named"));
        let mut copy = Command::new("bash");
        copy.args(["-o", "pipefail", "-c", COPY]).arg(package).arg(recorder.work.path("stock")).arg(source);
        assert!(copy.status().is_ok_and(|status| status.success()), "{} cannot be copied", package.display());
    }
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

/// The served directories of libraries, without those that are no part of ROCm: they are beside the stand-in.
const ARRANGE: &str = "mv stock/lib/*/libboost* stock/lib/*/libroctx64* hsa/ 2> /dev/null; ls stock/lib > triplet";

impl<'b> Bench<'b> {
    pub(crate) fn new(recorder: &'b Recorder, packages: &[PathBuf], case: &'b Case) -> Self {
        stage(recorder, packages, case.packages, case.source);
        recorder.work.run(ARRANGE);
        let hotswap = recorder.hotswap("stack-exam").expect("`hotswap` is built");
        let bench = Self { recorder, hotswap, case };
        bench.build();
        bench
    }

    fn build(&self) {
        let program = self.case.program;
        self.recorder.work.write(program.name, program.text.as_bytes());
        let compiler = if program.name.ends_with(".c") { "gcc" } else { "g++ -std=c++17" };
        self.recorder.work.run(&format!(
            "{compiler} -O1 -w -D__HIP_PLATFORM_AMD__ -Istock/include {} -o program $(echo -L stock/lib/*-linux-gnu) \
             -lamdhip64 {} -Wl,-rpath-link,hsa:$(echo stock/lib/*-linux-gnu),--allow-shlib-undefined",
            program.name, program.links
        ));
    }

    fn run(&self, devices: &str, script: &str) -> Recorded {
        let home = "rm -rf home; export HOME=$PWD/home; mkdir home";
        let command = format!("bash -c '{home}; {script} exec ./program'");
        self.recorder.run(&Setup { devices, ..Setup::default() }, &command)
    }

    /// The libraries as they are installed.
    fn run_stock(&self, devices: &str) -> Recorded {
        self.run(
            devices,
            "lib=$(echo $PWD/stock/lib/*-linux-gnu); export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$lib; \
             export MIOPEN_SYSTEM_DB_PATH=$PWD/stock/share/miopen/db;",
        )
    }

    /// The libraries of the served tree, in its environment.
    fn run_served(&self, devices: &str, has_names: bool) -> Recorded {
        let names = if has_names { "export LD_PRELOAD=$PWD/libhotswap-names.so;" } else { "" };
        self.run(devices, &format!("unset LD_PRELOAD; . served/env.sh; unset LD_PRELOAD; {names}"))
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
        let Case { source, targets, words, is_own, has_database, .. } = self.case;
        if *has_database {
            self.run_stock(source);
            self.keep_database();
        }
        let reference = self.run_stock(source);
        let names = if *is_own { "--names own" } else { "" };
        let serve = format!(
            "{} serve {} --from {source} --root $PWD/stock --dest $PWD/served {names} {words}",
            self.hotswap,
            targets.join(",")
        );
        let served = self.recorder.work.shell(&serve);
        if !served.status.success() {
            let said = String::from_utf8_lossy(&served.stderr).into_owned();
            return vec![self.verdict(&targets.join(", "), &reference, Err(said))];
        }
        if *is_own {
            return targets.iter().map(|target| self.own(target, &reference)).collect();
        }
        let mut verdicts = vec![self.all(&reference)];
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
    let key = |dispatch: &Dispatch| (dispatch.kernel.clone(), dispatch.grid, dispatch.group);
    let mut expected: Vec<_> = reference.dispatches.iter().map(key).collect();
    let common = ran.dispatches.iter().filter(|dispatch| {
        let place = expected.iter().position(|other| *other == key(dispatch));
        place.map(|place| expected.swap_remove(place)).is_some()
    });
    format!("{} of {} as on the source", common.count(), ran.dispatches.len())
}

/// A request that must be refused; its message, and whether it was.
pub(crate) fn plant(recorder: &Recorder, packages: &[PathBuf], planted: &Planted) -> (String, bool) {
    stage(recorder, packages, planted.packages, "gfx1030");
    recorder.work.run(ARRANGE);
    if !planted.removed.is_empty() {
        recorder.work.run(&format!("rm stock/lib/*/{}", planted.removed));
    }
    let hotswap = recorder.hotswap("stack-exam").expect("`hotswap` is built");
    let output =
        recorder.work.shell(&format!("{hotswap} serve {} --root $PWD/stock --dest $PWD/served", planted.words));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_right = output.status.code() == Some(13) && said.contains(planted.code) && !served(recorder);
    let place = recorder.work.directory().display().to_string();
    (first_line(&said).replace(&place, ""), is_right)
}

fn served(recorder: &Recorder) -> bool {
    Path::exists(&recorder.work.path("served"))
}
