//! The registry: one slot for each family, filled by the family's registrar.
//!
//! Slots run in one order: by scope in the order of [`FamilyScope`](crate::Scope)'s declaration, within a scope by the number
//! in `patches.def`. An empty slot does nothing. The registry is installed once per process, by the first thread that
//! needs it.
//!
//! Every line of `patches.def` is called through an extern declaration made from it. A line
//! without a registrar is therefore an undefined symbol in the link of every tool that uses the
//! registry; nothing can be forgotten at run time.
//!
//! Third-party families follow HotSwap's own, through plain C ([`hotswap_family_abi`]), and only in tools that are
//! built with them: by `HOTSWAP_FAMILIES` (`build.rs` links the libraries), or by a tool that lists them itself.
//!
//! Not here: families loaded at run time; choosing families (the plan does).

use crate::code::{
    CandidateFilter, CodeSite, FieldNumber, FunctionFamily, FunctionFlow, Insertion, InstructionFamily, SiteAnswer,
    SiteQueries, SiteRefusal,
};
use crate::selection::ASKED_FOR;
use crate::table::{FAMILIES, FamilyScope, FamilySlot, PatchFamily};
use crate::third_party::{self, ThirdParty};
use hotswap_code_object::{BytePatch, CodeObject, ObjectEdit};
use hotswap_isa::{Inst, Isa, TableEntry};
use hotswap_report::{Diagnostic, FamilyCount, codes};
use hotswap_targets::TargetId;
use std::sync::OnceLock;

/// The function of a family of scope `CodeObject`: edits a copy of `source` towards `target` and returns the number of
/// sites that it changed. A family must not fail for an object that is already valid for the target.
pub(crate) type ObjectFamily = fn(&CodeObject<'_>, &TargetId, &mut ObjectEdit<'_, '_>) -> Result<u64, Diagnostic>;

/// The function that a registrar binds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Apply {
    Instruction(InstructionFamily),
    Function(FunctionFamily),
    CodeObject(ObjectFamily),
}

impl Apply {
    fn scope(self) -> FamilyScope {
        match self {
            Self::Instruction(_) => FamilyScope::Instruction,
            Self::Function(_) => FamilyScope::Function,
            Self::CodeObject(_) => FamilyScope::CodeObject,
        }
    }
}

/// A slot that a registrar has bound.
#[derive(Debug, Clone, Copy)]
struct SlotBinding {
    slot: FamilySlot,
    scope: FamilyScope,
}

/// A family with the functions that its registrar has bound.
#[derive(Debug, Clone, Copy)]
struct BoundFamily<F> {
    family: &'static PatchFamily,
    apply: F,
}

/// The slots, in the order of [`FAMILIES`].
#[derive(Debug)]
pub struct FamilyRegistry {
    slots: Vec<Option<Apply>>,
    /// The bindings of the registrars, in the order of the calls.
    bound: Vec<SlotBinding>,
    /// Third-party families, in the order in which the tool lists them.
    others: Vec<ThirdParty>,
    /// The first registrar that did not bind exactly its own slot, once: a defect of HotSwap or of such a family.
    fault: Option<String>,
}

// Sound: each symbol is a function of this very type, defined in one file of src/family. The link fails on two
// definitions, and no C code with such a symbol is linked into the tools (build.rs links third-party libraries only,
// and leaves each its own registrar as the one global symbol).
#[allow(unsafe_code)]
mod registrars {
    use super::FamilyRegistry;
    include!(concat!(env!("OUT_DIR"), "/registrars.rs"));
}

// Sound: the symbols are registrars of the header's type by their names. build.rs has taken each from its own library.
#[allow(unsafe_code)]
mod linked {
    include!(concat!(env!("OUT_DIR"), "/linked.rs"));
}

type Registrar = fn(&mut FamilyRegistry);

static INSTALLED: OnceLock<FamilyRegistry> = OnceLock::new();

