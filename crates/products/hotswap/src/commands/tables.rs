//! `hotswap explain`, `targets` and `families`: the product's tables.

use crate::args::{OutputFormat, OutputOptions};
use crate::outcome::CommandOutcome;
use crate::work::text;
use clap::Args;
use hotswap_compat::Check;
use hotswap_families::{FAMILIES, FamilyRegistry, PatchFamily};
use hotswap_file_reports::target_list::{processor_json, product_table, target_table};
use hotswap_lint::RULES;
use hotswap_report::{CodeExplanation, Diagnostic, DiagnosticCode, codes, explanations};
use hotswap_targets::{PROCESSORS, Processor, resolve_or_refuse};
use serde_json::json;

pub(crate) fn explain(name: Option<&str>) -> Result<CommandOutcome, Diagnostic> {
    let Some(name) = name else {
        let codes = codes::CODES.iter().map(|code| vec![code.id.to_owned(), code.summary.to_owned()]);
        let checks = check_rows().map(|row| vec![row.name.to_owned(), row.meaning.to_owned()]);
        return Ok((text::table(&codes.collect::<Vec<_>>()) + "\n" + &text::table(&checks.collect::<Vec<_>>())).into());
    };
    if let Some(code) = codes::find_code(&name.to_ascii_uppercase()) {
        return Ok(explanation(code).into());
    }
    let row = check_rows().find(|row| row.name == name.to_ascii_lowercase()).ok_or_else(|| {
        let what = format!("`{name}` is neither a code nor a check; `hotswap explain` lists all");
        Diagnostic::error(codes::USAGE, what)
    })?;
    Ok(format!("{}: {}\nRun by: {}\nA finding: {}\n", row.name, row.meaning, row.commands, row.finding).into())
}

fn explanation(code: &DiagnosticCode) -> String {
    let mut text = format!("{}: {}\n", code.id, code.summary);
    if let Some(CodeExplanation { cause, example, .. }) = explanations::find_explanation(code) {
        text += &format!("Cause: {cause}\nExample: {example}\n");
    }
    text + &format!("What to do: {}\nExit code: {}\n", code.advice, code.exit)
}

/// A check that messages name.
struct CheckRow {
    name: &'static str,
    meaning: &'static str,
    commands: &'static str,
    finding: &'static str,
}

/// The checks of code for another processor, then the rules of `lint` and of `verify --against`.
fn check_rows() -> impl Iterator<Item = CheckRow> {
    let checks = Check::ALL.iter().map(|check| CheckRow {
        name: check.name(),
        meaning: check.meaning(),
        commands: "whatever adds targets (retarget, serve, compiles with a plan), for the pairs whose verdict names it \
                   (`hotswap compat SOURCE TARGET`)",
        finding: "the target is refused (HS0408), with kernel and instruction",
    });
    let rules = RULES.iter().map(|rule| CheckRow {
        name: rule.id,
        meaning: rule.summary,
        commands: if rule.needs_original { "verify --against" } else { "lint, verify --against" },
        finding: "the code object is not as its target requires, or this could not be proven",
    });
    checks.chain(rules)
}

/// The list that is wanted.
#[derive(Debug, Args)]
pub(crate) struct TargetsArguments {
    /// A target, or a product with a GPU such as "RX 6700 XT": only this one, with all products and their sources
    #[arg(value_name = "GPU|PRODUCT")]
    name: Option<String>,
    #[command(flatten)]
    output: OutputOptions,
}

pub(crate) fn targets(arguments: &TargetsArguments) -> Result<CommandOutcome, Diagnostic> {
    let one = arguments.name.as_deref().map(resolve_or_refuse).transpose()?;
    let listed: Vec<&Processor> = PROCESSORS
        .iter()
        .filter(|processor: &&Processor| !processor.withdrawn && one.is_none_or(|one| *one == **processor))
        .collect();
    if arguments.output.format == OutputFormat::Json {
        let targets: Vec<_> = listed.into_iter().map(processor_json).collect();
        return Ok(text::json(&json!({ "schema": 1, "targets": targets })).into());
    }
    let note = "\nKnown to the compiler: older LLVMs do not know the target, and no document names a product with it.\n\
                VGPRS are those of one SIMD, for each wave size. `--format json` has the other limits and what a target can do.\n\
                Code for one member of a group may be relabelled for another (`hotswap compat SOURCE TARGET`).\n";
    Ok((target_table(&listed) + &one.map_or_else(|| note.to_owned(), product_table)).into())
}

pub(crate) fn families(format: OutputFormat) -> CommandOutcome {
    let registry = FamilyRegistry::installed();
    let problems = registry.check_registrars().err().into_iter().collect();
    CommandOutcome { text: families_text(registry, format), problems, ..CommandOutcome::default() }
}

fn families_text(registry: &FamilyRegistry, format: OutputFormat) -> String {
    let third_party: Vec<&PatchFamily> = registry.third_party_families().collect();
    if format == OutputFormat::Json {
        let own = FAMILIES.iter().map(|family| family_json(family, false));
        let all: Vec<_> = own.chain(third_party.iter().map(|family| family_json(family, true))).collect();
        return text::json(&json!({ "schema": 1, "families": all }));
    }
    let mut rows = vec![["FAMILY", "SCOPE", "WHAT"].map(str::to_owned).to_vec()];
    rows.extend(FAMILIES.iter().map(|family| family_row(family, family.summary.to_owned())));
    rows.extend(third_party.iter().map(linked_family_row));
    text::table(&rows)
}

fn linked_family_row(family: &&PatchFamily) -> Vec<String> {
    family_row(family, format!("{} (linked into this build)", family.summary))
}

fn family_row(family: &PatchFamily, summary: String) -> Vec<String> {
    vec![family.name.to_owned(), family.scope.name().to_owned(), summary]
}

fn family_json(family: &PatchFamily, third_party: bool) -> serde_json::Value {
    json!({
        "name": family.name,
        "scope": family.scope.name(),
        "order": family.order,
        "summary": family.summary,
        "third_party": third_party,
    })
}
