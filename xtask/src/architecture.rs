//! The tables of ARCHITECTURE.md that cargo and the table of arrows know: which crates a crate may use, and where a third-party
//! crate serves. The prose cells are written by hand.
//!
//! Invariant: a row belongs to a package by its directory, or to third-party crates by their names, both in backticks.

use crate::arrows::ALLOWED;
use crate::outcome::{During, Outcome, fail};
use crate::paths;
use cargo_metadata::{DependencyKind, Metadata, Package};
use hotswap_userland::ENV_BLESS;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Third-party crates and the packages that use them.
struct DependencyUsers {
    /// By directory, of programs and libraries.
    products: BTreeSet<String>,
    /// Whether tests use it: as a development dependency, or in a package below `tests`.
    has_tests: bool,
}

const PAGE: &str = "ARCHITECTURE.md";

/// The complaints of `tidy` about the page.
pub(crate) fn complaints(metadata: &Metadata) -> Outcome<Vec<String>> {
    let file = paths::workspace().join(PAGE);
    let page = fs::read_to_string(&file).during("read", &file)?;
    if generate(&page, metadata)? == page {
        return Ok(Vec::new());
    }
    let bless = format!("{ENV_BLESS}=1 cargo test -p xtask architecture");
    Ok(vec![format!("{PAGE}: a table contradicts xtask/src/arrows.rs or a Cargo.toml; `{bless}` writes it")])
}

/// The page with the generated cells.
fn generate(page: &str, metadata: &Metadata) -> Outcome<String> {
    let users = dependency_users(metadata);
    let mut seen = BTreeSet::new();
    let mut lines = Vec::new();
    for line in page.lines() {
        lines.push(generate_line(line, metadata, &users, &mut seen));
    }
    let forgotten: Vec<&str> = users.keys().filter(|name| !seen.contains(*name)).map(String::as_str).collect();
    if !forgotten.is_empty() {
        return fail(format!("{PAGE} has no row for the dependencies {}", forgotten.join(", ")));
    }
    Ok(lines.join("\n") + "\n")
}

fn generate_line(
    line: &str,
    metadata: &Metadata,
    users: &BTreeMap<String, DependencyUsers>,
    seen: &mut BTreeSet<String>,
) -> String {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let ["", subject, second, third, ""] = cells[..] else { return line.to_owned() };
    let names = backticked_names(subject);
    if let Some(package) = names.first().and_then(|name| package_at(metadata, name))
        && let Some(arrow) = ALLOWED.iter().find(|(name, _)| *name == package.name.as_str())
    {
        return format!("| {subject} | {second} | {} |", allowed_crates(arrow.1));
    }
    let known: Vec<&str> = names.into_iter().filter(|name| users.contains_key(*name)).collect();
    if known.is_empty() {
        return line.to_owned();
    }
    seen.extend(known.iter().map(|name| (*name).to_owned()));
    format!("| {subject} | {} | {third} |", places_of_use(&known, users))
}

fn backticked_names(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn package_at<'m>(metadata: &'m Metadata, directory: &str) -> Option<&'m Package> {
    let manifest = metadata.workspace_root.join(directory).join("Cargo.toml");
    metadata.packages.iter().find(|package| package.manifest_path == manifest)
}

/// The crates of an arrow, as the page calls them.
fn allowed_crates(packages: &[&str]) -> String {
    if packages.is_empty() {
        return "–".to_owned();
    }
    packages.iter().map(|name| name.strip_prefix("hotswap-").unwrap_or(name)).collect::<Vec<_>>().join(", ")
}

fn dependency_users(metadata: &Metadata) -> BTreeMap<String, DependencyUsers> {
    let mut users: BTreeMap<String, DependencyUsers> = BTreeMap::new();
    for package in metadata.workspace_packages() {
        let directory = package.manifest_path.parent().and_then(|path| path.file_name()).unwrap_or_default();
        let is_test = package.manifest_path.starts_with(metadata.workspace_root.join("tests"));
        for dependency in package.dependencies.iter().filter(|dependency| dependency.path.is_none()) {
            let row = users
                .entry(dependency.name.clone())
                .or_insert_with(|| DependencyUsers { products: BTreeSet::new(), has_tests: false });
            if is_test || dependency.kind == DependencyKind::Development {
                row.has_tests = true;
            } else {
                row.products.insert(directory.to_owned());
            }
        }
    }
    users
}

/// The packages that use all of these crates, and those that use a part, with that part.
fn places_of_use(names: &[&str], users: &BTreeMap<String, DependencyUsers>) -> String {
    let mut crates_by_package: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in names {
        for package in &users[*name].products {
            crates_by_package.entry(package).or_default().push(name);
        }
        if users[*name].has_tests {
            crates_by_package.entry("tests").or_default().push(name);
        }
    }
    let mut whole = Vec::new();
    let mut parts = Vec::new();
    for (package, used) in crates_by_package {
        if used.len() == names.len() {
            whole.push(package.to_owned());
        } else {
            parts.push(format!("{package} (`{}`)", used.join("`, `")));
        }
    }
    whole.extend(parts);
    whole.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use cargo_metadata::MetadataCommand;

    fn metadata() -> Metadata {
        MetadataCommand::new().current_dir(paths::workspace()).no_deps().exec().unwrap()
    }

    #[test]
    fn the_tables_are_those_of_cargo_and_of_the_arrows() {
        let file = paths::workspace().join(PAGE);
        let page = fs::read_to_string(&file).unwrap();
        hotswap_userland::golden(&file, &generate(&page, &metadata()).unwrap()).unwrap();
    }

    #[test]
    fn a_wrong_cell_is_replaced_and_a_dependency_without_a_row_is_reported() {
        let page = fs::read_to_string(paths::workspace().join(PAGE)).unwrap();
        let metadata = metadata();
        let row = page.lines().find(|line| line.starts_with("| `toml` |")).unwrap();
        let wrong = page.replace(row, &row.replace("driver-wrapper", "everywhere"));
        assert_ne!(wrong, page);
        assert_eq!(generate(&wrong, &metadata).unwrap(), generate(&page, &metadata).unwrap());
        let failure = generate(&page.replace(&format!("{row}\n"), ""), &metadata).unwrap_err().to_string();
        assert!(failure.ends_with("has no row for the dependencies toml"), "{failure}");
    }
}
