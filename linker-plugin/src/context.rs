//! The wrapper's data from the environment, and the paths of the real tools.

use crate::message::say;
use crate::tool::Tool;
use hotswap_files::reads;
use hotswap_plan::{Plan, TextFindings, words};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::{Processor, TargetId};
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A target ID whose bitcode in a unit is that of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnitImage {
    pub(crate) target: String,
    pub(crate) source: String,
}

fn unit_images(text: &str) -> Vec<UnitImage> {
    let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
    pairs.map(|(target, source)| UnitImage { target: target.to_owned(), source: source.to_owned() }).collect()
}

/// The plan as the wrapper states it.
#[derive(Debug)]
struct StatedPlan {
    hash: String,
    text: String,
}

/// The context of one call.
#[derive(Debug)]
pub(crate) struct CallContext {
    /// The tool that was called.
    pub(crate) tool: Tool,
    /// Absent outside builds with a plan.
    plan: Option<StatedPlan>,
    /// Findings about the source's text for the plan's targets, as text.
    findings: String,
    /// Targets for which units of a link lend the bitcode of another processor, separated by blanks.
    lent: String,
    /// Target IDs whose bitcode in a unit is that of another one, with that one.
    pub(crate) unit_images: Vec<UnitImage>,
    /// Processors whose device link is not carried out, separated by blanks.
    skipped: String,
    /// Target IDs that every fat binary of the command must have.
    pub(crate) requested: Vec<TargetId>,
    /// Directory of the real tools, if the wrapper or the user named one.
    llvm_bin: Option<PathBuf>,
    /// Values of the user's `-B`, which clang searches first.
    prefixes: Vec<OsString>,
    /// The device link's output is the user's, unchanged: no bundle will follow.
    pub(crate) bare_output: bool,
    /// The file for targets that cannot be derived, where the wrapper compiles for them.
    pub(crate) refused: Option<PathBuf>,
    /// The file to which a line for each step is appended.
    pub(crate) trace: Option<PathBuf>,
    /// Print the commands before they run.
    pub(crate) verbose: bool,
}

impl CallContext {
    pub(crate) fn from_env(tool: Tool) -> Result<Self, Diagnostic> {
        let requested = environment_utf8_text(words::ENV_REQUEST)?.unwrap_or_default();
        Ok(Self {
            tool,
            plan: environment_utf8_text(words::ENV_PLAN)?
                .zip(environment_utf8_text(words::ENV_PLAN_TEXT)?)
                .map(|(hash, text)| StatedPlan { hash, text }),
            findings: environment_utf8_text(words::ENV_TEXT)?.unwrap_or_default(),
            lent: environment_utf8_text(words::ENV_LENT)?.unwrap_or_default(),
            skipped: environment_utf8_text(words::ENV_SKIPPED)?.unwrap_or_default(),
            unit_images: unit_images(&environment_utf8_text(words::ENV_UNIT_IMAGES)?.unwrap_or_default()),
            // Other names (`native`) are resolved by clang.
            requested: requested.split_whitespace().filter_map(|id| id.parse().ok()).collect(),
            llvm_bin: nonempty_environment_value(words::ENV_LLVM_BIN).map(PathBuf::from),
            prefixes: nonempty_environment_value(words::ENV_TOOL_PREFIXES)
                .iter()
                .flat_map(|list| split_prefixes(list))
                .collect(),
            bare_output: nonempty_environment_value(words::ENV_BARE_OUTPUT).is_some(),
            refused: nonempty_environment_value(words::ENV_REFUSED).map(PathBuf::from),
            trace: nonempty_environment_value(words::ENV_TRACE).map(PathBuf::from),
            verbose: nonempty_environment_value(words::ENV_VERBOSE).is_some_and(|value| value != "0"),
        })
    }

    /// Whether the user names directories that clang searches for tools first.
    pub(crate) fn has_tool_prefixes(&self) -> bool {
        !self.prefixes.is_empty()
    }

    /// Whether this build has a plan, for tools whose arguments lack a token.
    pub(crate) fn has_plan(&self) -> bool {
        self.plan.is_some()
    }

