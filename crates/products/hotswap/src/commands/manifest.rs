//! `hotswap manifest`: the manifest object that a link with a plan gets.

use crate::outcome::CommandOutcome;
use crate::standard_output::output_file;
use clap::{Args, ValueEnum};
use hotswap_families::{families_of, manifest};
use hotswap_report::Diagnostic;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ManifestArguments {
    /// Hash of the plan
    #[arg(long, value_name = "HASH")]
    plan: String,
    /// Output file
    #[arg(short, value_name = "FILE", value_parser = output_file())]
    output: PathBuf,
    /// Form of the object [default: that of this machine]
    #[arg(long, value_enum)]
    format: Option<ObjectFormat>,
}

/// Formats of object files.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ObjectFormat {
    /// ELF for x86-64
    #[value(name = "elf-x86_64")]
    ElfX86_64,
    /// ELF for AArch64
    #[value(name = "elf-aarch64")]
    ElfAarch64,
    /// COFF for x86-64
    #[value(name = "coff-x86_64")]
    CoffX86_64,
}

impl From<ObjectFormat> for manifest::ManifestFormat {
    fn from(format: ObjectFormat) -> Self {
        match format {
            ObjectFormat::ElfX86_64 => Self::ElfX86_64,
            ObjectFormat::ElfAarch64 => Self::ElfAarch64,
            ObjectFormat::CoffX86_64 => Self::CoffX86_64,
        }
    }
}

impl Default for ObjectFormat {
    fn default() -> Self {
        if cfg!(target_arch = "aarch64") { Self::ElfAarch64 } else { Self::ElfX86_64 }
    }
}

pub(crate) fn run(arguments: &ManifestArguments) -> Result<CommandOutcome, Diagnostic> {
    let ManifestArguments { plan: hash, output, format } = arguments;
    let mut problems = Vec::new();
    let plan = hotswap_plan::find_plan(hash, &mut |skipped| problems.push(skipped))?;
    let format = format.unwrap_or_default().into();
    let object = manifest::manifest_object(format, hash, &plan.canonical_text(), &families_of(&plan)?)?;
    hotswap_files::replace_file(output, &object)?;
    Ok(CommandOutcome { text: String::new(), problems, ..CommandOutcome::default() })
}
