//! Compiler caches on the search path, and whether the compiler behind `hotswap-clang++` is in their keys.
//!
//! Absent on purpose: changing their settings, and builds of CMake with `find_package(HotSwap)`, whose commands have the key.

use crate::part_report::{PartReport, PartState};
use crate::parts;
use crate::probe;
use hotswap_report::Diagnostic;
use std::env;
use std::path::Path;

/// The setting of ccache under which it asks HotSwap for the toolchain.
const CCACHE: &str = "%compiler% --hotswap-identity";
/// The variable whose value sccache adds to its keys.
const SCCACHE: &str = "SCCACHE_C_CUSTOM_CACHE_BUSTER";

/// A part, if there is a cache.
pub(crate) fn examine(scratch: &Path) -> Result<Option<PartReport>, Diagnostic> {
    let (ccache, sccache) = (probe::on_path("ccache".as_ref())?, probe::on_path("sccache".as_ref())?);
    let Some(path) = ccache.clone().or_else(|| sccache.clone()) else { return Ok(None) };
    let mut report = PartReport::new(parts::CACHES, PartState::Good).with(None, Some(path));
    if let Some(ccache) = ccache {
        report = report.note(ccache_note(scratch, &ccache)?);
    }
    if sccache.is_some() {
        report = report.note(sccache_note());
    }
    Ok(Some(report))
}

fn ccache_note(scratch: &Path, ccache: &Path) -> Result<String, Diagnostic> {
    let setting = probe::run(scratch, ccache, &["--get-config", "compiler_check"])?.stdout;
    if setting.contains("--hotswap-identity") {
        return Ok("ccache asks hotswap-clang++ for the toolchain".to_owned());
    }
    Ok(format!(
        "ccache does not see an upgrade of the clang behind hotswap-clang++: ccache --set-config compiler_check='{CCACHE}' \
         (CMake's find_package(HotSwap) needs no setting)"
    ))
}

fn sccache_note() -> String {
    if env::var_os(SCCACHE).is_some_and(|value| !value.is_empty()) {
        return format!("sccache adds {SCCACHE} to its keys");
    }
    format!(
        "sccache does not see an upgrade of the clang behind hotswap-clang++: export {SCCACHE}=$(hotswap-clang++ \
         --hotswap-identity) before the build (CMake's find_package(HotSwap) needs no setting)"
    )
}
