//! `hotswap add`, `replace`, `remove`, `prune`, `compress` and `decompress`: changing the containers of
//! a file of any kind.
//!
//! Each command changes an opened container ([`open::Opened`]) or leaves it; what changed goes back into
//! the file by `hotswap_bundle::embed`, which reads the result again. A record of HotSwap follows: rows
//! of entries that went go, and what was put in counts as compiled.
//!
//! Invariants: an entry that is named and not there is an error, and so is a target that nothing is for;
//! nothing is written unless all of it could be done.

mod open;
mod record;

use crate::cli::{Format, Output};
use crate::{Outcome, text};
use clap::{Args, ValueEnum};
use hotswap_bundle::linked::Exchange;
use hotswap_bundle::{Compression, Method};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;
use open::{Change, Opened};
use serde_json::json;
use std::path::PathBuf;

/// File, output, and which container.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Program, library, object, archive or fat binary
    file: PathBuf,
    /// Output file; may be the input
    #[arg(short, value_name = "OUT")]
    output: PathBuf,
    /// Only the container with this number (1 is the first that `hotswap list` shows)
    #[arg(long, value_name = "N")]
    container: Option<usize>,
    #[command(flatten)]
    format: Output,
}

/// `add` and `replace`.
#[derive(Debug, Args)]
pub(crate) struct Put {
    #[command(flatten)]
    common: Common,
    /// Entry ID or target ID, and the file with its code
    #[arg(required = true, value_name = "ENTRY=CODEOBJECT")]
    entries: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    #[command(flatten)]
    common: Common,
    /// Entry IDs or target IDs
    #[arg(required = true, value_name = "ENTRY")]
    entries: Vec<String>,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(crate) struct Prune {
    #[command(flatten)]
    common: Common,
    /// Keep code for these targets only; a name without features means all of its features
    #[arg(long, value_name = "TARGET", num_args = 1.., value_delimiter = ',', group = "what")]
    keep: Vec<String>,
    /// Drop code for these targets
    #[arg(long, value_name = "TARGET", num_args = 1.., value_delimiter = ',', group = "what")]
    drop: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Compress {
    #[command(flatten)]
    common: Common,
    /// Level [default: that of clang: 3 for zstd, 6 for zlib]
    #[arg(long)]
    level: Option<i32>,
    /// Method of compression
    #[arg(long, value_enum, default_value = "zstd")]
    method: MethodName,
    /// Version of the header; clang 22 and later write 3
    #[arg(long, value_name = "VERSION", default_value_t = 3, value_parser = clap::value_parser!(u16).range(2..=3))]
    header: u16,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum MethodName {
    Zstd,
    Zlib,
}

/// What a command does with one container, and whether every container must take it.
type Step<'s> = dyn FnMut(&mut Opened<'_>) -> Result<Vec<Change>, Diagnostic> + 's;

pub(crate) fn add(arguments: &Put) -> Result<Outcome, Diagnostic> {
    let new = arguments.read()?;
    arguments.common.apply(true, &mut |container| new.iter().map(|(name, code)| container.add(name, code)).collect())
}

pub(crate) fn replace(arguments: &Put) -> Result<Outcome, Diagnostic> {
    let new = arguments.read()?;
    arguments
        .common
        .apply(true, &mut |container| new.iter().map(|(name, code)| container.replace(name, code)).collect())
}

pub(crate) fn remove(arguments: &Remove) -> Result<Outcome, Diagnostic> {
    let mut missing = arguments.entries.clone();
    let outcome = arguments.common.collect(false, &mut |container| {
        let changes: Vec<Change> = arguments.entries.iter().flat_map(|name| container.remove(name)).collect();
        missing.retain(|name| !arguments.entries.iter().any(|entry| entry == name && container.had(name)));
        Ok(changes)
    })?;
    none_missing(&missing)?;
    arguments.common.write(outcome)
}

pub(crate) fn prune(arguments: &Prune) -> Result<Outcome, Diagnostic> {
    let names = if arguments.keep.is_empty() { &arguments.drop } else { &arguments.keep };
    let targets: Vec<TargetId> = names.iter().map(|name| Ok(name.parse()?)).collect::<Result<_, Diagnostic>>()?;
    let keeps = !arguments.keep.is_empty();
    let mut missing = names.clone();
    let outcome = arguments.common.collect(false, &mut |container| {
        missing.retain(|name| !container.serves(name));
        Ok(container.prune(&targets, keeps))
    })?;
    none_missing(&missing)?;
    arguments.common.write(outcome)
}

fn none_missing(missing: &[String]) -> Result<(), Diagnostic> {
    match missing.first() {
        None => Ok(()),
        Some(name) => Err(Diagnostic::error(codes::NO_ENTRY, format!("nothing is for `{name}`"))),
    }
}

pub(crate) fn compress(arguments: &Compress) -> Result<Outcome, Diagnostic> {
    let (method, levels) = match arguments.method {
        MethodName::Zstd => (Method::Zstd, 1..=22),
        MethodName::Zlib => (Method::Zlib, 0..=9),
    };
    if let Some(level) = arguments.level.filter(|level| !levels.contains(level)) {
        let what = format!("level {level} is not one of {} to {}", levels.start(), levels.end());
        return Err(Diagnostic::error(codes::USAGE, what));
    }
    let how = Compression { version: arguments.header, method, level: arguments.level };
    arguments.common.apply(false, &mut |container| container.compress(Some(how)))
}

pub(crate) fn decompress(arguments: &Common) -> Result<Outcome, Diagnostic> {
    arguments.apply(false, &mut |container| container.compress(None))
}

impl Put {
    /// The entries' names and the bytes of the files.
    fn read(&self) -> Result<Vec<(String, Vec<u8>)>, Diagnostic> {
        let one = |entry: &String| {
            let (name, file) =
                entry.split_once('=').filter(|(name, file)| !name.is_empty() && !file.is_empty()).ok_or_else(|| {
                    Diagnostic::error(codes::USAGE, format!("`{entry}` is not of the form ENTRY=CODEOBJECT"))
                })?;
            Ok((name.to_owned(), hotswap_files::read(file.as_ref())?))
        };
        self.entries.iter().map(one).collect()
    }
}

/// A file as it will be, and what was done to it.
struct Done {
    bytes: Vec<u8>,
    changes: Vec<(String, Change)>,
    old_size: usize,
}

impl Common {
    fn apply(&self, one: bool, step: &mut Step<'_>) -> Result<Outcome, Diagnostic> {
        self.write(self.collect(one, step)?)
    }

    /// Does it in memory. `one`: the file must have one container, or one must be named.
    fn collect(&self, one: bool, step: &mut Step<'_>) -> Result<Done, Diagnostic> {
        let bytes = hotswap_files::open(&self.file)?;
        self.change(&bytes, one, step).map_err(|error| error.in_file(&self.file))
    }

    fn change(&self, bytes: &[u8], one: bool, step: &mut Step<'_>) -> Result<Done, Diagnostic> {
        let contents = hotswap_bundle::open(bytes);
        if let Some(problem) = contents.problems.into_iter().next() {
            return Err(problem);
        }
        let count = contents.found.len();
        if count == 0 {
            return Err(Diagnostic::error(codes::NOT_FOUND, "no container of device code is in it"));
        }
        if let Some(number) = self.container.filter(|number| !(1..=count).contains(number)) {
            return Err(Diagnostic::error(
                codes::NO_ENTRY,
                format!("it has {count} containers and no number {number}"),
            ));
        }
        if one && count > 1 && self.container.is_none() {
            let what = format!("it has {count} containers");
            return Err(Diagnostic::error(codes::USAGE, what).advise("name one by --container"));
        }
        let (mut exchanges, mut changes) = (Vec::new(), Vec::new());
        for (index, found) in contents.found.iter().enumerate() {
            if self.container.is_some_and(|number| number != index + 1) {
                continue;
            }
            let place = found.place.to_string();
            let named = |error: Diagnostic| error.in_entry(&place);
            let mut container = Opened::read(found).map_err(named)?;
            let done = step(&mut container).map_err(named)?;
            if let Some(new) = container.into_bytes().map_err(named)? {
                exchanges.push(Exchange { offset: found.place.file_offset, new: new.into() });
            }
            changes.extend(done.into_iter().map(|change| (place.clone(), change)));
        }
        let new = hotswap_bundle::embed(bytes, &exchanges)?;
        Ok(Done { bytes: new, changes, old_size: bytes.len() })
    }

    fn write(&self, done: Done) -> Result<Outcome, Diagnostic> {
        hotswap_files::replace_like(&self.output, &done.bytes, &self.file)?;
        if self.format.format == Format::Json {
            let changes: Vec<_> = done.changes.iter().map(|(place, change)| change.json(place)).collect();
            let sizes = [done.old_size, done.bytes.len()];
            let value =
                json!({ "schema": 1, "file": self.file.display().to_string(), "changes": changes, "sizes": sizes });
            return Ok(text::json(&value).into());
        }
        let lines = done
            .changes
            .iter()
            .map(|(place, change)| format!("{}: {}\n", text::plain(place), text::plain(&change.to_string())));
        Ok(lines.collect::<String>().into())
    }
}
