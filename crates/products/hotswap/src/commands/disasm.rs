//! `hotswap disasm`: the instructions of a code object, as assembly or JSON.
//!
//! The output is streamed, because the text of a large library has gigabytes; problems are reported at the end. Bytes
//! that are no instruction are shown as bytes and counted, never guessed.

mod color_choice;
mod select;

use crate::args::{OutputFormat, OutputOptions};
use crate::outcome::CommandOutcome;
use crate::stream_input::input_file;
use crate::work::{inventory, text};
use clap::Args;
use color_choice::ColorChoice;
use hotswap_code_object::{CodeMap, CodeSection, ObjectKind};
use hotswap_disassembly::assembly::{Assembly, AssemblyHeader};
use hotswap_disassembly::chunk::{common_lanes, extent};
use hotswap_disassembly::instruction_reader::InstructionReader;
use hotswap_disassembly::json::{Json, ObjectHead};
use hotswap_disassembly::names::NameStyle;
use hotswap_disassembly::out::{OutputClosed, TextOutput};
use hotswap_disassembly::walk::{SectionView, Tally};
use hotswap_report::{Diagnostic, codes};
use select::{ImageSelection, Selected};
use std::io::Write;
use std::iter;
use std::ops::Range;
use std::path::PathBuf;

/// A message with more names than this is useless.
const LISTED: usize = 12;

#[derive(Debug, Args)]
pub(crate) struct DisasmArguments {
    /// Code object, device object, or anything that `hotswap list` reads
    #[arg(value_parser = input_file())]
    file: PathBuf,
    /// Only code for this target ID; on a single code object, decode it as code for that target
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Only the image with this number or entry of `hotswap list`; may be repeated
    #[arg(long, value_name = "ID")]
    entry: Vec<String>,
    /// All code objects that match, not just one
    #[arg(long)]
    all: bool,
    /// Only this kernel, function or label; may be repeated
    #[arg(long, value_name = "NAME")]
    symbol: Vec<String>,
    /// Only this section; may be repeated
    #[arg(long, value_name = "NAME")]
    section: Vec<String>,
    /// Show C++ names in their source form beside the symbols
    #[arg(long)]
    demangle: bool,
    /// Show padding word by word, not as one line
    #[arg(long)]
    padding: bool,
    /// Lanes of a wave where no kernel states them
    #[arg(long, value_name = "LANES", value_parser = ["32", "64"])]
    wave: Option<String>,
    /// The file is instructions and nothing else; needs --target
    #[arg(long, requires = "target", conflicts_with_all = ["entry", "all", "symbol", "section"])]
    raw: bool,
    /// Address of the first byte of a --raw file
    #[arg(long, value_name = "ADDRESS", requires = "raw", default_value = "0", value_parser = text::number)]
    address: u64,
    /// Colours
    #[arg(long, value_enum, default_value_t)]
    color: ColorChoice,
    #[command(flatten)]
    output: OutputOptions,
}

/// Writes the instructions of the arguments' file.
pub(crate) fn run(arguments: &DisasmArguments, output: impl Write) -> Result<CommandOutcome, Diagnostic> {
    let bytes = hotswap_files::open_or_stdin(&arguments.file)?;
    write(arguments, &bytes, output)
}

/// Writes the instructions in `bytes`, which are those of the arguments' file.
pub(crate) fn write(
    arguments: &DisasmArguments,
    bytes: &[u8],
    output: impl Write,
) -> Result<CommandOutcome, Diagnostic> {
    let names = NameStyle { demangle: arguments.demangle };
    let file = arguments.file.display().to_string();
    let writer = match arguments.output.format {
        OutputFormat::Text => DisasmWriter::Assembly(Assembly {
            out: TextOutput::new(output),
            names: &names,
            color: arguments.color.is_on(),
        }),
        OutputFormat::Json => DisasmWriter::Json(Json::new(output, &names)),
    };
    let mut run = DisasmRun { arguments, names: &names, file: &file, writer, problems: Vec::new(), began: false };
    let result = if arguments.raw { run.raw(bytes) } else { run.container(bytes) };
    run.finish(result).map_err(|error| error.in_file(&arguments.file))
}

/// The reason why a run ends early.
enum RunEnd {
    /// The reader has closed the pipe, or the disk is full.
    Stop,
    Refused(Diagnostic),
}

