//! Reads and writes: the fast path against the operands for every table entry, and cases by hand.

mod common;

use common::{Random, entries, random};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::{ControlFlow, EffectBits, RegisterEffect, Space, WaitCounter};
use hotswap_isa::reg::{Reg, Special};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Flag, Implicit, Inst, Isa, Name, OperandAccess, OperandValue, Target, Wave};

fn isa(target: &str) -> Isa {
    Isa::new(Target::find(target).expect("a target of the rows"))
}

fn decode(isa: Isa, words: &[u32]) -> Inst {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    isa.decode(&bytes).unwrap_or_else(|error| panic!("{words:08x?}: {error}"))
}

/// Whether an image instruction may access more registers than its operand names: addresses without a dimension in the
/// encoding, and data with `lwe`.
fn touches_more(inst: &Inst, name: Name) -> bool {
    let entry = inst.entry();
    entry.image().is_some()
        && match name {
            Name::Vaddr => entry.slot(Name::Dim).is_none(),
            Name::Vdata => inst.raw(Name::Lwe) == Some(1),
            _ => false,
        }
}

/// Whether the encoding or a tie determines the register of the operand.
fn is_placed(inst: &Inst, number: usize) -> bool {
    let slots = inst.entry().slots();
    if touches_more(inst, slots[number].name) {
        return false;
    }
    let tied_to_it = |slot: &hotswap_isa::Slot| slot.tied.map(usize::from) == Some(number);
    !slots[number].pieces().is_empty() || slots[number].tied.is_some() || slots.iter().any(tied_to_it)
}

/// Registers of operands: read or written.
fn named(inst: &Inst, isa: Isa, written: bool) -> Vec<Reg> {
    let touched = |access| if written { access != OperandAccess::Read } else { access == OperandAccess::Read };
    let operands = inst.operands(isa).enumerate().filter(|(number, _)| is_placed(inst, *number));
    let registers =
        operands.filter(|(_, operand)| touched(operand.access)).filter_map(|(_, operand)| match operand.value {
            OperandValue::Reg(reg) if !reg.is(Special::Null) => Some(reg),
            _ => None,
        });
    registers.collect()
}

#[test]
fn effects_are_the_registers_of_the_operands() {
    let mut source = Random::new(11);
    let mut checked = 0;
    for (entry, settings) in entries(3) {
        for isa in settings {
            for inst in (0..4).filter_map(|_| random(entry, isa, &mut source)) {
                let of = |effects: Vec<RegisterEffect>| -> Vec<Reg> {
                    let named = |effect: &RegisterEffect| effect.slot.is_some_and(|slot| is_placed(&inst, slot.into()));
                    effects.into_iter().filter(named).map(|effect| effect.reg).collect()
                };
                let (reads, writes) = (of(inst.reads(isa).collect()), of(inst.writes(isa).collect()));
                assert_eq!(reads, named(&inst, isa, false), "reads of {inst:?} on {isa:?}");
                assert_eq!(writes, named(&inst, isa, true), "writes of {inst:?} on {isa:?}");
                checked += 1;
            }
        }
    }
    println!("{checked} instructions");
    assert!(checked > 100_000);
}

/// The effects of [`Inst::effects`] and [`Inst::visit`], in one order.
fn both_ways(inst: &Inst, isa: Isa) -> [Vec<RegisterEffect>; 2] {
    let mut visited: Vec<RegisterEffect> = Vec::new();
    let implicit = inst.visit(isa, |bits| visited.extend(bits.effect()));
    implicit.for_each_effect(isa, |bits| visited.extend(bits.effect()));
    let key = |effect: &RegisterEffect| {
        (!effect.written, effect.slot.is_none(), effect.reg.file, effect.reg.index, effect.slot)
    };
    let mut listed: Vec<RegisterEffect> = inst.effects(isa).collect();
    listed.sort_by_key(key);
    visited.sort_by_key(key);
    [listed, visited]
}

#[test]
fn all_at_once_is_the_same_as_one_by_one() {
    let mut source = Random::new(23);
    let mut checked = 0;
    for (entry, settings) in entries(2) {
        for isa in settings {
            for inst in (0..3).filter_map(|_| random(entry, isa, &mut source)) {
                let [listed, visited] = both_ways(&inst, isa);
                assert_eq!(listed, visited, "{inst:?} on {isa:?}");
                let parts: Vec<RegisterEffect> = inst.writes(isa).chain(inst.reads(isa)).collect();
                assert_eq!(inst.effects(isa).collect::<Vec<_>>(), parts, "{inst:?} on {isa:?}");
                let written: RegSet = inst.writes(isa).map(|effect| effect.reg).collect();
                let read: RegSet = inst.reads(isa).map(|effect| effect.reg).collect();
                // Indexed registers and the registers of aliases are in the sets alone.
                assert!(written.is_subset(&inst.written_set(isa, VgprBanks::ENTRY)), "{inst:?} on {isa:?}");
                assert!(read.is_subset(&inst.read_set(isa, VgprBanks::ENTRY)), "{inst:?} on {isa:?}");
                if !inst.is(Flag::Indexed) {
                    assert_eq!(written, inst.written_set(isa, VgprBanks::ENTRY), "{inst:?} on {isa:?}");
                }
                checked += 1;
            }
        }
    }
    println!("{checked} instructions");
    assert!(checked > 50_000);
}

