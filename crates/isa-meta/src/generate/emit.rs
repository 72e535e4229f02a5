//! The tables as Rust text.
//!
//! Invariants: lists that are equal are written once; an index that does not fit its integer is an error.

use super::GenerateError;
use super::accept::{Context, Method};
use super::emit_array;
use super::expand::{Expanded, Slot};
use super::settings::Settings;
use super::size::Sizes;
use super::trie::Tries;
use crate::model::{Model, Piece};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The enums of names.
pub fn enums(expanded: &Expanded) -> String {
    let mut out = String::new();
    expanded.names.write(&mut out, "Operands and fields of encodings.");
    expanded.flags.write(&mut out, "What an instruction is.");
    expanded.features.write(&mut out, "What a processor has, in the spelling of LLVM's `-mattr`.");
    expanded.classes.write(&mut out, "Encoding classes.");
    expanded.implicit.write(&mut out, "Registers that are read or written without being named.");
    out
}

/// Lists that are stored once.
struct Pool<T> {
    items: Vec<T>,
    places: BTreeMap<Vec<T>, usize>,
}

impl<T: Clone + Ord> Pool<T> {
    fn new() -> Self {
        Self { items: Vec::new(), places: BTreeMap::new() }
    }

    /// The position of `list`.
    fn place(&mut self, list: &[T]) -> usize {
        if let Some(&place) = self.places.get(list) {
            return place;
        }
        let place = self.items.len();
        self.items.extend_from_slice(list);
        self.places.insert(list.to_vec(), place);
        place
    }
}

/// A step of checking a candidate's operands, see `Check` of `hotswap-isa`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Check {
    what: u8,
    at: u8,
    width: u8,
    pieces: usize,
    count: usize,
    set: usize,
}

/// The tables.
pub fn tables(
    model: &Model,
    expanded: &Expanded,
    settings: &Settings,
    tries: &Tries,
    sizes: &Sizes,
) -> Result<String, GenerateError> {
    let mut emitter = Emitter {
        model,
        expanded,
        pieces: Pool::new(),
        checks: Pool::new(),
        accept: Accept::new(model, settings)?,
        out: String::new(),
    };
    emitter.strings();
    emitter.formats()?;
    emitter.rows()?;
    emitter.entries(settings)?;
    emitter.targets(settings, tries)?;
    emitter.images();
    let mut out = emitter.finish();
    tries.write(&mut out);
    sizes.write(&mut out);
    Ok(out)
}

struct Emitter<'a> {
    model: &'a Model,
    expanded: &'a Expanded,
    pieces: Pool<Piece>,
    checks: Pool<Check>,
    accept: Accept,
    out: String,
}

fn small<T: TryFrom<usize>>(value: usize, place: &str) -> Result<T, GenerateError> {
    T::try_from(value).map_err(|_| GenerateError::new(place, format!("{value} does not fit the table")))
}

