//! The groups against real compilers: relabelling a member's code object must give, byte for byte, the compiler's
//! output for the other member; and the conditions must reject code that differs.

use hotswap_code_object::{CodeObject, ObjectEdit};
use hotswap_compat::{check_object, pair_verdict};
use hotswap_report::codes;
use hotswap_samples::clangs::{Clang, clangs};
use hotswap_targets::{PROCESSORS, Processor, TargetId, find_processor};
use hotswap_userland::{everything, slice};
use std::collections::BTreeMap;
use std::path::Path;

/// Kernels with LDS, atomics, half and double precision, calls, a stack, loops and switches. No
/// headers and no device libraries, so that the compiler alone is compared.
const KERNELS: &str = r#"
#define KERNEL extern "C" __attribute__((global)) void
#define SHARED __attribute__((shared))
#define DEVICE __attribute__((device))
static DEVICE inline unsigned id() {
  return __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
}
DEVICE __attribute__((noinline)) float poly(float x, int n) {
  float r = 1;
  for (int i = 0; i < n; ++i) r = r * x + i;
  return r;
}
DEVICE int ackermann(int m, int n) {
  return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
KERNEL empty() {}
KERNEL axpy(float a, const float *x, float *y) { y[id()] += a * x[id()]; }
KERNEL half_axpy(_Float16 a, const _Float16 *x, _Float16 *y) { y[id()] += a * x[id()]; }
KERNEL daxpy(double a, const double *x, double *y) { y[id()] += a / x[id()]; }
KERNEL bytes(const signed char *x, const signed char *y, int *z) {
  int sum = 0;
  for (int i = 0; i < 64; ++i) sum += x[id() * 64 + i] * y[i];
  z[id()] = sum;
}
KERNEL reduce(const float *x, float *y) {
  SHARED float part[256];
  unsigned t = __builtin_amdgcn_workitem_id_x();
  part[t] = x[id()];
  for (unsigned step = 128; step; step /= 2) {
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
    __builtin_amdgcn_s_barrier();
    if (t < step) part[t] += part[t + step];
  }
  if (t == 0) y[__builtin_amdgcn_workgroup_id_x()] = part[0];
}
KERNEL histogram(const unsigned *x, unsigned *bins) { __atomic_fetch_add(&bins[x[id()] & 255], 1u, __ATOMIC_RELAXED); }
KERNEL calls(const float *x, float *y, int n) { y[id()] = poly(x[id()], n); }
KERNEL recursion(int *x) { x[id()] = ackermann(x[id()] & 3, 2); }
KERNEL stack(const int *x, int *y, int n) {
  int slots[40];
  for (int i = 0; i < 40; ++i) slots[i] = x[i] ^ i;
  y[id()] = slots[n % 40];
}
KERNEL choose(int *x, int which) {
  switch (which) {
  case 0: x[id()] *= 3; break;
  case 1: x[id()] <<= 5; break;
  case 2: x[id()] = __builtin_popcount(x[id()]); break;
  default: x[id()] = -x[id()];
  }
}
KERNEL __attribute__((launch_bounds(1024))) gemm(const float *a, const float *b, float *c, int n) {
  float sum[8] = {};
  for (int k = 0; k < n; ++k)
    for (int j = 0; j < 8; ++j) sum[j] += a[id() * n + k] * b[k * 8 + j];
  for (int j = 0; j < 8; ++j) c[id() * 8 + j] = sum[j];
}
"#;

/// Code objects by target ID.
type Objects = BTreeMap<String, Vec<u8>>;

fn members() -> impl Iterator<Item = &'static Processor> {
    PROCESSORS.iter().filter(|processor| processor.group.is_some())
}

/// The commands for each target ID, `$id`, which make `$id.co`.
fn hip(options: &str) -> String {
    format!(
        "\"$CLANG\" -x hip --offload-arch=$id --offload-device-only --no-gpu-bundle-output -fuse-cuid=none {options} -o $id.co"
    )
}

