//! One drain: every code object that HSA has loaded, into the store, and from there into files.
//!
//! Each failure is reported once, with its loss, and never stops the rest.

use crate::bytes::until_zero;
use crate::capture::{self, CaptureRefusal, Loaded, TABLE_SIZE, capture};
use crate::elf::{Blocks, CodeObjectFile};
use crate::hsa::{self, Agent, Hsa, LoadedSegment};
use crate::images::DrainScope;
use crate::libc::{OwnMemory, host_name, process_id, say, variable};
use crate::memory::List;
use crate::name::{self, Path, Process};
use crate::raw::{ProcessTag, fnv};
use crate::stated_names::{HostName, NamingImage, NamingImages, OtherImages, StatedName, number_name};
use crate::store::{Store, WriteOutcome, Writer};
use core::ffi::CStr;
use core::mem::replace;

/// State that all copies of the drain in a process share.
pub struct Shared {
    pub store: Store,
    /// Warnings that were given.
    said: List<u64>,
    /// Whether an exit handler drained with success.
    exit_was_drained: bool,
    /// Whether the program's own exit handler drained: other images read later counts when they are unloaded.
    pub is_ending: bool,
    /// Whether an exit handler has begun: snapshots have ended.
    pub is_leaving: bool,
    /// When the first copy was loaded, in nanoseconds; the same after a fork.
    born: u64,
    /// The names of files that the copies stated; after a fork, too, since a copy keeps the number of its own.
    names: List<StatedName>,
}

impl Shared {
    /// A state in which nothing was drained yet.
    #[must_use]
    pub const fn new(born: u64) -> Self {
        Self {
            store: Store::EMPTY,
            said: List::EMPTY,
            exit_was_drained: false,
            is_ending: false,
            is_leaving: false,
            born,
            names: List::EMPTY,
        }
    }

    /// The state of a forked child, which has drained nothing.
    pub fn forget(&mut self) {
        let names = replace(&mut self.names, List::EMPTY);
        *self = Self { names, ..Self::new(self.born) };
    }
}

/// The reason of a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// The program ends, or this image is unloaded.
    Exit,
    /// The program requests it.
    Call,
    /// The environment requests it, now and then.
    Snapshot,
    /// The host's runtime of an image writes its own profile.
    Host,
    /// Code objects are about to be destroyed: the caller knows that their work is done.
    Unload,
    /// A fat binary is unregistered. Work started last, maybe by the destructor of a global object, may still run.
    Unregister,
}

/// Messages of a drain.
struct Log<'a> {
    said: &'a mut List<u64>,
    verbose: bool,
    lost: u32,
}

/// As long as a path, so that both are one type in the object.
type DrainLine = Path;

impl Log<'_> {
    /// Reports a loss. Not generic, so that there is one copy of it.
    fn warn(&mut self, what: &dyn Fn(&mut DrainLine)) {
        self.lost += 1;
        let mut line = DrainLine::new(b"hotswap-profile-drain: warning: ");
        what(&mut line);
        line.push(b"\n");
        let hash = fnv(0, line.bytes());
        if !self.said.contains(&hash) && self.said.push(hash).is_some() {
            say(line.bytes());
        }
    }

    fn note(&self, what: &dyn Fn(&mut DrainLine)) {
        if self.verbose {
            let mut line = DrainLine::new(b"hotswap-profile-drain: ");
            what(&mut line);
            line.push(b"\n");
            say(line.bytes());
        }
    }
}

/// Drains all code objects of the scope; returns the number of losses.
pub fn drain(shared: &mut Shared, occasion: Occasion, scope: &DrainScope, images: NamingImages<'_>) -> u32 {
    let verbose = variable::<8>(c"HOTSWAP_PROFILE_VERBOSE").is_some_and(|value| !matches!(value.bytes(), b"" | b"0"));
    let mut log = Log { said: &mut shared.said, verbose, lost: 0 };
    let hsa = match Hsa::find() {
        Ok(hsa) => hsa,
        Err(refusal) => {
            no_hsa(&mut log, refusal, occasion, shared.exit_was_drained, &shared.store);
            return log.lost;
        }
    };
    let written = CodeFiles { store: &mut shared.store, names: &mut shared.names, born: shared.born };
    collect_and_write(&hsa, written, (occasion, scope), images, &mut log);
    if occasion == Occasion::Exit && log.lost == 0 {
        shared.exit_was_drained = true;
    }
    log.lost
}

