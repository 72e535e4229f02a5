//! The sequence of the phases.

use crate::code::WordClassTable;
use crate::dwarf::{self, AbsoluteField, Dwarf, DwarfDistance};
use crate::edit::CodeEdits;
use crate::fix::{LayoutContext, SectionMaps, SectionOffset};
use crate::inputs::{LentProgram, MovableTail, SectionContent};
use crate::known::{self, CodeFacts, KnownProgram, PcUses, ServesPrefetch};
use crate::padding::ENTRY;
use crate::place::NamedRange;
use crate::plan::{CodePlan, FreeSgprs, LongBranch, SectionsContext};
use crate::proof::{check_explained, check_sums};
use crate::relocate::{self, FieldInputs};
use crate::tables::NamedObjects;
use crate::{distances, packed, refuse_layout, tables, verify};
use hotswap_code_object::ObjectKind;
use hotswap_code_object::image::{Formula, ImageLayout, ObjectImage, RelocationSection, SectionPart, SymbolRows};
use hotswap_isa::{Isa, Target};
use hotswap_report::{Diagnostic, codes};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

#[derive(Default)]
pub struct RewriteOptions<'o> {
    /// Registers for branches that are out of reach.
    pub registers: Option<&'o FreeSgprs<'o>>,
    /// Programs of sections with code, by the number of the section, if the caller has them already. They are useful
    /// for files that were linked without their relocations; missing ones are made.
    pub programs: &'o [LentProgram<'o>],
    pub contents: &'o [SectionContent<'o>],
    /// A result of [`pool`](crate::pool).
    pub free: &'o [MovableTail],
}

/// A new code object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewrittenObject {
    pub bytes: Vec<u8>,
    /// Bytes of code that were added, padding included; negative where it shrank.
    pub grown: i64,
}

/// Makes a code object with edits of its code sections, given by their numbers.
///
/// The file is relocatable, or was linked with `--emit-relocs`, or without: then the code itself must show that no
/// unexplained code depends on distances.
///
/// # Errors
/// Errors of reading; `NO_LAYOUT` with the offset for everything that cannot be proven; `VERIFY_FAILED` where the
/// result cannot be read back.
pub fn rewrite_object(
    data: &[u8],
    edits: &BTreeMap<usize, CodeEdits>,
    options: &RewriteOptions<'_>,
) -> Result<RewrittenObject, Diagnostic> {
    rewrite_image(&ObjectImage::parse(data)?, edits, options)
}

/// The same for a file that was already taken apart.
///
/// # Errors
/// The same as those of [`rewrite`].
pub fn rewrite_image(
    image: &ObjectImage<'_>,
    edits: &BTreeMap<usize, CodeEdits>,
    options: &RewriteOptions<'_>,
) -> Result<RewrittenObject, Diagnostic> {
    if edits.values().all(CodeEdits::is_empty) && options.contents.is_empty() {
        return rebuild_unchanged(image);
    }
    let Some(plain) = packed::unpack_sections(image)? else { return rewrite_plain(image, edits, options) };
    let new = rewrite_plain(&ObjectImage::parse(&plain.file)?, edits, options)?;
    let bytes = packed::pack_sections(image, &plain, &new.bytes)?;
    verify::verify_object(&bytes).map_err(|error| blame_input(image, error))?;
    Ok(RewrittenObject { bytes, ..new })
}

/// The same for a file without compressed sections.
fn rewrite_plain(
    image: &ObjectImage<'_>,
    edits: &BTreeMap<usize, CodeEdits>,
    options: &RewriteOptions<'_>,
) -> Result<RewrittenObject, Diagnostic> {
    // The intermediate state takes as much memory as a third of the file: it is released before the result is read.
    let output = laid_out(image, edits, options)?;
    verify::verify_object(&output.bytes).map_err(|error| blame_input(image, error))?;
    Ok(output)
}