/// Runs the command for each of the target IDs, two at a time.
fn compile(clang: &Clang, directory: &Path, ids: &[TargetId], command: &str) -> Objects {
    let names: Vec<String> = ids.iter().map(TargetId::to_string).collect();
    let one =
        format!("export CLANG; echo {} | tr ' ' '\\n' | xargs -P2 -I@ bash -ec 'id=@; {command}'", names.join(" "));
    clang.run(directory, &one);
    names.into_iter().map(|name| (name.clone(), std::fs::read(directory.join(name + ".co")).unwrap())).collect()
}

/// [`KERNELS`], without HIP's headers and device libraries.
fn compile_kernels(clang: &Clang, directory: &Path, ids: &[TargetId], options: &str) -> Objects {
    std::fs::write(directory.join("k.hip"), KERNELS).unwrap();
    compile(clang, directory, ids, &hip(&format!("-nogpulib -nogpuinc {options} k.hip")))
}

fn relabel(source: &CodeObject<'_>, target: &Processor) -> Vec<u8> {
    let target = find_processor(target.name).unwrap();
    let id = source.target_id().with_processor(target).expect("members have the same features");
    let flags = source.flags().with_processor(target).expect("members have the same features");
    let mut edit = ObjectEdit::new(source);
    edit.set_e_flags(flags.encode_for(source.abi_version()));
    edit.set_note_target(&source.note().respell_target(&id)).unwrap();
    edit.finish()
}

/// Compares every ordered pair of siblings; returns their number. Each object has this many kernels.
fn compare(clang: &Clang, objects: &Objects, kernels: usize) -> usize {
    let mut pairs = 0;
    for (name, bytes) in objects {
        let source = CodeObject::parse(bytes).unwrap_or_else(|error| panic!("{}: {name}: {error}", clang.command));
        assert_eq!(source.target_id().to_string(), *name);
        let count = source.note().kernels.len();
        assert!(count == source.descriptors().len() && count == kernels, "{}: {name}: {count} kernels", clang.command);
        let processor = source.target_id().processor;
        for (other, compiled) in objects {
            let target = other.parse::<TargetId>().unwrap();
            let sibling = target.processor != processor && target.processor.group == processor.group;
            if sibling && Some(target) == source.target_id().with_processor(target.processor) {
                assert!(pair_verdict(processor, target.processor).is_identical());
                if let Err(found) = check_object(&source, &target) {
                    // Only a pair with conditions may reject code.
                    let checks = pair_verdict(processor, target.processor).checks().unwrap_or_default();
                    assert!(!checks.is_empty(), "{}: {name}=>{other}: {found:?}", clang.command);
                    continue;
                }
                let same = relabel(&source, target.processor) == *compiled;
                assert!(same, "{}: {name} relabelled is not what is compiled for {other}", clang.command);
                pairs += 1;
            }
        }
    }
    pairs
}

#[test]
fn relabelling_a_sibling_equals_compiling_for_it() {
    for (index, clang) in clangs("relabelling_a_sibling_equals_compiling_for_it").iter().enumerate() {
        let directory = clang.scratch();
        let plain = some_members(index, clang);
        let pairs = compare(clang, &compile_kernels(clang, directory.path(), &plain, "-O2"), 12);
        assert_eq!(pairs, if plain.len() == members().count() { 66 } else { 12 });
        println!("{}: {pairs} ordered pairs equal (-O2)", clang.command);
        // Debug information, other optimisation and stated features need one compiler only.
        if index == 0 {
            let all: Vec<TargetId> = ["gfx900", "gfx902", "gfx1010", "gfx1013"]
                .iter()
                .flat_map(|name| [":xnack+", ":xnack-"].map(|feature| format!("{name}{feature}").parse().unwrap()))
                .chain(
                    ["gfx1011", "gfx1012", "gfx1030", "gfx1036", "gfx1150", "gfx1153", "gfx1200", "gfx1201"]
                        .map(|n| n.parse().unwrap()),
                )
                .collect();
            let pairs = compare(clang, &compile_kernels(clang, directory.path(), &all, "-O1 -g"), 12);
            assert_eq!(pairs, 16);
            println!("{}: {pairs} ordered pairs equal (-O1 -g, stated xnack)", clang.command);
        }
    }
}