impl FamilyRegistry {
    /// The registry of this process.
    pub fn installed() -> &'static Self {
        INSTALLED.get_or_init(|| Self::with_registrars(&[]))
    }

    /// The registry of this process with third-party families after HotSwap's own, for tools that are built with such.
    /// Their registrars are called once, in that order.
    ///
    /// # Errors
    /// [`codes::INTERNAL`] if the registry was installed before: a process has one, and its earlier users would
    /// have it without these.
    pub fn install_with(others: &[hotswap_family_abi::Registrar]) -> Result<&'static Self, Diagnostic> {
        let mut mine = false;
        let registry = INSTALLED.get_or_init(|| {
            mine = true;
            Self::with_registrars(others)
        });
        match mine {
            true => Ok(registry),
            false => Err(Diagnostic::error(codes::INTERNAL, "the registry of families is installed already")),
        }
    }

    /// HotSwap's own families, those that this build links, and `others`.
    fn with_registrars(others: &[hotswap_family_abi::Registrar]) -> Self {
        let mut registry = Self::install_families(registrars::REGISTRARS);
        linked::LINKED.iter().chain(others).for_each(|registrar| registry.add_registrar(registrar));
        registry
    }

    /// The third-party families, in the order in which they run.
    pub fn third_party_families(&self) -> impl Iterator<Item = &'static PatchFamily> + '_ {
        self.others.iter().map(|other| other.family)
    }

    fn add_registrar(&mut self, registrar: &hotswap_family_abi::Registrar) {
        match third_party::call_registrar(registrar, &self.others) {
            Ok(other) => self.others.push(other),
            Err(fault) => self.fault = self.fault.take().or(Some(fault)),
        }
    }

    /// Calls the registrar of each family, in the order of the list.
    fn install_families(registrars: &[Registrar]) -> Self {
        let mut registry =
            Self { slots: vec![None; FAMILIES.len()], bound: Vec::new(), others: Vec::new(), fault: None };
        for (index, registrar) in registrars.iter().enumerate() {
            let before = registry.bound.len();
            registrar(&mut registry);
            let fault = fault_of(FamilySlot(index), &registry.bound[before..]);
            registry.fault = registry.fault.take().or(fault);
        }
        registry
    }

    /// Fills a slot; called by the family's registrar.
    pub(crate) fn bind(&mut self, slot: FamilySlot, apply: Apply) {
        self.slots[slot.0].get_or_insert(apply);
        self.bound.push(SlotBinding { slot, scope: apply.scope() });
    }

    /// Runs every family on a copy of `source`, towards `target`. Returns the new bytes, and the families that changed
    /// something, in the order in which they ran. The result is not verified here.
    ///
    /// # Errors
    /// The refusal of a family; [`codes::INTERNAL`] if a registrar misbehaved.
    pub fn apply_families(
        &self,
        source: &CodeObject<'_>,
        target: &TargetId,
    ) -> Result<(Vec<u8>, Vec<FamilyCount>), Diagnostic> {
        let (patch, counts) = self.patch_object(source, target)?;
        Ok((patch.apply(source.bytes().to_vec()), counts))
    }

    /// Like [`Self::apply_families`], but returns only the changed parts.
    ///
    /// # Errors
    /// The same as those of [`Self::apply_families`].
    pub fn patch_object(
        &self,
        source: &CodeObject<'_>,
        target: &TargetId,
    ) -> Result<(BytePatch, Vec<FamilyCount>), Diagnostic> {
        self.check_registrars()?;
        let mut edit = ObjectEdit::new(source);
        let mut counts = Vec::new();
        for BoundFamily { family, apply } in self.in_order() {
            let Apply::CodeObject(apply) = apply else { continue };
            let sites = apply(source, target, &mut edit)?;
            if sites > 0 {
                counts.push(FamilyCount { name: family.name.to_owned(), sites });
            }
        }
        Ok((edit.build_patch(), counts))
    }

    /// The families that change code, prepared for queries about many instructions.
    ///
    /// # Errors
    /// [`codes::INTERNAL`] if a registrar misbehaved.
    pub fn prepare_rewriter(&self) -> Result<FamilyRewriter, Diagnostic> {
        self.check_registrars()?;
        let mut rewriter = FamilyRewriter {
            instruction: Vec::new(),
            function: Vec::new(),
            others: self.others.clone(),
            concerned: Vec::new(),
            numbers: Vec::new(),
            whole: 0,
            flows: Vec::new(),
        };
        for BoundFamily { family, apply } in self.in_order() {
            match apply {
                Apply::Instruction(apply) => rewriter.instruction.push(BoundFamily { family, apply }),
                Apply::Function(apply) => rewriter.function.push(BoundFamily { family, apply }),
                Apply::CodeObject(_) => {}
            }
        }
        let families = &rewriter.instruction;
        // Third-party families get every instruction that is left.
        let others = if self.others.is_empty() { 0 } else { OTHERS };
        let flows = &rewriter.function;
        rewriter.flows =
            TableEntry::all_entries().map(|entry| flows.iter().any(|bound| (bound.apply.entries)(entry))).collect();
        rewriter.concerned =
            TableEntry::all_entries().map(|entry| concerned_family_bits(entry, families) | others).collect();
        rewriter.whole = others;
        for (index, bound) in rewriter.instruction.iter().enumerate() {
            rewriter.whole |= u32::from(matches!(bound.apply.suspects, CandidateFilter::All)) << index;
        }
        rewriter.numbers = TableEntry::all_entries().map(|entry| rewriter.numbers_of(entry)).collect();
        Ok(rewriter)
    }

    /// Checks that each registrar bound its own slot.
    ///
    /// # Errors
    /// [`codes::INTERNAL`] if one did not: nothing can be applied then.
    pub fn check_registrars(&self) -> Result<(), Diagnostic> {
        match &self.fault {
            Some(fault) => Err(Diagnostic::error(codes::INTERNAL, fault)),
            None => Ok(()),
        }
    }

    /// The filled slots in the order in which they run.
    fn in_order(&self) -> Vec<BoundFamily<Apply>> {
        let slots = FAMILIES.iter().zip(&self.slots);
        let mut filled: Vec<_> =
            slots.filter_map(|(family, slot)| Some(BoundFamily { family, apply: (*slot)? })).collect();
        filled.sort_by_key(|bound| (bound.family.scope, bound.family.order));
        filled
    }
}

