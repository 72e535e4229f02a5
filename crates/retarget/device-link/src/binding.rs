//! A code object that imports functions, and the ones that export them, before they are loaded: who provides what, and
//! whether the kernels have the registers that the functions need.
//!
//! Invariants: an import has one provider, or none and a problem. The numbers of kernels are those of the functions of all
//! code objects together.
//!
//! Absent on purpose: addresses of the device, and loading.

use crate::budget::{BudgetFacts, LinkReport};
use crate::convention::{self, LoadedCode};
use crate::inputs::BoundObject;
use crate::raise::raise_kernels;
use hotswap_code_object::CodeObject;
use hotswap_device_symbols::{Import, Kernel, SymbolTable, join_tables};
use hotswap_report::{Diagnostic, Severity, codes};
use hotswap_targets::TargetId;
use std::collections::HashMap;

/// The provider of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundImport {
    /// The symbol that is defined for the loader.
    pub symbol: String,
    pub function: String,
    /// The number of the library.
    pub library: usize,
    /// The function's address in the library's file.
    pub address: u64,
}

/// The result of [`bind`].
#[derive(Debug, Clone, Default)]
pub struct Binding {
    /// The imports that have one provider.
    pub imports: Vec<BoundImport>,
    /// Imports without a provider, or with several; objects for different processors.
    pub unbound: Vec<Diagnostic>,
    /// The budgets of the kernels, and mixes of conventions.
    pub report: LinkReport,
}

impl Binding {
    /// Whatever speaks against loading.
    #[must_use]
    pub fn problems(&self) -> Vec<Diagnostic> {
        let report = self.report.problems().into_iter().map(|one| match one.code {
            code if code == codes::TOO_FEW_REGISTERS => one.advise(
                "load a copy with more (`hotswap bind -o`, hotswap_binding_prepare), or export a function with fewer registers",
            ),
            _ => one,
        });
        self.unbound.iter().cloned().chain(report).collect()
    }

    /// The file with the kernels raised to what they need.
    ///
    /// # Errors
    /// The first problem that more registers do not solve, unless it is a warning; as [`raised`] has them.
    pub fn prepared_file(&self, user: &[u8]) -> Result<Vec<u8>, Diagnostic> {
        let mut problems = self.unbound.iter().chain(&self.report.mixes);
        if let Some(problem) = problems.find(|one| one.severity == Severity::Error) {
            return Err(problem.clone());
        }
        raise_kernels(user, &self.report)
    }
}

/// Finds the provider of each import of `user`, and compares what its kernels have with what all functions
/// that they reach need.
///
/// # Errors
/// A file that is not a linked code object, or is damaged.
pub fn bind(user: &BoundObject<'_>, libraries: &[BoundObject<'_>]) -> Result<Binding, Diagnostic> {
    let object = CodeObject::parse(user.bytes).map_err(|error| error.in_file(&user.name))?;
    let mut unbound = Vec::new();
    for library in libraries {
        let target = CodeObject::parse(library.bytes).map_err(|error| error.in_file(&library.name))?.target_id();
        unbound.extend(other_target((&user.name, object.target_id()), (&library.name, target)));
        unbound.extend(other_version(user, library));
    }
    let offers = offers_of_libraries(libraries);
    let mut imports = Vec::new();
    for import in &user.table.imports {
        match find_provider(user, libraries, &offers, import) {
            Ok(bound) => imports.push(bound),
            Err(problem) => unbound.push(problem),
        }
    }
    let tables: Vec<&SymbolTable> = libraries.iter().map(|library| library.table).collect();
    let table = join_tables(user.table, &tables, |one| {
        single_offer_of(one, &offers).map(|offer| (offer.library, offer.function))
    });
    let lds = convention::lds_of_loaded(user, libraries);
    let own = user.table.functions.len();
    let code = LoadedCode::new(user, libraries);
    let facts = BudgetFacts {
        object: &object,
        table: &table,
        records: &HashMap::new(),
        lds: &lds,
        is_apart: &|row: &Kernel| row.reachable.iter().any(|number| *number as usize >= own),
        special_sgprs: &|number| code.special_sgprs(&table, number as usize),
        dynamic_stack: 0,
        unbounded_stack: None,
    };
    let mut report = facts.report();
    report.mixes.extend(convention::mixes_of_loaded(user, libraries, &table));
    Ok(Binding { imports, unbound, report })
}

fn single_offer_of(name: &str, offers: &Offers<'_>) -> Option<Offer> {
    match offers.get(name).map(Vec::as_slice) {
        Some([one]) => Some(*one),
        _ => None,
    }
}

