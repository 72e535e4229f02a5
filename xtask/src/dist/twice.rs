//! Two builds in directories of different names and depths: all installed files must have the same bytes.

use super::stage;
use crate::built::Profile;
use crate::outcome::{During, Outcome, fail};
use crate::{paths, remove, run, sources};
use std::env;
use std::fs;
use std::os::unix::fs::symlink;
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
    compare_packages(&stages, &directory)
}

/// Settings of a machine that packages must not depend on, and the umask.
const MACHINES: [(&str, &[(&str, &str)]); 2] =
    [("022", &[("TZ", "UTC"), ("LC_ALL", "C")]), ("077", &[("TZ", "Pacific/Kiritimati"), ("LC_ALL", "C.UTF-8")])];

/// Makes the packages of each installation on a machine of its own settings, and compares them byte by byte.
fn compare_packages(stages: &[PathBuf], directory: &Path) -> Outcome {
    let epoch = stage::epoch()?;
    let mut outputs = Vec::new();
    for (number, (stage, (umask, variables))) in stages.iter().zip(MACHINES).enumerate() {
        let output = directory.join(format!("packages {number}"));
        let mut command = Command::new("sh");
        command.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]).arg(env::current_exe()?);
        command.args(["dist", "--debug", "--installed"]).arg(stage).arg("--output").arg(&output);
        run::output(command.env("SOURCE_DATE_EPOCH", &epoch).envs(variables.iter().copied()))?;
        outputs.push(output);
    }
    let differences = differences(&outputs[0], &outputs[1])?;
    if !differences.is_empty() {
        return fail(format!("packages of the same files differ: {}", differences.join(", ")));
    }
    println!(
        "{} packages are the same by umask {} and {}",
        stage::entries(&outputs[0])?.len(),
        MACHINES[0].0,
        MACHINES[1].0
    );
    Ok(())
}

/// The files of the last commit and the changes to them, or all of a tarball.
fn copy_sources(target: &Path) -> Outcome {
    fs::create_dir_all(target).during("create", target)?;
    for name in sources::tracked_files(paths::workspace())? {
        let (source, target) = (paths::workspace().join(&name), target.join(&name));
        let directory = target.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(directory).during("create", directory)?;
        if source.is_symlink() {
            symlink(fs::read_link(&source).during("read", &source)?, &target).during("write", &target)?;
        } else {
            fs::copy(&source, &target).during("copy", &source)?;
        }
    }
    Ok(())
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
