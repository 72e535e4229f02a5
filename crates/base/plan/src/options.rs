//! The options of a plan, one row each: the arguments of the compiler, of `hotswap plan` and of CMake, their help, and
//! their lines in the plan's text are all read from this table.
//!
//! A new option is a row here and a field of [`Plan`]. `cmake/HotSwapOptions.cmake` and the table in `docs/guide/cmake.md` are
//! printed from the rows (`tests/cmake.rs`), `driver-wrapper/OPTIONS.md` and the table in `docs/guide/compiler.md` by
//! `hotswap-clang --hotswap-help=markdown`.
//!
//! Absent on purpose: effects of the values, which are where [`Plan`]'s fields are read, and options not part of
//! a plan (the driver wrapper).

use crate::plan::{DeviceLinkAction, NamesPolicy, Plan, Policy, RetargetPair, add_functions, word_of};
use hotswap_report::Diagnostic;
use std::collections::BTreeSet;

/// One option of a plan.
#[derive(Debug)]
pub struct PlanOption {
    /// Its name in configuration files.
    pub key: &'static str,
    /// Its argument between the tools, which follows [`crate::words::CHANNEL`] and ends with `=`.
    pub argument: &'static str,
    pub env: &'static str,
    /// The name of its value in help, or its values, separated by `|`.
    pub value: &'static str,
    /// Its effect, without a final stop, in the compiler's help.
    pub help: &'static str,
    /// Repeated arguments add up; of others the last one counts.
    pub is_list: bool,
    /// It makes a plan by itself; the others only change one.
    pub is_request: bool,
    /// Its option of `hotswap plan`; `None` for the positional arguments.
    pub command: Option<CommandOption>,
    /// Its keyword in CMake.
    pub keyword: Keyword,
    /// The first word of its lines in the plan's text.
    pub line: &'static str,
    /// The place of its lines in the plan's text, which the plan's hash covers.
    pub rank: u8,
    /// Its key in the JSON form of a plan.
    pub json: &'static str,
    /// Its value in a plan.
    pub get: fn(&Plan) -> PlanValue<'_>,
    /// Sets it, or adds to a list.
    ///
    /// # Errors
    /// [`hotswap_report::codes::PLAN_SYNTAX`] for a value without a meaning.
    pub set: fn(&mut Plan, &str) -> Result<(), Diagnostic>,
    /// Takes its value from another plan.
    pub copy: fn(&mut Plan, &Plan),
}

/// An option of `hotswap plan`.
#[derive(Debug)]
pub struct CommandOption {
    /// Its name after `--`.
    pub name: &'static str,
    /// The name of its value; `None` for a switch, which stands for [`PlanOption::value`].
    pub value: Option<&'static str>,
    pub help: &'static str,
}

/// A keyword of `add_hotswap_target`.
#[derive(Debug)]
pub struct Keyword {
    pub name: &'static str,
    /// Its values in the synopsis; empty for a switch.
    pub values: &'static str,
    /// Its row in `docs/guide/cmake.md`.
    pub help: &'static str,
}

