//! The table: plain data, which is printed as JSON and kept in the note.
//!
//! Invariants: functions are in the order of their sections and addresses; lists of numbers are ascending.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An enumeration that is a word for people, as in JSON, and the number of its row in the note.
macro_rules! word_or_number {
    ($kind:ident { $($member:ident = $word:literal,)* }) => {
        impl $kind {
            const MEMBERS: &[(&str, Self)] = &[$(($word, Self::$member)),*];
        }

        impl Serialize for $kind {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let number = Self::MEMBERS.iter().position(|(_, one)| one == self).unwrap_or_default();
                match serializer.is_human_readable() {
                    true => serializer.serialize_str(Self::MEMBERS[number].0),
                    false => serializer.serialize_u8(number as u8),
                }
            }
        }

        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let found = if deserializer.is_human_readable() {
                    let word = String::deserialize(deserializer)?;
                    Self::MEMBERS.iter().find(|(one, _)| *one == word)
                } else {
                    Self::MEMBERS.get(usize::from(u8::deserialize(deserializer)?))
                };
                found.map(|(_, one)| *one).ok_or_else(|| D::Error::custom("it is none of the known ones"))
            }
        }
    };
}

/// The source of a fact, the most reliable first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FactEvidence {
    /// The compiler's record of the function (`.amdgpu.info`, LLVM 23 and later).
    CompilerRecord,
    /// A symbol that the assembler defined for the function (`NAME.num_vgpr`).
    AssemblerSymbol,
    Metadata,
    Descriptor,
    Disassembly,
    /// Nothing in the file states it.
    Unknown,
}

impl FactEvidence {
    /// Its name in tables of text.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::CompilerRecord => "compiler",
            Self::AssemblerSymbol => "assembler",
            Self::Metadata => "metadata",
            Self::Descriptor => "descriptor",
            Self::Disassembly => "disassembly",
            Self::Unknown => "unknown",
        }
    }
}

word_or_number!(FactEvidence {
    CompilerRecord = "compiler-record",
    AssemblerSymbol = "assembler-symbol",
    Metadata = "metadata",
    Descriptor = "descriptor",
    Disassembly = "disassembly",
    Unknown = "unknown",
});

/// A number with its evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Number {
    /// The number; `None` where it is not known.
    pub value: Option<u64>,
    /// It may be more: some code is not known.
    #[serde(default)]
    pub at_least: bool,
    /// Where it comes from.
    pub evidence: FactEvidence,
}

impl Number {
    pub const UNKNOWN: Self = Self { value: None, at_least: false, evidence: FactEvidence::Unknown };

    const fn unknown() -> Self {
        Self::UNKNOWN
    }

    #[must_use]
    pub const fn known_by(value: u64, evidence: FactEvidence) -> Self {
        Self { value: Some(value), at_least: false, evidence }
    }
}

/// The hardware that code needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Vector registers, one more than the highest; accumulation registers of a unified file not counted.
    pub vgprs: Number,
    /// Number of accumulation registers.
    pub agprs: Number,
    /// Scalar registers, VCC and other special ones not counted.
    pub sgprs: Number,
    /// Scratch of a work-item, bytes.
    pub scratch: Number,
    /// LDS of a work-group, bytes.
    pub lds: Number,
    /// Named barriers of a work-group (gfx12.5): the highest number that the code states; 0 elsewhere.
    #[serde(default = "Number::unknown")]
    pub barriers: Number,
}

impl Resources {
    pub const UNKNOWN: Self = Self {
        vgprs: Number::UNKNOWN,
        agprs: Number::UNKNOWN,
        sgprs: Number::UNKNOWN,
        scratch: Number::UNKNOWN,
        lds: Number::UNKNOWN,
        barriers: Number::UNKNOWN,
    };

    /// Its numbers with their names, in a fixed order.
    #[must_use]
    pub const fn numbers(&self) -> [(&'static str, Number); 6] {
        let Self { vgprs, agprs, sgprs, scratch, lds, barriers } = *self;
        [
            ("vgprs", vgprs),
            ("agprs", agprs),
            ("sgprs", sgprs),
            ("scratch", scratch),
            ("lds", lds),
            ("barriers", barriers),
        ]
    }
}

/// The kind of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    Kernel,
    /// A function that code calls.
    Function,
    /// Code that only jumps into another function of the file.
    EntryStub,
    /// Code that only jumps to a function that the file does not define.
    ImportStub,
}

impl FunctionKind {
    /// Its name in tables of text.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Function => "function",
            Self::EntryStub => "entry stub",
            Self::ImportStub => "import stub",
        }
    }
}

word_or_number!(FunctionKind {
    Kernel = "kernel",
    Function = "function",
    EntryStub = "entry-stub",
    ImportStub = "import-stub",
});

/// A function that another one calls, or jumps into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Callee {
    /// Its number in [`SymbolTable::functions`].
    pub function: u32,
    /// Where the edge comes from.
    pub evidence: FactEvidence,
}

