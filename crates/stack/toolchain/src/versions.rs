//! Versions in the output of tools.

use std::fmt;
use std::path::PathBuf;

/// The oldest clang whose device link HotSwap knows.
pub(crate) const OLDEST_CLANG: u32 = 22;

/// A version of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VersionNumber {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    text: String,
}

impl fmt::Display for VersionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The number behind a mark.
fn after(text: &str, mark: &str) -> Option<VersionNumber> {
    let rest = text.split_once(mark)?.1;
    let number: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let mut parts = number.split('.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
    Some(VersionNumber { major, minor, text: number.trim_end_matches('.').to_owned() })
}

/// Of clang of any vendor.
pub(crate) fn of_clang(text: &str) -> Option<VersionNumber> {
    after(text, "clang version ")
}

/// Of lld of any vendor.
pub(crate) fn of_lld(text: &str) -> Option<VersionNumber> {
    after(text, "LLD ")
}

pub(crate) fn of_cmake(text: &str) -> Option<VersionNumber> {
    after(text, "cmake version ")
}

/// HIP's version in the output of `hipcc --version`.
pub(crate) fn of_hipcc(text: &str) -> Option<String> {
    after(text, "HIP version: ").map(|version| version.text)
}

/// An installation of HIP that clang has found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HipInstallation {
    pub(crate) version: String,
    pub(crate) path: PathBuf,
}

/// HIP's version and directory in the output of `clang -v`.
pub(crate) fn of_hip(text: &str) -> Option<HipInstallation> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("Found HIP installation: "))?;
    let (path, version) = line.split_once(", version ")?;
    Some(HipInstallation { version: version.trim().to_owned(), path: path.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_the_tools_of_all_vendors() {
        let text = |version: Option<VersionNumber>| version.map(|version| version.to_string());
        assert_eq!(text(of_clang("Debian clang version 22.1.8 (3)\n")).as_deref(), Some("22.1.8"));
        assert_eq!(text(of_clang("AMD clang version 23.0.0git (x)\n")).as_deref(), Some("23.0.0"));
        assert_eq!(text(of_lld("Debian LLD 22.1.8 (compatible with GNU linkers)")).as_deref(), Some("22.1.8"));
        assert_eq!(of_cmake("cmake version 3.28.4\n").map(|v| (v.major, v.minor)), Some((3, 28)));
        assert_eq!(of_clang("gcc (Debian) 12"), None);
        assert_eq!(of_clang("clang version x"), None);
        assert_eq!(of_hipcc("HIP version: 7.2.53211-\nclang"), Some("7.2.53211".to_owned()));
        let hip = of_hip("x\n  Found HIP installation: /usr, version 7.2.53211\n");
        assert_eq!(hip, Some(HipInstallation { version: "7.2.53211".to_owned(), path: "/usr".into() }));
    }
}