fn no_hsa(log: &mut Log<'_>, refusal: hsa::HsaRefusal, occasion: Occasion, exit_was_drained: bool, store: &Store) {
    let loads = store.loads() as u64;
    if refusal == hsa::HsaRefusal::NotUp && (occasion != Occasion::Exit || exit_was_drained || loads == 0) {
        log.note(&|line| {
            line.push(b"nothing to drain: HSA is not initialised");
        });
    } else if refusal == hsa::HsaRefusal::NotUp {
        log.warn(&|line| {
            line.push(b"HSA was shut down before the program's end: what ").number(loads);
            line.push(b" code objects counted after the last drain is lost; call hotswap_profile_drain() before");
        });
    } else {
        log.warn(&|line| {
            refusal.describe(line);
            line.push(b": the device profiles of this process are lost");
        });
    }
}

type DrainRequest<'a> = (Occasion, &'a DrainScope);

/// The code that was drained, and the names of its files.
struct CodeFiles<'a> {
    store: &'a mut Store,
    names: &'a mut List<StatedName>,
    born: u64,
}

fn collect_and_write(
    hsa: &Hsa,
    files: CodeFiles<'_>,
    request: DrainRequest<'_>,
    images: NamingImages<'_>,
    log: &mut Log<'_>,
) {
    let CodeFiles { store, names, born } = files;
    let (machine, temporary) = (host_name(), variable::<4096>(c"TMPDIR"));
    let directory = temporary.as_ref().map_or(&b""[..], |temporary| temporary.bytes());
    let process = Process { id: process_id(), host: machine.bytes(), temporary: directory };
    let mut naming = Naming { names, own: 0, others: images.others, process, has_temporary: temporary.is_some() };
    match naming.number_image(images.own) {
        Some(number) => naming.own = number,
        None => log.warn(&|line| {
            line.push(b"there is no memory for the name of a file; profiles may have that of another image");
        }),
    }
    collect(hsa, store, request, &mut naming, log);
    let tag = ProcessTag { id: process.id, start: born };
    for (number, name) in naming.names.iter().enumerate() {
        write(store, NamedProfiles { number, name, process, tag }, log);
    }
}

/// Gives new code its file's name.
struct Naming<'a> {
    names: &'a mut List<StatedName>,
    /// The number of the name of the image that drains.
    own: usize,
    others: &'a OtherImages,
    process: Process<'a>,
    has_temporary: bool,
}

impl Naming<'_> {
    /// The number of an image's name; `None` without memory.
    fn number_image(&mut self, image: NamingImage<'_>) -> Option<usize> {
        let stated = state_name(&image.host, self.process, self.has_temporary)?;
        number_name(self.names, stated, image.added)
    }

    /// The number of the name for the code whose file begins there: that of the image that has it, else of
    /// the one that drains.
    fn number_file(&mut self, file: Option<usize>) -> usize {
        let other = file.filter(|file| self.others.ranges.iter().any(|range| range.holds(*file)));
        let mut number = None;
        if let Some(file) = other {
            (self.others.find)(file, &mut |image| number = self.number_image(image));
        }
        number.unwrap_or(self.own)
    }
}

fn collect(
    hsa: &Hsa,
    store: &mut Store,
    (occasion, scope): DrainRequest<'_>,
    naming: &mut Naming<'_>,
    log: &mut Log<'_>,
) {
    let segments = hsa.segments().inspect(|segments| {
        if occasion != Occasion::Unload && count_segments(segments, scope) > 0 {
            hsa::finish_work();
        }
    });
    let segments = match segments {
        Ok(segments) => segments,
        Err(refusal) => {
            log.warn(&|line| {
                refusal.describe(line);
                line.push(b": which code is loaded is not known, and its profiles are lost");
            });
            return;
        }
    };
    log.note(&|line| {
        line.number(count_segments(&segments, scope)).push(b" segments of code are looked at");
    });
    let mut agents = List::EMPTY;
    for segment in segments.iter().filter(|segment| is_in_scope(segment, scope)) {
        match agent(hsa, segment.agent, &mut agents) {
            Ok(Some(agent)) => collect_one(hsa, store, segment, agent, naming, log),
            Ok(None) => {}
            Err(refusal) => log.warn(&|line| {
                refusal.describe(line);
                line.push(b": the profile of a code object at 0x").hex(segment.base, 0).push(b" is lost");
            }),
        }
    }
    retire(&segments, store);
}

fn is_in_scope(segment: &LoadedSegment, scope: &DrainScope) -> bool {
    scope.holds(segment.file.map(|file| file.start))
}

