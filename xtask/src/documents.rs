//! Texts of an installation that are made, not copied: man pages, completions, the file for pkg-config, the notices of the
//! crates in the programs and their bill of materials.
//!
//! Invariants: the texts are functions of the sources: no time, no path of the machine.

use crate::install;
use crate::licences;
use crate::outcome::{During, Failure, Outcome};
use crate::run;
use std::fs;
use std::path::Path;
use std::process::Command;

const PAGES: &str = "share/man/man1";

/// Completions: `hotswap generate` makes them, and shells search them here.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "share/bash-completion/completions/hotswap"),
    ("zsh", "share/zsh/site-functions/_hotswap"),
    ("fish", "share/fish/vendor_completions.d/hotswap.fish"),
];

/// Writes all of them below an installation.
pub(crate) fn write(sources: &Path, place: &Path, can_run: bool) -> Outcome {
    put(&place.join("share/pkgconfig/hotswap-tools.pc"), &pkg_config())?;
    let crates = licences::Crates::of(sources, install::PACKAGES)?;
    put(&place.join("share/doc/hotswap/THIRD-PARTY-NOTICES"), &crates.notices()?)?;
    put(
        &place.join("share/doc/hotswap/hotswap.cdx.json"),
        &crates.bill_of_materials(&loaded_libraries(&place.join("bin/hotswap"))?)?,
    )?;
    if can_run { man_pages_and_completions(place) } else { Ok(()) }
}

/// The shared libraries that a program loads, by the names in it.
fn loaded_libraries(program: &Path) -> Outcome<Vec<String>> {
    let text = run::output(Command::new("readelf").arg("--dynamic").arg("--wide").arg(program).env("LC_ALL", "C"))?;
    let names = text.lines().filter(|line| line.contains("(NEEDED)"));
    Ok(names.filter_map(|line| Some(line.split_once('[')?.1.trim_end().trim_end_matches(']').to_owned())).collect())
}

fn man_pages_and_completions(place: &Path) -> Outcome {
    let hotswap = place.join("bin/hotswap");
    for page in generate_with_hotswap(&["pages"], &hotswap)?.lines() {
        let words: Vec<&str> = ["man"].into_iter().chain(page.strip_prefix("hotswap-")).collect();
        put(&place.join(PAGES).join(format!("{page}.1")), &generate_with_hotswap(&words, &hotswap)?)?;
    }
    let page = run::output(Command::new(place.join("bin/hotswap-clang")).arg("--hotswap-help=man"))?;
    put(&place.join(PAGES).join("hotswap-clang.1"), &page)?;
    let tools = install::TOOL_LINKS.iter().map(|name| format!("hotswap-{name}"));
    for name in tools.chain(["hotswap-clang++".to_owned()]) {
        let alias = place.join(PAGES).join(format!("{name}.1"));
        install::replace(&alias, |temporary| std::os::unix::fs::symlink("hotswap-clang.1", temporary))?;
    }
    for (shell, path) in COMPLETIONS {
        put(&place.join(path), &generate_with_hotswap(&[shell], &hotswap)?)?;
    }
    Ok(())
}

fn generate_with_hotswap(words: &[&str], hotswap: &std::path::PathBuf) -> Result<String, Failure> {
    run::output(Command::new(hotswap).arg("generate").args(words))
}

fn put(path: &Path, text: &str) -> Outcome {
    install::replace(path, |temporary| fs::write(temporary, text))
}

/// The prefix is found by the file's own place, so that the installation can be moved.
fn pkg_config() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "prefix=${{pcfiledir}}/../..\nbindir=${{prefix}}/bin\ncompiler=${{bindir}}/hotswap-clang++\n\
         cmakedir=${{prefix}}/share/cmake/HotSwap\nincludedir=${{prefix}}/include\n\n\
         Name: HotSwap tools\nDescription: registrars of the patch families that manifests of HotSwap refer to\nVersion: {version}\n\
         Libs: ${{prefix}}/lib/hotswap/libhotswap_registry.a\nCflags: -I${{includedir}}\n"
    )
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).during("read", path)
}
