//! OpenMP offload, which no plan serves.
//!
//! OpenMP's device images are linked by `clang-linker-wrapper` and listed in the program's descriptor
//! (`__tgt_bin_desc`), which HotSwap does not extend. A plan for such a command is therefore refused, or dropped with a
//! warning, and no manifest names it.
//!
//! Absent on purpose: OpenMP on the host alone (`-fopenmp` without a GPU), and HIP sources that use it; objects with
//! OpenMP device code in a link without an OpenMP flag (the interposer refuses them where they are linked).

use crate::command::ClangCommand;
use crate::flags::{OffloadSide, Phase};
use crate::options::PlanSource;
use hotswap_plan::{Plan, Policy};
use hotswap_report::{Diagnostic, Severity, codes};

/// The reason why such a command passes through.
pub const REASON: &str = "OpenMP offload: no plan serves it";

/// Whether the command compiles or links code for a GPU by OpenMP. Clang 22 to 24 treat `--offload-arch` as OpenMP's
/// only where no input is HIP.
pub fn offloads(command: &ClangCommand) -> bool {
    let makes_code = command.phase > Phase::Front && command.scope != OffloadSide::Host && command.has_inputs();
    let named =
        command.openmp_targets.iter().any(|triple| triple.starts_with("amdgcn") || triple.starts_with("amdgpu"));
    makes_code && !command.query && command.openmp && (named || !(command.is_hip() || command.archs.is_empty()))
}

/// Whether the plan requests a GPU for which the command does not compile.
pub fn lacks_target(command: &ClangCommand, plan: &Plan) -> bool {
    !plan.targets().iter().all(|target: &&str| command.archs.iter().any(|arch| arch.split(':').next() == Some(target)))
        || plan.pairs.is_empty() && !plan.is_empty()
}

/// Whether the command names its GPUs and none of them is a source of the plan.
pub fn is_unconcerned(command: &ClangCommand, plan: &Plan) -> bool {
    !command.archs.is_empty()
        && !plan.pairs.is_empty()
        && !plan.pairs.iter().any(|pair| is_named_arch(&pair.source, command))
}

fn is_named_arch(source: &str, command: &ClangCommand) -> bool {
    command.archs.iter().any(|arch| arch.split(':').next() == Some(source))
}

/// The diagnostic that the plan's policy prescribes. A plan of the environment is for every command, so it stops none.
///
/// # Errors
/// [`codes::OPENMP_OFFLOAD`] for a plan of the command line under the policy `error`.
pub fn refuse(command: &ClangCommand, plan: &Plan, source: PlanSource) -> Result<Option<Diagnostic>, Diagnostic> {
    let refusal = refusal(command, plan, source);
    match (plan.policy, source) {
        (Policy::Keep, _) => Ok(None),
        (Policy::Warn, _) | (Policy::Error | Policy::Compile, PlanSource::Ambient) => {
            Ok(Some(Diagnostic { severity: Severity::Warning, ..refusal }))
        }
        (Policy::Error | Policy::Compile, _) => Err(refusal),
    }
}

fn refusal(command: &ClangCommand, plan: &Plan, source: PlanSource) -> Diagnostic {
    let words = match (&command.openmp_targets[..], &command.archs[..]) {
        ([], archs) => format!("-fopenmp --offload-arch={}", archs.join(",")),
        (triples, _) => format!("-fopenmp-targets={}", triples.join(",")),
    };
    let from = match source {
        PlanSource::Token | PlanSource::Words => "the command line",
        PlanSource::Ambient => "the environment or of a configuration file",
        PlanSource::Objects => "the objects",
    };
    let pairs: Vec<String> = plan.pairs.iter().map(|pair| format!("{}=>{}", pair.source, pair.target)).collect();
    let what = format!(
        "`{words}` makes device images of OpenMP, and the plan of {from} ({}) is not carried out",
        pairs.join(", ")
    );
    let mut wanted: Vec<&str> = command.archs.iter().map(String::as_str).collect();
    wanted.extend(plan.targets());
    wanted.dedup();
    let advice =
        format!("compile for each GPU (--offload-arch={}), or drop the plan for this command", wanted.join(","));
    Diagnostic::error(codes::OPENMP_OFFLOAD, what).advise(advice)
}
