//! The same bytes for everyone: objects and programs that two users build, with another home, directory for temporary files, working
//! directory, locale, umask, time zone, number of cores and of commands at once, with a cold cache, a warm one and none.
//!
//! The plan comes by command line, environment and configuration; programs are built in one command and in several.
//!
//! Clang hashes the arguments of a command into the number of each unit (`__hip_cuid_…`), so a path of HotSwap's among them would
//! be in the program. The source and the output have one path for all, because clang hashes these, too.

use hotswap_tests::mode::write_sources;
use hotswap_tests::{Bench, Call, Clang, Scratch, in_turn, parallel, say, skip, slice};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::thread;

const KERNEL: &str = "#include \"hip.h\"\nstatic __attribute__((device)) int counter;\n\
    __attribute__((global)) void kernel(int *p) { p[0] = ++counter; }\n\
    extern \"C\" const void *address() { return reinterpret_cast<const void *>(kernel); }\n";
const MAIN: &str = "#include \"hip.h\"\n__attribute__((global)) void other(int *p) { p[0] = 7; }\n\
    extern \"C\" const void *address();\nint main() { return address() == nullptr; }\n";
const OTHER_USER: u32 = 61234;

/// One user's surroundings.
struct Surroundings {
    name: &'static str,
    is_root: bool,
    /// The umask and the working directory.
    shell: &'static str,
    /// Whether all cores are used, and the compiles of a build run at once.
    is_parallel: bool,
    variables: &'static [(&'static str, &'static str)],
}

const SURROUNDINGS: [Surroundings; 3] = [
    Surroundings {
        name: "one",
        is_root: true,
        shell: "umask 022; cd /",
        is_parallel: false,
        variables: &[("TZ", "UTC"), ("LC_ALL", "C")],
    },
    Surroundings {
        name: "other-with-a-longer-name",
        is_root: false,
        shell: "umask 077; cd /tmp",
        is_parallel: true,
        variables: &[("TZ", "Asia/Tokyo"), ("LC_ALL", "C.UTF-8"), ("LIBRARY_PATH", "/usr/lib"), ("MAKEFLAGS", "-j8")],
    },
    // A colon separates the directories in which linkers search.
    Surroundings {
        name: "a:colon",
        is_root: false,
        shell: "umask 022; cd /",
        is_parallel: true,
        variables: &[("TZ", "UTC"), ("LC_ALL", "C")],
    },
];

/// The state of the cache before a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CacheState {
    Cold,
    Warm,
    /// It cannot be used.
    Absent,
}

/// A form in which a command gets its plan.
struct PlanForm {
    name: &'static str,
    words: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
    /// The content of the user's configuration file.
    configuration: &'static str,
}

impl PlanForm {
    const fn of_words(name: &'static str, words: &'static [&'static str]) -> Self {
        Self { name, words, variables: &[], configuration: "" }
    }
}

const ONE: &[&str] = &["--offload-arch=gfx1030"];
const SIBLINGS: &[&str] = &["--offload-arch=gfx1030,gfx1031"];
const PAIR: &str = "gfx1030=>gfx1031";

/// Its device code calls a runtime whose archive is in the cache.
const COUNTERS: &str = "counters";

const FORMS: [PlanForm; 10] = [
    PlanForm::of_words("words", &["--offload-arch=gfx1030", "-Xoffload-linker", "--hotswap-retarget=gfx1030=>gfx1031"]),
    PlanForm {
        name: COUNTERS,
        words: &[
            "--offload-arch=gfx1030",
            "-Xoffload-linker",
            "--hotswap-retarget=gfx1030=>gfx1031",
            "-fprofile-generate",
        ],
        variables: &[],
        configuration: "",
    },
    PlanForm {
        name: "named system",
        words: &["--target=x86_64-pc-linux-gnu", "--offload-arch=gfx1030"],
        variables: &[("HOTSWAP_RETARGET", PAIR)],
        configuration: "",
    },
    PlanForm { name: "environment", words: ONE, variables: &[("HOTSWAP_RETARGET", PAIR)], configuration: "" },
    PlanForm { name: "configuration", words: ONE, variables: &[], configuration: "retarget = \"gfx1030=>gfx1031\"\n" },
    PlanForm::of_words("coalesce", &["-fhotswap-coalesce", "--offload-arch=gfx1030,gfx1031"]),
    PlanForm {
        name: "coalesce by environment",
        words: SIBLINGS,
        variables: &[("HOTSWAP_COALESCE", "1")],
        configuration: "",
    },
    PlanForm {
        name: "coalesce by configuration",
        words: SIBLINGS,
        variables: &[],
        configuration: "coalesce = \"1\"\n",
    },
    PlanForm::of_words(
        "relocatable",
        &["-fgpu-rdc", "--offload-arch=gfx1030", "-Xoffload-linker", "--hotswap-retarget=gfx1030=>gfx1031"],
    ),
    PlanForm {
        name: "relocatable by environment",
        words: &["-fgpu-rdc", "--offload-arch=gfx1030"],
        variables: &[("HOTSWAP_RETARGET", PAIR)],
        configuration: "",
    },
];

const DRIVERS: [&str; 2] = ["--no-offload-new-driver", "--offload-new-driver"];

/// A program with its form of the plan, built in one way.
struct BytesCase {
    form: &'static PlanForm,
    /// Whether the units are compiled and linked by one command.
    is_one_command: bool,
    driver: &'static str,
}

impl BytesCase {
    fn name(&self, clang: &Clang) -> String {
        let how = if self.is_one_command { "one command" } else { "several commands" };
        format!("clang {} {} {}, {how}", clang.version, self.driver, self.form.name)
    }
}

/// Every form in both ways of building; by default each with one of the drivers.
fn cases() -> Vec<BytesCase> {
    let mut cases = Vec::new();
    for form in &FORMS {
        // Of several sources in one command each needs its own number, so that HotSwap fixes none.
        let ways = [true, false].into_iter().filter(|is_one_command| form.name != COUNTERS || !is_one_command);
        for is_one_command in ways {
            cases.extend(DRIVERS.map(|driver| BytesCase { form, is_one_command, driver }));
        }
    }
    slice("same_bytes: drivers", cases, |number, _| (number / 4 + number / 2 + number).is_multiple_of(2))
}

/// As `/tmp`: only the owner of a file removes it.
fn open_to_all(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o1777)).unwrap();
}

