//! Allowed dependencies inside the workspace. Development dependencies and the packages below `tests/` are free.

/// A package and the packages that it may use.
pub(crate) type Row = (&'static str, &'static [&'static str]);

#[rustfmt::skip]
pub(crate) const ALLOWED: &[Row] = &[
    ("hotswap-report", &[]),
    ("hotswap-files", &["hotswap-report"]),
    ("hotswap-plan", &["hotswap-report", "hotswap-files"]),
    ("hotswap-targets", &["hotswap-report"]),
    ("hotswap-code-object", &["hotswap-report", "hotswap-targets"]),
    ("hotswap-bundle", &["hotswap-report", "hotswap-files", "hotswap-targets", "hotswap-code-object"]),
    // The code that HIP loads: judges the writers of containers, and shares only their readers.
    ("hotswap-load-model", &["hotswap-report", "hotswap-files", "hotswap-targets", "hotswap-code-object", "hotswap-bundle"]),
    ("hotswap-compat", &["hotswap-report", "hotswap-targets", "hotswap-code-object", "hotswap-isa", "hotswap-program"]),
    // The interface for third parties: plain C types, none of ours.
    ("hotswap-family-abi", &[]),
    // The table that families, engine and check query.
    ("hotswap-hazards", &["hotswap-isa"]),
    ("hotswap-families", &["hotswap-report", "hotswap-plan", "hotswap-targets", "hotswap-code-object", "hotswap-isa",
                           "hotswap-family-abi", "hotswap-hazards", "hotswap-compat"]),
    ("hotswap-rewrite", &["hotswap-report", "hotswap-targets", "hotswap-code-object", "hotswap-isa", "hotswap-program"]),
    ("hotswap-adapt", &["hotswap-report", "hotswap-targets", "hotswap-code-object", "hotswap-isa", "hotswap-families",
                        "hotswap-hazards", "hotswap-program", "hotswap-rewrite"]),
    ("hotswap-pipeline", &["hotswap-report", "hotswap-files", "hotswap-plan", "hotswap-targets", "hotswap-code-object",
                           "hotswap-bundle", "hotswap-compat", "hotswap-families", "hotswap-isa", "hotswap-adapt",
                           "hotswap-device-symbols"]),
    // The containers of a file changed and the file written, for the commands and for served trees.
    ("hotswap-file-edit", &["hotswap-report", "hotswap-files", "hotswap-targets", "hotswap-code-object", "hotswap-bundle",
                            "hotswap-compat", "hotswap-load-model", "hotswap-pipeline"]),
    // The forms of what the crates below find, for all commands.
    ("hotswap-file-reports", &["hotswap-report", "hotswap-files", "hotswap-plan", "hotswap-targets", "hotswap-code-object",
                               "hotswap-bundle", "hotswap-compat", "hotswap-families", "hotswap-pipeline", "hotswap-file-edit",
                               "hotswap-isa", "hotswap-adapt", "hotswap-device-symbols", "hotswap-program", "hotswap-lint",
                               "hotswap-load-model"]),
    // Raw profiles, LLVM's tools that read them, and the report of coverage.
    ("hotswap-coverage", &["hotswap-report", "hotswap-files", "hotswap-targets", "hotswap-bundle", "hotswap-profile-drain"]),
    // Wheels, tar archives and Debian packages; their files are changed by a function that the command passes in.
    ("hotswap-packages", &["hotswap-report", "hotswap-files"]),
    // Whole trees of libraries.
    ("hotswap-stack", &["hotswap-report", "hotswap-files", "hotswap-plan", "hotswap-targets", "hotswap-code-object",
                        "hotswap-bundle", "hotswap-compat", "hotswap-load-model", "hotswap-pipeline", "hotswap-file-edit",
                        "hotswap-packages"]),
    // The compilers and libraries of the machine: programs that are asked.
    ("hotswap-toolchain", &["hotswap-report", "hotswap-files", "hotswap-targets", "hotswap-plan"]),
    // Text and JSON of instructions.
    ("hotswap-disassembly", &["hotswap-report", "hotswap-code-object", "hotswap-isa"]),
    ("hotswap", &["hotswap-report", "hotswap-files", "hotswap-plan", "hotswap-targets", "hotswap-code-object",
                  "hotswap-bundle", "hotswap-compat", "hotswap-families", "hotswap-pipeline", "hotswap-file-edit", "hotswap-isa", "hotswap-disassembly",
                  "hotswap-adapt", "hotswap-check", "hotswap-emulator", "hotswap-device-symbols", "hotswap-device-link", "hotswap-lint", "hotswap-load-model", "hotswap-coverage", "hotswap-stack",
                  "hotswap-packages", "hotswap-confirm", "hotswap-toolchain", "hotswap-file-reports"]),
    // Runs in the programs of users, and does not depend on the tools.
    ("hotswap-profile-drain", &[]),
    // Runs in the programs of users, and relabels what they load as the tools do.
    ("hotswap-names", &["hotswap-report", "hotswap-plan", "hotswap-targets", "hotswap-code-object", "hotswap-bundle",
                        "hotswap-compat", "hotswap-pipeline"]),
    // Runs in the programs of users, in the place of HSA's library.
    ("hotswap-hsa-emulated", &["hotswap-emulator", "hotswap-isa", "hotswap-targets", "hotswap-code-object"]),
    // The C interface: the same crates as the command.
    ("hotswap-c", &["hotswap-report", "hotswap-files", "hotswap-targets", "hotswap-code-object", "hotswap-bundle",
                    "hotswap-compat", "hotswap-load-model", "hotswap-pipeline", "hotswap-isa", "hotswap-adapt", "hotswap-device-symbols",
                    "hotswap-device-link"]),
    // Rows' language, importer and generator: a build dependency of the tables, never in a program.
    ("hotswap-isa-meta", &[]),
    // Data only.
    ("hotswap-isa-tables", &["hotswap-isa-meta"]),
    ("hotswap-isa", &["hotswap-isa-tables"]),
    // Operations of instructions as data and functions; then the machine that runs them.
    ("hotswap-semantics", &["hotswap-isa"]),
    ("hotswap-emulator", &["hotswap-report", "hotswap-targets", "hotswap-code-object", "hotswap-isa", "hotswap-semantics"]),
    // Judges what the rewriter makes, and shares nothing with it but decoder, program model and certificate.
    ("hotswap-check", &["hotswap-report", "hotswap-targets", "hotswap-code-object", "hotswap-isa", "hotswap-program",
                        "hotswap-emulator"]),
    // Kernels for a GPU that judges the emulator, whose results it has as data: it must not contain it.
    ("hotswap-confirm", &["hotswap-report", "hotswap-files", "hotswap-plan", "hotswap-targets", "hotswap-code-object", "hotswap-bundle", "hotswap-compat",
                          "hotswap-pipeline", "hotswap-isa"]),
    ("hotswap-program", &["hotswap-report", "hotswap-targets", "hotswap-code-object", "hotswap-isa"]),
    ("hotswap-device-symbols", &["hotswap-report", "hotswap-targets", "hotswap-code-object", "hotswap-isa",
                                 "hotswap-program"]),
    ("hotswap-device-link", &["hotswap-report", "hotswap-targets", "hotswap-code-object", "hotswap-isa", "hotswap-program",
                              "hotswap-device-symbols"]),
    // The checker shares nothing with the checked code except decoder, program model and data.
    ("hotswap-lint", &["hotswap-report", "hotswap-targets", "hotswap-code-object", "hotswap-isa", "hotswap-program",
                       "hotswap-hazards"]),
    // The wrapper judges arguments and plans; the contents of objects are left to the interposer.
    ("hotswap-driver-wrapper", &["hotswap-report", "hotswap-files", "hotswap-plan", "hotswap-targets", "hotswap-bundle", "hotswap-compat",
                                 "hotswap-families", "hotswap-pipeline"]),
    ("hotswap-linker-plugin", &["hotswap-report", "hotswap-files", "hotswap-plan", "hotswap-targets", "hotswap-code-object",
                                "hotswap-bundle", "hotswap-compat", "hotswap-families", "hotswap-pipeline",
                                "hotswap-device-symbols", "hotswap-device-link", "hotswap-load-model"]),
    // The tasks build the tools and must run when the tools do not compile.
    ("xtask", &["hotswap-report", "hotswap-files", "hotswap-userland"]),
];
