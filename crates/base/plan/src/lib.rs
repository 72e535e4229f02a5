//! The plan: the requests of one build to HotSwap, and their transport.
//!
//! A plan has one canonical text. Its hash covers the text and the identity of this HotSwap build; the build system
//! writes the hash on the command line (`-Xoffload-linker --hotswap-plan=HASH`), so that a changed plan or a changed
//! HotSwap rebuilds. The text is in a file named after the hash; the wrapper finds it and passes it to the tools of the
//! device link through the environment ([`words`]).
//!
//! Absent on purpose: the definition of targets and the allowed pairs (`hotswap-compat`).

mod findings;
mod options;
mod plan;
mod store;
mod text;
mod unit_plan;
mod variables;
pub mod warm_headers;
pub mod words;

pub use findings::{TextFinding, TextFindings, TextMark};
pub use options::{CommandOption, Keyword, PLAN_OPTIONS, PlanOption, PlanValue};
pub use plan::{DeviceLinkAction, NamedChoice, NamesPolicy, Plan, Policy, RetargetPair};
pub use store::{find_plan, load_plan, save_plan};
pub use unit_plan::{
    UNIT_PLAN_SECTION, UNIT_REFERENCE_SECTION, UNIT_SYMBOL, add_unit_targets, join_plans, parse_unit_plans, unit_symbol,
};
pub use variables::{is_known_variable, unknown_variables};

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Fingerprint of this HotSwap build: 16 hexadecimal digits over its sources.
pub const IDENTITY: &str = env!("HOTSWAP_IDENTITY");
