//! Live registers at the labels of small programs, assembled by the userland's llvm-mc; bank modes, loops, covers.

use hotswap_isa::bank::BankRole;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::regset::RegSet;
use hotswap_program::{BankMap, CodeSource, DeadLanes, LiveSet, Liveness, LoopNest, Program, Summaries};
use hotswap_userland::{Workbench, say};

/// A program, and the expected registers at its labels: live in any lane, and live in active lanes if those are fewer.
struct Case {
    name: &'static str,
    target: &'static str,
    code: &'static str,
    expected: &'static [(&'static str, &'static str, &'static str)],
}

const CASES: &[Case] = &[
    Case {
        name: "a masked write ends a value in active lanes; other lanes may be read when EXEC grows again",
        target: "gfx1100",
        code: "
k:  v_mov_b32 v1, v0
    s_and_saveexec_b32 s0, vcc_lo
a:  v_mov_b32 v1, 2
b:  s_or_b32 exec_lo, exec_lo, s0
c:  global_store_b32 v[2:3], v1, off
    s_endpgm",
        expected: &[
            ("k", "v0 v1 v2 v3 vcc_lo", "v0 v2 v3 vcc_lo"),
            ("a", "s0 v1 v2 v3", "s0 v2 v3"),
            ("c", "v1 v2 v3", ""),
        ],
    },
    Case {
        name: "in a smaller EXEC nothing else counts",
        target: "gfx1100",
        code: "
k:  s_and_saveexec_b32 s0, vcc_lo
    v_mov_b32 v1, 2
b:  global_store_b32 v[2:3], v1, off
    s_endpgm",
        expected: &[("k", "v2 v3 vcc_lo", ""), ("b", "v1 v2 v3", "")],
    },
    Case {
        name: "EXEC from a register: nothing is known of its lanes",
        target: "gfx1100",
        code: "
k:  v_mov_b32 v1, 2
a:  s_mov_b32 exec_lo, s0
    global_store_b32 v[2:3], v1, off
    s_endpgm",
        expected: &[("k", "s0 v1 v2 v3", "s0 v2 v3"), ("a", "s0 v1 v2 v3", "")],
    },
    Case {
        name: "a lane write and a half keep the rest; a lane read and a matrix product read all lanes",
        target: "gfx1100",
        code: "
k:  v_writelane_b32 v1, s0, 3
a:  v_readlane_b32 s1, v1, 2
    v_mov_b16 v2.l, v3.l
b:  v_mov_b32 v4, v2
    v_mov_b32 v5, 1
c:  v_readfirstlane_b32 s2, v5
    v_add_nc_u32 v4, v4, s2
    global_store_b32 v[6:7], v4, off
    s_endpgm",
        expected: &[("k", "s0 v1 v2 v3 v5 v6 v7", "s0 v1 v2 v3 v6 v7"), ("c", "v4 v5 v6 v7", "")],
    },
    Case {
        name: "a loop reads what it wrote in the round before",
        target: "gfx90a",
        code: "
k:  s_mov_b32 s0, 0
l:  s_add_u32 s1, s1, s2
    s_add_u32 s0, s0, 1
    s_cmp_lt_u32 s0, s3
    s_cbranch_scc1 l
m:  s_mov_b32 m0, s1
    s_endpgm",
        expected: &[("k", "s1 s2 s3", ""), ("l", "s0 s1 s2 s3", ""), ("m", "s1", "")],
    },
    Case {
        name: "VCC and SCC live from where they are set to where they are read, as wide as the wave",
        target: "gfx1030",
        code: "
k:  v_cmp_eq_u32 vcc_lo, v0, v1
a:  s_cmp_eq_u32 s0, s1
b:  s_cbranch_vccz d
c:  s_cselect_b32 s2, s3, s4
    s_mov_b32 m0, s2
d:  s_endpgm",
        expected: &[
            ("k", "s0 s1 s3 s4 v0 v1", ""),
            ("a", "s0 s1 s3 s4 vcc_lo", ""),
            ("b", "scc s3 s4 vcc_lo", ""),
            ("c", "scc s3 s4", ""),
            ("d", "", ""),
        ],
    },
    Case {
        name: "a call needs what its callee reads, and ends what it overwrites",
        target: "gfx1201",
        code: "
k:  s_getpc_b64 s[4:5]
    s_add_co_u32 s4, s4, f@rel32@lo+4
    s_add_co_ci_u32 s5, s5, f@rel32@hi+12
a:  s_swappc_b64 s[30:31], s[4:5]
b:  s_mov_b32 m0, s7
    v_mov_b32 v9, v8
    global_store_b32 v[2:3], v9, off
    s_endpgm
.type f,@function
f:  s_mov_b32 s7, s6
    v_mov_b32 v8, v1
    s_setpc_b64 s[30:31]",
        expected: &[("a", "s4 s5 s6 v1 v2 v3", ""), ("b", "s7 v2 v3 v8", "")],
    },
    Case {
        name: "recursion comes to an end",
        target: "gfx90a",
        code: "
k:  s_getpc_b64 s[4:5]
    s_add_u32 s4, s4, f@rel32@lo+4
    s_addc_u32 s5, s5, f@rel32@hi+12
a:  s_swappc_b64 s[30:31], s[4:5]
    s_endpgm
.type f,@function
f:  buffer_store_dword v40, off, s[0:3], s32
    v_writelane_b32 v40, s30, 0
    v_writelane_b32 v40, s31, 1
    s_cbranch_scc0 out
    s_add_u32 s10, s11, s12
    s_getpc_b64 s[4:5]
    s_add_u32 s4, s4, f@rel32@lo+4
    s_addc_u32 s5, s5, f@rel32@hi+12
    s_swappc_b64 s[30:31], s[4:5]
out:
    v_readlane_b32 s30, v40, 0
    v_readlane_b32 s31, v40, 1
    buffer_load_dword v40, off, s[0:3], s32
    s_setpc_b64 s[30:31]",
        expected: &[("a", "scc s0 s1 s11 s12 s2 s3 s32 s4 s5 v40", "")],
    },
    Case {
        name: "an index needs every register of its file",
        target: "gfx1030",
        code: "
k:  v_movrels_b32 v1, v2
a:  global_store_dword v[2:3], v1, off
    s_endpgm",
        expected: &[("a", "v1 v2 v3", "")],
    },
];

