//! Selects the code of a file.

use super::DisasmArguments;
use crate::work::inventory::{self, ImageRow, InventoryContainer};
use crate::work::text;
use hotswap_bundle::{ContainerForm, ContainerPosition, FoundContents, ImageKind};
use hotswap_report::{Diagnostic, codes};

/// Refusals name at most that many images.
const LISTED: usize = 12;

/// An image of the file.
pub(super) struct Selected<'a> {
    pub(super) row: ImageRow<'a>,
    pub(super) place: String,
    /// Whether the file is this code object and nothing else.
    pub(super) is_bare: bool,
}

impl<'a> Selected<'a> {
    /// The images of a container; `is_bare` where the file is a code object.
    pub(super) fn images_of_container(container: InventoryContainer<'a>, is_bare: bool) -> impl Iterator<Item = Self> {
        let place = container.found.place.to_string();
        container.rows.into_iter().map(move |row| Selected { row, place: place.clone(), is_bare })
    }

    fn is_code(&self) -> bool {
        matches!(self.row.image.kind, ImageKind::CodeObject | ImageKind::DeviceObject)
    }

    fn describe(&self) -> String {
        let target = text::plain(self.row.target.as_deref().unwrap_or("-"));
        match self.is_code() {
            true => format!("{} {target}", self.row.number),
            false => format!("{} {target} ({})", self.row.number, self.row.image.kind),
        }
    }
}

pub(super) enum ImageSelection<'a> {
    One(Box<Selected<'a>>),
    /// Several, by their numbers: the file is read again for them, so that not all of them are in memory.
    Several(Vec<usize>),
}

/// Images of which only a short description is kept.
#[derive(Default)]
struct ImageInventory {
    told: Vec<String>,
    count: usize,
}

impl ImageInventory {
    fn add(&mut self, selected: &Selected<'_>) {
        if self.count < LISTED {
            self.told.push(selected.describe());
        }
        self.count += 1;
    }

    fn text(&self) -> String {
        match (self.told.join(", "), self.count.saturating_sub(LISTED)) {
            (told, _) if told.is_empty() => "none".to_owned(),
            (told, 0) => told,
            (told, more) => format!("{told} and {more} more (`hotswap list`)"),
        }
    }
}

/// The images to disassemble: one, or several if requested. Warnings are added to `problems`.
pub(super) fn select<'a>(
    contents: &FoundContents<'a>,
    arguments: &DisasmArguments,
    problems: &mut Vec<Diagnostic>,
) -> Result<ImageSelection<'a>, Diagnostic> {
    let (mut all, mut code) = (ImageInventory::default(), ImageInventory::default());
    let (mut numbers, mut first, mut other) = (Vec::new(), None, None);
    let is_bare = matches!(contents.found.as_slice(), [one] if one.form == ContainerForm::Bare && one.place == ContainerPosition::default());
    let unread = inventory::visit(contents, |container| {
        let hash = inventory::hash_problem(&container);
        let before = numbers.len();
        for selected in Selected::images_of_container(container, is_bare) {
            all.add(&selected);
            if !arguments.wants(&selected.row, is_bare) {
                continue;
            }
            if !selected.is_code() {
                other.get_or_insert_with(|| selected.describe());
                continue;
            }
            code.add(&selected);
            numbers.push(selected.row.number);
            first.get_or_insert(selected);
        }
        problems.extend(hash.filter(|_| numbers.len() > before));
    });
    // A file of which only a part was read may have further matches.
    if let Some(problem) = unread.into_iter().next() {
        return Err(problem);
    }
    let asked = arguments.target.is_some() || !arguments.entry.is_empty();
    if let Some(other) = other.filter(|_| asked || first.is_none()) {
        let what = format!("image {other} holds no instructions of a GPU");
        return Err(Diagnostic::error(codes::NOT_CODE_OBJECT, what).advise("`hotswap extract` writes it to a file"));
    }
    let several = arguments.all || !arguments.entry.is_empty();
    match first {
        None => {
            let what = format!("no image matches; there are: {}", all.text());
            Err(Diagnostic::error(codes::NOT_FOUND, what).advise("name one of these by --target or --entry"))
        }
        Some(first) if numbers.len() == 1 => Ok(ImageSelection::One(Box::new(first))),
        Some(_) if several => Ok(ImageSelection::Several(numbers)),
        Some(_) => {
            let what = format!("{} code objects match: {}", numbers.len(), code.text());
            let advice = "name one by --target or --entry (numbers and entries of `hotswap list`), or take --all";
            Err(Diagnostic::error(codes::USAGE, what).advise(advice))
        }
    }
}

impl DisasmArguments {
    /// For a single code object `--target` selects nothing: it chooses the decoder.
    fn wants(&self, row: &ImageRow<'_>, is_bare: bool) -> bool {
        (self.entry.is_empty() || self.entry.iter().any(|name| names_image(name, row)))
            && self.target.as_ref().filter(|_| !is_bare).is_none_or(|target| row.is_for(target))
    }
}

fn names_image(name: &str, row: &ImageRow<'_>) -> bool {
    row.image.id.as_deref() == Some(name) || name.parse() == Ok(row.number)
}
