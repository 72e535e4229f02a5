//! The settings, which the environment states.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `HOTSWAP_EMULATE` | the GPUs: target IDs separated by commas |
//! | `HOTSWAP_EMULATE_BUDGET` | wave instructions that one dispatch may execute |
//! | `HOTSWAP_EMULATE_COUNTERS` | `1`: instructions by kernel at exit |
//! | `HOTSWAP_EMULATE_LATE` | `1`: results of memory operations arrive as late as the code allows |
//! | `HOTSWAP_EMULATE_MATRIX` | how products of matrices are added |
//! | `HOTSWAP_EMULATE_MEMORY` | MiB of memory that each GPU has |
//! | `HOTSWAP_EMULATE_POISON` | `1`: what nothing has written is not zero |
//! | `HOTSWAP_EMULATE_THREADS` | threads that execute one dispatch |

use hotswap_emulator::MATRIX_CHOICES;
use hotswap_emulator::variables::{BUDGET, COUNTERS, GPUS, LATE, MATRIX, MEMORY, POISON, THREADS};
use hotswap_targets::{Support, TargetId};
use std::env;

/// More GPUs would need more handles than a program can use.
pub(crate) const MAX_GPUS: usize = 16;

/// The settings of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EmulationSettings {
    /// The GPUs, with both target features stated where the processor has them.
    pub targets: Vec<TargetId>,
    /// Wave instructions of one dispatch; `None` is the default.
    pub budget: Option<u64>,
    /// Whether instructions are counted by kernel.
    pub counters: bool,
    pub late: bool,
    /// Whether memory, LDS and registers that nothing has written hold values that are not zero.
    pub poison: bool,
    /// How products of matrices are added; `None` is the default.
    pub matrix: Option<String>,
    /// Memory of each GPU, bytes; `None` is that of the product.
    pub memory: Option<u64>,
    /// Threads of one dispatch; `None` is the machine's processors.
    pub threads: Option<usize>,
}

impl EmulationSettings {
    /// Reads the environment; the error is a line for the user.
    pub fn from_environment() -> Result<Self, String> {
        Self::from_variables(|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let memory = positive_number_setting(MEMORY, &variable)?.map(|mebibytes| mebibytes.saturating_mul(1 << 20));
        Ok(Self {
            targets: parse_targets(&variable(GPUS).unwrap_or_default())?,
            budget: positive_number_setting(BUDGET, &variable)?,
            counters: boolean_flag_setting(COUNTERS, &variable),
            late: boolean_flag_setting(LATE, &variable),
            poison: boolean_flag_setting(POISON, &variable),
            matrix: parse_matrix(variable(MATRIX))?,
            memory,
            threads: positive_number_setting(THREADS, &variable)?
                .map(|count| usize::try_from(count).unwrap_or(usize::MAX)),
        })
    }
}

fn positive_number_setting(name: &str, variable: &impl Fn(&str) -> Option<String>) -> Result<Option<u64>, String> {
    match variable(name).filter(|text| !text.is_empty()) {
        Some(text) => match text.parse::<u64>() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => Err(format!("{name}: `{text}` is not a positive number")),
        },
        None => Ok(None),
    }
}

fn boolean_flag_setting(name: &str, variable: &impl Fn(&str) -> Option<String>) -> bool {
    variable(name).is_some_and(|text| !text.is_empty() && text != "0")
}

/// A name of the choices.
fn parse_matrix(text: Option<String>) -> Result<Option<String>, String> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    if MATRIX_CHOICES.iter().any(|(name, ..)| *name == text) {
        return Ok(Some(text));
    }
    let names: Vec<&str> = MATRIX_CHOICES.iter().map(|(name, ..)| *name).collect();
    Err(format!("{MATRIX}: `{text}` is none of {}", names.join(", ")))
}

/// The GPUs of a list.
fn parse_targets(list: &str) -> Result<Vec<TargetId>, String> {
    let parts = list.split(',').map(str::trim).filter(|part| !part.is_empty());
    let all: Vec<TargetId> = parts.map(parse_target).collect::<Result<_, _>>()?;
    match all.len() {
        0 => Err(format!("{GPUS} names no GPU; for example {GPUS}=gfx1030")),
        count if count > MAX_GPUS => Err(format!("{GPUS} names {count} GPUs; {MAX_GPUS} are possible")),
        _ => Ok(all),
    }
}

/// One GPU. A device has either setting of a feature, never both: xnack is off and sramecc is on by default, as on the
/// products that have a choice.
fn parse_target(text: &str) -> Result<TargetId, String> {
    let target: TargetId = text.parse().map_err(|error| format!("{GPUS}: {error}"))?;
    if target.processor.is_generic() {
        return Err(format!("{GPUS}: {text} is a target for several GPUs; name one of them"));
    }
    let xnack = target_feature_setting(target.xnack, target.processor.xnack, false);
    let sramecc = target_feature_setting(target.sramecc, target.processor.sramecc, true);
    Ok(TargetId { xnack, sramecc, ..target })
}

fn target_feature_setting(stated: Option<bool>, support: Support, default: bool) -> Option<bool> {
    match support {
        Support::Yes => Some(stated.unwrap_or(default)),
        _ => stated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<EmulationSettings, String> {
        EmulationSettings::from_variables(|name| {
            pairs.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn gpus_are_target_ids_with_every_feature_stated() {
        let settings = read(&[(GPUS, "gfx1031, gfx90a,gfx942:xnack+")]).unwrap();
        let names: Vec<String> = settings.targets.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["gfx1031", "gfx90a:sramecc+:xnack-", "gfx942:sramecc+:xnack+"]);
    }

    #[test]
    fn wrong_values_are_named() {
        for (pairs, expected) in [
            (vec![], "names no GPU"),
            (vec![(GPUS, ",")], "names no GPU"),
            (vec![(GPUS, "gfx1")], "`gfx1` is no known processor"),
            (vec![(GPUS, "gfx10-3-generic")], "target for several GPUs"),
            (vec![(GPUS, "gfx1030:xnack+")], "does not have"),
            (vec![(GPUS, "gfx1030"), (BUDGET, "x")], "`x` is not a positive number"),
            (vec![(GPUS, "gfx1030"), (MATRIX, "x")], "`x` is none of sequential, exact, ring, refuse"),
            (vec![(GPUS, "gfx1030"), (MEMORY, "0")], "`0` is not a positive number"),
        ] {
            let error = read(&pairs).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let many = vec!["gfx1030"; MAX_GPUS + 1].join(",");
        assert!(read(&[(GPUS, &many)]).unwrap_err().contains("17 GPUs"));
    }
}
