//! The additions and the parts that are left out of each, one row each: names, and texts of the sources.

/// One kind of addition with all of its parts.
pub(super) struct Addition {
    pub(super) what: &'static str,
    /// A patch family that `cargo xtask new-family` writes first.
    pub(super) family: Option<&'static str>,
    pub(super) changes: &'static [Change],
    /// Arguments of cargo that write generated pages, with the switch that blesses them.
    pub(super) blessing: &'static [&'static [&'static str]],
    /// Arguments of cargo that check.
    pub(super) checks: &'static [&'static [&'static str]],
    pub(super) omissions: &'static [Omission],
}

/// A part that is left out.
pub(super) struct Omission {
    pub(super) part: &'static str,
    /// The changes where everything is there.
    pub(super) changes: &'static [Change],
    /// The words of a check.
    pub(super) told: &'static str,
}

/// A change of one file of the workspace.
pub(super) enum Change {
    Create {
        file: &'static str,
        text: &'static str,
    },
    Remove {
        file: &'static str,
    },
    /// The file is what it was before the addition.
    Restore {
        file: &'static str,
    },
    /// The line that begins with `old`, and the indented lines behind it, once more, with `new` in its place.
    CopyRow {
        file: &'static str,
        old: &'static str,
        new: &'static str,
    },
    /// The text comes before `place`.
    Insert {
        file: &'static str,
        text: &'static str,
        place: &'static str,
    },
    Replace {
        file: &'static str,
        old: &'static str,
        new: &'static str,
    },
}

const fn insert(file: &'static str, text: &'static str, place: &'static str) -> Change {
    Change::Insert { file, text, place }
}

const fn replace(file: &'static str, old: &'static str, new: &'static str) -> Change {
    Change::Replace { file, old, new }
}

const fn without(part: &'static str, changes: &'static [Change], told: &'static str) -> Omission {
    Omission { part, changes, told }
}

const PROCESSORS: &str = "crates/amdgpu/targets/src/table.rs";
const INSTRUCTIONS: &str = "crates/amdgpu/isa-tables/rows/targets.isa";
const HIP_GENERICS: &str = "crates/containers/load-model/src/generics.rs";
const EMULATED: &str = "crates/emulation/hsa-emulated/src/product.rs";
const PLAN: &str = "crates/base/plan/src/plan.rs";
const PLAN_ROWS: &str = "crates/base/plan/src/options.rs";
const CONTAINER: &str = "crates/containers/bundle/src/container.rs";
const BUNDLE: &str = "crates/containers/bundle/src/lib.rs";
const CONTENTS: &str = "crates/containers/bundle/src/contents.rs";
const TRIAL_FORMAT: &str = "crates/containers/bundle/src/trial.rs";
const CHOICE: &str = "crates/containers/load-model/src/choice.rs";
const IMAGES: &str = "crates/containers/load-model/src/offload_images.rs";
const OPEN: &str = "crates/retarget/file-edit/src/opened_container.rs";
const RETARGET: &str = "crates/products/hotswap/src/commands/retarget.rs";
const REQUIRE: &str = "crates/containers/load-model/src/required_code.rs";
const UNSUITED: &str = "crates/retarget/file-edit/src/unsuited.rs";
const CMAKE_PAGE: &str = "docs/guide/cmake.md";
const FAMILIES: &str = "crates/retarget/families/patches.def";
const FAMILY_MODULES: &str = "crates/retarget/families/src/family/mod.rs";

/// A processor that does not exist.
const GPU_ROW: &str = "    sibling_row(\"gfx1030\", native_row(\"gfx1037\", \"10.37\", 0x66, NO_FILE, IsaFamily::Rdna2, Both, (No, No), RDNA2)),\n";
const LONE_GPU_ROW: &str =
    "    native_row(\"gfx1037\", \"10.37\", 0x66, NO_FILE, IsaFamily::Rdna2, Both, (No, No), RDNA2),\n";
const GPU_HIP: &str = "    loaded_later(\"gfx1037\", \"gfx10-3-generic\"),\n";
const GPU_EMULATED: &str = "    \"gfx1037\" 0x164f   2  1 x 1   2200 2600  128   4096   256      0    1 true;\n";

const SWITCH_FIELD: &str = "    /// A trial.\n    pub trial: bool,\n";
const SWITCH_ROW: &str = r#"    PlanOption {
        key: "trial",
        argument: "--hotswap-trial=",
        env: "HOTSWAP_TRIAL",
        value: "yes",
        help: "a trial",
        is_list: false,
        is_request: true,
        command: Some(CommandOption { name: "trial", value: None, help: "A trial" }),
        keyword: Keyword { name: "TRIAL", values: "", help: "a trial" },
        line: "trial",
        rank: 11,
        json: "trial",
        get: |plan| PlanValue::Switch(plan.trial),
        set: |plan, word| {
            plan.trial = word == "yes";
            if plan.trial { Ok(()) } else { Err(crate::plan::syntax_error("write `yes`")) }
        },
        copy: |plan, other| plan.trial = other.trial,
    },
"#;

const TRIAL_SOURCE: &str = r#"//! A trial.

use crate::container::{ContainerForm, ContainerFormat, DeviceContents, FoundContainer};
use hotswap_report::Diagnostic;

/// Files that begin with `TRIAL`.
#[derive(Debug)]
pub(crate) struct TrialFormat;

impl ContainerFormat for TrialFormat {
    fn begins(&self, bytes: &[u8]) -> bool {
        bytes.starts_with(b"TRIAL")
    }

