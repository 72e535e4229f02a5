//! The oracle of validated pairs for which clang emits different code: with the settings of the source for the features
//! in which the two differ, clang's code for the *target* is, instruction for instruction and byte for byte, its code
//! for the source. So these settings are the only differences, and a check of the pair covers each of them.
//!
//! [`SETTINGS`] names them, and with each the fields of kernel descriptors and metadata in which clang's objects for
//! both may differ; any other difference has no explanation and fails.
//!
//! Clang 24 derives the size of the register file from the name of the processor, so that it cannot be set there. A
//! file whose kernels have other vector registers for the target is set aside with it, and counted: others must be
//! equal.
//!
//! Refusals of a pair's checks are judged by the bytes: a file whose code changes if the target starts its waves as itself, and one
//! with packed floats that LLVM's assembler rejects for the target. These must be refused, and no others.
//!
//! The corpus is that of the instruction set's exam. Each clang compiles every pair at one level of optimisation in
//! rotation; with `--everything` each pair at every level, else each pair with one clang in turn.

use hotswap_code_object::kernel_descriptor::{self, DescriptorField, KernelDescriptor};
use hotswap_code_object::{CodeObject, DescriptorLocation, KernelMetadata};
use hotswap_compat::{PairStatus, ValidatedPair, all_pairs, check_object, shifts_to_make};
use hotswap_targets::{TargetId, find_processor};
use hotswap_userland::{Workbench, everything, in_turn, say};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const KERNELS: &str = "../../../tests/isa-exam/kernels";
const LEVELS: &[&str] = &["-O2", "-O0", "-O3", "-O1"];

/// A difference between members of a family that clang can disable.
struct Setting {
    /// LLVM's names: of version 22, and of 23.
    features: [&'static str; 2],
    /// The processors with the feature.
    processors: &'static [&'static str],
    /// From this version on clang cannot disable it.
    until: u32,
    /// Fields of descriptors that follow from it.
    fields: &'static [&'static DescriptorField],
    /// Whether the metadata's counts of vector and of scalar registers do.
    counts: [bool; 2],
}

const fn instructions(name: &'static str) -> Setting {
    Setting { features: [name, name], processors: &["gfx950"], until: 99, fields: &[], counts: [true, true] }
}

const SETTINGS: &[Setting] = &[
    Setting {
        features: ["allocate1_5xvgprs", "1536-physical-vgprs"],
        processors: &["gfx1100", "gfx1101", "gfx1151"],
        until: 24,
        fields: &[kernel_descriptor::VGPRS, kernel_descriptor::SCRATCH, kernel_descriptor::PREFETCH_11],
        counts: [true, true],
    },
    Setting {
        features: ["user-sgpr-init16-bug", "user-sgpr-init16-bug"],
        processors: &["gfx1100", "gfx1102", "gfx11-generic"],
        until: 99,
        fields: &[kernel_descriptor::USER_SGPRS, kernel_descriptor::PREFETCH_11],
        counts: [false, true],
    },
    instructions("ashr-pk-insts"),
    instructions("bf16-cvt-insts"),
    instructions("bitop3-insts"),
    instructions("cvt-pk-f16-f32-inst"),
    instructions("minimum3-maximum3-f32"),
    instructions("minimum3-maximum3-pkf16"),
    instructions("permlane16-swap"),
    instructions("permlane32-swap"),
    instructions("prng-inst"),
];

/// Files of the corpus that a pair's checks hold back: matrix instructions wait longer on gfx950.
const HELD: &[(&str, &str)] = &[("gfx950", "matrix.c")];

/// Validated pairs that rely on this oracle, one for each pair of groups: the byte oracle (`golden.rs`) covers
/// identical siblings.
fn measured() -> Vec<ValidatedPair> {
    let mut groups = BTreeSet::new();
    let group = |name: &'static str| find_processor(name).unwrap().group.unwrap_or(name);
    all_pairs()
        .filter(|pair| pair.status == PairStatus::Validated && pair.evidence.starts_with("settings oracle"))
        .filter(|pair| groups.insert((group(pair.source), group(pair.target))))
        .collect()
}

