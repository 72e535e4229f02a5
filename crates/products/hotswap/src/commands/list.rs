//! `hotswap list`: one line for each image.
//!
//! Only headers are read: of a plain bundle its table, of a code object its first page, which has the number of its
//! kernels. Compressed bundles are decompressed one by one. Of large ones only the entry table is read, unless
//! `--kernels` is given. Of packages, each file with device code is listed.

use crate::args::{Look, OutputFormat};
use crate::outcome::CommandOutcome;
use crate::work::inventory::{self, ImageRow, InventoryContainer, InventoryDepth};
use crate::work::{packages, text};
use hotswap_bundle::ContainerImage;
use hotswap_bundle::inventory::image_target;
use hotswap_files::InputFile;
use hotswap_packages::PackageFormat;
use hotswap_report::{Diagnostic, codes};
use serde_json::{Value, json};
use std::path::Path;

pub(crate) fn run(arguments: &Look) -> Result<CommandOutcome, Diagnostic> {
    let mut outcome = CommandOutcome::default();
    let mut files = Vec::new();
    for file in &arguments.files.files {
        let listed = match packages::format_of(file) {
            Ok(None) => list_one_file(file, file, &mut outcome, arguments, &mut files),
            Ok(Some(format)) => {
                package(file, format, &mut |path, name| list_one_file(path, name, &mut outcome, arguments, &mut files))
            }
            Err(error) => Err(error),
        };
        // A file that cannot be read does not hide the others.
        if let Err(error) = listed {
            outcome.problems.push(error);
        }
    }
    if arguments.files.output.format == OutputFormat::Json {
        outcome.text = text::json(&json!({ "schema": 1, "files": files }));
    }
    Ok(outcome)
}

fn list_one_file(
    path: &Path,
    name: &Path,
    outcome: &mut CommandOutcome,
    arguments: &Look,
    files: &mut Vec<Value>,
) -> Result<(), Diagnostic> {
    match arguments.files.output.format {
        OutputFormat::Text => as_text(path, name, arguments.depth(), outcome),
        OutputFormat::Json => as_json(path, name, arguments.depth(), outcome).map(|value| files.push(value)),
    }
}

/// Lists the files of a package that have device code.
fn package(
    file: &Path,
    format: PackageFormat,
    one: &mut dyn FnMut(&Path, &Path) -> Result<(), Diagnostic>,
) -> Result<(), Diagnostic> {
    let mut count = 0;
    let mut archived = Vec::new();
    hotswap_packages::visit_package(file, format, &mut |member| {
        if packages::has_code(member)? {
            count += 1;
            return one(member.content, &packages::label(file, member.name));
        }
        let archives = packages::archives_text(&hotswap_files::open_input(member.content)?)?;
        archived.extend(archives.map(|archives| format!("{} loads {archives}", member.name)));
        Ok(())
    })?;
    if count > 0 { Ok(()) } else { Err(missing_code_error(&archived).in_file(file)) }
}

/// The error for a package without device code; `archived` are its files whose code is in kernel archives.
fn missing_code_error(archived: &[String]) -> Diagnostic {
    let what = "no file of the package has device code";
    if archived.is_empty() {
        return Diagnostic::error(codes::NOT_FOUND, what);
    }
    let what = format!("{what}; kernel archives beside it have it: {}", archived.join("; "));
    let advice = "list the packages with the archives, or ask about all of them: `hotswap uses --together`";
    Diagnostic::error(codes::NOT_FOUND, what).advise(advice)
}

const HEADS: [&str; 10] = ["#", "PLACE", "FORM", "TARGET", "KIND", "SIZE", "PACKED", "KERNELS", "MADE", "ENTRY"];

/// The totals in the headline of a file.
#[derive(Default)]
struct FileTotals {
    containers: usize,
    images: usize,
    /// Bytes of all containers, stored and uncompressed.
    stored: u64,
    plain: u64,
    /// Whether only the entry table was read of some.
    is_unread: bool,
}

impl FileTotals {
    fn add(&mut self, container: &InventoryContainer<'_>) {
        self.containers += 1;
        self.images += container.rows.len();
        self.stored += container.found.bytes.len() as u64;
        self.plain += container.plain_size;
        self.is_unread |= !container.is_read;
    }

    fn text(&self) -> String {
        let sizes = match self.stored == self.plain {
            true => format!("{} bytes", self.plain),
            false => format!("{} bytes in {}", self.plain, self.stored),
        };
        format!(
            "{}, {}, {sizes}",
            plural_count_text(self.containers, "container"),
            plural_count_text(self.images, "image")
        )
    }
}