fn program<'a>(object: &'a [u8]) -> Program<'a> {
    let source =
        CodeSource::read(object).expect("the assembler makes ELF files").into_iter().find(|s| !s.bytes.is_empty());
    Program::build(source.expect("there is code"))
}

fn assemble(bench: &Workbench, target: &str, code: &str) -> Vec<u8> {
    let words = format!("-mcpu={target} -mattr=+real-true16");
    bench.assemble(23, &words, "case", &format!(".type k,@function\n{code}\n"))
}

fn label(program: &Program<'_>, name: &str) -> u32 {
    program.source.marks.iter().find(|mark| mark.name == name).unwrap_or_else(|| panic!("no label {name}")).offset
}

fn names(set: &RegSet) -> String {
    let quiet = ["exec_lo", "exec_hi", "mode", "vcc_hi", "s30", "s31"];
    let mut names: Vec<String> = set.iter().map(|reg| reg.to_string().replace("src_scc", "scc")).collect();
    names.retain(|name| !quiet.contains(&name.as_str()) && !name.starts_with("flat_scratch"));
    names.sort();
    names.join(" ")
}

fn live_at(program: &Program<'_>, banks: &BankMap, offset: u32) -> LiveSet {
    let summaries = Summaries::of(program, banks);
    let (number, _) = program.function_at(offset).expect("a label is in a function");
    let liveness = Liveness::of(program, number, &summaries, banks);
    liveness.live_around(program, &summaries, banks, offset).expect("a label is before an instruction").0
}

