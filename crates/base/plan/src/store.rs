//! The locations of plan files, and the search for them.
//!
//! Order: `HOTSWAP_PLAN_DIR`; `.hotswap/plans` in the working directory or one above it (a build runs somewhere inside its
//! build tree, so the command line needs no absolute path and caches hit across checkouts); the user's cache directory
//! (plans of bare command lines).

use crate::{Plan, words};
use hotswap_files::{cache_dir, reads};
use hotswap_report::{Diagnostic, Severity, codes};
use std::env;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

fn file_name(hash: &str) -> String {
    format!("{hash}.plan")
}

/// Writes the plan's file into `directory` and returns its path.
///
/// # Errors
/// [`codes::CANNOT_WRITE`] with the file.
pub fn save_plan(plan: &Plan, directory: &Path) -> Result<PathBuf, Diagnostic> {
    let path = directory.join(file_name(&plan.hash()));
    let text = plan.canonical_text();
    // An unchanged file keeps its time stamp: build systems depend on it.
    if fs::read(&path).is_ok_and(|old| old == text.as_bytes()) {
        return Ok(path);
    }
    hotswap_files::create_directories(directory).map_err(|error| Diagnostic::cannot_write(directory, error))?;
    hotswap_files::replace_file(&path, text.as_bytes())?;
    Ok(path)
}

/// Finds the plan with that hash; `warn` receives the files of that name in nearer directories that are something else.
///
/// # Errors
/// [`codes::PLAN_MISSING`], or [`codes::PLAN_CHANGED`] where the file's content or this HotSwap no
/// longer gives that hash.
pub fn find_plan(hash: &str, warn: &mut dyn FnMut(Diagnostic)) -> Result<Plan, Diagnostic> {
    let (working, unknown) = match env::current_dir() {
        Ok(working) => (Some(working), None),
        Err(error) => (None, Some(error)),
    };
    let candidates = plan_directories(env::var_os(words::ENV_PLAN_DIR).map(PathBuf::from), working, cache_dir());
    find_in(hash, &candidates, warn).map_err(|missing| match unknown {
        Some(error) => unknown_directory_error(missing, &error),
        None => missing,
    })
}

/// A plan that was not found is not known to be missing where the working directory could not be seen.
fn unknown_directory_error(missing: Diagnostic, error: &io::Error) -> Diagnostic {
    let what = format!("{}, and the working directory is not known: {error}", missing.what);
    Diagnostic { what, ..missing }
}

/// The plan in that file. With a hash the plan must have it.
///
/// # Errors
/// [`codes::PLAN_MISSING`] if such a file does not exist, and as [`find`].
pub fn load_plan(path: &Path, hash: Option<&str>) -> Result<Plan, Diagnostic> {
    if !reads::is_there(path)? {
        let missing = Diagnostic::error(codes::PLAN_MISSING, "there is no such file").in_file(path);
        return Err(missing.advise("declare it as an input of the action, relative to its working directory"));
    }
    match hash {
        Some(hash) => read_checked(path, hash),
        None => parse(path),
    }
}

fn plan_directories(user: Option<PathBuf>, working: Option<PathBuf>, cache: Option<PathBuf>) -> Vec<PathBuf> {
    let upwards = working.iter().flat_map(|dir| dir.ancestors().enumerate()).map(|(up, dir)| directory_above(up, dir));
    user.into_iter().chain(upwards).chain(cache.map(|dir| dir.join("plans"))).collect()
}

/// The plan directory of the directory this many steps above the working directory. A path from the root that exceeds the
/// system's limit is replaced by a relative one.
fn directory_above(up: usize, dir: &Path) -> PathBuf {
    const MOST: usize = 4000; // of 4,096 bytes, with room for the file's name
    let path = dir.join(words::PLAN_DIRECTORY);
    if path.as_os_str().len() < MOST { path } else { Path::new(&"../".repeat(up)).join(words::PLAN_DIRECTORY) }
}

fn find_in(hash: &str, directories: &[PathBuf], warn: &mut dyn FnMut(Diagnostic)) -> Result<Plan, Diagnostic> {
    if hash.is_empty() || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Diagnostic::error(codes::PLAN_SYNTAX, format!("`{hash}` is no plan hash")));
    }
    // A file that is not the plan does not rule out those in directories further away: the hash identifies the right one.
    let mut skipped = Vec::new();
    for path in directories.iter().map(|directory| directory.join(file_name(hash))) {
        match find_checked(&path, hash) {
            Ok(Some(plan)) => {
                skipped.into_iter().map(stepped_over).for_each(warn);
                return Ok(plan);
            }
            Ok(None) => {}
            Err(error) => skipped.push(error),
        }
    }
    Err(skipped
        .into_iter()
        .next()
        .unwrap_or_else(|| Diagnostic::error(codes::PLAN_MISSING, format!("no file `{}`", file_name(hash)))))
}

fn stepped_over(error: Diagnostic) -> Diagnostic {
    Diagnostic { severity: Severity::Warning, ..error }
        .advise("the plan was found in another directory; delete this file")
}

/// The plan in that file; `None` where nothing has that path.
fn find_checked(path: &Path, hash: &str) -> Result<Option<Plan>, Diagnostic> {
    if reads::is_there(path)? { read_checked(path, hash).map(Some) } else { Ok(None) }
}

