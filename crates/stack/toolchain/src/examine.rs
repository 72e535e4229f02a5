//! The examination: each part is found as a build would find it, by asking the compiler or by compiling.
//!
//! Invariants: a part is good only if it was used successfully, or if nothing but its presence is needed. What depends on a
//! part that is missing is not examined, and reported so. What could not be read, or asked, is a part's error and never its absence.

use crate::comgr::{self, SpirvSupport};
use crate::libraries::{self, BitcodeArgument};
use crate::part_report::{PartReport, PartState};
use crate::parts::{self, ToolchainPart};
use crate::probe::{self, ProbeOutput};
use crate::sources::{self, BARE, CALLS, PROGRAM};
use crate::versions::{self, OLDEST_CLANG, VersionNumber};
use hotswap_files::reads;
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::PROCESSORS;
use std::env;
use std::path::{Path, PathBuf};

/// Examines the parts of the tool chain that a build through the installation in `prefix` would use. `scratch` is a directory
/// for the test programs and what is compiled of them.
///
/// # Errors
/// The system's, if the test programs cannot be written. A part that could not be read has its error in its report.
pub fn examine_toolchain(prefix: &Path, scratch: &Path) -> Result<Vec<PartReport>, Diagnostic> {
    sources::write(scratch).map_err(|error| Diagnostic::cannot_write(scratch, error))?;
    Ok(Examination { prefix, scratch }.run())
}

/// The directories of the examination.
struct Examination<'a> {
    prefix: &'a Path,
    /// A directory for files.
    scratch: &'a Path,
}

/// The report, or the reason why there is none.
fn report_part(part: &'static ToolchainPart, found: Result<PartReport, Diagnostic>) -> PartReport {
    found.unwrap_or_else(|error| PartReport::unread_part(part, error))
}

/// The report about clang, and the compiler as far as it is usable.
struct ClangReport {
    report: PartReport,
    compiler: Option<Compiler>,
}

impl From<PartReport> for ClangReport {
    fn from(report: PartReport) -> Self {
        Self { report, compiler: None }
    }
}

/// The compiler, as far as it is usable.
struct Compiler {
    path: PathBuf,
    version: VersionNumber,
    /// Arguments without which it does not build a program here.
    arguments: Vec<String>,
}