impl Emitter<'_> {
    fn strings(&mut self) {
        emit_array(&mut self.out, "TEMPLATES", "&str", &self.model.shapes, |shape| format!("{:?}", shape.template));
    }

    fn formats(&mut self) -> Result<(), GenerateError> {
        let mut slots = Pool::new();
        let mut formats = Vec::new();
        for format in &self.expanded.formats {
            let list: Vec<String> = format
                .slots
                .iter()
                .map(|slot| self.slot(slot, &model_name(self.model, format.shape)))
                .collect::<Result<_, _>>()?;
            let start = slots.place(&list);
            formats.push(format!(
                "f({}, {}, {start}, {})",
                small::<u16>(format.shape, "shapes")?,
                small::<u16>(format.layout, "layouts")?,
                small::<u8>(list.len(), "slots")?
            ));
        }
        emit_array(&mut self.out, "SLOTS", "Slot", &slots.items, String::clone);
        emit_array(&mut self.out, "FORMATS", "FormatData", &formats, String::clone);
        let mut layouts = Vec::new();
        let mut fields = Pool::new();
        for layout in &self.model.layouts {
            let mut list = Vec::new();
            for field in &layout.fields {
                let place = self.pieces.place(&field.pieces);
                list.push(format!("d({}, {place}, {})", self.expanded.names.path(&field.name)?, field.pieces.len()));
            }
            let start = fields.place(&list);
            layouts.push(format!("l({}, {start}, {})", self.expanded.classes.path(&layout.class)?, list.len()));
        }
        emit_array(&mut self.out, "FIELDS", "FieldData", &fields.items, String::clone);
        emit_array(&mut self.out, "LAYOUTS", "LayoutData", &layouts, String::clone);
        Ok(())
    }

    fn slot(&mut self, slot: &Slot, place: &str) -> Result<String, GenerateError> {
        let pieces = self.pieces.place(&slot.pieces);
        let name = self.expanded.names.path(self.expanded.names.text(slot.name))?;
        let kind = small::<u16>(slot.kind, place)?;
        Ok(format!("s({name}, {kind}, {}, {:?}, {pieces}, {})", slot.written, slot.tied, slot.pieces.len()))
    }

    fn rows(&mut self) -> Result<(), GenerateError> {
        let (model, expanded) = (self.model, self.expanded);
        let bits = |names: &super::names::Names, list: &[String]| {
            list.iter().try_fold(0u128, |bits, name| names.number(name).map(|number| bits | 1u128 << (number & 127)))
        };
        if expanded.flags.len() > 128 || expanded.implicit.len() > 32 {
            return Err(GenerateError::new("rows", "more than 128 flags or 32 implicit registers"));
        }
        let mut rows = Vec::new();
        let mut images = 0;
        for row in &model.rows {
            let image = if row.image.is_some() {
                images += 1;
                format!("{}", images - 1)
            } else {
                "NONE".to_owned()
            };
            rows.push(format!(
                "r({:?}, {:#x}, {:#x}, {:#x}, {image})",
                row.mnemonic,
                bits(&expanded.flags, &row.flags)?,
                bits(&expanded.implicit, &row.reads)?,
                bits(&expanded.implicit, &row.writes)?,
            ));
        }
        small::<u16>(rows.len(), "rows")?;
        emit_array(&mut self.out, "ROWS", "RowData", &rows, String::clone);
        Ok(())
    }

    fn entries(&mut self, settings: &Settings) -> Result<(), GenerateError> {
        let mut high = Pool::new();
        high.place(&[(0, 0)]);
        let mut blocks = Pool::new();
        let mut entries = Vec::new();
        for (number, entry) in self.expanded.entries.iter().enumerate() {
            let checks = self.entry_checks(number)?;
            let start = self.checks.place(&checks);
            let block = self.block(&checks).filter(|_| entry.mask >> 64 == 0);
            let block = block.map_or(NO_BLOCK, |block| blocks.place(&[block]));
            let top = ((entry.value >> 64) as u64, (entry.mask >> 64) as u64);
            let place = &self.model.rows[entry.row].mnemonic;
            entries.push(format!(
                "e({:#x}, {:#x}, {}, {}, {}, {}, {}, {}, {}, {}, {})",
                entry.value as u64,
                entry.mask as u64,
                small::<u16>(entry.row, place)?,
                small::<u16>(entry.format, place)?,
                small::<u16>(settings.needs[number], place)?,
                small::<u16>(high.place(&[top]), place)?,
                small::<u16>(block, place)?,
                small::<u16>(start, place)?,
                small::<u8>(checks.len(), place)?,
                self.expanded.formats[entry.format].bytes,
                small::<u8>(settings.tables[number], place)?,
            ));
        }
        if entries.len() >= (1 << 15) - 1 {
            return Err(GenerateError::new("entries", "more than 32766"));
        }
        emit_array(&mut self.out, "ENTRIES", "EntryData", &entries, String::clone);
        emit_array(&mut self.out, "BLOCKS", "Block", &blocks.items, String::clone);
        emit_array(&mut self.out, "HIGH_BITS", "(u64, u64)", &high.items, |(value, mask)| {
            format!("({value:#x}, {mask:#x})")
        });
        Ok(())
    }

    /// The checks as a block of four that needs no branches, if they are few, simple and in the first eight bytes.
    fn block(&mut self, checks: &[Check]) -> Option<String> {
        let simple = |check: &Check| {
            check.what <= SOURCE && check.count == 0 && check.width <= 10 && check.at + check.width <= 64
        };
        if checks.len() > 4 || !checks.iter().all(simple) {
            return None;
        }
        let always = self.accept.set(Method::Any, 0);
        let (mut at, mut mask, mut set) = ([0; 4], [0u32; 4], [always; 4]);
        for (number, check) in checks.iter().enumerate() {
            at[number] = check.at;
            mask[number] = (1 << check.width) - 1;
            set[number] = check.set;
        }
        Some(format!("k({at:?}, {mask:?}, {set:?})"))
    }

    /// The checks to make before the entry is taken, in LLVM's operand order.
    fn entry_checks(&mut self, number: usize) -> Result<Vec<Check>, GenerateError> {
        let entry = &self.expanded.entries[number];
        let format = &self.expanded.formats[entry.format];
        let mut checks = Vec::new();
        for slot in format.slots.iter().filter(|slot| !slot.pieces.is_empty()) {
            if let Some(check) = self.slot_check(slot) {
                checks.push(check);
            }
        }
        let row = &self.model.rows[entry.row];
        let buffer = row.flags.iter().any(|flag| flag == "mubuf" || flag == "mtbuf")
            || row.flags.iter().any(|flag| flag == "smrd") && row.mnemonic.contains("buffer");
        let offset = self.expanded.names.number("offset").ok();
        let slot = format.slots.iter().find(|slot| Some(slot.name) == offset && buffer && width(&slot.pieces) == 24);
        if let Some(slot) = slot {
            checks.push(self.check(NOT_NEGATIVE, slot, 0));
        }
        Ok(checks)
    }

    fn slot_check(&mut self, slot: &Slot) -> Option<Check> {
        let method = self.accept.methods[slot.kind];
        match method {
            Method::Any => None,
            Method::Literal32 => Some(self.check(LITERAL32, slot, 0)),
            Method::Literal64 => Some(self.check(LITERAL64, slot, 0)),
            Method::HalfSource => {
                // The piece that selects the half makes no difference.
                let low = slot.pieces.iter().find(|piece| piece.from == 0 && piece.width >= 8)?;
                let set = self.accept.set(method, low.width);
                Some(self.check(SOURCE, &Slot { pieces: vec![*low], ..slot.clone() }, set))
            }
            _ => {
                let width = width(&slot.pieces).min(10);
                if !method.takes_literal() && self.accept.all(method, width) {
                    return None;
                }
                let set = self.accept.set(method, width);
                Some(self.check(if method.takes_literal() && width >= 8 { SOURCE } else { VALUE }, slot, set))
            }
        }
    }

    fn check(&mut self, what: u8, slot: &Slot, set: usize) -> Check {
        let first = slot.pieces[0];
        let single = slot.pieces.len() == 1 && first.from == 0;
        Check {
            what,
            at: first.at,
            width: first.width,
            pieces: self.pieces.place(&slot.pieces),
            count: if single { 0 } else { slot.pieces.len() },
            set,
        }
    }

    fn targets(&mut self, settings: &Settings, tries: &Tries) -> Result<(), GenerateError> {
        let expanded = self.expanded;
        let mut features = Pool::new();
        features.place(&[[0; 4]]);
        let mut available = Pool::new();
        let mut lines = Vec::new();
        for setting in &settings.settings {
            let mut set = [0u64; 4];
            for feature in &setting.features {
                let number = usize::from(expanded.features.number(feature)?);
                set[number / 64] |= 1 << (number % 64);
            }
            lines.push(format!(
                "t({}, {}, {}, {}, {}, {}, {}, {}, {})",
                setting.target,
                setting.wave64,
                setting.true16,
                features.place(&[set]),
                setting.group,
                tries.root(setting.group),
                available.place(&setting.available),
                self.accept.context_base(&setting.features),
                setting.max_bytes
            ));
        }
        let out = &mut self.out;
        emit_array(out, "FEATURE_SETS", "[u64; 4]", &features.items, |set| format!("{set:?}"));
        emit_array(out, "AVAILABLE", "bool", &available.items, bool::to_string);
        emit_array(out, "SETTINGS", "Setting", &lines, String::clone);
        let targets = self.model.targets.iter().enumerate();
        let targets: Vec<String> =
            targets.map(|(number, target)| format!("g({:?}, {})", target.name, number * 4)).collect();
        emit_array(out, "TARGETS", "Target", &targets, String::clone);
        Ok(())
    }

    fn images(&mut self) {
        let bases: BTreeMap<&str, usize> =
            self.model.image_bases.iter().enumerate().map(|(number, base)| (base.name.as_str(), number)).collect();
        let images: Vec<String> = self
            .model
            .rows
            .iter()
            .filter_map(|row| row.image.as_ref())
            .map(|image| {
                let base = bases.get(image.base.as_str()).copied().unwrap_or(0);
                format!("i({base}, {:?}, {}, {})", image.encoding, image.data, image.address)
            })
            .collect();
        emit_array(&mut self.out, "IMAGES", "Image", &images, String::clone);
        let bases = &self.model.image_bases;
        emit_array(&mut self.out, "IMAGE_BASES", "ImageBase", bases, |base| {
            format!("b({:?}, &{:?}, {}, &{:?})", base.name, base.properties, base.extra_arguments, base.variants)
        });
    }

    fn finish(mut self) -> String {
        let out = &mut self.out;
        emit_array(out, "PIECES", "Piece", &self.pieces.items, |piece| {
            format!("p({}, {}, {})", piece.at, piece.from, piece.width)
        });
        emit_array(out, "CHECKS", "Check", &self.checks.items, |check| {
            let Check { what, at, width, pieces, count, set } = check;
            format!("c({what}, {at}, {width}, {pieces}, {count}, {set})")
        });
        self.accept.write(out);
        self.out
    }
}

