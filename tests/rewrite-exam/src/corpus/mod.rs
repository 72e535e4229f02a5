//! The corpus: kernels in C with clang's builtins, made from tables and a seeded generator.
//!
//! A unit is one source file; its kernels use the instructions of one family, or a mixture. The same version of this
//! file gives the same bytes on every machine.

mod matrix;
mod memory;
mod mix;
mod others;

/// The start of every unit.
pub const PRELUDE: &str = include_str!("prelude.h");

/// One source file.
#[derive(Debug, Clone)]
pub struct Unit {
    /// Name of the file without its extension.
    pub name: String,
    /// C, without the prelude.
    pub body: String,
    /// The number of kernels that it defines.
    pub kernels: usize,
    /// Whether clang accepts it for the target, too: it uses no builtin that only the source has.
    pub native: bool,
    /// Functions that a second file defines, for builds in two parts; empty without any.
    pub functions: String,
}

impl Unit {
    fn new(name: &str, native: bool, kernels: Vec<String>) -> Self {
        Self { name: name.to_owned(), kernels: kernels.len(), body: kernels.concat(), native, functions: String::new() }
    }

    /// The whole file.
    pub fn source(&self) -> String {
        format!("{PRELUDE}\n{}\n{}", self.functions, self.body)
    }

    /// The two files of a build in parts: kernels, and the functions that they call.
    pub fn parts(&self) -> Option<[String; 2]> {
        (!self.functions.is_empty()).then(|| {
            let declared: String = self
                .functions
                .lines()
                .filter(|line| line.starts_with("NOINLINE"))
                .map(|line| format!("{};\n", line.trim_end_matches([' ', '{'])))
                .collect();
            [format!("{PRELUDE}\n{declared}\n{}", self.body), format!("{PRELUDE}\n{}", self.functions)]
        })
    }
}

/// All units, in a fixed order.
pub fn units() -> Vec<Unit> {
    [matrix::units(), memory::units(), others::units(), mix::units()].concat()
}