fn concerned_family_bits(entry: TableEntry, families: &[BoundFamily<InstructionFamily>]) -> u32 {
    let families = families.iter().enumerate();
    families.map(|(index, bound)| u32::from((bound.apply.concerns)(entry)) << index).sum::<u32>()
}

/// The answer of a family to a site.
#[derive(Debug)]
pub struct FamilyAnswer {
    pub family: &'static PatchFamily,
    pub answer: SiteAnswer,
}

/// The refusal of a family at a site.
#[derive(Debug)]
pub struct FamilyRefusal {
    pub family: &'static PatchFamily,
    pub refusal: SiteRefusal,
}

/// The families that change code, in the order in which they run.
#[derive(Debug, Clone)]
pub struct FamilyRewriter {
    instruction: Vec<BoundFamily<InstructionFamily>>,
    function: Vec<BoundFamily<FunctionFamily>>,
    others: Vec<ThirdParty>,
    /// For each encoding a bit for each family of `instruction` that it concerns.
    concerned: Vec<u32>,
    /// For each encoding the marks of the families that need only some of its instructions.
    numbers: Vec<Vec<InstructionMark>>,
    /// Bits of the families that need all instructions of their encodings.
    whole: u32,
    /// For each encoding whether it may concern one of `function`.
    flows: Vec<bool>,
}

/// A field with a number by which a family knows its instructions.
#[derive(Debug, Clone, Copy)]
struct InstructionMark {
    /// The bit of the family.
    family: u32,
    mark: FieldNumber,
}

// A bit for each family, the last one for third-party families.
const _: () = assert!(FAMILIES.len() < 32);
const OTHERS: u32 = 1 << 31;

