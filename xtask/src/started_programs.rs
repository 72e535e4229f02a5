//! A rule of `tidy`: the crates of the product that start programs deny the methods of the standard library that panic where the
//! output of a child cannot be read (`clippy.toml`), and no other crate starts programs.
//!
//! Absent on purpose: build scripts, tests and tasks of development, which may end by a panic.

use crate::tidy::is_product;

/// The crates that start programs.
const DIRECTORIES: &[&str] = &[
    "crates/base/files/",
    "crates/evidence/confirm/",
    "crates/products/hotswap/",
    "crates/profile/coverage/",
    "crates/stack/stack/",
    "crates/stack/toolchain/",
    "driver-wrapper/",
    "linker-plugin/",
];
/// The roots of these crates, which have the denial.
const ROOTS: &[&str] = &[
    "crates/base/files/src/lib.rs",
    "crates/evidence/confirm/src/lib.rs",
    "crates/products/hotswap/src/main.rs",
    "crates/profile/coverage/src/lib.rs",
    "crates/stack/stack/src/lib.rs",
    "crates/stack/toolchain/src/lib.rs",
    "driver-wrapper/src/lib.rs",
    "driver-wrapper/src/main.rs",
    "linker-plugin/src/main.rs",
];
const DENIED: &str = "#![cfg_attr(not(test), deny(clippy::disallowed_methods))]";
const START: &str = "Command::new(";

/// Adds a complaint for a root that does not deny the methods, and for a crate without such a root that starts programs.
pub(crate) fn check_text(name: &str, text: &str, complaints: &mut Vec<String>) {
    if ROOTS.contains(&name) && !text.lines().any(|line| line == DENIED) {
        complaints.push(format!("{name}: it starts programs, and lacks `{DENIED}`"));
    }
    if !is_product(name)
        || name.ends_with("build.rs")
        || name.contains("/build/")
        || DIRECTORIES.iter().any(|one| name.starts_with(one))
    {
        return;
    }
    let code = text.lines().take_while(|line| *line != "#[cfg(test)]");
    if code.into_iter().any(|line| line.contains(START)) {
        complaints.push(format!("{name}: it starts a program: add its crate to xtask/src/started_programs.rs"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_without_the_denial_and_other_crates_that_start_programs_are_found() {
        let mut complaints = Vec::new();
        check_text(ROOTS[0], &format!("//! Files.\n{DENIED}\n"), &mut complaints);
        check_text("crates/base/files/src/input.rs", "    Command::new(\"ld\");\n", &mut complaints);
        check_text("crates/amdgpu/isa/src/lib.rs", "#[cfg(test)]\n    Command::new(\"ld\");\n", &mut complaints);
        check_text("tests/harness/src/lib.rs", "    Command::new(\"ld\");\n", &mut complaints);
        assert!(complaints.is_empty(), "{complaints:?}");
        check_text(ROOTS[0], "//! Files.\n", &mut complaints);
        check_text("crates/amdgpu/isa/src/lib.rs", "    Command::new(\"ld\");\n", &mut complaints);
        assert_eq!(complaints.len(), 2, "{complaints:?}");
    }
}