/// The number of the block of entries whose checks are not simple.
const NO_BLOCK: usize = 0xffff;
const VALUE: u8 = 0;
const SOURCE: u8 = 1;
const LITERAL32: u8 = 2;
const LITERAL64: u8 = 3;
const NOT_NEGATIVE: u8 = 4;

fn model_name(model: &Model, shape: usize) -> String {
    model.shapes[shape].name.clone()
}

/// Bits of the value that the pieces hold.
fn width(pieces: &[Piece]) -> u8 {
    pieces.iter().map(|piece| piece.from + piece.width).max().unwrap_or(0)
}

/// The meaning of every value of a field: one part for each context, in each a list for each method and field width.
struct Accept {
    methods: Vec<Method>,
    contexts: Vec<Context>,
    sets: Vec<(Method, u8)>,
    starts: BTreeMap<(Method, u8), usize>,
    length: usize,
}

impl Accept {
    fn new(model: &Model, settings: &Settings) -> Result<Self, GenerateError> {
        let methods = super::accept::methods(model)?;
        let mut contexts: Vec<Context> = Vec::new();
        for setting in &settings.settings {
            let context = Context::new(&setting.features);
            if !contexts.contains(&context) {
                contexts.push(context);
            }
        }
        Ok(Self { methods, contexts, sets: Vec::new(), starts: BTreeMap::new(), length: 0 })
    }