fn count_segments(segments: &hsa::Segments, scope: &DrainScope) -> u64 {
    segments.iter().filter(|segment| is_in_scope(segment, scope)).count() as u64
}

/// Retires loads that HSA no longer lists.
fn retire(segments: &hsa::Segments, store: &mut Store) {
    store.retire_all_but(segments.iter().map(|segment| (segment.executable, segment.base)));
}

/// Runs after code objects were destroyed: their handles may be reused.
pub fn forget_destroyed(shared: &mut Shared) {
    match Hsa::find().and_then(|hsa| hsa.segments()) {
        Ok(segments) => retire(&segments, &mut shared.store),
        Err(hsa::HsaRefusal::NotUp) => shared.store.retire_all_but(core::iter::empty()),
        Err(_) => {} // the next drain will see
    }
}

type KnownAgent = (u64, Option<Agent>);

fn agent(hsa: &Hsa, handle: u64, known: &mut List<KnownAgent>) -> Result<Option<Agent>, hsa::HsaRefusal> {
    if let Some((_, agent)) = known.iter().find(|(own, _)| *own == handle) {
        return Ok(*agent);
    }
    let agent = hsa.agent(handle)?;
    let _ = known.push((handle, agent)); // without memory, HSA is queried again
    Ok(agent)
}

fn collect_one(
    hsa: &Hsa,
    store: &mut Store,
    segment: LoadedSegment,
    agent: Agent,
    naming: &mut Naming<'_>,
    log: &mut Log<'_>,
) {
    let here = Loaded { base: segment.base, size: segment.size, table: None };
    let load = (segment.executable, segment.base);
    if store.refresh(load, |sections, fixed| capture::again(hsa, here, sections, fixed)) {
        return;
    }
    let range = segment.file.unwrap_or_default();
    let memory = Blocks::new(OwnMemory::at(range.start), range.size);
    let file = match segment.file {
        Some(_) => CodeObjectFile::open(&memory, range.size),
        None => Err(crate::elf::ElfFault::Unreadable),
    };
    let name = c"__llvm_profile_sections";
    let table = match file {
        Ok(_) => None,
        Err(_) => hsa.variable(segment.executable, segment.agent, name, TABLE_SIZE),
    };
    let loaded = Loaded { base: segment.base, size: segment.size, table };
    let named = LoadName { agent: &agent, base: segment.base };
    match capture(hsa, loaded, &file) {
        Ok(captured) => {
            report(&captured, &named, log);
            store.name = naming.number_file(segment.file.map(|file| file.start));
            if store.take(captured, load, agent.processor, agent.node).is_none() {
                log.warn(&|line| {
                    named.describe(line);
                    line.push(b"there is no memory; its profile is lost");
                });
            }
        }
        Err(CaptureRefusal::NoProfile) => log.note(&|line| {
            named.describe(line);
            line.push(b"no profile");
        }),
        Err(refusal) => log.warn(&|line| {
            named.describe(line);
            refusal.describe(line);
            let known = !matches!(refusal, CaptureRefusal::Unknown(_));
            line.push(if known { b"; its profile is lost" } else { b"; if it has a profile, that is lost" });
        }),
    }
}

/// A load in messages.
struct LoadName<'a> {
    agent: &'a Agent,
    base: u64,
}

impl LoadName<'_> {
    fn describe(&self, line: &mut DrainLine) {
        line.push(until_zero(&self.agent.processor)).push(b" code object at 0x").hex(self.base, 0);
        line.push(b" on node ").number(u64::from(self.agent.node)).push(b": ");
    }
}

fn report(captured: &capture::Capture, named: &LoadName<'_>, log: &mut Log<'_>) {
    if captured.dropped > 0 {
        log.warn(&|line| {
            named.describe(line);
            line.number(captured.dropped as u64).push(b" damaged records are left out; the others are kept");
        });
    }
    if captured.table_is_damaged {
        log.warn(&|line| {
            named.describe(line);
            line.push(b"its bounds table is damaged; its sections or symbols are used instead");
        });
    }
}

/// Whether the program itself set the file of the host's runtime: then that is not the pattern's file. (`%m` and `%b` mean
/// the host's own code there, another one in each image, so that they cannot be compared.)
fn is_told(file: &Path, pattern: &[u8], process: Process<'_>, host: &HostName) -> bool {
    file.bytes() != name::expand(pattern, Process { id: host.first_process, ..process }, 0).bytes()
}