/// One of the processor's numbers on which this process may run.
fn first_core() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    list.trim().split([',', '-']).next().unwrap().to_owned()
}

/// The directory of a case, and the commands in it.
struct BytesBench<'b> {
    bench: &'b Bench,
    clang: &'b Clang,
    case: &'b BytesCase,
    scratch: Scratch,
    are_two_users: bool,
}

impl<'b> BytesBench<'b> {
    fn prepared(bench: &'b Bench, clang: &'b Clang, case: &'b BytesCase, are_two_users: bool) -> Self {
        let scratch = bench.scratch();
        write_sources(&scratch, false);
        scratch.write("kernel.hip", KERNEL);
        scratch.write("main.hip", MAIN);
        for own in &SURROUNDINGS {
            let configuration = format!("{}/home/.config/hotswap/config.toml", own.name);
            scratch.write(&configuration, case.form.configuration);
            scratch.write(&format!("{}/tmp/x", own.name), "");
            for directory in ["home", "tmp", ""] {
                open_to_all(&scratch.outside(&format!("{}/{directory}", own.name)));
            }
        }
        fs::create_dir(scratch.outside("out")).unwrap();
        open_to_all(&scratch.outside("out"));
        open_to_all(&scratch.outside(""));
        Self { bench, clang, case, scratch, are_two_users }
    }

    /// The words of every command.
    fn common_words(&self) -> Vec<String> {
        let mut words = vec![self.bench.installed("bin/hotswap-clang++")];
        words.extend(self.clang.light());
        let include = format!("-I{}", self.scratch.inside.display());
        words.extend(self.case.form.words.iter().map(|word| (*word).to_owned()));
        words.extend(["-O1", "-w", self.case.driver, &include].map(str::to_owned));
        words
    }

    fn command(&self, rest: &[&str], link: &[String]) -> Vec<String> {
        let is_path = |word: &str| word.ends_with(".hip") || word.starts_with("out/");
        let rest = rest.iter().map(|word| if is_path(word) { self.scratch.inside(word) } else { (*word).to_owned() });
        self.common_words().into_iter().chain(rest).chain(link.iter().cloned()).collect()
    }

