//! Objects whose calling conventions do not fit each other.
//!
//! Invariant: only what the files show is reported. Code that shows no wave size, and objects that state no compiler, are not
//! judged.

use crate::granted::special_sgprs_of_code;
use crate::inputs::{BoundObject, LinkInput, StatedCompiler};
use crate::lds::{FunctionLds, ObjectLds, accesses_lds, functions_with_lds, has_lds_trap, kernels_that_trap};
use hotswap_code_object::{CodeMap, CodeObject, SymbolKind};
use hotswap_device_symbols::{Form, Function, FunctionKind, SymbolTable, analyse_file, code_lanes, instructions};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Isa, Target};
use hotswap_report::{Diagnostic, codes};
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// The first LLVM whose functions save every other group of eight scalar registers alone.
const STRIPED: u32 = 21;

/// All mixes of a link.
pub(crate) fn convention_mixes(
    object: &CodeObject<'_>,
    table: &SymbolTable,
    inputs: &[LinkInput<'_>],
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    found.extend(compiler_mix(table, inputs));
    if let Some(code) = LinkedCode::of_object(object) {
        found.extend(wave_sizes(table, code.isa, |number| code.bytes(&table.functions[number])));
        found.extend(kernels_that_trap(table, |number| has_lds_trap(code.bytes(&table.functions[number]), code.isa)));
        found.extend(code.replaced_functions(table, inputs));
    }
    found
}

/// All mixes of code objects that are loaded together. The joined table has the functions of `user`, then those of the
/// libraries in their order.
pub(crate) fn mixes_of_loaded(
    user: &BoundObject<'_>,
    libraries: &[BoundObject<'_>],
    table: &SymbolTable,
) -> Vec<Diagnostic> {
    let all: Vec<&BoundObject<'_>> = [user].into_iter().chain(libraries).collect();
    let mut found: Vec<Diagnostic> =
        mixed_compilers(all.iter().filter_map(bound_object_compiler).collect()).into_iter().collect();
    let code = LoadedCode::new(user, libraries);
    if let Some(isa) = code.isa() {
        found.extend(wave_sizes(table, isa, |number| code.bytes(table, number)));
        found.extend(kernels_that_trap(table, |number| has_lds_trap(code.bytes(table, number), isa)));
    }
    found.extend(cu_modes(table));
    found
}

fn bound_object_compiler(one: &&BoundObject<'_>) -> Option<StatedCompiler> {
    LinkInput { name: one.name.clone(), bytes: one.bytes }.stated_compiler()
}

/// Kernels that run in WGP mode and reach functions that were compiled for CU mode: these do not invalidate the caches of the other
/// compute unit. The reverse is safe.
fn cu_modes(table: &SymbolTable) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for kernel in &table.kernels {
        let own = &table.functions[kernel.function as usize];
        let callees = kernel.reachable.iter().map(|number| &table.functions[*number as usize]);
        let other = callees.filter(|one| one.kind != FunctionKind::Kernel).find(|one| one.cu_mode == Some(true));
        if let Some(function) = other.filter(|_| own.cu_mode == Some(false)) {
            found.push(convention_mix(format!(
                "kernel `{}` runs in WGP mode, `{}`, which it reaches, was compiled for CU mode",
                own.name, function.name
            )));
        }
    }
    found
}

/// The code of objects that are loaded together, by the numbers of the joined table's functions.
pub(crate) struct LoadedCode<'a> {
    /// The objects in their order: the number of their functions, and their code.
    objects: Vec<LoadedObjectCode<'a>>,
}

struct LoadedObjectCode<'a> {
    functions: usize,
    code: Option<LinkedCode<'a>>,
}

impl<'a> LoadedCode<'a> {
    pub(crate) fn new(user: &BoundObject<'a>, libraries: &[BoundObject<'a>]) -> Self {
        let all = std::iter::once(user).chain(libraries);
        let objects = all.map(|one| LoadedObjectCode {
            functions: one.table.functions.len(),
            code: CodeObject::parse(one.bytes).ok().and_then(|object| LinkedCode::of_object(&object)),
        });
        Self { objects: objects.collect() }
    }

    fn isa(&self) -> Option<Isa> {
        self.objects.iter().find_map(|object| Some(object.code.as_ref()?.isa))
    }

    fn bytes(&self, table: &SymbolTable, number: usize) -> &'a [u8] {
        let function = &table.functions[number];
        let mut first = 0;
        for object in &self.objects {
            if number < first + object.functions {
                return object.code.as_ref().map_or(&[], |code| code.bytes(function));
            }
            first += object.functions;
        }
        &[]
    }

    /// Special scalar registers that a function names.
    pub(crate) fn special_sgprs(&self, table: &SymbolTable, number: usize) -> u64 {
        self.isa().map_or(0, |isa| special_sgprs_of_code(self.bytes(table, number), isa))
    }
}

