//! The modes of clang's HIP driver, read from `tests/cases/modes.toml`, and the sources they compile.

use crate::bench::{Bench, Clang, Scratch};
use hotswap_userland::HIP_HEADER;
use serde::Deserialize;

/// One value for all versions of clang, or one each for 22, 23 and 24.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Each<T> {
    /// The same for all.
    Same(T),
    /// For 22, 23 and 24.
    Three([T; 3]),
}

impl<T: PartialEq> Each<T> {
    /// Whether the versions differ.
    fn differs(&self) -> bool {
        matches!(self, Self::Three([first, rest @ ..]) if rest.iter().any(|other| other != first))
    }
}

impl<T> Each<T> {
    /// The value for that version; later ones are like 24.
    pub fn of(&self, version: u32) -> &T {
        match self {
            Self::Same(value) => value,
            Self::Three(values) => &values[usize::try_from(version.clamp(22, 24) - 22).expect("at most 2")],
        }
    }
}

/// One mode; the file documents each key.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mode {
    pub name: String,
    /// Command lines with placeholders in braces.
    pub steps: Vec<String>,
    /// Device links that strace must see.
    pub links: Each<usize>,
    /// Pairs of the plan.
    #[serde(default = "default_plan")]
    pub plan: String,
    /// Policy of the plan.
    pub policy: Option<String>,
    /// Whether the plan is in the environment, for all commands, and not in the arguments.
    #[serde(default)]
    pub ambient: bool,
    /// Files with fat binaries.
    #[serde(default)]
    pub made: Vec<String>,
    /// Files that are one code object for gfx1030.
    #[serde(default)]
    pub bare: Vec<String>,
    /// Targets of each file in `made`.
    #[serde(default = "default_targets")]
    pub targets: Vec<String>,
    /// The number of occurrences of each.
    #[serde(default = "one")]
    pub bundles: usize,
    /// The message of plain clang when it fails; empty when it does not.
    #[serde(default = "nothing")]
    pub fails: Each<String>,
    /// The code of HotSwap's refusal; empty without one.
    #[serde(default = "nothing")]
    pub refused: Each<String>,
    /// Whether the real HIP headers are used.
    #[serde(default)]
    pub headers: bool,
    /// Why the device links carry no plan.
    pub unmarked: Option<String>,
}

fn default_plan() -> String {
    "gfx1030=>gfx1031".to_owned()
}

fn default_targets() -> Vec<String> {
    vec!["gfx1030".to_owned(), "gfx1031".to_owned()]
}

fn one() -> usize {
    1
}

fn nothing() -> Each<String> {
    Each::Same(String::new())
}

#[derive(Deserialize)]
struct Table {
    mode: Vec<Mode>,
}

/// All modes.
///
/// # Panics
/// If the file is malformed.
pub fn all() -> Vec<Mode> {
    let table: Table = toml::from_str(include_str!("../../cases/modes.toml")).expect("modes.toml is well formed");
    table.mode
}

/// Arguments that specify a plan on the command line.
pub fn plan_words(pairs: &str, policy: Option<&str>) -> Vec<String> {
    let policy = policy.map(|policy| format!("--hotswap-policy={policy}"));
    let words = [Some(format!("--hotswap-retarget={pairs}")), policy];
    words.into_iter().flatten().flat_map(|word| ["-Xoffload-linker".to_owned(), word]).collect()
}

impl Mode {
    /// Whether the versions of clang behave differently in it.
    pub fn differs(&self) -> bool {
        self.links.differs() || self.fails.differs() || self.refused.differs()
    }

    /// The commands of this mode with `compiler` (program and first arguments) in place of `{cxx}`.
    ///
    /// # Panics
    /// If a step is not well formed.
    pub fn commands(&self, clang: &Clang, compiler: &[String]) -> Vec<Vec<String>> {
        let expand = |step: &String| {
            let words = shell_words::split(step).expect("steps are well formed");
            words.into_iter().flat_map(|word| self.word(clang, compiler, word)).collect()
        };
        self.steps.iter().map(expand).collect()
    }

    fn word(&self, clang: &Clang, compiler: &[String], word: String) -> Vec<String> {
        match word.as_str() {
            "{cxx}" => [compiler, &if self.headers { clang.hip.clone() } else { clang.light() }].concat(),
            "{c++}" => compiler.to_vec(),
            "{link}" => clang.link.clone(),
            "{ar}" => vec![clang.tool("llvm-ar")],
            "{a1}" => owned_word_list(&["--offload-arch=gfx1030"]),
            "{a2}" => owned_word_list(&["--offload-arch=gfx1030", "--offload-arch=gfx1100"]),
            "{old}" => owned_word_list(&["--no-offload-new-driver"]),
            "{new}" => owned_word_list(&["--offload-new-driver"]),
            _ => vec![word],
        }
    }

    /// A scratch directory with the sources of this mode.
    pub fn scratch(&self, bench: &Bench) -> Scratch {
        let scratch = bench.scratch();
        write_sources(&scratch, self.headers);
        scratch
    }
}

fn owned_word_list(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Writes the sources that the modes compile: with the real headers, or with a few declarations.
pub fn write_sources(scratch: &Scratch, headers: bool) {
    let header = if headers { "#include <hip/hip_runtime.h>\n" } else { HIP_HEADER };
    scratch.write("hip.h", header);
    scratch.write("a.hip", A_HIP);
    scratch.write("b.hip", B_HIP);
    scratch.write("words.rsp", "--offload-arch=gfx1030\n'-DNAME=\"a b\"' a.hip");
    scratch.write("kernel.cl", "__kernel void k(__global float *p) { p[0] = 1.0f; }\n");
    scratch.write("plain.cpp", "int main() { return 0; }\n");
}

const A_HIP: &str = r#"#include "hip.h"
__device__ int sink;
__global__ void scale(float *p) { p[__builtin_amdgcn_workitem_id_x()] *= 2.0f; }
#ifdef RDC
extern __device__ float triple(float);
__global__ void apply(float *p) { p[0] = triple(p[1]); }
#endif
int main() {
  scale<<<1, 64>>>(nullptr);
#ifdef RDC
  apply<<<1, 64>>>(nullptr);
#endif
  return 0;
}
"#;

const B_HIP: &str = r#"#include "hip.h"
__device__ float triple(float x) { return x * 3.0f; }
__global__ void other(float *p) { p[0] = triple(p[1]); }
"#;
