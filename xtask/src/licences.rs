//! The crates in the installed programs: their licences, the notices that the licences ask for, the bill of materials
//! (CycloneDX 1.5), and the check against `deny.toml`.
//!
//! Only crates that are in a program count: no build scripts, macros and tests. A macro's output is in the program, so crates with
//! macros count, too.

mod c_libraries;

use crate::documents::read;
use crate::outcome::{During, Outcome, fail};
use crate::registry;
use cargo_metadata::{DependencyKind, Metadata, Package, PackageId};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The configuration of cargo-deny, whose list of licences is checked here as well.
const DENY: &str = "deny.toml";

/// The crates of some packages of a workspace.
pub(crate) struct Crates {
    metadata: Metadata,
    /// All of them, the workspace's included.
    ids: BTreeSet<PackageId>,
    /// SHA-256 by name and version.
    checksums: BTreeMap<(String, String), String>,
}

impl Crates {
    /// Those that are linked into these packages of the workspace.
    pub(crate) fn of(workspace: &Path, packages: &[&str]) -> Outcome<Self> {
        let metadata = registry::metadata(workspace)?;
        let Some(resolve) = &metadata.resolve else { return fail("cargo resolved no dependencies") };
        let roots = metadata.packages.iter().filter(|package| packages.contains(&package.name.as_str()));
        let mut open: Vec<&PackageId> = roots.map(|package| &package.id).collect();
        let mut ids = BTreeSet::new();
        while let Some(id) = open.pop() {
            if !ids.insert(id.clone()) {
                continue;
            }
            let node = resolve.nodes.iter().find(|node| node.id == *id);
            let normal = node
                .into_iter()
                .flat_map(|node| &node.deps)
                .filter(|dependency| dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal));
            open.extend(normal.map(|dependency| &dependency.pkg));
        }
        let lock = workspace.join("Cargo.lock");
        let checksums = checksums(&read(&lock)?);
        Ok(Self { ids, metadata, checksums })
    }

    fn packages(&self) -> Vec<&Package> {
        let mut found: Vec<&Package> =
            self.metadata.packages.iter().filter(|package| self.ids.contains(&package.id)).collect();
        found.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
        found
    }

    fn third_party(&self) -> Vec<&Package> {
        self.packages().into_iter().filter(|package| package.source.is_some()).collect()
    }

    /// The text that is installed: each crate with its licence and the texts in its sources.
    pub(crate) fn notices(&self) -> Outcome<String> {
        let mut text =
            "Programs of HotSwap contain the crates below. Each is followed by its licence and by the texts that it \
                        comes with.\n"
                .to_owned();
        for package in self.third_party() {
            let licence = package.license.as_deref().unwrap_or("see below");
            let _ = write!(text, "\n{}\n{} {}: {licence}\n", "=".repeat(80), package.name, package.version);
            let directory =
                package.manifest_path.parent().map(|path| PathBuf::from(path.as_std_path())).unwrap_or_default();
            for (name, content) in licence_files(&directory)? {
                let _ = write!(text, "\n--- {name}\n\n{}\n", content.trim_end());
            }
        }
        Ok(text)
    }

    /// CycloneDX: the crates, their licences, hashes and dependencies. Libraries in C that are `loaded` are not in the programs.
    pub(crate) fn bill_of_materials(&self, loaded: &[String]) -> Outcome<String> {
        let mut components: Vec<Value> = self.packages().iter().map(|package| self.component(package)).collect();
        let c_libraries = self.c_libraries(loaded)?;
        components.extend(c_libraries.values().cloned());
        let nodes = self.metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
        let mut dependencies: Vec<Value> = Vec::new();
        for node in nodes.filter(|node| self.ids.contains(&node.id)) {
            let kept = node.dependencies.iter().filter(|id| self.ids.contains(id));
            let reference = self.reference(&node.id);
            let c_library = c_libraries.get(&reference).and_then(|library| library["bom-ref"].as_str());
            let mut names: Vec<String> =
                kept.map(|id| self.reference(id)).chain(c_library.map(str::to_owned)).collect();
            names.sort();
            dependencies.push(json!({ "ref": reference, "dependsOn": names }));
        }
        dependencies.sort_by_key(|entry| entry["ref"].to_string());
        let bom = json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": { "component": { "type": "application", "name": "hotswap", "version": env!("CARGO_PKG_VERSION") } },
            "components": components,
            "dependencies": dependencies,
        });
        Ok(format!("{bom:#}\n"))
    }

    /// Libraries in C, by the crate that compiles each.
    fn c_libraries(&self, loaded: &[String]) -> Outcome<BTreeMap<String, Value>> {
        let mut found = BTreeMap::new();
        for package in self.third_party() {
            if let Some(library) = c_libraries::component(package, loaded)? {
                found.insert(purl(package), library);
            }
        }
        Ok(found)
    }

    fn reference(&self, id: &PackageId) -> String {
        let package = self.metadata.packages.iter().find(|package| package.id == *id);
        package.map(purl).unwrap_or_default()
    }

    fn component(&self, package: &Package) -> Value {
        let mut value = json!({
            "type": "library",
            "bom-ref": purl(package),
            "name": package.name.as_str(),
            "version": package.version.to_string(),
            "purl": purl(package),
        });
        if let Some(licence) = &package.license {
            value["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
        }
        let key = (package.name.to_string(), package.version.to_string());
        if let Some(sum) = self.checksums.get(&key) {
            value["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        value
    }

    /// The crates whose licence `deny.toml` does not allow.
    pub(crate) fn denied(&self, workspace: &Path) -> Outcome<Vec<String>> {
        let allowed = allowed_licences(&read(&workspace.join(DENY))?);
        let mut denied = Vec::new();
        for package in self.third_party() {
            let licence = package.license.as_deref().unwrap_or_default();
            if !is_allowed(licence, &allowed) {
                denied.push(format!("{} {}: `{licence}` is not allowed by {DENY}", package.name, package.version));
            }
        }
        Ok(denied)
    }
}

fn purl(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version)
}

/// Files with texts of licences, in the directory of a crate and of C sources in it, by relative path.
fn licence_files(directory: &Path) -> Outcome<Vec<(String, String)>> {
    const DEPTH: usize = 3;
    let (mut found, mut open) = (Vec::new(), vec![(directory.to_owned(), 0)]);
    while let Some((at, depth)) = open.pop() {
        for entry in fs::read_dir(&at).during("read", &at)?.flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().to_uppercase();
            if path.is_dir() {
                open.extend((depth < DEPTH).then(|| (path, depth + 1)));
            } else if ["LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT"]
                .iter()
                .any(|start| name.starts_with(start))
            {
                let relative = path.strip_prefix(directory)?.display().to_string();
                let bytes = fs::read(&path).during("read", &path)?;
                found.push((relative, String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The hashes in a lock file, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for part in lock.split("[[package]]") {
        if let (Some(name), Some(version), Some(sum)) =
            (lock_entry_value("name", part), lock_entry_value("version", part), lock_entry_value("checksum", part))
        {
            found.insert((name, version), sum);
        }
    }
    found
}

fn lock_entry_value(key: &str, part: &str) -> Option<String> {
    let line = part.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))?;
    Some(line.trim_matches('"').to_owned())
}

/// The list `allow` of the part `licenses`.
fn allowed_licences(deny: &str) -> Vec<String> {
    let part = deny.split("[licenses]").nth(1).unwrap_or_default();
    let list = part.split("allow = [").nth(1).and_then(|rest| rest.split(']').next()).unwrap_or_default();
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Whether one of the alternatives is allowed in each part of an SPDX expression.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    !plain.is_empty()
        && plain
            .split(" AND ")
            .all(|part| part.split(" OR ").any(|name: &str| allowed.iter().any(|allowed| allowed == name.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{install, paths};

    #[test]
    fn every_crate_in_the_programs_has_an_allowed_licence_and_a_text() {
        let crates = Crates::of(paths::workspace(), install::PACKAGES).unwrap();
        assert_eq!(crates.denied(paths::workspace()).unwrap(), Vec::<String>::new());
        let notices = crates.notices().unwrap();
        assert!(notices.contains("\nobject 0.") && notices.contains("Permission is hereby granted"));
        // C code that is compiled in: libzstd and mimalloc.
        assert!(notices.contains("Facebook") && notices.contains("Microsoft"), "licences of C code are missing");
        let bom: Value = serde_json::from_str(&crates.bill_of_materials(&[]).unwrap()).unwrap();
        let components = bom["components"].as_array().unwrap();
        let object = components.iter().find(|one| one["name"] == "object").unwrap();
        assert_eq!(object["hashes"][0]["content"].as_str().map(str::len), Some(64));
        // A crate that is the only one to link a library of that name has it in C.
        let linking = crates.third_party().into_iter().filter(|package| package.links.is_some());
        let linking: Vec<&Package> = linking.filter(|package| package.name.ends_with("-sys")).collect();
        assert!(linking.len() >= 4, "zstd, xz, SQLite and mimalloc are linked");
        for package in linking {
            let depends =
                bom["dependencies"].as_array().unwrap().iter().find(|one| one["ref"] == purl(package)).unwrap();
            let names = depends["dependsOn"].to_string();
            let library = components
                .iter()
                .find(|one| one["cpe"].is_string() && names.contains(one["bom-ref"].as_str().unwrap()));
            assert!(library.is_some(), "{} has no row of C_LIBRARIES", package.name);
        }
        let of_system = crates.bill_of_materials(&["liblzma.so.5".to_owned()]).unwrap();
        assert!(!of_system.contains("tukaani:xz") && of_system.contains("facebook:zstandard"));
        assert!(!components.iter().any(|one| one["name"] == "proptest" || one["name"] == "cc"), "it is in no program");
    }

    #[test]
    fn expressions_are_judged_by_their_alternatives() {
        let allowed = allowed_licences("[licenses]\nallow = [\n  \"MIT\",\n  \"Unicode-3.0\",\n]\n");
        assert_eq!(allowed, ["MIT", "Unicode-3.0"]);
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0 OR MIT", true),
            ("Apache-2.0/MIT", true),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("MIT AND GPL-3.0", false),
            ("GPL-3.0", false),
            ("", false),
        ] {
            assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
        }
    }
}
