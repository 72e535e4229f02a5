//! GPUs for which a program lacks code, in itself or in a library that is loaded with it.
//!
//! HIP 7.2 says nothing about them by default, and may crash when a kernel is started, so the user is warned before. SPIR-V serves
//! every GPU if the comgr that HIP loads compiles it, which is asked.
//! Of compressed code only the tables of entries are read.
//!
//! Absent on purpose: libraries that a program loads later (`dlopen`), programs of a script.

use crate::work::comgr::{self, SpirvSupport};
use crate::work::inventory::{self, InventoryDepth};
use crate::work::probe::{is_unusable, on_path};
use hotswap_files::reads;
use hotswap_report::{Diagnostic, Severity, codes};
use hotswap_targets::TargetId;
use object::elf::FileHeader64;
use object::endian::LittleEndian;
use object::read::elf::{FileHeader, ProgramHeader};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The target of SPIR-V entries.
const SPIRV: &str = "amdgcnspirv";

/// A warning for each GPU and each file whose code objects do not serve it, and for what could not be read: it is not known to
/// serve. `libraries` is the search path of the program.
pub(super) fn without_code(program: &OsStr, libraries: &OsStr, gpus: &[TargetId]) -> Vec<Diagnostic> {
    // The system says why a program that does not exist cannot be started.
    let program = match find_program(program) {
        Ok(Some(program)) => program,
        Ok(None) => return Vec::new(),
        Err(error) => return vec![unknown_code_warning(error)],
    };
    let mut comgr = ComgrAnswer { libraries, support: None };
    let mut found = warnings(&program, gpus, &mut comgr);
    match loaded_with(&program, libraries) {
        Ok(files) => found.extend(files.iter().flat_map(|file| warnings(file, gpus, &mut comgr))),
        Err(error) => found.push(unknown_code_warning(error)),
    }
    found
}

fn unknown_code_warning(error: Diagnostic) -> Diagnostic {
    let what = format!("{}, so it is not known which GPUs have code in it or in its libraries", error.what);
    Diagnostic { severity: Severity::Warning, what, ..error }
}

/// The answer of the comgr that the program finds, asked when the first file needs it.
struct ComgrAnswer<'a> {
    libraries: &'a OsStr,
    support: Option<SpirvSupport>,
}

impl ComgrAnswer<'_> {
    /// Why SPIR-V is not compiled; `None` where it is.
    fn refusal(&mut self) -> Option<String> {
        if self.support.is_none() {
            self.support = comgr::spirv_support(Some(self.libraries), None).ok();
        }
        match self.support.as_ref().unwrap_or(&SpirvSupport::Unknown) {
            SpirvSupport::Compiled => None,
            SpirvSupport::Refused(reason) => Some(format!("the comgr that HIP loads does not compile: {reason}")),
            SpirvSupport::Unknown => Some("comgr would compile, and does not answer whether it can".to_owned()),
        }
    }
}

fn warnings(file: &Path, gpus: &[TargetId], comgr: &mut ComgrAnswer<'_>) -> Vec<Diagnostic> {
    let code = match code_of(file) {
        Ok(code) => code,
        Err(error) => return vec![unknown_code_warning(error)],
    };
    let missing = gpus.iter().filter(|gpu| !code.targets.iter().any(|target| target_serves_gpu(target, gpu)));
    if code.has_spirv {
        let texts =
            missing.filter_map(|gpu| Some(format!("for {gpu} it has SPIR-V alone, which {}", comgr.refusal()?)));
        return texts.map(|text| unserved_warning(file, text)).collect();
    }
    if code.targets.is_empty() {
        return Vec::new();
    }
    let names: BTreeSet<String> = code.targets.iter().map(ToString::to_string).collect();
    let names: Vec<String> = names.into_iter().collect();
    missing.map(|gpu| unserved_warning(file, unserved_gpu_text(gpu, &names))).collect()
}

fn unserved_warning(file: &Path, text: String) -> Diagnostic {
    Diagnostic::warning(codes::NO_CODE_FOR_GPU, text).in_file(file)
}

fn target_serves_gpu(target: &TargetId, gpu: &TargetId) -> bool {
    target.processor.name == gpu.processor.name || target.processor.covers(gpu.processor)
}

fn unserved_gpu_text(gpu: &TargetId, names: &[String]) -> String {
    format!("it has no code for {gpu}, only for {}", names.join(", "))
}

/// The code of a file.
#[derive(Default)]
struct FileCode {
    targets: Vec<TargetId>,
    /// HIP compiles it for any GPU, if comgr can.
    has_spirv: bool,
}

/// The code of a file; damaged code is not a subject of this.
fn code_of(file: &Path) -> Result<FileCode, Diagnostic> {
    let mut code = FileCode::default();
    let bytes = hotswap_files::open_or_stdin(file)?;
    let _ = inventory::visit_to(&hotswap_bundle::find_containers(&bytes), InventoryDepth::Tables, |container| {
        for target in container.rows.iter().filter_map(|row| row.target.as_deref()) {
            code.has_spirv |= target == SPIRV;
            code.targets.extend(target.parse::<TargetId>());
        }
    });
    Ok(code)
}