    /// The plan, checked against its hash and against the token in the arguments, if there is one.
    ///
    /// A token without a plan in the environment (`COMPILER_PATH` was set by hand) is looked up in the directories
    /// of plan files instead.
    pub(crate) fn plan(&self, token: Option<&str>) -> Result<Plan, Diagnostic> {
        let StatedPlan { hash, text } = match (&self.plan, token) {
            (None, Some(token)) => {
                return hotswap_plan::find_plan(token, &mut |skipped| say(skipped));
            }
            (Some(stated), _) => stated,
            (None, None) => {
                let what = "the device linker got a word of HotSwap, but no plan";
                return Err(Diagnostic::error(codes::PLAN_MISSING, what).advise("compile with hotswap-clang"));
            }
        };
        if let Some(token) = token.filter(|token| *token != hash) {
            let what = format!("the command line says {token}, the wrapper said {hash}");
            return Err(Diagnostic::error(codes::PLAN_CONFLICT, what));
        }
        let plan = Plan::parse(text)?;
        if plan.hash() != *hash {
            let what = format!("this interposer gives the plan the hash {}, the wrapper said {hash}", plan.hash());
            return Err(Diagnostic::error(codes::PLAN_CHANGED, what)
                .advise("the wrapper and the interposer are of different builds of HotSwap: install it again"));
        }
        Ok(plan)
    }

    /// The findings about the source's text for the plan's targets; none where no source was available.
    pub(crate) fn text_findings(&self) -> Result<TextFindings, Diagnostic> {
        TextFindings::parse(&self.findings)
    }

    /// Targets for which units of a link lend the bitcode of another processor.
    pub(crate) fn lent_targets(&self) -> impl Iterator<Item = &str> {
        self.lent.split_whitespace()
    }

    /// Whether the processor's device link is not carried out, because its code is derived.
    pub(crate) fn skips(&self, processor: &Processor) -> bool {
        self.skipped.split_whitespace().any(|name| name == processor.name)
    }

    /// Whether there are such processors.
    pub(crate) fn skips_links(&self) -> bool {
        !self.skipped.is_empty()
    }

    /// The hash of the plan, for messages and the trace.
    pub(crate) fn plan_hash(&self) -> Option<&str> {
        self.plan.as_ref().map(|stated| stated.hash.as_str())
    }

    /// The real tool of that name that clang would start: the one of the user's `-B`, else [`Self::real_tool`].
    pub(crate) fn real_tool_of_driver(&self, name: &str) -> Result<PathBuf, Diagnostic> {
        for path in self.prefixes.iter().map(|prefix| words::tool_by_prefix(prefix, name)) {
            let path = path?;
            if is_self(&path)? == Some(false) {
                return Ok(path);
            }
        }
        self.real_tool(name)
    }

    /// The real tool of that name.
    ///
    /// In `HOTSWAP_LLVM_BIN`, else on `PATH`, which is clang's order, too; never this binary itself.
    pub(crate) fn real_tool(&self, name: &str) -> Result<PathBuf, Diagnostic> {
        if let Some(path) = self.llvm_bin.as_ref().map(|directory| directory.join(name)) {
            match is_self(&path)? {
                Some(false) => return Ok(path),
                Some(true) => return Err(Diagnostic::error(codes::RECURSION, name).in_file(path)),
                None => {}
            }
        }
        for path in which::which_all(name).into_iter().flatten() {
            if is_self(&path)? == Some(false) {
                return Ok(path);
            }
        }
        let error = Diagnostic::error(codes::NO_TOOL, format!("no `{name}`, and none on PATH"));
        Err(self.llvm_bin.iter().fold(error, |error, directory| error.in_file(directory)))
    }
}

fn nonempty_environment_value(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

fn environment_utf8_text(name: &str) -> Result<Option<String>, Diagnostic> {
    nonempty_environment_value(name).map(OsString::into_string).transpose().map_err(|_| not_utf8(name))
}

fn split_prefixes(list: &OsStr) -> Vec<OsString> {
    list.as_bytes().split(|byte| *byte == b':').map(|prefix| OsStr::from_bytes(prefix).to_owned()).collect()
}

/// Whether the file is this very binary; `None` if such a file does not exist.
fn is_self(path: &Path) -> Result<Option<bool>, Diagnostic> {
    let Some(file) = reads::find_metadata(path)? else { return Ok(None) };
    let own = reads::find_metadata(Path::new("/proc/self/exe"))?;
    // Not to know it could start this binary again and again.
    let own = own.ok_or_else(|| Diagnostic::error(codes::NO_PROC, "/proc/self/exe does not exist"))?;
    Ok(Some(own.dev() == file.dev() && own.ino() == file.ino()))
}

fn not_utf8(name: &str) -> Diagnostic {
    Diagnostic::error(codes::BAD_CONFIG, format!("{name} is not UTF-8"))
}