/// The value of an option in a plan.
#[derive(Debug, PartialEq, Eq)]
pub enum PlanValue<'p> {
    /// One of several words. The plan's text has it always, or unless it is the default.
    Word {
        word: &'static str,
        /// Whether the plan's text has the default, too.
        is_always_written: bool,
    },
    /// Whether [`PlanOption::value`] is set.
    Switch(bool),
    /// A number, if it is set.
    Number(Option<u32>),
    Names(&'p BTreeSet<String>),
    Pairs(&'p BTreeSet<RetargetPair>),
}

/// Every option, in the order of help.
pub const PLAN_OPTIONS: &[PlanOption] = &[
    PlanOption {
        key: "retarget",
        argument: "--hotswap-retarget=",
        env: "HOTSWAP_RETARGET",
        value: "PAIRS",
        help: "make code objects for further processors: SOURCE=>TARGET[,TARGET...], several separated by `;`; the word may be repeated",
        is_list: true,
        is_request: true,
        command: None,
        keyword: Keyword {
            name: "RETARGET",
            values: "…",
            help: "one or more `SOURCE=>TARGET[,TARGET…]`; the sources must be in `CMAKE_HIP_ARCHITECTURES`",
        },
        line: "retarget",
        rank: 4,
        json: "pairs",
        get: |plan| PlanValue::Pairs(&plan.pairs),
        set: Plan::add_pairs,
        copy: |plan, other| plan.pairs.clone_from(&other.pairs),
    },
    PlanOption {
        key: "patches",
        argument: "--hotswap-patches=",
        env: "HOTSWAP_PATCHES",
        value: "NAMES",
        help: "apply these patch families, too, separated by commas",
        is_list: true,
        is_request: true,
        command: Some(CommandOption {
            name: "patches",
            value: Some("NAMES"),
            help: "Patch families to apply beyond those that the pairs need, separated by commas",
        }),
        keyword: Keyword {
            name: "PATCHES",
            values: "…",
            help: "patch families to apply beyond those that the route needs",
        },
        line: "patch",
        rank: 5,
        json: "patches",
        get: |plan| PlanValue::Names(&plan.patches),
        set: Plan::add_patches,
        copy: |plan, other| plan.patches.clone_from(&other.patches),
    },
    PlanOption {
        key: "policy",
        argument: "--hotswap-policy=",
        env: "HOTSWAP_POLICY",
        value: "error|warn|keep|compile",
        help: "what happens when a target cannot be made: the build fails (default), a warning, only a line in the record, or the source is compiled for the target",
        is_list: false,
        is_request: false,
        command: Some(CommandOption {
            name: "policy",
            value: Some("POLICY"),
            help: "Action when a target cannot be made: error, warn, keep or compile [default: error]",
        }),
        keyword: Keyword {
            name: "POLICY",
            values: "error|warn|keep|compile",
            help: "when a target cannot be made: `error` (default) stops the build, `warn` omits it with a warning, `keep` omits it and notes that in the record, `compile` compiles the source for it",
        },
        line: "policy",
        rank: 0,
        json: "policy",
        get: |plan| PlanValue::Word { word: word_of(&Policy::WORDS, plan.policy), is_always_written: true },
        set: |plan, text| text.parse().map(|policy| plan.policy = policy),
        copy: |plan, other| plan.policy = other.policy,
    },
    PlanOption {
        key: "names",
        argument: "--hotswap-names=",
        env: "HOTSWAP_NAMES",
        value: "compile|error|warn|derive",
        help: "what happens where the text of a source depends on the name of the GPU: it is compiled for the target, too (default), the build fails, a warning, or the text is not asked",
        is_list: false,
        is_request: false,
        command: Some(CommandOption {
            name: "names",
            value: Some("NAMES"),
            help: "Action where a source's text depends on the name of the GPU: compile, error, warn or derive [default: compile]",
        }),
        keyword: Keyword {
            name: "NAMES",
            values: "compile|error|warn|derive",
            help: "when a source's text [depends on the name of the GPU](gpu-names.md): `compile` (default) compiles it for the target as well, `error` stops the build, `warn` derives with a warning, `derive` does not check",
        },
        line: "names",
        rank: 2,
        json: "names",
        get: |plan| PlanValue::Word { word: word_of(&NamesPolicy::WORDS, plan.names), is_always_written: false },
        set: |plan, text| text.parse().map(|names| plan.names = names),
        copy: |plan, other| plan.names = other.names,
    },
    PlanOption {
        key: "allow",
        argument: "--hotswap-allow=",
        env: "HOTSWAP_ALLOW",
        value: "experimental",
        help: "apply experimental pairs, too, for which the only evidence is the compatibility matrix (`hotswap compat`)",
        is_list: false,
        is_request: false,
        command: Some(CommandOption {
            name: "allow-experimental",
            value: None,
            help: "Apply experimental pairs, too, for which the only evidence is the compatibility matrix",
        }),
        keyword: Keyword {
            name: "ALLOW_EXPERIMENTAL",
            values: "",
            help: "also apply [experimental pairs](../reference/pairs.md)",
        },
        line: "allow",
        rank: 1,
        json: "experimental",
        get: |plan| PlanValue::Switch(plan.experimental),
        set: Plan::allow,
        copy: |plan, other| plan.experimental = other.experimental,
    },
    PlanOption {
        key: "device-link",
        argument: "--hotswap-device-link=",
        env: "HOTSWAP_DEVICE_LINK",
        value: "check|fix|off",
        help: "kernels that are launched with fewer registers than the functions need that they call: the build fails (check), or they get them (fix); by default checked where a device link has several separately compiled objects",
        is_list: false,
        is_request: true,
        command: Some(CommandOption {
            name: "device-link",
            value: Some("ACTION"),
            help: "Action where kernels have fewer registers than the functions need that they call: check, fix or off",
        }),
        keyword: Keyword {
            name: "DEVICE_LINK",
            values: "check|fix|off",
            help: "kernels that are [launched with fewer registers](device-functions.md#device-links-of-separately-compiled-objects) than the functions need that they call: `check` stops the build, `fix` raises the numbers, `off` ignores it; by default checked where a device link has several separately compiled objects",
        },
        line: "device-link",
        rank: 6,
        json: "device_link",
        get: |plan| PlanValue::Word {
            word: word_of(&DeviceLinkAction::WORDS, plan.device_link),
            is_always_written: false,
        },
        set: |plan, text| text.parse().map(|action| plan.device_link = action),
        copy: |plan, other| plan.device_link = other.device_link,
    },
    PlanOption {
        key: "device-link-stack",
        argument: "--hotswap-device-link-stack=",
        env: "HOTSWAP_DEVICE_LINK_STACK",
        value: "BYTES",
        help: "scratch of a work-item, at least, where a kernel reaches a recursion, a call through a pointer or a frame of unknown size: compared by --hotswap-device-link=check, written by fix",
        is_list: false,
        is_request: false,
        command: Some(CommandOption {
            name: "device-link-stack",
            value: Some("BYTES"),
            help: "Scratch of a work-item, at least, where a kernel reaches a recursion, a call through a pointer or a frame of unknown size",
        }),
        keyword: Keyword {
            name: "DEVICE_LINK_STACK",
            values: "BYTES",
            help: "scratch of a work-item, at least, where a kernel reaches [a recursion, a call through a pointer](device-functions.md#scratch-without-a-known-bound) or a frame of unknown size",
        },
        line: "device-link-stack",
        rank: 10,
        json: "device_link_stack",
        get: |plan| PlanValue::Number(plan.device_link_stack),
        set: Plan::set_device_link_stack,
        copy: |plan, other| plan.device_link_stack = other.device_link_stack,
    },
    PlanOption {
        key: "device-symbols",
        argument: "--hotswap-device-symbols=",
        env: "HOTSWAP_DEVICE_SYMBOLS",
        value: "table",
        help: "put a table of the device functions into each code object (`hotswap symbols`); -fhotswap-device-symbols is the same",
        is_list: false,
        is_request: true,
        command: Some(CommandOption {
            name: "device-symbols",
            value: None,
            help: "Put a table of the device functions into each code object",
        }),
        keyword: Keyword {
            name: "DEVICE_SYMBOLS",
            values: "",
            help: "put a [table of the device functions](device-functions.md) into each code object",
        },
        line: "device-symbols",
        rank: 7,
        json: "device_symbols",
        get: |plan| PlanValue::Switch(plan.device_symbols),
        set: Plan::add_device_symbols,
        copy: |plan, other| plan.device_symbols = other.device_symbols,
    },
    PlanOption {
        key: "device-exports",
        argument: "--hotswap-device-exports=",
        env: "HOTSWAP_DEVICE_EXPORTS",
        value: "FUNCTIONS",
        help: "device functions for other code objects, mangled names separated by commas: they are kept, and named in the table of functions",
        is_list: true,
        is_request: true,
        command: Some(CommandOption {
            name: "device-exports",
            value: Some("FUNCTIONS"),
            help: "Device functions for other code objects, mangled names separated by commas",
        }),
        keyword: Keyword {
            name: "DEVICE_EXPORTS",
            values: "…",
            help: "device functions [for other code objects](device-functions.md#functions-across-code-objects), mangled names: they are kept, and named in the table of functions",
        },
        line: "device-export",
        rank: 8,
        json: "device_exports",
        get: |plan| PlanValue::Names(&plan.device_exports),
        set: |plan, text| add_functions(&mut plan.device_exports, text),
        copy: |plan, other| plan.device_exports.clone_from(&other.device_exports),
    },
    PlanOption {
        key: "device-imports",
        argument: "--hotswap-device-imports=",
        env: "HOTSWAP_DEVICE_IMPORTS",
        value: "FUNCTIONS",
        help: "device functions of other code objects, mangled names separated by commas: calls go through words that are filled when the code is loaded",
        is_list: true,
        is_request: true,
        command: Some(CommandOption {
            name: "device-imports",
            value: Some("FUNCTIONS"),
            help: "Device functions of other code objects, mangled names separated by commas",
        }),
        keyword: Keyword {
            name: "DEVICE_IMPORTS",
            values: "…",
            help: "device functions [of other code objects](device-functions.md#functions-across-code-objects), mangled names: calls go through words that are filled when the code is loaded",
        },
        line: "device-import",
        rank: 9,
        json: "device_imports",
        get: |plan| PlanValue::Names(&plan.device_imports),
        set: |plan, text| add_functions(&mut plan.device_imports, text),
        copy: |plan, other| plan.device_imports.clone_from(&other.device_imports),
    },
];

impl Plan {
    /// Whether no option asks for anything; those that only change a request do not count.
    pub fn is_empty(&self) -> bool {
        let nothing = Self::default();
        let mut requests = PLAN_OPTIONS.iter().filter(|option| option.is_request);
        requests.all(|option| (option.get)(self) == (option.get)(&nothing))
    }
}

impl PlanOption {
    /// The option with that key.
    pub fn find(key: &str) -> Option<&'static Self> {
        PLAN_OPTIONS.iter().find(|option| option.key == key)
    }

    /// The values in its lines of the plan's text.
    pub(crate) fn line_values(&self, plan: &Plan) -> Vec<String> {
        match (self.get)(plan) {
            PlanValue::Word { word, is_always_written } => {
                let is_default = (self.get)(plan) == (self.get)(&Plan::default());
                if is_always_written || !is_default { vec![word.to_owned()] } else { Vec::new() }
            }
            PlanValue::Switch(true) => vec![self.value.to_owned()],
            PlanValue::Switch(false) => Vec::new(),
            PlanValue::Number(number) => number.iter().map(u32::to_string).collect(),
            PlanValue::Names(names) => names.iter().cloned().collect(),
            PlanValue::Pairs(pairs) => pairs.iter().map(RetargetPair::to_string).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_places_are_unique() {
        let unique = |name: fn(&PlanOption) -> String| {
            let names: BTreeSet<String> = PLAN_OPTIONS.iter().map(name).collect();
            names.len() == PLAN_OPTIONS.len()
        };
        assert!(unique(|option| option.key.to_owned()) && unique(|option| option.argument.to_owned()));
        assert!(unique(|option| option.env.to_owned()) && unique(|option| option.keyword.name.to_owned()));
        assert!(unique(|option| option.line.to_owned()) && unique(|option| option.rank.to_string()));
        assert!(unique(|option| option.json.to_owned()));
        assert!(PLAN_OPTIONS.iter().all(|option| option.argument.ends_with('=')));
    }

    /// A field without a row could not be set, and would be missing in the plan's text, its hash and every tool.
    #[test]
    fn every_field_has_a_row() {
        let mut changed = BTreeSet::new();
        for option in PLAN_OPTIONS {
            let mut own = BTreeSet::new();
            for word in words_of(option) {
                let mut plan = Plan::default();
                (option.set)(&mut plan, word).unwrap();
                let fields = fields_of(&plan).into_iter().zip(fields_of(&Plan::default()));
                own.extend(fields.filter(|(one, other)| one != other).map(|(one, _)| one.name));
            }
            assert!(own.len() == 1, "`{}` sets {own:?}", option.key);
            changed.extend(own);
        }
        for field in fields_of(&Plan::default()) {
            // No argument of a build sets that one.
            let is_set = changed.contains(&field.name) || field.name == "unchecked_names";
            assert!(is_set, "no row of PLAN_OPTIONS sets the field `{}` of Plan", field.name);
        }
    }

    #[derive(PartialEq)]
    struct FieldText {
        name: String,
        text: String,
    }

    /// The fields as the compiler prints them.
    fn fields_of(plan: &Plan) -> Vec<FieldText> {
        let mut fields: Vec<FieldText> = Vec::new();
        for line in format!("{plan:#?}").lines() {
            let own = line.strip_prefix("    ").filter(|rest| !rest.starts_with([' ', '}', ']', ')']));
            match (own.and_then(|rest| rest.split_once(": ")), fields.last_mut()) {
                (Some((name, text)), _) => fields.push(FieldText { name: name.to_owned(), text: text.to_owned() }),
                (None, Some(last)) => last.text += line,
                (None, None) => {}
            }
        }
        fields
    }

    #[test]
    fn a_plan_is_empty_until_an_option_requests_something() {
        for option in PLAN_OPTIONS {
            let mut plan = Plan::default();
            (option.set)(&mut plan, words_of(option)[0]).unwrap();
            assert_eq!(plan.is_empty(), !option.is_request, "{}", option.key);
        }
        assert!(Plan { unchecked_names: true, ..Plan::default() }.is_empty());
    }

    fn words_of(option: &PlanOption) -> Vec<&'static str> {
        match option.key {
            "retarget" => vec!["gfx1030=>gfx1031"],
            "patches" => vec!["target_note"],
            "device-exports" | "device-imports" => vec!["_Z3addfi"],
            "device-link-stack" => vec!["1", "4096"],
            _ => option.value.split('|').collect(),
        }
    }

    /// Each word in help can be set, is read back, and can be taken from another plan; no other word can be set.
    #[test]
    fn words_in_help_are_those_that_can_be_set() {
        for option in PLAN_OPTIONS {
            for word in words_of(option) {
                let (mut plan, mut other) = (Plan::default(), Plan::default());
                (option.set)(&mut plan, word).unwrap();
                let found = (option.get)(&plan);
                assert!(option.line_values(&plan) == [word] || found == (option.get)(&other), "{word}");
                (option.copy)(&mut other, &plan);
                assert_eq!(other, plan, "{word}");
            }
            assert!((option.set)(&mut Plan::default(), "No such word").is_err(), "{}", option.key);
        }
    }
}
