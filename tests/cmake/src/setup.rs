//! Set-ups: the available versions of CMake, generators and clangs, and the assignment of units to them.

use crate::case::{Case, Mode, Needs};
use hotswap_tests::{Bench, Call, Clang};
use hotswap_userland::CMAKE_DIRECTORY;
use std::collections::BTreeSet;
use std::fmt;

/// A directory inside the userland with directories `cmake-VERSION`, in place of the usual one.
pub const ENV_CMAKES: &str = "HOTSWAP_TEST_CMAKES";

/// The oldest CMake that finds HIP in Debian's directories.
const OLDEST: (u32, u32) = (3, 27);

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
    pub cmake: CMake,
    /// Name of the generator.
    pub generator: &'static str,
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

/// The generator of several configurations.
const SEVERAL: &str = "Ninja Multi-Config";

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
    pub case: &'static Case,
    pub mode: Mode,
    pub setup: Setup,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{:?}, {}]", self.case.name, self.mode, self.setup)
    }
}

/// How many units a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Each case in one mode, in one set-up, and a few more, so that each two settings meet.
    OneMode,
    /// Each case in every mode, in every set-up.
    EverySetUp,
}

/// Assigns modes and set-ups to the cases.
pub fn deal(cases: &'static [Case], offer: &Offer, extent: Extent) -> Vec<Unit> {
    let (all, mut met) = (offer.setups(), BTreeSet::new());
    let mut units = Vec::new();
    for case in cases {
        let fits = |setup: &&Setup| case.needs != Needs::Ninja || setup.generator == "Ninja";
        let setups: Vec<Setup> = match case.needs {
            Needs::Upgrade => all.iter().filter(|setup| setup.clang.version >= 23).cloned().collect(),
            Needs::OldCMake => old(offer).into_iter().collect(),
            Needs::Configurations => {
                let ninja = all.iter().filter(|setup| setup.generator == "Ninja");
                ninja.map(|setup| Setup { generator: SEVERAL, ..setup.clone() }).collect()
            }
            _ => all.iter().filter(fits).cloned().collect(),
        };
        let with = |mode: &Mode| setups.iter().map(|setup| Unit { case, mode: *mode, setup: setup.clone() }).collect();
        let mut possible: Vec<Unit> = case.modes.iter().flat_map(|mode| -> Vec<Unit> { with(mode) }).collect();
        if extent == Extent::OneMode {
            possible = most_new_pairs(possible, &met).into_iter().collect();
            met.extend(possible.iter().flat_map(Unit::pairs));
        }
        units.extend(possible);
    }
    if extent == Extent::OneMode {
        units.extend(with_pairs_that_are_left(&deal(cases, offer, Extent::EverySetUp), met));
    }
    units
}

/// Units in which those settings meet that have not met.
fn with_pairs_that_are_left(units: &[Unit], mut met: BTreeSet<[String; 2]>) -> Vec<Unit> {
    let mut more = Vec::new();
    for unit in units {
        if unit.pairs().iter().any(|pair| !met.contains(pair)) {
            met.extend(unit.pairs());
            more.push(unit.clone());
        }
    }
    more
}

/// Of the units the first one in which most settings meet that have not met before.
fn most_new_pairs(units: Vec<Unit>, met: &BTreeSet<[String; 2]>) -> Option<Unit> {
    let new = |unit: &Unit| unit.pairs().iter().filter(|pair| !met.contains(*pair)).count();
    let most = units.iter().map(new).max()?;
    units.into_iter().find(|unit| new(unit) == most)
}

impl Unit {
    /// Each two of its settings.
    fn pairs(&self) -> Vec<[String; 2]> {
        let Setup { cmake, generator, clang } = &self.setup;
        // A case that needs several configurations has one generator, which need not meet all other settings.
        let generator = if *generator == SEVERAL { GENERATORS[0] } else { generator };
        let settings = [
            format!("{:?}", self.mode),
            format!("CMake {:?}", cmake.version),
            generator.to_owned(),
            format!("clang {}", clang.version),
        ];
        let with = |first: usize| settings[first + 1..].iter().map(move |other| (first, other));
        (0..settings.len()).flat_map(with).map(|(first, other)| [settings[first].clone(), other.clone()]).collect()
    }
}

fn old(offer: &Offer) -> Option<Setup> {
    let (cmake, clang) = offer.old_cmake.clone().zip(offer.clangs.first().cloned())?;
    Some(Setup { cmake, generator: GENERATORS[0], clang })
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

    /// Each two of CMake, generator, clang and mode meet in one of the units.
    #[test]
    fn the_default_run_has_every_case_and_each_two_of_the_settings() {
        let pairs = |units: &[Unit]| units.iter().flat_map(Unit::pairs).collect::<BTreeSet<_>>();
        let units = deal(CASES, &offer(), Extent::OneMode);
        assert!(CASES.iter().all(|case| units.iter().any(|unit| unit.case.name == case.name)));
        assert!(units.len() < CASES.len() + 4, "{} units", units.len());
        let missing: Vec<_> =
            pairs(&deal(CASES, &offer(), Extent::EverySetUp)).difference(&pairs(&units)).cloned().collect();
        assert_eq!(missing, [[""; 2]; 0]);
    }

    #[test]
    fn the_full_run_is_every_unit_in_every_setup() {
        let units = deal(CASES, &offer(), Extent::EverySetUp);
        for case in CASES {
            let setups = match case.needs {
                Needs::Any | Needs::Blanks => 24,
                Needs::Upgrade => 16,
                Needs::Ninja | Needs::Configurations => 12,
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