/// The members of each group: all for the newest compiler, and for the others the first and the last, or all.
fn some_members(index: usize, clang: &Clang) -> Vec<TargetId> {
    let test = format!("siblings by {}", clang.command);
    let some = slice(&test, members().collect(), |_, member| index == 0 || is_end(member));
    some.into_iter().map(TargetId::of_processor).collect()
}

/// Directory of the kernels of the instruction set's exam.
const C_FILES: &str = "../../../tests/isa-exam/kernels";
const IMAGES: &str = include_str!("golden/images.ll");

/// A part of the corpus: its compile command, and its number of kernels.
struct Part {
    name: &'static str,
    command: String,
    kernels: usize,
    /// Pairs that are rejected: all members, and the ends of the groups.
    held: [usize; 2],
}

/// Copies the corpus, and returns its parts.
fn corpus(directory: &Path) -> Vec<Part> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(root.join(C_FILES)).unwrap().map(|entry| entry.unwrap().path());
    let mut all_c: Vec<String> = Vec::new();
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        std::fs::copy(&file, directory.join(name)).unwrap();
        all_c.extend(name.ends_with(".c").then(|| format!("#include \"{name}\"\n")));
    }
    all_c.sort();
    std::fs::write(directory.join("all-c.c"), all_c.concat()).unwrap();
    std::fs::write(directory.join("images.ll"), IMAGES).unwrap();
    // A kernel that tests the name of the processor gets none: different text does not concern the pair.
    let bare = "\"$CLANG\" --target=amdgcn-amd-amdhsa -mcpu=$id -U__${id%%:*}__ -nogpulib -w -o $id.co";
    vec![
        Part {
            name: "instruction set's kernels",
            command: format!("{bare} -O2 -ffreestanding all-c.c"),
            kernels: 0,
            held: [0, 0],
        },
        Part {
            name: "images",
            command: format!("{bare} -O2 -Wno-override-module images.ll"),
            kernels: 3,
            held: [2, 1],
        },
    ]
}

/// The larger corpus: the kernels of the instruction set's exam (matrix, atomics, calls, scratch, LDS) and images. The first
/// and the last member of each group, with `--everything` every member with the newest compiler; waves of 64 lanes where
/// there is a choice.
#[test]
fn every_kernel_of_the_corpus_is_equal_for_siblings() {
    let mut total = 0;
    for (index, clang) in clangs("every_kernel_of_the_corpus_is_equal_for_siblings").iter().enumerate() {
        let directory = clang.scratch();
        for mut part in corpus(directory.path()) {
            let all = index == 0 && everything();
            let ids: Vec<TargetId> =
                members().filter(|member| all || is_end(member)).map(TargetId::of_processor).collect();
            let objects = compile(clang, directory.path(), &ids, &part.command);
            part.kernels = if part.kernels == 0 { kernels_of(&objects) } else { part.kernels };
            let pairs = compare(clang, &objects, part.kernels);
            let expected = if all { 66 - part.held[0] } else { 12 - part.held[1] };
            assert_eq!(pairs, expected, "{}", part.name);
            hotswap_userland::say(&format!(
                "{}: {pairs} pairs equal: {}, {} kernels",
                clang.command, part.name, part.kernels
            ));
            total += pairs;
        }
        let wide: Vec<TargetId> = members()
            .filter(|member| is_end(member) && member.waves.contains(32))
            .map(TargetId::of_processor)
            .collect();
        let command = corpus(directory.path())[0].command.clone() + " -mwavefrontsize64";
        let objects = compile(clang, directory.path(), &wide, &command);
        total += compare(clang, &objects, kernels_of(&objects));
    }
    hotswap_userland::say(&format!("golden corpus: {total} ordered pairs equal byte for byte"));
}

