//! The configuration files: `config.toml` of the user, of the installation prefix and of the system, and the defaults
//! that the installation recorded.
//!
//! Invariant: an existing file is read completely or it is an error. Unknown keys are errors, too, because a misspelt
//! key would be a setting without any effect.
//!
//! Absent on purpose: the precedence of options (`options`).

use crate::options::{ConfigFile, ENV_CONFIG, OPTIONS, OptionRow};
use hotswap_report::{Diagnostic, codes};
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The files in their order: the user's, the prefix's, the system's, the installation's defaults.
///
/// # Errors
/// [`codes::BAD_CONFIG`] for a file that cannot be used.
pub fn load(env: &dyn Fn(&str) -> Option<OsString>, prefix: Option<&Path>) -> Result<Vec<ConfigFile>, Diagnostic> {
    read_all(candidates(env, prefix))
}

/// The defaults of the installation alone, which are part of it.
///
/// # Errors
/// As [`load`], for that file.
pub fn load_defaults(prefix: Option<&Path>) -> Result<Vec<ConfigFile>, Diagnostic> {
    read_all(prefix.map(|prefix| ConfigPath::of_optional_file(prefix.join(DEFAULTS))).into_iter().collect())
}

/// The file that the installation wrote.
const DEFAULTS: &str = "lib/hotswap/defaults.toml";

/// A configuration file that may be there.
#[derive(PartialEq, Eq)]
struct ConfigPath {
    path: PathBuf,
    /// The user named it, so that it must be there.
    required: bool,
}

impl ConfigPath {
    fn of_optional_file(path: PathBuf) -> Self {
        Self { path, required: false }
    }
}

fn read_all(paths: Vec<ConfigPath>) -> Result<Vec<ConfigFile>, Diagnostic> {
    let mut files = Vec::new();
    for ConfigPath { path, required } in paths {
        match fs::read(&path) {
            Ok(bytes) => files.push(parse(path, &bytes)?),
            Err(error) if !required && (is_absent(&error) || is_closed(&path)) => {}
            Err(error) => return Err(Diagnostic::error(codes::BAD_CONFIG, error.to_string()).in_file(path)),
        }
    }
    Ok(files)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Whether the directory cannot even be entered: HOME is another user's, as in builds by a service, and nothing in it is meant for
/// this one. A file that is there and cannot be read is an error.
fn is_closed(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

fn candidates(env: &dyn Fn(&str) -> Option<OsString>, prefix: Option<&Path>) -> Vec<ConfigPath> {
    let mut paths = Vec::new();
    match env(ENV_CONFIG) {
        Some(named) if named.is_empty() => {}
        Some(named) => paths.push(ConfigPath { path: PathBuf::from(named), required: true }),
        None => {
            let own = user_directory(env).map(|directory| directory.join("hotswap/config.toml"));
            paths.extend(own.map(ConfigPath::of_optional_file));
        }
    }
    let system = Path::new("/etc/hotswap/config.toml").to_owned();
    paths.extend(prefix.map(|prefix| ConfigPath::of_optional_file(prefix.join("etc/hotswap/config.toml"))));
    paths.push(ConfigPath::of_optional_file(system));
    paths.extend(prefix.map(|prefix| ConfigPath::of_optional_file(prefix.join(DEFAULTS))));
    paths.dedup();
    paths
}

fn user_directory(env: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    absolute_environment_path("XDG_CONFIG_HOME", env)
        .or_else(|| Some(absolute_environment_path("HOME", env)?.join(".config")))
}

fn absolute_environment_path(name: &str, env: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    env(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

fn parse(path: PathBuf, bytes: &[u8]) -> Result<ConfigFile, Diagnostic> {
    let text = str::from_utf8(bytes).map_err(|_| bad_config_error("it is not UTF-8".to_owned(), &path))?;
    let table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| bad_config_error(error.message().to_owned(), &path))?;
    let mut values = Vec::new();
    for (key, value) in &table {
        let opt =
            OPTIONS.iter().find(|opt| opt.key == Some(key)).ok_or_else(|| bad_config_error(unknown(key), &path))?;
        values.push((
            opt,
            string(value).ok_or_else(|| bad_config_error(format!("`{key}` is no string or list of strings"), &path))?,
        ));
    }
    Ok(ConfigFile { path, values })
}

fn bad_config_error(what: String, path: &Path) -> Diagnostic {
    Diagnostic::error(codes::BAD_CONFIG, what).in_file(path)
}

fn unknown(key: &str) -> String {
    let known: Vec<_> = OPTIONS.iter().filter_map(|opt: &OptionRow| opt.key).collect();
    format!("`{key}` is not known; known are {}", known.join(", "))
}

/// A string, or a list of strings joined like the pairs and patches of one argument.
fn string(value: &toml::Value) -> Option<OsString> {
    let list = match value {
        toml::Value::String(text) => return Some(text.into()),
        toml::Value::Array(list) => list,
        _ => return None,
    };
    let parts: Option<Vec<&str>> = list.iter().map(toml::Value::as_str).collect();
    Some(parts?.join(";").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(&'static str, String)>, String> {
        let file = parse("config.toml".into(), text.as_bytes()).map_err(|error| error.to_string())?;
        Ok(file.values.iter().map(|(opt, v)| (opt.key.unwrap(), v.to_str().unwrap().to_owned())).collect())
    }

    #[test]
    fn strings_and_lists_are_read() {
        let text = "retarget = ['gfx1030=>gfx1031', 'gfx900=>gfx902']\npolicy = \"warn\"\n";
        let mut values = read(text).unwrap();
        values.sort_unstable();
        assert_eq!(values, [("policy", "warn".to_owned()), ("retarget", "gfx1030=>gfx1031;gfx900=>gfx902".to_owned())]);
    }

    #[test]
    fn what_cannot_be_used_names_the_file_and_the_key() {
        for (text, part) in [
            ("retraget = 'x'", "`retraget` is not known; known are retarget, "),
            ("policy = 1", "`policy` is no string"),
            ("policy = [1]", "`policy` is no string"),
            ("policy =", "config.toml"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains("HS0104") && error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn files_come_in_their_order() {
        let env = |name: &str| (name == "HOME").then(|| "/home/u".into());
        let list = |env: &dyn Fn(&str) -> Option<OsString>| -> Vec<String> {
            candidates(env, Some(Path::new("/p"))).iter().map(|one| one.path.display().to_string()).collect()
        };
        let system = ["/p/etc/hotswap/config.toml", "/etc/hotswap/config.toml", "/p/lib/hotswap/defaults.toml"];
        assert_eq!(list(&env)[0], "/home/u/.config/hotswap/config.toml");
        assert_eq!(list(&env)[1..], system);
        let named = |name: &str| (name == ENV_CONFIG).then(|| "/c.toml".into());
        assert_eq!(list(&named)[0], "/c.toml");
        let none = |name: &str| (name == ENV_CONFIG).then(OsString::new);
        assert_eq!(list(&none), system);
    }

    #[test]
    fn a_named_file_must_be_there() {
        let env = |name: &str| (name == ENV_CONFIG).then(|| "/nonexistent/config.toml".into());
        assert_eq!(load(&env, None).unwrap_err().code, codes::BAD_CONFIG);
        let home = |name: &str| (name == "HOME").then(|| "/nonexistent".into());
        assert!(load(&home, Some(Path::new("/nonexistent"))).is_ok());
    }
}
