//! Compares two code objects by executing both, the one before and the one after a rewrite or another compile.
//!
//! - Changed instructions ([`site`]): where the second file has the certificate of a rewrite, each instruction that was
//!   replaced and its replacement are executed on generated states ([`pair`]).
//! - Whole kernels ([`kernel`]): both are launched with the same arguments and the same memory ([`memory`]).
//!
//! Invariants: each side is executed on the processor of its own file. What cannot be executed is named, and is never
//! equal. The same files, seed and number of states give the same result.
//!
//! Absent on purpose: the rewriter, of which nothing is used here but its certificate, a hint that a wrong one makes fail.

mod kernel;
mod memory;
mod object;
mod order;
mod pair;
mod random;
mod report;
mod site;

pub use report::{CheckReport, CodePlace, Difference, DifferingValue, FamilyStates, KernelResult};

use hotswap_program::{CodeSource, SectionProgram};
use hotswap_report::{Certificate, Diagnostic, codes};
use kernel::{KernelPair, LaunchResult};
use memory::SeededMemory;
use object::{CheckedObject, OffsetMap};
use site::{SiteKey, SiteQuestion, SiteResult};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The kernels, states and launches of a comparison.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// The only kernel to compare; `None` compares all of them.
    pub kernel: Option<String>,
    /// States of each changed instruction.
    pub states: u64,
    /// Launches of each kernel.
    pub launches: u64,
    /// Everything that is generated depends on it.
    pub seed: u64,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self { kernel: None, states: 1000, launches: 16, seed: 1 }
    }
}

/// Launches without an end after which a kernel is given up.
const ATTEMPTS: u64 = 4;

/// Compares two code objects.
///
/// # Errors
/// Files that cannot be read, processors that cannot be executed, and kernels that are not in both.
pub fn compare_code_objects(before: &[u8], after: &[u8], options: &CheckOptions) -> Result<CheckReport, Diagnostic> {
    let objects = [CheckedObject::load(before)?, CheckedObject::load(after)?];
    let objects = [&objects[0], &objects[1]];
    let found = objects[1].read_certificate()?;
    let certificate = found.filter(|_| objects[0].may_become(objects[1])).unwrap_or_default();
    let maps: Vec<OffsetMap<'_>> = certificate.sections.iter().map(OffsetMap::new).collect();
    let memories = objects.map(|object| SeededMemory::new(object.memory.clone()));
    let memories = [&memories[0], &memories[1]];
    let mut comparison = ObjectComparison {
        objects,
        memories,
        options,
        certificate: &certificate,
        maps: &maps,
        known: HashMap::new(),
        families: BTreeMap::new(),
    };
    let sites = comparison.collect_sites()?;
    let mut kernels = Vec::new();
    for name in kernel_names(objects, options)? {
        let mut result = comparison.kernel_sites(&name, &sites);
        if result.difference.is_none() {
            let plain = sites.iter().any(|site| site.needs_plain_mode(&name));
            comparison.check_launches((&name, plain), &mut result);
        }
        kernels.push(result);
    }
    let processors = objects.map(|object| object.loaded.processor.to_owned());
    let families = comparison.families.into_values().collect();
    Ok(CheckReport { processors, kernels, assumes: certificate.assumes.clone(), families })
}

fn kernel_names_of_object(object: &CheckedObject<'_>) -> BTreeSet<String> {
    object.loaded.kernels.iter().map(|kernel| kernel.name.clone()).collect()
}

/// The kernels to compare.
fn kernel_names(objects: [&CheckedObject<'_>; 2], options: &CheckOptions) -> Result<Vec<String>, Diagnostic> {
    let [before, after] = objects.map(kernel_names_of_object);
    if let Some(name) = &options.kernel {
        return match (before.contains(name), after.contains(name)) {
            (true, true) => Ok(vec![name.clone()]),
            (is_before, _) => {
                let which = if is_before { "after" } else { "before" };
                Err(Diagnostic::error(codes::NO_PART, format!("the file {which} has no kernel `{name}`")))
            }
        };
    }
    if let Some(name) = before.symmetric_difference(&after).next() {
        let what = format!("kernel `{name}` is in one of the two code objects only");
        return Err(Diagnostic::error(codes::NOT_CHECKED, what).advise("name a kernel of both by --kernel"));
    }
    if before.is_empty() {
        return Err(Diagnostic::error(codes::NO_PART, "the code objects have no kernel"));
    }
    Ok(before.into_iter().collect())
}

/// The state of a comparison.
struct ObjectComparison<'a> {
    objects: [&'a CheckedObject<'a>; 2],
    memories: [&'a SeededMemory; 2],
    options: &'a CheckOptions,
    certificate: &'a Certificate,
    maps: &'a [OffsetMap<'a>],
    known: HashMap<SiteKey, SiteResult>,
    families: BTreeMap<String, FamilyStates>,
}

/// A site with the kernels that reach it.
struct KernelSite<'a> {
    question: Option<SiteQuestion<'a>>,
    address: u64,
    families: Vec<String>,
    kernels: BTreeSet<String>,
}

impl KernelSite<'_> {
    /// Whether a kernel reaches it, and its replacement relies on modes of floats.
    fn needs_plain_mode(&self, kernel: &str) -> bool {
        self.kernels.contains(kernel) && self.question.as_ref().is_some_and(SiteQuestion::needs_plain_mode)
    }
}

