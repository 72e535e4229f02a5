//! The task `book`: the pages of `docs` as a book, by mdbook, and a check of all links in it.
//!
//! `--pictures` draws the pictures of the pages ([`pictures`]).
//!
//! mdbook and its icons are Debian's; their files are laid over the userland, read-only, where it runs. The check reads the pages that mdbook made: each link to a page must name a file,
//! and each fragment an identifier in it.
//!
//! Absent on purpose: links to other sites, which need a network.

mod pictures;

use crate::outcome::{During, Outcome, fail};
use crate::packages::{self, Origin, Package, Packages};
use crate::recipe::Part;
use crate::{paths, remove, run, setup};
use clap::Parser;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes a book of the pages below docs, and checks its links.
#[derive(Parser)]
struct Options {
    /// Draw the pictures below docs, from their data, and do nothing else.
    #[arg(long)]
    pictures: bool,
}

const PACKAGES: [Package; 2] = [sid("mdbook"), sid("node-fortawesome-fontawesome-free")];

const fn sid(name: &'static str) -> Package {
    Package { name, origin: Origin::Sid }
}

/// Mounts, and the run of mdbook. Arguments: the layers of its root directory, the directory for the outputs, the pages.
const SCRIPT: &str = r#"
mount -t overlay none -o "lowerdir=$1" "$2/root"
mount -t tmpfs none "$2/root/mnt"
mkdir "$2/root/mnt/pages" "$2/root/mnt/output" "$2/html"
mount --bind "$3" "$2/root/mnt/pages"
mount --bind "$2/html" "$2/root/mnt/output"
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/mnt LANG=C.UTF-8 chroot "$2/root" mdbook build --dest-dir /mnt/output /mnt/pages
"#;

pub(crate) fn main(words: Vec<String>) -> Outcome {
    if Options::parse_from(words).pictures {
        return pictures::write();
    }
    let work = paths::scratch("book");
    remove::delete(&work)?;
    fs::create_dir_all(work.join("root")).during("create", &work)?;
    let (userland, _lock) = setup::ensure(Part::Tests)?;
    let store = Packages::open()?;
    let unpacked = PACKAGES.iter().map(|package| Ok(store.get(package)?.directory)).collect::<Outcome<Vec<_>>>()?;
    let layers: Vec<String> = unpacked.iter().map(|path| path.display().to_string()).collect();
    let layers = format!("{}:{}", layers.join(":"), userland.root().display());
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "/bin/sh", "-ec", SCRIPT, "sh", &layers]);
    run::quiet(command.arg(&work).arg(paths::workspace().join("docs")))?;
    let pages = pages(&work.join("html"))?;
    let broken = broken_links(&pages, &paths::workspace().join("docs"));
    if !broken.is_empty() {
        return fail(format!("links that lead nowhere:\n{}", broken.join("\n")));
    }
    println!("{} pages in {}, all links lead somewhere", pages.len(), work.join("html").display());
    Ok(())
}

/// The pages of the book, by their path in it. The page for printing repeats all others.
fn pages(directory: &Path) -> Outcome<BTreeMap<PathBuf, String>> {
    let mut pages = BTreeMap::new();
    for (path, _) in packages::files(directory)? {
        let name = path.strip_prefix(directory)?.to_owned();
        let is_page = name.extension().is_some_and(|extension| extension == "html");
        if is_page && !["print.html", "toc.html"].iter().any(|other| name == Path::new(other)) {
            pages.insert(name, fs::read_to_string(&path).during("read", &path)?);
        }
    }
    Ok(pages)
}

/// `PAGE: LINK` for each link between pages that leads nowhere.
fn broken_links(pages: &BTreeMap<PathBuf, String>, sources: &Path) -> Vec<String> {
    let mut broken = Vec::new();
    for (name, text) in pages {
        for link in values(text, "href") {
            let (page, fragment) = link.split_once('#').unwrap_or((link, ""));
            let is_page = link.contains('#') || page.ends_with(".html") || page.ends_with(".md");
            let target = if page.is_empty() { name.clone() } else { joined(name, page) };
            let is_outside = target.starts_with("..");
            let is_there = match () {
                // Other sites, style sheets and pictures, and the page for printing.
                () if link.contains("://") || page.ends_with("print.html") || !(is_page || is_outside) => true,
                // Files of the sources beside the pages. mdbook gives all pages its own extension.
                () if is_outside => sources.join(target.to_string_lossy().replace(".html", ".md")).exists(),
                () => pages.get(&target).is_some_and(|text| fragment.is_empty() || has_identifier(text, fragment)),
            };
            broken.extend((!is_there).then(|| format!("{}: {link}", name.display())));
        }
    }
    broken
}

/// A relative link of a page, as a path in the book; it begins with `..` if it leads out of the book.
fn joined(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().map(Path::to_owned).unwrap_or_default();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." if path.file_name().is_some() => drop(path.pop()),
            _ => path.push(part),
        }
    }
    path
}

fn has_identifier(page: &str, fragment: &str) -> bool {
    values(page, "id").any(|id| id == fragment)
}

/// The values of an attribute.
fn values<'t>(text: &'t str, attribute: &str) -> impl Iterator<Item = &'t str> {
    let start = format!(" {attribute}=\"");
    text.split(&start).skip(1).collect::<Vec<_>>().into_iter().filter_map(|rest| rest.split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_missing_pages_and_headings_are_found() {
        let text = "<h2 id=\"here\">x</h2><a href=\"#here\"></a><a href=\"b.html#there\"></a><a href=\"#nowhere\"></a>\
                    <a href=\"c.html\"></a><a href=\"../src/\"></a><a href=\"../absent.html\"></a><a href=\"https://a.b/c.html\"></a>";
        let below = "<a href=\"../b.html#there\"></a><a href=\"../a.html#there\"></a><a href=\"../c.html\"></a>\
                     <a href=\"d.html\"></a><a href=\"../../src/\"></a><a href=\"../../absent.html\"></a>";
        let pages = [("a.html", text), ("b.html", "<h2 id=\"there\">y</h2>"), ("part/d.html", below)];
        let pages = pages.map(|(name, text)| (PathBuf::from(name), text.to_owned())).into();
        assert_eq!(
            broken_links(&pages, &paths::workspace().join("xtask/src")),
            [
                "a.html: #nowhere",
                "a.html: c.html",
                "a.html: ../absent.html",
                "part/d.html: ../a.html#there",
                "part/d.html: ../c.html",
                "part/d.html: ../../absent.html"
            ]
        );
    }
}
