//! Compares the families with LLVM 24's own code for the target.
//!
//! Kernels of matrix instructions are compiled for the target itself. Every `v_nop` after the first matrix instruction
//! is removed, and the families must restore exactly those that LLVM had inserted: the table of distances is LLVM's.
//! Kernels are compiled for the source as well, and the output of the families must have the instructions that LLVM
//! chooses for the target, wherever LLVM supports it.

mod engine;

use engine::{Line, Setting, decode, isa, run};
use hotswap_isa::{Flag, Inst};
use hotswap_userland::{Workbench, say};
use std::fmt::Write;

const TARGET: &str = "gfx1250-strict";

/// A matrix instruction in IR: the type of A, of B and of the result, and the call with `%A`, `%B`, `%C`.
struct Matrix {
    name: &'static str,
    types: [&'static str; 3],
    call: String,
}

fn matrix() -> Vec<Matrix> {
    let mut all = Vec::new();
    let mut plain = |name: &'static str, input: &'static str, result: &'static str| {
        let call = format!("@llvm.amdgcn.wmma.{name}({input} %A, {input} %B, i16 0, {result} %C, i1 false, i1 false)");
        all.push(Matrix { name, types: [input, input, result], call });
    };
    plain("f32.16x16x32.f16", "<16 x half>", "<8 x float>");
    plain("f32.16x16x32.bf16", "<16 x bfloat>", "<8 x float>");
    for name in ["f32.16x16x64.fp8.fp8", "f32.16x16x64.fp8.bf8", "f32.16x16x64.bf8.fp8", "f32.16x16x64.bf8.bf8"] {
        plain(name, "<8 x i32>", "<8 x float>");
    }
    plain("f16.16x16x64.fp8.fp8", "<8 x i32>", "<8 x half>");
    let eight = "<8 x i32>";
    let call = "@llvm.amdgcn.wmma.i32.16x16x64.iu8(i1 0, <8 x i32> %A, i1 0, <8 x i32> %B, <8 x i32> %C, i1 false, i1 false, i1 false)";
    all.push(Matrix { name: "i32.16x16x64.iu8", types: [eight; 3], call: call.to_owned() });
    let mut sparse = |name: &'static str, types: [&'static str; 3], index: &str, clamp: &str, signs: &str| {
        let [a, b, c] = types;
        let call = format!(
            "@llvm.amdgcn.swmmac.{name}({signs}{a} %A, {signs}{b} %B, {c} %C, {index}, i1 false, i1 false{clamp})"
        );
        all.push(Matrix { name, types, call });
    };
    sparse("f32.16x16x64.f16", ["<16 x half>", "<32 x half>", "<8 x float>"], "i32 %s", "", "i1 0, ");
    sparse("f32.16x16x64.bf16", ["<16 x bfloat>", "<32 x bfloat>", "<8 x float>"], "i32 %s", "", "i1 0, ");
    sparse("f32.16x16x128.fp8.bf8", [eight, "<16 x i32>", "<8 x float>"], "i64 %t", "", "");
    sparse("i32.16x16x128.iu8", [eight, "<16 x i32>", eight], "i64 %t", ", i1 false", "i1 0, ");
    // Numbers of the formats, and how many dwords of them an operand has.
    let size = |format| match format {
        0 | 1 => "<16 x i32>",
        2 | 3 => "<12 x i32>",
        _ => "<8 x i32>",
    };
    for (a, b) in [(0, 1), (0, 2), (0, 4), (2, 3), (3, 4), (4, 4)] {
        let [ta, tb] = [size(a), size(b)];
        let head = format!("i32 {a}, {ta} %A, i32 {b}, {tb} %B, i16 0, <8 x float> %C");
        let mut scaled = |name: &'static str, more: &str| {
            let call = format!("@llvm.amdgcn.wmma.{name}({head}{more})");
            all.push(Matrix { name, types: [ta, tb, "<8 x float>"], call });
        };
        scaled("f32.16x16x128.f8f6f4", "");
        scaled("scale.f32.16x16x128.f8f6f4", ", i32 0, i32 0, i32 %s, i32 0, i32 0, i32 %s, i1 false, i1 false");
        scaled("scale16.f32.16x16x128.f8f6f4", ", i32 0, i32 0, i64 %t, i32 0, i32 0, i64 %t, i1 false, i1 false");
    }
    all
}

/// LLVM completes names when it reads the declarations, so each call declares what it uses.
fn declaration(call: &str, result: &str) -> String {
    let (name, arguments) = call.split_once('(').unwrap();
    let types: Vec<_> = split(arguments.trim_end_matches(')'))
        .into_iter()
        .map(|argument| argument.rsplit_once(' ').unwrap().0.to_owned())
        .collect();
    format!("declare {result} {name}({})\n", types.join(", "))
}

