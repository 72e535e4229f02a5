//! Objects for gfx1250, and what HotSwap makes of them for gfx1250-strict.

use crate::workers::on_all_processors;
use hotswap_rewrite_exam::assembly::{Kernel, assemble};
use hotswap_rewrite_exam::compile::{self, Form, Setting};
use hotswap_rewrite_exam::corpus::Unit;
use hotswap_rewrite_exam::exam::run;
use hotswap_rewrite_exam::spills::spills;
use hotswap_rewrite_exam::variants::variants;
use hotswap_userland::Workbench;

/// An object with its rewritten form.
#[derive(Debug, Clone)]
pub struct RewrittenPair {
    pub name: String,
    /// For gfx1250.
    pub original: Vec<u8>,
    /// For gfx1250-strict.
    pub made: Vec<u8>,
}

/// Where objects are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectKind {
    /// Every family's instruction in every difficult position, in assembly.
    Variants,
    /// Registers that are spilled.
    Spills,
    /// The corpus of kernels, compiled.
    Corpus,
}

fn rewritten(name: &str, original: Vec<u8>) -> Option<RewrittenPair> {
    // Refusals are the subject of the exam of rewriting.
    let made = run(&original, false).ok()?.bytes;
    Some(RewrittenPair { name: name.to_owned(), original, made })
}

/// An object of assembly, unless it is refused.
pub fn assembled(bench: &Workbench, name: &str, kernels: &[Kernel]) -> Option<RewrittenPair> {
    let [_, (name, bytes)] = assemble(bench, name, kernels);
    rewritten(&name, bytes)
}

/// The objects of assembly of a kind.
pub fn assembly(bench: &Workbench, kind: SubjectKind) -> Vec<RewrittenPair> {
    match kind {
        SubjectKind::Variants => {
            let all = on_all_processors(&variants(), |(name, kernels)| assembled(bench, name, kernels));
            all.into_iter().flatten().collect()
        }
        SubjectKind::Spills => {
            let one = |kernel: &Kernel| assembled(bench, &kernel.name, std::slice::from_ref(kernel));
            on_all_processors(&spills(), one).into_iter().flatten().collect()
        }
        SubjectKind::Corpus => Vec::new(),
    }
}

/// A unit of the corpus, compiled.
pub fn compiled(bench: &Workbench, setting: Setting, unit: &Unit) -> Vec<RewrittenPair> {
    let objects = compile::compile(bench, unit, setting, &[Form::Relocations]);
    let linked = objects.into_iter().filter(|object| object.form == Form::Relocations);
    linked.filter_map(|object| rewritten(&object.name, object.bytes)).collect()
}