impl<'a> ObjectComparison<'a> {
    /// Every site of the certificate.
    fn collect_sites(&self) -> Result<Vec<KernelSite<'a>>, Diagnostic> {
        let mut all = Vec::new();
        if self.maps.iter().all(|map| map.section.sites.is_empty()) {
            return Ok(all);
        }
        for source in CodeSource::sources_of_object(&self.objects[0].parsed)? {
            let Some(number) = source.number else { continue };
            let Some(map) = self.maps.iter().find(|map| map.section.number as usize == number) else { continue };
            let places = map.section.sites.iter().map(|site| site.old).collect::<Vec<_>>();
            let program = SectionProgram::new(number, "", source, |_| places.clone());
            for site in &map.section.sites {
                all.push(KernelSite {
                    question: SiteQuestion::read_site(&program, self.objects, map, site),
                    address: self.objects[0].memory_address(number, site.old),
                    families: self.certificate.family_names(site).into_iter().map(str::to_owned).collect(),
                    kernels: kernels_of(&program, site.old),
                });
            }
        }
        Ok(all)
    }

    /// The sites of a kernel.
    fn kernel_sites(&mut self, kernel: &str, sites: &[KernelSite<'_>]) -> KernelResult {
        let mut result = KernelResult { kernel: kernel.to_owned(), ..KernelResult::default() };
        let mut unchecked = BTreeSet::new();
        for site in sites.iter().filter(|site| site.kernels.contains(kernel)) {
            result.sites += 1;
            match self.check_site(site) {
                SiteResult::Equal(states) => result.states += states,
                SiteResult::Unchecked(what) => drop(unchecked.insert(what)),
                SiteResult::Different(difference) => {
                    let mut difference = *difference;
                    difference.places[0] = self.objects[0].code_place(site.address);
                    difference.families.clone_from(&site.families);
                    result.difference.get_or_insert(difference);
                }
            }
        }
        result.unchecked = unchecked.into_iter().collect();
        result
    }

    fn check_site(&mut self, site: &KernelSite<'_>) -> SiteResult {
        let Some(question) = &site.question else {
            return SiteResult::Unchecked(format!("no function is known at {:#x}", site.address));
        };
        let key = question.key();
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let result = question.check_states(self.objects, self.memories, (self.options.seed, self.options.states));
        for name in &site.families {
            let row = self.families.entry(name.clone()).or_default();
            row.name.clone_from(name);
            row.sites += 1;
            row.states += if let SiteResult::Equal(states) = &result { *states } else { 0 };
        }
        self.known.insert(key, result.clone());
        result
    }

    /// Launches of a kernel.
    fn check_launches(&self, (name, plain_modes): (&str, bool), result: &mut KernelResult) {
        let [Some(before), Some(after)] = self.objects.map(|object| object.loaded.find_kernel(name)) else { return };
        let notes = self.objects[0].parsed.note().kernels.iter().find(|kernel| kernel.name == name);
        let largest = notes.and_then(|kernel| kernel.max_flat_workgroup_size).unwrap_or(1024) as u32;
        let lanes = notes.and_then(|kernel| kernel.wavefront_size).unwrap_or(32) as u32;
        let full_wave = self.objects.iter().any(|object| object.has_products()).then_some(lanes);
        let pair = KernelPair {
            objects: self.objects,
            memories: self.memories,
            kernels: [before, after],
            maps: self.maps,
            plain_modes,
            largest,
            full_wave,
        };
        for number in 0..self.options.launches {
            match pair.check_launch(self.options.seed, number) {
                LaunchResult::Equal => result.launches += 1,
                LaunchResult::Unfinished => {
                    result.unfinished += 1;
                    if result.launches == 0 && result.unfinished == ATTEMPTS {
                        break;
                    }
                }
                LaunchResult::Unordered => result.unordered += 1,
                LaunchResult::Meeting => result.meeting += 1,
                LaunchResult::Different(difference) => {
                    result.difference = Some(*difference);
                    return;
                }
                LaunchResult::Unchecked(what) => {
                    result.unchecked.push(what);
                    return;
                }
            }
        }
        if let Some(reason) = unjudged_reason(result).filter(|_| result.launches == 0) {
            result.unchecked.push(reason.to_owned());
        }
    }
}

/// Why launches of a kernel say nothing.
fn unjudged_reason(result: &KernelResult) -> Option<&'static str> {
    const REASONS: [&str; 3] = [
        "what every launch writes depends on the order of its waves",
        "in every launch lanes store different values to one place by one instruction",
        "no launch ends within the budget of instructions",
    ];
    let counts = [result.unordered, result.meeting, result.unfinished];
    counts.iter().zip(REASONS).find(|(count, _)| **count > 0).map(|(_, reason)| reason)
}

/// The kernels that reach a place: all of them where callers are not known.
fn kernels_of(program: &SectionProgram<'_>, at: u32) -> BTreeSet<String> {
    let functions = &program.program.functions;
    let Some((number, _)) = program.program.function_at(at) else { return BTreeSet::new() };
    let (known, others) = program.reached_from(number);
    let kernels = functions.iter().enumerate().filter(|(_, function)| function.is_kernel());
    let reaching = kernels.filter(|(kernel, _)| others || *kernel == number || known.contains(&(*kernel as u32)));
    reaching.map(|(_, function)| program.program.name(function)).collect()
}