fn kernels_of(objects: &Objects) -> usize {
    let first = objects.values().next().expect("something was compiled");
    let count = CodeObject::parse(first).unwrap().note().kernels.len();
    assert!(count > 30, "{count} kernels");
    count
}

/// Whether it is the first or the last of its group.
fn is_end(member: &Processor) -> bool {
    let mut group = members().filter(|other| other.group == member.group);
    let first = group.next();
    first == Some(member) || group.last() == Some(member)
}

const RAY: &str = r"
declare <4 x i32> @llvm.amdgcn.image.bvh.intersect.ray.i32.v3f32(i32, float, <3 x float>, <3 x float>, <3 x float>, <4 x i32>)
define amdgpu_kernel void @k(i32 %n, float %e, <3 x float> %o, <3 x float> %d, <3 x float> %i, <4 x i32> inreg %t, ptr addrspace(1) %p) {
  %v = call <4 x i32> @llvm.amdgcn.image.bvh.intersect.ray.i32.v3f32(i32 %n, float %e, <3 x float> %o, <3 x float> %d, <3 x float> %i, <4 x i32> %t)
  store <4 x i32> %v, ptr addrspace(1) %p
  ret void
}
";

const SAMPLE: &str = r"
declare <4 x float> @llvm.amdgcn.image.sample.2d.v4f32.f32(i32, float, float, <8 x i32>, <4 x i32>, i1, i32, i32)
define amdgpu_kernel void @k(<8 x i32> inreg %r, <4 x i32> inreg %s, float %x, float %y, ptr addrspace(1) %p) {
  %v = call <4 x float> @llvm.amdgcn.image.sample.2d.v4f32.f32(i32 15, float %x, float %y, <8 x i32> %r, <4 x i32> %s, i1 0, i32 0, i32 0)
  store <4 x float> %v, ptr addrspace(1) %p
  ret void
}
";

/// `gfx1013` and `gfx1153` have instructions and rules of their own; the other direction is unrestricted.
#[test]
fn code_with_instructions_of_one_member_only_is_held_back() {
    for clang in clangs("code_with_instructions_of_one_member_only_is_held_back") {
        let directory = clang.scratch();
        for (text, source, target, mnemonic) in [
            (RAY, "gfx1013", "gfx1010", Some("image_bvh_intersect_ray")),
            (SAMPLE, "gfx1153", "gfx1150", Some("image_sample")),
            (SAMPLE, "gfx1153", "gfx1152", Some("image_sample")),
            (SAMPLE, "gfx1150", "gfx1153", None),
            (SAMPLE, "gfx1010", "gfx1013", None),
            (SAMPLE, "gfx1030", "gfx1031", None),
        ] {
            std::fs::write(directory.path().join("k.ll"), text).unwrap();
            let options = "--target=amdgcn-amd-amdhsa -nogpulib -O2 -Wno-override-module";
            clang.run(directory.path(), &format!("\"$CLANG\" {options} -mcpu={source} k.ll -o k.co"));
            let bytes = std::fs::read(directory.path().join("k.co")).unwrap();
            let object = CodeObject::parse(&bytes).unwrap();
            let result = check_object(&object, &TargetId::of_processor(find_processor(target).unwrap()))
                .map_err(|mut found| found.remove(0));
            match (mnemonic, result) {
                (None, Ok(_)) => {}
                (Some(mnemonic), Err(error)) => {
                    assert_eq!((error.code, error.place.mnemonic.as_deref()), (codes::NOT_SAFE, Some(mnemonic)));
                    let text = object.sections().iter().find(|section| section.is_code()).unwrap();
                    assert!(text.range.contains(&(error.place.offset.unwrap() as usize)));
                }
                (_, result) => panic!("{}: {source}=>{target}: {result:?}", clang.command),
            }
        }
    }
}
