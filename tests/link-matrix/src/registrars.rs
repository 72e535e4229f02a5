//! What is wrong with the registrars of a link, if anything, and what the link must say then.

use crate::{Expect, GHOST, families};

/// What the archive and the manifest of a link are made of.
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
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Complete, Self::ObjectRemoved, Self::LineRemoved, Self::ManifestNamesGhost];

    /// How a link has to end that looks everywhere.
    pub fn expectation(self) -> Expect {
        match self {
            Self::Complete => Expect::Links,
            Self::ObjectRemoved => Expect::ErrorNaming(families()[0].to_owned()),
            Self::LineRemoved => Expect::ErrorNaming(families()[families().len() - 1].to_owned()),
            Self::ManifestNamesGhost => Expect::ErrorNaming(GHOST.to_owned()),
        }
    }

    /// Name of the manifest, as [`Bench::manifest`](crate::Bench::manifest) gives it for `plan`
    /// and, with the family more, `ghost`.
    pub fn manifest(self) -> &'static str {
        if self == Self::ManifestNamesGhost { "ghost.manifest.o" } else { "plan.manifest.o" }
    }

    /// Name of the archive, `EXTENSION` without the dot.
    pub fn archive(self, extension: &str) -> String {
        let stem = if self == Self::ManifestNamesGhost { Self::Complete } else { self };
        format!("{stem:?}.{extension}")
    }
}
