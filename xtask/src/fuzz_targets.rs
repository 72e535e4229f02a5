//! The fuzz targets in three places that must agree: their packages, which are outside of the workspace; the package of the workspace
//! that compiles them with every change; and the campaigns of `cargo xtask fuzz`.

use crate::outcome::{During, Outcome};
use crate::{fuzz, paths, sources};
use cargo_metadata::{Metadata, MetadataCommand, TargetKind};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The package of the workspace that has every fuzz target as a benchmark.
const CHECKED: &str = "hotswap-fuzz-targets";

/// A fuzz target: its name and its file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct FuzzTarget {
    name: String,
    file: PathBuf,
}

/// Targets that are in one place and not in the others.
pub(crate) fn complaints(workspace: &Metadata) -> Outcome<Vec<String>> {
    let mut defined = BTreeSet::new();
    for name in sources::committable_files(paths::workspace())? {
        if name.ends_with("/fuzz/Cargo.toml") {
            let manifest = paths::workspace().join(&name);
            let package = MetadataCommand::new().manifest_path(&manifest).no_deps().exec()?;
            defined.extend(targets_of_kind(&package, &TargetKind::Bin)?);
        }
    }
    let mut own = workspace.clone();
    own.packages.retain(|package| package.name.as_str() == CHECKED);
    let checked = targets_of_kind(&own, &TargetKind::Bench)?;
    let missing = defined.symmetric_difference(&checked).map(missing_benchmark);
    let started: BTreeSet<&str> = fuzz::target_names().into_iter().collect();
    let named: BTreeSet<&str> = defined.iter().map(|target| target.name.as_str()).collect();
    let unknown = named.symmetric_difference(&started).map(|name| unknown_target(name));
    Ok(missing.chain(unknown).collect())
}

fn missing_benchmark(target: &FuzzTarget) -> String {
    let file = target.file.display();
    format!("fuzz target `{}` ({file}): not both in its package and a benchmark of {CHECKED}", target.name)
}

fn unknown_target(name: &str) -> String {
    format!("fuzz target `{name}`: not both in a package and in a campaign of `cargo xtask fuzz`")
}

fn targets_of_kind(metadata: &Metadata, kind: &TargetKind) -> Outcome<BTreeSet<FuzzTarget>> {
    let mut found = BTreeSet::new();
    let targets = metadata.packages.iter().flat_map(|package| &package.targets);
    for target in targets.filter(|target| target.kind.contains(kind)) {
        let path = target.src_path.as_std_path();
        let file = path.canonicalize().during("read", path)?;
        found.insert(FuzzTarget { name: target.name.clone(), file });
    }
    Ok(found)
}
