//! Two builds in directories of different names and depths: all installed files must have the same bytes.

use super::stage;
use crate::built::Profile;
use crate::outcome::{During, Outcome, fail};
use crate::{paths, remove, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds and compares; where an installation is given, with that one in the place of the first build.
pub(super) fn compare(profile: Profile, installed: Option<PathBuf>) -> Outcome {
    let directory = paths::scratch("dist-twice");
    remove::delete(&directory)?;
    let places = [directory.join("a"), directory.join("another/and deeper")];
    let mut stages: Vec<PathBuf> = installed.into_iter().collect();
    for place in &places[stages.len()..] {
        let sources = place.join("sources");
        copy_sources(&sources)?;
        let stage = place.join("stage");
        stage::lay_out(&sources, &place.join("target"), profile, None, &stage)?;
        stages.push(stage);
        remove::delete(&place.join("target"))?;
    }
    let differences = differences(&stages[0], &stages[1])?;
    if !differences.is_empty() {
        return fail(format!("two builds of the same sources differ in {}", differences.join(", ")));
    }
    println!("{} files are the same in both builds", stage::entries(&stages[0])?.len());
    Ok(())
}

/// The files of the last commit and the changes to them.
fn copy_sources(target: &Path) -> Outcome {
    fs::create_dir_all(target).during("create", target)?;
    let script = "git ls-files -z | tar -c --null --files-from=- | tar -x -C \"$0\"";
    run::show(Command::new("sh").args(["-ec", script]).arg(target).current_dir(paths::workspace()))
}

fn differences(a: &Path, b: &Path) -> Outcome<Vec<String>> {
    let names = |root: &Path| -> Outcome<Vec<PathBuf>> {
        stage::entries(root)?.iter().map(|path| Ok(path.strip_prefix(root)?.to_owned())).collect()
    };
    let (first, second) = (names(a)?, names(b)?);
    let mut found: Vec<String> = Vec::new();
    for name in first.iter().chain(second.iter().filter(|name| !first.contains(name))) {
        if content(&a.join(name)) != content(&b.join(name)) {
            found.push(name.display().to_string());
        }
    }
    Ok(found)
}

/// The text of a link or the bytes of a file.
fn content(path: &Path) -> Option<Vec<u8>> {
    let link = fs::read_link(path).ok().map(|text| text.into_os_string().into_encoded_bytes());
    link.or_else(|| fs::read(path).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_a_missing_file_and_a_link_are_differences() {
        let directory = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| directory.path().join(name));
        for root in [&a, &b] {
            fs::create_dir_all(root.join("d")).unwrap();
            fs::write(root.join("d/same"), "x").unwrap();
            fs::write(root.join("byte"), root.file_name().unwrap().as_encoded_bytes()).unwrap();
            std::os::unix::fs::symlink(root.file_name().unwrap(), root.join("link")).unwrap();
        }
        fs::write(b.join("d/more"), "x").unwrap();
        assert_eq!(differences(&a, &b).unwrap(), ["byte", "link", "d/more"]);
    }
}
