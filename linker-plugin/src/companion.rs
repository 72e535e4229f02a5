//! Additional data of a device link for the fat binary, for pairs whose code must change.
//!
//! The best is the same bitcode compiled for the pair's target, where the inputs are bitcode of an LLVM that knows the
//! target; otherwise the same code with relocations, from a second link. Either is appended to the code object
//! (`hotswap_pipeline::companion`).
//!
//! Invariants: the compiler's own link is not changed except for one argument that saves the output of LTO. A second
//! link that fails, or gives other code, is not an error: less is known then, the reason is in the trace,
//! and the next step decides. Files are in one directory, which is removed.
//!
//! Absent on purpose: whether the target was also compiled, and changing code (`hotswap-pipeline`).

use crate::child;
use crate::linker::{LinkOutput, Linker};
use crate::words::response_file;
use hotswap_code_object::{CodeObject, is_code_object};
use hotswap_compat::{Strategy, find_pair};
use hotswap_files::{BackgroundTask, ScratchDirectory, on_all_cores, open_input, reads};
use hotswap_pipeline::companion::{is_same_code, may_stand_for};
use hotswap_plan::Plan;
use hotswap_report::Diagnostic;
use hotswap_targets::{EFlags, Processor, TargetId, find_processor};
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};

/// A pair whose code must change.
#[derive(Clone, Copy)]
pub(crate) struct ChangedPair {
    source: &'static Processor,
    target: &'static Processor,
}

/// The companion data of a code object.
#[derive(Default)]
pub(crate) struct CompanionData {
    pub(crate) bytes: Option<Vec<u8>>,
    /// For the trace: `relocations` or `recompiled`.
    pub(crate) kind: Option<&'static str>,
    /// For the trace: earlier attempts, and why they were not used.
    pub(crate) failed: Vec<Value>,
}

impl CompanionData {
    fn take(&mut self, kind: &'static str, tried: LinkAttempt) {
        match tried {
            Ok(bytes) => (self.bytes, self.kind) = (Some(bytes), Some(kind)),
            Err(why) => self.failed.push(json!({"tried": kind, "why": why})),
        }
    }
}

/// The plan's pairs whose code must change.
pub(crate) fn wanted(plan: &Plan) -> Vec<ChangedPair> {
    let pairs = plan.pairs.iter().filter_map(|pair| {
        Some(ChangedPair { source: find_processor(&pair.source)?, target: find_processor(&pair.target)? })
    });
    pairs.filter(is_rewritten_pair).collect()
}

fn is_rewritten_pair(pair: &ChangedPair) -> bool {
    find_pair(pair.source, pair.target).is_some_and(|pair| pair.strategy == Strategy::Rewrite)
}

/// A link that has ended.
pub(crate) struct FinishedLink<'l> {
    /// That of the compiler's own link.
    pub(crate) exit_code: u8,
    /// Its output, where that was read already.
    pub(crate) output: Option<LinkOutput<'l>>,
    pub(crate) companion: CompanionData,
}

/// Runs the compiler's link and obtains the companion.
pub(crate) fn link_with_companion<'l>(
    linker: &Linker<'l>,
    wanted: &[ChangedPair],
) -> Result<FinishedLink<'l>, Diagnostic> {
    let directory = ScratchDirectory::temporary("hotswap-link.")?;
    let inputs = Inputs::of(linker)?;
    let second = ExtraLink { linker, inputs: &inputs, directory: directory.path() };
    let bitcode = inputs.bitcode_pair(wanted)?;
    let objects = inputs.are_objects_for(wanted)?;
    let recompile = || bitcode.map(|pair| second.recompiled(*pair));
    let relocate = || second.with_relocations(Lto::Again);
    thread::scope(|scope| {
        // Links that do not depend on the first one run in parallel.
        let recompiled = bitcode.map(|_| BackgroundTask::start(scope, &recompile));
        let relocated = objects.then(|| BackgroundTask::start(scope, &relocate));
        let own_path = ["--lto-obj-path", "-plugin-opt=obj-path"];
        let saves = !inputs.bitcode.is_empty() && linker.line.value_of(&own_path).is_none();
        let code = linker.link(saves.then(|| second.saved()))?;
        // Tasks without a thread of their own run now; after a failed link they are not needed.
        let (recompiled, relocated) = if code == 0 { (recompiled, relocated) } else { (None, None) };
        let recompiled = recompiled.and_then(|task| task.finish().unwrap_or_else(|_| Some(lost_attempt())));
        let relocated = relocated.map(|task| task.finish().unwrap_or_else(|_| lost_attempt()));
        if code != 0 {
            return Ok(FinishedLink { exit_code: code, output: None, companion: CompanionData::default() });
        }
        let output = LinkOutput::open(linker.output)?;
        let companion = second.choose(&output, wanted, saves, recompiled, relocated)?;
        Ok(FinishedLink { exit_code: code, output: Some(output), companion })
    })
}

