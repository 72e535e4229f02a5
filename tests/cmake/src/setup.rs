//! Set-ups: the available versions of CMake, generators and clangs, and the assignment of units to them.

use crate::case::{Case, Mode, Needs};
use hotswap_tests::{Bench, Call, Clang};
use hotswap_userland::CMAKE_DIRECTORY;
use std::fmt;

/// A directory inside the userland with directories `cmake-VERSION`, in place of the usual one.
pub const ENV_CMAKES: &str = "HOTSWAP_TEST_CMAKES";

/// The oldest CMake that finds HIP in Debian's directories.
const OLDEST: (u32, u32) = (3, 28);

/// A CMake inside the userland.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CMake {
    /// The program, as seen from inside.
    pub program: String,
    /// Major and minor version.
    pub version: (u32, u32),
}

/// One combination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// The CMake.
    pub cmake: CMake,
    /// Name of the generator.
    pub generator: &'static str,
    /// The clang.
    pub clang: Clang,
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.cmake.version;
        write!(f, "CMake {major}.{minor}, {}, clang {}", self.generator, self.clang.version)
    }
}

/// The contents of the userland.
#[derive(Debug, Clone, Default)]
pub struct Offer {
    /// CMakes that are new enough, oldest first.
    pub cmakes: Vec<CMake>,
    /// A CMake that is not.
    pub old_cmake: Option<CMake>,
    /// Clangs, oldest first.
    pub clangs: Vec<Clang>,
}

const GENERATORS: [&str; 2] = ["Ninja", "Unix Makefiles"];

impl Offer {
    /// Finds them.
    pub fn of(bench: &Bench) -> Self {
        let directory = std::env::var(ENV_CMAKES).unwrap_or_else(|_| CMAKE_DIRECTORY.to_owned());
        let entries = std::fs::read_dir(bench.userland.outside(&directory)).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let others =
            names.filter(|name| name.starts_with("cmake-")).map(|name| format!("{directory}/{name}/bin/cmake"));
        let mut cmakes: Vec<CMake> =
            others.chain(["cmake".to_owned()]).filter_map(|program| cmake(bench, program)).collect();
        cmakes.sort_by_key(|cmake| cmake.version);
        let (new, old): (Vec<_>, Vec<_>) = cmakes.into_iter().partition(|cmake| cmake.version >= OLDEST);
        Self { cmakes: new, old_cmake: old.into_iter().next(), clangs: bench.clangs.clone() }
    }

    /// All set-ups for cases without special needs.
    pub fn setups(&self) -> Vec<Setup> {
        let mut setups = Vec::new();
        for cmake in &self.cmakes {
            for generator in GENERATORS {
                for clang in &self.clangs {
                    setups.push(Setup { cmake: cmake.clone(), generator, clang: clang.clone() });
                }
            }
        }
        setups
    }
}

fn cmake(bench: &Bench, program: String) -> Option<CMake> {
    let ran = Call::new(bench, "/", &[&program, "--version"]).run();
    let mut numbers = ran.stdout.strip_prefix("cmake version ")?.split('.').map_while(|part| part.parse().ok());
    Some(CMake { program, version: (numbers.next()?, numbers.next()?) })
}

/// A case in one mode and one set-up.
#[derive(Debug, Clone)]
pub struct Unit {
    /// The case.
    pub case: &'static Case,
    /// The mode.
    pub mode: Mode,
    /// The set-up.
    pub setup: Setup,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{:?}, {}]", self.case.name, self.mode, self.setup)
    }
}

/// Assigns the set-ups to the cases: each unit runs in one of them, or with `full` in all of them.
pub fn deal(cases: &'static [Case], offer: &Offer, full: bool) -> Vec<Unit> {
    let all = offer.setups();
    let stride = stride(all.len());
    let mut units = Vec::new();
    let mut turn = 0;
    for case in cases {
        let fitting: Vec<&Setup> =
            all.iter().filter(|s| case.needs != Needs::Ninja || s.generator == "Ninja").collect();
        for &mode in case.modes {
            if case.needs == Needs::OldCMake {
                units.extend(old(offer).map(|setup| Unit { case, mode, setup }));
                continue;
            }
            let count = if full { fitting.len() } else { fitting.len().min(1) };
            for step in 0..count {
                units.push(Unit { case, mode, setup: fitting[(turn + step) % fitting.len()].clone() });
            }
            turn += stride;
        }
    }
    units
}

fn old(offer: &Offer) -> Option<Setup> {
    let (cmake, clang) = offer.old_cmake.clone().zip(offer.clangs.first().cloned())?;
    Some(Setup { cmake, generator: GENERATORS[0], clang })
}

/// A step without a common divisor visits all set-ups before it repeats one; a large one makes
/// neighbours differ in more than the clang.
fn stride(count: usize) -> usize {
    let coprime = |step: usize| (2..=step).all(|d| !(step.is_multiple_of(d) && count.is_multiple_of(d)));
    (count / 3 + 1..).find(|&step| coprime(step)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::CASES;

    fn offer() -> Offer {
        let cmake = |minor| CMake { program: format!("/opt/cmake-3.{minor}/bin/cmake"), version: (3, minor) };
        let clang = |version| Clang { version, program: format!("clang++-{version}"), hip: vec![], link: vec![] };
        Offer {
            cmakes: [28, 31, 40, 43].map(cmake).to_vec(),
            old_cmake: Some(cmake(25)),
            clangs: [22, 23, 24].map(clang).to_vec(),
        }
    }

    #[test]
    fn the_default_run_uses_every_setup_and_every_case_in_every_mode() {
        let units = deal(CASES, &offer(), false);
        for setup in offer().setups() {
            assert!(units.iter().any(|unit| unit.setup == setup), "{setup} is not used");
        }
        assert_eq!(units.len(), CASES.iter().map(|case| case.modes.len()).sum::<usize>());
        for mode in [Mode::Found, Mode::Compiler, Mode::CompilerC, Mode::Launcher] {
            let versions: Vec<_> = units.iter().filter(|unit| unit.mode == mode).map(|unit| &unit.setup).collect();
            for generator in GENERATORS {
                assert!(versions.iter().any(|setup| setup.generator == generator), "{mode:?} with {generator}");
            }
        }
    }

    #[test]
    fn the_full_run_is_every_unit_in_every_setup() {
        let units = deal(CASES, &offer(), true);
        for case in CASES {
            let setups = match case.needs {
                Needs::Any | Needs::Blanks => 24,
                Needs::Ninja => 12,
                Needs::OldCMake => 1,
            };
            let count = units.iter().filter(|unit| unit.case.name == case.name).count();
            assert_eq!(count, setups * case.modes.len(), "{}", case.name);
        }
    }

    #[test]
    fn names_of_cases_are_unique() {
        let mut names: Vec<_> = CASES.iter().map(|case| case.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CASES.len());
    }

    #[test]
    fn the_package_has_the_version_of_the_workspace() {
        let text = include_str!("../../../cmake/HotSwapConfigVersion.cmake");
        let expected = format!("set(PACKAGE_VERSION \"{}\")", env!("CARGO_PKG_VERSION"));
        assert!(text.contains(&expected), "HotSwapConfigVersion.cmake has no line {expected}");
    }
}
