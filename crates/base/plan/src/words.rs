//! Arguments and variables by which the tools communicate: one definition for all of them. Those of the options of a
//! plan are in [`crate::PLAN_OPTIONS`].

use hotswap_files::reads;
use hotswap_report::Diagnostic;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Clang's option that passes the next argument to the device linker, in every driver mode.
pub const CHANNEL: &str = "-Xoffload-linker";
/// The token: written by the build system, followed by the plan's hash.
pub const PLAN: &str = "--hotswap-plan=";
/// The plan's file, for builds that declare their inputs.
pub const PLAN_FILE: &str = "--hotswap-plan-file=";
/// The identity of the toolchain, written by the build system beside the token. Its only effect is its presence.
pub const TOOLCHAIN: &str = "--hotswap-toolchain=";
/// Compile once for each class of identical siblings: `1` or `0`.
pub const COALESCE: &str = "--hotswap-coalesce=";
/// [`COALESCE`] in the form that users write.
pub const COALESCE_FLAG: &str = "-fhotswap-coalesce";
pub const NO_COALESCE_FLAG: &str = "-fno-hotswap-coalesce";
/// Headers that are read from precompiled ones: `off`, `implicit` or `auto`.
pub const WARM_HEADERS: &str = "--hotswap-warm-headers=";
/// [`WARM_HEADERS`] in the form that users write.
pub const WARM_HEADERS_FLAG: &str = "-fhotswap-warm-headers";
pub const NO_WARM_HEADERS_FLAG: &str = "-fno-hotswap-warm-headers";
/// The request for a table of device functions in each code object, in the form that users write.
pub const DEVICE_SYMBOLS_FLAG: &str = "-fhotswap-device-symbols";
pub const NO_DEVICE_SYMBOLS_FLAG: &str = "-fno-hotswap-device-symbols";
/// Whether options that clang refuses for a GPU are for the host's code alone: `1` or `0`.
pub const HOST_OPTIONS: &str = "--hotswap-host-options=";
/// Whether a program whose device code has counters gets the drain that writes them: `1` or `0`.
pub const DRAIN: &str = "--hotswap-drain=";
/// [`DRAIN`] with `0`, in the form that users write.
pub const NO_DRAIN_FLAG: &str = "--hotswap-no-drain";
/// Sources of relocatable device code whose counters have names under one symbol, which the interposer renames. Added
/// by the wrapper for clang 22, with and without a plan.
pub const COUNTER_NAMES: &str = "--hotswap-counter-names";
/// The prefix of every argument of ours except [`COALESCE_FLAG`], which only the wrapper sees; the
/// interposer removes such arguments.
pub const PREFIX: &str = "--hotswap-";

/// Set by the wrapper: how many instances of it are active above.
pub const ENV_ACTIVE: &str = "HOTSWAP_ACTIVE";
/// Set by the wrapper for the tools of the device link: the plan's hash.
pub const ENV_PLAN: &str = "HOTSWAP_PLAN_TOKEN";
/// Set by the wrapper: the plan's canonical text.
pub const ENV_PLAN_TEXT: &str = "HOTSWAP_PLAN_TEXT";
/// Set by the wrapper: the findings about the source's text for the plan's targets ([`crate::TextFindings`]).
pub const ENV_TEXT: &str = "HOTSWAP_TEXT";
/// Set by the wrapper: targets for which some units of a link lend the bitcode of another
/// processor, separated by blanks.
pub const ENV_LENT: &str = "HOTSWAP_LENT";
/// Set by the wrapper where relocatable code is coalesced: target IDs whose bitcode in the unit is that of another one, as
/// `TARGET=SOURCE`, separated by blanks.
pub const ENV_UNIT_IMAGES: &str = "HOTSWAP_UNIT_IMAGES";
/// Set by the wrapper: processors whose device link is not carried out, because their code is derived from that of another
/// one, separated by blanks.
pub const ENV_SKIPPED: &str = "HOTSWAP_SKIPPED";
/// Set by the wrapper under the policy `compile`: the file to which the targets are appended that cannot
/// be derived, as [`crate::TextFindings`].
pub const ENV_REFUSED: &str = "HOTSWAP_REFUSED";
/// Set by the wrapper: the directory with the real `lld`, `ld.lld`, `clang-offload-bundler` and
/// `clang-linker-wrapper`. May be set by the user, too.
pub const ENV_LLVM_BIN: &str = "HOTSWAP_LLVM_BIN";
/// Set by the wrapper: values of clang's `-B`, separated by colons, where the real tools are looked for first.
pub const ENV_TOOL_PREFIXES: &str = "HOTSWAP_TOOL_PREFIXES";
/// Set by the wrapper: the target IDs that the command requests, separated by blanks, where each of its fat binaries must
/// have all of them.
pub const ENV_REQUEST: &str = "HOTSWAP_REQUEST";
/// Set by the wrapper to `1` where the device link's output is delivered to the user as a bare code object.
pub const ENV_BARE_OUTPUT: &str = "HOTSWAP_BARE_OUTPUT";
/// Set by the `clang-linker-wrapper` shim: the host linker that it replaces.
pub const ENV_HOST_LINKER: &str = "HOTSWAP_HOST_LINKER";
/// Set by the `clang-linker-wrapper` shim for our host linker: the level of `--offload-compression-level`.
pub const ENV_COMPRESSION_LEVEL: &str = "HOTSWAP_COMPRESSION_LEVEL";
/// Set by the user: a file to which one JSON line is written for each device link and each bundle step.
pub const ENV_TRACE: &str = "HOTSWAP_TRACE";
/// Set by the user: print each command that is run, on standard error.
pub const ENV_VERBOSE: &str = "HOTSWAP_VERBOSE";
/// Set by the user: the directory of the plan files.
pub const ENV_PLAN_DIR: &str = "HOTSWAP_PLAN_DIR";

/// Set by the user: [`PLAN_FILE`] for every command.
pub const ENV_PLAN_FILE: &str = "HOTSWAP_PLAN_FILE";

/// Directory of plan files inside a build tree, searched from the working directory upwards.
pub const PLAN_DIRECTORY: &str = ".hotswap/plans";

/// The path of a tool by a value of clang's `-B`, which is a directory, or else the beginning of paths.
///
/// # Errors
/// [`hotswap_report::codes::CANNOT_READ`]: another tool would take the place of that one.
pub fn tool_by_prefix(prefix: &OsStr, tool: &str) -> Result<PathBuf, Diagnostic> {
    let directory = Path::new(prefix);
    if reads::find_metadata(directory)?.is_some_and(|meta| meta.is_dir()) {
        return Ok(directory.join(tool));
    }
    let mut path = prefix.to_owned();
    path.push(tool);
    Ok(path.into())
}