/// The settings in which the two differ.
fn differing(pair: &ValidatedPair) -> impl Iterator<Item = &'static Setting> {
    let has = |setting: &Setting, name: &str| setting.processors.contains(&name);
    let (source, target) = (pair.source, pair.target);
    SETTINGS.iter().filter(move |setting| has(setting, source) != has(setting, target))
}

/// Arguments that give the target the source's settings, of those that are wanted.
fn words(pair: &ValidatedPair, clang: u32, is_wanted: impl Fn(&&Setting) -> bool) -> String {
    let word = |setting: &Setting| {
        let sign = if setting.processors.contains(&pair.source) { '+' } else { '-' };
        format!(" -Xclang -target-feature -Xclang {sign}{}", setting.features[usize::from(clang > 22)])
    };
    differing(pair).filter(|setting| clang < setting.until).filter(is_wanted).map(word).collect()
}

fn corpus(bench: &Workbench) -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(KERNELS);
    let mut names = Vec::new();
    for file in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap()) {
        let name = file.file_name().into_string().unwrap();
        bench.write(&name, &fs::read(file.path()).unwrap());
        names.extend(name.ends_with(".c").then_some(name));
    }
    names.sort();
    names
}

/// Clang's output for one processor.
struct Made {
    /// Instructions and relocations, by file.
    code: BTreeMap<String, Vec<u8>>,
    /// Linked objects, by file.
    objects: BTreeMap<String, Vec<u8>>,
}

/// Compiles once for each processor, level and argument list.
struct Compiler<'b> {
    bench: &'b Workbench,
    clang: u32,
    files: Vec<String>,
    made: BTreeMap<String, Made>,
}

impl Compiler<'_> {
    fn compile(&mut self, processor: &str, level: &str, words: &str) -> String {
        let key = format!("{processor} {level}{words}");
        if self.made.contains_key(&key) {
            return key;
        }
        let (clang, name) = (self.clang, processor.replace('-', "_"));
        // A kernel that tests the name of the processor gets none: different text does not concern the pair.
        let compile = format!(
            "clang-{clang} --target=amdgcn-amd-amdhsa -mcpu={processor} -U__{name}__ -nogpulib -ffreestanding -w {level}{words}"
        );
        self.bench.run(&format!(
            "set -e; rm -f *.o *.code *.linked; export CLANG='{compile}' V={clang}; echo {} | tr ' ' '\\n' | xargs -P2 -I@ bash -ec '\
               $CLANG -c @ -o @.o; ld.lld-$V -shared @.o -o @.linked; llvm-objcopy-$V -O binary -j .text @.o @.code; \
               llvm-readelf-$V -rW @.o | {{ grep R_AMDGPU || true; }} >> @.code'",
            self.files.join(" ")
        ));
        let read = |suffix: &str| {
            let one = |file: &String| (file.clone(), self.bench.read(&format!("{file}.{suffix}")));
            self.files.iter().map(one).collect()
        };
        let made = Made { code: read("code"), objects: read("linked") };
        self.made.insert(key.clone(), made);
        key
    }
}

/// Kernels of an object: metadata and descriptor, without the fields that the link determines.
fn kernels<'o>(object: &'o CodeObject<'_>) -> Vec<(KernelMetadata<'o>, Vec<u8>)> {
    let kernel = |(kernel, descriptor): (&KernelMetadata<'o>, &DescriptorLocation)| {
        let mut bytes = object.bytes()[descriptor.range.clone()].to_vec();
        bytes[16..24].fill(0);
        (kernel.clone(), bytes)
    };
    object.note().kernels.iter().zip(object.descriptors()).map(kernel).collect()
}

