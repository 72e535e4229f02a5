//! `hotswap extract`: device code into files of its own.

use crate::outcome::CommandOutcome;
use crate::standard_output::output_file;
use crate::stream_input::input_file;
use crate::work::inventory::{self, ImageRow, InventoryContainer};
use crate::work::text;
use clap::Args;
use hotswap_bundle::{HashState, ImageKind};
use hotswap_report::{Diagnostic, codes};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct ExtractArguments {
    /// Program, library, object, archive, fat binary or code object
    #[arg(value_parser = input_file())]
    file: PathBuf,
    /// Only code for this target ID, for example gfx90a:xnack+
    #[arg(long)]
    target: Option<String>,
    /// Only the image with this number of `hotswap list`
    #[arg(long, value_name = "N")]
    entry: Option<usize>,
    #[command(flatten)]
    place: Destination,
}

/// Where to write.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Destination {
    /// Output file; exactly one image must match
    #[arg(short, value_name = "OUT", value_parser = output_file())]
    output: Option<PathBuf>,
    /// Directory for all images that match, named FILE.NUMBER.TARGET.KIND
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
}

pub(crate) fn run(arguments: &ExtractArguments) -> Result<CommandOutcome, Diagnostic> {
    let file = &arguments.file;
    let bytes = hotswap_files::open_or_stdin(file)?;
    let contents = hotswap_bundle::find_containers(&bytes);
    let mut matches = Vec::new();
    let mut damaged = Vec::new();
    let problems = inventory::visit(&contents, |container| {
        let before = matches.len();
        let hash = container.hash;
        let place = container.found.place.to_string();
        let InventoryContainer { rows, .. } = container;
        matches.extend(rows.into_iter().filter(|row: &ImageRow<'_>| arguments.wants(row)));
        if hash == HashState::Wrong && matches.len() > before {
            damaged.push(place);
        }
    });
    // A file of which only a part was read may have further matches.
    if let Some(problem) = problems.into_iter().next() {
        return Err(problem.in_file(file));
    }
    if let Some(place) = damaged.into_iter().next() {
        let what = "the hash of the compressed bundle is not that of its content";
        return Err(Diagnostic::error(codes::MALFORMED, what).in_entry(place).in_file(file));
    }
    if matches.is_empty() {
        return Err(Diagnostic::error(codes::NOT_FOUND, "no image matches").in_file(file).advise("see `hotswap list`"));
    }
    arguments.write(&matches)
}

impl ExtractArguments {
    fn wants(&self, row: &ImageRow<'_>) -> bool {
        self.entry.is_none_or(|number| number == row.number)
            && self.target.as_ref().is_none_or(|target| row.is_for(target))
    }

    fn write(&self, matches: &[ImageRow<'_>]) -> Result<CommandOutcome, Diagnostic> {
        match (&self.place.output, &self.place.output_dir) {
            (Some(output), _) => {
                let [row] = matches else { return Err(self.ambiguous(matches)) };
                hotswap_files::replace_file(output, &row.image.data)?;
                Ok(CommandOutcome::default())
            }
            (None, directory) => self.write_all(matches, directory.as_deref().unwrap_or(Path::new("."))),
        }
    }

    fn ambiguous(&self, matches: &[ImageRow<'_>]) -> Diagnostic {
        let numbers: Vec<_> = matches.iter().map(|row| row.number.to_string()).collect();
        let what = format!("{} images match: {}", matches.len(), numbers.join(", "));
        let advice = "name one by --entry (see `hotswap list`), or write all with --output-dir";
        Diagnostic::error(codes::USAGE, what).in_file(&self.file).advise(advice)
    }

    fn write_all(&self, matches: &[ImageRow<'_>], directory: &Path) -> Result<CommandOutcome, Diagnostic> {
        hotswap_files::create_directories(directory).map_err(|error| Diagnostic::cannot_write(directory, error))?;
        let stem = self.file.file_name().unwrap_or_default().to_string_lossy();
        let mut outcome = CommandOutcome::default();
        for row in matches {
            let target = row.target.as_deref().unwrap_or("unknown").replace(is_unsafe, "_");
            let path = directory.join(format!("{stem}.{}.{target}.{}", row.number, extension(row.image.kind)));
            hotswap_files::replace_file(&path, &row.image.data)?;
            outcome.text += &format!("{}\n", text::plain(&path.display().to_string()));
        }
        Ok(outcome)
    }
}

/// Characters that a target ID may contain and a file name on some systems may not, above all `:`.
fn is_unsafe(c: char) -> bool {
    !c.is_ascii_alphanumeric() && !matches!(c, '-' | '+' | '.' | '_')
}

fn extension(kind: ImageKind) -> &'static str {
    match kind {
        ImageKind::CodeObject => "co",
        ImageKind::DeviceObject => "o",
        ImageKind::Bitcode => "bc",
        ImageKind::SpirV => "spv",
        ImageKind::Empty | ImageKind::OtherElf | ImageKind::Container | ImageKind::Unknown => "bin",
    }
}