/// Splits arguments. Commas within `<>` are not separators.
fn split(arguments: &str) -> Vec<&str> {
    arguments.split(", ").collect()
}

/// A kernel whose result is added to at once, or is A of another matrix instruction.
fn kernel(matrix: &Matrix, chained: bool) -> String {
    let [a, b, d] = matrix.types;
    let mut text = String::from("target triple = \"amdgcn-amd-amdhsa\"\n");
    text += &declaration(&matrix.call, d);
    let next = "@llvm.amdgcn.wmma.f32.16x16x64.bf8.bf8(<8 x i32> %N, <8 x i32> %N2, i16 0, <8 x float> %Z, i1 false, i1 false)";
    if chained && !matrix.name.starts_with("f32.16x16x64.bf8.bf8") {
        text += &declaration(next, "<8 x float>");
    }
    let _ = write!(
        text,
        "define amdgpu_kernel void @k(ptr addrspace(1) %p, ptr addrspace(1) %q, ptr addrspace(1) %r, i32 %s, i64 %t) {{\n  \
         %i = call i32 @llvm.amdgcn.workitem.id.x()\n  \
         %pp = getelementptr [64 x i8], ptr addrspace(1) %p, i32 %i\n  \
         %qq = getelementptr [64 x i8], ptr addrspace(1) %q, i32 %i\n  \
         %rr = getelementptr [64 x i8], ptr addrspace(1) %r, i32 %i\n  \
         %A = load {a}, ptr addrspace(1) %pp\n  %B = load {b}, ptr addrspace(1) %qq\n  %C = load {d}, ptr addrspace(1) %rr\n  \
         %D = call {d} {}\n",
        matrix.call
    );
    if chained {
        let _ = write!(
            text,
            "  %N = bitcast {d} %D to <8 x i32>\n  %N2 = load <8 x i32>, ptr addrspace(1) %p\n  \
             %Z = load <8 x float>, ptr addrspace(1) %q\n  %E = call <8 x float> {next}\n  \
             store <8 x float> %E, ptr addrspace(1) %rr\n"
        );
    } else {
        let add = if d == "<8 x i32>" { "add" } else { "fadd" };
        let _ = write!(text, "  %E = {add} {d} %D, %C\n  store {d} %E, ptr addrspace(1) %rr\n");
    }
    text + "  ret void\n}\ndeclare i32 @llvm.amdgcn.workitem.id.x()\n"
}

const MEMORY: &[(&str, &str)] = &[
    (
        "b32 neighbours, aligned to 4",
        "%v = load <2 x i32>, ptr addrspace(3) %l, align 4\n  store <2 x i32> %v, ptr addrspace(1) %p",
    ),
    (
        "b64 neighbours, aligned to 8",
        "%v = load <2 x i64>, ptr addrspace(3) %l, align 8\n  store <2 x i64> %v, ptr addrspace(1) %p",
    ),
    (
        "a cluster load",
        "%v = call i32 @llvm.amdgcn.cluster.load.b32.i32(ptr addrspace(1) %p, i32 0, i32 %s)\n  store i32 %v, ptr addrspace(1) %p",
    ),
];

fn memory(body: &str) -> String {
    let declared = "declare i32 @llvm.amdgcn.cluster.load.b32.i32(ptr addrspace(1), i32 immarg, i32)\n";
    let declared = if body.contains("cluster") { declared } else { "" };
    format!(
        "target triple = \"amdgcn-amd-amdhsa\"\n{declared}\
         define amdgpu_kernel void @k(ptr addrspace(1) %p, ptr addrspace(3) %l, i32 %s) {{\n  {body}\n  ret void\n}}\n"
    )
}

/// LLVM's code of kernels for a processor, up to the end of the wave.
fn compiled(bench: &Workbench, kernels: &[String], processor: &str) -> Vec<Vec<Inst>> {
    for (number, kernel) in kernels.iter().enumerate() {
        bench.write(&format!("{number}.ll"), kernel.as_bytes());
    }
    bench.run(&format!(
        "for ((i = 0; i < {}; ++i)); do llc-24 -O3 -mcpu={processor} -filetype=obj $i.ll -o $i.o 2>error && \
         llvm-objcopy-24 -O binary -j .text $i.o $i.bin || {{ cat $i.ll error; exit 1; }}; done",
        kernels.len()
    ));
    let code = |number: usize| {
        let bytes = bench.read(&format!("{number}.bin"));
        let isa = isa(processor);
        let end = isa.walk(&bytes).position(|(_, inst)| inst.is_ok_and(|inst| inst.mnemonic() == "s_endpgm")).unwrap();
        let size: usize = isa.walk(&bytes).take(end + 1).map(|(_, inst)| usize::from(inst.unwrap().len())).sum();
        decode(isa, &bytes[..size])
    };
    (0..kernels.len()).map(code).collect()
}