impl FamilyRewriter {
    /// No family: for edits that depend on kernels, not on instructions.
    #[must_use]
    pub fn without_families() -> Self {
        Self {
            instruction: Vec::new(),
            function: Vec::new(),
            others: Vec::new(),
            concerned: Vec::new(),
            numbers: Vec::new(),
            whole: 0,
            flows: Vec::new(),
        }
    }

    /// Whether some family needs instructions of that encoding.
    #[inline]
    pub fn concerns_encoding(&self, entry: TableEntry) -> bool {
        self.concerned.get(usize::from(entry.id())).is_some_and(|families| *families != 0)
    }

    /// Whether some family needs that instruction.
    #[inline]
    pub fn concerns_instruction(&self, inst: &Inst) -> bool {
        let concerned = self.concerned.get(usize::from(inst.entry().id())).copied().unwrap_or(0);
        concerned != 0 && (concerned & self.whole != 0 || self.families_of_operands(concerned, inst) != 0)
    }

    /// Bits of the families that need the instruction, among those that its encoding concerns.
    fn families_of_operands(&self, concerned: u32, inst: &Inst) -> u32 {
        let numbers = self.numbers.get(usize::from(inst.entry().id())).into_iter().flatten();
        let held = numbers.filter(|known| inst.gather(known.mark.pieces) == known.mark.number);
        held.fold(concerned & self.whole, |all, known| all | known.family)
    }

    fn numbers_of(&self, entry: TableEntry) -> Vec<InstructionMark> {
        let concerned = self.concerned.get(usize::from(entry.id())).copied().unwrap_or(0);
        let mut numbers = Vec::new();
        let families = self.instruction.iter().enumerate();
        for (index, bound) in families.filter(|(index, _)| concerned >> index & 1 != 0) {
            let fields = bound.apply.suspects.operand_fields(entry).into_iter().flatten();
            numbers.extend(fields.map(|mark| InstructionMark { family: 1 << index, mark }));
        }
        numbers
    }

    /// The instructions of that encoding that no family needs: `None` if some family needs all, otherwise fields with
    /// the numbers that such an instruction must not hold.
    pub fn unconcerned_fields(&self, entry: TableEntry) -> Option<Vec<FieldNumber>> {
        let number = usize::from(entry.id());
        let (concerned, flows) = (self.concerned.get(number)?, self.flows.get(number)?);
        if concerned & OTHERS != 0 || *flows {
            return None;
        }
        let mut fields = Vec::new();
        let families = self.instruction.iter().enumerate();
        for (_, bound) in families.filter(|(index, _)| concerned >> index & 1 != 0) {
            fields.append(&mut bound.apply.suspects.operand_fields(entry)?);
        }
        Some(fields)
    }

    /// Whether some family of scope `Function` may insert code into a function with that instruction.
    #[inline]
    pub fn concerns_function(&self, inst: &Inst) -> bool {
        let may = self.flows.get(usize::from(inst.entry().id())).copied().unwrap_or(true);
        may && self.function.iter().any(|bound| (bound.apply.concerns)(inst))
    }

    /// The same for an instruction of code for `isa` with the bytes after it: some families are concerned by what follows.
    #[inline]
    pub fn concerns_function_with(&self, inst: &Inst, isa: Isa, following: &[u8]) -> bool {
        let may = self.flows.get(usize::from(inst.entry().id())).copied().unwrap_or(true);
        may && self.function.iter().any(|BoundFamily { apply, .. }| {
            (apply.concerns)(inst) && apply.confirms.is_none_or(|confirms| confirms(isa, inst, following))
        })
    }