    fn all(&self, method: Method, width: u8) -> bool {
        self.contexts.iter().all(|&context| (0..1 << width).all(|raw| method.accepts(raw, context)))
    }

    /// The start of the list in a part.
    fn set(&mut self, method: Method, width: u8) -> usize {
        if let Some(&start) = self.starts.get(&(method, width)) {
            return start;
        }
        let start = self.length;
        self.length += 1 << width;
        self.sets.push((method, width));
        self.starts.insert((method, width), start);
        start
    }

    /// Number of the context; its part begins at this times the length of a part.
    fn context_base(&self, features: &std::collections::BTreeSet<String>) -> usize {
        let context = Context::new(features);
        self.contexts.iter().position(|&other| other == context).unwrap_or(0)
    }

    fn write(&self, out: &mut String) {
        let _ = writeln!(out, "pub(crate) const ACCEPT_LENGTH: usize = {};", self.length);
        let _ = writeln!(out, "pub(crate) static ACCEPT: [u8; {}] = [", self.length * self.contexts.len());
        for &context in &self.contexts {
            for &(method, width) in &self.sets {
                let values: Vec<String> = (0..1 << width).map(|raw| method.meaning(raw, context).to_string()).collect();
                let _ = writeln!(out, "{},", values.join(","));
            }
        }
        out.push_str("];\n");
    }
}
