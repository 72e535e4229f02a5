//! The registry: one slot for each family, filled by the family's registrar.
//!
//! Slots run in one order: by scope in the order of [`Scope`](crate::Scope)'s declaration, within
//! a scope by the number in `patches.def`. An empty slot does nothing. The registry is installed
//! once per process, by whichever thread asks first.
//!
//! Every line of `patches.def` is called through an extern declaration made from it. A line
//! without a registrar is therefore an undefined symbol in the link of every tool that uses the
//! registry; nothing can be forgotten at run time.
//!
//! Absent on purpose: families loaded at run time; choosing families (the plan does).

use crate::table::{FAMILIES, Family, Slot};
use hotswap_code_object::{CodeObject, Edit};
use hotswap_report::{Diagnostic, FamilyCount, codes};
use hotswap_targets::TargetId;
use std::sync::OnceLock;

/// What a family does: edits a copy of `source` towards `target` and returns the number of sites
/// that it changed. A family must not fail for an object that is as it wants it already.
pub(crate) type Apply = fn(&CodeObject<'_>, &TargetId, &mut Edit<'_, '_>) -> Result<u64, Diagnostic>;

/// The slots, in the order of [`FAMILIES`].
#[derive(Debug)]
pub struct Registry {
    slots: Vec<Option<Apply>>,
    /// What registrars bound, in the order of the calls.
    bound: Vec<Slot>,
    /// The first registrar that did not bind exactly its own slot, once: a defect of HotSwap.
    fault: Option<String>,
}

// Sound: each symbol is a function of this very type, defined in one file of src/family; the link
// fails on two definitions, and nothing of C with such a symbol is linked into the tools (build.rs
// prints no link directive).
#[allow(unsafe_code)]
mod registrars {
    use super::Registry;
    include!(concat!(env!("OUT_DIR"), "/registrars.rs"));
}

type Registrar = fn(&mut Registry);

impl Registry {
    /// The registry of this process.
    pub fn installed() -> &'static Self {
        static INSTALLED: OnceLock<Registry> = OnceLock::new();
        INSTALLED.get_or_init(|| Self::install(registrars::REGISTRARS))
    }

    /// Calls the registrar of each family, in the order of the list.
    fn install(registrars: &[Registrar]) -> Self {
        let mut registry = Self { slots: vec![None; FAMILIES.len()], bound: Vec::new(), fault: None };
        for (index, registrar) in registrars.iter().enumerate() {
            let before = registry.bound.len();
            registrar(&mut registry);
            let fault = fault_of(Slot(index), &registry.bound[before..]);
            registry.fault = registry.fault.take().or(fault);
        }
        registry
    }

    /// Fills a slot; called by the family's registrar.
    pub(crate) fn bind(&mut self, slot: Slot, apply: Apply) {
        self.slots[slot.0].get_or_insert(apply);
        self.bound.push(slot);
    }

    /// Runs every family on a copy of `source`, towards `target`: the new bytes, and the families
    /// that changed something, in the order in which they ran. The result is not verified here.
    ///
    /// # Errors
    /// What a family refuses; [`codes::INTERNAL`] if a registrar misbehaved.
    pub fn apply(&self, source: &CodeObject<'_>, target: &TargetId) -> Result<(Vec<u8>, Vec<FamilyCount>), Diagnostic> {
        if let Some(fault) = &self.fault {
            return Err(Diagnostic::error(codes::INTERNAL, fault));
        }
        let mut edit = Edit::new(source);
        let mut counts = Vec::new();
        for (family, apply) in self.in_order() {
            let sites = apply(source, target, &mut edit)?;
            if sites > 0 {
                counts.push(FamilyCount { name: family.name.to_owned(), sites });
            }
        }
        Ok((edit.finish(), counts))
    }

    /// The filled slots in the order in which they run.
    fn in_order(&self) -> Vec<(&'static Family, Apply)> {
        let filled = FAMILIES.iter().zip(&self.slots).filter_map(|(family, slot)| Some((family, (*slot)?)));
        let mut filled: Vec<_> = filled.collect();
        filled.sort_by_key(|(family, _)| (family.scope, family.order));
        filled
    }
}

/// What is wrong with the slots that one registrar bound.
fn fault_of(own: Slot, bound: &[Slot]) -> Option<String> {
    let name = |slot: Slot| FAMILIES[slot.0].name;
    let registrar = name(own);
    match bound {
        [] => Some(format!("the registrar of `{registrar}` binds nothing")),
        [slot] if *slot == own => None,
        _ => Some(match bound.iter().find(|slot| **slot != own) {
            Some(other) => format!("the registrar of `{registrar}` binds the slot of `{}`", name(*other)),
            None => format!("the registrar of `{registrar}` binds its slot {} times", bound.len()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::slot;
    use std::thread;

    fn nothing(_: &CodeObject<'_>, _: &TargetId, _: &mut Edit<'_, '_>) -> Result<u64, Diagnostic> {
        Ok(0)
    }

    fn own_flags(registry: &mut Registry) {
        registry.bind(slot::MACHINE_FLAGS, nothing);
    }

    fn own_note(registry: &mut Registry) {
        registry.bind(slot::TARGET_NOTE, nothing);
    }

    fn fault(registrars: &[Registrar]) -> Option<String> {
        Registry::install(registrars).fault
    }

    #[test]
    fn a_registrar_binds_exactly_its_own_slot_once() {
        assert_eq!(fault(&[own_flags, own_note]), None);
        let text = |registrars: &[Registrar]| fault(registrars).unwrap();
        let target_note = "the registrar of `target_note` binds";
        assert_eq!(text(&[own_flags, own_flags]), format!("{target_note} the slot of `machine_flags`"));
        assert_eq!(text(&[own_flags, |_| {}]), format!("{target_note} nothing"));
        let twice: Registrar = |registry| {
            own_note(registry);
            own_note(registry);
        };
        assert_eq!(text(&[own_flags, twice]), format!("{target_note} its slot 2 times"));
        let both: Registrar = |registry| {
            own_note(registry);
            own_flags(registry);
        };
        assert_eq!(text(&[own_flags, both]), format!("{target_note} the slot of `machine_flags`"));
        assert!(text(&[own_note, own_flags]).starts_with("the registrar of `machine_flags` binds the slot"));
    }

    #[test]
    fn the_process_has_one_registry_with_every_slot_filled() {
        let addresses = thread::scope(|scope| {
            let ask = || Registry::installed() as *const Registry as usize;
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(addresses.iter().all(|address| *address == addresses[0]));
        let registry = Registry::installed();
        assert_eq!(registry.fault, None);
        assert!(registry.slots.iter().all(Option::is_some));
    }

    #[test]
    fn slots_run_in_the_order_of_the_list_and_an_empty_one_is_passed_over() {
        let names = |registry: &Registry| registry.in_order().iter().map(|(family, _)| family.name).collect::<Vec<_>>();
        assert_eq!(names(Registry::installed()), ["machine_flags", "target_note"]);
        assert_eq!(names(&Registry::install(&[])), [""; 0]);
        let one = Registry { slots: vec![None, Some(nothing as Apply)], bound: Vec::new(), fault: None };
        assert_eq!(names(&one), ["target_note"]);
    }
}
