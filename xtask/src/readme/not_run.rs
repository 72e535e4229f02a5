//! The commands of the pages that the check does not run: one row each, with the reason.
//!
//! Invariant: each row is used; one that no page has any more is a failure.

/// A command that is not run.
pub(super) struct NotRun {
    /// The page, below the workspace.
    pub(super) page: &'static str,
    /// The beginning of the command.
    pub(super) start: &'static str,
    /// Why it is not run here, and which test does what it does.
    #[expect(dead_code, reason = "it is for readers of the table")]
    pub(super) reason: &'static str,
}

const fn row(page: &'static str, start: &'static str, reason: &'static str) -> NotRun {
    NotRun { page, start, reason }
}

/// Libraries of hundreds of megabytes, which the tests of packages process.
const LIBRARY: &str =
    "needs a ROCm library of a distribution; crates/products/hotswap/tests/real_retarget.rs and real_serve.rs run it";
const WHEEL: &str =
    "needs a wheel from a package index; crates/products/hotswap/tests/packages.rs does it with wheels of its own";
/// The userland has no pytest, and the page's project no library with tests.
const PULL_REQUEST: &str =
    "needs a reader's library, its tests and its history; tests/profile-bench/tests/coverage.rs reports with --diff";

pub(super) const NOT_RUN: &[NotRun] = &[
    row("docs/guide/confirm.md", "hotswap confirm", "needs a GPU; the page runs it on an emulated one as well"),
    row("docs/guide/device-code.md", "hotswap retarget librocrand", LIBRARY),
    row("docs/guide/device-code.md", "hotswap retarget Kernels.so", LIBRARY),
    row(
        "docs/reference/libhotswap.md",
        "cc examples/tool/callees.c",
        "the userland has no pkg-config; crates/products/libhotswap/tests/installed.rs compiles tools with what the installed file says",
    ),
    row("docs/guide/profiles.md", "python3 -m pytest", PULL_REQUEST),
    row("docs/guide/profiles.md", "hotswap profile report libk.so", PULL_REQUEST),
    row("docs/guide/remote-builds.md", "hotswap serve ", LIBRARY),
    row(
        "docs/guide/remote-builds.md",
        "ccache --set-config",
        "would change the settings of the user's own cache; `cargo xtask remote --caches` uses it",
    ),
    row("docs/guide/serve.md", "hotswap serve gfx1031 --root", LIBRARY),
    row("docs/guide/serve.md", "hotswap serve --check", LIBRARY),
    row("docs/guide/serve.md", "hotswap serve --undo", LIBRARY),
    row(
        "docs/guide/serve.md",
        "hotswap serve --try",
        "tests/dispatch/tests/libraries.rs does it with the libraries of Debian",
    ),
    row("docs/guide/uses.md", "hotswap uses /usr/lib", LIBRARY),
    row("docs/guide/uses.md", "hotswap uses ~/rocm-gfx1031", LIBRARY),
    row("docs/guide/serve.md", ". ~/rocm-gfx1031/env.sh", LIBRARY),
    row("docs/guide/serve.md", "./program", LIBRARY),
    row("docs/guide/serve.md", "hotswap prune some_rocm", WHEEL),
    row("docs/guide/serve.md", "hotswap serve gfx1031 some_rocm", WHEEL),
    row("docs/guide/serve.md", "hotswap serve gfx1031 onnxruntime", WHEEL),
    row("docs/guide/serve.md", "pip install", WHEEL),
    row("docs/guide/serve.md", "python3 model.py", WHEEL),
];

/// The row of a command.
pub(super) fn row_of(page: &str, command: &str) -> Option<usize> {
    NOT_RUN.iter().position(|row| row.page == page && command.starts_with(row.start))
}