fn is_matrix(inst: &Inst) -> bool {
    inst.is(Flag::Wmma) || inst.is(Flag::Swmmac)
}

fn bytes(code: &[Inst]) -> Vec<u8> {
    code.iter().flat_map(|inst| inst.bytes()[..usize::from(inst.len())].to_vec()).collect()
}

fn families(code: &[Inst]) -> Vec<Inst> {
    let lines = run(&bytes(code), &Setting::of("// free: v[900:920], s[90:99]")).unwrap();
    lines.iter().flat_map(|line: &Line| line.code.clone()).collect()
}

fn mnemonics<'a>(code: &'a [Inst], of: impl Fn(&Inst) -> bool + 'a) -> Vec<&'static str> {
    let mut found: Vec<_> = code.iter().filter(|inst| of(inst)).map(Inst::mnemonic).collect();
    found.sort_unstable();
    found
}

#[test]
fn distances_are_those_that_llvm_puts_into_its_own_code_for_the_target() {
    let Some(bench) = Workbench::new("distances") else { return };
    let mut names = Vec::new();
    let mut kernels = Vec::new();
    for matrix in matrix() {
        for chained in [false, true] {
            if chained && !matches!(matrix.types[2], "<8 x float>" | "<8 x i32>") {
                continue;
            }
            names.push(format!(
                "{} of {} and {}{}",
                matrix.name,
                matrix.types[0],
                matrix.types[1],
                if chained { ", chained" } else { "" }
            ));
            kernels.push(kernel(&matrix, chained));
        }
    }
    let (mut nops, mut kept) = (0, 0);
    let natives = compiled(&bench, &kernels, TARGET);
    for (name, native) in names.iter().zip(&natives) {
        let first = native.iter().position(is_matrix).unwrap();
        let is_nop = |(index, inst): &(usize, &Inst)| *index > first && inst.mnemonic() == "v_nop";
        let stripped: Vec<Inst> =
            native.iter().enumerate().filter(|place| !is_nop(place)).map(|(_, inst)| *inst).collect();
        nops += native.len() - stripped.len();
        kept += usize::from(native.len() != stripped.len());
        assert_eq!(distances(&families(&stripped)), distances(native), "{name}");
    }
    assert!(kept * 2 > kernels.len(), "{kept} of {} kernels have distances", kernels.len());
    say(&format!("distances: {} kernels as LLVM has them, {nops} v_nop in {kept} of them", kernels.len()));

    // Code compiled for the source is rewritten without a refusal, and uses the same matrix instructions.
    let sources = compiled(&bench, &kernels, "gfx1250");
    for ((name, source), native) in names.iter().zip(sources).zip(natives) {
        assert_eq!(mnemonics(&families(&source), is_matrix), mnemonics(&native, is_matrix), "{name}");
    }
}

/// From the first matrix instruction on, each instruction with the number of `v_nop` before it. `s_delay_alu`, a hint,
/// and writes of MODE, before which another family inserts `v_nop`, are skipped.
fn distances(code: &[Inst]) -> Vec<(usize, String)> {
    let first = code.iter().position(is_matrix).unwrap_or(0);
    let mut nops = 0;
    let mut all = Vec::new();
    for inst in &code[first..] {
        match inst.mnemonic() {
            "v_nop" => nops += 1,
            "s_delay_alu" | "s_setreg_imm32_b32" => {}
            _ => all.push((std::mem::take(&mut nops), format!("{inst:?}"))),
        }
    }
    all
}

#[test]
fn memory_instructions_become_those_that_llvm_chooses_for_the_target() {
    let Some(bench) = Workbench::new("memory of the target") else { return };
    let kernels: Vec<_> = MEMORY.iter().map(|(_, body)| memory(body)).collect();
    let sources = compiled(&bench, &kernels, "gfx1250");
    let natives = compiled(&bench, &kernels, TARGET);
    for (((name, _), source), native) in MEMORY.iter().zip(&sources).zip(&natives) {
        let of = |inst: &Inst| inst.mnemonic().starts_with("ds_") || inst.mnemonic().starts_with("cluster_");
        let made = families(source);
        assert_eq!(mnemonics(&made, of), mnemonics(native, of), "{name}");
        assert_ne!(made, *source, "{name} is left as it is");
        let masks = |code: &[Inst]| code.iter().filter(|inst| inst.words()[0] == 0xbefd_0080).count();
        assert_eq!(masks(&made), masks(native), "{name}: s_mov_b32 m0, 0");
    }
    say(&format!("memory of the target: {} kernels as LLVM has them", kernels.len()));
}

