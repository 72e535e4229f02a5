//! The tools that this binary replaces, by name.

use hotswap_report::{Diagnostic, codes};
use std::ffi::OsStr;
use std::path::Path;

/// One of the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// `lld -flavor gnu …`: the device link of the legacy driver and of `--offload-device-only`.
    Lld,
    /// `ld.lld`: the device link of the new driver; also a host linker (`-fuse-ld=lld`).
    LdLld,
    /// `clang-offload-bundler`: writes the fat binary of the legacy driver.
    Bundler,
    /// `clang-linker-wrapper`: device link, fat binary and host link of the new driver.
    LinkerWrapper,
    /// `llvm-offload-binary`: puts relocatable device code of the new driver into an offload binary.
    OffloadBinary,
    /// The older name of the same tool.
    OffloadPackager,
    /// HotSwap's own: the host linker of `clang-linker-wrapper`.
    HostLinker,
}

/// Names, as clang spells them.
const NAMES: &[ToolName] = &[
    ToolName { name: "lld", tool: Tool::Lld },
    ToolName { name: "ld.lld", tool: Tool::LdLld },
    ToolName { name: "clang-offload-bundler", tool: Tool::Bundler },
    ToolName { name: "clang-linker-wrapper", tool: Tool::LinkerWrapper },
    ToolName { name: "llvm-offload-binary", tool: Tool::OffloadBinary },
    ToolName { name: "clang-offload-packager", tool: Tool::OffloadPackager },
    ToolName { name: "hotswap-host-link", tool: Tool::HostLinker },
];

struct ToolName {
    name: &'static str,
    tool: Tool,
}

impl Tool {
    /// The tool that was called.
    pub(crate) fn from_name(arg0: &OsStr) -> Result<Self, Diagnostic> {
        let name = Path::new(arg0).file_name().unwrap_or_default();
        NAMES.iter().find(|known| name == known.name).map(|known| known.tool).ok_or_else(|| {
            let known: Vec<_> = NAMES.iter().map(|known| known.name).collect();
            Diagnostic::error(codes::USAGE, format!("called as `{}`", Path::new(name).display()))
                .advise(format!("call it by one of its names: {}", known.join(", ")))
        })
    }

    pub(crate) fn name(self) -> &'static str {
        NAMES.iter().find(|known| known.tool == self).map_or("", |known| known.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_without_its_directory_decides() {
        assert_eq!(Tool::from_name(OsStr::new("/opt/x/ld.lld")).unwrap(), Tool::LdLld);
        assert_eq!(Tool::from_name(OsStr::new("lld")).unwrap().name(), "lld");
        assert_eq!(Tool::from_name(OsStr::new("hotswap-lld")).unwrap_err().code, codes::USAGE);
    }
}