/// A function that a library exports.
#[derive(Debug, Clone, Copy)]
struct Offer {
    /// Number of the library.
    library: usize,
    /// Number of the function in the library's table.
    function: u32,
}

/// The offers by the names that are exported.
type Offers<'a> = HashMap<&'a str, Vec<Offer>>;

fn offers_of_libraries<'a>(libraries: &[BoundObject<'a>]) -> Offers<'a> {
    let mut all = Offers::new();
    for (library, object) in libraries.iter().enumerate() {
        for (name, function) in object.table.offered_functions() {
            all.entry(name).or_default().push(Offer { library, function });
        }
    }
    all
}

fn find_provider(
    user: &BoundObject<'_>,
    libraries: &[BoundObject<'_>],
    offers: &Offers<'_>,
    import: &Import,
) -> Result<BoundImport, Diagnostic> {
    let function = import.wanted();
    match offers.get(function).map_or(&[][..], Vec::as_slice) {
        [offer] => Ok(BoundImport {
            symbol: import.name.clone(),
            function: function.to_owned(),
            library: offer.library,
            address: libraries[offer.library].table.functions[offer.function as usize].address,
        }),
        [] => Err(missing_import(user, libraries, import)),
        several => {
            let names: Vec<&str> = several.iter().map(|offer| libraries[offer.library].name.as_str()).collect();
            let what = format!(
                "`{function}`, which {} imports, is exported {} times: by {}",
                user.name,
                names.len(),
                names.join(" and ")
            );
            Err(Diagnostic::error(codes::NOT_BOUND, what).advise("load only one of them with this code object"))
        }
    }
}

fn missing_import(user: &BoundObject<'_>, libraries: &[BoundObject<'_>], import: &Import) -> Diagnostic {
    let wanted = import.wanted();
    let names_of_users = import.used_by.iter().map(|number| user.table.functions[*number as usize].name.as_str());
    // A stub has the name of the function that it jumps to.
    let by = names_of_users.into_iter().find(|name| *name != wanted);
    let by = by.map_or(String::new(), |name| format!(", used by `{name}`"));
    let count: usize = libraries.iter().map(|library| library.table.offered_functions().len()).sum();
    let names: Vec<&str> = libraries.iter().map(|library| library.name.as_str()).collect();
    let found = match names.as_slice() {
        [] => "no library is there".to_owned(),
        names => format!("none of the {count} functions that {} exports has that name", names.join(", ")),
    };
    let what = format!("{} imports `{wanted}`{by}, and {found}", user.name);
    Diagnostic::error(codes::NOT_BOUND, what)
        .advise("add the library that exports it, linked with --hotswap-device-exports")
}

/// Bytes of the header: the ABI version of code objects of version 4 is 2.
const ABI_VERSION: usize = 8;
const VERSIONS_BEFORE_ABI: u8 = 2;

/// Objects of different code object versions, which no linker joins ("incompatible ABI version"): kernels and functions find hidden
/// arguments in different places.
fn other_version(user: &BoundObject<'_>, library: &BoundObject<'_>) -> Option<Diagnostic> {
    let (one, other) = (object_abi_version(user), object_abi_version(library));
    let what = format!(
        "{} is of code object version {}, {} of {}: functions of one find hidden arguments in other places than those of the other",
        user.name,
        one.saturating_add(VERSIONS_BEFORE_ABI),
        library.name,
        other.saturating_add(VERSIONS_BEFORE_ABI)
    );
    (one != other)
        .then(|| Diagnostic::error(codes::NOT_BOUND, what).advise("compile both with the same -mcode-object-version"))
}

fn object_abi_version(object: &BoundObject<'_>) -> u8 {
    object.bytes.get(ABI_VERSION).copied().unwrap_or_default()
}

/// Objects that no agent runs together.
fn other_target(user: (&str, TargetId), library: (&str, TargetId)) -> Option<Diagnostic> {
    let (one, other) = (user.1, library.1);
    let contradict =
        |one: Option<bool>, other: Option<bool>| matches!((one, other), (Some(one), Some(other)) if one != other);
    let fits = one.processor == other.processor
        || one.processor.covers(other.processor)
        || other.processor.covers(one.processor);
    let differs = !fits || contradict(one.xnack, other.xnack) || contradict(one.sramecc, other.sramecc);
    differs.then(|| {
        let what = format!("{} is for {one}, {} for {other}", user.0, library.0);
        Diagnostic::error(codes::NOT_BOUND, what)
    })
}