impl Examination<'_> {
    /// Everything, in the order of the table.
    fn run(&self) -> Vec<PartReport> {
        let mut reports = vec![report_part(parts::INSTALLATION, self.installation())];
        let ClangReport { report, compiler } =
            self.clang().unwrap_or_else(|error| PartReport::unread_part(parts::CLANG, error).into());
        reports.push(report);
        match compiler {
            Some(compiler) => self.examine_compiler(compiler, &mut reports),
            None => {
                let left = [
                    parts::LINKER,
                    parts::BUNDLER,
                    parts::DEVICE_LIBRARIES,
                    parts::HEADERS,
                    parts::RUNTIME,
                    parts::COMPILER_RT,
                ];
                reports.extend(left.map(|part| PartReport::new(part, PartState::NotExamined)));
            }
        }
        reports.push(report_part(parts::COMGR, comgr()));
        reports.push(report_part(parts::HSA, library(parts::HSA, "libhsa-runtime64.so")));
        reports.push(report_part(parts::HIPCC, self.hipcc()));
        reports.push(report_part(parts::CMAKE, self.cmake()));
        let caches = crate::caches::examine(self.scratch).transpose();
        reports.extend(caches.map(|caches| report_part(parts::CACHES, caches)));
        let warm = crate::warm_headers::examine().transpose();
        reports.extend(warm.map(|warm| report_part(parts::WARM_HEADERS, warm)));
        reports.push(report_part(parts::PROFILES, self.profile_tools(&reports)));
        reports
    }

    /// The parts that are asked by the compiler.
    fn examine_compiler(&self, mut compiler: Compiler, reports: &mut Vec<PartReport>) {
        reports.push(report_part(parts::LINKER, self.linker(&compiler)));
        reports.push(report_part(parts::BUNDLER, self.bundler(&compiler)));
        let can_link = reports.iter().all(|report| report.state == PartState::Good || report.part.name == "hotswap");
        let libraries = report_part(parts::DEVICE_LIBRARIES, self.device_libraries(&mut compiler, can_link));
        let has_libraries = libraries.state == PartState::Good;
        reports.push(libraries);
        reports.extend(self.hip(&compiler, can_link && has_libraries).unwrap_or_else(unread_hip_reports));
        reports.push(report_part(parts::COMPILER_RT, self.compiler_rt(&compiler)));
    }

    fn installation(&self) -> Result<PartReport, Diagnostic> {
        let files = [
            "bin/hotswap",
            "bin/hotswap-clang",
            "bin/hotswap-clang++",
            "libexec/hotswap/lld",
            "libexec/hotswap/ld.lld",
        ];
        let archives = ["lib/hotswap/libhotswap_registry.a", "lib/hotswap/libhotswap-names.so"];
        let missing = absent_files(self.prefix, files.iter().chain(&archives).copied())?;
        let state = if missing.is_empty() { PartState::Good } else { PartState::Missing };
        let report = PartReport::new(parts::INSTALLATION, state)
            .with(Some(env!("CARGO_PKG_VERSION").to_owned()), Some(self.prefix.to_owned()));
        Ok(if missing.is_empty() { report } else { report.note(format!("without {}", missing.join(", "))) })
    }

    /// The clang that `hotswap-clang++` would start, by its own report.
    fn clang(&self) -> Result<ClangReport, Diagnostic> {
        let wrapper = self.prefix.join("bin/hotswap-clang++");
        if !reads::is_there(&wrapper)? {
            return Ok(PartReport::new(parts::CLANG, PartState::NotExamined).into());
        }
        let (path, origin) = match probe::chosen_clang(self.scratch, &wrapper) {
            Ok(clang) => (clang.path, clang.origin),
            Err(error) if error.code == codes::NO_CLANG => {
                return Ok(PartReport::new(parts::CLANG, PartState::Missing).note(error.what).into());
            }
            Err(error) => return Err(error),
        };
        let version = probe::run(self.scratch, &path, &["--version"])?;
        let Some(number) = versions::of_clang(&version.stdout) else {
            let report = PartReport::new(parts::CLANG, PartState::Unusable).with(None, Some(path));
            return Ok(report.note(format!("it does not tell its version: {}", version.reason())).into());
        };
        let report = PartReport::new(parts::CLANG, PartState::Good).with(Some(number.to_string()), Some(path.clone()));
        let mut report = report.note(format!("found by {origin}"));
        if number.major < OLDEST_CLANG {
            report.state = PartState::Unusable;
            return Ok(report.note(format!("it is older than {OLDEST_CLANG}")).into());
        }
        report.targets = self.compiled_targets(&path)?;
        let absent = absent_targets(&report.targets);
        if report.targets.is_empty() {
            report.state = PartState::Unusable;
            return Ok(report.note("it compiles for no AMD GPU").into());
        } else if !absent.is_empty() {
            report = report.note(format!("does not compile for {}", absent.join(", ")));
        }
        let compiler = Compiler { path, version: number, arguments: Vec::new() };
        Ok(ClangReport { report, compiler: Some(compiler) })
    }

    fn compiled_targets(&self, clang: &Path) -> Result<Vec<String>, Diagnostic> {
        let listed = probe::run(self.scratch, clang, &["--target=amdgcn-amd-amdhsa", "--print-supported-cpus"])?;
        let words = listed.stderr.split_whitespace().chain(listed.stdout.split_whitespace());
        let names: Vec<&str> = words.collect();
        Ok(known_targets(|name| names.contains(&name)))
    }

    /// A tool by clang's own search.
    fn tool(&self, compiler: &Compiler, name: &str) -> Result<Option<PathBuf>, Diagnostic> {
        let answer = probe::run(self.scratch, &compiler.path, &[&format!("-print-prog-name={name}")])?;
        let path = PathBuf::from(answer.stdout.trim());
        if !path.is_absolute() {
            return probe::on_path(name.as_ref());
        }
        Ok(reads::is_regular(&path)?.then_some(path))
    }

    fn linker(&self, compiler: &Compiler) -> Result<PartReport, Diagnostic> {
        let Some(path) = self.tool(compiler, "ld.lld")? else {
            let report = PartReport::new(parts::LINKER, PartState::Missing);
            return Ok(report.note(format!("no ld.lld beside {}", compiler.path.display())));
        };
        let version = versions::of_lld(&probe::run(self.scratch, &path, &["--version"])?.stdout);
        let report =
            PartReport::new(parts::LINKER, PartState::Good).with(version.as_ref().map(ToString::to_string), Some(path));
        // A bundle would need the bundler, which is a part of its own.
        let only_linked = ["--offload-device-only", "--no-gpu-bundle-output", "-nogpuinc", "-nogpulib", BARE.name];
        let linked = self.compile(compiler, &only_linked)?;
        Ok(match version {
            _ if !linked.success => unusable(report, &format!("a kernel cannot be linked: {}", linked.reason())),
            None => unusable(report, "it does not tell its version"),
            Some(version) if version.major != compiler.version.major => {
                unusable(report, &format!("it is not of clang's version, {}", compiler.version))
            }
            Some(_) => report,
        })
    }

    fn bundler(&self, compiler: &Compiler) -> Result<PartReport, Diagnostic> {
        // The old driver, which clang 24 no longer has, starts the bundler, which does nothing without llvm-objcopy.
        let needed: &[&str] = match compiler.version.major {
            ..24 => &["clang-offload-bundler", "clang-linker-wrapper", "llvm-objcopy"],
            _ => &["clang-linker-wrapper"],
        };
        let (mut first, mut missing) = (None, Vec::new());
        for name in needed {
            match self.tool(compiler, name)? {
                Some(path) => first = first.or(Some(path)),
                None => missing.push(*name),
            }
        }
        if missing.is_empty() {
            return Ok(PartReport::new(parts::BUNDLER, PartState::Good).with(None, first));
        }
        let report = PartReport::new(parts::BUNDLER, PartState::Missing);
        Ok(report.note(format!("no {} beside {}", missing.join(", "), compiler.path.display())))
    }

    /// Compiles for a GPU that every supported version knows.
    fn compile(&self, compiler: &Compiler, arguments: &[&str]) -> Result<ProbeOutput, Diagnostic> {
        let mut all = vec!["-x", "hip", "--offload-arch=gfx1030", "-o", "probe.out"];
        all.extend(compiler.arguments.iter().map(String::as_str));
        all.extend(arguments);
        probe::run(self.scratch, &compiler.path, &all)
    }

    /// Where clang does not find them by itself, the arguments with which it does are added to the compiler's.
    fn device_libraries(&self, compiler: &mut Compiler, can_link: bool) -> Result<PartReport, Diagnostic> {
        if !can_link {
            return Ok(PartReport::new(parts::DEVICE_LIBRARIES, PartState::NotExamined));
        }
        let resources = probe::run(self.scratch, &compiler.path, &["-print-resource-dir"])?.stdout;
        let own = libraries::bitcode_of(Path::new(resources.trim()))?;
        let first = self.compile(compiler, &["--offload-device-only", "-nogpuinc", CALLS.name])?;
        if first.success {
            return bitcode_report(if own.is_some() { own } else { libraries::bitcode_anywhere()? });
        }
        for BitcodeArgument { argument, directory } in libraries::arguments()? {
            compiler.arguments = vec![argument.clone()];
            if self.compile(compiler, &["--offload-device-only", "-nogpuinc", CALLS.name])?.success {
                let note = format!(
                    "clang {} finds them only with {argument}: put it into CMAKE_HIP_FLAGS or the command",
                    compiler.version.major
                );
                return Ok(bitcode_report(Some(directory))?.note(note));
            }
        }
        compiler.arguments.clear();
        Ok(PartReport::new(parts::DEVICE_LIBRARIES, PartState::Missing).note(first.reason()))
    }

    /// Headers and library: a program shows both; only if that fails, the headers are tried alone.
    fn hip(&self, compiler: &Compiler, can_compile: bool) -> Result<[PartReport; 2], Diagnostic> {
        if !can_compile {
            return Ok(headers_and_runtime_reports(PartState::NotExamined));
        }
        let found = self.compile(compiler, &["-v", "-E", "-nogpuinc", BARE.name])?.stderr;
        let (version, path) = versions::of_hip(&found).map(|hip| (hip.version, hip.path)).unzip();
        let library = libraries::find("libamdhip64.so")?.map(|library| library.path);
        let link = ["--hip-link", "-lamdhip64", PROGRAM.name];
        let first = self.compile(compiler, &link)?;
        if first.success {
            let [headers, runtime] =
                headers_and_runtime_reports(PartState::Good).map(|one| report_at_install_path(one, &version, &path));
            return Ok([headers, PartReport { path: library, ..runtime }]);
        }
        let headers = self.compile(compiler, &["-fsyntax-only", PROGRAM.name])?;
        if !headers.success {
            let report = report_at_install_path(PartReport::new(parts::HEADERS, PartState::Missing), &version, &path)
                .note(headers.reason());
            return Ok([report, PartReport::new(parts::RUNTIME, PartState::NotExamined)]);
        }
        let [headers, runtime] =
            headers_and_runtime_reports(PartState::Good).map(|one| report_at_install_path(one, &version, &path));
        let without = self.compile(compiler, &["-no-hip-rt", "-lamdhip64", PROGRAM.name])?;
        let runtime = PartReport { path: library, ..runtime };
        if without.success {
            let note = format!(
                "clang {} does not find libamdhip64.so by itself: link with -no-hip-rt -lamdhip64 (which has no device \
                 profiles), as CMake does, or give --rocm-path= a directory whose lib has it",
                compiler.version.major
            );
            return Ok([headers, runtime.note(note)]);
        }
        Ok([headers, PartReport { state: PartState::Missing, ..runtime }.note(first.reason())])
    }

    /// Where clang would link it from.
    fn compiler_rt(&self, compiler: &Compiler) -> Result<PartReport, Diagnostic> {
        let asked = ["--rtlib=compiler-rt", "-print-libgcc-file-name"];
        let path = PathBuf::from(probe::run(self.scratch, &compiler.path, &asked)?.stdout.trim());
        if reads::is_regular(&path)? {
            return Ok(PartReport::new(parts::COMPILER_RT, PartState::Good).with(None, Some(path)));
        }
        Ok(PartReport::new(parts::COMPILER_RT, PartState::Missing).note(format!("no {}", path.display())))
    }

    fn hipcc(&self) -> Result<PartReport, Diagnostic> {
        const OF_ROCM: &str = "/opt/rocm/bin/hipcc";
        let path = match probe::on_path("hipcc".as_ref())? {
            Some(path) => path,
            None if reads::is_regular(Path::new(OF_ROCM))? => OF_ROCM.into(),
            None => return Ok(PartReport::new(parts::HIPCC, PartState::Missing)),
        };
        let version = versions::of_hipcc(&probe::run(self.scratch, &path, &["--version"])?.stdout);
        let report = PartReport::new(parts::HIPCC, PartState::Good).with(version, Some(path));
        let ours = reads::resolve_path(&self.prefix.join("bin/hotswap-clang"))?;
        let directory = env::var_os("HIP_CLANG_PATH").filter(|value| !value.is_empty()).map(PathBuf::from);
        let links = self.prefix.join("lib/hotswap/clang");
        let way = format!("set HIP_CLANG_PATH={} to build with a plan", links.display());
        Ok(match directory {
            None => report.note(format!("HIP_CLANG_PATH is not set, so it starts its own clang, not HotSwap's: {way}")),
            Some(directory) => match reads::resolve_path(&directory.join("clang++"))? {
                None => unusable(report, &format!("HIP_CLANG_PATH={} has no clang++: {way}", directory.display())),
                found if found == ours => report.note("HIP_CLANG_PATH leads to HotSwap"),
                _ => report.note(format!("HIP_CLANG_PATH={} is not HotSwap's: {way}", directory.display())),
            },
        })
    }

    fn cmake(&self) -> Result<PartReport, Diagnostic> {
        let Some(path) = probe::on_path("cmake".as_ref())? else {
            return Ok(PartReport::new(parts::CMAKE, PartState::Missing));
        };
        let version = versions::of_cmake(&probe::run(self.scratch, &path, &["--version"])?.stdout);
        let text = version.as_ref().map(ToString::to_string);
        let report = PartReport::new(parts::CMAKE, PartState::Good).with(text, Some(path));
        Ok(match version {
            None => unusable(report, "it does not tell its version"),
            Some(version) if (version.major, version.minor) < (3, 21) => unusable(report, "HIP needs 3.21.3 or later"),
            Some(version) if (version.major, version.minor) < (3, 27) => {
                report.note("before 3.27 it does not find HIP in Debian's directories")
            }
            Some(_) => report,
        })
    }

    fn profile_tools(&self, reports: &[PartReport]) -> Result<PartReport, Diagnostic> {
        let clang = reports.iter().find(|report| report.part.name == parts::CLANG.name);
        let path = clang.and_then(|report| report.path.as_deref()).map(reads::resolve_path).transpose()?.flatten();
        let Some(beside) = path.as_deref().and_then(Path::parent) else {
            return Ok(PartReport::new(parts::PROFILES, PartState::NotExamined));
        };
        let missing = absent_files(beside, ["llvm-profdata", "llvm-cov"].into_iter())?;
        if missing.is_empty() {
            return Ok(PartReport::new(parts::PROFILES, PartState::Good).with(None, Some(beside.to_owned())));
        }
        let report = PartReport::new(parts::PROFILES, PartState::Missing);
        Ok(report.note(format!("no {} in {}", missing.join(", "), beside.display())))
    }
}