/// The differences of two objects of clang beyond those that the settings explain.
fn unexplained(pair: &ValidatedPair, one: &CodeObject<'_>, other: &CodeObject<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let (ones, others) = (kernels(one), kernels(other));
    if ones.len() != others.len() {
        found.push("the number of kernels".to_owned());
    }
    let may = |field: &DescriptorField| {
        differing(pair).any(|setting| setting.fields.iter().any(|known| known.name == field.name))
    };
    let counts = |which: usize| differing(pair).any(|setting| setting.counts[which]);
    for ((kernel, bytes), (like, others)) in ones.iter().zip(&others) {
        let [a, b] = [(bytes, one), (others, other)]
            .map(|(bytes, object)| KernelDescriptor::new(&bytes[..], object.target_id().processor).unwrap());
        let values: BTreeMap<_, _> = b.fields().map(|(field, value)| (field.name, value)).collect();
        let names = a.fields().filter(|(field, value)| values.get(field.name) != Some(value) && !may(field));
        found.extend(names.map(|(field, _)| format!("{}: {}", kernel.name, field.name)));
        let mut like = like.clone();
        if counts(0) {
            (like.vgpr_count, like.vgpr_spill_count, like.scratch) =
                (kernel.vgpr_count, kernel.vgpr_spill_count, kernel.scratch);
        }
        if counts(1) {
            (like.sgpr_count, like.sgpr_spill_count) = (kernel.sgpr_count, kernel.sgpr_spill_count);
        }
        if like != *kernel {
            found.push(format!("{}: metadata {kernel:?} and {like:?}", kernel.name));
        }
    }
    found
}

/// The outcomes of files. The code of a refused file is compared all the same.
#[derive(Default)]
struct FileCounts {
    equal: usize,
    /// Set aside for their registers.
    aside: usize,
    /// Work-group IDs lie in other registers, and are copied.
    moved: usize,
    /// Refused, as they must be: the target has no such form of a packed float.
    packed: usize,
}

impl FileCounts {
    fn add(&mut self, other: &Self) {
        self.equal += other.equal;
        self.aside += other.aside;
        self.moved += other.moved;
        self.packed += other.packed;
    }
}

/// The setting whose code reads work-group IDs from other registers.
const INIT16: &str = "user-sgpr-init16-bug";

/// The files in whose code the target's start of a wave changes something: clang's code with the source's settings, and with
/// the target's in this one.
fn files_with_moved_ids(compiler: &mut Compiler<'_>, pair: &ValidatedPair, level: &str) -> BTreeSet<String> {
    // Code for a processor with the setting asks for all these registers itself.
    if sets_up_sixteen(pair.source) || !sets_up_sixteen(pair.target) {
        return BTreeSet::new();
    }
    let words = words(pair, compiler.clang, is_other_setting);
    let names = [("", pair.source), (&*words, pair.target)];
    let [source, moved] = names.map(|(words, name)| compiler.compile(name, level, words));
    let [source, moved] = [source, moved].map(|key| &compiler.made[&key].code);
    compiler.files.iter().filter(|file| source[*file] != moved[*file]).cloned().collect()
}

fn sets_up_sixteen(processor: &str) -> bool {
    SETTINGS.iter().any(|setting| setting.features[0] == INIT16 && setting.processors.contains(&processor))
}

fn is_other_setting(setting: &&Setting) -> bool {
    setting.features[0] != INIT16
}

/// The files with packed floats of the source that LLVM 24's assembler rejects for the target.
fn files_with_rejected_floats(compiler: &Compiler<'_>, pair: &ValidatedPair, source: &Made) -> BTreeSet<String> {
    for (file, object) in &source.objects {
        compiler.bench.write(&format!("{file}.packed"), object);
    }
    let rejected = compiler.bench.run(&format!(
        "for file in {}; do llvm-objdump-24 -d --no-show-raw-insn $file.packed | sed -n 's,//.*,,; /v_pk_[a-z]*_f32 /p' > $file.s; \
         llvm-mc-24 -triple=amdgcn-amd-amdhsa -mcpu={} $file.s -o $file.out 2> $file.errors || echo $file; done",
        compiler.files.join(" "),
        pair.target
    ));
    rejected.split_whitespace().map(str::to_owned).collect()
}