fn plural_count_text(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// `name` is shown for the file.
fn as_text(path: &Path, name: &Path, depth: InventoryDepth, outcome: &mut CommandOutcome) -> Result<(), Diagnostic> {
    let file = name;
    let bytes = hotswap_files::open_or_stdin(path)?;
    let contents = hotswap_bundle::find_containers(&bytes);
    let mut rows = vec![HEADS.map(str::to_owned).to_vec()];
    let (mut warnings, mut sum) = (Vec::new(), FileTotals::default());
    let problems = inventory::visit_to(&contents, depth, |container| {
        warnings.extend(inventory::hash_problem(&container));
        sum.add(&container);
        rows.extend(container.rows.iter().enumerate().map(|(index, row)| cells(&container, row, index == 0)));
        rows.extend(container.empty.iter().map(|image| empty_image_cells(&container, image)));
        if container.rows.is_empty() && container.empty.is_empty() {
            rows.push(empty_cells(&container));
        }
    });
    if rows.len() > 1 {
        outcome.text +=
            &format!("{}: {}\n{}", text::plain(&file.display().to_string()), sum.text(), text::table(&rows));
        if sum.is_unread {
            outcome.text += inventory::UNREAD;
        }
    }
    let problems = with_archives(problems, &bytes);
    outcome.problems.extend(warnings.into_iter().chain(problems).map(|problem| problem.in_file(file)));
    Ok(())
}

/// One problem names the archives that a host file's code is in, in the place of those about its section and wrappers.
fn with_archives(mut problems: Vec<Diagnostic>, file: &InputFile) -> Vec<Diagnostic> {
    if !problems.iter().any(is_about_archives) {
        return problems;
    }
    match packages::archives_text(file) {
        Ok(None) => {}
        Err(error) => problems.push(error),
        Ok(Some(archives)) => {
            problems.retain(|problem| !is_about_archives(problem));
            let what = format!("its code is in kernel archives: it loads {archives}");
            let advice = "list the archives, or ask about the directory with both: `hotswap uses DIRECTORY --gpu GPU`";
            problems.push(Diagnostic::error(codes::UNKNOWN_FORMAT, what).advise(advice));
        }
    }
    problems
}

fn is_about_archives(problem: &Diagnostic) -> bool {
    problem.code == codes::UNKNOWN_FORMAT && problem.what.contains("kpack")
}

fn none() -> String {
    "-".to_owned()
}

/// The compressed size of the whole container.
fn packed(container: &InventoryContainer<'_>) -> String {
    let is_packed = container.plain_size != container.found.bytes.len() as u64;
    if is_packed { container.found.bytes.len().to_string() } else { none() }
}

/// A container with nothing but the host's part is listed, too.
fn empty_cells(container: &InventoryContainer<'_>) -> Vec<String> {
    let place = text::plain(&container.found.place.to_string());
    let form = container.found.form.to_string();
    let size = container.plain_size.to_string();
    let kind = "no device code".to_owned();
    vec![none(), place, form, none(), kind, size, packed(container), none(), none(), none()]
}

/// The cells of an entry that states a GPU, a kind and perhaps a producer, and holds nothing.
fn empty_image_cells(container: &InventoryContainer<'_>, image: &ContainerImage<'_>) -> Vec<String> {
    let stated = image.stated.as_ref();
    let kind = stated.map_or_else(none, |stated| format!("empty {}", stated.kind));
    let producer = stated.and_then(|stated| stated.producer.as_deref()).map_or_else(none, text::plain);
    vec![
        none(),
        text::plain(&container.found.place.to_string()),
        container.found.form.to_string(),
        text::plain(image_target(image).as_deref().unwrap_or("-")),
        kind,
        "0".to_owned(),
        none(),
        none(),
        producer,
        text::plain(image.id.as_deref().unwrap_or("-")),
    ]
}

/// The cells of a row; the `first` of a container has its compressed size.
fn cells(container: &InventoryContainer<'_>, row: &ImageRow<'_>, first: bool) -> Vec<String> {
    vec![
        row.number.to_string(),
        text::plain(&container.found.place.to_string()),
        container.found.form.to_string(),
        text::plain(row.target.as_deref().unwrap_or("-")),
        if container.is_read { row.image.kind.to_string() } else { none() },
        row.size.to_string(),
        if first { packed(container) } else { none() },
        row.kernels().map_or_else(none, |count| count.to_string()),
        text::plain(&row.made(container)),
        text::plain(row.image.id.as_deref().unwrap_or("-")),
    ]
}

fn as_json(path: &Path, name: &Path, depth: InventoryDepth, outcome: &mut CommandOutcome) -> Result<Value, Diagnostic> {
    let file = name;
    let bytes = hotswap_files::open_or_stdin(path)?;
    let contents = hotswap_bundle::find_containers(&bytes);
    let mut containers = Vec::new();
    let mut warnings = Vec::new();
    let problems = inventory::visit_to(&contents, depth, |container| {
        warnings.extend(inventory::hash_problem(&container));
        containers.push(inventory::container_json(&container));
    });
    let problems = with_archives(problems, &bytes);
    let problems: Vec<_> = warnings.into_iter().chain(problems).map(|problem| problem.in_file(file)).collect();
    let told: Vec<_> = problems.iter().map(Diagnostic::to_json).collect();
    outcome.problems.extend(problems);
    Ok(json!({ "file": file.display().to_string(), "containers": containers, "problems": told }))
}