/// The file that a command names; `None` where there is none.
fn find_program(program: &OsStr) -> Result<Option<PathBuf>, Diagnostic> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return Ok(reads::is_regular(path)?.then(|| path.to_owned()));
    }
    on_path(program)
}

/// The shared libraries that the program starts with, as its own loader finds them. Empty for a static program, a script,
/// and a loader that is not glibc's.
fn loaded_with(program: &Path, libraries: &OsStr) -> Result<Vec<PathBuf>, Diagnostic> {
    let Some(loader) = interpreter(program)? else { return Ok(Vec::new()) };
    let mut list = Command::new(&loader);
    list.arg("--list").arg(program).env("LD_LIBRARY_PATH", libraries).env_remove("LD_PRELOAD");
    let output = match hotswap_files::command_output(&mut list) {
        // The system will say the same of the program.
        Err(error) if is_unusable(&error) => return Ok(Vec::new()),
        output => output.map_err(|error| reads::unread_file(Path::new(&loader), &error))?,
    };
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(library).collect())
}

/// The file of a line `\tNAME => FILE (ADDRESS)`, or `\tFILE (ADDRESS)` where the program names it by its path. The loader
/// itself is listed like this.
fn library(line: &str) -> Option<PathBuf> {
    let (file, _) = line.trim_start().rsplit_once(" (")?;
    let file = file.split_once(" => ").map_or(file, |(_, file)| file);
    file.contains('/').then(|| PathBuf::from(file))
}

/// The loader that an ELF program names.
fn interpreter(program: &Path) -> Result<Option<OsString>, Diagnostic> {
    Ok(interpreter_in(&hotswap_files::open_or_stdin(program)?))
}

fn interpreter_in(bytes: &[u8]) -> Option<OsString> {
    let header = FileHeader64::<LittleEndian>::parse(bytes).ok()?;
    let segments = header.program_headers(LittleEndian, bytes).ok()?;
    let mut names = segments.iter().filter_map(|segment| segment.interpreter(LittleEndian, bytes).ok()?);
    names.next().map(|name| OsString::from_vec(name.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_loader_name_files() {
        assert_eq!(library("\tliba.so.1 => /opt/a b/liba.so.1 (0x00007f)"), Some("/opt/a b/liba.so.1".into()));
        assert_eq!(library("\tlinux-vdso.so.1 (0x00007f)"), None);
        assert_eq!(library("\tlibb.so => not found"), None);
        assert_eq!(library("\t./libc.so (0x00007f)"), Some("./libc.so".into()));
    }

    #[test]
    fn code_for_any_gpu_serves_if_comgr_compiles_it() {
        let directory = tempfile::tempdir().unwrap();
        let told = |ids: &[&str], support: SpirvSupport| {
            let mut bundle = hotswap_bundle::Bundle::default();
            for id in ids {
                bundle.push(*id, b"code".to_vec()).unwrap();
            }
            let file = directory.path().join("file");
            std::fs::write(&file, bundle.to_bytes().unwrap()).unwrap();
            let mut comgr = ComgrAnswer { libraries: OsStr::new(""), support: Some(support) };
            let found = warnings(&file, &["gfx1031".parse().unwrap()], &mut comgr);
            found.iter().map(|warning| warning.what.clone()).collect::<Vec<_>>()
        };
        let (one, any) = ("hipv4-amdgcn-amd-amdhsa--gfx1030", "hip-spirv64-amd-amdhsa--amdgcnspirv");
        let refused = || SpirvSupport::Refused("no translator".to_owned());
        assert_eq!(told(&[one], SpirvSupport::Compiled), ["it has no code for gfx1031, only for gfx1030"]);
        assert_eq!(told(&[any], SpirvSupport::Compiled), [""; 0]);
        assert_eq!(told(&[one, any], SpirvSupport::Compiled), [""; 0]);
        let why = "for gfx1031 it has SPIR-V alone, which the comgr that HIP loads does not compile: no translator";
        assert_eq!(told(&[one, any], refused()), [why]);
        assert_eq!(told(&["hipv4-amdgcn-amd-amdhsa--gfx1031", any], refused()), [""; 0]);
        assert!(told(&[any], SpirvSupport::Unknown)[0].ends_with("does not answer whether it can"));
    }

    #[test]
    fn what_cannot_be_read_is_not_taken_for_a_program_without_code() {
        let directory = tempfile::tempdir().unwrap();
        let looped = directory.path().join("loop");
        std::os::unix::fs::symlink("loop", &looped).unwrap();
        let gpus = ["gfx1031".parse().unwrap()];
        let found = without_code(looped.as_os_str(), OsStr::new(""), &gpus);
        assert!(found.len() == 1 && found[0].severity == Severity::Warning, "{found:?}");
        assert!(found[0].to_string().contains("symbolic links") && found[0].code == codes::CANNOT_READ, "{found:?}");
        assert!(without_code(OsStr::new("./absent"), OsStr::new(""), &gpus).is_empty());
    }

    #[test]
    fn a_program_starts_with_its_libraries() {
        let own = std::env::current_exe().unwrap();
        let files = loaded_with(&own, OsStr::new("")).unwrap();
        assert!(files.iter().any(|file| file.ends_with("libc.so.6")), "{files:?}");
    }
}