/// Those of the names that a directory does not have.
fn absent_files<'n>(directory: &Path, names: impl Iterator<Item = &'n str>) -> Result<Vec<&'n str>, Diagnostic> {
    let mut absent = Vec::new();
    for name in names {
        if !reads::is_there(&directory.join(name))? {
            absent.push(name);
        }
    }
    Ok(absent)
}

fn headers_and_runtime_reports(state: PartState) -> [PartReport; 2] {
    [PartReport::new(parts::HEADERS, state), PartReport::new(parts::RUNTIME, state)]
}

fn unread_hip_reports(error: Diagnostic) -> [PartReport; 2] {
    let runtime = PartReport::new(parts::RUNTIME, PartState::NotExamined);
    [PartReport::unread_part(parts::HEADERS, error), runtime]
}

fn report_at_install_path(report: PartReport, version: &Option<String>, path: &Option<PathBuf>) -> PartReport {
    report.with(version.clone(), path.clone())
}

fn unusable(report: PartReport, note: &str) -> PartReport {
    PartReport { state: PartState::Unusable, ..report }.note(note)
}

fn library(part: &'static ToolchainPart, name: &str) -> Result<PartReport, Diagnostic> {
    Ok(match libraries::find(name)? {
        Some(library) => PartReport::new(part, PartState::Good).with(library.version, Some(library.path)),
        None => PartReport::new(part, PartState::Missing),
    })
}