/// Matrix instructions that the target does not have.
fn of_the_source() -> Vec<Matrix> {
    let mut all = Vec::new();
    for name in ["fp8.fp8", "fp8.bf8", "bf8.fp8", "bf8.bf8"] {
        for (result, size) in [("<8 x float>", "f32"), ("<8 x half>", "f16")] {
            for modifier in [0, 3] {
                let call = format!(
                    "@llvm.amdgcn.wmma.{size}.16x16x128.{name}(<16 x i32> %A, <16 x i32> %B, i16 {modifier}, {result} %C, i1 true, i1 true)"
                );
                all.push(Matrix { name, types: ["<16 x i32>", "<16 x i32>", result], call });
            }
        }
    }
    let types = ["<16 x i32>", "<8 x i32>", "<16 x float>"];
    let head = "<16 x i32> %A, <8 x i32> %B, i16 0, <16 x float> %C";
    let mut f4 = |name: &'static str, more: &str| {
        all.push(Matrix { name, types, call: format!("@llvm.amdgcn.wmma.{name}.32x16x128.f4({head}{more})") });
    };
    f4("f32", "");
    f4("scale.f32", ", i32 0, i32 0, i32 %s, i32 0, i32 0, i32 %s, i1 true, i1 false");
    f4("scale16.f32", ", i32 0, i32 2, i64 %t, i32 1, i32 2, i64 %t, i1 false, i1 true");
    all
}

/// Conversions to and from UE5M3.
const CONVERSIONS: &[&str] = &[
    "i32 @llvm.amdgcn.cvt.pk.fp8.f32.e5m3(float %x, float %y, i32 %o, i1 true)",
    "i32 @llvm.amdgcn.cvt.sr.fp8.f32.e5m3(float %x, i32 %o, i32 %o, i32 3)",
    "float @llvm.amdgcn.cvt.f32.fp8.e5m3(i32 %o, i32 2)",
];

fn conversion(call: &str) -> String {
    let (result, call) = call.split_once(' ').unwrap();
    let declared = declaration(call, result);
    format!(
        "target triple = \"amdgcn-amd-amdhsa\"\n{declared}declare i32 @llvm.amdgcn.workitem.id.x()\n\
         define amdgpu_kernel void @k(ptr addrspace(1) %p) {{\n  %o = call i32 @llvm.amdgcn.workitem.id.x()\n  \
         %x = bitcast i32 %o to float\n  %y = fadd float %x, 1.0\n  %r = call {result} {call}\n  \
         store {result} %r, ptr addrspace(1) %p\n  ret void\n}}\n"
    )
}

#[test]
fn matrix_instructions_that_the_target_lacks_leave_nothing_that_it_does_not_know() {
    let Some(bench) = Workbench::new("matrix instructions of the source") else { return };
    let matrix = of_the_source();
    let mut kernels: Vec<_> = matrix.iter().map(|matrix| kernel(matrix, false)).collect();
    kernels.extend(CONVERSIONS.iter().map(|call| conversion(call)));
    let names: Vec<&str> =
        matrix.iter().map(|matrix| matrix.call.as_str()).chain(CONVERSIONS.iter().copied()).collect();
    for (number, source) in compiled(&bench, &kernels, "gfx1250").iter().enumerate() {
        let made = families(source);
        let bytes = bytes(&made);
        assert_eq!(decode(isa(TARGET), &bytes), made);
        let text = bytes.iter().map(|byte| format!("{byte:#04x} ")).collect::<String>();
        bench.write(&format!("{number}.hex"), text.as_bytes());
        let output =
            bench.shell(&format!("llvm-mc-24 -triple=amdgcn-amd-amdhsa -mcpu={TARGET} -disassemble {number}.hex"));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !error.contains("invalid"), "{}: {error}", names[number]);
        // Tests the check itself: the input does hold instructions that the target does not have.
        let before = self::bytes(source);
        assert!(isa(TARGET).walk(&before).any(|(_, inst)| inst.is_err()), "{}", names[number]);
        assert_ne!(made, *source, "{}", names[number]);
    }
    say(&format!("matrix instructions of the source: {} kernels, all known to the target afterwards", kernels.len()));
}