    /// The family that an instruction of that encoding concerns although the compiler emits it for the target as well,
    /// because source code names it explicitly ([`crate::ASKED_FOR`]).
    pub fn asked_for(&self, entry: TableEntry) -> Option<&'static PatchFamily> {
        let mut asked = self.instruction.iter().filter(|bound| ASKED_FOR.contains(&bound.family.name));
        asked.find(|bound| (bound.apply.concerns)(entry)).map(|bound| bound.family)
    }

    /// The answer of the first family to which the instruction belongs, or `None` if it belongs to none.
    ///
    /// # Errors
    /// The refusal, with the family.
    pub fn rewrite_site(
        &self,
        site: &CodeSite<'_>,
        around: &dyn SiteQueries,
    ) -> Result<Option<FamilyAnswer>, FamilyRefusal> {
        let concerned = self.concerned.get(usize::from(site.inst.entry().id())).copied().unwrap_or(0);
        let held = self.families_of_operands(concerned, site.inst);
        for (index, &BoundFamily { family, apply }) in self.instruction.iter().enumerate() {
            if held >> index & 1 == 0 {
                continue;
            }
            match (apply.rewrite)(site, around) {
                Ok(SiteAnswer::NotMine) => {}
                Ok(answer) => return Ok(Some(FamilyAnswer { family, answer })),
                Err(refusal) => return Err(FamilyRefusal { family, refusal }),
            }
        }
        for other in &self.others {
            let family = other.family;
            match other.rewrite_site(site, around) {
                Ok(SiteAnswer::NotMine) => {}
                Ok(answer) => return Ok(Some(FamilyAnswer { family, answer })),
                Err(refusal) => return Err(FamilyRefusal { family, refusal }),
            }
        }
        Ok(None)
    }

    /// Whether a family of scope `Function` may insert code into a function with that instruction.
    pub fn concerns_family(&self, family: &PatchFamily, inst: &Inst) -> bool {
        // Most encodings concern none of them, and comparing names takes longer.
        let may = self.flows.get(usize::from(inst.entry().id())).copied().unwrap_or(true);
        may && self.function.iter().any(|bound| bound.family.name == family.name && (bound.apply.concerns)(inst))
    }

    /// The families of scope `Function` in order. The insertions of one belong in the code before the next one runs.
    pub fn function_families(&self) -> impl Iterator<Item = &'static PatchFamily> + '_ {
        self.function.iter().map(|bound| bound.family)
    }

    /// The insertions of a family of scope `Function` into a function.
    ///
    /// # Errors
    /// The refusal that the family answers.
    pub fn function_insertions(
        &self,
        family: &PatchFamily,
        flow: &FunctionFlow<'_>,
    ) -> Result<Vec<Insertion>, SiteRefusal> {
        match self.function.iter().find(|bound| bound.family.name == family.name) {
            Some(bound) => (bound.apply.insertions)(flow),
            None => Ok(Vec::new()),
        }
    }
}

/// The fault in the slots that one registrar bound.
fn fault_of(own: FamilySlot, bound: &[SlotBinding]) -> Option<String> {
    let registrar = family_name(own);
    match bound {
        [] => Some(format!("the registrar of `{registrar}` binds nothing")),
        [SlotBinding { slot, scope }] if *slot == own => {
            let listed = FAMILIES[slot.0].scope;
            (*scope != listed).then(|| {
                let (scope, listed) = (scope.name(), listed.name());
                format!("the registrar of `{registrar}` binds a family of scope {scope}, its line says {listed}")
            })
        }
        _ => Some(match bound.iter().find(|binding| binding.slot != own) {
            Some(other) => format!("the registrar of `{registrar}` binds the slot of `{}`", family_name(other.slot)),
            None => format!("the registrar of `{registrar}` binds its slot {} times", bound.len()),
        }),
    }
}

