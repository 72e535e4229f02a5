//! The oracle of validated pairs whose objects differ: on the corpus, clang emits the same instructions, the same
//! kernel descriptors and the same metadata for the source as for the target, so that a new label is the only
//! difference.
//!
//! Instructions are compared before the link, which lays out sections by the length of the label and writes their
//! distances into the code. The corpus is that of the instruction set's exam. A kernel that tests the name of the
//! processor is compiled without one, because different text does not concern the pair. Of a group of identical
//! siblings one is measured: the byte oracle (`golden.rs`) covers the others.

use hotswap_code_object::{CodeObject, DescriptorLocation, KernelMetadata};
use hotswap_compat::{PairStatus, Verdict, all_pairs, check_object, pair_verdict};
use hotswap_targets::{TargetId, find_processor};
use hotswap_userland::{Workbench, say};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const KERNELS: &str = "../../../tests/isa-exam/kernels";

/// Kernels for those compilers that do not get all of them.
const SOME: &str = "call.c memory.c number.c transform.c";

/// Validated pairs that are not identical, one of each group.
fn measured() -> Vec<(&'static str, &'static str)> {
    let mut groups = BTreeSet::new();
    let known = |name| find_processor(name).unwrap();
    let conditional =
        |source, target| matches!(pair_verdict(known(source), known(target)), Verdict::Conditional { .. });
    all_pairs()
        .filter(|pair| pair.status == PairStatus::Validated && conditional(pair.source, pair.target))
        // Pairs for which clang's code differs have an oracle of their own (`settings_oracle.rs`).
        .filter(|pair| pair.evidence.starts_with("code oracle"))
        .filter(|pair| groups.insert((known(pair.source).group.unwrap_or(pair.source), pair.target)))
        .map(|pair| (pair.source, pair.target))
        .collect()
}

fn corpus(bench: &Workbench) -> usize {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(KERNELS);
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    files.map(|file| bench.write(file.file_name().to_str().unwrap(), &fs::read(file.path()).unwrap())).count()
}

/// Clang's output for one processor.
struct Made {
    /// Instructions and relocations of every file.
    code: Vec<u8>,
    /// All files linked.
    object: Vec<u8>,
}

fn compile(bench: &Workbench, clang: u32, processor: &str, files: &str) -> Made {
    let macro_name = processor.replace('-', "_");
    bench.run(&format!(
        "rm -f *.o code && clang-{clang} --target=amdgcn-amd-amdhsa -mcpu={processor} -U__{macro_name}__ -O2 -nogpulib \
         -ffreestanding -w -c {files} && clang-{clang} --target=amdgcn-amd-amdhsa -mcpu={processor} -nogpulib *.o -o object && \
         for file in *.o; do llvm-objcopy-{clang} -O binary -j .text $file text && cat text >> code && \
         llvm-readelf-{clang} -rW $file | {{ grep R_AMDGPU || true; }} >> code; done"
    ));
    Made { code: bench.read("code"), object: bench.read("object") }
}

/// The kernels' descriptors and metadata, without their file offsets.
fn kernels(object: &CodeObject<'_>) -> BTreeMap<String, Vec<u8>> {
    let kernel = |(kernel, descriptor): (&KernelMetadata<'_>, &DescriptorLocation)| {
        // Bytes 16 to 23 are the distance to the code.
        let mut settings = object.bytes()[descriptor.range.clone()].to_vec();
        settings[16..24].fill(0);
        (format!("{kernel:?}"), settings)
    };
    object.note().kernels.iter().zip(object.descriptors()).map(kernel).collect()
}

/// The difference found for a pair.
fn fault(source: &Made, target: &Made) -> Option<String> {
    let (one, other) = (CodeObject::parse(&source.object).unwrap(), CodeObject::parse(&target.object).unwrap());
    assert!(one.note().kernels.len() > 10, "{} kernels", one.note().kernels.len());
    let id = TargetId { processor: other.target_id().processor, ..one.target_id() };
    match check_object(&one, &id) {
        Err(found) => Some(found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
        Ok(checked) if checked.instructions == 0 => Some("no instruction was read".to_owned()),
        Ok(_) if source.code != target.code => Some("the instructions differ".to_owned()),
        Ok(_) => (kernels(&one) != kernels(&other)).then(|| "descriptors or metadata differ".to_owned()),
    }
}

#[test]
fn clang_makes_the_same_code_for_both_members_of_a_validated_pair() {
    let Some(bench) = Workbench::new("clang_makes_the_same_code_for_both_members_of_a_validated_pair") else { return };
    assert!(corpus(&bench) > 10);
    let pairs = measured();
    assert_eq!(pairs.len(), 6);
    let (mut equal, mut wrong) = (0, Vec::new());
    for (index, clang) in bench.versions.iter().enumerate() {
        let files = if index == 0 { "*.c" } else { SOME };
        let names: BTreeSet<&str> = pairs.iter().flat_map(|(source, target)| [*source, *target]).collect();
        let made: BTreeMap<&str, Made> =
            names.into_iter().map(|name| (name, compile(&bench, *clang, name, files))).collect();
        for (source, target) in &pairs {
            match fault(&made[source], &made[target]) {
                None => equal += 1,
                Some(fault) => wrong.push(format!("clang {clang} {source}=>{target}: {fault}")),
            }
        }
    }
    say(&format!("validated pairs: {equal} times the same code, descriptors and metadata"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
