//! Which profile is of which code: by the identity in the profile, by build IDs, and only without either by functions.
//!
//! Invariant: a part of a profile belongs to one object or to none, and each is accounted for.

use crate::covered::{Covered, processor};
use crate::identity::{FunctionKey, ObjectIdentity};
use crate::profile_files::{ProfileFile, target_of_name};
use crate::raw_profile::RawProfile;
use std::collections::BTreeSet;
use std::path::Path;

/// A raw profile of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartRef {
    /// Position in the profiles.
    pub(crate) profile: usize,
    /// Position in the file.
    pub(crate) part: usize,
}

/// The profiles of each object, and the rest.
#[derive(Debug, Default)]
pub(crate) struct ProfileAccounts {
    /// In the order of the objects.
    pub(crate) by_object: Vec<Vec<PartRef>>,
    /// Profiles of code that is in none of the objects.
    pub(crate) unmatched: Vec<PartRef>,
    /// Profiles that say nothing of their code, and that the functions of several objects fit.
    pub(crate) guessed: Vec<PartRef>,
}

/// The decision about a part.
enum PartMatch {
    Object(usize),
    Guess(usize),
    Nothing,
}

/// Assigns each raw profile to an object.
pub(crate) fn match_profiles(profiles: &[ProfileFile], objects: &[Covered]) -> ProfileAccounts {
    let mut accounts = ProfileAccounts { by_object: vec![Vec::new(); objects.len()], ..ProfileAccounts::default() };
    for (profile, file) in profiles.iter().enumerate() {
        for (number, part) in file.parts.iter().flatten().enumerate() {
            let place = PartRef { profile, part: number };
            match match_part(part, &file.path, objects) {
                PartMatch::Object(object) => accounts.by_object[object].push(place),
                PartMatch::Guess(object) => {
                    accounts.by_object[object].push(place);
                    accounts.guessed.push(place);
                }
                PartMatch::Nothing => accounts.unmatched.push(place),
            }
        }
    }
    accounts
}

fn match_part(part: &RawProfile, path: &Path, objects: &[Covered]) -> PartMatch {
    let Some(device) = &part.device else { return match_by_build_id(part, path, objects) };
    if device.code != 0 {
        let own = objects.iter().position(|object| object.identity.code == Some(device.code));
        return own.map_or(PartMatch::Nothing, PartMatch::Object);
    }
    let candidates = (0..objects.len()).filter(|number| objects[*number].target != "host").collect();
    match_by_functions(part, path, objects, candidates)
}

/// The profile of a host has the build ID of its file. LLVM's own drain gives it to the profiles of devices, too, so the
/// functions decide between the file's host and device code.
fn match_by_build_id(part: &RawProfile, path: &Path, objects: &[Covered]) -> PartMatch {
    if part.build_ids.is_empty() {
        return match_by_functions(part, path, objects, (0..objects.len()).collect());
    }
    let named = objects.iter().filter(|object| names_build_id(part, object));
    let files: BTreeSet<&Path> = named.map(|object| object.from.as_path()).collect();
    let candidates: Vec<usize> =
        (0..objects.len()).filter(|number| files.contains(objects[*number].from.as_path())).collect();
    let host = candidates.iter().copied().find(|number| objects[*number].target == "host");
    match (match_by_functions(part, path, objects, candidates), host) {
        (PartMatch::Object(object) | PartMatch::Guess(object), _) => PartMatch::Object(object),
        (PartMatch::Nothing, Some(host)) if part.wave.is_none() => PartMatch::Object(host),
        (PartMatch::Nothing, _) => PartMatch::Nothing,
    }
}

fn names_build_id(part: &RawProfile, object: &Covered) -> bool {
    object.identity.build_id.as_ref().is_some_and(|id| part.build_ids.contains(id))
}

/// An object that has some functions of a profile.
struct RatedObject {
    /// The number of those functions.
    shared: usize,
    number: usize,
}

/// The object with most of the functions; where several have as many, that which the name of the file begins
/// with, or the host's.
fn match_by_functions(part: &RawProfile, path: &Path, objects: &[Covered], candidates: Vec<usize>) -> PartMatch {
    let rated = candidates
        .into_iter()
        .map(|number| RatedObject { shared: shared(&part.keys, &objects[number].identity), number });
    let rated: Vec<RatedObject> = rated.filter(|object| object.shared > 0).collect();
    let most = rated.iter().map(|object| object.shared).max().unwrap_or(0);
    let best: Vec<usize> = rated.iter().filter(|object| object.shared == most).map(|object| object.number).collect();
    let named = target_of_name(path);
    let by_name = best.iter().find(|number| processor(&objects[**number].target) == named);
    match (best.as_slice(), by_name) {
        ([], _) => PartMatch::Nothing,
        ([one], _) => PartMatch::Object(*one),
        (_, Some(named)) => PartMatch::Guess(*named),
        ([first, ..], None) => PartMatch::Guess(*first),
    }
}

fn shared(keys: &[FunctionKey], object: &ObjectIdentity) -> usize {
    keys.iter().filter(|key| object.functions.contains(key)).count()
}

/// Objects of one target that llvm-cov may read together, since no name is in two of them.
#[derive(Debug)]
pub(crate) struct ExportGroup<'a> {
    pub(crate) target: &'a str,
    /// Positions of the objects.
    pub(crate) objects: Vec<usize>,
    pub(crate) has_data: bool,
    names: BTreeSet<u64>,
}

/// The groups. `has_data` tells whether an object has a profile.
pub(crate) fn group_objects<'a>(objects: &'a [Covered], has_data: &[bool]) -> Vec<ExportGroup<'a>> {
    let mut groups: Vec<ExportGroup<'a>> = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        let names: BTreeSet<u64> = object.identity.names().collect();
        match groups.iter_mut().find(|group| group.takes_object(object, has_data[number], &names)) {
            Some(group) => {
                group.objects.push(number);
                group.names.extend(names);
            }
            None => groups.push(ExportGroup {
                target: &object.target,
                objects: vec![number],
                has_data: has_data[number],
                names,
            }),
        }
    }
    groups
}

impl ExportGroup<'_> {
    fn takes_object(&self, object: &Covered, has_data: bool, names: &BTreeSet<u64>) -> bool {
        self.target == object.target && self.has_data == has_data && self.names.is_disjoint(names)
    }
}