/// LDS that functions of the inputs need, by the numbers of the linked file's functions.
pub(crate) fn lds_of_inputs(table: &SymbolTable, inputs: &[LinkInput<'_>]) -> Vec<Option<FunctionLds>> {
    let mut all = vec![None; table.functions.len()];
    for input in inputs {
        let Some(code) = CodeMap::read(input.bytes).ok().and_then(LinkedCode::of_map) else { continue };
        if !code.has_lds() {
            continue;
        }
        let Ok((own, _)) = analyse_file(input.bytes) else { continue };
        for ObjectLds { function, lds } in functions_with_lds(&input.name, &own, |one| code.accesses_lds(one)) {
            let there = table.number_of_name(&own.functions[function].name);
            if let Some(slot) = there.and_then(|number| all.get_mut(number)) {
                *slot = Some(lds);
            }
        }
    }
    all
}

/// The same for code objects that are loaded together, by the numbers of the joined table's functions.
pub(crate) fn lds_of_loaded(user: &BoundObject<'_>, libraries: &[BoundObject<'_>]) -> Vec<Option<FunctionLds>> {
    let mut all = vec![None; user.table.functions.len()];
    for library in libraries {
        let start = all.len();
        all.resize(start + library.table.functions.len(), None);
        let object = CodeObject::parse(library.bytes).ok();
        let Some(code) = object.as_ref().and_then(LinkedCode::of_object) else { continue };
        for ObjectLds { function, lds } in
            functions_with_lds(&library.name, library.table, |one| code.accesses_lds(one))
        {
            all[start + function] = Some(lds);
        }
    }
    all
}

fn convention_mix(what: String) -> Diagnostic {
    Diagnostic::error(codes::CONVENTION_MIX, what)
}

/// Objects of compilers before and after the change of the scalar registers that functions preserve.
fn compiler_mix(table: &SymbolTable, inputs: &[LinkInput<'_>]) -> Option<Diagnostic> {
    let linked = inputs.iter().filter(|input| {
        let names = input.exported_names();
        names.iter().any(|name| table.number_of_name(name).is_some())
    });
    mixed_compilers(linked.filter_map(LinkInput::stated_compiler).collect())
}

fn mixed_compilers(stated: Vec<StatedCompiler>) -> Option<Diagnostic> {
    let old = stated.iter().find(|one| one.version < STRIPED)?;
    let new = stated.iter().find(|one| one.version >= STRIPED)?;
    Some(convention_mix(format!(
        "{} was compiled by clang {}, {} by clang {}: since clang {STRIPED} functions preserve other scalar registers",
        old.object, old.version, new.object, new.version
    )))
}

/// The code of the linked file.
pub(crate) struct LinkedCode<'a> {
    map: CodeMap<'a>,
    isa: Isa,
}

impl<'a> LinkedCode<'a> {
    pub(crate) fn of_object(object: &CodeObject<'a>) -> Option<Self> {
        let isa = Target::find(object.target_id().processor.name).map(Isa::new)?;
        Some(Self { map: CodeMap::names_of(object), isa })
    }

    fn of_map(map: CodeMap<'a>) -> Option<Self> {
        let isa = Target::find(map.processor?.name).map(Isa::new)?;
        Some(Self { map, isa })
    }

    /// Special scalar registers that a function names.
    pub(crate) fn special_sgprs(&self, function: &Function) -> u64 {
        special_sgprs_of_code(self.bytes(function), self.isa)
    }

    fn accesses_lds(&self, function: &Function) -> bool {
        accesses_lds(instructions(self.bytes(function), self.isa))
    }

    /// Whether a kernel has static LDS.
    fn has_lds(&self) -> bool {
        let mut symbols = self.map.sections.iter().flat_map(|section| &section.symbols);
        symbols.any(|symbol| matches!(&symbol.kind, SymbolKind::Kernel(facts) if facts.lds > 0))
    }

