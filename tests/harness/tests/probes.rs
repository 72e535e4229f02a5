//! The questions of CMake beside a compiler: archiver, strip, nm, scanner of modules, IPO, threads, HIP's package. With `hotswap-clang++`
//! as the C++ compiler the answers are those of the real clang, by each of its names and with each CMake, and a project
//! with C++20 modules builds and runs where it does with clang.

use hotswap_tests::{Bench, Call, Clang, Ran, Scratch, in_turn};
use hotswap_userland::CMAKE_DIRECTORY;

/// Prints what CMake found: the makers of the tools, not their paths.
const PROBES: &str = r#"cmake_minimum_required(VERSION 3.25)
project(probes LANGUAGES CXX)
foreach(tool IN ITEMS AR RANLIB NM STRIP OBJCOPY OBJDUMP READELF ADDR2LINE CXX_COMPILER_AR CXX_COMPILER_RANLIB)
  set(maker none)
  if(CMAKE_${tool})
    execute_process(COMMAND "${CMAKE_${tool}}" --version OUTPUT_VARIABLE text ERROR_VARIABLE text)
    string(REGEX MATCH "LLVM version [0-9]+|GNU [a-z0-9]+|Ubuntu LLVM|Debian LLVM" maker "${text}")
  endif()
  message(STATUS "probe: ${tool} ${maker}")
endforeach()
set(scanner "${CMAKE_CXX_COMPILER_CLANG_SCAN_DEPS}")
if(scanner)
  execute_process(COMMAND "${scanner}" --version OUTPUT_VARIABLE scanner ERROR_VARIABLE scanner)
  string(REGEX MATCH "LLVM version [0-9]+" scanner "${scanner}")
endif()
message(STATUS "probe: scanner ${scanner}")
include(CheckIPOSupported)
check_ipo_supported(RESULT ipo OUTPUT text LANGUAGES CXX)
message(STATUS "probe: IPO ${ipo}")
find_package(Threads)
message(STATUS "probe: Threads ${Threads_FOUND}")
find_package(hip QUIET)
message(STATUS "probe: hip ${hip_FOUND}")
"#;

const MODULES: &str = r#"cmake_minimum_required(VERSION 3.28)
project(modules LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
add_executable(app main.cpp)
target_sources(app PRIVATE FILE_SET CXX_MODULES FILES answer.cppm)
add_library(other STATIC other.cpp)
target_link_libraries(app PRIVATE other)
"#;
const MODULE: &str = "module;\n#include <cstddef>\nexport module answer;\nexport std::size_t answer() { return 40; }\n";
const MAIN: &str = "import answer;\nint other();\nint main() { return answer() + other() == 42 ? 0 : 1; }\n";

/// Names of the compiler below the installation.
const NAMES: [&str; 2] = ["bin/hotswap-clang++", "lib/hotswap/clang/clang++"];

struct Project<'b> {
    bench: &'b Bench,
    clang: &'b Clang,
    cmake: &'b str,
    scratch: Scratch,
}

impl<'b> Project<'b> {
    fn new(bench: &'b Bench, clang: &'b Clang, cmake: &'b str) -> Self {
        let scratch = bench.scratch();
        scratch.write("probes/CMakeLists.txt", PROBES);
        scratch.write("modules/CMakeLists.txt", MODULES);
        scratch.write("modules/answer.cppm", MODULE);
        scratch.write("modules/main.cpp", MAIN);
        scratch.write("modules/other.cpp", "int other() { return 2; }\n");
        Self { bench, clang, cmake, scratch }
    }

    fn run(&self, words: &[&str]) -> Ran {
        // By its place and not by a name on the search path: the real tools are not on it either.
        let real = format!("/usr/lib/llvm-{}/bin/clang++", self.clang.version);
        Call::new(self.bench, &self.scratch.inside, words).env("HOTSWAP_CLANG", real).run()
    }

    fn configure(&self, project: &str, tree: &str, compiler: &str) -> Ran {
        self.run(&[
            self.cmake,
            "-GNinja",
            "-S",
            project,
            "-B",
            tree,
            &format!("-DCMAKE_CXX_COMPILER={compiler}"),
            // Without tools of other compilers.
            "-DCMAKE_PREFIX_PATH=/usr/lib/x86_64-linux-gnu",
        ])
    }

    /// The lines of the probes.
    fn answers(&self, compiler: &str) -> Result<Vec<String>, String> {
        let ran = self.configure("probes", &format!("probes of {}", compiler.replace('/', "-")), compiler);
        let lines: Vec<String> =
            ran.stdout.lines().filter_map(|line| line.strip_prefix("-- probe: ")).map(str::to_owned).collect();
        if ran.ok() && lines.len() == 14 { Ok(lines) } else { Err(format!("{compiler}: {}", ran.brief())) }
    }

    /// Builds a project with modules and runs its program; the first step that fails.
    fn modules(&self, compiler: &str) -> Result<(), String> {
        let tree = format!("modules of {}", compiler.replace('/', "-"));
        let app = format!("./{tree}/app");
        for ran in
            [self.configure("modules", &tree, compiler), self.run(&[self.cmake, "--build", &tree]), self.run(&[&app])]
        {
            if !ran.ok() {
                return Err(format!("{compiler}: {}{}", ran.brief(), ran.stdout));
            }
        }
        Ok(())
    }

    fn faults(&self) -> Vec<String> {
        let real = format!("/usr/lib/llvm-{}/bin/clang++", self.clang.version);
        let mut faults = Vec::new();
        let expected = self.answers(&real);
        let (answers, scans) = match &expected {
            Ok(answers) => (answers, self.modules(&real).is_ok()),
            Err(fault) => return vec![fault.clone()],
        };
        for name in NAMES {
            let compiler = self.bench.installed(name);
            match self.answers(&compiler) {
                Ok(found) if found == *answers => {}
                Ok(found) => faults.push(format!("{name}: {found:?}, and with clang {answers:?}")),
                Err(fault) => faults.push(fault),
            }
            if scans {
                faults.extend(self.modules(&compiler).err());
            }
        }
        if !scans && !self.cmake.contains("3.25") {
            faults.push("clang itself does not build the modules".to_owned());
        }
        faults
    }
}

/// The installed CMakes, by their programs.
fn cmakes(bench: &Bench) -> Vec<String> {
    let entries = std::fs::read_dir(bench.userland.outside(CMAKE_DIRECTORY)).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut all: Vec<String> = names
        .filter(|name| name.starts_with("cmake-"))
        .map(|name| format!("{CMAKE_DIRECTORY}/{name}/bin/cmake"))
        .collect();
    all.sort();
    all.push("cmake".to_owned());
    all
}

#[test]
fn build_systems_find_the_tools_of_the_real_clang() {
    let test = "build_systems_find_the_tools_of_the_real_clang";
    let Some(bench) = Bench::ready(test) else { return };
    let cmakes = cmakes(&bench);
    let mut wrong = Vec::new();
    for (clang, cmake) in in_turn(test, &cmakes, &bench.clangs, |_| false) {
        let faults = Project::new(&bench, clang, cmake).faults();
        wrong.extend(faults.into_iter().map(|fault| format!("{cmake}, clang {}: {fault}", clang.version)));
    }
    assert_eq!(wrong, [""; 0], "{}", wrong.join("\n"));
}