/// The calls and jumps of a function through registers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndirectCalls {
    /// Those with a known target.
    pub resolved: u32,
    /// Addresses of those whose target is not known, and of other transfers that are not understood.
    pub unresolved: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Its name, mangled; `code at ADDRESS` without a symbol.
    pub name: String,
    pub aliases: Vec<String>,
    pub kind: FunctionKind,
    pub section: String,
    /// Address of its first byte; in a relocatable file the offset in the section.
    pub address: u64,
    /// Bytes of its code.
    pub size: u64,
    /// Whether the name is visible outside of the file.
    pub exported: bool,
    /// Lanes of a wave; `None` where neither the kernels of the file tell it nor, without any, its code.
    pub wave_size: Option<u8>,
    pub own: Resources,
    /// Its needs with everything that it calls.
    pub total: Resources,
    /// The functions that it calls, or jumps into.
    pub callees: Vec<Callee>,
    /// Names of functions outside of the file that it calls.
    pub imports: Vec<String>,
    /// Its calls through registers.
    pub indirect_calls: IndirectCalls,
    /// Whether it may be on the stack twice; `None` where not all that it reaches is known.
    pub recursive: Option<bool>,
    /// Whether its address is used otherwise than for a known call: in data, or by code that passes it on.
    pub address_taken: bool,
    /// Whether its waves run in CU mode: a work-group stays on one compute unit. `None` before GFX10, and as for `wave_size`.
    #[serde(default)]
    pub cu_mode: Option<bool>,
    /// The number of its source in [`SymbolTable::sources`]; `None` where nothing states it.
    #[serde(default)]
    pub source: Option<u32>,
}

/// A kernel and the functions that it reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Its number in [`SymbolTable::functions`].
    pub function: u32,
    /// The functions that it reaches by known calls, itself included.
    pub reachable: Vec<u32>,
    /// Whether these are all: every call in them is resolved.
    pub complete: bool,
    /// The needs of their code, by the code alone: to be compared with `total` of the function, which the descriptor
    /// and the metadata state.
    pub needs: Resources,
}

/// A function or variable that the file uses and does not define.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    pub name: String,
    /// Addresses of the words that the loader fills with its address; empty in a relocatable file.
    pub slots: Vec<u64>,
    /// The functions that compute the address of such a word, or name the symbol in a relocation.
    pub used_by: Vec<u32>,
}

/// Symbols of words that the loader fills for imported functions begin with it; the function's name follows. The function
/// itself is a stub of the file, so that callers need not know.
pub const IMPORT_PREFIX: &str = "__hotswap_import.";

impl Import {
    /// The name of the function or variable in the file that defines it.
    #[must_use]
    pub fn wanted(&self) -> &str {
        self.name.strip_prefix(IMPORT_PREFIX).unwrap_or(&self.name)
    }
}

/// A function for other code objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    pub name: String,
    /// Its number in [`SymbolTable::functions`].
    pub function: u32,
}

/// Whether a file is linked or relocatable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// A code object that a runtime can load.
    Linked,
    /// An object before the device link.
    Relocatable,
}

/// The functions of a code object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolTable {
    /// Version of the layout: the first number changes when old readers cannot read it.
    pub version: (u32, u32),
    pub target: String,
    /// Whether a file is linked or relocatable.
    pub form: Form,
    /// Hash of the code that it describes, see [`code_hash`](crate::code_hash).
    pub code_hash: String,
    /// Every call of the file is resolved, it imports nothing, and all its code is in functions.
    pub closed: bool,
    /// Bytes in sections of code that are in no function, neither padding nor named data: perhaps functions without a
    /// symbol that nothing known calls.
    pub unclaimed: u64,
    pub functions: Vec<Function>,
    pub kernels: Vec<Kernel>,
    /// Undefined symbols, which other code objects define.
    pub imports: Vec<Import>,
    /// Functions that the link made for other code objects, by name.
    #[serde(default)]
    pub exports: Vec<Export>,
    /// The programs that made it, as the section `.comment` states them: compilers and the linker.
    #[serde(default)]
    pub producers: Vec<String>,
    /// The source files of functions, as debug information names them.
    #[serde(default)]
    pub sources: Vec<String>,
}

impl SymbolTable {
    /// The functions that hold an address; in a relocatable file one for each section that is long enough.
    pub fn functions_at(&self, address: u64) -> impl Iterator<Item = &Function> {
        let functions = self.functions.iter();
        functions.filter(move |one| address.checked_sub(one.address).is_some_and(|offset| offset < one.size))
    }

    /// The number of the function with that name, or alias.
    #[must_use]
    pub fn number_of_name(&self, name: &str) -> Option<usize> {
        self.functions.iter().position(|one| is_function_named(one, name))
    }

    /// The functions for other code objects: those that the link exported, otherwise those whose names are visible.
    #[must_use]
    pub fn offered_functions(&self) -> Vec<(&str, u32)> {
        if !self.exports.is_empty() {
            return self.exports.iter().map(|export| (export.name.as_str(), export.function)).collect();
        }
        let visible = (0..).zip(&self.functions).filter(|(_, one)| one.exported && one.kind == FunctionKind::Function);
        visible
            .flat_map(|(number, one)| one.aliases.iter().chain([&one.name]).map(move |name| (name.as_str(), number)))
            .collect()
    }

    /// The source file of a function, where debug information states it.
    #[must_use]
    pub fn source_of(&self, function: &Function) -> Option<&str> {
        self.sources.get(function.source? as usize).map(String::as_str)
    }

    /// The row of a kernel by the number of its function.
    #[must_use]
    pub fn kernel_of_function(&self, function: usize) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.function as usize == function)
    }
}

fn is_function_named(one: &Function, name: &str) -> bool {
    one.name == name || one.aliases.iter().any(|alias| alias == name)
}