    fn bytes(&self, function: &Function) -> &'a [u8] {
        let section = self.map.sections.iter().find(|section| section.name == function.section);
        let bytes = section.and_then(|section| {
            let start = usize::try_from(function.address.checked_sub(section.address)?).ok()?;
            section.bytes.get(start..start.checked_add(usize::try_from(function.size).ok()?)?)
        });
        bytes.unwrap_or_default()
    }

    /// Functions that are in several inputs with different code: callers that were compiled with one of them may keep values
    /// in registers that this one leaves alone.
    fn replaced_functions(&self, table: &SymbolTable, inputs: &[LinkInput<'_>]) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (name, holders) in strong_definitions(inputs) {
            let Some(number) = table.number_of_name(&name).filter(|_| table.form == Form::Linked && holders.len() > 1)
            else {
                continue;
            };
            let taken = written_registers(self.bytes(&table.functions[number]), self.isa);
            for StrongDefinition { input, bytes } in holders {
                let mut more = taken;
                more.subtract(&written_registers(bytes, self.isa));
                if let Some(reg) = more.iter().next() {
                    let mut text = String::new();
                    let _ = reg.write(&mut text);
                    let what = format!(
                        "`{name}` of {input} was replaced by one that also writes {text}: callers in {input} may keep a value there"
                    );
                    found.push(convention_mix(what).advise(
                        "compile the callers with `-mllvm -enable-ipra=0`, or with the function in another file",
                    ));
                }
            }
        }
        found
    }
}

/// Kernels that reach functions of the other wave size: their code handles the mask of lanes so, or the kernels of their file run so.
fn wave_sizes<'a>(table: &SymbolTable, isa: Isa, bytes: impl Fn(usize) -> &'a [u8]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let by_code: Vec<OnceCell<Option<u8>>> = vec![OnceCell::new(); table.functions.len()];
    for kernel in &table.kernels {
        let own = &table.functions[kernel.function as usize];
        let Some(size) = own.wave_size else { continue };
        let callees = kernel.reachable.iter().map(|number| (*number as usize, &table.functions[*number as usize]));
        let callees = callees.filter(|(_, one)| one.kind != FunctionKind::Kernel);
        let others: Vec<OtherWaves<'_>> = callees
            .filter_map(|(number, function)| {
                let lanes = *by_code[number].get_or_init(|| code_lanes(bytes(number), isa));
                let shown = lanes.is_some();
                let lanes = lanes.or(function.wave_size).filter(|lanes| *lanes != size)?;
                Some(OtherWaves { function, lanes, shown })
            })
            .collect();
        // The one whose code shows it says most.
        if let Some(OtherWaves { function, lanes, .. }) = others.iter().find(|one| one.shown).or(others.first()) {
            let what = format!(
                "kernel `{}` runs in waves of {size} lanes, `{}`, which it reaches, was compiled for {lanes}",
                own.name, function.name
            );
            found.push(convention_mix(what));
        }
    }
    found
}

/// A function of another wave size than a kernel that reaches it.
struct OtherWaves<'t> {
    function: &'t Function,
    lanes: u8,
    /// By its own code.
    shown: bool,
}

/// The code of a strong global function.
struct StrongDefinition<'a> {
    /// Name of the input that has it.
    input: String,
    bytes: &'a [u8],
}

/// The code of each strong global function by name, with the input that has it. Two of one name meet where the linker
/// allows it (`-z muldefs`).
fn strong_definitions<'a>(inputs: &[LinkInput<'a>]) -> BTreeMap<String, Vec<StrongDefinition<'a>>> {
    let mut all: BTreeMap<String, Vec<StrongDefinition<'a>>> = BTreeMap::new();
    for input in inputs {
        let Ok(map) = CodeMap::read(input.bytes) else { continue };
        let strong = input.strong_names();
        for section in &map.sections {
            for symbol in section.symbols.iter().filter(|symbol| strong.contains(&*symbol.name) && symbol.size > 0) {
                let Some(bytes) = section.bytes.get(symbol.offset..symbol.offset + symbol.size) else { continue };
                all.entry(symbol.name.to_string())
                    .or_default()
                    .push(StrongDefinition { input: input.name.clone(), bytes });
            }
        }
    }
    all
}

/// The registers that code writes itself.
fn written_registers(bytes: &[u8], isa: Isa) -> RegSet {
    let mut all = RegSet::EMPTY;
    for inst in instructions(bytes, isa) {
        all.union_with(&inst.written_set(isa, VgprBanks::ENTRY));
    }
    all
}