/// The new file, before it is verified.
fn laid_out(
    image: &ObjectImage<'_>,
    edits: &BTreeMap<usize, CodeEdits>,
    options: &RewriteOptions<'_>,
) -> Result<RewrittenObject, Diagnostic> {
    let symbols = image.symbol_tables()?;
    let relocations = image.relocations()?;
    check_edits(image, edits, options.contents)?;
    let marks = WordClassTable::new(find_isa(image)?);
    let is_bare = is_bare(image, &relocations);
    let programs = options.programs;
    let (found, functions) = rayon::join(
        || match is_bare {
            true => known::build_programs(image, programs),
            false => known::mixed_programs(image, &symbols, programs),
        },
        || crate::place::function_ranges(image, &symbols),
    );
    let (found, none) = (found?, BTreeMap::new());
    let known = if is_bare { &found } else { &none };
    let counters = PcUses::new(image, known, options.programs);
    let serves: &ServesPrefetch<'_> = &|section, at| counters.serves_fetching(section, at);
    let facts = CodeFacts { known, lent: options.programs, serves };
    let code = AnalysedCode { known: &found, is_bare };
    let inside = kernels_inside(&functions);
    let mut plans = make_plans(image, functions, &relocations, &marks, edits, (options, code, serves))?;
    let maps = SectionMaps::new(image, &plans);
    let Dwarf { mut replaced, distances, absolutes } = dwarf::rewrite_debug_info(image, &maps, &symbols, &relocations)?;
    let mut sizes: Vec<u64> = image.sections.iter().map(|section| section.size).collect();
    plans.iter().for_each(|plan| sizes[plan.section] = plan.map.size());
    replaced.iter().for_each(|one| sizes[one.section] = one.content.bytes.len() as u64);
    options.contents.iter().for_each(|content| sizes[content.section] = content.bytes.len() as u64);
    let layout = place_sections(image, &maps.with_replaced(&replaced, options.contents), &relocations, sizes)?;
    check_explained(image, &layout, known, (&plans, options.free))?;
    let mut out = layout.write_file(image)?;
    for plan in &mut plans {
        plan.write_section(image.sections[plan.section].bytes, &mut out[layout.section_range(plan.section)])?;
        plan.forget_content();
    }
    let encoded = replaced.iter_mut().map(|one| (one.section, Cow::Owned(std::mem::take(&mut one.content.bytes))));
    let given = options.contents.iter().map(|content| (content.section, Cow::Borrowed(content.bytes)));
    encoded.chain(given).for_each(|(section, bytes)| out[layout.section_range(section)].copy_from_slice(&bytes));
    let maps = SectionMaps::new(image, &plans).with_replaced(&replaced, options.contents);
    let world = LayoutContext { image, layout: &layout, maps: &maps };
    inside.iter().try_for_each(|kernel| kernel.stays_aligned(&world))?;
    write_layout(&world, &symbols, &relocations, (&plans, facts), &distances, &mut out)?;
    absolutes.iter().try_for_each(|field| write_absolute(&world, field, &mut out))?;
    let grown = plans.iter().map(|plan| plan.map.size() as i64 - image.sections[plan.section].size as i64).sum();
    Ok(RewrittenObject { bytes: out, grown })
}

/// A kernel that begins inside of another function, according to the sizes of symbols: it is not aligned.
struct KernelInside {
    place: SectionOffset,
    name: String,
    function: String,
}

fn kernels_inside(functions: &[Vec<NamedRange>]) -> Vec<KernelInside> {
    let mut kernels = Vec::new();
    for (section, functions) in functions.iter().enumerate() {
        for function in functions {
            kernels.extend(function.inside.iter().map(|kernel| KernelInside {
                place: SectionOffset { section, offset: kernel.offset },
                name: kernel.name.clone(),
                function: function.name.clone(),
            }));
        }
    }
    kernels
}

impl KernelInside {
    /// The hardware starts kernels at multiples of 256 bytes, whatever the descriptor states.
    fn stays_aligned(&self, world: &LayoutContext<'_>) -> Result<(), Diagnostic> {
        let was = is_entry_aligned(world.base_address(self.place.section) + self.place.offset);
        if !was || world.start_address(self.place).is_some_and(is_entry_aligned) {
            return Ok(());
        }
        let at = world.image.sections[self.place.section].offset + self.place.offset;
        let Self { name, function, .. } = self;
        let what =
            format!("`{function}` reaches into the kernel `{name}`, which cannot be kept at a multiple of 256 bytes");
        let mut error = refuse_layout(at, what).advise("state the sizes of symbols as they are (`.size`)");
        error.place.kernel = Some(self.name.clone());
        Err(error)
    }
}

fn is_entry_aligned(address: u64) -> bool {
    address.is_multiple_of(ENTRY)
}

