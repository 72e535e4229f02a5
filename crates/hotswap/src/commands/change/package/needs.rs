//! The files of a package that a GPU needs although their names are those of another one: those that hosts look for by a shown
//! name, and those that links lead to.
//!
//! Absent on purpose: which files a library reads beyond their names (`hotswap-stack` has the table).

use super::Pruning;
use crate::work::packages;
use hotswap_packages::{PackageFormat, PackageLink, PackageMember};
use hotswap_report::{Diagnostic, codes};
use hotswap_stack::package_names::{ShownName, is_names_file, shown_names};
use std::fs;
use std::path::{Path, PathBuf};

/// The names that a package shows, and its links.
#[derive(Debug, Default)]
pub(super) struct PackageNeeds {
    names: Vec<ShownName>,
    links: Vec<MemberLink>,
}

/// A link with the place in the package that it leads to.
#[derive(Debug)]
struct MemberLink {
    name: PathBuf,
    target: PathBuf,
}

impl PackageNeeds {
    /// Reads the whole package once, because names and links may follow the files that they concern.
    pub(super) fn read(file: &Path, format: PackageFormat) -> Result<Self, Diagnostic> {
        let (mut names, mut links) = (Vec::new(), Vec::new());
        let mut see = |member: &PackageMember<'_>| {
            if !is_names_file(Path::new(member.name)) {
                return Ok(());
            }
            let unreadable = |error: std::io::Error| Diagnostic::error(codes::CANNOT_READ, error.to_string());
            let text = fs::read_to_string(member.content).map_err(unreadable).and_then(|text| shown_names(&text));
            names.extend(text.map_err(|error| error.in_entry(member.name))?);
            Ok(())
        };
        let mut see_link = |link: &PackageLink<'_>| {
            links.extend(link.target().map(|target| MemberLink { name: PathBuf::from(link.name), target }));
        };
        hotswap_packages::visit_with_links(file, format, &mut see, &mut see_link)?;
        Ok(Self { names, links })
    }

    /// Whether a GPU that is kept needs the data with the name `gpu`: it is that GPU, or hosts are shown that name on it.
    pub(super) fn keeps_data(&self, gpu: &str, pruning: &Pruning<'_>) -> bool {
        let shown = self.names.iter().filter(|name| name.shown == gpu);
        !pruning.drops(gpu) || shown.into_iter().any(|name| !pruning.drops(&name.own))
    }

    /// Whether a link that stays leads to the file.
    pub(super) fn is_linked(&self, member: &str, pruning: &Pruning<'_>) -> bool {
        let member = Path::new(member);
        let stays = |link: &&MemberLink| {
            let gpu = link.name.to_str().and_then(packages::gpu_of);
            gpu.is_none_or(|gpu| self.keeps_data(&gpu, pruning))
        };
        self.links.iter().filter(stays).any(|link| self.resolve(&link.target) == member)
    }

    /// The end of a chain of links; as many steps as there are links, so that a cycle ends.
    fn resolve<'n>(&'n self, target: &'n Path) -> &'n Path {
        let mut target = target;
        for _ in 0..self.links.len() {
            match self.links.iter().find(|link| link.name == target) {
                Some(next) => target = &next.target,
                None => break,
            }
        }
        target
    }
}
