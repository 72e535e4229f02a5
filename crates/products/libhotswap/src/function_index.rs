//! The functions of a code object with the texts that C gets, and the ways to find one.
//!
//! Invariants: numbers are those of the table's rows. A look-up takes a step of a hash table, or of a binary search.

use crate::call_error::{CallError, c_string};
use hotswap_code_object::CodeObject;
use hotswap_device_symbols::note::{FoundTable, TableOrigin, found_table};
use hotswap_device_symbols::{Form, Function, Kernel, SymbolTable};
use std::collections::HashMap;
use std::ffi::CString;

/// The texts of a function.
#[derive(Debug)]
pub(crate) struct FunctionTexts {
    pub(crate) name: CString,
    pub(crate) section: CString,
    pub(crate) aliases: Vec<CString>,
    pub(crate) imports: Vec<CString>,
    pub(crate) callees: Vec<u32>,
}

/// Where a kernel's descriptor is, and what it states.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DescriptorFacts {
    pub(crate) address: u64,
    pub(crate) kernarg_size: u64,
}

/// The functions of a code object, to be found by number, name or address.
#[derive(Debug)]
pub(crate) struct FunctionIndex {
    pub(crate) table: SymbolTable,
    pub(crate) texts: Vec<FunctionTexts>,
    pub(crate) imports: Vec<CString>,
    pub(crate) target: CString,
    pub(crate) code_hash: CString,
    pub(crate) warnings: Vec<CString>,
    pub(crate) producers: Vec<CString>,
    pub(crate) sources: Vec<CString>,
    /// Whether the table is that of the file.
    pub(crate) is_from_note: bool,
    descriptors: HashMap<String, DescriptorFacts>,
    by_name: HashMap<String, u32>,
    /// Ascending by their starts; linked files only.
    by_address: Vec<FunctionSpan>,
}

/// A place in a function.
pub(crate) struct FunctionPlace {
    /// Number of the function.
    pub(crate) number: u32,
    /// Bytes from the start of the function.
    pub(crate) distance: u64,
}

impl FunctionIndex {
    pub(crate) fn new(bytes: &[u8]) -> Result<Self, CallError> {
        let FoundTable { table, problems, origin } = found_table(bytes)?;
        let texts = table.functions.iter().map(texts_of).collect();
        Ok(Self {
            texts,
            imports: table.imports.iter().map(|import| c_string(import.name.as_str())).collect(),
            target: c_string(table.target.as_str()),
            code_hash: c_string(table.code_hash.as_str()),
            warnings: problems.iter().map(|problem| c_string(problem.to_string())).collect(),
            producers: table.producers.iter().map(|text| c_string(text.as_str())).collect(),
            sources: table.sources.iter().map(|source| c_string(source.as_str())).collect(),
            is_from_note: origin == TableOrigin::Note,
            descriptors: descriptors_of(bytes),
            by_name: by_name(&table),
            by_address: by_address(&table),
            table,
        })
    }

    pub(crate) fn function_row(&self, number: usize) -> Result<(&Function, &FunctionTexts), CallError> {
        let count = self.texts.len();
        let row = self.table.functions.get(number).zip(self.texts.get(number));
        row.ok_or_else(|| CallError::invalid_argument(format!("function {number} of {count}")))
    }

    pub(crate) fn kernel_row(&self, number: usize) -> Result<&Kernel, CallError> {
        let count = self.table.kernels.len();
        self.table.kernels.get(number).ok_or_else(|| CallError::invalid_argument(format!("kernel {number} of {count}")))
    }

    /// The descriptor of a kernel; zeros where the metadata does not lead to one.
    pub(crate) fn descriptor_of(&self, kernel: &Kernel) -> DescriptorFacts {
        let function = self.table.functions.get(kernel.function as usize);
        function.and_then(|function| self.descriptors.get(&function.name)).copied().unwrap_or_default()
    }

    pub(crate) fn number_of_name(&self, name: &str) -> Result<u32, CallError> {
        let number = self.by_name.get(name).copied();
        number.ok_or_else(|| CallError::not_found(format!("there is no function `{name}`")))
    }

    /// The function at an address.
    pub(crate) fn function_at(&self, address: u64) -> Result<FunctionPlace, CallError> {
        let next = self.by_address.partition_point(|span| span.start <= address);
        let before = self.by_address[..next].last();
        let found = before.filter(|span| address - span.start < span.size);
        let found = found.map(|span| FunctionPlace { number: span.number, distance: address - span.start });
        found
            .or_else(|| self.in_sections(address))
            .ok_or_else(|| CallError::not_found(format!("no function holds {address:#x}")))
    }

    /// In a relocatable file the first of the functions at that offset of some section.
    fn in_sections(&self, address: u64) -> Option<FunctionPlace> {
        if self.table.form == Form::Linked {
            return None;
        }
        let numbers = (0..).zip(&self.table.functions);
        numbers
            .into_iter()
            .find_map(|(number, one)| Some(FunctionPlace { number, distance: offset_in_function(one, address)? }))
    }
}

fn offset_in_function(one: &Function, address: u64) -> Option<u64> {
    address.checked_sub(one.address).filter(|offset| *offset < one.size)
}

fn texts_of(function: &Function) -> FunctionTexts {
    FunctionTexts {
        name: c_string(function.name.as_str()),
        section: c_string(function.section.as_str()),
        aliases: names_to_c_strings(&function.aliases),
        imports: names_to_c_strings(&function.imports),
        callees: function.callees.iter().map(|callee| callee.function).collect(),
    }
}

fn names_to_c_strings(names: &[String]) -> Vec<CString> {
    names.iter().map(|name| c_string(name.as_str())).collect()
}

fn descriptors_of(bytes: &[u8]) -> HashMap<String, DescriptorFacts> {
    let Ok(object) = CodeObject::parse(bytes) else { return HashMap::new() };
    let rows = object.note().kernels.iter().zip(object.descriptors());
    let rows = rows.map(|(kernel, place)| {
        let name = kernel.symbol.strip_suffix(".kd").unwrap_or(kernel.name).to_owned();
        let kernarg_size = kernel.kernarg_size.unwrap_or(0);
        (name, DescriptorFacts { address: place.address, kernarg_size })
    });
    rows.collect()
}

/// Own names come before aliases of others, and the first function of a name before further ones.
fn by_name(table: &SymbolTable) -> HashMap<String, u32> {
    let mut names = HashMap::with_capacity(table.functions.len());
    for (number, function) in (0..).zip(&table.functions) {
        names.entry(function.name.clone()).or_insert(number);
    }
    for (number, function) in (0..).zip(&table.functions) {
        for alias in &function.aliases {
            names.entry(alias.clone()).or_insert(number);
        }
    }
    names
}

/// The bytes of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FunctionSpan {
    start: u64,
    size: u64,
    /// Number of the function.
    number: u32,
}

fn by_address(table: &SymbolTable) -> Vec<FunctionSpan> {
    if table.form != Form::Linked {
        return Vec::new();
    }
    let rows =
        (0..).zip(&table.functions).map(|(number, one)| FunctionSpan { start: one.address, size: one.size, number });
    let mut rows: Vec<FunctionSpan> = rows.collect();
    rows.sort_unstable();
    rows
}