/// Places sections of those sizes. The positions of addresses determine the size of their packed list,
/// which only ever grows.
fn place_sections(
    image: &ObjectImage<'_>,
    maps: &SectionMaps<'_>,
    relocations: &[RelocationSection<'_>],
    mut sizes: Vec<u64>,
) -> Result<ImageLayout, Diagnostic> {
    loop {
        let layout = ImageLayout::new(image, &sizes)?;
        let needed = relocate::packed_sizes(&LayoutContext { image, layout: &layout, maps }, relocations)?;
        let small: Vec<_> = needed.into_iter().filter(|needed| needed.size > sizes[needed.section]).collect();
        if small.is_empty() {
            return Ok(layout);
        }
        small.into_iter().for_each(|needed| sizes[needed.section] = needed.size);
    }
}

/// An error in a result is an error of the input, if that cannot be verified either.
fn blame_input(image: &ObjectImage<'_>, error: Diagnostic) -> Diagnostic {
    match verify::verify_object(image.bytes()) {
        Err(input) if input.code == codes::VERIFY_FAILED => Diagnostic { code: codes::MALFORMED, ..input },
        Err(input) => input,
        Ok(()) => error,
    }
}

/// The same file, put together from its parts.
fn rebuild_unchanged(image: &ObjectImage<'_>) -> Result<RewrittenObject, Diagnostic> {
    let sizes: Vec<u64> = image.sections.iter().map(|section| section.size).collect();
    let bytes = ImageLayout::new(image, &sizes)?.write_file(image)?;
    if bytes != image.bytes() {
        let what = "the file does not come back when its parts are put together again";
        return Err(Diagnostic::error(codes::VERIFY_FAILED, what));
    }
    Ok(RewrittenObject { bytes, grown: 0 })
}

pub(crate) fn find_isa(image: &ObjectImage<'_>) -> Result<Isa, Diagnostic> {
    let name = image.flags.target_id().processor.name;
    let target = Target::find(name);
    target.map(Isa::new).ok_or_else(|| Diagnostic::error(codes::NO_INSTRUCTIONS, format!("the code is for {name}")))
}

fn check_edits(
    image: &ObjectImage<'_>,
    edits: &BTreeMap<usize, CodeEdits>,
    contents: &[SectionContent<'_>],
) -> Result<(), Diagnostic> {
    if let Some(number) =
        edits.keys().find(|number| image.sections.get(**number).is_none_or(|section| !section.is_code()))
    {
        return Err(refuse_layout(0, format!("the edits are for section {number}, which holds no code")));
    }
    let mut numbers = contents.iter().map(|content| content.section);
    match numbers.find(|number| !image.sections.get(*number).is_some_and(is_editable_data)) {
        Some(number) => Err(refuse_layout(0, format!("section {number} cannot have new bytes as a whole"))),
        None => Ok(()),
    }
}

fn is_editable_data(part: &SectionPart<'_>) -> bool {
    !part.is_code() && part.is_in_file()
}

/// Whether a linked file lacks relocations other than the loader's.
pub(crate) fn is_bare(image: &ObjectImage<'_>, relocations: &[RelocationSection<'_>]) -> bool {
    let names_code =
        |records: &RelocationSection<'_>| records.target != 0 && image.sections[records.target].is_loaded();
    image.kind == ObjectKind::Linked && !relocations.iter().any(names_code)
}

/// The plans of sections without changes.
pub(crate) fn plans_of<'e>(
    image: &ObjectImage<'_>,
    symbols: &[SymbolRows<'_>],
    relocations: &[RelocationSection<'_>],
    marks: &WordClassTable,
    edits: &'e BTreeMap<usize, CodeEdits>,
    (options, known): (&RewriteOptions<'_>, &BTreeMap<usize, KnownProgram<'_>>),
) -> Result<Vec<CodePlan<'e>>, Diagnostic> {
    let serves: &ServesPrefetch<'_> = &|section, at| {
        let function = known.get(&section).and_then(|known| known.known_function(at));
        function.is_some_and(|function| function.serves_fetching(at as u32))
    };
    let functions = crate::place::function_ranges(image, symbols);
    make_plans(image, functions, relocations, marks, edits, (options, AnalysedCode { known, is_bare: true }, serves))
}

/// The analysis of code, and whether nothing else explains it.
#[derive(Clone, Copy)]
struct AnalysedCode<'k> {
    known: &'k BTreeMap<usize, KnownProgram<'k>>,
    is_bare: bool,
}

fn make_plans<'e>(
    image: &ObjectImage<'_>,
    mut functions: Vec<Vec<NamedRange>>,
    relocations: &[RelocationSection<'_>],
    marks: &WordClassTable,
    edits: &'e BTreeMap<usize, CodeEdits>,
    (options, AnalysedCode { known, is_bare }, serves): (&RewriteOptions<'_>, AnalysedCode<'_>, &ServesPrefetch<'_>),
) -> Result<Vec<CodePlan<'e>>, Diagnostic> {
    let line = u64::from(image.flags.target_id().processor.limits.cache_line.max(4));
    let context = SectionsContext {
        image,
        marks,
        line,
        registers: options.registers.unwrap_or(&no_spare_register),
        known,
        is_bare,
        serves,
    };
    let branches = relocated_branches(image, relocations)?;
    let mut plans = Vec::new();
    for (number, section) in image.sections.iter().enumerate().filter(|(_, section)| section.is_code()) {
        let (relocated, functions) = (branches.get(&number), std::mem::take(&mut functions[number]));
        let nothing = HashSet::new();
        if section.size > 0 {
            plans.push(CodePlan::new(&context, number, functions, edits.get(&number), relocated.unwrap_or(&nothing))?);
        }
    }
    Ok(plans)
}