/// The outcome of a link attempt.
type LinkAttempt = Result<Vec<u8>, String>;

fn lost_attempt() -> LinkAttempt {
    Err("a thread failed".to_owned())
}

/// The files that a link reads, by kind.
struct Inputs {
    bitcode: Vec<PathBuf>,
    objects: Vec<PathBuf>,
    /// Archives, scripts and others.
    others: bool,
}

impl Inputs {
    fn of(linker: &Linker<'_>) -> Result<Self, Diagnostic> {
        let mut inputs = Self { bitcode: Vec::new(), objects: Vec::new(), others: false };
        let words: Vec<&OsStr> = linker.line.words().collect();
        let files = words.iter().filter(|word| !word.as_bytes().starts_with(b"-")).map(Path::new);
        for file in files.filter(|file| *file != linker.output) {
            match magic(file)? {
                Some(magic) if BITCODE.contains(&magic) => inputs.bitcode.push(file.to_owned()),
                Some([0x7f, b'E', b'L', b'F']) => inputs.objects.push(file.to_owned()),
                Some(_) => inputs.others = true,
                // The value of an option.
                None => {}
            }
        }
        inputs.others |= words.iter().any(|word| LIBRARY.iter().any(|start| word.as_bytes().starts_with(start)));
        Ok(inputs)
    }

    /// The first pair whose source all inputs are bitcode for, of an LLVM whose triples name the processor.
    fn bitcode_pair<'w>(&self, wanted: &'w [ChangedPair]) -> Result<Option<&'w ChangedPair>, Diagnostic> {
        if self.bitcode.is_empty() || !self.objects.is_empty() || self.others {
            return Ok(None);
        }
        let modules = self.bitcode.iter().map(|file| open_input(file)).collect::<Result<Vec<_>, _>>()?;
        Ok(wanted.iter().find(|pair| {
            let [_, triple] = pair.source.triples();
            modules.iter().all(|module| contains(module, triple.as_bytes()))
        }))
    }

    /// Whether the inputs are objects for the source of a pair, without bitcode.
    fn are_objects_for(&self, wanted: &[ChangedPair]) -> Result<bool, Diagnostic> {
        let Some(first) = self.objects.first().filter(|_| self.bitcode.is_empty()) else { return Ok(false) };
        let object = open_input(first)?;
        Ok(wanted.iter().any(|pair| is_object_for_processor(&object, pair.source)))
    }
}

fn is_object_for_processor(object: &[u8], source: &Processor) -> bool {
    let Some(header) = object.first_chunk::<64>() else { return false };
    let flags = u32::from_le_bytes([header[48], header[49], header[50], header[51]]);
    let known = EFlags::decode(flags, header[8]).map(|flags| flags.target_id().processor);
    is_code_object(header) && known.is_ok_and(|processor| processor == source)
}

/// Flags that name libraries.
const LIBRARY: [&[u8]; 2] = [b"-l", b"--library"];

/// First bytes of bitcode, bare and in a wrapper.
const BITCODE: [[u8; 4]; 2] = [*b"BC\xc0\xde", [0xde, 0xc0, 0x17, 0x0b]];

/// `None` for what is not a regular file, and for a shorter one.
fn magic(file: &Path) -> Result<Option<[u8; 4]>, Diagnostic> {
    if !reads::is_regular(file)? {
        return Ok(None);
    }
    Ok(open_input(file)?.first_chunk::<4>().copied())
}

/// The triple is plain text in the symbol table.
fn contains(bytes: &[u8], text: &[u8]) -> bool {
    let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == text[0]).map(|(at, _)| at);
    starts.into_iter().any(|at| bytes[at..].starts_with(text))
}

/// An object that LTO has saved, and the number of its partition.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SavedObject {
    part: usize,
    path: OsString,
}

