//! `hotswap-host-link`: the host linker of `clang-linker-wrapper`, for relocatable device code.
//!
//! In that mode the wrapper links and bundles the device code itself and puts the fat binary into a separate object,
//! `NAME.image.wrapper-XXXXXX.o`, which is among the inputs of the host link: the only step at which targets can be
//! added.

use crate::context::CallContext;
use crate::words::CommandLine;
use crate::{child, fat_binary, openmp, refused};
use hotswap_bundle::host_object;
use hotswap_plan::Plan;
use hotswap_plan::words::{ENV_COMPRESSION_LEVEL, ENV_HOST_LINKER};
use hotswap_report::{Diagnostic, codes};
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Expands the wrapper's fat binary, then becomes the real host linker.
pub(crate) fn run(context: &CallContext, args: &[OsString]) -> Result<u8, Diagnostic> {
    let linker = env::var_os(ENV_HOST_LINKER).map(PathBuf::from).ok_or_else(|| {
        Diagnostic::error(codes::USAGE, format!("{ENV_HOST_LINKER} is not set"))
            .advise("this program is for clang-linker-wrapper only")
    })?;
    let plan = context.plan(None)?;
    let line = CommandLine::new(args)?;
    for input in line.words().filter(|word| is_image_wrapper(word)) {
        expand_object(context, &plan, Path::new(input))?;
    }
    Err(child::exec(context, &linker, args))
}

/// Whether it is the object with the registered image, as clang-linker-wrapper 22 to 24 names it.
fn is_image_wrapper(word: &OsStr) -> bool {
    let name = Path::new(word).file_name().unwrap_or_default().as_bytes();
    name.ends_with(b".o") && name.windows(14).any(|part| part == b".image.wrapper")
}

fn expand_object(context: &CallContext, plan: &Plan, path: &Path) -> Result<(), Diagnostic> {
    let object = hotswap_files::open_input(path)?;
    let level = fat_binary::level_of(env::var_os(ENV_COMPRESSION_LEVEL))?;
    let Some(fat_binary) = host_object::fatbin_of(&object).map_err(|error| error.in_file(path))? else {
        return openmp::check(context, plan, &object, path);
    };
    let findings = context.text_findings()?;
    let expansion =
        hotswap_pipeline::expand_bundle(fat_binary, plan, &findings, level).map_err(|error| error.in_file(path))?;
    refused::report(context, &expansion.refused, path)?;
    fat_binary::check_request(context, plan, expansion.bytes.as_deref().unwrap_or(fat_binary), path)?;
    if let Some(new) = &expansion.bytes {
        fat_binary::check_accepted(new).map_err(|error| error.in_file(path))?;
        let object = host_object::replace_fatbin(&object, new).map_err(|error| error.in_file(path))?;
        hotswap_files::replace_file(path, &object)?;
    }
    fat_binary::warn_of_size(expansion.bytes.as_deref().unwrap_or(fat_binary), path);
    fat_binary::report(context, &expansion, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_wrappers_own_object_is_touched() {
        for (name, expected) in [
            ("/tmp/x.hip.image.wrapper-1a2b3c.o", true),
            ("x.hip.image.wrapper.o", true),
            ("/tmp/a.o", false),
            ("libx.image.wrapper.a", false),
            ("-lx.image.wrapper", false),
        ] {
            assert_eq!(is_image_wrapper(OsStr::new(name)), expected, "{name}");
        }
    }
}