/// The plan in that file, which must have that hash.
fn read_checked(path: &Path, hash: &str) -> Result<Plan, Diagnostic> {
    let plan = parse(path)?;
    if plan.hash() != hash {
        let what =
            format!("this HotSwap ({} {}) gives its content the hash {}", crate::VERSION, crate::IDENTITY, plan.hash());
        return Err(Diagnostic::error(codes::PLAN_CHANGED, what).in_file(path));
    }
    Ok(plan)
}

fn parse(path: &Path) -> Result<Plan, Diagnostic> {
    let bytes = begin_of(path).map_err(|error| Diagnostic::cannot_read(path, error))?;
    if bytes.len() as u64 > LARGEST {
        let what = format!("it is larger than {LARGEST} bytes, and no plan is");
        return Err(Diagnostic::error(codes::PLAN_SYNTAX, what).in_file(path));
    }
    Plan::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| error.in_file(path))
}

/// A plan with every pair of the table has less than 100 KB.
const LARGEST: u64 = 1 << 20;

/// The start of the file, a little more than the largest plan has; an error if it is not a regular file, such as a
/// pipe without a writer.
fn begin_of(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Plan {
        let mut plan = Plan::default();
        plan.add_pairs("gfx1030=>gfx1031").unwrap();
        plan
    }

    /// The plan found, and the files that were skipped.
    fn search(hash: &str, directories: &[PathBuf]) -> (Result<Plan, Diagnostic>, Vec<Diagnostic>) {
        let mut skipped = Vec::new();
        (find_in(hash, directories, &mut |file| skipped.push(file)), skipped)
    }

    #[test]
    fn a_saved_plan_is_found_from_below_its_build_tree() {
        let tree = tempfile::tempdir().unwrap();
        save_plan(&sample(), &tree.path().join(words::PLAN_DIRECTORY)).unwrap();
        let below = tree.path().join("src/deep");
        let found = search(&sample().hash(), &plan_directories(None, Some(below), None)).0.unwrap();
        assert_eq!(found, sample());
    }

    #[test]
    fn a_path_that_is_too_long_becomes_a_relative_one() {
        let deep = PathBuf::from(format!("/{}", "directory/".repeat(500)));
        let found = plan_directories(None, Some(deep), None);
        let directory = words::PLAN_DIRECTORY;
        assert_eq!(found[..3], ["", "../", "../../"].map(|up| PathBuf::from(format!("{up}{directory}"))));
        assert_eq!(found.len(), 501);
        assert!(found.iter().all(|path| path.as_os_str().len() < 4096));
        assert_eq!(found[400], Path::new(&format!("/{}", "directory/".repeat(100))).join(directory));
        assert_eq!(found[500], Path::new("/").join(directory));
    }

    #[test]
    fn what_is_no_plan_in_a_nearer_directory_is_stepped_over() {
        let (near, far) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let directories = [near.path().to_owned(), far.path().to_owned()];
        let hash = sample().hash();
        save_plan(&sample(), far.path()).unwrap();
        let path = near.path().join(file_name(&hash));
        fs::write(&path, "junk").unwrap();
        let (found, skipped) = search(&hash, &directories);
        assert!(found.unwrap() == sample() && skipped.len() == 1, "{skipped:?}");
        assert!(skipped[0].severity == Severity::Warning && skipped[0].to_string().contains("delete this file"));
        File::create(&path).unwrap().set_len(3 << 30).unwrap();
        assert_eq!(search(&hash, &directories).0.unwrap(), sample());
        let alone = search(&hash, &directories[..1]).0.unwrap_err();
        assert!(alone.code == codes::PLAN_SYNTAX && alone.what.contains("larger than"), "{alone}");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(search(&hash, &directories).0.unwrap(), sample());
    }

    #[test]
    fn a_named_file_serves_under_any_name_and_must_have_the_hash() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("of-the-build");
        assert_eq!(load_plan(&path, None).unwrap_err().code, codes::PLAN_MISSING);
        fs::write(&path, sample().canonical_text()).unwrap();
        assert_eq!(load_plan(&path, None).unwrap(), sample());
        assert_eq!(load_plan(&path, Some(&sample().hash())).unwrap(), sample());
        assert_eq!(load_plan(&path, Some("0123456789abcdef")).unwrap_err().code, codes::PLAN_CHANGED);
    }

    #[test]
    fn a_missing_or_changed_plan_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let directories = [dir.path().to_owned()];
        let hash = sample().hash();
        assert_eq!(search(&hash, &directories).0.unwrap_err().code, codes::PLAN_MISSING);
        let path = save_plan(&sample(), dir.path()).unwrap();
        fs::write(&path, sample().canonical_text().replace("gfx1031", "gfx1032")).unwrap();
        assert_eq!(search(&hash, &directories).0.unwrap_err().code, codes::PLAN_CHANGED);
        fs::write(&path, "junk").unwrap();
        assert_eq!(search(&hash, &directories).0.unwrap_err().code, codes::PLAN_SYNTAX);
        assert_eq!(search("../etc/passwd", &directories).0.unwrap_err().code, codes::PLAN_SYNTAX);
    }
}