impl From<OutputClosed> for RunEnd {
    fn from(_: OutputClosed) -> Self {
        Self::Stop
    }
}

impl From<Diagnostic> for RunEnd {
    fn from(error: Diagnostic) -> Self {
        Self::Refused(error)
    }
}

enum DisasmWriter<'n, W> {
    Assembly(Assembly<'n, W>),
    Json(Json<'n, W>),
}

struct DisasmRun<'r, W> {
    arguments: &'r DisasmArguments,
    names: &'r NameStyle,
    file: &'r str,
    writer: DisasmWriter<'r, W>,
    problems: Vec<Diagnostic>,
    /// Whether something was written: a refusal precedes all output, an error in an object may follow some.
    began: bool,
}

/// One code object, and its name in messages.
struct NamedObject<'o> {
    map: &'o CodeMap<'o>,
    number: Option<usize>,
    id: Option<&'o str>,
    place: &'o str,
    target: String,
    kind: &'static str,
    reader: InstructionReader,
}

impl<W: Write> DisasmRun<'_, W> {
    /// Instructions without a file format around them.
    fn raw(&mut self, bytes: &[u8]) -> Result<(), RunEnd> {
        let target = self.arguments.target.clone().unwrap_or_default();
        let section = CodeSection {
            number: None,
            name: ".text".into(),
            address: self.arguments.address,
            range: 0..bytes.len(),
            bytes,
            symbols: Vec::new(),
            relocations: Vec::new(),
        };
        let map = CodeMap {
            kind: ObjectKind::Linked,
            machine: 0,
            processor: None,
            target_id: None,
            sections: vec![section],
            empty_kernels: Vec::new(),
            problems: Vec::new(),
        };
        let reader = self.reader(&target, None)?;
        self.object(&NamedObject { map: &map, number: None, id: None, place: "0x0", target, kind: "raw", reader })
    }

    fn container(&mut self, bytes: &[u8]) -> Result<(), RunEnd> {
        let contents = hotswap_bundle::find_containers(bytes);
        match select::select(&contents, self.arguments, &mut self.problems)? {
            ImageSelection::One(selected) => self.image(&selected),
            ImageSelection::Several(numbers) => {
                let mut result = Ok(());
                inventory::visit(&contents, |container| {
                    for selected in Selected::images_of_container(container, false) {
                        if result.is_ok() && numbers.contains(&selected.row.number) {
                            result = self.image(&selected);
                        }
                    }
                });
                result
            }
        }
    }

    fn image(&mut self, selected: &Selected<'_>) -> Result<(), RunEnd> {
        let map = CodeMap::read(&selected.row.image.data);
        let mut map = map.map_err(|error| in_selected_entry(error, selected))?;
        let problems = std::mem::take(&mut map.problems).into_iter();
        self.problems.extend(problems.map(|problem| in_selected_entry(problem, selected)));
        let target = self.target(selected, &map).map_err(|error| in_selected_entry(error, selected))?;
        let reader = self.reader(&target, common_lanes(&map)).map_err(|error| in_selected_entry(error, selected))?;
        let kind = match map.kind {
            ObjectKind::Linked => "linked",
            ObjectKind::Relocatable => "relocatable",
        };
        let (id, number, place) = (selected.row.image.id.as_deref(), selected.row.number, selected.place.as_str());
        self.object(&NamedObject { map: &map, number: Some(number), id, place, target, kind, reader })
    }

    /// The target of the code: the requested one, otherwise that of the file's header.
    fn target(&mut self, selected: &Selected<'_>, map: &CodeMap<'_>) -> Result<String, Diagnostic> {
        let stated = map.target_id.map(|id| id.to_string());
        let stated = stated.or_else(|| map.processor.map(|processor| processor.name.to_owned()));
        let named = match selected.is_bare {
            true => self.arguments.target.clone(),
            false => selected.row.target.clone(),
        };
        let Some(stated) = stated else {
            let advice = "name a target of `hotswap targets` by --target";
            let error =
                || Diagnostic::error(codes::UNKNOWN_TARGET, unknown_machine_message(map)).at_offset(48).advise(advice);
            return named.ok_or_else(error);
        };
        match named {
            Some(named) if target_processor_name(&named) != target_processor_name(&stated) => {
                let (what, shown) = match selected.is_bare {
                    true => (format!("the ELF header says {stated}; it is decoded as {named}, as requested"), named),
                    false => {
                        (format!("the entry says {named}, its ELF header {stated}; the header is followed"), stated)
                    }
                };
                let advice = "what does not look like code is for another target";
                self.problems.push(Diagnostic::warning(codes::OTHER_TARGET, what).advise(advice));
                Ok(shown)
            }
            _ => Ok(stated),
        }
    }

    fn reader(&self, target: &str, lanes: Option<u8>) -> Result<InstructionReader, Diagnostic> {
        let processor = target.split(':').next().unwrap_or_default();
        let reader =
            InstructionReader::find(processor).ok_or_else(|| match hotswap_targets::find_processor(processor) {
                None => Diagnostic::error(codes::UNKNOWN_TARGET, hotswap_targets::describe_unknown(processor)),
                Some(known) => {
                    let what = format!("{processor} is {}", known.family);
                    Diagnostic::error(codes::NO_INSTRUCTIONS, what)
                }
            })?;
        let asked = self.arguments.wave.as_ref().and_then(|lanes| lanes.parse().ok());
        Ok(asked.or(lanes).map_or(reader, |lanes| reader.with_lanes(lanes)))
    }

    /// Shows one code object, after all checks that can refuse it.
    fn object(&mut self, object: &NamedObject<'_>) -> Result<(), RunEnd> {
        let wanted = wanted_sections(object.map, self.arguments, self.names)?;
        self.begin()?;
        let mut tally = Tally::default();
        self.head(object)?;
        for WantedSection { index, ranges } in wanted {
            let Some(section) = object.map.sections.get(index) else { continue };
            // In relocatable files every section begins at address 0.
            let is_alone = object.map.kind == ObjectKind::Linked || object.map.sections.len() == 1;
            let prefix = (!is_alone).then_some(index);
            let view = SectionView::new(object.map, section, prefix, object.reader, self.arguments.padding);
            match &mut self.writer {
                DisasmWriter::Assembly(assembly) => view.walk(&ranges, assembly, &mut tally)?,
                DisasmWriter::Json(json) => view.walk(&ranges, json, &mut tally)?,
            }
        }
        if let DisasmWriter::Json(json) = &mut self.writer {
            json.end_object(&tally)?;
        }
        self.problems.extend(opaque(&tally, object));
        Ok(())
    }

    fn begin(&mut self) -> Result<(), OutputClosed> {
        let began = std::mem::replace(&mut self.began, true);
        match &mut self.writer {
            DisasmWriter::Json(json) if !began => json.begin(self.file),
            DisasmWriter::Assembly(assembly) if began => assembly.out.line(),
            _ => Ok(()),
        }
    }

    fn head(&mut self, object: &NamedObject<'_>) -> Result<(), OutputClosed> {
        let (target, lanes) = (object.target.as_str(), object.reader.lanes());
        match &mut self.writer {
            DisasmWriter::Assembly(assembly) => {
                let entry = object.id.or(Some(object.place).filter(|place| *place != "0x0"));
                assembly.head(&AssemblyHeader {
                    file: self.file,
                    entry,
                    target,
                    lanes,
                    default_lanes: object.reader.default_lanes(),
                })
            }
            DisasmWriter::Json(json) => {
                let (entry, id, place, kind) = (object.number, object.id, object.place, object.kind);
                json.object(&ObjectHead { entry, id, place, target, kind, lanes })
            }
        }
    }

    /// Ends the output. A refusal before any output is the only message.
    fn finish(mut self, result: Result<(), RunEnd>) -> Result<CommandOutcome, Diagnostic> {
        match result {
            Err(RunEnd::Refused(error)) if !self.began => return Err(error),
            Err(RunEnd::Refused(error)) => self.problems.push(error),
            Err(RunEnd::Stop) | Ok(()) => {}
        }
        let problems: Vec<_> = self.problems.into_iter().map(|problem| problem.in_file(self.file)).collect();
        let written = match self.writer {
            DisasmWriter::Assembly(assembly) => assembly.out.finish(),
            DisasmWriter::Json(mut json) => {
                let told: Vec<_> = problems.iter().map(Diagnostic::to_json).collect();
                let _ = json.end(&told);
                json.out.finish()
            }
        };
        Ok(CommandOutcome {
            text: String::new(),
            problems: problems.into_iter().chain(written).collect(),
            ..CommandOutcome::default()
        })
    }
}