    /// Builds, and returns the content of each file of the output.
    fn build(&self, own: &Surroundings, cache: CacheState) -> BTreeMap<String, Vec<u8>> {
        if cache == CacheState::Cold {
            let _ = fs::remove_dir_all(self.scratch.outside(&format!("{}/home/.cache", own.name)));
        }
        let run = |rest: &[&str], link: &[String]| {
            let ran = self.call(&self.command(rest, link), own, cache).run();
            assert!(ran.ok(), "{} {} {cache:?}: {}", self.case.name(self.clang), own.name, ran.brief());
        };
        let link = &self.clang.link;
        if self.case.is_one_command {
            run(&["-x", "hip", "kernel.hip", "main.hip", "-o", "out/program", "-x", "none"], link);
        } else {
            let compiles = [["kernel.hip", "out/kernel.o"], ["main.hip", "out/main.o"]];
            let compile = |[source, object]: [&str; 2]| run(&["-x", "hip", "-c", source, "-o", object], &[]);
            if own.is_parallel {
                thread::scope(|scope| compiles.map(|one| scope.spawn(move || compile(one))).map(drop));
            } else {
                compiles.into_iter().for_each(compile);
            }
            run(&["--hip-link", "out/kernel.o", "out/main.o", "-o", "out/program"], link);
        }
        self.take_output(own)
    }

    fn call(&self, words: &[String], own: &Surroundings, cache: CacheState) -> Call<'_> {
        // The directories are those of the home, whatever the environment of the tests says.
        let names = if cache == CacheState::Absent { "XDG_CONFIG_HOME" } else { "XDG_CONFIG_HOME XDG_CACHE_HOME" };
        let script = format!("unset {names}; {}; exec \"$@\"", own.shell);
        let (user, core) = (OTHER_USER.to_string(), first_core());
        let mut outer = Vec::new();
        if !own.is_root && self.are_two_users {
            outer.extend(["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"]);
        }
        if !own.is_parallel {
            outer.extend(["taskset", "-c", &core]);
        }
        outer.extend(["sh", "-c", script.as_str(), "sh"]);
        let inside = |part: &str| self.scratch.inside(&format!("{}/{part}", own.name));
        let call = Call::new(self.bench, self.scratch.inside.clone(), words).under(&outer);
        let variables = own.variables.iter().chain(self.case.form.variables);
        let call = variables.fold(call, |call, (name, value)| call.env(name, *value));
        let call = call.env("HOTSWAP_CLANG", self.clang.program.clone());
        let call = call.env("HOME", inside("home")).env("TMPDIR", inside("tmp"));
        if cache == CacheState::Absent { call.env("XDG_CACHE_HOME", "/dev/null/cache") } else { call }
    }

    /// The files of the output, which belong to the user that built them; removes them.
    fn take_output(&self, own: &Surroundings) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        for name in self.scratch.names("out") {
            let path = self.scratch.outside(&format!("out/{name}"));
            if self.are_two_users {
                let user = if own.is_root { 0 } else { OTHER_USER };
                assert_eq!(fs::metadata(&path).unwrap().uid(), user, "{}: {name}", own.name);
            }
            files.insert(name, fs::read(&path).unwrap());
            fs::remove_file(path).unwrap();
        }
        files
    }

    /// The number of builds, which have all given the same files.
    fn compare(&self) -> usize {
        let name = self.case.name(self.clang);
        let mut builds: BTreeMap<BTreeMap<String, Vec<u8>>, Vec<String>> = BTreeMap::new();
        let mut count = 0;
        for own in &SURROUNDINGS {
            for cache in [CacheState::Cold, CacheState::Warm, CacheState::Absent] {
                let files = self.build(own, cache);
                let program = String::from_utf8_lossy(&files["program"]);
                assert!(program.contains("amdgcn-amd-amdhsa--gfx1031"), "{name}");
                assert_eq!(files.len(), if self.case.is_one_command { 1 } else { 3 }, "{name}");
                builds.entry(files).or_default().push(format!("{} {cache:?}", own.name));
                count += 1;
            }
            // Another home than the other user's, in use. Coalescing in one command needs nothing of the cache.
            let has_cache = self.scratch.has(&format!("{}/home/.cache/hotswap", own.name));
            assert!(has_cache || self.case.form.name.starts_with("coalesce"), "{name}: {}", own.name);
        }
        let groups: Vec<_> = builds.values().collect();
        assert_eq!(groups.len(), 1, "{name}: {groups:?}");
        count
    }
}

#[test]
fn two_users_get_the_same_program() {
    let Some(bench) = Bench::ready("same_bytes") else { return };
    let are_two_users = hotswap_userland::can_be_two_users();
    if !are_two_users {
        skip("same_bytes", "only root can be two users: all else is varied");
    }
    let cases = cases();
    let turns = in_turn("same_bytes: compilers", &cases, &bench.clangs, |_| false);
    let counts = parallel(&turns, |(clang, case)| BytesBench::prepared(&bench, clang, case, are_two_users).compare());
    let users = if are_two_users { "two users" } else { "one user" };
    let builds: usize = counts.iter().sum();
    say(&format!("same_bytes: {} cases, {builds} builds of {users}, each case the same bytes", counts.len()));
}
