//! The state of the registrars of a link, and the expected message of the link.

use crate::{Expect, GHOST, families};

/// The contents of the archive and of the manifest of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registrars {
    /// Every family has its registrar.
    Complete,
    /// The object of the first family was taken out of the archive.
    ObjectRemoved,
    /// The archive was made from a `patches.def` without the line of the last family.
    LineRemoved,
    /// The archive is complete; the manifest names [`GHOST`] as well.
    ManifestNamesGhost,
}

impl Registrars {
    pub const ALL: [Self; 4] = [Self::Complete, Self::ObjectRemoved, Self::LineRemoved, Self::ManifestNamesGhost];

    /// The expected result of a link that searches all archives.
    pub fn expectation(self) -> Expect {
        match self {
            Self::Complete => Expect::Links,
            Self::ObjectRemoved => Expect::ErrorNaming(families()[0].to_owned()),
            Self::LineRemoved => Expect::ErrorNaming(families()[families().len() - 1].to_owned()),
            Self::ManifestNamesGhost => Expect::ErrorNaming(GHOST.to_owned()),
        }
    }

    /// Name of the manifest, as [`LinkBench::manifest`](crate::LinkBench::manifest) returns it for `plan` and, with the
    /// additional family, `ghost`.
    pub fn manifest(self) -> &'static str {
        if self == Self::ManifestNamesGhost { "ghost.manifest.o" } else { "plan.manifest.o" }
    }

    /// Name of the archive, `EXTENSION` without the dot.
    pub fn archive(self, extension: &str) -> String {
        let stem = if self == Self::ManifestNamesGhost { Self::Complete } else { self };
        format!("{stem:?}.{extension}")
    }
}