/// Variables with the number of a process among those of one start: Open MPI, MPICH and Intel MPI, MVAPICH2, Slurm.
/// Arrays, because each pointer would be a relocation.
const RANKS: [[u8; 21]; 4] = [
    *b"OMPI_COMM_WORLD_RANK\0",
    *b"PMI_RANK\0\0\0\0\0\0\0\0\0\0\0\0\0",
    *b"MV2_COMM_WORLD_RANK\0\0",
    *b"SLURM_PROCID\0\0\0\0\0\0\0\0\0",
];

/// The rank of this process; 0 where nothing started several.
fn rank() -> Path {
    RANKS.iter().find_map(|name| variable(CStr::from_bytes_until_nul(name).ok()?)).unwrap_or(Path::new(b"0"))
}

/// The pattern of the environment or of the command line.
fn stated_pattern(of_command: Option<Path>) -> Option<Path> {
    variable::<4096>(c"LLVM_PROFILE_FILE").filter(|pattern| !pattern.bytes().is_empty()).or(of_command)
}

/// The pattern with the rank in place of `%r`; `None` if it does not name the rank.
pub fn named_by_rank(of_command: Option<Path>) -> Option<Path> {
    let stated = stated_pattern(of_command)?;
    name::with_rank(stated.bytes(), rank)
}

/// The pattern of the host's file. As in LLVM's runtime, one that needs a missing directory is ignored.
fn pattern(host: &HostName, has_temporary: bool) -> Path {
    let stated = stated_pattern(host.pattern).unwrap_or(Path::new(name::DEFAULT));
    let pattern = name::with_rank(stated.bytes(), rank).unwrap_or(stated);
    if !has_temporary && name::needs_temporary(pattern.bytes()) { Path::new(name::DEFAULT) } else { pattern }
}

/// The name of the host's file that this image states now; `None` without memory.
fn state_name(host: &HostName, process: Process<'_>, has_temporary: bool) -> Option<StatedName> {
    let pattern = pattern(host, has_temporary);
    let pattern = pattern.bytes();
    let told = host.file.as_ref().filter(|file| !name::names_content(pattern) && is_told(file, pattern, process, host));
    StatedName::new(pattern, told.map_or(b"", |file| file.bytes()), host.start)
}

/// The profiles of the code that has one name, and who writes them.
struct NamedProfiles<'a> {
    number: usize,
    name: &'a StatedName,
    process: Process<'a>,
    tag: ProcessTag,
}

fn write(store: &mut Store, named: NamedProfiles<'_>, log: &mut Log<'_>) {
    let NamedProfiles { number: own, name: StatedName { pattern, chosen, since }, process, tag } = named;
    let writer = Writer { tag, since: *since };
    let merge = name::merges(pattern);
    // Then each code has its own file; otherwise small profiles share one.
    let alone = name::names_content(pattern);
    let told = (!chosen.is_empty()).then(|| Path::new(chosen));
    let same_for_all = told.or_else(|| (!alone).then(|| name::expand(pattern, process, 0)));
    for number in 0..store.entries().len() {
        let Some(volume) = store.volume(number, own, alone) else { continue };
        let Some(device) = store.device(volume) else { continue };
        let mut own = None;
        let expanded = match &same_for_all {
            Some(file) => file,
            None => own.insert(name::expand(pattern, process, device.content)),
        };
        if expanded.bytes() == name::NOWHERE {
            log.note(&|line| {
                line.push(b"/dev/null: nothing is written");
            });
            return;
        }
        if store.is_written(volume, expanded) {
            continue;
        }
        let mut path = name::beside(expanded.bytes(), device, None);
        let mut written = match merge {
            true => store.merge(volume, &path, expanded, process.id),
            false => store.write(volume, &path, expanded, writer),
        };
        if let (Ok(WriteOutcome::Taken), Some(device)) = (written, store.device(volume)) {
            path = name::beside(expanded.bytes(), device, Some(process.id));
            log.note(&|line| {
                line.push(b"a link, a file of other code, or one without locks cannot be added to; instead: ")
                    .push(path.bytes());
            });
            written = store.write(volume, &path, expanded, writer);
        }
        match written {
            Ok(WriteOutcome::Yes) => log.note(&|line| {
                line.push(b"wrote ").push(path.bytes()).push(b": ").number(store.records(volume) as u64);
                line.push(b" functions");
            }),
            Ok(WriteOutcome::Taken) => {}
            Err(error) => log.warn(&|line| {
                // The path comes last, since it may be as long as the line.
                line.push(b"a profile is lost, its file cannot be written: ");
                error.describe(line);
                line.push(b": ").push(path.bytes());
            }),
        }
    }
}