/// The numbers of files by their outcome, or the fault.
fn judge(compiler: &mut Compiler<'_>, pair: &ValidatedPair, level: &str) -> Result<FileCounts, String> {
    let moved = files_with_moved_ids(compiler, pair, level);
    let words = words(pair, compiler.clang, |_| true);
    let names = [("", pair.source), (&*words, pair.target), ("", pair.target)];
    let keys = names.map(|(words, name)| compiler.compile(name, level, words));
    let [source, as_source, target] = [0, 1, 2].map(|index: usize| &compiler.made[&keys[index]]);
    let packed = files_with_rejected_floats(compiler, pair, source);
    let by_registers = differing(pair).any(|setting| compiler.clang >= setting.until);
    let mut counted = FileCounts::default();
    for file in &compiler.files {
        if HELD.contains(&(pair.target, file)) {
            continue;
        }
        let [one, like, other] =
            [source, as_source, target].map(|made| CodeObject::parse(&made.objects[file]).unwrap());
        let id = TargetId { processor: find_processor(pair.target).unwrap(), ..one.target_id() };
        let [is_moved, is_packed] = [&moved, &packed].map(|files| files.contains(file));
        if shifts_to_make(&one, &id).is_empty() == is_moved {
            return Err(format!(
                "{file}: copies work-group IDs, or not, where clang's code has them elsewhere: {is_moved}"
            ));
        }
        match check_object(&one, &id) {
            Err(found) if !is_packed => return Err(format!("{file}: {}", found[0])),
            Ok(_) if is_packed => return Err(format!("{file}: not refused, and LLVM rejects packed floats of it")),
            _ => {}
        }
        counted.moved += usize::from(is_moved);
        counted.packed += usize::from(is_packed);
        let strange = unexplained(pair, &one, &other);
        if !strange.is_empty() {
            return Err(format!("{file}: no setting explains {}", strange.join("; ")));
        }
        let registers =
            |object: &CodeObject<'_>| object.note().kernels.iter().map(|kernel| kernel.vgpr_count).collect::<Vec<_>>();
        if by_registers && registers(&one) != registers(&like) {
            counted.aside += 1;
        } else if source.code[file] != as_source.code[file] {
            return Err(format!("{file}: the instructions differ"));
        } else if kernels(&one) != kernels(&like) {
            return Err(format!("{file}: descriptors or metadata differ"));
        } else {
            counted.equal += 1;
        }
    }
    if counted.aside > 1 { Err(format!("{} files set aside", counted.aside)) } else { Ok(counted) }
}

#[test]
fn nothing_but_settings_lies_between_the_members_of_a_pair() {
    let Some(bench) = Workbench::with_llvm(24, "nothing_but_settings_lies_between_the_members_of_a_pair") else {
        return;
    };
    let files = corpus(&bench);
    assert!(files.len() > 8);
    let pairs = measured();
    let pairs = in_turn("settings oracle", &pairs, &bench.versions, |_| false);
    let (mut counted, mut wrong) = (FileCounts::default(), Vec::new());
    for (turn, clang) in bench.versions.iter().enumerate() {
        let levels = if everything() { LEVELS } else { &LEVELS[turn % LEVELS.len()..][..1] };
        let pairs = || pairs.iter().filter(|(version, _)| *version == clang).map(|(_, pair)| *pair);
        let mut compiler = Compiler { bench: &bench, clang: *clang, files: files.clone(), made: BTreeMap::new() };
        for (level, pair) in levels.iter().flat_map(|level| pairs().map(move |pair| (level, pair))) {
            match judge(&mut compiler, pair, level) {
                Ok(files) => counted.add(&files),
                Err(what) => wrong.push(format!("clang {clang} {level} {}=>{}: {what}", pair.source, pair.target)),
            }
        }
    }
    let FileCounts { equal, aside, moved, packed } = counted;
    say(&format!(
        "settings: {equal} files the same code, {aside} set aside for their registers, {moved} with copies of work-group IDs, as clang has them elsewhere; {packed} refused for packed floats, as LLVM's assembler has it"
    ));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each validated pair has an oracle, and this one runs where clang's code differs.
#[test]
fn every_validated_pair_names_its_oracle() {
    let known = ["byte oracle", "code oracle", "settings oracle"];
    let of = |pair: &ValidatedPair| known.iter().find(|known| pair.evidence.starts_with(**known)).copied();
    let validated = all_pairs().filter(|pair| pair.status == PairStatus::Validated);
    let found: BTreeSet<_> = validated.map(|pair| of(&pair).unwrap_or_else(|| panic!("{pair:?}"))).collect();
    assert_eq!(found.len(), known.len());
    for pair in measured() {
        assert!(differing(&pair).next().is_some(), "{pair:?}");
    }
}