fn in_selected_entry(error: Diagnostic, selected: &Selected<'_>) -> Diagnostic {
    if selected.is_bare {
        return error;
    }
    error.in_entry(selected.row.image.id.as_ref().unwrap_or(&selected.place))
}

fn unknown_machine_message(map: &CodeMap<'_>) -> String {
    format!("machine {:#04x} in e_flags is not known", map.machine)
}

fn target_processor_name(target: &str) -> String {
    target.split(':').next().unwrap_or_default().to_owned()
}

/// One line about all bytes in code that decode to no instruction.
fn opaque(tally: &Tally, object: &NamedObject<'_>) -> Option<Diagnostic> {
    let first = tally.first_opaque?;
    let what = format!("{} bytes on {}, the first here", tally.opaque, object.target);
    let warning = Diagnostic::warning(codes::OPAQUE, what).at_offset(first);
    Some(object.id.map_or(warning.clone(), |id| warning.in_entry(id)))
}

/// The ranges of a section to disassemble.
struct WantedSection {
    /// Index of the section in the map.
    index: usize,
    ranges: Vec<Range<usize>>,
}

/// The requested ranges of each section. An empty section is shown, too.
fn wanted_sections(
    map: &CodeMap<'_>,
    arguments: &DisasmArguments,
    names: &NameStyle,
) -> Result<Vec<WantedSection>, Diagnostic> {
    if let Some(unknown) =
        arguments.section.iter().find(|name| !map.sections.iter().any(|section| section.name == **name))
    {
        let there = map.sections.iter().map(|section| section.name.to_string());
        return Err(absent("section with instructions", unknown, there));
    }
    let sections = map.sections.iter().enumerate().filter(|(_, section)| is_requested_section(section, arguments));
    if arguments.symbol.is_empty() {
        return Ok(sections
            .map(|(index, section)| WantedSection { index, ranges: whole_section_range(section) })
            .collect());
    }
    let sections: Vec<_> = sections.collect();
    for name in &arguments.symbol {
        if !sections.iter().any(|(_, section)| !matching_symbol_ranges(section, name, names).is_empty()) {
            let symbols = sections.iter().flat_map(|(_, section)| &section.symbols);
            return Err(absent("symbol", name, symbols.map(|symbol| names.shown(&symbol.name).into_owned())));
        }
    }
    let found = sections
        .into_iter()
        .map(|(index, section)| WantedSection { index, ranges: requested_ranges(section, arguments, names) });
    Ok(found.filter(|section| !section.ranges.is_empty()).collect())
}