    fn is_section(&self, _name: &str) -> bool {
        false
    }

    fn next(&self, _bytes: &[u8], at: usize) -> Result<Option<usize>, Diagnostic> {
        Ok((at == 0).then_some(0))
    }

    fn extent(&self, bytes: &[u8]) -> Result<(ContainerForm, usize), Diagnostic> {
        Ok((ContainerForm::Trial, bytes.len()))
    }

    fn read<'a>(&self, found: &FoundContainer<'a>) -> Result<DeviceContents<'a>, Diagnostic> {
        Ok(found.device(Vec::new()))
    }
}
"#;

const FORM_NAME: &str = "            Self::Trial => f.write_str(\"trial\"),\n";
const UNDECIDED_FORM: &str = "ContainerForm::Trial` not covered";

const TEST_PLANS: &[&[&str]] =
    &[&["test", "-p", "hotswap-plan", "-p", "hotswap-driver-wrapper", "--lib", "--tests", "--no-fail-fast"]];

#[rustfmt::skip]
pub(super) const ADDITIONS: &[Addition] = &[
    Addition {
        what: "a GPU that is a sibling of known ones",
        family: None,
        changes: &[
            insert(PROCESSORS, GPU_ROW, "    native_row(\"gfx1100\","),
            replace(PROCESSORS, "\"gfx1036\"])", "\"gfx1036\", \"gfx1037\"])"),
            Change::CopyRow { file: INSTRUCTIONS, old: "gfx1036 ", new: "gfx1037 " },
            insert(HIP_GENERICS, GPU_HIP, "    loaded_later(\"gfx1154\""),
            insert(EMULATED, GPU_EMULATED, "    \"gfx1100\" 0x744c"),
        ],
        blessing: &[],
        checks: &[&["test", "-p", "hotswap-targets", "-p", "hotswap-compat", "-p", "hotswap-load-model", "-p", "hotswap-hsa-emulated", "--lib", "--tests", "--no-fail-fast"]],
        omissions: &[
            without("its row", &[replace(PROCESSORS, GPU_ROW, "")], "gfx10-3-generic covers unknown gfx1037"),
            without("its group", &[replace(PROCESSORS, GPU_ROW, LONE_GPU_ROW)], "=>gfx1037"),
            without("its place in the generic target", &[replace(PROCESSORS, ", \"gfx1037\"])", "])")], "gfx10-3-generic covers gfx1030 and not its sibling gfx1037"),
            without("its instructions", &[Change::Restore { file: INSTRUCTIONS }], "only the table of processors, or only the rows of instructions, has [\"gfx1037\"]"),
            without("HIP's map of generic targets", &[replace(HIP_GENERICS, GPU_HIP, "")], "gfx1037 has no row, and gfx10-3-generic covers it"),
            without("the emulated device", &[replace(EMULATED, GPU_EMULATED, "")], "these GPUs have no row: [\"gfx1037\"]"),
        ],
    },
    Addition {
        what: "an option of plans",
        family: None,
        changes: &[
            insert(PLAN, SWITCH_FIELD, "    /// Whether code may be made for a GPU although"),
            insert(PLAN_ROWS, SWITCH_ROW, "];\n\nimpl Plan {"),
        ],
        blessing: TEST_PLANS,
        checks: TEST_PLANS,
        omissions: &[
            without("its row", &[replace(PLAN_ROWS, SWITCH_ROW, "")], "no row of PLAN_OPTIONS sets the field `trial` of Plan"),
            without("its field", &[replace(PLAN, SWITCH_FIELD, "")], "no field `trial` on type"),
            without("CMake's list of options", &[Change::Restore { file: "cmake/HotSwapOptions.cmake" }], "HotSwapOptions.cmake"),
            without("the page of CMake", &[Change::Restore { file: CMAKE_PAGE }], CMAKE_PAGE),
            without("the compiler's list of options", &[Change::Restore { file: "driver-wrapper/OPTIONS.md" }], "OPTIONS.md is not what --hotswap-help=markdown prints"),
        ],
    },
    Addition {
        what: "a form of containers",
        family: None,
        changes: &[
            Change::Create { file: TRIAL_FORMAT, text: TRIAL_SOURCE },
            insert(BUNDLE, "mod trial;\n", "mod unit_reference;"),
            insert(CONTENTS, "use crate::trial::TrialFormat;\n", "use hotswap_report::{Diagnostic, codes};"),
            insert(CONTENTS, "&TrialFormat, ", "&BundleFormat, &OffloadBinaries"),
            insert(CONTAINER, "    /// A trial.\n    Trial,\n", "    /// A code object without a container."),
            insert(CONTAINER, FORM_NAME, "            Self::Bare => f.write_str(\"bare\"),"),
            replace(CONTAINER, "Self::Bundle | Self::CompressedBundle(_) => true,\n            Self::OffloadBinary(_) | Self::ObjectVariant", "Self::Bundle | Self::CompressedBundle(_) => true,\n            Self::Trial | Self::OffloadBinary(_) | Self::ObjectVariant"),
            replace(CONTAINER, "Self::OffloadBinary(_) | Self::ObjectVariant | Self::Bare => false", "Self::Trial | Self::OffloadBinary(_) | Self::ObjectVariant | Self::Bare => false"),
            replace(CONTAINER, "Self::ObjectVariant | Self::Bare => true", "Self::Trial | Self::ObjectVariant | Self::Bare => true"),
            replace(CONTAINER, "Self::Bundle | Self::OffloadBinary(_) | Self::ObjectVariant", "Self::Trial | Self::Bundle | Self::OffloadBinary(_) | Self::ObjectVariant"),
            replace(CHOICE, "            | ContainerForm::Bare => None,", "            | ContainerForm::Trial\n            | ContainerForm::Bare => None,"),
            insert(IMAGES, "            | ContainerForm::Trial\n", "            | ContainerForm::Bare => problems"),
            replace(OPEN, "ContainerForm::Bare => return", "ContainerForm::Trial | ContainerForm::Bare => return"),
            replace(RETARGET, "ContainerForm::OffloadBinary(_) | ContainerForm::ObjectVariant | ContainerForm::Bare => {", "ContainerForm::Trial | ContainerForm::OffloadBinary(_) | ContainerForm::ObjectVariant | ContainerForm::Bare => {"),
            replace(REQUIRE, "ContainerForm::KernelArchive | ContainerForm::Bare => GroupKey", "ContainerForm::Trial | ContainerForm::KernelArchive | ContainerForm::Bare => GroupKey"),
            insert(UNSUITED, "        | ContainerForm::Trial\n", "        | ContainerForm::KernelArchive\n"),
        ],
        blessing: &[],
        checks: &[&["clippy", "-p", "hotswap-bundle", "-p", "hotswap-load-model", "-p", "hotswap-file-edit", "-p", "hotswap", "--quiet", "--", "-D", "warnings", "-A", "clippy::disallowed_methods"]],
        omissions: &[
            without("its file", &[Change::Remove { file: TRIAL_FORMAT }], "file not found for module `trial`"),
            without("its row", &[replace(CONTENTS, "&TrialFormat, ", ""), replace(CONTENTS, "use crate::trial::TrialFormat;\n", "")], "struct `TrialFormat` is never constructed"),
            without("its variant", &[replace(CONTAINER, "    /// A trial.\n    Trial,\n", "")], "named `Trial` found for enum"),
            without("its name", &[replace(CONTAINER, FORM_NAME, "")], UNDECIDED_FORM),
            without("whether it takes further targets", &[replace(CONTAINER, "Self::Trial | Self::OffloadBinary(_) | Self::ObjectVariant | Self::Bare => false", "Self::OffloadBinary(_) | Self::ObjectVariant | Self::Bare => false")], UNDECIDED_FORM),
            without("what HIP loads of it", &[replace(CHOICE, "            | ContainerForm::Trial\n", "")], UNDECIDED_FORM),
            without("how it is opened for changes", &[replace(OPEN, "ContainerForm::Trial | ", "")], UNDECIDED_FORM),
            without("how it is retargeted", &[replace(RETARGET, "ContainerForm::Trial | ", "")], UNDECIDED_FORM),
            without("why it is not", &[replace(UNSUITED, "        | ContainerForm::Trial\n", "")], UNDECIDED_FORM),
            without("how it is verified", &[replace(REQUIRE, "ContainerForm::Trial | ", "")], UNDECIDED_FORM),
        ],
    },
    Addition {
        what: "a patch family",
        family: Some("trial"),
        changes: &[],
        blessing: &[],
        checks: &[
            &["clippy", "-p", "hotswap-families", "--quiet", "--", "-D", "warnings", "-A", "clippy::disallowed_methods"],
            &["test", "-p", "hotswap-families", "-p", "hotswap-adapt", "--lib", "--tests", "--no-fail-fast"],
        ],
        omissions: &[
            without("its line in patches.def", &[Change::Restore { file: FAMILIES }], "src/family/trial.rs has no line in patches.def"),
            without("its file", &[Change::Remove { file: "crates/retarget/families/src/family/trial.rs" }], "file not found for module `trial`"),
            without("its module", &[replace(FAMILY_MODULES, "mod trial;\n", "")], "hotswap_register_trial_patch"),
            without("its test case", &[Change::Remove { file: "crates/retarget/families/tests/code/trial.s" }], "trial.expect is of no case"),
            without("what its test case expects", &[Change::Remove { file: "crates/retarget/families/tests/code/trial.expect" }], "trial.s has no file with what it expects"),
        ],
    },
];
