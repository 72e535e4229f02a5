//! The lines that the working tree adds to a git revision, and their coverage.

use crate::{AddedLines, CoverageReport, DiffCoverage};
use hotswap_report::{Diagnostic, codes};
use std::path::Path;
use std::process::Command;

/// The coverage of the added lines, and the root of their repository.
pub struct ReportDifference {
    pub coverage: DiffCoverage,
    pub root: String,
}

impl ReportDifference {
    /// Compares with the repository of the working directory.
    ///
    /// # Errors
    /// [`codes::CHILD_FAILED`] with git's message, [`codes::NO_TOOL`].
    pub fn from_revision(revision: &str, coverage: &CoverageReport) -> Result<Self, Diagnostic> {
        let GitAdditions { root, added } = added(Path::new("."), revision)?;
        Ok(Self { coverage: DiffCoverage::of(coverage, &added, &root), root })
    }
}

/// The lines that a working tree adds to a revision, and the root of its repository.
struct GitAdditions {
    root: String,
    added: AddedLines,
}

/// The root of the repository that holds `directory`, and the lines that its working tree adds to `revision`.
fn added(directory: &Path, revision: &str) -> Result<GitAdditions, Diagnostic> {
    let root = git(directory, &["rev-parse", "--show-toplevel"])?.trim_end_matches('\n').to_owned();
    let words = ["-c", "core.quotePath=false", "diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-relative"];
    let rest = ["--src-prefix=a/", "--dst-prefix=b/", "--end-of-options", revision, "--"];
    let diff = git(directory, &[words.as_slice(), &rest].concat())?;
    Ok(GitAdditions { root, added: AddedLines::parse(&diff) })
}

fn git(directory: &Path, words: &[&str]) -> Result<String, Diagnostic> {
    let mut command = Command::new("git");
    let output = hotswap_files::command_output(command.arg("-C").arg(directory).args(words)).map_err(|error| {
        Diagnostic::error(codes::NO_TOOL, format!("git: {error}")).advise("install git, or leave --diff out")
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Diagnostic::error(codes::CHILD_FAILED, format!("git {}: {said}", words.join(" "))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;

    #[test]
    fn the_working_tree_is_compared_with_the_revision() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        if git(place, &["init", "--quiet"]).is_err() {
            hotswap_userland::skip("coverage of added lines", "git is not installed");
            return;
        }
        fs::create_dir(place.join("src")).unwrap();
        fs::write(place.join("src/a b.hip"), "one\ntwo\nthree\n").unwrap();
        git(place, &["add", "."]).unwrap();
        let author = ["-c", "user.name=x", "-c", "user.email=x@y", "-c", "commit.gpgSign=false"];
        git(place, &[author.as_slice(), &["commit", "--quiet", "-m", "first"]].concat()).unwrap();
        fs::write(place.join("src/a b.hip"), "zero\none\n2\nthree\n").unwrap();
        let GitAdditions { root, added: lines } = added(&place.join("src"), "HEAD").unwrap();
        assert_eq!(fs::canonicalize(root).unwrap(), fs::canonicalize(place).unwrap());
        assert_eq!(lines.files, BTreeMap::from([("src/a b.hip".to_owned(), BTreeSet::from([1, 3]))]));
        assert_eq!(added(place, "no-such-revision").err().unwrap().code, codes::CHILD_FAILED);
        assert_eq!(added(place, "--output=x").err().unwrap().code, codes::CHILD_FAILED);
    }
}