/// The ranges of the requested symbols, in the order of the request.
fn requested_ranges(section: &CodeSection<'_>, arguments: &DisasmArguments, names: &NameStyle) -> Vec<Range<usize>> {
    arguments.symbol.iter().flat_map(|name| matching_symbol_ranges(section, name, names)).collect()
}

fn is_requested_section(section: &CodeSection<'_>, arguments: &DisasmArguments) -> bool {
    arguments.section.is_empty() || arguments.section.iter().any(|name| section.name == *name)
}

fn whole_section_range(section: &CodeSection<'_>) -> Vec<Range<usize>> {
    iter::once(0..section.bytes.len()).collect()
}

fn matching_symbol_ranges(section: &CodeSection<'_>, wanted: &str, names: &NameStyle) -> Vec<Range<usize>> {
    let symbols = section.symbols.iter().filter(|symbol| names.matches_name(&symbol.name, wanted));
    symbols.map(|symbol| extent(section, symbol)).collect()
}

fn absent(what: &str, name: &str, there: impl Iterator<Item = String>) -> Diagnostic {
    let all: Vec<_> = there.collect();
    let mut told = all.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
    if all.len() > LISTED {
        told += &format!(" and {} more", all.len() - LISTED);
    }
    if all.is_empty() {
        told = "none".to_owned();
    }
    Diagnostic::error(codes::NO_PART, format!("there is no {what} `{name}`; there are: {told}"))
}