/// Registers without an operand are those of the row, in masks or as effects of their own.
#[test]
fn rows_say_what_is_touched_without_an_operand() {
    let mut source = Random::new(29);
    for (entry, settings) in entries(1) {
        let Some(isa) = settings.first().copied() else { continue };
        let Some(inst) = random(entry, isa, &mut source) else { continue };
        // `s_getreg` and `s_setreg` name a register by number; LLVM always assumes MODE.
        if inst.mnemonic().contains("etreg") {
            continue;
        }
        let mut exec = [false; 2];
        let implicit = inst.visit(isa, |bits| {
            let is_exec = bits.slot().is_none() && !bits.is_none() && bits.reg().is(Special::ExecLo);
            exec[usize::from(bits.written())] |= is_exec;
        });
        for (set, row, exec) in
            [(implicit.reads, entry.implicit_reads(), exec[0]), (implicit.writes, entry.implicit_writes(), exec[1])]
        {
            let found = u32::from(set.bits()) | u32::from(exec) << Implicit::Exec as u8;
            assert_eq!(found, row, "{inst:?} on {isa:?}");
            assert!(
                Implicit::ALL
                    .into_iter()
                    .all(|register| set.has_register(register) == (set.bits() >> register as u8 & 1 != 0))
            );
        }
    }
}

#[test]
fn an_empty_effect_says_nothing() {
    let isa = isa("gfx1100");
    // v_add_f32_e32 v1, 1.0, v3: the constant is no register.
    let mut found = Vec::new();
    let _ = decode(isa, &[0x0602_06f2]).visit(isa, |bits| found.push(bits));
    assert_eq!(found.iter().filter(|bits| !bits.is_none()).count(), 2);
    for bits in found.into_iter().filter(|bits| bits.is_none()).chain([EffectBits::NONE]) {
        assert_eq!((bits.effect(), bits.reg().count), (None, 0));
        let mut set = RegSet::EMPTY;
        set.insert(bits.reg());
        assert!(set.is_empty());
    }
}

/// Target, words, reads and writes; `~` marks a partial write, `w64` after the target its wave size.
const CASES: &[(&str, &[u32], &str, &str)] = &[
    ("gfx900", &[0xd100_0001, 0x0002_0702], "v2 v3 s[0:1] exec", "v1"),
    ("gfx1100", &[0x0202_0702], "v2 v3 exec_lo vcc_lo", "v1"),
    ("gfx1100 w64", &[0x0202_0702], "v2 v3 exec vcc", "v1"),
    ("gfx1100", &[0x7c02_0702], "v2.l v3.l exec_lo mode", "vcc_lo"),
    ("gfx1100 w64", &[0x7c02_0702], "v2.l v3.l exec mode", "vcc"),
    ("gfx1100", &[0x6402_0702], "v2.l v3.l exec_lo mode", "~v1.l"),
    ("gfx1010", &[0x6402_0702], "v2 v3 exec_lo mode", "~v1"),
    ("gfx1100", &[0x5602_0702], "v2 v3 v1 exec_lo mode", "v1"),
    ("gfx1100", &[0x8002_0302], "s2 s3", "s2 src_scc"),
    ("gfx1100", &[0xbe80_0102], "s[2:3]", "s[0:1]"),
    ("gfx1100", &[0xbfa3_0004], "vcc_lo", ""),
    ("gfx1250", &[0xd8dc_0201, 0x0200_0001], "v1 exec_lo", "v[2:3]"),
    ("gfx1250", &[0xee05_007c, 1, 2], "v[2:3] exec_lo", "v1"),
    // ds_read_u8_d16 a0, v1: half of an accumulation register is preserved as well.
    ("gfx90a", &[0xdaac_0000, 0x0000_0001], "v1 a0 exec", "~a0"),
    // image_gather4_c_lz_o with TFE and D16: two dwords of data and the status, four addresses.
    ("gfx1151", &[0xf0de_5604, 0x0422_0608], "v[8:11] s[8:15] s[4:7] exec_lo", "~v[6:8]"),
];

#[test]
fn cases_by_hand() {
    let list = |effects: Vec<RegisterEffect>| {
        let words = effects.iter().map(|effect| format!("{}{}", if effect.partial { "~" } else { "" }, effect.reg));
        words.collect::<Vec<_>>().join(" ")
    };
    for (target, words, reads, writes) in CASES {
        let wide = target.ends_with(" w64");
        let mut isa = isa(target.trim_end_matches(" w64"));
        if wide {
            isa = isa.with_wave(Wave::W64);
        }
        let inst = decode(isa, words);
        assert_eq!(list(inst.reads(isa).collect()), *reads, "reads of {inst:?} on {target}");
        assert_eq!(list(inst.writes(isa).collect()), *writes, "writes of {inst:?} on {target}");
    }
}