/// With its answer about SPIR-V, which it need not compile.
fn comgr() -> Result<PartReport, Diagnostic> {
    let report = library(parts::COMGR, "libamd_comgr.so")?;
    let Some(path) = &report.path else { return Ok(report) };
    let note = match comgr::spirv_support(None, Some(path))? {
        SpirvSupport::Compiled => "it compiles SPIR-V (amdgcnspirv)".to_owned(),
        SpirvSupport::Refused(reason) => {
            format!("it compiles no SPIR-V (amdgcnspirv): {}", reason.trim_end_matches('.'))
        }
        SpirvSupport::Unknown => "it does not answer whether it compiles SPIR-V (amdgcnspirv)".to_owned(),
    };
    Ok(report.note(note))
}

fn bitcode_report(directory: Option<PathBuf>) -> Result<PartReport, Diagnostic> {
    let names = directory.as_deref().map(libraries::bitcode_targets).transpose()?.unwrap_or_default();
    let mut report = PartReport::new(parts::DEVICE_LIBRARIES, PartState::Good).with(None, directory);
    report.targets = known_targets(|name| names.iter().any(|known| known == name));
    Ok(report)
}

/// HotSwap's processors that the filter takes.
fn known_targets(is_there: impl Fn(&str) -> bool) -> Vec<String> {
    let known = PROCESSORS.iter().filter(|processor| !processor.withdrawn && is_there(processor.name));
    known.map(|processor| processor.name.to_owned()).collect()
}

fn absent_targets(there: &[String]) -> Vec<&'static str> {
    let known = PROCESSORS.iter().filter(|processor| !processor.withdrawn).map(|processor| processor.name);
    known.filter(|name| !there.iter().any(|one| one == name)).collect()
}