#[test]
fn registers_are_live_as_the_cases_say() {
    let Some(bench) = Workbench::new("registers_are_live_as_the_cases_say") else { return };
    let mut wrong = Vec::new();
    for case in CASES {
        let object = assemble(&bench, case.target, case.code);
        let program = program(&object);
        let banks = BankMap::of(&program);
        for (name, any, active) in case.expected {
            let live = live_at(&program, &banks, label(&program, name));
            let sorted = |text: &str| {
                let mut names: Vec<&str> = text.split_whitespace().collect();
                names.sort_unstable();
                names.join(" ")
            };
            let expected = (sorted(any), sorted(if active.is_empty() { any } else { active }));
            let found = (names(&live.live_in_any_lane()), names(&live.live_in_active_lanes()));
            if found != expected {
                wrong.push(format!("{}, {name}: {found:?}, expected {expected:?}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    say(&format!("program: {} cases of liveness as expected", CASES.len()));
}

#[test]
fn free_registers_are_dead_aligned_and_none_of_the_excluded() {
    let Some(bench) = Workbench::new("free_registers_are_dead_aligned_and_none_of_the_excluded") else { return };
    let object = assemble(&bench, "gfx1100", "k: global_store_b32 v[2:3], v1, off\n s_endpgm");
    let program = program(&object);
    let live = live_at(&program, &BankMap::of(&program), 0);
    let free = |count, align, limit, excluding: &RegSet| {
        live.find_dead_registers(RegFile::Vgpr, count, align, limit, excluding, DeadLanes::InAllLanes)
            .map(|reg| reg.index)
    };
    let none = RegSet::EMPTY;
    assert_eq!((free(1, 1, 256, &none), free(2, 2, 256, &none), free(2, 2, 5, &none)), (Some(0), Some(4), None));
    let excluded: RegSet = [Reg::new(RegFile::Vgpr, 4, 2)].into_iter().collect();
    assert_eq!((free(2, 2, 256, &excluded), free(1, 1, 0, &none)), (Some(6), None));
    assert_eq!(live.count_dead(RegFile::Vgpr, 8, DeadLanes::InAllLanes), 5);
    assert!(live.is_dead(Reg::new(RegFile::Sgpr, 0, 16), DeadLanes::InAllLanes));
}

const BANKS: &str = "
k:  s_set_vgpr_msb 0x41
    s_cbranch_scc1 b
a:  v_mov_b32 v1, v2
    s_branch c
b:  s_set_vgpr_msb 0x4181
c:  v_mov_b32 v3, v4
    s_get_pc_i64 s[4:5]
p:  s_add_nc_u64 s[4:5], s[4:5], f-p
    s_swap_pc_i64 s[30:31], s[4:5]
d:  v_mov_b32 v5, v6
    s_endpgm
.type f,@function
f:  s_set_vgpr_msb 0x80
    s_set_pc_i64 s[30:31]
.type g,@function
.globl g
g:  v_mov_b32 v7, v8
    s_set_pc_i64 s[30:31]
";

#[test]
fn bank_modes_go_through_branches_and_calls_and_are_never_guessed() {
    let Some(bench) = Workbench::new("bank_modes_go_through_branches_and_calls_and_are_never_guessed") else { return };
    let kernel = format!(
        "{BANKS}\n.section .rodata,\"a\"\n.p2align 6\n.amdhsa_kernel k\n.amdhsa_next_free_vgpr 600\n\
                          .amdhsa_next_free_sgpr 40\n.end_amdhsa_kernel\n"
    );
    let object = assemble(&bench, "gfx1250", &kernel);
    let program = program(&object);
    let banks = BankMap::of(&program);
    let at = |banks: &BankMap, name: &str| {
        let mode = banks.mode_before(&program, label(&program, name)).unwrap_or_else(|| panic!("{name}"));
        [BankRole::Source0, BankRole::Destination].map(|role| mode.bank(role))
    };
    assert_eq!(at(&banks, "a"), [Some(1), Some(1)]);
    assert_eq!(at(&banks, "c"), [Some(1), None], "two paths bring different banks of the destination");
    assert_eq!(at(&banks, "d"), [Some(0), Some(2)], "what the callee leaves");
    assert_eq!(at(&banks, "g"), [None, None], "anyone may call it");
    assert_eq!(at(&BankMap::by_convention(&program), "g"), [Some(0), Some(0)]);
    // The operand is v258 in one bank and nothing is known about the other path's destination.
    let live = live_at(&program, &banks, label(&program, "a")).live_in_active_lanes();
    assert!(live.contains(Reg::new(RegFile::Vgpr, 258, 1)) && !live.contains(Reg::new(RegFile::Vgpr, 2, 1)));
}

#[test]
fn loops_nest_as_the_code_does() {
    let Some(bench) = Workbench::new("loops_nest_as_the_code_does") else { return };
    let code = "
k:  s_nop 0
o:  s_nop 1
i:  s_nop 2
    s_cbranch_scc1 i
    s_cbranch_vccz o
s:  s_cbranch_scc0 s
    s_cbranch_scc1 y
x:  s_nop 3
y:  s_cbranch_vccz x
    s_endpgm";
    let object = assemble(&bench, "gfx1100", code);
    let program = program(&object);
    let function = &program.functions[0];
    let nest = LoopNest::of(function);
    let depth = |name: &str| nest.depth[function.block_at(label(&program, name)).unwrap()];
    assert_eq!(["k", "o", "i", "s", "x", "y"].map(depth), [0, 1, 2, 1, 1, 1]);
    let headers = |name: &str| {
        let block = function.block_at(label(&program, name)).unwrap() as u32;
        nest.innermost(block).map(|one| (one.headers.len(), one.blocks.len(), one.parent.is_some()))
    };
    assert_eq!(headers("i"), Some((1, 1, true)));
    assert_eq!(headers("o"), Some((1, 3, false)));
    assert_eq!(headers("x"), Some((2, 2, false)), "a loop with two entries");
}

#[test]
fn clauses_delays_and_ways_are_found() {
    let Some(bench) = Workbench::new("clauses_delays_and_ways_are_found") else { return };
    let code = "
k:  s_clause 0x1
a:  global_load_b32 v0, v[2:3], off
b:  global_load_b32 v1, v[2:3], off offset:4
c:  s_wait_loadcnt 0x0
    s_delay_alu instid0(VALU_DEP_1) | instskip(SKIP_1) | instid1(VALU_DEP_1)
d:  v_add_nc_u32 v0, v0, v1
    s_nop 0
e:  v_add_nc_u32 v1, v0, v1
f:  v_mov_b32 v2, v1
    s_cbranch_scc1 d
    s_endpgm";
    let object = assemble(&bench, "gfx1250", code);
    let program = program(&object);
    let clause = |name: &str| program.covers(label(&program, name)).clause.map(|cover| (cover.count, cover.place));
    assert_eq!(["a", "b", "c"].map(clause), [Some((2, 0)), Some((2, 1)), None]);
    let delay = |name: &str| program.covers(label(&program, name)).delay.map(|cover| (cover.count, cover.place));
    assert_eq!(["c", "d", "e", "f"].map(delay), [None, Some((3, 0)), Some((3, 2)), None]);
    let ways = program.ways(0).unwrap();
    let mut seen = Vec::new();
    let steps = ways.following(label(&program, "f"), 2, |_, inst, distance| {
        seen.push((inst.mnemonic(), distance));
        true
    });
    assert_eq!(seen, [("s_cbranch_scc1", 1), ("v_add_nc_u32", 2), ("s_endpgm", 2)]);
    assert!(!steps.leaves);
    seen.clear();
    let steps = ways.preceding(label(&program, "d"), 2, |_, inst, distance| {
        seen.push((inst.mnemonic(), distance));
        true
    });
    seen.sort_unstable();
    assert_eq!(seen, [("s_cbranch_scc1", 1), ("s_delay_alu", 1), ("s_wait_loadcnt", 2), ("v_mov_b32", 2)]);
    assert!(!steps.leaves);
}