fn family_name(slot: FamilySlot) -> &'static str {
    FAMILIES[slot.0].name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::slot;
    use std::thread;

    fn nothing(_: &CodeObject<'_>, _: &TargetId, _: &mut ObjectEdit<'_, '_>) -> Result<u64, Diagnostic> {
        Ok(0)
    }

    const NOTHING: Apply = Apply::CodeObject(nothing);

    fn own_flags(registry: &mut FamilyRegistry) {
        registry.bind(slot::MACHINE_FLAGS, NOTHING);
    }

    fn own_note(registry: &mut FamilyRegistry) {
        registry.bind(slot::TARGET_NOTE, NOTHING);
    }

    /// The fault if the registrar of `slot` is `registrar` and all others are correct.
    fn fault(slot: FamilySlot, registrar: Registrar) -> Option<String> {
        let mut all = registrars::REGISTRARS.to_vec();
        all[slot.0] = registrar;
        FamilyRegistry::install_families(&all).fault
    }

    #[test]
    fn a_registrar_binds_exactly_its_own_slot_once() {
        assert_eq!(fault(slot::MACHINE_FLAGS, own_flags), None);
        let text = |registrar| fault(slot::TARGET_NOTE, registrar).unwrap();
        let target_note = "the registrar of `target_note` binds";
        assert_eq!(text(own_flags), format!("{target_note} the slot of `machine_flags`"));
        assert_eq!(text(|_| {}), format!("{target_note} nothing"));
        let twice: Registrar = |registry| {
            own_note(registry);
            own_note(registry);
        };
        assert_eq!(text(twice), format!("{target_note} its slot 2 times"));
        let both: Registrar = |registry| {
            own_note(registry);
            own_flags(registry);
        };
        assert_eq!(text(both), format!("{target_note} the slot of `machine_flags`"));
        let wrong_scope: Registrar = |registry| {
            registry.bind(
                slot::TARGET_NOTE,
                Apply::Function(FunctionFamily {
                    entries: |_| false,
                    concerns: |_| false,
                    confirms: None,
                    insertions: |_| Ok(Vec::new()),
                }),
            )
        };
        assert_eq!(text(wrong_scope), format!("{target_note} a family of scope Function, its line says CodeObject"));
    }

    #[test]
    fn every_registrar_alone_fills_its_slot_and_no_other() {
        for (index, registrar) in registrars::REGISTRARS.iter().enumerate() {
            let mut alone = FamilyRegistry::install_families(&[]);
            registrar(&mut alone);
            assert_eq!(fault_of(FamilySlot(index), &alone.bound), None);
            let filled: Vec<_> = (0..FAMILIES.len()).filter(|slot| alone.slots[*slot].is_some()).collect();
            assert_eq!(filled, [index], "{}", FAMILIES[index].name);
        }
    }

    #[test]
    fn the_process_has_one_registry_with_every_slot_filled() {
        let addresses = thread::scope(|scope| {
            let ask = || FamilyRegistry::installed() as *const FamilyRegistry as usize;
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(addresses.iter().all(|address| *address == addresses[0]));
        let registry = FamilyRegistry::installed();
        assert_eq!(registry.fault, None);
        assert!(registry.slots.iter().all(Option::is_some));
    }

    #[test]
    fn slots_run_in_the_order_of_the_list_and_an_empty_one_is_passed_over() {
        let names =
            |registry: &FamilyRegistry| registry.in_order().iter().map(|bound| bound.family.name).collect::<Vec<_>>();
        // The lines of the file itself, scope by scope, the numbers ascending.
        let lines: Vec<Vec<&str>> = include_str!("../patches.def")
            .lines()
            .filter_map(|line| line.strip_prefix("HOTSWAP_PATCH("))
            .map(|line| line.splitn(4, ", ").collect())
            .collect();
        let mut listed = Vec::new();
        for scope in ["Instruction", "Function", "CodeObject"] {
            let mut of_scope: Vec<_> = lines.iter().filter(|line| line[1] == scope).collect();
            of_scope.sort_by_key(|line| line[2].parse::<u32>().unwrap());
            listed.extend(of_scope.iter().map(|line| line[0]));
        }
        assert_eq!(listed.len(), FAMILIES.len());
        assert_eq!(names(FamilyRegistry::installed()), listed);
        assert_eq!(names(&FamilyRegistry::install_families(&[])), [""; 0]);
        let mut one = FamilyRegistry::install_families(&[]);
        own_note(&mut one);
        assert_eq!(names(&one), ["target_note"]);
    }
}