#[test]
fn sets_follow_the_bank_mode() {
    let isa = isa("gfx1250");
    // v_add_f32_e32 v1, v2, v3 with sources in banks 1 and 2, result in bank 3.
    let inst = decode(isa, &[0x0602_0702]);
    let banks = VgprBanks::of_mode(0b11_00_10_01);
    let vector = |index| Reg::new(hotswap_isa::reg::RegFile::Vgpr, index, 1);
    let reads = inst.read_set(isa, banks);
    assert!(reads.contains(vector(258)) && reads.contains(vector(515)) && !reads.touches(vector(2)));
    assert!(inst.overwritten_in_active_lanes(isa, banks).contains(vector(769)));
    // Lanes that are off in EXEC keep their old value.
    assert!(inst.overwritten_set(isa, banks).is_empty());
    // v_wmma_f32_16x16x64_fp8_fp8 v[0:7], … works on all lanes; v_cmp writes its whole mask.
    let product = decode(isa, &[0xcc6a_0000, 0x1c02_2108]);
    assert!(product.overwritten_set(isa, VgprBanks::ENTRY).contains(Reg::new(hotswap_isa::reg::RegFile::Vgpr, 0, 8)));
    let compare = decode(isa, &[0xd449_0014, 0x0202_0e01]);
    assert!(compare.overwritten_set(isa, VgprBanks::UNKNOWN).contains(Reg::new(
        hotswap_isa::reg::RegFile::Sgpr,
        20,
        1
    )));
    let unknown = VgprBanks::UNKNOWN;
    let written = inst.written_set(isa, unknown);
    assert!((0..4).all(|bank| written.contains(vector(1 + 256 * bank))));
    assert!(inst.overwritten_in_active_lanes(isa, unknown).is_empty());
}

#[test]
fn flow_of_control() {
    let cases: [(&str, &[u32], ControlFlow); 15] = [
        // s_trap 2, 3, and 2 where a privileged wave passes over it.
        ("gfx1030", &[0xbf92_0002], ControlFlow::End),
        ("gfx1030", &[0xbf92_0003], ControlFlow::Next),
        ("gfx1100", &[0xbf90_0002], ControlFlow::Next),
        ("gfx11-generic", &[0xbf90_0002], ControlFlow::Next),
        ("gfx1150", &[0xbf90_0002], ControlFlow::End),
        ("gfx1250", &[0xbf90_0002], ControlFlow::End),
        ("gfx1100", &[0xbfa0_0004], ControlFlow::Branch { target: 0x1014, conditional: false }),
        ("gfx1100", &[0xbfa0_ffff], ControlFlow::Branch { target: 0x1000, conditional: false }),
        ("gfx900", &[0xbf84_0001], ControlFlow::Branch { target: 0x1008, conditional: true }),
        ("gfx1100", &[0xbfb0_0000], ControlFlow::End),
        ("gfx1100", &[0xbe80_4804], ControlFlow::Indirect { conditional: false }),
        ("gfx1100", &[0xbe80_4904], ControlFlow::Call { target: None }),
        ("gfx1250", &[0xbe80_4bff, 0x100], ControlFlow::Branch { target: 0x1108, conditional: false }),
        ("gfx1250", &[0xbe80_4b04], ControlFlow::Indirect { conditional: false }),
        ("gfx1100", &[0x0602_0702], ControlFlow::Next),
    ];
    for (target, words, flow) in cases {
        let isa = isa(target);
        let inst = decode(isa, words);
        assert_eq!(inst.control_flow(0x1000, isa), flow, "{inst:?} on {target}");
    }
}

#[test]
fn memory_and_counters() {
    let cases: [(&str, &[u32], Space, &[WaitCounter]); 6] = [
        ("gfx900", &[0xdc50_8000, 0x0100_0002], Space::Global, &[WaitCounter::Load]),
        ("gfx1100", &[0xdc6a_0000, 0x007c_0102], Space::Global, &[WaitCounter::Store]),
        ("gfx1100", &[0xd8dc_0000, 0x0100_0002], Space::Lds, &[WaitCounter::LgkmAll]),
        ("gfx1200", &[0xd8dc_0000, 0x0100_0002], Space::Lds, &[WaitCounter::Lds]),
        ("gfx1200", &[0xf400_0000, 0xf800_0000], Space::Scalar, &[WaitCounter::Scalar]),
        ("gfx1250", &[0xee05_007c, 1, 2], Space::Global, &[WaitCounter::Load]),
    ];
    for (target, words, space, counters) in cases {
        let isa = isa(target);
        let inst = decode(isa, words);
        assert_eq!(inst.memory_access().map(|memory| memory.space), Some(space), "{inst:?} on {target}");
        assert!(counters.iter().all(|counter| inst.wait_counters(isa).has_counter(*counter)), "{inst:?} on {target}");
    }
    assert_eq!(decode(isa("gfx1100"), &[0x0602_0702]).memory_access(), None);
}