/// The source of the compiled bitcode in a second link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lto {
    /// The files that the first link has saved.
    Saved,
    Again,
}

struct ExtraLink<'s> {
    linker: &'s Linker<'s>,
    inputs: &'s Inputs,
    directory: &'s Path,
}

impl ExtraLink<'_> {
    /// The argument with which the first link saves the output of LTO.
    fn saved(&self) -> OsString {
        let mut word = OsString::from("--lto-obj-path=");
        word.push(self.directory.join(SAVED));
        word
    }

    /// The best companion for the code object that the first link has made.
    fn choose(
        &self,
        output: &LinkOutput<'_>,
        wanted: &[ChangedPair],
        saved: bool,
        recompiled: Option<LinkAttempt>,
        relocated: Option<LinkAttempt>,
    ) -> Result<CompanionData, Diagnostic> {
        let mut companion = CompanionData::default();
        let object = output.parse()?;
        let own = object.target_id();
        let Some(ChangedPair { target: processor, .. }) = wanted.iter().find(|pair| pair.source == own.processor)
        else {
            return Ok(companion);
        };
        let target = TargetId { processor, ..own };
        if let Some(tried) = recompiled {
            companion.take("recompiled", tried.and_then(|one| accept_stand_in(one, &object, &target)));
        }
        if let Some(tried) = relocated.filter(|_| companion.bytes.is_none()) {
            companion.take("relocations", tried.and_then(|one| accept_same_code(one, &object)));
            return Ok(companion);
        }
        // The output of LTO may link differently from its bitcode where archives are involved; then LTO runs again.
        let ways = [Some(Lto::Saved).filter(|_| saved), Some(Lto::Again)];
        for lto in ways.into_iter().flatten() {
            if companion.bytes.is_none() {
                companion
                    .take("relocations", self.with_relocations(lto).and_then(|one| accept_same_code(one, &object)));
            }
        }
        Ok(companion)
    }

    /// The same link with relocations.
    fn with_relocations(&self, lto: Lto) -> LinkAttempt {
        let saved = if lto == Lto::Saved { self.saved_objects()? } else { Vec::new() };
        let words = self.words(|word| match lto {
            Lto::Saved if self.inputs.bitcode.iter().any(|file| file == Path::new(word)) => None,
            _ => Some(word.to_owned()),
        });
        let words = words.into_iter().chain(saved).chain(["--emit-relocs".into()]);
        self.run(words.collect(), "relocated")
    }

    /// The saved output of LTO, in order.
    fn saved_objects(&self) -> Result<Vec<OsString>, String> {
        let entries = fs::read_dir(self.directory).map_err(|error| error.to_string())?;
        let mut saved: Vec<SavedObject> = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| error.to_string())?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(part) = name.strip_prefix(SAVED) else { continue };
            // A partition without code is an empty file.
            if path.metadata().map_err(|error| error.to_string())?.len() > 0 {
                saved.push(SavedObject { part: part.parse().unwrap_or(0), path: path.into() });
            }
        }
        saved.sort();
        if saved.is_empty() {
            Err("LTO has saved nothing".to_owned())
        } else {
            Ok(saved.into_iter().map(|object| object.path).collect())
        }
    }

    /// The same bitcode compiled for the other target.
    fn recompiled(&self, ChangedPair { source, target }: ChangedPair) -> LinkAttempt {
        let clang = self.linker.real.with_file_name("clang");
        if !reads::is_regular(&clang).map_err(|error| error.to_string())? {
            return Err(format!("no {}", clang.display()));
        }
        let count = self.inputs.bitcode.len();
        let failed = AtomicBool::new(false);
        let converted = on_all_cores(count, |index| {
            // One failure is enough to know that there will be no link.
            if failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            self.convert(&clang, target, index).inspect_err(|_| failed.store(true, Ordering::Relaxed))
        });
        converted.into_iter().collect::<Result<(), String>>()?;
        let [cpu, other] = [source, target].map(|processor| format!("mcpu={processor}"));
        let words = self.words(|word| match bitcode_input_position(word, self.inputs) {
            Some(index) => Some(self.converted(index).into()),
            None => Some(match word.to_str() {
                Some(text) if text.starts_with("-plugin-opt") => text.replace(&cpu, &other).into(),
                _ => word.to_owned(),
            }),
        });
        self.run(words, "recompiled")
    }

    fn converted(&self, index: usize) -> PathBuf {
        self.directory.join(format!("{index}.bc"))
    }

    /// The bitcode with the triple of the target.
    fn convert(&self, clang: &Path, target: &Processor, index: usize) -> Result<(), String> {
        let [_, triple] = target.triples();
        let words = [
            "--no-default-config",
            "--target=",
            "-x",
            "ir",
            "",
            "-c",
            "-emit-llvm",
            "-Xclang",
            "-disable-llvm-passes",
            "-nogpulib",
            "-Wno-override-module",
            "-o",
        ];
        let words = words.map(|word| match word {
            "--target=" => format!("--target={triple}").into(),
            "" => self.inputs.bitcode[index].clone().into_os_string(),
            word => OsString::from(word),
        });
        let words: Vec<OsString> = words.into_iter().chain([self.converted(index).into()]).collect();
        child::attempt(self.linker.context, clang, &words)
    }

    /// The arguments of the link except for HotSwap's, the output and other files that it writes.
    fn words(&self, change: impl Fn(&OsStr) -> Option<OsString>) -> Vec<OsString> {
        let mut words = Vec::new();
        let mut old = self.linker.line.words();
        while let Some(word) = old.next() {
            if is_option_with_value(WRITES, word) {
                old.next();
            } else if !self.linker.line.removes(word) && !writes(word) {
                words.extend(change(word));
            }
        }
        words
    }

    /// Runs the linker; returns its output.
    fn run(&self, words: Vec<OsString>, name: &str) -> LinkAttempt {
        let output = self.directory.join(name);
        let flavor = usize::from(words.first().is_some_and(|word| word == "-flavor")) * 2;
        let (flavor, rest) = words.split_at(flavor.min(words.len()));
        let last = [OsStr::new("-o"), output.as_os_str()];
        let file =
            response_file(rest.iter().map(OsString::as_os_str).chain(last)).map_err(|error| error.to_string())?;
        let rest = OsString::from(format!("@/proc/self/fd/{}", file.as_raw_fd()));
        let words: Vec<OsString> = flavor.iter().cloned().chain([rest]).collect();
        child::attempt(self.linker.context, self.linker.real, &words)?;
        fs::read(&output).map_err(|error| error.to_string())
    }
}

