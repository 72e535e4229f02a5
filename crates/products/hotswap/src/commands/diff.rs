//! `hotswap diff`: kernels that one file has and the other has not, and those whose registers or bytes differ.
//!
//! Code objects of the two files are compared where their targets are the same. JSON: `{schema: 1, old, new, targets:
//! [{target, in, kernels: [{name, change, …}]}], problems}`.
//!
//! Absent on purpose: which instructions differ (`hotswap disasm`), and whether both do the same (`hotswap verify
//! --against`).

use crate::args::{OutputFormat, OutputOptions};
use crate::outcome::CommandOutcome;
use crate::stream_input::input_file;
use crate::work::tables::{FoundTables, KernelBytes, TabledObject, kernel_bytes, shown, tables};
use crate::work::text;
use clap::Args;
use hotswap_device_symbols::Resources;
use hotswap_report::Diagnostic;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// The old file: a code object, or anything that `hotswap list` reads
    #[arg(value_parser = input_file())]
    old: PathBuf,
    /// The new file
    #[arg(value_parser = input_file())]
    new: PathBuf,
    /// Only code for this target ID
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    #[command(flatten)]
    output: OutputOptions,
}

/// A kernel of one file.
#[derive(Clone, PartialEq, Eq)]
struct DiffKernel {
    /// Bytes of all that it reaches.
    bytes: u64,
    resources: Resources,
    functions: usize,
}

/// The kernels of one file for one target; of several of one name the last.
type Kernels = BTreeMap<String, DiffKernel>;

pub(crate) fn run(arguments: &DiffArguments) -> Result<CommandOutcome, Diagnostic> {
    let target = arguments.target.as_deref();
    let FoundTables { objects: old, mut problems } = tables(&arguments.old, target)?;
    let FoundTables { objects: new, problems: more } = tables(&arguments.new, target)?;
    problems.extend(more);
    let (old, new) = (kernels(&old), kernels(&new));
    let targets: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let none = Kernels::new();
    let (mut lines, mut told) = (String::new(), Vec::new());
    for target in targets {
        let place = match (old.contains_key(target), new.contains_key(target)) {
            (true, true) => "both",
            (true, false) => "old",
            (false, _) => "new",
        };
        let changes = changes(old.get(target).unwrap_or(&none), new.get(target).unwrap_or(&none));
        lines += &section(target, place, &changes);
        let rows: Vec<Value> = changes.iter().filter(|one| one.is_change()).map(KernelChange::json).collect();
        let same = changes.len() - rows.len();
        told.push(json!({ "target": target, "in": place, "same": same, "kernels": rows }));
    }
    let text = match arguments.output.format {
        OutputFormat::Text => lines,
        OutputFormat::Json => {
            let [old, new] = [&arguments.old, &arguments.new].map(|file| file.display().to_string());
            let problems: Vec<Value> = problems.iter().map(Diagnostic::to_json).collect();
            text::json(&json!({ "schema": 1, "old": old, "new": new, "targets": told, "problems": problems }))
        }
    };
    Ok(CommandOutcome { text, problems, ..CommandOutcome::default() })
}

fn kernels(objects: &[TabledObject]) -> BTreeMap<String, Kernels> {
    let mut all: BTreeMap<String, Kernels> = BTreeMap::new();
    for object in objects {
        let kernels = all.entry(object.target.clone()).or_default();
        for (kernel, KernelBytes { all: bytes, .. }) in object.table.kernels.iter().zip(kernel_bytes(&object.table)) {
            let function = &object.table.functions[kernel.function as usize];
            let side = DiffKernel { bytes, resources: function.total, functions: kernel.reachable.len() };
            kernels.insert(function.name.clone(), side);
        }
    }
    all
}

/// A kernel in both files.
struct KernelChange<'k> {
    name: &'k str,
    old: Option<&'k DiffKernel>,
    new: Option<&'k DiffKernel>,
}

fn changes<'k>(old: &'k Kernels, new: &'k Kernels) -> Vec<KernelChange<'k>> {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    names.into_iter().map(|name| KernelChange { name, old: old.get(name), new: new.get(name) }).collect()
}

impl KernelChange<'_> {
    fn is_change(&self) -> bool {
        self.old != self.new
    }

    fn word(&self) -> &'static str {
        match (self.old, self.new) {
            (Some(_), Some(_)) => "changed",
            (Some(_), None) => "gone",
            (None, _) => "added",
        }
    }

    fn differing_facts(&self) -> Vec<DifferingFact> {
        let (Some(old), Some(new)) = (self.old, self.new) else { return Vec::new() };
        let both = old.shown_facts().into_iter().zip(new.shown_facts());
        both.filter(|(old, new)| old.value != new.value)
            .map(|(old, new)| DifferingFact { name: old.name, old: old.value, new: new.value })
            .collect()
    }

    fn json(&self) -> Value {
        json!({ "name": self.name, "change": self.word(), "old": side_facts_json(self.old), "new": side_facts_json(self.new) })
    }
}

/// A fact about a kernel that both files have differently.
struct DifferingFact {
    name: &'static str,
    old: String,
    new: String,
}

/// A fact about a kernel as it is shown.
struct KernelFact {
    name: &'static str,
    value: String,
}

impl DiffKernel {
    fn shown_facts(&self) -> Vec<KernelFact> {
        let mut all = vec![
            KernelFact { name: "bytes", value: self.bytes.to_string() },
            KernelFact { name: "functions", value: self.functions.to_string() },
        ];
        let numbers = self.resources.numbers();
        all.extend(numbers.map(|(name, number)| KernelFact { name, value: shown(number) }));
        all
    }
}

fn side_facts_json(side: Option<&DiffKernel>) -> Option<Value> {
    side.map(|side| json!({ "bytes": side.bytes, "functions": side.functions, "resources": side.resources }))
}

fn section(target: &str, place: &str, changes: &[KernelChange<'_>]) -> String {
    let target = text::plain(target);
    if place != "both" {
        return format!("{target}: only in the {place} file, {}\n", text::counted(changes.len(), "kernel"));
    }
    let changed: Vec<&KernelChange<'_>> = changes.iter().filter(|one| one.is_change()).collect();
    let mut out = format!(
        "{target}: {} added, {} gone, {} changed, {} the same\n",
        count_changed_by_word("added", &changed),
        count_changed_by_word("gone", &changed),
        count_changed_by_word("changed", &changed),
        changes.len() - changed.len()
    );
    let mut rows = Vec::new();
    for one in changed {
        let facts = one.differing_facts().into_iter().map(|fact| format!("{} {} to {}", fact.name, fact.old, fact.new));
        let facts: Vec<String> = facts.collect();
        rows.push(vec![format!("  {}", one.word()), text::plain(one.name), facts.join(", ")]);
    }
    out += &text::table(&rows);
    out
}

fn count_changed_by_word(word: &str, changed: &[&KernelChange<'_>]) -> usize {
    changed.iter().filter(|one| one.word() == word).count()
}