fn no_spare_register(_: &LongBranch) -> Option<u8> {
    None
}

/// In a relocatable file, branches whose distance is filled in by the linker: by section, their offsets.
fn relocated_branches(
    image: &ObjectImage<'_>,
    relocations: &[RelocationSection<'_>],
) -> Result<HashMap<usize, HashSet<u64>>, Diagnostic> {
    let mut found: HashMap<usize, HashSet<u64>> = HashMap::new();
    if image.kind == ObjectKind::Linked {
        return Ok(found);
    }
    for records in relocations.iter().filter(|records| image.sections[records.target].is_code()) {
        for rela in records.iter() {
            let rela = rela?;
            if rela.kind.formula == Formula::Branch {
                found.entry(records.target).or_default().insert(rela.place);
            }
        }
    }
    Ok(found)
}

/// Writes everything that depends on the layout.
fn write_layout(
    world: &LayoutContext<'_>,
    symbols: &[SymbolRows<'_>],
    relocations: &[RelocationSection<'_>],
    (plans, facts): (&[CodePlan<'_>], CodeFacts<'_>),
    call_frames: &[DwarfDistance],
    out: &mut [u8],
) -> Result<(), Diagnostic> {
    let (values, NamedObjects { objects, descriptors }) =
        rayon::join(|| tables::symbol_values(world, symbols), || tables::collect_objects(world, symbols));
    let values = values?;
    tables::write_symbols(world, symbols, &values, out);
    let plan_of = plans.iter().enumerate().map(|(number, plan)| (plan.section, number)).collect();
    let fields =
        FieldInputs { world, symbols, values: &values, plans, plan_of, objects, descriptors, known: facts.known };
    let (seen, kernels) =
        rayon::join(|| fields.write_relocations(relocations, out), || tables::kernel_descriptors(world, symbols));
    let seen = seen?;
    check_sums(plans, facts.lent, &seen)?;
    distances::write_distances(world, plans, facts, &seen, out)?;
    tables::write_dynamic(world, out)?;
    tables::write_frame_table(world, out)?;
    tables::write_descriptors(world, &kernels, prefetch_mask(world.image), out)?;
    call_frames.iter().try_for_each(|distance| write_distance(world, distance, out))
}

/// `INST_PREF_SIZE`: six bits on GFX11, eight from GFX12 on.
fn prefetch_mask(image: &ObjectImage<'_>) -> u32 {
    use hotswap_targets::IsaFamily;
    match image.flags.target_id().processor.family {
        IsaFamily::Rdna3 | IsaFamily::Rdna35 | IsaFamily::Gfx117 => 0x3f,
        IsaFamily::Rdna4 | IsaFamily::Gfx125 | IsaFamily::Gfx13 => 0xff,
        _ => 0,
    }
}

/// Writes an address, or an offset into a section, that lacks a relocation.
fn write_absolute(world: &LayoutContext<'_>, field: &AbsoluteField, out: &mut [u8]) -> Result<(), Diagnostic> {
    let file = world.image.sections[field.field.section].offset + field.field.offset;
    let size = usize::from(field.size);
    let new = if field.is_end { world.end_address(field.target) } else { world.start_address(field.target) };
    let new = new.ok_or_else(|| refuse_layout(file, "debug information is about code that is not there any more"))?;
    let at = world.file_offset(field.field, u64::from(field.size));
    let place = at.and_then(|at| out.get_mut(at..at + size)).filter(|_| size == 8 || new >> (size * 8) == 0);
    let place = place.ok_or_else(|| refuse_layout(file, "a number in the debug information does not fit any more"))?;
    place.copy_from_slice(&new.to_le_bytes()[..size]);
    Ok(())
}

fn write_distance(world: &LayoutContext<'_>, distance: &DwarfDistance, out: &mut [u8]) -> Result<(), Diagnostic> {
    let DwarfDistance { section, offset, target } = *distance;
    let missing =
        || refuse_layout(world.image.sections[section].offset, "a call frame is about code that is not there any more");
    let to = world.start_address(SectionOffset { ..target }).ok_or_else(missing)?;
    let value = to.wrapping_sub(world.layout.addresses[section] + offset);
    let at = (world.layout.offsets[section] + offset) as usize;
    out.get_mut(at..at + 4).ok_or_else(missing)?.copy_from_slice(&(value as u32).to_le_bytes());
    Ok(())
}