fn accept_stand_in(bytes: Vec<u8>, made: &CodeObject<'_>, target: &TargetId) -> Result<Vec<u8>, String> {
    may_stand_for(made, &bytes, target).map(|()| bytes)
}

fn accept_same_code(bytes: Vec<u8>, made: &CodeObject<'_>) -> Result<Vec<u8>, String> {
    is_same_code(made, &bytes).map(|()| bytes)
}

fn bitcode_input_position(word: &OsStr, inputs: &Inputs) -> Option<usize> {
    inputs.bitcode.iter().position(|file| file == Path::new(word))
}

fn is_option_with_value(options: &[&str], word: &OsStr) -> bool {
    options.iter().any(|option| word == *option)
}

/// Name of the file with LTO's saved object; the names of further ones have a number appended.
const SAVED: &str = "lto.o";

/// Options with a file that the link writes.
const WRITES: &[&str] = &[
    "-o",
    "--output",
    "-Map",
    "--Map",
    "--dependency-file",
    "--reproduce",
    "--why-extract",
    "--print-symbol-order",
    "--lto-obj-path",
];

/// Whether the argument alone makes the link write a file, or print.
fn writes(word: &OsStr) -> bool {
    const ALONE: &[&str] =
        &["-M", "--print-map", "--cref", "-save-temps", "--save-temps", "--time-trace", "--verbose", "-t", "--trace"];
    const STARTS: &[&str] = &[
        "--save-temps=",
        "-save-temps=",
        "--time-trace=",
        "--opt-remarks",
        "-plugin-opt=save-temps",
        "-plugin-opt=obj-path=",
        "-plugin-opt=opt-remarks",
        "-plugin-opt=stats-file=",
    ];
    let text = word.to_string_lossy();
    ALONE.contains(&&*text)
        || STARTS.iter().any(|start| text.starts_with(start))
        || WRITES.iter().any(|option: &&str| text.strip_prefix(*option).is_some_and(|rest| rest.starts_with('=')))
}
